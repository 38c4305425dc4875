"""A file whose parts do not fit together is refused, before anything is computed with it."""

from __future__ import annotations

import json
import zipfile
from decimal import Decimal
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from hostile import named
from voicecf import SHARK, VoICE
from voicecf.errors import SavingError
from voicecf.saving import load, save
from voicecf.saving.zipped import zipped

RNG = np.random.default_rng(1)
X = RNG.normal(size=(60, 4)) + np.arange(60)[:, None] % 3
MIXED = pd.DataFrame(X, columns=list("abcd")).assign(town=np.array(["x", "y", "z"])[RNG.permuted(
    np.arange(60) % 3)])  # fmt: skip


def kmeans() -> KMeans:
    return KMeans(3, n_init=2, random_state=0)


def mixed(*steps, **options):
    columns = ColumnTransformer([
        ("n", StandardScaler(), list("abcd")), ("t", OneHotEncoder(**options), ["town"])
    ])  # fmt: skip
    return make_pipeline(columns, *steps, kmeans())


CASES = {
    "kmeans": (lambda: VoICE(kmeans()).fit(X), X[:5]),
    "shark": (lambda: VoICE(SHARK(3, n_init=2, random_state=0)).fit(X), X[:5]),
    "centers": (lambda: VoICE.from_centers(X[:3], weights=[1, 2, 3, 4]), X[:5]),
    "mixed": (lambda: VoICE(mixed(PCA(3), sparse_output=False)).fit(MIXED), MIXED[:5]),
    "sparse": (lambda: VoICE(mixed(min_frequency=20)).fit(MIXED), MIXED[:5]),
}


@pytest.fixture(scope="module", params=CASES)
def saved(request, tmp_path_factory):
    """The members of a saved file, rows to explain, and their answers."""
    make, rows = CASES[request.param]
    explainer = make()
    path = tmp_path_factory.mktemp("saved") / "whole.voicecf"
    explainer.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return members, rows, explainer.explain(rows)


def is_refused(members, path) -> bool:
    """Write a file and tell whether it is refused."""
    path.write_bytes(zipped(members))
    try:
        load(path)
    except SavingError:
        return True
    return False


def nodes_of(part, name, node=None):
    """Yield every value of a name in the dicts of a tree, with the dict's node."""
    if isinstance(part, list):
        for inner in part:
            yield from nodes_of(inner, name, node)
    elif isinstance(part, dict):
        if isinstance(part.get(name), dict) and "__loader__" in part[name]:
            yield part[name], part
        for inner in part.values():
            yield from nodes_of(inner, name, part)


def with_tree(members, tree):
    return {**members, "schema.json": json.dumps(tree).encode()}


def with_array(members, name, count, array):
    """Return members in which the count-th array of a name is another one; None past the last."""
    tree = json.loads(members["schema.json"])
    found = [node for node, _ in nodes_of(tree, name) if "file" in node]
    if count >= len(found):
        return None
    stream = BytesIO()
    changed = array(np.load(BytesIO(members[found[count]["file"]])))
    np.lib.format.write_array(stream, np.asarray(changed), allow_pickle=False)
    found[count]["file"] = named(stream.getvalue())
    return {**with_tree(members, tree), named(stream.getvalue()): stream.getvalue()}


def reshapings(array):
    """Arrays of the same numbers in other shapes, and of other lengths."""
    yield array[..., None]
    if array.ndim:
        yield array[:-1]
        yield np.zeros((0, *array.shape[1:]), array.dtype)
        yield np.tile(array, 50)
    if array.ndim > 1:
        yield array.T.copy()
        yield array[:, :-1]


def test_an_array_of_another_shape_is_refused_or_an_error_or_without_effect(saved, tmp_path):
    """None of them is read beyond its end, which could end the process."""
    members, rows, before = saved
    refused = 0
    for name in [name for name in members if name.endswith(".npy")]:
        array = np.load(BytesIO(members[name]))
        for other in reshapings(array):
            if other.shape == array.shape:
                continue
            stream = BytesIO()
            np.lib.format.write_array(stream, other, allow_pickle=False)
            schema = members["schema.json"].replace(
                name.encode(), named(stream.getvalue()).encode()
            )
            changed = {
                **members,
                "schema.json": schema,
                named(stream.getvalue()): stream.getvalue(),
            }
            if is_refused(changed, tmp_path / "x"):
                refused += 1
                continue
            try:
                after = load(tmp_path / "x").explain(rows)
            except ValueError:  # of scikit-learn
                continue
            assert after.points.tobytes() == before.points.tobytes()
    assert refused > 20


