"""Right answers over suites of requests, each run in a folder of its own, several side by side.

    python bench/accuracy.py default bfcl:simple_python bfcl:multiple --limit 100
    python bench/accuracy.py path/to/sets --tokens any
    python bench/accuracy.py --compare bench/runs/one bench/runs/other

A suite is `default`, a folder of folders with functions.json, prompts.json and expected.json, or
`bfcl:` and one of its single-turn categories (package `bfcl-eval`, which also judges them).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

from cmm.data import data_path
from cmm.grammar.errors import CmmError
from cmm.grammar.files import read_json
from cmm.grammar.functions import FunctionSchema, load_functions, parse_functions
from cmm.runtime import Caller
from cmm.runtime.grade import compare
from cmm.runtime.model import Model, load_model
from cmm.runtime.prompt_file import load_prompts
from cmm.runtime.resolve import find_model

RUNS = Path(__file__).parent / "runs"
EXPECTED = Path(__file__).parent.parent / "tests" / "data" / "default_expected.json"
Judge = Callable[[dict[str, Any]], list[str]]  # a call -> kinds of its faults, none if it is right


@dataclass(frozen=True)
class Case:
    """One request with the functions it may be answered by, and its judge."""

    name: str
    prompt: str
    functions: tuple[FunctionSchema, ...]
    judge: Judge


def cases_of(suite: str) -> Iterator[Case]:
    """The cases of a suite."""
    if suite == "default":
        functions = data_path("input", "functions_definition.json")
        prompts = data_path("input", "function_calling_tests.json")
        yield from own_cases("default", functions, prompts, EXPECTED)
    elif suite.startswith("bfcl:"):
        yield from bfcl_cases(suite.removeprefix("bfcl:"))
    else:
        for folder in sorted(Path(suite).iterdir()):
            if (folder / "expected.json").is_file():
                files = [folder / f"{part}.json" for part in ("functions", "prompts", "expected")]
                yield from own_cases(folder.name, *files)


def own_cases(name: str, functions: Path, prompts: Path, expected: Path) -> Iterator[Case]:
    """Cases with one expected call each; those that are marked to be skipped are."""
    schemas = load_functions(functions)
    rows = zip(load_prompts(prompts), read_json(expected), strict=False)
    for number, (prompt, row) in enumerate(rows):
        if not row.get("skip"):
            yield Case(f"{name}/{number}", prompt, schemas, partial(kinds_of_faults, row))


def kinds_of_faults(expected: dict[str, Any], call: dict[str, Any]) -> list[str]:
    """What is wrong with a call, in kinds."""
    return [fault.kind for fault in compare(call, expected)]


def bfcl_cases(category: str) -> Iterator[Case]:
    """The questions of a category of the Berkeley Function Calling Leaderboard."""
    spec = find_spec("bfcl_eval")
    if spec is None or spec.origin is None:
        sys.exit("bfcl-eval is not installed: pip install --no-deps bfcl-eval")
    data, file = Path(spec.origin).parent / "data", f"BFCL_v4_{category}.json"
    answers = {row["id"]: row["ground_truth"] for row in lines(data / "possible_answer" / file)}
    check = bfcl_checker()
    for row in lines(data / file):
        messages = row["question"][0]
        prompt = "\n".join(m["content"] for m in messages if m["role"] == "user")

        def judge(call: dict[str, Any], row: Any = row) -> list[str]:
            found = [{call["name"]: call["parameters"]}]
            return check(row["function"], found, answers[row["id"]], category)

        try:
            functions = parse_functions(row["function"])
        except CmmError as error:
            print(f"{row['id']}: {error}", file=sys.stderr)
            functions = ()
        yield Case(row["id"], prompt, functions, judge)


def bfcl_checker() -> Callable[[Any, Any, Any, str], list[str]]:
    """The leaderboard's own checker, without the clients of vendors that it would import."""
    known = defaultdict(lambda: types.SimpleNamespace(underscore_to_dot=False))
    stub = types.ModuleType("bfcl_eval.constants.model_config")
    stub.MODEL_CONFIG_MAPPING = known  # type: ignore[attr-defined]
    sys.modules[stub.__name__] = stub
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    def check(functions: Any, found: Any, wanted: Any, category: str) -> list[str]:
        result = ast_checker(functions, found, wanted, Language.PYTHON, category, "cmm")
        return [] if result["valid"] else [str(result["error_type"])]

    return check


