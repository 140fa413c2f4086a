"""No file, however damaged, becomes a table: cuts, flipped bits, swapped headers, wrong numbers."""

import random
import warnings

import numpy as np
import pytest
from doubles import SMALL

from cmm.compiler import build_table, compile_calls, make_vocabulary
from cmm.compiler.artifact import DamagedFile, read_arrays, write_arrays
from cmm.compiler.packing import pack_table, pack_vocabulary, unpack_table, unpack_vocabulary
from cmm.grammar import parse_functions
from cmm.grammar.json_schema import schema_grammar

FUNCTIONS = parse_functions([
    {"name": "f", "parameters": {"a": {"type": "string", "maxLength": 5}, "b": {"type": "string", "pattern": "^a+b"}}},
    {"name": "g", "parameters": {"properties": {"o": {"type": "object", "properties": {"k": {}}}}}},
])  # fmt: skip


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CMM_CACHE_DIR", str(tmp_path / "cache"))


def table():
    return compile_calls(FUNCTIONS, SMALL).table


def changed(name, value):
    """The packed table with one number of one array changed."""
    arrays, header = pack_table(table())
    wide = np.int32 if arrays[name].dtype == np.int16 else arrays[name].dtype
    array = arrays[name].astype(wide)
    array.reshape(-1)[-1] = value
    return {**arrays, name: array}, header


def test_a_table_comes_back_as_it_was(tmp_path):
    first = table()
    write_arrays(tmp_path / "t", pack_table(first))
    again = unpack_table(read_arrays(tmp_path / "t"), SMALL)
    state, other = first.start, again.start
    for token in map(SMALL.tokens.index, [b'{"', b"n", b"a", b"m", b"e", b'": "', b"f"]):
        assert first.allowed(state).tolist() == again.allowed(other).tolist()
        state, other = first.next(state, token), again.next(other, token)
    assert again.about["functions"][1]["function"]["name"] == "g"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("moves.move", 30_000), ("moves.move", -30_000), ("moves.count", 60_000), ("moves.kinds", 1), ("moves.kinds", 257),
        ("moves.gaining", -9_999_999), ("automaton.calls", -1), ("automaton.keyed", 9), ("automaton.classes", 250),
        ("rows.tokens", 100_000), ("rows.tokens", -1), ("rows.target", 5_000), ("rows.starts", 3),
        ("rows.targets.control", 9_999), ("rows.targets.level_starts", 0), ("rows.targets.level_calls", 99),
        ("rows.exits.depths", 0), ("rows.bough_nodes", 10_000_000), ("rows.bough_bases", 77), ("rows.bough_targets", -4),
        ("distances.to_end", -1), ("distances.stride", 0),
    ],
)  # fmt: skip
def test_a_number_out_of_range_is_found_though_the_digest_is_right(tmp_path, name, value):
    write_arrays(tmp_path / "t", changed(name, value))
    with pytest.raises(DamagedFile):
        unpack_table(read_arrays(tmp_path / "t"), SMALL)


@pytest.mark.parametrize(
    "header",
    [
        {"start": -1}, {"start": "0"}, {"start": 10**9}, {"text_states": 0}, {"text_states": None}, {"names": []},
        {"names": 5}, {"vocabulary": "x"}, {"about": None, "names": None},
    ],
)  # fmt: skip
def test_a_wrong_header_is_found(header):
    arrays, good = pack_table(table())
    with pytest.raises(DamagedFile):
        unpack_table((arrays, {**good, **header}), SMALL)


def test_a_missing_array_is_found():
    arrays, header = pack_table(table())
    for name in arrays:
        with pytest.raises(DamagedFile):
            unpack_table(({k: v for k, v in arrays.items() if k != name}, header), SMALL)


def test_every_cut_and_flipped_bit_is_found(tmp_path):
    path = tmp_path / "t"
    write_arrays(path, pack_table(table()))
    data = path.read_bytes()
    dice = random.Random(0)
    spoiled = [data[: dice.randrange(len(data))] for _ in range(60)]
    for _ in range(200):
        at = dice.randrange(len(data))
        spoiled.append(data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :])
    for each in spoiled:
        path.write_bytes(each)
        with pytest.raises(DamagedFile):
            unpack_table(read_arrays(path), SMALL)


def test_the_header_of_one_file_before_the_arrays_of_another_is_found(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    write_arrays(one, pack_table(table()))
    write_arrays(other, pack_table(build_table(schema_grammar({"type": "object"}), SMALL)))
    first, second = one.read_bytes(), other.read_bytes()
    length = int.from_bytes(first[:8], "little") + 8
    one.write_bytes(first[:length] + second[int.from_bytes(second[:8], "little") + 8 :])
    with pytest.raises(DamagedFile):
        read_arrays(one)


def test_a_table_of_another_tokenizer_is_not_used():
    other = make_vocabulary([bytes([b]) for b in range(256)])
    with pytest.raises(DamagedFile, match="another vocabulary"):
        unpack_table(pack_table(table()), other)


def test_a_vocabulary_comes_back_as_it_was():
    again = unpack_vocabulary(pack_vocabulary(SMALL))
    assert list(again.tokens) == list(SMALL.tokens)
    assert again.boughs.control.tolist() == SMALL.boughs.control.tolist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            build_table(schema_grammar({}), again).counts()
            == build_table(schema_grammar({}), SMALL).counts()
        )
