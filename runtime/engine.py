"""The fast decoder: all prompts together, each forward pass as many decisions as it can carry.

row 0   pending  draft              a pass reads both, and asks after each token where the
row 1   pending  draft draft draft  table leaves a choice. The draft is right as far as the
row 2   pending                     model chooses the same; the first other choice ends it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from cmm.runtime.apart import Apart
from cmm.runtime.choose import (
    Choice,
    Logits,
    StateId,
    Table,
    TokenId,
    check_limit,
    choose_token,
    first_and_margin,
    forced_token,
)
from cmm.runtime.draft import Clues, Drafter, Step
from cmm.runtime.logits import FEW, Ask, ask
from cmm.runtime.observe import Decision, Observer
from cmm.runtime.pace import Pace
from cmm.runtime.pack import Chunk, Pack, can_pack
from cmm.runtime.prefix import PrefixFile

# A lead below this may fall the other way with other tokens in the same pass: such decisions are
# made again alone. The lead was seen to change by 0.25 at most in bfloat16, where logits are
# multiples of 1/8, and by 1e-4 in float32 (docs/performance.md).
CLOSE = {torch.float32: 1e-3, torch.bfloat16: 0.4}
LONGEST = 64  # tokens of one draft
PIECE = 1024  # tokens of a row in one pass: the mask grows with them times all that is cached


@dataclass(frozen=True)
class Request:
    """The tokens after the head, and what they suggest for the call."""

    tokens: Sequence[TokenId]
    clues: Clues | None = None


@dataclass
class Row:
    """One prompt on its way: where it stands in the table, what the model has read of it."""

    index: int  # the prompt's place in the input
    request: Request
    state: StateId
    read: int = 0  # tokens of request and answer that are in the cache
    answer: list[TokenId] = field(default_factory=list)

    @property
    def tokens(self) -> list[TokenId]:
        return [*self.request.tokens, *self.answer]

    def take(self, table: Table, token: TokenId) -> None:
        """Append one token to the answer, and move on in the table."""
        self.answer.append(token)
        self.state = table.next(self.state, token)

    def take_forced(self, table: Table, max_tokens: int) -> None:
        """Append all tokens up to the next decision; the model is not asked for them."""
        while len(self.answer) < max_tokens:
            token = forced_token(table, self.state)
            if token is None:
                return
            self.take(table, token)

    def is_done(self, table: Table, max_tokens: int) -> bool:
        """Is the call complete?"""
        at_limit = len(self.answer) >= max_tokens and table.is_final(self.state)
        return at_limit or not len(table.allowed(self.state))


class Engine:
    """Decodes prompts that share a head; its key-value state is computed once and kept."""

    def __init__(
        self,
        network: Any,
        table: Table,
        head: Sequence[TokenId],
        *,
        rows: int = 32,
        drafter: Drafter | None = None,
        prefix: PrefixFile | None = None,
    ) -> None:
        self._table = table
        self._head = list(head)
        self._rows = rows
        self._drafter = drafter
        self._prefix = prefix
        self._pack: Pack | Apart = (Pack if can_pack(network.config) else Apart)(network)
        self._close = CLOSE.get(network.dtype, CLOSE[torch.bfloat16])
        self._pace = Pace()
        self._observers: list[Observer] = []

    def watch(self, observer: Observer) -> None:
        """Tell an observer from now on what is decided and written."""
        self._observers.append(observer)

    @property
    def forwards(self) -> int:
        """Forward passes so far, that of the head included."""
        return self._pack.forwards

    def decode(
        self, requests: Iterable[Request], max_tokens: int
    ) -> Iterator[tuple[int, list[TokenId]]]:
        """(index, answer) for each request, in the order in which they finish.

        Requests are asked for one by one, as rows become free.
        """
        check_limit(self._table, max_tokens)
        self._pack.read_head(self._head, self._prefix)
        waiting = enumerate(requests)
        active: list[Row] = []
        try:
            while True:
                while len(active) < self._rows and (new := next(waiting, None)):
                    active.append(self._admit(*new, max_tokens))
                if not active:
                    return
                yield from self._settle(active, max_tokens)
                if active:
                    self._advance(active, max_tokens)
        finally:
            for row in active:
                self._pack.forget(row.index)

    def _admit(self, index: int, request: Request, max_tokens: int) -> Row:
        """A new row; what it must say first is read along with the prompt."""
        row = Row(index, request, self._table.start)
        row.take_forced(self._table, max_tokens)
        for observer in self._observers:
            observer.wrote(index, row.answer)
        return row

    def _settle(self, active: list[Row], max_tokens: int) -> Iterator[tuple[int, list[TokenId]]]:
        """Hand out the finished rows and free their place."""
        done = [row for row in active if row.is_done(self._table, max_tokens)]
        active[:] = [row for row in active if row not in done]
        for row in done:
            self._pack.forget(row.index)
            if self._drafter:
                self._drafter.remember(row.answer)
            yield row.index, row.answer

    def _advance(self, active: list[Row], max_tokens: int) -> None:
        """One forward pass: every row reads what is pending and makes its next decisions."""
        sharing = len(active) if self._pack.shared else 1
        least = sharing / self._pace.worth
        steps = [self._draft(row, least, max_tokens) for row in active]
        drafts = [[token for step in draft for token in step.tokens] for draft in steps]
        chunks = [self._chunk(row, draft) for row, draft in zip(active, drafts, strict=True)]
        began = time.perf_counter()
        logits = self._pack.feed(chunks)
        size = sum(len(chunk.tokens) for chunk in chunks)
        passes = len(active) // sharing
        self._pace.measured(size / passes, (time.perf_counter() - began) / passes)
        for row, draft, chunk, numbers in zip(active, steps, chunks, logits, strict=True):
            self._confirm(row, draft, chunk, numbers, max_tokens)
        for observer in self._observers:
            observer.passed()

    def _draft(self, row: Row, least: float, max_tokens: int) -> list[Step]:
        """A guess of what comes; a token must be right with the chance `least` to be worth it.

        A token that is right saves its row's share of a pass, one that is wrong costs itself.
        """
        if self._drafter is None or row.request.clues is None:
            return []
        if len(row.tokens) - row.read > PIECE:
            return []
        most = min(LONGEST, max_tokens - len(row.answer))
        return self._drafter.propose(row.request.clues, row.answer, row.state, most, least)

    def _confirm(
        self, row: Row, draft: Sequence[Step], chunk: Chunk, numbers: list[Logits], max_tokens: int
    ) -> None:
        """Decide with what a pass computed, and drop what was read of a wrong draft."""
        if not chunk.asked:  # a piece of a long prompt
            row.read += len(chunk.tokens)
            return
        tokens = [token for step in draft for token in step.tokens]
        asked: dict[int, Logits] = {}
        free: dict[int, TokenId] = {}  # what was asked a second time, of all tokens
        for one, found in zip(chunk.asked, numbers, strict=True):
            if one.place in asked:
                free[one.place] = int(np.argmax(found))
            else:
                asked[one.place] = found
        right = self._decide_all(row, tokens, asked, free, max_tokens)
        row.read += len(chunk.tokens) - len(tokens) + right
        if right < len(tokens):
            end = len(self._head) + row.read
            row.read = self._pack.take_back(row.index, end) - len(self._head)
        if self._drafter:
            self._drafter.learn(draft, right)

    def _chunk(self, row: Row, draft: Sequence[TokenId]) -> Chunk:
        """What is pending and the draft, with logits wherever the table leaves a choice."""
        pending = row.tokens[row.read :]
        if len(pending) > PIECE:
            return Chunk(row.index, pending[:PIECE], len(self._head) + row.read)
        state = row.state
        asked = [ask(len(pending) - 1, self._table.allowed(state))]
        for place, token in enumerate(draft, len(pending)):
            state = self._table.next(state, token)
            allowed = self._table.allowed(state)
            last = place == len(pending) + len(draft) - 1
            if len(allowed) > 1 or (last and len(allowed)):
                asked.append(ask(place, allowed))
        if any(observer.all_logits for observer in self._observers):
            # Besides, so that a decision is made with the same numbers, watched or not.
            asked += [Ask(one.place, None) for one in asked]
        return Chunk(row.index, [*pending, *draft], len(self._head) + row.read, asked)

    def _decide_all(
        self,
        row: Row,
        draft: Sequence[TokenId],
        asked: dict[int, Logits],
        free: dict[int, TokenId],
        max_tokens: int,
    ) -> int:
        """Decide as long as what was chosen is what was drafted; how much of the draft is right."""
        first, before, right = min(asked), len(row.answer), 0
        while True:
            choice = self._decide(row, asked[first + right], max_tokens)
            if self._observers:
                drafted = draft[right : right + 1] == [choice.token]
                self._tell(row, choice, drafted, free.get(first + right))
            row.take(self._table, choice.token)
            row.take_forced(self._table, max_tokens)
            for observer in self._observers:
                observer.wrote(row.index, row.answer)
            chosen = row.answer[before:]
            while right < min(len(draft), len(chosen)) and draft[right] == chosen[right]:
                right += 1
            if right < len(chosen) or row.is_done(self._table, max_tokens):
                return right

    def _tell(self, row: Row, choice: Choice, drafted: bool, free: TokenId | None) -> None:
        """Let the observers know of a decision, before the row takes it."""
        decision = Decision(
            len(row.answer), choice.token, row.state, len(self._table.allowed(row.state)),
            choice.margin, drafted, free,
        )  # fmt: skip
        for observer in self._observers:
            observer.decided(row.index, decision)

    def _decide(self, row: Row, numbers: Logits, max_tokens: int) -> Choice:
        """One decision; a close one is made again, alone, so that it is the same in any batch."""
        left = max_tokens - len(row.answer)
        choice = self._choose(row.state, numbers, left)
        if choice.margin >= self._close:
            return choice
        again = self._pack.feed_alone(row.tokens, self._table.allowed(row.state))
        return self._choose(row.state, again, left)

    def _choose(self, state: StateId, numbers: Logits, left: int) -> Choice:
        """The likeliest allowed token; where many are, it mostly is the likeliest of all."""
        allowed = self._table.allowed(state)
        if len(allowed) <= FEW:
            return choose_token(self._table, state, numbers, left)
        token, margin = first_and_margin(numbers)
        clear = math.isfinite(numbers.sum()) and margin >= self._close
        if clear and allowed[np.searchsorted(allowed[:-1], token)] == token:
            following = self._table.next(state, token)
            if self._table.keeps(state, token) and self._table.distance(following) < left:
                return Choice(token, margin)
        return choose_token(self._table, state, numbers[allowed], left)
