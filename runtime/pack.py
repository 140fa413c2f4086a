"""Several conversations in one sequence: the shared head once, then each row's own tokens.

keys     head head head | row0 row0 | row1 row1 row1 | row0 | row1 …     one cache, no padding
a query of row 1 sees    ^^^^^^^^^^^^^^               ^^^^^^^^^^^^^^^^          ^^^^
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cmm.runtime.attention import RowView, RowViews, use_row_attention
from cmm.runtime.choose import Logits, TokenId
from cmm.runtime.logits import Ask, LogitHead, ask
from cmm.runtime.machine import give_back_memory
from cmm.runtime.prefix import PrefixFile, State

HEAD = -1  # the owner of the tokens that every row sees
GONE = -2  # the owner of tokens that no row sees any more
ROOM_LEFT_EMPTY = 256  # tokens; taking them out copies the whole cache
ALONE = 0  # the owner in a pass of one row
LONG = 24  # new tokens a row from which attention goes row by row (docs/performance.md)


@dataclass(frozen=True)
class Chunk:
    """Tokens that one row adds: whose they are, what they are, and the position of the first.

    Logits are wanted after the tokens whose places in the chunk are in `asked`.
    """

    owner: int
    tokens: Sequence[TokenId]
    position: int
    asked: Sequence[Ask] = ()


class Pack:
    """A network and the KV cache of one packed sequence."""

    shared = True  # one pass for all rows

    def __init__(self, network: Any) -> None:
        use_row_attention(network)
        self._logits = LogitHead(network)
        self._cache: Any = cache_of([])
        self._owners = torch.empty(0, dtype=torch.long)  # (cached,)
        self._positions = torch.empty(0, dtype=torch.long)  # (cached,)
        self._head = 0  # tokens of the head, which stand first
        self.forwards = 0

    def __len__(self) -> int:
        return len(self._owners)

    def read_head(self, tokens: Sequence[TokenId], prefix: PrefixFile | None) -> None:
        """Read what all rows begin with, once: from disk, if it was read before."""
        if not tokens or len(self):
            return
        state = prefix.load() if prefix else None
        if state is None:
            self.feed([Chunk(HEAD, tokens, 0)])
            if prefix:
                prefix.save(self._head_state)
            return
        self._head = len(tokens)
        self._cache = cache_of(state)
        self._owners = torch.full((len(tokens),), HEAD)
        self._positions = torch.arange(len(tokens))

    @property
    def _head_state(self) -> State:
        return [
            (layer.keys[..., : self._head, :], layer.values[..., : self._head, :])
            for layer in self._cache.layers
        ]

    def feed(self, chunks: Sequence[Chunk]) -> list[list[Logits]]:
        """One forward pass over all chunks; for each the logits that it asked for."""
        positions = torch.cat(
            [torch.arange(c.position, c.position + len(c.tokens)) for c in chunks]
        )
        sizes = torch.tensor([len(chunk.tokens) for chunk in chunks])
        owners = torch.tensor([chunk.owner for chunk in chunks]).repeat_interleave(sizes)
        if all(chunk.owner == HEAD for chunk in chunks):
            self._head += len(owners)
        self._owners = torch.cat([self._owners, owners])
        self._positions = torch.cat([self._positions, positions])
        mine = (self._owners == HEAD) | (self._owners == owners[:, None])
        mask = mine & (self._positions <= positions[:, None])
        # Joining the head and a row's own tokens costs a copy, which short chunks do not earn.
        long = len(chunks) > 1 and len(owners) >= LONG * len(chunks)
        views = self._views(chunks, mask) if long else None
        return self._forward(self._cache, chunks, positions, mask, views)

    def _views(self, chunks: Sequence[Chunk], mask: Tensor) -> RowViews:
        """What each row has in the cache, now that its new tokens are counted in."""
        rows, start = [], 0
        for chunk in chunks:
            new = slice(start, start + len(chunk.tokens))
            own = (self._owners[self._head :] == chunk.owner).nonzero()[:, 0] + self._head
            seen = torch.cat([torch.arange(self._head), own])
            rows.append(RowView(new, own, mask[new][:, seen]))
            start = new.stop
        return RowViews(self._head, rows)

    def feed_alone(self, tokens: Sequence[TokenId], allowed: NDArray[np.int32]) -> Logits:
        """The logits after the head and these tokens; nothing is kept.

        They do not depend on what else is decoded, nor on how the tokens came to be known.
        """
        count, head = len(tokens), self._head
        chunk = Chunk(ALONE, tokens, head, [ask(count - 1, allowed)])
        mask = torch.ones(count, head + count, dtype=torch.bool).tril(head)
        positions = torch.arange(head, head + count)
        return self._forward(cache_of(self._head_state), [chunk], positions, mask)[0][0]

    def _forward(
        self,
        cache: Any,
        chunks: Sequence[Chunk],
        positions: Tensor,
        mask: Tensor,
        views: RowViews | None = None,
    ) -> list[list[Logits]]:
        starts = np.cumsum([0, *(len(chunk.tokens) for chunk in chunks)]).tolist()
        pairs = list(zip(starts, chunks, strict=False))
        self.forwards += 1
        found = self._logits.run(
            cache,
            [token for chunk in chunks for token in chunk.tokens],
            positions,
            [one for chunk in chunks for one in chunk.asked],
            [start + one.place for start, chunk in pairs for one in chunk.asked],
            mask,
            views,
        )
        numbers = iter(found)
        return [[next(numbers) for _ in chunk.asked] for chunk in chunks]

    def forget(self, owner: int) -> None:
        """Drop a row."""
        self.take_back(owner, 0)

    def take_back(self, owner: int, position: int) -> int:
        """Drop the tokens of a row from a position on; it is to be read on from there."""
        dropped = (self._owners == owner) & (self._positions >= position)
        self._owners = self._owners.masked_fill(dropped, GONE)
        gone = self._owners == GONE
        if int(gone.sum()) > ROOM_LEFT_EMPTY:
            self._compact(~gone)
        return position

    @torch.inference_mode()
    def _compact(self, keep: Tensor) -> None:
        """Take the dropped tokens out of the cache."""
        places = keep.nonzero()[:, 0]
        for layer in self._cache.layers:
            layer.keys = layer.keys.index_select(-2, places)
            layer.values = layer.values.index_select(-2, places)
        self._owners, self._positions = self._owners[places], self._positions[places]
        give_back_memory()


@torch.inference_mode()
def cache_of(state: Sequence[tuple[Tensor, Tensor]]) -> Any:
    """A cache that begins with these keys and values, and grows with each pass."""
    from transformers import DynamicCache

    cache = DynamicCache()
    for i, (keys, values) in enumerate(state):
        cache.update(keys, values, i)
    return cache


def can_pack(config: Any) -> bool:
    """Has the network plain attention in every layer, so that rows can share one sequence?

    Sliding windows and recurrent layers depend on the order of the sequence itself.
    """
    config = config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        return all(kind == "full_attention" for kind in kinds)
    recurrent = any(hasattr(config, name) for name in ("ssm_cfg", "state_size", "rwkv_version"))
    return getattr(config, "sliding_window", None) is None and not recurrent
