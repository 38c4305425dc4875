"""What a user gets wrong, and the words that put it right."""

from __future__ import annotations

import inspect
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import (
    DBSCAN,
    AffinityPropagation,
    KMeans,
    MeanShift,
    MiniBatchKMeans,
)
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import SHARK, Rules, Status, VoICE
from voicecf.errors import (
    BoundsError,
    ColumnError,
    DataError,
    EmptyClusterWarning,
    ModelError,
    OptionError,
    TargetError,
    VoiceError,
)
from voicecf.rules.rules import RULES

nan, inf = np.nan, np.inf
IRIS = load_iris().data
NAMES = ["sepal", "width", "petal", "stamen"]
FRAME = pd.DataFrame(IRIS, columns=NAMES)
ROW = FRAME.iloc[:1]
CENTERS = [[0.0, 0.0], [4.0, 0.0]]


def kmeans(k=3) -> KMeans:
    return KMeans(k, n_init=2, random_state=0)


MODEL = kmeans().fit(FRAME)
VOICE = VoICE(MODEL).fit(FRAME)


class Plain:
    """A model that is only its centroids."""

    def __init__(self, centers):
        self.cluster_centers_ = np.asarray(centers)


def explain(X=ROW, *args, **kwargs):
    return lambda: VOICE.explain(X, *args, errors="raise", **kwargs)


def fit(X=FRAME, model=MODEL, **options):
    return lambda: VoICE(model, **options).fit(X)


def from_centers(*args, **kwargs):
    return lambda: VoICE.from_centers(*args, **kwargs)


def cells(row: int, column: int, value: object) -> pd.DataFrame:
    frame = FRAME.astype(object) if isinstance(value, str) else FRAME.copy()
    frame.iloc[row, column] = value
    return frame


NULLABLE = FRAME.convert_dtypes()
NULLABLE.iloc[3, 2] = pd.NA
POLARS_NULL = pl.DataFrame(FRAME).with_columns(
    pl.when(pl.int_range(pl.len()) == 3).then(None).otherwise(pl.col("petal")).alias("petal")
)
TEXT = FRAME.assign(petal="red")
TWICE = pd.DataFrame(IRIS, columns=["a", "a", "b", "c"])

