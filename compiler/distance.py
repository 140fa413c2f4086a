"""Fewest tokens to the end, for every state: what lets a token limit close a call, never cut it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import CALL, DEAD, POP, TEXT_BODY, ByteAutomaton, State
from cmm.compiler.boughs import Boughs
from cmm.compiler.exits import ExitTrie
from cmm.compiler.nfa import FAR, UNBOUNDED
from cmm.compiler.reached import Reached
from cmm.compiler.relaxation import Rules, relaxed
from cmm.compiler.rows import Rows, Targets
from cmm.compiler.trie import Trie, ranges

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Distances:
    """Tokens from each control state to the end of its frame, and from a string's body beyond it.

    A state with a stack is as far as its control state and all returns together. After a string
    (`after_text`) the token of its closing quote may go on in the caller, and that is counted; a
    token that closes several nested values of free JSON at once is not, so that there the sum is
    an upper bound. So it is where an item or a character of a constrained string is still due: then
    bytes are counted instead of tokens, and `round` for each further count. From every state some
    token leads to one that is nearer.
    """

    to_end: Int32s  # (states,) to the end of the frame, a token boundary falling on it
    to_body: Int32s  # (text states,) from each state of a string to its body
    after_text: Int32s  # (states,) from a string's body to the end of the frame returned to
    bytes_to_end: Int32s  # (states,)
    round: Int32s  # (states,) bytes for one more count, from wherever in the frame
    need: Int32s  # (states,) counts on any way to the end of the frame
    stride: Int32s  # (1,) characters that one token of a free string can write, and all fewer

    def of(self, state: State) -> int:
        """Tokens from a state to acceptance."""
        control, stack, _, due, _, _ = state
        in_text = control < len(self.to_body)
        if in_text and stack:
            back, _, back_due, _, below = stack
            body = int(self.to_body[control]) + self._strides(control, due)
            beyond = 1 + self._level(back, back_due) if back_due else int(self.after_text[back])
            plain = body + beyond
            if not due:
                plain = min(plain, int(self.to_end[control]) + self._level(back, back_due))
            total, stack = plain, below
        else:
            total = self._level(control, due)
        while stack:
            back, _, due, _, stack = stack
            total += self._level(back, due)
        return min(total, FAR)

    def of_all(self, reached: Reached) -> Int32s:
        """Tokens from each of many states: `of` for all at once."""
        return Sums.of(reached, self).values(self.to_end, self.after_text)

    def _level(self, control: int, due: int) -> int:
        """Tokens to the end of the frame from a control state that is not a string's."""
        further = due - int(self.need[control])
        if due and further > 0:
            return int(self.bytes_to_end[control]) + further * int(self.round[control])
        return int(self.bytes_to_end[control] if due else self.to_end[control])

    def _strides(self, control: int, due: int) -> int:
        """Tokens for the characters that are due, the one that is being written set aside."""
        if control != TEXT_BODY and due:
            due -= int(self.to_body[control] > 0 and control > TEXT_BODY)
        return -(-due // int(self.stride[0]))


@dataclass(frozen=True, eq=False, repr=False)
class Sums:
    """`Distances.of` for many states, as sums of numbers that are known and others that still fall.

    The terms of state i lie between `starts[i]` and the next: the state itself, then its levels.
    Terms that are known stand in `known` and are 0 here, at an index behind all states.
    """

    terms: Int64s
    starts: Int64s  # (states,)
    known: Int64s  # (states,)
    text: Int64s  # (some,) the states inside a string, for which there is another way:
    body: Int64s  # from each of them to the string's body,
    beyond: Int64s  # what follows it (by its index in after_text),
    instead: Int64s  # (some, 2) in the place of these two terms
    due: Bools  # (some,) it is the only way
    zero: int  # that index: as many as there are states

    @classmethod
    def of(cls, reached: Reached, found: Distances) -> Sums:
        """The sums for some states, once `bytes_to_end` and `round` are known."""
        zero = len(found.to_end)
        own = np.where(reached.due > 0, zero, reached.control)
        level = np.where(reached.back_due > 0, zero, reached.back)
        known = _known(reached.back, reached.back_due, found)
        below = np.concatenate([[0], np.cumsum(known)])
        starts = reached.starts[:-1] + np.arange(len(own))
        deep = np.diff(reached.starts) > 0
        text = np.flatnonzero((reached.control < len(found.to_body)) & deep)
        control, due = reached.control[text], reached.due[text]
        begun = (found.to_body[control] > 0) & (control > TEXT_BODY)
        strides = -(-np.maximum(due - begun, 0) // int(found.stride[0]))
        own_known = _known(reached.control, reached.due, found)
        top = reached.starts[1:][text] - 1
        back_due = reached.back_due[top] > 0
        body = found.to_body[control] + strides + back_due * (1 + known[top])
        return cls(
            terms=np.insert(level, reached.starts[:-1], own),
            starts=starts,
            known=own_known + below[reached.starts[1:]] - below[reached.starts[:-1]],
            text=text,
            body=body - own_known[text] - known[top],
            beyond=np.where(back_due, zero, reached.back[top]),
            instead=np.stack([own[text], level[top]], 1),
            due=due > 0,
            zero=zero,
        )

    def values(self, to_end: Int32s, after_text: Int32s) -> Int32s:
        """The distance of each state."""
        if not len(self.starts):
            return to_end[:0]
        far = np.append(to_end, 0).astype(np.int64)
        total = self.known + np.add.reduceat(far[self.terms], self.starts)
        if len(self.text):
            straight = total[self.text]
            through = straight - far[self.instead].sum(1) + self.body
            through += np.append(after_text, 0)[self.beyond]
            total[self.text] = np.where(self.due, through, np.minimum(straight, through))
        found: Int32s = np.minimum(total, FAR).astype(np.int32)
        return found

    def rules(self, heads: Int64s, head_counts: Int64s, more: Int32s) -> list[Rules]:
        """What these sums say of the numbers from which a token leads to them.

        `heads` are those of each sum, in their order, and `more[i]` farther than sum i. The numbers
        are `to_end`, a zero, `after_text`, a zero.
        """
        counts = np.diff(np.append(self.starts, len(self.terms)))
        ways = [(np.arange(len(self.starts)), self.known, self.terms)]
        if len(self.text):
            first = self.starts[self.text]
            through, known = self.terms.copy(), self.known.copy()
            through[first] = self.zero
            through[first + counts[self.text] - 1] = self.zero + 1 + self.beyond
            known[self.text] += self.body
            straight = np.setdiff1d(ways[0][0], self.text[self.due])
            ways = [(straight, self.known, self.terms), (self.text, known, through)]
        head_starts = np.cumsum(head_counts) - head_counts
        return [
            Rules(
                terms[ranges(self.starts[chosen], counts[chosen])],
                counts[chosen],
                heads[ranges(head_starts[chosen], head_counts[chosen])],
                head_counts[chosen],
                known[chosen] + more[chosen],
            )
            for chosen, known, terms in ways
        ]


def _known(control: Int32s, due: Int32s, found: Distances) -> Int64s:
    """The distances of states to which something is due, and 0 for the others."""
    further = np.maximum(due - found.need[control], 0).astype(np.int64)
    written = found.bytes_to_end[control] + further * found.round[control]
    return np.where(due > 0, written, 0)


@dataclass(frozen=True, eq=False, repr=False)
class TextDistances:
    """What a vocabulary alone says of distances: those of the string's states, see Distances."""

    to_end: Int32s  # (text states,)
    to_body: Int32s  # (text states,)
    stride: Int32s  # (1,)


def measure_text(automaton: ByteAutomaton, text: Rows) -> TextDistances:
    """The distances within a string, from its token rows."""
    edges = _Edges.of(text, 0, automaton)
    to_body = np.full(automaton.text_states, FAR, np.int32)
    to_end = to_body.copy()
    to_body[TEXT_BODY] = 0
    to_end[edges.leaving] = 1
    steps = [Rules.steps(edges.origin, text.targets.control[edges.target])]
    to_body, to_end = (relaxed(found, steps).astype(np.int32) for found in (to_body, to_end))
    return TextDistances(to_end, to_body, np.array([_stride(text)], np.int32))


def measure(
    automaton: ByteAutomaton,
    text: TextDistances,
    rows: Rows,
    further: BoughEdges,
    body_exits: ExitTrie,
) -> Distances:
    """Distances by relaxation: every state takes its nearest target, until nothing falls.

    `rows` are those of all states but the string's, `further` the edges that they keep as boughs;
    `body_exits` are the remainders of the tokens that leave a string's body.
    """
    base = automaton.text_states
    to_end = np.full(len(automaton.final), FAR, np.int32)
    to_end[automaton.final] = 0
    to_end[:base] = text.to_end
    in_bytes, rounds = _in_bytes(automaton)
    after_text = np.full_like(to_end, FAR)
    found = Distances(
        to_end, text.to_body, after_text, in_bytes, rounds, automaton.need, text.stride
    )
    edges = _Edges.of(rows, base, automaton)
    to_end[edges.leaving] = 1
    reached = Reached.of_targets(rows.targets, automaton)
    heads = edges.origin[np.argsort(edges.target, kind="stable")].astype(np.int64)
    head_counts = np.bincount(edges.target, minlength=len(reached.control))
    rules = [
        *Sums.of(reached, found).rules(heads, head_counts, 1 + reached.into_key),
        *_after_strings(automaton, body_exits, found),
        Rules.steps(further.origin, further.control),
    ]
    zero = [0]
    fallen = relaxed(np.concatenate([to_end, zero, after_text, zero]), rules).astype(np.int32)
    to_end[:], after_text[:] = fallen[: len(to_end)], fallen[len(to_end) + 1 : -1]
    for array in (to_end, after_text, in_bytes, rounds):
        array.flags.writeable = False
    return found


def _stride(text: Rows) -> int:
    """The most characters up to which there is a token of every number, all within the body."""
    body = slice(text.starts[TEXT_BODY], text.starts[TEXT_BODY + 1])
    stays = text.targets.control == TEXT_BODY
    used = np.bincount(text.target[body], minlength=len(stays)) > 0
    lengths = set(text.targets.spent[stays & used].tolist())
    return next((n - 1 for n in range(1, FAR) if n not in lengths), 0) or 1


@dataclass(frozen=True, eq=False, repr=False)
class _Edges:
    """The distinct (state, target) pairs of rows, and the states from which a token just exits."""

    origin: Int32s
    target: Int32s
    leaving: Int32s

    @classmethod
    def of(cls, rows: Rows, base: int, automaton: ByteAutomaton) -> _Edges:
        origin = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
        count = max(len(rows.targets.control), 1)
        pairs = np.unique(origin.astype(np.int64) * count + rows.target)
        origin, target = np.divmod(pairs, count)
        origin += base
        # Where what is counted is bounded, only a way that counts no more than it must is sure.
        bounded = np.isin(automaton.frame, _bounded_frames(automaton))
        spare = rows.targets.cost(automaton)[target] == automaton.need[origin]
        kept = spare | ~bounded[origin]
        leaving = np.repeat(np.arange(len(rows.exits.starts) - 1), np.diff(rows.exits.starts))
        least = rows.exits.spent == automaton.need[leaving + base]
        return cls(origin[kept], target[kept], np.unique(leaving[rows.exits.exact & least]) + base)


@dataclass(frozen=True, eq=False, repr=False)
class BoughEdges:
    """The edges of rows that are kept as boughs of an automaton's own: states and next states."""

    origin: Int32s
    control: Int32s


def bough_edges(
    rows: Rows,
    wide: Sequence[Boughs],
    long: Mapping[int, Targets],
    trie: Trie,
    automaton: ByteAutomaton,
) -> BoughEdges:
    """The distinct edges below all boughs but those of the JSON string's body.

    `wide` are the readings of the trie that rows share, `long` where the tokens lead of each state
    whose whole row is read.
    """
    origin = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.bough_starts))
    origin += automaton.text_states
    bounded = np.isin(automaton.frame, _bounded_frames(automaton))
    known: dict[tuple[int, int], tuple[Int32s, Int32s]] = {}

    def below(node: int, base: int, state: int) -> tuple[Int32s, Int32s]:
        """Where the tokens below a bough lead, and what they count from its node on."""
        if base > len(wide):
            return long[state].control, long[state].spent
        if (node, base) not in known:
            read = wide[base - 1]
            kinds = np.unique(read.target[trie.low[node] : trie.high[node]])
            kinds = kinds[kinds >= 0]
            counted = read.targets.spent[kinds] - read.spent[node]
            known[node, base] = read.targets.control[kinds], counted
        return known[node, base]

    found = [np.zeros((2, 0), np.int32)]
    for k in np.flatnonzero(rows.bough_bases).tolist():
        state = int(origin[k])
        control, counted = below(int(rows.bough_nodes[k]), int(rows.bough_bases[k]), state)
        cost = rows.targets.spent[rows.bough_targets[k]] + counted + automaton.need[control]
        kept = (cost == automaton.need[state]) | ~bounded[state]
        found.append(np.stack([np.full(kept.sum(), state), control[kept]]))
    return BoughEdges(*np.concatenate(found, axis=1))


