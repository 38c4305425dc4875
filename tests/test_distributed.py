"""Dask: the same answers and models as in memory, on a real cluster, whatever happens to it."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import CFCLUST, SHARK, VoICE, parallel, streaming
from voicecf import dask as partitions
from voicecf.errors import ColumnError, OptionError
from voicecf.solver import passes
from voicecf.status import Status

dd = pytest.importorskip("dask.dataframe")
cluster = pytest.importorskip("distributed")

pytestmark = [
    # Of a cluster that comes and goes: sockets and loops that the collector finds first.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Port 8787:UserWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"),
]
OWN = [
    f"voicecf_{name}"
    for name in ("source", "target", "status", "feasible", "cost", "n_changed", "rho", "tau", "gap")
]


@pytest.fixture(scope="module")
def client(explained):
    with (
        cluster.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
        ) as workers,
        cluster.Client(workers) as client,
    ):
        yield client


def customers(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": rng.gamma(4.0, 500.0, n).round(2),
            "job": rng.choice(["clerk", "chef", "pilot"], n),
            "note": [f"row {i}" for i in range(n)],
        },
        index=pd.Index(np.arange(n) * 10, name="id"),
    )


def numbers(n, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 4.0 * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    return pd.DataFrame(X, columns=[f"c{i}" for i in range(d)])


@pytest.fixture(scope="module")
def explained():
    """An explainer in the user's own columns, its rows and its answers in memory."""
    frame = customers()
    encode = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["job"])
    )
    voice = VoICE(make_pipeline(encode, KMeans(3, n_init=2, random_state=0)))
    voice.fit(frame.drop(columns="note"))
    return voice, frame


def assert_told(answers, cf, frame):
    """Compare answers of Dask with those of memory, value by value."""
    assert answers.index.tolist() == frame.index[cf.row].tolist()
    for name in ("source", "target", "feasible"):
        np.testing.assert_array_equal(answers[f"voicecf_{name}"], getattr(cf, name))
    assert answers["voicecf_status"].tolist() == [
        Status(s).name.lower() for s in cf.status.tolist()
    ]
    found = cf.feasible
    for name in ("cost", "n_changed", "rho", "tau", "gap"):
        told = answers[f"voicecf_{name}"].to_numpy(dtype=float, na_value=np.nan)
        np.testing.assert_array_equal(told[found], getattr(cf, name)[found])
        assert np.isnan(told[~found]).all()
    table = cf.to_frame()
    for name in cf.outcome.space.sources:
        assert answers[name][found].tolist() == table[name][found].tolist()


@pytest.mark.parametrize("npartitions", [1, 7])
@pytest.mark.parametrize(
    "question",
    [
        {},
        {"target": "each", "immutable": ["age"]},
        {"target": 2, "objective": "fewest", "bounds": {"income": ("-1%", "+1%")}},
    ],
    ids=["nearest", "each", "fewest"],
)
def test_answers_are_those_of_memory_whatever_the_partitions(
    npartitions, question, explained, client
):
    voice, frame = explained
    frame = frame.head(60)
    answers = voice.explain(dd.from_pandas(frame, npartitions=npartitions), **question).compute()
    cf = voice.explain(frame, **question)
    assert_told(answers, cf, frame)
    assert answers["note"].tolist() == frame["note"].iloc[cf.row].tolist()
    there = answers[answers["voicecf_feasible"]]
    assert (voice.model_.predict(there[voice.space_.sources]) == there["voicecf_target"]).all()


def test_clusters_with_names_are_told_by_them(explained):
    voice, frame = explained
    named = VoICE(voice.model_, names=["a", "b", "c"]).fit(frame.drop(columns="note"))
    lazy = named.explain(dd.from_pandas(frame.head(20), npartitions=2), target="b")
    answers = lazy.compute()
    assert answers["voicecf_target"].tolist() == ["b"] * 20
    assert answers["voicecf_source"].tolist() == [
        "abc"[t] for t in voice.predict(frame.head(20).drop(columns="note"))
    ]
    assert (lazy.dtypes == answers.dtypes).all()


