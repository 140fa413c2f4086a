"""What happened in a run, token by token: for a page to look at, and how sure each choice was."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cmm.compiler.utf8 import written_as
from cmm.runtime.choose import StateId, TokenId
from cmm.runtime.observe import Decision, Observer

if TYPE_CHECKING:
    from cmm.runtime.caller import FunctionCall


@dataclass
class Row:
    """One call on its way: the decisions, and the seconds after which each token was there."""

    prompt: str
    decisions: dict[int, Decision] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)


class Recorder(Observer):
    """Keeps the decisions of a run. With `all_logits` also what the model alone would say."""

    def __init__(self, *, all_logits: bool = False) -> None:
        self.all_logits = all_logits
        self._calls: dict[int, dict[str, Any]] = {}  # finished, as JSON values
        self._rows: dict[int, Row] = {}
        self._states: dict[StateId, int] = {}  # as they are met
        self._began = time.perf_counter()

    def asked(self, number: int, prompt: str) -> None:
        """A request was read."""
        self._rows[number] = Row(prompt)

    def decided(self, number: int, decision: Decision) -> None:
        """The model chose a token."""
        self._rows[number].decisions[decision.place] = decision

    def wrote(self, number: int, answer: Sequence[TokenId]) -> None:
        """An answer has these tokens now."""
        seconds = self._rows[number].seconds
        new = len(answer) - len(seconds)
        seconds += [round(time.perf_counter() - self._began, 4)] * new

    def answered(self, number: int, call: FunctionCall, answer: Sequence[TokenId]) -> None:
        """A call is finished: its row becomes JSON values."""
        row = self._rows.pop(number)
        steps = list(self._steps(row, answer))
        self._calls[number] = {
            "prompt": row.prompt, "call": str(call), "function": call.name, "steps": steps,
            "sure": self._sureness(row, answer),
        }  # fmt: skip

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The finished calls in the order of their requests, not in that of their ends."""
        return [self._calls[number] for number in sorted(self._calls)]

    def _steps(self, row: Row, answer: Sequence[TokenId]) -> Iterator[dict[str, Any]]:
        for place, token in enumerate(answer):
            made = row.decisions.get(place)
            step: dict[str, Any] = {"text": self._text(token), "seconds": row.seconds[place]}
            if made is None:
                yield {**step, "kind": "forced", "allowed": 1}
                continue
            step |= {"kind": "drafted" if made.drafted else "decided", "allowed": made.allowed}
            step |= {"margin": finite(made.margin)}
            step["state"] = self._states.setdefault(made.state, len(self._states))
            if made.free is not None:
                step |= {"free": self._text(made.free), "changed": made.free != token}
            yield step

    def _sureness(self, row: Row, answer: Sequence[TokenId]) -> dict[str, Any]:
        texts = [written_as([self.tokens[token]]) for token in answer]
        written = b"".join(texts).decode("utf-8", "ignore")
        place = self.read(written).place
        name = range(*(len(written[:end].encode()) for end in (place.start, place.stop)))
        return sureness(row.decisions, texts, name)

    def _text(self, token: TokenId) -> str:
        """A token to read; rows that are no token by their number."""
        text = written_as([self.tokens[token]] if token < len(self.tokens) else ())
        return text.decode("utf-8", "backslashreplace") or f"<no token: {token}>"


def finite(number: float) -> float | None:
    """A number for JSON; none where there was no runner-up."""
    return round(number, 4) if math.isfinite(number) else None


def sureness(decisions: dict[int, Decision], texts: Sequence[bytes], name: range) -> dict[str, Any]:
    """The least lead over a runner-up, at the function's name (its bytes) and in the whole call.

    Leads are differences of logits: 1 means about 2.7 times as likely. Where nothing was to be
    decided there is none.
    """
    at_name, overall, end = [], [], 0
    for place, text in enumerate(texts):
        start, end = end, end + len(text)
        if place in decisions:
            overall.append(decisions[place].margin)
            if start <= name.stop and name.start < end:
                at_name.append(decisions[place].margin)
    return {
        "function_margin": finite(min(at_name, default=math.inf)),
        "least_margin": finite(min(overall, default=math.inf)),
    }


def report(calls: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """How sure each call is, without the tokens."""
    return [{"prompt": c["prompt"], "name": c["function"], **c["sure"]} for c in calls]
