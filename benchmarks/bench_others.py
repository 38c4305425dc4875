"""The same rows answered by other software: validity, cost, changed columns, time.

Run `make others`, or `python benchmarks/bench_others.py --environments PREFIX [--voice FOLDER]`.
DiCE and alibi get virtual environments of their own, in PREFIX-dice and PREFIX-alibi, for they ask
for much that voicecf has no use for; nothing of voicecf is installed there. The paper's software is
used if FOLDER has a checkout of it. The model crosses over as plain numbers, and what comes back is
judged here, by the pipeline's own predict.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Each table with its number of clusters.
TABLES = {"wine": 5, "obesity": 7}
ROWS = 20
# Seconds after which a method is asked for no further row, and after which it is stopped.
PATIENCE, LIMIT = 60, 150
# Answers this share of the way from the target's centre are on its border; changes of a coordinate
# below it (a standard deviation is 1) are rounding.
SMALL = 1e-6
LABEL = "cluster"
PACKAGES = {"dice": "dice-ml==0.12", "alibi": "alibi[tensorflow]==0.9.6"}
RESULT = Path(__file__).parent / "results" / "others.md"

Ask = Callable[[pd.DataFrame, int], dict[str, Any] | None]


# In the environments of the others: numpy, pandas and their own packages only.


class CannotAnswer(Exception):
    """A method does not take tables of this kind."""


class Model:
    """A classifier with the numbers of a pipeline: numbers scaled, one column a level."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.numbers, self.levels = told["numbers"], told["levels"]
        self.mean, self.scale = np.array(told["mean"]), np.array(told["scale"])
        self.centers = np.array(told["centers"])
        self.classes_ = np.arange(len(self.centers))
        # The pipeline has a column for each level but the first.
        kept = [np.ones(len(self.numbers), bool)]
        kept += [np.arange(len(one)) > 0 for one in self.levels.values()]
        self.kept = np.concatenate(kept)

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Scale the numbers, and give each level a column."""
        parts = [(frame[self.numbers].astype(float).to_numpy() - self.mean) / self.scale]
        for name, levels in self.levels.items():
            own = frame[name].astype(str).to_numpy()
            parts.append((own[:, None] == np.array(levels)).astype(float))
        return np.hstack(parts)

    def decode(self, point: np.ndarray) -> dict[str, Any]:
        """Turn an encoded row back into the user's columns."""
        end = len(self.numbers)
        values = np.asarray(point[:end], float) * self.scale + self.mean
        row: dict[str, Any] = dict(zip(self.numbers, values.tolist(), strict=True))
        for name, levels in self.levels.items():
            row[name] = levels[int(np.argmax(point[end : end + len(levels)]))]
            end += len(levels)
        return row

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Assign softly: the nearer a centre, the likelier its cluster."""
        apart = ((self.encode(frame)[:, None, self.kept] - self.centers) ** 2).sum(axis=2)
        likely = np.exp(apart.min(axis=1, keepdims=True) - apart)
        return likely / likely.sum(axis=1, keepdims=True)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the likeliest cluster, which is the nearest."""
        return self.predict_proba(frame).argmax(axis=1)


def dice(model: Model, data: pd.DataFrame, method: str) -> Ask:
    """DiCE with its defaults, asked for one counterfactual a row."""
    import dice_ml

    public = dice_ml.Data(
        dataframe=data.assign(**{LABEL: model.predict(data)}),
        continuous_features=model.numbers, outcome_name=LABEL,
    )  # fmt: skip
    wrapped = dice_ml.Model(model=model, backend="sklearn", model_type="classifier")
    explainer = dice_ml.Dice(public, wrapped, method=method)
    options = {"random_seed": 0} if method == "random" else {}

    def ask(row: pd.DataFrame, target: int) -> dict[str, Any] | None:
        made = explainer.generate_counterfactuals(
            row, total_CFs=1, desired_class=target, verbose=False, **options
        ).cf_examples_list[0]
        # What DiCE shows first: its answer after columns were put back where that is possible.
        table = made.final_cfs_df if made.final_cfs_df_sparse is None else made.final_cfs_df_sparse
        if table is None or not len(table):
            return None
        return {name: str(value) for name, value in table.iloc[0].drop(LABEL).items()}

    return ask


