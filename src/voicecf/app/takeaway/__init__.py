"""The page “takeaway”."""
