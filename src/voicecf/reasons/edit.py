"""Edits: the smallest change of one rule that is enough for an answer, and its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial

import numpy as np

from voicecf.reasons.case import Case
from voicecf.reasons.conflict import relaxed, without
from voicecf.reasons.member import Member, number
from voicecf.reasons.variant import Variant
from voicecf.rules.constraints import Constraint, read_constraints
from voicecf.search.outcome import Outcome

# Relative to the distance from a bound to the value that is needed: the precision with which that
# value is found, and how much may be added to it for the sake of fewer digits.
PRECISION, READABLE = 0.01, 0.1
# Shares of the members that are proposed in place of a smaller `plausible`.
LARGER_SHARES = (0.975, 0.99, 0.999)


@dataclass(frozen=True)
class Edit:
    """A change of a variant, and the text that describes it."""

    text: str
    apply: Callable[[Variant], Variant]


def smallest_edit(case: Case, member: Member, variant: Variant) -> Edit | None:
    """Return the smallest change of a member that is enough; None if even removing it is not."""
    less = relaxed(case, variant, member)
    answer = None if case.impossible(less) else case.answer(less)
    if answer is None:
        return None
    removal = _removal(case, member)
    edits = _EDITS.get(member.kind)
    for edit in edits(case, member, variant, answer) if edits else (removal,):
        if case.answer(edit.apply(variant)) is not None:
            return edit
    return removal


def _removal(case: Case, member: Member) -> Edit:
    """Return the edit that leaves a member out; bounds get the widest plausible values."""
    return Edit(_removal_text(case, member), lambda variant: relaxed(case, variant, member))


def _removal_text(case: Case, member: Member) -> str:
    name = member.column
    match member.kind:
        case "immutable":
            return f"unlock {name}"
        case "direction":
            return f"allow {name} to {'fall' if member.text.endswith('rise') else 'rise'}"
        case "step":
            return f"allow any number for {name}"
        case "levels":
            return f"allow every level of {name}"
        case "forbidden":
            return f"allow {member.text.replace(' may not change ', ' to change ')}"
        case "constraint":
            return f"drop the rule '{member.text}'"
        case "together":
            return f"drop the rule {member.text.removesuffix(' must hold')}"
        case "least":
            return f"allow {name} to change by less"
        case "max_changes":
            return "allow any number of columns to change"
        case "plausible":
            return "allow any unusual answer: leave out plausible"
        case "contraction":
            return f"do not contract the cell: {_contraction_text(case, 1.0)}"
    return _bounds_removal_text(case, member)


def _bounds_removal_text(case: Case, member: Member) -> str:
    name = member.column
    c = case.place(name)
    low, high = case.bounds(c, relaxed(case, case.original, member))
    lower = f"down to {number(low)}" if np.isfinite(low) and member.kind != "high" else ""
    upper = f"up to {number(high)}" if np.isfinite(high) and member.kind != "low" else ""
    if lower or upper:
        beyond = (
            _outside_text(case, c, side) for side, text in ((low, lower), (high, upper)) if text
        )
        outside = next(filter(None, beyond), "")
        return f"allow {name} {lower}{' and ' if lower and upper else ''}{upper}{outside}"
    side = {"low": "lower bound", "high": "upper bound"}.get(member.kind, "bounds")
    return f"remove the {side} of {name}"


# Edits of one kind of member each, the smallest change first. `answer` is the answer without it.


def _step_edits(case: Case, member: Member, variant: Variant, answer: Outcome) -> Iterator[Edit]:
    name = member.column
    if case.space.columns[case.place(name)].whole and name in variant.rules["steps"]:
        text = f"allow any whole number for {name}"
        yield Edit(text, lambda variant: variant.with_column_rule("steps", name, None))


def _level_edits(case: Case, member: Member, variant: Variant, answer: Outcome) -> Iterator[Edit]:
    name = member.column
    level = answer.after(case.place(name))[0]

    def allow(variant: Variant) -> Variant:
        return variant.with_column_rule("levels", name, (*variant.rules["levels"][name], level))

    yield Edit(f"allow {name} to become {level}", allow)


def _count_edits(case: Case, member: Member, variant: Variant, answer: Outcome) -> Iterator[Edit]:
    fewest = case.answer(without(case, variant, member), objective="fewest")
    more = variant.rules["max_changes"] + 1
    start = more if fewest is None else max(more, int(fewest.n_changed[0]))
    for most in range(start, more + 3):
        text = f"allow {most} columns to change"
        yield Edit(text, partial(Variant.with_rules, max_changes=most))


def _plausible_edits(
    case: Case, member: Member, variant: Variant, answer: Outcome
) -> Iterator[Edit]:
    for share in LARGER_SHARES:
        if share > variant.rules["plausible"]:
            text = f"allow less usual answers: plausible={share:g}"
            yield Edit(text, partial(Variant.with_rules, plausible=share))


def _contraction_edits(
    case: Case, member: Member, variant: Variant, answer: Outcome
) -> Iterator[Edit]:
    def enough(alpha: float) -> bool:
        return not case.impossible(replace(variant, alpha=alpha))

    least = _least(enough, case.alpha, 1.0)
    for digits in (2, 3, 4):
        alpha = min(float(np.ceil(least * 10**digits) / 10**digits), 1.0)
        if alpha < 1.0:
            text = f"contract less: {_contraction_text(case, alpha)}"
            yield Edit(text, partial(replace, alpha=alpha))


def _contraction_text(case: Case, alpha: float) -> str:
    margin = case.learned.margin
    smaller_margin = f", margin={1.0 - alpha:.4g}" if margin > 1.0 - alpha else ""
    return f"VoICE(..., contraction={alpha:g}{smaller_margin})"


def _bound_edits(case: Case, member: Member, variant: Variant, answer: Outcome) -> Iterator[Edit]:
    """Yield edits that move the violated side of the bounds no further than necessary."""
    name = member.column
    c = case.place(name)
    low, high = case.bounds(c, variant)
    value = float(answer.after(c)[0])
    if low <= value <= high:
        return
    upper = value > high

    def with_side(side: float, variant: Variant) -> Variant:
        before = variant.sides(name)
        sides = (before[0], side) if upper else (side, before[1])
        return variant.with_column_rule("bounds", name, sides)

    def enough(side: float) -> bool:
        return not case.impossible(with_side(side, variant))

    for side in _sides(case, c, high if upper else low, value, enough):
        direction = "up" if upper else "down"
        text = f"allow {name} {direction} to {number(side)}{_outside_text(case, c, side)}"
        yield Edit(text, partial(with_side, side))


def _outside_text(case: Case, c: int, side: float) -> str:
    """Say that a bound lies outside the observed range, where it does."""
    low, high = case.space.columns[c].observed
    if low <= side <= high:
        return ""
    return f", outside the observed range of {number(low)} to {number(high)}"


def _sides(
    case: Case, c: int, bound: float, value: float, enough: Callable[[float], bool]
) -> Iterator[float]:
    """Yield bounds that are likely to be enough, from the present one towards a value."""
    multiples = case.multiples(c)
    if multiples is not None and np.isfinite(bound):
        ends = np.rint(np.array([bound, value]) / multiples.increment)
        least = _least_whole(lambda k: enough(float(multiples.at(k))), *ends)
        yield readable(float(multiples.at(least)), bound)
    elif np.isfinite(bound):
        yield readable(_least(enough, bound, value), bound)
        yield readable(value, bound)
    yield value


def _constraint_edits(
    case: Case, member: Member, variant: Variant, answer: Outcome
) -> Iterator[Edit]:
    """Yield edits that loosen a constraint of which a single comparison is violated."""
    constraints = read_constraints(member.detail, case.space)
    values = {
        case.space.names[c]: float(answer.after(c)[0])
        for c, column in enumerate(case.space.columns)
        if column.kind == "number"
    }
    violated = [one for one in constraints if not one.holds(values)]
    if len(violated) != 1 or not all(map(_has_text, constraints)):
        return
    (tight,) = violated
    others = [_constraint_text(one) for one in constraints if one is not tight]

    def with_limit(limit: float, variant: Variant) -> Variant:
        texts = [text for text in variant.rules["constraints"] if text != member.detail]
        loosened = _constraint_text(replace(tight, limit=limit))
        return variant.with_rules(constraints=[*texts, *others, loosened])

    def enough(limit: float) -> bool:
        return not case.impossible(with_limit(limit, variant))

    value = float(sum(f * values[name] for name, f in tight.coefficients.items()))
    least = _least(enough, tight.limit, value)
    whole = _is_whole(case, tight)
    for limit in (readable(least, tight.limit), readable(value, tight.limit)):
        limit = float(np.floor(limit)) if whole else limit
        loosened = _constraint_text(replace(tight, limit=limit))
        yield Edit(f"loosen '{member.text}' to '{loosened}'", partial(with_limit, limit))


def _is_whole(case: Case, constraint: Constraint) -> bool:
    """Tell whether a constraint adds whole numbers, so that its limit may be whole."""
    columns = [case.space.columns[case.place(name)] for name in constraint.coefficients]
    factors = constraint.coefficients.values()
    return all(c.whole for c in columns) and all(f == np.rint(f) for f in factors)


_EDITS: dict[str, Callable[[Case, Member, Variant, Outcome], Iterator[Edit]]] = {
    "range": _bound_edits,
    "low": _bound_edits,
    "high": _bound_edits,
    "step": _step_edits,
    "levels": _level_edits,
    "max_changes": _count_edits,
    "plausible": _plausible_edits,
    "contraction": _contraction_edits,
    "constraint": _constraint_edits,
}


def _least(enough: Callable[[float], bool], bound: float, known: float) -> float:
    """Bisect for the value nearest to a bound that is enough; `known` is enough."""
    below, above = bound, known
    while abs(above - below) > PRECISION * abs(above - bound):
        middle = below + (above - below) / 2
        if middle in (below, above):
            break
        below, above = (below, middle) if enough(middle) else (middle, above)
    return above


def _least_whole(enough: Callable[[float], bool], bound: float, known: float) -> float:
    """Bisect for the whole number nearest to a bound that is enough; `known` is enough."""
    below, above = bound, known
    while abs(above - below) > max(1.0, PRECISION * abs(above - bound)):
        middle = np.rint(below + (above - below) / 2)
        below, above = (below, middle) if enough(middle) else (middle, above)
    return above


def readable(value: float, bound: float) -> float:
    """Round a value away from a bound, to the fewest digits that add little to its distance.

    Examples
    --------
    >>> from voicecf.reasons.edit import readable
    >>> readable(61137.2, 60000.0), readable(-0.01234, 0.0)
    (61200.0, -0.013)
    """
    room = READABLE * abs(value - bound)
    if room == 0 or not np.isfinite(room):
        return value
    rounding = ROUND_CEILING if value > bound else ROUND_FLOOR
    place = Decimal(1).scaleb(int(np.floor(np.log10(room))))
    rounded = float((Decimal(value) / place).to_integral_value(rounding) * place)
    return rounded if abs(rounded - bound) >= abs(value - bound) else value


# Constraints as text.


def _has_text(constraint: Constraint) -> bool:
    """Tell whether a constraint can be written: names with a backtick cannot be quoted."""
    return not any("`" in str(name) for name in constraint.coefficients)


def _constraint_text(constraint: Constraint) -> str:
    """Write a constraint as the user would: columns on the left, a number on the right."""
    flip = all(factor < 0 for factor in constraint.coefficients.values())
    terms = ""
    for name, factor in constraint.coefficients.items():
        factor = -factor if flip else factor
        sign = "-" if factor < 0 else "+"
        times = "" if abs(factor) == 1 else f"{_digits(abs(factor))}*"
        terms += f" {sign} {times}{_quoted(str(name))}"
    left = terms[3:] if terms.startswith(" + ") else f"-{terms[3:]}"
    limit = -constraint.limit if flip else constraint.limit
    return f"{left} {'>=' if flip else '<='} {_digits(limit)}"


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value == np.rint(value) and abs(value) < 1e15 else repr(float(value))
