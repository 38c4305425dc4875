"""Pictures: nothing overlaps, nothing is cut off, names are literal, colours stay apart in grey."""

from __future__ import annotations

import builtins
from functools import cache
from io import BytesIO
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine

from voicecf import VoICE
from voicecf.errors import ColumnError, OptionError
from voicecf.plots import (
    DARK,
    LIGHT,
    ChangeCard,
    ContractionScores,
    Display,
    Plane,
    SegmentMap,
    Tradeoff,
    Transitions,
    Weights,
)
from voicecf.plots.theme import Theme
from voicecf.table.wording import compact, legible

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.text import Text  # noqa: E402

WINES = load_wine(as_frame=True).data
HOSTILE = ["$x_1$", "<script>alert(1)</script>", "two\nlines", "Größe (µm) ≥ ½", r"a\b^{c", "  "]


@cache
def voice(k: int = 3) -> VoICE:
    return VoICE(KMeans(k, n_init=2, random_state=0)).fit(WINES)


@cache
def wide(names: str = "long") -> tuple[VoICE, pd.DataFrame]:
    """A model of 48 columns, with names of 80 letters or with hostile ones."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 48)) * np.logspace(-3, 3, 48) + np.repeat(np.eye(3), 30, axis=0) @ (
        rng.normal(size=(3, 48)) * 3 * np.logspace(-3, 3, 48)
    )
    columns = [f"{c} {'a long name that says little ' * 3}"[:77].ljust(77, "x") + f"{c:03}"
               for c in range(48)]  # fmt: skip
    if names == "hostile":
        columns[: len(HOSTILE)] = HOSTILE
    table = pd.DataFrame(X, columns=columns)
    weights = 1 / X.var(axis=0)
    centers = X.reshape(3, 30, 48).mean(axis=1)
    made = VoICE.from_centers(
        centers, weights=weights, feature_names=columns, bounds=(X.min(axis=0), X.max(axis=0))
    )
    return made, table


def displays() -> dict[str, Display]:
    few, everyone = voice(), voice().explain(WINES, target="each")
    long, table = wide()
    moved = long.explain(table.head(1), target="each")
    stuck = few.explain(WINES.head(1), target="each", immutable=list(WINES.columns))
    many = voice(20).explain(WINES, target="each")
    near = few.explain(WINES.head(1), target="each", objective="prefix")
    bare = VoICE.from_centers([[0.0, 0.0], [4.0, 1.0]])
    return {
        "card": ChangeCard.from_counterfactuals(everyone, 0),
        "card of one": ChangeCard.from_counterfactuals(near, 0),
        "card of 48": ChangeCard.from_counterfactuals(moved, 0),
        "card without answer": ChangeCard.from_counterfactuals(stuck, 0),
        "card without ranges": ChangeCard.from_counterfactuals(bare.explain([[0.0, 5.0]]), 0),
        "map": SegmentMap.from_voice(few, WINES, Plane.most_telling(near, 0), near, 0),
        "map of a move": SegmentMap.from_voice(few, WINES, Plane.of_move(everyone, 1), everyone, 1),
        "map of 20": SegmentMap.from_voice(voice(20), WINES, Plane.most_telling(many, 3), many, 3),
        "map of 48 columns": SegmentMap.from_voice(long, table, Plane.of_move(moved, 0), moved, 0),
        "map without data": SegmentMap.from_voice(few, None, Plane.most_telling(near, 0), near, 0),
        "transitions": Transitions.from_counterfactuals(everyone),
        "transitions of 20": Transitions.from_counterfactuals(many),
        "transitions of 48 columns": Transitions.from_counterfactuals(moved),
        "weights": Weights.from_voice(few),
        "weights of 48": Weights.from_voice(long),
        "scores": ContractionScores.from_voice(few, WINES),
        "scores of 20": ContractionScores.from_voice(voice(20), WINES),
        "tradeoff": Tradeoff.from_counterfactuals(few.tradeoff(WINES.head(1), target=0)),
        "tradeoff of 48": Tradeoff.from_counterfactuals(
            long.tradeoff(table.head(1), target=1, max_changes=3)
        ),
    }


@pytest.fixture(scope="module")
def shown() -> dict[str, Display]:
    return displays()


WHAT = ["card", "card of one", "card of 48", "card without answer", "card without ranges", "map",
        "map of a move", "map of 20", "map of 48 columns", "map without data", "transitions",
        "transitions of 20", "transitions of 48 columns", "weights", "weights of 48", "scores",
        "scores of 20", "tradeoff", "tradeoff of 48"]  # fmt: skip
# One of each kind: large ones take long, and are looked at for their text.
EACH = [what for what in WHAT if not what.endswith(("20", "48", "48 columns"))]


def drawn(display: Display, theme: str = "light", **how):
    """Return a figure of pyplot's that is closed already, and its axes."""
    ax = display.plot(theme=theme, **how)
    plt.close(ax.figure)
    ax.figure.draw_without_rendering()
    return ax.figure, ax


