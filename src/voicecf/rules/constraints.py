"""Linear rules between number columns: read from text, and said in coordinates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from voicecf.errors import ColumnError, OptionError, VoiceError
from voicecf.geometry.arrays import Array
from voicecf.rules.columns import column_of, coordinates_of
from voicecf.table.column import Column
from voicecf.table.space import Space

# A quoted name, a name (no part of a number such as 1e5), or a lone equals sign.
WORDS = re.compile(
    r"`(?P<quoted>[^`]*)`|(?<![\w.])(?P<name>[^\W\d]\w*)|(?<![<>=!])(?P<equal>=)(?!=)"
)
SIGNS = {ast.LtE: (1,), ast.Lt: (1,), ast.GtE: (-1,), ast.Gt: (-1,), ast.Eq: (1, -1)}
GRAMMAR = (
    "A rule compares sums of columns times numbers, such as 'fresh + 2*frozen <= 60000'; "
    "odd names stand in backticks: '`my col` <= 3'."
)


@dataclass(frozen=True)
class Constraint:
    """The sum of coefficients times values, in the user's units, is at most the limit.

    Attributes
    ----------
    text : str
        What the user wrote.
    coefficients : dict
        Factor of each column, by its name.
    limit : float

    Examples
    --------
    >>> from voicecf.rules.constraints import Constraint
    >>> rule = Constraint("a + 2*b <= 3", {"a": 1.0, "b": 2.0}, 3.0)
    >>> rule.holds({"a": 1.0, "b": 1.0})
    True
    """

    text: str
    coefficients: dict[Any, float]
    limit: float

    def holds(self, values: Any) -> Any:
        """Tell whether values (numbers or arrays by column name) keep the rule."""
        return sum(c * values[name] for name, c in self.coefficients.items()) <= self.limit


@dataclass
class Linear:
    """A linear form: factors of columns (by position in the space) and a constant."""

    factors: dict[int, float] = field(default_factory=dict)
    constant: float = 0.0

    def plus(self, other: Linear, times: float = 1.0) -> Linear:
        """Return self + times * other."""
        total = dict(self.factors)
        for column, factor in other.factors.items():
            total[column] = total.get(column, 0.0) + times * factor
        return Linear(total, self.constant + times * other.constant)


def read_constraints(given: Any, space: Space) -> tuple[Constraint, ...]:
    """Read the user's linear rules: one text or several.

    Parameters
    ----------
    given : str or list of str
    space : Space

    Returns
    -------
    tuple of Constraint
        One a row: an equality makes two, a chain ``a <= b <= c`` one a link.
    """
    if given is None:
        return ()
    if not isinstance(given, Iterable):
        raise OptionError(f"constraints={given!r} is no text. {GRAMMAR}")
    texts = [given] if isinstance(given, str) else list(given)
    return tuple(row for text in texts for row in _Reader(text, space).rows())


class _Reader:
    """Reads one text; keeps what its messages and its names need."""

    def __init__(self, text: Any, space: Space) -> None:
        self.text, self.space = text, space
        self.words: list[str] = []

    def rows(self) -> list[Constraint]:
        """Return a row for each comparison; two for an equality."""
        body = self._parse()
        if not isinstance(body, ast.Compare):
            raise self._refuse("is no comparison")
        sides = [self._linear(side) for side in (body.left, *body.comparators)]
        rows = []
        for (left, right), sign in zip(pairwise(sides), body.ops, strict=True):
            if type(sign) not in SIGNS:
                raise self._refuse("may compare with <=, >=, <, > and == only")
            rows += [self._row(left, right, way) for way in SIGNS[type(sign)]]
        return rows

    def _parse(self) -> ast.expr:
        if not isinstance(self.text, str):
            raise OptionError(f"constraint {self.text!r} is no text. {GRAMMAR}")
        try:
            plain = WORDS.sub(self._stand_in, self.text).strip()
            return ast.parse(plain, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._refuse("cannot be read") from None

    def _stand_in(self, word: re.Match[str]) -> str:
        """Replace any name by one that Python's grammar takes as it is."""
        if word["equal"]:
            return "=="
        self.words.append(word["name"] if word["quoted"] is None else word["quoted"])
        return f" _{len(self.words) - 1} "

    def _row(self, left: Linear, right: Linear, way: int) -> Constraint:
        """Bring left <= right (way 1) or left >= right (way -1) to columns <= limit."""
        form = left.plus(right, -1.0)
        columns = self.space.columns
        factors = {columns[i].name: way * f for i, f in form.factors.items() if f != 0}
        limit = -way * form.constant + 0.0
        if not factors:
            raise self._refuse("compares no column: each cancels out or none is named")
        if not (isfinite(limit) and all(map(isfinite, factors.values()))):
            raise self._refuse("has numbers that are too large")
        return Constraint(self.text, factors, limit)

    def _linear(self, node: ast.expr) -> Linear:
        """Read a sum of columns times numbers."""
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return Linear(constant=self._number(number))
            case ast.Name(id=word):
                return Linear({self._column(self.words[int(word[1:])]): 1.0})
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                return Linear().plus(self._linear(operand), -1.0 if _negative(sign) else 1.0)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
                return self._linear(left).plus(
                    self._linear(right), -1.0 if _negative(sign) else 1.0
                )
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._product(self._linear(left), self._linear(right))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._quotient(self._linear(left), self._linear(right))
        raise self._refuse("has a part that is neither a column, a number, +, -, * nor /")

    def _product(self, left: Linear, right: Linear) -> Linear:
        if left.factors and right.factors:
            raise self._refuse("multiplies columns, and is not linear")
        return (
            Linear().plus(left, right.constant)
            if left.factors
            else Linear().plus(right, left.constant)
        )

    def _quotient(self, left: Linear, right: Linear) -> Linear:
        if right.factors:
            raise self._refuse("divides by a column, and is not linear; multiply it out")
        if right.constant == 0:
            raise self._refuse("divides by zero")
        whole = {column: factor / right.constant for column, factor in left.factors.items()}
        return Linear(whole, left.constant / right.constant)

    def _number(self, number: float) -> float:
        try:
            return float(number)
        except OverflowError:
            raise self._refuse("has numbers that are too large") from None

    def _column(self, word: str) -> int:
        where = f"constraint {self.text!r}"
        found = column_of(self.space, word, where)
        column = self.space.columns[found]
        if column.kind != "number":
            raise ColumnError(
                f"column {column.name!r} in {where} is a category; only numbers can be added. "
                "Use levels or forbidden for it."
            )
        return found

    def _refuse(self, why: str) -> VoiceError:
        return OptionError(f"constraint {self.text!r} {why}. {GRAMMAR}")


