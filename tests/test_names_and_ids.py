"""Clusters and rows are called what the user calls them, and what is printed under them holds."""

from __future__ import annotations

import json
import re
import warnings

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, RobustScaler, StandardScaler

from test_typed_in import phrases, typed_in
from voicecf import VoICE
from voicecf.errors import ColumnError, OptionError, RankingWarning, TargetError
from voicecf.files import explain_batches
from voicecf.output.schema import JSON_SCHEMA
from voicecf.plots import ChangeCard, ContractionScores, SegmentMap, Tradeoff, Transitions
from voicecf.plots.plane import Plane

NAMES = ["loyal", "lapsed", "new in town"]
FEATURES = ["visits", "age", "income", "member", "job"]


def customers(n: int = 120) -> pd.DataFrame:
    """Return customers: the model's columns in another order, between columns of the user's own."""
    rng = np.random.default_rng(3)
    group = rng.permutation(np.arange(n) % 3)
    return pd.DataFrame({
        "note": pd.Categorical(rng.choice(["call", "write"], n)),
        "age": 24 + 13 * group + rng.integers(-6, 7, n),
        "customer": [f"C-{1000 + i}" for i in range(n)],
        "income": 2700.5 + 300 * group + rng.normal(0, 220, n).round(2),
        "member": rng.random(n) < np.array([0.1, 0.5, 0.9])[group],
        "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n), "D"),
        "job": rng.choice(["clerk", "chef", "student"], n),
        "visits": rng.poisson(np.array([9, 4, 1])[group]),
    })  # fmt: skip


TABLE = customers()


@pytest.fixture(scope="module")
def voice() -> VoICE:
    encode = make_column_transformer(
        (StandardScaler(), FEATURES[:4]), (OneHotEncoder(), FEATURES[4:])
    )
    model = make_pipeline(encode, KMeans(3, n_init=3, random_state=0))
    return VoICE(model, names=NAMES).fit(TABLE[FEATURES])


@pytest.fixture(scope="module")
def each(voice):
    return voice.explain(TABLE.iloc[:8], target="each", id="customer")


# Names of clusters.


@pytest.mark.parametrize("target", NAMES)
def test_a_name_asks_for_its_cluster(voice, target):
    by_name = voice.explain(TABLE[:9], target)
    by_number = voice.explain(TABLE[:9], NAMES.index(target))
    np.testing.assert_array_equal(by_name.points, by_number.points)
    assert (voice.predict(by_name[by_name.feasible].to_frame()) == NAMES.index(target)).all()
    assert voice.cell(target).rivals.tolist() == [t for t in range(3) if t != NAMES.index(target)]
    assert len(voice.neighbors(target)) > 0
    assert voice.tradeoff(TABLE[:2], target).target.tolist().count(NAMES.index(target)) > 0


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pl.Series])
def test_each_row_may_have_a_name_of_its_own(voice, kind):
    cf = voice.explain(TABLE[:3], target=kind(["lapsed", "loyal", "new in town"]))
    assert cf.target.tolist() == [1, 0, 2]
    assert voice.explain(TABLE[:2], target=["lapsed", 2]).target.tolist() == [1, 2]


def test_arrays_take_names_and_some_clusters_may_have_none():
    voice = VoICE.from_centers([[0.0], [4.0], [9.0]], names={1: "lapsed"}, feature_names=["age"])
    cf = voice.explain(np.array([[1.0], [8.5]]), "lapsed")
    assert cf.text(0).startswith("Row 0 moves from cluster 0 to lapsed if age rises from 1 to 2.01")
    assert voice.explain([[1.0]], 2).text(0).startswith("Row 0 moves from cluster 0 to 2 if ")
    assert voice.explain([[1.0]], "cluster 2").target.tolist() == [2]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({7: "a"}, r"names\[7\] names no cluster: this model has 0 to 2"),
        ({True: "a"}, "names no cluster"),
        (["a", "b"], "2 names, and the model has 3 clusters"),
        ({0: "nearest"}, r"names\[0\]='nearest' is not allowed"),
        ({0: "each"}, r"names\[0\]='each' is not allowed"),
        ({0: 5}, r"names\[0\]=5 is not allowed; use a text"),
        ({0: " "}, "is not allowed; use a text"),
        (["a", "b", "a"], "names must differ; used twice: 'a'"),
        ({0: "cluster 1"}, "names must differ; used twice: 'cluster 1'"),
        ("abc", "names='abc' is not allowed; use a list of 3 names"),
    ],
)
def test_names_that_cannot_be_used_are_refused_by_fit(names, message):
    with pytest.raises(OptionError, match=message):
        VoICE(KMeans(3, n_init=1, random_state=0), names=names).fit(TABLE[["age", "visits"]])


