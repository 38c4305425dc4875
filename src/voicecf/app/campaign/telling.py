"""What a project's runs say, each computed once; and their files, made when they are asked for."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from voicecf.app.campaign import code, lists, runs
from voicecf.app.campaign.plan import Campaign, Run
from voicecf.app.campaign.report import LISTED, campaign_report
from voicecf.app.campaign.summary import Summary, asked_in_words, summed_up
from voicecf.app.project import Project
from voicecf.app.takeaway.code import archive
from voicecf.app.takeaway.tables import as_csv, as_parquet, as_xlsx
from voicecf.output import shortened

# Summaries that are kept: of the runs side by side, with some prices that were tried.
KEPT = 12
# Spreads below which a move may be noise.
TINY = 0.05


def counted_by(run: Run, asked: Campaign) -> Campaign:
    """Return the campaign whose prices a run's efforts are counted by: the present one, if it can.

    It cannot if the run may change columns that have no price now; then its own.
    """
    may = set(run.rates()) - set(run.campaign.allowed.get("immutable", ()))
    return asked if may <= set(run.rates(asked)) else run.campaign


def budget_of(said: Summary, asked: Campaign) -> float | None:
    """Return the budget, if it is in the same unit as the efforts."""
    return asked.budget if said.unit == asked.unit else None


def summary(now: Project, run: Run, asked: Campaign) -> Summary:
    """Sum up a run."""
    by = counted_by(run, asked)
    return now.once(
        "summary",
        f"{run.id} {run.counts} {run.rates(by)} {by.unit}",
        lambda: summed_up(runs.answers(now, run), run, by),
        KEPT,
    )


def at_the_border(now: Project, run: Run) -> int:
    """Count answers that move so little, in spreads, that it may be noise."""
    by = replace(run.campaign, prices=())
    efforts = now.once(
        "spreads", f"{run.id} {run.counts}", lambda: summed_up(runs.answers(now, run), run, by), 2
    ).efforts
    return int((efforts < TINY).sum())


def easiest(now: Project, run: Run, said: Summary, most: int) -> pd.DataFrame:
    """List the rows of a run that can be moved most easily."""
    table = runs.answers(now, run)
    frame = runs.visitor_rows(now, run, table)
    return lists.easiest_first(table, run, runs.names_of(now, run), said, frame, most=most)


def note(now: Project, run: Run, asked: Campaign) -> str:
    """Say in which way a run is not what would be answered now; empty if it is."""
    if not runs.is_current(now, run):
        return (
            f"The segments have changed since {run.name}. It is shown with the segments that it "
            "was about; answer again for the present ones."
        )
    if runs.answers_hold(now, run, asked):
        return ""
    if replace(asked, prices=(), free=False) == replace(
        run.campaign, prices=(), free=False, budget=asked.budget, currency=asked.currency
    ):
        counted = "by the present ones; cheaper answers may exist"
        if counted_by(run, asked) is not asked:
            counted = f"in {run.campaign.unit} as then, since it changes columns without a price"
        return f"Prices have changed since {run.name}. Efforts are {counted}. Answer again."
    what = asked_in_words(run.campaign, runs.names_of(now, run))
    return f"The plan has changed since {run.name} ({what}). Answer again for the present plan."


def experiments(asked: Campaign, said: Summary, most: int) -> list[tuple[str, tuple[str, ...]]]:
    """Return rules to try: what each says, and the columns that are locked then."""
    locked = tuple(asked.allowed.get("immutable", ()))
    priced = {price.column for price in asked.prices}
    tried = []
    for name in locked:
        if not priced or name in priced or asked.free:
            rest = tuple(n for n in locked if n != name)
            tried.append((f"If {shortened(name, 30)} may change", rest))
    used = dict.fromkeys(lever.column for lever in said.levers)
    for name in list(used)[:most]:
        if name not in locked:
            tried.append((f"Without {shortened(name, 30)}", (*locked, name)))
    return tried


# Files


def list_file(
    now: Project, id: str, asked: Campaign, ending: str, only: int | None = None
) -> bytes:
    """Write the list to act on as CSV in the dialect of the source, Excel or Parquet.

    `only` so many of the easiest rows, sorted by effort; else all, those not asked on a sheet of
    their own.
    """
    run = _run(now, id)
    said, table, names = summary(now, run, asked), runs.answers(now, run), runs.names_of(now, run)
    source = runs.visitor_rows(now, run, table)
    if ending == "csv" and len(source.columns):
        source = now.raw  # as it stands in the file
    listed = lists.to_act_on(
        table, run, names, said, source, budget=budget_of(said, asked), only=only
    )
    if ending == "csv":
        return as_csv(listed, *now.table.dialect)
    if ending == "parquet":
        return as_parquet(listed)
    about = [("Table", now.choices.table), ("Run", run.name), ("When", f"{run.when:%Y-%m-%d}")]
    about += [("Asked", asked_in_words(run.campaign, names)), ("Effort in", said.unit)]
    apart = listed["result"] == "not asked"
    sheets = {"Not asked": listed[apart]} if apart.any() else {}
    return as_xlsx(
        listed[~apart], sheets | {"About": pd.DataFrame(about, columns=["What", "This"])}
    )


def report_file(now: Project, id: str, asked: Campaign) -> bytes:
    """Write the report."""
    run = _run(now, id)
    said, names = summary(now, run, asked), runs.names_of(now, run)
    current = runs.is_current(now, run)
    made = campaign_report(
        run, names, said, easiest(now, run, said, LISTED),
        table=now.choices.table, campaign=replace(asked, budget=budget_of(said, asked)),
        segments=now.segments if current else None,
        script=script_of(now, id, asked) if current else "", things=now.things,
    )  # fmt: skip
    return made.encode()


def script_of(now: Project, id: str, asked: Campaign) -> str:
    """Write the Python that gives the same numbers."""
    run = _run(now, id)
    campaign = replace(run.campaign, budget=budget_of(summary(now, run, asked), asked))
    return code.script(now.segments, campaign, counted_by(run, asked))


def script_file(now: Project, id: str, asked: Campaign) -> bytes:
    """Write the script into an archive, with the model and the rows."""
    voice = now.segments.firmly(_run(now, id).campaign.margin)
    return archive(script_of(now, id, asked), voice, now.prepared.frame)


def _run(now: Project, id: str) -> Run:
    found = next((run for run in now.choices.runs if run.id == id), None)
    if found is None:
        raise runs.RunError("This run was deleted.")
    return found
