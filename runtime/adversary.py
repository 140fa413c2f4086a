"""Logits that no model would compute: what a call must be valid under all the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmm.compiler import Vocabulary
from cmm.runtime.choose import Logits, StateId, Table

SURE = 100.0  # what a preferred token gets more than noise gives any

Numbers = Callable[[Table, StateId, random.Random], Logits]


class Adversary:
    """Kinds of logits for a vocabulary, each a number for every allowed token.

    `random`: any token; `constant`: all alike; `longest`: text without an end; `escapes`:
    backslashes; `digits`; `controls`: bytes that are no letters; `farthest`: whatever puts the end
    off; `nan` and `infinity`: those of a broken model.
    """

    def __init__(self, vocabulary: Vocabulary, seed: int = 0) -> None:
        # Slices of one long noise: 147,000 tokens are allowed inside a string, and a view costs
        # nothing. Twice as long, so that slices differ.
        size = 2 * vocabulary.size
        self._noise = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
        self.tokens = tokens = list(vocabulary.tokens)
        preferred: dict[str, Callable[[bytes], bool | float]] = {
            "longest": lambda token: 0.0 if b'"' in token else len(token) / 8,
            "escapes": lambda token: b"\\" in token,
            "digits": lambda token: token.isdigit(),
            "controls": lambda token: not token.isascii() or b"\x7f" in token,
        }
        self._scores = {
            kind: SURE * np.array([float(score(token)) for token in tokens], np.float32)
            for kind, score in preferred.items()
        }
        self.valid: tuple[str, ...] = ("random", "constant", "farthest", *self._scores)
        self.broken = ("nan", "infinity")

    def numbers(self, kind: str, table: Table, state: StateId, dice: random.Random) -> Logits:
        """The logits of the allowed tokens in one state."""
        allowed = table.allowed(state)
        noise = self._noise_of(len(allowed), dice)
        if kind == "random":
            return noise
        if kind == "constant":
            return np.zeros(len(allowed), np.float32)
        if kind == "farthest":
            return noise + np.float32(SURE) * table.distances_after(state).astype(np.float32)
        if kind in self._scores:
            found: Logits = noise + self._scores[kind][allowed]
            return found
        return spoilt(noise, np.nan if kind == "nan" else dice.choice([np.inf, -np.inf]), dice)

    def _noise_of(self, count: int, dice: random.Random) -> NDArray[np.float32]:
        start = dice.randrange(len(self._noise) - count + 1)
        return self._noise[start : start + count]


def spoilt(numbers: Logits, value: Any, dice: random.Random) -> Logits:
    """The numbers with one of them replaced."""
    changed = numbers.copy()
    changed[dice.randrange(len(changed))] = value
    return changed
