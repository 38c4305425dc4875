"""The running app and a real browser before it, for tests that click."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
# Milliseconds until a page is given up; long, since a busy machine may take its time.
PATIENCE = 180_000
# Headings of pages that are not their names in the navigation.
HEADINGS = {"Data": "What would have to change?", "One row": "What would move this row?"}
SIZE = {"width": 1440, "height": 900}


def browser_path() -> str | None:
    """Find a browser: the one that VOICECF_BROWSER names, or one on the path."""
    named = os.environ.get("VOICECF_BROWSER")
    return named or next((path for name in BROWSERS if (path := shutil.which(name))), None)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def running_app(home: Path) -> Iterator[str]:
    """Start the app as its user does, with a home of its own; yields its address."""
    port = free_port()
    words = [sys.executable, "-m", "voicecf", "app", "--port", str(port), "--no-browser"]
    environment = {**os.environ, "HOME": str(home), "VOICECF_PROJECTS": str(home / "projects")}
    with (home / "server.log").open("wb") as log:
        server = subprocess.Popen(words, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        address = f"http://localhost:{port}"
        _wait_for(f"{address}/_stcore/health", server)
        yield address
    finally:
        server.terminate()
        server.wait()


def _wait_for(address: str, server: subprocess.Popen[bytes]) -> None:
    while server.poll() is None:
        try:
            with urllib.request.urlopen(address):
                return
        except OSError:
            time.sleep(0.25)
    raise RuntimeError(f"the app ended with {server.returncode} before it answered")


class Visit:
    """One visitor: a page of the browser, what went wrong on it, and how often it was clicked."""

    def __init__(self, page: Any, address: str, shots: Path, at_home: bool = True) -> None:
        self.page, self.address, self.shots = page, address, shots
        self.clicks = 0
        self.problems: list[str] = []
        page.set_default_timeout(PATIENCE)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("request", self._asked)
        if at_home:
            page.goto(address)
            self.settle()

    def _heard(self, message: Any) -> None:
        # On a deep link, Streamlit looks for its server below the page's name first.
        if message.type == "error" and "/_stcore/" not in message.location["url"]:
            self.problems.append(f"console: {message.text} {message.location['url']}")

    def _asked(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:", "about:")):
            self.problems.append(f"a request to {request.url}")

    def settle(self, patience: float = PATIENCE) -> None:
        """Wait until the page has answered."""
        app = self.page.locator(".stApp")
        app.wait_for(timeout=patience)
        self.page.wait_for_timeout(120)
        self.page.wait_for_selector('.stApp[data-test-script-state="notRunning"]', timeout=patience)
        self.page.wait_for_timeout(60)

    def click(self, target: Any, patience: float = PATIENCE) -> None:
        """Click once, and wait for the answer."""
        target.click(timeout=patience)
        self.clicks += 1
        self.settle(patience)

    def button(self, name: str) -> Any:
        return self.page.get_by_role("button", name=name, exact=True).first

    def open(self, title: str) -> None:
        """Go to a page by the navigation; a click while the last page still draws may get lost."""
        from playwright.sync_api import TimeoutError as TookTooLong

        heading = self.page.locator("h1").filter(has_text=HEADINGS.get(title, title))
        for patience in (5_000, 10_000, PATIENCE):
            self.click(self.page.get_by_role("link", name=title, exact=True).first)
            with suppress(TookTooLong):
                heading.first.wait_for(timeout=patience)
                return
        raise AssertionError(f"the page {title} does not open")

    def upload(self, name: str, content: bytes) -> None:
        self.settle()
        field = self.page.locator('input[type="file"]')
        for _ in range(50):  # the last one stays until the page is drawn
            if field.count() == 1:
                break
            self.page.wait_for_timeout(100)
        field.last.set_input_files({"name": name, "mimeType": "text/csv", "buffer": content})
        self.page.locator(".v-table-name, .v-no .v-lead").first.wait_for()
        self.settle()

    def example(self, name: str = "customers") -> None:
        """Begin with an example."""
        self.click(self.button(f"Use {name}"))
        self.page.locator(".v-table-name").first.wait_for()

    def choose(self, label: str, option: str) -> None:
        """Choose an option of a selection, by typing."""
        box = self.page.get_by_role("combobox", name=label)
        box.first.click()
        box.first.fill(option)
        self.page.get_by_role("option", name=option, exact=True).first.click()
        self.page.keyboard.press("Escape")
        self.settle()

    def see(self, text: str, patience: float = PATIENCE) -> None:
        """Wait until the page says something."""
        said = self.page.locator('[data-testid="stMain"]').get_by_text(text)
        said.first.wait_for(timeout=patience)

    def text(self) -> str:
        return str(self.page.locator('[data-testid="stMain"]').inner_text())

    def answer(self) -> str:
        """Return the sentence of the answer."""
        return str(self.page.locator(".v-card .v-lead").first.inner_text())

    def download(self, name: str) -> bytes:
        """Click until a file comes: it is made then, and a page that draws itself anew drops it."""
        from playwright.sync_api import TimeoutError as TookTooLong

        self.settle()
        for patience in (20_000, PATIENCE):
            with suppress(TookTooLong):
                with self.page.expect_download(timeout=patience) as waiting:
                    self.button(name).click()
                return Path(waiting.value.path()).read_bytes()
        raise AssertionError(f"nothing comes of a click on {name}")

    def shoot(self, name: str) -> None:
        """Take a picture of the whole page."""
        aside = self.page.locator('[data-testid="stSidebarCollapseButton"] button')
        if aside.count() and aside.first.is_visible():
            aside.first.click()
        self.page.evaluate("document.activeElement?.blur()")
        tall = self.page.evaluate("document.querySelector('[data-testid=stMain]').scrollHeight")
        width = self.page.viewport_size["width"]
        self.page.set_viewport_size({"width": width, "height": max(900, min(int(tall), 2600))})
        self.page.wait_for_timeout(500)
        self.page.screenshot(path=str(self.shots / f"{name}.png"))
        self.page.set_viewport_size({"width": width, "height": 900})
