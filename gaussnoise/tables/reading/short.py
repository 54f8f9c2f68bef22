"""Look-up of texts of one or two bytes, as most codes are, by their bytes, without hashing."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


def short_texts(values: "pa.Array | pa.ChunkedArray", find: Callable[[str], int]) -> Any:
    """Return ``find(text)`` for each text, as an array of shape (rows,); equal texts share a call.

    Return None if there are nulls, or texts that differ in length or have more than two bytes.
    """
    import pyarrow as pa

    parts = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
    keys, found = list(map(_bytes_of, parts)), []
    for own in keys:
        if own is None:
            return None
        known = np.flatnonzero(np.bincount(own))
        codes = np.zeros(known.max() + 1, dtype=np.int64)
        texts = known.astype(own.dtype).tobytes()
        k = own.itemsize
        codes[known] = [
            find(texts[i : i + k].decode(errors="surrogateescape")) for i in range(0, len(texts), k)
        ]
        found.append(np.take(codes, own))
    return np.concatenate(found) if found else None


def _bytes_of(values: "pa.Array") -> NDArray[np.unsignedinteger] | None:
    """Return texts as integers of their one or two bytes; None for nulls or other lengths."""
    import pyarrow as pa

    kinds = {pa.string(): np.int32, pa.large_string(): np.int64}
    rows = len(values)
    if not rows or values.null_count or values.type not in kinds:
        return None
    _, ends, text = values.buffers()
    ends = np.frombuffer(ends, kinds[values.type])[values.offset : values.offset + rows + 1]
    width, rest = divmod(int(ends[-1] - ends[0]), rows)
    # none is longer than their mean, so that all are as long
    if rest or width not in (1, 2) or (ends[1:] - ends[:-1]).max() > width:
        return None
    own = np.frombuffer(text, np.uint8)[ends[0] : ends[-1]]
    return own if width == 1 else own.view(np.uint16)
