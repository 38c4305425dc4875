"""A minimal conflict: members that cannot all be satisfied, though all but any one of them can."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from voicecf.learned.learned import Learned
from voicecf.output.calling import cluster_name, cluster_names
from voicecf.reasons.case import Case
from voicecf.reasons.member import Kind, Member, members_of
from voicecf.reasons.variant import Variant
from voicecf.rules.rules import Rules

# The order in which members are left out: first how usual the answer has to be and what the user
# did not ask for, then clusters, then the user's rules. So a conflict names the user's own rules
# wherever these suffice.
ORDER: tuple[tuple[Kind, ...], ...] = (
    ("plausible",), ("contraction",), ("range",), ("cluster",), ("step",), ("least",),
    ("low", "high", "direction", "levels", "forbidden", "max_changes", "constraint", "together"),
    ("immutable",),
)  # fmt: skip


def minimal_conflict(case: Case, variant: Variant) -> list[Member]:
    """Find members that cannot be satisfied together, though without any one of them they can.

    A group that can be left out is left out at once; one that cannot is halved.
    """
    conflict: list[Member] = []
    groups = _groups(case, variant)
    while groups:
        group = groups.pop(0)
        less = reduce(partial(without, case), group, variant)
        if case.impossible(less):
            variant = less
        elif len(group) == 1:
            conflict += group
        else:
            half = len(group) // 2
            groups[:0] = [group[:half], group[half:]]
    # The user's rules first.
    found = [m for kinds in ORDER[::-1] for m in conflict if m.kind in kinds]
    return _with_rival_texts(case.learned, found)


def _with_rival_texts(learned: Learned, conflict: list[Member]) -> list[Member]:
    """Return the members of a conflict with texts of the rivals that hold within it.

    Where several rivals are in a conflict, none of them wins at all allowed points.
    """
    rivals = [m.cluster for m in conflict if m.cluster is not None]
    if len(rivals) < 2 and not any(m.kind == "contraction" for m in conflict):
        return conflict
    return [
        m
        if m.cluster is None
        else replace(m, text=_rival_text(learned, m.cluster, rivals, winning(learned, conflict)))
        for m in conflict
    ]


def _rival_text(learned: Learned, rival: int, rivals: list[int], wins: str) -> str:
    others = [other for other in rivals if other != rival]
    name = cluster_name(learned, rival)
    if not others:
        return f"{name} is always {wins}"
    verb = "are" if len(others) > 1 else "is"
    return f"{name} is {wins} wherever {cluster_names(learned, others)} {verb} not"


def winning(learned: Learned, conflict: list[Member]) -> str:
    """Return what the rivals of a conflict are: nearer, or just too near for a contracted cell."""
    contracted = any(m.kind == "contraction" for m in conflict)
    return learned.partition.almost_wins if contracted else learned.partition.wins


def _groups(case: Case, variant: Variant) -> list[list[Member]]:
    """Return the members of a variant in the order in which they are left out."""
    members = [m for m in members_of(case) if without(case, variant, m) != variant]
    groups = [[m for m in members if m.kind in kinds] for kinds in ORDER]
    return [group for group in groups if group]


def without(case: Case, variant: Variant, member: Member) -> Variant:
    """Return the variant without one of its members."""
    name = member.column
    match member.kind:
        case "cluster":
            assert member.cluster is not None
            ignored = variant.ignored_rivals | {member.cluster}
            return replace(variant, ignored_rivals=ignored)
        case "contraction":
            return replace(variant, alpha=1.0)
        case "immutable":
            return variant.without_column("immutable", name)
        case "direction":
            upward = variant.without_column("increase_only", name)
            return upward.without_column("decrease_only", name)
        case "range":
            return _without_range(case, variant, name)
        case "low":
            return _without_side(variant, name, 0)
        case "high":
            return _without_side(variant, name, 1)
        case "step":
            return variant.with_rules(steps={**variant.rules["steps"], name: None})
        case "levels" | "least":
            return variant.with_column_rule(member.kind, name, None)
        case "forbidden":
            pairs = variant.rules["forbidden"].get(name, ())
            left = tuple(pair for pair in pairs if pair != member.detail)
            return variant.with_column_rule("forbidden", name, left or None)
        case "plausible":
            return variant.with_rules(plausible=None)
        case "max_changes":
            return variant.with_rules(max_changes=None)
        case "constraint" | "together":
            word = "constraints" if member.kind == "constraint" else "together"
            kept = [one for one in variant.rules[word] if one != member.detail]
            return variant.with_rules(**{word: kept})


def _without_side(variant: Variant, name: Any, at: int) -> Variant:
    """Remove one side of the user's bounds; a relative side leaves the explainer's own bound."""
    sides = list(variant.sides(name))
    sides[at] = ... if isinstance(sides[at], str) else None
    return variant.with_column_rule("bounds", name, tuple(sides))


def _without_range(case: Case, variant: Variant, name: Any) -> Variant:
    """Remove the explainer's own bounds; bounds relative to the row become numbers."""
    c = case.place(name)
    rule = Rules(bounds=variant.rules["bounds"]).of_columns(case.space)[c]
    own, sides = np.array([case.own_number(c)]), list(variant.sides(name))
    for at, side in enumerate(rule.sides):
        if side is None:
            sides[at] = None
        elif side.relative and np.isfinite(own[0]):
            sides[at] = float(side.at(own)[0])
    return variant.with_column_rule("bounds", name, tuple(sides))


def relaxed(case: Case, variant: Variant, member: Member) -> Variant:
    """Return the variant without a member, open bounds closed again at plausible values."""
    less = without(case, variant, member)
    if member.kind not in ("range", "low", "high"):
        return less
    c = case.place(member.column)
    sides, after = list(less.sides(member.column)), case.bounds(c, less)
    for at, before in enumerate(case.bounds(c, variant)):
        if np.isinf(after[at]) and np.isfinite(before):
            sides[at] = _plausible_side(case, c, at, before)
    return less.with_column_rule("bounds", member.column, tuple(sides))


def _plausible_side(case: Case, c: int, at: int, bound: float) -> float | None:
    """Return the widest plausible bound, or the present one if that is wider."""
    widest = _plausible_bounds(case, c)[at]
    if widest is None:
        return None
    return max(widest, bound) if at else min(widest, bound)


def _plausible_bounds(case: Case, c: int) -> tuple[float | None, float | None]:
    """Return the observed range, widened on either side by its width; None if nothing was observed.

    A range of one sign is not widened past zero, and the row's own value is always inside.
    """
    low, high = case.space.columns[c].observed
    if not np.isfinite(high - low):
        return None, None
    width = high - low or max(abs(low), 1.0)
    least = max(low - width, 0.0) if low >= 0 else low - width
    most = min(high + width, 0.0) if high <= 0 else high + width
    own = case.own_number(c)
    return float(np.fmin(least, own)), float(np.fmax(most, own))
