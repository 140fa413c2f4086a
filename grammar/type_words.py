"""The type words that people write besides JSON Schema's own, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cmm.grammar.errors import InvalidInput, listed, pointer

TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")

# Python's and BFCL's spellings. "any" sets no type; "enum" brings its values along.
TYPE_WORDS: Mapping[str, str | None] = {
    **{name: name for name in TYPES},
    "str": "string",
    "float": "number",
    "double": "number",
    "int": "integer",
    "bool": "boolean",
    "dict": "object",
    "list": "array",
    "tuple": "array",
    "any": None,
    "enum": None,
}

# Keywords whose value is a schema, a list of schemas, or a mapping of names to schemas.
SCHEMA_KEYWORDS = (
    "items", "additionalItems", "additionalProperties", "contains", "not", "if", "then", "else",
    "propertyNames", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
LIST_KEYWORDS = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
MAPPING_KEYWORDS = (
    "properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies",
)  # fmt: skip


def standard_types(schema: Any, place: str = "") -> Any:
    """A schema with every type word replaced by JSON Schema's, at any depth.

    >>> standard_types({"type": "list", "items": {"type": "float"}})
    {'type': 'array', 'items': {'type': 'number'}}
    >>> standard_types({"type": "enum", "values": ["a", "b"]})
    {'enum': ['a', 'b']}
    """
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    for key in SCHEMA_KEYWORDS:
        if isinstance(result.get(key), dict):
            result[key] = standard_types(result[key], place + pointer(key))
    for key in LIST_KEYWORDS:
        if isinstance(result.get(key), list):
            result[key] = [
                standard_types(item, place + pointer(key, i)) for i, item in enumerate(result[key])
            ]
    for key in MAPPING_KEYWORDS:
        if isinstance(result.get(key), dict):
            result[key] = {
                name: standard_types(item, place + pointer(key, name))
                for name, item in result[key].items()
            }
    return _with_type(result, place)


def _with_type(schema: dict[str, Any], place: str) -> dict[str, Any]:
    words = schema.get("type")
    if words == "enum" and "enum" not in schema:
        if not isinstance(schema.get("values"), list):
            raise InvalidInput(
                'the type "enum" needs its values', place=place, advice='add "enum": [...]'
            )
        schema["enum"] = schema.pop("values")
    if isinstance(words, str):
        word = _standard(words, place)
        schema.pop("type") if word is None else schema.update(type=word)
    elif isinstance(words, list):
        known = [_standard(word, place) for word in words]
        schema.pop("type") if None in known else schema.update(type=known)
    elif words is not None:
        raise InvalidInput("a type is a word or a list of words", place=place + "/type")
    return schema


def _standard(word: Any, place: str) -> str | None:
    if not isinstance(word, str) or word not in TYPE_WORDS:
        raise InvalidInput(
            f"there is no type {word!r}",
            place=place + "/type",
            advice=f"use one of {listed(TYPE_WORDS, 20)}",
        )
    return TYPE_WORDS[word]
