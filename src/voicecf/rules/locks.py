"""The rules `immutable` and `mutable`: columns that keep their values."""

from __future__ import annotations

from typing import Any, ClassVar

from voicecf.errors import OptionError, listed
from voicecf.rules.condition import LeftOut, Members, Situation
from voicecf.rules.rule import ColumnList
from voicecf.rules.terms import Terms


class Immutable(ColumnList):
    """Columns that keep their values."""

    word = kind = "immutable"
    left_out = LeftOut.LOCKS
    contractible = True
    help = "columns that may not change"

    def add(self, terms: Terms) -> None:
        for c in self.columns(terms.space):
            terms.set(c, fixed=True)

    def members(self, case: Situation) -> Members:
        mutable = tuple(case.mutable)
        for name, rule in zip(case.space.names, case.terms.columns, strict=True):
            if rule.fixed:
                facts = {"detail": mutable, "removal": f"unlock {name}"}
                yield self.member(f"{name} may not change", name, **facts)


class Mutable(ColumnList):
    """The only columns that may change.

    All others keep their values, as if they were listed in `immutable`.
    """

    word = "mutable"
    nothing: ClassVar[Any] = None
    contractible = True
    help = "the only columns that may change"

    @classmethod
    def checked(cls, value: Any) -> Any:
        names = super().checked(value)
        if not names or all(name is False for name in names):
            raise OptionError(
                f"mutable={value!r} lists no column, so that nothing could change; list the "
                "columns that may change, or leave mutable out if all may."
            )
        return names

    def add(self, terms: Terms) -> None:
        mutable, columns = self.columns(terms.space), terms.columns
        both = [terms.space.names[c] for c in mutable if columns[c].fixed]
        if both:
            raise OptionError(
                f"{listed(both)} is listed in mutable and in immutable; columns that mutable does "
                "not list keep their values anyway, so give mutable alone."
            )
        for c in range(len(columns)):
            terms.set(c, fixed=c not in mutable)
