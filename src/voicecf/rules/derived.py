"""The rule `derived`: columns that are computed from others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from voicecf.errors import ColumnError, OptionError
from voicecf.rules.columns import column_of
from voicecf.rules.condition import Members, Situation
from voicecf.rules.formulas import GRAMMAR, read_formulas
from voicecf.rules.rule import ByColumn, Moved, several
from voicecf.rules.terms import Terms

if TYPE_CHECKING:
    from voicecf.rules.allowed import Allowed


class Derived(ByColumn):
    """Columns computed from others, ``{"basket": "revenue / orders", "total": "fresh + frozen"}``.

    A formula is a sum of columns times numbers, with one product or ratio of two columns at most,
    also with a condition, ``"revenue / orders if orders > 0 else 0"``. An answer's column is what
    the formula gives for its other columns; a whole number, or a value that stays, is that to the
    digits of the data. Bounds and locks hold for the value. Nothing is divided by zero in an
    answer. A row that contradicts a formula, or has no value for it, keeps what it has, or gets
    what the formula gives: an answer may change the computed column alone, to put it right, unless
    that is locked or all that it is made of is. `VoICE.derived_` has formulas that `fit` has found.
    """

    word = kind = "derived"
    takes = "dict of column to formula"
    help = 'a column computed from others: "basket=revenue / orders"'
    arguments = several("TEXT")
    example = '"basket": "revenue / orders"'
    command_example = '--derived "basket=revenue / orders"'

    @classmethod
    def entry(cls, value: Any, where: str) -> str:
        if not isinstance(value, str) or not value.strip():
            raise OptionError(f"{where} is {value!r}, which is no formula. {GRAMMAR}")
        return value.strip()

    def add(self, terms: Terms) -> None:
        made: dict[Any, int] = {}
        for name in self.value:
            c = column_of(terms.space, name, self.word)
            column = terms.space.columns[c]
            if column.kind != "number":
                raise ColumnError(
                    f"column {column.name!r} in derived is a category; only numbers can be "
                    "computed. Use together for it."
                )
            if c in made.values():
                raise ColumnError(
                    f"column {column.name!r} is named twice in derived; name it once."
                )
            made[name] = c
        terms.formulas = read_formulas(self.value, made, terms.space)

    def check(self, terms: Terms) -> None:
        """Lock what is computed from locked columns alone."""
        active = []
        for formula in terms.formulas:
            if all(terms.columns[c].fixed for c in formula.sources):
                terms.set(formula.made, fixed=True)
            else:
                active.append(formula)
        terms.formulas = active

    def check_question(self, learned: Any, allowed: Allowed, objective: str) -> None:
        if objective == "price":
            raise OptionError(
                'derived is not for objective="price": use objective="cost", or leave out derived '
                "and lock the columns that are computed."
            )

    @classmethod
    def parsed(cls, arguments: Any) -> Any:
        pairs = [text.partition("=") for text in arguments]
        for name, _, formula in pairs:
            if not name.strip() or not formula.strip():
                raise OptionError(f"--derived {name}: use COLUMN=FORMULA: {cls.command_example}.")
        return {name.strip(): formula for name, _, formula in pairs}

    def ends(self, answer: Moved, c: int, direction: int) -> Iterator[float]:
        """Yield the answer's value: no column in a formula can go further alone."""
        if any(c in formula.columns for formula in answer.case.terms.formulas):
            yield answer.number(c)

    def members(self, case: Situation) -> Members:
        for name, text in self.value.items():
            rule = f"{name} = {text}"
            yield self.member(f"'{rule}' must hold", name, removal=f"drop the rule '{rule}'")
