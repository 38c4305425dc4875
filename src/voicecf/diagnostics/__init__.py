"""The paper's measures of counterfactuals and of clusterings."""

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
