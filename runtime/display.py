"""What a person sees on stderr: one line per call, drawn while it is written on a terminal."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cmm.runtime.observe import Observer


class Watched(Protocol):
    """A caller, as far as displays know it."""

    def watch(self, observer: Observer) -> None: ...


class Show(Protocol):
    """Shows one finished call."""

    def __call__(self, line: str) -> None: ...


def printable(text: str) -> str:
    """The text with everything that could steer a terminal written as an escape.

    >>> printable("a\\x1b[31m")
    'a\\\\x1b[31m'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(count: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "call"), counted(2, "pass")
    ('1 call', '2 passes')
    """
    plural = what + ("es" if what.endswith("s") else "s")
    return f"{count} {what if count == 1 else plural}"


@contextmanager
def progress(
    total: int | None,
    done: int = 0,
    what: str = "calls",
    *,
    caller: Watched | None = None,
    quiet: bool = False,
) -> Iterator[Show]:
    """Give it a line for each thing that is done; how far it is stands below, on a terminal.

    There the calls of a caller are drawn while they are written.
    """
    if quiet:
        yield lambda line: None
    elif not is_live():
        yield lambda line: print(printable(line), file=sys.stderr, flush=True)
    else:
        from cmm.runtime.live import Screen, live_calls

        with live_calls(Screen(stderr=True), total, done, what) as calls:
            if caller is not None:
                caller.watch(calls)
            yield calls.finished


def is_live() -> bool:
    """May lines be drawn again? On a terminal that can, if colours are not unwanted."""
    dull = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return sys.stderr.isatty() and not dull


def tell(text: str) -> None:
    """One line for the person, on stderr."""
    print(printable(text), file=sys.stderr, flush=True)


def hush_transformers() -> None:
    """Let transformers print neither advice nor bars of its own."""
    logging: Any = importlib.import_module("transformers.utils.logging")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
