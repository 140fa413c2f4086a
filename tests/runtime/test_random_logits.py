"""Whatever the logits and however tight the limit: each call parses and fits its schema."""

from __future__ import annotations

import random
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from runtime_doubles import tiny_tokenizer

from cmm.compiler import compile_functions, load_vocabulary
from cmm.grammar.formats import HERMES
from cmm.grammar.functions import load_functions
from cmm.runtime.slow import decode_slowly

SETS = sorted((Path(__file__).parent.parent / "data" / "sets").glob("*.json"))
VOCABULARY = load_vocabulary(tiny_tokenizer())
RUNS = 20  # of each set


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_random_calls_are_valid(path: Path) -> None:
    functions = load_functions(path)
    schemas = {function.name: function.parameters for function in functions}
    table = compile_functions(functions, VOCABULARY)
    least = table.distance(table.start)
    for seed in range(RUNS):
        noise = np.random.default_rng(seed)
        limit = least + random.Random(seed).choice([0, 1, 2, 5, 20, 100])
        answer = decode_slowly(
            lambda ids, noise=noise: noise.normal(size=VOCABULARY.size).astype(np.float32),
            table,
            [],
            limit,
        )
        text = b"".join(VOCABULARY.tokens[token] for token in answer).decode("utf-8")
        name, arguments = HERMES.parse(text, functions)
        assert len(answer) <= limit
        jsonschema.validate(arguments, {**schemas[name], "additionalProperties": False})
