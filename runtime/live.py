"""Calls on a terminal while they are written: a gray line each, redrawn as tokens come.

fn_greet(name='shrek')                         finished: printed above, stays
fn_add_numbers(a=2.0, b                        being written: gray, redrawn
fn_reverse_string(s="hel                       another row of the batch
━━━━━━━━━─────────── 5/11 calls, 2.1 a second, 3 s left
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from cmm.runtime.choose import TokenId
from cmm.runtime.display import printable
from cmm.runtime.observe import Observer
from cmm.runtime.partial import partial_call

PER_SECOND = 20  # redraws at most
BAR = 24  # cells
LONG = 2  # calls from which progress is shown


class LiveCalls(Observer):
    """The calls that are being written, as lines for a terminal."""

    def __init__(self, console: Console, total: int | None, done: int, what: str) -> None:
        self._console = console
        self._total, self._what = total, what
        self._done, self._new = done, 0
        self._writing: dict[int, list[TokenId]] = {}
        self._began = self._drawn = time.monotonic()
        self.redraw: Callable[[], None] = lambda: None

    def passed(self) -> None:
        """Draw what a pass has brought, unless passes come faster than the eye sees."""
        now = time.monotonic()
        if now - self._drawn >= 1 / PER_SECOND:
            self._drawn = now
            self.redraw()

    def wrote(self, number: int, answer: Sequence[TokenId]) -> None:
        """An answer has these tokens now."""
        self._writing[number] = list(answer)

    def answered(self, number: int, call: object, answer: Sequence[TokenId]) -> None:
        """A call is finished: its line goes away, and the call itself is printed."""
        self._writing.pop(number, None)

    def finished(self, line: str) -> None:
        """Print a call above the lines that are still redrawn."""
        self._done, self._new = self._done + 1, self._new + 1
        self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    def __rich__(self) -> Group:
        """The lines as they are now; no more than fit on the screen."""
        lines: list[Text] = []
        width, room = self._console.width, self._console.height - 2
        for answer in list(self._writing.values()):
            text = b"".join(self.tokens[token] for token in answer).decode("utf-8", "ignore")
            # Cut here: what rich prints above lets it leave these lines uncut, but count as one.
            cut = chop_cells(printable(partial_call(text)), width) or [""]
            room -= len(cut)
            if room < 0:
                break
            lines += [Text(piece, style="bright_black") for piece in cut]
        if self._total is None or self._total >= LONG:
            told = self._progress(time.monotonic() - self._began)
            lines.append(Text(set_cell_size(told, min(width, cell_len(told)))))
        return Group(*lines)

    def _progress(self, seconds: float) -> str:
        if self._total is None:
            return f"{self._done} {self._what}{rate(self._new, seconds)}"
        full = BAR * self._done // max(self._total, 1)
        bar = "━" * full + "─" * (BAR - full)
        left = rate(self._new, seconds, self._total - self._done)
        return f"{bar} {self._done}/{self._total} {self._what}{left}"


def rate(done: int, seconds: float, left: int | None = None) -> str:
    """How fast it goes, and how long it still takes, once that can be said.

    >>> rate(4, 2.0, 10), rate(4, 8.0), rate(0, 2.0, 10)
    (', 2.0 a second, 5 s left', ', 0.5 a second', '')
    """
    if not done or seconds <= 0:
        return ""
    speed = f", {done / seconds:.1f} a second"
    return speed if left is None else f"{speed}, {duration(left * seconds / done)} left"


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(4.2), duration(130), duration(7500)
    ('5 s', '2 min 10 s', '2 h 5 min')
    """
    whole = math.ceil(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def live_calls(
    console: Console, total: int | None, done: int = 0, what: str = "calls"
) -> Iterator[LiveCalls]:
    """Draw calls while they are written; the lines are gone at the end, the calls stay.

    Drawn from the thread that decodes alone: a second one may draw between the moment in which
    rich counts the lines to go up and the one in which it goes, and then a finished call is lost.
    """
    calls = LiveCalls(console, total, done, what)
    live = Live(calls, console=console, auto_refresh=False, transient=True, redirect_stdout=False)
    calls.redraw = live.refresh
    with live:
        yield calls
