"""Explaining files: read, answer and write part by part, and go on where a run was cut off."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from voicecf.errors import DataError, known_option
from voicecf.files.ahead import ahead
from voicecf.files.badrows import HEADER, BadRow, BadRowError, Check
from voicecf.files.entry import Answering
from voicecf.files.folder import (
    Appended,
    Journal,
    OutputError,
    locked,
    read_json,
    room_for,
    sync_folder,
    write_whole,
)
from voicecf.files.opening import check_apart, open_source
from voicecf.files.parts import Form, Sink, form_of
from voicecf.files.progress import Bar
from voicecf.files.reading import Chunk, Source, in_parts
from voicecf.files.request import Request, differences, digest, plain_question, same
from voicecf.files.tally import Tally
from voicecf.saving import load_explainer, save

if TYPE_CHECKING:
    from voicecf.learned.explainer import Explainer

__all__ = ["Work", "explain_files"]

# Rows of the input that make a part: where answers are projections, and where they are searches.
PART, SEARCHED = 1 << 17, 1 << 13
# What a work folder holds, up to the first point of a name.
OURS = ("manifest", "explainer", "journal", "data", "parts", "bad", "finished", "replaced", "")


def explain_files(
    voice: Explainer,
    given: Any,
    output: Any,
    *,
    bad_rows: Literal["stop", "skip"] = "stop",
    overwrite: bool = False,
    restart: bool = False,
    part_rows: int | None = None,
    bar: Bar | None = None,
    **question: Any,
) -> Tally:
    """Answer the rows of CSV or Parquet files into another file, or a folder of them.

    Work is kept in a folder beside the output, ``OUTPUT.partial``, a part at a time. A run that was
    cut off, at whatever moment, goes on there when it is called again with the same arguments, and
    ends with the same bytes; the output appears in one step when all is done, with
    ``OUTPUT.manifest.json`` beside it.

    Parameters
    ----------
    voice : VoICE or CFCLUST
        Fitted.
    given : path or Source
        A CSV or Parquet file, or a folder of them.
    output : path
        Ends in .parquet or .csv, or is a folder.
    bad_rows : "stop" or "skip"
        What to do about a row that cannot be answered: raise, or leave it out and list it in
        ``OUTPUT.bad.csv``.
    overwrite : bool
        Whether an output that is there may be replaced, once the new one is whole.
    restart : bool
        Whether to drop what an earlier run with other options left in the work folder.
    part_rows : int, optional
        Rows of the input that make a part.
    bar : Bar, optional
        Is told about the progress.
    **question
        `target`, `objective`, `rules` and so on, as of `VoICE.explain`.

    Returns
    -------
    Tally
        What became of the rows.
    """
    known_option(bad_rows, ("stop", "skip"), "bad_rows")
    source = given if isinstance(given, Source) else open_source(given)
    check_apart(source.files, Path(output))
    options = {"question": plain_question(question), "model": digest(voice)}
    request = Request(source, Path(output), options, question, bad_rows, part_rows)
    work = Work(request, overwrite, restart, bar or Bar(quiet=True))
    return work.done(lambda: voice)


@dataclass
class Work:
    """One run, from the first look at the output to the last renaming.

    Attributes
    ----------
    request : Request
    overwrite, restart : bool
        As of `explain_files`.
    bar : Bar
    """

    request: Request
    overwrite: bool = False
    restart: bool = False
    bar: Bar = field(default_factory=lambda: Bar(quiet=True))
    went_on: int = 0
    nothing_to_do: bool = False
    voice: Explainer | None = None

    def __post_init__(self) -> None:
        """Name the files."""
        output = self.request.output
        self.folder = output.with_name(output.name + ".partial")
        self.told = output.with_name(output.name + ".manifest.json")
        self.bad = output.with_name(output.name + ".bad.csv")

    def done(self, make: Callable[[], Explainer]) -> Tally:
        """Do what is left to do; `make` gives the explainer where an earlier run kept none."""
        with locked(self.request.output):
            manifest = self.request.manifest()
            finished = self._finished(manifest)
            if finished is None:
                self._prepare(manifest)
                self.voice = self._explainer(manifest, make)
                finished = self._answered(self.voice, manifest)
            self._hand_over()
        return Tally(**finished["summary"])

    def _finished(self, manifest: dict[str, Any]) -> dict[str, Any] | None:
        """Return what an earlier run that came to its end says; refuse to harm other outputs."""
        ended = read_json(self.folder / "finished.json")
        if ended is not None and same(ended, manifest):
            return dict(ended)
        output, told = self.request.output, read_json(self.told)
        if self.overwrite or not output.exists() or _is_empty_folder(output):
            return None
        if told is None:
            raise OutputError(
                f"{output} is there already, and voicecf did not write it. Give another output, or "
                "--overwrite."
            )
        if not same(told, manifest):
            raise OutputError(
                f"{output} is there already, for another question: {differences(told, manifest)}. "
                "Give another output, or --overwrite."
            )
        self.nothing_to_do = True
        return dict(told)

    def _prepare(self, manifest: dict[str, Any]) -> None:
        """Make the work folder, or find that it is of the same question."""
        before = read_json(self.folder / "manifest.json")
        if before is not None and not same(before, manifest) and not _any_part(self.folder):
            before = None  # nothing is lost but the fit
        if before is not None and not same(before, manifest) and not self.restart:
            raise OutputError(
                f"{self.folder} holds the work of a run that was cut off, for another question: "
                f"{differences(before, manifest)}. Ask the same again to go on, drop that work "
                "with --restart, or give another output."
            )
        if before is None or self.restart or (self.folder / "finished.json").exists():
            _remove(self.folder)
        with room_for(self.request.output.parent, 4096, "it starts again"):
            self.folder.mkdir(exist_ok=True)

    def _explainer(self, manifest: dict[str, Any], make: Callable[[], Explainer]) -> Explainer:
        """Return the explainer that an earlier run kept, or a new one, which is kept."""
        kept = self.folder / "explainer.voicecf"
        if not (self.folder / "manifest.json").exists():
            voice = make()
            with room_for(self.folder, 1 << 20, "it starts again"):
                save(voice, kept)
                write_whole(self.folder / "manifest.json", _json(manifest))
        # What was kept is read even if it was just written: both runs have the very same.
        return load_explainer(kept)  # type: ignore[no-any-return]

    def _answered(self, voice: Explainer, manifest: dict[str, Any]) -> dict[str, Any]:
        """Answer all parts that are not on the disk yet."""
        source = self.request.source
        answering = Answering.of(voice, source.schema, self.request.question)
        size = self.request.part_rows or _part_rows(voice, self.request.question)
        form = form_of(self.request.output, self.request.options.get("format"))
        log = Log.opened(self.folder, form, answering.schema)
        self._check_bad_rows(log.tally)
        self.went_on = start = size * log.parts
        self.bar.begin(start, source.total)
        parts = self._parts(Check.of(voice, source.schema.names), size, start)
        with closing(ahead(parts, 2)) as read, closing(ahead(_answers(answering, read), 1)) as made:
            for part in made:
                log.add(part, f"it goes on at row {size * log.parts:,}")
                self.bar.reach(part.end)
        self.bar.end()
        if source.fingerprint() != manifest["input"]:
            raise DataError("the input was changed while it was being read; run again --restart.")
        return log.finish(manifest, self.folder)

    def _parts(self, check: Check, size: int, start: int) -> Iterator[list[Chunk]]:
        """Read parts, and take bad rows out of them."""
        for part in in_parts(self.request.source.chunks(start), size, start):
            sound = [chunk.without(check.cells(chunk.table)) for chunk in part]
            for bad in (bad for chunk in sound for bad in chunk.bad):
                if self.request.bad_rows == "stop" and not self._left_out(bad):
                    raise BadRowError(bad)
            yield sound

    def _check_bad_rows(self, tally: Tally) -> None:
        """Refuse to go on without bad rows where some were left out already."""
        if tally.bad and self.request.bad_rows == "stop" and not self.request.quiet_gaps:
            raise OutputError(
                f"the run that was cut off left out {tally.bad:,} bad rows. Go on with --bad-rows "
                "skip, or start again with --restart."
            )

    def _left_out(self, bad: BadRow) -> bool:
        return self.request.quiet_gaps and bad.missing

    def _hand_over(self) -> None:
        """Put the finished result into its place; a run that dies here is ended by the next one."""
        finished = read_json(self.folder / "finished.json")
        if finished is None:
            self._clear_up()
            return
        output = self.request.output
        result = self.folder / finished["result"]
        if result.exists():
            if output.is_dir() or (output.exists() and result.is_dir()):
                output.rename(self.folder / "replaced")
            result.replace(output)
        listed = self.folder / "bad.csv"
        if listed.exists():
            listed.replace(self.bad)
        elif not finished["summary"]["bad"]:
            self.bad.unlink(missing_ok=True)  # of an output that was replaced
        (self.folder / "finished.json").replace(self.told)
        sync_folder(output.parent)
        _remove(self.folder)

    def _clear_up(self) -> None:
        """Remove what a run that died at its very end left."""
        left = read_json(self.folder / "manifest.json")
        if left is None or same(left, self.request.manifest()):
            with suppress(OutputError):
                _remove(self.folder)


@dataclass
class Part:
    """Answers to a part of the rows."""

    batch: pa.RecordBatch
    tally: Tally
    bad: list[BadRow]
    end: int


@dataclass
class Log:
    """What is on the disk: parts in a sink, bad rows in a list, and a journal that counts both."""

    journal: Journal
    sink: Sink
    listed: Appended
    tally: Tally

    @classmethod
    def opened(cls, folder: Path, form: Form, schema: pa.Schema) -> Log:
        """Go on after what the journal says is done."""
        journal, done = Journal(folder / "journal.jsonl"), []
        last: dict[str, Any] = {"listed": 0, "tally": {}}
        for last in journal.resume():
            done.append(last["output"])
        listed = Appended(folder / "bad.csv")
        listed.cut(last["listed"])
        sink = form(folder, schema)
        sink.resume(done)
        return cls(journal, sink, listed, Tally(**last["tally"]))

    @property
    def parts(self) -> int:
        """Number of parts that are done."""
        return self.journal.count

    def add(self, part: Part, goes_on: str) -> None:
        """Put a part on the disk, and then into the journal."""
        with room_for(self.sink.folder, part.batch.nbytes, goes_on):
            output = self.sink.add(part.batch)
            if part.bad:
                head = "" if self.listed.length else HEADER
                self.listed.add((head + "".join(bad.line() for bad in part.bad)).encode())
            self.tally = self.tally.plus(part.tally)
            entry = {"output": output, "listed": self.listed.length, "tally": self.tally.to_dict()}
            self.journal.add(entry)

    def finish(self, manifest: dict[str, Any], folder: Path) -> dict[str, Any]:
        """Complete the result, and say that it is complete."""
        with room_for(folder, 1 << 20, "it goes on at the end"):
            result = self.sink.finish()
            finished = {**manifest, "result": result.name, "summary": self.tally.to_dict()}
            write_whole(folder / "finished.json", _json(finished))
        return finished


def _answers(answering: Answering, parts: Iterable[list[Chunk]]) -> Iterator[Part]:
    for part in parts:
        table = answering.table(pa.concat_tables([chunk.table for chunk in part]).combine_chunks())
        rows = np.concatenate([chunk.rows for chunk in part])
        bad = [bad for chunk in part for bad in chunk.bad]
        answers, tally = answering.explained(table), Tally()
        tally.add(answers, len(rows), len(bad))
        yield Part(answering.batch(answers, table, rows), tally, bad, part[-1].end)


def _part_rows(voice: Explainer, question: dict[str, Any]) -> int:
    """Return how many rows make a part: so many that one takes seconds, not minutes."""
    space = voice.space_
    words = set(question) - {"target", "objective", "deepen"}
    projected = space.continuous and question.get("objective") != "fewest"
    size = PART if projected and words <= {"immutable", "bounds"} else SEARCHED
    pairs = voice.clustering_.n_clusters - 1 if question.get("target") == "each" else 1
    return max(size // pairs, 1 << 10)


def _json(content: Any) -> bytes:
    return json.dumps(content, indent=1, sort_keys=True).encode("ascii") + b"\n"


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())


def _any_part(folder: Path) -> bool:
    """Tell whether a part is on the disk."""
    journal = folder / "journal.jsonl"
    return journal.exists() and journal.stat().st_size > 0


def _remove(folder: Path) -> None:
    """Remove a work folder, and nothing that is none."""
    if not folder.exists():
        return
    ours = folder.is_dir() and all(p.name.split(".")[0] in OURS for p in folder.iterdir())
    if not ours:
        raise OutputError(f"{folder} is in the way, and is no work of voicecf; move it elsewhere.")
    shutil.rmtree(folder)
