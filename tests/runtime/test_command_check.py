"""`cmm check`: what is said of functions and schemas, in text and JSON, and the exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runtime_doubles import tiny_tokenizer

from cmm.runtime import command_check
from cmm.runtime.cli import main
from cmm.runtime.resolve import ModelPlace

FUNCTIONS = [
    {"name": "f", "parameters": {"n": {"type": "int"}}},
    {"name": "g", "parameters": {"type": "object", "properties": {
        "a": {"type": "array", "disallow": []}}}},
]  # fmt: skip

# (content, exit code, what stdout says)
CASES = [
    ({"type": "integer"}, 0, ["supported", "states"]),
    (FUNCTIONS[:1], 0, ["file.json: f: supported"]),
    (FUNCTIONS, 1, ["f: supported", "g: refused", "/properties/a/disallow"]),
    ({"tools": FUNCTIONS[:1]}, 0, ["f: supported"]),
    ({"title": "T", "shade": 1, "format": "x"}, 0,
     ["ignored /shade: unknown keyword", "ignored /format: unknown format", "annotations: title 1"]),
    ({"type": "strong"}, 2, ["wrong: /type: there is no type"]),
    ({"type": "string", "minLength": 2, "maxLength": 1}, 2, ["wrong", "no value"]),
    (False, 2, ["no value"]),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CMM_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.parametrize(("content", "code", "parts"), CASES)
def test_check(
    content: object, code: int, parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file.json").write_text(json.dumps(content))
    assert main(["check", "file.json"]) == code
    out, err = capsys.readouterr()
    assert err == ""
    for part in parts:
        assert part in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file.json").write_text(json.dumps(FUNCTIONS))
    assert main(["check", "file.json", "--json"]) == 1
    first, second = json.loads(capsys.readouterr().out)
    assert (first["name"], first["refused"]) == ("f", [])
    assert first["states"] > 0
    assert first["table_bytes"] is None
    assert second["refused"][0]["keyword"] == "disallow"
    assert second["states"] is None


def test_tables_of_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_tokenizer().save(str(tmp_path / "tokenizer.json"))
    place = ModelPlace("tiny", tmp_path)
    monkeypatch.setattr(command_check, "find_model", lambda model, tokenizer_only: place)
    Path("file.json").write_text(json.dumps(FUNCTIONS[:1]))
    assert main(["check", "file.json", "--json", "--model", "tiny"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert found["table_bytes"] > 0


def test_wrong_files(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "nowhere.json"]) == 2
    assert "nowhere.json: there is no such file" in capsys.readouterr().err
