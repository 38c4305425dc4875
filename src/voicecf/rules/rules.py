"""The user's rules, in the user's columns, units and levels: what may change, and how."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Any, Literal, Self, TypedDict, TypeVar, get_type_hints

from voicecf.errors import OptionError, likely
from voicecf.rules.bounds import Bounds
from voicecf.rules.constraints import Constraints
from voicecf.rules.costs import Costs
from voicecf.rules.derived import Derived
from voicecf.rules.directions import DecreaseOnly, IncreaseOnly
from voicecf.rules.least import Least
from voicecf.rules.levels import Forbidden, Levels, Order
from voicecf.rules.locks import Immutable, Mutable
from voicecf.rules.max_changes import MaxChanges
from voicecf.rules.plausible import Plausible
from voicecf.rules.prices import Prices
from voicecf.rules.probability import Probability
from voicecf.rules.rule import Rule
from voicecf.rules.steps import Increments
from voicecf.rules.terms import ColumnRule, Terms
from voicecf.rules.together import BelongTogether
from voicecf.table.space import Space

# Every rule, by its word. A new one is listed here, in `RuleWords` and as a field of `Rules`.
RULES: dict[str, type[Rule]] = {
    rule.word: rule
    for rule in (
        Immutable, Mutable, IncreaseOnly, DecreaseOnly, Bounds, Increments, Levels, Order,
        Forbidden, Costs, Prices, Least, MaxChanges, Constraints, Derived, BelongTogether,
        Plausible, Probability,
    )
}  # fmt: skip


class RuleWords(TypedDict, total=False):
    """The rules as keywords, so that editors complete them."""

    immutable: Any
    mutable: Any
    increase_only: Any
    decrease_only: Any
    bounds: Any
    steps: Any
    levels: Any
    order: Any
    forbidden: Any
    costs: Any
    prices: Any
    least: Any
    max_changes: int | None
    constraints: Any
    derived: Any
    together: Any
    plausible: float | Literal["auto"] | None
    probability: float | None


Documented = TypeVar("Documented", bound=Callable[..., Any])
# The entry of a docstring that stands for all rules, and where it begins.
ENTRY = re.compile(r"^(?P<indent> *)\*\*words\n(?:(?P=indent) +\S.*\n)+", re.MULTILINE)
# Code in a docstring, which is not broken into two lines.
CODE = re.compile("``.*?``")
WIDTH = 100


def documented(described: Documented) -> Documented:
    """Describe every rule in a docstring, in place of the entry ``**words``."""
    described.__doc__ = ENTRY.sub(_parameters, described.__doc__ or "")
    return described


def takes_rules(function: Documented) -> Documented:
    """Name every rule in the signature and in the docstring of a function of ``**words``.

    They come before the parameter `rules`.
    """
    signature = inspect.signature(function)
    *parameters, _ = signature.parameters.values()
    at = list(signature.parameters).index("rules")
    kinds = get_type_hints(RuleWords)
    parameters[at:at] = [
        inspect.Parameter(
            word, inspect.Parameter.KEYWORD_ONLY, default=rule.default, annotation=kinds[word]
        )
        for word, rule in RULES.items()
    ]
    setattr(function, "__signature__", signature.replace(parameters=parameters))  # noqa: B010
    return documented(function)


def _parameters(entry: re.Match[str]) -> str:
    """Return the entries of a docstring about all rules."""
    indent = entry["indent"]
    lines = []
    for word, rule in RULES.items():
        lines.append(f"{indent}{word} : {rule.takes}, optional")
        text = CODE.sub(
            lambda code: code[0].replace(" ", "\0"), " ".join((rule.__doc__ or "").split())
        )
        inner = f"{indent}    "
        lines += wrap(text, WIDTH, initial_indent=inner, subsequent_indent=inner)
    return "\n".join([*lines, ""]).replace("\0", " ")


@documented
@dataclass(frozen=True)
class Rules:
    """What a counterfactual may change, and how. Every rule is optional.

    Columns are given by name, or by position for arrays; a column of a declared block stands for
    the block.

    Parameters
    ----------
    **words
        The rules.

    Examples
    --------
    >>> from voicecf.rules import Rules
    >>> rules = Rules(immutable="age", bounds={"income": (None, "+10%")}, max_changes=3)
    >>> rules.to_dict()
    {'immutable': ['age'], 'bounds': {'income': ['open', '+10%']}, 'max_changes': 3}
    >>> Rules.from_dict(rules.to_dict()) == rules
    True
    """

    immutable: Any = None
    mutable: Any = None
    increase_only: Any = None
    decrease_only: Any = None
    bounds: Any = None
    steps: Any = None
    levels: Any = None
    order: Any = None
    forbidden: Any = None
    costs: Any = None
    prices: Any = None
    least: Any = None
    max_changes: int | None = None
    constraints: Any = None
    derived: Any = None
    together: Any = None
    plausible: float | Literal["auto"] | None = Plausible.default
    probability: float | None = None

    def __post_init__(self) -> None:
        """Bring values to one form, so that rules compare equal; check all but the columns."""
        for word, rule in RULES.items():
            object.__setattr__(self, word, rule.read(getattr(self, word)))

    @classmethod
    def from_dict(cls, words: Mapping[str, Any]) -> Self:
        """Read rules from a dict, such as that of a TOML or JSON file."""
        if not isinstance(words, Mapping):
            raise OptionError(
                f'rules must be a dict such as {{"immutable": ["age"]}}; got {words!r}.'
            )
        for word in words:
            if word not in RULES:
                raise OptionError(f"unknown rule {word!r}; {likely(word, RULES, len(RULES))}")
        return cls(**words)

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from no rules given, in types that TOML and JSON have."""
        return {rule.word: rule.plain() for rule in self.given()}

    def each(self) -> list[Rule]:
        """Return all rules, those that are not set included."""
        return [rule(getattr(self, word)) for word, rule in RULES.items()]

    def active(self) -> list[Rule]:
        """Return the rules that are set."""
        words = {w: rule for w, rule in RULES.items() if getattr(self, w) != rule.nothing}
        return [rule(getattr(self, word)) for word, rule in words.items()]

    def given(self) -> list[Rule]:
        """Return the rules that differ from what holds where the user says nothing."""
        return [rule for rule in self.each() if rule.value != rule.read(rule.default)]

    def ladder(self, learned: Any, objective: str) -> tuple[Self, ...]:
        """Return the rules that are tried one after the other, until there is an answer."""
        ladder: tuple[Self, ...] = (self,)
        for rule in self.active():
            values = rule.ladder(learned, objective)
            if values != (rule.value,):
                ladder = tuple(replace(one, **{rule.word: v}) for one in ladder for v in values)
        return ladder

    def check(self, space: Space) -> None:
        """Raise if a rule does not fit the columns of a space."""
        self.terms(space)

    def terms(self, space: Space) -> Terms:
        """Return what the rules say of the columns of a space, checked."""
        terms, rules = Terms.of(space), self.active()
        for rule in rules:
            rule.add(terms)
        for rule in rules:
            rule.check(terms)
        return terms

    def of_columns(self, space: Space) -> list[ColumnRule]:
        """Return the rules about each column of a space, checked."""
        return self.terms(space).columns

    def locked(self, space: Space) -> list[int]:
        """Return the positions of the columns that keep their values.

        They are those that `immutable` lists and, where `mutable` is given, all that it does not.
        """
        return [c for c, rule in enumerate(self.of_columns(space)) if rule.fixed]

    def named(self, space: Space) -> Self:
        """Return the rules with each column by its own name, `mutable` said by `immutable`."""
        words = {rule.word: rule.named(space) for rule in self.given()}
        if words.pop("mutable", None) is not None:
            words["immutable"] = [space.names[c] for c in self.locked(space)]
        return type(self)(**words)
