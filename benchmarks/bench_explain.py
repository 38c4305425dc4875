"""Time answers against general solvers, and against themselves as problems grow."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import minimize
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_wine, make_blobs
from sklearn.preprocessing import StandardScaler

from voicecf import VoICE

Row = tuple[str, float, float, str]
ROUNDS = 7
# Rows that a general solver is timed on.
FEW = 30


@dataclass(frozen=True)
class Case:
    """A fitted explainer, many rows to explain, and the model's own data."""

    name: str
    voice: VoICE
    X: np.ndarray

    def target(self, rows: np.ndarray) -> np.ndarray:
        """Another cluster for each row."""
        k = self.voice.partition_.n_clusters
        return (self.voice.predict(rows) + 1) % k


def case(name: str, X: np.ndarray, k: int, n: int = 100_000) -> Case:
    """Fit k-means and make n rows like the data: drawn from it, then jittered within its range."""
    X = StandardScaler().fit_transform(X)
    rng = np.random.default_rng(0)
    many = X[rng.integers(len(X), size=n)] + 0.1 * rng.normal(size=(n, X.shape[1]))
    voice = VoICE(KMeans(k, n_init=10, random_state=42)).fit(X)
    return Case(name, voice, np.clip(many, X.min(axis=0), X.max(axis=0)))


def cases() -> list[Case]:
    blobs = make_blobs(4000, 20, centers=10, cluster_std=2.5, random_state=1)[0]
    return [
        case("Wine, d=13, k=3", load_wine().data, 3),
        case("Breast Cancer, d=30, k=2", load_breast_cancer().data, 2),
        case("generated, d=20, k=10", blobs, 10),
    ]


