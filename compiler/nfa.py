"""Nondeterministic byte automata under construction, one for each frame.

A frame is what a call enters and leaves by itself: the root, the JSON string, every rule of the
grammar and every string with a constraint. All frames but the root begin with a byte of their own
and end with a closing byte after which nothing can follow, so a deterministic automaton knows when
to enter and when to return.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cmm.compiler.utf8 import utf8_ranges
from cmm.grammar.errors import StateBudgetExceeded

FrameId = int
TEXT_FRAME: FrameId = 0  # in every automaton, so that all share the string's rows of tokens
ROOT_FRAME: FrameId = 1
MOST_STATES = 1_000_000  # half a gigabyte of Python lists
FAR = 1 << 29  # no bound: more than any count, and the sum of two still fits 32 bits

Move = tuple[int, int, int, int]  # (first byte, last byte, target, gain: what it counts for)
Bounds = tuple[int, int]  # how much may still be counted, and how much must be
UNBOUNDED: Bounds = (FAR, 0)
Call = tuple[FrameId, Bounds, int]  # (frame, its bounds, return to)


@dataclass(eq=False)
class Nfa:
    """States with byte ranges, empty moves and calls; one start and one end for each frame.

    It is built from right to left: each method is given the state that comes after, and returns
    the one before.
    """

    empty: list[list[int]] = field(default_factory=list)
    moves: list[list[Move]] = field(default_factory=list)
    calls: list[list[Call]] = field(default_factory=list)
    inside: dict[int, int] = field(default_factory=dict)  # any string goes on, then this state
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    every_end: set[int] = field(default_factory=set)  # those and the ends of unrolled frames
    opening: list[int] = field(default_factory=list)  # the first byte of each frame, root: -1
    # frames of objects whose keys differ, from each other and from these
    distinct: dict[FrameId, frozenset[str]] = field(default_factory=dict)
    unique: set[FrameId] = field(default_factory=set)  # frames of arrays whose items differ
    body: int = -1  # the state behind the opening quote of the string
    characters: dict[tuple[int, int, int, int], int] = field(default_factory=dict)
    unrolled: Callable[[FrameId, Bounds], int] = field(default=lambda frame, bounds: -1)

    def state(self) -> int:
        """A new state."""
        if len(self.empty) > MOST_STATES:
            raise StateBudgetExceeded(f"needs more than {MOST_STATES} states to begin with")
        self.empty.append([])
        self.moves.append([])
        self.calls.append([])
        return len(self.empty) - 1

    def fork(self, entries: Sequence[int]) -> int:
        """A state that goes on at any of the entries."""
        state = self.state()
        self.empty[state].extend(entries)
        return state

    def end(self) -> int:
        """A new state at which a frame ends."""
        state = self.state()
        self.every_end.add(state)
        return state

    def path(self, spans: Sequence[tuple[int, int]], after: int, gain: int = 0) -> int:
        """One byte of each range, one after the other; the last one counts.

        >>> nfa = Nfa()
        >>> nfa.moves[nfa.path([(97, 98)], nfa.state(), gain=1)]
        [(97, 98, 0, 1)]
        """
        for low, high in reversed(spans):
            state = self.state()
            self.moves[state].append((low, high, after, gain))
            after, gain = state, 0
        return after

    def text(self, text: str, after: int, gain: int = 0) -> int:
        """The bytes of a text."""
        return self.path([(byte, byte) for byte in text.encode()], after, gain)

    def character(self, low: int, high: int, after: int, gain: int = 0) -> int:
        """One character of a range of code points, in UTF-8; equal ones are built once."""
        key = low, high, after, gain
        if key not in self.characters:
            paths = [self.path(spans, after, gain) for spans in utf8_ranges(low, high)]
            self.characters[key] = self.fork(paths)
        return self.characters[key]

    def call(self, frame: FrameId, after: int, bounds: Bounds = UNBOUNDED) -> int:
        """A frame, which returns to the state after."""
        state = self.state()
        self.calls[state].append((frame, bounds, after))
        return state
