"""How far a text is in the language, told so that its author sees why it stops."""

from __future__ import annotations

from dataclasses import dataclass

from cmm.compiler.automaton import ByteAutomaton, State

SHOWN = 12  # bytes that could have come next, at most, before the list is cut


@dataclass(frozen=True)
class Match:
    """Whether a text is accepted, how many bytes were read, and what could have come there."""

    accepted: bool
    read: int
    allowed: bytes
    complete: bool  # the text could have ended where the reading stopped

    def explain(self, text: bytes) -> str:
        """The verdict for people.

        >>> Match(False, 1, b"}", False).explain(b'{"a"')
        'stops at byte 1: after {, found "\\\\"", expected "}"'
        """
        if self.accepted:
            return "accepted"
        read = text[: self.read].decode("utf-8", "replace")
        before = read if len(read) <= 60 else "…" + read[-60:]
        found = _shown(text[self.read :][:1]) if self.read < len(text) else "the end"
        expected = [_shown(bytes([byte])) for byte in self.allowed[:SHOWN]]
        if len(self.allowed) > SHOWN:
            expected.append(f"{len(self.allowed) - SHOWN} other bytes")
        if self.complete:
            expected.append("the end")
        after = f"after {before}, " if before else ""
        return f"stops at byte {self.read}: {after}found {found}, expected {' or '.join(expected)}"


def match(automaton: ByteAutomaton, text: bytes) -> Match:
    """How far the automaton reads a text.

    >>> from cmm.compiler.automaton import build_automaton
    >>> from cmm.grammar.nodes import Grammar, Literal
    >>> match(build_automaton(Grammar(Literal("abc"))), b"abd").explain(b"abd")
    'stops at byte 2: after ab, found "d", expected "c"'
    """
    state, read = automaton.walk(State(automaton.start), text)
    complete = automaton.is_final(state)
    accepted = complete and read == len(text)
    return Match(accepted, read, automaton.allowed_bytes(state), complete)


def _shown(byte: bytes) -> str:
    char = byte.decode("latin-1")
    if 0x20 < byte[0] < 0x7F:
        return '"\\""' if char == '"' else f'"{char}"'
    return "a space" if char == " " else f"byte {byte[0]:#04x}"
