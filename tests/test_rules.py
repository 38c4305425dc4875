"""The user's words are checked at the door, and what is wrong is said with the likely remedy."""

from __future__ import annotations

import json
import tomllib

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine

from spaces import Space, read
from voicecf import CFCLUST, VoICE
from voicecf.cli.command import _parser
from voicecf.cli.options import read_options
from voicecf.errors import BoundsError, ColumnError, OptionError, VoiceError
from voicecf.rules.constraints import Constraint
from voicecf.rules.rules import RULES, Rules
from voicecf.rules.sides import Side
from voicecf.rules.terms import ColumnRule
from voicecf.table.space import Space as Columns


@pytest.fixture
def space() -> Space:
    return (
        Space()
        .number("age", whole=True)
        .number("income", lambda u: u / 100)
        .category("job", ["student", "clerk", "retired"])
        .category("size", ["S", "M", "L"], forward=float, ordered=True)
        .category("home", ["own", "rent"], sources=["home_own", "home_rent"])
        .category("code", [1, 2, 30, None])
    )


def rule(space: Space, column: str, **words) -> ColumnRule:
    return read(space, **words).of_columns(space)[space.names.index(column)]


def test_nothing_said_is_no_rule(space):
    assert read(space).of_columns(space) == [ColumnRule()] * 6
    silent = dict.fromkeys(("immutable", "bounds", "steps", "max_changes", "constraints"))
    assert read(space, **silent) == Rules()
    assert Rules().to_dict() == {}


