"""`cmm prove`: its judge is strict, its logits are hostile, its runs come out valid."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runtime_doubles import tiny_tokenizer

from cmm.compiler import compile_functions, load_vocabulary
from cmm.grammar.errors import CmmError
from cmm.grammar.functions import parse_functions
from cmm.runtime import command_prove
from cmm.runtime.cli import main
from cmm.runtime.judge import CallJudge, Judge
from cmm.runtime.resolve import ModelPlace
from cmm.runtime.slow import decode_by

FUNCTIONS = [
    {"name": "add", "parameters": {"a": {"type": "number"}, "b": {"type": "integer"}}},
    {"name": "greet", "parameters": {"name": {"type": "string"}, "loud": {"type": "bool"}}},
]
SCHEMA = {"type": "object", "properties": {"p": {"type": "string", "pattern": "^[a-c]+$"}}}

# (written, name as read, arguments as read, part of the fault; "" where there is none)
CALLS: list[tuple[str, str, Any, str]] = [
    ('{"name": "add", "arguments": {"a": 2, "b": 3}}', "add", {"a": 2.0, "b": 3}, ""),
    ('{"name": "add", "arguments": {"a": 1e999, "b": 3}}', "add", {"a": 1.7e308, "b": 3}, ""),
    ('{"name": "add", "arguments": {"a": 2, "b": 3}}', "add", {"a": 2, "b": 3}, "a is no float"),
    ('{"name": "add", "arguments": {"a": 2, "b": 3}}', "add", {"a": 2.5, "b": 3}, "read as"),
    ('{"name": "add", "arguments": {"a": 2, "b": 3}}', "greet", {}, "no call of that function"),
    ('{"name": "add", "arguments": {"a": 2, "b": true}}', "add", {"a": 2.0, "b": True}, "b is no int"),
    ('{"name": "add", "arguments": {"a": 2}}', "add", {"a": 2.0}, "required"),
    ('{"name": "add", "arguments": {"a": 2, "b": 3, "c": 1}}', "add", {"a": 2.0, "b": 3, "c": 1}, "dditional"),
    ('{"name": "add", "arguments": {"a": NaN, "b": 3}}', "add", {"a": 2.0, "b": 3}, "no JSON"),
    ('{"name": "add", "arguments": {"a": 2, "a": 2, "b": 3}}', "add", {}, "no JSON"),
    ('{"name": "add", "arguments": {"a": 2, "b": 3}', "add", {}, "no JSON"),
    ('{"name": "greet", "arguments": {"name": "\\ud83d\\ude00", "loud": true}}', "greet",
     {"name": "😀", "loud": True}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("written", "name", "arguments", "fault"), CALLS)
def test_calls_are_judged(written: str, name: str, arguments: Any, fault: str) -> None:
    schemas = {each.name: each.parameters for each in parse_functions(FUNCTIONS)}
    found = CallJudge(schemas, FUNCTIONS).fault(written.encode(), name, arguments)
    assert (fault in (found or "")) if fault else found is None


@pytest.mark.parametrize(
    ("schema", "valid", "invalid"),
    [
        ({"multipleOf": 0.01}, ["0.29", "1234567890123456789.01", "7"], ["0.295", "1e-3"]),
        ({"type": "integer"}, ["2", "2.0", "-1e3"], ["2.5", '"2"', "true"]),
        ({"pattern": r"^.\d$"}, ['"a1"', '"é2"'], [r'"\r1"', r'"a1\n"', '"a٣"', '"11a"']),
        ({"pattern": r"[\s.$[]$"}, [r'"a\ufeff"', '"."', '"$"', '"["'], ['"a"']),
        ({"additionalProperties": False, "patternProperties": {"^.+$": {"not": {"pattern": r"^\S*$"}}}},
         ['{"a": "a b"}', "{}"], ['{"a": "b"}', r'{"\r": 1}']),
        ({"maximum": 1e300}, ["1e299", "-1e99999999999999999999"], ["1e301", "1e99999999999999999999"]),
        (SCHEMA, ['{"p": "abc"}', "{}"], ['{"p": "abcd"}', "[]"]),
    ],
)  # fmt: skip
def test_values_are_judged_exactly(schema: Any, valid: list[str], invalid: list[str]) -> None:
    judge = Judge(schema)
    assert [judge.fault(text.encode()) for text in valid] == [None] * len(valid)
    assert None not in [judge.fault(text.encode()) for text in invalid]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tiny_tokenizer().save(str(tmp_path / "tokenizer.json"))
    place = ModelPlace("tiny", tmp_path)
    monkeypatch.setattr(command_prove, "find_model", lambda model, tokenizer_only: place)
    Path("functions.json").write_text(json.dumps(FUNCTIONS))
    Path("schema.json").write_text(json.dumps(SCHEMA))
    Path("refused.json").write_text(json.dumps({"type": "array", "disallow": []}))


def proved(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    code = main(["prove", "--jobs", "1", *arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


@pytest.mark.parametrize(("tokens", "runs"), [("any", "40"), ("canonical", "20")])
def test_every_output_is_valid(tokens: str, runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, found, err = proved(
        capsys, "functions.json", "schema.json", "--runs", runs, "--tokens", tokens
    )
    assert (code, err) == (0, "")
    assert found["invalid"] == 0
    assert found["broken_noticed"] == int(runs) // 10
    assert found["outputs"] == sum(found["kinds"].values()) == 2 * int(runs) - int(runs) // 10


def test_the_seed_makes_the_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [
        proved(capsys, "functions.json", "--runs", "40", "--tokens", "any", "--seed", s)[1]["kinds"]
        for s in "778"
    ]
    assert runs[0] == runs[1] != runs[2]


def test_a_refused_schema_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    code, found, err = proved(
        capsys, "refused.json", "schema.json", "--runs", "20", "--tokens", "any"
    )
    assert (code, found["refused"], found["outputs"]) == (1, 1, 19)
    assert "cmm: refused: refused.json @ /disallow" in err


def test_invalid_outputs_are_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A grammar that is too wide does not get past the judge."""
    right = command_prove.compile_schema
    monkeypatch.setattr(
        command_prove, "compile_schema", lambda _, tokens: right({"type": "integer"}, tokens)
    )
    code, found, err = proved(capsys, "schema.json", "--runs", "20", "--tokens", "any")
    assert (code, found["invalid"]) == (1, 19)
    assert err.count("schema.json: run ") == 10
    assert "is not of type 'object'" in err


