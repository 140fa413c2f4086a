"""Model folders and files that do not hold together, requests too long: one line, exit code 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from runtime_doubles import TEMPLATE, tiny_network, tiny_tokenizer

from cmm.compiler import load_vocabulary
from cmm.runtime.cli import main

SIZE = load_vocabulary(tiny_tokenizer()).size
FUNCTIONS = [{"name": "f", "parameters": {"n": {"type": "boolean"}}}]
BYTE_LEVEL = {"decoder": {"type": "ByteLevel"}}


def tokenizer_with(**model: Any) -> str:
    return json.dumps({"model": model, **BYTE_LEVEL})


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a whole small model, functions and a prompt beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "functions.json").write_text(json.dumps(FUNCTIONS))
    (tmp_path / "prompts.json").write_text('["Hi"]')
    folder = tmp_path / "tiny"
    tiny_network(0, SIZE).save_pretrained(str(folder))
    tiny_tokenizer().save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    return folder


def run(capsys: pytest.CaptureFixture[str], model: str = "tiny") -> tuple[int, str, list[str]]:
    capsys.readouterr()
    given = ["--functions_definition", "functions.json", "--input", "prompts.json"]
    code = main(["run", *given, "--output", "-", "--model", model])
    out, err = capsys.readouterr()
    return code, out, err.splitlines()


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        ("", "is empty (expected a JSON value)"),
        ("{}", 'is no tokenizer.json (it has no "model")'),
        (json.dumps({"model": {"type": "WordPiece", "vocab": {"a": 0, "##b": 1}}}),
         "the tokenizer is neither byte-level BPE nor SentencePiece"),
        (tokenizer_with(vocab={"a": "x"}), "its tokens are not listed with their numbers"),
        (tokenizer_with(vocab=[3]), "its tokens are not listed with their numbers"),
        (tokenizer_with(vocab={"a": 10**12}), "a token has the number 1000000000000"),
        (tokenizer_with(type="BPE", vocab={"a": 0}, merges=[3]), "its merges are not pairs of its tokens"),
        (tokenizer_with(type="ABC", vocab={"a": 0}),
         "is no tokenizer: data did not match any variant of untagged enum ModelUntagged at line 1 column 44"),
    ],
)  # fmt: skip
def test_a_broken_tokenizer(
    tokenizer: str, message: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (model / "tokenizer.json").write_text(tokenizer)
    told = f"cmm: tiny/tokenizer.json: {message}"
    assert run(capsys) == (2, "", [told])
    if "merges" not in message:  # nothing is encoded by them there
        assert main(["explain", "Hi", "--functions", "functions.json", "--model", "tiny"]) == 2
        assert capsys.readouterr().err == told + "\n"


@pytest.mark.parametrize("rows", [SIZE - 9, SIZE * 10 // 9 + 1, SIZE * 3])
def test_the_tokenizer_of_another_model(
    rows: int, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_network(0, rows).save_pretrained(str(model))
    message = f'the model "tiny" has {rows} rows of logits for {SIZE} tokens'
    told = f"cmm: {message}: this tokenizer belongs to another model"
    assert run(capsys) == (2, "", [told])


def test_rows_may_be_padded(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tiny_network(0, SIZE * 10 // 9 - 1).save_pretrained(str(model))
    assert run(capsys)[0] == 0


def test_a_prompt_of_100_000_words(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is refused by its place; the other one is answered."""
    Path("prompts.json").write_text(json.dumps(["Hi", "word " * 100_000]))
    code, out, err = run(capsys)
    assert code == 1
    assert [call["prompt"] for call in json.loads(out)] == ["Hi"]
    [told] = [line for line in err if line.startswith("cmm: prompts.json @ /1: ")]
    assert 'tokens long, and the model "tiny" has room for' in told
    assert len(told) < 300


def test_a_gguf_file_cut_short_in_its_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("functions.json").write_text(json.dumps(FUNCTIONS))
    Path("prompts.json").write_text('["Hi"]')
    writer: Any = gguf.GGUFWriter("whole.gguf", "llama")
    writer.add_tensor("token_embd.weight", np.zeros((32, 8), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    gguf.GGUFReader("whole.gguf")
    Path("cut.gguf").write_bytes(Path("whole.gguf").read_bytes()[:-40])
    code, out, [told] = run(capsys, "cut.gguf")
    assert (code, out) == (2, "")
    assert told.startswith("cmm: cut.gguf: is cut short or damaged: ")
    assert told.endswith(" (fetch it again)")
