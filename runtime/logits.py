"""Hidden states -> logits: of all tokens, or of the allowed ones alone where they are few."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cmm.runtime.attention import NAME, RowViews
from cmm.runtime.choose import Logits, TokenId

FEW = 1024  # more rows than that are not gathered: reading all of them in order is as fast
# What networks do to their logits afterwards; where a configuration has one of these, the network
# computes the logits itself.
CHANGES = ("final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier")


@dataclass(frozen=True, eq=False)
class Ask:
    """A place in a chunk after which logits are wanted: of these tokens (None: of all)."""

    place: int
    allowed: NDArray[np.int32] | None


def ask(place: int, allowed: NDArray[np.int32]) -> Ask:
    """Ask for the allowed tokens if they are few."""
    return Ask(place, allowed if len(allowed) <= FEW else None)


class LogitHead:
    """A network whose last layer, a third of a small model's weights, is computed where asked."""

    def __init__(self, network: Any) -> None:
        self._layer = network.get_output_embeddings()
        config = network.config.get_text_config()
        self._is_plain = type(self._layer) is torch.nn.Linear and not any(
            getattr(config, name, None) for name in CHANGES
        )
        self._network = network.get_decoder() if self._is_plain else network
        names = inspect.signature(network.forward).parameters
        self._cache_name = "cache" if "cache" in names else "past_key_values"

    @torch.inference_mode()
    def run(
        self,
        cache: Any,
        tokens: Sequence[TokenId],
        positions: Tensor,
        asked: Sequence[Ask],
        places: Sequence[int],
        mask: Tensor | None = None,
        views: RowViews | None = None,
    ) -> list[Logits]:
        """One forward pass; the logits asked for, at places in `tokens`.

        `mask` says who sees whom, (tokens, cached and tokens); None: all that came before. `views`
        say it again for networks that attend row by row.
        """
        output = self._network(
            input_ids=torch.tensor([list(tokens)]),
            position_ids=positions[None],
            attention_mask=None if mask is None else mask[None, None],
            use_cache=True,
            **{self._cache_name: cache},
            **({} if views is None else {NAME: views}),
            **(
                {} if self._is_plain else {"logits_to_keep": torch.tensor(places, dtype=torch.long)}
            ),
        )
        if self._is_plain:
            return self._from_hidden(output.last_hidden_state[0, list(places)], asked)
        rows = [numbers.float().numpy() for numbers in output.logits[0]]
        return [
            row if one.allowed is None else row[one.allowed]
            for row, one in zip(rows, asked, strict=True)
        ]

    def _from_hidden(self, hidden: Tensor, asked: Sequence[Ask]) -> list[Logits]:
        wide = [i for i, one in enumerate(asked) if one.allowed is None]
        whole = iter(self._layer(hidden[wide]).float() if wide else ())
        found = [
            next(whole) if one.allowed is None else self._some(hidden[i], one.allowed)
            for i, one in enumerate(asked)
        ]
        return [numbers.numpy() for numbers in found]

    def _some(self, hidden: Tensor, allowed: NDArray[np.int32]) -> Tensor:
        rows = torch.from_numpy(allowed.astype(np.int64))
        numbers: Tensor = self._layer.weight.index_select(0, rows).float() @ hidden.float()
        return numbers if self._layer.bias is None else numbers + self._layer.bias[rows].float()
