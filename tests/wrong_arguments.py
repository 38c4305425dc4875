"""Call everything in the compiled core with each argument wrong in turn.

    python tests/wrong_arguments.py

A process of its own, for a core that reads beyond an array may end it. Every case is printed before
it is run, so that the last line names the one that ended it. A call has to refuse what is wrong, or
to answer as if it had been given right: where an array is converted, or where nothing reads it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import voicecf._core as _core

Arguments = dict[str, Any]
N, D = 11, 3
REFUSED = (ValueError, IndexError, TypeError, BufferError)
WRITTEN = {  # arrays that answers are written to
    "out", "out_points", "multipliers", "gap", "reach", "status", "close", "source", "cost",
    "copies", "labels_out", "doubtful", "floor", "energy", "bound", "changes_out", "nodes_out",
    "closest", "sums", "totals", "around", "stuck",
}  # fmt: skip
# Changes that say something else, and are right all the same.
FREE = {
    "order": ("shorter", "longer", "empty"), "ranks": (" at ",), "counts": (" at ",),
    "least": (" at ",), "most": (" at ",), "rows": ("None",), "alphas": ("None",),
    "holes": (" at ",), "box_options": (" at ",), "copies": ("None",),
    "multipliers": ("empty along axis 1",),
    "nodes": ("",), "start": ("1",), "target": ("2",), "centers": ("along axis 0",),
}  # fmt: skip


def eighths(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Return numbers that single precision holds, too."""
    return rng.integers(-24, 25, shape) / 8


def results(rng: np.random.Generator, width: int) -> Arguments:
    return {
        "out_points": np.zeros((N, D)), "multipliers": np.zeros((N, width)), "gap": np.zeros(N),
        "reach": np.zeros(N), "status": np.zeros(N, np.int8), "close": np.zeros(N, np.bool_),
        "start": 0, "stop": N,
    }  # fmt: skip


def box(rng: np.random.Generator) -> Arguments:
    return {"points": eighths(rng, N, D), "lo": np.full((1, D), -2.0), "hi": np.full((N, D), 2.0)}


def unit_rows(rng: np.random.Generator, m: int) -> Arguments:
    return {
        "u": np.eye(D)[rng.integers(D, size=m)] * rng.choice([-1.0, 1.0], (m, 1)),
        "offsets": eighths(rng, m), "origin": eighths(rng, D), "scale": np.ones(D),
        "guard": np.zeros((6, m)),
    }  # fmt: skip


def centroids(rng: np.random.Generator, k: int) -> Arguments:
    return {
        "centers": eighths(rng, k, D) + np.arange(k)[:, None], "weights": np.ones(D),
        "alphas": np.ones(k), "delta": 0.5, "growth": 1e-15, "eps": 1e-16, "expanded": True,
    }  # fmt: skip


def listed(a: Arguments) -> _core.Rows:
    return _core.Rows.listed(a["u"], a["offsets"], a["origin"], a["scale"], a["guard"])


def clusters(a: Arguments) -> _core.Rows:
    return _core.Rows.clusters(
        a["centers"], a["weights"], a["alphas"], a["delta"], a["growth"], a["eps"], a["expanded"]
    )


def results_of(a: Arguments) -> _core.Results:
    return _core.Results(
        a["out_points"], a["multipliers"], a["gap"], a["reach"], a["status"], a["close"]
    )


def project(a: Arguments) -> None:
    batch = _core.Batch(a["points"], a["lo"], a["hi"], rows=a["rows"])
    batch.limit(a["ranks"], a["counts"])
    listed(a).project(batch, results_of(a), a["start"], a["stop"])


def price(a: Arguments) -> None:
    batch = _core.Batch(a["points"], a["lo"], a["hi"], rows=a["rows"])
    batch.price(a["up"], a["down"])
    listed(a).project(batch, results_of(a), a["start"], a["stop"])


