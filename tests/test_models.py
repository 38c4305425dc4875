"""Every model with straight edges: answers land by its own predict, at the least cost.

The judge knows no partition. It asks the model's own scores (or follows its tree) for the rows of
every piece of a label, and solves one quadratic program a piece with DAQP.
"""

import pickle
import warnings
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import (
    DBSCAN,
    HDBSCAN,
    AffinityPropagation,
    AgglomerativeClustering,
    Birch,
    BisectingKMeans,
    KMeans,
    MeanShift,
    MiniBatchKMeans,
    SpectralClustering,
)
from sklearn.compose import ColumnTransformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Perceptron,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier

import judges
from problems import Problem
from voicecf import SHARK, Status, VoICE
from voicecf.errors import DataError, ModelError, OptionError, SavingError, TargetError
from voicecf.geometry.models import EXPLAINED, REFUSED

NUMBERS, NAMES = ["visits", "basket", "age"], ["visits", "basket", "city"]
CITIES = ["Bonn", "Oslo", "Rome"]
LEVELS = [np.array(["churn", "loyal", "new"]), np.array([7, 3, 5]), np.array([False, True, True])]


@cache
def table(n=90, seed=0):
    """Rows of two numbers and a category, in three groups, and the group of each."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    visits = np.clip(rng.normal(np.array([3, 9, 14])[group], 2.0), 0, 19).round()
    basket = np.clip(rng.normal(np.array([60, 25, 80])[group], 14.0), 1, 120).round(2)
    city = np.array(CITIES)[np.where(rng.random(n) < 0.7, group, rng.integers(0, 3, n))]
    age = np.clip(rng.normal(np.array([30, 50, 45])[group], 9.0), 18, 80).round(1)
    columns = {"visits": visits.astype(int), "basket": basket, "age": age, "city": city}
    return pd.DataFrame(columns), group


UNSUPERVISED = {
    "KMeans": KMeans(4, n_init=1, random_state=0),
    "MiniBatchKMeans": MiniBatchKMeans(4, n_init=1, random_state=0),
    "SHARK": SHARK(3, random_state=0),
    "MeanShift": MeanShift(bandwidth=0.45),
    "AffinityPropagation": AffinityPropagation(random_state=0),
    "BisectingKMeans": BisectingKMeans(5, random_state=0),
    "Birch": Birch(threshold=0.2, n_clusters=3),
    'GaussianMixture(covariance_type="tied")':
        GaussianMixture(3, covariance_type="tied", random_state=0, reg_covar=1e-3),
    'BayesianGaussianMixture(covariance_type="tied")': BayesianGaussianMixture(
        n_components=3, covariance_type="tied", random_state=0, reg_covar=1e-3, max_iter=500
    ),
}  # fmt: skip
SUPERVISED = {
    "NearestCentroid": NearestCentroid(),
    "NearestCentroid, shrunken": NearestCentroid(shrink_threshold=0.5, priors="empirical"),
    "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1),
    "LogisticRegression": LogisticRegression(),
    "RidgeClassifier": RidgeClassifier(),
    "LinearSVC": LinearSVC(random_state=0),
    "SGDClassifier": SGDClassifier(random_state=0),
    "Perceptron": Perceptron(random_state=0),
    "OneVsRestClassifier": OneVsRestClassifier(LogisticRegression()),
    "MultinomialNB": MultinomialNB(fit_prior=False),
    "ComplementNB": ComplementNB(),
    "BernoulliNB(binarize=None)": BernoulliNB(binarize=None),
    "DecisionTreeClassifier": DecisionTreeClassifier(random_state=0),
    "ExtraTreeClassifier": ExtraTreeClassifier(random_state=0),
    "KNeighborsClassifier(n_neighbors=1)": KNeighborsClassifier(1),
    "KNeighborsClassifier(n_neighbors=1), brute": KNeighborsClassifier(1, algorithm="brute"),
}
CASES = [(name, None) for name in UNSUPERVISED] + [
    (name, i) for name in SUPERVISED for i in range(3)
]


def steps():
    return ColumnTransformer(
        [("numbers", MinMaxScaler(), NAMES[:2]), ("city", OneHotEncoder(), ["city"])],
        sparse_threshold=0,
    )


@cache
def fitted(name, which, columns):
    """A pipeline that ends in the model, and its explainer; `which` chooses the kind of labels."""
    frame, group = table()
    frame = frame[list(columns)]
    model = UNSUPERVISED.get(name) or SUPERVISED[name]
    y = None if which is None else LEVELS[which][group]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = make_pipeline(
            steps() if "city" in columns else MinMaxScaler(), clone(model)
        ).fit(frame, y)
        return pipeline, VoICE(pipeline, contraction=1.0).fit(frame)


# The judge.


def probed(score, d):
    """Slopes and constants of affine functions, up to what all have in common, by asking them."""
    at = score(np.vstack([np.zeros(d), np.eye(d)]))
    if at.ndim == 1:
        at = np.column_stack([np.zeros(d + 1), at])
    at = at - at[:, :1]
    return (at[1:] - at[0]).T, at[0]


def leaves(model):
    """For each leaf of a tree: its label, and the rows of its way."""
    if hasattr(model, "tree_"):
        tree = model.tree_

        def border(threshold):
            """The largest number that, as a float32, is at most the threshold; by bisection."""
            low, high = np.float64(threshold) - 1e-3, np.float64(threshold) + 1e-3
            while (middle := (low + high) / 2) not in (low, high):
                low, high = (middle, high) if np.float32(middle) <= threshold else (low, middle)
            return low

        def follow(node, rows):
            if tree.children_left[node] < 0:
                yield model.classes_[tree.value[node, 0].argmax()], rows
                return
            axis, at = (
                np.eye(model.n_features_in_)[tree.feature[node]],
                border(tree.threshold[node]),
            )
            yield from follow(tree.children_left[node], [*rows, (axis, at)])
            yield from follow(tree.children_right[node], [*rows, (-axis, -at)])

        yield from follow(0, [])
        return

    def descend(node, rows):
        if node.left is None:
            yield node.label, rows
            return
        left, right = node.left.center + model._X_mean, node.right.center + model._X_mean
        normal, at = right - left, (right @ right - left @ left) / 2
        yield from descend(node.left, [*rows, (normal, at)])
        yield from descend(node.right, [*rows, (-normal, -at)])

    yield from descend(model._bisecting_tree, [])


def pieces(model):
    """For each piece of each label: the label, G and h of its rows G x <= h."""
    d = model.n_features_in_
    if hasattr(model, "tree_") or hasattr(model, "_bisecting_tree"):
        for label, rows in leaves(model):
            yield label, np.array([g for g, _ in rows]), np.array([h for _, h in rows])
        return
    labels = getattr(model, "classes_", None)
    if hasattr(model, "_fit_X"):
        centers, labels = model._fit_X, model.classes_[model._y]
    elif hasattr(model, "subcluster_centers_"):
        centers, labels = model.subcluster_centers_, model.subcluster_labels_
    elif hasattr(model, "cluster_centers_"):
        centers, labels = model.cluster_centers_, np.arange(len(model.cluster_centers_))
    elif (
        isinstance(model, NearestCentroid) and np.isclose(model.class_prior_, 1 / len(labels)).all()
    ):
        centers = model.centroids_
    else:
        centers = None
    if centers is not None:
        weights = getattr(model, "feature_weights_", np.ones(d))
        slopes, constants = probed(lambda x: -cdist(x, centers, "sqeuclidean", w=weights), d)
    elif hasattr(model, "decision_function"):
        slopes, constants = probed(model.decision_function, d)
    elif hasattr(model, "predict_joint_log_proba"):
        slopes, constants = probed(model.predict_joint_log_proba, d)
    else:
        slopes, constants = probed(model._estimate_weighted_log_prob, d)
        labels = np.arange(len(constants))
    for p, label in enumerate(labels):
        rivals = labels != label
        yield label, slopes[rivals] - slopes[p], constants[p] - constants[rivals]


def least(points, G, h, lo, hi, q):
    """Least energy of a move of one point into a polyhedron, by DAQP; infinite if there is none."""
    nothing = np.empty((1, 0))
    problem = Problem(
        "model", points, G, h, lo, hi, np.zeros(len(q)), q, (None,), nothing, nothing, 0, 0
    )
    found = judges.daqp_solution(problem, 0)
    return 2 * float(found.value.cost) if found.good else np.inf


def best(model, x, target, q, lo, hi):
    """Least energy over all pieces of a label."""
    found = np.inf
    for label, G, h in pieces(model):
        if label == target:
            found = min(found, least(x[None], G, h, lo, hi, q))
    return found


def is_close(energy, judged):
    return abs(np.sqrt(energy) - np.sqrt(judged)) <= 1e-7 * np.sqrt(judged) + 1e-9


def misses(pipeline, voice, cf):
    """Answers that the user's own model puts elsewhere, in a batch or alone."""
    found = cf.to_frame()[cf.feasible]
    if not len(found):
        return 0
    wanted = voice.partition_.called(cf.target[cf.feasible])
    together = pipeline.predict(found)
    alone = [pipeline.predict(found[i : i + 1])[0] for i in range(len(found))]
    return int((together != wanted).sum() + (np.array(alone) != wanted).sum())


