"""`--trace` and `--report`: a run is recorded, and the files are written at its end."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cmm.runtime.display import tell
from cmm.runtime.files import check_output, json_list, write_whole

if TYPE_CHECKING:
    from cmm.runtime.caller import Caller


def check_recording(options: argparse.Namespace) -> None:
    """Refuse files that cannot be written, before the work."""
    for path in (options.trace, options.report):
        if path is not None:
            check_output(path)


@contextmanager
def recorded(caller: Caller, options: argparse.Namespace) -> Iterator[None]:
    """Record what a caller does, where options ask for it; what was done is written in any case."""
    if options.trace is None and options.report is None:
        yield
        return
    from cmm.runtime.record import Recorder, report
    from cmm.runtime.trace_page import trace_page

    recorder = Recorder(all_logits=options.trace is not None)
    caller.watch(recorder)
    try:
        yield
    finally:
        if options.trace is not None:
            write_whole(options.trace, [trace_page(recorder.calls, caller.model.name)])
        if options.report is not None:
            write_whole(options.report, json_list(report(recorder.calls)))
        if not options.quiet:
            tell(f"written to {', '.join(str(p) for p in (options.trace, options.report) if p)}")
