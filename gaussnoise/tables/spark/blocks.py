"""Files made of blocks of bytes; each block can be read and verified alone."""

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
    """Write a file: a head with the sha256 of each of ``count`` blocks, then the blocks."""
    digests = []
    with open(path, "xb") as file:
        file.seek(count * _DIGEST)
        for block in blocks:
            file.write(block)
            digests.append(hashlib.sha256(block).digest())
        file.seek(0)
        file.write(b"".join(digests))


def head_digest(path: Path, count: int) -> str | None:
    """Return the sha256 of a file's head, which identifies the whole file; None without a file."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read(count * _DIGEST)).hexdigest()
    except FileNotFoundError:
        return None


def read_block(path: Path, head: str, lengths: Sequence[int], number: int) -> bytes:
    """Return one of the blocks, after verifying it.

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
    """Return the number of bytes that :func:`packed` uses per integer of at most ``bound``."""
    return 8 if exact_type(bound) is np.int64 else bound.bit_length() // 8 + 1


def packed(values: Integers, bound: int) -> bytes:
    """Return integers whose absolute values are at most ``bound``, as bytes."""
    if exact_type(bound) is np.int64:
        return np.ascontiguousarray(values, dtype="<i8").tobytes()
    size = integer_bytes(bound)
    return b"".join(int(x).to_bytes(size, "little", signed=True) for x in values.reshape(-1))


def unpacked(block: bytes, bound: int) -> Integers:
    """Return the flat integers of a block: int64 if they provably fit, else Python integers."""
    if exact_type(bound) is np.int64:
        return np.frombuffer(block, dtype="<i8").astype(np.int64)
    size = integer_bytes(bound)
    parts = (block[start : start + size] for start in range(0, len(block), size))
    return np.array([int.from_bytes(part, "little", signed=True) for part in parts], dtype=object)
