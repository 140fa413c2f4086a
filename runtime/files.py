"""Prompts in, calls out: the files of `cmm run`."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cmm.grammar.errors import CmmError, InvalidInput, pointer
from cmm.grammar.files import read_json


def load_prompts(path: str | Path) -> tuple[str, ...]:
    """The requests of a file: a list of `{"prompt": text}` objects, or of texts."""
    document = read_json(path)
    try:
        return parse_prompts(document)
    except CmmError as error:
        raise error.located(file=str(path)) from None


def parse_prompts(document: Any) -> tuple[str, ...]:
    """The requests of a JSON value.

    >>> parse_prompts([{"prompt": "Greet john"}, "What is 2 and 3?"])
    ('Greet john', 'What is 2 and 3?')
    """
    if not isinstance(document, list):
        raise InvalidInput("must be a list of prompts", advice='such as [{"prompt": "Greet john"}]')
    return tuple(parse_prompt(entry, pointer(number)) for number, entry in enumerate(document))


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


def check_output(path: Path) -> None:
    """Make the folder of an output file, and refuse what cannot be written, before the work."""
    if path.is_dir():
        raise InvalidInput("is a folder", file=str(path), advice="name a file with --output")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CmmError(
            f"the folder cannot be made: {error.strerror}", file=str(path.parent)
        ) from None
    if not os.access(path.parent, os.W_OK):
        raise CmmError("the folder cannot be written to", file=str(path.parent))
    if path.exists() and not os.access(path, os.W_OK):
        raise CmmError("is there already, and cannot be written to", file=str(path))


def write_json(path: Path, values: Iterable[Any]) -> None:
    """Write a JSON list; the file is replaced as a whole, so that no failure leaves half of it."""
    text = json.dumps(list(values), ensure_ascii=False, indent=2) + "\n"
    try:
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                out.write(text)
                out.flush()
                os.fsync(out.fileno())
            os.chmod(partial, 0o644)  # mkstemp lets no one else read
            os.replace(partial, path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CmmError(f"cannot be written: {error.strerror}", file=str(path)) from None
