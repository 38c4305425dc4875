"""Explain the wines of scikit-learn: what would put a wine into another cluster?"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from voicecf import CFCLUST, SHARK, VoICE

wines = load_wine(as_frame=True).data
X = StandardScaler().set_output(transform="pandas").fit_transform(wines)

voice = VoICE(SHARK(n_clusters=3, random_state=42)).fit(X)
few = voice.explain(X, target="each", objective="prefix")
all_of_them = voice.explain(X, target="each")
pairwise = CFCLUST(KMeans(3, n_init=10, random_state=42)).fit(X).explain(X, target="each")

print(few)
print()
landed = voice.predict(few.to_frame()) == few.target
print(f"Answers: {len(few)}, feasible: {few.feasible.mean():.0%}")
print(f"In the target by the model's own predict: {landed.mean():.0%}")
print(f"Pairwise projection (CFCLUST) on k-means: {pairwise.feasible.mean():.0%}")
print(f"Largest relative duality gap: {max(abs(few.gap).max(), abs(all_of_them.gap).max()):.0e}")

figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
bins = np.arange(1, X.shape[1] + 2) - 0.5
axes.hist(few.n_changed, bins, label="shortest ranked prefix", color="#1b6ca8")
axes.hist(all_of_them.n_changed, bins, label="least cost", histtype="step", color="#222222", lw=2)
axes.set(
    xlabel="columns that change", ylabel="answers", title="How many columns a wine has to change"
)
axes.legend(frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("demo.png", dpi=120)
print("Picture: demo.png")
