"""``python -m voicecf`` is the command ``voicecf``."""

from __future__ import annotations

import sys

from voicecf.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
