"""Runs of a project: begun, gone on with, kept as files, renamed, deleted.

A run has two files: the rows, each with its segment and the columns in use, and what
`voicecf.files.Job` answers about those that are asked.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Generator
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from voicecf.app.campaign.plan import Campaign, CampaignCounts, Run
from voicecf.app.effort import question, squared, usual_prices
from voicecf.app.project import Project
from voicecf.app.project.project import RUNS
from voicecf.app.row.question import Objective, within
from voicecf.app.segments.naming import given_names
from voicecf.app.segments.segments import Segments
from voicecf.errors import VoiceError
from voicecf.files import Job, answers_so_far, open_source

# Runs whose answers are in memory, rows that are answered between two signs of progress.
IN_MEMORY, PART = 3, 2_000
LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
LONGEST_NAME = 60
# Columns of the files that are ours: where a row stands in the table, its segment, if it is asked.
AT, SEGMENT, ASKED = "voicecf at", "voicecf segment", "voicecf asked"
# What became of a row, besides the words of `voicecf.Status`.
NOT_ASKED, LEFT_OUT, WAITING = "not asked", "left out", "waiting"
MOVING, NOT_ANSWERED = ("optimal", "stopped"), (NOT_ASKED, LEFT_OUT, WAITING)


class RunError(VoiceError):
    """A run cannot be read, or cannot go on."""


def present(project: Project) -> Campaign:
    """Return what is asked now, without what no longer applies."""
    asked = replace(project.choices.campaign, allowed=project.question.allowed)
    if project.choices.aimed != project.segments_key:
        sources, target = project.aims
        asked = replace(asked, sources=sources, target=target)
    return asked.within(project.prepared.names, project.k)


def plan(project: Project, **changed: object) -> None:
    """Change what is asked; what may change is the project's own."""
    if {"sources", "target"} & changed.keys():
        project.aim()
    project.change(campaign=replace(project.choices.campaign, **changed))  # type: ignore[arg-type]


def asked(campaign: Campaign, segments: Segments) -> dict[str, Any]:
    """Return what `VoICE.explain` is given besides the rows.

    Columns without a price stay as they are, unless they are free. Of answers that change as few
    columns, the search prefers those whose changes cost little.
    """
    names, allowed = segments.prepared.names, campaign.allowed
    prices = campaign.rates(usual_prices(segments))
    if campaign.prices and not campaign.free:
        fixed = [n for n in names if n in allowed.get("immutable", ()) or n not in prices]
        allowed = {**within(allowed, list(prices)), "immutable": fixed}
    if campaign.prices and campaign.objective is not Objective.LEAST:
        allowed = {**allowed, "costs": squared(segments, prices)}
    target = "nearest" if campaign.target is None else campaign.target
    target = "each" if campaign.each else target
    return question(segments, campaign.objective, target, allowed, prices)


def new_run(project: Project, campaign: Campaign) -> Run:
    """Begin a run; nothing is answered yet, and nothing kept."""
    found = project.segments
    prepared = found.prepared
    last = (run.name.partition("Run ")[2] for run in project.choices.runs)
    number = 1 + max((int(n) for n in last if n.isdecimal()), default=0)
    return Run(
        "".join(secrets.choice(LETTERS) for _ in range(10)), f"Run {number}",
        datetime.now().replace(microsecond=0), campaign, project.segments_key, project.names,
        tuple(prepared.names), usual_prices(found), prepared.whole, prepared.identity,
        project.choices.reading.sheet,
    )  # fmt: skip


def going(project: Project, run: Run) -> Generator[tuple[int, int], None, None]:
    """Answer what is left, part by part; yields how many rows are done, and of how many.

    Whenever it is left, what was found until then is kept: the run can go on.
    """
    if not is_current(project, run):
        raise RunError(
            "The segments have changed since this run began, so it cannot go on. Answer again."
        )
    rows, output = _rows_file(project, run), _file(project, run)
    if not rows.exists():
        rows.parent.mkdir(exist_ok=True)
        _rows(project, run.campaign).to_parquet(rows, index=False)
    source = open_source(sql=f'select * from \'{rows}\' where "{ASKED}" order by "{AT}"')
    voice, words = (
        project.segments.firmly(run.campaign.margin),
        asked(run.campaign, project.segments),
    )
    how: dict[str, Any] = {"part_rows": PART, "rounded": True}
    begun = False
    try:
        try:
            for step in Job.of(voice, source, output, words, **how):
                begun = True
                yield step
        except VoiceError:
            if begun:
                raise
            # The work of other versions of the libraries, or damaged: begun anew.
            yield from Job.of(voice, source, output, words, **how, restart=True)
    finally:
        _keep(project, run)


def _rows(project: Project, campaign: Campaign) -> pd.DataFrame:
    """Return all rows of the visitor's table in the columns in use, each with its segment."""
    prepared, labels = project.prepared, project.segments.labels
    table = prepared.used(project.table.frame).reset_index(drop=True)
    whole = [name for name in prepared.whole if prepared.frame[name].dtype.kind == "i"]
    table = table.astype(dict.fromkeys(whole, "Int64"))
    segment = np.full(len(table), -1)
    segment[prepared.rows] = labels
    some = np.isin(segment, campaign.sources) if campaign.sources else segment >= 0
    return table.assign(**{AT: np.arange(len(table)), SEGMENT: segment, ASKED: some})


