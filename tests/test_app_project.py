"""What a visitor works on is kept, and comes back the same."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("streamlit")

from app_tables import people
from voicecf import VoICE, load
from voicecf.app.campaign.runs import plan, present
from voicecf.app.data import preparing
from voicecf.app.data.columns import Role
from voicecf.app.data.preparing import Method
from voicecf.app.data.reading import ReadingError
from voicecf.app.project import Project, ProjectChoices, Store, StoreError
from voicecf.app.project.store import IN_MEMORY
from voicecf.app.row.answers import of_project
from voicecf.app.row.question import Objective


def as_csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def worked_on(store: Store) -> Project:
    """Choose a little of everything."""
    project = store.create("people.csv", as_csv(people()))
    project.choose_roles({"visits": Role.ASIDE})
    project.change(k=4, method=Method.SHARK)
    project.rename(2, "Regulars")
    project.ask(row=7, target=2, objective=Objective.LEAST, margin=10)
    project.allow(immutable=["age"], bounds={"income": ["...", 4000.0]}, levels={"job": ["clerk"]})
    project.save()
    return project


def test_all_that_was_chosen_comes_back(store: Store) -> None:
    project = worked_on(store)
    again = Store(store.folder).open(project.id)
    assert again is not project
    assert again.choices == project.choices
    assert again.names[2] == "Regulars"
    pd.testing.assert_frame_equal(again.table.frame, project.table.frame)
    np.testing.assert_array_equal(again.segments.labels, project.segments.labels)
    assert of_project(again).found.text(0) == of_project(project).found.text(0)


def test_a_session_file_opens_elsewhere(store: Store, tmp_path: Path) -> None:
    project = worked_on(store)
    elsewhere = Store(tmp_path / "elsewhere")
    again = elsewhere.take(store.export(project))
    assert again.choices == project.choices
    assert of_project(again).found.text(0) == of_project(project).found.text(0)
    assert again.id != project.id


def test_a_session_file_brings_the_segments_themselves(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = worked_on(store)
    content = store.export(project)
    monkeypatch.setattr(preparing, "SEED", 5)  # as if other versions fitted otherwise
    again = Store(tmp_path / "elsewhere").take(content)
    np.testing.assert_array_equal(
        again.segments.model[-1].cluster_centers_, project.segments.model[-1].cluster_centers_
    )
    assert again.segments.warnings == project.segments.warnings
    assert again.names == project.names


def test_choices_survive_being_written() -> None:
    allowed = {
        "immutable": ["a"], "bounds": {"c": [1.5, "..."]}, "levels": {"d": ["x"]}, "max_changes": 3,
    }  # fmt: skip
    choices = ProjectChoices("t.csv", roles={"a": Role.CATEGORY}, rules=allowed, axes=("a", "b"))
    assert ProjectChoices.from_json(choices.to_json()) == choices


def session_file(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "."), content)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive",
        session_file(choices__json=b"{}"),
        session_file(choices__json=b'{"table": "a.csv", "k": "many"}', table__csv=b"a\n1\n"),
        session_file(table__csv=b"a,b\n1,2\n"),
        session_file(choices__json=b'{"table": "a.csv"}'),
        session_file(**{"../../choices.json": b'{"table": "a.csv"}'}),
    ],
)
def test_what_is_no_session_file_is_refused_and_leaves_nothing(
    store: Store, content: bytes
) -> None:
    with pytest.raises(StoreError, match="no session file"):
        store.take(content)
    assert store.projects() == []
    assert list(store.folder.iterdir()) == []


def test_a_member_outside_its_folder_is_not_unpacked(store: Store, tmp_path: Path) -> None:
    content = session_file(
        choices__json=b'{"table": "a.csv"}', table__csv=as_csv(people()), **{"../evil.csv": b"x"}
    )
    project = store.take(content)
    assert sorted(p.name for p in project.folder.iterdir()) == ["choices.json", "table.csv"]
    assert not (tmp_path / "evil.csv").exists()


def test_a_file_that_cannot_be_read_leaves_everything_as_it_was(store: Store) -> None:
    project = worked_on(store)
    with pytest.raises(ReadingError):
        store.create("bad.csv", b"a,b\n1,2\n3,4,5\n")
    assert [kept.id for kept in store.projects()] == [project.id]


def test_a_deleted_project_is_gone(store: Store) -> None:
    project = worked_on(store)
    store.delete(project.id)
    assert list(store.folder.iterdir()) == []
    with pytest.raises(StoreError, match="no longer, kept"):
        store.open(project.id)
    project.change(k=3)
    project.save()
    assert list(store.folder.iterdir()) == [], "what was deleted is not written again"


@pytest.mark.parametrize("id", ["", "..", "../..", "a/b", "nosuchproj", "x" * 300, "a\0b"])
def test_an_address_that_names_no_project_is_refused(store: Store, id: str) -> None:
    with pytest.raises(StoreError):
        store.open(id)
    store.delete(id)
    assert store.folder.exists()


def test_results_of_few_projects_are_in_memory(store: Store) -> None:
    content = as_csv(people())
    projects = [store.create(f"{i}.csv", content) for i in range(IN_MEMORY + 3)]
    with_results = [p for p in projects if p._results]
    assert with_results == projects[-IN_MEMORY:]
    assert store.open(projects[0].id) is projects[0], "controls of an open page speak to it"
    assert projects[0].table.frame.shape == (150, 5)


def test_a_result_is_computed_once(store: Store) -> None:
    project = store.create("people.csv", as_csv(people()))
    calls: list[int] = []
    for key in ("a", "b", "a", "c", "a", "b"):
        project.once("test", key, lambda: calls.append(1), most=2)
    assert len(calls) == 4, "a, b, c, and b once more: the two most recent are kept"


def test_names_belong_to_the_segments_that_they_were_given_to(store: Store) -> None:
    project = store.create("people.csv", as_csv(people()))
    project.change(k=3)
    project.rename(0, "Regulars")
    project.change(k=4)
    assert "Regulars" not in project.names
    project.change(k=3)
    assert project.names[0] == "Regulars"


def test_names_and_runs_belong_to_what_the_segments_are_not_to_how_they_came_about(
    store: Store,
) -> None:
    project = store.create("people.csv", as_csv(people()))
    project.change(k=3)
    project.rename(0, "Regulars")
    key = project.segments_key
    project.choose_roles({"visits": Role.ASIDE})
    assert project.segments_key != key
    project.choose_roles({"visits": Role.WHOLE})
    assert project.segments_key == key
    assert project.names[0] == "Regulars"


def test_the_model_that_is_taken_away_has_the_names(store: Store, tmp_path: Path) -> None:
    project = worked_on(store)
    project.named_explainer().save(tmp_path / "model.voicecf")
    loaded = load(tmp_path / "model.voicecf", expected=VoICE)
    assert loaded.learned_.names == tuple(loaded.names) == project.names
    assert project.names[2] == "Regulars"
    assert loaded.contraction == 0.9
    assert "Regulars" not in project.segments.voice.learned_.names


def test_a_target_among_other_segments_is_forgotten(store: Store) -> None:
    project = store.create("people.csv", as_csv(people()))
    project.change(k=4)
    project.ask(target=2)
    plan(project, target=1, sources=(0, 3))
    assert project.question.target == 2
    assert (present(project).target, present(project).sources) == (1, (0, 3))
    project.choose_roles({"visits": Role.ASIDE})
    assert project.question.target is None
    assert (present(project).target, present(project).sources) == (None, ())
    project.ask(target=1)
    assert present(project).target is None, "the campaign's is not taken for one of the new ones"


def test_what_is_locked_stays_locked_whatever_it_is_used_as(store: Store) -> None:
    frame = people().assign(born=pd.date_range("1960-01-01", periods=150, freq="60D"))
    project = store.create("people.csv", as_csv(frame))
    project.choose_roles({"born": Role.YEARS})
    project.allow(increase_only=["visits"])
    assert "years since born" in project.question.allowed["immutable"]
    project.choose_roles({"born": Role.DAYS})
    assert "days since born" in project.question.allowed["immutable"]
    assert "age" in project.question.allowed["immutable"]


def test_the_last_ten_changes_can_be_taken_back(store: Store) -> None:
    project = store.create("people.csv", as_csv(people()))
    for k in range(2, 14):
        project.change(k=k)
        project.save()
    for k in range(12, 2, -1):
        project.undo()
        assert project.choices.k == k
    assert not project.can_undo
    assert Store(store.folder).open(project.id).choices.k == 3


def test_the_first_question_is_from_the_least_worth_to_the_most(store: Store) -> None:
    frame = people()
    frame["revenue"] = frame["age"] * 10.0
    project = store.create("people.csv", as_csv(frame))
    by = project.table.frame["revenue"].groupby(project.segments.labels).mean()
    asked = present(project)
    assert (asked.sources, asked.target) == ((by.idxmin(),), by.idxmax())
    assert project.question.allowed["immutable"] == ["age", "revenue"]
    plan(project, sources=())
    assert (present(project).sources, present(project).target) == ((), by.idxmax())
