"""Data: a table of one's own or an example, what its columns are, and missing values."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.data import begin
from voicecf.app.data.columns import Column, Role, RoleError
from voicecf.app.data.preparing import Missing, rows_with_gaps, usual_missing
from voicecf.app.project import Project
from voicecf.output.wording import counted


def show(now: Project | None) -> None:
    """Draw the page."""
    begin.problem()
    if now is None:
        st.html(
            blocks.paragraph(
                "Give a table, let it be divided into segments, and ask of any row what would put "
                "it into another one. Everything stays on this computer."
            )
        )
        begin.choose_table(now)
        return
    with st.expander("Another table"):
        begin.choose_table(now)
    _table(now)


def _table(now: Project) -> None:
    frame = now.table.frame
    size = f"{counted(len(frame), 'row')}, {counted(frame.shape[1], 'column')}."
    name, go = st.columns([4, 1], vertical_alignment="bottom")
    name.html(blocks.heading(now.choices.table, " ".join([size, *now.table.notes])))
    found = now.columns
    if go.button("Find segments", type="primary", width="stretch"):
        session.go("segments")
    _gaps(now, frame, found)
    columns, rows = st.tabs(["Columns", "First rows"])
    with columns:
        st.html(
            blocks.paragraph(
                "What each column is used as was guessed; change it where the guess is wrong. "
                "Columns set aside do not decide on segments."
            )
        )
        _roles(now, found)
    with rows:
        st.dataframe(_readable(frame.head(100)), hide_index=True, height=420)


def _roles(now: Project, found: tuple[Column, ...]) -> None:
    table = pd.DataFrame({
        "Column": [c.name for c in found],
        "Use as": [str(c.role) for c in found],
        "Why": [c.reason for c in found],
        "Missing": [c.missing for c in found],
        "Values": [c.examples for c in found],
    })  # fmt: skip
    edits = st.session_state.setdefault("edits", 0)
    key = f"roles {now.id} {edits}"

    def changed() -> None:
        edits = st.session_state[key]["edited_rows"].items()
        chosen = {found[int(at)].name: Role(e["Use as"]) for at, e in edits if e.get("Use as")}
        st.session_state["edits"] = edits + 1
        try:
            now.choose_roles(chosen)
        except RoleError as error:
            st.session_state[begin.PROBLEM] = str(error)

    st.data_editor(
        table,
        key=key,
        on_change=changed,
        hide_index=True,
        disabled=["Column", "Why", "Missing", "Values"],
        height=min(38 + 35 * len(found), 560),
        column_config={
            "Use as": st.column_config.SelectboxColumn(
                options=[str(role) for role in Role], required=True, width="small"
            ),
            "Missing": st.column_config.NumberColumn(width="small", format="localized"),
        },
    )


def _gaps(now: Project, frame: pd.DataFrame, found: tuple[Column, ...]) -> None:
    gaps = rows_with_gaps(frame, found)
    if not gaps:
        return
    texts = {
        Missing.LEAVE_OUT: f"Leave out the {counted(gaps, 'row')} that miss a value",
        Missing.FILL_IN: "Fill in the median of numbers, the most frequent of categories",
    }
    chosen = now.choices.missing or usual_missing(frame, found)

    def choose(choice: Missing) -> None:
        now.change(missing=choice)

    st.radio(
        f"Missing values: {gaps:,} of {counted(len(frame), 'row')} miss a value",
        list(texts),
        format_func=lambda choice: texts[choice],
        **session.tied("missing", chosen, choose),
    )


def _readable(frame: pd.DataFrame) -> pd.DataFrame:
    """Show what a browser cannot, such as lists, as text."""
    odd = {name: str for name in frame if frame[name].dtype == object}
    return frame.astype(odd)
