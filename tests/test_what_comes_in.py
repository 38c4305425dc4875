"""What scikit-learn accepts is explained: transformers, missing values, rows in any form."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import special
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    StandardScaler,
)

from voicecf import Status, VoICE
from voicecf.errors import DataError, ModelError


def kmeans(k=3):
    return KMeans(k, n_init=3, random_state=0)


def people(n=120, seed=0):
    """Return rows with two positive numbers, a whole number and two categories."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "income": np.exp(rng.normal(kind, 0.4)),
            "age": 30.0 + 8.0 * kind + rng.normal(0, 3.0, n),
            "visits": rng.poisson(3 + 4 * kind),
            "town": rng.choice(["Rome", "Oslo", "Bonn", "Lima"], n, p=[0.5, 0.3, 0.12, 0.08]),
            "member": rng.random(n) < 0.4,
        }
    )


def explained(pipeline, frame, rows=None, **rules):
    """Explain rows in several ways; check each answer by the pipeline's own predict."""
    voice = VoICE(pipeline, contraction=1.0).fit(frame)
    rows = frame.iloc[:40] if rows is None else rows
    for target, objective in product(("nearest", "each"), ("cost", "fewest")):
        cf = voice.explain(rows, target=target, objective=objective, **rules)
        assert cf.feasible.mean() > 0.5, cf
        assert_sound(pipeline, cf)
    return voice, voice.explain(rows, target="each", **rules)


def assert_sound(pipeline, cf):
    """Check answers, as a table and as JSON, by the pipeline's own predict."""
    good = cf[cf.feasible]
    np.testing.assert_array_equal(pipeline.predict(good.to_frame()), good.target)
    rounded = good.rounded().to_frame()
    np.testing.assert_array_equal(pipeline.predict(rounded), good.target)
    answers = json.loads(cf.to_json())["answers"]
    assert [answer["feasible"] for answer in answers] == cf.feasible.tolist()
    assert len(cf.changes()) == sum(len(cf.outcome.changed(i)) for i in range(len(cf)))
    for i in range(min(len(cf), 5)):
        assert cf.text(i) == answers[i]["text"]
        assert cf.reason(i).text if cf.status[i] == Status.INFEASIBLE else str(cf.reason(i))


# Functions with a known inverse

FUNCTIONS = [
    np.log, np.log2, np.log10, np.log1p, np.exp, np.expm1, np.sqrt, np.cbrt, np.square, np.arcsinh,
    np.reciprocal, np.negative, special.log1p, special.expit,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_known_function_needs_no_inverse(function):
    frame = people()[["income", "age"]] / [1.0, 20.0]
    pipeline = make_pipeline(FunctionTransformer(function), StandardScaler(), kmeans()).fit(frame)
    voice, cf = explained(pipeline, frame)
    assert not any(column.listed for column in voice.space_.columns)
    with_inverse = FunctionTransformer(function, inverse_func=cf_inverse(function))
    other = make_pipeline(with_inverse, StandardScaler(), kmeans()).fit(frame)
    expected = VoICE(other, contraction=1.0).fit(frame).explain(frame.iloc[:40], target="each")
    np.testing.assert_array_equal(cf.points, expected.points)


def cf_inverse(function):
    """Return the inverse as a user would write it."""
    inverses = {
        np.log: np.exp, np.log2: np.exp2, np.log10: special.exp10, np.log1p: np.expm1,
        np.exp: np.log, np.expm1: np.log1p, np.sqrt: np.square, np.cbrt: lambda z: z**3,
        np.square: np.sqrt, np.arcsinh: np.sinh, np.reciprocal: np.reciprocal,
        np.negative: np.negative, special.log1p: special.expm1, special.expit: special.logit,
    }  # fmt: skip
    return inverses[function]


@pytest.mark.parametrize("shift", [-10.0, -2.5])
def test_the_square_of_negative_numbers_keeps_their_sign(shift):
    frame = people()[["income", "age"]] / [1.0, 20.0]
    frame["income"] += shift
    pipeline = make_pipeline(FunctionTransformer(np.square), StandardScaler(), kmeans()).fit(frame)
    voice, cf = explained(pipeline, frame)
    answers = cf[cf.feasible].to_frame()
    assert answers["income"].isin(frame["income"]).all()
    assert voice.space_.columns[0].listed


def test_an_unknown_function_still_asks_for_its_inverse():
    frame = people()[["income", "age"]]
    pipeline = make_pipeline(FunctionTransformer(lambda X: X**5), kmeans()).fit(frame)
    with pytest.raises(ModelError, match=r"inverse_func=np\.expm1"):
        VoICE(pipeline).fit(frame)
