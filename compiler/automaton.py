"""The byte automaton: a table of moves that is only read, and states that are only values.

A state is a control state and the stack of where to return to:

    {"name": "greet", "arguments": {"name": "Jo|
    control: inside a string        stack: (before "}}", …)

Entering a string pushes the state that follows it, its closing quote pops it. Automata without
recursion have stacks of bounded depth; free JSON nests as deep as its text does.
"""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmm.compiler.collector import collector_paused
from cmm.compiler.determinise import DEFAULT_STATE_BUDGET, ENTERED, GAIN, INSIDE, Dfa, determinise
from cmm.compiler.fold import TEXT_BODY, fold
from cmm.compiler.frozen import FrozenArrays
from cmm.compiler.minimise import minimise
from cmm.compiler.nfa import FAR, ROOT_FRAME, TEXT_FRAME, UNBOUNDED, Bounds, FrameId
from cmm.compiler.thompson import build_nfa
from cmm.compiler.trie import ranges
from cmm.grammar.errors import InvalidInput
from cmm.grammar.nodes import Grammar, Text
from cmm.grammar.recursion import deep_recursion

__all__ = [
    "CALL",
    "DEAD",
    "POP",
    "TEXT_BODY",
    "ByteAutomaton",
    "State",
    "build_automaton",
    "counted",
]

DEAD, POP, CALL = -1, -2, -3  # moves below zero: no way, return, and calls numbered downward

Int32s = npt.NDArray[np.int32]
Keys = frozenset[str] | None  # of the members that an object has so far; None: it may repeat them
# (return to, and there: room, due, keys; what is below)
Stack = tuple[int, int, int, Keys, "Stack"] | tuple[()]


class State(NamedTuple):
    """Where an automaton stands: hashable, comparable, and all that the next step depends on.

    `room` is how many characters or items the current string or array may still get (FAR: any
    number), `due` how many it must get. `keys` are those that the current object has, and `text`
    what is read of a string, if the automaton has objects whose keys must differ.
    """

    control: int
    stack: Stack = ()
    room: int = FAR
    due: int = 0
    keys: Keys = None
    text: bytes | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ByteAutomaton(FrozenArrays):
    """Moves of every control state on every class of bytes.

    >>> from cmm.grammar.nodes import Grammar, Literal, Text, choice, sequence
    >>> automaton = build_automaton(Grammar(sequence(Literal("say "), Text())))
    >>> automaton.accepts('say "hi"'), automaton.accepts("say hi")
    (True, False)
    """

    classes: npt.NDArray[np.uint8]  # (256,) the class of each byte
    moves: Int32s  # (states, classes) a state, or DEAD, POP, or CALL - k for row k of calls
    gains: npt.NDArray[np.bool_]  # (states, classes) does the move count for one
    calls: Int32s  # (calls, 4) the state entered, the state returned to, room, due
    need: Int32s  # (states,) the fewest counts to the end of the frame
    keyed: Int32s  # (states,) has a key just ended that must differ: a row of names, else -1
    frame: Int32s  # (states,) what belongs together: the string, the root, rules
    final: npt.NDArray[np.bool_]  # (states,) may the text end here, if nothing is left to return to
    start: int
    text_states: int  # the first states are those of the JSON string, in every automaton
    names: tuple[frozenset[str], ...] = ()  # what such keys must differ from, besides each other

    @cached_property
    def _rows(self) -> list[list[int]]:
        return self.moves.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _gains(self) -> list[list[bool]]:
        return self.gains.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _need(self) -> list[int]:
        return self.need.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _calls(self) -> list[list[int]]:
        return self.calls.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _classes(self) -> list[int]:
        return self.classes.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _keyed(self) -> list[int]:
        return self.keyed.tolist()  # type: ignore[no-any-return]

    @cached_property
    def tracks(self) -> bool:
        """Are there objects whose keys must differ?"""
        return bool(self.names)

    @cached_property
    def _distinct(self) -> list[bool]:
        """Of each call: does it enter an object whose keys must differ?"""
        frames = np.unique(self.frame[self.keyed >= 0])
        return np.isin(self.frame[self.calls[:, 0]], frames).tolist()  # type: ignore[no-any-return]

    def step(self, state: State, byte: int) -> State | None:
        """The state after one byte, None where the byte is not allowed."""
        following = self._step(state, byte)
        if following is None or not self.tracks:
            return following
        text, ended = _read_string(state.text, byte)
        following = following._replace(text=text)
        if ended is None or self._keyed[following.control] < 0:
            return following
        key = json.loads(b'"%b"' % ended)
        if key in self.taken(following):
            return None
        return following._replace(keys=(following.keys or frozenset()) | {key})

    def taken(self, state: State) -> frozenset[str]:
        """What a key that ends in a state must differ from."""
        return self.names[self._keyed[state.control]] | (state.keys or frozenset())

    def key_is_taken(self, state: State) -> bool:
        """Would a key that ended here be one that its object has already?"""
        if state.text is None or not self.tracks:
            return False
        return self._step(state, 0x22) is not None and self.step(state, 0x22) is None

    def _step(self, state: State, byte: int) -> State | None:
        control, stack, room, due, keys, _ = state
        kind = self._classes[byte]
        move = self._rows[control][kind]
        if move >= 0:
            if self._gains[control][kind]:
                room, due = counted(room, due, 1)
            return State(move, stack, room, due, keys) if room >= self._need[move] else None
        if move <= CALL:
            entered, back, inner_room, inner_due = self._calls[CALL - move]
            inner: Keys = frozenset() if self._distinct[CALL - move] else None
            return State(entered, (back, room, due, keys, stack), inner_room, inner_due, inner)
        if move == POP and stack and not due:
            back, room, due, keys, stack = stack
            return State(back, stack, room, due, keys)
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
        return bytes(byte for byte in range(256) if self.step(state, byte) is not None)