def project_into_cells(a: Arguments) -> None:
    batch = _core.Batch(a["points"], a["lo"], a["hi"], targets=a["targets"])
    out = results_of(a)
    out.tell(a["source"], a["cost"], a["copies"])
    clusters(a).project(batch, out, a["start"], a["stop"])


def nearest(a: Arguments) -> None:
    clusters(a).nearest(a["points"], a["labels_out"], a["doubtful"], a["start"], a["stop"])


def prefix_floors(a: Arguments) -> None:
    batch = _core.Batch(a["points"], a["lo"], a["hi"], rows=a["rows"])
    listed(a).prefix_floors(batch, a["order"], a["floor"], a["start"], a["stop"])


def branch(a: Arguments) -> None:
    rules = _core.Rules(a["columns"], a["listed_options"], a["pitches"])
    rules.allow(a["stay"], a["allowed"], a["least"], a["most"], a["low"], a["high"], a["locked"])
    rules.leave_out(a["gaps"], a["holes"])
    rules.bend(
        a["places"], a["factors"], a["limits"], a["tight"], a["lines"], a["worth"], a["own"],
        a["errors"],
    )  # fmt: skip
    rules.equate(a["parts"], a["sizes"])
    rules.know(a["knot_starts"], a["knot_z"], a["knot_u"], a["under"], a["over"])
    rules.join(
        a["joined"],
        a["box_ends"],
        a["box_options"],
        a["level_starts"],
        a["levels"],
        a["own_joined"],
    )
    if "fees" in a:
        rules.price(a["up"], a["down"], a["fees"], a["bent"])
    rules.limit(a["changes"], a["fewest"], a["nodes"])
    batch = _core.Batch(a["points"], a["lo"], a["hi"], rows=a["rows"])
    found = _core.Found(
        a["out_points"], a["gap"], a["reach"], a["status"], a["close"], a["changes_out"],
        a["nodes_out"],
    )  # fmt: skip
    found.tell(a["stuck"])
    listed(a).branch(batch, rules, found, a["start"], a["stop"])


def measure(a: Arguments) -> None:
    measures = _core.Measure(a["rows"], a["points"], a["answers"], a["weights"], a["metric"])
    measures.run(a["cost"], a["energy"], a["start"], a["stop"])


def table(a: Arguments) -> _core.Table:
    return _core.Table(a["points"], a["mass"], a["centers"], a["weights"])


def table_nearest(a: Arguments) -> None:
    table(a).nearest(a["labels_out"], a["closest"], a["start"], a["stop"])


def table_sweep(a: Arguments) -> None:
    for name in ("sums", "totals", "around"):
        if isinstance(a[name], np.ndarray) and a[name].flags.writeable:
            a[name][...] = 0  # they are added to
    table(a).sweep(a["origins"], a["sums"], a["totals"], a["around"])


def table_distances(a: Arguments) -> None:
    table(a).distances(a["out"], a["start"], a["stop"])


