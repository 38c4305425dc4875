"""The search over choices, judged by trying all of them: every option, every set of columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voicecf import Status, parallel
from voicecf.geometry.region import Region
from voicecf.rules.choices import Choices, Freedom
from voicecf.rules.splits import Boxes, Splits
from voicecf.search.branching import Search, branch
from voicecf.solver.projection import Projection, UnitConstraints, project

COST = 1e-9  # costs agree if they differ by no more than this, relative
AMPLE = 10**6  # nodes
# Of a grid's pitch: what is this close to the row's own value is that value.
SAME = 1e-6
EPS = float(np.finfo(float).eps)


@dataclass
class Column:
    """One column of some rows: its options, and what each row may do with them."""

    kind: str  # any, table, pitch or levels
    options: np.ndarray  # (count, width), in coordinates
    own: np.ndarray  # (n, width)
    stay: np.ndarray  # (n,)
    may: np.ndarray  # (n, count): which options each row may move to
    low: np.ndarray  # (n,), of numbers
    high: np.ndarray
    base: float = 0.0
    pitch: float = 0.0

    @property
    def width(self) -> int:
        return self.own.shape[1]

    def is_own(self, row: int, option: np.ndarray) -> bool:
        near = SAME * self.pitch
        return bool((np.abs(option - self.own[row]) <= near).all())

    def level(self, row: int) -> int:
        """The option that a row has; -1 for none."""
        same = np.flatnonzero((self.options == self.own[row]).all(axis=1))
        return int(same[0]) if same.size else -1

    def ways(self, row: int, locked: bool) -> list[tuple[np.ndarray, np.ndarray, int, int]]:
        """All that a row may do: sides of a box, whether that is a change, and the option."""
        own = self.own[row]
        found = [(own, own, 0, self.level(row))] if self.stay[row] else []
        if locked:
            return found
        if self.kind == "any":
            low, high = self.low[row : row + 1], self.high[row : row + 1]
            return [*found, (low, high, 1, -1)] if low <= high else found
        for level in np.flatnonzero(self.may[row]).tolist():
            option = self.options[level]
            if not self.is_own(row, option) or not self.stay[row]:
                found.append((option, option, 1, level))
        return found


@dataclass
class Case:
    """Rows of one problem, and what they may choose."""

    columns: list[Column]
    rows: np.ndarray  # (m, d)
    offsets: np.ndarray
    metric: np.ndarray
    order: np.ndarray  # coordinates of the columns, one column after the other
    changes: int
    fewest: bool = False
    locked: np.ndarray | None = None
    origin: np.ndarray = field(default_factory=lambda: np.zeros(0))
    # Boxes, one of which holds: intervals of numbers and sets of levels, by column.
    unions: tuple[list[dict[int, Any]], ...] = ()

    def place(self, c: int) -> int:
        """The first coordinate of a column."""
        return int(self.order[sum(column.width for column in self.columns[:c])])

    @cached_property
    def points(self) -> np.ndarray:
        stacked = np.hstack([c.own for c in self.columns])
        points = np.empty_like(stacked)
        points[:, self.order] = stacked
        return points

    @cached_property
    def region(self) -> Region:
        origin = self.origin if self.origin.size else 0.0
        return Region(self.rows, self.offsets - self.rows @ np.broadcast_to(
            origin, self.rows.shape[1]), origin=origin)  # fmt: skip

    @cached_property
    def least(self) -> np.ndarray:
        """What brute force finds."""
        return brute(self)

    def is_locked(self, row: int, c: int) -> bool:
        return self.locked is not None and bool(self.locked[row % len(self.locked), c])


def choices_of(case: Case) -> Choices:
    """Lay out what the columns say as `Choices`, one row where all rows are alike."""
    parts = case.columns
    starts = np.cumsum([0, *(c.width for c in parts)])
    listed = [c.options.ravel() if c.kind in ("table", "levels") else [] for c in parts]
    moves = [_range_of(c) if c.kind in ("table", "pitch") else _no_range(c) for c in parts]
    allowed = [c.may for c in parts if c.kind == "levels"]
    low, high = (np.full(case.points.shape, side) for side in (-np.inf, np.inf))
    for c, first in zip(parts, starts, strict=False):
        if c.kind == "any":
            low[:, case.order[first]], high[:, case.order[first]] = c.low, c.high
    freedom = {"any": Freedom.ANY, "levels": Freedom.LEVELS}
    n = len(case.points)
    return Choices(
        fixed=np.zeros(len(parts), dtype=np.bool_),
        first=starts,
        member=case.order,
        freedom=np.array([freedom.get(c.kind, Freedom.GRID) for c in parts], dtype=np.int8),
        start=np.cumsum([0, *map(len, listed)]),
        table=np.concatenate([np.asarray(part, dtype=float) for part in listed]),
        base=np.array([c.base for c in parts]),
        pitch=np.array([c.pitch for c in parts]),
        count=np.array([0 if c.kind == "any" else len(c.options) for c in parts]),
        least=_shared(np.column_stack([m[0] for m in moves]).astype(np.int64)),
        most=_shared(np.column_stack([m[1] for m in moves]).astype(np.int64)),
        allowed=_shared(np.hstack([np.empty((n, 0)), *allowed]).astype(np.uint8)),
        stay=_shared(np.column_stack([c.stay for c in parts]).astype(np.uint8)),
        lo=_shared(low),
        hi=_shared(high),
        changes=case.changes,
        points=case.points,
        grids=(None,) * len(parts),
        sides=(np.full((1, len(parts)), -np.inf), np.full((1, len(parts)), np.inf)),
    )


def splits_of(case: Case) -> Splits:
    """Lay out boxes as the search reads them."""
    places, ends, options, levels, own = [], [], [], [], []
    for at, boxes in enumerate(case.unions):
        for c in boxes[0]:
            column = case.columns[c]
            coded = column.kind == "levels"
            places.append([at, c, len(boxes), coded])
            own.append(
                [column.level(r) if coded else column.own[r, 0] for r in range(len(column.own))]
            )
            for box in boxes:
                low, high = (-np.inf, np.inf) if coded else box[c]
                inside = np.flatnonzero((low <= column.options) & (column.options <= high))
                ends.append([low, high, low, high])
                options.append([inside[0], inside[-1]] if inside.size and not coded else [0, -1])
                levels.append(sorted(box[c]) if coded else [])
    starts = np.cumsum([0, *map(len, levels)])
    flat = np.array([level for side in levels for level in side], dtype=np.int64)
    arrays = np.array(places), np.array(ends), np.array(options), starts, flat
    return Splits((), (), Boxes(*arrays, np.array(own, dtype=float).T.copy()), ())


def _range_of(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """First and last option of each row; 0 and -1 where it has none."""
    some = column.may.any(axis=1)
    last = column.may.shape[1] - 1 - column.may[:, ::-1].argmax(axis=1)
    return np.where(some, column.may.argmax(axis=1), 0), np.where(some, last, -1)


def _no_range(column: Column) -> tuple[np.ndarray, np.ndarray]:
    n = len(column.own)
    return np.zeros(n), np.full(n, -1)


def _shared(rows: np.ndarray) -> np.ndarray:
    return rows[:1].copy() if (rows == rows[:1]).all() else rows


# The judge.


def combinations(case: Case, row: int) -> tuple[np.ndarray, np.ndarray]:
    """All that a row may choose: boxes, shape (2, count, d), and the changes that each takes."""
    ways = [c.ways(row, case.is_locked(row, k)) for k, c in enumerate(case.columns)]
    if not all(ways):
        return np.empty((2, 0, len(case.order))), np.empty(0, dtype=int)
    picked = np.indices([len(of) for of in ways]).reshape(len(ways), -1)
    changes = sum(np.array([way[2] for way in of])[p] for of, p in zip(ways, picked, strict=True))
    few = changes <= case.changes
    sides = np.empty((2, int(few.sum()), len(case.order)))
    for side, at in zip(sides, (0, 1), strict=True):
        values = [np.array([way[at] for way in of])[p] for of, p in zip(ways, picked, strict=True)]
        side[:, case.order] = np.hstack(values)[few]
    options = np.array(
        [np.array([w[3] for w in of])[p] for of, p in zip(ways, picked, strict=True)]
    )
    changes, options = changes[few], options[:, few]
    for boxes in case.unions:
        parts = [in_box(case, box, sides, options) for box in boxes]
        sides = np.concatenate([cut[:, inside] for cut, inside in parts], axis=1)
        changes = np.concatenate([changes[inside] for _, inside in parts])
        options = np.hstack([options[:, inside] for _, inside in parts])
    return sides, changes


def in_box(case: Case, box: dict[int, Any], sides: np.ndarray, options: np.ndarray) -> Any:
    """Cut what may be chosen to a box; and which of it there is."""
    sides, inside = sides.copy(), np.ones(sides.shape[1], dtype=bool)
    for c, within in box.items():
        if case.columns[c].kind == "levels":
            inside &= np.isin(options[c], sorted(within))
            continue
        at = case.place(c)
        sides[0, :, at] = np.maximum(sides[0, :, at], within[0])
        sides[1, :, at] = np.minimum(sides[1, :, at], within[1])
        inside &= sides[0, :, at] <= sides[1, :, at]
    return sides, inside


def brute(case: Case) -> np.ndarray:
    """Least energy of each row over all that it may choose, for 0, 1, ... changes; inf for none."""
    boxes, changes = zip(*(combinations(case, row) for row in range(len(case.points))), strict=True)
    of = np.repeat(np.arange(len(case.points)), [len(part) for part in changes])
    least = np.full((len(case.points), case.changes + 1), np.inf)
    if not len(of):
        return least
    own = case.points[of]
    found = project(own, case.region.within(*np.concatenate(boxes, axis=1)), case.metric)
    assert np.isin(found.status, (Status.OPTIMAL, Status.INFEASIBLE)).all()
    fits = found.status == Status.OPTIMAL
    energy = 0.5 * (case.metric * (found.points - own) ** 2).sum(axis=1)
    np.minimum.at(least, (of[fits], np.concatenate(changes)[fits]), energy[fits])
    return least


def truth(case: Case, row: int) -> tuple[float, int]:
    """Energy of the best answer of a row, and how many changes are needed for it at most."""
    least = np.minimum.accumulate(case.least[row])
    possible = np.flatnonzero(np.isfinite(least))
    most = int(possible[0]) if case.fewest and possible.size else case.changes
    return float(least[most]), most


def found_of(case: Case, rows=None, limit: int = AMPLE, nodes=None) -> Projection:
    rows = np.arange(len(case.points)) if rows is None else np.asarray(rows)
    locked = case.locked if case.locked is None or len(case.locked) == 1 else case.locked[rows]
    unit = UnitConstraints.of(case.region, case.metric)
    splits = splits_of(case) if case.unions else None
    search = Search(unit, choices_of(case), limit, case.fewest, splits)
    return branch(search, case.points, rows, locked, nodes)


def nodes_of(case: Case) -> np.ndarray:
    """Room for the number of nodes of each row."""
    return np.zeros(len(case.points), dtype=np.int64)


def energy_of(case: Case, row: int, point: np.ndarray) -> float:
    return float(0.5 * (case.metric * (point - case.points[row]) ** 2).sum())


def assert_allowed(case: Case, row: int, point: np.ndarray) -> int:
    """Check a point against what its row may choose, bit for bit; how many columns changed."""
    changed = 0
    first = 0
    for k, column in enumerate(case.columns):
        part = point[case.order[first : first + column.width]]
        first += column.width
        if (part == column.own[row]).all() and column.stay[row]:
            continue
        assert not case.is_locked(row, k)
        changed += 1
        if column.kind == "any":
            assert column.low[row] <= part[0] <= column.high[row]
        else:
            # A grid without a table is base + l * pitch, however that is rounded.
            near = 4 * EPS * (abs(column.base) + abs(part[0])) if column.kind == "pitch" else 0.0
            options = column.options[column.may[row]]
            assert (np.abs(part - options) <= near).all(axis=1).any()
    for boxes in case.unions:
        assert any(all(lies_in(case, c, within, point) for c, within in b.items()) for b in boxes)
    slack = case.offsets - case.rows @ point
    size = np.abs(case.offsets) + np.abs(case.rows) @ np.abs(point)
    assert (slack >= -1e-11 * size).all()
    return changed


def lies_in(case: Case, c: int, within: Any, point: np.ndarray) -> bool:
    """Whether a point's column lies within a side of a box, bit for bit."""
    column, at = case.columns[c], sum(column.width for column in case.columns[:c])
    if column.kind != "levels":
        return within[0] <= point[case.order[at]] <= within[1]
    part = point[case.order[at : at + column.width]]
    return any((part == column.options[level]).all() for level in within)


