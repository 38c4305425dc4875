"""The page “Method”: what pairwise answers miss, and the paper's tables recomputed."""
