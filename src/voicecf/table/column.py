"""A column of the user's table, and its coordinates in the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from voicecf.geometry.arrays import Array, Ints


@dataclass(frozen=True, eq=False)
class Column:
    """A column of the user's table, or a block of 0/1 columns that code one category.

    The user declares such a block with the option `categories` of the explainer. The map of a
    number column is the function from its value to its coordinate.

    Attributes
    ----------
    name : object
        The column's name; for a declared block the key in `categories`.
    sources : tuple
        The columns of the user's table that it consists of: one, or several for a declared block.
    places : array of int
        Positions of its coordinates in z, ascending; a number has exactly one.
    kind : "number" or "category"
    levels : tuple
        The levels of a category, as values of the user's table. Those of a declared block are the
        names of its sources, and "(none)" if a row of the data has 0 in all of them.
    ordered : bool
        Whether the levels are in a meaningful order, lowest first.
    whole : bool
        Whether the values are whole numbers: of an integer or boolean type, or stored as floats
        only because some are missing.
    affine : bool
        Whether a number's map is affine.
    observed : tuple of float
        The smallest and largest value of a number in the data of `fit`, in the user's units.
    limits : tuple of float
        The range within which a number's map can be inverted; infinite if it is affine.
    listed : tuple of float
        The observed values, if a number's map cannot be inverted between them; else empty.
    options : array of shape (levels, width)
        The coordinates of each level.
    rising : bool
        Whether a number's map is increasing.
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
        """Whether the column can take any number within bounds."""
        return self.kind == "number" and not self.listed

    @property
    def declared(self) -> bool:
        """Whether the column is a block of 0/1 columns that the user declared as a category."""
        return self.kind == "category" and self.sources != (self.name,)
