"""The automaton as a picture: literal text folded to one arrow, each frame a box to open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from cmm.compiler.automaton import CALL, DEAD, POP, ByteAutomaton
from cmm.compiler.nfa import ROOT_FRAME, TEXT_FRAME, UNBOUNDED

LONGEST = 34  # characters of a label in the picture; all of it is shown where the mouse stays
WIDTH, HEIGHT = 290, 44  # of a step to the right, and of one down
END = -1  # where a frame is left


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
    arrows = [
        arrow
        for state in np.flatnonzero(automaton.frame == frame).tolist()
        for arrow in _arrows(automaton, state)
    ]
    return FramePicture(name_of(frame), start, _folded(arrows, start, final), final | {END})


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
        and len(only.label) == 1 and only.target != state
    }  # fmt: skip
    found = []
    for arrow in arrows:
        if arrow.source in passing:
            continue
        label, target = arrow.label, arrow.target
        while target in passing:
            [following] = out[target]
            label, target = label + following.label, following.target
        found.append(Arrow(arrow.source, target, label))
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


def _layers(frame: FramePicture) -> dict[int, int]:
    """How many arrows lead to each state, by the shortest way."""
    out: dict[int, list[int]] = defaultdict(list)
    for arrow in frame.arrows:
        out[arrow.source].append(arrow.target)
    layers, pending = {frame.start: 0}, [frame.start]
    for state in pending:
        for target in out[state]:
            if target not in layers:
                layers[target] = layers[state] + 1
                pending.append(target)
    return layers


def _numbers(frame: FramePicture) -> dict[int, int]:
    return {state: number for number, state in enumerate(_layers(frame))}


def as_svg(frame: FramePicture) -> str:
    """One frame as a drawing, from left to right."""
    layers = _layers(frame)
    rows: dict[int, int] = defaultdict(int)
    places = {}
    for state, layer in layers.items():
        places[state] = (40 + layer * WIDTH, 40 + rows[layer] * HEIGHT)
        rows[layer] += 1
    width = 80 + max(layers.values()) * WIDTH
    height = 60 + max(rows.values()) * HEIGHT
    drawn = [_drawn_arrow(arrow, places) for arrow in frame.arrows if arrow.source in places]
    drawn += [_drawn_state(state, place, frame) for state, place in places.items()]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="11">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>'
        + "".join(drawn)
        + "</svg>"
    )


def _drawn_arrow(arrow: Arrow, places: dict[int, tuple[int, int]]) -> str:
    (x, y), (u, v) = places[arrow.source], places[arrow.target]
    back = u <= x
    bend = 26 if back else 0
    path = f"M{x + 9} {y}C{x + 70} {y - bend} {u - 70} {v - bend} {u - 9} {v}"
    if u == x and v == y:
        path = f"M{x - 5} {y - 8}C{x - 22} {y - 34} {x + 22} {y - 34} {x + 5} {y - 8}"
    label = arrow.label if len(arrow.label) <= LONGEST else arrow.label[: LONGEST - 1] + "…"
    colour = "#1565c0" if arrow.label.startswith("<") else "#222"
    text_x, text_y = (x + u) // 2, (y + v) // 2 - 4 - bend
    return (
        f'<g><title>{escape(arrow.label)}</title><path d="{path}" fill="none" stroke="#888" '
        f'marker-end="url(#tip)"/><text x="{text_x}" y="{text_y}" text-anchor="middle" '
        f'fill="{colour}">{escape(label)}</text></g>'
    )


def _drawn_state(state: int, place: tuple[int, int], frame: FramePicture) -> str:
    x, y = place
    fill = "#2e7d32" if state in frame.final else "#fff"
    start = '<path d="M-30 0H-9" stroke="#888" marker-end="url(#tip)"/>' * (state == frame.start)
    circle = f'<circle r="8" fill="{fill}" stroke="#444"/>'
    return f'<g transform="translate({x} {y})">{start}{circle}</g>'


Outline = Sequence[tuple[str, Sequence[tuple[str, str]]]]  # names, and of each: names, values


def as_html(frames: Sequence[FramePicture], title: str, outline: Outline = ()) -> str:
    """A page with nothing from elsewhere: what is named, and each frame, is a box that opens."""
    named = "".join(
        f"<details><summary>{escape(name)}</summary><ul>{_listed(inner)}</ul></details>"
        for name, inner in outline
    )
    boxes = "".join(
        f"<details{' open' if i == 0 else ''}><summary>{escape(frame.name)}: "
        f"{len(_layers(frame))} states, {len(frame.arrows)} arrows</summary>"
        f"<div>{as_svg(frame)}</div></details>"
        for i, frame in enumerate(frames)
    )
    return (
        f'<!doctype html><meta charset="utf-8"><title>{escape(title)}</title>'
        "<style>body{font:14px sans-serif;margin:1em}div{overflow:auto}summary{cursor:pointer;"
        "padding:.4em 0;font-weight:bold}details{border-bottom:1px solid #ddd}</style>"
        f"<h1>{escape(title)}</h1><p>An arrow carries the text that is written on the way; a blue "
        "one a part that is entered and left again; green states may be the last.</p>"
        f"{named}{boxes}\n"
    )


def _listed(inner: Sequence[tuple[str, str]]) -> str:
    return "".join(
        f"<li><details><summary>{escape(name)}</summary><pre>{escape(value)}</pre></details></li>"
        for name, value in inner
    )
