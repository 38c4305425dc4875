"""Projections onto regions, neighbours of cells, and k-means over batches of rows."""
