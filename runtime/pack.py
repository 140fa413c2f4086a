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
from numpy.typing import NDArray
from torch import Tensor

from cmm.runtime.choose import Logits, TokenId
from cmm.runtime.logits import Ask, LogitHead, ask, chosen_from

HEAD = -1  # the owner of the tokens that every row sees
GONE = -2  # the owner of tokens that no row sees any more
ROOM_LEFT_EMPTY = 256  # tokens; taking them out copies the whole cache
ALONE = 0  # the owner in a pass of one row


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

    def __init__(self, network: Any) -> None:
        self._head_layer = LogitHead(network)
        self._network = network.get_decoder() if self._head_layer.is_plain else network
        self._cache: Any = cache_of([])
        names = inspect.signature(network.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._owners = torch.empty(0, dtype=torch.long)  # (cached,)
        self._positions = torch.empty(0, dtype=torch.long)  # (cached,)
        self._head = 0  # tokens of the head, which stand first
        self.forwards = 0

    def __len__(self) -> int:
        return len(self._owners)

    @property
    def head_state(self) -> list[tuple[Tensor, Tensor]]:
        """Keys and values of the head, layer by layer."""
        return [
            (layer.keys[..., : self._head, :], layer.values[..., : self._head, :])
            for layer in self._cache.layers
        ]

    def set_head(self, state: list[tuple[Tensor, Tensor]], tokens: int) -> None:
        """Begin with a head that was read before."""
        self._head = tokens
        self._cache = cache_of(state)
        self._owners = torch.full((tokens,), HEAD)
        self._positions = torch.arange(tokens)

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
        return self._forward(self._cache, chunks, positions, mask)

    def feed_alone(self, tokens: Sequence[TokenId], allowed: NDArray[np.int32]) -> Logits:
        """The logits after the head and these tokens; nothing is kept.

        They do not depend on what else is decoded, nor on how the tokens came to be known.
        """
        count, head = len(tokens), self._head
        chunk = Chunk(ALONE, tokens, head, [ask(count - 1, allowed)])
        mask = torch.ones(count, head + count, dtype=torch.bool).tril(head)
        positions = torch.arange(head, head + count)
        return self._forward(cache_of(self.head_state), [chunk], positions, mask)[0][0]

    @torch.inference_mode()
    def _forward(
        self, cache: Any, chunks: Sequence[Chunk], positions: Tensor, mask: Tensor
    ) -> list[list[Logits]]:
        """`mask` says who sees whom, (new, all)."""
        starts = np.cumsum([0, *(len(chunk.tokens) for chunk in chunks)])
        places = [
            int(start) + one.place
            for start, chunk in zip(starts, chunks, strict=False)
            for one in chunk.asked
        ]
        plain = self._head_layer.is_plain
        output = self._network(
            input_ids=torch.tensor([[token for chunk in chunks for token in chunk.tokens]]),
            position_ids=positions[None],
            attention_mask=mask[None, None],
            use_cache=True,
            **{self._cache_name: cache},
            **({} if plain else {"logits_to_keep": torch.tensor(places, dtype=torch.long)}),
        )
        self.forwards += 1
        asked = [one for chunk in chunks for one in chunk.asked]
        if plain:
            found = self._head_layer.logits(output.last_hidden_state[0, places], asked)
        else:
            found = chosen_from(output.logits[0], asked)
        numbers = iter(found)
        return [[next(numbers) for _ in chunk.asked] for chunk in chunks]

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
