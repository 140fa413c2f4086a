"""A vocabulary as a trie of bytes, in arrays, so that all tokens are walked at once.

Nodes are numbered level by level, children in byte order, so the children of node n are the
nodes first_child[n] up to first_child[n + 1]:

    tokens  a  ab  b            node 0          root
    (ids    7   3  9)          /     \\
                           1 'a'     2 'b'      first_child = 1 3 4 4 4
                             |                  low..high    = 0..3 0..2 2..3 1..2
                           3 'b'                ending       = 0 1 1 1

`order` lists the token ids in byte order; low..high is a node's part of it, all tokens that begin
with the node's bytes, of which the first `ending` are those bytes exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from cmm.compiler.frozen import FrozenArrays

Int32s = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False, repr=False)
class Trie(FrozenArrays):
    """The arrays of the picture above.

    >>> trie = build_trie([b"b", b"a", b"ab"])
    >>> trie.first_child.tolist(), trie.ending.tolist(), trie.order.tolist()
    ([1, 3, 4, 4, 4], [0, 1, 1, 1], [1, 2, 0])
    """

    byte: npt.NDArray[np.uint8]  # (nodes,) the last byte of the node's bytes
    ending: npt.NDArray[np.uint16]  # (nodes,) tokens that end here; several may have the same bytes
    low: Int32s  # (nodes,)
    high: Int32s  # (nodes,)
    first_child: Int32s  # (nodes + 1,)
    depth: npt.NDArray[np.uint16]  # (nodes,) how many bytes lead here
    order: Int32s  # (tokens,)

    @cached_property
    def parent(self) -> Int32s:
        """The node above each node; the root's is itself."""
        children = np.diff(self.first_child)
        above = np.repeat(np.arange(len(children), dtype=np.int32), children)
        return np.concatenate([np.zeros(1, np.int32), above])

    @cached_property
    def node_at(self) -> Int32s:
        """The node at which each token of `order` ends."""
        found = np.zeros(len(self.order), np.int32)
        counts = self.ending.astype(np.int64)
        found[ranges(self.low, counts)] = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        return found

    def tokens_of(self, data: bytes) -> Int32s:
        """The tokens that are exactly these bytes.

        >>> build_trie([b"b", b"a", b"ab"]).tokens_of(b"ab").tolist()
        [2]
        """
        node = 0
        for byte in data:
            node = self.child(node, byte)
            if not node:
                return self.order[:0]
        return self.ending_at(node)

    def child(self, node: int, byte: int) -> int:
        """The node one byte below a node; 0 where there is none."""
        first, last = int(self.first_child[node]), int(self.first_child[node + 1])
        below = first + int(np.searchsorted(self.byte[first:last], byte))
        return below if below < last and self.byte[below] == byte else 0

    def ending_at(self, node: int) -> Int32s:
        """The tokens that are exactly the bytes of a node."""
        low = int(self.low[node])
        return self.order[low : low + int(self.ending[node])]

    def below(self, node: int) -> Int32s:
        """The tokens that begin with the bytes of a node; none for 0."""
        return self.order[int(self.low[node]) : int(self.high[node])] if node else self.order[:0]

    def levels(self) -> list[slice]:
        """The nodes of each depth below the root."""
        bounds = np.searchsorted(self.depth, np.arange(1, int(self.depth[-1]) + 2)).tolist()
        return [slice(low, high) for low, high in pairwise(bounds)]


def build_trie(tokens: Sequence[bytes]) -> Trie:
    """The trie of all tokens that have bytes; those without are not in it."""
    ids = sorted((i for i, token in enumerate(tokens) if token), key=tokens.__getitem__)
    order = np.array(ids, np.int32)
    lengths = np.array([len(tokens[i]) for i in ids], np.int64)
    data = np.frombuffer(b"".join(tokens[i] for i in ids), np.uint8)
    offsets = np.cumsum(lengths) - lengths

    levels = [_Level.root(len(ids))]
    active = np.arange(len(ids))  # positions in `order` of the tokens that reach this deep
    parents = np.zeros(len(ids), np.int64)  # and the node each of them has reached
    count = 1
    for depth in range(1, int(lengths.max(initial=0)) + 1):
        reach = lengths[active] >= depth
        active, parents = active[reach], parents[reach]
        byte = data[offsets[active] + depth - 1]
        new = np.ones(len(active), np.bool_)
        new[1:] = (parents[1:] != parents[:-1]) | (byte[1:] != byte[:-1])
        member = np.cumsum(new) - 1
        ending = np.bincount(member, weights=lengths[active] == depth).astype(np.uint16)
        size = np.bincount(member)
        levels.append(_Level(byte[new], ending, active[new], size, parents[new], depth))
        parents = member + count
        count += len(size)
    return _joined(levels, order)


@dataclass(frozen=True, eq=False, repr=False)
class _Level:
    byte: npt.NDArray[np.uint8]
    ending: npt.NDArray[np.uint16]
    low: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    parent: npt.NDArray[np.int64]
    depth: int

    @classmethod
    def root(cls, tokens: int) -> _Level:
        zero = np.zeros(1, np.int64)
        return cls(zero.astype(np.uint8), zero.astype(np.uint16), zero, zero + tokens, zero, 0)


def _joined(levels: list[_Level], order: Int32s) -> Trie:
    low = np.concatenate([level.low for level in levels])
    parent = np.concatenate([level.parent for level in levels[1:]] or [np.zeros(0, np.int64)])
    children = np.bincount(parent, minlength=len(low))
    return Trie(
        byte=np.concatenate([level.byte for level in levels]),
        ending=np.concatenate([level.ending for level in levels]),
        low=low.astype(np.int32),
        high=(low + np.concatenate([level.size for level in levels])).astype(np.int32),
        first_child=np.concatenate([[1], 1 + np.cumsum(children)]).astype(np.int32),
        depth=np.concatenate(
            [np.full(len(level.byte), level.depth, np.uint16) for level in levels]
        ),
        order=order,
    )


def ranges(
    starts: npt.NDArray[np.integer], counts: npt.NDArray[np.integer]
) -> npt.NDArray[np.int64]:
    """All numbers of the ranges starts[i] .. starts[i] + counts[i], one after the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    shift: npt.NDArray[np.int64] = np.repeat(starts - ends + counts, counts)
    return shift + np.arange(total)