def asked(name, which, count, columns, seed=1):
    """Rows, and a target for each that is another label."""
    pipeline, voice = fitted(name, which, tuple(columns))
    rng = np.random.default_rng(seed)
    rows = table(max(count, 3), seed)[0][columns][:count]
    k = voice.partition_.n_clusters
    target = (voice.learned_.read(rows)[1] + rng.integers(1, k, count)) % k
    return pipeline, voice, rows, target


def judge_numbers(name, which, count):
    """Numbers, one of which may only rise: one projection for each piece."""
    pipeline, voice, rows, target = asked(name, which, count, NUMBERS)
    targets = voice.partition_.called(target).tolist()
    cf = voice.explain(rows, targets, increase_only="age", steps={"visits": None}, plausible=None)
    assert misses(pipeline, voice, cf) == 0
    x, q = np.ascontiguousarray(pipeline[:-1].transform(rows)), voice.weights_ + 1e-9
    for i in range(count):
        lo, hi = np.array([0.0, 0.0, max(x[i, 2], 0.0)]), np.ones(3)
        judged = np.inf if lo[2] > 1 else best(pipeline[-1], x[i], targets[i], q, lo, hi)
        if cf.feasible[i]:
            energy = (q * (cf.points[i] - x[i]) ** 2).sum()
            assert is_close(energy, judged), (name, i, energy, judged)
        else:
            assert cf.status[i] == Status.INFEASIBLE, (name, i, cf.status[i], judged)
            assert judged == np.inf
    return len(cf), int(cf.feasible.sum())


