"""Automata made of others side by side, and of lists of words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from cmm.grammar.errors import Unsupported
from cmm.grammar.machine import (
    MOST_MOVES,
    MOST_STATES,
    Machine,
    Move,
    crawl,
    joined,
    numbered,
)

Pair = tuple[int | None, int | None]  # a state of each automaton, None once it has failed


def product(one: Machine, other: Machine, keep: Callable[[bool, bool], bool]) -> Machine:
    """Both automata side by side: the texts for which `keep` of both answers is true.

    >>> either = product(word_machine(["a"]), word_machine(["b"]), lambda a, b: a or b)
    >>> either == word_machine(["a", "b"])
    True
    """
    one_alone, other_alone = keep(True, False), keep(False, True)

    def follow(pair: Pair) -> Iterator[tuple[int, int, Pair]]:
        a, b = pair
        for low, high, targets in _overlay(
            one[0][a] if a is not None else (), other[0][b] if b is not None else ()
        ):
            if (targets[0] is not None or other_alone) and (targets[1] is not None or one_alone):
                yield low, high, targets

    def is_final(pair: Pair) -> bool:
        a, b = pair
        return keep(a is not None and one[1][a], b is not None and other[1][b])

    start: Pair = (0, 0)
    most = max(MOST_STATES, len(one[0]), len(other[0]))
    return crawl(start, follow, is_final, most)


def _overlay(one: tuple[Move, ...], other: tuple[Move, ...]) -> Iterator[tuple[int, int, Pair]]:
    """The ranges of both, cut at each other's ends, with the targets of each."""
    i = j = low = 0
    while i < len(one) or j < len(other):
        a = one[i] if i < len(one) else (0x110000, 0x110000, -1)
        b = other[j] if j < len(other) else (0x110000, 0x110000, -1)
        low = max(low, min(a[0], b[0]))
        in_a, in_b = a[0] <= low, b[0] <= low
        high = min(a[1] if in_a else a[0] - 1, b[1] if in_b else b[0] - 1)
        yield low, high, (a[2] if in_a else None, b[2] if in_b else None)
        low = high + 1
        i += a[1] < low
        j += b[1] < low


def word_machine(words: Iterable[str]) -> Machine:
    """The smallest automaton of these words.

    >>> word_machine(["at", "bt"])
    ((((97, 98, 1),), ((116, 116, 2),), ()), (False, False, True))

    Sorted words share prefixes with their neighbours: what is left of the last word behind that
    prefix cannot change any more and is shared with an equal end (Daciuk et al. 2000).
    """
    ends: dict[tuple[bool, tuple[Move, ...]], int] = {}
    path: list[list[Move]] = [[]]  # the open states along the last word
    path_final = [False]
    last = ""

    def close(depth: int) -> None:
        while len(path) > depth + 1:
            end = path_final.pop(), joined(path.pop())
            number = ends.setdefault(end, len(ends) + 1)
            code = ord(last[len(path) - 1])
            path[-1].append((code, code, number))
            if number > MOST_MOVES:
                raise Unsupported(f"the values of a string need more than {MOST_MOVES} states")

    for word in sorted(set(words)):
        if any("\ud800" <= character <= "\udfff" for character in word):
            raise Unsupported("a text with half of a surrogate pair")
        depth = _common_prefix(last, word)
        close(depth)
        path += [[] for _ in word[depth:]]
        path_final += [False] * (len(word) - depth)
        path_final[-1], last = True, word
    close(0)
    rows = {0: joined(path[0])} | {number: row for (_, row), number in ends.items()}
    final = [path_final[0], *(is_final for is_final, _ in ends)]
    return numbered(rows, final, {state: state for state in rows})


def _common_prefix(one: str, other: str) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))
