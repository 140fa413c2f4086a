"""`cmm cache` and what fills it: folders of function files, tables run without them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from runtime_doubles import tiny_tokenizer

from cmm.compiler.artifact import FORMAT, HEADER, read_arrays, write_arrays
from cmm.compiler.cache import cache_dir, cached_files, make_room
from cmm.compiler.store import about_file
from cmm.grammar import InvalidInput
from cmm.runtime import command_compile
from cmm.runtime.cli import main
from cmm.runtime.resolve import ModelPlace

FUNCTIONS = [{"name": "greet", "description": "Greets", "parameters": {"name": "string"}}]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "sets"
    folder.mkdir()
    for name, text in {"a.json": FUNCTIONS, "b.json": [{**FUNCTIONS[0], "name": "b"}]}.items():
        (folder / name).write_text(json.dumps(text))
    tiny_tokenizer().save(str(tmp_path / "tokenizer.json"))
    place = ModelPlace("tiny", tmp_path)
    monkeypatch.setattr(command_compile, "find_model", lambda model, tokenizer_only: place)


def test_a_folder_of_function_files_is_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "sets"]) == 0
    out, err = capsys.readouterr()
    assert [line.split(": ")[0] for line in out.splitlines()] == ["sets/a.json", "sets/b.json"]
    assert all(Path(line.split(": ")[1]).is_file() for line in out.splitlines())
    assert "2 of 2 compiled" in err


def test_a_file_that_is_refused_stops_none_of_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("sets/a.json").write_text("[1")
    assert main(["compile", "sets"]) == 2
    out, err = capsys.readouterr()
    assert out.startswith("sets/b.json: ")
    assert "cmm: sets/a.json @ line 1" in err
    assert "1 of 2 compiled" in err


def test_a_folder_without_function_files_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    assert main(["compile", "empty"]) == 2
    assert capsys.readouterr().err == "cmm: empty: holds no .json file\n"


def test_the_cache_is_listed_verified_and_cleared(capsys: pytest.CaptureFixture[str]) -> None:
    main(["compile", "sets/a.json"])
    capsys.readouterr()
    assert main(["cache"]) == 0
    out, err = capsys.readouterr()
    assert {line.split()[0] for line in out.splitlines()} == {"table", "vocabulary"}
    assert "greet" in out
    assert err.startswith("2 files, ")
    assert main(["cache", "verify"]) == 0
    assert all(line.endswith("whole") for line in capsys.readouterr().out.splitlines())
    [table] = [file for file in cached_files() if file.kind == "table"]
    data = table.path.read_bytes()
    table.path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert main(["cache", "verify", "--json"]) == 1
    listed = json.loads(capsys.readouterr().out)
    assert [file["fault"] for file in listed if file["kind"] == "table"] == [
        "its content has changed"
    ]
    table.path.write_bytes(data.replace(b'\\"format\\": ', b'\\"format\\":1'))
    assert main(["cache", "verify"]) == 0
    out, err = capsys.readouterr()
    assert "another format" in out
    assert "0 not whole, 1 of another version: cmm cache clear" in err
    assert main(["cache", "clear"]) == 0
    assert cached_files() == []


def test_the_longest_unused_files_go_first(capsys: pytest.CaptureFixture[str]) -> None:
    main(["compile", "sets"])
    tables = [file for file in cached_files() if file.kind == "table"]
    os.utime(tables[0].path, (1, 1))
    total = sum(file.size for file in cached_files())
    make_room(0, most=total - 1)
    assert tables[0].path not in [file.path for file in cached_files()]
    assert tables[1].path.is_file()


def test_a_table_holds_its_functions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["compile", "sets/a.json", "--output", "a.cmm"])
    [function] = about_file(tmp_path / "a.cmm").functions
    assert (function.name, function.description) == ("greet", "Greets")
    assert function.parameters["properties"] == {"name": {"type": "string"}}
    Path("schema.json").write_text("{}")
    main(["compile", "--schema", "schema.json", "--output", "s.cmm"])
    with pytest.raises(InvalidInput, match="was not made of functions"):
        about_file(tmp_path / "s.cmm")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--artifact", "nowhere.cmm"], "nowhere.cmm: there is no such file"),
        (["--artifact", "sets/a.json"], "sets/a.json: is no usable table"),
        (["--artifact", "a.cmm", "--functions_definition", "sets/a.json"], "sets/a.json: name a function file"),
    ],
)  # fmt: skip
def test_a_wrong_artifact_is_said(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"cmm: {message}")


TOOL = {"function": FUNCTIONS[0]}
DEEP = b"[" * 100_000
FOREIGN = {  # what a header says of a table, and what is said of that
    **{f"about {about}": (about, "it does not say what") for about in (3, [], None, "x", [3])},
    **{f"functions {found}": ({"functions": found}, "its functions") for found in (3, [3], "x", [{"function": {}}], {"name": 3}, [None], [[TOOL]])},
    "no format": ({"functions": [TOOL]}, "it does not say how"),
    "an unknown format": ({"functions": [TOOL], "call_format": "x", "order": "any"}, "it does not say how"),
    "a format of a list": ({"functions": [TOOL], "call_format": ["hermes"], "order": "any"}, "it does not say how"),
    "an order of a list": ({"functions": [TOOL], "call_format": "hermes", "order": ["any"]}, "it does not say how"),
}  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
def test_a_table_with_a_foreign_header_is_said(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its digest is right: it is whole, but none of ours."""
    about, message = FOREIGN[name]
    assert main(["compile", "sets/a.json", "--output", "a.cmm"]) == 0
    for path in (Path("a.cmm"), *(f.path for f in cached_files() if f.kind == "table")):
        arrays, header = read_arrays(path)
        write_arrays(path, (dict(arrays), {**header, "about": about}))
    for action in ([], ["verify"], ["--json"]):
        assert main(["cache", *action]) == 0
    capsys.readouterr()
    assert main(["run", "--artifact", "a.cmm"]) == 2
    assert capsys.readouterr().err.startswith(f"cmm: a.cmm: is no usable table: {message}")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["compile", "sets/a.json"]) == 0
    assert ("is made again" in capsys.readouterr().err) == (not isinstance(about, dict))
    assert main(["cache", "clear"]) == 0


