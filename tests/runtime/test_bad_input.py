"""Bad inputs to every command: exact message, exit code 2, one line, nothing on stdout."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any, cast

import pytest

from cmm.grammar.errors import CmmError
from cmm.runtime.cli import main
from cmm.runtime.files import write_whole
from cmm.runtime.journal import Journal

F = {"name": "f", "parameters": {"n": {"type": "string"}}}
DEEP = 100_000

# name -> content; bytes as they are, else JSON
FILES: dict[str, Any] = {
    "good.json": [F],
    "prompts.json": ["Hi"],
    "broken.json": b"[1, }",
    "cut.json": b'[{"name": "f"',
    "empty.json": b"",
    "blank.json": b" \r\n\t ",
    "bom.json": b"\xef\xbb\xbf[1]",
    "utf16.json": '[{"prompt": "é"}]'.encode("utf-16"),
    "latin.json": '["\né"]'.encode("latin-1"),
    "nul.json": b'["a\0b"]',
    "two.json": b"[1]\n[2]",
    "single.json": b"['Hi']",
    "comment.json": b"// no\n[]",
    "nan.json": b'[{"prompt": "NaN"},\n {"prompt": NaN}]',
    "infinity.json": b"[-Infinity]",
    "repeated.json": b'[{"prompt": "a",\n  "prompt": "b"}]',
    "deep.json": b"[" * DEEP + b"]" * DEEP,
    "deep_object.json": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "zeros.json": b"[" + b"0," * 9_999_999 + b"0]",
    "large.json": None,  # 200 MB, most of it a hole
    "list.json": [],
    "object.json": {},
    "string.json": "Hi",
    "null.json": None,
    "number.json": ["Hi", {"prompt": 3}],
    "none.json": [{"prompt": None}],
    "nested.json": [["Hi"]],
    "keyless.json": [{"text": "Hi"}],
    "surrogate.json": b'["\\ud800"]',
    "lines.jsonl": b'"Hi"\n{"prompt": 3}\n',
    "torn.jsonl": b'"Hi"\n\n{"prompt": "x"\n',
    "nan.jsonl": b'{"prompt": NaN}\n',
    "utf16.jsonl": '"é"\n'.encode("utf-16"),
    "nameless.json": [{"description": "d", "parameters": {}}],
    "blank_name.json": [{"name": "", "parameters": {}}],
    "number_name.json": [{"name": 3, "parameters": {}}],
    "no_parameters.json": [F, {"name": "g"}],
    "word_type.json": [{"name": "f", "parameters": {"n": {"type": "strang"}}}],
    "number_type.json": [{"name": "f", "parameters": {"n": {"type": 3}}}],
    "text_parameters.json": [{"name": "f", "parameters": "n"}],
    "list_parameters.json": [{"name": "f", "parameters": ["n"]}],
    "number_parameter.json": [{"name": "f", "parameters": {"n": 3}}],
    "twice.json": [F, {"name": "f", "parameters": {}}],
    "required.json": [{"name": "f", "parameters": {"type": "object", "properties": {}, "required": ["x"]}}],
    "contradiction.json": [{"name": "f", "parameters": {"n": {"type": "string", "minLength": 2, "maxLength": 1}}}],
    "unsupported.json": [{"name": "f", "parameters": {"n": {"$ref": "https://x.y/z"}}}],
    "pattern.json": [{"name": "f", "parameters": {"n": {"type": "string", "pattern": "(a"}}}],
    "schema.json": {"type": "strang"},
    "config.json": {"name": 3},
    "typo.json": {"name": "x", "sytem": ""},
    "fake.gguf": b"no model",
    "cut.gguf": b"GGUF\x03\0\0\0" + b"\x01" * 8,
    "model.bin": b"x",
}  # fmt: skip
RUN, FUNCTIONS = ["run", "--input"], ["run", "--functions_definition"]
MATCH, SCHEMA = ["match", "good.json"], ["compile", "--schema"]

EXPECTED = Path(__file__).parent.parent / "data" / "bad_inputs.json"
ROWS: list[tuple[list[str], str]] = [
    (row["arguments"], row["message"]) for row in json.loads(EXPECTED.read_text(encoding="utf-8"))
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bad")
    for name, content in FILES.items():
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (made / name).write_bytes(data)
    os.truncate(made / "large.json", 200_000_000)
    (made / "dangling.json").symlink_to("nowhere.json")
    (made / "folder").mkdir()
    (made / "weightless").mkdir()
    for name in ("config.json", "tokenizer.json"):
        (made / "weightless" / name).write_text("{}")
    return made


@pytest.mark.parametrize(("arguments", "message"), ROWS, ids=lambda value: " ".join(value)[:60])
def test_bad_input(
    arguments: list[str],
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"cmm: {message}\n"


def test_the_table_is_long() -> None:
    assert len({tuple(arguments) for arguments, _ in ROWS}) >= 60
    assert {arguments[0] for arguments, _ in ROWS} >= {"run", "call", "compile", "match", "check", "models"}  # fmt: skip


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("option", ["--input", "--functions_definition"])
def test_a_file_without_permission(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "closed.json"
    path.write_text("[]")
    path.chmod(0)
    assert main(["run", option, str(path)]) == 2
    assert capsys.readouterr().err == f"cmm: {path}: cannot be read: Permission denied\n"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_output(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "calls.json"
    path.write_text("old")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(CmmError, match="cannot be written: No space left on device"):
        write_whole(path, ["new"])
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["calls.json"]


def test_a_full_disk_stops_the_journal(tmp_path: Path) -> None:
    """What was written before is whole; the next run goes on after it."""
    about = {"functions": [], "prompts": ""}
    journal = Journal(tmp_path / "j", about)
    journal.add(0, {"prompt": "a"})
    whole = journal._file
    journal._file = cast(Any, Full(whole))
    with pytest.raises(CmmError, match="j: cannot be written: No space left on device"):
        journal.add(1, {"prompt": "b"})
    whole.close()
    again = Journal(tmp_path / "j", about)
    assert list(again) == [{"prompt": "a"}]
    again.remove()


class Full:
    """A file of a disk on which half of the next write still fits."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, data: bytes) -> None:
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        raise OSError(errno.ENOSPC, "No space left on device")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


BIG: dict[str, tuple[Any, str]] = {
    "500 parameters": (
        [{"name": "f", "parameters": {f"p{i}": {"type": "integer"} for i in range(500)}}],
        "f: supported",
    ),
    "a description of 1 MB": (
        [{"name": "f", "description": "x" * 1_000_000, "parameters": {}}],
        "f: supported",
    ),
    "a name of 10,000 letters": ([{"name": "f" * 10_000, "parameters": {}}], "supported"),
}


@pytest.mark.parametrize("name", BIG)
def test_large_definitions_are_answered_or_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content, part = BIG[name]
    path = tmp_path / "big.json"
    path.write_text(json.dumps(content))
    assert main(["check", str(path)]) in (0, 1)
    assert part in capsys.readouterr().out
