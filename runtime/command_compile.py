"""`cmm compile`: the automaton itself, without torch."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cmm.compiler import (
    ByteAutomaton,
    Compiled,
    Vocabulary,
    build_automaton,
    compile_grammar,
    load_vocabulary,
    show_automaton,
)
from cmm.compiler.budget import calls_over_budget, over_budget
from cmm.compiler.determinise import DEFAULT_STATE_BUDGET
from cmm.compiler.store import about_calls
from cmm.grammar.call_format import CallFormat
from cmm.grammar.errors import CmmError, InvalidInput, StateBudgetExceeded
from cmm.grammar.files import read_json
from cmm.grammar.formats import FORMATS
from cmm.grammar.functions import FunctionSchema, load_functions
from cmm.grammar.json_schema import schema_grammar
from cmm.grammar.nodes import Grammar
from cmm.grammar.show import show_grammar, show_regex
from cmm.runtime.command_run import FUNCTIONS, add_order, positive, shipped
from cmm.runtime.display import printable, progress, tell
from cmm.runtime.files import check_apart, check_output, is_stream
from cmm.runtime.resolve import find_model, model_files


def add_source(parser: argparse.ArgumentParser) -> None:
    """What is compiled: a function set, or one plain schema."""
    parser.add_argument("functions", nargs="?", type=Path, help=str(FUNCTIONS))
    parser.add_argument("--schema", type=Path, metavar="F", help="one JSON Schema instead")


def add_compile(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm compile`."""
    add_source(parser)
    parser.add_argument("--model", metavar="M", help="whose tokens: name, hub id, folder or .gguf")
    parser.add_argument("--output", type=Path, metavar="F", help="write the table to this file too")
    parser.add_argument(
        "--max-states", type=positive, metavar="N", default=DEFAULT_STATE_BUDGET,
        help="refuse what needs more states than this",
    )  # fmt: skip
    parser.add_argument("--format", choices=FORMATS, default="hermes", help="of the calls")
    add_order(parser)
    parser.add_argument("--show", choices=["grammar", "regex", "automaton"], help="print it")


def compile_table(options: argparse.Namespace) -> int:
    """Compile functions, or a JSON Schema, to a token automaton, and cache it.

    With a folder every function file in it is compiled; the table's file is said on stdout.

    examples:
      cmm compile functions.json
      cmm compile my-function-sets/
      cmm compile functions.json --show grammar
      cmm compile --schema schema.json --model ./my-model --output table.cmm
    """
    if options.functions is not None and options.functions.is_dir():
        return compile_folder(options)
    check_sources(options)
    source = read_source(options.functions, options.schema, options.order)
    if options.show:
        text = shown(source, FORMATS[options.format], options.show)
        print("\n".join(map(printable, text.split("\n"))))
        return 0
    grammar = source.grammar(FORMATS[options.format])
    if options.output:
        if is_stream(options.output):
            raise InvalidInput("is no file, which a table needs", file=str(options.output))
        check_output(options.output)
    place = find_model(options.model, tokenizer_only=True)
    compiled = compile_source(source, grammar, load_vocabulary(place.folder), options)
    path, size = compiled.path, compiled.path.stat().st_size if compiled.path else 0
    if options.output:
        path, size = options.output, compiled.table.save(options.output)
    print("\n".join(map(printable, described(compiled, place.name, path, size))))
    return 0


def compile_folder(options: argparse.Namespace) -> int:
    """Compile every file of a folder, and say of each how it went."""
    if options.output or options.show or options.schema:
        raise InvalidInput("a folder goes with none of --output, --show, --schema",
                           file=str(options.functions))  # fmt: skip
    paths = sorted(options.functions.glob("*.json"))
    if not paths:
        raise InvalidInput("holds no .json file", file=str(options.functions))
    vocabulary = load_vocabulary(find_model(options.model, tokenizer_only=True).folder)
    refused = 0
    with progress(len(paths)) as show:
        for path in paths:
            try:
                source = read_source(path, order=options.order)
                grammar = source.grammar(FORMATS[options.format])
                compiled = compile_source(source, grammar, vocabulary, options)
            except CmmError as error:
                refused += 1
                show(f"cmm: {error}")
            else:
                print(printable(f"{path}: {compiled.path or 'could not be written'}"))
                show(f"{path}: {compiled.seconds:.3f} s" + ", as before" * compiled.reused)
    tell(f"{len(paths) - refused} of {len(paths)} compiled")
    return 2 if refused else 0


