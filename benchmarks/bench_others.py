"""The same rows answered by other software: validity, cost, changed columns, time.

Run `make others`, or `python benchmarks/bench_others.py --environments PREFIX [--voice FOLDER]`.
DiCE and alibi get virtual environments of their own, PREFIX-dice and PREFIX-alibi; nothing of
voicecf is installed there. The paper's software is asked if FOLDER is a checkout of it. The others
get the model as plain numbers, and the pipeline's own predict judges what they answer.
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
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# Each table with its number of clusters.
TABLES = {"wine": 5, "obesity": 7}
ROWS = 20
# Seconds after which a method is asked for no further row, and after which it is stopped.
PATIENCE, LIMIT = 150, 300
# An answer is on the target's border if this share of the way to the target's centre brings it
# inside. Changes below this many standard deviations are rounding.
SMALL = 1e-6
# k-means has no probabilities: the others see softmax(-distance^2 / SOFTNESS). alibi left rows of
# wine without an answer at 1, and its answers were dearer at 13.
SOFTNESS = 4.0
LABEL = "cluster"
# spacy, which alibi imports, needs click and does not ask for it.
PACKAGES = {"dice": ["dice-ml==0.12"], "alibi": ["alibi[tensorflow]==0.9.6", "click"]}
RESULT = Path(__file__).parent / "results" / "others.md"
# Software, its function here, its method, and why it does not take text where it does not.
SPLIT = "cannot: one-hot columns move as numbers of their own"
OTHERS = (
    ("the paper's software", "paper", "least cost", SPLIT),
    ("the paper's software", "paper", "parsimonious", SPLIT),
    ("DiCE", "dice", "random", ""),
    ("DiCE", "dice", "genetic", ""),
    ("alibi", "alibi", "Counterfactual", "cannot: numbers only"),
    ("alibi", "alibi", "CounterfactualProto", ""),
)
HEAD = (
    "| | in the target | on its border | elsewhere | cost | times the least | columns changed "
    "| ms a row | |\n|---|---:|---:|---:|---:|---:|---:|---:|---|"
)

Row = dict[str, Any]
Ask = Callable[[pd.DataFrame, int], Row | None]


# In the environments of the others: numpy, pandas and their own packages only.


class Model:
    """A classifier with the numbers of a pipeline: numbers scaled, one column a level."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.numbers, self.levels = told["numbers"], told["levels"]
        self.mean, self.scale = np.array(told["mean"]), np.array(told["scale"])
        self.classes_ = np.arange(len(told["centers"]))
        # The pipeline has no column for the first level; with 0 in every centre it weighs nothing.
        first = [np.arange(len(one)) == 0 for one in self.levels.values()]
        self.seen = ~np.concatenate([np.zeros(len(self.numbers), bool), *first])
        self.centers = np.zeros((len(self.classes_), len(self.seen)))
        self.centers[:, self.seen] = told["centers"]

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Scale the numbers, and give each level a column."""
        parts = [(frame[self.numbers].astype(float).to_numpy() - self.mean) / self.scale]
        for name, levels in self.levels.items():
            parts.append(frame[name].astype(str).to_numpy()[:, None] == np.array(levels))
        return np.hstack(parts)

    def decode(self, point: np.ndarray) -> Row:
        """Turn an encoded row back into the user's columns."""
        end = len(self.numbers)
        row: Row = dict(zip(self.numbers, point[:end] * self.scale + self.mean, strict=True))
        for name, levels in self.levels.items():
            row[name] = levels[int(np.argmax(point[end : end + len(levels)]))]
            end += len(levels)
        return row

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """Assign softly: the nearer a centre, the likelier its cluster."""
        apart = self.encode(frame)[:, None, self.seen] - self.centers[:, self.seen]
        scores = -(apart**2).sum(axis=2) / SOFTNESS
        likely = np.exp(scores - scores.max(axis=1, keepdims=True))
        return likely / likely.sum(axis=1, keepdims=True)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the likeliest cluster, which is the nearest."""
        return self.predict_proba(frame).argmax(axis=1)


def dice(model: Model, data: pd.DataFrame, method: str) -> Ask:
    """Ask DiCE, with its defaults, for one counterfactual a row."""
    import dice_ml

    labelled = data.assign(**{LABEL: model.predict(data)})
    public = dice_ml.Data(dataframe=labelled, continuous_features=model.numbers, outcome_name=LABEL)
    wrapped = dice_ml.Model(model=model, backend="sklearn", model_type="classifier")
    explainer = dice_ml.Dice(public, wrapped, method=method)
    options = {"random_seed": 0} if method == "random" else {}

    def ask(row: pd.DataFrame, target: int) -> Row | None:
        made = explainer.generate_counterfactuals(
            row, total_CFs=1, desired_class=target, verbose=False, **options
        ).cf_examples_list[0]
        # What DiCE displays: its answer after it has put columns back where that is possible.
        table = made.final_cfs_df if made.final_cfs_df_sparse is None else made.final_cfs_df_sparse
        return None if table is None or table.empty else table.iloc[0].drop(LABEL).to_dict()

    return ask


def alibi(model: Model, data: pd.DataFrame, method: str) -> Ask:
    """Ask alibi on encoded rows, within the data's ranges, with the model as a Keras layer."""
    import tensorflow as tf

    tf.compat.v1.disable_v2_behavior()
    from alibi.explainers import Counterfactual, CounterfactualProto

    X, n = model.encode(data), len(model.numbers)
    # The softmax of -|z - m|^2 is that of 2 z . m - |m|^2: a dense layer, which has gradients.
    layer = tf.keras.layers.Dense(len(model.classes_), "softmax", input_shape=X.shape[1:])
    network = tf.keras.Sequential([layer])
    layer.set_weights([2 * model.centers.T / SOFTNESS, -(model.centers**2).sum(axis=1) / SOFTNESS])
    # alibi places the levels of a category on a line, here in [-1, 1].
    line = np.ones(len(model.levels))
    within = tuple(
        np.concatenate([end, side * line])[None]
        for end, side in ((X[:, :n].min(axis=0), -1), (X[:, :n].max(axis=0), 1))
    )
    shape = (1, X.shape[1])
    if method == "Counterfactual":
        each = [
            Counterfactual(
                network, shape, target_class=t, target_proba=0.6, tol=0.1, feature_range=within
            )
            for t in model.classes_.tolist()
        ]
    else:
        sizes = [len(one) for one in model.levels.values()]
        starts = (n + np.cumsum([0, *sizes])[:-1]).tolist()
        proto = CounterfactualProto(
            network, shape, use_kdtree=True, theta=10.0, feature_range=within,
            cat_vars=dict(zip(starts, sizes, strict=True)) or None, ohe=bool(sizes),
        ).fit(X)  # fmt: skip

    def ask(row: pd.DataFrame, target: int) -> Row | None:
        x = model.encode(row)
        if method == "Counterfactual":
            found = each[target].explain(x).cf
        else:
            found = proto.explain(x, target_class=[target]).cf
        return None if found is None else model.decode(found["X"][0])

    return ask


