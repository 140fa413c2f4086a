"""`cmm cache` and what fills it: folders of function files, tables run without them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from runtime_doubles import tiny_tokenizer

from cmm.compiler.cache import cached_files, make_room
from cmm.compiler.store import about_file
from cmm.grammar import InvalidInput, parse_functions
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
    [function] = parse_functions(about_file(tmp_path / "a.cmm")["functions"])
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
