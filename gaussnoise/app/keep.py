"""Texts that repeat a release: shell commands, a Python script and a notebook."""

import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import ParameterError
from ..tables.schema.planned import load_plan
from .asked import asked_of
from .project import LEDGER, RELEASES, SCHEMA


class Wish(NamedTuple):
    """The user's choices for a release: its name, the file format, and notes for the ledger."""

    id: str
    format: str = "csv"
    purpose: str = ""
    requested_by: str = ""

    @property
    def place(self) -> str:
        """The folder of the release, inside the project."""
        return f"{RELEASES}/{self.id}"

    def words(self) -> list[str]:
        """Return the arguments of the shell command ``gaussnoise`` that makes the release."""
        given = ["release", "-s", SCHEMA, "-o", self.place, "--ledger", LEDGER, "--id", self.id]
        notes = {"--format": self.format, "--purpose": self.purpose}
        notes |= {"--requested-by": self.requested_by}
        return [*given, *(x for pair in notes.items() if pair[1] for x in pair)]


def commands(wish: Wish, budget: float) -> str:
    """Return a shell script that repeats the release; it is run in the project's folder.

    ``budget`` is the rho of the ledger, if the script has to create the ledger.
    """
    return "\n".join(
        [
            f"gaussnoise plan -s {SCHEMA}",
            f"mkdir -p {RELEASES}",
            f"[ -e {LEDGER} ] || gaussnoise ledger create {LEDGER} --rho {budget!r}",
            shlex.join(["gaussnoise", *wish.words()]),
            f"gaussnoise report {shlex.quote(wish.place)} -o {shlex.quote(wish.id)}.html",
            f"gaussnoise verify {shlex.quote(wish.place)}",
            "",
        ]
    )


def cells(folder: Path, wish: Wish, budget: float) -> list[str]:
    """Return Python code that repeats the release, split into the cells of a notebook.

    The code is run in the project's folder, ``folder``. ``budget`` is the rho of the ledger, if the
    code has to create the ledger.
    """
    path = folder / SCHEMA
    asked, stated = asked_of(path), load_plan(path)
    if "table" not in stated:
        raise ParameterError("expected a file of rows; mend it on the page Table")
    files = [file.relative_to(folder).as_posix() for file in stated["table"]]
    options = "".join(f"    {name}={_code(value)},\n" for name, value in asked.options.items())
    notes = {name: value for name, value in wish._asdict().items() if value}
    said = ", ".join(f"{x}={notes[x]!r}" for x in ("purpose", "requested_by") if x in notes)
    ledger = f"ledger.noted({said})" if said else "ledger"
    return [
        "import pathlib\n\nimport gaussnoise as gn",
        f'schema = gn.Schema.load("{SCHEMA}")\nplan = gn.plan(\n    schema,\n'
        f"    {_code(asked.workload)},\n    {_code(asked.privacy)},\n{options})\nprint(plan)",
        f'pathlib.Path("{RELEASES}").mkdir(exist_ok=True)\n'
        f'if pathlib.Path("{LEDGER}").exists():\n    ledger = gn.Ledger.open("{LEDGER}")\n'
        f'else:\n    ledger = gn.Ledger.create("{LEDGER}", gn.zCDP({budget!r}))',
        "# charged once: run again, the same release is read from its folder\n"
        f"release = plan.release(\n    {_code(files[0] if len(files) == 1 else files)},\n"
        f'    out={wish.place!r},\n    format={wish.format!r},\n    on_outside="drop",\n'
        f"    ledger={ledger},\n    id={wish.id!r},\n)\nprint(release)",
    ]


def _code(value: Any) -> str:
    """Return a Python expression for ``value``, an argument of ``gn.plan``."""
    if isinstance(value, list | tuple):
        inner = ", ".join(map(_code, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k!r}: {_code(v)}" for k, v in value.items()) + "}"
    if value is None or isinstance(value, str | int):
        return repr(value)
    if isinstance(value, float):
        return f"float({str(value)!r})" if math.isinf(value) else repr(value)
    return f"gn.{value!r}"


def script(parts: Sequence[str]) -> str:
    """Return a Python script from pieces of Python code."""
    return "\n\n".join(parts) + "\n"


def notebook(parts: Sequence[str]) -> str:
    """Return a Jupyter notebook, as JSON text, with a cell for each piece of Python code."""
    listed = [
        {
            "cell_type": "code",
            "execution_count": None,
            "id": f"cell-{k}",
            "metadata": {},
            "outputs": [],
            "source": part.splitlines(keepends=True),
        }
        for k, part in enumerate(parts)
    ]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    book = {"cells": listed, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(book, indent=1, ensure_ascii=False) + "\n"
