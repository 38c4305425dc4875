"""A variant of a question: its rules, some of them relaxed, and the rivals that still count."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voicecf.rules.rules import Rules


@dataclass(frozen=True)
class Variant:
    """The rules, the rivals and the contraction that one solve takes into account.

    Attributes
    ----------
    rules : Rules
        Each column by its own name; `mutable` is said by `immutable`. See `Rules.named`.
    ignored_rivals : frozenset of int
        Clusters that the answer may be nearer to than to its target.
    alpha : float or None
        Contraction of the target's cell; the explainer's own if None.
    """

    rules: Rules
    ignored_rivals: frozenset[int] = frozenset()
    alpha: float | None = None

    def with_rules(self, **words: Any) -> Variant:
        """Return the variant with some rules replaced."""
        return replace(self, rules=replace(self.rules, **words))

    def with_column_rule(self, word: str, name: Any, value: Any) -> Variant:
        """Return the variant with the rule of one column replaced; None removes it."""
        others = {n: v for n, v in getattr(self.rules, word).items() if n != name}
        return self.with_rules(**{word: others if value is None else {**others, name: value}})

    def without(self, word: str, entry: Any) -> Variant:
        """Return the variant with an entry removed from a rule that is a list."""
        return self.with_rules(**{word: [e for e in getattr(self.rules, word) if e != entry]})
