"""Patterns: which texts they are found in, against tables and against Python's engine."""

import re

import interegular
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scale import tries

from cmm.grammar.errors import InvalidInput, Unsupported
from cmm.grammar.pattern import pattern_content

# pattern: (texts it is found in, texts it is not found in)
FOUND = {
    "": (["", "a"], []),
    "b": (["b", "abc"], ["", "a"]),
    "^b": (["b", "bc"], ["ab", ""]),
    "b$": (["b", "ab"], ["bc", "b\n"]),
    "^$": ([""], ["a", "\n"]),
    "a^b": ([], ["ab", "a\nb"]),
    "^(a|bc)*$": (["", "abca"], ["b", "acb"]),
    "x|^y|z$": (["ax", "ya", "az"], ["ay", "za"]),
    r"^\d{2,3}$": (["12", "123"], ["1", "1234", "١٢"]),
    r"^\w+$": (["aZ_9"], ["é", "a-b", ""]),
    r"^\W\D\S$": (["é٣x"], ["aé ", "-1x", "-- "]),
    r"^\s$": ([" ", "\t", "\n", "\u00a0", "\ufeff", "\u2003", "\u2028"], ["\x1c", "\x85", "x"]),
    r"^.$": (["a", "😀", "\x85"], ["\n", "\r", "\u2028", ""]),
    r"^[^a-c]$": (["d", "\n", "😀"], ["a", "c", ""]),
    r"^[\d\-x]$": (["1", "-", "x"], ["a"]),
    r"^[\w-.]$": (["a", "-", "."], ["!"]),
    r"^[a-]$": (["a", "-"], ["b"]),
    r"^[]$": ([], ["", "a", "]"]),
    r"^[^]$": (["a", "\n"], ["", "ab"]),
    r"^[\b]$": (["\b"], ["b"]),
    r"^[[:a]$": (["[", ":", "a"], ["]"]),
    r"^a{2}b{1,}c{0,1}$": (["aab", "aabbc"], ["ab", "aabcc"]),
    "^a{$": (["a{"], ["a"]),
    "^a{x}{1}$": (["a{x}"], ["ax"]),
    "^}]$": (["}]"], []),
    "^a*?b+?c??$": (["b", "aabc"], ["a", "bcc"]),
    r"^\t\n\v\f\r\0$": (["\t\n\v\f\r\0"], []),
    r"^\cA\x41\u0042\u{1F600}$": (["\x01AB😀"], []),
    r"^\uD83D\uDE00$": (["😀"], ["\ufffd"]),
    r"^[\uD83D\uDE00-\uD83D\uDE02]$": (["😁"], ["😃"]),
    r"^\/\-\.\_\@\"\$$": (['/-._@"$'], []),
    r"\bcat\b": (["cat", "a cat.", "cat\n", "écat"], ["cats", "_cat", "scat"]),
    r"\Bcat": (["scat"], ["cat", "a cat"]),
    r"^\b": (["a"], ["", " a"]),
    r"\B": (["", "ab", "-"], ["a"]),
    r"\A\d\Z": (["1"], ["1\n", "12"]),
    r"^a\z": (["a"], ["ab"]),
    "(?i)^aé[x-z]$": (["AÉY", "aéx"], ["AÉW"]),
    "(?i)^[^k]$": (["a"], ["k", "K"]),
    "^(?i:a)b$": (["Ab"], ["AB"]),
    "^(?:a)(?<n>b)(?P<m>c)$": (["abc"], ["ab"]),
    "^(?=a)": (["ab"], ["b", ""]),
    r"^(?=.*\d)(?=.*[a-z]).{3}$": (["a1-", "--1a"[1:]], ["ab-", "a1", "a1--"]),
    "^(?!no)": (["yes", "", "n"], ["no", "nope"]),
    "^(?!no$)": (["yes", "nope", ""], ["no"]),
    "^(?!.*(ab|cd))[a-d]+$": (["acbd"], ["ab", "ccd", "e"]),
    "^(?:(?!ab).)*$": (["ba", "aa", ""], ["ab", "cab"]),
    "^(?!(?!a))": (["a"], ["b", ""]),
    "^(?=a(?!b))": (["a", "ac"], ["ab", "b"]),
    "q(?!u)": (["iraq", "quiq"], ["quit"]),
    "a(?=b)(?=.c)": (["abc", "aabc"], ["ab", "acc"]),
    "^((?=[ab])\\w)+$": (["ab"], ["abc", ""]),
    "(?<!a)b": (["b", "cb", "abb"], ["ab", "a"]),
    "(?<=a)b": (["ab", "bab"], ["b", "cb"]),
    "(?<=^a|c)b": (["ab", "xcb"], ["xab"]),
    r"(?<!\bno )way": (["way", "uno way"], ["no way"]),
    "(?<=(?<!x)a)b": (["ab"], ["xab"]),
    r"^\p{Lu}\p{L}*$": (["Éa", "Ж"], ["é", "1"]),
    r"^\P{L}\pN[\p{Sc}\p{Letter}]$": (["-1€", "-1a"], ["a1€", "-1-"]),
    r"^\p{General_Category=Decimal_Number}$": (["٣"], ["x"]),
    r"^(a?)*$": (["", "aaa"], ["b"]),
    r"^(a|b)*a(a|b){6}$": (["aaaaaaa", "babbbbbb"], ["bbbbbbb"]),
    r"^[a-z]{1,1000}$": (["a", "a" * 1000], ["", "a" * 1001]),
}


