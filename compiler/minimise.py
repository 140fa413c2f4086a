"""Deterministic automata made small: no state from which the end is out of reach, no two alike."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

from cmm.compiler.determinise import Called, Dfa, Edge
from cmm.compiler.nfa import FrameId

Symbol = tuple[int, int, int]  # a byte range with flags, or (-1 - k, 0, 0) for the kind k of call


def useful_states(dfa: Dfa) -> set[int]:
    """The states from which the end of their frame can be reached, through useful calls only.

    >>> dfa = Dfa(edges=[[(97, 97, 1, 0)], [], []], calls=[[], [], []],
    ...     final=[False, True, False], frame=[1, 1, 1], starts={1: 0})
    >>> useful_states(dfa)
    {0, 1}
    """
    before: dict[int, list[int]] = defaultdict(list)
    known = set(range(dfa.done))
    returning: dict[int, list[tuple[FrameId, int]]] = defaultdict(list)  # calls by return state
    waiting: dict[FrameId, list[tuple[int, int]]] = defaultdict(list)  # and by frame
    for state in range(dfa.done, len(dfa.edges)):
        for _, _, target, _ in dfa.edges[state]:
            before[target].append(state)
        for frame, _, target in dfa.calls[state]:
            waiting[frame].append((state, target))
            returning[target].append((frame, state))
    useful = known | {state for state, final in enumerate(dfa.final) if final}
    start_of = {state: frame for frame, state in dfa.starts.items()}
    open_frames = {frame for frame, state in dfa.starts.items() if state in known}
    pending = deque(sorted(useful - known))
    while pending:
        state = pending.popleft()
        reached = before[state] + [s for frame, s in returning[state] if frame in open_frames]
        if state in start_of:  # the frame has a text: calls of it are moves from now on
            open_frames.add(start_of[state])
            reached += [source for source, back in waiting[start_of[state]] if back in useful]
        for source in reached:
            if source not in useful:
                useful.add(source)
                pending.append(source)
    return useful


def minimise(dfa: Dfa) -> Dfa:
    """The smallest automaton with the same texts in each frame, states in order of discovery.

    >>> ends = [(99, 99, 3, 0)]
    >>> ab = [[(97, 97, 1, 0), (98, 98, 2, 0)], ends, ends, []]
    >>> dfa = Dfa(edges=ab, calls=[[]] * 4, final=[False, False, False, True], frame=[1] * 4,
    ...     starts={1: 0})
    >>> minimise(dfa).edges
    [[(97, 98, 1, 0)], [(99, 99, 2, 0)], []]
    """
    useful = useful_states(dfa)
    kinds = sorted({call[:2] for calls in dfa.calls for call in calls})
    arcs = _arcs(dfa, useful, {kind: number for number, kind in enumerate(kinds)})
    block_of = _coarsest_partition(dfa, arcs)
    return _quotient(dfa, arcs, block_of, kinds)


def _arcs(
    dfa: Dfa, useful: set[int], kinds: Mapping[Called, int]
) -> dict[int, list[tuple[Symbol, int]]]:
    """The moves and calls between useful states. Ranges are cut alike, so that equal ones match."""
    states = sorted(state for state in useful if state >= dfa.done)
    cuts = sorted({cut for s in states for edge in dfa.edges[s] for cut in (edge[0], edge[1] + 1)})
    pieces: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def cut(low: int, high: int) -> list[tuple[int, int]]:
        if (low, high) not in pieces:
            ends = [c for c in cuts if low <= c <= high + 1]
            pieces[low, high] = [(a, b - 1) for a, b in pairwise(ends)]
        return pieces[low, high]

    return {
        state: [
            ((*piece, flags), target)
            for low, high, target, flags in dfa.edges[state]
            if target in useful
            for piece in cut(low, high)
        ]
        + [
            ((-1 - kinds[frame, bounds], 0, 0), target)
            for frame, bounds, target in dfa.calls[state]
            if target in useful and dfa.starts[frame] in useful
        ]
        for state in states
    }


def _coarsest_partition(dfa: Dfa, arcs: dict[int, list[tuple[Symbol, int]]]) -> dict[int, int]:
    """Hopcroft's partition refinement on a partial automaton: the block of each state."""
    before: dict[int, list[tuple[Symbol, int]]] = defaultdict(list)
    groups: dict[object, list[int]] = defaultdict(list)
    for state, outgoing in arcs.items():
        kind = dfa.frame[state], dfa.final[state]
        groups[kind, frozenset(symbol for symbol, _ in outgoing)].append(state)
        for symbol, target in outgoing:
            before[target].append((symbol, state))
    blocks = [set(group) for group in groups.values()]
    block_of = {state: i for i, block in enumerate(blocks) for state in block}
    pending = set(range(len(blocks)))
    while pending:
        splitter = pending.pop()
        sources: dict[Symbol, set[int]] = defaultdict(set)
        for state in blocks[splitter]:
            for symbol, source in before[state]:
                sources[symbol].add(source)
        for source_set in sources.values():
            _split_blocks(source_set, blocks, block_of, pending)
    return block_of


def _split_blocks(
    sources: set[int], blocks: list[set[int]], block_of: dict[int, int], pending: set[int]
) -> None:
    touched: dict[int, set[int]] = defaultdict(set)
    for state in sources:
        touched[block_of[state]].add(state)
    for block, inside in touched.items():
        outside = len(blocks[block]) - len(inside)
        if not outside:
            continue
        if block not in pending and len(inside) > outside:
            inside = blocks[block] - inside  # only the smaller half need be looked at again
        blocks[block] -= inside
        blocks.append(inside)
        pending.add(len(blocks) - 1)
        for state in inside:
            block_of[state] = len(blocks) - 1


def _quotient(
    dfa: Dfa,
    arcs: dict[int, list[tuple[Symbol, int]]],
    block_of: dict[int, int],
    kinds: Sequence[Called],
) -> Dfa:
    first = dfa.done
    result = dfa.first(first)
    numbers: dict[int, int] = {}
    order: list[int] = []

    def number(state: int) -> int:
        block = block_of[state]
        if block not in numbers:
            numbers[block] = first + len(order)
            order.append(state)
        return numbers[block]

    done = 0
    for frame, start in sorted(dfa.starts.items()):
        if start not in block_of:
            continue
        result.starts[frame] = number(start)
        while done < len(order):  # a frame's states before the next one's: `order` grows here
            state = order[done]
            done += 1
            outgoing = [(symbol, number(target)) for symbol, target in arcs[state]]
            moves = [(*s[:2], target, s[2]) for s, target in outgoing if s[0] >= 0]
            result.edges.append(_joined(moves))
            result.calls.append([(*kinds[-1 - s[0]], t) for s, t in outgoing if s[0] < 0])
            result.final.append(dfa.final[state])
            result.frame.append(frame)
    return result


def _joined(edges: list[Edge]) -> list[Edge]:
    """Adjacent ranges with one target as one range."""
    joined: list[Edge] = []
    for low, high, target, flags in edges:
        if joined and joined[-1][1] + 1 == low and joined[-1][2:] == (target, flags):
            joined[-1] = (joined[-1][0], high, target, flags)
        else:
            joined.append((low, high, target, flags))
    return joined
