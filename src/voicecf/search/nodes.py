"""Nodes of the search over boxes: what the columns of one row may still do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voicecf.geometry.arrays import Ints
from voicecf.rules.choices import Choices, Freedom
from voicecf.rules.splits import Intervals

# Plain integers, since comparing numpy's integers with those of an enumeration is slow.
ANY, LEVELS = int(Freedom.ANY), int(Freedom.LEVELS)
# Attributes of a node that are lines of the arrays of `Choices`.
LINES = ("stay", "allowed", "least", "most", "lo", "hi")


@dataclass(frozen=True, eq=False)
class Node:
    """What the columns of one row may still do.

    Attributes
    ----------
    problem : int
        Which problem it belongs to.
    stay, allowed, least, most, lo, hi : array
        Lines of the arrays of `Choices`.
    boxes : tuple of arrays of int, or None
        For each rule about columns that belong together, its boxes that are left; None as long as
        the node was not narrowed to them.
    """

    problem: int
    stay: Any
    allowed: Any
    least: Any
    most: Any
    lo: Any
    hi: Any
    boxes: tuple[Ints | None, ...]

    @classmethod
    def root(cls, problem: int, choices: Choices, row: int, boxes: tuple[Any, ...]) -> Node:
        """Return the node of all choices of a row."""
        sides = {name: getattr(choices, name) for name in LINES}
        lines = {name: side[row if len(side) > 1 else 0] for name, side in sides.items()}
        return cls(problem, **lines, boxes=boxes)

    def copy(self, boxes: tuple[Ints | None, ...]) -> Node:
        """Return a node whose arrays can be changed, with other boxes."""
        return Node(
            self.problem, self.stay.copy(), self.allowed.copy(), self.least.copy(),
            self.most.copy(), self.lo.copy(), self.hi.copy(), boxes,
        )  # fmt: skip

    def narrow(self, choices: Choices, c: int, within: Intervals, which: Any) -> None:
        """Allow a number column only what lies between the ends of some intervals."""
        if choices.freedom[c] == ANY:
            at = choices.member[choices.first[c]]
            self.lo[at] = max(self.lo[at], within.lo[which].min())
            self.hi[at] = min(self.hi[at], within.hi[which].max())
        elif (within.first[which] <= within.last[which]).any():
            filled = within.first[which] <= within.last[which]
            self.least[c] = max(self.least[c], within.first[which][filled].min())
            self.most[c] = min(self.most[c], within.last[which][filled].max())
        else:
            self.most[c] = self.least[c] - 1

    def narrow_levels(self, choices: Choices, c: int, levels: Any) -> None:
        """Allow a category only some of its levels."""
        listed = np.where(choices.freedom == LEVELS, choices.count, 0)
        begin = int(listed[:c].sum())
        self.allowed[begin : begin + int(listed[c])] &= levels


def side_by_side(choices: Choices, nodes: Sequence[Node], rows: Ints) -> Choices:
    """Return the choices of nodes, a line each; `rows` has the row of each node."""
    lines: dict[str, Any] = {n: np.stack([getattr(node, n) for node in nodes]) for n in LINES}
    return replace(choices, points=choices.points[rows], **lines)
