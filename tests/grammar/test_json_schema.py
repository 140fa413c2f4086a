"""What each schema accepts and rejects, and what is refused."""

import json
import re
import subprocess
import sys

import hostile
import pytest

from cmm.compiler import build_automaton
from cmm.grammar import InvalidInput, Unsupported, schema_grammar, show_regex

# name: (schema, accepted texts, rejected texts)
LANGUAGES = {
    "string": (
        {"type": "string"},
        ['""', '"a b"', '"é😀"', r'"\"\\\/\b\f\n\r\t"', r'"\u00e9\uD83D\ude00\uD7FF"', '"\x7f"'],
        ["", '"', '"a', 'a"', '"a""', '"\n"', '"\x1f"', r'"\x"', r'"\u12"', r'"\ud83d"',
         r'"\ude00"', r'"\ud83d\u0041"', "'a'", ' "a"', '"a" '],
    ),
    "number": (
        {"type": "number"},
        ["0", "-0", "10", "2.5", "-0.50", "1e5", "1E+05", "1.25e-300", "9" * 40],
        ["", "-", "01", "+1", ".5", "1.", "1e", "1e+", "0x1", "NaN", "Infinity", "1 ", "--1", "1,0"],
    ),
    "integer": (
        {"type": "integer"},
        ["0", "-0", "7", "-120", "9" * 40],
        ["1.0", "1e3", "00", "-", "", "1.", "+1"],
    ),
    "boolean": ({"type": "boolean"}, ["true", "false"], ["True", "1", "null", "tru", "truefalse"]),
    "null": ({"type": "null"}, ["null"], ["None", "nul", "nulll", ""]),
    "types": ({"type": ["string", "null"]}, ['"a"', "null"], ["1", "true", "{}"]),
    "enum": (
        {"enum": ["a", "ab", 'q"', 1, -2.5, None, True, ["x", 1], {"k": "v"}]},
        ['"a"', '"ab"', r'"q\""', "1", "-2.5", "null", "true", '["x", 1]', '{"k": "v"}'],
        ['"b"', '"abc"', "2", "false", '["x",1]', "{}", '"a'],
    ),
    "enum beyond ascii": (
        {"enum": ["é", "😀"]},
        ['"é"', r'"\u00e9"', r'"\u00E9"', '"😀"', r'"\ud83d\ude00"', r'"\uD83D\uDE00"'],
        ['"e"', r'"\u00e8"', r'"\ud83d"', '"\\ud83d😀"'],
    ),
    "enum with type": ({"type": "string", "enum": ["a", 1]}, ['"a"'], ["1"]),
    "const": ({"const": {"a": [1, None]}}, ['{"a": [1, null]}'], ['{"a": [1]}', "1", '{"a":[1,null]}']),
    "object": (
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "null"}},
         "required": ["a", "b"], "additionalProperties": False},
        ['{"a": 1, "b": null}'],
        ["{}", '{"a": 1}', '{"b": null, "a": 1}', '{"a": 1,"b": null}', '{"a":1, "b": null}',
         '{"a": 1, "a": 1, "b": null}', '{"a": 1, "b": null'],
    ),
    "optional properties": (
        {"type": "object", "properties": {key: {"type": "null"} for key in "abc"}, "required": ["b"], "additionalProperties": False},
        ['{"b": null}', '{"a": null, "b": null}', '{"b": null, "c": null}',
         '{"a": null, "b": null, "c": null}'],
        ["{}", '{"a": null}', '{"a": null, "c": null}', '{, "b": null}', '{"b": null, }'],
    ),
    "all optional": (
        {"type": "object", "properties": {key: {"type": "null"} for key in "abc"}, "additionalProperties": False},
        ["{}", '{"a": null}', '{"c": null}', '{"a": null, "c": null}', '{"b": null, "c": null}'],
        ['{"c": null, "a": null}', "{, }", '{"a": null "b": null}'],
    ),
    "no properties": ({"type": "object", "additionalProperties": False}, ["{}"], ['{"a": 1}', "", "{ }"]),
    "array": (
        {"type": "array", "items": {"type": "integer"}},
        ["[]", "[1]", "[1, -2, 3]"],
        ["[1,2]", "[1, ]", "[, 1]", '["a"]', "[1", "1", "[[1]]"],
    ),
    "nested": (
        {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "array",
         "items": {"anyOf": [{"type": "boolean"}, {"type": "array", "items": {"type": "null"}}]}}},
         "required": ["a"], "additionalProperties": False}},
        ['[{"a": []}]', '[{"a": [true, [null, null]]}, {"a": [[]]}]'],
        ["[{}]", '[{"a": [null]}]', '[{"a": true}]'],
    ),
    "anyOf beginning alike": (
        {"anyOf": [{"enum": ["abc"]}, {"type": "string"}, {"const": "abd"}, {"type": "integer"}]},
        ['"abc"', '"abd"', '"abx"', '"ab"', '"a\\n"', "1"],
        ["abc", "1.5", '"abc'],
    ),
    "objects beginning alike": (
        {"anyOf": [
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "null"}},
             "required": ["a", "b"], "additionalProperties": False}]},
        ['{"a": "x"}', '{"a": "x", "b": null}'],
        ["{}", '{"b": null}'],
    ),
    "free object": (
        {"type": "object"},
        ["{}", '{"a": 1}', '{"a": {"b": [1, "x", null, {"c": []}]}, "d": true}'],
        ["[]", '{"a"}', '{"a": }', "{1: 2}", '{"a": 1,}', '{"a": {}'],
    ),
    "keys given twice": (
        {"type": "object", "properties": {"a": {}, "o": {"type": "object", "properties": {"k": {}}, "additionalProperties": False}}},
        ['{"a": 1, "b": 2, "c": 3}', '{"a": {"a": 1}, "b": {"a": 2, "b": 3}}', '{"o": {"k": 1}, "k": 2}', '{"x": ["y", "y"], "y": "y"}'],
        ['{"b": 1, "b": 2}', '{"a": 1, "b": 2, "a": 3}', '{"a": {"x": 1, "x": 1}}', '{"x": 1, "y": 2, "x": 3}',
         '{"b": 1, "\\u0062": 2}', '{"é": 1, "\\u00e9": 2}', '{"": 1, "": 2}'],
    ),
    "named keys among others": (
        {"properties": {"a": {"type": "integer"}, "é/": {"type": "integer"}}, "type": "object"},
        ['{"a": 1}', '{"ab": "x"}', '{"a": 1, "é": "x"}'],
        ['{"a": "x"}', '{"\\u0061": "x"}', '{"b": 1, "a": 2}', '{"é/": "x"}', '{"\\u00E9\\/": "x"}', '{"\\u00e9\\u002f": 1.5}'],
    ),
    "keys given twice in one of several objects": (
        {"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                   {"type": "object", "properties": {"b": {"type": "integer"}}}]},
        ['{"b": 1, "a": "x"}', '{"a": 1, "b": "x"}', '{"c": 1, "a": "x"}', '{"a": 1, "c": 2, "d": 3}'],
        ['{"a": 1, "a": 2}', '{"a": "x", "c": 2, "c": 3}', '{"a": "x", "b": "x"}', '{"a": 1, "b": "x", "b": 1}'],
    ),
    "few keys of a pattern": (
        {"type": "object", "patternProperties": {"^[ab]$": {"type": "integer"}}, "additionalProperties": False},
        ["{}", '{"a": 1}', '{"b": 1}', '{"a": 1, "b": 2}'],
        ['{"a": 1, "a": 2}', '{"c": 1}', '{"a": "x"}', '{"b": 1, "b": 2}'],
    ),
    "characters of one kind, counted": (
        {"type": "string", "pattern": "^[a-c]{2,900}$", "maxLength": 3},
        ['"ab"', '"abc"'],
        ['"a"', '"abca"', '"abd"', '""'],
    ),
    "unique strings": (
        {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True, "minItems": 1, "maxItems": 3},
        ['["a"]', '["a", "b"]', '["a", "ab", "b"]'],
        ["[]", '["a", "a"]', '["a", "b", "a"]', r'["a", "\u0061"]', '["a", "b", "c", "d"]', '[""]'],
    ),
    "no unique strings": (
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 0},
        ["[]"],
        ['["a"]', '[""]', '["a", "b"]'],
    ),
    "unique strings in arrays": (
        {"items": {"items": {"type": "string", "pattern": "^a"}, "type": "array", "uniqueItems": True}, "type": "array"},
        ['[["a", "ab"], ["a"]]', "[[], []]"],
        ['[["a", "a"]]', '[["b"]]', '[["a"], ["ab", "ab"]]'],
    ),
    "free array": ({"type": "array"}, ["[]", '[1, [2, {"a": [[]]}]]'], ["{}", "[1,2]", "[[]"]),
    "anything": ({}, ['"a"', "1.5", "null", "[]", "{}", '[{"a": [1]}]'], ["", "nul", "[}"]),
}  # fmt: skip
ENDLESS = {
    "free object",
    "free array",
    "anything",
    "keys given twice",
    "named keys among others",
    "keys given twice in one of several objects",
    "unique strings",
    "unique strings in arrays",
    "characters of one kind, counted",
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_accepted_and_rejected(name):
    schema, accepted, rejected = LANGUAGES[name]
    automaton = build_automaton(schema_grammar(schema))
    assert [text for text in accepted if not automaton.accepts(text)] == []
    assert [text for text in rejected if automaton.accepts(text)] == []


@pytest.mark.parametrize("name", sorted(LANGUAGES.keys() - ENDLESS))
def test_the_printed_regex_says_the_same(name):
    schema, accepted, rejected = LANGUAGES[name]
    regex = re.compile(show_regex(schema_grammar(schema)))
    assert [text for text in accepted if not regex.fullmatch(text)] == []
    assert [text for text in rejected if regex.fullmatch(text)] == []


@pytest.mark.parametrize("name", sorted(ENDLESS))
def test_no_regex_for_what_nests_in_itself(name):
    with pytest.raises(Unsupported, match=r"no regular expression|nests in itself|is not printed"):
        show_regex(schema_grammar(LANGUAGES[name][0]))


@pytest.mark.parametrize(
    ("schema", "kind", "message"),
    [
        (
            {"extends": {}},
            Unsupported,
            '/extends: the keyword "extends',
        ),
        ({"properties": {"a/b": {"pattern": r"(a)\1"}}}, Unsupported, "/properties/a~1b/pattern: "),
        (
            {"anyOf": [{"type": "null"}, {"$dynamicRef": "#x"}]},
            Unsupported,
            "/anyOf/1/$dynamicRef: ",
        ),
        ({"$ref": "https://example.org/x"}, Unsupported, "/$ref: the reference"),
        ({"$ref": "#/$defs/none"}, InvalidInput, "/$ref: the reference"),
        ({"$ref": "#"}, InvalidInput, "refers to itself"),
        ({"type": "strin"}, InvalidInput, "/type: there is no type 'strin'"),
        (
            {"properties": {"a": {"format": ["date"]}}},
            InvalidInput,
            "/properties/a/format: format is a text",
        ),
        ({"enum": 3}, InvalidInput, "/enum: "),
        ({"anyOf": []}, InvalidInput, "/anyOf: "),
        ({"items": 3}, InvalidInput, "/items: a schema is an object"),
        ({"maxLength": -1}, InvalidInput, "/maxLength: "),
        ({"pattern": "("}, InvalidInput, "/pattern: "),
        ({"required": True}, InvalidInput, "/required: "),
    ],
)
def test_what_is_not_enforced_is_refused_with_its_place(schema, kind, message):
    with pytest.raises(kind) as error:
        schema_grammar(schema)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "integer", "enum": ["a"]}, 'no value can meet "type" and "enum" together'),
        ({"enum": []}, 'no value can meet "enum"'),
        ({"not": {}}, 'no value can meet "not"'),
        (False, "no value can meet this"),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, 'no value can meet "allOf"'),
        ({"minLength": 3, "maxLength": 2, "type": "string"}, '"minLength"'),
        ({"type": "object", "properties": {"a": {"type": "null", "const": 1}}, "required": ["a"]},
         '/properties/a: no value can meet "type" and "const" together'),
    ],
)  # fmt: skip
def test_contradictions_are_an_error_that_names_them(schema, message):
    with pytest.raises(InvalidInput) as error:
        schema_grammar(schema)
    assert message in str(error.value)


@pytest.fixture(scope="module")
def outcomes():
    """What became of each hostile schema, in a process with little memory and little time."""
    command = [sys.executable, hostile.__file__]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return dict(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", hostile.HOSTILE)
def test_hostile_schemas_are_answered_or_refused(name, outcomes):
    _, message = hostile.HOSTILE[name]
    assert re.search(message or "^compiled$", outcomes[name])
