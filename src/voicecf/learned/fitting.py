"""Learn what an explainer needs from a fitted model and its data: bounds, spread, contraction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal
from warnings import warn

import numpy as np

from voicecf.errors import (
    DataError,
    EmptyClusterWarning,
    ModelError,
    OptionError,
    RoundingWarning,
    known_option,
    listed,
)
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.models import partition_of
from voicecf.geometry.partition import Partition
from voicecf.geometry.pullback import Mixing, origins
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.learned.learned import Learned
from voicecf.learned.members import Members
from voicecf.learned.offers import formulas_of
from voicecf.rules.allowed import DefaultBounds
from voicecf.rules.columns import column_of
from voicecf.rules.sides import as_number, read_sides
from voicecf.table.column import Column
from voicecf.table.learning import learn_rows
from voicecf.table.model import split_pipeline
from voicecf.table.rows import Rows
from voicecf.table.space import Space
from voicecf.table.stream import Blocks, Stream

# Smallest contraction that is learned from data.
LEAST_ALPHA = 0.01
# Targets that are no names of clusters.
NO_NAMES = ("nearest", "each")

# The rows to learn from, and the cluster of each.
Labelled = Blocks[tuple[Rows, Ints]]


@dataclass(frozen=True)
class Options:
    """Options of an explainer; see `VoICE`, which has the same parameters."""

    contraction: Literal["retain"] | float = 1.0
    retain: float = 1.0
    contract_bounds: bool = False
    bounds: Any = None
    ranking: Any = "columns"
    delta: float = 0.0
    margin: float = 0.0
    categories: Any = None
    names: Any = None
    units: Any = None

    def check(self) -> None:
        """Raise OptionError if the value of an option is not allowed."""
        if isinstance(self.contraction, str):
            known_option(self.contraction, ("retain",), "contraction")
        else:
            _check_share(self.contraction, "contraction")
        _check_share(self.retain, "retain")
        if isinstance(self.bounds, str):
            known_option(self.bounds, ("data",), "bounds")
        if isinstance(self.ranking, str):
            known_option(self.ranking, ("weights", "columns"), "ranking")
        if as_number(self.delta) is None or not 0 < self.delta < np.inf:
            raise OptionError(f"delta={self.delta!r} must be a positive number, such as 1e-9.")
        if as_number(self.margin) is None or not 0 <= self.margin < 1:
            raise OptionError(f"margin={self.margin!r} must be a number in [0, 1).")

    def with_units(self, space: Space) -> list[Column]:
        """Return the columns of a space with their units."""
        columns, units = list(space.columns), {} if self.units is None else self.units
        if not isinstance(units, Mapping):
            raise OptionError(f'units must be a dict such as {{"basket": "€"}}; got {units!r}.')
        for name, unit in units.items():
            c = column_of(space, name, "units")
            if not columns[c].numeric:
                raise OptionError(
                    f"units: column {columns[c].name!r} is a category, whose levels have no unit; "
                    "leave it out."
                )
            if not isinstance(unit, str) or not unit.strip() or not unit.isprintable():
                raise OptionError(
                    f"units[{name!r}]={unit!r} is not allowed; use a text such as € or kg."
                )
            columns[c] = replace(columns[c], unit=unit.strip())
        return columns

    def cluster_names(self, partition: Partition) -> tuple[str, ...]:
        """Return what each cluster is called, from a list of names or a dict of some of them."""
        k, classes = partition.n_clusters, partition.classes
        own = [f"cluster {t}" for t in range(k)]
        if classes is not None:
            own = [c if isinstance(c, str) and c.strip() else f"class {c}" for c in classes]
            own = [f"class {name}" if name in NO_NAMES else name for name in own]
        names = {} if self.names is None else self.names
        if isinstance(names, str) or not isinstance(names, (Mapping, Sequence, np.ndarray)):
            raise OptionError(
                f"names={names!r} is not allowed; use a list of {k} names, or a dict from cluster "
                "to name."
            )
        if not isinstance(names, Mapping):
            if len(names) != k:
                raise OptionError(
                    f"names has {len(names)} names, and the model has {k} clusters; use a dict to "
                    "name some of them."
                )
            names = dict(enumerate(names))
        if classes is not None and self.names is not None and isinstance(self.names, Mapping):
            if unknown := [c for c in names if c not in classes]:
                raise OptionError(
                    f"names[{unknown[0]!r}] names no class: this model has {listed(classes)}."
                )
            names = {classes.index(c): name for c, name in names.items()}
        if unknown := [t for t in names if isinstance(t, bool) or t not in range(k)]:
            raise OptionError(
                f"names[{unknown[0]!r}] names no cluster: this model has 0 to {k - 1}. See "
                "voice.predict(X)."
            )
        for t, name in names.items():
            if not isinstance(name, str) or not name.strip() or name in NO_NAMES:
                raise OptionError(
                    f"names[{t}]={name!r} is not allowed; use a text, neither blank nor "
                    f"{listed(NO_NAMES)}."
                )
        called = [str(names.get(t, own[t])) for t in range(k)]
        if len(set(called)) < k:
            twice = [name for name in dict.fromkeys(called) if called.count(name) > 1]
            raise OptionError(f"names must differ; used twice: {listed(twice)}.")
        return tuple(called)


def learn(X: Any, model: Any, options: Options) -> Learned:
    """Learn from a fitted model and data, in memory or as a stream."""
    stream = X if isinstance(X, Stream) else Stream.table(X)
    steps, last = split_pipeline(model)
    partition = partition_of(last)
    columns = {"categories": options.categories, "order": getattr(last, "feature_names_in_", None)}
    space, data = learn_rows(steps, stream, partition.dtype, **columns)
    learned = _without_data(model, partition, space, options)
    labelled = Blocks(data, partial(_labelled, learned), cached=stream.in_memory)
    low, high, middle = _checked_range(learned, labelled)
    learned = _located(learned, labelled)
    partition = learned.partition
    _warn_of_rounding(partition)
    learned = replace(learned, spread=high - low)
    if space.mixing is not None:
        near = origins(space.mixing, partition.centers, middle)
        learned = replace(learned, origins=near)
    learned = replace(learned, bounds=_around_data(learned, data))
    learned = replace(learned, alpha=_contraction(learned, labelled, options))
    if stream.in_memory:
        learned = replace(learned, derived=formulas_of(space, data))
    near = learned.origins[[partition.pieces_of(t)[0] for t in range(partition.n_clusters)]]
    return replace(
        learned,
        members=Members.of(
            near, lambda: ((rows.points, labels) for rows, labels in labelled), learned.space.coded
        ),
    )


def _labelled(learned: Learned, rows: Rows) -> tuple[Rows, Ints]:
    """Return rows and their clusters, or raise if the model was fitted on other columns."""
    width, expected = rows.seen.shape[1], learned.partition.n_inputs
    if width != expected:
        raise DataError(f"X has {width} columns; the model was fitted on {expected}.")
    return rows, learned.labels(rows)


def learn_from_partition(
    partition: Partition, names: list[Any] | None, options: Options
) -> Learned:
    """Learn from a partition alone, without data."""
    d = partition.n_inputs
    partition = partition.located(np.full_like(partition.centers, np.nan))
    columns = [f"x{i}" for i in range(d)] if names is None else names
    if len(set(map(str, columns))) != d:
        raise DataError(f"feature_names must be {d} different names, one per column of centers.")
    learned = _without_data(None, partition, Space.plain(columns, names is not None), options)
    return replace(learned, spread=np.ptp(partition.centers, axis=0))


def _without_data(model: Any, partition: Partition, space: Space, options: Options) -> Learned:
    """Return what follows from the model and the options alone."""
    d, k = space.n_coordinates, partition.n_clusters
    space.use(options.with_units(space))
    weights = partition.weights if space.mixing is None else _weights(space.mixing, partition)
    fixed = 1.0 if isinstance(options.contraction, str) else float(options.contraction)
    learned = Learned(
        model, partition, space, weights, partition.centers, np.zeros(d),
        _default_bounds(space, options.bounds), np.full(k, fixed), np.arange(len(space.columns)),
        options.delta, options.margin, options.contract_bounds, options.cluster_names(partition),
    )  # fmt: skip
    scores = _scores(learned, options.ranking)
    by_weight = isinstance(options.ranking, str) and options.ranking == "weights"
    return replace(
        learned,
        ranking=np.argsort(-scores, kind="stable"),
        ranks_equally=by_weight and len(scores) > 1 and bool((scores == scores[0]).all()),
    )


def _weights(mixing: Mixing, partition: Partition) -> Array:
    """Return the weights of coordinates that are mixed: equal, or as in the model's distance."""
    if mixing.weighted:
        return np.asarray(partition.weights @ mixing.matrix**2)
    return np.full(mixing.matrix.shape[1], 1.0 / mixing.matrix.shape[1])


