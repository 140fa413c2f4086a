"""What a person sees on stderr: one line per call, a bar on a terminal, a summary."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol


class Show(Protocol):
    """Shows one finished call."""

    def __call__(self, line: str) -> None: ...


def printable(text: str) -> str:
    """The text with everything that could steer a terminal written as an escape.

    >>> printable("a\\x1b[31m")
    'a\\\\x1b[31m'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@contextmanager
def progress(total: int | None, done: int = 0, what: str = "calls") -> Iterator[Show]:
    """A progress bar on a terminal, plain lines elsewhere; give it each line as it is done."""
    if not sys.stderr.isatty():
        yield lambda line: print(printable(line), file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, completed=done)

        def show(line: str) -> None:
            console.print(printable(line), markup=False, highlight=False, soft_wrap=True)
            bar.advance(task)

        yield show


def tell(text: str) -> None:
    """One line for the person, on stderr."""
    print(printable(text), file=sys.stderr, flush=True)


def hush_transformers() -> None:
    """Let transformers print neither advice nor bars of its own."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