def test_an_unknown_name_is_corrected(voice):
    for target in ("loyl", ["loyal", "loyl"]):
        with pytest.raises(TargetError, match=r"'loyl' is not known.*did you mean 'loyal'"):
            voice.explain(TABLE[:2], target)


def test_names_are_saved(voice, tmp_path):
    voice.save(tmp_path / "a.voicecf")
    loaded = VoICE.load(tmp_path / "a.voicecf")
    one, other = (v.explain(TABLE[:1], "loyal", id="customer").text(0) for v in (voice, loaded))
    assert one == other
    assert " loyal " in one


def test_every_text_says_names_and_ids_and_no_number(voice, each):
    locked = voice.explain(TABLE[:3], "each", immutable=FEATURES[1:], id="customer")
    reasons = [locked.reason(i) for i in np.flatnonzero(~locked.feasible)]
    assert reasons
    said = [each.text(i) for i in range(len(each))] + [repr(each), repr(locked)]
    said += [text for reason in reasons for text in (reason.text, reason._repr_html_())]
    said += [str(member) for reason in reasons for member in map(vars, reason.conflict)]
    said += [*each.ranges(0)["binds_low"], *each.ranges(0)["binds_high"]]
    card = ChangeCard.from_counterfactuals(each, 0)
    said += [card.title, ChangeCard.from_counterfactuals(locked, 0).reason, card.target_name]
    said += [change.binds_low + change.binds_high for change in card.changes]
    plane = Plane.most_telling(each, 0)
    seen = SegmentMap.from_voice(voice, TABLE, plane, each, 0)
    said += [seen.title, seen.note, *seen.names, *seen.axis_labels]
    said += [Tradeoff.from_counterfactuals(voice.tradeoff(TABLE[:1], 1, id="customer"))._title()]
    assert not [text for text in said if re.search(r"cluster \d|[Rr]ow \d", text)]
    assert "lapsed" in repr(each)
    assert "Row C-1000 " in repr(each)
    assert Transitions.from_counterfactuals(each).names == tuple(NAMES)
    assert ContractionScores.from_voice(voice, TABLE).names == NAMES


def test_pictures_write_names_and_ids(voice, each):
    ax = each.plot(0, kind="map", data=TABLE)
    shown = {text.get_text() for text in [*ax.texts, *ax.get_legend().get_texts()]}
    assert {"row C-1000", *NAMES} <= shown
    texts = [text.get_text() for text in each.plot(0).texts]
    target = NAMES[each.target[0]]
    assert any(text.startswith("Row C-1000 moves from ") and target in text for text in texts)


def test_sentences_with_names_and_ids_land_when_they_are_typed_in(voice, each):
    by_id = TABLE.set_index("customer")
    for i in np.flatnonzero(each.feasible):
        text = each.text(i)
        who, source, target = re.match(r"Row (\S+) moves from (.+?) to (.+?) if ", text).groups()
        row = by_id.loc[[who], FEATURES]
        assert voice.model_.predict(row)[0] == NAMES.index(source)
        levels = [(c, after == "True" if c == "member" else after)
                  for c, _, after in phrases(text, FEATURES)]  # fmt: skip
        assert len(levels) > 0
        changed = typed_in(row, levels).astype({"member": bool})
        assert voice.model_.predict(changed)[0] == NAMES.index(target) == each.target[i]


# Ids of rows.


def test_an_index_of_the_frames_own_names_its_rows(voice):
    frame = TABLE.set_index("customer")[FEATURES].iloc[:4]
    cf = voice.explain(frame, "each")
    assert cf.text(2).startswith(f"Row {frame.index[1]} moves ")
    assert cf.summary()["id"].tolist() == [frame.index[r] for r in cf.row]
    twice = frame.set_axis(["C-1", "C-1", "C-2", "C-2"], axis=0)
    assert voice.explain(twice, "each").table()["id"].tolist()[::2] == ["C-1", "C-1", "C-2", "C-2"]
    pairs = frame.set_axis(pd.MultiIndex.from_product([["a", "b"], [1, 2]]), axis=0)
    assert voice.explain(pairs, "each").text(2).startswith("Row a, 2 moves ")


