"""Explainers in one plain file, written and read without pickle."""

from voicecf.saving.saving import LIMIT, load, load_explainer, save

__all__ = ["LIMIT", "load", "load_explainer", "save"]
