"""Sets of values as grammar nodes: how each value is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from cmm.grammar.arrays import Arrays
from cmm.grammar.contained import contained_items
from cmm.grammar.content import Content, texts, union
from cmm.grammar.errors import CmmError, Unsupported
from cmm.grammar.evaluate import Evaluator
from cmm.grammar.expressions import TRUE, Expression, all_of, place_of
from cmm.grammar.json_values import (
    ANY_ARRAY,
    ANY_OBJECT,
    ANY_VALUE,
    COMMA,
    INTEGER,
    NULL,
    NUMBER,
    items_of,
    object_of,
)
from cmm.grammar.members import Members
from cmm.grammar.nodes import (
    NEVER,
    Counted,
    Distinct,
    Literal,
    Node,
    Reference,
    Repeat,
    Spelled,
    Text,
    choice,
    optional,
    quoted,
    sequence,
)
from cmm.grammar.numbers import Numbers, decimals
from cmm.grammar.objects import KeyRules, Objects
from cmm.grammar.strings import Strings
from cmm.grammar.values import ANYTHING, Values

FEW_KEYS = 64  # so many keys of a pattern are written out, in their order, each at most once


@dataclass
class Lowering:
    """The nodes of expressions; containers are rules, for they may come again or in themselves.

    In a `closed` lowering an object whose schemas name keys has no others, unless they say so.
    """

    evaluator: Evaluator
    closed: bool = False
    any_order: bool = False
    prefix: str = ""
    rules: dict[str, Node] = field(default_factory=dict)
    known: dict[Expression, Node] = field(default_factory=dict)

    def node(self, expression: Expression) -> Node:
        """The node of all values that meet an expression."""
        if expression == TRUE:
            return ANY_VALUE
        if expression in self.known:
            return self.known[expression]
        values = self.evaluator.values(expression)
        if values == ANYTHING:
            return ANY_VALUE
        kinds: list[tuple[Any, Any, Node, Callable[[Any], Node]]] = [
            (values.arrays, (Arrays(),), ANY_ARRAY, lambda pieces: choice(map(self.array, pieces))),
            (values.objects, (Objects(),), ANY_OBJECT, self.all_objects),
        ]
        free = [node for pieces, everything, node, _ in kinds if pieces == everything]
        written = [(pieces, lower) for pieces, everything, _, lower in kinds
                   if pieces and pieces != everything]  # fmt: skip
        names = [f"{self.prefix}value{len(self.known)}{'ab'[i]}" for i in range(len(written))]
        scalars = self.scalars(values)
        self.known[expression] = choice([*scalars, *free, *map(Reference, names)])
        for name, (pieces, lower) in zip(names, written, strict=True):
            try:
                self.rules[name] = lower(pieces)
            except CmmError as error:
                place = error.place or ""  # a bare keyword is one of this very schema
                if place.startswith("/"):
                    raise
                below = place_of(expression) + ("/" if place else "")
                raise error.located(below=below) from None
        return self.known[expression]

    def scalars(self, values: Values) -> Iterator[Node]:
        """The nodes of null, booleans, numbers and strings."""
        if values.null:
            yield NULL
        yield from (Literal(json.dumps(value)) for value in sorted(values.booleans))
        yield from map(number_node, values.numbers)
        yield from map(string_node, values.strings)

    def array(self, arrays: Arrays) -> Node:
        """The node of one set of arrays."""
        if must_differ(arrays) and self.are_endless_strings(arrays):
            return Counted(self.node(arrays.rest), arrays.least, arrays.most, unique=True)
        if self.is_counted(arrays):
            if not self.evaluator.can_be(arrays.rest):
                return Literal("[]") if arrays.least == 0 else NEVER
            return Counted(self.node(arrays.rest), arrays.least, arrays.most)
        return items_of(self.items(arrays))

    def are_endless_strings(self, arrays: Arrays) -> bool:
        """Are all items strings that can always go on? Then one that is there already can be left.

        Anything else, begun like an item that is there, may have no other end.
        """
        values = self.evaluator.values(arrays.rest)
        if Values(strings=values.strings) != values or arrays.prefix or arrays.contains:
            return False
        endless = (
            strings.values is None
            and strings.most is None
            and all(end is None for end in strings.content.longest())
            for strings in values.strings
        )
        return bool(values.strings) and all(endless)

    def is_counted(self, arrays: Arrays) -> bool:
        """Are there bounds on the number of items, and all items alike?"""
        bounded = arrays.least > 1 or (arrays.most is not None and arrays.most > 1)
        return bounded and not (arrays.prefix or arrays.contains or arrays.unique)

    def items(self, arrays: Arrays) -> Node:
        if arrays.contains:
            if arrays.unique:
                raise Unsupported("uniqueItems beside contains", place="uniqueItems")
            return contained_items(arrays, self.unit)
        units = [self.unit(item) for item in arrays.prefix]
        rest = self.unit(arrays.rest)
        least, most = arrays.least, arrays.most
        if must_differ(arrays):
            return self.unique_items(arrays)
        if most is not None and most <= len(units):
            units, rest = units[:most], NEVER
        fixed = len(units)
        more = Repeat(rest, max(least - fixed, 0), None if most is None else max(most - fixed, 0))
        tail: Node = sequence() if rest is NEVER and least <= fixed else more
        for position in reversed(range(fixed)):
            taken = sequence(units[position], tail)
            tail = taken if position < least else optional(taken)
        return tail

    def unit(self, item: Expression) -> Node:
        """An item and the comma before it."""
        if not self.evaluator.can_be(item):
            return NEVER
        return sequence(Literal(COMMA), self.node(item))

    def unique_items(self, arrays: Arrays) -> Node:
        """Items that all differ, where they have few values: each in turn, and then the others."""
        values = self.evaluator.values(arrays.rest)
        options = _few_values(values) if not arrays.prefix else None
        if options is None:
            raise Unsupported("uniqueItems, but for items of few values", place="uniqueItems")
        known: dict[frozenset[int], Node] = {}

        def after(left: frozenset[int], taken: int) -> Node:
            if left not in known:
                follow = [
                    sequence(Literal(COMMA), options[i], after(left - {i}, taken + 1))
                    for i in sorted(left)
                    if arrays.most is None or taken < arrays.most
                ]
                known[left] = choice([sequence(), *follow] if taken >= arrays.least else follow)
            return known[left]

        return after(frozenset(range(len(options))), 0)

    def all_objects(self, pieces: Sequence[Objects]) -> Node:
        """The node of sets of objects; in one frame, so that keys can be seen to differ."""
        if len(pieces) == 1:
            return self.object(pieces[0])
        apart = [without_names(self.members(piece)) for piece in pieces]
        if any(m.distinct for m in apart) and all(m.endless for m in apart):
            return Distinct(choice([replace(m, all_ticked=True).node() for m in apart]))
        return choice([object_of(m.node()) for m in apart])

    def object(self, objects: Objects) -> Node:
        """The node of one set of objects."""
        members = self.members(objects)
        if members.distinct:
            return Distinct(members.node(), frozenset(name for name, _ in members.named))
        return object_of(without_names(members).node())

    def members(self, objects: Objects) -> Members:
        """The members of a set of objects; where few keys match a pattern, these are named ones."""
        named = self.all_named(objects)
        classes = []
        for content, expression in self.other_keys(objects):
            if not self.evaluator.can_be(expression):
                continue
            few = content.finite(FEW_KEYS)
            if few is None:
                classes.append((content, expression))
            else:
                taken = {name for name, _ in named}
                named += [(key, expression) for key in few if key not in taken]
        return Members(objects, named, classes, self.value, self.any_order)

    def value(self, expression: Expression) -> Node | None:
        """The node of a member's value; None where there is none."""
        return self.node(expression) if self.evaluator.can_be(expression) else None

    def all_named(self, objects: Objects) -> list[tuple[str, Expression]]:
        """The named keys and those that are required without being named."""
        names = [name for name, _ in objects.named]
        more = sorted(objects.required - set(names))
        return [*objects.named, *((name, objects.of_key(name)) for name in more)]

    def other_keys(self, objects: Objects) -> Iterator[tuple[Content, Expression]]:
        """The keys that are not named, by what their values must meet."""
        keys = objects.keys
        speaks = objects.named or objects.required or objects.rules
        if self.closed and speaks and not _says_additional(objects):
            keys &= union(content for rules in objects.rules for content, _ in rules.patterns)
        return _key_classes(keys, objects.rules)


