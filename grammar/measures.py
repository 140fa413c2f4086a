"""How long the texts of a character automaton are, counted from each state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from cmm.grammar.machine import Moves


def shortest_texts(moves: Moves, final: Sequence[bool]) -> tuple[int, ...]:
    """The fewest characters from each state to a final one.

    >>> shortest_texts((((97, 97, 1),), ((98, 98, 0), (99, 99, 2)), ()), (False, False, True))
    (2, 1, 0)

    The automaton is trimmed: each state reaches a final one, but that of no text at all, for
    which there are no counts: ().
    """
    before: dict[int, set[int]] = defaultdict(set)
    for state, row in enumerate(moves):
        for _, _, target in row:
            before[target].add(state)
    counts = {state: 0 for state, is_final in enumerate(final) if is_final}
    pending = list(counts)
    for state in pending:  # grows, nearest first
        for source in before[state]:
            if source not in counts:
                counts[source] = counts[state] + 1
                pending.append(source)
    return tuple(counts[state] for state in range(len(moves))) if counts else ()


def longest_texts(moves: Moves, final: Sequence[bool]) -> tuple[int | None, ...]:
    """The most characters from each state to a final one, None where there is no bound.

    >>> longest_texts((((97, 97, 1),), ((98, 98, 1), (99, 99, 2)), ()), (False, False, True))
    (None, None, 0)
    """
    if not any(final):
        return ()
    targets = [{move[2] for move in row} for row in moves]
    before: dict[int, list[int]] = defaultdict(list)
    for state, reached in enumerate(targets):
        for target in reached:
            before[target].append(state)
    open_targets = [len(reached) for reached in targets]
    counts: dict[int, int] = {}
    pending = [state for state, count in enumerate(open_targets) if not count]
    while pending:  # a state on a cycle, or before one, never comes up
        state = pending.pop()
        counts[state] = max((counts[target] + 1 for target in targets[state]), default=0)
        for source in before[state]:
            open_targets[source] -= 1
            if not open_targets[source]:
                pending.append(source)
    return tuple(counts.get(state) for state in range(len(moves)))


def without_gaps(moves: Moves, final: Sequence[bool]) -> bool:
    """Does each state have a text of every length between its shortest and its longest?

    >>> without_gaps((((97, 97, 1),), ((97, 97, 0),)), (True, False))  # (aa)*
    False

    Exact: if in each state the lengths that its moves promise are one interval, then by induction
    on the length each promise is kept.
    """
    least, most = shortest_texts(moves, final), longest_texts(moves, final)
    endless = float("inf")
    for row, is_final in zip(moves, final, strict=True):
        spans = {(0.0, 0.0)} if is_final else set()
        for target in {move[2] for move in row}:
            bound = most[target]
            spans.add((least[target] + 1.0, endless if bound is None else bound + 1.0))
        reach = -1.0
        for low, high in sorted(spans):
            if reach >= 0 and low > reach + 1:
                return False
            reach = max(reach, high)
    return True


def count_texts(moves: Moves, final: Sequence[bool]) -> int | None:
    """How many texts there are, None without a bound.

    >>> count_texts((((97, 106, 1),), ((48, 48, 2),), ()), (True, False, True))
    11
    """
    most = longest_texts(moves, final)
    if not most:
        return 0
    if most[0] is None:
        return None
    counts: dict[int, int] = {}
    for state in sorted(range(len(moves)), key=lambda state: most[state] or 0):
        counts[state] = int(final[state]) + sum(
            (high - low + 1) * counts[target] for low, high, target in moves[state]
        )
    return counts[0]
