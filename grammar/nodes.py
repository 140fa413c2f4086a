"""The grammar: a small tree of frozen nodes that says which texts are allowed.

A node describes characters; bytes come only when the compiler lowers it. `Text` and `Reference`
are the nodes that nest: the compiler keeps one automaton for each and enters it like a
subroutine, so that a string is stored once however often it occurs and recursion needs no bound.
Composite nodes compare by identity: shared parts make a tree small, and comparing would unfold it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType

from cmm.grammar.content import ANY, Content

LAST_CODE_POINT = 0x10FFFF


@dataclass(frozen=True)
class Literal:
    """Exactly this text."""

    text: str


@dataclass(frozen=True)
class Mark:
    """The control token of this text where a model has one, and then it alone; else the text."""

    text: str


@dataclass(frozen=True)
class Chars:
    """One character out of inclusive ranges of code points."""

    ranges: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        for low, high in self.ranges:
            if not 0 <= low <= high <= LAST_CODE_POINT:
                raise ValueError(f"no range of code points: {low:#x}-{high:#x}")


@dataclass(frozen=True, eq=False)
class Sequence:
    """All parts, one after the other; no parts is the empty text."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Choice:
    """One of the options; no options is what can never be written."""

    options: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Repeat:
    """The body `least` to `most` times (None: no bound)."""

    body: Node
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, eq=False)
class Joined:
    """A list: the body, each of whose units begins with the separator, without the first of these.

    Optional members of an object, or items, need no bookkeeping of commas that way.
    """

    body: Node
    separator: str = ", "


@dataclass(frozen=True, eq=False)
class Spelled:
    """The texts of a content as they are, such as the decimals of a number."""

    content: Content


@dataclass(frozen=True)
class Text:
    """A quoted JSON string: the texts of a content, each character raw or as any JSON escape.

    It has `least` to `most` characters. Lengths are counted beside the automaton, so they are only
    given for contents in which they leave no dead end. As a key, printable ASCII is written raw
    only, so that a key has one spelling.
    """

    content: Content = ANY
    key: bool = False
    least: int = 0
    most: int | None = None


@dataclass(frozen=True, eq=False)
class Counted:
    """An array of `least` to `most` items, counted beside the automaton and not unrolled.

    The items of a `unique` one are strings that all differ.
    """

    item: Node
    least: int = 0
    most: int | None = None
    unique: bool = False


@dataclass(frozen=True)
class Tick:
    """Exactly this text, whose first byte counts in the frame around it."""

    text: str


@dataclass(frozen=True, eq=False)
class Distinct:
    """An object of these members, no key of which may come twice.

    Each member begins with a comma, as in `Joined`. Where the colon behind a key is a `Tick`, the
    key must be none of `names` and none that came before: by the tick the automaton knows where
    such a key has ended. Members of those names have a plain colon.
    """

    members: Node
    names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Reference:
    """A rule of the grammar, by name; its texts must begin with a bracket and end with its pair."""

    name: str


Node = (
    Literal
    | Mark
    | Chars
    | Sequence
    | Choice
    | Repeat
    | Joined
    | Spelled
    | Text
    | Tick
    | Counted
    | Distinct
    | Reference
)


@dataclass(frozen=True, eq=False)
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
NEVER = Choice(())  # what can never be written


def digest(grammar: Grammar) -> str:
    """SHA-256 of a grammar: equal for grammars that are written alike.

    >>> digest(Grammar(Literal("a"))) == digest(Grammar(Literal("a"))) != digest(Grammar(Text()))
    True

    Each node is read once, however often it is shared.
    """
    known: dict[int, str] = {}

    def of(node: object) -> str:
        if not isinstance(node, Sequence | Choice | Repeat | Joined | Counted | Distinct):
            return repr(node)
        if id(node) not in known:
            values = [getattr(node, item.name) for item in fields(node)]
            parts = [sorted(v) if isinstance(v, frozenset) else v for v in values]
            texts = [
                of(p) for part in parts for p in (part if isinstance(part, tuple) else (part,))
            ]
            whole = f"{type(node).__name__}({','.join(texts)})"
            known[id(node)] = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()
        return known[id(node)]

    named = "".join(f";{name}={of(node)}" for name, node in grammar.rules.items())
    return hashlib.sha256((of(grammar.root) + named).encode("utf-8", "surrogatepass")).hexdigest()


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

    >>> sequence(Literal("a"), Literal("b"), Reference("rule"))
    Sequence(parts=(Literal(text='ab'), Reference(name='rule')))
    """
    joined: list[Node] = []
    for part in parts:
        if isinstance(part, Literal) and joined and isinstance(joined[-1], Literal):
            joined[-1] = Literal(joined[-1].text + part.text)
        elif part is not NOTHING and part != Literal(""):
            joined.append(part)
    if not joined:
        return NOTHING
    return joined[0] if len(joined) == 1 else Sequence(tuple(joined))


def choice(options: Iterable[Node]) -> Node:
    """One of the options, nested choices flattened.

    >>> choice([Literal("a"), choice([Literal("b"), Literal("c")])])
    Choice(options=(Literal(text='a'), Literal(text='b'), Literal(text='c')))
    """
    flat: list[Node] = []
    for option in options:
        flat += option.options if isinstance(option, Choice) else (option,)
    return flat[0] if len(flat) == 1 else Choice(tuple(flat))


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
    if char < "\x7f":
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