def without_names(members: Members) -> Members:
    """The members with the named ones taken out of the others by their content."""
    if not members.classes:
        return members
    names = texts(name for name, _ in members.named)
    classes = [(content - names, expression) for content, expression in members.classes]
    return replace(members, classes=[each for each in classes if not each[0].is_empty])


def _says_additional(objects: Objects) -> bool:
    """Does any schema say what further keys there may be?"""
    return any(rules.additional is not None for rules in objects.rules)


def _key_classes(keys: Content, rules: Sequence[KeyRules]) -> Iterator[tuple[Content, Expression]]:
    """Keys that are not named, by what all rules together say of their values."""
    classes: list[tuple[Content, Expression]] = [] if keys.is_empty else [(keys, TRUE)]
    for each in rules:
        split = [(content, found, False) for content, found in classes]
        for pattern, expression in each.patterns:  # few of all combinations have any key
            split = [
                part
                for content, found, hit in split
                for part in (
                    (content & pattern, all_of([found, expression]), True),
                    (content - pattern, found, hit),
                )
                if not part[0].is_empty
            ]
        additional = TRUE if each.additional is None else each.additional
        classes = [
            (content, found if hit else all_of([found, additional]))
            for content, found, hit in split
        ]
    by_demand: dict[Expression, Content] = {}
    for content, expression in classes:
        known = by_demand.get(expression)
        by_demand[expression] = content if known is None else known | content
    yield from ((content, expression) for expression, content in by_demand.items())


