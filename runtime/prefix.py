"""The keys and values of a prompt's head on disk, so that it is read once per machine."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cmm.compiler.artifact import FORMAT, Arrays, DamagedFile, read_arrays, write_arrays
from cmm.compiler.cache import cache_dir, make_room, touch
from cmm.runtime.choose import TokenId

LIMIT = 512 * 2**20  # bytes of all files together; the longest unused go first
AS_INTEGERS = {torch.bfloat16: torch.int16, torch.float16: torch.int16, torch.float32: torch.int32}

State = list[tuple[Tensor, Tensor]]  # keys and values of each layer, (1, heads, tokens, size)


class PrefixFile:
    """The file of one head for one model, dtype and version of what computes it."""

    def __init__(self, model: str, dtype: torch.dtype, head: Sequence[TokenId]) -> None:
        made_by = [FORMAT, version("torch"), version("transformers"), torch.get_num_threads()]
        about = json.dumps([model, str(dtype), list(head), made_by])
        key = hashlib.sha256(about.encode()).hexdigest()
        self.path = cache_dir() / f"prefix-{key[:32]}.safetensors"
        self._key, self._dtype, self._tokens = key, dtype, len(head)

    def load(self) -> State | None:
        """What was saved, if it is there and whole; a file that is not is made again."""
        try:
            arrays, header = read_arrays(self.path)
            if header.get("prefix") != self._key:
                raise DamagedFile("it belongs to another prompt")
            state = [self._layer(arrays, i) for i in range(len(arrays) // 2)]
            touch(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, DamagedFile, KeyError) as error:
            warnings.warn(f"{self.path} is made again: {error}", stacklevel=2)
            return None
        return state

    def _layer(self, arrays: Arrays, i: int) -> tuple[Tensor, Tensor]:
        keys, values = (self._tensor(arrays[f"{kind}.{i}"]) for kind in ("keys", "values"))
        if keys.shape[-2] != self._tokens or values.shape[-2] != self._tokens:
            raise DamagedFile("it holds another number of tokens")
        return keys, values

    def _tensor(self, array: np.ndarray) -> Tensor:
        if array.ndim != 4 or array.dtype.itemsize != self._dtype.itemsize:
            raise DamagedFile("it holds numbers of another kind")
        return torch.from_numpy(array.copy()).view(self._dtype)  # a mapped file cannot be written

    def save(self, state: State) -> None:
        """Keep the state, unless there is no place for it."""
        kind = AS_INTEGERS.get(self._dtype)
        size = sum(tensor.nbytes for layer in state for tensor in layer)
        if kind is None or size > LIMIT:
            return
        arrays = {
            f"{name}.{i}": tensor.contiguous().view(kind).numpy()
            for i, layer in enumerate(state)
            for name, tensor in zip(("keys", "values"), layer, strict=True)
        }
        try:
            make_room(size, "prefix", LIMIT)
            write_arrays(self.path, (arrays, {"prefix": self._key}))
        except OSError as error:
            text = f"nothing is cached: {self.path.parent}: {error.strerror}"
            warnings.warn(text, stacklevel=2)


def model_digest(folder: Path) -> str:
    """A digest of what a model's files are: configuration, and size and time of the weights."""
    about: list[object] = [(folder / "config.json").read_bytes().hex()]
    for path in sorted(folder.glob("*.safetensors")):
        stat = path.stat()
        about.append([path.name, stat.st_size, stat.st_mtime_ns, stat.st_ino])
    return hashlib.sha256(json.dumps(about).encode()).hexdigest()
