"""Expressions worked out: from what schemas say to sets of values."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import reduce
from operator import or_
from typing import Any

from cmm.grammar.context import Context
from cmm.grammar.errors import InvalidInput, Unsupported
from cmm.grammar.expressions import All, Expression, Not, Raw, Some, Value, all_of
from cmm.grammar.keywords import evaluate_schema
from cmm.grammar.objects import Objects
from cmm.grammar.scalar_keywords import constant
from cmm.grammar.schema_document import SchemaDocument
from cmm.grammar.values import ANYTHING, NOTHING, Values

MANY_CASES = 8  # from so many on it is worth asking which of them are empty
# What taking sets of values together may cost, in states of the contents of strings: the costliest
# schemas that are of use need two thirds of it and three seconds; what needs more needs minutes.
MOST_COST = 2_500_000
COMBINATION_COST = 16  # of two sets without any string


class EndlessReference(InvalidInput):
    """A schema that only says: what I say."""


class Evaluator:
    """The values of every expression over one document, each worked out once.

    >>> evaluator = Evaluator({"anyOf": [{"type": "null"}, {"not": {"type": "boolean"}}]})
    >>> evaluator.values(Raw("")).booleans
    frozenset()
    """

    def __init__(self, schema: Any) -> None:
        self.document = SchemaDocument(schema)
        self.known: dict[Expression, Values] = {}
        self.open: set[Expression] = set()  # being worked out: a cycle through them says nothing
        self.possible: dict[Expression, bool] = {}
        self.cost = 0

    def values(self, expression: Expression) -> Values:
        """The set of values that an expression describes."""
        if expression in self.known:
            return self.known[expression]
        if expression in self.open:
            place = expression.place if isinstance(expression, Raw) else None
            raise EndlessReference("refers to itself without anything in between", place=place)
        self.open.add(expression)
        try:
            self.known[expression] = self._values(expression)
        finally:
            self.open.discard(expression)
        return self.known[expression]

    def _values(self, expression: Expression) -> Values:
        match expression:
            case Raw(place):
                return self._schema(place)
            case Value(text):
                return constant(json.loads(text))
            case All(parts):
                return reduce(self._both, map(self.values, _ordered(parts)), ANYTHING)
            case Some(parts):
                return reduce(or_, map(self.values, _ordered(parts)), NOTHING)
            case Not(part):
                return ~self.values(part)

    def _both(self, one: Values, other: Values) -> Values:
        return self.pruned(self.common(one, other))

    def common(self, one: Values, other: Values) -> Values:
        """The values of both; Unsupported once the schema has asked for too much of it."""
        both = one & other
        states = sum(len(strings.content.moves) for strings in both.strings)
        self.cost += COMBINATION_COST + states
        if self.cost > MOST_COST:
            raise Unsupported("combines its parts in too many ways", advice="say it in fewer parts")
        return both

    def _schema(self, place: str) -> Values:
        schema = self.document.at(place)
        if isinstance(schema, bool):
            return ANYTHING if schema else NOTHING
        return evaluate_schema(self.context(place))

    def context(self, place: str) -> Context:
        """The schema object at a place, with all that its keywords need to know."""
        schema = self.document.at(place)
        if not isinstance(schema, dict):
            raise InvalidInput("a schema is an object or a boolean", place=place)
        return Context(
            schema=schema,
            place=place,
            evaluate=self.values,
            resolve=self.document.resolve,
            disjoint=self.disjoint,
            pruned=self.pruned,
            inner=self.context,
            old=self.document.old,
        )

    def pruned(self, values: Values) -> Values:
        """The same set; where it has many cases, without those that have no value."""
        if len(values.arrays) + len(values.objects) < MANY_CASES:
            return values
        return replace(
            values,
            arrays=tuple(filter(self.any_array, values.arrays)),
            objects=tuple(filter(self.any_object, values.objects)),
        )

    def disjoint(self, one: Values, other: Values) -> bool:
        """Do two sets surely have no value in common?"""
        return not self.any_value(self.common(one, other))

    def any_value(self, values: Values) -> bool:
        """May there be a value? False is sure."""
        return (
            values.null
            or bool(values.booleans or values.numbers or values.strings)
            or any(map(self.any_array, values.arrays))
            or any(map(self.any_object, values.objects))
        )

    def any_array(self, arrays: Any) -> bool:
        """May there be such an array?"""
        return all(self.can_be(arrays.item(i)) for i in range(min(arrays.least, 64))) and all(
            self.can_be(all_of([contains.item])) for contains in arrays.contains if contains.least
        )

    def any_object(self, objects: Objects) -> bool:
        """May there be such an object?"""
        return all(self.can_be(objects.of_key(name)) for name in objects.required)

    def can_be(self, expression: Expression) -> bool:
        """May a value meet the expression? Where that depends on itself it is taken to be so."""
        if expression in self.open:
            return True
        if expression not in self.possible:
            self.possible[expression] = True
            try:
                self.possible[expression] = self.any_value(self.values(expression))
            except EndlessReference:  # asked for amid its own evaluation
                return self.possible.pop(expression)
        return self.possible[expression]


def _ordered(parts: frozenset[Expression]) -> list[Expression]:
    """The parts in the order of the document, so that keys come in it, and runs are alike."""
    return sorted(parts, key=_sort_key)


def _sort_key(expression: Expression) -> list[str | int]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", repr(expression))]
