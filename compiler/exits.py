"""Tokens that leave their frame: continued in the caller, once the caller is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import ByteAutomaton, State
from cmm.compiler.rows import Exits

Int32s = npt.NDArray[np.int32]


@dataclass(eq=False)
class ExitTrie:
    r"""The remainders of exiting tokens, what they hold after the exit, as a trie.

    From inside a string the tokens `"`, `."` and `"}` exit; their remainders are "", "" and "}",
    and only those are read in the caller:

    >>> trie = exit_trie([b'"', b'."', b'"}'], [(0, 1, 0), (1, 2, 1), (2, 1, 0)])
    >>> trie.tokens, trie.children[ord("}")].tokens
    ([(0, 0), (1, 1)], [(2, 0)])
    """

    tokens: list[tuple[int, int]] = field(default_factory=list)  # (token, counted before the exit)
    children: dict[int, ExitTrie] = field(default_factory=dict)

    def reached(self, automaton: ByteAutomaton, state: State) -> Iterator[tuple[ExitTrie, State]]:
        """The nodes with tokens that the caller's state allows, and the states they lead to."""
        pending = [(self, state)]
        while pending:
            node, here = pending.pop()
            if node.tokens:
                yield node, here
            for byte, child in node.children.items():
                following = automaton.step(here, byte)
                if following is not None:
                    pending.append((child, following))


def exit_trie(tokens: Sequence[bytes], exits: Iterable[tuple[int, int, int]]) -> ExitTrie:
    """The trie of the remainders of (token, bytes until the exit, count until then)."""
    root = ExitTrie()
    for token, depth, spent in exits:
        node = root
        for byte in tokens[token][depth:]:
            node = node.children.setdefault(byte, ExitTrie())
        node.tokens.append((token, spent))
    return root


def exits_of(exits: Exits, row: int, tokens: Sequence[bytes]) -> ExitTrie:
    """The trie of the exits of one row."""
    part = slice(exits.starts[row], exits.starts[row + 1])
    columns = (exits.tokens[part], exits.depths[part], exits.spent[part])
    return exit_trie(tokens, zip(*(column.tolist() for column in columns), strict=True))


def within(nodes: Iterable[ExitTrie], room: int, due: int) -> Int32s:
    """The tokens of some nodes that count no more than there is room for, and what is due."""
    found = [token for node in nodes for token, spent in node.tokens if due <= spent <= room]
    return np.array(found, np.int32)


def merged(parts: Sequence[Int32s]) -> Int32s:
    """Parts of a row as one, in ascending order.

    >>> merged([np.array([2, 5], np.int32), np.array([3], np.int32)]).tolist()
    [2, 3, 5]
    """
    result = np.sort(np.concatenate(parts))
    result.flags.writeable = False
    return result
