"""What may be said: function files, JSON Schema and call formats as grammars."""

from cmm.grammar.call_format import CallFormat
from cmm.grammar.errors import CmmError, InvalidInput, Unsupported
from cmm.grammar.formats import HERMES, call_grammar
from cmm.grammar.functions import FunctionSchema, load_functions, parse_functions
from cmm.grammar.json_schema import schema_grammar
from cmm.grammar.nodes import Grammar
from cmm.grammar.show import show_grammar, show_regex

__all__ = [
    "HERMES",
    "CallFormat",
    "CmmError",
    "FunctionSchema",
    "Grammar",
    "InvalidInput",
    "Unsupported",
    "call_grammar",
    "load_functions",
    "parse_functions",
    "schema_grammar",
    "show_grammar",
    "show_regex",
]
