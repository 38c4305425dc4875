"""Ranges of an answer, judged by the pipeline's own predict all along and just beyond."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PowerTransformer,
    StandardScaler,
)

from tables import NAMES, frame_of
from voicecf import CFCLUST, VoICE
from voicecf.errors import OptionError

MAPS = {
    "standard": StandardScaler,
    "power": PowerTransformer,
    "log": lambda: FunctionTransformer(
        np.log1p, inverse_func=np.expm1, feature_names_out="one-to-one"
    ),
    "pca": lambda: make_pipeline(StandardScaler()),
}
COLUMNS = [
    "column", "from", "to", "low", "high", "binds_low", "binds_high", "other_levels",
]  # fmt: skip


@cache
def pipeline(name: str, numbers: str) -> Pipeline:
    frame = frame_of(name)
    text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    steps = [("numbers", MAPS[numbers](), [c for c in frame if c not in text])]
    if text:
        steps.append(("text", OneHotEncoder(sparse_output=False), text))
    mixing = [PCA(3, random_state=0)] if numbers == "pca" else []
    model = make_pipeline(ColumnTransformer(steps), *mixing, KMeans(4, n_init=2, random_state=0))
    return model.fit(frame)


@cache
def fitted(name: str, numbers: str, contraction) -> VoICE:
    return VoICE(pipeline(name, numbers), contraction=contraction).fit(frame_of(name))


class Moved:
    """One answer as the user has it, with one column at other values."""

    def __init__(self, voice: VoICE, cf, i: int):
        self.voice, self.target = voice, int(cf.target[i])
        self.answer = cf.to_frame().iloc[[i]]

    def frame(self, column, values) -> pd.DataFrame:
        values = np.asarray(values)
        rows = pd.concat([self.answer] * len(values), ignore_index=True)
        whole = values.dtype.kind == "f" and (values == np.rint(values)).all()
        kind = rows[column].dtype if whole or values.dtype == object else None
        rows[column] = pd.Series(values, dtype=kind)
        return rows

    def labels(self, column, values) -> np.ndarray:
        return self.voice.model_.predict(self.frame(column, values))

    def scores(self, column, values) -> np.ndarray:
        """How much of the target's cell each point needs, against each rival."""
        seen = np.asarray(self.voice.model_[:-1].transform(self.frame(column, values)))
        centers = self.voice.model_[-1].cluster_centers_
        g = centers - centers[self.target]
        with np.errstate(invalid="ignore"):
            return (seen - centers[self.target]) @ g.T / (0.5 * (g * g).sum(axis=1))


def beyond(frame: pd.DataFrame, line, way: int) -> float:
    """A value just beyond an end: the next whole number, or a little more than rounding."""
    end = line.high if way > 0 else line.low
    if frame[line.column].dtype.kind == "i":
        return end + way
    return end + way * 1e-6 * max(abs(end), float(frame[line.column].std()))


def lines_of(cf, i: int):
    table = cf.ranges(i)
    assert list(table.columns) == COLUMNS
    return list(table.rename(columns={"from": "before"}).itertuples())


PIPELINES = [*((name, "standard") for name in NAMES), ("wine", "power"), ("wholesale", "log"),
             ("wholesale", "power"), ("wine", "pca"), ("obesity", "pca")]  # fmt: skip
# Each pipeline with the cells as they are and with one contraction; with the other in the sweep.
CASES = [
    pytest.param(
        name,
        numbers,
        contraction,
        marks=pytest.mark.slow if contraction == other else [],
    )
    for name, numbers in PIPELINES
    for other in (0.6 if numbers == "standard" else "retain",)
    for contraction in (1.0, "retain", 0.6)
]


@pytest.mark.parametrize(("name", "numbers", "contraction"), CASES)
def test_all_of_a_range_is_in_the_target_and_beyond_it_what_binds_is_broken(
    name, numbers, contraction
):
    voice, frame = fitted(name, numbers, contraction), frame_of(name)
    steps = {c: None for c in frame if frame[c].dtype.kind == "i" and numbers in ("log", "power")}
    cf = voice.explain(frame.iloc[3:60:14], "nearest", steps=steps, plausible=None)
    judged = 0
    for i in np.flatnonzero(cf.feasible):
        moved = Moved(voice, cf, i)
        alpha = voice.alpha_[moved.target]
        for line in lines_of(cf, i):
            if frame[line.column].dtype.kind not in "if":
                continue
            to = float(line.to)
            assert line.low <= to <= line.high
            inside = np.linspace(line.low, line.high, 9)
            if frame[line.column].dtype.kind == "i" and line.column not in steps:
                inside = np.unique(np.rint(inside))
                assert line.low == np.rint(line.low)
                assert line.high == np.rint(line.high)
            outside = [
                end + way if line.column not in steps and whole(frame, line)
                else beyond(frame.astype({line.column: float}), line, way)
                for way, end in ((-1, line.low), (1, line.high))
            ]  # fmt: skip
            labels = moved.labels(line.column, [*inside, *outside])
            assert (labels[:-2] == moved.target).all()
            at_ends = moved.scores(line.column, [line.low, line.high, *outside])
            for side, binds in enumerate((line.binds_low, line.binds_high)):
                assert at_ends[side][~own(moved)].max() <= alpha + 1e-9
                if binds == "data range":
                    column = frame[line.column]
                    assert (line.low, line.high)[side] == (column.min(), column.max())[side]
                elif binds.startswith("cluster "):
                    assert at_ends[2 + side][int(binds[8:])] > alpha - 1e-12
                    if contraction == 1.0 and not whole(frame, line):
                        assert labels[side - 2] != moved.target
                else:
                    raise AssertionError(binds)
                judged += 1
    assert judged > 4


