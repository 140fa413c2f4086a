"""Regular expressions as JSON Schema writes them (ECMA-262): text -> tree."""

from __future__ import annotations

import re
from typing import NoReturn

from cmm.grammar import characters
from cmm.grammar.characters import DIGITS, DOT, SPACES, WORD, Range, Ranges
from cmm.grammar.errors import InvalidInput, Unsupported
from cmm.grammar.regex import Edge, Either, Look, Many, One, Regex, Row

MOST_NESTED = 100  # groups in groups; Python's own stack would end at about 250
CLASSES = {"d": DIGITS, "w": WORD, "s": SPACES}
CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v"}
EDGES = {"b": "b", "B": "B", "A": "^", "Z": "$", "z": "$"}  # \A \Z \z are Python's and Perl's
GROUPS = re.compile(
    r"\(\?(?:(?P<plain>:)|(?P<name>P?<[^\W\d]\w*>)|(?P<look><?[=!])|(?P<fold>i:)"
    r"|(?P<back>P=)|(?P<atomic>>))"
)
QUANTIFIER = re.compile(r"(?:([*+?])|\{(\d+)(,?)(\d*)\})([?+]?)")
HEX = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]+)\}")
LOW_HALF = re.compile(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})")
TIMES = {"*": (0, None), "+": (1, None), "?": (0, 1)}


def parse_regex(pattern: str) -> Regex:
    """The tree of a regular expression.

    >>> parse_regex("^a?")
    Row(parts=(Edge(kind='^'), Many(part=One(of=((97, 97),)), least=0, most=1)))

    Characters are code points, a surrogate pair is one. Raises InvalidInput with the position
    where the pattern is malformed, Unsupported where it is right but no regular set of texts, or
    where engines disagree about its meaning.
    """
    fold = pattern.startswith("(?i)")
    parser = _Parser(pattern, 4 if fold else 0, fold)
    tree = parser.choice()
    if parser.at < len(pattern):
        parser.wrong("a ) too much")
    return tree


