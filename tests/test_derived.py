"""Columns computed from others: by brute force, by SLSQP, and to the digits of the table."""

from __future__ import annotations

import warnings
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import Status, VoICE
from voicecf.errors import ColumnError, OptionError

FORMULAS: dict[str, Any] = {
    "a / b": lambda d: d.a / d.b,
    "a * b": lambda d: d.a * d.b,
    "a + 2*b - c": lambda d: d.a + 2 * d.b - d.c,
    "100 * a / b - 3": lambda d: 100 * d.a / d.b - 3,
    "1 / b": lambda d: 1 / d.b,
    "c - 0.5 * a * b": lambda d: d.c - 0.5 * d.a * d.b,
}


def numbers(seed: int, text: str, n: int = 120) -> pd.DataFrame:
    """Return a table of numbers whose column r is what a formula gives."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({
        "a": rng.gamma(5, rng.choice([4.0, 12.0], n)),
        "b": rng.gamma(6, rng.choice([1.0, 3.0], n)) + 1,
        "c": rng.normal(50, 15, n),
    })  # fmt: skip
    return frame.assign(r=FORMULAS[text](frame))


def explainer(frame: pd.DataFrame, **options: Any) -> VoICE:
    model = make_pipeline(StandardScaler(), KMeans(3, n_init=2, random_state=0)).fit(frame)
    return VoICE(model, contraction=1.0, **options).fit(frame)


def least_cost(voice: VoICE, row: pd.Series, target: int, text: str, starts: Any) -> float:
    """Return the least cost of a, b and c with r as the formula gives it, by SLSQP."""
    scaler, centers = voice.model[0], voice.model[-1].cluster_centers_
    weights = voice.learned_.weights
    before = (row.to_numpy() - scaler.mean_) / scaler.scale_
    others = [j for j in range(len(centers)) if j != target]

    def point(x: Any) -> Any:
        changed = pd.Series(dict(zip("abc", x, strict=True)))
        values = np.append(x, FORMULAS[text](changed))
        return (values - scaler.mean_) / scaler.scale_

    def nearer(x: Any) -> Any:
        away = ((point(x) - centers) ** 2).sum(axis=1)
        return away[others] - away[target]

    def cost(x: Any) -> Any:
        return (weights * (point(x) - before) ** 2).sum()

    best = np.inf
    for start in starts:
        found = minimize(
            cost, start, method="SLSQP", constraints=[{"type": "ineq", "fun": nearer}],
            bounds=[(None, None), (0.05, None), (None, None)],
            options={"maxiter": 300, "ftol": 1e-13},
        )  # fmt: skip
        if nearer(found.x).min() > -1e-9:
            best = min(best, found.fun)
    return best


def check_optimal(seed: int, text: str) -> None:
    frame = numbers(seed, text)
    voice, rows = explainer(frame, bounds=None), frame.iloc[:3]
    cf = voice.explain(rows, "each", derived={"r": text}, plausible=None)
    check_answers(cf, frame, voice, {"r": FORMULAS[text]})
    assert (cf.status == Status.OPTIMAL).all()
    assert cf.gap.max() <= 1e-9
    starts = frame[["a", "b", "c"]].to_numpy()
    for i in range(len(cf)):
        row = rows.iloc[cf.row[i]]
        some = [row[["a", "b", "c"]].to_numpy(), *starts[7 : 7 + 6]]
        assert cf.cost[i] <= least_cost(voice, row, int(cf.target[i]), text, some) * (1 + 1e-6)


def check_answers(cf: Any, frame: pd.DataFrame, voice: VoICE, formulas: dict[str, Any]) -> None:
    """Check that answers land, alone and in batch, and satisfy formulas to the table's digits."""
    moved = np.isin(cf.status, (Status.OPTIMAL, Status.STOPPED))
    out = cf.to_frame()[list(frame)][moved]
    target = cf.target[moved]
    assert (voice.model.predict(out) == target).all()
    for at in range(len(out)):
        assert voice.model.predict(out.iloc[[at]])[0] == target[at]
    for name, formula in formulas.items():
        value = formula(out)
        if frame[name].dtype.kind == "i":
            assert (np.abs(out[name] - value) <= 0.5 + 1e-9).all()
        else:
            np.testing.assert_allclose(out[name], value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("text", FORMULAS)
def test_no_values_that_satisfy_the_formula_are_cheaper(text: str) -> None:
    check_optimal(0, text)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 40))
