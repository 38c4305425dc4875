"""Counterfactuals for clustering: what would have to change to be in that segment.

>>> from sklearn.cluster import KMeans
>>> from sklearn.datasets import load_wine
>>> from voicecf import VoICE
>>> X = load_wine().data
>>> cf = VoICE(KMeans(3, n_init=10, random_state=0)).fit(X).explain(X[:5])
>>> cf.feasible.all()
np.True_
"""

from voicecf.cfclust import CFCLUST
from voicecf.counterfactuals import Counterfactuals
from voicecf.edges import offer
from voicecf.geometry.cell import Cell
from voicecf.geometry.region import Region
from voicecf.rules.rules import Rules
from voicecf.saving import load
from voicecf.shark import SHARK
from voicecf.solver.projection import Projection, project
from voicecf.status import Status
from voicecf.voice import VoICE

__all__ = [
    "CFCLUST",
    "SHARK",
    "Cell",
    "Counterfactuals",
    "Projection",
    "Region",
    "Rules",
    "Status",
    "VoICE",
    "load",
    "project",
]
__version__ = "0.1.0"

offer(
    draw="voicecf.plots.drawn:drawn",
    fit_partitions="voicecf.dask:fit",
    explain_partitions="voicecf.dask:explain",
)
