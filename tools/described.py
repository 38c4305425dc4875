"""Docstrings as they are once the package is imported: those that rules are written into.

The site reads the source without importing it (`mkdocs.yml` names this file as an extension).
"""

from __future__ import annotations

import inspect
from typing import Any

import griffe

from voicecf import Rules, VoICE

DESCRIBED: dict[str, Any] = {
    "voicecf.rules.rules.Rules": Rules,
    "voicecf.voice.VoICE.explain": VoICE.explain,
    "voicecf.voice.VoICE.tradeoff": VoICE.tradeoff,
}


class Described(griffe.Extension):  # type: ignore[misc]
    """Gives some objects the docstring and the parameters that they have at run time."""

    def on_object(self, *, obj: Any, **others: Any) -> None:
        """Replace the docstring, and the parameters of a function."""
        found = DESCRIBED.get(obj.path)
        if found is None:
            return
        obj.docstring.value = inspect.getdoc(found)
        if isinstance(obj, griffe.Function):
            obj.parameters = griffe.Parameters(
                *(
                    griffe.Parameter(
                        one.name,
                        kind=griffe.ParameterKind[one.kind.name.lower()],
                        default=None if one.default is one.empty else repr(one.default),
                    )
                    for one in inspect.signature(found).parameters.values()
                )
            )
