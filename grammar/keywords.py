"""The keywords of JSON Schema: what each one demands of a value. To add one, add it here.

Each group of keywords that only mean something together has one function, from the schema and its
place to the set of values that pass. `GROUPS` is the table of all of them; the documentation
is made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

from cmm.grammar.arrays import Arrays, Contains
from cmm.grammar.content import union
from cmm.grammar.context import Context, content_of
from cmm.grammar.errors import CmmError, InvalidInput, Unsupported
from cmm.grammar.expressions import FALSE, TRUE, Expression, Raw, all_of, not_, some_of
from cmm.grammar.objects import KeyRules, Objects
from cmm.grammar.scalar_keywords import (
    bounded,
    const_values,
    enum_values,
    multiples,
    of_format,
    of_length,
    of_pattern,
    type_values,
)
from cmm.grammar.unevaluated_keywords import unevaluated_items, unevaluated_properties
from cmm.grammar.values import ANYTHING, NOTHING, Values, only


def _items(at: Context) -> Values:
    key = "prefixItems" if "prefixItems" in at.schema else "items"
    prefix: list[Expression] = []
    rest = TRUE
    if isinstance(at.schema.get(key), list):
        prefix = at.listed(key) if at.schema[key] else []
        rest_key = "items" if key == "prefixItems" else "additionalItems"
        rest = at.expression(rest_key) if rest_key in at.schema else TRUE
    elif "items" in at.schema:
        rest = at.expression("items")
    return only(arrays=(Arrays(tuple(prefix), rest),))


def _item_count(at: Context) -> Values:
    arrays = Arrays() & Arrays(least=at.count("minItems", 0) or 0, most=at.count("maxItems"))
    return only(arrays=(arrays,) if arrays else ())


def _contains(at: Context) -> Values:
    if "contains" not in at.schema:
        return ANYTHING  # minContains and maxContains mean nothing alone
    least, most = at.count("minContains", 1), at.count("maxContains")
    if most is not None and most < (least or 0):
        return only(arrays=())
    contains = Contains(at.expression("contains"), least or 0, most)
    return only(arrays=(Arrays(contains=(contains,)),))


def _unique(at: Context) -> Values:
    return only(arrays=(Arrays(unique=True),)) if at.schema["uniqueItems"] is True else ANYTHING


def _properties(at: Context) -> Values:
    named = at.mapped("properties")
    patterns = tuple(
        (content_of(pattern, at.below("patternProperties", pattern)), expression)
        for pattern, expression in at.mapped("patternProperties").items()
    )
    given = "additionalProperties" in at.schema
    additional = at.expression("additionalProperties") if given else None
    rules = KeyRules(frozenset(named), patterns, additional)
    full = tuple((key, all_of([value, rules.of_key(key)])) for key, value in named.items())
    return only(objects=(Objects(full, (rules,)),))


def _required(at: Context) -> Values:
    if isinstance(at.schema["required"], bool):  # draft 3, and a common slip
        raise InvalidInput(
            "required is a list of names",
            place=at.below("required"),
            advice="list the required properties in the object's schema",
        )
    required = Objects() & _requiring(at.names("required"))
    return only(objects=(required,) if required else ())


def _requiring(names: list[str]) -> Objects:
    """The objects with these keys, in this order where nothing else says one."""
    return Objects(tuple((name, TRUE) for name in dict.fromkeys(names)), required=frozenset(names))


def _property_count(at: Context) -> Values:
    least, most = at.count("minProperties", 0) or 0, at.count("maxProperties")
    objects = Objects(least=least, most=most)
    return only(objects=() if objects.surely_empty() else (objects,))


def _property_names(at: Context) -> Values:
    names = at.evaluate(at.expression("propertyNames")).strings
    return only(objects=(Objects(keys=union(piece.automaton() for piece in names)),))


def _dependencies(at: Context) -> Values:
    found = ANYTHING
    for key in ("dependentRequired", "dependentSchemas", "dependencies"):
        value = at.schema.get(key, {})
        if not isinstance(value, dict):
            raise InvalidInput(f"{key} is an object", place=at.below(key))
        for name, demanded in value.items():
            absent = only(objects=(Objects(named=((name, FALSE),)),))
            if isinstance(demanded, list):
                found &= absent | only(objects=(_requiring([name, *demanded]),))
            else:
                present = only(objects=(_requiring([name]),))
                found &= absent | (present & at.evaluate(at.expression(key, name)))
    return found


def _reference(at: Context) -> Values:
    reference = at.schema["$ref"]
    if not isinstance(reference, str):
        raise InvalidInput("$ref is a string", place=at.below("$ref"))
    return at.evaluate(Raw(at.resolve(reference, at.place)))


def _all_of(at: Context) -> Values:
    return at.evaluate(all_of(at.listed("allOf")))


def _any_of(at: Context) -> Values:
    return at.evaluate(some_of(at.listed("anyOf")))


def _one_of(at: Context) -> Values:
    """Exactly one."""
    return exactly_one(at, ANYTHING)


def exactly_one(at: Context, among: Values) -> Values:
    """Those of some values that pass exactly one of the schemas in oneOf.

    A branch need only exclude those that it overlaps, which among the values that the schema
    allows otherwise are often none.
    """
    branches = [at.evaluate(option) for option in at.listed("oneOf")]
    options = [at.pruned(among & branch) for branch in branches]
    apart = {
        (i, j) for (i, one), (j, other) in combinations(enumerate(options), 2)
        if at.disjoint(one, other)
    }  # fmt: skip
    found = NOTHING
    for i, option in enumerate(options):
        for j, other in enumerate(options):
            sure = i == j or (min(i, j), max(i, j)) in apart
            if not sure and not at.disjoint(option, other):
                option = at.pruned(option & ~branches[j])
        found |= option
    return found


def _not(at: Context) -> Values:
    return at.evaluate(not_(at.expression("not")))


def _if(at: Context) -> Values:
    if "if" not in at.schema:
        return ANYTHING  # then and else mean nothing alone
    condition = at.evaluate(at.expression("if"))
    then = at.evaluate(at.expression("then")) if "then" in at.schema else ANYTHING
    other = at.evaluate(at.expression("else")) if "else" in at.schema else ANYTHING
    return (condition & then) | (~condition & other)


@dataclass(frozen=True)
class Group:
    """Keywords that only mean something together, and the function of them all."""

    keywords: tuple[str, ...]
    enforce: Callable[[Context], Values]
    note: str = ""


GROUPS = (
    Group(("type", "nullable"), type_values, "`nullable` (OpenAPI) adds null to the type"),
    Group(("enum",), enum_values, "members of objects in the order in which they stand"),
    Group(("const",), const_values, "as `enum`"),
    Group(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), bounded,
          "exact, on the decimal text; no exponents beside a bound"),
    Group(("multipleOf",), multiples, "exact; refused beyond 4,096 remainders"),
    Group(("minLength", "maxLength"), of_length, "counted beside the automaton"),
    Group(("pattern",), of_pattern, "ECMA-262, searched; backreferences are refused"),
    Group(("format",), of_format, "unknown formats are annotations, with a warning"),
    Group(("items", "prefixItems", "additionalItems"), _items, "`items` may be a list (draft 7)"),
    Group(("minItems", "maxItems"), _item_count, "counted beside the automaton"),
    Group(("contains", "minContains", "maxContains"), _contains,
          "refused where the counts need too many states"),
    Group(("uniqueItems",), _unique, "for items that are strings without an end, or of few values"),
    Group(("properties", "patternProperties", "additionalProperties"), _properties,
          "keys in the order of the schema, others after them"),
    Group(("required",), _required, "keys without `properties` stand in this order"),
    Group(("minProperties", "maxProperties"), _property_count),
    Group(("propertyNames",), _property_names, "also holds for the names in `properties`"),
    Group(("dependentRequired", "dependentSchemas", "dependencies"), _dependencies,
          "`dependencies` (draft 7) is both of the others"),
    Group(("$ref",), _reference, "within the document, also recursive"),
    Group(("allOf",), _all_of, "also beside any other keyword"),
    Group(("anyOf",), _any_of, "also beside any other keyword"),
    Group(("oneOf",), _one_of, "exactly one"),
    Group(("not",), _not, "refused over `uniqueItems`"),
    Group(("unevaluatedProperties",), unevaluated_properties,
          "a case for each way to pass the schema; refused beyond 64"),
    Group(("unevaluatedItems",), unevaluated_items, "as `unevaluatedProperties`"),
    Group(("if", "then", "else"), _if, "as the standard says, also without `then` or `else`"),
)  # fmt: skip


# Keywords that say something to people or to other tools, and constrain nothing.
ANNOTATIONS = frozenset({
    "title", "description", "default", "examples", "example", "$comment", "$schema", "$id", "id",
    "$anchor", "$dynamicAnchor", "$defs", "definitions", "$vocabulary", "deprecated", "readOnly",
    "writeOnly", "contentEncoding", "contentMediaType", "contentSchema", "xml", "externalDocs",
    "discriminator",
})  # fmt: skip


REFUSED = {
    "$dynamicRef": "which schema is meant depends on the value's place",
    "$recursiveRef": "which schema is meant depends on the value's place",
    "extends": "draft 3; write `allOf`",
    "disallow": "draft 3; write `not`",
    "divisibleBy": "draft 3; write `multipleOf`",
}


ENFORCED = {keyword: group for group in GROUPS for keyword in group.keywords}


def evaluate_schema(at: Context) -> Values:
    """The values that pass all keywords of a schema object."""
    schema = at.schema
    if at.old and "$ref" in schema:
        schema = {"$ref": schema["$ref"]}
    for keyword in schema:
        if keyword in REFUSED:
            raise Unsupported(
                f'the keyword "{keyword}" is not supported',
                place=at.below(keyword),
                advice=REFUSED[keyword],
            )
    found = ANYTHING
    for group in dict.fromkeys(ENFORCED[keyword] for keyword in schema if keyword in ENFORCED):
        if group.enforce is type_values and "type" not in schema:
            continue  # nullable alone allows nothing that is not allowed anyway
        if group.enforce is _one_of:
            continue  # last, for what else holds tells its branches apart
        try:
            found = at.pruned(found & group.enforce(at))
        except CmmError as error:
            first = next(keyword for keyword in group.keywords if keyword in schema)
            raise error if error.place else error.located(below=at.below(first)) from None
    if "oneOf" not in schema:
        return found
    try:
        return exactly_one(at, found)
    except CmmError as error:
        raise error if error.place else error.located(below=at.below("oneOf")) from None
