"""A map of the segments: the true slice of a model by a plane, with rows, an answer and its way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.geometry.arrays import Array, Ints
from voicecf.learned.explainer import Explainer
from voicecf.learned.learned import Learned
from voicecf.output.sentences import Sentences
from voicecf.plots.display import LITERAL, Canvas, Display, stroke
from voicecf.plots.interactive import chart_of
from voicecf.plots.plane import Plane
from voicecf.plots.scene import Scene
from voicecf.plots.theme import Theme, mixed, theme_of
from voicecf.table.frames import Kind, as_frame, table
from voicecf.table.wording import counted, joined, legible

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
    rows: Ints
    labels: Ints
    drawn_in: Ints
    cells: list[tuple[int, Array]]
    viewport: tuple[Array, Array]
    axis_labels: tuple[str, str]
    title: str
    note: str
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
            note=_note(plane, one), names=[legible(name, 30) for name in learned.names],
            row=plane.row, of_columns=plane.of_two_columns,
            kind=Kind.of(as_frame(X)) if X is not None else None, **shown,
        )  # fmt: skip

    def table(self) -> Any:
        """Return a line a row that is drawn: its position in the data, where it is, its cluster."""
        columns = {"row": self.rows, "x": self.points[:, 0], "y": self.points[:, 1]}
        return table({**columns, "cluster": self.labels}, self.kind)

    def chart(
        self,
        theme: str | Theme = "light",
        *,
        told: Any = None,
        marks: Sequence[tuple[str, Array]] = (),
        height: int = 430,
    ) -> Any:
        """Draw the same for the pointer, by altair: it tells about rows, and they can be clicked.

        Parameters
        ----------
        theme : "light", "dark" or Theme
        told : DataFrame, optional
            A line for each row that is drawn, whose values are told there; else its cluster is.
        marks : sequence of (str, array of shape (2,))
            Further points, with what to call them.
        height : int
            In pixels.

        Returns
        -------
        altair LayerChart
            A click selects the row, by its position in the data, as the selection "pick".

        Examples
        --------
        >>> from voicecf import VoICE
        >>> from voicecf.plots import Plane, SegmentMap
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> plane = Plane.of_columns(voice, [[1.0, 5.0]], "age", "income")
        >>> found = SegmentMap.from_voice(voice, [[1.0, 5.0], [3.0, 4.0]], plane)
        >>> found.chart().to_dict()["height"]
        430
        """
        return chart_of(self, theme_of(theme), told, marks, height)

    def outline(self, corners: Array) -> Array:
        """Return the outline of a polygon, interrupted where it runs along the viewport's edge."""
        low, high = self.viewport
        near = 1e-9 * (high - low)
        outline = np.vstack([corners, corners[:1]])
        ends = [np.abs(outline - side) <= near for side in (low, high)]
        along = np.any([(end[:-1] & end[1:]).any(axis=1) for end in ends], axis=0)
        return np.insert(outline, np.flatnonzero(along) + 1, np.nan, axis=0)

    @property
    def way(self) -> tuple[Array, Array]:
        """The way from the row to its answer, and the same move further; empty without one."""
        if self.trail is None or self.end is None:
            return np.empty((0, 2)), np.empty((0, 2))
        at = int(np.argmin(((self.trail - self.end) ** 2).sum(axis=1)))
        return self.trail[: at + 1], self.trail[at:]

    def _size(self, **how: Any) -> tuple[float, float]:
        return 7.6, 5.2

    def _draw(self, canvas: Canvas, **how: Any) -> None:
        """Draw cells, rows and the answer."""
        ax = canvas.ax
        (left, bottom), (right, top) = self.viewport
        ax.set(xlim=(left, right), ylim=(bottom, top))
        if not self.of_columns:  # both axes have the unit of the cost: angles are true
            ax.set_aspect("equal", adjustable="box")
        self._draw_cells(canvas)
        self._draw_rows(canvas)
        if self.target is not None:
            self._draw_region(canvas, self.target)
            self._draw_move(canvas)
        self._draw_legend(canvas)
        canvas.name_axes(*self.axis_labels)
        canvas.head(self.title, self.note)

    def _draw_cells(self, canvas: Canvas) -> None:
        ax, style = canvas.ax, canvas.style
        for cluster, corners in self.cells:
            ax.fill(*corners.T, color=style.tint(style.color(cluster), 0.2), lw=0, zorder=1)
        for _, corners in self.cells:
            ax.fill(*corners.T, fill=False, edgecolor=style.faint, lw=0.8, zorder=2)

    def _draw_rows(self, canvas: Canvas) -> None:
        style = canvas.style
        size = float(np.clip(6000 / max(len(self.points), 1), 9, 30))
        for cluster in sorted({*self.labels.tolist(), *(cluster for cluster, _ in self.cells)}):
            x, y = self.points[self.labels == cluster].T
            canvas.ax.scatter(
                x, y, s=size, marker=style.marker(cluster), color=style.color(cluster), zorder=3,
                edgecolors=style.ink, linewidths=0.35, label=self.names[cluster],
            )  # fmt: skip

    def _draw_region(self, canvas: Canvas, target: int) -> None:
        """Draw what the answer has to be in: the contracted cell, and what is allowed."""
        style, alpha = canvas.style, 1.0 if self.alpha is None else self.alpha
        name = self.names[target] + (f",\ncontracted to {alpha:.2f}" if alpha < 1 else "")
        edge = mixed(style.color(target), style.ink, 0.35)
        outlines: list[tuple[Array | None, str, dict[str, Any]]] = [
            (self.box, "allowed range", {"color": style.faint, "lw": 1.1, "ls": (0, (1, 2.5))}),
            (self.contracted, name, {"color": edge, "lw": 1.8, "ls": (0, (5, 2))}),
        ]
        for corners, label, how in outlines:
            if corners is not None and len(corners):
                canvas.ax.plot(*self.outline(corners).T, zorder=4, label=label, **how)

    def _draw_move(self, canvas: Canvas) -> None:
        ax, style = canvas.ax, canvas.style
        ends = [(self.start, self.source, self.row, style.paper, 9)]
        if self.end is not None and self.target is not None:
            there, further = self.way
            halo = [stroke(4.0, style.paper)]
            line: dict[str, Any] = {"color": style.ink, "zorder": 6, "path_effects": halo}
            ax.plot(*there.T, lw=1.6, **line)
            if np.any(self.beyond != self.end):
                label = "the same move,\nfurther"
                ax.plot(*further.T, lw=1.4, ls=(0, (1, 1.4)), label=label, **line)
            ends.append((self.end, self.target, "its answer", style.color(self.target), 11))
        how: dict[str, Any] = {"mew": 1.6, "zorder": 7, "clip_on": False, "ls": "none"}
        for place, cluster, name, fill, size in ends:
            if place is not None and cluster is not None:
                canvas.mark(place[0], place[1], cluster, fill, ms=size, label=name, **how)

    def _draw_legend(self, canvas: Canvas) -> None:
        handles, labels = canvas.ax.get_legend_handles_labels()
        if not handles:
            return
        legend = canvas.ax.legend(
            handles, labels, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False,
            fontsize=canvas.style.small, labelcolor=canvas.style.ink, handlelength=2.2,
            borderaxespad=0.0,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set(**LITERAL)


def _title(one: Counterfactuals | None) -> str:
    return "The segments as the model cuts them" if one is None else Sentences(one.outcome).title(0)


def _note(plane: Plane, one: Counterfactuals | None) -> str:
    """Say in what sense the picture is exact, and what it does not show."""
    if one is None or not plane.of_two_columns or not one.feasible[0]:
        return plane.note
    names, changed = one.outcome.space.names, one.outcome.changed(0)
    hidden = [legible(names[c], 30) for c in changed if c not in plane.columns]
    if not hidden:
        return plane.note
    if len(hidden) > NAMED:
        hidden = [*hidden[:NAMED], counted(len(hidden) - NAMED, "other column")]
    return f"{plane.note} The answer also changes {joined(hidden)}: it may lie off its cell here."
