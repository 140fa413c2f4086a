"""Tokens that leave their frame: continued in the caller, once the caller is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import ByteAutomaton, State

Int32s = npt.NDArray[np.int32]


@dataclass(eq=False)
class ExitTrie:
    r"""The remainders of exiting tokens, what they hold after the exit, as a trie.

    From inside a string the tokens `"`, `."` and `"}` exit; their remainders are "", "" and "}",
    and only those are read in the caller:

    >>> trie = exit_trie([b'"', b'."', b'"}'], [0, 1, 2], [1, 2, 1])
    >>> trie.tokens, trie.children[ord("}")].tokens
    ([0, 1], [2])
    """

    tokens: list[int] = field(default_factory=list)
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


def exit_trie(tokens: Sequence[bytes], ids: Sequence[int], depths: Sequence[int]) -> ExitTrie:
    """The trie of the given tokens' remainders after so many bytes."""
    root = ExitTrie()
    for token, depth in zip(ids, depths, strict=True):
        node = root
        for byte in tokens[token][depth:]:
            node = node.children.setdefault(byte, ExitTrie())
        node.tokens.append(token)
    return root


def merged(row: Int32s, nodes: Sequence[ExitTrie]) -> Int32s:
    """A row and the tokens of some exits, in ascending order."""
    parts = [row, *(np.array(node.tokens, np.int32) for node in nodes)]
    result = np.sort(np.concatenate(parts))
    result.flags.writeable = False
    return result
