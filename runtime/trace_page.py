"""A recorded run as one page that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cmm.data import data_path

PLACE = "{{run}}"


def trace_page(calls: Sequence[dict[str, Any]], model: str) -> str:
    """The page: the run as JSON in it, in which no text can end the element that holds it."""
    run = json.dumps({"model": model, "calls": list(calls)}, ensure_ascii=False, allow_nan=False)
    page = data_path("pages", "trace.html").read_text(encoding="utf-8")
    before, found, after = page.partition(PLACE)
    assert found
    return before + run.replace("<", "\\u003c") + after