# What was called, the error, and the words that the user needs to find the way out.
TABLE = {
    # Values
    "nan": (explain(cells(3, 2, nan)), DataError, "NaN.*row 3.*'petal'"),
    "inf": (explain(cells(3, 2, inf)), DataError, "infinite.*row 3.*'petal'"),
    "inf and -inf": (explain([[inf, -inf, 1.0, 1.0]]), DataError, "infinite.*row 0"),
    "nan in an array": (explain(np.full((1, 4), nan)), DataError, "row 0.*'sepal'"),
    "none in objects": (explain(np.array([[1, 2, 3, None]])), DataError, "missing.*'stamen'"),
    "pandas NA": (explain(NULLABLE), DataError, "missing.*row 3.*'petal'"),
    "polars null": (explain(POLARS_NULL), DataError, "missing.*row 3.*'petal'"),
    "text column": (explain(TEXT), DataError, "'petal'.*not numbers.*OneHotEncoder"),
    "text array": (explain(np.array([["a", "b", "c", "d"]])), DataError, "text.*OneHotEncoder"),
    "category": (explain(TEXT.astype({"petal": "category"})), DataError, "'petal'"),
    "dates": (explain(FRAME.assign(petal=pd.Timestamp("2020"))), DataError, "'petal'"),
    "complex": (explain(IRIS[:1] + 1j), DataError, "complex"),
    "masked": (explain(np.ma.masked_greater(IRIS[:1], 5.0)), DataError, "mask|missing"),
    # Shape
    "too narrow": (explain(IRIS[:1, :3]), DataError, "3 columns.*4"),
    "too wide": (explain(np.ones((1, 5))), DataError, "5 columns.*4"),
    "one dimension": (explain(IRIS[0]), DataError, "one dimension.*reshape"),
    "a column as a series": (explain(FRAME["sepal"]), ColumnError, "lacks 'sepal'"),
    "a column of polars": (explain(pl.DataFrame(FRAME)["sepal"]), DataError, "one column"),
    "three dimensions": (explain(IRIS[None]), DataError, "3 dimensions"),
    "a number": (explain(5), DataError, "rows and columns"),
    "nothing": (explain(None), DataError, "rows and columns"),
    "ragged": (explain([[1, 2, 3, 4], [1]]), DataError, "same length|rows"),
    "sparse": (explain(sparse.csr_array(IRIS)), DataError, "sparse.*toarray"),
    "lazy frame": (explain(pl.DataFrame(FRAME).lazy()), DataError, "collect"),
    # Columns
    "missing column": (explain(FRAME[NAMES[:3]]), ColumnError, "'stamen'"),
    "renamed column": (explain(FRAME.rename(columns=str.upper)), ColumnError, "'sepal'.*'SEPAL'"),
    "doubled column": (explain(pd.concat([FRAME, FRAME], axis=1)), ColumnError, "'?sepal'?"),
    "misspelt immutable": (explain(immutable=["petl"]), ColumnError, "'petl'.*'petal'"),
    "unlike any column": (explain(immutable=["zzz"]), ColumnError, "'zzz'.*'sepal'.*'stamen'"),
    "misspelt bounds": (explain(bounds={"widht": (0, 1)}), ColumnError, "'widht'.*'width'"),
    "immutable beyond": (explain(immutable=[4]), ColumnError, "0 to 3"),
    "immutable -5": (explain(immutable=[-5]), ColumnError, "0 to 3"),
    "immutable 1.5": (explain(immutable=[1.5]), ColumnError, "1.5"),
    # Targets
    "unknown target": (explain(target=7), TargetError, "7.*0 to 2"),
    "negative target": (explain(target=-1), TargetError, "-1.*0 to 2"),
    "one bad of many": (explain(FRAME[:3], target=[0, 1, 5]), TargetError, "5.*0 to 2"),
    "too few targets": (
        explain(FRAME[:3], target=[0, 1]), TargetError, "lists 2 clusters; give 3, one for each"
    ),
    "too many targets": (explain(target=np.zeros(9, int)), TargetError, "9 clusters; give 1,"),
    "ragged targets": (explain(FRAME[:2], target=[[0], [1, 2]]), TargetError, "0 to 2"),
    "target 1.0": (explain(target=1.0), TargetError, "0 to 2"),
    "target nan": (explain(target=nan), TargetError, "0 to 2"),
    "target True": (explain(target=True), TargetError, "0 to 2"),
    "target None": (explain(target=None), TargetError, "0 to 2.*nearest.*each"),
    "target '2'": (explain(target="2"), TargetError, "'2'.*0 to 2"),
    "misspelt nearest": (explain(target="nearst"), VoiceError, "nearst.*nearest.*each"),
    # Words in the wrong place
    "a rule as an option": (fit(plausible=0.9), OptionError, r"plausible.*explain\(X, plausible="),
    "a question as an option": (fit(objective="fewest"), OptionError, r"explain\(X, objective="),
    "a rule for centres": (
        from_centers(CENTERS, immutable=[0]), OptionError, r"explain\(X, immutable=",
    ),
    "misspelt option": (fit(contractoin=0.5), OptionError, "'contractoin'.*'contraction'"),
    "an option as a rule": (explain(contraction=0.5), OptionError, r"VoICE\(model, contraction="),
    "product in together": (
        explain(together="sepal * 2 <= 3"), OptionError, r"'sepal \* 2 <= 3'.*constraints=\[",
    ),
    "sum after then": (
        explain(together="if sepal > 1 then width + petal <= 3"), OptionError, "constraints=",
    ),
    "two columns in together": (explain(together="sepal <= width"), OptionError, "constraints="),
    # Bounds
    "upside down": (explain(bounds={"petal": (3, 1)}), BoundsError, "'petal'.*upside down"),
    "no pair": (explain(bounds={"petal": 5}), BoundsError, "'petal'.*pair"),
    "three bounds": (explain(bounds={"petal": (1, 2, 3)}), BoundsError, "'petal'.*pair"),
    "bounds of text": (explain(bounds={"petal": ("a", 2)}), BoundsError, "'petal'"),
    "bounds from a text": (explain(bounds={"petal": "12"}), BoundsError, "'petal'.*pair"),
    "nan bound": (explain(bounds={"petal": (nan, 1)}), BoundsError, "'petal'.*None"),
    "bounds at inf": (explain(bounds={"petal": (inf, inf)}), BoundsError, "'petal'"),
    "bounds at -inf": (explain(bounds={"petal": (-inf, -inf)}), BoundsError, "'petal'"),
    "bounds no dict": (explain(bounds=(0, 1)), BoundsError, "dict"),
    "bounds a word": (explain(bounds="data"), BoundsError, "dict"),
    "fit: bounds 5": (fit(bounds=5), BoundsError, "pair"),
    "fit: upside down": (fit(bounds=(5, 0)), BoundsError, "upside down"),
    "fit: three": (fit(bounds=(1, 2, 3)), BoundsError, "pair"),
    "fit: wrong length": (fit(bounds=(np.zeros(4), np.ones(3))), BoundsError, "4 numbers"),
    "fit: a dict": (fit(bounds={"petal": (0, 1)}), BoundsError, "pair"),
    "fit: misspelt": (fit(bounds="date"), OptionError, "'date'.*'data'"),
    # Options
    "objective": (explain(objective="cheapest"), OptionError, "'cheapest'.*'cost', 'prefix'"),
    "objective None": (explain(objective=None), OptionError, "'cost', 'prefix'"),
    "contraction word": (fit(contraction="retian"), OptionError, "'retian'.*'retain'"),
    "contraction 0": (fit(contraction=0), OptionError, r"contraction=0.*\(0, 1\]"),
    "contraction 2": (fit(contraction=2), OptionError, r"contraction=2.*\(0, 1\]"),
    "contraction nan": (fit(contraction=nan), OptionError, r"contraction=nan.*\(0, 1\]"),
    "contraction None": (fit(contraction=None), OptionError, r"\(0, 1\]"),
    "retain 0": (fit(retain=0), OptionError, r"retain=0.*\(0, 1\]"),
    "retain 90": (fit(retain=90), OptionError, r"retain=90.*\(0, 1\]"),
    "ranking word": (fit(ranking="weigths"), OptionError, "'weigths'.*'weights', 'columns'"),
    "ranking short": (fit(ranking=[1, 2]), OptionError, "4 scores"),
    "ranking nan": (fit(ranking=[1, 2, 3, nan]), OptionError, "4 scores"),
    "ranking names": (fit(ranking=NAMES), OptionError, "4 scores"),
    "ranking None": (fit(ranking=None), OptionError, "ranking"),
    "delta 0": (fit(delta=0), OptionError, "delta=0.*positive"),
    "delta -1": (fit(delta=-1), OptionError, "delta=-1.*positive"),
    "delta nan": (fit(delta=nan), OptionError, "delta=nan.*positive"),
    "delta text": (fit(delta="small"), OptionError, "delta='small'.*positive"),
    "margin 1": (fit(margin=1), OptionError, r"margin=1.*\[0, 1\)"),
    "margin -1": (fit(margin=-1), OptionError, r"margin=-1.*\[0, 1\)"),
    # Models
    "no predict": (fit(model=DBSCAN()), ModelError, "DBSCAN.*no predict.*KNeighborsClassifier"),
    "mixture": (fit(model=GaussianMixture(2)), ModelError, 'GaussianMixture.*full.*"tied"'),
    "labels needed": (fit(model=LogisticRegression()), DataError, r"LogisticReg.*fit\(X, y\)"),
    "an object": (fit(model=object()), ModelError, "object.*cluster_centers_"),
    "a class": (fit(model=KMeans), ModelError, r"KMeans.*(instance|\(\))"),
    "no model": (fit(model=None), ModelError, "cluster_centers_"),
    "a word as model": (fit(model="kmeans"), ModelError, "cluster_centers_"),
    "one cluster": (fit(model=KMeans(1)), ModelError, "one cluster.*2"),
    "flat centres": (fit([[0.0]], Plain([0.0, 1.0])), ModelError, r"\(k, d\)"),
    "nan centres": (fit([[0.0]], Plain([[nan], [1.0]])), ModelError, "finite"),
    "model of another width": (fit(IRIS[:, :3], kmeans().fit(IRIS)), DataError, "3 columns.*4"),
    # Data to fit on
    "fit no rows": (fit(IRIS[:0], kmeans().fit(IRIS)), DataError, "no rows"),
    "fit no rows, model too": (fit(IRIS[:0], kmeans()), DataError, "no rows"),
    "fit nan": (fit(cells(3, 2, nan), kmeans()), DataError, "NaN.*row 3.*'petal'"),
    "fit NA": (fit(NULLABLE, kmeans()), DataError, "missing.*row 3.*'petal'"),
    "fit null": (fit(POLARS_NULL, kmeans()), DataError, "missing.*row 3.*'petal'"),
    "fit text": (fit(TEXT, kmeans()), DataError, "'petal'.*OneHotEncoder"),
    "fit text, model fitted": (fit(TEXT), DataError, "'petal'.*OneHotEncoder"),
    "fit sparse": (fit(sparse.csr_array(IRIS), kmeans()), DataError, "sparse.*toarray"),
    "fit one dimension": (fit(IRIS[0], kmeans()), DataError, "one dimension"),
    "fit doubled names": (fit(TWICE, kmeans()), ColumnError, "'a'"),
    # Centroids
    "centres of text": (from_centers([["a"], ["b"]]), ModelError, r"\(k, d\)"),
    "centres ragged": (from_centers([[1, 2], [3]]), ModelError, r"\(k, d\)"),
    "centres flat": (from_centers([1.0, 2.0]), ModelError, r"\(k, d\)"),
    "centres nan": (from_centers([[nan], [1.0]]), ModelError, "finite"),
    "one centre": (from_centers([[1.0, 2.0]]), ModelError, "2"),
    "no columns": (from_centers(np.empty((2, 0))), ModelError, "column|feature"),
    "weights short": (from_centers(CENTERS, weights=[1.0]), ModelError, "2 finite numbers"),
    "weights negative": (from_centers(CENTERS, weights=[1, -1]), ModelError, "negative"),
    "weights zero": (from_centers(CENTERS, weights=[0, 0]), ModelError, "zero"),
    "weights nan": (from_centers(CENTERS, weights=[1, nan]), ModelError, "finite"),
    "weights of text": (from_centers(CENTERS, weights=["a", "b"]), ModelError, "2 finite numbers"),
    "names short": (from_centers(CENTERS, feature_names=["a"]), VoiceError, "2 different names"),
    "names twice": (from_centers(CENTERS, feature_names=["a", "a"]), VoiceError, "2 different"),
    "bounds of data": (from_centers(CENTERS, bounds="data"), VoiceError, "no data"),
    "retain without data": (from_centers(CENTERS, contraction="retain"), VoiceError, "no data"),
    # Order of use
    "not fitted": (lambda: VoICE(MODEL).explain(FRAME), NotFittedError, r"not fitted.*fit\(X\)"),
    "predict not fitted": (lambda: VoICE(MODEL).predict(FRAME), NotFittedError, "not fitted"),
    "region not fitted": (lambda: VoICE(MODEL).region(0), NotFittedError, "not fitted"),
    "region of nothing": (lambda: VOICE.region(3), TargetError, "3.*0 to 2"),
    "cell of nothing": (lambda: VOICE.cell(-1), TargetError, "0 to 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", TABLE)
def test_bad_input_raises_with_the_words_the_user_needs(case):
    call, error, words = TABLE[case]
    with pytest.raises(error) as caught:
        call()
    assert re.search(words, str(caught.value), re.DOTALL), str(caught.value)
    assert len(str(caught.value)) < 500


def test_every_error_of_ours_is_a_value_error():
    for error in (BoundsError, ColumnError, DataError, ModelError, OptionError, TargetError):
        assert issubclass(error, VoiceError)
        assert issubclass(error, ValueError)


def test_an_open_side_of_all_bounds_is_none_as_the_message_says():
    # "NaN is no bound; use None for an open side" is what (None, 9) was answered with.
    voice = VoICE.from_centers(CENTERS, bounds=(None, 9.0))
    assert np.isneginf(voice.lo_).all()
    assert (voice.hi_ == 9).all()


def test_a_mask_of_columns_means_the_same_in_every_container():
    mask = [False, True, False, False]
    expected = VOICE.explain(FRAME[:3], immutable=["width"]).points
    assert np.isfinite(expected).all()
    for given in (np.array(mask), mask, pd.Series(mask), pl.Series(mask)):
        try:
            points = VOICE.explain(FRAME[:3], immutable=given).points
        except ColumnError:
            continue
        np.testing.assert_array_equal(points, expected)


# Odd, but allowed.


def test_a_row_in_its_target_already_is_no_error_and_does_not_move():
    labels = MODEL.predict(FRAME)
    cf = VOICE.explain(FRAME, target=labels)
    assert (cf.status == Status.ALREADY).all()
    np.testing.assert_array_equal(cf.points, IRIS)
    assert (cf.cost == 0).all()
    assert (cf.n_changed == 0).all()
    assert "already" in cf.text(0)


def test_deepen_moves_it_into_the_contracted_cell():
    voice = VoICE(MODEL, contraction=0.3).fit(FRAME)
    labels = MODEL.predict(FRAME)
    cf = voice.explain(FRAME, target=labels, deepen=True)
    moved = cf.status == Status.OPTIMAL
    assert moved.any()
    assert cf.feasible.all()
    for t in range(3):
        scores = voice.cell(t).scores(cf.points[labels == t])
        assert (scores <= 0.3 + 1e-9).all()
    np.testing.assert_array_equal(cf.points[~moved], IRIS[~moved])
    assert "deeper" in cf.text(int(np.flatnonzero(moved)[0]))


def test_all_columns_immutable_is_infeasible_with_words():
    cf = VOICE.explain(FRAME[:2], immutable=NAMES)
    assert cf.status.tolist() == [Status.INFEASIBLE] * 2
    assert "Let more columns change" in cf.text(0)


def test_bounds_that_exclude_the_target_are_infeasible_with_words():
    far = dict.fromkeys(NAMES, (1000.0, 1001.0))
    source = int(MODEL.predict(FRAME)[0])
    cf = VOICE.explain(ROW, target="each", bounds=far)
    assert source not in cf.target
    assert (cf.status != Status.UNRESOLVED).all()
    stuck = cf[~cf.feasible]
    assert len(stuck) > 0
    assert "widen their bounds" in stuck.text(0)


def test_bounds_that_the_row_itself_breaks_move_it_into_them():
    cf = VOICE.explain(ROW, bounds={"petal": (5.0, 6.0)}, target=2)
    assert cf.feasible[0]
    assert 5.0 <= cf.points[0, 2] <= 6.0


def test_an_empty_cluster_is_warned_about_by_number():
    model = kmeans(3).fit(IRIS)
    present = model.predict(IRIS) != 1
    with pytest.warns(EmptyClusterWarning, match=r"\[1\]"):
        voice = VoICE(model).fit(IRIS[present])
    assert voice.alpha_[1] == 1
    cf = voice.explain(IRIS[present][:5], target=1, bounds=dict.fromkeys(range(4), (None, None)))
    np.testing.assert_array_equal(model.predict(cf.points), 1)


@pytest.mark.parametrize("model", [MeanShift(bandwidth=1.0), AffinityPropagation(preference=-50)])
def test_other_nearest_centroid_models_are_explained_and_asked(model):
    voice = VoICE(model.fit(IRIS)).fit(IRIS)
    cf = voice.explain(IRIS, target="each")
    assert cf.feasible.all()
    np.testing.assert_array_equal(model.predict(cf.points), cf.target)


def test_a_model_that_is_only_its_centroids_will_do():
    cf = VoICE(Plain(CENTERS), bounds=None).fit([[0.0, 0.0], [4.0, 0.0]]).explain([[0.0, 1.0]])
    assert cf.feasible[0]
    assert cf.target[0] == 1


def test_a_model_that_lies_about_its_cells_gets_no_answer():
    class Liar(Plain):
        def predict(self, X):
            return np.zeros(len(X), dtype=int)

    voice = VoICE(Liar(CENTERS), contraction=1.0, bounds=None).fit([[0.0, 0.0], [1.0, 1.0]])
    cf = voice.explain([[1.0, 0.0]], target=1)
    assert not cf.feasible[0]
    assert np.isnan(cf.points).all()


def test_coinciding_centroids_leave_the_first_reachable_and_the_second_not():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0], [4.0, 0.0]])
    cf = voice.explain([[1.0, 0.0]], target="each")
    assert cf.target.tolist() == [1, 2]
    assert cf.status.tolist() == [Status.OPTIMAL, Status.INFEASIBLE]
    assert voice.predict(cf.points[:1]).tolist() == [1]
    assert voice.explain([[1.0, 0.0]]).target.tolist() == [1]