def test_no_values_of_many_tables_are_cheaper(seed: int) -> None:
    check_optimal(seed, list(FORMULAS)[seed % len(FORMULAS)])


# Whole numbers.

WHOLE: dict[str, Any] = {
    "a * b": lambda a, b, c: a * b,
    "a + b - c": lambda a, b, c: a + b - c,
    "a / b": lambda a, b, c: np.divide(a, b),
    "a / b if b > 0 else 0": lambda a, b, c: a / b if b > 0 else 0.0,
    "0 if a == 0 else 6 * b / a": lambda a, b, c: 6 * b / a if a else 0.0,
}


def whole_table(seed: int, text: str, most: int = 7) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    low = 1 if text == "a / b" else 0
    frame = pd.DataFrame({"a": rng.integers(0, most, 60), "b": rng.integers(low, most, 60)})
    frame["c"] = rng.integers(0, 4, 60)
    values = [WHOLE[text](*row) for row in frame.to_numpy()]
    whole = text in ("a * b", "a + b - c") or seed % 2
    return frame.assign(r=np.rint(values).astype(int) if whole else np.array(values))


def brute_force(
    voice: VoICE, frame: pd.DataFrame, row: pd.Series, target: int, text: str, fewest: bool
) -> tuple[float, float]:
    """Return how many columns change and the least cost, over all values of a, b and c."""
    ranges = [range(int(frame[n].min()), int(frame[n].max()) + 1) for n in "abc"]
    found = []
    for a, b, c in product(*ranges):
        if text == "a / b" and b == 0:
            continue
        value = WHOLE[text](a, b, c)
        rs = {value}
        if frame.r.dtype.kind == "i":
            rs = {r for r in (np.floor(value), np.ceil(value)) if abs(r - value) <= 0.5}
        if abs(row.r - value) <= (0.5 if frame.r.dtype.kind == "i" else 1e-9):
            rs.add(row.r)
        found += [(a, b, c, r) for r in rs if frame.r.min() <= r <= frame.r.max()]
    points = pd.DataFrame(found, columns=list("abcr"))
    points = points[voice.model.predict(points) == target]
    if points.empty:
        return np.inf, np.inf
    moves = voice.model[0].transform(points) - voice.model[0].transform(row.to_frame().T)
    cost = (voice.learned_.weights * moves**2).sum(axis=1)
    changed = (points.to_numpy() != row.to_numpy(dtype=float)).sum(axis=1)
    least = changed.min() if fewest else 0
    return float(least), float(cost[changed == least].min() if fewest else cost.min())