def _checked_range(learned: Learned, labelled: Labelled) -> tuple[Array, Array, Array]:
    """Check all rows; return the minimum, maximum and mean of each coordinate."""
    partition = learned.partition
    low, high, n_other, n_rows, total = np.inf, -np.inf, 0, 0, 0.0
    for rows, labels in labelled:
        n_rows += len(labels)
        pieces, doubtful = partition.assign(rows.seen)
        n_other += int(((labels != partition.label_of[pieces]) & ~doubtful).sum())
        low = np.minimum(low, rows.points.min(axis=0))
        high = np.maximum(high, rows.points.max(axis=0))
        total = total + rows.points.sum(axis=0)
    if n_other:
        raise ModelError(
            f"{type(partition.model).__name__}.predict assigns {n_other} of {n_rows} rows to "
            f"another cluster than {partition.rule}"
        )
    return np.asarray(low), np.asarray(high), np.asarray(total / n_rows)


def _located(learned: Learned, labelled: Labelled) -> Learned:
    """Return a copy with a point inside each piece: where the model tells none, the members' mean.

    What the data has no members of gets a point as far inside as possible.
    """
    partition = learned.partition
    if not np.isnan(partition.centers).any():
        return learned
    sums, counts = np.zeros((partition.n_pieces, partition.n_inputs)), np.zeros(partition.n_pieces)
    for rows, labels in labelled:
        pieces = partition.pieces_at(rows.seen, labels)
        np.add.at(sums, pieces, rows.seen)
        counts += np.bincount(pieces, minlength=len(counts))
    means = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1.0)[:, None], np.nan)
    partition = partition.located(means)
    return replace(learned, partition=partition, origins=partition.centers)


