"""Checks of a published folder or a saved answer, from files alone, in exact arithmetic.

``python verify.py [PATH]`` prints the checks made and the things left out; its exit status is 0 if
all checks pass. For a folder of changes, ``PATH BEFORE AFTER`` also names both releases. privacy.py
alone checks privacy, record.py the words of the record, the other files the numbers.
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

if __name__ == "__main__":  # import the files beside this one
    sys.dont_write_bytecode = True  # leave no new files in a published folder
    sys.modules["verifier"] = here = ModuleType("verifier")
    here.__path__, __package__ = [str(Path(__file__).resolve().parent)], "verifier"

from . import changes, optimality, record, series, tables
from .privacy import Changes, Combined, Folder, Release, Stream, digest_of, need, opened

_UNCHECKED = [
    "summary.txt, method.txt, ddi.xml, metadata of tables, pictures, noise.npz, signature.json",
    "epsilon_delta, lower_bound, targets, on_outside, disclaimers",
]
_USAGE = "usage: verify.py [PATH], or of changes and both releases [PATH BEFORE AFTER]"


def check_rest(folder: Folder, *, alone: bool = True) -> None:
    """Make all checks but privacy, parts first; ``alone`` is false for part of a combination."""
    for part in folder.parts.values():
        check_rest(part, alone=not isinstance(folder, Combined))
    if isinstance(folder, Stream):
        record.check_stream(folder)
        return series.check_stream(folder)
    need(repr(folder.record["intervals"]) == repr(record.LEVEL), "intervals")
    if isinstance(folder, Release):
        record.check_release(folder)
        tables.check_release(folder, alone)
        optimality.check_bracket(folder)
    elif isinstance(folder, Combined):
        series.check_combined(folder)
    elif isinstance(folder, Changes):
        changes.check_tables(folder)
    return None


def verified(at: str | Path, *releases: Path, answer: Any = optimality.Answer) -> list[str]:
    """Return lines that begin with "checked" or "unchecked", or one "FAILED" or "UNKNOWN" line.

    ``releases``: the folders of both releases, for a folder of changes.
    """
    path = Path(at)
    try:
        found: Any = answer(path) if path.is_file() else opened(path, *releases)
        found.check()
        if path.is_dir():
            check_rest(found)
    except NotImplementedError as error:
        return [f"UNKNOWN: no check of such a folder: {error}"]
    except Exception as error:  # noqa: BLE001 (any error is a fault of the folder)
        return [f"FAILED: {error if isinstance(error, ValueError | OSError) else repr(error)}"]
    left = [*dict.fromkeys(found.unchecked), *_UNCHECKED * path.is_dir()]
    copy, own = path / "verifier", Path(__file__).parent
    here = {x.relative_to(copy).as_posix(): digest_of(x) for x in copy.rglob("*")}
    if any(sha256 != digest_of(own / name) for name, sha256 in here.items()):
        left += ["verifier in the folder: it is another one than this, or has other files"]
    left += ["other fields; who wrote it, and how it was drawn"]
    return [f"checked    {said}" for said in found.checked] + [f"unchecked  {of}" for of in left]


def verdict(lines: list[str]) -> str:
    """Return one line that sums up the lines of :func:`verified`."""
    fault = next((line for line in lines if line.startswith(("FAILED", "UNKNOWN"))), None)
    if fault is not None:
        return f"NOT VERIFIED: {fault.partition(': ')[2]}"
    checks = sum(line.startswith("checked") for line in lines)
    left = len(lines) - checks
    return f"VERIFIED: {checks} of {checks} checks; {left} lines above say what is not checked"


if __name__ == "__main__":
    given = [Path(x) for x in sys.argv[1:] or ["."]]
    found = verified(*given) if len(given) in (1, 3) else [_USAGE]
    print("\n".join([*found, verdict(found)]).encode("ascii", "backslashreplace").decode())
    sys.exit(not found[0].startswith("checked"))
