"""Prompt configurations: what a model is told around the user's request, as data."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from cmm.data import data_path
from cmm.grammar.call_format import CallFormat
from cmm.grammar.files import invalid_shape, read_json
from cmm.grammar.formats import FORMATS, HERMES

ANY_FORMAT = "*"


class Limits(BaseModel):
    """How long an answer may be."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: int = Field(default=256, ge=1, description="most tokens of one call")


class Example(BaseModel):
    """A request and the call that answers it, shown to the model before the real request."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: str
    name: str
    parameters: dict[str, Any]


class PromptConfig(BaseModel):
    """One prompt configuration.

    >>> PromptConfig(name="short", system="Answer with a call.").limits.max_tokens
    256
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    editor_schema: str | None = Field(
        default=None, alias="$schema", description="lets editors complete this file"
    )
    name: str = Field(description="what to call this configuration")
    models: tuple[str, ...] = Field(
        default=("*",),
        description='which models it is for: patterns such as "*qwen*", small letters',
    )
    system: str | None = Field(
        default=None,
        description="the system text; {tools} stands for the functions, one JSON a line, for "
        "models whose own template does not list them; null leaves it to the template",
    )
    examples: tuple[Example, ...] = Field(
        default=(), description="requests with their calls, shown before the real request"
    )
    call_format: str = Field(
        default=HERMES.name,
        json_schema_extra={"enum": [*FORMATS, ANY_FORMAT]},
        description='how the model writes a call; "*": in any format, which {shape} in the system '
        "text describes",
    )
    template_arguments: dict[str, Any] = Field(
        default_factory=dict, description="further arguments of the chat template"
    )
    limits: Limits = Limits()

    @field_validator("call_format")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in (*FORMATS, ANY_FORMAT):
            raise ValueError(f"is none of {', '.join((*FORMATS, ANY_FORMAT))}")
        return name

    def fits(self, model: str) -> int:
        """How closely this configuration is meant for a model: the longest pattern that fits.

        >>> PromptConfig(name="q", models=("*qwen*", "*")).fits("Qwen/Qwen3-0.6B")
        6
        """
        fitting = (p for p in self.models if fnmatchcase(model.lower(), p))
        return max(map(len, fitting), default=0)

    def takes(self, call_format: str) -> bool:
        """Is a call written in that format here?"""
        return self.call_format in (call_format, ANY_FORMAT)


def read_prompt_config(path: Path) -> PromptConfig:
    """A configuration file, checked; a wrong one is an error with its place."""
    document = read_json(path)
    try:
        return PromptConfig.model_validate(document)
    except ValidationError as error:
        raise invalid_shape(error).located(file=str(path)) from None


def shipped_configs() -> tuple[PromptConfig, ...]:
    """The shipped configurations, by name.

    >>> "plain" in [config.name for config in shipped_configs()]
    True
    """
    paths = sorted(data_path("prompts").glob("*.json"))
    return tuple(read_prompt_config(p) for p in paths if not p.name.endswith(".schema.json"))


def config_for(model: str, call_format: str | None = None) -> PromptConfig:
    """The shipped configuration that is meant most closely for a model, and for a format.

    >>> config_for("Qwen/Qwen3-0.6B").name, config_for("Qwen/Qwen3-0.6B", "pythonic").name
    ('qwen', 'plain')
    """
    configs = (c for c in shipped_configs() if call_format is None or c.takes(call_format))
    return max(configs, key=lambda config: config.fits(model))


def chosen_format(
    wanted: CallFormat | str | None, config: PromptConfig | None, model: str
) -> CallFormat:
    """The format that is asked for, else the one of the configuration."""
    if isinstance(wanted, CallFormat):
        return wanted
    name = wanted or (config or config_for(model)).call_format
    return FORMATS.get(name, HERMES)


def config_schema() -> str:
    """The JSON Schema of a configuration file, as the text of the file that lies beside them."""
    return json.dumps(PromptConfig.model_json_schema(), indent=2) + "\n"
