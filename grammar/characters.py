"""Sets of characters as sorted ranges of code points: classes, categories, letter case."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache

Range = tuple[int, int]
Ranges = tuple[Range, ...]  # sorted, disjoint, not adjacent, without surrogates

CHARACTERS: Ranges = ((0, 0xD7FF), (0xE000, 0x10FFFF))


def ranges(pairs: Iterable[Range]) -> Ranges:
    """Any ranges, in order and joined; surrogates are left out.

    >>> ranges([(98, 99), (97, 97), (0xD700, 0xDFFF)])
    ((97, 99), (55040, 55295))
    """
    row: list[Range] = []
    for low, high in sorted(pairs):
        if row and low <= row[-1][1] + 1:
            row[-1] = row[-1][0], max(row[-1][1], high)
        else:
            row.append((low, high))
    cut = ((max(low, a), min(high, b)) for low, high in row for a, b in CHARACTERS)
    return tuple((low, high) for low, high in cut if low <= high)


def of(characters: str) -> Ranges:
    """The set of these characters.

    >>> of("bac")
    ((97, 99),)
    """
    return ranges((ord(character), ord(character)) for character in characters)


def without(taken: Ranges) -> Ranges:
    """All other characters.

    >>> without(((0, 96), (98, 0x10FFFF)))
    ((97, 97),)
    """
    ends = [-1, *(end for low, high in taken for end in (low - 1, high)), 0x10FFFF]
    starts = (end + 1 for end in ends[::2])
    return ranges((a, b) for a, b in zip(starts, ends[1::2], strict=True) if a <= b)


# ECMA-262: \d and \w are ASCII, \s is WhiteSpace and LineTerminator, a dot ends at a line's end.
DIGITS = ranges([(0x30, 0x39)])
WORD = ranges([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
SPACES = of("\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff")
SPACES = ranges([*SPACES, (0x2000, 0x200A)])
DOT = without(of("\n\r\u2028\u2029"))


def partition(sets: Mapping[int, Ranges]) -> list[tuple[Ranges, frozenset[int]]]:
    """All characters, grouped by the sets that they are in.

    >>> partition({1: ((97, 99),), 2: ((98, 0x10FFFF),)})[1:]
    [(((97, 97),), frozenset({1})), (((98, 99),), frozenset({1, 2})), \
(((100, 55295), (57344, 1114111)), frozenset({2}))]
    """
    changes: dict[int, list[int]] = defaultdict(list)
    for name, row in sets.items():
        for low, high in row:
            changes[low].append(name)
            changes[high + 1].append(name)
    groups: dict[frozenset[int], list[Range]] = defaultdict(list)
    inside: frozenset[int] = frozenset()
    start = 0
    for cut in [*sorted(changes), 0x110000]:
        if start < cut:
            groups[inside].append((start, cut - 1))
        for name in changes.get(cut, ()):
            inside ^= {name}
        start = cut
    pairs = ((ranges(row), members) for members, row in groups.items())
    return [pair for pair in pairs if pair[0]]


# The long names of Unicode's general categories (PropertyValueAliases.txt).
_LONG_NAMES = {
    "Any": "", "Letter": "L", "Cased_Letter": "LC", "Uppercase_Letter": "Lu",
    "Lowercase_Letter": "Ll", "Titlecase_Letter": "Lt", "Modifier_Letter": "Lm",
    "Other_Letter": "Lo", "Mark": "M", "Combining_Mark": "M", "Nonspacing_Mark": "Mn",
    "Spacing_Mark": "Mc", "Enclosing_Mark": "Me", "Number": "N", "Decimal_Number": "Nd",
    "digit": "Nd", "Letter_Number": "Nl", "Other_Number": "No", "Punctuation": "P", "punct": "P",
    "Connector_Punctuation": "Pc", "Dash_Punctuation": "Pd", "Open_Punctuation": "Ps",
    "Close_Punctuation": "Pe", "Initial_Punctuation": "Pi", "Final_Punctuation": "Pf",
    "Other_Punctuation": "Po", "Symbol": "S", "Math_Symbol": "Sm", "Currency_Symbol": "Sc",
    "Modifier_Symbol": "Sk", "Other_Symbol": "So", "Separator": "Z", "Space_Separator": "Zs",
    "Line_Separator": "Zl", "Paragraph_Separator": "Zp", "Other": "C", "Control": "Cc",
    "cntrl": "Cc", "Format": "Cf", "Private_Use": "Co", "Unassigned": "Cn", "Surrogate": "Cs",
}  # fmt: skip


@cache
def _categories() -> dict[str, list[Range]]:
    found: dict[str, list[Range]] = defaultdict(list)
    category, start = "Cc", 0
    for code in range(1, 0x110001):
        here = unicodedata.category(chr(code)) if code < 0x110000 else ""
        if here != category:
            found[category].append((start, code - 1))
            category, start = here, code
    return found


@cache
def unicode_property(text: str) -> Ranges | None:
    r"""The characters of `\p{text}` for general categories and ASCII; None if not known.

    >>> unicode_property("ASCII"), unicode_property("Zl"), unicode_property("Script=Greek")
    (((0, 127),), ((8232, 8232),), None)
    """
    if text == "ASCII":
        return ((0, 0x7F),)
    for prefix in ("General_Category=", "gc="):
        text = text.removeprefix(prefix)
    name = _LONG_NAMES.get(text, text)
    if name == "LC":
        parts: tuple[str, ...] = ("Lu", "Ll", "Lt")
    elif text in _LONG_NAMES or text in _LONG_NAMES.values():
        parts = tuple(key for key in _categories() if key.startswith(name))
    else:
        return None
    return ranges(pair for part in parts for pair in _categories()[part])


@cache
def _case_groups() -> tuple[frozenset[int], ...]:
    by_letter: dict[str, set[int]] = defaultdict(set)
    for code in range(0x110000):
        letter = chr(code)
        upper = letter.upper()
        if len(upper) == 1 and upper != letter:
            by_letter[upper] |= {code, ord(upper)}
    return tuple(frozenset(group) for group in by_letter.values())


def either_case(characters: Ranges) -> Ranges:
    """The characters in upper and lower case too, where that is one character.

    >>> either_case(of("a-"))
    ((45, 45), (65, 65), (97, 97))
    """
    inside = {code for low, high in characters for code in range(low, high + 1)}
    others = {code for group in _case_groups() if inside & group for code in group}
    return ranges([*characters, *((code, code) for code in others)])
