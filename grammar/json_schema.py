"""JSON Schema as grammar: each keyword is enforced or refused, never dropped."""

from __future__ import annotations

from typing import Any

from cmm.grammar.contradiction import contradiction
from cmm.grammar.evaluate import Evaluator
from cmm.grammar.expressions import Raw
from cmm.grammar.inlining import inline
from cmm.grammar.json_values import FREE_JSON
from cmm.grammar.lower import Lowering
from cmm.grammar.nodes import Grammar, Node
from cmm.grammar.recursion import deep_recursion


def schema_grammar(schema: Any, *, any_order: bool = False) -> Grammar:
    """The grammar of the values that a JSON Schema accepts, objects open as the standard says.

    >>> print(schema_grammar({"type": ["boolean", "null"]}))
    root = "null" | "false" | "true"

    Raises Unsupported for what cannot be enforced, InvalidInput for a wrong schema, both with a
    JSON pointer.
    """
    root, rules = schema_nodes(schema, any_order=any_order)
    return Grammar(root, rules)


def schema_nodes(
    schema: Any, *, closed: bool = False, any_order: bool = False, prefix: str = ""
) -> tuple[Node, dict[str, Node]]:
    """The node of a schema and the rules it refers to, whose names begin with the prefix.

    `closed`: an object whose schema names keys has no others unless it says so. `any_order`: the
    named keys of an object, if they are few (`MOST_IN_ANY_ORDER`), come in any order.
    """
    with deep_recursion():
        evaluator = Evaluator(schema)
        lowering = Lowering(evaluator, closed, any_order, prefix=prefix)
        root, rules = inline(lowering.node(Raw("")), lowering.rules)
        error = contradiction(evaluator)
    if error is not None:
        raise error
    return root, {**FREE_JSON, **rules}