def search_arguments(rng: np.random.Generator) -> Arguments:
    """Return a search over a number, a listed grid, a long grid, and a category of two levels."""
    columns = [[0, 1, 0, 0, 0, 0], [1, 1, 1, 0, 3, 0], [2, 1, 1, 3, 9, 0], [3, 2, 2, 3, 2, 0]]
    wide, m, c = 5, 4, len(columns)
    return {
        "u": np.eye(wide)[:m] * -1.0, "offsets": np.full(m, 0.5), "origin": np.zeros(wide),
        "scale": np.ones(wide), "guard": np.zeros((6, m)),
        "points": eighths(rng, N, wide), "lo": np.zeros((1, wide)), "hi": np.zeros((1, wide)),
        "rows": rng.permutation(N), "columns": np.array(columns),
        "listed_options": np.array([-1.0, 0.5, 2.0, 1.0, 0.0, 0.0, 1.0]),
        "pitches": np.array([[0.0, 0.0], [0.0, 0.0], [-1.0, 0.25], [0.0, 0.0]]),
        "stay": np.ones((1, c), np.uint8), "allowed": np.ones((N, 2), np.uint8),
        "least": np.zeros((N, c), np.int64), "most": np.tile([0, 2, 8, 0], (1, 1)),
        "low": np.full((1, wide), -2.0), "high": np.full((N, wide), 2.0),
        "locked": np.zeros((1, c), np.uint8),
        "places": np.array([[0, 0], [0, 1], [1, 2], [1, 0]]), "factors": np.array([1.0, 1, 1, -1]),
        "limits": np.array([3.0, 2.5]), "tight": np.array([0, 1], np.uint8),
        "lines": np.tile([1.0, 0.0], (c, 1)), "worth": np.arange(7.0), "own": np.zeros((N, c)),
        "parts": np.array([[-1, 0, -1, -1, 0, -1, -1], [1, 0, 2, 0, 1, 2, 0]]),
        "sizes": np.array([[0.0, -1.0], [0.5, 0.25]]),
        "errors": np.zeros(c), "knot_starts": np.array([0, 5, 8, 8, 8]),
        "knot_z": np.tile([-2.0, -1, 0, 1, 2, -1, 0.5, 2], (N, 1)),
        "knot_u": np.tile([0.0, 1, 4, 9, 16, 0, 1, 2], (N, 1)), "under": np.full((N, 8), 0.25),
        "over": np.zeros((N, 8)), "stuck": np.zeros((N, 3 * c)),
        "gaps": np.tile([-0.5, 0.25], (N, c)), "holes": np.tile([0, 2], (N, c)),
        "joined": np.array([[0, 0, 2, 0], [0, 3, 2, 1], [1, 1, 1, 0], [1, 2, 1, 0]]),
        "box_ends": np.array([
            [-1.0, 1, -1, 1], [0.5, 2, 0.5, 2], *2 * [[-np.inf, np.inf, np.inf, -np.inf]],
            [-1, 0.5, -1, 0.5], [-2, 2, -1, 1],
        ]),
        "box_options": np.array([[0, -1]] * 4 + [[0, 1], [0, 8]]),
        "level_starts": np.array([0, 0, 0, 1, 3, 3, 3]), "levels": np.array([1, 0, 1]),
        "own_joined": np.zeros((N, 4)),
        "changes": 4, "fewest": True, "nodes": 200,
        "out_points": np.zeros((N, wide)), "gap": np.zeros(N),
        "reach": np.zeros(N), "status": np.zeros(N, np.int8), "close": np.zeros(N, np.bool_),
        "changes_out": np.zeros(N, np.int64), "nodes_out": np.zeros(N, np.int64),
        "start": 0, "stop": N,
    }  # fmt: skip


def calls(rng: np.random.Generator) -> Iterator[tuple[Callable[[Arguments], None], Arguments]]:
    """Yield calls with arguments that are right: few rows and many, which go different ways."""
    whole, line, part = np.zeros(N, np.int64), np.zeros(N), {"start": 0, "stop": N}
    for m in (4, 70):
        ranked = {"rows": rng.permutation(N), "ranks": np.arange(D), "counts": np.full(N, D)}
        yield project, {**unit_rows(rng, m), **box(rng), **results(rng, m), **ranked}
        prices = {"rows": rng.permutation(N), "up": np.ones(D), "down": np.arange(D) / 2.0}
        yield price, {**unit_rows(rng, m), **box(rng), **results(rng, m), **prices}
        order = {"rows": rng.permutation(N), "order": np.arange(D), "floor": whole.copy()}
        yield prefix_floors, {**unit_rows(rng, m), **box(rng), **order, **part}
    for k in (3, 70):
        told = {
            "targets": rng.integers(k, size=N), "source": whole.copy(), "cost": line.copy(),
            "copies": np.zeros((N, D)),
        }  # fmt: skip
        yield project_into_cells, {**centroids(rng, k), **box(rng), **results(rng, k), **told}
        labels = {"labels_out": whole.copy(), "doubtful": np.zeros(N, np.bool_)}
        yield nearest, {**centroids(rng, k), "points": eighths(rng, N, D), **labels, **part}
    yield branch, search_arguments(rng)
    prices = {"up": np.ones(5), "down": np.arange(5) / 2.0, "fees": np.tile([1.0, 3.0], (N, 1))}
    prices["bent"] = np.array([1, 1, 0, 0], np.uint8)
    yield branch, {**search_arguments(rng), **prices, "fewest": False}
    yield measure, {
        "rows": rng.permutation(N), "points": eighths(rng, N, D), "answers": eighths(rng, N, D),
        "weights": np.ones(D), "metric": np.ones(D), "cost": line.copy(), "energy": line.copy(),
        **part,
    }  # fmt: skip
    k = 4
    lloyd = {
        "points": eighths(rng, N, D), "mass": np.ones(N), "centers": eighths(rng, k, D),
        "weights": np.ones(D),
    }  # fmt: skip
    assigned = {"labels_out": np.zeros(N, np.int32), "closest": line.copy()}
    yield table_nearest, {**lloyd, **assigned, **part}
    yield table_sweep, {
        **lloyd, "origins": eighths(rng, k, D), "sums": np.zeros((k, D)), "totals": np.zeros(k),
        "around": np.zeros((k, D)),
    }  # fmt: skip
    yield table_distances, {**lloyd, "out": np.zeros((N, k)), **part}


