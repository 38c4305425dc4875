"""Take away: the current answer as a file, and as the Python that gives it again."""

from __future__ import annotations

import streamlit as st

from voicecf.app import blocks, mapping, session
from voicecf.app.code import script
from voicecf.app.report import html_report
from voicecf.app.session import Work


def show(now: Work) -> None:
    """Draw the page."""
    assert now.table is not None
    st.title("Take away")
    answer = session.answer(now)
    st.html(blocks.answer_card(answer))
    code = script(now.table, answer.segments, answer.question, answer.names)
    stem = now.table.name.rsplit(".", 1)[0]
    report, program = st.columns(2, gap="large")
    with report:
        st.subheader("Report")
        st.html(blocks.paragraph("One file with the answer, the map, the segments and the code."))
        made = html_report(
            now.table,
            answer,
            mapping.answer_map(answer, now.axes),
            code,
            others=session.alternatives(now, answer),
            obstacle=None if answer.possible else session.obstacle(now, answer),
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
