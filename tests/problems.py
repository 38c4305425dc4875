"""Random projection problems, half of them degenerate, whose feasibility is known by construction.

`problem(seed, index)` is reproducible from these two numbers alone; `problems(seed, count)` walks
over the indices. A problem is: minimise sum_i q_i (z_i - a_i)^2 for every point a, subject to
G (z - origin) <= h and lo <= z <= hi.

Truth is kept decidable in floating point. A region called feasible has a `witness` that satisfies
every row exactly (integers, or an origin in the witness itself) or by a margin; a region called
infeasible has a `proof`, a Farkas vector whose relative margin is at least 1e-6. What is neither is
called None. Rescaling is by powers of two only, so it changes no truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy import inf, ndarray
from numpy.random import Generator

DELTA = 1e-9  # the least metric weight, as in the explainer
HOLDS = 1e-9  # a witness with at least this relative slack in every row decides "feasible"
FAILS = 1e-6  # a Farkas vector with at least this relative margin decides "infeasible"


@dataclass(frozen=True)
class Problem:
    """Points to project, one region (with one box, or one box a point), a metric and the truth.

    `lo` and `hi` are (d,) or (n, d). `truth[i]` says whether point i has a feasible answer: True,
    False, or None where construction does not tell. `witness` (n, d) is feasible where truth is
    True; `proof` (n, m) is a Farkas vector where truth is False; both are NaN elsewhere.
    """

    family: str
    points: ndarray
    G: ndarray
    h: ndarray
    lo: ndarray
    hi: ndarray
    origin: ndarray
    q: ndarray
    truth: tuple[bool | None, ...]
    witness: ndarray
    proof: ndarray
    seed: int
    index: int

    def box(self, i: int) -> tuple[ndarray, ndarray]:
        """Lower and upper bounds of point i."""
        return (self.lo, self.hi) if self.lo.ndim == 1 else (self.lo[i], self.hi[i])

    @property
    def boxes(self) -> tuple[ndarray, ndarray]:
        """Lower and upper bounds of all points, (n, d) each."""
        shape = self.points.shape
        return np.broadcast_to(self.lo, shape), np.broadcast_to(self.hi, shape)


@dataclass
class Draft:
    """A problem in the making. A truth of None asks `decide` to find it from witness and boxes."""

    G: ndarray
    h: ndarray
    lo: ndarray
    hi: ndarray
    origin: ndarray
    q: ndarray
    points: ndarray
    truth: bool | None = None
    witness: ndarray | None = None
    proof: ndarray | None = None
    exact: bool = False  # data are small integers: a slack of exactly zero counts as feasible


def problems(seed: int, count: int, *, start: int = 0) -> Iterator[Problem]:
    """Yield problems start, start + 1, ... start + count - 1 of a seed."""
    return (problem(seed, index) for index in range(start, start + count))


def problem(seed: int, index: int) -> Problem:
    """Draw problem `index` of `seed`: its family, then its numbers, then its units."""
    rng = np.random.default_rng([seed, index])
    family = NAMES[int(np.searchsorted(SHARES, rng.random(), side="right"))]
    draft = FAMILIES[family][0](rng)
    truth, witness, proof = decide(draft)
    change_units(rng, draft, witness, proof)
    return Problem(
        family, draft.points, draft.G, draft.h, draft.lo, draft.hi, draft.origin, draft.q,
        truth, witness, proof, seed, index,
    )  # fmt: skip


def family_of(seed: int, index: int) -> str:
    """Name the family of a problem without building it."""
    share = np.random.default_rng([seed, index]).random()
    return NAMES[int(np.searchsorted(SHARES, share, side="right"))]


def decide(draft: Draft) -> tuple[tuple[bool | None, ...], ndarray, ndarray]:
    """Truth, witness and proof of every point, from what the family knows or from simple tests."""
    n, m = len(draft.points), len(draft.h)
    witness = np.full(draft.points.shape, np.nan)
    proof = np.full((n, m), np.nan)
    if draft.truth is True:
        witness[:] = draft.witness
        return (True,) * n, witness, proof
    if draft.truth is False:
        proof[:] = draft.proof
        return (False,) * n, witness, proof
    holds, tried = _witness_holds(draft)
    witness[holds] = tried[holds]
    if holds.all():
        return (True,) * n, witness, proof
    broken, conflicting = _row_and_box_conflict(draft)
    proof[conflicting] = 0.0
    proof[conflicting, broken[conflicting]] = 1.0
    verdict = np.where(holds, 1, np.where(conflicting, 0, -1))
    return tuple((False, True, None)[v] for v in verdict), witness, proof


def _witness_holds(draft: Draft) -> tuple[ndarray, ndarray]:
    """Say for each point whether the witness, moved into its box, satisfies all rows."""
    n, d = draft.points.shape
    if draft.witness is None:
        return np.zeros(n, bool), np.full((n, d), np.nan)
    tried = np.clip(np.broadcast_to(draft.witness, (n, d)), draft.lo, draft.hi)
    moved = tried - draft.origin
    slack = draft.h - moved @ draft.G.T
    needed = 0.0 if draft.exact else HOLDS * (abs(moved) @ abs(draft.G.T) + abs(draft.h))
    empty_row = ~draft.G.any(axis=1) & (draft.h >= 0)
    return ((slack >= needed) | empty_row).all(axis=1), tried


def _row_and_box_conflict(draft: Draft) -> tuple[ndarray, ndarray]:
    """Row that its box violates most, and whether it does so by a margin, for each point."""
    lo, hi = np.atleast_2d(draft.lo) - draft.origin, np.atleast_2d(draft.hi) - draft.origin
    rows = draft.G[None]
    with np.errstate(invalid="ignore"):
        low = np.where(rows != 0, np.minimum(rows * lo[:, None], rows * hi[:, None]), 0.0)
    excess = low.sum(axis=2) - draft.h
    scale = reach(draft) @ abs(draft.G.T) + abs(draft.h)
    relative = excess / np.where(scale > 0, scale, 1.0)
    return relative.argmax(axis=1), relative.max(axis=1) >= FAILS


def reach(draft: Draft) -> ndarray:
    """How far each coordinate can be from the origin, (n, d); the point's own if unbounded."""
    sides = [abs(side - draft.origin) for side in (draft.lo, draft.hi)]
    finite = np.maximum(*(np.where(np.isinf(side), 0.0, side) for side in sides))
    unbounded = np.isinf(draft.lo) | np.isinf(draft.hi)
    return np.where(unbounded, np.maximum(finite, abs(draft.points - draft.origin)), finite)