def lines(path: Path) -> list[Any]:
    """The values of a file with one on each line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def run_suite(suite: str, model: Model, options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each case: the call and its faults."""
    rows = []
    groups: dict[int, list[Case]] = {}  # by the identity of their functions
    for case in islice(cases_of(suite), options.limit):
        groups.setdefault(id(case.functions), []).append(case)
    for group in groups.values():
        rows += run_group(group, model, options)
        right = sum(not row["faults"] for row in rows)
        print(f"{suite}: {right} of {len(rows)} right", file=sys.stderr)
    return rows


def run_group(
    group: Sequence[Case], model: Model, options: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """The cases of one function set."""
    try:
        caller = Caller(
            group[0].functions, model, canonical=options.tokens == "canonical", prefix_cache=False
        )
    except CmmError as error:
        for case in group:
            yield {
                "case": case.name,
                "prompt": case.prompt,
                "faults": ["refused"],
                "error": str(error),
            }
        return
    for case, call in zip(group, caller.call_many(c.prompt for c in group), strict=True):
        found = call.model_dump()
        yield {"case": case.name, **found, "faults": case.judge(found)}


def report(suites: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Totals of each suite, and its faults by kind."""
    return {
        name: {
            "right": sum(not row["faults"] for row in rows),
            "cases": len(rows),
            "kinds": dict(Counter(kind for row in rows for kind in row["faults"]).most_common()),
        }
        for name, rows in suites.items()
    }


def compare_runs(folders: Sequence[Path]) -> None:
    """The totals of several runs, and the cases on which they differ."""
    runs = {folder.name: json.loads((folder / "rows.json").read_text()) for folder in folders}
    for suite in dict.fromkeys(suite for run in runs.values() for suite in run):
        right: dict[str, dict[str, bool]] = {}
        for name, run in runs.items():
            found = {row["case"]: not row["faults"] for row in run.get(suite, ())}
            right[name] = found
            print(f"{suite:24} {name:32} {sum(found.values())} of {len(found)}")
        for case in dict.fromkeys(case for found in right.values() for case in found):
            told = [found.get(case) for found in right.values()]
            if len(set(told)) > 1:
                marks = " ".join({True: "right", False: "wrong", None: "-"}[t] for t in told)
                print(f"    {case:40} {marks}")


def main() -> None:
    """Run the suites, keep what was answered, and print one JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suites", nargs="*", default=["default"])
    parser.add_argument("--model")
    parser.add_argument("--limit", type=int, help="cases of each suite")
    parser.add_argument("--tokens", choices=("canonical", "any"), default="canonical")
    parser.add_argument("--compare", type=Path, nargs="+", metavar="RUN", help="runs, side by side")
    options = parser.parse_args()
    if options.compare:
        compare_runs(options.compare)
        return
    model = load_model(find_model(options.model))
    started = time.perf_counter()
    suites = {suite: run_suite(suite, model, options) for suite in options.suites}
    folder = (
        RUNS / f"{time.strftime('%Y%m%d-%H%M%S')}-{model.name.replace('/', '-')}-{options.tokens}"
    )
    folder.mkdir(parents=True)
    (folder / "rows.json").write_text(json.dumps(suites, ensure_ascii=False, indent=1))
    found = {"seconds": round(time.perf_counter() - started, 1), "tokens": options.tokens}
    print(f"kept in {folder}", file=sys.stderr)
    print(json.dumps({"bench": "accuracy", **found, "model": model.name, **report(suites)}))


if __name__ == "__main__":
    main()
