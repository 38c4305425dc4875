"""``voicecf explain``: its options, and how they are carried out."""

from __future__ import annotations

import argparse
import csv
import hashlib
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from voicecf.cli.options import read_options
from voicecf.errors import ColumnError, OptionError, VoiceError, listed
from voicecf.rules.rule import ColumnList, number_of
from voicecf.rules.rules import RULES, Rules

if TYPE_CHECKING:
    from voicecf.files.run import Work
    from voicecf.files.table import Table
    from voicecf.learned.explainer import Explainer

__all__ = ["add_explain"]

# Options that take the names of columns.
COLUMNS = [
    *(word for word, rule in RULES.items() if issubclass(rule, ColumnList)),
    "ignore",
    "category",
]
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
    _add_files(parser)
    _add_model(parser.add_argument_group("segments"))
    _add_question(parser.add_argument_group("question"))
    _add_rules(parser.add_argument_group("rules"))
    parser.set_defaults(run=run_explain, parser=parser)


def _add_files(parser: argparse.ArgumentParser) -> None:
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
    add(
        "--restart",
        action="store_true",
        help="start again instead of continuing an interrupted run",
    )
    add("--quiet", action="store_true", help="print neither progress nor summary")
    group = parser.add_argument_group("files")
    add = group.add_argument
    add("--format", help="format of the files if OUTPUT is a folder: parquet (default) or csv")
    add("--delimiter", help="delimiter of CSV files (default: detected)")
    add("--decimal", help='decimal mark of CSV files: "." or "," (default: detected by column)')
    add("--encoding", help="encoding of CSV files: utf-8, latin-1, ... (default: detected)")
    add("--sheet", help="sheet of a workbook (default: the one with the most cells)")
    add("--bad-rows", help="rows that cannot be read: stop (default), or skip and list them")
    add("--missing", help="missing values: stop (default), drop the row, or fill them in")
    add("--ignore", nargs="+", action="extend", metavar="COLUMN",
        help="copy to the output, but do not use for the segments")  # fmt: skip
    add("--category", nargs="+", action="extend", metavar="COLUMN",
        help="treat as categories, even if they look like numbers or names")  # fmt: skip


def _add_model(group: Any) -> None:
    add = group.add_argument
    add("--k", type=int, help="number of segments (default 3)")
    add("--weights", help="none (default) is plain k-means; shark learns feature weights")
    add("--scale", help="scaling of numbers: standard (default), minmax or none")
    add("--seed", type=int, help="random seed of the clustering (default 0)")
    add("--model", type=Path, help="use a saved explainer instead of fitting one")
    add("--save-model", type=Path, help="save the explainer to this file, which must be new")
    add(
        "--contraction",
        help="how far cells shrink towards their centroids, so that answers keep off the border: "
        "retain (default, by --retain), or a factor such as 0.9; 1 is not at all",
    )  # fmt: skip)
    add(
        "--retain",
        type=float,
        help="share of its members that a contracted cell still holds (default 1)",
    )
    add("--box", help="data (default) keeps answers within the observed range; none does not")
    add(
        "--margin",
        type=float,
        help="least distance of answers from a boundary, as a share of the way from there to "
        "the centroid (default 0)",
    )  # fmt: skip)


def _add_question(group: Any) -> None:
    add = group.add_argument
    add(
        "--target",
        help="number of a segment, nearest (default: the cheapest other one) or each (all others)",
    )  # fmt: skip)
    add(
        "--objective",
        help="cost (default: least cost), prefix (fewest columns of the ranking) or fewest "
        "(fewest changed columns)",
    )  # fmt: skip)
    add(
        "--deepen",
        action="store_true",
        default=None,
        help="also move rows of the target itself deeper into it",
    )
    add("--alternatives", type=int, help="number of further answers for each row (default 0)")
    add("--limit", type=int, help="largest number of boxes that the search for one answer examines")


def _add_rules(group: Any) -> None:
    add = group.add_argument
    add(
        "--rules",
        type=Path,
        metavar="F",
        help="a TOML file with these rules, and options of the groups above except --model and "
        "--save-model",
    )
    for rule in RULES.values():
        flag, arguments = rule.option()
        add(flag, **arguments)


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
        with chosen.input.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(wines.feature_names)
            writer.writerows(wines.data.tolist())
        temporary = chosen.output is None
        chosen.output = chosen.output or Path(folder) / "answers.parquet"
        work = _explain(chosen, temporary=temporary)
        if temporary and not chosen.quiet:
            _print_first(work)
    return 0


def _print_first(work: Work) -> None:
    """Print the first answers as sentences."""
    assert work.voice is not None
    rows = next(iter(work.request.source.table())).slice(0, 3)
    answers = work.voice.explain(rows, **work.request.question)
    print("\nthe first answers (-o FILE writes all of them):")
    for i in range(min(len(answers), 3)):
        print(f"  {answers.text(i)}")


