"""A fork that does one thing with our package and may be killed at any of its lines; for the
programs ``release_child.py`` and ``stream_child.py``.
"""

import os
import signal
import sys
import traceback
from pathlib import Path

import gaussnoise as gn
from gaussnoise.privacy import sampler as _sampler

_PACKAGE = str(Path(gn.__file__).parent)
_draw = _sampler.IntegerQuery.draw


def forked(place, begin, *, at=None, says="drawn"):
    """Exit status of a process that asks, and the lines it ran if it was not killed.

    Args:
        place: a folder. A draw adds ``says`` to its file ``draws``, an answer itself to
            ``answers``, and ``lines`` gets how many distinct lines of ours were run.
        begin: prepares what is not watched; returns what asks, and returns the answer as text.
        at: which new line kills the process, at the latest after the last one; or the first line
            of which function.
        says: of a draw.
    """
    if not (process := os.fork()):
        status = 1
        try:
            seen, drawn = set(), []

            def drawing(query, count):
                if not drawn:
                    drawn.append(count)
                    with open(place / "draws", "a") as file:
                        file.write(f"{says}\n")
                return _draw(query, count)

            def trace(frame, event, argument):
                code = frame.f_code
                if not code.co_filename.startswith(_PACKAGE):
                    return None
                seen.add((code.co_filename, frame.f_lineno))
                if at in (len(seen), code.co_name):
                    os.kill(os.getpid(), signal.SIGKILL)
                return trace

            ask = begin()
            _sampler.IntegerQuery.draw = drawing
            sys.settrace(trace)
            answer = ask()
            sys.settrace(None)
            if isinstance(at, int):  # other draws may have run fewer lines
                os.kill(os.getpid(), signal.SIGKILL)
            with open(place / "answers", "a") as file:
                file.write(f"{answer}\n")
            (place / "lines").write_text(str(len(seen)))
            status = 0
        except BaseException:  # noqa: BLE001 (a fork must never go on in its parent's place)
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(process, 0)[1]


def spread(lines, count):
    """So many of the lines, the first and the last among them."""
    return sorted({1 + k * (lines - 1) // max(count - 1, 1) for k in range(count)})
