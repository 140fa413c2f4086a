"""Calls beside those that were expected: right or wrong, and in what way."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import regex

from cmm.compiler import ByteAutomaton, build_automaton
from cmm.grammar.arguments import Arguments
from cmm.grammar.functions import FunctionSchema

Call = Mapping[str, Any]
NAME_KEYS, ARGUMENT_KEYS = ("name", "fn_name"), ("parameters", "args")
QUOTES_AND_SLASHES = re.compile(r"[\"'`\\/]")


@dataclass(frozen=True)
class Fault:
    """What is wrong with a call: the kind, where in the call (a JSON pointer), and in words."""

    kind: str
    place: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind} at {self.place or '/'}: {self.detail}"


def name_of(call: Call) -> Any:
    """The function that a call names, under either key in use."""
    return next((call[key] for key in NAME_KEYS if key in call), None)


def arguments_of(call: Call) -> Any:
    """The arguments of a call, under either key in use."""
    return next((call[key] for key in ARGUMENT_KEYS if key in call), None)


def compare(call: Call, expected: Call) -> list[Fault]:
    """The faults of a call against the expected one.

    >>> wanted = {"name": "f", "parameters": {"a": 2.0, "s": "x/y"}}
    >>> for fault in compare({"name": "f", "parameters": {"a": 2, "s": "xy"}}, wanted):
    ...     print(fault)
    integer for float at /parameters/a: 2 where 2.0 belongs
    lost quote or slash at /parameters/s: 'xy' where 'x/y' belongs
    """
    name, wanted_name = name_of(call), name_of(expected)
    if name != wanted_name:
        return [Fault("other function", "/name", f"{name} where {wanted_name} belongs")]
    found, wanted = arguments_of(call), arguments_of(expected)
    if not isinstance(found, Mapping) or not isinstance(wanted, Mapping):
        return [Fault("no arguments", "/parameters", f"{shown(found)} is no object")]
    faults = list(_compare(found, wanted, "/parameters"))
    return [] if same_effect(found, wanted, faults) else faults


def _compare(found: Any, wanted: Any, place: str) -> Iterator[Fault]:
    if isinstance(found, Mapping) and isinstance(wanted, Mapping):
        for key in wanted:
            if key not in found:
                yield Fault("missing key", f"{place}/{key}", f"{shown(wanted[key])} belongs here")
            else:
                yield from _compare(found[key], wanted[key], f"{place}/{key}")
        for key in found:
            if key not in wanted:
                yield Fault("extra key", f"{place}/{key}", f"{shown(found[key])} does not belong")
    elif isinstance(found, list) and isinstance(wanted, list) and len(found) == len(wanted):
        for i, (one, other) in enumerate(zip(found, wanted, strict=True)):
            yield from _compare(one, other, f"{place}/{i}")
    elif type(found) is not type(wanted) or found != wanted:
        yield Fault(_kind(found, wanted), place, f"{shown(found)} where {shown(wanted)} belongs")


def _kind(found: Any, wanted: Any) -> str:
    numbers = {type(found), type(wanted)} == {int, float}
    if numbers and found == wanted:
        return "integer for float" if isinstance(wanted, float) else "float for integer"
    if type(found) is not type(wanted):
        return "other type"
    if isinstance(found, str) and _bare(found) == _bare(wanted):
        return "lost quote or slash"
    return "other value"


def _bare(text: str) -> str:
    return QUOTES_AND_SLASHES.sub("", text)


def shown(value: Any) -> str:
    """A value in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def same_effect(found: Mapping[str, Any], wanted: Mapping[str, Any], faults: list[Fault]) -> bool:
    """Is all that differs a regular expression, with the same effect on the source string?

    The effect is what is matched there, and what it is replaced by where there is a replacement.

    >>> source = {"source_string": "a1b22", "replacement": "N"}
    >>> one, other = {**source, "regex": "[0-9]+"}, {**source, "regex": "\\\\d+"}
    >>> same_effect(one, other, list(_compare(one, other, "")))
    True
    """
    if {fault.place.rsplit("/", 1)[-1] for fault in faults} - {"regex", "pattern"}:
        return False
    texts = [v for key, v in wanted.items() if key not in ("regex", "pattern", "replacement")]
    source = max((text for text in texts if isinstance(text, str)), key=len, default=None)
    if source is None:
        return not faults
    return all(
        _effect(found.get(key), source) == _effect(wanted.get(key), source) is not None
        for key in ("regex", "pattern")
        if key in wanted
    )


