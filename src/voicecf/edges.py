"""What the edges of the package do for its core, by name.

Drawing and Dask stand above `VoICE` and `Counterfactuals`, and use them as users do. Where these
hand something over to an edge, they ask for it here; `voicecf/__init__` says where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_PLACES: dict[str, str] = {}


def offer(**places: str) -> None:
    """Say where functions of edges are: ``offer(draw="voicecf.plots.drawn:drawn")``."""
    _PLACES.update(places)


def edge(name: str) -> Callable[..., Any]:
    """Return a function of an edge, which is imported now.

    Examples
    --------
    >>> import voicecf
    >>> from voicecf.edges import edge
    >>> edge("draw").__name__
    'drawn'
    """
    module, _, function = _PLACES[name].partition(":")
    found: Callable[..., Any] = getattr(import_module(module), function)
    return found
