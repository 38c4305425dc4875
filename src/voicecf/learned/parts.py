"""What has to be saved of `Learned`: all that does not follow from the fitted model."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from voicecf.geometry.models import KINDS, partition_of
from voicecf.geometry.partition import Partition
from voicecf.learned.learned import Learned
from voicecf.learned.members import Members
from voicecf.rules.allowed import DefaultBounds
from voicecf.saving.sound import check_counts, need
from voicecf.table.column import Column
from voicecf.table.learning import check_trace, space_of_steps
from voicecf.table.model import split_pipeline
from voicecf.table.rows import Rows
from voicecf.table.sample_row import SampleCell, cells_of, frame_of, plain_row
from voicecf.table.space import Space

# Shapes of arrays, a letter for each length: k clusters, p pieces, d coordinates, c columns, n
# columns of the user's table, s inputs of the model, e values, and 1. Those of whole numbers are
# marked #, and those that may be infinite ~.
SHAPES = {
    "weights": "d", "origins": "pd", "centers": "ps", "spread": "d", "alpha": "k", "ranking": "c#",
    "round_trip_error": "d", "lo": "c~", "hi": "c~", "low": "d~", "high": "d~",
    "points": "1d", "seen": "1s", "means": "kd", "axes": "kdd", "counts": "k#", "extremes": "e",
}  # fmt: skip
OF_BOUNDS, OF_MEMBERS = ("lo", "hi", "low", "high"), ("means", "axes", "counts", "extremes")
OF_LEARNED = ("weights", "origins", "spread", "alpha", "ranking")
MOST_PACKED = 1 << 19  # numbers that are unpacked one by one
OPTIONS = ("delta", "margin", "contract_bounds", "names", "ranks_equally", "derived")


def parts_of(learned: Learned) -> dict[str, Any]:
    """Return what `learned_of` needs, in plain values and arrays, and the fitted model."""
    check_counts(learned.model)
    space, bounds, members = learned.space, learned.bounds, learned.members
    arrays = {name: getattr(learned, name) for name in OF_LEARNED}
    arrays["round_trip_error"] = space.round_trip_error
    arrays |= dict(zip(OF_BOUNDS, (bounds.lo, bounds.hi, *bounds.box), strict=True))
    if members is not None:
        arrays |= {name: getattr(members, name) for name in OF_MEMBERS}
    if learned.model is not None and not _tells_centers(partition_of(_last(learned.model))):
        arrays["centers"] = learned.partition.centers
    sample = None
    if space.sample is not None:
        sample = _sample_parts(space, space.sample)
        arrays |= {"points": space.sample.points, "seen": space.sample.seen}
    columns = _table_of(space.columns)
    del columns["places"], columns["unit"]
    return {
        "model": learned.model,
        "partition": _partition_parts(learned.partition) if learned.model is None else None,
        "sources": space.sources,
        "named": space.named,
        "columns": columns,
        "units": {str(c): column.unit for c, column in enumerate(space.columns) if column.unit},
        "sample": sample,
        "arrays": arrays,
        "options": {name: getattr(learned, name) for name in OPTIONS},
    }


def learned_of(parts: dict[str, Any]) -> Learned:
    """Return what was learned again; raise SavingError if the parts do not fit together."""
    arrays, options, model = parts["arrays"], parts["options"], parts["model"]
    check_counts(model)
    steps, last = split_pipeline(model)
    if model is None:
        partition = _bare_partition(parts["partition"], arrays["weights"])
    else:
        partition = partition_of(last)
        if "centers" in arrays:
            need(not _tells_centers(partition), "centers")
            partition = replace(partition, centers=arrays["centers"])  # type: ignore[call-arg]
    space = _space(steps, partition, parts)
    k, p = partition.n_clusters, partition.n_pieces
    c, d = len(space.columns), space.n_coordinates
    s = d if space.mixing is None else len(space.mixing.shift)
    need(partition.n_inputs == s, "model")
    members = None
    if "counts" in arrays:
        members = Members(*(arrays[name] for name in OF_MEMBERS))
    _check_arrays(arrays, {"k": k, "p": p, "d": d, "c": c, "s": s, "1": 1}, members)
    _check_options(options, k)
    space.round_trip_error = arrays["round_trip_error"]
    if space.steps is not None:
        space.sample = _sample(parts["sample"], arrays, len(space.sources))
    bounds = DefaultBounds(arrays["lo"], arrays["hi"], (arrays["low"], arrays["high"]))
    fields = {name: arrays[name] for name in OF_LEARNED}
    learned = Learned(model, partition, space, bounds=bounds, members=members, **fields, **options)
    _try_one_row(learned)
    return learned


def _last(model: Any) -> Any:
    return split_pipeline(model)[1]


def _tells_centers(partition: Partition) -> bool:
    """Tell whether the model itself has a point inside each piece."""
    return not np.isnan(partition.centers).any()


def _table_of(records: list[Any]) -> dict[str, Any]:
    """Return records field by field: a file of many columns has few parts then."""
    names = records[0].__dataclass_fields__
    return {name: _packed([getattr(record, name) for record in records]) for name in names}


def _packed(values: list[Any]) -> Any:
    """Return a list as an array if it is one of truth values, floats or tuples of as many."""
    tuples = all(type(value) is tuple for value in values)
    kinds = {type(part) for value in values for part in (value if tuples else (value,))}
    even = not tuples or len(set(map(len, values))) == 1
    array = np.array(values) if even and (kinds <= {bool} or kinds == {float}) else None
    return values if array is None or array.size > MOST_PACKED else array


def _records(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the fields of each record of such a table."""
    lists = [values if isinstance(values, list) else _unpacked(values) for values in table.values()]
    return [dict(zip(table, record, strict=True)) for record in zip(*lists, strict=True)]


