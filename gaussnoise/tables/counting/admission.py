"""Persons whose rows may be counted, according to the earlier tables in which they were counted.

Persons are known by keyed hashes alone, which are the same in all engines.
"""

import abc
import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Digests = NDArray[np.bytes_]

DIGEST = np.dtype("S16")  # two of 10⁸ persons have the same with a probability below 10⁻²²
KEY_BYTES = 64  # a whole block of SHA-256, which Spark has as well


class AbstractAdmission(abc.ABC):
    """The rule that decides which persons' rows may be counted."""

    @property
    @abc.abstractmethod
    def key(self) -> bytes:
        """The secret key of the hashes, of :data:`KEY_BYTES` bytes."""

    @abc.abstractmethod
    def check_kind(self, kind: str) -> None:
        """Refuse a column whose persons are not named as in earlier tables.

        Raises:
            DataError: persons are of another kind: see
                :func:`gaussnoise.tables.reading.persons.kind_of_persons`.
        """

    @abc.abstractmethod
    def admitted(self, digests: Digests) -> NDArray[np.bool_]:
        """Return which of these persons, who all have rows that fit, are counted."""


def digests_of(names: Sequence[bytes], key: bytes) -> Digests:
    """Return the keyed hashes of persons, in their order."""
    # half of the hash is kept, so that the hash of a longer name does not follow from it
    found = b"".join(hashlib.sha256(key + name).digest()[: DIGEST.itemsize] for name in names)
    return np.frombuffer(found, dtype=DIGEST)
