"""The cache: what is there is used, what is damaged or foreign is made again, and said."""

import json
import os
import subprocess
import sys

import pytest
from doubles import SMALL

import cmm.compiler.lift as lift
from cmm.compiler import (
    TokenTable,
    cache_dir,
    compile_calls,
    compile_grammar,
    compile_schema,
    load_vocabulary,
    make_vocabulary,
)
from cmm.compiler.store import about_file
from cmm.grammar import InvalidInput, Unsupported, call_grammar, parse_functions

GRAMMAR = call_grammar(parse_functions([{"name": "f", "parameters": {"a": "string"}}]))


@pytest.fixture(autouse=True)
def _empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CMM_CACHE_DIR", str(tmp_path / "cache"))


def rows(table):
    return table.rows.tokens.tolist(), table.distances.to_end.tolist(), table.distance(table.start)


def test_the_second_time_comes_from_the_file():
    first = compile_grammar(GRAMMAR, SMALL)
    second = compile_grammar(GRAMMAR, SMALL)
    assert (first.reused, second.reused) == (False, True)
    assert first.path == second.path
    assert rows(first.table) == rows(second.table)
    assert second.table.accepts('{"name": "f", "arguments": {"a": "x"}}')


def test_another_vocabulary_has_another_file():
    other = make_vocabulary([bytes([b]) for b in range(256)])
    assert compile_grammar(GRAMMAR, SMALL).path != compile_grammar(GRAMMAR, other).path


def test_a_compile_is_the_same_to_the_byte():
    path = compile_grammar(GRAMMAR, SMALL).path
    first = path.read_bytes()
    path.unlink()
    assert compile_grammar(GRAMMAR, SMALL).path.read_bytes() == first


def spoiled(data):
    middle = len(data) // 2
    yield "empty", b""
    yield "short", data[:7]
    yield "cut", data[:-1]
    yield "half", data[:middle]
    yield "flipped", data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
    yield "header flipped", data[:12] + bytes([data[12] ^ 4]) + data[13:]
    yield "huge header", b"\xff" * 8 + data[8:]
    yield "other text", b"[1, 2, 3]" * 100
    yield "longer", data + b"x"


@pytest.mark.parametrize("kind", [kind for kind, _ in spoiled(b"x" * 64)])
def test_a_damaged_file_is_made_again_with_a_note(kind):
    good = compile_grammar(GRAMMAR, SMALL)
    data = good.path.read_bytes()
    good.path.write_bytes(dict(spoiled(data))[kind])
    with pytest.warns(UserWarning, match="is made again"):
        again = compile_grammar(GRAMMAR, SMALL)
    assert not again.reused
    assert rows(again.table) == rows(good.table)
    assert good.path.read_bytes() == data


def test_a_cache_that_cannot_be_written_is_said_and_done_without(monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CMM_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(UserWarning, match="nothing is cached"):
        compiled = compile_grammar(GRAMMAR, SMALL)
    assert compiled.path is None
    assert compiled.table.accepts('{"name": "f", "arguments": {"a": "x"}}')


def test_a_vocabulary_is_worked_out_once(tmp_path):
    source = tmp_path / "ranks.tiktoken"
    source.write_bytes(b"YQ== 0\nIg== 1\nYSI= 2\n")
    first = load_vocabulary(source)
    assert [path.name.split("-")[0] for path in cache_dir().iterdir()] == ["vocabulary"]
    second = load_vocabulary(source)
    assert list(second.tokens) == list(first.tokens) == [b"a", b'"', b'a"']
    assert second.digest == first.digest
    assert second.text_rows.tokens.tolist() == first.text_rows.tokens.tolist()


def test_save_and_load(tmp_path):
    table = compile_grammar(GRAMMAR, SMALL).table
    path = tmp_path / "one.safetensors"
    assert table.save(path) == path.stat().st_size
    assert rows(TokenTable.load(path, SMALL)) == rows(table)
    with pytest.raises(InvalidInput, match="another vocabulary"):
        TokenTable.load(path, make_vocabulary([bytes([b]) for b in range(256)]))
    path.write_bytes(b"")
    with pytest.raises(InvalidInput, match="is no usable table"):
        TokenTable.load(path, SMALL)


def test_a_schema_over_the_budget_names_the_part_that_costs():
    costly = {"type": "string", "pattern": "^(a|b)*a(a|b){11}$"}
    schema = {"properties": {"a": {"type": "null"}, "b": {"items": costly}}}
    with pytest.raises(Unsupported) as error:
        compile_schema(schema, SMALL, budget=2500)
    assert str(error.value).startswith("/properties/b/items: needs more than 2500 states")


PROGRAM = """
from cmm.compiler import compile_grammar, make_vocabulary
from cmm.grammar import call_grammar, parse_functions
functions = parse_functions([{"name": "f", "parameters": {"a": "string"}}])
table = compile_grammar(call_grammar(functions), make_vocabulary([bytes([b]) for b in range(256)]))
assert table.table.accepts('{"name": "f", "arguments": {"a": "x"}}')
"""


def test_many_processes_at_once_leave_one_good_file():
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    running = [subprocess.Popen(command, env=dict(os.environ)) for _ in range(4)]
    assert [process.wait(60) for process in running] == [0] * 4
    assert [path.suffix for path in cache_dir().iterdir()] == [".safetensors"]


def test_rows_of_too_many_tokens_are_refused(monkeypatch):
    monkeypatch.setattr(lift, "MOST_FOLLOWED", 20_000)
    schema = {"properties": {"a": {"type": "string", "pattern": "^c.{60}$"}}}
    with pytest.raises(Unsupported, match=r"needs rows of more than 20,000 tokens together \(say"):
        compile_schema(schema, SMALL)


def test_a_file_gives_its_functions_back_in_their_order(tmp_path):
    """Another order of parameters is another prompt, and with it other calls."""
    definition = {
        "z": {"type": "string", "description": "b", "title": "a"},
        "a": {"type": "number"},
    }
    functions = parse_functions([{"name": "f", "description": "", "parameters": definition}])
    compile_calls(functions, SMALL).table.save(tmp_path / "t.cmm")
    again = about_file(tmp_path / "t.cmm").functions
    assert [json.dumps(f.tool()) for f in again] == [json.dumps(f.tool()) for f in functions]
