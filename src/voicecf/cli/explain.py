"""``voicecf explain``: the words of the command line and of rule files, and what they ask for."""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from voicecf.cli.words import number, read_words
from voicecf.errors import OptionError, VoiceError
from voicecf.rules.rules import Rules

if TYPE_CHECKING:
    from voicecf.files.reading import Source
    from voicecf.files.run import Work
    from voicecf.learned.explainer import Explainer

__all__ = ["add_explain"]

# Options of CSV files.
READING = ("delimiter", "decimal", "encoding")
WHAT_TO_TYPE = """\
voicecf explain customers.csv -o answers.parquet --k 4 --ignore id     (your own table)
voicecf explain --example                                              (a table that comes along)
voicecf explain --help                                                 (all that can be asked)
"""


def add_explain(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "explain",
        help="what would have to change, for every row of a file",
        description="Answer every row of CSV or Parquet files: what would have to change for it to "
        "be in another segment. A run that is cut off goes on when it is started again.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"such as:\n{WHAT_TO_TYPE}",
        argument_default=None,
    )
    _add_files(parser)
    _add_model(parser.add_argument_group("segments"))
    _add_question(parser.add_argument_group("what is asked"))
    _add_rules(parser.add_argument_group("what may change"))
    parser.set_defaults(run=run_explain, parser=parser)


def _add_files(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("input", nargs="?", type=Path, metavar="INPUT", help="a CSV or Parquet file, or a folder")
    add("-o", "--output", type=Path, help="ends in .parquet or .csv, or is a folder")
    add("--example", action="store_true", help="explain a table of wines that comes along")
    add("--overwrite", action="store_true", help="replace OUTPUT, once the new one is whole")
    add("--restart", action="store_true", help="drop what a run that was cut off left")
    add("--quiet", action="store_true", help="no progress, no summary")
    group = parser.add_argument_group("files")
    add = group.add_argument
    add("--format", help="of the parts, if OUTPUT is a folder: parquet (default) or csv")
    add("--delimiter", help="of CSV files; told from the first line if left out")
    add("--decimal", help='of CSV files: "." (default) or ","')
    add("--encoding", help="of CSV files: utf-8 (default), latin-1, ...")
    add("--bad-rows", help="a row that cannot be read: stop (default), or skip and list it")
    add("--missing", help="a missing value: stop (default), drop the row, or fill it in")
    add("--ignore", nargs="+", action="extend", metavar="COLUMN", help="carry along unchanged")
    add("--category", nargs="+", action="extend", metavar="COLUMN", help="text, or codes")


def _add_model(group: Any) -> None:
    add = group.add_argument
    add("--k", type=int, help="number of segments (default 3)")
    add("--weights", help="none (default): k-means; shark: with learned feature weights")
    add("--scale", help="numbers: standard (default), minmax or none")
    add("--seed", type=int, help="of k-means (default 0)")
    add("--model", type=Path, help="use an explainer that was saved; nothing is fitted")
    add("--save-model", type=Path, help="save the explainer there")
    add("--contraction", help="retain (default), or a share of the cells such as 0.9")
    add("--retain", type=float, help="share of its members that a contracted cell keeps (1)")
    add("--box", help="data (default): stay within the observed range; none")
    add("--margin", type=float, help="least share of the way to the centroid (0)")


def _add_question(group: Any) -> None:
    add = group.add_argument
    add("--target", help="a segment, nearest (default) or each")
    add("--objective", help="cost (default), prefix or fewest")
    add("--deepen", action="store_true", default=None, help="also move rows that are there")
    add("--alternatives", type=int, help="further answers for each row (0)")
    add("--limit", type=int, help="most boxes that a search looks at")


def _add_rules(group: Any) -> None:
    add = group.add_argument
    add("--rules", type=Path, metavar="F", help="a TOML file with these words, and those above")
    column = {"nargs": "+", "action": "extend", "metavar": "COLUMN"}
    add("--immutable", **column, help="may not change")
    add("--increase-only", **column, help="may only rise")
    add("--decrease-only", **column, help="may only fall")
    several = {"nargs": "+", "action": "extend"}
    add(
        "--bounds",
        **several,
        metavar="C=LO:HI",
        help="numbers; nothing is open, ... as observed; +500, -10%%, row-500 relative to the row",
    )
    add("--steps", **several, metavar="C=STEP", help="multiples of it; any")
    add("--levels", **several, metavar="C=A,B", help="levels that may be moved to")
    add("--order", **several, metavar="C=A,B", help="levels, lowest first")
    add("--forbidden", **several, metavar="C=A>B", help="a transition that may not be made")
    add("--costs", **several, metavar="C=FACTOR", help="factor on the squared change")
    add("--max-changes", type=int, help="most columns that may change")
    add("--constraint", action="append", dest="constraints", metavar="TEXT",
        help='such as "income >= 100 * age"')  # fmt: skip


def run_explain(chosen: argparse.Namespace) -> int:
    """Run the command; errors of the user's are sentences, and 2."""
    if chosen.input is None and not chosen.example:
        taken = " Options that take several words take INPUT, too, if it comes after them."
        more = taken if chosen.output else ""
        print(f"INPUT is missing.{more} What to type:\n{WHAT_TO_TYPE}", end="", file=sys.stderr)
        return 2
    try:
        with _notes(chosen.quiet):
            if chosen.example:
                return _run_example(chosen)
            if chosen.output is None:
                raise OptionError(
                    f"where to? Give an output: -o {chosen.input.stem}-answers.parquet"
                )
            _explain(chosen)
    except KeyboardInterrupt:
        print("\ninterrupted; run the same command again to go on.", file=sys.stderr)
        return 130
    except (VoiceError, ImportError, OSError) as error:
        print(f"voicecf explain: {_sentence(error)}", file=sys.stderr)
        return 2
    return 0


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}."
    return " ".join(str(error).split())


