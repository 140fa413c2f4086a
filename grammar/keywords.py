"""The keywords of JSON Schema: what each one demands of a value. To add one, add it here.

Each group of keywords that only mean something together has one function, from the schema and its
place to the set of values that pass. `KEYWORDS` is the table of all of them; the documentation is
made from it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from cmm.grammar.arrays import Arrays, Contains
from cmm.grammar.content import Content, union
from cmm.grammar.errors import CmmError, InvalidInput, Unsupported, listed, pointer
from cmm.grammar.expressions import FALSE, TRUE, Expression, Raw, Value, all_of, not_, some_of
from cmm.grammar.numbers import Numbers
from cmm.grammar.objects import KeyRules, Objects
from cmm.grammar.pattern import pattern_content
from cmm.grammar.string_formats import format_content
from cmm.grammar.strings import Strings
from cmm.grammar.type_words import TYPES
from cmm.grammar.unevaluated import Case, Cases, Parts, Seen
from cmm.grammar.values import ANYTHING, NOTHING, Values, of_type, only

Evaluate = Callable[[Expression], Values]
Schema = Mapping[str, Any]


@dataclass(frozen=True)
class Context:
    """Where a schema stands, and how the schemas it holds are evaluated."""

    schema: Schema
    place: str
    evaluate: Evaluate
    resolve: Callable[[str, str], str]
    disjoint: Callable[[Values, Values], bool]
    pruned: Callable[[Values], Values]
    inner: Callable[[str], Context]  # the schema object at a place
    old: bool  # a draft in which $ref hides its siblings and items may be a list

    def below(self, *keys: str | int) -> str:
        """The pointer of something in the schema."""
        return self.place + pointer(*keys)

    def expression(self, *keys: str | int) -> Expression:
        """The schema at some keys below this one, as an expression."""
        value: Any = self.schema
        for key in keys:
            value = value[key]
        if isinstance(value, bool):
            return TRUE if value else FALSE
        if not isinstance(value, dict):
            raise InvalidInput("a schema is an object or a boolean", place=self.below(*keys))
        return Raw(self.below(*keys)) if value else TRUE

    def listed(self, key: str) -> list[Expression]:
        """The schemas in the list of a keyword."""
        value = self.schema[key]
        if not isinstance(value, list) or not value:
            raise InvalidInput(f"{key} needs a list of schemas", place=self.below(key))
        return [self.expression(key, i) for i in range(len(value))]

    def mapped(self, key: str) -> dict[str, Expression]:
        """The schemas by name of a keyword."""
        value = self.schema.get(key, {})
        if not isinstance(value, dict):
            raise InvalidInput(f"{key} is an object of schemas", place=self.below(key))
        return {name: self.expression(key, name) for name in value}

    def count(self, key: str, default: int | None = None) -> int | None:
        """A keyword's number of things, which is a whole number from 0."""
        value = self.schema.get(key, default)
        if value is None or (isinstance(value, float) and value.is_integer() and value >= 0):
            return None if value is None else int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise InvalidInput(f"{key} is a whole number from 0", place=self.below(key))
        return value

    def number(self, key: str) -> Fraction:
        """A keyword's number, exactly."""
        value = self.schema[key]
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(f"{key} is a number", place=self.below(key))
        return exact(value)

    def names(self, key: str) -> list[str]:
        """A keyword's list of property names."""
        value = self.schema.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise InvalidInput(f"{key} is a list of names", place=self.below(key))
        return value


def exact(value: int | float) -> Fraction:
    """The number that a JSON text wrote, as it was written.

    >>> exact(0.1)
    Fraction(1, 10)
    """
    return Fraction(value) if isinstance(value, int) else Fraction(Decimal(repr(value)))


def _type(at: Context) -> Values:
    words = at.schema["type"]
    found = of_type("null") if at.schema.get("nullable") is True else NOTHING
    for word in words if isinstance(words, list) else [words]:
        if word not in TYPES:
            raise InvalidInput(
                f"there is no type {word!r}",
                place=at.below("type"),
                advice=f"use one of {listed(TYPES)}",
            )
        found |= of_type(word)
    return found


