"""The slow twin: one prompt, one token after the other, nothing kept. The oracle of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cmm.runtime.choose import (
    Choice,
    Logits,
    StateId,
    Table,
    TokenId,
    check_limit,
    choose_token,
)

LogitsOf = Callable[[Sequence[TokenId]], Logits]  # token ids -> logits of the next, (rows,)
AllowedLogits = Callable[[Sequence[TokenId], StateId], Logits]  # answer, state -> (allowed,)
Decided = Callable[[Sequence[TokenId], StateId, Choice], None]  # answer and state before the choice


def decode_slowly(
    logits_of: LogitsOf, table: Table, prompt: Sequence[TokenId], max_tokens: int
) -> list[TokenId]:
    """The tokens of one call: the masked argmax, again and again.

    The model is asked for every token, even where only one is allowed.
    """
    return decode_by(
        lambda answer, state: logits_of([*prompt, *answer])[table.allowed(state)],
        table,
        max_tokens,
    )


def decode_by(
    numbers_of: AllowedLogits, table: Table, max_tokens: int, decided: Decided | None = None
) -> list[TokenId]:
    """The same with anything that gives the logits of the allowed tokens."""
    check_limit(table, max_tokens)
    answer: list[TokenId] = []
    state = table.start
    while len(table.allowed(state)):
        if len(answer) >= max_tokens and table.is_final(state):
            break
        numbers = numbers_of(answer, state)
        choice = choose_token(table, state, numbers, max_tokens - len(answer))
        if decided:
            decided(answer, state, choice)
        answer.append(choice.token)
        state = table.next(state, choice.token)
    return answer
