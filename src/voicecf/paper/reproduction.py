"""Recompute what was asked for, dataset by dataset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

from voicecf import datasets
from voicecf.datasets.sources import CATALOGUE
from voicecf.errors import known_option
from voicecf.paper.cells import Entry
from voicecf.paper.progress import Silent, StudyProgress
from voicecf.paper.protocol import FITS, PairwiseStudy, Study, compare
from voicecf.paper.published import TABLES, Key, figures, released, titles
from voicecf.paper.tables import BUILDERS, overall_tables, underestimation, validity_table

# What lies beyond the print, and the printed table that each belongs to.
EXTENDED = {
    "least_cost_by_mode": "least_cost",
    "parsimony_by_mode": "parsimony",
    "actionability_by_mode": "actionability",
    "solver": "actionability",
    "contraction_all": "contraction",
}
PAIRED = {
    "least_cost_paired": "least_cost",
    "parsimony_paired": "parsimony",
    "actionability_paired": "actionability",
}


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
        beyond = (EXTENDED if self.extended else {}) | (PAIRED if self.paired else {})
        wanted = [table for table in TABLES if table in self.tables]
        return wanted + [table for table, base in beyond.items() if base in self.tables]

    def wants(self, *tables: str) -> bool:
        """Tell whether one of some tables is asked for."""
        return bool(set(tables) & set(self.all_tables()))


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
    request, progress = request or StudyRequest(), progress or Silent()
    start = perf_counter()
    result = Reproduction()
    progress.plan(sum(_work(name, request) for name in request.names()))
    for name in request.names():
        progress.say(name)
        since = perf_counter()
        _run(Study(datasets.load(name)), request, result, progress)
        progress.tell(name, perf_counter() - since)
    progress.close()
    _finish(request, result)
    result.seconds = perf_counter() - start
    return result


def _run(
    study: Study, request: StudyRequest, result: Reproduction, progress: StudyProgress
) -> None:
    title = study.title
    for table, build in BUILDERS.items():
        if request.wants(table) and _covers(table, title):
            progress.say(f"{title}: {table}")
            result.entries.extend(build(study))
    progress.advance(_model_work(study.dataset.name, request))
    if request.wants("validity", "validity_text"):
        progress.say(f"{title}: validity")
        step = _fit_work(study.dataset.name)
        comparison = compare(study.X, study.dataset.k, tick=lambda: progress.advance(step))
        result.comparisons[study.dataset.name] = comparison
        result.entries.extend(validity_table(title, comparison.found))
        result.entries.extend(underestimation(study, comparison.found))


def _covers(table: str, title: str) -> bool:
    """Tell whether a table has a dataset: as printed or released, or any beyond the print."""
    printed = [key.dataset for key in released()] if table == "solver" else titles(table)
    return title in printed or not printed


def _finish(request: StudyRequest, result: Reproduction) -> None:
    """Add what is said of all datasets together, if all were run; sort by table."""
    if set(result.comparisons) == set(datasets.names()):
        found = {name: each.found for name, each in result.comparisons.items()}
        overall = list(overall_tables(found))
        quoted = [entry for entry in overall if entry.key.table == "validity_text"]
        rest = [entry for entry in overall if entry.key.table != "validity_text"]
        result.entries = quoted + result.entries + rest
    order = {table: at for at, table in enumerate(request.all_tables())}
    wanted = [entry for entry in result.entries if entry.key.table in order]
    result.entries = sorted(wanted, key=lambda entry: order[entry.key.table])


def _fit_work(name: str) -> float:
    """Guess the seconds of a k-means fit, for the progress bar alone."""
    title = CATALOGUE[name].title
    n, d, k = (int(figures()[Key("datasets", title, "", column)].text) for column in "ndk")
    return 0.005 + 2.5e-8 * n * d * k


def _model_work(name: str, request: StudyRequest) -> float:
    """Guess the seconds of what needs the two models, likewise."""
    return (
        20 * _fit_work(name) if set(request.all_tables()) - {"validity", "validity_text"} else 0.0
    )


def _work(name: str, request: StudyRequest) -> float:
    fits = FITS if request.wants("validity", "validity_text") else 0
    return fits * _fit_work(name) + _model_work(name, request)
