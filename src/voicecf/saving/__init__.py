"""Explainers in one plain file, written and read without pickle."""

from voicecf.saving.saving import LIMIT, load, save

__all__ = ["LIMIT", "load", "save"]