def _unpacked(array: Any) -> list[Any]:
    need(array.ndim <= 2 and array.size + len(array) <= 2 * MOST_PACKED, "columns")
    return [tuple(value) if isinstance(value, list) else value for value in array.tolist()]


def _sample_parts(space: Space, sample: Rows) -> dict[str, Any]:
    """Return the user's values of a row, those of columns that the steps drop only if plain."""
    frame, array = sample.frame, sample.array
    needed = [source for column in space.columns for source in column.sources]
    if frame is None:
        assert array is not None
        array = plain_row(array, [space.sources.index(source) for source in needed])
        return {"cells": None, "library": None, "array": array}
    cells = cells_of(frame, {space.frame_name(frame, source) for source in needed})
    library = str(frame.implementation.value)
    return {"cells": _table_of(cells), "library": library, "array": array}


def _sample(parts: dict[str, Any], arrays: dict[str, Any], n: int) -> Rows:
    """Return the row of the data that a space stores."""
    cells, array = parts["cells"], parts["array"]
    need((cells is None) != (array is None), "sample row")
    need(array is None or array.shape == (1, n), "sample row")
    frame = None
    if cells is not None:
        frame = frame_of([SampleCell(**cell) for cell in _records(cells)], parts["library"])
    return Rows(frame, arrays["points"], arrays["seen"], array=array)


def _partition_parts(partition: Partition) -> dict[str, Any]:
    """Return a partition that has no model: its kind, its arrays and its labels."""
    kind, classes = type(partition).__name__, partition.classes
    plain = {"kind": kind, "arrays": partition.arrays()}
    return plain if classes is None else plain | {"classes": list(classes)}


def _bare_partition(parts: dict[str, Any], weights: Any) -> Partition:
    """Return a partition without a model."""
    kind, arrays = parts["kind"], parts["arrays"]
    need(kind in KINDS, "partition")
    for array in (weights, *arrays.values()):
        need(type(array) is np.ndarray and array.dtype in (np.float64, np.int64), "partition")
        need(np.isfinite(array).all(), "partition")
    partition, classes = KINDS[kind].of_arrays(weights, arrays), parts.get("classes")
    if classes is not None:
        plain = all(isinstance(c, (str, bool, int, float)) for c in classes)
        need(plain and len(set(classes)) == len(classes) == partition.n_clusters, "classes")
    return replace(partition, classes=None if classes is None else tuple(classes))


