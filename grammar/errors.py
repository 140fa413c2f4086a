"""What can be wrong with an input, said so that its author can mend it."""

from __future__ import annotations

from collections.abc import Callable, Iterable


class CmmError(Exception):
    """An error of the input, not of the program: where it is, what it is, what to do.

    >>> str(InvalidInput("needs a name", file="f.json", place="/0", advice="add \\"name\\""))
    'f.json @ /0: needs a name (add "name")'

    `place` is a JSON pointer ("" is the whole document) or "line 3 column 7". The commands
    print the text and exit with 2.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        place: str | None = None,
        advice: str | None = None,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.file = file
        self.place = place
        self.advice = advice

    def __str__(self) -> str:
        where = " @ ".join(part for part in (self.file, self.place) if part)
        advice = f" ({self.advice})" if self.advice else ""
        return f"{where}: {self.problem}{advice}" if where else self.problem + advice

    def located(self, *, file: str | None = None, below: str = "") -> CmmError:
        """The same error with its file, and its place moved below a pointer, filled in.

        >>> str(Unsupported("not yet", place="/a").located(file="f.json", below="/0"))
        'f.json @ /0/a: not yet'
        """
        place = below + (self.place or "")
        return type(self)(
            self.problem, file=self.file or file, place=place or None, advice=self.advice
        )

    def moved(self, place_of: Callable[[str], str]) -> CmmError:
        """The same error at the place that its own one stands for in the file."""
        place = place_of(self.place or "")
        return type(self)(self.problem, file=self.file, place=place or None, advice=self.advice)


class InvalidInput(CmmError):
    """The input says something that no reading makes right."""


class Unsupported(CmmError):
    """The input is right, but this program cannot enforce it, and says so rather than drop it."""


class StateBudgetExceeded(Unsupported):
    """The automaton would have more states than it may."""


class RowBudgetExceeded(StateBudgetExceeded):
    """The rows of its states would hold more tokens than they may."""


def pointer(*parts: str | int) -> str:
    """The JSON pointer (RFC 6901) of a path of keys and positions.

    >>> pointer("properties", "a/b", 0)
    '/properties/a~1b/0'
    """
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def listed(names: Iterable[str], most: int = 8) -> str:
    """Some names for a message, quoted, with a count of what was left out.

    >>> listed(["a", "b", "c"], most=2)
    '"a", "b" and 1 more'
    """
    names = list(names)
    shown = ", ".join(f'"{name}"' for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