def _warn_of_rounding(partition: Partition) -> None:
    """Warn if the model cannot tell some clusters apart, so that no answer is safe there."""
    indistinct = partition.indistinct()
    if len(indistinct):
        warn(
            f"clusters {listed(indistinct.tolist())} are so close to others, compared with the "
            f"size of the numbers, that rounding in {type(partition.model).__name__}.predict can "
            "confuse them: answers there may be unresolved. Scale the columns, for example with "
            "StandardScaler in a Pipeline before the clustering.",
            RoundingWarning,
            stacklevel=5,
        )


def _default_bounds(space: Space, bounds: Any) -> DefaultBounds:
    """Return the bounds of option `bounds`: none, the observed range, or the user's own."""
    d = len(space.columns)
    if bounds is None:
        lo, hi = np.full(d, -np.inf), np.full(d, np.inf)
    elif isinstance(bounds, str):
        lo, hi = np.array([column.observed for column in space.columns]).T.copy()
    else:
        lo, hi = read_sides(bounds, d)
    return DefaultBounds(lo, hi, space.inward(*space.box(lo, hi)))


def _around_data(learned: Learned, data: Blocks[Rows]) -> DefaultBounds:
    """Return the bounds with a box that contains all data on its border, despite rounding."""
    bounds, space = learned.bounds, learned.space
    if space.is_plain:
        return bounds
    lo, hi = space.box(bounds.lo, bounds.hi)
    lows, highs = zip(*(_border_range(rows.points, lo, hi) for rows in data), strict=True)
    box = space.inward(np.min([lo, *lows], axis=0), np.max([hi, *highs], axis=0))
    return DefaultBounds(bounds.lo, bounds.hi, box)


def _border_range(points: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Return the minimum of the points on the lower bound, the maximum of those on the upper one.

    A point is on a bound if it equals the bound up to rounding.
    """
    tolerance = TOLERANCE.border
    with np.errstate(invalid="ignore"):
        low = np.where(np.abs(points - lo) <= tolerance * np.abs(lo), points, np.inf).min(axis=0)
        high = np.where(np.abs(points - hi) <= tolerance * np.abs(hi), points, -np.inf).max(axis=0)
    return low, high


def _contraction(learned: Learned, labelled: Labelled, options: Options) -> Array:
    """Return for each cluster the least alpha that keeps a share `retain` of its members."""
    if options.contraction != "retain":
        return learned.alpha
    k, retain = learned.n_clusters, options.retain
    scores: list[list[Array]] = [[] for _ in range(k)]
    for rows, labels in labelled:
        for t in np.unique(labels):
            of_members = learned.scores(int(t), rows, labels == t)
            scores[t].append(of_members if retain < 1 else of_members.max(keepdims=True))
    alpha = np.ones(k)
    for t in np.flatnonzero([len(blocks) > 0 for blocks in scores]):
        ascending = np.sort(np.concatenate(scores[t]))
        retained = max(int(np.ceil(retain * len(ascending) - TOLERANCE.retained)), 1)
        alpha[t] = max(ascending[retained - 1], LEAST_ALPHA)
    if empty := [t for t in range(k) if not scores[t]]:
        warn(
            f"clusters {empty} have no rows in X; their cells are not contracted.",
            EmptyClusterWarning,
            stacklevel=4,
        )
    return alpha


def _scores(learned: Learned, ranking: Any) -> Array:
    """Return a score for each column, the highest for the most important one."""
    columns = learned.space.columns
    if isinstance(ranking, str):
        share = learned.importance if ranking == "weights" else np.zeros_like(learned.weights)
        scores = np.array([share[column.places].sum() for column in columns])
    else:
        try:
            scores = np.asarray(ranking, dtype=np.float64)
        except (TypeError, ValueError):
            scores = np.empty(0)
        if scores.shape != (len(columns),) or np.isnan(scores).any():
            raise OptionError(
                f"ranking must be {len(columns)} scores, one per column; the highest comes first."
            )
    return scores


def _check_share(value: Any, option: str) -> None:
    """Raise OptionError if the value of an option is no share in (0, 1]."""
    if as_number(value) is None or not 0 < value <= 1:
        raise OptionError(f"{option}={value!r} must be a number in (0, 1].")