def _explain(chosen: argparse.Namespace, *, temporary: bool = False) -> Work:
    from voicecf.files.run import Work

    job = Job(chosen, *read_options(chosen))
    model_path = chosen.save_model
    if model_path is not None and not model_path.absolute().parent.is_dir():
        raise OptionError(f"--save-model {model_path}: there is no folder {model_path.parent}.")
    read = tuple(path for path in (chosen.model, chosen.rules) if path is not None)
    work = Work(job.request(), chosen.overwrite, chosen.restart, not chosen.quiet, model_path, read)
    tally = work.done(job.explainer)
    if not chosen.quiet:
        _print_summary(work, tally.text(), temporary)
    return work


def _print_summary(work: Work, text: str, temporary: bool) -> None:
    if work.nothing_to_do:
        print(f"{work.request.output} is complete already; there was nothing to do.")
    elif work.went_on:
        print(f"continued at row {work.went_on:,}.")
    print(text, end="")
    if not temporary:
        print(f"answers: {work.request.output}")
    if work.bad.exists():
        print(f"rows that were left out: {work.bad}")


class Job:
    """The options and rules of a command line as arguments of the library."""

    def __init__(
        self, chosen: argparse.Namespace, options: dict[str, Any], rules: dict[str, Any]
    ) -> None:
        from voicecf.files.source import open_source

        self.chosen, self.options, self.rules = chosen, options, rules
        self.model = _loaded(chosen.model) if chosen.model else None
        self.source = open_source(chosen.input, sql=chosen.sql, **self._reading())

    def _reading(self) -> dict[str, Any]:
        """Return how CSV files are read."""
        reading = {name: self.options[name] for name in READING}
        kinds = {} if self.model is None else _column_types(self.model)
        return {**reading, "kinds": {**kinds, **dict.fromkeys(self.options["category"], "text")}}

    def request(self) -> Any:
        """Return the request that the run answers, and by which a later run recognises it."""
        from voicecf.files.run import Request

        question = self._question()
        options = {**self.options, "rules": Rules.from_dict(self.rules).to_dict()}
        del options["bad_rows"]
        if self.chosen.model:
            options["model"] = hashlib.sha256(self.chosen.model.read_bytes()).hexdigest()
        drop = self.options["missing"] == "drop"
        bad_rows = self.options["bad_rows"]
        return Request(self.source, self.chosen.output, options, question, bad_rows, None, drop)

    def _question(self) -> dict[str, Any]:
        options = self.options
        names = self.model.learned_.names if self.model is not None else ()
        question = {"target": _target(options["target"], names), "objective": options["objective"]}
        for name in ("deepen", "alternatives", "limit"):
            if options[name]:
                question[name] = options[name]
        if set(self.rules) <= {"immutable", "mutable", "bounds"}:
            return {**question, **self.rules}
        return {**question, "rules": Rules.from_dict(self.rules)}

    def explainer(self, table: Table) -> Explainer:
        """Return the saved explainer, or fit one to the rows."""
        from voicecf.cli import fitting

        if self.model is not None:
            return self.model
        options = self.options
        empty = [name for name in table.empty if table.n_rows and name not in options["ignore"]]
        choice = fitting.Choice(
            options["k"], options["weights"], options["scale"], options["missing"],
            (*options["ignore"], *empty), tuple(options["category"]), options["seed"],
            self._voice_options(),
        )  # fmt: skip
        columns = fitting.Columns.of(table.schema, choice)
        rows = fitting.Selected(table, columns, options["missing"], options["bad_rows"])
        doubts = fitting.doubts(table, columns, choice)
        if not self.chosen.quiet:
            unused = [f"not used, as they have no values: {listed(empty)}"] if empty else []
            for note in (*table.notes, *table.readings, *unused, *columns.notes, *doubts):
                _note(note)
        return fitting.fitted(fitting.unfitted(columns, choice), rows, not self.chosen.quiet)

    def _voice_options(self) -> dict[str, Any]:
        """Return the options of the constructor of VoICE."""
        contraction = self.options["contraction"]
        if contraction != "retain":
            contraction = number_of(contraction, "--contraction")
        return {
            "contraction": contraction,
            "retain": self.options["retain"],
            "bounds": "data" if self.options["box"] == "data" else None,
            "margin": self.options["margin"],
        }


def _loaded(path: Path) -> Explainer:
    from voicecf.saving import load_explainer

    return load_explainer(path)  # type: ignore[no-any-return]


def _column_types(voice: Explainer) -> dict[str, str]:
    """Return what the columns of an explainer hold in a CSV file."""
    types: dict[str, str] = {}
    for column in voice.space_.columns:
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
