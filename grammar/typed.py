"""JSON values given the types of their schema: a number is a float, an integer an int."""

from __future__ import annotations

import math
import sys
from typing import Any


def typed_value(value: Any, schema: Any) -> Any:
    """The value with every number as its schema types it.

    >>> typed_value({"a": 2, "n": [1]}, {"properties": {"a": {"type": "number"}}})
    {'a': 2.0, 'n': [1]}
    """
    if not isinstance(schema, dict):
        return value
    for option in schema.get("anyOf", ()):
        if _fits(value, option):
            return typed_value(value, option)
    match value:
        case bool():
            return value
        case int() | float():
            return _number(value, schema)
        case list():
            return [typed_value(item, schema.get("items")) for item in value]
        case dict():
            properties = schema.get("properties", {})
            return {key: typed_value(item, properties.get(key)) for key, item in value.items()}
        case _:
            return value


def _number(value: int | float, schema: dict[str, Any]) -> int | float:
    types = schema.get("type")
    words = types if isinstance(types, list) else [types]
    if "integer" in words and float(value).is_integer():
        return int(value)
    return as_float(value) if "number" in words else value


def as_float(value: int | float | str) -> float:
    """The nearest finite float: JSON has no infinity, and neither has a call.

    >>> as_float(2), as_float("-1e999") == -sys.float_info.max
    (2.0, True)
    """
    try:
        number = float(value)
    except OverflowError:  # an integer beyond every float
        number = math.copysign(math.inf, value)  # type: ignore[arg-type]
    return max(-sys.float_info.max, min(sys.float_info.max, number))


def _fits(value: Any, schema: Any) -> bool:
    """Could the schema's type have written this value?"""
    types = schema.get("type") if isinstance(schema, dict) else None
    words = types if isinstance(types, list) else [types]
    match value:
        case bool():
            return "boolean" in words
        case int():
            return "integer" in words or "number" in words
        case float():
            return "number" in words
        case str():
            return "string" in words
        case list():
            return "array" in words
        case dict():
            return "object" in words and value.keys() <= schema.get("properties", value).keys()
        case _:
            return "null" in words
