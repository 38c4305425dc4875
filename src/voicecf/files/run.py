"""Explaining files: read, answer and write part by part, and go on where a run was cut off."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from tqdm.auto import tqdm

from voicecf.errors import DataError, SavingError, known_option, listed
from voicecf.files.badrows import BadRowError, listing, unusable
from voicecf.files.entry import Answering, rules_of
from voicecf.files.folder import DamagedError, WorkFolder, differences, locked, read_json
from voicecf.files.parts import AnsweredPart, Writer, count_parts, in_order
from voicecf.files.source import Look, Source, open_source
from voicecf.files.table import Chunk, Table
from voicecf.files.tally import Tally
from voicecf.learned.explainer import Explainer
from voicecf.saving import digest, load_explainer, save
from voicecf.saving.apart import OutputError, Paths
from voicecf.saving.whole import flush, write_whole
from voicecf.status import Status

FORMAT, VERSION = "voicecf/explain", 2
MADE_WITH = ("voicecf", "pyarrow", "duckdb", "numpy", "scikit-learn")
# Rows of the input that make a part: where answers are projections, and where they are searches.
PART, SEARCHED = 1 << 17, 1 << 13
# Parts that are answered at once, since not all of that is done by several threads by itself.
AT_ONCE = 2
# Ends of names that promise another kind of file.
OTHERS = (".xlsx", ".xls", ".json", ".jsonl", ".feather", ".arrow", ".duckdb", ".db", ".gz", ".txt")


def explain_files(
    voice: Explainer,
    given: Any,
    output: Any,
    *,
    bad_rows: Literal["stop", "skip"] = "stop",
    overwrite: bool = False,
    restart: bool = False,
    part_rows: int | None = None,
    progress: bool = False,
    rounded: bool = False,
    **question: Any,
) -> Tally:
    r"""Answer the rows of files, of a database or of a query into another file or a folder of them.

    Work is kept in a folder beside the output, ``OUTPUT.partial``, a part at a time. A run that was
    cut off, at whatever moment, goes on there when it is called again with the same arguments, and
    ends with the same bytes; the output appears in one step when all is done, with
    ``OUTPUT.manifest.json`` beside it. While it works, the folder takes as much room again as the
    answers do, and the input if that is no Parquet file. A part that is damaged is answered again.

    None of these files may be an input, hold one or replace one, by whatever name it is called.

    Parameters
    ----------
    voice : VoICE or CFCLUST
        Fitted.
    given : path or Source
        CSV, Parquet or JSON files, a folder or pattern of them, or what `open_source` returns.
    output : path
        Ends in .parquet, .csv or .tsv, or is a folder.
    bad_rows : "stop" or "skip"
        What to do about a row that cannot be answered: raise, or leave it out and list it in
        ``OUTPUT.bad.csv``.
    overwrite : bool
        Whether an output that is there may be replaced, once the new one is whole.
    restart : bool
        Whether to drop what an earlier run with other options left in the work folder.
    part_rows : int, optional
        Rows of the input that make a part.
    progress : bool
        Whether to draw a bar, on a terminal.
    rounded : bool
        Whether values are written in few digits that still land: see `Counterfactuals.rounded`.
    **question
        `target`, `objective`, `rules` and so on, as of `VoICE.explain`.

    Returns
    -------
    Tally
        What became of the rows.

    Raises
    ------
    OutputError
        If the output cannot be written, is an input, or is there already; if the work folder is of
        another question, or damaged. Nothing was written then.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from voicecf import VoICE
    >>> from voicecf.files import explain_files
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> with TemporaryDirectory() as folder:
    ...     given, output = Path(folder) / "rows.csv", Path(folder) / "answers.csv"
    ...     _ = given.write_text("age,income\n1.0,5.0\n3.0,5.0\n")
    ...     explain_files(voice, given, output, target=1).rows
    2
    """
    return Job.of(
        voice, given, output, question, bad_rows=bad_rows, part_rows=part_rows, rounded=rounded,
        overwrite=overwrite, restart=restart, progress=progress,
    ).done()  # fmt: skip


def answers_so_far(output: Any) -> pa.Table | None:
    r"""Return the answers that there are, of a finished run or of one that was cut off.

    Parameters
    ----------
    output : path
        The output of `explain_files` or of a `Job`.

    Returns
    -------
    pyarrow.Table or None
        None if there is no answer yet. A part that is damaged ends what can be read.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from voicecf import VoICE
    >>> from voicecf.files import Job, answers_so_far
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> with TemporaryDirectory() as folder:
    ...     given, output = Path(folder) / "rows.csv", Path(folder) / "answers.parquet"
    ...     _ = given.write_text("age,income\n1.0,5.0\n3.0,5.0\n")
    ...     for done, total in Job.of(voice, given, output, {"target": 1}, part_rows=1):
    ...         if done == 1:
    ...             break
    ...     answers_so_far(output)["voicecf_status"].to_pylist()
    ['optimal']
    """
    output = Path(output)
    if output.exists():
        return pa.concat_tables(open_source(output).table())
    folder = WorkFolder(output.parent / f"{output.name}.partial").parts
    parts = (AnsweredPart.read(folder, number) for number in range(count_parts(folder)))
    batches = [part.batch for part in takewhile(lambda part: part is not None, parts) if part]
    return pa.Table.from_batches(batches) if batches else None


@dataclass
class Job:
    r"""The answers to a file, part by part, from the first look at the output to the last renaming.

    `explain_files` makes one and has it `done`. Iterated over, it answers a part each time and
    yields how many rows are done; left before its end, it goes on when the same is asked again.

    Attributes
    ----------
    source : Source
    output : Path
    options : dict
        All that the answers depend on besides the input, in types of JSON.
    question : dict
        As of `explain`.
    bad_rows, part_rows, overwrite, restart, progress
        As of `explain_files`.
    drop_gaps : bool
        Whether rows with missing values are left out even if other bad rows are fatal.
    model : Path or None
        File to save the explainer to.
    also_read : tuple of Path
        Files that were read besides the input: the explainer, rules.
    went_on : int
        Rows that an earlier run had answered.
    nothing_to_do : bool
        Whether the output was complete already.
    rounded : bool
        As of `explain_files`.
    spellings : bool
        Whether texts are read as the level that differs from them in case or blanks alone.
    voice : Explainer or None
        What answered.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from voicecf import VoICE
    >>> from voicecf.files import Job
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> with TemporaryDirectory() as folder:
    ...     given, output = Path(folder) / "rows.csv", Path(folder) / "answers.parquet"
    ...     _ = given.write_text("age,income\n1.0,5.0\n3.0,5.0\n")
    ...     job = Job.of(voice, given, output, {"target": 1}, part_rows=1)
    ...     list(job)
    [(0, 2), (1, 2), (2, 2)]
    >>> job.tally.answers
    2
    """

    source: Source
    output: Path
    options: dict[str, Any]
    question: dict[str, Any]
    make: Callable[[Table], Explainer]
    bad_rows: str = "stop"
    part_rows: int | None = None
    drop_gaps: bool = False
    overwrite: bool = False
    restart: bool = False
    progress: bool = False
    model: Path | None = None
    also_read: tuple[Path, ...] = ()
    went_on: int = 0
    nothing_to_do: bool = False
    rounded: bool = False
    spellings: bool = False
    voice: Explainer | None = None

    @classmethod
    def of(
        cls, voice: Explainer, given: Any, output: Any, question: dict[str, Any], **how: Any
    ) -> Job:
        """Return the job of answering an input by a fitted explainer.

        Parameters
        ----------
        voice : VoICE or CFCLUST
        given : path or Source
        output : path
        question : dict
            As of `VoICE.explain`.
        **how
            The other parameters of `explain_files`.
        """
        known_option(how.get("bad_rows", "stop"), ("stop", "skip"), "bad_rows")
        source = given if isinstance(given, Source) else open_source(given)
        options: dict[str, Any] = {"question": _plain_question(question), "model": digest(voice)}
        options |= {word: True for word in ("rounded", "spellings") if how.get(word)}
        return cls(source, Path(output), options, question, lambda table: voice, **how)

    def __post_init__(self) -> None:
        """Name the files, and check what can be checked before a query is run."""
        if self.output.suffix.lower() in OTHERS:
            raise OutputError(
                f"{self.output.name}: answers are written as .parquet, .csv or .tsv, or into a "
                "folder."
            )
        work, self.manifest_path, self.bad, self.lock = (
            self.output.parent / (self.output.name + ending)
            for ending in (".partial", ".manifest.json", ".bad.csv", ".lock")
        )
        self.folder = WorkFolder(work)
        self.size = 0  # rows that make a part, once that is known
        self._check_paths(self.source.named())

    def _check_paths(self, inputs: list[Path]) -> None:
        """Refuse outputs that would replace an input or each other."""
        outputs = {
            "the output": self.output,
            "the work folder": self.folder.path,
            "the lock": self.lock,
            "the manifest": self.manifest_path,
            "the list of bad rows": self.bad,
        }
        if self.model is not None:
            outputs["the model (--save-model)"] = self.model
        folders = [] if self.source.folder is None else [self.source.folder]
        Paths(outputs, [*inputs, *self.also_read], folders).check()
        for what, path in outputs.items():
            if path.exists() and not (path.is_file() or path.is_dir()):
                raise OutputError(f"{what} {path} is a pipe or a device; give another.")
        if self.model is not None and self.model.is_dir():
            raise OutputError(f"--save-model {self.model} is a folder; give the path of a file.")

    def done(self) -> Tally:
        """Do what is left to do."""
        for _ in self:
            pass
        return self.tally

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Do what is left to do, part by part; yields how many rows are done, and of how many."""
        look = self.source.look()
        self._check_paths(look.files)
        with locked(self.lock):
            manifest = self._manifest(look)
            finished = self._finished(manifest)
            # Beside a complete output it may be the explainer itself: see `_save_model`.
            if self._keeps_model() and not self.nothing_to_do:
                raise OutputError(_there(self.model))
            if finished is None:
                with self.folder.tidied(lambda: self.size * count_parts(self.folder.parts)):
                    finished = yield from self._made_anew(manifest, look)
            self._hand_over(manifest)
            self._save_model()
        self.tally = Tally(**finished["summary"])

    def _manifest(self, look: Look) -> dict[str, Any]:
        """Return what has to be the same for a run to go on, with an input as it is now."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "made with": {name: version(name) for name in MADE_WITH},
            "input": look.prints,
            "reading": {"sql": self.source.sql, **asdict(self.source.reading)},
            "options": {**self.options, "part_rows": self.part_rows},
        }

    def _made_anew(
        self, manifest: dict[str, Any], look: Look
    ) -> Generator[tuple[int, int], None, dict[str, Any]]:
        """Read, answer and write; return what is put down about it."""
        self.folder.prepare(manifest, self.restart)
        table = self.source.table(self.folder.path, self.progress)
        if table.rejected and self.bad_rows == "stop":
            raise BadRowError(table.rejected[0])
        self._check_types(table)
        self.voice = self._explainer(manifest, lambda: self.make(table))
        tally = yield from self._answered(self.voice, table)
        if not self.source.is_still(look):
            raise DataError(
                "the input was changed while it was being read; run again with --restart."
            )
        if tally.bad:
            flush(self.folder.bad)
        else:
            self.folder.bad.unlink()
        finished = {**manifest, "summary": asdict(tally)}
        _write_json(self.folder.known, finished)
        return finished

    def _save_model(self) -> None:
        """Save the explainer, if that was asked for and is not done already."""
        if self.model is None:
            return
        self.voice = self.voice or self.make(self.source.table())
        if not self._keeps_model():
            save(self.voice, self.model)
        elif _digest_of(self.model) != digest(self.voice):
            raise OutputError(_there(self.model))

    def _keeps_model(self) -> bool:
        """Return True if the file to save the explainer to is there, and may not be replaced."""
        return self.model is not None and self.model.exists() and not self.overwrite

    def _check_types(self, table: Table) -> None:
        """Refuse types that the output cannot hold, before anything takes long."""
        nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
        if nested and self._form()[0] != "parquet":
            raise OutputError(
                f"{listed(nested)} holds lists or records, which CSV cannot; write .parquet."
            )

    def _form(self) -> tuple[str, bool]:
        """Return the format of the output, and whether it is a folder."""
        kind = {".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "tsv"}.get(
            self.output.suffix.lower()
        )
        return kind or self.options.get("format") or "parquet", kind is None

    def _finished(self, manifest: dict[str, Any]) -> dict[str, Any] | None:
        """Return what an earlier run that came to its end says; refuse to harm other outputs."""
        output, ended = self.output, self.folder.manifest or {}
        if "summary" in ended and not differences(ended, manifest):
            if output.exists() or self.folder.result.exists():
                return ended
            if not self.restart:
                raise DamagedError(self.folder.path, "it lacks its result")
        empty = output.is_dir() and not any(output.iterdir())
        if self.overwrite or empty or not output.exists():
            return None
        before = read_json(self.manifest_path)
        other = before and differences(before, manifest)
        if before and not other:
            self.nothing_to_do = True
            return before
        why = f", for another question: {other}." if other else ", and voicecf did not write it."
        raise OutputError(
            f"{output} is there already{why} Give another output, or overwrite it (--overwrite; "
            "overwrite=True)."
        )

    def _explainer(self, manifest: dict[str, Any], make: Callable[[], Explainer]) -> Explainer:
        """Return the explainer that an earlier run kept, or a new one, which is kept."""
        folder = self.folder
        if not folder.known.exists():
            save(make(), folder.explainer)
            _write_json(folder.known, {**manifest, "checksums": folder.checksums()})
        # It is read even if it was just written: both runs have the very same.
        return load_explainer(folder.explainer)  # type: ignore[no-any-return]

    def _answered(self, voice: Explainer, table: Table) -> Generator[tuple[int, int], None, Tally]:
        """Write all parts: those that an earlier run kept, and those that are still to be made."""
        answering = Answering.of(
            voice, table.schema, self.question, rounded=self.rounded, spellings=self.spellings
        )
        size = self.size = self.part_rows or _part_rows(voice, self.question)
        folder = self.folder.parts
        folder.mkdir(exist_ok=True)
        earlier = count_parts(folder)
        self.went_on = min(size * earlier, table.n_rows)
        later = enumerate(table.parts(size, earlier * size), earlier)

        def answer(item: tuple[int, Chunk | None]) -> AnsweredPart:
            number, chunk = item
            if chunk is None and (part := AnsweredPart.read(folder, number)) is not None:
                return part
            chunk = chunk or next(table.parts(size, number * size))
            return self._part(answering, table, chunk)

        items = chain(((number, None) for number in range(earlier)), later)
        tally, place = Tally(bad=len(table.rejected)), table.places()
        hidden = None if self.progress else True  # None: hidden unless there is a terminal
        with (
            closing(in_order(answer, items, AT_ONCE)) as parts,
            listing(self.folder.bad, table.rejected) as list_bad,
            tqdm(total=table.n_rows, unit=" rows", disable=hidden) as bar,
        ):
            result = Writer(self.folder.result, answering.schema, *self._form())
            yield self.went_on, table.n_rows
            for number, part in enumerate(parts):
                bad = [place(row, why) for row, why in part.bad]
                if bad and self.bad_rows == "stop" and not self.drop_gaps:
                    raise OutputError(
                        f"the run that was cut off left out {bad[0]}. Go on with --bad-rows skip, "
                        "or start again with --restart."
                    )
                if number >= earlier:
                    part.put(folder, number)
                result.write(part.batch)
                list_bad(bad)
                tally = tally.plus(part.tally)
                done = min((number + 1) * size, table.n_rows)
                bar.update(done - bar.n)
                if number >= earlier:
                    yield done, table.n_rows
            result.close()
        return tally

    def _part(self, answering: Answering, table: Table, chunk: Chunk) -> AnsweredPart:
        """Answer a part, but for bad rows."""
        bad, stop = dict(chunk.wrong), self.bad_rows == "stop"
        if stop:
            table.refuse(bad)
        if self.drop_gaps:
            bad = {**unusable(chunk.table, answering.columns(), chunk.first), **bad}
        rows, numbers = chunk.without(bad)
        answers = answering.explained(rows)
        faults = {int(numbers[i]): why for i, why in answers.outcome.rows.faults.items()}
        if stop:
            table.refuse(faults)
        if faults:
            answers = answers[answers.status != Status.UNREADABLE]
            bad |= faults
        tally = Tally.of(answers, chunk.table.num_rows - len(bad), len(bad))
        return AnsweredPart(answering.batch(answers, rows, numbers), tally, sorted(bad.items()))

    def _hand_over(self, manifest: dict[str, Any]) -> None:
        """Put the finished result into its place; a run that dies here is ended by the next one."""
        left, result = self.folder.manifest, self.folder.result
        if left is not None and "summary" in left:
            if result.exists():
                if self.output.is_dir() or (self.output.exists() and result.is_dir()):
                    self.output.rename(self.folder.path / "replaced")
                result.replace(self.output)
            if self.folder.bad.exists():
                self.folder.bad.replace(self.bad)
            elif not left["summary"]["bad"]:
                self.bad.unlink(missing_ok=True)  # of an output that was replaced
            _write_json(self.manifest_path, left)
        elif left is not None and differences(left, manifest):
            return  # the work of another question
        with suppress(OutputError):
            self.folder.remove()


def _plain_question(question: dict[str, Any]) -> dict[str, Any]:
    """Return a question in types of JSON."""
    rules = rules_of(question)
    rest = {w: value for w, value in question.items() if w not in {"rules", *rules.to_dict()}}
    return json.loads(json.dumps({**rest, "rules": rules.to_dict()}, default=str))  # type: ignore[no-any-return]


def _part_rows(voice: Explainer, question: dict[str, Any]) -> int:
    """Return how many rows make a part: so many that one takes seconds, not minutes."""
    space = voice.space_
    words = set(question) - {"target", "objective", "deepen"}
    projected = space.continuous and question.get("objective") != "fewest"
    size = PART if projected and words <= {"immutable", "mutable", "bounds"} else SEARCHED
    pairs = voice.learned_.n_clusters - 1 if question.get("target") == "each" else 1
    return max(size // pairs, 1 << 10)


def _there(path: Path | None) -> str:
    return f"{path} is there already; give --save-model another file, or add --overwrite."


def _digest_of(path: Path) -> str | None:
    """Return the digest of a saved explainer, None if the file holds something else."""
    with suppress(SavingError):
        return digest(load_explainer(path))
    return None


def _write_json(path: Path, content: Any) -> None:
    write_whole(path, json.dumps(content, indent=1, sort_keys=True).encode("ascii") + b"\n")
