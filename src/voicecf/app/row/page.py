"""One row: pick it, say where to and what may change; the answer comes at once."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.data.preparing import Prepared
from voicecf.app.project import Project
from voicecf.app.row import asking, cards, finding, mapping, picture
from voicecf.app.row.answers import Answer, Way, difference
from voicecf.app.row.question import GOALS, NEAREST, Allowed, Range
from voicecf.app.segments.segments import Segments
from voicecf.app.words import literal
from voicecf.output.wording import counted, figure

ANY = -1
MOST_MARGIN = 90


def show(now: Project) -> None:
    """Draw the page."""
    asked = now.question
    found = now.segments
    controls, results = st.columns([1, 2.3], gap="large")
    with controls:
        _row(now, found)
        _target(now, found)
        _goal(now)
        _allowed(now, found.prepared, asked.allowed)
    with results:
        answer = asking.answer(now)
        st.html(cards.answer_card(answer))
        reason = st.container()
        if answer.changes:
            st.html(cards.change_card(answer))
            _reach(now, answer)
        _pictures(now, answer)
        others = st.container()
    # What takes longer comes last, so that the answer itself is there at once.
    with others:
        _others(now, answer)
    with reason:
        if not answer.possible:
            _obstacle(now, answer)


# Controls


def _row(now: Project, found: Segments) -> None:
    rows = found.prepared.rows

    def pick(number: float | None) -> None:
        if number is not None:
            place = int(np.searchsorted(rows, int(number) - 1))
            now.ask(row=min(place, len(rows) - 1))

    st.number_input(
        f"Row, 1 to {int(rows[-1]) + 1:,}", int(rows[0]) + 1, int(rows[-1]) + 1,
        **session.tied("row", int(rows[now.question.row]) + 1, pick),
    )  # fmt: skip


def _target(now: Project, found: Segments) -> None:
    names = now.names
    own = int(found.labels[now.question.row])
    options = [ANY, *(t for t in range(found.k) if t != own)]
    chosen = now.question.target
    if chosen not in options:
        chosen = None
        now.ask(target=None)
    st.selectbox(
        "Should be in", options,
        format_func=lambda t: NEAREST if t == ANY else names[t],
        **session.tied(
            "target", ANY if chosen is None else chosen,
            lambda t: now.ask(target=None if t == ANY else t),
        ),
    )  # fmt: skip


def _goal(now: Project) -> None:
    asked = now.question
    st.radio(
        "Look for", list(GOALS), format_func=lambda goal: GOALS[goal],
        **session.tied("goal", asked.objective, lambda goal: now.ask(objective=goal)),
    )  # fmt: skip
    st.slider(
        "Safety margin", 0, MOST_MARGIN, format="%d %%",
        help="How firmly inside the segment the answer lies: 0 % is just over the border, 100 % "
        "would be its centre.",
        **session.tied("margin", asked.margin, lambda margin: now.ask(margin=int(margin))),
    )  # fmt: skip


def _allowed(now: Project, prepared: Prepared, allowed: Allowed) -> None:
    st.subheader("What may change")

    def say(word: str, names: list[str]) -> None:
        """Put columns into one of the lists, and take them out of the others."""
        before = now.question.allowed
        told: dict[str, Any] = {
            other: tuple(n for n in getattr(before, other) if n not in names)
            for other in ("locked", "rising", "falling")
        }
        now.allow(**(told | {word: tuple(names)}))

    for word, label, options in (
        ("locked", "Must stay as it is", prepared.names),
        ("rising", "May only rise", list(prepared.numbers)),
        ("falling", "May only fall", list(prepared.numbers)),
    ):
        st.multiselect(
            label, options, placeholder="No column",
            **session.tied(word, list(getattr(allowed, word)), partial(say, word)),
        )  # fmt: skip
    _limits(now, prepared, allowed)
    if allowed.count:
        st.button("Allow everything again", on_click=lambda: now.change(rules=Allowed()))


def _limits(now: Project, prepared: Prepared, allowed: Allowed) -> None:
    limited = [r.column for r in allowed.ranges] + [name for name, _ in allowed.levels]
    with st.expander("Ranges, steps and levels", expanded=bool(limited or allowed.most)):
        st.multiselect(
            "Limit", prepared.names, placeholder="No column",
            **session.tied("limited", limited, partial(_choose_limits, now)),
        )  # fmt: skip
        for limit in allowed.ranges:
            _range(now, prepared, limit)
        for name, levels in allowed.levels:
            every = sorted(prepared.frame[name].dropna().unique())
            st.multiselect(
                f"{literal(name)} may become", every,
                **session.tied(f"levels {name}", list(levels), partial(_set_levels, now, name)),
            )  # fmt: skip
        st.number_input(
            "Most columns that may change", 1, len(prepared.names), placeholder="Any number",
            **session.tied("most", allowed.most, partial(_set_most, now)),
        )  # fmt: skip


def _choose_limits(now: Project, chosen: list[str]) -> None:
    prepared = now.prepared
    before = now.question.allowed
    ranges = {r.column: r for r in before.ranges}
    levels = dict(before.levels)
    numbers = [name for name in chosen if name in prepared.numbers]
    categories = [name for name in chosen if name in prepared.categories]
    now.allow(
        ranges=tuple(ranges.get(name, Range(name)) for name in numbers),
        levels=tuple(
            (n, levels.get(n, tuple(sorted(prepared.frame[n].dropna().unique()))))
            for n in categories
        ),
    )


def _range(now: Project, prepared: Prepared, limit: Range) -> None:
    values = prepared.frame[limit.column]
    whole = limit.column in prepared.whole
    st.html(blocks.paragraph(limit.column))
    places = st.columns(3)
    for place, side, label, seen in (
        (places[0], "low", "At least", figure(float(values.min()))),
        (places[1], "high", "At most", figure(float(values.max()))),
        (places[2], "step", "In steps of", "1" if whole else "any"),
    ):
        with place:
            st.number_input(
                label, placeholder=seen, format="%g", step=1.0 if whole else None,
                min_value=1e-9 if side == "step" else None,
                **session.tied(
                    f"{side} {limit.column}", getattr(limit, side), partial(_set, now, limit, side)
                ),
            )  # fmt: skip


def _set(now: Project, limit: Range, side: str, value: float | None) -> None:
    changed = replace(limit, **{side: value})  # type: ignore[arg-type]
    if changed.low is not None and changed.high is not None and changed.low > changed.high:
        other = "high" if side == "low" else "low"
        changed = replace(changed, **{other: value})  # type: ignore[arg-type]
    before = now.question.allowed
    ranges = tuple(changed if r.column == limit.column else r for r in before.ranges)
    now.allow(ranges=ranges)


def _set_levels(now: Project, name: str, levels: list[str]) -> None:
    before = now.question.allowed
    kept = tuple((n, tuple(levels) if n == name else old) for n, old in before.levels)
    now.allow(levels=tuple((n, some) for n, some in kept if some))


def _set_most(now: Project, most: int | None) -> None:
    now.allow(most=most)


# Results


def _reach(now: Project, answer: Answer) -> None:
    """Tell how far each column may go, if that is asked for: it takes a while."""
    if st.toggle("How far each may go", help="One column at a time, the others as in the answer."):
        st.html(cards.reach_table(asking.reaches(now, answer)))


def _pictures(now: Project, answer: Answer) -> None:
    drawn, listed = st.tabs(["Map", "Find a row in the table"])
    with drawn:
        _map(now, answer)
    with listed:
        _table(now, answer.segments)


def _map(now: Project, answer: Answer) -> None:
    columns = mapping.drawable(answer.segments)
    if len(columns) > 1:
        _axes(now, columns)
    shown = mapping.answer_map(answer, now.choices.axes)

    def pick() -> None:
        picked = st.session_state["map"]["selection"].get(picture.PICK, [])
        if picked:
            now.ask(row=int(picked[0]["row"]))

    drawn = picture.segment_map(shown, ink=session.ink())
    st.altair_chart(drawn, key="map", on_select=pick, selection_mode=picture.PICK)
    st.html(blocks.paragraph(f"{shown.note} Click a point to ask about its row."))


def _axes(now: Project, columns: list[str]) -> None:
    """Let the visitor choose between the best view and two columns."""
    across, up = st.columns(2)
    best = "Best view"
    axes = now.choices.axes
    if axes is None or not set(axes) <= set(columns):
        axes = None
        now.change(axes=None)

    def first(name: str) -> None:
        other = next(c for c in columns if c != name)
        now.change(axes=None if name == best else (name, other))

    def second(name: str) -> None:
        if now.choices.axes is not None:
            now.change(axes=(now.choices.axes[0], name))

    across.selectbox(
        "Map across", [best, *columns], **session.tied("x", axes[0] if axes else best, first)
    )
    if axes is not None:
        options = [c for c in columns if c != axes[0]]
        chosen = axes[1] if axes[1] in options else options[0]
        now.change(axes=(axes[0], chosen))
        up.selectbox("Map up", options, **session.tied("y", chosen, second))


def _table(now: Project, found: Segments) -> None:
    text = st.text_input("Search", placeholder="A name, an id, a category, a row number")
    rows = finding.find_rows(found.prepared, text)
    if not len(rows):
        st.html(blocks.paragraph("No row holds that."))
        return
    key = f"pick {hash(tuple(rows.tolist()))}"

    def pick() -> None:
        chosen = st.session_state[key]["selection"]["rows"]
        if chosen:
            now.ask(row=int(rows[chosen[0]]))

    table = finding.shown_rows(found.prepared, found.labels, now.names, rows)
    st.dataframe(
        table,
        hide_index=True,
        height=min(38 + 35 * len(rows), 380),
        key=key,
        on_select=pick,
        selection_mode="single-row",
    )
    st.html(blocks.paragraph(f"{counted(len(rows), 'row')}. Tick one to ask about it."))


def _others(now: Project, answer: Answer) -> None:
    if not answer.possible or not answer.changes:
        return
    others = asking.alternatives(now, answer)
    if not others:
        return
    st.subheader("Other ways")
    for one in others:
        with st.expander(literal(difference(answer, one))):
            st.html(cards.change_card(one))


def _obstacle(now: Project, answer: Answer) -> None:
    with st.spinner("Finding out what stands in the way ..."):
        found = asking.obstacle(now, answer)
    st.html(cards.obstacle_text(found))
    if found.ways:
        st.html(blocks.paragraph("It becomes possible if you"))

    def take(way: Way) -> None:
        now.change(question=way.question, rules=way.question.allowed)

    with st.container(horizontal=True):
        for i, way in enumerate(found.ways):
            st.button(literal(way.text), key=f"way {i} {way.text}", on_click=partial(take, way))
