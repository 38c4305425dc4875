"""What one visitor is working on, and results that are kept so that nothing is done twice."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

import streamlit as st

from voicecf.app import answers, blocks, pairwise
from voicecf.app.charts import DARK, LIGHT, Ink
from voicecf.app.columns import Column, Role, RoleError, guess_columns, with_roles
from voicecf.app.everyone import Everyone, overview
from voicecf.app.examples import customers
from voicecf.app.preparing import Method, Missing, Prepared, prepare, usual_missing
from voicecf.app.question import Question
from voicecf.app.reading import Table
from voicecf.app.segments import (
    Segments,
    Suggestion,
    fit_segments,
    given_names,
    suggest_k,
)
from voicecf.errors import VoiceError
from voicecf.plots import Transitions

LOGGER = logging.getLogger(__name__)
FAILED = (
    "Something went wrong here that should not have. Another table, or other columns, may work; "
    "the terminal that the app was started from has the details."
)


@dataclass
class Work:
    """All that a visitor chose. Pages change it, and read results off it."""

    table: Table | None = None
    upload: str = ""
    problem: str = ""
    roles: dict[str, Role] = field(default_factory=dict)
    refused: str = ""
    edits: int = 0
    missing: Missing | None = None
    k: int | None = None
    method: Method = Method.KMEANS
    names: dict[tuple[str, int, Method], list[str]] = field(default_factory=dict)
    question: Question = field(default_factory=Question)
    axes: tuple[str, str] | None = None
    everyone: dict[str, Everyone] = field(default_factory=dict)

    def take(self, table: Table) -> None:
        """Begin with another table."""
        fresh = Work(table=table, upload=self.upload)
        self.__dict__.update(fresh.__dict__)

    @property
    def key(self) -> str:
        """Tell apart what the segments depend on."""
        chosen = sorted(f"{name!r}: {role.name}" for name, role in self.roles.items())
        assert self.table is not None
        return f"{self.table.digest} {chosen} {self.missing}"

    def ask(self, **changed: Any) -> None:
        """Change the question."""
        self.question = replace(self.question, **changed)


def work() -> Work:
    """Return what this visitor works on; the customers of the first example, to begin with."""
    if "work" not in st.session_state:
        st.session_state["work"] = Work(table=customers())
    found: Work = st.session_state["work"]
    return found


def tied(name: str, value: Any, change: Callable[[Any], None]) -> dict[str, Any]:
    """Tie a widget to a value: it always shows it, and what the visitor does changes it."""
    key = f"control {name}"
    st.session_state[key] = value
    return {"key": key, "on_change": lambda: change(st.session_state[key])}


def ink() -> Ink:
    """Return what to draw with on the visitor's page, light or dark."""
    return DARK if getattr(st.context.theme, "type", None) == "dark" else LIGHT


# Results, kept by what they depend on. Arguments that begin with _ are not compared.


@st.cache_resource(max_entries=8, show_spinner=False)
def _guessed(digest: str, _table: Table) -> tuple[Column, ...]:
    return guess_columns(_table.frame)


def columns(now: Work) -> tuple[Column, ...]:
    """Return what each column is used as; raises a RoleError where that cannot be."""
    assert now.table is not None
    return with_roles(now.table.frame, _guessed(now.table.digest, now.table), now.roles)


def choose_roles(now: Work, chosen: Mapping[str, Role]) -> None:
    """Use columns as something else, if they can be; else say why not."""
    before = now.roles
    now.roles, now.refused, now.edits = {**before, **chosen}, "", now.edits + 1
    try:
        columns(now)
    except RoleError as error:
        now.roles, now.refused = before, str(error)


@st.cache_resource(max_entries=8, show_spinner=False)
def _prepared(key: str, _now: Work) -> Prepared:
    table, found = _now.table, columns(_now)
    assert table is not None
    return prepare(table.frame, found, _now.missing or usual_missing(table.frame, found))


def prepared(now: Work) -> Prepared:
    """Return the rows that can be clustered."""
    return _prepared(now.key, now)


@st.cache_resource(max_entries=16, show_spinner="Looking for a good number of segments ...")
def _suggested(key: str, _now: Work) -> Suggestion:
    return suggest_k(prepared(_now))


def suggestion(now: Work) -> Suggestion:
    """Return how many segments to make."""
    return _suggested(now.key, now)


