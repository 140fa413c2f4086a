"""`cmm prove`: whatever the logits, every answer is valid."""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from cmm.compiler import (
    CanonicalTable,
    TokenTable,
    compile_functions,
    compile_schema,
    load_vocabulary,
)
from cmm.grammar.errors import CmmError, Unsupported
from cmm.grammar.files import read_json
from cmm.grammar.formats import HERMES
from cmm.grammar.functions import FunctionSchema, parse_functions
from cmm.runtime.adversary import Adversary
from cmm.runtime.choose import Table
from cmm.runtime.command_check import is_function_file
from cmm.runtime.command_run import FUNCTIONS, positive, shipped
from cmm.runtime.display import printable, tell
from cmm.runtime.judge import CallJudge, Judge, Unjudged, validator_module
from cmm.runtime.machine import available_cpus
from cmm.runtime.resolve import find_model
from cmm.runtime.slow import decode_by

# Tokens beyond the fewest: most answers are steered to their end, some end by themselves.
FURTHER = (0, 0, 1, 2, 3, 5, 8, 13, 21, 34, 55)
PIECE = 500  # runs that one process makes at a time
BROKEN = 20  # one run of so many has the logits of a broken model
SHOWN = 10  # wrong answers in full

Faults = Callable[[bytes], "str | None"]


@dataclass
class Counts:
    """What came out so far."""

    outputs: int = 0
    invalid: int = 0
    broken_noticed: int = 0
    unjudged: int = 0
    past_limit: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        """Count what another process found."""
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)