def texts(figure: Figure) -> list[Text]:
    """Return what is written; labels of ticks beyond the ends of an axis are not."""
    beyond = set()
    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in axis.get_major_ticks():
                if not (ax.axison and low <= tick.get_loc() <= high):
                    beyond |= {tick.label1, tick.label2}
    return [
        text for text in figure.findobj(Text)
        if text.get_visible() and text.get_text().strip() and text not in beyond
    ]  # fmt: skip


def boxes(figure: Figure, turned: bool = False):
    """Boxes of text in pixels; those of text at a slant are larger than it is, so left out."""
    return [
        (text.get_text(), text.get_window_extent())
        for text in texts(figure)
        if turned or text.get_rotation() % 90 == 0
    ]


def apart(figure: Figure) -> None:
    for (one, a), (other, b) in combinations(boxes(figure), 2):
        wide = min(a.x1, b.x1) - max(a.x0, b.x0)
        high = min(a.y1, b.y1) - max(a.y0, b.y0)
        assert wide <= 1 or high <= 1, f"{one!r} and {other!r} overlap by {wide:.1f} x {high:.1f}"


def uncut(figure: Figure) -> None:
    width, height = figure.bbox.width, figure.bbox.height
    for text, box in boxes(figure, turned=True):
        assert box.x0 >= -1, f"{text!r} is cut at the left"
        assert box.y0 >= -1, f"{text!r} is cut at the bottom"
        assert box.x1 <= width + 1, f"{text!r} is cut at the right"
        assert box.y1 <= height + 1, f"{text!r} is cut at the top"


@pytest.mark.parametrize("what", WHAT)
def test_text_neither_overlaps_nor_is_cut_off(shown, what):
    figure, _ = drawn(shown[what])
    apart(figure)
    uncut(figure)


@pytest.mark.parametrize("what", ["feasible", "changes", "columns"])
@pytest.mark.parametrize("display", ["transitions", "transitions of 20"])
def test_tables_of_transitions_are_legible(shown, display, what):
    names = [f"a segment with rather a long name, {t}" for t in range(len(shown[display].cost))]
    figure, _ = drawn(shown[display], what=what, names=names)
    apart(figure)
    uncut(figure)