@st.cache_resource(max_entries=12, show_spinner="Finding segments ...")
def _fitted(key: str, k: int, method: str, _now: Work) -> Segments:
    return fit_segments(prepared(_now), k, Method(method))


def segments(now: Work, method: Method | None = None) -> Segments:
    """Return the fitted segments, as many as chosen or else suggested."""
    k = now.k or suggestion(now).k
    return _fitted(now.key, k, str(method or now.method), now)


def names(now: Work) -> tuple[str, ...]:
    """Return what the segments are called."""
    k = now.k or suggestion(now).k
    assert now.table is not None
    return given_names(k, now.names.get((now.table.digest, k, now.method), []))


@st.cache_resource(max_entries=64, show_spinner=False)
def _answered(key: str, question: str, _segments: Segments, _question: Question) -> Any:
    return answers.answer(_segments, _question, ("",) * _segments.k)


def segments_key(now: Work) -> str:
    """Tell apart what answers depend on besides the question."""
    return f"{now.key} {now.k} {now.method}"


def answer(now: Work) -> answers.Answer:
    """Answer the question as it stands."""
    found, asked = segments(now), settled(now)
    made: answers.Answer = _answered(segments_key(now), repr(asked), found, asked)
    return replace(made, names=names(now))


def settled(now: Work) -> Question:
    """Return the question without what no longer applies to the table and its segments."""
    rows, found = prepared(now), segments(now)
    asked = now.question
    target = asked.target if asked.target is not None and asked.target < found.k else None
    row = min(asked.row, len(rows.frame) - 1)
    now.question = replace(asked, row=row, target=target, allowed=asked.allowed.within(rows.names))
    return now.question


@st.cache_resource(max_entries=64, show_spinner=False)
def _others(key: str, question: str, _answer: answers.Answer) -> list[answers.Answer]:
    return answers.alternatives(_answer)


def alternatives(now: Work, found: answers.Answer) -> list[answers.Answer]:
    """Return other ways into the same segment."""
    made = _others(segments_key(now), repr(found.question), found)
    return [replace(one, names=found.names) for one in made]


@st.cache_resource(max_entries=64, show_spinner="Finding out how far each may go ...")
def _reaches(key: str, question: str, names: tuple[str, ...], _answer: answers.Answer) -> Any:
    return answers.reaches(_answer)


def reaches(now: Work, found: answers.Answer) -> list[answers.Reach]:
    """Return how far each changed column may go."""
    made: list[answers.Reach] = _reaches(
        segments_key(now), repr(found.question), found.names, found
    )
    return made


@st.cache_resource(max_entries=64, show_spinner=False)
def _obstacle(key: str, question: str, names: tuple[str, ...], _answer: answers.Answer) -> Any:
    return answers.obstacle(_answer)


def obstacle(now: Work, found: answers.Answer) -> answers.Obstacle:
    """Return why there is no answer."""
    made: answers.Obstacle = _obstacle(segments_key(now), repr(found.question), found.names, found)
    return made


@st.cache_resource(max_entries=16, show_spinner=False)
def _overview(key: str, question: str, _segments: Segments, _question: Question) -> Transitions:
    return overview(_segments, _question)


def transitions(now: Work, asked: Question) -> Transitions:
    """Return what it takes from every segment to every other one, from some of the rows."""
    return _overview(segments_key(now), repr(asked), segments(now), asked)


@st.cache_resource(max_entries=4, show_spinner="Comparing ...")
def _compared(key: str, _segments: Segments) -> pairwise.Comparison:
    return pairwise.compare(_segments)


def comparison(now: Work) -> pairwise.Comparison:
    """Compare pairwise answers with exact ones, for k-means."""
    return _compared(f"{now.key} {now.k}", segments(now, Method.KMEANS))


# Pages


def page(show: Callable[[Work], None], needs: str = "table") -> Callable[[], None]:
    """Make a page that never shows a stack trace, and says what it needs.

    Parameters
    ----------
    show : callable
        Draws the page.
    needs : "" or "table"
    """

    @wraps(show)
    def shown() -> None:
        now = work()
        if needs == "table" and now.table is None:
            st.html(blocks.notice("There is no table yet. Choose one on the page “Data”."))
            return
        try:
            show(now)
        except VoiceError as error:
            st.html(blocks.notice(str(error)))
        except MemoryError:
            st.html(
                blocks.notice("This needs more memory than there is. Use fewer rows or columns.")
            )
        except Exception:
            LOGGER.exception("a page failed")
            st.html(blocks.notice(FAILED))

    return shown
