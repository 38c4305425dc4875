"""Units of columns: how numbers stand with them, that money of whole cents lands, and bad ones."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from voicecf import VoICE, load
from voicecf.errors import ColumnError, OptionError
from voicecf.plots import ChangeCard, Plane, SegmentMap
from voicecf.table.column import Column
from voicecf.table.units import with_unit

UNITS = {"spent": "€", "basket": "EUR", "weight": "kg", "share": "%", "paid": "$"}


def table() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    n = 300
    return pd.DataFrame({
        "spent": np.exp(rng.normal(5, 1.5, n)),
        "basket": rng.normal(40, 15, n).clip(1),
        "weight": rng.normal(70, 12, n).round(1),
        "share": rng.uniform(0, 100, n),
        "paid": rng.integers(1, 30, n),
        "plan": rng.choice(["basic", "plus", "gold"], n),
    })  # fmt: skip


def explainer(frame: pd.DataFrame, **options: object) -> VoICE:
    columns = make_column_transformer(
        (make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), ["spent"]),
        (StandardScaler(), ["basket", "weight", "share", "paid"]),
        (OneHotEncoder(), ["plan"]),
    )
    model = make_pipeline(columns, KMeans(4, n_init=5, random_state=0))
    return VoICE(model, **options).fit(frame)


@pytest.fixture(scope="module")
def voice() -> VoICE:
    return explainer(table(), units=UNITS)


def number_in(text: str) -> float:
    return float(re.sub(r"[^-\d.e]", "", text))


@pytest.mark.parametrize(
    ("unit", "text", "written"),
    [
        ("€", "55.8", "€55.80"), ("£", "-3", "-£3.00"), ("¥", "1234.567", "¥1234.567"),
        ("US$", "12,500", "US$12,500.00"), ("EUR", "55.8", "55.80 EUR"), ("USD", "0", "0.00 USD"),
        ("%", "12.5", "12.5 %"), ("kg", "3", "3 kg"), ("k€", "3", "3 k€"), ("", "3", "3"),
        ("€", "missing", "missing"), ("€", "2.5e-09", "€2.5e-09"), ("ABC", "3", "3 ABC"),
    ],
)  # fmt: skip
def test_signs_of_money_stand_before_and_all_else_after(unit, text, written):
    assert with_unit(text, Column("x", ("x",), np.array([0]), unit=unit)) == written


def test_whole_money_has_no_cents_unless_there_are_some():
    paid = Column("paid", ("paid",), np.array([0]), unit="$", whole=True)
    assert [with_unit(text, paid) for text in ("8", "8.5")] == ["$8", "$8.50"]


def test_every_value_in_a_sentence_has_its_unit_and_lands(voice):
    frame = table()
    cf = voice.explain(frame, target="each")
    short, own = cf.rounded(), frame.iloc[cf.row].reset_index(drop=True)
    pattern = re.compile(r"(\w+) (?:rises|falls) from (.+?) to (.+?)(?=, | and |;|\.$)")
    typed, seen = own.copy(), set()
    typed = typed.astype({"paid": float})
    for i, text in enumerate(cf.texts(all=True)):
        found = pattern.findall(text)
        assert len(found) == short.n_changed[i] - ("plan" in text)
        for name, before, after in found:
            unit, money = UNITS[name], name in ("spent", "basket")
            change = number_in(after) - own[name][i]
            for value in (before, after):
                assert value.startswith(unit) if unit in "€$" else value.endswith(f" {unit}")
                if money and abs(change) >= 0.1:
                    assert re.fullmatch(r"€?\d+\.\d\d( EUR)?", value), text
            told = number_in(after) - number_in(before)
            assert abs(told / change - 1) <= (0.05 if money else 0.01), text
            typed.loc[i, name] = number_in(after)
            seen.add(name)
        plan = re.search(r'plan changes from "\w+" to "(\w+)"', text)
        typed.loc[i, "plan"] = plan[1] if plan else own["plan"][i]
    assert seen == set(UNITS)
    np.testing.assert_array_equal(voice.model_.predict(typed)[cf.feasible], cf.target[cf.feasible])


def test_money_has_more_than_cents_only_where_no_cents_land():
    centers = [[0.0], [1.0], [1.001], [1.002]]
    voice = VoICE.from_centers(centers, feature_names=["x"], units={"x": "€"})
    assert "from €0.00 to €1.001;" in voice.explain([[0.0]], target=2).text(0)
    wide = VoICE.from_centers([[0.0], [1.0]], feature_names=["x"], units={"x": "€"})
    assert "from €0.491 to €0.51;" in wide.explain([[0.4912341]], target=1).text(0)
    assert "from €0.46 to €0.51;" in wide.explain([[0.46]], target=1).text(0)


def test_a_bound_between_two_cents_is_kept_to_the_cent():
    voice = VoICE.from_centers([[0.0, 0.0], [1.0, 9.0]], contraction=0.5, units={0: "€"})
    for high in (5.987, 1.0349):
        cf = voice.explain([[0.0, 0.0]], target=1, bounds={0: (None, high)}, costs={0: 1e-6})
        value = number_in(re.search(r"x0 rises from \S+ to (€[\d.]+)", cf.text(0))[1])
        assert value <= high
        assert value == round(value, 2)


def test_cards_reasons_json_and_maps_have_units(voice):
    frame = table()
    cf = voice.explain(frame.head(20), target="each")
    shown = {}
    for i in np.flatnonzero(cf.feasible & (cf.n_changed > 0))[:20]:
        card = ChangeCard.from_counterfactuals(cf, i)
        shown |= {change.column: change for change in card.changes}
        html = card._repr_html_()
        assert all(change.shown[1] in html for change in card.changes)
    assert re.fullmatch(r"€[\d,]+\.\d\d", shown["spent"].shown[1])
    assert re.fullmatch(r".[\d.]+\.\d\d EUR", shown["basket"].delta)
    assert re.match(r"may be [\d.]+ kg \(", shown["weight"].range_text)
    assert json.loads(cf.to_json())["units"] == UNITS
    changes = cf.changes()
    assert dict(zip(changes["feature"], changes["unit"], strict=True)).items() >= UNITS.items()
    held = voice.explain(
        frame.head(3), "each", bounds={"spent": (..., "+10"), "basket": (10.5, 60)},
        mutable=["spent", "basket"], steps={"basket": 0.5},
    )  # fmt: skip
    said = " ".join(held.reason(i).text for i in np.flatnonzero(~held.feasible))
    assert "basket must be at most 60.00 EUR" in said
    assert re.search(r"allow spent up to €[\d,]+\.00 \(cost", said)
    plane = Plane.of_columns(voice, frame.head(1), "spent", "weight")
    assert SegmentMap.from_voice(voice, frame, plane).axis_labels == ("spent (€)", "weight (kg)")


def test_without_units_nothing_is_said_of_them():
    cf = explainer(table()).explain(table().head(3))
    assert json.loads(cf.to_json())["units"] == {}
    assert "unit" not in cf.changes()


def test_a_unit_with_marks_of_html_is_shown_as_it_is():
    voice = VoICE.from_centers([[0.0], [4.0]], feature_names=["x"], units={"x": "<b>"})
    html = ChangeCard.from_counterfactuals(voice.explain([[1.0]]), 0)._repr_html_()
    assert "1 &lt;b&gt;" in html
    assert "<b>+" not in html.replace("&lt;b&gt;", "")
    assert "2.01 <b>" not in html


def test_units_are_saved(voice, tmp_path):
    voice.save(tmp_path / "units.voicecf")
    again = load(tmp_path / "units.voicecf")
    rows = table().head(5)
    assert [column.unit for column in again.space_.columns] == [*UNITS.values(), ""]
    assert again.explain(rows).texts() == voice.explain(rows).texts()


@pytest.mark.parametrize(
    ("units", "error", "says"),
    [
        ({"baskt": "€"}, ColumnError, "unknown column 'baskt' in units; did you mean 'basket'"),
        ({"plan": "€"}, OptionError, "column 'plan' is a category, whose levels have no unit"),
        ({"basket": 3}, OptionError, r"units\['basket'\]=3 is not allowed; use a text"),
        ({"basket": " "}, OptionError, "use a text such as € or kg"),
        ({"basket": "€\n"}, OptionError, "use a text such as € or kg"),
        ("€", OptionError, "units must be a dict"),
    ],
)
def test_wrong_units_are_refused_in_words(units, error, says):
    with pytest.raises(error, match=says):
        explainer(table(), units=units)
