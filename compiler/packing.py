"""Token tables as files: packed small, and looked through before any of it is used."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt
import regex

from cmm.compiler.artifact import MALFORMED, DamagedFile, Packed, arrays_of, arrays_under
from cmm.compiler.automaton import CALL, DEAD, ByteAutomaton, Int32s
from cmm.compiler.boughs import Boughs, wide_states
from cmm.compiler.bpe import Bpe
from cmm.compiler.distance import Distances
from cmm.compiler.pretokens import Pretokenizer
from cmm.compiler.rows import Rows, Targets
from cmm.compiler.table import TokenTable
from cmm.compiler.trie import Trie
from cmm.compiler.vocabulary import PackedTokens, Vocabulary

Bools = npt.NDArray[np.bool_]
SMALL = np.iinfo(np.int16)


def pack_table(table: TokenTable) -> Packed:
    """A table as arrays and a header, its vocabulary named by digest only."""
    automaton = table.automaton
    arrays = {
        **arrays_of("automaton", automaton),
        **arrays_of("rows", table.rows),
        **arrays_of("distances", table.distances),
    }
    del arrays["automaton.moves"], arrays["automaton.gains"]
    arrays |= _sparse(automaton.moves, automaton.gains)
    return {name: _smaller(array) for name, array in arrays.items()}, {
        "about": dict(table.about),
        "made_by": version("call-me-maybe"),
        "vocabulary": table.vocabulary.digest,
        "start": automaton.start,
        "text_states": automaton.text_states,
        "names": [sorted(names) for names in automaton.names],
        "states": len(automaton.final),
        "transitions": len(table.rows.tokens),
    }


def unpack_table(packed: Packed, vocabulary: Vocabulary) -> TokenTable:
    """The table that was packed; DamagedFile where it is none, or another vocabulary's."""
    arrays, header = packed
    if header.get("vocabulary") != vocabulary.digest:
        raise DamagedFile("it belongs to another vocabulary")
    try:
        arrays = {name: _plain(array) for name, array in arrays.items()}
        moves, gains = _dense(**arrays_under("moves", arrays))
        automaton = ByteAutomaton(
            **arrays_under("automaton", arrays),
            moves=moves,
            gains=gains,
            start=header["start"],
            text_states=header["text_states"],
            names=tuple(map(frozenset, header["names"])),
        )
        table = TokenTable(
            vocabulary,
            automaton,
            Rows.unpack("rows", arrays),
            Distances(**arrays_under("distances", arrays)),
            dict(header["about"].items()),
        )
        check_automaton(automaton)
        check_rows(table.rows, automaton, vocabulary)
        check_distances(table.distances, automaton)
    except MALFORMED as error:
        raise DamagedFile(f"no table: {error}") from None
    return table


def pack_vocabulary(vocabulary: Vocabulary) -> Packed:
    """A vocabulary, and all that is worked out from it alone, as arrays and a header."""
    arrays = {
        **arrays_of("tokens", vocabulary.tokens),
        **arrays_of("trie", vocabulary.trie),
        **arrays_of("text", vocabulary.text_rows),
        **arrays_of("boughs", vocabulary.boughs),
    }
    header: dict[str, Any] = {"vocabulary": vocabulary.digest}
    if vocabulary.bpe is not None:
        arrays |= arrays_of("bpe", vocabulary.bpe)
        header["cuts"] = vocabulary.bpe.pretokenizer.patterns
    return {name: _smaller(array) for name, array in arrays.items()}, header


def unpack_vocabulary(packed: Packed) -> Vocabulary:
    """The vocabulary that was packed; DamagedFile where it is none."""
    arrays, header = packed
    arrays = {name: _plain(array) for name, array in arrays.items()}
    try:
        boughs = Boughs(
            **arrays_under("boughs", arrays),
            targets=Targets(**arrays_under("boughs.targets", arrays)),
        )
        bpe = None
        if "cuts" in header:
            bpe = Bpe(
                **arrays_under("bpe", arrays), pretokenizer=Pretokenizer(tuple(header["cuts"]))
            )
        return Vocabulary(
            PackedTokens(**arrays_under("tokens", arrays)),
            Trie(**arrays_under("trie", arrays)),
            Rows.unpack("text", arrays),
            boughs,
            header["vocabulary"],
            bpe,
        )
    except (*MALFORMED, regex.error) as error:
        raise DamagedFile(f"no vocabulary: {error}") from None


def _sparse(moves: Int32s, gains: Bools) -> dict[str, npt.NDArray[Any]]:
    """The moves that there are, state by state: of most states it is one."""
    state, kind = np.nonzero(moves != DEAD)
    return {
        "moves.count": np.bincount(state, minlength=len(moves)).astype(np.uint16),
        "moves.kinds": np.array([moves.shape[1]], np.int32),
        "moves.kind": kind.astype(np.uint8),
        "moves.move": moves[state, kind],
        "moves.gaining": np.flatnonzero(gains[state, kind]).astype(np.int32),
    }


