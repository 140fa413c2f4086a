"""Schemas that ask for too much, and a program that compiles them within limits."""

import json
import resource
from contextlib import suppress

from cmm.compiler import build_automaton
from cmm.compiler.determinise import DEFAULT_STATE_BUDGET
from cmm.grammar.errors import Unsupported
from cmm.grammar.json_schema import schema_grammar

SECONDS, BYTES = 10, 1 << 30  # of the processor for each schema; of address space

# name -> schema, what is said when it is refused (None: it compiles)
HOSTILE = {
    "huge bounds": ({"type": "string", "maxLength": 10**15}, None),
    "many values": ({"enum": [f"value {i * 7919 % 10007}" for i in range(2_000)]}, None),
    "a long tuple": ({"prefixItems": [{"type": "integer"}] * 300}, None),
    "deep": (json.loads('{"items":' * 60 + "{}" + "}" * 60), None),
    "very deep": (json.loads('{"items":' * 900 + "{}" + "}" * 900), "is nested too deeply"),
    "exploding": ({"type": "string", "pattern": "^(a|b)*a(a|b){30}$"}, "/pattern: the texts of a"),
    "many branches": ({"anyOf": [{"properties": {"k": {"const": i}}} for i in range(2_000)]},
                      "/anyOf: needs more than 512 cases"),
    "many optional keys": ({"properties": {f"p{i}": {"type": "null"} for i in range(3_000)}},
                           "needs more than 9000 states"),
    "many keys counted": ({"properties": {f"p{i}": {"type": "null"} for i in range(300)},
                           "type": "object", "minProperties": 200}, "needs too many states"),
    "10,000 values": ({"enum": [f"value {i * 7919 % 10007}" for i in range(10_000)]}, None),
    "many branches told apart": ({"oneOf": [{"type": "object", "properties": {"k": {"const": i}},
                                  "required": ["k"]} for i in range(100)]}, None),
    "nested repeats": ({"type": "string", "pattern": "^((((a{1,99}){1,99}){1,99}){1,99})$"},
                       "/pattern: "),
    "many choices": ({"type": "string", "pattern": "^(" + "|".join(f"k{i}" for i in range(999)) + ")$"},
                     None),
    "large exponents": ({"type": "number", "minimum": 1e-300, "maximum": 1e300}, None),
    "looking around": ({"type": "string", "pattern": "(?:(?=.*a.{5}b)(?!.*b.{7}a).)*x.{0,300}$"},
                       "too long|states"),
    "a million items": ({"items": {"type": "integer"}, "minItems": 10**6}, None),
    "4,000 digits": ({"type": "integer", "maximum": 10**4000}, None),
    "many patterns at once": ({"allOf": [{"type": "string", "pattern": f"^(a|b)*a(a|b){{{i}}}$"}
                                         for i in range(8, 12)]}, None),
    "counting costly items": ({"contains": {"type": "string", "pattern": "a(a|b){10}$"},
                               "minContains": 90, "maxContains": 99},
                              "needs more than 9000 states"),
    "constants one by one": ({"anyOf": [{"const": f"k{i}", "title": "a"} for i in range(3_000)]}, None),
    "constants told apart": ({"oneOf": [{"const": f"k{i}"} for i in range(3_000)]}, "in too many ways"),
    "items that hold the like": ({"type": "array", "contains": {"$ref": "#"}}, "needs more than 9000"),
    "if it is the like": ({"properties": {"a": {"if": {"$ref": "#"}}}, "required": ["a"]},
                          "needs more than 9000 states"),
    "thousands left out": ({"type": "number", "not": {"enum": list(range(5_000))}},
                           "more than 256 numbers left out"),
    "optional letters": ({"type": "string", "pattern": "^(a?){999}a{999}$"}, "takes too long to compile"),
    "huge counts": ({"minProperties": 2_167_792}, "counting up to 2167792 members"),
    "counted members": ({"minProperties": 50, "maxProperties": 2_000}, None),
    "counted by the hundred": ({"contains": {"type": "string", "pattern": "a(a|b){10}$"},
                                "minContains": 500, "maxContains": 1_000}, "needs more than"),
    "many string keys": ({"properties": {f"p{i}": {"type": "string"} for i in range(3_000)}},
                         "needs more than 9000 states"),
    "20,000 values": ({"enum": [f"value {i * 7919 % 100_003}" for i in range(20_000)]}, None),
    "parts in all ways": ({"allOf": [{"if": {"properties": {"k": {"pattern": f"^[ab]*a[ab]{{{i % 5}}}b{i}"}}},
                                      "then": {"properties": {f"p{i}": {"pattern": f"{i}x"}}}}
                                     for i in range(40)]}, "cases|too many ways|states"),
    "remainders": ({"type": "integer", "multipleOf": 999_983}, "multipleOf needs 999983 states"),
}  # fmt: skip


def outcome(schema, budget):
    """Why a schema is refused, or that it compiled."""
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    resource.setrlimit(resource.RLIMIT_CPU, (int(used) + SECONDS, resource.RLIM_INFINITY))
    try:
        build_automaton(schema_grammar(schema), budget)
    except Unsupported as error:
        return str(error)
    return "compiled"


if __name__ == "__main__":
    with suppress(ValueError):  # not every system limits address space
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    for name, (schema, refused) in HOSTILE.items():
        budget = 9_000 if refused else DEFAULT_STATE_BUDGET
        print(json.dumps([name, outcome(schema, budget)]), flush=True)
