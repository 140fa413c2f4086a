"""Byte-pair encoding: how a tokenizer writes a text, and which tokens it puts side by side."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cmm.compiler.frozen import FrozenArrays
from cmm.compiler.pretokens import Pretokenizer, read_pretokenizer
from cmm.grammar.errors import Unsupported

Int32s = npt.NDArray[np.int32]
TokenId = int
Merge = tuple[int, TokenId]  # (rank: the lower the earlier, token that comes of it)
PAIRS_KEPT = 1 << 16
GONE = -2  # merged into the token on its left; a byte without token is -1
SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


@dataclass(frozen=True, eq=False, repr=False)
class Bpe(FrozenArrays):
    """The merges of a tokenizer, in arrays, and its way to cut texts beforehand.

    >>> bpe = merges_of_ranks([b"a", b"b", b"c", b"ab", b"abc"], Pretokenizer(("[a-z]+",)))
    >>> list(bpe.encode("abcab"))
    [4, 3]
    >>> bpe.joins(3, 3), bpe.joins(3, 2), bpe.joins(0, 1)
    (True, False, False)
    """

    pairs: npt.NDArray[np.int64]  # (merges,) ascending: left token << 32 | right token
    rank: Int32s  # (merges,) the lower, the earlier
    merged: Int32s  # (merges,) the token that comes of it
    by_merged: Int32s  # (merges,) the merges in the order of that
    of_byte: Int32s  # (256,) the token of each byte, below 0 if none
    pretokenizer: Pretokenizer

    @classmethod
    def of(
        cls, merges: Sequence[Sequence[int]], of_byte: Int32s, pretokenizer: Pretokenizer
    ) -> Bpe:
        """The encoding of some merges: left, right, merged token and rank of each."""
        left, right, made, rank = np.array(merges, np.int64).reshape(-1, 4).T
        pairs = left << 32 | right
        order = np.argsort(pairs)
        merged = made[order].astype(np.int32)
        return cls(
            pairs=pairs[order],
            rank=rank[order].astype(np.int32),
            merged=merged,
            by_merged=np.argsort(merged, kind="stable").astype(np.int32),
            of_byte=of_byte,
            pretokenizer=pretokenizer,
        )

    def _merge(self, before: TokenId, after: TokenId) -> Merge | None:
        pair = before << 32 | after
        place = int(self.pairs.searchsorted(pair))
        if place == len(self.pairs) or self.pairs[place] != pair:
            return None
        return int(self.rank[place]), int(self.merged[place])

    def _parts(self, token: TokenId) -> Iterator[tuple[int, tuple[TokenId, TokenId]]]:
        """The merges that make a token: their ranks and pairs."""
        low, high = (int(self.merged.searchsorted(token, side, self.by_merged)) for side in SIDES)
        for place in self.by_merged[low:high].tolist():
            left, right = divmod(int(self.pairs[place]), 1 << 32)
            yield int(self.rank[place]), (left, right)

    def encode(self, text: str) -> Iterator[TokenId]:
        """The tokens of a text, in the tokenizer's own spelling. The slow twin of all else here."""
        for piece in self.pretokenizer.pieces(text):
            yield from self.encode_piece(piece.encode("utf-8", "surrogatepass"))

    def encode_piece(self, data: bytes) -> list[TokenId]:
        """The tokens of a piece: of all pairs the one of the lowest rank is merged, and again."""
        tokens: list[TokenId] = self.of_byte[list(data)].tolist()
        size = len(tokens)
        after, before = list(range(1, size + 1)), list(range(-1, size - 1))
        waiting: list[tuple[int, int, TokenId, TokenId, TokenId]] = []  # rank, place, pair, merged

        def consider(i: int) -> None:
            if i >= 0 and after[i] < size:
                merge = self._merge(tokens[i], tokens[after[i]])
                if merge is not None:
                    heappush(waiting, (merge[0], i, tokens[i], tokens[after[i]], merge[1]))

        for i in range(size):
            consider(i)
        while waiting:
            _, i, left, right, merged = heappop(waiting)
            j = after[i]
            if tokens[i] != left or j >= size or tokens[j] != right:
                continue  # one of the two was merged with another before
            tokens[i], tokens[j], after[i] = merged, GONE, after[j]
            if after[i] < size:
                before[after[i]] = i
            consider(before[i])
            consider(i)
        return [token for token in tokens if token != GONE]

    def joins(self, before: TokenId, after: TokenId) -> bool:
        """Are two tokens of one piece what the encoding of their bytes is?

        The merges that made them are taken back, the last one first: no pair that then meets at
        the border may have been merged before. A sequence is an encoding if all its pairs are.
        """
        joined: bool = self._joins(before, after)
        return joined

    @cached_property
    def _joins(self):  # type: ignore[no-untyped-def]
        return lru_cache(PAIRS_KEPT)(self._find_joins)

    def _find_joins(self, before: TokenId, after: TokenId) -> bool:
        whole = self.is_whole(before) and self.is_whole(after)
        return whole and self._border_holds(before, after, np.inf)

    def is_whole(self, token: TokenId) -> bool:
        """Is the token what the encoding of its own bytes is?"""
        return self._made(token) is not None or bool(token in self._of_byte)

    @cached_property
    def _of_byte(self) -> frozenset[TokenId]:
        return frozenset(self.of_byte[self.of_byte >= 0].tolist())

    def _made(self, token: TokenId) -> tuple[int, tuple[TokenId, TokenId]] | None:
        """The rank and the pair of the merge that makes a token; None for a byte or no encoding."""
        if token not in self._known:
            whole = (m for m in self._parts(token) if all(map(self.is_whole, m[1])))
            self._known[token] = next((m for m in whole if self._border_holds(*m[1], m[0])), None)
        return self._known[token]

    @cached_property
    def _known(self) -> dict[TokenId, tuple[int, tuple[TokenId, TokenId]] | None]:
        return {}

    def _border_holds(self, before: TokenId, after: TokenId, limit: float) -> bool:
        while True:
            merge = self._merge(before, after)
            if merge is not None and merge[0] < limit:
                return False
            last_before, last_after = self._made(before), self._made(after)
            if last_before is not None and (last_after is None or last_before[0] > last_after[0]):
                limit, (_, before) = last_before
            elif last_after is not None:
                limit, (after, _) = last_after[0] + 1, last_after[1]
            else:
                return True