def test_without_the_validator_it_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    monkeypatch.setitem(sys.modules, "jsonschema.validators", None)
    assert main(["prove", "functions.json"]) == 2
    assert "the package jsonschema is not installed" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["nan", "infinity"])
def test_broken_logits_are_never_a_call(kind: str) -> None:
    vocabulary = load_vocabulary(tiny_tokenizer())
    table = compile_functions(parse_functions(FUNCTIONS), vocabulary)
    adversary = command_prove.Adversary(vocabulary)
    dice = random.Random(0)
    with pytest.raises(CmmError, match="not a finite number"):
        decode_by(lambda _, state: adversary.numbers(kind, table, state, dice), table, 60)


def test_preferences_are_kept() -> None:
    """What an adversary prefers is what is chosen where it is allowed."""
    vocabulary = load_vocabulary(tiny_tokenizer())
    table = compile_functions(parse_functions(FUNCTIONS[1:]), vocabulary)
    adversary = command_prove.Adversary(vocabulary)
    dice = random.Random(0)
    state = table.start
    text = b""
    while b'"name": "' not in text[20:]:
        token = int(table.allowed(state)[0])
        text, state = text + vocabulary.tokens[token], table.next(state, token)
    allowed = table.allowed(state)
    chosen = {
        kind: vocabulary.tokens[
            int(allowed[np.argmax(adversary.numbers(kind, table, state, dice))])
        ]
        for kind in adversary.valid
    }
    assert chosen["escapes"] == b"\\"
    assert chosen["digits"].isdigit()
    assert len(chosen["longest"]) == max(
        len(vocabulary.tokens[t]) for t in allowed if b'"' not in vocabulary.tokens[t]
    )
    assert not chosen["controls"].isascii() or chosen["controls"] == b"\x7f"
