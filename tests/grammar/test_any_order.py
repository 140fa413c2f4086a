"""Keys in any order: each once, the required ones all there, up to a stated number of them."""

import json
from itertools import permutations

import pytest

from cmm.compiler import build_automaton
from cmm.grammar import schema_grammar
from cmm.grammar.members import MOST_IN_ANY_ORDER

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}, "c": {"type": "null"}},
    "required": ["a", "c"],
}


@pytest.fixture(scope="module")
def automaton():
    return build_automaton(schema_grammar(SCHEMA, any_order=True))


@pytest.mark.parametrize("keys", [k for n in range(4) for k in permutations("abc", n)])
def test_every_order_of_some_keys(automaton, keys):
    values = {"a": 1, "b": "x", "c": None}
    text = json.dumps({key: values[key] for key in keys})
    assert automaton.accepts(text) == ({"a", "c"} <= set(keys))


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ('{"c": null, "a": 1, "d": 5}', True),
        ('{"c": null, "d": 5, "a": 1}', False),  # other keys come last
        ('{"c": null, "a": 1, "c": null}', False),
        ('{"c": null, "a": 1, "d": 1, "d": 2}', False),
        ('{"c": null, "a": 1, "d": 1, "a": 2}', False),
        ('{"c": null, "a": "1"}', False),
    ],
)
def test_each_key_once_with_its_own_value(automaton, text, accepted):
    assert automaton.accepts(text) == accepted


def test_many_keys_keep_their_order():
    names = [f"k{i}" for i in range(MOST_IN_ANY_ORDER + 1)]
    schema = {"type": "object", "properties": {name: {"type": "null"} for name in names}}
    automaton = build_automaton(schema_grammar(schema, any_order=True))
    assert automaton.accepts(json.dumps(dict.fromkeys(names)))
    assert not automaton.accepts(json.dumps(dict.fromkeys(reversed(names))))


def test_without_it_the_order_is_the_declared_one():
    automaton = build_automaton(schema_grammar(SCHEMA))
    assert automaton.accepts('{"a": 1, "c": null}')
    assert not automaton.accepts('{"c": null, "a": 1}')
