"""`unevaluatedProperties` and `unevaluatedItems`: which keys and items a schema has spoken of.

That depends on which of its parts a value passes, so there is a case for each choice of them: the
values of the case, and what was spoken of in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cmm.grammar.content import Content
from cmm.grammar.errors import Unsupported
from cmm.grammar.expressions import FALSE, TRUE, Expression
from cmm.grammar.objects import KeyRules, Objects
from cmm.grammar.values import ANYTHING, Values

MOST_CASES = 64


@dataclass(frozen=True)
class Seen:
    """What schemas spoke of: keys by name and by pattern, items by place and by what they meet."""

    names: frozenset[str] = frozenset()
    patterns: frozenset[Content] = frozenset()
    all_keys: bool = False
    prefix: int = 0
    contains: frozenset[Expression] = frozenset()
    all_items: bool = False

    def __or__(self, other: Seen) -> Seen:
        """What either spoke of.

        >>> (Seen(prefix=2) | Seen(frozenset("a"))) == Seen(frozenset("a"), prefix=2)
        True
        """
        return Seen(
            self.names | other.names,
            self.patterns | other.patterns,
            self.all_keys or other.all_keys,
            max(self.prefix, other.prefix),
            self.contains | other.contains,
            self.all_items or other.all_items,
        )

    def rules(self, others: Expression) -> KeyRules | None:
        """What keys must meet of which nothing spoke; None where all were spoken of."""
        if self.all_keys:
            return None
        return KeyRules(self.names, tuple((content, TRUE) for content in self.patterns), others)


Case = tuple[Values, Seen]


@dataclass(frozen=True)
class Parts:
    """A schema as far as it matters here: what it speaks of itself, and its parts that may too."""

    own: Seen
    always: tuple[Expression, ...] = ()  # allOf, $ref
    perhaps: tuple[Expression, ...] = ()  # anyOf, oneOf
    condition: tuple[Expression, Expression, Expression] | None = None  # if, then, else
    beside: tuple[tuple[str, Expression], ...] = ()  # dependentSchemas


class Cases:
    """The cases of expressions; `parts` reads a schema, `values` works an expression out."""

    def __init__(
        self, parts: Callable[[Expression], Parts], values: Callable[[Expression], Values]
    ) -> None:
        self.parts, self.values = parts, values
        self.open: set[Expression] = set()

    def of(self, expression: Expression) -> list[Case]:
        """The cases in which a value may pass the expression."""
        if expression in (TRUE, FALSE):
            return [(ANYTHING, Seen())]
        if expression in self.open:
            raise Unsupported("what is unevaluated depends on itself")
        self.open.add(expression)
        try:
            return self.of_parts(self.parts(expression))
        finally:
            self.open.discard(expression)

    def of_parts(self, parts: Parts) -> list[Case]:
        """The cases of a schema taken apart."""
        found: list[Case] = [(ANYTHING, parts.own)]
        for part in parts.always:
            found = self.both(found, self.of(part))
        for part in parts.perhaps:
            found = self.both(found, self.branch(self.values(part), self.of(part)))
        for name, part in parts.beside:
            has = Values(objects=(Objects(((name, TRUE),), required=frozenset({name})),))
            found = self.both(found, self.branch(has, self.of(part)))
        if parts.condition:
            test, then, other = parts.condition
            passed = self.both(
                [(self.values(test), Seen())], self.both(self.of(test), self.of(then))
            )
            failed = self.both([(~self.values(test), Seen())], self.of(other))
            found = self.both(found, [*passed, *failed])
        return found

    def branch(self, passing: Values, cases: list[Case]) -> list[Case]:
        """A part that may fail, and then has spoken of nothing."""
        if all(seen == Seen() for _, seen in cases):
            return [(ANYTHING, Seen())]
        return [*self.both([(passing, Seen())], cases), (~passing, Seen())]

    def both(self, some: Iterable[Case], others: Iterable[Case]) -> list[Case]:
        """The cases of two schemas that both hold."""
        others = list(others)
        pairs = [(a & b, seen | more) for a, seen in some for b, more in others]
        found = [(values, seen) for values, seen in pairs if not values.is_empty]
        if len(found) > MOST_CASES:
            raise Unsupported("what is unevaluated differs in too many cases")
        return found
