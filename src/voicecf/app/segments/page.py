"""Segments: how many, how they are found, what is typical of each, and what they are called."""

from __future__ import annotations

import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.data.preparing import Method
from voicecf.app.project import Project
from voicecf.app.segments import cards, pictures
from voicecf.app.segments.segments import (
    FEWEST,
    MOST,
    Segments,
    blocks_of,
    profile_table,
    usual_names,
)
from voicecf.app.words import percent

ABOUT = {
    Method.KMEANS: "k-means: all columns count the same",
    Method.SHARK: "SHARK: columns that hold segments together count for more",
}
ACROSS = 3


def show(now: Project) -> None:
    """Draw the page."""
    if st.button("Ask about a row", type="primary"):
        session.go("row")
    choices, help_ = st.columns([1, 1], gap="large")
    suggested = now.suggestion
    with choices:
        _choices(now, suggested.k)
    found = now.segments
    names = now.names
    with help_:
        st.html(blocks.paragraph(suggested.reason))
        if suggested.scores:
            st.altair_chart(pictures.scores(suggested.scores, found.k))
    for text in found.warnings:
        st.html(blocks.notice(text))
    st.subheader("What is typical")
    _cards(now, found, names)
    _details(found, names)


def _choices(now: Project, suggested: int) -> None:
    def count(k: int) -> None:
        now.change(k=int(k))

    def method(choice: Method) -> None:
        now.change(method=choice)

    most = min(MOST, max(FEWEST, len(now.prepared.frame)))
    st.slider(
        "Number of segments", FEWEST, max(most, FEWEST + 1),
        **session.tied("k", now.choices.k or suggested, count),
    )  # fmt: skip
    st.radio(
        "How they are found", list(Method), format_func=lambda choice: ABOUT[choice],
        **session.tied("method", now.choices.method, method),
    )  # fmt: skip


def _cards(now: Project, found: Segments, names: tuple[str, ...]) -> None:
    for first in range(0, found.k, ACROSS):
        for t, column in enumerate(st.columns(ACROSS), start=first):
            if t < found.k:
                with column, st.container(border=True):
                    _name(now, t, names)
                    st.html(cards.profile_card(found.profiles[t], t))


def _name(now: Project, t: int, names: tuple[str, ...]) -> None:
    st.text_input(
        f"Name of segment {t + 1}", max_chars=40, label_visibility="collapsed",
        placeholder=usual_names(len(names))[t],
        **session.tied(f"name {t}", names[t], lambda name: now.rename(t, name)),
    )  # fmt: skip


def _details(found: Segments, names: tuple[str, ...]) -> None:
    titles = ["All columns", "Rows"] + ["Weights"] * (found.method is Method.SHARK)
    tabs = st.tabs(titles)
    with tabs[0]:
        st.dataframe(profile_table(found, names))
    with tabs[1]:
        _rows(found, names)
    if found.method is Method.SHARK:
        with tabs[2]:
            weights = found.model[-1].feature_weights_
            items = [
                (name, float(weights[places].sum()), percent(float(weights[places].sum())))
                for name, places in blocks_of(found.prepared, found.model).items()
            ]
            st.html(blocks.bars(sorted(items, key=lambda item: -item[1])[:30]))


def _rows(found: Segments, names: tuple[str, ...]) -> None:
    strength: dict[str, float] = {}
    for profile in found.profiles:
        for trait in profile.traits:
            far = abs(trait.strength)
            strength[trait.column] = max(far, strength.get(trait.column, 0.0))
    numbers = sorted(found.prepared.numbers, key=lambda name: -strength.get(name, 0.0))
    if len(numbers) < 2:
        st.html(blocks.paragraph("A picture of the rows needs two columns of numbers."))
        return
    sides = st.columns(2)
    x = sides[0].selectbox("Across", numbers, index=0, key="scatter x")
    y = sides[1].selectbox("Up", numbers, index=1, key="scatter y")
    st.altair_chart(pictures.rows_by_segment(found.prepared.frame, found.labels, names, (x, y)))
