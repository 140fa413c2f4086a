"""`cmm run` around a scripted caller: order, journal, what is kept when it is stopped."""

from __future__ import annotations

import io
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scale import tries

from cmm.grammar.errors import CmmError
from cmm.runtime import command_run
from cmm.runtime.caller import FunctionCall, PromptTooLong
from cmm.runtime.cli import main
from cmm.runtime.files import write_whole

KILLS = tries(2)


class Scripted:
    """Finishes prompts three by three, the last one first; then perhaps raises."""

    forwards = 7
    model = SimpleNamespace(name="scripted")

    def __init__(self, error: BaseException | None = None, after: int = 0) -> None:
        self.error = error
        self.after = after  # how many calls are finished before it raises
        self.asked: list[str] = []
        self.identity: dict[str, Any] = {"functions": [], "model": "m", "configuration": {}}

    def stream(
        self, prompts: Iterable[str], refuse: Callable[[int, CmmError], None]
    ) -> Iterator[tuple[int, FunctionCall]]:
        rows: list[tuple[int, str]] = []
        for index, text in enumerate(prompts):
            if text == "long":
                refuse(index, PromptTooLong('"long" is 9 tokens long'))
                continue
            rows.append((index, text))
            if len(rows) == 3:
                yield from self._finish(rows)
        yield from self._finish(rows)

    def _finish(self, rows: list[tuple[int, str]]) -> Iterator[tuple[int, FunctionCall]]:
        while rows:
            if self.error and len(self.asked) == self.after:
                raise self.error
            index, text = rows.pop()
            self.asked.append(text)
            yield index, FunctionCall(prompt=text, name="f", parameters={"n": 2.0})


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `cmm run` with a caller on the prompts of a file of the folder."""

    def run_with(caller: Scripted, *options: str, prompts: str = '["a", "b", "c"]') -> int:
        monkeypatch.setattr(command_run, "make_caller", lambda functions, options: caller)
        (tmp_path / "prompts.json").write_text(prompts)
        output = tmp_path / "new" / "calls.json"
        given = ["--input", str(tmp_path / "prompts.json"), "--output", str(output)]
        return main(["run", *given, *options])

    return run_with


def calls_of(*prompts: str) -> list[dict[str, Any]]:
    return [{"prompt": text, "name": "f", "parameters": {"n": 2.0}} for text in prompts]


def written(folder: Path) -> Any:
    return json.loads((folder / "new" / "calls.json").read_text())


def test_calls_are_written_in_the_order_of_the_prompts(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Scripted()) == 0
    assert written(tmp_path) == calls_of("a", "b", "c")
    assert os.listdir(tmp_path / "new") == ["calls.json"]
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("f(n=2.0)\nf(n=2.0)\nf(n=2.0)\n3 calls in ")
    for part in ("7 forward passes", "model scripted", "calls.json"):
        assert part in err


def test_legacy_keys_in_a_file_and_in_a_stream(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [{"prompt": text, "fn_name": "f", "args": {"n": 2.0}} for text in "abc"]
    assert run(Scripted(), "--keys", "legacy") == 0
    assert written(tmp_path) == wanted
    capsys.readouterr()
    assert run(Scripted(), "--keys", "legacy", "--output", "-") == 0
    assert json.loads(capsys.readouterr().out) == wanted


@pytest.mark.parametrize("name", ["functions_definition.json", "function_definitions.json"])
def test_default_functions_are_found_under_both_spellings(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data" / "input").mkdir(parents=True)
    (tmp_path / "data" / "input" / name).write_text('[{"name": "only", "parameters": {}}]')
    assert [f.name for f in command_run.read_functions(None, Namespace(artifact=None))] == ["only"]


def test_no_prompt_no_call(tmp_path: Path, run: Callable[..., int]) -> None:
    assert run(Scripted(), prompts="[]") == 0
    assert (tmp_path / "new" / "calls.json").read_text() == "[]\n"


def test_a_prompt_that_is_too_long_is_named_and_the_others_answered(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Scripted(), prompts='["a", "long", "b"]') == 1
    assert written(tmp_path) == calls_of("a", "b")
    assert 'prompts.json @ /1: "long" is 9 tokens long' in capsys.readouterr().err


def test_after_ctrl_c_what_is_done_is_written_and_the_same_command_goes_on(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(Scripted(KeyboardInterrupt(), after=2)) == 130
    assert written(tmp_path) == calls_of("b", "c")
    err = capsys.readouterr().err
    assert err.endswith("cmm: stopped; 2 of 3 calls are written, the same command goes on\n")
    again = Scripted()
    assert run(again) == 0
    assert again.asked == ["a"]
    assert written(tmp_path) == calls_of("a", "b", "c")
    assert "going on after 2 calls" in capsys.readouterr().err
    assert os.listdir(tmp_path / "new") == ["calls.json"]


@pytest.mark.parametrize("after", [0, 2])
def test_the_old_output_survives_a_failure(
    after: int, tmp_path: Path, run: Callable[..., int]
) -> None:
    run(Scripted(), prompts='["x"]')
    assert run(Scripted(CmmError("broken"), after=after)) == 2
    assert written(tmp_path) == calls_of("x")
    again = Scripted()
    assert run(again, "--resume") == 0
    assert len(again.asked) == 3 - after
    assert written(tmp_path) == calls_of("a", "b", "c")


@pytest.mark.parametrize("changed", ["functions", "model", "configuration", "prompts"])
def test_nothing_is_mixed(
    changed: str, tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Another run's journal is refused with --resume, and set aside without."""
    run(Scripted(KeyboardInterrupt(), after=2))
    other = Scripted()
    prompts = '["a", "b", "d"]' if changed == "prompts" else '["a", "b", "c"]'
    if changed != "prompts":
        other.identity[changed] = "another"
    capsys.readouterr()
    assert run(other, "--resume", prompts=prompts) == 2
    journal = tmp_path / "new" / "calls.json.journal"
    assert f"{journal}: is of another run: the {changed} changed since" in capsys.readouterr().err
    assert other.asked == []
    assert run(other, prompts=prompts) == 0
    assert len(other.asked) == 3
    assert f"beginning anew, for the {changed} changed" in capsys.readouterr().err
    assert sorted(os.listdir(tmp_path / "new")) == ["calls.json", "calls.json.journal.old"]


