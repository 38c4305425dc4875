"""Measures of answers and of models: the paper's, for anybody's model and data."""

from voicecf.diagnostics.measures import (
    ContractionSummary,
    Evaluation,
    WeightConcentration,
    adjusted_rand_index,
    changed_features,
    contraction_summary,
    evaluate,
    intervention_cost,
    validity,
    weight_concentration,
)
from voicecf.diagnostics.pairwise import (
    PairwiseComparison,
    compare_pairwise,
    relative_underestimation,
    repair_cost,
)

__all__ = [
    "ContractionSummary",
    "Evaluation",
    "PairwiseComparison",
    "WeightConcentration",
    "adjusted_rand_index",
    "changed_features",
    "compare_pairwise",
    "contraction_summary",
    "evaluate",
    "intervention_cost",
    "relative_underestimation",
    "repair_cost",
    "validity",
    "weight_concentration",
]
