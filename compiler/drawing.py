"""Such a picture drawn: SVG from left to right, and a page on which each part is a box to open."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from cmm.compiler.picture import Arrow, FramePicture, layers_of

LONGEST = 34  # characters of a label in the picture; all of it is shown where the mouse stays
LETTER = 6.7  # the width of a character of a label
WIDTH, HEIGHT = 290, 44  # of a step to the right, and of one down


def as_svg(frame: FramePicture) -> str:
    """One frame as a drawing, from left to right."""
    ways = _ways(frame)
    places = _places(frame, ways)
    width, height = (40 + max(p[axis] for p in places.values()) for axis in (0, 1))
    taken: list[Box] = []
    drawn = [_drawn_arrow(arrow, _curves(way, places), taken) for arrow, way in ways.items()]
    drawn += [_drawn_state(s, place, frame) for s, place in places.items() if isinstance(s, int)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="11">'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>'
        + "".join(drawn)
        + "</svg>"
    )


Place = tuple[int, int]
Box = tuple[float, float, float]  # middle, base line and half the width of a label


Stop = int | tuple[Arrow, int]  # a state, or where an arrow passes through the column of a layer


def _ways(frame: FramePicture) -> dict[Arrow, list[Stop]]:
    """Each arrow's stops: its two states, and one in each column between them."""
    layers = layers_of(frame)
    return {
        arrow: [
            arrow.source,
            *((arrow, at) for at in range(layers[arrow.source] + 1, layers[arrow.target])),
            arrow.target,
        ]
        for arrow in frame.arrows
    }


def _places(frame: FramePicture, ways: dict[Arrow, list[Stop]]) -> dict[Stop, Place]:
    """Where all stops are: in the column of their layer, near those that lead to them."""
    before: dict[Stop, list[Stop]] = defaultdict(list)
    columns: dict[int, list[Stop]] = defaultdict(list)
    for state, layer in layers_of(frame).items():
        columns[layer].append(state)
    for way in ways.values():
        for stop, following in pairwise(way):
            before[following].append(stop)
        for passing in way[1:-1]:
            columns[passing[1]].append(passing)  # type: ignore[index]
    places: dict[Stop, Place] = {}
    for layer in sorted(columns):
        wanted = {
            s: [places[b][1] for b in before[s] if b in places] or [0] for s in columns[layer]
        }
        column = sorted(wanted, key=lambda stop: sum(wanted[stop]) / len(wanted[stop]))
        for row, stop in enumerate(column):
            places[stop] = (40 + layer * WIDTH, 50 + row * HEIGHT)
    return places


def _curves(way: Sequence[Stop], places: dict[Stop, Place]) -> list[Sequence[Place]]:
    """The curves of an arrow, four points each; one that leads back goes above the others."""
    (x, y), (u, v) = start, end = places[way[0]], places[way[-1]]
    if start == end:
        return [((x - 5, y - 8), (x - 22, y - 34), (x + 22, y - 34), (x + 5, y - 8))]
    if u <= x:
        return [((x + 9, y), (x + 70, y - 26), (u - 70, v - 26), (u - 9, v))]
    stops = [(x + 9, y), *(places[stop] for stop in way[1:-1]), (u - 9, v)]
    return [((a, b), (a + 90, b), (c - 90, d), (c, d)) for (a, b), (c, d) in pairwise(stops)]


def _free_place(curve: Sequence[Place], half: float, taken: list[Box]) -> tuple[int, int]:
    """Where on its curve a label covers no other, if there is such a place; taken from now on."""
    a, b, c, d = curve
    found = []
    for t in (0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8):
        weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
        x, y = (sum(w * p[i] for w, p in zip(weights, (a, b, c, d), strict=True)) for i in (0, 1))
        found.append((x, y - 4))
    free = (
        (x, y)
        for x, y in found
        if not any(abs(x - u) < half + w + 4 and abs(y - v) < 12 for u, v, w in taken)
    )
    x, y = next(free, found[0])
    taken.append((x, y, half))
    return round(x), round(y)


def _drawn_arrow(arrow: Arrow, curves: Sequence[Sequence[Place]], taken: list[Box]) -> str:
    moves = (" ".join(f"{x} {y}" for x, y in points) for _, *points in curves)
    (begin_x, begin_y), *_ = curves[0]
    path = f"M{begin_x} {begin_y}C" + " ".join(moves)
    label = arrow.label if len(arrow.label) <= LONGEST else arrow.label[: LONGEST - 1] + "…"
    colour = "#1565c0" if arrow.label.startswith("<") else "#222"
    middle = curves[(len(curves) - 1) // 2]
    text_x, text_y = _free_place(middle, len(label) * LETTER / 2, taken)
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
        f"{len(layers_of(frame))} states, {len(frame.arrows)} arrows</summary>"
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
