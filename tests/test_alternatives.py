"""Alternatives are the sequence that they are defined by, found by brute force.

Each answer is the best of all that leave, of every answer before it, at least one of the columns
unchanged that it changes. The judges list every set of columns and ask DAQP, or list every point
of a grid; neither knows of branches and locks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from judges import daqp_solution
from problems import Problem
from voicecf import Status, VoICE
from voicecf.search.alternatives import Alternatives
from voicecf.solver.projection import Projection

MOVED = 1e-7  # a shorter move is a rounding error
SAME = 1e-7  # costs that differ by less, relative, are equal


@dataclass(frozen=True)
class Way:
    """A way into the target: the columns that it changes, and its energy."""

    columns: frozenset[int]
    energy: float

    def key(self, objective: str) -> tuple[float, float]:
        return (len(self.columns) if objective == "fewest" else 0, self.energy)


def subsets(columns: range) -> Iterator[tuple[int, ...]]:
    sizes = range(len(columns) + 1)
    return itertools.chain.from_iterable(itertools.combinations(columns, size) for size in sizes)


def of_every_set(voice: VoICE, a: np.ndarray, target: int, fixed=()) -> list[Way]:
    """The cheapest way with each set of columns free to change, by DAQP."""
    region, metric, found = voice.region(target), voice.weights_ + voice.delta, []
    nan = np.full((1, 1), np.nan)
    for free in subsets(range(len(a))):
        if set(free) & set(fixed):
            continue
        lo, hi = a.copy(), a.copy()
        lo[list(free)], hi[list(free)] = region.lo[list(free)], region.hi[list(free)]
        problem = Problem(
            "locked", a[None], region.normals, region.offsets, lo, hi, region.origin, metric,
            (None,), nan, nan, 0, 0,
        )  # fmt: skip
        answer = daqp_solution(problem, 0)
        assert answer.claim != "failed"
        if answer.claim == "optimal":
            columns = frozenset(np.flatnonzero(abs(answer.z - a) > MOVED).tolist())
            found.append(Way(columns, 2 * answer.value.cost))
    return found


def answers_of(voice: VoICE, cf, row: int, X: np.ndarray) -> list[Way]:
    """The answers for a row in the order in which they came."""
    metric, found = voice.weights_ + voice.delta, []
    for i in np.flatnonzero(cf.row == row):
        move = cf.points[i] - X[row]
        found.append(Way(frozenset(np.flatnonzero(move).tolist()), float(metric @ move**2)))
    return found


def assert_defined_sequence(
    found: list[Way], ways: list[Way], most: int, objective: str = "cost"
) -> None:
    """Compare answers, one after the other, with the best of all ways that are left."""
    for n in range(most + 1):
        left = [w for w in ways if not any(one.columns <= w.columns for one in found[:n])]
        if n == len(found):
            assert not left  # it stops only where no way is left
            return
        best = min(left, key=lambda way: way.key(objective))
        assert not any(one.columns <= found[n].columns for one in found[:n])
        assert found[n].energy == pytest.approx(best.energy, rel=SAME)
        if objective == "fewest":
            assert len(found[n].columns) == len(best.columns)
        same = [w for w in left if w.energy <= best.energy * (1 + SAME)]
        assert found[n].columns in {w.columns for w in same}
    assert len(found) == most + 1


def problems_of(d: int, seed: int, side: float = 2.5, contraction: float = 0.9):
    """Centroids in a box, rows, and a target for each row."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 7))
    centers = rng.normal(size=(k, d))
    voice = VoICE.from_centers(
        centers, weights=rng.dirichlet(np.ones(d)), contraction=contraction, bounds=(-side, side)
    )
    X = rng.normal(size=(3, d)).clip(-side, side)
    return voice, X, (voice.predict(X) + rng.integers(1, k, size=3)) % k


def assert_defined(voice: VoICE, X: np.ndarray, targets: np.ndarray, objective: str) -> None:
    """Compare the alternatives for all rows with the defined sequence."""
    pytest.importorskip("daqp")
    most = 12
    cf = voice.explain(X, targets, objective=objective, alternatives=most)
    lengths = []
    for row, target in enumerate(targets):
        ways = of_every_set(voice, X[row], int(target))
        found = answers_of(voice, cf, row, X)
        if not ways:
            assert cf.status[cf.row == row].tolist() == [Status.INFEASIBLE]
            continue
        assert_defined_sequence(found, ways, most, objective)
        keys = [(len(way.columns), way.energy) for way in found]
        ordered = keys if objective == "fewest" else [energy for _, energy in keys]
        assert ordered == sorted(ordered)
        assert cf.rank[cf.row == row].tolist() == list(range(len(found)))
        lengths.append(len(found))
    assert max(lengths) > 1
    assert (voice.predict(cf.points[cf.feasible]) == cf.target[cf.feasible]).all()


@pytest.mark.parametrize("objective", ["cost", "fewest"])
@pytest.mark.parametrize(("d", "seed"), [(2, 9), (3, 8), (4, 2), (4, 10), (5, 1), (5, 7)])
def test_alternatives_are_the_defined_sequence(d, seed, objective):
    assert_defined(*problems_of(d, seed), objective)


@pytest.mark.parametrize("objective", ["cost", "fewest"])
@pytest.mark.parametrize("seed", [2, 11, 22, 24])
def test_so_they_are_in_a_narrow_box_where_ways_differ_in_their_number_of_columns(seed, objective):
    assert_defined(*problems_of(5, seed, side=1.2, contraction=0.7), objective)


