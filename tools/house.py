"""Check the shape of the source: import cycles, layers, long and wide functions, public names.

    python tools/house.py          # prints every offender, and fails if there is one

Imports inside functions count like those at the top of a module. What stands under
``if TYPE_CHECKING:`` makes no cycle, but may not point upwards. Write
``import voicecf._core as _core`` for the compiled core: ``from voicecf import _core`` counts as an
import of ``voicecf/__init__``.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES = 60
MOST_PARAMETERS = 8
MOST_NAMES = 31
# Lines of the package without the app: no docstrings, comments, blanks. A feature may raise it.
MOST_CODE_LINES = 19_800

# From the bottom up. A module may import from its own part and from parts in the lines above it;
# parts in one line do not know each other. What stands above VoICE are edges: where it hands over
# to one of them, or Counterfactuals does, it asks `edges`.
LAYERS = (
    ("errors", "status", "edges"),
    ("parallel",),
    ("geometry",),
    ("solver",),
    ("table",),
    ("rules",),
    ("saving", "streaming"),
    ("shark",),
    ("learned",),
    ("search",),
    ("output",),
    ("reasons",),
    ("counterfactuals",),
    ("voice", "cfclust"),
    ("diagnostics", "files"),
    ("plots", "dask"),
    ("__init__",),
    ("datasets",),
    ("paper",),
    ("app",),
    ("cli",),
    ("__main__",),
)

# Words of rules that mean nothing else. A rule is named in its own file and where rules are listed;
# so a new one touches no other. The app has a form of its own.
RULE_WORDS = ("increase_only", "decrease_only", "max_changes")
MOST_FILES_OF_A_RULE = 2

# What may have a docstring, and tokens that are no code.
WITH_TEXT = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip

# "path:function" of what may exceed a limit, each with the reason why. Better none.
EXCEPTIONS: dict[str, str] = {}


@dataclass(frozen=True)
class Module:
    """A module of the package: its dotted name and its parsed source."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        """Name of the package that relative imports start from."""
        return self.name if self.path.stem == "__init__" else self.name.rpartition(".")[0]

    def part(self) -> str:
        """Return the module or subpackage at the top of the package that this belongs to."""
        parts = self.name.split(".")
        return parts[1] if len(parts) > 1 else "__init__"


@dataclass(frozen=True)
class Function:
    """A function's place, its length and its number of positional parameters."""

    place: str
    name: str
    lines: int
    parameters: int


def read_modules(package: Path) -> dict[str, Module]:
    """Parse all modules of a package, by dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        name = ".".join(parts).removesuffix(".__init__")
        found[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
    return found


def run_time_nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree, leaving out the bodies of ``if TYPE_CHECKING:``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            for other in node.orelse:
                yield other
                yield from run_time_nodes(other)
            continue
        yield node
        yield from run_time_nodes(node)


def imports(modules: dict[str, Module], *, for_types: bool = False) -> dict[str, dict[str, int]]:
    """Return for each module the modules that it imports, and the line of each.

    With `for_types`, what stands under ``if TYPE_CHECKING:`` counts, too.
    """
    graph: dict[str, dict[str, int]] = {}
    for name, module in modules.items():
        edges: dict[str, int] = {}
        for node in ast.walk(module.tree) if for_types else run_time_nodes(module.tree):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                for imported in _imported(node, module, modules):
                    edges.setdefault(imported, node.lineno)
        edges.pop(name, None)
        graph[name] = edges
    return graph


def _imported(
    node: ast.Import | ast.ImportFrom, module: Module, modules: dict[str, Module]
) -> Iterator[str]:
    """Yield the modules of the package that an import names."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in modules)
        return
    base = node.module or ""
    if node.level:
        above = module.package.split(".")
        base = ".".join([*above[: len(above) - node.level + 1], *([base] if base else [])])
    for alias in node.names:
        full = f"{base}.{alias.name}"
        if full in modules or base in modules:
            yield full if full in modules else base


def cycles(graph: dict[str, dict[str, int]]) -> list[str]:
    """Describe each group of modules that import each other: its members, and a shortest cycle."""
    names = sorted(graph)
    at = {name: i for i, name in enumerate(names)}
    pairs = [(at[name], at[other]) for name in names for other in graph[name]]
    rows, columns = np.array(pairs or np.empty((0, 2)), dtype=np.int64).T
    shape = (len(names), len(names))
    matrix = csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
    _, labels = connected_components(matrix, directed=True, connection="strong")
    found = []
    for label in np.flatnonzero(np.bincount(labels, minlength=1) > 1):
        group = [name for name in names if labels[at[name]] == label]
        way = min((_way_back(name, graph) for name in group), key=len)
        steps = [f"{one}:{graph[one][other]}" for one, other in pairwise(way)]
        found.append(
            f"{len(group)} modules import each other: {', '.join(group)}; for example "
            f"{' -> '.join([*steps, way[-1]])}"
        )
    return found


