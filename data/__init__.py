"""What the program is shipped with: default inputs, prompt configurations, the model catalogue."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path


def data_path(*parts: str) -> Path:
    """Where a shipped file lies.

    >>> data_path("models.json").name
    'models.json'
    """
    return Path(str(files("cmm.data"))).joinpath(*parts)
