"""A schema being read: where it stands, and how what it holds is worked out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cmm.grammar.content import Content
from cmm.grammar.errors import CmmError, InvalidInput, pointer
from cmm.grammar.expressions import FALSE, TRUE, Expression, Raw
from cmm.grammar.pattern import pattern_content
from cmm.grammar.values import Values

Evaluate = Callable[[Expression], Values]
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Context:
    """Where a schema stands, and how the schemas it holds are evaluated."""

    schema: Schema
    place: str
    evaluate: Evaluate
    resolve: Callable[[str, str], str]
    disjoint: Callable[[Values, Values], bool]
    pruned: Callable[[Values], Values]
    inner: Callable[[str], Context]  # the schema object at a place
    old: bool  # a draft in which $ref hides its siblings and items may be a list

    def below(self, *keys: str | int) -> str:
        """The pointer of something in the schema."""
        return self.place + pointer(*keys)

    def expression(self, *keys: str | int) -> Expression:
        """The schema at some keys below this one, as an expression."""
        value: Any = self.schema
        for key in keys:
            value = value[key]
        if isinstance(value, bool):
            return TRUE if value else FALSE
        if not isinstance(value, dict):
            raise InvalidInput("a schema is an object or a boolean", place=self.below(*keys))
        return Raw(self.below(*keys)) if value else TRUE

    def listed(self, key: str) -> list[Expression]:
        """The schemas in the list of a keyword."""
        value = self.schema[key]
        if not isinstance(value, list) or not value:
            raise InvalidInput(f"{key} needs a list of schemas", place=self.below(key))
        return [self.expression(key, i) for i in range(len(value))]

    def mapped(self, key: str) -> dict[str, Expression]:
        """The schemas by name of a keyword."""
        value = self.schema.get(key, {})
        if not isinstance(value, dict):
            raise InvalidInput(f"{key} is an object of schemas", place=self.below(key))
        return {name: self.expression(key, name) for name in value}

    def count(self, key: str, default: int | None = None) -> int | None:
        """A keyword's number of things, which is a whole number from 0."""
        value = self.schema.get(key, default)
        if value is None or (isinstance(value, float) and value.is_integer() and value >= 0):
            return None if value is None else int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidInput(f"{key} is a whole number from 0", place=self.below(key))
        return value

    def number(self, key: str) -> Fraction:
        """A keyword's number, exactly."""
        value = self.schema[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(f"{key} is a number", place=self.below(key))
        return exact(value)

    def names(self, key: str) -> list[str]:
        """A keyword's list of property names."""
        value = self.schema.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise InvalidInput(f"{key} is a list of names", place=self.below(key))
        return value


def exact(value: int | float) -> Fraction:
    """The number that a JSON text wrote, as it was written.

    >>> exact(0.1)
    Fraction(1, 10)
    """
    return Fraction(value) if isinstance(value, int) else Fraction(Decimal(repr(value)))


def content_of(pattern: Any, place: str) -> Content:
    """The texts that a pattern at a place is found in."""
    if not isinstance(pattern, str):
        raise InvalidInput("a pattern is a string", place=place)
    try:
        return pattern_content(pattern)
    except CmmError as error:
        raise error.located(below=place) from None
