"""`cmm models`: which models are known and present; fetch one."""

from __future__ import annotations

import argparse

from cmm.grammar.errors import InvalidInput, listed
from cmm.runtime.catalogue import read_catalogue
from cmm.runtime.display import printable, tell
from cmm.runtime.resolve import find_model, model_state


def add_models(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm models`."""
    parser.add_argument("action", nargs="?", choices=["list", "pull"], default="list")
    parser.add_argument("name", nargs="?", help="the model to fetch")


def models(options: argparse.Namespace) -> int:
    """List the known models, or fetch one.

    examples:
      cmm models
      cmm models pull qwen2.5-coder-0.5b
    """
    if options.action == "pull":
        return pull(options.name)
    for entry in read_catalogue().models:
        print(f"{entry.name:22} {model_state(entry):8} {entry.license:12} {entry.about}")
    return 0


def pull(name: str | None) -> int:
    """Fetch a model, verify it and convert it; prints its folder."""
    if name is None:
        names = listed(entry.name for entry in read_catalogue().models)
        raise InvalidInput("which model?", advice=f"cmm models pull NAME, one of {names}")
    place = find_model(name)
    tell(f"{place.name} is ready")
    print(printable(str(place.folder)))
    return 0
