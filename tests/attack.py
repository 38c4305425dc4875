"""Ask models at extreme numbers, and judge every answer by the model's own `predict`.

    python tests/attack.py --count 200000 --processes 2
    python tests/attack.py --seed 0 --index 17            # one model again, with all details

Offsets up to 1e12, scales from 1e-200 to 1e200, constant and (nearly) duplicate columns and
centroids, up to 100 clusters and 50 columns, KMeans in both precisions and SHARK. The exit code is
1 if an answer that is called optimal

- is not assigned to its target by `predict`, in a batch or alone;
- is dearer than a member of the target that lies in the contracted cell and may be moved to;
- has other bits alone than in a batch.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from voicecf import SHARK, Status, VoICE
from voicecf.errors import VoiceError

ALONE = 12  # rows of a model that are asked alone
FAULTS = ("missed in a batch", "missed alone", "dearer than a member", "other bits alone")
SHAPES = ("plain", "constant column", "duplicate column", "nearly duplicate column", "few values",
          "nearly duplicate centroids", "mixed scales", "one large column")  # fmt: skip


@dataclass(frozen=True)
class Attack:
    """A table, a model and the options of an explainer."""

    name: str
    X: np.ndarray
    model: Any
    options: dict[str, Any]
    immutable: list[int]


def attack(seed: int, index: int) -> Attack:
    """Draw model `index` of a seed."""
    rng = np.random.default_rng([seed, index])
    k = int(rng.choice([2, 3, 5, 10, 20, 50, 100], p=[0.2, 0.2, 0.2, 0.15, 0.1, 0.1, 0.05]))
    d = int(rng.choice([1, 2, 3, 5, 8, 20, 50], p=[0.1, 0.2, 0.2, 0.2, 0.15, 0.1, 0.05]))
    n = max(4 * k, 120)
    kind = rng.choice(["kmeans", "single", "shark"], p=[0.5, 0.2, 0.3])
    shape = str(rng.choice(SHAPES))
    X = rng.normal(size=(n, d)) + 3.0 * rng.normal(size=(k, d))[rng.integers(k, size=n)]
    offset = 10.0 ** rng.integers(0, 13) if rng.random() < 0.7 else 0.0
    scale = 1.0
    if rng.random() < 0.4:
        scale = 10.0 ** (rng.integers(-30, 31) if kind == "single" else rng.integers(-200, 201))
    X = _shaped(rng, shape, X) + offset * rng.choice([-1.0, 0.0, 1.0, 1.0], size=d)
    with np.errstate(over="ignore", under="ignore"):
        X = X * scale
        X = X.astype(np.float32) if kind == "single" else X
    state = int(rng.integers(2**31))
    model = SHARK(k, n_init=2, random_state=state)
    if kind != "shark":
        model = KMeans(k, n_init=1, random_state=state, max_iter=int(rng.choice([1, 20])))
    options: dict[str, Any] = {
        "contraction": ["retain", 1.0, 0.7][rng.integers(3)],
        "bounds": ["data", None][int(rng.random() < 0.3)],
    }
    immutable = [int(rng.integers(d))] if d > 1 and rng.random() < 0.3 else []
    name = f"{kind}, {shape}, k={k}, d={d}, offset={offset:g}, scale={scale:g}, {options}"
    return Attack(name, X, model, options, immutable)


def _shaped(rng: np.random.Generator, shape: str, X: np.ndarray) -> np.ndarray:
    """Return a table with what its shape says."""
    d, one = X.shape[1], int(rng.integers(X.shape[1]))
    other = (one + 1) % d
    if shape == "constant column":
        X[:, one] = rng.choice([0.0, 1.0, 1e15])
    elif shape == "duplicate column":
        X[:, other] = X[:, one]
    elif shape == "nearly duplicate column":
        X[:, other] = X[:, one] * (1.0 + 1e-14 * rng.normal(size=len(X)))
    elif shape == "few values":
        X = np.round(X)
    elif shape == "nearly duplicate centroids":
        half = len(X) // 2
        X[half : 2 * half] = X[:half] + 10.0 ** rng.integers(-13, -3) * rng.normal(size=(half, d))
    elif shape == "mixed scales":
        X = X * 10.0 ** rng.integers(-8, 9, size=d)
    elif shape == "one large column":
        X[:, one] += 1e15
    return X


def judged(seed: int, index: int) -> tuple[Counter[str], list[str]]:
    """Ask one model for some rows, and count answers and faults."""
    task = attack(seed, index)
    counts: Counter[str] = Counter(models=1)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            voice = VoICE(task.model, **task.options).fit(task.X)
        except (VoiceError, ValueError) as error:
            counts["refused"] += 1
            return counts, [] if len(str(error)) > 20 else [f"{index}: {error!r}"]
        faults = _faults(task, voice, np.random.default_rng([seed, index, 1]), counts)
    return counts, [f"--seed {seed} --index {index}: {text} ({task.name})" for text in faults]


def _faults(task: Attack, voice: VoICE, rng: np.random.Generator, counts: Counter[str]):
    """Ask for rows in a batch and alone; yield what is wrong."""
    model, k = voice.model_, voice.learned_.n_clusters
    rows = task.X[rng.integers(len(task.X), size=60)]
    rules: dict[str, Any] = {"immutable": task.immutable} if task.immutable else {}
    targets = (voice.predict(rows) + rng.integers(1, k, size=len(rows))) % k
    cf = voice.explain(rows, target=targets, **rules, plausible=None)
    counts.update(Status(code).name for code in cf.status)
    optimal = np.flatnonzero(cf.status == Status.OPTIMAL)
    found = []
    if optimal.size:
        landed = model.predict(cf.points[optimal]) == targets[optimal]
        found += [("missed in a batch", i) for i in optimal[~landed]]
        for i in optimal:
            if model.predict(cf.points[i : i + 1])[0] != targets[i]:
                found.append(("missed alone", i))
        found += [("dearer than a member", i) for i in _dearer(task, voice, cf, rows, optimal)]
    for i in rng.choice(len(rows), size=ALONE, replace=False):
        alone = voice.explain(rows[i : i + 1], target=int(targets[i]), **rules, plausible=None)
        if alone.points.tobytes() != cf.points[i : i + 1].tobytes():
            found.append(("other bits alone", i))
    counts.update(what for what, _ in found)
    return [f"{what}: row {i}, target {targets[i]}" for what, i in found]


def _dearer(task: Attack, voice: VoICE, cf: Any, rows: np.ndarray, optimal: np.ndarray):
    """Yield answers that are dearer than a member of the contracted cell that is in no doubt.

    All in extended precision. A member is in doubt if rounding, of sums or of a computed point's
    coordinates, could put it elsewhere: no answer may lie there. The solver's metric measures it.
    """
    partition = voice.partition_
    w, centers = np.longdouble(partition.weights), np.longdouble(partition.centers)
    metric = w + voice.delta  # what is minimised
    X = np.unique(np.longdouble(task.X), axis=0)
    distances = np.array([(w * (X - center) ** 2).sum(axis=1) for center in centers]).T
    eps = 32 * (X.shape[1] + 8) * partition.arithmetic.eps
    size = np.array([(metric * (X - center) ** 2).sum(axis=1) for center in centers]).T
    length = np.sqrt((w * X**2).sum(axis=1))[:, None]
    if partition.arithmetic.formula == "expanded":
        size = (length + np.sqrt((w * centers**2).sum(axis=1))) ** 2
    for i in optimal:
        t, row = cf.target[i], np.longdouble(rows[i])
        apart = np.longdouble((w * (centers - centers[t]) ** 2).sum(axis=1))
        ahead = distances - distances[:, [t]]  # D_j - D_t: twice the slack of the whole cell
        needed = np.maximum((1 - voice.alpha_[t]) * apart, eps * (size + size[:, [t]]))
        needed += 32 * partition.arithmetic.eps * (apart + np.sqrt(apart) * length)
        needed[:, t] = -np.inf
        members = (ahead >= needed).all(axis=1)
        if task.immutable:
            members &= (X[:, task.immutable] == row[task.immutable]).all(axis=1)
        energy = (metric * (X[members] - row) ** 2).sum(axis=1)
        answer = (metric * (np.longdouble(cf.points[i]) - row) ** 2).sum()
        if len(energy) and answer > energy.min() * (1 + 1e-6):
            yield i


def chunk(seed: int, start: int, stop: int) -> tuple[Counter[str], list[str]]:
    """Judge some models: a task for one process."""
    counts, texts = Counter[str](), list[str]()
    for index in range(start, stop):
        one, faults = judged(seed, index)
        counts.update(one)
        texts += faults
    return counts, texts


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--count", type=int, default=2_000, help="how many optimal answers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--index", type=int, help="judge this one model and show everything")
    parser.add_argument("--processes", type=int, default=1)
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Attack, print, and return the exit code."""
    args = arguments(argv)
    if args.index is not None:
        counts, texts = judged(args.seed, args.index)
        print(attack(args.seed, args.index).name, dict(counts), *texts, sep="\n")
        return 1 if texts else 0
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    counts, texts, start = Counter[str](), list[str](), 0
    with ProcessPoolExecutor(args.processes, mp_context=get_context("spawn")) as pool:
        while counts["OPTIMAL"] < args.count:
            spans = [(start + 20 * i, start + 20 * (i + 1)) for i in range(4 * args.processes)]
            for task in as_completed([pool.submit(chunk, args.seed, *span) for span in spans]):
                one, faults = task.result()
                counts.update(one)
                texts += faults
            start = spans[-1][1]
            print(f"\r{counts['OPTIMAL']}/{args.count}  {len(texts)} faults ", end="",
                  file=sys.stderr, flush=True)  # fmt: skip
    print(file=sys.stderr)
    print(", ".join(f"{what} {n}" for what, n in sorted(counts.items())))
    print(", ".join(f"{what} {counts[what]}" for what in FAULTS))
    print(*texts[:20], sep="\n")
    return 1 if texts else 0


if __name__ == "__main__":
    sys.exit(main())
