"""Independent judges of a projection: certificates, DAQP, HiGHS and exact rational arithmetic.

Nothing here knows how voicecf solves. A claimed optimum is judged by its KKT conditions, a claimed
infeasibility by its Farkas vector, both in extended precision; a second opinion comes from solvers
that are trusted only as far as their own answer passes the same test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import chain, combinations, product
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy import inf, ndarray

from problems import Problem

if TYPE_CHECKING:  # loaded on first use: certificates and exact judges need neither solver
    import highspy

Long = np.longdouble
EPS = float(np.finfo(float).eps)

TOLERANCE = 1e-9  # a certificate closes if no relative violation exceeds this
COST = 1e-8  # costs agree if they differ by no more than this, relative
PROOF = 1e-15  # a Farkas margin above this proves emptiness; extended precision resolves 1e-18
RAY = 1e-9  # a combined coefficient this small, relative, counts as zero on an unbounded side
ROUNDINGS = 64  # how many units of rounding any quantity may be off
FLOOR = ROUNDINGS * EPS / TOLERANCE  # what a rounded magnitude adds to the scale of a violation

KINDS = ("stationarity", "primal", "box", "sign", "gap")

Outcome = Literal["agree", "wrong status", "wrong cost", "undecided"]


@dataclass(frozen=True)
class Answer:
    """What a solver claims for all points of a problem; status holds lower-case words."""

    points: ndarray
    multipliers: ndarray
    gap: ndarray
    status: Sequence[str]


class Verdict(NamedTuple):
    """Outcome for one point, who decided, whether the answer's own certificate closes, and why."""

    outcome: Outcome
    judge: str
    certified: bool
    details: dict[str, Any]


@dataclass(frozen=True)
class Residuals:
    """Relative KKT violations, the cost and the uncertainty of the cost, one a point."""

    stationarity: ndarray
    primal: ndarray
    box: ndarray
    sign: ndarray
    gap: ndarray
    cost: ndarray
    dual: ndarray  # value of the dual at mu: whatever z is, no feasible point costs less
    cost_error: ndarray  # absolute: what the rounding of z and h makes of the cost

    @property
    def worst(self) -> ndarray:
        """Largest of the violations, one a point."""
        return np.max([getattr(self, kind) for kind in KINDS], axis=0).astype(float)

    def value(self, k: int) -> Value:
        """Cost, bound and uncertainty of answer k."""
        return Value(float(self.cost[k]), float(self.dual[k]), float(self.cost_error[k]))


def residuals(problem: Problem, which: Sequence[int], z: ndarray, mu: ndarray) -> Residuals:
    """KKT violations of answers z (n, d) with multipliers mu (n, m) for the points `which`.

    A violation of 1e-9 is either 1e-9 of the terms that make up the quantity, or what 64 roundings
    of z, a and h could have caused: no double z can do better.
    """
    which = list(which)
    a, lo, hi, G, h, origin, q = _extended(problem, which)
    z, mu = np.asarray(z, Long), np.asarray(mu, Long)
    known = np.isfinite(z).all(axis=1) & np.isfinite(mu).all(axis=1)
    z, mu = np.where(known[:, None], z, a), np.where(known[:, None], mu, Long(0))
    sign = _ratio(np.max(-mu, axis=1, initial=0), np.max(abs(mu), axis=1, initial=0))
    mu = np.maximum(mu, 0)

    size = abs(G)
    minimiser = np.clip(a - (mu @ G) / q, lo, hi)  # of the Lagrangian, over the box
    move = abs(z - a)
    terms = q * move + mu @ size + FLOOR * q * (abs(z) + abs(a))
    stationarity = _ratio(q * abs(z - minimiser), terms).max(axis=1)

    natural = abs(z - origin) @ size.T + abs(h)
    inner = (lo < z) & (z < hi)  # computed as a - G'mu / q, so rounded like a
    carried = (abs(z) + inner * abs(a)) @ size.T
    excess = np.maximum((z - origin) @ G.T - h, 0)
    primal = _ratio(excess, natural + FLOOR * carried).max(axis=1, initial=0)
    outside = np.maximum(np.maximum(lo - z, z - hi), 0)
    box = _ratio(outside, abs(z) + outside).max(axis=1)

    cost = 0.5 * (q * move**2).sum(axis=1)
    penalty = (mu * ((minimiser - origin) @ G.T - h)).sum(axis=1)
    dual = 0.5 * (q * (minimiser - a) ** 2).sum(axis=1) + penalty
    unsure = ROUNDINGS * EPS * (abs(z) + abs(a))  # of a move, by rounding
    cost_error = (q * (move + unsure) * unsure).sum(axis=1)
    cost_error += ROUNDINGS * EPS * (mu * (natural + carried)).sum(axis=1)
    gap = _ratio(abs(cost - dual), cost + cost_error / TOLERANCE)
    sign = np.where(known, sign, inf)
    return Residuals(stationarity, primal, box, sign, gap, cost, dual, cost_error)


