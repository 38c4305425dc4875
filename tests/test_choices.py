"""Choices are what the user's rules leave, no more and no less, judged in the user's own units."""

from __future__ import annotations

from fractions import Fraction

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from spaces import Space, read, rows_of
from voicecf.errors import BoundsError, OptionError
from voicecf.rules.choices import Choices, Freedom
from voicecf.rules.multiples import Multiples
from voicecf.rules.rules import Rules


def choices(space: Space, table, own=None, points=None, /, **words) -> Choices:
    rows = space.given(table, points)
    lo, hi = space.open() if own is None else map(np.array, zip(*own, strict=True))
    return Choices.of(space, read(space, **words), rows, lo, hi)


def options_of(found: Choices, row: int, column: int) -> list[np.ndarray]:
    """The options of a row in a column, its present coordinates first if it may stay."""

    def own(array):
        return array[row if len(array) > 1 else 0]

    places = found._places(column)
    if found.freedom[column] == Freedom.GRID:
        ks = range(int(own(found.least)[column]), int(own(found.most)[column]) + 1)
        options = [found._grid(column, np.array([k])) for k in ks]
    elif found.freedom[column] == Freedom.LEVELS:
        options = list(found._table(column)[own(found._allowed(column))])
    else:
        lo, hi = own(found.lo)[places], own(found.hi)[places]
        assert not (lo < hi).any(), "an interval has no list of options"
        options = [lo] if (lo == hi).all() else []
    if not own(found.stay)[column]:
        return options
    present = found.points[row, places]
    return [present, *(z for z in options if not np.array_equal(z, present))]


def option_values(found: Choices, row: int, column: int) -> list[float]:
    return sorted(float(option[0]) for option in options_of(found, row, column))


# A judge: plain filtering of plain values.

MAPS = {
    "as it is": (lambda u: u, True),
    "standard": (lambda u: (u - 3.25) / 1.7, True),
    "falling": (lambda u: 4.0 - u / 3.0, True),
    "logarithm": (lambda u: np.log(u + 40.0), False),
    "falling logarithm": (lambda u: -np.log(u + 40.0) * 2.0, False),
}
LEVELS = ("a", "b", "c", "d")
# Multiples in exact arithmetic, each rounded once.
DECIMALS = {
    step: [float(k * Fraction(str(step))) for k in range(-250, 251)] for step in (1, 0.1, 0.25, 3)
}
halves = st.integers(-24, 24).map(lambda k: k / 2)


@st.composite
def sides(draw):
    """A bound in the user's words; open only where the explainer has bounds of its own."""
    low = draw(st.one_of(halves, st.just(...), st.sampled_from(["-3", "-50%", "+1", "-0.5"])))
    high = draw(st.one_of(halves, st.just(...), st.sampled_from(["+3", "+25%", "+0.1", "-1"])))
    numbers = not isinstance(low, str) and not isinstance(high, str)
    if numbers and low is not ... and high is not ... and low > high:
        low, high = high, low
    return low, high


def side_value(side, own: float, default: float) -> float:
    if side is ...:
        return default
    if not isinstance(side, str):
        return side
    if side.endswith("%"):
        return own + float(side[:-1]) * abs(own) / 100
    return own + float(side)


def is_refused(bounds, direction) -> bool:
    """Tell whether no row at all could keep such bounds."""
    low, high = bounds or (..., ...)
    shifts = [float(s) for s in (low, high) if isinstance(s, str) and "%" not in s]
    if len(shifts) == 2 and shifts[0] > shifts[1]:
        return True
    if direction == "increase_only":
        return isinstance(high, str) and high.startswith("-")
    return direction == "decrease_only" and isinstance(low, str) and low.startswith("+")


def is_relative(words: dict) -> bool:
    told = any(isinstance(side, str) for side in words.get("bounds", {}).get("u", ()))
    return told or "increase_only" in words or "decrease_only" in words


