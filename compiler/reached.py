"""Many states as arrays, so that all their distances are worked out at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import ByteAutomaton, State
from cmm.compiler.rows import Targets

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Reached:
    """The states that tokens lead to; the levels of each lie between two of `starts`, lowest first.

    >>> from cmm.compiler.automaton import build_automaton
    >>> from cmm.grammar.nodes import Grammar, Literal
    >>> automaton = build_automaton(Grammar(Literal("ab")))
    >>> reached = Reached.of_states([State(5, (7, 9, 1, None, (8, 9, 0, None, ())))], automaton)
    >>> reached.control.tolist(), reached.back.tolist(), reached.back_due.tolist()
    ([5], [8, 7], [0, 1])
    """

    control: Int32s  # (states,)
    due: Int32s  # (states,)
    starts: Int32s  # (states + 1,)
    back: Int32s  # (levels,) where each level returns to
    back_due: Int32s  # (levels,) and what is due there
    into_key: Int32s  # (states,) 1 where a key is begun: what is written of it may be a taken one

    @classmethod
    def of_targets(cls, targets: Targets, automaton: ByteAutomaton) -> Reached:
        """The targets of rows, from a state to which nothing is due."""
        back, due = automaton.calls[targets.level_calls].reshape(-1, 4)[:, [1, 3]].T
        due = np.maximum(due - targets.level_spent, 0)
        starts = targets.level_starts
        below = np.concatenate([[0], due[:-1]])[: len(due)]
        below[starts[:-1][np.diff(starts) > 0]] = 0
        return cls._of(targets.control, tops(due, starts), starts, back, below, automaton)

    @classmethod
    def of_states(cls, states: Sequence[State], automaton: ByteAutomaton) -> Reached:
        """Some states as they stand."""
        levels = [_levels(state) for state in states]
        flat = np.array([level for each in levels for level in each], np.int32).reshape(-1, 2)
        starts = np.cumsum([0, *map(len, levels)])
        control = np.array([state.control for state in states], np.int32)
        due = np.array([state.due for state in states], np.int32)
        return cls._of(control, due, starts, flat[:, 0], flat[:, 1], automaton)

    @classmethod
    def _of(
        cls,
        control: Int32s,
        due: Int32s,
        starts: Int32s,
        back: Int32s,
        back_due: Int32s,
        automaton: ByteAutomaton,
    ) -> Reached:
        keyed = tops((automaton.keyed >= 0)[back].astype(np.int32), starts)
        return cls(control, due, starts, back, back_due, keyed)


def tops(values: npt.NDArray[np.integer], starts: Int32s) -> Int32s:
    """The value of the highest level of each state, 0 where it has none.

    >>> tops(np.array([5, 6, 7]), np.array([0, 2, 2, 3])).tolist()
    [6, 0, 7]
    """
    if not len(values):
        return np.zeros(len(starts) - 1, np.int32)
    found: Int32s = np.where(np.diff(starts) > 0, values[starts[1:] - 1], 0).astype(np.int32)
    return found


def _levels(state: State) -> list[tuple[int, int]]:
    """Where the levels of a state return to and what is due there, the lowest first."""
    found, stack = [], state.stack
    while stack:
        back, _, due, _, stack = stack
        found.append((back, due))
    return found[::-1]