def wrong_arrays(value: np.ndarray) -> Iterator[tuple[str, Any]]:
    """Yield arrays in place of one: of another shape, another type, or with other indices."""
    yield "one dimension more", value[None]
    yield "one dimension less", value.reshape(-1) if value.ndim > 1 else value.sum()
    for axis in range(value.ndim):
        yield f"shorter along axis {axis}", np.delete(value, -1, axis)
        yield f"longer along axis {axis}", np.insert(value, value.shape[axis], 1, axis)
        yield f"empty along axis {axis}", np.delete(value, slice(None), axis)
    yield "empty", np.zeros((0,) * value.ndim, value.dtype)
    for dtype in ("float32", "int32", "int64", "float64", "uint8", "bool", "complex128", "O", "U8"):
        if dtype != value.dtype:
            yield f"of type {dtype}", value.astype(dtype)
    yield "of the other byte order", value.astype(value.dtype.newbyteorder())
    spread = np.zeros((*value.shape, 2), value.dtype)
    spread[..., 0] = value
    yield "not contiguous", spread[..., 0]
    yield "transposed in memory", np.asfortranarray(value)
    frozen = value.copy()
    frozen.flags.writeable = False
    yield "read-only", frozen
    numbers = [-1, 10**6, 2**62, -(2**62)] if value.dtype == np.int64 else []
    numbers = [np.nan, np.inf, -np.inf, 1e300] if value.dtype == np.float64 else numbers
    for number in numbers:
        for place in range(min(value.size, 24)):
            changed = value.copy()
            changed.flat[place] = number
            yield f"{number} at {place}", changed


