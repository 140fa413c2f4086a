"""Strings that have become free ones, recognised state by state and left to the string's frame.

A key that must differ from "abc" is a string like any other from the first character that differs.
Determinising sees that where a character is complete; in the middle of one, after the first bytes
of its UTF-8, there are states which only lead there. Each is some state of the string's own frame
with a return, and is replaced by it: what such states allow is then shared by all automata.
"""

from __future__ import annotations

from dataclasses import replace

from cmm.compiler.determinise import ENTERED, INSIDE, Dfa, Edge
from cmm.compiler.nfa import TEXT_FRAME

TEXT_BODY = 1  # the state behind the opening quote, in the order of `minimise`
Way = tuple[tuple[int, int, int], ...]  # byte ranges and the states of the string they lead to


def fold(dfa: Dfa) -> Dfa:
    """The same automaton with such states replaced; they are left without a way to them."""
    if not any(flags & INSIDE for row in dfa.edges for *_, flags in row):
        return dfa
    of_way = {
        tuple((low, high, target) for low, high, target, _ in edges): state
        for state, (edges, frame) in enumerate(zip(dfa.edges, dfa.frame, strict=True))
        if frame == TEXT_FRAME and state > TEXT_BODY and edges
    }
    edges = [[_entering_body(edge) for edge in row] for row in dfa.edges]
    folded: dict[int, tuple[int, int]] = {}  # state -> (state of the string, return)
    changed = True
    while changed:
        changed = False
        for state, row in enumerate(edges[dfa.done :], dfa.done):
            if state not in folded and not dfa.calls[state] and not dfa.final[state]:
                way, back = _way(row)
                if back is not None and way in of_way:
                    folded[state] = of_way[way], back
                    changed = True
        edges = [[_redirected(edge, folded) for edge in row] for row in edges]
    return replace(dfa, edges=edges)


def _entering_body(edge: Edge) -> Edge:
    low, high, target, flags = edge
    return low, high, target, flags | (TEXT_BODY * ENTERED if flags & INSIDE else 0)


def _way(row: list[Edge]) -> tuple[Way, int | None]:
    """The row as a row of the string, and the one state it all returns to."""
    backs = {target if flags & INSIDE else None for _, _, target, flags in row}
    back = backs.pop() if len(backs) == 1 else None
    return tuple((low, high, flags // ENTERED) for low, high, _, flags in row), back


def _redirected(edge: Edge, folded: dict[int, tuple[int, int]]) -> Edge:
    low, high, target, flags = edge
    if flags & INSIDE or target not in folded:
        return edge
    entered, back = folded[target]
    return low, high, back, flags | INSIDE | entered * ENTERED
