"""Method: how often the pairwise answer (CFCLUST) misses its target on this table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from voicecf import CFCLUST, Counterfactuals, Status, VoICE
from voicecf.app import blocks, session
from voicecf.app.data.preparing import Method
from voicecf.app.project import Project
from voicecf.app.segments.segments import Segments
from voicecf.app.words import percent
from voicecf.output import counted
from voicecf.plots import Transitions

# Rows that are compared, each with every other segment.
SAMPLE = 2_000
ABOUT = (
    "CFCLUST moves a row across the border between its own segment and the target, and looks at no "
    "other. With three segments or more it may end in a third one. VoICE looks at all. The paper, "
    "the proofs and the tables that are recomputed are in the documentation: docs/explanation, "
    "and `voicecf reproduce` recomputes the tables."
)


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """Pairwise answers beside exact ones, for the same rows and targets.

    Both in the coordinates that the model sees, free to go anywhere: so the only difference is
    whether third segments are looked at.

    Attributes
    ----------
    voice : VoICE
        Explains in the coordinates of the model.
    rows : array of int
        Which prepared rows were compared.
    pairwise, exact : Counterfactuals
        Answer by answer.
    """

    voice: VoICE = field(repr=False)
    rows: NDArray[np.int64] = field(repr=False)
    pairwise: Counterfactuals = field(repr=False)
    exact: Counterfactuals = field(repr=False)

    @classmethod
    def of(cls, segments: Segments, most: int = SAMPLE) -> MethodComparison:
        """Answer rows pairwise and exactly, towards every other segment of k-means."""
        model: Any = segments.model[-1]
        X = np.asarray(segments.model[:-1].transform(segments.prepared.frame), dtype=np.float64)
        rows = np.unique(np.linspace(0, len(X) - 1, min(most, len(X))).astype(np.int64))
        voice = VoICE(model, contraction=1.0, bounds=None).fit(X)
        pairwise = CFCLUST(model).fit(X).explain(X[rows], target="each")
        return cls(voice, rows, pairwise, voice.explain(X[rows], target="each"))

    @property
    def missed(self) -> NDArray[np.bool_]:
        """Whether each pairwise answer lies outside its target."""
        return np.asarray(self.pairwise.status == Status.MISSED)


def show(now: Project | None) -> None:
    """Draw the page."""
    st.html(blocks.paragraph(ABOUT))
    if now is None:
        st.html(blocks.notice(session.NO_TABLE))
        return
    names = now.names
    if now.choices.method is not Method.KMEANS:
        names = tuple(f"k-means segment {t + 1}" for t in range(len(names)))
        text = "CFCLUST knows no weights, so that this is about as many segments of plain k-means."
        st.html(blocks.paragraph(text))
    kmeans = now.segments_by(Method.KMEANS)
    key = f"{now.rows_key} {now.k}"
    found = now.once("comparison", key, lambda: MethodComparison.of(kmeans), most=2)
    missed = found.missed
    short = 1 - found.pairwise.cost[missed].sum() / (found.exact.cost[missed].sum() or 1.0)
    st.html(
        blocks.facts([
            (f"{len(missed):,}", f"answers compared, {counted(len(found.rows), 'row')}"),
            (percent(float(missed.mean())), "pairwise answers miss their target"),
            (percent(float(found.exact.feasible.mean())), "VoICE answers are in it"),
            (percent(short), "of the true cost of these left out"),
        ])
    )  # fmt: skip
    if not missed.any():
        st.html(blocks.paragraph("None misses: on this table the pairwise answers all land."))
        return
    by = Transitions.from_counterfactuals(found.pairwise)
    st.header("Where it misses")
    st.dataframe(
        pd.DataFrame(1.0 - by.feasible, index=list(names), columns=list(names)),
        column_config=dict.fromkeys(names, st.column_config.NumberColumn(format="percent")),
    )
    st.html(blocks.paragraph("Share of pairwise answers, from line to column, that miss."))