def judged_numbers(words, own, shown, step, default) -> set[float]:
    """All values that a number column may take, by trying every multiple of its step.

    `shown` is the value that the pipeline puts in place of a missing one.
    """
    sides = words.get("bounds", {}).get("u", (..., ...))
    low, high = (
        # What is relative to the row can only be tighter than the explainer's own side.
        tighter(side_value(side, own, end), end)
        if isinstance(side, str)
        else side_value(side, own, end)
        for side, end, tighter in zip(sides, default, (max, min), strict=True)
    )
    if "immutable" in words or (np.isnan(own) and is_relative(words)):
        return {shown}
    allowed = set()
    for value in DECIMALS[step]:
        rises = "increase_only" not in words or value >= own
        falls = "decrease_only" not in words or value <= own
        if low <= value <= high and rises and falls:
            allowed.add(value)
    if low <= shown <= high:
        allowed.add(shown)
    return allowed


@given(
    name=st.sampled_from(sorted(MAPS)),
    step=st.sampled_from(sorted(DECIMALS)),
    bounds=st.one_of(st.none(), sides()),
    direction=st.sampled_from([None, "increase_only", "decrease_only"]),
    fixed=st.booleans(),
    own=st.lists(st.one_of(halves, st.just(0.3), st.just(np.nan)), min_size=1, max_size=4),
    default=st.tuples(halves, halves).map(sorted),
)
@settings(max_examples=500, deadline=None)
def test_a_number_may_take_exactly_the_values_that_the_rules_leave(
    name, step, bounds, direction, fixed, own, default
):
    words = {"steps": {"u": step}}
    words |= {} if bounds is None else {"bounds": {"u": bounds}}
    words |= {} if direction is None else {direction: "u"}
    words |= {"immutable": "u"} if fixed else {}
    forward, affine = MAPS[name]
    space = Space().number("u", forward, observed=(-12.0, 12.0), affine=affine)
    shown = np.where(np.isnan(own), 2.0, own)  # an imputer's work
    if is_refused(bounds, direction):
        with pytest.raises((OptionError, BoundsError), match=r"contradict|upside down"):
            read(space, **words)
        return
    found = choices(space, {"u": own}, [default], forward(shown)[:, None], **words)
    for row, value in enumerate(own):
        truth = judged_numbers(words, value, float(shown[row]), step, default)
        candidates = np.array(sorted(truth.union(DECIMALS[step])))
        candidates = candidates[candidates > -40]
        coordinates = forward(candidates)
        seen = set()
        for option in options_of(found, row, 0):
            nearest = np.argmin(np.abs(coordinates - option[0]))
            assert coordinates[nearest] == pytest.approx(option[0], abs=1e-11)
            seen.add(float(candidates[nearest]))
        assert seen == truth


@st.composite
def category_rules(draw):
    words = {}
    if draw(st.booleans()):
        words["levels"] = {"job": draw(st.lists(st.sampled_from(LEVELS), min_size=1))}
    if draw(st.booleans()):
        pair = st.tuples(st.sampled_from(LEVELS), st.sampled_from(LEVELS))
        words["forbidden"] = {"job": draw(st.lists(pair, min_size=1))}
    if draw(st.booleans()):
        order = draw(st.permutations(LEVELS))[: draw(st.integers(2, 4))]
        words["order"] = {"job": order}
        words[draw(st.sampled_from(["increase_only", "decrease_only"]))] = ["job"]
    if draw(st.integers(0, 4)) == 0:
        words["immutable"] = ["job"]
    return words


def judged_levels(words, own) -> set:
    """All levels that a row may be in, by asking of each."""
    order = words.get("order", {}).get("job", ())
    allowed = {own}
    for level in () if "immutable" in words else LEVELS:
        listed = level in words.get("levels", {}).get("job", LEVELS)
        free = (own, level) not in words.get("forbidden", {}).get("job", ())
        along = True
        if order:
            along = own in order and level in order
            if along and "increase_only" in words:
                along = order.index(level) >= order.index(own)
            elif along:
                along = order.index(level) <= order.index(own)
        if listed and free and along:
            allowed.add(level)
    return allowed


