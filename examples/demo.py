"""What would move customers into the segment of the families? And is the answer true?"""

from __future__ import annotations

from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import CFCLUST, VoICE
from voicecf.datasets import customers
from voicecf.plots import Plane, SegmentMap

columns = ["age", "visits_per_month", "basket", "job", "channel"]
df = customers().set_index("customer_id")[columns]
print(df.head(), end="\n\n")

steps = make_column_transformer(
    (StandardScaler(), ["age", "visits_per_month", "basket"]), (OneHotEncoder(), ["job", "channel"])
)
model = make_pipeline(steps, KMeans(3, n_init=10, random_state=0))
voice = VoICE(model, names=["young", "families", "retired"]).fit(df)
others = df[voice.predict(df) != 1]
cf = voice.explain(others, target="families", immutable=["age", "job"])
print(cf, end="\n\n")

landed = voice.predict(cf.to_frame()) == cf.target
pairwise = CFCLUST(model).fit(df).explain(df, target="each")
print(f"Rows with an answer: {cf.feasible.mean():.0%}")
print(f"In the target by the pipeline's own predict: {landed[cf.feasible].mean():.0%}")
print(f"Changes in an answer: {int(cf.n_changed[cf.feasible].max())} at most")
print(f"Largest relative duality gap: {abs(cf.gap[cf.feasible]).max():.0e}")
print(f"In the target by pairwise projection (CFCLUST): {pairwise.feasible.mean():.0%}")

SegmentMap.from_voice(voice, df, Plane.most_telling(cf), cf).save("demo.png")
print("Picture: demo.png, the first answer among the customers")