@pytest.mark.parametrize("objective", ["cost", "fewest"])
def test_so_they_are_where_some_columns_may_not_change(objective):
    pytest.importorskip("daqp")
    voice, X, targets = problems_of(5, 6)
    cf = voice.explain(X, targets, objective=objective, alternatives=9, immutable=[1])
    lengths = []
    for row, target in enumerate(targets):
        ways = of_every_set(voice, X[row], int(target), fixed=[1])
        found = answers_of(voice, cf, row, X)
        if ways:
            assert_defined_sequence(found, ways, 9, objective)
            assert not any(1 in way.columns for way in found)
            lengths.append(len(found))
    assert max(lengths) > 1


@pytest.mark.parametrize("most", range(1, 6))
def test_more_alternatives_begin_with_the_fewer(most):
    voice, X, targets = problems_of(5, 4)
    few, many = (voice.explain(X, targets, alternatives=n) for n in (most, most + 1))
    same = many[many.rank <= most]
    np.testing.assert_array_equal(few.points, same.points)
    np.testing.assert_array_equal(few.rank, same.rank)
    assert np.bincount(few.row).max() == most + 1


@pytest.mark.parametrize("objective", ["cost", "fewest"])
@pytest.mark.parametrize("seed", range(4))
def test_in_steps_alternatives_are_the_best_points_of_the_grid(seed, objective):
    rng = np.random.default_rng(seed)
    d, size = 4, 5
    centers = rng.uniform(0, size, size=(3, d))  # no point of the grid is on a border
    voice = VoICE.from_centers(centers, bounds=(0, size))
    X = rng.integers(0, size + 1, size=(6, d)).astype(float)
    targets = (voice.predict(X) + 1) % 3
    grid = np.array(list(itertools.product(range(size + 1), repeat=d)), float)
    nearest = ((grid[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    steps = dict.fromkeys(range(d), 1)
    cf = voice.explain(X, targets, objective=objective, alternatives=6, steps=steps)
    lengths, metric = [], voice.weights_ + voice.delta
    for row, target in enumerate(targets):
        ways = [
            Way(frozenset(np.flatnonzero(move).tolist()), float(metric @ move**2))
            for move in grid[nearest == target] - X[row]
        ]
        found = answers_of(voice, cf, row, X)
        if ways:
            assert_defined_sequence(found, ways, 6, objective)
            lengths.append(len(found))
    assert max(lengths) > 2


# The search by itself, with answers that are made up.


class Table:
    """A made-up problem: some sets of columns have a price, and an answer changes one of them.

    With some columns locked the best answer is the cheapest set without them; of equal prices the
    first in the table.
    """

    def __init__(self, prices: dict[str, float], width: int = 5):
        self.sets = [frozenset(map(int, columns)) for columns in prices]
        self.prices = dict(zip(self.sets, prices.values(), strict=True))
        self.width, self.asked = width, []

    @classmethod
    def random(cls, seed: int, different: int) -> Table:
        rng = np.random.default_rng(seed)
        sets = ["".join(map(str, columns)) for columns in subsets(range(5)) if columns]
        chosen = rng.choice(len(sets), size=int(rng.integers(1, 25)), replace=False)
        prices = 1.0 + rng.permutation(len(chosen)) % different
        return cls({sets[i]: price for i, price in zip(chosen, prices, strict=True)})

    def ask(self, row, target, locked):
        answers = Projection.unresolved(len(locked), 1)
        keys, changed = [(0.0, np.inf)] * len(locked), np.zeros((len(locked), self.width), bool)
        for i, lock in enumerate(locked):
            shut = frozenset(np.flatnonzero(lock).tolist())
            self.asked.append(shut)
            open_ = [columns for columns in self.sets if not columns & shut]
            if open_:
                best = min(open_, key=self.prices.__getitem__)
                keys[i], changed[i, list(best)] = (0.0, self.prices[best]), True
                answers.status[i], answers.points[i] = Status.OPTIMAL, self.sets.index(best)
        return answers, keys, changed

    def found(self, most: int) -> list[frozenset[int]]:
        branches = Alternatives(self.ask, self.width).of(0, 0, most)
        return [self.sets[int(branch.answer.points[0, 0])] for branch in branches]

    def left(self, taken: list[frozenset[int]]) -> list[frozenset[int]]:
        """The sets that leave a column unchanged of each set that is taken."""
        return [columns for columns in self.sets if not any(one <= columns for one in taken)]


@pytest.mark.parametrize("different", [1, 2, 4, 99])
@pytest.mark.parametrize("seed", range(30))
def test_the_search_finds_the_defined_sequence_of_any_prices(seed, different):
    table = Table.random(seed, different)
    for most in (1, 2, 3, 30):
        found = table.found(most)
        for n, columns in enumerate(found):
            left = table.left(found[:n])
            assert columns in left
            assert table.prices[columns] == min(map(table.prices.__getitem__, left))
        assert len(found) == most or not table.left(found)


def test_a_set_that_contains_an_earlier_one_is_passed_over_and_searched_on():
    table = Table({"0": 1.0, "12": 4.0, "012": 2.0, "3": 9.0})
    assert table.found(5) == [{0}, {1, 2}, {3}]


def test_no_set_of_locked_columns_is_asked_for_twice():
    table = Table({"01": 1.0, "12": 2.0, "02": 3.0, "3": 4.0, "34": 5.0, "4": 6.0})
    assert table.found(9) == [{0, 1}, {1, 2}, {0, 2}, {3}, {4}]
    assert len(table.asked) == len(set(table.asked))


def test_nothing_is_asked_for_beyond_the_last_answer():
    table = Table({"01": 1.0, "12": 2.0})
    assert table.found(1) == [{0, 1}]
    assert table.asked == [frozenset()]


def test_where_nothing_is_possible_there_are_no_answers():
    assert Table({}).found(3) == []
