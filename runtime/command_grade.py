"""`cmm grade`: is a file of calls right, and if not, in what way?"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cmm.grammar.errors import InvalidInput, pointer
from cmm.grammar.files import read_json
from cmm.grammar.functions import load_functions
from cmm.runtime.display import printable, tell
from cmm.runtime.grade import Contract, Verdict, grade


def add_grade(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm grade`."""
    parser.add_argument("actual", type=Path, help="a file of calls, as `cmm run` writes it")
    parser.add_argument("expected", type=Path, nargs="?", help="the calls that belong there")
    parser.add_argument("--functions", type=Path, metavar="F", help="what may be called")
    parser.add_argument("--json", action="store_true", help="as JSON")


def grade_files(options: argparse.Namespace) -> int:
    """Compare calls with the expected ones, and say of each fault what it is.

    A regular expression is right if it matches the same in its source string. Expected rows with
    "skip": true have no one right answer: there the contract alone is checked, as it is everywhere
    where nothing is expected. Exit code 1 where something is wrong.

    examples:
      cmm grade data/output/function_calls.json expected.json
      cmm grade calls.json expected.json --functions functions.json --json
      cmm grade calls.json --functions functions.json
    """
    calls = read_rows(options.actual)
    expected = read_expected(options.expected) if options.expected else None
    functions = load_functions(options.functions) if options.functions else ()
    verdicts = grade(calls, expected, Contract.of(functions))
    wrong = [verdict for verdict in verdicts if verdict.faults]
    if options.json:
        print(json.dumps(summary(verdicts), ensure_ascii=False))
    else:
        for row, verdict in enumerate(verdicts):
            for fault in verdict.faults:
                print(printable(f"{row}: {verdict.prompt[:50]!r}: {fault}"))
        tell(f"{len(verdicts) - len(wrong)} of {len(verdicts)} right{kinds(verdicts)}")
    return 1 if wrong else 0


def read_rows(path: Path) -> Sequence[Any]:
    """The rows of a file of calls."""
    rows = read_json(path)
    if not isinstance(rows, list):
        raise InvalidInput("must be a list of calls", file=str(path))
    return rows


def read_expected(path: Path) -> Sequence[Any]:
    """The rows of a file of expected calls; each must say which prompt it is of."""
    rows = read_rows(path)
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or not isinstance(row.get("prompt"), str):
            raise InvalidInput(
                'an expected call must be an object with its "prompt"',
                file=str(path),
                place=pointer(number),
            )
    return rows


def summary(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """All verdicts and their totals, as JSON."""
    right = sum(not verdict.faults for verdict in verdicts)
    counts = Counter(fault.kind for verdict in verdicts for fault in verdict.faults)
    rows = [asdict(verdict) for verdict in verdicts]
    return {"right": right, "rows": len(verdicts), "kinds": dict(counts), "verdicts": rows}


def kinds(verdicts: Sequence[Verdict]) -> str:
    """How often each kind of fault was found, in words."""
    counts = Counter(fault.kind for verdict in verdicts for fault in verdict.faults)
    text = ", ".join(f"{count} {kind}" for kind, count in counts.most_common())
    return f" ({text})" if text else ""
