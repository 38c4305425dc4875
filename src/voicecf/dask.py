"""Dask: explain and fit frames that lie in partitions, on a cluster or not.

Partitions are answered where they lie. The passes of a clustering run there too, and only sums
travel. A task uses one thread, as Dask runs one task for each thread of a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

try:
    import dask
    import dask.dataframe as dd
    import pandas as pd
    import pyarrow as pa
except ImportError:
    raise ImportError("Dask frames need Dask: pip install 'voicecf[dask]'") from None

from voicecf.errors import DataError
from voicecf.files import Answering, explain_batches
from voicecf.files.entry import PREFIX
from voicecf.files.parts import in_order
from voicecf.learned.explainer import Explainer
from voicecf.parallel import Running
from voicecf.solver.passes import Accumulator, MassRows, merged
from voicecf.streaming.fitting import fit_model
from voicecf.table.stream import Progress, Stream, transformed

__all__ = ["explain", "fit"]

Estimator = TypeVar("Estimator")

# The number of a row within its partition, which the index tells.
ROW = PREFIX + "row"
# Types of pandas for whole numbers and truth values some of which are missing.
NULLABLE = {pa.bool_(): pd.BooleanDtype()} | {
    pa.from_numpy_dtype(name.lower()): pd.api.types.pandas_dtype(name)
    for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
}


def explain(voice: Explainer, frame: dd.DataFrame, **question: Any) -> dd.DataFrame:
    """Explain every row of a Dask DataFrame; `voice.explain(frame)` does the same.

    Parameters
    ----------
    voice : VoICE or CFCLUST
        Fitted.
    frame : dask.dataframe.DataFrame
    **question
        `target` (one cluster, "nearest" or "each"), `objective`, rules and so on, as of
        `VoICE.explain`.

    Returns
    -------
    dask.dataframe.DataFrame
        Lazy. The changed rows in the user's columns, under the index of the rows that they belong
        to, and `voicecf_source`, `voicecf_target` and so on, as of
        `voicecf.files.explain_batches`, but for the number of the row. Columns of whole
        numbers are of pandas' types that can be missing (Int64), as a row without an answer is.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from voicecf import VoICE
    >>> from voicecf.dask import explain
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> rows = pd.DataFrame({"age": [1.0, 3.5], "income": [5.0, 6.0]}, index=["ann", "bob"])
    >>> answers = explain(voice, dd.from_pandas(rows, npartitions=2), target=1).compute()
    >>> answers[["age", "voicecf_source", "voicecf_target"]].round(3)
         age  voicecf_source  voicecf_target
    ann  2.0               0               1
    bob  3.5               1               1
    """
    meta = _meta(voice, frame._meta, question)
    # Delayed, the explainer is in the graph once and not in every task.
    shared = dask.delayed(voice, pure=True, traverse=False)
    return frame.map_partitions(
        _answered, shared, dask.delayed(question, pure=True, traverse=False), meta, meta=meta
    )


def _meta(voice: Explainer, empty: pd.DataFrame, question: dict[str, Any]) -> pd.DataFrame:
    """Return an empty table with the columns and types of the answers.

    `empty` is an empty table with those of the rows.
    """
    schema = pa.Schema.from_pandas(empty, preserve_index=False)
    # Arrow cannot tell what an empty column of objects would hold: taken for text.
    for place in [i for i, field in enumerate(schema) if pa.types.is_null(field.type)]:
        schema = schema.set(place, pa.field(schema.names[place], pa.string()))
    output = Answering.of(voice, schema, question).schema
    columns = {}
    for place, field in enumerate(output):
        own = place >= len(schema)
        same = not own and field.type == schema.field(place).type
        dtype = empty.dtypes.iloc[place] if same else field.type.to_pandas_dtype()
        if own and pa.types.is_string(field.type):
            dtype = "str"
        elif not own or field.name == PREFIX + "n_changed":
            dtype = _with_gaps(dtype)
        columns[field.name] = pd.Series(dtype=dtype)
    del columns[ROW]
    return pd.DataFrame(columns, index=empty.index[:0])


def _with_gaps(dtype: Any) -> Any:
    """Return a type of pandas that can be missing, as rows without an answer are."""
    if isinstance(dtype, pd.api.extensions.ExtensionDtype) or np.dtype(dtype).kind not in "biu":
        return dtype
    return NULLABLE[pa.from_numpy_dtype(dtype)]


def _answered(
    part: pd.DataFrame, voice: Explainer, question: dict[str, Any], meta: pd.DataFrame
) -> pd.DataFrame:
    """Answer a partition."""
    if len(part) == 0:
        return meta
    rows = pa.Table.from_pandas(part, preserve_index=False, nthreads=1)
    with Running(n_jobs=1, progress=False):
        (answers,) = explain_batches(voice, [rows], **question)
    table = pa.Table.from_batches([answers])
    # Whole numbers stay whole where some are missing.
    made = table.drop_columns([ROW]).to_pandas(types_mapper=NULLABLE.get, use_threads=False)
    made.index = part.index[table[ROW].to_numpy()]
    kinds = meta.dtypes[[not isinstance(kind, pd.CategoricalDtype) for kind in meta.dtypes]]
    return made.astype(kinds.to_dict())


def fit(
    estimator: Estimator, frame: dd.DataFrame, *, progress: Progress | None = None
) -> Estimator:
    """Fit a model, or an explainer of one, on a Dask DataFrame.

    What is learned depends on the partitions by the rounding of sums only (about 1e-12). See
    `voicecf.streaming.fit` for what can be learned. Scalers, encoders and explainers are learned as
    the partitions pass by, one at a time. The many passes of the clustering run where the rows lie:
    with a `Client`, the numbers that the model sees are kept on its workers, and only sums travel.

    Parameters
    ----------
    estimator : SHARK, KMeans, a Pipeline that ends in one, or a VoICE around one
        Fitted in place.
    frame : dask.dataframe.DataFrame
        Computed partition by partition, pass after pass; persist it if that takes long.
    progress : callable, optional
        Called as ``progress(pass, rows)`` in the passes that run here.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from voicecf import SHARK, dask as partitions
    >>> frame = pd.DataFrame({"a": [1.0, 1.2, 1.1, 8.0, 8.2, 8.1], "b": [5.0, 1, 9, 2, 8, 5]})
    >>> model = partitions.fit(SHARK(2, random_state=42), dd.from_pandas(frame, npartitions=3))
    >>> model.feature_weights_.round(3).tolist()
    [0.999, 0.001]
    """
    # The next partition is computed while one is looked at.
    read = lambda: in_order(lambda part: part.compute(), frame.partitions, 1)  # noqa: E731
    stream = Stream.of(read, progress)
    client = _client()
    if client is not None:
        stream = replace(stream, place=lambda steps: OnCluster.of(frame, steps, client))
    return fit_model(estimator, stream)


def _client() -> Any:
    """Return the client of a cluster, None if there is none."""
    try:
        from distributed import default_client

        return default_client()
    except (ImportError, ValueError):
        return None


@dataclass(frozen=True)
class OnCluster:
    """Rows on the workers of a cluster, as the model sees them.

    Attributes
    ----------
    client : distributed.Client
    parts : list of futures of Rows
        One per partition, None if it is empty. The workers keep the rows, and compute them again if
        one of them is lost.
    before : list of int
        Number of rows before each partition; at the end that of all rows.
    """

    client: Any
    parts: list[Any]
    before: list[int]

    @classmethod
    def of(cls, frame: dd.DataFrame, steps: Any, client: Any) -> OnCluster:
        """Turn partitions into the rows of a model, by some steps."""
        sent = dask.delayed(steps, pure=True, traverse=False)
        parts = client.compute([dask.delayed(_rows)(sent, part) for part in frame.to_delayed()])
        lengths = client.gather(client.map(_n_rows, parts))
        if sum(lengths) == 0:
            raise DataError("the frame has no rows; there is nothing to learn from.")
        return cls(client, parts, np.cumsum([0, *lengths]).tolist())

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.before[-1]

    def accumulate(self, accumulators: Sequence[Accumulator]) -> list[Any]:
        """Return copies of empty accumulators to which all rows were added."""
        tasks = self.client.map(
            _filled, self.parts, self.before[:-1], accumulators=list(accumulators), pure=False
        )
        return merged(self.client.gather(tasks))


def _rows(steps: Any, part: pd.DataFrame) -> MassRows | None:
    with Running(n_jobs=1, progress=False):
        return transformed(steps, part) if len(part) else None


def _n_rows(rows: MassRows | None) -> int:
    return 0 if rows is None else rows.n_rows


def _filled(rows: MassRows | None, first: int, accumulators: list[Accumulator]) -> list[Any]:
    """Return the accumulators of a partition; none if it is empty."""
    with Running(n_jobs=1, progress=False):
        return [] if rows is None else replace(rows, first=first).accumulate(accumulators)
