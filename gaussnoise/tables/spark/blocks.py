"""Files that consist of blocks of bytes, so that each block can be read and verified alone."""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import OutputError
from ...numerics.integers import exact_type

Integers = NDArray[Any]

_DIGEST = 32  # bytes of a sha256


def write_blocks(path: Path, blocks: Iterable[bytes], count: int) -> None:
    """Write a new file: first a head, the sha256 of each of ``count`` blocks; then the blocks."""
    digests = []
    with open(path, "xb") as file:
        file.seek(count * _DIGEST)
        for block in blocks:
            file.write(block)
            digests.append(hashlib.sha256(block).digest())
        file.seek(0)
        file.write(b"".join(digests))


def head_digest(path: Path, count: int) -> str | None:
    """Return the sha256 of the head of a file of ``count`` blocks; None if there is no such file.

    The head has the sha256 of every block, so its own sha256 identifies the whole file.
    """
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(count * _DIGEST)).hexdigest()
    except FileNotFoundError:
        return None


def read_block(path: Path, head: str, lengths: Sequence[int], number: int) -> bytes:
    """Return the bytes of one block of a file, after comparing their sha256 with the file's head.

    Args:
        path: the file.
        head: the result of :func:`head_digest` when the file was committed.
        lengths: the lengths of all blocks, in bytes.
        number: the index of the block.

    Raises:
        OutputError: the block is not the one that was committed.
    """
    with open(path, "rb") as file:
        digests = file.read(len(lengths) * _DIGEST)
        file.seek(len(digests) + sum(lengths[:number]))
        block = file.read(lengths[number])
    own = digests[number * _DIGEST : (number + 1) * _DIGEST]
    if (hashlib.sha256(digests).hexdigest(), hashlib.sha256(block).digest()) != (head, own):
        raise OutputError("release: a piece of a measurement is not what was committed")
    return block


def integer_bytes(bound: int) -> int:
    """Return the bytes of one integer in :func:`packed`, if absolute values are <= ``bound``."""
    return 8 if exact_type(bound) is np.int64 else bound.bit_length() // 8 + 1


def packed(values: Integers, bound: int) -> bytes:
    """Return integers of absolute values <= ``bound`` as bytes, equally many for each."""
    if exact_type(bound) is np.int64:
        return np.ascontiguousarray(values, dtype="<i8").tobytes()
    size = integer_bytes(bound)
    return b"".join(int(x).to_bytes(size, "little", signed=True) for x in values.reshape(-1))


def unpacked(block: bytes, bound: int) -> Integers:
    """Return the integers that :func:`packed` wrote into a block, flat.

    The type of the result is int64 if ``bound`` excludes an overflow. Otherwise, it is object, with
    Python integers.
    """
    if exact_type(bound) is np.int64:
        return np.frombuffer(block, dtype="<i8").astype(np.int64)
    size = integer_bytes(bound)
    parts = (block[start : start + size] for start in range(0, len(block), size))
    return np.array([int.from_bytes(part, "little", signed=True) for part in parts], dtype=object)
