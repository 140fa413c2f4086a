"""From bytes to tokens: for every control state the tokens that may come next, and where they lead.

All states are lifted at once: a front of (state of origin, trie node, state reached) descends the
trie level by level, and each step is a few array operations. A token may enter frames and leave
them again; what it has entered and not left are its levels. Two things are left open:

- Where a token leaves the frame in which it began, what follows depends on the state's own stack:
  an exit, kept as (token, number of bytes until the exit), to be continued when that is known.
- Where it gets into the body of a string, all tokens below that node of the trie that stay in a
  string go on as they do in every string: a bough, kept as one node instead of 147,000 tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import CALL, DEAD, POP, ByteAutomaton
from cmm.compiler.boughs import Boughs, readable
from cmm.compiler.nfa import FAR, UNBOUNDED
from cmm.compiler.rows import Exits, Rows, Targets, distinct_rows, gathered
from cmm.compiler.trie import Trie, ranges
from cmm.grammar.errors import RowBudgetExceeded

Int32s = npt.NDArray[np.int32]
MOST_FOLLOWED = 12_000_000  # states of tokens on their way: about 1 GB with what is made of them
LONG_ROW = 16_000  # followed for one state: such a row is read when it is asked for
MOST_LONG = 1_000  # such rows, each of which is measured once
LONG_AT_ONCE = 16
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Front:
    """Tokens on their way, each at a node of the trie."""

    origin: Int32s  # the state in which the token began
    node: Int32s  # how far it is read
    control: Int32s  # the state it is in now
    stack: Int32s  # the levels it has entered: a number of Levels
    spent: Int32s  # what it has counted in its level
    thin: Int32s  # on which bough, else -1: there only tokens that leave the string are followed

    @classmethod
    def starting(cls, states: Int32s) -> Front:
        """Before the first byte of any token, in each of some states."""
        zero = np.zeros_like(states)
        return cls(states, zero, states, zero, zero, zero - 1)

    def __getitem__(self, chosen: npt.NDArray[np.generic]) -> Front:
        return Front(*(getattr(self, item.name)[chosen] for item in fields(self)))

    def __len__(self) -> int:
        return len(self.origin)


class Levels:
    """Stacks of calls as numbers: 0 is none, each other one a call on what is below it."""

    def __init__(self, calls: Int32s) -> None:
        self.calls = calls
        self.bounded = bool((calls[:, 2:] != UNBOUNDED).any())
        self.table: list[tuple[int, int, int]] = [(0, -1, 0)]  # (below, call, spent below)
        self.numbers: dict[tuple[int, int, int], int] = {}

    def push(self, stack: Int32s, call: Int32s, spent: Int32s) -> Int32s:
        """The stacks with a call on top."""
        distinct, inverse = distinct_rows(stack, call, spent)
        pushed = [self._number(*row) for row in distinct.tolist()]
        return np.array(pushed, np.int32)[inverse]

    def _number(self, *key: int) -> int:
        below, call, spent = key
        if (below, call, spent) not in self.numbers:
            self.numbers[below, call, spent] = len(self.table)
            self.table.append((below, call, spent))
        return self.numbers[below, call, spent]

    def columns(self) -> tuple[Int32s, Int32s, Int32s]:
        """Below, call and spent below of every stack."""
        below, call, spent = np.array(self.table, np.int32).T
        return below, call, spent

    def bounds(self, stack: Int32s) -> tuple[Int32s, Int32s]:
        """Room and due of the level on top; the origin's own is not known here."""
        _, call, _ = self.columns()
        calls = self.calls if len(self.calls) else np.zeros((1, 4), np.int32)
        chosen = calls[np.maximum(call[stack], 0)]
        inside = stack > 0
        return np.where(inside, chosen[:, 2], FAR), np.where(inside, chosen[:, 3], 0)


class Lifted(NamedTuple):
    """Rows, and where the tokens of each state lead whose row is read when it is asked for."""

    rows: Rows
    long: Mapping[int, Targets]


