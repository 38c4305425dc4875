"""The user's model: copied, never touched, and not believed where it contradicts itself."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.validation import NotFittedError, check_is_fitted

from voicecf import CFCLUST, SHARK, VoICE, streaming
from voicecf.errors import ModelError
from voicecf.geometry.centroids import Centroids

WINE = load_wine(as_frame=True).data


def pipeline(k: int = 3):
    return make_pipeline(StandardScaler(), KMeans(k, n_init=2, random_state=0))


@pytest.mark.parametrize("explainer", [VoICE, CFCLUST])
@pytest.mark.parametrize("model", [pipeline(), KMeans(3, n_init=2, random_state=0)])
def test_an_unfitted_model_stays_unfitted(explainer, model):
    voice = explainer(model).fit(WINE)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert voice.model is model
    np.testing.assert_array_equal(voice.model_.predict(WINE), voice.predict(WINE))


def test_a_fitted_model_keeps_its_bits():
    model = pipeline().fit(WINE)
    before = pickle.dumps(model)
    VoICE(model).fit(WINE.iloc[:100]).explain(WINE)
    assert pickle.dumps(model) == before


def test_the_explainers_model_is_the_one_that_fitting_by_hand_gives():
    by_hand, voice = pipeline().fit(WINE), VoICE(pipeline()).fit(WINE)
    np.testing.assert_array_equal(by_hand[-1].cluster_centers_, voice.model_[-1].cluster_centers_)


def test_only_the_exact_class_is_trusted_to_compute_distances_as_it_says():
    class Own(SHARK):
        pass

    X = WINE.to_numpy()
    plain, own = (kind(3, n_init=2, random_state=0).fit(X) for kind in (SHARK, Own))
    assert Centroids.of(plain).trusted
    assert not Centroids.of(own).trusted
    assert Centroids.of(plain).arithmetic == Centroids.of(own).arithmetic
    assert Centroids.of(plain).arithmetic.formula == "direct"


def test_every_fit_fits_again():
    model, seen = pipeline(), []
    for k in (2, 3, 5):
        model.set_params(kmeans__n_clusters=k)
        seen.append(VoICE(model).fit(WINE).partition_.n_clusters)
    assert seen == [2, 3, 5]


def test_one_explainer_fitted_twice_knows_the_second_data():
    voice = VoICE(pipeline()).fit(WINE).fit(WINE.iloc[:90])
    fresh = VoICE(pipeline()).fit(WINE.iloc[:90])
    np.testing.assert_array_equal(
        voice.explain(WINE, target=1).points, fresh.explain(WINE, target=1).points
    )


def test_refitting_the_original_changes_no_answer():
    model = pipeline().fit(WINE)
    voice = VoICE(model).fit(WINE)
    before = voice.explain(WINE, target="each")
    model.fit(WINE * 3.0 + 1.0)
    model[0].mean_[:] = 0.0
    after = voice.explain(WINE, target="each")
    np.testing.assert_array_equal(before.points, after.points)
    np.testing.assert_array_equal(voice.model_.predict(after.to_frame()), after.target)


@pytest.mark.parametrize("model", [SHARK(3, n_init=2, random_state=0), pipeline()])
def test_a_stream_leaves_the_original_alone_too(model):
    voice = streaming.fit(VoICE(model), [WINE.iloc[:80], WINE.iloc[80:]])
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    assert voice.explain(WINE).feasible.all()


def columns(*names):
    return make_column_transformer((StandardScaler(), list(names)))


def changed(model, **parameters):
    return model.fit(WINE).set_params(**parameters)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (changed(KMeans(3, n_init=2), n_clusters=5), "n_clusters=5 but learned 3"),
        (changed(pipeline(), kmeans__n_clusters=2), "n_clusters=2 but learned 3"),
        (changed(SHARK(3, n_init=2, random_state=0), n_clusters=4), "n_clusters=4 but learned 3"),
        (changed(pipeline(), standardscaler=MinMaxScaler()), "'standardscaler'.*not fitted"),
        (
            changed(
                make_pipeline(columns("ash", "hue"), KMeans(2, n_init=2)),
                columntransformer__transformers=[("standardscaler", StandardScaler(), ["ash"])],
            ),
            "other columns than",
        ),
        (
            changed(
                make_pipeline(StandardScaler(), PCA(3), KMeans(2, n_init=2)), pca__n_components=2
            ),
            "n_components=2 but learned 3",
        ),
    ],
)
def test_a_model_that_was_changed_after_it_was_fitted_is_refused_in_words(model, words):
    with pytest.raises(ModelError, match=f"(?s){words}.*Fit the model again"):
        VoICE(model).fit(WINE)


def test_columns_chosen_by_a_function_a_slice_or_a_mask_are_no_contradiction():
    mask = np.arange(WINE.shape[1]) < 4
    for chosen in (slice("alcohol", "ash"), mask, lambda frame: list(frame)[:3], [0, 1, 5]):
        model = make_pipeline(
            make_column_transformer((StandardScaler(), chosen)), KMeans(2, n_init=2)
        )
        assert VoICE(model.fit(WINE)).fit(WINE).explain(WINE).feasible.all()


def test_a_model_fitted_on_other_columns_is_refused_in_words():
    with pytest.raises(ValueError, match="lacks 'ash'"):
        VoICE(pipeline().fit(WINE)).fit(WINE.drop(columns="ash"))
    with pytest.raises(ValueError, match="4 columns; the model was fitted on 13"):
        VoICE(KMeans(3, n_init=2).fit(WINE.to_numpy())).fit(WINE.to_numpy()[:, :4])


def test_a_model_of_ones_own_is_copied():
    class Own:
        cluster_centers_ = np.array([[0.0, 0.0], [4.0, 0.0]])

    own = Own()
    own.cluster_centers_ = np.array([[0.0, 0.0], [4.0, 0.0]])
    voice = VoICE(own).fit(pd.DataFrame({"a": [0.0, 4.0], "b": [0.0, 1.0]}))
    own.cluster_centers_ += 100.0
    assert voice.predict([[3.0, 0.0]]).tolist() == [1]