def assert_best(case: Case) -> list[Status]:
    """Compare every row with brute force; how they ended."""
    nodes = nodes_of(case)
    found = found_of(case, nodes=nodes)
    for row in range(len(case.points)):
        energy, most = truth(case, row)
        status = Status(found.status[row])
        if not np.isfinite(energy):
            assert status == Status.INFEASIBLE, (row, status)
            assert np.isnan(found.points[row]).all()
            continue
        assert status == Status.OPTIMAL, (row, status, energy)
        changed = assert_allowed(case, row, found.points[row])
        assert changed <= found.cardinality[row] <= case.changes
        assert changed <= most
        own = energy_of(case, row, found.points[row])
        assert own == pytest.approx(energy, rel=COST, abs=1e-300)
        assert found.gap[row] >= 0.0
        assert own - found.gap[row] <= energy * (1 + COST) + 1e-14
        assert nodes[row] >= 1
    return [Status(s) for s in found.status]


# Problems.


def random_case(seed: int) -> Case:
    """A small problem of 1 to 4 rows with all kinds of columns; borders have no exact ties."""
    rng = np.random.default_rng(seed)
    n, m, many = int(rng.integers(1, 5)), int(rng.integers(1, 5)), int(rng.integers(1, 6))
    columns = [random_column(rng, n) for _ in range(many)]
    d = sum(c.width for c in columns)
    order = rng.permutation(d) if rng.random() < 0.5 else np.arange(d)
    rows = rng.normal(size=(m, d)) * (rng.random((m, d)) < rng.choice([0.5, 0.8, 1.0]))
    rows[:, rng.integers(d)] += 0.1
    stacked = np.hstack([c.own for c in columns])
    points = np.empty_like(stacked)
    points[:, order] = stacked
    short = (0.01 + np.abs(rng.normal(size=m))) * rng.choice([0.3, 1.0, 2.0])
    short *= np.linalg.norm(rows, axis=1) * np.where(rng.random(m) < 0.8, 1, -1)
    locked = None
    if rng.random() < 0.3:
        locked = rng.random((n if rng.random() < 0.5 else 1, many)) < 0.3
    return Case(
        columns,
        rows,
        (points @ rows.T)[rng.integers(n)] - short,
        rng.uniform(0.1, 1.0, size=d) * 10.0 ** rng.integers(-3, 4),
        order,
        changes=int(rng.integers(1, many + 1)),
        fewest=bool(rng.random() < 0.35),
        locked=locked,
        origin=rng.normal(size=d) if rng.random() < 0.5 else np.zeros(0),
    )


