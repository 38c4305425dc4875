"""All benchmarks in one table: what, time, ratio, and what the ratio should be.

Alternatives run in the same process, one after the other; shared machines are noisy, so trust the
ratios and not the times.
"""

from __future__ import annotations

from itertools import chain

import bench_columns
import bench_explain
import bench_rules
import bench_shark

from voicecf._core import instruction_set
from voicecf.parallel import cores


def shown(seconds: float) -> str:
    for unit, size in (("s ", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:9.2f} {unit}"
    return f"{seconds / 1e-9:9.0f} ns"


def main() -> None:
    print(f"{cores()} cores; instruction set {instruction_set()}; SHARK on Diabetes")
    print(f"{'what':<58} {'time':>12} {'ratio':>10}  goal")
    parts = (bench_explain, bench_columns, bench_rules, bench_shark)
    every = chain.from_iterable(part.rows() for part in parts)
    for what, seconds, ratio, goal in every:
        print(f"{what:<58} {shown(seconds)} {ratio:>10,.2f}  {goal}", flush=True)
    print("\n".join(bench_columns.notes()))


if __name__ == "__main__":
    main()
