"""Explain a pipeline in the columns of a table of customers: rules, alternatives, reasons."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import VoICE

rng = np.random.default_rng(7)
group = rng.integers(3, size=300)
customers = pd.DataFrame({
    "age": 24 + 13 * group + rng.integers(-5, 6, 300),
    "visits": rng.poisson(np.array([6, 3, 1])[group]),
    "income": np.round(1_700 + 800 * group + rng.normal(0, 220, 300), -1),
    "job": np.choose(group, ["student", rng.choice(["clerk", "chef"], 300), "retired"]),
})  # fmt: skip

encode = make_column_transformer(
    (StandardScaler(), ["age", "visits", "income"]), (OneHotEncoder(), ["job"])
)
segments = make_pipeline(encode, KMeans(3, n_init=10, random_state=0))
voice = VoICE(segments).fit(customers)
one = customers.head(1)
target = int((voice.predict(one)[0] + 1) % 3)

print("The cheapest change:")
print(" ", voice.explain(one, target).text(0))

print("\nThe fewest columns, and two other ways:")
for answer in voice.explain(one, target, objective="fewest", alternatives=2):
    print(f"  cost {answer.cost[0]:.3f}: {answer.text(0)}")

print("\nCost against the number of changes:")
for answer in voice.tradeoff(one, target):
    print(f"  {answer.n_changed[0]} changed: cost {answer.cost[0]:.3f}")

print("\nBy the rules, in round numbers:")
rules = {"immutable": ["age"], "steps": {"income": 50}, "bounds": {"income": ("-30%", "+30%")}}
by_rules = voice.explain(one, target, **rules)
print(" ", by_rules.text(0))
if by_rules.feasible[0]:
    print(by_rules.ranges(0).to_string(index=False))

print("\nWhy it cannot be done by a few more visits alone:")
stuck = voice.explain(
    one, target, immutable=["age", "income", "job"], bounds={"visits": (..., "+5")}
)
print(stuck.reason(0))

everyone = voice.explain(customers, target="each")
found = everyone[everyone.feasible]
landed = (voice.predict(found.to_frame()) == found.target).mean()
print(
    f"\n{len(found)} of {len(everyone)} answers exist; by predict, {landed:.0%} are in the target."
)
