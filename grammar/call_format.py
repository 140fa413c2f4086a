"""What a call format is: how a call is spelled, and how a written one is read, finished or not."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from cmm.grammar.arguments import Argument, Arguments, texts_of
from cmm.grammar.content import ANY
from cmm.grammar.errors import CmmError, Unsupported
from cmm.grammar.functions import FunctionSchema
from cmm.grammar.nodes import Grammar, Literal, Mark, Node, Reference, Spelled, choice, sequence
from cmm.grammar.pattern import pattern_content
from cmm.grammar.typed import as_float, is_typed, typed_value

Call = tuple[str, dict[str, Any]]
TextsOf = Callable[[str], frozenset[str]]  # function's name -> its arguments that are strings alone
PLAIN_NAME = re.compile(r"[A-Za-z_][\w.\-/]*")
LISTED = 64  # so many texts are each one that was meant, however they are given
DECODER = json.JSONDecoder(parse_float=as_float)


@dataclass(frozen=True)
class Written:
    """A call as far as it is written; printed as Python writes calls.

    >>> print(Written("greet", range(5), {"times": 2}, 'who="An'))
    greet(times=2, who="An
    """

    name: str
    place: range  # of the name in the text
    arguments: Mapping[str, Any] | None = None  # those that are finished; None: none can be yet
    cut: str = ""  # the argument that is being written
    closed: bool = False

    def __str__(self) -> str:
        if self.arguments is None:
            return self.name
        shown = [f"{key}={value!r}" for key, value in self.arguments.items()]
        listed = ", ".join([*shown, *([self.cut] if self.cut else [])])
        return f"{self.name}({listed}" + ")" * self.closed


@dataclass(frozen=True)
class CallFormat:
    """One way of writing a call: its node for a function, and its reader.

    `prompt_suffix` is what stands before the call and belongs to the prompt, control tokens
    included; `shape` says to a model that does not know the format what a call looks like.
    `spell` says how a call of a function may be written; `read` takes a written call apart, or its
    beginning; `write` writes a name and arguments, those that are strings alone told.
    """

    name: str
    prompt_suffix: str
    shape: str
    spell: Callable[[FunctionSchema, Arguments], Node]
    read: Callable[[str, TextsOf], Written]
    write: Callable[[str, Mapping[str, Any], TextsOf], str]
    raw_strings: bool = False  # chat templates write a string as it is, wherever it comes from

    def grammar(self, functions: Sequence[FunctionSchema], *, any_order: bool = False) -> Grammar:
        """The grammar of the calls of these functions; `any_order` of arguments if they are few."""
        calls: list[Node] = []
        rules: dict[str, Node] = {}
        for i, function in enumerate(functions):
            arguments = Arguments(function, f"f{i}_", any_order)
            try:
                calls.append(self.spell(function, arguments))
            except CmmError as error:
                raise function.located(error) from None
            rules |= arguments.rules
        return Grammar(choice(calls), rules)

    def reader(self, functions: Sequence[FunctionSchema]) -> Callable[[str], Written]:
        """What reads calls of these functions, and beginnings of calls.

        >>> import cmm.grammar.formats
        >>> f = FunctionSchema(name="f", parameters={"properties": {"a": {"type": "string"}}})
        >>> print(cmm.grammar.formats.XML.reader([f])("<function=f>\\n<parameter=a>\\nx"))
        f(a="x
        """
        by_name = {function.name: function for function in functions}

        @cache
        def texts(name: str) -> frozenset[str]:
            return texts_of(by_name[name]) if name in by_name else frozenset()

        return lambda text: self.read(text, texts)

    def written(
        self, name: str, arguments: Mapping[str, Any], functions: Sequence[FunctionSchema]
    ) -> str:
        """A call as it is spelled here, if it is one of a function; else as it would be."""
        typed, texts = as_declared(name, arguments, functions)
        return self.write(name, typed, texts)

    def for_template(
        self, name: str, arguments: Mapping[str, Any], functions: Sequence[FunctionSchema]
    ) -> dict[str, Any]:
        """The arguments of a call as a chat template must be given them, to spell it like that."""
        typed, texts = as_declared(name, arguments, functions)
        if not self.raw_strings:
            return typed
        return {k: v if k in texts(name) else to_json(v) for k, v in typed.items()}

    def parse(self, text: str, functions: Sequence[FunctionSchema]) -> Call:
        """Name and typed arguments of a written call.

        >>> import cmm.grammar.formats
        >>> f = FunctionSchema(name="f", parameters={"properties": {"a": {"type": "number"}}})
        >>> cmm.grammar.formats.HERMES.parse('{"name": "f", "arguments": {"a": 2}}', [f])
        ('f', {'a': 2.0})
        """
        written = self.reader(functions)(text)
        if not written.closed:
            raise ValueError(f"no whole call: {text}")
        [parameters] = [f.parameters for f in functions if f.name == written.name]
        return written.name, typed_value(dict(written.arguments or {}), parameters)


def as_declared(
    name: str, arguments: Mapping[str, Any], functions: Sequence[FunctionSchema]
) -> tuple[dict[str, Any], TextsOf]:
    """The arguments of a call, typed and in order, and which of them are strings alone.

    These are the strings, where it is no call of any function.
    """
    function = next((f for f in functions if f.name == name), None)
    if function is None or not is_typed(arguments, function.parameters):
        strings = frozenset(key for key, value in arguments.items() if isinstance(value, str))
        return dict(arguments), lambda _: strings
    typed = typed_value(dict(arguments), function.parameters, in_order=True)
    return typed, lambda _: texts_of(function)


def from_json(text: str) -> Any:
    """A JSON value, numbers finite."""
    return DECODER.decode(text)


def raw_text(
    argument: Argument, opening: Node, end: Literal | Mark, arguments: Arguments, number: int
) -> Node:
    """The texts of an argument as they are; none holds what ends it, and there is one at least.

    They are a rule, entered by its first character and left by its last, as all strings are. A
    value that is listed is never left out: the whole function is refused.
    """
    content = argument.text
    assert content is not None
    for value in content.finite(LISTED) or argument.listed:
        raw(value, end.text)
    points = "".join(f"\\u{ord(char):04x}" for char in end.text)
    allowed = content - pattern_content(points)
    if allowed.is_empty:
        raise cannot_hold("texts", end.text)
    rule = "text" if content == ANY else f"{arguments.prefix}text{number}"
    arguments.rules[rule] = sequence(opening, Spelled(allowed), end)
    return Reference(rule)


def raw(value: str, end: str) -> str:
    """A text that is written as it is; Unsupported where it holds what ends it."""
    if end in value:
        raise cannot_hold(f"the text {json.dumps(value)}", end)
    return value


def cannot_hold(what: str, end: str) -> Unsupported:
    """The error of texts that hold what ends them."""
    problem = f"{what} with {json.dumps(end)} inside, which ends a text in this format"
    return Unsupported(problem, advice="use a JSON format (--format hermes)")


def plain(name: str, function: FunctionSchema) -> str:
    """A name that is written as it is."""
    if not PLAIN_NAME.fullmatch(name):
        raise Unsupported(
            f"the name {json.dumps(name)} cannot be written in this format (function "
            f"{json.dumps(function.name)})",
            advice="use a JSON format (--format hermes)",
        )
    return name


def to_json(value: Any) -> str:
    """A value in the JSON that is written here."""
    return json.dumps(value, ensure_ascii=False)


def read_members(text: str) -> tuple[dict[str, Any], str, bool]:
    """Behind the bracket of a JSON object: its finished members, the one begun, is it closed?

    >>> read_members('"a": 2, "b": "x"}')
    ({'a': 2, 'b': 'x'}, '', True)
    >>> read_members('"a": 2, "b": "x')
    ({'a': 2}, 'b="x', False)
    """
    found: dict[str, Any] = {}
    while text and not text.startswith("}"):
        try:
            key, end = DECODER.raw_decode(text)
        except ValueError:
            return found, text.removeprefix('"'), False
        value, after = read_value(text[end + len(": ") :])
        if after is None:
            return found, key + "=" * (len(text) > end) + text[end + len(": ") :], False
        found[key], text = value, text[end + len(": ") + after :].lstrip(", ")
    return found, "", text.startswith("}")


def read_value(text: str) -> tuple[Any, int | None]:
    """The JSON value that a text begins with, and where it ends; None: it may still go on.

    >>> read_value("2.5, "), read_value("2."), read_value('"x"')
    ((2.5, 3), (2, None), ('x', 3))
    """
    try:
        value, end = DECODER.raw_decode(text)
    except ValueError:
        return None, None
    after = text[end : end + 1]
    finished = after in ",)]}" if after else text[end - 1] in '"]}'
    return value, end if finished else None


def without_begun(text: str, end: str) -> str:
    """The text without the beginning of what ends it.

    >>> without_begun("x<esc", "<escape>")
    'x'
    """
    begun = next((n for n in range(len(end) - 1, 0, -1) if text.endswith(end[:n])), 0)
    return text[: len(text) - begun]
