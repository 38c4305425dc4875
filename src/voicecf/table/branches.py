"""A FeatureUnion or ColumnTransformer that mixes columns, cut where the mixing begins.

It mixes columns if a column goes into several of its parts, or if a part contains PCA, a feature
selector, or another step that mixes. Each part is cut where its columns stop being by themselves:
what comes before are the branches, and the rest must be affine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import MissingIndicator
from sklearn.pipeline import FeatureUnion

from voicecf.geometry.arrays import Array
from voicecf.table.affine import MIXERS, Affine, Branch, Scale, parts_of, side_by_side
from voicecf.table.frames import as_frame, dense, transformed


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
    parts = parts_of(path, step, d)
    return bool(step.transformer_weights or _shared(parts)) or any(
        mixes(name, inner, len(part.columns)) for part in parts for name, inner in part.steps
    )


def _shared(parts: list[Branch]) -> set[int]:
    """Return the columns that go into several parts; those that only mark missing values apart."""
    counts: Counter[int] = Counter()
    for part in parts:
        if [isinstance(step, MissingIndicator) for _, step in part.steps] != [True]:
            counts.update(part.columns)
    return {column for column, count in counts.items() if count > 1}


def cut(
    path: str, step: Any, d: int, follow: Callable[[Branch], list[Any]]
) -> tuple[Branches, list[Any], Affine]:
    """Cut the parts of a step into branches, and the affine rest behind each.

    Parameters
    ----------
    path : str
    step : FeatureUnion or ColumnTransformer
    d : int
        Number of columns.
    follow : callable
        Traces a branch, and returns its output wires.

    Returns
    -------
    branches : Branches
    outputs : list
        The output wires of all branches.
    affine : Affine
        The map from the outputs of all branches to that of the step.
    """
    parts = parts_of(path, step, d)
    shared = _shared(parts)
    # All parts of a shared column start from one branch, which only scales it.
    joint = sorted({c for part in parts if shared & set(part.columns) for c in part.columns})
    branches: list[Branch] = []
    rests: list[Branch] = []
    outputs: list[Any] = []
    if joint:
        scale = _scale([_within(joint, p) for p in parts if set(p.columns) & set(joint)], joint)
        branches.append(Branch(joint, [(path, scale)]))
        outputs += follow(branches[0])
    for part in parts:
        if set(part.columns) & set(joint):
            rest = _within(joint, part)
            undo = Scale(1.0 / scale.scale_[rest.columns])
            rests.append(replace(rest, steps=[("", undo), *rest.steps]))
            continue
        n = len(part.columns)
        end = next((i for i, s in enumerate(part.steps) if mixes(*s, n)), len(part.steps))
        branches.append(Branch(part.columns, part.steps[:end]))
        width = len(outputs)
        outputs += follow(branches[-1])
        rests.append(Branch([*range(width, len(outputs))], part.steps[end:], part.factor))
    return Branches(branches), outputs, side_by_side(rests, len(outputs))


def _within(columns: list[int], part: Branch) -> Branch:
    """Return a part whose columns are counted among some of all columns."""
    return replace(part, columns=[columns.index(c) for c in part.columns])


def _scale(parts: list[Branch], columns: list[int]) -> Scale:
    """Return the scale at which a column makes the outputs move by 1 if it moves by 1."""
    lengths = np.linalg.norm(side_by_side(parts, len(columns))[0], axis=0)
    return Scale(1.0 / np.where(lengths > 0, lengths, 1.0))
