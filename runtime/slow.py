"""The slow twin: one prompt, one token after the other, nothing kept. The oracle of the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cmm.runtime.choose import Logits, Table, TokenId, check_limit, choose_token

LogitsOf = Callable[[Sequence[TokenId]], Logits]  # token ids -> logits of the next, (rows,)


def decode_slowly(
    logits_of: LogitsOf, table: Table, prompt: Sequence[TokenId], max_tokens: int
) -> list[TokenId]:
    """The tokens of one call: the masked argmax, again and again.

    The model is asked for every token, even where only one is allowed.
    """
    check_limit(table, max_tokens)
    answer: list[TokenId] = []
    state = table.start
    while len(allowed := table.allowed(state)):
        if len(answer) >= max_tokens and table.is_final(state):
            break
        logits = logits_of([*prompt, *answer])[allowed]
        token = choose_token(table, state, logits, max_tokens - len(answer)).token
        answer.append(token)
        state = table.next(state, token)
    return answer
