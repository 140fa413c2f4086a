"""The recording of a run, its page in a browser, and the report."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cmm.grammar import HERMES
from cmm.grammar.call_format import Written
from cmm.runtime import command_run
from cmm.runtime.caller import FunctionCall
from cmm.runtime.cli import main
from cmm.runtime.observe import Decision, Observer
from cmm.runtime.record import Recorder, report
from cmm.runtime.trace_page import trace_page

TOKENS = [b'{"name": "', b"f_", b"</script><b>", b"g", b'", "arguments": {}}', b"", b"\xc3"]
ANSWER = [0, 1, 3, 4]
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)


def play(observer: Observer) -> None:
    """One call of f_g: the name in two tokens, the second of which the model alone would not say."""
    observer.tokens = TOKENS
    observer.read = HERMES.reader([])
    observer.asked(0, "Do <b>g</b> </script>")
    observer.wrote(0, ANSWER[:1])
    observer.decided(0, Decision(1, 1, "s", 2, 3.0, True, 1))
    observer.wrote(0, ANSWER[:2])
    observer.decided(0, Decision(2, 3, "t", 2, 0.25, False, 2))
    observer.wrote(0, ANSWER[:3])
    observer.decided(0, Decision(3, 4, "s", 9, float("inf"), False, 5))
    observer.wrote(0, ANSWER)
    call = FunctionCall(prompt="Do <b>g</b> </script>", name="f_g", parameters={})
    observer.answered(0, call, ANSWER)


def recorded() -> list[dict[str, Any]]:
    recorder = Recorder(all_logits=True)
    play(recorder)
    return recorder.calls


def test_each_token_is_told_of() -> None:
    [call] = recorded()
    steps = [{k: v for k, v in step.items() if k != "seconds"} for step in call["steps"]]
    assert steps == [
        {"text": '{"name": "', "kind": "forced", "allowed": 1},
        {
            "text": "f_",
            "kind": "drafted",
            "allowed": 2,
            "margin": 3.0,
            "state": 0,
            "free": "f_",
            "changed": False,
        },
        {
            "text": "g",
            "kind": "decided",
            "allowed": 2,
            "margin": 0.25,
            "state": 1,
            "free": "</script><b>",
            "changed": True,
        },
        {
            "text": '", "arguments": {}}',
            "kind": "decided",
            "allowed": 9,
            "margin": None,
            "state": 0,
            "free": "<no token: 5>",
            "changed": True,
        },
    ]
    seconds = [step["seconds"] for step in call["steps"]]
    assert seconds == sorted(seconds)


def test_calls_stand_in_the_order_of_their_requests() -> None:
    recorder = Recorder()
    recorder.tokens, recorder.read = [], lambda text: Written("f", range(0))
    for number in (0, 1):
        recorder.asked(number, str(number))
    for number in (1, 0):
        recorder.answered(number, FunctionCall(prompt="", name="f", parameters={}), [])
    assert [call["prompt"] for call in recorder.calls] == ["0", "1"]


def test_the_report_says_how_sure_each_call_was() -> None:
    assert report(recorded()) == [
        {
            "prompt": "Do <b>g</b> </script>",
            "name": "f_g",
            "function_margin": 0.25,
            "least_margin": 0.25,
        }
    ]


def test_the_page_holds_the_run_and_nothing_from_elsewhere() -> None:
    page = trace_page(recorded(), "m")
    [data] = re.findall(r'<script type="application/json" id="run">(.*?)</script>', page, re.S)
    assert json.loads(data) == {"model": "m", "calls": recorded_without_time(json.loads(data))}
    assert "<" not in data
    assert not re.search(r"https?:|src=|@import|url\(", page)


def recorded_without_time(run: dict[str, Any]) -> list[dict[str, Any]]:
    """The same run again, with the times of the first."""
    calls = recorded()
    for one, other in zip(calls[0]["steps"], run["calls"][0]["steps"], strict=True):
        one["seconds"] = other["seconds"]
    return calls


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here to open the page")
def test_a_browser_draws_the_page(tmp_path: Path) -> None:
    page = tmp_path / "trace.html"
    page.write_text(trace_page(recorded(), "m"), encoding="utf-8")
    assert BROWSER
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile"]
    command = [BROWSER, *flags, "--dump-dom", f"{page.as_uri()}#1.3"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    drawn = done.stdout
    assert '<h2 id="call">f_g()</h2>' in drawn
    assert "Do &lt;b&gt;g&lt;/b&gt; &lt;/script&gt;" in drawn
    assert '<span class="decided changed now">g</span>' in drawn
    assert "<th>the model alone</th><td>&lt;/script&gt;&lt;b&gt;</td>" in drawn
    assert "4 tokens, mind changed 2×" in drawn


class Played:
    """A caller that plays the one call to whoever watches."""

    forwards = 1
    model = SimpleNamespace(name="played")
    identity: dict[str, Any] = {}  # noqa: RUF012

    def watch(self, observer: Observer) -> None:
        self.observer = observer

    def stream(self, prompts: Any, refuse: Any) -> Any:
        for index, prompt in enumerate(prompts):
            play(self.observer)
            yield index, FunctionCall(prompt=prompt, name="f_g", parameters={})


def test_the_options_of_cmm_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_run, "make_caller", lambda functions, options: Played())
    (tmp_path / "p.json").write_text('["x"]')
    names = {name: tmp_path / name for name in ("calls.json", "t.html", "r.json")}
    files = ["--input", str(tmp_path / "p.json"), "--output", str(names["calls.json"])]
    files += ["--trace", str(names["t.html"]), "--report", str(names["r.json"])]
    assert main(["run", *files]) == 0
    assert "f_g()" in names["t.html"].read_text()
    assert json.loads(names["r.json"].read_text())[0]["least_margin"] == 0.25
    assert json.loads(names["calls.json"].read_text()) == [
        {"prompt": "x", "name": "f_g", "parameters": {}}
    ]


def test_files_that_cannot_be_written_are_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_run, "make_caller", lambda *_: pytest.fail("a model was loaded"))
    assert main(["call", "Hi", "--trace", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