def optimality(problem: Problem, i: int, z: ndarray, mu: ndarray) -> float:
    """Worst relative KKT violation of answer z with multipliers mu for point i."""
    return float(residuals(problem, [i], np.atleast_2d(z), np.atleast_2d(mu)).worst[0])


def farkas(problem: Problem, i: int, y: ndarray) -> float:
    """Relative margin by which y >= 0 proves the region of point i empty; -inf if it cannot.

    The least value over the box of y'(G (z - origin) - h), relative to the sum of its terms. A
    coefficient that is zero to 1e-9 relative is zero where the box is unbounded.
    """
    y = np.asarray(y, Long)
    if not np.isfinite(y).all() or (y < 0).any() or not y.any():
        return -inf
    _, lo, hi, G, h, origin, _ = _extended(problem, [i])
    c, terms = y @ G, y @ abs(G)
    side = np.where(c > 0, lo[0], hi[0]) - origin
    open_side = np.isinf(side) & (c != 0)
    if (abs(c[open_side]) > RAY * terms[open_side]).any():
        return -inf
    usable = (c != 0) & ~open_side
    least = (c[usable] * side[usable]).sum() - y @ h
    scale = terms @ _reach(problem, i) + y @ abs(h)
    return float(least / scale) if scale > 0 else -inf


def _extended(problem: Problem, which: list[int]) -> tuple[ndarray, ...]:
    """Data of a problem for some points in extended precision."""
    lo, hi = problem.boxes
    data = (problem.points[which], lo[which], hi[which])
    data += (problem.G, problem.h, problem.origin, problem.q)
    return tuple(np.asarray(array, Long) for array in data)


def _reach(problem: Problem, i: int) -> ndarray:
    """Largest distance from the origin in the box; the point's own where that is unbounded."""
    lo, hi = (np.asarray(side, Long) - problem.origin for side in problem.box(i))
    own = abs(np.asarray(problem.points[i], Long) - problem.origin)
    finite = np.maximum(np.where(np.isinf(lo), 0, abs(lo)), np.where(np.isinf(hi), 0, abs(hi)))
    return np.where(np.isinf(lo) | np.isinf(hi), np.maximum(finite, own), finite)


def _ratio(part: ndarray, whole: ndarray) -> ndarray:
    """Part over whole, and 0 / 0 = 0."""
    part, whole = np.asarray(part, Long), np.asarray(whole, Long)
    return np.divide(part, whole, out=np.where(part > 0, Long(inf), Long(0)), where=whole > 0)


class Value(NamedTuple):
    """Cost of an answer, the bound that its multipliers prove, and what rounding makes of both."""

    cost: float
    dual: float
    cost_error: float

    def differs(self, other: Value) -> bool:
        """Whether two costs differ by more than rounding explains."""
        return abs(self.cost - other.cost) > self._allowance(other)

    def too_cheap(self, other: Value) -> bool:
        """Whether the other one's multipliers prove that nothing feasible costs so little."""
        return other.dual > self.cost + self._allowance(other)

    def _allowance(self, other: Value) -> float:
        return COST * max(self.cost, other.cost) + min(self.cost_error, other.cost_error)


class Reference(NamedTuple):
    """A solver's answer in extended precision, and how well it passes the KKT test."""

    claim: Literal["optimal", "infeasible", "failed"]
    z: ndarray
    mu: ndarray
    kkt: float
    value: Value

    @property
    def good(self) -> bool:
        """Whether this answer may contradict another one."""
        return self.claim == "optimal" and self.kkt <= TOLERANCE


