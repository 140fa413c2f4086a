"""Bad inputs to every command: exact message, exit code 2, one line, nothing on stdout."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from scale import tries

from cmm.grammar.errors import CmmError
from cmm.runtime.cli import main
from cmm.runtime.files import write_whole
from cmm.runtime.journal import Journal

F = {"name": "f", "parameters": {"n": {"type": "string"}}}
DEEP = 100_000
DENIED = "closed.json: cannot be read: Permission denied"

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
    "deep_schema.json": [{"name": "f", "parameters": {"n": json.loads('{"items":' * 700 + "{}" + "}" * 700)}}],
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
    "utf32.json": "[]".encode("utf-32"),
    "utf16_bare.json": '[{"prompt": "é"}]'.encode("utf-16-le"),
    "cut_utf8.json": b'["\xc3',
    "overlong.json": b'["\xc0\xaf"]',
    "trailing.json": b'[{"name": "f", "parameters": {}},\n]',
    "double.json": b'[{"name": "f", "parameters": {},, "returns": {}}]',
    "unquoted.json": b'[{name: "f"}]',
    "colon.json": b'[\n  {"prompt" "Hi"}\n]',
    "equals.json": b'[{"name" = "f"}]',
    "closed.json": b'[{"name": "f"]}',
    "more.json": b'[]]',
    "hex.json": b'[0x10]',
    "zero.json": b'[01]',
    "plus.json": b'[+1]',
    "point.json": b'[.5]',
    "python.json": b'[{"name": "f", "parameters": None}]',
    "newline.json": b'["a\nb"]',
    "escape.json": rb'["\x41"]',
    "short_escape.json": rb'["\u12"]',
    "open.json": b'["Hi]',
    "yaml.json": b'- name: f\n  parameters: {}\n',
    "digits.json": b"[" + b"9" * 5000 + b"]",
    "nothing.json": [{}],
    "null_name.json": [{"name": None, "parameters": {}}],
    "list_description.json": [{"name": "f", "description": ["d"], "parameters": {}}],
    "number_description.json": [{"name": "f", "description": 12345, "parameters": {}}],
    "null_parameters.json": [{"name": "f", "parameters": None}],
    "text_required.json": [{**F, "required": "n"}],
    "numbers_required.json": [{**F, "required": [1]}],
    "unknown_required.json": [{**F, "required": ["m"]}],
    "array_parameters.json": [{"name": "f", "parameters": {"type": "array", "items": {}}}],
    "no_args_types.json": [{"fn_name": "f", "args_names": ["a", "b"], "args_types": {"a": "int"}}],
    "nested_word.json": [{"name": "f", "parameters": {"n": {"type": "array", "items": {"type": "text"}}}}],
    "types_word.json": [{"name": "f", "parameters": {"n": {"type": ["string", "nul"]}}}],
    "no_tools.json": {"tools": []},
    "text_tools.json": {"tools": "f"},
    "number_tool.json": {"tools": [F, 3]},
    "wrapped.json": [{"type": "function", "function": {"description": "d"}}],
    "mcp.json": {"tools": [{"name": "f", "inputSchema": "n"}]},
    "deep_description.json": [{"name": "f", "parameters": {"n": {"type": "string", "examples": json.loads("[" * 200 + "]" * 200)}}}],
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
TABLE: dict[str, list[tuple[Any, str]]] = json.loads(
    (Path(__file__).parent.parent / "data" / "bad_inputs.json").read_text(encoding="utf-8")
)
# How each command is given a file of functions, of requests, of calls; and any file with JSON in it.
OF_FUNCTIONS = {
    "run": ["--input", "prompts.json", "--functions_definition", "FILE"],
    "call": ["Hi", "--functions", "FILE"],
    "compile": ["FILE"],
    "check": ["FILE"],
    "match": ["FILE", "prompts.json"],
    "show": ["FILE"],
    "explain": ["Hi", "--functions", "FILE"],
    "prove": ["FILE"],
}
OTHERS = [
    ["run", "--input", "FILE"],
    ["run", "--prompts_config", "FILE"],
    ["compile", "--schema", "FILE"],
    ["show", "--schema", "FILE"],
    ["grade", "FILE"],
    ["grade", "list.json", "FILE"],
    ["grade", "list.json", "--functions", "FILE"],
]
WAYS = [[command, *arguments] for command, arguments in OF_FUNCTIONS.items()]


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


def outcome(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command."""
    code = main(arguments)
    return code, *capsys.readouterr()


