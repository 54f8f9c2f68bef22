"""The ``gaussnoise`` command: every error is one line, no data in it, and a non-zero exit."""

import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> None:
    """Entry point."""
    from .app import run

    signal.signal(signal.SIGTERM, _terminated)
    status = run(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(
            number, signal.SIG_IGN
        )  # nothing is left to stop, and to raise in a shutdown may abort it
    sys.exit(status)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """Leave as after an error, so that files of an unfinished release are removed."""
    sys.exit(128 + number)
