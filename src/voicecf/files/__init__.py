"""Files and streams of any length: Arrow batches in, answers out, resumed where they were cut off.

`explain_batches` answers a stream of Arrow batches; it is what Spark's ``mapInArrow`` and Ray's
``map_batches`` call. `open_source` names files, a database or a query of DuckDB as an input, and
`explain_files` answers it into Parquet or CSV, part by part.
"""

from __future__ import annotations

try:
    import duckdb  # noqa: F401
    import pyarrow  # noqa: F401
except ImportError:
    raise ImportError("files need pyarrow and DuckDB: pip install 'voicecf[files]'") from None

from voicecf.files.entry import Answering, explain_batches
from voicecf.files.run import explain_files
from voicecf.files.source import Source, open_source

__all__ = ["Answering", "Source", "explain_batches", "explain_files", "open_source"]
