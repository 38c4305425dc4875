"""The compiled core: the same bits whatever instruction set, batch, order and cores."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from voicecf import SHARK, Status, VoICE, _core, parallel
from voicecf.geometry.region import Region
from voicecf.solver.projection import project

HERE = Path(__file__).parent
# Answers of every kind of loop, as one number each.
PRINTED = """
import hashlib, numpy as np
from voicecf import SHARK, VoICE, _core
from voicecf.solver.projection import project
from voicecf.geometry.region import Region
def bits(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()
rng = np.random.default_rng(0)
for k, d in ((3, 13), (10, 20), (90, 7), (300, 3)):
    centers = rng.normal(size=(k, d))
    X = centers[rng.integers(k, size=500)] + rng.normal(size=(500, d))
    lo, hi = X.min(axis=0) + 0.3, X.max(axis=0) - 0.3
    voice = VoICE.from_centers(centers, bounds=(lo, hi), contraction=0.9)
    cf = voice.explain(np.clip(X, lo, hi), rng.integers(k, size=500))
    print(bits(cf.points, cf.status, cf.rho, cf.gap, cf.cost, cf.multipliers))
    few = voice.explain(np.clip(X[:40], lo, hi), 1, objective="prefix")
    print(bits(few.points, few.status, few.cardinality))
rows, offsets = rng.normal(size=(30, 6)), rng.uniform(-0.5, 1.0, 30)
points = 3 * rng.normal(size=(300, 6))
for prices in (None, rng.uniform(0, 2, (2, 6)), np.ones((2, 6))):
    found = project(points, Region(rows, offsets, lo=-2.0, hi=2.0), prices=prices)
    print(bits(found.points, found.multipliers, found.status, found.gap, found.rho))
X = rng.integers(0, 9, size=(200, 4)).astype(float)
voice = VoICE.from_centers(X[:3] + 0.25, bounds=(0.0, 9.0))
cf = voice.explain(X[:30], 1, objective="fewest", steps={f"x{i}": 1 for i in range(4)})
print(bits(cf.points, cf.status, cf.cost))
model = SHARK(5, n_init=2, random_state=0).fit(rng.normal(size=(3000, 6)))
print(bits(model.cluster_centers_, model.feature_weights_, model.labels_))
print(_core.instruction_set())
"""


def printed(instructions: str) -> list[str]:
    environment = {**os.environ, "VOICECF_INSTRUCTIONS": instructions}
    ran = subprocess.run(
        [sys.executable, "-c", PRINTED], env=environment, capture_output=True, text=True, check=True
    )
    return ran.stdout.split()


def test_every_instruction_set_gives_the_same_bits():
    *plain, name = printed("baseline")
    assert name == "baseline"
    for wider in ("avx2", "avx512"):
        *answers, name = printed(wider)
        if name != wider:
            pytest.skip(f"this processor has no {wider}")
        assert answers == plain


def problems(n: int = 700):
    rng = np.random.default_rng(4)
    centers = rng.normal(size=(40, 6))
    X = centers[rng.integers(40, size=n)] + rng.normal(size=(n, 6))
    voice = VoICE.from_centers(centers, bounds=(-1.5, 1.5), contraction=0.8)
    return voice, np.clip(X, -1.5, 1.5), rng.integers(40, size=n)


def same(one, other, which) -> None:
    for name in ("points", "source", "status", "cost", "rho", "gap", "n_changed"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name)[which])


def test_order_batch_and_cores_do_not_show(monkeypatch):
    voice, X, target = problems()
    whole = voice.explain(X, target)
    assert {Status.OPTIMAL, Status.ALREADY} <= set(whole.status.tolist())
    order = np.random.default_rng(0).permutation(len(X))
    for cores in (1, 2, 3):
        monkeypatch.setattr(parallel, "n_threads", lambda _, n=cores: n)
        same(voice.explain(X[order], target[order]), whole, order)
        for start, stop in ((0, 1), (5, 12), (17, 300)):
            part = slice(start, stop)
            same(voice.explain(X[part], target[part]), whole, part)


def test_wrong_arguments_neither_end_the_process_nor_are_answered():
    asked = [sys.executable, "-W", "ignore", str(HERE / "wrong_arguments.py")]
    ran = subprocess.run(asked, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    assert len(ran.stdout.splitlines()) > 10_000


def test_what_is_refused_is_named():
    with pytest.raises(ValueError, match=r"offsets has shape \(2,\), but \(3,\) is needed"):
        _core.Rows.listed(np.eye(3), np.ones(2), np.zeros(3), np.ones(3), np.zeros((6, 3)))
    with pytest.raises(ValueError, match=r"lo has shape \(3, 2\), but \(1, 2\) or \(4, 2\)"):
        _core.Batch(np.zeros((4, 2)), np.zeros((3, 2)), np.zeros((1, 2)))
    cells = _core.Rows.clusters(np.eye(2), np.ones(2), np.ones(2), 0.0, 1e-15, 1e-16, False)
    batch = _core.Batch(np.zeros((4, 2)), np.zeros((1, 2)), np.ones((1, 2)), targets=np.arange(4))
    out = (
        np.empty((4, 2)), np.empty((4, 0)), np.empty(4), np.empty(4), np.empty(4, np.int8),
        np.empty(4, np.bool_),
    )  # fmt: skip
    with pytest.raises(IndexError, match=r"targets\[2\] is 2, but 0 to 1 is allowed"):
        cells.project(batch, _core.Results(*out), 0, 4)
    with pytest.raises(IndexError, match="stop is 5, but 0 to 4 is allowed"):
        cells.project(batch, _core.Results(*out), 0, 5)


@pytest.mark.parametrize("far", [1e15, 1e20, 1e25, 1e28, 1e29])
@pytest.mark.parametrize("k", [2, 5, 13])
def test_rows_so_far_away_that_rounding_hides_all_centroids_read_no_padding(k, far):
    """Reading beyond the centroids shows under sanitizers only (`make sanitize`)."""
    rng = np.random.default_rng(k)
    voice = VoICE.from_centers(rng.normal(size=(k, 3)))
    X = far * rng.normal(size=(20, 3))
    for target in (0, k - 1):
        cf = voice.explain(X, target)
        assert (voice.predict(cf.points[cf.status == Status.OPTIMAL]) == target).all()
    region = Region(np.eye(3), np.array([1.0, far**2, far**4]))
    assert (project(X, region).status == Status.OPTIMAL).all()


def test_nothing_to_do_is_done():
    region = Region(np.eye(2), np.ones(2))
    assert project(np.empty((0, 2)), region).points.shape == (0, 2)
    rowless = Region(np.empty((0, 2)), np.empty(0), lo=0.0, hi=1.0)
    found = project([[2.0, 0.5]], rowless)
    np.testing.assert_array_equal(found.points, [[1.0, 0.5]])
    assert found.status[0] == Status.OPTIMAL


def test_few_features_and_many_clusters_label_as_the_formula_says():
    rng = np.random.default_rng(1)
    for k, d in ((2, 1), (8, 3), (70, 2), (200, 9)):
        X, centers = rng.normal(size=(333, d)), rng.normal(size=(k, d))
        model = SHARK(k, init=centers, max_iter=1).fit(np.vstack([X, centers]))
        squares = model.feature_weights_ * (X[:, None] - model.cluster_centers_) ** 2
        total = np.zeros(squares.shape[:2])
        for v in range(d):  # in feature order
            total += squares[:, :, v]
        np.testing.assert_array_equal(model.predict(X), total.argmin(axis=1))
