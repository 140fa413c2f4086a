"""The fast decoder: all prompts together, each forward pass a decision for every row."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from cmm.runtime.choose import (
    StateId,
    Table,
    TokenId,
    check_limit,
    choose_token,
    forced_token,
)
from cmm.runtime.pack import HEAD, Chunk, Pack


@dataclass
class Row:
    """One prompt on its way: where it stands in the table, what the model has not read yet."""

    index: int  # the prompt's place in the input
    state: StateId
    pending: list[TokenId]
    position: int  # of the first pending token
    answer: list[TokenId] = field(default_factory=list)

    def take(self, table: Table, token: TokenId) -> None:
        """Append one token to the answer, and move on in the table."""
        self.answer.append(token)
        self.pending.append(token)
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

    def __init__(self, network: Any, table: Table, head: Sequence[TokenId], *, rows: int = 32):
        self._table = table
        self._head = list(head)
        self._rows = rows
        self._pack = Pack(network)

    @property
    def forwards(self) -> int:
        """Forward passes so far, that of the head included."""
        return self._pack.forwards

    def decode(
        self, prompts: Iterable[Sequence[TokenId]], max_tokens: int
    ) -> Iterator[tuple[int, list[TokenId]]]:
        """(index, answer) for each prompt after the head, in the order in which they finish."""
        check_limit(self._table, max_tokens)
        self._prefill_head()
        waiting = deque(enumerate(prompts))
        active: list[Row] = []
        try:
            while waiting or active:
                while waiting and len(active) < self._rows:
                    active.append(self._admit(*waiting.popleft(), max_tokens))
                yield from self._settle(active, max_tokens)
                if active:
                    self._advance(active, max_tokens)
        finally:
            self._pack.drop_rows({row.index for row in active})

    def _prefill_head(self) -> None:
        if self._head and not len(self._pack):
            self._pack.feed([Chunk(HEAD, self._head, 0)])

    def _admit(self, index: int, prompt: Sequence[TokenId], max_tokens: int) -> Row:
        """A new row; what it must say first is read along with the prompt."""
        row = Row(index, self._table.start, list(prompt), len(self._head))
        row.take_forced(self._table, max_tokens)
        return row

    def _settle(self, active: list[Row], max_tokens: int) -> Iterator[tuple[int, list[TokenId]]]:
        """Hand out the finished rows and free their place."""
        done = [row for row in active if row.is_done(self._table, max_tokens)]
        if done:
            active[:] = [row for row in active if row not in done]
            self._pack.drop_rows({row.index for row in done})
            yield from ((row.index, row.answer) for row in done)

    def _advance(self, active: list[Row], max_tokens: int) -> None:
        """One forward pass: every row reads what is pending and makes its next decision."""
        logits = self._pack.feed([Chunk(row.index, row.pending, row.position) for row in active])
        for row, numbers in zip(active, logits, strict=True):
            row.position += len(row.pending)
            row.pending = []
            self._decide(row, numbers, max_tokens)
            row.take_forced(self._table, max_tokens)

    def _decide(self, row: Row, numbers: Tensor, max_tokens: int) -> None:
        allowed = self._table.allowed(row.state)
        logits = numbers.float().numpy()[allowed]
        left = max_tokens - len(row.answer)
        row.take(self._table, choose_token(self._table, row.state, logits, left))
