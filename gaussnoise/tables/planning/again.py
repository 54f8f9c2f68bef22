"""The plan of a release on disk, computed again from the arguments stored with the release."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from domains.tables.products import Products

from ...errors import GaussNoiseError, NotAvailableError, OutputError
from ...files.disk import MALFORMED, read_json
from ...noise.optimal_noise import OptimalNoise
from ...privacy.guarantee import check_gaussian
from ..schema.entries import workload_domain
from ..schema.numbers import records_of
from ..schema.schema import Schema
from .request import Request, arguments_in

if TYPE_CHECKING:
    from .plan import Plan

NOISE = "noise.npz"  # the optimal noise with its proof, if verifying it is faster than solving


def planned_again(directory: str | os.PathLike[str]) -> "Plan":
    """Return the plan of a release on disk, computed again from the stored arguments of the plan.

    Whether the release was made with an equal plan is not checked.
    """
    folder = Path(directory)
    try:
        record = read_json(folder / "release.json")
    except (OSError, ValueError) as error:
        raise OutputError(
            f"load: {folder} is not a complete release ({type(error).__name__}){_hint(folder)}"
        ) from None
    return planned_from(record, folder)


def _hint(folder: Path) -> str:
    """Return a hint, for an error, on the probable content of a folder that holds no release."""
    if (folder / "stream.json").exists():
        return f"; hint: it is a stream: gaussnoise report {folder}, or gn.streams.Stream.open"
    if not folder.exists():
        return "; hint: there is no such folder"
    return "; hint: expected the folder that a release was written to, with its release.json"


def planned_from(record: Any, folder: Path) -> "Plan":
    """Return the plan that ``record``, the content of a release.json, describes.

    ``folder`` is the folder of the release: it may hold the optimal noise, and errors name it.
    """
    from .door import plan

    try:
        asked, writer = record.get("plan"), record["libraries"]["gaussnoise"]
        if asked is None:
            raise OutputError(
                f"load: {folder} does not say how it was planned, as releases of earlier versions "
                "do not; hint: load(directory, plan), planned again with the same arguments"
            )
        arguments = arguments_in(asked)
        text = arguments.pop("schema")
    except OutputError:
        raise
    except NotAvailableError as error:
        raise OutputError(
            f"load: {folder} was planned for a privacy guarantee of its own: {error}, or "
            "load(directory, plan), planned again with the same arguments"
        ) from None
    except MALFORMED as error:
        raise OutputError(
            f"load: {folder} is not a complete release ({type(error).__name__})"
        ) from None
    try:
        schema = Schema.loads(text)
        stored = folder / NOISE if NOISE in record.get("files", {}) else None
        return _proven(schema, stored, **arguments) or plan(schema, **arguments)
    except (GaussNoiseError, TypeError, ValueError, OverflowError) as error:
        raise OutputError(
            f"load: {folder} cannot be planned again by this version: {error}; hint: gaussnoise "
            f"{writer} wrote it; its files can be read as they are"
        ) from None


def _proven(
    schema: Schema, path: Path | None, *, workload: Any, weights: Any = None, **asked: Any
) -> "Plan | None":
    """Return the plan with the verified noise at ``path``; None if no such noise is stored."""
    from .plan import Plan

    if "targets" in asked or path is None or not path.exists():
        return None  # with targets, weights are found by solving again
    check_gaussian("load", asked["privacy"], stacklevel=2).stated()
    domain = workload_domain(schema, workload, weights, asked["privacy"].scales)
    try:
        noise = OptimalNoise.load(path)
    except GaussNoiseError:
        return None
    stored = noise.domain
    if not isinstance(stored, Products) or noise.sensitivity_squared != 1:
        return None
    rows = records_of(domain) if isinstance(domain, Products) else domain
    for protected, own in ((domain, stored), (rows, domain)):
        known = protected.sizes, protected.terms, protected.weights
        if known == (stored.sizes, stored.terms, stored.weights):
            return Plan(Request(schema=schema, domain=own, **asked), noise)
    return None
