"""Checks that the objects of a file fit together, before anything is computed with them.

The compiled core does not check shapes, and a file may hold anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from voicecf.errors import SavingError, VoiceError
from voicecf.geometry.cell import Arithmetic
from voicecf.geometry.clustering import Clustering
from voicecf.geometry.pullback import Mixing
from voicecf.table.pipeline import Steps, Wire
from voicecf.table.space import Space

# One letter a dimension: n is the number of columns, and any other letter means one length.
SHAPES = {
    "StandardScaler": {"mean_": "n", "var_": "n", "scale_": "n"},
    "MinMaxScaler": {"scale_": "n", "min_": "n"},
    "RobustScaler": {"center_": "n", "scale_": "n"},
    "MaxAbsScaler": {"scale_": "n", "max_abs_": "n"},
    "PowerTransformer": {"lambdas_": "n"},
    "QuantileTransformer": {"quantiles_": "qn", "references_": "q"},
    "SimpleImputer": {"statistics_": "n"},
    "PCA": {"components_": "cn", "mean_": "n", "explained_variance_": "c"},
    "IncrementalPCA": {"components_": "cn", "mean_": "n", "explained_variance_": "c"},
    "TruncatedSVD": {"components_": "cn"},
    "VarianceThreshold": {"variances_": "n"},
    "SelectKBest": {"scores_": "n", "pvalues_": "n"},
    "KMeans": {"cluster_centers_": "kn"},
    "MiniBatchKMeans": {"cluster_centers_": "kn"},
    "SHARK": {"cluster_centers_": "kn", "feature_weights_": "n"},
}
MODELS = ("KMeans", "MiniBatchKMeans", "SHARK")
EXPLAINERS = ("VoICE", "CFCLUST")
# No machine has more; a file may not ask for more.
THREADS = 1 << 12


def check(made: Iterable[Any]) -> None:
    """Raise SavingError if an object does not fit together, or with those that it holds."""
    things = list(made)
    for thing in things:
        _check_shapes(thing)
        if type(thing).__name__ == "OneHotEncoder":
            _check_encoder(thing)
    # Parts before what holds them: each check relies on the ones before it.
    for names, verify in (
        (("Clustering",), _check_clustering),
        (("Space",), _check_space),
        (EXPLAINERS, _check_explainer),
    ):
        for thing in things:
            if type(thing).__name__ in names:
                verify(thing)


def _need(holds: Any, holder: Any, name: str) -> None:
    if not holds:
        raise SavingError(
            f"its {type(holder).__name__}.{name} does not fit the rest. Fit and save again."
        )


def _array(
    holder: Any, name: str, *shape: int | None, dtype: Any = np.float64, open_: bool = False
) -> Any:
    """Return an array attribute, having checked its type, shape (None: any) and numbers."""
    value = getattr(holder, name, None)
    _check_array(value, holder, name, shape, dtype, open_)
    return value


def _check_array(
    value: Any, holder: Any, name: str, shape: tuple[int | None, ...], dtype: Any, open_: bool
) -> None:
    fits = (
        type(value) is np.ndarray
        and value.dtype == dtype
        and value.ndim == len(shape)
        and all(n is None or n == m for n, m in zip(shape, value.shape, strict=True))
    )
    _need(fits, holder, name)
    _need(not np.isnan(value).any() if open_ else np.isfinite(value).all(), holder, name)


def _check_shapes(thing: Any) -> None:
    """Compare the arrays of a fitted estimator with the number of columns that it takes."""
    name = type(thing).__name__
    width = getattr(thing, "n_features_in_", None) if name in SHAPES else None
    if width is None:
        return
    lengths = {"n": width}
    for attribute, letters in SHAPES[name].items():
        value: Any = getattr(thing, attribute, None)
        if value is None and name not in MODELS:
            continue
        shape = np.shape(value)
        _need(isinstance(value, np.ndarray) and len(shape) == len(letters), thing, attribute)
        for letter, length in zip(letters, shape, strict=True):
            _need(lengths.setdefault(letter, length) == length, thing, attribute)
    if name in MODELS:
        _check_model(thing)


def _check_model(model: Any) -> None:
    centers = model.cluster_centers_
    _need(centers.dtype in (np.float64, np.float32), model, "cluster_centers_")
    _need(len(centers) and np.isfinite(centers).all(), model, "cluster_centers_")
    if hasattr(model, "feature_weights_"):
        _array(model, "cluster_centers_", None, None)
        _array(model, "feature_weights_", None)
    threads = getattr(model, "_n_threads", 1)
    _need(isinstance(threads, int) and 0 < threads <= THREADS, model, "_n_threads")


def _check_encoder(encoder: Any) -> None:
    """Check that the code of every level lies within the columns of the encoder's output."""
    if not hasattr(encoder, "categories_"):
        return
    counts = [len(levels) for levels in encoder.categories_]
    _need(encoder._n_features_outs == encoder._compute_n_features_outs(), encoder, "categories_")
    groups = getattr(encoder, "_default_to_infrequent_mappings", None) or [None] * len(counts)
    _need(len(groups) == len(counts), encoder, "_default_to_infrequent_mappings")
    for i, group in enumerate(groups):
        if group is not None:
            grouped = counts[i] - encoder._infrequent_indices[i].size + 1
            inside = group.shape == (counts[i],) and (group >= 0).all() and (group < grouped).all()
            _need(inside, encoder, "_default_to_infrequent_mappings")
            counts[i] = grouped
    dropped = encoder._drop_idx_after_grouping
    for i, drop in enumerate([] if dropped is None else dropped):
        _need(drop is None or 0 <= drop < counts[i], encoder, "drop_idx_")
    _need(dropped is None or len(dropped) == len(counts), encoder, "drop_idx_")


