"""`cmm compile` and `cmm match`, with a model folder that holds nothing but a tokenizer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from runtime_doubles import tiny_tokenizer

from cmm.compiler import TokenTable, load_vocabulary
from cmm.runtime import command_compile
from cmm.runtime.cli import main
from cmm.runtime.resolve import ModelPlace

CALL = '{"name": "fn_greet", "arguments": {"name": "john"}}'


@pytest.fixture(autouse=True)
def _model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_tokenizer().save(str(tmp_path / "tokenizer.json"))
    place = ModelPlace("tiny", tmp_path)
    monkeypatch.setattr(command_compile, "find_model", lambda model, tokenizer_only: place)
    monkeypatch.setenv("CMM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_compile_says_what_it_made_and_finds_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile"]) == 0
    first = capsys.readouterr().out
    assert main(["compile"]) == 0
    second = capsys.readouterr().out
    names = ["states", "transitions", "bytes", "seconds", "model", "file"]
    assert [line.split()[0] for line in first.splitlines()] == names
    assert "(compiled)" in first
    assert "(was there already, read)" in second
    assert Path(first.split()[-1]).is_file()


def test_output_can_be_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--output", "new/table.cmm"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("new/table.cmm")
    table = TokenTable.load(tmp_path / "new" / "table.cmm", load_vocabulary(tmp_path))
    assert table.accepts(CALL)
    assert not table.accepts(CALL[:-1])


@pytest.mark.parametrize(
    ("form", "part"), [("grammar", "root = "), ("regex", "fn_greet"), ("automaton", "->")]
)
def test_show(form: str, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "--show", form]) == 0
    assert part in capsys.readouterr().out


# (schema, text, exit code, what is said)
MATCHES = [
    (None, CALL, 0, "accepted"),
    (None, CALL + "\n", 0, "accepted"),
    (None, CALL.replace("greet", "great"), 1, "stops at byte 16"),
    (None, CALL.replace('"john"', "1"), 1, 'found "1", expected "\\""'),
    (None, "", 1, "found the end"),
    (None, CALL.replace(": ", ":"), 0, f"accepted; written as the model writes it: {CALL}"),
    (
        None,
        '{"arguments": {"name": "john"},\n "name": "fn_greet"}',
        0,
        f"the model writes it: {CALL}",
    ),
    (None, '{"prompt": "Hi", "name": "fn_greet", "parameters": {"name": "john"}}', 0, CALL),
    (None, '{"prompt": "Hi", "fn_name": "fn_greet", "args": {"name": "john"}}', 0, CALL),
    (
        None,
        '{"name": "fn_greet", "parameters": {"name": 1}}',
        1,
        'found "1", expected "\\""; written as',
    ),
    (None, '{"name": "fn_add_numbers", "parameters": {"b": 1, "a": 2.0}}', 0, '{"a": 2.0, "b": 1}'),
    (None, '{"parameters": {}}', 1, "stops at byte 2"),
    (None, "{" * 5000, 1, "stops at byte 1"),
    (None, '[{"name": 7, "parameters": {}}]', 1, "stops at byte 0"),
    ('{"type": "object", "properties": {"a": {}}}', '{"a":[1,2]}', 0, 'it: {"a": [1, 2]}'),
    ('{"type": "integer"}', "-12", 0, "accepted"),
    ('{"type": "integer"}', "1.5", 1, "stops at byte 1"),
]


@pytest.mark.parametrize(("schema", "text", "code", "message"), MATCHES)
def test_match(
    schema: str | None,
    text: str,
    code: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "call.json").write_text(text)
    if schema is None:
        arguments = [str(command_compile.shipped(command_compile.FUNCTIONS)), "call.json"]
    else:
        (tmp_path / "schema.json").write_text(schema)
        arguments = ["--schema", "schema.json", "call.json"]
    assert main(["match", *arguments]) == code
    out = capsys.readouterr().out
    assert out.startswith("call.json: ")
    assert message in out


def test_match_reads_what_a_run_writes(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        {"prompt": "x", "name": name, "parameters": {"name": "a"}} for name in ("fn_greet", "f")
    ]
    Path("calls.json").write_text(json.dumps(rows, indent=2))
    functions = str(command_compile.shipped(command_compile.FUNCTIONS))
    assert main(["match", functions, "calls.json"]) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("calls.json @ /0: accepted; written as the model writes it: {")
    assert second.startswith("calls.json @ /1: stops at byte 11: ")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "json"], "was compiled with --format gemma, and --format json is asked for"),
        (["--order", "declared"], "was compiled with --order any, and --order declared is asked"),
        (["--format", "gemma", "--order", "any", "--model", "nonsense"], "there is no model"),
        (["--functions", "f.json"], "name a function file or --artifact, not both"),
    ],
)
def test_a_table_and_options_that_say_otherwise(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", "--format", "gemma", "--order", "any", "--output", "t.cmm"]) == 0
    assert main(["call", "Hi", "--artifact", "t.cmm", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(("output", "begins"), [("a.html", "<!doctype html>"), ("a.svg", "<svg ")])
def test_a_picture_is_written(output: str, begins: str) -> None:
    assert main(["show", "--output", output]) == 0
    assert Path(output).read_text(encoding="utf-8").startswith(begins)


def test_a_picture_in_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "--format", "pythonic"]) == 0
    assert "add_numbers(a=" in capsys.readouterr().out
    assert main(["show", "--output", "a.png"]) == 2
    assert "a.png: is neither .html nor .svg" in capsys.readouterr().err