def lift(
    automaton: ByteAutomaton, trie: Trie, first: int, last: int, bases: Sequence[Boughs] = ()
) -> Lifted:
    """The rows of the control states first up to last.

    >>> from cmm.compiler.automaton import build_automaton
    >>> from cmm.compiler.trie import build_trie
    >>> from cmm.grammar.nodes import Grammar, Literal, Text, sequence
    >>> automaton = build_automaton(Grammar(sequence(Literal("ab"), Text())))
    >>> trie = build_trie([b"a", b"ab", b"b", b'b"x'])
    >>> rows, _ = lift(automaton, trie, automaton.start, len(automaton.final))
    >>> rows.tokens[rows.starts[0] : rows.starts[1]].tolist()
    [0, 1]

    `bases` say where boughs may begin; without them every token is followed to its end.
    """
    levels = Levels(automaton.calls)
    states = np.arange(first, last, dtype=np.int32)
    front = Front.starting(states)
    may_be_long = np.append(np.zeros(first, np.bool_), readable(automaton)[first:last])
    found, are_long = _follow(front, automaton, trie, levels, bases, may_be_long & bool(bases))
    long = np.flatnonzero(are_long).astype(np.int32)
    leads: dict[int, Targets] = {}
    for chunk in np.array_split(long, -(-len(long) // LONG_AT_ONCE) or 1):
        read, _ = _follow(Front.starting(chunk), automaton, trie, levels, (), are_long & False)
        found.left.extend(read.left)
        ends = _joined(read.reached)
        pairs = ends.control.astype(np.int64) << 32 | ends.spent
        leads |= {s: Targets.flat(np.unique(pairs[ends.origin == s])) for s in chunk.tolist()}
    found.boughs.append(replace(Front.starting(long), thin=np.full_like(long, len(bases))))
    return Lifted(_collect(found, automaton, trie, levels, (first, last)), leads)


class Followed(NamedTuple):
    """Fronts of every level: at the ends of tokens, where they leave the frame, at boughs."""

    reached: list[Front]
    left: list[Front]
    boughs: list[Front]


def _follow(
    front: Front,
    automaton: ByteAutomaton,
    trie: Trie,
    levels: Levels,
    bases: Sequence[Boughs],
    may_be_long: Bools,
) -> tuple[Followed, Bools]:
    """A front followed to the ends of all tokens, but for states whose row turns out to be long."""
    found = Followed([], [], [])
    followed = np.zeros(len(may_be_long), np.int64)
    are_long = np.zeros(len(may_be_long), np.bool_)
    while len(front):
        front, begun = _begin_boughs(front, bases)
        found.boughs.append(begun)
        front, leaving = _descend(front, automaton, trie, levels, bases)
        found.left.append(leaving)
        followed += np.bincount(front.origin, minlength=len(followed))
        are_long = may_be_long & (followed > LONG_ROW)
        _check_budget(int(followed[~are_long].sum()), int(are_long.sum()))
        front = front[~are_long[front.origin]]
        found.reached.append(front[(trie.ending[front.node] > 0) & (front.thin < 0)])
    stored = ([front[~are_long[front.origin]] for front in fronts] for fronts in found)
    return Followed(*stored), are_long


def _begin_boughs(front: Front, bases: Sequence[Boughs]) -> tuple[Front, Front]:
    """The front, and what of it goes on from here as from one of the bases."""
    thin = front.thin.copy()
    for number, base in enumerate(bases):
        thin[(thin < 0) & (base.control[front.node] == front.control)] = number
    begins = np.flatnonzero(thin != front.thin)
    front = replace(front, thin=thin)
    return front, front[begins]


def _descend(
    front: Front, automaton: ByteAutomaton, trie: Trie, levels: Levels, bases: Sequence[Boughs]
) -> tuple[Front, Front]:
    """The front one level deeper, and what left its frame of origin on the way."""
    before, node = _children(front, automaton, trie)
    thin = front.thin[before]
    for number in np.unique(thin[thin >= 0]).tolist():
        kept = (thin != number) | bases[number].leaving[node]
        before, node, thin = before[kept], node[kept], thin[kept]
    kinds = automaton.classes[trie.byte[node]]
    move = automaton.moves[front.control[before], kinds]
    alive = np.flatnonzero(move != DEAD)
    gain = automaton.gains[front.control[before[alive]], kinds[alive]]
    moved = front[before[alive]]
    front = replace(moved, node=node[alive], control=move[alive], spent=moved.spent + gain)

    returning = front.control == POP
    leaving = returning & (front.stack == 0)
    called = np.flatnonzero(front.control <= CALL)
    returned = np.flatnonzero(returning & ~leaving)
    room, due = levels.bounds(front.stack) if levels.bounded else (None, None)
    _enter(front, called, automaton, levels)
    _return(front, returned, automaton, levels)
    kept = ~leaving
    if room is not None and due is not None:
        need = np.where(front.control >= 0, automaton.need[front.control], 0)
        fits = room - front.spent >= need
        fits[called] = True
        fits[returned] = due[returned] <= moved.spent[returned] if len(returned) else True
        kept &= fits
    return front[kept], front[leaving]


def _children(front: Front, automaton: ByteAutomaton, trie: Trie) -> tuple[Int64s, Int32s]:
    """The nodes below the front's, and which of it each is below."""
    if not front.node.any():  # at the root: 256 children of each, of which a state has few moves
        last = int(trie.first_child[1])
        kinds = automaton.classes[trie.byte[1:last]]
        before, child = np.nonzero(automaton.moves[front.control][:, kinds] != DEAD)
        return before, (child + 1).astype(np.int32)
    first = trie.first_child[front.node]
    counts = trie.first_child[front.node + 1] - first
    _check_budget(int(counts.sum()))
    before = np.repeat(np.arange(len(counts)), counts)
    return before, ranges(first, counts).astype(np.int32)


def _check_budget(followed: int, long: int = 0) -> None:
    if followed > MOST_FOLLOWED:
        what = f"rows of more than {MOST_FOLLOWED:,} tokens together"
    elif long > MOST_LONG:
        what = f"more than {MOST_LONG} rows of more than {LONG_ROW:,} tokens"
    else:
        return
    advice = "say lengths by minLength and maxLength, which cost nothing"
    raise RowBudgetExceeded(f"needs {what}", advice=advice)


def _enter(
    front: Front, called: npt.NDArray[np.intp], automaton: ByteAutomaton, levels: Levels
) -> None:
    if len(called):
        call = CALL - front.control[called]
        front.stack[called] = levels.push(front.stack[called], call, front.spent[called])
        front.control[called] = automaton.calls[call, 0]
        front.spent[called] = 0


def _return(
    front: Front, returned: npt.NDArray[np.intp], automaton: ByteAutomaton, levels: Levels
) -> None:
    if len(returned):
        below, call, spent = levels.columns()
        stack = front.stack[returned]
        front.control[returned] = automaton.calls[call[stack], 1]
        front.spent[returned] = spent[stack]
        front.stack[returned] = below[stack]
        front.thin[returned] = -1


def _collect(
    found: Followed, automaton: ByteAutomaton, trie: Trie, levels: Levels, span: tuple[int, int]
) -> Rows:
    """The fronts at token ends as rows, in order of state and token."""
    first, last = span
    ends, exits, begun = map(_joined, found)
    ending = trie.ending[ends.node].astype(np.int64)
    origin = np.repeat(ends.origin, ending) - first
    tokens = trie.order[ranges(trie.low[ends.node], ending)]
    both = _joined([ends, begun])
    targets, number = Targets.of(both.control, both.stack, both.spent, levels.table)
    target = np.repeat(number[: len(ends)], ending)
    order = np.lexsort((tokens, origin))
    begun_order = np.lexsort((begun.node, begun.origin))
    return Rows(
        starts=gathered(origin, last - first),
        tokens=tokens[order],
        target=target[order],
        targets=targets,
        exits=Exits.of(exits.origin - first, exits.node, exits.spent, trie, last - first),
        bough_starts=gathered(begun.origin - first, last - first),
        bough_nodes=begun.node[begun_order],
        bough_bases=begun.thin[begun_order],
        bough_targets=number[len(ends) :][begun_order],
    )


def _joined(parts: list[Front]) -> Front:
    if not parts:
        empty = np.zeros(0, np.int32)
        return Front(empty, empty, empty, empty, empty, empty)
    return Front(*(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Front)))
