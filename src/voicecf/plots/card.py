"""A card of one counterfactual: what changes, from what to what, and how far it may go."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.output.calling import cluster_name
from voicecf.output.sentences import Sentences
from voicecf.plots.changes import HEADS, Change, changes_of
from voicecf.plots.display import ROUNDING, Canvas, Display, fit, width_of
from voicecf.plots.markup import CARD_STYLE, changes_html
from voicecf.plots.theme import Theme, mixed, theme_of
from voicecf.reasons.ranges import TEXTS
from voicecf.search.solving import PAIRWISE
from voicecf.status import Status
from voicecf.table.frames import Kind, table
from voicecf.table.wording import compact, counted, legible, opening, sentences

# Inches: of a whole card, of what is above and below its lines, of a line.
WIDTH, HEADER, FOOTER, ROW = 9.6, 1.25, 0.15, 0.5
# Where the columns of a card start and end, as shares of its width: name, values, change, track.
SPANS = (0.0, 0.235), (0.25, 0.46), (0.47, 0.57), (0.58, 1.0)
# Where tracks start and end, how wide the numbers at their ends may be, and how far from them.
TRACK, END, GAP = (0.65, 0.93), 0.058, 0.012
# Size of the text at powers of ten.
TINY = 6.5
ARROW = "\N{RIGHTWARDS ARROW}"


@dataclass(frozen=True, eq=False)
class ChangeCard(Display):
    """What one counterfactual changes, a line a column, the costliest first.

    On an axes that is too low for all changes, the costliest are drawn and the rest counted.

    Attributes
    ----------
    changes : list of Change
        Empty where nothing changes, or nothing can be done.
    row, source, target : int
    target_name : str
        What the target is called.
    status : Status
    cost, rho : float
    title, subtitle : str
        What happens, and at what cost, in plain words.
    reason : str
        Why there is no answer, and what would help; empty where there is one.

    Examples
    --------
    >>> from voicecf import VoICE
    >>> from voicecf.plots import ChangeCard
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> card = ChangeCard.from_counterfactuals(voice.explain([[1.0, 5.0]], target=1), 0)
    >>> card.title
    'Row 0 moves from cluster 0 to 1 if one column changes.'
    >>> [(change.column, change.texts, change.binds_low) for change in card.changes]
    [('age', ('1', '2.01'), 'cluster 0')]
    """

    changes: list[Change]
    row: int
    source: int
    target: int
    status: Status
    cost: float
    rho: float
    title: str
    subtitle: str
    reason: str = ""
    kind: Kind | None = None
    target_name: str = ""

    @classmethod
    def from_counterfactuals(
        cls, cf: Counterfactuals, i: int = 0, *, ranges: bool = True, data: Any = None
    ) -> ChangeCard:
        """Read an answer.

        Parameters
        ----------
        cf : Counterfactuals
        i : int
            Which answer.
        ranges : bool
            Whether to solve again for how far each column may go, or for the reason why there is no
            answer.
        data : frame, optional
            Rows whose shape along each column is drawn above its range, where a card is HTML.
        """
        one = cf[i].rounded()
        changes = changes_of(one, ranges=ranges, data=data)
        return cls(
            changes=changes, row=int(one.row[0]), source=int(one.source[0]),
            target=int(one.target[0]), status=Status(int(one.status[0])), cost=float(one.cost[0]),
            rho=float(one.rho[0]), title=_title(one, len(changes)),
            subtitle=_subtitle(one) if changes else "",
            reason=_reason(one) if ranges and not one.feasible[0] else "", kind=one.kind,
            target_name=cluster_name(one.outcome.learned, one.target[0]),
        )  # fmt: skip

    def table(self) -> Any:
        """Return a line a changed column, in the kind of frame that the rows came in."""
        numeric = all(change.is_number for change in self.changes)
        lines: list[dict[str, Any]] = [
            {
                **vars(change),
                "from": change.before if numeric else change.texts[0],
                "to": change.after if numeric else change.texts[1],
                "observed_low": change.observed[0],
                "observed_high": change.observed[1],
            }
            for change in self.changes
        ]
        value, text, number = nw.Float64 if numeric else nw.String, nw.String, nw.Float64
        schema = {"column": text, "from": value, "to": value}
        schema |= dict.fromkeys(("observed_low", "observed_high", "low", "high", "share"), number)
        schema |= dict.fromkeys(TEXTS, text)
        values = {name: np.array([line[name] for line in lines], dtype=object) for name in schema}
        return table(values, self.kind, schema)

    def _size(self, **how: Any) -> tuple[float, float]:
        if not self.changes:
            return 7.5, 0.85 + 0.2 * -(-len(self.reason) // 90)
        return WIDTH, HEADER + ROW * len(self.changes) + FOOTER

    def _draw(self, canvas: Canvas, **how: Any) -> None:
        """Draw title, note and changes: as many as there is room for, the costliest first.

        Places are measured in shares of the width, and in inches of the height from the top.
        """
        style = canvas.style
        canvas.ax.set_axis_off()
        canvas.lay_out()
        height = float(canvas.ax.get_window_extent().height / canvas.ax.figure.dpi)
        canvas.ax.set(xlim=(0, 1), ylim=(height, 0))
        y = _paragraph(canvas, self.title, 0.2, fontsize=style.title, fontweight="bold")
        y = _paragraph(canvas, self.subtitle, y, color=style.faint, fontsize=style.small)
        y = _paragraph(canvas, self.reason, y, color=style.faint, fontsize=style.text)
        if not self.changes:
            return
        for head, span in zip(HEADS, SPANS, strict=True):
            _write(canvas, span, y + 0.1, head, faint=True)
        canvas.ax.plot([0, 1], [y + 0.23, y + 0.23], color=style.rule, lw=0.7)
        y += 0.25
        room = int((height - y - FOOTER) / ROW)
        shown = self.changes if len(self.changes) <= room else self.changes[: max(room - 1, 1)]
        for change in shown:
            self._draw_line(canvas, change, y + ROW * 0.5)
            y += ROW
            canvas.ax.plot([0, 1], [y, y], color=style.tint(style.rule, 0.45), lw=0.7)
        rest = len(self.changes) - len(shown)
        if rest:
            text = f"and {counted(rest, 'smaller change')}"
            _write(canvas, SPANS[0], y + ROW * 0.3, text, faint=True)

    def _draw_line(self, canvas: Canvas, change: Change, y: float) -> None:
        name, values, delta, where = SPANS
        before, after = change.shown
        _write(canvas, name, y, legible(change.column))
        _write(canvas, values, y, f"{before} {ARROW} {after}", fontweight="bold", smallest=6.0)
        _write(canvas, delta, y, change.delta, smallest=6.0)
        if change.is_number:
            self._draw_track(canvas, change, y - 0.09)
        below = 0.12 if change.is_number else 0.0
        _write(canvas, where, y + below, change.range_text, faint=True, smallest=6.0)

    def _draw_track(self, canvas: Canvas, change: Change, y: float) -> None:
        """Draw range, tolerance and both values on a line of their own scale, log if need be."""
        style, color = canvas.style, canvas.style.color(self.target)

        def across(value: float) -> float:
            return TRACK[0] + change.place(value) * (TRACK[1] - TRACK[0])

        def bar(ends: tuple[float, float], **how: Any) -> None:
            canvas.ax.plot([across(end) for end in ends], [y, y], **how)

        def mark(value: float, cluster: int, fill: str) -> None:
            canvas.mark(across(value), y, cluster, fill, ms=7, mew=1.2, zorder=5)

        bar(change.observed, color=style.rule, lw=2.2, solid_capstyle="round", zorder=1)
        if not np.isnan(change.low):  # closed where something binds
            tone, edge = style.tint(color, 0.42), mixed(color, style.ink, 0.3)
            bar((change.low, change.high), color=tone, lw=8, solid_capstyle="butt", zorder=2)
            for end in filter(np.isfinite, (change.low, change.high)):
                at = across(end)
                canvas.ax.plot([at, at], [y - 0.075, y + 0.075], color=edge, lw=1.4, zorder=3)
        if not np.isnan(change.before):
            bar((change.before, change.after), color=style.ink, lw=1.3, zorder=4)
            mark(change.before, self.source, style.paper)
        mark(change.after, self.target, color)
        for value, text in change.ticks:
            at = across(value)
            canvas.ax.plot([at, at], [y - 0.04, y + 0.04], color=style.faint, lw=0.7, zorder=3)
            canvas.write_small(at, y - 0.115, text, ha="center", fontsize=TINY)
        left, right = TRACK[0] - GAP, TRACK[1] + GAP
        spans = ((left - END, left), "right"), ((right, right + END), "left")
        for (span, side), text in zip(spans, change.observed_texts, strict=True):
            _write(canvas, span, y, text, faint=True, ha=side, smallest=5.5)

    def html(self, theme: str | Theme = "light") -> str:
        """Return what changes as HTML, without its title; `CARD_STYLE` is the style it needs.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> from voicecf.plots import ChangeCard
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> card = ChangeCard.from_counterfactuals(voice.explain([[1.0, 5.0]], target=1))
        >>> "<b>2.01</b>" in card.html("dark")
        True
        """
        return changes_html(self.changes, theme_of(theme).color(self.target)) * bool(self.changes)

    def _repr_html_(self) -> str:
        """Return the card for a notebook, without matplotlib."""
        head = f"<b>{escape(self.title)}</b><div>{escape(self.subtitle or self.reason)}</div>"
        return f"<style>{CARD_STYLE}</style><div>{head}{self.html()}</div>"


def _write(
    canvas: Canvas, span: tuple[float, float], y: float, text: str, *, faint: bool = False,
    smallest: float = 0.0, **how: Any,
) -> None:  # fmt: skip
    """Write text into a column, shortened if need be."""
    x = span[1] if how.get("ha") == "right" else span[0]
    write = canvas.write_small if faint else canvas.write
    made, room = write(x, y, text, **how), (span[1] - span[0]) * canvas.width
    # A number in part would be another number: it is written smaller instead.
    size = float(made.get_fontsize())
    while width_of(made) > ROUNDING * room and size > smallest > 0:
        size = max(smallest, ROUNDING * size)
        made.set_fontsize(size)
    fit(made, room)


def _paragraph(canvas: Canvas, text: str, y: float, fontsize: float, **how: Any) -> float:
    """Write text over the whole width, and return where the next line goes."""
    for line in canvas.wrapped(text, fontsize, how.get("fontweight", "normal")):
        canvas.write(0, y, line, fontsize=fontsize, **how)
        y += fontsize * 1.5 / 72
    return y


def _title(one: Counterfactuals, n: int) -> str:
    title = Sentences(one.outcome).title(0)
    if one.status[0] == Status.ALREADY:
        return f"{title}; nothing has to change."
    if not one.feasible[0]:
        return f"{title}."
    if n == 0:
        return f"{title} with a change that is too small to count."
    return f"{title} if {'one column changes' if n == 1 else f'{n} columns change'}."


def _subtitle(one: Counterfactuals) -> str:
    said = Sentences(one.outcome)
    notes = said.limit(0), said.rarity(0), said.unproven(0)
    return sentences([f"cost {compact(float(one.cost[0]))}", *notes])


def _reason(one: Counterfactuals) -> str:
    status = Status(int(one.status[0]))
    if status == Status.UNREADABLE:
        text = one.text(0)
    elif status == Status.INFEASIBLE and one.outcome.question.objective != PAIRWISE:
        text = one.reason(0).text
    else:
        return status.diagnosis
    # The title has said that it cannot move, or be read.
    return opening(text.removeprefix(Sentences(one.outcome).title(0)).removeprefix(": "))
