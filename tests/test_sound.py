"""A file whose parts do not fit together is refused, before anything is computed with it."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import CFCLUST, SHARK, VoICE
from voicecf.errors import SavingError
from voicecf.saving import load, save

RNG = np.random.default_rng(1)
X = RNG.normal(size=(60, 4)) + np.arange(60)[:, None] % 3
MIXED = pd.DataFrame(X, columns=list("abcd")).assign(town=np.array(["x", "y", "z"])[RNG.permuted(
    np.arange(60) % 3)])  # fmt: skip


def kmeans() -> KMeans:
    return KMeans(3, n_init=2, random_state=0)


def mixed():
    columns = ColumnTransformer([
        ("n", StandardScaler(), list("abcd")),
        ("t", OneHotEncoder(sparse_output=False), ["town"]),
    ])  # fmt: skip
    return make_pipeline(columns, PCA(3), kmeans())


CASES = {
    "kmeans": (lambda: VoICE(kmeans()).fit(X), X[:5]),
    "shark": (lambda: VoICE(SHARK(3, n_init=2, random_state=0)).fit(X), X[:5]),
    "pairwise": (lambda: CFCLUST(kmeans()).fit(X), X[:5]),
    "pca": (lambda: VoICE(make_pipeline(StandardScaler(), PCA(2), kmeans())).fit(X), X[:5]),
    "mixed": (lambda: VoICE(mixed()).fit(MIXED), MIXED[:5]),
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


def refused_or_equal(members, rows, before, path) -> bool:
    """Tell whether a file is refused; if it is not, its answers are the same."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    try:
        loaded = load(path)
    except SavingError:
        return True
    after = loaded.explain(rows)
    assert after.points.tobytes() == before.points.tobytes()
    assert after.cost.tobytes() == before.cost.tobytes()
    return False


def with_array(members, name, array):
    stream = BytesIO()
    np.lib.format.write_array(stream, array, version=(1, 0), allow_pickle=False)
    return {**members, name: stream.getvalue()}


def reshapings(array):
    """Arrays of the same numbers in other shapes, and of other lengths."""
    yield array[..., None]
    yield array[None]
    if array.ndim:
        yield array[:-1]
        yield np.concatenate([array, array[-1:]])
        yield np.zeros((0, *array.shape[1:]), array.dtype)
        yield np.tile(array, 50)
    if array.ndim > 1:
        yield array.T.copy()
        yield array.ravel()
        yield array[:, :-1]


def test_arrays_of_other_shapes_are_refused_or_without_effect(saved, tmp_path):
    members, rows, before = saved
    refused = 0
    for name in members.keys() - {"explainer.json"}:
        array = np.load(BytesIO(members[name]))
        for other in reshapings(array):
            if other.shape != array.shape:
                changed = with_array(members, name, other)
                refused += refused_or_equal(changed, rows, before, tmp_path / "x")
    assert refused > 20


def state_of(tree, name):
    """Yield every place in a tree that has an attribute of a name."""
    if isinstance(tree, list):
        for part in tree:
            yield from state_of(part, name)
    elif isinstance(tree, dict):
        if name in tree.get("state", {}):
            yield tree["state"]
        for part in tree.values():
            yield from state_of(part, name)


def spoiled(array, value):
    array = array.copy()
    array.reshape(-1)[0] = value
    return array


@pytest.mark.parametrize("name", [
    "centers", "weights", "weights_", "origins_", "alpha_", "spread_", "lo_", "cluster_centers_",
    "round_trip_error", "options", "matrix", "shift",
])  # fmt: skip
def test_no_number_of_the_geometry_may_be_nan(saved, name, tmp_path):
    members, rows, before = saved
    tree = json.loads(members["explainer.json"])
    for state in list(state_of(tree, name)):
        file = state[name]["file"]
        array = np.load(BytesIO(members[file]))
        if array.size:
            changed = with_array(members, file, spoiled(array, np.nan))
            assert refused_or_equal(changed, rows, before, tmp_path / "x")


@pytest.mark.parametrize("value", [-1, 2**40, 1])
@pytest.mark.parametrize("name", ["places", "ranked_", "order_"])
def test_positions_are_a_permutation(saved, name, value, tmp_path):
    members, rows, before = saved
    for state in list(state_of(json.loads(members["explainer.json"]), name)):
        file = state[name]["file"]
        array = np.load(BytesIO(members[file]))
        if array.reshape(-1)[0] != value:
            changed = with_array(members, file, spoiled(array, value))
            assert refused_or_equal(changed, rows, before, tmp_path / "x")


@pytest.mark.parametrize("dtype", ["<f4", "<i8", ">f8", "<c16"])
@pytest.mark.parametrize(
    "name", ["centers", "weights", "alpha", "origins", "round_trip_error", "places"]
)
def test_arrays_of_other_types_are_refused(saved, name, dtype, tmp_path):
    members, rows, before = saved
    for state in list(state_of(json.loads(members["explainer.json"]), name)):
        file = state[name]["file"]
        array = np.load(BytesIO(members[file]))
        if array.dtype != dtype:
            changed = with_array(members, file, array.astype(dtype))
            assert refused_or_equal(changed, rows, before, tmp_path / "x")


@pytest.mark.parametrize(("name", "value"), [
    ("trusted", 3), ("eps", -1.0), ("formula", "other"), ("kind", "other"), ("delta", -1.0),
    ("margin", 2.0), ("_n_threads", 10**9), ("_n_features_outs", [1]), ("names", []),
    ("source", 99), ("source", -1), ("columns", []), ("box", []), ("levels", []),
    ("clustering", None), ("space", None), ("ends", []), ("coordinate_names", []),
])  # fmt: skip
def test_other_values_are_refused(saved, name, value, tmp_path):
    members, rows, before = saved
    count = len(list(state_of(json.loads(members["explainer.json"]), name)))
    for i in range(count):
        tree = json.loads(members["explainer.json"])
        state = list(state_of(tree, name))[i]
        if not _is_meant(name, state):
            continue
        state[name] = value
        changed = {**members, "explainer.json": json.dumps(tree).encode()}
        assert refused_or_equal(changed, rows, before, tmp_path / "x")


def _is_meant(name, state):
    """Tell the attribute that is meant from one of another class by the same name."""
    if name == "levels":
        return state.get("kind") == "category" and "places" in state
    return True


@pytest.mark.parametrize("name", ["explain", "predict", "_question", "n_features_in_", "region"])
def test_nothing_takes_the_place_of_a_method_or_a_cache(saved, name, tmp_path):
    members, rows, before = saved
    tree = json.loads(members["explainer.json"])
    tree["root"]["state"][name] = {"is": "dict", "items": []}
    changed = {**members, "explainer.json": json.dumps(tree).encode()}
    refused = refused_or_equal(changed, rows, before, tmp_path / "x")
    assert refused or name in ("region", "_question")  # which the baseline does not have


def test_what_does_not_fit_is_not_saved_either(tmp_path):
    voice = VoICE(kmeans()).fit(X)
    voice.learned_ = replace(voice.learned_, alpha=voice.alpha_[:-1])
    with pytest.raises(SavingError, match=r"Learned\.alpha does not fit the rest"):
        save(voice, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
