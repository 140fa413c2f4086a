"""Patterns as JSON Schema means them (ECMA-262), written for Python's `re`.

Python's dot reads a carriage return, its dollar stands before a last line feed, its letters, digits
and spaces are others. Nothing of the grammar is used here: see `judge`.
"""

from __future__ import annotations

import re
from typing import Any

SPACE = r"\t\n\x0b\x0c\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
DOT = r"[^\n\r\u2028\u2029]"
PIECE = re.compile(r"\\.|[\[\].$]", re.DOTALL)
# Keywords whose values are schemas, lists of schemas, schemas by name; the others hold none.
ONE = {"items", "additionalItems", "contains", "additionalProperties", "propertyNames", "not", "if",
       "then", "else", "unevaluatedItems", "unevaluatedProperties"}  # fmt: skip
LISTS = {"allOf", "anyOf", "oneOf", "prefixItems", "items"}
NAMED = {"properties", "$defs", "definitions", "dependentSchemas", "dependencies"}


def in_python(pattern: str) -> str:
    r"""A pattern of ECMA-262 that Python's `re` reads in the same way, where it can.

    >>> [bool(re.search(in_python("^.$"), text)) for text in ("a", "\r", "a\n")]
    [True, False, False]
    >>> [bool(re.search(in_python(r"^[\s.]\d$"), text)) for text in ("\ufeff1", ".1", "a1", ".٣")]
    [True, True, False, False]
    """
    inside = False

    def piece(found: re.Match[str]) -> str:
        nonlocal inside
        text = found[0]
        if inside:
            inside = text != "]"
            return {r"\s": SPACE, "[": r"\["}.get(text, text)
        inside = text == "["
        outside = {r"\s": f"[{SPACE}]", r"\S": f"[^{SPACE}]", ".": DOT, "$": r"\Z"}
        return outside.get(text, text)

    return "(?a)" + PIECE.sub(piece, pattern)


def with_python_patterns(schema: Any) -> Any:
    """A schema with its patterns written so.

    >>> with_python_patterns({"patternProperties": {"a$": {"enum": ["$"]}}})
    {'patternProperties': {'(?a)a\\\\Z': {'enum': ['$']}}}
    """
    if not isinstance(schema, dict):
        return schema
    return {key: _part(key, value) for key, value in schema.items()}


def _part(key: str, value: Any) -> Any:
    if key == "pattern" and isinstance(value, str):
        return in_python(value)
    if key == "patternProperties" and isinstance(value, dict):
        return {in_python(name): with_python_patterns(each) for name, each in value.items()}
    if key in NAMED and isinstance(value, dict):
        return {name: with_python_patterns(each) for name, each in value.items()}
    if key in LISTS and isinstance(value, list):
        return [with_python_patterns(each) for each in value]
    return with_python_patterns(value) if key in ONE else value
