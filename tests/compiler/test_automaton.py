"""The byte automaton accepts what the grammar says, and is as small as can be."""

import pytest
from doubles import ends, grammars, written
from hypothesis import given, settings
from hypothesis import strategies as st
from scale import tries

from cmm.compiler import build_automaton
from cmm.compiler.automaton import DEAD
from cmm.compiler.utf8 import utf8_ranges
from cmm.grammar import InvalidInput
from cmm.grammar.nodes import Choice, Grammar, Literal, Repeat, Text, chars, choice, sequence

points = st.integers(0, 0x10FFFF)


@given(points, points, st.lists(points, max_size=5))
def test_utf8_ranges_hold_exactly_the_code_points(low, high, others):
    low, high = min(low, high), max(low, high)
    ranges = list(utf8_ranges(low, high))
    for point in [low, high, (low + high) // 2, 0xD7FF, 0xE000, 0x7F, 0x80, 0x7FF, 0x800, *others]:
        if 0xD800 <= point <= 0xDFFF:
            continue
        data = chr(point).encode()
        inside = sum(
            len(path) == len(data)
            and all(first <= byte <= last for byte, (first, last) in zip(data, path, strict=True))
            for path in ranges
        )
        assert inside == (low <= point <= high)


@settings(max_examples=tries(120), deadline=None)
@given(grammars, st.randoms(use_true_random=False))
def test_the_automaton_equals_the_grammar_read_slowly(grammar, chance):
    try:
        automaton = build_automaton(grammar)
    except InvalidInput:
        assert written(grammar.root, chance) is None
        return
    for _ in range(5):
        text = written(grammar.root, chance)
        if text is None:
            continue
        assert automaton.accepts(text), text
        for other in (text + "a", text[:-1], text[1:], text * 2, text + '"', text[::-1]):
            assert automaton.accepts(other) == (len(other) in ends(grammar.root, other, {0})), other


@pytest.mark.parametrize(
    ("node", "states"),  # beside those of the string
    [
        (Literal("ab"), 3),
        (choice([Literal("ab"), Literal("cb")]), 3),
        (choice([Literal("a"), Literal("aa"), Repeat(Literal("a"), 3)]), 2),
        (sequence(Repeat(chars("ab")), Literal("a")), 2),
        (sequence(Literal("x"), Text()), 3),
        (choice([sequence(Literal("x"), Text()), sequence(Literal("y"), Text())]), 3),
    ],
)
def test_equal_states_are_one(node, states):
    automaton = build_automaton(Grammar(node))
    assert len(automaton.final) - automaton.text_states == states


def test_no_state_is_a_dead_end():
    node = choice([Literal("ab"), sequence(Literal("ac"), Choice(()))])
    automaton = build_automaton(Grammar(node))
    live = automaton.final | (automaton.moves != DEAD).any(axis=1)
    assert live[automaton.text_states :].all()
    assert not automaton.accepts("ac")


def test_a_grammar_without_texts_is_an_error():
    with pytest.raises(InvalidInput, match="no value can satisfy"):
        build_automaton(Grammar(sequence(Literal("a"), Choice(()))))


def test_bytes_that_are_no_utf8_are_rejected():
    automaton = build_automaton(Grammar(Text()))
    for data in [b'"\xff"', b'"\xc0\x80"', b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xe9"']:
        assert not automaton.accepts(data)
    assert automaton.accepts('"\ud83d"') is False
