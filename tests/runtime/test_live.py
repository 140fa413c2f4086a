"""What a terminal shows while calls are written."""

from __future__ import annotations

import io
import re
import sys
import time

import pytest

from cmm.grammar import HERMES, parse_functions
from cmm.runtime import display
from cmm.runtime.live import BEHIND, LiveCalls, Screen, live_calls

FUNCTIONS = parse_functions([{"name": "f", "parameters": {}}])


def screen(**options: object) -> Screen:
    return Screen(
        file=io.StringIO(), force_terminal=True, color_system="standard", width=30, height=6,
        legacy_windows=False, _environ={}, **options,  # type: ignore[arg-type]
    )  # fmt: skip


def made_known(calls: LiveCalls) -> LiveCalls:
    calls.tokens = [bytes([byte]) for byte in range(256)]
    calls.read = HERMES.reader(FUNCTIONS)
    return calls


def calls_on(console: Screen, total: int | None = 4) -> LiveCalls:
    return made_known(LiveCalls(console, total, 0, "calls"))


def drawn(console: Screen, calls: LiveCalls) -> str:
    """What is drawn once every row has grown to its end."""
    while calls.grow(range(9)):
        pass
    with console.capture() as capture:
        console.print(calls)
    return capture.get()


def test_rows_are_gray_and_go_when_their_call_is_finished() -> None:
    console = screen()
    calls = calls_on(console)
    calls.wrote(0, list(b'{"name": "f", "arguments": {"a": 2'))
    calls.wrote(1, list(b'{"name": "g'))
    assert drawn(console, calls).startswith("\x1b[90mf(a=2\x1b[0m\n\x1b[90mg\x1b[0m\n")
    calls.answered(0, None, [])
    with console.capture() as capture:
        calls.finished("f(a=2.0)\x1b[2J")
    assert capture.get() == "f(a=2.0)\\x1b[2J\n"
    text = drawn(console, calls)
    assert text.startswith("\x1b[90mg\x1b[0m\n")
    assert text.splitlines()[1].split()[1] == "1/4"


def test_no_more_lines_than_the_screen_has() -> None:
    """Long calls wrap and count as several lines; what does not fit is left out."""
    console = screen()
    calls = calls_on(console)
    for row in range(9):
        calls.wrote(row, list(b'{"name": "' + b"x" * 50))
    text = drawn(console, calls)
    assert text.count("x") == 2 * 50
    assert text.count("\n") == 5


def test_long_calls_are_cut_where_the_screen_ends() -> None:
    """A finished call is printed uncut; the lines below it were once left so too, and stayed."""
    console = screen()
    calls = calls_on(console)
    calls.wrote(0, list(b'{"name": "' + b"x" * 50))
    drawn(console, calls)
    with console.capture() as capture:
        console.print(calls, soft_wrap=True)
    assert capture.get().startswith(f"\x1b[90m{'x' * 30}\x1b[0m\n\x1b[90m{'x' * 20}\x1b[0m\n")


ANSWER = list(b'{"name": "f", "arguments": {"a": 2.0, "b": "xyz"}}')


def frames_of(console: Screen) -> list[str]:
    """The gray lines as they were drawn, one after the other."""
    found = re.findall("\x1b\\[90m(.*?)\x1b", console.file.getvalue())  # type: ignore[attr-defined]
    return [frame for frame, before in zip(found, ["", *found], strict=False) if frame != before]


@pytest.mark.parametrize("at_once", [1, 4, BEHIND, len(ANSWER)])
def test_a_line_grows_a_token_at_a_time_however_many_a_pass_brings(at_once: int) -> None:
    """Tokens are bytes here. Only where many wait several appear together, and then few."""
    console = screen()
    with live_calls(console, 1) as calls:
        made_known(calls)
        for end in range(at_once, len(ANSWER) + at_once, at_once):
            calls.wrote(0, ANSWER[:end])
            while calls.grow([0]):
                pass
        calls.answered(0, None, ANSWER)
        calls.finished("f(a=2.0, b='xyz')")
    frames = frames_of(console)
    every = [str(calls.read(bytes(ANSWER[:end]).decode())) for end in range(len(ANSWER) + 1)]
    shown = list(dict.fromkeys(filter(None, every)))
    assert frames == (shown if at_once <= BEHIND else [text for text in shown if text in frames])
    assert frames[-1] == "f(a=2.0, b='xyz')"
    assert len(frames) > BEHIND


def test_tokens_are_drawn_while_nothing_else_happens() -> None:
    """By a thread of their own: the one that decodes is in the middle of a pass."""
    console = screen()
    with live_calls(console, 1) as calls:
        made_known(calls)
        calls.wrote(0, ANSWER[:37])
        calls.passed()
        until = time.monotonic() + 10
        while "f(a=2.0" not in console.file.getvalue() and time.monotonic() < until:  # type: ignore[attr-defined]
            time.sleep(0.01)
        assert "f(a=2.0" in console.file.getvalue()  # type: ignore[attr-defined]
    assert not calls.grow([1])


def test_the_lines_are_taken_away() -> None:
    console = screen()
    with live_calls(console, 2) as calls:
        made_known(calls)
        calls.wrote(0, ANSWER)
        calls.answered(0, None, ANSWER)
        calls.finished("f()")
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert frames_of(console)[-1] == "f(a=2.0, b='xyz')"
    assert "f()\n" in text
    assert text.rstrip("\x1b[?25h\n\r").endswith("\x1b[2K")  # erased: what is drawn last is nothing


@pytest.mark.parametrize(
    ("terminal", "environment", "live"),
    [
        (True, {"TERM": "xterm"}, True),
        (False, {"TERM": "xterm"}, False),
        (True, {"TERM": "xterm", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
    ],
)
def test_where_nothing_is_redrawn(
    terminal: bool, environment: dict[str, str], live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal, raising=False)
    assert display.is_live() is live
