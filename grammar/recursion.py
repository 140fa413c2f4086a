"""Deep recursion: schemas nest deeper than Python lets functions call themselves by default."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from cmm.grammar.errors import Unsupported

# Each level of a schema takes up to ten calls; Python 3.10 has room on its stack for about 20,000.
DEEPEST = 8_000


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Within it functions may call themselves deeper; Unsupported where that is not enough.

    >>> def depth(n):
    ...     return depth(n - 1) if n else "there"
    >>> with deep_recursion():
    ...     depth(2_000)
    'there'
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEPEST))
    try:
        yield
    except RecursionError:
        raise Unsupported("is nested too deeply") from None
    finally:
        sys.setrecursionlimit(before)
