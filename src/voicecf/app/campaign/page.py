"""Campaign: whom could we move, by what levers, at what effort, how many for our budget."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from threading import Event
from typing import Any

import streamlit as st

from voicecf.app import blocks, session
from voicecf.app.campaign import cards, controls, pictures, runs, telling
from voicecf.app.campaign.plan import Campaign, Run
from voicecf.app.campaign.summary import Summary, asked_in_words
from voicecf.app.effort import effort_text
from voicecf.app.project import Project
from voicecf.app.takeaway.tables import LONGEST, XLSX
from voicecf.app.words import literal, percent
from voicecf.output import counted

# Share of answers from which on a lever may be the outcome itself; the margin that is offered.
TAUTOLOGY, MARGIN = 0.95, 20
# Rows that the page lists, runs side by side, and levers that may be tried without.
LISTED, COMPARED, TRIED = 500, 3, 3
SHOWN, GO, COMPARE = "campaign shown", "campaign go", "campaign compared"
# Set when a run of this visitor has ended; and the seconds that a part of it may still take.
ENDED, PATIENCE = "campaign ended", 60


def show(now: Project) -> None:
    """Draw the page."""
    _wait_for_the_end()
    asked = runs.present(now)
    controls.show(now, asked)
    place = st.empty()
    run = _shown(now)
    with place.container():
        going = _start(now, asked, run)
    if going is not None:
        run = _go(now, going, place)
        st.rerun()
    if run is None:
        text = "Then: who can move, what changes most often, what it takes, and a list to act on."
        st.html(blocks.paragraph(text))
        return
    _runs(now, run)
    _results(now, asked, run)


def _shown(now: Project) -> Run | None:
    """Return the run that the visitor looks at: the chosen one, or else the latest."""
    kept = now.choices.runs
    chosen = st.session_state.get(SHOWN)
    return next((run for run in kept if run.id == chosen), kept[-1] if kept else None)


# Running


def _start(now: Project, asked: Campaign, run: Run | None) -> Run | None:
    """Offer to answer, or to go on; returns the run that is to go now."""
    found, going = now.segments, None
    total = int(sum(found.sizes[t] for t in asked.sources)) if asked.sources else len(found.labels)
    holds = run is not None and runs.answers_hold(now, run, asked)
    with st.container(horizontal=True, vertical_alignment="center"):
        if not holds and st.button(f"Answer for {total:,} {now.things}", type="primary"):
            going = runs.new_run(now, asked)
        if run is not None and not run.finished and runs.is_current(now, run):
            if st.button("Go on", type="primary" if holds else "secondary"):
                going = run
            done = run.counts.asked - run.counts.waiting
            text = f"{run.name} stopped after {done:,} of {counted(run.counts.asked, 'row')}."
            st.html(blocks.paragraph(text))
    if st.session_state.pop(GO, False):
        going = runs.new_run(now, asked)
    return going


def _wait_for_the_end() -> None:
    """Wait until a run that was stopped by a click has finished its part, and is kept."""
    ended: Event | None = st.session_state.get(ENDED)
    if ended is not None and not ended.is_set():
        with st.spinner("Stopping ..."):
            ended.wait(PATIENCE)


def _go(now: Project, run: Run, place: Any) -> Run:
    """Answer part by part; whatever the visitor clicks meanwhile stops it, and nothing is lost."""
    st.session_state[ENDED] = ended = Event()
    before = st.session_state.get(SHOWN) or (now.choices.runs and now.choices.runs[-1].id)
    st.session_state[SHOWN] = run.id
    st.session_state[COMPARE] = [id for id in (before, run.id) if id]
    with place.container():
        bar = st.progress(0.0)
        st.button("Stop", key="stop campaign")
    try:
        with closing(runs.going(now, run)) as parts:
            for done, total in parts:
                text = f"{done:,} of {counted(total, 'row')} answered"
                bar.progress(done / max(total, 1), text=text)
    finally:
        ended.set()
    return run


# Runs


def _runs(now: Project, run: Run) -> None:
    """Let the visitor choose, rename and delete runs."""
    by_id = {one.id: one for one in reversed(now.choices.runs)}

    def told(id: str) -> str:
        one = by_id[id]
        what = asked_in_words(one.campaign, runs.names_of(now, one))
        return f"{one.name}, {one.when:%d %b %H:%M}: {what}"

    def choose(id: str) -> None:
        st.session_state[SHOWN] = id

    st.html('<hr class="v-rule">')
    chosen, more = st.columns([4, 1], vertical_alignment="bottom")
    with chosen:
        st.selectbox("Run", list(by_id), format_func=told, **session.tied("run", run.id, choose))
    with more, st.popover("Name, delete", width="stretch"):
        st.text_input(
            "Name of this run", max_chars=runs.LONGEST_NAME,
            **session.tied("run name", run.name, partial(runs.rename, now, run)),
        )  # fmt: skip
        st.button("Delete this run", on_click=partial(runs.delete, now, run))


def _results(now: Project, asked: Campaign, run: Run) -> None:
    said = telling.summary(now, run, asked)
    note = telling.note(now, run, asked)
    if note:
        st.html(blocks.notice(note))
    left_out = now.prepared.left_out if runs.is_current(now, run) else 0
    st.html(cards.facts(said, left_out, run.campaign.each, now.things))
    if not said.counts.movable and run.campaign.prices and not run.campaign.free:
        st.html(
            blocks.paragraph(
                "Columns without a price stay as they are. Give more of them a price, or say under "
                "“Prices and budget” that the others are free."
            )
        )
    st.html(cards.about_effort(said))
    _hints(now, run, said)
    pairs, budget, others, files = st.tabs(
        ["From where to where", "Budget and rows", "What if", "Take along"], key="campaign tabs"
    )
    with pairs:
        _pairs(now, run, said)
    with budget:
        _budget(now, asked, run, said)
    with others:
        _what_if(now, asked, run, said)
    with files:
        _files(now, asked, run, said)


def _hints(now: Project, run: Run, said: Summary) -> None:
    """Say what answers may be worth little: moves at the border, an outcome taken for a lever."""
    if not runs.is_current(now, run):
        return
    tiny = telling.at_the_border(now, run)
    if tiny and not run.campaign.margin:
        text = f"{tiny:,} of these answers are tiny moves at the border, which may be noise."
        st.html(blocks.paragraph(text))
        st.button(
            f"Answer with a safety margin of {MARGIN} %", key="campaign firmly",
            on_click=lambda: _again(now, margin=MARGIN),
        )  # fmt: skip
    for lever in said.levers[:1]:
        locked = run.campaign.allowed.get("immutable", ())
        if lever.share >= TAUTOLOGY and len({*run.columns} - {*locked}) > 1:
            text = (
                f"{lever.column} changes in {percent(lever.share)} of the answers. If it is the "
                "outcome that you are after, rather than a lever, lock it."
            )
            st.html(blocks.paragraph(text))
            more = (*locked, lever.column)
            st.button(literal(f"Lock {lever.column}"), on_click=partial(_try, now, more))


def _again(now: Project, **changed: Any) -> None:
    runs.plan(now, **changed)
    st.session_state[GO] = True


def _pairs(now: Project, run: Run, said: Summary) -> None:
    if not said.pairs:
        st.html(blocks.paragraph("Nobody was asked to move to another segment."))
        return
    listed = cards.pairs_table(said, runs.names_of(now, run))
    st.dataframe(listed, hide_index=True)
    st.html(
        blocks.paragraph(
            "Used most: the changes that are made most often, with the usual amount and the share "
            "of answers that make them."
        )
    )


def _budget(now: Project, asked: Campaign, run: Run, said: Summary) -> None:
    if not len(said.spent):
        st.html(blocks.paragraph("Nobody can move, so there is nothing to spend a budget on."))
        return
    limit = telling.budget_of(said, asked)
    n = said.affordable(limit)
    everyone = effort_text(float(said.spent[-1]), said.unit)
    text = f"All {len(said.spent):,} {now.things} that can move take {everyone} together."
    if limit is not None:
        spent = effort_text(float(said.spent[n - 1]) if n else 0.0, said.unit)
        text = (
            f"{effort_text(limit, said.unit)} moves {n:,} {now.things}, the easiest first; "
            f"they take {spent}. {text}"
        )
    st.html(blocks.paragraph(text))
    st.altair_chart(pictures.budget_curve(said, limit, session.theme(), now.things))
    listed = telling.easiest(now, run, said, min(n, LISTED))
    st.dataframe(listed, hide_index=True, height=min(38 + 35 * len(listed), 420))
    if n > LISTED:
        st.html(blocks.paragraph(f"The {LISTED} easiest; the files have all."))


# What if


def _what_if(now: Project, asked: Campaign, run: Run, said: Summary) -> None:
    """Offer to unlock or lock a column and to answer again, and put runs side by side."""
    if runs.is_current(now, run):
        st.html(blocks.paragraph("One click changes a rule of the plan and answers again."))
        with st.container(horizontal=True):
            for text, locked in telling.experiments(asked, said, TRIED):
                st.button(literal(text), on_click=partial(_try, now, locked), key=f"try {text}")
    kept = {one.id: one for one in reversed(now.choices.runs)}
    if len(kept) < 2:
        st.html(blocks.paragraph("A second run can be compared with this one."))
        return
    usual = [id for id in st.session_state.get(COMPARE, []) if id in kept]
    if len(usual) < 2:
        usual = list(kept)[1::-1]

    def choose(ids: list[str]) -> None:
        st.session_state[COMPARE] = ids

    chosen = st.multiselect(
        "Compare", list(kept), format_func=lambda id: kept[id].name, max_selections=COMPARED,
        **session.tied("compared", usual, choose),
    )  # fmt: skip
    some = [kept[id] for id in chosen]
    if some:
        st.html(
            cards.comparison(
                some, [telling.summary(now, one, asked) for one in some],
                [runs.names_of(now, one) for one in some], asked,
            )
        )  # fmt: skip


def _try(now: Project, locked: tuple[str, ...]) -> None:
    now.allow(immutable=list(locked))
    st.session_state[GO] = True


# Files


def _files(now: Project, asked: Campaign, run: Run, said: Summary) -> None:
    """Offer the list and the report; a file is made when it is asked for."""
    st.html(
        blocks.paragraph(
            "The list to act on: every row of the table with its result, its effort, and each "
            "column before and after."
        )
    )
    most = said.affordable(telling.budget_of(said, asked))
    every, chosen = "All rows", "Only these"
    which = st.radio("Which", [every, chosen], horizontal=True, key="campaign which")
    only = None
    if which == chosen:
        only = st.number_input(
            f"How many {now.things}, the easiest first", 0, len(said.easiest), value=most,
            width=320, key=f"only {run.id} {most}",
        )  # fmt: skip
    lines = len(said.efforts) if only is None else only
    stem = f"{now.choices.table.rsplit('.', 1)[0]} {run.name}"
    kinds = (
        ("Download CSV", "csv", "text/csv"),
        ("Download Excel", "xlsx", XLSX),
        ("Download Parquet", "parquet", "application/octet-stream"),
    )
    with st.container(horizontal=True):
        for label, ending, kind in kinds:
            st.download_button(
                label, partial(telling.list_file, now, run.id, asked, ending, only),
                f"{stem}.{ending}", kind, on_click="ignore",
                disabled=ending == "xlsx" and lines > LONGEST,
            )  # fmt: skip
    if lines > LONGEST:
        text = f"{lines:,} lines are more than a sheet of Excel holds; take CSV or Parquet."
        st.html(blocks.paragraph(text))
    st.html(blocks.paragraph("The report: all of this page in one file to print or to send."))
    with st.container(horizontal=True):
        st.download_button(
            "Download report", partial(telling.report_file, now, run.id, asked),
            f"{stem}.html", "text/html", on_click="ignore",
        )  # fmt: skip
        if runs.is_current(now, run):
            st.download_button(
                "Download script", partial(telling.script_file, now, run.id, asked),
                f"{stem} script.zip", "application/zip", on_click="ignore",
            )  # fmt: skip
