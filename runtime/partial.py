"""A call that is being written, as far as it can be read, in any format."""

from __future__ import annotations

import json
import re

# The name of a function at the beginning of a call, in each format.
NAME = re.compile(
    r"""\{"name": "(?P<json>(?:[^"\\]|\\.)*)|<function=(?P<xml>[^>]*)|call:(?P<gemma>[^{]*)"""
    r"|(?P<pythonic>[^\W\d][^(<{]*)"
)
ARGUMENTS = re.compile(r'", "(?:arguments|parameters)": \{?')
DECODER = json.JSONDecoder()


def name_span(text: str) -> range:
    """Where the function's name stands in a written call.

    >>> text = '{"name": "add", "arguments": {'
    >>> span = name_span(text)
    >>> text[span.start : span.stop]
    'add'
    """
    found = NAME.match(text)
    if found is None or found.lastgroup is None:
        return range(0)
    return range(*found.span(found.lastgroup))


def partial_call(text: str) -> str:
    """A call that is not finished yet, as Python writes calls; the text where it is not known how.

    >>> partial_call('{"name": "fn_add_numbers", "arguments": {"a": 2.0, "b')
    'fn_add_numbers(a=2.0, b'
    >>> partial_call("<function=greet>\\n<parameter=who>\\nAnn")
    'greet(who=Ann'
    """
    span = name_span(text)
    name, rest = text[span.start : span.stop], text[span.stop :]
    if text.startswith("{"):
        opening = ARGUMENTS.match(rest)
        return f"{name}({_json_arguments(rest[opening.end() :])}" if opening else name
    if text.startswith("<function="):
        return f"{name}({_xml_arguments(rest)}" if rest.startswith(">") else name
    return text


def _json_arguments(text: str) -> str:
    """The members of an object, the last of which may be cut."""
    pieces: list[str] = []
    while text:
        if text.startswith("}"):
            return ", ".join(pieces) + ")"
        try:
            key, end = DECODER.raw_decode(text)
            value, after = DECODER.raw_decode(text, end + len(": "))
        except ValueError:
            key, colon, value = text.partition('":')
            pieces.append(key.removeprefix('"') + ("=" if colon else "") + value.lstrip())
            break
        if after == len(text):  # a number may go on
            pieces.append(f"{key}={text[end + len(': ') :]}")
            break
        pieces.append(f"{key}={value!r}")
        text = text[after:].removeprefix(", ")
    return ", ".join(pieces)


def _xml_arguments(text: str) -> str:
    values = text.removeprefix(">").removesuffix("</function>").split("<parameter=")[1:]
    pairs = (value.replace("\n</parameter>\n", "").split(">\n", 1) for value in values)
    return ", ".join("=".join(pair) for pair in pairs)