def judge_categories(name, which, count):
    """Everything is free, visits are whole: every level and number of visits is tried."""
    pipeline, voice, rows, target = asked(name, which, count, NAMES, seed=2)
    targets = voice.partition_.called(target).tolist()
    cf = voice.explain(rows, targets, constraints="visits + 0.1*basket <= 22", plausible=None)
    found = cf.to_frame()[cf.feasible]
    assert misses(pipeline, voice, cf) == 0
    assert (found["visits"] + 0.1 * found["basket"] <= 22 + 1e-9).all()
    assert (found["visits"] == found["visits"].round()).all()
    model, numbers = pipeline[-1], pipeline[0].named_transformers_["numbers"]
    q, whole = voice.weights_ + 1e-9, np.arange(20)
    codes = np.eye(3)
    for i in range(min(count, 4)):
        x = pipeline[:-1].transform(rows[i : i + 1])[0]
        judged = np.inf
        for level, v in product(range(3), whole):
            most = min((22 - v) / 0.1, voice.hi_[1])
            side = numbers.transform(pd.DataFrame({"visits": [v], "basket": [most]}))[0]
            if not (0 <= side[0] <= 1 and side[1] >= 0):
                continue
            lo = np.r_[side[0], 0.0, codes[level]]
            hi = np.r_[side[0], side[1], codes[level]]
            away = (q * np.maximum(np.maximum(lo - x, x - hi), 0) ** 2).sum()
            if away < judged:
                judged = min(judged, best(model, x, targets[i], q, lo, hi))
        if cf.status[i] == Status.OPTIMAL:
            energy = (q * (cf.points[i] - x) ** 2).sum()
            assert is_close(energy, judged), (name, i, energy, judged)
        else:
            assert cf.status[i] == Status.INFEASIBLE, (name, i, cf.status[i], judged)
            assert judged == np.inf
    return len(cf), int(cf.feasible.sum())