@pytest.mark.parametrize("objective", ["cost", "fewest"])
@pytest.mark.parametrize("text", WHOLE)
@pytest.mark.parametrize("seed", range(2))
def test_whole_numbers_as_by_brute_force(seed: int, text: str, objective: str) -> None:
    frame = whole_table(seed, text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        voice = explainer(frame)
    rows = frame.iloc[:4]
    cf = voice.explain(rows, "each", derived={"r": text}, objective=objective, plausible=None)
    for i in range(len(cf)):
        case = rows.iloc[cf.row[i]], int(cf.target[i]), text, objective == "fewest"
        changes, cost = brute_force(voice, frame, *case)
        assert (cf.status[i] == Status.OPTIMAL) == np.isfinite(cost)
        if np.isfinite(cost):
            assert cf.cost[i] == pytest.approx(cost, rel=1e-9)
            assert objective == "cost" or cf.n_changed[i] == changes


# Tables with digits, rows that contradict, several formulas, other rules.

SHOP: dict[str, Any] = {
    "basket": lambda d: np.where(d.orders > 0, d.revenue / d.orders.clip(lower=1), 0.0),
    "total": lambda d: d.fresh + d.frozen,
    "share": lambda d: d.fresh / d.total,
}
DERIVED = {
    "basket": "revenue / orders if orders > 0 else 0",
    "total": "fresh + frozen",
    "share": "fresh / total",
}


def shop(seed: int, n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    orders = rng.poisson(rng.choice([2, 8], n))
    frame = pd.DataFrame({
        "orders": orders,
        "revenue": np.round(orders * rng.gamma(20, rng.choice([1.0, 3.0], n)), 2),
        "fresh": rng.gamma(3, 100, n).round(1) + 1,
        "frozen": rng.gamma(2, 80, n).round(1) + 1,
        "age": rng.integers(18, 80, n),
    })  # fmt: skip
    for name, digits in (("basket", 2), ("total", 1), ("share", 3)):
        frame[name] = np.round(SHOP[name](frame), digits)
    return frame


WORDS: list[dict[str, Any]] = [
    {},
    {"objective": "fewest"},
    {"objective": "prefix"},
    {"alternatives": 2},
    {"plausible": 0.95},
    {"max_changes": 5},
    {"bounds": {"basket": (None, "+20%")}, "increase_only": ["total"]},
    {"constraints": "fresh <= 3*frozen", "immutable": ["basket"]},
    {"least": {"total": 20}, "steps": {"frozen": 0.5}},
]


@pytest.mark.parametrize("words", WORDS)
def test_answers_satisfy_formulas_to_the_digits_of_the_table(words: dict[str, Any]) -> None:
    frame = shop(0)
    voice, rows = explainer(frame), frame.iloc[:5].copy()
    rows.loc[rows.index[2], "basket"] = 99.0  # contradicts its formula
    cf = voice.explain(rows, "each", derived=DERIVED, **words)
    moved = np.isin(cf.status, (Status.OPTIMAL, Status.STOPPED))
    assert moved.any()
    # Where the contradicting value is locked, a search may end without a proof.
    assert not (cf.status[(cf.row != 2) | ("immutable" not in words)] == Status.UNRESOLVED).any()
    after, before = cf.to_frame()[list(frame)][moved], rows.iloc[cf.row[moved]]
    assert (voice.model.predict(after) == cf.target[moved]).all()
    sources = {"basket": ["revenue", "orders"], "total": ["fresh", "frozen"]}
    sources["share"] = ["fresh", "total"]
    for name, half in (("basket", 0.005), ("total", 0.05), ("share", 0.0005)):
        group = [name, *sources[name]]
        kept = (after[group].to_numpy() == before[group].to_numpy()).all(axis=1)
        error = np.abs(after[name] - SHOP[name](after)).to_numpy()
        stays = after[name].to_numpy() == before[name].to_numpy()
        assert (error[~kept & ~stays] <= 1e-7).all()
        assert (error[~kept] <= half * (1 + 1e-4)).all()
    for name in words.get("immutable", ()):
        assert (after[name].to_numpy() == before[name].to_numpy()).all()


def test_a_column_made_of_locked_columns_is_locked() -> None:
    frame = shop(0)
    cf = explainer(frame).explain(
        frame.iloc[:3], "each", derived=DERIVED, immutable=["revenue", "orders"], plausible=None
    )
    before = frame.iloc[cf.row]["basket"].to_numpy()
    assert (cf.to_frame()["basket"].to_numpy() == before).all()


@pytest.mark.parametrize(("derived", "message"), [
    ({"basket": "basket + 1"}, "circle"),
    ({"total": "share * age", "share": "total / age"}, "circle"),
    ({"total": "fresh + frzen"}, "frozen"),
    ({"total": "12"}, "constant"),
    ({"total": "fresh / 0"}, "divides by zero"),
    ({"total": "fresh / (frozen + age)"}, "more than one column"),
    ({"total": "fresh * frozen + age / orders"}, "two products"),
    ({"total": "fresh ** 2"}, "neither"),
    ({"total": "fresh if frozen > age else 0"}, "if"),
    ({"total": "fresh +"}, "cannot be read"),
    ({"total": 3}, "no formula"),
    ("total = fresh", "must be a dict"),
])  # fmt: skip
def test_what_is_no_formula_is_refused(derived: Any, message: str) -> None:
    frame = shop(0)
    with pytest.raises((OptionError, ColumnError), match=message):
        explainer(frame).explain(frame.iloc[:2], 0, derived=derived, plausible=None)


def test_the_reason_names_the_formula_in_the_way() -> None:
    frame = shop(0)
    voice = explainer(frame)
    rules = {"immutable": ["fresh", "frozen", "age", "orders", "revenue"], "derived": DERIVED}
    cf = voice.explain(frame.iloc[[0]], "each", **rules, plausible=None)
    assert (cf.status == Status.INFEASIBLE).any() or cf.n_changed.max() == 0


def test_the_command_reads_formulas() -> None:
    from voicecf.rules.derived import Derived

    read = Derived.parsed(["basket=revenue / orders if orders >= 1 else 0", "total = a + b"])
    assert read == {"basket": "revenue / orders if orders >= 1 else 0", "total": " a + b"}


def test_a_contradicting_value_may_be_put_right_alone() -> None:
    frame = numbers(3, "a + 2*b - c")
    voice, row = explainer(frame, bounds=None), frame.iloc[[0]].copy()
    home = int(voice.predict(row)[0])
    row["r"] += 400.0
    assert int(voice.predict(row)[0]) != home
    words: dict[str, Any] = {"derived": {"r": "a + 2*b - c"}, "objective": "fewest"}
    cf = voice.explain(row, home, **words, plausible=None)
    assert cf.n_changed[0] == 1
    after = cf.to_frame()
    assert after["r"].iloc[0] == pytest.approx(frame["r"].iloc[0])
    locked = voice.explain(row, home, **words, immutable="r", plausible=None)
    assert locked.status[0] == Status.OPTIMAL
    assert locked.to_frame()["r"].iloc[0] == row["r"].iloc[0]


# What `fit` finds.


def found(frame: pd.DataFrame, **options: Any) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few different rows for KMeans
        return explainer(frame, **options).derived_


@pytest.mark.parametrize("text", ["a + b", "a - c", "a * b", "a / b"])
def test_fit_finds_what_two_columns_make(text: str) -> None:
    frame = numbers(1, "1 / b", 150).drop(columns="r")
    assert found(frame) == {}
    frame["r"] = frame.eval(text)
    assert found(frame) == {"r": text}
    frame.loc[frame.index[[17]], "r"] += 1.0  # 99.3 % of the rows
    assert found(frame) == {"r": text}
    frame.loc[frame.index[[18]], "r"] += 1.0  # 98.7 %
    assert found(frame) == {}


def test_fit_finds_formulas_to_the_digits_of_the_table_and_they_can_be_passed() -> None:
    frame = shop(0)
    voice = explainer(frame)
    assert voice.derived_ == DERIVED
    cf = voice.explain(frame.iloc[:3], "each", derived=voice.derived_, plausible=None)
    assert (cf.status == Status.OPTIMAL).any()
    check_answers(cf, frame, voice, {"orders": lambda d: d.orders})
    frame["basket"] += 0.011 * (-1) ** np.arange(len(frame))  # beyond the last digit
    assert "basket" not in found(frame)


def test_what_is_found_is_saved(tmp_path: Any) -> None:
    voice = explainer(shop(0))
    voice.save(tmp_path / "shop.voice")
    assert VoICE.load(tmp_path / "shop.voice").derived_ == DERIVED


def test_names_are_quoted_where_they_must_be() -> None:
    columns = ["if", "my col", "sum: 1/2", "a=b"]
    frame = numbers(2, "1 / b")[["a", "b"]]
    frame["s"], frame["d"] = frame["a"] + frame["b"], frame["a"] / frame["b"]
    frame.columns = columns
    voice = explainer(frame)
    assert voice.derived_ == {"sum: 1/2": "`if` + `my col`", "a=b": "`if` / `my col`"}
    cf = voice.explain(frame.iloc[:2], "each", derived=voice.derived_, plausible=None)
    assert (cf.status == Status.OPTIMAL).all()
    frame.columns = ["a`b", "b", "s", "d"]
    assert found(frame) == {}


def test_rows_without_values_do_not_count() -> None:
    from sklearn.impute import SimpleImputer

    frame = shop(0)[["fresh", "frozen", "total", "age"]].astype(float)
    frame.loc[::5, "fresh"] = frame.loc[1::7, "total"] = np.nan
    model = make_pipeline(SimpleImputer(), StandardScaler(), KMeans(3, n_init=1, random_state=0))
    assert VoICE(model.fit(frame)).fit(frame).derived_ == {"total": "fresh + frozen"}


TRIVIAL: dict[str, Any] = {
    "few rows": lambda d, rng: d.assign(r=d.a + d.b).iloc[:19],
    "a constant": lambda d, rng: d.assign(k=2.0, r=d.a + 2.0),
    "a multiple": lambda d, rng: d.assign(r=2 * d.a, s=3 * d.a),
    "almost no b": lambda d, rng: d.assign(b=np.where(np.arange(len(d)) < 9, d.b, 0.0)).assign(
        r=lambda e: e.a + e.b
    ),
    "zeros and ones": lambda d, rng: d.assign(
        u=rng.integers(0, 2, len(d)), v=rng.integers(0, 2, len(d))
    ).assign(w=lambda e: e.u + e.v, x=lambda e: e.u * e.a),
    "a block": lambda d, rng: d.assign(
        **{f"is {i}": (np.arange(len(d)) % 3 == i).astype(float) for i in range(3)}
    ),
    "coarse digits": lambda d, rng: d.assign(r=np.rint(d.a / 1000 / d.b).astype(int)),
    "small numbers": lambda d, rng: d.assign(
        **{name: rng.integers(0, 4, len(d)) for name in "uvwxyz"}
    ),
}


@pytest.mark.parametrize("case", TRIVIAL)
def test_nothing_trivial_is_found(case: str) -> None:
    frame = numbers(5, "1 / b", 200).drop(columns="r")
    assert found(TRIVIAL[case](frame, np.random.default_rng(0))) == {}


def test_no_column_is_made_of_itself() -> None:
    frame = numbers(4, "1 / b")[["a", "b", "c"]]
    frame["s"], frame["p"] = frame["a"] + frame["b"], frame["a"] * frame["b"]
    frame["t"], frame["u"] = frame["s"] + frame["c"], frame["b"] + frame["c"]  # t is a + u, too
    voice = explainer(frame)
    assert voice.derived_ == {"s": "a + b", "p": "a * b", "t": "a + u", "u": "b + c"}
    voice.explain(frame.iloc[:1], "each", derived=voice.derived_, plausible=None)


def test_of_several_that_fit_the_exact_one_is_named() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"price": rng.integers(5, 90, 300), "age": rng.integers(18, 90, 300)})
    frame.insert(0, "paid", frame["price"] * rng.integers(1, 9, 300))
    frame["items"] = frame["paid"] // frame["price"]
    assert found(frame) == {"items": "paid / price"}
    assert VoICE.from_centers([[0.0, 0.0], [1.0, 1.0]]).derived_ == {}
