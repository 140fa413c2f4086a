"""Every family of models: what is cached is what would be computed anew, whatever came before."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from runtime_doubles import FAMILIES, one_thread, tiny_network, tiny_tokenizer  # noqa: F401

from cmm.compiler import compile_functions, load_vocabulary
from cmm.compiler.utf8 import control_token
from cmm.compiler.vocabulary import PackedTokens
from cmm.grammar.errors import CmmError
from cmm.grammar.functions import parse_functions
from cmm.runtime.draft import Step, read_clues
from cmm.runtime.engine import Engine, Request
from cmm.runtime.model import check_width
from cmm.runtime.prefix import PrefixFile
from cmm.runtime.prompt_config import config_for
from cmm.runtime.slow import decode_slowly

pytestmark = pytest.mark.usefixtures("one_thread")
VOCABULARY = load_vocabulary(tiny_tokenizer())
ROWS = VOCABULARY.size + 7
Ids = tuple[int, ...]


@cache
def table() -> Any:
    functions = parse_functions([{"name": "f", "parameters": {"s": "string"}}])
    return compile_functions(functions, VOCABULARY)


LIMIT = 46  # tokens of an answer, half of which are free
HEAD, LONGER_HEAD, OTHER_HEAD = (1, 2, 3), (1, 2, 3, 4, 5, 6, 7, 8, 9), (30, 31)
SHORT, LONG, OTHER = (11, 12), (11, 12, *range(40, 52)), (90, 91, 92)


@cache
def network_of(family: str) -> Any:
    return tiny_network(4, ROWS, family)


@cache
def uncached(family: str, head: Ids, prompt: Ids) -> list[int]:
    """The answer of the slow twin: the whole sequence is computed for each token."""

    def logits_of(ids: Sequence[int]) -> Any:
        with torch.inference_mode():
            found = network_of(family)(torch.tensor([list(ids)]), use_cache=False)
        return found.logits[0, -1].numpy()

    return decode_slowly(logits_of, table(), [*head, *prompt], LIMIT)


class Way(NamedTuple):
    """How the ids change from one decode to the next, and what else may make a difference."""

    decodes: list[tuple[Ids, list[Ids]]]  # (head, prompts); a new head is a new engine
    rows: int = 1
    drafts: bool = False
    piece: int = 1024
    on_disk: bool = False


WAYS = {
    "token by token": Way([(HEAD, [SHORT])]),
    "again": Way([(HEAD, [LONG]), (HEAD, [LONG])]),
    "longer": Way([(HEAD, [SHORT]), (HEAD, [LONG])]),
    "shorter": Way([(HEAD, [LONG]), (HEAD, [SHORT])]),
    "another prompt": Way([(HEAD, [SHORT]), (HEAD, [OTHER]), (HEAD, [SHORT])]),
    "another head": Way([(HEAD, [SHORT]), (OTHER_HEAD, [SHORT]), (HEAD, [SHORT])]),
    "a longer head": Way([(HEAD, [SHORT]), (LONGER_HEAD, [SHORT])]),
    "no head": Way([((), [SHORT])]),
    "a head from the disk": Way([(HEAD, [SHORT])] * 2 + [(LONGER_HEAD, [SHORT])], on_disk=True),
    "batch": Way([(HEAD, [SHORT, LONG, OTHER, SHORT])], rows=32),
    "two at a time": Way([(HEAD, [LONG, SHORT, OTHER])], rows=2),
    "drafts": Way([(HEAD, [SHORT]), (HEAD, [LONG])], drafts=True),
    "drafts in a batch": Way([(HEAD, [SHORT, LONG, OTHER])], rows=32, drafts=True),
    "a prompt in pieces": Way([(HEAD, [LONG, SHORT])], rows=2, piece=8),
}


class HalfRight:
    """Drafts of what comes, most of them with a wrong token somewhere."""

    def __init__(self, answers: list[list[int]]) -> None:
        self.answers, self.dice = answers, random.Random(0)

    def propose(self, clues: Any, answer: list[int], state: Any, most: int, least: float) -> Any:
        known = next((a for a in self.answers if a[: len(answer)] == answer), answer)
        tokens: list[int] = []
        for token in known[len(answer) : len(answer) + min(most, 6)]:
            wrong = self.dice.random() < 0.2
            tokens.append(self.dice.choice(table().allowed(state)) if wrong else token)
            if tokens[-1] != token:
                break
            state = table().next(state, token)
        return [Step("forced", tokens)] if tokens else []

    def learn(self, draft: Any, right: int) -> None: ...

    def remember(self, answer: list[int]) -> None: ...


@pytest.mark.parametrize("family", FAMILIES)
def test_answers_depend_on_what_comes_before(family: str) -> None:
    """Else nothing below could tell a wrong cache from a right one."""
    pairs = [(head, prompt) for head in (HEAD, OTHER_HEAD) for prompt in (SHORT, LONG, OTHER)]
    assert len({tuple(uncached(family, *pair)) for pair in pairs}) >= len(pairs) - 1


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("family", FAMILIES)
def test_cached_equals_uncached(family: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    way = WAYS[name]
    monkeypatch.setattr("cmm.runtime.engine.PIECE", way.piece)
    network, engine, before = network_of(family), None, None
    for head, prompts in way.decodes:
        expected = [uncached(family, head, prompt) for prompt in prompts]
        if engine is None or head != before or way.on_disk:
            drafter: Any = HalfRight(expected) if way.drafts else None
            file = PrefixFile(f"{family} {name}", network.dtype, head) if way.on_disk else None
            engine = Engine(network, table(), head, rows=way.rows, drafter=drafter, prefix=file)
            before = head
        requests = [Request(prompt, read_clues("x")) for prompt in prompts]
        found = dict(engine.decode(requests, LIMIT))
        assert [found[i] for i in range(len(prompts))] == expected


# The numbers of the real models: tokens that text is made of, with the added ones, rows of logits.
# Gemma's tokenizer has a token for images that its text models have no row for.
REAL = [
    ("Qwen/Qwen3-0.6B", "qwen", 151_643, 151_669, 151_936),
    ("Qwen/Qwen2.5-0.5B-Instruct", "qwen", 151_643, 151_665, 151_936),
    ("Qwen/Qwen2.5-Coder-0.5B-Instruct", "qwen", 151_643, 151_665, 151_936),
    ("Qwen/Qwen3.5-0.8B", "qwen-xml", 248_044, 248_077, 248_320),
    ("google/gemma-3-270m-it", "gemma", 262_144, 262_145, 262_144),
    ("HuggingFaceTB/SmolLM2-135M-Instruct", "smollm2", 49_152, 49_152, 49_152),
    ("meta-llama/Llama-3.2-1B-Instruct", "llama", 128_000, 128_256, 128_256),
]


def of_size(base: int, size: int) -> Any:
    """A vocabulary, as far as its numbers go."""
    added = [control_token(f"<added{i}>") for i in range(size - base)]
    return SimpleNamespace(size=size, tokens=PackedTokens.of([b"x"] * base + added))


def of_rows(rows: int) -> Any:
    weight = SimpleNamespace(shape=(rows, 1))
    return SimpleNamespace(get_output_embeddings=lambda: SimpleNamespace(weight=weight))


@pytest.mark.parametrize(("model", "configuration", "base", "size", "rows"), REAL)
def test_the_numbers_of_each_family_fit(
    model: str, configuration: str, base: int, size: int, rows: int
) -> None:
    assert config_for(model).name == configuration
    vocabulary = of_size(base, size)
    check_width(of_rows(rows), vocabulary, model, "<added>")
    with pytest.raises(CmmError, match=f"{base - 1} rows of logits for {size} tokens"):
        check_width(of_rows(base - 1), vocabulary, model, "<added>")
    last = f"{{{{ '<added{size - base - 1}>' }}}}"
    if rows < size:
        with pytest.raises(CmmError, match="belongs to another model"):
            check_width(of_rows(rows), vocabulary, model, last)


def test_padded_rows_never_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither does a control token: the highest logit of all is no token that may be said."""
    monkeypatch.setattr("cmm.runtime.engine.FEW", 2)
    engine = Engine(network_of("Qwen3"), table(), HEAD)
    state = table().start
    for token in b'{"name": "f", "arguments": {"s": "':
        state = table().next(state, VOCABULARY.trie.tokens_of(bytes([token])).tolist()[0])
    [token] = VOCABULARY.trie.tokens_of(b"k").tolist()
    for higher in ([ROWS - 1], [VOCABULARY.size - 1], [ROWS - 3, VOCABULARY.size - 2]):
        numbers = np.zeros(ROWS, np.float32)
        numbers[token], numbers[higher] = 5, 9
        assert engine._choose(state, numbers, 20).token == token
