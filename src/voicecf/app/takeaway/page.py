"""Take away: the current answer as a file, and as the Python that gives it again."""

from __future__ import annotations

import streamlit as st

from voicecf.app import blocks
from voicecf.app.project import Project
from voicecf.app.row import asking, cards, mapping
from voicecf.app.takeaway.code import script
from voicecf.app.takeaway.report import html_report


def show(now: Project) -> None:
    """Draw the page."""
    answer = asking.answer(now)
    st.html(cards.answer_card(answer))
    code = script(now.table, answer.segments, answer.question, answer.names)
    stem = now.choices.table.rsplit(".", 1)[0]
    report, program = st.columns(2, gap="large")
    with report:
        st.subheader("Report")
        st.html(blocks.paragraph("One file with the answer, the map, the segments and the code."))
        made = html_report(
            now.table,
            answer,
            mapping.answer_map(answer, now.choices.axes),
            code,
            others=asking.alternatives(now, answer),
            obstacle=None if answer.possible else asking.obstacle(now, answer),
        )
        row = int(answer.segments.prepared.rows[answer.question.row]) + 1
        st.download_button(
            "Download report", made, f"{stem} row {row}.html", "text/html",
            type="primary", on_click="ignore",
        )  # fmt: skip
        st.iframe(made, height=640)
    with program:
        st.subheader("Python")
        st.html(blocks.paragraph("A script that gives the same answer, to run and to change."))
        st.download_button(
            "Download script", code, f"{stem}.py", "text/x-python", on_click="ignore"
        )
        st.code(code, language="python", wrap_lines=True, height=640)