@given(
    words=category_rules(),
    own=st.lists(st.sampled_from((*LEVELS, "unknown", None)), min_size=1, max_size=6),
    kind=st.sampled_from(["one-hot", "ordinal", "block"]),
    library=st.sampled_from([pd, pl]),
)
@settings(max_examples=300, deadline=None)
def test_a_category_may_take_exactly_the_levels_that_the_rules_leave(words, own, kind, library):
    space = Space().number("u")
    if kind == "ordinal":
        space.category("job", LEVELS, forward=lambda i: i * 0.5)
        own = [v if v in LEVELS else "a" for v in own]
    else:
        sources = [f"job_{level}" for level in LEVELS] if kind == "block" else None
        space.category("job", LEVELS, sources=sources)
    numbers = np.zeros((len(own), 1))
    points = np.hstack([numbers, space.coordinates(1, own)])
    frame = library.DataFrame({"u": numbers[:, 0], "job": own})
    frame = frame if kind != "block" else frame[["u"]]
    rows = rows_of(nw.from_native(frame, eager_only=True), points)
    found = Choices.of(space, read(space, **words), rows, *space.open())
    for row, level in enumerate(own):
        truth = {tuple(v) for v in space.coordinates(1, list(judged_levels(words, level)))}
        assert {tuple(option) for option in options_of(found, row, 1)} == truth


# Named claims.


def test_ten_steps_of_a_tenth_are_the_decimals_that_a_user_writes():
    assert Multiples(0.1).at(np.arange(11)).tolist() == [float(f"{k / 10:.1f}") for k in range(11)]
    space = Space().number("u")
    found = choices(space, {"u": [0.1]}, [(0.0, 0.3)], steps={"u": 0.1})
    assert found.most[0, 0] - found.least[0, 0] == 3


@given(
    step=st.one_of(st.sampled_from([0.1, 0.01, 1 / 3, 1e-5, 7.0, 1e6]), st.floats(1e-6, 1e6)),
    low=st.floats(-1e6, 1e6),
    width=st.floats(0, 1e3),
)
def test_no_multiple_lies_beyond_a_bound_and_none_inside_is_left_out(step, low, width):
    multiples, high = Multiples(step), low + width
    first, last = multiples.inside([low], [high])
    assert multiples.at(first - 1) < low <= multiples.at(first)
    assert multiples.at(last) <= high < multiples.at(last + 1)


@pytest.mark.parametrize("step", [5e-324, 1e-300, 1e300, 1 / 3])
def test_steps_of_any_size_have_multiples(step):
    assert Multiples(step).at([0, 1, -2]).tolist() == [0, step, -2 * step]
    first, last = Multiples(step).inside([-step], [step])
    assert (first[0], last[0]) == (-1, 1)


def test_bounds_of_the_explainer_hold_unless_a_rule_replaces_them():
    space = Space().number("u").number("v", lambda u: 1 - u).number("w")
    own = {"u": [1.0], "v": [1.0], "w": [1.0]}
    found = choices(space, own, [(0, 4), (0, 4), (0, 4)], bounds={"u": (-9, None), "v": (2, ...)})
    assert found.lo.tolist() == [[-9, -3, 0]]
    assert found.hi.tolist() == [[np.inf, -1, 4]]
    assert found.stay.tolist() == [[1, 0, 1]]
    assert found.freedom.tolist() == [Freedom.ANY] * 3
    assert not found.discrete