def test_a_constant_column_stays_constant():
    X = np.column_stack([IRIS, np.full(150, 7.0)])
    for model in (kmeans(), MiniBatchKMeans(3, n_init=2, random_state=0)):
        cf = VoICE(model.fit(X)).fit(X).explain(X, target="each")
        assert cf.feasible.all()
        assert (cf.points[:, 4] == 7).all()
        np.testing.assert_array_equal(model.predict(cf.points), cf.target)


@pytest.mark.parametrize("objective", ["cost", "prefix"])
@pytest.mark.parametrize("target", ["nearest", "each", 1])
def test_no_rows_give_no_answers(objective, target):
    for empty in (FRAME[:0], IRIS[:0], pl.DataFrame(FRAME)[:0]):
        cf = VOICE.explain(empty, target=target, objective=objective)
        assert len(cf) == 0
        assert cf.points.shape == (0, 4)
        assert cf.multipliers.shape == (0, 3)
        assert [len(t) for t in (cf.to_frame(), cf.summary(), cf.changes())] == [0, 0, 0]
        assert "0 counterfactuals" in repr(cf)
        assert "0 counterfactuals" in cf._repr_html_()
        assert list(cf) == []


def test_no_rows_take_no_targets():
    assert len(VOICE.explain(FRAME[:0], target=[])) == 0