def test_what_is_announced_is_what_comes(explained):
    voice, frame = explained
    for question in ({"target": 0}, {"target": 0, "immutable": ["age", "income", "job"]}):
        lazy = partitions.explain(voice, dd.from_pandas(frame, npartitions=3), **question)
        assert lazy.columns.tolist() == [*frame.columns, *OWN]
        answers = lazy.compute(scheduler="sync")
        pd.testing.assert_series_equal(lazy.dtypes, answers.dtypes)
        for part in lazy.partitions:
            pd.testing.assert_series_equal(lazy.dtypes, part.compute(scheduler="sync").dtypes)
    assert answers["age"].dtype == "Int64"
    assert not answers["voicecf_feasible"].all()


def test_empty_partitions_are_no_trouble(explained):
    voice, frame = explained
    lazy = dd.from_pandas(frame.head(50), npartitions=5)
    few = lazy[lazy["age"] > 85]
    answers = voice.explain(few, target=1).compute(scheduler="sync")
    assert len(answers) == (frame.head(50)["age"] > 85).sum()
    assert answers.columns.tolist() == [*frame.columns, *OWN]


def test_a_baseline_explains_partitions_too():
    frame = numbers(200)
    rival = CFCLUST(KMeans(3, n_init=1, random_state=0)).fit(frame)
    answers = partitions.explain(rival, dd.from_pandas(frame, npartitions=3), target="each")
    cf = rival.explain(frame, target="each")
    told = answers.compute(scheduler="sync")
    np.testing.assert_array_equal(told["voicecf_feasible"], cf.feasible)
    np.testing.assert_array_equal(told["voicecf_cost"][cf.feasible], cf.cost[cf.feasible])


def test_questions_are_checked_before_anything_runs(explained):
    voice, frame = explained
    lazy = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(ColumnError, match="did you mean 'age'"):
        voice.explain(lazy, immutable=["agee"])
    with pytest.raises(OptionError, match="takes one cluster for all rows"):
        voice.explain(lazy, target=[0] * len(frame))


def test_threads_of_one_worker_may_answer_at_once(client):
    frame = numbers(50_000)
    voice = VoICE(KMeans(3, n_init=1, random_state=0)).fit(frame)
    answers = voice.explain(dd.from_pandas(frame, npartitions=16)).compute(scheduler="threads")
    np.testing.assert_array_equal(answers["voicecf_cost"], voice.explain(frame).cost)


def test_a_task_leaves_the_other_cores_to_other_tasks(monkeypatch):
    frame = numbers(20_000)
    voice = VoICE(KMeans(3, n_init=1, random_state=0)).fit(frame)
    rows = passes.MassRows(frame.to_numpy(), np.ones(len(frame)))
    centers, equal = rows.X[:3].copy(), np.ones(4)
    monkeypatch.setattr(parallel, "n_threads", lambda n_jobs: 4 if n_jobs is None else n_jobs)
    monkeypatch.setattr(parallel, "_in_threads", None)
    with pytest.raises(TypeError):  # in memory several threads would run
        voice.explain(frame)
    voice.explain(dd.from_pandas(frame, npartitions=1)).compute(scheduler="sync")
    partitions._filled(rows, 0, [passes.Sweep(centers, equal, centers)] * 2)


LEARNED = ("cluster_centers_", "feature_weights_", "inertia_", "n_iter_")


@pytest.mark.parametrize("init", ["random", "k-means++"])
def test_models_are_the_same_whatever_the_partitions(init, client, monkeypatch):
    monkeypatch.setattr(passes, "SAMPLE", 5_000)  # rows that starts are drawn from
    frame = numbers(30_000)
    options = {"n_init": 3, "init": init, "max_iter": 6, "random_state": 0}
    whole = SHARK(3, **options).fit(frame)
    for npartitions in (1, 5):
        parts = SHARK(3, **options).fit(dd.from_pandas(frame, npartitions=npartitions))
        for name in LEARNED:
            found, expected = getattr(parts, name), getattr(whole, name)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12, err_msg=name)
        assert parts.feature_names_in_.tolist() == frame.columns.tolist()


def test_a_cluster_and_a_stream_of_the_same_tables_learn_the_same_bits(client):
    lazy = dd.from_pandas(numbers(50_000), npartitions=7)
    lazy = lazy[lazy["c0"] < lazy["c0"].max()].clear_divisions()
    tables = [part.compute() for part in lazy.partitions]
    parts, found = (SHARK(3, n_init=3, random_state=0) for _ in range(2))
    streaming.fit(parts, tables)
    found.fit(lazy)
    for name in LEARNED:
        np.testing.assert_array_equal(getattr(found, name), getattr(parts, name), name)


