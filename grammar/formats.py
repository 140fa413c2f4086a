"""Call formats: how a call is written by the model, and read back.

A format is a value: what stands before the call, how a call is spelled, how it is read. To add one,
write its two functions, list it in FORMATS, and give it a row in tests/grammar/test_formats.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cmm.grammar.arguments import Argument, Arguments, texts_of
from cmm.grammar.content import ANY, Content
from cmm.grammar.errors import CmmError, Unsupported
from cmm.grammar.functions import FunctionSchema
from cmm.grammar.nodes import (
    Choice,
    Grammar,
    Joined,
    Literal,
    Mark,
    Node,
    Reference,
    Spelled,
    Text,
    choice,
    quoted,
    sequence,
)
from cmm.grammar.pattern import pattern_content
from cmm.grammar.typed import as_float, typed_value

Call = tuple[str, dict[str, Any]]
PLAIN_NAME = re.compile(r"[A-Za-z_][\w.\-/]*")


@dataclass(frozen=True)
class CallFormat:
    """One way of writing a call: its node for a function, and its parser.

    `prompt_suffix` is what stands before the call and belongs to the prompt, control tokens
    included; `shape` says to a model that does not know the format what a call looks like.
    `spell` writes one call of a function; `read` takes a written call apart.
    """

    name: str
    prompt_suffix: str
    shape: str
    spell: Callable[[FunctionSchema, Arguments], Node]
    read: Callable[[str, Mapping[str, FunctionSchema]], Call]

    def grammar(self, functions: Sequence[FunctionSchema], *, any_order: bool = False) -> Grammar:
        """The grammar of the calls of these functions; `any_order` of arguments if they are few."""
        calls: list[Node] = []
        rules: dict[str, Node] = {}
        for i, function in enumerate(functions):
            arguments = Arguments(function, f"f{i}_", any_order)
            try:
                calls.append(self.spell(function, arguments))
            except CmmError as error:
                raise error.moved(function.place_of) from None
            rules |= arguments.rules
        return Grammar(choice(calls), rules)

    def parse(self, text: str, functions: Sequence[FunctionSchema]) -> Call:
        """Name and typed arguments of a written call.

        >>> f = FunctionSchema(name="f", parameters={"properties": {"a": {"type": "number"}}})
        >>> HERMES.parse('{"name": "f", "arguments": {"a": 2}}', [f])
        ('f', {'a': 2.0})
        """
        by_name = {function.name: function for function in functions}
        name, arguments = self.read(text, by_name)
        return name, typed_value(arguments, by_name[name].parameters)


def from_json(text: str) -> Any:
    """A JSON value, numbers finite."""
    return json.loads(text, parse_float=as_float)


# JSON in two spellings. Qwen2.5, Qwen3, Hermes: {"name": "f", "arguments": {"a": 1}}, in
# <tool_call> tags; Llama 3: {"name": "f", "parameters": {"a": 1}}, bare.


def _json_format(name: str, prompt_suffix: str, key: str) -> CallFormat:
    def spell(function: FunctionSchema, arguments: Arguments) -> Node:
        opening = Literal(f', "{key}": ')
        return sequence(
            Literal('{"name": '), quoted(function.name), opening, arguments.as_object(),
            Literal("}"),
        )  # fmt: skip

    def read(text: str, functions: Mapping[str, FunctionSchema]) -> Call:
        call = from_json(text)
        return call["name"], call[key]

    shape = f'a JSON object {{"name": <function name>, "{key}": <object of arguments>}}'
    return CallFormat(name, prompt_suffix, shape, spell, read)


HERMES = _json_format("hermes", "<tool_call>\n", "arguments")
PLAIN_JSON = _json_format("json", "", "parameters")


# Qwen3-Coder, Qwen3.5: <function=f>\n<parameter=a>\n1\n</parameter>\n</function>, strings as they
# are, other values as JSON.

PARAMETER_END = "\n</parameter>"


def _spell_xml(function: FunctionSchema, arguments: Arguments) -> Node:
    units = []
    for number, argument in enumerate(arguments.each()):
        opening = Literal(f"<parameter={plain(argument.name, function)}")
        if argument.text is None:
            value = sequence(Literal(">\n"), argument.value, Literal(PARAMETER_END))
        else:
            value = raw_text(
                argument.text, Literal(">\n"), Literal(PARAMETER_END), arguments, number
            )
        units.append((sequence(opening, value, Literal("\n")), argument.required))
    name = Literal(f"<function={plain(function.name, function)}>\n")
    return sequence(name, arguments.ordered(units), Literal("</function>"))


def raw_text(
    content: Content, opening: Node, end: Literal | Mark, arguments: Arguments, number: int
) -> Node:
    """The texts of a content as they are; none holds what ends it, and there is one at least.

    They are a rule, entered by its first character and left by its last, as all strings are.
    """
    points = "".join(f"\\u{ord(char):04x}" for char in end.text)
    allowed = content - pattern_content(points)
    if allowed.is_empty:
        raise Unsupported(f"a text that holds {end.text!r}, which ends it in this format")
    rule = "text" if content == ANY else f"{arguments.prefix}text{number}"
    arguments.rules[rule] = sequence(opening, Spelled(allowed), end)
    return Reference(rule)


def plain(name: str, function: FunctionSchema) -> str:
    """A name that is written as it is."""
    if not PLAIN_NAME.fullmatch(name):
        raise Unsupported(
            f"the name {json.dumps(name)} cannot be written in this format (function "
            f"{json.dumps(function.name)})",
            advice="use a JSON format (--format hermes)",
        )
    return name


def _read_xml(text: str, functions: Mapping[str, FunctionSchema]) -> Call:
    name, _, rest = text.removeprefix("<function=").partition(">\n")
    arguments, texts = {}, texts_of(functions[name])
    while rest.startswith("<parameter="):
        key, _, rest = rest.removeprefix("<parameter=").partition(">\n")
        value, _, rest = rest.partition(f"{PARAMETER_END}\n")
        arguments[key] = value if key in texts else from_json(value)
    return name, arguments


XML_SHAPE = (
    "<function=NAME>, then for each argument <parameter=KEY>, its value and </parameter>, each on "
    "lines of its own, then </function>"
)
XML = CallFormat("xml", "<tool_call>\n", XML_SHAPE, _spell_xml, _read_xml)


# Python's own calls: f(a=1, b="x", c=True). Values within lists and objects are JSON.

PYTHON = {"true": "True", "false": "False", "null": "None"}


def _spell_pythonic(function: FunctionSchema, arguments: Arguments) -> Node:
    units = [
        (sequence(Literal(f", {plain(a.name, function)}="), python_value(a.value)), a.required)
        for a in arguments.each()
    ]
    listed = Joined(arguments.ordered(units), ", ")
    return sequence(Literal(f"{plain(function.name, function)}("), listed, Literal(")"))


def python_value(node: Node) -> Node:
    """The value of an argument, Python's names for true, false and null."""
    match node:
        case Literal(text):
            return Literal(PYTHON.get(text, text))
        case Choice(options):
            return choice(map(python_value, options))
        case _:
            return node