def random_column(rng: np.random.Generator, n: int) -> Column:
    kind = str(rng.choice(["any", "table", "pitch", "levels"]))
    alike = rng.random() < 0.5  # what one row may do, all may
    parts = [_MAKERS[kind](rng)]
    column = parts[0]
    for _ in range(n - 1):
        parts.append(_another(rng, column, alike))
    stacked = {
        name: np.concatenate([getattr(p, name) for p in parts])
        for name in ("own", "stay", "may", "low", "high")
    }
    return replace(column, **stacked)


def _another(rng: np.random.Generator, column: Column, alike: bool) -> Column:
    """The same column for another row."""
    if column.kind == "any":
        return _numbers(rng)
    own = _own_of(rng, column)
    may = column.may if alike else _may_of(rng, column)
    stay = _stay_of(rng, column.kind, own, column.options[may[0]])
    return replace(column, own=own, may=may, stay=stay)


def _numbers(rng: np.random.Generator) -> Column:
    """Any number: inside its bounds, at their end, outside, fixed, or without any choice."""
    low, high = np.sort(rng.normal(size=2) * 2)
    where = rng.choice(["in", "in", "low", "high", "above", "below", "fixed", "none", "point"])
    own = {"low": low, "high": high, "above": high + 0.5, "below": low - 0.3}.get(
        where, low + rng.random() * (high - low)
    )
    stay = where not in ("above", "below", "point")
    if where == "fixed":
        low = high = own
    elif where == "none":
        low, high = 1.0, -1.0
    elif where == "point":
        low = high = own + rng.choice([-0.5, 0.5])
    elif rng.random() < 0.3 and where == "in":
        low, high = (-np.inf, high) if rng.random() < 0.5 else (low, np.inf)
    return Column(
        "any", np.empty((0, 1)), np.array([[own]]), np.array([stay]),
        np.ones((1, 0), dtype=bool), np.array([low]), np.array([high]),
    )  # fmt: skip


