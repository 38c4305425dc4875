"""Method: what pairwise answers miss on this table, and the paper's tables recomputed."""

from __future__ import annotations

import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.method import compare, paper
from voicecf.app.project import Project


def show(now: Project | None) -> None:
    """Draw the page."""
    what = st.segmented_control(
        "What to show", ["Pairwise answers", "The paper's tables"], default="Pairwise answers",
        label_visibility="collapsed", required=True, key="method",
    )  # fmt: skip
    if what != "Pairwise answers":
        paper.show()
    elif now is None:
        st.html(blocks.notice(session.NO_TABLE))
    else:
        compare.show(now)