@pytest.mark.parametrize(
    ("column", "words", "said"),
    [
        ("age", {"immutable": "age"}, {"fixed": True}),
        ("age", {"immutable": ["age", "job"]}, {"fixed": True}),
        ("age", {"immutable": 0}, {"fixed": True}),
        ("code", {"immutable": -1}, {"fixed": True}),
        ("home", {"immutable": np.array([5])}, {"fixed": True}),
        ("code", {"immutable": [6]}, {"fixed": True}),
        ("home", {"immutable": [False] * 4 + [True, False, False]}, {"fixed": True}),
        ("home", {"immutable": ["home_rent"]}, {"fixed": True}),
        ("home", {"costs": {"home_own": 3}}, {"cost": 3.0}),
        ("age", {"increase_only": "age"}, {"direction": 1}),
        ("size", {"decrease_only": ["size"]}, {"direction": -1}),
        ("age", {"bounds": {"age": (18, None)}}, {"low": Side(18.0), "high": Side(np.inf)}),
        ("age", {"bounds": {"age": ["...", "open"]}}, {"high": Side(np.inf)}),
        ("age", {"bounds": {"age": (..., 9)}}, {"high": Side(9.0)}),
        (
            "income",
            {"bounds": {"income": ("-10%", "+ 1_500.5")}},
            {"low": Side(-10.0, "share"), "high": Side(1500.5, "shift")},
        ),
        ("income", {"steps": {"income": 50}}, {"increment": 50.0}),
        ("age", {"steps": {"age": None}}, {"increment": "any"}),
        ("age", {"steps": {"age": "any"}}, {"increment": "any"}),
        ("age", {"steps": {"age": 5}, "immutable": "age"}, {"increment": 5.0, "fixed": True}),
        ("job", {"levels": {"job": ["clerk", "retired"]}}, {"levels": (1, 2)}),
        ("job", {"levels": {"job": "clerk"}}, {"levels": (1,)}),
        ("code", {"levels": {"code": np.array([30, 1])}}, {"levels": (2, 0)}),
        ("code", {"levels": {"code": ["30"]}}, {"levels": (2,)}),
        ("job", {"forbidden": {"job": [("student", "retired")]}}, {"forbidden": ((0, 2),)}),
        ("job", {"forbidden": {"job": ("student", "retired")}}, {"forbidden": ((0, 2),)}),
        ("code", {"forbidden": {"code": [(None, 1)]}}, {"forbidden": ((3, 0),)}),
        (
            "job",
            {"order": {"job": ["retired", "student"]}, "increase_only": "job"},
            {"order": (2, 0), "direction": 1},
        ),
    ],
)
def test_what_is_said_of_a_column_reaches_it(space, column, words, said):
    assert rule(space, column, **words) == ColumnRule(**said)


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        ({"imutable": ["age"]}, OptionError, "unknown rule 'imutable'; did you mean 'immutable'"),
        ({"immutable": ["agee"]}, ColumnError, "unknown column 'agee' in immutable.*'age'"),
        ({"immutable": 7}, ColumnError, "positions go from 0 to 6"),
        ({"immutable": [True, False]}, ColumnError, "a mask of columns needs 7 entries"),
        ({"bounds": {"incme": (0, 1)}}, ColumnError, "did you mean 'income'"),
        ({"costs": {"hom": 2}}, ColumnError, "did you mean 'home'"),
        ({"levels": {"job": ["clark"]}}, OptionError, "unknown level 'clark'.*'clerk'"),
        ({"order": {"job": ["x9", "clerk"]}}, OptionError, "choose from 'student', 'clerk'"),
        ({"forbidden": {"job": [("studnt", "clerk")]}}, OptionError, "mean 'student'"),
        ({"forbidden": {"code": [(1, None)]}}, OptionError, "not a level that a row may move to"),
        ({"levels": {"code": [np.nan]}}, OptionError, "not a level that a row may move to"),
        ({"increase_only": "job"}, ColumnError, r"no order; give one.*order=\{'job'"),
        ({"decrease_only": "home_own"}, ColumnError, r"'home' have no order"),
        ({"increase_only": "age", "decrease_only": ["age"]}, OptionError, "say immutable"),
        ({"steps": {"age": 0}}, OptionError, "above 0"),
        ({"steps": {"age": -1}}, OptionError, "above 0"),
        ({"steps": {"age": np.nan}}, OptionError, "above 0"),
        ({"steps": {"age": np.inf}}, OptionError, "above 0"),
        ({"steps": {"age": "one"}}, OptionError, "above 0"),
        ({"steps": {"job": 1}}, ColumnError, "column 'job' is a category. Use levels"),
        ({"bounds": {"job": (0, 1)}}, ColumnError, "column 'job' is a category. Use levels"),
        ({"bounds": {"home_own": (0, 1)}}, ColumnError, "column 'home' is a category"),
        ({"levels": {"age": [1]}}, ColumnError, "column 'age' is a number. Use bounds"),
        ({"forbidden": {"age": [(1, 2)]}}, ColumnError, "column 'age' is a number"),
        ({"order": {"age": [1, 2]}}, ColumnError, "column 'age' is a number"),
        ({"levels": {"job": []}}, OptionError, "say immutable"),
        ({"order": {"job": ["clerk"]}}, OptionError, "two levels"),
        ({"order": {"job": ["clerk", "clerk"]}}, OptionError, "'clerk' twice"),
        ({"forbidden": {"job": ["student"]}}, OptionError, "pairs"),
        ({"forbidden": {"job": "student"}}, OptionError, "pairs"),
        ({"bounds": {"age": (3, 1)}}, BoundsError, "upside down"),
        ({"bounds": {"age": ("+5", "+1")}}, BoundsError, "upside down"),
        ({"bounds": {"age": ("-1%", "-5%")}}, BoundsError, "upside down"),
        ({"bounds": {"age": (np.nan, 1)}}, BoundsError, "NaN"),
        ({"bounds": {"age": (np.inf, None)}}, BoundsError, "no number lies beyond"),
        ({"bounds": {"age": 3}}, BoundsError, "not a pair"),
        ({"bounds": {"age": "+5"}}, BoundsError, "not a pair"),
        ({"bounds": {"age": (1, 2, 3)}}, BoundsError, "not a pair"),
        ({"bounds": {"age": ("500", None)}}, BoundsError, r"'500' is not a side.*'\+500'"),
        ({"bounds": {"age": ("+5_", "+%")}}, BoundsError, "not a side"),
        ({"bounds": {"age": ("+1e999", None)}}, BoundsError, "not a side"),
        ({"bounds": {"age": ([], 1)}}, BoundsError, "not a side"),
        ({"bounds": [0, 1]}, BoundsError, "must be a dict"),
        ({"costs": [("age", 1)]}, OptionError, "must be a dict"),
        ({"costs": {"age": 0}}, OptionError, "above 0"),
        ({"costs": {"age": -2}}, OptionError, "above 0"),
        ({"costs": {"age": np.nan}}, OptionError, "above 0"),
        ({"costs": {"age": True}}, OptionError, "above 0"),
        ({"costs": {"home_own": 1, "home": 2}}, ColumnError, "'home' is named twice in costs"),
        ({"max_changes": 0}, OptionError, "whole number, 1 or more"),
        ({"max_changes": 1.5}, OptionError, "whole number, 1 or more"),
        ({"max_changes": True}, OptionError, "whole number, 1 or more"),
        ({"max_changes": "three"}, OptionError, "whole number, 1 or more"),
        ({"max_changes": np.inf}, OptionError, "whole number, 1 or more"),
        ({"constraints": "age <="}, OptionError, "'age <=' cannot be read"),
        ({"constraints": 5}, OptionError, "is not text"),
        ({"increase_only": "age", "bounds": {"age": (None, "-5")}}, OptionError, "contradict"),
        ({"decrease_only": "age", "bounds": {"age": ("+5%", None)}}, OptionError, "contradict"),
    ],
)
def test_what_is_wrong_is_named_with_a_remedy(space, words, error, says):
    with pytest.raises(error, match=says):
        read(space, **words)


