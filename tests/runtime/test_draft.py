"""Drafts: what is guessed of a call, and that every guess is allowed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_doubles import tiny_tokenizer
from scale import tries

from cmm.compiler import compile_functions, load_vocabulary
from cmm.grammar.functions import parse_functions
from cmm.runtime.draft import Drafter, rank_functions, read_clues

TOKENIZER = tiny_tokenizer()
VOCABULARY = load_vocabulary(TOKENIZER)
FUNCTIONS = parse_functions(
    [
        {"name": "add", "parameters": {"a": {"type": "number"}, "b": {"type": "integer"}}},
        {"name": "greet", "parameters": {"name": {"type": "string"}}},
        {"name": "swap", "parameters": {"text": {"type": "string"}, "by": {"type": "string"}}},
    ]
)
TABLE = compile_functions(FUNCTIONS, VOCABULARY)
ABOUT = [("add", "the sum of numbers"), ("greet", "say hello"), ("swap", "replace a text")]


def encode(text: str) -> list[int]:
    return list(TOKENIZER.encode(text, add_special_tokens=False).ids)


def text_of(tokens: list[int]) -> str:
    return b"".join(VOCABULARY.tokens[token] for token in tokens).decode("utf-8", "replace")


def drafted(request: str, written: str = "", least: float = 0.0) -> str:
    """The text that is drafted after what is written."""
    drafter = Drafter(TABLE, VOCABULARY.tokens, encode)
    answer, state = encode(written), TABLE.start
    for token in answer:
        state = TABLE.next(state, token)
    clues = read_clues(request, rank_functions(request, ABOUT))
    steps = drafter.propose(clues, answer, state, 200, least)
    return text_of([token for step in steps for token in step.tokens])


@pytest.mark.parametrize(
    ("request_text", "written", "expected"),
    [
        ("the sum of 2 and 31", "", '{"name": "add", "arguments": {"a": 2, "b": 31}}'),
        ("greet ann", "", '{"name": "greet", "arguments": {"name": "ann"}}'),
        ("greet Ann Lee now", "", '{"name": "greet", "arguments": {"name": "Ann Lee"}}'),
        ("replace 'x y' by \"z\"", "", '{"name": "swap", "arguments": {"text": "x y", "by": "z"}}'),
        ("greet ann", '{"name": "add", "arguments": {"a": ', ""),
        ("say it was fine", '{"name": "greet", "arguments": {"name": "it wa', 's fine"}}'),
    ],
)
def test_what_is_drafted(request_text: str, written: str, expected: str) -> None:
    assert drafted(request_text, written) == expected


def test_unlikely_drafts_are_not_made() -> None:
    """What is left is what must come anyway."""
    assert drafted("greet ann", least=0.95) == '{"name": "'


def test_earlier_answers_are_followed() -> None:
    drafter = Drafter(TABLE, VOCABULARY.tokens, encode)
    drafter.remember(encode('{"name": "greet", "arguments": {"name": "the queen"}}'))
    written = encode('{"name": "greet", "arguments": {"name": "')
    state = TABLE.start
    for token in written:
        state = TABLE.next(state, token)
    [step, *_] = drafter.propose(read_clues(""), written, state, 50, 0.0)
    assert (step.kind, text_of(step.tokens)) == ("earlier", "the queen")


def test_chances_are_learned() -> None:
    """A kind of guess that keeps failing is no longer made."""
    drafter = Drafter(TABLE, VOCABULARY.tokens, encode)
    clues = read_clues("the sum of 2", rank_functions("the sum of 2", ABOUT))
    for _ in range(30):
        steps = drafter.propose(clues, [], TABLE.start, 50, 0.3)
        drafter.learn(steps, sum(len(step.tokens) for step in steps if step.kind != "function"))
        if all(step.kind != "function" for step in steps):
            return
    pytest.fail("wrong guesses go on")


@settings(deadline=None, max_examples=tries(50))
@given(st.text(max_size=60), st.integers(0, 60), st.data())
def test_every_draft_is_allowed(request_text: str, most: int, data: st.DataObject) -> None:
    """From any state, for any request: tokens that the table allows, not more than asked for."""
    drafter = Drafter(TABLE, VOCABULARY.tokens, encode)
    answer: list[int] = []
    state = TABLE.start
    for _ in range(data.draw(st.integers(0, 40))):
        allowed = TABLE.allowed(state)
        if not len(allowed):
            break
        answer.append(int(data.draw(st.sampled_from(allowed.tolist()))))
        state = TABLE.next(state, answer[-1])
    steps = drafter.propose(read_clues(request_text, ["add"]), answer, state, most, 0.0)
    tokens = [token for step in steps for token in step.tokens]
    assert len(tokens) <= most
    for token in tokens:
        assert token in TABLE.allowed(state)
        state = TABLE.next(state, token)


@pytest.mark.parametrize("unit", ["'b ", "“b ", '"b ', "`b ", "1", "Ab ", "-", "'", "a'b "])
def test_long_requests_are_read_in_time(unit: str) -> None:
    """No request makes the search for quotes run wild; what is tried of it is bounded."""
    clues = read_clues(unit * 30_000)
    assert max(map(len, (clues.quoted, clues.words, clues.numbers))) <= 32
