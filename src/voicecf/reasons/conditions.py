"""What an answer has to respect besides the user's rules: the contraction, and the rivals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from voicecf.output.calling import cluster_name
from voicecf.rules.condition import (
    Condition,
    Edit,
    Edits,
    LeftOut,
    Member,
    Members,
    Situation,
    Variant,
)  # fmt: skip
from voicecf.rules.edits import least_enough
from voicecf.table.wording import figure


class Contraction(Condition):
    """The contraction of the target's cell."""

    kind = "contraction"
    left_out = LeftOut.CONTRACTION

    def members(self, case: Situation) -> Members:
        alpha = case.learned.alpha_of(case.target)
        if alpha < 1.0:
            where = f"the answer must lie well inside {cluster_name(case.learned, case.target)}"
            yield self.member(f"{where} (contraction {figure(alpha)})")

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        return replace(variant, alpha=1.0)

    def removal(self, case: Situation, member: Member) -> str:
        return f"do not contract the cell: {_contraction_text(case, 1.0)}"

    def edits(self, case: Situation, member: Member, variant: Variant, answer: Any) -> Edits:
        def enough(alpha: float) -> bool:
            return not case.impossible(replace(variant, alpha=alpha))

        least = least_enough(enough, case.learned.alpha_of(case.target), 1.0)
        for digits in (2, 3, 4):
            alpha = min(float(np.ceil(least * 10**digits) / 10**digits), 1.0)
            if alpha < 1.0:
                text = f"contract less: {_contraction_text(case, alpha)}"
                yield Edit(text, partial(replace, alpha=alpha))


class Rivals(Condition):
    """The clusters that the answer must be farther from than from its target."""

    kind = "cluster"
    left_out = LeftOut.RIVALS

    def members(self, case: Situation) -> Members:
        partition = case.learned.partition
        pieces = [partition.piece(p) for p in partition.pieces_of(case.target).tolist()]
        for rival in sorted({int(rival) for piece in pieces for rival in piece.rivals}):
            text = f"{cluster_name(case.learned, rival)} is always {partition.wins}"
            yield self.member(text, cluster=rival)

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        assert member.cluster is not None
        return replace(variant, ignored_rivals=variant.ignored_rivals | {member.cluster})


def _contraction_text(case: Situation, alpha: float) -> str:
    margin = case.learned.margin
    smaller_margin = f", margin={1.0 - alpha:.4g}" if margin > 1.0 - alpha else ""
    return f"VoICE(..., contraction={alpha:g}{smaller_margin})"
