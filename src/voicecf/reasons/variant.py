"""A variant of a question: its rules, some of them relaxed, and the rivals that still count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from voicecf.rules.columns import column_of, columns_of
from voicecf.rules.rules import Rules
from voicecf.table.space import Space

DIRECTIONS = ("increase_only", "decrease_only")
BY_COLUMN = ("bounds", "steps", "levels", "order", "forbidden", "costs", "least")
# Rules that are lists, about several columns each.
LISTS = ("constraints", "together")


@dataclass(frozen=True)
class Variant:
    """The rules, the rivals and the contraction that one solve takes into account.

    Attributes
    ----------
    rules : dict
        All keywords of `Rules`, each column by its own name; `mutable` is said by `immutable`.
    ignored_rivals : frozenset of int
        Clusters that the answer may be nearer to than to its target.
    alpha : float or None
        Contraction of the target's cell; the explainer's own if None.
    """

    rules: Mapping[str, Any]
    ignored_rivals: frozenset[int] = frozenset()
    alpha: float | None = None

    @classmethod
    def of(cls, rules: Rules, space: Space) -> Variant:
        """Return the question as it was asked, each column by its own name."""
        named: dict[str, Any] = {
            keyword: [space.names[c] for c in columns_of(space, getattr(rules, keyword), keyword)]
            for keyword in DIRECTIONS
        }
        named["immutable"] = [space.names[c] for c in rules.locked(space)]
        for keyword in BY_COLUMN:
            named[keyword] = {
                space.names[column_of(space, name, keyword)]: value
                for name, value in getattr(rules, keyword).items()
            }
        lists = {keyword: list(getattr(rules, keyword)) for keyword in LISTS}
        others = {"max_changes": rules.max_changes, "plausible": rules.plausible}
        return cls({**named, **lists, **others})

    def with_rules(self, **rules: Any) -> Variant:
        """Return the variant with some rules replaced."""
        return replace(self, rules={**self.rules, **rules})

    def with_column_rule(self, keyword: str, name: Any, value: Any) -> Variant:
        """Return the variant with the rule of one column replaced; None removes it."""
        others = {n: v for n, v in self.rules[keyword].items() if n != name}
        return self.with_rules(**{keyword: others if value is None else {**others, name: value}})

    def without_column(self, keyword: str, name: Any) -> Variant:
        """Return the variant with a column removed from one of the lists of columns."""
        return self.with_rules(**{keyword: [n for n in self.rules[keyword] if n != name]})

    def sides(self, name: Any) -> tuple[Any, Any]:
        """Return the bounds of a column as the user gave them; an ellipsis where not given."""
        low, high = self.rules["bounds"].get(name, (..., ...))
        return low, high