def test_one_row_is_enough_to_explain_and_to_fit():
    assert len(VOICE.explain(ROW)) == 1
    with pytest.warns(EmptyClusterWarning):
        voice = VoICE(MODEL).fit(ROW)
    assert not voice.explain(ROW).feasible[0]  # the box is this one row


@pytest.mark.parametrize(
    "values",
    [
        IRIS[:9].astype(np.float32),
        IRIS[:9].astype(np.float16),
        IRIS[:9].round().astype(np.int8),
        IRIS[:9].round().astype(np.uint64),
        IRIS[:9] > 2,
        np.asfortranarray(IRIS[:9]),
        IRIS[:18:2],
        np.hstack([IRIS[:9], IRIS[:9]])[:, ::2],
        IRIS[8::-1],
        IRIS[:9].astype(">f8"),
        IRIS[:9].tolist(),
        IRIS[:9].astype(object),
    ],
    ids=["float32", "float16", "int8", "uint64", "bool", "fortran", "strided", "columns strided",
         "reversed", "big endian", "list", "object"],
)  # fmt: skip
def test_numbers_may_be_stored_in_any_way(values):
    plain = np.array(np.asarray(values).tolist(), dtype=np.float64)
    cf, same = VOICE.explain(values, target="each"), VOICE.explain(plain, target="each")
    np.testing.assert_array_equal(cf.points, same.points)
    assert cf.points.dtype == np.float64


