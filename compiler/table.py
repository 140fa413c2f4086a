"""The token table: for every state the tokens that may come next, and where each one leads.

    state (before "}}", outside)                   state (inside a string, then "}}")
      token  }   }}                                  row of the string: 146,832 tokens, shared
      leads  1   end                                 exits, read on in the caller:  "  ."  "}  "}}

The rows of ordinary states are short lists, and stored. Those of the states inside a string are
the same for all automata of a vocabulary, and stored with it; only what follows the closing quote
is worked out for each caller, when it is first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cmm.compiler.artifact import (
    DamagedFile,
    Packed,
    arrays_of,
    arrays_under,
    read_arrays,
    write_arrays,
)
from cmm.compiler.automaton import TEXT_BODY, ByteAutomaton, State, build_automaton
from cmm.compiler.distance import Distances, measure
from cmm.compiler.exits import ExitTrie, exit_trie, merged
from cmm.compiler.lift import Rows, lift
from cmm.compiler.vocabulary import TokenId, Vocabulary
from cmm.grammar.errors import InvalidInput
from cmm.grammar.nodes import Grammar

Int32s = npt.NDArray[np.int32]

# Merged rows kept, of up to 600 kB each: those of strings, one for each way to go on after one.
MERGED_ROWS_KEPT = 64
STATES_KEPT = 4096


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

    @property
    def start(self) -> State:
        """The state before the first token."""
        return State(self.automaton.start)

    def allowed(self, state: State) -> Int32s:
        """The tokens that may come next, ascending."""
        row: Int32s = self._allowed(state)
        return row

    @cached_property
    def _allowed(self):  # type: ignore[no-untyped-def]
        return lru_cache(STATES_KEPT)(self._find_allowed)

    def _find_allowed(self, state: State) -> Int32s:
        rows, i = self._place(state.control)
        row = rows.tokens[rows.starts[i] : rows.starts[i + 1]]
        if not state.stack:
            return row
        exits = self._exits(state.control)
        nodes = tuple(node for node, _ in exits.reached(self.automaton, State(*state.stack)))
        return self._merged(state.control, nodes) if nodes else row

    @cached_property
    def _merged(self):  # type: ignore[no-untyped-def]
        def merge(control: int, nodes: tuple[ExitTrie, ...]) -> Int32s:
            rows, i = self._place(control)
            return merged(rows.tokens[rows.starts[i] : rows.starts[i + 1]], nodes)

        return lru_cache(MERGED_ROWS_KEPT)(merge)

    @cached_property
    def _exits(self):  # type: ignore[no-untyped-def]
        return lru_cache(None)(self._find_exits)

    def _find_exits(self, control: int) -> ExitTrie:
        rows, i = self._place(control)
        part = slice(rows.exit_starts[i], rows.exit_starts[i + 1])
        return exit_trie(
            self.vocabulary.tokens, rows.exit_tokens[part].tolist(), rows.exit_depths[part].tolist()
        )

    def _place(self, control: int) -> tuple[Rows, int]:
        base = self.automaton.text_states
        return (
            (self.vocabulary.text_rows, control) if control < base else (self.rows, control - base)
        )

    def next(self, state: State, token: TokenId) -> State:
        """The state after a token; KeyError where it is not allowed."""
        rows, i = self._place(state.control)
        low, high = rows.starts[i], rows.starts[i + 1]
        at = low + np.searchsorted(rows.tokens[low:high], token)
        if at < high and rows.tokens[at] == token:
            target = rows.targets[at]
            stack = state.stack
            for back in rows.pushed[rows.pushed_starts[target] : rows.pushed_starts[target + 1]]:
                stack = (int(back), stack)
            return State(int(rows.control[target]), stack)
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
        return self.distances.of(state)

    def accepts(self, text: str | bytes) -> bool:
        """Is the text in the language, whatever its tokens?"""
        return self.automaton.accepts(text)

    def counts(self) -> dict[str, int]:
        """States of the byte automaton, transitions of tokens stored for them, bytes of both."""
        arrays, _ = self.pack()
        return {
            "states": len(self.automaton.final),
            "transitions": len(self.rows.tokens),
            "bytes": sum(array.nbytes for array in arrays.values()),
        }

    def __repr__(self) -> str:
        return f"TokenTable({self.counts()})"

    def pack(self) -> Packed:
        """The table as arrays and a header, its vocabulary named by digest only."""
        arrays = {
            **arrays_of("automaton", self.automaton),
            **arrays_of("rows", self.rows),
            **arrays_of("distances", self.distances),
        }
        numbers = {"start": self.automaton.start, "text_states": self.automaton.text_states}
        return arrays, {"vocabulary": self.vocabulary.digest, **numbers}

    @classmethod
    def unpack(cls, packed: Packed, vocabulary: Vocabulary) -> TokenTable:
        """The table that was packed; DamagedFile where it is none, or another vocabulary's."""
        arrays, header = packed
        if header.get("vocabulary") != vocabulary.digest:
            raise DamagedFile("it belongs to another vocabulary")
        try:
            base = header["text_states"]
            return cls(
                vocabulary,
                ByteAutomaton(
                    **arrays_under("automaton", arrays), start=header["start"], text_states=base
                ),
                Rows(**arrays_under("rows", arrays)),
                Distances(**arrays_under("distances", arrays), text_states=base),
            )
        except (TypeError, KeyError) as error:
            raise DamagedFile(f"no table: {error}") from None

    def save(self, path: str | Path) -> int:
        """Write the table to a file; returns its bytes."""
        return write_arrays(Path(path), self.pack())

    @classmethod
    def load(cls, path: str | Path, vocabulary: Vocabulary) -> TokenTable:
        """Read a table that was saved for this vocabulary; InvalidInput where it cannot be used."""
        try:
            return cls.unpack(read_arrays(Path(path)), vocabulary)
        except (OSError, DamagedFile) as error:
            raise InvalidInput(
                f"is no usable table: {error}", file=str(path), advice="compile it again"
            ) from None


def build_table(grammar: Grammar, vocabulary: Vocabulary) -> TokenTable:
    """The token table of a grammar over a vocabulary."""
    automaton = build_automaton(grammar)
    rows = lift(automaton, vocabulary.trie, automaton.text_states, len(automaton.final))
    text = vocabulary.text_rows
    body = slice(text.exit_starts[TEXT_BODY], text.exit_starts[TEXT_BODY + 1])
    exits = exit_trie(
        vocabulary.tokens, text.exit_tokens[body].tolist(), text.exit_depths[body].tolist()
    )
    return TokenTable(vocabulary, automaton, rows, measure(automaton, text, rows, exits))
