"""``voicecf explain``: its options, and how they are carried out."""

from __future__ import annotations

import argparse
import hashlib
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from voicecf.cli.options import GROUPS, OPTIONS, read_options
from voicecf.errors import ColumnError, OptionError, VoiceError
from voicecf.rules.rule import ColumnList
from voicecf.rules.rules import RULES, Rules

if TYPE_CHECKING:
    from voicecf.files import Job
    from voicecf.files.table import Table
    from voicecf.learned.explainer import Explainer

__all__ = ["add_explain"]

# Options that take the names of columns.
COLUMNS = [*(word for word in RULES if issubclass(RULES[word], ColumnList)), "ignore", "category"]
# Options for reading CSV files.
READING = ("delimiter", "decimal", "encoding", "sheet")
EXAMPLES = """\
voicecf explain customers.csv -o answers.parquet --k 4 --ignore id     (your own table)
voicecf explain --sql "select * from 'sales/*.parquet'" -o answers.parquet     (a query)
voicecf explain --example                                              (an example table)
voicecf explain --help                                                 (all options)
"""


def add_explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command to a parser."""
    parser = commands.add_parser(
        "explain",
        help="find what would have to change, for every row of a file",
        description="Find, for every row of files, a database or a query, the cheapest change that "
        "moves it to another segment. If a run is interrupted, the same command continues it.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"examples:\n{EXAMPLES}",
        argument_default=None,
    )
    add = parser.add_argument
    add("input", nargs="?", type=Path, metavar="INPUT",
        help="CSV, Excel, Parquet or JSON: a file, a folder, or a pattern in quotes; or a .duckdb "
        "database")  # fmt: skip
    add("--sql", metavar="QUERY", help="a query of DuckDB as the input, such as "
        "\"select * from 'sales/*.csv' where year > 2020\"")  # fmt: skip
    add("-o", "--output", type=Path, help="file for the answers, .parquet or .csv, or a folder")
    add("--example", action="store_true", help="explain an example table of wines")
    add("--overwrite", action="store_true", help="replace OUTPUT once the new one is complete, "
        "and the file of --save-model")  # fmt: skip
    add("--restart", action="store_true", help="start again instead of continuing an "
        "interrupted run")  # fmt: skip
    add("--quiet", action="store_true", help="print neither progress nor summary")
    for title, options in GROUPS.items():
        add = parser.add_argument_group(title).add_argument
        for name, option in options.items():
            add(f"--{name.replace('_', '-')}", help=option.help, default=None, **option.arguments)
        if title == "segments":
            add("--model", type=Path, help="use a saved explainer instead of fitting one")
            add(
                "--save-model", type=Path, help="save the explainer to this file, which must be new"
            )
    add = parser.add_argument_group("rules").add_argument
    add("--rules", type=Path, metavar="F", help="a TOML file with these rules, and options of the "
        "groups above except --model and --save-model")  # fmt: skip
    for rule in RULES.values():
        flag, arguments = rule.option()
        add(flag, **arguments)
    parser.set_defaults(run=run_explain, parser=parser)


def run_explain(chosen: argparse.Namespace) -> int:
    """Run the command; an error in the user's input is printed as a sentence, and returns 2."""
    if chosen.input is None and chosen.sql is None and not chosen.example:
        swallowed = " Options that take several values take INPUT, too, if it comes after them."
        hint = swallowed if chosen.output else ""
        print(f"INPUT is missing.{hint} Examples:\n{EXAMPLES}", end="", file=sys.stderr)
        return 2
    try:
        with _notes(chosen.quiet):
            if chosen.example:
                return _run_example(chosen)
            if chosen.output is None:
                name = "query" if chosen.input is None else chosen.input.stem
                raise OptionError(f"OUTPUT is missing; use -o {name}-answers.parquet, for example.")
            _explain(chosen)
    except KeyboardInterrupt:
        print("\ninterrupted; run the same command again to continue.", file=sys.stderr)
        return 130
    except (VoiceError, ImportError, OSError) as error:
        print(f"voicecf explain: {_sentence(error)}{_hint(chosen, error)}", file=sys.stderr)
        return 2
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}."
    return " ".join(str(error).split())


def _hint(chosen: argparse.Namespace, error: Exception) -> str:
    """Say how several columns are given, if an unknown one is a list with commas.

    Such a list is not taken apart, since the name of a column may have commas.
    """
    for option in COLUMNS if isinstance(error, ColumnError) else ():
        for name in getattr(chosen, option) or ():
            if "," in name and repr(name) in str(error):
                names = shlex.join(part.strip() for part in name.split(",") if part.strip())
                word = option.replace("_", "-")
                return f" Several columns are separated by spaces: --{word} {names}."
    return ""


