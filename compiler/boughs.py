"""How the trie is read from one state inside a string: worked out once, shared by many rows.

Whatever state a token began in, once it has come to the state that another one would be in at the
same node of the trie, all tokens below that node go on as they do from that other one: a bough,
kept as one node instead of 147,000 tokens. The JSON string's body is the state that all automata
share; in a string with a pattern it is each state that many characters lead back to.

A row that would be too long, as in the middle of a host name, is one bough from the root: it is
not stored, but read from its own state when it is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import CALL, DEAD, POP, ByteAutomaton
from cmm.compiler.frozen import FrozenArrays
from cmm.compiler.rows import Targets
from cmm.compiler.trie import Trie

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

WIDE = 16  # bytes that lead a state back to itself: more than any digits, fewer than [a-z]


@dataclass(frozen=True, eq=False, repr=False)
class Boughs(FrozenArrays):
    """The trie as read from one state, by its nodes and, in the order of its tokens, by these."""

    control: Int32s  # (nodes,) the state after the node's bytes, below 0 if none
    leaving: Bools  # (nodes,) does a token on this way leave the string
    spent: Int32s  # (nodes,) the characters of the node's bytes
    target: Int32s  # (places of trie.order,) the target of a token that stays inside, else -1
    targets: Targets


def make_boughs(automaton: ByteAutomaton, trie: Trie, base: int) -> Boughs:
    """How the trie is read from a state, in whose frame nothing is called.

    >>> from cmm.compiler.automaton import TEXT_BODY, build_automaton
    >>> from cmm.compiler.trie import build_trie
    >>> from cmm.grammar.nodes import Grammar, Text
    >>> trie = build_trie([b"a", b'a"', b'"'])
    >>> boughs = make_boughs(build_automaton(Grammar(Text())), trie, TEXT_BODY)
    >>> boughs.target.tolist(), boughs.leaving.tolist()
    ([-1, 0, -1], [True, True, True, True])
    """
    nodes = len(trie.byte)
    control = np.full(nodes, DEAD, np.int32)
    spent = np.zeros(nodes, np.int32)
    left = np.zeros(nodes, np.bool_)
    control[0] = base
    for level in trie.levels():
        above = trie.parent[level]
        before = np.maximum(control[above], 0)
        kinds = automaton.classes[trie.byte[level]]
        move = np.where(control[above] >= 0, automaton.moves[before, kinds], DEAD)
        control[level] = move
        spent[level] = spent[above] + (automaton.gains[before, kinds] & (move >= 0))
        left[level] = (move == POP) | left[above]
    leaving = left.copy()
    for level in reversed(trie.levels()):
        np.logical_or.at(leaving, trie.parent[level], leaving[level])
    reached = trie.node_at
    inside = control[reached] >= 0
    pairs = np.where(inside, control[reached].astype(np.int64) << 32 | spent[reached], -1)
    distinct, target = np.unique(pairs, return_inverse=True)
    targets = Targets.flat(distinct[distinct >= 0])
    target -= len(distinct) - len(targets.control)  # -1 comes first, where it is one of them
    return Boughs(control, leaving, spent, target.astype(np.int32), targets)


def wide_states(automaton: ByteAutomaton) -> tuple[int, ...]:
    """The states, besides the string's body, that rows are read from: see above."""
    widths = np.bincount(automaton.classes, minlength=automaton.moves.shape[1])
    own = np.arange(len(automaton.moves))
    loops = ((automaton.moves == own[:, None]) * widths).sum(axis=1) >= WIDE
    return tuple(np.flatnonzero(loops & readable(automaton)).tolist())


def readable(automaton: ByteAutomaton) -> Bools:
    """From which states may the trie be read: of frames of an automaton's own that call nothing."""
    calling = np.unique(automaton.frame[(automaton.moves <= CALL).any(axis=1)])
    found: Bools = ~np.isin(automaton.frame, calling)
    found[: automaton.text_states] = False
    return found