def _way_back(start: str, graph: dict[str, dict[str, int]]) -> list[str]:
    """Return a shortest cycle through a module that is in one."""
    before: dict[str, str] = {}
    queue = deque([start])
    while queue:
        name = queue.popleft()
        for other in graph[name]:
            if other == start:
                way = [name]
                while way[-1] != start:
                    way.append(before[way[-1]])
                return [*reversed(way), start]
            if other not in before:
                before[other] = name
                queue.append(other)
    raise ValueError(f"{start} is in no cycle")


def upward_imports(
    modules: dict[str, Module],
    graph: dict[str, dict[str, int]],
    layers: Iterable[Iterable[str]] = LAYERS,
) -> list[str]:
    """Describe imports that do not point to a lower layer, and parts that no layer names."""
    level = {part: i for i, layer in enumerate(layers) for part in layer}
    parts = {module.part() for module in modules.values()}
    found = [f"{part} stands in no layer of LAYERS" for part in sorted(parts - level.keys())]
    for name, edges in graph.items():
        for other, line in edges.items():
            one, below = modules[name].part(), modules[other].part()
            known = one in level and below in level
            if known and one != below and level[one] <= level[below]:
                found.append(f"{name}:{line} imports {other}, which is not in a lower layer")
    return found


def python_functions(modules: dict[str, Module], root: Path) -> list[Function]:
    """Measure all functions and methods; a docstring is no part of the length.

    Keyword-only parameters do not count, nor do self and cls. Fields of dataclasses do not count:
    a record is made by naming its fields, and its constructor is not written by hand.
    """
    found = []
    for module in modules.values():
        for node, is_method in _functions(module.tree):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            positional = len(node.args.posonlyargs) + len(node.args.args) - is_method
            place = f"{_relative(module.path, root)}:{node.lineno}"
            found.append(Function(place, node.name, lines, positional))
    return found


