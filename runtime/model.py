"""A model in memory: network, tokenizer, vocabulary. Widths are compared here, once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError

from cmm.compiler import Vocabulary, load_vocabulary
from cmm.compiler.utf8 import CONTROL
from cmm.grammar.errors import CmmError
from cmm.runtime.choose import Logits, TokenId
from cmm.runtime.display import hush_transformers
from cmm.runtime.machine import DTYPES, computes_bfloat16, usable_threads
from cmm.runtime.plain_text import PlainEncoder, read_tokenizer
from cmm.runtime.prefix import model_digest
from cmm.runtime.prompts import ChatTemplate
from cmm.runtime.resolve import ModelPlace
from cmm.runtime.template import load_template, template_text

# Rows are padded to a multiple of some power of two, and to leave room for further tokens: by 2 in
# 1,000 in Qwen's models, by 23 in DeepSeek's; nobody pads by a tenth.
LEAST_SHARE = 0.9


@dataclass(frozen=True, eq=False)
class Model:
    """What is needed to prompt a model and to read its logits."""

    name: str
    network: Any
    template: ChatTemplate
    encoder: PlainEncoder
    vocabulary: Vocabulary
    digest: str = ""  # of the weights' files; empty: unknown, so nothing is kept on disk

    @property
    def context(self) -> int:
        """The most tokens of prompt and answer together."""
        return int(getattr(self.network.config.get_text_config(), "max_position_embeddings", 4096))

    @property
    def dtype(self) -> str:
        """The number format of the weights."""
        return str(self.network.dtype)

    @torch.inference_mode()
    def next_logits(self, ids: Sequence[TokenId]) -> Logits:
        """The logits after a sequence, computed from nothing."""
        output = self.network(torch.tensor([list(ids)]), use_cache=False, logits_to_keep=1)
        numbers: Logits = output.logits[0, -1].float().numpy()
        if not np.isfinite(numbers[: self.vocabulary.size]).all():
            raise CmmError(f'the model "{self.name}" computed a logit that is not a finite number')
        return numbers


def load_model(place: ModelPlace, *, dtype: str | None = None, threads: int | None = None) -> Model:
    """Load network and tokenizer of a folder; code that a folder may bring is never run."""
    from transformers import AutoModelForCausalLM

    hush_transformers()
    torch.set_num_threads(threads or usable_threads())
    folder = str(place.folder)
    safe: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        template = load_template(place.folder)
        network: Any = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=getattr(torch, dtype or best_dtype()),
            attn_implementation="sdpa",
            use_safetensors=True,
            **safe,
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        text = f"its files lack {text}" if isinstance(error, KeyError) else text
        raise CmmError(f"the model cannot be loaded: {text}", file=folder) from error
    vocabulary = load_vocabulary(place.folder)
    encoder = PlainEncoder(read_tokenizer(place.folder / "tokenizer.json"), take=True)
    check_width(network, vocabulary, place.name, template_text(template))
    digest = model_digest(place.folder)
    return Model(place.name, network.eval(), template, encoder, vocabulary, digest)


def check_width(network: Any, vocabulary: Vocabulary, name: str, template: str) -> None:
    """Refuse a tokenizer that is another model's: with more tokens than rows, or with far fewer.

    Only control tokens that the template does not name may be beyond: Gemma's text models have no
    row for the token of images that their tokenizer knows.
    """
    rows = network.get_output_embeddings().weight.shape[0]
    beyond = (vocabulary.tokens[i] for i in range(rows, vocabulary.size))
    foreign = any(not t.startswith(CONTROL) or t[1:].decode() in template for t in beyond)
    if foreign or vocabulary.size < LEAST_SHARE * rows:
        raise CmmError(
            f'the model "{name}" has {rows} rows of logits for {vocabulary.size} tokens: '
            "this tokenizer belongs to another model"
        )


def best_dtype() -> str:
    """bfloat16 where the processor computes it natively, float32 elsewhere."""
    forced = os.environ.get("CMM_DTYPE")
    if forced:
        if forced not in DTYPES:
            raise CmmError(f"CMM_DTYPE is {forced!r}", advice=f"use {' or '.join(DTYPES)}")
        return forced
    return "bfloat16" if computes_bfloat16() else "float32"
