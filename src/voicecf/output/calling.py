"""What clusters and rows are called in sentences, cards, maps and reasons."""

from __future__ import annotations

from collections.abc import Sequence

from voicecf.learned.learned import Learned
from voicecf.table.rows import Rows
from voicecf.table.wording import joined, legible


def cluster_name(learned: Learned, cluster: int) -> str:
    """Return what a cluster is called: the user's name for it, or "cluster 2".

    -1, which stands for one of several, is "another cluster".
    """
    return "another cluster" if cluster < 0 else legible(learned.names[cluster])


def cluster_names(learned: Learned, clusters: Sequence[int], last: str = "and") -> str:
    """Return what several clusters are called: "loyal and lapsed", or "clusters 1 and 2".

    Examples
    --------
    >>> from voicecf import VoICE
    >>> from voicecf.output.calling import cluster_names
    >>> voice = VoICE.from_centers([[0.0], [1.0], [2.0]], names={0: "loyal"})
    >>> cluster_names(voice.learned_, [0, 2]), cluster_names(voice.learned_, [1, 2])
    ('loyal and cluster 2', 'clusters 1 and 2')
    """
    if len(clusters) > 1 and not any(learned.has_name(t) for t in clusters):
        return f"clusters {joined([str(t) for t in clusters], last)}"
    return joined([cluster_name(learned, t) for t in clusters], last)


def move(learned: Learned, source: int, target: int, verb: str = "moves") -> str:
    """Say where a row goes.

    Examples
    --------
    >>> from voicecf import VoICE
    >>> from voicecf.output.calling import move
    >>> voice = VoICE.from_centers([[0.0], [1.0], [2.0]], names={0: "loyal"})
    >>> move(voice.learned_, 0, 1), move(voice.learned_, 1, 2)
    ('moves from loyal to cluster 1', 'moves from cluster 1 to 2')
    """
    end = cluster_name(learned, target)
    if source == target:
        return f"{verb} deeper into {end}"
    if not (learned.has_name(source) or learned.has_name(target)):
        end = str(target)
    return f"{verb} from {cluster_name(learned, source)} to {end}"


def row_name(rows: Rows, row: int) -> str:
    """Return what a row is called: by its id in the user's table, or by its position.

    Examples
    --------
    >>> import pandas as pd
    >>> from voicecf import VoICE
    >>> from voicecf.output.calling import row_name
    >>> voice = VoICE.from_centers([[0.0], [4.0]], feature_names=["age"])
    >>> cf = voice.explain(pd.DataFrame({"age": [1.0]}, index=["C-1017"]))
    >>> row_name(cf.outcome.rows, 0)
    'row C-1017'
    """
    if rows.own_ids is None:
        return f"row {row}"
    own = rows.own_ids[int(row)]
    return f"row {legible(', '.join(map(str, own)) if isinstance(own, tuple) else own)}"
