"""The command line: ``voicecf explain``, ``voicecf app`` and ``voicecf reproduce``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from voicecf import __version__
from voicecf.cli.explain import add_explain
from voicecf.datasets.sources import CATALOGUE, DATA
from voicecf.errors import likely
from voicecf.paper.published import TABLES
from voicecf.saving.apart import OutputError, Paths

# Options of ``voicecf reproduce``: what else it does, and what it writes by a function of `report`.
SWITCHES = {
    "check": "exit with 1 if a cell differs from the printed one",
    "extended": "also compute exact answers for all datasets and modes",
    "paired": "also compute them with the same random rows for all modes",
}
REPORTS = {
    "json": "write all cells with all digits as JSON",
    "csv": "write one line for each cell as CSV",
    "markdown": "write the report as Markdown",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Arguments after ``voicecf``; those of the process if left out.

    Returns
    -------
    int
        0 if all went well, 1 if a check failed, 2 if the arguments or the data cannot be used.
    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.run is None:
        parser.print_help()
        return 0
    try:
        status: int = chosen.run(chosen)
    except KeyboardInterrupt:
        print("\ninterrupted.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `voicecf ... | head` has closed the pipe: discard the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="voicecf",
        description="What would have to change for this row to be in that segment?",
    )
    parser.add_argument("--version", action="version", version=f"voicecf {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="")
    add_explain(commands)
    _add_app(commands)
    _add_reproduce(commands)
    return parser


def _add_app(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "app",
        help="open the app in a browser",
        description="Open the app in a browser. It listens on this machine only.",
    )
    parser.add_argument(
        "--port", type=int, metavar="N", help="port to listen on (default: a free one)"
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser window")
    parser.set_defaults(run=_app, parser=parser)


def _app(chosen: argparse.Namespace) -> int:
    from voicecf.app.launch import launch

    if chosen.port is not None and not 1 <= chosen.port <= 65_535:
        chosen.parser.error(f"--port {chosen.port} is not a port; use a number from 1 to 65535.")
    return launch(chosen.port, browser=not chosen.no_browser)


def _add_reproduce(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "reproduce",
        help="recompute the tables of the paper and compare them with the printed ones",
        description="Recompute the tables of the paper and compare each cell with the printed one.",
    )
    add = parser.add_argument
    tables = f"only these tables, of {', '.join(TABLES)}"
    add("--table", nargs="+", action="extend", metavar="T", help=tables)
    datasets = f"only these datasets, of {', '.join(CATALOGUE)}"
    add("--dataset", nargs="+", action="extend", metavar="D", help=datasets)
    for name, text in SWITCHES.items():
        add(f"--{name}", action="store_true", help=text)
    for name, text in REPORTS.items():
        add(f"--{name}", type=Path, metavar="F", help=text)
    parser.set_defaults(run=_reproduce, parser=parser)


def _reproduce(chosen: argparse.Namespace) -> int:
    from voicecf.paper import report
    from voicecf.paper.reproduction import StudyRequest, progress_bar, reproduce

    request = StudyRequest(
        tables=_known(chosen, "table", TABLES) or TABLES,
        datasets=_known(chosen, "dataset", CATALOGUE),
        extended=chosen.extended,
        paired=chosen.paired,
    )
    _check_outputs(chosen)
    bar = progress_bar(sys.stderr)
    result = reproduce(request, bar, lambda text: bar.disable and print(text, file=sys.stderr))
    print(report.as_text(result), end="")
    for name in REPORTS:
        if getattr(chosen, name) is not None:
            getattr(report, f"write_{name}")(result, getattr(chosen, name))
    if not chosen.check:
        return 0
    if not result.compared:
        print("nothing was checked: the paper prints none of these cells.", file=sys.stderr)
        return 2
    return 1 if result.differing else 0


def _known(chosen: argparse.Namespace, what: str, names: Collection[str]) -> list[str]:
    """Return the names that an option holds, without repeats; exit if one is unknown.

    A dataset may be called by its title in the paper, too.
    """
    found, titles = [], {source.title.lower(): name for name, source in CATALOGUE.items()}
    for text in getattr(chosen, what) or []:
        name = titles.get(text.lower(), text)
        if name not in names:
            chosen.parser.error(f"unknown {what} {text!r}; {likely(text, names, len(names))}")
        found.append(name)
    return list(dict.fromkeys(found))


def _check_outputs(chosen: argparse.Namespace) -> None:
    """Exit if an output cannot be written or would replace another, before minutes of work."""
    options = {f"--{name}": getattr(chosen, name) for name in REPORTS}
    outputs = {option: path for option, path in options.items() if path is not None}
    for option, path in outputs.items():
        if not path.absolute().parent.is_dir():
            chosen.parser.error(f"{option} {path}: there is no folder {path.absolute().parent}.")
    try:
        Paths(outputs, folders=[Path(str(DATA))]).check()
    except OutputError as error:
        chosen.parser.error(str(error))
