"""The page “row”."""
