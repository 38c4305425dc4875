"""The rule `constraints`: linear rules between number columns, in text and in coordinates."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from keyword import iskeyword
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from voicecf.errors import ColumnError, OptionError, VoiceError
from voicecf.geometry.arrays import Array
from voicecf.rules.columns import affine_map, column_of
from voicecf.rules.condition import Edit, Edits, Member, Members, Situation, Variant
from voicecf.rules.edits import least_enough, readable
from voicecf.rules.rule import Moved, Rule
from voicecf.rules.sides import is_several
from voicecf.rules.terms import Terms
from voicecf.table.space import Space
from voicecf.table.wording import exact

if TYPE_CHECKING:
    from voicecf.rules.allowed import Allowed

# A name in backticks, a plain name (not the e of a number such as 1e5), or a single equals sign.
WORDS = re.compile(
    r"`(?P<quoted>[^`]*)`|(?<![\w.])(?P<name>[^\W\d]\w*)|(?<![<>=!])(?P<equal>=)(?!=)"
)
STRICT = (ast.Lt, ast.Gt)
# By how much < differs from <= among any numbers, relative to the terms of a rule.
SLIGHTLY = 1e-9
# For each comparison the factors that bring it to the form <=; an equality needs both.
SIGNS = {ast.LtE: (1,), ast.Lt: (1,), ast.GtE: (-1,), ast.Gt: (-1,), ast.Eq: (1, -1)}
# The factor of what follows a sign.
SIGNED = {ast.UAdd: 1.0, ast.Add: 1.0, ast.USub: -1.0, ast.Sub: -1.0}
GRAMMAR = (
    "A rule compares sums of columns times numbers, such as 'fresh + 2*frozen <= 60000'; "
    "put names with spaces or signs in backticks: '`my col` <= 3'."
)


class Constraints(Rule):
    """Linear rules between number columns, such as ``"fresh + 2*frozen <= 60000"``.

    They are in the user's units, whatever the pipeline does to the columns. < and > are strict:
    whole numbers differ by 1, others by a billionth of the rule's terms.
    """

    word = "constraints"
    kind = "constraint"
    takes = "str or list of str"
    nothing = ()
    help = 'a linear rule such as "income >= 100 * age"'
    flag = "--constraint"
    arguments: ClassVar[dict[str, Any]] = {"action": "append", "metavar": "TEXT"}

    @classmethod
    def checked(cls, value: Any) -> Any:
        return tuple(value) if is_several(value) else (value,)

    def add(self, terms: Terms) -> None:
        terms.constraints += read_constraints(self.value, terms.space)

    def check_question(self, learned: Any, allowed: Allowed, objective: str) -> None:
        """Refuse an equality of numbers behind a curve, which no number meets exactly."""
        for one in allowed.constraints:
            columns = {learned.space.names.index(name) for name in one.coefficients}
            free = columns & allowed.any_number
            if one.equal and free and not one.is_affine(learned.space):
                raise OptionError(
                    f"constraint {one.text!r} asks for an equality of numbers that the pipeline "
                    "does not scale linearly, which rounding makes impossible to meet. Give two "
                    "comparisons, such as 'a - b <= 0.1' and 'b - a <= 0.1', or steps for the "
                    "columns."
                )

    def ends(self, answer: Moved, c: int, direction: int) -> Iterator[float]:
        """Yield the values at which the room that each constraint leaves is used up."""
        name, value = answer.space.names[c], answer.number(c)
        for constraint in answer.case.terms.constraints:
            factor = constraint.coefficients.get(name, 0.0) * direction
            if factor > 0:
                room = max(constraint.limit - constraint.left_side(answer.numbers), 0.0)
                yield value + direction * room / factor

    def members(self, case: Situation) -> Members:
        for text in dict.fromkeys(self.value):
            yield self.member(text.strip(), detail=text)

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        return variant.without(self.word, member.detail)

    def edits(self, case: Situation, member: Member, variant: Variant, answer: Any) -> Edits:
        """Yield edits that loosen a constraint of which a single comparison is violated."""
        constraints = read_constraints(member.detail, case.space)
        values = {
            case.space.names[c]: float(answer.after(c)[0])
            for c, column in enumerate(case.space.columns)
            if column.kind == "number"
        }
        violated = [one for one in constraints if not one.holds(values)]
        if len(violated) != 1 or not all(map(_can_be_written, constraints)):
            return
        (tight,) = violated
        others = [_constraint_text(one) for one in constraints if one is not tight]

        def with_limit(limit: float, variant: Variant) -> Variant:
            less = self.without(case, variant, member)
            loosened = _constraint_text(replace(tight, limit=limit))
            return less.with_rules(constraints=[*less.rules.constraints, *others, loosened])

        def enough(limit: float) -> bool:
            return not case.impossible(with_limit(limit, variant))

        value = float(tight.left_side(values))
        least = least_enough(enough, tight.limit, value)
        whole = tight.is_whole(case.space)
        for limit in (readable(least, tight.limit), readable(value, tight.limit)):
            limit = float(np.floor(limit)) if whole else limit
            loosened = _constraint_text(replace(tight, limit=limit))
            yield Edit(f"loosen '{member.text}' to '{loosened}'", partial(with_limit, limit))


@dataclass(frozen=True)
class Constraint:
    """A linear rule in the user's units: the sum of coefficients times values is <= limit.

    Attributes
    ----------
    text : str
        The rule as the user wrote it.
    coefficients : dict
        Factor of each column, by its name.
    limit : float
    equal : bool
        Whether it is one half of an equality.

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
    equal: bool = False

    def is_affine(self, space: Space) -> bool:
        """Whether the rule is linear in coordinates, too: no column is mapped by a curve."""
        places = (column_of(space, name, self.text) for name in self.coefficients)
        return not any(space.columns[c].curved for c in places)

    def is_whole(self, space: Space) -> bool:
        """Whether the rule adds whole numbers, so that its limit may be whole."""
        columns = [space.columns[space.names.index(name)] for name in self.coefficients]
        factors = self.coefficients.values()
        return all(column.whole for column in columns) and all(f == int(f) for f in factors)

    def left_side(self, values: Any) -> Any:
        """Return the sum of coefficients times values (numbers or arrays by column name)."""
        return sum(c * values[name] for name, c in self.coefficients.items())

    def holds(self, values: Any) -> Any:
        """Tell whether values (numbers or arrays by column name) satisfy the rule."""
        return self.left_side(values) <= self.limit