def _after_strings(automaton: ByteAutomaton, exits: ExitTrie, distances: Distances) -> list[Rules]:
    """For each state that strings return to: what their last token can reach there."""
    calls = automaton.calls
    # a constrained string may have become a free one before its end, and returns as that does
    shared = (automaton.moves[automaton.text_states :] == TEXT_BODY).any()
    backs = np.unique(calls[(calls[:, 0] == TEXT_BODY) | shared, 1])
    # In a string that may be full only tokens are sure that begin with its end.
    bounded = set(calls[(calls[:, 2:] != UNBOUNDED).any(axis=1), 1].tolist())
    found = [
        [state for node, state in exits.reached(automaton, State(back))
         if back not in bounded or any(spent == 0 for _, spent in node.tokens)]
        for back in backs.tolist()
    ]  # fmt: skip
    reached = Reached.of_states([s for f in found for s in f], automaton)
    sums = Sums.of(reached, distances)
    heads = sums.zero + 1 + np.repeat(backs, [len(f) for f in found]).astype(np.int64)
    return sums.rules(heads, np.ones(len(heads), np.int64), 1 + reached.into_key)


def _bounded_frames(automaton: ByteAutomaton) -> list[int]:
    """The frames of which some call bounds a count."""
    return sorted({
        int(automaton.frame[entered])
        for entered, _, room, due in automaton.calls.tolist() if (room, due) != (FAR, 0)
    })  # fmt: skip