def _enum(at: Context) -> Values:
    values = at.schema["enum"]
    if not isinstance(values, list):
        raise InvalidInput("enum needs a list of values", place=at.below("enum"))
    strings = tuple(dict.fromkeys(v for v in values if isinstance(v, str)))
    numbers = frozenset(
        exact(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool)
    )
    found = Values(
        null=None in values,
        booleans=frozenset(v for v in values if isinstance(v, bool)),
        numbers=(Numbers(members=numbers),) if numbers else (),
        strings=(Strings(values=strings),) if strings else (),
    )
    for value in values:
        if isinstance(value, list | dict):
            found |= constant(value)
    return found


def _const(at: Context) -> Values:
    return constant(at.schema["const"])


def constant(value: Any) -> Values:
    """The set of one JSON value.

    >>> constant(2).numbers[0].members
    frozenset({Fraction(2, 1)})
    """
    match value:
        case None | bool():
            booleans = frozenset() if value is None else frozenset({value})
            return Values(null=value is None, booleans=booleans)
        case str():
            return Values(strings=(Strings(values=(value,)),))
        case int() | float():
            return Values(numbers=(Numbers(members=frozenset({exact(value)})),))
        case list():
            items = tuple(Value(json.dumps(item)) for item in value)
            return Values(arrays=(Arrays(items, FALSE, len(items), len(items)),))
        case _:
            named = tuple((key, Value(json.dumps(item))) for key, item in value.items())
            rules = KeyRules(names=frozenset(value), additional=FALSE)
            return Values(objects=(Objects(named, (rules,), frozenset(value)),))


def _bounds(at: Context) -> Values:
    low = _bound(at, "minimum", "exclusiveMinimum", max)
    high = _bound(at, "maximum", "exclusiveMaximum", min)
    return only(numbers=tuple(filter(None, [Numbers(low=low) & Numbers(high=high)])))


def _bound(
    at: Context, key: str, exclusive: str, tighter: Callable[..., Any]
) -> tuple[Fraction, bool] | None:
    """The bound that both spellings of it give; the old one makes `exclusive` a boolean."""
    given = at.schema.get(exclusive)
    found = []
    if key in at.schema:
        found.append((at.number(key), given is True))
    if exclusive in at.schema and not isinstance(given, bool):
        found.append((at.number(exclusive), True))
    sign = 1 if key == "minimum" else -1
    return max(found, key=lambda bound: (sign * bound[0], bound[1]), default=None)


def _multiple_of(at: Context) -> Values:
    step = at.number("multipleOf")
    if step <= 0:
        raise InvalidInput("multipleOf is a number above 0", place=at.below("multipleOf"))
    return only(numbers=(Numbers(steps=frozenset({step})),))


def _length(at: Context) -> Values:
    least, most = at.count("minLength", 0), at.count("maxLength")
    strings = Strings(least=least or 0, most=most)
    return only(strings=() if strings.surely_empty() else (strings,))


def _pattern(at: Context) -> Values:
    return only(strings=(Strings(content=_content(at.schema["pattern"], at.below("pattern"))),))


def _content(pattern: Any, place: str) -> Content:
    if not isinstance(pattern, str):
        raise InvalidInput("a pattern is a string", place=place)
    try:
        return pattern_content(pattern)
    except CmmError as error:
        raise error.located(below=place) from None


# Formats of numbers: the bounds of the integers, none for floats. (OpenAPI 3.1, format registry.)
NUMBER_FORMATS = {
    "int32": Numbers(low=(Fraction(-(2**31)), False), high=(Fraction(2**31 - 1), False)),
    "int64": Numbers(low=(Fraction(-(2**63)), False), high=(Fraction(2**63 - 1), False)),
    "float": Numbers(),
    "double": Numbers(),
}


