"""JSON Schema as grammar: each keyword is enforced or refused, never dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cmm.grammar.errors import InvalidInput, Unsupported, listed, pointer
from cmm.grammar.json_values import (
    ANY_ARRAY,
    ANY_OBJECT,
    BOOLEAN,
    FREE_JSON,
    INTEGER,
    NULL,
    NUMBER,
    array,
    constant,
    object_of,
)
from cmm.grammar.nodes import Grammar, Node, Text, choice
from cmm.grammar.type_words import TYPES

# Keywords that describe and do not constrain.
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "$comment", "$schema", "$id",
     "deprecated", "readOnly", "writeOnly"}
)  # fmt: skip
ENFORCED = frozenset({"type", "enum", "const", "properties", "required", "items", "anyOf"})


def schema_grammar(schema: Any) -> Grammar:
    """The grammar of the values that a JSON Schema accepts.

    >>> print(schema_grammar({"type": ["boolean", "null"]}))
    root = "true" | "false" | "null"

    Raises Unsupported for a keyword that is not enforced, InvalidInput for a wrong schema, both
    with a JSON pointer.
    """
    return Grammar(value_node(schema, ""), FREE_JSON)


def value_node(schema: Any, place: str) -> Node:
    """The node of one schema, which stands at the given JSON pointer."""
    if not isinstance(schema, dict):
        raise InvalidInput("a schema is an object", place=place)
    for key in schema:
        if key not in ENFORCED and key not in ANNOTATIONS:
            raise Unsupported(f'the keyword "{key}" is not supported', place=place + pointer(key))
    if "anyOf" in schema:
        return _any_of(schema, place)
    if "const" in schema:
        return constant(schema["const"])
    if "enum" in schema:
        return _enum(schema, place)
    types = schema.get("type", list(TYPES) if _shapeless(schema) else _implied(schema))
    return choice(
        _typed(word, schema, place) for word in (types if isinstance(types, list) else [types])
    )


def _shapeless(schema: Mapping[str, Any]) -> bool:
    return not {"properties", "required", "items"} & schema.keys()


def _implied(schema: Mapping[str, Any]) -> str:
    return "array" if "items" in schema else "object"


def _any_of(schema: Mapping[str, Any], place: str) -> Node:
    beside = schema.keys() - ANNOTATIONS - {"anyOf"}
    if beside:
        raise Unsupported(f"anyOf beside {listed(sorted(beside))}", place=place + "/anyOf")
    options = schema["anyOf"]
    if not isinstance(options, list) or not options:
        raise InvalidInput("anyOf needs a list of schemas", place=place + "/anyOf")
    return choice(
        value_node(option, place + pointer("anyOf", i)) for i, option in enumerate(options)
    )


def _enum(schema: Mapping[str, Any], place: str) -> Node:
    values = schema["enum"]
    if not isinstance(values, list) or not values:
        raise InvalidInput("enum needs a list of values", place=place + "/enum")
    types = schema.get("type")
    allowed = [types] if isinstance(types, str) else types
    kept = [value for value in values if allowed is None or _has_type(value, allowed)]
    if not kept:
        raise InvalidInput(f"no value of the enum is of type {types!r}", place=place + "/enum")
    return choice(map(constant, kept))


def _has_type(value: Any, types: list[str]) -> bool:
    match value:
        case bool():
            return "boolean" in types
        case int():
            return "integer" in types or "number" in types
        case float():
            return "number" in types or ("integer" in types and value.is_integer())
        case str():
            return "string" in types
        case None:
            return "null" in types
        case list():
            return "array" in types
        case _:
            return "object" in types


def _typed(word: Any, schema: Mapping[str, Any], place: str) -> Node:
    match word:
        case "string":
            return Text()
        case "number":
            return NUMBER
        case "integer":
            return INTEGER
        case "boolean":
            return BOOLEAN
        case "null":
            return NULL
        case "array":
            if "items" not in schema:
                return ANY_ARRAY
            return array(value_node(schema["items"], place + "/items"))
        case "object":
            return _object(schema, place)
        case _:
            raise InvalidInput(
                f"there is no type {word!r}",
                place=place + "/type",
                advice=f"use one of {listed(TYPES)}",
            )


def _object(schema: Mapping[str, Any], place: str) -> Node:
    if "properties" not in schema and not schema.get("required"):
        return ANY_OBJECT
    properties = schema.get("properties", {})
    required = schema.get("required", [])
    if not isinstance(properties, dict):
        raise InvalidInput("properties is an object", place=place + "/properties")
    unknown = [name for name in required if name not in properties]
    if unknown:
        raise Unsupported(
            f"required, but not among the properties: {listed(unknown)}", place=place + "/required"
        )
    nodes = {
        name: value_node(inner, place + pointer("properties", name))
        for name, inner in properties.items()
    }
    return object_of(nodes, required)
