"""How the paper's numbers come about: clusterings, draws, answers, and the pairwise comparison.

What its text leaves open was found by replaying each table; see docs/reproduction.md. Answers come
from the same projection as everything else in the library: `Piece.region`, a box, `project`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property
from time import perf_counter, process_time, thread_time
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from voicecf.datasets import Dataset
from voicecf.diagnostics import (
    ContractionSummary,
    Evaluation,
    PairwiseComparison,
    compare_pairwise,
    contraction_summary,
    evaluate,
    validity,
)
from voicecf.geometry.arrays import Array
from voicecf.geometry.models import partition_of
from voicecf.geometry.partition import Partition
from voicecf.parallel import cores
from voicecf.shark import SHARK, WeightCollapseWarning
from voicecf.solver.projection import project
from voicecf.status import Status
from voicecf.voice import VoICE

SEED = 42
# Rows that are explained, and k-means fits that the pairwise projection is tried on.
FACTUALS = 50
FITS = 50
# Shares of the features that a mask fixes.
SHARES = (0.25, 0.5, 0.75)
# The printed contraction leaves out rows with an offset at most this; a scale-free one, none.
PRINTED_FLOOR = 1e-12
# The least contraction that is used to solve.
LEAST_ALPHA = 0.01
# Added to the weights, so that the answer is unique.
DELTA = 1e-9
# Numbers in the data from which k-means gains by threads.
WORTH_THREADS = 1_000_000

UNWEIGHTED, RANKED, SHARK_MODE = MODES = (
    "Unweighted k-means",
    "Ranked k-means",
    "Ranked + weighted SHARK",
)

Rows = NDArray[np.int64]
Rule = Literal["printed", "scale-free", "box"]


@dataclass(frozen=True)
class Draw:
    """Questions to one mode: rows, a target each, and for each share a mask of fixed features."""

    rows: Rows
    targets: Rows
    fixed: NDArray[np.bool_]

    @classmethod
    def of(cls, rng: np.random.Generator, rows: Rows, labels: Rows, k: int, d: int) -> Draw:
        """Draw targets and masks in the paper's order: row by row, the target, then its masks."""
        targets = np.empty(len(rows), dtype=np.int64)
        fixed = np.zeros((1 + len(SHARES), len(rows), d), dtype=np.bool_)
        for at, row in enumerate(rows):
            targets[at] = rng.choice([c for c in range(k) if c != labels[row]])
            for mask, share in zip(fixed[1:], SHARES, strict=True):
                size = min(round(d * share), d - 1)
                mask[at, rng.choice(d, size=size, replace=False)] = True
        return cls(rows, targets, fixed)


@dataclass(frozen=True)
class Mode:
    """A clustering, its contraction, a box, and the order in which features are tried."""

    name: str
    model: Any
    partition: Partition
    labels: Rows
    alpha: Array
    box: tuple[Array, Array]
    ranking: Array

    def solve(self, factual: Array, targets: Rows, free: NDArray[np.bool_]) -> Answered:
        """Find the cheapest answers in which only the free features move."""
        lo, hi = (np.where(free, side, factual) for side in self.box)
        points, rho = np.full_like(factual, np.nan), np.full(len(factual), np.nan)
        for t in np.unique(targets):
            which = targets == t
            region = self.partition.piece(int(t)).region(float(self.alpha[t]))
            found = project(
                factual[which],
                region.within(lo[which], hi[which]),
                self.partition.weights + DELTA,
            )
            fits = found.status == Status.OPTIMAL
            points[which] = np.where(fits[:, None], found.points, np.nan)
            rho[which] = np.where(fits, found.rho, np.nan)
        return Answered(points, rho, free.sum(axis=1))

    def shortest_prefix(self, factual: Array, targets: Rows) -> Answered:
        """Find the fewest features, in the order of the ranking, that suffice.

        Whatever a prefix allows, a longer one allows, so the length is found by halving.
        """
        n, d = factual.shape
        place = np.argsort(np.argsort(-self.ranking, kind="stable"), kind="stable")
        below, above = np.zeros(n, dtype=np.int64), np.full(n, d)
        while (above - below > 1).any():
            length = (below + above) // 2
            fits = self.solve(factual, targets, place < length[:, None]).feasible
            above, below = np.where(fits, length, above), np.where(fits, below, length)
        return self.solve(factual, targets, place < above[:, None])