def _effect(pattern: Any, source: str) -> list[tuple[int, int]] | None:
    try:
        found = regex.finditer(pattern, source, timeout=1)  # seconds: some patterns never end
        return [match.span() for match in found if match[0]]
    except (regex.error, TypeError, OverflowError, RecursionError, TimeoutError):
        return None


@dataclass(frozen=True)
class Contract:
    """What every call must be, whatever was expected: one of the functions, with its types."""

    functions: Mapping[str, FunctionSchema]
    automata: Mapping[str, ByteAutomaton]

    @classmethod
    def of(cls, functions: Sequence[FunctionSchema]) -> Contract:
        """The contract of some functions; without any, only keys and JSON types are looked at."""
        automata = {f.name: build_automaton(Arguments(f).grammar()) for f in functions}
        return cls({f.name: f for f in functions}, automata)

    def faults(self, call: Any) -> list[Fault]:
        """The faults of a call by itself."""
        if not isinstance(call, Mapping):
            return [Fault("no call", "", f"{shown(call)} is no object")]
        name, arguments = name_of(call), arguments_of(call)
        known = {"prompt", *NAME_KEYS, *ARGUMENT_KEYS}
        faults = [
            Fault("extra key", f"/{k}", "is none of a call's") for k in call if k not in known
        ]
        for key, right, what in (
            ("prompt", isinstance(call.get("prompt"), str), "a text"),
            ("name", isinstance(name, str), "a function's name"),
            ("parameters", isinstance(arguments, Mapping), "an object"),
        ):
            if not right:
                faults.append(Fault("missing key", f"/{key}", f"{what} belongs here"))
        if faults or not self.functions:
            return faults
        if name not in self.functions:
            return [Fault("unknown function", "/name", f"{name} is not defined")]
        return list(self._typed(self.functions[name], arguments))

    def _typed(self, function: FunctionSchema, arguments: Mapping[str, Any]) -> Iterator[Fault]:
        properties = function.parameters.get("properties", {})
        numbers = {key for key, schema in properties.items()
                   if isinstance(schema, dict) and schema.get("type") == "number"}  # fmt: skip
        for key, value in arguments.items():
            if key in numbers and type(value) is int:
                detail = f"{value} where a float belongs"
                yield Fault("integer for float", f"/parameters/{key}", detail)
        for key in function.parameters.get("required", ()):
            if key not in arguments:
                yield Fault("missing key", f"/parameters/{key}", "is required")
        ordered = {key: arguments[key] for key in properties if key in arguments}
        text = json.dumps({**ordered, **arguments}, ensure_ascii=False)
        if not self.automata[function.name].accepts(text):
            yield Fault("against the schema", "/parameters", shown(dict(arguments)))


@dataclass(frozen=True)
class Verdict:
    """One prompt with its call and its faults; no faults means right."""

    prompt: str
    faults: tuple[Fault, ...]
    skipped: bool = False


def grade(
    calls: Sequence[Any], expected: Sequence[Call] | None, contract: Contract
) -> list[Verdict]:
    """A verdict for each expected row, or for each call where nothing was expected.

    Rows belong together by their prompt: one that was dropped shifts those after it.
    """
    by_itself = [(call, contract.faults(call)) for call in calls]
    if expected is None:
        return [Verdict(_prompt(call), tuple(faults)) for call, faults in by_itself]
    verdicts, free = [], dict(enumerate(by_itself))
    for row, wanted in enumerate(expected):
        prompt = wanted["prompt"]
        same = (i for i, (call, _) in free.items() if _prompt(call) == prompt)
        place = row if row in free and _prompt(free[row][0]) == prompt else next(same, None)
        faults: list[Fault] = []
        if place is None:
            faults.append(Fault("missing row", "", "no call answers this prompt"))
        else:
            call, faults = free.pop(place)
            if place != row:
                faults = [Fault("shifted row", "", f"is row {place}, not {row}"), *faults]
            faults = faults or ([] if wanted.get("skip") else compare(call, wanted))
        verdicts.append(Verdict(prompt, tuple(faults), bool(wanted.get("skip"))))
    extra = Fault("extra row", "", "no such prompt was asked, or not so often")
    return [*verdicts, *(Verdict(_prompt(call), (extra,)) for call, _ in free.values())]


def _prompt(call: Any) -> str:
    return str(call.get("prompt", "")) if isinstance(call, Mapping) else ""
