"""Formulas that compute a column from others: read, evaluated, and as identities for the search."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, ClassVar

import numpy as np

from voicecf.geometry.arrays import Array, Mask
from voicecf.rules.constraints import Parser
from voicecf.rules.together import OPPOSITE, intervals
from voicecf.table.column import Column
from voicecf.table.space import Space

# By how much values may miss a formula: half a digit, and this share of its terms.
ROUNDED = 1e-10
# A number stays away from zero, if it is divided by, by this share of the least value observed.
OFF_ZERO = 1e-3
# Words of Python that are no names of columns.
CONDITIONAL = ("if", "else")
COMPARED = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
ARITHMETIC = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
    ast.Lt: np.less, ast.LtE: np.less_equal, ast.Gt: np.greater, ast.GtE: np.greater_equal,
    ast.Eq: np.equal, ast.NotEq: np.not_equal, ast.USub: np.negative, ast.UAdd: np.positive,
}  # fmt: skip
GRAMMAR = (
    "A formula is a sum of columns times numbers, with at most one product or ratio of two columns "
    "in it, such as 'fresh + frozen', '100 * revenue / orders' or 'revenue / orders if orders > 0 "
    "else 0'; put names with spaces or signs in backticks. What is longer needs a column of its own"
    " for a part."
)

# Intervals of columns, in the user's units.
Box = dict[int, tuple[float, float]]


@dataclass(frozen=True)
class Identity:
    """A formula as an equation: a sum of columns, less a product of two of them, is 0.

    Attributes
    ----------
    factors : dict of int to float
        Of each column in it, 0 for one that is in the product only.
    constant : float
    product : tuple of (int, int, float) or None
        Two columns, and how often their product is subtracted.
    divisor : int or None
        The column that the equation was multiplied by.
    """

    factors: dict[int, float]
    constant: float
    product: tuple[int, int, float] | None = None
    divisor: int | None = None

    def error(self, values: Mapping[int, Array]) -> tuple[Array, Array]:
        """Return by how much values miss the equation, and the size of its terms.

        Both in units of the column that is computed.
        """
        terms = [factor * values[c] for c, factor in self.factors.items()]
        if self.product is not None:
            x, y, times = self.product
            terms.append(-times * values[x] * values[y])
        by = 1.0 if self.divisor is None else np.abs(values[self.divisor])
        size = np.sum(np.abs(terms), axis=0) + abs(self.constant)
        return np.abs(np.sum(terms, axis=0) + self.constant) / by, size / by


@dataclass(frozen=True)
class Clause:
    """What a formula says where some columns lie in intervals."""

    box: Box
    identity: Identity


@dataclass(frozen=True, eq=False)
class Formula:
    """A column that is computed from others.

    Attributes
    ----------
    made : int
        The column.
    text : str
        The formula as the user wrote it.
    parts : tuple of Clause
        One for each case; where none applies the formula has no value.
    half : float
        Half a unit of the last digit that the column has in the data; 0 if it has many digits.
    tree : ast.expr
        The formula, with placeholders for names.
    places : tuple of int
        The column of each placeholder.
    """

    made: int
    text: str
    parts: tuple[Clause, ...]
    half: float
    tree: ast.expr
    places: tuple[int, ...]

    @property
    def sources(self) -> list[int]:
        """Positions of the columns that it is made of."""
        return sorted(set(self.places))

    @property
    def columns(self) -> tuple[int, ...]:
        """Positions of all columns in it."""
        return (self.made, *self.sources)

    @np.errstate(all="ignore")
    def value(self, values: Mapping[int, Array]) -> Array:
        """Return what the formula gives, computed as it is written."""
        return np.asarray(self._value(self.tree, values), dtype=np.float64)

    def _value(self, node: ast.expr, values: Mapping[int, Array]) -> Any:
        match node:
            case ast.Constant(value=number):
                return float(number)  # type: ignore[arg-type]
            case ast.Name(id=placeholder):
                return values[self.places[int(placeholder[1:])]]
            case ast.UnaryOp(op=sign, operand=operand):
                return ARITHMETIC[type(sign)](self._value(operand, values))
            case ast.BinOp(left=left, op=sign, right=right):
                return ARITHMETIC[type(sign)](self._value(left, values), self._value(right, values))
            case ast.Compare(left=left, ops=[sign], comparators=[right]):
                return ARITHMETIC[type(sign)](self._value(left, values), self._value(right, values))
            case ast.IfExp(test=test, body=body, orelse=other):
                sides = (self._value(one, values) for one in (test, body, other))
                return np.where(*sides)
        raise AssertionError(ast.dump(node))

    @np.errstate(all="ignore")
    def agrees(self, values: Mapping[int, Array]) -> Mask:
        """Tell which values satisfy the formula, to the digits of the column."""
        found = np.zeros(len(values[self.made]), dtype=np.bool_)
        for part in self.parts:
            error, size = part.identity.error(values)
            agrees = error <= self.half * (1.0 + ROUNDED) + ROUNDED * size
            for c, (low, high) in part.box.items():
                agrees &= (values[c] >= low) & (values[c] <= high)
            found |= agrees
        return found

    def holds(self, before: Mapping[int, Array], after: Mapping[int, Array]) -> Mask:
        """Tell which changed rows satisfy the formula, or have kept all values in it."""
        still = np.ones(len(after[self.made]), dtype=np.bool_)
        for c in self.columns:
            still &= (before[c] == after[c]) | (np.isnan(before[c]) & np.isnan(after[c]))
        return still | self.agrees(after)


def read_formulas(texts: Mapping[Any, str], made: Mapping[Any, int], space: Space) -> list[Formula]:
    """Read formulas, and sort them: those that others need come first.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.rules.formulas import read_formulas
    >>> from voicecf.table.space import Space
    >>> space = Space.plain(["revenue", "orders", "basket"], named=True)
    >>> (formula,) = read_formulas({"basket": "revenue / orders"}, {"basket": 2}, space)
    >>> formula.value({0: np.array([90.0]), 1: np.array([4.0])})
    array([22.5])
    """
    waiting = [_Formulas(text, space).formula(made[name], name) for name, text in texts.items()]
    names, ordered = space.names, list[Formula]()
    while waiting:
        open_ = {one.made for one in waiting}
        ready = [one for one in waiting if not open_ & set(one.sources)]
        if not ready:
            circle = ", ".join(repr(names[c]) for c in sorted(open_))
            raise _Formulas(waiting[0].text, space).fault(
                f"goes in a circle: of {circle} each needs another one. Leave one of them out"
            )
        ordered += ready
        waiting = [one for one in waiting if one not in ready]
    return ordered


@dataclass(frozen=True, eq=False)
class _Sum:
    """Factors of all columns and a constant, with one product or one ratio at most."""

    linear: Array
    product: tuple[int, int, float] | None = None
    ratio: tuple[Array, int] | None = None

    @property
    def is_linear(self) -> bool:
        return self.product is None and self.ratio is None

    @property
    def is_number(self) -> bool:
        return self.is_linear and not self.linear[:-1].any()

    def times(self, factor: float) -> _Sum:
        """Return the sum times a number."""
        product = self.product and (*self.product[:2], factor * self.product[2])
        ratio = self.ratio and (factor * self.ratio[0], self.ratio[1])
        return _Sum(factor * self.linear, product, ratio)


class _Formulas(Parser):
    """Parser of a formula."""

    kind: ClassVar[str] = "derived"
    grammar: ClassVar[str] = GRAMMAR

    def fault(self, text: str) -> Exception:
        """Return an error about the formula."""
        return self._error(text)

    @np.errstate(all="ignore")
    def formula(self, made: int, name: Any) -> Formula:
        """Return the formula of a column."""
        body = self._parse()
        parts = tuple(
            Clause(box, self._identity(node, made)) for node, box in self._cases(body, [{}])
        )
        places = tuple(self._column(one) for one in self.names)
        if not places:
            raise self._error(f"names no column, so {name!r} would be a constant")
        if made in places:
            raise self._error(f"goes in a circle: {name!r} is computed from itself")
        parts = tuple(one for part in parts for one in self._off_zero(part))
        half = half_unit(self.space.columns[made])
        return Formula(made, self.text.strip(), parts, half, body, places)

    def _placeholder(self, word: re.Match[str]) -> str:
        return word[0] if word["name"] in CONDITIONAL else super()._placeholder(word)

    def _cases(self, node: ast.expr, boxes: list[Box]) -> list[tuple[ast.expr, Box]]:
        """Return the expression of each case, and the intervals in which it applies."""
        if not isinstance(node, ast.IfExp):
            return [(node, box) for box in boxes]
        match node.test:
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[number]):
                sign = COMPARED.get(type(op))
            case ast.Compare(left=number, ops=[op], comparators=[ast.Name(id=name)]):
                sign = FLIPPED.get(COMPARED.get(type(op), ""))
            case _:
                sign = None
        if sign is None:
            raise self._error("has an 'if' that does not compare one column with one number")
        value = self._linear(number)
        if value[:-1].any():
            raise self._error("has an 'if' that compares columns")
        c = self._column(self.names[int(name[1:])])
        column, found = self.space.columns[c], []
        for branch, way in ((node.body, sign), (node.orelse, OPPOSITE[sign])):
            sides = intervals(way, float(value[-1]), column)
            inside = [both for box in boxes for side in sides for both in _both(box, c, side)]
            found += self._cases(branch, inside)
        return found

    def _identity(self, node: ast.expr, made: int) -> Identity:
        """Return an expression as an equation."""
        found = self._sum(node)
        numbers = [found.linear] if found.ratio is None else [found.linear, found.ratio[0]]
        if not all(isfinite(one) for vector in numbers for one in vector.tolist()):
            raise self._error("has numbers that are too large")
        if found.ratio is None:
            linear, divisor, product = -found.linear, None, found.product
            linear[made] += 1.0
        else:
            vector, divisor = found.ratio
            if found.linear[:-1].any():
                raise self._error("adds columns to a ratio")
            linear, product = -vector, (made, divisor, -1.0)
            linear[divisor] -= found.linear[-1]
        named = {made, *np.flatnonzero(linear[:-1]).tolist(), *(product or ())[:2]}
        factors = {int(c): float(linear[c]) for c in sorted(named)}
        return Identity(factors, float(linear[-1]), product, divisor)

    def _sum(self, node: ast.expr) -> _Sum:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self._sum(operand).times(-1.0)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
                times = 1.0 if isinstance(sign, ast.Add) else -1.0
                return self._added(self._sum(left), self._sum(right).times(times))
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._multiplied(self._sum(left), self._sum(right))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._divided(self._sum(left), self._sum(right))
        return _Sum(self._linear(node))

    def _added(self, left: _Sum, right: _Sum) -> _Sum:
        if not (left.is_linear or right.is_linear):
            raise self._error("has two products or ratios of columns")
        product, ratio = left.product or right.product, left.ratio or right.ratio
        return _Sum(left.linear + right.linear, product, ratio)

    def _multiplied(self, left: _Sum, right: _Sum) -> _Sum:
        for one, other in ((left, right), (right, left)):
            if one.is_number:
                return other.times(float(one.linear[-1]))
        (x, a), (y, b) = self._single(left), self._single(right)
        return _Sum(np.zeros_like(left.linear), product=(x, y, a * b))

    def _divided(self, left: _Sum, right: _Sum) -> _Sum:
        if right.is_number:
            if right.linear[-1] == 0:
                raise self._error("divides by zero")
            return left.times(1.0 / float(right.linear[-1]))
        if not left.is_linear:
            raise self._error("has two products or ratios of columns")
        c, factor = self._single(right)
        return _Sum(np.zeros_like(left.linear), ratio=(left.linear / factor, c))

    def _single(self, one: _Sum) -> tuple[int, float]:
        """Return the column and the factor of a sum of one term."""
        named = np.flatnonzero(one.linear)
        if not one.is_linear or len(named) != 1 or named[0] == len(one.linear) - 1:
            raise self._error("multiplies or divides by more than one column")
        return int(named[0]), float(one.linear[named[0]])

    def _off_zero(self, part: Clause) -> list[Clause]:
        """Return a part without the values at which it divides by zero."""
        c = part.identity.divisor
        if c is None:
            return [part]
        column = self.space.columns[c]
        low, high = column.observed
        sides = intervals("!=", 0.0, column)
        if not column.whole:
            known = [abs(end) for end in (low, high) if isfinite(end) and end != 0]
            away = OFF_ZERO * min(known, default=1.0)
            sides = [(-inf, -away), (away, inf)]
        if low >= 0 and isfinite(low):
            sides = sides[1:]
        elif high <= 0 and isfinite(high):
            sides = sides[:1]
        boxes = [both for side in sides for both in _both(part.box, c, side)]
        return [Clause(box, part.identity) for box in boxes]


def half_unit(column: Column) -> float:
    """Return half a unit of the last digit that a column has in the data; 0 if it has many."""
    unit = 1.0 if column.whole else 0.0 if column.digits is None else 10.0**-column.digits
    return 0.5 * unit


def _both(box: Box, c: int, side: tuple[float, float]) -> list[Box]:
    """Return a box with one column's interval cut to a side; nothing if that is empty."""
    low, high = box.get(c, (-inf, inf))
    both = max(low, side[0]), min(high, side[1])
    return [{**box, c: both}] if both[0] <= both[1] else []
