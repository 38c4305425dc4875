"""What we print holds: sentences, cards and JSON, typed in, land in their target by predict."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from voicecf import SHARK, Status, VoICE, datasets
from voicecf.plots import ChangeCard

pytestmark = pytest.mark.filterwarnings("ignore::voicecf.shark.WeightCollapseWarning")
EACH = 40  # sentences that each case types in at least
# What follows the changes in a sentence.
END = r"; up to |; however much|; this change|; unusual|; no change that|\.$"
MAPS = {
    "scaled": StandardScaler,
    "logs": lambda: make_pipeline(
        FunctionTransformer(np.arcsinh, inverse_func=np.sinh), RobustScaler()
    ),
    "powers": PowerTransformer,
    "quantiles": lambda: QuantileTransformer(n_quantiles=60, output_distribution="normal"),
}


def skewed(seed: int, n: int = 240) -> pd.DataFrame:
    """Return customers: many zeros, long tails, whole numbers and cents."""
    rng = np.random.default_rng(seed)
    buys = rng.random(n) < 0.7
    return pd.DataFrame({
        "recency": rng.integers(0, 365, n),
        "frequency": np.where(buys, rng.geometric(0.1, n), 0),
        "money": np.where(buys, np.exp(rng.normal(5, 1.5, n)), 0).round(2),
        "score": rng.normal(0, 1, n) * rng.choice([1, 10], n),
        "income": np.exp(rng.normal(10, 1, n)).round().astype(int),
        "since": rng.integers(1950, 2024, n),
    })  # fmt: skip


@cache
def table(name: str) -> pd.DataFrame:
    if name.startswith("skewed"):
        return skewed(int(name.removeprefix("skewed ")))
    return datasets.load(name).frame.iloc[:3000]


@cache
def explainer(name: str, way: str, contraction: object) -> VoICE:
    frame = table(name)
    numbers = make_column_transformer(
        (MAPS[way](), make_column_selector(dtype_include="number")),
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
    )
    seed = len(name)
    model = SHARK(3, n_init=2, random_state=seed) if seed % 2 else KMeans(4, random_state=seed)
    return VoICE(make_pipeline(numbers, model), contraction=contraction).fit(frame)


def answers(name: str, way: str, contraction: object, objective: str, rows: int):
    voice, frame = explainer(name, way, contraction), table(name)
    some = frame.iloc[np.linspace(0, len(frame) - 1, rows).astype(int)]
    fractions = {c: None for c in frame.select_dtypes("number") if len(c) % 2}
    steps = fractions if objective == "cost" else {}
    return voice, some, voice.explain(some, objective=objective, steps=steps, limit=500)


def phrases(text: str, names: list[str]) -> list[tuple[str, str | None, str]]:
    """Read column, value before (None where missing) and value after from a sentence.

    Text stands in quotes there, and is returned with them.
    """
    either = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    verb = "(?:rises|falls|changes) from (?P<before>.+?) to "
    last = rf"(?=(?:, | and )(?:{either})(?:, which| rises| falls| changes)|{END})"
    one = rf"(?:if |, | and )(?P<name>{either})(?: {verb}|, which is missing, becomes )"
    found = re.finditer(rf"{one}(?P<after>.+?){last}", text)
    return [(m["name"], m["before"], m["after"]) for m in found]


def told(before: str, value: float, after: str) -> bool:
    """Tell whether a printed value before is the row's, rounded to the digits that it shows.

    Few digits, or two decimals, are shown in full. Else the change is true to a hundredth, from
    what is printed as from the row's own value, and goes the same way.
    """
    shown = Decimal(before)
    if len(repr(float(value)).lstrip("-0.").replace(".", "")) <= 6 or value == round(value, 2):
        return float(before) == value
    unit = Decimal(1).scaleb(shown.as_tuple().exponent)
    rounded = abs(shown - Decimal(float(value))) <= unit / 2 * (1 + Decimal("1e-9"))
    change = float(after) - float(value)
    return rounded and abs((float(after) - float(before)) / change - 1) < 0.01


def typed_in(rows: pd.DataFrame, *changes: list[tuple[str, object]]) -> pd.DataFrame:
    """Return rows with values typed into some of their cells: a list of changes for each row."""
    assert len(rows) == len(changes)
    made = {name: rows[name].tolist() for name in {n for some in changes for n, _ in some}}
    levels = {name: {str(level): level for level in table_levels(rows[name])} for name in made}
    for i, some in enumerate(changes):
        for name, value in some:
            kind = rows[name].dtype.kind
            if kind in "if":
                number = float(value)
                made[name][i] = int(number) if kind == "i" and number.is_integer() else number
            else:
                level = value[1:-1] if str(value).startswith('"') else value
                made[name][i] = levels[name].get(level, level)
    numeric = {name for name in made if rows[name].dtype.kind in "if"}
    return rows.assign(**{
        name: pd.Series(values, rows.index, dtype=None if name in numeric else object)
        for name, values in made.items()
    })  # fmt: skip


def table_levels(column: pd.Series) -> list[object]:
    return list(column.cat.categories) if isinstance(column.dtype, pd.CategoricalDtype) else []


def moved(cf) -> np.ndarray:
    return np.flatnonzero(cf.feasible & (cf.status != Status.ALREADY) & (cf.n_changed > 0))


CASES = [
    (name, way, contraction, objective)
    for name in [*datasets.names(), *(f"skewed {seed}" for seed in range(6))]
    for way in (MAPS if name.startswith("skewed") else ("scaled", "powers"))
    for contraction in ("retain", 1.0)
    for objective in ("cost", "fewest")
]


def in_every_run(name, way, contraction, objective) -> bool:
    """Tell what is not left to the sweep: one objective a contraction, few random tables."""
    random = name in [f"skewed {seed}" for seed in range(2, 6)]
    return not random and (contraction, objective) in (("retain", "cost"), (1.0, "fewest"))


MARKED = [
    pytest.param(*case, marks=[] if in_every_run(*case) else pytest.mark.slow) for case in CASES
]


@pytest.mark.parametrize(("name", "way", "contraction", "objective"), MARKED)
def test_every_sentence_and_every_json_value_lands_when_it_is_typed_in(
    name, way, contraction, objective
):
    voice, some, cf = answers(name, way, contraction, objective, 60)
    document = json.loads(cf.to_json())
    own = {column: some[column].tolist() for column in some}
    typed: dict[str, list] = {"text": [], "changes": [], "values": []}
    multiples: list[tuple[int, list]] = []
    for i in moved(cf):
        answer = document["answers"][i]
        read = phrases(answer["text"], list(some))
        assert len(read) == answer["n_changed"] <= cf.n_changed[i], answer["text"]
        for column, before, after in read:
            value = own[column][cf.row[i]]
            printed = f'"{value}"' if isinstance(value, str) else str(value)
            assert before == printed or told(before, value, after), answer["text"]
        typed["text"].append([(column, after) for column, _, after in read])
        typed["changes"].append([(c["column"], c["to"]) for c in answer["changes"]])
        typed["values"].append(list(answer["values"].items()))
        times = re.search(r"; up to (\S+) times this change", answer["text"])
        if times and all(before is not None for _, before, _ in read):
            multiples.append((i, [
                (column, float(before) + float(times[1]) * (float(after) - float(before)))
                for column, before, after in read
            ]))  # fmt: skip
    if multiples:
        at = [i for i, _ in multiples]
        rows = typed_in(some.iloc[cf.row[at]], *(changes for _, changes in multiples))
        np.testing.assert_array_equal(voice.model_.predict(rows), cf.target[at])
    for changes in typed.values():
        if changes:
            found = voice.model_.predict(typed_in(some.iloc[cf.row[moved(cf)]], *changes))
            np.testing.assert_array_equal(found, cf.target[moved(cf)])
    assert len(typed["text"]) >= EACH


@pytest.mark.slow
def test_that_are_thousands():
    assert EACH * len(CASES) >= 5_000


@pytest.mark.parametrize("name", ["wine", "student", "skewed 0", "skewed 1"])
@pytest.mark.parametrize("contraction", ["retain", 1.0])
def test_text_is_what_json_says_and_few_digits_long(name, contraction):
    _, some, cf = answers(name, "powers", contraction, "cost", 12)
    document = json.loads(cf.to_json())
    digits = []
    for i in moved(cf):
        text = cf.text(i, all=True)
        assert text == document["answers"][i]["text"]
        for column, _, after in phrases(text, list(some)):
            if some[column].dtype.kind == "f":
                digits.append(len(after.lstrip("-0.").replace(".", "")))
    assert not digits or np.median(digits) <= 5


@pytest.mark.parametrize("way", list(MAPS))
@pytest.mark.parametrize("contraction", ["retain", pytest.param(1.0, marks=pytest.mark.slow)])
def test_cards_land_and_so_do_the_ends_of_their_ranges(way, contraction):
    voice, some, cf = answers("skewed 2", way, contraction, "cost", 12)
    for i in moved(cf):
        row = some.iloc[[cf.row[i]]]
        card = ChangeCard.from_counterfactuals(cf, i)
        changes = [(change.column, change.texts[1]) for change in card.changes]
        tried = [typed_in(row, changes)]
        for change in card.changes:
            assert told(change.texts[0], row[change.column].iloc[0], change.texts[1])
            for end in (change.low, change.high):
                assert np.isfinite(end)
                tried.append(typed_in(tried[0], [(change.column, end)]))
        assert (voice.model_.predict(pd.concat(tried)) == cf.target[i]).all()


def test_a_printout_names_few_changes_and_holds():
    voice, some, cf = answers("skewed 3", "scaled", 1.0, "fewest", 3)
    shown = repr(cf).split("\n")[3:6]
    for i, line in enumerate(shown):
        read = phrases(line, list(some))
        if cf.status[i] == Status.OPTIMAL and cf.rounded().n_changed[i] <= 6:
            row = typed_in(some.iloc[[cf.row[i]]], [(c, after) for c, _, after in read])
            assert voice.model_.predict(row)[0] == cf.target[i]
            assert line.strip() in cf._repr_html_()


def test_of_many_changes_the_four_costliest_are_named_and_all_on_request():
    _, some, cf = answers("breast_cancer", "scaled", 1.0, "cost", 3)
    printed = cf.rounded().n_changed
    assert (printed > 20).all()
    every = phrases(cf.text(1, all=True), list(some))
    assert len(every) == printed[1]
    assert cf.texts(all=True)[1] == cf.text(1, all=True)
    named, smaller, _ = cf.text(1).partition(f" and {printed[1] - 4} smaller ones; ")
    assert smaller
    assert phrases(f"{named}.", list(some)) == every[:4]
    assert cf.text(1) in repr(cf)
    assert cf.changes().query("row == 1")["feature"].tolist()[:4] == [c for c, _, _ in every[:4]]


def test_a_tie_is_no_landing():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    assert "rises from 1 to 2.01;" in voice.explain([[1.0, 5.0]], target=1).text(0)


def test_single_precision_tables_are_answered_in_digits_that_land():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(80, 3)) * [1.0, 0.2, 1e6] + [0.0, 1e6, 0.0]
    frame = pd.DataFrame(values, columns=["a", "b", "c"]).astype("float32")
    voice = VoICE(SHARK(4, n_init=2, random_state=0)).fit(frame)
    cf = voice.explain(frame, target="each")
    for rows in (cf.to_frame(), cf.rounded().to_frame()):
        found = voice.model_.predict(rows[cf.feasible])
        np.testing.assert_array_equal(found, cf.target[cf.feasible])


def test_true_and_false_are_printed_as_such():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"vip": rng.random(100) < 0.5, "x": rng.normal(size=100)})
    voice = VoICE(make_pipeline(StandardScaler(), KMeans(2, n_init=3, random_state=0))).fit(frame)
    cf = voice.explain(frame.head(3))
    now = bool(frame["vip"][0])
    assert f"vip changes from {now} to {not now}" in cf.text(0)
    (change,) = (c for c in ChangeCard.from_counterfactuals(cf, 0).changes if c.column == "vip")
    assert change.texts == (str(now), str(not now))


def test_a_missing_truth_value_is_said_to_be_missing():
    rng = np.random.default_rng(1)
    vip = pd.array(rng.random(100) < 0.5, dtype="boolean")
    vip[:5] = pd.NA
    frame = pd.DataFrame({"vip": vip, "x": rng.normal(size=100)})
    fill = SimpleImputer(strategy="most_frequent")
    model = make_pipeline(
        make_column_transformer((fill, ["vip"]), remainder="passthrough"),
        StandardScaler(), KMeans(2, n_init=3, random_state=0),
    )  # fmt: skip
    cf = VoICE(model).fit(frame).explain(frame.head(5), target="each")
    moved = [i for i in range(len(cf)) if "vip" in cf.text(i)]
    assert moved
    for i in moved:
        assert "vip, which is missing, becomes " in cf.text(i)
        (change,) = (c for c in ChangeCard.from_counterfactuals(cf, i).changes if c.column == "vip")
        assert change.texts[0] == "missing"


def test_long_names_are_printed_whole():
    name = "annual spending of the household on groceries and other goods, in euros, year "
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 4.0]], feature_names=[f"{name}1", f"{name}2"])
    text = voice.explain([[0.0, 0.0]], target=1).text(0)
    assert [column for column, _, _ in phrases(text, [f"{name}1", f"{name}2"])] == [
        f"{name}1", f"{name}2",
    ]  # fmt: skip


def test_where_no_short_number_lands_all_digits_are_printed():
    centers = [[0.0], [1.0], [1.0 + 2e-12]]
    cf = VoICE.from_centers(centers, feature_names=["x"]).explain([[0.0]], target=1)
    ((_, _, after),) = phrases(cf.text(0), ["x"])
    nearest = np.abs(float(after) - np.array(centers)[:, 0]).argmin()
    assert nearest == 1
    assert len(after) > 3


def test_bounds_and_rules_hold_for_what_is_printed():
    frame = skewed(7)
    voice = explainer("skewed 7", "scaled", 1.0)
    top = float(frame["money"].quantile(0.8))
    cf = voice.explain(
        frame, target="each", bounds={"money": (1.0 / 3.0, top)}, increase_only="score",
        constraints="score <= 0.01 * money + 20",
    )  # fmt: skip
    short = cf.rounded().to_frame()[cf.feasible]
    own = frame.iloc[cf.row[cf.feasible]]
    changed = short["money"].to_numpy() != own["money"].to_numpy()
    assert changed.any()
    assert short["money"][changed].between(1.0 / 3.0, top).all()
    assert (short["score"].to_numpy() >= own["score"].to_numpy()).all()
    assert (short["score"] <= 0.01 * short["money"] + 20).all()
    np.testing.assert_array_equal(voice.model_.predict(short), cf.target[cf.feasible])


def plans(k: int) -> tuple[VoICE, pd.DataFrame]:
    """Return customers of a plan, told apart by it, and their explainer."""
    rng = np.random.default_rng(0)
    plan = rng.choice(["basic", "plus", "to go"], 120)
    frame = pd.DataFrame({"plan": plan, "basket": rng.uniform(29, 31, 120)})
    columns = make_column_transformer(
        (OneHotEncoder(), ["plan"]), (RobustScaler(quantile_range=(0, 100)), ["basket"])
    )
    model = make_pipeline(columns, KMeans(k, n_init=5, random_state=0))
    return VoICE(model, contraction=1.0).fit(frame), frame


def test_levels_stand_in_quotes_in_sentences_reasons_and_cards():
    voice, frame = plans(3)
    row = frame[frame["plan"] == "basic"].head(1)
    target = int(voice.predict(frame[frame["plan"] == "plus"].head(1))[0])
    assert voice.predict(row)[0] != target
    cf = voice.explain(row, target, immutable="basket")
    assert 'plan changes from "basic" to "plus"' in cf.text(0)
    assert 'plan changes from "basic" to "plus"' in repr(cf)
    (change,) = ChangeCard.from_counterfactuals(cf, 0).changes
    assert change.shown == ('"basic"', '"plus"')
    of_two, _ = plans(2)
    away = of_two.explain(frame, immutable="basket")
    cards = [ChangeCard.from_counterfactuals(away, i) for i in moved(away)[:20]]
    offered = {change.range_text for card in cards for change in card.changes} - {""}
    assert offered
    assert offered <= {'or "basic"', 'or "plus"', 'or "to go"'}
    listed = voice.explain(row, target, immutable="basket", levels={"plan": ["to go"]}).reason(0)
    assert 'plan may only become "to go"' in listed.text
    assert 'allow plan to become "plus"' in listed.text
    pairs = [("basic", "plus")]
    barred = voice.explain(row, target, immutable="basket", forbidden={"plan": pairs}).reason(0)
    assert 'plan may not change from "basic" to "plus"' in barred.text
    boxes = [{"plan": "basic"}, {"plan": ["to go", "basic"]}]
    bound = voice.explain(row, target, immutable="basket", together=[boxes]).reason(0)
    assert '\'plan == "basic" or plan in ["basic", "to go"]\' must hold' in bound.text


def test_up_to_so_many_times_holds_from_the_printed_and_from_the_true_value():
    own = np.random.default_rng(0).uniform(0, 1.9, (600, 1))
    voice = VoICE.from_centers([[0.0], [4.0]], feature_names=["x"])
    cf = voice.explain(own, target=1, bounds={"x": (None, 9.0)})
    shorter = 0
    for i, text in enumerate(cf.texts()):
        ((_, before, after),) = phrases(text, ["x"])
        times = float(re.search(r"up to (\S+) times", text)[1])
        for start in (float(before), own[i, 0]):
            assert start + times * (float(after) - start) <= 9.0
        assert told(before, own[i, 0], after)
        shorter += len(before) <= 5 < len(repr(float(own[i, 0])))
    assert shorter > 500