def alibi(model: Model, data: pd.DataFrame, method: str) -> Ask:
    """alibi on encoded rows within the data's ranges, with the model as a Keras layer."""
    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    tf.get_logger().setLevel("ERROR")
    from alibi.explainers import Counterfactual, CounterfactualProto

    X = model.encode(data).astype(np.float32)
    shape, n = (1, X.shape[1]), len(model.numbers)
    # softmax(-|z - m|^2) = softmax(2 z . m - |m|^2): one dense layer, so that alibi has gradients.
    layer = tf.keras.layers.Dense(len(model.centers), activation="softmax", input_shape=shape[1:])
    network = tf.keras.Sequential([layer])
    slopes = np.zeros((X.shape[1], len(model.centers)))
    slopes[model.kept] = 2 * model.centers.T
    layer.set_weights([slopes, -(model.centers**2).sum(axis=1)])
    if method == "Counterfactual":
        if model.levels:
            raise CannotAnswer("takes numbers only")
        within = (X.min(axis=0)[None], X.max(axis=0)[None])
        explainers = [
            Counterfactual(network, shape, target_class=int(t), feature_range=within)
            for t in model.classes_
        ]

        def explain(x: np.ndarray, target: int) -> Any:
            return explainers[target].explain(x)
    else:
        # Numbers within the data; alibi places the levels of a category on a line in [-1, 1].
        ends, free = (X[:, :n].min(axis=0), X[:, :n].max(axis=0)), np.ones(len(model.levels))
        within = tuple(np.append(end, s * free)[None] for end, s in zip(ends, (-1, 1), strict=True))
        sizes = [len(one) for one in model.levels.values()]
        starts = n + np.cumsum([0, *sizes])[:-1]
        categories = {int(s): size for s, size in zip(starts, sizes, strict=True)}
        proto = CounterfactualProto(
            network, shape, use_kdtree=True, theta=10.0, feature_range=within,
            cat_vars=categories or None, ohe=bool(categories),
        ).fit(X)  # fmt: skip

        def explain(x: np.ndarray, target: int) -> Any:
            return proto.explain(x, target_class=[target])

    def ask(row: pd.DataFrame, target: int) -> dict[str, Any] | None:
        found = explain(model.encode(row).astype(np.float32), target).cf
        return None if found is None else model.decode(found["X"][0])

    return ask


def paper(model: Model, data: pd.DataFrame, method: str) -> Ask:
    """The paper's software at the cell's border, within the data, as its evaluation calls it."""
    from src.counterfactuals import (
        project_to_target_with_fixed_features,
        ranked_actionable_prefixes,
    )
    from src.geometry import build_alpha_halfspaces

    if model.levels:
        raise CannotAnswer("one-hot columns are moved as independent numbers")
    X, names = model.encode(data), model.numbers
    prefixes = ranked_actionable_prefixes(names, names, np.ones(len(names), int))
    if method == "least cost":
        prefixes = prefixes[-1:]

    def ask(row: pd.DataFrame, target: int) -> dict[str, Any] | None:
        halfspaces = build_alpha_halfspaces(model.centers, target, alpha=1.0)
        for _, free in prefixes:
            point, found, _ = project_to_target_with_fixed_features(
                model.encode(row)[0], free, halfspaces, X.min(axis=0), X.max(axis=0)
            )
            if found:
                return model.decode(point)
        return None

    return ask


def answer(folder: Path, tool: str, method: str) -> None:
    """Ask one method for one row after the other, and write down its answers and their times."""
    told = json.loads((folder / "model.json").read_text())
    data, rows = (pd.read_csv(folder / f"{name}.csv", keep_default_na=False)
                  for name in ("data", "rows"))  # fmt: skip
    random.seed(0)
    np.random.seed(0)
    output, found = folder / "answers.json", []
    try:
        ask = {"dice": dice, "alibi": alibi, "paper": paper}[tool](Model(told), data, method)
    except CannotAnswer as error:
        output.write_text(json.dumps({"note": f"cannot: {error}", "answers": []}))
        return
    begin = time.perf_counter()
    for i, target in enumerate(told["targets"]):
        start, row, why = time.perf_counter(), None, ""
        if start - begin > PATIENCE:
            break
        try:
            row = ask(rows.iloc[[i]], target)
        except Exception as error:  # whatever it is, it is this method's answer
            why = f"{type(error).__name__}: {error}"
        found.append({"row": row, "seconds": time.perf_counter() - start, "why": why})
        output.write_text(json.dumps({"note": "", "answers": found}))


# In ours.


