"""A batch of requests: answered once each, kept in a journal, written in their order."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from cmm.grammar.errors import CmmError
from cmm.runtime.display import counted, progress, tell
from cmm.runtime.files import KEYS, json_lines, json_list, renamed, write_whole
from cmm.runtime.journal import Journal, journal_path
from cmm.runtime.prompt_file import LINES, Prompts

if TYPE_CHECKING:
    from cmm.runtime.caller import Caller, FunctionCall

IsDone = Callable[[int, str, str], bool]  # number of a prompt, its text and place


class Batch:
    """The requests of one run, and what became of them."""

    def __init__(
        self, caller: Caller, prompts: Prompts, *, keys: str = "usual", quiet: bool = False
    ) -> None:
        self.caller = caller
        self.keys = KEYS[keys]
        self.quiet = quiet
        self.prompts = prompts
        self.refused: set[int] = set()  # numbers of prompts that are too long
        self.answered = 0
        self.stopped = False
        self._began = time.perf_counter()

    def calls(self, is_done: IsDone, done: int = 0) -> Iterator[tuple[int, FunctionCall]]:
        """(number, call) of the prompts that are not done, as they are finished; shows each."""
        asked: dict[int, tuple[int, str]] = {}

        def waiting() -> Iterator[str]:
            number = 0
            for index, (place, text) in enumerate(self.prompts.placed):
                if not is_done(index, text, place):
                    asked[number] = index, place
                    number += 1
                    yield text

        def refuse(number: int, error: CmmError) -> None:
            index, place = asked.pop(number)
            self.refused.add(index)
            tell(f"cmm: {error.located(file=self.prompts.name, below=place)}")

        with progress(self.prompts.total, done, caller=self.caller, quiet=self.quiet) as show:
            for number, call in self.caller.stream(waiting(), refuse):
                self.answered += 1
                show(str(call))
                yield asked.pop(number)[0], call

    def finish(self, count: int, where: str) -> int:
        """Say what was done; the exit code."""
        if not self.quiet:
            self._sum_up(count, where)
        if self.refused:
            were = "was" if len(self.refused) == 1 else "were"
            tell(f"cmm: {counted(len(self.refused), 'prompt')} {were} too long, without a call")
        return 1 if self.refused else 0

    def _sum_up(self, count: int, where: str) -> None:
        tell(
            f"{counted(count, 'call')} in {time.perf_counter() - self._began:.1f} s, "
            f"{counted(self.caller.forwards, 'forward pass')}, model {self.caller.model.name}, "
            f"written to {where}"
        )


def write_at_end(batch: Batch, output: Path, *, resume: bool = False) -> int:
    """Answer into a journal, and write the output from it when all is done.

    After Ctrl-C what is done is written too; after a failure the old output stays.
    """
    about = {**batch.caller.identity, "prompts": batch.prompts.digest}
    journal = Journal(journal_path(output), about, resume=resume, total=batch.prompts.total)
    form = json_lines if output.suffix in LINES else json_list
    seen = 0  # prompts

    def pieces() -> Iterator[str]:
        return form(renamed(call, batch.keys) for call in journal)

    def is_done(index: int, text: str, place: str) -> bool:
        nonlocal seen
        seen = index + 1
        if index in journal:
            journal.check(index, text, f"{batch.prompts.name} @ {place}")
        return index in journal

    with ExitStack() as at_end:
        at_end.callback(journal.close)
        if len(journal):
            tell(f"going on after {counted(len(journal), 'call')} of {journal.path}")
        try:
            for index, call in batch.calls(is_done, len(journal)):
                journal.add(index, call.model_dump())
        except KeyboardInterrupt:
            return stopped(batch, journal, lambda: write_whole(output, pieces()))
        except BaseException:
            if len(journal):
                tell(f"{counted(len(journal), 'call')} in {journal.path}; the same command goes on")
            raise
        journal.limit(seen)
        write_whole(output, pieces())
        code = batch.finish(len(journal), str(output))
        at_end.pop_all()
        journal.remove()
        return code


def stopped(batch: Batch, journal: Journal, write: Callable[[], None]) -> int:
    """After Ctrl-C: write what is done, and say how to go on."""
    if not len(journal):
        tell("cmm: stopped")
        return 130
    write()
    total = "" if batch.prompts.total is None else f" of {batch.prompts.total}"
    tell(f"cmm: stopped; {len(journal)}{total} calls are written, the same command goes on")
    return 130


def write_as_finished(batch: Batch, output: Path) -> int:
    """Answer to stdout, a pipe or a device, in the order of the prompts, as soon as that can be."""
    lines = batch.prompts.is_lines or output.suffix in LINES
    with ExitStack() as at_end:
        out = (
            sys.stdout
            if str(output) == "-"
            else at_end.enter_context(output.open("w", encoding="utf-8"))
        )
        for piece in (json_lines if lines else json_list)(in_order(batch)):
            write(out, piece)
    if batch.stopped:
        tell("cmm: stopped; the calls that were done in order are written")
        return 130
    return batch.finish(batch.answered, "stdout" if str(output) == "-" else str(output))


def write(out: TextIO, piece: str) -> None:
    """Hand a piece on at once."""
    out.write(piece)
    out.flush()


def in_order(batch: Batch) -> Iterator[dict[str, Any]]:
    """The calls in the order of the prompts; those that are early wait."""
    early: dict[int, FunctionCall] = {}
    following = 0
    try:
        for index, call in batch.calls(lambda *_: False):
            early[index] = call
            while following in early or following in batch.refused:
                if following in early:
                    yield renamed(early.pop(following).model_dump(), batch.keys)
                following += 1
    except KeyboardInterrupt:
        batch.stopped = True
