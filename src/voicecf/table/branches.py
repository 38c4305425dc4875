"""A FeatureUnion or ColumnTransformer that mixes columns, cut where the mixing begins.

It mixes columns if a column goes into several of its parts, or if a part contains PCA, a feature
selector, or another step that mixes. Each part is cut where its columns stop being by themselves:
what comes before are the branches, and the rest must be affine.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator
from sklearn.pipeline import FeatureUnion

from voicecf.geometry.arrays import Array
from voicecf.table.affine import MIXERS, Affine, Named, Scale, composed, flat, parts_of
from voicecf.table.frames import as_frame, dense, transformed


@dataclass(frozen=True)
class Branch:
    """Columns that pass through steps each by itself.

    Attributes
    ----------
    columns : list of int
        Positions of the columns.
    steps : list of (path, transformer)
    """

    columns: list[int]
    steps: list[Named]


@dataclass(frozen=True)
class Outlet:
    """The affine rest of a part, which follows a branch.

    Attributes
    ----------
    branch : int
        Position of the branch.
    columns : list of int or None
        Which outputs of the branch it takes; None for all of them.
    steps : list of (path, transformer)
    factor : float
        Weight of the part, which multiplies its output.
    """

    branch: int
    columns: list[int] | None
    steps: list[Named]
    factor: float = 1.0


@dataclass(frozen=True)
class Branches:
    """The branches of a step side by side; its `transform` returns the coordinates z."""

    branches: list[Branch]

    def transform(self, rows: Any) -> Array:
        """Return the outputs of all branches side by side."""
        frame = as_frame(rows)
        outputs = []
        for branch in self.branches:
            if frame is None:
                chosen = rows[:, branch.columns]
            else:
                chosen = frame[:, branch.columns].to_native()
            outputs.append(dense(transformed([step for _, step in branch.steps], chosen)))
        return np.concatenate(outputs, axis=1)


def mixes(path: str, step: Any, d: int) -> bool:
    """Tell whether a step makes an output of several columns, or several outputs of one column."""
    if isinstance(step, MIXERS):
        return True
    if not isinstance(step, (FeatureUnion, ColumnTransformer)):
        return False
    if step.transformer_weights or _shared(path, step, d):
        return True
    return any(
        mixes(name, inner, len(columns))
        for where, part, columns in parts_of(path, step, d)
        for name, inner in flat(where, part)
    )


def _shared(path: str, step: Any, d: int) -> set[int]:
    """Return the columns that go into several parts; those that only mark missing values apart."""
    counts: Counter[int] = Counter()
    for _, part, columns in parts_of(path, step, d):
        if not isinstance(part, MissingIndicator):
            counts.update(columns)
    return {column for column, count in counts.items() if count > 1}


def cut(path: str, step: Any, d: int) -> tuple[Branches, list[Outlet]]:
    """Cut the parts of a step into branches, and the affine outlets behind them."""
    shared, factors = _shared(path, step, d), step.transformer_weights or {}
    parts = parts_of(path, step, d)
    # All parts of a shared column start from one branch, which only scales it.
    joint = sorted({c for _, _, columns in parts if shared & set(columns) for c in columns})
    branches = [Branch(joint, [])] if joint else []
    outlets: list[Outlet] = []
    for name, part, columns in parts:
        steps, factor = list(flat(name, part)), factors.get(name.rpartition(".")[2], 1.0)
        if set(columns) & set(joint):
            outlets.append(Outlet(0, [joint.index(c) for c in columns], steps, factor))
            continue
        first = (i for i, (inner, t) in enumerate(steps) if mixes(inner, t, len(columns)))
        end = next(first, len(steps))
        branches.append(Branch(columns, steps[:end]))
        outlets.append(Outlet(len(branches) - 1, None, steps[end:], factor))
    if joint:
        scale = _scale([outlet for outlet in outlets if outlet.branch == 0], len(joint))
        branches[0] = Branch(joint, [(path, scale)])
        outlets = [_after(scale, o) if o.branch == 0 else o for o in outlets]
    return Branches(branches), outlets


def _scale(outlets: list[Outlet], width: int) -> Scale:
    """Return the scale at which a column makes the outputs move by 1 if it moves by 1."""
    lengths = np.linalg.norm(joined(outlets, [width])[0], axis=0)
    return Scale(1.0 / np.where(lengths > 0, lengths, 1.0))


def _after(scale: Scale, outlet: Outlet) -> Outlet:
    """Return an outlet that takes scaled columns, and first undoes the scale."""
    undo = Scale(1.0 / scale.scale_[outlet.columns])
    return replace(outlet, steps=[("", undo), *outlet.steps])


def joined(outlets: list[Outlet], widths: list[int]) -> Affine:
    """Return the affine map of outlets side by side; `widths` are those of the branches."""
    starts = np.concatenate([[0], np.cumsum(widths)]).astype(int)
    every = np.eye(int(starts[-1]))
    maps = []
    for outlet in outlets:
        taken = range(widths[outlet.branch]) if outlet.columns is None else outlet.columns
        rows = every[[starts[outlet.branch] + c for c in taken]]
        a, c = composed(outlet.steps, (rows, np.zeros(len(rows))))
        maps.append((outlet.factor * a, outlet.factor * c))
    return np.concatenate([a for a, _ in maps]), np.concatenate([c for _, c in maps])
