"""The page “segments”."""
