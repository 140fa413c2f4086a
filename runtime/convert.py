"""Turn a GGUF file into a folder that loads in a moment: bfloat16 safetensors and tokenizer."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import struct
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any

from cmm.grammar.errors import CmmError, InvalidInput
from cmm.runtime.display import hush_transformers

MANIFEST = "converted.json"
# What reading a foreign binary file can end in.
READ_ERRORS = (
    ValueError, OSError, LookupError, RuntimeError, OverflowError, TypeError, MemoryError,
    struct.error,
)  # fmt: skip
PADDING = re.compile(r"\[PAD\d+\]")  # llama.cpp fills the vocabulary up to the rows of logits


def convert_gguf(gguf: Path, folder: Path) -> Path:
    """Convert once: the finished folder appears under its name as a whole, or not at all.

    Written beside it under a temporary name and renamed; if another process was faster, its
    folder is taken.
    """
    if is_complete(folder):
        return folder
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        write_folder(gguf, partial)
        write_manifest(partial)
        publish(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def check_gguf(path: Path) -> None:
    """Refuse what is no GGUF file, or not all of one, before minutes are spent on it."""
    try:
        with path.open("rb") as stream:
            if stream.read(4) != b"GGUF":
                raise InvalidInput("is no GGUF file", file=str(path))
        from gguf import GGUFReader

        GGUFReader(path)  # maps every tensor
    except READ_ERRORS as error:
        raise InvalidInput(
            f"is cut short or damaged: {first_line(error)}", file=str(path), advice="fetch it again"
        ) from error


def publish(partial: Path, folder: Path) -> None:
    """Give a finished folder its name, unless a complete one has it already."""
    if folder.exists() and not is_complete(folder):
        shutil.rmtree(folder, ignore_errors=True)
    try:
        os.rename(partial, folder)
    except OSError as error:
        if not is_complete(folder):
            raise CmmError(f"could not write {folder}: {error.strerror}") from error


def write_folder(gguf: Path, folder: Path) -> None:
    """Read the GGUF file with transformers and save it in bfloat16."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    hush_transformers()
    where: dict[str, Any] = {"gguf_file": gguf.name, "local_files_only": True}
    source = str(gguf.parent)
    try:
        with bars_on_terminals_only():
            tokenizer = AutoTokenizer.from_pretrained(source, **where)
            model: Any = AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16, **where)
    except READ_ERRORS as error:
        raise InvalidInput(
            f"cannot be read as a GGUF model: {first_line(error)}", file=str(gguf)
        ) from error
    model.is_quantized = False  # the weights are plain numbers now; saving would refuse otherwise
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    drop_padding(folder / "tokenizer.json")
    verify_folder(folder, len(model.state_dict()))


def verify_folder(folder: Path, tensors: int) -> None:
    """Open what was written: weights by their header, the tokenizer as a whole."""
    from safetensors import safe_open
    from tokenizers import Tokenizer

    found = 0
    for path in folder.glob("*.safetensors"):
        with safe_open(path, framework="np") as weights:
            found += len(weights.keys())
    tied = 1  # an output head that shares its weights is written once
    if not tensors - tied <= found <= tensors:
        raise CmmError(f"{folder}: {found} tensors were written, not {tensors}")
    Tokenizer.from_file(str(folder / "tokenizer.json"))


@contextmanager
def bars_on_terminals_only() -> Iterator[None]:
    """Hide the bars that the libraries draw whatever stderr is."""
    if sys.stderr.isatty():
        yield
        return
    with redirect_stderr(io.StringIO()):
        yield


def drop_padding(path: Path) -> None:
    """Take the padding words out of the vocabulary: a text must never be read as one of them."""
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    words = tokenizer["model"]["vocab"]
    if isinstance(words, dict):
        tokenizer["model"]["vocab"] = {w: i for w, i in words.items() if not PADDING.fullmatch(w)}
        path.write_text(json.dumps(tokenizer, ensure_ascii=False), encoding="utf-8")


def write_manifest(folder: Path) -> None:
    """Note each file's size, so that a folder that lost something is noticed."""
    sizes = {p.name: p.stat().st_size for p in sorted(folder.iterdir()) if p.is_file()}
    (folder / MANIFEST).write_text(json.dumps({"files": sizes}, indent=2), encoding="utf-8")


def is_complete(folder: Path) -> bool:
    """Does the folder hold all that the conversion wrote?"""
    try:
        sizes = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
