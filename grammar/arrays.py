"""Sets of arrays, by what each position and the whole must meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cmm.grammar.errors import Unsupported
from cmm.grammar.expressions import FALSE, TRUE, Expression, all_of, not_


@dataclass(frozen=True)
class Contains:
    """How many items, least to most, from a position on, meet an expression."""

    item: Expression
    least: int = 1
    most: int | None = None
    start: int = 0


@dataclass(frozen=True)
class Arrays:
    """The arrays whose first items meet `prefix` one by one and all further ones `rest`."""

    prefix: tuple[Expression, ...] = ()
    rest: Expression = TRUE
    least: int = 0
    most: int | None = None
    contains: tuple[Contains, ...] = ()
    unique: bool = False

    def item(self, position: int) -> Expression:
        """What the item at a position must meet."""
        return self.prefix[position] if position < len(self.prefix) else self.rest

    def __and__(self, other: Arrays) -> Arrays | None:
        """The arrays of both, None where there are surely none.

        >>> Arrays(least=1) & Arrays(most=0) is None
        True
        """
        most = [bound for bound in (self.most, other.most) if bound is not None]
        places = range(max(len(self.prefix), len(other.prefix)))
        both = Arrays(
            prefix=tuple(all_of([self.item(i), other.item(i)]) for i in places),
            rest=all_of([self.rest, other.rest]),
            least=max(self.least, other.least),
            most=min(most) if most else None,
            contains=tuple(dict.fromkeys(self.contains + other.contains)),
            unique=self.unique or other.unique,
        )
        return None if both.most is not None and both.least > both.most else both

    def __invert__(self) -> Iterator[Arrays]:
        """Sets that together are all other arrays."""
        if self.least:
            yield Arrays(most=self.least - 1)
        if self.most is not None:
            yield Arrays(least=self.most + 1)
        for i, item in enumerate(self.prefix):
            if item != TRUE:
                yield Arrays(prefix=(*[TRUE] * i, not_(item)), least=i + 1)
        if self.rest == FALSE:
            yield Arrays(least=len(self.prefix) + 1)
        elif self.rest != TRUE:
            yield Arrays(contains=(Contains(not_(self.rest), start=len(self.prefix)),))
        for contains in self.contains:
            if contains.least:
                few = replace(contains, least=0, most=contains.least - 1)
                yield Arrays(contains=(few,))
            if contains.most is not None:
                many = replace(contains, least=contains.most + 1, most=None)
                yield Arrays(contains=(many,))
        if self.unique:
            raise Unsupported('"not" over uniqueItems')
