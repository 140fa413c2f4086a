"""The head of a prompt on disk: the same answers, and no file is trusted."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import pytest
import torch
from runtime_doubles import tiny_network, tiny_tokenizer

from cmm.compiler import compile_functions, load_vocabulary
from cmm.grammar.functions import parse_functions
from cmm.runtime import prefix
from cmm.runtime.engine import Engine, Request
from cmm.runtime.prefix import PrefixFile, model_digest

VOCABULARY = load_vocabulary(tiny_tokenizer())
TABLE = compile_functions(
    parse_functions([{"name": "add", "parameters": {"a": {"type": "number"}}}]), VOCABULARY
)
HEAD = [1, 2, 3, 4, 5]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMM_CACHE_DIR", str(tmp_path))


def answer(dtype: torch.dtype = torch.float32, head: list[int] = HEAD) -> tuple[int, list[int]]:
    """Passes and answer of a fresh engine that keeps its head on disk."""
    network = tiny_network(1, VOCABULARY.size).to(dtype)
    engine = Engine(network, TABLE, head, prefix=PrefixFile("model", dtype, head))
    [(_, tokens)] = engine.decode([Request([7, 8])], 40)
    return engine.forwards, tokens


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_second_engine_reads_no_head(dtype: torch.dtype) -> None:
    first, again = answer(dtype), answer(dtype)
    assert again == (first[0] - 1, first[1])


def test_another_head_is_another_file() -> None:
    answer()
    answer(head=[5, 4, 3, 2, 1])
    assert len(list(prefix.cache_dir().glob("prefix-*"))) == 2


def damage_cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def damage_byte(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def damage_empty(path: Path) -> None:
    path.write_bytes(b"")


def damage_foreign(path: Path) -> None:
    other = PrefixFile("other model", torch.float32, HEAD)
    other.save([(torch.zeros(1, 2, 5, 8), torch.zeros(1, 2, 5, 8))])
    os.replace(other.path, path)


@pytest.mark.parametrize("damage", [damage_cut, damage_byte, damage_empty, damage_foreign])
def test_a_damaged_file_is_made_again(damage) -> None:  # type: ignore[no-untyped-def]
    first = answer()
    [path] = prefix.cache_dir().glob("prefix-*")
    damage(path)
    with pytest.warns(UserWarning, match="is made again"):
        assert answer() == first
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert answer() == (first[0] - 1, first[1])


def test_no_place_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CMM_CACHE_DIR", str(tmp_path / "file" / "below"))
    with pytest.warns(UserWarning, match="nothing is cached"):
        assert answer()[1] == answer()[1]


def test_the_longest_unused_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = [(torch.zeros(1, 1, 2, 64), torch.zeros(1, 1, 2, 64))]
    files = [PrefixFile(name, torch.float32, [1, 2]) for name in "abc"]
    files[0].save(layer)
    size = files[0].path.stat().st_size
    monkeypatch.setattr(prefix, "LIMIT", 2 * size + 100)
    files[1].save(layer)
    os.utime(files[0].path, (1, 1))
    os.utime(files[1].path, (2, 2))
    assert files[0].load() is not None  # used now
    files[2].save(layer)
    assert [file.path.exists() for file in files] == [True, False, True]


def test_a_model_that_changes_has_another_digest(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"12345678")
    os.utime(weights, (1, 1))
    before = model_digest(tmp_path)
    assert model_digest(tmp_path) == before
    os.utime(weights, (2, 2))
    assert model_digest(tmp_path) != before
