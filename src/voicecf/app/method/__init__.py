"""The page “method”."""
