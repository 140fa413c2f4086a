"""Small vocabularies, random grammars, and the slow twins that fast code is compared with."""

import json
import re
from collections import deque

from hypothesis import strategies as st

from cmm.compiler import make_vocabulary
from cmm.grammar.json_values import (
    ANY_VALUE,
    BOOLEAN,
    FREE_JSON,
    INTEGER,
    NUMBER,
    items_of,
    member,
    object_of,
)
from cmm.grammar.nodes import (
    Chars,
    Choice,
    Counted,
    Grammar,
    Joined,
    Literal,
    Repeat,
    Sequence,
    Text,
    choice,
    optional,
    quoted,
    sequence,
)
from cmm.grammar.show import STRING_REGEX

# Every byte, as byte-level tokenizers have, and pieces of JSON that cross its boundaries.
PIECES = [
    '{"', '":', '": ', '": "', '",', '", ', '", "', '"}', '"}}', '"]', '}]', '}}', "]]", "[[", "{}",
    "[]", '""', "a", "ab", "abc", "é", "1", "12", ", ", "true", "null", '\\"', "\\u00", "é\"", "ue", "日本", "本\"", "x: \"a",
    '": {"', "[{", '"a"', '"ab', ' "', "😀",
]  # fmt: skip
TOKENS = [bytes([b]) for b in range(256)] + [p.encode() for p in PIECES if len(p.encode()) > 1]
SMALL = make_vocabulary([b"", *TOKENS, b""])  # a control token at each end


def brute_force_row(table, state):
    """The allowed tokens, found by reading each token of the vocabulary byte by byte."""
    walk = table.automaton.walk
    tokens = enumerate(table.vocabulary.tokens)
    return [i for i, token in tokens if token and walk(state, token)[1] == len(token)]


def explored(table, most=60):
    """States reached from the start, breadth first, one token of each row's target kinds."""
    seen, pending = {table.start}, deque([table.start])
    while pending and len(seen) < most:
        state = pending.popleft()
        yield state
        for token in table.allowed(state):
            following = table.next(state, int(token))
            if following not in seen and len(seen) < most:
                seen.add(following)
                pending.append(following)
    yield from pending


def fewest_tokens(table, state, most=8):
    """The length of the shortest way to acceptance, by search; None if it is over `most`."""
    seen, front = {state}, [state]
    for length in range(most + 1):
        if any(table.is_final(each) for each in front):
            return length
        reached = {table.next(each, int(t)) for each in front for t in table.allowed(each)} - seen
        seen |= reached
        front = list(reached)
    return None


letters = st.text(alphabet='ab"\\é{', min_size=0, max_size=3)
chars_ab, chars_beyond = Chars(((0x61, 0x62),)), Chars(((0x41, 0x2FFFF),))
plain_leaves = st.one_of(
    letters.map(Literal),
    letters.map(quoted),
    st.sampled_from([Text(), NUMBER, INTEGER, BOOLEAN, chars_ab, chars_beyond]),
)
leaves = st.one_of(
    plain_leaves, st.sampled_from([Text(most=2), Text(least=2, most=3), Text(least=1)])
)


def _plain_nodes(inner):
    return st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: sequence(*parts)),
        st.lists(inner, min_size=1, max_size=3).map(choice),
        inner.map(optional),
        st.builds(Repeat, inner, st.integers(0, 2), st.one_of(st.none(), st.integers(2, 3))),
        st.lists(st.tuples(inner, st.booleans()), max_size=3).map(_joined),
    )  # fmt: skip


def _nodes(inner):
    items = st.sampled_from([Text(), Text(most=2), NUMBER, BOOLEAN, quoted("ab")])
    counted = st.builds(Counted, items, st.integers(0, 2), st.one_of(st.none(), st.integers(2, 3)))
    return st.one_of(_plain_nodes(inner), counted)


def _joined(units):
    """A list of some units, those with False optional."""
    parts = (sequence(Literal(", "), unit) for unit, _ in units)
    wanted = [p if needed else optional(p) for p, (_, needed) in zip(parts, units, strict=True)]
    return Joined(sequence(*wanted))


