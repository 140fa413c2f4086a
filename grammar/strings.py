"""Sets of strings: finite ones as their values, others as automata with bounds on the length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cmm.grammar.content import ANY, Content, lengths, texts


@dataclass(frozen=True)
class Strings:
    """The strings of a content with `least` to `most` characters, or, if given, these values.

    Lengths are kept apart from the content so that a bound of ten thousand costs no states.
    """

    values: tuple[str, ...] | None = None
    content: Content = ANY
    least: int = 0
    most: int | None = None

    def holds(self, text: str) -> bool:
        """Is the string in the set?

        >>> Strings(least=2).holds("a"), Strings(values=("a",)).holds("a")
        (False, True)
        """
        if self.values is not None:
            return text in self.values
        fits = self.least <= len(text) and (self.most is None or len(text) <= self.most)
        return fits and self.content.accepts(text)

    def __and__(self, other: Strings) -> Strings | None:
        """The strings of both, None where there are none."""
        if self.values is None and other.values is not None:
            return other & self
        if self.values is not None:
            kept = tuple(filter(other.holds, self.values))
            return Strings(values=kept) if kept else None
        most = [bound for bound in (self.most, other.most) if bound is not None]
        both = Strings(
            content=self.content & other.content,
            least=max(self.least, other.least),
            most=min(most) if most else None,
        )
        return None if both.surely_empty() else both

    def __or__(self, other: Strings) -> Strings | None:
        """The strings of either, if both are listed.

        >>> (Strings(values=("a", "b")) | Strings(values=("b", "c"))).values
        ('a', 'b', 'c')
        """
        if self.values is None or other.values is None:
            return None
        return Strings(values=tuple(dict.fromkeys(self.values + other.values)))

    def surely_empty(self) -> bool:
        """Is it plain from the lengths alone that there is no string?"""
        if self.content.is_empty or (self.most is not None and self.least > self.most):
            return True
        shortest, longest = self.content.shortest()[0], self.content.longest()[0]
        return (self.most is not None and shortest > self.most) or (
            longest is not None and longest < self.least
        )

    def __invert__(self) -> Iterator[Strings]:
        """Sets that together are all other strings."""
        if self.values is not None:
            yield Strings(content=ANY - texts(self.values))
            return
        if self.content != ANY:
            yield Strings(content=~self.content)
        if self.least:
            yield Strings(most=self.least - 1)
        if self.most is not None:
            yield Strings(least=self.most + 1)

    def automaton(self) -> Content:
        """The whole set as one automaton, its lengths spelled out in states."""
        if self.values is not None:
            return texts(self.values)
        if (self.least, self.most) == (0, None):
            return self.content
        return self.content & lengths(self.least, self.most)
