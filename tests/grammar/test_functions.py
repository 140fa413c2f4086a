"""Function files: every form in use becomes the same schema, and every mistake is placed."""

import json
import warnings

import pytest

from cmm.grammar import InvalidInput, load_functions, parse_functions

NUMBERS = {
    "type": "object",
    "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
    "required": ["a", "b"],
}
LISTED = {"a": {"type": "number"}, "b": {"type": "number"}}

FORMS = {
    "list": [{"name": "add", "description": "Adds.", "parameters": LISTED, "returns": {}}],
    "type words": [
        {"name": "add", "description": "Adds.", "parameters": {"a": "float", "b": "double"}}
    ],
    "older keys": [
        {
            "fn_name": "add",
            "fn_description": "Adds.",
            "args_names": ["a", "b"],
            "args_types": {"a": "float", "b": "float"},
            "return_type": "float",
        }
    ],
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "add",
                "description": "Adds.",
                "parameters": NUMBERS,
                "strict": True,
            },
        }
    ],
    "inner form": [{"name": "add", "description": "Adds.", "parameters": NUMBERS}],
    "one alone": {"name": "add", "description": "Adds.", "parameters": NUMBERS},
    "wrapper": {"tools": [{"name": "add", "description": "Adds.", "parameters": LISTED}]},
    "mcp": {"tools": [{"name": "add", "description": "Adds.", "inputSchema": NUMBERS}]},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_function(form):
    [function] = parse_functions(FORMS[form])
    assert (function.name, function.description) == ("add", "Adds.")
    assert function.parameters == NUMBERS


@pytest.mark.parametrize(
    ("parameters", "names", "required"),
    [
        ({}, [], []),
        ({"type": {"type": "string"}}, ["type"], ["type"]),
        ({"properties": {"type": "object"}}, ["properties"], ["properties"]),
        ({"type": {"type": "string"}, "properties": {"type": "array"}}, ["type", "properties"],
         ["type", "properties"]),
        ({"properties": {"type": {"type": "string"}}}, ["type"], None),
        ({"a": {"type": "string", "required": False}, "b": {"type": "int"}}, ["a", "b"], ["b"]),
        ({"a": {"type": "string", "optional": True}}, ["a"], []),
        ({"anyOf": {"type": "string"}}, ["anyOf"], ["anyOf"]),
    ],
)  # fmt: skip
def test_parameters_may_have_any_name(parameters, names, required):
    [function] = parse_functions([{"name": "f", "parameters": parameters}])
    assert list(function.parameters["properties"]) == names
    assert function.parameters.get("required") == required


def test_descriptions_enums_and_defaults_reach_the_prompt():
    described = {"u": {"type": "string", "enum": ["c", "f"], "default": "c", "description": "Unit"}}
    [function] = parse_functions([{"name": "f", "description": "D", "parameters": described}])
    tool = function.tool()
    assert tool["type"] == "function"
    assert tool["function"]["parameters"]["properties"] == described


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "there is no function in the list"),
        (3, "expected a list of functions"),
        ([3], "/0: a function is an object"),
        ([{}], "/0/name: field required"),
        ([{"name": ""}], "/0/name: string should have at least 1 character"),
        ([{"name": 3, "parameters": {}}], "/0/name: input should be a valid string"),
        ([{"name": "f"}], '/0: "f" has no parameters'),
        ([{"name": "f", "parameters": []}], "/0/parameters: input should be a valid dictionary"),
        ([{"name": "f", "description": 3, "parameters": {}}], "/0/description: input should be"),
        ([{"name": "f", "parameters": {"a": 3}}], "/0/parameters/a: a parameter is described"),
        ([{"name": "f", "parameters": {"a": {"type": "strin"}}}],
         "/0/parameters/a/type: there is no type 'strin'"),
        ([{"name": "f", "parameters": {"type": "object", "properties": {}, "required": ["x"]}}],
         '/0/parameters/required: required, but not among the parameters: "x"'),
        ([{"name": "f", "parameters": {"type": "array"}}], "/0/parameters/type: the parameters must"),
        ({"tools": [{"name": "f"}]}, '/tools/0: "f" has no parameters'),
        ([{"name": "f", "parameters": {}}, {"name": "f", "parameters": {"a": "int"}}],
         '/1: "f" is defined twice, with different definitions'),
        ([{"fn_name": "f", "args_names": ["a"], "args_types": {}}], '/0/args_types: no type is given'),
        ([{"name": "f", "parameters": {"a": {"type": "enum"}}}],
         '/0/parameters/a: the type "enum" needs its values'),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(document, message):
    with pytest.raises(InvalidInput) as error:
        parse_functions(document)
    assert message in str(error.value)


def test_a_definition_given_twice_alike_counts_once_with_a_warning():
    with pytest.warns(UserWarning, match='"f" is defined twice'):
        functions = parse_functions([{"name": "f", "parameters": {}}] * 3)
    assert len(functions) == 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"  \n", "is empty"),
        (b'[{"name": "f"\n "x"}]', "line 2 column 2: broken JSON: expecting ',' delimiter"),
        (b'[1,]', "broken JSON"),
        (b"\xff\xfe[\x00]\x00", "line 1: not UTF-8 text"),
        (b"[NaN]", "NaN is no JSON value"),
        (b'[{"name": "f", "name": "g"}]', 'the key "name" is given twice'),
        (b"[" * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_a_broken_file_is_named_with_line_and_column(tmp_path, data, message):
    path = tmp_path / "functions.json"
    path.write_bytes(data)
    with pytest.raises(InvalidInput) as error:
        load_functions(path)
    assert message in str(error.value)
    assert str(path) in str(error.value)


def test_missing_files_and_folders_are_named(tmp_path):
    for path, message in [(tmp_path / "none.json", "no such file"), (tmp_path, "is a folder")]:
        with pytest.raises(InvalidInput, match=message):
            load_functions(path)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "functions.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(FORMS["list"]).encode())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert load_functions(path)[0].parameters == NUMBERS
