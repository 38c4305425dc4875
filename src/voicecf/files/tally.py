"""What became of all rows so far: counts, costs, and which columns did the work."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.status import Status

# Costs are counted in bins, each this much wider than the one before: so a median is known to half
# a per cent, however many rows there are, and two tallies can be added.
WIDTH = 0.01
# Columns that the summary names.
NAMED = 8


@dataclass
class Tally:
    """Counts of answers, of a size that does not grow with them.

    Attributes
    ----------
    rows, bad : int
        Rows that were answered, and that could not be read.
    outcomes : dict of str to int
        Answers by status.
    costs : dict of int to int
        Answers that change something, by the logarithm of their cost.
    changed, share : dict of str to number
        By column: answers that change it, and what of their cost falls to it.
    """

    rows: int = 0
    bad: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    costs: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    share: dict[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, answers: Counterfactuals, rows: int, bad: int) -> Tally:
        """Count answers to some rows, beside which others were bad."""
        outcome, moved = answers.outcome, answers.feasible & (answers.status != Status.ALREADY)
        costs = answers.cost[moved & (answers.cost > 0)]
        chosen = slice(None) if moved.all() else moved
        moves, changed = outcome.moves[chosen], outcome.changes[chosen].sum(axis=0)
        price = np.einsum("ij,ij->j", moves, moves) * outcome.weights
        columns = outcome.space.columns
        return cls(
            rows,
            bad,
            {Status(code).name.lower(): n for code, n in _counted(answers.status)},
            {str(at): n for at, n in _counted(np.rint(np.log(costs) / WIDTH).astype(np.int64))},
            {str(c.name): int(n) for c, n in zip(columns, changed, strict=True)},
            {str(c.name): float(price[c.places].sum()) for c in columns},
        )

    def plus(self, more: Tally) -> Tally:
        """Return both together."""
        both = Tally(self.rows + more.rows, self.bad + more.bad)
        for name in ("outcomes", "costs", "changed", "share"):
            counts = getattr(both, name)
            for key, count in (*getattr(self, name).items(), *getattr(more, name).items()):
                counts[key] = counts.get(key, 0) + count
        return both

    @property
    def answers(self) -> int:
        """Number of answers."""
        return sum(self.outcomes.values())

    @property
    def feasible(self) -> int:
        """Number of answers that there are."""
        return sum(self.outcomes.get(name, 0) for name in ("optimal", "already", "stopped"))

    @property
    def median_cost(self) -> float | None:
        """Median cost of the answers that change something, to half a per cent."""
        total, seen = sum(self.costs.values()), 0
        for at in sorted(self.costs, key=int):
            seen += self.costs[at]
            if 2 * seen >= total:
                return float(np.exp(int(at) * WIDTH))
        return None

    def text(self) -> str:
        """Say it in a few lines."""
        ordered = sorted(self.outcomes.items(), key=lambda item: -item[1])
        outcomes = ", ".join(f"{count:,} {name}" for name, count in ordered) or "none"
        lines = [f"{self.rows:,} rows, {self.answers:,} answers: {outcomes}"]
        if self.bad:
            lines.append(f"{self.bad:,} rows were left out")
        if self.answers:
            lines.append(f"feasible: {self.feasible / self.answers:.1%}")
        if self.median_cost is not None:
            lines.append(f"median cost: {self.median_cost:.3g}")
            lines += self._column_lines()
        return "\n".join(lines) + "\n"

    def _column_lines(self) -> list[str]:
        """Tell which columns do the work: how often they change, and what of the cost is theirs."""
        moved = sum(self.costs.values())
        total = sum(self.share.values()) or 1.0
        names = sorted(self.changed, key=lambda name: (-self.share[name], -self.changed[name]))
        names = [name for name in names if self.changed[name]]
        shown = names[:NAMED]
        width = max((len(name) for name in shown), default=0)
        lines = ["columns that do the work:"] if shown else []
        for name in shown:
            often, part = self.changed[name] / moved, self.share[name] / total
            lines.append(f"  {name:<{width}}  in {often:4.0%} of the answers, {part:4.0%} of cost")
        if len(names) > NAMED:
            lines.append(f"  and {len(names) - NAMED} more")
        return lines


def _counted(values: Any) -> list[tuple[int, int]]:
    """Return the distinct values, and how often each is there."""
    distinct, counts = np.unique(values, return_counts=True)
    return list(zip(distinct.tolist(), counts.tolist(), strict=True))
