"""Hostile files are refused in words, or loaded as what they are, within little memory."""

from __future__ import annotations

import tracemalloc

import pytest
import skops.io

from hostile import TABLE, Hostile
from voicecf import VoICE, load
from voicecf.errors import SavingError

# Files that take long to make or to read; the rest is some three hundred.
SLOW = (
    "39000",
    "3000000 ",
    "14000000",
    "60000000",
    "134217728",
    "every type",
    "190 x",
    "Decimal 9",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder for the good file."""
    return tmp_path_factory.mktemp("good")


@pytest.fixture(scope="module")
def files(folder):
    return Hostile(folder)


def test_hundreds_of_hostile_files_are_refused_in_words_or_answer_as_before(
    files, folder, tmp_path
):
    rows = TABLE[:4]
    before = load(folder / "good.voicecf").explain(rows, limit=20).points.tobytes()
    count = 0
    for name, content in files.chosen(lambda name: not any(word in name for word in SLOW)):
        count += 1
        path = tmp_path / "hostile.voicecf"
        path.write_bytes(content)
        try:
            loaded, refusal = load(path, expected=VoICE), ""
        except SavingError as error:
            loaded, refusal = None, str(error)
        if loaded is None:
            assert len(refusal.partition(": ")[2]) > 20, name
            assert "MemoryError" not in refusal, name
        else:
            assert loaded.explain(rows, limit=20).points.tobytes() == before, name
    assert count > 300


@pytest.mark.parametrize("word", [
    "60000 of", "300 x", "key of 5000 over 1000000 []", "too long", "100000000,)", "<U1000000000",
    "1000000000)", "times 1 MB", "80000000 bytes", "5000 members", "say 2147483648", "not sealed",
])  # fmt: skip
def test_what_asks_for_too_much_is_refused_before_anything_is_made_of_it(
    word, files, tmp_path, monkeypatch
):
    monkeypatch.setattr(skops.io, "load", lambda *_, **__: pytest.fail("skops was asked"))
    path = tmp_path / "hostile.voicecf"
    found = 0
    for _, content in files.chosen(lambda name: word in name):
        found += 1
        path.write_bytes(content)
        size, content = len(content), b""
        tracemalloc.start()
        try:
            with pytest.raises(SavingError, match="cannot load"):
                load(path)
            assert tracemalloc.get_traced_memory()[1] < 5 * size + (200 << 20)
        finally:
            tracemalloc.stop()
    assert found > 0