def best(run: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Shortest of some runs, in seconds: what the work takes when nobody disturbs it."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def slsqp(case: Case, row: np.ndarray, target: int) -> np.ndarray:
    """Solve as the published software does: bounds, one inequality a row, ftol 1e-9."""
    region = case.voice.region(target)
    metric = case.voice.partition_.weights + case.voice.delta
    constraints = [
        {"type": "ineq", "fun": lambda z, g=g, h=h: h - g @ (z - region.origin)}
        for g, h in zip(region.normals, region.offsets, strict=True)
    ]
    found = minimize(
        lambda z: float(np.sum(metric * (z - row) ** 2)),
        case.voice.partition_.centers[target],
        method="SLSQP",
        bounds=list(zip(region.lo, region.hi, strict=True)),
        constraints=constraints,
        options={"ftol": 1e-9, "maxiter": 500},
    )
    return np.asarray(found.x)


def _dense(case: Case, row: np.ndarray, target: int) -> tuple[np.ndarray, ...]:
    region = case.voice.region(target)
    metric = case.voice.partition_.weights + case.voice.delta
    offsets = region.offsets + region.normals @ region.origin
    return region.normals, offsets, region.lo, region.hi, metric


def daqp_solver(case: Case, row: np.ndarray, target: int) -> Callable[[], object]:
    import daqp

    G, h, lo, hi, q = _dense(case, row, target)
    H, f = np.diag(q), -q * row
    upper, lower = np.r_[hi, h], np.r_[lo, np.full(len(h), -1e30)]
    sense = np.zeros(len(upper), dtype=np.int32)
    G = np.ascontiguousarray(G)
    return lambda: daqp.solve(H, f, G, upper, lower, sense)


def quadprog_solver(case: Case, row: np.ndarray, target: int) -> Callable[[], object]:
    import quadprog

    G, h, lo, hi, q = _dense(case, row, target)
    eye = np.eye(len(row))
    C, b = np.vstack([-G, eye, -eye]).T.copy(), np.r_[-h, lo, -hi]
    return lambda: quadprog.solve_qp(np.diag(q), q * row, C, b)


def piqp_solver(case: Case, row: np.ndarray, target: int) -> Callable[[], object]:
    import piqp

    G, h, lo, hi, q = _dense(case, row, target)
    nothing, none = np.zeros((0, len(row))), np.zeros(0)
    unbounded = np.full(len(h), -np.inf)

    def solve() -> object:
        solver = piqp.DenseSolver()
        solver.setup(np.diag(q), -q * row, nothing, none, G, unbounded, h, lo, hi)
        return solver.solve()

    return solve


def against_solvers(case: Case) -> list[Row]:
    """Time a point: all rows in one call, against SLSQP and QP solvers called a row at a time."""
    target = case.target(case.X)
    case.voice.explain(case.X[:10], target[:10], plausible=None)
    ours = best(lambda: case.voice.explain(case.X, target, plausible=None)) / len(case.X)
    rows = range(FEW)
    theirs = best(lambda: [slsqp(case, case.X[i], target[i]) for i in rows], 3) / FEW
    found = [(f"{case.name}: VoICE.explain, a point", ours, 1.0, "")]
    found.append((f"{case.name}: SLSQP / VoICE", theirs, theirs / ours, ">= 10,000"))
    quickest = []
    for name, make in (("DAQP", daqp_solver), ("quadprog", quadprog_solver), ("PIQP", piqp_solver)):
        try:
            calls = [make(case, case.X[i], target[i]) for i in rows]
        except ImportError:
            print(f"not measured: {name} is not installed", file=sys.stderr)
            continue
        seconds = best(lambda calls=calls: [call() for call in calls], 5) / FEW
        quickest.append((seconds, name))
    seconds, name = min(quickest)
    found.append((f"{case.name}: {name} (fastest QP) / VoICE", seconds, seconds / ours, ">= 50"))
    return found


def prefix(case: Case) -> list[Row]:
    target = case.target(case.X)
    explain = partial(case.voice.explain, plausible=None)
    explain(case.X[:10], target[:10], objective="prefix")
    cost = best(lambda: explain(case.X, target))
    prefixes = best(lambda: explain(case.X, target, objective="prefix"))
    return [(f"{case.name}: prefix / cost", prefixes / len(case.X), prefixes / cost, "<= 5")]


def open_space(n: int = 10_000_000, chunk: int = 100_000) -> list[Row]:
    """No box, all free, d=20, k=3: against copying input and output with numpy."""
    rng = np.random.default_rng(0)
    centers = 2 * rng.normal(size=(3, 20))
    X = centers[rng.integers(3, size=chunk)] + rng.normal(size=(chunk, 20))
    voice = VoICE.from_centers(centers)
    target = (voice.predict(X) + 1) % 3
    out = voice.explain(X, target, plausible=None).points
    source, sink = np.empty_like(X), np.empty_like(out)

    def copy() -> None:
        np.copyto(source, X)
        np.copyto(sink, out)

    ours = (
        sum(best(lambda: voice.explain(X, target, plausible=None), 1) for _ in range(n // chunk))
        / n
    )
    theirs = sum(best(copy, 1) for _ in range(n // chunk)) / n
    return [("no box, d=20, k=3, 10 million points: VoICE / copying", ours, ours / theirs, "<= 3")]


def many_clusters(n: int = 200_000) -> list[Row]:
    rng = np.random.default_rng(0)
    seconds = {}
    for k in (10, 100, 1000):
        centers = 1.5 * rng.normal(size=(k, 20))
        X = centers[rng.integers(k, size=n)] + rng.normal(size=(n, 20))
        bounds = X.min(axis=0), X.max(axis=0)
        voice = VoICE.from_centers(centers, bounds=bounds, contraction=0.9)
        target = (voice.predict(X) + rng.integers(1, k, size=n)) % k
        explain = partial(voice.explain, X, target, plausible=None)
        explain()
        seconds[k] = best(explain, 3) / n
    return [
        ("d=20, k=100 / k=10, a point", seconds[100], seconds[100] / seconds[10], ""),
        ("d=20, k=1000 / k=10, a point", seconds[1000], seconds[1000] / seconds[10], "<= 10"),
    ]


def one_row(case: Case) -> list[Row]:
    row = case.X[:1]
    target = int(case.target(row)[0])
    case.voice.explain(row, target, plausible=None)
    seconds = best(lambda: case.voice.explain(row, target, plausible=None), 500)
    return [(f"{case.name}: one row, warm", seconds, seconds / 100e-6, "<= 100 us: 1")]


def _fresh(code: str) -> float:
    """Seconds that a new process says it took."""
    timed = f"import time; t = time.perf_counter()\n{code}\nprint(time.perf_counter() - t)"
    shown = subprocess.run(
        [sys.executable, "-c", timed], capture_output=True, text=True, check=True
    )  # fmt: skip
    return float(shown.stdout.split()[-1])


SKLEARN = "import sklearn.cluster, sklearn.pipeline, sklearn.compose, sklearn.preprocessing, pandas"
ARRAY = """
from sklearn.datasets import load_wine
X, model = load_wine().data, sklearn.cluster.KMeans(3, n_init=1, random_state=0)
model.fit(X)
t = time.perf_counter()
from voicecf import VoICE
voice = VoICE(model).fit(X)
for objective in ("cost", "prefix", "fewest"):
    print(voice.explain(X[:20], target=2, objective=objective))
"""
TABLE = """
import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
rng = np.random.default_rng(0)
df = pandas.DataFrame({"age": rng.integers(18, 80, 200), "visits": rng.poisson(4, 200),
    "income": rng.normal(3000, 500, 200), "job": rng.choice(["clerk", "chef", "student"], 200)})
encode = make_column_transformer(
    (StandardScaler(), ["age", "visits", "income"]), (OneHotEncoder(), ["job"]))
model = sklearn.pipeline.make_pipeline(encode, sklearn.cluster.KMeans(3, n_init=1, random_state=0))
model.fit(df)
t = time.perf_counter()
from voicecf import VoICE
voice = VoICE(model).fit(df)
print(voice.explain(df[:5], target=2, increase_only=["visits"], alternatives=2, max_changes=3))
stuck = voice.explain(df[:20], target="each", immutable=["age", "income", "job"])
print(stuck.reason(int(np.flatnonzero(~stuck.feasible)[0])))
"""


def starting() -> list[Row]:
    """Time a fresh process, beyond importing scikit-learn and pandas."""
    pairs = [(_fresh(SKLEARN), _fresh(f"{SKLEARN}\nimport voicecf")) for _ in range(9)]
    plain, ours = np.median(pairs, axis=0)
    added = float(ours - plain)
    array, table = (
        np.median([_fresh(SKLEARN + code) for _ in range(5)]) for code in (ARRAY, TABLE)
    )
    return [
        ("import voicecf after scikit-learn and pandas", added, added / 0.15, "<= 150 ms: 1"),
        ("first use, array: cost, prefix, fewest", float(array), float(array), "<= 1 s: 1"),
        (
            "first use, table: rules, alternatives, a reason",
            float(table),
            float(table),
            "<= 1 s: 1",
        ),
    ]


def rows() -> Iterator[Row]:
    """Measure everything, one after the other: what, seconds, ratio, goal of the ratio."""
    every = cases()
    for one in every:
        yield from against_solvers(one)
    yield from prefix(every[1])
    yield from one_row(every[0])
    yield from open_space()
    yield from many_clusters()
    yield from starting()