def test_rows_that_are_alike_share_one_row():
    space = Space().number("u").number("k", whole=True).category("job", ["a", "b"])
    table = {"u": [1.0, 2.0, 3.0], "k": [1, 2, 3], "job": ["a", "b", "a"]}
    own = [(0.0, 5.0), (0.0, 5.0), (np.nan, np.nan)]
    shared = choices(space, table, own, bounds={"u": (0, 9)}, levels={"job": "a"})
    for part in (shared.least, shared.most, shared.allowed, shared.stay, shared.lo, shared.hi):
        assert len(part) == 1
    each = choices(space, table, own, increase_only=["u", "k"], forbidden={"job": [("a", "b")]})
    assert [option_values(each, row, 1) for row in range(3)] == [[*range(k, 6)] for k in (1, 2, 3)]
    assert each.lo[:, 0].tolist() == [1, 2, 3]
    assert each.allowed.tolist() == [[1, 0], [1, 1], [1, 0]]


def test_a_direction_keeps_the_bits_of_the_own_coordinate():
    space = Space().number("u", lambda u: (u - 0.1) / 0.3).number("v", lambda u: -u / 0.7)
    table = {"u": [0.1, 0.7, 1 / 3], "v": [0.1, 0.7, 1 / 3]}
    found = choices(space, table, increase_only=["u", "v"])
    points = space.given(table).points
    assert np.array_equal(found.lo[:, 0], points[:, 0])
    assert np.array_equal(found.hi[:, 1], points[:, 1])


def test_a_missing_value_locks_what_is_relative_to_it_and_nothing_else():
    space = Space().number("u").number("k", whole=True).number("free")
    table = {"u": [None, 1.0], "k": [None, 1], "free": [None, 1.0]}
    points = np.array([[5.0, 5.0, 5.0], [1.0, 1.0, 1.0]])
    found = choices(
        space,
        {n: np.array(v, float) for n, v in table.items()},
        [(0, 9)] * 3,
        points,
        bounds={"u": ("-1", "+1")},
        increase_only="k",
    )
    assert options_of(found, 0, 0) == [[5.0]]
    assert options_of(found, 0, 1) == [[5.0]]
    assert found.stay[0].all()
    assert (found.lo[0, 2], found.hi[0, 2]) == (0, 9)
    assert (found.lo[1, 0], found.hi[1, 0]) == (0, 2)


def test_an_own_value_outside_its_bounds_has_to_move_unless_it_is_immutable():
    space = Space().number("u").number("k", whole=True)
    table = {"u": [1.0, 7.0], "k": [1, 7]}
    found = choices(space, table, [(0, 5), (0, 5)])
    assert found.stay.tolist() == [[1, 1], [0, 0]]
    fixed = choices(space, table, [(0, 5), (0, 5)], immutable=["u", "k"])
    assert fixed.stay.tolist() == [[1, 1]]
    assert (fixed.lo[:, 0] == fixed.hi[:, 0]).all()
    assert fixed.lo[:, 0].tolist() == [1, 7]
    assert (fixed.least > fixed.most)[:, 1].all()
    assert not fixed.discrete


def test_a_value_in_place_of_a_missing_one_has_to_be_within_the_bounds_too():
    space = Space().number("k", whole=True)
    found = choices(space, {"k": [np.nan, np.nan]}, [(0, 5)], np.array([[2.5], [9.0]]))
    assert found.stay.tolist() == [[1], [0]]


def test_yes_and_no_are_the_only_values_of_a_yes_no_column():
    space = Space().number("member", observed=(0.0, 1.0), whole=True)
    found = choices(space, {"member": [True, False]})
    assert option_values(found, 0, 0) == option_values(found, 1, 0) == [0, 1]


def test_missing_levels_are_never_moved_to():
    space = Space().category("job", ["a", None, "b", np.nan], forward=lambda i: float(i))
    found = choices(space, {"job": ["a", None]})
    assert found.allowed.tolist() == [[1, 0, 1, 0]]
    assert option_values(found, 1, 0) == [0, 1, 2]
    barred = choices(space, {"job": ["a", None]}, forbidden={"job": [(None, "b")]})
    assert barred.allowed.tolist() == [[1, 0, 1, 0], [1, 0, 0, 0]]


