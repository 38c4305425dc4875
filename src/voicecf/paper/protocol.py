"""How the paper's numbers come about: clusterings, draws, answers, and the pairwise comparison.

What its text leaves open was found by replaying each table; see docs/reproduction.md. Answers come
from the same search as everything else in the library: `Piece.region`, a box, an `Aim`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, cached_property, partial
from time import perf_counter, process_time, thread_time
from typing import Any, Literal, get_args

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import confusion_matrix
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
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.models import partition_of
from voicecf.geometry.partition import Partition
from voicecf.parallel import cores
from voicecf.search.aims import Aim, least_cost, shortest_prefix
from voicecf.shark import SHARK, WeightCollapseWarning
from voicecf.solver.projection import Projection, UnitConstraints
from voicecf.voice import VoICE

SEED = 42
# Rows that are explained, and k-means fits that the pairwise projection is tried on.
FACTUALS = 50
FITS = 50
# Percentages of the features that masks fix.
SHARES = (0, 25, 50, 75)
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

Rule = Literal["printed", "scale-free", "box"]
RULES: tuple[Rule, ...] = get_args(Rule)


@dataclass(frozen=True)
class Draw:
    """Questions to one mode: rows, a target each, and for each share a mask of fixed features."""

    rows: Ints
    targets: Ints
    fixed: Mask

    @classmethod
    def of(cls, rng: np.random.Generator, rows: Ints, labels: Ints, k: int, d: int) -> Draw:
        """Draw targets and masks in the paper's order: row by row, the target, then its masks."""
        targets = np.empty(len(rows), dtype=np.int64)
        fixed = np.zeros((len(SHARES), len(rows), d), dtype=np.bool_)
        for at, row in enumerate(rows):
            targets[at] = rng.choice([c for c in range(k) if c != labels[row]])
            for mask, share in zip(fixed[1:], SHARES[1:], strict=True):
                size = min(round(d * share / 100), d - 1)
                mask[at, rng.choice(d, size=size, replace=False)] = True
        return cls(rows, targets, fixed)


@dataclass(frozen=True)
class Trial:
    """A clustering and the questions of its draw; answers are computed when first asked for.

    Attributes
    ----------
    X : array of shape (n, d)
        The standardised data.
    draw : Draw
    model : estimator
    alpha : array of shape (k,)
        Contraction of the cells.
    order : array of shape (d,)
        Features in the order in which prefixes take them.
    """

    X: Array
    draw: Draw
    model: Any
    alpha: Array
    order: Ints

    @cached_property
    def partition(self) -> Partition:
        """The cells of the clustering."""
        return partition_of(self.model)

    @property
    def factual(self) -> Array:
        """The rows that are explained."""
        return self.X[self.draw.rows]

    @property
    def box(self) -> tuple[Array, Array]:
        """The observed range, which answers keep to."""
        return self.X.min(axis=0), self.X.max(axis=0)

    def solve(self, fixed: Any = False, best: Any = least_cost) -> Projection:
        """Find answers that leave the fixed features as they are.

        Parameters
        ----------
        fixed : array of bool of shape (n, d)
        best : callable
            `least_cost`, or `shortest_prefix` for the fewest features, in their order, that
            suffice.
        """
        factual, targets = self.factual, self.draw.targets
        lo, hi = (np.where(fixed, factual, side) for side in self.box)
        found = Projection.unresolved(*factual.shape)
        for t in np.unique(targets).tolist():
            which = np.flatnonzero(targets == t)
            region = self.partition.piece(t).region(float(self.alpha[t])).within(lo, hi)
            unit = UnitConstraints.of(region, self.partition.weights + DELTA)
            agrees = partial(self._is_in, t)
            found.put(which, best(factual, which, Aim(region, unit, self.order, agrees)))
        return found

    def _is_in(self, t: int, points: Array) -> Mask:
        return np.asarray(self.partition.labels(points) == t)

    @cached_property
    def answers(self) -> Projection:
        """Least-cost answers, nothing fixed."""
        return self.solve()

    @property
    def milliseconds(self) -> float:
        """Time for a least-cost answer, measured now."""
        start = perf_counter()
        n = len(self.solve().points)
        return 1000 * (perf_counter() - start) / n

    @cached_property
    def cheapest(self) -> Evaluation:
        """Evaluation of the least-cost answers."""
        return self._evaluated(self.answers)

    @cached_property
    def shortest(self) -> Evaluation:
        """Evaluation of the shortest prefixes."""
        return self._evaluated(self.solve(best=shortest_prefix))

    def _evaluated(self, found: Projection) -> Evaluation:
        return evaluate(
            self.factual, found.points, weights=self.partition.weights,
            cardinality=found.cardinality, tau=found.rho - 1.0,
        )  # fmt: skip

    @cached_property
    def feasible(self) -> dict[int, int]:
        """Number of answers by the percentage of features that is fixed."""
        masks = zip(SHARES, self.draw.fixed, strict=True)
        return {share: int(self.solve(fixed).answered.sum()) for share, fixed in masks}

    @property
    def confirmed(self) -> float:
        """Share of the least-cost answers that the model's own predict puts into the target."""
        found = self.answers.answered
        return validity(self.answers.points[found], self.model, self.draw.targets[found])

    @property
    def explained(self) -> float:
        """Share of the rows for which `VoICE`, which asks for that too, has an answer."""
        voice = VoICE(self.model).fit(self.X)
        return float(
            voice.explain(self.factual, target=self.draw.targets, plausible=None).feasible.mean()
        )


