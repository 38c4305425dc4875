"""Explainers in one plain file, written and read without pickle."""

from voicecf.saving.saving import Saved, digest, load, load_explainer, save

__all__ = ["Saved", "digest", "load", "load_explainer", "save"]
