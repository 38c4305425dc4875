"""Projections and passes over rows, on the compiled core."""