def change_units(rng: Generator, draft: Draft, witness: ndarray, proof: ndarray) -> None:
    """Rescale the whole problem, its columns, its rows and its cost, each in some of the cases."""
    chance = rng.random(4)
    d, m = draft.G.shape[1], len(draft.h)
    if chance[0] < 0.3:
        _scale_columns(draft, witness, np.full(d, _power(rng, 40)))
    if chance[1] < 0.2:
        columns = _power(rng, 10, d)
        _scale_columns(draft, witness, columns)
        draft.q = draft.q / columns**2  # the same geometry in other units
    elif chance[1] < 0.3:
        _scale_columns(draft, witness, _power(rng, 5, d))
    if chance[2] < 0.3:
        rows = _power(rng, 20, m if chance[2] < 0.15 else None)
        draft.G = draft.G * np.reshape(rows, (-1, 1))
        draft.h = draft.h * rows
        proof /= rows
    if chance[3] < 0.1:
        draft.q = draft.q * _power(rng, 20)


def _power(rng: Generator, top: int, size: int | None = None) -> ndarray:
    """Powers of two from 2^-top to 2^top: multiplying by them is exact."""
    return np.ldexp(1.0, rng.integers(-top, top + 1, size=size))


def _scale_columns(draft: Draft, witness: ndarray, by: ndarray) -> None:
    """Measure coordinate i in units that are `by[i]` times smaller."""
    for name in ("points", "lo", "hi", "origin"):
        setattr(draft, name, getattr(draft, name) * by)
    draft.G = draft.G / by
    witness *= by


