"""One row: name it, say where to and what may change; the answer comes at once."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.campaign.cards import ABOUT_SPREADS
from voicecf.app.campaign.plan import SPREADS
from voicecf.app.campaign.summary import effort_text
from voicecf.app.project import Project
from voicecf.app.row import asking, cards, controls, mapping, picture, whatif
from voicecf.app.row.answers import RowAnswer, Way, difference
from voicecf.app.row.mapping import BEST
from voicecf.app.row.whatif import Lever
from voicecf.app.words import literal

CHANGES = "What changes most"
# Sliders that are shown at first, and side by side.
SLIDERS, ACROSS = 12, 4
ABOUT_WHAT_IF = (
    "Move a value: the segment that the row would be in is told at once, and how far it is to the "
    "nearest border, straight across all columns. 1 spread is a typical difference between rows in "
    "a column (its standard deviation)."
)


def show(now: Project) -> None:
    """Draw the page."""
    if not controls.ask_about(now):
        return
    with st.container(key="row-page"):
        # The answer is the first of both, so that it comes first on a telephone as well.
        results, asked = st.columns([2.3, 1], gap="large")
    with asked:
        controls.target(now, now.segments)
        controls.goal(now)
        st.subheader("What may change")
        controls.allowed(now, now.prepared)
    with results:
        answer = asking.answer(now)
        st.html(cards.answer_card(answer))
        controls.chips(now, bool(answer.rim))
        reason = st.container()
        if answer.changes:
            _changes(now, answer)
        others = st.container()
    _what_if(now)
    _map(now, answer)
    # What takes longer comes last, so that the answer itself is there at once.
    with others:
        _others(now, answer)
    with reason:
        if not answer.possible:
            _obstacle(now, answer)


def _changes(now: Project, answer: RowAnswer) -> None:
    card = st.container()
    effort = effort_text(answer.effort, SPREADS)
    st.markdown(f"An effort of {effort}.", help=ABOUT_SPREADS)
    # How far each may go takes a while, and is found out if it is asked for.
    if st.toggle("How far each may go", help="One column at a time, the others as in the answer."):
        answer = asking.with_ranges(now, answer)
    card.html(cards.change_card(answer))


# What if


@st.fragment
def _what_if(now: Project) -> None:
    """Let the visitor try out values; the segment that the row is in then is told at once."""
    answer = asking.answer(now)
    st.subheader("What if", help=ABOUT_WHAT_IF)
    told = st.container()
    found = asking.levers(now, answer)
    keys = {lever.column: _key(now, answer, lever) for lever in found}

    def begin(where: str) -> None:
        for lever in found:
            st.session_state[keys[lever.column]] = getattr(lever, where)

    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Back to the row", on_click=begin, args=("now",))
        if answer.changes:
            st.button("Begin at the answer", on_click=begin, args=("answer",))
        every = len(found) > SLIDERS and st.toggle(f"All {len(found)} columns", key="every lever")
    shown = found if every else found[:SLIDERS]
    values = {}
    for first in range(0, len(shown), ACROSS):
        places = st.columns(ACROSS)
        for place, lever in zip(places, shown[first : first + ACROSS], strict=False):
            with place:
                values[lever.column] = _lever(lever, keys[lever.column])
    tried = {
        lever.column: values[lever.column] for lever in shown
        if values[lever.column] != lever.now
    }  # fmt: skip
    place_ = whatif.place_of(answer.segments, whatif.changed_row(answer, tried))
    with told:
        st.html(cards.place_text(place_, answer.names))


def _key(now: Project, answer: RowAnswer, lever: Lever) -> str:
    """Return what a slider is remembered by: it begins anew for another row or other segments."""
    return f"try {now.id} {hash(now.segments_key)} {answer.question.row} {lever.column}"


def _lever(lever: Lever, key: str) -> Any:
    st.session_state.setdefault(key, lever.now)
    if lever.levels:
        return st.selectbox(literal(lever.column), lever.levels, key=key)
    value = min(max(st.session_state[key], lever.low), lever.high)
    st.session_state[key] = value
    return st.slider(
        literal(lever.column), lever.low, lever.high, step=lever.step, format=lever.format, key=key
    )


# The map


def _map(now: Project, answer: RowAnswer) -> None:
    st.subheader("Map")
    columns = mapping.drawable(answer.segments)
    if len(columns) > 1:
        _axes(now, columns)
    shown = mapping.answer_map(answer, now.choices.axes)

    def pick() -> None:
        picked = st.session_state["map"]["selection"].get(picture.PICK, [])
        if picked:
            controls.choose(now, int(now.prepared.rows[int(picked[0]["row"])]))

    drawn = picture.segment_map(
        shown, tips=mapping.tips(answer, shown), formats=mapping.formats(answer, shown),
        theme=session.theme(),
    )  # fmt: skip
    st.html(picture.legend(shown))
    st.altair_chart(drawn, key="map", on_select=pick, selection_mode=picture.PICK)
    st.html(blocks.paragraph(f"{shown.note} Click a point to ask about its row."))


def _axes(now: Project, columns: list[str]) -> None:
    """Let the visitor choose what the map shows: what changes, two columns, or the best view."""
    across, up = st.columns(2)
    axes = now.choices.axes
    if axes and not set(axes) <= set(columns):
        axes = None
        now.change(axes=None)

    def first(name: str) -> None:
        other = next(c for c in columns if c != name)
        now.change(axes={CHANGES: None, BEST: ()}.get(name, (name, other)))

    def second(name: str) -> None:
        if now.choices.axes:
            now.change(axes=(now.choices.axes[0], name))

    chosen = CHANGES if axes is None else axes[0] if axes else BEST
    across.selectbox("Across", [CHANGES, *columns, BEST], **session.tied("x", chosen, first))
    if axes:
        options = [c for c in columns if c != axes[0]]
        up.selectbox("Up", options, **session.tied("y", axes[1], second))


# Other ways


def _others(now: Project, answer: RowAnswer) -> None:
    if not answer.possible or not answer.changes:
        return
    others = asking.alternatives(now, answer)
    st.subheader("Other ways")
    if not others:
        st.html(blocks.paragraph("None was found by what may change."))
    for one in others:
        with st.expander(literal(difference(answer, one))):
            st.html(cards.change_card(one))


def _obstacle(now: Project, answer: RowAnswer) -> None:
    with st.spinner("Finding out what stands in the way ..."):
        found = asking.obstacle(now, answer)
    st.html(cards.obstacle_text(found))
    if found.ways:
        st.html(blocks.paragraph("It becomes possible if you"))

    def take(way: Way) -> None:
        now.ask(target=way.question.target, margin=way.question.margin)
        now.change(rules=way.question.allowed)

    with st.container(horizontal=True):
        for i, way in enumerate(found.ways):
            st.button(literal(way.text), key=f"way {i} {way.text}", on_click=partial(take, way))
