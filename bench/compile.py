"""Compile times beside xgrammar and llguidance: one process, one thread.

    python bench/compile.py --model qwen2.5-coder-0.5b default bfcl:multiple tools.jsonl.gz

A set is `default`, `bfcl:` and a category of the package `bfcl-eval`, or a file of MaskBench (one
`{"name", "schema"}` a line). Times are in milliseconds:

cold    schema -> table (ours), compiled grammar (xgrammar), first mask (llguidance)
warm    ours only: from the file to the first mask
mask    microseconds for our mask of each step along a real call
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from cmm.compiler import TokenTable, Vocabulary, build_table, load_vocabulary
from cmm.data import data_path
from cmm.grammar.errors import CmmError
from cmm.grammar.formats import call_grammar
from cmm.grammar.functions import load_functions, parse_functions
from cmm.grammar.json_schema import schema_grammar
from cmm.grammar.nodes import Grammar
from cmm.runtime.resolve import find_model

RUNS = 3
Task = tuple[Callable[[], Grammar], dict[str, Any]]  # our grammar, and the schema for the peers
Peer = Callable[[dict[str, Any]], object]


def tasks_of(name: str) -> Iterator[Task]:
    """The schemas of a set; of functions, as one schema of all their calls."""
    if name == "default":
        yield calls_task(load_functions(data_path("input", "functions_definition.json")))
    elif name.startswith("bfcl:"):
        from accuracy import bfcl_cases

        yield from (calls_task(case.functions) for case in bfcl_cases(name.removeprefix("bfcl:")))
    else:
        with gzip.open(name, "rt", encoding="utf-8") as file:
            for line in file:
                schema = json.loads(line)["schema"]
                yield (lambda schema=schema: schema_grammar(schema)), schema


def calls_task(functions: Any) -> Task:
    """A function set as ours and as a JSON Schema of the same calls."""
    options = [
        {
            "type": "object",
            "properties": {
                "name": {"const": function.name},
                "arguments": {
                    "type": "object",
                    "additionalProperties": False,
                    **function.parameters,
                },
            },
            "required": ["name", "arguments"],
            "additionalProperties": False,
        }
        for function in functions
    ]
    return (lambda: call_grammar(functions)), {"anyOf": options}


def peers_of(folder: Path, vocabulary: Vocabulary) -> dict[str, Peer]:
    """The peers that are installed, each as a function of a schema."""
    found: dict[str, Peer] = {}
    source = (folder / "tokenizer.json").read_text(encoding="utf-8")
    try:
        import xgrammar
        from transformers import PreTrainedTokenizerFast

        tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json"))
        info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=vocabulary.size)
        compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        found["xgrammar"] = lambda schema: compiler.compile_json_schema(
            json.dumps(schema), any_whitespace=False, separators=(", ", ": ")
        )
    except ImportError:
        print("xgrammar is not installed: left out", file=sys.stderr)
    try:
        from llguidance import LLMatcher, LLTokenizer

        llguidance = LLTokenizer(source)

        def first_mask(schema: dict[str, Any]) -> object:
            options = {"whitespace_flexible": False}
            grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=options)
            matcher = LLMatcher(llguidance, grammar)
            if matcher.is_error():
                raise ValueError(matcher.get_error())
            return matcher.compute_bitmask()

        found["llguidance"] = first_mask
    except ImportError:
        print("llguidance is not installed: left out", file=sys.stderr)
    return found


def timed(work: Callable[[], object]) -> float | None:
    """Milliseconds, the best of some runs; None where it fails."""
    times = []
    for _ in range(RUNS):
        gc.collect()
        began = time.perf_counter()
        try:
            work()
        except Exception as error:  # a peer that refuses a schema may raise anything
            if isinstance(error, CmmError) or "cmm" not in type(error).__module__:
                return None
            raise
        times.append(1e3 * (time.perf_counter() - began))
    return min(times)


def measure(
    name: str, limit: int, vocabulary: Vocabulary, peers: dict[str, Peer]
) -> dict[str, Any]:
    """The times of a set: ours cold and warm, and the peers'."""
    times: dict[str, list[float]] = {key: [] for key in ("ours", "warm", *peers)}
    sizes = []
    for grammar, schema in islice(tasks_of(name), limit):
        cold = timed(lambda grammar=grammar: build_table(grammar(), vocabulary))
        others = {key: timed(partial(peer, schema)) for key, peer in peers.items()}
        if cold is None or None in others.values():
            continue  # only what all of them take is compared
        times["ours"].append(cold)
        for key, value in others.items():
            times[key].append(value or 0.0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "table"
            sizes.append(build_table(grammar(), vocabulary).save(path))
            times["warm"].append(timed(lambda path=path: first_row(path, vocabulary)) or 0.0)
    found: dict[str, Any] = {"schemas": len(sizes), "file_kb": statistics.median(sizes) / 1e3}
    for key, values in times.items():
        ordered = sorted(values)
        found[key] = {"median": round(statistics.median(ordered), 2),
                      "p99": round(ordered[int(0.99 * (len(ordered) - 1))], 2)}  # fmt: skip
    for key in peers:
        mine = "warm" if key == "llguidance" else "ours"
        for part in ("median", "p99"):
            found[f"{mine}/{key} {part}"] = round(found[mine][part] / found[key][part], 2)
    return found


def first_row(path: Path, vocabulary: Vocabulary) -> object:
    """What a start does: read the file, and ask for the first mask."""
    table = TokenTable.load(path, vocabulary)
    return table.allowed(table.start)


def mask_times(vocabulary: Vocabulary) -> dict[str, float]:
    """Microseconds of `allowed` along calls of the default set, once each state was seen."""
    functions = load_functions(data_path("input", "functions_definition.json"))
    table = build_table(call_grammar(functions), vocabulary)
    calls = json.loads(
        (Path(__file__).parent.parent / "tests/data/default_expected.json").read_text()
    )
    times = []
    for _ in range(RUNS):
        for call in calls:
            text = json.dumps(
                {"name": call["name"], "arguments": call["parameters"]}, ensure_ascii=False
            )
            state = table.start
            for token in vocabulary.bpe.encode(text) if vocabulary.bpe else ():
                began = time.perf_counter()
                table.allowed(state)
                times.append(1e6 * (time.perf_counter() - began))
                state = table.next(state, token)
    later = sorted(times[len(times) // RUNS :])
    return {"first_pass_max": round(max(times[: len(times) // RUNS]), 1),
            "median": round(statistics.median(later), 2),
            "p99.9": round(later[int(0.999 * (len(later) - 1))], 2)}  # fmt: skip


def many_functions(vocabulary: Vocabulary) -> dict[str, float]:
    """Milliseconds for 10, 100 and 1,000 functions in one set, none like another."""
    found = {}
    for count in (10, 100, 1000):
        functions = parse_functions([
            {"name": f"do_{i}_now", "parameters": {f"key_{i}": "string", f"count_{i}": "integer",
                                                  f"ratio_{i}": "number", f"flag_{i}": "boolean"}}
            for i in range(count)
        ])  # fmt: skip
        began = time.perf_counter()
        table = build_table(call_grammar(functions), vocabulary)
        found[str(count)] = round(1e3 * (time.perf_counter() - began), 1)
        with tempfile.TemporaryDirectory() as folder:
            size = table.save(Path(folder) / "t")
            found[f"{count} load"] = round(
                timed(lambda f=folder: first_row(Path(f) / "t", vocabulary)) or 0, 1
            )
            found[f"{count} kb"] = round(size / 1e3, 1)
    return found


def main() -> None:
    """Measure, and print one JSON line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sets", nargs="*", default=["default"])
    parser.add_argument("--model")
    parser.add_argument("--limit", type=int, default=200, help="schemas of each set")
    options = parser.parse_args()
    folder = find_model(options.model, tokenizer_only=True).folder
    vocabulary = load_vocabulary(folder)
    build_table(schema_grammar({"type": "object"}), vocabulary)  # what is worked out once, is now
    peers = peers_of(folder, vocabulary)
    found: dict[str, Any] = {"bench": "compile"}
    for name in options.sets:
        found[Path(name).name] = measure(name, options.limit, vocabulary, peers)
        print(f"{name}: {found[Path(name).name]}", file=sys.stderr)
    found["mask_us"] = mask_times(vocabulary)
    found["functions_ms"] = many_functions(vocabulary)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
