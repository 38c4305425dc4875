"""Which display shows an answer."""

from __future__ import annotations

from typing import Any

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import DataError, OptionError, known_option
from voicecf.plots.card import ChangeCard
from voicecf.plots.display import Display
from voicecf.plots.plane import Plane
from voicecf.plots.segments import SegmentMap
from voicecf.status import Status


def drawn(cf: Counterfactuals, i: int, kind: str, data: Any, plane: Any) -> Display:
    """Return the display of an answer; see `Counterfactuals.plot`."""
    one = cf[i]
    known_option(kind, ("card", "map"), "kind")
    if kind == "card":
        if data is not None or plane is not None:
            raise OptionError('data and plane are for kind="map"; a card needs neither.')
        return ChangeCard.from_counterfactuals(one)
    if one.status[0] == Status.UNREADABLE:
        raise DataError(f'{one.text(0)} A map has no place for it; use kind="card".')
    return SegmentMap.from_voice(one.outcome.learned, data, _plane(one, plane), one)


def _plane(one: Counterfactuals, plane: Any) -> Plane:
    if plane is None:
        return Plane.most_telling(one)
    if isinstance(plane, Plane):
        return plane
    if isinstance(plane, str) or len(plane) != 2:
        raise OptionError(f"plane={plane!r} must be a Plane or a pair of number columns.")
    return Plane.through(one, 0, *plane)
