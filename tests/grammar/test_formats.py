"""Calls: what is accepted for which names, and what is read back with which types."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmm.compiler import build_automaton
from cmm.grammar import HERMES, call_grammar, parse_functions

NAMES = ["f", "fn", "fn_add", "fn.add", "fn-add", 'say "hi"', "größe", "日本", "back\\slash", "a b"]


def written(name, arguments):
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)


def test_names_may_be_prefixes_and_hold_any_characters():
    functions = parse_functions([{"name": name, "parameters": {}} for name in NAMES])
    automaton = build_automaton(call_grammar(functions))
    assert [name for name in NAMES if not automaton.accepts(written(name, {}))] == []
    for other in ["", "fn_", "fn_add_", "g", "fn_addx", "grö"]:
        assert not automaton.accepts(written(other, {}))
    assert not automaton.accepts('{"name": "f", "arguments": {}} ')


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5, unique=True))
def test_any_names_at_all(names):
    functions = parse_functions([{"name": name, "parameters": {}} for name in names])
    automaton = build_automaton(call_grammar(functions))
    for name in names:
        text = written(name, {})
        assert automaton.accepts(text)
        assert HERMES.parse(text, functions) == (name, {})
        assert automaton.accepts(json.dumps(json.loads(text)))  # non-ASCII escaped


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "number"}, "2", 2.0),
        ({"type": "number"}, "-0.5", -0.5),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "number"}, "1e999", 1.7976931348623157e308),
        ({"type": "number"}, "-" + "9" * 400, -1.7976931348623157e308),
        ({"type": "integer"}, "12345678901234567890", 12345678901234567890),
        ({"type": "array", "items": {"type": "number"}}, "[1, 2.5]", [1.0, 2.5]),
        ({"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
         '{"n": 3}', {"n": 3.0}),
        ({"anyOf": [{"type": "null"}, {"type": "number"}]}, "4", 4.0),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "4", 4),
        ({"type": ["integer", "null"]}, "4", 4),
        ({"type": "boolean"}, "true", True),
        ({"enum": [1, 2]}, "2", 2),
        ({"type": "object"}, '{"n": 3, "x": [1.5]}', {"n": 3, "x": [1.5]}),
        ({"type": "string"}, r'"a\u00e9\n\"\\d+"', 'aé\n"\\d+'),
    ],
)  # fmt: skip
def test_arguments_are_read_with_the_types_of_their_schema(schema, text, value):
    functions = parse_functions([{"name": "f", "parameters": {"v": schema}}])
    call = f'{{"name": "f", "arguments": {{"v": {text}}}}}'
    assert build_automaton(call_grammar(functions)).accepts(call)
    _, arguments = HERMES.parse(call, functions)
    assert arguments == {"v": value}
    assert repr(arguments["v"]) == repr(value)  # 2 and 2.0, True and 1 are not the same here


def test_an_error_names_the_function_and_the_parameter():
    functions = parse_functions(
        [{"name": "f", "parameters": {"v": {"type": "string", "disallow": []}}}]
    )
    with pytest.raises(Exception, match="/0/parameters/v/disallow: the keyword"):
        call_grammar(functions)