def own(moved: Moved) -> np.ndarray:
    return np.arange(len(moved.voice.model_[-1].cluster_centers_)) == moved.target


def whole(frame: pd.DataFrame, line) -> bool:
    return frame[line.column].dtype.kind == "i"


@pytest.mark.parametrize("name", ["obesity", "student", "german_credit"])
def test_other_levels_are_those_that_the_pipeline_puts_into_the_target(name):
    voice, frame = fitted(name, "standard", 1.0), frame_of(name)
    words = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    numbers = [c for c in frame if c not in words]
    cf = voice.explain(
        frame.iloc[:40], "each", immutable=numbers[1:], max_changes=4, plausible=None
    )
    judged = 0
    for i in np.flatnonzero(cf.feasible):
        moved = Moved(voice, cf, i)
        for line in lines_of(cf, i):
            if line.column not in words:
                continue
            assert np.isnan(line.low)
            levels = [v for v in sorted(frame[line.column].unique()) if v != line.to]
            fits = moved.labels(line.column, np.array(levels, dtype=object)) == moved.target
            expected = {level for level, fit in zip(levels, fits, strict=True) if fit}
            assert {part for part in line.other_levels.split(", ") if part} == expected
            judged += 1
        if judged > 20:
            break
    assert judged


def test_rules_bounds_and_steps_bind_by_name():
    frame = frame_of("wholesale")
    voice = fitted("wholesale", "standard", 1.0)
    words = {
        "bounds": {"Fresh": (0, 30_000)},
        "constraints": "Frozen + Milk <= 25000",
        "steps": {"Grocery": 50},
        "increase_only": ["Delicassen"],
    }
    cf = voice.explain(frame.iloc[:15], "each", **words, plausible=None)
    seen = set()
    for i in np.flatnonzero(cf.feasible):
        answer = cf.to_frame().iloc[i]
        for line in lines_of(cf, i):
            seen |= {line.binds_low, line.binds_high}
            if line.column == "Grocery":
                assert line.low % 50 == 0 or line.low == line.to
                assert line.high % 50 == 0
            if line.binds_high == "bound":
                assert (line.column, line.high) == ("Fresh", 30_000)
            if line.binds_high == "rule":
                assert line.column in ("Frozen", "Milk")
                other = answer["Milk" if line.column == "Frozen" else "Frozen"]
                assert line.high + other <= 25_000 < line.high + other + 1
            if line.binds_low == "rule":
                assert (line.column, line.low) == ("Delicassen", line.before)
    assert {"rule", "bound"} <= seen


def test_open_sides_are_infinite_and_arrays_have_ranges():
    X = load_wine().data
    voice = VoICE(KMeans(3, n_init=2, random_state=0), bounds=None, contraction=1.0).fit(X)
    cf = voice.explain(X[:5], plausible=None)
    table = cf.ranges(0)
    ends = [*zip(table["low"], table["binds_low"], strict=True)]
    ends += [*zip(table["high"], table["binds_high"], strict=True)]
    assert any(np.isinf(value) for value, _ in ends)
    for value, binds in ends:
        assert np.isinf(value) == (binds == "open")
    point = cf.points[0].copy()
    for name, low, high in zip(table["column"], table["low"], table["high"], strict=True):
        for value in (low, high):
            moved = point.copy()
            moved[int(name[1:])] = np.clip(value, -1e6, 1e6)
            assert voice.predict(moved[None])[0] == cf.target[0]


def test_ranges_come_in_the_kind_of_frame_that_was_explained():
    frame = pl.DataFrame(load_wine().data, schema=load_wine().feature_names, orient="row")
    voice = VoICE(KMeans(3, n_init=2, random_state=0)).fit(frame)
    table = voice.explain(frame[:2], plausible=None).ranges(1)
    assert isinstance(table, pl.DataFrame)
    assert table.columns == COLUMNS
    already = voice.explain(frame[:1], int(voice.predict(frame[:1])[0]), plausible=None).ranges(0)
    assert (len(already), already.columns) == (0, COLUMNS)


def test_contracted_bounds_bind_where_they_were_contracted_to():
    X = load_wine().data
    voice = VoICE(KMeans(3, n_init=2, random_state=0), contract_bounds=True, retain=0.6).fit(X)
    cf = voice.explain(X[::30], "each", plausible=None)
    for i in np.flatnonzero(cf.feasible):
        region = voice.region(int(cf.target[i]))
        for line in lines_of(cf, i):
            c = int(line.column[1:])
            assert region.lo[c] <= line.low <= line.high <= region.hi[c]


def test_what_has_no_answer_has_no_ranges():
    X = load_wine().data
    model = KMeans(3, n_init=2, random_state=0)
    cf = VoICE(model).fit(X).explain(X[:1], target=0, immutable=range(13), plausible=None)
    with pytest.raises(OptionError, match=r"answer 0 is infeasible.*see reason\(0\)"):
        cf.ranges(0)
    with pytest.raises(IndexError, match="there is no answer 3"):
        cf.ranges(3)
    with pytest.raises(OptionError, match="VoICE only, not of CFCLUST"):
        CFCLUST(model).fit(X).explain(X[:1]).ranges(0)
