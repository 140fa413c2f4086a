"""The rows of a token table as arrays: tokens, targets, exits, boughs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmm.compiler.artifact import Arrays, arrays_under
from cmm.compiler.automaton import ByteAutomaton, State, counted
from cmm.compiler.frozen import FrozenArrays
from cmm.compiler.trie import Trie, ranges

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Targets(FrozenArrays):
    """Where tokens lead: a control state, and the levels that a token leaves on the stack.

    A target counts `spent` in the frame of origin, and in each level it has entered (bottom
    first) what stands beside the level's call.
    """

    control: Int32s  # (targets,)
    spent: Int32s  # (targets,)
    level_starts: Int32s  # (targets + 1,)
    level_calls: Int32s  # (levels,) rows of the automaton's calls
    level_spent: Int32s  # (levels,)

    @classmethod
    def of(
        cls, control: Int32s, stack: Int32s, spent: Int32s, table: Sequence[tuple[int, int, int]]
    ) -> tuple[Targets, Int32s]:
        """The distinct targets of some fronts, and which of them stands at each place."""
        distinct, inverse = distinct_rows(control, stack, spent)
        levels = [_levels(stack, spent, table) for _, stack, spent in distinct.tolist()]
        parts = [part for _, inner in levels for part in inner]
        return cls(
            control=distinct[:, 0].copy(),
            spent=np.array([outer for outer, _ in levels], np.int32),
            level_starts=np.cumsum([0, *(len(inner) for _, inner in levels)]).astype(np.int32),
            level_calls=np.array([call for call, _ in parts], np.int32),
            level_spent=np.array([count for _, count in parts], np.int32),
        ), inverse

    @classmethod
    def flat(cls, pairs: npt.NDArray[np.int64]) -> Targets:
        """Targets within the frame of origin: control in the upper 32 bits, spent in the lower."""
        none = np.zeros(0, np.int32)
        return cls(
            control=(pairs >> 32).astype(np.int32),
            spent=(pairs & 0xFFFFFFFF).astype(np.int32),
            level_starts=np.zeros(len(pairs) + 1, np.int32),
            level_calls=none,
            level_spent=none,
        )

    def state(self, target: int, automaton: ByteAutomaton, origin: State) -> State:
        """The state that a token leads to from a state, keys of objects left out of account."""
        room, due = counted(origin.room, origin.due, int(self.spent[target]))
        stack, keys = origin.stack, origin.keys
        for i in range(int(self.level_starts[target]), int(self.level_starts[target + 1])):
            _, back, inner_room, inner_due = automaton.calls[self.level_calls[i]].tolist()
            stack, keys = (back, room, due, keys, stack), None
            room, due = counted(inner_room, inner_due, int(self.level_spent[i]))
        return State(int(self.control[target]), stack, room, due, keys)

    def cost(self, automaton: ByteAutomaton) -> Int32s:
        """The room that each target takes in the frame of origin, with what it must still get."""
        flat = np.diff(self.level_starts) == 0
        return self.spent + np.where(flat, automaton.need[self.control], 0).astype(np.int32)


def _levels(
    stack: int, spent: int, table: Sequence[tuple[int, int, int]]
) -> tuple[int, list[tuple[int, int]]]:
    """What is counted in the frame of origin, and (call, count) of each level, bottom first."""
    inner: list[tuple[int, int]] = []
    while stack:
        stack, call, below = table[stack]
        inner.append((call, spent))
        spent = below
    return spent, inner[::-1]


@dataclass(frozen=True, eq=False, repr=False)
class Exits(FrozenArrays):
    """Tokens that leave the frame of origin after some of their bytes."""

    starts: Int32s  # (states + 1,)
    tokens: Int32s  # (exits,) ascending in each state
    depths: Int32s  # (exits,) bytes up to and with the one that leaves
    spent: Int32s  # (exits,) what is counted until then
    exact: Bools  # (exits,) is that byte the token's last

    @classmethod
    def of(cls, origin: Int32s, node: Int32s, spent: Int32s, trie: Trie, states: int) -> Exits:
        """Every token below a node at which the frame is left."""
        low, below = trie.low[node], (trie.high - trie.low)[node]
        place = ranges(low, below)
        exact = place < np.repeat(low + trie.ending[node], below)
        origin, tokens = np.repeat(origin, below), trie.order[place]
        order = np.lexsort((tokens, origin))
        return cls(
            starts=gathered(origin, states),
            tokens=tokens[order],
            depths=np.repeat(trie.depth[node], below).astype(np.int32)[order],
            spent=np.repeat(spent, below).astype(np.int32)[order],
            exact=exact[order],
        )


@dataclass(frozen=True, eq=False, repr=False)
class Rows(FrozenArrays):
    """The token rows of some control states.

    Row i is starts[i]..starts[i + 1] of tokens (ascending) with the target of each, the exits, and
    boughs: nodes of the trie below which every token that stays in a string is allowed too.
    """

    starts: Int32s  # (states + 1,)
    tokens: Int32s  # (entries,)
    target: Int32s  # (entries,) rows of targets
    targets: Targets
    exits: Exits
    bough_starts: Int32s  # (states + 1,)
    bough_nodes: Int32s  # (boughs,) nodes of the trie
    bough_bases: Int32s  # (boughs,) from which state: 0 the string's body, the wide ones, the row's
    bough_targets: Int32s  # (boughs,) where the node's own bytes lead

    @classmethod
    def unpack(cls, prefix: str, arrays: Arrays) -> Rows:
        """The rows whose arrays `arrays_of` named with the prefix."""
        return cls(
            **arrays_under(prefix, arrays),
            targets=Targets(**arrays_under(f"{prefix}.targets", arrays)),
            exits=Exits(**arrays_under(f"{prefix}.exits", arrays)),
        )


def distinct_rows(*columns: Int32s) -> tuple[Int32s, Int32s]:
    """The distinct rows of some columns of numbers from 0 up, in order, and which one each is.

    >>> distinct_rows(np.array([1, 0, 1]), np.array([2, 5, 2]))[0].tolist()
    [[0, 5], [1, 2]]
    """
    sizes = [int(column.max(initial=0)) + 1 for column in columns]
    keys = np.zeros(len(columns[0]), np.int64)  # sorting one number is many times as fast as rows
    for column, size in zip(columns, sizes, strict=True):
        keys = keys * size + column
    found, inverse = np.unique(keys, return_inverse=True)
    parts = []
    for size in reversed(sizes):
        found, part = np.divmod(found, size)
        parts.append(part)
    return np.stack(parts[::-1], 1).astype(np.int32), inverse.astype(np.int32)


def gathered(origin: Int32s, states: int) -> Int32s:
    """Where the entries of each state start, once they are in its order."""
    counts = np.bincount(origin, minlength=states)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