class Study:
    """One dataset, and everything that the tables ask of it, computed when first asked for.

    Parameters
    ----------
    dataset : Dataset
    tick : callable
        Called after each of the fits of the pairwise comparison.
    """

    def __init__(self, dataset: Dataset, tick: Callable[[], None] = lambda: None) -> None:
        self.dataset, self.tick = dataset, tick
        self.trials = cache(self._trials)
        self._contraction = cache(self._contraction_of)

    @cached_property
    def X(self) -> Array:
        """The standardised data."""
        return self.dataset.standardised()

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

    def model(self, mode: str) -> Any:
        """Return the clustering of a mode."""
        return self.shark if mode == SHARK_MODE else self.kmeans

    def contraction(self, mode: str, rule: Rule) -> ContractionSummary:
        """Return how far the cells of a mode's clustering can be contracted."""
        return self._contraction(self.model(mode), rule)

    def _contraction_of(self, model: Any, rule: Rule) -> ContractionSummary:
        bounds = (self.X.min(axis=0), self.X.max(axis=0)) if rule == "box" else None
        floor, labels = PRINTED_FLOOR if rule == "printed" else 0.0, model.labels_
        return contraction_summary(model, self.X, labels=labels, bounds=bounds, floor=floor)

    def _trials(self, rule: Rule = "printed", paired: bool = False) -> dict[str, Trial]:
        trials = {}
        for mode, draw in self.draws(paired):
            alpha = np.maximum(self.contraction(mode, rule).alpha, LEAST_ALPHA)
            unranked = np.zeros(self.X.shape[1])
            ranking = unranked if mode == UNWEIGHTED else self.shark.feature_weights_
            order = np.argsort(-ranking, kind="stable")
            trials[mode] = Trial(self.X, draw, self.model(mode), alpha, order)
        return trials

    def draws(self, paired: bool = False) -> Iterator[tuple[str, Draw]]:
        """Draw the questions of the three modes.

        One generator serves all modes and is never reset, so that they see different targets and
        masks. Paired, it is put back for each mode, and SHARK's clusters are numbered as the
        k-means ones that they overlap most: a row whose two clusters match gets one target.
        """
        rng = np.random.default_rng(SEED)
        (n, d), k = self.X.shape, self.dataset.k
        rows = rng.choice(n, size=min(FACTUALS, n), replace=False)
        first_state = rng.bit_generator.state
        for name in MODES:
            labels = np.asarray(self.model(name).labels_, dtype=np.int64)
            if not paired:
                yield name, Draw.of(rng, rows, labels, k, d)
                continue
            rng.bit_generator.state = first_state
            number = self._matching if name == SHARK_MODE else np.arange(k)
            draw = Draw.of(rng, rows, number[labels], k, d)
            yield name, Draw(rows, np.argsort(number)[draw.targets], draw.fixed)

    @cached_property
    def _matching(self) -> Ints:
        """For each SHARK cluster, the k-means cluster that it is matched with."""
        labels = range(self.dataset.k)
        overlap = confusion_matrix(self.shark.labels_, self.kmeans.labels_, labels=labels)
        return np.asarray(linear_sum_assignment(overlap, maximize=True)[1])

    @cached_property
    def comparison(self) -> PairwiseStudy:
        """The pairwise projection, compared with the full one for every pair of fifty fits."""
        start, cpu = perf_counter(), process_time()
        found, fitting = PairwiseComparison(), 0.0
        for model, took in _fits(self.X, self.dataset.k):
            found += compare_pairwise(model, self.X, labels=model.labels_)
            fitting += took
            self.tick()
        return PairwiseStudy(found, perf_counter() - start, process_time() - cpu, fitting)


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
