"""JSON files read with errors that say where: line and column, or a JSON pointer."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cmm.grammar.errors import CmmError, InvalidInput, pointer


def read_json(path: str | Path) -> Any:
    """The value in a JSON file (UTF-8, with or without a byte order mark).

    >>> read_json("nowhere.json")
    Traceback (most recent call last):
    cmm.grammar.errors.InvalidInput: nowhere.json: there is no such file
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise InvalidInput("there is no such file", file=str(path)) from None
    except IsADirectoryError:
        raise InvalidInput("is a folder", file=str(path), advice="name a file in it") from None
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", file=str(path)) from None
    try:
        return parse_json(data)
    except CmmError as error:
        raise error.located(file=str(path)) from None


def parse_json(data: bytes) -> Any:
    """The value of a JSON text; NaN, Infinity and keys given twice are no JSON here.

    >>> parse_json(b'{"a" 1}')
    Traceback (most recent call last):
    cmm.grammar.errors.InvalidInput: line 1 column 6: broken JSON: expecting ':' delimiter
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            "not UTF-8 text", place=f"line {line}", advice="save the file as UTF-8"
        ) from None
    if not text.strip():
        raise InvalidInput("is empty", advice="expected a JSON value")
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        raise InvalidInput(
            f"broken JSON: {message}", place=f"line {error.lineno} column {error.colno}"
        ) from None
    except RecursionError:
        raise InvalidInput("is nested too deeply to be read") from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise InvalidInput(f"broken JSON: {error}") from None


def _no_constant(name: str) -> None:
    raise InvalidInput(f"{name} is no JSON value", advice="use a number or null")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise InvalidInput(f'the key "{repeated}" is given twice in one object')
    return result


def invalid_shape(error: ValidationError, *below: str | int) -> InvalidInput:
    """A pydantic error as ours: the first problem, with its place as a JSON pointer."""
    first = error.errors()[0]
    keys: Sequence[str | int] = (*below, *first["loc"])
    return InvalidInput(first["msg"][:1].lower() + first["msg"][1:], place=pointer(*keys))