def _check_clustering(clustering: Any) -> None:
    centers = _array(clustering, "centers", None, None)
    weights = _array(clustering, "weights", centers.shape[1])
    try:
        Clustering.from_centers(centers, weights)
    except VoiceError:
        _need(False, clustering, "centers")
    arithmetic = clustering.arithmetic
    _need(type(arithmetic) is Arithmetic, clustering, "arithmetic")
    _need(arithmetic.formula in ("direct", "expanded"), arithmetic, "formula")
    _need(type(arithmetic.eps) is float and 0 < arithmetic.eps < 1, arithmetic, "eps")
    _need(clustering.dtype in (np.float64, np.float32), clustering, "dtype")
    _need(isinstance(clustering.trusted, bool), clustering, "trusted")
    if clustering.model is not None:
        of_model: Any = getattr(clustering.model, "cluster_centers_", None)
        _need(np.array_equal(of_model, centers), clustering, "model")


def _check_space(space: Any) -> None:
    from voicecf.table.column import Column

    kept = vars(space).keys() - {"continuous"}  # what it knows of itself once it was asked
    _need(kept == vars(Space.plain([], False)).keys(), space, "__dict__")
    d = len(_array(space, "round_trip_error", None))
    _need((space.round_trip_error >= 0).all(), space, "round_trip_error")
    _need(space.dtype in (np.float64, np.float32), space, "dtype")
    columns = space.columns
    _need(isinstance(columns, list) and all(type(c) is Column for c in columns), space, "columns")
    _need(space.names == [column.name for column in columns], space, "names")
    for column in columns:
        _check_column(column)
    places = np.concatenate([c.places for c in columns]) if columns else np.empty(0)
    _need(np.array_equal(np.sort(places), np.arange(d)), space, "columns")
    _need(len(space.coordinate_names) == d, space, "coordinate_names")
    _need((space.steps is None) == (space._template is None), space, "_template")
    sources = [(source, False) for source in range(len(space.sources))]
    if space.steps is None:
        _need(space.mixing is None and len(sources) == d, space, "sources")
        _need(space._plain == all(c.kind == "number" for c in columns), space, "_plain")
    else:
        _check_steps(space, d)
        sources = [(wire.source, wire.indicator) for wire in space.steps.wires]
    for column in columns:
        own = {space.sources.index(source) for source in column.sources}
        wanted = {(source, column.indicator) for source in own}
        found = [place for place, source in enumerate(sources) if source in wanted]
        _need(column.places.tolist() == found, column, "places")


def _check_column(column: Any) -> None:
    places = _array(column, "places", None, dtype=np.int64)
    _need(len(places) or column.kind == "category", column, "places")
    _need((places >= 0).all() and (np.diff(places) > 0).all(), column, "places")
    if column.kind == "number":
        _need(len(places) == len(column.sources) == 1, column, "places")
        for name in ("observed", "limits"):
            low, high = getattr(column, name)
            _need(float(low) <= float(high), column, name)
        _need(np.isfinite(np.array(column.listed, dtype=np.float64)).all(), column, "listed")
    else:
        _need(column.kind == "category" and isinstance(column.levels, tuple), column, "kind")
        _array(column, "options", len(column.levels), len(places))


