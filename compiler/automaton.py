"""The byte automaton: a table of moves that is only read, and states that are only values.

A state is a control state and the stack of where to return to:

    {"name": "greet", "arguments": {"name": "Jo|
    control: inside a string        stack: (before "}}", ())

Entering a string pushes the state that follows it, its closing quote pops it. Automata without
recursion have stacks of bounded depth; free JSON nests as deep as its text does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmm.compiler.determinise import Dfa, determinise
from cmm.compiler.minimise import minimise
from cmm.compiler.nfa import ROOT_FRAME
from cmm.compiler.thompson import build_nfa
from cmm.grammar.errors import InvalidInput
from cmm.grammar.nodes import Grammar

DEAD, POP, CALL = -1, -2, -3  # moves below zero: no way, return, and calls numbered downward

# The string's states come first in every automaton: 0 before the opening quote, 1 inside.
TEXT_BODY = 1

Int32s = npt.NDArray[np.int32]
Stack = tuple[int, "Stack"] | tuple[()]


class State(NamedTuple):
    """Where an automaton stands: hashable, comparable, and all that the next step depends on."""

    control: int
    stack: Stack = ()


@dataclass(frozen=True, eq=False, repr=False)
class ByteAutomaton:
    """Moves of every control state on every class of bytes.

    >>> from cmm.grammar.nodes import Grammar, Literal, Text, choice, sequence
    >>> automaton = build_automaton(Grammar(sequence(Literal("say "), Text())))
    >>> automaton.accepts('say "hi"'), automaton.accepts("say hi")
    (True, False)
    """

    classes: npt.NDArray[np.uint8]  # (256,) the class of each byte
    moves: Int32s  # (states, classes) a state, or DEAD, POP, or CALL - k for row k of calls
    calls: Int32s  # (calls, 2) the state entered, the state returned to
    final: npt.NDArray[np.bool_]  # (states,) may the text end here, if nothing is left to return to
    start: int
    text_states: int  # the first states are those of the JSON string, in every automaton

    def __post_init__(self) -> None:
        for array in (self.classes, self.moves, self.calls, self.final):
            array.flags.writeable = False

    @cached_property
    def _rows(self) -> list[list[int]]:
        return self.moves.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _calls(self) -> list[tuple[int, int]]:
        return [(entered, back) for entered, back in self.calls.tolist()]

    @cached_property
    def _classes(self) -> list[int]:
        return self.classes.tolist()  # type: ignore[no-any-return]

    def step(self, state: State, byte: int) -> State | None:
        """The state after one byte, None where the byte is not allowed."""
        move = self._rows[state.control][self._classes[byte]]
        if move >= 0:
            return State(move, state.stack)
        if move <= CALL:
            entered, back = self._calls[CALL - move]
            return State(entered, (back, state.stack))
        if move == POP and state.stack:
            return State(*state.stack)
        return None

    def walk(self, state: State, data: bytes) -> tuple[State, int]:
        """The state after as many bytes as are allowed, and how many these are."""
        for read, byte in enumerate(data):
            following = self.step(state, byte)
            if following is None:
                return state, read
            state = following
        return state, len(data)

    def is_final(self, state: State) -> bool:
        """May the text end here?"""
        return not state.stack and bool(self.final[state.control])

    def accepts(self, text: str | bytes) -> bool:
        """Is the text in the language?"""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        state, read = self.walk(State(self.start), data)
        return read == len(data) and self.is_final(state)

    def allowed_bytes(self, state: State) -> bytes:
        """The bytes that may come next, in order."""
        row = self._rows[state.control]
        return bytes(byte for byte in range(256) if row[self._classes[byte]] != DEAD)


def build_automaton(grammar: Grammar) -> ByteAutomaton:
    """The minimal byte automaton of a grammar.

    Raises InvalidInput where the grammar has no text, Unsupported over the state budget.
    """
    dfa = minimise(determinise(build_nfa(grammar)))
    if ROOT_FRAME not in dfa.starts:
        raise InvalidInput("no value can satisfy this")
    return _table(dfa)


def _table(dfa: Dfa) -> ByteAutomaton:
    cuts = sorted({0} | {byte for edges in dfa.edges for low, high, *_ in edges
                         for byte in (low, high + 1)})  # fmt: skip
    class_at = {cut: i for i, cut in enumerate(cuts)}
    starts = np.array([cut for cut in cuts if cut < 256])
    classes = (np.searchsorted(starts, np.arange(256), side="right") - 1).astype(np.uint8)
    moves = np.full((len(dfa.edges), len(starts)), DEAD, np.int32)
    calls: dict[tuple[int, int], int] = {}

    def call(entered: int, back: int) -> int:
        return CALL - calls.setdefault((entered, back), len(calls))

    returns = [final and frame != ROOT_FRAME
               for final, frame in zip(dfa.final, dfa.frame, strict=True)]  # fmt: skip
    for state, edges in enumerate(dfa.edges):
        for low, high, target, inside in edges:
            move = POP if returns[target] else target
            if inside:  # before the end of a frame nothing is left to return to in it
                move = TEXT_BODY if returns[target] else call(TEXT_BODY, target)
            moves[state, class_at[low] : class_at.get(high + 1, len(starts))] = move
    for state, called in enumerate(dfa.calls):
        for frame, back in called:
            [(opening, _, entered, inside)] = dfa.edges[dfa.starts[frame]]
            moves[state, class_at[opening]] = call(entered, back)
    return ByteAutomaton(
        classes=classes,
        moves=moves,
        calls=np.array(list(calls), np.int32).reshape(-1, 2),
        final=np.array([f and not r for f, r in zip(dfa.final, returns, strict=True)]),
        start=dfa.starts[ROOT_FRAME],
        text_states=dfa.frame.count(0),
    )
