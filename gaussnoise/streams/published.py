"""Published tables of a tick, read after their files are checked."""

from ..errors import GaussNoiseError, StreamError
from ..files.disk import folder_fault, read_json
from ..tables.release.store import StoredTables
from .files import places_in
from .plan import StreamPlan
from .state import MOST_BYTES, State


def stored(state: State, plan: StreamPlan, what: str, tick: int) -> StoredTables:
    """Return the published tables of one tick: "cumulative" or "period".

    Raises:
        StreamError: files are missing or changed.
    """
    folder = state.tick_folder(tick)
    try:
        record = read_json(folder / "release.json", MOST_BYTES)
        fault = folder_fault(folder, record["files"], every=True)
        if (record["stream"], record["tick"]) != (state.key, tick):
            fault = "'release.json' is of another stream or tick"
        if fault is None:
            return StoredTables(folder / what, places_in(record[what], plan))
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        GaussNoiseError,
    ) as error:
        raise StreamError(
            f"stream: {folder} is not a complete tick ({type(error).__name__})"
        ) from None
    raise StreamError(f"stream: in {folder}, {fault}; hint: the folder as it was written")
