"""Sets of numbers, by their constraints, and the decimal texts that spell them.

Exact arithmetic throughout: bounds and steps are fractions, texts are compared digit by digit,
so integers of any size and any number of decimals are right.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from math import lcm

from cmm.grammar.content import Content
from cmm.grammar.errors import Unsupported
from cmm.grammar.machine import crawl

MOST_EXCLUDED = 256  # numbers, with each of which every digit is compared
MOST_REMAINDERS = 4096  # states that a multipleOf may take


@dataclass(frozen=True)
class Numbers:
    """The numbers that meet all of some constraints.

    `integral` is True for integers only, False for the others only; `steps` are what a number
    must be a multiple of, `no_steps` what it must not be; bounds are (value, exclusive).
    """

    integral: bool | None = None
    low: tuple[Fraction, bool] | None = None
    high: tuple[Fraction, bool] | None = None
    steps: frozenset[Fraction] = frozenset()
    no_steps: frozenset[Fraction] = frozenset()
    members: frozenset[Fraction] | None = None
    excluded: frozenset[Fraction] = frozenset()

    def holds(self, value: Fraction) -> bool:
        """Is the number in the set?

        >>> Numbers(low=(Fraction(2), True)).holds(Fraction(2))
        False
        """
        return (
            (self.integral is None or self.integral == (value.denominator == 1))
            and (self.low is None or value > self.low[0] or (value, False) == self.low)
            and (self.high is None or value < self.high[0] or (value, False) == self.high)
            and all((value / step).denominator == 1 for step in self.steps)
            and all((value / step).denominator != 1 for step in self.no_steps)
            and (self.members is None or value in self.members)
            and value not in self.excluded
        )

    def __and__(self, other: Numbers) -> Numbers | None:
        """The numbers of both, None where there are surely none."""
        if None not in (self.integral, other.integral) and self.integral != other.integral:
            return None
        known = [m for m in (self.members, other.members) if m is not None]
        both = Numbers(
            integral=other.integral if self.integral is None else self.integral,
            low=_tighter(self.low, other.low, 1),
            high=_tighter(self.high, other.high, -1),
            steps=self.steps | other.steps,
            no_steps=self.no_steps | other.no_steps,
            members=frozenset.intersection(*known) if known else None,
            excluded=self.excluded | other.excluded,
        )
        if both.members is not None:
            kept = frozenset(v for v in both.members if replace(both, members=None).holds(v))
            return Numbers(members=kept) if kept else None
        if both.low and both.high:
            (low, open_low), (high, open_high) = both.low, both.high
            if low > high or (low == high and (open_low or open_high)):
                return None
        return both

    def __or__(self, other: Numbers) -> Numbers | None:
        """The numbers of either, if both are listed."""
        if self.members is None or other.members is None:
            return None
        return Numbers(members=self.members | other.members)

    def __invert__(self) -> Iterator[Numbers]:
        """Sets that together are all other numbers."""
        if self.integral is not None:
            yield Numbers(integral=not self.integral)
        if self.low:
            yield Numbers(high=(self.low[0], not self.low[1]))
        if self.high:
            yield Numbers(low=(self.high[0], not self.high[1]))
        yield from (Numbers(no_steps=frozenset({step})) for step in sorted(self.steps))
        yield from (Numbers(steps=frozenset({step})) for step in sorted(self.no_steps))
        if self.members is not None:
            yield Numbers(excluded=self.members)
        if self.excluded:
            yield Numbers(members=self.excluded)


def _tighter(
    one: tuple[Fraction, bool] | None, other: tuple[Fraction, bool] | None, sign: int
) -> tuple[Fraction, bool] | None:
    bounds = [bound for bound in (one, other) if bound is not None]
    return max(bounds, key=lambda b: (sign * b[0], b[1])) if bounds else None


def decimals(numbers: Numbers) -> Content:
    """The plain decimal texts (no exponent) of a set without members.

    >>> half = decimals(Numbers(low=(Fraction(-1), False), high=(Fraction(5), False),
    ...     steps=frozenset({Fraction(1, 2)})))
    >>> [half.accepts(t) for t in ("2.5", "-1", "-1.5", "0.25", "5.0", "5.50", "05")]
    [True, True, False, False, True, False, False]

    Integers have no decimal point: before draft 6 of JSON Schema 1.0 was none, and it is not how
    they are written. A state is what the digits read so far decide: how they compare with each
    bound, and their remainder by the steps.
    """
    reader = _Reader(numbers)
    return Content(*crawl(_START, reader.follow, reader.is_final))


# Phases of a number's text; a state is (phase, negative, digits so far, comparisons, remainder,
# whether any digit is not zero, whether any decimal is not zero).
_BEGIN, _SIGN, _ZERO, _WHOLE, _POINT, _DECIMALS = range(6)
_State = tuple[int, bool, int, tuple[int, ...], int, bool, bool]
BETWEEN = -1  # the remainder of what has more decimals than any multiple
_START: _State = (_BEGIN, False, 0, (), 0, False, False)


class _Reader:
    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        if len(numbers.excluded) > MOST_EXCLUDED:
            raise Unsupported(f"more than {MOST_EXCLUDED} numbers left out")
        values = [bound[0] for bound in (numbers.low, numbers.high) if bound]
        self.values = [*values, *sorted(numbers.excluded)]
        self.digits = [_digits(abs(value)) for value in self.values]
        steps = [*numbers.steps, *numbers.no_steps]
        self.scale = 10 ** max((_decimals_of(step) for step in steps), default=0)
        self.modulus = lcm(*(int(step * self.scale) for step in steps)) if steps else 1
        if self.modulus > MOST_REMAINDERS:
            raise Unsupported(f"multipleOf needs {self.modulus} states here")
        self.places = len(str(self.scale)) - 1
        self.most_whole = max((len(whole) for whole, _ in self.digits), default=0) + 1
        self.most_decimals = max([self.places, *(len(f) for _, f in self.digits)]) + 1

    def follow(self, state: _State) -> Iterator[tuple[int, int, _State]]:
        phase, negative = state[:2]
        if phase == _BEGIN:
            yield ord("-"), ord("-"), (_SIGN, True, *state[2:])
        if phase in (_ZERO, _WHOLE) and not self.numbers.integral:
            yield ord("."), ord("."), (_POINT, negative, 0, self._whole_done(state), *state[4:])
        if phase != _ZERO:
            for digit in range(10):
                yield ord("0") + digit, ord("0") + digit, self._read(state, digit)

    def _read(self, state: _State, digit: int) -> _State:
        phase, negative, count, compared, rest, nonzero, fraction = state
        nonzero = nonzero or digit > 0
        if phase in (_POINT, _DECIMALS):
            compared = tuple(
                _compare(c, digit, decimal, count)
                for c, (_, decimal) in zip(compared, self.digits, strict=True)
            )
            if count < self.places:
                rest = (rest * 10 + digit) % self.modulus
            elif digit:
                rest = BETWEEN
            count = min(count + 1, self.most_decimals)
            return _DECIMALS, negative, count, compared, rest, nonzero, fraction or digit > 0
        compared = tuple(
            _compare(c, digit, whole, count) if count < len(whole) else c
            for c, (whole, _) in zip(compared or (0,) * len(self.digits), self.digits, strict=True)
        )
        phase = _ZERO if phase in (_BEGIN, _SIGN) and digit == 0 else _WHOLE
        count = min(count + 1, self.most_whole)
        return phase, negative, count, compared, (rest * 10 + digit) % self.modulus, nonzero, False

    def _whole_done(self, state: _State) -> tuple[int, ...]:
        """The comparisons once the number of whole digits is known."""
        _, _, count, compared, *_ = state
        return tuple(
            (count > len(whole)) - (count < len(whole)) or c
            for c, (whole, _) in zip(compared, self.digits, strict=True)
        )

    def is_final(self, state: _State) -> bool:
        phase, negative, count, compared, rest, nonzero, fraction = state
        if phase not in (_ZERO, _WHOLE, _DECIMALS):
            return False
        places = count if phase == _DECIMALS else 0
        if phase != _DECIMALS:
            compared = self._whole_done(state)
        below = negative and nonzero
        against = [
            self._against(value, c, decimal[places:], below)
            for value, c, (_, decimal) in zip(self.values, compared, self.digits, strict=True)
        ]
        return self._in_bounds(against) and self._in_steps(rest, places, fraction)

    def _against(self, value: Fraction, compared: int, left: str, below: bool) -> int:
        """-1, 0 or 1: the number read against a value."""
        if compared == 0 and left.strip("0"):
            compared = -1
        if value >= 0:
            return -1 if below else compared
        return -compared if below else 1

    def _in_bounds(self, against: list[int]) -> bool:
        numbers, found = self.numbers, iter(against)
        if numbers.low and next(found) < numbers.low[1]:
            return False
        if numbers.high and next(found) > -numbers.high[1]:
            return False
        return 0 not in found

    def _in_steps(self, rest: int, places: int, fraction: bool) -> bool:
        numbers = self.numbers
        if numbers.integral is not None and numbers.integral == fraction:
            return False
        scaled = rest * 10 ** max(self.places - places, 0)

        def hit(step: Fraction) -> bool:
            return rest != BETWEEN and scaled % int(step * self.scale) == 0

        return all(map(hit, numbers.steps)) and not any(map(hit, numbers.no_steps))


def _compare(known: int, digit: int, digits: str, place: int) -> int:
    """The comparison after one more digit: the first that differs decides."""
    other = int(digits[place]) if place < len(digits) else 0
    return known or (digit > other) - (digit < other)


def _digits(value: Fraction) -> tuple[str, str]:
    """The digits before and after the point of a value that a decimal can write."""
    places = _decimals_of(value)
    text = str(int(value * 10**places)).zfill(places + 1)
    return text[: len(text) - places], text[len(text) - places :]


def _decimals_of(step: Fraction) -> int:
    places = 0
    while (step * 10**places).denominator != 1:
        places += 1
    return places
