"""The arguments of a function for a call format: as one JSON object, or each for itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cmm.grammar.content import Content, union
from cmm.grammar.contradiction import contradiction
from cmm.grammar.errors import Unsupported
from cmm.grammar.evaluate import Evaluator
from cmm.grammar.expressions import Raw
from cmm.grammar.functions import FunctionSchema
from cmm.grammar.json_schema import schema_nodes
from cmm.grammar.json_values import FREE_JSON
from cmm.grammar.lower import Lowering
from cmm.grammar.members import MOST_IN_ANY_ORDER, every_order
from cmm.grammar.nodes import Grammar, Node, optional, sequence
from cmm.grammar.objects import Objects
from cmm.grammar.recursion import deep_recursion
from cmm.grammar.values import Values


@dataclass(frozen=True)
class Argument:
    """One argument: its name, its value as JSON, and what it may contain if it is a string.

    `text` is None where other values than strings are allowed too; `listed` are the values of an
    enum among them.
    """

    name: str
    required: bool
    value: Node
    text: Content | None
    listed: tuple[str, ...] = ()


@dataclass
class Arguments:
    """What a format is given to spell a function's arguments; rules that it needs gather here."""

    function: FunctionSchema
    prefix: str = ""
    any_order: bool = False
    rules: dict[str, Node] = field(default_factory=dict)

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of all arguments together."""
        return {"type": "object", "properties": {}, **self.function.parameters}

    def as_object(self) -> Node:
        """All arguments as a JSON object."""
        root, rules = schema_nodes(
            self.schema, closed=True, any_order=self.any_order, prefix=self.prefix
        )
        self.rules |= rules
        return root

    def grammar(self) -> Grammar:
        """The grammar of that object alone."""
        return Grammar(self.as_object(), self.rules)

    def each(self) -> list[Argument]:
        """The arguments one by one; Unsupported where a schema says more than which there are."""
        with deep_recursion():
            evaluator = Evaluator(self.schema)
            lowering = Lowering(evaluator, True, self.any_order, prefix=self.prefix)
            objects = _one_by_one(evaluator.values(Raw("")), lowering)
            found = [
                Argument(
                    name,
                    name in objects.required,
                    lowering.node(expression),
                    _only_text(evaluator.values(expression)),
                    tuple(v for s in evaluator.values(expression).strings for v in s.values or ()),
                )
                for name, expression in lowering.all_named(objects)
                if evaluator.can_be(expression)
            ]
            error = contradiction(evaluator)
        if error is not None:
            raise error
        self.rules |= {**FREE_JSON, **lowering.rules}
        return found

    def ordered(self, units: Sequence[tuple[Node, bool]]) -> Node:
        """Units, of which some are required, in their order or in any."""
        if self.any_order and 1 < len(units) <= MOST_IN_ANY_ORDER:
            required = frozenset(i for i, (_, needed) in enumerate(units) if needed)
            return every_order([unit for unit, _ in units], required, sequence())
        return sequence(*(unit if needed else optional(unit) for unit, needed in units))


def _one_by_one(values: Values, lowering: Lowering) -> Objects:
    """The one set of objects, if every argument stands for itself."""
    why = None
    if len(values.objects) != 1:
        why = "alternatives between sets of arguments"
    elif values.objects[0].exists or values.objects[0].least or values.objects[0].most is not None:
        why = "a demand on the number of arguments, or on some that are not named"
    elif any(lowering.evaluator.can_be(e) for _, e in lowering.other_keys(values.objects[0])):
        why = "arguments that are not named"
    if why is not None:
        raise Unsupported(f"{why}, in a format that writes each by itself",
                          advice="use a JSON format (--format hermes)")  # fmt: skip
    return values.objects[0]


def _only_text(values: Values) -> Content | None:
    if not values.strings or Values(strings=values.strings) != values:
        return None
    return union(strings.automaton() for strings in values.strings)


def texts_of(function: FunctionSchema) -> frozenset[str]:
    """The arguments that are strings and nothing else.

    >>> f = FunctionSchema(name="f", parameters={"properties": {"s": {"type": "string"}, "n": {}}})
    >>> texts_of(f)
    frozenset({'s'})
    """
    return frozenset(a.name for a in Arguments(function).each() if a.text is not None)
