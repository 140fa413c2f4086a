"""Who wants to watch: what the engine and the caller tell while calls are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cmm.grammar.call_format import Written
from cmm.runtime.choose import StateId, TokenId

if TYPE_CHECKING:
    from cmm.runtime.caller import FunctionCall


@dataclass(frozen=True)
class Decision:
    """One token that the model was asked for, not forced by the table.

    `free` is what the model says without the table, known where an observer wants `all_logits`.
    """

    place: int  # of the token in the answer
    token: TokenId
    state: StateId  # before the token
    allowed: int  # how many tokens were
    margin: float  # the lead over the runner-up among the allowed
    drafted: bool  # was the token guessed, and only confirmed?
    free: TokenId | None = None


class Observer:
    """Watches calls being written; does nothing unless a method is overridden.

    Calls are known by their number among the requests of one run of the engine.
    """

    all_logits = False  # compute the logits of all tokens at each decision: takes longer
    # set when the observer is handed to a caller:
    tokens: Sequence[bytes] = ()  # the model's
    read: Callable[[str], Written]  # a call that is written in part

    def asked(self, number: int, prompt: str) -> None:
        """A request was read."""

    def decided(self, number: int, decision: Decision) -> None:
        """The model chose a token."""

    def wrote(self, number: int, answer: Sequence[TokenId]) -> None:
        """An answer has these tokens now; the sequence grows later on."""

    def passed(self) -> None:
        """A pass of the model is over, and with it all that it decided: a time to draw."""

    def answered(self, number: int, call: FunctionCall, answer: Sequence[TokenId]) -> None:
        """A call is finished."""
