"""The automaton as a picture: literal text folded to one arrow, each frame by itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cmm.compiler.automaton import CALL, DEAD, POP, ByteAutomaton
from cmm.compiler.nfa import ROOT_FRAME, TEXT_FRAME, UNBOUNDED
from cmm.compiler.utf8 import CONTROL

END = -1  # where a frame is left
PART = "\0"  # begins the name of a part, until all is folded


@dataclass(frozen=True)
class Arrow:
    """A way from one state to another, and what is written on it."""

    source: int
    target: int
    label: str


@dataclass(frozen=True)
class FramePicture:
    """One frame: its name, its first state, its arrows, the states in which it may end."""

    name: str
    start: int
    arrows: tuple[Arrow, ...]
    final: frozenset[int]


def picture(automaton: ByteAutomaton) -> list[FramePicture]:
    """The frames of an automaton but the string's, the root first.

    >>> from cmm.compiler.automaton import build_automaton
    >>> from cmm.grammar.nodes import Grammar, Literal, Text, sequence
    >>> [root] = picture(build_automaton(Grammar(sequence(Literal("say "), Text()))))
    >>> [(arrow.label, arrow.target in root.final) for arrow in root.arrows]
    [('say ', False), ('<string>', True)]
    """
    starts = {int(automaton.frame[automaton.start]): automaton.start}
    for entered, *_ in automaton.calls.tolist():
        starts.setdefault(int(automaton.frame[entered]), entered)  # behind its opening byte
    final = frozenset(np.flatnonzero(automaton.final).tolist())
    frames = sorted(frame for frame in starts if frame != TEXT_FRAME)
    return [_frame(automaton, frame, starts[frame], final) for frame in frames]


def _frame(automaton: ByteAutomaton, frame: int, start: int, final: frozenset[int]) -> FramePicture:
    arrows: dict[Arrow, None] = {}  # strings of several contents have one label
    met, pending = {start}, [start]  # not the state before the opening byte
    while pending:
        found = list(_arrows(automaton, pending.pop()))
        arrows |= dict.fromkeys(found)
        new = {arrow.target for arrow in found} - met - {END}
        met |= new
        pending += new
    return FramePicture(name_of(frame), start, _folded(list(arrows), start, final), final | {END})


def name_of(frame: int) -> str:
    """What a frame is called."""
    return {TEXT_FRAME: "string", ROOT_FRAME: "start"}.get(frame, f"part {frame - ROOT_FRAME}")


def _arrows(automaton: ByteAutomaton, state: int) -> Iterator[Arrow]:
    """The arrows of one state: bytes with the same target are one."""
    by_target: dict[int, list[int]] = defaultdict(list)
    moves = automaton.moves[state][automaton.classes]
    for byte, move in enumerate(moves.tolist()):
        if move <= CALL:
            entered, back, *bounds = automaton.calls[CALL - move].tolist()
            frame = int(automaton.frame[entered])
            some = "" if tuple(bounds) == UNBOUNDED else f" of {_bounds(*bounds)}"
            yield Arrow(state, back, f"<{name_of(frame)}{some}>")
        elif move >= 0 and automaton.frame[move] != automaton.frame[state]:
            by_target[END].append(byte)  # goes on as a string, and ends where that does
        elif move != DEAD:
            by_target[END if move == POP else move].append(byte)
    for target, found in by_target.items():
        yield Arrow(state, target, label_of(found))


def _bounds(room: int, due: int) -> str:
    return f"{due or ''}..{'' if room == UNBOUNDED[0] else room}"


def label_of(found: Sequence[int]) -> str:
    """Some bytes in a few characters.

    >>> label_of([97]), label_of([48, 49, 50]), label_of([10, 65])
    ('a', '[0-2]', '[\\\\x0aA]')
    """
    if len(found) == 1:
        return _shown(found[0])
    if len(found) > 128:
        missing = sorted(set(range(32, 127)).difference(found))
        return f"any but {' '.join(map(_shown, missing))}" if missing else "any"
    parts: list[list[int]] = []
    for byte in found:
        if parts and parts[-1][1] == byte - 1:
            parts[-1][1] = byte
        else:
            parts.append([byte, byte])
    shown = (_shown(a) if a == b else f"{_shown(a)}-{_shown(b)}" for a, b in parts)
    return f"[{''.join(shown)}]"


def _shown(byte: int) -> str:
    if byte == CONTROL[0]:
        return PART
    return chr(byte) if 32 <= byte < 127 else f"\\x{byte:02x}"


def _folded(arrows: list[Arrow], start: int, final: frozenset[int]) -> tuple[Arrow, ...]:
    """Arrows without the states that only pass a text on."""
    out: dict[int, list[Arrow]] = defaultdict(list)
    into: dict[int, int] = defaultdict(int)
    for arrow in arrows:
        out[arrow.source].append(arrow)
        into[arrow.target] += 1
    passing = {
        state
        for state, (only, *more) in out.items()
        if not more and into[state] == 1 and state != start and state not in final
        and len(only.label) == 1 and only.label != PART and only.target != state
    }  # fmt: skip
    found = []
    for arrow in arrows:
        if arrow.source in passing:
            continue
        label, target = arrow.label, arrow.target
        while target in passing:
            [following] = out[target]
            label, target = label + following.label, following.target
        found.append(Arrow(arrow.source, target, label.replace(PART, "<")))
    return tuple(found)


def as_text(frames: Sequence[FramePicture]) -> str:
    """The picture for a terminal: an arrow a line."""
    lines = []
    for frame in frames:
        numbers = _numbers(frame)
        lines.append(f"{frame.name}:")
        for arrow in sorted(frame.arrows, key=lambda a: (numbers[a.source], numbers[a.target])):
            ends = "  end" if arrow.target in frame.final else ""
            way = f"{numbers[arrow.source]:>4} -> {numbers[arrow.target]:<4}"
            lines.append(f"  {way} {arrow.label}{ends}")
    return "\n".join(lines)


def _numbers(frame: FramePicture) -> dict[int, int]:
    return {state: number for number, state in enumerate(layers_of(frame))}


def layers_of(frame: FramePicture) -> dict[int, int]:
    """How many arrows lead to each state, by the longest way that comes to no state twice."""
    order, forward = _forward(frame)
    layers = {frame.start: 0}
    for state in reversed(order):
        for target in forward[state]:
            layers[target] = max(layers.get(target, 0), layers[state] + 1)
    return layers


def _forward(frame: FramePicture) -> tuple[list[int], dict[int, list[int]]]:
    """The states, last ones first, and where each leads to without those that lead back."""
    out: dict[int, list[int]] = defaultdict(list)
    for arrow in frame.arrows:
        out[arrow.source].append(arrow.target)
    forward: dict[int, list[int]] = defaultdict(list)
    done: dict[int, None] = {}
    entered, pending = {frame.start}, [(frame.start, iter(out[frame.start]))]
    while pending:
        state, targets = pending[-1]
        target = next(targets, None)
        if target is None:
            done[state] = None
            pending.pop()
        elif target in done or target not in entered:
            forward[state].append(target)
            if target not in entered:
                entered.add(target)
                pending.append((target, iter(out[target])))
    return list(done), forward