def test_rows_that_are_only_counted_have_no_ids(voice):
    for rows in (TABLE[FEATURES][:3], pl.from_pandas(TABLE[FEATURES][:3])):
        cf = voice.explain(rows, "loyal")
        assert cf.text(1).startswith("Row 1 ")
        for table in (cf.summary(), cf.changes(), cf.table()):
            assert next(iter(table.columns)) == "row"
        assert {answer["id"] for answer in json.loads(cf.to_json())["answers"]} == {None}


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_tables_have_ids_beside_positions(voice, kind):
    cf = voice.explain(kind(TABLE.iloc[:6]), "lapsed", id="customer", alternatives=1)
    own = TABLE["customer"].to_numpy()
    for native in (cf.summary(), cf.changes()):
        table = nw.from_native(native, eager_only=True)
        assert table.columns[:2] == ["id", "row"]
        assert table["id"].to_list() == own[table["row"].to_numpy()].tolist()
    lines = nw.from_native(cf.table(), eager_only=True)
    assert lines["id"].to_list() == own[cf.row].tolist()
    assert lines.columns[:7] == ["id", "source", "target", "rank", "status", "cost", "n_changed"]
    answers = json.loads(cf.to_json())["answers"]
    assert [answer["id"] for answer in answers] == own[cf.row].tolist()
    assert [answer["rank"] for answer in answers] == cf.rank.tolist()
    assert {answer["target_name"] for answer in answers} == {"lapsed"}


def test_an_id_must_be_a_column_that_the_model_does_not_use(voice):
    with pytest.raises(
        ColumnError, match="unknown column 'custmer' in id; did you mean 'customer'"
    ):
        voice.explain(TABLE[:2], id="custmer")
    with pytest.raises(ColumnError, match="id='age' is a column that the model uses"):
        voice.explain(TABLE[:2], id="age")
    with pytest.raises(ColumnError, match="id='customer' names a column, and X is an array"):
        VoICE.from_centers([[0.0], [4.0]]).explain(np.zeros((2, 1)), 1, id="customer")


def test_a_model_of_arrays_takes_a_frame_with_ids():
    numbers = TABLE[["age", "visits"]].astype(float)
    voice = VoICE(KMeans(2, n_init=1, random_state=0)).fit(numbers.to_numpy())
    frame = numbers.assign(customer=TABLE["customer"])[["age", "customer", "visits"]]
    cf = voice.explain(frame, 1, id="customer")
    np.testing.assert_array_equal(cf.points, voice.explain(numbers.to_numpy(), 1).points)
    assert list(cf.to_frame()) == list(frame)
    assert cf.to_frame()["customer"].tolist() == frame["customer"].tolist()
    assert cf.text(0).startswith("Row C-1000 ")


# Columns that the model does not know.


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("indexed", [False, True])
def test_unknown_columns_come_back_as_they_were(voice, kind, indexed):
    rows = TABLE.iloc[:8].set_axis(list("aabbccdd"), axis=0) if indexed else TABLE.iloc[:8]
    given = kind(rows)
    rules = {"immutable": ["age", "income", "job"]}
    for words in ({"target": "each"}, {"target": 1, "alternatives": 2}, {"target": 0, **rules}):
        cf = voice.explain(given, **words)
        before = nw.from_native(given, eager_only=True)[cf.row]
        after = nw.from_native(cf.to_frame(), eager_only=True)
        assert after.columns == before.columns
        for name in ("note", "customer", "since"):
            assert after.schema[name] == before.schema[name]
            assert after[name].to_list() == before[name].to_list()
    assert not cf.feasible.all()


def test_arrow_batches_keep_unknown_columns_of_rows_without_an_answer(voice):
    (batch,) = explain_batches(
        voice,
        [pa.Table.from_pandas(TABLE[:20])],
        target="loyal",
        immutable=["age", "income", "job"],
    )
    assert not all(batch["voicecf_feasible"].to_pylist())
    assert batch["customer"].to_pylist() == TABLE["customer"][:20].tolist()