def merges_of_ranks(tokens: Sequence[bytes], pretokenizer: Pretokenizer) -> Bpe:
    """The merges of a tokenizer that only ranks its tokens: all that make one."""
    number = {token: i for i, token in enumerate(tokens) if token}
    merges = [
        (number[token[:cut]], number[token[cut:]], i, i)
        for token, i in number.items()
        for cut in range(1, len(token))
        if token[:cut] in number and token[cut:] in number
    ]
    return Bpe.of(merges, _of_byte(number), pretokenizer)


def merges_of_document(document: Mapping[str, Any], tokens: Sequence[bytes]) -> Bpe:
    """The merges of a tokenizer.json; Unsupported where it encodes in another way."""
    model = document["model"]
    others = ("byte_fallback", "dropout", "ignore_merges")
    if model.get("type") != "BPE" or any(map(model.get, others)):
        raise Unsupported(f"a tokenizer that encodes as {json.dumps(model.get('type'))} does")
    pairs = [p.split(" ", 1) if isinstance(p, str) else p for p in model.get("merges", ())]
    ids = model["vocab"]
    merges = [
        (ids[a], ids[b], ids[a + b], rank)
        for rank, (a, b) in enumerate(pairs)
        if a in ids and b in ids and a + b in ids
    ]
    if not merges:
        raise Unsupported("a tokenizer without merges")
    number = {token: i for i, token in enumerate(tokens) if len(token) == 1}
    return Bpe.of(merges, _of_byte(number), read_pretokenizer(document))


def _of_byte(number: Mapping[bytes, TokenId]) -> Int32s:
    return np.array([number.get(bytes([byte]), -1) for byte in range(256)], np.int32)
