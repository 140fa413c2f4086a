"""`cmm run` and `cmm call`: requests become calls."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cmm.compiler import TokenTable
from cmm.compiler.store import about_file
from cmm.data import data_path
from cmm.grammar.errors import InvalidInput
from cmm.grammar.formats import FORMATS
from cmm.grammar.functions import FunctionSchema, load_functions
from cmm.grammar.members import MOST_IN_ANY_ORDER
from cmm.runtime.batch import Batch, write_as_finished, write_at_end
from cmm.runtime.display import is_live, progress, tell
from cmm.runtime.files import KEYS, Named, check_apart, check_output, is_stream, renamed
from cmm.runtime.journal import aside, journal_path
from cmm.runtime.machine import DTYPES
from cmm.runtime.observed import check_recording, recorded
from cmm.runtime.prompt_config import read_prompt_config
from cmm.runtime.prompt_file import STDIN, open_prompts, parse_prompt
from cmm.runtime.resolve import model_files

if TYPE_CHECKING:
    from cmm.runtime.caller import Caller
    from cmm.runtime.model import Model

INPUT = Path("data/input")
FUNCTIONS = INPUT / "functions_definition.json"
PROMPTS = INPUT / "function_calling_tests.json"
SPELLINGS = {FUNCTIONS: INPUT / "function_definitions.json"}  # both are in use
OUTPUT = Path("data/output/function_calls.json")


def add_keys(parser: argparse.ArgumentParser) -> None:
    """The option of commands that write calls."""
    keys = "legacy: a call's keys are prompt, fn_name, args"
    parser.add_argument("--keys", choices=KEYS, default="usual", help=keys)


def add_watching(parser: argparse.ArgumentParser) -> None:
    """The options about what a person sees of the work."""
    parser.add_argument("--quiet", action="store_true", help="no line but errors and warnings")
    trace = "a page (.html) to step through the run, token by token; takes longer"
    parser.add_argument("--trace", type=Path, metavar="F", help=trace)
    report = "how sure each choice was, as JSON"
    parser.add_argument("--report", type=Path, metavar="F", help=report)


def add_order(parser: argparse.ArgumentParser) -> None:
    """The option of commands that make an automaton of calls."""
    order = f"arguments as declared, or in any order where a function has up to {MOST_IN_ANY_ORDER}"
    parser.add_argument("--order", choices=("declared", "any"), help=order)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """The options of every command that asks a model."""
    artifact = "a file of `cmm compile --output`, in the place of the functions"
    parser.add_argument("--artifact", type=Path, metavar="F", help=artifact)
    parser.add_argument("--model", metavar="M", help="catalogue name, hub id, folder or .gguf file")
    parser.add_argument("--max-tokens", type=positive, metavar="N", help="most tokens of one call")
    parser.add_argument("--prompts-config", type=Path, metavar="F", help="prompt configuration")
    parser.add_argument("--dtype", choices=DTYPES, help="bfloat16 where the processor has it")
    parser.add_argument("--threads", type=positive, metavar="N", help="the fast physical cores")
    form = "how a call is written (default: what the model's configuration says)"
    parser.add_argument("--format", choices=FORMATS, help=form)
    add_order(parser)
    tokens = "spell as the tokenizer does (the default where that is known), or in any way"
    parser.add_argument("--tokens", choices=("canonical", "any"), help=tokens)
    parser.add_argument("--no-prefix-cache", action="store_true", help="keep no prompt on disk")


def positive(text: str) -> int:
    """A number of at least 1, for argparse."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def add_run(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm run`."""
    parser.add_argument("--functions_definition", type=Path, metavar="F", help=str(FUNCTIONS))
    parser.add_argument("--input", type=Path, metavar="F", help=str(PROMPTS))
    parser.add_argument("--output", type=Path, metavar="F", default=OUTPUT, help=str(OUTPUT))
    resume = (
        "go on with a stopped run, or say why not; without it another run's journal is set aside"
    )
    parser.add_argument("--resume", action="store_true", help=resume)
    size = "requests at once; as many as memory allows, up to 32"
    parser.add_argument("--batch-size", type=positive, metavar="N", help=size)
    add_keys(parser)
    add_watching(parser)
    add_model_options(parser)