@pytest.mark.parametrize(
    ("keep", "added", "asked"),
    [
        (1.0, b"", 1), (1.0, b'{"index": 0, "call": {"pro', 1), (1.0, b"\0" * 90, 1), (0.9, b"", 2), (0.3, b"", 3), (0.0, b"", 3),
    ],
)  # fmt: skip
def test_a_torn_journal_counts_as_far_as_it_is_whole(
    keep: float, added: bytes, asked: int, tmp_path: Path, run: Callable[..., int]
) -> None:
    run(Scripted(KeyboardInterrupt(), after=2))
    journal = tmp_path / "new" / "calls.json.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole[: int(len(whole) * keep)] + added)
    again = Scripted()
    assert run(again) == 0
    assert len(again.asked) == asked
    assert written(tmp_path) == calls_of("a", "b", "c")


GOOD = {"prompt": "a", "name": "f", "parameters": {}}


@pytest.mark.parametrize(
    "line",
    [
        b"7", b"null", b"no JSON", b"[" * 100_000, b'{"index": 0}', b'["prompt"]',
        *(json.dumps({"index": index, "call": GOOD}).encode() for index in (-5, 999, 3, True, None, "0", 0.0, 2)),
        *(json.dumps({"index": 0, "call": call}).encode()
          for call in (None, 3, "prompt", ["prompt"], {}, {"prompt": "a"}, {**GOOD, "parameters": 3},
                       {**GOOD, "name": None}, {**GOOD, "prompt": 1}, {**GOOD, "more": 1})),
    ],
    ids=lambda line: line[:60],
)  # fmt: skip
@pytest.mark.parametrize("input_name", ["prompts.json", "prompts.jsonl"])
def test_a_damaged_journal_is_used_up_to_its_last_good_line(
    line: bytes, input_name: str, tmp_path: Path, run: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "prompts.jsonl").write_text('"a"\n"b"\n"c"\n')
    source = ("--input", str(tmp_path / input_name))
    run(Scripted(KeyboardInterrupt(), after=2), *source)  # prompts 2 and 1 are answered
    journal = tmp_path / "new" / "calls.json.journal"
    head, *calls = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([head, calls[0], line + b"\n", *calls[1:]]))
    capsys.readouterr()
    again = Scripted()
    assert run(again, *source) == 0
    assert written(tmp_path) == calls_of("a", "b", "c")
    known_to_be_none = input_name == "prompts.json" or not line.startswith(
        (b'{"index": 999,', b'{"index": 3,')
    )
    if known_to_be_none:
        assert again.asked == ["b", "a"]
        assert f"{journal} is damaged from line 3 on" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", [b"mine\n", b"mine", b"[]\n", b'{"a": 1}\n', b"[" * 99_999, b"\n"]
)
@pytest.mark.parametrize("option", [(), ("--resume",)])
@pytest.mark.parametrize("ending", ["", ".old"])
def test_a_file_that_only_has_the_name_of_a_journal_stays(
    content: bytes, option: tuple[str, ...], ending: str, tmp_path: Path,
    run: Callable[..., int], capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    if ending:
        run(Scripted(KeyboardInterrupt(), after=2), prompts='["x", "y", "z"]')  # to be set aside
        option = ()
    mine = tmp_path / "new" / f"calls.json.journal{ending}"
    mine.parent.mkdir(exist_ok=True)
    mine.write_bytes(content)
    capsys.readouterr()
    assert run(Scripted(), *option) == 2
    assert capsys.readouterr().err.startswith(f"cmm: {mine}: is no journal of a run")
    assert mine.read_bytes() == content


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_no_journal(
    make: Callable[[Path], None], tmp_path: Path, run: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "new").mkdir()
    make(tmp_path / "new" / "calls.json.journal")
    assert run(Scripted()) == 2
    assert "is no journal of a run" in capsys.readouterr().err


def test_two_names_of_one_output_have_one_journal(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "link.json").symlink_to("new/calls.json")

    class Second(Scripted):
        def stream(self, prompts: Iterable[str], refuse: Any) -> Iterator[tuple[int, FunctionCall]]:
            assert run(Scripted(), "--output", str(tmp_path / "link.json")) == 2
            assert "another run is writing to it" in capsys.readouterr().err
            return super().stream(prompts, refuse)

    assert run(Second()) == 0
    assert written(tmp_path) == calls_of("a", "b", "c")


READ = {
    "functions.json": ["--functions_definition", "functions.json"],
    "prompts.json": [],
    "config.json": ["--prompts-config", "config.json"],
    "table.cmm": ["--artifact", "table.cmm"],
    "model/tokenizer.json": ["--model", "model"],
    "model.gguf": ["--model", "model.gguf"],
}
WRITTEN = ("--output", "--report", "--trace")


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize("option", WRITTEN)
@pytest.mark.parametrize("name", READ)
def test_no_input_is_written_over(
    name: str, option: str, link: Callable[[Path, Path], None] | None, tmp_path: Path,
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("model").mkdir()
    Path(name).write_text("mine")
    given = Path(name)
    if link is not None:
        given = tmp_path / "link"
        link(Path(name).absolute(), given)
    prompts = "mine" if name == "prompts.json" else '["a"]'
    assert run(Scripted(), *READ[name], option, str(given), prompts=prompts) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"cmm: {given}: {option} would write over ")
    assert name in err
    assert Path(name).read_text() == "mine"


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize(("one", "other"), [(a, b) for a in WRITTEN for b in WRITTEN if a < b])
def test_no_output_is_written_over_another(
    one: str, other: str, link: bool, tmp_path: Path, run: Callable[..., int],
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to("both.json")
    caller = Scripted()
    assert run(caller, one, "both.json", other, "link" if link else "./both.json") == 2
    assert "would write over" in capsys.readouterr().err
    assert not caller.asked
    assert not Path("both.json").exists()


@pytest.mark.parametrize("name", ["calls.json.journal", "calls.json.journal.old"])
@pytest.mark.parametrize("option", ["--input", "--functions_definition", "--report"])
def test_no_file_is_the_journal(
    option: str, name: str, tmp_path: Path, run: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    path = tmp_path / "new" / name
    path.parent.mkdir()
    path.write_text("mine")
    assert run(Scripted(), option, str(path)) == 2
    assert "would write over" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_devices_stay_what_they_are(tmp_path: Path, run: Callable[..., int]) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reader.start()
    write_whole(fifo, ["a", "b"])
    reader.join()
    assert read == ["ab"]
    assert fifo.is_fifo()


def test_two_runs_do_not_write_to_one_output(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    class Second(Scripted):
        def stream(self, prompts: Iterable[str], refuse: Any) -> Iterator[tuple[int, FunctionCall]]:
            assert run(Scripted()) == 2
            assert "another run is writing to it" in capsys.readouterr().err
            return super().stream(prompts, refuse)

    assert run(Second()) == 0
    assert written(tmp_path) == calls_of("a", "b", "c")


KILLED = """
import sys, time
from cmm.runtime import command_run
from cmm.runtime.cli import main
from types import SimpleNamespace

class Call(dict):  # without torch: it starts at once
    model_dump = dict.copy

class Slow:
    forwards = 0
    model = SimpleNamespace(name="slow")
    identity = {"functions": [], "model": "slow", "configuration": {}}

    def stream(self, prompts, refuse):
        with open("asked", "a", buffering=1) as asked:
            for index, text in enumerate(prompts):
                asked.write(text + "\\n")
                time.sleep(0.002)
                yield index, Call(prompt=text, name="f", parameters={"n": len(text) / 7})

command_run.make_caller = lambda functions, options: Slow()
print("ready", flush=True)
sys.exit(main(["run", "--input", "prompts.json", "--output", "calls.json"]))
"""


def test_kill_at_any_moment_loses_nothing(tmp_path: Path) -> None:
    """No finished call is computed twice, and the file is that of an undisturbed run."""
    (tmp_path / "prompts.json").write_text(json.dumps([f"prompt {'é' * i}" for i in range(200)]))
    started = lambda: subprocess.Popen(  # noqa: E731
        [sys.executable, "-c", KILLED],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert started().wait() == 0
    undisturbed = (tmp_path / "calls.json").read_bytes()
    dice = random.Random(7)
    kills = 0
    while kills < KILLS:
        (tmp_path / "calls.json").write_text("old")
        while True:
            (tmp_path / "asked").write_text("")
            done = finished_calls(tmp_path / "calls.json.journal")
            process = started()
            assert process.stdout
            process.stdout.readline()
            time.sleep(dice.uniform(0, 0.4))
            process.send_signal(signal.SIGKILL)
            code = process.wait()
            kills += code != 0
            assert not done & set((tmp_path / "asked").read_text().splitlines())
            if code == 0:
                break
            now = (tmp_path / "calls.json").read_bytes()
            assert now in (b"old", undisturbed)
            if now == undisturbed and not (tmp_path / "calls.json.journal").exists():
                break  # killed after its work
        assert (tmp_path / "calls.json").read_bytes() == undisturbed


def finished_calls(journal: Path) -> set[str]:
    lines = journal.read_bytes().splitlines(keepends=True)[1:] if journal.exists() else []
    return {json.loads(line)["call"]["prompt"] for line in lines if line.endswith(b"\n")}


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ('["a", "b", "c"]', json.dumps(calls_of("a", "b", "c"), indent=2) + "\n"),
        ('"a"\n{"prompt": "b"}\n', "".join(json.dumps(c) + "\n" for c in calls_of("a", "b"))),
        ("", ""),
    ],
)
def test_stdin_to_stdout(
    given: str,
    output: str,
    run: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
    assert run(Scripted(), "--input", "-", "--output", "-") == 0
    assert capsys.readouterr().out == output


def test_pipes(tmp_path: Path, run: Callable[..., int]) -> None:
    """A named pipe in, another out."""
    for name in ("in", "out"):
        os.mkfifo(tmp_path / name)
    writer = threading.Thread(target=lambda: (tmp_path / "in").write_text('"a"\n"b"\n'))
    found: list[str] = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "out").read_text()))
    writer.start()
    reader.start()
    assert run(Scripted(), "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out")) == 0
    writer.join()
    reader.join()
    assert [json.loads(line) for line in found[0].splitlines()] == calls_of("a", "b")