OURS = ("weights", "origins", "alpha", "spread", "lo", "low", "cluster_centers_", "axes", "means",
        "round_trip_error", "extremes", "points", "seen", "options")  # fmt: skip


def spoiled(value):
    def change(array):
        array = array.copy()
        array.reshape(-1)[:1] = value
        return array

    return change


@pytest.mark.parametrize("change", [
    spoiled(np.nan), lambda a: a.astype("<c16"), lambda a: a.astype(">f8"), lambda a: a[:-1],
    lambda a: a[..., None],
], ids=["nan", "complex", "swapped", "short", "deep"])  # fmt: skip
@pytest.mark.parametrize("name", OURS)
def test_arrays_of_the_geometry_have_their_shape_and_type_and_no_nan(saved, name, change, tmp_path):
    for count in range(6):
        old = []
        with_array(saved[0], name, count, lambda array, old=old: old.append(array) or array)
        if old and old[0].size:  # numbers have no levels, hence empty options
            changed = with_array(saved[0], name, count, change)
            assert is_refused(changed, tmp_path / "x")


@pytest.mark.parametrize("value", [-1, 2**40, 1])
@pytest.mark.parametrize("name", ["ranking", "counts"])
def test_positions_and_counts_are_refused_if_they_cannot_be(saved, name, value, tmp_path):
    changed = with_array(saved[0], name, 0, spoiled(value))
    if changed is not None:
        first = []
        with_array(saved[0], name, 0, lambda array: first.append(array[0]) or array)
        assert first == [value] or is_refused(changed, tmp_path / "x")


@pytest.mark.parametrize(("name", "value"), [
    ("kind", '"other"'), ("delta", "-1.0"), ("delta", "NaN"), ("margin", "2.0"), ("named", "[1]"),
    ("names", "null"), ("n_features_in_", "3"), ("n_features_in_", "99"), ("contraction", "{}"),
    ("columns", "null"), ("sources", "null"), ("arrays", "null"), ("sample", "3"),
    ("explainer", '"Other"'), ("explainer", '"os"'), ("learned", "7"), ("indicator", "true"),
    ("ranks_equally", "3"), ("_n_features_outs", "1"), ("centers", '"x"'), ("library", "{}"),
])  # fmt: skip
def test_other_values_are_refused(saved, name, value, tmp_path):
    members = saved[0]
    node = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode"}
    count = len(list(nodes_of(json.loads(members["schema.json"]), name)))
    for i in range(count):
        tree = json.loads(members["schema.json"])
        found, holder = list(nodes_of(tree, name))[i]
        was_unused = found.get("content") == "null"
        holder[name] = {**node, "content": value}
        refused = is_refused(with_tree(members, tree), tmp_path / "x")
        # The options that the user gave are for the next fit, and scalers do not fit k-means.
        assert refused or was_unused or name in ("margin", "delta", "names", "n_features_in_")
    if name in ("delta", "margin", "explainer", "sources", "arrays"):
        assert count > 0


@pytest.mark.parametrize(("name", "change"), [
    ("_n_features_outs", lambda codes: [1] * len(codes)),
    ("_default_to_infrequent_mappings", lambda maps: [[99, 0, 1]]),
    ("_default_to_infrequent_mappings", lambda maps: [[-1, 0, 1]]),
    ("_default_to_infrequent_mappings", lambda maps: [[0]]),
    ("_drop_idx_after_grouping", lambda dropped: [9]),
    ("_drop_idx_after_grouping", lambda dropped: [-1]),
])  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"drop": "first"}, {"min_frequency": 10}])
def test_codes_beyond_the_columns_of_an_encoder_are_refused(options, name, change, tmp_path):
    """scipy would write them beyond the end of the row."""
    town = MIXED.town.where(MIXED.index > 5, "rare").to_frame()
    encoder = OneHotEncoder(**options).fit(town)
    if getattr(encoder, name, None) is None:
        return
    changed = change(getattr(encoder, name))
    as_arrays = name == "_default_to_infrequent_mappings"
    vars(encoder)[name] = [np.array(c) for c in changed] if as_arrays else changed
    if name.startswith("_drop"):
        vars(encoder)[name] = np.array(changed, dtype=object)
    save(encoder, tmp_path / "x")
    with pytest.raises(SavingError, match="OneHotEncoder does not fit"):
        load(tmp_path / "x")


