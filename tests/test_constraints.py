"""Linear rules are read as written, refused where they are none, and mean the same in search."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from spaces import Space
from voicecf import Status, VoICE
from voicecf.errors import ColumnError, OptionError
from voicecf.rules.columns import affine_map
from voicecf.rules.constraints import Constraint, pull_back, read_constraints


@pytest.fixture
def space() -> Space:
    return (
        Space()
        .number("fresh", lambda u: (u - 5.0) / 2.0)
        .number("frozen", lambda u: 3.0 - 4.0 * u)
        .number("my col")
        .number("class")
        .number("income", np.log, affine=False, observed=(1.0, 10.0))
        .category("job", ["clerk", "nurse"])
        .category("home", ["own", "rent"], sources=["home_own", "home_rent"])
    )


@pytest.mark.parametrize(
    ("text", "coefficients", "limit"),
    [
        ("fresh + 2*frozen <= 60000", {"fresh": 1.0, "frozen": 2.0}, 60000.0),
        ("fresh >= frozen", {"fresh": -1.0, "frozen": 1.0}, 0.0),
        ("0.5*(fresh - frozen) <= class + 3", {"fresh": 0.5, "frozen": -0.5, "class": -1.0}, 3.0),
        ("`my col` <= 3", {"my col": 1.0}, 3.0),
        ("-fresh >= -1_000e-3", {"fresh": 1.0}, 1.0),
        ("fresh / 4 * 2 <= (1 + 2) * 3 / 2", {"fresh": 0.5}, 4.5),
        ("3 <= 1 + fresh + fresh - frozen", {"fresh": -2.0, "frozen": 1.0}, -2.0),
        ("  +fresh<=1.e2 ", {"fresh": 1.0}, 100.0),
        ("`fresh`*2 <= .5", {"fresh": 2.0}, 0.5),
    ],
)
def test_a_rule_says_what_is_written(space, text, coefficients, limit):
    (row,) = read_constraints(text, space)
    assert row == Constraint(text, coefficients, limit)


@pytest.mark.parametrize("text", ["fresh < 3", "3 > fresh", "-fresh > -3"])
def test_a_strict_comparison_leaves_its_limit_out(space, text):
    (row,) = read_constraints(text, space)
    assert not row.holds({"fresh": 3.0})
    assert row.holds({"fresh": 3.0 - 1e-3})


def test_an_equality_is_two_rows_and_a_chain_one_a_link(space):
    for text in ("fresh = 2", "fresh == 2"):
        rows = read_constraints(text, space)
        assert [(r.coefficients, r.limit) for r in rows] == [({"fresh": 1}, 2), ({"fresh": -1}, -2)]
    rows = read_constraints("1 <= fresh <= frozen", space)
    assert [r.coefficients for r in rows] == [{"fresh": -1.0}, {"fresh": 1.0, "frozen": -1.0}]
    assert [r.limit for r in rows] == [-1.0, 0.0]


def test_several_texts_are_read_in_order_and_none_is_none(space):
    assert [r.text for r in read_constraints(["fresh <= 1", "frozen <= 2"], space)] == [
        "fresh <= 1",
        "frozen <= 2",
    ]
    assert read_constraints(None, space) == ()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("fresh * frozen <= 3", "not linear"),
        ("fresh ** 2 <= 3", "neither a column"),
        ("1 / fresh <= 3", "divides by a column"),
        ("fresh / 0 <= 3", "divides by zero"),
        ("fresh + 3", "not a comparison"),
        ("fresh != 3", "may compare"),
        ("fresh <=", "cannot be read"),
        ("", "cannot be read"),
        ("fresh <= 3 and frozen <= 2", "cannot be read"),
        ("2fresh <= 3", "cannot be read"),
        ("`fresh <= 3", "cannot be read"),
        ("abs(fresh) <= 3", "unknown column|neither a column"),
        ("fresh.frozen <= 3", "neither a column"),
        ("fresh <= 'three'", "neither a column|unknown column|cannot"),
        ("3 <= 4", "compares no column"),
        ("fresh - fresh <= 4", "compares no column"),
        ("fresh <= 1e999", "too large"),
        ("fresh <= 1" + "0" * 400, "too large"),
        ("fresh <= 1j", "neither a column"),
        ("(" * 5000 + "fresh" + ")" * 5000 + "<= 1", "cannot be read"),
        ("fresh <= 3\x00", "cannot be read"),
    ],
)
def test_what_is_no_linear_rule_is_refused_with_its_text(space, text, says):
    with pytest.raises((OptionError, ColumnError), match=says) as error:
        read_constraints([text], space)
    assert repr(text) in str(error.value)


def test_text_is_never_run(space):
    for text in ("__import__('os') <= 1", "(lambda: fresh)() <= 1", "[fresh][0] <= 1"):
        with pytest.raises((OptionError, ColumnError)):
            read_constraints(text, space)


def test_what_is_no_text_is_refused(space):
    for words in (3, [3], [None]):
        with pytest.raises(OptionError, match="is not text"):
            read_constraints(words, space)


def test_an_unknown_column_gets_the_likely_name(space):
    with pytest.raises(ColumnError, match=r"unknown column 'frosen'.*did you mean 'frozen'"):
        read_constraints("frosen <= 3", space)


def test_categories_cannot_be_added(space):
    for name in ("job", "home", "home_own"):
        with pytest.raises(ColumnError, match="is a category"):
            read_constraints(f"{name} <= 3", space)


def test_a_rule_tells_whether_it_is_linear_in_coordinates(space):
    (curved,) = read_constraints("income + fresh <= 3", space)
    (straight,) = read_constraints("fresh <= 3", space)
    assert not curved.is_affine(space)
    assert straight.is_affine(space)


def test_names_are_compared_as_they_are_spelt():
    # Python's own grammar folds the ligature into two letters.
    space = Space().number("\ufb01ll")
    (row,) = read_constraints("\ufb01ll <= 3", space)
    assert row.coefficients == {"\ufb01ll": 1.0}


numbers = st.floats(-1e6, 1e6).map(lambda x: round(x, 3))


@given(
    factors=st.lists(numbers.filter(bool), min_size=3, max_size=3),
    limit=numbers,
    values=st.lists(numbers, min_size=3, max_size=3),
)
def test_coordinates_hold_the_rule_where_the_values_do(factors, limit, values):
    space = (
        Space()
        .number("a", lambda u: (u - 12.5) / 3.7)
        .category("job", ["x", "y"])
        .number("b", lambda u: u * -0.3 + 8.0)
        .number("c")
    )
    terms = zip(factors, "abc", strict=True)
    text = " + ".join(f"{f!r}*{name}" for f, name in terms) + f" <= {limit!r}"
    rows, offsets = pull_back(read_constraints(text, space), space)
    z = np.zeros(5)
    for i, place, value in zip((0, 2, 3), (0, 3, 4), values, strict=True):
        z[place] = space.coordinates(i, [value])[0, 0]
    truth = sum(
        (Fraction(f) * Fraction(v) for f, v in zip(factors, values, strict=True)), -Fraction(limit)
    )
    size = sum(abs(f) * (abs(v) + 30.0) for f, v in zip(factors, values, strict=True)) + abs(limit)
    assert abs(float(truth) - (rows @ z - offsets)[0]) <= 1e-12 * size


@pytest.mark.parametrize("scaler", [StandardScaler(), MinMaxScaler(), RobustScaler()])
@pytest.mark.parametrize("where", [0.0, 1e9, -1e5])
def test_scale_and_shift_keep_twelve_digits_far_from_zero(scaler, where):
    data = where + np.linspace(-1, 1, 7)[:, None]
    scaler.fit(data)
    space = Space().number(
        "a",
        lambda u: scaler.transform(u[:, None])[:, 0],
        observed=(data.min(), data.max()),
    )
    scale, shift = affine_map(space, 0)
    if isinstance(scaler, MinMaxScaler):
        true = Fraction(scaler.scale_[0]), Fraction(scaler.min_[0])
    else:
        centre = getattr(scaler, "center_", getattr(scaler, "mean_", None))
        true = 1 / Fraction(scaler.scale_[0]), -Fraction(centre[0]) / Fraction(scaler.scale_[0])
    assert scale == pytest.approx(float(true[0]), rel=1e-12)
    assert shift == pytest.approx(float(true[1]), rel=1e-12)


def test_a_yes_no_column_is_asked_for_yes_and_no_only():
    def only_yes_and_no(u):
        assert set(u) <= {0.0, 1.0}
        return (u - 0.25) / 0.5

    space = Space().number("member", only_yes_and_no, observed=(0.0, 1.0), whole=True)
    assert affine_map(space, 0) == (2.0, -0.5)


def fitted(frame: pd.DataFrame) -> VoICE:
    model = make_pipeline(StandardScaler(), KMeans(3, n_init=2, random_state=0))
    return VoICE(model).fit(frame)


def amounts(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, n)) + 3 * rng.integers(3, size=n)
    return pd.DataFrame({"a": a, "b": b, "k": rng.integers(9, size=n)})


def test_two_comparisons_in_place_of_an_equality_are_answered():
    frame = amounts()
    cf = fitted(frame).explain(frame.head(9), "each", constraints=["a - b <= 0.1", "b - a <= 0.1"])
    assert cf.feasible.all()


def test_an_equality_is_answered_where_columns_have_steps_or_may_not_change():
    frame = amounts()
    voice = fitted(frame)
    stepped = voice.explain(frame.head(9), "each", constraints="a == b", steps={"a": 0.1, "b": 0.1})
    assert stepped.feasible.all()
    assert (stepped.to_frame()["a"] == stepped.to_frame()["b"]).all()
    locked = voice.explain(frame.head(9), "each", constraints="a == b", immutable=["a", "b"])
    assert (locked.status == Status.INFEASIBLE).all()
    assert "a == b" in locked.reason(0).text


def test_an_equality_that_rows_meet_already_is_answered():
    frame = amounts()
    frame["b"] = frame["a"]
    cf = fitted(frame).explain(frame.head(9), "each", constraints="a == b")
    assert cf.feasible.all()
    assert (cf.to_frame()["a"] == cf.to_frame()["b"]).all()