def _read_pythonic(text: str, functions: Mapping[str, FunctionSchema]) -> Call:
    name, _, rest = text.partition("(")
    arguments: dict[str, Any] = {}
    named = {word: json.loads(literal) for literal, word in PYTHON.items()}
    decoder = json.JSONDecoder(parse_float=as_float)
    while rest != ")":
        key, _, rest = rest.removeprefix(", ").partition("=")
        word = re.match("True|False|None", rest)
        arguments[key], end = (named[word[0]], word.end()) if word else decoder.raw_decode(rest)
        rest = rest[end:]
    return name, arguments


PYTHONIC_SHAPE = 'a call in Python, with keywords, such as name(key=1.5, other="text")'
PYTHONIC = CallFormat("pythonic", "", PYTHONIC_SHAPE, _spell_pythonic, _read_pythonic)


# FunctionGemma: call:f{a:1,b:<escape>x<escape>}, in which <escape> is a control token; only
# arguments that are strings, numbers, booleans or null.

ESCAPE = "<escape>"


def _spell_gemma(function: FunctionSchema, arguments: Arguments) -> Node:
    units = []
    for number, argument in enumerate(arguments.each()):
        opening = Literal(f",{plain(argument.name, function)}:")
        value = gemma_value(argument, arguments, number)
        units.append((sequence(opening, value), argument.required))
    listed = Joined(arguments.ordered(units), ",")
    return sequence(Literal(f"call:{plain(function.name, function)}{{"), listed, Literal("}"))


def gemma_value(argument: Argument, arguments: Arguments, number: int) -> Node:
    """A string between marks, or a JSON scalar."""
    if argument.text is not None:
        return raw_text(argument.text, Mark(ESCAPE), Mark(ESCAPE), arguments, number)
    options = argument.value.options if isinstance(argument.value, Choice) else (argument.value,)
    if any(isinstance(option, Reference) for option in options) or _holds_text(options):
        raise Unsupported(
            f"the argument {json.dumps(argument.name)}: lists, objects and strings beside other "
            "values in this format",
            advice="use a JSON format (--format hermes)",
        )
    return argument.value


def _holds_text(options: Sequence[Node]) -> bool:
    return any(isinstance(o, Text) or (isinstance(o, Literal) and o.text[:1] == '"')
               for o in options)  # fmt: skip


def _read_gemma(text: str, functions: Mapping[str, FunctionSchema]) -> Call:
    name, _, rest = text.removeprefix("call:").partition("{")
    arguments: dict[str, Any] = {}
    while rest != "}":
        key, _, rest = rest.removeprefix(",").partition(":")
        if rest.startswith(ESCAPE):
            arguments[key], _, rest = rest.removeprefix(ESCAPE).partition(ESCAPE)
        else:
            value = re.match(r"[^,}]*", rest)
            assert value is not None  # the pattern matches nothing as well
            arguments[key], rest = from_json(value[0]), rest[value.end() :]
    return name, arguments


GEMMA_SHAPE = "call:NAME{key:1.5,other:<escape>text<escape>}"
GEMMA = CallFormat("gemma", "<start_function_call>", GEMMA_SHAPE, _spell_gemma, _read_gemma)

FORMATS = {form.name: form for form in (HERMES, PLAIN_JSON, XML, PYTHONIC, GEMMA)}


def call_grammar(functions: Sequence[FunctionSchema], form: CallFormat = HERMES) -> Grammar:
    """The grammar of every valid call of the functions.

    >>> print(call_grammar([FunctionSchema(name="now", parameters={})]))
    root = "{\\"name\\": \\"now\\", \\"arguments\\": " ("{" joined by ", "(nothing) "}") "}"
    """
    return form.grammar(functions)
