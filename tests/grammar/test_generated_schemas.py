"""Schemas that nobody wrote: each compiles or is refused, and what it allows is valid."""

import json
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cmm.compiler import build_automaton
from cmm.compiler.automaton import State
from cmm.grammar.errors import CmmError
from cmm.grammar.json_schema import schema_grammar

WORDS = st.sampled_from(["a", "b", "kind", "é"])
SCALARS = st.one_of(
    st.just({"type": "null"}),
    st.just({"type": "boolean"}),
    st.builds(lambda low, size: {"type": "integer", "minimum": low, "maximum": low + size},
              st.integers(-99, 99), st.integers(0, 99)),
    st.builds(lambda low, size: {"type": "string", "minLength": low, "maxLength": low + size},
              st.integers(0, 3), st.integers(0, 3)),
    st.lists(WORDS | st.integers(-9, 9) | st.none(), min_size=1, max_size=3).map(lambda v: {"enum": v}),
    st.sampled_from([{"type": "string", "pattern": "^[ab]{1,3}$"}, {"type": "number", "multipleOf": 0.5}]),
)  # fmt: skip


def _larger(inner):
    named = st.dictionaries(WORDS, inner, max_size=3)
    return st.one_of(
        st.builds(lambda item, low, size: {"type": "array", "items": item, "minItems": low, "maxItems": low + size},
                  inner, st.integers(0, 2), st.integers(0, 2)),
        st.builds(lambda parts, more: {"type": "object", "properties": parts, "required": sorted(parts)[:1],
                                       "additionalProperties": more}, named, st.booleans()),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"allOf": parts}),
        st.lists(inner, min_size=1, max_size=2).map(lambda parts: {"oneOf": parts}),
        inner.map(lambda part: {"not": part}),
    )  # fmt: skip


schemas = st.recursive(SCALARS, _larger, max_leaves=5)


def walk(automaton, dice, most=400):
    """A text of the automaton, byte by byte; None if it does not end by itself."""
    state, text = State(automaton.start), b""
    while len(text) < most:
        if automaton.is_final(state):
            return text
        allowed = automaton.allowed_bytes(state)
        closing = [byte for byte in allowed if byte in b'"]}'] if dice.random() < 0.4 else []
        byte = dice.choice(closing or list(allowed))
        state, text = automaton.step(state, byte), text + bytes([byte])
    return None


@settings(deadline=None, max_examples=80, suppress_health_check=list(HealthCheck))
@given(schemas, st.integers(0, 9))
def test_walks_validate(schema, seed):
    try:
        automaton = build_automaton(schema_grammar(schema), 5_000)
    except CmmError:
        return
    text = walk(automaton, random.Random(seed))
    if text is not None:
        Draft202012Validator(schema).validate(json.loads(text))