def test_read_only_data_are_read_only():
    X = IRIS.copy()
    X.flags.writeable = False
    voice = VoICE(kmeans()).fit(X)
    np.testing.assert_array_equal(voice.explain(X).points, VOICE.explain(IRIS).points)
    np.testing.assert_array_equal(X, IRIS)


def test_nothing_that_was_given_is_written_to():
    X, lo, hi, scores = IRIS.copy(), np.full(4, -9.0), np.full(4, 19.0), np.arange(4.0)
    voice = VoICE(kmeans(), bounds=(lo, hi), ranking=scores).fit(X)
    bounds, immutable, target = {2: (0.0, 5.0)}, [0], np.ones(150, dtype=int)
    voice.explain(X, target=target, bounds=bounds, immutable=immutable, objective="prefix")
    np.testing.assert_array_equal(X, IRIS)
    assert (lo.tolist(), hi.tolist()) == ([-9.0] * 4, [19.0] * 4)
    assert (bounds, immutable, scores.tolist()) == ({2: (0.0, 5.0)}, [0], [0.0, 1.0, 2.0, 3.0])
    assert (voice.lo_ == -9).all()


def test_columns_are_matched_by_name_in_any_order_and_extras_ignored():
    shuffled = FRAME[NAMES[::-1]].assign(label="x")
    np.testing.assert_array_equal(VOICE.explain(shuffled).points, VOICE.explain(FRAME).points)