@dataclass(frozen=True)
class Answered:
    """Answers, how far each may be overdone, and how many features were allowed to move."""

    points: Array
    rho: Array
    allowed: Rows

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Which questions have an answer."""
        return np.asarray(~np.isnan(self.rho))

    def evaluation(self, factual: Array, weights: Array) -> Evaluation:
        """Evaluate the answers."""
        return evaluate(
            factual, self.points, weights=weights, cardinality=self.allowed, tau=self.rho - 1.0
        )


@dataclass(frozen=True)
class ModeResult:
    """What one mode makes of its draw.

    Attributes
    ----------
    mode : Mode
    draw : Draw
    answers : Answered
        Least-cost answers, nothing fixed.
    cheapest, shortest : Evaluation
        Of these, and of the shortest prefixes.
    feasible : list of int
        Feasible answers with nothing fixed, and under each mask.
    milliseconds : float
        Time for a least-cost answer.
    """

    mode: Mode
    draw: Draw
    answers: Answered
    cheapest: Evaluation
    shortest: Evaluation
    feasible: list[int]
    milliseconds: float

    def confirmed(self) -> float:
        """Share of the least-cost answers that the model's own predict puts into the target."""
        found = self.answers.feasible
        return validity(self.answers.points[found], self.mode.model, self.draw.targets[found])

    def explained(self, X: Array) -> float:
        """Share of the rows for which `VoICE`, which asks for that too, has an answer."""
        voice = VoICE(self.mode.model).fit(X)
        return float(voice.explain(X[self.draw.rows], target=self.draw.targets).feasible.mean())


