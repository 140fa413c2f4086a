"""Drafts: how a call probably goes on. The model confirms them; a wrong one costs time alone.

request   Greet "john doe"                    names, the likeliest first   greet add now
written   {"name": "           -> greet, by the ranking of names
          …"arguments": {      -> "who": "    forced by the table
          …"who": "            -> john doe    the first quoted text that is not used yet
          …"who": "john doe    -> "}}         the longest token of closing marks
"""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt

from cmm.runtime.choose import StateId, Table, TokenId, forced_token

QUOTED = re.compile(  # with bounds, or a text of nothing but opening quotes takes forever
    r"""(?<!\w)'([^\n]{1,500}?)'(?!\w)|"([^"\n]{1,500})"|`([^`\n]{1,500})`|“([^”\n]{1,500})”"""
)
NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?")
NAMES = re.compile(r"[A-Z][\w'-]*(?:\s+[A-Z][\w'-]*)*")
FREE = 512  # more allowed tokens than that: any text may come, a string is open
FAMILIAR = 12  # characters that must agree with an earlier answer to go on as it did
RECENT = 16  # earlier answers that are remembered
TRIED = 32  # texts of each kind that are taken from a request
SPELLINGS = 64  # more allowed tokens than that spell no single text

# The chance that a guess of a kind is right, before any was tried; then as good as PRIOR tries.
CHANCES = {
    "forced": 1.0, "text": 0.98, "function": 0.7, "number": 0.8, "quoted": 0.7, "word": 0.5,
    "earlier": 0.5, "copy": 0.7, "end": 0.8, "listed": 0.6,
}  # fmt: skip
WHOLE = ("number", "function", "listed")  # guesses that are nothing in part
PRIOR = 4.0
FADING = 0.95


@dataclass(frozen=True)
class Clues:
    """What a request suggests: its text, its quotes, names and numbers, functions by likeliness."""

    text: str
    quoted: tuple[str, ...]
    words: tuple[str, ...]
    numbers: tuple[str, ...]
    functions: tuple[str, ...] = ()


def read_clues(request: str, functions: Sequence[str] = ()) -> Clues:
    r"""The parts of a request that a call may repeat, written as in JSON strings.

    >>> clues = read_clues("Send 'hi' to Ann Lee at 10, please")
    >>> clues.quoted, clues.words, clues.numbers
    (('hi',), ('Ann Lee', 'please', 'Send'), ('10',))
    """
    quotes = [next(filter(None, found)) for found in QUOTED.findall(request)]
    plain = QUOTED.sub(" ", request)
    names = NAMES.findall(plain)
    last = re.findall(r"\w+", plain)[-1:]
    opening = names[:1] if plain.startswith(tuple(names[:1])) else []  # capital anyway
    words = [*names[len(opening) :], *last, *opening]
    return Clues(
        spelled(request),
        tuple(spelled(text) for text in quotes[:TRIED]),
        tuple(dict.fromkeys(spelled(text) for text in words[:TRIED])),
        tuple(NUMBER.findall(request)[:TRIED]),
        tuple(spelled(name) for name in functions[:TRIED]),
    )


