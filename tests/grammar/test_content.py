"""Sets of texts: the operations of sets, against sets of Python."""

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cmm.grammar.content import ANY, NOTHING, lengths, texts, union
from cmm.grammar.errors import Unsupported
from cmm.grammar.pattern import pattern_content

SHORT = ["".join(t) for n in range(5) for t in itertools.product("abé", repeat=n)]
short_sets = st.frozensets(st.text("abé", max_size=4), max_size=12)


@given(short_sets, short_sets)
def test_operations_are_those_of_sets(one, other):
    a, b = texts(one), texts(other)
    results = {"&": (a & b, one & other), "|": (a | b, one | other), "-": (a - b, one - other)}
    for name, (content, values) in results.items():
        assert content == texts(values), name  # equal sets are equal values
        assert content.finite(100) == tuple(sorted(values)), name
        assert content.count() == len(values), name
        assert [t for t in SHORT if content.accepts(t)] == [t for t in SHORT if t in values], name
    assert ~~a == a
    assert (~a & a).is_empty
    assert ~a | a == ANY
    assert hash(a | b) == hash(b | a)
    assert union([a, b, NOTHING]) == a | b


@given(short_sets)
def test_measures_count_characters_from_every_state(values):
    content = texts(values)
    ends = {0: values}
    for state, row in enumerate(content.moves):
        for low, high, target in row:
            for code in range(low, high + 1):
                ends[target] = {t[1:] for t in ends[state] if t[:1] == chr(code)}
    if values:
        counts = [{len(text) for text in ends[state]} for state in range(len(content.moves))]
        assert content.shortest() == tuple(min(count) for count in counts)
        assert content.longest() == tuple(max(count) for count in counts)
        dense = all(max(count) - min(count) + 1 == len(count) for count in counts)
        assert content.gapless == dense
    else:
        assert content.shortest() == content.longest() == ()


@pytest.mark.parametrize(
    ("pattern", "gapless"),
    [
        ("^[a-z]+$", True), ("^(ab)*$", False), ("a", True), ("^a{3,5}$", True),
        ("^(a|bbb)$", False), ("^(a|bb|ccc)$", True), ("^(aa|aaa)*$", False),
        ("^(aa|bbb)*c*$", True), ("^$", True),
    ],
)  # fmt: skip
def test_gapless(pattern, gapless):
    assert pattern_content(pattern).gapless == gapless


def test_everything_and_nothing():
    assert ~ANY == NOTHING
    assert ANY.universal == {0}
    assert NOTHING.universal == frozenset()
    assert ANY.gapless
    assert not ANY.is_empty
    assert NOTHING.is_empty
    assert NOTHING.finite(10) == ()
    assert ANY.finite(10) is None
    assert ANY.accepts("\x00\ud7ff\ue000\U0010ffff")
    assert not ANY.accepts("\ud800")
    assert texts([""]) == lengths(0, 0)
    assert (texts(["a"]) | ANY).universal == {0}
    assert lengths(3, 2) == NOTHING
    assert lengths(2) & lengths(0, 3) == lengths(2, 3)
    assert ~lengths(0, 4) == lengths(5)
    assert lengths(2, 3).longest() == (3, 2, 1, 0)


def test_many_values_are_one_automaton_at_once():
    values = [f"value {n:05} of many" for n in range(10_000)]
    began = time.perf_counter()
    content = texts(reversed(values))
    assert time.perf_counter() - began < 2
    assert len(content.moves) < 30
    assert content.finite(10_000) == tuple(values)
    assert content.finite(9_999) is None


def test_too_much_is_refused():
    with pytest.raises(Unsupported, match="more than"):
        lengths(0, 10**9)
    with pytest.raises(Unsupported, match="more than"):
        pattern_content("^(a{199})*$") & pattern_content("^(a{211})*$")
    with pytest.raises(Unsupported, match="surrogate"):
        texts(["\ud800"])
