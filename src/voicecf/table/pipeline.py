"""The fitted steps before a model: which column each coordinate comes from, and how.

A wire is a column on its way through the steps. A step has input and output wires, and every wire
knows the user's column that it comes from. The wires just before the first step that mixes columns
(PCA, a feature selector) are the coordinates z; the steps from there on are one affine map,
x = A z + c.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.impute._iterative import IterativeImputer
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    TargetEncoder,
)

from voicecf.errors import ModelError
from voicecf.geometry.arrays import Array
from voicecf.geometry.pullback import Mixing
from voicecf.table.affine import (
    MIXERS,
    SCALERS,
    Branch,
    flat,
    identity,
    mixing_of,
    parts_of,
    passes,
)
from voicecf.table.branches import cut, mixes
from voicecf.table.frames import is_missing, transformed
from voicecf.table.inverses import inverse_of

# Transformers by what they do to a column: an invertible map that is not affine, a code for its
# levels, a code for intervals of its numbers; and those that fill in missing values.
CURVES = (PowerTransformer, QuantileTransformer)
ENCODERS = (OneHotEncoder, OrdinalEncoder, TargetEncoder)
BINS = (KBinsDiscretizer, Binarizer)
CODERS = (*ENCODERS, *BINS)
IMPUTERS = (SimpleImputer, KNNImputer, IterativeImputer)
KNOWN = (
    "StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler, PowerTransformer, "
    "QuantileTransformer, FunctionTransformer with an inverse, OneHotEncoder, OrdinalEncoder, "
    "TargetEncoder, KBinsDiscretizer, SimpleImputer, KNNImputer, ColumnTransformer and "
    "FeatureUnion; then PCA, TruncatedSVD or a feature selector"
)


@dataclass(frozen=True)
class Coding:
    """How the levels of a column are coded.

    Attributes
    ----------
    levels : tuple
        Empty for bins, whose levels are learned from the data.
    ordered : bool
        Whether the code keeps the order of the levels.
    merged : bool
        Whether infrequent levels have one code.
    binned : bool
        Whether the column has numbers, coded by the bin that they are in.
    """

    levels: tuple[Any, ...]
    ordered: bool
    merged: bool = False
    binned: bool = False

    @classmethod
    def of(cls, coder: Any, i: int) -> Coding:
        """Return how a fitted encoder, or a transformer into bins, codes its i-th input."""
        if isinstance(coder, BINS):
            return cls((), ordered=True, binned=True)
        groups = getattr(coder, "infrequent_categories_", None)
        merged = groups is not None and groups[i] is not None
        ordered = isinstance(coder, OrdinalEncoder) and not merged
        return cls(tuple(coder.categories_[i].tolist()), ordered, merged)


@dataclass(frozen=True, eq=False)
class Wire:
    """One column of numbers or levels between two steps.

    Attributes
    ----------
    source : int
        Position of the user's column that it comes from.
    raw : bool
        Whether it holds the user's values, at most with missing ones imputed.
    affine : bool
        Whether it is an affine function of the user's column.
    indicator : bool
        Whether it only tells if the user's column has a value.
    coding : Coding or None
        How the levels of the user's column are coded; None if it has none, or is not coded.
    filled : bool
        Whether missing values are filled in from other columns.
    own : str
        The user's own transformer that it went through; empty if there was none.
    """

    source: int
    raw: bool = True
    affine: bool = True
    indicator: bool = False
    coding: Coding | None = None
    filled: bool = False
    own: str = ""


@dataclass(frozen=True)
class Link:
    """A transformer with its input and output wires."""

    transformer: Any
    inputs: list[Wire]
    outputs: list[Wire]


@dataclass
class Trace:
    """Follows the user's columns, `names`, through fitted steps; `links` are the steps so far."""

    names: list[Any]
    links: list[Link] = field(default_factory=list)

    def through(self, path: str, transformer: Any, inputs: list[Wire]) -> list[Wire]:
        """Follow wires through one fitted transformer; return its output wires."""
        if passes(transformer):
            return inputs
        if isinstance(transformer, (ColumnTransformer, FeatureUnion)):
            outputs: list[Wire] = []
            for part in parts_of(path, transformer, len(inputs)):
                outputs += self.through_part(part, inputs)
            return outputs
        if isinstance(transformer, CODERS):
            return self._through_code(path, transformer, inputs)
        if isinstance(transformer, IMPUTERS):
            return self._through_imputer(path, transformer, inputs)
        if isinstance(transformer, MissingIndicator):
            return self._through_indicator(path, transformer, inputs)
        return self._through_map(path, transformer, inputs)

    def through_part(self, part: Branch, inputs: list[Wire]) -> list[Wire]:
        """Follow the columns of a part through its steps; return its output wires."""
        wires = [inputs[i] for i in part.columns]
        for path, step in part.steps:
            wires = self.through(path, step, wires)
        return wires

    def _through_code(self, path: str, coder: Any, inputs: list[Wire]) -> list[Wire]:
        """Follow columns into the codes of their levels, or of bins."""
        outputs: list[Wire] = []
        for i, wire in enumerate(inputs):
            if isinstance(coder, ENCODERS) and not (wire.raw or wire.indicator):
                raise ModelError(
                    f"step {path!r} encodes column {self.names[wire.source]!r} after another "
                    "step has changed it; encode the column as it is (a SimpleImputer may come "
                    "first)."
                )
            coding = wire.coding
            if coding is None and not wire.indicator:
                coding = Coding.of(coder, i)
            for _ in range(_code_width(coder, i)):
                outputs.append(replace(wire, raw=False, affine=False, coding=coding))
        return self._linked(coder, inputs, outputs)

    def _through_imputer(self, path: str, imputer: Any, inputs: list[Wire]) -> list[Wire]:
        # A column without any value in the data of fit is dropped by default.
        pairs = zip(inputs, _is_empty(imputer), strict=True)
        present = [wire for wire, empty in pairs if imputer.keep_empty_features or not empty]
        filled = not isinstance(imputer, SimpleImputer)
        if filled:
            self._check_gaps(path, imputer)
        outputs = [replace(wire, filled=wire.filled or filled) for wire in present]
        self._linked(imputer, present, outputs)
        if imputer.add_indicator:
            outputs = outputs + self._through_indicator(path, imputer.indicator_, inputs)
        return outputs

    def _through_indicator(
        self, path: str, indicator: MissingIndicator, inputs: list[Wire]
    ) -> list[Wire]:
        """Return wires that tell whether columns have a value; nothing leads back from them."""
        self._check_gaps(path, indicator)
        marked = [inputs[i].source for i in indicator.features_]
        return [Wire(source, raw=False, affine=False, indicator=True) for source in marked]

    def _check_gaps(self, path: str, imputer: Any) -> None:
        """Raise if a transformer takes some number or text for a missing value."""
        if not is_missing(imputer.missing_values):
            raise ModelError(
                f"step {path!r} ({type(imputer).__name__}) takes {imputer.missing_values!r} for a "
                "missing value; voicecf follows it for missing_values=np.nan only. Write NaN into "
                "the table instead."
            )

    def _through_map(self, path: str, transformer: Any, inputs: list[Wire]) -> list[Wire]:
        affine = isinstance(transformer, SCALERS) and not getattr(transformer, "clip", False)
        own = ""
        if isinstance(transformer, FunctionTransformer):
            if inverse_of(transformer) is None:
                raise ModelError(
                    f"step {path!r} is a FunctionTransformer without inverse_func, so answers "
                    "cannot be translated back into your columns; give the inverse as well: "
                    "FunctionTransformer(np.log1p, inverse_func=np.expm1). Functions of numpy such "
                    "as np.log1p and np.sqrt need none."
                )
        elif not isinstance(transformer, (*SCALERS, *CURVES)):
            own = f"step {path!r} ({type(transformer).__name__})"
            if type(transformer).__module__.startswith("sklearn."):
                raise ModelError(f"{own} is not supported; what works: {KNOWN}.")
            if not hasattr(transformer, "inverse_transform"):
                raise ModelError(
                    f"{own} has no inverse_transform, so answers cannot be translated back into "
                    "your columns; give it one, or use a FunctionTransformer with an inverse."
                )
        outputs = [
            replace(w, raw=False, affine=w.affine and affine, own=w.own or own) for w in inputs
        ]
        return self._linked(transformer, inputs, outputs)

    def _linked(self, transformer: Any, inputs: list[Wire], outputs: list[Wire]) -> list[Wire]:
        """Record a transformer with its wires, and return its outputs."""
        self.links.append(Link(transformer, inputs, outputs))
        return outputs


