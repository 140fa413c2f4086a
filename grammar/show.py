"""Grammars printed for people, and as one regular expression."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence as Sequence_

from cmm.grammar.content import ANY, Content
from cmm.grammar.errors import Unsupported
from cmm.grammar.json_values import ANY_VALUE, INTEGER, NUMBER
from cmm.grammar.nodes import (
    Chars,
    Choice,
    Counted,
    Distinct,
    Grammar,
    Joined,
    Literal,
    Mark,
    Node,
    Reference,
    Repeat,
    Sequence,
    Spelled,
    Text,
    Tick,
)

# JSON's string: anything but quote, backslash and control characters, or an escape; an escaped
# surrogate only as a pair. The low surrogate range is spelled out since re has no code units.
STRING_REGEX = (
    r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u(?:[0-9a-cA-CefEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2})'
    r'|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*"'
)


# Nodes that are printed by name, each explained below the grammar that uses it.
NAMED: Sequence_[tuple[Node, str]] = (
    (NUMBER, "number"),
    (INTEGER, "integer"),
    (ANY_VALUE, "value"),
)


def show_grammar(grammar: Grammar) -> str:
    """One line per rule, in the usual notation of grammars, with what the root needs.

    >>> from cmm.grammar.nodes import choice
    >>> print(show_grammar(Grammar(choice([Text(), INTEGER]))))
    root = string | integer
    integer = "-"? ("0" | [1-9] [0-9]*)
    """
    texts = {"root": _shown(grammar.root, named=False)}
    known = {name: node for node, name in NAMED} | dict(grammar.rules)
    pending = [texts["root"]]
    while pending:
        words = re.findall(r"\b[a-z_0-9]+\b(?!\()", re.sub(r'"(?:[^"\\]|\\.)*"', "", pending.pop()))
        for word in dict.fromkeys(words):
            if word in known and word not in texts:
                texts[word] = _shown(known[word], named=False)
                pending.append(texts[word])
    return "\n".join(f"{name} = {text}" for name, text in texts.items())


def _shown(node: Node, tight: bool = False, named: bool = True) -> str:
    for known, name in NAMED:
        if named and node is known:
            return name
    match node:
        case Literal(text) | Tick(text):
            return json.dumps(text, ensure_ascii=False)
        case Mark(text):
            return f"mark({json.dumps(text, ensure_ascii=False)})"
        case Distinct(members, names):
            listed = ", ".join(json.dumps(name, ensure_ascii=False) for name in sorted(names))
            others = f" others than {listed}" if names else ""
            return f'"{{" distinct keys{others}({_shown(members)}) "}}"'
        case Chars(ranges):
            return "[" + "".join(_shown_range(low, high) for low, high in ranges) + "]"
        case Sequence(parts):
            text = " ".join(_shown(part, True) for part in parts) or "nothing"
            return f"({text})" if tight and len(parts) > 1 else text
        case Choice(options):
            text = " | ".join(_shown(option) for option in options)
            return (f"({text})" if tight else text) if options else "never"
        case Repeat(body, least, most):
            return _shown(body, True) + _count(least, most)
        case Joined(body, separator):
            return f"joined by {json.dumps(separator)}({_shown(body)})"
        case Spelled(content):
            return f"decimal({_content_name(content)})"
        case Text(content, _, least, most):
            name = "string" if content == ANY else f"string({_content_name(content)})"
            return name if (least, most) == (0, None) else f"{name}{_count(least, most)}"
        case Counted(item, least, most, unique):
            return f"{'unique ' * unique}array({_shown(item)}){_count(least, most)}"
        case Reference(name):
            return name


def _content_name(content: Content) -> str:
    """A content in a few words: its texts if they are few, else its size."""
    few = content.finite(6)
    if few is not None:
        return " | ".join(json.dumps(text, ensure_ascii=False) for text in few)
    return f"{len(content.moves)} states"


def _shown_range(low: int, high: int) -> str:
    ends = [chr(p) if chr(p).isprintable() and chr(p) not in "[]-\\" else f"\\u{{{p:x}}}"
            for p in (low, high)]  # fmt: skip
    return ends[0] if low == high else "-".join(ends)


def _count(least: int, most: int | None) -> str:
    marks = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    if (least, most) in marks:
        return marks[least, most]
    if least == most:
        return f"{{{least}}}"
    return f"{{{least},{'' if most is None else most}}}"


def show_regex(grammar: Grammar) -> str:
    """The same language as one regular expression for Python's `re`; refused where it recurses.

    >>> from cmm.grammar.nodes import DIGITS, sequence
    >>> show_regex(Grammar(sequence(Literal("n="), DIGITS)))
    'n=[0-9]+'
    """
    return _regex(grammar.root)


def _regex(node: Node) -> str:
    match node:
        case Literal(text) | Tick(text) | Mark(text):
            return re.escape(text)
        case Distinct() | Counted():
            raise Unsupported(
                "no regular expression says that nothing may come twice",
                advice="print the grammar or the automaton",
            )
        case Chars(ranges):
            return "[" + "".join(_regex_range(low, high) for low, high in ranges) + "]"
        case Sequence(parts):
            return "".join(_regex(part) for part in parts)
        case Choice(options):
            return "(?:" + "|".join(map(_regex, options)) + ")" if options else "(?!)"
        case Repeat(body, least, most):
            inner = _regex(body)
            single = isinstance(body, Chars | Choice) or (
                isinstance(body, Literal) and len(body.text) == 1
            )
            return (inner if single else f"(?:{inner})") + _count(least, most)
        case Joined(body, separator):
            return _units(body, separator)
        case Text(content, _, 0, None) if content == ANY:
            return STRING_REGEX
        case Counted(item, least, most, False):
            inner = _regex(item)
            more = _count(max(least - 1, 0), None if most is None else most - 1)
            some = f"{inner}(?:, {inner}){more}"
            return rf"\[{some}\]" if least else rf"\[(?:{some})?\]"
        case Text() | Spelled():
            raise Unsupported(
                "a string or number with a constraint is not printed as a regular expression",
                advice="print the grammar or the automaton",
            )
        case Reference(name):
            raise Unsupported(
                f'no regular expression says "{name}", which nests in itself',
                advice="print the grammar or the automaton",
            )


def _units(node: Node, separator: str) -> str:
    """A list of units: behind the opening bracket, and only there, a unit has no separator."""
    match node:
        case Literal(text) if text.startswith(separator):
            comma = rf"(?:(?<=[\[{{])|(?<![\[{{]){re.escape(separator)})"
            return comma + re.escape(text.removeprefix(separator))
        case Sequence(parts):
            if parts and isinstance(parts[0], Literal):
                return _units(parts[0], separator) + "".join(map(_regex, parts[1:]))
            return "".join(_units(part, separator) for part in parts)
        case Choice(options) if options:
            return "(?:" + "|".join(_units(option, separator) for option in options) + ")"
        case Repeat(body, least, most):
            return f"(?:{_units(body, separator)})" + _count(least, most)
        case _:
            return _regex(node)


def _regex_range(low: int, high: int) -> str:
    ends = [re.escape(chr(point)) if chr(point).isprintable() else f"\\U{point:08x}"
            for point in (low, high)]  # fmt: skip
    return ends[0] if low == high else "-".join(ends)
