"""The journal of a run: every call as it is finished, so that nothing is lost or done twice.

{"journal": 1, "functions": "5f…", "prompts": "a0…", "model": "1c…", "configuration": "77…"}
{"index": 1, "call": {"prompt": "Greet john", "name": "greet", "parameters": {…}}}
{"index": 0, …
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from cmm.grammar.errors import CmmError, InvalidInput
from cmm.runtime.display import tell

FORMAT = 1  # raise it whenever the meaning of a line changes


class Journal:
    """The calls of one run that are done, on disk; in memory only where each begins.

    `about` says what the calls depend on; a journal of something else is not mixed in: it is
    refused with `resume`, and set aside without.
    """

    def __init__(self, path: Path, about: Mapping[str, Any], *, resume: bool = False) -> None:
        self.path = path
        self._starts: dict[int, int] = {}  # prompt number -> byte where its line begins
        head = {"journal": FORMAT, **{part: digest_of(value) for part, value in about.items()}}
        try:
            self._file: BinaryIO = path.open("a+b")
            lock(self._file, path)
            found = self._read_head()
            if found is not None and found != head:
                self._set_aside(differing(found, head), resume)
                found = None
            if found is None:
                self._begin(head)
            else:
                self._read_calls()
        except OSError as error:
            raise CmmError(f"cannot be written: {error.strerror}", file=str(path)) from None

    def __len__(self) -> int:
        return len(self._starts)

    def __contains__(self, index: int) -> bool:
        return index in self._starts

    def __iter__(self) -> Iterator[Any]:
        """The calls in the order of their prompts, read from disk one by one."""
        return (self._call(index) for index in sorted(self._starts))

    def add(self, index: int, call: Mapping[str, Any]) -> None:
        """Write down a call; it survives the end of this process, whatever ends it."""
        line = json.dumps({"index": index, "call": call}, ensure_ascii=False) + "\n"
        start = self._file.seek(0, os.SEEK_END)
        try:
            self._file.write(line.encode())
            self._file.flush()
        except OSError as error:
            raise CmmError(f"cannot be written: {error.strerror}", file=str(self.path)) from None
        self._starts[index] = start

    def check(self, index: int, prompt: str, place: str) -> None:
        """Refuse to go on where another prompt was answered under this number."""
        if self._call(index)["prompt"] != prompt:
            raise InvalidInput(
                "is not the prompt that was answered before",
                place=place,
                advice=f"remove {self.path} to begin anew",
            )

    def close(self) -> None:
        """Leave the journal for a later run; one without calls is not kept."""
        if not self._starts:
            self.path.unlink(missing_ok=True)
        self._let_go()

    def remove(self) -> None:
        """The run is complete."""
        self.path.unlink(missing_ok=True)
        self._let_go()

    def _let_go(self) -> None:
        # On a full disk a line is left in the buffer, which closing tries to write once more.
        with suppress(OSError):
            self._file.close()

    def _call(self, index: int) -> Any:
        self._file.seek(self._starts[index])
        return json.loads(self._file.readline())["call"]

    def _read_head(self) -> dict[str, Any] | None:
        """What the journal is about; None where it is empty or its first line is not whole."""
        self._file.seek(0)
        line = self._file.readline()
        try:
            head = json.loads(line) if line.endswith(b"\n") else None
        except ValueError:
            head = None
        return head if isinstance(head, dict) else None

    def _read_calls(self) -> None:
        """Note where the calls are; what follows the last whole line is dropped."""
        while True:
            start = self._file.tell()
            index = number_of(self._file.readline())
            if index is None:
                self._file.truncate(start)
                return
            self._starts[index] = start

    def _set_aside(self, changed: str, resume: bool) -> None:
        if resume:
            raise InvalidInput(
                f"is of another run: {changed} changed since",
                file=str(self.path),
                advice="without --resume it is set aside",
            )
        old = self.path.with_name(self.path.name + ".old")
        tell(f"beginning anew, for {changed} changed; the calls of the run before are in {old}")
        os.replace(self.path, old)
        self._file.close()
        self._file = self.path.open("a+b")
        lock(self._file, self.path)

    def _begin(self, head: Mapping[str, Any]) -> None:
        self._file.truncate(0)
        self._file.write((json.dumps(head) + "\n").encode())
        self._file.flush()


def number_of(line: bytes) -> int | None:
    """The prompt's number in a journal's line; None where the line is not whole.

    >>> number_of(b'{"index": 3, "call": {"prompt": "x"}}\\n'), number_of(b'{"index": 3, "ca')
    (3, None)
    """
    try:
        entry = json.loads(line) if line.endswith(b"\n") else {}
    except ValueError:
        return None
    index = entry.get("index") if isinstance(entry, dict) else None
    return index if isinstance(index, int) and "prompt" in entry.get("call", {}) else None


def digest_of(value: Any) -> str:
    """A short digest of a JSON value."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]


def differing(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What is not the same, in words.

    >>> differing({"model": "a", "prompts": "b"}, {"model": "c", "prompts": "d"})
    'the model and the prompts'
    """
    parts = [f"the {part}" for part in wanted if found.get(part) != wanted[part]]
    return " and ".join(parts) or "the form of the journal"


def lock(file: BinaryIO, path: Path) -> None:
    """Keep other runs away from this journal, where the system has such locks."""
    try:
        fcntl: Any = importlib.import_module("fcntl")
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise CmmError(
            "another run is writing to it", file=str(path), advice="name another --output"
        ) from None
