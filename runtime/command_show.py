"""`cmm show`: a picture of what may be said."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cmm.compiler import build_automaton
from cmm.compiler.drawing import Outline, as_html, as_svg
from cmm.compiler.picture import FramePicture, as_text, picture
from cmm.grammar.errors import CmmError, InvalidInput
from cmm.grammar.formats import FORMATS
from cmm.grammar.functions import FunctionSchema
from cmm.grammar.inlining import Rewriter
from cmm.grammar.json_values import INTEGER, NUMBER
from cmm.grammar.nodes import Grammar, Mark
from cmm.runtime.command_compile import add_source, check_sources, read_source
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
        check_sources(options)
        check_output(options.output)
    source = read_source(options.functions, options.schema)
    try:
        frames = folded_picture(source.grammar(FORMATS[options.format]))
    except CmmError as error:
        raise error.located(file=str(source.path)) from None
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


# Values that are drawn as boxes of their own: what stands for each, and its grammar.
VALUES = {Mark("number>"): NUMBER, Mark("integer>"): INTEGER}


def folded_picture(grammar: Grammar) -> list[FramePicture]:
    """The frames of a grammar, numbers in boxes of their own at the end.

    >>> from cmm.grammar.nodes import Literal, sequence
    >>> [root, number] = folded_picture(Grammar(sequence(Literal("n="), NUMBER)))
    >>> [arrow.label for arrow in root.arrows], number.name
    (['n=', '<number>'], 'number')
    """
    marks = {id(node): mark for mark, node in VALUES.items()}
    writer = Rewriter(lambda node: marks.get(id(node), node))
    rules = {name: writer.written(node) for name, node in grammar.rules.items()}
    folded = Grammar(writer.written(grammar.root), rules)
    frames = picture(build_automaton(folded, controls=[mark.text for mark in VALUES]))
    labels = [arrow.label for frame in frames for arrow in frame.arrows]
    for mark, node in VALUES.items():
        if any(label.startswith(f"<{mark.text}") for label in labels):
            [inner] = picture(build_automaton(Grammar(node)))
            frames.append(replace(inner, name=mark.text[:-1]))
    return frames


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
