"""What observers are told, and that nothing else changes by it."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from runtime_doubles import tiny_network
from test_decode import PADDED, TABLES, Guesses, scene

from cmm.runtime.engine import Engine, Request
from cmm.runtime.observe import Decision, Observer


class Notes(Observer):
    """Keeps all that it is told."""

    def __init__(self, all_logits: bool) -> None:
        self.all_logits = all_logits
        self.decisions: dict[int, list[Decision]] = defaultdict(list)
        self.written: dict[int, list[list[int]]] = defaultdict(list)

    def decided(self, number: int, decision: Decision) -> None:
        self.decisions[number].append(decision)

    def wrote(self, number: int, answer: Sequence[int]) -> None:
        self.written[number].append(list(answer))


@pytest.mark.parametrize("all_logits", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_observers_see_every_decision_and_change_none(seed: int, all_logits: bool) -> None:
    dice = random.Random(seed)
    network, table, head, requests, limit, unwatched = scene(seed, dice)
    guesses: Any = Guesses(table, list(unwatched.values()), dice)
    notes, engine = Notes(all_logits), Engine(network, table, head, drafter=guesses)
    engine.watch(notes)
    assert dict(engine.decode(requests, limit)) == unwatched
    for number, answer in unwatched.items():
        written = notes.written[number]
        assert written[-1] == answer
        assert all(later[: len(one)] == one for one, later in pairwise(written))
        choices = {d.place: d for d in notes.decisions[number]}
        state = table.start
        for place, token in enumerate(answer):
            allowed = table.allowed(state)
            if place in choices:
                made = choices[place]
                assert (made.token, made.allowed) == (token, len(allowed))
                assert made.margin >= 0
                assert (made.free is not None) == all_logits
            else:
                assert len(allowed) == 1
            state = table.next(state, token)
    assert any(d.drafted for some in notes.decisions.values() for d in some)


def test_what_the_model_says_without_the_table() -> None:
    """It is the largest of all logits, computed once more from nothing."""
    import torch

    network, table = tiny_network(3, PADDED), TABLES[2]
    notes, engine = Notes(True), Engine(network, table, [1, 2])
    engine.watch(notes)
    [(_, answer)] = engine.decode([Request([3, 4])], 60)
    for made in notes.decisions[0]:
        ids = torch.tensor([[1, 2, 3, 4, *answer[: made.place]]])
        with torch.inference_mode():
            logits = network(ids, use_cache=False).logits[0, -1]
        assert float(logits.max() - logits[made.free]) < 1e-3