def _listed(rng, kind, options, base=0.0, pitch=0.0) -> Column:
    blank = np.array([np.nan])
    column = Column(kind, options, blank, blank, blank, blank, blank, base, pitch)
    own = _own_of(rng, column)
    may = _may_of(rng, column)
    stay = _stay_of(rng, kind, own, options[may[0]])
    return replace(column, own=own, may=may, stay=stay)


def _table(rng: np.random.Generator) -> Column:
    picked = rng.choice(np.arange(-6, 7), size=rng.integers(1, 6), replace=False)
    uneven = np.sort(picked) * 0.5 + rng.normal() * 0.1
    return _listed(rng, "table", uneven[:, None])


def _pitch(rng: np.random.Generator) -> Column:
    base, pitch = rng.normal(), rng.choice([0.1, 0.5, 1.0])
    options = base + np.arange(rng.integers(1, 9)) * pitch
    return _listed(rng, "pitch", options[:, None], base, pitch)


def _levels(rng: np.random.Generator) -> Column:
    count = int(rng.integers(2, 5))
    dropped = rng.random() < 0.5
    table = np.eye(count)[:, : count - dropped] * rng.uniform(0.5, 2.0, size=count - dropped)
    return _listed(rng, "levels", table - rng.normal(size=count - dropped))


