"""The paper's tables: what each is about, and its rows, recomputed from a study of one dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from voicecf.diagnostics import (
    PairwiseComparison,
    WeightConcentration,
    adjusted_rand_index,
    weight_concentration,
)
from voicecf.paper.cells import Rows
from voicecf.paper.protocol import MODES, RULES, SHARK_MODE, UNWEIGHTED, Study, Trial

MEAN = "Mean of the three"


def _row(found: Any, **columns: str) -> dict[str, Any]:
    """Read a row off a result, by the attribute that each column shows; percentages of shares."""
    values = {column: getattr(found, attribute) for column, attribute in columns.items()}
    return {c: 100 * value if c.endswith("_pct") else value for c, value in values.items()}


def dataset_rows(study: Study) -> Rows:
    """Size of the data, and whether SHARK's weights collapse on it."""
    (n, d), k = study.X.shape, study.dataset.k
    collapsed = f"{_concentration(study).top2_mass:.3f}" == "1.000"
    risk = "collapse" if collapsed else "no collapse"
    return {"": {"n": n, "d": d, "k": k, "degeneracy_risk": risk}}


def clustering_rows(study: Study) -> Rows:
    """Agreement with the known classes, and inertia."""
    row: dict[str, float] = {}
    for name, model in (("kmeans", study.kmeans), ("shark", study.shark)):
        row[f"{name}_ari"] = adjusted_rand_index(model.labels_, study.dataset.label)
        row[f"{name}_inertia"] = float(model.inertia_)
    return {"": row}


def validity_rows(found: PairwiseComparison) -> Rows:
    """Count valid projections, pairwise and full; the full one, where valid, needs no repair."""
    row = _row(
        found, comparisons="comparisons", valid="valid", cfclust_validity_pct="validity",
        cfclust_repair_cost="repair_cost", voice_validity_pct="exact_validity",
    )  # fmt: skip
    return {"": {**row, "voice_repair_cost": 0.0 if found.exact_validity == 1 else float("nan")}}


def quoted_rows(found: Sequence[PairwiseComparison]) -> Rows:
    """Return what the text says of all datasets, pooled and averaged."""
    pooled = sum(found, PairwiseComparison())
    row = _row(pooled, valid="valid", invalid="invalid", pooled_validity_pct="validity")
    row["failure_rate_pct"] = 100 * (1 - pooled.validity)
    row["macro_validity_pct"] = 100 * float(np.mean([each.validity for each in found]))
    row |= _row(pooled, repair_cost="repair_cost")
    row |= _row(pooled, relative_underestimation_pct="relative_underestimation")
    return {"": row}


def underestimation_rows(study: Study) -> Rows:
    """Tell what share of the true cost invalid pairwise answers leave out."""
    found = study.comparison.found
    return {"": _row(found, relative_underestimation_pct="relative_underestimation")}


def _cheapest(found: Trial) -> dict[str, float]:
    return _row(
        found.cheapest, feasible_pct="feasibility", changed_features_pct="changed_share",
        cost="cost", tau="tau",
    )  # fmt: skip


def _shortest(found: Trial) -> dict[str, float]:
    return _row(
        found.shortest, feasible_pct="feasibility", r_star="r_star", r_star_over_d="r_star_over_d",
        single_feature_pct="single_feature", tau="tau",
    )  # fmt: skip


def _actionable(found: Trial) -> dict[str, float]:
    n = found.cheapest.n
    return {f"fixed_{share}": 100 * count / n for share, count in found.feasible.items()}


# What a table of answers has of one mode, by table.
VIEWS: dict[str, Callable[[Trial], dict[str, float]]] = {
    "least_cost": _cheapest,
    "parsimony": _shortest,
    "actionability": _actionable,
}


def _averaged(rows: Iterable[dict[str, float]]) -> dict[str, float]:
    """Average the modes' means; of feasibility, which a caption gives for every mode, the least."""
    rows = list(rows)
    mean = {column: float(np.mean([row[column] for row in rows])) for column in rows[0]}
    if "feasible_pct" in mean:
        mean["feasible_pct"] = min(row["feasible_pct"] for row in rows)
    return mean


def mean_rows(study: Study, table: str) -> Rows:
    """Least-cost answers, shortest prefixes or feasibility under masks: the mean of the modes."""
    found = study.trials().values()
    row = _averaged(map(VIEWS[table], found))
    if table == "least_cost":
        row["runtime_ms"] = float(np.mean([trial.milliseconds for trial in found]))
    return {"": row}


def mode_rows(study: Study, table: str, paired: bool = False) -> Rows:
    """Answer exactly and mode by mode, for any dataset, with the scale-free contraction."""
    found = study.trials("scale-free", paired)
    rows = {mode: VIEWS[table](found[mode]) for mode in MODES}
    rows[MEAN] = _averaged(rows.values())
    if table == "least_cost":
        for mode in MODES:
            rows[mode] |= _row(found[mode], confirmed_pct="confirmed", voice_pct="explained")
    return rows


