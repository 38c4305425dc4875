"""What may change, and how, in the words of the user."""

from voicecf.rules.rules import Rules

__all__ = ["Rules"]
