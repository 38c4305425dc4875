"""Every page, run as Streamlit runs it but without a browser, on tables that are odd or large."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

testing = pytest.importorskip("streamlit.testing.v1")

from app_tables import begun  # noqa: E402
from voicecf.app.data.columns import Role, RoleError  # noqa: E402
from voicecf.app.project import Project  # noqa: E402
from voicecf.app.row.answers import of_project  # noqa: E402
from voicecf.app.session import FAILED  # noqa: E402

PAGES = ("data", "segments", "row", "campaign", "takeaway", "method")
PAGE = """
from voicecf.app.main import PAGES
from voicecf.app.session import page
(shown,) = [one for one in PAGES if one.path == "{name}"]
page(shown.show, shown.title, shown.without)()
"""
RNG = np.random.default_rng(0)


def opened(name: str, now: Project | None) -> testing.AppTest:
    page = testing.AppTest.from_string(PAGE.format(name=name), default_timeout=120)
    if now is not None:
        page.query_params["s"] = now.id
    return page.run()


def said(page: testing.AppTest) -> str:
    return " ".join(str(block.value) for block in page.get("html"))


def table(**columns: object) -> bytes:
    return pd.DataFrame(columns).to_csv(index=False).encode()


ODD = {
    "one column": table(a=[1, 2, 3, 4, 9, 10]),
    "text only": table(a=list("xyxyxy"), b=list("uvvuuv")),
    "two different rows": table(a=[1.5, 1.5, 1.5, 2.5], b=[3.5, 3.5, 3.5, 4.5]),
    "constant columns": table(a=[1.5, 2.5, 7.5, 8.5] * 5, b=[4] * 20, c=["x"] * 20),
    "duplicate names": b"a,a,b,b\n" + b"".join(b"%d,%d,%d,0\n" % (i, i % 3, 7) for i in range(9)),
    "gaps everywhere": table(a=[1.5, None, 3.5, 4.5] * 9, b=[None, 2.5, 3.5, 9.5] * 9),
    "names from Streamlit's Markdown": table(**{
        "$a$": RNG.normal(size=30), ":red[b]": RNG.normal(size=30), "a.b[0]": RNG.normal(size=30),
        "c\nd": RNG.integers(5, size=30), "": RNG.integers(5, size=30),
    }),
    "dates, money and codes": "\n".join([
        "zip;born;joined;spend", *(
            f"{i:05d};{i % 28 + 1}.{i % 12 + 1}.{1950 + i};2019-04-{i % 30 + 1:02d};€ {i * i},50"
            for i in range(40)
        ), ";;;",  "00041;;2019-04-03;", "",
    ]).encode(),
    "300 columns": pd.DataFrame(RNG.normal(size=(120, 300))).to_csv(index=False).encode(),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_an_odd_table_never_breaks_a_page(name: str) -> None:
    now = begun(ODD[name], f"{name}.csv")
    for page in PAGES:
        shown = opened(page, now)
        assert not shown.exception
        assert FAILED not in said(shown), page


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (table(a=[1.5], b=[2.5]), "one row"),
        (table(a=["some text", "more text", "other"]), "all are set aside"),
        (table(a=[4, 4, 4], b=["x", "x", "x"]), "all are set aside"),
    ],
)
def test_a_table_that_cannot_be_clustered_gets_a_sentence(content: bytes, sentence: str) -> None:
    now = begun(content, "odd.csv")
    assert FAILED not in said(opened("data", now))
    for page in PAGES[1:]:
        assert sentence in said(opened(page, now))


def test_two_hundred_thousand_rows_are_answered() -> None:
    rows = 200_000
    group = np.arange(rows) % 3
    frame = pd.DataFrame(
        {f"c{i}": (5 * group * (i < 2) + RNG.normal(size=rows)).round(2) for i in range(4)}
    )
    now = begun(frame.to_csv(index=False).encode(), "large.csv")
    assert "200,000 rows" in said(opened("data", now))
    assert "moves from" in said(opened("row", now))


def test_without_a_table_every_page_says_what_to_do() -> None:
    for page in PAGES[1:]:
        assert "Choose one on the page" in said(opened(page, None))


def test_controls_change_the_answer() -> None:
    frame = pd.DataFrame(
        RNG.normal(size=(90, 3)) + 4 * np.eye(3)[np.arange(90) % 3], columns=list("abc")
    )
    now = begun(frame.to_csv(index=False).encode(), "abc.csv")
    page = opened("row", now)
    before = said(page)
    page = page.text_input[0].set_value("5").run()
    assert "Row 5 moves" in said(page)
    page = page.slider[0].set_value(40).run()
    assert now.question.margin == 40
    page = page.multiselect[0].set_value(["a"]).run()
    assert now.question.allowed["immutable"] == ["a"]
    page = page.multiselect[1].set_value(["a"]).run()
    assert now.question.allowed["increase_only"] == ["a"]
    assert "immutable" not in now.question.allowed, "a column is in the list it was put into last"
    page = page.text_input[0].set_value("1").run()
    page = page.slider[0].set_value(0).run()
    page = page.multiselect[1].set_value([]).run()
    assert said(page) == before


def test_a_role_that_cannot_be_is_refused_and_the_old_one_stays() -> None:
    now = begun(table(a=[1.5, 2.5, 9.5] * 9, b=list("xyz") * 9), "ab.csv")
    with pytest.raises(RoleError, match="holds text such as"):
        now.choose_roles({"b": Role.NUMBER})
    assert now.choices.roles == {}
    now.choose_roles({"b": Role.ASIDE})
    assert [c.role for c in now.columns] == [Role.NUMBER, Role.ASIDE]


def test_ranges_steps_and_levels_are_kept_to() -> None:
    group = np.arange(90) % 3
    content = table(
        size=(group + RNG.normal(0, 0.2, 90)).round(3), count=10 * group + RNG.integers(4, size=90),
        kind=np.array(list("xyz"))[group],
    )  # fmt: skip
    now = begun(content, "limits.csv")
    page = opened("row", now)
    page = page.multiselect(key="control limited").set_value(["size", "count", "kind"]).run()
    page = page.number_input(key="control step size").set_value(0.25).run()
    page = page.number_input(key="control low count").set_value(2.0).run()
    page = page.number_input(key="control high count").set_value(14.0).run()
    page = page.multiselect(key="control levels kind").set_value(["x", "y"]).run()
    page = page.number_input(key="control most").set_value(3).run()
    assert not page.exception
    found = of_project(now)
    assert found.possible
    after = found.found.to_frame().iloc[0]
    assert after["size"] % 0.25 == 0 or after["size"] == found.segments.prepared.frame["size"][0]
    assert 2 <= after["count"] <= 14
    assert after["kind"] in "xy"
    page = page.number_input(key="control low count").set_value(20.0).run()
    assert now.question.allowed["bounds"]["count"][1] == 20.0, "a range is never upside down"
    assert FAILED not in said(page)
