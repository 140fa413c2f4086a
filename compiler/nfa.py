"""A grammar as nondeterministic byte automata, one for each frame.

A frame is what a call enters and leaves by itself: the root, the JSON string, every rule of the
grammar. All frames but the root begin with a byte of their own and end with a closing byte after
which nothing can follow, so a deterministic automaton knows when to enter and when to return.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field

from cmm.compiler.utf8 import utf8_ranges
from cmm.grammar.nodes import (
    Chars,
    Choice,
    Fields,
    Grammar,
    Literal,
    Node,
    Reference,
    Repeat,
    Sequence,
    Text,
    chars,
    choice,
    sequence,
)

FrameId = int
TEXT_FRAME: FrameId = 0  # in every automaton, so that all share the string's rows of tokens
ROOT_FRAME: FrameId = 1


@dataclass(eq=False)
class Nfa:
    """States with byte ranges, empty moves and calls; one start and one end for each frame."""

    empty: list[list[int]] = field(default_factory=list)
    moves: list[list[tuple[int, int, int]]] = field(default_factory=list)  # (low, high, target)
    calls: list[list[tuple[FrameId, int]]] = field(default_factory=list)  # (frame, return to)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    opening: list[int] = field(default_factory=list)  # the first byte of each frame, root: -1

    def state(self) -> int:
        """A new state."""
        self.empty.append([])
        self.moves.append([])
        self.calls.append([])
        return len(self.empty) - 1


def build_nfa(grammar: Grammar) -> Nfa:
    """The automata of the string, the root and all rules that the root reaches.

    >>> nfa = build_nfa(Grammar(Literal("ab")))
    >>> low, high, target = nfa.moves[nfa.starts[ROOT_FRAME]][0]
    >>> chr(low), nfa.moves[target] == [(98, 98, nfa.ends[ROOT_FRAME])]
    ('a', True)
    """
    builder = _Builder(grammar)
    builder.add_frame(string_body(), ord('"'))
    builder.add_frame(grammar.root, -1)
    for name in builder.names:  # grows while it is read: a rule may name further ones
        body = grammar.rules[name]
        builder.add_frame(body, _first_byte(body))
    return builder.nfa


def string_body() -> Node:
    """The JSON string (RFC 8259): raw characters and every escape, a surrogate only in a pair."""
    digit = chars("0-9A-Fa-f")
    raw = Chars(((0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10FFFF)))
    unit = choice([
        sequence(chars("0-9A-CEFa-cef"), digit, digit, digit),
        sequence(chars("Dd"), chars("0-7"), digit, digit),
        sequence(chars("Dd"), chars("89ABab"), digit, digit,
                 Literal("\\u"), chars("Dd"), chars("C-Fc-f"), digit, digit),
    ])  # fmt: skip
    escape = choice([chars('"\\/bfnrt'), sequence(Literal("u"), unit)])
    body = Repeat(choice([raw, sequence(Literal("\\"), escape)]))
    return sequence(Literal('"'), body, Literal('"'))


def _first_byte(node: Node) -> int:
    match node:
        case Literal(text) if text:
            return text.encode()[0]
        case Sequence(parts):
            return _first_byte(parts[0])
        case _:
            raise ValueError(f"a rule begins with a bracket: {node}")


class _Builder:
    """Thompson's construction from right to left: each node is given the state that follows it."""

    def __init__(self, grammar: Grammar) -> None:
        self.nfa = Nfa()
        self.names: list[str] = []
        self.known: dict[tuple[int, int], int] = {}  # (id of node, state after) -> entry

    def add_frame(self, body: Node, opening: int) -> None:
        end = self.nfa.state()
        self.nfa.ends.append(end)
        self.nfa.starts.append(self.entry(body, end))
        self.nfa.opening.append(opening)

    def entry(self, node: Node, after: int) -> int:
        """The state from which the node's texts lead to `after`."""
        key = id(node), after
        if key not in self.known:
            self.known[key] = self._entry(node, after)
        return self.known[key]

    def _entry(self, node: Node, after: int) -> int:
        match node:
            case Literal(text):
                return self.bytes_entry([(byte, byte) for byte in text.encode()], after)
            case Chars(ranges):
                paths = [path for low, high in ranges for path in utf8_ranges(low, high)]
                return self.fork([self.bytes_entry(path, after) for path in paths])
            case Sequence(parts):
                for part in reversed(parts):
                    after = self.entry(part, after)
                return after
            case Choice(options):
                return self.fork([self.entry(option, after) for option in options])
            case Repeat():
                return self.repeat_entry(node, after)
            case Fields():
                return self.fields_entry(node, after)
            case Text():
                return self.call(TEXT_FRAME, after)
            case Reference(name):
                if name not in self.names:
                    self.names.append(name)
                return self.call(ROOT_FRAME + 1 + self.names.index(name), after)

    def bytes_entry(self, path: Seq[tuple[int, int]], after: int) -> int:
        for low, high in reversed(path):
            state = self.nfa.state()
            self.nfa.moves[state].append((low, high, after))
            after = state
        return after

    def fork(self, entries: list[int]) -> int:
        state = self.nfa.state()
        self.nfa.empty[state].extend(entries)
        return state

    def call(self, frame: FrameId, after: int) -> int:
        state = self.nfa.state()
        self.nfa.calls[state].append((frame, after))
        return state

    def repeat_entry(self, node: Repeat, after: int) -> int:
        if node.most is None:
            loop = self.fork([after])
            self.nfa.empty[loop].append(self.entry(node.body, loop))
            after = loop
        else:
            for _ in range(node.most - node.least):
                after = self.fork([after, self.entry(node.body, after)])
        for _ in range(node.least):
            after = self.entry(node.body, after)
        return after

    def fields_entry(self, node: Fields, after: int) -> int:
        """Two rails: on one no field is written yet, on the other a comma is due first."""
        first = later = after
        for field_ in reversed(node.fields):
            taken = self.entry(field_.pair, later)
            comma = self.bytes_entry([(b, b) for b in node.separator.encode()], taken)
            first = taken if field_.required else self.fork([taken, first])
            later = comma if field_.required else self.fork([comma, later])
        return first
