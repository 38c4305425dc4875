"""Between which segments one moves easily, and which columns do the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.stats import binned_statistic_2d

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import DataError, OptionError, known_option
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.plots.changes import column_costs
from voicecf.plots.display import LITERAL, Canvas, Display
from voicecf.plots.theme import Theme, is_dark, mixed
from voicecf.table.frames import Kind, table
from voicecf.table.wording import compact, counted, legible, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Columns that are shown before the rest is summed up.
MOST_COLUMNS = 20
# Title and note of each table.
HEADS = {
    "cost": ("What it costs to move from one segment to another", "Median cost of the answers."),
    "feasible": (
        "How many rows can move from one segment to another",
        "Share of rows for which there is an allowed answer.",
    ),
    "changes": (
        "How many columns have to change to move to another segment",
        "Median number of changed columns.",
    ),
    "columns": (
        "Which columns do the work",
        "Share of each column in the cost of all moves to a segment.",
    ),
}


@dataclass(frozen=True, eq=False)
class Transitions(Display):
    """What it takes to move from every cluster to every other one.

    Matrices have a row a source and a column a target.

    Attributes
    ----------
    cost, changes : array of shape (k, k)
        Median cost and median number of changed columns of the answers there are; NaN if none.
    feasible : array of shape (k, k)
        Share of rows that have an answer; NaN where none was asked for.
    count : array of shape (k, k)
        Number of answers asked for.
    shares : array of shape (k, columns)
        For each target, the share of each column in the cost of all answers; NaN if none.
    columns : list of str
    names : tuple of str
        What the clusters are called.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_iris
    >>> from voicecf import VoICE
    >>> from voicecf.plots import Transitions
    >>> X = load_iris().data
    >>> voice = VoICE(KMeans(3, n_init=10, random_state=0)).fit(X)
    >>> found = Transitions.from_counterfactuals(voice.explain(X, target="each"))
    >>> found.count.tolist()
    [[0, 62, 62], [50, 0, 50], [38, 38, 0]]
    """

    cost: Array
    feasible: Array
    changes: Array
    count: Ints
    shares: Array
    columns: list[str]
    names: tuple[str, ...]
    kind: Kind | None = None

    @classmethod
    def from_counterfactuals(cls, cf: Counterfactuals) -> Transitions:
        """Sum up answers, best made with ``voice.explain(X, target="each")``.

        Alternatives, of a `rank` above 0, are left out.
        """
        if not (cf.source >= 0).any():
            raise DataError('there are no answers to sum up; use voice.explain(X, target="each").')
        asked = (cf.rank == 0) & (cf.source >= 0)
        cf = cf if asked.all() else cf[asked]
        k, found = cf.outcome.learned.n_clusters, cf.feasible
        pair, ends = cf.source * k + cf.target, [(-0.5, k - 0.5)] * 2
        count = np.bincount(pair, minlength=k * k).reshape(k, k)
        feasible = _share(np.bincount(pair, found, k * k).reshape(k, k), count)
        of = [cf.cost[found], cf.n_changed[found]]
        cost, changes = binned_statistic_2d(
            cf.source[found], cf.target[found], of, "median", k, ends
        ).statistic
        names = [legible(name) for name in cf.outcome.space.names]
        segments = cf.outcome.learned.names
        return cls(cost, feasible, changes, count, _shares(cf, k), names, segments, cf.kind)

    def table(self) -> Any:
        """Return a line a pair of clusters: source, target, count, feasible, cost, changes."""
        source, target = np.nonzero(self.count)
        at = (source, target)
        return table(
            {
                "source": source, "target": target, "count": self.count[at],
                "feasible": self.feasible[at], "cost": self.cost[at], "changes": self.changes[at],
            },
            self.kind,
        )  # fmt: skip

    def column_table(self) -> Any:
        """Return a line a target and column: target, column, share of the cost."""
        target, column = np.nonzero(~np.isnan(self.shares))
        return table(
            {
                "target": target, "column": np.array(self.columns, dtype=str)[column],
                "share": self.shares[target, column],
            },
            self.kind,
        )  # fmt: skip

    def _size(self, what: str = "cost", **how: Any) -> tuple[float, float]:
        lines, columns = self._grid(what).values.shape
        return 3.5 + 0.52 * max(columns, 6), 1.6 + 0.4 * max(lines, 4)

    def plot(
        self,
        ax: Axes | None = None,
        theme: str | Theme = "light",
        *,
        what: Literal["cost", "feasible", "changes", "columns"] = "cost",
        names: Sequence[Any] | None = None,
        **how: Any,
    ) -> Axes:
        """Draw a table of numbers, the larger the darker (on dark ground: the lighter).

        Parameters
        ----------
        ax : matplotlib Axes, optional
        theme : "light", "dark" or Theme
        what : "cost", "feasible", "changes" or "columns"
            Median cost, share of rows with an answer, median number of changed columns, or the
            share of each column in the cost, for each target.
        names : sequence of k names, optional
            What the segments are called, if not by the names of the explainer.
        """
        known_option(what, HEADS, "what")
        return super().plot(ax, theme, what=what, names=names)

    def _draw(self, canvas: Canvas, what: str = "cost", names: Any = None, **how: Any) -> None:
        self._grid(what, names).draw(canvas)
        canvas.name_axes("to", "" if what == "columns" else "from")
        canvas.head(*HEADS[what])

    def _grid(self, what: str, names: Sequence[Any] | None = None) -> _Grid:
        """Return the table that is drawn: sources by targets, or columns by targets."""
        form = _percent if what in ("feasible", "columns") else compact
        segments = _segment_names(self.names if names is None else names, len(self.cost))
        if what != "columns":
            unasked = (self.count == 0) | np.eye(len(self.cost), dtype=bool)
            return _Grid(getattr(self, what), segments, segments, unasked, form)
        order = np.argsort(-np.nan_to_num(self.shares).mean(axis=0), kind="stable")
        shown = order if len(order) <= MOST_COLUMNS else order[: MOST_COLUMNS - 1]
        values, lines = self.shares[:, shown].T, [self.columns[c] for c in shown]
        rest = order[len(shown) :]
        if len(rest):
            values = np.vstack([values, self.shares[:, rest].sum(axis=1)])
            lines.append(counted(len(rest), "other column"))
        return _Grid(values, lines, segments, np.zeros(values.shape, dtype=bool), form)


@dataclass(frozen=True)
class _Grid:
    """Numbers in coloured cells, the lines named at the left and the columns below."""

    values: Array
    lines: list[str]
    columns: list[str]
    blank: Mask
    form: Callable[[float], str]

    def draw(self, canvas: Canvas) -> None:
        """Draw cells, numbers and names."""
        from matplotlib.patches import Rectangle

        ax, style, (m, n) = canvas.ax, canvas.style, self.values.shape
        ax.set(xlim=(0, n), ylim=(m, 0))
        largest = np.nanmax(np.where(self.blank, np.nan, self.values), initial=0.0)
        for i, j in np.ndindex(m, n):
            color, text, ink = self._cell(i, j, float(largest), style)
            ax.add_patch(Rectangle((j, i), 1, 1, fc=color, ec=style.paper, lw=1.5))
            canvas.write_small(j + 0.5, i + 0.5, text, ha="center", color=ink, in_layout=False)
        ax.spines[:].set_visible(False)
        ax.tick_params(length=0)
        canvas.name_lines(np.arange(m) + 0.5, [shortened(name, 30) for name in self.lines])
        # Names of columns stand at a slant where they are long.
        how: dict[str, Any] = {"fontsize": style.small, "color": style.ink, **LITERAL}
        if max(map(len, self.columns)) * style.small * 0.09 > canvas.width / n / 10:
            how |= {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(np.arange(n) + 0.5, [shortened(name, 24) for name in self.columns], **how)

    def _cell(self, i: int, j: int, largest: float, style: Theme) -> tuple[str, str, str]:
        """Return colour, text and its colour."""
        value = float(self.values[i, j])
        if self.blank[i, j]:
            return style.rule, "", style.faint
        if np.isnan(value):
            return style.paper, "none", style.faint
        color = mixed(style.low, style.high, value / largest if largest > 0 else 0.0)
        return color, self.form(value), "#ffffff" if is_dark(color) else "#10151a"


def _segment_names(names: Sequence[Any], k: int) -> list[str]:
    """Return names for the edge of a matrix; "cluster 7" is short where there are many clusters."""
    if isinstance(names, str) or len(names) != k:
        raise OptionError(f"names must be {k} names, one a cluster.")
    many = k > 6
    return [
        str(t) if many and name == f"cluster {t}" else legible(name) for t, name in enumerate(names)
    ]


def _percent(share: float) -> str:
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def _shares(cf: Counterfactuals, k: int) -> Array:
    """Return, for each target, the share of each column in the cost of all answers."""
    costs = np.where(cf.feasible[:, None], column_costs(cf), 0.0)
    by_column = np.column_stack([np.bincount(cf.target, column, k) for column in costs.T])
    return _share(by_column, by_column.sum(axis=1, keepdims=True))


def _share(some: Any, whole: Any) -> Array:
    """Return some of a whole as a share of it; NaN where there is nothing."""
    return np.asarray(np.divide(some, whole, out=np.full(some.shape, np.nan), where=whole > 0))
