"""What is left of arrays when one demand on them is turned round."""

import itertools
import json

import jsonschema
import pytest

from cmm.compiler.automaton import build_automaton
from cmm.grammar.json_schema import schema_grammar

VALUES = [list(items) for size in range(4) for items in itertools.product([1, None], repeat=size)]


@pytest.mark.parametrize(
    "demand",
    [
        {"minItems": 2},
        {"maxItems": 1},
        {"prefixItems": [{"type": "null"}, {"type": "integer"}]},
        {"items": {"type": "null"}},
        {"prefixItems": [{}], "items": False},
        {"contains": {"type": "null"}},
        {"contains": {"type": "null"}, "minContains": 2, "maxContains": 2},
    ],
    ids=json.dumps,
)
def test_not_an_array_of_a_kind(demand):
    schema = {"type": "array", "maxItems": 3, "not": demand}
    automaton, judge = (
        build_automaton(schema_grammar(schema)),
        jsonschema.Draft202012Validator(schema),
    )
    accepted = [value for value in VALUES if automaton.accepts(json.dumps(value))]
    assert accepted == [value for value in VALUES if judge.is_valid(value)]
