"""Fitting what does not fit in memory: models and explainers, from a stream of tables."""

from voicecf.streaming.fitting import fit

__all__ = ["fit"]