def _check_steps(space: Any, d: int) -> None:
    steps, width = space.steps, d
    _need(type(steps) is Steps and steps.mixing is space.mixing, space, "steps")
    _need(len(steps.wires) == len(steps.ends) == d, steps, "wires")
    for wire in steps.wires:
        known = type(wire) is Wire and type(wire.source) is int
        _need(known and 0 <= wire.source < len(space.sources), steps, "wires")
    if space.mixing is not None:
        _need(type(space.mixing) is Mixing, space, "mixing")
        width = len(_array(space.mixing, "matrix", None, d))
        _array(space.mixing, "shift", width)
    _array(space._template, "points", 1, d)
    _check_array(space._template.seen, space._template, "seen", (1, width), np.float64, False)
    _need(space._template.kind is None and space._template.raw is None, space, "_template")
    array = space._template.array
    _need(array is None or array.shape == (1, len(space.sources)), space, "_template")


def _check_explainer(explainer: Any) -> None:
    if "learned_" not in vars(explainer):
        return  # not fitted
    learned = explainer.learned_
    _need(type(learned).__name__ == "Learned", explainer, "learned_")
    _check_learned(learned)
    if hasattr(explainer, "_options"):
        try:
            explainer._options().cluster_names(learned.clustering.n_clusters)
        except VoiceError as error:
            raise SavingError(str(error)) from None


def _check_learned(learned: Any) -> None:
    from voicecf.geometry.clustering import Clustering
    from voicecf.rules.allowed import DefaultBounds

    clustering, space, bounds = learned.clustering, learned.space, learned.bounds
    _need(type(clustering) is Clustering and type(space) is Space, learned, "space")
    (k, width), d, columns = clustering.centers.shape, space.n_coordinates, len(space.columns)
    weights, origins = _array(learned, "weights", d), _array(learned, "origins", k, d)
    if space.mixing is None:
        _need(width == d, learned, "clustering")
        _need(np.array_equal(weights, clustering.weights), learned, "weights")
        _need(np.array_equal(origins, clustering.centers), learned, "origins")
    else:
        _need(len(space.mixing.shift) == width and (weights >= 0).all(), learned, "weights")
    _need(clustering.dtype == space.dtype, learned, "space")
    alpha = _array(learned, "alpha", k)
    _need((alpha > 0).all() and (alpha <= 1).all(), learned, "alpha")
    _need((_array(learned, "spread", d) >= 0).all(), learned, "spread")
    _need(type(bounds) is DefaultBounds, learned, "bounds")
    lo, hi = (_array(bounds, side, columns, open_=True) for side in ("lo", "hi"))
    _need((lo <= hi).all(), bounds, "lo")
    _need(isinstance(bounds.box, tuple) and len(bounds.box) == 2, bounds, "box")
    for side in bounds.box:
        _check_array(side, bounds, "box", (d,), np.float64, True)
    ranking = _array(learned, "ranking", columns, dtype=np.int64)
    _need(np.array_equal(np.sort(ranking), np.arange(columns)), learned, "ranking")
    for name, most in (("delta", np.inf), ("margin", 1.0)):
        value = getattr(learned, name)
        _need(type(value) in (int, float) and 0 <= value < most, learned, name)
    for name in ("contract_bounds", "ranks_equally"):
        _need(isinstance(getattr(learned, name), bool), learned, name)
    names = learned.names
    _need(isinstance(names, tuple) and len(set(names)) == len(names) == k, learned, "names")
    _need(all(isinstance(name, str) for name in names), learned, "names")
    if learned.members is not None:
        _need(type(learned.members).__name__ == "Members", learned, "members")
        _check_members(learned.members, k, d)


def _check_members(members: Any, k: int, d: int) -> None:
    _array(members, "means", k, d)
    _array(members, "axes", k, d, d)
    _need((_array(members, "counts", k, dtype=np.int64) >= 0).all(), members, "counts")
    extremes = _array(members, "extremes", int(members.starts[-1]))
    ascending = np.diff(extremes) >= 0
    ascending[members.starts[(members.starts > 0) & (members.starts < len(extremes))] - 1] = True
    _need(ascending.all() and (extremes >= 0).all(), members, "extremes")
