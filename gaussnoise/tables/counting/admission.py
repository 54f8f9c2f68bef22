"""Which persons' rows may be counted, given the earlier tables in which they were counted.

Persons are known by keyed hashes only, which are the same in all engines.
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
    """The rule that decides which persons' rows may be counted."""

    @property
    @abc.abstractmethod
    def key(self) -> bytes:
        """The secret key of the hashes, of :data:`KEY_BYTES` bytes."""

    @abc.abstractmethod
    def check_kind(self, kind: str) -> None:
        """Raise if the persons of a column have other types of names than in earlier tables.

        Raises:
            DataError: the type of their names differs: see
                :func:`gaussnoise.tables.reading.persons.kind_of_persons`.
        """

    @abc.abstractmethod
    def admitted(self, digests: Digests) -> NDArray[np.bool_]:
        """Return which of these persons may be counted; all of them have rows that fit."""


def digests_of(names: Sequence[bytes], key: bytes) -> Digests:
    """Return the keyed hashes of persons, in their order."""
    # half of each hash is dropped, so that hashes of longer names cannot be derived from it
    found = b"".join(hashlib.sha256(key + name).digest()[: DIGEST.itemsize] for name in names)
    return np.frombuffer(found, dtype=DIGEST)
