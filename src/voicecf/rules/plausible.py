"""The rule `plausible`: answers that are as usual in their target as its members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from voicecf.errors import OptionError
from voicecf.geometry.arrays import Array, Ints, Mask, product
from voicecf.rules.condition import Edit, Edits, LeftOut, Member, Members, Situation, Variant
from voicecf.rules.edits import number
from voicecf.rules.rule import Moved, Rule, number_of
from voicecf.rules.sides import as_number
from voicecf.table.wording import joined, legible, level

if TYPE_CHECKING:
    from voicecf.rules.allowed import Allowed

# Beyond this many coordinates nothing is learned of members: it would take too long.
MOST_COORDINATES = 256
# In place of a share: the first of these that an answer can be had for; None is no rule at all.
AUTO = "auto"
LADDER = (0.7, 0.9, 0.99, None)
# The objective that takes columns in turn. Where columns go together, a row becomes usual only if
# many of them change, so that it asks for no share by itself.
IN_TURN = "prefix"
# Shares of the members that are proposed in place of a smaller one.
LARGER_SHARES = (0.975, 0.99, 0.999)


class Plausible(Rule):
    """How like the target's members answers have to be: a share of them, such as 0.95.

    No answer is more extreme along a principal direction of the members' numbers than that share of
    them, none has a level that so few of them have, and where all have the same value, so does the
    answer; see `Counterfactuals.usual`. Columns that may not change do not count. With "auto", the
    default, each answer takes the first of 0.7, 0.9, 0.99 and no rule at all that has one;
    `Counterfactuals.plausible` tells which; for "prefix", which takes columns in turn, it asks for
    nothing. None asks for nothing.
    """

    word = kind = "plausible"
    default: ClassVar[Any] = AUTO
    none = "none"
    left_out = LeftOut.USUAL
    takes = 'float in (0, 1), "auto" or None'
    help = (
        "answers stay within what this share of the target's members show, such as 0.95; "
        "auto, the default: the first of 0.7, 0.9, 0.99 and any that has an answer; none: any"
    )
    arguments: ClassVar[dict[str, Any]] = {"metavar": "SHARE"}
    by_target = True

    @classmethod
    def checked(cls, value: Any) -> Any:
        if isinstance(value, str) and value in (AUTO, cls.none):
            return AUTO if value == AUTO else None
        number = as_number(value)
        if number is None or not 0 < number < 1:
            raise OptionError(
                f"plausible={value!r} must be a share above 0 and below 1, such as 0.95, "
                '"auto", or None for any answer.'
            )
        return number

    @classmethod
    def parsed(cls, arguments: Any) -> Any:
        return arguments if arguments in (AUTO, cls.none) else number_of(arguments, "--plausible")

    @property
    def contractible(self) -> bool:
        return bool(self.value == AUTO)  # which asks for nothing then, see `ladder`

    def ladder(self, learned: Any, objective: str) -> tuple[Any, ...]:
        if self.value != AUTO:
            return (self.value,)
        known = learned.members is not None and not learned.contract_bounds
        return LADDER if known and objective != IN_TURN else (None,)

    def check_question(self, learned: Any, allowed: Allowed, objective: str) -> None:
        if learned.members is None and self.value != AUTO:
            raise OptionError(
                f"plausible={self.value} needs to know how the members of each cluster vary: "
                f"fit the explainer to data with at most {MOST_COORDINATES} coordinates "
                "and fewer clusters, or leave plausible out."
            )

    def in_target(self, allowed: Allowed, learned: Any, target: int) -> Allowed:
        """Add constraints along the members' directions, and the ranges of single coordinates."""
        members = learned.members_of(allowed.fixed)
        narrowed = allowed.with_constraints(*members.constraints(target, self.value))
        return narrowed.inside(*members.ranges(target, self.value))

    def exact_values(self, learned: Any) -> dict[int, Array]:
        return dict(learned.agreed_values)

    def holds(self, allowed: Allowed, learned: Any, targets: Ints, points: Array) -> Mask:
        holds = np.ones(len(points), dtype=np.bool_)
        if self.value == AUTO:  # asks for nothing that an answer could miss
            return holds
        members = learned.members_of(allowed.fixed)
        for target in np.unique(targets).tolist():
            which = np.flatnonzero(targets == target)
            holds[which] = members.within(target, self.value, points[which])
        return holds

    def missed(self, learned: Any, target: int, box: tuple[Array, Array]) -> str:
        """Say what answers have to be as usual as, and which of its values a row cannot have.

        These are values that all members of the target have.
        """
        cluster = legible(learned.names[target])
        whose = f"as usual as {100 * self.value:.6g} % of the members of {cluster}"
        missing = (box[0] > box[1]) & learned.members.agreed(target)
        values = [
            f"{legible(column.name)} {_agreed_value(learned, target, c)}"
            for c, column in enumerate(learned.space.columns)
            if missing[column.places].any()
        ]
        return f"{whose}, which all have {joined(values)}" if values else whose

    def members(self, case: Situation) -> Members:
        if self.is_set:
            missed = self.missed(case.learned, case.target, case.within_reach())
            removal = "allow any unusual answer: leave out plausible"
            yield self.member(f"the answer must be {missed}", removal=removal)

    def edits(self, case: Situation, member: Member, variant: Variant, answer: Any) -> Edits:
        now = variant.rules.plausible
        for share in LARGER_SHARES:
            if isinstance(now, float) and share > now:
                text = f"allow less usual answers: plausible={share:g}"
                yield Edit(text, partial(Variant.with_rules, plausible=share))

    def ends(self, answer: Moved, c: int, direction: int) -> Iterator[float]:
        """Yield how far the answer stays as usual in its target as asked."""
        column, target = answer.space.columns[c], answer.case.target
        members = answer.case.learned.members_of(answer.case.question.allowed.fixed)
        at, along = column.places[0], direction if column.rising else -direction
        normals, offsets = members.constraints(target, self.value)
        low, high = (side[at] for side in members.ranges(target, self.value))
        slope = normals[:, at] * along
        met = slope > 0
        steps = np.maximum(offsets - product(normals, answer.point), 0.0)[met] / slope[met]
        end = (high if along > 0 else low) - answer.point[at]
        steps = np.append(steps, np.maximum(end * along, 0.0))
        if members.agreed(target)[at]:
            yield answer.number(c)
        elif np.isfinite(steps.min()):
            value = answer.space.values(c, [[answer.point[at] + along * steps.min()]])[0]
            yield direction * np.inf if np.isnan(value) else float(value)


def shares_of(ladder: Iterable[Any]) -> Array:
    """Return the share of the members that each of some rules asks for; NaN for none."""
    return np.array([rules.plausible for rules in ladder], dtype=np.float64)


def _agreed_value(learned: Any, target: int, c: int) -> str:
    """Return the value of a column that all members of a cluster have, as text."""
    column = learned.space.columns[c]
    value = learned.space.values(c, learned.members.means[target][None, column.places])[0]
    if column.kind != "number":
        return level(value)
    known = learned.agreed_values.get(c, np.array([value]))
    return number(float(known[np.abs(known - value).argmin()]), column)
