"""Is an answer valid? Judged with json, jsonschema and Python's types alone.

Nothing here knows the grammar: what both get wrong in the same way would not be found otherwise.
"""

from __future__ import annotations

import decimal
import importlib
import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from cmm.grammar.errors import CmmError
from cmm.runtime.ecma import with_python_patterns

PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "number": float, "float": float, "double": float, "integer": int, "int": int, "string": str,
    "str": str, "boolean": bool, "bool": bool, "array": list, "list": list, "object": dict,
    "dict": dict,
}  # fmt: skip
# What stands beside "type" without changing which Python type is right.
PLAIN = {"type", "description", "title", "default", "examples", "minimum", "maximum", "items"}
COMBINED = ("allOf", "anyOf", "oneOf", "$ref", "patternProperties", "additionalProperties", "not")


class Unjudged(Exception):
    """The validator cannot read the schema, although it is right."""


class Judge:
    """Judges values by one JSON Schema; `closed`: no keys but those that are named."""

    def __init__(self, schema: Any, *, closed: bool = False) -> None:
        schema = with_python_patterns(shut(schema) if closed else schema)
        schema = json.loads(json.dumps(schema), parse_float=Decimal)
        validators = validator_module()
        kind = validators.validator_for(schema, default=validators.Draft202012Validator)
        types = kind.TYPE_CHECKER.redefine("integer", is_integer)
        kind = validators.extend(kind, type_checker=types)
        self._validator = kind(schema, format_checker=kind.FORMAT_CHECKER)

    def fault(self, text: bytes) -> str | None:
        """What is wrong with a JSON text; None where it is valid."""
        try:
            value = read_exactly(text)
        except ValueError as error:
            return f"no JSON: {error}"
        return self.fault_of(value)

    def fault_of(self, value: Any) -> str | None:
        """What is wrong with a value whose decimals are exact."""
        try:
            with decimal.localcontext(decimal.Context(prec=4000, Emax=decimal.MAX_EMAX)):
                error = next(self._validator.iter_errors(value), None)
        except (re.error, RecursionError) as problem:
            raise Unjudged(str(problem)) from None
        return None if error is None else f"{error.json_path}: {error.message[:200]}"


class CallJudge:
    """Judges calls: known name, valid arguments, and typed as the definition says."""

    def __init__(self, schemas: Mapping[str, Any], document: Any) -> None:
        self._judges = {name: Judge(schema, closed=True) for name, schema in schemas.items()}
        self._types = {name: plain_types(document, name) for name in schemas}

    def fault(self, text: bytes, name: str, arguments: dict[str, Any]) -> str | None:
        """What is wrong with a call, as it was written or as it was read; None: nothing."""
        try:
            written = read_exactly(text)
        except ValueError as error:
            return f"no JSON: {error}"
        if list(written) != ["name", "arguments"] or written["name"] != name:
            return "no call of that function"
        if name not in self._judges:
            return "no such function"
        if not same(written["arguments"], arguments):
            return f"read as {arguments}"
        for key, kind in self._types[name].items():
            if key in arguments and type(arguments[key]) is not kind:
                return f"{key} is no {kind.__name__}"
        return self._judges[name].fault_of(written["arguments"])


def validator_module() -> Any:
    """jsonschema's validators; they are needed for nothing else."""
    try:
        return importlib.import_module("jsonschema.validators")
    except ImportError:
        raise CmmError(
            "the package jsonschema is not installed, and outputs are checked with it",
            advice="pip install jsonschema",
        ) from None


def read_exactly(text: bytes) -> Any:
    """The value of a JSON text, with decimals as they stand and no key twice."""
    return json.loads(text, parse_float=decimal_of, parse_constant=refuse, object_pairs_hook=once)


def decimal_of(text: str) -> Decimal:
    """The decimal of a text; its limit where the exponent is beyond those that Python has.

    >>> decimal_of("2.50"), decimal_of("-1e99999999999999999999")
    (Decimal('2.50'), Decimal('-Infinity'))
    """
    try:
        return Decimal(text)
    except decimal.InvalidOperation:
        sign = "-" if text.startswith("-") else ""
        return Decimal(sign + ("0" if "e-" in text.lower() else "Infinity"))


def refuse(name: str) -> None:
    raise ValueError(name)


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def is_integer(_: Any, value: Any) -> bool:
    """JSON Schema's integers: 2.0 is one."""
    if isinstance(value, Decimal):
        return value == value.to_integral_value()
    return isinstance(value, int) and not isinstance(value, bool)


def same(written: Any, read: Any) -> bool:
    """Is that the value, but for the rounding to floats and their bounds?"""
    if isinstance(written, dict):
        return list(written) == list(read) and all(same(written[k], read[k]) for k in written)
    if isinstance(written, list):
        return len(written) == len(read) and all(map(same, written, read))
    if isinstance(written, bool | str | None) or isinstance(read, bool | str | None):
        return type(written) is type(read) and bool(written == read)
    if isinstance(read, float):
        nearest = float(written)
        return read == nearest or nearest in (float("inf"), float("-inf"))
    return bool(written == read)


def plain_types(document: Any, name: str) -> dict[str, type]:
    """The Python types of a function's parameters, where its definition says them in a word."""
    entries = document.get("tools", [document]) if isinstance(document, dict) else document
    for entry in entries:
        entry = entry.get("function", entry) if isinstance(entry, dict) else {}
        if not isinstance(entry, dict) or entry.get("name") != name:
            continue
        named = entry.get("parameters")
        if not isinstance(named, dict):
            return {}
        named = named["properties"] if isinstance(named.get("properties"), dict) else named
        return {
            key: PYTHON_TYPES[schema["type"]]  # type: ignore[misc]
            for key, schema in named.items()
            if isinstance(schema, dict)
            and schema.keys() <= PLAIN
            and isinstance(schema.get("type"), str)
            and schema["type"] in PYTHON_TYPES
        }
    return {}


def shut(schema: Any) -> Any:
    """The schema with its objects closed where they name their keys and nothing else opens them."""
    if not isinstance(schema, dict):
        return schema
    shut_parts = {**schema}
    if isinstance(schema.get("properties"), dict):
        shut_parts["properties"] = {k: shut(part) for k, part in schema["properties"].items()}
    if isinstance(schema.get("items"), dict):
        shut_parts["items"] = shut(schema["items"])
    if "properties" in schema and not any(word in schema for word in COMBINED):
        shut_parts["additionalProperties"] = False
    return shut_parts
