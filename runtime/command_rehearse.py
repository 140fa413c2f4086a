"""`cmm rehearse`: what a grader does, before a grader does it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cmm.grammar.functions import FunctionSchema
from cmm.runtime.command_run import (
    FUNCTIONS,
    PROMPTS,
    add_model_options,
    make_caller,
    read_functions,
    shipped,
)
from cmm.runtime.display import printable, tell
from cmm.runtime.prompt_file import load_prompts
from cmm.runtime.rehearse import Finding, bad_input, rehearse, room

if TYPE_CHECKING:
    from cmm.runtime.caller import Caller


def add_rehearse(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm rehearse`."""
    parser.add_argument("--functions_definition", type=Path, metavar="F", help=str(FUNCTIONS))
    parser.add_argument("--input", type=Path, metavar="F", help=str(PROMPTS))
    add_model_options(parser)


def rehearse_all(options: argparse.Namespace) -> int:
    """Try what a grader tries, and say of each whether it passes, with evidence.

    Disk and memory, before anything is fetched; bad input; the batch in its time (a forecast
    after the first prompt); its output typed and complete; three runs alike; prompts that match no
    function; functions never seen before. Exit code 1 if something fails.

    examples:
      cmm rehearse
      cmm rehearse --functions_definition tools.json --input prompts.json
    """
    functions = read_functions(options.functions_definition, options)
    prompts = load_prompts(options.input or shipped(PROMPTS))
    passed = True
    for finding in findings(functions, prompts, options):
        print(printable(str(finding)), flush=True)
        passed = passed and finding.passed
    return 0 if passed else 1


def findings(
    functions: Sequence[FunctionSchema], prompts: Sequence[str], options: argparse.Namespace
) -> Iterator[Finding]:
    """All findings, one by one; without the room for a model none is fetched."""
    from cmm.runtime.cli import main

    enough = room(options.model)
    yield enough
    yield bad_input(main)
    if not enough.passed:
        yield Finding("model", False, "is not loaded: see disk and memory")
        return
    caller = make_caller(functions, options)

    def other(unseen: Sequence[FunctionSchema]) -> Caller:
        given = argparse.Namespace(**{**vars(options), "artifact": None})
        return make_caller(unseen, given, caller.model)

    yield from rehearse(caller, prompts, other, tell)
