"""Draw what an answer changes, where it lies, and what its clustering is like.

Writes the pictures into the folder that is named, or into this one: `python examples/plots.py docs`
makes those of the README.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import SHARK, VoICE
from voicecf.plots import (
    ChangeCard,
    ContractionScores,
    Plane,
    SegmentMap,
    Transitions,
    Weights,
)

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
wines = load_wine(as_frame=True).data

# One wine and its answer, in two columns and as a card.
two = ["flavanoids", "color_intensity"]
pairs = VoICE(make_pipeline(StandardScaler(), KMeans(4, n_init=10, random_state=0))).fit(wines[two])
answers = pairs.explain(wines[two], target="each")
i = 39
picture = SegmentMap.from_voice(pairs, wines[two], Plane.most_telling(answers, i), answers, i)
picture.save(folder / "map.png", dpi=110)
print(picture.title, "-", picture.note)

six = wines[["alcohol", "malic_acid", "flavanoids", "color_intensity", "hue", "proline"]]
voice = VoICE(make_pipeline(StandardScaler(), SHARK(3, random_state=42))).fit(six)
every = voice.explain(six, target="each")
card = ChangeCard.from_counterfactuals(every, 1)
card.save(folder / "card.png", dpi=110)
print(card.title, card.subtitle)
print(card.table()[["column", "from", "to", "low", "high"]].round(2).to_string(index=False))

# A cell and its contraction, as the paper draws them: the smallest copy that keeps all members.
tight = VoICE(pairs.model, retain=0.9).fit(wines[two])
inner = tight.explain(wines[two], target=int(answers.target[i]))
plane = Plane.of_columns(tight, wines[two].iloc[[0]], *two, name="row 0")
SegmentMap.from_voice(tight, wines[two], plane, inner, 0).save(folder / "contraction.png")

# The clustering as a whole.
moves = Transitions.from_counterfactuals(every)
moves.save(folder / "transitions.png", what="cost", names=["light", "strong", "full"])
moves.save(folder / "columns.png", what="columns", names=["light", "strong", "full"])
Weights.from_voice(voice).save(folder / "weights.png", theme="dark")
ContractionScores.from_voice(voice, six).save(folder / "scores.png")
print(f"Pictures: {', '.join(sorted(p.name for p in folder.glob('*.png')))}")
