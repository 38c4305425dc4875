"""The paper's tables, recomputed cell by cell from a study of one dataset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from voicecf.diagnostics import (
    ContractionSummary,
    PairwiseComparison,
    WeightConcentration,
    adjusted_rand_index,
    weight_concentration,
)
from voicecf.paper.cells import Entry, entry
from voicecf.paper.protocol import MODES, SHARK_MODE, UNWEIGHTED, ModeResult, Study
from voicecf.paper.published import inertia, written

MEAN = "Mean of the three"
SHARES = (0, 25, 50, 75)


def _entries(
    table: str, title: str, values: Mapping[str, Any], mode: str = "",
    notes: Mapping[str, Sequence[str]] | None = None,
) -> Iterator[Entry]:  # fmt: skip
    """Make a cell for each column; `notes` are those of each column that has some."""
    for column, value in values.items():
        told = (notes or {}).get(column, ())
        yield entry(table, title, column, value, mode=mode, notes=told)


def dataset_table(study: Study) -> Iterator[Entry]:
    """Size of the data, and whether SHARK's weights collapse on it."""
    (n, d), k = study.X.shape, study.dataset.k
    yield from _entries("datasets", study.title, {"n": n, "d": d, "k": k})
    collapsed = f"{_concentration(study).top2_mass:.3f}" == "1.000"
    risk = "collapse" if collapsed else "no collapse"
    yield entry("datasets", study.title, "degeneracy_risk", risk, notes=["risk"])


def clustering_table(study: Study) -> Iterator[Entry]:
    """Agreement with the known classes, and inertia."""
    for name, model in (("kmeans", study.kmeans), ("shark", study.shark)):
        agreement = adjusted_rand_index(model.labels_, study.dataset.label)
        tie = ["tie"] if name == "shark" and study.dataset.name == "german_credit" else []
        yield entry("clustering", study.title, f"{name}_ari", agreement, notes=tie)
        value = float(model.inertia_)
        cut = inertia(value) not in (f"{value:.2f}", f"{value:.2e}")
        notes = ["digits"] if cut else []
        yield entry("clustering", study.title, f"{name}_inertia", value, notes=notes)


def validity_table(title: str, found: PairwiseComparison) -> Iterator[Entry]:
    """Count valid projections, pairwise and full; the full one, where valid, needs no repair."""
    values = {
        "comparisons": found.comparisons,
        "valid": found.valid,
        "cfclust_validity_pct": 100 * found.validity,
        "cfclust_repair_cost": found.repair_cost,
        "voice_validity_pct": 100 * found.exact_validity,
        "voice_repair_cost": 0.0 if found.exact_validity == 1 else float("nan"),
    }
    yield from _entries("validity", title, values, notes={"valid": ["counts"]})


def overall_tables(found: dict[str, PairwiseComparison]) -> Iterator[Entry]:
    """Pooled and averaged over all ten datasets, and the figures that the text quotes."""
    pooled = sum(found.values(), PairwiseComparison())
    yield from validity_table("Overall", pooled)
    macro = float(np.mean([each.validity for each in found.values()]))
    values = {
        "valid": pooled.valid,
        "invalid": pooled.invalid,
        "pooled_validity_pct": 100 * pooled.validity,
        "failure_rate_pct": 100 * (1 - pooled.validity),
        "macro_validity_pct": 100 * macro,
        "repair_cost": pooled.repair_cost,
        "relative_underestimation_pct": 100 * pooled.relative_underestimation,
    }
    yield from _entries("validity_text", "Overall", values)


def underestimation(study: Study, found: PairwiseComparison) -> Iterator[Entry]:
    """Tell what share of the true cost invalid pairwise answers leave out."""
    share = 100 * found.relative_underestimation
    yield entry("validity_text", study.title, "relative_underestimation_pct", share)


def _cheapest(result: ModeResult) -> dict[str, float]:
    found = result.cheapest
    return {
        "feasible_pct": 100 * found.feasibility,
        "changed_features_pct": 100 * found.changed_share,
        "cost": found.cost,
        "tau": found.tau,
    }


def _shortest(result: ModeResult) -> dict[str, float]:
    found = result.shortest
    return {
        "feasible_pct": 100 * found.feasibility,
        "r_star": found.r_star,
        "r_star_over_d": found.r_star_over_d,
        "single_feature_pct": 100 * found.single_feature,
        "tau": found.tau,
    }


def _actionable(found: ModeResult) -> dict[str, float]:
    shares = zip(SHARES, found.feasible, strict=True)
    return {f"fixed_{share}": 100 * count / found.cheapest.n for share, count in shares}


