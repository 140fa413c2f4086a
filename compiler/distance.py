"""Fewest tokens to the end, for every state: what lets a token limit close a call, never cut it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import CALL, DEAD, POP, TEXT_BODY, ByteAutomaton, State
from cmm.compiler.exits import ExitTrie
from cmm.compiler.nfa import FAR
from cmm.compiler.rows import Rows

Int32s = npt.NDArray[np.int32]
Continued = Mapping[int, Sequence[tuple[State, int]]]  # state -> states after it, and extra tokens
NOWHERE: Continued = MappingProxyType({})


@dataclass(frozen=True, eq=False, repr=False)
class Distances:
    """Tokens from each control state to the end of its frame, and from a string's body beyond it.

    A state with a stack is as far as its control state and all returns together. After a string
    (`after_text`) the token of its closing quote may go on in the caller, and that is counted; a
    token that closes several nested values of free JSON at once is not, so that there the sum is
    an upper bound. So it is where an item or a character of a constrained string is still due: then
    bytes are counted instead of tokens, and `round` for each further count. From every state some
    token leads to one that is nearer.
    """

    to_end: Int32s  # (states,) to the end of the frame, a token boundary falling on it
    to_body: Int32s  # (text states,) from each state of a string to its body
    after_text: Int32s  # (states,) from a string's body to the end of the frame returned to
    bytes_to_end: Int32s  # (states,)
    round: Int32s  # (states,) bytes for one more count, from wherever in the frame
    need: Int32s  # (states,) counts on any way to the end of the frame
    stride: Int32s  # (1,) characters that one token of a free string can write, and all fewer

    def of(self, state: State) -> int:
        """Tokens from a state to acceptance."""
        control, stack, _, due, _, _ = state
        in_text = control < len(self.to_body)
        if in_text and stack:
            back, _, back_due, _, below = stack
            body = int(self.to_body[control]) + self._strides(control, due)
            beyond = 1 + self._level(back, back_due) if back_due else int(self.after_text[back])
            plain = body + beyond
            if not due:
                plain = min(plain, int(self.to_end[control]) + self._level(back, back_due))
            total, stack = plain, below
        else:
            total = self._level(control, due)
        while stack:
            back, _, due, _, stack = stack
            total += self._level(back, due)
        return min(total, FAR)

    def _level(self, control: int, due: int) -> int:
        """Tokens to the end of the frame from a control state that is not a string's."""
        further = due - int(self.need[control])
        if due and further > 0:
            return int(self.bytes_to_end[control]) + further * int(self.round[control])
        return int(self.bytes_to_end[control] if due else self.to_end[control])

    def _strides(self, control: int, due: int) -> int:
        """Tokens for the characters that are due, the one that is being written set aside."""
        if control != TEXT_BODY and due:
            due -= int(self.to_body[control] > 0 and control > TEXT_BODY)
        return -(-due // int(self.stride[0]))


def measure(automaton: ByteAutomaton, text: Rows, rows: Rows, body_exits: ExitTrie) -> Distances:
    """Distances by relaxation: every state takes its nearest target, until nothing falls.

    `text` are the rows of the string's states and `rows` those of all others; `body_exits` are
    the remainders of the tokens that leave a string's body.
    """
    base = automaton.text_states
    to_end = np.full(len(automaton.final), FAR, np.int32)
    to_end[automaton.final] = 0
    to_body = np.full(base, FAR, np.int32)
    to_body[TEXT_BODY] = 0
    stride = np.array([_stride(text, automaton)], np.int32)
    in_bytes, rounds = _in_bytes(automaton)
    found = Distances(
        to_end, to_body, np.full_like(to_end, FAR), in_bytes, rounds, automaton.need, stride
    )
    inside, outside = _Edges(text, 0, automaton), _Edges(rows, base, automaton)
    _relax(replace(found, to_end=to_body, to_body=to_body[:0]), inside)
    to_end[inside.leaving] = to_end[outside.leaving] = 1
    _relax(found, inside)
    _relax(found, outside, _continuations(automaton, body_exits))
    for array in (to_end, to_body, found.after_text, in_bytes, rounds, stride):
        array.flags.writeable = False
    return found


def _stride(text: Rows, automaton: ByteAutomaton) -> int:
    """The most characters up to which there is a token of every number, all within the body."""
    body = slice(text.starts[TEXT_BODY], text.starts[TEXT_BODY + 1])
    target = text.target[body]
    stays = text.targets.control[target] == TEXT_BODY
    lengths = set(text.targets.spent[target[stays]].tolist())
    return next((n - 1 for n in range(1, FAR) if n not in lengths), 0) or 1


def _continuations(automaton: ByteAutomaton, exits: ExitTrie) -> Continued:
    """For each state that strings return to, the states that their last token can reach there."""
    calls = automaton.calls.tolist()
    # a constrained string may have become a free one before its end, and then returns as that does
    shared = (automaton.moves[automaton.text_states :] == TEXT_BODY).any()
    backs = {back for entered, back, *_ in calls if entered == TEXT_BODY or shared}
    return {
        back: [(s, _into_key(s, automaton)) for _, s in exits.reached(automaton, State(back))]
        for back in sorted(backs)
    }


class _Edges:
    """The distinct (state, target) pairs of rows, and the states from which a token just exits."""

    def __init__(self, rows: Rows, base: int, automaton: ByteAutomaton) -> None:
        origin = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
        count = max(len(rows.targets.control), 1)
        pairs = np.unique(origin.astype(np.int64) * count + rows.target)
        self.origin, self.target = np.divmod(pairs, count)
        self.origin += base
        # Where what is counted is bounded, only a way that counts no more than it must is sure.
        bounded = np.isin(automaton.frame, _bounded_frames(automaton))
        spare = rows.targets.cost(automaton)[self.target] == automaton.need[self.origin]
        kept = spare | ~bounded[self.origin]
        self.origin, self.target = self.origin[kept], self.target[kept]
        leaving = np.repeat(np.arange(len(rows.exits.starts) - 1), np.diff(rows.exits.starts))
        least = rows.exits.spent == automaton.need[leaving + base]
        self.leaving = np.unique(leaving[rows.exits.exact & least]) + base
        start = State(0)
        self.states = [
            rows.targets.state(target, automaton, start)
            for target in range(len(rows.targets.control))
        ]
        self.into_key = np.array([_into_key(s, automaton) for s in self.states], np.int32)

    def values(self, distances: Distances) -> Int32s:
        """The distance of every target."""
        return np.array([distances.of(state) for state in self.states], np.int32) + self.into_key


def _into_key(state: State, automaton: ByteAutomaton) -> int:
    """One more token on the way into a key: what is written of it may be a key that is taken."""
    if not state.stack:
        return 0
    return int(automaton.keyed[state.stack[0]] >= 0)


def _bounded_frames(automaton: ByteAutomaton) -> list[int]:
    """The frames of which some call bounds a count."""
    return sorted({
        int(automaton.frame[entered])
        for entered, _, room, due in automaton.calls.tolist() if (room, due) != (FAR, 0)
    })  # fmt: skip


def _relax(distances: Distances, edges: _Edges, continued: Continued = NOWHERE) -> None:
    to_end, after_text = distances.to_end, distances.after_text
    before = None
    while before is None or not np.array_equal(before, to_end):
        before = to_end.copy()
        for back, states in continued.items():
            nearest = (distances.of(state) + extra for state, extra in states)
            after_text[back] = 1 + min(nearest, default=FAR)
        np.minimum.at(to_end, edges.origin, edges.values(distances)[edges.target] + 1)


def _in_bytes(automaton: ByteAutomaton) -> tuple[Int32s, Int32s]:
    """The fewest bytes from each state to the end of its frame, and for one more count in it.

    In an array one more item costs the way from a comma on; in a string one more character costs
    at most the longest shortest way, of whatever characters its content is made.
    """
    moves, calls = automaton.moves, automaton.calls
    found = np.where((moves == POP).any(axis=1), 1, FAR).astype(np.int32)
    found[automaton.final] = 0
    rounds = np.zeros_like(found)
    state, kind = np.nonzero(moves != DEAD)
    move = moves[state, kind]
    plain, called = move >= 0, move <= CALL
    entered, back, _, due = calls.T
    while True:
        before = found.copy()
        np.minimum.at(found, state[plain], found[move[plain]] + 1)
        _measure_rounds(automaton, found, rounds)
        further = np.maximum(due - automaton.need[entered], 0).astype(np.int64)
        through = found[entered] + further * rounds[entered] + found[back] + 1
        through = through + (automaton.keyed[back] >= 0)  # a character more, if the key is taken
        values = np.minimum(through, FAR).astype(np.int32)[CALL - move[called]]
        np.minimum.at(found, state[called], values)
        if np.array_equal(before, found):
            return found, rounds


def _measure_rounds(automaton: ByteAutomaton, found: Int32s, rounds: Int32s) -> None:
    for frame in {int(automaton.frame[e]) for e, _, _, due in automaton.calls.tolist() if due}:
        members = np.flatnonzero(automaton.frame == frame)
        state, kind = np.nonzero(automaton.gains[members])
        counting = set(automaton.moves[members[state], kind].tolist())
        after = counting.pop() if len(counting) == 1 else -1
        if after >= 0 and not automaton.gains[after].any():  # the state behind a comma
            rounds[members] = found[after]
        else:
            rounds[members] = found[members][found[members] < FAR].max(initial=0) + 1
