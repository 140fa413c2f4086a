"""A schema looked over: what of it is refused, and what is read but constrains nothing."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cmm.grammar.errors import Unsupported, pointer
from cmm.grammar.json_schema import schema_nodes
from cmm.grammar.keywords import ANNOTATIONS, ENFORCED, REFUSED
from cmm.grammar.scalar_keywords import NUMBER_FORMATS
from cmm.grammar.schema_document import SchemaDocument
from cmm.grammar.string_formats import FORMATS

# Where schemas stand in a schema: the keyword's own value, each value of it, each of a list.
INNER = frozenset({
    "items", "additionalItems", "additionalProperties", "contains", "propertyNames", "not", "if",
    "then", "else", "unevaluatedItems", "unevaluatedProperties",
})  # fmt: skip
MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas",
                  "dependencies"})  # fmt: skip
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems", "items"})


@dataclass(frozen=True)
class Finding:
    """Something at a place of a schema, and why it is not enforced."""

    keyword: str
    place: str
    reason: str


def subschemas(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema object with its place; data in `enum` and the like are none.

    >>> [place for place, _ in subschemas({"items": {"enum": [{"a": 1}]}, "allOf": [{}, True]})]
    ['', '/items', '/allOf/0']
    """
    if not isinstance(schema, dict):
        return
    yield place, schema
    for keyword, value in schema.items():
        if keyword in INNER:
            yield from subschemas(value, place + pointer(keyword))
        if keyword in MAPS and isinstance(value, dict):
            for name, inner in value.items():
                yield from subschemas(inner, place + pointer(keyword, name))
        if keyword in LISTS and isinstance(value, list):
            for i, inner in enumerate(value):
                yield from subschemas(inner, place + pointer(keyword, i))


def ignored(schema: Any) -> Iterator[Finding]:
    """Annotations, unknown keywords and unknown formats: the standard lets them be ignored.

    >>> [found.keyword for found in ignored({"title": "T", "colour": 1, "format": "shade"})]
    ['title', 'colour', 'format']
    """
    for place, found in subschemas(schema):
        for keyword, value in found.items():
            if keyword in ANNOTATIONS:
                yield Finding(keyword, place + pointer(keyword), "annotation")
            elif keyword not in ENFORCED and keyword not in REFUSED:
                yield Finding(keyword, place + pointer(keyword), "unknown keyword")
            elif keyword == "format" and value not in FORMATS | NUMBER_FORMATS.keys():
                yield Finding(keyword, place + pointer(keyword), f"unknown format {value!r}")


def refused(schema: Any, *, closed: bool = False, most: int = 20) -> list[Finding]:
    """What cannot be enforced: the schema without what was found is looked at again.

    >>> refused({"properties": {"a": {"disallow": "null"}}})[0].place
    '/properties/a/disallow'
    """
    schema = copy.deepcopy(schema)
    found: list[Finding] = []
    while len(found) < most:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                schema_nodes(schema, closed=closed)
        except Unsupported as error:
            place = error.place or ""
            reason = error.problem + (f" ({error.advice})" if error.advice else "")
            found.append(Finding(place.rpartition("/")[2], place, reason))
            if not _without(schema, place):
                break
        else:
            break
    return found


def _without(schema: Any, place: str) -> bool:
    """Take the keyword at a place out of the schema; False where none stands there."""
    parent, _, keyword = place.rpartition("/")
    holder = SchemaDocument(schema).at(parent) if keyword in ENFORCED | REFUSED.keys() else None
    if not isinstance(holder, dict) or keyword not in holder:
        return False
    del holder[keyword]
    return True
