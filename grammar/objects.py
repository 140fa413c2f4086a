"""Sets of objects, by what each key and the whole must meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from cmm.grammar.content import ANY, Content, texts, union
from cmm.grammar.expressions import FALSE, TRUE, Expression, all_of, not_


@dataclass(frozen=True)
class KeyRules:
    """What one schema says of keys by `properties`, `patternProperties`, `additionalProperties`.

    `additional` holds for keys that are neither named nor match a pattern; None if the schema
    does not say.
    """

    names: frozenset[str] = frozenset()
    patterns: tuple[tuple[Content, Expression], ...] = ()
    additional: Expression | None = None

    def of_key(self, key: str) -> Expression:
        """What the value of a key that is not named must meet."""
        found = [expression for content, expression in self.patterns if content.accepts(key)]
        if found:
            return all_of(found)
        return TRUE if key in self.names or self.additional is None else self.additional


@dataclass(frozen=True)
class Objects:
    """The objects whose values meet `named` and `rules`, and whose keys are as demanded.

    `named` are the keys that schemas speak of by name: in the order of their `properties`, then
    those that are only required, in the order of that list; FALSE marks one that must
    be absent. `keys` are the texts that keys may be. Each of `exists` demands some key of a
    content, named or not, with a value of an expression.
    """

    named: tuple[tuple[str, Expression], ...] = ()
    rules: tuple[KeyRules, ...] = ()
    required: frozenset[str] = frozenset()
    least: int = 0
    most: int | None = None
    keys: Content = field(default=ANY)
    exists: tuple[tuple[Content, Expression], ...] = ()

    def of_key(self, key: str) -> Expression:
        """What the value of a key must meet."""
        if not self.keys.accepts(key):
            return FALSE
        expression = self._by_name.get(key)
        if expression is not None:
            return expression
        return all_of(rules.of_key(key) for rules in self.rules)

    @cached_property
    def _by_name(self) -> dict[str, Expression]:
        return dict(self.named)

    def described(self) -> list[str]:
        """The named keys that some `properties` speak of, in their order."""
        return [name for name, _ in self.named if any(name in r.names for r in self.rules)]

    def __and__(self, other: Objects) -> Objects | None:
        """The objects of both, None where there are surely none.

        >>> one = Objects(named=(("a", FALSE),))
        >>> one & Objects(required=frozenset({"a"})) is None
        True
        """
        names = dict.fromkeys([*self.described(), *other.described()])
        names |= dict.fromkeys(name for name, _ in self.named + other.named)
        names |= dict.fromkeys(sorted((self.required | other.required) - names.keys()))
        most = [bound for bound in (self.most, other.most) if bound is not None]
        both = Objects(
            named=tuple((n, all_of([self.of_key(n), other.of_key(n)])) for n in names),
            rules=tuple(dict.fromkeys(self.rules + other.rules)),
            required=self.required | other.required,
            least=max(self.least, other.least),
            most=min(most) if most else None,
            keys=self.keys & other.keys,
            exists=tuple(dict.fromkeys(self.exists + other.exists)),
        )
        return None if both.surely_empty() else both

    def surely_empty(self) -> bool:
        """Is it plain from the keys alone that there is no object?"""
        absent = {name for name, expression in self.named if expression == FALSE}
        if self.required & absent:
            return True
        return self.most is not None and max(self.least, len(self.required)) > self.most

    def __invert__(self) -> Iterator[Objects]:
        """Sets that together are all other objects: one for each demand that may be broken.

        In each set the demands before it are met: sets that do not overlap leave few cases where
        many are combined.
        """
        met: Objects | None = Objects()
        for broken, kept in self._demands():
            if met is None:
                return
            case = met & broken
            if case is not None:
                yield case
            met = met & kept
        if met is not None:
            others = [
                *self._key_demands(),
                *(o for rules in self.rules for o in _other_keys(rules)),
            ]
            yield from filter(None, (met & broken for broken in others))

    def _demands(self) -> Iterator[tuple[Objects, Objects]]:
        """What is demanded of named keys and of their number: the objects that fail, that pass."""
        for name in sorted(self.required):
            present = Objects(((name, TRUE),), required=frozenset({name}))
            yield Objects(((name, FALSE),)), present
        for name, expression in self.named:
            if expression != TRUE:
                wrong = Objects(((name, not_(expression)),), required=frozenset({name}))
                yield wrong, Objects(((name, expression),))
        if self.least:
            yield Objects(most=self.least - 1), Objects(least=self.least)
        if self.most is not None:
            yield Objects(least=self.most + 1), Objects(most=self.most)

    def _key_demands(self) -> Iterator[Objects]:
        """The objects that fail what is demanded of the texts of keys, or of some key."""
        if self.keys != ANY:
            yield Objects(exists=((~self.keys, TRUE),))
        for content, expression in self.exists:
            yield Objects(rules=(KeyRules(patterns=((content, not_(expression)),)),))


def _other_keys(rules: KeyRules) -> Iterator[Objects]:
    """The objects with a key, not among the names, that breaks a rule."""
    for content, expression in rules.patterns:
        if expression != TRUE:
            yield Objects(exists=((content, not_(expression)),))
    if rules.additional not in (None, TRUE):
        assert rules.additional is not None
        known = union([texts(rules.names), *(content for content, _ in rules.patterns)])
        yield Objects(exists=((ANY - known, not_(rules.additional)),))
