"""A question: rows, the changes that are allowed, the targets, and the objective."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from voicecf.errors import TargetError, likely, listed
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.learned.learned import Learned
from voicecf.rules.allowed import Allowed
from voicecf.rules.choices import Freedom
from voicecf.rules.prices import PRICE
from voicecf.rules.rules import Rules
from voicecf.rules.tariff import Tariff
from voicecf.table.frames import is_every, taken
from voicecf.table.rows import Rows

# Default for the largest number of nodes of branch and bound for a row and target.
LIMIT = 20_000


@dataclass(frozen=True, eq=False)
class Question:
    """Rows to explain, the changes that are allowed, and the objective.

    Attributes
    ----------
    learned : Learned
    rows : Rows
        The rows, before any change.
    source : array of shape (n,)
        The cluster of each row.
    allowed : Allowed
        The changes that are allowed for each row.
    objective : "cost", "prefix", "fewest" or "price"
    limit : int
        Largest number of nodes of branch and bound for a row and target.
    """

    learned: Learned
    rows: Rows
    source: Ints
    allowed: Allowed
    objective: str = "cost"
    limit: int = LIMIT

    @property
    def points(self) -> Array:
        """Coordinates of the rows."""
        return self.rows.points

    @property
    def weights(self) -> Array:
        """Weights of the coordinates in the cost, times the user's cost factors."""
        return self.learned.weights * self.allowed.factors

    @property
    def metric(self) -> Array:
        """Diagonal metric in which the solver minimises the move: weights + delta."""
        return self.weights + self.learned.delta

    @cached_property
    def tariff(self) -> Tariff | None:
        """Prices of changes; None if the objective is not the price."""
        if self.objective != PRICE:
            return None
        return Tariff.of(self.allowed.rules.terms(self.learned.space), self.rows)

    def price(self, rows: Ints, answers: Array) -> Array:
        """Return the price of each answer; NaN if the objective is not the price."""
        if self.tariff is None:
            return np.full(len(answers), np.nan)
        before = self.points if is_every(rows, len(self.points)) else self.points[rows]
        return self.tariff.price(before, answers, rows)

    @property
    def first_factor(self) -> float:
        """Factor on the slack for rounding to begin with: none if the model can be asked instead.

        Listed values often lie on a border. Among any numbers the answer always does, so that half
        of the answers without slack would have to be solved again.
        """
        choices = self.allowed.choices
        if choices is None or not self.learned.repeatable:
            return 1.0
        return float((choices.freedom[~choices.fixed] == Freedom.ANY).any())

    @cached_property
    def ladder(self) -> tuple[Rules, ...]:
        """The rules that are tried one after the other, until a pair has an answer."""
        return self.allowed.rules.ladder(self.learned, self.objective)

    def at(self, step: int) -> Question:
        """Return the question with the rules of one step of the ladder."""
        rules = self.ladder[step]
        if rules is self.allowed.rules:
            return self
        return replace(self, allowed=replace(self.allowed, rules=rules))

    def leaves_bounds(self, rows: Ints) -> Mask:
        """Tell which rows, or answers for them, may lie outside the learned bounds.

        It decides how far answers keep from the border where costs are given, and False for all
        rows where they are not.
        """
        if (self.allowed.factors == 1.0).all():
            return np.zeros(len(rows), dtype=np.bool_)
        points, (lo, hi) = taken(self.points, rows), self.learned.bounds.box
        boxes = map(np.atleast_2d, self.allowed.box)
        least, most = (side[rows] if len(side) > 1 else side for side in boxes)
        within = (np.minimum(points, least) >= lo) & (np.maximum(points, most) <= hi)
        return np.asarray(~(within & np.isfinite(hi - lo)).all(axis=1))

    def exponents(self, rows: Ints) -> Ints:
        """Return, for each row, the least power of two times the size of the data that bounds it.

        It decides how far linear rules are loosened for rounding. An answer must not depend on the
        other rows of its batch, so rows of different sizes have different regions.
        """
        if not self.allowed.linear:
            return np.zeros(len(rows), dtype=np.int64)
        sizes = np.abs(taken(self.points, rows)) / self.learned.largest
        return np.asarray(np.frexp(sizes.max(axis=1))[1].clip(min=0), dtype=np.int64)

    def allowed_in(self, target: int) -> Allowed:
        """Return what is allowed, with what the rules say of answers in a target."""
        allowed = self.allowed
        for rule in allowed.rules.active():
            allowed = rule.in_target(allowed, self.learned, target)
        return allowed

    def within_reach(self, row: int, target: int) -> tuple[Array, Array]:
        """Return the least and the largest coordinates that the rules allow a row in a target."""
        lo, hi = (np.atleast_2d(side) for side in self.allowed_in(target).box)
        return lo[row % len(lo)], hi[row % len(hi)]

    @property
    def ends(self) -> dict[int, Array]:
        """Values of some columns, in the user's units, that answers have exactly, ascending."""
        ends = self.allowed.ends
        for rule in self.allowed.rules.active():
            exact = rule.exact_values(self.learned).items()
            ends |= {c: np.union1d(values, ends.get(c, values)) for c, values in exact}
        return ends

    def holds(self, rows: Ints, targets: Ints, changed: Rows) -> Mask:
        """Tell which changed rows satisfy the rules that no box describes.

        `rows` has the position of each among the rows of the question; `changed` are in the user's
        columns, and read.
        """
        holds = self.allowed.holds(self.learned.space, self.rows, rows, changed)
        for rule in self.allowed.rules.active():
            holds &= rule.holds(self.allowed, self.learned, targets, changed.points)
        return holds

    def with_changes(self, most: int) -> Question:
        """Return the question with at most `most` changed columns."""
        choices = self.allowed.choices
        assert choices is not None
        few = replace(choices, changes=min(most, choices.changes))
        return replace(self, allowed=replace(self.allowed, choices=few))


