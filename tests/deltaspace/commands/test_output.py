"""Output where the encoding of stdout has few characters."""

import io
import json
import sys

import pytest

from deltaspace.commands.main import main


def printed(arguments: list[str], encoding: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the output of a command, which must succeed, on a stdout of an encoding."""
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    assert main(arguments) == 0
    streams[0].flush()
    return streams[0].buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "koi8-r", "utf-8"])
def test_table_is_printed_in_every_encoding(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(["describe", "mam_adapter"], encoding, monkeypatch)
    assert "4 (relu(x_ffn" in text
    assert ("λ" if encoding == "utf-8" else "lambda") in text
    assert ("W_down: 256 x 512" if encoding in ("ascii", "koi8-r") else "W_down: 256 × 512") in text


def test_json_has_one_meaning_in_every_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [
        printed(["describe", "mam_adapter", "--json"], name, monkeypatch) for name in ("utf-8", "ascii", "cp1252")
    ]
    assert [answer.isascii() for answer in answers] == [False, True, True]
    assert json.loads(answers[0]) == json.loads(answers[1]) == json.loads(answers[2])


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_text_of_others_is_escaped_where_it_cannot_be_encoded(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stderr", stream)
    assert main(["launch", "nö→\udcff"]) == 2
    stream.flush()
    printed = stream.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
    shown = {"ascii": r"n\xf6->", "latin-1": "nö->", "utf-8": "nö→"}[encoding]
    assert f"there is no '{shown}\\udcff'" in printed
