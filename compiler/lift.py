"""From bytes to tokens: for every control state the tokens that may come next, and where they lead.

All states are lifted at once: a front of (state of origin, trie node, state reached) descends the
trie level by level, and each step is a few array operations. A token may enter frames and leave
them again; what it has entered and not left is its `pushed` stack. Where it leaves the frame in
which it began, what follows depends on the state's own stack: that is an exit, kept apart as
(token, number of bytes until the exit), to be continued when the stack is known.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import CALL, DEAD, POP, ByteAutomaton
from cmm.compiler.trie import Trie

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """The token rows of some control states, the first of which is `base`.

    Row i is starts[i]..starts[i + 1] of tokens (ascending) and targets. A target names a control
    state and the part of `pushed` (bottom first) that the token leaves on the stack.
    """

    starts: Int32s  # (states + 1,)
    tokens: Int32s  # (entries,)
    targets: Int32s  # (entries,) rows of control and pushed_starts
    control: Int32s  # (targets,)
    pushed_starts: Int32s  # (targets + 1,)
    pushed: Int32s  # control states to return to
    exit_starts: Int32s  # (states + 1,)
    exit_tokens: Int32s  # (exits,)
    exit_depths: Int32s  # (exits,) bytes of the token up to and with the one that leaves the frame
    exit_exact: npt.NDArray[np.bool_]  # (exits,) is that byte the token's last

    def __post_init__(self) -> None:
        for item in fields(self):
            getattr(self, item.name).flags.writeable = False


def lift(automaton: ByteAutomaton, trie: Trie, first: int, last: int) -> Rows:
    """The rows of the control states first up to last.

    >>> from cmm.compiler.automaton import build_automaton
    >>> from cmm.compiler.trie import build_trie
    >>> from cmm.grammar.nodes import Grammar, Literal, Text, sequence
    >>> automaton = build_automaton(Grammar(sequence(Literal("ab"), Text())))
    >>> trie = build_trie([b"a", b"ab", b"b", b'b"x'])
    >>> rows = lift(automaton, trie, automaton.start, len(automaton.final))
    >>> rows.tokens[rows.starts[0] : rows.starts[1]].tolist()
    [0, 1]
    """
    stacks = _Stacks()
    origin = np.arange(first, last, dtype=np.int32)
    front = _Front(origin, np.zeros_like(origin), origin, np.zeros_like(origin))
    reached, exits = [], []
    while len(front.origin):
        front, left = _descend(front, automaton, trie, stacks)
        ends = trie.ending[front.node] > 0
        reached.append(_Front(*(getattr(front, f.name)[ends] for f in fields(front))))
        exits.append(left)
    return _collect(reached, exits, trie, stacks, first, last)


@dataclass(frozen=True, eq=False, repr=False)
class _Front:
    origin: Int32s  # the state in which the token began
    node: Int32s  # how far it is read
    control: Int32s  # the state it is in now
    stack: Int32s  # what it has entered: a number of _Stacks


class _Stacks:
    """Stacks as numbers: 0 is empty, and each other one is a top on a smaller one."""

    def __init__(self) -> None:
        self.tops, self.belows = [-1], [0]
        self.numbers: dict[tuple[int, int], int] = {}

    def push(self, stack: Int32s, tops: Int32s) -> Int32s:
        pairs, inverse = np.unique(np.stack([stack, tops], 1), axis=0, return_inverse=True)
        pushed = [self._number(below, top) for below, top in pairs.tolist()]
        return np.array(pushed, np.int32)[inverse.reshape(-1)]

    def _number(self, below: int, top: int) -> int:
        if (below, top) not in self.numbers:
            self.numbers[below, top] = len(self.tops)
            self.tops.append(top)
            self.belows.append(below)
        return self.numbers[below, top]

    def bottom_first(self, stack: int) -> list[int]:
        found: list[int] = []
        while stack:
            found.append(self.tops[stack])
            stack = self.belows[stack]
        return found[::-1]


def _descend(
    front: _Front, automaton: ByteAutomaton, trie: Trie, stacks: _Stacks
) -> tuple[_Front, tuple[Int32s, Int32s]]:
    """The front one level deeper, and the (origins, nodes) that left their frame on the way."""
    first = trie.first_child[front.node]
    counts = trie.first_child[front.node + 1] - first
    before = np.repeat(np.arange(len(counts)), counts)
    node = _ranges(first, counts).astype(np.int32)
    move = automaton.moves[front.control[before], automaton.classes[trie.byte[node]]]
    alive = move != DEAD
    before, node, move = before[alive], node[alive], move[alive]
    origin, stack = front.origin[before], front.stack[before]

    leaving = (move == POP) & (stack == 0)
    left = origin[leaving], node[leaving]
    calling = move <= CALL
    if calling.any():
        entered, back = automaton.calls[CALL - move[calling]].T
        stack[calling] = stacks.push(stack[calling], back)
        move[calling] = entered
    returning = (move == POP) & ~leaving
    if returning.any():
        inner = stack[returning]
        move[returning] = np.array(stacks.tops, np.int32)[inner]
        stack[returning] = np.array(stacks.belows, np.int32)[inner]
    stay = ~leaving
    return _Front(origin[stay], node[stay], move[stay], stack[stay]), left


def _ranges(starts: Int32s, counts: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    """All numbers of the ranges starts[i] .. starts[i] + counts[i], one after the other."""
    ends: npt.NDArray[np.int64] = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.arange(total, dtype=np.int64) + np.repeat(starts - ends + counts, counts)


def _collect(
    reached: list[_Front],
    exits: list[tuple[Int32s, Int32s]],
    trie: Trie,
    stacks: _Stacks,
    first: int,
    last: int,
) -> Rows:
    """The fronts at token ends as rows, in order of state and token."""
    joined = _Front(*(np.concatenate([getattr(part, f.name) for part in reached] or [[]])
                      .astype(np.int32) for f in fields(_Front)))  # fmt: skip
    ending = trie.ending[joined.node].astype(np.int64)
    origin = np.repeat(joined.origin, ending) - first
    tokens = trie.order[_ranges(trie.low[joined.node], ending)]
    kinds, target = _numbered(np.repeat(joined.control, ending), np.repeat(joined.stack, ending))
    order = np.lexsort((tokens, origin))
    pushed = [stacks.bottom_first(stack) for _, stack in kinds]

    left, exit_tokens, exit_depths, exact = _exits(exits, trie, first)
    return Rows(
        starts=_starts(origin, last - first),
        tokens=tokens[order],
        targets=target[order],
        control=np.array([control for control, _ in kinds], np.int32),
        pushed_starts=np.cumsum([0, *map(len, pushed)]).astype(np.int32),
        pushed=np.array([top for tops in pushed for top in tops], np.int32),
        exit_starts=_starts(left, last - first),
        exit_tokens=exit_tokens,
        exit_depths=exit_depths,
        exit_exact=exact,
    )


def _exits(
    exits: list[tuple[Int32s, Int32s]], trie: Trie, first: int
) -> tuple[Int32s, Int32s, Int32s, npt.NDArray[np.bool_]]:
    """Origin, token, depth and exactness of every token below a node that leaves its frame."""
    origin = np.concatenate([origins for origins, _ in exits]).astype(np.int32) - first
    node = np.concatenate([nodes for _, nodes in exits]).astype(np.int32)
    low, below = trie.low[node], (trie.high - trie.low)[node]
    place = _ranges(low, below)
    origin, tokens = np.repeat(origin, below), trie.order[place]
    exact = place < np.repeat(low + trie.ending[node], below)
    order = np.lexsort((tokens, origin))
    depth = np.repeat(trie.depth[node], below).astype(np.int32)
    return origin[order], tokens[order], depth[order], exact[order]


def _numbered(control: Int32s, stack: Int32s) -> tuple[list[tuple[int, int]], Int32s]:
    """The distinct pairs in ascending order, and which of them stands at each place."""
    keys = control.astype(np.int64) << 32 | stack
    distinct, inverse = np.unique(keys, return_inverse=True)
    pairs = [(key >> 32, key & 0xFFFFFFFF) for key in distinct.tolist()]
    return pairs, inverse.reshape(-1).astype(np.int32)


def _starts(origin: Int32s, states: int) -> Int32s:
    counts = np.bincount(origin, minlength=states)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