class _Parser:
    def __init__(self, pattern: str, at: int, fold: bool) -> None:
        self.pattern = pattern
        self.at = at
        self.fold = fold
        self.depth = 0

    def wrong(self, problem: str) -> NoReturn:
        where = f"at character {self.at + 1} of the pattern {self.pattern!r}"
        raise InvalidInput(f"{problem} {where}")

    def refused(self, construct: str, advice: str | None = None) -> NoReturn:
        raise Unsupported(f"{construct} in the pattern {self.pattern!r}", advice=advice)

    def peek(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def take(self, text: str) -> bool:
        taken = self.peek(text)
        self.at += len(text) * taken
        return taken

    def next(self) -> str:
        if self.at == len(self.pattern):
            self.wrong("the pattern ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def choice(self) -> Regex:
        options = [self.row()]
        while self.take("|"):
            options.append(self.row())
        return options[0] if len(options) == 1 else Either(tuple(options))

    def row(self) -> Regex:
        parts: list[Regex] = []
        while self.at < len(self.pattern) and not self.peek("|") and not self.peek(")"):
            parts.append(self.repeated(self.atom()))
        return parts[0] if len(parts) == 1 else Row(tuple(parts))

    def repeated(self, part: Regex) -> Regex:
        if self.peek("{,"):
            if re.match(r"\{,\d+\}", self.pattern[self.at :]):
                self.refused("{,n}", "engines differ; write {0,n}")
            return part
        found = QUANTIFIER.match(self.pattern, self.at)
        if not found:
            return part
        if isinstance(part, Edge):
            self.wrong("nothing to repeat")
        sign, least, comma, most, mode = found.groups()
        low, high = TIMES[sign] if sign else (int(least), int(most or least))
        if comma and not most:
            high = None
        if high is not None and low > high:
            self.wrong("a repetition that ends before it starts")
        if mode == "+":
            self.refused("a possessive repetition")
        self.at = found.end()
        if QUANTIFIER.match(self.pattern, self.at):
            self.wrong("a repetition of a repetition")
        return Many(part, low, high)

    def atom(self) -> Regex:
        if self.peek("("):
            return self.group()
        if self.take("["):
            return One(self.bracket())
        if self.take("\\"):
            return self.escape()
        if QUANTIFIER.match(self.pattern, self.at):
            self.wrong("nothing to repeat")
        character = self.next()
        if character in "^$":
            return Edge(character)
        return One(DOT) if character == "." else self.character(ord(character))

    def character(self, code: int) -> One:
        single = characters.ranges([(code, code)])
        return One(characters.either_case(single) if self.fold else single)

    def group(self) -> Regex:
        found = GROUPS.match(self.pattern, self.at)
        if self.peek("(?") and not found:
            flags = re.match(r"\(\?[a-zA-Z#(|&-]", self.pattern[self.at :])
            self.refused(f"the group {flags[0]}…") if flags else self.wrong("an unknown group")
        if found and (found["back"] or found["atomic"]):
            self.refused("a back reference" if found["back"] else "an atomic group")
        self.depth += 1
        if self.depth > MOST_NESTED:
            self.refused(f"more than {MOST_NESTED} nested groups")
        self.at = found.end() if found else self.at + 1
        fold_outside, self.fold = self.fold, self.fold or bool(found and found["fold"])
        part = self.choice()
        if not self.take(")"):
            self.wrong("a ) is missing")
        self.fold = fold_outside
        self.depth -= 1
        look = found["look"] if found else None
        if look:
            return Look(part, "<" not in look, "=" in look)
        return Row((part,)) if isinstance(part, Edge) else part  # (?:^)* is no ^*

    def escape(self) -> Regex:
        if self.at < len(self.pattern) and self.pattern[self.at] in EDGES:
            return Edge(EDGES[self.next()])
        found = self.class_escape()
        return One(found) if found is not None else self.character(self.code_escape())

    def class_escape(self) -> Ranges | None:
        letter = self.pattern[self.at : self.at + 1]
        if letter and letter in "dDwWsS":
            self.at += 1
            found = CLASSES[letter.lower()]
            return found if letter.islower() else characters.without(found)
        if letter and letter in "pP":
            name = re.compile(r"[pP](?:\{([^{}]*)\}|([A-Z]))").match(self.pattern, self.at)
            if not name:
                self.wrong("a property without its name")
            known = characters.unicode_property(name[1] or name[2])
            if known is None:
                self.refused(f"the Unicode property {name[0]}")
            self.at = name.end()
            return known if letter == "p" else characters.without(known)
        return None

    def code_escape(self) -> int:
        if found := HEX.match(self.pattern, self.at):
            self.at = found.end()
            code = int(found[1] or found[2] or found[3], 16)
            low = LOW_HALF.match(self.pattern, self.at)
            if 0xD800 <= code < 0xDC00 and low:
                self.at = low.end()
                code = 0x10000 + ((code - 0xD800) << 10) + int(low[1], 16) - 0xDC00
            return code if code <= 0x10FFFF else self.wrong("a code point beyond Unicode's")
        letter = self.next()
        if letter in CONTROLS:
            return ord(CONTROLS[letter])
        if letter == "0" and not self.pattern[self.at : self.at + 1].isdigit():
            return 0
        if letter == "c" and re.match("[a-zA-Z]", self.pattern[self.at :]):
            return ord(self.next()) % 32
        if letter.isdigit() or letter == "k":
            self.refused("a back reference")
        if letter.isalpha():
            self.refused(f"the escape \\{letter}")
        return ord(letter)

    def bracket(self) -> Ranges:
        """The characters of a class, behind its [."""
        negated = self.take("^")
        pairs: list[Range] = []
        while not self.take("]"):
            low = self.member()
            if isinstance(low, int) and self.peek("-") and not self.peek("-]"):
                self.at += 1
                high = self.member()
                if isinstance(high, int):
                    if high < low:
                        self.wrong("a range that ends before it starts")
                    pairs.append((low, high))
                    continue
                pairs += [(ord("-"), ord("-")), *high]  # [a-\d]: the - is one more character
            pairs += [(low, low)] if isinstance(low, int) else low
        found = characters.ranges(pairs)
        if self.fold:
            found = characters.either_case(found)
        return characters.without(found) if negated else found

    def member(self) -> int | Ranges:
        """One member of a class: a code point, or the set of a class escape."""
        if not self.take("\\"):
            return ord(self.next())
        if self.take("b"):
            return ord("\b")
        found = self.class_escape()
        return found if found is not None else self.code_escape()
