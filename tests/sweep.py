"""Run many random problems through the kernel and judge every answer.

    python tests/sweep.py --count 100000 --seed 0 --processes 2
    python tests/sweep.py --seed 0 --index 1234          # one problem again, with all details

Every answer is judged by its own certificate (KKT conditions or Farkas vector, in extended
precision), then by DAQP, and by HiGHS where DAQP fails and on every tenth problem. The exit code is
1 if anything is wrong, unresolved or without a certificate that closes.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import judges
from judges import Answer, Verdict
from problems import NAMES, Problem, family_of, problem

Solver = Callable[[Problem], Answer]
Judged = tuple[str, float, Verdict]  # label, reported gap relative to the cost, verdict

CHUNK = 100  # problems a task
HIGHS_EVERY = 10
KEPT = 500  # failed problems saved
SHOWN = 20  # failures described in full
FATAL = ("unresolved", "wrong status", "wrong cost", "loose", "raised")
COUNTED = ("problems", "points", "feasible", "infeasible", *FATAL, "undecided")


def kernel(task: Problem) -> Answer:
    """Answer a problem by voicecf.solver.projection; frozen columns are also said to be so."""
    from voicecf.geometry.region import Region
    from voicecf.solver.projection import Prefixes, Status, project

    region = Region(normals=task.G, offsets=task.h, lo=task.lo, hi=task.hi, origin=task.origin)
    frozen = ((task.lo == task.points) & (task.hi == task.points)).all(axis=0)
    free = Prefixes(frozen.astype(np.int64), np.ones(len(task.points), dtype=np.int64))
    found = project(task.points, region, metric=task.q, prefixes=free if frozen.any() else None)
    status = [Status(code).name.lower() for code in found.status]
    return Answer(found.points, found.multipliers, found.gap, status)


SOLVERS: dict[str, Solver] = {"kernel": kernel, "daqp": judges.stand_in}


@dataclass
class Tally:
    """What happened in one family."""

    counts: Counter[str] = field(default_factory=Counter)
    kkt: float = 0.0
    gap: float = 0.0
    margin: float = np.inf

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        self.counts.update(other.counts)
        self.kkt, self.gap = max(self.kkt, other.kkt), max(self.gap, other.gap)
        self.margin = min(self.margin, other.margin)

    def note(self, label: str, gap: float, verdict: Verdict) -> None:
        """Count one point."""
        self.counts.update(["points", label, f"by {verdict.judge}"])
        self.kkt = max(self.kkt, verdict.details.get("kkt", 0.0))
        self.gap = max(self.gap, gap)
        self.margin = min(self.margin, verdict.details.get("margin", np.inf))


class Failure(NamedTuple):
    """One answer that must not be."""

    seed: int
    index: int
    point: int
    family: str
    label: str
    verdict: Verdict


class Report(NamedTuple):
    """Tallies by family and the failures of some problems."""

    tallies: dict[str, Tally]
    failures: list[Failure]
    done: int

    def add(self, other: Report) -> Report:
        """Merge two reports; only the first failures are kept."""
        for family, tally in other.tallies.items():
            self.tallies.setdefault(family, Tally()).add(tally)
        self.failures.extend(other.failures[: max(0, 10 * SHOWN - len(self.failures))])
        return self._replace(done=self.done + other.done)

    @property
    def failed(self) -> bool:
        """Whether anything was wrong, unresolved, uncertified or raised."""
        return any(tally.counts[label] for tally in self.tallies.values() for label in FATAL)


def labelled(status: str, verdict: Verdict) -> str:
    """Name the column in which an answer counts; the worst that holds."""
    if status == "unresolved":
        return "unresolved"
    if verdict.outcome in ("wrong status", "wrong cost"):
        return verdict.outcome
    if not verdict.certified:
        return "loose"
    if verdict.outcome == "undecided":
        return "undecided"
    return "feasible" if status == "optimal" else "infeasible"


def examine(task: Problem, solver: Solver, asked: Iterable[str]) -> list[Judged]:
    """Solve and judge all points of one problem, in one call of the solver."""
    order = ("highs", "daqp") if task.index % HIGHS_EVERY == 0 else ("daqp", "highs")
    order = tuple(judge for judge in order if judge in set(asked))
    try:
        answer = solver(task)
    except Exception as error:  # a kernel must never raise on these
        raised = Verdict("undecided", "none", False, {"raised": repr(error)})
        return [("raised", 0.0, raised)] * len(task.points)
    found = judges.verdicts(task, answer, order)
    return [
        (labelled(status, verdict), _relative_gap(gap, verdict), verdict)
        for status, gap, verdict in zip(answer.status, answer.gap, found, strict=True)
    ]


def _relative_gap(gap: float, verdict: Verdict) -> float:
    """Reported gap relative to the cost, or to what rounding makes of it; 0 for no optimum."""
    scale = (
        verdict.details.get("cost", 0.0) + verdict.details.get("cost_error", 0.0) / judges.TOLERANCE
    )
    return float(abs(gap) / scale) if scale > 0 else 0.0


def sweep(
    indices: Iterable[int],
    seed: int,
    solver: Solver = kernel,
    asked: Iterable[str] = ("kkt", "daqp", "highs"),
    families: Iterable[str] = NAMES,
    save: Path | None = None,
) -> Report:
    """Judge the problems of a seed with the given indices."""
    report = Report({}, [], 0)
    chosen = set(families)
    for index in indices:
        report = report._replace(done=report.done + 1)
        if len(chosen) < len(NAMES) and family_of(seed, index) not in chosen:
            continue
        task = problem(seed, index)
        tally = report.tallies.setdefault(task.family, Tally())
        tally.counts["problems"] += 1
        for point, (label, gap, verdict) in enumerate(examine(task, solver, asked)):
            tally.note(label, gap, verdict)
            if label in FATAL:
                report.failures.append(Failure(seed, index, point, task.family, label, verdict))
                if save is not None:
                    keep(task, save)
    return report


def keep(task: Problem, folder: Path) -> None:
    """Save a problem as .npz, unless there are plenty already."""
    folder.mkdir(parents=True, exist_ok=True)
    if sum(1 for _ in folder.iterdir()) >= KEPT:
        return
    path = folder / f"{task.family}-{task.seed}-{task.index}.npz"
    truth = np.array([np.nan if t is None else float(t) for t in task.truth])
    names = ("points", "G", "h", "lo", "hi", "origin", "q", "witness", "proof")
    np.savez(path, truth=truth, **{name: getattr(task, name) for name in names})


def sweep_chunk(span: tuple[int, int], **options: Any) -> Report:
    """Sweep over a range of indices: a task for one process."""
    return sweep(range(*span), **options)


def reports(spans: list[tuple[int, int]], processes: int, **options: Any) -> Iterator[Report]:
    """Reports of all spans as they come, from this process or from several."""
    work = partial(sweep_chunk, **options)
    if processes == 1:
        yield from map(work, spans)
        return
    # Each process is one core: a kernel that shares a batch over cores must not oversubscribe.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    # A pool of `multiprocessing` waits for ever for the task of a process that died.
    pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    with pool:
        tasks = {pool.submit(work, span): span for span in spans}
        try:
            for task in as_completed(tasks):
                yield task.result()
        except BrokenProcessPool:
            left = [span for task, span in tasks.items() if task.cancelled() or task.exception()]
            first = ", ".join(f"{start} to {stop}" for start, stop in left[: 2 * processes])
            raise RuntimeError(
                f"a process died; it was at one of these problems: {first}."
            ) from None


def table(report: Report) -> str:
    """Counts by family and in total."""
    head = ("family", *COUNTED, "worst KKT", "worst gap", "least margin")
    total = Tally()
    for tally in report.tallies.values():
        total.add(tally)
    named = [(name, report.tallies[name]) for name in NAMES if name in report.tallies]
    rows = [head, *(_cells(name, tally) for name, tally in [*named, ("all", total)])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.rjust, row, widths)) for row in rows]
    judged = (f"{key[3:]} {n}" for key, n in sorted(total.counts.items()) if key[:3] == "by ")
    return "\n".join([*lines, f"last word by: {', '.join(judged)}"])


def _cells(name: str, tally: Tally) -> tuple[str, ...]:
    margin = f"{tally.margin:.1e}" if np.isfinite(tally.margin) else "-"
    numbers = (f"{tally.counts[column]}" for column in COUNTED)
    return (name, *numbers, f"{tally.kkt:.1e}", f"{tally.gap:.1e}", margin)


def described(failure: Failure) -> str:
    """One line that says what failed and how to see it again."""
    details = ", ".join(
        f"{key}={value:.3g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in failure.verdict.details.items()
    )
    where = f"--seed {failure.seed} --index {failure.index}  (point {failure.point})"
    return f"{failure.label}: {failure.family} {where} by {failure.verdict.judge}: {details}"


def progress(report: Report, count: int, started: float) -> None:
    """Rewrite the progress line on stderr, every ten tasks: how far, how long, how bad."""
    if report.done % (10 * CHUNK) and report.done < count:
        return
    spent = time.monotonic() - started
    left = spent / max(report.done, 1) * (count - report.done)
    bad = len(report.failures)
    line = f"\r{report.done}/{count}  {spent:.0f} s  {left:.0f} s left  {bad} failures "
    print(line, end="", file=sys.stderr, flush=True)


def show_one(seed: int, index: int, solver: Solver, asked: Iterable[str]) -> bool:
    """Print a single problem and its verdicts; say whether it passed."""
    task = problem(seed, index)
    with np.printoptions(precision=17, linewidth=150, threshold=200):
        print(task)
    labels = []
    for point, (label, gap, verdict) in enumerate(examine(task, solver, asked)):
        print(f"point {point}: {label}, reported gap {gap:.1e}, {verdict}")
        labels.append(label)
    return not set(labels) & set(FATAL)


def arguments(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    raw = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--count", type=int, default=10_000, help="how many problems")
    parser.add_argument("--start", type=int, default=0, help="index of the first problem")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--index", type=int, help="run this one problem and show everything")
    parser.add_argument("--judges", default="kkt,daqp,highs", help="of kkt, daqp, highs")
    parser.add_argument("--family", default=",".join(NAMES), help="only these, comma-separated")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--solver", choices=SOLVERS, default="kernel")
    parser.add_argument("--save", type=Path, help="folder for failed problems (default: temporary)")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Sweep, print, and return the exit code."""
    args = arguments(argv)
    asked = args.judges.split(",")
    if args.index is not None:
        return 0 if show_one(args.seed, args.index, SOLVERS[args.solver], asked) else 1
    save = args.save or Path(tempfile.mkdtemp(prefix="voicecf-sweep-"))
    stop = args.start + args.count
    spans = [(k, min(k + CHUNK, stop)) for k in range(args.start, stop, CHUNK)]
    options = {"seed": args.seed, "solver": SOLVERS[args.solver], "asked": asked}
    options |= {"families": args.family.split(","), "save": save}
    report, started = Report({}, [], 0), time.monotonic()
    for part in reports(spans, args.processes, **options):
        report = report.add(part)
        progress(report, args.count, started)
    print(file=sys.stderr)
    print(table(report))
    for failure in report.failures[:SHOWN]:
        print(described(failure))
    if report.failures:
        print(f"the problems are kept in {save}")
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
