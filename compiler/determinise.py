"""Subset construction: one deterministic state for each set of states that the NFA can be in.

A call stays a call as long as its opening byte decides for it alone. Where two calls, or a call
and plain bytes, begin alike (an enum beside a free string), the called frames are followed byte
by byte inside the caller: an item is then a pair (state, item to return to).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from cmm.compiler.nfa import FrameId, Nfa
from cmm.grammar.errors import Unsupported

Item = Any  # an NFA state, or a pair (NFA state, Item to return to)
# (first byte, last byte, target, inside): an edge inside leads into the body of a string, whose end
# returns to the target.
Edge = tuple[int, int, int, bool]

DEFAULT_STATE_BUDGET = 500_000


@dataclass(eq=False)
class Dfa:
    """Deterministic states of all frames; edges are disjoint and sorted."""

    edges: list[list[Edge]] = field(default_factory=list)
    calls: list[list[tuple[FrameId, int]]] = field(default_factory=list)  # (frame, return to)
    final: list[bool] = field(default_factory=list)
    frame: list[FrameId] = field(default_factory=list)
    starts: dict[FrameId, int] = field(default_factory=dict)


def determinise(nfa: Nfa, budget: int = DEFAULT_STATE_BUDGET) -> Dfa:
    """The deterministic automaton of every frame.

    >>> from cmm.compiler.thompson import build_nfa
    >>> from cmm.grammar.nodes import Grammar, Literal, choice
    >>> dfa = determinise(build_nfa(Grammar(choice([Literal("ab"), Literal("ac")]))))
    >>> [(low, high, target, inside)] = dfa.edges[dfa.starts[1]]
    >>> [(chr(low), dfa.final[end]) for low, _, end, _ in dfa.edges[target]]
    [('b', True), ('c', True)]
    """
    return _Construction(nfa, budget).run()


class _Construction:
    def __init__(self, nfa: Nfa, budget: int) -> None:
        self.nfa = nfa
        self.budget = budget
        self.dfa = Dfa()
        self.numbers: dict[tuple[FrameId, frozenset[Item]], int] = {}
        self.items: list[frozenset[Item]] = []
        self.ends = set(nfa.ends)
        self.closures: dict[Item, tuple[Item, ...]] = {}

    def run(self) -> Dfa:
        for frame, start in enumerate(self.nfa.starts):
            self.dfa.starts[frame] = self.number(frame, [start])
        done = 0
        while done < len(self.items):
            if done > self.budget:
                raise Unsupported(f"needs more than {self.budget} states")
            self.expand(done)
            done += 1
        return self.dfa

    def number(self, frame: FrameId, items: Iterable[Item]) -> int:
        """The state of a set of items, new or known."""
        closed = frozenset(core for item in items for core in self.closure(item))
        key = frame, closed
        if key not in self.numbers:
            self.numbers[key] = len(self.items)
            self.items.append(closed)
            self.dfa.edges.append([])
            self.dfa.calls.append([])
            self.dfa.frame.append(frame)
            self.dfa.final.append(self.nfa.ends[frame] in closed)
        return self.numbers[key]

    def closure(self, item: Item) -> tuple[Item, ...]:
        """What empty moves reach, kept only where bytes, calls or the end come next."""
        if item not in self.closures:
            self.closures[item] = tuple(self._reach(item))
        return self.closures[item]

    def _reach(self, item: Item) -> Iterable[Item]:
        seen, pending = {item}, [item]
        while pending:
            here = pending.pop()
            state, back = here if isinstance(here, tuple) else (here, None)
            if back is not None and state in self.ends:
                reached = [back]
            else:
                if (
                    self.nfa.moves[state]
                    or self.nfa.calls[state]
                    or state in self.ends
                    or state in self.nfa.inside
                ):
                    yield here
                reached = [t if back is None else (t, back) for t in self.nfa.empty[state]]
            for target in reached:
                if target not in seen:
                    seen.add(target)
                    pending.append(target)

    def expand(self, number: int) -> None:
        """Fill in the edges and calls of a state."""
        frame = self.dfa.frame[number]
        moves, calls = self.resolved(self.items[number])
        self.dfa.calls[number] = [
            (called, self.number(frame, backs)) for called, backs in sorted(calls.items())
        ]
        self.dfa.edges[number] = [
            (low, high, *self.target(frame, targets)) for low, high, targets in _split(moves)
        ]

    def target(self, frame: FrameId, items: list[Item]) -> tuple[int, bool]:
        """The state of a set of items; one in which only strings go on is left to their frame."""
        closed = [core for item in items for core in self.closure(item)]
        if all(_state(item) in self.nfa.inside for item in closed):
            return self.number(frame, [self.after_inside(item) for item in closed]), True
        return self.number(frame, items), False

    def after_inside(self, item: Item) -> Item:
        after = self.nfa.inside[_state(item)]
        return (after, item[1]) if isinstance(item, tuple) else after

    def resolved(
        self, items: frozenset[Item]
    ) -> tuple[list[tuple[int, int, Item]], dict[FrameId, list[Item]]]:
        """The byte moves and calls of the items, calls that clash with others followed inside."""
        moves: list[tuple[int, int, Item]] = []
        calls: dict[FrameId, list[Item]] = defaultdict(list)
        for item in items:
            state, back = item if isinstance(item, tuple) else (item, None)
            wrap = (lambda t: t) if back is None else (lambda t, back=back: (t, back))
            if state in self.nfa.inside:
                body = self.closure((self.nfa.body, self.after_inside(item)))
                more, _ = self.resolved(frozenset(body))
                moves += more
            moves += [(low, high, wrap(target)) for low, high, target in self.nfa.moves[state]]
            for called, target in self.nfa.calls[state]:
                calls[called].append(wrap(target))
        while clashing := self.clash(moves, calls):
            inside = frozenset(
                core
                for called in clashing
                for back in calls.pop(called)
                for core in self.closure((self.nfa.starts[called], back))
            )
            more, _ = self.resolved(inside)  # a frame begins with its opening byte, not with a call
            moves += more
        return moves, calls

    def clash(
        self, moves: list[tuple[int, int, Item]], calls: dict[FrameId, list[Item]]
    ) -> list[FrameId]:
        by_byte: dict[int, list[FrameId]] = defaultdict(list)
        for called in calls:
            by_byte[self.nfa.opening[called]].append(called)
        for byte, called_frames in by_byte.items():
            if len(called_frames) > 1 or any(low <= byte <= high for low, high, _ in moves):
                return called_frames
        return []


def _state(item: Item) -> int:
    return item[0] if isinstance(item, tuple) else item  # type: ignore[no-any-return]


def _split(moves: list[tuple[int, int, Item]]) -> Iterable[tuple[int, int, list[Item]]]:
    """Overlapping byte ranges as disjoint ones, each with all its targets."""
    if len(moves) == 1:
        yield moves[0][0], moves[0][1], [moves[0][2]]
        return
    cuts = sorted({low for low, _, _ in moves} | {high + 1 for _, high, _ in moves})
    for low, after in pairwise(cuts):
        targets = [target for first, last, target in moves if first <= low and after - 1 <= last]
        if targets:
            yield low, after - 1, targets
