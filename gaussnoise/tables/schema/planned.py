"""The tables ``[plan]``, ``[release]`` and ``[stream]`` of a schema file: options of commands."""

import os
from pathlib import Path
from typing import Any, Literal

from .schema import parsed_toml, read_toml


def load_plan(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the ``[plan]`` table of a schema file; an empty mapping if there is none.

    The keys of this table are named like the options of ``gaussnoise plan``. The key ``table``
    names the files with the rows, relative to the schema file; they are returned as paths.

    Raises:
        SchemaError: the message starts with ``path:line:``.
    """
    stated = _table(path, "plan")
    if "table" in stated:
        named = stated["table"]
        files = [named] if isinstance(named, str) else named
        stated["table"] = [Path(path).parent / file for file in files]
    return stated


def load_options(
    path: str | os.PathLike[str], table: Literal["release", "stream"]
) -> dict[str, Any]:
    """Return the table of a schema file with options of a command; empty if there is none.

    The keys of ``[release]`` are named like the options of ``gaussnoise release``, those of
    ``[stream]`` like the options of ``gaussnoise stream start``.

    Raises:
        SchemaError: the message starts with ``path:line:``.
    """
    return _table(path, table)


def _table(path: str | os.PathLike[str], name: str) -> dict[str, Any]:
    return dict(parsed_toml(*read_toml(path)).get(name, {}))