@pytest.mark.parametrize("pattern", FOUND)
def test_a_pattern_is_found_where_it_should_be(pattern):
    content = pattern_content(pattern)
    found, not_found = FOUND[pattern]
    assert [text for text in found if not content.accepts(text)] == []
    assert [text for text in not_found if content.accepts(text)] == []


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("a(", 3), ("a)", 2), ("(?:", 4), ("[a", 3), ("*a", 1), ("a|+", 3), ("a**", 3), ("a{2}{3}", 5),
        ("{2}", 1), ("a{3,2}", 2), ("[b-a]", 5), ("^*", 2), ("\\", 2), (r"\p", 2), (r"\u{110000}", 11),
        ("(?", 1), ("(?<1>a)", 1),
    ],
)  # fmt: skip
def test_malformed_patterns_say_where(pattern, position):
    with pytest.raises(InvalidInput, match=f"at character {position} of the pattern"):
        pattern_content(pattern)


@pytest.mark.parametrize(
    ("pattern", "construct"),
    [
        (r"(a)\1", "a back reference"), (r"(?<n>a)\k<n>", "a back reference"),
        ("(?P<n>a)(?P=n)", "a back reference"), ("(?>a)", "an atomic group"),
        ("a++", "a possessive repetition"), (r"\p{Script=Greek}", r"the Unicode property p\{Script"),
        ("(?s).", r"the group \(\?s"), (r"\y", r"the escape \\y"), ("a{,3}", "{,n}"),
        ("(?<=(?=a))b", "a look ahead inside a look behind"), ("(" * 200 + ")" * 200, "nested groups"),
        ("(a{1,1000}){1,1000}", "nodes"), ("(a|b)*a(a|b){20}$", "states"),
    ],
)  # fmt: skip
def test_what_cannot_be_compiled_is_refused_by_name(pattern, construct):
    with pytest.raises(Unsupported, match=construct):
        pattern_content(pattern)


def repeats(parts):
    return st.one_of(
        st.tuples(parts, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,1}?", "*?"])).map(
            lambda t: f"(?:{t[0]}){t[1]}"
        ),
        st.lists(parts, max_size=3).map("".join),
        st.lists(parts, min_size=1, max_size=3).map(lambda options: f"({'|'.join(options)})"),
    )


atoms = st.sampled_from(
    ["a", "b", "-", ".", "[ab]", "[^a]", r"\w", r"\W", r"\d", "^", "(?!$)", r"\b", r"\B"]
)
plain = st.recursive(atoms, repeats, max_leaves=8)
looking = st.recursive(
    st.one_of(atoms, st.sampled_from(["(?<=a)", "(?<!b)", r"(?<=\bb)", "(?<!^a)"])),
    lambda parts: st.one_of(
        repeats(parts), st.tuples(st.sampled_from(["(?=", "(?!"]), parts).map(lambda t: t[0] + t[1] + ")")
    ),
    max_leaves=8,
)  # fmt: skip
short_texts = st.lists(st.text("ab-1é", max_size=7), min_size=10, max_size=10)


@settings(max_examples=tries(120), deadline=None)
@given(plain | looking, st.booleans(), short_texts)
def test_random_patterns_are_found_where_python_finds_them(pattern, to_the_end, texts):
    """Python's $ also matches before a last line break, and before 3.14 its \\B not in ""."""
    pattern += "$" * to_the_end
    content, twin = pattern_content(pattern), re.compile(pattern, re.ASCII)
    for text in texts if r"\B" not in pattern else filter(None, texts):
        assert content.accepts(text) == bool(twin.search(text)), text


@settings(max_examples=tries(30), deadline=None)
@given(
    st.recursive(st.sampled_from(["a", "b", "[ab]", "[^a]"]), repeats, max_leaves=6), short_texts
)
def test_random_patterns_are_those_of_another_compiler(pattern, texts):
    content = pattern_content(f"^(?:{pattern})$")
    twin = interegular.parse_pattern(pattern).to_fsm()
    for text in texts:
        assert content.accepts(text) == twin.accepts(text), text
