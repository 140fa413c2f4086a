"""Regular expressions as graphs: nodes that read a character, branch, or test their place."""

from __future__ import annotations

from dataclasses import dataclass, field

from cmm.grammar.characters import Ranges
from cmm.grammar.errors import Unsupported
from cmm.grammar.regex import Edge, Either, Look, Many, One, Regex, Row

MATCHED = 0  # the node behind every expression

# More would take minutes: `{1,1000}` of one character is 1,001 nodes, two of them nested 1,000,000.
MOST_NODES = 50_000


@dataclass
class Node:
    """One node; which fields are set says what it does.

    `reads` is a number in `Graph.sets`: one character of that set leads to `then[0]`. `edge` and
    `behind` (a number in `Graph.behind`) test the place, `ahead` is where a look ahead starts.
    Otherwise it branches, without reading, to all of `then`.
    """

    then: list[int] = field(default_factory=list)
    reads: int | None = None
    edge: str = ""
    ahead: int | None = None
    behind: int | None = None
    positive: bool = True


class Graph:
    """The nodes of an expression; `start` leads to MATCHED.

    >>> from cmm.grammar.regex_parser import parse_regex
    >>> graph = Graph(parse_regex("^a"))
    >>> graph.start, [(node.edge, node.reads, node.then) for node in graph.nodes]
    (2, [('', None, []), ('', 0, [0]), ('^', None, [1])])
    """

    def __init__(self, tree: Regex) -> None:
        self.nodes = [Node()]
        self.sets: dict[Ranges, int] = {}
        self.behind: list[int] = []  # where the expressions of looks behind start
        self.inside_behind = False
        self.has_words = False
        self.start = self.lead(tree, MATCHED)

    def add(self, node: Node) -> int:
        self.nodes.append(node)
        if len(self.nodes) > MOST_NODES:
            raise Unsupported(f"a pattern that needs more than {MOST_NODES} nodes")
        return len(self.nodes) - 1

    def lead(self, tree: Regex, then: int) -> int:
        """The node from which `tree`, and then `then`, follows."""
        if isinstance(tree, One):
            number = self.sets.setdefault(tree.of, len(self.sets))
            return self.add(Node([then], reads=number))
        if isinstance(tree, Row):
            for part in reversed(tree.parts):
                then = self.lead(part, then)
            return then
        if isinstance(tree, Either):
            return self.add(Node([self.lead(part, then) for part in tree.parts]))
        if isinstance(tree, Many):
            return self.repeat(tree, then)
        if isinstance(tree, Edge):
            self.has_words |= tree.kind in "bB"
            return self.add(Node([then], edge=tree.kind))
        return self.look(tree, then)

    def repeat(self, tree: Many, then: int) -> int:
        exit_, least = then, tree.least
        if tree.most is None:
            loop = self.add(Node([]))
            body = self.lead(tree.part, loop)
            self.nodes[loop].then += [body, exit_]
            then, least = (body, least - 1) if least else (loop, 0)
        else:
            for _ in range(tree.most - tree.least):
                then = self.add(Node([self.lead(tree.part, then), exit_]))
        for _ in range(least):
            then = self.lead(tree.part, then)
        return then

    def look(self, tree: Look, then: int) -> int:
        if tree.ahead:
            if self.inside_behind:
                raise Unsupported("a look ahead inside a look behind in a pattern")
            start = self.lead(tree.part, MATCHED)
            return self.add(Node([then], ahead=start, positive=tree.positive))
        outside, self.inside_behind = self.inside_behind, True
        self.behind.append(self.lead(tree.part, MATCHED))  # looks inside it come before it
        self.inside_behind = outside
        number = len(self.behind) - 1
        return self.add(Node([then], behind=number, positive=tree.positive))
