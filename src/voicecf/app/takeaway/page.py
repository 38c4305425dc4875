"""Take away: the answer, the segments and the whole session as files, and as Python."""

from __future__ import annotations

import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.data.begin import SESSION, confirm_deletion
from voicecf.app.project import Project
from voicecf.app.row import answers
from voicecf.app.row.page import answer_card
from voicecf.app.segments.page import offer_assigned
from voicecf.app.takeaway.code import archive, saved, script
from voicecf.app.takeaway.report import html_report

PREVIEW = 640


def show(now: Project) -> None:
    """Draw the page."""
    _answer(now)
    left, middle, right = st.columns(3, gap="large")
    with left:
        offer_assigned(now)
        st.html(blocks.paragraph("Answers for every row are on the page “Campaign”."))
    with middle:
        _model(now)
    with right:
        _session(now)


def _stem(now: Project) -> str:
    return now.choices.table.rsplit(".", 1)[0]


def _answer(now: Project) -> None:
    """Offer the answer about the row that was asked about last."""
    st.header("The answer about one row")
    answer = answers.of_project(now)
    st.html(answer_card(answer))
    row = int(answer.segments.prepared.rows[answer.question.row]) + 1
    with st.container(horizontal=True):
        st.download_button(
            "Download report", lambda: _report(now), f"{_stem(now)} row {row}.html", "text/html",
            type="primary", on_click="ignore",
        )  # fmt: skip
        st.download_button(
            "Download script", lambda: _archive(now), f"{_stem(now)} script.zip",
            "application/zip", on_click="ignore",
        )  # fmt: skip
    st.html(
        blocks.paragraph(
            "The report is one file with the answer, the map and the segments, to print or to "
            "send. The script is the Python that gives the same answer, with model and rows."
        )
    )
    shown = st.segmented_control(
        "Look at", ["Report", "Script"], key="preview", label_visibility="collapsed"
    )
    if shown == "Report":
        st.iframe(_report(now), height=PREVIEW)
    elif shown == "Script":
        st.code(_code(now), language="python", wrap_lines=True, height=PREVIEW)


def _code(now: Project) -> str:
    given = answers.of_project(now)
    return script(given.segments, given.question)


def _archive(now: Project) -> bytes:
    return archive(_code(now), now.named_explainer(), now.prepared.frame)


def _report(now: Project) -> str:
    given = answers.of_project(now)
    return html_report(
        now.table, given, _code(now), axes=now.choices.axes, others=answers.others_of(now),
        reason=None if given.possible else answers.reason_of(now),
    )  # fmt: skip


def _model(now: Project) -> None:
    st.header("The segments as a model")
    st.html(
        blocks.paragraph(
            "For Python (voicecf.load) and for the command (voicecf explain --model): it assigns "
            "and answers for tables of any size, as these pages do."
        )
    )
    st.download_button(
        "Download model",
        lambda: saved(now.named_explainer()),
        f"{_stem(now)}.voicecf",
        on_click="ignore",
    )  # fmt: skip


def _session(now: Project) -> None:
    st.header("This session")
    st.html(
        blocks.paragraph(
            "The table and everything that was chosen, in one file: open it on another computer, "
            "on the page “Data”. Here it is kept until you delete it."
        )
    )
    with st.container(horizontal=True):
        st.download_button(
            "Save session file", lambda: session.store().export(now),
            f"{_stem(now)} session.{SESSION}", "application/zip", on_click="ignore",
        )  # fmt: skip
        if st.button("Delete from this computer"):
            confirm_deletion(now.id, now.choices.table)
