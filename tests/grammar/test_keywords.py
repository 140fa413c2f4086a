"""What each keyword of JSON Schema accepts and rejects, alone and beside others."""

import json

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scale import tries

from cmm.compiler import build_automaton
from cmm.grammar import CmmError, InvalidInput, Unsupported, schema_grammar

INT, TEXT = {"type": "integer"}, {"type": "string"}
CLOSED = {"additionalProperties": False}
OLD = {"$schema": "http://json-schema.org/draft-07/schema#"}

# name: (schema, accepted values, rejected values), written in the order in which they stand here
LANGUAGES = {
    "type list": ({"type": ["integer", "null"]}, [1, None, -3], ["1", 1.5, True, []]),
    "nullable": ({"type": "string", "nullable": True}, ["", "a", None], [1, False, {}]),
    "nullable without type": ({"nullable": True}, [None, 1, "a"], []),
    "enum with type": ({"type": "integer", "enum": [1, "1", 2.5, 3]}, [1, 3, 3], [2, "1", 2.5]),
    "const": ({"const": {"a": [1, None]}}, [{"a": [1, None]}], [{"a": [1]}, {}, {"a": [1, None], "b": 1}]),
    "bounds": ({"type": "number", "minimum": -1, "exclusiveMaximum": 2.5},
               [-1, 0, 2.49], [-1.01, 2.5, 3]),
    "integer bounds": ({"type": "integer", "exclusiveMinimum": 9, "maximum": 101},
                       [10, 99, 101], [9, 102, -10, 50.5]),
    "bounds of draft 4": ({"$schema": "http://json-schema.org/draft-04/schema#", "type": "number",
                           "minimum": 1, "exclusiveMinimum": True}, [1.5, 2, 1e2], [1, 0, -2]),
    "bounds hold for numbers only": ({"minimum": 3}, [3, "a", None], [2, -3, 2.99]),
    "multipleOf": ({"multipleOf": 0.25}, [0, 1.75, -2, "x"], [0.1, 1.3, -0.125]),
    "two multiples": ({"type": "integer", "allOf": [{"multipleOf": 4}, {"multipleOf": 6}]},
                      [0, 12, -24], [4, 6, 18]),
    "length": ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "éé", "😀😀😀"], ["", "a", "abcd"]),
    "pattern": ({"type": "string", "pattern": "b+"}, ["b", "abc", "\nbb"], ["", "a", "B"]),
    "pattern, length and format": (
        {"type": "string", "pattern": "^2", "maxLength": 10, "format": "date"},
        ["2024-02-29", "2000-01-01", "2999-12-31"], ["1999-01-01", "2023-02-29", "2024"]),
    "pattern of other types": ({"pattern": "^a$"}, ["a", 1, []], ["b", "aa", ""]),
    "format": ({"format": "ipv4"}, ["1.2.3.4", "255.0.0.1", 7], ["1.2.3", "256.1.1.1", ""]),
    "number format": ({"type": "integer", "format": "int32"}, [0, 2**31 - 1, -(2**31)],
                      [2**31, -(2**31) - 1, "1"]),
    "items": ({"items": INT}, [[], [1, 2], "x"], [["a"], [1, None], [[]]]),
    "no items": ({"type": "array", "items": False}, [[]], [[1], [None], [[]]]),
    "prefixItems": ({"type": "array", "prefixItems": [INT, TEXT], "items": {"type": "null"}},
                    [[], [1], [1, "a", None, None]], [["a"], [1, 2], [1, "a", 3]]),
    "items of draft 7": ({**OLD, "type": "array", "items": [INT, TEXT], "additionalItems": False},
                         [[], [1], [1, "a"]], [["a"], [1, 1], [1, "a", 2]]),
    "number of items": ({"type": "array", "minItems": 2, "maxItems": 3}, [[1, 2], [1, "a", None], [[], []]],
                        [[], [1], [1, 2, 3, 4]]),
    "contains": ({"type": "array", "contains": INT}, [[1], ["a", 1], [None, 2, "b"]], [[], ["a"], [1.5]]),
    "contains, counted": ({"type": "array", "contains": INT, "minContains": 2, "maxContains": 3},
                          [[1, 2], [1, "a", 2], [1, 2, 3]], [[1], [1, 2, 3, 4], ["a"]]),
    "contains beside a prefix": (
        {"type": "array", "prefixItems": [TEXT], "contains": INT, "maxItems": 3, "maxContains": 1},
        [["a", 1], ["a", None, 1], ["a", 1, "b"]], [[1], ["a", 1, 2], ["a", "b"], ["a", 1, None, None]]),
    "two contains": ({"type": "array", "allOf": [{"contains": {"const": 1}}, {"contains": {"const": 2}}]},
                     [[1, 2], [2, 3, 1], [2, 2, 1]], [[1], [2, 2], []]),
    "uniqueItems": ({"type": "array", "items": {"enum": ["a", "b", 1]}, "uniqueItems": True},
                    [[], ["a", 1], [1, "b", "a"]], [["a", "a"], [1, "b", 1], ["c"]]),
    "additionalProperties": ({"type": "object", "properties": {"a": INT}, "additionalProperties": TEXT},
                             [{}, {"a": 1, "b": "x"}, {"b": "", "c": ""}], [{"a": "x"}, {"b": 1}, {"a": 1, "b": None}]),
    "patternProperties": (
        {"type": "object", "properties": {"xa": INT}, "patternProperties": {"^x": {"minimum": 3}}, **CLOSED},
        [{}, {"xa": 4}, {"xb": 3}, {"xa": 3, "xc": "t"}], [{"xa": 2}, {"xb": 2}, {"a": 1}]),
    "two patterns on a key": (
        {"type": "object", "patternProperties": {"a": INT, "b": {"minimum": 5}}},
        [{"a": 1}, {"ab": 5}, {"b": "x"}], [{"a": "x"}, {"ab": 4}, {"ba": "x"}]),
    "required": ({"type": "object", "required": ["b", "a"]}, [{"b": 1, "a": 2}, {"b": [], "a": 1, "c": 0}, {"b": {}, "a": ""}],
                 [{}, {"a": 1}, {"b": 1}]),
    "required before described": (
        {"required": ["b", "a"], "properties": {"a": INT, "b": TEXT}, "type": "object"},
        [{"a": 1, "b": ""}, {"a": 0, "b": "x"}, {"a": 1, "b": "", "c": 1}], [{"a": 1}, {"b": ""}, {"a": "", "b": ""}]),
    "number of members": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "minProperties": 1, "maxProperties": 2},
        [{"a": 1}, {"a": 1, "b": 2}, {"b": 1, "c": 2}], [{}, {"a": 1, "b": 2, "c": 3}, {"x": 1, "y": 2, "z": 3}]),
    "propertyNames": ({"type": "object", "propertyNames": {"pattern": "^a"}, "properties": {"b": {}}},
                      [{}, {"a": 1}, {"ab": 1, "ac": 2}], [{"b": 1}, {"c": 1}, {"a": 1, "ba": 1}]),
    "dependentRequired": (
        {"type": "object", "properties": {"a": {}, "b": {}, "c": {}}, "dependentRequired": {"a": ["b", "c"]}},
        [{}, {"b": 1}, {"a": 1, "b": 1, "c": 1}], [{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "c": 1}]),
    "dependentSchemas": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "dependentSchemas": {"a": {"properties": {"b": INT}}}},
        [{"b": "x"}, {"a": 1, "b": 1}, {"a": 1}], [{"a": 1, "b": "x"}, {"a": 0, "b": None}, {"a": 0, "b": 1.5}]),
    "dependencies of draft 7": (
        {**OLD, "type": "object", "properties": {"a": {}, "b": {}}, "dependencies": {"a": ["b"], "b": {"minProperties": 2}}},
        [{}, {"a": 1, "b": 2}, {"b": 1, "c": 2}], [{"a": 1}, {"b": 1}, {"a": 1, "c": 1}]),
    "a reference with siblings": (
        {"$ref": "#/$defs/n", "minimum": 5, "$defs": {"n": INT}}, [5, 6, 100], [4, "a", 5.5]),
    "a name beside a reference of draft 7 is none": (
        {**OLD, "$id": "http://h/a/", "definitions": {"x": {"$id": "http://h/b/", "$ref": "#/definitions/n"}, "n": INT},
         "allOf": [{"$ref": "#/definitions/x"}]}, [1, 2, -3], ["a", None, 1.5]),
    "references of draft 7 stand alone": (
        {**OLD, "$ref": "#/definitions/n", "minimum": 5, "definitions": {"n": INT}}, [4, 5, -1], ["a", 5.5, None]),
    "recursion": (
        {"type": "object", "properties": {"v": INT, "next": {"$ref": "#"}}, "required": ["v"], **CLOSED},
        [{"v": 1}, {"v": 1, "next": {"v": 2}}, {"v": 1, "next": {"v": 2, "next": {"v": 3}}}],
        [{}, {"v": 1, "next": {}}, {"v": 1, "next": {"v": 2, "next": 3}}]),
    "recursion in a union": (
        {"anyOf": [INT, {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}]},
        [1, [], [1, [2, [3]]]], ["a", [1, "a"], [1, [2, 3, 4]]]),
    "allOf of objects": (
        {"allOf": [{"type": "object", "properties": {"a": INT}, "required": ["a"]},
                   {"properties": {"b": TEXT, "a": {"minimum": 0}}, "required": ["b"]}]},
        [{"a": 1, "b": ""}, {"a": 0, "b": "x"}, {"a": 1, "b": "x", "c": 1}], [{"a": 1}, {"a": -1, "b": ""}, {"b": ""}, 1]),
    "allOf with closed objects": (
        {"type": "object", "allOf": [{"properties": {"a": {}}, **CLOSED}, {"properties": {"b": {}}}]},
        [{}, {"a": 1}, {"a": None}], [{"b": 1}, {"a": 1, "b": 1}, {"c": 1}]),
    "anyOf with siblings": ({"type": "string", "anyOf": [{"maxLength": 1}, {"pattern": "^b"}]},
                            ["", "a", "bcd"], ["ab", 1, None]),
    "oneOf overlapping": ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]},
                          [1, 2.5, -7], [2, 3, 1.5]),
    "oneOf of three": ({"oneOf": [{"multipleOf": 2}, {"multipleOf": 3}, {"multipleOf": 5}], "type": "integer"},
                       [2, 9, 25], [6, 10, 30, 7]),
    "oneOf of required": (
        {"type": "object", "properties": {"a": {}, "b": {}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        [{"a": 1}, {"b": 1}, {"b": 1, "c": 1}], [{}, {"a": 1, "b": 1}, {"c": 1}]),
    "not": ({"not": {"type": ["string", "object"]}}, [1, None, []], ["", "a", {}]),
    "not of a property": ({"type": "object", "not": {"properties": {"a": INT}}},
                          [{"a": "x"}, {"a": None}, {"a": 1.5, "b": 1}], [{}, {"a": 1}, {"b": "x"}]),
    "not of required": ({"type": "object", "properties": {"a": {}}, "not": {"required": ["a"]}},
                        [{}, {"b": 1}, {"aa": 1}], [{"a": 1}, {"a": 1, "b": 1}, []]),
    "not of additionalProperties": (
        {"type": "object", "not": {"additionalProperties": INT}},
        [{"a": "x"}, {"a": 1, "b": "x"}, {"a": "x", "b": 1}], [{}, {"a": 1}, {"a": 1, "b": 2}]),
    "not of patternProperties, with a count": (
        {"type": "object", "not": {"patternProperties": {"b": False}}, "minProperties": 2},
        [{"b": 1, "c": 2}, {"c": 1, "b": 2}, {"a": 1, "abc": 2, "d": 3}], [{"b": 1}, {"a": 1, "c": 2}, {}]),
    "not of not of keys": (
        {"type": "object", "not": {"not": {"additionalProperties": INT}}}, [{}, {"a": 1}, {"a": 1, "b": 2}],
        [{"a": "x"}, {"a": 1, "b": "x"}, {"a": None}]),
    "not of items behind a prefix": (
        {"type": "array", "not": {"prefixItems": [{}], "items": INT}},
        [["a", "b"], [1, 2, "x"], [1, None]], [[], ["a"], ["a", 1], [1, 2, 3]]),
    "if": ({"type": "integer", "if": {"minimum": 10}, "then": {"multipleOf": 10}, "else": {"multipleOf": 2}},
           [20, 4, -2], [11, 3, 15]),
    "if on a property": (
        {"type": "object", "properties": {"kind": {"enum": ["n", "t"]}, "value": {}},
         "if": {"properties": {"kind": {"const": "n"}}, "required": ["kind"]},
         "then": {"properties": {"value": INT}}, "else": {"properties": {"value": TEXT}}},
        [{"kind": "n", "value": 1}, {"kind": "t", "value": ""}, {"value": "x"}],
        [{"kind": "n", "value": ""}, {"kind": "t", "value": 1}, {"value": 1}]),
    "unevaluatedProperties beside allOf": (
        {"type": "object", "properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}, {"$ref": "#/$defs/c"}],
         "$defs": {"c": {"patternProperties": {"^c": INT}}}, "unevaluatedProperties": False},
        [{"a": 1, "b": 2}, {"b": 1, "c1": 2}, {}], [{"d": 1}, {"a": 1, "d": 1}, {"cc": "x"}]),
    "unevaluatedProperties by what was passed": (
        {"type": "object", "anyOf": [{"properties": {"a": INT}, "required": ["a"]},
                                     {"properties": {"b": INT}, "required": ["b"]}], "unevaluatedProperties": TEXT},
        [{"a": 1}, {"a": 1, "b": "x"}, {"b": 1, "c": ""}, {"a": 1, "b": 2}], [{}, {"a": 1, "b": None}, {"c": ""}, {"a": 1, "c": 1}]),
    "unevaluatedProperties and if": (
        {"type": "object", "if": {"properties": {"k": {"const": 1}}, "required": ["k"]},
         "then": {"properties": {"t": {}}}, "else": {"properties": {"e": {}}}, "unevaluatedProperties": False},
        [{"k": 1}, {"k": 1, "t": 2}, {"e": 2}], [{"k": 1, "e": 2}, {"t": 2}, {"k": 2}]),
    "unevaluatedProperties inside": (
        {"type": "object", "allOf": [{"unevaluatedProperties": True}], "unevaluatedProperties": False},
        [{}, {"a": 1}, {"b": None}], [1, "a", []]),
    "unevaluatedItems": (
        {"type": "array", "prefixItems": [INT], "allOf": [{"prefixItems": [True, TEXT]}], "contains": {"type": "null"},
         "unevaluatedItems": False},
        [[1, "a", None], [1, "", None, None], [2, "b", None]], [[1, "a"], [1, "a", None, 2], [None]]),
    "true": (True, [1, {}, None], []),
    "false inside": ({"type": "object", "properties": {"a": False}}, [{}, {"b": 1}, {"aa": 2}], [{"a": 1}, {"a": None}, []]),
}  # fmt: skip

REFUSED = [
    ({"extends": {}}, "/extends"),
    ({"properties": {"a": {"$dynamicRef": "#a"}}}, "/properties/a/$dynamicRef"),
    ({"items": {"type": "array", "uniqueItems": True}}, "/items/uniqueItems"),
    ({"$ref": "https://example.com/other.json"}, "/$ref"),
    ({"properties": {"a": {"pattern": "(a)\\1"}}}, "/properties/a/pattern"),
]
WRONG = [
    ({"type": "strong"}, "/type"),
    ({"properties": {"a": {"minLength": -1}}}, "/properties/a/minLength"),
    ({"$ref": "#/nowhere"}, "/$ref"),
    ({"required": True}, "/required"),
    ({"allOf": []}, "/allOf"),
]


def written(value):
    return json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("name", LANGUAGES)
def test_accepted_and_rejected(name):
    schema, accepted, rejected = LANGUAGES[name]
    automaton = build_automaton(schema_grammar(schema))
    for value in accepted:
        assert automaton.accepts(written(value)), f"{name}: {written(value)} is accepted"
    for value in rejected:
        assert not automaton.accepts(written(value)), f"{name}: {written(value)} is rejected"


@pytest.mark.parametrize("name", [name for name in LANGUAGES if "nullable" not in name])
def test_the_table_is_right(name):
    """The package jsonschema agrees with the table above."""
    schema, accepted, rejected = LANGUAGES[name]
    kind = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
    judge = kind(schema, format_checker=kind.FORMAT_CHECKER)
    assert all(map(judge.is_valid, accepted))
    if name != "number format":  # which jsonschema does not know
        assert not any(map(judge.is_valid, rejected))


@pytest.mark.parametrize(("schema", "place"), REFUSED)
def test_refused(schema, place):
    with pytest.raises(Unsupported) as caught:
        schema_grammar(schema)
    assert caught.value.place == place


@pytest.mark.parametrize(("schema", "place"), WRONG)
def test_wrong(schema, place):
    with pytest.raises(InvalidInput) as caught:
        schema_grammar(schema)
    assert caught.value.place == place


def test_nesting_without_end_is_refused():
    schema = {"type": "integer"}
    for _ in range(2000):
        schema = {"items": schema}
    with pytest.raises(CmmError):
        build_automaton(schema_grammar(schema))


NAMES = st.sampled_from(["a", "b", "ab"])
LEAVES = st.sampled_from([
    True, {"type": "integer"}, {"type": "string"}, {"type": ["null", "boolean"]}, {"minimum": 1},
    {"maximum": 5}, {"multipleOf": 2}, {"enum": [1, "a", None]}, {"const": "ab"}, {"minLength": 2},
    {"pattern": "a"}, {"type": "number", "exclusiveMinimum": 0}, {"required": ["a"]},
    {"minProperties": 1}, {"maxProperties": 1}, {"minItems": 1}, {"maxItems": 1},
    {"propertyNames": {"pattern": "^a"}}, {"type": "object"}, {"type": "array"},
])  # fmt: skip


def containers(inner):
    return st.one_of(
        st.builds(lambda x: {"items": x}, inner),
        st.builds(lambda x, y: {"prefixItems": [x], "items": y}, inner, inner),
        st.builds(lambda x: {"contains": x}, inner),
        st.builds(lambda x: {"not": x}, inner),
        st.builds(lambda x: {"additionalProperties": x}, inner),
        st.builds(lambda k, x: {"patternProperties": {k: x}}, NAMES, inner),
        st.builds(lambda x: {"properties": x}, st.dictionaries(NAMES, inner, max_size=2)),
        st.builds(lambda x, y, z: {"if": x, "then": y, "else": z}, inner, inner, inner),
        st.builds(
            lambda key, x: {key: x},
            st.sampled_from(["allOf", "anyOf", "oneOf"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
        st.builds(
            lambda x, y: {**x, **y} if isinstance(x, dict) and isinstance(y, dict) else y,
            inner,
            inner,
        ),
    )


SCHEMAS = st.recursive(LEAVES, containers, max_leaves=5)
SCALARS = st.sampled_from([None, True, 0, 1, 2, 6, 1.5, "", "a", "b", "ab", "aa"])
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(NAMES | st.just("c"), v, max_size=3),
    max_leaves=5,
)  # fmt: skip


@settings(deadline=None, max_examples=tries(100), suppress_health_check=list(HealthCheck))
@given(schema=SCHEMAS, values=st.lists(VALUES, min_size=5, max_size=20))
def test_no_invalid_value_is_accepted(schema, values):
    """Whatever the schema: it is refused, or none of the values that break it is accepted."""
    try:
        automaton = build_automaton(schema_grammar(schema))
    except CmmError:
        return
    judge = jsonschema.Draft202012Validator(schema)
    for value in values:
        accepted = automaton.accepts(written(value))
        assert not accepted or judge.is_valid(value), (schema, value)


def ordered(value):
    """No object in it has two members, whose order could be another than the grammar's."""
    if isinstance(value, dict):
        return len(value) < 2 and all(map(ordered, value.values()))
    return all(map(ordered, value)) if isinstance(value, list) else not isinstance(value, float)


@settings(deadline=None, max_examples=tries(50), suppress_health_check=list(HealthCheck))
@given(schema=SCHEMAS, values=st.lists(VALUES, min_size=5, max_size=20))
def test_valid_values_are_accepted(schema, values):
    """Where the order of members cannot matter, every valid value is accepted."""
    judge = jsonschema.Draft202012Validator(schema)
    valid = [value for value in values if ordered(value) and judge.is_valid(value)]
    try:
        automaton = build_automaton(schema_grammar(schema))
    except Unsupported:
        return
    except InvalidInput:
        assert not valid
        return
    for value in valid:
        assert automaton.accepts(written(value)), (schema, value)
