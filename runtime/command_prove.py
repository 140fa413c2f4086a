"""`cmm prove`: whatever the logits, every answer is valid."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cmm.compiler import CanonicalTable, TokenTable, Vocabulary, compile_schema, load_vocabulary
from cmm.grammar.errors import CmmError, Unsupported
from cmm.grammar.files import read_json
from cmm.grammar.formats import HERMES
from cmm.grammar.functions import parse_functions
from cmm.runtime.adversary import Adversary
from cmm.runtime.choose import Table
from cmm.runtime.command_check import is_function_file
from cmm.runtime.command_run import FUNCTIONS, positive, shipped
from cmm.runtime.display import printable, tell
from cmm.runtime.judge import CallJudge, Judge, Unjudged
from cmm.runtime.resolve import find_model
from cmm.runtime.slow import decode_by

# Tokens beyond the fewest: most answers are steered to their end, some end by themselves.
FURTHER = (0, 0, 1, 2, 3, 5, 8, 13, 21, 34, 55)
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
    files: int = 0
    refused: int = 0
    kinds: Counter[str] = field(default_factory=Counter)


def add_prove(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm prove`."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help=str(FUNCTIONS))
    parser.add_argument("--runs", type=positive, metavar="N", default=1000, help="for each file")
    parser.add_argument("--seed", type=int, metavar="S", default=0, help="another one, other runs")
    parser.add_argument("--model", metavar="M", help="whose tokens: name, hub id, folder or .gguf")
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
    files = options.files or [shipped(FUNCTIONS)]
    place = find_model(options.model, tokenizer_only=True)
    vocabulary = load_vocabulary(place.folder)
    counts, began = Counts(), time.perf_counter()
    code = 0
    try:
        for path in files:
            prove_file(path, vocabulary, options, counts)
    except KeyboardInterrupt:
        code = 130
    seconds = time.perf_counter() - began
    clear_line()
    print(json.dumps(summary(counts, seconds, options.seed, place.name)))
    return code or int(counts.invalid + counts.refused > 0)


def summary(counts: Counts, seconds: float, seed: int, model: str) -> dict[str, Any]:
    """The counts as JSON."""
    found = {name: getattr(counts, name) for name in counts.__dataclass_fields__}
    return {
        **found,
        "kinds": dict(sorted(counts.kinds.items())),
        "seconds": round(seconds, 1),
        "per_minute": round(counts.outputs / max(seconds, 1e-9) * 60),
        "seed": seed,
        "model": model,
    }


def prove_file(
    path: Path, vocabulary: Vocabulary, options: argparse.Namespace, counts: Counts
) -> None:
    """All runs of one file; what is refused is said and counted."""
    try:
        table, faults = table_and_judge(path, vocabulary)
        tables = tables_of(table, options.tokens)
    except Unsupported as error:
        tell(f"cmm: refused: {error.located(file=str(path))}")
        counts.refused += 1
        return
    except CmmError as error:
        raise error.located(file=str(path)) from None
    counts.files += 1
    adversary = Adversary(vocabulary, options.seed)
    for number in range(options.runs):
        run = Run(f"{options.seed} {number}", tables[number % len(tables)], adversary, number)
        for fault in run.faults(faults, counts):
            counts.invalid += 1
            if counts.invalid <= SHOWN:
                clear_line()
                tell(f"{path}: run {number} {fault}")
        if number % 100 == 0:
            show_counts(counts)


def table_and_judge(path: Path, vocabulary: Vocabulary) -> tuple[TokenTable, Faults]:
    """The table of a function file or a schema, and what judges its texts."""
    document = read_json(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # unknown formats are not enforced by either
        if not is_function_file(document):
            return compile_schema(document, vocabulary), Judge(document).fault
        functions = parse_functions(document)
        from cmm.compiler import compile_functions

        table = compile_functions(functions, vocabulary)
    judge = CallJudge({each.name: each.parameters for each in functions}, document)
    return table, lambda text: judge.fault(text, *HERMES.parse(text.decode(), functions))


def tables_of(table: TokenTable, tokens: str | None) -> Sequence[Table]:
    """The table, and what is left of it in the tokenizer's own spelling."""
    known = table.vocabulary.bpe is not None
    canonical = [CanonicalTable(table)] if known or tokens == "canonical" else []
    return canonical if tokens == "canonical" else [table] if tokens == "any" else [table, *canonical]


@dataclass(frozen=True)
class Run:
    """One decoding: seed, table, logits."""

    seed: str
    table: Table
    adversary: Adversary
    number: int

    def faults(self, judge: Faults, counts: Counts) -> Iterator[str]:
        """Decode once; what is wrong with the answer, if anything."""
        dice = random.Random(self.seed)
        broken = self.number % BROKEN == BROKEN - 1
        kind = dice.choice(self.adversary.broken if broken else self.adversary.valid)
        limit = self.table.distance(self.table.start) + dice.choice(FURTHER)
        about = f"({kind}, {limit} tokens)"
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
            return
        tokens = self.adversary.tokens
        text = b"".join(tokens[token] for token in answer)
        counts.outputs += 1
        counts.kinds[kind] += 1
        counts.past_limit += len(answer) > limit
        try:
            fault = "broken logits were not noticed" if broken else judge(text)
        except Unjudged:
            counts.unjudged += 1
            return
        if fault:
            yield f"{about}: {fault}: {text.decode('utf-8', 'replace')}"


def show_counts(counts: Counts) -> None:
    """The counter, on a terminal only."""
    if sys.stderr.isatty():
        text = f"{counts.outputs:,} outputs, {counts.invalid:,} invalid"
        print(f"\r{printable(text)}", end="", file=sys.stderr, flush=True)


def clear_line() -> None:
    """Take the counter away."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
