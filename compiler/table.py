"""The token table: for every state the tokens that may come next, and where each one leads.

    state (before "}}", outside)                   state (inside a string, then "}}")
      token  }   }}                                  row of the string: 146,832 tokens, shared
      leads  1   end                                 exits, read on in the caller:  "  ."  "}  "}}

The rows of ordinary states are short lists, and stored. Those of the states inside a string are
the same for all automata of a vocabulary, and stored with it; only what follows the closing quote
is worked out for each caller, when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from cmm.compiler.artifact import arrays_of, named_table, read_arrays, write_arrays
from cmm.compiler.automaton import (
    TEXT_BODY,
    ByteAutomaton,
    State,
    build_automaton,
    counted,
)
from cmm.compiler.boughs import Boughs, make_boughs, wide_states
from cmm.compiler.collector import collector_paused
from cmm.compiler.determinise import DEFAULT_STATE_BUDGET
from cmm.compiler.distance import Distances, bough_edges, measure
from cmm.compiler.exits import ExitTrie, exits_of, merged, within
from cmm.compiler.lift import lift
from cmm.compiler.nfa import FAR
from cmm.compiler.rows import Rows, Targets
from cmm.compiler.taken import completing_taken, without_taken
from cmm.compiler.vocabulary import TokenId, Vocabulary
from cmm.grammar.nodes import Grammar

Int32s = npt.NDArray[np.int32]

# Merged rows kept, of up to 600 kB each: those of strings, one for each way to go on after one.
MERGED_ROWS_KEPT = 64
OWN_READINGS_KEPT = 4  # readings of the trie for one long row each, of 4 MB
STATES_KEPT = 256  # rows of states with counts, of 600 kB each where they are strings'


@dataclass(frozen=True, eq=False, repr=False)
class TokenTable:
    """The token automaton: start, allowed tokens, next state, acceptance, distance to it.

    >>> from cmm.grammar.nodes import Literal, Text, sequence
    >>> from cmm.compiler.vocabulary import make_vocabulary
    >>> vocabulary = make_vocabulary([b"s", b'="', b"x", b'y"', b'"'])
    >>> table = build_table(Grammar(sequence(Literal("s="), Text())), vocabulary)
    >>> inside = table.next(table.next(table.start, 0), 1)
    >>> table.allowed(inside).tolist(), table.distance(inside)
    ([0, 1, 2, 3, 4], 1)
    >>> table.is_final(table.next(inside, 3))
    True
    """

    vocabulary: Vocabulary
    automaton: ByteAutomaton
    rows: Rows  # of the control states from automaton.text_states on
    distances: Distances
    about: Mapping[str, Any] = field(
        default_factory=lambda: MappingProxyType({})
    )  # JSON, for files

    @property
    def start(self) -> State:
        """The state before the first token."""
        return State(self.automaton.start)

    def allowed(self, state: State) -> Int32s:
        """The tokens that may come next, ascending."""
        row: Int32s = self._allowed(state)
        return row

    def keeps(self, state: State, token: TokenId) -> bool:
        """Is an allowed token one to be chosen? Here all are; see CanonicalTable."""
        return True

    @cached_property
    def _allowed(self):  # type: ignore[no-untyped-def]
        return lru_cache(STATES_KEPT)(self._find_allowed)

    def _find_allowed(self, state: State) -> Int32s:
        row = self._row(state)
        if self.automaton.tracks:
            row = without_taken(row, state, self.automaton, self.vocabulary)
            row.flags.writeable = False
        return row

    def _row(self, state: State) -> Int32s:
        rows, i = self._place(state.control)
        low, high = rows.starts[i], rows.starts[i + 1]
        nodes = tuple(node for node, _ in self._reached(state))
        free = (state.room, state.due) == (FAR, 0)
        if rows.bough_starts[i] == rows.bough_starts[i + 1] and free:
            return self._merged(state.control, nodes) if nodes else rows.tokens[low:high]
        row = rows.tokens[low:high]
        if state.room < FAR:
            row = row[self._costs(rows)[rows.target[low:high]] <= state.room]
        boughs = [tokens for _, tokens, *_ in self._boughs(rows, i, state)]
        return merged([row, *boughs, within(nodes, state.room, state.due)])

    def distances_after(self, state: State) -> Int32s:
        """The distance of the state that each allowed token leads to, in the order of `allowed`.

        >>> from cmm.compiler.vocabulary import make_vocabulary
        >>> from cmm.grammar.nodes import Text
        >>> table = build_table(Grammar(Text()), make_vocabulary([b'"', b"x"]))
        >>> inside = table.next(table.start, 0)
        >>> table.allowed(inside).tolist(), table.distances_after(inside).tolist()
        ([0, 1], [0, 1])
        """
        found: Int32s = self._distances_after(state)
        return found

    @cached_property
    def _distances_after(self):  # type: ignore[no-untyped-def]
        return lru_cache(MERGED_ROWS_KEPT)(self._find_distances_after)

    def _find_distances_after(self, state: State) -> Int32s:
        allowed = self.allowed(state)
        found = np.full(len(allowed), FAR, np.int32)
        for tokens, following in self._following(state):
            if len(allowed):
                place = np.minimum(np.searchsorted(allowed, tokens), len(allowed) - 1)
                found[place[allowed[place] == tokens]] = self.distance(following)
        for token in completing_taken(state, self.automaton, self.vocabulary):
            if token in allowed:
                found[allowed == token] = self.distance(self.next(state, token))
        found.flags.writeable = False
        return found

    def _following(self, state: State) -> Iterator[tuple[Int32s, State]]:
        """The allowed tokens in groups that lead to one state."""
        rows, i = self._place(state.control)
        span = slice(rows.starts[i], rows.starts[i + 1])
        costs, target = self._costs(rows), rows.target[span]
        for kind in np.unique(target).tolist():
            if costs[kind] <= state.room:
                following = rows.targets.state(kind, self.automaton, state)
                yield rows.tokens[span][target == kind], following
        for strings, tokens, target, reached, read in self._boughs(rows, i, state):
            for kind in np.unique(target).tolist():
                room, due = counted(reached.room, reached.due, int(strings.spent[kind]) - read)
                following = State(int(strings.control[kind]), reached.stack, room, due)
                yield tokens[target == kind], following
        for node, following in self._reached(state):
            yield within([node], state.room, state.due), following

    def _reached(self, state: State) -> list[tuple[ExitTrie, State]]:
        """What follows in the caller for tokens that leave the frame."""
        if not state.stack:
            return []
        back, room, due, keys, stack = state.stack
        caller = State(back, stack, room, due, keys)
        return list(self._exits(state.control).reached(self.automaton, caller))

    def _boughs(
        self, rows: Rows, i: int, state: State
    ) -> Iterator[tuple[Targets, Int32s, Int32s, State, int]]:
        """The tokens below each bough of a row, with the targets they are of.

        Also the state at the bough, and the characters read until there. Tokens that end on a
        bough stand in the row itself.
        """
        trie = self.vocabulary.trie
        for k in range(int(rows.bough_starts[i]), int(rows.bough_starts[i + 1])):
            node, target = rows.bough_nodes[k], int(rows.bough_targets[k])
            base = self._base(int(rows.bough_bases[k]), state.control)
            reached = rows.targets.state(target, self.automaton, state)
            span = slice(trie.low[node] + trie.ending[node], trie.high[node])
            kinds, read = base.target[span], int(base.spent[node])
            fits = kinds >= 0
            if reached.room < FAR:
                fits &= base.targets.cost(self.automaton)[kinds] - read <= reached.room
            yield base.targets, trie.order[span][fits], kinds[fits], reached, read

    @cached_property
    def _base(self):  # type: ignore[no-untyped-def]
        wide = wide_states(self.automaton)
        shared = cache(lambda state: make_boughs(self.automaton, self.vocabulary.trie, state))
        own = lru_cache(OWN_READINGS_KEPT)(shared.__wrapped__)

        def base(number: int, control: int) -> Boughs:
            if number == 0:
                return self.vocabulary.boughs
            return shared(wide[number - 1]) if number <= len(wide) else own(control)

        return base

    def _costs(self, rows: Rows) -> Int32s:
        return self._text_costs if rows is self.vocabulary.text_rows else self._own_costs

    @cached_property
    def _own_costs(self) -> Int32s:
        return self.rows.targets.cost(self.automaton)

    @cached_property
    def _text_costs(self) -> Int32s:
        return self.vocabulary.text_rows.targets.cost(self.automaton)

    @cached_property
    def _merged(self):  # type: ignore[no-untyped-def]
        def merge(control: int, nodes: tuple[ExitTrie, ...]) -> Int32s:
            rows, i = self._place(control)
            row = rows.tokens[rows.starts[i] : rows.starts[i + 1]]
            return merged([row, within(nodes, FAR, 0)])

        return lru_cache(MERGED_ROWS_KEPT)(merge)

    @cached_property
    def _exits(self):  # type: ignore[no-untyped-def]
        return lru_cache(None)(self._find_exits)

    def _find_exits(self, control: int) -> ExitTrie:
        if control == TEXT_BODY:
            return self.vocabulary.body_exits
        rows, i = self._place(control)
        return exits_of(rows.exits, i, self.vocabulary.tokens)

    def _place(self, control: int) -> tuple[Rows, int]:
        base = self.automaton.text_states
        if control < base:
            return self.vocabulary.text_rows, control
        return self.rows, control - base

    def next(self, state: State, token: TokenId) -> State:
        """The state after a token; KeyError where it is not allowed."""
        rows, i = self._place(state.control)
        low, high = rows.starts[i], rows.starts[i + 1]
        at = low + np.searchsorted(rows.tokens[low:high], token)
        simple = state.room == FAR and not self.automaton.tracks
        if at < high and rows.tokens[at] == token and simple:
            return rows.targets.state(int(rows.target[at]), self.automaton, state)
        data = self.vocabulary.tokens[token] if 0 <= token < self.vocabulary.size else b""
        following, read = self.automaton.walk(state, data)
        if not data or read < len(data):
            raise KeyError(f"token {token} is not allowed here")
        return following

    def is_final(self, state: State) -> bool:
        """May the text end here?"""
        return self.automaton.is_final(state)

    def distance(self, state: State) -> int:
        """The fewest tokens to acceptance (see Distances for where it is an upper bound)."""
        if not self.automaton.key_is_taken(state):
            return self.distances.of(state)
        if state.control < self.automaton.text_states:
            return self.distances.of(state) + 1  # a character more
        return 1 + int(self.distances_after(state).min())

    def accepts(self, text: str | bytes) -> bool:
        """Is the text in the language, whatever its tokens?

        A mark that is a control token is spelled as `control_token` does.
        """
        return self.automaton.accepts(text)

    def counts(self) -> dict[str, int]:
        """States of the byte automaton, transitions of tokens stored for them, bytes of both."""
        parts = (self.automaton, self.rows, self.distances)
        arrays = [array for part in parts for array in arrays_of("", part).values()]
        return {
            "states": len(self.automaton.final),
            "transitions": len(self.rows.tokens),
            "bytes": sum(array.nbytes for array in arrays),
        }

    def __repr__(self) -> str:
        return f"TokenTable({self.counts()})"

    def save(self, path: str | Path) -> int:
        """Write the table to a file; returns its bytes."""
        from cmm.compiler.packing import pack_table

        return write_arrays(Path(path), pack_table(self))

    @classmethod
    def load(cls, path: str | Path, vocabulary: Vocabulary | None = None) -> TokenTable:
        """Read a table that was saved; InvalidInput where it cannot be used.

        Without a vocabulary the one is taken from the cache that the table was made for.
        """
        from cmm.compiler.packing import unpack_table
        from cmm.compiler.store import known_vocabulary  # which itself stores tables

        with named_table(Path(path)):
            packed = read_arrays(Path(path))
            return unpack_table(packed, vocabulary or known_vocabulary(packed[1]))


def build_table(
    grammar: Grammar, vocabulary: Vocabulary, budget: int = DEFAULT_STATE_BUDGET
) -> TokenTable:
    """The token table of a grammar over a vocabulary."""
    with collector_paused():
        return _built(build_automaton(grammar, budget, vocabulary.controls), vocabulary)


def _built(automaton: ByteAutomaton, vocabulary: Vocabulary) -> TokenTable:
    first, last = automaton.text_states, len(automaton.final)
    wide = [make_boughs(automaton, vocabulary.trie, base) for base in wide_states(automaton)]
    rows, long = lift(automaton, vocabulary.trie, first, last, [vocabulary.boughs, *wide])
    further = bough_edges(rows, wide, long, vocabulary.trie, automaton)
    distances = measure(automaton, vocabulary.text_distances, rows, further, vocabulary.body_exits)
    return TokenTable(vocabulary, automaton, rows, distances)