def _format(at: Context) -> Values:
    name = at.schema["format"]
    if name in NUMBER_FORMATS:
        return only(numbers=(NUMBER_FORMATS[name],))
    content = format_content(name) if isinstance(name, str) else None
    if content is None:
        warnings.warn(f"{at.below('format')}: the format {name!r} is unknown, and not enforced",
                      stacklevel=2)  # fmt: skip
        return ANYTHING
    return only(strings=(Strings(content=content),))


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
        (_content(pattern, at.below("patternProperties", pattern)), expression)
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
    found = NOTHING
    for i, option in enumerate(options):
        for j, other in enumerate(options):
            if i != j and not at.disjoint(option, other):
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


def _parts(at: Context, *, nested: bool = True) -> Parts:
    """What a schema speaks of; a `nested` one, if it says what is unevaluated, of everything."""
    schema, given = at.schema, at.schema.keys()
    lists = [schema[key] for key in ("prefixItems", "items") if isinstance(schema.get(key), list)]
    rest = "additionalItems" if isinstance(schema.get("items"), list) else "items"
    own = Seen(
        names=frozenset(at.mapped("properties")),
        patterns=frozenset(
            _content(pattern, at.below("patternProperties", pattern))
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


def _unevaluated_properties(at: Context) -> Values:
    others, found = at.expression("unevaluatedProperties"), NOTHING
    for values, seen in _cases(at):
        rules = seen.rules(others)
        found |= values if rules is None else values & only(objects=(Objects(rules=(rules,)),))
    return found


def _unevaluated_items(at: Context) -> Values:
    others, found = at.expression("unevaluatedItems"), NOTHING
    for values, seen in _cases(at):
        items = Arrays((TRUE,) * seen.prefix, some_of([others, *seen.contains]))
        found |= values if seen.all_items else values & only(arrays=(items,))
    return found


@dataclass(frozen=True)
class Group:
    """Keywords that only mean something together, and the function of them all."""

    keywords: tuple[str, ...]
    enforce: Callable[[Context], Values]
    note: str = ""


GROUPS = (
    Group(("type", "nullable"), _type, "`nullable` (OpenAPI) adds null to the type"),
    Group(("enum",), _enum, "members of objects in the order in which the schema writes them"),
    Group(("const",), _const, "as `enum`"),
    Group(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _bounds,
          "exact, on the decimal text; no exponents beside a bound"),
    Group(("multipleOf",), _multiple_of, "exact; refused beyond 4,096 remainders"),
    Group(("minLength", "maxLength"), _length, "counted beside the automaton"),
    Group(("pattern",), _pattern, "ECMA-262, searched; backreferences are refused"),
    Group(("format",), _format, "unknown formats are annotations, with a warning"),
    Group(("items", "prefixItems", "additionalItems"), _items, "`items` may be a list (draft 7)"),
    Group(("minItems", "maxItems"), _item_count, "counted beside the automaton"),
    Group(("contains", "minContains", "maxContains"), _contains,
          "refused where the counts need too many states"),
    Group(("uniqueItems",), _unique, "for items of finitely many values"),
    Group(("properties", "patternProperties", "additionalProperties"), _properties,
          "keys in the order of the schema, others after them"),
    Group(("required",), _required, "keys without `properties` stand in this order"),
    Group(("minProperties", "maxProperties"), _property_count, "each member counts as written"),
    Group(("propertyNames",), _property_names, "also holds for the names in `properties`"),
    Group(("dependentRequired", "dependentSchemas", "dependencies"), _dependencies,
          "`dependencies` (draft 7) is both of the others"),
    Group(("$ref",), _reference, "within the document, also recursive"),
    Group(("allOf",), _all_of, "also beside any other keyword"),
    Group(("anyOf",), _any_of, "also beside any other keyword"),
    Group(("oneOf",), _one_of, "exactly one"),
    Group(("not",), _not, "refused over `uniqueItems`"),
    Group(("unevaluatedProperties",), _unevaluated_properties,
          "a case for each way to pass the schema; refused beyond 64"),
    Group(("unevaluatedItems",), _unevaluated_items, "as `unevaluatedProperties`"),
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
        if group.enforce is _type and "type" not in schema:
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