def _read_string(text: bytes | None, byte: int) -> tuple[bytes | None, bytes | None]:
    """What is read of a string after one more byte of JSON, and the string if it ends with it.

    >>> _read_string(None, ord('"')), _read_string(b"a", ord('"'))
    ((b'', None), (None, b'a'))
    """
    if text is None:
        return (b"" if byte == 0x22 else None), None
    escapes = len(text) - len(text.rstrip(b"\\"))
    if byte == 0x22 and escapes % 2 == 0:
        return None, text
    return text + bytes([byte]), None


def counted(room: int, due: int, count: int) -> tuple[int, int]:
    """Room and due after a count; what is unbounded stays so.

    >>> counted(5, 1, 2), counted(FAR, 0, 2) == (FAR, 0)
    ((3, 0), True)
    """
    return (room if room == FAR else room - count), max(due - count, 0)


def build_automaton(
    grammar: Grammar, budget: int = DEFAULT_STATE_BUDGET, controls: Container[str] = ()
) -> ByteAutomaton:
    """The minimal byte automaton of a grammar.

    Marks among `controls` are control tokens, and no longer text. Raises InvalidInput where the
    grammar has no text, StateBudgetExceeded over the state budget.
    """
    with collector_paused():
        return _built(grammar, budget, controls)


def _built(grammar: Grammar, budget: int, controls: Container[str]) -> ByteAutomaton:
    with deep_recursion():
        nfa = build_nfa(grammar, controls)
    dfa = fold(minimise(determinise(nfa, budget, _text())))
    if ROOT_FRAME not in dfa.starts:
        raise InvalidInput("no value can satisfy this")
    return _table(dfa, nfa.distinct)


@cache
def _text() -> Dfa:
    """The states of the string, which every automaton begins with."""
    dfa = minimise(determinise(build_nfa(Grammar(Text()))))
    return dfa.first(dfa.frame.count(TEXT_FRAME))


