"""Files beside what pyarrow and DuckDB take to rewrite them; and kill -9 at random moments.

Parquet to Parquet is compared with pyarrow, which reads the same file and writes it with the same
settings; CSV to Parquet with DuckDB's own copy. Every contestant runs in a process of its own, so
that its peak of memory is its own, and they take turns. Run by itself:
``python benchmarks/bench_files.py --rows 10_000_000 --kills 40``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import VoICE

COLUMNS, CLUSTERS, GROUP = 20, 8, 1 << 17
FITTED = 300_000
CSV_SHARE = 5
ROUNDS = 2
KILLS, KILLED_ROWS = 40, 400_000
REWRITE = """
import sys
import pyarrow.parquet as pq
source = pq.ParquetFile(sys.argv[1], pre_buffer=False, buffer_size=1 << 20)
with pq.ParquetWriter(sys.argv[2], source.schema_arrow, use_dictionary=False) as out:
    for batch in source.iter_batches(1 << 17):
        out.write_batch(batch, row_group_size=1 << 17)
"""
COPY = """
import sys
import duckdb
duckdb.execute(f"copy (select * from '{sys.argv[1]}') to '{sys.argv[2]}'")
"""


def table(rows: int, seed: int) -> pa.Table:
    centers = 2.0 * np.random.default_rng(0).normal(size=(CLUSTERS, COLUMNS))
    rng = np.random.default_rng(seed)
    data = centers[rng.integers(CLUSTERS, size=rows)] + rng.normal(size=(rows, COLUMNS))
    return pa.table({f"c{i}": data[:, i] for i in range(COLUMNS)})


def generate(path: Path, rows: int) -> None:
    with pq.ParquetWriter(path, table(1, 0).schema, use_dictionary=False) as file:
        for seed, start in enumerate(range(0, rows, GROUP)):
            file.write_table(table(min(GROUP, rows - start), seed), row_group_size=GROUP)


def run(command: list[str]) -> tuple[float, float]:
    """Return the seconds and the peak of resident gigabytes of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[:6]} ended with {process.returncode}")
    return time.perf_counter() - start, usage.ru_maxrss / 1e6


def environment() -> dict[str, str]:
    import voicecf

    return {**os.environ, "PYTHONPATH": str(Path(voicecf.__file__).parents[1])}


def rewriting(code: str, source: Path, output: Path) -> list[str]:
    return [sys.executable, "-c", code, str(source), str(output)]


def explaining(source: Path | str, output: Path, model: Path) -> list[str]:
    given = ["--sql", source] if isinstance(source, str) else [str(source)]
    words = [*given, "-o", str(output), "--model", str(model), "--quiet", "--plausible", "none"]
    return [sys.executable, "-m", "voicecf", "explain", *words]