@contextmanager
def _notes(quiet: bool) -> Iterator[None]:
    """Say warnings as notes, a line each."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        if quiet:
            warnings.simplefilter("ignore")
        warnings.showwarning = lambda message, *_, **__: _note(str(message))
        yield


def _note(text: str) -> None:
    print(f"note: {' '.join(text.split())}", file=sys.stderr)


def _run_example(chosen: argparse.Namespace) -> int:
    """Explain the wines; without an output, only show what comes out."""
    from sklearn.datasets import load_wine

    wines = load_wine()
    with TemporaryDirectory() as folder:
        chosen.input = Path(folder) / "wine.csv"
        with chosen.input.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(wines.feature_names)
            writer.writerows(wines.data.tolist())
        kept = chosen.output is not None
        chosen.output = chosen.output or Path(folder) / "answers.parquet"
        work = _explain(chosen, kept)
        if not (kept or chosen.quiet):
            _show_some(work)
    return 0


def _show_some(work: Work) -> None:
    """Say the first answers in words."""
    assert work.voice is not None
    rows = next(iter(work.request.source)).slice(0, 3)
    answers = work.voice.explain(rows, **work.request.question)
    print("\nthe first of them (-o FILE keeps them all):")
    for i in range(min(len(answers), 3)):
        print(f"  {answers.text(i)}")


def _explain(chosen: argparse.Namespace, kept: bool = True) -> Work:
    from voicecf.files.opening import check_apart
    from voicecf.files.progress import Bar
    from voicecf.files.run import Work

    asked = Asked(chosen, *read_words(chosen))
    check_apart(asked.source.files, chosen.output)
    kept_at = chosen.save_model
    if kept_at is not None and not kept_at.absolute().parent.is_dir():
        raise OptionError(f"--save-model {kept_at}: there is no folder {kept_at.parent}.")
    bar = Bar(quiet=chosen.quiet)
    work = Work(asked.request(), chosen.overwrite, chosen.restart, bar)
    try:
        tally = work.done(lambda: asked.explainer(bar))
    finally:
        bar.end()
    _save_model(chosen, asked, work)
    if not chosen.quiet:
        _tell(work, tally.text(), kept)
    return work


def _tell(work: Work, text: str, kept: bool) -> None:
    if work.nothing_to_do:
        print(f"{work.request.output} is complete already; nothing was to be done.")
    elif work.went_on:
        print(f"went on at row {work.went_on:,}.")
    print(text, end="")
    if kept:
        print(f"answers: {work.request.output}")
    if work.bad.exists():
        print(f"rows that were left out: {work.bad}")


def _save_model(chosen: argparse.Namespace, asked: Asked, work: Work) -> None:
    if chosen.save_model is None:
        return
    from voicecf.saving import save

    voice = work.voice or asked.explainer(work.bar)
    save(voice, chosen.save_model)


class Asked:
    """A command line, as the library takes it."""

    def __init__(
        self, chosen: argparse.Namespace, words: dict[str, Any], rules: dict[str, Any]
    ) -> None:
        self.chosen, self.words, self.rules = chosen, words, rules
        self.model = _loaded(chosen.model) if chosen.model else None
        self.source = self._source()

    def _source(self) -> Source:
        from voicecf.files.opening import input_files, open_source

        options: dict[str, Any] = {}
        if input_files(self.chosen.input)[1] == "csv":
            options = {word: self.words[word] for word in READING}
            options["categories"] = [*self.words["ignore"], *self.words["category"]]
            if self.model is not None:
                options["kinds"] = _kinds(self.model)
        return open_source(self.chosen.input, **options)

    def request(self) -> Any:
        """Return what is to be done."""
        from voicecf.files.request import Request

        question = self._question()
        told = {**self.words, "rules": Rules.from_dict(self.rules).to_dict()}
        del told["bad_rows"]
        if self.chosen.model:
            told["model"] = hashlib.sha256(self.chosen.model.read_bytes()).hexdigest()
        drops = self.words["missing"] == "drop"
        bad_rows = self.words["bad_rows"]
        return Request(self.source, self.chosen.output, told, question, bad_rows, None, drops)

    def _question(self) -> dict[str, Any]:
        question = {"target": _target(self.words["target"]), "objective": self.words["objective"]}
        for word in ("deepen", "alternatives", "limit"):
            if self.words[word]:
                question[word] = self.words[word]
        if set(self.rules) <= {"immutable", "bounds"}:
            return {**question, **self.rules}  # which may be a box, and quick
        return {**question, "rules": Rules.from_dict(self.rules)}

    def explainer(self, bar: Any) -> Explainer:
        """Return the explainer: the saved one, or one that is fitted to the rows."""
        from voicecf.cli import fitting

        if self.model is not None:
            return self.model
        words = self.words
        choice = fitting.Choice(
            words["k"], words["weights"], words["scale"], words["missing"],
            tuple(words["ignore"]), tuple(words["category"]), words["seed"], self._options(),
        )  # fmt: skip
        columns = fitting.Columns.of(self.source.schema, choice)
        rows = fitting.Selected(self.source, columns, words["missing"], words["bad_rows"])
        if not self.chosen.quiet:
            for note in (*columns.notes, *fitting.doubts(self.source, columns, choice)):
                _note(note)
        return fitting.fitted(fitting.unfitted(columns, choice), rows, bar.say)

    def _options(self) -> dict[str, Any]:
        """Return the options of VoICE."""
        contraction = self.words["contraction"]
        if contraction != "retain":
            contraction = number(contraction, "--contraction")
        return {
            "contraction": contraction,
            "retain": self.words["retain"],
            "bounds": "data" if self.words["box"] == "data" else None,
            "margin": self.words["margin"],
        }


def _loaded(path: Path) -> Explainer:
    from voicecf.saving import load_explainer

    return load_explainer(path)  # type: ignore[no-any-return]


def _kinds(voice: Explainer) -> dict[str, str]:
    """Return the types that the columns of an explainer have in a CSV file."""
    kinds: dict[str, str] = {}
    for column in voice.space_.columns:
        if column.kind == "number" or column.declared:
            kinds |= dict.fromkeys(map(str, column.sources), "int64" if column.whole else "double")
    return kinds


def _target(given: Any) -> Any:
    if given in ("nearest", "each") or isinstance(given, int):
        return given
    try:
        return int(given)
    except ValueError:
        raise OptionError(
            f'--target {given}: use the number of a segment, "nearest" or "each".'
        ) from None