def test_rules_between_columns_and_costs_are_read_in_the_users_columns(space):
    rules = read(space, constraints="age <= income", costs={"job": 2, "age": 0.5})
    assert rules.terms(space).constraints == [
        Constraint("age <= income", {"age": 1.0, "income": -1.0}, 0.0)
    ]
    assert rules.terms(space).factors.tolist() == [0.5, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1]


EVERYTHING = Rules(
    immutable=["age"],
    increase_only="size",
    bounds={"income": (..., "+10%"), "age": (None, 3)},
    steps={"age": None, "income": 50},
    levels={"job": ["clerk"]},
    order={"job": ["student", "clerk", "retired"]},
    forbidden={"job": [("student", "retired")]},
    costs={"income": 2},
    max_changes=3,
    constraints=["age <= income"],
)


def test_rules_survive_a_json_file():
    assert Rules.from_dict(json.loads(json.dumps(EVERYTHING.to_dict()))) == EVERYTHING


def test_rules_hold_only_what_a_toml_file_can():
    def plain(value) -> bool:
        if isinstance(value, dict):
            return all(isinstance(k, str) and plain(v) for k, v in value.items())
        if isinstance(value, list):
            return all(map(plain, value))
        return isinstance(value, (str, int, float, bool))

    assert plain(EVERYTHING.to_dict())


def test_rules_come_from_a_toml_file(space):
    text = """
    immutable = "age"
    max_changes = 2
    [bounds]
    income = ["...", "+10%"]
    [steps]
    age = "any"
    [forbidden]
    job = [["student", "retired"]]
    """
    rules = Rules.from_dict(tomllib.loads(text))
    rules.check(space)
    assert rules == Rules(
        immutable=["age"],
        max_changes=2,
        bounds={"income": (..., "+10%")},
        steps={"age": None},
        forbidden={"job": [("student", "retired")]},
    )


def test_names_that_are_no_text_are_found_by_their_text():
    space = Space().number(10).number(20)
    rules = Rules(immutable=[20], costs={10: 2.0})
    again = Rules.from_dict(json.loads(json.dumps(rules.to_dict())))
    assert again.of_columns(space) == rules.of_columns(space)
    assert again.of_columns(space) == [ColumnRule(cost=2.0), ColumnRule(fixed=True)]


