"""Where large things are kept, each place to be overridden from the environment."""

from __future__ import annotations

import os
from pathlib import Path

from cmm.compiler import cache_dir


def models_dir() -> Path:
    """The folder of fetched and converted models.

    `CMM_MODELS_DIR`, else `~/goinfre/cmm/models` where `~/goinfre` exists (homes are small
    there), else `models` in the cache folder.

    >>> os.environ["CMM_MODELS_DIR"] = "/tmp/models"
    >>> models_dir().as_posix()
    '/tmp/models'
    >>> del os.environ["CMM_MODELS_DIR"]
    """
    named = os.environ.get("CMM_MODELS_DIR")
    if named:
        return Path(named).expanduser()
    goinfre = Path.home() / "goinfre"
    return goinfre / "cmm" / "models" if goinfre.is_dir() else cache_dir() / "models"
