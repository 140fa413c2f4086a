"""Tokens as bytes, from every way of writing them."""

import base64
import json

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from cmm.compiler import load_vocabulary
from cmm.compiler.vocabulary import byte_of_char
from cmm.grammar import InvalidInput, Unsupported


def byte_level():
    char_of = {byte: char for char, byte in byte_of_char().items()}
    vocabulary = {char_of[byte]: byte for byte in range(256)} | {"Ġa": 256, "Ã©": 257}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[("Ġ", "a"), ("Ã", "©")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("<|end|>")])
    tokenizer.add_tokens([AddedToken("<tool_call>")])
    return tokenizer


def test_byte_level_tokens_are_bytes_and_control_tokens_what_no_text_has(tmp_path):
    tokenizer = byte_level()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    for source in (tokenizer, tmp_path, str(tmp_path / "tokenizer.json")):
        tokens = load_vocabulary(source).tokens
        assert [tokens[i] for i in (0, 65, 254, 256, 257)] == [
            b"\0",
            b"A",
            b"\xfe",
            b" a",
            "é".encode(),
        ]
        assert tokens[255] == b""  # which marks control tokens
        assert [tokens[258], tokens[259]] == [b"\xff<|end|>", b"\xff<tool_call>"]
        assert len(tokens) == 260


def test_a_vocabulary_is_the_same_from_every_source(tmp_path):
    lines = [base64.b64encode(token) + b" %d" % i for i, token in enumerate([b"a", b"b", b"ab"])]
    (tmp_path / "x.tiktoken").write_bytes(b"\n".join(lines))
    document = {"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}},
                "decoder": {"type": "ByteLevel"}}  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    assert load_vocabulary(tmp_path).digest == load_vocabulary(tmp_path / "x.tiktoken").digest


def test_sentencepiece_tokens(tmp_path):
    vocabulary = {"<pad>": 0, "<0x0A>": 1, "▁a": 2, "é": 3}
    document = {"model": {"type": "BPE", "vocab": vocabulary},
                "added_tokens": [{"id": 0, "content": "<pad>"}]}  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    assert list(load_vocabulary(tmp_path).tokens) == [b"\xff<pad>", b"\n", b" a", "é".encode()]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("{", InvalidInput, "broken JSON"),
        ("[]", InvalidInput, "is no tokenizer.json"),
        (
            '{"model": {"type": "WordPiece", "vocab": {"##a": 0}}}',
            Unsupported,
            "neither byte-level",
        ),
        ('{"model": {"type": "X"}}', Unsupported, "a tokenizer of type 'X'"),
    ],
)
def test_what_is_no_tokenizer_is_said(tmp_path, text, kind, message):
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(kind) as error:
        load_vocabulary(tmp_path)
    assert message in str(error.value)
    assert "tokenizer.json" in str(error.value)


def test_a_folder_without_tokenizer_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        load_vocabulary(tmp_path)
