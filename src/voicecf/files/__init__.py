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
from voicecf.files.kinds import names_codes
from voicecf.files.run import Job, answers_so_far, explain_files
from voicecf.files.source import Source, open_source
from voicecf.files.spelling import spellings
from voicecf.files.staging import Reading
from voicecf.files.understood import Understood, understood
from voicecf.files.workbook import sheet_names

__all__ = [
    "Answering",
    "Job",
    "Reading",
    "Source",
    "Understood",
    "answers_so_far",
    "explain_batches",
    "explain_files",
    "names_codes",
    "open_source",
    "sheet_names",
    "spellings",
    "understood",
]