def must_differ(arrays: Arrays) -> bool:
    """May there be two items, which must not be the same?"""
    return arrays.unique and (arrays.most is None or arrays.most > 1)


def number_node(numbers: Numbers) -> Node:
    """The node of one set of numbers."""
    if numbers == Numbers():
        return NUMBER
    if numbers == Numbers(integral=True):
        return INTEGER
    if numbers.members is not None:
        return choice(Literal(_decimal(value)) for value in sorted(numbers.members))
    return Spelled(decimals(numbers))


def _decimal(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else json.dumps(float(value))


def counted_apart(
    content: Content, least: int, most: int | None
) -> tuple[Content, int, int | None]:
    """A number of characters of one kind, as in `^[a-z]{3,900}$`, as that kind and a length.

    >>> from cmm.grammar.pattern import pattern_content
    >>> content, *lengths = counted_apart(pattern_content("^[ab]{3,900}$"), 0, 10)
    >>> len(content.moves), lengths
    (1, [3, 10])
    """
    last = len(content.moves) - 1
    spans = [move[:2] for move in content.moves[0]]
    chain = all(
        list(row) == [(*span, state + 1) for span in spans]
        for state, row in enumerate(content.moves[:-1])
    )
    first = content.final.index(True) if True in content.final else last
    if not last or not chain or content.moves[last] or not all(content.final[first:]):
        return content, least, most
    kind = Content((tuple((low, high, 0) for low, high in spans),), (True,))
    return kind, max(least, first), last if most is None else min(most, last)


def string_node(strings: Strings) -> Node:
    """The node of one set of strings; lengths stay beside the content where that is exact."""
    if strings.values is not None:
        return choice(map(quoted, strings.values))
    content, least, most = counted_apart(strings.content, strings.least, strings.most)
    shortest, longest = content.shortest()[0], content.longest()[0]
    least = 0 if least <= shortest else least
    most = None if longest is not None and most is not None and longest <= most else most
    endless = all(each is None for each in content.longest())
    # Room for the shortest way on is always left; what is due could lead where there is none.
    if not least or (endless and content.gapless):
        return Text(content, least=least, most=most)
    return Text(Strings(content=content, least=least, most=most).automaton())


def _few_values(values: Values, most: int = 10) -> list[Node] | None:
    """The nodes of all values, if they are few scalars."""
    if values.arrays or values.objects:
        return None
    found: list[Node] = [NULL] if values.null else []
    found += [Literal(json.dumps(value)) for value in sorted(values.booleans)]
    for numbers in values.numbers:
        if numbers.members is None:
            return None
        found += [number_node(Numbers(members=frozenset({v}))) for v in sorted(numbers.members)]
    for strings in values.strings:
        if strings.values is None:
            return None
        found += map(quoted, strings.values)
    return found if len(found) <= most else None
