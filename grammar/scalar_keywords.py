"""The keywords that speak of types, values, numbers and strings: what each demands."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from cmm.grammar.arrays import Arrays
from cmm.grammar.context import Context, content_of, exact
from cmm.grammar.errors import InvalidInput, listed
from cmm.grammar.expressions import FALSE, Value
from cmm.grammar.numbers import Numbers
from cmm.grammar.objects import KeyRules, Objects
from cmm.grammar.string_formats import format_content
from cmm.grammar.strings import Strings
from cmm.grammar.type_words import TYPES
from cmm.grammar.values import ANYTHING, NOTHING, Values, of_type, only


def type_values(at: Context) -> Values:
    """`type`, one or a list; `nullable` adds null."""
    words = at.schema["type"]
    found = of_type("null") if at.schema.get("nullable") is True else NOTHING
    for word in words if isinstance(words, list) else [words]:
        if word not in TYPES:
            raise InvalidInput(
                f"there is no type {word!r}",
                place=at.below("type"),
                advice=f"use one of {listed(TYPES)}",
            )
        found |= of_type(word)
    return found


def enum_values(at: Context) -> Values:
    """`enum`: the values of a list."""
    values = at.schema["enum"]
    if not isinstance(values, list):
        raise InvalidInput("enum needs a list of values", place=at.below("enum"))
    strings = tuple(dict.fromkeys(v for v in values if isinstance(v, str)))
    numbers = frozenset(
        exact(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)
    )
    found = Values(
        null=None in values,
        booleans=frozenset(v for v in values if isinstance(v, bool)),
        numbers=(Numbers(members=numbers),) if numbers else (),
        strings=(Strings(values=strings),) if strings else (),
    )
    for value in values:
        if isinstance(value, list | dict):
            found |= constant(value)
    return found


def const_values(at: Context) -> Values:
    """`const`: one value."""
    return constant(at.schema["const"])


def constant(value: Any) -> Values:
    """The set of one JSON value.

    >>> constant(2).numbers[0].members
    frozenset({Fraction(2, 1)})
    """
    match value:
        case None | bool():
            booleans = frozenset() if value is None else frozenset({value})
            return Values(null=value is None, booleans=booleans)
        case str():
            return Values(strings=(Strings(values=(value,)),))
        case int() | float():
            return Values(numbers=(Numbers(members=frozenset({exact(value)})),))
        case list():
            items = tuple(Value(json.dumps(item)) for item in value)
            return Values(arrays=(Arrays(items, FALSE, len(items), len(items)),))
        case _:
            named = tuple((key, Value(json.dumps(item))) for key, item in value.items())
            rules = KeyRules(names=frozenset(value), additional=FALSE)
            return Values(objects=(Objects(named, (rules,), frozenset(value)),))


def bounded(at: Context) -> Values:
    """`minimum`, `maximum` and their exclusive forms."""
    low = _bound(at, "minimum", "exclusiveMinimum", max)
    high = _bound(at, "maximum", "exclusiveMaximum", min)
    return only(numbers=tuple(filter(None, [Numbers(low=low) & Numbers(high=high)])))


def _bound(
    at: Context, key: str, exclusive: str, tighter: Callable[..., Any]
) -> tuple[Fraction, bool] | None:
    """The bound that both spellings of it give; the old one makes `exclusive` a boolean."""
    given = at.schema.get(exclusive)
    found = []
    if key in at.schema:
        found.append((at.number(key), given is True))
    if exclusive in at.schema and not isinstance(given, bool):
        found.append((at.number(exclusive), True))
    sign = 1 if key == "minimum" else -1
    return max(found, key=lambda bound: (sign * bound[0], bound[1]), default=None)


def multiples(at: Context) -> Values:
    """`multipleOf`."""
    step = at.number("multipleOf")
    if step <= 0:
        raise InvalidInput("multipleOf is a number above 0", place=at.below("multipleOf"))
    return only(numbers=(Numbers(steps=frozenset({step})),))


def of_length(at: Context) -> Values:
    """`minLength` and `maxLength`."""
    least, most = at.count("minLength", 0), at.count("maxLength")
    strings = Strings(least=least or 0, most=most)
    return only(strings=() if strings.surely_empty() else (strings,))


def of_pattern(at: Context) -> Values:
    """`pattern`: strings in which it is found."""
    return only(strings=(Strings(content=content_of(at.schema["pattern"], at.below("pattern"))),))


# Formats of numbers: the bounds of the integers, none for floats. (OpenAPI 3.1, format registry.)
NUMBER_FORMATS = {
    "int32": Numbers(low=(Fraction(-(2**31)), False), high=(Fraction(2**31 - 1), False)),
    "int64": Numbers(low=(Fraction(-(2**63)), False), high=(Fraction(2**63 - 1), False)),
    "float": Numbers(),
    "double": Numbers(),
}


def of_format(at: Context) -> Values:
    """`format` of strings and of numbers; an unknown one is an annotation."""
    name = at.schema["format"]
    if not isinstance(name, str):
        raise InvalidInput("format is a text", place=at.below("format"))
    if name in NUMBER_FORMATS:
        return only(numbers=(NUMBER_FORMATS[name],))
    content = format_content(name)
    if content is None:
        warnings.warn(f"{at.below('format')}: the format {name!r} is unknown, and not enforced",
                      stacklevel=2)  # fmt: skip
        return ANYTHING
    return only(strings=(Strings(content=content),))
