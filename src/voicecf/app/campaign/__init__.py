"""The page “campaign”."""