@dataclass(frozen=True)
class Unit:
    """Point i's problem in unit size: minimise |x|^2 / 2, A x <= b, lo <= x <= hi.

    x = sqrt(q) (z - a) / size over the coordinates that can move, rows of unit length. `size` is a
    lower bound of the distance in the metric, so the answer is at least 1 away from 0.
    """

    A: ndarray
    b: ndarray
    lo: ndarray
    hi: ndarray
    size: float
    free: ndarray
    rows: ndarray  # the rows that have coefficients on free coordinates
    lengths: ndarray
    conflict: float  # violation, relative, of the rows that have none
    start: ndarray = field(repr=False)

    def original(self, x: ndarray, lam: ndarray, problem: Problem) -> tuple[ndarray, ndarray]:
        """Answer and multipliers in the problem's own units."""
        z = self.start.copy()
        moved = self.size * np.asarray(x, Long) / np.sqrt(np.asarray(problem.q[self.free], Long))
        z[self.free] += moved
        mu = np.zeros(len(problem.h), Long)
        mu[self.rows] = np.maximum(np.asarray(lam, Long), 0) * self.size / self.lengths
        return z, mu


def unit(problem: Problem, i: int) -> Unit:
    """Rewrite the problem of point i in unit size, fixed coordinates and empty rows left out."""
    a, lo, hi, G, h, origin, q = _extended(problem, [i])
    a, lo, hi = a[0], lo[0], hi[0]
    free = lo < hi
    start = np.where(free, a, lo)
    root = np.sqrt(q[free])
    slack = h - G @ (start - origin)
    scaled = G[:, free] / root
    lengths = np.sqrt((scaled**2).sum(axis=1))
    rows = lengths > 0
    natural = abs(G) @ abs(start - origin) + abs(h)
    conflict = _ratio(np.maximum(-slack[~rows], 0), natural[~rows]).max(initial=0)
    A, b = scaled[rows] / lengths[rows, None], slack[rows] / lengths[rows]
    low, high = (lo - a)[free] * root, (hi - a)[free] * root
    size = max(float(part.max(initial=0)) for part in (-b, low, -high))
    size = size or 1.0
    bounds = [np.asarray(part / size, float) for part in (b, low, high)]
    return Unit(
        np.ascontiguousarray(A, float), *bounds, size, free, rows, lengths[rows],
        float(conflict), start,
    )  # fmt: skip


def daqp_solution(problem: Problem, i: int) -> Reference:
    """DAQP's answer for point i, refined in extended precision."""
    import daqp

    scaled = unit(problem, i)
    if scaled.conflict > TOLERANCE:
        return _no_answer("infeasible")
    d = len(scaled.lo)
    if not len(scaled.b) or not d:
        return _judged(problem, i, scaled, np.clip(np.zeros(d), scaled.lo, scaled.hi), scaled.b * 0)
    upper = np.concatenate([scaled.hi, scaled.b])
    lower = np.concatenate([scaled.lo, np.full(len(scaled.b), -inf)])
    x, _, flag, info = daqp.solve(
        np.eye(d), np.zeros(d), scaled.A, np.minimum(upper, 1e30), np.maximum(lower, -1e30),
        np.zeros(len(upper), np.int32), primal_tol=1e-11, dual_tol=1e-13, iter_limit=20_000,
    )  # fmt: skip
    if flag != 1:
        return _no_answer("infeasible" if flag == -1 else "failed")
    return _judged(problem, i, scaled, x, info["lam"][d:])


def highs_solution(problem: Problem, i: int) -> Reference:
    """HiGHS' answer for point i, refined in extended precision."""
    scaled = unit(problem, i)
    if scaled.conflict > TOLERANCE:
        return _no_answer("infeasible")
    d = len(scaled.lo)
    if not len(scaled.b) or not d:
        return _judged(problem, i, scaled, np.clip(np.zeros(d), scaled.lo, scaled.hi), scaled.b * 0)
    # Tighter tolerances make HiGHS give up more often; refinement makes up for this one.
    box = scaled.lo, scaled.hi
    status, x, dual = _highs(np.zeros(d), scaled.A, scaled.b, *box, tolerance=1e-7)
    if status != "kOptimal":
        return _no_answer("infeasible" if status == "kInfeasible" else "failed")
    return _judged(problem, i, scaled, x, -dual)


