"""The tables ``[plan]`` and ``[stream]`` of a schema file: options of commands, besides tables."""

import os
from pathlib import Path
from typing import Any

from .schema import parsed_toml, read_toml


def load_plan(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the ``[plan]`` table of a schema file; an empty mapping if there is none.

    Its keys are named like the options of ``gaussnoise plan``. ``table`` names the files with the
    rows, relative to the schema file; they are returned as paths.

    Raises:
        SchemaError: the message starts with ``path:line:``.
    """
    stated = dict(parsed_toml(*read_toml(path)).get("plan", {}))
    if "table" in stated:
        named = stated["table"]
        files = [named] if isinstance(named, str) else named
        stated["table"] = [Path(path).parent / file for file in files]
    return stated


def load_stream(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the ``[stream]`` table of a schema file; an empty mapping if there is none.

    Its keys are named like the options of ``gaussnoise stream start``.

    Raises:
        SchemaError: the message starts with ``path:line:``.
    """
    return dict(parsed_toml(*read_toml(path)).get("stream", {}))