def paper(model: Model, data: pd.DataFrame, method: str) -> Ask:
    """Ask the paper's software as its evaluation does: within the data, without contraction."""
    from src.counterfactuals import (
        project_to_target_with_fixed_features,
        ranked_actionable_prefixes,
    )
    from src.geometry import build_alpha_halfspaces

    X, names = model.encode(data), model.numbers
    prefixes = ranked_actionable_prefixes(names, names, np.ones(len(names), int))
    prefixes = prefixes if method == "parsimonious" else prefixes[-1:]

    def ask(row: pd.DataFrame, target: int) -> Row | None:
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
    """Ask one method for one row after the other; write down answers, times and errors."""
    told = json.loads((folder / "model.json").read_text())
    data = pd.read_csv(folder / "data.csv", keep_default_na=False)
    rows = pd.read_csv(folder / "rows.csv", keep_default_na=False)
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002, the others draw from the global generator
    found: list[tuple[Row | None, float]] = []
    errors: set[str] = set()
    ask = {"dice": dice, "alibi": alibi, "paper": paper}[tool](Model(told), data, method)
    begin = start = time.perf_counter()
    for i, target in enumerate(told["targets"]):
        row = None
        try:
            row = ask(rows.iloc[[i]], target)
        except Exception as error:  # whatever it is, it is this method's answer
            errors.add(f"{type(error).__name__}: {error}")
        end = time.perf_counter()
        found.append((row, end - start))
        start = end
        if end - begin > PATIENCE:
            break
    written = {"found": found, "note": "; ".join(sorted(errors))}
    (folder / "answers.json").write_text(json.dumps(written, default=str))


