"""The cache of compiled tables and vocabularies: full key, verified on read, never trusted."""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from cmm.compiler.artifact import (
    FORMAT,
    DamagedFile,
    Packed,
    named_table,
    read_arrays,
    read_header,
    write_arrays,
)
from cmm.compiler.budget import calls_over_budget, over_budget
from cmm.compiler.cache import cache_dir, make_room, touch
from cmm.compiler.determinise import DEFAULT_STATE_BUDGET
from cmm.compiler.packing import pack_table, pack_vocabulary, unpack_table, unpack_vocabulary
from cmm.compiler.table import TokenTable, build_table
from cmm.compiler.vocabulary import (
    Vocabulary,
    make_vocabulary,
    read_bpe,
    read_tokens,
    tokenizer_source,
)
from cmm.grammar.call_format import CallFormat
from cmm.grammar.errors import CmmError, InvalidInput, StateBudgetExceeded
from cmm.grammar.formats import FORMATS, HERMES
from cmm.grammar.functions import FunctionSchema, parse_functions
from cmm.grammar.json_schema import schema_grammar
from cmm.grammar.nodes import Grammar, digest

Value = TypeVar("Value")


@dataclass(frozen=True)
class Compiled:
    """A table, its file (None where none could be written), seconds, and whether it was there."""

    table: TokenTable
    path: Path | None
    seconds: float
    reused: bool


def load_vocabulary(tokenizer: Any) -> Vocabulary:
    """The vocabulary of a tokenizer, worked out once and cached.

    Takes a folder with a `tokenizer.json`, the path of one or of a `.tiktoken` file, a
    `tokenizers.Tokenizer`, or a fast tokenizer of transformers.
    """
    source, name = tokenizer_source(tokenizer)
    key = hashlib.sha256(f"{FORMAT} {Path(name).suffix}\n".encode() + source).hexdigest()

    def build() -> Vocabulary:
        try:
            tokens = read_tokens(source, name)
            return make_vocabulary(tokens, read_bpe(source, name, tokens))
        except CmmError as error:
            raise error.located(file=name) from None

    path = cache_dir() / f"vocabulary-{key[:32]}.safetensors"
    return _cached(path, unpack_vocabulary, build, pack_vocabulary)[0]


def compile_grammar(
    grammar: Grammar,
    vocabulary: Vocabulary,
    budget: int = DEFAULT_STATE_BUDGET,
    about: Mapping[str, Any] | None = None,
) -> Compiled:
    """The table of a grammar, from the cache or built and put there.

    `about` is kept in the file: JSON that says what it was made of.
    """
    began = time.perf_counter()
    about = {**(about or {}), "grammar": digest(grammar)}
    parts = [FORMAT, vocabulary.digest, json.dumps(about)]
    key = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
    path = cache_dir() / f"table-{key[:32]}.safetensors"
    table, written, reused = _cached(
        path,
        lambda packed: unpack_table(packed, vocabulary),
        lambda: replace(build_table(grammar, vocabulary, budget), about=about),
        pack_table,
    )
    return Compiled(table, path if written else None, time.perf_counter() - began, reused)


def compile_functions(
    functions: Sequence[FunctionSchema], vocabulary: Vocabulary, form: CallFormat = HERMES
) -> TokenTable:
    """The token table of all valid calls of the functions."""
    return compile_calls(functions, vocabulary, form).table


def compile_calls(
    functions: Sequence[FunctionSchema],
    vocabulary: Vocabulary,
    form: CallFormat = HERMES,
    budget: int = DEFAULT_STATE_BUDGET,
    *,
    any_order: bool = False,
) -> Compiled:
    """The table of all valid calls; its file holds the functions, so that it can be run alone."""
    grammar = form.grammar(functions, any_order=any_order)
    about = about_calls(functions, form, any_order=any_order)
    try:
        return compile_grammar(grammar, vocabulary, budget, about)
    except StateBudgetExceeded as error:
        raise calls_over_budget(functions, budget, error) from None


def about_calls(
    functions: Sequence[FunctionSchema], form: CallFormat, *, any_order: bool = False
) -> dict[str, Any]:
    """What the file of a table of calls holds besides: all that is needed to run it."""
    return {
        "call_format": form.name,
        "order": "any" if any_order else "declared",
        "functions": [function.tool() for function in functions],
    }


def compile_schema(
    schema: Any,
    vocabulary: Vocabulary,
    budget: int = DEFAULT_STATE_BUDGET,
    *,
    any_order: bool = False,
) -> TokenTable:
    """The token table of all values that a JSON Schema accepts.

    Keys come in the order of the schema, or in any order where they are few: `any_order`.
    """
    try:
        grammar = schema_grammar(schema, any_order=any_order)
        return compile_grammar(grammar, vocabulary, budget).table
    except StateBudgetExceeded as error:
        raise over_budget(schema, budget, error) from None


@dataclass(frozen=True)
class AboutCalls:
    """What the file of a table of calls says of itself: what `about_calls` wrote."""

    functions: tuple[FunctionSchema, ...]
    call_format: str
    order: str


def about_file(path: Path) -> AboutCalls:
    """What the file of a table says of its calls; InvalidInput where it is of none."""
    with named_table(path):
        about = read_header(path).get("about")
        if not isinstance(about, dict):
            raise DamagedFile("it does not say what it was made of")
        if not about.get("functions"):
            raise InvalidInput(
                "was not made of functions", file=str(path), advice="name one that was"
            )
        form, order = about.get("call_format"), about.get("order")
        try:
            functions = parse_functions(about["functions"])
        except CmmError as error:
            raise DamagedFile(f"its functions: {error}") from None
        if form not in list(FORMATS) or order not in ("declared", "any"):  # of any type
            raise DamagedFile("it does not say how calls are written")
        return AboutCalls(functions, form, order)


def known_vocabulary(header: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary that a header names, from the cache; DamagedFile if it is not there."""
    for path in sorted(cache_dir().glob("vocabulary-*.safetensors")):
        try:
            vocabulary = unpack_vocabulary(read_arrays(path))
        except (OSError, DamagedFile):
            continue  # made again when it is asked for
        if vocabulary.digest == header.get("vocabulary"):
            return vocabulary
    raise DamagedFile("its vocabulary is not in the cache; give it to load()")


def _cached(
    path: Path,
    unpack: Callable[[Packed], Value],
    build: Callable[[], Value],
    pack: Callable[[Value], Packed],
) -> tuple[Value, bool, bool]:
    """A value, whether its file is there, and whether the value came from it."""
    try:
        found = unpack(read_arrays(path))
        touch(path)
        return found, True, True
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, DamagedFile) as error:
        warnings.warn(f"{path} is made again: {error}", stacklevel=3)
    value = build()
    try:
        write_arrays(path, pack(value))
        make_room(0)
    except OSError as error:
        warnings.warn(f"nothing is cached: {path.parent}: {error.strerror}", stacklevel=3)
        return value, False, False
    return value, True, False
