"""Regular expressions as a small tree of frozen nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cmm.grammar.characters import Ranges


@dataclass(frozen=True)
class One:
    """One character of a set."""

    of: Ranges


@dataclass(frozen=True)
class Row:
    """One part after the other."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True)
class Either:
    """Any of the parts."""

    parts: tuple[Regex, ...]


@dataclass(frozen=True)
class Many:
    """A part `least` to `most` times; None is no bound."""

    part: Regex
    least: int
    most: int | None


@dataclass(frozen=True)
class Edge:
    r"""A place: "^" the start, "$" the end, "b" the edge of a word, "B" any other."""

    kind: str


@dataclass(frozen=True)
class Look:
    """Does (or does not) the part match ahead of here, or behind?"""

    part: Regex
    ahead: bool
    positive: bool


Regex: TypeAlias = One | Row | Either | Many | Edge | Look