def test_kmeans_in_a_pipeline_and_its_explainer_learn_the_same_on_a_cluster(client):
    frame = numbers(20_000)
    lazy = dd.from_pandas(frame, npartitions=3)
    empty = lazy[lazy["c0"] > 1e9]
    model = make_pipeline(StandardScaler(), KMeans(3, n_init=2, random_state=0))
    whole = VoICE(model).fit(frame)
    parts = VoICE(model).fit(dd.concat([lazy, empty]))
    centers = [voice.model_[-1].cluster_centers_ for voice in (parts, whole)]
    np.testing.assert_allclose(*centers, rtol=0, atol=1e-12)
    np.testing.assert_allclose(parts.alpha_, whole.alpha_, rtol=1e-10)
    np.testing.assert_array_equal(parts.lo_, whole.lo_)


def test_an_explainer_of_a_pipeline_learns_the_same_without_a_cluster():
    frame = customers(3_000).drop(columns="note")
    encode = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["job"])
    )
    model = make_pipeline(encode, KMeans(3, n_init=1, random_state=0))
    parts = VoICE(model).fit(dd.from_pandas(frame, npartitions=4))
    whole = VoICE(parts.model_).fit(frame)
    for name in ("alpha", "spread", "weights", "origins", "ranking"):
        found, expected = (getattr(voice.learned_, name) for voice in (parts, whole))
        np.testing.assert_array_equal(found, expected, name)
    np.testing.assert_array_equal(parts.learned_.bounds.box, whole.learned_.bounds.box)


def killed_once(part, calls, nth):
    """Return a part of a table; the worker that is given one for the nth time is killed."""
    with open(calls, "ab") as file:
        file.write(b".")
        file.flush()
        at = file.tell()
    if at == nth:
        Path(f"{calls}.pid").write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return part


def mortal(frame, npartitions, calls, nth):
    """Return a table that kills a worker, once, when the nth of its parts is read."""
    lazy = dd.from_pandas(frame, npartitions=npartitions)
    return lazy.map_partitions(killed_once, str(calls), nth, meta=frame.iloc[:0])


def assert_one_was_killed(client, calls):
    killed = int(Path(f"{calls}.pid").read_text())
    client.wait_for_workers(2)
    assert killed not in client.run(os.getpid).values()


def test_answers_are_right_though_a_worker_is_killed(client, tmp_path):
    frame = numbers(60_000)
    voice = VoICE(KMeans(3, n_init=1, random_state=0)).fit(frame)
    expected = voice.explain(frame, target="each")
    lazy = mortal(frame, 60, tmp_path / "calls", nth=17)
    answers = client.compute(voice.explain(lazy, target="each")).result()
    assert_one_was_killed(client, tmp_path / "calls")
    np.testing.assert_array_equal(answers["voicecf_cost"], expected.cost)
    np.testing.assert_array_equal(answers["voicecf_target"], expected.target)


def filled_or_killed(*arguments, calls, nth, **others):
    killed_once(None, calls, nth)
    return partitions._filled(*arguments, **others)


@pytest.mark.parametrize("at_work", ["reading", "in a pass"])
def test_a_model_is_right_though_a_worker_is_killed(client, tmp_path, monkeypatch, at_work):
    frame = numbers(100_000, d=2)
    whole = SHARK(4, n_init=2, max_iter=10, random_state=1).fit(frame)
    found = SHARK(4, n_init=2, max_iter=10, random_state=1)
    if at_work == "reading":
        found.fit(mortal(frame, 6, tmp_path / "calls", nth=3))
    else:  # the third pass over six partitions
        filled = partial(filled_or_killed, calls=str(tmp_path / "calls"), nth=15)
        monkeypatch.setattr(partitions, "_filled", filled)
        found.fit(dd.from_pandas(frame, npartitions=6))
    assert_one_was_killed(client, tmp_path / "calls")
    for name in LEARNED:
        found_here, expected = getattr(found, name), getattr(whole, name)
        np.testing.assert_allclose(found_here, expected, rtol=1e-12, atol=1e-12, err_msg=name)
