"""Where answers may lie: scores of a model, cells, regions, and how far rounding reaches."""
