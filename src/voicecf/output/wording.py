"""See `voicecf.table.wording`."""

from voicecf.table.wording import *  # noqa: F403
from voicecf.table.wording import LARGE  # noqa: F401
