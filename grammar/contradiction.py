"""Why a schema has no value at all: the innermost part of it that has none."""

from __future__ import annotations

from cmm.grammar.errors import InvalidInput, listed
from cmm.grammar.evaluate import Evaluator
from cmm.grammar.expressions import Raw
from cmm.grammar.keywords import ENFORCED


def contradiction(evaluator: Evaluator) -> InvalidInput | None:
    """The error that names what contradicts itself, None where there may be a value.

    >>> print(contradiction(Evaluator({"items": {"type": "null", "enum": [1]}, "minItems": 1,
    ...     "type": "array"})))
    /items: no value can meet "type" and "enum" together
    """
    if evaluator.can_be(Raw("")):
        return None
    empty = [
        expression.place
        for expression, possible in list(evaluator.possible.items())
        if isinstance(expression, Raw) and not possible
    ]
    place = max(empty, key=lambda place: place.count("/"))
    schema = evaluator.document.at(place)
    keywords = [key for key in schema if key in ENFORCED] if isinstance(schema, dict) else []
    if len(keywords) < 2:
        problem = f"no value can meet {listed(keywords) or 'this'}"
    else:
        problem = f"no value can meet {listed(keywords[:-1])} and {listed(keywords[-1:])} together"
    return InvalidInput(problem, place=place or None)