SOLUTIONS = {"daqp": daqp_solution, "highs": highs_solution}


def _no_answer(claim: Literal["infeasible", "failed"]) -> Reference:
    return Reference(claim, np.empty(0), np.empty(0), inf, Value(inf, inf, inf))


def _judged(problem: Problem, i: int, scaled: Unit, x: ndarray, lam: ndarray) -> Reference:
    """Bring a solver's answer home, refine it if that helps, and judge it."""
    best = _reference(problem, i, *scaled.original(x, lam, problem))
    if best.kkt > 1e-13:
        active = np.zeros(len(problem.h), bool)
        active[scaled.rows] = lam > 1e-13 * np.max(lam, initial=0)
        refined = _reference(problem, i, *_refine(problem, i, best.mu, active))
        best = min(best, refined, key=lambda reference: reference.kkt)
    return best


def _reference(problem: Problem, i: int, z: ndarray, mu: ndarray) -> Reference:
    found = residuals(problem, [i], z[None], mu[None])
    return Reference("optimal", z, mu, float(found.worst[0]), found.value(0))


def _refine(problem: Problem, i: int, mu: ndarray, active: ndarray) -> tuple[ndarray, ndarray]:
    """Newton steps on the multipliers of the active rows, residuals in extended precision."""
    a, lo, hi, G, h, origin, q = _extended(problem, [i])
    rows = G[active]
    mu = np.where(active, mu, 0)
    for _ in range(4):
        free_z = a[0] - (mu @ G) / q
        z = np.clip(free_z, lo[0], hi[0])
        inner = (free_z == z) & (lo[0] < hi[0])
        gram = (rows[:, inner] / q[inner]) @ rows[:, inner].T
        length = np.sqrt(np.maximum(np.diag(gram), np.finfo(float).tiny))
        excess = (rows @ (z - origin) - h[active]) / length
        scaled = np.asarray(gram / length / length[:, None], float)
        step = np.linalg.lstsq(scaled, np.asarray(excess, float), rcond=1e-13)[0]
        mu[active] = np.maximum(mu[active] + step / length, 0)
    return np.clip(a[0] - (mu @ G) / q, lo[0], hi[0]), mu


