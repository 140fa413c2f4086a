"""What a terminal shows while calls are written."""

from __future__ import annotations

import io
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cmm.runtime import display
from cmm.runtime.live import LiveCalls, live_calls
from cmm.runtime.partial import name_span, partial_call

# (what is written so far, what is shown of it)
PARTIAL = [
    ('{"na', ""),
    ('{"name": "fn_add', "fn_add"),
    ('{"name": "fn_add", "argu', "fn_add"),
    ('{"name": "fn_add", "arguments": {"a": 2.0, "b', "fn_add(a=2.0, b"),
    ('{"name": "fn_add", "arguments": {"a":', "fn_add(a="),
    ('{"name": "f", "arguments": {"s": "ab c', 'f(s="ab c'),
    ('{"name": "f", "arguments": {"s": "ab c", "t": tr', "f(s='ab c', t=tr"),
    ('{"name": "f", "parameters": {"a": [1, 2', "f(a=[1, 2"),
    ('{"name": "f", "parameters": {}}', "f()"),
    ("<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\nx", "f(a=1, b=x"),
    ("f(a=1, b", "f(a=1, b"),
    ("call:f{a:1", "call:f{a:1"),
]


@pytest.mark.parametrize(("text", "shown"), PARTIAL)
def test_a_call_that_is_being_written(text: str, shown: str) -> None:
    assert partial_call(text) == shown


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)


@given(st.text(max_size=5), st.dictionaries(st.text(max_size=4), values, max_size=3), st.data())
def test_every_beginning_can_be_shown(name: str, arguments: dict, data: st.DataObject) -> None:  # type: ignore[type-arg]
    text = json.dumps({"name": name, "arguments": arguments})
    cut = data.draw(st.integers(0, len(text)))
    assert isinstance(partial_call(text[:cut]), str)
    span = name_span(text)
    assert json.loads(f'"{text[span.start : span.stop]}"') == name


def screen(**options: object) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, color_system="standard", width=30, height=6,
        legacy_windows=False, _environ={}, **options,  # type: ignore[arg-type]
    )  # fmt: skip


def calls_on(console: Console, total: int | None = 4) -> LiveCalls:
    calls = LiveCalls(console, total, 0, "calls")
    calls.tokens = [bytes([byte]) for byte in range(256)]
    return calls


def drawn(console: Console, calls: LiveCalls) -> str:
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
    with console.capture() as capture:
        console.print(calls, soft_wrap=True)
    assert capture.get().startswith(f"\x1b[90m{'x' * 30}\x1b[0m\n\x1b[90m{'x' * 20}\x1b[0m\n")


def test_the_lines_are_redrawn_and_taken_away() -> None:
    console = screen()
    with live_calls(console, 2) as calls:
        calls.tokens = [bytes([byte]) for byte in range(256)]
        calls.wrote(0, list(b"f("))
        calls.redraw()
        assert "\x1b[90mf(\x1b[0m" in console.file.getvalue()  # type: ignore[attr-defined]
        calls.finished("f()")
    text = console.file.getvalue()  # type: ignore[attr-defined]
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
