"""Run the core's tests with a core that was compiled with sanitizers.

    python tests/sanitized.py build/sanitize

The package is copied beside the sanitized core, so that nothing else is loaded in its place.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TESTS = (
    "test_core.py",
    "test_projection.py",
    "test_prices.py",
    "test_priced_choices.py",
    "test_derived.py",
    "test_cells.py",
    "test_onepass.py",
    "test_search.py",
    "test_shark.py",
    "test_branching.py",
)
# Tests of import, and tests that start a process, which would not load the sanitized core.
LEFT_OUT = "import or every_instruction_set or wrong_arguments"
# An editable install has a finder of its own, which would come first.
RUN = """
import sys
sys.meta_path = [f for f in sys.meta_path if "Redirect" not in type(f).__name__]
sys.path.insert(0, sys.argv[1])
import runpy, voicecf
assert voicecf.__file__.startswith(sys.argv[1]), voicecf.__file__
sys.argv = sys.argv[2:]
if sys.argv[0] == "pytest":
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def runtime(name: str) -> str:
    """Return where the compiler keeps a library of its own."""
    asked = [os.environ.get("CXX", "g++"), f"-print-file-name={name}"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def main(build: Path) -> int:
    """Copy the package, and run the tests."""
    site = (build / "site").resolve()
    shutil.rmtree(site, ignore_errors=True)
    without = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(HERE.parent / "src" / "voicecf", site / "voicecf", ignore=without)
    for core in build.glob("_core*.so"):
        shutil.copy(core, site / "voicecf")
    environment = {
        **os.environ,
        "LD_PRELOAD": f"{runtime('libasan.so')} {runtime('libubsan.so')}",
        "ASAN_OPTIONS": "detect_leaks=0",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }
    tests = ("pytest", "-q", "-p", "no:cacheprovider", "-k", f"not ({LEFT_OUT})")
    for asked in ([str(HERE / "wrong_arguments.py")], [*tests, *(str(HERE / t) for t in TESTS)]):
        ran = subprocess.run([sys.executable, "-c", RUN, str(site), *asked], env=environment)
        if ran.returncode:
            return ran.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
