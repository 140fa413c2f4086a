"""What a string may contain: automata over characters, with the operations of sets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce

from cmm.grammar.errors import Unsupported
from cmm.grammar.machine import EMPTY, MOST_MOVES, MOST_STATES, Move, Moves, crawl, joined, smallest
from cmm.grammar.measures import count_texts, longest_texts, shortest_texts, without_gaps

CHARACTERS = ((0, 0xD7FF), (0xE000, 0x10FFFF))  # all code points but the surrogates

Pair = tuple[int | None, int | None]  # a state of each automaton, None once it has failed


@dataclass(frozen=True)
class Content:
    """A set of texts, as the smallest deterministic automaton over their characters.

    >>> word = texts(["cat", "car", "dog"])
    >>> print(word & lengths(3, 3) - texts(["dog"]))
    0  c -> 1
    1  a -> 2
    2  r t -> 3
    3! .

    State 0 is the start, `!` marks the final states. Each state reaches a final one and states
    are numbered in order of discovery, so equal sets are equal values. A character that has no
    move fails; no text has surrogates. Operations raise Unsupported beyond a budget of states.
    """

    moves: Moves
    final: tuple[bool, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.moves, self.final))

    @cached_property
    def _lows(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(move[0] for move in row) for row in self.moves)

    def step(self, state: int, character: str) -> int | None:
        """The state after one more character, None if there is no such text."""
        code = ord(character)
        index = bisect_right(self._lows[state], code) - 1
        if index < 0 or code > self.moves[state][index][1]:
            return None
        return self.moves[state][index][2]

    def accepts(self, text: str) -> bool:
        """Is the text one of the set?"""
        state: int | None = 0
        for character in text:
            if state is None:
                return False
            state = self.step(state, character)
        return state is not None and self.final[state]

    def __and__(self, other: Content) -> Content:
        if self == other or other == ANY:
            return self
        return other if self == ANY else _product(self, other, lambda a, b: a and b)

    def __or__(self, other: Content) -> Content:
        return _product(self, other, lambda a, b: a or b)

    def __sub__(self, other: Content) -> Content:
        return _product(self, other, lambda a, b: a and not b)

    def __invert__(self) -> Content:
        return ANY - self

    @property
    def is_empty(self) -> bool:
        """Is there no text at all?"""
        return self == NOTHING

    @cached_property
    def universal(self) -> frozenset[int]:
        """The states from which every text is accepted: one at most."""
        rows = zip(self.moves, self.final, strict=True)
        every = (tuple((*span, state) for span in CHARACTERS) for state in range(len(self.moves)))
        return frozenset(
            state
            for state, ((row, final), loop) in enumerate(zip(rows, every, strict=True))
            if final and row == loop
        )

    @cached_property
    def _shortest(self) -> tuple[int, ...]:
        return shortest_texts(self.moves, self.final)

    @cached_property
    def _longest(self) -> tuple[int | None, ...]:
        return longest_texts(self.moves, self.final)

    def shortest(self) -> tuple[int, ...]:
        """The fewest characters from each state to acceptance; () for NOTHING."""
        return self._shortest

    def longest(self) -> tuple[int | None, ...]:
        """The most characters from each state to acceptance, None if unbounded; () for NOTHING."""
        return self._longest

    @cached_property
    def gapless(self) -> bool:
        """Does each state have a text of every length between its shortest and longest? Exact."""
        return without_gaps(self.moves, self.final)

    def count(self) -> int | None:
        """How many texts there are, None if infinitely many."""
        return count_texts(self.moves, self.final)

    def finite(self, limit: int) -> tuple[str, ...] | None:
        """All texts in order of code points, None if there are more than `limit`."""
        count = self.count()
        return None if count is None or count > limit else tuple(self._texts())

    def _texts(self) -> Iterator[str]:
        pending = [(0, "")]
        while pending:
            state, text = pending.pop()
            if self.final[state]:
                yield text
            for low, high, target in reversed(self.moves[state]):
                pending += [(target, text + chr(code)) for code in range(high, low - 1, -1)]

    def __str__(self) -> str:
        return "\n".join(
            f"{state}{'!' if final else ' '} {_shown_row(row)}"
            for state, (row, final) in enumerate(zip(self.moves, self.final, strict=True))
        )


ANY = Content(*smallest([[(*span, 0) for span in CHARACTERS]], [True]))
NOTHING = Content(*EMPTY)


def texts(values: Iterable[str]) -> Content:
    """The finite set of these texts, built as the smallest automaton at once.

    >>> texts(["b", "a"]).finite(2)
    ('a', 'b')

    Sorted texts share prefixes with their neighbours: what is left of the last text behind that
    prefix cannot change any more and is shared with an equal end (Daciuk et al. 2000).
    """
    ends: dict[tuple[bool, tuple[Move, ...]], int] = {}
    path: list[list[Move]] = [[]]  # the open states along the last text
    path_final = [False]

    def close(depth: int) -> None:
        while len(path) > depth + 1:
            end = path_final.pop(), joined(path.pop())
            number = ends.setdefault(end, len(ends))
            path[-1].append((ord(last[len(path) - 1]), ord(last[len(path) - 1]), number))
            if number > MOST_MOVES:
                raise Unsupported(f"the values of a string need more than {MOST_MOVES} states")

    last = ""
    for text in sorted(set(values)):
        if any("\ud800" <= character <= "\udfff" for character in text):
            raise Unsupported("a text with half of a surrogate pair")
        depth = _common_prefix(last, text)
        close(depth)
        path += [[] for _ in text[depth:]]
        path_final += [False] * (len(text) - depth)
        path_final[-1], last = True, text
    close(0)
    rows = [path[0], *(row for _, row in ends)]
    shifted = [[(low, high, target + 1) for low, high, target in row] for row in rows]
    return Content(*smallest(shifted, [path_final[0], *(final for final, _ in ends)]))


def lengths(least: int, most: int | None = None) -> Content:
    """All texts of `least` to `most` characters; without `most`, of any more.

    >>> lengths(0, 2).shortest(), lengths(2).longest()
    ((0, 0, 0), (None, None, None))
    """
    if most is not None and most < least:
        return NOTHING
    last = least if most is None else most
    if last >= MOST_STATES:
        raise Unsupported(f"texts of {last} characters need more than {MOST_STATES} states")
    rows = [tuple((*span, state + 1) for span in CHARACTERS) for state in range(last)]
    rows.append(tuple((*span, last) for span in CHARACTERS) if most is None else ())
    return Content(tuple(rows), tuple(state >= least for state in range(last + 1)))


def union(contents: Iterable[Content]) -> Content:
    """All texts of any of them.

    >>> union([texts(["a"]), texts(["b"])]) == texts(["a", "b"])
    True
    """
    return reduce(Content.__or__, contents, NOTHING)


def _common_prefix(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _product(one: Content, other: Content, keep: Callable[[bool, bool], bool]) -> Content:
    """Both automata side by side; one that has failed accepts nothing more."""
    one_alone, other_alone = keep(True, False), keep(False, True)

    def follow(pair: Pair) -> Iterator[tuple[int, int, Pair]]:
        a, b = pair
        for low, high, targets in _overlay(
            one.moves[a] if a is not None else (), other.moves[b] if b is not None else ()
        ):
            if (targets[0] is not None or other_alone) and (targets[1] is not None or one_alone):
                yield low, high, targets

    def is_final(pair: Pair) -> bool:
        a, b = pair
        return keep(a is not None and one.final[a], b is not None and other.final[b])

    start: Pair = (0, 0)
    most = max(MOST_STATES, len(one.moves), len(other.moves))
    return Content(*crawl(start, follow, is_final, most))


def _overlay(one: tuple[Move, ...], other: tuple[Move, ...]) -> Iterator[tuple[int, int, Pair]]:
    """The ranges of both, cut at each other's ends, with the targets of each."""
    i = j = low = 0
    while i < len(one) or j < len(other):
        a = one[i] if i < len(one) else (0x110000, 0x110000, -1)
        b = other[j] if j < len(other) else (0x110000, 0x110000, -1)
        low = max(low, min(a[0], b[0]))
        in_a, in_b = a[0] <= low, b[0] <= low
        high = min(a[1] if in_a else a[0] - 1, b[1] if in_b else b[0] - 1)
        yield low, high, (a[2] if in_a else None, b[2] if in_b else None)
        low = high + 1
        i += a[1] < low
        j += b[1] < low


def _shown_row(row: tuple[Move, ...]) -> str:
    by_target: dict[int, list[str]] = {}
    for low, high, target in row:
        ends = [chr(c) if 33 <= c <= 126 else f"U+{c:04X}" for c in (low, high)]
        by_target.setdefault(target, []).append(ends[0] if low == high else "..".join(ends))
    return ", ".join(f"{' '.join(r)} -> {target}" for target, r in by_target.items()) or "."