def models(folder: Path) -> dict[str, Path]:
    """Fit and save the contestants' models: box and contraction are learned."""
    sample = pa.concat_tables(table(GROUP, seed) for seed in range(-(-FITTED // GROUP)))
    bare, scaled = (KMeans(CLUSTERS, n_init=1, random_state=0) for _ in range(2))
    given = {"KMeans": bare, "scaler, KMeans": make_pipeline(StandardScaler(), scaled)}
    made = {}
    for i, (name, model) in enumerate(given.items()):
        voice = VoICE(model).fit(sample)
        voice.explain(sample.slice(0, GROUP))  # whatever is compiled is compiled here
        voice.save(folder / f"{i}.voicecf")
        made[name] = folder / f"{i}.voicecf"
    return made


def least(contestants: dict[str, list[str]], output: Path) -> dict[str, tuple[float, float]]:
    """Return the least seconds and the largest peak of each, of rounds in which they take turns."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, command in contestants.items():
            for path in output.parent.glob(f"{output.name}*"):
                path.unlink()
            found[name].append(run(command))
    return {n: (min(t for t, _ in f), max(peak for _, peak in f)) for n, f in found.items()}


def rows(count: int = 10_000_000) -> Iterator[tuple[str, float, float, str]]:
    """Measure: what, seconds (or gigabytes), ratio, and what the ratio should be."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        source, text, output = (folder / n for n in ("in.parquet", "in.csv", "out.parquet"))
        generate(source, count)
        fitted = models(folder)
        what = f"{count / 1e6:g} million rows x {COLUMNS}, k={CLUSTERS}"
        commands = {"pyarrow": rewriting(REWRITE, source, output)}
        commands |= {n: explaining(source, output, model) for n, model in fitted.items()}
        found = least(commands, output)
        usual, _ = found.pop("pyarrow")
        yield f"{what}: pyarrow rewrites, with the same settings", usual, 1.0, ""
        for (name, (took, peak)), most in zip(found.items(), (4, 5), strict=True):
            yield f"{name}: explain / pyarrow", took, took / usual, f"<= {most}"
            yield f"{name}: peak of memory, GB", peak, peak / 1.5, "<= 1.5 GB: 1"
        part = count // CSV_SHARE
        duckdb.execute(f"copy (select * from '{source}' limit {part}) to '{text}'")
        commands = {"DuckDB": rewriting(COPY, text, output)}
        commands["explain"] = explaining(text, output, fitted["KMeans"])
        found = least(commands, output)
        usual, (took, peak) = found["DuckDB"][0], found["explain"]
        yield f"{part / 1e6:g} million rows of CSV: DuckDB copies to Parquet", usual, 1.0, ""
        yield "KMeans: explain / DuckDB", took, took / usual, ""
        yield "KMeans: peak of memory, GB", peak, peak / 1.5, ""


def kills(count: int = KILLS, size: int = KILLED_ROWS) -> tuple[int, int]:
    """Kill runs at random moments of theirs; return how many, and how many results differ.

    A run that ends before it is killed does not count, and the next one is killed sooner.
    """
    rng = np.random.default_rng(int(os.environ.get("SEED", "0")))
    cut = differing = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        output = folder / "out.parquet"
        model = models(folder)["KMeans"]
        for source in sources(folder, size):
            took, _ = run(explaining(source, output, model))
            expected, done = digests(folder), 0
            while done < count // 4:
                for path in folder.glob("out*"):
                    path.unlink()
                process = subprocess.Popen(explaining(source, output, model), env=environment())
                time.sleep(rng.uniform(0.1, 1.0) * took)
                process.send_signal(signal.SIGKILL)
                process.wait()
                if output.exists():
                    took *= 0.9
                    continue
                done += 1
                run(explaining(source, output, model))
                differing += digests(folder) != expected
            cut += done
            for path in folder.glob("out*"):
                path.unlink()
    return cut, differing


def sources(folder: Path, size: int) -> Iterator[Path | str]:
    """Yield inputs of all kinds: Parquet, CSV, a folder of CSV, and a query."""
    parquet, text, several = folder / "in.parquet", folder / "in.csv", folder / "in"
    generate(parquet, size)
    yield parquet
    duckdb.execute(f"copy (select * from '{parquet}') to '{text}'")
    yield text
    several.mkdir()
    for i in range(4):
        rows = f"select * from '{parquet}' limit {size // 4} offset {i * (size // 4)}"
        duckdb.execute(f"copy ({rows}) to '{several / f'{i}.csv'}'")
    yield several
    yield f"select * from '{parquet}' where c0 > -1"


def digests(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("out*") if path.is_file())
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--kills", type=int, default=KILLS)
    chosen = parser.parse_args()
    for what, seconds, ratio, goal in rows(chosen.rows):
        print(f"{what:<70} {seconds:8.2f} {ratio:8.2f}  {goal}", flush=True)
    cut, differing = kills(chosen.kills)
    print(f"killed and resumed at {cut} random moments: {differing} results differ")


if __name__ == "__main__":
    main()
