"""Compile the core's kernels for other processors, and compare the bits of their answers.

    python tools/portable.py build/portable

Zig (PyPI's ziglang) compiles for each target with the options of CMakeLists.txt; a warning is an
error. `native/portable.cpp` runs every kernel on fixed problems and prints a hash of its answers:
here once for each instruction set that this processor has, and for ARM in an emulator. All of them
have to print the same.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CMAKE = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
X86 = ("x86_64", "AMD64", "amd64")
ARM = "aarch64-linux-musl"
TARGETS = (ARM, "x86_64-windows-gnu", "aarch64-macos", "x86_64-macos")
# What a compiler without vector types is taken for; see native/simd.hpp.
PLAIN = ("-Wno-builtin-macro-redefined", "-U__GNUC__", "-D__GNUC__=11")


def kernel_options() -> list[str]:
    """Return the options of the kernels."""
    found = re.search(r"set\(kernel_options (-O3[^)]*)\)", CMAKE)
    assert found, "CMakeLists.txt sets no kernel_options"
    return ["-std=c++17", *found[1].split(), "-Werror", f"-I{ROOT / 'native'}"]


def instruction_sets(processor: str) -> dict[str, list[str]]:
    """Return the instruction sets of a processor, and the options of each."""
    every = re.findall(r"^\s*add_kernels\((\w+)([^)]*)\)", CMAKE, re.MULTILINE)
    sets = {name: options.split() for name, options in every}
    return sets if processor in X86 else {"baseline": sets["baseline"]}


def compiled(compiler: list[str], folder: Path, sets: dict[str, list[str]]) -> list[str]:
    """Compile the kernels for each instruction set, and the program; return the object files."""
    folder.mkdir(parents=True, exist_ok=True)
    x86 = ["-DVOICECF_X86"] if len(sets) > 1 else []
    files = {name: ("kernels.cpp", [f"-DVOICECF_SET={name}", *sets[name]]) for name in sets}
    files["portable"] = ("portable.cpp", x86)
    for name, (source, options) in files.items():
        asked = [*compiler, *kernel_options(), *options, "-c", str(ROOT / "native" / source)]
        subprocess.run([*asked, "-o", str(folder / f"{name}.o")], check=True)
    return [str(folder / f"{name}.o") for name in files]


def linked(compiler: list[str], folder: Path, objects: list[str]) -> str:
    """Link the program."""
    program = str(folder / "portable")
    subprocess.run([*compiler, *objects, "-o", program], check=True)
    return program


def printed(command: list[str], instructions: str) -> str | None:
    """Return what the program prints, or None where this processor lacks an instruction set."""
    environment = {**os.environ, "VOICECF_INSTRUCTIONS": instructions}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout if ran.stderr.strip() == instructions else None


def is_gnu(compiler: str) -> bool:
    """Whether a compiler is g++, which can be taken for one without vector types."""
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    return "Free Software Foundation" in version.stdout


def answers_here(build: Path, zig: list[str]) -> dict[str, str]:
    """Return what the program prints on this machine, for each instruction set."""
    names = [os.environ.get("CXX", "c++"), "g++", "clang++"]
    here = next((found for name in names if (found := shutil.which(name))), None)
    compiler, sets = [here] if here else zig, instruction_sets(platform.machine())
    program = linked(compiler, build / "here", compiled(compiler, build / "here", sets))
    answers = {name: printed([program], name) for name in sets}
    if here and is_gnu(here):
        plain = [here, *PLAIN]
        objects = compiled(plain, build / "plain", {"baseline": []})
        answers["no vector types"] = printed([linked(plain, build / "plain", objects)], "baseline")
    return {name: text for name, text in answers.items() if text is not None}


def main(build: Path) -> int:
    """Compile for all targets, run where that is possible, and compare."""
    emulator = shutil.which("qemu-aarch64")
    if not emulator:
        print("qemu-aarch64 is missing: install qemu-user (Debian: apt-get install qemu-user).")
        return 1
    zig = [sys.executable, "-m", "ziglang", "c++"]
    answers = answers_here(build, zig)
    for target in TARGETS:
        compiler = [*zig, "-target", target]
        objects = compiled(compiler, build / target, instruction_sets(target.split("-")[0]))
        print(f"{target}: compiled without a warning")
        if target == ARM:
            program = linked([*compiler, "-static"], build / target, objects)
            answers[target] = printed([emulator, program], "baseline") or ""
    first = answers["baseline"]
    print(first, end="")
    for name, text in answers.items():
        print(f"{name}: {'the same bits' if text == first else 'OTHER BITS'}")
        for one, other in zip(first.splitlines(), text.splitlines(), strict=False):
            print(*([f"  {one}\n  {other}"] if one != other else []), sep="", end="")
    return int(any(text != first for text in answers.values()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
