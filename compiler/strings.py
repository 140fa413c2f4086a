"""Strings with a content: an automaton over characters, lowered to the bytes that spell them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cmm.compiler.nfa import Nfa
from cmm.compiler.utf8 import SURROGATES
from cmm.grammar.content import Content
from cmm.grammar.nodes import Text

SHORT_ESCAPES = {0x22: '"', 0x5C: "\\", 0x2F: "/", 8: "b", 12: "f", 10: "n", 13: "r", 9: "t"}
RAW = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF))  # what a JSON string may hold unescaped
PLAIN_KEY = (0x20, 0x7E)  # in a key these are written raw or by a short escape only


CharEntry = Callable[[int, int, int], int]  # first and last character, state after -> entry


def content_entry(nfa: Nfa, content: Content, after: int, entry: CharEntry) -> int:
    """The state from which the texts of a content lead to `after`, each character by `entry`.

    The entries of its states are numbered one after the other, in their order.
    """
    states = [nfa.state() for _ in content.moves]
    for state, moves, final in zip(states, content.moves, content.final, strict=True):
        entries = [entry(low, high, states[target]) for low, high, target in moves]
        nfa.empty[state] += [*entries, *([after] if final else [])]
    return states[0]


def text_entry(nfa: Nfa, text: Text, after: int, share: bool = True) -> int:
    """The state before the opening quote of a string with a content; each character counts.

    Where any further characters are accepted, the string goes on like every other one: that is
    left to the frame that all automata share, but for that frame itself.
    """
    quote = nfa.text('"', after)
    known: dict[tuple[int, int, int], int] = {}

    def entry(low: int, high: int, target: int) -> int:
        key = low, high, target
        if key not in known:
            escaped = _escaped(nfa, low, high, target, text.key)
            known[key] = nfa.fork([*_raw(nfa, low, high, target), *escaped])
        return known[key]

    first = content_entry(nfa, text.content, quote, entry)
    for number in text.content.universal if share else ():
        state = first + number
        nfa.empty[state].clear()
        nfa.inside[state] = after
    return nfa.text('"', first)


def _raw(nfa: Nfa, low: int, high: int, target: int) -> Iterator[int]:
    for first, last in RAW:
        if low <= last and high >= first:
            yield nfa.character(max(low, first), min(high, last), target, gain=1)


def _escaped(nfa: Nfa, low: int, high: int, target: int, key: bool) -> Iterator[int]:
    for point, letter in SHORT_ESCAPES.items():
        if low <= point <= high and not (key and letter == "/"):
            yield nfa.text(f"\\{letter}", target, gain=1)
    parts = [(low, min(high, PLAIN_KEY[0] - 1)), (max(low, PLAIN_KEY[1] + 1), high)]
    for first, last in parts if key else [(low, high)]:
        for path in unit_escapes(first, last):
            yield _path(nfa, path, target)


Digits = list[list[tuple[int, int]]]  # for each place the byte ranges that it may be


def unit_escapes(low: int, high: int) -> Iterator[Digits]:
    r"""The escapes of a range of characters: one code unit, or a surrogate pair beyond U+FFFF.

    >>> ["".join(chr(place[0][0]) for place in path) for path in unit_escapes(0xE9, 0xEA)]
    ['\\u00e9']
    """
    for first, last in (
        (low, min(high, SURROGATES[0] - 1)),
        (max(low, SURROGATES[1] + 1), min(high, 0xFFFF)),
    ):
        for digits in hex_ranges(first, last, 4):
            yield [*_letters("\\u"), *digits]
    first, last = max(low, 0x10000) - 0x10000, high - 0x10000
    for high_units, low_units in _pairs(first, last):
        for lead in hex_ranges(0xD800 + high_units[0], 0xD800 + high_units[1], 4):
            for trail in hex_ranges(0xDC00 + low_units[0], 0xDC00 + low_units[1], 4):
                yield [*_letters("\\u"), *lead, *_letters("\\u"), *trail]


def _pairs(first: int, last: int) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """A range of 20-bit numbers as products of ranges of their upper and lower ten bits."""
    while first <= last:
        upper, lower = divmod(first, 1024)
        if lower == 0 and last - first >= 1023:
            until = (last + 1) // 1024 - 1
            yield (upper, until), (0, 1023)
            first = (until + 1) * 1024
        else:
            end = min(last, upper * 1024 + 1023)
            yield (upper, upper), (lower, end % 1024)
            first = end + 1


def hex_ranges(low: int, high: int, places: int) -> Iterator[Digits]:
    """A range of numbers as products of ranges of hexadecimal digits, in either case.

    >>> list(hex_ranges(0x0A, 0x1F, 2))
    [[[(48, 48)], [(97, 102), (65, 70)]], [[(49, 49)], [(48, 57), (97, 102), (65, 70)]]]
    """
    if low > high:
        return
    if places == 0:
        yield []
        return
    block = 16 ** (places - 1)
    while low <= high:
        digit, rest = divmod(low, block)
        if rest == 0 and high - low >= block - 1:
            until = (high + 1) // block - 1
            tail = [_digit_bytes(0, 15)] * (places - 1)
            yield [_digit_bytes(digit, until), *tail]
            low = (until + 1) * block
        else:
            end = min(high, digit * block + block - 1)
            for tail in hex_ranges(rest, end % block, places - 1):
                yield [_digit_bytes(digit, digit), *tail]
            low = end + 1


def _digit_bytes(low: int, high: int) -> list[tuple[int, int]]:
    found = [(0x30 + low, 0x30 + min(high, 9))] if low <= 9 else []
    if high >= 10:
        first, last = max(low, 10) - 10, high - 10
        found += [(0x61 + first, 0x61 + last), (0x41 + first, 0x41 + last)]
    return found


def _letters(text: str) -> Digits:
    return [[(byte, byte)] for byte in text.encode()]


def _path(nfa: Nfa, path: Digits, after: int) -> int:
    gain = 1
    for place in reversed(path):
        after = nfa.fork([nfa.path([span], after, gain) for span in place])
        gain = 0
    return after
