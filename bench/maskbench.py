"""Real JSON Schemas with valid and invalid instances: how many compile, and to the right language.

    python bench/maskbench.py SET.jsonl.gz… [--engine llguidance xgrammar] [--limit 8]

Each line of a file is {"name", "schema", "tests": [{"valid", "data"}]}. A schema passes if it
compiles, every valid instance is accepted and every invalid one rejected, written as json.dumps
does. Ends with one JSON line; exit code 1 if it is worse than bench/maskbench_baseline.json.
"""

from __future__ import annotations

import argparse
import gzip
import json
import multiprocessing
import os
import re
import resource
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

BASELINE = Path(__file__).with_name("maskbench_baseline.json")
MOST_MEMORY = 6 << 30  # bytes a worker may take
Accepts = Callable[[str], bool]
Compile = Callable[[Any], Accepts]  # raises where the schema is refused


def cmm_engine() -> Compile:
    """Our own automaton."""
    from cmm.compiler import build_automaton
    from cmm.grammar import schema_grammar

    return lambda schema: build_automaton(schema_grammar(schema)).accepts


def cmm_any_order() -> Compile:
    """Ours, keys in any order where they are few."""
    from cmm.compiler import build_automaton
    from cmm.grammar import schema_grammar

    return lambda schema: build_automaton(schema_grammar(schema, any_order=True)).accepts


def llguidance_engine() -> Compile:
    """llguidance over single bytes, with our separators."""
    from llguidance import LLMatcher, LLTokenizer

    tokenizer = LLTokenizer("byte")
    options = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}

    def compile_schema(schema: Any) -> Accepts:
        grammar = LLMatcher.grammar_from_json_schema(schema, overrides=options)
        first = LLMatcher(tokenizer, grammar)
        if first.is_error():
            raise ValueError(first.get_error())

        def accepts(text: str) -> bool:
            matcher = first.deep_copy()
            tokens = list(text.encode())
            return bool(
                matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting()
            )

        return accepts

    return compile_schema


def xgrammar_engine() -> Compile:
    """xgrammar over single bytes, with our separators and objects as the standard has them."""
    import xgrammar

    words = [bytes([byte]) for byte in range(256)] + [b"</s>"]
    info = xgrammar.TokenizerInfo(words, stop_token_ids=[256])
    compiler = xgrammar.GrammarCompiler(info, cache_enabled=False)

    def compile_schema(schema: Any) -> Accepts:
        compiled = compiler.compile_json_schema(
            json.dumps(schema), any_whitespace=False, separators=(", ", ": "), strict_mode=False
        )

        def accepts(text: str) -> bool:
            matcher = xgrammar.GrammarMatcher(compiled)
            return bool(matcher.accept_string(text) and matcher.accept_token(256))

        return accepts

    return compile_schema


ENGINES = {
    "cmm": cmm_engine,
    "cmm-any-order": cmm_any_order,
    "llguidance": llguidance_engine,
    "xgrammar": xgrammar_engine,
}


