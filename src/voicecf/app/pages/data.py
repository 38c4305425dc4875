"""Data: a table of one's own or an example, what its columns are, and missing values."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.columns import Column, Role
from voicecf.app.examples import EXAMPLES
from voicecf.app.preparing import Missing, rows_with_gaps, usual_missing
from voicecf.app.reading import LARGEST_MB, ReadingError, read_table
from voicecf.app.session import Work
from voicecf.output.wording import counted


def show(now: Work) -> None:
    """Draw the page."""
    st.title("What would have to change?")
    st.html(
        blocks.paragraph(
            "Give a table, let it be divided into segments, and ask of any row what would put it "
            "into another one. Everything stays on this computer."
        )
    )
    own, example = st.columns(2, gap="large")
    with own:
        _upload(now)
    with example:
        st.html('<label style="font-size:.875rem">Or an example</label>')
        _examples(now)
    if now.problem:
        st.html(blocks.notice(now.problem))
    elif now.table is not None:
        _table(now)


def _upload(now: Work) -> None:
    given = st.file_uploader(
        f"Your table: CSV or Parquet, up to {LARGEST_MB} MB",
        type=["csv", "tsv", "txt", "parquet"],
        max_upload_size=LARGEST_MB,
    )
    if given is None or given.file_id == now.upload:
        return
    now.upload = given.file_id
    try:
        with st.spinner("Reading ..."):
            now.take(read_table(given.getvalue(), given.name))
    except ReadingError as error:
        now.table, now.problem = None, str(error)


def _examples(now: Work) -> None:
    for example, place in zip(EXAMPLES, st.columns(len(EXAMPLES)), strict=True):
        chosen = now.table is not None and now.table.digest == f"example:{example.name.lower()}"
        with place, st.container(border=True, height=158):
            st.html(blocks.paragraph(example.about))
            st.button(
                "In use" if chosen else f"Use {example.name.lower()}",
                key=f"example {example.name}",
                disabled=chosen,
                on_click=lambda make=example.make: now.take(make()),
            )


def _table(now: Work) -> None:
    assert now.table is not None
    frame = now.table.frame
    size = f"{counted(len(frame), 'row')}, {counted(frame.shape[1], 'column')}."
    name, go = st.columns([4, 1], vertical_alignment="bottom")
    name.html(blocks.heading(now.table.name, " ".join([size, *now.table.notes])))
    found = session.columns(now)
    if go.button("Find segments", type="primary", width="stretch"):
        st.switch_page(st.session_state["pages"]["segments"])
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


def _roles(now: Work, found: tuple[Column, ...]) -> None:
    assert now.table is not None
    table = pd.DataFrame({
        "Column": [c.name for c in found],
        "Use as": [str(c.role) for c in found],
        "Why": [c.reason for c in found],
        "Missing": [c.missing for c in found],
        "Values": [c.examples for c in found],
    })  # fmt: skip
    key = f"roles {now.table.digest} {now.edits}"

    def changed() -> None:
        edits = st.session_state[key]["edited_rows"].items()
        chosen = {found[int(at)].name: Role(e["Use as"]) for at, e in edits if e.get("Use as")}
        session.choose_roles(now, chosen)

    if now.refused:
        st.html(blocks.notice(now.refused))
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


def _gaps(now: Work, frame: pd.DataFrame, found: tuple[Column, ...]) -> None:
    gaps = rows_with_gaps(frame, found)
    if not gaps:
        return
    texts = {
        Missing.LEAVE_OUT: f"Leave out the {counted(gaps, 'row')} that miss a value",
        Missing.FILL_IN: "Fill in the median of numbers, the most frequent of categories",
    }
    chosen = now.missing or usual_missing(frame, found)

    def choose(choice: Missing) -> None:
        now.missing = choice

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
