"""`cmm explain`: the prompt that a model reads, token by token."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from cmm.compiler import load_vocabulary
from cmm.grammar.formats import FORMATS
from cmm.grammar.functions import load_functions
from cmm.runtime.command_run import FUNCTIONS, shipped
from cmm.runtime.display import printable, tell
from cmm.runtime.explain import KINDS, PromptSource, PromptToken, explain_prompt
from cmm.runtime.plain_text import PlainEncoder, read_tokenizer
from cmm.runtime.prompt_config import chosen_format, config_for, read_prompt_config
from cmm.runtime.prompt_file import parse_prompt
from cmm.runtime.resolve import ModelPlace, find_model
from cmm.runtime.template import load_template


def add_explain(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm explain`."""
    parser.add_argument("prompt", help="the request")
    parser.add_argument("--functions", type=Path, metavar="F", help=str(FUNCTIONS))
    parser.add_argument("--model", metavar="M", help="of which only the tokenizer is needed")
    parser.add_argument("--prompts-config", type=Path, metavar="F", help="prompt configuration")
    parser.add_argument("--format", choices=FORMATS, help="how a call is written")
    parser.add_argument("--json", action="store_true", help="as JSON")


def explain(options: argparse.Namespace) -> int:
    """Show the prompt of a request, token by token: number, id, kind, text.

    Kinds: control (a control token of the template), template (text that is always there), tools
    (what comes from the functions), request. The last two are data: they hold no control token.
    Needs a tokenizer and a chat template, no weights.

    examples:
      cmm explain "Greet john"
      cmm explain "Greet john" --functions tools.json --model Qwen/Qwen3-0.6B --json
    """
    prompt = parse_prompt(options.prompt, "the prompt")
    functions = load_functions(options.functions or shipped(FUNCTIONS))
    source = prompt_source(find_model(options.model, tokenizer_only=True), options)
    tokens = explain_prompt(functions, source, prompt)
    if options.json:
        print(json.dumps([as_json(token) for token in tokens], ensure_ascii=False))
        return 0
    for number, token in enumerate(tokens):
        text = token.text.decode("utf-8", "backslashreplace")
        print(f"{number:>5} {token.id:>7}  {token.kind:<8}  {printable(text)}")
    counts = Counter(token.kind for token in tokens)
    tell(f"{len(tokens)} tokens: " + ", ".join(f"{counts[kind]} {kind}" for kind in KINDS))
    return 0


def prompt_source(place: ModelPlace, options: argparse.Namespace) -> PromptSource:
    """What `cmm run` would make of a prompt with these options."""
    config = read_prompt_config(options.prompts_config) if options.prompts_config else None
    form = chosen_format(options.format, config, place.name)
    vocabulary = load_vocabulary(place.folder)
    return PromptSource(
        load_template(place.folder),
        PlainEncoder(read_tokenizer(place.folder / "tokenizer.json"), take=True),
        config or config_for(place.name, form.name),
        form,
        vocabulary.tokens,
    )


def as_json(token: PromptToken) -> dict[str, Any]:
    """A token as a JSON value; bytes that are no whole character are written as escapes."""
    text = token.text.decode("utf-8", "backslashreplace")
    return {"id": token.id, "kind": token.kind, "text": text}
