"""The formats of strings as regular expressions, written rule by rule after their RFCs."""

from __future__ import annotations


def either(*options: str) -> str:
    """A group of alternatives.

    >>> either("a", "bc")
    '(?:a|bc)'
    """
    return f"(?:{'|'.join(options)})"


# RFC 3339, 5.6. Years that 4 divides have a 29 February, of the full centuries only those that
# 400 divides.
_FOURTH = "(?:[02468][048]|[13579][26])"
_LEAP_YEAR = either(f"[0-9]{{2}}(?!00){_FOURTH}", f"{_FOURTH}00")
# There is a year 0 in the RFC, but in few programs.
DATE = "(?!0000)" + either(
    "[0-9]{4}-" + either(
        "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])",
        "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)",
        "02-(?:0[1-9]|1[0-9]|2[0-8])",
    ),
    f"{_LEAP_YEAR}-02-29",
)  # fmt: skip
_HOUR, _SIXTY = "(?:[01][0-9]|2[0-3])", "[0-5][0-9]"
_FRACTION = r"(?:\.[0-9]+)?"
_UTC = "(?:[zZ]|[+-]00:00)"
_ORDINARY_TIME = f"{_HOUR}:{_SIXTY}:{_SIXTY}{_FRACTION}(?:[zZ]|[+-]{_HOUR}:{_SIXTY})"


def _leap_seconds() -> str:
    """23:59:60 in UTC, written with offsets of whole and half hours."""
    zones = [f"23:59:60{_FRACTION}{_UTC}"]
    for half_hours in range(-47, 48):
        local = (23 * 60 + 59 + 30 * half_hours) % (24 * 60)
        offset = f"{'-' if half_hours < 0 else '[+]'}{abs(half_hours) // 2:02}:"
        offset += "30" if half_hours % 2 else "00"
        zones.append(f"{local // 60:02}:{local % 60:02}:60{_FRACTION}{offset}")
    return either(*zones)


TIME = either(_ORDINARY_TIME, _leap_seconds())
# A leap second ends June or December. Those of other zones than UTC are left out: with them, a
# state would have to remember day and hour to the end, which makes the automaton 20 times larger.
_LEAP_TIME = f"(?!0000)[0-9]{{4}}-(?:06-30|12-31)[tT]23:59:60{_FRACTION}{_UTC}"
DATE_TIME = either(f"{DATE}[tT]{_ORDINARY_TIME}", _LEAP_TIME)

# RFC 3339, appendix A: units may only follow their neighbour.
_TIME_UNITS = either("[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?", "[0-9]+M(?:[0-9]+S)?", "[0-9]+S")
_DAYS = either("[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?", "[0-9]+M(?:[0-9]+D)?", "[0-9]+D")
DURATION = "P" + either("[0-9]+W", f"T{_TIME_UNITS}", f"{_DAYS}(?:T{_TIME_UNITS})?")

# RFC 2673 and RFC 4291, 2.2, by the rules of RFC 3986.
_OCTET = either("[0-9]", "[1-9][0-9]", "1[0-9]{2}", "2[0-4][0-9]", "25[0-5]")
IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_H16 = "[0-9a-fA-F]{1,4}"
_LAST = either(f"{_H16}:{_H16}", IPV4)


def ipv6(most: int) -> str:
    """All eight groups, or at most so many and :: for the rest; the last two may be an IPv4 one.

    >>> ipv6(1).split("|")[-2:]
    ['(?:[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){0,0})?::', '::[0-9a-fA-F]{1,4})']
    """
    options = [f"(?:{_H16}:){{6}}{_LAST}"]
    for after in range(most + 1):
        before = f"(?:{_H16}(?::{_H16}){{0,{most - after - 1}}})?" if after < most else ""
        behind = f"(?:{_H16}:){{{after - 2}}}{_LAST}" if after > 1 else _H16 * after
        options.append(f"{before}::{behind}")
    return either(*options)


IPV6 = ipv6(7)

# RFC 3987, 2.2: what an IRI may hold besides a URI's characters.
UCS = r"\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef" + "".join(
    rf"\u{{{plane:x}{'1000' if plane == 14 else '0000'}}}-\u{{{plane:x}fffd}}"
    for plane in range(1, 15)
)
PRIVATE = r"\ue000-\uf8ff\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}"
_PERCENT = "%[0-9a-fA-F]{2}"
_MARKS = r"!$&'()*+,;="


