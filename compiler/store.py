"""The cache of compiled tables and vocabularies: full key, verified on read, never trusted."""

from __future__ import annotations

import hashlib
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import platformdirs

from cmm.compiler.artifact import (
    FORMAT,
    DamagedFile,
    Packed,
    arrays_of,
    arrays_under,
    read_arrays,
    write_arrays,
)
from cmm.compiler.boughs import Boughs
from cmm.compiler.bpe import Bpe
from cmm.compiler.budget import over_budget
from cmm.compiler.determinise import DEFAULT_STATE_BUDGET
from cmm.compiler.pretokens import Pretokenizer
from cmm.compiler.rows import Rows, Targets
from cmm.compiler.table import TokenTable, build_table
from cmm.compiler.trie import Trie
from cmm.compiler.vocabulary import (
    PackedTokens,
    Vocabulary,
    make_vocabulary,
    read_bpe,
    read_tokens,
    tokenizer_source,
)
from cmm.grammar.errors import CmmError, StateBudgetExceeded
from cmm.grammar.formats import HERMES, CallFormat
from cmm.grammar.functions import FunctionSchema
from cmm.grammar.json_schema import schema_grammar
from cmm.grammar.nodes import Grammar, digest

Value = TypeVar("Value")


def cache_dir() -> Path:
    """Where compiled files are kept: CMM_CACHE_DIR, or the platform's cache folder."""
    chosen = os.environ.get("CMM_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("cmm", appauthor=False))


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
    return _cached(path, _unpack_vocabulary, build, _pack_vocabulary)[0]


def compile_grammar(
    grammar: Grammar, vocabulary: Vocabulary, budget: int = DEFAULT_STATE_BUDGET
) -> Compiled:
    """The table of a grammar, from the cache or built and put there."""
    began = time.perf_counter()
    key = hashlib.sha256(f"{FORMAT} {vocabulary.digest} {digest(grammar)}".encode()).hexdigest()
    path = cache_dir() / f"table-{key[:32]}.safetensors"
    table, written, reused = _cached(
        path,
        lambda packed: TokenTable.unpack(packed, vocabulary),
        lambda: build_table(grammar, vocabulary, budget),
        TokenTable.pack,
    )
    return Compiled(table, path if written else None, time.perf_counter() - began, reused)


def compile_functions(
    functions: Sequence[FunctionSchema], vocabulary: Vocabulary, form: CallFormat = HERMES
) -> TokenTable:
    """The token table of all valid calls of the functions."""
    return compile_grammar(form.grammar(functions), vocabulary).table


def compile_schema(
    schema: Any, vocabulary: Vocabulary, budget: int = DEFAULT_STATE_BUDGET
) -> TokenTable:
    """The token table of all values that a JSON Schema accepts."""
    try:
        return compile_grammar(schema_grammar(schema), vocabulary, budget).table
    except StateBudgetExceeded:
        raise over_budget(schema, budget) from None


def known_vocabulary(header: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary that a header names, from the cache; DamagedFile if it is not there."""
    for path in sorted(cache_dir().glob("vocabulary-*.safetensors")):
        try:
            vocabulary = _unpack_vocabulary(read_arrays(path))
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
        return unpack(read_arrays(path)), True, True
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, DamagedFile) as error:
        warnings.warn(f"{path} is made again: {error}", stacklevel=3)
    value = build()
    try:
        write_arrays(path, pack(value))
    except OSError as error:
        warnings.warn(f"nothing is cached: {path.parent}: {error.strerror}", stacklevel=3)
        return value, False, False
    return value, True, False


def _pack_vocabulary(vocabulary: Vocabulary) -> Packed:
    arrays = {
        **arrays_of("tokens", vocabulary.tokens),
        **arrays_of("trie", vocabulary.trie),
        **arrays_of("text", vocabulary.text_rows),
        **arrays_of("boughs", vocabulary.boughs),
    }
    header: dict[str, Any] = {"vocabulary": vocabulary.digest}
    if vocabulary.bpe is not None:
        arrays |= arrays_of("bpe", vocabulary.bpe)
        header["cuts"] = vocabulary.bpe.pretokenizer.patterns
    return arrays, header


def _unpack_vocabulary(packed: Packed) -> Vocabulary:
    arrays, header = packed
    try:
        boughs = Boughs(
            **arrays_under("boughs", arrays),
            targets=Targets(**arrays_under("boughs.targets", arrays)),
        )
        bpe = None
        if "cuts" in header:
            bpe = Bpe(
                **arrays_under("bpe", arrays), pretokenizer=Pretokenizer(tuple(header["cuts"]))
            )
        return Vocabulary(
            PackedTokens(**arrays_under("tokens", arrays)),
            Trie(**arrays_under("trie", arrays)),
            Rows.unpack("text", arrays),
            boughs,
            header["vocabulary"],
            bpe,
        )
    except (TypeError, KeyError) as error:
        raise DamagedFile(f"no vocabulary: {error}") from None
