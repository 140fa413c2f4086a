"""One decision: which of the allowed tokens comes next. Shared by both decoders."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cmm.grammar.errors import CmmError

TokenId = int
StateId = Any  # opaque and hashable; only the table knows what is in it
Logits = NDArray[np.float32]
ASKED = 64  # tokens, the likeliest first, of which one may be the tokenizer's own spelling
# How much less likely (in logits: 1 is 2.7 times) a token may be that is taken for its spelling
# alone. Another token is another text: a tab before "here" is no tab before " here".
NEAR = 1.0


class Table(Protocol):
    """What decoding asks of a token table."""

    @property
    def start(self) -> Hashable: ...
    def allowed(self, state: StateId) -> NDArray[np.int32]: ...
    def keeps(self, state: StateId, token: TokenId) -> bool: ...
    def next(self, state: StateId, token: TokenId) -> StateId: ...
    def is_final(self, state: StateId) -> bool: ...
    def distance(self, state: StateId) -> int: ...
    def distances_after(self, state: StateId) -> NDArray[np.int32]: ...


def check_limit(table: Table, max_tokens: int) -> None:
    """Refuse a token limit within which no call can be said."""
    least = table.distance(table.start)
    if max_tokens < least:
        raise CmmError(
            f"a call needs at least {least} tokens, and the limit is {max_tokens}",
            advice=f"use --max-tokens {least} or more",
        )


def forced_token(table: Table, state: StateId) -> TokenId | None:
    """The next token if only one is allowed: the model need not be asked."""
    allowed = table.allowed(state)
    return int(allowed[0]) if len(allowed) == 1 else None


@dataclass(frozen=True)
class Choice:
    """A decision, and how far the runner-up was behind it."""

    token: TokenId
    margin: float


def choose_token(table: Table, state: StateId, logits: Logits, left: int) -> Choice:
    """The likeliest allowed token after which the call can still end within `left` tokens.

    `logits` has one number for each allowed token, in their order. `left` counts the token that
    is chosen. Ties go to the lowest id.
    """
    allowed = table.allowed(state)
    if not np.isfinite(logits).all():
        raise CmmError("the model computed a logit that is not a finite number")
    best, margin = first_kept(table, state, logits)
    if table.distance(table.next(state, int(allowed[best]))) < left:
        return Choice(int(allowed[best]), margin)
    # At least one token is near enough, but for keys that must differ: there a distance may be one
    # too low, and the call ends with the nearest tokens, past the limit rather than cut.
    distances = table.distances_after(state)
    near = distances < max(left, int(distances.min()) + 1)
    best, among_near = first_kept(table, state, np.where(near, logits, -np.inf))
    return Choice(int(allowed[best]), min(margin, among_near))


def first_kept(table: Table, state: StateId, logits: Logits) -> tuple[int, float]:
    """The place of the likeliest token that the table keeps, and its lead over the next.

    Where no token that is nearly as likely is kept, the likeliest is taken as it is: its text in
    some spelling is better than another text.
    """
    allowed, left = table.allowed(state), logits
    likeliest, lead = best, margin = first_and_margin(logits)
    least = logits[likeliest] - NEAR
    sure = np.inf  # how far any of the others is from being just near enough
    for _ in range(min(ASKED, len(allowed))):
        if table.keeps(state, int(allowed[best])):
            return best, min(margin, sure)
        left = left.copy()
        left[best] = -np.inf
        best, margin = first_and_margin(left)
        sure = min(sure, float(abs(left[best] - least)))
        if left[best] < least:
            break
    return likeliest, min(lead, sure)


def first_and_margin(logits: Logits) -> tuple[int, float]:
    """The place of the largest number, the first of equals, and its lead over the next.

    >>> first_and_margin(np.array([1.0, 3.0, 2.5]))
    (1, 0.5)
    """
    best = int(np.argmax(logits))
    others = max(logits[:best].max(initial=-np.inf), logits[best + 1 :].max(initial=-np.inf))
    return best, float(logits[best] - others) if np.isfinite(others) else np.inf
