"""The steps in which Spark's tasks measure a residual that is too large for one task.

The residual of the attributes T is a matrix, in pieces of rows and columns (:mod:`.matrix`): rows
are counted and answered, columns get their noise, rows are decoded. Each step writes files for the
next one; such a file has one block for each piece that the next step reads.

A step takes the ``layout``, which assigns work to tasks, and the attributes T. It also takes the
folder ``commits`` for its files, and ``most``: a bound on the sum of the absolute values of all
counts of the residual. It reads earlier files only if their ``heads`` still have the given sha256.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...files.commits import Commits
from ...solvers.tables.residuals import Subset
from .blocks import head_digest, integer_bytes, packed, read_block, unpacked, write_blocks
from .layout import Layout
from .matrix import Matrix
from .records import Batches
from .tasks import Parts, committed_row, noise

_SUM = 16  # bytes of the first block of rows, which holds the sum of their counts


def answer_rows(layout: Layout, T: Subset, most: int, commits: Commits, parts: Parts) -> Batches:
    """Commit the exact answers, which have no noise yet, of pieces of rows: one file a piece.

    A file has one block for each piece of columns. ``parts`` are pairs (index of a piece of rows,
    its counts).
    """
    matrix = layout.matrices[T]
    for k, counts in parts:

        def blocks(k: int = k, counts: NDArray[np.int64] = counts) -> Iterator[bytes]:
            yield int(counts.sum()).to_bytes(_SUM, "little", signed=True)
            answers, bound = matrix.answered_rows(k, counts, most), matrix.bound(most)
            for columns in matrix.columns:
                yield packed(answers[:, columns], bound)

        name = matrix.name(k)
        yield committed_row(k, name, _committed(commits, name, 1 + len(matrix.columns), blocks))


def row_heads(matrix: Matrix, commits: Commits) -> dict[str, str | None]:
    """Return {file: :func:`.head_digest`} for the files of exact answers of :func:`answer_rows`.

    The value is None for a file that is not committed yet.
    """
    names, blocks = map(matrix.name, range(len(matrix.boxes))), 1 + len(matrix.columns)
    return {name: head_digest(commits.folder / name, blocks) for name in names}


def rows_counted(matrix: Matrix, most: int, commits: Commits, heads: Mapping[str, str]) -> int:
    """Return the sum of all counts in the residual's table, from the files of :func:`answer_rows`.

    ``heads`` has the sha256 of each file's head when it was committed. Raise OutputError if a file
    changed.
    """
    found = 0
    for k in range(len(matrix.boxes)):
        name, lengths = matrix.name(k), _row_lengths(matrix, k, most)
        block = read_block(commits.folder / name, heads[name], lengths, 0)
        found += int.from_bytes(block, "little", signed=True)
    return found


def draw_columns(
    layout: Layout,
    T: Subset,
    most: int,
    exact: Commits,
    heads: Mapping[str, str],
    commits: Commits,
    pieces: Iterable[int],
) -> Batches:
    """Draw noise for pieces of columns, and commit each in a file with one block per piece of rows.

    ``exact`` has the files of :func:`answer_rows`; ``pieces`` are indices of pieces of columns.
    """
    matrix = layout.matrices[T]
    for j in pieces:

        def blocks(j: int = j) -> Iterator[bytes]:
            answers = []
            for k, height in enumerate(matrix.heights):
                name, lengths = matrix.name(k), _row_lengths(matrix, k, most)
                block = read_block(exact.folder / name, heads[name], lengths, 1 + j)
                answers.append(unpacked(block, matrix.bound(most)).reshape(height, -1))
            draw = partial(noise, layout.query)
            values = matrix.noisy_columns(np.concatenate(answers), most, draw)
            for rows in np.split(values, np.cumsum(matrix.heights)[:-1]):
                yield np.ascontiguousarray(rows, dtype="<f8").tobytes()

        name = matrix.name(j)
        yield committed_row(j, name, _committed(commits, name, len(matrix.boxes), blocks))


def column_heads(matrix: Matrix, commits: Commits) -> dict[str, str | None]:
    """Return {file: :func:`.head_digest`} for the files of noisy columns of :func:`draw_columns`.

    The value is None for a file that is not committed yet.
    """
    names = [matrix.name(j) for j in range(len(matrix.columns))]
    return {name: head_digest(commits.folder / name, len(matrix.boxes)) for name in names}


def decode_rows(
    layout: Layout,
    T: Subset,
    noisy: Commits,
    heads: Mapping[str, str],
    commits: Commits,
    pieces: Iterable[int],
) -> Batches:
    """Decode pieces of rows of the residual from the noisy columns, and commit each in a file.

    ``noisy`` has the files of :func:`draw_columns`; ``pieces`` are indices of pieces of rows.
    """
    matrix = layout.matrices[T]
    for k in pieces:

        def write(path: Path, k: int = k) -> None:
            rows = []
            for j, columns in enumerate(matrix.columns):
                width = columns.stop - columns.start
                lengths = [8 * height * width for height in matrix.heights]
                name = matrix.name(j)
                block = read_block(noisy.folder / name, heads[name], lengths, k)
                rows.append(np.frombuffer(block, dtype="<f8").reshape(-1, width))
            with open(path, "xb") as file:
                np.save(file, matrix.decoded_rows(np.concatenate(rows, axis=1)))

        name = matrix.name(k)
        yield committed_row(k, name, commits.digest(name) or commits.commit(name, write))


def _row_lengths(matrix: Matrix, piece: int, most: int) -> list[int]:
    """Return the length in bytes of each block in the file of one piece of rows."""
    size = matrix.heights[piece] * integer_bytes(matrix.bound(most))
    return [_SUM, *((columns.stop - columns.start) * size for columns in matrix.columns)]


def _committed(
    commits: Commits, name: str, count: int, blocks: Callable[[], Iterator[bytes]]
) -> str | None:
    """Commit a file of ``count`` blocks, unless that is done; return its :func:`head_digest`."""
    path = commits.folder / name
    if head_digest(path, count) is None:
        commits.commit(name, lambda path: write_blocks(path, blocks(), count))
    return head_digest(path, count)