def read_constraints(rules: Any, space: Space) -> tuple[Constraint, ...]:
    """Parse the user's linear rules: one text or several.

    Parameters
    ----------
    rules : str or list of str
    space : Space

    Returns
    -------
    tuple of Constraint
        One for each comparison, so two for ``a <= b <= c``; an equality makes two.
    """
    if rules is None:
        return ()
    if not isinstance(rules, Iterable):
        raise OptionError(f"constraints={rules!r} is not text. {GRAMMAR}")
    texts = [rules] if isinstance(rules, str) else list(rules)
    return tuple(found for text in texts for found in _Comparisons(text, space).constraints())


class Parser:
    """Parser of a text with sums of columns times numbers.

    `names` are the column names in the text, and `places` their positions, in order of appearance.

    Attributes
    ----------
    kind, grammar : str
        What the text is, and what it may be, for error messages.
    """

    kind: ClassVar[str] = "constraint"
    grammar: ClassVar[str] = GRAMMAR

    def __init__(self, text: Any, space: Space) -> None:
        self.text, self.space = text, space
        self.names: list[str] = []
        self.places: list[int] = []

    def _parse(self) -> ast.expr:
        """Parse the text as a Python expression whose names are replaced by ``_0``, ``_1``, ..."""
        if not isinstance(self.text, str):
            raise self._error("is not text")
        try:
            expression = WORDS.sub(self._placeholder, self.text).strip()
            return ast.parse(expression, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise self._error("cannot be read") from None

    def _placeholder(self, word: re.Match[str]) -> str:
        """Return a placeholder for a name, since Python would change or refuse some names."""
        if word["equal"]:
            return "=="
        self.names.append(word["name"] if word["quoted"] is None else word["quoted"])
        return f" _{len(self.names) - 1} "

    def _linear(self, node: ast.expr) -> Any:
        """Read an expression as the factors of all columns and, at the end, a constant."""
        match node:
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return self._vector(-1, self._number(number))
            case ast.Name(id=placeholder):
                return self._vector(self._column(self.names[int(placeholder[1:])]), 1.0)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                return SIGNED[type(sign)] * self._linear(operand)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() as sign, right=right):
                return self._linear(left) + SIGNED[type(sign)] * self._linear(right)
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                return self._product(self._linear(left), self._linear(right))
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return self._quotient(self._linear(left), self._linear(right))
        raise self._error("has a part that is neither a column, a number, +, -, * nor /")

    def _vector(self, at: int, value: float) -> Array:
        """Return the factor of one column, or, at -1, a constant."""
        vector = np.zeros(len(self.space.columns) + 1)
        vector[at] = value
        return vector

    def _product(self, left: Array, right: Array) -> Any:
        if left[:-1].any() and right[:-1].any():
            raise self._error("multiplies columns, so it is not linear")
        return left * right[-1] if left[:-1].any() else right * left[-1]

    def _quotient(self, left: Array, right: Array) -> Any:
        if right[:-1].any():
            raise self._error("divides by a column, so it is not linear; multiply both sides by it")
        if right[-1] == 0:
            raise self._error("divides by zero")
        return left / right[-1]

    def _number(self, number: float) -> float:
        try:
            return float(number)
        except OverflowError:
            raise self._error("has numbers that are too large") from None

    def _column(self, name: str) -> int:
        where = f"{self.kind} {self.text!r}"
        c = column_of(self.space, name, where)
        column = self.space.columns[c]
        if column.kind != "number":
            raise ColumnError(
                f"column {column.name!r} in {where} is a category; only numbers can be added. "
                "Use levels or forbidden for it."
            )
        self.places.append(c)
        return c

    def _error(self, fault: str) -> VoiceError:
        return OptionError(f"{self.kind} {self.text!r} {fault}. {self.grammar}")


