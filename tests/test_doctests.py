"""The examples in the docstrings of the grammar and the compiler are true."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = [
    f"cmm.{folder}.{path.stem}"
    for folder in ("grammar", "compiler")
    for path in sorted((ROOT / folder).glob("*.py"))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert not failed