# In ours.


class Contest:
    """One table, its clustering, and the rows that all have to answer."""

    def __init__(self, name: str, k: int) -> None:
        from sklearn.cluster import KMeans
        from sklearn.compose import ColumnTransformer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        from voicecf import VoICE, datasets

        self.frame = datasets.load(name).frame
        self.texts = [c for c in self.frame if not pd.api.types.is_numeric_dtype(self.frame[c])]
        self.numbers = [c for c in self.frame if c not in self.texts]
        encoder = OneHotEncoder(drop="first", sparse_output=False)
        steps = [("numbers", StandardScaler(), self.numbers), ("text", encoder, self.texts)]
        columns = ColumnTransformer(steps if self.texts else steps[:1])
        model = KMeans(k, n_init=10, random_state=42)
        self.pipeline = make_pipeline(columns, model).fit(self.frame)
        self.rows = self.frame.sample(ROWS, random_state=0).reset_index(drop=True)
        self.targets = (self.pipeline.predict(self.rows) + 1) % k
        self.border = VoICE(self.pipeline, contraction=1.0).fit(self.frame)
        self.least = self.border.explain(self.rows, self.targets, plausible=None).cost

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

    def ours(self, name: str, explainer: Any, **options: Any) -> str:
        """Answer a row at a time, as the others do."""
        found = []
        for i in range(ROWS):
            start = time.perf_counter()
            cf = explainer.explain(self.rows.iloc[[i]], self.targets[i : i + 1], **options)
            row = cf.to_frame().iloc[0].to_dict() if np.isfinite(cf.cost[0]) else None
            found.append((row, time.perf_counter() - start))
        return self.line(name, found)

    def theirs(self, name: str, python: str, tool: str, method: str, path: str | None) -> str:
        """Ask a method in its own environment."""
        with tempfile.TemporaryDirectory() as folder:
            self.write(Path(folder))
            command = [python, __file__, "--answer", folder, tool, method]
            keep: Any = {"capture_output": True, "text": True, "timeout": LIMIT}
            try:
                subprocess.run(
                    command, check=True, env={**os.environ, "PYTHONPATH": path or ""}, **keep
                )
            except subprocess.TimeoutExpired:
                return self.line(name, [], f"stopped after {LIMIT} s")
            except subprocess.CalledProcessError as error:
                return self.line(name, [], error.stderr.strip().splitlines()[-1])
            return self.line(name, **json.loads((Path(folder) / "answers.json").read_text()))

    def judge(self, i: int, row: Row) -> tuple[str, float, float]:
        """Tell where an answer is, what it costs, and how many columns it changes."""
        made = pd.DataFrame([row])[list(self.frame)].astype(dict.fromkeys(self.numbers, float))
        pair = pd.concat([self.rows.iloc[[i]], made])
        before, after = self.pipeline[:-1].transform(pair)
        moved = (np.abs(after - before)[: len(self.numbers)] > SMALL).sum()
        texts = (pair[self.texts].iloc[0] != pair[self.texts].iloc[1]).sum()
        kmeans, target = self.pipeline[-1], self.targets[i]
        nudged = after + SMALL * (kmeans.cluster_centers_[target] - after)
        on_border = kmeans.predict(nudged[None])[0] == target
        inside = self.pipeline.predict(made)[0] == target
        place = "inside" if inside else "border" if on_border else "elsewhere"
        return place, float(((after - before) ** 2).mean()), float(moved + texts)

    def line(self, name: str, found: list[Any], note: str = "") -> str:
        """Return a method's line of the table: means over answers inside or on the border."""
        judged = {i: self.judge(i, row) for i, (row, _) in enumerate(found) if row is not None}
        places = [place for place, _, _ in judged.values()]
        good = [i for i, (place, _, _) in judged.items() if place != "elsewhere"]
        cells = [""] * 7
        if found:
            cells[0] = f"{places.count('inside')} of {len(found)}"
            cells[1:3] = str(places.count("border")), str(places.count("elsewhere"))
            cells[6] = f"{1e3 * np.median([seconds for _, seconds in found]):,.0f}"
        if good:
            cost, changed = (np.array([judged[i][part] for i in good]) for part in (1, 2))
            share = cost.sum() / self.least[good].sum()
            cells[3:6] = f"{cost.mean():.3f}", f"{share:.2f}", f"{changed.mean():.1f}"
        if found and len(found) < ROWS:
            note = f"{PATIENCE} s were over; {note}"
        return f"| {' | '.join([name, *cells, note.strip('; ')[:100]])} |"


