"""The members of a set of objects, in their order, as one node.

What may follow a member depends on how many there were, where their number is bounded, and on
which demands for some member (`Objects.exists`) are still open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations

from cmm.grammar.content import Content
from cmm.grammar.errors import StateBudgetExceeded, Unsupported
from cmm.grammar.expressions import Expression, all_of
from cmm.grammar.json_values import member
from cmm.grammar.nodes import (
    NEVER,
    Node,
    Repeat,
    Text,
    choice,
    optional,
    quoted,
    sequence,
)
from cmm.grammar.objects import Objects

MOST_DEMANDS = 4  # every set of open demands is a case of its own
MOST_CELLS = 20_000  # pairs of a member and a count, each some states of the automaton
MOST_IN_ANY_ORDER = 6  # named members: each set of those that are left is a case of its own
MOST_COUNTED = 256  # members that are counted one by one beside open demands

Demands = frozenset[int]
ValueNode = Callable[[Expression], Node | None]  # None: there is no such value


@dataclass
class Members:
    """The members of some objects: the named ones, then others by the class of their key."""

    objects: Objects
    named: Sequence[tuple[str, Expression]]
    classes: Sequence[tuple[Content, Expression]]
    value: ValueNode
    any_order: bool = False
    all_ticked: bool = False  # named keys may be other objects' other keys: all are told apart
    tails: dict[tuple[int, Demands], Node] = field(default_factory=dict)
    others: dict[Demands, Node] = field(default_factory=dict)

    def node(self) -> Node:
        """All members; NEVER where a required one can have no value."""
        objects = self.objects
        if len(objects.exists) > MOST_DEMANDS:
            raise Unsupported(f"more than {MOST_DEMANDS} demands on members that are not named")
        everything = frozenset(range(len(objects.exists)))
        if (objects.least, objects.most) == (0, None) and not everything:
            return self.uncounted()
        cap = objects.least if objects.most is None else objects.most
        if cap * (len(self.named) + 1) > MOST_CELLS:
            raise StateBudgetExceeded(f"counting up to {cap} members needs too many states")
        sets = list(subsets(everything))
        after = {(count, left): self.tail(count, left) for count in range(cap + 1) for left in sets}
        for name, expression in reversed(self.named):
            after = self.before(name, expression, after)
        return after[0, everything]

    @cached_property
    def contents(self) -> list[Content]:
        """The keys that are not named and can have a value."""
        return [content for content, e in self.classes if self.value(e) is not None]

    @cached_property
    def endless(self) -> bool:
        """Can every key that is not named always be ended differently?

        Where a begun key has only a few ends it cannot be seen to that keys differ: if all of
        them were taken, there would be no way on.
        """
        return all(end is None for content in self.contents for end in content.longest())

    @property
    def distinct(self) -> bool:
        """May there be members that are not named, whose keys can be seen to differ?"""
        return bool(self.contents) and self.endless

    def uncounted(self) -> Node:
        """The members where neither their number nor any demand matters."""
        if self.any_order and 1 < len(self.named) <= MOST_IN_ANY_ORDER:
            return self.in_any_order()
        parts: list[Node] = []
        for name, expression in self.named:
            unit = self.unit(name, expression)
            if name in self.objects.required:
                parts.append(unit)
            elif unit is not NEVER:
                parts.append(optional(unit))
        other = self.other(frozenset())
        if any(part is NEVER for part in parts):
            return NEVER
        return sequence(*parts, *([] if other is NEVER else [Repeat(other)]))

    def in_any_order(self) -> Node:
        """The named members in every order, each once, those that are required all there."""
        units = [self.unit(name, expression) for name, expression in self.named]
        required = {i for i, (name, _) in enumerate(self.named) if name in self.objects.required}
        other = self.other(frozenset())
        return every_order(units, required, sequence() if other is NEVER else Repeat(other))

    def unit(self, name: str, expression: Expression) -> Node:
        """One named member; NEVER where it can have no value."""
        value = self.value(expression)
        return NEVER if value is None else member(quoted(name), value, ticked=self.all_ticked)

    def other(self, met: Demands) -> Node:
        """Any one member whose key is not named and that meets some demands."""
        if met not in self.others:
            demands = [self.objects.exists[i] for i in sorted(met)]
            units = []
            for content, expression in self.classes:
                for keys, _ in demands:
                    content &= keys
                value = None
                if not content.is_empty:
                    value = self.value(all_of([expression, *(wanted for _, wanted in demands)]))
                if value is not None:
                    key = Text(content, key=True)
                    units.append(member(key, value, ticked=self.endless))
            self.others[met] = choice(units) if units else NEVER
        return self.others[met]

    def before(
        self, name: str, expression: Expression, after: dict[tuple[int, Demands], Node]
    ) -> dict[tuple[int, Demands], Node]:
        """What may come from one named member on, by what may come after it."""
        exists, objects = self.objects.exists, self.objects
        able = frozenset(i for i, (keys, _) in enumerate(exists) if keys.accepts(name))
        units = {met: self.unit(name, all_of([expression, *(exists[i][1] for i in met)]))
                 for met in subsets(able)}  # fmt: skip
        top = max(count for count, _ in after)
        found = {}
        for count, left in after:
            options = [] if name in objects.required else [after[count, left]]
            more = count + 1 if objects.most is not None else min(count + 1, top)
            for met in subsets(able & left):
                if units[met] is not NEVER and (more, left - met) in after:
                    options.append(sequence(units[met], after[more, left - met]))
            found[count, left] = choice(options)
        return found

    def tail(self, count: int, left: Demands) -> Node:
        """The other members after `count` ones, with some demands left."""
        if (count, left) not in self.tails:
            self.tails[count, left] = self._tail(count, left)
        return self.tails[count, left]

    def _tail(self, count: int, left: Demands) -> Node:
        objects, other = self.objects, self.other(frozenset())
        needed = max(objects.least - count, 0)
        room = None if objects.most is None else objects.most - count
        if not left:
            if other is NEVER:
                return NEVER if needed else sequence()
            return Repeat(other, needed, room)
        if max(needed, room or 0) > MOST_COUNTED:
            raise Unsupported("a demand on keys that are not named beside a large number of them")
        options: list[Node] = []
        last = needed if room is None else room - 1  # others before the next that is demanded
        for between in range(last + 1 if other is not NEVER else min(last, 0) + 1):
            most = None if room is None and between == last else between
            before = sequence() if other is NEVER else Repeat(other, between, most)
            total = count + between + 1
            if room is None:  # beyond the least number all counts are alike
                total = min(total, max(objects.least, count))
            options += [
                sequence(before, self.other(met), self.tail(total, left - met))
                for met in subsets(left)
                if met and self.other(met) is not NEVER
            ]
        return choice(options)


def every_order(units: Sequence[Node], required: Set[int], rest: Node) -> Node:
    """The units in every order, each at most once, the required ones all there; then the rest."""
    known: dict[frozenset[int], Node] = {}
    left: frozenset[int] = frozenset()
    for left in subsets(frozenset(range(len(units)))):  # the smallest first
        options = [
            sequence(units[i], known[left - {i}]) for i in sorted(left) if units[i] is not NEVER
        ]
        known[left] = choice([*options, *([] if left & required else [rest])])
    return known[left]


def subsets(whole: Demands) -> Iterator[Demands]:
    """All subsets, the smallest first.

    >>> [sorted(part) for part in subsets(frozenset({1, 2}))]
    [[], [1], [2], [1, 2]]
    """
    ordered = sorted(whole)
    for size in range(len(ordered) + 1):
        yield from map(frozenset, combinations(ordered, size))