def _space(steps: Any, partition: Partition, parts: dict[str, Any]) -> Space:
    """Return the space of a pipeline's steps, with the columns that were learned."""
    space = space_of_steps(steps, parts["sources"], parts["named"], partition.dtype)
    # Only declared blocks have several sources: what is read here are the columns before these.
    places_of = {(column.sources[0], column.indicator): column.places for column in space.columns}
    columns, units = [], parts["units"]
    for c, fields in enumerate(_records(parts["columns"])):
        own = {(source, fields["indicator"]) for source in fields["sources"]}
        places = np.sort([place for key in own for place in places_of.get(key, ())])
        columns.append(Column(places=places, unit=units.get(str(c), ""), **fields))
        _check_column(columns[-1])
    places = np.concatenate([column.places for column in columns])
    need(np.array_equal(np.sort(places), np.arange(space.n_coordinates)), "columns")
    space.use(columns)
    return space


def _check_column(column: Column) -> None:
    width = len(column.places)
    need(isinstance(column.unit, str) and column.unit.isprintable(), "units")
    if column.kind == "number":
        (low, high), (least, most) = column.observed, column.limits
        need(width == 1 and low <= high and least <= most, f"column {column.name!r:.80}")
        need(np.isfinite(np.array(column.listed, float)).all(), f"column {column.name!r:.80}")
    else:
        need(column.kind == "category", f"column {column.name!r:.80}")
        _check_array("options", column.options, (len(column.levels), width))


def _check_arrays(arrays: dict[str, Any], sizes: dict[str, int], members: Members | None) -> None:
    """Compare all arrays with the table of shapes, and their numbers with what they mean."""
    for name, array in arrays.items():
        letters = SHAPES[name]
        if name == "extremes":
            assert members is not None
            sizes["e"] = int(members.starts[-1])
        shape = tuple(sizes[letter] for letter in letters.rstrip("#~"))
        _check_array(name, array, shape, letters[-1])
    for name in ("weights", "spread", "round_trip_error", *(("counts",) if members else ())):
        need((arrays[name] >= 0).all(), name)
    if members is not None:
        pieces = np.split(members.extremes, members.starts[1:-1])
        need(all((np.diff(piece, prepend=0.0) >= 0).all() for piece in pieces), "extremes")
    need((arrays["alpha"] > 0).all() and (arrays["alpha"] <= 1).all(), "alpha")
    need((arrays["lo"] <= arrays["hi"]).all(), "bounds")
    need(np.array_equal(np.sort(arrays["ranking"]), np.arange(sizes["c"])), "ranking")


def _check_array(name: str, array: Any, shape: tuple[int, ...], mark: str = "") -> None:
    dtype = np.int64 if mark == "#" else np.float64
    need(type(array) is np.ndarray and array.dtype == dtype and array.shape == shape, name)
    need(not np.isnan(array).any() if mark == "~" else np.isfinite(array).all(), name)


def _check_options(options: dict[str, Any], k: int) -> None:
    names = options["names"]
    need(isinstance(names, tuple) and len(set(names)) == len(names) == k, "names")
    need(all(isinstance(name, str) for name in names), "names")
    need(0 <= options["delta"] < np.inf and 0 <= options["margin"] < 1, "margin")
    need(all(isinstance(options[n], bool) for n in ("contract_bounds", "ranks_equally")), "options")
    derived = options["derived"]
    need(isinstance(derived, dict), "derived")
    need(all(isinstance(text, str) for pair in derived.items() for text in pair), "derived")


def _try_one_row(learned: Learned) -> None:
    """Send the stored row through the steps and the model, which raise if they do not fit."""
    space = learned.space
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if space.steps is None:
            learned.partition.labels(learned.origins)
            return
        assert space.sample is not None
        rows = space.read_again(space.sample)
        check_trace(space, rows)
        learned.labels(rows)
