"""The JSON values as grammar nodes: numbers, strings, arrays, objects, any value at all."""

from __future__ import annotations

from cmm.grammar.nodes import (
    DIGITS,
    Distinct,
    Joined,
    Literal,
    Node,
    Reference,
    Repeat,
    Text,
    Tick,
    chars,
    choice,
    optional,
    sequence,
)

COMMA, COLON = ", ", ": "  # the separators of json.dumps, which the models were trained on

INTEGER = sequence(
    optional(Literal("-")),
    choice([Literal("0"), sequence(chars("1-9"), Repeat(chars("0-9")))]),
)
NUMBER = sequence(
    INTEGER,
    optional(sequence(Literal("."), DIGITS)),
    optional(sequence(chars("eE"), optional(chars("+-")), DIGITS)),
)
BOOLEAN = choice([Literal("true"), Literal("false")])
NULL = Literal("null")

ANY_OBJECT = Reference("object")
ANY_ARRAY = Reference("array")
ANY_VALUE = choice([Text(), NUMBER, BOOLEAN, NULL, ANY_OBJECT, ANY_ARRAY])


def member(key: Node, value: Node, *, ticked: bool = False) -> Node:
    """One member of an object, with the comma before it that `Joined` drops for the first."""
    return sequence(Literal(COMMA), key, Tick(COLON) if ticked else Literal(COLON), value)


def object_of(members: Node) -> Node:
    """An object of the given members."""
    return sequence(Literal("{"), Joined(members, COMMA), Literal("}"))


def items_of(items: Node) -> Node:
    """An array of the given items, each with a comma before it."""
    return sequence(Literal("["), Joined(items, COMMA), Literal("]"))


# The rules behind ANY_OBJECT and ANY_ARRAY: free JSON nests in itself.
FREE_JSON = {
    "object": Distinct(Repeat(member(Text(key=True), ANY_VALUE, ticked=True))),
    "array": items_of(Repeat(sequence(Literal(COMMA), ANY_VALUE))),
}
