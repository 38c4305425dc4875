"""Controls of the page: which row, where to, what to look for, what may change and how."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.data.preparing import Missing, Prepared
from voicecf.app.project import Project
from voicecf.app.row import finding
from voicecf.app.row.question import GOALS, NEAREST, Range, UserRules
from voicecf.app.segments.segments import Segments
from voicecf.app.words import literal
from voicecf.table.wording import counted, figure, sentences

ANY = -1
MOST_MARGIN = 90
# Pixels of the field that names a row.
WIDTH = 380
TOGETHER = (
    "The answer stays within what 95 % of the segment's rows show, also in how columns go "
    "together: no young retired, for example."
)
# What the visitor typed that names no single row, and the left-out row that was asked for.
SOUGHT, OUT = "sought", "left out"


# Which row


def ask_about(now: Project) -> bool:
    """Let the visitor name a row; tell whether there is one to explain."""
    kept = _kept(now)
    own = str(int(now.prepared.rows[now.question.row]) + 1)
    identity = now.prepared.identity
    shown = str(kept[OUT] + 1) if OUT in kept else kept.get(SOUGHT, own)
    st.text_input(
        "Ask about a row",
        placeholder=f"Row number{f', {identity}' if identity else ''}, or any text",
        help="A row's number in the file, what it is called, or a text that it holds.",
        width=WIDTH,
        **session.tied("row", shown, partial(_seek, now)),
    )
    if OUT in kept:
        _left_out(now, kept[OUT])
        return False
    if SOUGHT in kept:
        _finds(now, kept[SOUGHT])
    return True


def _kept(now: Project) -> dict[str, Any]:
    """Return what is remembered of the visitor's search, apart from the project."""
    kept: dict[str, Any] = st.session_state.setdefault(f"search {now.id}", {})
    return kept


def choose(now: Project, row: int) -> None:
    """Ask about a row of the table, or say why that cannot be."""
    place = finding.place_of(now.prepared, row)
    _kept(now).clear()
    if place is None:
        _kept(now)[OUT] = row
    else:
        now.ask(row=place)


def _found(now: Project, text: str) -> Any:
    return now.once(
        "finds", f"{now.rows_key} {text}",
        lambda: finding.find_rows(now.table.frame, now.prepared, text),
    )  # fmt: skip


def _seek(now: Project, text: str) -> None:
    rows = _found(now, text)
    _kept(now).clear()
    if len(rows) == 1:
        choose(now, int(rows[0]))
    elif text.strip():
        _kept(now)[SOUGHT] = text


def _left_out(now: Project, row: int) -> None:
    """Say why a row has no answer, and offer to fill in what it misses."""
    frame, prepared = now.table.frame, now.prepared
    st.html(blocks.notice(finding.why_left_out(frame, prepared, row)))

    def fill_in() -> None:
        now.change(missing=Missing.FILL_IN)
        choose(now, row)

    with st.container(horizontal=True):
        if len(finding.missing_in(frame, prepared, row)) < len(prepared.names):
            st.button("Fill in missing values", type="primary", on_click=fill_in)
        back = literal(f"Back to {prepared.called(now.question.row)}")
        st.button(back, on_click=_kept(now).clear)


def _finds(now: Project, text: str) -> None:
    rows = _found(now, text)
    if not len(rows):
        st.html(blocks.paragraph(f"No row is called or holds “{text}”."))
        return
    key = f"pick {hash(tuple(rows.tolist()))}"

    def pick() -> None:
        chosen = st.session_state[key]["selection"]["rows"]
        if chosen:
            choose(now, int(rows[chosen[0]]))

    found = now.segments
    table = finding.shown_rows(now.table.frame, found.prepared, found.labels, now.names, rows)
    many = "The first" if len(rows) == finding.MOST else "Found"
    st.html(blocks.paragraph(f"{many} {counted(len(rows), 'row')}. Tick one to ask about it."))
    st.dataframe(
        table, hide_index=True, height=min(38 + 35 * len(rows), 250), key=key, on_select=pick,
        selection_mode="single-row",
    )  # fmt: skip


# Where to, and what to look for


def target(now: Project, found: Segments) -> None:
    """Let the visitor choose the segment that the row is to be in."""
    names = now.names
    own = int(found.labels[now.question.row])
    options = [ANY, *(t for t in range(found.k) if t != own)]
    chosen = now.question.target
    if chosen not in options:
        chosen = None
        now.ask(target=None)
    st.selectbox(
        "Should be in", options,
        format_func=lambda t: NEAREST if t == ANY else names[t],
        **session.tied(
            "target", ANY if chosen is None else chosen,
            lambda t: now.ask(target=None if t == ANY else t),
        ),
    )  # fmt: skip


def goal(now: Project) -> None:
    """Let the visitor choose what makes an answer a good one, and how safe it is to be."""
    asked = now.question
    st.radio(
        "Look for", list(GOALS), format_func=lambda goal: GOALS[goal],
        **session.tied("goal", asked.objective, lambda goal: now.ask(objective=goal)),
    )  # fmt: skip
    st.slider(
        "Safety margin", 0, MOST_MARGIN, format="%d %%",
        help="How firmly inside the segment the answer lies: 0 % is just over the border, 100 % "
        "would be its centre.",
        **session.tied("margin", asked.margin, lambda margin: now.ask(margin=int(margin))),
    )  # fmt: skip


# What may change


