"""What is wrong with a call is said by kind and place; rows are told apart by their prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cmm.grammar import parse_functions
from cmm.runtime.cli import main
from cmm.runtime.grade import Contract, compare, grade

FUNCTIONS = parse_functions([
    {"name": "add", "parameters": {"a": {"type": "number"}, "b": {"type": "number"}}},
    {"name": "sub", "parameters": {"source_string": "string", "regex": "string", "replacement": "string"}},
])  # fmt: skip
CONTRACT = Contract.of(FUNCTIONS)
SOURCE = {"source_string": 'a1 b22, "c"', "replacement": "N"}


def call(name, **arguments):
    return {"prompt": "p", "name": name, "parameters": arguments}


@pytest.mark.parametrize(
    ("found", "expected", "kinds"),
    [
        (call("add", a=1.0, b=2.0), call("add", a=1.0, b=2.0), []),
        ({"prompt": "p", "fn_name": "add", "args": {"a": 1.0}}, call("add", a=1.0), []),
        (call("add", a=1.0), call("sub", a=1.0), ["other function at /name"]),
        (call("add", a=1.0), call("add", a=1.0, b=2.0), ["missing key at /parameters/b"]),
        (call("add", a=1.0, c=2.0), call("add", a=1.0), ["extra key at /parameters/c"]),
        (call("add", a=1), call("add", a=1.0), ["integer for float at /parameters/a"]),
        (call("add", a=1.0), call("add", a=1), ["float for integer at /parameters/a"]),
        (call("add", a=True), call("add", a=1), ["other type at /parameters/a"]),
        (call("add", a="1"), call("add", a=1), ["other type at /parameters/a"]),
        (call("add", a=1.5), call("add", a=2.5), ["other value at /parameters/a"]),
        (call("f", s="C:\\x"), call("f", s="C:\\\\x"), ["lost quote or slash at /parameters/s"]),
        (call("f", s="it is"), call("f", s="it's"), ["other value at /parameters/s"]),
        (call("f", s="its"), call("f", s="it's"), ["lost quote or slash at /parameters/s"]),
        (call("f", o={"k": [1, 2]}), call("f", o={"k": [1, 3]}), ["other value at /parameters/o/k/1"]),
        (call("sub", **SOURCE, regex="\\d+"), call("sub", **SOURCE, regex="[0-9]+"), []),
        (call("sub", **SOURCE, regex="\\d"), call("sub", **SOURCE, regex="[0-9]+"), ["other value at /parameters/regex"]),
        (call("sub", **SOURCE, regex="(("), call("sub", **SOURCE, regex="[0-9]+"), ["other value at /parameters/regex"]),
        (call("sub", **{**SOURCE, "replacement": "M"}, regex="\\d+"), call("sub", **SOURCE, regex="[0-9]+"),
         ["other value at /parameters/replacement", "other value at /parameters/regex"]),
        (call("f", a=1)["parameters"], call("f", a=1), ["other function at /name"]),
    ],
)  # fmt: skip
def test_faults_of_one_call(found, expected, kinds):
    assert [str(fault).split(": ")[0] for fault in compare(found, expected)] == kinds


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (call("add", a=1.0, b=2.0), []),
        (call("add", b=1.0, a=2.0), []),
        (call("add", a=1, b=2.0), ["integer for float"]),
        (call("add", a=1.0), ["missing key", "against the schema"]),
        (call("add", a=1.0, b=2.0, c=3), ["against the schema"]),
        (call("add", a="1", b=2.0), ["against the schema"]),
        (call("nothing"), ["unknown function"]),
        ({**call("add", a=1.0, b=2.0), "note": "x"}, ["extra key"]),
        ({"name": "add", "parameters": {}}, ["missing key"]),
        ({"prompt": "p"}, ["missing key", "missing key"]),
        ("add(1, 2)", ["no call"]),
    ],
)
def test_the_contract_alone(found, kinds):
    assert [fault.kind for fault in CONTRACT.faults(found)] == kinds


def rows(*prompts):
    return [{"prompt": p, "name": "add", "parameters": {"a": 1.0, "b": 2.0}} for p in prompts]


@pytest.mark.parametrize(
    ("found", "kinds"),
    [
        (rows("x", "y", "x"), [[], [], []]),
        (rows("y", "x"), [["shifted row"], ["shifted row"], ["missing row"]]),
        (rows("x", "x"), [[], ["missing row"], ["shifted row"]]),
        (rows("x", "y", "x", "z"), [[], [], [], ["extra row"]]),
        ([], [["missing row"]] * 3),
    ],
)
def test_rows_belong_together_by_their_prompts(found, kinds):
    verdicts = grade(found, rows("x", "y", "x"), CONTRACT)
    assert [[fault.kind for fault in verdict.faults] for verdict in verdicts] == kinds


def test_a_skipped_row_is_held_to_the_contract_alone():
    wanted = [{**rows("x")[0], "skip": True}]
    assert not grade([{**rows("x")[0], "parameters": {"a": 7.0, "b": 7.0}}], wanted, CONTRACT)[
        0
    ].faults
    assert grade([{**rows("x")[0], "parameters": {"a": "7"}}], wanted, CONTRACT)[0].faults


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("right.json").write_text(json.dumps(rows("x")))
    Path("wrong.json").write_text(json.dumps([{**rows("x")[0], "parameters": {"a": 1, "b": 2.0}}]))
    Path("no.json").write_text("{}")
    assert main(["grade", "right.json", "right.json"]) == 0
    assert capsys.readouterr() == ("", "1 of 1 right\n")
    assert main(["grade", "wrong.json", "right.json"]) == 1
    out, err = capsys.readouterr()
    assert out == "0: 'x': integer for float at /parameters/a: 1 where 1.0 belongs\n"
    assert err == "0 of 1 right (1 integer for float)\n"
    assert main(["grade", "wrong.json", "right.json", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["kinds"] == {"integer for float": 1}
    assert main(["grade", "no.json"]) == 2
    assert "no.json: must be a list of calls" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("schema", "value", "kinds"),
    [
        (True, 1, {}), (True, {"x": [None]}, {}), ({}, 1, {}), (False, 1, {"against the schema": 1}),
        ({"type": ["number", "null"]}, 1, {}), ({"type": "object"}, 1, {"against the schema": 1}),
        ({"type": "string"}, "\ud800", {"against the schema": 1}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_any_schema_and_any_value_are_graded(
    schema: object, value: object, kinds: object, form: list[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    function = {"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}}
    (tmp_path / "f.json").write_text(json.dumps([function]))
    (tmp_path / "calls.json").write_text(json.dumps([{**call("f", a=value), "prompt": "\ud800"}]))
    way = ["grade", str(tmp_path / "calls.json"), "--functions", str(tmp_path / "f.json"), *form]
    assert main(way) == bool(kinds)
    out = capsys.readouterr().out
    if form:
        assert json.loads(out)["kinds"] == kinds
    else:
        assert all(kind in out for kind in kinds)


@pytest.mark.parametrize("row", [3, None, [1], "x", {}, {"prompt": 3}, {"prompt": ["x"]}])
def test_an_expected_row_that_is_no_call_is_named(
    row: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "calls.json"
    path.write_text(json.dumps([call("f"), row]))
    assert main(["grade", str(path), str(path)]) == 2
    assert f"{path} @ /1: an expected call must be" in capsys.readouterr().err
