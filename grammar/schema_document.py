"""A JSON Schema document: its subschemas by JSON pointer, and where its references lead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from cmm.grammar.errors import InvalidInput, Unsupported, pointer

# Values of these keywords are data: an "$id" or "$anchor" in them names nothing.
DATA_KEYWORDS = frozenset({"enum", "const", "default", "examples", "example"})
OLD_DRAFTS = ("draft-03", "draft-04", "draft-05", "draft-06", "draft-07")


class SchemaDocument:
    """A schema and what it refers to within itself.

    >>> document = SchemaDocument({"$defs": {"a/b": {"type": "null"}}})
    >>> place = document.resolve("#/$defs/a~1b", "")
    >>> place, document.at(place)
    ('/$defs/a~1b', {'type': 'null'})
    """

    def __init__(self, root: Any) -> None:
        self.root = root
        declared = root.get("$schema") if isinstance(root, dict) else None
        self.old = isinstance(declared, str) and any(draft in declared for draft in OLD_DRAFTS)
        self.resources: dict[str, str] = {"": ""}  # absolute URI -> place
        self.bases: dict[str, str] = {}  # place of a resource -> its URI
        self.anchors: dict[str, str] = {}  # URI with fragment -> place
        for place, schema, base in _identified(root, "", "", self.old):
            for key in ("$anchor", "$dynamicAnchor"):
                if isinstance(schema.get(key), str):
                    self.anchors[f"{base}#{schema[key]}"] = place
            own = _own_name(schema, self.old)
            if isinstance(own, str) and own.startswith("#"):
                self.anchors[base + own] = place
            elif isinstance(own, str):
                self.resources[base] = place
                self.bases[place] = base

    def at(self, place: str) -> Any:
        """What stands at a JSON pointer; KeyError where nothing does."""
        found = self.root
        for part in place.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            try:
                found = found[int(key)] if isinstance(found, list) else found[key]
            except (ValueError, IndexError, TypeError):
                raise KeyError(place) from None
        return found

    def resolve(self, reference: str, place: str) -> str:
        """The pointer that a reference at a place means."""
        base = self._base(place)
        uri, fragment = urldefrag(urljoin(base, reference))
        if uri not in self.resources:
            raise Unsupported(
                f'the reference "{reference}" leads out of the document',
                place=place + "/$ref",
                advice="put what it names into $defs",
            )
        if fragment and not fragment.startswith("/"):
            target = self.anchors.get(f"{uri}#{fragment}")
        else:
            target = self.resources[uri] + unquote(fragment)
        try:
            if target is None:
                raise KeyError
            self.at(target)
        except KeyError:
            raise InvalidInput(
                f'the reference "{reference}" leads nowhere', place=place + "/$ref"
            ) from None
        return target

    def _base(self, place: str) -> str:
        while place not in self.bases:
            if not place:
                return ""
            place = place.rpartition("/")[0]
        return self.bases[place]


def _own_name(schema: dict[str, Any], old: bool) -> Any:
    """What a schema calls itself; before draft 2019-09 not beside a reference."""
    if old:
        return None if "$ref" in schema else schema.get("$id", schema.get("id"))
    return schema.get("$id")


def _identified(
    value: Any, place: str, base: str, old: bool
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Every object below a schema with the URI that it stands under."""
    pending = [(value, place, base)]
    while pending:
        value, place, base = pending.pop()
        if isinstance(value, dict):
            own = _own_name(value, old)
            if isinstance(own, str) and not own.startswith("#"):
                base = urldefrag(urljoin(base, own))[0]
            yield place, value, base
            pending += [
                (inner, place + pointer(key), base)
                for key, inner in value.items()
                if key not in DATA_KEYWORDS
            ]
        elif isinstance(value, list):
            pending += [(inner, place + pointer(i), base) for i, inner in enumerate(value)]