def joined_case(seed: int) -> Case:
    """A problem of several columns, some of which belong together."""
    rng = np.random.default_rng([seed, 1])
    case = random_case(seed)
    while len(case.columns) < 2:
        seed += 10_000
        case = random_case(seed)
    unions = []
    for _ in range(int(rng.integers(1, 3))):
        columns = rng.permutation(len(case.columns))[: rng.integers(2, 4)].tolist()
        count = int(rng.choice([2, 3, 7, 30]))
        unions.append([
            {c: _side(rng, case.columns[c]) for c in columns} for _ in range(count)
        ])  # fmt: skip
    free = {"changes": len(case.columns), "locked": None} if rng.random() < 0.7 else {}
    return replace(case, unions=tuple(unions), **free)


def _side(rng: np.random.Generator, column: Column) -> Any:
    """What a box allows in a column: some levels, or an interval, perhaps around the own value."""
    if column.kind == "levels":
        some = rng.random(len(column.options)) < rng.choice([0.5, 0.8, 1.0])
        return set(np.flatnonzero(some).tolist())
    ends = np.sort(rng.normal(size=2) * rng.choice([0.5, 1.0, 3.0])) + 0.5 * rng.normal()
    where = rng.random()
    if where < 0.15:
        return -np.inf, ends[1]
    if where < 0.3:
        return ends[0], np.inf
    if where < 0.4 and column.kind != "pitch":  # where an option nearly the own value is that value
        return column.own[0, 0], column.own[0, 0]
    return (-np.inf, np.inf) if where < 0.6 else (ends[0], ends[1])


