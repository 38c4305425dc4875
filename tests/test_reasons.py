"""Why a row has no answer: conflicts are judged by HiGHS, remedies by applying them."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tables import NAMES, frame_of
from voicecf import CFCLUST, Status, VoICE
from voicecf.rules.edits import readable

WIDE = (("student", 0.4), ("german_credit", 0.4))
FOUND = (Status.OPTIMAL, Status.STOPPED, Status.ALREADY)


@cache
def fitted(name: str, contraction="retain") -> tuple[VoICE, pd.DataFrame]:
    frame = frame_of(name)
    text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    numbers = [c for c in frame if c not in text]
    steps = [("numbers", StandardScaler(), numbers)]
    if text:
        steps.append(("text", OneHotEncoder(sparse_output=False), text))
    model = make_pipeline(ColumnTransformer(steps), KMeans(4, n_init=2, random_state=0))
    return VoICE(model, contraction=contraction).fit(frame), frame


def random_words(frame: pd.DataFrame, row: int, seed: int) -> dict:
    """Rules that leave little room; a row's own values are always within its bounds."""
    rng = np.random.default_rng(seed)
    columns = list(rng.permutation(list(frame)))
    free = max(1, len(columns) // 4)
    words: dict = {"immutable": columns[free:]}
    bounds, levels, forbidden = {}, {}, {}
    for name in columns[:free]:
        own = frame[name].iloc[row]
        if pd.api.types.is_numeric_dtype(frame[name]):
            spread = float(frame[name].std())
            if rng.random() < 0.5:
                bounds[name] = (float(own - rng.random() * spread), float(own + rng.random()))
        elif rng.random() < 0.5:
            levels[name] = [str(frame[name].iloc[rng.integers(len(frame))])]
        else:
            others = [level for level in frame[name].unique() if level != own]
            forbidden[name] = [(own, level) for level in others[:2]]
    numeric = [c for c in columns[:free] if pd.api.types.is_numeric_dtype(frame[c])]
    words |= {"bounds": bounds, "levels": levels, "forbidden": forbidden}
    if numeric and rng.random() < 0.5:
        words["increase_only" if rng.random() < 0.5 else "decrease_only"] = numeric[:1]
    if rng.random() < 0.5:
        words["max_changes"] = int(rng.integers(1, 3))
    return words


@cache
def infeasible(name: str, contraction="retain") -> list[tuple]:
    """Random rows that random rules leave no answer, and the reasons."""
    voice, frame = fitted(name, contraction)
    found = []
    for seed in range(4):
        row = (7 * seed) % len(frame)
        words = random_words(frame, row, seed)
        cf = voice.explain(frame.iloc[[row]], "each", **words)
        for i in np.flatnonzero(cf.status == Status.INFEASIBLE)[:1]:
            found.append((voice, frame.iloc[[row]], words, cf.reason(int(i))))
    return found


class Judge:
    """The same question to HiGHS, built from the fitted steps, with only some members in force."""

    def __init__(self, voice: VoICE, frame: pd.DataFrame, row: pd.DataFrame, words, target: int):
        self.voice, self.frame, self.row, self.words, self.target = voice, frame, row, words, target
        columns, model = voice.model_[0], voice.model_[-1]
        self.own = np.asarray(voice.model_[:-1].transform(row))[0]
        self.centers = model.cluster_centers_
        scaler = columns.named_transformers_["numbers"]
        self.places: dict = {}
        self.scale: dict = {}
        for i, name in enumerate(columns.transformers_[0][2]):
            self.places[name], self.scale[name] = [i], (scaler.mean_[i], scaler.scale_[i])
        at, self.levels = len(self.places), {}
        if "text" in columns.named_transformers_:
            encoder = columns.named_transformers_["text"]
            for name, levels in zip(columns.transformers_[1][2], encoder.categories_, strict=True):
                self.places[name] = list(range(at, at + len(levels)))
                self.levels[name] = list(levels)
                at += len(levels)

    def feasible(self, members) -> bool:
        has = {(m.kind, m.column, m.cluster) for m in members}
        kinds = {m.kind for m in members}
        forbidden = {m.text for m in members if m.kind == "forbidden"}
        d, names = len(self.own), list(self.places)
        size = d + 2 * len(names)  # coordinates, whole values, whether a column changes
        lo, hi, whole = np.full(size, -np.inf), np.full(size, np.inf), np.zeros(size)
        lo[d + len(names) :], hi[d + len(names) :], whole[d + len(names) :] = 0, 1, 1
        rows, upper = [np.zeros(size)], [0.0]

        def at_most(entries, limit):
            line = np.zeros(size)
            for i, v in entries:
                line[i] += v
            rows.append(line)
            upper.append(limit)

        alpha = self.voice.alpha_[self.target] if "contraction" in kinds else 1.0
        mine = self.centers[self.target]
        for rival in (m.cluster for m in members if m.kind == "cluster"):
            g = self.centers[rival] - mine
            at_most(enumerate(g), alpha * 0.5 * g @ g + g @ mine)
        for c, name in enumerate(names):
            places, own = self.places[name], self.row[name].iloc[0]
            changes = d + len(names) + c
            if name in self.levels:
                lo[places], hi[places], whole[places] = 0, 1, 1
                at_most([(p, 1) for p in places], 1)
                at_most([(p, -1) for p in places], -1)
                levels = self.levels[name]
                at_most([(places[levels.index(own)], -1), (changes, -1)], -1)
                for p, level in zip(places, levels, strict=True):
                    listed = self.words["levels"].get(name)
                    out = ("levels", name, None) in has and level not in listed
                    out |= f'{name} may not change from "{own}" to "{level}"' in forbidden
                    if level != own and out:
                        hi[p] = 0
            else:
                self._number(c, name, has, lo, hi, whole, at_most)
                p = places[0]
                if "max_changes" in kinds:
                    at_most([(p, 1), (changes, -1e3)], self.own[p])
                    at_most([(p, -1), (changes, -1e3)], -self.own[p])
            if ("immutable", name, None) in has:
                lo[places] = hi[places] = self.own[places]
        if "max_changes" in kinds:
            at_most([(d + len(names) + c, 1) for c in range(len(names))], self.words["max_changes"])
        found = milp(
            np.zeros(size), integrality=whole, bounds=Bounds(lo, hi),
            constraints=LinearConstraint(np.array(rows), -np.inf, np.array(upper)),
        )  # fmt: skip
        assert found.status in (0, 2), found.message
        return found.status == 0

    def _number(self, c, name, has, lo, hi, whole, at_most) -> None:
        mean, scale = self.scale[name]
        low, high = -np.inf, np.inf
        said = self.words["bounds"].get(name)
        data = self.frame[name]
        locked = name in self.words["immutable"]  # it keeps to the data also when it is unlocked
        if said is None and (locked or ("range", name, None) in has):
            low, high = data.min(), data.max()
        if ("low", name, None) in has:
            low = said[0]
        if ("high", name, None) in has:
            high = said[1]
        own = self.row[name].iloc[0]
        if ("direction", name, None) in has:
            low = max(low, own) if name in self.words.get("increase_only", ()) else low
            high = min(high, own) if name in self.words.get("decrease_only", ()) else high
        p, k = self.places[name][0], len(self.own) + c
        lo[p], hi[p] = (low - mean) / scale, (high - mean) / scale
        if ("step", name, None) in has or (locked and data.dtype.kind == "i"):
            whole[k] = 1
            at_most([(p, scale), (k, -1)], -mean)
            at_most([(p, -scale), (k, 1)], mean)


@pytest.mark.parametrize("name", NAMES)
def test_a_conflict_cannot_be_satisfied_and_without_any_member_it_can(name):
    judged = 0
    for voice, row, words, reason in infeasible(name):
        assert reason.conflict
        judge = Judge(voice, frame_of(name), row, words, reason.target)
        assert not judge.feasible(reason.conflict), reason.text
        for member in reason.conflict:
            rest = [m for m in reason.conflict if m is not member]
            assert judge.feasible(rest), (member.text, reason.text)
        judged += 1
    assert judged > 1


# The tables with the most columns are asked with one contraction, and in the sweep with both.
CONTRACTED = [
    pytest.param(
        name,
        contraction,
        marks=pytest.mark.slow if (name, contraction) in WIDE else [],
    )
    for name in NAMES
    for contraction in ("retain", 0.4)
]


@pytest.mark.parametrize(("name", "contraction"), CONTRACTED)
def test_every_relaxation_makes_the_row_feasible_at_its_cost(name, contraction):
    offered = 0
    for voice, row, words, reason in infeasible(name, contraction):
        target = reason.target
        costs = [way.cost for way in reason.relaxations]
        assert costs == sorted(costs)
        for way in reason.relaxations:
            explainer = voice
            if way.contraction is not None:
                explainer = VoICE(voice.model_, contraction=way.contraction).fit(frame_of(name))
            asked = words if way.words is None else way.words
            answer = explainer.explain(row, target, **asked)
            assert answer.status[0] in FOUND, way.text
            assert answer.cost[0] == way.cost
            np.testing.assert_array_equal(voice.model_.predict(answer.to_frame()), target)
            offered += 1
    assert offered > 1


# Each kind of rule, by itself.


def people() -> pd.DataFrame:
    """Three groups: students, clerks and retired, the more apart the older and richer."""
    rng = np.random.default_rng(5)
    n = 60
    group = np.arange(n) % 3
    return pd.DataFrame(
        {
            "age": (20 + 22 * group + rng.normal(0, 3, n)).round().astype(int),
            "income": 1000.0 * (5 + 20 * group) + rng.normal(0, 1500, n),
            "job": np.array(["student", "clerk", "retired"])[group],
        }
    )


@cache
def voice_of_people(**options) -> VoICE:
    columns = ColumnTransformer(
        [
            ("numbers", StandardScaler(), ["age", "income"]),
            ("job", OneHotEncoder(sparse_output=False), ["job"]),
        ]
    )
    model = make_pipeline(columns, KMeans(3, n_init=3, random_state=0))
    return VoICE(model, **options).fit(people())


def young_and_old(**options):
    """The explainer, a student, and the cluster of the retired."""
    voice, frame = voice_of_people(**options), people()
    labels = voice.predict(frame)
    return voice, frame.iloc[[0]], int(labels[2])


CASES = {
    "immutable": ({"immutable": ["income", "job"]}, "age up to"),
    "direction": ({"decrease_only": ["age", "income"], "immutable": "job"}, None),
    "high": ({"bounds": {"income": (0, 20_000), "age": (0, 30)}, "immutable": "job"}, "up to"),
    "relative": ({"bounds": {"income": (..., "+10%")}, "immutable": ["age", "job"]}, "up to"),
    "levels": ({"levels": {"job": "clerk"}, "bounds": {"income": (0, 24e3), "age": (0, 41)}}, None),
    "forbidden": (
        {
            "forbidden": {"job": [("student", "retired"), ("clerk", "student")]},
            "bounds": {"income": (0, 24e3), "age": (0, 41)},
        },
        None,
    ),
    "max_changes": ({"max_changes": 1}, "allow 3 columns to change"),
    "constraint": ({"constraints": "income + 100*age <= 20000"}, "loosen"),
    "equality": (
        {
            "constraints": "income == 5000",
            "steps": {"income": 100},
            "immutable": ["age", "job"],
        },
        "loosen",
    ),
    "step": (
        {"steps": {"age": 100}, "immutable": ["income", "job"]},
        "up to 100, outside the observed range of",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_rules_of_each_kind_are_named_and_their_relaxation_works(case):
    words, says = CASES[case]
    voice, row, target = young_and_old()
    cf = voice.explain(row, target, **words)
    assert cf.status[0] == Status.INFEASIBLE
    reason = cf.reason(0)
    assert reason.relaxations, reason.text
    if says:
        assert any(says in way.text for way in reason.relaxations), reason.text
    for way in reason.relaxations:
        assert way.text in reason.text
        if way.contraction is None:
            assert voice.explain(row, target, **way.words).status[0] in FOUND, way.text
    for member in reason.conflict:
        assert member.column is None or member.column in row.columns


def test_a_bound_is_widened_hardly_more_than_it_has_to_be():
    voice, row, target = young_and_old()
    words = {"bounds": {"income": (0, 20_000)}, "immutable": ["age", "job"]}
    (way,) = (
        w for w in voice.explain(row, target, **words).reason(0).relaxations
        if w.members[0].kind == "high"
    )  # fmt: skip
    side = way.words["bounds"]["income"][1]
    assert way.text.startswith(f"allow income up to {side:,.0f}, outside the observed range ")
    less = {**words, "bounds": {"income": (0, 20_000 + 0.85 * (side - 20_000))}}
    assert voice.explain(row, target, **less).status[0] == Status.INFEASIBLE


def test_whole_numbers_are_widened_to_whole_numbers():
    voice, row, target = young_and_old()
    words = {"bounds": {"age": (0, 30)}, "immutable": ["income", "job"]}
    reason = voice.explain(row, target, **words).reason(0)
    (way,) = (w for w in reason.relaxations if w.members[0].column == "age")
    assert way.words["bounds"]["age"][1] == int(way.words["bounds"]["age"][1])


def test_the_contraction_that_is_offered_is_the_strongest_that_works():
    voice, row, target = young_and_old(contraction=0.05)
    words = {"immutable": "job", "bounds": {"income": (0, 47_000)}}
    cf = voice.explain(row, target, **words)
    assert cf.status[0] == Status.INFEASIBLE
    reason = cf.reason(0)
    (way,) = (w for w in reason.relaxations if w.contraction is not None)
    assert way.words is None
    assert f"contraction={way.contraction:g}" in way.text
    for alpha, status in ((way.contraction, 0), (0.05 + 0.85 * (way.contraction - 0.05), 1)):
        again = VoICE(voice.model_, contraction=alpha).fit(people())
        assert again.explain(row, target, **words).status[0] == status


def test_where_one_change_is_not_enough_a_pair_is_offered():
    voice, row, target = young_and_old()
    words = {"immutable": ["job"], "bounds": {"age": (0, 25), "income": (0, 7_000)},
             "constraints": ["income <= 8000", "age <= 26"]}  # fmt: skip
    cf = voice.explain(row, target, **words)
    reason = cf.reason(0)
    for way in reason.relaxations:
        assert voice.explain(row, target, **way.words).status[0] in FOUND
        assert len(way.members) == 2
    if reason.relaxations:
        assert "No single change was found to be enough" in reason.text
    assert reason.relaxations or "No plausible change of one or two" in reason.text


def test_contracted_bounds_are_relaxed_with_plain_words():
    X = load_wine(as_frame=True).data
    voice = VoICE(KMeans(3, n_init=2, random_state=0), contract_bounds=True).fit(X)
    words = {"immutable": list(X.columns[:-1]), "bounds": {"proline": (300, 800)}}
    cf = voice.explain(X.iloc[:40], "each", **words)
    lost = np.flatnonzero(cf.status == Status.INFEASIBLE)[:3]
    assert lost.size
    for i in lost:
        for way in cf.reason(i).relaxations:
            if way.contraction is None:
                row = X.iloc[[cf.row[i]]]
                assert voice.explain(row, int(cf.target[i]), **way.words).status[0] in FOUND


def test_columns_without_names_and_other_frames_have_reasons_too():
    X = load_wine().data
    voice = VoICE(KMeans(3, n_init=2, random_state=0)).fit(X)
    cf = voice.explain(X[:30], "each", immutable=range(13))
    reason = cf[np.flatnonzero(~cf.feasible)].reason(0)
    assert reason.relaxations
    row = X[[reason.row]]
    assert voice.explain(row, reason.target, **reason.relaxations[0].words).feasible[0]
    frame = pl.DataFrame(X, schema=[f"c {i}" for i in range(13)], orient="row")
    voice = VoICE(KMeans(3, n_init=2, random_state=0)).fit(frame)
    words = {"immutable": [f"c {i}" for i in range(12)], "constraints": "`c 12` + `c 0` <= 600"}
    cf = voice.explain(frame[:30], "each", **words)
    reason = cf.reason(int(np.flatnonzero(cf.status == Status.INFEASIBLE)[0]))
    assert reason.relaxations, reason.text
    for way in reason.relaxations:
        row = frame[reason.row : reason.row + 1]
        assert voice.explain(row, reason.target, **way.words).feasible[0], way.text


def test_a_reason_is_read_printed_escaped_and_pickled():
    frame = people().rename(columns={"income": "<b>income</b>"})
    model = make_pipeline(StandardScaler(), KMeans(3, n_init=3, random_state=0))
    voice = VoICE(model).fit(frame[["age", "<b>income</b>"]])
    target = int(voice.predict(frame)[2])
    cf = voice.explain(frame.iloc[[0]], target, immutable=["age", "<b>income</b>"])
    reason = cf.reason(0)
    assert str(reason) == reason.text
    assert reason.text.startswith(f"Row 0 cannot move from cluster {reason.source} to {target}: ")
    assert "<b>" not in reason._repr_html_()
    assert "&lt;b&gt;" in reason._repr_html_()
    assert pickle.loads(pickle.dumps(reason)) == reason


def test_of_several_rivals_none_is_said_to_be_always_nearer():
    voice = VoICE.from_centers(
        [[0.0, 0.0], [2.0, 0.0], [1.0, 3.0]], feature_names=["age", "income"]
    )
    reason = voice.explain([[0.0, 0.0]], target=2, immutable="income").reason(0)
    assert [member.text for member in reason.conflict] == [
        "income may not change",
        "cluster 0 is nearer wherever cluster 1 is not",
        "cluster 1 is nearer wherever cluster 0 is not",
    ]
    assert "income may not change and one of clusters 0 and 1 is always nearer." in reason.text


def test_a_rival_of_a_contracted_cell_is_called_too_near():
    voice = VoICE.from_centers([[0.0], [4.0]], feature_names=["age"], contraction=0.5)
    reason = voice.explain([[1.0]], target=1, bounds={"age": (0, 2.5)}).reason(0)
    assert [member.text for member in reason.conflict] == [
        "age must be at most 2.5",
        "cluster 0 is always too near",
        "the answer must lie well inside cluster 1 (contraction 0.5)",
    ]


def test_a_row_that_has_an_answer_says_so():
    voice, row, target = young_and_old()
    for goal in (target, int(voice.predict(row)[0])):
        cf = voice.explain(row, goal)
        reason = cf.reason(0)
        assert reason.conflict == []
        assert reason.relaxations == []
        assert reason.text == cf.text(0)
        assert "Row 0" in reason._repr_html_()


def test_what_is_not_there_has_no_reason():
    voice, row, target = young_and_old()
    with pytest.raises(IndexError, match="there is no answer 1"):
        voice.explain(row, target).reason(1)
    X = load_wine().data
    pairwise = CFCLUST(KMeans(3, n_init=2, random_state=0)).fit(X)
    cf = pairwise.explain(X[:3], target=0, immutable=range(13))
    assert cf.status[0] == Status.INFEASIBLE
    assert "answers of VoICE only" in cf.reason(0).text


@pytest.mark.parametrize(
    ("value", "bound", "rounded"),
    [(61_137.2, 60_000, 61_200), (0.1234, 0.1, 0.124), (-7.0, 5.0, -7.0), (58_863, 60_000, 58_800)],
)
def test_readable_numbers_are_rounded_away_from_the_bound(value, bound, rounded):
    assert readable(value, bound) == rounded
