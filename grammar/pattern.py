"""JSON Schema's `pattern` -> the texts in which it is found."""

from __future__ import annotations

from functools import lru_cache

from cmm.grammar.content import Content
from cmm.grammar.errors import Unsupported
from cmm.grammar.machine import crawl
from cmm.grammar.regex_graph import Graph
from cmm.grammar.regex_parser import parse_regex
from cmm.grammar.regex_search import Search


@lru_cache(maxsize=1024)
def pattern_content(pattern: str) -> Content:
    r"""All texts in which the pattern is found, anywhere unless it is anchored.

    >>> print(pattern_content("^[ab]+$"))
    0  a..b -> 1
    1! a..b -> 1
    >>> pattern_content(r"^(?!.*\bno\b)").accepts("now, no")
    False

    ECMA-262 syntax, characters are code points, \d \w \b are ASCII. Raises InvalidInput for a
    malformed pattern and Unsupported for one that needs more than a finite automaton, or too much
    of it.
    """
    try:
        search = Search(Graph(parse_regex(pattern)))
        return Content(*crawl(search.start, search.follow, search.is_final))
    except Unsupported as error:
        if repr(pattern) in error.problem:
            raise
        problem = f"{error.problem}: the pattern {pattern!r}"
        raise Unsupported(problem, advice=error.advice) from None