def uri(*, absolute: bool, more: str = "", private: str = "") -> str:
    """RFC 3986, appendix A: a URI, or a reference; for RFC 3987 with more characters.

    >>> uri(absolute=True).startswith("[a-zA-Z][a-zA-Z0-9+.-]*:")
    True
    """
    plain = rf"a-zA-Z0-9._~\-{more}{_MARKS}"

    def some(characters: str) -> str:
        return either(f"[{characters}]", _PERCENT)

    character = some(plain + ":@")
    future = rf"[vV][0-9a-fA-F]+\.[{plain.replace(more, '') if more else plain}:]+"
    host = either(rf"\[{either(IPV6, future)}\]", some(plain) + "*")
    authority = f"(?:{some(plain + ':')}*@)?{host}(?::[0-9]*)?"
    below = f"(?:/{character}*)*"
    full = f"/(?:{character}+{below})?"
    query = rf"(?:\?{some(plain + ':@/?' + private)}*)?(?:#{some(plain + ':@/?')}*)?"
    scheme = "[a-zA-Z][a-zA-Z0-9+.-]*:"
    url = scheme + either(f"//{authority}{below}", full, character + "+" + below, "") + query
    if absolute:
        return url
    first = f"{some(plain + '@')}+{below}"  # a colon would end a scheme
    return either(url, either(f"//{authority}{below}", full, first, "") + query)


# RFC 6570, 2, without the operators that are reserved; ' is a literal by its erratum 6937.
_NAME = either("[a-zA-Z0-9_]", _PERCENT)
_VARIABLE = rf"{_NAME}(?:\.?{_NAME})*(?::[1-9][0-9]{{0,3}}|\*)?"
_LITERAL = either(rf"[!#$&'(-;=?-\[\]_a-z~{UCS}{PRIVATE}]", _PERCENT)
URI_TEMPLATE = either(_LITERAL, rf"\{{[+#./;?&]?{_VARIABLE}(?:,{_VARIABLE})*\}}") + "*"


def email(more: str = "", more_in_names: str = "") -> str:
    """RFC 5321, 4.1.2 and 4.1.3, a mailbox; RFC 6531, 3.3 has more characters.

    >>> email().count("@")
    1
    """
    word = rf"[a-zA-Z0-9!#$%&'*+\-/=?^_`{{|}}~{more}]+"
    quoted = rf'"(?:[ !#-\[\]-~{more}]|\\[ -~])*"'
    local = either(rf"{word}(?:\.{word})*", quoted)
    label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
    if more_in_names:
        edge = rf"a-zA-Z0-9{more_in_names}"
        label = either(label, rf"(?!..--)[{edge}](?:[{edge}\p{{Mn}}-]*[{edge}\p{{Mn}}])?")
    address = either(IPV4, f"IPv6:{ipv6(6)}")  # there :: stands for two groups or more
    return f"{local}@" + either(rf"{label}(?:\.{label})*", rf"\[{address}\]")


UUID = "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
JSON_POINTER = "(?:/(?:[^~/]|~[01])*)*"  # RFC 6901, 3
RELATIVE_JSON_POINTER = f"(?:0|[1-9][0-9]*)(?:#|{JSON_POINTER})"

# RFC 4648, 4: with padding, and the bits that the last character does not need are zero.
_64 = "[A-Za-z0-9+/]"
BASE64 = f"(?:{_64}{{4}})*(?:{_64}[AQgw]==|{_64}{{2}}[AEIMQUYcgkosw048]=)?"

# RFC 1123, 2.1: letters, digits and inner hyphens. A label has 63 characters, a name 253; here the
# later labels are shorter, so that the sum holds by itself (with their dots, 239): to count both
# at once takes 30,000 states. Labels with -- in third place are reserved (RFC 5891, 4.2.3.1) or
# encode others (xn--), which only arithmetic can check: left out.
LABEL_LENGTHS = (63, 63, 31, 31, 15, 15, 15)


def hostname() -> str:
    """Labels and their dots.

    >>> hostname()[:30]
    '(?!..--)[a-zA-Z0-9](?:[a-zA-Z0'
    """
    name = ""
    for length in reversed(LABEL_LENGTHS):
        label = f"(?!..--)[a-zA-Z0-9](?:[a-zA-Z0-9-]{{0,{length - 2}}}[a-zA-Z0-9])?"
        name = label + (rf"(?:\.{name})?" if name else "")
    return name


def regex(depth: int = 3) -> str:
    """A part of the regular expressions: all of these are right, in every dialect.

    Groups to a depth of 3, classes with ranges of letters and digits, the usual escapes,
    quantifiers without an upper bound, and ^ $ \\b; neither look-around nor back references.

    >>> "(?:" in regex()
    True
    """
    escape = r"\\[dDwWsStnrfv.*+?^$|\\/()\[\]{}]"
    member = either(r"[^\]\[\\^&~|-]", escape, "a-z", "A-Z", "0-9")
    inside = either(r"[^\\^$.*+?()\[\]{}|]", r"\.", escape, rf"\[\^?{member}+\]")
    if depth:
        inside = either(inside, rf"\((?:\?:)?{regex(depth - 1)}\)")
    quantifier = r"(?:[*+?]|\{(?:0|[1-9][0-9]?),?\})\??"
    return either(f"{inside}(?:{quantifier})?", r"[\^$|]", r"\\[bB]") + "*"
