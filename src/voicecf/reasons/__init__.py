"""Why there is no answer, what would make one possible, and how far an answer may go."""

from voicecf.reasons.reasons import Reason
from voicecf.reasons.relaxation import Relaxation
from voicecf.rules.condition import Member

__all__ = ["Member", "Reason", "Relaxation"]
