"""The fitted steps before a model: which column each coordinate comes from, and how.

A wire is a column on its way through the steps. A step has input and output wires, and every wire
knows the user's column that it comes from. The wires just before the first step that mixes columns
(PCA, a feature selector) are the coordinates z; the steps from there on are one affine map,
x = A z + c.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from voicecf.errors import DataError, ModelError
from voicecf.geometry.arrays import Array
from voicecf.geometry.pullback import Mixing
from voicecf.table.inverses import inverse_of

# Transformers by what they do to a column: an affine map, another invertible map, a code for its
# levels; and those that mix columns.
SCALERS = (StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler)
CURVES = (PowerTransformer, QuantileTransformer)
ENCODERS = (OneHotEncoder, OrdinalEncoder)
MIXERS = (PCA, IncrementalPCA, TruncatedSVD, SelectorMixin)
KNOWN = (
    "StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler, PowerTransformer, "
    "QuantileTransformer, FunctionTransformer with an inverse, OneHotEncoder, OrdinalEncoder, "
    "SimpleImputer and ColumnTransformer; then PCA, TruncatedSVD or a feature selector"
)


@dataclass(frozen=True)
class Wire:
    """One column of numbers or levels between two steps.

    Attributes
    ----------
    source : int
        Position of the user's column that it comes from.
    label : str
        Its name, such as ``job=clerk`` for a column of a one-hot code.
    raw : bool
        Whether it holds the user's values, at most with missing ones imputed.
    affine : bool
        Whether it is an affine function of the user's column.
    """

    source: int
    label: str
    raw: bool = True
    affine: bool = True


@dataclass(frozen=True)
class Coding:
    """How an encoder codes a category: its levels, and whether the code keeps their order."""

    levels: tuple[Any, ...]
    ordered: bool


@dataclass(frozen=True)
class Link:
    """A transformer with its input and output wires."""

    transformer: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass
class Trace:
    """A record of what fitted steps do to every column, filled step by step.

    Attributes
    ----------
    names : list
        The user's columns.
    wires : list of Wire
        First those of the user's columns; every step adds its outputs.
    links : list of Link
        The steps so far.
    codings : dict
        The coding of each column that is a category, by the column's position.
    used : set of int
        Wires that are the input of a step, or a coordinate.
    """

    names: list[Any]
    wires: list[Wire] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    codings: dict[int, Coding] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.wires = [Wire(i, str(name)) for i, name in enumerate(self.names)]

    def through(self, path: str, transformer: Any, inputs: list[int]) -> list[int]:
        """Follow wires through one fitted transformer; return its output wires."""
        if _passes(transformer):
            return inputs
        if isinstance(transformer, Pipeline):
            for name, step in transformer.steps:
                inputs = self.through(f"{path}.{name}", step, inputs)
            return inputs
        if isinstance(transformer, ColumnTransformer):
            return self._through_columns(path, transformer, inputs)
        if isinstance(transformer, ENCODERS):
            return self._through_encoder(path, transformer, inputs)
        if isinstance(transformer, SimpleImputer):
            return self._through_imputer(path, transformer, inputs)
        return self._through_map(path, transformer, inputs)

    def _through_columns(self, path: str, transformer: Any, inputs: list[int]) -> list[int]:
        names = list(getattr(transformer, "feature_names_in_", range(len(inputs))))
        outputs: list[int] = []
        for name, step, chosen in transformer.transformers_:
            wires = [inputs[i] for i in chosen_columns(chosen, names)]
            if wires and not (isinstance(step, str) and step == "drop"):
                outputs += self.through(f"{path}.{name}", step, wires)
        return outputs

    def _through_encoder(self, path: str, encoder: Any, inputs: list[int]) -> list[int]:
        self._refuse_infrequent(path, encoder, inputs)
        outputs: list[int] = []
        one_hot = isinstance(encoder, OneHotEncoder)
        for i, wire in enumerate(inputs):
            before, levels = self.wires[wire], encoder.categories_[i].tolist()
            if not before.raw:
                raise ModelError(
                    f"step {path!r} encodes column {self.names[before.source]!r} after another "
                    "step has changed it; encode the column as it is (a SimpleImputer may come "
                    "first)."
                )
            self.codings[before.source] = Coding(tuple(levels), not one_hot)
            for label in _labels(encoder, i, before.label) if one_hot else [before.label]:
                new = Wire(before.source, label, raw=False, affine=False)
                outputs.append(self._new(new))
        self._link(encoder, inputs, outputs)
        return outputs

    def _refuse_infrequent(self, path: str, encoder: Any, inputs: list[int]) -> None:
        """Raise if an encoder merges infrequent levels, which then have the same code."""
        try:
            groups = encoder.infrequent_categories_
        except AttributeError:
            return
        for wire, group in zip(inputs, groups, strict=True):
            if group is not None:
                raise ModelError(
                    f"step {path!r} merges infrequent levels of "
                    f"{self.names[self.wires[wire].source]!r}, so an answer could not say which "
                    "level it means. Leave out min_frequency and max_categories, or merge the "
                    "levels in the table."
                )

    def _through_imputer(self, path: str, imputer: SimpleImputer, inputs: list[int]) -> list[int]:
        if imputer.add_indicator:
            raise ModelError(
                f"step {path!r} is SimpleImputer(add_indicator=True), which makes two "
                "coordinates of one column; use add_indicator=False."
            )
        # A column without any value in the data of fit is dropped by default.
        dropped = [_is_missing(s) and not imputer.keep_empty_features for s in imputer.statistics_]
        inputs = [wire for wire, drop in zip(inputs, dropped, strict=True) if not drop]
        outputs = [self._new(self.wires[wire]) for wire in inputs]
        self._link(imputer, inputs, outputs)
        return outputs

    def _through_map(self, path: str, transformer: Any, inputs: list[int]) -> list[int]:
        affine = isinstance(transformer, SCALERS) and not getattr(transformer, "clip", False)
        if isinstance(transformer, FunctionTransformer):
            if inverse_of(transformer) is None:
                raise ModelError(
                    f"step {path!r} is a FunctionTransformer without inverse_func, so answers "
                    "cannot be translated back into your columns; give the inverse as well: "
                    "FunctionTransformer(np.log1p, inverse_func=np.expm1). Functions of numpy such "
                    "as np.log1p and np.sqrt need none."
                )
        elif not isinstance(transformer, (*SCALERS, *CURVES)):
            raise self._unknown(path, transformer)
        outputs = []
        for wire in inputs:
            before = self.wires[wire]
            new = replace(before, raw=False, affine=before.affine and affine)
            outputs.append(self._new(new))
        self._link(transformer, inputs, outputs)
        return outputs

    def _unknown(self, path: str, transformer: Any) -> ModelError:
        """Return the error for a transformer that cannot be followed."""
        name = type(transformer).__name__
        if isinstance(transformer, MIXERS):
            return ModelError(
                f"step {path!r} ({name}) mixes columns inside a ColumnTransformer; make it a "
                "separate step after the ColumnTransformer."
            )
        if isinstance(transformer, FeatureUnion):
            return ModelError(
                f"step {path!r} is a FeatureUnion, which makes several coordinates of one column; "
                "use a ColumnTransformer."
            )
        return ModelError(f"step {path!r} ({name}) is not supported; what works: {KNOWN}.")

    def _new(self, wire: Wire) -> int:
        """Add a wire and return its position."""
        self.wires.append(wire)
        return len(self.wires) - 1

    def _link(self, transformer: Any, inputs: list[int], outputs: list[int]) -> None:
        """Record a transformer with its wires."""
        self.use(inputs)
        self.links.append(Link(transformer, tuple(inputs), tuple(outputs)))

    def use(self, wires: Iterable[int]) -> None:
        """Mark wires as used; raise if one was used before."""
        for wire in wires:
            if wire in self.used:
                raise ModelError(
                    f"column {self.names[self.wires[wire].source]!r} goes into several "
                    "coordinates, and one answer could not change all of them; let each column go "
                    "through one transformer only."
                )
            self.used.add(wire)


@dataclass(frozen=True)
class Steps:
    """The fitted steps before a model: a map from the user's columns to coordinates, and on.

    Attributes
    ----------
    before, after : list of transformers
        The steps up to the coordinates, and those from the first mixing step on.
    wires : list of Wire
        The wire of each coordinate.
    links : list of Link
        The transformers with their wires, in order, which are followed backwards.
    ends : list of int
        The position of each coordinate's wire, as the links count them.
    codings : dict
        The coding of each column that is a category, by the column's position.
    mixing : Mixing or None
        The affine map of the steps in `after`; None if there are none.
    """

    before: list[Any]
    after: list[Any]
    wires: list[Wire]
    links: list[Link]
    ends: list[int]
    codings: dict[int, Coding]
    mixing: Mixing | None

    @classmethod
    def of(cls, steps: Any, names: list[Any]) -> Steps:
        """Trace fitted steps; `names` are the columns that they were fitted on.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.decomposition import PCA
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.preprocessing import StandardScaler
        >>> from voicecf.table.pipeline import Steps
        >>> X = np.random.default_rng(0).normal(size=(9, 3))
        >>> steps = Steps.of(make_pipeline(StandardScaler(), PCA(2)).fit(X), ["a", "b", "c"])
        >>> [wire.label for wire in steps.wires], steps.mixing.matrix.shape
        (['a', 'b', 'c'], (2, 3))
        """
        flat = list(_flat(steps))
        first = next((i for i, (_, t) in enumerate(flat) if isinstance(t, MIXERS)), len(flat))
        before, after = flat[:first], flat[first:]
        trace, ends = Trace(names), list(range(len(names)))
        for path, transformer in before:
            ends = trace.through(path, transformer, ends)
        trace.use(ends)
        return cls(
            before=[transformer for _, transformer in before],
            after=[transformer for _, transformer in after],
            wires=[trace.wires[end] for end in ends],
            links=trace.links,
            ends=ends,
            codings=trace.codings,
            mixing=_mixing(after, len(ends)) if after else None,
        )

    def forward(self, rows: Any) -> Any:
        """Return the coordinates of rows: the output of the steps in `before`, of any type."""
        return _transformed(self.before, rows)

    def onward(self, rows: Any) -> Any:
        """Return the input of the model from the output of `forward`."""
        return _transformed(self.after, rows)

    def backward(self, points: Array) -> dict[int, Array]:
        """Return the user's values of number columns, by the columns' positions."""
        sources = {wire.source for wire in self.wires} - set(self.codings)
        if len(points) == 0:  # scalers refuse empty arrays
            return {source: np.empty(0) for source in sources}
        columns = {wire: points[:, i] for i, wire in enumerate(self.ends)}
        for link in reversed(self.links):
            columns.update(_reversed(link, columns))
        return {source: columns[source] for source in sources}


def _passes(transformer: Any) -> bool:
    """Tell whether a step leaves its columns as they are."""
    if transformer is None or isinstance(transformer, str):
        return True
    return isinstance(transformer, FunctionTransformer) and transformer.func is None


def _flat(steps: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the names and transformers of steps in order, also those inside nested pipelines."""
    for name, step in steps.steps:
        if isinstance(step, Pipeline):
            yield from _flat(step, f"{path}{name}.")
        elif step is not None and not isinstance(step, str):
            yield f"{path}{name}", step