def chips(now: Project, at_the_rim: bool) -> None:
    """Show what stays as it is, which a click lets change; offer more usual values at the rim."""
    locked, guessed = now.question.allowed.locked, now.usual_rules.locked
    why = {column.label: column.why_fixed for column in now.columns}

    def unlock(name: str) -> None:
        now.allow(locked=tuple(n for n in now.question.allowed.locked if n != name))

    rules = now.question.allowed
    if not (rules.count or guessed or at_the_rim):
        return
    with st.container(horizontal=True, key="row-chips", vertical_alignment="center", gap="small"):
        if locked:
            st.html(blocks.paragraph("Stays as it is:"), width="content")
        for name in locked:
            text = f"{name} (guessed)" if name in guessed else name
            st.button(
                literal(text), key=f"unlock {name}", icon=":material/close:", icon_position="right",
                help=sentences([why.get(name, "") * (name in guessed), "let it change"]),
                on_click=partial(unlock, name),
            )  # fmt: skip
        if rules.count:
            st.button(
                "Allow everything", type="tertiary", on_click=lambda: now.change(rules=UserRules())
            )
        if now.choices.rules not in (None, now.usual_rules):
            st.button("As guessed", type="tertiary", on_click=lambda: now.change(rules=None))
        if at_the_rim and not rules.together:
            st.button(
                "Look for more usual values", help=TOGETHER,
                on_click=lambda: now.allow(together=True),
            )  # fmt: skip


def allowed(now: Project, prepared: Prepared) -> None:
    """Let the visitor say what may change, and how."""
    rules = now.question.allowed

    def say(word: str, names: list[str]) -> None:
        """Put columns into one of the lists, and take them out of the others."""
        before = now.question.allowed
        told: dict[str, Any] = {
            other: tuple(n for n in getattr(before, other) if n not in names)
            for other in ("locked", "rising", "falling")
        }
        now.allow(**(told | {word: tuple(names)}))

    for word, label, options in (
        ("locked", "Must stay as it is", prepared.names),
        ("rising", "May only rise", list(prepared.numbers)),
        ("falling", "May only fall", list(prepared.numbers)),
    ):
        st.multiselect(
            label, options, placeholder="No column",
            **session.tied(word, list(getattr(rules, word)), partial(say, word)),
        )  # fmt: skip
    _limits(now, prepared, rules)


def _limits(now: Project, prepared: Prepared, rules: UserRules) -> None:
    limited = [r.column for r in rules.ranges] + [name for name, _ in rules.levels]
    opened = bool(limited or rules.most or rules.together)
    with st.expander("Ranges, steps and levels", expanded=opened):
        st.multiselect(
            "Limit", prepared.names, placeholder="No column",
            **session.tied("limited", limited, partial(_choose_limits, now)),
        )  # fmt: skip
        for limit in rules.ranges:
            _range(now, prepared, limit)
        for name, levels in rules.levels:
            every = sorted(prepared.frame[name].dropna().unique())
            st.multiselect(
                f"{literal(name)} may become", every,
                **session.tied(f"levels {name}", list(levels), partial(_set_levels, now, name)),
            )  # fmt: skip
        st.number_input(
            "Most columns that may change", 1, len(prepared.names), placeholder="Any number",
            **session.tied("most", rules.most, lambda most: now.allow(most=most)),
        )  # fmt: skip
        st.toggle(
            "Only values that go together in the segment",
            help=TOGETHER,
            **session.tied("together", rules.together, lambda on: now.allow(together=bool(on))),
        )


def _choose_limits(now: Project, chosen: list[str]) -> None:
    prepared, before = now.prepared, now.question.allowed
    ranges = {r.column: r for r in before.ranges}
    levels = dict(before.levels)
    numbers = [name for name in chosen if name in prepared.numbers]
    categories = [name for name in chosen if name in prepared.categories]
    now.allow(
        ranges=tuple(ranges.get(name, Range(name)) for name in numbers),
        levels=tuple(
            (n, levels.get(n, tuple(sorted(prepared.frame[n].dropna().unique()))))
            for n in categories
        ),
    )


def _range(now: Project, prepared: Prepared, limit: Range) -> None:
    values = prepared.frame[limit.column]
    whole = limit.column in prepared.whole
    st.html(blocks.paragraph(limit.column))
    places = [*st.columns(2), *st.columns(2)]
    for place, side, label, seen in (
        (places[0], "low", "At least", figure(float(values.min()))),
        (places[1], "high", "At most", figure(float(values.max()))),
        (places[2], "step", "In steps of", "1" if whole else "any"),
        (places[3], "least", "Changes by at least", "any"),
    ):
        with place:
            st.number_input(
                label, placeholder=seen, format="%g", step=1.0 if whole else None,
                min_value=1e-9 if side in ("step", "least") else None,
                **session.tied(
                    f"{side} {limit.column}", getattr(limit, side), partial(_set, now, limit, side)
                ),
            )  # fmt: skip


def _set(now: Project, limit: Range, side: str, value: float | None) -> None:
    changed = replace(limit, **{side: value})  # type: ignore[arg-type]
    if changed.low is not None and changed.high is not None and changed.low > changed.high:
        other = "high" if side == "low" else "low"
        changed = replace(changed, **{other: value})  # type: ignore[arg-type]
    before = now.question.allowed
    ranges = tuple(changed if r.column == limit.column else r for r in before.ranges)
    now.allow(ranges=ranges)


def _set_levels(now: Project, name: str, levels: list[str]) -> None:
    before = now.question.allowed
    kept = tuple((n, tuple(levels) if n == name else old) for n, old in before.levels)
    now.allow(levels=tuple((n, some) for n, some in kept if some))
