"""The paper's printed digits are the judge, of questions drawn as its experiments drew them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from voicecf import CFCLUST, SHARK, VoICE

CLUSTERS = {"Iris": 3, "Wine": 3, "Breast Cancer": 2}
LOADERS = {"Iris": load_iris, "Wine": load_wine, "Breast Cancer": load_breast_cancer}
SHARES = (0.25, 0.50, 0.75)

# Tables least_cost, parsimony and actionability, as printed.
PRINTED = {
    "Iris": {
        "changed_features_pct": "99.8", "cost": "1.258", "tau": "2.144",
        "r_star": "1.79", "r_star_over_d": "0.448", "single_feature_pct": "35.3",
        "prefix tau": "0.697", "fixed_0": "100.0", "fixed_25": "93.3", "fixed_50": "66.7",
        "fixed_75": "24.0",
    },
    "Wine": {
        "changed_features_pct": "99.4", "cost": "0.528", "tau": "1.402",
        "r_star": "3.28", "r_star_over_d": "0.252", "single_feature_pct": "8.0",
        "prefix tau": "0.222", "fixed_0": "100.0", "fixed_25": "100.0", "fixed_50": "98.7",
        "fixed_75": "39.3",
    },
    "Breast Cancer": {
        "changed_features_pct": "100.0", "cost": "0.496", "tau": "2.812",
        "r_star": "3.88", "r_star_over_d": "0.129", "single_feature_pct": "5.3",
        "prefix tau": "0.099", "fixed_0": "100.0", "fixed_25": "100.0", "fixed_50": "100.0",
        "fixed_75": "88.7",
    },
}  # fmt: skip

# Table contraction: min, median, max of alpha*, median of the median scores.
CONTRACTION = {
    ("Iris", KMeans): "0.851 0.957 0.984 0.079",
    ("Iris", SHARK): "0.305 0.861 0.928 0.000",
    ("Wine", KMeans): "0.891 0.915 0.945 0.127",
    ("Wine", SHARK): "0.940 0.961 0.996 0.079",
    ("Breast Cancer", KMeans): "0.986 0.989 0.992 0.094",
    ("Breast Cancer", SHARK): "0.992 0.992 0.992 0.079",
}

# Exact counts of valid pairwise answers in fifty clusterings, as released; table validity: the
# mean squared distance from an invalid one to the row's own projection onto the cell.
VALID = {"Iris": (10_885, "0.776"), "Wine": (15_285, "0.460")}


@cache
def data(name: str) -> np.ndarray:
    X = LOADERS[name]().data.copy()
    if name == "Iris":  # UCI's version
        X[34, 3], X[37, 1], X[37, 2] = 0.1, 3.1, 1.5
    return StandardScaler().fit_transform(X)


@cache
def fitted(name: str, kind: type) -> KMeans | SHARK:
    return kind(CLUSTERS[name], n_init=10, max_iter=300, tol=1e-4, random_state=42).fit(data(name))


def modes(name: str) -> list[VoICE]:
    kmeans, shark = fitted(name, KMeans), fitted(name, SHARK)
    unweighted = VoICE(kmeans, ranking="columns")
    ranked = VoICE(kmeans, ranking=shark.feature_weights_)
    weighted = VoICE(shark)
    return [voice.fit(data(name)) for voice in (unweighted, ranked, weighted)]


def draws(rng: np.random.Generator, source: np.ndarray, k: int, d: int):
    """Targets, and the fixed columns at 25, 50 and 75 %, row by row from one generator."""
    targets, masks = [], []
    for own in source:
        targets.append(int(rng.choice([c for c in range(k) if c != own])))
        sizes = [min(round(d * share), d - 1) for share in SHARES]
        masks.append([rng.choice(d, size=size, replace=False) for size in sizes])
    return np.array(targets), masks


def measured(voice: VoICE, X: np.ndarray, targets: np.ndarray, masks: list) -> dict[str, float]:
    cheap = voice.explain(X, target=targets, plausible=None)
    short = voice.explain(X, target=targets, objective="prefix", plausible=None)
    assert cheap.feasible.all()
    found = {
        "changed_features_pct": 100 * np.mean(abs(cheap.points - X) > 1e-9),
        "cost": cheap.cost.mean(),
        "tau": cheap.tau.mean(),
        "r_star": short.cardinality[short.feasible].mean(),
        "r_star_over_d": short.cardinality[short.feasible].mean() / X.shape[1],
        "single_feature_pct": 100 * np.mean(short.feasible & (short.cardinality == 1)),
        "prefix tau": short.tau[short.feasible].mean(),
        "fixed_0": 100 * short.feasible.mean(),
    }
    for j, share in enumerate(SHARES):
        answered = [
            voice.explain(
                X[[i]], target=targets[i], immutable=masks[i][j], objective="prefix", plausible=None
            ).feasible[0]
            for i in range(len(X))
        ]
        found[f"fixed_{share:.0%}"[:-1]] = 100 * np.mean(answered)
    return found


@pytest.mark.parametrize("name", CLUSTERS)
def test_cost_tolerance_parsimony_and_actionability_come_out_as_printed(name):
    X, k = data(name), CLUSTERS[name]
    rng = np.random.default_rng(42)
    rows = rng.choice(len(X), size=50, replace=False)
    tables = []
    for voice in modes(name):
        targets, masks = draws(rng, voice.model.predict(X)[rows], k, X.shape[1])
        tables.append(measured(voice, X[rows], targets, masks))
    for column, printed in PRINTED[name].items():
        digits = len(printed.partition(".")[2])
        mean = np.mean([table[column] for table in tables])
        assert f"{mean:.{digits}f}" == printed, column


@pytest.mark.parametrize(("name", "kind"), CONTRACTION)
def test_contraction_comes_out_as_printed(name, kind):
    X, model = data(name), fitted(name, kind)
    voice = VoICE(model).fit(X)
    labels = model.predict(X)
    scores = [np.median(voice.cell(t).scores(X[labels == t])) for t in range(CLUSTERS[name])]
    alpha = voice.alpha_
    found = alpha.min(), np.median(alpha), alpha.max(), np.median(scores)
    assert " ".join(f"{value:.3f}" for value in found) == CONTRACTION[name, kind]


@pytest.mark.parametrize("name", VALID)
def test_pairwise_answers_are_valid_as_often_as_counted_and_miss_by_as_much_as_printed(name):
    X, k = data(name), CLUSTERS[name]
    valid, repairs = 0, []
    for i in range(50):
        model = KMeans(k, n_init=1, max_iter=300, tol=1e-4, random_state=42 + i).fit(X)
        pairs = CFCLUST(model).fit(X).explain(X, target="each")
        valid += int(pairs.feasible.sum())
        missed = pairs[~pairs.feasible]
        voice = VoICE.from_centers(model.cluster_centers_)
        repaired = voice.explain(X[missed.row], target=missed.target, plausible=None)
        assert repaired.feasible.all()
        repairs.append(((repaired.points - missed.points) ** 2).sum(axis=1))
    count, cost = VALID[name]
    assert valid == count
    assert f"{np.concatenate(repairs).mean():.3f}" == cost
