"""Deterministic automata over characters: explored, trimmed, made smallest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from cmm.grammar.errors import Unsupported

Move = tuple[int, int, int]  # first and last code point, target state
Moves = tuple[tuple[Move, ...], ...]  # the moves of each state, sorted and disjoint
Machine = tuple[Moves, tuple[bool, ...]]  # and whether it is final; state 0 is the start
State = TypeVar("State", bound=Hashable)

MOST_STATES = 20_000  # far above real schemas, and still built in seconds
MOST_MOVES = 400_000  # classes such as \p{L} have hundreds of ranges in every state

EMPTY: Machine = (((),), (False,))


def crawl(
    start: State,
    follow: Callable[[State], Iterable[tuple[int, int, State]]],
    is_final: Callable[[State], bool],
    most: int = MOST_STATES,
) -> Machine:
    """The smallest automaton of all states that `follow` reaches, in sorted disjoint moves.

    >>> crawl(2, lambda n: [(97, 99, n - 1)] if n else [], lambda n: n < 2)
    ((((97, 99, 1),), ((97, 99, 2),), ()), (False, True, True))
    """
    numbers: dict[State, int] = {start: 0}
    pending = [start]
    moves: list[list[Move]] = []
    size = 0
    for state in pending:  # grows as states are discovered
        row: list[Move] = []
        for low, high, target in follow(state):
            number = numbers.get(target)
            if number is None:
                number = numbers[target] = len(pending)
                pending.append(target)
            row.append((low, high, number))
        moves.append(row)
        size += len(row)
        if len(pending) > most:
            raise Unsupported(f"the texts of a string need more than {most} states")
        if size > MOST_MOVES:
            raise Unsupported(f"the texts of a string need more than {MOST_MOVES} moves")
    return smallest(moves, [is_final(state) for state in pending])


def smallest(moves: Sequence[Iterable[Move]], final: Sequence[bool]) -> Machine:
    """The smallest automaton of the same texts, its states in order of discovery.

    >>> smallest([[(97, 97, 1), (98, 98, 2)], [], [], [(97, 97, 3)]], [False, True, True, True])
    ((((97, 98, 1),), ()), (False, True))
    """
    useful = _useful(moves, final)
    if 0 not in useful:
        return EMPTY
    trimmed = {s: [move for move in moves[s] if move[2] in useful] for s in useful}
    return numbered(trimmed, final, _coarsest_partition(trimmed, final))


def numbered(
    moves: Mapping[int, Iterable[Move]], final: Sequence[bool], block_of: Mapping[int, int]
) -> Machine:
    """One state for each block of equal states, in order of discovery from that of state 0.

    >>> numbered({0: [(97, 97, 2)], 2: []}, [False, False, True], {0: 5, 2: 7})
    ((((97, 97, 1),), ()), (False, True))
    """
    numbers = {block_of[0]: 0}
    order = [0]
    rows: list[tuple[Move, ...]] = []
    for state in order:  # grows as blocks are discovered
        row: list[Move] = []
        for low, high, target in moves[state]:
            block = block_of[target]
            if block not in numbers:
                numbers[block] = len(order)
                order.append(target)
            row.append((low, high, numbers[block]))
        rows.append(joined(row))
    return tuple(rows), tuple(bool(final[state]) for state in order)


def joined(moves: Iterable[Move]) -> tuple[Move, ...]:
    """Sorted moves, adjacent ranges with one target as one range.

    >>> joined([(97, 97, 1), (98, 99, 1), (100, 100, 2)])
    ((97, 99, 1), (100, 100, 2))
    """
    row: list[Move] = []
    for low, high, target in moves:
        if row and row[-1][1] + 1 == low and row[-1][2] == target:
            row[-1] = (row[-1][0], high, target)
        else:
            row.append((low, high, target))
    return tuple(row)


def _useful(moves: Sequence[Iterable[Move]], final: Sequence[bool]) -> set[int]:
    """The states that are reached from the start and reach a final one."""
    before: dict[int, list[int]] = defaultdict(list)
    seen = {0}
    pending = [0]
    while pending:
        state = pending.pop()
        for target in {move[2] for move in moves[state]}:
            before[target].append(state)
            if target not in seen:
                seen.add(target)
                pending.append(target)
    pending = [state for state in seen if final[state]]
    useful = set(pending)
    while pending:
        for source in before[pending.pop()]:
            if source not in useful:
                useful.add(source)
                pending.append(source)
    return useful


def _coarsest_partition(moves: dict[int, list[Move]], final: Sequence[bool]) -> dict[int, int]:
    """The block of each state, refined by signatures: the moves, with blocks for targets.

    Only states with a move into a changed block are looked at again, and of a block that falls
    apart the largest part keeps its number: a state changes its number log(n) times at most.
    """
    before: dict[int, set[int]] = defaultdict(set)
    for state, row in moves.items():
        for _, _, target in row:
            before[target].add(state)
    block_of = {state: int(final[state]) for state in moves}
    members = {kind: {s for s, block in block_of.items() if block == kind} for kind in (0, 1)}
    dirty = set(moves)
    signs: dict[int, tuple[Move, ...]] = {}
    while dirty:
        by_block: dict[int, list[int]] = defaultdict(list)
        for state in dirty:
            signs[state] = joined((a, b, block_of[target]) for a, b, target in moves[state])
            by_block[block_of[state]].append(state)
        moved: list[int] = []
        for block, looked_at in by_block.items():
            for part in _parts(members[block], looked_at, signs):
                number = len(members)
                members[number] = part
                members[block] -= part
                moved += part
                block_of.update((state, number) for state in part)
        dirty = {source for state in moved for source in before[state]}
    return block_of


def _parts(
    block: set[int], looked_at: list[int], signs: dict[int, tuple[Move, ...]]
) -> list[set[int]]:
    """The parts of a block that part from its largest one. Those not looked at are alike."""
    groups: dict[tuple[Move, ...], set[int]] = defaultdict(set)
    for state in looked_at:
        groups[signs[state]].add(state)
    rest = len(block) - len(looked_at)
    if rest:
        seen = set(looked_at)
        sign = signs[next(state for state in block if state not in seen)]
        alike = groups.setdefault(sign, set())
        if any(len(group) > len(alike) + rest for s, group in groups.items() if s != sign):
            alike |= block - seen
        else:
            del groups[sign]
            return list(groups.values())
    parts = sorted(groups.values(), key=len)
    return parts[:-1]
