"""Internationalised host names: the part of IDNA 2008 that an automaton can promise."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache

from cmm.grammar.characters import Ranges, of, ranges
from cmm.grammar.content import Content
from cmm.grammar.format_patterns import hostname
from cmm.grammar.machine import crawl
from cmm.grammar.pattern import pattern_content

DOTS = ".\u3002\uff0e\uff61"
SINGLE = ranges([*of("-"), (0x30, 0x39), (0x61, 0x7A)])
MOST_LABELS = 3  # of 63 octets: no such name comes to 253

# Punycode writes a character of the first plane in at most 7 digits when a label has at most 58
# characters (RFC 3492, 5: a digit is worth at least 10 times the one before it), behind "xn--" and
# one more "-".
WEIGHT = 7
MOST_WEIGHT = 63 - len("xn--") - 1

# RFC 5892, 2.6: letters that are not allowed, and those that are though folding changes them.
_NOT_ALLOWED = frozenset("\u0640\u07fa\u3031\u3032\u3033\u3034\u3035\u303b")
_ALLOWED = frozenset("\u00df\u03c2\u0f0b\u3007")
_CATEGORIES = frozenset({"Ll", "Lo", "Lm", "Nd"})
_JAMO = range(0x1100, 0x1200)  # parts of Hangul syllables

# Thousands of allowed letters stand between two that are not, mostly capitals. Each would be a move
# in each of a thousand states: only the longer spans are kept, whole alphabets and syllabaries,
# and those of Latin-1.
SHORTEST_SPAN = 20

_LABEL = f"(?!-|..--)[^{DOTS}]*[^{DOTS}-]"
_NAMES = f"^{_LABEL}(?:[{DOTS}]{_LABEL}){{0,{MOST_LABELS - 1}}}$"


def _is_allowed(letter: str) -> bool:
    """Is it a letter or digit since Unicode 3.2, that normalising and folding leave as it is?"""
    if letter in _ALLOWED:
        return True
    categories = {unicodedata.ucd_3_2_0.category(letter), unicodedata.category(letter)}
    if not categories <= _CATEGORIES or letter in _NOT_ALLOWED or ord(letter) in _JAMO:
        return False
    folded = unicodedata.normalize("NFKC", letter).casefold()
    return unicodedata.normalize("NFKC", folded) == letter


@cache
def letters(*directions: str) -> Ranges:
    """Letters and digits beyond ASCII that are allowed, of some bidirectional classes.

    >>> letters("R")[0]  # Hebrew
    (1488, 1514)
    """
    codes = (chr(code) for code in range(0x80, 0xD800))
    found = [letter for letter in codes if unicodedata.bidirectional(letter) in directions]
    spans = of("".join(letter for letter in found if _is_allowed(letter)))
    return ranges(
        (low, high)
        for low, high in spans
        if high - low >= SHORTEST_SPAN
        or high < 0x100
        or chr(low) in _ALLOWED
        or chr(high) in _ALLOWED
    )


def _short_enough() -> Content:
    """Texts of the letters of one direction whose labels have at most 63 octets in Punycode."""
    kinds = [(SINGLE, 1), (letters("L"), WEIGHT)]

    def follow(state: tuple[int, int]) -> Iterator[tuple[int, int, tuple[int, int]]]:
        label, weight = state
        moves = [
            (*span, (label, weight + more))
            for row, more in kinds
            if weight + more <= MOST_WEIGHT
            for span in row
        ]
        if weight and label + 1 < MOST_LABELS:
            moves += [(*span, (label + 1, 0)) for span in of(DOTS)]
        yield from sorted(moves)

    return Content(*crawl((0, 0), follow, lambda state: state[1] > 0))


def idn_hostname() -> Content:
    """Names of letters and digits of any script, and the names of `hostname`.

    >>> idn_hostname().accepts("b\u00fccher.example"), idn_hostname().accepts("b\u00b7cher")
    (True, False)

    Never a name that IDNA 2008 rejects. Left out: letters that stand alone among others, combining
    marks (they would need composing), characters that need context, `xn--`, more than 8 characters
    beyond ASCII in a label, and right-to-left names but single words.
    """
    right_to_left = "".join(rf"\u{{{a:x}}}-\u{{{b:x}}}" for a, b in letters("R", "AL"))
    word = pattern_content(f"^[{right_to_left}]{{1,{MOST_WEIGHT // WEIGHT}}}$")
    return _short_enough() & pattern_content(_NAMES) | word | pattern_content(f"^{hostname()}$")