_MAKERS = {"any": _numbers, "table": _table, "pitch": _pitch, "levels": _levels}


def _own_of(rng: np.random.Generator, column: Column) -> np.ndarray:
    """One of the options, nearly one of them, or none of them."""
    option = column.options[rng.integers(len(column.options))]
    where = rng.random()
    if where < 0.6:
        own = option
    elif where < 0.7 and column.kind == "pitch":
        own = option + 1e-15 * rng.normal(size=1)
    else:
        own = option + 0.7 * rng.normal(size=len(option))
    return own[None].copy()


def _may_of(rng: np.random.Generator, column: Column) -> np.ndarray:
    """Which options may be moved to: of a grid a range, perhaps empty; of levels any."""
    count = len(column.options)
    if column.kind == "levels":
        return rng.random((1, count)) < rng.choice([0.0, 0.6, 1.0])
    may = np.zeros((1, count), dtype=bool)
    if rng.random() < 0.6:
        may[:] = True
    elif rng.random() < 0.8:
        first, last = np.sort(rng.integers(count, size=2))
        may[0, first : last + 1] = True
    return may


def _stay_of(rng, kind: str, own: np.ndarray, options: np.ndarray) -> np.ndarray:
    """A row may stay, unless it is outside of its bounds; a level always may."""
    if kind == "levels":
        return np.array([True])
    outside = not len(options) or not options.min() - 1e-9 <= own[0, 0] <= options.max() + 1e-9
    return np.array([not (outside and rng.random() < 0.5)])


# Claims.


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_no_choice_is_better_than_the_one_found(start):
    for seed in range(start, start + 50):
        assert_best(random_case(seed))


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_no_choice_in_boxes_of_columns_that_belong_together_is_better(start):
    for seed in range(start, start + 50):
        assert_best(joined_case(seed))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(10_000, 30_000, 1_000))
def test_no_choice_of_many_more_problems_is_better(start):
    for seed in range(start, start + 1_000):
        assert_best(random_case(seed))
        assert_best(joined_case(seed))


def test_the_problems_hold_all_that_they_should():
    kinds, ends, joined, facts = Counter(), Counter(), Counter(), Counter()
    for seed in range(150):
        case = random_case(seed)
        kinds.update(c.kind for c in case.columns)
        ends.update(Status(s) for s in found_of(case).status)
        joined.update(Status(s) for s in found_of(joined_case(seed)).status)
        facts["fewest"] += case.fewest
        facts["locked"] += case.locked is not None and bool(case.locked.any())
        facts["few"] += case.changes < len(case.columns)
        facts["must move"] += any(not c.stay.all() for c in case.columns)
    assert min(kinds[kind] for kind in _MAKERS) > 50
    for some in (ends, joined):
        assert min(some[s] for s in (Status.OPTIMAL, Status.INFEASIBLE)) > 50
    assert min(facts.values()) > 20, facts


