"""Saying calls: models, prompts, decoding, the command line. Imported lazily, for torch is slow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cmm.runtime.caller import Caller, FunctionCall

# Before torch is imported: threads that wait for work sleep instead of spinning. With another busy
# process on the machine, spinning made a forward pass five times slower.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# oneDNN keeps code for each shape of a product, 1,024 of them; passes have ever other shapes, and
# in a thousand calls that grew to some 300 MB.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

__all__ = ["Caller", "FunctionCall"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from cmm.runtime import caller

        return getattr(caller, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
