"""The token table restricted to the tokenizer's own spelling of each text.

A text has many spellings in tokens, and a model was trained on one. Of the tokens that the table
allows these are kept that the tokenizer itself would write here:

    {"na|                 allowed  m, me, me", …       kept  none but `name` was the way to begin

A control token ends a text: what stands before it and what follows are encoded apart. Where few
tokens are allowed, each is tried: are it and those before what the tokenizer makes of
some text that the grammar allows to come? Where a string is open, 147,000 tokens are allowed, and
only the one that is about to win is asked about (`keeps`). A token that is needed to end within a
limit is never taken away.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmm.compiler.automaton import DEAD, State
from cmm.compiler.bpe import Bpe
from cmm.compiler.table import TokenTable
from cmm.compiler.utf8 import CONTROL
from cmm.compiler.vocabulary import TokenId
from cmm.grammar.errors import Unsupported

Int32s = npt.NDArray[np.int32]

NARROW = 256  # up to so many tokens each is tried; what is wider is the inside of a string
WIDE_BYTES = 16  # where more bytes may come than that, a few of each kind stand for all of them
PROBES = b'aZ0 "\\/:,.-_{}[]'
TRIED = 64  # texts that are tried to see how a piece may end
KEPT = 4096


class Spelled(NamedTuple):
    """A state of the table, and the tokens since the last place where the tokenizer surely cuts."""

    inner: State
    tail: tuple[TokenId, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class CanonicalTable:
    """A token table of which only the tokenizer's own spellings are left.

    >>> from cmm.compiler.bpe import merges_of_ranks
    >>> from cmm.compiler.pretokens import Pretokenizer
    >>> from cmm.compiler.table import build_table
    >>> from cmm.compiler.vocabulary import make_vocabulary
    >>> from cmm.grammar.nodes import Grammar, Literal
    >>> tokens = [b"a", b"b", b"ab"]
    >>> merges = merges_of_ranks(tokens, Pretokenizer(("[a-z]+",)))
    >>> table = build_table(Grammar(Literal("abb")), make_vocabulary(tokens, merges))
    >>> canonical = CanonicalTable(table)
    >>> table.allowed(table.start).tolist(), canonical.allowed(canonical.start).tolist()
    ([0, 2], [2])
    """

    table: TokenTable

    @cached_property
    def bpe(self) -> Bpe:
        """How the tokenizer encodes; Unsupported where that is not known."""
        if self.table.vocabulary.bpe is None:
            raise Unsupported(
                "this tokenizer's own spelling of a text is not known",
                advice="allow any tokens (--tokens any)",
            )
        return self.table.vocabulary.bpe

    @property
    def start(self) -> Spelled:
        """The state before the first token."""
        return Spelled(self.table.start)

    def allowed(self, state: Spelled) -> Int32s:
        """The tokens that may come next, ascending; where they are many, see `keeps` for each."""
        row: Int32s = self._allowed(state)
        return row

    @cached_property
    def _allowed(self):  # type: ignore[no-untyped-def]
        return lru_cache(KEPT)(self._find_allowed)

    def _find_allowed(self, state: Spelled) -> Int32s:
        row = self.table.allowed(state.inner)
        if not 1 < len(row) <= NARROW:
            return row
        kept = np.array([self._is_possible(state, token) for token in row.tolist()])
        if kept.all():
            return row
        after = self.table.distances_after(state.inner)
        if not kept.any() or after[kept].min() > after.min():
            kept |= after == after.min()  # else no limit could be kept to
        narrowed: Int32s = row[kept]
        narrowed.flags.writeable = False
        return narrowed

    def keeps(self, state: Spelled, token: TokenId) -> bool:
        """Is an allowed token one that the tokenizer would write?"""
        wide = len(self.table.allowed(state.inner)) > NARROW
        return not wide or self._is_possible(state, token)

    def next(self, state: Spelled, token: TokenId) -> Spelled:
        """The state after a token; KeyError where it is not allowed."""
        return Spelled(self.table.next(state.inner, token), self._tail((*state.tail, token)))

    def is_final(self, state: Spelled) -> bool:
        """May the text end here?"""
        return self.table.is_final(state.inner)

    def distance(self, state: Spelled) -> int:
        """The fewest tokens to acceptance, in whatever spelling."""
        return self.table.distance(state.inner)

    def distances_after(self, state: Spelled) -> Int32s:
        """The distance of the state that each allowed token leads to, in the order of `allowed`."""
        row, every = self.allowed(state), self.table.allowed(state.inner)
        found = self.table.distances_after(state.inner)
        return found if len(row) == len(every) else found[np.searchsorted(every, row)]

    def _data(self, tokens: tuple[TokenId, ...]) -> bytes:
        return b"".join(map(self._bytes, tokens))

    @cached_property
    def _bytes(self):  # type: ignore[no-untyped-def]
        return lru_cache(4 * KEPT)(self.table.vocabulary.tokens.__getitem__)

    def _is_control(self, token: TokenId) -> bool:
        return bool(self._bytes(token).startswith(CONTROL))

    def _tail(self, tokens: tuple[TokenId, ...]) -> tuple[TokenId, ...]:
        """The tokens from the last piece on: where that begins stays, whatever follows."""
        if self._is_control(tokens[-1]):
            return ()
        ends = self._ends(tokens)
        starts = self._cuts(self._data(tokens))
        at = starts[-1] if starts else 0
        return tuple(token for token, end in zip(tokens, ends, strict=True) if end > at)

    def _ends(self, tokens: tuple[TokenId, ...]) -> list[int]:
        return list(accumulate(map(len, map(self._bytes, tokens))))

    def _cuts(self, data: bytes) -> list[int]:
        """Where pieces begin, in bytes, but for the first; a character that is cut off is left."""
        pieces = self.bpe.pretokenizer.pieces(_whole_characters(data))
        return list(accumulate(len(_encoded(piece)) for piece in pieces))[:-1]

    def _is_possible(self, state: Spelled, token: TokenId) -> bool:
        """Is there a text to come with which the tokens are the tokenizer's?"""
        if self._is_control(token):
            return True  # the tokens before it were seen to fit as they stand
        tokens = (*state.tail, token)
        return self._fits(tokens) and self._goes_on(tokens, self.table.next(state.inner, token))

    def _fits(self, tokens: tuple[TokenId, ...]) -> bool:
        """Are the tokens the tokenizer's as far as can be seen from their own text?"""
        data = self._data(tokens)
        known = len(_encoded(_whole_characters(data)))
        return self._pairs_hold(tokens, self._cuts(data), known) and self.bpe.is_whole(tokens[-1])

    def _pairs_hold(
        self, tokens: tuple[TokenId, ...], cuts: list[int], known: float = np.inf
    ) -> bool:
        """Do pieces begin at tokens, and is each pair within a piece one that the tokenizer writes?

        `cuts` are where pieces begin; beyond `known` bytes it is not known.
        """
        ends = self._ends(tokens)
        cut = {at for at in cuts if at < ends[-1]}
        pairs = zip(tokens, tokens[1:], ends, ends[1:], strict=False)
        return cut <= set(ends) and all(
            self.bpe.joins(before, after)
            for before, after, at, end in pairs
            if at not in cut and end <= known
        )

    def _goes_on(self, tokens: tuple[TokenId, ...], state: State) -> bool:
        """May a text follow that leaves the tokens as they are?"""
        written = self._data(tokens)
        pending = [(state, written)]
        for _ in range(TRIED):
            if not pending:
                return False
            state, data = pending.pop()
            cuts = self._cuts(data)
            following, ends = self._bytes_after(state.control)
            settled = bool(cuts) and cuts[-1] >= len(written)
            ends = settled or ends or self.table.is_final(state)
            if ends and self._begins(tokens, data, cuts):
                return True
            if not settled and len(following) > WIDE_BYTES:
                texts = [data, *(data + bytes([byte]) for byte in PROBES if byte in following)]
                if any(self._begins(tokens, text, self._cuts(text)) for text in texts):
                    return True
            elif not settled:
                steps = ((self.table.automaton.step(state, byte), byte) for byte in following)
                pending += [(s, data + bytes([byte])) for s, byte in steps if s is not None]
        return True  # too many to try them all

    def _begins(self, tokens: tuple[TokenId, ...], data: bytes, cuts: list[int]) -> bool:
        """Does the encoding of a text begin with the tokens?

        It does if each pair is right, and the last token with what follows: only that is encoded.
        """
        if not self._pairs_hold(tokens, cuts):
            return False
        ends = self._ends(tokens)
        start = ends[-2] if len(ends) > 1 else 0
        end = next((at for at in cuts if at > start), len(data))
        return self.bpe.encode_piece(data[start:end])[:1] == [tokens[-1]]

    @cached_property
    def _bytes_after(self):  # type: ignore[no-untyped-def]
        def after(control: int) -> tuple[list[int], bool]:
            """The bytes of text that may follow, and whether a control token may."""
            moves = self.table.automaton.moves[control][self.table.automaton.classes] != DEAD
            return np.flatnonzero(moves[: CONTROL[0]]).tolist(), bool(moves[CONTROL[0]])

        return lru_cache(None)(after)


def _whole_characters(data: bytes) -> str:
    """The text of some bytes, up to a character that is not complete.

    >>> _whole_characters("aé".encode()[:-1])
    'a'
    """
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        return data[: error.start].decode("utf-8", "surrogatepass")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
