"""Colours, markers and type of all pictures, light and dark."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Theme:
    """How a picture looks."""

    name: str


LIGHT = Theme("light")
DARK = Theme("dark")