def _keep(project: Project, run: Run) -> None:
    if not project.folder.exists():
        raise RunError("This work was deleted while it was being answered, so nothing is kept.")
    table = _joined(project, run)
    if table is None:
        return
    run = replace(run, counts=counts(table))
    before = project.choices.runs
    at = next((i for i, one in enumerate(before) if one.id == run.id), len(before))
    project.change(runs=(*before[:at], run, *before[at + 1 :]))
    project.save()
    project.once("answers", _key(run), lambda: table, IN_MEMORY)


def counts(table: pd.DataFrame) -> CampaignCounts:
    """Count rows, each once, whatever number of targets it was asked about."""
    result = table["result"]
    by_row = pd.DataFrame({
        "row": table["row"], "moves": result.isin(MOVING), "already": result == "already",
        "waiting": result == WAITING,
    })[~result.isin((NOT_ASKED, LEFT_OUT))].groupby("row").any()  # fmt: skip
    movable, already, waiting = (
        int(some.sum())
        for some in (by_row["moves"], by_row["already"] & ~by_row["moves"], by_row["waiting"])
    )
    impossible = len(by_row) - movable - already - waiting
    return CampaignCounts(len(by_row), movable, already, impossible, waiting)


def _file(project: Project, run: Run) -> Path:
    return project.folder / RUNS / f"{run.id}.parquet"


def _rows_file(project: Project, run: Run) -> Path:
    return project.folder / RUNS / f"{run.id}.rows.parquet"


def _key(run: Run) -> str:
    return f"{run.id} {run.counts}"


def answers(project: Project, run: Run) -> pd.DataFrame:
    """Return the answers of a run that is kept; raises a RunError if its file is lost.

    Its columns are row (where the row stands in the visitor's table, counted from 0), from and to
    (segments by number, -1 for none), result, and for each column in use its values “before NAME”
    and “after NAME”. Every row of the visitor's table has a line, whether it was asked about or
    not, and one for each target.
    """

    def read() -> pd.DataFrame:
        with suppress(OSError, ValueError, VoiceError):
            if (found := _joined(project, run)) is not None:
                return found
        raise RunError(
            f"The answers of “{run.name}” are lost: their file is gone or damaged. Delete the "
            "run, and answer again."
        )

    return project.once("answers", _key(run), read, IN_MEMORY)


def _joined(project: Project, run: Run) -> pd.DataFrame | None:
    """Join rows and answers; None if nothing is answered."""
    found = answers_so_far(_file(project, run))
    if found is None:
        return None
    rows = pd.read_parquet(_rows_file(project, run))
    after = found.to_pandas()
    result = np.where(rows[SEGMENT] < 0, LEFT_OUT, np.where(rows[ASKED], WAITING, NOT_ASKED))
    table = pd.DataFrame({"row": rows[AT], "from": rows[SEGMENT]})
    table = pd.concat([table, rows[list(run.columns)].add_prefix("before ")], axis=1)
    new = after[list(run.columns)].add_prefix("after ")
    new = new.assign(row=after[AT], to=after["voicecf_target"], result=after["voicecf_status"])
    table = table.merge(new, on="row", how="left").sort_values(["row", "to"], ignore_index=True)
    table["result"] = table["result"].fillna(pd.Series(result[table["row"]]))
    return table.assign(to=table["to"].fillna(-1).astype(np.int64))


def rename(project: Project, run: Run, name: str) -> None:
    """Call a run something else; an empty name changes nothing."""
    name = " ".join(name.split())[:LONGEST_NAME]
    if name:
        renamed = [replace(r, name=name) if r.id == run.id else r for r in project.choices.runs]
        project.change(runs=tuple(renamed))


def delete(project: Project, run: Run) -> None:
    """Delete a run and its answers."""
    project.change(runs=tuple(r for r in project.choices.runs if r.id != run.id))
    for path in (project.folder / RUNS).glob(f"{run.id}.*"):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def is_current(project: Project, run: Run) -> bool:
    """Tell whether the segments are still those that a run is about."""
    return run.segments_key == project.segments_key


def names_of(project: Project, run: Run) -> tuple[str, ...]:
    """Return what the segments of a run are called: as now, or as long as there were any."""
    if is_current(project, run):
        return project.names
    later = project.choices.names.get(run.segments_key)
    return run.names if later is None else given_names(run.names, later)


def answers_hold(project: Project, run: Run, campaign: Campaign) -> bool:
    """Tell whether a run answers what is asked now, whatever the budget.

    Prices in proportion to the run's own, or another currency, leave the answers as they are.
    """
    if not is_current(project, run) or run.campaign.sources != campaign.sources:
        return False
    before, after = (_in_proportion(asked(c, project.segments)) for c in (run.campaign, campaign))
    return run.campaign.margin == campaign.margin and before == after


def _in_proportion(words: dict[str, Any]) -> dict[str, Any]:
    """Return a question with the largest price being 1."""
    prices = words["rules"].get("prices", {})
    largest = max((max(pair) for pair in prices.values()), default=0.0) or 1.0
    scaled = {n: tuple(round(p / largest, 12) for p in pair) for n, pair in prices.items()}
    return {**words, "rules": {**words["rules"], "prices": scaled}}


def visitor_rows(project: Project, run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """Return the visitor's table; without columns if it is another one than at the run."""
    frame = project.table.frame
    same = len(table) > 0 and len(frame) == int(table["row"].iloc[-1]) + 1
    same &= run.sheet == project.choices.reading.sheet
    return frame if same else pd.DataFrame(index=range(len(table)))
