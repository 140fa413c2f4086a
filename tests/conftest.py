"""Shared by all tests: a cache folder of their own."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _own_cache(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Unit tests never touch the user's cache; tests of a real model use it, for it is large."""
    if request.node.get_closest_marker("model") is None:
        monkeypatch.setenv("CMM_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
