"""Expressions over schemas: what must hold of a value, before anything is worked out.

Expressions are plain values, so equal demands on a value are equal expressions. That is what
closes recursion: however deep a schema refers to itself, only finitely many expressions occur.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Raw:
    """The schema that stands at a JSON pointer of the document."""

    place: str


@dataclass(frozen=True)
class Value:
    """Exactly one JSON value, given as its text."""

    text: str


@dataclass(frozen=True)
class All:
    """All parts hold; without parts, everything does."""

    parts: frozenset[Expression]


@dataclass(frozen=True)
class Some:
    """One part holds at least; without parts, nothing does."""

    parts: frozenset[Expression]


@dataclass(frozen=True)
class Not:
    """The part does not hold."""

    part: Expression


Expression = Raw | Value | All | Some | Not

TRUE: Expression = All(frozenset())
FALSE: Expression = Some(frozenset())


def all_of(parts: Iterable[Expression]) -> Expression:
    """All of the parts, simplified.

    >>> all_of([Raw("/a"), TRUE, all_of([Raw("/a")])])
    Raw(place='/a')
    """
    flat: set[Expression] = set()
    for part in parts:
        flat |= part.parts if isinstance(part, All) else {part}
    if FALSE in flat:
        return FALSE
    return next(iter(flat)) if len(flat) == 1 else All(frozenset(flat))


def some_of(parts: Iterable[Expression]) -> Expression:
    """Some of the parts, simplified.

    >>> some_of([Raw("/a"), TRUE]) == TRUE
    True
    """
    flat: set[Expression] = set()
    for part in parts:
        flat |= part.parts if isinstance(part, Some) else {part}
    if TRUE in flat:
        return TRUE
    return next(iter(flat)) if len(flat) == 1 else Some(frozenset(flat))


def not_(part: Expression) -> Expression:
    """The opposite, simplified.

    >>> not_(not_(Raw("/a")))
    Raw(place='/a')
    """
    if isinstance(part, Not):
        return part.part
    if part in (TRUE, FALSE):
        return FALSE if part == TRUE else TRUE
    return Not(part)


def place_of(expression: Expression) -> str:
    """The place in the document that an expression is about, or the first of those.

    >>> place_of(all_of([Raw("/b"), not_(Raw("/a"))]))
    '/a'
    """
    match expression:
        case Raw(place):
            return place
        case All(parts) | Some(parts):
            return min(map(place_of, parts), default="")
        case Not(part):
            return place_of(part)
        case _:
            return ""
