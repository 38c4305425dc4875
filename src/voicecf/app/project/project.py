"""A table, what was chosen about it, and results, each computed once."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import pandas as pd

from voicecf import VoICE, load
from voicecf.app.data.columns import Role, TableColumn, guess_columns, with_roles
from voicecf.app.data.examples import EXAMPLES
from voicecf.app.data.preparing import Method, Prepared, prepare, usual_missing
from voicecf.app.data.reading import ReadTable, read_table
from voicecf.app.project.choices import ProjectChoices
from voicecf.app.row.question import RowQuestion, Words, within
from voicecf.app.segments.naming import check_name, given_names, tidy
from voicecf.app.segments.segments import Segments, fit_segments
from voicecf.app.segments.suggesting import Suggestion, suggest_k
from voicecf.app.words import things
from voicecf.errors import VoiceError
from voicecf.files import Reading

CHOICES, TABLE, RUNS, MODEL = "choices.json", "table", "runs", "segments"
# Results of one kind that are kept: segments that one goes back to, answers to compare.
FEW, MANY = 4, 64
# Changes that can be taken back.
STEPS = 10
# Names of columns that say what a row is worth: what is wanted, and no lever.
VALUE = re.compile(
    r"(^|[\W_])(revenue|turnover|sales|umsatz|profit|gewinn|clv|ltv|lifetime.?value|gmv)($|[\W_])",
    re.I,
)
Made = TypeVar("Made")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    half = path.with_name(f"{path.name}.half")
    half.write_bytes(content)
    half.replace(path)


class Project:
    """A table and all that was chosen about it, kept in a folder.

    Every result is a function of the table and the choices. It is computed when it is asked for,
    and remembered as long as the project is open.

    Parameters
    ----------
    folder : Path
        Where it is kept; its name is the project's name in addresses.

    Attributes
    ----------
    choices : ProjectChoices
        Changed by `change`, written by `save`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.choices = self._saved = ProjectChoices.from_json((folder / CHOICES).read_bytes())
        self._results: dict[str, OrderedDict[str, Any]] = {}
        self._earlier: list[ProjectChoices] = []
        self._lock = RLock()

    @property
    def id(self) -> str:
        """What the project is called in addresses."""
        return self.folder.name

    def change(self, **changed: Any) -> None:
        """Choose something else."""
        self.choices = replace(self.choices, **changed)

    @property
    def can_undo(self) -> bool:
        """Whether something was changed since the project is open."""
        return bool(self._earlier)

    def undo(self) -> None:
        """Take the last change back; runs that were answered stay."""
        if self._earlier:
            self.choices = self._saved = replace(self._earlier.pop(), runs=self.choices.runs)
            write_whole(self.folder / CHOICES, self.choices.to_json())

    def ask(self, **changed: Any) -> None:
        """Change the question."""
        if "target" in changed:
            self.aim()
        self.change(question=replace(self.choices.question, **changed))

    @property
    def aims(self) -> tuple[tuple[int, ...], int | None]:
        """The segments that are asked about and aimed at until the visitor says otherwise.

        From that with the least value to that with the most, where a column says what rows are
        worth; else everyone, to wherever is nearest.
        """
        worth = [c.name for c in self.columns if VALUE.search(c.name)]
        found = self.segments
        for name in worth:
            values = self.table.frame[name].iloc[found.prepared.rows]
            if pd.api.types.is_numeric_dtype(values.dtype):
                means = values.reset_index(drop=True).groupby(found.labels).mean()
                return (int(means.idxmin()),), int(means.idxmax())
        return (), None

    def aim(self) -> None:
        """Forget segments that were chosen as targets among others than the present ones."""
        if self.choices.aimed != self.segments_key:
            sources, target = self.aims
            question = replace(self.choices.question, target=None)
            campaign = replace(self.choices.campaign, sources=sources, target=target)
            self.change(aimed=self.segments_key, question=question, campaign=campaign)

    def allow(self, **changed: Any) -> None:
        """Change what may change: words of `voicecf.Rules`, None for what is no longer said."""
        words = {**self.question.allowed, **changed}
        self.change(rules={word: value for word, value in words.items() if value is not None})

    def save(self) -> None:
        """Put the choices down, if they changed."""
        if self.choices != self._saved and self.folder.exists():
            write_whole(self.folder / CHOICES, self.choices.to_json())
            if replace(self.choices, runs=self._saved.runs) != self._saved:
                self._earlier = [*self._earlier, self._saved][-STEPS:]
            self._saved = self.choices

    def once(self, kind: str, key: str, make: Callable[[], Made], most: int = MANY) -> Made:
        """Return a result, which is computed if it is not among the `most` recent of its kind.

        Parameters
        ----------
        kind : str
            What it is.
        key : str
            What it depends on.
        make : callable
            Computes it.
        most : int
        """
        with self._lock:
            kept = self._results.setdefault(kind, OrderedDict())
            if key not in kept:
                made = make()
                kept[key] = made
                while len(kept) > most:
                    kept.popitem(last=False)
            kept.move_to_end(key)
            found: Made = kept[key]
            return found

    def forget(self) -> None:
        """Let go of all results; they are computed again when they are asked for."""
        with self._lock:
            self._results.clear()

    # The table and its columns

    @property
    def things(self) -> str:
        """What rows are called."""
        return self.choices.things or things(self.choices.table)

    @property
    def table(self) -> ReadTable:
        """The table, read as was chosen."""
        reading = self.choices.reading
        return self.once("table", repr(reading), lambda: self._read(reading), most=1)

    def _read(self, reading: Reading) -> ReadTable:
        for example in EXAMPLES:
            if example.name == self.choices.example:
                return example.make()
        (file,) = self.folder.glob(f"{TABLE}.*")
        return read_table(file.read_bytes(), self.choices.table, reading)

    @property
    def raw(self) -> pd.DataFrame:
        """The cells of the table as they stand in its file, as texts; of an example, its values."""
        if self.choices.example:
            return self.table.frame
        texts = dict.fromkeys(self.table.frame, "text")
        reading = replace(self.choices.reading, kinds=texts, gaps={})
        return self.once("raw", repr(reading), lambda: self._read(reading).frame, most=1)

    @property
    def guessed(self) -> tuple[TableColumn, ...]:
        """What each column is good for."""
        return self.once(
            "guessed", repr(self.choices.reading), lambda: guess_columns(self.table.frame), most=1
        )

    @property
    def columns(self) -> tuple[TableColumn, ...]:
        """What each column is used as."""
        return with_roles(self.table.frame, self.guessed, self.choices.roles)

    def choose_roles(self, chosen: Mapping[str, Role]) -> None:
        """Use columns as something else; raises a RoleError if they cannot be."""
        roles = {**self.choices.roles, **chosen}
        before = {c.name: c.label for c in self.columns if c.role is not Role.ASIDE}
        columns = with_roles(self.table.frame, self.guessed, roles)
        rules = self.choices.rules
        if rules is not None:  # what was locked stays so, whatever it is used as
            fresh = [c for c in columns if c.label not in before.values()]
            said = rules.get("immutable", [])
            locked = [c.label for c in fresh if c.fixed or before.get(c.name) in said]
            rules = {**rules, "immutable": list(dict.fromkeys([*said, *locked]))}
        self.change(roles=roles, rules=rules)

    @property
    def prepared(self) -> Prepared:
        """The rows that can be clustered."""
        now = self.choices
        roles = sorted((name, str(role)) for name, role in now.roles.items())
        key = f"{now.reading} {now.taken} {roles} {now.missing} {now.keep_spellings}"
        return self.once("prepared", key, self._prepare, most=1)

    @property
    def rows_key(self) -> str:
        """Tells by their content which rows are clustered."""
        return self.prepared.digest

    def _prepare(self) -> Prepared:
        frame, columns = self.table.frame, self.columns
        missing = self.choices.missing or usual_missing(frame, columns)
        merge = not self.choices.keep_spellings
        return prepare(frame, columns, missing, self.choices.taken, merge=merge)

    # Segments

    @property
    def suggestion(self) -> Suggestion:
        """How many segments to make."""
        method = self.choices.method
        key = f"{self.rows_key} {method}"
        return self.once("suggestion", key, lambda: suggest_k(self.prepared, method), FEW)

    @property
    def k(self) -> int:
        """How many segments there are: as many as chosen, or else suggested."""
        return self.choices.k or self.suggestion.k

    @property
    def segments_key(self) -> str:
        """Tells what segments depend on."""
        return f"{self.rows_key} {self.k} {self.choices.method}"

    @property
    def segments(self) -> Segments:
        """The fitted segments."""
        return self.segments_by(self.choices.method)

    def segments_by(self, method: Method) -> Segments:
        """Return as many segments, found in a certain way."""
        key = f"{self.rows_key} {self.k} {method}"
        return self.once("segments", key, lambda: self._fit(method, key), FEW)

    def _fit(self, method: Method, key: str) -> Segments:
        file = self._model_file(key)
        try:
            model = load(file).model_ if file.exists() else None
        except VoiceError:  # of another version of the libraries
            model = None
        return fit_segments(self.prepared, self.k, method, model)

    def _model_file(self, key: str) -> Path:
        return self.folder / f"{MODEL}-{sha256(key.encode()).hexdigest()[:16]}.voicecf"

    def keep_model(self) -> None:
        """Put the fitted segments down, so that they are the same wherever the project is opened.

        Fitted again, by other versions of the libraries, they might be others.
        """
        self.segments.voice.save(self._model_file(self.segments_key))

    @property
    def names(self) -> tuple[str, ...]:
        """What the segments are called."""
        return given_names(self.segments.suggested_names, self._given_names)

    @property
    def _given_names(self) -> list[str]:
        """What the visitor calls the segments; empty where that was left to us."""
        given = self.choices.names.get(self.segments_key, [])
        return [*given, *[""] * self.k][: self.k]

    def named_explainer(self) -> VoICE:
        """Return the explainer that these pages use, for use elsewhere: with the names."""
        return self.segments.firmly(self.question.margin, self.names)

    def rename(self, segment: int, name: str) -> None:
        """Call a segment something else; an empty name is that which is suggested.

        Raises
        ------
        NamingError
            If another segment is called that.
        """
        given, name = self._given_names, tidy(name)
        check_name(self.names, segment, name)
        given[segment] = name
        self.change(names={**self.choices.names, self.segments_key: given})

    # The question

    @property
    def usual_rules(self) -> Words:
        """What may change until the visitor says otherwise: not what people cannot change."""
        fixed = [c.label for c in self.columns if c.fixed or VALUE.search(c.name)]
        return within({"immutable": fixed}, self.prepared.names)

    @property
    def question(self) -> RowQuestion:
        """The question, without what no longer applies to the table and its segments."""
        rows, asked, rules = self.prepared, self.choices.question, self.choices.rules
        target = asked.target if self.choices.aimed == self.segments_key else None
        row = min(asked.row, len(rows.frame) - 1)
        allowed = self.usual_rules if rules is None else within(rules, rows.names)
        return replace(asked, row=row, target=target, allowed=allowed)
