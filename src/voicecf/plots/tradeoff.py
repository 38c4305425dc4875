"""What each further change saves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import DataError, OptionError
from voicecf.geometry.arrays import Array, Ints
from voicecf.output.calling import cluster_name, row_name
from voicecf.plots.display import Canvas, Display, fit
from voicecf.table.frames import Kind, table
from voicecf.table.wording import compact, counted, legible, opening


@dataclass(frozen=True, eq=False)
class Tradeoff(Display):
    """The least cost of a row's move with 1, 2, 3, ... changed columns.

    Attributes
    ----------
    allowed : array of shape (n,)
        Number of columns that may change, and
    changes : array of shape (n,)
        that do.
    cost : array of shape (n,)
        The least cost then.
    columns : list of list of str
        What is changed, the costliest first.
    row, source, target : int
    row_name, target_name : str
        What row and target are called.

    Examples
    --------
    >>> from voicecf import VoICE
    >>> from voicecf.plots import Tradeoff
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 1.0]], feature_names=["age", "cars"])
    >>> found = Tradeoff.from_counterfactuals(voice.tradeoff([[0.0, 0.0]], target=1))
    >>> found.cost.round(3).tolist(), found.columns
    ([2.258, 2.125], [['age'], ['age', 'cars']])
    """

    allowed: Ints
    changes: Ints
    cost: Array
    columns: list[list[str]]
    row: int
    source: int
    target: int
    kind: Kind | None = None
    row_name: str = ""
    target_name: str = ""

    @classmethod
    def from_counterfactuals(cls, cf: Counterfactuals) -> Tradeoff:
        """Read the answers of ``voice.tradeoff(one_row)``."""
        if len(cf) == 0:
            raise DataError("there are no answers: a row that is in its target has no tradeoff.")
        pairs = {(int(r), int(t)) for r, t in zip(cf.row, cf.target, strict=True)}
        if len(pairs) > 1:
            raise OptionError(
                f"a tradeoff is of one row and target; here are {len(pairs)}. Pick one: "
                f"cf[(cf.row == {cf.row[0]}) & (cf.target == {cf.target[0]})]."
            )
        row, source, target = int(cf.row[0]), int(cf.source[0]), int(cf.target[0])
        found = cf[cf.feasible]
        found = found[np.argsort(found.cardinality, kind="stable")]
        names = [
            [legible(found.outcome.space.names[c]) for c in found.outcome.changed(i)]
            for i in range(len(found))
        ]
        return cls(
            found.cardinality, found.n_changed, found.cost, names, row, source, target, cf.kind,
            row_name(cf.outcome.rows, row), cluster_name(cf.outcome.learned, target),
        )  # fmt: skip

    def table(self) -> Any:
        """Return a line a step: allowed, changes, cost, columns."""
        names = np.array([", ".join(names) for names in self.columns], dtype=str)
        return table(
            {
                "allowed": self.allowed, "changes": self.changes, "cost": self.cost,
                "columns": names,
            },
            self.kind,
        )  # fmt: skip

    def _size(self, **how: Any) -> tuple[float, float]:
        return 7.2, 1.5 + 0.46 * max(len(self.cost), 1)

    def _draw(self, canvas: Canvas, **how: Any) -> None:
        """Draw the cost of each step, and name the columns that it changes."""
        ax, style = canvas.ax, canvas.style
        n = len(self.cost)
        largest = float(self.cost.max(initial=0.0)) or 1.0
        ax.set(xlim=(0, largest * 1.12), ylim=(max(n, 1) - 0.3, -0.75))
        room = 0.98 * canvas.width
        bold: dict[str, Any] = {"color": style.ink, "fontweight": "bold"}
        fill = style.color(self.target)
        for at, (cost, names) in enumerate(zip(self.cost.tolist(), self.columns, strict=True)):
            ax.plot([0, cost], [at, at], color=style.rule, lw=3, solid_capstyle="butt", zorder=1)
            canvas.mark(cost, at, self.target, fill, ms=8, mew=1.1, zorder=3, clip_on=False)
            canvas.write_small(cost + 0.02 * largest, at, compact(cost), **bold)
            fit(canvas.write_small(0, at - 0.33, ", ".join(names)), room)
        canvas.name_lines(np.arange(n), [counted(int(c), "change") for c in self.changes])
        canvas.name_axes("cost")
        canvas.head(self._title(), self._note())

    def _title(self) -> str:
        if not len(self.cost):
            return opening(f"{self.row_name} cannot move to {self.target_name}")
        return f"What each further change saves {self.row_name} on its way to {self.target_name}"

    def _note(self) -> str:
        if not len(self.cost):
            return "There is no allowed answer, whatever the number of changes."
        if len(self.cost) == 1:
            return (
                f"With {counted(int(self.changes[0]), 'change')} it costs least: more save nothing."
            )
        saved = 1 - self.cost[-1] / self.cost[0] if self.cost[0] > 0 else 0.0
        return (
            f"From {counted(int(self.changes[0]), 'change')}, the fewest that will do, to "
            f"{int(self.changes[-1])}, after which more save nothing: {saved:.0%} less cost."
        )
