"""Displays: each computes in ``from_...``, draws in ``plot`` and hands over its ``table``.

What they hold is plain arrays and text, so that another front end can draw the same. Drawing needs
matplotlib, ``pip install "voicecf[plot]"``; computing does not.
"""

from voicecf.plots.card import ChangeCard
from voicecf.plots.changes import Change
from voicecf.plots.display import Display
from voicecf.plots.markup import CARD_STYLE
from voicecf.plots.plane import Plane
from voicecf.plots.scores import ContractionScores
from voicecf.plots.segments import SegmentMap
from voicecf.plots.theme import DARK, LIGHT, Theme
from voicecf.plots.tradeoff import Tradeoff
from voicecf.plots.transitions import Transitions
from voicecf.plots.weights import Weights

__all__ = [
    "CARD_STYLE",
    "DARK",
    "LIGHT",
    "Change",
    "ChangeCard",
    "ContractionScores",
    "Display",
    "Plane",
    "SegmentMap",
    "Theme",
    "Tradeoff",
    "Transitions",
    "Weights",
]