def _functions(
    tree: ast.AST, in_class: bool = False
) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, bool]]:
    """Yield functions, nested ones too, and whether the first parameter of each is self or cls."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            static = any(getattr(d, "id", "") == "staticmethod" for d in node.decorator_list)
            yield node, in_class and not static
        yield from _functions(node, isinstance(node, ast.ClassDef))


def native_functions(folder: Path, root: Path) -> list[Function]:
    """Measure the C++ functions of a folder, from the name to the closing brace."""
    import lizard

    found = []
    for path in sorted([*folder.glob("*.hpp"), *folder.glob("*.cpp")]):
        for function in lizard.analyze_file(str(path)).function_list:
            place = f"{_relative(path, root)}:{function.start_line}"
            count = len(function.full_parameters)
            found.append(Function(place, function.name, function.length, count))
    return found


def too_large(functions: Iterable[Function]) -> list[str]:
    """Describe functions that are too long or take too many positional parameters."""
    found = []
    for function in functions:
        if f"{function.place.rpartition(':')[0]}:{function.name}" in EXCEPTIONS:
            continue
        if function.lines > MOST_LINES:
            found.append(f"{function.place} {function.name} has {function.lines} lines")
        if function.parameters > MOST_PARAMETERS:
            found.append(
                f"{function.place} {function.name} has {function.parameters} positional parameters"
            )
    return found


def top_names(modules: dict[str, Module], package: str) -> list[str]:
    """Return what a user finds at the top of the package: ``__all__`` and public modules.

    A class and the module that is named after it (VoICE, voice) are one name.
    """
    exported: list[str] = []
    for node in modules[package].tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            exported = list(ast.literal_eval(node.value))
    parts = {module.part() for module in modules.values()}
    same = {name.lower() for name in exported}
    return sorted([*exported, *(p for p in parts if not p.startswith("_") and p not in same)])


def too_many_names(modules: dict[str, Module], package: str) -> list[str]:
    """Describe the top of the package if it has too many names."""
    names = top_names(modules, package)
    if len(names) <= MOST_NAMES:
        return []
    return [f"{len(names)} names at the top of the package: {', '.join(names)}"]


def namesakes(modules: dict[str, Module]) -> list[str]:
    """Describe class names that are used more than once in the package."""
    places: dict[str, list[str]] = {}
    for module in modules.values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(module.name)
    return [f"{name}: {', '.join(of)}" for name, of in sorted(places.items()) if len(of) > 1]


def public_modules(modules: dict[str, Module], pages: Path) -> set[str]:
    """Return the modules that the reference documents: those whose names its pages name."""
    found = {min(modules, key=len)}
    for page in sorted(pages.glob("*.md")):
        for name in re.findall(r"^::: ([\w.]+)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            found.add(name if name in modules else name.rpartition(".")[0])
    return found


def imports_from_inside(
    modules: dict[str, Module], graph: dict[str, dict[str, int]], public: set[str], part: str
) -> list[str]:
    """Describe what a part imports from the inside of the package, which users cannot rely on."""
    return [
        f"{name}:{line} imports {other}, which docs/reference does not document"
        for name, edges in graph.items() if modules[name].part() == part
        for other, line in edges.items() if modules[other].part() != part and other not in public
    ]  # fmt: skip


def scattered_rules(modules: dict[str, Module]) -> list[str]:
    """Describe rules that are named in more files than their own and the list of rules."""
    places: dict[str, list[str]] = {word: [] for word in RULE_WORDS}
    for module in modules.values():
        if module.part() != "app":
            for word in set(RULE_WORDS) & _names_in(module.tree):
                places[word].append(module.name)
    most = MOST_FILES_OF_A_RULE
    return [f"{word}: {', '.join(of)}" for word, of in places.items() if len(of) > most]


def _names_in(tree: ast.AST) -> set[str]:
    """Return the names, attributes, keywords and texts of a module, docstrings aside."""
    found = set()
    for node in ast.walk(tree):
        parts = (getattr(node, part, None) for part in ("id", "attr", "arg", "value"))
        found |= {part for part in parts if isinstance(part, str)}
    return found


def code_lines(module: Module) -> int:
    """Count the lines of a module that hold code: no docstrings, comments or blanks."""
    texts: set[int] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, WITH_TEXT) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            texts |= set(range(first.lineno, (first.end_lineno or 0) + 1))
    lines: set[int] = set()
    source = io.StringIO(module.path.read_text(encoding="utf-8"))
    for token in tokenize.generate_tokens(source.readline):
        if token.type not in NO_CODE:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - texts)


def lines_of_parts(modules: dict[str, Module]) -> dict[str, int]:
    """Return lines of code for each part of the package."""
    lines: dict[str, int] = {}
    for module in modules.values():
        count = len(module.path.read_text(encoding="utf-8").splitlines())
        lines[module.part()] = lines.get(module.part(), 0) + count
    return lines


def sizes(modules: dict[str, Module], native: Path) -> list[str]:
    """Return lines of code for each part of the package and for the compiled core."""
    lines = lines_of_parts(modules)
    parts = [f"{count:7,}  {part}" for part, count in sorted(lines.items(), key=lambda p: -p[1])]
    core = sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for path in [*native.glob("*.hpp"), *native.glob("*.cpp")]
    )
    return [*parts, f"{sum(lines.values()):7,}  Python in all", f"{core:7,}  C++"]


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def main() -> int:
    """Print sizes and offenders; return 1 if there are any."""
    package, native = ROOT / "src" / "voicecf", ROOT / "native"
    modules = read_modules(package)
    graph = imports(modules)
    functions = [*python_functions(modules, ROOT), *native_functions(native, ROOT)]
    print("Lines:", *sizes(modules, native), sep="\n")
    lines = sum(code_lines(module) for module in modules.values() if module.part() != "app")
    print(f"{lines:7,}  lines of code without the app: at most {MOST_CODE_LINES:,}")
    checks = {
        "Import cycles": cycles(graph),
        "Imports that do not point downwards":
            upward_imports(modules, imports(modules, for_types=True)),
        "The app imports only what docs/reference documents": imports_from_inside(
            modules, imports(modules, for_types=True),
            public_modules(modules, ROOT / "docs" / "reference"), "app",
        ),
        "Class names that are used twice": namesakes(modules),
        "Rules in more files than their own and the list of rules": scattered_rules(modules),
        "More lines of code than the budget":
            [f"{lines:,}"] if lines > MOST_CODE_LINES else [],
        f"Functions of more than {MOST_LINES} lines or {MOST_PARAMETERS} positional parameters":
            too_large(functions),
        f"More than {MOST_NAMES} names": too_many_names(modules, package.name),
    }  # fmt: skip
    for head, offenders in checks.items():
        if offenders:
            print(f"\n{head}:", *(f"  {line}" for line in offenders), sep="\n")
    return int(any(checks.values()))


if __name__ == "__main__":
    sys.exit(main())