def test_listed_values_are_the_only_options_and_a_step_picks_from_them():
    space = Space().number("u", lambda u: -(u**3), affine=False, listed=(0.0, 0.5, 2.0, 3.5, 4.0))
    found = choices(space, {"u": [0.5, 3.5]}, [(0.2, 3.6)])
    assert option_values(found, 0, 0) == [-(3.5**3), -8, -0.125]
    picked = choices(space, {"u": [2.0]}, [(0.2, 9)], steps={"u": 2})
    assert option_values(picked, 0, 0) == [-64, -8]
    # Any number is not to be had of a map that is known at these values only.
    assert choices(space, {"u": [2.0]}, steps={"u": None}).count.tolist() == [5]


def test_of_too_many_options_to_list_those_of_ten_or_a_hundred_times_the_step_are():
    space = Space().number("u", np.log1p, affine=False, whole=True, observed=(0.0, 1e9))
    coarse = choices(space, {"u": [3.0]}, [(0, 1e9)]).grids[0].values
    np.testing.assert_array_equal(coarse, np.arange(0, 1e9 + 1, 1000))
    open_ended = choices(space, {"u": [3.0]}).grids[0].values
    assert len(open_ended) < 2**22
    np.testing.assert_array_equal(open_ended[(open_ended >= 0) & (open_ended <= 1e9)], coarse)
    assert open_ended.max() >= 1e12
    assert (open_ended % 1000 == 0).all()
    assert choices(space, {"u": [3.0]}, [(0, 1e9)], steps={"u": 1000}).count.tolist() == [10**6 + 1]
    assert choices(space, {"u": [3.0]}, immutable="u").count.tolist() == [0]


def test_values_outside_of_the_domain_of_a_map_are_no_options():
    space = Space().number("u", np.log, affine=False, whole=True, observed=(1.0, 9.0))
    found = choices(space, {"u": [3.0]}, [(-2, 3)])
    assert option_values(found, 0, 0) == np.log([1.0, 2.0, 3.0]).tolist()
    free = choices(space, {"u": [3.0]}, [(-2, 3)], steps={"u": None})
    assert (free.lo[0, 0], free.hi[0, 0]) == (-np.inf, np.log(3))


def test_a_step_finer_than_the_digits_is_refused():
    space = Space().number("u", observed=(0.0, 1e9))
    with pytest.raises(OptionError, match="finer than the digits"):
        choices(space, {"u": [3.0]}, steps={"u": 1e-9})


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler()])
@pytest.mark.parametrize("bounds", [(-np.inf, np.inf), (0.0, 1e6), (9e5, 1e12)])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_evenly_spaced_options_are_where_the_pipeline_puts_them(scaler, bounds, sign):
    data = 1e6 + np.arange(-30.0, 31.0, 3.0)[:, None]
    scaler.fit(data)

    def forward(u):
        return sign * scaler.transform(u[:, None])[:, 0]

    space = Space().number("u", forward, observed=(data.min(), data.max()), whole=True)
    own = np.array([999_970.0, 999_999.0, 1_000_000.0])
    near = {"u": ("-2", "+2")}
    found = choices(space, {"u": own}, [bounds], bounds=near, steps={"u": 1})
    open_ended = choices(space, {"u": own}, [bounds])
    for row, value in enumerate(own):
        around = value + np.arange(-2.0, 3.0)
        truth = np.sort(forward(around[(around >= bounds[0]) & (around <= bounds[1])]))
        gaps = np.abs(np.subtract.outer(option_values(found, row, 0), truth))
        assert gaps.min(axis=0).max() < 1e-9  # each is there
        assert gaps.min(axis=1).max() < 1e-9  # and no other
        base, pitch = open_ended.base[0], open_ended.pitch[0]
        option = np.rint((forward(np.array([value])) - base) / pitch)
        reach = open_ended.least[0, 0] <= option <= open_ended.most[0, 0]
        assert reach == (bounds[0] <= value <= bounds[1])
        if reach:
            assert np.allclose(base + option * pitch, forward(np.array([value])), rtol=0, atol=1e-9)


