"""The checks of tools/house.py, on made-up packages."""

import importlib.util
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools" / "house.py"
if not TOOL.exists():
    pytest.skip("tools/house.py is not beside these tests", allow_module_level=True)
spec = importlib.util.spec_from_file_location("house", TOOL)
house = importlib.util.module_from_spec(spec)
sys.modules["house"] = house
spec.loader.exec_module(house)


@pytest.fixture
def written(tmp_path):
    """Write a package of these modules, and read it as house.py does."""

    def write(**modules):
        package = tmp_path / "made"
        for name, text in {"__init__": "", **modules}.items():
            path = package / (name.replace("__", "/") if name != "__init__" else name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".py").write_text(text)
        return house.read_modules(package)

    return write


def test_a_cycle_is_found_and_named(written):
    modules = written(a="from made.b import x", b="import made.c", c="from made import a", d="")
    (found,) = house.cycles(house.imports(modules))
    assert "3 modules import each other: made.a, made.b, made.c" in found
    assert "made.a:1 -> made.b:1 -> made.c:1 -> made.a" in found


def test_two_cycles_are_two_and_what_lies_between_them_is_in_neither(written):
    modules = written(
        a="import made.b", b="import made.a, made.c", c="import made.d",
        d="import made.e", e="import made.d",
    )  # fmt: skip
    found = house.cycles(house.imports(modules))
    assert len(found) == 2
    assert not any("made.c" in line for line in found)


def test_an_import_inside_a_function_counts(written):
    modules = written(a="def f():\n    from made import b\n", b="import made.a")
    assert len(house.cycles(house.imports(modules))) == 1


def test_an_import_for_type_checkers_makes_no_cycle_but_points_upwards(written):
    head = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made import b\n"
    modules = written(a=head, b="import made.a")
    layers = (("a",), ("b",), ("__init__",))
    assert house.upward_imports(modules, house.imports(modules), layers) == []
    (found,) = house.upward_imports(modules, house.imports(modules, for_types=True), layers)
    assert found.startswith("made.a:3 imports made.b")


def test_class_names_that_are_used_twice_are_named_with_their_modules(written):
    modules = written(a="class One: pass", b="class One: pass\nclass Two: pass")
    assert house.namesakes(modules) == ["One: made.a, made.b"]


def test_lines_of_code_are_those_with_neither_docstring_nor_comment_nor_nothing(written):
    text = '"""Say.\n\nMore.\n"""\n\nx = """a\nb"""  # c\n# d\n'
    text += 'def f():\n    """Do."""\n    return (\n        1,\n    )\n'
    modules = written(a=text)
    assert house.code_lines(modules["made.a"]) == 2 + 1 + 3


def test_an_import_for_type_checkers_does_not_count(written):
    head = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from made import b\n"
    assert house.cycles(house.imports(written(a=head, b="import made.a"))) == []
    other = house.imports(written(a=head + "else:\n    import made.b\n", b="import made.a"))
    assert len(house.cycles(other)) == 1


def test_relative_imports_count(written):
    modules = written(a__x="from ..b import y", b="from .a.x import z")
    assert len(house.cycles(house.imports(modules))) == 1


def test_a_compiled_module_is_no_import_of_the_package(written):
    modules = written(**{"__init__": "import made.a"}, a="import made._core as _core")
    assert house.cycles(house.imports(modules)) == []
    modules = written(**{"__init__": "import made.a"}, a="from made import _core")
    assert len(house.cycles(house.imports(modules))) == 1


def test_an_import_of_a_higher_layer_is_named(written):
    modules = written(low__x="import made.high", high="import made.low.x")
    graph, layers = house.imports(modules), [["low"], ["high"], ["__init__"]]
    (found,) = house.upward_imports(modules, graph, layers)
    assert found.startswith("made.low.x:1 imports made.high")


def test_parts_of_one_layer_do_not_know_each_other(written):
    modules = written(one="import made.two", two="")
    graph = house.imports(modules)
    assert house.upward_imports(modules, graph, [["one", "two"], ["__init__"]])
    assert not house.upward_imports(modules, graph, [["two"], ["one"], ["__init__"]])


def test_a_part_without_a_layer_is_named(written):
    modules = written(new="")
    (found,) = house.upward_imports(modules, house.imports(modules), [["__init__"]])
    assert found.startswith("new stands in no layer")


def test_a_long_function_is_named_and_its_docstring_does_not_count(written, tmp_path):
    lines = "    x = 1\n" * house.MOST_LINES
    note = '    """Say.\n' + "\n    More.\n" * 9 + '    """\n'
    modules = written(a=f"def fits():\n{note}{lines}\ndef long():\n{lines}    x = 2\n")
    (found,) = house.too_large(house.python_functions(modules, tmp_path))
    assert found.endswith(f"long has {house.MOST_LINES + 1} lines")


def test_a_wide_function_is_named_and_self_and_keywords_do_not_count(written, tmp_path):
    eight = ", ".join("abcdefgh")
    modules = written(
        a=f"class A:\n    def fits(self, {eight}, *, i, j): pass\n"
        f"    @staticmethod\n    def wide({eight}, i): pass\n"
    )
    (found,) = house.too_large(house.python_functions(modules, tmp_path))
    assert found == "made/a.py:4 wide has 9 positional parameters"


def test_long_and_wide_functions_of_the_core_are_named(tmp_path):
    pytest.importorskip("lizard")
    wide = ", ".join(f"double {letter}" for letter in "abcdefghi")
    body = "    x += 1;\n" * house.MOST_LINES
    (tmp_path / "a.hpp").write_text(f"namespace v {{\nvoid wide({wide}) {{}}\n}}\n")
    (tmp_path / "b.cpp").write_text(
        f"void tall(int x) {{\n{body}}}\nint fits(int x) {{ return x; }}\n"
    )
    found = house.too_large(house.native_functions(tmp_path, tmp_path))
    assert len(found) == 2
    assert "a.hpp:2" in found[0]
    assert "9 positional parameters" in found[0]
    assert "tall has" in found[1]


def test_a_class_and_the_module_named_after_it_are_one_name(written):
    modules = written(
        **{"__init__": "__all__ = ['Voice', 'load']"}, voice="", table__x="", _hidden=""
    )
    assert house.top_names(modules, "made") == ["Voice", "load", "table"]


def test_too_many_names_at_the_top_are_listed(written):
    modules = written(**{f"m{i}": "" for i in range(house.MOST_NAMES + 1)})
    (found,) = house.too_many_names(modules, "made")
    assert found.startswith(f"{house.MOST_NAMES + 1} names")


def test_what_the_app_imports_from_the_inside_is_named(written, tmp_path):
    modules = written(
        app="from made.files import Job\nfrom made.run import Work\nfrom made import Model",
        files="from made.run import Job", run="", model="", __init__="from made.model import Model",
    )  # fmt: skip
    (tmp_path / "files.md").write_text("# Files\n\n::: made.files.Job\n")
    public = house.public_modules(modules, tmp_path)
    assert public == {"made", "made.files"}
    (found,) = house.imports_from_inside(modules, house.imports(modules), public, "app")
    assert found == "made.app:2 imports made.run, which docs/reference does not document"


def test_a_module_that_is_documented_as_a_whole_is_public(written, tmp_path):
    modules = written(app="from made.errors import Error", errors="")
    (tmp_path / "errors.md").write_text("::: made.errors\n")
    public = house.public_modules(modules, tmp_path)
    assert house.imports_from_inside(modules, house.imports(modules), public, "app") == []
    assert house.imports_from_inside(modules, house.imports(modules), {"made"}, "app")
