"""The commands and programs in docs/ do what stands there.

```json NAME is a file, ```console commands with what they print (`...` stands for anything),
```console model the same with a model, ```python a program.
"""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from cmm.runtime.cli import main

DOCS = sorted((Path(__file__).parent.parent / "docs").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAGES = [path for path in DOCS if "```console" in path.read_text(encoding="utf-8")]
WITH_MODEL = [path for path in PAGES if "```console model" in path.read_text(encoding="utf-8")]


def run_console(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run each command of a block and compare what it prints on either stream."""
    for part in re.split(r"^\$ cmm ", text, flags=re.MULTILINE)[1:]:
        command, _, wanted = part.partition("\n")
        capsys.readouterr()
        main(shlex.split(command))
        printed = "".join(capsys.readouterr())
        assert doctest.OutputChecker().check_output(wanted, printed, FLAGS), f"{command}\n{printed}"


def follow(page: Path, folder: Path, capsys: pytest.CaptureFixture[str], *, model: bool) -> None:
    """Write the files of a page, and run its commands."""
    for kind, name, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "json" and name:
            (folder / name).write_text(text, encoding="utf-8")
        elif kind == "console" and (name == "model") is model:
            run_console(text, capsys)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    follow(page, tmp_path, capsys, model=False)


@pytest.mark.model
@pytest.mark.parametrize("page", WITH_MODEL, ids=lambda page: page.stem)
def test_commands_that_need_a_model(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    follow(page, tmp_path, capsys, model=True)


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_programs(page: Path) -> None:
    for kind, _, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            exec(compile(text, str(page), "exec"), {})


def test_the_readme_has_an_index_of_all_pages() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    index = readme.partition("## More to read")[2]
    assert sorted(re.findall(r"\]\(docs/([\w-]+\.md)\)", index)) == [page.name for page in DOCS]
