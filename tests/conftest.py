"""Settings of all tests, made before NumPy and scikit-learn are imported."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

# One thread a worker: two workers share the cores already, and threads of OpenMP wait in a loop.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# What the app keeps is no business of the user's own folder, and no test sees that of another.
if "VOICECF_PROJECTS" not in os.environ:
    os.environ["VOICECF_PROJECTS"] = tempfile.mkdtemp(prefix="voicecf-tests-")
    atexit.register(shutil.rmtree, os.environ["VOICECF_PROJECTS"], ignore_errors=True)