def test_positions_count_the_columns_of_an_array_also_around_a_block():
    space = Space().category("b", ["x0", "x2"], sources=["x0", "x2"]).number("x1").number("x3")
    space.sources = ["x0", "x1", "x2", "x3"]
    names = [rule.fixed for rule in Rules(immutable=[1]).of_columns(space)]
    assert names == [False, True, False]
    assert Rules(immutable=2).of_columns(space)[0].fixed


def test_rules_that_are_no_dict_are_refused():
    with pytest.raises(VoiceError, match="must be a dict"):
        Rules.from_dict(["age"])


# The only columns that may change


def test_mutable_locks_every_other_column():
    wine = load_wine()
    voice = VoICE(KMeans(3, n_init=2, random_state=0)).fit(wine.data)
    levers = [0, 4, 12]
    others = [c for c in range(13) if c not in levers]
    cf = voice.explain(wine.data[:20], target="each", mutable=levers)
    locked = voice.explain(wine.data[:20], target="each", immutable=others)
    np.testing.assert_array_equal(cf.points, locked.points)
    np.testing.assert_array_equal(cf.status, locked.status)
    found = cf[cf.feasible]
    assert len(found)
    np.testing.assert_array_equal(found.points[:, others], wine.data[found.row][:, others])
    curves = [voice.tradeoff(wine.data[:2], **words).cost.tolist()
              for words in ({"mutable": levers}, {"immutable": others})]  # fmt: skip
    assert curves[0] == curves[1]


def test_mutable_is_read_like_immutable():
    space = Columns.plain(["age", "income", "visits"], named=True)
    for given in ("income", ["income"], [1], 1, np.array([False, True, False]), ("income",)):
        assert Rules(mutable=given).locked(space) == [0, 2]
    rules = Rules(mutable="income", max_changes=1)
    assert Rules.from_dict(rules.to_dict()) == rules
    assert rules.to_dict() == {"mutable": ["income"], "max_changes": 1}
    assert Rules(immutable="age", mutable=["income", "visits"]).locked(space) == [0]


@pytest.mark.parametrize(
    ("words", "error", "said"),
    [
        ({"mutable": []}, OptionError, "lists no column"),
        ({"mutable": [False, False, False]}, OptionError, "lists no column"),
        ({"mutable": ["incme"]}, ColumnError, "'incme' in mutable; did you mean 'income'"),
        (
            {"mutable": ["age", "income"], "immutable": ["age"]},
            OptionError,
            "'age' is listed in mutable and in immutable",
        ),
    ],
    ids=str,
)
def test_mutable_that_contradicts_itself_is_refused(words, error, said):
    space = Columns.plain(["age", "income", "visits"], named=True)
    with pytest.raises(error, match=said):
        Rules.from_dict(words).check(space)


def test_mutable_is_named_by_the_reason_and_extended_by_what_helps():
    names = ["age", "income", "visits"]
    voice = VoICE.from_centers([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]], feature_names=names)
    cf = voice.explain([[1.0, 5.0, 1.0]], target=1, mutable="income")
    reason = cf.reason(0)
    assert ": only income may change" in reason.text
    (way,) = reason.relaxations
    assert way.text == "unlock age"
    assert way.words == {"mutable": ["age", "income"]}
    assert voice.explain([[1.0, 5.0, 1.0]], target=1, **way.words).feasible.all()
    # Of many that may change and few that may not, the few are named.
    few = voice.explain([[1.0, 5.0, 1.0]], target=1, mutable=["income", "visits"], plausible=None)
    assert ": age may not change" in few.reason(0).text


def test_the_price_of_mutable_is_known():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 4.0]], feature_names=["age", "income"])
    cf = voice.explain([[1.0, 1.0]], target=1, mutable="income")
    locked = voice.explain([[1.0, 1.0]], target=1, immutable="age")
    assert cf.cost_without("mutable") == locked.cost_without("immutable") < cf.cost


