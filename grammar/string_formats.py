"""JSON Schema's `format` of strings -> the texts of that format."""

from __future__ import annotations

from functools import cache

from cmm.grammar import format_patterns as patterns
from cmm.grammar.content import ANY, Content
from cmm.grammar.idn import idn_hostname, letters
from cmm.grammar.pattern import pattern_content

PATTERNS = {
    "date-time": patterns.DATE_TIME,
    "date": patterns.DATE,
    "time": patterns.TIME,
    "duration": patterns.DURATION,
    "email": patterns.email(),
    "hostname": patterns.hostname(),
    "ipv4": patterns.IPV4,
    "ipv6": patterns.IPV6,
    "uri": patterns.uri(absolute=True),
    "uri-reference": patterns.uri(absolute=False),
    "iri": patterns.uri(absolute=True, more=patterns.UCS, private=patterns.PRIVATE),
    "iri-reference": patterns.uri(absolute=False, more=patterns.UCS, private=patterns.PRIVATE),
    "uri-template": patterns.URI_TEMPLATE,
    "uuid": patterns.UUID,
    "json-pointer": patterns.JSON_POINTER,
    "relative-json-pointer": patterns.RELATIVE_JSON_POINTER,
    "regex": patterns.regex(),
    "byte": patterns.BASE64,
    "base64": patterns.BASE64,
}
FREE = frozenset({"binary", "password"})  # OpenAPI's, hints for people: any text
FORMATS = frozenset(PATTERNS) | FREE | {"idn-hostname", "idn-email"}


@cache
def format_content(name: str) -> Content | None:
    """The texts of a format, None where the name says nothing about strings.

    >>> date = format_content("date")
    >>> date.accepts("2024-02-29"), date.accepts("2023-02-29")
    (True, False)
    >>> format_content("int32") is None
    True

    Never a text that is not of the format. For hostname, idn-hostname, regex and leap seconds
    not every text that is; what is left out stands where their patterns are written.
    """
    if name in FREE:
        return ANY
    if name == "idn-hostname":
        return idn_hostname()
    if name == "idn-email":
        names = "".join(rf"\u{{{low:x}}}-\u{{{high:x}}}" for low, high in letters("L"))
        return _whole(patterns.email(r"\u0080-\u{10ffff}", names))
    return _whole(PATTERNS[name]) if name in PATTERNS else None


def _whole(pattern: str) -> Content:
    return pattern_content(f"^(?:{pattern})$")