def add_prove(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm prove`."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help=str(FUNCTIONS))
    parser.add_argument("--runs", type=positive, metavar="N", default=1000, help="for each file")
    parser.add_argument("--seed", type=int, metavar="S", default=0, help="another one, other runs")
    parser.add_argument("--model", metavar="M", help="whose tokens: name, hub id, folder or .gguf")
    parser.add_argument("--jobs", type=positive, metavar="N", help="processes; one for each core")
    tokens = "the tokenizer's own spelling, or any; both in turn where that is known"
    parser.add_argument("--tokens", choices=("canonical", "any"), help=tokens)


def prove(options: argparse.Namespace) -> int:
    """Decode with random, hostile and broken logits, and check each answer without the grammar.

    Takes function files and JSON Schemas; no model is run. Token limits go from the fewest possible
    upward. Ends with one line of JSON; exit code 1 if an answer is invalid or a schema is refused.

    examples:
      cmm prove
      cmm prove functions.json schema.json --runs 10000 --seed 7
    """
    validator_module()
    files = options.files or [shipped(FUNCTIONS)]
    for path in files:  # what cannot be read is said before a model is sought
        read_document(path)
    place = find_model(options.model, tokenizer_only=True)
    counts, began, code = Counts(), time.perf_counter(), 0
    refused = [path for path in files if is_refused(path, place.folder)]
    pieces = [
        Piece(path, start, min(start + PIECE, options.runs), options.seed, options.tokens)
        for path in files
        if path not in refused
        for start in range(0, options.runs, PIECE)
    ]
    try:
        jobs = options.jobs or len(available_cpus())
        # Closed here: else an interrupt leaves the processes to the end of the interpreter.
        with closing(all_found(pieces, place.folder, jobs)) as every:
            for found in every:
                for fault in found.faults[: max(0, SHOWN - len(counts.faults))]:
                    clear_line()
                    tell(fault)
                counts.add(found)
                show_counts(counts)
    except KeyboardInterrupt:
        code = 130
    clear_line()
    seconds = time.perf_counter() - began
    about = {"files": len(files), "refused": len(refused), "seed": options.seed}
    print(json.dumps({**summary(counts, seconds), **about, "model": place.name}))
    return code or int(bool(counts.invalid or refused))


def summary(counts: Counts, seconds: float) -> dict[str, Any]:
    """The counts as JSON."""
    found = {name: value for name, value in vars(counts).items() if name != "faults"}
    pace = round(counts.outputs / max(seconds, 1e-9) * 60)
    kinds = dict(sorted(counts.kinds.items()))
    return {**found, "kinds": kinds, "seconds": round(seconds, 1), "per_minute": pace}


@dataclass(frozen=True)
class Piece:
    """Some runs of one file, for one process."""

    path: Path
    start: int
    stop: int
    seed: int
    tokens: str | None

    def found(self, folder: Path) -> Counts:
        """What comes out of these runs."""
        table, faults = table_and_judge(self.path, folder)
        tables = tables_of(table, self.tokens)
        adversary = adversary_of(folder, self.seed)
        counts = Counts()
        for number in range(self.start, self.stop):
            run = Run(f"{self.seed} {number}", tables[number % len(tables)], adversary, number)
            fault = run.fault(faults, counts)
            if fault:
                counts.invalid += 1
                counts.faults.append(f"{self.path}: run {number} {fault}")
        return counts


def all_found(pieces: Sequence[Piece], folder: Path, jobs: int) -> Generator[Counts, None, None]:
    """What each piece finds, by several processes where there are several pieces."""
    if min(jobs, len(pieces)) < 2:
        yield from (piece.found(folder) for piece in pieces)
        return
    with ProcessPoolExecutor(min(jobs, len(pieces))) as pool:
        try:
            yield from pool.map(partial(Piece.found, folder=folder), pieces)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def is_refused(path: Path, folder: Path) -> bool:
    """Is there something in the file that is not supported? It is said."""
    try:
        table_and_judge(path, folder)
    except Unsupported as error:
        tell(f"cmm: refused: {error}")
        return True
    return False


@lru_cache(1)
def adversary_of(folder: Path, seed: int) -> Adversary:
    """The logits for the tokens of a model's folder."""
    return Adversary(load_vocabulary(folder), seed)


def read_document(path: Path) -> tuple[Any, Sequence[FunctionSchema] | None]:
    """What stands in a file, and its functions; None where it is a schema."""
    document = read_json(path)
    try:
        return document, parse_functions(document) if is_function_file(document) else None
    except CmmError as error:
        raise error.located(file=str(path)) from None


@lru_cache(2)
def table_and_judge(path: Path, folder: Path) -> tuple[TokenTable, Faults]:
    """The table of a function file or a schema, and what judges its texts."""
    gc.collect()  # a table's kept rows: hundreds of megabytes that refer to each other
    vocabulary = load_vocabulary(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of formats that neither enforces
            document, functions = read_document(path)
            if functions is None:
                return compile_schema(document, vocabulary), Judge(document).fault
            table = compile_functions(functions, vocabulary)
    except CmmError as error:
        raise error.located(file=str(path)) from None
    judge = CallJudge({each.name: each.parameters for each in functions}, document)
    return table, lambda text: judge.fault(text, *HERMES.parse(text.decode(), functions))


def tables_of(table: TokenTable, tokens: str | None) -> Sequence[Table]:
    """The table, and what is left of it in the tokenizer's own spelling."""
    known = table.vocabulary.bpe is not None
    canonical = [CanonicalTable(table)] if tokens != "any" and (known or tokens) else []
    return (
        canonical if tokens == "canonical" else [table] if tokens == "any" else [table, *canonical]
    )


@dataclass(frozen=True)
class Run:
    """One decoding: seed, table, logits."""

    seed: str
    table: Table
    adversary: Adversary
    number: int

    def fault(self, judge: Faults, counts: Counts) -> str | None:
        """Decode once; what is wrong with the answer, if anything."""
        dice = random.Random(self.seed)
        broken = self.number % BROKEN == BROKEN - 1
        kind = dice.choice(self.adversary.broken if broken else self.adversary.valid)
        limit = self.table.distance(self.table.start) + dice.choice(FURTHER)
        try:
            answer = decode_by(
                lambda _, state: self.adversary.numbers(kind, self.table, state, dice),
                self.table,
                limit,
            )
        except CmmError:
            if not broken:
                raise
            counts.broken_noticed += 1
            return None
        text = b"".join(self.adversary.tokens[token] for token in answer)
        counts.outputs += 1
        counts.kinds[kind] += 1
        counts.past_limit += len(answer) > limit
        try:
            fault = "broken logits were not noticed" if broken else judge(text)
        except Unjudged:
            counts.unjudged += 1
            return None
        return fault and f"({kind}, {limit} tokens): {fault}: {text.decode('utf-8', 'replace')}"


def show_counts(counts: Counts) -> None:
    """The counter, on a terminal only."""
    if sys.stderr.isatty():
        text = f"{counts.outputs:,} outputs, {counts.invalid:,} invalid"
        print(f"\r{printable(text)}", end="", file=sys.stderr, flush=True)


def clear_line() -> None:
    """Take the counter away."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
