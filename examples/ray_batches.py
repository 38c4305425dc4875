"""Explain a Ray dataset: `explain_batches` within `map_batches`.

Needs ``pip install 'ray[data]' 'voicecf[files]'``; without it, it says so.
"""

from __future__ import annotations

import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
from sklearn.cluster import KMeans

from voicecf import VoICE
from voicecf.files import explain_batches

rng = np.random.default_rng(0)
group = rng.integers(3, size=3_000)
customers = pa.table({
    "id": np.arange(3_000),
    "age": 24.0 + 13 * group + rng.normal(0, 3, 3_000),
    "income": 17.0 + 8 * group + rng.normal(0, 2, 3_000),
})  # fmt: skip
segments = KMeans(3, n_init=10, random_state=0)
voice = VoICE(segments).fit(customers.select(["age", "income"]))


def explained(table: pa.Table) -> pa.Table:
    """Answer one block of rows; blocks number their own rows from 0."""
    return pa.Table.from_batches(explain_batches(voice, [table], target=2))


if find_spec("ray") is None:
    print("This example needs Ray: pip install 'ray[data]'")
    sys.exit()

warnings.filterwarnings("ignore", module="ray")  # of its own business
import ray  # noqa: E402

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
answers = ray.data.from_arrow(customers).map_batches(explained, batch_format="pyarrow")
found = pa.concat_tables(ray.get(answers.to_arrow_refs())).sort_by("id")
ray.shutdown()

landed = voice.predict(found.select(["age", "income"])) == 2
print(f"{found.num_rows} answers from Ray.")
print(f"The model puts all of these into the target: {landed.all()}")
