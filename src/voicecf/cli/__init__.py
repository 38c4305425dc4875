"""The command ``voicecf``."""

from voicecf.cli.command import main

__all__ = ["main"]
