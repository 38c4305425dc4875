"""New values of a column with steps are exact multiples, and no other multiples are cheaper."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from voicecf import Status, VoICE
from voicecf.rules.multiples import Listed, Multiples


def decimal_multiple(step: float, k: int) -> float:
    """Return the float nearest to k times the step as it is written: 3 times 0.1 is 0.3."""
    return float(Decimal(repr(step)) * k)


def is_multiple(step: float, value: float) -> bool:
    k = round(Fraction(value) / Fraction(repr(step)))
    return value == decimal_multiple(step, k)


# The values of a grid.


@pytest.mark.parametrize("step", [0.1, 2.5, 1.0, 0.05, 7.0, 1e-3, 250.0])
@pytest.mark.parametrize("offset", [0.0, 0.3, -0.4, 0.49])
def test_the_value_of_a_grid_is_the_multiple_next_to_it(step, offset):
    ks = np.arange(-200, 201)
    values = (ks + offset) * step
    found = Multiples(step).values_at(np.full(len(ks), np.nan), values)
    assert found.tolist() == [decimal_multiple(step, k) for k in ks.tolist()]


@pytest.mark.parametrize("step", [0.1, 2.5, 0.7])
def test_between_two_multiples_the_nearer_one_is_taken(step):
    values = np.random.default_rng(0).uniform(-50, 50, 300)
    for value, found in zip(values, Multiples(step).values_at(values, values), strict=True):
        below = int(np.floor(value / step))
        near = [decimal_multiple(step, k) for k in range(below - 1, below + 3)]
        assert found == min(near, key=lambda multiple: abs(multiple - value))


@pytest.mark.parametrize("falls", [False, True])
def test_of_listed_values_the_one_with_the_nearest_coordinate_is_taken(falls):
    rng = np.random.default_rng(1)
    values = np.sort(rng.uniform(-9, 9, 12))
    coordinates = np.sort(rng.normal(0, 3, 12))
    values = values[::-1] if falls else values
    grid = Listed(values, coordinates)
    asked = np.concatenate([rng.uniform(-12, 12, 200), coordinates, [-1e9, 1e9]])
    expected = [values[np.argmin(np.abs(coordinates - z))] for z in asked]
    assert grid.values_at(asked, np.full(len(asked), np.nan)).tolist() == expected


def test_a_list_of_one_value_has_no_other_and_an_empty_one_changes_nothing():
    asked, values = np.array([-5.0, 2.0, 2.5, 70.0]), np.array([1.0, 2.0, 3.0, 4.0])
    one = Listed(np.array([40.0]), np.array([2.0]))
    assert one.values_at(asked, values).tolist() == [40.0] * 4
    none = Listed(np.empty(0), np.empty(0))
    assert none.values_at(asked, values).tolist() == values.tolist()


# Answers on grids.


@cache
def rows(n: int = 60) -> pd.DataFrame:
    """Return rows of three groups in two columns, none of whose values is on a grid."""
    rng = np.random.default_rng(5)
    centers = np.array([[20.0, 30.0], [60.0, 40.0], [30.0, 80.0]])
    values = np.repeat(centers, n // 3, axis=0) + rng.normal(0, 6.0, (n, 2))
    return pd.DataFrame(values.round(4) + 0.00031, columns=["rate", "days"])


STEPS = {"rate": 0.1, "days": 2.5}


def kmeans() -> KMeans:
    return KMeans(3, n_init=3, random_state=0)


def log() -> FunctionTransformer:
    return FunctionTransformer(np.log, inverse_func=np.exp)


MODELS: dict[str, Any] = {
    "bare": kmeans,
    "standard": lambda: make_pipeline(StandardScaler(), kmeans()),
    "min max": lambda: make_pipeline(MinMaxScaler((-2, 5)), kmeans()),
    "log": lambda: make_pipeline(log(), StandardScaler(), kmeans()),
}


@cache
def voice_of(model: str) -> VoICE:
    return VoICE(MODELS[model](), contraction=1.0).fit(rows())


def assert_on_grid(table: pd.DataFrame, cf, steps: dict[str, float]) -> None:
    """A value that differs from its row's is a multiple; one that does not has the row's bits."""
    frame, own = cf.to_frame(), table.iloc[cf.row]
    assert cf.feasible.all()
    for c, (name, step) in enumerate(steps.items()):
        changed = cf.outcome.changes[:, c]
        assert changed.any()
        assert all(is_multiple(step, float(v)) for v in frame[name][changed])
        kept = (
            frame[name][~changed].to_numpy(dtype=float),
            own[name][~changed].to_numpy(dtype=float),
        )
        assert kept[0].tobytes() == kept[1].tobytes()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("steps", [STEPS, {"rate": 0.7, "days": 0.3}])
def test_new_values_are_exact_multiples_of_their_steps(model, steps):
    cf = voice_of(model).explain(rows(), "each", steps=steps, plausible=None)
    assert_on_grid(rows(), cf, steps)
    assert (voice_of(model).model_.predict(cf.to_frame()) == cf.target).all()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("steps", [{"rate": 0.1, "days": 2.5}, {"rate": 0.7, "days": 0.3}])
def test_values_off_the_grid_that_do_not_change_stay_bit_for_bit(model, steps):
    cf = voice_of(model).explain(rows(), "each", steps=steps, objective="fewest", plausible=None)
    assert (cf.n_changed == 1).any()
    assert_on_grid(rows(), cf, steps)
    for c, name in enumerate(steps):
        kept = ~cf.outcome.changes[:, c]
        assert kept.any(), "some answers leave this column alone"
        assert not any(is_multiple(steps[name], float(v)) for v in cf.to_frame()[name][kept])


def test_points_of_a_bare_model_are_on_the_grid_too():
    cf = voice_of("bare").explain(rows(), "each", steps=STEPS, plausible=None)
    frame = cf.to_frame()
    for c, name in enumerate(STEPS):
        np.testing.assert_array_equal(cf.points[:, c], frame[name])
    own = rows().to_numpy()[cf.row]
    moved = cf.points != own
    assert all(is_multiple(0.1, float(v)) for v in cf.points[moved[:, 0], 0])
    assert all(is_multiple(2.5, float(v)) for v in cf.points[moved[:, 1], 1])
    np.testing.assert_allclose(cf.cost, ((cf.points - own) ** 2).mean(axis=1), rtol=1e-12)


@pytest.mark.parametrize("model", MODELS)
def test_a_column_without_steps_beside_one_with_steps_is_not_rounded(model):
    voice = voice_of(model)
    cf = voice.explain(rows(), "each", steps={"days": 2.5}, plausible=None)
    changed = cf.outcome.changes
    assert not any(is_multiple(0.1, float(v)) for v in cf.to_frame()["rate"][changed[:, 0]])
    assert all(is_multiple(2.5, float(v)) for v in cf.to_frame()["days"][changed[:, 1]])


@pytest.mark.parametrize("model", MODELS)
def test_multiples_count_from_zero_and_not_from_a_bound(model):
    bounds = {"rate": (13.34, 70.78), "days": (21.3, 98.9)}
    cf = voice_of(model).explain(rows(), "each", steps=STEPS, bounds=bounds, plausible=None)
    cf = cf[cf.feasible]
    assert_on_grid(rows(), cf, STEPS)
    frame = cf.to_frame()
    for name, (low, high) in bounds.items():
        assert frame[name].between(low, high).all()


@pytest.mark.parametrize("model", ["bare", "standard", "log"])
def test_whole_numbers_stay_whole_without_a_word(model):
    table = rows().assign(days=rows()["days"].round().astype(int))
    voice = VoICE(MODELS[model](), contraction=1.0).fit(table)
    cf = voice.explain(table, "each", plausible=None)
    assert cf.feasible.all()
    assert cf.to_frame()["days"].dtype == table["days"].dtype
    assert not (cf.to_frame()["rate"] % 1 == 0).any()
    free = voice.explain(table, "each", steps={"days": None}, plausible=None)
    assert (free.to_frame()["days"] % 1 != 0).any()
    assert (free.cost <= cf.cost * (1 + 1e-9)).all()


def test_single_precision_answers_are_multiples_that_it_can_hold():
    table = rows().astype(np.float32)
    voice = VoICE(kmeans(), contraction=1.0).fit(table)
    steps = {"rate": 0.25, "days": 2.5}
    cf = voice.explain(table, "each", steps=steps, plausible=None)
    assert cf.points.dtype == np.float32
    own = table.to_numpy()[cf.row]
    for c, step in enumerate(steps.values()):
        changed = cf.points[:, c] != own[:, c]
        assert changed.any()
        assert (cf.points[changed, c] % step == 0).all()
    assert (voice.predict(cf.points) == cf.target).all()


# Brute force: every combination of a row's own value and the multiples between the bounds.


def cheapest(voice: VoICE, row: np.ndarray, target: int, steps: dict, bounds: dict) -> float:
    """Return the least cost of all values on the grid that the model puts into the target."""
    options = []
    for own, name in zip(row, steps, strict=True):
        (low, high), step = bounds[name], steps[name]
        first = int(np.ceil(Fraction(low) / Fraction(repr(step))))
        last = int(np.floor(Fraction(high) / Fraction(repr(step))))
        multiples = [decimal_multiple(step, k) for k in range(first, last + 1)]
        options.append([own, *(v for v in multiples if low <= v <= high)])
    table = pd.DataFrame(list(product(*options)), columns=list(steps))
    inside = table[voice.model_.predict(table) == target]
    before = getattr(voice.model_, "steps", [])[:-1]
    ends = pd.DataFrame([row], columns=list(steps)), inside
    for _, step in before:
        ends = tuple(step.transform(some) for some in ends)
    moves = np.asarray(ends[1]) - np.asarray(ends[0])
    return float((moves**2).mean(axis=1).min(initial=np.inf))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("steps", [{"rate": 0.1, "days": 2.5}, {"rate": 0.7, "days": 9.0}])
def test_no_values_on_the_grid_are_cheaper(model, steps):
    voice, table = voice_of(model), rows().iloc[::7]
    low, high = rows().min() - 0.123, rows().max() + 0.123
    bounds = {name: (float(low[name]), float(high[name])) for name in steps}
    cf = voice.explain(table, "each", steps=steps, bounds=bounds, plausible=None)
    assert (cf.status == Status.OPTIMAL).all()
    for i in range(len(cf)):
        least = cheapest(voice, table.to_numpy()[cf.row[i]], int(cf.target[i]), steps, bounds)
        assert cf.cost[i] == pytest.approx(least, rel=1e-9)


def test_where_no_multiple_is_within_the_bounds_nothing_is_found():
    voice, table = voice_of("standard"), rows()[:3]
    bounds = {"rate": (50.01, 50.09), "days": (31.0, 32.0)}
    target = int(voice.predict(pd.DataFrame({"rate": [50.05], "days": [31.5]}))[0])
    assert target != voice.predict(table)[0]
    assert (
        voice.explain(table, target, bounds=bounds, plausible=None).status == Status.OPTIMAL
    ).all()
    assert (
        voice.explain(table, target, bounds=bounds, steps=STEPS, plausible=None).status
        == Status.INFEASIBLE
    ).all()
