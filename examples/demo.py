"""Explain the wines of scikit-learn: what would put a wine into another cluster?"""

from __future__ import annotations

from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import CFCLUST, SHARK, VoICE
from voicecf.plots import Plane, SegmentMap

wines = load_wine(as_frame=True).data
voice = VoICE(make_pipeline(StandardScaler(), SHARK(n_clusters=3, random_state=42))).fit(wines)
few = voice.explain(wines, target="each", objective="prefix")
cheapest = voice.explain(wines, target="each")
kmeans = make_pipeline(StandardScaler(), KMeans(3, n_init=10, random_state=42))
pairwise = CFCLUST(kmeans).fit(wines).explain(wines, target="each")

print(few)
print()
landed = voice.predict(few.to_frame()) == few.target
print(f"Answers: {len(few)}, feasible: {few.feasible.mean():.0%}")
print(f"In the target by the pipeline's own predict: {landed.mean():.0%}")
print(f"Pairwise projection (CFCLUST) on k-means: {pairwise.feasible.mean():.0%}")
print(f"Largest relative duality gap: {max(abs(few.gap).max(), abs(cheapest.gap).max()):.0e}")

SegmentMap.from_voice(voice, wines, Plane.most_telling(few), few).save("demo.png")
print("Picture: demo.png, the first answer among the wines")