def chosen_columns(chosen: Any, names: list[Any]) -> list[int]:
    """Return the positions of the columns that a transformer of a ColumnTransformer is for.

    `chosen` is what scikit-learn allows: one name or position, a list, a slice, or a mask.
    """
    if isinstance(chosen, slice):
        start, stop = chosen.start, chosen.stop
        if isinstance(start, str) or isinstance(stop, str):  # by name, the last one included
            start = None if start is None else names.index(start)
            stop = None if stop is None else names.index(stop) + 1
        return list(range(len(names)))[slice(start, stop, chosen.step)]
    if isinstance(chosen, (str, int, np.integer)):
        chosen = [chosen]
    entries = list(chosen)
    if entries and all(isinstance(c, (bool, np.bool_)) for c in entries):
        return np.flatnonzero(entries).tolist()
    return [names.index(c) if isinstance(c, str) else int(c) % len(names) for c in entries]


def _labels(encoder: OneHotEncoder, i: int, name: str) -> list[str]:
    """Return the labels of the columns that code the i-th input of an encoder."""
    dropped = None if encoder.drop_idx_ is None else encoder.drop_idx_[i]
    levels = encoder.categories_[i]
    return [f"{name}={level}" for j, level in enumerate(levels) if j != dropped]


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _transformed(steps: list[Any], rows: Any) -> Any:
    for step in steps:
        try:
            rows = step.transform(rows)
        except ValueError as error:
            raise DataError(f"{type(step).__name__} cannot transform X: {error}") from error
    return rows


