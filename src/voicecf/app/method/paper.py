"""Paper: its tables recomputed here and now, beside what was printed."""

from __future__ import annotations

from io import StringIO
from typing import Any

import streamlit as st
from tqdm import tqdm

from voicecf.app import blocks
from voicecf.datasets.sources import CATALOGUE
from voicecf.paper.published import TABLES
from voicecf.paper.report import DIFFERENT, Grid, grids, summary
from voicecf.paper.reproduction import Reproduction, StudyRequest, reproduce


class Bar(tqdm):  # type: ignore[misc]
    """Shows on the page how far a reproduction is."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar
        super().__init__(total=1, file=StringIO(), leave=False)

    def display(self, *_: Any, **__: Any) -> None:
        """Draw the bar over the last one."""
        self.bar.progress(min(self.n / (self.total or 1), 1.0), text=self.desc)


def show() -> None:
    """Draw the tables."""
    st.html(
        blocks.paragraph(
            "“Counterfactuals for Feature-Weighted Clustering” (VoICE), recomputed on this "
            "machine: in each cell ours, then what was printed; = where they are the same, ≠ where "
            "not, ~ where nothing is compared."
        )
    )
    names, tables = _choices()
    asked = st.button("Recompute", type="primary", disabled=not names)
    if asked or "reproduction" not in st.session_state:
        bar = st.progress(0.0)
        found = reproduce(StudyRequest(tables=tables or TABLES, datasets=names), Bar(bar))
        bar.empty()
        st.session_state["reproduction"] = found
    _result(st.session_state["reproduction"])


def _choices() -> tuple[list[str], list[str]]:
    left, right = st.columns(2, gap="large")
    names = left.multiselect(
        "Datasets", list(CATALOGUE), default=["iris"], key="paper datasets",
        format_func=lambda name: CATALOGUE[name].title,
    )  # fmt: skip
    tables = right.multiselect(
        "Tables", list(TABLES), placeholder="All of them", key="paper tables",
        format_func=lambda name: name.replace("_", " "),
    )  # fmt: skip
    return names, tables


def _result(result: Reproduction) -> None:
    same = sum(entry.agrees for entry in result.compared)
    st.html(
        blocks.facts([
            (f"{same:,} of {len(result.compared):,}", "compared cells are the same"),
            (f"{len(result.differing):,}", "differ"),
            (f"{result.seconds:.0f} s", "taken"),
        ])
    )  # fmt: skip
    for grid in grids(result):
        _grid(grid)
    with st.expander("Summary"):
        for line in summary(result):
            st.html(blocks.paragraph(line))


def _grid(grid: Grid) -> None:
    st.subheader(grid.title)
    header = [text.replace("_", " ") for text in grid.header]
    notes = "".join(blocks.paragraph(note) for note in grid.notes)
    st.html(blocks.table(header, grid.rows, differs=DIFFERENT) + notes)
