"""A column of the user's table, and its coordinates in the model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from voicecf.geometry.arrays import Array, Ints
from voicecf.table.frames import is_missing


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
    binned : bool
        Whether a category codes numbers by bins. Its levels are then one observed number of each
        bin, ascending.
    indicator : bool
        Whether a category tells if another column has a value. It never changes.
    stays_missing : bool
        Whether there is such an indicator of this column, so that a missing value stays missing.
    unit : str
        What the user's numbers are of, such as "€" or "kg"; empty if the user has not said.
    digits : int or None
        Digits after the point that the values in the data of `fit` have; None for more than a few.
    own_map : bool
        Whether `maps.own_map` gives the coordinates bit for bit, as `fit` has found.
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
    binned: bool = False
    indicator: bool = False
    stays_missing: bool = False
    digits: int | None = None
    own_map: bool = False
    unit: str = ""

    @property
    def free(self) -> bool:
        """Whether the column can take any number within bounds."""
        return self.kind == "number" and not self.listed

    @property
    def curved(self) -> bool:
        """Whether a number is mapped by a curve, one that can be inverted or not."""
        return not self.affine or bool(self.listed)

    @property
    def numeric(self) -> bool:
        """Whether the user's values are numbers."""
        return self.kind == "number" or self.binned

    @property
    def destinations(self) -> list[int]:
        """Positions of the levels that an answer may name: the first of each code, none missing."""
        first: dict[bytes, int] = {}
        for i, level in enumerate(self.levels):
            if not is_missing(level):
                first.setdefault((self.options[i] + 0.0).tobytes(), i)
        return list(first.values())

    @property
    def declared(self) -> bool:
        """Whether the level is read from coordinates: a block of 0/1 columns, or an indicator."""
        return self.kind == "category" and self.sources != (self.name,)
