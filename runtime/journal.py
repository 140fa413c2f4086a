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
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from cmm.grammar.errors import CmmError, InvalidInput
from cmm.runtime.display import tell
from cmm.runtime.files import real

FORMAT = 1  # raise it whenever the meaning of a line changes
BEGINS = b'{"journal": '
LONGEST_HEAD = 1 << 16  # bytes; it is some hundreds
CALL = {"prompt": str, "name": str, "parameters": dict}  # the keys of a call, and their types


class Journal:
    """The calls of one run that are done, on disk; in memory only where each begins.

    `about` says what the calls depend on; a journal of something else is not mixed in: it is
    refused with `resume`, and set aside without. `total` is how many prompts there are, if that is
    known.
    """

    def __init__(
        self,
        path: Path,
        about: Mapping[str, Any],
        *,
        resume: bool = False,
        total: int | None = None,
    ) -> None:
        self.path = path
        self._total = total
        self._starts: dict[int, int] = {}  # prompt number -> byte where its line begins
        head = {"journal": FORMAT, **{part: digest_of(value) for part, value in about.items()}}
        if path.exists() and not path.is_file():
            raise no_journal(path)
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

    def limit(self, total: int) -> None:
        """There were so many prompts: calls of others are none of this run."""
        self._starts = {index: start for index, start in self._starts.items() if index < total}

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
        line = self._file.readline(LONGEST_HEAD)
        if not line.endswith(b"\n") and (line.startswith(BEGINS) or BEGINS.startswith(line)):
            return None
        head = value_of(line)
        if not isinstance(head, dict) or "journal" not in head:
            raise no_journal(self.path)
        return head

    def _read_calls(self) -> None:
        """Note where the calls are; what follows the last good line is dropped.

        A last line that is not whole was being written when the run was killed.
        """
        for number in count(2):
            start, line = self._file.tell(), self._file.readline()
            index = number_of(line)
            beyond = index is not None and self._total is not None and index >= self._total
            if index is None or index in self._starts or beyond:
                self._file.truncate(start)
                if line.endswith(b"\n"):
                    tell(
                        f"{self.path} is damaged from line {number} on: these calls are made again"
                    )
                return
            self._starts[index] = start

    def _set_aside(self, changed: str, resume: bool) -> None:
        if resume:
            raise InvalidInput(
                f"is of another run: {changed} changed since",
                file=str(self.path),
                advice="without --resume it is set aside",
            )
        old = aside(self.path)
        if old.is_file():
            with old.open("rb") as file:
                if file.read(len(BEGINS)) != BEGINS:
                    raise no_journal(old)
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

    >>> number_of(b'{"index": 3, "call": {"prompt": "x", "name": "f", "parameters": {}}}\\n')
    3
    >>> number_of(b'{"index": 3, "ca')
    """
    entry = value_of(line)
    if not isinstance(entry, dict):
        return None
    index, call = entry.get("index"), entry.get("call")
    good = (
        type(index) is int
        and index >= 0
        and isinstance(call, dict)
        and {key: type(value) for key, value in call.items()} == CALL
    )
    return index if good else None


def no_journal(path: Path) -> CmmError:
    """The error of a file that is not ours to write over."""
    return InvalidInput(
        "is no journal of a run, and stands where one is to be written",
        file=str(path),
        advice="move it away, or name another --output",
    )


def value_of(line: bytes) -> Any:
    """The JSON value on a line; None where the line is not whole."""
    try:
        return json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        return None


def journal_path(output: Path) -> Path:
    """Where the journal of an output file is: one, whatever links lead to the file."""
    path = real(output)
    return path.with_name(path.name + ".journal")


def aside(journal: Path) -> Path:
    """Where the journal of another run is kept."""
    return journal.with_name(journal.name + ".old")


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