def in_bounds(count, least, most):
    """Is the count from least to most?"""
    return least <= count and (most is None or count <= most)


STRING = re.compile(STRING_REGEX)


def ends(node, text, starts):
    """Where texts of the node end that begin at one of the starts: the grammar's slow twin."""
    match node:
        case Literal(wanted):
            return {i + len(wanted) for i in starts if text.startswith(wanted, i)}
        case Chars(ranges):
            inside = [any(low <= ord(c) <= high for low, high in ranges) for c in text]
            return {i + 1 for i in starts if i < len(text) and inside[i]}
        case Sequence(parts):
            for part in parts:
                starts = ends(part, text, starts)
            return starts
        case Choice(options):
            return set().union(*(ends(option, text, starts) for option in options))
        case Repeat(body, least, most):
            for _ in range(least):
                starts = ends(body, text, starts)
            reached, rounds = set(starts), 0
            while starts and (most is None or rounds < most - least):
                starts = ends(body, text, starts) - reached
                reached |= starts
                rounds += 1
            return reached
        case Joined(body, separator):
            found = {i for i in starts if i in ends(body, text, {i})}
            for i in starts:
                with_first = text[:i] + separator + text[i:]
                found |= {end - len(separator) for end in ends(body, with_first, {i}) if end != i}
            return found
        case Text(_, _, least, most):
            found = [m for i in starts if (m := STRING.match(text, i))]
            return {m.end() for m in found if in_bounds(len(json.loads(m[0])), least, most)}
        case Counted(item, least, most):
            unrolled = Joined(Repeat(sequence(Literal(", "), item), least, most))
            return ends(Sequence((Literal("["), unrolled, Literal("]"))), text, starts)


def written(node, chance):
    """A random text of the node, None where it has none."""
    match node:
        case Literal(text):
            return text
        case Chars(ranges):
            low, high = chance.choice(ranges)
            return chr(chance.choice([low, high, (low + high) // 2]))
        case Sequence(parts):
            texts = [written(part, chance) for part in parts]
            return None if None in texts else "".join(texts)
        case Choice(options):
            return written(chance.choice(options), chance) if options else None
        case Repeat(body, least, most):
            count = chance.randint(least, least + 2 if most is None else most)
            return written(Sequence((body,) * count), chance)
        case Joined(body, separator):
            text = written(body, chance)
            return None if text is None else text.removeprefix(separator)
        case Text():
            pieces = ["a", "é", "\U0001f600", "\\n", "\\u00e9", "\\ud83d\\ude00", '\\"', "}"]
            most = 3 if node.most is None else node.most
            count = chance.randint(node.least, most)
            return '"' + "".join(chance.choices(pieces, k=count)) + '"'
        case Counted(item, least, most):
            unrolled = Joined(Repeat(sequence(Literal(", "), item), least, most))
            return written(Sequence((Literal("["), unrolled, Literal("]"))), chance)


nodes = st.recursive(leaves, _nodes, max_leaves=6)
grammars = nodes.map(Grammar)
plain_grammars = st.recursive(plain_leaves, _plain_nodes, max_leaves=6).map(Grammar)
json_nodes = st.recursive(
    st.sampled_from(
        [
            Text(),
            Text(most=2),
            Text(least=2),
            NUMBER,
            INTEGER,
            BOOLEAN,
            ANY_VALUE,
            quoted("ab"),
            quoted('a"'),
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda item: items_of(Repeat(sequence(Literal(", "), item)))),
        st.lists(inner, min_size=1, max_size=3).map(choice),
        st.builds(Counted, inner, st.integers(0, 2), st.one_of(st.none(), st.integers(2, 3))),
        st.dictionaries(st.sampled_from(["a", "ab", "é"]), inner, max_size=3).map(
            lambda named: object_of(
                sequence(*(optional(member(quoted(key), value)) for key, value in named.items()))
            )
        ),
    ),
    max_leaves=5,
)
json_grammars = json_nodes.map(lambda node: Grammar(node, FREE_JSON))