@contextmanager
def _notes(quiet: bool) -> Iterator[None]:
    """Print warnings as notes, one line each."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        if quiet:
            warnings.simplefilter("ignore")
        warnings.showwarning = lambda message, *_, **__: _note(str(message))
        yield


def _note(text: str) -> None:
    print(f"note: {' '.join(text.split())}", file=sys.stderr)


def _run_example(chosen: argparse.Namespace) -> int:
    """Explain the wines; without an output, only print a summary and the first answers."""
    from sklearn.datasets import load_wine

    wines = load_wine()
    with TemporaryDirectory() as folder:
        chosen.input = Path(folder) / "wine.csv"
        names = ",".join(wines.feature_names)
        np.savetxt(chosen.input, wines.data, "%s", ",", header=names, comments="")
        temporary = chosen.output is None
        chosen.output = chosen.output or Path(folder) / "answers.parquet"
        work = _explain(chosen, temporary=temporary)
        if temporary and not chosen.quiet:
            _print_first(work)
    return 0


def _print_first(work: Job) -> None:
    """Print the first answers as sentences."""
    assert work.voice is not None
    rows = next(iter(work.source.table())).slice(0, 3)
    answers = work.voice.explain(rows, **work.question)
    print("\nthe first answers (-o FILE writes all of them):")
    for i in range(min(len(answers), 3)):
        print(f"  {answers.text(i)}")


def _explain(chosen: argparse.Namespace, *, temporary: bool = False) -> Job:
    """Do what the options say, and print a summary."""
    work = Request(*read_options(chosen)).work()
    tally = work.done()
    if chosen.quiet:
        return work
    if work.nothing_to_do:
        print(f"{work.output} is complete already; there was nothing to do.")
    elif work.went_on:
        print(f"continued at row {work.went_on:,}.")
    print(tally.text(), end="")
    if not temporary:
        print(f"answers: {work.output}")
    if work.bad.exists():
        print(f"rows that were left out: {work.bad}")
    return work


class Request:
    """The options and rules of a command line as arguments of the library."""

    def __init__(self, options: argparse.Namespace, rules: dict[str, Any]) -> None:
        from voicecf.files.source import open_source
        from voicecf.saving import load_explainer

        self.options, self.rules = options, rules
        self.model = load_explainer(options.model) if options.model else None
        reading = {name: getattr(options, name) for name in READING}
        kinds = _column_types(self.model) | dict.fromkeys(options.category, "text")
        self.source = open_source(options.input, sql=options.sql, kinds=kinds, **reading)

    def work(self) -> Job:
        """Return the run that answers the question, and by which a later run recognises it."""
        from voicecf.files import Job

        options = self.options
        question = self._question()
        known = {name: getattr(options, name) for name in OPTIONS if name != "bad_rows"}
        known["rules"] = Rules.from_dict(self.rules).to_dict()
        if options.model:
            known["model"] = hashlib.sha256(options.model.read_bytes()).hexdigest()
        save = options.save_model
        if save is not None and not save.absolute().parent.is_dir():
            raise OptionError(f"--save-model {save}: there is no folder {save.parent}.")
        return Job(
            self.source, options.output, known, question, self.explainer, bad_rows=options.bad_rows,
            drop_gaps=options.missing == "drop", overwrite=options.overwrite,
            restart=options.restart, progress=not options.quiet, model=save,
            spellings=self.model is None and options.spellings == "merge",
            also_read=tuple(filter(None, (options.model, options.rules))),
        )  # fmt: skip

    def _question(self) -> dict[str, Any]:
        """Return the arguments of `explain`."""
        options = self.options
        names = self.model.learned_.names if self.model is not None else ()
        question = {"target": _target(options.target, names), "objective": options.objective}
        for name in ("deepen", "alternatives", "limit"):
            if getattr(options, name):
                question[name] = getattr(options, name)
        return {**question, **self.rules}

    def explainer(self, table: Table) -> Explainer:
        """Return the saved explainer, or fit one to the rows."""
        from voicecf.cli.fitting import Columns, doubts, fitted, with_levels

        if self.model is not None:
            return self.model  # type: ignore[no-any-return]
        columns = Columns.of(table, self.options)
        counting = doubts(table, columns, self.options.category)
        columns = with_levels(columns, table, self.options)
        if not self.options.quiet:
            for note in (*table.notes, *table.readings, *columns.notes, *counting):
                _note(note)
        return fitted(table, columns, self.options)


def _column_types(voice: Explainer | None) -> dict[str, str]:
    """Return what the columns of an explainer hold in a CSV file."""
    types: dict[str, str] = {}
    for column in () if voice is None else voice.space_.columns:
        number = "int64" if column.whole else "double"
        kind = number if column.numeric or column.declared else "text"
        types |= dict.fromkeys(map(str, column.sources), kind)
    return types


def _target(target: Any, names: tuple[str, ...]) -> Any:
    if target in ("nearest", "each", *names) or isinstance(target, int):
        return target
    try:
        return int(target)
    except ValueError:
        raise OptionError(
            f"--target {target}: use the number of a segment, its name in the model that you give, "
            '"nearest" or "each".'
        ) from None
