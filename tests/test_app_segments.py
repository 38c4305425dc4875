from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from app_tables import fitted, people, prepared
from voicecf import VoICE
from voicecf.app.data.preparing import Method, PreparingError
from voicecf.app.segments.segments import (
    blocks_of,
    given_names,
    profile_table,
    suggest_k,
    usual_names,
)


def test_three_groups_are_suggested_as_three() -> None:
    found = suggest_k(prepared())
    assert found.k == 3
    assert "3 are about as far apart as any" in found.reason


def test_two_different_rows_make_two_segments() -> None:
    frame = pd.DataFrame({"a": [1.5, 1.5, 9.5, 9.5]})
    assert suggest_k(prepared(frame)).k == 2


def test_more_segments_than_rows_get_a_sentence() -> None:
    with pytest.raises(PreparingError, match="only 2 different rows"):
        fitted(pd.DataFrame({"a": [1.5, 1.5, 9.5, 9.5]}), k=3)


def test_profiles_are_medians_and_most_frequent_levels() -> None:
    segments, frame = fitted(), people()
    table = profile_table(segments, usual_names(3))
    for t, name in enumerate(usual_names(3)):
        members = frame[segments.labels == t]
        median = members["age"].median()
        assert float(table.loc["age", name]) == median
        assert table.loc["job", name].startswith(members["job"].mode()[0])
    assert sum(profile.size for profile in segments.profiles) == len(frame)


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("margin", [0, 5, 40])
def test_a_margin_is_the_contraction_of_a_fresh_explainer(method: Method, margin: int) -> None:
    segments = fitted(method=method)
    frame = segments.prepared.frame
    fresh = VoICE(
        segments.model, contraction=(100 - margin) / 100, ranking=segments.voice.ranking
    ).fit(frame)
    ours = segments.firmly(margin).explain(frame.head(20), target="each", objective="prefix")
    theirs = fresh.explain(frame.head(20), target="each", objective="prefix")
    assert np.array_equal(ours.points, theirs.points, equal_nan=True)
    assert np.array_equal(ours.alpha, theirs.alpha)


def test_blocks_are_the_coordinates_of_each_column() -> None:
    segments = fitted()
    width = segments.model[-1].cluster_centers_.shape[1]
    places = [p for some in blocks_of(segments.prepared, segments.model).values() for p in some]
    assert sorted(places) == list(range(width))
    names = segments.model[0].get_feature_names_out()
    for name, some in blocks_of(segments.prepared, segments.model).items():
        assert all(f"__{name}" in names[p] for p in some)


def test_concentrated_weights_are_warned_about() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"tight": np.repeat([0.0, 50.0], 60) + rng.normal(0, 0.01, 120)})
    for i in range(5):
        frame[f"noise {i}"] = rng.normal(size=120)
    told = " ".join(fitted(frame, k=2, method=Method.SHARK).warnings)
    assert "“tight” alone carries" in told
    assert fitted(frame, k=2).warnings == ()


def test_names_are_the_users_unless_empty_or_taken() -> None:
    assert given_names(3, ["Young", "", "Young"]) == ("Young", "Segment B", "Segment C")
    assert given_names(2, ["  a \n b  "]) == ("a b", "Segment B")
