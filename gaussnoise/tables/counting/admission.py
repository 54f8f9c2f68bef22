"""A rule that decides which persons may be counted, given earlier tables that counted them.

Persons are identified only by keyed hashes of their names, which are the same in all engines.
"""

import abc
import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.bytes_]

DIGEST = np.dtype("S16")  # for 10⁸ persons, the probability of equal hashes is below 10⁻²²
KEY_BYTES = 64  # one block of SHA-256, which Spark has too


class AbstractAdmission(abc.ABC):
    """A rule that decides which persons' rows may be counted in a table.

    It identifies persons only by keyed hashes of their names.
    """

    @property
    @abc.abstractmethod
    def key(self) -> bytes:
        """The secret key for the hashes of persons' names, of :data:`KEY_BYTES` bytes."""

    @abc.abstractmethod
    def check_kind(self, kind: str) -> None:
        """Refuse a column of persons whose kind of values differs from that in earlier tables.

        Raises:
            DataError: the type of their names differs: see
                :func:`gaussnoise.tables.reading.persons.kind_of_persons`.
        """

    @abc.abstractmethod
    def admitted(self, digests: Digests) -> NDArray[np.bool_]:
        """Return one truth value for each person: whether the person may be counted.

        ``digests`` are the hashes (:func:`digests_of`) of distinct persons with valid rows.
        """


def digests_of(names: Sequence[bytes], key: bytes) -> Digests:
    """Return a keyed hash (16 bytes) of each person's name, shape (persons,)."""
    # half of each hash is dropped, so that hashes of longer names cannot be derived from it
    found = b"".join(hashlib.sha256(key + name).digest()[: DIGEST.itemsize] for name in names)
    return np.frombuffer(found, dtype=DIGEST)
