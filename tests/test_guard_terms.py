"""The rounding guard covers what rounding really does, in exact arithmetic, term by term.

A model says which of two centroids is nearer by a difference of rounded numbers. The judge
computes that difference as models do, in several orders and precisions, and half of it is compared,
in fractions, with the slack of the constraint. Where the two disagree by more than the guard asks
for, an answer could land elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer

from voicecf import SHARK, Region, Status, VoICE, project
from voicecf.geometry.arithmetic import Arithmetic
from voicecf.geometry.cell import Cell
from voicecf.geometry.guard import Guard
from voicecf.geometry.pullback import Metrics, Mixing, pulled_back, with_round_trip_guard

DELTA = 1e-9
FORMULAS = ["direct", "expanded"]
TYPES = [np.float64, np.float32]
LONG = 512  # terms of a sum: so many that their roundings outweigh all others


def eps_of(dtype) -> float:
    return float(np.finfo(dtype).eps)


def exact(values) -> np.ndarray:
    """Numbers as fractions."""
    return np.array([Fraction(v) for v in np.asarray(values, float).ravel().tolist()])


def length(metric, v) -> float:
    return float(np.sqrt((metric * np.asarray(v, float) ** 2).sum()))


def exact_slack(region: Region, j: int, z) -> Fraction:
    """Slack of a constraint as it is stored, without rounding."""
    away = exact(z) - exact(region.origin)
    return Fraction(float(region.offsets[j])) - exact(region.normals[j]) @ away


def true_slack(cell: Cell, j: int, z) -> Fraction:
    """Half the difference of the squared distances to rival and target, without rounding."""
    centers = exact(cell.centers).reshape(cell.centers.shape)
    own, theirs = ((exact(z) - centers[t]) ** 2 for t in (cell.target, cell.rivals[j]))
    return exact(cell.weights) @ (theirs - own) / 2


def bare(guard: Guard) -> Guard:
    """The guard of cells that are not contracted."""
    return replace(guard, behind=np.zeros_like(guard.behind))


def asked_for(region: Region, metric, z) -> np.ndarray:
    """Slack that the guard asks for at a point, for a row right beside it."""
    lengths = length(metric, z), length(metric, np.asarray(z, float) - region.origin)
    return bare(region.guard).slack(*lengths, 0.0)


# How models compute, one rounding after the other.


def orders(terms: np.ndarray) -> list[np.ndarray]:
    """Orders of summation: as they stand, backwards, by size, and at random."""
    n, by_size = len(terms), np.argsort(abs(terms))
    shuffled = np.random.default_rng(0).permutation(n)
    return [np.arange(n), np.arange(n)[::-1], by_size, by_size[::-1], shuffled]


def summed(terms: np.ndarray, way: int):
    """The sum of terms in one of several orders, each addition rounded."""
    return np.add.accumulate(terms[orders(terms)[way]])[-1]


WAYS = range(5)


def computed_distance(formula: str, x, m, weights, way: int) -> Fraction:
    """What a model takes for the squared distance, up to a number that all centroids share."""
    if formula == "direct":
        return Fraction(float(summed(weights.astype(x.dtype) * (x - m) ** 2, way)))
    # As scikit-learn does, without weights; they are all 1 / d.
    product, square = summed(x * m, way), summed(m * m, way)
    return Fraction(float(square - x.dtype.type(2) * product)) / len(x)


def computed_slack(formula: str, x, cell: Cell, j: int, way: int) -> Fraction:
    """Half the difference of the squared distances to rival and target, as a model has it."""
    rival, own = cell.centers[cell.rivals[j]].astype(x.dtype), cell.center.astype(x.dtype)
    theirs = computed_distance(formula, x, rival, cell.weights, way)
    return (theirs - computed_distance(formula, x, own, cell.weights, way)) / 2


def lands(formula: str, x, cell: Cell) -> bool:
    """Whether a model has the point in the target in whatever order it sums."""
    rivals = range(len(cell.rivals))
    return all(computed_slack(formula, x, cell, j, way) > 0 for j in rivals for way in WAYS)


def cell_of(seed: int, formula: str, dtype, offset: float, spread: float) -> Cell:
    """A random cell whose numbers have the precision of the model."""
    rng = np.random.default_rng(seed)
    k, d = 4, (1, 2, 8, 33)[seed % 4]
    centers = (offset + spread * rng.normal(size=(k, d))).astype(dtype).astype(float)
    equal = formula == "expanded"
    weights = np.full(d, 1 / d) if equal else rng.dirichlet(np.ones(d))
    return Cell(centers, weights, int(rng.integers(k)))


# Precision of the model, where its centroids are, and how far apart.
PLACES = [
    (np.float64, 0.0, 1.0),
    (np.float64, 1e6, 1.0),
    (np.float64, 1e8, 1e-2),
    (np.float64, -3e7, 50.0),
    (np.float32, 0.0, 1.0),
    (np.float32, 20.0, 1.0),
    (np.float32, -1e4, 20.0),
]


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(("dtype", "offset", "spread"), PLACES)
def test_on_a_border_the_guard_covers_what_a_model_makes_of_the_slack(
    formula, dtype, offset, spread
):
    worst = 0.0
    for seed in range(8):
        cell = cell_of(seed, formula, dtype, offset, spread)
        region = cell.region(delta=DELTA, arithmetic=Arithmetic(formula, eps_of(dtype)))
        rng, metric = np.random.default_rng(seed), cell.weights + DELTA
        for j, normal in enumerate(region.normals):
            beside = region.origin + 2 * spread * rng.normal(size=len(normal))
            excess = normal @ (beside - region.origin) - region.offsets[j]
            z = (beside - excess * normal / (normal @ normal)).astype(dtype)
            asked = Fraction(float(asked_for(region, metric, z)[j]))
            slack = exact_slack(region, j, z)
            # Where rounding has moved z away from the border, squares are unequal by so much.
            asked += Fraction(Arithmetic("direct", eps_of(dtype)).growth(len(z))) * abs(slack)
            for way in WAYS:
                error = abs(slack - computed_slack(formula, z, cell, j, way))
                assert error <= asked
                worst = max(worst, float(error / asked))
    assert worst > 0


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize(("dtype", "offset", "spread"), PLACES)
def test_answers_land_in_whatever_order_the_model_sums(formula, dtype, offset, spread):
    answered = missed = 0
    for seed in range(8):
        cell = cell_of(seed, formula, dtype, offset, spread)
        region = cell.region(delta=DELTA, arithmetic=Arithmetic(formula, eps_of(dtype)))
        rng = np.random.default_rng(seed)
        points = region.origin + 3 * spread * rng.normal(size=(12, len(region.origin)))
        outside = points[~cell.region().contains(points)]
        if not len(outside):
            continue
        guarded = project(outside, region, cell.weights + DELTA)
        free = project(outside, replace(region, guard=None), cell.weights + DELTA)
        for z in guarded.points[guarded.status == Status.OPTIMAL]:
            answered += 1
            assert lands(formula, z.astype(dtype), cell)
        missed += sum(not lands(formula, z.astype(dtype), cell) for z in free.points)
    # Far away, squares of coordinates have no digits left for the difference.
    lost = formula == "expanded" and 10 * eps_of(dtype) * offset**2 > 0.01 * spread**2
    assert answered > 20 or lost
    assert missed > 5  # without a guard they do not


# Sums that go wrong by nearly half a unit in the last place at every addition.


def rounded_up(dtype, n: int = LONG) -> np.ndarray:
    """1 and terms of which each is a little more than half a unit in the last place of the sum."""
    return np.r_[1.0, np.full(n - 1, 0.5 * eps_of(dtype) * (1 + 2.0**-8))]


def rounded_down(dtype, n: int = LONG) -> np.ndarray:
    """1 and terms of which each is a little less than half a unit in the last place: all lost."""
    return np.r_[1.0, np.full(n - 1, 0.5 * eps_of(dtype) * (1 - 2.0**-8))]


# Which of the two centroids has the sum that goes wrong; the other is at 0, or both have one.
WRONG = {"both": (1, 1), "target": (1, 0), "rival": (0, 1)}


def adversary(formula: str, dtype, sizes=(1, 1)) -> tuple[Cell, Region]:
    """A cell such that at 0 the sums of squares for target and rival go wrong in opposite ways."""
    far, near = np.sqrt(rounded_up(dtype)), -np.sqrt(rounded_down(dtype))
    centers = np.array([far, near]).astype(dtype).astype(float) * np.array(sizes)[:, None]
    cell = Cell(centers, np.full(LONG, 1 / LONG), 0)
    return cell, cell.region(delta=DELTA, arithmetic=Arithmetic(formula, eps_of(dtype)))


@pytest.mark.parametrize("dtype", TYPES)
def test_the_share_of_squared_distances_covers_the_worst_sum_of_a_direct_model(dtype):
    cell, region = adversary("direct", dtype)
    z, metric = np.zeros(LONG, dtype), cell.weights + DELTA
    error = abs(true_slack(cell, 0, z) - computed_slack("direct", z, cell, 0, 0))
    assert error <= bare(region.guard).slack(0.0, length(metric, region.origin), 0.0)[0]
    assert error > 0.45 * eps_of(dtype)  # of LONG terms over LONG, half a unit each


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("dtype", TYPES)
def test_the_constant_covers_the_worst_sum_of_squared_centroids(dtype, wrong):
    cell, region = adversary("expanded", dtype, WRONG[wrong])
    z = np.zeros(LONG, dtype)  # products with it are 0, so squares of centroids are all there is
    error = abs(true_slack(cell, 0, z) - computed_slack("expanded", z, cell, 0, 0))
    assert error <= bare(region.guard).slack(0.0, 0.0, 0.0)[0]
    assert error > 0.225 * eps_of(dtype) * sum(WRONG[wrong])


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("dtype", TYPES)
def test_the_share_of_the_size_covers_the_worst_products_with_centroids(dtype, wrong):
    z = np.r_[1.0, np.full(LONG - 1, np.sqrt(eps_of(dtype)))].astype(dtype)
    centers = np.array([rounded_up(dtype) / z, -rounded_down(dtype) / z]).astype(dtype)
    centers *= np.array(WRONG[wrong], dtype)[:, None]
    cell = Cell(centers.astype(float), np.full(LONG, 1 / LONG), 0)
    region = cell.region(delta=DELTA, arithmetic=Arithmetic("expanded", eps_of(dtype)))
    error = sum(
        abs(Fraction(float(summed(z * m, 0))) - exact(z) @ exact(m)) / LONG for m in centers
    )
    guard, size = bare(region.guard), length(cell.weights + DELTA, z)
    assert error <= guard.slack(size, 0.0, 0.0)[0] - guard.slack(0.0, 0.0, 0.0)[0]
    assert error > 0.45 * eps_of(dtype) * sum(WRONG[wrong])


def test_the_share_of_the_size_covers_rounding_the_answer_to_single_precision():
    eps, d = eps_of(np.float32), 7
    z = np.full(d, 1 + 0.5 * eps * (1 + 2.0**-8))  # rounded up, towards the rival
    cell = Cell(np.array([np.full(d, 0.75), np.full(d, 1.25)]), np.full(d, 1 / d), 0)
    region = cell.region(delta=DELTA, arithmetic=Arithmetic("direct", eps))
    lost = exact_slack(region, 0, z) - exact_slack(region, 0, z.astype(np.float32))
    assert lost > 0.9 * 0.5 * eps * np.abs(region.normals).sum()
    assert lost <= bare(region.guard).slack(length(cell.weights + DELTA, z), 0.0, 0.0)[0]


# The solver's own rounding.


def walled_in(seed: int, far: float = 1e3, d: int = 4):
    """A cell with rivals on all sides, so that answers are near it however far the row is.

    Beyond ten thousand times the size of the answer the solver refines what it found.
    """
    rng = np.random.default_rng(seed)
    around = 2 * np.vstack([np.eye(d), -np.eye(d)]) + 0.2 * rng.normal(size=(2 * d, d))
    weights = rng.dirichlet(np.ones(d))
    rows = rng.normal(size=(30, d))
    rows *= far / np.linalg.norm(rows, axis=1)[:, None]
    return Cell(np.vstack([np.zeros(d), around]), weights, 0), rows


def mixed(region: Region, cell: Cell, seed: int):
    """The region seen through a map, the metric of its coordinates, and the map."""
    d = len(region.origin)
    mixing = Mixing(np.random.default_rng(seed).normal(size=(d, d)), np.zeros(d))
    metrics = Metrics(cell.weights + DELTA, np.full(d, 1 / d) + DELTA)
    return pulled_back(region, mixing, np.zeros(d), metrics, Arithmetic()), metrics.coordinates


@pytest.mark.parametrize("through", ["nothing", "a map"])
def test_the_share_of_the_move_covers_what_the_solver_rounds_for_rows_far_away(through):
    violated = 0
    for seed in range(12):
        cell, rows = walled_in(seed)
        region = cell.region(delta=DELTA, arithmetic=Arithmetic())
        metric = cell.weights + DELTA
        if through == "a map":
            region, metric = mixed(region, cell, seed)
        found = project(rows, replace(region, guard=None), metric)
        assert (found.status == Status.OPTIMAL).all()
        for a, z in zip(rows, found.points, strict=True):
            move = length(metric, z - a)
            covered = region.guard.slack(0.0, 0.0, move) - region.guard.slack(0.0, 0.0, 0.0)
            for j in range(len(region.offsets)):
                beyond = -exact_slack(region, j, z)
                assert beyond <= covered[j]
                # More than anything that does not know of the move would allow.
                violated += beyond > 2 * asked_for(region, metric, z)[j]
    assert violated > 10


@pytest.mark.parametrize("far", [1e2, 1e3, 1e4, 1e6])
@pytest.mark.parametrize("through", ["nothing", "a map"])
def test_so_with_it_answers_for_rows_far_away_satisfy_every_constraint_exactly(through, far):
    for seed in range(5):
        cell, rows = walled_in(seed, far)
        region = cell.region(delta=DELTA, arithmetic=Arithmetic())
        metric = cell.weights + DELTA
        if through == "a map":
            region, metric = mixed(region, cell, seed)
        found = project(rows, region, metric)
        assert (found.status == Status.OPTIMAL).all()
        for z in found.points:
            assert all(exact_slack(region, j, z) >= 0 for j in range(len(region.offsets)))


# How much slack may be asked for at most, and what a contraction gives.


@pytest.mark.parametrize("row", [0.9, 0.0, -10.0, -1000.0])
def test_an_answer_is_pushed_by_about_one_percent_of_its_distance_from_the_centroid_at_most(row):
    cell = Cell(np.array([[0.0], [2.0]]), np.ones(1), 1)
    region = cell.region(arithmetic=Arithmetic())

    def answer(push: float):
        # The border is at 1, as far from the centroid; a slack of 0.02 is a push of 0.01.
        guard = replace(region.guard, constant=np.array([2 * push]))
        return project([[row]], replace(region, guard=guard))

    found = answer(0.009)
    assert found.status.tolist() == [Status.OPTIMAL]
    assert 1.009 <= found.points[0, 0] <= 1.02 * (1 + 1e-9)  # twice as much may be asked for
    assert answer(0.021).status.tolist() == [Status.UNRESOLVED]


@pytest.mark.parametrize("seed", range(6))
def test_that_percent_is_of_the_distance_in_the_models_own_metric(seed):
    rng = np.random.default_rng(seed)
    d = 5
    weights = np.r_[rng.dirichlet(np.ones(d - 1)), 0.0]  # a column that the model does not see
    cell, delta = Cell(rng.normal(size=(4, d)), weights, 2), 1e-3
    share = cell.region(0.7, delta=delta, arithmetic=Arithmetic("expanded")).guard.share
    for j, rival in enumerate(cell.rivals):
        shift = exact(cell.centers[rival]) - exact(cell.center)
        own = float((exact(weights) * shift) @ shift)
        solvers = float(((exact(weights) + Fraction(delta)) * shift) @ shift)
        # Along the way to the rival: 1 % of |m_j - m_t|^2, a slack of as much of the way.
        assert share[j] * np.sqrt(solvers) == pytest.approx(0.01 * own, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.0])
@pytest.mark.parametrize("formula", FORMULAS)
def test_what_lies_behind_a_constraint_is_exactly_what_the_contraction_gives(alpha, formula):
    rng = np.random.default_rng(3)
    centers = 2.0 * rng.integers(-4, 5, size=(5, 4))
    cell = Cell(centers, np.array([0.5, 0.25, 0.25, 0.0]), 1)
    region = cell.region(alpha, delta=DELTA, arithmetic=Arithmetic(formula))
    for z in rng.integers(-5, 6, size=(10, 4)).astype(float):
        for j in range(4):
            behind = Fraction(float(region.guard.behind[j]))
            assert exact_slack(region, j, z) + behind == true_slack(cell, j, z)


def test_a_contraction_by_more_than_rounding_leaves_answers_where_they_are():
    rng = np.random.default_rng(0)
    cell = Cell(rng.normal(size=(5, 3)), np.full(3, 1 / 3), 0)
    region = cell.region(0.9, delta=DELTA, arithmetic=Arithmetic("expanded", 1e-6))
    rows = cell.center + 3 * rng.normal(size=(40, 3))
    rows, metric = rows[~region.contains(rows)], cell.weights + DELTA
    found = project(rows, region, metric)
    np.testing.assert_array_equal(found.status, Status.OPTIMAL)
    free = project(rows, replace(region, guard=None), metric)
    np.testing.assert_array_equal(found.points, free.points)
    assert (region.guard.slack(1.0, 1.0, 1.0) == 0).all()


@pytest.mark.parametrize("needed", [0.003, 0.006])
def test_a_contraction_by_less_counts_towards_the_slack(needed):
    cell = Cell(np.array([[0.0], [2.0]]), np.ones(1), 1)
    region = cell.region(0.999, arithmetic=Arithmetic())
    guard = replace(region.guard, constant=np.array([needed]))
    assert needed > 0.001 * cell.offsets[0]  # the contraction is not enough
    for row in (0.9, 0.0, -5.0):
        z = project([[row]], replace(region, guard=guard)).points[0]
        to_border = exact_slack(cell.region(), 0, z)
        assert needed <= to_border <= 2 * needed * (1 + 1e-9)  # twice as much may be asked for


# Units: errors of conversions.


def in_units():
    """A region, errors of its coordinates in other units, and the same region with their guard."""
    rng = np.random.default_rng(0)
    cell = Cell(rng.normal(size=(5, 3)), rng.dirichlet(np.ones(3)), 0)
    region, errors = cell.region(delta=DELTA, arithmetic=Arithmetic()), np.array([1e-4, 0.0, 3e-5])
    rows = cell.center + 3 * rng.normal(size=(30, 3))
    rows = rows[~region.contains(rows)]
    return region, errors, rows, cell.weights + DELTA


def test_the_guard_of_a_round_trip_is_what_the_worst_errors_take_away():
    region, errors, _, _ = in_units()
    guarded = with_round_trip_guard(region, errors)
    more = guarded.guard.slack(0.0, 0.0, 0.0) - region.guard.slack(0.0, 0.0, 0.0)
    for j, normal in enumerate(region.normals):
        worst = exact(np.sign(normal) * errors)
        assert more[j] == pytest.approx(float(exact(normal) @ worst), rel=1e-12)


def test_answers_stay_in_the_cell_when_every_coordinate_errs_by_what_the_round_trip_may():
    region, errors, rows, metric = in_units()

    def astray(region: Region) -> int:
        found = project(rows, region, metric)
        assert (found.status == Status.OPTIMAL).all()
        signs = np.sign(region.normals)
        worst = found.points[:, None] + signs * errors
        return sum(exact_slack(region, j, z) < 0 for ways in worst for j, z in enumerate(ways))

    assert astray(region) >= len(rows)
    assert astray(with_round_trip_guard(region, errors)) == 0


def test_the_regions_of_a_pipeline_have_the_round_trip_in_their_guard():
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(60, 3)) * [1, 50, 1e-3]
    voice = VoICE(make_pipeline(PowerTransformer(), SHARK(4, random_state=0))).fit(X)
    errors = voice.space_.round_trip_error
    assert errors.max() > 0
    for t in range(4):
        region = voice.region(t)
        np.testing.assert_allclose(
            region.guard.constant, np.abs(region.normals) @ errors, rtol=1e-12
        )


# Maps: the model sees x = A z + c, which rounds, too.


def through(mixing: Mixing, z, dtype, way: int) -> np.ndarray:
    """What a model gets: each sum in one of several orders, the shift first or last."""
    terms = np.column_stack([mixing.shift, mixing.matrix * z]).astype(dtype)
    return np.array([summed(line, way) for line in terms])


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("shift", [0.0, 1e3, 1e7])
@pytest.mark.parametrize(("p", "d"), [(2, 5), (5, 5), (6, 3)])
def test_the_guard_covers_what_a_model_makes_of_the_slack_behind_a_map(formula, shift, p, d):
    for seed in range(6):
        rng = np.random.default_rng(seed)
        origin = shift * rng.normal(size=d)
        matrix = rng.normal(size=(p, d))
        mixing = Mixing(matrix, -matrix @ origin + rng.normal(size=p))
        equal = formula == "expanded"
        weights = np.full(p, 1 / p) if equal else rng.dirichlet(np.ones(p))
        centers = matrix @ origin + mixing.shift + rng.normal(size=(4, p))
        cell, arithmetic = Cell(centers, weights, 1), Arithmetic(formula)
        region = cell.region(delta=DELTA, arithmetic=arithmetic)
        metric = np.full(d, 1 / d) + DELTA
        pulled = pulled_back(region, mixing, origin, Metrics(weights + DELTA, metric), arithmetic)
        for j, normal in enumerate(pulled.normals):
            beside = origin + rng.normal(size=d)
            excess = normal @ (beside - origin) - pulled.offsets[j]
            z = beside - excess * normal / (normal @ normal)
            asked = asked_for(pulled, metric, z)[j]
            for way in WAYS:
                x = through(mixing, z, np.float64, way)
                seen = computed_slack(formula, x, cell, j, way)
                assert abs(exact_slack(pulled, j, z) - seen) <= asked


def narrow(matrix, shift, origin, middle: float, half: float = 2.0**-20):
    """Two centroids on a line beside `middle`, seen through a map of many columns."""
    mixing = Mixing(np.atleast_2d(matrix), np.array([shift]))
    cell = Cell(np.array([[middle - half], [middle + half]]), np.ones(1), 0)
    region = cell.region(delta=DELTA, arithmetic=Arithmetic())
    metrics = Metrics(np.ones(1), np.full(LONG, 1 / LONG))
    return mixing, cell, pulled_back(region, mixing, np.asarray(origin), metrics, Arithmetic())


def test_the_constant_covers_the_worst_sum_that_begins_with_the_shift():
    terms = rounded_up(np.float64, LONG + 1)[1:]
    mixing, cell, pulled = narrow(terms, 1.0, np.zeros(LONG), 1.0)
    z = np.ones(LONG)
    x = through(mixing, z, np.float64, 0)
    error = abs(exact_slack(pulled, 0, z) - computed_slack("direct", x, cell, 0, 0))
    assert error <= asked_for(pulled, np.full(LONG, 1 / LONG), z)[0]
    assert error > 0.45 * LONG * eps_of(float) * abs(cell.normals[0, 0])


def test_the_share_of_the_size_covers_the_worst_sum_of_products_with_the_matrix():
    z = np.r_[1.0, np.full(LONG - 1, 2.0**-26)]
    mixing, cell, pulled = narrow(rounded_up(np.float64) / z, 0.0, np.zeros(LONG), 1.0)
    x = through(mixing, z, np.float64, 0)[0]
    lost = abs(Fraction(float(x)) - exact(mixing.matrix) @ exact(z)) * Fraction(
        float(cell.normals[0, 0])
    )
    size, guard = length(1 / LONG, z), bare(pulled.guard)
    assert lost <= guard.slack(size, 0.0, 0.0)[0] - guard.slack(0.0, 0.0, 0.0)[0]
    assert lost > 0.45 * LONG * eps_of(float) * abs(cell.normals[0, 0])


def test_the_constant_covers_the_rounding_of_the_offset_itself():
    matrix, origin = rounded_up(np.float64), np.ones(LONG)
    image = float(np.add.accumulate(matrix * origin)[-1])
    _, cell, pulled = narrow(matrix, 0.0, origin, image)
    normal, offset = (Fraction(float(v)) for v in (cell.normals[0, 0], cell.offsets[0]))
    right = offset - normal * (exact(matrix) @ exact(origin) - Fraction(float(cell.center[0])))
    error = abs(Fraction(float(pulled.offsets[0])) - right)
    assert error <= bare(pulled.guard).slack(0.0, 0.0, 0.0)[0]
    assert error > 0.45 * LONG * eps_of(float) * abs(cell.normals[0, 0])


# On a line no length is estimated: there the guard behind a map is that of what the model sees.
FACTOR, METRIC = 1000.0, 0.25


def on_a_line(shift: float, origin: float, formula: str = "expanded", apart: float = 1e-7):
    """Guards on a line, of the model and behind the map, and lengths as both measure them.

    The centroids are so close together that the rounding of the map itself does not count.
    """
    cell = Cell(np.array([[3.0], [3.0 + apart]]), np.ones(1), 0)
    region = cell.region(0.5, delta=DELTA, arithmetic=Arithmetic(formula))
    mixing = Mixing(np.array([[FACTOR]]), np.array([shift]))
    metrics = Metrics(np.ones(1) + DELTA, np.array([METRIC]))
    pulled = pulled_back(region, mixing, np.array([origin]), metrics, Arithmetic(formula))
    seen = np.sqrt(1 + DELTA)
    return bare(region.guard), bare(pulled.guard), seen, np.sqrt(METRIC), pulled, region


def assert_covers_and_no_more(pulled, own) -> None:
    assert pulled >= own * (1 - 1e-12)
    assert pulled <= own * (1 + 1e-3)


def test_behind_a_map_the_share_of_the_size_is_that_of_the_image():
    own, pulled, seen, scale, *_ = on_a_line(shift=0.0, origin=0.003)
    z = 7.0
    size, image = scale * z, seen * FACTOR * z
    covered = pulled.slack(size, 0.0, 0.0) - pulled.slack(0.0, 0.0, 0.0)
    assert_covers_and_no_more(covered[0], (own.of_size * image)[0])


def test_behind_a_map_the_size_of_the_shift_is_in_the_constant():
    own, pulled, seen, _, *_ = on_a_line(shift=50.0, origin=-0.047)
    at_zero = pulled.slack(0.0, 0.0, 0.0)
    assert_covers_and_no_more(at_zero[0], own.slack(seen * 50.0, 0.0, 0.0)[0])


@pytest.mark.parametrize("formula", FORMULAS)
def test_behind_a_map_the_distance_is_that_of_the_image_also_from_another_origin(formula):
    # The origin is seen at 5, the centroid at 3: for a point seen at 7 both parts are equal, 2.
    own, pulled, seen, scale, *_ = on_a_line(shift=0.0, origin=0.005, formula=formula)
    distance = scale * 0.002
    needed = pulled.slack(0.0, distance, 0.0)[0]
    assert_covers_and_no_more(needed, own.slack(0.0, seen * 4.0, 0.0)[0])


def test_behind_a_map_the_largest_share_is_of_the_same_distance():
    own, pulled, seen, scale, *_ = on_a_line(shift=0.0, origin=0.003)
    assert pulled.share[0] * scale == pytest.approx(own.share[0] * seen * FACTOR, rel=1e-12)


def test_behind_a_map_a_contraction_gives_what_it_gave():
    *_, pulled, region = on_a_line(shift=0.0, origin=0.003)
    assert region.guard.behind[0] > 0
    np.testing.assert_array_equal(pulled.guard.behind, region.guard.behind)


def test_a_rival_in_the_place_of_the_target_asks_for_nothing_also_behind_a_map():
    centers = np.array([[1e3, 1e3], [1e3, 1e3], [1004.0, 1e3]])
    cell = Cell(centers, np.full(2, 0.5), 0)
    region = cell.region(delta=DELTA, arithmetic=Arithmetic("expanded"))
    metrics = Metrics(cell.weights + DELTA, cell.weights + DELTA)
    pulled = pulled_back(
        region, Mixing(np.eye(2), np.zeros(2)), cell.center, metrics, Arithmetic("expanded")
    )
    for one in (region, pulled):
        needed = asked_for(one, metrics.seen, [1002.0, 1e3])
        assert needed[0] == 0
        assert needed[1] > 0
        found = project([[1010.0, 990.0]], one, metrics.seen)
        assert found.status.tolist() == [Status.OPTIMAL]


# Costs distort the lengths that a guard is measured by.


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("bounds", [None, (-4.0, 4.0)])
@pytest.mark.parametrize(
    "costs", [{0: 1e-4, 1: 1e-4, 2: 1e-4}, {0: 1e-6}, {1: 1e3}, {0: 0.1, 2: 9.0}]
)
def test_with_costs_answers_keep_the_slack_that_their_lengths_ask_for(costs, bounds, offset):
    rng = np.random.default_rng(0)
    centers, X = rng.normal(size=(6, 3)), rng.normal(size=(20, 3)).clip(-4, 4) + offset
    bounds = None if bounds is None else tuple(np.array(bounds) + offset)
    voice = VoICE.from_centers(centers + offset, weights=[1.0, 2.0, 3.0], bounds=bounds)
    metric, seen = voice.weights_ + voice.delta, 0
    for t in range(6):
        cf, region = voice.explain(X, t, costs=costs), voice.region(t)
        for i in np.flatnonzero(cf.status == Status.OPTIMAL):
            z, a = cf.points[i], X[cf.row[i]]
            lengths = (length(metric, v) for v in (z, z - region.origin, z - a))
            needed = region.guard.slack(*lengths)
            assert all(exact_slack(region, j, z) >= needed[j] for j in range(5))
            seen += 1
    assert seen > 50


def test_a_constant_guard_is_the_largest_within_its_lengths():
    guard = Guard(*np.random.default_rng(0).uniform(1, 2, size=(6, 4)))
    guard = replace(guard, behind=0.1 * guard.behind)
    constant = guard.constant_within(2.0, 3.0, 5.0)
    np.testing.assert_array_equal(constant.slack(2.0, 3.0, 5.0), guard.slack(2.0, 3.0, 5.0))
    np.testing.assert_array_equal(constant.slack(0.0, 0.0, 0.0), guard.slack(2.0, 3.0, 5.0))
    np.testing.assert_array_equal(constant.share, guard.share)
