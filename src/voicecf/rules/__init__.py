"""The user's rules: which columns may change, and how."""

from voicecf.rules.rules import Rules

__all__ = ["Rules"]