def work(engine: str, pipe: Connection) -> None:
    """Answer schemas that come through the pipe, in a process that may be killed."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # engines warn there
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    warnings.simplefilter("ignore")
    compile_schema = ENGINES[engine]()
    pipe.send("ready")
    while True:
        line = pipe.recv()
        started = time.perf_counter()
        try:
            accepts = compile_schema(line["schema"])
        except Exception as error:
            pipe.send(("refused", reason(error), time.perf_counter() - started))
            continue
        seconds = time.perf_counter() - started
        pipe.send((*judged(accepts, line["tests"]), seconds))


def judged(accepts: Accepts, tests: list[dict[str, Any]]) -> tuple[str, str]:
    """What becomes of the instances: the worse of the mistakes, or a pass."""
    wrong = set()
    for test in tests:
        if accepts(json.dumps(test["data"], ensure_ascii=False)) != test["valid"]:
            wrong.add("valid rejected" if test["valid"] else "invalid accepted")
    return (min(wrong), "") if wrong else ("passes", "")


def reason(error: Exception) -> str:
    """The kind of a refusal: its text without the names, numbers and places in it."""
    text = str(getattr(error, "problem", "") or error).splitlines()[0] if str(error) else ""
    kind = "" if hasattr(error, "problem") else type(error).__name__ + ": "
    if not text.startswith("the keyword"):
        text = re.sub(r'"[^"]*"|\'[^\']*\'', "…", text)
    return kind + re.sub(r"\d+", "N", text)[:80]


@dataclass
class Row:
    """The counts of one set."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def add(self, outcome: str, why: str, seconds: float) -> None:
        """Count one schema."""
        self.outcomes[outcome] += 1
        if outcome == "refused":
            self.reasons[why] += 1
        else:
            self.seconds.append(seconds)

    def result(self) -> dict[str, Any]:
        """The counts as JSON."""
        times = sorted(self.seconds) or [0.0]
        return {
            "schemas": self.outcomes.total(),
            "passes": self.outcomes["passes"],
            "compiled": len(self.seconds),
            "valid_rejected": self.outcomes["valid rejected"],
            "invalid_accepted": self.outcomes["invalid accepted"],
            "refused": dict(self.reasons.most_common()),
            "milliseconds": {
                "median": round(1e3 * times[len(times) // 2], 1),
                "p99": round(1e3 * times[int(len(times) * 0.99)], 1),
                "max": round(1e3 * times[-1], 1),
            },
        }


class Worker:
    """A process with an engine; a schema that takes too long costs the process."""

    def __init__(self, engine: str, limit: float) -> None:
        self.engine, self.limit = engine, limit
        self.start()

    def start(self) -> None:
        self.pipe, inner = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=work, args=(self.engine, inner), daemon=True)
        self.process.start()
        inner.close()
        self.pipe.recv()

    def ask(self, line: dict[str, Any]) -> tuple[str, str, float]:
        """What becomes of one schema."""
        try:
            self.pipe.send(line)
            if self.pipe.poll(self.limit):
                answer: tuple[str, str, float] = self.pipe.recv()
                return answer
            why = f"more than {self.limit:g} seconds"
        except (EOFError, BrokenPipeError, ConnectionResetError):
            why = "the process died"
        self.process.kill()
        self.process.join()
        self.start()
        return "refused", why, self.limit


def read_lines(path: Path, most: int | None) -> Iterator[dict[str, Any]]:
    """The schemas of a set."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for i, line in enumerate(file):
            if most is not None and i >= most:
                return
            yield json.loads(line)


def worse(sets: dict[str, Any], baseline: dict[str, Any]) -> list[str]:
    """Where fewer schemas pass, or more invalid instances are accepted, than before."""
    found = []
    for name, row in sets.items():
        before = baseline.get(name)
        if before is None or before["schemas"] != row["schemas"]:
            continue
        if row["passes"] < before["passes"]:
            found.append(f"{name}: {row['passes']} pass, {before['passes']} before")
        if row["invalid_accepted"] > before["invalid_accepted"]:
            found.append(f"{name}: {row['invalid_accepted']} invalid instances accepted")
    return found


def run(files: list[Path], engine: str, limit: float, most: int | None) -> dict[str, Any]:
    """The rows of all sets for one engine, printed as they are done."""
    worker, rows = Worker(engine, limit), {}
    for path in files:
        row, name = Row(), path.name.split(".")[0]
        for line in read_lines(path, most):
            row.add(*worker.ask({"schema": line["schema"], "tests": line["tests"]}))
        rows[name] = found = row.result()
        print(f"{engine:10} {name:22} {found['passes']:5} of {found['schemas']:5} pass, "
              f"{found['compiled']:5} compile, {found['valid_rejected']:4} reject valid, "
              f"{found['invalid_accepted']:3} accept invalid, ms {found['milliseconds']}",
              flush=True)  # fmt: skip
        for why, count in row.reasons.most_common(8):
            print(f"           {count:6} {why}", flush=True)
    return rows


def main() -> int:
    """Run the engines over the sets, and compare ours with what is stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, metavar="SET.jsonl.gz")
    parser.add_argument("--engine", nargs="+", choices=ENGINES, default=["cmm"])
    parser.add_argument("--limit", type=float, default=8, help="seconds a schema may take")
    parser.add_argument("--most", type=int, help="schemas of each set")
    parser.add_argument("--update", action="store_true", help="store what is not worse")
    options = parser.parse_args()
    engines = [name for name in options.engine if name.startswith("cmm") or find_spec(name)]
    results = {name: run(options.files, name, options.limit, options.most) for name in engines}
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    ours = results.get("cmm", {})
    complaints = worse(ours, baseline)
    for text in complaints:
        print(f"worse than before: {text}", file=sys.stderr)
    if options.update and not complaints:
        keys = ("schemas", "passes", "invalid_accepted")
        kept = {name: {key: row[key] for key in keys} for name, row in ours.items()}
        BASELINE.write_text(json.dumps({**baseline, **kept}, indent=2) + "\n")
    print(json.dumps({"bench": "maskbench", "engines": results}))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
