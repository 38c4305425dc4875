"""Settings of all tests, made before NumPy and scikit-learn are imported."""

from __future__ import annotations

import os

# One thread a worker: two workers share the cores already, and threads of OpenMP wait in a loop.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
