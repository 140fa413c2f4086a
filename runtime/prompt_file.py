"""Requests in: a JSON list, or JSON Lines that are read as they are asked for; files and pipes."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

from cmm.grammar.errors import CmmError, InvalidInput, pointer
from cmm.grammar.files import open_file, parse_json, read_all

LINES = (".jsonl", ".ndjson")
STDIN = Path("-")
EXAMPLE = '{"prompt": "Greet john"}'

Placed = tuple[str, str]  # where a prompt stands, and its text


@dataclass(frozen=True)
class Prompts:
    """The requests of an input: each can be read once, with its place.

    `total` and `digest` are those of the whole list; None and "" where it is read line by line.
    """

    name: str
    placed: Iterable[Placed]
    total: int | None = None
    digest: str = ""

    @property
    def is_lines(self) -> bool:
        """Are these JSON Lines?"""
        return self.total is None


def open_prompts(path: Path) -> Prompts:
    """The requests of a file or a pipe; `-` is stdin.

    A pipe holds JSON Lines unless its text begins with `[`.
    """
    if path == STDIN:
        return _of_stream("stdin", sys.stdin.buffer)
    stream = open_file(path)
    if path.suffix in LINES:
        return _read_by_lines(str(path), stream)
    if not path.is_file():
        return _of_stream(str(path), stream)
    with stream:
        return _of_list(str(path), read_all(stream, str(path)))


def load_prompts(path: str | Path) -> tuple[str, ...]:
    """The requests of a file, all at once."""
    return tuple(text for _, text in open_prompts(Path(path)).placed)


def _of_stream(name: str, stream: BinaryIO) -> Prompts:
    start = b""
    while not start.strip() and (line := stream.readline()):
        start += line
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"["):
        return _of_list(name, read_all(stream, name, start))
    return _read_by_lines(name, stream, start)


def _read_by_lines(name: str, stream: BinaryIO, start: bytes = b"") -> Prompts:
    """The prompts of JSON Lines; the first one is read now, so that it is wrong before all work."""
    lines = _of_lines(name, stream, start)
    first = list(islice(lines, 1))
    return Prompts(name, chain(first, lines))


def _of_list(name: str, data: bytes) -> Prompts:
    try:
        placed = parse_prompts(parse_json(data))
    except CmmError as error:
        raise error.located(file=name) from None
    digest = hashlib.sha256(json.dumps(placed).encode()).hexdigest()
    return Prompts(name, placed, len(placed), digest)


def _of_lines(name: str, stream: BinaryIO, start: bytes = b"") -> Iterator[Placed]:
    number = 0
    for piece in (start.splitlines(), stream):
        for line in piece:
            number += 1
            if not line.strip():
                continue
            try:
                yield f"line {number}", parse_prompt(parse_json(line), "")
            except CmmError as error:
                here = f"line {number}"
                error.advice = error.advice or f"a line is a prompt such as {EXAMPLE}"
                raise error.moved(partial(in_line, here)).located(file=name) from None


def in_line(here: str, place: str) -> str:
    """The place of something that stands in one line of many.

    >>> in_line("line 7", "line 1 column 3"), in_line("line 7", "/prompt")
    ('line 7 column 3', 'line 7 /prompt')
    """
    return f"{here} {place.removeprefix('line 1').lstrip()}".rstrip()


def parse_prompts(document: Any) -> tuple[Placed, ...]:
    """The requests of a JSON value, each with its place.

    >>> parse_prompts([{"prompt": "Greet john"}, "What is 2 and 3?"])
    (('/0', 'Greet john'), ('/1', 'What is 2 and 3?'))
    """
    if not isinstance(document, list):
        raise InvalidInput("must be a list of prompts", advice=f"such as [{EXAMPLE}]")
    places = map(pointer, range(len(document)))
    return tuple(
        (place, parse_prompt(entry, place)) for place, entry in zip(places, document, strict=True)
    )


def parse_prompt(entry: Any, place: str) -> str:
    """One request, which stands at a place."""
    if isinstance(entry, dict):
        if "prompt" not in entry:
            raise InvalidInput('has no "prompt"', place=place)
        entry, place = entry["prompt"], place + pointer("prompt")
    if not isinstance(entry, str):
        raise InvalidInput("a prompt must be a text", place=place)
    try:
        entry.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput("half of a surrogate pair is no text", place=place) from None
    return entry
