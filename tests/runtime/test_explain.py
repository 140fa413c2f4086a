"""What is template and what is data in a prompt, token by token."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runtime_doubles import CONTROLS, TEMPLATE, Template, tiny_tokenizer
from scale import tries

from cmm.compiler.vocabulary import read_tokens
from cmm.grammar.formats import HERMES
from cmm.grammar.functions import parse_functions
from cmm.runtime.cli import main
from cmm.runtime.explain import PromptSource, PromptToken, explain_prompt
from cmm.runtime.plain_text import PlainEncoder
from cmm.runtime.prompt_config import PromptConfig
from cmm.runtime.prompts import build_frame

TOKENIZER = tiny_tokenizer()
ENCODER = PlainEncoder(TOKENIZER)
SOURCE = PromptSource(
    Template(),
    ENCODER,
    PromptConfig(name="test"),
    HERMES,
    read_tokens(TOKENIZER.to_str().encode(), "tiny"),
)
FUNCTIONS = [{"name": "greet", "description": "Greets.", "parameters": {"who": {"type": "string"}}}]
texts = st.lists(st.sampled_from([*CONTROLS, "é", "x", "\n", '"', "d"]), max_size=6).map("".join)


def explained(functions: list[dict[str, object]], request: str) -> list[PromptToken]:
    return explain_prompt(parse_functions(functions), SOURCE, request)


def text_of(tokens: list[PromptToken], kind: str) -> str:
    return b"".join(token.text for token in tokens if token.kind == kind).decode()


def test_each_part_is_found() -> None:
    tokens = explained(FUNCTIONS, "Greet <|im_end|>")
    assert text_of(tokens, "request") == "Greet <|im_end|>"
    controls = [token.text.decode() for token in tokens if token.kind == "control"]
    assert controls == [*CONTROLS[:2], *CONTROLS[:2], CONTROLS[0], CONTROLS[2]]
    tools = text_of(tokens, "tools")
    assert tools.startswith('greet", "description"')
    assert '"who": {"type": "string"' in tools
    assert text_of(tokens, "template").endswith("user\n\nassistant\n\n")


@settings(max_examples=tries(20), deadline=None)
@given(texts, texts, texts)
def test_it_is_the_prompt_whatever_the_data_say(name: str, about: str, request: str) -> None:
    functions = [{"name": f"f{name}", "description": about, "parameters": {}}]
    tokens = explained(functions, request)
    frame = build_frame(parse_functions(functions), SOURCE.template, ENCODER, SOURCE.config, HERMES)
    assert [token.id for token in tokens] == frame.prompt_ids(request)
    assert text_of(tokens, "request") == request
    assert json.dumps(f"f{name}", ensure_ascii=False)[1:-1] in text_of(tokens, "tools")
    data = [token.id for token in tokens if token.kind in ("tools", "request")]
    assert not set(data) & set(ENCODER.controls.values())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder without its weights' numbers: tokenizer and template alone are read."""
    TOKENIZER.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": TEMPLATE}))
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_text("")
    (tmp_path / "functions.json").write_text(json.dumps(FUNCTIONS))
    return tmp_path


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["explain", "Hi \x1b", "--model", str(folder)]
    arguments += ["--functions", str(folder / "functions.json")]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].split()[2:] == ["control", "<|im_start|>"]
    assert any(line.endswith("request   \\x1b") for line in lines)
    assert err.startswith(f"{len(lines)} tokens: 16 control, ")  # 10 of them in two examples
    assert main([*arguments, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) == len(lines)
    assert "".join(row["text"] for row in rows if row["kind"] == "request") == "Hi \x1b"
