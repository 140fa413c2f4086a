"""The commands: exit codes, streams, one line for an error; no model is asked here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cmm.runtime.cli import COMMANDS, main, normalise
from cmm.runtime.display import printable
from cmm.runtime.files import json_list, write_whole
from cmm.runtime.prompt_file import load_prompts

# (arguments, what stderr begins with)
WRONG = [
    (["run", "--functions_definition", "nowhere.json"], "nowhere.json: there is no such file"),
    (["run", "--functions-definition", "."], ".: is a folder"),
    (["run", "--input", "nowhere.json"], "nowhere.json: there is no such file"),
    (["run", "--input", "broken.json"], "broken.json @ line 1 column 3: broken JSON"),
    (["run", "--input", "object.json"], "object.json: must be a list of prompts"),
    (["run", "--input", "number.json"], "number.json @ /1/prompt: a prompt must be a text"),
    (["run", "--input", "keyless.json"], 'keyless.json @ /0: has no "prompt"'),
    (["run", "--input", "half.json"], "half.json @ /0: half of a surrogate pair"),
    (["run", "--output", "."], ".: is a folder"),
    (
        ["run", "--input", "object.json", "--output", "object.json"],
        "object.json: --output would write over --input object.json",
    ),
    (["run", "--output", "object.json/calls.json"], "object.json: the folder cannot be made"),
    (["run", "--prompts_config", "broken.json"], "broken.json @ line 1 column 3: broken JSON"),
    (["run", "--prompts-config=number.json"], "number.json: "),
    (
        ["run", "--input", "first.jsonl", "--model", "nonsense"],
        'first.jsonl @ line 2: has no "prompt"',
    ),
    (["run", "--model", "nonsense"], 'there is no model "nonsense"'),
    (["call", "Hi", "--functions", "broken.json"], "broken.json @ line 1 column 3: broken JSON"),
    (["models", "pull"], "which model?"),
    (["models", "pull", "nonsense"], 'there is no model "nonsense"'),
    (["compile", "broken.json"], "broken.json @ line 1 column 3: broken JSON"),
    (["match", "nowhere.json", "call.json"], "nowhere.json: there is no such file"),
]
FILES = {
    "broken.json": "[1, }",
    "object.json": "{}",
    "number.json": '["Hi", {"prompt": 3}]',
    "keyless.json": '[{"text": "Hi"}]',
    "half.json": '["\\ud800"]',
    "first.jsonl": '\n{"text": "Hi"}\n"x"\n',
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("arguments", "message"), WRONG)
def test_wrong_input(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"cmm: {message}")
    assert err.count("\n") == 1


@pytest.mark.parametrize("arguments", [[], ["fly"], ["run", "--max_tokens", "0"], ["call"]])
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: cmm" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_holds_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([name, "--help"])
    out = capsys.readouterr().out
    assert stopped.value.code == 0
    assert f"examples:\n  cmm {name}" in out


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_options_are_written_with_dashes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """All but the one whose name is not ours."""
    with pytest.raises(SystemExit):
        main([name, "--help"])
    options = set(re.findall(r"--\w[\w-]*", capsys.readouterr().out))
    assert {option for option in options if "_" in option} <= {"--functions_definition"}


@pytest.mark.parametrize(
    ("arguments", "command", "told"),
    [
        (["call", "-x"], "call", 'cmm call -- "-x"'),
        (["explain", "-x"], "explain", 'cmm explain -- "-x"'),
        (["call", "a", "-x"], "call", 'cmm call -- "-x"'),
        (["run", "-x"], "run", ""),
        (["cache", "-x"], "cache", ""),
    ],
)
def test_only_commands_with_a_prompt_speak_of_one(
    arguments: list[str], command: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)
    err = capsys.readouterr().err
    assert f"usage: cmm {command} " in err
    assert ("stands after --" in err) == bool(told)
    assert told in err


def test_dashes_and_underscores() -> None:
    given = ["call", "--max_tokens=9", "--prompts_config", "a-b", "--", "--not-an-option"]
    assert normalise(given) == [
        "call", "--max-tokens=9", "--prompts-config", "a-b", "--", "--not-an-option",
    ]  # fmt: skip


def test_output_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "calls.json"
    write_whole(path, json_list([{"a": 2.0}]))
    with pytest.raises(TypeError):
        write_whole(path, json_list([{}, object()]))
    assert json.loads(path.read_text()) == [{"a": 2.0}]
    assert not list(tmp_path.glob(".calls*"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prompts.json", '["a", {"prompt": "b", "note": 1}]'),
        ("prompts.jsonl", '"a"\n\n{"prompt": "b", "note": 1}'),
        ("prompts.ndjson", '\ufeff"a"\r\n{"prompt": "b"}\r\n'),
    ],
)
def test_prompts_of_all_forms(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, newline="")
    assert load_prompts(tmp_path / name) == ("a", "b")


def test_nothing_steers_the_terminal() -> None:
    assert printable("f\x1b]0;x\x07(é)\u202e") == "f\\x1b]0;x\\x07(é)\\u202e"


def test_torch_is_not_imported_without_need() -> None:
    """Parsing, help and input errors are quick: no torch, no transformers."""
    code = (
        "import sys; from cmm.runtime.cli import main; main(['run', '--input', 'nowhere.json']);"
        "print(sorted({'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


FUNCTIONS = '[{"name": "f", "parameters": {}}]'
CLOSED = "cmm: input or output: a stream is closed\n"


@pytest.mark.parametrize(
    ("arguments", "closing", "code", "err"),
    [
        (["check", "f.json"], ">&-", 2, CLOSED),
        (["--help"], ">&-", 2, CLOSED),
        (["check", "nowhere.json"], ">&-", 2, "cmm: nowhere.json: there is no such file\n"),
        (["check", "f.json"], "2>&-", 0, ""),
        (["cache"], "2>&-", 0, ""),
        (["check", "nowhere.json"], "2>&-", 2, ""),
        (["check", "f.json"], ">&- 2>&- <&-", 2, ""),
        (["run", "--functions_definition", "f.json", "--input", "-"], "<&-", 2, CLOSED),
        (["show", "f.json", "--output", "f.html"], ">&- <&-", 0, "written to f.html\n"),
        (["show", "f.json", "--output", "f.html"], ">&- 2>&- <&-", 0, ""),
    ],
)  # fmt: skip
def test_closed_streams(arguments: list[str], closing: str, code: int, err: str) -> None:
    """What cannot be written is an error, and no file that is opened takes a stream's place."""
    Path("f.json").write_text(FUNCTIONS)
    command = f'exec "$0" -m cmm.runtime.start "$@" {closing}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, *arguments],
        capture_output=True, text=True, env={**os.environ, "CMM_CACHE_DIR": "none"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, err)
    if "--output" in arguments:
        assert Path("f.html").read_text().startswith("<!doctype html>")