@dataclass(frozen=True)
class Answers:
    """What a method made of the rows that it was asked for: None where it found nothing."""

    made: list[pd.DataFrame | None]
    seconds: list[float]
    note: str = ""


class Contest:
    """One table, its clustering, and the rows that all have to answer."""

    def __init__(self, name: str, k: int) -> None:
        from sklearn.cluster import KMeans
        from sklearn.compose import ColumnTransformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        from voicecf import datasets

        self.name, self.frame = name, datasets.load(name).frame
        self.texts = [c for c in self.frame if not pd.api.types.is_numeric_dtype(self.frame[c])]
        self.numbers = [c for c in self.frame if c not in self.texts]
        encoder = OneHotEncoder(drop="first", sparse_output=False)
        steps = [("numbers", StandardScaler(), self.numbers), ("text", encoder, self.texts)]
        model = KMeans(k, n_init=10, random_state=42)
        steps = steps if self.texts else steps[:1]
        self.pipeline = make_pipeline(ColumnTransformer(steps), model).fit(self.frame)
        self.rows = self.frame.sample(ROWS, random_state=0).reset_index(drop=True)
        self.targets = (self.pipeline.predict(self.rows) + 1) % k
        self.least: np.ndarray | None = None

    def write(self, folder: Path) -> None:
        """Tell the others the model, as plain numbers, and the rows."""
        columns = self.pipeline[0].named_transformers_
        levels = columns["text"].categories_ if self.texts else []
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

    def ours(self, explainer: Any, **options: Any) -> Answers:
        """Answer a row at a time, as the others do."""
        explainer.fit(self.frame)
        made, seconds = [], []
        for i in range(ROWS):
            start = time.perf_counter()
            cf = explainer.explain(self.rows.iloc[[i]], self.targets[i : i + 1], **options)
            seconds.append(time.perf_counter() - start)
            made.append(cf.to_frame()[list(self.frame)] if np.isfinite(cf.cost[0]) else None)
        return Answers(made, seconds)

    def theirs(self, python: Path | str, tool: str, method: str, **environment: str) -> Answers:
        """Run a method in its own environment, and read its answers as the user's columns."""
        with tempfile.TemporaryDirectory() as temporary:
            folder, note = Path(temporary), ""
            self.write(folder)
            command = [str(python), __file__, "--answer", temporary, tool, method]
            try:
                run = subprocess.run(
                    command, capture_output=True, text=True, timeout=LIMIT,
                    env={**os.environ, **environment},
                )  # fmt: skip
                if run.returncode:
                    note = (run.stderr.strip() or "no message").splitlines()[-1]
            except subprocess.TimeoutExpired:
                note = f"stopped after {LIMIT} s"
            output = folder / "answers.json"
            told = json.loads(output.read_text()) if output.exists() else {"answers": []}
        found = told["answers"]
        made = [None if one["row"] is None else self._read(one["row"]) for one in found]
        notes = [note or told.get("note", ""), *sorted({one["why"] for one in found} - {""})]
        return Answers(made, [one["seconds"] for one in found], "; ".join(filter(None, notes)))

    def _read(self, row: dict[str, Any]) -> pd.DataFrame:
        frame = pd.DataFrame({name: [row[name]] for name in self.frame})
        return frame.astype({name: float for name in self.numbers})

    def judge(self, i: int, made: pd.DataFrame) -> tuple[str, float, float]:
        """Tell where an answer is (in the target, on its border, outside), its cost and changes."""
        pair = pd.concat([self.rows.iloc[[i]], made])
        before, after = self.pipeline[:-1].transform(pair)
        moved = (np.abs(after - before)[: len(self.numbers)] > SMALL).sum()
        texts = (pair[self.texts].iloc[0] != pair[self.texts].iloc[1]).sum()
        kmeans, target = self.pipeline[-1], self.targets[i]
        nudged = after + SMALL * (kmeans.cluster_centers_[target] - after)
        place = "outside"
        if self.pipeline.predict(made)[0] == target:
            place = "inside"
        elif kmeans.predict(nudged[None])[0] == target:
            place = "border"
        return place, float(((after - before) ** 2).mean()), float(moved + texts)

    def line(self, name: str, answers: Answers) -> str:
        """Return a method's line of the table; the first method's costs are the least ones."""
        judged = [None if made is None else self.judge(i, made) for i, made in enumerate(answers.made)]
        if self.least is None:
            self.least = np.array([one[1] for one in judged])
        places = [one[0] if one else "" for one in judged]
        good = [i for i, place in enumerate(places) if place in ("inside", "border")]
        cells = [f"{places.count('inside')}", f"{places.count('border')}"]
        cells += [f"{places.count('outside')}", f"{ROWS - len(places) + places.count('')}"]
        if good:
            cost, least = np.array([judged[i][1] for i in good]), self.least[good]
            changed = np.mean([judged[i][2] for i in good])
            cells += [f"{cost.mean():.3f}", f"{cost.sum() / least.sum():.2f}", f"{changed:.1f}"]
        else:
            cells += ["", "", ""]
        cells.append(f"{1e3 * np.median(answers.seconds):,.1f}" if answers.seconds else "")
        note = answers.note
        if answers.made and len(answers.made) < ROWS:
            note = f"{len(answers.made)} rows in {PATIENCE} s; {note}".rstrip("; ")
        return f"| {' | '.join([name, *cells, note[:100]])} |"


