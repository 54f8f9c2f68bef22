"""One who asks a ledger for results:
``python -I -S ledger_child.py KIND PACKAGE FOLDER FIRST LAST STRIDE KILL``.

It loads the ledger alone, through bare packages, to start in a moment. With KILL > 0 it kills
itself at the KILL-th line that it runs of the ledger, or of its own; what it draws and answers, it
says in two files first.
"""

import json
import os
import signal
import sqlite3
import sys
import time
import types

kind, package, folder, first, last, stride, kill_at = sys.argv[1:]
for name in ("gaussnoise", "gaussnoise.privacy", "domains"):  # two packages, side by side
    bare = sys.modules[name] = types.ModuleType(name)
    bare.__path__ = [os.path.join(os.path.dirname(package), *name.split("."))]
from gaussnoise.errors import BudgetError, GaussNoiseError  # noqa: E402
from gaussnoise.files import disk as _disk  # noqa: E402
from gaussnoise.privacy import ledger as _ledger  # noqa: E402
from gaussnoise.privacy import ledger_entries as _entries  # noqa: E402
from gaussnoise.privacy import ledger_file as _ledger_file  # noqa: E402
from gaussnoise.privacy import ledger_results as _results  # noqa: E402

first, last, stride, kill_at = int(first), int(last), int(stride), int(kill_at)
COST = 1 / 40
counted = []  # by a ledger in memory


def log(name, *words):
    handle = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, (" ".join(words) + "\n").encode())
    os.close(handle)


def writer(id):
    def write(scratch):
        token = os.urandom(8).hex()
        log("draws", id, token)
        with open(scratch, "w") as file:
            file.write('{"draw": ')
            file.flush()
            file.write('"' + token + '"}')

    return write


def read(place):
    return json.loads(place.read_text())["draw"]


def charged_first(id):
    return _ledger.Ledger.open(f"{folder}/l").once(
        id,
        cost=COST,
        request={"id": id},
        protects="rows",
        target=None,
        write=writer(id),
        read=read,
        draws=1,
    )


def kept_aside(id, spent):
    """The naive part of both naive ledgers: a file that is there is the result, any other is drawn,
    if spent allows.
    """
    place = _ledger.Path(folder) / f"{id}.json"
    if place.exists():
        return read(place), False
    if (spent + 1) * COST > 1:
        raise BudgetError
    scratch = place.with_suffix(f".{os.getpid()}")
    writer(id)(scratch)
    scratch.rename(place)
    return read(place), True


def deducted_afterwards(id):
    database = sqlite3.connect(f"{folder}/l.naive", timeout=30, isolation_level=None)
    ((spent,),) = database.execute("SELECT count(*) FROM entries")
    answer, new = kept_aside(id, spent)
    if new:
        time.sleep(0.005)
        database.execute("INSERT INTO entries VALUES (?)", [id])
    return answer


def counted_in_memory(id):
    answer, new = kept_aside(id, len(counted))
    counted.extend([id] * new)
    return answer


SOURCES = {
    *(module.__file__ for module in (_ledger, _entries, _ledger_file, _results, _disk)),
    __file__,
}


def trace(frame, event, argument):
    global kill_at
    if frame.f_code.co_filename not in SOURCES:
        return None
    if event == "line":
        kill_at -= 1
        if kill_at == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace


ask = {
    "charged first": charged_first,
    "deducted afterwards": deducted_afterwards,
    "in memory": counted_in_memory,
}[kind]
print("ready", flush=True)
count = last - first
for k in range(count):
    id = f"r{first + k * stride % count:03d}"
    if kill_at:
        before = kill_at
        sys.settrace(trace)
    try:
        answer = ask(id)
    except GaussNoiseError as error:
        answer = type(error).__name__
    sys.settrace(None)
    log("answers", id, answer)
if kill_at:
    print(before - kill_at)
