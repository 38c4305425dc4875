"""Recompute what was asked for, dataset by dataset."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, TextIO

from tqdm import tqdm

from voicecf import datasets
from voicecf.datasets.sources import CATALOGUE
from voicecf.diagnostics import PairwiseComparison
from voicecf.errors import known_option
from voicecf.paper.cells import Entry, entries
from voicecf.paper.protocol import FITS, PairwiseStudy, Study
from voicecf.paper.published import TABLES, Key, figures, titles
from voicecf.paper.tables import RECOMPUTED, dominant_names, quoted_rows, validity_rows

# What the fifty k-means fits are for.
VALIDITY = {"validity", "validity_text"}
# What the two models take beside a k-means fit, for the progress bar alone.
MODELS = 20


@dataclass(frozen=True)
class StudyRequest:
    """What to recompute: tables and datasets by name, and what lies beyond the print."""

    tables: Sequence[str] = TABLES
    datasets: Sequence[str] = ()
    extended: bool = False
    paired: bool = False

    def __post_init__(self) -> None:
        for table in self.tables:
            known_option(table, TABLES, "table")
        for name in self.datasets:
            known_option(name, datasets.names(), "dataset")

    def names(self) -> list[str]:
        """Name the datasets, all ten if none is asked for."""
        return list(self.datasets) or datasets.names()

    def all_tables(self) -> list[str]:
        """Name the tables, with those beyond the print that belong to them, in order."""
        return [
            name
            for name, table in RECOMPUTED.items()
            if (table.base or name) in self.tables
            and (not table.option or getattr(self, table.option))
        ]

    def steps(self) -> int:
        """Count what is to be done for a dataset, in fits of k-means."""
        tables = set(self.all_tables())
        return FITS * bool(tables & VALIDITY) + MODELS * bool(tables - VALIDITY)


@dataclass
class Reproduction:
    """The recomputed cells, and how long it took."""

    entries: list[Entry] = field(default_factory=list)
    comparisons: dict[str, PairwiseStudy] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def compared(self) -> list[Entry]:
        """Cells that are compared with something printed."""
        return [entry for entry in self.entries if entry.compared]

    @property
    def differing(self) -> list[Entry]:
        """Cells that differ, ties left out."""
        return [e for e in self.compared if not e.agrees and "tie" not in e.notes]

    @property
    def excused(self) -> list[Entry]:
        """Cells that differ and rest on a tie."""
        return [e for e in self.compared if not e.agrees and "tie" in e.notes]


def reproduce(
    request: StudyRequest | None = None,
    bar: Any = None,
    tell: Callable[[str], None] = lambda text: None,
) -> Reproduction:
    """Recompute tables of the paper.

    Parameters
    ----------
    request : StudyRequest
        What to recompute; every table for all datasets if left out.
    bar : tqdm
        Shows how far it is: `progress_bar`.
    tell : callable
        Told how long each dataset took.

    Returns
    -------
    Reproduction

    Examples
    --------
    >>> from voicecf.paper.reproduction import StudyRequest, reproduce
    >>> found = reproduce(StudyRequest(tables=["parsimony"], datasets=["iris"]))
    >>> [(entry.key.column, entry.text, entry.agrees) for entry in found.compared][:2]
    [('feasible_pct', '100.0', True), ('r_star', '1.79', True)]
    """
    request = request or StudyRequest()
    bar = tqdm(disable=True) if bar is None else bar
    start = perf_counter()
    result = Reproduction()
    bar.reset(request.steps() * sum(map(_microseconds, request.names())))
    for name in request.names():
        since = perf_counter()
        _run(name, request, result, bar)
        tell(f"{name}: {perf_counter() - since:.1f} s")
    bar.close()
    if set(result.comparisons) == set(datasets.names()):
        pooled, quoted = overall([each.found for each in result.comparisons.values()])
        result.entries = [*quoted, *result.entries, *pooled]
    order = {table: at for at, table in enumerate(request.all_tables())}
    wanted = [entry for entry in result.entries if entry.key.table in order]
    result.entries = sorted(wanted, key=lambda entry: order[entry.key.table])
    result.seconds = perf_counter() - start
    return result


def _run(name: str, request: StudyRequest, result: Reproduction, bar: Any) -> None:
    """Add the cells of one dataset."""
    work, tables = _microseconds(name), request.all_tables()
    study = Study(datasets.load(name), tick=partial(bar.update, work))
    title = study.dataset.title
    for table in tables:
        # A table has the datasets that it was printed with; beyond the print, and in the text, all.
        if title in titles(table) or table == "validity_text" or not titles(table):
            bar.set_description_str(f"{title}: {table}")
            names = dominant_names(study)
            result.entries += entries(table, title, RECOMPUTED[table].rows(study), names)
    if set(tables) & VALIDITY:
        result.comparisons[name] = study.comparison
    if set(tables) - VALIDITY:
        bar.update(MODELS * work)


def progress_bar(stream: TextIO) -> Any:
    """Return a bar with the time left, if a stream is a terminal."""
    form = "{percentage:3.0f}%|{bar:24}| {remaining} left  {desc}"
    how: dict[str, Any] = {"leave": False, "smoothing": 0, "mininterval": 0, "bar_format": form}
    return tqdm(total=1, file=stream, disable=not stream.isatty(), **how)


def overall(found: Sequence[PairwiseComparison]) -> tuple[list[Entry], list[Entry]]:
    """Return what is said of all datasets together: in the table of validity, and in the text."""
    pooled = validity_rows(sum(found, PairwiseComparison()))
    text = entries("validity_text", "Overall", quoted_rows(found))
    return entries("validity", "Overall", pooled), text


def _microseconds(name: str) -> int:
    """Guess the time of a k-means fit, for the progress bar alone."""
    title = CATALOGUE[name].title
    n, d, k = (int(figures()[Key("datasets", title, "", column)].text) for column in "ndk")
    return 5_000 + n * d * k // 40
