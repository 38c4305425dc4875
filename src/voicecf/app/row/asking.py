"""Answers to a project's question, each computed once."""

from __future__ import annotations

from dataclasses import replace

from voicecf.app.project import Project
from voicecf.app.row import answers, whatif
from voicecf.app.row.answers import Obstacle, Reach, RowAnswer
from voicecf.app.row.whatif import Lever


def _key(project: Project, found: RowAnswer) -> str:
    return f"{project.segments_key} {found.question!r} {found.names}"


def answer(project: Project) -> RowAnswer:
    """Answer the question as it stands."""
    asked, segments = project.question, project.segments
    unnamed = ("",) * segments.k
    made = project.once(
        "answer",
        f"{project.segments_key} {asked!r}",
        lambda: answers.answer(segments, asked, unnamed),
    )
    return replace(made, names=project.names)


def alternatives(project: Project, found: RowAnswer) -> list[RowAnswer]:
    """Return other ways into the same segment."""
    return project.once("alternatives", _key(project, found), lambda: answers.alternatives(found))


def reaches(project: Project, found: RowAnswer) -> list[Reach]:
    """Return how far each changed column may go."""
    return project.once("reaches", _key(project, found), lambda: answers.reaches(found))


def obstacle(project: Project, found: RowAnswer) -> Obstacle:
    """Return why there is no answer."""
    return project.once("obstacle", _key(project, found), lambda: answers.obstacle(found))


def levers(project: Project, found: RowAnswer) -> list[Lever]:
    """Return the columns whose values can be tried out."""
    return project.once("levers", _key(project, found), lambda: whatif.levers(found))
