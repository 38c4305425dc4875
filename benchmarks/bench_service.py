"""Time the service of `examples/service.py`: one row, many rows, many questions at once.

Run `python benchmarks/bench_service.py [address]`. Without an address it fits a model of a mixed
table (numbers, logarithms, categories) and starts the service on the loopback device; with one
(http://127.0.0.1:8000/explain), it asks the service there. Every part ends after so many questions
or seconds.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from voicecf import VoICE
from voicecf.parallel import cores

EXAMPLES = Path(__file__).parents[1] / "examples"
# Questions and seconds after which a part ends, and seconds that one answer or the start may take.
MOST, SECONDS, PATIENCE = 400, 12.0, 60.0
ONE_ROW, ROWS_A_SECOND, SAME = 0.030, 1500.0, 1.0


def customers(n: int = 3000) -> pd.DataFrame:
    """Make a table of whole numbers, numbers with tails, and categories."""
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "age": rng.integers(18, 80, n),
        "visits": rng.poisson(rng.gamma(1.0, 3.0, n)),
        "basket": rng.lognormal(3.5, 0.6, n).round(2),
        "tenure": rng.gamma(2.0, 3.0, n).round(1),
        "income": rng.lognormal(10, 0.6, n).round(),
        "spend": rng.lognormal(6, 1.0, n).round(2),
        "job": rng.choice(["clerk", "nurse", "driver", "teacher", "none"], n),
        "channel": rng.choice(["shop", "web", "phone"], n),
    })  # fmt: skip


def save_model(path: Path) -> None:
    """Cluster the table, and save an explainer of it."""
    logs = make_pipeline(FunctionTransformer(np.log1p), StandardScaler())
    columns = ColumnTransformer([
        ("numbers", StandardScaler(), ["age", "visits", "basket", "tenure"]),
        ("logs", logs, ["income", "spend"]),
        ("text", OneHotEncoder(), ["job", "channel"]),
    ])  # fmt: skip
    model = make_pipeline(columns, KMeans(4, n_init=4, random_state=0))
    VoICE(model, names=["young", "loyal", "rich", "rare"]).fit(customers()).save(path)


@contextmanager
def service() -> Iterator[str]:
    """Start the example's service, and yield its address."""
    with TemporaryDirectory() as folder, socket.socket() as probe:
        save_model(Path(folder) / "segments.voicecf")
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port)]
        command += ["--app-dir", str(EXAMPLES), "--log-level", "error"]
        server = subprocess.Popen(command, cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"})
        try:
            address = f"http://127.0.0.1:{port}/explain"
            _wait_for(address, server)
            yield address
        finally:
            server.terminate()
            server.wait(PATIENCE)


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < end:
        try:
            Client(address, 1).ask()
            return
        except OSError:
            time.sleep(0.2)
    raise SystemExit("the service does not answer")


class Client:
    """One connection, and questions about so many rows."""

    def __init__(self, address: str, n_rows: int) -> None:
        place = urlsplit(address)
        self.path = place.path
        self.connection = HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE)
        rows = customers().head(max(n_rows, 100)).to_dict("records")
        self.bodies = [
            json.dumps({"rows": rows[i : i + n_rows], "immutable": ["age"]})
            for i in range(0, len(rows) - n_rows + 1, n_rows)
        ]
        self.asked = 0

    def ask(self) -> float:
        """Ask for an answer, and return the seconds that it took."""
        body = self.bodies[self.asked % len(self.bodies)]
        self.asked += 1
        start = time.perf_counter()
        self.connection.request("POST", self.path, body, {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"the service says {answer.status}: {content[:300]!r}")
        return time.perf_counter() - start


def load(address: str, n_rows: int, at_once: int) -> tuple[float, list[float]]:
    """Ask from several clients at once; return rows a second, and the seconds of each answer."""
    seconds: list[float] = []
    left = iter(range(MOST))
    start = time.perf_counter()

    def ask() -> None:
        client = Client(address, n_rows)
        for _ in left:
            if time.perf_counter() - start > SECONDS:
                return
            seconds.append(client.ask())

    with ThreadPoolExecutor(at_once) as pool:
        for client in [pool.submit(ask) for _ in range(at_once)]:
            client.result()
    return len(seconds) * n_rows / (time.perf_counter() - start), seconds


def report(address: str) -> None:
    """Print each figure beside its goal."""
    for at_once in (1, 8):
        load(address, 1, at_once)  # all processes have answered once
    alone, seconds = load(address, 1, 1)
    middle, late = np.percentile(seconds, [50, 99])
    print(f"one row: {middle * 1e3:.1f} ms, 99 %: {late * 1e3:.1f} ms; goal {ONE_ROW * 1e3:.0f} ms")
    many, _ = load(address, 100, 8)
    print(f"100 rows a question, 8 at once: {many:,.0f} rows a second; goal {ROWS_A_SECOND:,.0f}")
    crowd, _ = load(address, 1, 64)
    print(
        f"one row, 64 at once: {crowd:.0f} rows a second, {crowd / alone:.2f} times as many as one "
        f"after the other; goal {SAME:.1f}"
    )


if __name__ == "__main__":
    busy = f"; load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{cores()} cores{busy}")
    if len(sys.argv) > 1:
        report(sys.argv[1])
    else:
        with service() as where:
            report(where)