@dataclass(frozen=True)
class Steps:
    """The fitted steps before a model: a map from the user's columns to coordinates, and on.

    Attributes
    ----------
    before, after : list of transformers
        The steps up to the coordinates, and those from the first mixing step on. `after` is None if
        the first mixing step was cut into branches (see `voicecf.table.branches`).
    whole : list of transformers
        All steps.
    inputs, wires : list of Wire
        Those of the user's columns, and those of the coordinates.
    links : list of Link
        The transformers with their wires, in order, which are followed backwards.
    mixing : Mixing or None
        The affine map from the coordinates to the model's input; None if they are the same.
    fitted_on_names : bool
        Whether the first step was fitted on a frame whose column names scikit-learn stores, which
        it does only if all of them are text.
    """

    before: list[Any]
    after: list[Any] | None
    whole: list[Any]
    inputs: list[Wire]
    wires: list[Wire]
    links: list[Link]
    mixing: Mixing | None
    fitted_on_names: bool

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
        >>> [wire.source for wire in steps.wires], steps.mixing.matrix.shape
        ([0, 1, 2], (2, 3))
        """
        named, inputs = list(flat("", steps)), [Wire(i) for i in range(len(names))]
        trace, wires = Trace(names), inputs
        before: list[Any] = []
        for path, step in named:
            if mixes(path, step, len(wires)):
                break
            wires = trace.through(path, step, wires)
            before.append(step)
        rest, mixing = named[len(before) :], None
        after: list[Any] | None = [step for _, step in rest]
        if rest and isinstance(rest[0][1], MIXERS):
            mixing = mixing_of(rest, identity(len(wires)))
        elif rest:
            follow = partial(trace.through_part, inputs=wires)
            front, wires, start = cut(*rest[0], len(wires), follow)
            mixing = mixing_of(rest[1:], start, weighted=True)
            before, after = [*before, front], None
        return cls(
            before=before,
            after=after,
            whole=[step for _, step in named],
            inputs=inputs,
            wires=wires,
            links=trace.links,
            mixing=mixing,
            fitted_on_names=input_names(steps) is not None,
        )

    @cached_property
    def codings(self) -> dict[int, Coding]:
        """The coding of each column that is a category, by the column's position."""
        found: dict[int, Coding] = {}
        for wire in self.wires:
            if wire.coding is not None:
                found.setdefault(wire.source, wire.coding)
        return found

    @cached_property
    def filled(self) -> list[int]:
        """Columns whose missing values are filled in from other columns."""
        return sorted({wire.source for wire in self.wires if wire.filled})

    def forward(self, rows: Any) -> Any:
        """Return the coordinates of rows: the output of the steps in `before`, of any type."""
        return transformed(self.before, rows)

    def onward(self, output: Any, rows: Any) -> Any:
        """Return the input of the model from rows and what `forward` made of them."""
        if self.after is None:
            return transformed(self.whole, rows)
        return transformed(self.after, output)

    def backward(self, points: Array) -> dict[int, Array]:
        """Return the user's values of number columns, by the columns' positions."""
        sources = {w.source for w in self.wires if not w.indicator} - set(self.codings)
        if len(points) == 0:  # scalers refuse empty arrays
            return {source: np.empty(0) for source in sources}
        columns = dict(zip(self.wires, np.ascontiguousarray(points.T), strict=True))
        for link in reversed(self.links):
            columns.update(_reversed(link, columns))
        return {source: columns[self.inputs[source]] for source in sources}