@cache
def _solver() -> highspy.Highs:
    """One HiGHS for the whole process, silent and serial."""
    import highspy

    solver = highspy.Highs()
    options = {
        "output_flag": False,
        "threads": 1,
        "small_matrix_value": 1e-12,
        "qp_regularization_value": 0.0,
        "presolve": "off",
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver


def _highs(
    cost: ndarray, A: ndarray, b: ndarray, lo: ndarray, hi: ndarray, *, tolerance: float
) -> tuple[str, ndarray, ndarray]:
    """Minimise cost'x (|x|^2 / 2 without a cost) subject to A x <= b, bounds: status, x, duals."""
    import highspy

    m, d = A.shape
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = d, m
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, lo, hi
    lp.row_lower_, lp.row_upper_ = np.full(m, -inf), b
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.arange(0, m * d + 1, d)
    lp.a_matrix_.index_ = np.tile(np.arange(d), m)
    lp.a_matrix_.value_ = A.ravel()
    solver = _solver()
    solver.clearModel()
    solver.setOptionValue("kkt_tolerance", tolerance)
    seconds = 0.5 + 1e-5 * m * d  # its clock runs on from model to model
    solver.setOptionValue("time_limit", solver.getRunTime() + seconds)
    solver.passModel(lp)
    if not cost.any():
        solver.passHessian(_identity(d))
    solver.run()
    status, solution = solver.getModelStatus().name, solver.getSolution()
    if not solution.value_valid:
        return status, np.full(d, np.nan), np.full(m, np.nan)
    return status, np.array(solution.col_value), np.array(solution.row_dual)


def _identity(d: int) -> highspy.HighsHessian:
    import highspy

    hessian = highspy.HighsHessian()
    hessian.dim_ = d
    hessian.format_ = highspy.HessianFormat.kTriangular
    hessian.start_ = np.arange(d + 1)
    hessian.index_ = np.arange(d)
    hessian.value_ = np.ones(d)
    return hessian


class Feasibility(NamedTuple):
    """Least relative violation of the rows within the box, with its point and its proof."""

    feasible: bool | None  # None where neither the point nor the proof settles it
    level: float  # the linear program's own value: below 0 there is room
    z: ndarray
    y: ndarray
    margin: float


def highs_feasibility(problem: Problem, i: int) -> Feasibility:
    """Minimise the largest relative violation by HiGHS; believe only what can be checked.

    Feasible needs a point of the box that holds every row, infeasible a Farkas vector that proves
    it; a region that only just touches stays undecided.
    """
    a, lo, hi, G, h, origin, _ = _extended(problem, [i])
    centre, half = _middle(a[0], lo[0], hi[0], origin)
    slack = h - G @ (centre - origin)
    scale = abs(G) @ half + abs(slack)
    rows, free = (abs(G) @ half > 0) | (slack < 0), half > 0
    m, d = int(rows.sum()), int(free.sum())
    A = (G * half)[np.ix_(rows, free)] / scale[rows, None]
    low, high = ((side[0] - centre)[free] / half[free] for side in (lo, hi))
    x, dual = _least_violation(A, slack[rows] / scale[rows], low, high)
    z, y = centre.copy(), np.zeros(len(h), Long)
    z[free] = np.clip(centre[free] + half[free] * x[:d], lo[0, free], hi[0, free])
    y[rows] = dual[:m] / scale[rows]
    margin = farkas(problem, i, y)
    holds = bool((G @ (z - origin) <= h).all())
    return Feasibility(True if holds else (False if margin > PROOF else None), x[d], z, y, margin)


def _middle(a: ndarray, lo: ndarray, hi: ndarray, origin: ndarray) -> tuple[ndarray, ndarray]:
    """Centre and half width of a box; around the point where the box is unbounded."""
    bounded = np.isfinite(lo) & np.isfinite(hi)
    inner = np.clip(a, lo, hi)
    centre = np.where(bounded, lo + 0.5 * np.where(bounded, hi - lo, 0), inner)
    wide = np.maximum(abs(inner - origin), abs(inner - a))
    half = np.where(bounded, hi - centre, np.where(wide > 0, wide, 1))
    return centre, half


def _least_violation(A: ndarray, b: ndarray, lo: ndarray, hi: ndarray) -> tuple[ndarray, ndarray]:
    """Minimise t subject to A x - t <= b and bounds by HiGHS: (x, t) and the multipliers."""
    m, d = A.shape
    if not m:
        return np.append(np.clip(0, lo, hi), -1.0), np.zeros(0)
    table = np.hstack([A, -np.ones((m, 1))]).astype(float)
    low, high = np.append(lo, -1.0).astype(float), np.append(hi, inf).astype(float)
    cost = np.append(np.zeros(d), 1.0)
    _, x, dual = _highs(cost, table, b.astype(float), low, high, tolerance=1e-10)
    return x, np.maximum(-dual, 0)


def is_small(problem: Problem) -> bool:
    """Whether exact feasibility is a matter of milliseconds."""
    m, d = problem.G.shape
    return m * d <= 80 and d <= 10


def exact_feasible(problem: Problem, i: int, relax: float = 0.0) -> bool:
    """Decide in rational numbers whether point i's region has a point, the floats taken as exact.

    `relax` moves every offset outwards (inwards if negative) by that fraction of the row's largest
    terms over the box, sum |g| reach + |h|, so that two calls bracket a borderline case.
    """
    exact = _rational(problem, i)
    if not relax:
        return _simplex_finds_a_point(exact)
    size = abs(problem.G) @ _reach(problem, i).astype(float) + abs(problem.h)
    moved = [v + Fraction(relax) * Fraction(s) for v, s in zip(exact.h, size.tolist(), strict=True)]
    return _simplex_finds_a_point(exact._replace(h=moved))


class Rational(NamedTuple):
    """Point i's problem in fractions, for x = z - origin; None stands for an infinite bound."""

    a: list[Fraction]
    q: list[Fraction]
    G: list[list[Fraction]]
    h: list[Fraction]
    lo: list[Fraction | None]
    hi: list[Fraction | None]
    origin: list[Fraction]


def _rational(problem: Problem, i: int) -> Rational:
    origin = [Fraction(v) for v in problem.origin.tolist()]

    def moved(values: ndarray) -> list[Fraction | None]:
        pairs = zip(values.tolist(), origin, strict=True)
        return [None if np.isinf(v) else Fraction(v) - o for v, o in pairs]

    G = [[Fraction(v) for v in row] for row in problem.G.tolist()]
    q, h = ([Fraction(v) for v in part.tolist()] for part in (problem.q, problem.h))
    lo, hi = problem.box(i)
    return Rational(moved(problem.points[i]), q, G, h, moved(lo), moved(hi), origin)


def _dot(one: Sequence[Fraction], other: Sequence[Fraction]) -> Fraction:
    return sum(map(_times, one, other), Fraction(0))


def _simplex_finds_a_point(exact: Rational) -> bool:
    """Bounded simplex for feasibility with Bland's rule (Dutertre and de Moura, 2006).

    Variables 0 ... d - 1 are x, variable d + j is the value of row j, bounded above by h_j.
    """
    d = len(exact.lo)
    low, high = exact.lo + [None] * len(exact.h), exact.hi + exact.h
    value = [_start(*sides) for sides in zip(exact.lo, exact.hi, strict=True)]
    value += [_dot(row, value) for row in exact.G]
    rows = {d + j: dict(enumerate(row)) for j, row in enumerate(exact.G)}  # basic: {other: factor}
    while True:
        outside = (v for v in rows if not _within(value[v], low[v], high[v]))
        leaving = min(outside, default=None)
        if leaving is None:
            return True
        above = high[leaving] is not None and value[leaving] > high[leaving]
        goal = high[leaving] if above else low[leaving]
        helpful = (
            v
            for v, factor in rows[leaving].items()
            if factor and _can_move(value[v], low[v], high[v], up=above != (factor > 0))
        )
        entering = min(helpful, default=None)
        if entering is None:
            return False
        step = (goal - value[leaving]) / rows[leaving][entering]
        value[entering] += step
        for basic, row in rows.items():
            value[basic] += row.get(entering, 0) * step
        _pivot(rows, leaving, entering)


def _times(a: Fraction, b: Fraction) -> Fraction:
    return a * b


def _start(lo: Fraction | None, hi: Fraction | None) -> Fraction:
    return lo if lo is not None else hi if hi is not None else Fraction(0)


def _within(value: Fraction, lo: Fraction | None, hi: Fraction | None) -> bool:
    return (lo is None or lo <= value) and (hi is None or value <= hi)


def _can_move(value: Fraction, lo: Fraction | None, hi: Fraction | None, *, up: bool) -> bool:
    return (hi is None or value < hi) if up else (lo is None or value > lo)


def _pivot(rows: dict[int, dict[int, Fraction]], leaving: int, entering: int) -> None:
    """Exchange a basic and a nonbasic variable in all rows."""
    row = rows.pop(leaving)
    factor = row.pop(entering)
    solved = {v: -f / factor for v, f in row.items()}
    solved[leaving] = 1 / factor
    for other in rows.values():
        share = other.pop(entering, Fraction(0))
        if share:
            for v, f in solved.items():
                other[v] = other.get(v, Fraction(0)) + share * f
    rows[entering] = solved


def is_feasible_itself(problem: Problem, i: int) -> bool:
    """Whether point i satisfies all rows and bounds in rational numbers: it need not move."""
    exact = _rational(problem, i)
    rows_hold = all(_dot(row, exact.a) <= h for row, h in zip(exact.G, exact.h, strict=True))
    return rows_hold and all(map(_within, exact.a, exact.lo, exact.hi))


class ExactProjection(NamedTuple):
    """The projection and its multipliers in fractions; cost is sum q (z - a)^2 / 2."""

    z: list[Fraction]
    mu: list[Fraction]
    cost: Fraction


def brute_force_projection(problem: Problem, i: int) -> ExactProjection | None:
    """Exact projection of point i by trying every active set; None if the region is empty."""
    m, d = problem.G.shape
    if d > 3 or m > 4:
        raise ValueError(f"brute force takes d <= 3 and m <= 4, not d={d}, m={m}.")
    exact = _rational(problem, i)
    for place in product(*map(_places, exact.lo, exact.hi)):
        free = [j for j in range(d) if place[j] is None]
        subsets = chain.from_iterable(combinations(range(m), size) for size in range(len(free) + 1))
        for active in subsets:
            found = _stationary(exact, place, active)
            if found and _is_optimal(exact, *found):
                x, mu = found
                cost = _dot(exact.q, [(v - w) ** 2 for v, w in zip(x, exact.a, strict=True)]) / 2
                z = [v + o for v, o in zip(x, exact.origin, strict=True)]
                return ExactProjection(z, mu, cost)
    return None


def _places(lo: Fraction | None, hi: Fraction | None) -> list[Fraction | None]:
    """Where a coordinate may be: at a bound, or (None) anywhere between."""
    return [lo] if lo is not None and lo == hi else [None, *{lo, hi} - {None}]


def _stationary(
    exact: Rational, place: Sequence[Fraction | None], active: Sequence[int]
) -> tuple[list[Fraction], list[Fraction]] | None:
    """Point and multipliers if exactly these bounds and rows were active; None if dependent."""
    x = [a if at is None else at for a, at in zip(exact.a, place, strict=True)]
    rows = [exact.G[r] for r in active]
    give = [1 / q if at is None else Fraction(0) for q, at in zip(exact.q, place, strict=True)]
    gram = [[_dot(give, list(map(_times, row, other))) for other in rows] for row in rows]
    solved = _solve(gram, [_dot(exact.G[r], x) - exact.h[r] for r in active])
    if solved is None:
        return None
    pull = [_dot(solved, column) for column in zip(*rows, strict=True)] if rows else []
    x = [v - g * p for v, g, p in zip(x, give, pull, strict=True)] if rows else x
    mu = [Fraction(0)] * len(exact.h)
    for r, multiplier in zip(active, solved, strict=True):
        mu[r] = multiplier
    return x, mu


def _is_optimal(exact: Rational, x: list[Fraction], mu: list[Fraction]) -> bool:
    """All KKT conditions, without any tolerance."""
    if min(mu, default=0) < 0 or not all(map(_within, x, exact.lo, exact.hi)):
        return False
    if any(_dot(row, x) > offset for row, offset in zip(exact.G, exact.h, strict=True)):
        return False
    for j, v in enumerate(x):
        slope = exact.q[j] * (v - exact.a[j]) + _dot(mu, [row[j] for row in exact.G])
        if (slope > 0 and v != exact.lo[j]) or (slope < 0 and v != exact.hi[j]):
            return False
    return True


def _solve(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """Gauss-Jordan elimination in fractions; None for a singular matrix."""
    table = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for k in range(len(table)):
        pivot = next((r for r in range(k, len(table)) if table[r][k]), None)
        if pivot is None:
            return None
        table[k], table[pivot] = table[pivot], table[k]
        table[k] = [value / table[k][k] for value in table[k]]
        for r in range(len(table)):
            if r != k and table[r][k]:
                table[r] = [v - table[r][k] * w for v, w in zip(table[r], table[k], strict=True)]
    return [row[-1] for row in table]


def verdict(
    problem: Problem, i: int, answer: Answer, judges: Sequence[str] = ("daqp", "highs")
) -> Verdict:
    """Judge the answer for point i by its certificate and by the first solver that has one."""
    return verdicts(problem, answer, judges, [i])[0]


def verdicts(
    problem: Problem,
    answer: Answer,
    judges: Sequence[str] = ("daqp", "highs"),
    which: Sequence[int] | None = None,
) -> list[Verdict]:
    """Judge the answers for all points, or for `which`."""
    which = range(len(problem.points)) if which is None else which
    optimal = [i for i in which if answer.status[i] == "optimal"]
    found = residuals(problem, optimal, answer.points[optimal], answer.multipliers[optimal])
    place = {i: k for k, i in enumerate(optimal)}
    return [
        _of_optimum(problem, i, found, place[i], judges)
        if i in place
        else _of_infeasible(problem, i, answer.multipliers[i])
        if answer.status[i] == "infeasible"
        else Verdict("undecided", "none", False, {"status": answer.status[i]})
        for i in which
    ]


def _of_infeasible(problem: Problem, i: int, y: ndarray) -> Verdict:
    """Judge a claim that no point fits."""
    margin = farkas(problem, i, y)
    proven = margin > PROOF
    details = {"margin": margin, "truth": problem.truth[i]}
    if problem.truth[i] is True:
        return Verdict("wrong status", "construction", False, details)
    if proven:
        return Verdict("agree", "farkas", True, details)
    feasible, judge = _feasible(problem, i)
    outcome: Outcome = {True: "wrong status", False: "agree", None: "undecided"}[feasible]
    return Verdict(outcome, judge, False, details)


def _feasible(problem: Problem, i: int) -> tuple[bool | None, str]:
    """Second opinion on feasibility: construction, exact where small, else HiGHS."""
    if problem.truth[i] is not None:
        return problem.truth[i], "construction"
    if is_small(problem):
        return exact_feasible(problem, i), "exact"
    return highs_feasibility(problem, i).feasible, "highs"


def _of_optimum(
    problem: Problem, i: int, found: Residuals, k: int, judges: Sequence[str]
) -> Verdict:
    """Judge a claimed optimum: its certificate first, then other solvers' costs."""
    value, kkt = found.value(k), float(found.worst[k])
    details = {"kkt": kkt} | value._asdict()
    details |= {kind: float(getattr(found, kind)[k]) for kind in KINDS}
    certified = kkt <= TOLERANCE
    if problem.truth[i] is False:
        return Verdict("wrong status", "construction", certified, details)
    if 0 < value.cost <= value.cost_error and is_feasible_itself(problem, i):
        return Verdict("wrong cost", "exact", certified, details | {"exact": 0.0})
    for judge in judges if certified else SOLUTIONS:
        other = SOLUTIONS[judge](problem, i)
        if other.good:
            details |= {judge: other.value.cost, f"{judge} kkt": other.kkt}
            outcome, last = _compared(problem, i, value, other.value, judge)
            return Verdict(outcome, last, certified, details)
    if certified:
        return Verdict("agree", "kkt", True, details)
    feasible, judge = _feasible(problem, i)
    return Verdict("wrong status" if feasible is False else "undecided", judge, False, details)


def _compared(
    problem: Problem, i: int, value: Value, other: Value, judge: str
) -> tuple[Outcome, str]:
    """Compare costs; settle a dispute exactly where small, else by duality, else by a third."""
    m, d = problem.G.shape
    if not value.differs(other):
        return "agree", judge
    if d <= 3 and m <= 4:
        exact = brute_force_projection(problem, i)
        if exact is None:  # only just empty: both answers are outside, by less than the tolerance
            return "undecided", "exact"
        cost = float(exact.cost)
        return "wrong cost" if value.differs(Value(cost, cost, inf)) else "agree", "exact"
    if value.too_cheap(other):
        return "wrong cost", judge
    if other.too_cheap(value):  # the judge's own point cannot be feasible
        return "agree", "duality"
    (third,) = set(SOLUTIONS) - {judge}
    opinion = SOLUTIONS[third](problem, i)
    agrees = opinion.good and not value.differs(opinion.value)
    return ("agree", third) if agrees else ("wrong cost", judge)


def stand_in(problem: Problem) -> Answer:
    """Answer a problem by DAQP and HiGHS: what the sweep runs on without a kernel."""
    n, d = problem.points.shape
    points, multipliers = np.full((n, d), np.nan), np.zeros((n, len(problem.h)))
    gap, status = np.full(n, np.nan), ["unresolved"] * n
    for i in range(n):
        best = daqp_solution(problem, i)
        if not best.good:
            best = min(best, highs_solution(problem, i), key=lambda reference: reference.kkt)
        if best.good:
            points[i] = np.clip(best.z.astype(float), *problem.box(i))
            multipliers[i] = best.mu
            found = residuals(problem, [i], points[i : i + 1], multipliers[i : i + 1])
            gap[i], status[i] = found.gap[0] * found.cost[0], "optimal"
            continue
        phase_one = highs_feasibility(problem, i)
        if phase_one.margin > PROOF:
            multipliers[i], status[i] = phase_one.y, "infeasible"
    return Answer(points, multipliers, gap, status)
