"""The byte automaton as a table to read: every state with its moves."""

from __future__ import annotations

from collections.abc import Iterator

from cmm.compiler.automaton import CALL, DEAD, POP, ByteAutomaton
from cmm.compiler.nfa import FAR, UNBOUNDED


def show_automaton(automaton: ByteAutomaton) -> str:
    """One line per state: its number, `*` if the text may end there, and its moves.

    >>> from cmm.compiler.automaton import build_automaton
    >>> from cmm.grammar.nodes import Grammar, Literal, Text, choice
    >>> text = show_automaton(build_automaton(Grammar(choice([Literal("0"), Text()]))))
    >>> text.splitlines()[-2]
    '22   " -> 1 then 23   0 -> 23'
    """
    lines = [f"start {automaton.start}; states below {automaton.text_states} are the JSON string's"]
    for state in range(len(automaton.final)):
        mark = "*" if automaton.final[state] else " "
        lines.append(f"{state}{mark}  " + "   ".join(_moves(automaton, state)))
    return "\n".join(lines)


def _moves(automaton: ByteAutomaton, state: int) -> Iterator[str]:
    row = automaton.moves[state][automaton.classes].tolist()
    low = 0
    for byte in range(1, 257):
        if byte == 256 or row[byte] != row[low]:
            if row[low] != DEAD:
                yield f"{_range(low, byte - 1)} -> {_target(automaton, row[low])}"
            low = byte


def _target(automaton: ByteAutomaton, move: int) -> str:
    if move == POP:
        return "return"
    if move <= CALL:
        entered, back, room, due = automaton.calls[CALL - move].tolist()
        bounds = (
            f" ({due} to {'any number' if room == FAR else room})"
            if (room, due) != UNBOUNDED
            else ""
        )
        return f"{entered}{bounds} then {back}"
    return str(move)


def _range(low: int, high: int) -> str:
    return _shown(low) if low == high else f"{_shown(low)}-{_shown(high)}"


def _shown(byte: int) -> str:
    return chr(byte) if 0x20 < byte < 0x7F else f"x{byte:02x}"
