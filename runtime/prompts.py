"""From a request to token ids, with the model's own chat template."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cmm.grammar.call_format import CallFormat
from cmm.grammar.errors import CmmError
from cmm.grammar.functions import FunctionSchema
from cmm.runtime.plain_text import PlainEncoder, unused_mark
from cmm.runtime.prompt_config import Example, PromptConfig


class ChatTemplate(Protocol):
    """The one thing asked of a transformers tokenizer here."""

    def apply_chat_template(self, conversation: list[dict[str, Any]], **arguments: Any) -> Any: ...


@dataclass(frozen=True)
class PromptFrame:
    """All of a prompt but the request: the same ids before it, the same ids after it.

    <|im_start|>system … tools … <|im_start|>user\\n | request | <|im_end|> … <tool_call>\\n
    `-------------------- head -------------------'             `----------- tail ----------'
    """

    head: tuple[int, ...]
    tail: tuple[int, ...]
    encoder: PlainEncoder

    def prompt_ids(self, request: str) -> list[int]:
        """The token ids of a whole prompt; those of the request hold no control token."""
        return [*self.head, *self.request_ids(request)]

    def request_ids(self, request: str) -> list[int]:
        """The ids that follow the shared head: the request and the tail."""
        return [*self.encoder.encode_text(request), *self.tail]


@dataclass(frozen=True)
class RenderedPrompt:
    """The text before a request and after it; control tokens of data are hidden behind marks."""

    head: str
    tail: str
    mark: str


def render_around(
    functions: Iterable[FunctionSchema],
    template: ChatTemplate,
    encoder: PlainEncoder,
    config: PromptConfig,
    call_format: CallFormat,
) -> RenderedPrompt:
    """Render the template once for a function set, with a mark where the request goes."""
    functions = list(functions)
    tools = [function.tool() for function in functions]
    examples = [example.model_dump() for example in config.examples]
    mark = unused_mark([*strings_of([tools, examples]), config.system or ""])
    place = f"{mark}request{mark}"
    safe_tools = map_strings(tools, lambda text: encoder.protect(text, mark))
    rendered = render(template, config, safe_tools, place, call_format, functions)
    rendered += call_format.prompt_suffix
    head, found, tail = rendered.partition(place)
    if not found or place in tail:
        raise CmmError(
            "the model's chat template does not show the request exactly once",
            advice="choose an instruction model with --model",
        )
    return RenderedPrompt(head, tail, mark)


def build_frame(
    functions: Iterable[FunctionSchema],
    template: ChatTemplate,
    encoder: PlainEncoder,
    config: PromptConfig,
    call_format: CallFormat,
) -> PromptFrame:
    """The ids before every request and after it."""
    rendered = render_around(functions, template, encoder, config, call_format)
    return PromptFrame(
        head=tuple(encoder.encode_rendered(rendered.head, rendered.mark)),
        tail=tuple(encoder.encode_rendered(rendered.tail, rendered.mark)),
        encoder=encoder,
    )


def render(
    template: ChatTemplate,
    config: PromptConfig,
    tools: list[dict[str, Any]],
    request: str,
    call_format: CallFormat,
    functions: Sequence[FunctionSchema],
) -> str:
    """The template's text for one request; a system text with {tools} lists them itself.

    The calls of examples are then in the format itself, else in the template's own spelling.
    """
    listed = config.system is not None and "{tools}" in config.system
    messages: list[dict[str, Any]] = [
        message
        for example in config.examples
        for message in example_messages(example, call_format, functions, listed=listed)
    ]
    messages.append({"role": "user", "content": request})
    arguments: dict[str, Any] = dict(config.template_arguments)
    if config.system is not None:
        listing = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)
        system = config.system.replace("{shape}", call_format.shape).replace("{tools}", listing)
        messages.insert(0, {"role": "system", "content": system})
    if not listed:
        arguments["tools"] = tools
    try:
        text = template.apply_chat_template(
            messages, tokenize=False, add_generation_prompt=True, **arguments
        )
    except ValueError as error:  # "no chat template": a base model
        raise CmmError(
            f"the model has no usable chat template: {str(error).splitlines()[0]}",
            advice="choose an instruction model with --model",
        ) from error
    return str(text)


def example_messages(
    example: Example, form: CallFormat, functions: Sequence[FunctionSchema], *, listed: bool
) -> list[dict[str, Any]]:
    """The two turns of an example: the request, and the call, which else the template spells.

    >>> from cmm.grammar.formats import PYTHONIC
    >>> example = Example(prompt="Hi", name="greet", parameters={"who": "x"})
    >>> example_messages(example, PYTHONIC, (), listed=True)[1]
    {'role': 'assistant', 'content': 'greet(who="x")'}
    """
    asked = {"role": "user", "content": example.prompt}
    call = example.name, example.parameters, functions
    if listed:
        written = form.prompt_suffix + form.written(*call)
        return [asked, {"role": "assistant", "content": written}]
    function = {"name": example.name, "arguments": form.for_template(*call)}
    calls = [{"type": "function", "function": function}]
    return [asked, {"role": "assistant", "content": "", "tool_calls": calls}]


def strings_of(value: Any) -> list[str]:
    """All strings in a JSON value, keys too."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [s for pair in value.items() for part in pair for s in strings_of(part)]
    return [s for part in value for s in strings_of(part)] if isinstance(value, list) else []


def map_strings(value: Any, change: Any) -> Any:
    """The same JSON value with each string, keys too, changed.

    >>> map_strings({"a": ["b", 1]}, str.upper)
    {'A': ['B', 1]}
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): map_strings(part, change) for key, part in value.items()}
    return [map_strings(part, change) for part in value] if isinstance(value, list) else value
