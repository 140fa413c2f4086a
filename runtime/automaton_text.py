"""An automaton printed for people: one line per state and way on."""

from __future__ import annotations

from cmm.compiler.automaton import CALL, DEAD, POP, ByteAutomaton


def show_automaton(automaton: ByteAutomaton) -> str:
    """The table of moves, ranges of bytes on the left, where they lead on the right.

    >>> from cmm.compiler import build_automaton
    >>> from cmm.grammar.nodes import Grammar, Literal
    >>> print(show_automaton(build_automaton(Grammar(Literal("ab")))).splitlines()[-2:])
    ['4 \\'b\\' -> 3', '3 final']
    """
    lines = [f"start {automaton.start}"]
    for state in range(len(automaton.final)):
        if automaton.final[state]:
            lines.append(f"{state} final")
        for low, high, move in byte_ranges(automaton, state):
            shown = repr(low)[1:] if low == high else f"{repr(low)[1:]}..{repr(high)[1:]}"
            lines.append(f"{state} {shown} -> {target(automaton, move)}")
    return "\n".join(lines)


def byte_ranges(automaton: ByteAutomaton, state: int) -> list[tuple[bytes, bytes, int]]:
    """(first byte, last byte, move) for each run of bytes with the same move."""
    moves = automaton.moves[state][automaton.classes]
    ranges: list[tuple[bytes, bytes, int]] = []
    for byte in range(256):
        move, one = int(moves[byte]), bytes([byte])
        if move == DEAD:
            continue
        if ranges and ranges[-1][2] == move and ranges[-1][1] == bytes([byte - 1]):
            ranges[-1] = (ranges[-1][0], one, move)
        else:
            ranges.append((one, one, move))
    return ranges


def target(automaton: ByteAutomaton, move: int) -> str:
    """Where a move leads: a state, back out of a string, or into a part and then on."""
    if move <= CALL:
        entered, back = automaton.calls[CALL - move]
        return f"{entered}, then {back}"
    return "back" if move == POP else str(move)
