"""Several conversations in one sequence: the shared head once, then each row's own tokens.

keys     head head head | row0 row0 | row1 row1 row1 | row0 | row1 …     one cache, no padding
a query of row 1 sees    ^^^^^^^^^^^^^^               ^^^^^^^^^^^^^^^^          ^^^^
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from cmm.runtime.choose import TokenId

HEAD = -1  # the owner of the tokens that every row sees


@dataclass(frozen=True)
class Chunk:
    """Tokens that one row adds: whose they are, what they are, and the position of the first."""

    owner: int
    tokens: Sequence[TokenId]
    position: int


class Pack:
    """A network and the KV cache of one packed sequence."""

    def __init__(self, network: Any) -> None:
        from transformers import DynamicCache

        self._network = network
        self._cache: Any = DynamicCache()
        names = inspect.signature(network.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._owners = torch.empty(0, dtype=torch.long)  # (cached,)
        self._positions = torch.empty(0, dtype=torch.long)  # (cached,)
        self.forwards = 0

    def __len__(self) -> int:
        return len(self._owners)

    @torch.inference_mode()
    def feed(self, chunks: Sequence[Chunk]) -> Tensor:
        """One forward pass over all chunks; the logits after each one's end, (chunks, rows)."""
        tokens = torch.tensor([token for chunk in chunks for token in chunk.tokens])
        sizes = torch.tensor([len(chunk.tokens) for chunk in chunks])
        positions = torch.cat(
            [torch.arange(c.position, c.position + len(c.tokens)) for c in chunks]
        )
        owners = torch.tensor([chunk.owner for chunk in chunks]).repeat_interleave(sizes)
        self._owners = torch.cat([self._owners, owners])
        self._positions = torch.cat([self._positions, positions])
        output = self._network(
            input_ids=tokens[None],
            position_ids=positions[None],
            attention_mask=self._mask(owners, positions)[None, None],
            use_cache=True,
            logits_to_keep=sizes.cumsum(0) - 1,
            **{self._cache_name: self._cache},
        )
        self.forwards += 1
        logits: Tensor = output.logits[0]
        return logits

    def _mask(self, owners: Tensor, positions: Tensor) -> Tensor:
        """Who sees whom: the head and one's own row, up to one's own position, (new, all)."""
        mine = (self._owners == HEAD) | (self._owners == owners[:, None])
        return mine & (self._positions <= positions[:, None])

    def drop_rows(self, owners: set[int]) -> None:
        """Take the tokens of finished rows out of the cache."""
        gone = torch.isin(self._owners, torch.tensor(sorted(owners), dtype=torch.long))
        keep = (~gone).nonzero()[:, 0]
        if len(keep) == len(self._owners):
            return
        for layer in self._cache.layers:
            layer.keys = layer.keys.index_select(-2, keep)
            layer.values = layer.values.index_select(-2, keep)
        self._owners, self._positions = self._owners[keep], self._positions[keep]


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
