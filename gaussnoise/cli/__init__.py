"""The ``gaussnoise`` command: every error is one line, no data in it, and a non-zero exit."""

import sys


def main() -> None:
    """Entry point."""
    from ._app import run

    sys.exit(run(sys.argv[1:]))
