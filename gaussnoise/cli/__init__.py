"""The ``gaussnoise`` command. An error is one line without data, and a non-zero exit code."""

import signal
import sys
from types import FrameType
from typing import NoReturn


def main() -> None:
    """Run the command line and exit with its status."""
    from .app import run

    signal.signal(signal.SIGTERM, _terminated)
    status = run(sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # a signal now could only disturb the shutdown
    sys.exit(status)


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    """Handle the signal SIGTERM: exit as after an error, and so remove unfinished files."""
    sys.exit(128 + number)
