"""The call formats: how a call is written by the model, and read back.

To add one, write its three functions, list it in FORMATS, and give it a row in
tests/grammar/test_every_format.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from cmm.grammar.arguments import Argument, Arguments
from cmm.grammar.call_format import (
    CallFormat,
    TextsOf,
    Written,
    from_json,
    plain,
    raw,
    raw_text,
    read_members,
    read_value,
    to_json,
    without_begun,
)
from cmm.grammar.errors import Unsupported
from cmm.grammar.functions import FunctionSchema
from cmm.grammar.nodes import (
    Choice,
    Grammar,
    Joined,
    Literal,
    Mark,
    Node,
    Reference,
    Text,
    choice,
    quoted,
    sequence,
)

# JSON in two spellings. Qwen2.5, Qwen3, Hermes: {"name": "f", "arguments": {"a": 1}}, in
# <tool_call> tags; Llama 3: {"name": "f", "parameters": {"a": 1}}, bare.


def _json_format(name: str, prompt_suffix: str, key: str) -> CallFormat:
    def spell(function: FunctionSchema, arguments: Arguments) -> Node:
        opening = Literal(f', "{key}": ')
        return sequence(
            Literal('{"name": '), quoted(function.name), opening, arguments.as_object(),
            Literal("}"),
        )  # fmt: skip

    def read(text: str, texts: TextsOf) -> Written:
        found = re.match(r'\{"name": "((?:[^"\\]|\\.)*)', text)
        if found is None:
            return Written("", range(0))
        place, name = range(*found.span(1)), found[1]
        opening, rest = f'", "{key}": {{', text[place.stop :]
        if not rest.startswith(opening):
            return Written(name, place)
        return Written(from_json(f'"{name}"'), place, *read_members(rest.removeprefix(opening)))

    shape = f'a JSON object {{"name": <function name>, "{key}": <object of arguments>}}'
    return CallFormat(
        name, prompt_suffix, shape, spell, read,
        lambda function, arguments, texts: to_json({"name": function, key: arguments}),
    )  # fmt: skip


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
            value = raw_text(argument, Literal(">\n"), Literal(PARAMETER_END), arguments, number)
        units.append((sequence(opening, value, Literal("\n")), argument.required))
    name = Literal(f"<function={plain(function.name, function)}>\n")
    return sequence(name, arguments.ordered(units), Literal("</function>"))


def _read_xml(text: str, texts: TextsOf) -> Written:
    found = re.match(r"<function=([^>\n]*)(>\n)?", text)
    if found is None:
        return Written("", range(0))
    name, place, rest = found[1], range(*found.span(1)), text[found.end() :]
    arguments: dict[str, Any] = {}
    while rest.startswith("<parameter="):
        key, begun, value = rest.removeprefix("<parameter=").partition(">\n")
        value, ended, rest = value.partition(f"{PARAMETER_END}\n")
        is_text = key in texts(name)
        if not ended:
            value = without_begun(value, f"{PARAMETER_END}\n")
            cut = f"{key}=" + '"' * is_text + value if begun else key.rstrip(">")
            return Written(name, place, arguments, cut)
        arguments[key] = value if is_text else from_json(value)
    return Written(name, place, arguments if found[2] else None, closed=rest == "</function>")


def _write_xml(name: str, arguments: Mapping[str, Any], texts: TextsOf) -> str:
    shown = {key: raw(value, PARAMETER_END) if key in texts(name) else to_json(value)
             for key, value in arguments.items()}  # fmt: skip
    units = (f"<parameter={key}>\n{text}{PARAMETER_END}\n" for key, text in shown.items())
    return f"<function={name}>\n{''.join(units)}</function>"


XML_SHAPE = (
    "<function=NAME>, then for each argument <parameter=KEY>, its value and </parameter>, each on "
    "lines of its own, then </function>"
)
XML = CallFormat(
    "xml", "<tool_call>\n", XML_SHAPE, _spell_xml, _read_xml, _write_xml, raw_strings=True
)


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


def _read_pythonic(text: str, texts: TextsOf) -> Written:
    name, opened, rest = text.partition("(")
    place = range(len(name))
    arguments: dict[str, Any] = {}
    named = {word: json.loads(literal) for literal, word in PYTHON.items()}
    while rest and rest != ")":
        key, begun, value = rest.lstrip(", ").partition("=")
        word = re.match(r"(True|False|None)[,)]", value)
        found, end = (named[word[1]], word.end(1)) if word else read_value(value)
        if end is None:
            return Written(name, place, arguments, key + begun + value)
        arguments[key], rest = found, value[end:]
    return Written(name, place, arguments if opened else None, closed=rest == ")")


def _write_pythonic(name: str, arguments: Mapping[str, Any], texts: TextsOf) -> str:
    shown = {key: to_json(value) for key, value in arguments.items()}
    listed = ", ".join(f"{key}={PYTHON.get(text, text)}" for key, text in shown.items())
    return f"{name}({listed})"


PYTHONIC_SHAPE = 'a call in Python, with keywords, such as name(key=1.5, other="text")'
PYTHONIC = CallFormat(
    "pythonic", "", PYTHONIC_SHAPE, _spell_pythonic, _read_pythonic, _write_pythonic
)


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
        return raw_text(argument, Mark(ESCAPE), Mark(ESCAPE), arguments, number)
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


def _read_gemma(text: str, texts: TextsOf) -> Written:
    found = re.match(r"call:([^{]*)(\{)?", text)
    if found is None:
        return Written("", range(0))
    name, place, rest = found[1], range(*found.span(1)), text[found.end() :]
    arguments: dict[str, Any] = {}
    while rest and rest != "}":
        key, begun, value = rest.removeprefix(",").partition(":")
        is_text = value.startswith(ESCAPE)
        value = value.removeprefix(ESCAPE)
        ends = [value.find(end) for end in ((ESCAPE,) if is_text else (",", "}")) if end in value]
        if not ends:
            shown = '"' * is_text + without_begun(value, ESCAPE)
            return Written(name, place, arguments, f"{key}={shown}" if begun else key)
        arguments[key] = value[: min(ends)] if is_text else from_json(value[: min(ends)])
        rest = value[min(ends) :].removeprefix(ESCAPE)
    return Written(name, place, arguments if found[2] else None, closed=rest == "}")


def _write_gemma(name: str, arguments: Mapping[str, Any], texts: TextsOf) -> str:
    shown = {k: f"{ESCAPE}{raw(v, ESCAPE)}{ESCAPE}" if k in texts(name) else to_json(v)
             for k, v in arguments.items()}  # fmt: skip
    return f"call:{name}{{{','.join(f'{key}:{text}' for key, text in shown.items())}}}"


GEMMA_SHAPE = "call:NAME{key:1.5,other:<escape>text<escape>}"
GEMMA = CallFormat(
    "gemma", "<start_function_call>", GEMMA_SHAPE, _spell_gemma, _read_gemma, _write_gemma
)

FORMATS = {form.name: form for form in (HERMES, PLAIN_JSON, XML, PYTHONIC, GEMMA)}


def call_grammar(functions: Sequence[FunctionSchema], form: CallFormat = HERMES) -> Grammar:
    """The grammar of every valid call of the functions.

    >>> print(call_grammar([FunctionSchema(name="now", parameters={})]))
    root = "{\\"name\\": \\"now\\", \\"arguments\\": " ("{" joined by ", "(nothing) "}") "}"
    """
    return form.grammar(functions)
