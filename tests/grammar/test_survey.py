"""What of a schema is refused and what is ignored, with places."""

import pytest

from cmm.grammar.survey import ignored, refused

# (schema, places of what is refused)
REFUSED = [
    ({"type": "object"}, []),
    ({"properties": {"a": {"disallow": []}, "b": {"$dynamicRef": "#x"}}},
     ["/properties/a/disallow", "/properties/b/$dynamicRef"]),
    ({"items": {"type": "array", "uniqueItems": True}}, ["/items/uniqueItems"]),
    ({"pattern": "(a)\\1"}, ["/pattern"]),
    ({"enum": [{"disallow": 1}]}, []),
]  # fmt: skip

# (schema, what is ignored: keyword, place, reason)
IGNORED = [
    ({"title": "T", "properties": {"title": {"description": "d"}}},
     [("title", "/title", "annotation"),
      ("description", "/properties/title/description", "annotation")]),
    ({"anyOf": [{"colour": 1}], "const": {"shade": 1}},
     [("colour", "/anyOf/0/colour", "unknown keyword")]),
    ({"items": [{"format": "shade"}, {"format": "int32"}, {"format": "date"}]},
     [("format", "/items/0/format", "unknown format 'shade'")]),
    (True, []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "places"), REFUSED)
def test_refused(schema, places):
    assert [found.place for found in refused(schema)] == places


@pytest.mark.parametrize(("schema", "findings"), IGNORED)
def test_ignored(schema, findings):
    assert [(found.keyword, found.place, found.reason) for found in ignored(schema)] == findings
