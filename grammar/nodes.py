"""The grammar: a small tree of frozen nodes that says which texts are allowed.

A node describes characters; bytes come only when the compiler lowers it. `Text` and `Reference`
are the nodes that nest: the compiler keeps one automaton for each and enters it like a
subroutine, so that a string is stored once however often it occurs and recursion needs no bound.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Literal:
    """Exactly this text."""

    text: str


@dataclass(frozen=True)
class Chars:
    """One character out of inclusive ranges of code points."""

    ranges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        for low, high in self.ranges:
            if not 0 <= low <= high <= LAST_CODE_POINT:
                raise ValueError(f"no range of code points: {low:#x}-{high:#x}")


@dataclass(frozen=True)
class Sequence:
    """All parts, one after the other; no parts is the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """One of the options; no options is what can never be written."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """The body `least` to `most` times (None: no bound)."""

    body: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True)
class Field:
    """One member of an object, key and value together, that may have to be there."""

    pair: Node
    required: bool = True


@dataclass(frozen=True)
class Fields:
    """Fields in their order, joined by a separator; those not required may be left out.

    A node of its own because a tree of sequences and choices for it would grow with the square
    of the fields.
    """

    fields: tuple[Field, ...]
    separator: str = ", "


@dataclass(frozen=True)
class Text:
    """A quoted JSON string of any characters, each raw or as any JSON escape."""


@dataclass(frozen=True)
class Reference:
    """A rule of the grammar, by name; its texts must begin with a bracket and end with its pair."""

    name: str


Node = Literal | Chars | Sequence | Choice | Repeat | Fields | Text | Reference


@dataclass(frozen=True)
class Grammar:
    """A root node and the rules that references in it name.

    >>> print(Grammar(sequence(Literal("n="), DIGITS)))
    root = "n=" [0-9]+
    """

    root: Node
    rules: Mapping[str, Node] = field(default_factory=lambda: MappingProxyType({}))

    def __str__(self) -> str:
        from cmm.grammar.show import show_grammar

        return show_grammar(self)


NOTHING = Sequence(())


def chars(text: str) -> Chars:
    """A character class from single characters and `a-z` ranges.

    >>> chars("0-9_")
    Chars(ranges=((48, 57), (95, 95)))
    """
    ranges, rest = [], text
    while rest:
        if len(rest) >= 3 and rest[1] == "-":
            ranges.append((ord(rest[0]), ord(rest[2])))
            rest = rest[3:]
        else:
            ranges.append((ord(rest[0]), ord(rest[0])))
            rest = rest[1:]
    return Chars(tuple(sorted(ranges)))


def sequence(*parts: Node) -> Node:
    """The parts in order, adjacent literals joined and empty ones dropped.

    >>> sequence(Literal("a"), Literal("b"), Text())
    Sequence(parts=(Literal(text='ab'), Text()))
    """
    joined: list[Node] = []
    for part in parts:
        if isinstance(part, Literal) and joined and isinstance(joined[-1], Literal):
            joined[-1] = Literal(joined[-1].text + part.text)
        elif part != NOTHING and part != Literal(""):
            joined.append(part)
    return joined[0] if len(joined) == 1 else Sequence(tuple(joined))


def choice(options: Iterable[Node]) -> Node:
    """One of the options, nested choices flattened and repeats dropped.

    >>> choice([Literal("a"), choice([Literal("b"), Literal("a")])])
    Choice(options=(Literal(text='a'), Literal(text='b')))
    """
    flat: dict[Node, None] = {}
    for option in options:
        flat.update(dict.fromkeys(option.options if isinstance(option, Choice) else (option,)))
    return next(iter(flat)) if len(flat) == 1 else Choice(tuple(flat))


def optional(body: Node) -> Node:
    """The body or nothing."""
    return Repeat(body, 0, 1)


DIGITS = Repeat(chars("0-9"), 1)


def quoted(text: str) -> Node:
    r"""A text as a JSON string: one spelling, but for non-ASCII characters, raw or escaped.

    >>> quoted('a"b')
    Literal(text='"a\\"b"')
    """
    return sequence(Literal('"'), *map(_spelled, text), Literal('"'))


def _spelled(char: str) -> Node:
    raw = Literal(json.dumps(char, ensure_ascii=False)[1:-1])
    if char.isascii():
        return raw
    digits = json.dumps(char)[1:-1].replace("\\u", "")
    pairs = [digits[i : i + 4] for i in range(0, len(digits), 4)]
    escaped = sequence(*(_either_case(f"\\u{pair}") for pair in pairs))
    if len(pairs) == 1 and "d800" <= digits <= "dfff":
        return escaped  # a lone surrogate has no UTF-8 form
    return choice([raw, escaped])


def _either_case(text: str) -> Node:
    head, digits = text[:2], text[2:]
    return sequence(
        Literal(head), *(chars(d + d.upper()) if d.isalpha() else Literal(d) for d in digits)
    )