def test_an_open_grid_reaches_far_on_both_sides_of_the_data():
    space = Space().number("k", lambda u: u / 8 + 1, whole=True, observed=(0.0, 10.0))
    found = choices(space, {"k": [4]})
    assert found.pitch[0] == 0.125
    values = (
        found.base[0] + found.pitch[0] * np.array([found.least[0, 0], found.most[0, 0]]) - 1
    ) * 8
    assert values.tolist() == [-(2**40), 10 + 2**40]
    assert found.count[0] == 2**41 + 11


def test_arrays_are_their_own_values():
    space = Space().number("x0", whole=True).number("x1")
    rows = rows_of(None, np.array([[2.0, 0.5]]))
    found = Choices.of(space, read(space, increase_only=[0, 1]), rows, [0, 0], [4, 1])
    assert option_values(found, 0, 0) == [2, 3, 4]
    assert (found.lo[0, 1], found.hi[0, 1]) == (0.5, 1)


def test_arrays_that_a_pipeline_transforms_hold_the_users_values():
    space = Space().number("x0", lambda u: u / 4, whole=True).number("x1", lambda u: -u)
    rows = rows_of(None, np.array([[0.5, -0.5]]), array=np.array([[2.0, 0.5]]))
    found = Choices.of(space, read(space, bounds={0: (..., "+1")}), rows, [0, 0], [4, 1])
    assert option_values(found, 0, 0) == [0, 0.25, 0.5, 0.75]
    assert found.stay.all()
    # Two levels of one coordinate are told apart by what they are called.
    space = Space().category("x0", ["a", "b", "c"], forward=lambda i: min(i, 1))
    rows = rows_of(
        None, np.array([[0.0], [1], [1], [1]]), array=np.array([["a"], ["b"], ["c"], [None]])
    )
    found = Choices.of(space, Rules(forbidden={"x0": [("b", "a")]}), rows, [np.nan], [np.nan])
    assert found.allowed[:, 0].tolist() == [1, 0, 1, 1]


def test_a_table_under_other_names_is_read_by_place():
    space = Space(named=False).number("x0", whole=True).number("x1", whole=True)
    rows = rows_of(
        nw.from_native(pd.DataFrame({"a": [1.0], "b": [3.0]}), eager_only=True),
        np.array([[1.0, 3]]),
    )
    found = Choices.of(space, read(space, increase_only=[0, 1]), rows, [0, 0], [4, 4])
    assert option_values(found, 0, 1) == [3, 4]


def test_nothing_is_chosen_where_a_map_cannot_be_followed():
    def only_positive(u):
        assert (u > 0).all()
        return np.log(u)

    facts = {"affine": False, "observed": (1.0, 9.0), "limits": (0.5, 64.0)}
    space = Space().number("k", only_positive, whole=True, **facts)
    space.number("u", only_positive, **facts)
    table = {"k": [3.0, 70.0], "u": [3.0, 70.0]}
    found = choices(space, table, bounds={"u": ("-10", None)})
    assert found.count.tolist() == [64, 0]
    assert found.lo[0, 1] == np.log(0.5)
    assert found.hi[0, 1] == np.log(64)
    assert found.stay.all()  # also where the own value lies beyond


def test_a_pipeline_is_asked_only_once_for_the_same_bounds():
    asked = []

    def forward(u):
        asked.append(u)
        return u / 2

    space = Space().number("u", forward).number("k", forward, whole=True)
    rows = space.given({"u": [1.0], "k": [1]})
    before = Choices.of(space, Rules(), rows, [0, 0], [4, 4])
    asked.clear()
    after = Choices.of(space, Rules(), rows, [0, 0], [4, 4])
    assert not asked
    assert np.array_equal(before.hi, after.hi)
    assert np.array_equal(before.most, after.most)
    assert Choices.of(space, Rules(), rows, [0, 0], [6, 4]).hi[0, 0] == 3


