"""The rule `probability`: answers that the model itself is this sure of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from voicecf.errors import OptionError
from voicecf.geometry.arrays import Array, Ints, Mask, product
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.rules.condition import LeftOut, Members, Situation
from voicecf.rules.rule import Rule, number_of
from voicecf.rules.sides import as_number
from voicecf.table.wording import legible

if TYPE_CHECKING:
    from voicecf.rules.allowed import Allowed

# Times the tolerance by which linear rules are loosened, the constraint is tightened: a model's
# predict_proba rounds, too, and otherwise in a batch.
TIGHTER = 4.0


class Probability(Rule):
    """The least probability of the target, by the model's predict_proba, such as 0.8.

    It is for a logistic regression of two classes, where rows of one probability lie in a plane. A
    row that is in its target already moves only with ``deepen=True``.
    """

    word = kind = "probability"
    left_out = LeftOut.USUAL
    takes = "float in (0, 1)"
    help = "least probability of the target, for a logistic regression of two classes"
    arguments: ClassVar[dict[str, Any]] = {"metavar": "SHARE"}
    by_target = True

    @classmethod
    def checked(cls, value: Any) -> Any:
        number = as_number(value)
        if number is None or not 0 < number < 1:
            raise OptionError(
                f"probability={value!r} must be a number above 0 and below 1, such as 0.8."
            )
        return number

    @classmethod
    def parsed(cls, arguments: Any) -> Any:
        return number_of(arguments, "--probability")

    def check_question(self, learned: Any, allowed: Allowed, objective: str) -> None:
        if learned.partition.log_odds(0) is None:
            raise OptionError(
                f"probability={self.value} needs a logistic regression of two classes: of other "
                "models, rows of one probability lie on no plane, or there are no probabilities. "
                "Use margin or contraction of VoICE(model, ...) to stay off the border."
            )

    def in_target(self, allowed: Allowed, learned: Any, target: int) -> Allowed:
        """Add the constraint that the log-odds of the target are high enough."""
        slopes, constant = learned.partition.log_odds(target)
        mixing = learned.space.mixing
        if mixing is not None:
            constant = constant + float(product(slopes, mixing.shift))
            slopes = product(slopes[None], mixing.matrix)[0]
        least = float(np.log(self.value) - np.log1p(-self.value))
        sizes = abs(constant) + abs(least) + float(product(np.abs(slopes), learned.largest))
        offset = constant - least - TIGHTER * TOLERANCE.rule * sizes
        return allowed.with_constraints(-slopes[None], np.array([offset]))

    def holds(self, allowed: Allowed, learned: Any, targets: Ints, points: Array) -> Mask:
        probabilities = learned.partition.probabilities(learned.seen(points))
        return np.asarray(probabilities[np.arange(len(points)), targets] >= self.value)

    def missed(self, learned: Any, target: int, box: tuple[Array, Array]) -> str:
        name = legible(learned.names[target])
        return f"{name} with a probability of at least {self.value:.6g}"

    def members(self, case: Situation) -> Members:
        if self.is_set:
            missed = self.missed(case.learned, case.target, case.within_reach())
            removal = "allow any probability: leave out probability"
            yield self.member(f"the answer must be {missed}", removal=removal)
