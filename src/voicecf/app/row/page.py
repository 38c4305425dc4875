"""One row: name it, say where to and what may change; the answer comes at once."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any

import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.effort import ABOUT_SPREADS
from voicecf.app.project import Project
from voicecf.app.row import answers, controls, trying
from voicecf.app.row.answers import RowAnswer, Way, difference
from voicecf.app.row.trying import Lever
from voicecf.app.style import colour
from voicecf.app.words import literal, percent
from voicecf.output import figure
from voicecf.plots import SegmentMap

# Spreads below which a move may be noise, and the margin that is offered then, in percent.
TINY, MARGIN = 0.05, 20
AT_THE_BORDER = (
    "This row stands at the border: so small a change may be noise, and the row may fall back. A "
    "safety margin asks for a change that lasts."
)
BEST, PICK = "Best view", "pick"
# Sliders that are shown at first, and side by side.
SLIDERS, ACROSS = 12, 4
ABOUT_FAR = "One column at a time, the others as in the answer."
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
        st.header("What may change")
        controls.allowed(now, now.prepared)
    with results:
        given = answers.of_project(now)
        st.html(answer_card(given))
        controls.chips(now, given.at_the_rim)
        reason = st.container()
        if given.card.changes:
            _changes(now, given)
        others = st.container()
    _what_if(now)
    _map(now, given)
    # What takes longer comes last, so that the answer itself is there at once.
    with others:
        _others(now, given)
    with reason:
        if not given.possible:
            _obstacle(now, given)


def answer_card(given: RowAnswer) -> str:
    """Write the answer: from where to where, and in a sentence."""
    source, target = given.ends
    parts = [blocks.chip(given.names[source], source)] if source >= 0 else []
    if target >= 0:
        parts += ["<span>to</span>", blocks.chip(given.names[target], target)]
    return (
        f'<div class="v-card {"v-yes" if given.possible else "v-no"}" '
        f'style="--c:{colour(target)}"><div class="v-move">{"".join(parts)}</div>'
        f'<p class="v-lead">{escape(given.found.text(0))}</p></div>'
    )


def _changes(now: Project, given: RowAnswer) -> None:
    place = st.container()
    st.markdown(given.certainty, help=ABOUT_SPREADS)
    if given.effort < TINY and not given.question.margin:
        st.html(blocks.paragraph(AT_THE_BORDER))
        st.button(
            f"Safety margin {MARGIN} %", on_click=lambda: now.ask(margin=MARGIN), key="firmly"
        )
    # How far each may go takes a while, and is found out if it is asked for.
    far = st.toggle("How far each may go", help=ABOUT_FAR)
    card = answers.card_of(now) if far else given.card
    place.html(card.html(session.theme()))


# What if


@st.fragment
def _what_if(now: Project) -> None:
    """Let the visitor try out values; the segment that the row is in then is told at once."""
    given = answers.of_project(now)
    st.header("What if", help=ABOUT_WHAT_IF)
    told, found = st.container(), trying.levers(given)
    # A slider begins anew for another row or other segments.
    keys = {
        lever.column: f"try {now.id} {hash(now.segments_key)} {given.question.row} {lever.column}"
        for lever in found
    }

    def begin(where: str) -> None:
        for lever in found:
            st.session_state[keys[lever.column]] = getattr(lever, where)

    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Back to the row", on_click=begin, args=("now",))
        if given.card.changes:
            st.button("Begin at the answer", on_click=begin, args=("answer",))
        every = len(found) > SLIDERS and st.toggle(f"All {len(found)} columns", key="every lever")
    shown, tried = found if every else found[:SLIDERS], {}
    for first in range(0, len(shown), ACROSS):
        for place, lever in zip(st.columns(ACROSS), shown[first : first + ACROSS], strict=False):
            with place:
                tried[lever.column] = _lever(lever, keys[lever.column])
    tried = {lever.column: v for lever in shown if (v := tried[lever.column]) != lever.now}
    stands = given.segments.voice.standing(trying.changed_row(given, tried)).iloc[0]
    here, there = (blocks.chip(given.names[t], t) for t in stands[["cluster", "next"]].astype(int))
    inside = f"{figure(stands['inside'], 2)} spreads inside"
    told.html(
        f'<div class="v-place" role="status"><span>{inside}</span>{here}'
        f"<span>next to</span>{there}</div>"
    )


def _lever(lever: Lever, key: str) -> Any:
    st.session_state.setdefault(key, lever.now)
    if lever.levels:
        return st.selectbox(literal(lever.column), lever.levels, key=key)
    st.session_state[key] = min(max(st.session_state[key], lever.low), lever.high)
    return st.slider(
        literal(lever.column), lever.low, lever.high, step=lever.step, format=lever.format, key=key
    )


# The map


def _map(now: Project, given: RowAnswer) -> None:
    st.header("Map")
    _axes(now, answers.drawable(given.segments))
    shown, told = answers.answer_map(given, now.choices.axes)

    def pick() -> None:
        picked = st.session_state["map"]["selection"].get(PICK, [])
        if picked:
            controls.choose(now, int(now.prepared.rows[int(picked[0]["row"])]))

    st.html(map_legend(shown, given.names))
    drawn = shown.chart(session.theme(), told=told)
    st.altair_chart(drawn, key="map", on_select=pick, selection_mode=PICK)
    st.html(blocks.paragraph(f"{shown.note} Click a point to ask about its row."))


def map_legend(shown: SegmentMap, names: tuple[str, ...]) -> str:
    """Write which colour a segment has, and what faint dots are if there are any."""
    off = float((shown.drawn_in != shown.labels).mean()) if len(shown.labels) else 0.0
    faint = (
        f"Faint dots ({percent(off)}): rows of another segment than the area they are drawn in; "
        "they differ in what is not shown."
    )
    return blocks.legend(names) + (blocks.paragraph(faint) if off else "")


def _axes(now: Project, columns: list[str]) -> None:
    """Let the visitor choose what the map shows: two columns, or the best view."""
    across, up = st.columns(2)
    if not set(now.choices.axes) <= set(columns):
        now.change(axes=())
    axes = now.choices.axes

    def first(name: str) -> None:
        other = next((c for c in columns if c != name), name)
        now.change(axes=() if name == BEST else (name, other))

    if len(columns) > 1:
        chosen = axes[0] if axes else BEST
        across.selectbox("Across", [BEST, *columns], **session.tied("x", chosen, first))
    if axes:
        options = [c for c in columns if c != axes[0]]
        tied = session.tied("y", axes[1], lambda name: now.change(axes=(axes[0], name)))
        up.selectbox("Up", options, **tied)


# Other ways


def _others(now: Project, given: RowAnswer) -> None:
    if not given.card.changes:
        return
    others = answers.others_of(now)
    st.header("Other ways")
    if not others:
        st.html(blocks.paragraph("None was found by what may change."))
    for one in others:
        with st.expander(literal(difference(given, one))):
            st.html(one.card.html(session.theme()))


def _obstacle(now: Project, given: RowAnswer) -> None:
    with st.spinner("Finding out what stands in the way ..."):
        reason = answers.reason_of(now)
    if reason.because:
        st.html(blocks.paragraph(f"In the way: {reason.because}."))
    ways = answers.ways_out(given, reason)
    if ways:
        st.html(blocks.paragraph("It becomes possible if you"))

    def take(way: Way) -> None:
        now.ask(target=way.question.target, margin=way.question.margin)
        now.change(rules=way.question.allowed)

    with st.container(horizontal=True):
        for i, way in enumerate(ways):
            st.button(literal(way.text), key=f"way {i} {way.text}", on_click=partial(take, way))
