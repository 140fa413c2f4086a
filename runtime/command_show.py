"""`cmm show`: a picture of what may be said."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from cmm.compiler.picture import Outline, as_html, as_svg, as_text, picture
from cmm.grammar.errors import InvalidInput
from cmm.grammar.formats import FORMATS
from cmm.grammar.functions import FunctionSchema
from cmm.runtime.command_compile import add_source, read_source
from cmm.runtime.display import printable, tell
from cmm.runtime.files import check_output, write_whole


def add_show(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm show`."""
    add_source(parser)
    parser.add_argument("--format", choices=FORMATS, default="hermes", help="of the calls")
    parser.add_argument("--output", type=Path, metavar="F", help="a .html page or an .svg drawing")


def show(options: argparse.Namespace) -> int:
    """Show the automaton of a function set, or of a JSON Schema: states, and texts between them.

    In the terminal an arrow is a line; a page has a box to open for each part that is entered
    (`<part 3>`); an .svg holds the first of them, the calls themselves.

    examples:
      cmm show functions.json
      cmm show functions.json --output automaton.html
      cmm show --schema schema.json --output automaton.svg
    """
    if options.output is not None:
        if options.output.suffix not in (".html", ".svg"):
            raise InvalidInput("is neither .html nor .svg", file=str(options.output))
        check_output(options.output)
    source = read_source(options.functions, options.schema)
    frames = picture(source.automaton(FORMATS[options.format]))
    if options.output is None:
        print("\n".join(map(printable, as_text(frames).split("\n"))))
        return 0
    if options.output.suffix == ".html":
        page = as_html(frames, source.path.name, outline(source.functions or ()))
    else:
        page = as_svg(frames[0])
    write_whole(options.output, [page])
    tell(f"written to {options.output}")
    return 0


def outline(functions: Sequence[FunctionSchema]) -> Outline:
    """Functions, their arguments, and what each may be."""
    found = []
    for function in functions:
        required = function.parameters.get("required", ())
        arguments = [
            (
                f"{name}{'' if name in required else ' (may be left out)'}",
                json.dumps(value, indent=2),
            )
            for name, value in function.parameters.get("properties", {}).items()
        ]
        found.append((function.name, arguments))
    return found
