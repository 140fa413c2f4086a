"""Sets of JSON values, type by type: what `and`, `or` and `not` of schemas are worked out on.

The types do not overlap, so each operation is one on numbers, one on strings and so on. Within a
type a set is a union of conjunctions (`Numbers`, `Strings`, `Arrays`, `Objects`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from itertools import product
from operator import or_
from typing import Any, TypeVar

from cmm.grammar.arrays import Arrays
from cmm.grammar.errors import Unsupported
from cmm.grammar.numbers import Numbers
from cmm.grammar.objects import Objects
from cmm.grammar.strings import Strings

Piece = TypeVar("Piece", Numbers, Strings, Arrays, Objects)
MOST_PIECES = 512


@dataclass(frozen=True)
class Values:
    """A set of JSON values; a type of which there is none has no pieces.

    >>> text, anything = Values(strings=(Strings(),)), ~Values()
    >>> (anything & text) == text, (~text).strings
    (True, ())
    """

    null: bool = False
    booleans: frozenset[bool] = frozenset()
    numbers: tuple[Numbers, ...] = ()
    strings: tuple[Strings, ...] = ()
    arrays: tuple[Arrays, ...] = ()
    objects: tuple[Objects, ...] = ()

    def __and__(self, other: Values) -> Values:
        return Values(
            null=self.null and other.null,
            booleans=self.booleans & other.booleans,
            numbers=_both(self.numbers, other.numbers),
            strings=_both(self.strings, other.strings),
            arrays=_both(self.arrays, other.arrays),
            objects=_both(self.objects, other.objects),
        )

    def __or__(self, other: Values) -> Values:
        return Values(
            null=self.null or other.null,
            booleans=self.booleans | other.booleans,
            numbers=_either(self.numbers, other.numbers, or_),
            strings=_either(self.strings, other.strings, or_),
            arrays=_either(self.arrays, other.arrays),
            objects=_either(self.objects, other.objects),
        )

    def __invert__(self) -> Values:
        return Values(
            null=not self.null,
            booleans=frozenset({True, False}) - self.booleans,
            numbers=_others(self.numbers, Numbers()),
            strings=_others(self.strings, Strings()),
            arrays=_others(self.arrays, Arrays()),
            objects=_others(self.objects, Objects()),
        )

    @property
    def is_empty(self) -> bool:
        """Is there plainly no value?"""
        return not any(getattr(self, item.name) for item in fields(self))


_TYPES: dict[str, dict[str, Any]] = {
    "null": {"null": True},
    "boolean": {"booleans": frozenset({True, False})},
    "number": {"numbers": (Numbers(),)},
    "integer": {"numbers": (Numbers(integral=True),)},
    "string": {"strings": (Strings(),)},
    "array": {"arrays": (Arrays(),)},
    "object": {"objects": (Objects(),)},
}


def of_type(name: str) -> Values:
    """All values of one type.

    >>> of_type("null")
    Values(null=True, booleans=frozenset(), numbers=(), strings=(), arrays=(), objects=())
    """
    return Values(**_TYPES[name])


def only(**pieces: Any) -> Values:
    """All values, but of the named types only these.

    >>> only(strings=(Strings(least=1),)).null
    True
    """
    return replace(ANYTHING, **pieces)


def _both(one: tuple[Piece, ...], other: tuple[Piece, ...]) -> tuple[Piece, ...]:
    pairs = (a if a == b else a & b for a, b in product(one, other))
    return _distinct(piece for piece in pairs if piece is not None)


def _either(
    one: tuple[Piece, ...],
    other: tuple[Piece, ...],
    join: Callable[[Piece, Piece], Piece | None] = lambda one, other: None,
) -> tuple[Piece, ...]:
    """The pieces of both; what `join` makes one of, as of constants, is one."""
    pieces = one + other
    for piece in pieces:
        if piece == type(piece)():
            return (piece,)  # everything of the type
    found: list[Piece] = list(one)
    for piece in other:
        both = ((i, join(known, piece)) for i, known in enumerate(found))
        place, joined = next(((i, made) for i, made in both if made is not None), (None, piece))
        if place is None:
            found.append(joined)
        else:
            found[place] = joined
    return _distinct(found)


def _others(pieces: tuple[Piece, ...], everything: Piece) -> tuple[Piece, ...]:
    left: tuple[Piece, ...] = (everything,)
    for piece in pieces:
        left = _both(left, tuple(~piece))
    return left


def _distinct(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    found = tuple(dict.fromkeys(pieces))
    if len(found) > MOST_PIECES:
        raise Unsupported(f"needs more than {MOST_PIECES} cases of one type")
    return found


NOTHING = Values()
ANYTHING = ~NOTHING
