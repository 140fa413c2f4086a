"""Dataclasses of arrays that nobody can write to."""

from __future__ import annotations

from dataclasses import fields

import numpy as np


class FrozenArrays:
    """A base for frozen dataclasses: `frozen` alone does not keep anyone from `x.table[0] = 9`.

    Compared by identity, since == of arrays is an array.
    """

    def __post_init__(self) -> None:
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
