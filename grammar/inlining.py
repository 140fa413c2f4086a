"""Rules that only one place uses are put into that place: a call of them would only cost a step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from cmm.grammar.nodes import Choice, Counted, Distinct, Joined, Node, Reference, Repeat, Sequence


def inline(root: Node, rules: Mapping[str, Node]) -> tuple[Node, dict[str, Node]]:
    """The root and the rules, without those that are used once; others it names are left alone.

    >>> from cmm.grammar.nodes import Literal
    >>> inline(Reference("a"), {"a": Literal("[]")})
    (Literal(text='[]'), {})
    """
    uses = count_uses(root, rules)
    once = frozenset(name for name in rules if uses[name] == 1)

    def written_out(node: Node) -> Node:
        while isinstance(node, Reference) and node.name in once:
            node = rules[node.name]
        return node

    writer = Rewriter(written_out)
    kept = {name: writer.written(node) for name, node in rules.items() if uses[name] > 1}
    return writer.written(root), kept


def count_uses(root: Node, rules: Mapping[str, Node]) -> Counter[str]:
    """How often each rule is written, where two stands for more.

    A node that stands in several places, or repeats what is in it, is read twice.
    """
    uses: Counter[str] = Counter()
    seen: Counter[int] = Counter()
    pending: list[Node] = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Reference):
            uses[node.name] += 1
            if uses[node.name] == 1 and node.name in rules:
                pending.append(rules[node.name])
            continue
        seen[id(node)] += 1
        if seen[id(node)] <= 2:
            copies = 2 if isinstance(node, Repeat) and max(node.least, node.most or 0) > 1 else 1
            pending += parts_of(node) * copies
    return uses


def parts_of(node: Node) -> tuple[Node, ...]:
    """The nodes that a node is made of."""
    match node:
        case Sequence(parts):
            return parts
        case Choice(options):
            return options
        case Repeat(body) | Joined(body):
            return (body,)
        case Counted(item) | Distinct(item):
            return (item,)
        case _:
            return ()


class Rewriter:
    """Nodes with some of them changed, parts included; what does not change stays itself.

    >>> from cmm.grammar.nodes import Literal
    >>> a, b = Literal("a"), Literal("b")
    >>> Rewriter(lambda node: b if node is a else node).written(Sequence((a, a)))
    Sequence(parts=(Literal(text='b'), Literal(text='b')))
    """

    def __init__(self, change: Callable[[Node], Node]) -> None:
        self.change = change
        self.known: dict[int, Node] = {}

    def written(self, node: Node) -> Node:
        """The node, changed."""
        node = self.change(node)
        if id(node) not in self.known:
            parts = parts_of(node)
            new = tuple(map(self.written, parts))
            same = all(a is b for a, b in zip(parts, new, strict=True))
            self.known[id(node)] = node if same else _with_parts(node, new)
        return self.known[id(node)]


def _with_parts(node: Node, parts: tuple[Node, ...]) -> Node:
    match node:
        case Sequence():
            return Sequence(parts)
        case Choice():
            return Choice(parts)
        case Repeat() | Joined():
            return replace(node, body=parts[0])
        case Counted():
            return replace(node, item=parts[0])
        case Distinct():
            return replace(node, members=parts[0])
        case _:
            raise TypeError(f"has no parts: {node}")