def _dense(
    count: npt.NDArray[np.uint16],
    kinds: Int32s,
    kind: npt.NDArray[np.uint8],
    move: Int32s,
    gaining: Int32s,
) -> tuple[Int32s, Bools]:
    """The table of moves, and that of gains."""
    if not 1 <= kinds[0] <= 256 or count.sum() != len(kind):
        raise ValueError("moves that do not add up")
    state = np.repeat(np.arange(len(count)), count)
    moves = np.full((len(count), int(kinds[0])), DEAD, np.int32)
    gains = np.zeros(moves.shape, np.bool_)
    moves[state, kind] = move
    gains[state[gaining], kind[gaining]] = True
    return moves, gains


def _smaller(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """Numbers in 16 bits where they fit: most arrays of most tables."""
    if array.dtype != np.int32 or (array.size and not _fits(array)):
        return array
    return array.astype(np.int16)


def _fits(array: npt.NDArray[np.generic]) -> bool:
    return bool(array.min() >= SMALL.min and array.max() <= SMALL.max)


def _plain(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    return array.astype(np.int32) if array.dtype == np.int16 else array


def check_automaton(automaton: ByteAutomaton) -> None:
    """See that no move, call or return leads out of an automaton; DamagedFile where one does."""
    states, calls = len(automaton.final), len(automaton.calls)
    kinds = automaton.moves.shape[1] if automaton.moves.ndim == 2 else 0
    _expect("shapes of the automaton", [
        automaton.classes.shape == (256,),
        automaton.moves.shape == automaton.gains.shape == (states, kinds),
        automaton.calls.shape == (calls, 4),
        automaton.need.shape == automaton.keyed.shape == automaton.frame.shape == (states,),
        automaton.final.dtype == automaton.gains.dtype == np.bool_,
        isinstance(automaton.start, int) and 0 <= automaton.start < states,
        isinstance(automaton.text_states, int) and 0 < automaton.text_states <= states,
    ])  # fmt: skip
    _within("classes", automaton.classes, 0, kinds)
    _within("moves", automaton.moves, CALL - calls + 1, states)
    _within("calls", automaton.calls[:, :2], 0, states)
    _within("counts", automaton.calls[:, 2:], 0, None)
    _within("needs", automaton.need, 0, None)
    _within("keys", automaton.keyed, -1, len(automaton.names))


def check_rows(rows: Rows, automaton: ByteAutomaton, vocabulary: Vocabulary) -> None:
    """See that rows speak of tokens, states and nodes that there are."""
    count = len(automaton.final) - automaton.text_states
    _ranges("rows", rows.starts, count, len(rows.tokens))
    _ranges("exits", rows.exits.starts, count, len(rows.exits.tokens))
    _ranges("boughs", rows.bough_starts, count, len(rows.bough_nodes))
    _lengths("rows", rows.tokens, rows.target)
    exits, targets = rows.exits, rows.targets
    _lengths("exits", exits.tokens, exits.depths, exits.spent, exits.exact)
    _lengths("boughs", rows.bough_nodes, rows.bough_bases, rows.bough_targets)
    for tokens in (rows.tokens, exits.tokens):
        _within("tokens", tokens, 0, vocabulary.size)
    _within("targets", rows.target, 0, len(targets.control))
    _within("bough targets", rows.bough_targets, 0, len(targets.control))
    _within("nodes", rows.bough_nodes, 0, len(vocabulary.trie.byte))
    _within("bases", rows.bough_bases, 0, 2 + len(wide_states(automaton)))  # or the row's own
    _within("depths", exits.depths, 1, None)
    _check_targets(targets, automaton)


def _check_targets(targets: Targets, automaton: ByteAutomaton) -> None:
    _lengths("targets", targets.control, targets.spent)
    _lengths("levels", targets.level_calls, targets.level_spent)
    _ranges("levels", targets.level_starts, len(targets.control), len(targets.level_calls))
    _within("controls", targets.control, 0, len(automaton.final))
    _within("calls of levels", targets.level_calls, 0, len(automaton.calls))


def check_distances(distances: Distances, automaton: ByteAutomaton) -> None:
    """See that there is a distance of every state."""
    states = len(automaton.final)
    arrays = (distances.to_end, distances.after_text, distances.bytes_to_end, distances.round)
    shapes = {array.shape for array in (*arrays, distances.need)}
    _expect("shapes of the distances", [
        shapes == {(states,)},
        distances.to_body.shape == (automaton.text_states,),
        distances.stride.shape == (1,),
    ])  # fmt: skip
    for array in (*arrays, distances.need, distances.to_body):
        _within("distances", array, 0, None)
    _within("stride", distances.stride, 1, None)


def _expect(what: str, true: Iterable[bool]) -> None:
    if not all(true):
        raise DamagedFile(f"wrong {what}")


def _within(what: str, array: npt.NDArray[np.generic], low: int, high: int | None) -> None:
    if not array.size:
        return
    least, most = int(array.min()), int(array.max())
    if least < low or (high is not None and most >= high):
        raise DamagedFile(f"{what} out of range")


def _ranges(what: str, starts: Int32s, count: int, total: int) -> None:
    right = starts.shape == (count + 1,) and starts[0] == 0 and starts[-1] == total
    if not right or (np.diff(starts) < 0).any():
        raise DamagedFile(f"{what} that do not add up")


def _lengths(what: str, *arrays: npt.NDArray[np.generic]) -> None:
    if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1:
        raise DamagedFile(f"{what} of different lengths")
