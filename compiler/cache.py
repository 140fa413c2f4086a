"""The folder of compiled files: what is in it, whether it is whole, and how large it may grow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG

import platformdirs

from cmm.compiler.artifact import DamagedFile, read_arrays

KINDS = ("table", "vocabulary", "prefix")
LIMIT = 2 * 2**30  # bytes of all files together, unless CMM_CACHE_LIMIT says otherwise


def cache_dir() -> Path:
    """Where compiled files are kept: CMM_CACHE_DIR, or the platform's cache folder."""
    chosen = os.environ.get("CMM_CACHE_DIR")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("cmm", appauthor=False))


@dataclass(frozen=True)
class CachedFile:
    """One file of the cache: its kind, its size, and when it was last used (seconds, as time())."""

    path: Path
    kind: str
    size: int
    used: float


def cached_files() -> list[CachedFile]:
    """The files of the cache, the one that was used last first."""
    return sorted(_found(), key=lambda file: (-file.used, file.path.name))


def _found() -> Iterator[CachedFile]:
    for kind in KINDS:
        for path in cache_dir().glob(f"{kind}-*.safetensors"):
            try:
                stat = path.stat()
            except OSError:
                continue  # another process has just dropped it
            if S_ISREG(stat.st_mode):  # a folder or a pipe is none of ours
                yield CachedFile(path, kind, stat.st_size, stat.st_mtime)


def fault_of(file: CachedFile) -> str | None:
    """What is wrong with a file, None if it is whole."""
    try:
        read_arrays(file.path)
    except (OSError, DamagedFile) as error:
        return str(error)
    return None


def clear(chosen: Callable[[CachedFile], bool] = lambda file: True) -> list[CachedFile]:
    """Drop the chosen files, and what killed writers have left; returns what was there."""
    dropped = [file for file in cached_files() if chosen(file)]
    left = (path for path in cache_dir().glob("*.safetensors*.tmp") if path.is_file())
    for path in [*(file.path for file in dropped), *left]:
        path.unlink(missing_ok=True)
    return dropped


def limit() -> int:
    """How many bytes all files may have together."""
    chosen = os.environ.get("CMM_CACHE_LIMIT", "")
    return int(chosen) if chosen.isdigit() else LIMIT


def make_room(size: int, kind: str | None = None, most: int | None = None) -> None:
    """Drop the files that were not used for longest, until `size` more bytes are within the limit.

    With a `kind` only files of that kind are counted and dropped.
    """
    most = limit() if most is None else most
    files = [file for file in cached_files() if kind in (None, file.kind)]
    total = size + sum(file.size for file in files)
    for file in reversed(files):
        if total <= most:
            return
        file.path.unlink(missing_ok=True)
        total -= file.size


def touch(path: Path) -> None:
    """Note that a file is in use, where that can be noted."""
    try:
        os.utime(path)
    except OSError:
        return  # a cache that is only read keeps no time of use
