"""Fewest tokens to the end, for every state: what lets a token limit close a call, never cut it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import TEXT_BODY, ByteAutomaton, State
from cmm.compiler.exits import ExitTrie
from cmm.compiler.lift import Rows

Int32s = npt.NDArray[np.int32]
FAR = 1 << 29  # out of reach; the sum of two does not overflow
NOWHERE: Mapping[int, Sequence[State]] = MappingProxyType({})


@dataclass(frozen=True, eq=False, repr=False)
class Distances:
    """Tokens from each control state to the end of its frame, and from a string's body beyond it.

    A state with a stack is as far as its control state and all returns together. After a string
    (`after_text`) the token of its closing quote may go on in the caller, and that is counted; a
    token that closes several nested values of free JSON at once is not, so that there the sum is
    an upper bound. From every state some token leads to one that is nearer.
    """

    to_end: Int32s  # (states,) to the end of the frame, a token boundary falling on it
    to_body: Int32s  # (text states,) from each state of a string to its body
    after_text: Int32s  # (states,) from a string's body to the end of the frame returned to

    def of(self, state: State) -> int:
        """Tokens from a state to acceptance."""
        control, stack = state
        total = int(self.to_end[control])
        if control < len(self.to_body) and stack:
            back, stack = stack
            through_body = self.to_body[control] + self.after_text[back]
            total = int(min(through_body, total + self.to_end[back]))
        while stack:
            total += int(self.to_end[stack[0]])
            stack = stack[1]
        return min(total, FAR)


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
    found = Distances(to_end, to_body, np.full_like(to_end, FAR))
    inside = _Edges(text, 0)
    _relax(Distances(to_body, to_body[:0], to_body[:0]), inside)
    outside = _Edges(rows, base)
    to_end[inside.leaving] = to_end[outside.leaving] = 1
    _relax(found, inside)
    _relax(found, outside, _continuations(automaton, body_exits))
    for array in (found.to_end, found.to_body, found.after_text):
        array.flags.writeable = False
    return found


def _continuations(automaton: ByteAutomaton, exits: ExitTrie) -> Mapping[int, Sequence[State]]:
    """For each state that strings return to, the states that their last token can reach there."""
    backs = {back for entered, back in automaton.calls.tolist() if entered == TEXT_BODY}
    return {
        back: [state for _, state in exits.reached(automaton, State(back))]
        for back in sorted(backs)
    }


class _Edges:
    """The distinct (state, target) pairs of rows, and the states from which a token just exits."""

    def __init__(self, rows: Rows, base: int) -> None:
        origin = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
        pairs = np.unique(origin.astype(np.int64) * len(rows.control) + rows.targets)
        self.origin, self.target = np.divmod(pairs, max(len(rows.control), 1))
        self.origin += base
        leaving = np.repeat(np.arange(len(rows.exit_starts) - 1), np.diff(rows.exit_starts))
        self.leaving = np.unique(leaving[rows.exit_exact]) + base
        bounds = pairwise(rows.pushed_starts.tolist())
        stacks = [rows.pushed[low:high] for low, high in bounds]
        self.states = list(map(_state, rows.control, stacks))

    def values(self, distances: Distances) -> Int32s:
        """The distance of every target."""
        return np.array([distances.of(state) for state in self.states], np.int32)


def _state(control: int, pushed: Int32s) -> State:
    state = State(int(control))
    stack = state.stack
    for back in pushed.tolist():
        stack = (back, stack)
    return State(state.control, stack)


def _relax(
    distances: Distances, edges: _Edges, continued: Mapping[int, Sequence[State]] = NOWHERE
) -> None:
    to_end, after_text = distances.to_end, distances.after_text
    before = None
    while before is None or not np.array_equal(before, to_end):
        before = to_end.copy()
        for back, states in continued.items():
            after_text[back] = 1 + min(map(distances.of, states), default=FAR)
        np.minimum.at(to_end, edges.origin, edges.values(distances)[edges.target] + 1)
