"""Why there is no answer and what would make one possible; how far an answer may go."""

from voicecf.reasons.case import Member
from voicecf.reasons.reasons import Reason, Relaxation

__all__ = ["Member", "Reason", "Relaxation"]
