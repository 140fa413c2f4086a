"""Tokens that would end a key which its object has already, or that is another member's name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import ByteAutomaton, State
from cmm.compiler.strings import SHORT_ESCAPES
from cmm.compiler.trie import Trie
from cmm.compiler.vocabulary import TokenId, Vocabulary

Int32s = npt.NDArray[np.int32]
QUOTE = b'"'
Option = tuple[bytes, ...]  # of each byte of a spelling what it may be: both cases of a digit


def without_taken(
    row: Int32s, state: State, automaton: ByteAutomaton, vocabulary: Vocabulary
) -> Int32s:
    """The tokens of a row but those that end a key that is taken.

    Only a few tokens can: those that write the rest of a taken key and its quote, and those with
    so many quotes that they write a whole key after the one that is open.
    """
    inside = state.text is not None
    asked = [vocabulary.quoting[3 if inside else 2]]
    for key in _taken(state, automaton) if inside else ():
        for node in spelled(key, state.text or b"", vocabulary.trie):
            asked.append(vocabulary.trie.below(vocabulary.trie.child(node, QUOTE[0])))
    dropped = [
        token
        for token in np.unique(np.concatenate(asked)).tolist()
        if not _walks(vocabulary.tokens[token], state, automaton)
    ]
    if not dropped or not len(row):
        return row
    place = np.minimum(np.searchsorted(row, dropped), len(row) - 1)  # the row is in order
    kept = np.ones(len(row), np.bool_)
    kept[place[row[place] == dropped]] = False
    return row[kept]


def completing_taken(
    state: State, automaton: ByteAutomaton, vocabulary: Vocabulary
) -> Iterator[TokenId]:
    """Tokens after which a key may not end yet, because it is taken as it stands."""
    if state.text is not None:
        for key in _taken(state, automaton):
            for node in spelled(key, state.text, vocabulary.trie):
                yield from vocabulary.trie.ending_at(node).tolist()


def _taken(state: State, automaton: ByteAutomaton) -> frozenset[str]:
    """What keys of any open object must differ from."""
    found = frozenset(state.keys or ()).union(*automaton.names)
    stack = state.stack
    while stack:
        _, _, _, keys, stack = stack
        found |= keys or frozenset()
    return found


def _walks(data: bytes, state: State, automaton: ByteAutomaton) -> bool:
    return automaton.walk(state, data)[1] == len(data)


def spelled(text: str, written: bytes, trie: Trie) -> list[int]:
    r"""The nodes of the trie at which a text is complete of which some bytes are written.

    >>> from cmm.compiler.trie import build_trie
    >>> trie = build_trie([b"b", b"\\u00", b"62", b"b2"])
    >>> [trie.ending_at(node).tolist() for node in spelled("ab", b"a", trie)]
    [[0]]
    >>> [trie.ending_at(node).tolist() for node in spelled("ab", b"a\\u00", trie)]
    [[2]]
    """
    places = [(0, 0)]  # (node of the trie, bytes that were written before)
    for char in text:
        places = [
            place
            for option in _spellings(char)
            for start in places
            for place in _through(option, *start, written, trie)
        ]
    return [node for node, read in places if read == len(written)]


def _through(
    option: Option, node: int, read: int, written: bytes, trie: Trie
) -> Sequence[tuple[int, int]]:
    """The places after one spelling of a character."""
    places = [(node, read)]
    for bytes_here in option:
        following = []
        for node, read in places:
            if read < len(written):
                following += [(node, read + 1)] if written[read] in bytes_here else []
            else:
                children = [trie.child(node, byte) for byte in bytes_here]
                following += [(child, read) for child in children if child]
        places = following
    return places


@cache
def _spellings(char: str) -> tuple[Option, ...]:
    """All ways in which a JSON string may spell a character."""
    point = ord(char)
    found = [_option(f"\\{SHORT_ESCAPES[point]}")] if point in SHORT_ESCAPES else []
    if point >= 0x20 and char not in '"\\' and not 0xD800 <= point <= 0xDFFF:
        found.append(_option(char))
    units = char.encode("utf-16-be", "surrogatepass")
    escapes = "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
    found.append(tuple(_either_case(byte) for byte in escapes.encode()))
    return tuple(found)


def _either_case(byte: int) -> bytes:
    return bytes({byte, *bytes([byte]).upper()}) if byte != ord("u") else b"u"


def _option(text: str) -> Option:
    return tuple(bytes([byte]) for byte in text.encode())