def test_lines_are_read_as_they_are_needed(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """What comes before a broken line is answered, and not asked again once it is mended."""
    lines = tmp_path / "in.jsonl"
    output = tmp_path / "out.jsonl"
    given = ["--input", str(lines), "--output", str(output)]
    lines.write_text('"a"\n"b"\n"c"\n{"prompt": 3}\n"e"\n')
    assert run(Scripted(), *given) == 2
    assert "in.jsonl @ line 4 /prompt: a prompt must be a text" in capsys.readouterr().err
    assert not output.exists()
    lines.write_text('"a"\n"b"\n"c"\n"d"\n"e"\n')
    again = Scripted()
    assert run(again, *given) == 0
    assert sorted(again.asked) == ["d", "e"]
    assert [json.loads(line) for line in output.read_text().splitlines()] == calls_of(*"abcde")


def test_lines_that_changed_are_noticed(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "in.jsonl"
    given = ["--input", str(lines), "--output", str(tmp_path / "out.jsonl")]
    lines.write_text('"a"\n"b"\n"c"\n"d"\n')
    assert run(Scripted(KeyboardInterrupt(), after=3), *given) == 130
    lines.write_text('"a"\n"x"\n"c"\n"d"\n')
    assert run(Scripted(), *given) == 2
    message = "in.jsonl @ line 2: is not the prompt that was answered before"
    assert message in capsys.readouterr().err


def test_a_link_stays_a_link(tmp_path: Path, run: Callable[..., int]) -> None:
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "calls.json").symlink_to(tmp_path / "real.json")
    assert run(Scripted()) == 0
    assert (tmp_path / "new" / "calls.json").is_symlink()
    assert json.loads((tmp_path / "real.json").read_text()) == calls_of("a", "b", "c")


def test_ten_thousand_lines_in_flat_memory(tmp_path: Path, run: Callable[..., int]) -> None:
    """What is held does not grow with the calls, but for where each begins in the journal."""
    import tracemalloc

    peaks = []
    for count in (500, 10_000):
        lines = tmp_path / f"{count}.jsonl"
        lines.write_text("".join(f'"prompt {i:06} {"x" * 300}"\n' for i in range(count)))
        caller = Scripted()
        caller.asked = Forgetful()
        tracemalloc.start()
        assert run(caller, "--input", str(lines), "--output", str(tmp_path / "out.jsonl")) == 0
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 300 * 10_000 / 2


class Forgetful(list[str]):
    """Notes nothing."""

    def append(self, text: str) -> None: ...
