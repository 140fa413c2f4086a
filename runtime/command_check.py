"""`cmm check`: what of function files and schemas is supported, and what it costs."""

from __future__ import annotations

import argparse
import json
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from cmm.compiler import Vocabulary, build_automaton, compile_grammar, load_vocabulary
from cmm.grammar.errors import CmmError, InvalidInput, Unsupported
from cmm.grammar.files import read_json
from cmm.grammar.formats import call_grammar
from cmm.grammar.functions import FunctionSchema, parse_functions
from cmm.grammar.json_schema import schema_grammar
from cmm.grammar.nodes import Grammar
from cmm.grammar.recursion import deep_recursion
from cmm.grammar.survey import Finding, ignored, refused
from cmm.runtime.display import printable
from cmm.runtime.resolve import find_model


@dataclass(frozen=True)
class Checked:
    """What was found out about one function, or one schema."""

    file: str
    name: str  # of the function; "" for a plain schema
    refused: tuple[Finding, ...] = ()
    ignored: tuple[Finding, ...] = ()
    error: str = ""  # why it is wrong, rather than refused
    states: int | None = None
    bytes: int | None = None
    table_bytes: int | None = None


def add_check(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm check`."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="functions or schemas")
    parser.add_argument("--json", action="store_true", help="JSON on stdout")
    parser.add_argument("--model", metavar="M", help="say how large the tables for it are, too")


def check(options: argparse.Namespace) -> int:
    """Say what of each function or JSON Schema is enforced, refused or ignored, and what it costs.

    Exit code 1 if something is refused, 2 if something is wrong.

    examples:
      cmm check functions.json
      cmm check schema.json --json
    """
    vocabulary = None
    if options.model:
        vocabulary = load_vocabulary(find_model(options.model, tokenizer_only=True).folder)
    found = [each for path in options.files for each in check_file(path, vocabulary)]
    if options.json:
        print(json.dumps([asdict(each) for each in found], indent=2, ensure_ascii=False))
    else:
        print("\n".join(printable(line) for each in found for line in lines(each)))
    if any(each.error for each in found):
        return 2
    return 1 if any(each.refused for each in found) else 0


def check_file(path: Path, vocabulary: Vocabulary | None) -> Iterator[Checked]:
    """The functions of a file, each on its own, or the one schema in it."""
    document = read_json(path)
    if not is_function_file(document):
        yield checked(path, None, document, vocabulary)
        return
    try:
        functions = parse_functions(document)
    except CmmError as error:
        raise error.located(file=str(path)) from None
    for function in functions:
        yield checked(path, function, function.parameters, vocabulary)


def is_function_file(document: Any) -> bool:
    """Are these functions, rather than a JSON Schema?

    >>> is_function_file({"name": "f", "parameters": {}}), is_function_file({"type": "object"})
    (True, False)
    """
    if isinstance(document, list):
        return True
    if not isinstance(document, dict):
        return False
    named = "name" in document or "fn_name" in document
    described = {"parameters", "inputSchema", "input_schema", "args_names"} & document.keys()
    return "tools" in document or isinstance(document.get("function"), dict) or (
        named and bool(described)
    )  # fmt: skip


def checked(
    path: Path, function: FunctionSchema | None, schema: Any, vocabulary: Vocabulary | None
) -> Checked:
    """One function or schema: what is refused or ignored; where nothing is refused, its sizes."""
    name = function.name if function else ""
    try:
        with deep_recursion():
            found = tuple(refused(schema, closed=function is not None))
            notes = tuple(ignored(schema))
        if found:
            return Checked(str(path), name, found, notes)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # unknown formats are among the notes
            grammar = call_grammar([function]) if function else schema_grammar(schema)
        return Checked(str(path), name, (), notes, "", *sizes(grammar, vocabulary))
    except Unsupported as error:
        return Checked(str(path), name, (Finding("", error.place or "", error.problem),))
    except InvalidInput as error:
        return Checked(str(path), name, error=str(error))


def sizes(grammar: Grammar, vocabulary: Vocabulary | None) -> tuple[int, int, int | None]:
    """States and bytes of the automaton, and the bytes of its table for a vocabulary."""
    automaton = build_automaton(grammar)
    arrays = [getattr(automaton, item.name) for item in fields(automaton)]
    size = sum(getattr(array, "nbytes", 0) for array in arrays)
    if vocabulary is None:
        return len(automaton.final), size, None
    path = compile_grammar(grammar, vocabulary).path
    return len(automaton.final), size, path.stat().st_size if path else None


def lines(each: Checked) -> Iterator[str]:
    """What a person reads about one function or schema."""
    title = f"{each.file}: {each.name}" if each.name else each.file
    if each.error:
        yield f"{title}: wrong: {each.error}"
    elif each.refused:
        yield f"{title}: refused"
    else:
        table = "" if each.table_bytes is None else f", a table of {each.table_bytes:,} bytes"
        yield f"{title}: supported, {each.states:,} states, {each.bytes:,} bytes{table}"
    for found in each.refused:
        yield f"  refused {found.place or 'as a whole'}: {found.reason}"
    annotations = Counter(found.keyword for found in each.ignored if found.reason == "annotation")
    for found in each.ignored:
        if found.reason != "annotation":
            yield f"  ignored {found.place}: {found.reason}"
    if annotations:
        yield "  annotations: " + ", ".join(f"{k} {n}" for k, n in sorted(annotations.items()))
