"""The project holds together: docstring examples run, README and Makefile say what is there."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("grammar", "compiler", "runtime", "data")
FILES = sorted(path for folder in FOLDERS for path in (ROOT / folder).glob("*.py"))
README = (ROOT / "README.md").read_text(encoding="utf-8")
OURS = [path for path in FILES if path.parent.name in {"runtime", "data"}]


def module_of(path: Path) -> str:
    name = f"cmm.{path.parent.name}"
    return name if path.stem == "__init__" else f"{name}.{path.stem}"


@pytest.mark.parametrize("path", OURS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_examples_in_docstrings(path: Path) -> None:
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    result = doctest.testmod(importlib.import_module(module_of(path)), optionflags=flags)
    assert result.failed == 0


def test_readme_names_every_file() -> None:
    listed = re.findall(r"^\| `(\w+/\w+\.py)` \|", README, re.MULTILINE)
    there = [f"{path.parent.name}/{path.name}" for path in FILES if path.stem != "__init__"]
    assert sorted(listed) == sorted(there)


def test_readme_commands_exist() -> None:
    from cmm.runtime.cli import COMMANDS

    assert set(re.findall(r"^cmm (\w+)", README, re.MULTILINE)) == set(COMMANDS)


def make(*arguments: str) -> str:
    command = ["make", "--no-print-directory", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_make_help_names_every_target() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony
    assert set(re.findall(r"^  make (\w+)", make("help"), re.MULTILINE)) == set(phony[1].split())


def test_make_installs_nothing_twice(tmp_path: Path) -> None:
    """With its stamp files in place, make run does nothing but run."""
    (tmp_path / "bin").mkdir()
    for name in ("bin/python", ".run", ".dev"):
        (tmp_path / name).touch()
    planned = make("--dry-run", f"VENV={tmp_path}", "run", "ARGS=--input x.json")
    assert planned.strip() == f"{tmp_path}/bin/cmm run --input x.json"