def _negative(sign: ast.AST) -> bool:
    return isinstance(sign, (ast.USub, ast.Sub))


def pull_back(constraints: Iterable[Constraint], space: Space) -> tuple[Array, Array]:
    """Say linear rules in coordinates: ``rows @ z <= offsets``.

    Parameters
    ----------
    constraints : iterable of Constraint
    space : Space

    Returns
    -------
    rows : array of shape (m, d)
    offsets : array of shape (m,)
    """
    constraints = list(constraints)
    rows = np.zeros((len(constraints), sum(len(c.places) for c in space.columns)))
    offsets = np.array([c.limit for c in constraints], dtype=np.float64)
    maps: dict[int, tuple[float, float]] = {}
    for r, constraint in enumerate(constraints):
        for name, factor in constraint.coefficients.items():
            i = column_of(space, name, f"constraint {constraint.text!r}")
            if i not in maps:
                _check_affine(space.columns[i], constraint)
                maps[i] = affine_map(space, i)
            # z = scale * u + shift, so u = (z - shift) / scale.
            scale, shift = maps[i]
            rows[r, space.columns[i].places[0]] = factor / scale
            offsets[r] += factor / scale * shift
    return rows, offsets


def affine_map(space: Space, column: int) -> tuple[float, float]:
    """Return scale and shift of an affine number column: coordinate = scale * value + shift.

    The shift is the coordinate of 0. The scale comes from values on both sides of all data: there
    no digits cancel, whether the pipeline subtracts first (StandardScaler) or last (MinMaxScaler).
    """
    low, high = space.columns[column].observed
    reach = max(abs(low), abs(high))
    far = 2.0 ** np.ceil(np.log2(reach)) * 2 if 0 < reach < np.inf else 1.0
    # A yes/no column knows no other values than these.
    near = 0.0 if space.columns[column].whole and 0 <= low <= high <= 1 else -far
    far = far if near else 1.0
    zero, below, above = coordinates_of(space, column, [0.0, near, far]).tolist()
    return (above - below) / (far - near), zero


def _check_affine(column: Column, constraint: Constraint) -> None:
    if not column.affine:
        raise ColumnError(
            f"column {column.name!r} in constraint {constraint.text!r} is not linear in the model "
            f"(a logarithm, a power, quantiles), so this rule cannot be applied. Give "
            f"bounds={{{column.name!r}: (lo, hi)}} instead, or scale the column linearly "
            "(StandardScaler, MinMaxScaler) in the pipeline."
        )
