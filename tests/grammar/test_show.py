"""Grammars as people read them."""

import pytest

from cmm.grammar.errors import Unsupported
from cmm.grammar.json_schema import schema_grammar
from cmm.grammar.nodes import (
    Chars,
    Choice,
    Counted,
    Distinct,
    Grammar,
    Joined,
    Literal,
    Repeat,
    Text,
    Tick,
    choice,
    sequence,
)
from cmm.grammar.show import show_grammar, show_regex

A, B = Literal("a"), Literal("b")


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        (Literal('a"é'), r'"a\"é"'),
        (Tick(","), '","'),
        (sequence(), "nothing"),
        (Choice(()), "never"),
        (Chars(((0x61, 0x7A), (0x5D, 0x5D))), r"[a-z\u{5d}]"),
        (sequence(A, choice([A, B])), '"a" ("a" | "b")'),
        (Repeat(sequence(A, B)), '"ab"*'),
        (Repeat(A, 1), '"a"+'),
        (Repeat(A, 0, 1), '"a"?'),
        (Repeat(A, 2, 2), '"a"{2}'),
        (Repeat(A, 2), '"a"{2,}'),
        (Repeat(A, 2, 5), '"a"{2,5}'),
        (Joined(A, ", "), 'joined by ", "("a")'),
        (Text(least=2, most=3), "string{2,3}"),
        (Counted(A, 1, None), 'array("a")+'),
        (Counted(A, 0, 3, True), 'unique array("a"){0,3}'),
        (Distinct(A, frozenset({"k", "b"})), '"{" distinct keys others than "b", "k"("a") "}"'),
        (Distinct(A, frozenset()), '"{" distinct keys("a") "}"'),
    ],
)  # fmt: skip
def test_nodes_are_shown(node, shown):
    assert show_grammar(Grammar(node)) == f"root = {shown}"


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "string", "pattern": "^(a|bc)$"}, 'string("a" | "bc")'),
        ({"type": "string", "pattern": "^a+$"}, "string(2 states)"),
        ({"type": "array", "items": {"type": "null"}, "maxItems": 2}, 'array("null"){0,2}'),
    ],
)
def test_schemas_are_shown(schema, shown):
    assert show_grammar(schema_grammar(schema)) == f"root = {shown}"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "maxLength": 3},
        {"type": "string", "pattern": "^a+$"},
        {"properties": {"a": {"$ref": "#"}}, "type": "object", "additionalProperties": False},
    ],
)
def test_some_grammars_are_no_regular_expression(schema):
    with pytest.raises(Unsupported, match="regular expression"):
        show_regex(schema_grammar(schema))
