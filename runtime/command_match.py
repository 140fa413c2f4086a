"""`cmm match`: is this call allowed, and if not, where does it stop?"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cmm.compiler import match as match_text
from cmm.grammar.errors import InvalidInput
from cmm.grammar.files import open_file, read_all
from cmm.grammar.formats import HERMES
from cmm.grammar.functions import FunctionSchema
from cmm.runtime.command_compile import read_source
from cmm.runtime.display import printable
from cmm.runtime.grade import arguments_of, name_of

Named = tuple[str, bytes]  # where a text stands in its file ("": it is the file), and the text


def add_match(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm match`."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="functions, then calls")
    parser.add_argument("--schema", type=Path, metavar="F", help="one JSON Schema instead")


def match(options: argparse.Namespace) -> int:
    """Say of each call whether the automaton accepts it, or where it stops.

    A file holds one call as the model writes it, {"name": …, "arguments": {…}}, in exactly that
    spelling. A call in other JSON, or what `cmm call` and `cmm run` write, is written so first,
    which is said. With --schema the files are values.

    examples:
      cmm match functions.json call.json
      cmm match --schema schema.json value.json
    """
    functions, *calls = [None, *options.files] if options.schema else options.files
    if not calls:
        raise InvalidInput("which call? name a file after the functions")
    source = read_source(functions, options.schema)
    automaton = source.automaton(HERMES)
    refused = 0
    for path in calls:
        with open_file(path) as stream:
            text = read_all(stream, str(path)).strip(b" \t\r\n")
        exact = match_text(automaton, text)
        written = [] if exact.accepted else list(as_the_model_writes(text, source.functions))
        for place, call in written:
            result, named = match_text(automaton, call), f"{path} @ {place}" if place else path
            about = f"written as the model writes it: {call.decode('utf-8', 'replace')}"
            print(printable(f"{named}: {result.explain(call)}; {about}"))
            refused += not result.accepted
        if not written:
            print(printable(f"{path}: {exact.explain(text)}"))
            refused += not exact.accepted
    return 1 if refused else 0


def as_the_model_writes(text: bytes, functions: Sequence[FunctionSchema] | None) -> Iterator[Named]:
    """The calls or the value of a JSON text in the model's spelling; none where it is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if functions is None:
        yield from different("", value, text)
        return
    properties = {f.name: f.parameters.get("properties", {}) for f in functions}
    many = isinstance(value, list)
    for i, call in enumerate(value if many else [value]):
        given = call.get("arguments", arguments_of(call)) if isinstance(call, dict) else None
        if isinstance(given, dict) and isinstance(name := name_of(call), str):
            rewritten = {"name": name, "arguments": in_order(given, properties.get(name, {}))}
            yield from different(f"/{i}" if many else "", rewritten, text)


def different(place: str, value: Any, text: bytes) -> Iterator[Named]:
    """The value's text, if it is another."""
    written = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    if written != text:
        yield place, written


def in_order(arguments: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments in the order in which they are declared, others after them.

    >>> in_order({"b": 1, "x": 2, "a": 3}, {"a": {}, "b": {}})
    {'a': 3, 'b': 1, 'x': 2}
    """
    first = {key: arguments[key] for key in declared if key in arguments}
    return {**first, **arguments}