@dataclass(frozen=True)
class Source:
    """What is to be compiled, read once: the functions of a file, or one JSON Schema."""

    path: Path
    functions: tuple[FunctionSchema, ...] | None
    schema: Any = None
    any_order: bool = False  # of arguments

    def grammar(self, form: CallFormat) -> Grammar:
        """The grammar of the calls, or of the values of the schema."""
        try:
            if self.functions is None:
                return schema_grammar(self.schema, any_order=self.any_order)
            return form.grammar(self.functions, any_order=self.any_order)
        except CmmError as error:
            raise error.located(file=str(self.path)) from None

    def automaton(self, form: CallFormat) -> ByteAutomaton:
        """The byte automaton of that grammar."""
        grammar = self.grammar(form)
        try:
            return build_automaton(grammar)
        except CmmError as error:
            raise error.located(file=str(self.path)) from None

    def over_budget(self, budget: int, error: CmmError) -> CmmError:
        """The error with the part of the schema, or of a function's, that needs too much."""
        if self.functions is None:
            return over_budget(self.schema, budget, error)
        return calls_over_budget(self.functions, budget, error)


def check_sources(options: argparse.Namespace) -> None:
    """Refuse an output that would be written over what is read."""
    functions = options.functions or (None if options.schema else shipped(FUNCTIONS))
    models = model_files(getattr(options, "model", None))
    read = [("the functions", functions), ("--schema", options.schema)]
    check_apart([("--output", options.output)], [*read, *(("--model", path) for path in models)])


def read_source(
    functions: Path | None, schema: Path | None = None, order: str | None = None
) -> Source:
    """A function file, the shipped one if none is named, or a file of a schema."""
    if functions is not None and schema is not None:
        raise InvalidInput("name a function file or --schema, not both", file=str(functions))
    if schema is not None:
        return Source(schema, None, read_json(schema), order == "any")
    path = functions or shipped(FUNCTIONS)
    return Source(path, load_functions(path), any_order=order == "any")


def compile_source(
    source: Source, grammar: Grammar, vocabulary: Vocabulary, options: argparse.Namespace
) -> Compiled:
    """The table of a source; its errors name the file, and the part that is over the budget."""
    form = FORMATS[options.format]
    about = {}
    if source.functions is not None:
        about = about_calls(source.functions, form, any_order=source.any_order)
    try:
        return compile_grammar(grammar, vocabulary, options.max_states, about)
    except StateBudgetExceeded as error:
        costly = source.over_budget(options.max_states, error)
        raise costly.located(file=str(source.path)) from None
    except CmmError as error:
        raise error.located(file=str(source.path)) from None


def shown(source: Source, form: CallFormat, how: str) -> str:
    """What is to be compiled in one of the forms of --show."""
    if how == "automaton":
        return show_automaton(source.automaton(form))
    grammar = source.grammar(form)
    return show_grammar(grammar) if how == "grammar" else show_regex(grammar)


def described(compiled: Compiled, model: str, path: Path | None, size: int) -> list[str]:
    """What was compiled, in a few lines."""
    counts = compiled.table.counts()
    how = "was there already, read" if compiled.reused else "compiled"
    return [
        f"states       {counts['states']:,}",
        f"transitions  {counts['transitions']:,}, and those of strings, shared by all tables",
        f"bytes        {size:,}",
        f"seconds      {compiled.seconds:.3f} ({how})",
        f"model        {model}, {compiled.table.vocabulary.size:,} tokens",
        f"file         {path or 'none could be written'}",
    ]
