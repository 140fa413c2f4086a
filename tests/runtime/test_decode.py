"""The fast engine against the slow twin, and both against the token limit."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from runtime_doubles import FAMILIES, one_thread, tiny_network, tiny_tokenizer  # noqa: F401
from scale import tries

from cmm.compiler import compile_functions, load_vocabulary
from cmm.grammar.errors import CmmError
from cmm.grammar.functions import parse_functions
from cmm.runtime.choose import choose_token
from cmm.runtime.draft import Step, read_clues
from cmm.runtime.engine import Engine, Request
from cmm.runtime.pack import can_pack
from cmm.runtime.slow import decode_slowly

FUNCTIONS = [
    {"name": "add", "parameters": {"a": {"type": "number"}, "b": {"type": "integer"}}},
    {"name": "add_all", "parameters": {"list": {"type": "array", "items": {"type": "number"}}}},
    {"name": "greet", "parameters": {"name": {"type": "string"}, "loud": {"type": "boolean"}}},
    {"name": "now", "parameters": {}},
]
pytestmark = pytest.mark.usefixtures("one_thread")
VOCABULARY = load_vocabulary(tiny_tokenizer())
TABLES = {
    count: compile_functions(parse_functions(FUNCTIONS[:count]), VOCABULARY) for count in (1, 2, 4)
}
PADDED = VOCABULARY.size + 13  # logits have more rows than there are tokens


def slow_logits(network: Any) -> Any:
    def logits_of(ids: list[int]) -> Any:
        with torch.inference_mode():
            return network(torch.tensor([ids]), use_cache=False).logits[0, -1].numpy()

    return logits_of


def text_of(answer: list[int]) -> str:
    return b"".join(VOCABULARY.tokens[token] or b"" for token in answer).decode("utf-8")


def scene(seed: int, dice: random.Random) -> tuple[Any, Any, list[int], list[Request], int, Any]:
    """Network, table, head, requests, limit, and what the slow twin answers."""
    network = tiny_network(seed % 10, PADDED, dice.choice(sorted(FAMILIES)))
    table = TABLES[dice.choice(sorted(TABLES))]
    limit = table.distance(table.start) + dice.randrange(30)
    head = [dice.randrange(256) for _ in range(dice.randrange(20))]
    requests = [
        Request([dice.randrange(256) for _ in range(dice.randrange(1, 12))], read_clues("x"))
        for _ in range(dice.randrange(1, 7))
    ]
    slow = {
        index: decode_slowly(slow_logits(network), table, [*head, *request.tokens], limit)
        for index, request in enumerate(requests)
    }
    return network, table, head, requests, limit, slow


@pytest.mark.parametrize("seed", range(tries(20)))
def test_engine_equals_slow_twin(seed: int) -> None:
    """Token by token, for prompts of any length, batches of any size, limits from the least."""
    dice = random.Random(seed)
    network, table, head, requests, limit, slow = scene(seed, dice)
    engine = Engine(network, table, head, rows=dice.choice([1, 2, 32]))
    fast = dict(engine.decode(requests, limit))
    assert fast == slow
    for answer in fast.values():
        assert len(answer) <= limit
        assert table.accepts(text_of(answer)), text_of(answer)
        assert set(json.loads(text_of(answer))) == {"name", "arguments"}


def test_engine_can_be_asked_again() -> None:
    """The head is kept, rows of an earlier decode are gone."""
    engine = Engine(tiny_network(1, PADDED), TABLES[4], [1, 2, 3])
    first = dict(engine.decode([Request([5, 6]), Request([7])], 40))
    before = engine.forwards
    assert dict(engine.decode([Request([5, 6]), Request([7])], 40)) == first
    assert engine.forwards - before == before - 1  # all but the head's pass


def test_stopping_midway_leaves_nothing_behind() -> None:
    """A decode that is not read to its end does not show in the next."""
    engine = Engine(tiny_network(1, PADDED), TABLES[4], [1, 2, 3], rows=1)
    whole = dict(engine.decode([Request([5, 6]), Request([7])], 40))
    stopped = engine.decode([Request([9]), Request([9, 9])], 40)
    next(stopped)
    stopped.close()
    assert dict(engine.decode([Request([5, 6]), Request([7])], 40)) == whole


def test_only_forced_tokens_need_no_model() -> None:
    """A decoder over a one-way table asks the network for nothing but the head."""
    engine = Engine(tiny_network(0, PADDED), OneWay([65, 66, 67]), [1])
    assert dict(engine.decode([Request([2]), Request([3])], 3)) == {
        0: [65, 66, 67],
        1: [65, 66, 67],
    }
    assert engine.forwards == 1


class OneWay:
    """A table of one text: the state is the number of tokens read."""

    start = 0

    def __init__(self, tokens: list[int]) -> None:
        self.tokens = tokens

    def allowed(self, state: int) -> Any:
        return np.array(self.tokens[state : state + 1], dtype=np.int32)

    def next(self, state: int, token: int) -> int:
        return state + 1

    def keeps(self, state: int, token: int) -> bool:
        return True

    def is_final(self, state: int) -> bool:
        return state == len(self.tokens)

    def distance(self, state: int) -> int:
        return len(self.tokens) - state


def test_limit_below_the_least_is_refused() -> None:
    table = TABLES[4]
    least = table.distance(table.start)
    with pytest.raises(CmmError, match=f"at least {least} tokens"):
        decode_slowly(slow_logits(None), table, [1], least - 1)
    with pytest.raises(CmmError, match=f"at least {least} tokens"):
        list(Engine(tiny_network(0, PADDED), table, []).decode([Request([1])], least - 1))


def test_ties_go_to_the_lowest_id() -> None:
    table = TABLES[4]
    allowed = table.allowed(table.start)
    flat = np.zeros(len(allowed), dtype=np.float32)
    assert choose_token(table, table.start, flat, 256).token == min(allowed)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_broken_logits_are_an_error(bad: float) -> None:
    table = TABLES[4]
    logits = np.zeros(len(table.allowed(table.start)), dtype=np.float32)
    logits[-1] = bad
    with pytest.raises(CmmError, match="not a finite number"):
        choose_token(table, table.start, logits, 256)


@pytest.mark.parametrize(
    ("kind", "packs"),
    [("Qwen3Config", True), ("LlamaConfig", True), ("Gemma3TextConfig", False)],
)
def test_which_networks_pack(kind: str, packs: bool) -> None:
    import transformers

    assert can_pack(getattr(transformers, kind)()) is packs


class Guesses:
    """Drafts as far as `known` says, then anything that the table allows."""

    def __init__(self, table: Any, known: list[list[int]], dice: random.Random) -> None:
        self.table, self.known, self.dice = table, known, dice

    def propose(self, clues: Any, answer: list[int], state: Any, most: int, least: float) -> Any:
        right = [known for known in self.known if known[: len(answer)] == answer]
        copied = right[0][len(answer) :][: self.dice.randrange(1, 9)] if right else []
        tokens: list[int] = []
        while len(tokens) < most and len(allowed := self.table.allowed(state)):
            known = len(tokens) < len(copied) and self.dice.random() < 0.9
            token = copied[len(tokens)] if known else int(self.dice.choice(allowed))
            if token not in allowed:
                break
            tokens.append(token)
            state = self.table.next(state, token)
            if len(tokens) > len(copied) + 2:
                break
        return [Step("forced", tokens)] if tokens else []

    def learn(self, draft: Any, right: int) -> None: ...

    def remember(self, answer: list[int]) -> None: ...


@pytest.mark.parametrize("seed", range(tries(15)))
def test_drafts_change_nothing(seed: int) -> None:
    """Right ones, wrong ones and half right ones, in batches of any size, up to the limit."""
    dice = random.Random(seed)
    network, table, head, requests, limit, slow = scene(seed, dice)
    guesses: Any = Guesses(table, list(slow.values()), dice)
    engine = Engine(network, table, head, rows=dice.choice([1, 2, 11, 32]), drafter=guesses)
    assert dict(engine.decode(requests, limit)) == slow


def test_right_drafts_save_passes() -> None:
    """A whole call that was guessed right costs one pass."""
    network, table = tiny_network(3, PADDED), TABLES[4]
    answer = decode_slowly(slow_logits(network), table, [1, 2], 60)
    guesses: Any = Guesses(table, [answer], random.Random(0))
    guesses.propose = lambda clues, written, state, most, least: [
        Step("forced", answer[len(written) :])
    ]
    engine = Engine(network, table, [1], drafter=guesses)
    assert dict(engine.decode([Request([2], read_clues("x"))], 60)) == {0: answer}
    assert engine.forwards == 2  # with that of the head


def test_requests_are_read_as_rows_become_free() -> None:
    """A stream of requests is not held in memory."""
    asked = []

    def requests() -> Iterator[Request]:
        for number in range(9):
            asked.append(number)
            yield Request([number])

    engine = Engine(tiny_network(1, PADDED), TABLES[4], [1, 2, 3], rows=2)
    answers = engine.decode(requests(), 40)
    next(answers)
    assert len(asked) <= 3
    assert len(list(answers)) == 8
    assert len(engine._pack) < 3 + 2 * 41 + 257  # head, two rows, room left empty


def test_long_prompts_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same answer, without a mask as large as the square of the prompt."""
    network, table = tiny_network(2, PADDED), TABLES[4]
    prompts = [[7] * 100, [8] * 3]
    slow = [decode_slowly(slow_logits(network), table, [1, *prompt], 60) for prompt in prompts]
    monkeypatch.setattr("cmm.runtime.engine.PIECE", 16)
    engine = Engine(network, table, [1], drafter=Guesses(table, slow, random.Random(0)))  # type: ignore[arg-type]
    fast = dict(engine.decode([Request(prompt, read_clues("x")) for prompt in prompts], 60))
    assert [fast[0], fast[1]] == slow


@pytest.mark.parametrize("kind", ["Qwen3", "Qwen2", "Llama"])
def test_rows_attend_as_the_mask_says(kind: str) -> None:
    """Chunks so long that attention goes row by row, twice, with tokens taken back between."""
    network, table = tiny_network(5, PADDED, kind), TABLES[4]
    prompts = [[(7 * i + k) % 256 for i in range(40 + k)] for k in range(5)]
    head = list(range(30, 60))
    slow = [decode_slowly(slow_logits(network), table, [*head, *prompt], 60) for prompt in prompts]
    guesses: Any = Guesses(table, slow, random.Random(1))
    engine = Engine(network, table, head, drafter=guesses)
    fast = dict(engine.decode([Request(prompt, read_clues("x")) for prompt in prompts], 60))
    assert [fast[index] for index in range(5)] == slow
