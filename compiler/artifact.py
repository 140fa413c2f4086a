"""Files of arrays: safetensors with a JSON header, verified when read, written whole or not."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save

from cmm.grammar.errors import InvalidInput

Arrays = Mapping[str, npt.NDArray[Any]]
Packed = tuple[Arrays, Mapping[str, Any]]  # arrays and header
HEADER = "cmm"  # our JSON in the file's metadata
FORMAT = 15  # raise it whenever the meaning of a file changes: older ones are then rebuilt
DTYPES = {
    "I64": np.dtype("<i8"),
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "U16": np.dtype(np.uint16),
    "I16": np.dtype(np.int16),
    "I32": np.dtype(np.int32),
}


# What code that takes values apart says of those of another form.
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError,
             RecursionError, MemoryError)  # fmt: skip


class DamagedFile(Exception):
    """The file is not what was written: cut short, changed, or another format."""


@contextmanager
def named_table(path: Path) -> Iterator[None]:
    """What goes wrong with the file of a table, as an error that names it."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidInput("there is no such file", file=str(path)) from None
    except (OSError, DamagedFile) as error:
        raise InvalidInput(
            f"is no usable table: {error}", file=str(path), advice="compile it again"
        ) from None


def write_arrays(path: Path, packed: Packed) -> int:
    """Write a file of arrays, so that it is there whole or not at all; returns its bytes."""
    arrays, header = packed
    about = {**header, "format": FORMAT}
    about["sha256"] = _digest(arrays, about)
    whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    data = save(whole, {HEADER: json.dumps(about)})
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)  # private, if it is new
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return len(data)


def read_arrays(path: Path) -> Packed:
    """The arrays of a file, mapped from disk and read-only, and its header.

    Raises OSError where it cannot be opened and DamagedFile where it is not as it was written.
    """
    entries, header, body = _opened(path)
    try:
        arrays = {name: _array(body, entry) for name, entry in entries.items()}
        used = max(entry["data_offsets"][1] for entry in entries.values())
    except MALFORMED as error:
        raise DamagedFile(f"no valid header: {error}") from None
    if used != len(body):
        raise DamagedFile("another length")
    if header.pop("sha256", None) != _digest(arrays, header):
        raise DamagedFile("its content has changed")
    return arrays, header


def read_header(path: Path) -> dict[str, Any]:
    """The header of a file alone, which says what it is; nothing else of it is verified."""
    return _opened(path)[1]


def _opened(path: Path) -> tuple[dict[str, Any], dict[str, Any], memoryview]:
    """The entries of a file, our header and the bytes of the arrays."""
    if not S_ISREG(path.stat().st_mode):  # to open a pipe would wait for who writes to it
        raise DamagedFile("no file")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < 8:
            raise DamagedFile("too short")
        mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    length = int.from_bytes(mapped[:8], "little")
    if not 2 <= length <= size - 8:
        raise DamagedFile("no header")
    try:
        entries = json.loads(bytes(mapped[8 : 8 + length]))
        header = json.loads(entries.pop("__metadata__")[HEADER])
    except MALFORMED as error:
        raise DamagedFile(f"no valid header: {error}") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise DamagedFile("another format")
    return entries, header, mapped[8 + length :]


def _array(body: memoryview, entry: Mapping[str, Any]) -> npt.NDArray[Any]:
    low, high = entry["data_offsets"]
    if not 0 <= low <= high <= len(body):
        raise ValueError("an array reaches beyond the file")
    return np.frombuffer(body[low:high], DTYPES[entry["dtype"]]).reshape(entry["shape"])


def _digest(arrays: Arrays, header: Mapping[str, Any]) -> str:
    whole = hashlib.sha256(json.dumps(header).encode())
    for name in sorted(arrays):
        array = arrays[name]
        whole.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        whole.update(np.ascontiguousarray(array).data)
    return whole.hexdigest()


def arrays_of(prefix: str, value: Any) -> dict[str, npt.NDArray[Any]]:
    """The array fields of a dataclass, and of those it holds, named `prefix.field`."""
    found: dict[str, npt.NDArray[Any]] = {}
    for item in fields(value):
        part, name = getattr(value, item.name), f"{prefix}.{item.name}"
        if isinstance(part, np.ndarray):
            found[name] = part
        elif is_dataclass(part):
            found |= arrays_of(name, part)
    return found


def arrays_under(prefix: str, arrays: Arrays) -> dict[str, npt.NDArray[Any]]:
    """The arrays named `prefix.field`, by field: what `arrays_of` took apart."""
    start = prefix + "."
    return {
        name[len(start) :]: array
        for name, array in arrays.items()
        if name.startswith(start) and "." not in name[len(start) :]
    }
