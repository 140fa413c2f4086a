"""The folders import one way, and only the runtime knows torch."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAY_IMPORT = {
    "grammar": {"cmm.grammar"},
    "compiler": {"cmm.grammar", "cmm.compiler"},
    "runtime": {"cmm.grammar", "cmm.compiler", "cmm.runtime", "cmm.data"},
}
HEAVY = {"torch", "transformers", "huggingface_hub", "gguf"}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by full name"
            yield node.module


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_imports_point_one_way(folder):
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    for path in files:
        for name in imported(path):
            if name.split(".")[0] == "cmm":
                assert ".".join(name.split(".")[:2]) in MAY_IMPORT[folder], f"{path}: {name}"
            if folder != "runtime":
                assert name.split(".")[0] not in HEAVY, f"{path}: {name}"
