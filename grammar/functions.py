"""Function definitions, read from every form in use into one.

The forms: the list of the 42 school project (and its older keys), OpenAI tools with or without
their wrapper, `{"tools": [...]}`, and MCP tools. All become `FunctionSchema`, whose parameters
are a JSON Schema object.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from cmm.grammar.errors import CmmError, InvalidInput, listed, pointer
from cmm.grammar.files import depth, invalid_shape, read_json
from cmm.grammar.type_words import standard_types


class FunctionSchema(BaseModel):
    """One function that may be called: its name, what it does, and a JSON Schema for its arguments.

    >>> parse_functions([{"name": "f", "parameters": {"n": {"type": "int"}}}])[0].parameters
    {'type': 'object', 'properties': {'n': {'type': 'integer'}}, 'required': ['n']}
    """

    model_config = ConfigDict(frozen=True)

    name: str = Field(min_length=1)
    description: str = ""
    parameters: dict[str, Any]
    file: str | None = Field(default=None, exclude=True, repr=False)
    place: str = Field(default="", exclude=True, repr=False)  # of the parameters, in their file
    listed: bool = Field(default=False, exclude=True, repr=False)  # written without "properties"

    def place_of(self, pointer: str) -> str:
        """Where a part of the parameters stands in the file that they were read from.

        >>> [f] = parse_functions([{"name": "f", "parameters": {"n": {"type": "int"}}}])
        >>> f.place_of("/properties/n/type")
        '/0/parameters/n/type'
        """
        return self.place + (pointer.removeprefix("/properties") if self.listed else pointer)

    def located(self, error: CmmError) -> CmmError:
        """An error in the parameters, as one in the file that they were read from."""
        return error.moved(self.place_of).located(file=self.file)

    def tool(self) -> dict[str, Any]:
        """The function as chat templates expect it: an OpenAI tool."""
        return {"type": "function", "function": self.model_dump()}


# Levels of a definition. Those in use have forty at most; at some hundreds the libraries that
# render prompts give up, each at another number.
DEEPEST = 128
PARAMETER_KEYS = ("parameters", "inputSchema", "input_schema")


class _Entry(BaseModel):
    """One definition as it stands in a file, whichever keys it uses."""

    model_config = ConfigDict(extra="ignore", strict=True)

    name: str = Field(min_length=1, validation_alias=AliasChoices("name", "fn_name"))
    description: str | None = Field(
        default=None, validation_alias=AliasChoices("description", "fn_description")
    )
    parameters: dict[str, Any] | None = Field(
        default=None, validation_alias=AliasChoices(*PARAMETER_KEYS)
    )
    key: str = "parameters"  # under which the parameters stand
    args_names: list[str] | None = None
    args_types: dict[str, str] | None = None
    required: list[str] | None = None


def load_functions(path: str | Path) -> tuple[FunctionSchema, ...]:
    """The functions defined in a JSON file, whichever of the known forms it has.

    >>> load_functions("nowhere.json")
    Traceback (most recent call last):
    cmm.grammar.errors.InvalidInput: nowhere.json: there is no such file

    Raises InvalidInput with file and JSON pointer. Warns (UserWarning) of a definition given twice.
    """
    try:
        functions = parse_functions(read_json(path))
    except CmmError as error:
        raise error.located(file=str(path)) from None
    return tuple(function.model_copy(update={"file": str(path)}) for function in functions)


def parse_functions(document: Any) -> tuple[FunctionSchema, ...]:
    """The functions of a parsed file.

    >>> [f.name for f in parse_functions({"tools": [{"name": "f", "inputSchema": {}}]})]
    ['f']
    """
    below = ""
    if isinstance(document, dict) and "tools" in document:
        document, below = document["tools"], "/tools"
    elif isinstance(document, dict):
        document = [document]
    if not isinstance(document, list):
        raise InvalidInput(
            "expected a list of functions", place=below, advice='or {"tools": [...]}'
        )
    if not document:
        raise InvalidInput("there is no function in the list", place=below)
    found = [_parse_entry(entry, below + pointer(i)) for i, entry in enumerate(document)]
    return _without_repeats(found, below)


def _without_repeats(functions: list[FunctionSchema], below: str) -> tuple[FunctionSchema, ...]:
    by_name: dict[str, FunctionSchema] = {}
    for i, function in enumerate(functions):
        earlier = by_name.setdefault(function.name, function)
        if earlier.model_dump() != function.model_dump():
            raise InvalidInput(
                f'"{function.name}" is defined twice, with different definitions',
                place=below + pointer(i),
                advice="rename one of them",
            )
        if earlier is not function:
            warnings.warn(
                f'"{function.name}" is defined twice, alike; it counts once', stacklevel=4
            )
    return tuple(by_name.values())


def _parse_entry(entry: Any, place: str) -> FunctionSchema:
    wrapped = isinstance(entry, dict) and isinstance(entry.get("function"), dict)
    if wrapped:
        entry, place = entry["function"], place + "/function"
    if not isinstance(entry, dict):
        raise InvalidInput("a function is an object", place=place)
    if depth(entry, DEEPEST) > DEEPEST:
        raise InvalidInput(f"is nested more than {DEEPEST} levels deep", place=place)
    try:
        key = next((name for name in PARAMETER_KEYS if name in entry), "parameters")
        raw = _Entry.model_validate({**entry, "key": key})
    except ValidationError as error:
        raise invalid_shape(error).located(below=place) from None
    parameters, below, listed = _parameters(raw, wrapped, place)
    function = FunctionSchema(
        name=raw.name,
        description=raw.description or "",
        parameters=parameters,
        place=below,
        listed=listed,
    )
    try:
        standard = standard_types(parameters)
    except CmmError as error:
        raise function.located(error) from None
    return function.model_copy(update={"parameters": standard})


def _parameters(raw: _Entry, wrapped: bool, place: str) -> tuple[dict[str, Any], str, bool]:
    """The parameters as one JSON Schema object, their place, and whether they are listed there."""
    if raw.args_names is not None:
        types = raw.args_types or {}
        missing = [name for name in raw.args_names if name not in types]
        if missing:
            raise InvalidInput(
                f"no type is given for {listed(missing)}", place=place + "/args_types"
            )
        named = {name: {"type": types[name]} for name in raw.args_names}
        return _object(named, raw.args_names), place + "/args_types", True
    if raw.parameters is None:
        if wrapped:
            return _object({}, []), place, False
        raise InvalidInput(
            f'"{raw.name}" has no parameters', place=place, advice='add "parameters": {}'
        )
    if _is_schema(raw.parameters):
        schema = _closed_names({"type": "object", **raw.parameters}, place)
        return schema, place + pointer(raw.key), False
    return _listed_parameters(raw, place), place + pointer(raw.key), True


def _is_schema(parameters: dict[str, Any]) -> bool:
    """Is this a JSON Schema, or a mapping of parameter names to their schemas?

    A parameter may be called "type" or "properties": then what stands there is a schema itself.
    """
    if isinstance(parameters.get("type"), str | list):
        return True
    properties = parameters.get("properties")
    if isinstance(properties, dict) and "type" not in parameters:
        return not isinstance(properties.get("type"), str | list)
    keywords = ("$ref", "anyOf", "oneOf", "allOf", "$schema", "$defs", "additionalProperties")
    return any(key in parameters for key in keywords) and not all(
        isinstance(value, dict) and "type" in value for value in parameters.values()
    )


def _listed_parameters(raw: _Entry, place: str) -> dict[str, Any]:
    named, required = {}, []
    for name, schema in (raw.parameters or {}).items():
        here = place + pointer("parameters", name)
        if isinstance(schema, str):
            schema = {"type": schema}
        if not isinstance(schema, dict):
            raise InvalidInput("a parameter is described by an object", place=here,
                               advice='such as {"type": "string"}')  # fmt: skip
        left_out = schema.get("required") is False or schema.get("optional") is True
        flags = ("required", "optional") if not isinstance(schema.get("required"), list) else ()
        named[name] = {key: value for key, value in schema.items() if key not in flags}
        if not left_out and (raw.required is None or name in raw.required):
            required.append(name)
    at = "/required" if raw.required else "/parameters/required"
    return _closed_names(_object(named, raw.required or required), place, at)


def _object(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def _closed_names(
    schema: dict[str, Any], place: str, at: str = "/parameters/required"
) -> dict[str, Any]:
    """The schema, once every required name is known to be a property."""
    if schema["type"] not in ("object", ["object"], "dict"):
        raise InvalidInput("the parameters must form an object", place=place + "/parameters/type")
    required = schema.get("required")
    properties = schema.get("properties", {})
    if isinstance(required, list) and isinstance(properties, dict):
        unknown = [name for name in required if name not in properties]
        if unknown and not schema.get("additionalProperties") and "patternProperties" not in schema:
            raise InvalidInput(
                f"required, but not among the parameters: {listed(map(str, unknown))}",
                place=place + at,
            )
    return schema