@pytest.mark.parametrize(("name", "which"), CASES)
def test_answers_land_at_the_least_cost(name, which):
    assert judge_numbers(name, which, 12)[1] > 0


@pytest.mark.parametrize(("name", "which"), [case for case in CASES if case[1] in (None, 0)])
def test_whole_numbers_and_categories_land_at_the_least_cost(name, which):
    assert judge_categories(name, which, 6)[1] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "which"), [case for case in CASES if case[1] in (None, 0, 2)])
def test_two_thousand_answers_land_at_the_least_cost(name, which):
    count = 1000 if which is not None else 2000
    judge_numbers(name, which, count)
    pipeline, voice, rows, target = asked(name, which, count, NAMES, seed=3)
    targets = voice.partition_.called(target).tolist()
    assert misses(pipeline, voice, voice.explain(rows, targets, plausible=None)) == 0


def test_explain_and_predict_speak_in_the_labels_of_the_model():
    frame, group = table()
    for which, y in enumerate(levels[group] for levels in LEVELS):
        pipeline = make_pipeline(steps(), LogisticRegression()).fit(frame, y)
        voice = VoICE(clone(pipeline)).fit(frame, y)
        np.testing.assert_array_equal(voice.predict(frame), pipeline.predict(frame))
        assert voice.predict(frame).dtype == pipeline.predict(frame).dtype
        label = pipeline.classes_[-1].item()
        cf = voice.explain(frame[:8], target=label, plausible=None)
        assert (pipeline.predict(cf.to_frame()) == label).all()
        each = voice.explain(frame[:3], target=[label, pipeline.classes_[0], label], plausible=None)
        assert (pipeline.classes_[each.target] == [label, pipeline.classes_[0], label]).all()
        name = label if which == 0 else f"class {label}"
        assert voice.learned_.names[-1] == name
        assert name in cf.text(0)
    with pytest.raises(
        TargetError, match=r"target=2 is no class of this model: it has False, True"
    ):
        voice.explain(frame, target=2, plausible=None)
    named = VoICE(LogisticRegression(), names={7: "loyal"}).fit(
        frame[NUMBERS[:2]], LEVELS[1][group]
    )
    assert named.learned_.names == ("class 3", "class 5", "loyal")
    assert (named.explain(frame[NUMBERS[:2]][:4], "loyal", plausible=None).target == 2).all()
    with pytest.raises(OptionError, match=r"names\[0\] names no class: this model has 3, 5, 7"):
        VoICE(LogisticRegression(), names={0: "a"}).fit(frame[NUMBERS[:2]], LEVELS[1][group])


def test_a_classifier_needs_labels_unless_it_is_fitted():
    frame, group = table()
    with pytest.raises(DataError, match=r"LogisticRegression learns from labels.*fit\(X, y\)"):
        VoICE(make_pipeline(steps(), LogisticRegression())).fit(frame)
    fitted_one = make_pipeline(steps(), LogisticRegression()).fit(frame, group)
    assert VoICE(fitted_one).fit(frame).predict(frame[:1]).shape == (1,)


def test_a_tree_that_compares_in_single_precision_is_met_exactly():
    rng = np.random.default_rng(0)
    X = (rng.integers(0, 40, (300, 2)) / 10).astype(float)
    model = DecisionTreeClassifier(random_state=0).fit(X, (X.sum(axis=1) > 4).astype(int))
    voice = VoICE(model, contraction=1.0).fit(X)
    cf = voice.explain(X, steps={0: 0.05, 1: 0.05}, plausible=None)
    values = np.arange(0, 79) / 20
    grid = np.array(list(product(values, values)))
    label = model.predict(grid)
    assert (model.predict(cf.points) == cf.target).all()
    for i in range(0, 300, 5):
        judged = (((grid[label == cf.target[i]] - X[i]) ** 2).mean(axis=1)).min()
        assert cf.cost[i] == pytest.approx(judged, rel=1e-9)


