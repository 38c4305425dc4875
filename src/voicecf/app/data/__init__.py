"""The page “data”."""