def test_a_limit_on_changes_is_kept_and_makes_a_search():
    space = Space().number("u").number("v")
    table = {"u": [1.0], "v": [1.0]}
    assert choices(space, table).changes == 2
    assert choices(space, table, max_changes=5).changes == 2
    limited = choices(space, table, max_changes=1)
    assert limited.changes == 1
    assert limited.discrete


@pytest.mark.parametrize("library", [pd, pl])
def test_values_of_every_kind_of_column_are_read(library):
    space = (
        Space()
        .number("i", whole=True)
        .number("b", whole=True, observed=(0.0, 1.0))
        .category("c", ["x", "y"])
        .category("n", [1, 2], forward=float)
    )
    table = {"i": [1, None, 3], "b": [True, False, True], "c": ["x", "y", None], "n": [1, 2, 2]}
    if library is pd:
        frame = pd.DataFrame(table)
        frame = frame.astype({"i": "Int64", "b": "boolean", "c": "category"})
    else:
        frame = pl.DataFrame(table).with_columns(pl.col("c").cast(pl.Enum(["x", "z", "y"])))
    points = np.array([[1.0, 1, 1, 0, 0], [2, 0, 0, 1, 1], [3, 1, 0, 0, 1]])
    rules = read(
        space,
        increase_only=["i", "b"],
        forbidden={"c": [("x", "y")], "n": [(1, 2)]},
        bounds={"i": (None, 4)},
    )
    rows = rows_of(nw.from_native(frame, eager_only=True), points)
    found = Choices.of(space, rules, rows, *space.open())
    assert [option_values(found, r, 0) for r in range(3)] == [[1, 2, 3, 4], [2], [3, 4]]
    assert [option_values(found, r, 1) for r in range(3)] == [[1], [0, 1], [1]]
    assert found.allowed.tolist() == [[1, 0, 1, 0], [1, 1, 1, 1], [1, 1, 1, 1]]


def test_the_box_is_the_hull_of_all_options():
    space = (
        Space()
        .number("k", lambda u: 1 - u, whole=True)
        .number("t", np.log, affine=False, whole=True, observed=(1.0, 9.0))
        .category("job", LEVELS)
        .number("fixed")
    )
    table = {
        "k": [1, 5, 9, 2],
        "t": [3, 9, 1, 2],
        "job": ["a", "b", "c", "d"],
        "fixed": [1.0, 2.0, 3.0, 4.0],
    }
    found = choices(
        space,
        table,
        [(0, 6), (2, 8), (np.nan, np.nan), (0, 1)],
        increase_only=["t", "job"],
        order={"job": LEVELS},
        bounds={"k": ("-1", 6)},
        immutable=["fixed"],
    )
    lo, hi = found.box()
    for row in range(4):
        for c, column in enumerate(space.columns):
            options = options_of(found, row, c)
            lower, upper = lo[row, column.places], hi[row, column.places]
            if not options:
                assert (lower > upper).all()
            else:
                assert np.array_equal(lower, np.min(options, axis=0))
                assert np.array_equal(upper, np.max(options, axis=0))


def test_the_box_is_shared_where_all_rows_are_inside():
    space = Space().number("u").number("k", whole=True).category("job", ["a", "b"])
    table = {"u": [1.0, 2.0], "k": [1, 2], "job": ["a", "b"]}
    lo, hi = choices(space, table, [(0, 3), (0, 4), (np.nan, np.nan)]).box()
    assert lo.tolist() == [[0, 0, 0, 0]]
    assert hi.tolist() == [[3, 4, 1, 1]]