def test_scores_without_a_model_are_explained_saved_and_loaded(tmp_path):
    rng = np.random.default_rng(0)
    A, b, X = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=(40, 3))
    voice = VoICE.from_scores(A, b, classes=["a", "b", "c", "d"], contraction=0.9)
    won = np.array(["a", "b", "c", "d"])[(X @ A.T + b).argmax(axis=1)]
    np.testing.assert_array_equal(voice.predict(X), won)
    cf = voice.explain(X, "c", plausible=None)
    assert ((cf.points[cf.feasible] @ A.T + b).argmax(axis=1) == 2).all()
    voice.save(tmp_path / "scores.voicecf")
    again = VoICE.load(tmp_path / "scores.voicecf")
    np.testing.assert_array_equal(again.explain(X, "c", plausible=None).points, cf.points)
    np.testing.assert_array_equal(again.predict(X), won)


def test_a_label_that_never_wins_cannot_be_had():
    A, b = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.0]]), np.array([0.0, 0.0, -1.0])
    for contraction in (1.0, 0.5):
        cf = VoICE.from_scores(A, b, contraction=contraction).explain(
            [[3.0, 1.0]], [2], plausible=None
        )
        assert cf.status[0] == Status.INFEASIBLE
        assert "cluster 0" in cf.reason(0).text