class _Comparisons(Parser):
    """Parser of a linear rule."""

    @np.errstate(all="ignore")
    def constraints(self) -> list[Constraint]:
        """Return a constraint for each comparison, two for an equality."""
        body = self._parse()
        if not isinstance(body, ast.Compare):
            raise self._error("is not a comparison")
        sides = [self._linear(side) for side in (body.left, *body.comparators)]
        constraints = []
        for (left, right), comparison in zip(pairwise(sides), body.ops, strict=True):
            if type(comparison) not in SIGNS:
                raise self._error("may compare with <=, >=, <, > and == only")
            strict, equal = isinstance(comparison, STRICT), isinstance(comparison, ast.Eq)
            for sign in SIGNS[type(comparison)]:
                found = self._constraint(left, right, sign)
                found = replace(found, limit=self._below(found)) if strict else found
                constraints.append(replace(found, equal=equal))
        return constraints

    def _constraint(self, left: Array, right: Array, sign: int) -> Constraint:
        """Bring left <= right (sign 1) or left >= right (sign -1) to columns <= limit."""
        difference, names = (sign * (left - right)).tolist(), self.space.names
        factors = {names[c]: difference[c] for c in self.places if difference[c] != 0}
        limit = -difference[-1] + 0.0  # + 0.0 turns -0.0 into 0.0
        if not factors:
            raise self._error("compares no column: none is named, or each cancels out")
        if not (isfinite(limit) and all(map(isfinite, factors.values()))):
            raise self._error("has numbers that are too large")
        return Constraint(self.text, factors, limit)

    def _below(self, rule: Constraint) -> float:
        """Return the largest limit below that of a rule: by 1 for whole numbers, else by a little.

        A little is more than rounding errors of the rule's terms.
        """
        if rule.is_whole(self.space):
            return float(ceil(rule.limit) - 1)
        columns = [self.space.columns[self.space.names.index(name)] for name in rule.coefficients]
        factors = rule.coefficients.values()
        sizes = [max(map(abs, column.observed)) for column in columns]
        terms = [abs(f) * size for f, size in zip(factors, sizes, strict=True) if isfinite(size)]
        return rule.limit - SLIGHTLY * (abs(rule.limit) + sum(terms) or 1.0)


def pull_back(constraints: Iterable[Constraint], space: Space) -> tuple[Array, Array]:
    """Translate linear rules between affine columns into coordinates: ``normals @ z <= offsets``.

    Parameters
    ----------
    constraints : iterable of Constraint
    space : Space

    Returns
    -------
    normals : array of shape (m, d)
    offsets : array of shape (m,)
    """
    constraints = list(constraints)
    normals = np.zeros((len(constraints), sum(len(c.places) for c in space.columns)))
    offsets = np.array([c.limit for c in constraints], dtype=np.float64)
    maps: dict[int, tuple[float, float]] = {}
    for i, constraint in enumerate(constraints):
        for name, factor in constraint.coefficients.items():
            c = column_of(space, name, f"constraint {constraint.text!r}")
            if c not in maps:
                maps[c] = affine_map(space, c)
            # The coordinate is z = scale * u + shift, so the value is u = (z - shift) / scale.
            scale, shift = maps[c]
            normals[i, space.columns[c].places[0]] = factor / scale
            offsets[i] += factor / scale * shift
    return normals, offsets


# Constraints as text.


def _can_be_written(constraint: Constraint) -> bool:
    """Tell whether a constraint can be written: names with a backtick cannot be quoted."""
    return not any("`" in str(name) for name in constraint.coefficients)


def _constraint_text(constraint: Constraint) -> str:
    """Write a constraint as the user would: columns on the left, a number on the right."""
    flip = all(factor < 0 for factor in constraint.coefficients.values())
    terms = ""
    for name, factor in constraint.coefficients.items():
        factor = -factor if flip else factor
        sign = "-" if factor < 0 else "+"
        times = "" if abs(factor) == 1 else f"{exact(abs(factor))}*"
        terms += f" {sign} {times}{quoted(str(name))}"
    left = terms[3:] if terms.startswith(" + ") else f"-{terms[3:]}"
    limit = -constraint.limit if flip else constraint.limit
    return f"{left} {'>=' if flip else '<='} {exact(limit)}"


def quoted(name: str) -> str:
    """Return a name as it is written in a constraint or formula."""
    return name if name.isidentifier() and not iskeyword(name) else f"`{name}`"
