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


def fold(dfa: Dfa) -> Dfa:
    """The same automaton with such states replaced; they are left without a way to them."""
    if not any(flags & INSIDE for row in dfa.edges for *_, flags in row):
        return dfa
    folding = _Folding(dfa)
    return replace(dfa, edges=[[folding.edge(edge) for edge in row] for row in dfa.edges])


class _Folding:
    def __init__(self, dfa: Dfa) -> None:
        self.dfa = dfa
        self.of_way = {
            tuple((low, high, target) for low, high, target, _ in edges): state
            for state, (edges, frame) in enumerate(zip(dfa.edges, dfa.frame, strict=True))
            if frame == TEXT_FRAME and state > TEXT_BODY and edges
        }
        self.spans = {tuple((low, high) for low, high, _ in way) for way in self.of_way}
        self.known: dict[int, tuple[int, int] | None] = {}

    def edge(self, edge: Edge) -> Edge:
        """An edge, into the string where it can be."""
        low, high, target, flags = edge
        if flags & INSIDE:
            return low, high, target, flags | TEXT_BODY * ENTERED
        entered = self.entered(target)
        if entered is None:
            return edge
        state, back = entered
        return low, high, back, flags | INSIDE | state * ENTERED

    def entered(self, state: int) -> tuple[int, int] | None:
        """The state of the string that a state is, and the return; None if it is none."""
        if state not in self.known:
            self.known[state] = None  # while it is asked: a way back to it is none of the string's
            self.known[state] = self._entered(state)
        return self.known[state]

    def _entered(self, state: int) -> tuple[int, int] | None:
        row = self.dfa.edges[state]
        spans = tuple((low, high) for low, high, *_ in row)
        if spans not in self.spans or self.dfa.calls[state] or self.dfa.final[state]:
            return None
        edges = [self.edge(edge) for edge in row]
        backs = {target if flags & INSIDE else None for _, _, target, flags in edges}
        way = tuple((low, high, flags // ENTERED) for low, high, _, flags in edges)
        back = backs.pop() if len(backs) == 1 else None
        return None if back is None or way not in self.of_way else (self.of_way[way], back)