def spelled(text: str) -> str:
    """The text as it stands in a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


@dataclass(frozen=True)
class Step:
    """One guess of a draft: its tokens, and what kind of guess it is."""

    kind: str
    tokens: list[TokenId]


class Drafter:
    """Drafts for the calls of one table. `encode` gives the tokens of a text."""

    def __init__(
        self, table: Table, tokens: Sequence[bytes], encode: Callable[[str], list[TokenId]]
    ) -> None:
        self._table, self._tokens, self._encode = table, tokens, encode
        self._closing = {
            inside: self._single_tokens(text for text in closings() if (text[0] == '"') is inside)
            for inside in (True, False)
        }
        self._recent: deque[str] = deque(maxlen=RECENT)
        self._right = {kind: chance * PRIOR for kind, chance in CHANCES.items()}
        self._tried = dict.fromkeys(CHANCES, PRIOR)

    def _single_tokens(self, texts: Iterable[str]) -> npt.NDArray[np.int32]:
        coded = map(self._encode, texts)
        return np.array([ids[0] for ids in coded if len(ids) == 1], np.int32)

    def remember(self, answer: Sequence[TokenId]) -> None:
        """Later drafts may follow a finished answer."""
        self._recent.appendleft(self._text(answer))

    def learn(self, draft: Sequence[Step], right: int) -> None:
        """Adjust the chances of the kinds of guesses: the first `right` tokens were."""
        for step in draft:
            right -= len(step.tokens)
            self._right[step.kind] = self._right[step.kind] * FADING + (right >= 0)
            self._tried[step.kind] = self._tried[step.kind] * FADING + 1
            if right < 0:
                return

    def propose(
        self, clues: Clues, answer: Sequence[TokenId], state: StateId, most: int, least: float
    ) -> list[Step]:
        """Up to `most` tokens after the answer; each step is right with a chance of `least`."""
        draft: list[Step] = []
        written, chance = list(answer), 1.0
        while (room := most - len(written) + len(answer)) > 0:
            step = self._step(clues, written, state)
            if step is None:
                break
            chance *= self._right[step.kind] / self._tried[step.kind]
            if chance < least:
                break
            draft.append(Step(step.kind, step.tokens[:room]))
            written += step.tokens[:room]
            for token in step.tokens:
                state = self._table.next(state, token)
        return draft

    def _step(self, clues: Clues, written: Sequence[TokenId], state: StateId) -> Step | None:
        """The first guess that the table allows."""
        token = forced_token(self._table, state)
        if token is not None:
            return Step("forced", [token])
        allowed = self._table.allowed(state)
        if not len(allowed):
            return None
        text = self._text(written)
        opened = text.count('"') % 2 == 1  # a quote within a string only spoils guesses
        free = opened and len(allowed) > min(FREE, len(self._tokens) // 2)
        for kind, guess in in_string(clues, text, self._recent) if free else outside(clues, text):
            tokens = self._fitting(guess, state, whole=kind in WHOLE)
            if not guess:
                tokens = self._close(allowed, opened)
            if tokens:
                return Step(kind, tokens)
        if free:
            return None
        tokens = self._forced_text(state) or self._close(allowed, opened)
        return Step("text", tokens) if tokens else None

    def _forced_text(self, state: StateId) -> list[TokenId]:
        """The text that must come, where tokens may cut it in several ways."""
        text, start = b"", state
        while 0 < len(allowed := self._table.allowed(state)) <= SPELLINGS:
            tokens = {self._tokens[token]: token for token in allowed.tolist()}
            longest, shortest = max(tokens, key=len), min(tokens, key=len)
            if not all(longest.startswith(token) for token in tokens):
                break
            text += shortest  # the longest may go on where others could come
            state = self._table.next(state, tokens[shortest])
        return self._fitting(text.decode("utf-8", "ignore"), start, whole=False)

    def _text(self, tokens: Sequence[TokenId]) -> str:
        return b"".join(self._tokens[token] for token in tokens).decode("utf-8", "ignore")

    def _fitting(self, text: str, state: StateId, *, whole: bool) -> list[TokenId]:
        """The tokens of a text as far as the table allows them, or none if not the `whole`."""
        tokens: list[TokenId] = []
        for token in self._encode(text):
            try:
                state = self._table.next(state, token)
            except KeyError:
                return [] if whole else tokens
            tokens.append(token)
        return tokens

    def _close(self, allowed: npt.NDArray[np.int32], inside: bool) -> list[TokenId]:
        """The longest allowed token of closing marks."""
        closing = self._closing[inside]
        places = np.minimum(np.searchsorted(allowed, closing), len(allowed) - 1)
        found = closing[allowed[places] == closing]
        return [int(found[0])] if len(found) else []


def outside(clues: Clues, text: str) -> Iterator[tuple[str, str]]:
    """Guesses outside of free strings: numbers, a function's name, a word of a list, a string."""
    begun = re.search(r"-?[\d.]*$", text)
    digits = begun.group() if begun else ""
    used = Counter(NUMBER.findall(text[: len(text) - len(digits)]))
    for number in clues.numbers:
        used[number] -= 1
        if used[number] < 0 and number.startswith(digits):
            rest = number[len(digits) :]
            yield from (("number", space + rest) for space in ("", " ") if rest or not space)
    word = text.rpartition('"')[2]
    for kind, words in (("function", clues.functions), ("listed", clues.quoted)):
        yield from ((kind, w[len(word) :]) for w in words if w.startswith(word) and w != word)
    if text.count('"') % 2 == 0:
        for kind, guess in in_string(clues, text + ' "', ()):
            yield from ((kind, mark + guess) for mark in (' "', '"') if guess)


def in_string(clues: Clues, text: str, recent: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Guesses inside a string; an empty one says that it ends here."""
    begun = text.rpartition('"')[2]
    for kind, values in (("quoted", clues.quoted), ("word", clues.words)):
        if begun in values:
            yield "end", ""
        unused = [value for value in values if f'"{value}"' not in text]
        yield from ((kind, v[len(begun) :]) for v in unused if v.startswith(begun))
        if kind == "quoted":
            yield from (("earlier", rest) for rest in as_before(text, recent))
    if begun and (found := re.search(rf"\b{re.escape(begun)}([^\"\n]*)", clues.text)):
        rest = re.match(r"\W?\w*", found.group(1))
        yield "copy", rest.group() if rest else ""


def as_before(text: str, recent: Iterable[str]) -> Iterator[str]:
    """How earlier answers went on after the same characters, up to the next mark."""
    for earlier in recent:
        place = earlier.rfind(text[-FAMILIAR:])
        if len(text) >= FAMILIAR and place >= 0:
            yield earlier[place + FAMILIAR :].partition('"')[0]


def closings() -> Iterator[str]:
    """The texts that may end a value, the longest first."""
    for length in (4, 3, 2, 1):
        yield from map("".join, product('"}],', repeat=length))


def rank_functions(request: str, texts: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The names in `texts`, (name, description) each, by the rare words shared with the request.

    >>> rank_functions("the sum of 2 and 3", [("greet", "the greeting"), ("add", "the sum of two")])
    ('add', 'greet')
    """
    bags = [(name, stems(f"{name} {text}")) for name, text in texts]
    count = Counter(stem for _, bag in bags for stem in bag)
    asked = stems(request)
    ranked = sorted(bags, key=lambda bag: -sum(1 / count[stem] for stem in asked & bag[1]))
    return tuple(name for name, _ in ranked)


def stems(text: str) -> frozenset[str]:
    """The words of a text, cut to their beginnings so that `adds` is `add`."""
    words = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", text).lower())
    return frozenset(word[:5].rstrip("s") for word in words)
