"""What all tests share: a cache folder of their own."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CMM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
