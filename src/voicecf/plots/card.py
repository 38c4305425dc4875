"""A card of one counterfactual: what changes, from what to what, and how far it may go."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.output.calling import cluster_name
from voicecf.output.sentences import Sentences
from voicecf.plots.changes import TEXTS, Change, changes_of
from voicecf.plots.display import Display, canvas
from voicecf.plots.markup import STYLE, changes_html
from voicecf.plots.sheet import FOOTER, HEADER, ROW, WIDTH, Sheet
from voicecf.plots.theme import LIGHT, Theme
from voicecf.search.solving import PAIRWISE
from voicecf.status import Status
from voicecf.table.frames import Kind, table
from voicecf.table.wording import compact, opening, sentences

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOATS = ("low", "high", "share")


@dataclass(frozen=True, eq=False)
class ChangeCard(Display):
    """What one counterfactual changes, a line a column, the costliest first.

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
    def from_counterfactuals(cls, cf: Counterfactuals, i: int = 0) -> ChangeCard:
        """Read answer `i`; solves again for its ranges, or for the reason why there is none."""
        one = cf[i].rounded()
        changes = changes_of(one)
        return cls(
            changes=changes, row=int(one.row[0]), source=int(one.source[0]),
            target=int(one.target[0]), status=Status(int(one.status[0])), cost=float(one.cost[0]),
            rho=float(one.rho[0]), title=_title(one, len(changes)),
            subtitle=_subtitle(one) if changes else "",
            reason="" if one.feasible[0] else _reason(one), kind=one.kind,
            target_name=cluster_name(one.outcome.learned, one.target[0]),
        )  # fmt: skip

    def table(self) -> Any:
        """Return a line a changed column, in the kind of frame that the rows came in."""
        numeric = all(change.is_number for change in self.changes)
        value: Any = nw.Float64 if numeric else nw.String
        text, float_ = nw.String, nw.Float64
        columns: dict[str, tuple[Any, list[Any]]] = {
            "column": (text, [c.column for c in self.changes]),
            "from": (value, [c.before if numeric else c.texts[0] for c in self.changes]),
            "to": (value, [c.after if numeric else c.texts[1] for c in self.changes]),
            "observed_low": (float_, [c.observed[0] for c in self.changes]),
            "observed_high": (float_, [c.observed[1] for c in self.changes]),
        }
        for dtype, names in ((float_, FLOATS), (text, TEXTS)):
            columns |= {n: (dtype, [getattr(c, n) for c in self.changes]) for n in names}
        schema = {name: dtype for name, (dtype, _) in columns.items()}
        values = {name: np.array(v, dtype=object) for name, (_, v) in columns.items()}
        return table(values, self.kind, schema)

    def _size(self, **how: Any) -> tuple[float, float]:
        if not self.changes:
            return 7.5, 0.85 + 0.2 * -(-len(self.reason) // 90)
        return WIDTH, HEADER + ROW * len(self.changes) + FOOTER

    def plot(self, ax: Axes | None = None, theme: str | Theme = "light") -> Axes:
        """Draw the card; see `Display.plot`.

        On an axes that is too low for all changes, the costliest are drawn and the rest counted.
        """
        ax, style = canvas(self, ax, theme)
        ax.set_axis_off()
        Sheet(self, ax, style).draw()
        return ax

    def _repr_html_(self) -> str:
        """Return the card for a notebook, without matplotlib."""
        head = f"<b>{escape(self.title)}</b><div>{escape(self.subtitle or self.reason)}</div>"
        card = changes_html(self.changes, LIGHT.color(self.target)) if self.changes else ""
        return f"<style>{STYLE}</style><div>{head}{card}</div>"


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
