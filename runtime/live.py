"""Calls on a terminal while they are written: a gray line each, redrawn a token at a time.

fn_greet(name='shrek')                         finished: printed above, stays
fn_add_numbers(a=2.0, b                        being written: gray, redrawn
fn_reverse_string(s="hel                       another row of the batch
━━━━━━━━━─────────── 5/11 calls, 2.1 a second, 3 s left

A pass of the model brings several tokens; they are drawn one by one while the next pass runs.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from cmm.compiler.utf8 import written_as
from cmm.runtime.choose import TokenId
from cmm.runtime.display import printable
from cmm.runtime.observe import Observer

FRAME = 0.02  # seconds between two redraws, while there is something to draw
BEHIND = 6  # a row that is further behind than so many tokens grows by several a redraw
BAR = 24  # cells
LONG = 2  # calls from which progress is shown


class Screen(Console):
    """A terminal that several threads draw on, one after the other.

    Else one may draw between the moment in which rich counts the lines to go up and the one in
    which it goes, and then a finished call is lost.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.turn = threading.RLock()

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as a console does."""
        with self.turn:
            super().print(*objects, **options)


class LiveCalls(Observer):
    """The calls that are being written, as lines for a terminal."""

    def __init__(self, console: Screen, total: int | None, done: int, what: str) -> None:
        self._console = console
        self._total, self._what = total, what
        self._done, self._new = done, 0
        self._writing: dict[int, Sequence[TokenId]] = {}
        self._shown: dict[int, int] = {}  # how many tokens of each
        self._began = time.monotonic()
        self.news = threading.Event()  # a pass has brought tokens
        self.redraw: Callable[[], None] = lambda: None

    def passed(self) -> None:
        """Let what a pass has brought be drawn."""
        self.news.set()

    def wrote(self, number: int, answer: Sequence[TokenId]) -> None:
        """An answer has these tokens now."""
        self._writing[number] = answer

    def grow(self, numbers: Sequence[int]) -> bool:
        """Show a token more of some rows, and draw; False where all is shown."""
        with self._console.turn:
            there = [n for n in numbers if n in self._writing]
            behind = {n: len(self._writing[n]) - self._shown.get(n, 0) for n in there}
            for number, tokens in behind.items():
                self._shown[number] = self._shown.get(number, 0) + -(-tokens // BEHIND)
            if any(behind.values()):
                self.redraw()
            return any(tokens > 1 for tokens in behind.values())

    def draw(self, stopped: threading.Event) -> None:
        """Let all rows grow whenever there is news, until it is stopped."""
        while self.news.wait() and not stopped.is_set():
            self.news.clear()
            while not stopped.wait(FRAME) and self.grow(list(self._writing)):
                pass

    def answered(self, number: int, call: object, answer: Sequence[TokenId]) -> None:
        """A call is finished: its line is drawn to its end and goes away; the call is printed."""
        while self.grow([number]):
            pass
        with self._console.turn:
            self._writing.pop(number, None)
            self._shown.pop(number, None)

    def finished(self, line: str) -> None:
        """Print a call above the lines that are still redrawn."""
        self._done, self._new = self._done + 1, self._new + 1
        self._console.print(printable(line), markup=False, highlight=False, soft_wrap=True)

    def __rich__(self) -> Group:
        """The lines as they are now; no more than fit on the screen."""
        lines: list[Text] = []
        width, room = self._console.width, self._console.height - 2
        for number, answer in list(self._writing.items()):
            shown = answer[: self._shown.get(number, 0)]
            text = written_as(self.tokens[token] for token in shown).decode("utf-8", "ignore")
            # Cut here: what rich prints above lets it leave these lines uncut, but count as one.
            cut = chop_cells(printable(self._read(text)), width) or [""]
            room -= len(cut)
            if room < 0:
                break
            lines += [Text(piece, style="bright_black") for piece in cut]
        if self._total is None or self._total >= LONG:
            told = self._progress(time.monotonic() - self._began)
            lines.append(Text(set_cell_size(told, min(width, cell_len(told)))))
        return Group(*lines)

    def _read(self, text: str) -> str:
        try:
            return str(self.read(text))
        except RecursionError:  # an argument that nests too deep to be read at all
            return text

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
    console: Screen, total: int | None, done: int = 0, what: str = "calls"
) -> Iterator[LiveCalls]:
    """Draw calls while they are written; the lines are gone at the end, the calls stay."""
    calls = LiveCalls(console, total, done, what)
    live = Live(calls, console=console, auto_refresh=False, transient=True, redirect_stdout=False)
    stopped = threading.Event()
    drawer = threading.Thread(target=calls.draw, args=(stopped,), daemon=True)
    calls.redraw = live.refresh
    with live:
        drawer.start()
        try:
            yield calls
        finally:
            stopped.set()
            calls.news.set()
            drawer.join()