def others_than_told(
    way: list[str], rows: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> list[Any]:
    """The rows of a table of which a command says anything else than stands there."""
    found = {
        file: (outcome([file if word == "FILE" else word for word in way], capsys), message)
        for file, message in rows
    }
    return [
        (file, got) for file, (got, message) in found.items() if got != (2, "", f"cmm: {message}\n")
    ]


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("way", [*WAYS, *OTHERS], ids=" ".join)
def test_files_that_are_no_json(way: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    rows = TABLE["of any JSON file"]
    if way[0] == "compile" and "--schema" not in way:  # which takes folders
        rows = [row for row in rows if row[0] != "folder"]
    assert others_than_told(way, rows, capsys) == []


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("way", WAYS, ids=" ".join)
def test_files_that_hold_no_functions(way: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert others_than_told(way, TABLE["of functions"], capsys) == []


@pytest.mark.usefixtures("here")
def test_files_that_hold_no_requests(capsys: pytest.CaptureFixture[str]) -> None:
    assert others_than_told(["run", "--input", "FILE"], TABLE["of prompts"], capsys) == []


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("arguments", "message"), TABLE["of one command"], ids=lambda value: " ".join(value)[:60]
)
def test_what_one_command_refuses(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert outcome(arguments, capsys) == (2, "", f"cmm: {message}\n")


def test_the_tables_are_long() -> None:
    """Sixty bad inputs to each command that reads functions, and to the others what they can meet."""
    kinds = {kind: len(rows) for kind, rows in TABLE.items()}
    assert kinds["of any JSON file"] + kinds["of functions"] >= 75
    assert kinds["of prompts"] >= 10
    assert kinds["of one command"] >= 30


@pytest.fixture
def nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of a user who is not root: root may read everything."""
    if os.geteuid() != 0:
        yield tmp_path_factory.mktemp("mine")
        return
    with tempfile.TemporaryDirectory() as made:  # the others lie where root alone may look
        os.chown(made, 65534, 65534)
        os.seteuid(65534)
        try:
            yield Path(made)
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("way", [*WAYS, *OTHERS], ids=" ".join)
def test_a_file_without_permission(
    way: list[str],
    nobody: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(nobody)
    for name, content in (("closed.json", "[]"), ("prompts.json", "[]"), ("list.json", "[]")):
        Path(name).write_text(content)
    Path("closed.json").chmod(0)
    assert others_than_told(way, [("closed.json", DENIED)], capsys) == []


@pytest.mark.parametrize("output", ["closed/calls.json", "closed/new/calls.json"])
def test_a_folder_without_permission(
    output: str,
    nobody: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Said before anything is computed."""
    monkeypatch.chdir(nobody)
    Path("closed").mkdir(mode=0o555)
    Path("good.json").write_text(json.dumps([F]))
    way = ["run", "--functions_definition", "good.json", "--output", output]
    code, out, err = outcome(way, capsys)
    assert (code, out) == (2, "")
    assert err in (
        "cmm: closed: the folder cannot be written to\n",
        "cmm: closed/new: the folder cannot be made: Permission denied\n",
    )


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


CALL = {"prompt": "a", "name": "f", "parameters": {}}


def test_a_full_disk_stops_the_journal(tmp_path: Path) -> None:
    """What was written before is whole; the next run goes on after it."""
    about = {"functions": [], "prompts": ""}
    journal = Journal(tmp_path / "j", about)
    journal.add(0, CALL)
    whole = journal._file
    journal._file = cast(Any, Full(whole))
    with pytest.raises(CmmError, match="j: cannot be written: No space left on device"):
        journal.add(1, CALL)
    whole.close()
    again = Journal(tmp_path / "j", about)
    assert list(again) == [CALL]
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
    "thousands of parameters": (
        [{"name": "f", "parameters": {f"p{i}": {"type": "integer"} for i in range(tries(2_000))}}],
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


@pytest.mark.parametrize(
    ("content", "code", "out", "err"),
    [
        (json.dumps([F]), 0, "pipe: f: supported", ""),
        ("[1 2]", 2, "", "cmm: pipe @ line 1 column 4: broken JSON: expecting ',' delimiter\n"),
        ("", 2, "", "cmm: pipe: is empty (expected a JSON value)\n"),
    ],
)
def test_functions_from_a_pipe(
    content: str,
    code: int,
    out: str,
    err: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    writer = threading.Thread(target=lambda: Path("pipe").write_text(content))
    writer.start()
    assert main(["check", "pipe"]) == code
    writer.join()
    found = capsys.readouterr()
    assert found.out.startswith(out)
    assert found.err == err


@pytest.mark.parametrize("way", [["check"], ["compile", "--show", "automaton", "--schema"]])
def test_a_schema_nested_too_deeply_is_refused(
    way: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Looking it over needs more calls than Python gives by default, as compiling it does."""
    path = tmp_path / "deep.json"
    path.write_text('{"items":' * 700 + "{}" + "}" * 700)
    code, out, err = outcome([*way, str(path)], capsys)
    assert code in (1, 2)
    assert "is nested too deeply" in out + err


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB, where one may be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(journal: Journal) -> None:
    for number in range(100):
        journal.add(number, {**CALL, "prompt": "x" * 1_000})


def test_a_disk_that_is_really_full(small_disk: Path) -> None:
    """The old output and the journal's whole lines are left; nothing half written stays."""
    path = small_disk / "calls.json"
    path.write_text("old")
    with pytest.raises(CmmError, match=r"calls\.json: cannot be written: No space left on device"):
        write_whole(path, ["x" * 100_000])
    assert os.listdir(small_disk) == ["calls.json"]
    about = {"functions": [], "prompts": ""}
    journal = Journal(small_disk / "j", about)
    with pytest.raises(CmmError, match="j: cannot be written: No space left on device"):
        fill(journal)
    journal.close()
    again = Journal(small_disk / "j", about)
    assert 0 < len(list(again)) < 100
    again.remove()
    assert path.read_text() == "old"
