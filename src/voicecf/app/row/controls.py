"""Controls of the page: which row, where to, what to look for, what may change and how."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.data.preparing import Missing, Prepared
from voicecf.app.project import Project
from voicecf.app.row import finding
from voicecf.app.row.question import GOALS, KEEP, LIMITS, LISTS, NEAREST, TOGETHER, Words, limited
from voicecf.app.segments.segments import Segments
from voicecf.app.words import literal
from voicecf.output import counted, figure, opening

ANY = -1
MOST_MARGIN = 90
# Pixels of the field that names a row.
WIDTH = 380
ABOUT_TOGETHER = (
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
        (own,) = prepared.called([now.question.row])
        st.button(literal(f"Back to row {own}"), on_click=_kept(now).clear)


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
    names, chosen = now.names, now.question.target
    options = [ANY, *(t for t in range(found.k) if t != int(found.labels[now.question.row]))]
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
    rules, guessed = now.question.allowed, now.usual_rules
    locked = rules.get("immutable", [])
    why = {column.label: column.why_fixed for column in now.columns}
    if not (rules or guessed or at_the_rim):
        return
    with st.container(horizontal=True, key="row-chips", vertical_alignment="center", gap="small"):
        if locked:
            st.html(blocks.paragraph("Stays as it is:"), width="content")
        for name in locked:
            ours = name in guessed.get("immutable", ())
            st.button(
                literal(f"{name} (guessed)" if ours else name), key=f"unlock {name}",
                icon=":material/close:", icon_position="right",
                help=f"{opening(why[name])}. Let it change." if ours else "Let it change.",
                on_click=partial(_say, now, "immutable", [n for n in locked if n != name]),
            )  # fmt: skip
        if rules:
            st.button("Allow everything", type="tertiary", on_click=lambda: now.change(rules={}))
        if now.choices.rules not in (None, guessed):
            st.button("As guessed", type="tertiary", on_click=lambda: now.change(rules=None))
        if at_the_rim and "plausible" not in rules:
            st.button(
                "Look for more usual values", help=ABOUT_TOGETHER,
                on_click=lambda: now.allow(plausible=TOGETHER),
            )  # fmt: skip


def _say(now: Project, word: str, names: list[str]) -> None:
    """Put columns into one of the lists, and take them out of the others."""
    before = now.question.allowed
    others = {one: [n for n in before.get(one, ()) if n not in names] for one in LISTS}
    now.allow(**{**others, word: names})


def allowed(now: Project, prepared: Prepared) -> None:
    """Let the visitor say what may change, and how."""
    rules = now.question.allowed
    for word, (label, *_) in LISTS.items():
        options = prepared.names if word == "immutable" else list(prepared.numbers)
        st.multiselect(
            label, options, placeholder="No column",
            **session.tied(word, rules.get(word, []), partial(_say, now, word)),
        )  # fmt: skip
    chosen = st.session_state.setdefault(f"limited {now.id}", [])
    some = list(dict.fromkeys([*limited(rules), *chosen]))
    opened = bool(some or "max_changes" in rules or "plausible" in rules)
    with st.expander("Ranges, steps and levels", expanded=opened):
        st.multiselect(
            "Limit", prepared.names, placeholder="No column",
            **session.tied("limited", some, partial(_choose_limits, now)),
        )  # fmt: skip
        for name in some:
            if name in prepared.numbers:
                _range(now, prepared, name, rules)
            elif name in prepared.categories:
                st.multiselect(
                    f"{literal(name)} may become", prepared.levels[name],
                    **session.tied(
                        f"levels {name}", rules.get("levels", {}).get(name, prepared.levels[name]),
                        partial(_set, now, "levels", name),
                    ),
                )  # fmt: skip
        st.number_input(
            "Most columns that may change", 1, len(prepared.names), placeholder="Any number",
            **session.tied("most", rules.get("max_changes"), lambda n: now.allow(max_changes=n)),
        )  # fmt: skip
        st.toggle(
            "Only values that go together in the segment", help=ABOUT_TOGETHER,
            **session.tied(
                "together", "plausible" in rules,
                lambda on: now.allow(plausible=TOGETHER if on else None),
            ),
        )  # fmt: skip


def _choose_limits(now: Project, chosen: list[str]) -> None:
    """Limit some columns, and no others; what the limits are is said next."""
    rules = now.question.allowed
    st.session_state[f"limited {now.id}"] = chosen
    now.allow(**{
        word: {name: one for name, one in rules[word].items() if name in chosen}
        for word in LIMITS if word in rules
    })  # fmt: skip


def _range(now: Project, prepared: Prepared, name: str, rules: Words) -> None:
    values, whole = prepared.frame[name], name in prepared.whole
    low, high = (s if isinstance(s, (int, float)) else None for s in _sides(rules, name))
    st.html(blocks.paragraph(name))
    places = [*st.columns(2), *st.columns(2)]
    for place, word, side, label, value, seen in (
        (places[0], "bounds", "low", "At least", low, figure(float(values.min()))),
        (places[1], "bounds", "high", "At most", high, figure(float(values.max()))),
        (places[2], "steps", "step", "In steps of", rules.get("steps", {}).get(name),
         "1" if whole else "any"),
        (places[3], "least", "least", "Changes by at least", rules.get("least", {}).get(name),
         "any"),
    ):  # fmt: skip
        change = partial(_set_side, now, name, side) if word == "bounds" else partial(
            _set, now, word, name
        )  # fmt: skip
        place.number_input(
            label, placeholder=seen, format="%g", step=1.0 if whole else None,
            min_value=None if word == "bounds" else 1e-9,
            **session.tied(f"{side} {name}", None if value is None else float(value), change),
        )  # fmt: skip


def _sides(rules: Words, name: str) -> tuple[Any, Any]:
    low, high = rules.get("bounds", {}).get(name, (KEEP, KEEP))
    return low, high


def _set_side(now: Project, name: str, side: str, value: float | None) -> None:
    low, high = _sides(now.question.allowed, name)
    given = KEEP if value is None else value
    low, high = (given, high) if side == "low" else (low, given)
    if isinstance(low, float) and isinstance(high, float) and low > high:
        low = high = given
    _set(now, "bounds", name, [low, high])


def _set(now: Project, word: str, name: str, value: Any) -> None:
    """Say something of a column, or nothing."""
    before = {n: one for n, one in now.question.allowed.get(word, {}).items() if n != name}
    now.allow(**{word: before | ({} if value in (None, []) else {name: value})})
