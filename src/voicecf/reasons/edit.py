"""The smallest change of one rule that is enough for an answer."""

from __future__ import annotations

from voicecf.reasons.case import Case
from voicecf.rules.condition import Member
from voicecf.rules.edits import Edit
from voicecf.rules.variant import Variant


def smallest_edit(case: Case, member: Member, variant: Variant) -> Edit | None:
    """Return the smallest change of a member that is enough; None if even removing it is not."""
    condition = member.condition
    less = condition.relaxed(case, variant, member)
    answer = None if case.impossible(less) else case.answer(less)
    if answer is None:
        return None
    for edit in condition.edits(case, member, variant, answer):
        if case.answer(edit.apply(variant)) is not None:
            return edit
    removal = condition.removal(case, member)
    return Edit(removal, lambda variant: condition.relaxed(case, variant, member))
