"""A map of the segments: the true slice of a model by a plane, with rows, an answer and its way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voicecf.counterfactuals import Counterfactuals
from voicecf.geometry.arrays import Array
from voicecf.learned.explainer import Explainer
from voicecf.learned.learned import Learned
from voicecf.output.sentences import Sentences
from voicecf.plots.display import LITERAL, Display, axis_names, canvas, head, stroke
from voicecf.plots.plane import Plane
from voicecf.plots.scene import Scene
from voicecf.plots.theme import Theme, mixed
from voicecf.table.frames import Kind, as_frame, table
from voicecf.table.wording import counted, joined, legible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# How many columns a note names before it counts the rest.
NAMED = 3


@dataclass(frozen=True, eq=False)
class SegmentMap(Display):
    """The cells of a model where a plane cuts them, with rows, and an answer if one is given.

    All positions are in the units of the plane's axes.

    Attributes
    ----------
    points : array of shape (n, 2)
        Rows of the data, those that are drawn.
    rows : array of shape (n,)
        Their positions in the data.
    labels : array of shape (n,)
        Their clusters.
    drawn_in : array of shape (n,)
        The cluster whose cell each is drawn in: not its own where the row lies off the plane.
    cells : list of (int, array of shape (m, 2))
        Cluster and corners of each cell that is seen, clipped to the viewport.
    viewport : pair of arrays of shape (2,)
        Lower and upper ends of the axes.
    target : int or None
        Cluster that the answer is to be in.
    alpha : float or None
        Contraction of its cell.
    contracted : array of shape (m, 2) or None
        The slice of the target's contracted cell, which the answer has to be in.
    box : array of shape (m, 2) or None
        The slice of all that bounds and rules allow; a rectangle in a plane of two columns.
    start, end : array of shape (2,) or None
        The row and its answer.
    beyond : array of shape (2,) or None
        How far the same move may go (rho), within the viewport.
    trail : array of shape (m, 2) or None
        The way from `start` through `end` to `beyond`, bent where an axis is.
    axis_labels : pair of str
    of_columns : bool
        Whether the axes are two columns; else both are lengths in the metric of the cost.
    names : list of str
        What the clusters are called.
    title, note : str
        What is seen, and in what sense it is exact.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_iris
    >>> from voicecf import VoICE
    >>> from voicecf.plots import Plane, SegmentMap
    >>> iris = load_iris(as_frame=True).data
    >>> voice = VoICE(KMeans(3, n_init=10, random_state=0)).fit(iris)
    >>> plane = Plane.of_columns(voice, iris.iloc[[0]], "petal length (cm)", "petal width (cm)")
    >>> found = SegmentMap.from_voice(voice, iris, plane)
    >>> found.points.shape, [cluster for cluster, _ in found.cells]
    ((150, 2), [0, 1, 2])
    """

    points: Array
    rows: NDArray[np.int64]
    labels: NDArray[np.int64]
    drawn_in: NDArray[np.int64]
    cells: list[tuple[int, Array]]
    viewport: tuple[Array, Array]
    axis_labels: tuple[str, str]
    title: str
    note: str
    n_clusters: int
    names: list[str]
    target: int | None = None
    source: int | None = None
    alpha: float | None = None
    contracted: Array | None = None
    box: Array | None = None
    start: Array | None = None
    end: Array | None = None
    beyond: Array | None = None
    trail: Array | None = None
    row: str = ""
    of_columns: bool = True
    kind: Kind | None = None

    @classmethod
    def from_voice(
        cls,
        voice: Explainer | Learned,
        X: Any,
        plane: Plane,
        cf: Counterfactuals | None = None,
        i: int = 0,
        max_points: int = 2000,
    ) -> SegmentMap:
        """Cut a model by a plane.

        Parameters
        ----------
        voice : fitted explainer or Learned
            An explainer, or what one has learned: its `learned_`.
        X : frame, array or None
            Rows to draw; with None only the cells and the answer are.
        plane : Plane
        cf : Counterfactuals, optional
            Answers, of which number `i` is drawn.
        max_points : int
            Most rows to draw, evenly spaced in X.
        """
        learned = voice if isinstance(voice, Learned) else voice.learned_
        scene = Scene(learned, plane)
        rows, points, labels = scene.rows(X, max_points)
        one = None if cf is None else cf[i]
        ends = plane.project(plane.given.points) if one is None else scene.ends(one)
        seen = np.vstack([points, *ends])
        low, high = scene.viewport(seen, alone=len(points) == 0)
        frame = scene.frame(low, high)
        cells = [(t, scene.bent(cell)) for t, cell in scene.cells(frame)]
        shown = {} if one is None else scene.answer(one, frame)
        return cls(
            points=plane.to_units(points), rows=rows, labels=labels,
            drawn_in=scene.cells_at(points), cells=cells, viewport=(low, high),
            axis_labels=plane.axis_labels, title=_title(one),
            note=_note(plane, one), n_clusters=scene.k,
            names=[legible(name, 30) for name in learned.names], row=plane.row,
            of_columns=plane.of_two_columns,
            kind=Kind.of(as_frame(X)) if X is not None else None, **shown,
        )  # fmt: skip

    def table(self) -> Any:
        """Return a line a row that is drawn: its position in the data, where it is, its cluster."""
        columns = {"row": self.rows, "x": self.points[:, 0], "y": self.points[:, 1]}
        return table({**columns, "cluster": self.labels}, self.kind)

    def outline(self, corners: Array) -> Array:
        """Return the outline of a polygon, interrupted where it runs along the viewport's edge."""
        low, high = self.viewport
        near = 1e-9 * (high - low)
        outline = np.vstack([corners, corners[:1]])
        ends = [np.abs(outline - side) <= near for side in (low, high)]
        along = np.any([(end[:-1] & end[1:]).any(axis=1) for end in ends], axis=0)
        gaps = np.full((len(corners), 2), np.nan)
        pieces = np.stack([outline[:-1], outline[1:], gaps], axis=1)[~along]
        return _chained(pieces)

    @property
    def way(self) -> tuple[Array, Array]:
        """The way from the row to its answer, and the same move further; empty without one."""
        if self.trail is None or self.end is None:
            return np.empty((0, 2)), np.empty((0, 2))
        at = int(np.argmin(((self.trail - self.end) ** 2).sum(axis=1)))
        return self.trail[: at + 1], self.trail[at:]

    def _size(self, **how: Any) -> tuple[float, float]:
        return 7.6, 5.2

    def plot(self, ax: Axes | None = None, theme: str | Theme = "light") -> Axes:
        """Draw cells, rows and the answer; see `Display.plot`."""
        ax, style = canvas(self, ax, theme)
        (left, bottom), (right, top) = self.viewport
        ax.set(xlim=(left, right), ylim=(bottom, top))
        if not self.of_columns:  # both axes have the unit of the cost: angles are true
            ax.set_aspect("equal", adjustable="box")
        self._draw_cells(ax, style)
        self._draw_rows(ax, style)
        if self.target is not None:
            self._draw_region(ax, style)
            self._draw_move(ax, style)
        self._draw_legend(ax, style)
        axis_names(ax, self.axis_labels, style)
        head(ax, self.title, self.note, style)
        return ax

    def _draw_cells(self, ax: Axes, style: Theme) -> None:
        for cluster, corners in self.cells:
            ax.fill(*corners.T, color=style.tint(style.color(cluster), 0.2), lw=0, zorder=1)
        for _, corners in self.cells:
            ax.fill(*corners.T, fill=False, edgecolor=style.faint, lw=0.8, zorder=2)

    def _draw_rows(self, ax: Axes, style: Theme) -> None:
        size = float(np.clip(6000 / max(len(self.points), 1), 9, 30))
        seen = {cluster for cluster, _ in self.cells}
        for cluster in sorted(seen.union(self.labels.tolist())):
            x, y = self.points[self.labels == cluster].T
            ax.scatter(
                x, y, s=size, marker=style.marker(cluster),
                color=style.color(cluster), edgecolors=style.ink, linewidths=0.35, zorder=3,
                label=self.names[cluster],
            )  # fmt: skip

    def _draw_region(self, ax: Axes, style: Theme) -> None:
        """Draw what the answer has to be in: the contracted cell, and what is allowed."""
        if self.box is not None and len(self.box):
            ax.plot(
                *self.outline(self.box).T, color=style.faint, lw=1.1, ls=(0, (1, 2.5)), zorder=4,
                label="allowed range",
            )  # fmt: skip
        if self.contracted is not None and len(self.contracted) and self.alpha is not None:
            contracted = self.alpha < 1
            target = self.target or 0
            name = self.names[target] + f",\ncontracted to {self.alpha:.2f}" * contracted
            edge = mixed(style.color(target), style.ink, 0.35)
            ax.plot(
                *self.outline(self.contracted).T, color=edge, lw=1.8, ls=(0, (5, 2)), zorder=4,
                label=name,
            )  # fmt: skip

    def _draw_move(self, ax: Axes, style: Theme) -> None:
        ends = [(self.start, self.source, self.row)]
        if self.end is not None:
            there, further = self.way
            halo = [stroke(4.0, style.paper)]
            ax.plot(*there.T, color=style.ink, lw=1.6, zorder=6, path_effects=halo)
            if np.any(self.beyond != self.end):
                ax.plot(
                    *further.T, color=style.ink, lw=1.4, ls=(0, (1, 1.4)), zorder=6,
                    path_effects=halo, label="the same move,\nfurther",
                )  # fmt: skip
            ends.append((self.end, self.target, "its answer"))
        for place, cluster, name in ends:
            if place is None or cluster is None:
                continue
            answer = name == "its answer"
            ax.plot(
                *place, style.marker(cluster), ms=11 if answer else 9, mec=style.ink, mew=1.6,
                mfc=style.color(cluster) if answer else style.paper, zorder=7, clip_on=False,
                label=name, ls="none",
            )  # fmt: skip

    def _draw_legend(self, ax: Axes, style: Theme) -> None:
        handles, labels = ax.get_legend_handles_labels()
        if not handles:
            return
        legend = ax.legend(
            handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False,
            fontsize=style.small, labelcolor=style.ink, handlelength=2.2, borderaxespad=0.0,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set(**LITERAL)


def _chained(pieces: Array) -> Array:
    """Join edges, each (start, end, gap), that follow one another, so that dashes run through."""
    path: list[Array] = []
    for start, end, gap in pieces:
        if path and (path[-1] == start).all():
            path.append(end)
        else:
            path += [gap, start, end]
    return np.array(path[1:]).reshape(-1, 2)


def _title(one: Counterfactuals | None) -> str:
    return "The segments as the model cuts them" if one is None else Sentences(one.outcome).title(0)


def _note(plane: Plane, one: Counterfactuals | None) -> str:
    """Say in what sense the picture is exact, and what it does not show."""
    if one is None or not plane.of_two_columns or not one.feasible[0]:
        return plane.note
    shown = {axis.column for axis in plane.axes}
    hidden = [
        legible(one.outcome.space.names[c], 30) for c in one.outcome.changed(0) if c not in shown
    ]
    if not hidden:
        return plane.note
    if len(hidden) > NAMED:
        hidden = [*hidden[:NAMED], counted(len(hidden) - NAMED, "other column")]
    return f"{plane.note} The answer also changes {joined(hidden)}: it may lie off its cell here."
