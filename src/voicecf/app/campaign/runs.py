"""Runs of a project: begun, gone on with, kept as files, renamed, deleted."""

from __future__ import annotations

import secrets
from collections.abc import Generator
from dataclasses import replace
from datetime import datetime
from io import BytesIO
from pathlib import Path

import pandas as pd

from voicecf.app.campaign.answers import CampaignJob, counts
from voicecf.app.campaign.effort import options, spreads
from voicecf.app.campaign.plan import Campaign, Run
from voicecf.app.project import Project
from voicecf.app.project.project import RUNS
from voicecf.app.segments.naming import given_names
from voicecf.errors import VoiceError
from voicecf.saving.whole import write_whole

# Runs whose answers are in memory.
IN_MEMORY = 3
LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
LONGEST_NAME = 60


class RunError(VoiceError):
    """A run cannot be read, or cannot go on."""


def present(project: Project) -> Campaign:
    """Return what is asked now, without what no longer applies."""
    asked = replace(project.choices.campaign, allowed=project.question.allowed)
    if project.choices.aimed != project.segments_key:
        asked = replace(asked, sources=(), target=None)
    return asked.within(project.prepared.names, project.k)


def plan(project: Project, **changed: object) -> None:
    """Change what is asked; what may change is the project's own."""
    if {"sources", "target"} & changed.keys():
        project.aim()
    project.change(campaign=replace(project.choices.campaign, **changed))  # type: ignore[arg-type]


def new_run(project: Project, campaign: Campaign) -> Run:
    """Begin a run; nothing is answered yet, and nothing kept."""
    found = project.segments
    prepared = found.prepared
    number = 1 + max((_number(run.name) for run in project.choices.runs), default=0)
    return Run(
        "".join(secrets.choice(LETTERS) for _ in range(10)), f"Run {number}",
        datetime.now().replace(microsecond=0), campaign, project.segments_key, project.names,
        tuple(prepared.names), spreads(found), prepared.whole, prepared.identity,
        project.choices.reading.sheet,
    )  # fmt: skip


def _number(name: str) -> int:
    first, _, last = name.partition(" ")
    return int(last) if first == "Run" and last.isdecimal() else 0


def going(project: Project, run: Run) -> Generator[tuple[int, int], None, None]:
    """Answer what is left, part by part; yields how many rows are done, and of how many.

    Whenever it is left, what was found until then is kept: the run can go on.
    """
    if run.segments_key != project.segments_key:
        raise RunError(
            "The segments have changed since this run began, so it cannot go on. Answer again."
        )
    begun = answers(project, run) if run in project.choices.runs else None
    work = CampaignJob(project.segments, run.campaign, project.table.frame, begun)
    try:
        yield work.done, work.total
        for _ in work:
            yield work.done, work.total
    finally:
        if work.done:
            _keep(project, run, work.table())


def _keep(project: Project, run: Run, table: pd.DataFrame) -> None:
    if not project.folder.exists():
        raise RunError("This work was deleted while it was being answered, so nothing is kept.")
    run = replace(run, counts=counts(table))
    file = BytesIO()
    table.to_parquet(file, index=False)
    path = _file(project, run)
    path.parent.mkdir(exist_ok=True)
    write_whole(path, file.getvalue())
    before = project.choices.runs
    at = next((i for i, one in enumerate(before) if one.id == run.id), len(before))
    project.change(runs=(*before[:at], run, *before[at + 1 :]))
    project.save()
    project.once("answers", _key(run), lambda: table, IN_MEMORY)


def _file(project: Project, run: Run) -> Path:
    return project.folder / RUNS / f"{run.id}.parquet"


def _key(run: Run) -> str:
    return f"{run.id} {run.counts}"


def answers(project: Project, run: Run) -> pd.DataFrame:
    """Return the answers of a run that is kept; raises a RunError if its file is lost."""

    def read() -> pd.DataFrame:
        try:
            return pd.read_parquet(_file(project, run))
        except (OSError, ValueError):
            raise RunError(
                f"The answers of “{run.name}” are lost: their file is gone or damaged. Delete the "
                "run, and answer again."
            ) from None

    return project.once("answers", _key(run), read, IN_MEMORY)


def rename(project: Project, run: Run, name: str) -> None:
    """Call a run something else; an empty name changes nothing."""
    name = " ".join(name.split())[:LONGEST_NAME]
    if name:
        renamed = [replace(r, name=name) if r.id == run.id else r for r in project.choices.runs]
        project.change(runs=tuple(renamed))


def delete(project: Project, run: Run) -> None:
    """Delete a run and its answers."""
    project.change(runs=tuple(r for r in project.choices.runs if r.id != run.id))
    _file(project, run).unlink(missing_ok=True)


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
    if run.campaign.margin != campaign.margin:
        return False
    found = project.segments
    return options(run.campaign, found) == options(campaign, found)


def visitor_rows(project: Project, run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """Return the visitor's table; without columns if it is another one than at the run."""
    frame = project.table.frame
    same = len(table) > 0 and len(frame) == int(table["row"].iloc[-1]) + 1
    same &= run.sheet == project.choices.reading.sheet
    return frame if same else pd.DataFrame(index=range(len(table)))
