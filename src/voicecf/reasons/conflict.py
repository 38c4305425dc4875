"""A minimal conflict: members that cannot all be satisfied, though all but any one of them can."""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from math import inf

from voicecf.learned.learned import Learned
from voicecf.output.calling import cluster_name, cluster_names
from voicecf.reasons.case import Case
from voicecf.reasons.conditions import Contraction, Rivals
from voicecf.rules.condition import LeftOut, Member, Variant


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
    found = sorted(conflict, key=lambda member: -member.left_out)
    return _with_rival_texts(case.learned, found)


def without(case: Case, variant: Variant, member: Member) -> Variant:
    """Return a variant without one of its members."""
    return member.condition.without(case, variant, member)


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
    """Return the members of a variant in the order in which they are left out.

    What is said of one column comes first, column by column.
    """
    conditions = (*case.original.rules.each(), Contraction(), Rivals())
    every = [member for condition in conditions for member in condition.members(case)]
    every.sort(key=lambda m: inf if m.column is None else case.place(m.column))
    members = [m for m in every if without(case, variant, m) != variant]
    groups = [[m for m in members if m.left_out == order] for order in LeftOut]
    return [group for group in groups if group]
