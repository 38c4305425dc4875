"""Compare: how often the pairwise answer (CFCLUST) misses its target on this table."""

from __future__ import annotations

import numpy as np
import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.data.preparing import Method
from voicecf.app.method.pairwise import MethodComparison, compare
from voicecf.app.project import Project
from voicecf.app.row import mapping
from voicecf.app.row import picture as pictures
from voicecf.app.words import percent
from voicecf.table.wording import counted

SHOWN = 50


def show(now: Project) -> None:
    """Draw the comparison."""
    st.html(
        blocks.paragraph(
            "CFCLUST moves a row across the border between its own segment and the target, and "
            "looks at no other. With three segments or more it may end in a third one. VoICE "
            "looks at all."
        )
    )
    names = now.names
    if now.choices.method is not Method.KMEANS:
        st.html(
            blocks.paragraph(
                "CFCLUST knows no weights, so that this compares plain k-means with as many "
                "segments; its segments are not those of SHARK."
            )
        )
        names = tuple(f"k-means segment {t + 1}" for t in range(len(names)))
    kmeans = now.segments_by(Method.KMEANS)
    found = now.once("comparison", f"{now.rows_key} {now.k}", lambda: compare(kmeans), most=2)
    _figures(found)
    if len(names) == 2:
        st.html(blocks.notice("With two segments there is no third to end in: both agree."))
        return
    table, picture = st.columns([2, 3], gap="large")
    with table:
        st.subheader("Where it misses")
        _by_pair(found, names)
    with picture:
        st.subheader("A miss on the map")
        _miss(found, names)


def _figures(found: MethodComparison) -> None:
    st.html(
        blocks.facts([
            (f"{len(found.missed):,}", f"answers compared, {counted(len(found.rows), 'row')}"),
            (percent(found.share), "pairwise answers miss their target"),
            (percent(found.exact_share), "VoICE answers are in it"),
            (percent(found.underestimation), "of the true cost left out by a miss, on average"),
        ])
    )  # fmt: skip


def _by_pair(found: MethodComparison, names: tuple[str, ...]) -> None:
    share, count = found.by_pair()
    texts = [
        [(percent(share[i, j]), f"of {count[i, j]:,}") if count[i, j] else ("", "")
         for j in range(len(share))]
        for i in range(len(share))
    ]  # fmt: skip
    st.html(blocks.matrix(names, np.nan_to_num(share), texts, corner="from, to", tint="#c2571a"))
    st.html(blocks.paragraph("Share of pairwise answers that end in a third segment."))


def _miss(found: MethodComparison, names: tuple[str, ...]) -> None:
    misses = found.clearest()[:SHOWN]
    if not len(misses):
        st.html(blocks.paragraph("None: on this table the pairwise answers all land."))
        return

    def told(i: int) -> str:
        pair = found.pairwise
        row = int(found.rows[pair.row[i]]) + 1
        source, target = names[pair.source[i]], names[pair.target[i]]
        return f"Row {row:,}: {source} to {target}, ends in {names[found.landed[i]]}"

    i = int(st.selectbox("Which", misses.tolist(), format_func=told))
    picture, pairwise = mapping.miss_map(found, i, names)
    drawn = pictures.segment_map(picture, [("pairwise", pairwise)], theme=session.theme())
    st.html(pictures.legend(picture))
    st.altair_chart(drawn)
    st.html(
        blocks.paragraph(
            "The plane holds the row, its exact answer and the pairwise one, so that what is seen "
            "is exact; the other rows may lie off it."
        )
    )
