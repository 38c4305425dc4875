"""A card of one counterfactual: what changes, from what to what, and how far it may go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.output.calling import cluster_name
from voicecf.output.sentences import limit, rarity, short_title, unproven
from voicecf.output.wording import compact, exact, level, opening, sentences
from voicecf.plots.display import Display, canvas
from voicecf.plots.sheet import FOOTER, HEADER, ROW, WIDTH, Sheet
from voicecf.plots.theme import Theme
from voicecf.reasons.ranges import short_ranges
from voicecf.search.solving import PAIRWISE
from voicecf.status import Status
from voicecf.table.frames import Kind, table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FLOATS = ("low", "high", "share")
TEXTS = ("binds_low", "binds_high", "other_levels")


@dataclass(frozen=True)
class Change:
    """One changed column.

    Attributes
    ----------
    column : str
        Its name.
    before, after : object
        A float in the user's units, NaN if missing, or a level; after the change in few digits
        that still land, as `Counterfactuals.rounded` has it.
    observed : pair of float
        The column's range in the data of `fit`; infinite where there was none.
    low, high : float
        Between which it may lie while the answer stays in its target, the other columns held;
        infinite where nothing binds, NaN for a category or where it is not known.
    binds_low, binds_high : str
        What is in the way there: a cluster, "bound", "rule", "step", "data range" or "open".
    other_levels : str
        Of a category: levels that would do as well.
    share : float
        Its share of the cost.
    """

    column: str
    before: Any
    after: Any
    observed: tuple[float, float]
    low: float = np.nan
    high: float = np.nan
    binds_low: str = ""
    binds_high: str = ""
    other_levels: str = ""
    share: float = np.nan

    @property
    def is_number(self) -> bool:
        """Whether it is a number, not a category."""
        return isinstance(self.after, float)

    @property
    def texts(self) -> tuple[str, str]:
        """Values before and after, as text."""
        if not self.is_number:
            return level(self.before), level(self.after)
        return exact(self.before), exact(self.after)


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
        cf, i = cf[cf._at(i)].rounded(), 0
        status = Status(int(cf.status[i]))
        changes = _changes(cf, i) if cf.feasible[i] else []
        return cls(
            changes=changes, row=int(cf.row[i]), source=int(cf.source[i]),
            target=int(cf.target[i]), status=status, cost=float(cf.cost[i]), rho=float(cf.rho[i]),
            title=_title(cf, i, len(changes)), subtitle=_subtitle(cf, i, changes),
            reason="" if cf.feasible[i] else _reason(cf, i), kind=cf.kind,
            target_name=cluster_name(cf.outcome.learned, cf.target[i]),
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


def _changes(cf: Counterfactuals, i: int) -> list[Change]:
    """Return what an answer changes, the costliest first."""
    price = cf.outcome.weights * cf.outcome.moves[i] ** 2
    ranges = _ranges(cf, i)
    found = []
    for at, c in enumerate(cf.outcome.changed(i).tolist()):
        column = cf.outcome.space.columns[c]
        before, after = (values[c][i] for values in cf.outcome.values)
        if cf.outcome.space.is_boolean(c, cf.outcome.rows):
            before, after = None if np.isnan(before) else bool(before), bool(after)
        elif column.kind == "number":
            before, after = float(before), float(after)
        share = price[column.places].sum() / price.sum() if price.sum() > 0 else np.nan
        ends = {name: values[at] for name, values in ranges.items()}
        observed = (float(column.observed[0]), float(column.observed[1]))
        found.append(Change(str(column.name), before, after, observed, share=float(share), **ends))
    return found


def _ranges(cf: Counterfactuals, i: int) -> dict[str, list[Any]]:
    """Return how far each changed column may go; nothing where that is not known."""
    if cf.outcome.question.objective == PAIRWISE:
        return {}
    found = short_ranges(cf.outcome, i)
    ends = {name: [float(end) for end in found[name]] for name in ("low", "high")}
    return {**ends, **{name: [text or "" for text in found[name]] for name in TEXTS}}


def _title(cf: Counterfactuals, i: int, n: int) -> str:
    title = short_title(cf.outcome, i)
    if Status(cf.status[i]) == Status.ALREADY:
        return f"{title}; nothing has to change."
    if Status(cf.status[i]) == Status.UNREADABLE:
        return f"{title}."
    if not cf.feasible[i]:
        return f"{title}."
    if n == 0:
        return f"{title} with a change that is too small to count."
    return f"{title} if {'one column changes' if n == 1 else f'{n} columns change'}."


def _subtitle(cf: Counterfactuals, i: int, changes: list[Change]) -> str:
    if not changes:
        return ""
    notes = (note(cf.outcome, i) for note in (limit, rarity, unproven))
    return sentences([f"cost {compact(float(cf.cost[i]))}", *notes])


def _reason(cf: Counterfactuals, i: int) -> str:
    status = Status(int(cf.status[i]))
    if status == Status.INFEASIBLE and cf.outcome.question.objective != PAIRWISE:
        text = cf.reason(i).text
        # The title has said that it cannot move.
        return opening(text.removeprefix(short_title(cf.outcome, i)).removeprefix(": "))
    if status == Status.UNREADABLE:
        return opening(cf.text(i).removeprefix(short_title(cf.outcome, i)).removeprefix(": "))
    return status.diagnosis
