"""Ctrl-C ends long calls soon, and whatever was in use works afterwards."""

from __future__ import annotations

import json
import signal
import time
from contextlib import contextmanager
from threading import Thread, Timer

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import SHARK, Status, VoICE
from voicecf.parallel import Running, in_parallel
from voicecf.table.wording import figure

# Boxes that a search may examine: more than it can in a day.
FOREVER = 10**9
# Seconds of this process's own work within which a call ends; otherwise each would run for minutes.
SOON = 10.0

NAMES = [f"x{i}" for i in range(300)]
CENTERS = np.random.default_rng(0).uniform(0, 2, size=(30, 300))
WHOLE = dict.fromkeys(NAMES, 1)


def hard(n: int = 1) -> tuple[VoICE, pd.DataFrame]:
    """Return an explainer and rows of whole numbers whose best answers take very long to prove."""
    voice = VoICE.from_centers(CENTERS, bounds=(0, 2), feature_names=NAMES)
    return voice, pd.DataFrame(np.repeat(np.rint(CENTERS[:1]), n, axis=0), columns=NAMES)


@contextmanager
def signalled(after: float):
    """Send SIGINT after some seconds."""
    timer = Timer(after, signal.raise_signal, (signal.SIGINT,))
    try:
        timer.start()
        yield
    finally:
        timer.cancel()
        timer.join()


@contextmanager
def interrupted(after: float = 0.25):
    """Send SIGINT after some seconds; expect KeyboardInterrupt soon, and idle threads then."""
    start = time.process_time()
    with pytest.raises(KeyboardInterrupt), signalled(after):
        yield
    assert time.process_time() - start < SOON
    used = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - used < 0.1


def assert_same_bits(one, other) -> None:
    for name in ("points", "status", "cost", "gap", "rho", "n_changed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("n", "question"),
    [
        (1, {"target": 1}),
        (40, {"target": 1}),
        (1, {"target": "each"}),
        (40, {"target": 1, "alternatives": 50, "limit": 200}),
    ],
    ids=["one row", "many rows", "many targets", "alternatives"],
)
def test_a_search_ends_at_ctrl_c_and_answers_the_same_afterwards(n, question, n_jobs):
    voice, rows = hard(n)
    before = voice.explain(rows[:1], target=1, steps=WHOLE, limit=50, n_jobs=n_jobs)
    with interrupted():
        voice.explain(rows, steps=WHOLE, n_jobs=n_jobs, **{"limit": FOREVER, **question})
    after = voice.explain(rows[:1], target=1, steps=WHOLE, limit=50, n_jobs=n_jobs)
    assert_same_bits(before, after)


def test_a_reason_ends_at_ctrl_c():
    voice, rows = hard()
    cf = voice.explain(rows, target=1, steps=WHOLE, max_changes=3, limit=FOREVER)
    assert not cf.feasible.any()
    with interrupted():
        cf.reason(0)
    again = voice.explain(rows, target=1, steps=WHOLE, max_changes=3, limit=FOREVER)
    assert_same_bits(cf, again)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_projections_end_at_ctrl_c(n_jobs):
    rng = np.random.default_rng(1)
    voice = VoICE.from_centers(rng.normal(size=(2000, 40)), bounds=(-2, 2))
    X = rng.uniform(-2, 2, size=(200_000, 40))
    before = voice.explain(X[:50], target=1)
    with interrupted():
        voice.explain(X, target=1, n_jobs=n_jobs)
    assert_same_bits(before, voice.explain(X[:50], target=1))


@pytest.mark.parametrize("threads", ["1", "2"])
def test_fitting_ends_at_ctrl_c_and_can_begin_again(monkeypatch, threads):
    monkeypatch.setenv("OMP_NUM_THREADS", threads)
    X = np.random.default_rng(2).normal(size=(100_000, 20))
    model = make_pipeline(StandardScaler(), SHARK(200, n_init=20, tol=0, random_state=0))
    with interrupted(1.0):
        model.fit(X)
    few = SHARK(3, n_init=2, random_state=0)
    plain = few.fit(X[:500]).cluster_centers_
    model.set_params(shark__n_clusters=3, shark__n_init=2, standardscaler="passthrough")
    np.testing.assert_array_equal(model.fit(X[:500])[-1].cluster_centers_, plain)


def test_a_call_in_another_thread_goes_on():
    voice, rows = hard(8)
    expected = voice.explain(rows, target=2, steps=WHOLE, limit=500)
    found = []

    def explain() -> None:
        for _ in range(5):
            found.append(voice.explain(rows, target=2, steps=WHOLE, limit=500, n_jobs=2))

    other = Thread(target=explain)
    other.start()
    with pytest.raises(KeyboardInterrupt), signalled(0.3):
        voice.explain(rows, target=1, steps=WHOLE, limit=FOREVER, n_jobs=3)
    other.join()
    assert len(found) == 5
    for answers in found:
        assert_same_bits(answers, expected)


def test_an_error_in_one_chunk_ends_the_others():
    voice, rows = hard(8)
    begun = []

    def work(start: int, stop: int) -> None:
        begun.append(start)
        if start == 1:
            raise ZeroDivisionError
        voice.explain(rows, target=1, steps=WHOLE, limit=FOREVER)

    with Running(n_jobs=2), pytest.raises(ZeroDivisionError):
        in_parallel(work, 1000, chunk=1)
    assert len(begun) <= 3


def test_what_a_signal_handler_raises_comes_out_of_a_search():
    class OutOfTime(Exception):
        pass

    def handler(*_: object) -> None:
        raise OutOfTime

    voice, rows = hard()
    before = signal.signal(signal.SIGINT, handler)
    try:
        with pytest.raises(OutOfTime), signalled(0.2):
            voice.explain(rows, target=1, steps=WHOLE, limit=FOREVER)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("objective", "phrase"),
    [
        ("cost", "another change may be up to {} % cheaper"),
        ("fewest", "fewer changes, or up to {} % cheaper ones, may do"),
    ],
)
def test_an_answer_of_a_search_that_reached_its_limit_says_so_with_its_gap(objective, phrase):
    voice, rows = hard()
    cf = voice.explain(rows, target=1, steps=WHOLE, limit=100, objective=objective)
    assert cf.status[0] == Status.STOPPED
    said = f"the search reached its limit: {phrase.format(figure(100 * cf.gap[0], 2))}"
    assert said in cf.text(0)
    assert said in str(cf)
    assert said in cf.reason(0).text
    assert said in json.loads(cf.to_json())["answers"][0]["text"]
    assert cf.table()["status"].tolist() == ["stopped"]
    assert cf.table()["gap"].tolist() == cf.gap.tolist()
    # Where nothing was cut short, nothing is said of it.
    easy = voice.explain(rows, target=1)
    assert "limit" not in easy.text(0)
    assert "gap" not in easy.table()