# One line an answer, with the types of the table.


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_table_of_answers_has_the_values_of_the_rounded_rows(voice, kind):
    cf = voice.explain(kind(TABLE[:30]), "each", id="customer")
    table = nw.from_native(cf.table(), eager_only=True)
    short = cf.rounded()
    after = nw.from_native(short.to_frame(), eager_only=True)
    assert table["target"].to_list() == [NAMES[t] for t in cf.target]
    assert table["n_changed"].to_list() == short.n_changed.tolist()
    types = {"visits": int, "age": int, "income": float, "member": bool, "job": str}
    for name, kind_of in types.items():
        changed = np.array([
            old != new
            for old, new in zip(TABLE[name][cf.row].tolist(), after[name].to_list(), strict=True)
        ])  # fmt: skip
        assert (f"{name}: to" in table.columns) == changed.any()
        if not changed.any():
            continue
        new, old = table[f"{name}: to"].to_list(), table[f"{name}: from"].to_list()
        for i, line in enumerate(changed & short.feasible):
            if line:
                assert (old[i], new[i]) == (TABLE[name][cf.row[i]], after[name].to_list()[i])
                assert type(old[i]) is type(new[i]) is kind_of
            else:
                assert pd.isna([old[i], new[i]]).all()


def test_changes_and_ranges_have_the_types_of_the_columns(voice, each):
    types = {"visits": int, "age": int, "income": float, "member": bool, "job": str}
    seen = set()
    for table, name in ((each.changes(), "feature"), (each.ranges(0), "column")):
        for column, before, after in zip(table[name], table["from"], table["to"], strict=True):
            assert type(before) is type(after) is types[column]
            seen.add(column)
    assert {"visits", "age", "income"} <= seen
    text = voice.explain(pl.from_pandas(TABLE[:5]), "each").changes()
    assert text["from"].dtype == pl.String  # polars has no column of several types
    whole = VoICE(KMeans(2, n_init=1, random_state=0)).fit(TABLE[["age", "visits"]])
    assert whole.explain(TABLE[:5], "each").changes()["to"].dtype == np.int64


def test_the_document_follows_its_schema_and_says_what_cost_is(each):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(JSON_SCHEMA).validate(json.loads(each.to_json()))
    answer = JSON_SCHEMA["properties"]["answers"]["items"]["properties"]
    assert "contracted" in answer["cost"]["description"]


# What cost measures.


def test_the_printout_says_what_the_answers_are_the_cheapest_of():
    X = TABLE[["age", "visits"]].to_numpy(dtype=float)
    model = KMeans(3, n_init=1, random_state=0).fit(X)
    firm, loose = VoICE(model).fit(X), VoICE(model, contraction=1.0).fit(X)
    said = {v: repr(v.explain(X, 1, plausible=None)).split("\n")[2] for v in (firm, loose)}
    best = "; the cheapest change that lands in the target"
    assert said[firm].endswith(f"{best}, contracted to {firm.alpha_[1]:.3g} of its size")
    assert said[loose].endswith(best)
    moving = firm.predict(X) != 1
    dear, cheap = firm.explain(X, 1, plausible=None), loose.explain(X, 1, plausible=None)
    usual = firm.explain(X, 1)
    assert repr(usual).split("\n")[2].endswith("of its size, as usual there as 70 % of its members")
    assert np.nanmin(usual.usual[moving]) >= 0.3
    assert (dear.cost[moving] > cheap.cost[moving]).all()
    # The cheapest that lands: nothing nearer on the way to it is in the target.
    near = X + 0.9999 * (cheap.points - X)
    assert (model.predict(near[moving]) != 1).all()
    scores = firm.cell(1).scores(dear.points[moving])
    assert scores.max() <= firm.alpha_[1] * (1 + 1e-9)


# Counts of changes.


