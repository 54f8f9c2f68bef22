"""The command that certifies a strategy, given as a matrix or as measured tables."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..bounds.certify import certify
from ..bounds.opendp_tables import is_opendp
from ..errors import ParameterError
from ..files.disk import opened
from .console import ERR, say, show
from .documents import certificate_document
from .matrix import read_matrix
from .options import Json, Neighbors, Norm, check_norm
from .patience import patience

_FORM = (
    '{"sizes": {"sex": 2, "age": 4}, "measurements": [{"attributes": ["sex", "age"], '
    '"standard_deviation": 2}], "workload": [["sex"]]}, where "workload" may be left out'
)


def certify_strategy(
    strategy: Annotated[
        Path,
        typer.Argument(
            help="Matrix of outputs by cells: .npy, .npz or .mtx, or CSV of numbers alone; each "
            "row divided by the standard deviation of its noise, where these differ. Or .json of "
            f"measured tables, like {_FORM}: sizes are numbers of categories, and a table that was "
            "measured twice is listed twice; or of a measurement of OpenDP."
        ),
    ],
    workload: Annotated[
        Path | None,
        typer.Argument(help="Matrix of queries by cells. Not for .json, which names its tables."),
    ] = None,
    neighbors: Neighbors = "add-remove",
    p: Norm = 2,
    as_json: Json = False,
) -> None:
    """Prove how close a given strategy is to the best possible. Needs no data."""
    check_norm("certify", p)
    _check_is_file(strategy)
    given: Any
    if strategy.suffix == ".json":
        if workload is not None:
            raise ParameterError(f"certify: expected no second file with {strategy}; hint: {_FORM}")
        given, wanted, sizes = _read_tables(strategy)
    elif workload is None:
        raise ParameterError(
            "certify: expected a strategy and a workload, got one matrix; hint: gaussnoise certify "
            "STRATEGY WORKLOAD"
        )
    else:
        given, wanted = read_matrix(strategy, "certify"), read_matrix(workload, "certify")
        sizes = None
    with patience(ERR, "solving"):
        found = certify(given, wanted, neighbors=neighbors, sizes=sizes, p=p)
    if as_json:
        return show(certificate_document(found, neighbors))
    say(str(found))


def _check_is_file(strategy: Path) -> None:
    """Raise ParameterError if ``strategy`` is a folder, as for ``gaussnoise verify``."""
    if strategy.is_dir():
        raise ParameterError(
            f"certify: expected a file with a strategy, got the folder {strategy}; hint: "
            "gaussnoise verify FOLDER checks a published folder"
        )


def _read_tables(path: Path) -> tuple[Any, Any, Any]:
    """Return (measured tables, requested tables, sizes), or (OpenDP's document, None, None)."""
    try:
        with opened(path) as file:
            document = json.load(file)
        if is_opendp(document):
            return document, None, None
        measured: dict[tuple[str, ...], list[float]] = {}
        for one in document["measurements"]:
            names = tuple(one["attributes"])
            measured.setdefault(names, []).append(one["standard_deviation"])
        return measured, document.get("workload"), dict(document["sizes"])
    except OSError as error:
        raise ParameterError(f"certify: cannot read {path} ({type(error).__name__})") from None
    except (ValueError, LookupError, TypeError, AttributeError):
        raise ParameterError(
            f"certify: expected measured tables in {path}; hint: {_FORM}"
        ) from None