WRONG = {
    "shape": ([1.0, 2.0], [1.0]), "text": ([["a"], ["b"]], [0, 1]), "one": ([[1.0]], [0.0]),
    "nan": ([[np.nan], [1.0]], [0.0, 1.0]), "flat": ([[0.0], [0.0]], [0.0, 1.0]),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_are_no_scores_is_refused(what):
    with pytest.raises(ModelError):
        VoICE.from_scores(*WRONG[what])


NOT_EXPLAINED = {
    "SVC": (SVC(), "curved.*LinearSVC"),
    "GaussianNB": (GaussianNB(), "curved.*LinearDiscriminantAnalysis"),
    "QDA": (QuadraticDiscriminantAnalysis(), "curved.*LinearDiscriminantAnalysis"),
    "forest": (RandomForestClassifier(3), "vote.*DecisionTreeClassifier"),
    "MLP": (MLPClassifier(), "LogisticRegression"),
    "DBSCAN": (DBSCAN(), "no predict.*KNeighborsClassifier"),
    "HDBSCAN": (HDBSCAN(), "no predict.*KNeighborsClassifier"),
    "spectral": (SpectralClustering(2), "no predict.*KNeighborsClassifier"),
    "agglomerative": (AgglomerativeClustering(2), "no predict.*KNeighborsClassifier"),
    "KNN": (KNeighborsClassifier(3), "n_neighbors=1"),
    "KNN of another distance": (KNeighborsClassifier(1, metric="manhattan"), "manhattan.*bent"),
    "centroids of another distance": (NearestCentroid(metric="manhattan"), "manhattan.*bent"),
    "full mixture": (GaussianMixture(2), "full.*curved.*tied"),
    "diagonal mixture": (BayesianGaussianMixture(covariance_type="diag"), "diag.*curved.*tied"),
    "cut inputs": (BernoulliNB(), "binarize=None"),
    "regression": (LinearRegression(), "number and no label"),
    "regression tree": (DecisionTreeRegressor(), "number and no label"),
    "one against the rest": (OneVsRestClassifier(GaussianNB()), "linear"),
}


@pytest.mark.parametrize("what", NOT_EXPLAINED)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_without_straight_edges_is_refused_with_the_reason(what):
    model, words = NOT_EXPLAINED[what]
    frame, group = table()
    with pytest.raises(ModelError, match=rf"(?s)cannot be explained exactly: .*{words}"):
        VoICE(model).fit(frame[NUMBERS], group)
    if hasattr(model, "predict"):
        with pytest.raises(ModelError, match="cannot be explained exactly"):
            VoICE(clone(model).fit(frame[NUMBERS], group)).fit(frame[NUMBERS])


FOR_PICKLE_ONLY = ("Bisecting", "Birch", "Decision", "ExtraTree", "KNeighbors")


@pytest.mark.parametrize(("name", "which"), [case for case in CASES if case[1] in (None, 1)])
def test_an_explainer_answers_the_same_after_it_is_saved_and_loaded(name, which, tmp_path):
    _, voice, rows, _ = asked(name, which, 6, NAMES)
    before = voice.explain(rows, plausible=None)
    copies = [pickle.loads(pickle.dumps(voice))]
    if name.startswith(FOR_PICKLE_ONLY):
        with pytest.raises(SavingError, match=r"not safe to load|cannot be saved"):
            voice.save(tmp_path / "it.voicecf")
    else:
        voice.save(tmp_path / "it.voicecf")
        copies.append(VoICE.load(tmp_path / "it.voicecf"))
    for copy in copies:
        after = copy.explain(rows, plausible=None)
        assert before.to_json() == after.to_json()
        np.testing.assert_array_equal(before.points, after.points)
        np.testing.assert_array_equal(voice.predict(rows), copy.predict(rows))


@pytest.mark.parametrize("share", [0.5, 0.8, 0.99])
def test_answers_have_the_probability_that_is_asked_for_at_the_least_cost(share):
    frame, group = table()
    pipeline = make_pipeline(MinMaxScaler(), LogisticRegression(C=30)).fit(
        frame[NUMBERS], np.where(group == 0, "churn", "stay")
    )
    voice = VoICE(pipeline, contraction=1.0).fit(frame[NUMBERS])
    rows, model = frame[NUMBERS], pipeline[-1]
    rows = rows[pipeline.predict(rows) == "stay"]
    cf = voice.explain(rows, "churn", probability=share, steps={"visits": None}, plausible=None)
    assert cf.feasible.all()
    found = cf.to_frame()
    assert (pipeline.predict_proba(found)[:, 0] >= share).all()
    alone = [pipeline.predict_proba(found[i : i + 1])[0, 0] for i in range(len(found))]
    assert (np.array(alone) >= share).all()
    q, x = voice.weights_ + 1e-9, pipeline[:-1].transform(rows)
    odds = np.log(share / (1 - share))
    for i in range(len(rows)):
        judged = least(
            x[i : i + 1], model.coef_, -odds - model.intercept_, np.zeros(3), np.ones(3), q
        )
        assert is_close((q * (cf.points[i] - x[i]) ** 2).sum(), judged)
    whole = voice.explain(rows, "churn", probability=share, plausible=None)
    found = whole.to_frame()[whole.feasible]
    assert whole.feasible.sum() > 5
    assert (pipeline.predict_proba(found)[:, 0] >= share).all()
    none = voice.explain(rows, "churn", probability=0.9999999, plausible=None)
    i = int(np.flatnonzero(none.status == Status.INFEASIBLE)[0])
    assert "a probability of at least" in none.reason(i).text


def test_a_probability_is_refused_where_it_has_no_plane():
    frame, group = table()
    for model in (LogisticRegression(max_iter=2000), RidgeClassifier(), DecisionTreeClassifier()):
        voice = VoICE(model).fit(frame[NUMBERS], group)
        with pytest.raises(OptionError, match="needs a logistic regression of two classes"):
            voice.explain(frame[NUMBERS], 0, probability=0.8, plausible=None)
    with pytest.raises(OptionError, match="probability=2 must be a number above 0"):
        voice.explain(frame[NUMBERS], 0, probability=2, plausible=None)


def test_the_page_names_every_model_that_is_explained_or_refused():
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "models.md").read_text("utf-8")
    explained, refused = page.split("## What is not")
    for name, pieces in EXPLAINED.items():
        assert f"| `{name}` | {pieces} |" in explained
        tested = {case.partition(",")[0] for case in (*UNSUPERVISED, *SUPERVISED)}
        assert name in tested | {"KMedoids"}
    for name in REFUSED:
        assert f"`{name}`" in refused


