"""Text and control tokens kept apart: what a user writes is never more than text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from tokenizers import AddedToken, Tokenizer
from tokenizers.normalizers import NFC, NFD, NFKC, NFKD

from cmm.grammar.errors import InvalidInput

PRIVATE_USE = (range(0xE000, 0xF900), range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))
UNICODE_FORMS = (NFC, NFD, NFKC, NFKD)  # these change a text: it would not come back as it was


class PlainEncoder:
    """Encodes text for one tokenizer, with control tokens only where the template put them.

    A control token is any added token, special or not: `<|im_end|>` and `<tool_call>` alike.
    Texts of users are marked before the template is rendered (`protect`): the control tokens
    written in them are replaced by marks that no template or text contains. Afterwards
    `encode_rendered` makes control tokens of what is left, and text of the marks. With `take` the
    tokenizer itself is changed instead of a copy, which takes a while to make.
    """

    def __init__(self, tokenizer: Tokenizer, *, take: bool = False) -> None:
        added = tokenizer.get_added_tokens_decoder()
        self._know({token.content: number for number, token in added.items()})
        copy = tokenizer if take else Tokenizer.from_str(tokenizer.to_str())
        self._text = text_tokenizer(copy, added.values())

    def _know(self, controls: dict[str, int]) -> None:
        """Remember which texts are control tokens."""
        self.controls = controls
        self._names = sorted(controls, key=lambda text: (-len(text), text))
        self._control = re.compile("|".join(map(re.escape, self._names)) or r"(?!)")

    def encode_text(self, text: str) -> list[int]:
        """The ids of a text as text: no id is a control token, and they decode to the text."""
        return list(self._text.encode(text, add_special_tokens=False).ids)

    def protect(self, text: str, mark: str) -> str:
        """The text with each control token in it replaced by its number between two marks."""
        return self._control.sub(
            lambda found: f"{mark}{self._names.index(found.group())}{mark}", text
        )

    def restore(self, text: str, mark: str) -> str:
        """The text as it was before `protect`."""
        numbered = re.compile(f"{re.escape(mark)}(\\d+){re.escape(mark)}")
        return numbered.sub(lambda found: self._names[int(found.group(1))], text)

    def encode_rendered(self, rendered: str, mark: str) -> list[int]:
        """The ids of what a template rendered from protected texts."""
        ids: list[int] = []
        for piece, control in self._pieces(rendered):
            if control:
                ids.append(self.controls[piece])
            elif piece:
                ids += self.encode_text(self.restore(piece, mark))
        return ids

    def _pieces(self, rendered: str) -> Iterator[tuple[str, bool]]:
        """The text in pieces, each either a control token or free of them."""
        end = 0
        for found in self._control.finditer(rendered):
            yield rendered[end : found.start()], False
            yield found.group(), True
            end = found.end()
        yield rendered[end:], False


def text_tokenizer(tokenizer: Tokenizer, added: Iterable[AddedToken]) -> Tokenizer:
    """Let it read its added tokens as text, and give every character back as it was."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # `encode_special_tokens` spares special tokens alone, so the other added ones become special.
    for token in added:
        tokenizer.add_special_tokens([AddedToken(token.content, special=True, normalized=False)])
    tokenizer.encode_special_tokens = True
    if isinstance(tokenizer.normalizer, UNICODE_FORMS):
        tokenizer.normalizer = None
    return tokenizer


def unused_mark(texts: Iterable[str]) -> str:
    """A character of private use that none of the texts contains.

    Where they contain all of these, it is more of one of them than there are in a row anywhere.

    >>> unused_mark(["a", "\\ue000"])
    '\\ue001'
    """
    texts = list(texts)
    used = set().union(*map(set, texts))
    free = (chr(code) for code in chain(*PRIVATE_USE) if chr(code) not in used)
    first = chr(PRIVATE_USE[0].start)
    runs = (len(run) for text in texts for run in re.findall(f"{first}+", text))
    return next(free, None) or first * (max(runs) + 1)


def read_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer of a file, or an error that names it."""
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no class of its own
        raise InvalidInput(f"is no tokenizer: {error}", file=str(path)) from error