def test_a_second_ctrl_c_does_not_interrupt_the_ending() -> None:
    code = """
import os, signal, sys
from cmm.runtime.start import main
class Again:
    def write(self, text):
        os.kill(os.getpid(), signal.SIGINT)
        return sys.__stderr__.write(text)
    def flush(self): pass
class Stop:
    def find_spec(self, *_): os.kill(os.getpid(), signal.SIGINT)
sys.stderr = Again()
sys.meta_path.insert(0, Stop())
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "cmm: stopped\n")


NAME = os.fsdecode(b"\xff\x1b[2J.json")  # no UTF-8, and what clears a terminal


@pytest.mark.parametrize(
    "way",
    [
        ["check", NAME], ["check", "--json", NAME], ["match", NAME, NAME], ["match", NAME, "call.json"],
        ["show", NAME], ["show", NAME, "--output", "page.html"], ["show", NAME, "--output", NAME + ".svg"],
        ["grade", "call.json", "--functions", NAME], ["compile", NAME, "--show", "grammar"],
        ["compile", NAME, "--show", "regex"], ["compile", NAME, "--show", "automaton"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_any_name_is_printed(way: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    functions = [{"name": "a\x1b\x9b\u202e", "description": "\x9b", "parameters": {}}]
    Path(NAME).write_text(json.dumps(functions))
    Path("call.json").write_text(f"[{json.dumps({'name': functions[0]['name'], 'arguments': {}})}]")
    assert main(way) in (0, 1)
    out, err = capsys.readouterr()
    if "--json" in way:
        assert json.loads(out)[0]["file"] == NAME
    else:
        assert all(char.isprintable() or char == "\n" for char in out + err)


@pytest.mark.parametrize(
    "way", [["check", NAME], ["match", "f.json", NAME], ["show", NAME]], ids=" ".join
)
def test_any_name_is_in_an_error(way: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    Path("f.json").write_text(FUNCTIONS)
    assert main(way) == 2
    assert capsys.readouterr() == ("", "cmm: \\udcff\\x1b[2J.json: there is no such file\n")
