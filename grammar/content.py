"""What a string may contain: automata over characters, with the operations of sets."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce

from cmm.grammar.characters import CHARACTERS
from cmm.grammar.errors import Unsupported
from cmm.grammar.machine import EMPTY, MOST_STATES, Machine, Move, Moves
from cmm.grammar.measures import count_texts, longest_texts, shortest_texts, without_gaps
from cmm.grammar.products import product, word_machine

KEPT = 1024  # intersections: those of the cases of one schema are asked for again and again


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

    @property
    def machine(self) -> Machine:
        """The two fields as one value."""
        return self.moves, self.final

    def __and__(self, other: Content) -> Content:
        if self == other or other == ANY:
            return self
        return other if self == ANY else _common(self, other)

    def __or__(self, other: Content) -> Content:
        return Content(*product(self.machine, other.machine, lambda a, b: a or b))

    def __sub__(self, other: Content) -> Content:
        return Content(*product(self.machine, other.machine, lambda a, b: a and not b))

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


@lru_cache(KEPT)
def _common(one: Content, other: Content) -> Content:
    return Content(*product(one.machine, other.machine, lambda a, b: a and b))


ANY = Content((tuple((*span, 0) for span in CHARACTERS),), (True,))
NOTHING = Content(*EMPTY)


def texts(values: Iterable[str]) -> Content:
    """The finite set of these texts, however many.

    >>> texts(["b", "a"]).finite(2)
    ('a', 'b')
    """
    return Content(*word_machine(values))


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


def _shown_row(row: tuple[Move, ...]) -> str:
    by_target: dict[int, list[str]] = {}
    for low, high, target in row:
        ends = [chr(c) if 33 <= c <= 126 else f"U+{c:04X}" for c in (low, high)]
        by_target.setdefault(target, []).append(ends[0] if low == high else "..".join(ends))
    return ", ".join(f"{' '.join(r)} -> {target}" for target, r in by_target.items()) or "."