def test_a_model_fitted_on_columns_in_another_order_is_not_misread():
    # The model knows its columns by name; centroids must meet their own columns, or it must say no.
    turned = FRAME[NAMES[::-1]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyClusterWarning)
        try:
            voice = VoICE(MODEL).fit(turned)
        except VoiceError:
            return
    np.testing.assert_array_equal(voice.predict(turned), MODEL.predict(FRAME))


def test_columns_may_be_named_by_position_where_names_are_text():
    np.testing.assert_array_equal(
        VOICE.explain(FRAME, immutable=[2, -1]).points,
        VOICE.explain(FRAME, immutable=["petal", "stamen"]).points,
    )
    np.testing.assert_array_equal(
        VOICE.explain(FRAME, immutable="petal").points, VOICE.explain(FRAME, immutable=2).points
    )


def test_names_that_are_integers_are_names_not_positions():
    frame = pd.DataFrame(IRIS, columns=[3, 2, 1, 0])
    voice = VoICE(kmeans()).fit(frame)
    cf = voice.explain(frame, immutable=[0], bounds={3: (0, 50)})
    np.testing.assert_array_equal(cf.points[:, 3], IRIS[:, 3])
    other = pd.DataFrame(IRIS, columns=[10, 20, 30, 40])
    with pytest.raises(ColumnError, match="unknown column 0"):
        VoICE(kmeans()).fit(other).explain(other, immutable=[0])


