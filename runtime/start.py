"""Where the command `cmm` begins: Ctrl-C counts from here on, before anything slow is imported."""

import os
import signal
import sys


def main() -> int:
    """Run the command line, and give its exit code."""
    try:
        open_closed_streams()
        from cmm.runtime.cli import main as run

        return run()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would interrupt the ending
        print("cmm: stopped", file=sys.stderr)
        return 130


def open_closed_streams() -> None:
    """Open what was closed (`>&-`), or the next file that is opened takes its place.

    Reading stdin and writing to stdout fail then, as they should; what stderr is told is dropped.
    """
    streams = (
        ("stdin", "r", os.O_WRONLY),
        ("stdout", "w", os.O_RDONLY),
        ("stderr", "w", os.O_WRONLY),
    )
    for number, (name, mode, how) in enumerate(streams):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, how)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


if __name__ == "__main__":
    sys.exit(main())
