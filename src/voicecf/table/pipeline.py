"""The fitted steps before a model, read: which column each coordinate comes from, and how.

Columns run along wires. A step takes wires and gives new ones, and every wire remembers the column
that it comes from. The wires just before the first step that mixes columns (PCA, a selector) are
the coordinates; from there on everything is affine, x = A z + c.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
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

SCALERS = (StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler)
CURVES = (PowerTransformer, QuantileTransformer)
ENCODERS = (OneHotEncoder, OrdinalEncoder)
MIXERS = (PCA, IncrementalPCA, TruncatedSVD, SelectorMixin)
KNOWN = (
    "StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler, PowerTransformer, "
    "QuantileTransformer, FunctionTransformer with inverse_func, OneHotEncoder, OrdinalEncoder, "
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
        What it is called.
    raw : bool
        Whether it holds the user's own values, gaps filled.
    affine : bool
        Whether it is an affine function of them.
    coded : bool
        Whether it is part of the code of a category.
    """

    source: int
    label: str
    raw: bool = True
    affine: bool = True
    coded: bool = False


@dataclass(frozen=True)
class Coding:
    """How a column of categories is coded: its levels, and whether they are in order."""

    levels: tuple[Any, ...]
    ordered: bool


@dataclass(frozen=True)
class Link:
    """A step and the wires that it takes and gives."""

    transformer: Any
    takes: tuple[int, ...]
    gives: tuple[int, ...]


@dataclass
class Trace:
    """Walks through fitted steps, and writes down what becomes of every column."""

    names: list[Any]
    wires: list[Wire] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    codings: dict[int, Coding] = field(default_factory=dict)
    used: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.wires = [Wire(i, str(name)) for i, name in enumerate(self.names)]

    def through(self, path: str, transformer: Any, takes: list[int]) -> list[int]:
        """Follow wires through one fitted transformer, whatever it is; the wires that it gives."""
        if _passes(transformer):
            return takes
        if isinstance(transformer, Pipeline):
            for name, step in transformer.steps:
                takes = self.through(f"{path}.{name}", step, takes)
            return takes
        if isinstance(transformer, ColumnTransformer):
            return self._through_columns(path, transformer, takes)
        if isinstance(transformer, ENCODERS):
            return self._through_encoder(path, transformer, takes)
        if isinstance(transformer, SimpleImputer):
            return self._through_imputer(path, transformer, takes)
        return self._through_map(path, transformer, takes)

    def _through_columns(self, path: str, columns: Any, takes: list[int]) -> list[int]:
        names = list(getattr(columns, "feature_names_in_", range(len(takes))))
        gives: list[int] = []
        for name, step, chosen in columns.transformers_:
            some = [takes[i] for i in chosen_columns(chosen, names)]
            if some and not (isinstance(step, str) and step == "drop"):
                gives += self.through(f"{path}.{name}", step, some)
        return gives

    def _through_encoder(self, path: str, encoder: Any, takes: list[int]) -> list[int]:
        self._refuse_infrequent(path, encoder, takes)
        gives: list[int] = []
        for i, wire in enumerate(takes):
            was, levels = self.wires[wire], encoder.categories_[i].tolist()
            if not was.raw:
                raise ModelError(
                    f"step {path!r} encodes column {self.names[was.source]!r} after another step "
                    "has changed it; encode the column as it is (a SimpleImputer may come first)."
                )
            one_hot = isinstance(encoder, OneHotEncoder)
            self.codings[was.source] = Coding(tuple(levels), not one_hot)
            for label in _labels(encoder, i, was.label) if one_hot else [was.label]:
                gives.append(self._new(Wire(was.source, label, False, False, True)))
        self._link(encoder, takes, gives)
        return gives

    def _refuse_infrequent(self, path: str, encoder: Any, takes: list[int]) -> None:
        try:
            groups = encoder.infrequent_categories_
        except AttributeError:
            return
        for wire, group in zip(takes, groups, strict=True):
            if group is not None:
                raise ModelError(
                    f"step {path!r} puts infrequent levels of "
                    f"{self.names[self.wires[wire].source]!r} into one group; an answer could not "
                    "say which level it means. Leave out min_frequency and max_categories, or "
                    "merge the levels in the table."
                )

    def _through_imputer(self, path: str, imputer: SimpleImputer, takes: list[int]) -> list[int]:
        if imputer.add_indicator:
            raise ModelError(
                f"step {path!r} is SimpleImputer(add_indicator=True), which makes two columns of "
                "one; use add_indicator=False."
            )
        empty = [_is_missing(s) and not imputer.keep_empty_features for s in imputer.statistics_]
        kept = [wire for wire, gone in zip(takes, empty, strict=True) if not gone]
        gives = [self._new(self.wires[wire]) for wire in kept]
        self._link(imputer, kept, gives)
        return gives

    def _through_map(self, path: str, transformer: Any, takes: list[int]) -> list[int]:
        affine = isinstance(transformer, SCALERS) and not getattr(transformer, "clip", False)
        if isinstance(transformer, FunctionTransformer):
            if transformer.inverse_func is None:
                raise ModelError(
                    f"step {path!r} is a FunctionTransformer without inverse_func, so that answers "
                    "cannot be written in your columns; give the inverse as well: "
                    "FunctionTransformer(np.log1p, inverse_func=np.expm1)."
                )
        elif not isinstance(transformer, (*SCALERS, *CURVES)):
            self._refuse(path, transformer)
        gives = []
        for wire in takes:
            was = self.wires[wire]
            gives.append(
                self._new(Wire(was.source, was.label, False, was.affine and affine, was.coded))
            )
        self._link(transformer, takes, gives)
        return gives

    def _refuse(self, path: str, transformer: Any) -> None:
        name = type(transformer).__name__
        if isinstance(transformer, MIXERS):
            raise ModelError(
                f"step {path!r} ({name}) mixes columns inside a ColumnTransformer; let it follow "
                "the ColumnTransformer as a step of its own."
            )
        if isinstance(transformer, FeatureUnion):
            raise ModelError(
                f"step {path!r} is a FeatureUnion, which makes several coordinates of one column; "
                "use a ColumnTransformer."
            )
        raise ModelError(f"step {path!r} ({name}) is not understood; what works: {KNOWN}.")

    def _new(self, wire: Wire) -> int:
        self.wires.append(wire)
        return len(self.wires) - 1

    def _link(self, transformer: Any, takes: list[int], gives: list[int]) -> None:
        self.use(takes)
        self.links.append(Link(transformer, tuple(takes), tuple(gives)))

    def use(self, takes: Iterable[int]) -> None:
        """Note that wires are taken, which each may be once."""
        for wire in takes:
            if wire in self.used:
                raise ModelError(
                    f"column {self.names[self.wires[wire].source]!r} goes into several "
                    "coordinates, which one answer could not change alike; let each column go "
                    "through one transformer."
                )
            self.used.add(wire)


