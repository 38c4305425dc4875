"""Side by side with DiCE on the same k-means model and rows: validity, cost, changes, time.

Run `make dice`, or `python benchmarks/bench_dice.py [FOLDER]`. DiCE gets a virtual environment of
its own, in FOLDER or in a temporary one, for it asks for much that voicecf has no use for; nothing
of voicecf is installed there. The model crosses over as plain numbers, and what comes back is
judged here, by the pipeline's own predict.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

DICE = "dice-ml==0.12"
METHODS = ("random", "genetic")
TABLES = ("obesity", "heart_failure")
ROWS = 20
# Seconds after which a method of DiCE is given up.
PATIENCE = 900
LABEL = "cluster"


# In DiCE's environment: numpy, pandas and dice_ml only.


class Model:
    """What DiCE asks of a classifier, from the numbers of a pipeline."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.centers = np.array(told["centers"])
        self.classes_ = np.arange(len(self.centers))

    def seen(self, frame: pd.DataFrame) -> np.ndarray:
        """Encode rows as the pipeline does: numbers scaled, one column a level but the first."""
        values = frame[self.told["numbers"]].astype(float).to_numpy()
        parts = [(values - self.told["mean"]) / self.told["scale"]]
        for name, levels in self.told["levels"].items():
            own = frame[name].astype(str).to_numpy()
            parts.append((own[:, None] == np.array(levels[1:])).astype(float))
        return np.hstack(parts)

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Assign softly: the nearer a centre, the likelier its cluster."""
        apart = ((self.seen(frame)[:, None] - self.centers) ** 2).sum(axis=2)
        likely = np.exp(apart.min(axis=1, keepdims=True) - apart)
        return likely / likely.sum(axis=1, keepdims=True)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the likeliest cluster, which is the nearest."""
        return self.predict_proba(frame).argmax(axis=1)


def answer(folder: Path, method: str) -> None:
    """Ask DiCE for one counterfactual a row, and write them down with their times."""
    import dice_ml

    told = json.loads((folder / "model.json").read_text())
    data, rows = (pd.read_csv(folder / name, keep_default_na=False) for name in
                  ("data.csv", "rows.csv"))  # fmt: skip
    model = Model(told)
    public = dice_ml.Data(
        dataframe=data.assign(**{LABEL: model.predict(data)}),
        continuous_features=told["numbers"], outcome_name=LABEL,
    )  # fmt: skip
    wrapped = dice_ml.Model(model=model, backend="sklearn", model_type="classifier")
    dice = dice_ml.Dice(public, wrapped, method=method)
    found = []
    for i, target in enumerate(told["targets"]):
        start, options = time.perf_counter(), {"random_seed": 0} if method == "random" else {}
        row: dict[str, Any] | None = None
        try:
            made = dice.generate_counterfactuals(
                rows.iloc[[i]], total_CFs=1, desired_class=target, verbose=False, **options
            )
            table = made.cf_examples_list[0].final_cfs_df
            if table is not None and len(table):
                row = {k: str(v) for k, v in table.iloc[0].drop(LABEL).items()}
            why = ""
        except Exception as error:  # whatever it is, it is DiCE's answer
            why = f"{type(error).__name__}: {error}"[:200]
        found.append({"row": row, "seconds": time.perf_counter() - start, "why": why})
    (folder / f"{method}.json").write_text(json.dumps(found))


# In ours.


@dataclass(frozen=True)
class Score:
    """How a method did on some rows."""

    name: str
    asked: int
    answered: int
    valid: int
    cost: float
    changed: float
    seconds: float
    note: str = ""

    def __str__(self) -> str:
        share = f"{self.valid}/{self.asked} valid ({self.answered} answered)"
        return (
            f"{self.name:<14} {share:<28} cost {self.cost:8.4f}  changed {self.changed:4.1f}  "
            f"{self.seconds * 1e3:10.2f} ms a row  {self.note}"
        )


