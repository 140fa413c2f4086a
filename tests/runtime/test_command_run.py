"""`cmm run` around a scripted caller: order, what is kept when it is stopped, what is said."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from cmm.grammar.errors import CmmError
from cmm.runtime import command_run
from cmm.runtime.caller import FunctionCall
from cmm.runtime.cli import main


class Scripted:
    """Finishes prompts last to first, then perhaps raises."""

    forwards = 7
    model = SimpleNamespace(name="scripted")

    def __init__(self, error: BaseException | None = None, before: int = 0) -> None:
        self.error = error
        self.before = before  # how many prompts are left when it raises

    def stream(self, prompts: Sequence[str]) -> Iterator[tuple[int, FunctionCall]]:
        for index in reversed(range(len(prompts))):
            if self.error and index < self.before:
                raise self.error
            yield index, FunctionCall(prompt=prompts[index], name="f", parameters={"n": 2.0})


def run_with(caller: Scripted, folder: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(command_run, "make_caller", lambda functions, options: caller)
    (folder / "prompts.json").write_text('["a", "b", "c"]')
    output = folder / "new" / "calls.json"
    return main(["run", "--input", str(folder / "prompts.json"), "--output", str(output)])


def test_calls_are_written_in_the_order_of_the_prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_with(Scripted(), tmp_path, monkeypatch) == 0
    calls = json.loads((tmp_path / "new" / "calls.json").read_text())
    assert calls == [{"prompt": p, "name": "f", "parameters": {"n": 2.0}} for p in "abc"]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("f(n=2.0)\nf(n=2.0)\nf(n=2.0)\n3 calls in ")
    for part in ("7 forward passes", "model scripted", "calls.json"):
        assert part in err


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt(), 130), (CmmError("broken"), 2)])
def test_what_is_done_is_kept(
    error: BaseException, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_with(Scripted(error, before=1), tmp_path, monkeypatch) == code
    calls = json.loads((tmp_path / "new" / "calls.json").read_text())
    assert [call["prompt"] for call in calls] == ["b", "c"]


def test_a_failure_before_the_first_call_keeps_the_old_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_with(Scripted(), tmp_path, monkeypatch)
    before = (tmp_path / "new" / "calls.json").read_bytes()
    assert run_with(Scripted(CmmError("broken"), before=3), tmp_path, monkeypatch) == 2
    assert (tmp_path / "new" / "calls.json").read_bytes() == before
