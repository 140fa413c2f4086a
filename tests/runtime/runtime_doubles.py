"""Doubles small enough to read: a byte tokenizer with a few merges, tiny random networks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel

MERGES = [("a", "m"), ("n", "am"), ("nam", "e"), ('"', ":"), ("Ġ", '"'), ('"', "}"), ("1", "2")]
CONTROLS = ["<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>"]

TEMPLATE = (
    "{% if tools %}<|im_start|>system\n"
    "{% for tool in tools %}{{ tool | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}"
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}"
    "<|im_end|>\n{% endfor %}<|im_start|>assistant\n"
)


def tiny_tokenizer(*more: str) -> Tokenizer:
    """All 256 bytes, a few merges, four control tokens and perhaps more."""
    words = sorted(ByteLevel.alphabet()) + [left + right for left, right in MERGES]
    tokenizer = Tokenizer(BPE({word: i for i, word in enumerate(words)}, MERGES))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in CONTROLS[:2]])
    tokenizer.add_tokens([AddedToken(text, special=False) for text in (*CONTROLS[2:], *more)])
    return tokenizer


SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 2048,
    "initializer_range": 0.4,
    "tie_word_embeddings": False,
    "attn_implementation": "sdpa",
}
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {  # configuration, network, its own sizes
    "Qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {}),
    "Qwen2": ("Qwen2Config", "Qwen2ForCausalLM", {}),
    "Llama": ("LlamaConfig", "LlamaForCausalLM", {}),
    "Gemma3": (
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        {
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
            "query_pre_attn_scalar": 8,
        },
    ),
    "Gemma2": (
        "Gemma2Config",
        "Gemma2ForCausalLM",
        {
            "sliding_window": 8,
            "layer_types": ["sliding_attention", "full_attention"],
            "query_pre_attn_scalar": 8,
            "attn_implementation": "eager",
        },
    ),
    "Qwen3.5": (
        "Qwen3_5TextConfig",
        "Qwen3_5ForCausalLM",
        {
            "layer_types": ["linear_attention", "full_attention"],
            "linear_key_head_dim": 8,
            "linear_value_head_dim": 8,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
        },
    ),
}


def tiny_network(seed: int, rows: int, kind: str = "Qwen3") -> Any:
    """A random network in float32 whose logits differ enough to be told apart."""
    import transformers

    torch.manual_seed(seed)
    config, network, more = FAMILIES[kind]
    made = getattr(transformers, config)(vocab_size=rows, **{**SIZES, **more})
    return getattr(transformers, network)(made).to(torch.float32).eval()


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Threads that wait for each other make tiny networks slow on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Template:
    """A chat template rendered with jinja alone."""

    def apply_chat_template(self, conversation: list[dict[str, str]], **arguments: Any) -> str:
        import json

        from jinja2 import Environment

        environment = Environment(keep_trailing_newline=True)
        environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
        template = environment.from_string(TEMPLATE)
        return template.render(messages=conversation, **arguments)