def _code_width(coder: Any, i: int) -> int:
    """Return the number of columns that code the i-th input of an encoder, or of bins."""
    if isinstance(coder, OneHotEncoder):
        return int(coder._n_features_outs[i])
    if isinstance(coder, TargetEncoder) and coder.target_type_ == "multiclass":
        return len(coder.classes_)
    if isinstance(coder, KBinsDiscretizer) and coder.encode != "ordinal":
        return len(coder.bin_edges_[i]) - 1
    return 1


def _is_empty(imputer: Any) -> list[bool]:
    """Tell which columns had no value in the data that an imputer was fitted on."""
    if isinstance(imputer, KNNImputer):
        return (~imputer._valid_mask).tolist()  # type: ignore[no-any-return]
    simple = imputer.initial_imputer_ if isinstance(imputer, IterativeImputer) else imputer
    return [is_missing(value) for value in simple.statistics_]


def _reversed(link: Link, columns: dict[Wire, Array]) -> dict[Wire, Array]:
    """Compute the input wires of a link from its output wires; nothing for encoders and bins."""
    if isinstance(link.transformer, CODERS):
        return {}
    if isinstance(link.transformer, IMPUTERS):
        pairs = zip(link.inputs, link.outputs, strict=True)
        return {before: columns[after] for before, after in pairs if after in columns}
    # Nothing leads back from an encoder or a bin to a wire before it.
    unknown = np.full(len(next(iter(columns.values()))), np.nan)
    outputs = np.array([columns.get(after, unknown) for after in link.outputs]).T
    outputs[~np.isfinite(outputs)] = np.nan  # transformers refuse infinity
    inverse = inverse_of(link.transformer)
    assert inverse is not None  # a `Trace` does not go through others
    # Outside the range of a map the inverse is NaN, so a warning of numpy adds nothing.
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        inputs = _undone(inverse, outputs, next((wire.own for wire in link.outputs), ""))
    return {before: inputs[:, i] for i, before in enumerate(link.inputs)}


def _undone(inverse: Any, outputs: Array, own: str) -> Array:
    """Return what a transformer's inverse makes of its outputs; raise if the user's own fails."""
    try:
        inputs = np.asarray(inverse(outputs), dtype=np.float64)
    except Exception as error:
        if not own:
            raise
        raise ModelError(
            f"{own}: inverse_transform raised {type(error).__name__}: {error!s:.200}. It gets an "
            "array of numbers, a column for each that transform returned, NaN where nothing is "
            "known, and must return one of the same shape."
        ) from error
    if own and inputs.shape != outputs.shape:
        raise ModelError(
            f"{own}: inverse_transform returned an array of shape {inputs.shape} for one of shape "
            f"{outputs.shape}; a step of your own is followed if it turns each column into one."
        )
    return inputs


def input_names(steps: Any) -> NDArray[Any] | None:
    """Return the column names that steps were fitted with; None if with an array."""
    for _, step in flat("", steps):
        names = getattr(step, "feature_names_in_", None)
        return None if names is None else np.asarray(names, dtype=object)
    return None