def test_an_explainer_survives_pickle_and_clone():
    other = pickle.loads(pickle.dumps(VOICE))
    np.testing.assert_array_equal(other.explain(FRAME).points, VOICE.explain(FRAME).points)
    fresh = clone(VoICE(kmeans(), retain=0.9, ranking=np.arange(4.0), bounds=(0.0, 9.0)))
    assert fresh.retain == 0.9
    assert not hasattr(fresh, "alpha_")
    np.testing.assert_array_equal(fresh.fit(FRAME).learned_.ranking, [3, 2, 1, 0])
    assert clone(VOICE).get_params()["delta"] == VOICE.delta


def test_a_fitted_explainer_of_centroids_survives_pickle():
    voice = VoICE.from_centers(CENTERS, weights=[1, 2], feature_names=["a", "b"])
    other = pickle.loads(pickle.dumps(voice))
    np.testing.assert_array_equal(other.explain([[1, 2]]).points, voice.explain([[1, 2]]).points)


def test_an_explainer_can_be_shown_before_and_after_it_is_fitted():
    assert "KMeans" in repr(VoICE(kmeans()))
    assert "VoICE" in VoICE(kmeans())._repr_html_()
    assert "VoICE" in VOICE._repr_html_()


def test_fitting_again_forgets_what_was_learned_before():
    voice = VoICE(kmeans()).fit(IRIS)
    voice.explain(IRIS[:20], target="each")  # fills whatever is kept between calls
    X = 3 * IRIS[:, ::-1] + 10
    model = kmeans().fit(X)
    cf = voice.set_params(model=model).fit(X).explain(X, target="each")
    np.testing.assert_array_equal(model.predict(cf.points[cf.feasible]), cf.target[cf.feasible])
    fresh = VoICE(model).fit(X).explain(X, target="each")
    np.testing.assert_array_equal(cf.points, fresh.points)


def test_fitting_again_with_other_options_uses_them():
    voice = VoICE(kmeans(), contraction=0.9).fit(IRIS)
    voice.explain(IRIS, target="each")
    cf = voice.set_params(contraction=0.2).fit(IRIS).explain(IRIS, target="each")
    for t in range(3):
        assert (voice.cell(t).scores(cf.points[cf.target == t]) <= 0.2 + 1e-9).all()


