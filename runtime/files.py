"""Calls out: files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cmm.grammar.errors import CmmError, InvalidInput

ESCAPED = "backslashreplace"  # half of a surrogate pair, as names of files may hold, as in JSON

# How the keys of a call are written: `legacy` as older readers of such files expect them.
KEYS: dict[str, Mapping[str, str]] = {
    "usual": {},
    "legacy": {"name": "fn_name", "parameters": "args"},
}


Named = tuple[str, Path | None]  # what a file is, as an option, and its path if there is one


def check_apart(written: Sequence[Named], read: Sequence[Named]) -> None:
    """Refuse a file that would be written over what is read, or over another that is written.

    >>> check_apart([("--output", Path("a.json"))], [("--input", Path("./a.json"))])
    Traceback (most recent call last):
    cmm.grammar.errors.InvalidInput: a.json: --output would write over --input a.json (name another)
    """
    for number, (option, path) in enumerate(written):
        for other, taken in (*read, *written[:number]):
            if path is not None and taken is not None and is_same_file(path, taken):
                raise InvalidInput(
                    f"{option} would write over {other} {taken}",
                    file=str(path),
                    advice="name another",
                )


def is_same_file(one: Path, other: Path) -> bool:
    """Do two paths name one file, perhaps one that is yet to be made? Streams may be shared."""
    if is_stream(one) or is_stream(other):
        return False
    if one.exists() and other.exists():
        return one.samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def check_output(path: Path) -> None:
    """Make the folder of an output file, and refuse what cannot be written, before the work."""
    if path.is_dir():
        raise InvalidInput("is a folder", file=str(path), advice="name a file with --output")
    path = real(path) if path.is_symlink() else path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CmmError(
            f"the folder cannot be made: {error.strerror}", file=str(path.parent)
        ) from None
    if not may_write(path.parent):
        raise CmmError("the folder cannot be written to", file=str(path.parent))
    if path.exists() and not may_write(path):
        raise CmmError("is there already, and cannot be written to", file=str(path))


def real(path: Path) -> Path:
    """The file that a path names, whatever links lead to it."""
    return Path(os.path.realpath(path))


def may_write(path: Path) -> bool:
    """May this process write there, as the user it acts for?"""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def is_stream(path: Path) -> bool:
    """Is this stdout, a pipe or a device, to be written to as it is?"""
    return str(path) == "-" or (path.exists() and not path.is_file() and not path.is_dir())


def write_whole(path: Path, pieces: Iterable[str]) -> None:
    """Write a text; the file is replaced as a whole, so that no failure leaves half of it."""
    try:
        if path.exists() and not path.is_file():  # a device or a pipe, which must stay one
            with path.open("w", encoding="utf-8", errors=ESCAPED) as out:
                out.writelines(pieces)
            return
        path = real(path)  # a link stays one
        handle, partial = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", errors=ESCAPED) as out:
                out.writelines(pieces)
                out.flush()
                os.fsync(out.fileno())
            os.chmod(partial, usual_mode(path))  # mkstemp lets no one else read
            os.replace(partial, path)
        except BaseException:
            Path(partial).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise CmmError(f"cannot be written: {error.strerror}", file=str(path)) from None


def usual_mode(path: Path) -> int:
    """The permissions of a file that is there, or those that this process gives a new one."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def renamed(call: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """A call with its keys written otherwise.

    >>> renamed({"prompt": "Hi", "name": "f", "parameters": {"name": 1}}, KEYS["legacy"])
    {'prompt': 'Hi', 'fn_name': 'f', 'args': {'name': 1}}
    """
    return {keys.get(key, key): value for key, value in call.items()}


def json_list(values: Iterable[Any]) -> Iterator[str]:
    """A JSON list in pieces, two spaces deep.

    >>> print("".join(json_list([{"a": 1}, {}])), end="")
    [
      {
        "a": 1
      },
      {}
    ]
    """
    before = "[\n  "
    for value in values:
        text = json.dumps(value, ensure_ascii=False, indent=2)
        yield before + text.replace("\n", "\n  ")
        before = ",\n  "
    yield "[]\n" if before.startswith("[") else "\n]\n"


def json_lines(values: Iterable[Any]) -> Iterator[str]:
    """JSON Lines: a value on each.

    >>> list(json_lines([{"a": 1}]))
    ['{"a": 1}\\n']
    """
    return (json.dumps(value, ensure_ascii=False) + "\n" for value in values)
