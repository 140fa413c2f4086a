"""Ranges of code points as sequences of byte ranges: the one place that knows UTF-8.

And what no UTF-8 text is: a control token is a byte that texts do not have, then its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

ByteRange = tuple[int, int]

# The last code point of each encoded length (RFC 3629), and the surrogates, which have no encoding.
LAST_OF_LENGTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)
SURROGATES = (0xD800, 0xDFFF)
CONTROL = b"\xff"


def control_token(text: str) -> bytes:
    """The bytes of a control token, which no text has.

    >>> control_token("<escape>")
    b'\\xff<escape>'
    """
    return CONTROL + text.encode("utf-8", "surrogatepass")


def written_as(tokens: Iterable[bytes]) -> bytes:
    """What tokens write, control tokens by their names.

    >>> written_as([b"a", control_token("<escape>"), b"b"])
    b'a<escape>b'
    """
    return b"".join(tokens).replace(CONTROL, b"")


def utf8_ranges(low: int, high: int) -> Iterator[tuple[ByteRange, ...]]:
    """The byte sequences of the code points low to high, as products of byte ranges.

    >>> list(utf8_ranges(0x61, 0x7FF))
    [((97, 127),), ((194, 223), (128, 191))]

    Surrogates are left out. The method is that of Ken Thompson's and Rust's utf8-ranges: split
    where the encoded length changes, then where only a part of a trailing byte's range is meant.
    """
    first, last = SURROGATES
    if low <= last and high >= first:
        if low < first:
            yield from utf8_ranges(low, first - 1)
        if high > last:
            yield from utf8_ranges(last + 1, high)
        return
    for bound in LAST_OF_LENGTH:
        if low <= bound < high:
            yield from utf8_ranges(low, bound)
            yield from utf8_ranges(bound + 1, high)
            return
    yield from _of_one_length(low, high)


def _of_one_length(low: int, high: int) -> Iterator[tuple[ByteRange, ...]]:
    for trailing in (1, 2, 3):
        block = (1 << 6 * trailing) - 1  # what the trailing bytes count through
        if high <= 0x7F or low & ~block == high & ~block:
            break
        if low & block:
            yield from utf8_ranges(low, low | block)
            yield from utf8_ranges((low | block) + 1, high)
            return
        if high & block != block:
            yield from utf8_ranges(low, (high & ~block) - 1)
            yield from utf8_ranges(high & ~block, high)
            return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))
