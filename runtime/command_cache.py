"""`cmm cache`: what is kept on disk, whether it is whole, and how to be rid of it."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping
from pathlib import Path

from cmm.compiler.artifact import MALFORMED, DamagedFile, read_header
from cmm.compiler.cache import CachedFile, cache_dir, cached_files, clear, fault_of, limit
from cmm.runtime.display import printable, tell

STALE = "another format"  # of a file that another version of the program has written


def add_cache(parser: argparse.ArgumentParser) -> None:
    """The options of `cmm cache`."""
    actions = ("list", "verify", "clear")
    parser.add_argument("action", nargs="?", choices=actions, default="list", help="what to do")
    parser.add_argument("--json", action="store_true", help="as JSON")


def cache(options: argparse.Namespace) -> int:
    """List, verify or clear the compiled files: tables, tokenizers' data, prompt heads.

    All of them are made again when they are needed. The folder is CMM_CACHE_DIR or the usual one
    of this system; beyond CMM_CACHE_LIMIT bytes (2 GiB) the longest unused ones are dropped.
    Models are not among them.

    examples:
      cmm cache
      cmm cache verify
      cmm cache clear
    """
    if options.action == "clear":
        dropped = clear()
        tell(f"{len(dropped)} files, {sum(f.size for f in dropped):,} bytes dropped")
        return 0
    files = cached_files()
    faults = {f.path: fault_of(f) for f in files} if options.action == "verify" else {}
    if options.json:
        print(json.dumps([_as_json(f, faults) for f in files], ensure_ascii=False))
    else:
        for file in files:
            print(printable(_line(file, faults)))
        total = sum(file.size for file in files)
        tell(f"{len(files)} files, {total:,} of {limit():,} bytes in {cache_dir()}")
    stale = [path for path, fault in faults.items() if fault == STALE]
    damaged = [path for path, fault in faults.items() if fault not in (None, STALE)]
    if stale or damaged:
        tell(f"{len(damaged)} not whole, {len(stale)} of another version: cmm cache clear")
    return 1 if damaged else 0


def _line(file: CachedFile, faults: Mapping[Path, str | None]) -> str:
    used = time.strftime("%Y-%m-%d %H:%M", time.localtime(file.used))
    state = "" if file.path not in faults else f"  {faults[file.path] or 'whole'}"
    return (
        f"{file.kind:10} {file.size:>12,}  {used}  {file.path.name}  {_about(file)}{state}".rstrip()
    )


def _about(file: CachedFile) -> str:
    """The functions of a table, as far as its file says."""
    names = _names(file)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _names(file: CachedFile) -> list[str]:
    try:
        tools = read_header(file.path)["about"]["functions"]
        return [str(tool["function"]["name"]) for tool in tools]
    except (OSError, DamagedFile, *MALFORMED):
        return []


def _as_json(file: CachedFile, faults: Mapping[Path, str | None]) -> dict[str, object]:
    found: dict[str, object] = {
        "path": str(file.path), "kind": file.kind, "bytes": file.size, "used": file.used,
        "functions": _names(file),
    }  # fmt: skip
    return found | ({"fault": faults[file.path]} if file.path in faults else {})