@pytest.mark.parametrize("key", ["cuts", "vocabulary", "names", "start", "text_states"])
@pytest.mark.parametrize("value", [3, -1, "((", ["(("], [3], [[[]]], {}, None, True], ids=str)
def test_a_foreign_header_is_made_again(key: str, value: object) -> None:
    main(["compile", "sets/a.json"])
    for file in cached_files():
        arrays, header = read_arrays(file.path)
        if key in header or key == "cuts":
            write_arrays(file.path, (dict(arrays), {**header, key: value}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert main(["compile", "sets/a.json"]) == 0
    assert main(["cache", "verify"]) == 0


def headed(metadata: bytes) -> bytes:
    return len(metadata).to_bytes(8, "little") + metadata


BROKEN = {
    "empty": b"",
    "a header of brackets": headed(DEEP),
    "our header of brackets": headed(json.dumps({"__metadata__": {HEADER: DEEP.decode()}}).encode()),
    "no object": headed(b"[3]"),
    "another format": headed(json.dumps({"__metadata__": {HEADER: "{}"}}).encode()),
    "a shape beyond all": headed(json.dumps({"__metadata__": {HEADER: f'{{"format": {FORMAT}}}'}, "a": {"dtype": "U8", "shape": [10**30], "data_offsets": [0, 0]}}).encode()),
    "no array": headed(json.dumps({"__metadata__": {HEADER: f'{{"format": {FORMAT}}}'}, "a": 3}).encode()),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("kind", ["table", "vocabulary", "prefix"])
def test_a_broken_file_is_listed_verified_and_cleared(
    kind: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cache_dir().mkdir()
    path = cache_dir() / f"{kind}-x.safetensors"
    path.write_bytes(BROKEN[name])
    assert main(["cache"]) == 0
    assert main(["cache", "verify"]) == (name != "another format")
    assert main(["run", "--artifact", str(path)]) == 2
    assert f"{path}: is no usable table" in capsys.readouterr().err
    assert main(["compile", "sets/a.json"]) == 0
    assert main(["cache", "clear"]) == 0
    assert not path.exists()


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
@pytest.mark.parametrize("ending", ["", ".tmp"])
def test_what_is_no_file_is_left_alone(
    make: Callable[[Path], None], ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cache_dir().mkdir()
    places = [cache_dir() / f"{kind}-x.safetensors{ending}" for kind in ("table", "vocabulary")]
    for place in places:
        make(place)
    for action in ("list", "verify", "clear"):
        assert main(["cache", action]) == 0
        assert capsys.readouterr().out == ""
    assert main(["compile", "sets/a.json", "--output", "a.cmm"]) == 0
    assert main(["run", "--artifact", str(places[0])]) == 2
    assert all(place.exists() for place in places)


def test_a_function_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Path("sets/a.json").write_text(json.dumps([{**FUNCTIONS[0], "name": "f\x1b[2J\x9b"}]))
    main(["compile", "sets/a.json"])
    capsys.readouterr()
    assert main(["cache"]) == 0
    out, _ = capsys.readouterr()
    assert "f\\x1b[2J\\x9b" in out
    assert all(char.isprintable() or char == "\n" for char in out)