def _in_bytes(automaton: ByteAutomaton) -> tuple[Int32s, Int32s]:
    """The fewest bytes from each state to the end of its frame, and for one more count in it.

    In an array one more item costs the way from a comma on; in a string one more character costs
    at most the longest shortest way, of whatever characters its content is made.
    """
    moves, calls = automaton.moves, automaton.calls
    if not calls[:, 3].any():  # nothing is ever due
        return np.zeros(len(moves), np.int32), np.zeros(len(moves), np.int32)
    found = np.where((moves == POP).any(axis=1), 1, FAR).astype(np.int32)
    found[automaton.final] = 0
    rounds = np.zeros_like(found)
    state, kind = np.nonzero(moves != DEAD)
    move = moves[state, kind]
    plain, called = move >= 0, move <= CALL
    entered, back, _, due = calls.T
    while True:
        before = found.copy()
        np.minimum.at(found, state[plain], found[move[plain]] + 1)
        _measure_rounds(automaton, found, rounds)
        further = np.maximum(due - automaton.need[entered], 0).astype(np.int64)
        through = found[entered] + further * rounds[entered] + found[back] + 1
        through = through + (automaton.keyed[back] >= 0)  # a character more, if the key is taken
        values = np.minimum(through, FAR).astype(np.int32)[CALL - move[called]]
        np.minimum.at(found, state[called], values)
        if np.array_equal(before, found):
            return found, rounds


def _measure_rounds(automaton: ByteAutomaton, found: Int32s, rounds: Int32s) -> None:
    for frame in {int(automaton.frame[e]) for e, _, _, due in automaton.calls.tolist() if due}:
        members = np.flatnonzero(automaton.frame == frame)
        state, kind = np.nonzero(automaton.gains[members])
        counting = set(automaton.moves[members[state], kind].tolist())
        after = counting.pop() if len(counting) == 1 else -1
        if after >= 0 and not automaton.gains[after].any():  # the state behind a comma
            rounds[members] = found[after]
        else:
            rounds[members] = found[members][found[members] < FAR].max(initial=0) + 1