def test_a_retain_that_keeps_nobody_keeps_the_least():
    # However small, it asks for a tighter cell than a larger one does.
    tight, loose = (VoICE(kmeans(), retain=r).fit(IRIS).alpha_ for r in (1e-12, 0.5))
    assert (tight <= loose).all()


def test_a_pipeline_is_explained_or_refused_with_the_way_round():
    pipeline = make_pipeline(StandardScaler(), kmeans())
    try:
        cf = VoICE(pipeline.fit(FRAME)).fit(FRAME).explain(FRAME, target="each")
    except ModelError as error:
        said = str(error)
    else:
        np.testing.assert_array_equal(pipeline.predict(cf.to_frame()), cf.target)
        said = "explained"
    assert said == "explained" or "pipeline[-1]" in said


def test_shark_is_explained_from_every_kind_of_frame():
    for frame in (FRAME, pl.DataFrame(FRAME), IRIS):
        model = SHARK(3, n_init=2, random_state=0)
        cf = VoICE(model.fit(frame)).fit(frame).explain(frame, target="each")
        answers = cf.points if frame is IRIS else cf.to_frame()
        np.testing.assert_array_equal(model.predict(answers), cf.target)


def test_numbers_too_large_to_square_are_refused_or_answered_without_warnings():
    for centers in ([[1e200, 0.0], [3.0, 4.0]], [[1e308, 0.0], [-1e308, 0.0]]):
        try:
            cf = VoICE.from_centers(centers).explain([[3.0, 4.0]])
        except VoiceError:
            continue
        assert cf.feasible[0] or cf.status[0] != Status.OPTIMAL


def test_weights_too_large_to_add_up_are_refused_or_scaled():
    try:
        voice = VoICE.from_centers(CENTERS, weights=[1e308, 1e308])
    except VoiceError:
        return
    np.testing.assert_allclose(voice.explain([[1.0, 5.0]]).points, [[2.0, 5.0]])


def test_a_row_too_far_away_to_square_has_a_status_and_no_warning():
    for target in ("each", "nearest"):
        cf = VOICE.explain(np.full((1, 4), 1e200), target=target)
        assert np.isfinite(cf.points[cf.feasible]).all()


# One parser reads columns, whatever the rule and however plain the question.


@pytest.mark.parametrize("words", [
    {"immutable": "10"}, {"immutable": ["10"]}, {"bounds": {"10": (0.0, 9.0)}},
    {"increase_only": "10"}, {"costs": {"10": 2.0}}, {"constraints": "`10` <= 5"},
])  # fmt: skip
def test_text_stands_for_a_column_whose_name_is_a_number(words):
    frame = pd.DataFrame({10: [0.0, 1.0, 4.0, 5.0], 20: [0.0, 1.0, 4.0, 5.0]})
    voice = VoICE(KMeans(2, n_init=2, random_state=0)).fit(frame)
    as_text = voice.explain(frame, target="each", **words)
    as_number = voice.explain(frame, target="each", **_with_numbers(words))
    np.testing.assert_array_equal(as_text.points, as_number.points)
    np.testing.assert_array_equal(as_text.status, as_number.status)


def _with_numbers(words):
    return {
        rule: {10: value["10"]} if isinstance(value, dict)
        else [10] if value in ("10", ["10"]) else value
        for rule, value in words.items()
    }  # fmt: skip


def test_a_misspelt_rule_is_named_with_the_likely_one():
    voice = VoICE.from_centers([[0.0], [4.0]])
    for ask in (voice.explain, voice.tradeoff):
        with pytest.raises(OptionError, match=r"unknown rule 'imutable'; did you mean 'immutable'"):
            ask([[1.0]], imutable="x0")


def test_every_rule_is_a_keyword_of_explain_and_tradeoff():
    words = set(Rules.__dataclass_fields__)
    for method in (VoICE.explain, VoICE.tradeoff):
        keywords = inspect.signature(method).parameters
        assert words <= set(keywords)
        assert all(keywords[word].default == RULES[word].default for word in words)
    for word in words:
        assert re.search(rf"^ +(\w+, )?{word}(, \w+)? : ", VoICE.explain.__doc__, re.MULTILINE)
