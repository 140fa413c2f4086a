"""A grammar as nondeterministic byte automata: Thompson's construction, from right to left."""

from __future__ import annotations

from cmm.compiler.nfa import ROOT_FRAME, TEXT_FRAME, FrameId, Nfa
from cmm.compiler.strings import content_entry, text_entry
from cmm.grammar.content import ANY
from cmm.grammar.nodes import (
    Chars,
    Choice,
    Grammar,
    Joined,
    Literal,
    Node,
    Reference,
    Repeat,
    Sequence,
    Spelled,
    Text,
    chars,
    choice,
    sequence,
)


def build_nfa(grammar: Grammar) -> Nfa:
    """The automata of the string, the root and all rules that the root reaches.

    >>> nfa = build_nfa(Grammar(Literal("ab")))
    >>> low, high, target = nfa.moves[nfa.starts[ROOT_FRAME]][0]
    >>> chr(low), nfa.moves[target] == [(98, 98, nfa.ends[ROOT_FRAME])]
    ('a', True)
    """
    builder = _Builder(grammar)
    builder.add_frame(string_body(), ord('"'))
    [(_, _, builder.nfa.body)] = builder.nfa.moves[builder.nfa.starts[TEXT_FRAME]]
    builder.add_frame(grammar.root, -1)
    for callee in builder.callees:  # grows while it is read: a frame may call further ones
        body = callee if isinstance(callee, Text) else grammar.rules[callee]
        builder.add_frame(body, ord('"') if isinstance(callee, Text) else _first_byte(body))
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
        case Choice(options) if options:
            return _first_byte(options[0])
        case _:
            raise ValueError(f"a rule begins with a bracket: {node}")


class _Builder:
    """Thompson's construction from right to left: each node is given the state that follows it."""

    def __init__(self, grammar: Grammar) -> None:
        self.nfa = Nfa()
        self.callees: list[str | Text] = []  # rules and constrained strings, from frame 2 on
        self.numbers: dict[str | Text, FrameId] = {}
        self.known: dict[tuple[int, int], int] = {}  # (id of node, state after) -> entry

    def add_frame(self, body: Node, opening: int) -> None:
        end = self.nfa.state()
        self.nfa.ends.append(end)
        entry = text_entry(self.nfa, body, end) if isinstance(body, Text) else self.entry(body, end)
        self.nfa.starts.append(entry)
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
                return self.nfa.text(text, after)
            case Chars(ranges):
                return self.nfa.fork([self.nfa.character(low, high, after) for low, high in ranges])
            case Sequence(parts):
                for part in reversed(parts):
                    after = self.entry(part, after)
                return after
            case Choice(options):
                return self.nfa.fork([self.entry(option, after) for option in options])
            case Repeat():
                return self.repeat_entry(node, after)
            case Joined(body, separator):
                return self.without_first(separator.encode(), self.entry(body, after), after)
            case Spelled(content):
                return content_entry(self.nfa, content, after, self.nfa.character)
            case Text(content) if content == ANY:
                return self.nfa.call(TEXT_FRAME, after)
            case Text():
                return self.nfa.call(self.frame(node), after)
            case Reference(name):
                return self.nfa.call(self.frame(name), after)

    def frame(self, callee: str | Text) -> FrameId:
        """The number of a rule's or a constrained string's frame, known or from now on."""
        if callee not in self.numbers:
            self.numbers[callee] = ROOT_FRAME + 1 + len(self.callees)
            self.callees.append(callee)
        return self.numbers[callee]

    def repeat_entry(self, node: Repeat, after: int) -> int:
        if node.most is None:
            loop = self.nfa.fork([after])
            self.nfa.empty[loop].append(self.entry(node.body, loop))
            after = loop
        else:
            for _ in range(node.most - node.least):
                after = self.nfa.fork([after, self.entry(node.body, after)])
        for _ in range(node.least):
            after = self.entry(node.body, after)
        return after

    def without_first(self, separator: bytes, entry: int, after: int) -> int:
        """The state that follows the separator at the entry, or `after` if nothing need follow."""
        states, empty = self.reach([entry], after)
        done = False
        for byte in separator:
            moved = [target for state in states for low, high, target in self.nfa.moves[state]
                     if low <= byte <= high]  # fmt: skip
            states, done = self.reach(moved, after)
        return self.nfa.fork([*states, *([after] if empty or done else [])])

    def reach(self, states: list[int], after: int) -> tuple[list[int], bool]:
        """The states that empty moves lead to, up to `after`, and whether that is among them."""
        seen = dict.fromkeys(states)
        pending = list(seen)
        while pending:
            state = pending.pop()
            if state != after:
                new = [t for t in self.nfa.empty[state] if t not in seen]
                seen.update(dict.fromkeys(new))
                pending += new
        return [state for state in seen if state != after], after in seen