# What a table of answers has of one mode, by table.
VIEWS: dict[str, Callable[[ModeResult], dict[str, float]]] = {
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


def mean_table(study: Study, table: str) -> Iterator[Entry]:
    """Least-cost answers, shortest prefixes or feasibility under masks: the mean of the modes."""
    found = study.outcomes().values()
    yield from _entries(table, study.title, _averaged(map(VIEWS[table], found)))
    if table == "least_cost":
        took = float(np.mean([outcome.milliseconds for outcome in found]))
        yield entry(table, study.title, "runtime_ms", took, notes=["runtime"])


def _contraction(found: ContractionSummary) -> dict[str, float]:
    return {
        "alpha_min": found.minimum,
        "alpha_median": found.median,
        "alpha_max": found.maximum,
        "score_median": found.score,
    }


def contraction_table(study: Study, table: str = "contraction") -> Iterator[Entry]:
    """Contraction of the cells by both models: as printed, scale-free, and with the box."""
    for mode in (UNWEIGHTED, SHARK_MODE):
        weighted = mode == SHARK_MODE
        printed = _contraction(study.contraction(weighted, "printed"))
        exact = _contraction(study.contraction(weighted, "scale-free"))
        moved = {c for c in printed if written(table, c, printed[c]) != written(table, c, exact[c])}
        notes = {column: ["floor"] for column in moved}
        yield from _entries(table, study.title, printed, mode, notes)
        beside = {"scale-free": exact} if moved else {}
        beside["box included"] = _contraction(study.contraction(weighted, "box"))
        for rule, values in beside.items():
            told = ["box"] if rule == "box included" else []
            notes = dict.fromkeys(values, told)
            yield from _entries(table, study.title, values, f"{mode}, {rule}", notes)


def _concentration(study: Study) -> WeightConcentration:
    data = study.dataset
    return weight_concentration(study.shark.feature_weights_, data.feature_names, data.blocks)


def _names(study: Study) -> list[str]:
    """List what a dominant feature or block can be called."""
    blocks = study.dataset.blocks
    taken = {at for positions in blocks.values() for at in positions}
    features = enumerate(study.dataset.feature_names)
    names = [str(name) for at, name in features if at not in taken]
    return names + [f"{block} {kind}" for block in blocks for kind in ("dummy", "block")]


def concentration_table(study: Study) -> Iterator[Entry]:
    """Concentration of the SHARK weights, and the range of contraction that goes with it."""
    found = _concentration(study)
    tie = ["tie"] if study.dataset.name == "german_credit" else []
    weights = {
        "max_weight": found.max_weight,
        "d_eff": found.effective,
        "top2_mass": found.top2_mass,
    }
    yield from _entries("concentration", study.title, weights)
    yield entry(
        "concentration", study.title, "dominant", found.label, notes=tie, choices=_names(study)
    )
    summaries = {rule: study.contraction(True, rule) for rule in ("printed", "scale-free", "box")}
    ends = {rule: (found.minimum, found.maximum) for rule, found in summaries.items()}
    texts = {rule: written("concentration", "alpha_range", pair) for rule, pair in ends.items()}
    notes = ["floor"] if texts["printed"] != texts["scale-free"] else []
    yield entry("concentration", study.title, "alpha_range", ends["printed"], notes=notes)
    yield entry("concentration", study.title, "alpha_range_scale_free", ends["scale-free"])
    yield entry("concentration", study.title, "alpha_range_box", ends["box"], notes=["box"])


def mode_table(study: Study, table: str, paired: bool = False) -> Iterator[Entry]:
    """Answer exactly and mode by mode, for any dataset, with the scale-free contraction."""
    found = study.outcomes("scale-free", paired)
    name = f"{table}_paired" if paired else f"{table}_by_mode"
    rows = {mode: VIEWS[table](found[mode]) for mode in MODES}
    rows[MEAN] = _averaged(rows.values())
    for mode, row in rows.items():
        yield from _entries(name, study.title, row, mode)
        if table == "least_cost" and mode != MEAN:
            yield from _confirmed(study, name, mode, found[mode])


def _confirmed(study: Study, table: str, mode: str, found: ModeResult) -> Iterator[Entry]:
    shares = {"confirmed_pct": 100 * found.confirmed(), "voice_pct": 100 * found.explained(study.X)}
    notes = dict.fromkeys(shares, ("confirmed",))
    yield from _entries(table, study.title, shares, mode, notes)


def solver_table(study: Study) -> Iterator[Entry]:
    """Exact answers to the questions that the published solver's released results are about."""
    for mode, found in study.outcomes().items():
        for share, count in zip(SHARES, found.feasible, strict=True):
            for kind in ("least_cost", "prefix"):
                yield entry(
                    "solver", study.title, f"{kind}_{share}", count, mode=mode, notes=["solver"]
                )
        means = {"cost": found.cheapest.cost, "r_star": found.shortest.r_star}
        yield from _entries("solver", study.title, means, mode)


BUILDERS: dict[str, Callable[[Study], Iterator[Entry]]] = {
    "datasets": dataset_table,
    "clustering": clustering_table,
    **{table: partial(mean_table, table=table) for table in VIEWS},
    "contraction": contraction_table,
    "concentration": concentration_table,
    # Beyond the print.
    **{f"{table}_by_mode": partial(mode_table, table=table) for table in VIEWS},
    "contraction_all": partial(contraction_table, table="contraction_all"),
    "solver": solver_table,
    **{f"{table}_paired": partial(mode_table, table=table, paired=True) for table in VIEWS},
}