def test_the_pairwise_projection_knows_mutable_too():
    rows = load_wine().data
    pairwise = CFCLUST(KMeans(3, n_init=2, random_state=0)).fit(rows)
    cf = pairwise.explain(rows[:5], mutable=[12])
    others = pairwise.explain(rows[:5], immutable=list(range(12)))
    np.testing.assert_array_equal(cf.points, others.points)


# A value of each rule, and the command's option that says the same.
SAID = {
    "immutable": (["age", "job"], ["--immutable", "age", "job"]),
    "mutable": (["age"], ["--mutable", "age"]),
    "increase_only": (["age"], ["--increase-only", "age"]),
    "decrease_only": (["age"], ["--decrease-only", "age"]),
    "bounds": ({"age": (None, "+10%")}, ["--bounds", "age=:+10%"]),
    "steps": ({"age": None, "pay": 0.5}, ["--steps", "age=any", "pay=0.5"]),
    "levels": ({"job": ["cook", "clerk"]}, ["--levels", "job=cook,clerk"]),
    "order": ({"job": ["cook", "clerk"]}, ["--order", "job=cook,clerk"]),
    "forbidden": ({"job": [("cook", "clerk")]}, ["--forbidden", "job=cook>clerk"]),
    "costs": ({"age": 2.5}, ["--costs", "age=2.5"]),
    "prices": ({"pay": 0.5, "age": (4, 2)}, ["--prices", "pay=0.5", "age=4,2"]),
    "least": ({"pay": 100}, ["--least", "pay=100"]),
    "max_changes": (2, ["--max-changes", "2"]),
    "constraints": (["pay <= 3"], ["--constraint", "pay <= 3"]),
    "together": (["if age == 0 then pay == 0"], ["--together", "if age == 0 then pay == 0"]),
    "derived": ({"pay": "2 * age"}, ["--derived", "pay=2 * age"]),
    "plausible": (None, ["--plausible", "none"]),
    "probability": (0.8, ["--probability", "0.8"]),
}


@pytest.mark.parametrize("word", list(RULES))
def test_every_rule_goes_through_json_toml_and_the_command(word, tmp_path):
    value, option = SAID[word]
    rules = Rules(**{word: value})
    assert [rule.word for rule in rules.given()] == [word]
    words = rules.to_dict()
    assert Rules.from_dict(words) == rules
    assert Rules.from_dict(json.loads(json.dumps(words, allow_nan=False))) == rules
    entries = "".join(f"{name} = {_in_toml(part)}\n" for name, part in words.items())
    file = tmp_path / "rules.toml"
    file.write_text(entries, encoding="utf-8")
    assert Rules.from_dict(tomllib.loads(entries)) == rules
    for arguments in (option, ["--rules", str(file)]):
        chosen = _parser().parse_args(["explain", "rows.csv", "-o", "out.csv", *arguments])
        assert Rules.from_dict(read_options(chosen)[1]) == rules


def _in_toml(value: object) -> str:
    """Write a value of JSON as TOML, whose dicts are inline tables."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)} = {_in_toml(v)}' for k, v in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_in_toml, value))}]"
    return json.dumps(value)


def test_json_has_what_the_rules_auto_and_prices_say_of_answers():
    X = load_wine().data[:, :4]
    voice = VoICE(KMeans(3, n_init=3, random_state=0)).fit(X)
    cf = voice.explain(X[:9], "each", objective="price", prices={0: 2, 1: 3, 2: 1, 3: (1, 4)})
    for answer, price in zip(json.loads(cf.to_json())["answers"], cf.rounded().price, strict=True):
        assert answer["price"] == (None if np.isnan(price) else price)
    assert (cf.price[cf.feasible] > 0).all()
    cf = voice.explain(X[:9], "each", plausible="auto")
    shares = [answer["plausible"] for answer in json.loads(cf.to_json())["answers"]]
    assert shares == [None if np.isnan(share) else share for share in cf.plausible]
    assert set(shares) & {0.7, 0.9, 0.99}
