"""Subset construction: one deterministic state for each set of states that the NFA can be in.

A call stays a call as long as its opening byte decides for it alone. Where two calls, or a call
and plain bytes, begin alike (an enum beside a free string), the called frames are followed byte
by byte inside the caller: an item is then a pair (state, item to return to).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from cmm.compiler.nfa import UNBOUNDED, Bounds, Call, FrameId, Nfa
from cmm.grammar.errors import StateBudgetExceeded, Unsupported

Item = Any  # an NFA state, or a pair (NFA state, Item to return to)
Step = tuple[int, int, Item, int]  # (first byte, last byte, item reached, gain)
Called = tuple[FrameId, Bounds]
# Flags of an edge: it leads into a string, whose end returns to the target; it counts for one. The
# multiples of ENTERED say which state of the string it enters.
INSIDE, GAIN, ENTERED = 1, 2, 4
Edge = tuple[int, int, int, int]  # (first byte, last byte, target, flags)

# What a state may cost on average, in states of the NFA that it stands for and in edges, which take
# as long as four of those: thousands of optional keys are in thousands of states each, a count of
# strings with a long pattern has ten edges for each. Memory and patience end before the states do.
COST_PER_STATE = 24
EDGE_COST = 4
DEFAULT_STATE_BUDGET = 200_000  # a thousand functions need about half of it, and a few seconds


@dataclass(eq=False)
class Dfa:
    """Deterministic states of all frames; edges are disjoint and sorted."""

    edges: list[list[Edge]] = field(default_factory=list)
    calls: list[list[Call]] = field(default_factory=list)
    final: list[bool] = field(default_factory=list)
    frame: list[FrameId] = field(default_factory=list)
    starts: dict[FrameId, int] = field(default_factory=dict)
    done: int = 0  # so many states, those of the string, are the smallest already

    def first(self, count: int) -> Dfa:
        """The first states alone, if no others follow them: a copy, to go on with."""
        return Dfa(
            self.edges[:count],
            self.calls[:count],
            self.final[:count],
            self.frame[:count],
            {frame: state for frame, state in self.starts.items() if state < count},
            count,
        )


def determinise(nfa: Nfa, budget: int = DEFAULT_STATE_BUDGET, text: Dfa | None = None) -> Dfa:
    """The deterministic automaton of every frame; that of the string may be known before.

    >>> from cmm.compiler.thompson import build_nfa
    >>> from cmm.grammar.nodes import Grammar, Literal, choice
    >>> dfa = determinise(build_nfa(Grammar(choice([Literal("ab"), Literal("ac")]))))
    >>> [(low, high, target, flags)] = dfa.edges[dfa.starts[1]]
    >>> [(chr(low), dfa.final[end]) for low, _, end, _ in dfa.edges[target]]
    [('b', True), ('c', True)]
    """
    return _Construction(nfa, budget, text or Dfa()).run()


class _Construction:
    def __init__(self, nfa: Nfa, budget: int, text: Dfa) -> None:
        self.nfa = nfa
        self.budget = budget
        self.dfa = text.first(text.done)
        self.numbers: dict[tuple[FrameId, frozenset[Item]], int] = {}
        self.items: list[frozenset[Item]] = [frozenset()] * text.done
        self.closures: dict[Item, tuple[Item, ...]] = {}
        self.cost = 0  # of all states

    def run(self) -> Dfa:
        done = self.dfa.done
        while self.start_frames() or done < len(self.items):
            if done > self.budget or self.cost > self.budget * COST_PER_STATE:
                raise StateBudgetExceeded(
                    f"needs more than {self.budget} states", advice="cmm compile --max-states"
                )
            self.expand(done)
            done += 1
        return self.dfa

    def start_frames(self) -> bool:
        """The first states of frames, also of those that came up while others were written out."""
        new = range(len(self.dfa.starts), len(self.nfa.starts))
        for frame in new:
            self.dfa.starts[frame] = self.number(frame, [self.nfa.starts[frame]])
        return bool(new)

    def number(self, frame: FrameId, items: Iterable[Item]) -> int:
        """The state of a set of items, new or known."""
        return self.number_closed(frame, self.closed(items))

    def number_closed(self, frame: FrameId, closed: frozenset[Item]) -> int:
        """The same for a set with all that empty moves reach."""
        key = frame, closed
        known = self.numbers.get(key)
        if known is not None:
            return known
        number = self.numbers[key] = len(self.items)
        self.cost += len(closed)
        self.items.append(closed)
        self.dfa.edges.append([])
        self.dfa.calls.append([])
        self.dfa.frame.append(frame)
        self.dfa.final.append(self.nfa.ends[frame] in closed)
        return number

    def closed(self, items: Iterable[Item]) -> frozenset[Item]:
        """The items with all that empty moves reach."""
        return frozenset().union(*map(self.closure, items))

    def closure(self, item: Item) -> tuple[Item, ...]:
        """What empty moves reach, kept only where bytes, calls or the end come next."""
        if item not in self.closures:
            plain = isinstance(item, int) and not self.nfa.empty[item] and self.nfa.moves[item]
            self.closures[item] = (item,) if plain else tuple(self._reach(item))
            if isinstance(item, tuple):  # followed within a caller, perhaps within its own frame
                self.cost += EDGE_COST * (1 + len(self.closures[item]))
        return self.closures[item]

    def _reach(self, item: Item) -> Iterable[Item]:
        seen, pending = {item}, [item]
        while pending:
            here = pending.pop()
            state, back = here if isinstance(here, tuple) else (here, None)
            if back is not None and state in self.nfa.every_end:
                reached = [back]
            elif self.is_inside(here):
                yield here
                reached = []
            else:
                if self.nfa.moves[state] or self.nfa.calls[state] or state in self.nfa.every_end:
                    yield here
                reached = [t if back is None else (t, back) for t in self.nfa.empty[state]]
            for target in reached:
                if target not in seen:
                    seen.add(target)
                    pending.append(target)

    def expand(self, number: int) -> None:
        """Fill in the edges and calls of a state."""
        frame = self.dfa.frame[number]
        if (only := self.single_move(self.items[number])) is not None:
            low, high, target, gain = only
            self.dfa.edges[number] = [(low, high, *self.target(frame, [target], gain))]
            return
        moves, calls = self.resolved(self.items[number])
        self.dfa.calls[number] = [
            (called, bounds, self.number(frame, backs))
            for (called, bounds), backs in sorted(calls.items())
        ]
        self.dfa.edges[number] = [
            (low, high, *self.target(frame, targets, gain))
            for low, high, targets, gain in _split(moves, frame in self.nfa.distinct)
        ]
        self.cost += EDGE_COST * len(self.dfa.edges[number])

    def single_move(self, items: frozenset[Item]) -> Step | None:
        """The one move of a state within a literal: most states are that."""
        if len(items) != 1:
            return None
        [item] = items
        if not isinstance(item, int) or self.nfa.calls[item] or self.is_inside(item):
            return None
        moves = self.nfa.moves[item]
        return moves[0] if len(moves) == 1 else None

    def target(self, frame: FrameId, items: list[Item], gain: int) -> tuple[int, int]:
        """The state of a set of items; one in which only strings go on is left to their frame."""
        closed = self.closed(items)
        flags = GAIN if gain else 0
        if all(map(self.is_inside, closed)):
            after = [self.after_inside(item) for item in closed]
            return self.number(frame, after), flags | INSIDE
        return self.number_closed(frame, closed), flags

    def is_inside(self, item: Item) -> bool:
        """Does any string go on here? That the string's own body is one is said of it elsewhere."""
        return _state(item) in self.nfa.inside and item != self.nfa.body

    def after_inside(self, item: Item) -> Item:
        """What follows the string in which an item goes on."""
        state, back = item if isinstance(item, tuple) else (item, None)
        after = self.nfa.inside[state]
        if back is None:
            return after
        return back if after in self.nfa.every_end else (after, back)

    def resolved(self, items: frozenset[Item]) -> tuple[list[Step], dict[Called, list[Item]]]:
        """The byte moves and calls of the items, calls that clash with others followed inside."""
        moves: list[Step] = []
        calls: dict[Called, list[Item]] = defaultdict(list)
        for item in items:
            state, back = item if isinstance(item, tuple) else (item, None)
            if self.is_inside(item):
                after = self.after_inside(item)
                for first in self.nfa.empty[self.nfa.body]:
                    moves += self.followed(first, after)
            for low, high, target, gain in self.nfa.moves[state]:
                # what is followed inside another frame is not counted in that one
                moves.append(
                    (low, high, *((target, gain) if back is None else ((target, back), 0)))
                )
            for called, bounds, target in self.nfa.calls[state]:
                calls[called, bounds].append(target if back is None else (target, back))
        while clashing := self.clash(moves, calls):
            for called, bounds in clashing:
                if called in self.nfa.unique:
                    raise Unsupported("uniqueItems beside another array that begins alike")
                start = self.followed_start(called, bounds)
                for back in calls.pop((called, bounds)):
                    moves += self.followed(start, back)
        return moves, calls

    def followed_start(self, called: FrameId, bounds: Bounds) -> int:
        """Where a frame begins when it is followed in a caller, which counts nothing for it."""
        plain = bounds == UNBOUNDED and called not in self.nfa.distinct
        return self.nfa.starts[called] if plain else self.nfa.unrolled(called, bounds)

    def followed(self, state: int, back: Item) -> list[Step]:
        """The byte moves of a frame's state inside the caller: it begins with bytes, not calls."""
        return self.resolved(frozenset(self.closure((state, back))))[0]

    def clash(self, moves: list[Step], calls: Mapping[Called, list[Item]]) -> list[Called]:
        """Calls that begin with a byte that something else begins with too."""
        by_byte: dict[int, list[Called]] = defaultdict(list)
        for called in calls:
            by_byte[self.nfa.opening[called[0]]].append(called)
        for byte, found in by_byte.items():
            if len(found) > 1 or any(low <= byte <= high for low, high, _, _ in moves):
                return found
        return []


def _state(item: Item) -> int:
    return item[0] if isinstance(item, tuple) else item  # type: ignore[no-any-return]


def _split(moves: list[Step], distinct: bool) -> Iterable[tuple[int, int, list[Item], int]]:
    """Overlapping byte ranges as disjoint ones, each with all its targets and its gain.

    Among `distinct` keys a named one, which is not counted, is none of the others.
    """
    if len(moves) == 1:
        low, high, target, gain = moves[0]
        yield low, high, [target], gain
        return
    cuts = sorted({move[0] for move in moves} | {move[1] + 1 for move in moves})
    for low, after in pairwise(cuts):
        inside = [move for move in moves if move[0] <= low and after - 1 <= move[1]]
        if inside:
            if len({gain for *_, gain in inside}) > 1:
                if distinct:
                    inside = [move for move in inside if not move[3]]
                    yield low, after - 1, [target for _, _, target, _ in inside], 0
                    continue
                raise Unsupported("something counted overlaps with something that is not")
            yield low, after - 1, [target for _, _, target, _ in inside], inside[0][3]
