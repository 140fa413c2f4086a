"""The chat template of a model's folder, rendered without building a tokenizer for it.

transformers renders it; its tokenizers take most of a second to build, and only their template
and the texts of their special tokens are needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cmm.grammar.errors import CmmError
from cmm.grammar.files import read_json
from cmm.runtime.prompts import ChatTemplate

SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token")


@dataclass(frozen=True)
class FolderTemplate:
    """A Jinja text and the special tokens that it may name."""

    text: str
    tokens: dict[str, str]

    def apply_chat_template(self, conversation: list[dict[str, Any]], **arguments: Any) -> str:
        """The text of a conversation; the arguments are those of transformers."""
        from transformers.utils.chat_template_utils import render_jinja_template

        arguments = {**self.tokens, **arguments, "chat_template": self.text}
        arguments.pop("tokenize", None)
        rendered: Any = render_jinja_template(conversations=[conversation], **arguments)
        return str(rendered[0][0])


def load_template(folder: Path) -> ChatTemplate:
    """The template of a folder; where it is kept in an unusual way, transformers finds it."""
    try:
        config = read_json(folder / "tokenizer_config.json")
        named = folder / "chat_template.jinja"
        text = named.read_text("utf-8") if named.exists() else config["chat_template"]
    except (OSError, CmmError, KeyError, TypeError, UnicodeDecodeError):
        text = None
    if isinstance(text, str):
        tokens = {name: token_text(config.get(name)) for name in SPECIAL}
        return FolderTemplate(text, {name: word for name, word in tokens.items() if word})
    from transformers import AutoTokenizer

    tokenizer: ChatTemplate = AutoTokenizer.from_pretrained(
        str(folder), local_files_only=True, trust_remote_code=False
    )
    return tokenizer


def template_text(template: ChatTemplate) -> str:
    """The Jinja text of a template, wherever it came from."""
    return str(getattr(template, "text", None) or getattr(template, "chat_template", ""))


def token_text(value: Any) -> str | None:
    """The text of a special token, which files write alone or with its properties.

    >>> token_text("<s>"), token_text({"content": "<s>", "special": True}), token_text(None)
    ('<s>', '<s>', None)
    """
    text = value.get("content") if isinstance(value, dict) else value
    return text if isinstance(text, str) else None