def _table(dfa: Dfa, distinct: Mapping[FrameId, frozenset[str]]) -> ByteAutomaton:
    cuts = sorted({0} | {byte for edges in dfa.edges for low, high, *_ in edges
                         for byte in (low, high + 1)})  # fmt: skip
    class_at = {cut: i for i, cut in enumerate(cuts)}
    starts = np.array([cut for cut in cuts if cut < 256])
    classes = (np.searchsorted(starts, np.arange(256), side="right") - 1).astype(np.uint8)
    calls: dict[tuple[int, int, int, int], int] = {}

    def call(entered: int, back: int, bounds: Bounds = UNBOUNDED) -> int:
        return CALL - calls.setdefault((entered, back, *bounds), len(calls))

    returns = [final and frame != ROOT_FRAME
               for final, frame in zip(dfa.final, dfa.frame, strict=True)]  # fmt: skip
    entries: list[tuple[int, int, int, int, bool]] = []  # state, classes from and up to, move, gain
    for state, edges in enumerate(dfa.edges):
        for low, high, target, flags in edges:
            move = POP if returns[target] else target
            if flags & INSIDE:  # before the end of a frame nothing is left to return to in it
                entered = flags // ENTERED
                move = entered if returns[target] else call(entered, target)
            last = class_at.get(high + 1, len(starts))
            entries.append((state, class_at[low], last, move, bool(flags & GAIN)))
        for frame, bounds, back in dfa.calls[state]:
            [(opening, _, entered, _)] = dfa.edges[dfa.starts[frame]]
            first = class_at[opening]
            entries.append((state, first, first + 1, call(entered, back, bounds), False))
    moves, gains = _filled(entries, (len(dfa.edges), len(starts)))
    rows = np.array(list(calls), np.int32).reshape(-1, 4)
    ends_key = np.isin(dfa.frame, sorted(distinct)) & gains.any(axis=1)
    numbers: dict[frozenset[str], int] = {}
    keyed = [numbers.setdefault(distinct[frame], len(numbers)) if ends else -1
             for frame, ends in zip(dfa.frame, ends_key.tolist(), strict=True)]  # fmt: skip
    return ByteAutomaton(
        classes=classes,
        moves=moves,
        gains=gains,
        calls=rows,
        need=_needs(moves, gains, rows, np.array(dfa.final)),
        keyed=np.array(keyed, np.int32),
        frame=np.array(dfa.frame, np.int32),
        final=np.array([f and not r for f, r in zip(dfa.final, returns, strict=True)]),
        start=dfa.starts[ROOT_FRAME],
        text_states=dfa.frame.count(TEXT_FRAME),
        names=tuple(numbers),
    )


def _filled(
    entries: Sequence[tuple[int, int, int, int, bool]], shape: tuple[int, int]
) -> tuple[Int32s, npt.NDArray[np.bool_]]:
    """The table of moves and that of gains: each entry fills some classes of a state."""
    state, first, last, move, gain = np.array(entries, np.int32).reshape(-1, 5).T
    counts = last - first
    place = np.repeat(state, counts), ranges(first, counts)
    moves, gains = np.full(shape, DEAD, np.int32), np.zeros(shape, np.bool_)
    moves[place], gains[place] = np.repeat(move, counts), np.repeat(gain, counts)
    return moves, gains


def _needs(
    moves: Int32s, gains: npt.NDArray[np.bool_], calls: Int32s, final: npt.NDArray[np.bool_]
) -> Int32s:
    """The fewest counts from each state to the end of its frame, by relaxation."""
    need = np.where(final | (moves == POP).any(axis=1), 0, FAR).astype(np.int32)
    if not (calls[:, 2:] != UNBOUNDED).any():  # nobody asks
        return np.zeros_like(need)
    state, kind = np.nonzero(moves != POP)
    target = moves[state, kind]
    backs = calls[:, 1] if len(calls) else np.zeros(1, np.int32)
    target = np.where(target <= CALL, backs[np.clip(CALL - target, 0, len(backs) - 1)], target)
    alive = target != DEAD
    state, kind, target = state[alive], kind[alive], target[alive]
    while True:
        before = need.copy()
        np.minimum.at(need, state, need[target] + gains[state, kind])
        if np.array_equal(before, need):
            return need
