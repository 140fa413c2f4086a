"""Attention in a packed sequence, row by row: the head and a row's own tokens, not all rows.

    keys in the cache    head head head | row0 row0 | row1 row1 row1 | row0
    for row 0            ^^^^^^^^^^^^^^   ^^^^^^^^^                    ^^^^

A mask over the whole sequence says the same, and is computed in full: with 32 rows three quarters
of that are masked out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

NAME = "packed_rows"  # of this attention among those of transformers, and of its argument


@dataclass(frozen=True, eq=False)
class RowView:
    """One row of a pass: its new tokens, its own places in the cache, who sees whom."""

    new: slice
    own: Tensor  # (own,) places in the cache
    mask: Tensor  # (new, head + own)


@dataclass(frozen=True, eq=False)
class RowViews:
    """The rows of a pass, and how many tokens of the cache they share."""

    head: int
    rows: Sequence[RowView]


def attend_rows(
    module: Any,
    query: Tensor,  # (1, heads, new, size)
    key: Tensor,  # (1, key heads, cached, size)
    value: Tensor,
    attention_mask: Tensor | None,
    **arguments: Any,
) -> tuple[Tensor, None]:
    """Row by row if the pass says which rows it has, else what transformers does."""
    views: RowViews | None = arguments.pop(NAME, None)
    if views is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        found: Any = sdpa_attention_forward(module, query, key, value, attention_mask, **arguments)
        return found[0], None
    result = query.new_empty(1, query.shape[2], query.shape[1], value.shape[-1])
    for row in views.rows:
        keys, values = (
            torch.cat([whole[:, :, : views.head], whole[:, :, row.own]], 2)
            for whole in (key, value)
        )
        seen = scaled_dot_product_attention(
            query[:, :, row.new],
            keys,
            values,
            attn_mask=row.mask,
            scale=arguments.get("scaling"),
            enable_gqa=True,
        )
        result[:, row.new] = seen.transpose(1, 2)
    return result, None


def use_row_attention(network: Any) -> None:
    """Let a network attend row by row in passes that say which rows they have."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attend_rows)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    network.set_attn_implementation(NAME)
