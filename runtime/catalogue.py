"""The model catalogue: which models are known by name, and where each comes from."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from cmm.data import data_path


class Frozen(BaseModel):
    """A value of a configuration file: no unknown keys, no changes after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class HubSource(Frozen):
    """A repository of the model hub."""

    kind: Literal["hub"]
    repository: str


class Piece(Frozen):
    """One part of a file, carried as a data file by a package."""

    package: str
    version: str
    member: str


class WheelSource(Frozen):
    """A GGUF file carried in pieces by packages, which are read as archives and never installed."""

    kind: Literal["wheels"]
    file: str
    bytes: int
    sha256: str
    pieces: tuple[Piece, ...]


class ModelEntry(Frozen):
    """One model of the catalogue."""

    name: str
    about: str
    license: str
    source: Annotated[HubSource | WheelSource, Field(discriminator="kind")]


class Catalogue(Frozen):
    """All known models, and the order in which the default is looked for."""

    default: tuple[str, ...]
    models: tuple[ModelEntry, ...]

    def find(self, name: str) -> ModelEntry | None:
        """The entry of that name, whatever its capitals.

        >>> read_catalogue().find("SmolLM2-135M").license
        'Apache-2.0'
        """
        return next((m for m in self.models if m.name.lower() == name.lower()), None)


@cache
def read_catalogue() -> Catalogue:
    """The catalogue that is shipped with the program.

    >>> read_catalogue().default[0]
    'Qwen/Qwen3-0.6B'
    """
    text = data_path("models.json").read_text(encoding="utf-8")
    return Catalogue.model_validate_json(text)
