"""Files and streams of any length: Arrow batches in, answers out, resumed where they were cut off.

`explain_batches` answers a stream of Arrow batches; it is what Spark's ``mapInArrow`` and Ray's
``map_batches`` call. `explain_files` reads CSV or Parquet and writes either, part by part.
"""

from __future__ import annotations

try:
    import pyarrow  # noqa: F401
except ImportError:
    raise ImportError("files need pyarrow: pip install 'voicecf[files]'") from None

from voicecf.files.entry import Answering, explain_batches
from voicecf.files.opening import open_source
from voicecf.files.reading import Source
from voicecf.files.run import explain_files

__all__ = ["Answering", "Source", "explain_batches", "explain_files", "open_source"]
