"""Parquet to Parquet beside what pyarrow takes to read and rewrite the same file; and kill -9.

Every contestant runs in a process of its own, so that its peak of memory is its own. Run by itself:
``python benchmarks/bench_files.py --rows 10_000_000``.
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

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import VoICE

COLUMNS, CLUSTERS, GROUP = 20, 8, 1 << 17
FITTED = 300_000
KILLS, KILLED_ROWS = 20, 600_000
REWRITE = """
import sys
import pyarrow.parquet as pq
source = pq.ParquetFile(sys.argv[1], pre_buffer=False, buffer_size=1 << 20)
dictionaries = sys.argv[3] == "dictionaries"
with pq.ParquetWriter(sys.argv[2], source.schema_arrow, use_dictionary=dictionaries) as out:
    for batch in source.iter_batches(1 << 17):
        out.write_batch(batch, row_group_size=1 << 17)
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


def rewriting(source: Path, output: Path, how: str) -> list[str]:
    return [sys.executable, "-c", REWRITE, str(source), str(output), how]


def explaining(source: Path, output: Path, model: Path) -> list[str]:
    words = [str(source), "-o", str(output), "--model", str(model), "--quiet"]
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


def rows(count: int = 10_000_000) -> Iterator[tuple[str, float, float, str]]:
    """Measure: what, seconds (or gigabytes), ratio, and what the ratio should be."""
    what = f"{count / 1e6:g} million rows x {COLUMNS}, k={CLUSTERS}"
    with TemporaryDirectory() as name:
        folder = Path(name)
        source, output = folder / "in.parquet", folder / "out.parquet"
        generate(source, count)
        fitted = models(folder)
        plain, _ = run(rewriting(source, output, "plain"))
        usual, _ = run(rewriting(source, output, "dictionaries"))
        yield f"{what}: pyarrow rewrites, as by default", usual, 1.0, ""
        yield f"{what}: pyarrow rewrites, without dictionaries", plain, plain / usual, ""
        for name, model in fitted.items():
            output.unlink()
            took, peak = run(explaining(source, output, model))
            yield f"{name}: explain / pyarrow as by default", took, took / usual, "<= 4"
            yield f"{name}: explain / pyarrow without dictionaries", took, took / plain, "<= 4"
            yield f"{name}: peak of memory, GB", peak, peak / 2.0, "<= 2 GB: 1"


def kills(count: int = KILLS, size: int = KILLED_ROWS) -> tuple[int, int]:
    """Kill runs at random moments of theirs; return how many, and how many results differ.

    A run that ends before it is killed does not count, and the next one is killed sooner.
    """
    rng = np.random.default_rng(int(os.environ.get("SEED", "0")))
    cut = differing = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        source, output = folder / "in.parquet", folder / "out.parquet"
        generate(source, size)
        model = models(folder)["KMeans"]
        took, _ = run(explaining(source, output, model))
        expected = digests(folder)
        while cut < count:
            for path in folder.glob("out*"):
                path.unlink()
            process = subprocess.Popen(explaining(source, output, model), env=environment())
            time.sleep(rng.uniform(0.1, 1.0) * took)
            process.send_signal(signal.SIGKILL)
            process.wait()
            if output.exists():
                took *= 0.9
                continue
            cut += 1
            run(explaining(source, output, model))
            differing += digests(folder) != expected
    return cut, differing


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