@dataclass(frozen=True)
class Pairs:
    """Pairs of row and target.

    Attributes
    ----------
    row : array of shape (n,)
    target : array of shape (n,) or None
        None means the cheapest of all other clusters.
    named : bool
        Whether the user named the targets.
    """

    row: Ints
    target: Ints | None
    named: bool = True

    @classmethod
    def of(cls, target: Any, source: Ints, learned: Learned) -> Pairs:
        """Return the pairs of a user's target: a cluster, one per row, "nearest" or "each"."""
        every = np.arange(len(source))
        if isinstance(target, str) and target == "nearest":
            return cls(every, None, named=False)
        if isinstance(target, str) and target == "each":
            return cls.each(source, learned.n_clusters)
        return cls(every, read_target(target, len(source), learned))

    def __getitem__(self, which: Ints) -> Pairs:
        """Return some of the pairs."""
        target = None if self.target is None else self.target[which]
        return replace(self, row=self.row[which], target=target)

    @classmethod
    def each(cls, source: Ints, k: int) -> Pairs:
        """Pair each row with every cluster but its own, ascending."""
        others = np.tile(np.arange(k - 1), (len(source), 1))
        others += others >= source[:, None]
        return cls(np.repeat(np.arange(len(source)), k - 1), others.ravel(), named=False)


def read_target(target: Any, n: int, learned: Learned) -> Ints:
    """Return the target of each row, or raise an error that names the clusters."""
    given, k = target, learned.n_clusters
    if learned.partition.classes is not None:
        target = _of_classes(target, n, learned)
    target = _numbered(target, learned.names)
    try:
        targets = np.asarray(target)
    except ValueError:
        targets = np.empty(0)
    if n == 0 and targets.size == 0 and targets.ndim == 1:
        return np.empty(0, dtype=np.int64)
    if targets.dtype.kind in "iu" and targets.ndim == 1 and len(targets) != n:
        raise TargetError(
            f"target lists {len(targets)} clusters; give {n}, one for each row, or a single one "
            "for all rows."
        )
    if targets.dtype.kind not in "iu" or targets.shape not in ((), (n,)):
        raise TargetError(
            f"target={_shortened(given)} is not known; use a cluster (0 to {k - 1}), an array of "
            f'{n} of them, "nearest" or "each".'
        )
    if targets.size and not (targets.min() >= 0 and targets.max() < k):
        unknown = targets[(targets < 0) | (targets >= k)]
        raise TargetError(
            f"target={unknown[0]} names no cluster: this model has 0 to {k - 1}. "
            "See voice.predict(X)."
        )
    return np.array(np.broadcast_to(targets, (n,)), dtype=np.int64, order="C")


def _of_classes(target: Any, n: int, learned: Learned) -> Any:
    """Return a target with the numbers of labels in place of what the model's predict returns."""
    known = dict(zip(learned.partition.classes or (), range(learned.n_clusters), strict=True))
    known |= {name: t for t, name in enumerate(learned.names) if name not in known}
    several = np.ndim(target) == 1 and not isinstance(target, str)
    targets = np.asarray(target, dtype=object).tolist() if several else [target]
    for one in targets:
        if not isinstance(one, Hashable) or one not in known:
            choices = listed(learned.partition.classes or ())
            raise TargetError(
                f"target={_shortened(one)} is no class of this model: it has {choices}. Use one, a "
                f'list of {n} of them, "nearest" or "each".'
            )
    return [known[one] for one in targets] if several else known[target]


def _numbered(target: Any, names: tuple[str, ...]) -> Any:
    """Return a target with the numbers of clusters in place of their names."""
    if isinstance(target, str):
        if target not in names:
            raise TargetError(
                f"target={target[:60]!r} is not known; use a cluster (0 to {len(names) - 1}), its "
                f'name, "nearest" or "each": {likely(target, names)}'
            )
        return names.index(target)
    numeric = getattr(getattr(target, "dtype", None), "kind", "O") in "iuf"
    if numeric or not isinstance(target, Iterable):
        return target
    targets = list(target)
    named = any(isinstance(one, str) for one in targets)
    return [_numbered(one, names) for one in targets] if named else target


def _shortened(value: Any) -> str:
    """Return what a user wrote, at most 60 characters of it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