def _size(rng: Generator, top: int, least: int = 1) -> int:
    """Draw a size from `least` to `top`, small ones more often."""
    return least + int((top - least + 1) * rng.random() ** 2)


def _count(rng: Generator) -> int:
    return int(rng.integers(1, 4))


def _integers(rng: Generator, *shape: int, top: int = 4) -> ndarray:
    return rng.integers(-top, top + 1, size=shape).astype(float)


def _metric(rng: Generator, d: int) -> ndarray:
    """Weights that sum to 1: equal, or exponential."""
    if rng.random() < 0.25:
        return np.full(d, 1.0 / d) + DELTA
    weights = rng.exponential(size=d)
    return weights / weights.sum() + DELTA


def _box(rng: Generator, about: ndarray, width: float, infinite: float = 0.0) -> list[ndarray]:
    """Bounds around a point, each side infinite with the given chance."""
    sides = width * rng.uniform(0.05, 1.0, size=(2, len(about)))
    if infinite:
        sides[rng.random(sides.shape) < infinite] = inf
    return [about - sides[0], about + sides[1]]


def _some(rng: Generator, d: int, chance: float = 0.4) -> ndarray:
    """Mark some of d, at least one."""
    mask = rng.random(d) < chance
    mask[int(rng.integers(d))] = True
    return mask


def _strength(rng: Generator) -> float:
    """Draw a relative infeasibility: slight or blatant."""
    return 10.0 ** rng.uniform(-5.3, 0.0)