def wrong_values(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what stands in place of an argument."""
    for other in (None, "word", [1, 2], object()):
        yield repr(other)[:9], other
    if isinstance(value, np.ndarray):
        yield from wrong_arrays(value)
        return
    for number in (-1, value + 1, 10**6, 2**31 - 1, 2**62, -(2**62), 2**70, 0.5, np.nan, np.inf):
        yield repr(number), number


def outcome(call: Callable[[Arguments], None], a: Arguments) -> dict[str, bytes] | None:
    """Return what a call wrote, or None if it refused its arguments."""
    try:
        call(a)
    except REFUSED:
        return None
    written = {name: a[name] for name in a if name in WRITTEN}
    return {name: np.asarray(v).tobytes() for name, v in written.items() if v is not None}


def copied(a: Arguments) -> Arguments:
    return {name: v.copy() if isinstance(v, np.ndarray) else v for name, v in a.items()}


def is_free(name: str, what: str, value: Any) -> bool:
    """Whether a change is right, too: any number will do, or it is named above."""
    numbers = isinstance(value, np.ndarray) and value.dtype.kind == "f" and " at " in what
    named = any(word in what for word in FREE.get(name, ()))
    return named or numbers or isinstance(value, (float, bool))


def fails(
    call: Callable[[Arguments], None], right: Arguments, name: str, what: str, to: Any
) -> bool:
    """Whether a call accepts a wrong argument, and does not answer as it does without it."""
    found = outcome(call, {**copied(right), name: to})
    if found is None or is_free(name, what, right[name]):
        return False
    if what.startswith("of type") and not np.array_equal(to.astype(right[name].dtype), right[name]):
        return False  # other numbers
    return found != outcome(call, copied(right))


def objects() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield uses of objects in the wrong order, or of the wrong kind."""
    rng = np.random.default_rng(1)
    few, cells = unit_rows(rng, 4), centroids(rng, 3)
    given, out = box(rng), results(rng, 0)
    whole = _core.Batch(given["points"], given["lo"], given["hi"])
    onto = _core.Batch(given["points"], given["lo"], given["hi"], targets=np.zeros(N, np.int64))
    told = results_of(results(rng, 0))
    told.tell(np.zeros(N, np.int64), np.zeros(N))
    a = search_arguments(rng)
    bare = _core.Rules(a["columns"], a["listed_options"], a["pitches"])
    found = _core.Found(
        a["out_points"], a["gap"], a["reach"], a["status"], a["close"], a["changes_out"],
        a["nodes_out"],
    )  # fmt: skip
    without = clusters({**cells, "alphas": None})
    labels, doubtful = np.zeros(N, np.int64), np.zeros(N, np.bool_)
    yield "listed rows with targets", lambda: listed(few).project(onto, results_of(out), 0, N)
    yield "listed rows that tell", lambda: listed(few).project(whole, told, 0, N)
    yield "cells without targets", lambda: clusters(cells).project(whole, results_of(out), 0, N)
    yield "cells without alphas", lambda: without.project(onto, results_of(out), 0, N)
    yield (
        "nearest of listed rows",
        lambda: listed(few).nearest(given["points"], labels, doubtful, 0, N),
    )
    yield (
        "floors of cells",
        lambda: clusters(cells).prefix_floors(whole, np.arange(D), labels, 0, N),
    )
    yield "search in cells", lambda: clusters(cells).branch(whole, bare, found, 0, N)
    yield (
        "search without rules",
        lambda: listed(a).branch(
            _core.Batch(a["points"], a["lo"], a["hi"], rows=a["rows"]), bare, found, 0, N
        ),
    )
    yield (
        "search without rows",
        lambda: listed(a).branch(_core.Batch(a["points"], a["lo"], a["hi"]), bare, found, 0, N),
    )
    for kind in (_core.Batch, _core.Results, _core.Rows, _core.Rules, _core.Found, _core.Measure):
        yield f"empty {kind.__name__}", kind
        blank = kind.__new__(kind)
        yield f"blank {kind.__name__}", lambda blank=blank: listed(few).project(blank, blank, 0, N)
        yield (
            f"search with a blank {kind.__name__}",
            lambda blank=blank: listed(a).branch(blank, blank, blank, 0, N),
        )


def refused(use: Callable[[], Any]) -> bool:
    try:
        use()
    except REFUSED:
        return True
    return False


def main() -> int:
    """Run all cases; the number of those that failed."""
    failed = []
    for what, use in objects():
        print(what, flush=True)
        failed += [] if refused(use) else [what]
    for call, right in calls(np.random.default_rng(0)):
        assert outcome(call, copied(right)) is not None, call.__name__
        for name, value in right.items():
            for what, to in wrong_values(value):
                case = f"{call.__name__}: {name} {what}"
                print(case, flush=True)
                failed += [case] if fails(call, right, name, what, to) else []
    left = _core.Stop()
    left.__enter__()
    del left  # its thread still looks at it
    call, right = next(calls(np.random.default_rng(0)))
    assert outcome(call, copied(right)) is not None
    print(f"{len(failed)} failed:", *failed, sep="\n")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main() > 0)
