"""Segments: how many, how they are found, what is typical of each, and what they are called."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.data.preparing import Method
from voicecf.app.project import Project
from voicecf.app.segments import cards, pictures
from voicecf.app.segments.aside import AVERAGE, crossable, crossed
from voicecf.app.segments.assigned import assigned
from voicecf.app.segments.naming import LONGEST, NamingError
from voicecf.app.segments.profiles import profile_table
from voicecf.app.segments.segments import Segments
from voicecf.app.segments.suggesting import FEWEST, MOST, Suggestion
from voicecf.app.takeaway.tables import LONGEST as LONGEST_SHEET
from voicecf.app.takeaway.tables import XLSX, as_csv, as_xlsx
from voicecf.app.words import percent
from voicecf.plots import Weights

ABOUT = {
    Method.KMEANS: "k-means: all columns count the same",
    Method.SHARK: "SHARK: columns that hold segments together count for more",
}
SCORE = {
    Method.KMEANS: "How far apart segments are, by their number: 0 is overlapping, 1 is clear of "
    "each other. Click a number to choose it.",
    Method.SHARK: "How far apart SHARK's segments are in the columns that it goes by, by their "
    "number: 0 is overlapping, 1 is clear of each other. Click a number to choose it.",
}
# Rows that a picture of two columns shows.
ROWS = 1_500
# Where it is kept that a name was refused: which segment, and why.
REFUSED = "refused name"


def show(now: Project) -> None:
    """Draw the page."""
    with st.spinner("Looking for segments ..."):
        suggested, found, names = now.suggestion, now.segments, now.names
    st.html(blocks.lead(in_short(found, names, now.things)))
    if st.button("Ask about a row", type="primary"):
        session.go("row")
    choices, help_ = st.columns([1, 1], gap="large")
    with choices:
        _choices(now, suggested)
    with help_:
        _scores(now, suggested)
    for text in found.warnings:
        st.html(blocks.notice(text))
    st.header("What sets each segment apart")
    _cards(now, found, names)
    st.header("All segments at a glance")
    st.dataframe(profile_table(found.contrast, names, found.written))
    st.html(blocks.paragraph("Averages; of categories, the most frequent level."))
    _details(now, found, names)
    offer_assigned(now)


def in_short(found: Segments, names: tuple[str, ...], rows: str) -> str:
    """Say in a sentence what there is: rows, segments, the largest and the smallest."""
    shares = found.contrast.shares
    most, least = int(shares.argmax()), int(shares.argmin())
    left = found.prepared.left_out
    sizes = (
        f"the largest, “{names[most]}”, has {percent(shares[most])} of them, the smallest, "
        f"“{names[least]}”, {percent(shares[least])}."
    )
    if most == least:
        sizes = "all are of the same size."
    missed = "1 misses a value and is" if left == 1 else f"{left:,} miss a value and are"
    return (
        f"{len(found.labels):,} {rows} in {found.k} segments; {sizes}"
        f"{f' {missed} left out.' if left else ''}"
    )


def _choices(now: Project, suggested: Suggestion) -> None:
    def count(k: int) -> None:
        now.change(k=int(k))

    def method(choice: Method) -> None:
        now.change(method=choice)

    most = min(MOST, max(FEWEST, len(now.prepared.frame)))
    st.slider(
        "Number of segments", FEWEST, max(most, FEWEST + 1), **session.tied("k", now.k, count)
    )
    st.html(blocks.paragraph(suggested.reason))
    st.radio(
        "How they are found", list(Method), format_func=lambda choice: ABOUT[choice],
        **session.tied("method", now.choices.method, method),
    )  # fmt: skip


def _scores(now: Project, suggested: Suggestion) -> None:
    if not suggested.scores:
        return
    method = now.choices.method
    # A chart for each number: a click on the same bar counts again.
    key = f"scores {method} {now.k}"

    def choose() -> None:
        if picked := st.session_state[key].selection.get(pictures.CHOOSE):
            now.change(k=int(picked[0]["k"]))

    drawn = pictures.scores(suggested.scores, now.k)
    st.altair_chart(drawn, key=key, on_select=choose, selection_mode=pictures.CHOOSE)
    st.html(blocks.paragraph(SCORE[method]))


def _cards(now: Project, found: Segments, names: tuple[str, ...]) -> None:
    full = cards.fullest(found.profiles)
    st.html(cards.edges(found.k))
    across = found.k if found.k <= 4 else 3 if found.k in (5, 6, 9) else 4
    for first in range(0, found.k, across):
        for t, column in enumerate(st.columns(across), start=first):
            if t < found.k:
                with column, st.container(border=True, key=f"segment-{t}"):
                    _name(now, t, names)
                    st.html(cards.profile_card(found.profiles[t], t, full, now.things))
    st.html(
        blocks.paragraph(
            "Bars show how far a segment's average is above (right) or below (left) that of all "
            f"rows; half the width is {full:.1f} spreads. A spread is how far rows usually are "
            "from the average (the standard deviation)."
        )
    )


def _name(now: Project, t: int, names: tuple[str, ...]) -> None:
    def rename(name: str) -> None:
        try:
            now.rename(t, name)
        except NamingError as error:
            st.session_state[REFUSED] = t, str(error)

    st.text_input(
        f"Name of segment {t + 1}", max_chars=LONGEST, label_visibility="collapsed",
        placeholder=now.segments.suggested_names[t],
        **session.tied(f"name {t}", names[t], rename),
    )  # fmt: skip
    refused, why = st.session_state.get(REFUSED, (None, ""))
    if refused == t:
        del st.session_state[REFUSED]
        st.html(blocks.notice(why))


def _details(now: Project, found: Segments, names: tuple[str, ...]) -> None:
    labels = now.once("crossable", now.rows_key, lambda: crossable(now.prepared, now.columns), 1)
    shark = found.method is Method.SHARK
    titles = ["Rows by two columns"]
    titles += ["What the columns set aside say"] * bool(labels) + ["Weights"] * shark
    tabs = dict(zip(titles, st.tabs(titles), strict=True))
    with tabs["Rows by two columns"]:
        _rows(found, names)
    if labels:
        with tabs["What the columns set aside say"]:
            _aside(found, names, labels)
    if shark:
        with tabs["Weights"]:
            _weights(found)


def _aside(found: Segments, names: tuple[str, ...], labels: list[str]) -> None:
    name = labels[0]
    if len(labels) > 1:
        name = st.selectbox("Column", labels, key="column set aside")
    shown = crossed(found, name, names)
    bar = st.column_config.ProgressColumn(format="percent")
    st.dataframe(shown, column_config={} if AVERAGE in shown else dict.fromkeys(shown, bar))
    st.html(blocks.paragraph("This column had no part in finding the segments."))


def _weights(found: Segments) -> None:
    weights = Weights.from_voice(found.voice)
    items = zip(weights.columns, weights.weights.tolist(), strict=True)
    st.html(blocks.bars([(name, share, percent(share)) for name, share in items][:30]))


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
    st.html(blocks.legend(names))
    some = np.unique(np.linspace(0, len(found.labels) - 1, ROWS).astype(int))
    shown = found.prepared.frame[[x, y]].iloc[some]
    st.altair_chart(pictures.rows_by_segment(shown, found.labels[some], names))


def offer_assigned(now: Project) -> None:
    """Offer every row with its segment as a file, which is made when it is asked for."""
    st.header("Every row with its segment")
    st.html(blocks.paragraph("The table as it is, with a column more: the name of the segment."))
    stem = f"{Path(now.choices.table).stem} segments"
    rows = len(now.table.frame)
    with st.container(horizontal=True):
        st.download_button(
            "Download CSV", lambda: as_csv(assigned(now)), f"{stem}.csv", "text/csv",
            on_click="ignore",
        )  # fmt: skip
        st.download_button(
            "Download Excel", lambda: as_xlsx(assigned(now)), f"{stem}.xlsx", XLSX,
            on_click="ignore", disabled=rows > LONGEST_SHEET,
        )  # fmt: skip