def _cell(rng: Generator, centroids: ndarray, weights: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """Rows, offsets and origin of the contracted weighted Voronoi cell of the first centroid."""
    target, rivals = centroids[0], centroids[1:]
    G = weights * (rivals - target)
    alpha = _contraction(rng)
    if rng.random() < 0.6:
        return G, alpha * 0.5 * ((rivals - target) ** 2 @ weights), target
    norms = (weights * centroids**2).sum(axis=1)  # not by BLAS: equal rows must give equal sums
    h = 0.5 * (norms[1:] - norms[0])
    at_target = G @ target
    return G, at_target + alpha * (h - at_target) if alpha < 1 else h, np.zeros(len(target))


def _contraction(rng: Generator) -> float:
    kind = rng.random()
    if kind < 0.5:
        return 1.0
    return 1.0 - rng.random() if kind < 0.9 else 10.0 ** rng.uniform(-8, 0)


def _voronoi(rng: Generator, centroids: ndarray, weights: ndarray, noise: float = 0.4) -> Draft:
    """Points of other clusters, to be moved into the first one, within the range of the data."""
    k, d = centroids.shape
    n = _count(rng)
    spread = noise * centroids.std(axis=0)
    data = centroids[rng.integers(k, size=n + 4)] + spread * rng.standard_normal((n + 4, d))
    lo = np.minimum(data.min(axis=0), centroids.min(axis=0))
    hi = np.maximum(data.max(axis=0), centroids.max(axis=0))
    G, h, origin = _cell(rng, centroids, weights)
    return Draft(G, h, lo, hi, origin, weights + DELTA, data[:n], witness=centroids[0])


def _centroids(rng: Generator, d_top: int = 20, k_top: int = 15) -> ndarray:
    d, k = _size(rng, d_top), 1 + _size(rng, k_top)
    centroids = rng.standard_normal((k, d))
    if rng.random() < 0.3:
        centroids *= 10.0 ** rng.uniform(-2, 2, size=d)
    return centroids


def voronoi(rng: Generator) -> Draft:
    """Cells of random weighted centroids, box = data range."""
    centroids = _centroids(rng)
    return _voronoi(rng, centroids, _metric(rng, centroids.shape[1]) - DELTA)


def voronoi_frozen(rng: Generator) -> Draft:
    """Some features keep the point's value: a box a point."""
    draft = voronoi(rng)
    n, d = draft.points.shape
    frozen = rng.random((n, d)) < rng.choice([0.2, 0.5, 0.9])
    if rng.random() < 0.5:  # freeze where the cell still has room
        draft.points[frozen] = np.broadcast_to(draft.witness, (n, d))[frozen]
    draft.lo = np.where(frozen, draft.points, draft.lo)
    draft.hi = np.where(frozen, draft.points, draft.hi)
    return draft


def voronoi_one_way(rng: Generator) -> Draft:
    """Some features may only grow or only shrink from the point's value."""
    draft = voronoi(rng)
    way = rng.integers(3, size=draft.points.shape)
    draft.lo = np.where(way == 0, draft.points, draft.lo)
    draft.hi = np.where(way == 1, draft.points, draft.hi)
    return draft


def voronoi_wide_weights(rng: Generator) -> Draft:
    """Weights spread over 1e15, so that the metric goes from 1e-9 to 1."""
    centroids = _centroids(rng)
    weights = 10.0 ** rng.uniform(-15, 0, size=centroids.shape[1])
    draft = _voronoi(rng, centroids, weights / weights.sum())
    if rng.random() < 0.4:
        heaviest = weights > np.median(weights)
        draft.lo = np.where(heaviest, draft.points, draft.lo)
        draft.hi = np.where(heaviest, draft.points, draft.hi)
    return draft


def voronoi_zero_weights(rng: Generator) -> Draft:
    """Weights of zero: a column of zeros in G, and only delta in the metric."""
    centroids = _centroids(rng)
    weights = rng.exponential(size=centroids.shape[1])
    weights[_some(rng, len(weights))] = 0.0
    return _voronoi(rng, centroids, weights / max(weights.sum(), 1e-300))


def voronoi_coinciding(rng: Generator) -> Draft:
    """Rivals that coincide with each other or with the target: duplicate rows, 0 <= 0."""
    centroids = _centroids(rng)
    rivals = len(centroids) - 1
    source = rng.integers(len(centroids), size=rivals)
    copied = _some(rng, rivals, 0.5)
    centroids[1:][copied] = centroids[source[copied]]
    if not centroids.std(axis=0).any():
        centroids[-1] += 1.0
    return _voronoi(rng, centroids, _metric(rng, centroids.shape[1]) - DELTA)


def voronoi_offset(rng: Generator) -> Draft:
    """Columns far from zero relative to their spread, like years and time stamps."""
    centroids = _centroids(rng)
    centroids += 10.0 ** rng.uniform(1, 9, size=centroids.shape[1])
    return _voronoi(rng, centroids, _metric(rng, centroids.shape[1]) - DELTA)


def one_hot(rng: Generator) -> Draft:
    """Integer-grid data with many ties: one-hot blocks, dyadic centroids, points on the grid."""
    blocks = rng.integers(2, 4, size=_size(rng, 4))
    rows = [np.eye(width)[rng.integers(width, size=24)] for width in blocks]
    data = np.hstack(rows)
    k = 1 + _size(rng, 6)
    centroids = data[rng.integers(24, size=(k, int(2 ** rng.integers(0, 3))))].mean(axis=1)
    d = data.shape[1]
    G, h, origin = _cell(rng, centroids, np.full(d, 0.125))
    points = data[: _count(rng)].copy()
    lo, hi = np.zeros(d), np.ones(d)
    if rng.random() < 0.3:
        kept = rng.random(points.shape) < 0.4
        lo, hi = np.where(kept, points, lo), np.where(kept, points, hi)
    return Draft(G, h, lo, hi, origin, np.full(d, 0.125 + DELTA), points, witness=centroids[0])


def big(rng: Generator) -> Draft:
    """Up to 500 features, up to 2000 rivals."""
    d = int(20 * 25.0 ** rng.random())
    k = 1 + int(20 * 100.0 ** rng.random())
    if rng.random() < 0.9:
        k = min(k, 60_000 // d)
    centroids = rng.standard_normal((k, d))
    draft = _voronoi(rng, centroids, _metric(rng, d) - DELTA)
    draft.points = draft.points[:1]
    return draft


def _general(rng: Generator, infinite: float = 0.0, m_top: int = 15) -> Draft:
    """Rows around an interior witness, points around it."""
    d, m = _size(rng, 20), _size(rng, m_top)
    centre = rng.standard_normal(d)
    origin = rng.standard_normal(d) if rng.random() < 0.5 else np.zeros(d)
    G = rng.standard_normal((m, d))
    h = G @ (centre - origin) + rng.uniform(0.01, 1.0, size=m)
    lo, hi = _box(rng, centre, 2.0, infinite)
    points = centre + 3.0 * rng.standard_normal((_count(rng), d))
    return Draft(G, h, lo, hi, origin, _metric(rng, d), points, witness=centre)


def general(rng: Generator) -> Draft:
    """Rows and bounds in general position; points often outside the box."""
    return _general(rng)


def unbounded(rng: Generator) -> Draft:
    """Boxes that are infinite or half-infinite."""
    return _general(rng, infinite=float(rng.choice([0.3, 0.7, 1.0])))


def outside_box(rng: Generator) -> Draft:
    """Every point outside its own box, some by very much."""
    draft = _general(rng, infinite=0.1)
    sign = np.where(rng.random(draft.points.shape) < 0.5, -1.0, 1.0)
    draft.points = draft.witness + sign * 10.0 ** rng.uniform(0.4, 4, size=draft.points.shape)
    return draft


def far(rng: Generator) -> Draft:
    """Points many region sizes away."""
    draft = _general(rng, infinite=0.5)
    away = 10.0 ** rng.uniform(2, 7, size=(len(draft.points), 1))
    draft.points = draft.witness + away * rng.standard_normal(draft.points.shape)
    return draft


def cheap_columns(rng: Generator) -> Draft:
    """Metric weights of 1e-9 on columns that matter to the rows."""
    draft = _general(rng, infinite=0.2)
    draft.q = np.where(_some(rng, len(draft.q)), DELTA, draft.q)
    return draft


def inside(rng: Generator) -> Draft:
    """Points that need no change: they are their own answer."""
    draft = _general(rng)
    shift = 1e-3 * rng.random((len(draft.points), 1)) * rng.uniform(-1, 1, draft.points.shape)
    draft.points = np.clip(draft.witness + shift, draft.lo, draft.hi)
    return draft


def on_boundary(rng: Generator) -> Draft:
    """Integer points exactly on a row, a bound or a vertex."""
    d, m = _size(rng, 10), _size(rng, 12)
    place = _integers(rng, d)
    G = _integers(rng, m, d)
    h = G @ place + rng.integers(3, size=m)  # a third of the rows touch the point
    lo, hi = place - rng.integers(3, size=d), place + rng.integers(3, size=d)
    points = np.vstack([place, place + _integers(rng, _count(rng) - 1, d)])
    return Draft(G, h, lo, hi, np.zeros(d), _metric(rng, d), points, True, place)


def line(rng: Generator) -> Draft:
    """One feature: rows are bounds, and truth is a comparison of two numbers."""
    m = _size(rng, 12)
    G = rng.choice([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0], size=(m, 1))
    h = _integers(rng, m, top=8) + rng.choice([0, 6])
    lo, hi = np.sort(_integers(rng, 2, 1, top=9), axis=0)
    ends = h / np.where(G[:, 0] == 0, 1.0, G[:, 0])
    least = max(lo[0], ends[G[:, 0] < 0].max(initial=-inf))
    points = _integers(rng, _count(rng), 1, top=12)
    draft = Draft(G, h, lo, hi, np.zeros(1), np.array([0.7]), points, exact=True)
    draft.witness = np.array([least])
    return draft


def _through(rng: Generator, G: ndarray, slack: ndarray) -> tuple[ndarray, ndarray, ndarray]:
    """Offsets, origin and a place where row j has exactly slack j: origin there, or integers."""
    d = G.shape[1]
    if rng.random() < 0.5:
        place = rng.standard_normal(d)
        return slack, place, place
    np.round(4 * G, out=G)
    place = _integers(rng, d)
    return G @ place + np.ceil(slack), np.zeros(d), place


def _degenerate(rng: Generator, G: ndarray, slack: ndarray, infinite: float = 0.2) -> Draft:
    """Region whose rows have known slacks at a known place; points are anywhere."""
    h, origin, place = _through(rng, G, slack)
    d = len(place)
    lo, hi = _box(rng, place, 2.0, infinite)
    points = place + 2.0 * rng.standard_normal((_count(rng), d))
    return Draft(G, h, lo, hi, origin, _metric(rng, d), points, True, place)


def duplicate_rows(rng: Generator) -> Draft:
    """Rows repeated as they are or in another scale, and parallel rows with other offsets."""
    d, m = _size(rng, 12), _size(rng, 6)
    G, slack = rng.standard_normal((m, d)), rng.integers(3, size=m).astype(float)
    source = rng.integers(m, size=_size(rng, 9))
    factor = rng.choice([1.0, 1.0, 0.5, 2.0, 3.0], size=len(source))
    parallel = rng.integers(3, size=len(source))
    draft = _degenerate(rng, G, slack)
    draft.G = np.vstack([draft.G, factor[:, None] * draft.G[source]])
    base = draft.h[source] if draft.origin is draft.witness else draft.G[source] @ draft.witness
    draft.h = np.append(draft.h, factor * (base + parallel))
    return draft


def equality(rng: Generator) -> Draft:
    """Opposite rows that leave a hyperplane, and a few more rows."""
    return _flat(rng, 1)


def flat(rng: Generator) -> Draft:
    """Several pairs of opposite rows: a lower-dimensional region, down to a single point."""
    return _flat(rng, None)


def _flat(rng: Generator, pairs: int | None) -> Draft:
    d, more = _size(rng, 12), _size(rng, 5) - 1
    pairs = pairs or int(rng.integers(1, d + 1))
    G, slack = rng.standard_normal((pairs + more, d)), np.zeros(pairs + more)
    slack[pairs:] = rng.uniform(0.0, 1.0, size=more)
    draft = _degenerate(rng, G, slack)
    factor = rng.choice([1.0, 1.0, 0.5, 4.0], size=pairs)
    draft.G = np.vstack([draft.G, -factor[:, None] * draft.G[:pairs]])
    draft.h = np.append(draft.h, -factor * draft.h[:pairs])
    return draft


def single_point(rng: Generator) -> Draft:
    """Rows and bounds that all pass through one point and leave nothing else."""
    d = _size(rng, 8)
    G = rng.standard_normal((d, d))
    G = np.vstack([G, -rng.uniform(0.1, 1.0, size=d) @ G, rng.standard_normal((_size(rng, 6), d))])
    draft = _degenerate(rng, G, np.zeros(len(G)))
    touching = rng.random((2, d)) < 0.3
    draft.lo = np.where(touching[0], draft.witness, draft.lo)
    draft.hi = np.where(touching[1], draft.witness, draft.hi)
    return draft


def crowded_vertex(rng: Generator) -> Draft:
    """Many more rows than features active at one vertex, points in its normal cone."""
    d, m = _size(rng, 6), 10 + _size(rng, 50)
    G = rng.standard_normal((m, d))
    inward = rng.standard_normal(d)
    G[G @ inward > 0] *= -1.0
    draft = _degenerate(rng, G, np.zeros(m), infinite=0.7)
    draft.points = np.array([_beyond(rng, draft) for _ in range(_count(rng))])
    return draft


def _beyond(rng: Generator, draft: Draft) -> ndarray:
    """Point whose projection is the witness, by multipliers on some rows that touch it."""
    multipliers = rng.exponential(size=len(draft.h)) * (rng.random(len(draft.h)) < 0.3)
    return draft.witness + (multipliers @ draft.G) / draft.q


def near_parallel(rng: Generator) -> Draft:
    """Rows at angles of 1e-3 to 1e-9 of each other, through one place or shifted."""
    d, m = _size(rng, 8, 2), _size(rng, 8, 2)
    g = rng.standard_normal(d)
    angle = 10.0 ** rng.uniform(-9, -3)
    G = g + angle * rng.standard_normal((m, d))
    place = rng.standard_normal(d)
    shift = rng.choice([0.0, angle, 0.1]) * rng.random(m)
    lo, hi = _box(rng, place, 2.0, 0.5)
    points = place + 2.0 * rng.standard_normal((_count(rng), d)) + 2.0 * g
    return Draft(G, shift, lo, hi, place, _metric(rng, d), points, True, place)


def wedge(rng: Generator) -> Draft:
    """Two rows nearly opposite: a region as thin as an angle of 1e-3 to 1e-9."""
    d = _size(rng, 6, 2)
    g, lean = rng.standard_normal((2, d))
    angle = 10.0 ** rng.uniform(-9, -3)
    place = rng.standard_normal(d)
    lo, hi = _box(rng, place, 2.0, 0.3)
    points = place + rng.standard_normal((_count(rng), d))
    G = np.array([g, angle * lean - g])
    if rng.random() < 0.7:
        return Draft(G, np.zeros(2), lo, hi, place, _metric(rng, d), points, True, place)
    gap = angle * rng.uniform(0, 4)  # perhaps closed only far away, perhaps nowhere
    return Draft(G, np.array([0.0, -gap]), lo, hi, place, _metric(rng, d), points)


def fixed(rng: Generator) -> Draft:
    """Bounds that coincide on some or all coordinates, in exact integers."""
    d, m = _size(rng, 10), _size(rng, 10)
    place = _integers(rng, d)
    G = _integers(rng, m, d)
    h = G @ place + rng.integers(4, size=m)
    at = place if rng.random() < 0.6 else place + _integers(rng, d, top=2)
    kept = np.ones(d, bool) if rng.random() < 0.3 else _some(rng, d)
    lo = np.where(kept, at, place - rng.integers(3, size=d))
    hi = np.where(kept, at, place + rng.integers(3, size=d))
    points = place + _integers(rng, _count(rng), d)
    return Draft(G, h, lo, hi, np.zeros(d), _metric(rng, d), points, None, place, exact=True)


def zero_rows(rng: Generator) -> Draft:
    """Rows without coefficients: 0 <= h, true or false."""
    draft = _general(rng)
    empty = _some(rng, len(draft.h), 0.3)
    draft.G[empty] = 0.0
    draft.h[empty] = rng.choice([0.0, 1.0, 1e-9], size=empty.sum())
    if rng.random() < 0.4:
        draft.h[empty.argmax()] = -rng.choice([1.0, 1e-3, 1e-9])
        draft.truth, draft.proof = False, np.eye(len(draft.h))[empty.argmax()]
    return draft


def _emptied(rng: Generator, draft: Draft, y: ndarray) -> Draft:
    """Move the offset of the last row that y uses so far that y proves the region empty."""
    c = y @ draft.G
    sides = np.where(c > 0, draft.lo, draft.hi) - draft.origin
    negligible = abs(c) <= 1e-12 * (y @ abs(draft.G))
    least = np.where(negligible, 0.0, c * np.where(np.isinf(sides), 0.0, sides)).sum()
    last = y.nonzero()[0][-1]
    others = y.copy()
    others[last] = 0.0
    scale = (reach(draft) @ abs(draft.G.T) @ y).max() + 2 * others @ abs(draft.h) + abs(least)
    draft.h[last] = (least - _strength(rng) * scale - others @ draft.h) / y[last]
    draft.truth, draft.proof = False, y
    return draft


def gap(rng: Generator) -> Draft:
    """Opposite rows that leave a gap."""
    draft = _general(rng, infinite=float(rng.choice([0.0, 0.5, 1.0])))
    factor = float(rng.choice([1.0, 2.0, 0.25]))
    draft.G = np.vstack([draft.G, -factor * draft.G[0]])
    draft.h = np.append(draft.h, 0.0)
    y = np.zeros(len(draft.h))
    y[0], y[-1] = factor, 1.0
    return _emptied(rng, draft, y)


def box_conflict(rng: Generator) -> Draft:
    """A single row that no point of the box satisfies."""
    draft = _general(rng)
    return _emptied(rng, draft, np.eye(len(draft.h))[int(rng.integers(len(draft.h)))])


def combination(rng: Generator) -> Draft:
    """Empty only by several rows together, without help from the box."""
    infinite = float(rng.choice([0.0, 0.5, 1.0]))
    draft = _general(rng, infinite)
    m, d = draft.G.shape
    y = rng.integers(1, 5, size=m + 1).astype(float)
    y[:-1] *= _some(rng, m, min(0.7, d / m))
    y[-1] = 1.0
    if infinite:  # y'G must be exactly zero where nothing bounds it
        draft.G = np.round(8 * draft.G) / 8
    draft.G = np.vstack([draft.G, -(y[:-1] @ draft.G)])
    draft.h = np.append(draft.h, 0.0)
    return _emptied(rng, draft, y)


def combination_with_box(rng: Generator) -> Draft:
    """Empty by several rows and the box together."""
    draft = _general(rng)
    y = rng.uniform(0.1, 1.0, size=len(draft.h)) * _some(rng, len(draft.h), 0.5)
    return _emptied(rng, draft, y)


def borderline(rng: Generator) -> Draft:
    """Regions open or closed by hardly more than rounding: nobody knows, certificates must tell."""
    draft = flat(rng)
    draft.origin = draft.origin + rng.standard_normal(len(draft.origin))
    draft.h = draft.G @ (draft.witness - draft.origin)
    draft.h += rng.choice([0.0, 1e-15, 1e-12, 1e-8]) * rng.standard_normal(len(draft.h))
    draft.truth = draft.witness = None
    return draft


# A family's weight is its number of problems in a thousand or so.
FAMILIES: dict[str, tuple[Callable[[Generator], Draft], float]] = {
    "voronoi": (voronoi, 120),
    "voronoi-frozen": (voronoi_frozen, 80),
    "voronoi-one-way": (voronoi_one_way, 40),
    "voronoi-wide-weights": (voronoi_wide_weights, 60),
    "voronoi-zero-weights": (voronoi_zero_weights, 40),
    "voronoi-coinciding": (voronoi_coinciding, 40),
    "voronoi-offset": (voronoi_offset, 30),
    "one-hot": (one_hot, 50),
    "big": (big, 1),
    "general": (general, 50),
    "unbounded": (unbounded, 40),
    "outside-box": (outside_box, 30),
    "far": (far, 30),
    "cheap-columns": (cheap_columns, 30),
    "inside": (inside, 15),
    "on-boundary": (on_boundary, 35),
    "line": (line, 20),
    "duplicate-rows": (duplicate_rows, 40),
    "equality": (equality, 30),
    "flat": (flat, 30),
    "single-point": (single_point, 30),
    "crowded-vertex": (crowded_vertex, 30),
    "near-parallel": (near_parallel, 30),
    "wedge": (wedge, 20),
    "fixed": (fixed, 30),
    "zero-rows": (zero_rows, 20),
    "gap": (gap, 25),
    "box-conflict": (box_conflict, 20),
    "combination": (combination, 30),
    "combination-with-box": (combination_with_box, 20),
    "borderline": (borderline, 15),
}
NAMES = tuple(FAMILIES)
SHARES = np.cumsum([weight for _, weight in FAMILIES.values()])
SHARES = SHARES / SHARES[-1]
