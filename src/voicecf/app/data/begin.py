"""Begin with a table: a file, the clipboard, an example, or earlier work."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.uploaded_file_manager import UploadedFile

from voicecf.app import blocks, session
from voicecf.app.data.examples import EXAMPLES, Example
from voicecf.app.data.reading import LARGEST_MB, PASTED
from voicecf.app.project import Project
from voicecf.app.words import literal
from voicecf.errors import VoiceError

TYPES = ["csv", "tsv", "txt", "parquet", "xlsx", "xls", "ods"]
# What a session file ends in: it is an archive.
SESSION = "zip"
# Earlier work that is listed.
LISTED = 8
PROBLEM = "what is wrong with the table"


def choose_table(now: Project | None) -> None:
    """Draw the ways to begin; what cannot be read is said, and leaves everything as it was."""
    own, others = st.columns(2, gap="large")
    with own:
        _upload()
        _paste()
    with others:
        _examples()
        _earlier(now)


def problem() -> None:
    """Say what was wrong with the last table that was given, if anything was."""
    text = st.session_state.pop(PROBLEM, "")
    if text:
        st.html(blocks.notice(text))


def _take(make: Callable[[], Project]) -> None:
    """Begin with another table, or say why not."""
    try:
        with st.spinner("Reading ..."):
            project = make()
    except VoiceError as error:
        st.session_state[PROBLEM] = str(error)
        st.rerun()
    session.go("data", project.id)


def _upload() -> None:
    # A widget of its own for each file: the last one, with the bytes that it holds, goes.
    count = st.session_state.setdefault("uploads", 0)
    given = st.file_uploader(
        f"Your table: CSV, text, Excel or Parquet, up to {LARGEST_MB} MB; or a session file",
        type=[*TYPES, SESSION],
        max_upload_size=LARGEST_MB,
        key=f"upload {count}",
    )
    if given is None:
        return
    st.session_state["uploads"] = count + 1
    content, name = given.getvalue(), given.name
    _forget(given)
    if name.endswith(f".{SESSION}"):
        _take(lambda: session.store().take(content))
    else:
        _take(lambda: session.store().create(name, content))


def _forget(given: UploadedFile) -> None:
    """Let go of a file's bytes, which Streamlit would keep until the visitor leaves."""
    running = get_script_run_ctx()
    if running is not None:
        manager: Any = running.uploaded_file_mgr
        manager.remove_file(running.session_id, given.file_id)
    given.truncate(0)


def _paste() -> None:
    with st.expander("Or paste cells from a spreadsheet"):
        text = st.text_area(
            "Cells", height=140, placeholder="Copy cells, with their headings, and paste them here",
            label_visibility="collapsed", key="pasted",
        )  # fmt: skip
        if st.button("Use these cells", disabled=not text.strip()):
            _take(lambda: session.store().create(PASTED, text.encode()))


def _examples() -> None:
    st.html('<label style="font-size:.875rem">Or an example</label>')
    for example, place in zip(EXAMPLES, st.columns(len(EXAMPLES)), strict=True):
        with place, st.container(border=True, height=158):
            st.html(blocks.paragraph(example.about))
            if st.button(f"Use {example.name.lower()}", key=f"example {example.name}"):
                _take(partial(_example, example))


def _example(example: Example) -> Project:
    return session.store().create(example.make().name, example=example.name)


def _earlier(now: Project | None) -> None:
    kept = [one for one in session.store().projects() if now is None or one.id != now.id]
    if not kept:
        return
    with st.expander(f"Earlier work, kept on this computer ({len(kept):,})"):
        for one in kept[:LISTED]:
            name, opening, deleting = st.columns([5, 1.4, 1.5], vertical_alignment="center")
            name.markdown(f"{literal(one.table)}  \n{one.changed:%d %B %Y, %H:%M}")
            if opening.button("Open", key=f"open {one.id}"):
                session.go("data", one.id)
            if deleting.button("Delete", key=f"delete {one.id}"):
                confirm_deletion(one.id, one.table)
        if len(kept) > LISTED:
            st.html(blocks.paragraph(f"The last {LISTED} of {len(kept):,}."))


@st.dialog("Delete this session?")
def confirm_deletion(id: str, table: str) -> None:
    """Ask before a project is deleted."""
    st.html(
        blocks.paragraph(
            f"{table}, its segments, names, rules and runs are deleted from this computer. Your "
            "own file is not touched."
        )
    )
    if st.button("Yes, delete it", type="primary"):
        session.store().delete(id)
        if session.address().get(session.PARAMETER) == id:
            st.switch_page(st.session_state["pages"]["data"])
        st.rerun()
