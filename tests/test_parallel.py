"""Threads and progress: how many, the same bits whatever their number, and when a bar is drawn."""

from __future__ import annotations

import re
import sys
from threading import Event

import numpy as np
import pytest

from voicecf import VoICE, parallel
from voicecf.errors import OptionError
from voicecf.parallel import Progress, Running, in_parallel, n_threads

RNG = np.random.default_rng(0)
X = RNG.normal(size=(3000, 4))
VOICE = VoICE.from_centers(RNG.normal(size=(5, 4)), bounds=(-2, 2))


def bits(cf) -> list[bytes]:
    return [getattr(cf, name).tobytes() for name in ("points", "status", "cost", "gap", "rho")]


QUESTIONS = [
    {"target": 1},
    {"target": "nearest"},
    {"target": "each", "objective": "prefix"},
    {"target": 2, "steps": {0: 0.5, 1: 0.5}, "limit": 20},
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_do_not_depend_on_the_number_of_threads(question):
    one = bits(VOICE.explain(X, **question, n_jobs=1))
    for n_jobs in (2, 5, -1, None):
        assert bits(VOICE.explain(X, **question, n_jobs=n_jobs)) == one


def test_the_tradeoff_does_not_depend_on_the_number_of_threads():
    one = bits(VOICE.tradeoff(X[:40], 1, n_jobs=1))
    assert bits(VOICE.tradeoff(X[:40], 1, n_jobs=3)) == one


def test_threads_are_what_is_asked_for(monkeypatch):
    monkeypatch.setattr(parallel, "cores", lambda: 6)
    assert [n_threads(n) for n in (1, 4, -1, -2, -9)] == [1, 4, 6, 5, 1]
    for text, expected in {"3": 3, "4,2": 4, "": 6, "0": 6, "many": 6}.items():
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert n_threads(None) == expected
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert n_threads(None) == 6


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_no_more_chunks_run_at_a_time_than_there_are_threads(n_jobs):
    now, most = set(), []

    def work(start: int, stop: int) -> int:
        now.add(start)
        most.append(len(now))
        sum(range(20_000))  # long enough for threads to take turns
        now.discard(start)
        return start

    with Running(n_jobs):
        assert in_parallel(work, 60, chunk=1) == list(range(60))
    assert max(most) <= n_jobs


@pytest.mark.parametrize("n_jobs", [0, "two", 1.5, True])
def test_a_number_of_threads_that_is_none_is_refused(n_jobs):
    for method in (VOICE.explain, VOICE.tradeoff):
        with pytest.raises(OptionError, match=r"n_jobs=.*-1 for all cores"):
            method(X[:2], 1, n_jobs=n_jobs)


def test_progress_is_true_false_or_none():
    with pytest.raises(OptionError, match="progress='yes' is not allowed"):
        VOICE.explain(X[:2], progress="yes")


@pytest.mark.parametrize(
    ("question", "rows"),
    [
        ({"target": 1}, 600),
        ({"target": 1, "steps": {0: 0.5}}, 600),
        ({"target": "each"}, 2400),
        ({"target": "each", "objective": "fewest"}, 2400),
    ],
)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_bar_counts_the_pairs_of_row_and_target(capsys, question, rows, n_jobs):
    assert len(VOICE.explain(X[:600], **question, progress=True, n_jobs=n_jobs)) == rows
    last = capsys.readouterr().err.rstrip().rpartition("\r")[2]
    assert re.search(r"(\S+)/(\S+) \[", last).groups() == (str(rows), str(rows))


def test_the_bar_counts_rows_with_alternatives(capsys):
    VOICE.explain(X[:30], 1, alternatives=2, progress=True)
    assert " rows/s]" in capsys.readouterr().err


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_bar_appears_by_itself_only_on_a_terminal_and_after_a_while(monkeypatch, capsys, n_jobs):
    looked = Event()

    def draw(self, whole=Progress.draw) -> None:
        whole(self)
        looked.set()

    def add(self, rows, whole=Progress.add) -> None:
        # However busy the machine, the threads have not ended when it is time to draw.
        assert n_jobs == 1 or looked.wait(timeout=600)
        whole(self, rows)

    def drawn(**options) -> bool:
        looked.clear()
        VOICE.explain(X, 1, n_jobs=n_jobs, **options)
        return "rows" in capsys.readouterr().err

    monkeypatch.setattr(Progress, "draw", draw)
    monkeypatch.setattr(Progress, "add", add)
    monkeypatch.setattr(parallel, "PATIENCE", 0.0)
    # Another test may have run a notebook, and in one a bar appears, too.
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    assert not drawn()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(parallel, "PAUSE", 0.0)
    assert drawn()
    assert not drawn(progress=False)
    with Running(progress=False):
        assert not drawn()
    monkeypatch.setattr(parallel, "PATIENCE", np.inf)
    assert not drawn()
