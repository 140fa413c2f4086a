"""The keywords that speak of what other keywords have not spoken of."""

from __future__ import annotations

from cmm.grammar.arrays import Arrays
from cmm.grammar.context import Context, content_of
from cmm.grammar.expressions import TRUE, Expression, Raw, some_of
from cmm.grammar.objects import Objects
from cmm.grammar.unevaluated import Case, Cases, Parts, Seen
from cmm.grammar.values import NOTHING, Values, only


def _parts(at: Context, *, nested: bool = True) -> Parts:
    """What a schema speaks of; a `nested` one, if it says what is unevaluated, of everything."""
    schema, given = at.schema, at.schema.keys()
    lists = [schema[key] for key in ("prefixItems", "items") if isinstance(schema.get(key), list)]
    rest = "additionalItems" if isinstance(schema.get("items"), list) else "items"
    own = Seen(
        names=frozenset(at.mapped("properties")),
        patterns=frozenset(
            content_of(pattern, at.below("patternProperties", pattern))
            for pattern in at.mapped("patternProperties")
        ),
        all_keys="additionalProperties" in given or (nested and "unevaluatedProperties" in given),
        prefix=len(lists[0]) if lists else 0,
        contains=frozenset({at.expression("contains")} if "contains" in given else ()),
        all_items=rest in given or (nested and "unevaluatedItems" in given),
    )
    always = at.listed("allOf") if "allOf" in given else []
    if "$ref" in given:
        always.append(Raw(at.resolve(schema["$ref"], at.place)))
    perhaps = [part for key in ("anyOf", "oneOf") if key in given for part in at.listed(key)]
    condition = None
    if "if" in given:
        test, then, other = (at.expression(key) if key in given else TRUE
                             for key in ("if", "then", "else"))  # fmt: skip
        condition = (test, then, other)
    beside = tuple(at.mapped("dependentSchemas").items())
    return Parts(own, tuple(always), tuple(perhaps), condition, beside)


def _cases(at: Context) -> list[Case]:
    def parts(expression: Expression) -> Parts:
        assert isinstance(expression, Raw)
        return _parts(at.inner(expression.place))

    return Cases(parts, at.evaluate).of_parts(_parts(at, nested=False))


def unevaluated_properties(at: Context) -> Values:
    """What keys must meet of which no schema that the value passes has spoken."""
    others, found = at.expression("unevaluatedProperties"), NOTHING
    for values, seen in _cases(at):
        rules = seen.rules(others)
        found |= values if rules is None else values & only(objects=(Objects(rules=(rules,)),))
    return found


def unevaluated_items(at: Context) -> Values:
    """What items must meet of which no schema that the value passes has spoken."""
    others, found = at.expression("unevaluatedItems"), NOTHING
    for values, seen in _cases(at):
        items = Arrays((TRUE,) * seen.prefix, some_of([others, *seen.contains]))
        found |= values if seen.all_items else values & only(arrays=(items,))
    return found
