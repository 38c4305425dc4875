"""Answers to a project's question, each computed once."""

from __future__ import annotations

from voicecf.app.project import Project
from voicecf.app.row import answers, whatif
from voicecf.app.row.answers import Obstacle, RowAnswer
from voicecf.app.row.whatif import Lever


def _key(project: Project, found: RowAnswer) -> str:
    return f"{project.segments_key} {found.question!r} {found.names}"


def answer(project: Project) -> RowAnswer:
    """Answer the question as it stands."""
    asked, segments = project.question, project.segments
    return project.once(
        "answer",
        f"{project.segments_key} {asked!r} {project.names}",
        lambda: answers.answer(segments, asked, project.names),
    )


def alternatives(project: Project, found: RowAnswer) -> list[RowAnswer]:
    """Return other ways into the same segment."""
    return project.once("alternatives", _key(project, found), lambda: answers.alternatives(found))


def with_ranges(project: Project, found: RowAnswer) -> RowAnswer:
    """Return the answer with how far each changed column may go."""
    return project.once("ranges", _key(project, found), lambda: answers.with_ranges(found))


def obstacle(project: Project, found: RowAnswer) -> Obstacle:
    """Return why there is no answer."""
    return project.once("obstacle", _key(project, found), lambda: answers.obstacle(found))


def levers(project: Project, found: RowAnswer) -> list[Lever]:
    """Return the columns whose values can be tried out."""
    return project.once("levers", _key(project, found), lambda: whatif.levers(found))
