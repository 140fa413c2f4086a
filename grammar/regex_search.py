"""Graphs of regular expressions, searched: the states of an automaton and their moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cmm.grammar.characters import CHARACTERS, WORD, Ranges, partition
from cmm.grammar.errors import Unsupported
from cmm.grammar.regex_graph import MATCHED, Graph

# A thread is one way to match: the node it waits at, and the looks ahead that are still open on
# this way, each a set of threads of its own.
Threads = frozenset["Thread"]


class Thread(NamedTuple):
    node: int
    open: frozenset[Ahead]


class Ahead(NamedTuple):
    positive: bool
    threads: Threads


class Place(NamedTuple):
    """What the tests of a place know: the kinds of the characters before and after it."""

    before: str  # "^" none, "w" of a word, "o" any other
    after: str  # "$" none, "w", "o"
    behind: tuple[bool, ...] = ()  # does each look behind match here?


class State(NamedTuple):
    """A state of the search: None for `before` says that the pattern was found."""

    before: str | None
    threads: Threads
    behind: tuple[Threads, ...]


NONE: frozenset[Ahead] = frozenset()
FOUND = State(None, frozenset(), ())
WORD_SET = -1  # its number among the sets of a pattern with \b
MOST_WORK = 1_000_000  # steps of threads; the costliest of 1,400 real patterns needs 400,000


class Search:
    """Subset construction, where a state also carries what its looks behind have read.

    >>> from cmm.grammar.regex_parser import parse_regex
    >>> search = Search(Graph(parse_regex("^a")))
    >>> [chr(low) for low, _, state in search.follow(search.start) if len(state.threads) > 1]
    ['a']
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.sets = {number: row for row, number in graph.sets.items()}
        self.first: Threads = frozenset([Thread(graph.start, NONE)])
        self.behind = tuple(frozenset([Thread(start, NONE)]) for start in graph.behind)
        self.start = State("^", self.first, self.behind)
        self.reached: dict[tuple[Thread, Place], Threads] = {}
        self.stepped: dict[tuple[Threads, frozenset[int]], Threads] = {}
        self.cuts: dict[frozenset[int], list[tuple[Ranges, frozenset[int]]]] = {}
        self.work = 0

    def follow(self, state: State) -> Iterator[tuple[int, int, State]]:
        if state.before is None:
            moves = [(span, FOUND) for span in CHARACTERS]
        else:
            moves = [m for kind in self.kinds() for m in self.moves(state, state.before, kind)]
        for (low, high), target in sorted(moves):
            yield low, high, target

    def is_final(self, state: State) -> bool:
        if state.before is None:
            return True
        place, _ = self.place(state, state.before, "$")
        return self.is_match(self.close(state.threads, place))

    def kinds(self) -> str:
        return "wo" if self.graph.has_words else "o"

    def moves(
        self, state: State, before: str, kind: str
    ) -> Iterator[tuple[tuple[int, int], State]]:
        """The moves by characters of one kind."""
        place, behind = self.place(state, before, kind)
        threads = self.close(state.threads, place)
        found = self.is_match(threads)
        used = frozenset(self.used(threads).union(*map(self.used, behind)))
        for spans, members in self.cut(used):
            if self.graph.has_words and (WORD_SET in members) != (kind == "w"):
                continue
            target = FOUND
            if not found:
                target = State(
                    kind,
                    self.step(threads, members) | self.first,
                    tuple(
                        self.step(t, members) | f for t, f in zip(behind, self.behind, strict=True)
                    ),
                )
            for span in spans:
                yield span, target

    def place(self, state: State, before: str, after: str) -> tuple[Place, list[Threads]]:
        """The place of a state before a character of a kind, and its looks behind, closed."""
        place, closed = Place(before, after), []
        for threads in state.behind:  # a look may use those before it
            closed.append(self.close(threads, place))
            place = Place(before, after, (*place.behind, self.is_match(closed[-1])))
        return place, closed

    def is_match(self, threads: Threads) -> bool:
        return Thread(MATCHED, NONE) in threads

    def close(self, threads: Threads, place: Place) -> Threads:
        """All threads that are reached without reading, at nodes that read or at MATCHED."""
        self.spend(len(threads))
        return frozenset().union(*(self.reach(thread, place) for thread in threads))

    def spend(self, steps: int) -> None:
        """Count steps; Unsupported once a pattern takes too many."""
        self.work += steps
        if self.work > MOST_WORK:
            raise Unsupported("a pattern that takes too long to compile")

    def reach(self, thread: Thread, place: Place) -> Threads:
        key = thread, place
        if key not in self.reached:
            self.reached[key] = self.walk(thread, place)
        return self.reached[key]

    def walk(self, thread: Thread, place: Place) -> Threads:
        seen = {thread}
        pending = [thread]
        ends: set[Thread] = set()
        while pending:
            number, open_ = pending.pop()
            node = self.graph.nodes[number]
            if number == MATCHED or node.reads is not None:
                left = self.settle(open_, place)
                if left is not None and (number == MATCHED or place.after != "$"):
                    ends.add(Thread(number, left))
                continue
            if not self.holds(node.edge, place):
                continue
            if node.behind is not None and place.behind[node.behind] != node.positive:
                continue
            if node.ahead is not None:
                open_ |= {Ahead(node.positive, frozenset([Thread(node.ahead, NONE)]))}
            for target in node.then:
                if (new := Thread(target, open_)) not in seen:
                    seen.add(new)
                    pending.append(new)
        self.spend(len(seen))
        return frozenset(ends)

    def holds(self, edge: str, place: Place) -> bool:
        if edge in "^$":
            return edge == "" or edge in (place.before, place.after)
        return ((place.before == "w") != (place.after == "w")) == (edge == "b")

    def settle(self, open_: frozenset[Ahead], place: Place) -> frozenset[Ahead] | None:
        """The looks ahead that are still open, their threads closed; None if one has failed."""
        left: set[Ahead] = set()
        self.work += 4 * len(open_)
        for positive, threads in open_:
            closed = self.close(threads, place)
            if self.is_match(closed):
                if not positive:
                    return None
            elif closed and place.after != "$":
                left.add(Ahead(positive, closed))
            elif positive:
                return None
        return frozenset(left)

    def step(self, threads: Threads, members: frozenset[int]) -> Threads:
        """The threads after a character that is in the sets `members` and in no other."""
        self.work += len(threads)
        stepped: set[Thread] = set()
        for number, open_ in threads:
            node = self.graph.nodes[number]
            if (not open_) if number == MATCHED else (node.reads not in members):
                continue
            left = self.step_open(open_, members) if open_ else NONE
            if left is not None:
                stepped.add(Thread(number if number == MATCHED else node.then[0], left))
        return frozenset(stepped)

    def step_open(
        self, open_: frozenset[Ahead], members: frozenset[int]
    ) -> frozenset[Ahead] | None:
        left: set[Ahead] = set()
        self.work += 4 * len(open_)
        for positive, threads in open_:
            key = threads, members
            if key not in self.stepped:  # many threads have the same looks ahead open
                self.stepped[key] = self.step(threads, members)
            stepped = self.stepped[key]
            if stepped:
                left.add(Ahead(positive, stepped))
            elif positive:
                return None
        return frozenset(left)

    def used(self, threads: Threads) -> set[int]:
        """The sets that some thread reads next."""
        self.work += len(threads)
        numbers = {self.graph.nodes[thread.node].reads for thread in threads}
        used = {number for number in numbers if number is not None}
        for ahead in {ahead for thread in threads for ahead in thread.open}:
            used |= self.used(ahead.threads)
        return used

    def cut(self, used: frozenset[int]) -> list[tuple[Ranges, frozenset[int]]]:
        if used not in self.cuts:
            sets = {number: self.sets[number] for number in used}
            if self.graph.has_words:
                sets[WORD_SET] = WORD
            self.cuts[used] = partition(sets)
        return self.cuts[used]
