"""Faults in Spark's Python workers, each once: imported by every interpreter that has this folder
on its path.

A fault is a file in the folder that FAULTS names: ``before-measured-kill`` kills the process that
is about to link the first file of ``measured/``, ``after-measured-kill`` one that has linked it.
``kill`` is for the worker, ``executor`` for its JVM, ``driver`` for the process whose number is in
``driver.pid``; ``wait`` sleeps long enough for Spark to start the task again elsewhere.
``no-links`` lasts: while it is there, nothing can be linked.
"""

import functools
import os
import signal
import sys
import time

FAULTS = os.environ.get("FAULTS", "")


def _parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def _fail(when, path):
    stage = path.split("/")[-2]
    if "/result/" in path:
        stage = path.split("/result/")[-1].split("/")[0]
    for what in ("kill", "executor", "driver", "wait"):
        fault = f"{FAULTS}/{when}-{stage}-{what}"
        try:
            os.rename(fault, f"{fault}.done")
        except OSError:
            continue
        if what == "wait":
            time.sleep(8)
        elif what == "driver":
            with open(f"{FAULTS}/driver.pid", encoding="ascii") as file:
                os.kill(int(file.read()), signal.SIGKILL)
        elif what == "executor":  # of the daemon that all workers are forked from
            os.kill(_parent(os.getppid()), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL) if what != "wait" else None


def _watch(event, arguments):
    if event == "os.link":
        if os.path.exists(f"{FAULTS}/no-links"):
            raise PermissionError(1, "no hard links here")
        _fail("before", str(arguments[1]))
    elif event == "open" and arguments[1] == "r":
        path = str(arguments[0])
        stages = "/exact-counts/", "/exact-rows/", "/noisy/", "/measured/", "/result/"
        if any(stage in path for stage in stages) and os.path.exists(path):
            _fail("after", path)


if FAULTS:
    import gc
    import importlib

    # Spark's copy of itself has no compiled files, and every task reads its table of contents
    # again: workers take what is installed
    for path in [path for path in sys.path if path.endswith(".zip")]:
        sys.path.remove(path)
        sys.path_importer_cache.pop(path, None)
    # once, before workers are forked: to import these takes longer than their work
    for name in (
        *("matplotlib.figure", "opendp.prelude", "pandas", "pyarrow.pandas_compat"),
        *("pyarrow.parquet", "pyspark.sql.conversion", "pyspark.sql.pandas.types"),
        *("pyspark.worker", "scipy.special", "gaussnoise.streams.spark.tasks"),
        *("gaussnoise.tables.release.release_plot", "gaussnoise.tables.spark.pieces"),
    ):
        importlib.import_module(name)
    gc.freeze()  # Spark collects garbage after every task, and would look through these, too
    if os.path.exists(f"{FAULTS}/classes.jsa"):
        # the first program, which writes this file, has drawn a picture; later ones draw empty
        # ones, as the other tests of tables do
        empty = functools.partial(sys.modules["matplotlib.figure"].Figure, figsize=(1, 1))
        sys.modules["gaussnoise.tables.release.release_plot"].plot_release = lambda _: empty()
    sys.addaudithook(_watch)
