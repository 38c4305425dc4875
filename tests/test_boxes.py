"""Rules that no single box describes: least changes, columns that belong together, curved rules.

The judges are all combinations of small whole numbers and levels, tried one by one with the
pipeline's own predict and the rules in plain pandas, and SCIP, which is told the curves.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from voicecf import Rules, Status, VoICE
from voicecf.errors import ColumnError, OptionError

CUSTOMERS = "if frequency == 0 then recency == 0 and money == 0"
NUMBERS = {"a": 7, "b": 9, "c": 6}
NEAR = 1e-9


def logarithm() -> FunctionTransformer:
    return FunctionTransformer(np.log1p, inverse_func=np.expm1)


MAPS = (
    logarithm,
    lambda: FunctionTransformer(np.sqrt, inverse_func=np.square),
    PowerTransformer,
    lambda: QuantileTransformer(n_quantiles=20),
    StandardScaler,
    lambda: make_pipeline(logarithm(), StandardScaler()),
)
# Rules of `together`, each with what it means.
UNIONS: tuple[tuple[Any, Any], ...] = (
    (
        "if a == 0 then b == 0 and c <= 3",
        lambda t: (t.a != 0) | ((t.b == 0) & (t.c <= 3)),
    ),
    ("if town == x and c > 1 then a >= 2", lambda t: (t.town != "x") | (t.c <= 1) | (t.a >= 2)),
    ("b <= 2 and town != 'y' or c = 4", lambda t: ((t.b <= 2) & (t.town != "y")) | (t.c == 4)),
    (
        [{"a": 3, "b": (0, 4)}, {"a": (1, 5), "town": ["y", "z"]}, {"c": (3, None)}],
        lambda t: (
            ((t.a == 3) & (t.b <= 4))
            | (t.a.between(1, 5) & t.town.isin(["y", "z"]))
            | (t.c >= 3)
        ),
    ),
    (
        pd.DataFrame({"a": [0, 1, 2, 3, 4, 5, 6], "b": [3, 8, 1, 0, 5, 2, 7]}),
        lambda t: [p in {(0, 3), (1, 8), (2, 1), (3, 0), (4, 5), (5, 2), (6, 7)} for p in zip(
            t.a, t.b, strict=True)],
    ),
)  # fmt: skip
CONSTRAINTS = ("a <= b", "a + 2*c <= 9", "b - c >= 1", "a + b + c <= 12", "2*a - b <= 1")


def random_rules(rng: np.random.Generator) -> tuple[dict[str, Any], list[Any]]:
    """Some rules, and what those of `together` mean."""
    words: dict[str, Any] = {}
    meanings = []
    if rng.random() < 0.4:
        words["least"] = {str(c): float(rng.choice([1, 2, 2.5])) for c in rng.choice([*NUMBERS], 2)}
    if rng.random() < 0.6:
        chosen = [UNIONS[i] for i in rng.choice(len(UNIONS), rng.integers(1, 3), replace=False)]
        words["together"], meanings = [rule for rule, _ in chosen], [m for _, m in chosen]
    if rng.random() < 0.6:
        words["constraints"] = rng.choice(CONSTRAINTS, rng.integers(1, 3), replace=False).tolist()
    if rng.random() < 0.2:
        words["max_changes"] = int(rng.integers(1, 4))
    if rng.random() < 0.2:
        words["immutable"] = str(rng.choice([*NUMBERS, "town"]))
    return words, meanings


def allowed(table: pd.DataFrame, own: pd.Series, words: dict[str, Any], meanings: Any) -> Any:
    """Which rows of a table one may become under the rules."""
    may = np.ones(len(table), dtype=bool)
    for column, least in words.get("least", {}).items():
        moves = (table[column] - own[column]).abs()
        may &= ((moves == 0) | (moves >= least)).to_numpy()
    for meaning in meanings:
        may &= np.asarray(meaning(table))
    for text in words.get("constraints", ()):
        may &= table.eval(text).to_numpy()
    if "immutable" in words:
        may &= (table[words["immutable"]] == own[words["immutable"]]).to_numpy()
    return may & (changes(table, own) <= words.get("max_changes", 4))


def changes(table: pd.DataFrame, own: pd.Series) -> Any:
    return (table != own).sum(axis=1).to_numpy()


@pytest.mark.parametrize("seed", range(8))
def test_no_combination_of_values_is_better(seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.integers(0, top, 160) for name, top in NUMBERS.items()})
    table["town"] = rng.choice(["x", "y", "z"], len(table))
    steps = [(name, MAPS[rng.integers(len(MAPS))](), [name]) for name in NUMBERS]
    steps.append(("town", OneHotEncoder(), ["town"]))
    columns = ColumnTransformer(steps, sparse_threshold=0.0)
    model = make_pipeline(columns, KMeans(int(rng.integers(2, 6)), n_init=2, random_state=0))
    voice = VoICE(model.fit(table), contraction=1.0).fit(table)
    every = pd.DataFrame(
        list(itertools.product(*(range(top) for top in NUMBERS.values()), "xyz")),
        columns=list(table),
    )
    clusters, points = model.predict(every), model[:-1].transform(every)
    for objective in ("cost", "fewest"):
        words, meanings = random_rules(rng)
        rows = table.sample(4, random_state=seed)
        cf = voice.explain(rows, "each", objective=objective, **words, plausible=None)
        new = cf.to_frame()
        for i in range(len(cf)):
            own = rows.iloc[cf.row[i]]
            may = allowed(every, own, words, meanings) & (clusters == cf.target[i])
            if not may.any():
                assert cf.status[i] == Status.INFEASIBLE
                continue
            assert cf.status[i] == Status.OPTIMAL
            here = np.flatnonzero((every == new.iloc[i]).all(axis=1))
            assert may[here].all()
            count = changes(every, own)
            if objective == "fewest":
                may &= count == count[may].min()
                assert cf.n_changed[i] == count[may].min()
            before = model[:-1].transform(rows.iloc[[cf.row[i]]])
            cost = ((points - before) ** 2 @ voice.weights_)[may].min()
            assert cf.cost[i] == pytest.approx(cost, rel=1e-9, abs=1e-12)


# A marketer's table: customers without a purchase have neither recency nor money.


@cache
def customers() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    n = 400
    age = rng.integers(30, 700, n)
    frequency = rng.poisson(rng.gamma(1, 2, n))
    recency = np.where(frequency > 0, (age * rng.beta(2, 1, n)).astype(int), 0)
    money = np.where(frequency > 0, rng.lognormal(3.5, 0.7, n).round(2), 0.0)
    return pd.DataFrame({"recency": recency, "frequency": frequency, "age": age, "money": money})


@cache
def customer_voice(power: bool = False, **options: Any) -> VoICE:
    first = PowerTransformer() if power else logarithm()
    model = make_pipeline(first, StandardScaler(), KMeans(4, n_init=4, random_state=0))
    return VoICE(model, **options).fit(customers())


@pytest.mark.parametrize("objective", ["cost", "fewest", "prefix"])
@pytest.mark.parametrize("power", [False, True])
def test_customers_that_cannot_exist_are_no_answers(power, objective):
    voice, rows = customer_voice(power), customers().head(60)
    least = {"recency": 5, "money": 1}
    cf = voice.explain(
        rows, "each", objective=objective, least=least, together=CUSTOMERS,
        constraints="recency <= age",
    )  # fmt: skip
    assert cf.feasible.mean() > 0.9
    new, own = cf.to_frame()[cf.feasible], rows.iloc[cf.row[cf.feasible]]
    assert (voice.model_.predict(new.astype(float)) == cf.target[cf.feasible]).all()
    assert (new.recency <= new.age).all()
    assert ((new.frequency > 0) | ((new.recency == 0) & (new.money == 0))).all()
    for column, amount in least.items():
        moves = (new[column].astype(float) - own[column]).abs()
        assert ((moves == 0) | (moves >= amount - 1e-9)).all()
    assert cf.gap[cf.feasible].max() <= 1e-9


class Scip:
    """The problem of one customer, told to SCIP with the logarithms."""

    def __init__(self, voice: VoICE, own: pd.Series, target: int, least: dict[str, float]) -> None:
        from pyscipopt import Model, log, quicksum

        self.model = model = Model()
        model.hideOutput()
        model.setParam("numerics/feastol", 1e-9)
        model.setParam("limits/gap", 1e-7)
        model.setParam("limits/time", 60)
        scaler, centers = voice.model_[1], voice.model_[2].cluster_centers_
        cost, z, self.user = 0.0, [], {}
        for i, name in enumerate(own.index):
            column = customers()[name]
            kind = "I" if column.dtype == np.int64 else "C"
            u = model.addVar(name, kind, lb=float(column.min()), ub=float(column.max()))
            move = model.addVar(f"move {name}", "C", lb=None)
            model.addCons(log(1 + u) == scaler.scale_[i] * move + float(np.log1p(own[name])))
            z.append(move + float((np.log1p(own[name]) - scaler.mean_[i]) / scaler.scale_[i]))
            cost += 0.25 * move * move
            self.user[name] = u
            if name in least:
                self._either([(u, own[name], own[name]), (u, None, own[name] - least[name]),
                              (u, own[name] + least[name], None)])  # fmt: skip
        for rival in np.delete(centers, target, axis=0):
            slope = rival - centers[target]
            offset = 0.5 * (rival**2 - centers[target] ** 2).sum()
            model.addCons(quicksum(float(s) * v for s, v in zip(slope, z, strict=True)) <= offset)
        self.cost = cost

    def _either(self, sides: Any) -> None:
        """Let one of several intervals hold."""
        chosen = [self.model.addVar(vtype="B") for _ in sides]
        self.model.addCons(sum(chosen) == 1)
        for (u, low, high), b in zip(sides, chosen, strict=True):
            if low is not None:
                self.model.addCons(u >= float(low) - 1e4 * (1 - b))
            if high is not None:
                self.model.addCons(u <= float(high) + 1e4 * (1 - b))

    def least(self) -> float:
        user, some = self.user, self.model.addVar(vtype="B")
        self.model.addCons(user["recency"] <= user["age"])
        self.model.addCons(user["frequency"] >= some)
        for name in ("frequency", "recency", "money"):
            self.model.addCons(user[name] <= 1e4 * some)
        total = self.model.addVar("cost", "C", lb=0.0)
        self.model.addCons(self.cost <= total)
        self.model.setObjective(total, "minimize")
        self.model.optimize()
        assert self.model.getStatus() in ("optimal", "gaplimit", "infeasible")
        return np.inf if self.model.getStatus() == "infeasible" else self.model.getObjVal()


@pytest.mark.parametrize("row", [0, 3, 5])
def test_scip_finds_no_cheaper_customer(row):
    pytest.importorskip("pyscipopt")
    voice, rows = customer_voice(contraction=1.0), customers().iloc[[row]]
    least = {"recency": 20.0, "money": 10.0}
    cf = voice.explain(
        rows, "each", least=least, together=CUSTOMERS, constraints="recency <= age", plausible=None
    )
    for i in range(len(cf)):
        cost = Scip(voice, rows.iloc[0], int(cf.target[i]), least).least()
        assert cf.status[i] == (Status.OPTIMAL if np.isfinite(cost) else Status.INFEASIBLE)
        assert cf.cost[i] <= cost * (1 + 1e-6) + 1e-8
        assert cf.cost[i] >= cost * (1 - 1e-5) - 1e-6


def test_a_curved_rule_between_numbers_is_met_exactly():
    rows = customers()[["age", "money"]].astype(float) + 0.5
    model = make_pipeline(logarithm(), KMeans(3, n_init=4, random_state=0))
    voice = VoICE(model, contraction=1.0).fit(rows)
    free = voice.explain(rows.head(40), "each", plausible=None)
    total = free.to_frame().sum(axis=1)
    limit = float(total.median())
    cf = voice.explain(rows.head(40), "each", constraints=f"age + money <= {limit}", plausible=None)
    assert (cf.to_frame()[cf.feasible].sum(axis=1) <= limit).all()
    kept = (total <= limit).to_numpy() & free.feasible
    assert cf.cost[kept] == pytest.approx(free.cost[kept], rel=1e-9)
    # On the border of the rule the answer is found by a scan along it, too.
    for i in np.flatnonzero(cf.feasible & ~kept)[:6]:
        age = np.linspace(30.5, min(limit - 0.5, 699.5), 50_001)
        money = np.clip(limit - age, 0.5, rows.money.max())
        border = pd.DataFrame({"age": age, "money": money})
        inside = voice.model_.predict(border) == cf.target[i]
        moves = np.log1p(border.to_numpy()) - np.log1p(rows.iloc[cf.row[i]].to_numpy())
        cost = (moves**2).mean(axis=1)
        assert cf.cost[i] <= cost[inside].min(initial=np.inf) * (1 + 1e-7)


def test_a_least_change_is_kept_to_the_last_digit():
    table = pd.DataFrame({"x": np.linspace(0, 1, 41), "y": np.linspace(0, 1, 41)[::-1] ** 2})
    model = make_pipeline(StandardScaler(), KMeans(3, n_init=4, random_state=0))
    voice = VoICE(model, contraction=1.0).fit(table)
    cf = voice.explain(table, "each", least={"x": 0.3, "y": 0.1})
    new, own = cf.to_frame()[cf.feasible], table.iloc[cf.row[cf.feasible]]
    for name, amount in (("x", 0.3), ("y", 0.1)):
        far = (new[name] >= own[name] + amount) | (new[name] <= own[name] - amount)
        assert (far | (new[name] == own[name])).all()
        assert (far & (np.abs(new[name] - own[name]) < amount * 1.001)).any()


def test_reasons_name_the_rule_and_what_would_help():
    voice, rows = customer_voice(contraction=1.0), customers().head(30)
    words = {"together": ["frequency == 0 and recency == 0 and money == 0"], "immutable": ["age"]}
    cf = voice.explain(rows, "each", **words)
    stuck = np.flatnonzero(cf.status == Status.INFEASIBLE)
    kinds = set()
    for i in stuck[:4]:
        reason = cf.reason(i)
        kinds |= {member.kind for member in reason.conflict}
        for relaxation in reason.relaxations:
            again = voice.explain(rows.iloc[[cf.row[i]]], int(cf.target[i]), **relaxation.words)
            assert again.feasible.all()
            assert again.cost[0] == pytest.approx(relaxation.cost)
    assert "together" in kinds


def test_ranges_end_where_a_rule_does():
    voice, rows = customer_voice(contraction=1.0), customers().head(60)
    words = {"together": CUSTOMERS, "least": {"recency": 30}, "constraints": "recency <= age"}
    cf = voice.explain(rows, "nearest", **words)
    for i in range(0, len(cf), 6):
        new, table = cf[i].to_frame(), cf.ranges(i)
        for line in table.itertuples():
            for end in (line.low, line.high):
                row = new.copy()
                row[line.column] = end if line.column == "money" else round(end)
                assert voice.predict(row)[0] == cf.target[i]
                assert (row.recency <= row.age).all()
                assert ((row.frequency > 0) | ((row.recency == 0) & (row.money == 0))).all()
                own = rows.iloc[cf.row[i]].recency
                assert (row.recency == own).all() or (abs(row.recency - own) >= 30).all()


@pytest.mark.parametrize(
    ("together", "message"),
    [
        ("frequency", "no comparison"),
        ("if frequency == 0", "no .then."),
        ("frequncy == 0", "frequency"),
        ("money == much", "no number"),
        ({"money": 0}, "is not known"),
        ([[]], "no rule"),
        ([{"money": ("+5", None)}], "no rule|pair"),
        ("money <= 1 and money >= 2", "no values"),
    ],
)
def test_a_rule_that_cannot_be_read_says_how_to_write_it(together, message):
    with pytest.raises((OptionError, ColumnError), match=message):
        customer_voice().explain(customers().head(1), together=together)


def test_rules_survive_a_file():
    rules = Rules(least={"recency": 1}, together=[CUSTOMERS, [{"money": (1, None)}, {"money": 0}]])
    plain = rules.to_dict()
    assert plain["together"] == [CUSTOMERS, [{"money": [1, "open"]}, {"money": 0}]]
    assert Rules.from_dict(plain) == rules


def test_a_strict_comparison_is_strict():
    table = pd.DataFrame({"n": [0, 1, 2, 8, 9, 10], "x": [0.0, 1.0, 2.0, 8.0, 9.0, 10.0]})
    voice = VoICE(KMeans(2, n_init=2, random_state=0), contraction=1.0).fit(table)
    target = int(voice.predict(table)[-1])
    new = voice.explain(
        table.head(1), target, constraints=["n > 6", "x < 9", "x > 7"], plausible=None
    ).to_frame()
    assert new.n.tolist() == [7]
    assert ((new.x > 7) & (new.x < 9)).all()


@pytest.mark.parametrize("scaler", [StandardScaler, PowerTransformer])
@pytest.mark.parametrize(
    "together",
    ["m == 60.7", [{"m": 60.7}], "m in [60.7, 50.3]", "40 <= m <= 45 and n >= 5",
     "if n == 0 or n == 1 then m == 0", pd.DataFrame({"n": [8, 9], "m": [50.3, 60.7]})],
)  # fmt: skip
def test_values_of_a_rule_are_met_to_the_last_digit(together, scaler):
    table = pd.DataFrame(
        {"n": [0, 0, 1, 2, 8, 9, 10, 12], "m": [0.0, 0, 3.2, 5.1, 50.3, 60.7, 72.9, 81.4]}
    )
    model = make_pipeline(scaler(), KMeans(2, n_init=2, random_state=0))
    voice = VoICE(model, contraction=1.0).fit(table)
    target = int(voice.predict(table)[-1])
    new = voice.explain(table.head(2), target, together=together).to_frame()
    meaning = {
        "m == 60.7": new.m == 60.7,
        "m in [60.7, 50.3]": new.m.isin([60.7, 50.3]),
        "40 <= m <= 45 and n >= 5": new.m.between(40, 45) & (new.n >= 5),
        "if n == 0 or n == 1 then m == 0": (new.n > 1) | (new.m == 0),
    }
    frame = isinstance(together, pd.DataFrame)
    pairs = [(8, 50.3), (9, 60.7)] if frame else []
    known = [pair in pairs for pair in zip(new.n, new.m, strict=True)]
    expected = known if frame else meaning[together if isinstance(together, str) else "m == 60.7"]
    assert np.all(expected)


def test_an_equality_behind_a_curve_is_refused_with_a_remedy():
    voice = customer_voice()
    with pytest.raises(OptionError, match="two comparisons"):
        voice.explain(customers().head(1), constraints="money == recency")


def test_multiples_of_a_move_up_to_rho_keep_a_curved_rule():
    voice, rows = customer_voice(contraction=1.0), customers().head(40)
    cf = voice.explain(rows, "each", constraints="recency <= age", objective="fewest")
    own, steps = voice.model_[:-1].transform(rows)[cf.row], voice.model_[:-1]
    own = np.asarray(own)
    limited = 0
    for i in np.flatnonzero(cf.feasible & (cf.n_changed > 0)):
        times = np.linspace(1.0, min(cf.rho[i], 1e3), 50)[:, None]
        along = steps.inverse_transform(own[i] + times * (cf.points[i] - own[i]))
        along = np.asarray(along)
        held = cf.points[i] == own[i]  # values that do not move are as they were
        along = np.where(held, rows.iloc[[cf.row[i]]].to_numpy(), along)
        assert (along[:, 0] <= along[:, 2] * (1 + 1e-9)).all()
        limited += bool(np.isclose(along[-1, 0], along[-1, 2], rtol=1e-6))
    assert limited > 0


def test_multiples_of_a_move_up_to_rho_stay_in_boxes():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=80), "y": rng.normal(size=80) * 3})
    table["town"] = np.where(table.x + rng.normal(size=80) > 0, "a", "b")
    steps = [("numbers", StandardScaler(), ["x", "y"]), ("town", OneHotEncoder(), ["town"])]
    columns = ColumnTransformer(steps, sparse_threshold=0.0)
    model = make_pipeline(columns, KMeans(3, n_init=2, random_state=0)).fit(table)
    voice = VoICE(model, contraction=1.0).fit(table)
    limited = 0
    for _ in range(12):
        # Some of them overlap, so that a move can go on from one box into the next.
        low = rng.normal(size=(6, 2)) * [1, 3] - [0.5, 1.5]
        high = low + rng.uniform(0.1, 2.0, size=(6, 2)) * [1, 3]
        boxes = [
            {"x": (a, c), "y": (b, d), "town": str(rng.choice(["a", "b"]))}
            for (a, b), (c, d) in zip(low.tolist(), high.tolist(), strict=True)
        ]
        cf = voice.explain(table.head(20), "each", together=[boxes])
        for i in np.flatnonzero(cf.feasible & (cf.rho < 1e3)):
            own, new = table.iloc[cf.row[i]], cf.to_frame().iloc[i]
            times = np.append(np.linspace(1.0, cf.rho[i], 20), cf.rho[i] + 1e-4)
            x, y = (own[c] + times * (new[c] - own[c]) for c in ("x", "y"))
            inside = np.zeros(len(times), dtype=bool)
            for box in (box for box in boxes if box["town"] == new.town):
                (west, east), (south, north) = box["x"], box["y"]
                inside |= (west - NEAR <= x) & (x <= east + NEAR) & (
                    south - NEAR <= y) & (y <= north + NEAR)  # fmt: skip
            assert inside[:-1].all()
            limited += not inside[-1]
    assert limited > 100