@dataclass(frozen=True)
class Steps:
    """Fitted steps before a model, as a map from the user's columns to coordinates and on.

    Attributes
    ----------
    before, after : list of transformers
        Up to the coordinates, and from the first mixing step on.
    wires : list of Wire
        One a coordinate.
    links : list of Link
        How to go back.
    ends : list of int
        The wire of each coordinate.
    codings : dict
        Levels of the columns that are categories, by position.
    mixing : Mixing or None
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
        at = next((i for i, (_, t) in enumerate(flat) if isinstance(t, MIXERS)), len(flat))
        trace, ends = Trace(names), list(range(len(names)))
        for path, transformer in flat[:at]:
            ends = trace.through(path, transformer, ends)
        trace.use(ends)
        mixing = _mixing(flat[at:], len(ends)) if at < len(flat) else None
        return cls(
            [t for _, t in flat[:at]], [t for _, t in flat[at:]], [trace.wires[e] for e in ends],
            trace.links, ends, trace.codings, mixing,
        )  # fmt: skip

    def forward(self, rows: Any) -> Any:
        """Return coordinates as the steps themselves make them, of whatever kind they make."""
        return _transformed(self.before, rows)

    def onward(self, rows: Any) -> Any:
        """Return what the model sees of what `forward` returned."""
        return _transformed(self.after, rows)

    def backward(self, points: Array) -> dict[int, Array]:
        """Return values of the user's columns by position; categories are left out."""
        sources = {wire.source for wire in self.wires} - set(self.codings)
        if len(points) == 0:  # which scalers refuse
            return {source: np.empty(0) for source in sources}
        held = {wire: points[:, i] for i, wire in enumerate(self.ends)}
        for link in reversed(self.links):
            held.update(_reversed(link, held))
        return {source: held[source] for source in sources}


