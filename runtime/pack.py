"""Several conversations in one sequence: the shared head once, then each row's own tokens.

keys     head head head | row0 row0 | row1 row1 row1 | row0 | row1 …     one cache, no padding
a query of row 1 sees    ^^^^^^^^^^^^^^               ^^^^^^^^^^^^^^^^          ^^^^
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cmm.runtime.choose import TokenId

HEAD = -1  # the owner of the tokens that every row sees
GONE = -2  # the owner of tokens that no row sees any more
ROOM_LEFT_EMPTY = 256  # tokens; taking them out copies the whole cache
ALONE = 0  # the owner in a pass of one row


@dataclass(frozen=True)
class Chunk:
    """Tokens that one row adds: whose they are, what they are, and the position of the first.

    The logits after those tokens are wanted whose places in the chunk are in `asked`.
    """

    owner: int
    tokens: Sequence[TokenId]
    position: int
    asked: Sequence[int] = ()


class Pack:
    """A network and the KV cache of one packed sequence."""

    def __init__(self, network: Any) -> None:
        self._network = network
        self._cache: Any = empty_cache()
        names = inspect.signature(network.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._owners = torch.empty(0, dtype=torch.long)  # (cached,)
        self._positions = torch.empty(0, dtype=torch.long)  # (cached,)
        self._head = 0  # tokens of the head, which stand first
        self.forwards = 0

    def __len__(self) -> int:
        return len(self._owners)

    def feed(self, chunks: Sequence[Chunk]) -> list[Tensor]:
        """One forward pass over all chunks; what each asked for, (asked, rows)."""
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
        return self._forward(self._cache, chunks, positions, mask)

    def feed_alone(self, tokens: Sequence[TokenId]) -> Tensor:
        """The logits after the head and these tokens, (rows,); nothing is kept.

        They do not depend on what else is decoded, nor on how the tokens came to be known.
        """
        count, head = len(tokens), self._head
        chunk = Chunk(ALONE, tokens, head, (count - 1,))
        mask = torch.ones(count, head + count, dtype=torch.bool).tril(head)
        positions = torch.arange(head, head + count)
        return self._forward(self._copy_of_head(), [chunk], positions, mask)[0][0]

    @torch.inference_mode()
    def _forward(
        self, cache: Any, chunks: Sequence[Chunk], positions: Tensor, mask: Tensor
    ) -> list[Tensor]:
        """`mask` says who sees whom, (new, all)."""
        starts = np.cumsum([0, *(len(chunk.tokens) for chunk in chunks)])
        asked = [int(start) + i for start, c in zip(starts, chunks, strict=False) for i in c.asked]
        output = self._network(
            input_ids=torch.tensor([[token for chunk in chunks for token in chunk.tokens]]),
            position_ids=positions[None],
            attention_mask=mask[None, None],
            use_cache=True,
            logits_to_keep=torch.tensor(asked, dtype=torch.long),
            **{self._cache_name: cache},
        )
        self.forwards += 1
        return list(output.logits[0].split([len(chunk.asked) for chunk in chunks]))

    @torch.inference_mode()
    def _copy_of_head(self) -> Any:
        cache = empty_cache()
        for i, layer in enumerate(self._cache.layers):
            cache.update(layer.keys[..., : self._head, :], layer.values[..., : self._head, :], i)
        return cache

    def forget(self, owner: int, position: int = 0) -> None:
        """Drop the tokens of a row from a position on."""
        dropped = (self._owners == owner) & (self._positions >= position)
        self._owners = self._owners.masked_fill(dropped, GONE)
        gone = self._owners == GONE
        if int(gone.sum()) > ROOM_LEFT_EMPTY:
            self._compact(~gone)

    @torch.inference_mode()
    def _compact(self, keep: Tensor) -> None:
        """Take the dropped tokens out of the cache."""
        places = keep.nonzero()[:, 0]
        for layer in self._cache.layers:
            layer.keys = layer.keys.index_select(-2, places)
            layer.values = layer.values.index_select(-2, places)
        self._owners, self._positions = self._owners[places], self._positions[places]


def empty_cache() -> Any:
    """A cache of keys and values that grows with each pass."""
    from transformers import DynamicCache

    return DynamicCache()


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
