"""Named arrays and a JSON header in one ``.npz`` file, read with limits and without pickles."""

import json
import math
import os
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from domains.errors import DomainError

from ..errors import CertificateError, GaussNoiseError, OutputError
from .disk import opened, parsed

Arrays = dict[str, NDArray[Any]]

# The unpacked content may have this size plus four times that of the file: numbers without
# repetition are hardly compressed.
_UNPACKED = 2**28
_SHRINKS = 4
_LONGEST_HEADER = 10_000  # largest number of characters in an array's header, as in numpy
_VERSIONS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}

# errors that zipfile, numpy, json or constructors may raise for a damaged file
DAMAGE = (
    ArithmeticError, AttributeError, DomainError, EOFError, GaussNoiseError, LookupError,
    MemoryError,
    OSError,
    RecursionError, RuntimeError, SyntaxError, TypeError, ValueError, tokenize.TokenError,
    zipfile.BadZipFile, zlib.error,
)  # fmt: skip


def write_arrays(
    path: str | os.PathLike[str], header: Mapping[str, object], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write a JSON header and named arrays to an ``.npz`` file.

    The file is compressed, unless the arrays are so large that :func:`read_arrays` would refuse it.
    """
    contents: dict[str, Any] = {"header": np.array(json.dumps(header)), **arrays}
    small = sum(array.nbytes + _LONGEST_HEADER for array in contents.values()) <= _UNPACKED
    with open(path, "wb") as file:  # numpy would append .npz to a name
        (np.savez_compressed if small else np.savez)(file, **contents)


def read_arrays(
    path: str | os.PathLike[str], format: str, integers: tuple[str, ...]
) -> tuple[dict[str, Any], Arrays]:
    """Return the header and {name: read-only array} of a file that :func:`write_arrays` wrote.

    The content must be small enough: at most 256 MB plus four times the size of the file. This is
    checked in the directory and the headers of arrays, before any array is unpacked.

    Args:
        path: the file.
        format: the format that the header must state.
        integers: prefixes of the names of arrays of integers.

    Raises:
        OutputError: the file cannot be opened.
        CertificateError: the header has another format, or arrays have other types.
        Exception: the file is damaged; the type is one of ``DAMAGE``.
    """
    try:
        found = opened(path)
    except OSError as error:
        raise OutputError(f"load: cannot read {os.fspath(path)} ({type(error).__name__})") from None
    with found as file, zipfile.ZipFile(file) as stored:
        names = [_name(member) for member in stored.infolist()]
        if len(set(names)) < len(names):
            raise CertificateError("load: expected every name once in the file")
        most = _UNPACKED + _SHRINKS * os.fstat(file.fileno()).st_size
        if sum(member.file_size for member in stored.infolist()) > most:
            raise CertificateError(
                f"load: expected arrays of at most {most / 1e6:.0f} MB for a file of this size"
            )
        for name, member in zip(names, stored.infolist(), strict=True):
            kinds = "U" if name == "header" else "iu" if name.startswith(integers) else "f"
            with stored.open(member) as packed:
                _check_header(packed, name, kinds, member.file_size)
        arrays: Arrays = {}
        for name, member in zip(names, stored.infolist(), strict=True):
            with stored.open(member) as packed:
                arrays[name] = np.lib.format.read_array(
                    packed, allow_pickle=False, max_header_size=_LONGEST_HEADER
                )
                if packed.read(1):  # reading to the end also checks the checksum
                    raise CertificateError(f"load: expected no more than one array under {name}")
    header = parsed(str(arrays.pop("header")))
    if not isinstance(header, dict) or header.get("format") != format:
        raise CertificateError(f"load: expected a header of format {format!r}, got another")
    for array in arrays.values():
        array.flags.writeable = False
    return header, arrays


def damaged(path: str | os.PathLike[str], what: str, reason: str) -> CertificateError:
    """Return the error for a damaged file, which should contain ``what``."""
    return CertificateError(f"load: {os.fspath(path)} is not an intact file of {what} ({reason})")


def _name(member: zipfile.ZipInfo) -> str:
    if not member.filename.endswith(".npy") or member.compress_type not in (
        zipfile.ZIP_STORED,
        zipfile.ZIP_DEFLATED,
    ):
        raise CertificateError(
            "load: expected arrays, stored or deflated, and nothing else in the file"
        )
    return member.filename.removesuffix(".npy")


def _check_header(packed: IO[bytes], name: str, kinds: str, size: int) -> None:
    """Raise an error unless ``packed`` is one array of an allowed type, with ``size`` bytes."""
    version = np.lib.format.read_magic(packed)
    if version not in _VERSIONS:
        raise CertificateError(f"load: expected {name} in version 1 or 2 of numpy's format")
    shape, _, dtype = _VERSIONS[version](packed, max_header_size=_LONGEST_HEADER)
    if dtype.kind not in kinds or dtype.hasobject or dtype.subdtype is not None:
        raise CertificateError(f"load: expected {name} of another type")
    if kinds == "U" and shape:
        raise CertificateError(f"load: expected {name} to be one text")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size - packed.tell():
        raise CertificateError(f"load: expected {name} to fill its part of the file")
