"""What `Counterfactuals.certificate` returns proves an answer, or that there is none."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import CFCLUST, SHARK, Status, VoICE
from voicecf.errors import OptionError

WINES = load_wine(as_frame=True).data
RULES = [
    {},
    {"plausible": None},
    {"plausible": 0.9, "immutable": ["ash", "hue"]},
    {"plausible": 0.5, "bounds": {"alcohol": ("-0.4", "+0.4")}, "increase_only": ["proline"]},
    {"constraints": "alcohol + ash <= 15.2", "costs": {"hue": 4.0}},
    {"objective": "prefix"},
]


def is_proven(voice, x, z, region, multipliers, costs) -> bool:
    """The conditions of Karush, Kuhn and Tucker, written out."""
    slack = region.offsets - region.normals @ (z - region.origin)
    uphill = costs * (z - x) + region.normals.T @ multipliers
    low, high = z <= region.lo, z >= region.hi
    size = 1e-9 * (1.0 + np.abs(costs * (z - x)).max() + np.abs(multipliers).max())
    return bool(
        slack.min() > -1e-9
        and region.within(region.lo - 1e-12, region.hi + 1e-12).contains(z, 1e-9)[0]
        and (multipliers >= 0.0).all()
        and np.abs(multipliers * slack).max() < size
        and (uphill[~low] < size).all()
        and (uphill[~high] > -size).all()
    )


@pytest.mark.parametrize("words", RULES, ids=str)
@pytest.mark.parametrize("model", [KMeans(3, n_init=3, random_state=0), SHARK(3, random_state=0)])
def test_the_certificate_proves_every_answer(model, words):
    voice = VoICE(make_pipeline(StandardScaler(), model)).fit(WINES)
    x = voice.space_.read(WINES[::9]).points
    cf = voice.explain(WINES[::9], "each", **words)
    costs = voice.weights_ * np.array(
        [4.0 if "costs" in words and c == "hue" else 1.0 for c in WINES]
    )
    proven = 0
    for i in np.flatnonzero(cf.status == Status.OPTIMAL):
        region, multipliers = cf.certificate(i)
        proven += is_proven(
            voice, x[cf.row[i]], cf.points[i], region, multipliers, costs + voice.delta
        )
        # It can fail: another point of the region is not the optimum.
        inside = 0.9 * cf.points[i] + 0.1 * voice.learned_.origins[cf.target[i]]
        inside = np.where(region.lo == region.hi, cf.points[i], inside)
        assert not is_proven(voice, x[cf.row[i]], inside, region, multipliers, costs + voice.delta)
    assert proven == (cf.status == Status.OPTIMAL).sum() > 10


def test_the_certificate_of_no_answer_is_a_combination_that_is_positive_in_the_whole_box():
    voice = VoICE(make_pipeline(StandardScaler(), KMeans(3, n_init=3, random_state=0))).fit(WINES)
    cf = voice.explain(WINES, "each", mutable=["ash", "hue", "alcohol"], plausible=0.9)
    none = np.flatnonzero(cf.status == Status.INFEASIBLE)
    assert len(none) > 20
    for i in none[:60]:
        region, y = cf.certificate(i)
        pull = region.normals.T @ y
        least = np.minimum(pull * (region.lo - region.origin), pull * (region.hi - region.origin))
        assert (y >= 0.0).all()
        assert least.sum() - y @ region.offsets > 0.0


def test_a_search_has_no_certificate_and_says_so():
    voice = VoICE(KMeans(3, n_init=3, random_state=0)).fit(WINES.round().astype(int))
    with pytest.raises(OptionError, match="the search is the proof"):
        voice.explain(WINES[:1].round().astype(int), 1).certificate(0)
    with pytest.raises(OptionError, match="only answers of VoICE"):
        CFCLUST(KMeans(3, n_init=1, random_state=0)).fit(WINES).explain(WINES[:1]).certificate(0)
