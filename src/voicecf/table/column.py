"""One of the user's columns, and where it is among the model's coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from voicecf.geometry.arrays import Array, Ints


@dataclass(frozen=True, eq=False)
class Column:
    """One of the user's columns, or a block of columns that he made of one, and its coordinates.

    Attributes
    ----------
    name : object
        As the user knows it; for a declared block the key in `categories`.
    sources : tuple
        Columns of the user's table that hold it: one, or several for a declared block.
    places : array of int
        Its coordinates, positions in z, ascending; a number has exactly one.
    kind : "number" or "category"
    levels : tuple
        Of a category, as values of the user's table; of a declared block its sources' names, and
        "(none)" where some row has none of them on.
    ordered : bool
        Whether the levels have an order, which is then the one they are in.
    whole : bool
        Whether the column is of an integer type, or of truth values; or of whole numbers that are
        stored as floats because some are missing.
    affine : bool
        Whether a number's coordinate is an affine function of it.
    observed : tuple of float
        A number's smallest and largest value in the data of `fit`, in the user's units.
    limits : tuple of float
        Between which a number's map can be followed and undone; infinite if it is affine.
    listed : tuple of float
        Where a number's map cannot be undone between the observed values: these values.
    options : array of shape (levels, width)
        Coordinates of each level.
    rising : bool
        Whether a number's coordinate rises with it.
    """

    name: Any
    sources: tuple[Any, ...]
    places: Ints
    kind: Literal["number", "category"] = "number"
    levels: tuple[Any, ...] = ()
    ordered: bool = False
    whole: bool = False
    affine: bool = True
    observed: tuple[float, float] = (-np.inf, np.inf)
    limits: tuple[float, float] = (-np.inf, np.inf)
    listed: tuple[float, ...] = ()
    options: Array = field(default_factory=lambda: np.empty((0, 0)))
    rising: bool = True

    @property
    def free(self) -> bool:
        """Whether it may take any number between bounds."""
        return self.kind == "number" and not self.listed

    @property
    def declared(self) -> bool:
        """Whether it is a block of columns that the user made of one."""
        return self.kind == "category" and self.sources != (self.name,)