@pytest.mark.parametrize("scaler", [StandardScaler(), RobustScaler(), None])
def test_n_changed_counts_what_differs_in_the_table(scaler):
    wine = load_wine(as_frame=True).data
    model = KMeans(3, n_init=1, random_state=0)
    voice = VoICE(model if scaler is None else make_pipeline(scaler, model)).fit(wine)
    costs = dict(zip(wine, 10.0 ** np.linspace(-6, 9, wine.shape[1]), strict=True))
    for words in ({"costs": costs}, {"costs": costs, "objective": "fewest"}, {}):
        cf = voice.explain(wine[::9], "each", limit=200, **words)
        for found in (cf, cf.rounded()):
            differs = (found.to_frame().to_numpy() != wine[::9].to_numpy()[found.row]).sum(axis=1)
            np.testing.assert_array_equal(found.n_changed, np.where(found.feasible, differs, 0))
            names = found.changes().groupby("row").size()
            assert names.sum() == found.n_changed.sum()


def test_tiny_changes_are_not_printed_where_the_row_lands_without_them():
    wine = load_wine(as_frame=True).data
    voice = VoICE(make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0))).fit(wine)
    costs = dict(zip(wine, 10.0 ** np.linspace(-6, 9, wine.shape[1]), strict=True))
    cf = voice.explain(wine, "each", costs=costs, plausible=None)
    short = cf.rounded()
    assert np.median(short.n_changed) <= 8 < np.median(cf.n_changed)
    frame = short.to_frame()[short.feasible]
    np.testing.assert_array_equal(voice.model_.predict(frame), cf.target[cf.feasible])


def test_a_tiny_change_that_a_bound_asks_for_is_printed():
    voice = VoICE(KMeans(2, n_init=1, random_state=0)).fit(
        pd.DataFrame({"age": np.linspace(0.0, 100.0, 50), "visits": np.linspace(0.0, 9.0, 50)})
    )
    row = pd.DataFrame({"age": [29.99], "visits": [2.0]})
    target = 1 - int(voice.predict(row)[0])
    cf = voice.explain(
        row, target, bounds={"visits": (2.001, 9)}, costs={"visits": 1e9}, plausible=None
    )
    assert "visits rises from 2 to 2.001" in cf.text(0)


# The ranking.


def test_equal_weights_that_rank_nothing_are_told_once():
    X = TABLE[["age", "visits"]].astype(float)
    voice = VoICE(KMeans(2, n_init=1, random_state=0)).fit(X)
    with pytest.warns(RankingWarning, match=r"ranking=\[\.\.\.\].*ranking=\"columns\""):
        first = voice.explain(X[:5], objective="prefix")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = voice.explain(X[:5], objective="prefix")
        np.testing.assert_array_equal(first.points, again.points)
        voice.explain(X[:5], objective="fewest")
        model = voice.model_
        for ranking in ("columns", [1.0, 2.0]):
            VoICE(model, ranking=ranking).fit(X).explain(X[:5], objective="prefix")
        weighted = VoICE.from_centers([[0.0, 0.0], [1.0, 1.0]], weights=[0.9, 0.1])
        weighted.explain([[0.0, 0.0]], objective="prefix")
    with pytest.warns(RankingWarning):
        VoICE(model).fit(X).explain(X[:5], objective="prefix")


def test_changes_are_counted_where_no_column_is_a_number():
    jobs = TABLE[["job", "note"]].astype(str)
    voice = VoICE(make_pipeline(OneHotEncoder(), KMeans(2, n_init=1, random_state=0))).fit(jobs)
    cf = voice.explain(jobs[:9], "each")
    differs = (cf.to_frame().to_numpy() != jobs.to_numpy()[cf.row]).sum(axis=1)
    np.testing.assert_array_equal(cf.n_changed, differs)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_columns_in_another_order_come_back_in_that_order(voice, kind):
    given = nw.from_native(kind(TABLE[FEATURES[::-1]][:4]), eager_only=True)
    after = nw.from_native(voice.explain(given.to_native(), 1).to_frame(), eager_only=True)
    assert after.columns == given.columns == FEATURES[::-1]


def test_ids_may_stand_in_a_column_that_the_pipeline_drops():
    table = pd.DataFrame({"who": [f"C-{i}" for i in range(20)], "x": np.arange(20.0) ** 2})
    columns = make_column_transformer((StandardScaler(), ["x"]))
    voice = VoICE(make_pipeline(columns, KMeans(2, n_init=2, random_state=0))).fit(table)
    cf = voice.explain(table.head(2), id="who")
    assert cf.text(0).startswith("Row C-0 ")
    assert cf.to_frame()["who"].tolist() == ["C-0", "C-1"]
