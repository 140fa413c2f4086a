"""JSON files read with errors that say where: line and column, or a JSON pointer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from cmm.grammar.errors import CmmError, InvalidInput, pointer

MOST_BYTES = 64 << 20  # of one JSON document: in memory it takes up to twenty times as much
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],]|-?Infinity|NaN')


def read_json(path: str | Path) -> Any:
    """The value in a JSON file (UTF-8, with or without a byte order mark).

    >>> read_json("nowhere.json")
    Traceback (most recent call last):
    cmm.grammar.errors.InvalidInput: nowhere.json: there is no such file
    """
    with open_file(path) as stream:
        data = read_all(stream, str(path))
    try:
        return parse_json(data)
    except CmmError as error:
        raise error.located(file=str(path)) from None


def open_file(path: str | Path) -> BinaryIO:
    """A file to read bytes from, or an error that names it."""
    try:
        return Path(path).open("rb")
    except FileNotFoundError:
        dangling = Path(path).is_symlink()
        problem = "is a link to a file that is not there" if dangling else "there is no such file"
        raise InvalidInput(problem, file=str(path)) from None
    except IsADirectoryError:
        raise InvalidInput("is a folder", file=str(path), advice="name a file in it") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInput(f"cannot be read: {reason}", file=str(path)) from None


def read_all(stream: BinaryIO, name: str, start: bytes = b"") -> bytes:
    """What is left of a stream, after what was read of it; refused where it is too much."""
    try:
        data = start + stream.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"cannot be read: {error.strerror}", file=name) from None
    if len(data) > MOST_BYTES:
        raise InvalidInput(f"is larger than {MOST_BYTES >> 20} MB", file=name, advice="split it")
    return data


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
        raise _broken(text, error) from None
    except RecursionError:
        raise InvalidInput("is nested too deeply to be read") from None
    except _NoJson:
        raise _first_fault(text) from None
    except ValueError as error:  # an integer of more digits than Python converts
        raise InvalidInput(f"broken JSON: {error}") from None


def _broken(text: str, error: json.JSONDecodeError) -> InvalidInput:
    """Python's error in a form that all its versions share, and that says what people do most.

    >>> str(_broken('[1,\\n]', json.JSONDecodeError("Expecting value", '[1,\\n]', 4)))
    'line 1 column 3: broken JSON: a comma before the end (take it away)'
    """
    problem, place = error.msg[:1].lower() + error.msg[1:], error.pos
    before = len(text[:place].rstrip())
    if problem.startswith("illegal trailing comma") or (
        text[before - 1 : before] == "," and text[place : place + 1] in ("]", "}")
    ):
        place = text.rfind(",", 0, place + 1)
        error = json.JSONDecodeError("a comma before the end", text, place)
        problem, advice = error.msg, "take it away"
    else:
        problem, advice = re.sub(" (starting )?at$", "", problem), None
    where = f"line {error.lineno} column {error.colno}"
    return InvalidInput(f"broken JSON: {problem}", place=where, advice=advice)


class _NoJson(Exception):
    """Python reads it, the standard does not: where it is has to be found."""


def _no_constant(name: str) -> None:
    raise _NoJson


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _NoJson
    return result


def _first_fault(text: str) -> InvalidInput:
    """The first constant that is no JSON, or key given twice in one object, with its place.

    >>> str(_first_fault('{"a": {"b": 1}, "b": "NaN",\\n "a": 1}'))
    'line 2 column 2: the key "a" is given twice in one object'
    """
    objects: list[set[str] | None] = []  # the keys so far of what is open; None: an array
    is_key = False
    for found in TOKEN.finditer(text):
        token, problem, advice = found[0], None, None
        if token in "{[":
            objects.append(set() if token == "{" else None)
        elif token in "]}":
            del objects[-1:]
        elif token[0] != '"' and token != ",":
            problem, advice = f"{token} is no JSON value", "use a number or null"
        elif token != "," and is_key and objects and (keys := objects[-1]) is not None:
            key = json.loads(token, strict=False)
            problem = f'the key "{key}" is given twice in one object' if key in keys else None
            keys.add(key)
        if problem:
            line, start = text.count("\n", 0, found.start()), text.rfind("\n", 0, found.start())
            place = f"line {line + 1} column {found.start() - start}"
            return InvalidInput(problem, place=place, advice=advice)
        is_key = token in "{,"
    return InvalidInput("broken JSON")


def depth(value: Any, most: int) -> int:
    """How many levels of lists and objects a JSON value has; beyond `most` it is not looked into.

    >>> depth({"a": [1, {}]}, 9), depth(3, 9), depth([[[[]]]], 2)
    (3, 0, 3)
    """
    found, level = 0, [value]
    while found <= most and (level := [each for each in level if isinstance(each, dict | list)]):
        found += 1
        level = [below for each in level
                 for below in (each.values() if isinstance(each, dict) else each)]  # fmt: skip
    return found


def invalid_shape(error: ValidationError, *below: str | int) -> InvalidInput:
    """A pydantic error as ours: the first problem, with its place as a JSON pointer."""
    first = error.errors()[0]
    keys: Sequence[str | int] = (*below, *first["loc"])
    return InvalidInput(first["msg"][:1].lower() + first["msg"][1:], place=pointer(*keys))
