"""The ``gaussnoise`` command: every error is one line, no data in it, and a non-zero exit."""

import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> None:
    """Entry point."""
    from .app import run

    signal.signal(signal.SIGTERM, _terminated)
    sys.exit(run(sys.argv[1:]))


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """Leave as after an error, so that files of an unfinished release are removed."""
    sys.exit(128 + number)