class Study:
    """One dataset, and everything that the tables ask of it, computed when first asked for.

    Parameters
    ----------
    dataset : Dataset
    """

    def __init__(self, dataset: Dataset) -> None:
        self.dataset = dataset
        self.outcomes = cache(self._outcomes)
        self.contraction = cache(self._contraction)

    @property
    def title(self) -> str:
        """What the paper calls the dataset."""
        return self.dataset.title

    @cached_property
    def X(self) -> Array:
        """The standardised data.

        Standardised column by column, as pandas hands them over. Row by row the last bits come
        out differently, and German Credit's SHARK hangs on them.
        """
        scaled = StandardScaler().fit_transform(np.asfortranarray(self.dataset.X))
        return np.ascontiguousarray(scaled)

    @cached_property
    def kmeans(self) -> Any:
        """The k-means model."""
        threads = cores() if self.X.size > WORTH_THREADS else 1
        with threadpool_limits(threads, user_api="openmp"):
            return _kmeans(self.dataset.k, n_init=10, seed=SEED).fit(self.X)

    @cached_property
    def shark(self) -> SHARK:
        """The SHARK model; where its weights collapse the tables say so."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeightCollapseWarning)
            return SHARK(self.dataset.k, random_state=SEED).fit(self.X)

    def _contraction(self, weighted: bool, rule: Rule) -> ContractionSummary:
        model = self.shark if weighted else self.kmeans
        return contraction_summary(
            model,
            self.X,
            labels=model.labels_,
            bounds=(self.X.min(axis=0), self.X.max(axis=0)) if rule == "box" else None,
            floor=PRINTED_FLOOR if rule == "printed" else 0.0,
        )

    def mode(self, name: str, rule: Rule = "printed") -> Mode:
        """Set up one of the three modes."""
        weighted = name == SHARK_MODE
        model = self.shark if weighted else self.kmeans
        d = self.X.shape[1]
        return Mode(
            name=name,
            model=model,
            partition=partition_of(model),
            labels=np.asarray(model.labels_, dtype=np.int64),
            alpha=np.maximum(self.contraction(weighted, rule).alpha, LEAST_ALPHA),
            box=(self.X.min(axis=0), self.X.max(axis=0)),
            ranking=np.zeros(d) if name == UNWEIGHTED else self.shark.feature_weights_,
        )

    def draws(self, paired: bool = False) -> Iterator[tuple[str, Draw]]:
        """Draw the questions of the three modes.

        One generator serves all modes and is never reset, so that they see different targets and
        masks. Paired, it is put back for each mode, and SHARK's clusters are numbered as the
        k-means ones that they overlap most: a row whose two clusters match gets one target.
        """
        rng = np.random.default_rng(SEED)
        (n, d), k = self.X.shape, self.dataset.k
        rows = rng.choice(n, size=min(FACTUALS, n), replace=False)
        kept = rng.bit_generator.state
        for name in MODES:
            model = self.shark if name == SHARK_MODE else self.kmeans
            labels = np.asarray(model.labels_, dtype=np.int64)
            if not paired:
                yield name, Draw.of(rng, rows, labels, k, d)
                continue
            rng.bit_generator.state = kept
            number = self._matching if name == SHARK_MODE else np.arange(k)
            draw = Draw.of(rng, rows, number[labels], k, d)
            yield name, Draw(rows, np.argsort(number)[draw.targets], draw.fixed)

    @cached_property
    def _matching(self) -> Rows:
        """For each SHARK cluster, the k-means cluster that it is matched with."""
        k = self.dataset.k
        overlap = np.zeros((k, k))
        np.add.at(overlap, (self.shark.labels_, self.kmeans.labels_), 1)
        _, match = linear_sum_assignment(overlap, maximize=True)
        return np.asarray(match)

    def _outcomes(self, rule: Rule = "printed", paired: bool = False) -> dict[str, ModeResult]:
        return {
            name: self._outcome(self.mode(name, rule), draw) for name, draw in self.draws(paired)
        }

    def _outcome(self, mode: Mode, draw: Draw) -> ModeResult:
        factual, weights = self.X[draw.rows], mode.partition.weights
        every = ~draw.fixed[0]
        mode.solve(factual[:1], draw.targets[:1], every[:1])  # compiles, if it must
        start = perf_counter()
        cheapest = mode.solve(factual, draw.targets, every)
        took = 1000 * (perf_counter() - start) / len(factual)
        masked = [mode.solve(factual, draw.targets, ~fixed) for fixed in draw.fixed[1:]]
        return ModeResult(
            mode=mode,
            draw=draw,
            answers=cheapest,
            cheapest=cheapest.evaluation(factual, weights),
            shortest=mode.shortest_prefix(factual, draw.targets).evaluation(factual, weights),
            feasible=[int(answers.feasible.sum()) for answers in (cheapest, *masked)],
            milliseconds=took,
        )


def _kmeans(k: int, n_init: int, seed: int) -> Any:
    return KMeans(n_clusters=k, n_init=n_init, max_iter=300, tol=1e-4, random_state=seed)


@dataclass(frozen=True)
class PairwiseStudy:
    """The pairwise comparison over all fits.

    Attributes
    ----------
    found : PairwiseComparison
    seconds : float
        What it took, fits included.
    cpu, fitting : float
        Seconds of processor time, and those of them that went into fitting k-means.
    """

    found: PairwiseComparison
    seconds: float
    cpu: float
    fitting: float


def compare(X: Array, k: int, tick: Callable[[], None] = lambda: None) -> PairwiseStudy:
    """Fit k-means fifty times, and compare the pairwise with the full projection for every pair.

    Parameters
    ----------
    X : array of shape (n, d)
        Standardised data.
    k : int
    tick : callable
        Called after each fit.
    """
    start, cpu = perf_counter(), process_time()
    found, fitting = PairwiseComparison(), 0.0
    for model, took in _fits(X, k):
        found += compare_pairwise(model, X, labels=model.labels_)
        fitting += took
        tick()
    return PairwiseStudy(found, perf_counter() - start, process_time() - cpu, fitting)


def _fits(X: Array, k: int) -> Iterator[tuple[Any, float]]:
    """Yield the fifty models in order, and the processor time of each.

    One thread a fit and several fits at once: k-means on small data spends its time waiting for
    its own threads, and one thread adds up in one order.
    """

    def fit(i: int) -> tuple[Any, float]:
        start = thread_time()
        model = _kmeans(k, n_init=1, seed=SEED + i).fit(X)
        return model, thread_time() - start

    # BLAS counts its threads for the process, OpenMP for the thread that asks.
    with threadpool_limits(1, user_api="blas"):
        pool = ThreadPoolExecutor(cores(), initializer=threadpool_limits, initargs=(1, "openmp"))
        try:
            yield from pool.map(fit, range(FITS))
        finally:
            pool.shutdown(cancel_futures=True)
