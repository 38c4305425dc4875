"""The rule `together`: columns that belong together, whose values lie in one of several boxes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import ceil, floor, inf, isfinite
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from voicecf.errors import OptionError
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.rules.columns import column_of, level_position
from voicecf.rules.condition import Member, Members, Situation, Variant
from voicecf.rules.parts import values_of
from voicecf.rules.rule import Moved, Rule
from voicecf.rules.sides import OPEN, as_float, is_several, read_pair, read_side
from voicecf.rules.terms import Terms
from voicecf.table.column import Column
from voicecf.table.frames import as_frame, is_missing, plain_item
from voicecf.table.space import Space
from voicecf.table.wording import level

# A column, a comparison and a value; names with spaces are in backticks.
COMPARISON = re.compile(
    r"(?:`(?P<quoted>[^`]+)`|(?P<name>[^\W\d][\w.]*))"
    r"(?:\s*(?P<sign>==|=|!=|<=|>=|<|>)\s*|\s+(?P<among>in)\s+)(?P<value>\S.*)"
)
# A column between two numbers: 2 <= rooms <= 3.
BETWEEN = re.compile(r"(?P<low>[^<>=]+?)\s*(?P<first><=|<)(?P<rest>.+?(?:<=|<).+)")
CONDITION = re.compile(r"if\s+(?P<condition>.+?)\s+then\s+(?P<rest>.+)", re.IGNORECASE | re.DOTALL)
# What follows has an even number of quotation marks, so that a word is not inside of them.
OUTSIDE_QUOTES = r"(?=(?:[^'\"`]*['\"`][^'\"`]*['\"`])*[^'\"`]*$)"
OPPOSITE = {"==": "!=", "!=": "==", "<=": ">", ">": "<=", ">=": "<", "<": ">="}
# Up to this many boxes are written out in reasons.
FEW_BOXES = 3
# In a column that may take any number, < and > leave out this share of the observed range.
STRICT = 1e-3
GRAMMAR = (
    'Use text such as "if visits == 0 then money == 0" or "visits == 0 and money == 0 or visits >= '
    '1"; a list of dicts such as [{"visits": 0, "money": 0}, {"visits": (1, None)}]; or a frame '
    'whose rows are the allowed combinations, df[["town", "region"]].'
)

# Signs of sums and products, which no comparison of one column with a value has.
ARITHMETIC = re.compile(r"[*/+]|\s-\s")
LINEAR = (
    "Here one column is compared with one value; sums of columns, and columns times numbers, "
    'belong to constraints: constraints=["fresh + 2*frozen <= 60000"]. Products of columns are '
    "not possible."
)

# What a box allows in one column: an interval in the user's units, or a mask of the levels.
Values = tuple[float, float] | Mask
Box = dict[int, Values]


class BelongTogether(Rule):
    """Columns that belong together; an answer satisfies every rule of the list.

    A rule is text, ``"if visits == 0 then money == 0"`` or
    ``"visits == 0 and money == 0 or visits >= 1"``, with comparisons such as ``town == Oslo``,
    ``2 <= rooms <= 3`` and ``rooms in [1, 2]``; a list of dicts, each a box,
    ``[{"visits": 0, "money": 0}, {"visits": (1, None)}]``; or a frame whose rows are the only
    combinations allowed, ``df[["town", "region"]]``. In a column that may take any number, < and >
    keep a thousandth of the observed range away.
    """

    word = kind = "together"
    takes = "list, str or frame"
    nothing = ()
    none = OPEN
    help = 'columns that belong together: "if visits == 0 then money == 0"'
    arguments: ClassVar[dict[str, Any]] = {"action": "append", "metavar": "TEXT"}

    @classmethod
    def checked(cls, value: Any) -> Any:
        return as_entries(value)

    def add(self, terms: Terms) -> None:
        terms.unions += read_together(self.value, terms.space)

    def ends(self, answer: Moved, c: int, direction: int) -> Iterator[float]:
        """Yield the ends of the boxes that the answer may be in with its other values."""
        for rule in answer.case.terms.unions:
            if c not in rule.columns:
                continue
            inside = np.ones(len(rule.low), dtype=np.bool_)
            for at, other in enumerate(rule.columns):
                if other != c:
                    inside &= rule.holds_in(at, values_of(answer.space, other, answer.changed_row))[
                        0
                    ]
            at = rule.columns.index(c)
            step = 1.0 if answer.space.columns[c].whole else 0.0
            low, high = rule.low[inside, at], rule.high[inside, at]
            yield _connected_end(low, high, answer.number(c), direction, step)

    def members(self, case: Situation) -> Members:
        for entry, rule in zip(self.value, case.terms.unions, strict=True):
            removal = f"drop the rule '{rule.text}'"
            yield self.member(f"'{rule.text}' must hold", detail=entry, removal=removal)

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        return variant.without(self.word, member.detail)


@dataclass(frozen=True, eq=False)
class Together:
    """A rule about several columns: their values lie in one of m boxes.

    Attributes
    ----------
    text : str
        The rule in the user's words.
    columns : tuple of int
        Positions of the columns that the rule is about.
    low, high : array of shape (m, columns)
        The boxes in the user's units; infinite for categories.
    levels : dict of int to mask of shape (m, levels)
        The levels that each box allows in a column that is a category, by position of the column.
    """

    text: str
    columns: tuple[int, ...]
    low: Array
    high: Array
    levels: dict[int, Mask]

    def holds(self, values: Mapping[int, NDArray[Any]]) -> Mask:
        """Tell which rows satisfy the rule; `values` has numbers, or positions of levels."""
        n = len(next(iter(values.values())))
        inside = np.ones((n, len(self.low)), dtype=np.bool_)
        for at, c in enumerate(self.columns):
            inside &= self.holds_in(at, values[c])
        return np.asarray(inside.any(axis=1))

    def box_order(self) -> Ints:
        """Return an order of the boxes in which neighbours are close.

        They are divided in halves along one column, these along the next, and so on in turns.
        """
        order = np.arange(len(self.low))
        with np.errstate(invalid="ignore"):
            places = np.nan_to_num(0.5 * (self.low + self.high))
        for c, levels in self.levels.items():
            places[:, self.columns.index(c)] = levels.argmax(axis=1)
        for turn in range(len(order).bit_length()):
            part = (np.arange(len(order)) << turn) // len(order)
            order = order[np.lexsort((places[order, turn % len(self.columns)], part))]
        return order

    def holds_in(self, at: int, values: NDArray[Any]) -> Mask:
        """Tell, shape (n, m), which boxes have the values of one of the columns inside."""
        c = self.columns[at]
        if c not in self.levels:
            return np.asarray(
                (values[:, None] >= self.low[:, at]) & (values[:, None] <= self.high[:, at])
            )
        known = values >= 0
        return np.asarray(self.levels[c].T[np.where(known, values, 0)] & known[:, None])


def as_entries(together: Any) -> tuple[Any, ...]:
    """Bring the user's rules to one form: texts, and tuples of dicts.

    Examples
    --------
    >>> from voicecf.rules.together import as_entries
    >>> as_entries([{"visits": 0, "money": 0}, {"visits": (1, None)}])
    (({'visits': 0, 'money': 0}, {'visits': (1, None)}),)
    """
    if isinstance(together, str) or _is_frame(together):
        together = [together]
    elif isinstance(together, Mapping) or not isinstance(together, Iterable):
        raise OptionError(f"together={together!r} is not known. {GRAMMAR}")
    entries = list(together)
    if entries and all(isinstance(entry, Mapping) for entry in entries):
        entries = [entries]  # the boxes of a single rule
    return tuple(_entry(entry) for entry in entries)


def _is_frame(value: Any) -> bool:
    return not isinstance(value, (str, Mapping, list, tuple)) and as_frame(value) is not None


def _entry(entry: Any) -> Any:
    if isinstance(entry, str):
        if not entry.strip():
            raise OptionError(f"a rule of together is empty. {GRAMMAR}")
        return entry
    if _is_frame(entry):
        entry = as_frame(entry).unique(maintain_order=True).rows(named=True)
        entry = [row for row in entry if not any(map(is_missing, row.values()))]
    boxes = list(entry) if isinstance(entry, Iterable) else []
    if not boxes or not all(isinstance(box, Mapping) and box for box in boxes):
        raise OptionError(f"together has {str(entry)[:60]!r}, which is no rule. {GRAMMAR}")
    return tuple({plain_item(k): _plain_value(v) for k, v in box.items()} for box in boxes)


def _plain_value(value: Any) -> Any:
    if not is_several(value):
        return plain_item(value)
    values = tuple(map(plain_item, value))
    if len(values) == 2 and any(as_float(v) is not None for v in values):
        return tuple(None if v == OPEN else v for v in values)  # sides of an interval, from a file
    return values


def read_together(entries: Iterable[Any], space: Space) -> tuple[Together, ...]:
    """Read the rules that `as_entries` has brought to one form.

    Examples
    --------
    >>> from voicecf.rules.together import read_together
    >>> from voicecf.table.space import Space
    >>> space = Space.plain(["visits", "money"], named=True)
    >>> (rule,) = read_together(["if visits <= 0 then money == 0"], space)
    >>> rule.high.tolist()
    [[inf, inf], [inf, 0.0]]
    """
    return tuple(_rule(entry, space) for entry in entries)


def _rule(entry: Any, space: Space) -> Together:
    if isinstance(entry, str):
        boxes, text = _boxes_of_text(entry, space), entry.strip()
    else:
        boxes = [_box(box, space) for box in entry]
        text = _text_of(boxes, space)
    boxes = [box for box in boxes if all(map(_some, box.values()))]
    if not boxes:
        raise OptionError(f"together: no values satisfy {text!r}.")
    columns = tuple(sorted({c for box in boxes for c in box}))
    numbers = [[_interval(box.get(c)) for c in columns] for box in boxes]
    low, high = np.moveaxis(np.array(numbers, dtype=np.float64), 2, 0)
    levels = {}
    for c in columns:
        if not space.columns[c].numeric:
            every = np.ones(len(space.columns[c].levels), dtype=np.bool_)
            levels[c] = np.array([box.get(c, every) for box in boxes], dtype=np.bool_)
    return Together(text, columns, low, high, levels)


def _some(values: Values) -> bool:
    return values[0] <= values[1] if isinstance(values, tuple) else bool(values.any())


def _interval(values: Values | None) -> tuple[float, float]:
    return values if isinstance(values, tuple) else (-inf, inf)


def _mask(levels: Iterable[Any], column: Column, where: str) -> Mask:
    """Return a mask of the levels of a category that the user names."""
    mask = np.zeros(len(column.levels), dtype=np.bool_)
    mask[[level_position(level, column, where) for level in levels]] = True
    return mask


def _text_of(boxes: list[Box], space: Space) -> str:
    """Write a few boxes as text; of many, only the names of the columns."""
    if len(boxes) <= FEW_BOXES:
        return " or ".join(
            " and ".join(_values_text(space.columns[c], values) for c, values in box.items())
            for box in boxes
        )
    names = [str(space.names[c]) for c in sorted({c for box in boxes for c in box})]
    return f"one of {len(boxes)} combinations of {', '.join(names)}"


def _values_text(column: Column, values: Values) -> str:
    if not isinstance(values, tuple):
        levels = [level(column.levels[i]) for i in np.flatnonzero(values)]
        few = f"== {levels[0]}" if len(levels) == 1 else f"in [{', '.join(levels)}]"
        return f"{column.name} {few}"
    low, high = values
    if low == high:
        return f"{column.name} == {low:g}"
    if isfinite(low) and isfinite(high):
        return f"{low:g} <= {column.name} <= {high:g}"
    return f"{column.name} {'>=' if isfinite(low) else '<='} {low if isfinite(low) else high:g}"


# Boxes as dicts.


def _box(entry: Mapping[Any, Any], space: Space) -> Box:
    box: Box = {}
    for name, value in entry.items():
        c = column_of(space, name, "together")
        box[c] = _values(value, space.columns[c])
    return box


def _values(value: Any, column: Column) -> Values:
    """Read what a box allows in one column: a value, a pair (lo, hi), or a list of levels."""
    if not column.numeric:
        levels = value if isinstance(value, tuple) else (value,)
        return _mask(levels, column, "together")
    where = f"together of {column.name!r}"
    if isinstance(value, tuple):
        low, high = read_pair(value, where)
        sides = read_side(low, -inf, where), read_side(high, inf, where)
        if any(side is None or side.relative for side in sides):
            raise OptionError(f"{where}: {value!r} is not a pair of numbers or None.")
        return sides[0].amount, sides[1].amount  # type: ignore[union-attr]
    number = _number(value, column, "together")
    return number, number


def _number(value: Any, column: Column, where: str) -> float:
    number = float(value) if isinstance(value, bool) else as_float(value)
    if number is None or not isfinite(number):
        raise OptionError(f"{where}: {value!r} is no value of the number column {column.name!r}.")
    return number


# Boxes as text.


def _boxes_of_text(text: str, space: Space) -> list[Box]:
    match = CONDITION.fullmatch(text.strip())
    if match is None:
        if re.match(r"if\s", text.strip(), re.IGNORECASE):
            raise OptionError(f"together: {text!r} has an 'if' but no 'then'. {GRAMMAR}")
        return _boxes(text, text, space)
    # If A then B is: not A, or B.
    others = _boxes(match["condition"], text, space, opposite=True)
    return [*others, *_boxes(match["rest"], text, space)]


def _boxes(part: str, text: str, space: Space, *, opposite: bool = False) -> list[Box]:
    """Return the boxes of comparisons joined by "and", and these by "or"; or of the opposite."""
    one_of, each_of = (_all, _any) if opposite else (_any, _all)
    return one_of(
        each_of(_compared(_comparison(one, text), space, text, opposite) for one in _comparisons(s))
        for s in _split(part, "or")
    )


def _any(unions: Iterable[list[Box]]) -> list[Box]:
    return [box for boxes in unions for box in boxes]


def _all(unions: Iterable[list[Box]]) -> list[Box]:
    return [reduce(_both, boxes, {}) for boxes in product(*unions)]


def _comparisons(text: str) -> list[str]:
    """Return comparisons that are joined by "and"; one with two numbers as two."""
    found = []
    for part in _split(text, "and"):
        between = BETWEEN.fullmatch(part.strip())
        if between is None:
            found.append(part)
        else:
            column = re.split("<=|<", between["rest"])[0].strip()
            found += [
                f"{column} {between['first'].replace('<', '>')} {between['low']}",
                between["rest"],
            ]
    return found


def _split(text: str, word: str) -> list[str]:
    between = "," if word == "," else rf"\s+{word}\s+"
    return re.split(rf"{between}{OUTSIDE_QUOTES}", text, flags=re.IGNORECASE)


def _both(one: Box, other: Box) -> Box:
    both = dict(one)
    for c, values in other.items():
        before: Any = both.get(c, values)
        if isinstance(values, tuple):
            both[c] = max(before[0], values[0]), min(before[1], values[1])
        else:
            both[c] = before & values
    return both


def _comparison(part: str, text: str) -> re.Match[str]:
    match = COMPARISON.fullmatch(part.strip())
    if match is None and ARITHMETIC.search(part):
        raise OptionError(f"together: {part.strip()!r} in {text!r} computes. {LINEAR}")
    if match is None:
        raise OptionError(f"together: {part.strip()!r} in {text!r} is no comparison. {GRAMMAR}")
    return match


def _compared(match: re.Match[str], space: Space, text: str, opposite: bool) -> list[Box]:
    """Return the boxes, one or two, of a comparison of a column with a value."""
    where = f"together {text!r}"
    c = column_of(space, match["quoted"] or match["name"], where)
    column, sign = space.columns[c], {"=": "==", None: "=="}.get(match["sign"], match["sign"])
    sign = OPPOSITE[sign] if opposite else sign
    value = match["value"].strip()
    values = _split(value.strip("[]()"), ",") if match["among"] else [value]
    texts = [_unquoted(part.strip()) for part in values]
    if not column.numeric:
        if sign not in ("==", "!="):
            raise OptionError(f"{where}: the category {column.name!r} may be == or != a level.")
        levels = _mask(texts, column, where)
        known = np.array([not is_missing(level) for level in column.levels])
        return [{c: levels if sign == "==" else known & ~levels}]
    numbers = [_number_of(text, column, where) for text in texts]
    allowed = (intervals(sign, number, column) for number in numbers)
    unions: Iterable[list[Box]] = ([{c: interval} for interval in some] for some in allowed)
    return (_any if sign == "==" else _all)(unions)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else text


def _number_of(unquoted: str, column: Column, where: str) -> float:
    truth = {"true": 1.0, "false": 0.0}.get(unquoted.lower())
    try:
        return float(unquoted.replace("_", "")) if truth is None else truth
    except ValueError:
        raise OptionError(
            f"{where}: {unquoted!r} is no number, but {column.name!r} is a column of numbers. "
            f"{LINEAR}"
        ) from None


def intervals(sign: str, number: float, column: Column) -> list[tuple[float, float]]:
    """Return the values that compare with a number; < and > leave out its neighbourhood."""
    if column.whole:
        below, above = float(ceil(number) - 1), float(floor(number) + 1)
    else:
        low, high = column.observed
        step = STRICT * (high - low) if isfinite(high - low) else STRICT * max(abs(number), 1.0)
        below, above = number - step, number + step
    found = {
        "==": [(number, number)],
        "!=": [(-inf, below), (above, inf)],
        "<=": [(-inf, number)],
        ">=": [(number, inf)],
        "<": [(-inf, below)],
        ">": [(above, inf)],
    }
    return found[sign]


def _connected_end(low: Array, high: Array, value: float, direction: int, step: float) -> float:
    """Return how far intervals that join each other reach from a value, up or down.

    Intervals join if they overlap or are one step apart.
    """
    end, ends = value, (high if direction > 0 else low)
    while True:
        joined = (low - step <= end) & (end <= high + step)
        further = max((ends[joined] * direction).max(initial=end * direction), end * direction)
        if further == end * direction:
            return end
        end = further * direction