@st.composite
def lattice_cases(draw) -> Case:
    """Problems in small whole numbers, which shrink; offsets are irrational, so nothing ties."""
    many = draw(st.integers(1, 3))
    columns = [draw(lattice_columns()) for _ in range(many)]
    d = sum(c.width for c in columns)
    m = draw(st.integers(1, 3))
    whole = st.lists(st.integers(-3, 3), min_size=d, max_size=d)
    rows = np.array([draw(whole) for _ in range(m)], dtype=float)
    offsets = np.array([draw(st.integers(-6, 6)) for _ in range(m)]) + np.sqrt([2, 3, 5])[:m] / 7
    metric = np.array([draw(st.integers(1, 3)) for _ in range(d)], dtype=float)
    changes, fewest = draw(st.integers(1, many)), draw(st.booleans())
    return Case(columns, rows, offsets, metric, np.arange(d), changes, fewest)


@st.composite
def lattice_columns(draw) -> Column:
    kind = draw(st.sampled_from(["any", "table", "pitch", "levels"]))
    half, blank = st.integers(-6, 6).map(lambda v: v / 2), np.array([np.nan])
    stay = np.array([draw(st.booleans())])
    if kind == "any":
        low, high = sorted((draw(half), draw(half)))
        own = draw(half)
        stay = np.array([low <= own <= high])
        may, sides = np.ones((1, 0), dtype=bool), (np.array([low]), np.array([high]))
        return Column(kind, np.empty((0, 1)), np.array([[own]]), stay, may, *sides)
    if kind == "levels":
        count = draw(st.integers(2, 3))
        options = np.eye(count)[:, : count - draw(st.booleans())]
        own, stay = options[draw(st.integers(0, count - 1))][None], np.array([True])
        may = np.array([draw(st.lists(st.booleans(), min_size=count, max_size=count))])
        return Column(kind, options, own, stay, may, blank, blank)
    base = draw(half)
    if kind == "pitch":
        options = (base + 0.5 * np.arange(draw(st.integers(1, 4))))[:, None]
    else:
        options = np.unique(draw(st.lists(half, min_size=1, max_size=4)))[:, None]
    own, may = np.array([[draw(half)]]), np.ones((1, len(options)), dtype=bool)
    stay |= (options == own).any()  # what has to move is not on an option already
    return Column(
        kind, options, own, stay, may, blank, blank, *((base, 0.5) if kind == "pitch" else ())
    )


@given(lattice_cases())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_so_it_is_in_small_whole_numbers(case):
    assert_best(case)


@pytest.mark.parametrize("make", [random_case, joined_case])
@pytest.mark.parametrize("limit", [1, 2, 5])
def test_a_search_that_is_cut_short_tells_an_honest_gap(limit, make):
    ends = Counter()
    for seed in range(400):
        case = replace(make(seed), fewest=False)
        nodes = nodes_of(case)
        found = found_of(case, limit=limit, nodes=nodes)
        for row, status in enumerate(map(Status, found.status)):
            energy, _ = truth(case, row)
            ends[status] += 1
            own = energy_of(case, row, found.points[row])
            assert nodes[row] <= limit
            if status == Status.INFEASIBLE:
                assert energy == np.inf
            if status == Status.OPTIMAL:
                assert own == pytest.approx(energy, rel=COST, abs=1e-300)
            if status in (Status.STOPPED, Status.OPTIMAL):
                assert_allowed(case, row, found.points[row])
                assert energy <= own * (1 + COST) + 1e-300
                assert found.gap[row] >= 0.0
                assert own - found.gap[row] <= energy * (1 + COST) + 1e-14
            if status == Status.UNRESOLVED:
                assert np.isnan(found.points[row]).all()
    if limit == 1:
        assert min(ends[s] for s in (Status.STOPPED, Status.UNRESOLVED, Status.OPTIMAL)) > 10


@pytest.mark.parametrize("limit", [1, 3])
def test_the_fewest_changes_cut_short_are_never_fewer_than_the_truth(limit):
    for seed in range(200):
        case = replace(random_case(seed), fewest=True)
        found = found_of(case, limit=limit)
        for row, status in enumerate(map(Status, found.status)):
            energy, most = truth(case, row)
            if status == Status.INFEASIBLE:
                assert energy == np.inf
            elif status == Status.OPTIMAL:
                assert energy_of(case, row, found.points[row]) == pytest.approx(
                    energy, rel=COST, abs=1e-300
                )
            elif status == Status.STOPPED:
                assert assert_allowed(case, row, found.points[row]) >= most


