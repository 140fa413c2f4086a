"""A rendered prompt, token by token: what is template, what is data.

<|im_start|> | system … <tools> {"name": " | greet … | </tools> … | Greet john | <|im_end|>
  control    |          template           | tools   |  template  |  request   |  control
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from cmm.grammar.call_format import CallFormat
from cmm.grammar.functions import FunctionSchema
from cmm.runtime.plain_text import PlainEncoder
from cmm.runtime.prompt_config import PromptConfig
from cmm.runtime.prompts import ChatTemplate, render_around

Kind = Literal["control", "template", "tools", "request"]
KINDS: tuple[Kind, ...] = ("control", "template", "tools", "request")


@dataclass(frozen=True)
class PromptToken:
    """One token of a prompt: its id, its bytes, and where it comes from.

    `control`: a control token of the template. `template`: text that is there for all functions
    and requests. `tools`, `request`: data; it never holds a control token, whatever it says.
    """

    id: int
    text: bytes
    kind: Kind


@dataclass(frozen=True)
class PromptSource:
    """All that a prompt is made of, but the functions and the request."""

    template: ChatTemplate
    encoder: PlainEncoder
    config: PromptConfig
    call_format: CallFormat
    tokens: Sequence[bytes]  # the bytes of every token


def explain_prompt(
    functions: Sequence[FunctionSchema], source: PromptSource, request: str
) -> list[PromptToken]:
    """The tokens of a prompt, each with its kind.

    What depends on the functions is found by rendering others: the texts differ in the data. A
    token that holds some of it counts as data.
    """
    rendered, other = (
        render_around(some, source.template, source.encoder, source.config, source.call_format)
        for some in (functions, unlike(functions))
    )
    explained = []
    for text, another in ((rendered.head, other.head), (rendered.tail, other.tail)):
        ids = source.encoder.encode_rendered(text, rendered.mark)
        data = difference(
            source.encoder.restore(text, rendered.mark).encode(),
            source.encoder.restore(another, other.mark).encode(),
        )
        explained.append(list(marked(ids, source, data)))
    before, after = explained
    asked = source.encoder.encode_text(request)
    return [*before, *(PromptToken(i, source.tokens[i], "request") for i in asked), *after]


def unlike(functions: Sequence[FunctionSchema]) -> list[FunctionSchema]:
    """One function that has nothing in common with these: no first and no last character.

    >>> unlike([FunctionSchema(name="abc", description="An a.", parameters={})])[0].name
    'd'
    """
    used = "".join(f"{f.name}{f.description}" for f in functions).lower()
    letter = next((c for c in map(chr, range(97, 123)) if c not in used), "\N{SNOWMAN}")
    return [FunctionSchema(name=letter, description=letter, parameters={})]


def difference(text: bytes, other: bytes) -> range:
    """The places in which a text differs from another, as one stretch.

    >>> difference(b"say abc!", b"say x!"), difference(b"same", b"same")
    (range(4, 7), range(4, 4))
    """
    start = shared(text, other)
    return range(start, len(text) - shared(text[start:][::-1], other[start:][::-1]))


def shared(text: bytes, other: bytes) -> int:
    """How many bytes two texts begin with alike."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(text), len(other)))


def marked(ids: Sequence[int], source: PromptSource, data: range) -> Iterator[PromptToken]:
    """The tokens of a part of the template's text; `data` are places in its bytes."""
    names = {number: text.encode() for text, number in source.encoder.controls.items()}
    end = 0
    for number in ids:
        is_control = number in names
        text = names[number] if is_control else source.tokens[number]
        start, end = end, end + len(text)
        is_data = start < data.stop and data.start < end
        yield PromptToken(
            number, text, "control" if is_control else "tools" if is_data else "template"
        )
