"""A grammar as nondeterministic byte automata: Thompson's construction, from right to left."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, zip_longest

from cmm.compiler.nfa import FAR, ROOT_FRAME, TEXT_FRAME, Bounds, FrameId, Nfa
from cmm.compiler.strings import content_entry, text_entry
from cmm.compiler.utf8 import control_token
from cmm.grammar.content import ANY, lengths, texts
from cmm.grammar.errors import Unsupported
from cmm.grammar.json_values import COMMA, items_of, object_of
from cmm.grammar.nodes import (
    Chars,
    Choice,
    Counted,
    Distinct,
    Grammar,
    Joined,
    Literal,
    Mark,
    Node,
    Reference,
    Repeat,
    Sequence,
    Spelled,
    Text,
    Tick,
    choice,
    optional,
    sequence,
)


def build_nfa(grammar: Grammar, controls: Container[str] = ()) -> Nfa:
    """The automata of the string, the root and all rules that the root reaches.

    `controls` are the texts of control tokens: marks among them are those tokens.

    >>> nfa = build_nfa(Grammar(Literal("ab")))
    >>> low, high, target, gain = nfa.moves[nfa.starts[ROOT_FRAME]][0]
    >>> chr(low), nfa.moves[target] == [(98, 98, nfa.ends[ROOT_FRAME], 0)]
    ('a', True)
    """
    builder = _Builder(grammar, controls)
    nfa = builder.nfa
    builder.add_frame(lambda end: text_entry(nfa, Text(), end, share=False), ord('"'))
    [(_, _, nfa.body, _)] = nfa.moves[nfa.starts[TEXT_FRAME]]
    nfa.inside[nfa.body] = nfa.ends[TEXT_FRAME]
    builder.add_frame(lambda end: builder.entry(grammar.root, end), -1)
    builder.add_callees()
    return nfa


@dataclass(frozen=True)
class _Array:
    """The frame of counted arrays with one kind of item; commas are what is counted."""

    item: Node
    may_be_empty: bool
    unique: bool


@dataclass(frozen=True)
class _Object:
    """The frame of objects whose keys differ."""

    members: Node
    names: frozenset[str]


# A rule's name, a string without its lengths, a counted array, an object of distinct keys.
Callee = str | Text | _Array | _Object


class _Builder:
    """Thompson's construction from right to left: each node is given the state that follows it."""

    def __init__(self, grammar: Grammar, controls: Container[str]) -> None:
        self.rules = grammar.rules
        self.controls = controls
        self.nfa = Nfa(unrolled=self.unrolled)
        self.callees: list[Callee] = []  # from frame 2 on
        self.numbers: dict[Callee, FrameId] = {}
        self.known: dict[tuple[int, int], int] = {}  # (id of node, state after) -> entry
        self.unrolled_starts: dict[tuple[FrameId, Bounds], int] = {}

    def add_frame(self, entry: Callable[[int], int], opening: int) -> None:
        end = self.nfa.end()
        self.nfa.ends.append(end)
        self.nfa.starts.append(entry(end))
        self.nfa.opening.append(opening)

    def add_callees(self) -> None:
        """The frames of all callees that have none yet."""
        known = len(self.nfa.starts) - ROOT_FRAME - 1
        for callee in islice(self.callees, known, None):  # grows: a frame may call further ones
            if isinstance(callee, _Object):
                self.nfa.distinct[len(self.nfa.starts)] = callee.names
            if isinstance(callee, _Array) and callee.unique:
                self.nfa.distinct[len(self.nfa.starts)] = frozenset()
                self.nfa.unique.add(len(self.nfa.starts))
            self.add_frame(partial(self.callee_entry, callee), self.opening(callee))

    def callee_entry(self, callee: Callee, end: int) -> int:
        """The first state of a frame."""
        match callee:
            case str():
                return self.entry(self.rules[callee], end)
            case Text():
                return text_entry(self.nfa, callee, end)
            case _Array():
                return self.array_entry(callee, end)
            case _Object(members, _):
                return self.entry(object_of(members), end)

    def opening(self, callee: Callee) -> int:
        """The byte that a frame begins with."""
        if isinstance(callee, str):
            return self.first_byte(self.rules[callee])
        first = {Text: '"', _Array: "[", _Object: "{"}
        return ord(first[type(callee)])

    def first_byte(self, node: Node) -> int:
        match node:
            case Literal(text) if text:
                return text.encode()[0]
            case Mark(text) if text:
                return self.spelled_mark(text)[0]
            case Sequence(parts):
                return self.first_byte(parts[0])
            case Choice(options) if options:
                return self.first_byte(options[0])
            case Counted():
                return ord("[")
            case Distinct():
                return ord("{")
            case _:
                raise ValueError(f"a rule begins with a bracket: {node}")

    def spelled_mark(self, text: str) -> bytes:
        return control_token(text) if text in self.controls else text.encode()

    def array_entry(self, array: _Array, end: int) -> int:
        """The items of a counted array, each comma counting."""
        close = self.nfa.text("]", end)
        loop = self.nfa.fork([close])
        item = self.entry(array.item, loop)
        comma = self.nfa.text(",", self.nfa.text(" ", item), gain=1)
        self.nfa.empty[loop].append(comma)
        return self.nfa.text("[", self.nfa.fork([item, *([close] if array.may_be_empty else [])]))

    def unrolled(self, frame: FrameId, bounds: Bounds) -> int:
        """The first state of a frame written out with its bounds, ending at an end of its own."""
        key = frame, bounds
        if key not in self.unrolled_starts:
            room, due = bounds
            callee = Text() if frame == TEXT_FRAME else self.callees[frame - ROOT_FRAME - 1]
            end = self.nfa.end()
            if isinstance(callee, _Object):
                start = self.entry(object_of(_with_other_keys(callee.members, callee.names)), end)
            elif isinstance(callee, Text):
                content = callee.content & lengths(due, None if room == FAR else room)
                start = text_entry(self.nfa, Text(content, callee.key), end)
            else:
                assert isinstance(callee, _Array)
                most = None if room == FAR else room + 1
                start = self.entry(_written_out(callee, due + 1, most), end)
            self.add_callees()
            self.unrolled_starts[key] = start
        return self.unrolled_starts[key]

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
            case Mark(text):
                return self.nfa.path([(byte, byte) for byte in self.spelled_mark(text)], after)
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
            case Text(content, key, least, most):
                bounds = _bounds(least, most)
                frame = TEXT_FRAME if content == ANY else self.frame(Text(content, key))
                return self.nfa.call(frame, after, bounds)
            case Counted(item, least, most, unique):
                bounds = _bounds(max(least - 1, 0), None if most is None else most - 1)
                return self.nfa.call(self.frame(_Array(item, least == 0, unique)), after, bounds)
            case Tick(text):
                first, *rest = [(byte, byte) for byte in text.encode()]
                return self.nfa.path([first], self.nfa.path(rest, after), gain=1)
            case Distinct(members, names):
                return self.nfa.call(self.frame(_Object(members, names)), after)
            case Reference(name) if isinstance(self.rules[name], Counted | Distinct):
                return self.entry(self.rules[name], after)  # which is a frame already
            case Reference(name):
                return self.nfa.call(self.frame(name), after)

    def frame(self, callee: Callee) -> FrameId:
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
            end = after  # the way to it is the same from each: an empty move for it is enough
            for _ in range(node.most - node.least):
                after = self.nfa.fork([end, self.entry(node.body, after)])
        for _ in range(node.least):
            after = self.entry(node.body, after)
        return after

    def without_first(self, separator: bytes, entry: int, after: int) -> int:
        """The state that follows the separator at the entry, or `after` if nothing need follow."""
        states, empty = self.reach([entry], after)
        done = False
        for byte in separator:
            moved = [target for state in states for low, high, target, _ in self.nfa.moves[state]
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


def _bounds(least: int, most: int | None) -> Bounds:
    """The bounds of a count; what no text of this world can reach is no bound."""
    if least >= FAR:
        raise Unsupported(f"at least {least} characters or items")
    return FAR if most is None else min(most, FAR), least


def _with_other_keys(node: Node, names: frozenset[str]) -> Node:
    """The members of an object, the names taken out of its other keys by their content."""
    match node:
        case Sequence(parts):
            new = [
                Text(part.content - texts(names), key=True)
                if isinstance(part, Text) and isinstance(after, Tick)
                else _with_other_keys(part, names)
                for part, after in zip_longest(parts, parts[1:])
            ]
            return sequence(*new)
        case Choice(options):
            return choice([_with_other_keys(option, names) for option in options])
        case Repeat(body):
            return replace(node, body=_with_other_keys(body, names))
        case _:
            return node


def _written_out(array: _Array, least: int, most: int | None) -> Node:
    """A counted array as an ordinary node, its bounds spelled out in repeats."""
    unit = sequence(Literal(COMMA), array.item)
    some = Repeat(unit, least, most)
    # the bounds are those of arrays with items; the empty one stands beside them
    return items_of(optional(some) if array.may_be_empty else some)
