"""Compile everything once, in the background, while the user looks at the first page."""

from __future__ import annotations

import warnings
from threading import Event, Lock, Thread

import numpy as np
import pandas as pd

from voicecf import CFCLUST

MESSAGE = "Getting ready: the solver is compiled for this machine, once. It takes about a minute."


class Warming:
    """Work that has to be done once before answers come at once.

    Attributes
    ----------
    ready : threading.Event
        Set when it is done, or when it failed: then the first answers take longer, no more.
    """

    def __init__(self) -> None:
        self.ready = Event()
        self._lock = Lock()
        self._thread: Thread | None = None

    def start(self) -> None:
        """Begin, unless somebody did."""
        with self._lock:
            if self._thread is None:
                self._thread = Thread(target=self._run, name="voicecf-warming", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        try:
            warm_up()
        finally:
            self.ready.set()


WARMING = Warming()


def warm_up() -> None:
    """Answer one small question of every kind."""
    from voicecf.app import answers, segments
    from voicecf.app.columns import guess_columns
    from voicecf.app.preparing import Method, prepare
    from voicecf.app.question import Allowed, Objective, Question

    rng = np.random.default_rng(0)
    group = np.arange(60) % 3
    numbers = pd.DataFrame({f"x{i}": 4.0 * group * (i == 0) + rng.random(60) for i in range(3)})
    mixed = numbers.assign(n=group + rng.integers(3, size=60), c=np.array(list("uvw"))[group])
    for frame in (numbers, mixed):
        prepared = prepare(frame, guess_columns(frame))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            methods = [segments.fit_segments(prepared, 3, method) for method in Method]
        for fitted in methods:
            names = segments.usual_names(3)
            for objective in Objective:
                answers.alternatives(answers.answer(fitted, Question(0, None, objective), names))
        kmeans = methods[0]
        locked = Question(0, 1, allowed=Allowed(locked=tuple(prepared.names)))
        answers.obstacle(answers.answer(kmeans, locked, names))
        kmeans.voice.explain(prepared.frame, target="each")
    CFCLUST(kmeans.model[-1]).fit(kmeans.model[:-1].transform(prepared.frame))
