"""Everyone: what every row would have to change, as a table to take along."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from voicecf.app import blocks
from voicecf.app.campaign.everyone import Everyone, Plan, overview
from voicecf.app.project import Project
from voicecf.app.row.question import GOALS, NEAREST, Allowed
from voicecf.app.segments.segments import Segments
from voicecf.app.words import percent
from voicecf.output.wording import counted, figure
from voicecf.plots import Transitions

EACH = "Every other segment"


def show(now: Project) -> None:
    """Draw the page."""
    found, names = now.segments, now.names
    plan = _plan(now, found, names)
    key = f"{now.segments_key} {names} {plan}"
    kept = st.session_state.setdefault("everyone", {})
    run = kept.get(key) or Everyone(plan, names, len(found.prepared.frame))
    place = st.empty()
    with place.container():
        going = _controls(run)
    if going:
        run = _go(now, key, run, found, place)
    if run.parts:
        _results(now, run, key)
    else:
        _overview(now, plan, names)


def _plan(now: Project, found: Segments, names: tuple[str, ...]) -> Plan:
    asked = now.question
    where, how, rules = st.columns(3, gap="large", vertical_alignment="center")
    options = [NEAREST, EACH, *range(found.k)]
    target = where.selectbox(
        "Should be in", options, key="everyone target",
        format_func=lambda t: t if isinstance(t, str) else names[t],
    )  # fmt: skip
    goal = how.selectbox(
        "Look for", list(GOALS), format_func=lambda g: GOALS[g], key="everyone goal"
    )
    with rules:
        said = asked.allowed.count + bool(asked.margin)
        same = st.toggle(
            f"Same rules as for one row ({said or 'none'} set)", value=bool(said),
            disabled=not said, key=f"same {said > 0}",
            help="What may change, and the safety margin, as on the page “One row”.",
        )  # fmt: skip
    question = replace(
        asked, row=0, objective=goal, target=target if isinstance(target, int) else None
    )
    if not (same and said):
        question = replace(question, allowed=Allowed(), margin=0)
    return Plan(question, each=target == EACH)


def _controls(run: Everyone) -> bool:
    if run.finished:
        return False
    label = f"Answer for all {run.total:,} rows" if not run.done else "Go on"
    if run.done:
        text = f"Stopped after {run.done:,} of {counted(run.total, 'row')}."
        st.html(blocks.paragraph(text))
    return st.button(label, type="primary")


def _go(now: Project, key: str, run: Everyone, found: Segments, place: object) -> Everyone:
    """Answer part by part; whatever the visitor clicks meanwhile stops it, and nothing is lost."""
    with place.container():  # type: ignore[attr-defined]
        bar = st.progress(0.0)
        st.button("Stop", key="stop everyone")
    st.session_state["everyone"] = {key: run}
    while not run.finished:
        bar.progress(
            run.done / run.total, text=f"{run.done:,} of {counted(run.total, 'row')} answered"
        )
        run = run.advanced(found)
        st.session_state["everyone"] = {key: run}
    place.empty()  # type: ignore[attr-defined]
    return run


def _results(now: Project, run: Everyone, key: str) -> None:
    table, possible = run.table, run.possible
    changes = table.loc[possible, "columns changed"]
    st.html(
        blocks.facts([
            (f"{run.done:,}", "rows answered"),
            (percent(float(possible.mean())), "can move"),
            (figure(float(changes.median())) if len(changes) else "0", "columns change, usually"),
        ])
    )  # fmt: skip
    _downloads(now, run, key)
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("From where to where")
        _transitions(run)
    with right:
        st.subheader("What changes most often")
        total = max(int(possible.sum()), 1)
        items = [(name, n / total, percent(n / total)) for name, n in run.often_changed[:12]]
        st.html(blocks.bars(items) if items else blocks.paragraph("Nothing changes."))
    st.subheader("All answers")
    st.dataframe(table.head(1000), hide_index=True, height=360)
    if len(table) > 1000:
        st.html(blocks.paragraph("The first 1,000 lines; the files have all."))


def _overview(now: Project, plan: Plan, names: tuple[str, ...]) -> None:
    """Show what it takes from every segment to every other one, from some of the rows."""
    key = f"{now.segments_key} {plan.question!r}"
    seen = now.once("overview", key, lambda: overview(now.segments, plan.question))
    st.subheader("What it takes from segment to segment")
    highest = np.nanmax(seen.cost) if np.isfinite(seen.cost).any() else 1.0
    texts = [
        [_way(seen, i, j) if seen.count[i, j] else ("", "") for j in range(len(names))]
        for i in range(len(names))
    ]
    shade = np.nan_to_num(seen.cost / (highest or 1.0))
    st.html(blocks.matrix(names, shade, texts, corner="from, to"))
    rows = int(seen.count.sum(axis=1).sum() / max(len(names) - 1, 1))
    st.html(
        blocks.paragraph(
            f"The typical cost and number of columns, from {counted(rows, 'row')}; cost is the "
            "squared distance in spreads of the columns."
        )
    )


def _way(seen: Transitions, i: int, j: int) -> tuple[str, str]:
    if np.isnan(seen.cost[i, j]):
        return "no way", ""
    columns = counted(round(float(seen.changes[i, j])), "column")
    able = "" if seen.feasible[i, j] > 0.999 else f", {percent(float(seen.feasible[i, j]))} can"
    return f"{figure(float(seen.cost[i, j]))}", f"{columns}{able}"


def _transitions(run: Everyone) -> None:
    count, cost = run.transitions()
    asked = count.sum(axis=1, keepdims=True)
    share = np.divide(count, asked, out=np.zeros(count.shape), where=asked > 0)
    texts = [
        [(f"{count[i, j]:,}", f"cost {figure(cost[i, j])}") if count[i, j] else ("", "")
         for j in range(len(count))]
        for i in range(len(count))
    ]  # fmt: skip
    st.html(blocks.matrix(run.names, share, texts, corner="from, to"))
    st.html(blocks.paragraph("Rows that can move, and what it typically costs: half cost less."))


@st.cache_resource(max_entries=2, show_spinner=False)
def _files(key: str, done: int, _run: Everyone) -> tuple[bytes, bytes]:
    return _run.csv(), _run.parquet()


def _downloads(now: Project, run: Everyone, key: str) -> None:
    csv, parquet = _files(key, run.done, run)
    stem = now.choices.table.rsplit(".", 1)[0]
    first, second, _ = st.columns([1, 1, 2])
    first.download_button(
        "Download CSV", csv, f"{stem} answers.csv", "text/csv", on_click="ignore", width="stretch"
    )
    second.download_button(
        "Download Parquet", parquet, f"{stem} answers.parquet", "application/octet-stream",
        on_click="ignore", width="stretch",
    )  # fmt: skip
