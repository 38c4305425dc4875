"""Start the app: on this machine only, without telemetry; sessions are kept in one folder."""

from __future__ import annotations

import importlib.util
import socket
import sys
from pathlib import Path

from voicecf.app.style import THEME

REMEDY = 'the app needs Streamlit, which is not installed: pip install "voicecf[app]"'
HOST = "localhost"
PORT = 8501
# How many ports after the first are tried before one is asked for.
TRIED = 20
LARGEST_MB = 200

OPTIONS: dict[str, str | tuple[str, ...]] = {
    "server.address": HOST,
    "server.allowedHosts": ("localhost", "127.0.0.1"),
    "server.maxUploadSize": str(LARGEST_MB),
    "server.enableXsrfProtection": "true",
    "server.fileWatcherType": "none",
    "server.showEmailPrompt": "false",
    "global.developmentMode": "false",
    "server.enableStaticServing": "false",
    "browser.gatherUsageStats": "false",
    "browser.serverAddress": HOST,
    "client.toolbarMode": "minimal",
    "client.showErrorDetails": "none",
    "client.showErrorLinks": "false",
    "runner.magicEnabled": "false",
    **THEME,
}


def launch(port: int | None = None, *, browser: bool = True) -> int:
    """Run the app until it is stopped.

    Parameters
    ----------
    port : int, optional
        Where to listen; the first free one from 8501 on if left out.
    browser : bool
        Whether to open a browser window.

    Returns
    -------
    int
        0, or 2 with a sentence on stderr if it cannot run.
    """
    if importlib.util.find_spec("streamlit") is None:
        print(f"voicecf: {REMEDY}", file=sys.stderr)
        return 2
    chosen = free_port() if port is None else port
    if chosen is None or not is_free(chosen):
        asked = f"{PORT} to {PORT + TRIED - 1} are" if chosen is None else f"{chosen} is"
        print(f"voicecf: port {asked} taken; choose another with --port.", file=sys.stderr)
        return 2
    return _run(chosen, browser)


def _run(port: int, browser: bool) -> int:
    from streamlit.web import cli

    from voicecf.app.project.store import usual_folder

    print(f"voicecf: http://{HOST}:{port}  (Ctrl-C ends it)", flush=True)
    print(f"voicecf: sessions are kept in {usual_folder()}", flush=True)
    cli.main(arguments(port, browser), standalone_mode=False)
    return 0


def arguments(port: int, browser: bool) -> list[str]:
    """Return the words that Streamlit is started with."""
    options = OPTIONS | {"server.port": str(port), "server.headless": str(not browser).lower()}
    words = ["run", str(Path(__file__).with_name("main.py"))]
    for name, value in options.items():
        words += [f"--{name}={one}" for one in ((value,) if isinstance(value, str) else value)]
    return words


def free_port() -> int | None:
    """Return the first free port from Streamlit's own on; None if there is none."""
    return next((port for port in range(PORT, PORT + TRIED) if is_free(port)), None)


def is_free(port: int) -> bool:
    """Tell whether nobody listens on a port."""
    with socket.socket() as attempt:
        attempt.settimeout(1.0)
        return attempt.connect_ex(("127.0.0.1", port)) != 0
