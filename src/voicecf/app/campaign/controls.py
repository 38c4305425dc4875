"""The plan of a campaign as controls: whom, where to, by what, at what price."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.campaign import cards, runs
from voicecf.app.campaign.plan import Campaign, Price
from voicecf.app.data.preparing import Prepared
from voicecf.app.project import Project
from voicecf.app.row import controls as rules
from voicecf.app.row.question import GOALS, NEAREST, Objective
from voicecf.app.words import literal
from voicecf.output import figure

EACH = "Every other segment"
LOOK_FOR = (Objective.FEWEST, Objective.LEAST)
CURRENCIES = ("€", "$", "£", "hours")


def show(now: Project, asked: Campaign) -> None:
    """Draw all controls of the plan."""
    names = now.names
    whom, where, how = st.columns(3, gap="medium")
    with whom:
        st.multiselect(
            "From", range(now.k), format_func=lambda t: names[t], placeholder="Everyone",
            **session.tied("sources", list(asked.sources), partial(_set_sources, now)),
        )  # fmt: skip
    with where:
        st.selectbox(
            "To", [NEAREST, EACH, *range(now.k)],
            format_func=lambda t: t if isinstance(t, str) else names[t],
            **session.tied("campaign target", _target(asked), partial(_set_target, now)),
        )  # fmt: skip
    with how:
        st.selectbox(
            "Look for", LOOK_FOR, format_func=lambda goal: GOALS[goal],
            **session.tied(
                "campaign goal", asked.objective, lambda goal: runs.plan(now, objective=goal)
            ),
        )  # fmt: skip
    with st.expander("What may change"):
        _rules(now, asked)
    with st.expander("Prices and budget"):
        _prices(now, now.prepared, asked)
    st.html(blocks.paragraph(f"Rules: {cards.conditions(asked)}."))


def _target(asked: Campaign) -> str | int:
    if asked.each:
        return EACH
    return NEAREST if asked.target is None else asked.target


def _set_sources(now: Project, chosen: list[int]) -> None:
    runs.plan(now, sources=tuple(sorted(chosen)))


def _set_target(now: Project, chosen: str | int) -> None:
    runs.plan(now, target=chosen if isinstance(chosen, int) else None, each=chosen == EACH)


def _rules(now: Project, asked: Campaign) -> None:
    """Draw the rules, which are those of the page “One row”, and the margin."""
    rules.allowed(now, now.prepared)
    st.slider(
        "Safety margin", 0, rules.MOST_MARGIN, format="%d %%",
        help="How firmly inside the segment the answers lie: 0 % is just over the border.",
        **session.tied("campaign margin", asked.margin, lambda m: runs.plan(now, margin=int(m))),
    )  # fmt: skip
    st.html(blocks.paragraph("What may change is the same on the page “One row”."))


# Prices


def _prices(now: Project, prepared: Prepared, asked: Campaign) -> None:
    which, unit, budget = st.columns([2, 1, 1])
    with which:
        st.multiselect(
            "Columns whose change costs something", prepared.names, placeholder="No column",
            **session.tied(
                "priced", [price.column for price in asked.prices], partial(_choose, now)
            ),
        )  # fmt: skip
    with unit:
        offered = dict.fromkeys([*CURRENCIES, asked.currency])
        st.selectbox(
            "Prices are in", list(offered), accept_new_options=True,
            **session.tied("currency", asked.currency, partial(_set_currency, now)),
        )  # fmt: skip
    with budget:
        st.number_input(
            f"Budget ({literal(asked.unit)})", min_value=0.0, format="%g", placeholder="No limit",
            **session.tied("budget", asked.budget, lambda b: runs.plan(now, budget=b)),
        )  # fmt: skip
    for price in asked.prices:
        _price(now, prepared, asked, price)
    if asked.prices:
        st.toggle(
            "Columns without a price may change at no cost",
            help="Otherwise they stay as they are: only what has a price is changed.",
            **session.tied("free", asked.free, lambda free: runs.plan(now, free=free)),
        )  # fmt: skip
        text = (
            "Columns without a price may change at no cost."
            if asked.free
            else "Columns without a price stay as they are."
        )
        text += " The search prefers columns whose changes cost little."
        if any(price.fall not in (None, price.rise) for price in asked.prices):
            text += (
                " A column that may go both ways is weighed by the middle of its two prices; say "
                "under “What may change” that it may only rise or fall to have one hold."
            )
        st.html(blocks.paragraph(text))
    else:
        st.html(blocks.paragraph("Without prices, efforts are counted in spreads of the columns."))


def _price(now: Project, prepared: Prepared, asked: Campaign, price: Price) -> None:
    name, unit = literal(price.column), literal(asked.unit)
    if price.column in prepared.categories:
        sides: tuple[tuple[str, str, str], ...] = (("rise", f"{name}: {unit} a switch", ""),)
    else:
        sides = (
            ("rise", f"{name}: {unit} for each 1 more", ""),
            ("fall", f"{name}: {unit} for each 1 less", f"{figure(price.rise)}, the same"),
        )
    for place, (side, label, empty) in zip(st.columns(2), sides, strict=False):
        with place:
            st.number_input(
                label, min_value=0.0, format="%g", placeholder=empty or None,
                **session.tied(
                    f"{side} price {price.column}", getattr(price, side),
                    _setting(now, price.column, side),
                ),
            )  # fmt: skip


def _setting(now: Project, column: str, side: str) -> Callable[[float | None], None]:
    def change(value: float | None) -> None:
        if side == "rise" and value is None:
            value = 0.0
        prices = now.choices.campaign.prices
        changed = [
            replace(p, **{side: value}) if p.column == column else p  # type: ignore[arg-type]
            for p in prices
        ]
        runs.plan(now, prices=tuple(changed))

    return change


def _choose(now: Project, chosen: list[str]) -> None:
    known = {price.column: price for price in now.choices.campaign.prices}
    runs.plan(now, prices=tuple(known.get(name, Price(name, 1.0)) for name in chosen))


def _set_currency(now: Project, text: str | None) -> None:
    runs.plan(now, currency=" ".join((text or "").split())[:20] or "€")
