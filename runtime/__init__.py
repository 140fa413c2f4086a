"""Saying calls: models, prompts, decoding, the command line. Imported lazily, for torch is slow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cmm.runtime.caller import Caller, FunctionCall

__all__ = ["Caller", "FunctionCall"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from cmm.runtime import caller

        return getattr(caller, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
