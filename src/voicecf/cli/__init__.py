"""The command line."""

from voicecf.cli.command import main

__all__ = ["main"]
