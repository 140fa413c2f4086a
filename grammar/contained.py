"""The items of arrays of which some number must meet `contains`, as one node.

Item by item it is decided which demands the item counts for. The count of a demand without upper
bound may be less than the truth, so that items need not differ from what is demanded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cmm.grammar.arrays import Arrays
from cmm.grammar.errors import Unsupported
from cmm.grammar.expressions import Expression, all_of, not_
from cmm.grammar.members import subsets
from cmm.grammar.nodes import NEVER, Node, Repeat, choice, sequence

MOST_STATES = 20_000  # pairs of a position and the counts so far

Counts = tuple[int | None, ...]  # None: enough, and no bound above


@dataclass
class Contained:
    """The items of some arrays; `unit` is an item of an expression and the comma before it."""

    arrays: Arrays
    unit: Callable[[Expression], Node]
    known: dict[tuple[int, Counts], Node] = field(default_factory=dict)
    units: dict[tuple[int, frozenset[int], frozenset[int]], Node] = field(default_factory=dict)

    def node(self) -> Node:
        """All items. From the last position that matters backwards, so that nothing nests deep."""
        arrays = self.arrays
        first = max(len(arrays.prefix), arrays.least, *(c.start for c in arrays.contains))
        self.last = first if arrays.most is None else arrays.most
        tops = [c.least if c.most is None else c.most + 1 for c in arrays.contains]
        size = self.last + 1
        for top in tops:
            size *= top + 1
        if size > MOST_STATES or len(tops) > 4:
            raise Unsupported("contains with counts that need too many states")
        none = tuple(self.count(i, 0) for i in range(len(tops)))
        for position in range(self.last, 0, -1):
            for counts in self.reachable(none):
                self.after(position, counts)
        return self.after(0, none)

    def reachable(self, counts: Counts) -> list[Counts]:
        """All counts that items may lead to, the highest first."""
        seen = {counts: None}
        pending = [counts]
        while pending:
            found = pending.pop()
            for i in range(len(found)):
                more = self.plus(found, frozenset({i}))
                if more is not None and more not in seen:
                    seen[more] = None
                    pending.append(more)
        return sorted(seen, key=lambda c: [x if x is not None else 1 << 30 for x in c])[::-1]

    def count(self, i: int, hits: int) -> int | None:
        """The count of a demand, None once there are enough and none is too many."""
        contains = self.arrays.contains[i]
        return None if contains.most is None and hits >= contains.least else hits

    def plus(self, counts: Counts, met: frozenset[int]) -> Counts | None:
        """The counts after an item that meets some demands; None if that is one too many."""
        found = list(counts)
        for i in met:
            hits, most = counts[i], self.arrays.contains[i].most
            if hits is None or (most is not None and hits >= most):
                return None
            found[i] = self.count(i, hits + 1)
        return tuple(found)

    def after(self, position: int, counts: Counts) -> Node:
        """The items from a position on, at some counts."""
        key = position, counts
        if key not in self.known:
            self.known[key] = self._after(position, counts)
        return self.known[key]

    def _after(self, position: int, counts: Counts) -> Node:
        arrays = self.arrays
        demands = list(zip(counts, arrays.contains, strict=True))
        done = all(hits is None or hits >= demand.least for hits, demand in demands)
        options: list[Node] = [sequence()] if done and position >= arrays.least else []
        if position < self.last:
            for met, following in self.moves(position, counts):
                unit = self.item(position, met, counts)
                if unit is not NEVER:
                    options.append(sequence(unit, self.after(position + 1, following)))
        elif arrays.most is None:
            for met, following in self.moves(position, counts):
                unit = self.item(position, met, counts) if met else NEVER
                if unit is not NEVER:
                    options.append(sequence(unit, self.after(position, following)))
            plain = self.item(position, frozenset(), counts)
            return choice(options) if plain is NEVER else sequence(Repeat(plain), choice(options))
        return choice(options)

    def moves(self, position: int, counts: Counts) -> list[tuple[frozenset[int], Counts]]:
        """Which demands the item at a position may count for, and the counts after it."""
        started = [position >= contains.start for contains in self.arrays.contains]
        counting = [i for i, hits in enumerate(counts) if hits is not None and started[i]]
        found = [(met, self.plus(counts, met)) for met in subsets(frozenset(counting))]
        return [(met, following) for met, following in found if following is not None]

    def item(self, position: int, met: frozenset[int], counts: Counts) -> Node:
        """The item at a position that counts for some demands, and for no other bounded one."""
        contains = self.arrays.contains
        not_met = frozenset(i for i, demand in enumerate(contains)
                            if demand.most is not None and i not in met
                            and position >= demand.start)  # fmt: skip
        key = min(position, len(self.arrays.prefix)), met, not_met
        if key not in self.units:
            parts = [self.arrays.item(position), *(contains[i].item for i in sorted(met))]
            parts += [not_(contains[i].item) for i in sorted(not_met)]
            self.units[key] = self.unit(all_of(parts))
        return self.units[key]


def contained_items(arrays: Arrays, unit: Callable[[Expression], Node]) -> Node:
    """The items of arrays with demands on how many items meet an expression.

    >>> from cmm.grammar.arrays import Contains
    >>> from cmm.grammar.expressions import Raw
    >>> from cmm.grammar.nodes import Grammar, Literal
    >>> arrays = Arrays(contains=(Contains(Raw("/a")),))
    >>> print(Grammar(contained_items(arrays, lambda e: Literal("x" if e == Raw("/a") else "."))))
    root = "."* ("x" "."*)
    """
    return Contained(arrays, unit).node()