def environment(tool: str, prefix: str) -> str:
    """Make the environment of one of the others, once; its python."""
    folder = Path(f"{prefix}-{tool}").absolute()
    python, done = str(folder / "bin" / "python"), folder / "installed"
    if not done.exists():
        print(f"installing {PACKAGES[tool]} into {folder} ...", file=sys.stderr, flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES[tool]], check=True)
        done.touch()
    return python


def lines(contest: Contest, prefix: str, voice: str | None) -> Iterator[str]:
    """Ask everybody; yield the lines of the table."""
    from voicecf import CFCLUST, VoICE

    pipeline, frame, border = contest.pipeline, contest.frame, contest.border
    yield contest.ours("voicecf, at the border", border)
    yield contest.ours("voicecf, at the border, fewest", border, objective="fewest")
    yield contest.ours("voicecf, default", VoICE(pipeline).fit(frame))
    yield contest.ours("CFCLUST", CFCLUST(pipeline).fit(frame))
    for software, tool, method, unable in OTHERS:
        name = f"{software}, {method}"
        if tool == "paper" and not voice:
            continue
        if contest.texts and unable:
            yield contest.line(name, [], unable)
        else:
            python = sys.executable if tool == "paper" else environment(tool, prefix)
            yield contest.theirs(name, python, tool, method, voice if tool == "paper" else None)


def about(prefix: str, voice: str | None) -> str:
    """Return what the tables were made with."""
    made = [f"{name} {version(name)}" for name in ("voicecf", "scikit-learn")]
    for tool, package in (("dice", "dice-ml"), ("alibi", "alibi"), ("alibi", "tensorflow")):
        code = f"import importlib.metadata as m; print(m.version({package!r}), end='')"
        found = subprocess.check_output([environment(tool, prefix), "-c", code], text=True)
        made.append(f"{package} {found}")
    if voice:
        command = ["git", "--git-dir", f"{voice}/.git", "rev-parse", "--short", "HEAD"]
        commit = subprocess.run(command, capture_output=True, text=True).stdout.strip()
        made.append(f"the paper's software ({commit or 'a copy without its history'})")
    made.append(f"Python {'.'.join(map(str, sys.version_info[:3]))}")
    missing = "" if voice else " The paper's software was left out: no checkout of it was given."
    return f"{', '.join(made)}; {os.cpu_count()} cores, {datetime.date.today()}.{missing}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", default=".venv", metavar="PREFIX")
    parser.add_argument("--voice", metavar="FOLDER", type=lambda name: str(Path(name).absolute()))
    options = parser.parse_args()
    text = []
    for name, k in TABLES.items():
        contest = Contest(name, k)
        kinds = f"{len(contest.numbers)} columns of numbers, {len(contest.texts)} of text"
        text += [f"**{name}**: {kinds}, k = {k}, {ROWS} rows", "", HEAD]
        for line in lines(contest, options.environments, options.voice):
            print(line, flush=True)
            text.append(line)
        text.append("")
    text.append(about(options.environments, options.voice))
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text("\n".join(text) + "\n")
    print(text[-1])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--answer"]:
        answer(Path(sys.argv[2]), *sys.argv[3:])
    else:
        main()
