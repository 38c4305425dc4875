"""Recompute what was asked for, dataset by dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from voicecf import datasets
from voicecf.datasets.sources import CATALOGUE
from voicecf.diagnostics import PairwiseComparison
from voicecf.errors import known_option
from voicecf.paper.cells import Entry, entries
from voicecf.paper.progress import StudyProgress
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
        return [entry for entry in self.compared if entry.differs and not entry.excused]

    @property
    def excused(self) -> list[Entry]:
        """Cells that differ and rest on a tie."""
        return [entry for entry in self.compared if entry.differs and entry.excused]


def reproduce(
    request: StudyRequest | None = None, progress: StudyProgress | None = None
) -> Reproduction:
    """Recompute tables of the paper.

    Parameters
    ----------
    request : StudyRequest
        What to recompute; every table for all datasets if left out.
    progress : StudyProgress
        Where to tell how far it is; nowhere if left out.

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
    request, progress = request or StudyRequest(), progress or StudyProgress()
    start = perf_counter()
    result = Reproduction()
    progress.plan(request.steps() * sum(map(_seconds, request.names())))
    for name in request.names():
        since = perf_counter()
        _run(name, request, result, progress)
        progress.tell(name, perf_counter() - since)
    progress.close()
    if set(result.comparisons) == set(datasets.names()):
        pooled, quoted = overall([each.found for each in result.comparisons.values()])
        result.entries = [*quoted, *result.entries, *pooled]
    order = {table: at for at, table in enumerate(request.all_tables())}
    wanted = [entry for entry in result.entries if entry.key.table in order]
    result.entries = sorted(wanted, key=lambda entry: order[entry.key.table])
    result.seconds = perf_counter() - start
    return result


def _run(name: str, request: StudyRequest, result: Reproduction, progress: StudyProgress) -> None:
    """Add the cells of one dataset."""
    seconds = _seconds(name)
    study = Study(datasets.load(name), tick=lambda: progress.advance(seconds))
    title, tables = study.dataset.title, request.all_tables()
    for table in tables:
        # A table has the datasets that it was printed with; beyond the print, and in the text, all.
        if title in titles(table) or table == "validity_text" or not titles(table):
            progress.say(f"{title}: {table}")
            names = dominant_names(study)
            result.entries += entries(table, title, RECOMPUTED[table].rows(study), names)
    if set(tables) & VALIDITY:
        result.comparisons[name] = study.comparison
    if set(tables) - VALIDITY:
        progress.advance(MODELS * seconds)


def overall(found: Sequence[PairwiseComparison]) -> tuple[list[Entry], list[Entry]]:
    """Return what is said of all datasets together: in the table of validity, and in the text."""
    pooled = validity_rows(sum(found, PairwiseComparison()))
    text = entries("validity_text", "Overall", quoted_rows(found))
    return entries("validity", "Overall", pooled), text


def _seconds(name: str) -> float:
    """Guess the seconds of a k-means fit, for the progress bar alone."""
    title = CATALOGUE[name].title
    n, d, k = (int(figures()[Key("datasets", title, "", column)].text) for column in "ndk")
    return 0.005 + 2.5e-8 * n * d * k