def contraction_rows(study: Study) -> Rows:
    """Contraction of the cells by both models: as printed, scale-free, and with the box."""
    rows = {}
    for mode in (UNWEIGHTED, SHARK_MODE):
        rows[mode], exact, boxed = (
            _row(
                study.contraction(mode, rule), alpha_min="minimum", alpha_median="median",
                alpha_max="maximum", score_median="score",
            )
            for rule in RULES
        )  # fmt: skip
        if any(f"{exact[column]:.3f}" != f"{rows[mode][column]:.3f}" for column in exact):
            rows[f"{mode}, scale-free"] = exact
        rows[f"{mode}, box included"] = boxed
    return rows


def _concentration(study: Study) -> WeightConcentration:
    data = study.dataset
    return weight_concentration(study.shark.feature_weights_, data.feature_names, data.blocks)


def concentration_rows(study: Study) -> Rows:
    """Concentration of the SHARK weights, and the range of contraction that goes with it."""
    found = _concentration(study)
    row = _row(
        found, max_weight="max_weight", d_eff="effective", top2_mass="top2_mass", dominant="label"
    )
    for rule, suffix in zip(RULES, ("", "_scale_free", "_box"), strict=True):
        contraction = study.contraction(SHARK_MODE, rule)
        row[f"alpha_range{suffix}"] = (contraction.minimum, contraction.maximum)
    return {"": row}


def dominant_names(study: Study) -> list[str]:
    """List what a dominant feature or block can be called."""
    blocks = study.dataset.blocks
    taken = {at for positions in blocks.values() for at in positions}
    features = enumerate(study.dataset.feature_names)
    names = [str(name) for at, name in features if at not in taken]
    return names + [f"{block} {kind}" for block in blocks for kind in ("dummy", "block")]


def solver_rows(study: Study) -> Rows:
    """Exact answers to the questions that the published solver's released results are about."""
    rows = {}
    for mode, found in study.trials().items():
        counts = {
            f"{kind}_{share}": count
            for share, count in found.feasible.items()
            for kind in ("least_cost", "prefix")
        }
        rows[mode] = {**counts, "cost": found.cheapest.cost, "r_star": found.shortest.r_star}
    return rows


@dataclass(frozen=True)
class PaperTable:
    """A table.

    Attributes
    ----------
    title : str
        What it is about.
    rows : callable
        Makes the rows of a study.
    base : str
        The printed table that one beyond the print belongs to.
    option : str
        The option of a request that asks for it: "extended", "paired", or empty if printed.
    """

    title: str
    rows: Callable[[Study], Rows]
    base: str = ""
    option: str = ""


def _by_mode(title: str, base: str) -> PaperTable:
    return PaperTable(
        f"Beyond the print: {title}", partial(mode_rows, table=base), base, "extended"
    )


def _paired(title: str, base: str) -> PaperTable:
    rows = partial(mode_rows, table=base, paired=True)
    return PaperTable(f"Paired modes: {title}", rows, base, "paired")


RECOMPUTED = {
    "datasets": PaperTable("Datasets", dataset_rows),
    "clustering": PaperTable("Clusterings against the known classes", clustering_rows),
    "validity": PaperTable(
        "Validity of pairwise and of full projections, fifty k-means fits",
        lambda study: validity_rows(study.comparison.found),
    ),
    "validity_text": PaperTable("Validity, as the text quotes it", underestimation_rows),
    "least_cost": PaperTable(
        "Least-cost answers, mean of the three modes", partial(mean_rows, table="least_cost")
    ),
    "parsimony": PaperTable(
        "Shortest ranked prefixes, mean of the three modes", partial(mean_rows, table="parsimony")
    ),
    "actionability": PaperTable(
        "Feasibility (%) with a share of the features fixed, mean of the three modes",
        partial(mean_rows, table="actionability"),
    ),
    "contraction": PaperTable("Contraction", contraction_rows),
    "concentration": PaperTable("Weight concentration under SHARK", concentration_rows),
    "least_cost_by_mode": _by_mode("least-cost answers by mode, exact", "least_cost"),
    "parsimony_by_mode": _by_mode("shortest ranked prefixes by mode, exact", "parsimony"),
    "actionability_by_mode": _by_mode(
        "feasibility (%) under masks by mode, exact", "actionability"
    ),
    "solver": PaperTable(
        "Beyond the print: the published solver, and exact answers to its questions",
        solver_rows, "actionability", "extended",
    ),
    "contraction_all": PaperTable(
        "Beyond the print: contraction of all ten", contraction_rows, "contraction", "extended"
    ),
    "least_cost_paired": _paired("least-cost answers, exact", "least_cost"),
    "parsimony_paired": _paired("shortest ranked prefixes, exact", "parsimony"),
    "actionability_paired": _paired("feasibility (%) under masks, exact", "actionability"),
}  # fmt: skip
