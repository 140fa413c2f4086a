"""How a tokenizer cuts a text before it encodes the pieces: patterns, one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import regex

from cmm.grammar.errors import Unsupported

# What the tokenizers' ByteLevel step cuts by where it is told to use its own pattern (GPT-2's).
BYTE_LEVEL = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DIGITS = {True: r"\p{N}", False: r"\p{N}+"}  # each alone, or runs of them


@dataclass(frozen=True)
class Pretokenizer:
    """Patterns that each cut the pieces of the one before, matches and what is between them.

    >>> cut = Pretokenizer((r"\\p{N}", BYTE_LEVEL))
    >>> list(cut.pieces("it's 42!"))
    ['it', "'s", ' ', '4', '2', '!']
    """

    patterns: tuple[str, ...]

    @cached_property
    def _compiled(self) -> list[regex.Pattern[str]]:
        # `regex` takes some control characters for white space, which the tokenizers do not
        blank = [p.replace(r"\s", r"\p{White_Space}").replace(r"\S", r"\P{White_Space}")
                 for p in self.patterns]  # fmt: skip
        return [regex.compile(pattern) for pattern in blank]

    def pieces(self, text: str) -> Iterator[str]:
        """The pieces of a text, in order."""
        found: Sequence[str] = [text] if text else []
        for pattern in self._compiled:
            found = [piece for part in found for piece in _cut(part, pattern)]
        return iter(found)


def _cut(text: str, pattern: regex.Pattern[str]) -> Iterator[str]:
    done = 0
    for match in pattern.finditer(text):
        yield from filter(None, (text[done : match.start()], match[0]))
        done = match.end()
    if done < len(text):
        yield text[done:]


def read_pretokenizer(document: Mapping[str, Any]) -> Pretokenizer:
    """The pre-tokenizer of a tokenizer.json; Unsupported where it cuts in another way.

    >>> read_pretokenizer({"pre_tokenizer": {"type": "Digits", "individual_digits": True}})
    Pretokenizer(patterns=('\\\\p{N}',))
    """
    step = document.get("pre_tokenizer") or {"type": "Sequence", "pretokenizers": []}
    return Pretokenizer(tuple(_patterns(step)))


def _patterns(step: Mapping[str, Any]) -> Iterator[str]:
    match step:
        case {"type": "Sequence", "pretokenizers": steps}:
            for inner in steps:
                yield from _patterns(inner)
        case {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated"}:
            if step.get("invert"):
                raise Unsupported("a pre-tokenizer with an inverted pattern")
            yield pattern
        case {"type": "Digits"}:
            yield DIGITS[bool(step.get("individual_digits"))]
        case {"type": "ByteLevel"} if not step.get("add_prefix_space"):
            if step.get("use_regex", True):
                yield BYTE_LEVEL
        case _:
            raise Unsupported(f"a pre-tokenizer such as {json.dumps(step)[:80]}")