class Contest:
    """One table, its clustering, and the rows that all have to answer."""

    def __init__(self, name: str) -> None:
        from sklearn.cluster import KMeans
        from sklearn.compose import ColumnTransformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        from voicecf import VoICE, datasets

        data = datasets.load(name)
        self.name, self.frame = name, data.frame
        self.texts = [c for c in self.frame if not pd.api.types.is_numeric_dtype(self.frame[c])]
        self.numbers = [c for c in self.frame if c not in self.texts]
        encoder = OneHotEncoder(drop="first", sparse_output=False)
        steps = [("numbers", StandardScaler(), self.numbers), ("text", encoder, self.texts)]
        model = KMeans(data.k, n_init=10, random_state=42)
        self.pipeline = make_pipeline(ColumnTransformer(steps), model).fit(self.frame)
        self.rows = self.frame.sample(ROWS, random_state=0).reset_index(drop=True)
        self.targets = (self.pipeline.predict(self.rows) + 1) % data.k
        self.voice = VoICE(self.pipeline, contraction=1.0).fit(self.frame)

    def write(self, folder: Path) -> None:
        """Tell DiCE's side the model, as plain numbers."""
        columns = self.pipeline[0].named_transformers_
        levels = getattr(columns["text"], "categories_", []) if self.texts else []
        told = {
            "numbers": self.numbers,
            "mean": columns["numbers"].mean_.tolist(),
            "scale": columns["numbers"].scale_.tolist(),
            "levels": {n: [str(v) for v in one] for n, one in zip(self.texts, levels, strict=True)},
            "centers": self.pipeline[-1].cluster_centers_.tolist(),
            "targets": self.targets.tolist(),
        }
        (folder / "model.json").write_text(json.dumps(told))
        self.frame.to_csv(folder / "data.csv", index=False)
        self.rows.to_csv(folder / "rows.csv", index=False)

    def score(self, name: str, made: list[pd.DataFrame | None], seconds: Any, note="") -> Score:
        """Judge answers by the pipeline, in our metric: the mean over the valid ones."""
        answered = [i for i, one in enumerate(made) if one is not None]
        valid = [i for i in answered if self.pipeline.predict(made[i])[0] == self.targets[i]]
        cost, changed = np.full(len(made), np.nan), np.full(len(made), np.nan)
        for i in valid:
            pair = pd.concat([self.rows.iloc[[i]], made[i]])
            seen = self.pipeline[:-1].transform(pair)
            cost[i] = ((seen[1] - seen[0]) ** 2).mean()
            changed[i] = (pair.iloc[0] != pair.iloc[1]).sum()
        middle = [float(np.nanmean(v)) if valid else np.nan for v in (cost, changed)]
        return Score(
            name, len(made), len(answered), len(valid), *middle, float(np.mean(seconds)), note
        )

    def ours(self, objective: str) -> Score:
        """Answer a row at a time, as DiCE does."""
        self.voice.explain(self.rows.iloc[[0]], self.targets[:1], objective=objective)
        made, seconds = [], []
        for i in range(len(self.rows)):
            start = time.perf_counter()
            cf = self.voice.explain(
                self.rows.iloc[[i]], self.targets[i : i + 1], objective=objective
            )
            seconds.append(time.perf_counter() - start)
            made.append(cf.to_frame()[list(self.frame)] if np.isfinite(cf.cost[0]) else None)
        return self.score(f"voicecf {objective}", made, seconds)

    def theirs(self, python: Path, folder: Path, method: str) -> Score:
        """Run DiCE in its own environment, and read what it made as the user's columns."""
        command = [str(python), __file__, "--answer", str(folder), method]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return self.score(f"DiCE {method}", [None] * ROWS, [np.nan], f"over {PATIENCE} s")
        if run.returncode:
            why = run.stderr.strip().splitlines()[-1] if run.stderr.strip() else "no message"
            return self.score(f"DiCE {method}", [None] * ROWS, [np.nan], why[:120])
        found = json.loads((folder / f"{method}.json").read_text())
        made = [None if one["row"] is None else self._read(one["row"]) for one in found]
        why = sorted({one["why"] for one in found} - {""})
        return self.score(
            f"DiCE {method}", made, [one["seconds"] for one in found], "; ".join(why)[:120]
        )

    def _read(self, row: dict[str, str]) -> pd.DataFrame:
        made = pd.DataFrame({name: [row[name]] for name in self.frame})
        for name in self.numbers:
            values = made[name].astype(float)
            whole = pd.api.types.is_integer_dtype(self.frame[name])
            made[name] = values.astype(np.int64) if whole and values[0] % 1 == 0 else values
        return made


def environment(folder: Path) -> Path:
    """Make DiCE's environment, once; its python."""
    python = folder / "bin" / "python"
    if not python.exists():
        print(f"installing {DICE} into {folder} ...", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", DICE], check=True)
    return python


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(temporary) / "dice"
        python = environment(home)
        for name in TABLES:
            contest, folder = Contest(name), Path(temporary) / name
            folder.mkdir()
            contest.write(folder)
            print(f"\n{name}: {ROWS} rows, k = {len(contest.pipeline[-1].cluster_centers_)}")
            for objective in ("cost", "fewest"):
                print(contest.ours(objective), flush=True)
            for method in METHODS:
                print(contest.theirs(python, folder, method), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        answer(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
