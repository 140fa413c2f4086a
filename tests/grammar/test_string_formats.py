"""Formats of strings: a table for each, and samples judged by the standard library."""

import base64
import datetime
import ipaddress
import random
import re
import uuid

import pytest

from cmm.grammar.content import ANY
from cmm.grammar.string_formats import FORMATS, format_content

# format: (texts of it, texts not of it)
TEXTS = {
    "date": (
        ["1963-06-19", "2020-02-29", "2000-02-29", "0400-02-29", "2021-12-31", "0001-01-01"],
        ["", "2021-02-29", "1900-02-29", "2020-02-30", "2021-04-31", "2021-13-01", "2021-00-10", "2021-01-00",
         "2021-1-01", "21-01-01", "20210101", "2021-01-01Z", "2021-01-01\n", "2021-01-0১", "2013-W01"],
    ),
    "time": (
        ["08:30:06Z", "23:59:59.999+23:59", "12:34:56-00:00", "08:30:06z", "23:59:60Z", "01:29:60+01:30",
         "15:59:60.5-08:00", "00:29:60-23:30", "23:29:60+23:30", "23:59:60+00:00"],
        ["08:30:06", "24:00:00Z", "00:60:00Z", "00:00:61Z", "22:59:60Z", "23:58:60Z", "23:59:60+01:00",
         "23:59:60-00:30", "8:3:6Z", "01:02:03+24:00", "01:02:03+00:60", "01:02:03Z+00:30", "08:30:06.Z"],
    ),
    "date-time": (
        ["1963-06-19T08:30:06.283185Z", "1937-01-01t12:00:27.87+00:20", "1998-12-31T23:59:60Z",
         "2015-06-30T23:59:60.5+00:00"],
        ["1963-06-19", "1963-06-19 08:30:06Z", "1990-02-31T15:59:59Z", "1990-12-31T24:00:00Z",
         "1998-12-31T22:59:60Z", "1998-12-30T23:59:60Z", "1985-04-12T23:20:50+01", "1985-04-12T23:20:50",
         "1985-04-12T23:20:50Z\n", "2013-350T01:01:01"],
    ),
    "duration": (
        ["P4DT12H30M5S", "P4Y", "PT0S", "P1M2D", "PT36H", "P2W", "P1Y2M3DT4H5M6S", "P01D"],
        ["", "P", "PT", "P1YT", "PT1D", "4D", "P2D1Y", "P1D2H", "P1Y2W", "P1Y2D", "PT1H2S", "PT0.5S", "-P1D", "P1"],
    ),
    "email": (
        ["joe.bloggs@example.com", "te~st@example.com", '"joe bloggs"@example.com', r'"a\"b"@x', "a@[127.0.0.1]",
         "a@[IPv6:::1]", "a@[IPv6:1:2:3:4:5:6:7:8]", "a+b@xn--a.b"],
        ["2962", "@b", "a@", ".a@b", "a.@b", "a..b@c", "a b@c", "a@b=c", "a@-b", "a@b-", "a@b.", "a@[127.0.0.300]",
         "a@[IPv6:1:2:3:4:5:6:7::]", "a@b, c@d", "é@b", '"a"b"@c', "a@b\n"],
    ),
    "idn-email": (
        ["실례@실례.테스트", "joe@example.com", '"δ"@example.com', "user@cafe\u0301.com", "𝕏@b"],
        ["2962", "user＠example.com", "a@b＠c", "a@\u0301b", "a@\u00a0"],
    ),
    "hostname": (
        ["www.example.com", "a", "1host", "host-name", "a--b.com", "a" * 63 + ".com", "a.b.c.d.e.f.g"],
        ["", ".", ".a", "a.", "a..b", "-a", "a-", "a_b", "a" * 64, "xn--X", "ab--c", "é", "a\uff0eb", "a.com\n",
         ".".join(["a" * 63] * 4)],
    ),
    "idn-hostname": (
        ["www.example.com", "bücher.example", "실례.테스트", "ßς་〇", "a。b", "עברית", "münchen-ost.de"],
        ["", "〮실례", "-a", "a-", "\u0300a", "a·l", "א׳", "aא", "0א", "a..b", "a。", "ü" * 50, "xn--X", "Ü", "ab--ü",
         "\u1100\u1161"],
    ),
    "ipv4": (["192.168.0.1", "0.0.0.0", "255.255.255.255"],
             ["256.0.0.1", "127.0.0.01", "127.0", "1.2.3.4.5", "1.2.3.4\n", "0x7f.0.0.1", "１.2.3.4", "1.2.3.4/24"]),
    "ipv6": (
        ["::", "::1", "d6::", "1:2:3:4:5:6:7:8", "1::8", "::ffff:192.168.0.1", "1:2:3:4:5:6:7::", "1:d6::42"],
        ["", ":", "1", "12345::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "1:::2", "::1.2.3.256", "[::1]",
         "fe80::a%eth1", ":1:2:3:4:5:6:7", "1:2:3:4:5:6:7:", "1:2:3:4:5:6:7:1.2.3.4", "::1 "],
    ),
    "uri": (
        ["http://foo.bar/?baz=qux#quux", "mailto:a@b.c", "urn:a:b", "http://[::1]:80/", "http://[v1.a:b]", "a:",
         "http://a:b@c:1/d;e/..//?f?/#g", "file:/etc", "http://999.999.1.1", "tel:+1-2", "x://"],
        ["", "//a/b", "/a", "a", "1a:b", "a_b:c", "http://a b", "http://[::1", "http://a:b/", "http://a/%6G", "a:%",
         "http://a/é", "http://a/\\", "http://a/[b]", "http://a#b#c", ":a", "http://a\n"],
    ),
    "uri-reference": (
        ["", "//a/b", "/a", "a/b:c", "./a:b", "?a", "#a", "//", "http://a", "a%20b"],
        ["1:b", "a b", "#a#", "\\\\a\\b", "/é", "//a:b/", "/[", "//a@b@c"],
    ),
    "iri": (["http://ƒøø.ßår/?∂éœ=πîx#πîüx", "http://a/?\ue000", "a:\U00010300"],
            ["/é", "é", "http://a/\ue000", "http://é b", "http://[é]", "http://a/\ufffe"]),
    "iri-reference": (["/âππ", "//é", "#é", ""], ["\\é", "#é\\", "é b"]),
    "uri-template": (
        ["", "a/{b}/{c:1}", "{+a}{#b}{.c}{/d}{;e}{?f,g*}{&h}", "{a.b}", "{%41}", "a%41", "a'b", "é"],
        ["{", "}", "{}", "{a,}", "{a,,b}", "{a:0}", "{a:10000}", "{a..b}", "{a=b}", "a b", "%4", "{=a}", "{a:1*}", '"'],
    ),
    "uuid": (["2eb8aa08-AA98-11ea-b4aa-73b441d16380"],
             ["", "2eb8aa08aa9811eab4aa73b441d16380", "2eb8aa08-aa98-11ea-b4aa-73b441d1638", "{2eb8aa08-aa98-11ea-b4aa-73b441d16380}",
              "2eb8aa08-aa98-11ea-b4ga-73b441d16380", "urn:uuid:2eb8aa08-aa98-11ea-b4aa-73b441d16380"]),
    "json-pointer": (["", "/", "/a/b~0/c~1/%a", "//", "/\n\x00😎"], ["a", "#", "/~", "/~2", "/a~"]),
    "relative-json-pointer": (["0", "1", "120/a/b", "0#", "0//"], ["", "/a", "-1/a", "01", "0##", "1#/a", "0/~2", "1\n"]),
    "regex": (
        ["", r"([abc])+\s+$", r"^\d{3,}-(?:a|b)*?[^a-z\]]$", r"\bé\.\/", "a||b", "((a)(b))"],
        ["^(abc]", "(", "*a", "a**", "[a", "[]", r"\y", "a{3,2}", "[z-a]", "(?P<n>a)", "{1}", "\\", r"^*"],
    ),
    "byte": (["", "aGk=", "aGkh", "aA==", "+/+/"], ["a", "aGk", "aGl=", "aGkh=", "aB==", "a-_a", "aGkh\n", "===="]),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_each_format_has_its_texts(name):
    texts, others = TEXTS[name]
    content = format_content(name)
    assert [text for text in texts if not content.accepts(text)] == []
    assert [text for text in others if content.accepts(text)] == []


def test_names_that_constrain_no_string():
    assert [
        name for name in ("int32", "int64", "float", "double", "colour", "") if format_content(name)
    ] == []
    assert format_content("password") == format_content("binary") == ANY
    assert format_content("base64") == format_content("byte")
    assert set(TEXTS) | {"base64", "password", "binary"} == FORMATS


def sample(content, chance):
    """A random text; from 40 characters on, straight to an end."""
    state, text, shortest = 0, "", content.shortest()
    while not (content.final[state] and (chance.random() < 0.2 or not content.moves[state])):
        moves = content.moves[state]
        if len(text) > 40:
            if content.final[state]:
                break
            moves = [move for move in moves if shortest[move[2]] < shortest[state]]
        low, high, state = chance.choice(moves)
        text += chr(chance.randint(low, high))
    return text


def read_date_time(text):
    whole = re.sub(r"\.(\d+)", lambda digits: "." + (digits[1] + "000000")[:6], text.upper())
    datetime.datetime.fromisoformat(whole.replace("Z", "+00:00").replace(":60", ":59"))


def read_base64(text):
    assert base64.b64encode(base64.b64decode(text, validate=True)).decode() == text


READERS = {
    "date": datetime.date.fromisoformat,
    "date-time": read_date_time,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "uuid": uuid.UUID,
    "regex": re.compile,
    "byte": read_base64,
}


@pytest.mark.parametrize("name", READERS)
def test_samples_are_read_by_the_standard_library(name):
    content, chance = format_content(name), random.Random(name)
    for _ in range(500):
        text = sample(content, chance)
        assert content.accepts(text)
        READERS[name](text)


def test_formats_and_other_constraints_hold_together():
    dates = format_content("date")
    assert (dates - format_content("date")).is_empty
    assert (dates & format_content("time")).is_empty
    assert dates.longest()[0] == dates.shortest()[0] == 10
    assert (format_content("uri") - format_content("iri")).is_empty
    assert (format_content("email") - format_content("idn-email")).is_empty
    assert (format_content("hostname") - format_content("idn-hostname")).is_empty