def test_models_of_other_libraries_are_known_by_their_attributes():
    class Vector(list):
        """As a vector of Spark: a sequence that numpy reads."""

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    centers = np.array([[-1.0, 0.0], [1.0, 0.5], [0.0, 2.0]])
    spark = SimpleNamespace(clusterCenters=lambda: [Vector(c) for c in centers], predict=print)
    # As with FAISS, a handle to compiled code cannot be copied.
    faiss = SimpleNamespace(centroids=centers.astype(np.float32), index=(_ for _ in ()))
    want = VoICE.from_centers(centers).explain(X, 1, plausible=None).points
    for model in (spark, faiss):
        cf = VoICE(model, contraction=1.0, bounds=None).fit(X).explain(X, 1, plausible=None)
        np.testing.assert_allclose(cf.points, want, atol=1e-12)

    def leaf(cluster):
        return SimpleNamespace(left=None, right=None, feature=None, value=cluster)

    def node(feature, value, left, right):
        return SimpleNamespace(left=left, right=right, feature=feature, value=value)

    class ExKMC(BaseEstimator):
        def __init__(self):
            self.tree = node(0, 0.25, leaf(0), node(1, -0.5, leaf(1), leaf(0)))

        def fit(self, X, y=None):
            self.n_features_in_ = 2
            return self

        def predict(self, X):
            return np.where((X[:, 0] > 0.25) & (X[:, 1] <= -0.5), 1, 0)

    voice = VoICE(ExKMC().fit(X), contraction=1.0).fit(X)
    cf = voice.explain(X, plausible=None)
    assert (ExKMC().predict(cf.points) == cf.target).all()
    corner = np.maximum([0.25, -np.inf] - X, 0), np.minimum([np.inf, -0.5] - X, 0)
    away = voice.predict(X) == 0
    np.testing.assert_allclose(
        cf.cost[away], ((corner[0] + corner[1])[away] ** 2).mean(axis=1), atol=1e-12
    )


@pytest.mark.parametrize(("name", "which"), [case for case in CASES if case[1] in (None, 1)])
def test_multipliers_prove_that_no_point_of_the_piece_is_cheaper(name, which):
    pipeline, _, rows, target = asked(name, which, 10, NUMBERS)
    voice = VoICE(pipeline, contraction=1.0, bounds=None).fit(table()[0][NUMBERS])
    cf = voice.explain(
        rows, voice.partition_.called(target).tolist(), steps={"visits": None}, plausible=None
    )
    q, x = voice.weights_ + 1e-9, pipeline[:-1].transform(rows)
    assert (cf.status == Status.OPTIMAL).all()
    for i in range(len(rows)):
        piece = voice.partition_.piece(int(cf.outcome.piece[i]))
        mu, slack = cf.multipliers[i][piece.columns], piece.slack(cf.points[i])
        assert (mu >= 0).all()
        assert (slack >= 0).all()
        assert np.abs(mu * slack).max() < 1e-9
        pull = q * (cf.points[i] - x[i])
        np.testing.assert_allclose(pull, -piece.normals.T @ mu, atol=1e-9)


def test_partitions_of_a_dask_frame_are_answered_as_the_whole_table():
    dd = pytest.importorskip("dask.dataframe")
    _, voice, rows, _ = asked("LogisticRegression", 0, 12, NAMES)
    whole = voice.explain(rows, "new", plausible=None)
    parts = voice.explain(dd.from_pandas(rows, npartitions=3), "new", plausible=None).compute()
    np.testing.assert_array_equal(parts["basket"], whole.to_frame()["basket"])
    assert set(parts["voicecf_target"]) == {"new"}
    tree = VoICE(asked("DecisionTreeClassifier", 0, 3, NAMES)[0])
    tree.fit(dd.from_pandas(table()[0][NAMES], npartitions=2))
    assert (tree.predict(rows) == tree.model_.predict(rows)).all()
    with pytest.raises(DataError, match="fit the classifier first"):
        VoICE(LogisticRegression()).fit(dd.from_pandas(rows, npartitions=2), [0] * 12)


def test_nearest_rows_that_contradict_each_other_are_refused():
    X, y = [[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]
    with pytest.raises(ModelError, match=r"equal rows.*different labels.*without such duplicates"):
        VoICE(KNeighborsClassifier(1)).fit(X, y)
    voice = VoICE(KNeighborsClassifier(1), contraction=1.0).fit(X, [0, 0, 0, 1])
    assert voice.explain([[0.0]], 1, plausible=None).points[0, 0] == pytest.approx(1.5)
