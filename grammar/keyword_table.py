"""The keywords of JSON Schema as a table to read, from what the code itself goes by."""

from __future__ import annotations

from collections.abc import Iterator

from cmm.grammar.keywords import ANNOTATIONS, GROUPS, REFUSED
from cmm.grammar.scalar_keywords import NUMBER_FORMATS
from cmm.grammar.string_formats import FORMATS

Row = tuple[str, str, str]  # keyword, what happens to it, note


def keyword_rows() -> Iterator[Row]:
    """Every keyword that is known, whether it is enforced, and a note.

    >>> dict((keyword, status) for keyword, status, _ in keyword_rows())["oneOf"]
    'enforced'
    """
    for group in GROUPS:
        for keyword in group.keywords:
            yield keyword, "enforced", group.note
    for keyword, why in sorted(REFUSED.items()):
        yield keyword, "refused", why
    for keyword in sorted(ANNOTATIONS):
        yield keyword, "annotation", ""


def keyword_table() -> str:
    """The rows as a table in Markdown.

    >>> print(keyword_table().splitlines()[2])
    | `type` | enforced | `nullable` (OpenAPI) adds null to the type |
    """
    rows = [f"| `{keyword}` | {status} | {note} |" for keyword, status, note in keyword_rows()]
    return "\n".join(["| keyword | | note |", "|---|---|---|", *rows])


def format_list() -> str:
    """The values of `format` that are enforced.

    >>> format_list()[:22]
    '`base64`, `binary`, `b'
    """
    names = sorted(FORMATS | NUMBER_FORMATS.keys())
    return ", ".join(f"`{name}`" for name in names)