HEAD = """| | in the target | on its border | elsewhere | no answer | cost | x least | columns | ms a row | |
|---|---:|---:|---:|---:|---:|---:|---:|---:|---|"""


def environment(tool: str, prefix: str) -> Path:
    """Make an environment for one of the others, once; its python."""
    folder = Path(f"{prefix}-{tool}").absolute()
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing {PACKAGES[tool]} into {folder} ...", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PACKAGES[tool]], check=True)
        (folder / "installed").touch()
    return python


def lines(contest: Contest, prefix: str, voice: str | None) -> Iterator[str]:
    """Ask everybody; a line of the table each."""
    from voicecf import CFCLUST, VoICE

    model = contest.pipeline
    border = VoICE(model, contraction=1.0)
    yield contest.line("voicecf, at the border", contest.ours(border))
    yield contest.line(
        "voicecf, at the border, fewest", contest.ours(border, objective="fewest")
    )
    yield contest.line("voicecf, default", contest.ours(VoICE(model)))
    yield contest.line("CFCLUST", contest.ours(CFCLUST(model)))
    if voice:
        for method in ("least cost", "parsimonious"):
            made = contest.theirs(sys.executable, "paper", method, PYTHONPATH=voice)
            yield contest.line(f"The paper's software, {method}", made)
    for tool, name, methods in (
        ("dice", "DiCE", ("random", "genetic")),
        ("alibi", "alibi", ("Counterfactual", "CounterfactualProto")),
    ):
        python = environment(tool, prefix)
        for method in methods:
            yield contest.line(f"{name}, {method}", contest.theirs(python, tool, method))


def about(prefix: str, voice: str | None) -> str:
    """Return what the tables were made with."""
    names = {"dice": ["dice-ml"], "alibi": ["alibi", "tensorflow"]}
    found = [f"{name} {version(name)}" for name in ("voicecf", "scikit-learn", "numpy")]
    for tool, packages in names.items():
        code = f"from importlib.metadata import version\nfor n in {packages}: print(n, version(n))"
        command = [str(environment(tool, prefix)), "-c", code]
        found += subprocess.check_output(command, text=True).splitlines()
    if voice:
        command = ["git", "-C", voice, "rev-parse", "--short", "HEAD"]
        run = subprocess.run(command, capture_output=True, text=True)
        found.append(f"the paper's software, {run.stdout.strip() or 'a copy without its history'}")
    python = ".".join(map(str, sys.version_info[:3]))
    made = f"Python {python}, {os.cpu_count()} cores, {datetime.date.today()}"
    missing = "" if voice else " The paper's software was left out: no checkout of it was given."
    return f"Made with {', '.join(found)}; {made}.{missing}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", default=".venv", metavar="PREFIX")
    parser.add_argument("--voice", metavar="FOLDER", help="a checkout of the paper's software")
    options = parser.parse_args()
    voice = options.voice and str(Path(options.voice).absolute())
    text = []
    for name, k in TABLES.items():
        contest = Contest(name, k)
        kinds = f"{len(contest.numbers)} columns of numbers, {len(contest.texts)} of text"
        text.append(f"**{name}** ({kinds}, k = {k}), {ROWS} rows:\n\n{HEAD}")
        print(f"\n{text[-1]}", flush=True)
        for line in lines(contest, options.environments, voice):
            text[-1] += f"\n{line}"
            print(line, flush=True)
    text.append(about(options.environments, voice))
    print(f"\n{text[-1]}")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n\n".join(text) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        answer(Path(sys.argv[2]), *sys.argv[3:])
    else:
        main()
