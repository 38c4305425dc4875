"""What was understood of a table, for the visitor to look at and to set right."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
import streamlit as st

from voicecf.app import blocks
from voicecf.app.data import begin
from voicecf.app.data.columns import Role, RoleError, TableColumn
from voicecf.app.data.preparing import PreparingError
from voicecf.app.project import Project
from voicecf.app.words import literal
from voicecf.files import Understood
from voicecf.output import counted, joined, shortened

IN_FILE, BECAME, KIND, USE, LOCKED = "In the file", "Became", "Understood as", "Use as", "Locked"
# Questions about columns that are asked at once.
ASKED = 8
BETWEEN = "  ·  "


def show(now: Project) -> None:
    """Draw what was understood, column by column, and ask where it could be otherwise."""
    _ask(list(_doubts(now)))
    found = now.columns
    understood = _understood(now)
    locked = locked_columns(now)
    table = pd.DataFrame({
        "Column": [c.name for c in found],
        IN_FILE: [BETWEEN.join(understood[c.name].texts) or c.examples for c in found],
        KIND: [understood[c.name].kind for c in found],
        BECAME: [_became(understood[c.name]) for c in found],
        USE: [str(c.role) for c in found],
        LOCKED: [c.label in locked for c in found],
        "Missing": [c.missing for c in found],
        "Why": [_why(c, c.label in locked) for c in found],
    })  # fmt: skip
    kinds = sorted({kind for one in understood.values() for kind in (one.kind, *one.others)})
    turn = st.session_state.setdefault("edits", 0)
    key = f"understood {now.id} {turn}"

    def changed() -> None:
        st.session_state["edits"] = turn + 1
        try:
            for at, edit in st.session_state[key]["edited_rows"].items():
                _change(now, found[int(at)], edit)
        except RoleError as error:
            st.session_state[begin.PROBLEM] = str(error)

    st.data_editor(
        table,
        key=key,
        on_change=changed,
        hide_index=True,
        disabled=["Column", IN_FILE, BECAME, "Missing", "Why"],
        height=min(38 + 35 * len(found), 560),
        column_config={
            "Column": st.column_config.TextColumn(pinned=True),
            KIND: st.column_config.SelectboxColumn(options=kinds, required=True),
            USE: st.column_config.SelectboxColumn(
                options=[str(role) for role in Role], required=True
            ),
            LOCKED: st.column_config.CheckboxColumn(
                help="Locked columns keep their value in answers.", width="small"
            ),
            "Missing": st.column_config.NumberColumn(width="small", format="localized"),
        },
    )


def _became(one: Understood) -> str:
    return BETWEEN.join(one.values) if one.values != one.texts else ""


def _why(column: TableColumn, locked: bool) -> str:
    fixed = column.role is not Role.ASIDE and column.fixed and locked
    return f"{column.reason}; locked: {column.why_fixed}" if fixed else column.reason


def _understood(now: Project) -> dict[str, Understood]:
    """Return what each column was read as; of tables that are no files, what it is."""
    known = {one.name: one for one in now.table.understood}
    frame = now.table.frame
    return {
        name: known.get(name) or Understood(name, "number" if _is_number(frame[name]) else "text")
        for name in frame
    }


def _is_number(values: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(values.dtype))


def locked_columns(now: Project) -> tuple[str, ...]:
    """Return the columns that keep their value, as they are called where they are used."""
    if now.choices.rules is not None:
        return tuple(now.choices.rules.get("immutable", ()))
    return tuple(c.label for c in now.columns if c.fixed and c.role is not Role.ASIDE)


def _change(now: Project, column: TableColumn, edit: Mapping[str, Any]) -> None:
    """Do what the visitor did in the line of a column."""
    if edit.get(KIND):
        _check_kind(now, column, edit[KIND])
        read_as(now, column.name, edit[KIND])
    if edit.get(USE):
        now.choose_roles({column.name: Role(edit[USE])})
    if LOCKED in edit and column.role is not Role.ASIDE:
        locked = [name for name in locked_columns(now) if name != column.label]
        locked += [column.label] * bool(edit[LOCKED])
        now.change(rules={**(now.choices.rules or {}), "immutable": locked})


def _check_kind(now: Project, column: TableColumn, kind: str) -> None:
    known = _understood(now)[column.name]
    if kind not in (known.kind, *known.others):
        raise RoleError(
            f"Column “{shortened(column.name, 40)}” cannot be read as {kind}: its values, such as "
            f"{column.examples}, are not written like that."
        )


def read_as(now: Project, name: str, kind: str) -> None:
    """Read a column as something else; what it is used as is guessed anew."""
    reading = now.choices.reading
    roles = {column: role for column, role in now.choices.roles.items() if column != name}
    now.change(reading=replace(reading, kinds={**reading.kinds, name: kind}), roles=roles)


def set_gap(now: Project, name: str, text: str, gap: bool) -> None:
    """Take a text of a column for no value, or for a value again."""
    reading = now.choices.reading
    marks = [mark for mark in reading.gaps.get(name, []) if mark != text] + [text] * gap
    gaps = {column: texts for column, texts in reading.gaps.items() if column != name}
    roles = {column: role for column, role in now.choices.roles.items() if column != name}
    now.change(reading=replace(reading, gaps=gaps | ({name: marks} if marks else {})), roles=roles)


@dataclass(frozen=True)
class Doubt:
    """Something that could be understood otherwise: what it is, and a button that changes it."""

    text: str
    button: str
    change: Callable[[], None]


def _doubts(now: Project) -> Iterator[Doubt]:
    for one in now.table.understood:
        yield from _doubts_about(now, one)
    if now.choices.keep_spellings:
        yield Doubt(
            "Levels that differ in case or blanks alone are kept apart.", "Read them as one",
            lambda: now.change(keep_spellings=False),
        )  # fmt: skip
    with suppress(PreparingError):
        for name, read in now.prepared.spellings.items():
            some = sorted({*read.values()})
            shown = joined([f"{literal(text)!r}" for text in list(read)[:3]])
            yield Doubt(
                f"**{literal(name)}**: {counted(len(read) + len(some), 'spelling')} read as "
                f"{len(some)}, such as {shown} as {literal(read[next(iter(read))])!r}. Cells that "
                "do not change keep theirs.",
                "Keep spellings apart", lambda: now.change(keep_spellings=True),
            )  # fmt: skip
    for name, marks in now.choices.reading.gaps.items():
        for mark in marks:
            yield Doubt(
                f"**{literal(name)}**: {literal(mark)} is read as no value.",
                f"{mark} is a value",
                lambda name=name, mark=mark: set_gap(now, name, mark, False),  # type: ignore[misc]
            )


def _doubts_about(now: Project, one: Understood) -> Iterator[Doubt]:
    name = literal(one.name)
    for other in one.others:
        if other != "text" and (one.kind != "text" or other.startswith("date")):
            became = joined([
                f"{literal(text)} became {literal(value)}"
                for text, value in zip(one.texts[:2], one.values, strict=False)
            ])  # fmt: skip
            yield Doubt(
                f"**{name}** was read as {one.kind}: {became}.",
                f"Read as {other}",
                lambda other=other: read_as(now, one.name, other),  # type: ignore[misc]
            )
    for text, count in one.doubtful:
        yield Doubt(
            f"**{name}**: {literal(text)} stands there {counted(count, 'time')}, unlike the rest.",
            f"{text} is no value",
            lambda text=text: set_gap(now, one.name, text, True),  # type: ignore[misc]
        )


def _ask(doubts: list[Doubt]) -> None:
    """Draw the doubts, each with the button that settles it."""
    if not doubts:
        return
    with st.container(border=True):
        st.html(blocks.paragraph("Please check: this could be understood otherwise."))
        for at, doubt in enumerate(doubts[:ASKED]):
            text, button = st.columns([3, 1.3], vertical_alignment="center")
            text.markdown(doubt.text)
            button.button(
                literal(doubt.button), key=f"doubt {at} {doubt.button}", on_click=doubt.change,
                width="stretch",
            )  # fmt: skip
        if len(doubts) > ASKED:
            more = counted(len(doubts) - ASKED, "more column")
            st.html(blocks.paragraph(f"And {more}; see the table below."))
