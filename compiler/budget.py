"""A limit on states, and which part of a schema breaks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from cmm.compiler.automaton import build_automaton
from cmm.compiler.determinise import DEFAULT_STATE_BUDGET
from cmm.grammar.errors import (
    CmmError,
    RowBudgetExceeded,
    StateBudgetExceeded,
    Unsupported,
    pointer,
)
from cmm.grammar.functions import FunctionSchema
from cmm.grammar.json_schema import schema_grammar
from cmm.grammar.type_words import LIST_KEYWORDS, MAPPING_KEYWORDS, SCHEMA_KEYWORDS

ADVICE = "simplify this part, or cmm compile --max-states"
TRIED = 2_000  # states with which parts are tried one by one: enough to tell, and quickly


def over_budget(
    schema: Any, budget: int = DEFAULT_STATE_BUDGET, error: CmmError | None = None
) -> Unsupported:
    """The error for a schema that needs too many states: the innermost part that costs much.

    `error` is what the compile ended with: of it is said if it was not the states.

    >>> word = {"type": "string", "pattern": "^(a|b)*a(a|b){11}$"}
    >>> print(over_budget({"properties": {"n": {"type": "null"}, "w": word}}, 3000))
    /properties/w: needs more than 3000 states (simplify this part, or cmm compile --max-states)
    """
    place, part = "", schema
    while (costly := _costliest(part, schema)) is not None:
        below, part = costly
        place += below
    rows = isinstance(error, RowBudgetExceeded)
    return Unsupported(
        error.problem if error and rows else f"needs more than {budget} states",
        place=place or None,
        advice=error.advice if error and rows else ADVICE,
    )


def calls_over_budget(
    functions: Sequence[FunctionSchema], budget: int, error: CmmError
) -> CmmError:
    """The same for calls: the first function that is too much by itself, if one is."""
    for function in functions:
        try:
            build_automaton(schema_grammar(function.parameters), budget)
        except StateBudgetExceeded:
            return function.located(over_budget(function.parameters, budget, error))
    return error


def _costliest(part: Any, whole: Any) -> tuple[str, Any] | None:
    """The part of a schema that needs the most states, if that is more than a part is given."""
    definitions = {key: whole[key] for key in ("$defs", "definitions") if key in whole}
    costs = [(_states({**definitions, **inner}), below, inner) for below, inner in _parts(part)]
    most = max(costs, key=lambda cost: cost[0], default=(0, "", None))
    return most[1:] if most[0] > TRIED else None


def _states(schema: Any) -> int:
    try:
        return len(build_automaton(schema_grammar(schema), TRIED).final)
    except StateBudgetExceeded:
        return TRIED + 1
    except CmmError:  # refused for another reason when it stands alone: it says nothing of cost
        return 0


def _parts(schema: Any) -> Iterator[tuple[str, Any]]:
    """The schemas that stand directly in a schema, with their pointers."""
    if not isinstance(schema, dict):
        return
    for key in schema:
        value = schema[key]
        if key in MAPPING_KEYWORDS and isinstance(value, dict):
            yield from ((pointer(key, k), v) for k, v in value.items() if isinstance(v, dict))
        elif key in LIST_KEYWORDS and isinstance(value, list):
            yield from ((pointer(key, i), v) for i, v in enumerate(value) if isinstance(v, dict))
        elif key in SCHEMA_KEYWORDS and isinstance(value, dict):
            yield pointer(key), value
