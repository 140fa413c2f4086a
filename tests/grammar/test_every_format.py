"""Each call format: a call that is spelled in it is accepted, and read back equal."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scale import tries

from cmm.compiler import build_automaton
from cmm.compiler.utf8 import control_token, written_as
from cmm.grammar import Unsupported, parse_functions
from cmm.grammar.formats import FORMATS

# A way to write a call, told apart from the one that is tested; a new format needs a line in each.


def spelled_json(key):
    return lambda name, arguments, texts: json.dumps(
        {"name": name, key: arguments}, ensure_ascii=False
    )


def spelled_xml(name, arguments, texts):
    parameters = "".join(
        f"<parameter={key}>\n{value if key in texts else json.dumps(value, ensure_ascii=False)}\n</parameter>\n"
        for key, value in arguments.items()
    )
    return f"<function={name}>\n{parameters}</function>"


def spelled_pythonic(name, arguments, texts):
    def value(v):
        return (
            repr(v)
            if (v in (None, True, False) and not isinstance(v, int | float)) or isinstance(v, bool)
            else json.dumps(v, ensure_ascii=False)
        )

    return f"{name}({', '.join(f'{k}={value(v)}' for k, v in arguments.items())})"


def spelled_gemma(name, arguments, texts):
    def value(k, v):
        return f"<escape>{v}<escape>" if k in texts else json.dumps(v)

    return f"call:{name}{{{','.join(f'{k}:{value(k, v)}' for k, v in arguments.items())}}}"


SPELLED = {
    "hermes": spelled_json("arguments"),
    "json": spelled_json("parameters"),
    "xml": spelled_xml,
    "pythonic": spelled_pythonic,
    "gemma": spelled_gemma,
}  # fmt: skip
WITHOUT_NESTING = {"gemma"}
MARKS = {"gemma": ["<escape>"]}  # what is a control token where the model has one of that text

numbers = st.floats(allow_nan=False, allow_infinity=False)
words = st.text(max_size=12)
PAIR = {
    "type": "object",
    "properties": {"z": {"type": "number"}, "k": {"type": "string"}, "b": {"type": "array"}},
    "required": ["k", "z"],
}
pair_values = st.fixed_dictionaries(
    {"z": numbers, "k": words}, optional={"b": st.lists(words)}
).map(lambda pair: {key: pair[key] for key in PAIR["properties"] if key in pair})
KINDS = {  # schema, values; the first ones are scalars
    "string": ({"type": "string"}, words),
    "short": ({"type": "string", "maxLength": 5}, st.text(max_size=5)),
    "word": ({"type": "string", "pattern": "^[a-z]+$"}, st.from_regex(r"\A[a-z]+\Z")),
    "choice": ({"enum": ["a", "b c", "<d>"]}, st.sampled_from(["a", "b c", "<d>"])),
    "number": ({"type": "number"}, numbers),
    "integer": ({"type": "integer"}, st.integers()),
    "flag": ({"type": "boolean"}, st.booleans()),
    "maybe": ({"type": ["integer", "null"]}, st.none() | st.integers()),
    "list": ({"type": "array", "items": {"type": "string"}}, st.lists(words, max_size=3)),
    "object": ({"type": "object", "properties": {"k": {"type": "boolean"}}, "required": ["k"]}, st.fixed_dictionaries({"k": st.booleans()})),
    "either": ({"type": ["string", "integer"]}, words | st.integers()),
    "perhaps": ({"type": ["string", "null"]}, words | st.none()),
    "listed": ({"enum": [1, 2.5, "x", None, True]}, st.sampled_from([1, 2.5, "x", None, True])),
    "pair": (PAIR, pair_values),
    "pairs": ({"type": "array", "items": PAIR}, st.lists(pair_values, max_size=2)),
}  # fmt: skip
SCALARS = ("string", "short", "word", "choice", "number", "integer", "flag", "maybe")


@st.composite
def calls(draw, kinds):
    """A function, some of its arguments, and which of these are strings alone."""
    chosen = draw(st.lists(st.sampled_from(kinds), max_size=4))
    names = draw(st.permutations(["a", "b_2", "camelCase", "with.dot"]))[: len(chosen)]
    required = [name for name in names if draw(st.booleans())]
    properties = {name: KINDS[kind][0] for name, kind in zip(names, chosen, strict=True)}
    function = {
        "name": "do_it",
        "parameters": {"type": "object", "properties": properties, "required": required},
    }
    given_names = [name for name in names if name in required or draw(st.booleans())]
    values = dict(zip(names, chosen, strict=True))
    arguments = {name: draw(KINDS[values[name]][1]) for name in given_names}
    texts = {name for name in names if values[name] in ("string", "short", "word", "choice")}
    return function, arguments, texts


def backwards(value):
    """The same value, the keys of objects the other way round."""
    if isinstance(value, dict):
        return {key: backwards(value[key]) for key in reversed(value)}
    return [backwards(item) for item in value] if isinstance(value, list) else value


def check_beginning(read, text, made):
    """What is read of a call that is not finished is a part of it."""
    _, arguments, _ = made
    written = read(text)
    assert "do_it".startswith(written.name)
    assert text[written.place.start : written.place.stop] == written.name
    assert {key: arguments[key] for key in written.arguments or {}} == (written.arguments or {})
    assert str(written).startswith(written.name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_spelled_call_is_accepted_and_read_back_equal(name):
    form, kinds = FORMATS[name], SCALARS if name in WITHOUT_NESTING else tuple(KINDS)

    @settings(max_examples=tries(25), deadline=None)
    @given(calls(kinds), st.data())
    def holds(made, data):
        function, arguments, texts = made
        functions = parse_functions([function])
        text = SPELLED[name]("do_it", arguments, texts)
        assert build_automaton(form.grammar(functions)).accepts(text)
        assert form.parse(text, functions) == ("do_it", arguments)
        assert form.written("do_it", backwards(arguments), functions) == text
        check_beginning(form.reader(functions), text[: data.draw(st.integers(0, len(text)))], made)
        for mark in MARKS.get(name, ()):
            automaton = build_automaton(form.grammar(functions), controls=[mark])
            marked = text.encode().replace(mark.encode(), control_token(mark))
            assert automaton.accepts(marked)
            assert automaton.accepts(text) == (marked == text.encode())
            assert written_as([marked]).decode() == text

    holds()


@pytest.mark.parametrize("name", FORMATS)
def test_arguments_in_any_order(name):
    properties = {"a": {"type": "integer"}, "b": {"type": "string"}}
    functions = parse_functions(
        [
            {
                "name": "f",
                "parameters": {"type": "object", "properties": properties, "required": ["a"]},
            }
        ]
    )
    text = SPELLED[name]("f", {"b": "x", "a": 1}, {"b"})
    form = FORMATS[name]
    assert not build_automaton(form.grammar(functions)).accepts(text)
    assert build_automaton(form.grammar(functions, any_order=True)).accepts(text)
    assert form.parse(text, functions) == ("f", {"a": 1, "b": "x"})
    alone = SPELLED[name]("f", {"b": "x"}, {"b"})
    assert not build_automaton(form.grammar(functions, any_order=True)).accepts(alone)


# What is shown of a call while it is written: the format, so much of it, and what a person reads.
BEGUN = [
    ("hermes", '{"na', ""),
    ("hermes", '{"name": "f', "f"),
    ("hermes", '{"name": "f", "argu', "f"),
    ("hermes", '{"name": "f", "arguments": {"n": 2.0, "s', "f(n=2.0, s"),
    ("hermes", '{"name": "f", "arguments": {"n":', "f(n="),
    ("hermes", '{"name": "f", "arguments": {"n": 2.', "f(n=2."),
    ("pythonic", "f(n=1.5e", "f(n=1.5e"),
    ("hermes", '{"name": "f", "arguments": {"s": "ab c', 'f(s="ab c'),
    ("hermes", '{"name": "f", "arguments": {"s": "ab c", "b": tr', "f(s='ab c', b=tr"),
    ("hermes", '{"name": "f", "arguments": {"s": "}}"}}', "f(s='}}')"),
    ("json", '{"name": "f", "parameters": {"l": [1, 2', "f(l=[1, 2"),
    ("json", '{"name": "f", "parameters": {"l": {"k": {}}', "f(l={'k': {}}"),
    ("json", '{"name": "f", "parameters": {}}', "f()"),
    ("json", '{"name": "f", "arguments": {}}', "f"),
    ("xml", "<func", ""),
    ("xml", "<function=f>", "f"),
    ("xml", "<function=f>\n<parameter=n>", "f(n"),
    ("xml", "<function=f>\n<parameter=n>\n1", "f(n=1"),
    ("xml", "<function=f>\n<parameter=n>\n1\n</parameter>\n<parameter=s>\nx", 'f(n=1, s="x'),
    ("xml", "<function=f>\n<parameter=s>\n<parameter=n>\n</par", 'f(s="<parameter=n>'),
    ("xml", "<function=f>\n<parameter=n>\n1\n</parameter>\n</function>", "f(n=1)"),
    ("pythonic", "f", "f"),
    ("pythonic", "f(n=1, s", "f(n=1, s"),
    ("pythonic", "f(n=1,", "f(n=1"),
    ("hermes", '{"name": "f", "arguments": {"n": 1,', "f(n=1"),
    ("pythonic", 'f(s="a, b=1", b=Tr', "f(s='a, b=1', b=Tr"),
    ("pythonic", 'f(b=True, s="x")', "f(b=True, s='x')"),
    ("gemma", "ca", ""),
    ("gemma", "call:f", "f"),
    ("gemma", "call:f{n:1", "f(n=1"),
    ("gemma", "call:f{n:1,s:<esc", "f(n=1, s="),
    ("gemma", "call:f{n:1,s:<escape>x,n:2", 'f(n=1, s="x,n:2'),
    ("gemma", "call:f{s:<escape>x<escape>,n", "f(s='x', n"),
    ("gemma", "call:f{s:<escape><escape>}", "f(s='')"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "shown"), BEGUN)
def test_what_is_shown_of_a_call_that_is_being_written(name, text, shown):
    parameters = {"n": {"type": "number"}, "s": {"type": "string"}, "b": {"type": "boolean"}}
    functions = parse_functions([{"name": "f", "parameters": parameters}])
    assert str(FORMATS[name].reader(functions)(text)) == shown


S = {"type": "string"}
REFUSED = [
    ("xml", {"a b": S}, "cannot be written in this format"),
    (
        "xml",
        {"type": "object", "properties": {"a": S}, "additionalProperties": S},
        "arguments that are not named",
    ),
    (
        "xml",
        {"type": "object", "properties": {"a": S}, "minProperties": 1},
        "a demand on the number of arguments",
    ),
    (
        "pythonic",
        {
            "type": "object",
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            "properties": {"a": S, "b": S},
        },
        "alternatives between",
    ),
    ("xml", {"a": {"const": "x\n</parameter>\n"}}, "ends a text in this format"),
    ("gemma", {"a": {"const": "<escape>"}}, "ends a text in this format"),
    (
        "xml",
        {"a": {"enum": ["b", "x\n</parameter>"]}},
        r'the text "x\\n</parameter>" with .*--format hermes',
    ),
    ("gemma", {"a": {"enum": ["b", "<escape>"]}}, 'the text "<escape>" with .*--format hermes'),
    ("gemma", {"a": {"enum": [*map(str, range(200)), "1<escape>"]}}, 'the text "1<escape>" with'),
    ("gemma", {"a": {"type": "string", "pattern": "^(b|<escape>c)$"}}, 'the text "<escape>c" with'),
    ("gemma", {"a": {"type": "string", "pattern": "<escape>"}}, "texts with .*--format hermes"),
    ("gemma", {"a": {"type": "array"}}, "lists, objects and strings beside"),
    ("gemma", {"a": {"type": ["string", "null"]}}, "lists, objects and strings beside"),
]


@pytest.mark.parametrize(("name", "parameters", "message"), REFUSED)
def test_what_a_format_cannot_write_is_refused(name, parameters, message):
    with pytest.raises(Unsupported, match=message):
        FORMATS[name].grammar(parse_functions([{"name": "f", "parameters": parameters}]))


WRONG = [
    (
        "xml",
        "<function=f>\n<parameter=a>\nx\n</parameter>\n<parameter=a>\nx\n</parameter>\n</function>",
    ),
    ("xml", "<function=f>\n<parameter=a>\nx</parameter>\n</function>"),
    ("xml", "<function=f>\n</function>"),
    ("pythonic", 'f(a="x",)'),
    ("pythonic", "f(a='x')"),
    ("pythonic", "f()"),
    ("gemma", "call:f{a:<escape>x}"),
    ("gemma", "call:f{a:x}"),
    ("json", '{"name": "f", "arguments": {"a": "x"}}'),
]


@pytest.mark.parametrize(("name", "text"), WRONG)
def test_what_is_no_call_is_rejected(name, text):
    functions = parse_functions([{"name": "f", "parameters": {"a": "string"}}])
    assert not build_automaton(FORMATS[name].grammar(functions)).accepts(text)


# A schema, a value in another spelling than the grammar's, and how it is written in every format.
RESPELLED = [
    ({"type": "integer"}, 2.0, "2"),
    ({"enum": [1, 2.5]}, 1.0, "1"),
    ({"enum": [1, 2.5]}, 2.5, "2.5"),
    ({"type": "number"}, 2, "2.0"),
    ({"type": ["integer", "null"]}, None, "null"),
]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("schema", "value", "spelled"), RESPELLED)
def test_values_are_written_as_the_schema_types_them(name, schema, value, spelled):
    form = FORMATS[name]
    functions = parse_functions([{"name": "f", "parameters": {"a": schema}}])
    text = form.written("f", {"a": value}, functions)
    assert build_automaton(form.grammar(functions)).accepts(text)
    assert form.parse(text, functions) == ("f", {"a": value})
    assert {"null": "None"}.get(spelled, spelled) in text or spelled in text


@pytest.mark.parametrize(
    ("name", "functions", "value", "text"),
    [
        ("xml", {"a": {"type": ["string", "null"]}}, "x", '\n"x"\n'),
        ("xml", {"a": {}}, "x", '\n"x"\n'),
        ("xml", {"a": S}, "x", "\nx\n"),
        ("xml", {"b": S}, "x", "\nx\n"),  # another function of that name: as any example
        ("xml", None, "x", "\nx\n"),
        ("xml", {"a": {"type": "integer"}}, "x", "\nx\n"),
        ("gemma", None, "x", ":<escape>x<escape>"),
        ("pythonic", {"a": {"type": ["string", "null"]}}, None, "=None"),
    ],
)  # fmt: skip
def test_an_example_is_written_as_its_function_says(name, functions, value, text):
    known = parse_functions([{"name": "f", "parameters": functions}]) if functions else ()
    assert text in FORMATS[name].written("f", {"a": value}, known)


@pytest.mark.parametrize(("name", "value"), [("xml", "x\n</parameter>"), ("gemma", "<escape>")])
def test_a_text_that_would_end_itself_is_not_written(name, value):
    known = parse_functions([{"name": "f", "parameters": {"a": S}}])
    for functions in ((), known):
        with pytest.raises(Unsupported, match="ends a text in this format"):
            FORMATS[name].written("f", {"a": value}, functions)
