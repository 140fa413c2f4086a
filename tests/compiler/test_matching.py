"""Where a text leaves an automaton, and what would have gone on there."""

import pytest

from cmm.compiler.automaton import build_automaton
from cmm.compiler.matching import match
from cmm.grammar.json_schema import schema_grammar

SCHEMA = {"enum": ["a b", 'q"', 12, 1]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("12", "accepted"),
        ("1", "accepted"),
        ("13", 'stops at byte 1: after 1, found "3", expected "2" or the end'),
        ("", 'stops at byte 0: found the end, expected "\\"" or "1"'),
        ('"a', 'stops at byte 2: after "a, found the end, expected a space'),
        ('"a\n', 'stops at byte 2: after "a, found byte 0x0a, expected a space'),
        ('"q"', 'stops at byte 2: after "q, found "\\"", expected "\\"'),
    ],
)
def test_a_match_is_explained(text, told):
    data = text.encode()
    assert match(build_automaton(schema_grammar(SCHEMA)), data).explain(data) == told


def test_many_ways_on_are_counted():
    found = match(build_automaton(schema_grammar({"type": "string"})), b'"' + b"x" * 99 + b"\n")
    told = found.explain(b'"' + b"x" * 99 + b"\n")
    assert told.startswith("stops at byte 100: after …" + "x" * 60)
    assert told.endswith(" other bytes")
