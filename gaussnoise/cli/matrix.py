"""Reading matrices from files: comma-separated numbers, numpy, Matrix Market."""

import warnings
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile

import numpy as np

from ..errors import ParameterError
from ..files.disk import opened


def read_matrix(path: Path, command: str) -> Any:
    """Return the matrix of real numbers in a file, dense or sparse, or raise ParameterError."""
    try:
        with opened(path) as file:
            if path.suffix == ".npy":
                return np.load(file, allow_pickle=False)
            if path.suffix in (".mtx", ".npz"):
                return _sparse(path, file, command)
            if file.readline().startswith(b","):
                raise ParameterError(
                    f"{command}: expected numbers alone in {path}, got a header and an index; "
                    f"{_PLAIN}"
                )
            file.seek(0)
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # otherwise numpy only warns about an empty file
                numbers = np.loadtxt(file, delimiter=",", ndmin=2, encoding="utf-8")
    except OSError as error:
        reason = (
            "there is no such file"
            if isinstance(error, FileNotFoundError)
            else type(error).__name__
        )
        raise ParameterError(f"{command}: cannot read {path}: {reason}") from None
    except (ValueError, UserWarning) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(
            f"{command}: expected a matrix of numbers in {path}; "
            "hint: one query a line, a number for every cell, commas between, no header and no "
            "index"
        ) from None
    for line, what in ((numbers[0], "header"), (numbers[:, 0], "index")):
        if min(numbers.shape) > 1 and np.array_equal(line, np.arange(len(line))):
            where = "row" if what == "header" else "column"
            raise ParameterError(
                f"{command}: the first {where} of {path} is 0, 1, 2, …, like the {what} that "
                f"pandas writes; {_PLAIN}, and .npy for a matrix that begins so"
            )
    return numbers


_PLAIN = "hint: frame.to_csv(path, header=False, index=False) writes numbers alone"


# errors raised by readers of archives and of Matrix Market files
_UNREADABLE = (
    EOFError,
    LookupError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    BadZipFile,
)


def _sparse(path: Path, file: BinaryIO, command: str) -> Any:
    """Read a matrix in Matrix Market's format, or from scipy.sparse.save_npz or numpy.savez."""
    from scipy import io, sparse

    expected = f"{command}: expected one matrix of real numbers in {path}"
    try:
        if path.suffix == ".mtx":
            return io.mmread(file, spmatrix=False)
        with np.load(file, allow_pickle=False) as archive:
            names = archive.files
            if len(names) == 1:
                return archive[names[0]]
        if "format" in names:
            file.seek(0)
            return sparse.load_npz(file)
    except OSError:
        raise
    except _UNREADABLE as error:  # not shown, since these errors may quote the file
        raise ParameterError(f"{expected} ({type(error).__name__})") from None
    if "_treedef" in names:
        raise ParameterError(
            f"{expected}, got objects of Python that mbi saved; hint: in Python, "
            "gn.certify(mbi.load(path), sizes=domain)"
        )
    raise ParameterError(f"{expected}; hint: scipy.sparse.save_npz, or numpy.savez of one array")
