"""Where the command `cmm` begins: Ctrl-C counts from here on, before anything slow is imported."""

import sys


def main() -> int:
    """Run the command line, and give its exit code."""
    try:
        from cmm.runtime.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("cmm: stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
