"""How it is recognised: byte automata, vocabularies, token tables, and their cache."""

from cmm.compiler.automaton import ByteAutomaton, State, build_automaton
from cmm.compiler.cache import cache_dir
from cmm.compiler.canonical import CanonicalTable
from cmm.compiler.matching import Match, match
from cmm.compiler.show import show_automaton
from cmm.compiler.store import (
    Compiled,
    compile_calls,
    compile_functions,
    compile_grammar,
    compile_schema,
    load_vocabulary,
)
from cmm.compiler.table import TokenTable, build_table
from cmm.compiler.vocabulary import Vocabulary, make_vocabulary

__all__ = [
    "ByteAutomaton",
    "CanonicalTable",
    "Compiled",
    "Match",
    "State",
    "TokenTable",
    "Vocabulary",
    "build_automaton",
    "build_table",
    "cache_dir",
    "compile_calls",
    "compile_functions",
    "compile_grammar",
    "compile_schema",
    "load_vocabulary",
    "make_vocabulary",
    "match",
    "show_automaton",
]
