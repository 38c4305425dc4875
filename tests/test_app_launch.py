from __future__ import annotations

import importlib.util
import socket

import pytest

from voicecf.app import launch
from voicecf.cli.command import main


def test_it_listens_here_only_and_tells_nobody() -> None:
    words = launch.arguments(9000, browser=False)
    for option in (
        "--server.address=localhost", "--server.port=9000", "--server.headless=true",
        "--browser.gatherUsageStats=false", "--server.enableXsrfProtection=true",
        "--server.maxUploadSize=200", "--client.showErrorDetails=none",
        "--server.allowedHosts=localhost",
    ):  # fmt: skip
        assert option in words


def test_streamlit_knows_every_option() -> None:
    config = pytest.importorskip("streamlit.config")
    known = config.get_config_options()
    assert [name for name in launch.OPTIONS if name not in known] == []


def test_without_streamlit_it_says_what_to_install(monkeypatch, capsys) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["app"]) == 2
    assert 'pip install "voicecf[app]"' in capsys.readouterr().err


def test_a_port_that_is_taken_is_named(capsys) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert main(["app", "--port", str(port), "--no-browser"]) == 2
    assert f"port {port} is taken" in capsys.readouterr().err


def test_a_port_that_is_none_is_refused(capsys) -> None:
    with pytest.raises(SystemExit):
        main(["app", "--port", "70000"])
    assert "use a number from 1 to 65535" in capsys.readouterr().err