def dense(output: Any) -> Array:
    """Return the output of a step, a sparse matrix, frame or array, as an array of numbers."""
    if sparse.issparse(output):
        output = output.toarray()
    elif not isinstance(output, np.ndarray):
        output = nw.from_native(output, eager_only=True).to_numpy()
    try:
        return np.array(output, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise DataError(
            "the steps before the model leave text in the data; encode every column that is not "
            "numeric (OneHotEncoder), or drop it."
        ) from None


def _reversed(link: Link, columns: dict[int, Array]) -> dict[int, Array]:
    """Compute the input wires of a link from its output wires; nothing for encoders."""
    if isinstance(link.transformer, ENCODERS):
        return {}
    if isinstance(link.transformer, SimpleImputer):
        pairs = zip(link.inputs, link.outputs, strict=True)
        return {before: columns[after] for before, after in pairs if after in columns}
    outputs = np.column_stack([columns[after] for after in link.outputs])
    outputs = np.where(np.isfinite(outputs), outputs, np.nan)  # transformers refuse infinity
    # Outside the range of a map the inverse is NaN, so a warning of numpy adds nothing.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        inputs = np.asarray(_inverse(link.transformer)(outputs), dtype=np.float64)
    return {before: inputs[:, i] for i, before in enumerate(link.inputs)}


def _inverse(transformer: Any) -> Any:
    """Return the function from a transformer's outputs to its inputs."""
    if isinstance(transformer, FunctionTransformer):
        return inverse_of(transformer)
    return transformer.inverse_transform


def _mixing(steps: list[tuple[str, Any]], d: int) -> Mixing:
    """Compose the steps from the first mixing one on into one affine map."""
    matrix, shift = np.eye(d), np.zeros(d)
    for path, step in steps:
        a, c = _affine(path, step, len(shift))
        matrix, shift = a @ matrix, a @ shift + c
    return Mixing(np.ascontiguousarray(matrix), shift)


def _affine(path: str, step: Any, d: int) -> tuple[Array, Array]:
    """Return matrix and shift of one step's affine map."""
    if isinstance(step, (PCA, IncrementalPCA)):
        matrix = np.asarray(step.components_, dtype=np.float64)
        if step.whiten:
            eps = np.finfo(step.explained_variance_.dtype).eps
            matrix = matrix / np.maximum(np.sqrt(step.explained_variance_), eps)[:, None]
        return matrix, -matrix @ step.mean_
    if isinstance(step, TruncatedSVD):
        return np.asarray(step.components_, dtype=np.float64), np.zeros(len(step.components_))
    if isinstance(step, SelectorMixin):
        selected = np.flatnonzero(step.get_support())
        return np.eye(d)[selected], np.zeros(len(selected))
    if isinstance(step, SCALERS) and not getattr(step, "clip", False):
        scale, shift = _scaling(step, d)
        return np.diag(scale), shift
    if _passes(step):
        return np.eye(d), np.zeros(d)
    raise ModelError(
        f"step {path!r} ({type(step).__name__}) follows a step that mixes columns and is not "
        "affine; only scalers, PCA, TruncatedSVD and feature selectors may follow. Put it first."
    )


def _scaling(scaler: Any, d: int) -> tuple[Array, Array]:
    """Return factor and shift of a scaler, column by column."""
    if isinstance(scaler, MinMaxScaler):
        return np.asarray(scaler.scale_, float), np.asarray(scaler.min_, float)
    scale = 1.0 / _or(getattr(scaler, "scale_", None), 1.0, d)
    centre = getattr(scaler, "mean_", None)
    if isinstance(scaler, StandardScaler) and not scaler.with_mean:
        centre = None
    if isinstance(scaler, RobustScaler):
        centre = scaler.center_
    return scale, -scale * _or(centre, 0.0, d)


def _or(values: Any, otherwise: float, d: int) -> Array:
    """Return values as an array; d times `otherwise` if there are none."""
    return np.full(d, otherwise) if values is None else np.asarray(values, dtype=np.float64)


def input_names(steps: Any) -> NDArray[Any] | None:
    """Return the column names that steps were fitted with; None if with an array."""
    for _, step in _flat(steps):
        names = getattr(step, "feature_names_in_", None)
        return None if names is None else np.asarray(names, dtype=object)
    return None