def _passes(transformer: Any) -> bool:
    if transformer is None or isinstance(transformer, str):
        return True
    return isinstance(transformer, FunctionTransformer) and transformer.func is None


def _flat(steps: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield name and transformer of steps in order, those of nested pipelines one by one."""
    for name, step in steps.steps:
        if isinstance(step, Pipeline):
            yield from _flat(step, f"{path}{name}.")
        elif step is not None and not isinstance(step, str):
            yield f"{path}{name}", step


def chosen_columns(chosen: Any, names: list[Any]) -> list[int]:
    """Return positions of the columns that a ColumnTransformer's step chose, however it did."""
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
            raise DataError(f"{type(step).__name__} does not take these rows: {error}") from error
    return rows


def dense(made: Any) -> Array:
    """Return what a step made, sparse, frame or array, as an array of numbers."""
    if sparse.issparse(made):
        made = made.toarray()
    elif not isinstance(made, np.ndarray):
        made = nw.from_native(made, eager_only=True).to_numpy()
    try:
        return np.array(made, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise DataError(
            "the steps before the model leave text in the data; encode every column that is no "
            "number (OneHotEncoder), or drop it."
        ) from None


def _reversed(link: Link, held: dict[int, Array]) -> dict[int, Array]:
    """Go back through a link: what it took, from what it gave."""
    if isinstance(link.transformer, ENCODERS):
        return {}
    if isinstance(link.transformer, SimpleImputer):
        pairs = zip(link.takes, link.gives, strict=True)
        return {take: held[give] for take, give in pairs if give in held}
    given = np.column_stack([held[give] for give in link.gives])
    given = np.where(np.isfinite(given), given, np.nan)  # which transformers take, unlike infinity
    # Beyond a map's range there is no way back: NaN says so, and nobody needs a warning as well.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        taken = np.asarray(link.transformer.inverse_transform(given), dtype=np.float64)
    return {take: taken[:, i] for i, take in enumerate(link.takes)}


def _mixing(steps: list[tuple[str, Any]], d: int) -> Mixing:
    """Fold steps from the first mixing one on into one affine map."""
    matrix, shift = np.eye(d), np.zeros(d)
    for path, step in steps:
        a, c = _affine(path, step, len(shift))
        matrix, shift = a @ matrix, a @ shift + c
    return Mixing(np.ascontiguousarray(matrix), shift)


def _affine(path: str, step: Any, d: int) -> tuple[Array, Array]:
    """Return matrix and shift of one step."""
    if isinstance(step, (PCA, IncrementalPCA)):
        turn = np.asarray(step.components_, dtype=np.float64)
        if step.whiten:
            least = np.finfo(step.explained_variance_.dtype).eps
            turn = turn / np.maximum(np.sqrt(step.explained_variance_), least)[:, None]
        return turn, -turn @ step.mean_
    if isinstance(step, TruncatedSVD):
        return np.asarray(step.components_, dtype=np.float64), np.zeros(len(step.components_))
    if isinstance(step, SelectorMixin):
        kept = np.flatnonzero(step.get_support())
        return np.eye(d)[kept], np.zeros(len(kept))
    if isinstance(step, SCALERS) and not getattr(step, "clip", False):
        scale, shift = _scaling(step, d)
        return np.diag(scale), shift
    if _passes(step):
        return np.eye(d), np.zeros(d)
    raise ModelError(
        f"step {path!r} ({type(step).__name__}) follows one that mixes columns and is not affine; "
        "only scalers, PCA, TruncatedSVD and feature selectors may. Put it before."
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
    return np.full(d, otherwise) if values is None else np.asarray(values, dtype=np.float64)


def fed_names(steps: Any) -> NDArray[Any] | None:
    """Return the names of the columns that fitted steps know; None if they know none."""
    for _, step in _flat(steps):
        names = getattr(step, "feature_names_in_", None)
        return None if names is None else np.asarray(names, dtype=object)
    return None
