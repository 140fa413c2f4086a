"""The JSON values as grammar nodes: numbers, strings, arrays, objects, any value at all."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping
from typing import Any

from cmm.grammar.nodes import (
    DIGITS,
    Choice,
    Field,
    Fields,
    Literal,
    Node,
    Reference,
    Repeat,
    Text,
    chars,
    choice,
    optional,
    quoted,
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


def separated(item: Node, least: int = 0, most: int | None = None) -> Node:
    """`least` to `most` items joined by commas.

    >>> from cmm.grammar.nodes import Grammar
    >>> print(Grammar(separated(Literal("x"))))
    root = ("x" ", x"*)?
    """
    if most == 0:
        return sequence()
    more = Repeat(
        sequence(Literal(COMMA), item), max(least - 1, 0), None if most is None else most - 1
    )
    some = sequence(item, more)
    return some if least else optional(some)


def array(item: Node) -> Node:
    """An array of items that all match one node."""
    return sequence(Literal("["), separated(item), Literal("]"))


# The rules behind ANY_OBJECT and ANY_ARRAY: free JSON nests in itself.
FREE_JSON = {
    "object": sequence(
        Literal("{"), separated(sequence(Text(), Literal(COLON), ANY_VALUE)), Literal("}")
    ),
    "array": array(ANY_VALUE),
}


def object_of(properties: Mapping[str, Node], required: Container[str]) -> Node:
    """A closed object with the keys in the given order; those not required may be left out.

    >>> from cmm.grammar.nodes import Grammar
    >>> print(Grammar(object_of({"a": NULL, "b": BOOLEAN}, {"b"})))
    root = "{" fields("\\"a\\": null"?, "\\"b\\": " ("true" | "false")) "}"
    """
    fields = tuple(
        Field(sequence(quoted(key), Literal(COLON), value), key in required)
        for key, value in properties.items()
    )
    return sequence(Literal("{"), Fields(fields, COMMA), Literal("}"))


def constant(value: Any) -> Node:
    """One JSON value, spelled as json.dumps spells it.

    >>> constant([1, None])
    Literal(text='[1, null]')
    """
    match value:
        case str():
            return quoted(value)
        case list():
            items = [part for item in value for part in (Literal(COMMA), constant(item))]
            return sequence(Literal("["), *items[1:], Literal("]"))
        case dict():
            return object_of({key: constant(item) for key, item in value.items()}, value)
        case _:
            return Literal(json.dumps(value))


def is_empty(node: Node) -> bool:
    """Is this the node that nothing matches?"""
    return isinstance(node, Choice) and not node.options
