"""How fitted models become partitions: the table of adapters, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from voicecf.errors import ModelError
from voicecf.geometry.arithmetic import Arithmetic
from voicecf.geometry.arrays import Array
from voicecf.geometry.centroids import Centroids
from voicecf.geometry.cuts import MOST_CUTS, Cuts
from voicecf.geometry.partition import Partition
from voicecf.geometry.scores import Scores, only_first, ordered


def partition_of(model: Any) -> Partition:
    """Return how a fitted model divides the space of its inputs.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from voicecf.geometry.models import partition_of
    >>> model = KMeans(2, n_init=1, random_state=0).fit([[0.0], [1.0], [8.0], [9.0]])
    >>> partition_of(model).n_clusters
    2
    """
    if isinstance(model, Pipeline):
        raise ModelError(
            "a Pipeline is explained by VoICE(pipeline).fit(X); here its last step is needed, "
            "pipeline[-1], and the rows that it gets, pipeline[:-1].transform(X)."
        )
    check_straight(model)
    for attribute, adapter in ADAPTERS.items():
        if getattr(model, attribute, None) is not None:
            return adapter(model)
    raise ModelError(
        f"{type(model).__name__} has no cluster_centers_, nor what else tells straight borders. "
        "voicecf explains models such as KMeans, GaussianMixture(covariance_type='tied'), "
        "LogisticRegression and DecisionTreeClassifier; for others give the numbers: "
        "VoICE.from_centers(centers) or VoICE.from_scores(A, b)."
    )


def is_explained(model: Any) -> bool:
    """Tell whether a model has an attribute that makes a partition of it."""
    return any(hasattr(model, attribute) for attribute in ADAPTERS)


def check_straight(model: Any) -> None:
    """Raise ModelError for a model that is known to have no straight borders, fitted or not."""
    for kind in type(model).__mro__:
        if kind.__name__ in REFUSED:
            raise _refused(model, REFUSED[kind.__name__])


def _refused(model: Any, reason: str) -> ModelError:
    return ModelError(f"{type(model).__name__} cannot be explained exactly: {reason}")


def _attributes(model: Any, numbers: Any, labels: Any = None) -> dict[str, Any]:
    """Return what partitions of a model have in common; `numbers` are those it computes with."""
    dtype = np.dtype(np.float32 if np.asarray(numbers).dtype == np.float32 else np.float64)
    classes = getattr(model, "classes_", None) if labels is None else labels
    if isinstance(classes, list):
        raise _refused(model, "it has several outputs; fit one model for each column of y.")
    return {
        "model": model, "trusted": False, "dtype": dtype,
        "arithmetic": Arithmetic("expanded", float(np.finfo(dtype.type).eps)),
        "classes": None if classes is None else tuple(np.asarray(classes).tolist()),
    }  # fmt: skip


def _euclidean(model: Any) -> None:
    """Refuse a model of another distance, whose borders are not straight."""
    metric = getattr(model, "effective_metric_", getattr(model, "metric", "euclidean"))
    if metric not in ("euclidean", "sqeuclidean", "l2"):
        raise _refused(
            model,
            f'with metric="{metric}" its borders are bent; only with metric="euclidean" they are '
            "straight.",
        )


def _of_centers(model: Any) -> Centroids:
    """Return k-means, mean shift, affinity propagation, medoids: the nearest center."""
    _euclidean(model)
    return Centroids.of(model)


def _two_or_more(slopes: Any, constants: Any, classes: Any) -> tuple[Array, Array]:
    """Return a score for each class: one score alone says how far above 0 the second class is."""
    slopes = slopes.toarray() if hasattr(slopes, "toarray") else np.asarray(slopes)
    slopes = np.atleast_2d(slopes)
    constants = np.broadcast_to(np.asarray(constants, dtype=np.float64).ravel(), slopes.shape[:1])
    if len(slopes) == 1 and len(classes) == 2:
        slopes = np.vstack([np.zeros_like(slopes), slopes])
        constants = np.append(0.0, constants)
    return slopes, constants


def _linear(model: Any) -> Scores:
    """Return a linear classifier: the highest decision function."""
    if not hasattr(model, "classes_"):
        raise _refused(model, "it predicts a number and no label; use a classifier.")
    attributes = _attributes(model, model.coef_)
    slopes, constants = _two_or_more(model.coef_, model.intercept_, model.classes_)
    if len(slopes) != len(model.classes_):
        raise _refused(model, "its labels are not those of its highest score.")
    logistic = type(model).__name__ in ("LogisticRegression", "LogisticRegressionCV")
    return Scores.of_scores(slopes, constants, logistic=logistic, **attributes)


def _one_vs_rest(model: Any) -> Scores:
    """Return linear classifiers of one class each against the rest."""
    if not hasattr(model, "label_binarizer_"):
        raise _refused(model, "it combines models whose votes have no straight borders.")
    if getattr(model, "multilabel_", False):
        raise _refused(model, "a row has several labels; explain model.estimators_ one by one.")
    rows = []
    for one in model.estimators_:
        if hasattr(one, "coef_"):
            slopes, constants = _two_or_more(one.coef_, one.intercept_, ())
        elif hasattr(one, "y_"):  # a class that no row, or that every row has
            slopes, constants = np.zeros((1, model.n_features_in_)), np.ravel(one.y_)[:1]
        else:
            raise _refused(model, "only with linear classifiers its borders are straight.")
        rows.append((slopes[0], constants[0]))
    slopes, constants = _two_or_more([a for a, _ in rows], [b for _, b in rows], model.classes_)
    return Scores.of_scores(slopes, constants, **_attributes(model, slopes))


def _mixture(model: Any) -> Scores:
    """Return a mixture of Gaussians of one covariance: squares are the same in all scores."""
    if model.covariance_type != "tied":
        raise _refused(
            model,
            f'with covariance_type="{model.covariance_type}" its borders are curved; with '
            'covariance_type="tied" they are straight.',
        )
    root, means = np.asarray(model.precisions_cholesky_), np.asarray(model.means_)
    constants = model._estimate_weighted_log_prob(np.zeros((1, means.shape[1])))[0]
    return Scores.of_scores(
        means @ root @ root.T, constants, squares=root.T, anchors=means,
        **_attributes(model, means),
    )  # fmt: skip


def _nearest_mean(model: Any) -> Scores:
    """Return the nearest centroid of a class, in units of deviations if classes have priors."""
    _euclidean(model)
    means, classes = np.asarray(model.centroids_), len(model.classes_)
    deviations, shift = np.ones(means.shape[1]), np.zeros(classes)
    priors = np.asarray(getattr(model, "class_prior_", np.full(classes, 1.0 / classes)))
    if not np.isclose(priors, 1.0 / classes).all():
        spread = np.asarray(model.within_class_std_dev_)
        deviations = np.where(spread == 0.0, 1.0, spread)
        shift = np.log(priors)
    half = -0.5 * ((means / deviations) ** 2).sum(axis=1)
    return Scores.of_scores(
        means / deviations**2, half + shift, squares=np.diag(1.0 / deviations),
        anchors=means, **_attributes(model, means),
    )  # fmt: skip


def _naive_bayes(model: Any) -> Scores:
    """Return a naive Bayes classifier of counts, or of numbers between 0 and 1."""
    slopes, constants = model.feature_log_prob_, getattr(model, "class_log_prior_", 0.0)
    if isinstance(slopes, list):
        raise _refused(model, "its inputs are codes; one-hot encode them and use BernoulliNB.")
    reach = np.abs(slopes)
    if hasattr(model, "binarize"):
        if model.binarize is not None:
            raise _refused(
                model,
                "it cuts its inputs to 0 and 1; use BernoulliNB(binarize=None), or a "
                "DecisionTreeClassifier.",
            )
        never = np.log(1.0 - np.exp(slopes))
        slopes, reach = slopes - never, reach + np.abs(never)
        constants = constants + never.sum(axis=1)
        return Scores.of_scores(
            slopes, constants, sizes=np.abs(constants) + np.abs(never).sum(axis=1), reach=reach,
            **_attributes(model, slopes),
        )  # fmt: skip
    if hasattr(model, "feature_all_"):  # complement naive Bayes has no prior
        constants = np.zeros(len(slopes))
    return Scores.of_scores(slopes, constants, **_attributes(model, slopes))


def _nearest_row(model: Any) -> Scores:
    """Return the label of the nearest row of the training data."""
    if getattr(model, "n_neighbors", None) != 1 or not hasattr(model, "classes_"):
        raise _refused(
            model,
            "only the one nearest neighbor has straight borders; use "
            "KNeighborsClassifier(n_neighbors=1).",
        )
    _euclidean(model)
    attributes = _attributes(model, model._fit_X)
    if hasattr(model._fit_X, "toarray"):
        raise _refused(model, "its rows are sparse; fit it on an array.")
    first = only_first(model._fit_X)
    if len(first) < len(only_first(np.column_stack([model._fit_X, model._y]))):
        raise _refused(
            model,
            "equal rows of its training data have different labels, so that its predict takes one "
            "by chance; fit it on rows without such duplicates.",
        )
    return Scores.nearest(model._fit_X[first], model._y[first], **attributes)


def _subclusters(model: Any) -> Scores:
    """Return Birch: a label is a union of sub-clusters."""
    label_of, classes = ordered(model.subcluster_labels_)
    attributes = _attributes(model, model.subcluster_centers_, classes)
    return Scores.nearest(model.subcluster_centers_, label_of, **attributes)


# A cut of a tree: normal, offset, reach, size of its constants, and what is left and right of it.
Cut = tuple[Array, float, Array, float, Any, Any]


def _tree(root: Any, cut_at: Callable[[Any], Cut | Any], **attributes: Any) -> Cuts:
    """Follow a tree from its root; `cut_at` returns the cut at a node, or the label of a leaf."""
    cuts: list[Cut] = []
    sides: list[list[int]] = []
    labels: list[Any] = []
    open_ = [(root, -1, 0)]
    while open_:
        node, above, side = open_.pop()
        found = cut_at(node)
        leaf = not isinstance(found, tuple)
        if above >= 0:
            sides[above][side] = -1 - len(labels) if leaf else len(cuts)
        if leaf:
            labels.append(found)
            continue
        open_ += [(found[5], len(cuts), 1), (found[4], len(cuts), 0)]
        cuts.append(found)
        sides.append([0, 0])
        if len(cuts) > MOST_CUTS:
            raise ModelError(
                f"a tree of more than {MOST_CUTS:,} cuts is too large; limit max_leaf_nodes."
            )
    classes = attributes.pop("classes", None)
    label_of = np.array(labels)
    if classes is None:
        label_of, classes = ordered(label_of)
        classes = None if classes is None else tuple(classes.tolist())
    if len(cuts) == 0 or (label_of == label_of[0]).all():
        raise ModelError("the model has one label: there is no other to move to.")
    normals, offsets, reach, sizes = (np.array([cut[i] for cut in cuts]) for i in range(4))
    s = normals.shape[1]
    return Cuts(
        weights=np.full(s, 1.0 / s), normals=normals, offsets=offsets, sides=np.array(sides),
        label_of=label_of.astype(np.int64), centers=np.full((len(labels), s), np.nan),
        reach=reach, sizes=sizes, classes=classes, **attributes,
    )  # fmt: skip


def _boxes(model: Any) -> Cuts:
    """Return a decision tree, which compares its inputs as single-precision numbers."""
    if not hasattr(model, "classes_"):
        raise _refused(model, "it predicts a number and no label; use a DecisionTreeClassifier.")
    tree, attributes = model.tree_, _attributes(model, np.empty(0))
    axes = np.eye(model.n_features_in_)
    winner = tree.value[:, 0].argmax(axis=1)

    def cut_at(node: int) -> Any:
        left, right = int(tree.children_left[node]), int(tree.children_right[node])
        if left < 0:
            return int(winner[node])
        axis, offset = axes[tree.feature[node]], largest_single(float(tree.threshold[node]))
        return axis, offset, axis, abs(offset), left, right

    return _tree(0, cut_at, exact=True, **attributes)


def largest_single(threshold: float) -> float:
    """Return the largest number that, as one in single precision, is not above a threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.geometry.models import largest_single
    >>> largest = largest_single(0.1)
    >>> above = np.nextafter(largest, 1.0)
    >>> float(np.float32(largest)) <= 0.1, float(np.float32(above)) <= 0.1
    (True, False)
    """
    single = np.float32(threshold)
    if float(single) > threshold:
        single = np.nextafter(single, np.float32(-np.inf))
    middle = 0.5 * (float(single) + float(np.nextafter(single, np.float32(np.inf))))
    return (
        middle if float(np.float32(middle)) <= threshold else float(np.nextafter(middle, -np.inf))
    )


def _bisected(model: Any) -> Cuts:
    """Return bisecting k-means: at each node the nearer of two centers; the left one wins ties."""
    shift = getattr(model, "_X_mean", 0.0)

    def cut_at(node: Any) -> Any:
        if node.left is None:
            return int(node.label)
        left, right = (np.asarray(side.center + shift) for side in (node.left, node.right))
        sizes = 0.5 * (left @ left), 0.5 * (right @ right)
        reach = np.abs(left) + np.abs(right)
        return right - left, sizes[1] - sizes[0], reach, sum(sizes), node.left, node.right

    attributes = _attributes(model, model.cluster_centers_)
    return _tree(model._bisecting_tree, cut_at, **attributes)


def _threshold_tree(model: Any) -> Cuts:
    """Return a tree of thresholds whose leaves are clusters, as ExKMC makes them."""
    nodes, root = [model.tree], model.tree
    for node in nodes:
        nodes += [side for side in (node.left, node.right) if side is not None]
    width = getattr(model, "n_features_in_", 1 + max(node.feature or 0 for node in nodes))
    axes = np.eye(width)

    def cut_at(node: Any) -> Any:
        if node.left is None:
            return int(node.value)
        axis, offset = axes[node.feature], float(node.value)
        return axis, offset, axis, abs(offset), node.left, node.right

    return _tree(root, cut_at, exact=True, **_attributes(model, np.empty(0)))


def _bare(centers: Callable[[Any], Any]) -> Callable[[Any], Partition]:
    """Return the adapter of a model whose `predict`, if any, takes no table: its centers alone."""
    return lambda model: Centroids.from_centers([np.asarray(row) for row in centers(model)])


# An attribute that fitted models have, and what makes their partition; the first one counts.
ADAPTERS: dict[str, Callable[[Any], Partition]] = {
    "_bisecting_tree": _bisected,
    "cluster_centers_": _of_centers,
    "subcluster_centers_": _subclusters,
    "centroids_": _nearest_mean,
    "tree_": _boxes,
    "estimators_": _one_vs_rest,
    "coef_": _linear,
    "precisions_cholesky_": _mixture,
    "feature_log_prob_": _naive_bayes,
    "_fit_X": _nearest_row,
    "tree": _threshold_tree,
    "centroids": _bare(lambda model: model.centroids),
    "clusterCenters": _bare(lambda model: model.clusterCenters()),
}
# Partitions by the name that a saved explainer without a model has for them.
KINDS: dict[str, type[Partition]] = {kind.__name__: kind for kind in (Centroids, Cuts, Scores)}

# What is explained, as users look for it, and what a label is then.
CELL, SCORE = "one cell: the nearest of the centers", "one piece: the highest of its scores"
EXPLAINED = {
    "KMeans": CELL, "MiniBatchKMeans": CELL, "SHARK": CELL, "MeanShift": CELL,
    "AffinityPropagation": CELL, "KMedoids": CELL,
    "BisectingKMeans": "one piece: the cuts on the way to it",
    "Birch": "a union of cells, one for each of its sub-clusters",
    'GaussianMixture(covariance_type="tied")': SCORE,
    'BayesianGaussianMixture(covariance_type="tied")': SCORE,
    "NearestCentroid": SCORE, "LinearDiscriminantAnalysis": SCORE, "LogisticRegression": SCORE,
    "RidgeClassifier": SCORE, "LinearSVC": SCORE, "SGDClassifier": SCORE, "Perceptron": SCORE,
    "OneVsRestClassifier": SCORE, "MultinomialNB": SCORE, "ComplementNB": SCORE,
    "BernoulliNB(binarize=None)": SCORE,
    "DecisionTreeClassifier": "a union of boxes, one for each of its leaves",
    "ExtraTreeClassifier": "a union of boxes, one for each of its leaves",
    "KNeighborsClassifier(n_neighbors=1)": "a union of cells, one for each training row",
}  # fmt: skip
# What is not: why, and what to do.
CURVED = "its borders are curved; "
NO_PREDICT = (
    "it has no predict that assigns a new row; fit a model that has one to its labels, such as "
    "DecisionTreeClassifier or KNeighborsClassifier(n_neighbors=1): VoICE(model).fit(X, labels)."
)
VOTES = (
    "its label is a vote of many trees, whose pieces are too many; use one DecisionTreeClassifier, "
    "fitted to its predictions for example."
)
REFUSED = {
    "SVC": CURVED + "for straight ones use LinearSVC or LogisticRegression.",
    "NuSVC": CURVED + "for straight ones use LinearSVC or LogisticRegression.",
    "GaussianNB": CURVED + "for straight ones use LinearDiscriminantAnalysis.",
    "QuadraticDiscriminantAnalysis":
        CURVED + "for straight ones use LinearDiscriminantAnalysis.",
    "GaussianProcessClassifier": CURVED + "for straight ones use LogisticRegression.",
    "MLPClassifier":
        "its borders have too many corners, or are curved; use LogisticRegression, or a "
        "DecisionTreeClassifier that is fitted to its predictions.",
    "RadiusNeighborsClassifier":
        CURVED + "for straight ones use KNeighborsClassifier(n_neighbors=1).",
    "RandomForestClassifier": VOTES, "ExtraTreesClassifier": VOTES, "BaggingClassifier": VOTES,
    "AdaBoostClassifier": VOTES, "GradientBoostingClassifier": VOTES,
    "HistGradientBoostingClassifier": VOTES,
    "DBSCAN": NO_PREDICT, "HDBSCAN": NO_PREDICT, "OPTICS": NO_PREDICT,
    "SpectralClustering": NO_PREDICT, "AgglomerativeClustering": NO_PREDICT,
    "FeatureAgglomeration": NO_PREDICT,
}  # fmt: skip
