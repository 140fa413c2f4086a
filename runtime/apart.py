"""Rows that cannot share a sequence: a state of its own for each, begun as a copy of the head's.

Sliding windows and recurrent layers depend on the order of the sequence, and what they have read
cannot be taken back. So the state before a draft is kept until it is known how much was right.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cmm.runtime.choose import Logits, TokenId
from cmm.runtime.logits import LogitHead, ask
from cmm.runtime.pack import ALONE, HEAD, Chunk
from cmm.runtime.prefix import PrefixFile


@dataclass(frozen=True, eq=False)
class Reading:
    """What a row has read: the network's state, the next position, and what was before that."""

    cache: Any
    position: int
    before: Reading | None


class Apart:
    """The rows of a network, one after the other in each pass. The counterpart of `Pack`."""

    shared = False  # a pass for each row

    def __init__(self, network: Any) -> None:
        self._network = network
        self._logits = LogitHead(network)
        self._head: Reading | None = None
        self._rows: dict[int, Reading] = {}
        self.forwards = 0

    def read_head(self, tokens: Sequence[TokenId], prefix: PrefixFile | None) -> None:
        """Read what all rows begin with, once; such states are not kept on disk."""
        if tokens and self._head is None:
            cache = self._cache_after(None)
            self._forward(cache, Chunk(HEAD, tokens, 0))
            self._head = Reading(cache, len(tokens), None)

    def feed(self, chunks: Sequence[Chunk]) -> list[list[Logits]]:
        """Read all chunks; for each the logits that it asked for."""
        return [self._feed_one(chunk) for chunk in chunks]

    def _feed_one(self, chunk: Chunk) -> list[Logits]:
        before = self._rows.get(chunk.owner, self._head)
        cache = self._cache_after(before)
        found = self._forward(cache, chunk)
        if before:
            before = replace(before, before=None)  # one step back is enough
        self._rows[chunk.owner] = Reading(cache, chunk.position + len(chunk.tokens), before)
        return found

    def feed_alone(self, tokens: Sequence[TokenId], allowed: NDArray[np.int32]) -> Logits:
        """The logits after the head and these tokens; nothing is kept."""
        position = self._head.position if self._head else 0
        chunk = Chunk(ALONE, tokens, position, [ask(len(tokens) - 1, allowed)])
        return self._forward(self._cache_after(self._head), chunk)[0]

    def _cache_after(self, reading: Reading | None) -> Any:
        """A copy of a state, to be read on from."""
        from transformers import DynamicCache

        if reading is None:
            return DynamicCache(config=self._network.config.get_text_config())
        return copy.deepcopy(reading.cache)

    @torch.inference_mode()
    def _forward(self, cache: Any, chunk: Chunk) -> list[Logits]:
        end = chunk.position + len(chunk.tokens)
        self.forwards += 1
        return self._logits.run(
            cache,
            list(chunk.tokens),
            torch.arange(chunk.position, end),
            chunk.asked,
            [one.place for one in chunk.asked],
        )

    def forget(self, owner: int) -> None:
        """Drop a row."""
        self._rows.pop(owner, None)

    def take_back(self, owner: int, position: int) -> int:
        """Undo the last chunk of a row; the position from which it is to be read again."""
        before = self._rows.pop(owner).before
        if before is None:
            return 0
        self._rows[owner] = before
        return before.position
