"""Data: a table of one's own or an example, what its columns are, and missing values."""

from __future__ import annotations

from datetime import date
from typing import Any

import pandas as pd
import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.data import begin, understanding
from voicecf.app.data.columns import DURATIONS, Role, TableColumn
from voicecf.app.data.preparing import Missing, rows_with_gaps, usual_missing
from voicecf.app.project import Project
from voicecf.app.words import literal
from voicecf.errors import VoiceError
from voicecf.files import Reading
from voicecf.output import counted, shortened


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
    _sheet(now)
    _things(now)
    found = now.columns
    used = any(column.role is not Role.ASIDE for column in found)
    if go.button("Find segments", type="primary", width="stretch", disabled=not used):
        session.go("segments")
    _gaps(now, frame, found)
    _taken(now, found)
    columns, rows = st.tabs(["What was understood", "First rows"])
    with columns:
        understanding.show(now)
        st.html(
            blocks.paragraph(
                "What each column is read and used as was guessed; change it where the guess is "
                "wrong. Columns set aside do not decide on segments. Locked ones keep their value "
                "in answers."
            )
        )
    with rows:
        shown = _readable(frame.head(100))
        st.dataframe(shown, hide_index=True, height=420, column_config=_formats(shown))


def _things(now: Project) -> None:
    """Ask what rows are; pages and reports call them so."""

    def call(text: str) -> None:
        now.change(things=" ".join(text.split())[:30])

    st.text_input("Rows are called", width=320, **session.tied("things", now.things, call))


def _sheet(now: Project) -> None:
    """Let the visitor choose among the sheets of a workbook."""
    if len(now.table.sheets) < 2:
        return

    def choose(sheet: str | None) -> None:
        before = now.choices
        now.change(reading=Reading(sheet=sheet), roles={}, rules=None)
        try:
            now.columns  # noqa: B018  a sheet that cannot be read leaves everything as it was
        except VoiceError as error:
            now.choices = before
            st.session_state[begin.PROBLEM] = str(error)

    st.selectbox(
        "Sheet",
        now.table.sheets,
        placeholder="The one with the most cells",
        width=320,
        **session.tied("sheet", now.choices.reading.sheet, choose),
    )


def _taken(now: Project, found: tuple[TableColumn, ...]) -> None:
    """Ask up to which day years and days are counted, if any are."""
    if not any(column.role in DURATIONS for column in found):
        return

    def choose(day: date) -> None:
        now.change(taken=day)

    st.date_input(
        "Years and days since a date are counted up to",
        width=320,
        min_value=date(1900, 1, 1),
        max_value=date(2100, 12, 31),
        **session.tied("taken", now.choices.taken, choose),
    )


def _formats(frame: pd.DataFrame) -> dict[str, Any]:
    """Show whole numbers without commas, since they may be years, and days without a time."""
    made: dict[str, Any] = {}
    for name in frame:
        values = frame[name].dropna()
        dates = pd.api.types.is_datetime64_any_dtype(values.dtype)
        if pd.api.types.is_integer_dtype(values.dtype):
            made[str(name)] = st.column_config.NumberColumn(format="plain")
        elif dates and (values == values.dt.normalize()).all():
            made[str(name)] = st.column_config.DateColumn(format="YYYY-MM-DD")
    return made


def _gaps(now: Project, frame: pd.DataFrame, found: tuple[TableColumn, ...]) -> None:
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

    lacking = [f"{shortened(c.name, 30)} {c.missing:,}" for c in _lacking(found)]
    st.radio(
        f"Missing values: {gaps:,} of {counted(len(frame), 'row')} miss a value "
        f"({literal(', '.join(lacking))})",
        list(texts),
        format_func=lambda choice: texts[choice],
        **session.tied("missing", chosen, choose),
    )


def _lacking(found: tuple[TableColumn, ...]) -> list[TableColumn]:
    """Return the columns in use that miss most values."""
    some = [column for column in found if column.missing and column.role is not Role.ASIDE]
    return sorted(some, key=lambda column: -column.missing)[:5]


def _readable(frame: pd.DataFrame) -> pd.DataFrame:
    """Show what a browser cannot, such as lists, as text."""
    odd = {name: str for name in frame if frame[name].dtype == object}
    return frame.astype(odd)
