"""Call formats: how a call is written by the model, and read back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cmm.grammar.errors import CmmError
from cmm.grammar.functions import FunctionSchema
from cmm.grammar.json_schema import schema_nodes
from cmm.grammar.nodes import Grammar, Literal, Node, choice, quoted, sequence
from cmm.grammar.typed import as_float, typed_value

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class CallFormat:
    """One way of writing a call: its node for a function, and its parser.

    `prompt_suffix` is what stands before the call and belongs to the prompt, control tokens
    included. `spell` writes one call from the function and the node of its arguments; `read`
    takes a written call apart.
    """

    name: str
    prompt_suffix: str
    spell: Callable[[FunctionSchema, Node], Node]
    read: Callable[[str], Call]

    def grammar(self, functions: Sequence[FunctionSchema], *, any_order: bool = False) -> Grammar:
        """The grammar of the calls of these functions; `any_order` of arguments if they are few."""
        calls: list[Node] = []
        rules: dict[str, Node] = {}
        for i, function in enumerate(functions):
            schema = {"type": "object", "properties": {}, **function.parameters}
            try:
                arguments, more = schema_nodes(
                    schema, closed=True, any_order=any_order, prefix=f"f{i}_"
                )
            except CmmError as error:
                raise error.moved(function.place_of) from None
            calls.append(self.spell(function, arguments))
            rules |= more
        return Grammar(choice(calls), rules)

    def parse(self, text: str, functions: Sequence[FunctionSchema]) -> Call:
        """Name and typed arguments of a written call.

        >>> f = FunctionSchema(name="f", parameters={"properties": {"a": {"type": "number"}}})
        >>> HERMES.parse('{"name": "f", "arguments": {"a": 2}}', [f])
        ('f', {'a': 2.0})
        """
        name, arguments = self.read(text)
        schema = next(function.parameters for function in functions if function.name == name)
        return name, typed_value(arguments, schema)


def _spell_hermes(function: FunctionSchema, arguments: Node) -> Node:
    return sequence(
        Literal('{"name": '), quoted(function.name), Literal(', "arguments": '),
        arguments, Literal("}"),
    )  # fmt: skip


def _read_hermes(text: str) -> Call:
    call = json.loads(text, parse_float=as_float)
    return call["name"], call["arguments"]


# Qwen2.5, Qwen3 and the Hermes models: {"name": "f", "arguments": {"a": 1}} in <tool_call> tags.
HERMES = CallFormat("hermes", "<tool_call>\n", _spell_hermes, _read_hermes)


def call_grammar(functions: Sequence[FunctionSchema], form: CallFormat = HERMES) -> Grammar:
    """The grammar of every valid call of the functions.

    >>> print(call_grammar([FunctionSchema(name="now", parameters={})]))
    root = "{\\"name\\": \\"now\\", \\"arguments\\": " ("{" joined by ", "(nothing) "}") "}"
    """
    return form.grammar(functions)