def run(options: argparse.Namespace) -> int:
    """Answer a file of requests with typed calls.

    Reads functions and requests, writes a JSON list of {"prompt", "name", "parameters"}. Files that
    end in .jsonl hold a value on each line, and are read and written line by line; `-` is stdin or
    stdout. Calls are kept in a journal beside the output until all are done: a run that was
    stopped goes on when the same command is given again. Exit code 1 if prompts were too long.

    examples:
      cmm run
      cmm run --input prompts.json --output calls.json
      cmm run --functions_definition tools.json --model ./my-model
      cmm run --input - --output - < prompts.jsonl
    """
    source, stream = options.input or shipped(PROMPTS), is_stream(options.output)
    written: list[Named] = [("--output", options.output)]
    if not stream:
        kept = journal_path(options.output)
        written += [("the journal of --output", kept), ("its older journal", aside(kept))]
    prompts_file = Path("/dev/stdin") if source == STDIN else source
    check_files(options, options.functions_definition, written, [("--input", prompts_file)])
    functions = read_functions(options.functions_definition, options)
    prompts = open_prompts(source)
    if not stream:
        check_output(options.output)
    check_recording(options)
    caller = make_caller(functions, options)
    batch = Batch(caller, prompts, keys=options.keys, quiet=options.quiet)
    with recorded(caller, options):
        if stream:
            return write_as_finished(batch, options.output)
        return write_at_end(batch, options.output, resume=options.resume)


def add_call(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm call`."""
    parser.add_argument("prompt", help="the request")
    parser.add_argument("--functions", type=Path, metavar="F", help=str(FUNCTIONS))
    add_keys(parser)
    add_watching(parser)
    add_model_options(parser)


def call(options: argparse.Namespace) -> int:
    """Answer one request; the call goes to stdout as JSON.

    examples:
      cmm call "What is the sum of 2 and 3?"
      cmm call "Greet john" --functions tools.json
    """
    check_files(options, options.functions)
    functions = read_functions(options.functions, options)
    prompt = parse_prompt(options.prompt, "the prompt")
    check_recording(options)
    caller = make_caller(functions, options)
    hidden = options.quiet or not is_live()
    with recorded(caller, options), progress(1, caller=caller, quiet=hidden):
        answer = caller.call(prompt)
    print(json.dumps(renamed(answer.model_dump(), KEYS[options.keys]), ensure_ascii=False))
    return 0


def check_files(
    options: argparse.Namespace,
    functions: Path | None,
    written: Sequence[Named] = (),
    read: Sequence[Named] = (),
) -> None:
    """Refuse options that would have a file written over one that is read or written, too."""
    if options.artifact is None:
        functions = functions or shipped(FUNCTIONS)
    check_apart(
        [*written, ("--trace", options.trace), ("--report", options.report)],
        [
            *read,
            ("the functions", functions),
            ("--artifact", options.artifact),
            ("--prompts-config", options.prompts_config),
            *(("--model", path) for path in model_files(options.model)),
        ],
    )


def read_functions(path: Path | None, options: argparse.Namespace) -> Sequence[FunctionSchema]:
    """The functions of a file, or those that a compiled table was made of."""
    if options.artifact is None:
        return load_functions(path or shipped(FUNCTIONS))
    if path is not None:
        raise InvalidInput("name a function file or --artifact, not both", file=str(path))
    about = about_file(options.artifact)
    for option, made in (("format", about.call_format), ("order", about.order)):
        if getattr(options, option) not in (None, made):
            raise InvalidInput(
                f"was compiled with --{option} {made}, and --{option} "
                f"{getattr(options, option)} is asked for",
                file=str(options.artifact), advice="compile it again, or leave the option out",
            )  # fmt: skip
    return about.functions


def make_caller(
    functions: Sequence[FunctionSchema], options: argparse.Namespace, model: Model | None = None
) -> Caller:
    """The caller that the options describe. Files are checked before torch is imported."""
    config = read_prompt_config(options.prompts_config) if options.prompts_config else None
    from cmm.runtime.caller import Caller
    from cmm.runtime.model import load_model
    from cmm.runtime.resolve import find_model

    if model is None:
        quiet = getattr(options, "quiet", False)
        place = find_model(options.model, say=(lambda text: None) if quiet else tell)
        model = load_model(place, dtype=options.dtype, threads=options.threads)
    return Caller(
        functions,
        model,
        config=config,
        max_tokens=options.max_tokens,
        batch_size=getattr(options, "batch_size", None),
        prefix_cache=not options.no_prefix_cache,
        table=TokenTable.load(options.artifact, model.vocabulary) if options.artifact else None,
        any_order=options.order == "any",
        call_format=options.format,
        canonical=None if options.tokens is None else options.tokens == "canonical",
    )


def shipped(path: Path) -> Path:
    """The default file here, or the one that is shipped with the program."""
    here = (name for name in (path, SPELLINGS.get(path, path)) if name.exists())
    return next(here, data_path(*path.parts[1:]))
