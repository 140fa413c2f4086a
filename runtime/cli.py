"""The command `cmm`: one function per command; its docstring is its help."""

from __future__ import annotations

import argparse
import errno
import inspect
import io
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn, TextIO

from cmm.grammar.errors import CmmError
from cmm.runtime import (
    command_cache,
    command_check,
    command_compile,
    command_explain,
    command_grade,
    command_match,
    command_models,
    command_prove,
    command_rehearse,
    command_run,
    command_show,
)
from cmm.runtime.display import tell

Command = Callable[[argparse.Namespace], int]
Options = Callable[[argparse.ArgumentParser], None]

COMMANDS: dict[str, tuple[Command, Options]] = {
    "run": (command_run.run, command_run.add_run),
    "call": (command_run.call, command_run.add_call),
    "compile": (command_compile.compile_table, command_compile.add_compile),
    "check": (command_check.check, command_check.add_check),
    "match": (command_match.match, command_match.add_match),
    "prove": (command_prove.prove, command_prove.add_prove),
    "explain": (command_explain.explain, command_explain.add_explain),
    "rehearse": (command_rehearse.rehearse_all, command_rehearse.add_rehearse),
    "show": (command_show.show, command_show.add_show),
    "grade": (command_grade.grade_files, command_grade.add_grade),
    "cache": (command_cache.cache, command_cache.add_cache),
    "models": (command_models.models, command_models.add_models),
}

HOME = Path(__file__).parent.parent

# Exit codes: 0 done, 1 no match, 2 wrong input, 130 stopped by Ctrl-C.


ASKING = ("cmm call", "cmm explain")  # they take a prompt


class Parser(argparse.ArgumentParser):
    """Says how a prompt that looks like an option is given, and takes no option it does not know.

    argparse leaves what a command does not know to the parser of all commands, which knows nothing
    of the command.
    """

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Options and arguments; nothing may be left over."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def error(self, message: str) -> NoReturn:
        """Usage, the problem, exit code 2."""
        dashed = "required: prompt" in message or "unrecognized arguments: -" in message
        if dashed and self.prog in ASKING:
            message += f' (a prompt that begins with - stands after --: {self.prog} -- "-x")'
        super().error(message)


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = Parser(prog="cmm", description="Requests become valid, typed function calls.")
    parser.add_argument("--version", action="version", version=f"cmm {version('call-me-maybe')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (command, add_options) in COMMANDS.items():
        text = inspect.getdoc(command) or ""
        add_options(
            commands.add_parser(
                name,
                help=text.splitlines()[0],
                description=text,
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
        )
    return parser


def dashed(argument: str) -> str:
    """A long option with dashes, so that underscores work as well.

    >>> dashed("--max_tokens=5"), dashed("a_b"), dashed("--functions-definition")
    ('--max-tokens=5', 'a_b', '--functions_definition')
    """
    if not argument.startswith("--") or argument == "--":
        return argument
    name, equals, value = argument[2:].partition("=")
    name = name.replace("_", "-")
    if name.startswith("functions-"):  # the one option whose name is given to us with underscores
        name = name.replace("-", "_")
    return "--" + name + equals + value


def normalise(arguments: Sequence[str]) -> list[str]:
    """Long options with dashes; what follows a lone `--` stays as it is."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [*map(dashed, arguments[:end]), *arguments[end:]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; errors are one line on stderr."""
    warnings.showwarning = show_warning
    if hasattr(sys, "set_int_max_str_digits"):  # an integer of a call may have more than 4,300
        sys.set_int_max_str_digits(0)
    if isinstance(sys.stdout, io.TextIOWrapper):  # JSON is UTF-8, whatever the terminal's language
        # Half of a surrogate pair, as in names of files that are no UTF-8, is an escape in JSON.
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        code = run_command(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
        return code
    except CmmError as error:
        tell(f"cmm: {error}")
        return 2
    except KeyboardInterrupt:
        tell("cmm: stopped")
        return 130
    except BrokenPipeError:
        return leave_stdout(1)
    except OSError as error:  # the disk, a permission, a name: the machine's side of things
        closed = error.errno == errno.EBADF
        problem = "a stream is closed" if closed else error.strerror or str(error)
        tell(f"cmm: {error.filename or 'input or output'}: {problem}")
        return leave_stdout(2)


def run_command(arguments: Sequence[str]) -> int:
    """Run the command of some arguments; help is written out, too, before it ends all."""
    try:
        options = build_parser().parse_args(normalise(arguments))
    except SystemExit:
        sys.stdout.flush()
        raise
    command, _ = COMMANDS[options.command]
    return command(options)


def leave_stdout(code: int) -> int:
    """The exit code, once nothing more can be written: Python flushes stdout again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Our own warnings as one line; those of libraries are not for the user."""
    if category is UserWarning and Path(filename).parent.parent == HOME:
        tell(f"cmm: warning: {message}")


if __name__ == "__main__":
    sys.exit(main())
