"""What all tests share: compiled code that matches its sources."""

from __future__ import annotations

import hashlib
from pathlib import Path

import voicecf


def _drop_stale_code() -> None:
    """Remove cached machine code once any source changed.

    numba looks at the file of a compiled function, not at the files of those that it calls.
    """
    folder = Path(voicecf.__file__).parent
    digest = hashlib.sha256()
    for source in sorted(folder.glob("*.py")):  # all compiled code stands at the top
        digest.update(source.read_bytes())
    cache = folder / "__pycache__"
    stamp = cache / "sources.sha256"
    if stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    cache.mkdir(exist_ok=True)
    for file in (*cache.glob("*.nbi"), *cache.glob("*.nbc")):
        file.unlink(missing_ok=True)
    stamp.write_text(digest.hexdigest())


_drop_stale_code()
