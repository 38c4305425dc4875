"""The page “Method”: what pairwise answers miss on the table that is loaded."""
