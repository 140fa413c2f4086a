"""docs/json-schema.md says what the code does.

To bring it up to date: `python tests/grammar/test_keyword_table.py`.
"""

import re
from pathlib import Path

from cmm.grammar.keyword_table import format_list, keyword_rows, keyword_table

DOCUMENT = Path(__file__).parents[2] / "docs" / "json-schema.md"


def up_to_date(text: str) -> str:
    """The document with its two parts made anew."""
    for name, part in {"keywords": keyword_table(), "formats": format_list()}.items():
        marks = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = marks.sub(lambda found, part=part: f"{found[1]}{part}\n{found[2]}", text)
    return text


def test_the_document_is_up_to_date():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == up_to_date(text), f"run: python {Path(__file__).name}"


def test_no_keyword_is_in_two_rows():
    keywords = [keyword for keyword, _, _ in keyword_rows()]
    assert len(keywords) == len(set(keywords))


if __name__ == "__main__":
    DOCUMENT.write_text(up_to_date(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