@pytest.mark.parametrize("levels", [
    [5.0, 1.0], [np.nan, 1.0], np.array([5, 1], dtype=object), np.array(["a", 5, 1], dtype=object),
    np.array([Decimal(5), Decimal(1)], dtype=object),
])  # fmt: skip
def test_numbers_that_bisection_would_not_find_are_refused_as_levels(levels, tmp_path):
    encoder = OneHotEncoder().fit([[1.0], [5.0]])
    encoder.categories_, encoder._n_features_outs = [np.asarray(levels)], [len(levels)]
    save(encoder, tmp_path / "x")
    with pytest.raises(SavingError, match="OneHotEncoder does not fit"):
        load(tmp_path / "x")


def test_groups_of_levels_that_are_not_in_use_do_not_count(tmp_path):
    encoder = OneHotEncoder().fit([[1.0], [5.0]])
    encoder._default_to_infrequent_mappings, encoder._n_features_outs = [np.array([0, 0])], [1]
    save(encoder, tmp_path / "x")
    with pytest.raises(SavingError, match="OneHotEncoder does not fit"):
        load(tmp_path / "x")


@pytest.mark.parametrize("name", ["predict", "fit", "_distance_formula", "_validate_params"])
def test_nothing_takes_the_place_of_a_method(name, tmp_path):
    model = SHARK(3, n_init=2, random_state=0).fit(X)
    vars(model)[name] = np.exp
    save(model, tmp_path / "x")
    with pytest.raises(SavingError, match=rf"SHARK\.{name} does not fit"):
        load(tmp_path / "x")


@pytest.mark.parametrize("attribute", ["cluster_centers_", "feature_weights_", "n_features_in_"])
@pytest.mark.parametrize("model", [kmeans(), SHARK(3, n_init=2, random_state=0)])
def test_centroids_of_another_width_than_the_rows_are_refused(model, attribute, tmp_path):
    model = model.fit(X)
    if hasattr(model, attribute):
        value = vars(model)[attribute]
        vars(model)[attribute] = value + 1 if attribute == "n_features_in_" else value[..., :-1]
        save(model, tmp_path / "x")
        with pytest.raises(SavingError, match="does not fit the rest"):
            load(tmp_path / "x")


@pytest.mark.parametrize("step", [
    OneHotEncoder(sparse_output=False), OrdinalEncoder(),
    KBinsDiscretizer(8, quantile_method="averaged_inverted_cdf", encode="onehot-dense"),
    ColumnTransformer([("n", StandardScaler(), np.arange(9))]),
], ids=["one-hot", "ordinal", "bins", "columns"])  # fmt: skip
def test_more_levels_or_columns_than_parts_are_neither_saved_nor_loaded(
    step, tmp_path, monkeypatch
):
    """They are followed one by one, and a small file can hold millions of equal ones."""
    rows = RNG.normal(size=(20, 9))[:, : 9 if isinstance(step, ColumnTransformer) else 1]
    voice = VoICE(make_pipeline(step, kmeans())).fit(rows)
    voice.save(tmp_path / "x")
    load(tmp_path / "x")
    monkeypatch.setattr("voicecf.saving.sound.MOST_NODES", 8)
    for call in (lambda: voice.save(tmp_path / "y"), lambda: load(tmp_path / "x")):
        with pytest.raises(SavingError, match=r"\d+ levels, bins or columns; at most 8"):
            call()


@pytest.mark.parametrize("width", [10**9, 10**12, -1])
def test_nothing_is_made_as_wide_as_a_model_only_says_that_it_is(width, tmp_path):
    model = kmeans().fit(X)
    model.n_features_in_ = width
    save(model, tmp_path / "x")
    with pytest.raises(SavingError, match="does not fit the rest"):
        load(tmp_path / "x")


def test_an_encoder_has_no_more_columns_than_levels(tmp_path):
    encoder = OneHotEncoder().fit([[1.0], [5.0]])
    encoder._n_features_outs = [10**9]
    save(encoder, tmp_path / "x")
    with pytest.raises(SavingError, match="OneHotEncoder does not fit"):
        load(tmp_path / "x")


def test_no_more_threads_are_started_than_there_are_cores(tmp_path):
    model = kmeans().fit(X)
    model._n_threads = 10**9
    save(model, tmp_path / "x")
    loaded = load(tmp_path / "x")
    assert 1 <= loaded._n_threads < 10**4
    assert (loaded.predict(X) == kmeans().fit(X).predict(X)).all()
