"""Memory of forgotten arrays is used again, and never that of one that somebody still sees."""

from __future__ import annotations

import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from voicecf import VoICE, memory
from voicecf.memory import KEPT, LEAST, empty


@pytest.fixture(autouse=True)
def nothing_idle(monkeypatch):
    gc.collect()
    monkeypatch.setattr(memory, "_idle", [])


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int8])
@pytest.mark.parametrize("shape", [0, 7, (3, 0), (500_000,), (20_000, 13)])
def test_an_array_is_what_was_asked_for(shape, dtype):
    array = empty(shape, dtype)
    assert array.shape == ((shape,) if isinstance(shape, int) else shape)
    assert array.dtype == dtype
    assert array.flags.writeable
    assert array.flags.c_contiguous
    array[...] = 3
    assert (array == 3).all()


def test_forgotten_memory_is_used_again():
    first = empty((20_000, 30))
    at = address(first)
    del first
    assert address(empty((20_000, 30))) == at


def test_memory_that_is_seen_is_left_alone():
    first = empty(1 << 18)
    first[:] = 1.0
    views = [first[10:20], memoryview(first), first.reshape(2, -1).T]
    del first
    for held in range(3):
        other = empty(1 << 18)
        other[:] = -1.0
        assert all(np.asarray(view).min() == 1.0 for view in views), held
        views.pop()
        del other
    assert len(memory._idle) == 2


def test_no_more_is_kept_than_a_limit_and_the_longest_idle_goes_first():
    arrays = [empty(KEPT // 32 - LEAST // 8), empty(KEPT // 16), empty(KEPT // 16)]
    old = address(arrays[0])
    while arrays:
        del arrays[0]
    assert sum(map(len, memory._idle)) <= KEPT
    assert old not in [address(block) for block in memory._idle]


def test_small_arrays_and_huge_ones_are_not_kept():
    for shape in (LEAST // 8 - 1, KEPT // 8 + 1):
        del (array := [empty(shape)])[0]
        assert memory._idle == []
        assert array == []


def test_threads_never_share_memory():
    def fill(value: int) -> bool:
        seen = True
        for _ in range(40):
            array = empty(40_000, np.int64)
            array[:] = value
            seen = seen and (array == value).all()
            del array
        return bool(seen)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(fill, range(32)))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # there are threads by now
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_anew():
    del (held := [empty(1 << 18)])[0]
    assert len(memory._idle) == 1
    child = os.fork()
    if child == 0:
        os._exit(len(memory._idle))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert held == []


def test_answers_stay_what_they_are_while_others_come_and_go():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 12))
    voice = VoICE.from_centers(rng.normal(size=(4, 12)))
    cf = voice.explain(X, 1)
    points, factual, cost = cf.points.copy(), cf.factual.copy(), cf.cost.copy()
    kept = cf.points[:5]
    for target in (0, 2, 3):
        voice.explain(X + target, target)
    np.testing.assert_array_equal(cf.points, points)
    np.testing.assert_array_equal(cf.factual, factual)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(cf)).cost, cost)
    del cf
    voice.explain(-X, 2)
    np.testing.assert_array_equal(kept, points[:5])
