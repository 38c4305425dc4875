"""Settings of all tests, made before NumPy and scikit-learn are imported."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_limits

# One thread a worker: two workers share the cores already, and threads of OpenMP wait in a loop.
# The variables are for processes that are started; without workers, pytest has imported voicecf,
# and NumPy with it, before this file, to know the warnings that pyproject.toml names.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
threadpool_limits(int(os.environ["OMP_NUM_THREADS"]))

# What the app keeps is no business of the user's own folder, and no test sees that of another.
if "VOICECF_PROJECTS" not in os.environ:
    os.environ["VOICECF_PROJECTS"] = tempfile.mkdtemp(prefix="voicecf-tests-")
    atexit.register(shutil.rmtree, os.environ["VOICECF_PROJECTS"], ignore_errors=True)


# A browser before the running app.


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the user who starts the app."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def address(home: Path) -> Iterator[str]:
    """The app, started once for all visitors: each has work of their own."""
    from app_server import running_app

    with running_app(home) as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for a file of tests: its event loop is not to run beside other tests."""
    from app_server import ARGUMENTS, browser_path

    path = browser_path()
    if path is None and not os.environ.get("CI"):
        pytest.skip(
            "no browser on this machine, so the app is not tested in one: install chromium, or set "
            "VOICECF_BROWSER to the path of a Chromium or Chrome."
        )
    assert path is not None, "CI is to have a browser; .ci/run installs one"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=list(ARGUMENTS))
        yield launched
        launched.close()


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where pictures of pages go."""
    folder = Path(os.environ.get("VOICECF_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def visit(browser: Any, address: str, shots: Path, request: Any) -> Iterator[Any]:
    """A visitor who has just opened the app; a parameter has options of the browser.

    With ``AT_HOME = False`` in a file, visitors come with an empty page and open another first.
    """
    from app_server import SIZE, Visit

    options = {"viewport": SIZE, "color_scheme": "light", **getattr(request, "param", {})}
    context = browser.new_context(**options)
    at_home = getattr(request.module, "AT_HOME", True)
    found = Visit(context.new_page(), address, shots, at_home)
    yield found
    context.close()
    assert found.problems == []
