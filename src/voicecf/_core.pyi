"""Types of the compiled core; see `native/`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Whole = NDArray[np.int64]

FEW_ROWS: int

def instruction_set() -> str: ...

class Stop:
    def __init__(self) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *failure: object) -> None: ...
    def set(self) -> None: ...
    def is_set(self) -> bool: ...

class Batch:
    def __init__(
        self,
        points: _Floats,
        lo: _Floats,
        hi: _Floats,
        rows: _Whole | None = None,
        targets: _Whole | None = None,
        factor: float = 1.0,
    ) -> None: ...
    def limit(self, ranks: _Whole, counts: _Whole) -> None: ...
    def price(self, up: _Floats, down: _Floats) -> None: ...

class Results:
    def __init__(
        self,
        points: _Floats,
        multipliers: _Floats,
        gap: _Floats,
        reach: _Floats,
        status: NDArray[np.int8],
        close: NDArray[np.bool_],
    ) -> None: ...
    def tell(
        self,
        source: _Whole,
        cost: _Floats,
        copies: _Floats | None = None,
    ) -> None: ...

class Rows:
    @staticmethod
    def listed(
        u: _Floats, offsets: _Floats, origin: _Floats, scale: _Floats, guard: _Floats
    ) -> Rows: ...
    @staticmethod
    def clusters(
        centers: _Floats,
        weights: _Floats,
        alphas: _Floats | None,
        delta: float,
        growth: float,
        eps: float,
        expanded: bool,
    ) -> Rows: ...
    def project(self, batch: Batch, results: Results, start: int, stop: int) -> None: ...
    def nearest(
        self,
        points: _Floats,
        labels: _Whole,
        doubtful: NDArray[np.bool_],
        start: int,
        stop: int,
    ) -> None: ...
    def prefix_floors(
        self, batch: Batch, order: _Whole, floor: _Whole, start: int, stop: int
    ) -> None: ...
    def branch(self, batch: Batch, rules: Rules, found: Found, start: int, stop: int) -> None: ...

class Rules:
    def __init__(self, columns: _Whole, listed: _Floats, pitches: _Floats) -> None: ...
    def allow(
        self,
        stay: Any,
        allowed: Any,
        least: Any,
        most: Any,
        lo: _Floats,
        hi: _Floats,
        locked: NDArray[np.uint8],
    ) -> None: ...
    def leave_out(self, gaps: _Floats, holes: _Whole) -> None: ...
    def bend(
        self,
        places: _Whole,
        factors: _Floats,
        limits: _Floats,
        tight: NDArray[np.uint8],
        lines: _Floats,
        worth: _Floats,
        own: _Floats,
        errors: _Floats,
    ) -> None: ...
    def equate(self, parts: _Whole, sizes: _Floats) -> None: ...
    def know(
        self, starts: _Whole, z: _Floats, u: _Floats, under: _Floats, over: _Floats
    ) -> None: ...
    def join(
        self,
        places: _Whole,
        ends: _Floats,
        options: _Whole,
        starts: _Whole,
        levels: _Whole,
        own: _Floats,
    ) -> None: ...
    def price(self, up: _Floats, down: _Floats, fees: _Floats, bent: NDArray[np.uint8]) -> None: ...
    def limit(self, changes: int, fewest: bool, nodes: int) -> None: ...

class Found:
    def __init__(
        self,
        points: _Floats,
        gap: _Floats,
        reach: _Floats,
        status: NDArray[np.int8],
        close: NDArray[np.bool_],
        changes: _Whole,
        nodes: _Whole,
    ) -> None: ...
    def tell(self, stuck: _Floats) -> None: ...

class Measure:
    def __init__(
        self,
        rows: _Whole,
        points: _Floats,
        answers: _Floats,
        weights: _Floats,
        metric: _Floats,
    ) -> None: ...
    def run(self, cost: _Floats, energy: _Floats, start: int, stop: int) -> None: ...

class Table:
    def __init__(self, X: _Floats, mass: _Floats, centers: _Floats, weights: _Floats) -> None: ...
    def nearest(
        self, labels: NDArray[np.int32], closest: _Floats, start: int, stop: int
    ) -> None: ...
    def sweep(self, origins: _Floats, sums: _Floats, totals: _Floats, around: _Floats) -> None: ...
    def distances(self, out: _Floats, start: int, stop: int) -> None: ...
