"""Schemas that nobody wrote: each compiles or is refused, and what it allows is valid.

Ours are small and to the point; those that hypothesis-jsonschema makes of the standard's own schema
of schemas hold every keyword, and values that nobody would think of.
"""

import random
import warnings

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema
from jsonschema import Draft7Validator
from scale import tries

from cmm.compiler import build_automaton
from cmm.compiler.automaton import State
from cmm.grammar.errors import CmmError
from cmm.grammar.json_schema import schema_grammar
from cmm.runtime.judge import Judge, Unjudged

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


META = Draft7Validator.META_SCHEMA
# What says nothing of values, and references, which would rarely lead anywhere.
SILENT = {"$id", "$schema", "$comment", "$ref", "definitions", "title", "description", "default",
          "readOnly", "writeOnly", "examples", "contentMediaType", "contentEncoding"}  # fmt: skip


def written_out(part, levels):
    """A part of the schema of schemas without references, which the library does not follow.

    Schemas nest so many levels; the deepest are true and false.
    """
    if isinstance(part, list):
        return [written_out(each, levels) for each in part]
    if not isinstance(part, dict):
        return part
    reference = part.get("$ref")
    if reference == "#":
        return schema_of_schemas(levels - 1) if levels else {"type": "boolean"}
    if reference:
        return written_out(META["definitions"][reference.split("/")[-1]], levels)
    return {key: written_out(value, levels) for key, value in part.items() if key != "default"}


def schema_of_schemas(levels):
    """The schemas of draft 7 with up to four keywords each."""
    spoken = {key: part for key, part in META["properties"].items() if key not in SILENT}
    return {"type": "object", "properties": written_out(spoken, levels), "maxProperties": 4,
            "additionalProperties": False}  # fmt: skip


def check_walks(schema, seed, budget=5_000):
    """What the automaton of a schema spells at random is valid, if the schema is not refused."""
    try:
        automaton = build_automaton(schema_grammar(schema), budget)
    except CmmError:
        return
    text = walk(automaton, random.Random(seed))
    if text is None:
        return
    try:
        assert Judge(schema).fault(text) is None, text
    except Unjudged:  # the validator cannot read a pattern that is one by the standard
        return


@settings(deadline=None, max_examples=tries(40), suppress_health_check=list(HealthCheck))
@given(schemas, st.integers(0, 9))
def test_walks_validate(schema, seed):
    check_walks(schema, seed)


DRAFT = {"$schema": "http://json-schema.org/draft-07/schema#"}


@settings(deadline=None, max_examples=tries(60), suppress_health_check=list(HealthCheck))
@given(from_schema(schema_of_schemas(1)), st.integers(0, 9))
def test_walks_of_any_schema_validate(schema, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of formats that are not known
        check_walks({**DRAFT, **schema}, seed)
