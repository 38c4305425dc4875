"""What all tests share: where the data is."""

from __future__ import annotations

import os
from pathlib import Path

SHARED = Path(__file__).parents[2] / "shared" / "data"
if "VOICECF_DATA" not in os.environ and SHARED.is_dir():
    os.environ["VOICECF_DATA"] = str(SHARED)
