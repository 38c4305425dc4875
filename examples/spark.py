"""Explain a Spark DataFrame: `explain_batches` is what `mapInArrow` wants.

Needs Java and ``pip install pyspark 'voicecf[files]'``; without them it says so.
"""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import VoICE
from voicecf.files import Answering, explain_batches

if find_spec("pyspark") is None or shutil.which("java") is None:
    print("This example needs Java and pyspark: pip install pyspark")
    sys.exit()

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

warnings.filterwarnings("ignore", module="pyspark")  # of its own business with pandas

rng = np.random.default_rng(0)
group = rng.integers(3, size=3_000)
customers = pa.table({
    "id": np.arange(3_000),
    "age": 24.0 + 13 * group + rng.normal(0, 3, 3_000),
    "income": 1_700.0 + 800 * group + rng.normal(0, 220, 3_000),
})  # fmt: skip
segments = make_pipeline(StandardScaler(), KMeans(3, n_init=10, random_state=0))
voice = VoICE(segments).fit(customers.select(["age", "income"]))

question = {"target": 2, "bounds": {"income": (None, 4_000)}}
schema = from_arrow_schema(Answering.of(voice, customers.schema, question).schema)

os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
spark = SparkSession.builder.master("local[2]").appName("voicecf").getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
frame = spark.createDataFrame(customers).repartition(4)
# Each task numbers its own rows from 0, so that a column such as id tells them apart.
answers = frame.mapInArrow(lambda batches: explain_batches(voice, batches, **question), schema)
found = pa.Table.from_batches(answers.toArrow().to_batches()).sort_by("id")
spark.stop()

inside = found.filter(found["voicecf_feasible"])
landed = voice.predict(inside.select(["age", "income"])) == 2
print(f"{found.num_rows} answers from Spark, {inside.num_rows} of them feasible.")
print(f"The pipeline puts all of these into the target: {landed.all()}")