@pytest.mark.parametrize(
    "themes", [("light", "dark"), pytest.param(("dark", "light"), marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("what", EACH)
def test_every_display_is_saved_as_png_and_svg(shown, what, themes, tmp_path):
    before = plt.get_fignums()
    for theme, ending, start in zip(themes, ("png", "svg"), (b"\x89PNG", b"<?xml"), strict=True):
        path = tmp_path / f"picture.{ending}"
        shown[what].save(path, theme=theme, dpi=50)
        assert path.read_bytes().startswith(start)
    assert plt.get_fignums() == before


@pytest.mark.parametrize("what", EACH)
def test_dark_pictures_have_dark_paper_and_light_text(shown, what):
    figure, _ = drawn(shown[what], "dark")
    assert matplotlib.colors.to_hex(figure.get_facecolor()) == DARK.paper
    outside = [t for t in texts(figure) if t.get_text() == (shown[what].__dict__.get("title"))]
    for text in outside:
        assert lightness(matplotlib.colors.to_hex(text.get_color())) > 80


def test_an_axes_of_ones_own_is_drawn_on_and_a_low_one_counts_the_rest(shown):
    figure = Figure(figsize=(9, 4), layout="constrained")
    ax = figure.subplots()
    assert shown["card of 48"].plot(ax) is ax
    figure.draw_without_rendering()
    apart(figure)
    assert any("smaller changes" in text.get_text() for text in texts(figure))


def test_no_number_of_a_card_is_shortened(shown):
    for what in ("card", "card of 48", "card without ranges"):
        figure, _ = drawn(shown[what])
        written = {text.get_text() for text in texts(figure)}
        for change in shown[what].changes:
            assert {change.range_text, change.delta} <= written
            assert f"{change.shown[0]} \N{RIGHTWARDS ARROW} {change.shown[1]}" in written


def test_panels_stand_side_by_side(shown):
    figure = Figure(figsize=(13, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    shown["map"].plot(left)
    shown["transitions"].plot(right)
    figure.draw_without_rendering()
    uncut(figure)


def test_hostile_names_are_written_literally():
    made, table = wide("hostile")
    cf = made.explain(table.head(1), target="each")
    weights = Weights.from_voice(made)
    plane = Plane.of_columns(made, table.head(1), "$x_1$", "<script>alert(1)</script>")
    for display in (
        ChangeCard.from_counterfactuals(cf, 0), weights,
        SegmentMap.from_voice(made, table, plane, cf, 0), Transitions.from_counterfactuals(cf),
    ):  # fmt: skip
        figure, _ = drawn(display)
        uncut(figure)
        for text in texts(figure):
            assert "\n" not in text.get_text() or not text.get_text().startswith("two")
            assert not text.get_parse_math() or "$" not in text.get_text()
        display.save(BytesIO(), dpi=50)


def test_a_file_shows_the_dollar_signs_of_a_name():
    made, table = wide("hostile")
    plane = Plane.of_columns(made, table.head(1), "$x_1$", "<script>alert(1)</script>")
    file = BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure, _ = drawn(SegmentMap.from_voice(made, table, plane))
        figure.savefig(file, format="svg")
    written = file.getvalue().decode()
    assert "$x_1$" in written
    assert "<script>" not in written
    assert "&lt;script&gt;" in written


def test_300_columns_show_30_and_the_sum_of_the_rest():
    rng = np.random.default_rng(0)
    weights = rng.exponential(size=300)
    names = [f"column {c}" for c in range(300)]
    found = VoICE.from_centers(rng.normal(size=(3, 300)), weights=weights, feature_names=names)
    display = Weights.from_voice(found)
    figure, ax = drawn(display)
    bars = [bar.get_width() for bar in ax.patches]
    expected = np.sort(weights / weights.sum())[::-1]
    np.testing.assert_allclose(bars, [*expected[:30], expected[30:].sum()])
    assert ax.get_yticklabels()[-1].get_text() == "270 other columns together"
    apart(figure)


def test_numbers_in_the_cells_are_the_medians(shown):
    _, ax = drawn(shown["transitions"])
    cost = shown["transitions"].cost
    written = {t.get_position(): t.get_text() for t in ax.texts if t.get_text()}
    for i, j in np.ndindex(cost.shape):
        if i != j:
            assert written[(j + 0.5, i + 0.5)] == compact(cost[i, j])
    assert (0.5, 0.5) not in written


def test_notebooks_get_a_picture(shown):
    assert shown["tradeoff"]._repr_png_().startswith(b"\x89PNG")


# The answers' own plot.


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["card", "map"])
def test_an_answer_plots_itself(kind, theme):
    cf = voice().explain(WINES.head(2), target="each")
    ax = cf.plot(1, kind, theme=theme)
    plt.close(ax.figure)
    ax.figure.savefig(BytesIO(), format="svg")


def test_a_map_takes_data_and_two_columns():
    cf = voice().explain(WINES.head(2), target="each")
    ax = cf.plot(0, "map", data=WINES, plane=("alcohol", "proline"))
    plt.close(ax.figure)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("alcohol", "proline")
    assert sum(len(dots.get_offsets()) for dots in ax.collections) == len(WINES)


def test_what_plot_does_not_know_it_names():
    cf = voice().explain(WINES.head(1), target="each")
    with pytest.raises(OptionError, match=r"kind='pie'.*'card', 'map'"):
        cf.plot(kind="pie")
    with pytest.raises(OptionError, match='data and plane are for kind="map"'):
        cf.plot(data=WINES)
    with pytest.raises(OptionError, match='"light", "dark"'):
        cf.plot(theme="blue")
    with pytest.raises(ColumnError, match="did you mean 'proline'"):
        cf.plot(kind="map", plane=("alcohol", "prolin"))
    with pytest.raises(OptionError, match="what='costs'"):
        Transitions.from_counterfactuals(cf).plot(what="costs")
    with pytest.raises(OptionError, match="3 names"):
        Transitions.from_counterfactuals(cf).plot(names=["a"])
    plt.close("all")


def test_without_matplotlib_the_remedy_is_named(monkeypatch):
    cf = voice().explain(WINES.head(1), target="each")
    real = builtins.__import__

    def without(name, *rest):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    for draw in (cf.plot, lambda: ChangeCard.from_counterfactuals(cf, 0).save(BytesIO())):
        with pytest.raises(ImportError, match=r'pip install "voicecf\[plot\]"'):
            draw()
    assert ChangeCard.from_counterfactuals(cf, 0)._repr_png_() is None


# Colours.


def linear(color: str) -> np.ndarray:
    value = np.array(matplotlib.colors.to_rgb(color))
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = xyz @ light / np.array([0.95047, 1.0, 1.08883])
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def lightness(color: str) -> float:
    return float(lab(linear(color))[0])


# What is left of light to colour-blind eyes (Machado, Oliveira and Fernandes, 2009).
EYES = {
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                 [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900]],
}  # fmt: skip


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_colours_of_clusters_differ_in_grey(theme: Theme):
    steps = [abs(lightness(a) - lightness(b)) for a, b in combinations(theme.palette, 2)]
    assert min(steps) > 6.5


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_colours_of_clusters_differ_for_colour_blind_eyes(theme: Theme, eyes: str):
    seen = [lab(np.clip(np.array(EYES[eyes]) @ linear(c), 0, 1)) for c in theme.palette]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 19


def test_no_two_of_77_clusters_share_colour_and_marker():
    marks = {(LIGHT.color(t), LIGHT.marker(t)) for t in range(77)}
    assert len(marks) == 77


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=lambda theme: theme.name)
def test_text_has_the_contrast_that_accessibility_asks_for(theme: Theme):
    luminance = [float(np.array([0.2126, 0.7152, 0.0722]) @ linear(c)) for c in
                 (theme.paper, theme.ink, theme.faint)]  # fmt: skip
    for text in luminance[1:]:
        high, low = max(text, luminance[0]), min(text, luminance[0])
        assert (high + 0.05) / (low + 0.05) > 4.5


def test_long_names_keep_both_ends():
    assert legible("x" * 100 + "end", 20).endswith("end")
    assert len(legible("x" * 100, 20)) == 20
