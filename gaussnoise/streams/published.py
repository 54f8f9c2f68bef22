"""Published tables of a tick, read after a check that the tick's folder agrees with the plan."""

import re
from collections.abc import Mapping
from typing import Any

from ..errors import GaussNoiseError, StreamError
from ..files.disk import folder_fault, read_json
from ..tables.release.store import StoredTables
from ..tables.release.stored import difference, executors_in
from ..tables.schema.schema import OnOutside
from .files import TICK_FORMAT, deviation_in, places_in, tick_record, tick_texts
from .plan import StreamPlan
from .state import MOST_BYTES, State

_SHA256 = re.compile(r"[0-9a-f]{64}")


def stored(
    state: State, plan: StreamPlan, on_outside: OnOutside, what: str, tick: int
) -> StoredTables:
    """Return the published tables of one tick.

    ``what`` is "period" for the tables of the tick's own rows, "cumulative" for those of all rows
    so far.

    Raises:
        StreamError: files are missing, changed, or do not follow from the plan.
    """
    folder = state.tick_folder(tick)
    try:
        record = read_json(folder / "release.json", MOST_BYTES)
        fault = folder_fault(folder, record["files"], every=True)
        if (record["format"], record["stream"], record["tick"]) != (TICK_FORMAT, state.key, tick):
            fault = "'release.json' is of another stream or tick"
        written = {
            own: StoredTables(folder / own, places_in(record, own, plan))
            for own in ("cumulative", "period")
        }
        listed = {f"{own}/{p.file}" for own in written for p in written[own].places.values()}
        if not listed <= {*record["files"]}:
            raise ValueError
        if fault is None:
            fault = _disagreement(state, plan, on_outside, tick, written, record)
        if fault is None:
            first = tick if what == "period" else 1
            covariance = plan.covariance(plan.window(first, tick))
            fault = written[what].fault(deviation_in(covariance))
        if fault is None:
            return written[what]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, GaussNoiseError) as error:
        raise StreamError(
            f"stream: {folder} is not a complete tick ({type(error).__name__})"
        ) from None
    raise StreamError(f"stream: in {folder}, {fault}; hint: the folder as it was written")


def _disagreement(
    state: State,
    plan: StreamPlan,
    on_outside: OnOutside,
    tick: int,
    written: Mapping[str, StoredTables],
    record: Mapping[str, Any],
) -> str | None:
    """Return a description of how a tick's record or texts differ from the plan, or None."""
    folder, measured = state.tick_folder(tick), record["measurements_sha256"]
    if not _SHA256.fullmatch(measured):
        raise ValueError
    expected = tick_record(
        plan, state.key, tick, measured, written, folder, on_outside, record["files"]
    )
    expected |= executors_in(record)
    return difference(folder, expected, record, tick_texts(plan, tick))
