"""JSON values given the types of their schema: a number is a float, an integer an int."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from cmm.grammar.arrays import Arrays
from cmm.grammar.context import exact
from cmm.grammar.evaluate import Evaluator
from cmm.grammar.expressions import Expression, Raw
from cmm.grammar.objects import Objects
from cmm.grammar.values import ANYTHING


def typed_value(value: Any, schema: Any, *, in_order: bool = False) -> Any:
    """The value, which the schema accepts, with every number as the schema types it.

    With `in_order` keys are put in the order in which the schema names them.

    >>> typed_value({"a": 2, "n": [1]}, {"properties": {"a": {"type": "number"}}})
    {'a': 2.0, 'n': [1]}
    """
    return _Typing(Evaluator(schema), in_order).typed(value, Raw(""))


def is_typed(value: Any, schema: Any) -> bool:
    """Does the schema accept a value, as far as types are decided by that?

    >>> is_typed({"a": "x"}, {"properties": {"a": {"type": "number"}}})
    False
    """
    return _Typing(Evaluator(schema)).meets(value, Raw(""))


def as_float(value: int | float | str) -> float:
    """The nearest finite float: JSON has no infinity, and neither has a call.

    >>> as_float(2), as_float("-1e999") == -sys.float_info.max
    (2.0, True)
    """
    try:
        number = float(value)
    except OverflowError:  # an integer beyond every float
        number = math.inf if int(value) > 0 else -math.inf
    return max(-sys.float_info.max, min(sys.float_info.max, number))


def as_integer(value: int | float) -> int | float:
    """An integer as JSON's integers are written; other numbers as they are.

    >>> as_integer(2.0), as_integer(2.5)
    (2, 2.5)
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value


@dataclass(frozen=True)
class _Typing:
    evaluator: Evaluator
    in_order: bool = False

    def typed(self, value: Any, expression: Expression) -> Any:
        values = self.evaluator.values(expression)
        if values == ANYTHING or isinstance(value, bool | str | None):
            return value
        if isinstance(value, int | float):
            held = [numbers for numbers in values.numbers if numbers.holds(exact(value))]
            whole = all(numbers.integral or numbers.members is not None for numbers in held)
            return as_integer(value) if whole else as_float(value)
        if isinstance(value, list):
            arrays = self.case(value, values.arrays)
            return [self.typed(item, arrays.item(i)) for i, item in enumerate(value)]
        objects = self.case(value, values.objects)
        names = [name for name, _ in objects.named] + sorted(objects.required)
        first = {key: value[key] for key in names if key in value} if self.in_order else {}
        ordered = {**first, **value}
        return {key: self.typed(item, objects.of_key(key)) for key, item in ordered.items()}

    def case(self, value: Any, pieces: tuple[Any, ...]) -> Any:
        """The first set of a union that the value is in."""
        fits = self.in_arrays if isinstance(value, list) else self.in_objects
        return next((piece for piece in pieces if fits(value, piece)), pieces[0])

    def meets(self, value: Any, expression: Expression) -> bool:
        """Does a value meet an expression, in what its types are decided by?"""
        values = self.evaluator.values(expression)
        match value:
            case None:
                return values.null
            case bool():
                return value in values.booleans
            case str():
                return any(strings.holds(value) for strings in values.strings)
            case int() | float():
                return any(numbers.holds(exact(value)) for numbers in values.numbers)
            case list():
                return any(self.in_arrays(value, arrays) for arrays in values.arrays)
            case _:
                return any(self.in_objects(value, objects) for objects in values.objects)

    def in_arrays(self, value: list[Any], arrays: Arrays) -> bool:
        most = len(value) if arrays.most is None else arrays.most
        return arrays.least <= len(value) <= most and all(
            self.meets(item, arrays.item(i)) for i, item in enumerate(value)
        )

    def in_objects(self, value: dict[str, Any], objects: Objects) -> bool:
        return objects.required <= value.keys() and all(
            self.meets(item, objects.of_key(key)) for key, item in value.items()
        )
