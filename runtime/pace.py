"""What a forward pass costs here, and how much a longer one."""

from __future__ import annotations

import math

UNMEASURED = 48.0  # tokens that cost as much as an empty pass, until two kinds of pass were timed
FADING = 0.9  # weight of what was measured one pass earlier


class Pace:
    """Seconds of a pass as `base + tokens * each`, fitted to the passes so far.

    >>> pace = Pace()
    >>> for tokens in (10, 100, 10, 100):
    ...     pace.measured(tokens, 0.1 + 0.002 * tokens)
    >>> pace.worth  # 50 tokens cost as much as a pass; rounded to a power of two
    64.0
    """

    def __init__(self) -> None:
        self._count = self._tokens = self._seconds = self._squares = self._products = 0.0

    def measured(self, tokens: float, seconds: float) -> None:
        """Take one more pass into account."""
        self._count = self._count * FADING + 1
        self._tokens = self._tokens * FADING + tokens
        self._seconds = self._seconds * FADING + seconds
        self._squares = self._squares * FADING + tokens * tokens
        self._products = self._products * FADING + tokens * seconds

    @property
    def worth(self) -> float:
        """How many tokens more cost as much as one pass more: a power of two from 4 to 256."""
        spread = self._count * self._squares - self._tokens**2
        if spread <= 1e-6 * self._squares:
            return UNMEASURED
        each = (self._count * self._products - self._tokens * self._seconds) / spread
        base = (self._seconds - each * self._tokens) / self._count
        ratio = base / each if each > 0 else 256.0
        return float(2 ** round(math.log2(min(max(ratio, 4.0), 256.0))))