def assert_same(one: Projection, other: Projection, rows=slice(None)) -> None:
    for name in one.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one, name)[rows], getattr(other, name), err_msg=name)


def many_rows(seed: int, n: int = 23) -> Case:
    """One problem with many rows."""
    rng = np.random.default_rng(seed)
    case = random_case(seed)
    columns = [random_column(rng, n) for _ in range(4)]
    d = sum(c.width for c in columns)
    rows = rng.normal(size=(3, d))
    locked = rng.random((n, 4)) < 0.1 if seed % 2 else None
    return replace(
        case, columns=columns, rows=rows, offsets=rng.normal(size=3) - 1.0,
        metric=rng.uniform(0.1, 1, size=d), order=rng.permutation(d), changes=3, locked=locked,
        origin=np.zeros(0),
    )  # fmt: skip


@pytest.mark.parametrize("side", [-np.inf, np.inf])
def test_bounds_of_one_side_only_may_differ_from_row_to_row(side):
    rng = np.random.default_rng(0)
    own, stay, reach = rng.normal(size=(12, 2)), np.ones(12, dtype=bool), rng.uniform(0.2, 2, 12)
    none = np.ones((12, 0), dtype=bool)
    columns = []
    for c in (0, 1):
        ends = [own[:, c] - reach, own[:, c] + reach]
        ends[int(side > 0)] = np.full(12, side)
        columns.append(Column("any", np.empty((0, 1)), own[:, [c]], stay, none, *ends))
    rows = -np.sign(side) * np.array([[1.0, 0.5], [0.2, 1.0]])
    case = Case(columns, rows, np.array([-1.1, -0.9]), np.array([0.3, 0.7]), np.arange(2), 2)
    choices = choices_of(case)
    assert {len(choices.lo), len(choices.hi)} == {1, 12}
    assert Status.OPTIMAL in assert_best(case)


@pytest.mark.parametrize("seed", range(6))
def test_a_batch_is_its_rows_one_by_one_in_any_order_and_any_number_of_times(seed):
    case = many_rows(seed)
    whole = found_of(case)
    rng = np.random.default_rng(seed)
    for rows in ([3], [22, 0], rng.permutation(23), rng.integers(23, size=40)):
        assert_same(whole, found_of(case, rows), rows)
    for row in range(23):
        assert_same(whole, found_of(case, [row]), [row])


def test_the_number_of_cores_changes_no_bit(monkeypatch):
    for seed in range(6):
        case, answers = many_rows(seed), []
        for cores in (1, 2, 5):
            monkeypatch.setattr(parallel, "n_threads", lambda _, n=cores: n)
            answers.append(found_of(case))
        for other in answers[1:]:
            assert_same(answers[0], other)


def test_a_row_that_is_there_already_does_not_move():
    for seed in range(100):
        case = random_case(seed)
        case = replace(case, offsets=(case.points @ case.rows.T).max(axis=0) + 0.1)
        free = [all(c.stay[row] for c in case.columns) for row in range(len(case.points))]
        found = found_of(case)
        np.testing.assert_array_equal(found.points[free], case.points[free])
        np.testing.assert_array_equal(found.gap[free], 0.0)


def test_more_choices_never_cost_more():
    for seed in range(150):
        case = replace(random_case(seed), fewest=False, locked=None)
        founds = [found_of(replace(case, changes=r)) for r in range(1, len(case.columns) + 1)]
        costs = [(case.metric * (f.points - case.points) ** 2).sum(axis=1) for f in founds]
        reached = [f.status == Status.OPTIMAL for f in founds]
        for few, more, was, is_ in zip(costs, costs[1:], reached, reached[1:], strict=False):
            assert (is_ >= was).all()
            assert (more[was] <= few[was] * (1 + COST)).all()
