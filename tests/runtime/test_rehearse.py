"""A rehearsal passes what is right, and fails what is not."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cmm.grammar.functions import FunctionSchema, parse_functions
from cmm.runtime import command_rehearse, rehearse
from cmm.runtime.caller import FunctionCall
from cmm.runtime.cli import main
from cmm.runtime.rehearse import BAD_INPUT, Finding, bad_input, room

FUNCTIONS = parse_functions([{"name": "f", "parameters": {"n": {"type": "number"}}}])
VALUES = {"number": 1.5, "integer": 2, "boolean": True, "string": "today", "array": []}


class Answering:
    """Answers each prompt with the first function, right for its schema unless changed."""

    model = None

    def __init__(
        self, functions: Sequence[FunctionSchema], change: Callable[[Any, int], Any]
    ) -> None:
        self.functions, self.change, self.runs = functions, change, 0

    def call_many(self, prompts: Iterable[str]) -> Iterator[FunctionCall]:
        self.runs += 1
        first = self.functions[0]
        values = {k: VALUES[v["type"]] for k, v in first.parameters["properties"].items()}
        for prompt in prompts:
            call = FunctionCall(prompt=prompt, name=first.name, parameters=dict(values))
            if (changed := self.change(call, self.runs)) is not None:
                yield changed


def findings(change: Callable[[Any, int], Any]) -> dict[str, Finding]:
    caller: Any = Answering(FUNCTIONS, change)
    other: Any = lambda functions: Answering(functions, change)  # noqa: E731
    return {f.name: f for f in rehearse.rehearse(caller, ["a", "b"], other, lambda text: None)}


def with_arguments(**arguments: Any) -> Callable[[Any, int], Any]:
    return lambda call, run: call.model_copy(update={"parameters": arguments})


# (what the caller does, which findings fail)
CALLERS: list[tuple[Callable[[Any, int], Any], set[str]]] = [
    (lambda call, run: call, set()),
    (with_arguments(n=2), {"output", "prompts that match no function", "unseen functions"}),
    (with_arguments(), {"output", "prompts that match no function", "unseen functions"}),
    (lambda call, run: call if call.prompt != "b" else None, {"output"}),
    (lambda call, run: call if call.prompt else None, {"prompts that match no function"}),
    (
        lambda call, run: (
            call.model_copy(update={"parameters": {"n": 0.5 + run}})
            if call.prompt in "ab" and call.prompt
            else call
        ),
        {"three runs"},
    ),
]


@pytest.mark.parametrize(("change", "failing"), CALLERS)
def test_what_fails(change: Callable[[Any, int], Any], failing: set[str]) -> None:
    found = findings(change)
    assert {name for name, finding in found.items() if not finding.passed} == failing
    assert list(found) == [
        "time",
        "output",
        "three runs",
        "prompts that match no function",
        "unseen functions",
    ]


def test_a_slow_batch_is_foreseen_and_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 200.0, 390.0])
    monkeypatch.setattr(rehearse.time, "perf_counter", lambda: next(clock))
    said: list[str] = []
    caller: Any = Answering(FUNCTIONS, lambda call, run: call)
    first = next(rehearse.rehearse(caller, ["a", "b"], lambda functions: caller, said.append))
    assert not first.passed
    assert said == ["cmm: warning: 400 s are foreseen for all prompts, 300 allowed"]
    assert "2 calls in 390.0 s, 400 s foreseen" in first.evidence


def test_all_bad_input_is_refused() -> None:
    finding = bad_input(main)
    assert finding.passed, finding.evidence
    assert finding.evidence.startswith(f"{len(BAD_INPUT)} of {len(BAD_INPUT)} refused")


def crash(arguments: Sequence[str]) -> int:
    raise KeyError("x")


def chatty(arguments: Sequence[str]) -> int:
    print("cmm:\n", arguments[2], file=sys.stderr)
    return 2


@pytest.mark.parametrize(
    ("command", "seen"),
    [(crash, "a traceback of KeyError"), (chatty, "2 lines"), (lambda arguments: 0, "exit code 0")],
)
def test_bad_input_that_is_not_refused(command: Callable[[Sequence[str]], int], seen: str) -> None:
    finding = bad_input(command)
    assert not finding.passed
    assert finding.evidence.count(seen) == len(BAD_INPUT)


def test_room_is_looked_for_before_anything_is_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CMM_MODELS_DIR", str(tmp_path / "none" / "yet"))
    assert "smollm2-135m is to be fetched" in room("smollm2-135m").evidence
    monkeypatch.setattr(rehearse, "free_memory", lambda: 2**30)
    assert not room("smollm2-135m").passed
    monkeypatch.setattr(
        command_rehearse, "make_caller", lambda *_: pytest.fail("a model was loaded")
    )
    (tmp_path / "f.json").write_text(json.dumps([{"name": "f", "parameters": {}}]))
    (tmp_path / "p.json").write_text('["a"]')
    files = [
        "--functions_definition",
        str(tmp_path / "f.json"),
        "--input",
        str(tmp_path / "p.json"),
    ]
    assert main(["rehearse", *files, "--model", "smollm2-135m"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("FAIL  disk and memory: smollm2-135m is to be fetched; ")
    assert out.splitlines()[1].startswith("pass  bad input: ")
