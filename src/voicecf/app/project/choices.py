"""All that a visitor chose about a table: one plain value, written as JSON and read again."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

import msgspec

from voicecf.app.campaign.plan import Campaign, Run
from voicecf.app.data.columns import Role
from voicecf.app.data.preparing import Method, Missing
from voicecf.app.row.question import RowQuestion, Words
from voicecf.files import Reading


@dataclass(frozen=True)
class ProjectChoices:
    """What was chosen; what is None or left out is guessed.

    Attributes
    ----------
    table : str
        What the table is called: the name of its file.
    example : str
        The example that is used instead of a file, if any.
    things : str
        What rows are, such as "customers"; guessed if it is empty.
    taken : date
        The day on which the table was taken.
    reading : Reading
        How the file is read.
    roles : dict of str to Role
        What columns are used as, where that is not what was guessed.
    missing : Missing or None
    keep_spellings : bool
        Whether levels that differ in case or blanks alone stay apart.
    k : int or None
        How many segments.
    method : Method
    names : dict of str to list of str
        What segments are called, by what the segments depend on.
    question : RowQuestion
        Its rules are `rules`.
    rules : dict or None
        What may change, as words of `voicecf.Rules`; None for what is guessed from the columns.
    aimed : str
        Tells which segments the targets of question and campaign were chosen among.
    axes : tuple of str
        Two columns that a map shows; none of them for the best view.
    campaign : Campaign
        What is asked of many rows; its rules are `rules`.
    runs : tuple of Run
        What was answered, the latest last.

    Examples
    --------
    >>> from voicecf.app.project import ProjectChoices
    >>> ProjectChoices.from_json(ProjectChoices("customers.csv", k=4).to_json()).k
    4
    """

    table: str
    example: str = ""
    things: str = ""
    taken: date = field(default_factory=date.today)
    reading: Reading = field(default_factory=Reading)
    roles: dict[str, Role] = field(default_factory=dict)
    missing: Missing | None = None
    keep_spellings: bool = False
    k: int | None = None
    method: Method = Method.KMEANS
    names: dict[str, list[str]] = field(default_factory=dict)
    question: RowQuestion = field(default_factory=RowQuestion)
    rules: Words | None = None
    aimed: str = ""
    axes: tuple[str, ...] = ()
    campaign: Campaign = field(default_factory=Campaign)
    runs: tuple[Run, ...] = ()

    def to_json(self) -> bytes:
        """Write it."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1)

    @classmethod
    def from_json(cls, text: bytes) -> ProjectChoices:
        """Read it; raises a ValueError if it is anything else."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError as error:
            raise ValueError(str(error)) from None
