"""Runs notebooks, each in a process of its own: ``python notebook_child.py NOTEBOOK...``.

Prints a JSON object: the traceback of the first cell that failed, or nothing, for every notebook.
What most of them load is loaded once, before the processes are forked.
"""

import gc
import json
import os
import sys
import traceback
from pathlib import Path

import matplotlib.pyplot  # noqa: F401
import matplotlib_inline.backend_inline  # noqa: F401
import narwhals  # noqa: F401
import opendp.prelude  # noqa: F401
import pandas  # noqa: F401
import pyarrow  # noqa: F401
import scipy.optimize
import scipy.stats  # noqa: F401
import statsmodels.api  # noqa: F401
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import gaussnoise.demo
import gaussnoise.plots  # noqa: F401


class Shell(InteractiveShell):
    """A kernel without a client: it runs magics, draws figures, and keeps what went wrong."""

    fault = ""

    def enable_gui(self, gui=None):
        """There is none."""

    def showtraceback(self, *_, **__):
        self.fault = self.fault or traceback.format_exc()

    showsyntaxerror = (
        showtraceback  # figures that cannot be drawn come here as well, after their cell
    )


def fault_of(path):
    """The traceback of the first cell that fails."""
    shell = Shell.instance(config=Config({"HistoryManager": {"enabled": False}}))
    os.chdir(path.parent)
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code" and not shell.fault:
            result = shell.run_cell("".join(cell["source"]), store_history=True)
            if not (result.success or shell.fault):
                shell.fault = repr(result)
    return shell.fault


def forked(path):
    """What a process of its own finds."""
    reading, writing = os.pipe()
    if not (process := os.fork()):
        fault = "it ended early"
        try:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            fault = fault_of(path)
        finally:
            with os.fdopen(writing, "w", encoding="utf-8") as pipe:
                pipe.write(fault)
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8", errors="replace") as pipe:
        fault = pipe.read()
    status = os.waitpid(process, 0)[1]
    return fault or (f"it ended with status {status}" if status else "")


gc.freeze()  # or every full collection, in every process, looks through all that was loaded
gc.set_threshold(20_000)
print(json.dumps({path: forked(Path(path).resolve()) for path in sys.argv[1:]}))
