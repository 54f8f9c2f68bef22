r"""The farthest vertex of a zonotope of low dimension, among all its vertices.

Vertices of ``{G x : |x_j| <= 1}`` are the cells into which the hyperplanes <z, g_j> = 0 cut space.
If x maximises ``‖G x‖``, with z = G x, then flipping x_j does not help, hence

    x_j <z, g_j> >= ‖g_j‖²    for every j,

and z lies well inside its cell: that cell stays when the direction ``g_j/‖g_j‖`` of a hyperplane is
moved by less than its margin ``‖g_j‖/Σ_k ‖g_k‖ <= ‖g_j‖/‖z‖``. So directions may be projected to
fewer dimensions, merged where nearly parallel, and moved at random until no r of them are
dependent: x is still a cell of what results. A cell in R^r has a ray that is orthogonal to r − 1
independent directions J; its other signs are those of ``det(d_J, d_k)``. All J are tried, with all
signs on J, and with both signs wherever a determinant is so small that rounding may have turned it:
the maximizer is among what is tried, whatever rounding did.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations, islice

import numpy as np
from numpy.typing import NDArray

from ..domain import Array
from ..floats import EPS

Indices = NDArray[np.intp]

MOST_WORK = 2**27  # multiplications: seconds
_CHUNK = 2**18  # numbers in one array
# of the sum of lengths: the margins of longer columns are wide enough to be told from rounding
_DUST = 1e-12
_SHARE = 0.25  # of a margin is for each of the three changes, and one for rounding
_FEW = 12  # directions whose signs are all tried
_MOST_FREE = 16  # signs left open at one ray


@dataclass(frozen=True, eq=False)
class _Arrangement:
    """Hyperplanes through the origin, and what their signs add up to.

    Attributes:
        directions: shape (m, r), orthogonal to the hyperplanes.
        sums: shape (m, k), what a sign stands for: the columns in this direction, added.
        groups: shape (n,), whose sign each column has; −1 for columns left out.
        turns: shape (n,), 1 or −1: the column's sign is this times its group's.
        lost: lengths of the columns left out, together.
    """

    directions: Array
    sums: Array
    groups: Indices
    turns: Array
    lost: float

    @property
    def work(self) -> int:
        """Multiplications for all rays."""
        m, r = self.directions.shape
        return math.comb(m, r - 1) * (m * r + 2 ** (r - 1) * self.sums.shape[1])


def farthest_vertex(G: Array, work: int = MOST_WORK) -> tuple[Array, float] | None:
    """Signs x that maximise ``‖G x‖``, and what columns too short to be looked at may add to it.

    None where the vertices are too many, or lie too near to each other to be told apart.

    Args:
        G: shape (k, n).
        work: multiplications that may be spent.

    >>> x, lost = farthest_vertex(np.array([[1.0, 1.0, 0.0], [0.0, 0.5, 1.0], [0.0, 0.0, -0.5]]))
    >>> (x * x[0]).tolist(), lost
    ([1.0, 1.0, 1.0], 0.0)
    """
    if not G.any():
        return None
    arrangement = _arranged(G)
    m, r = arrangement.directions.shape
    if m <= _FEW:
        signs = _longest(np.zeros(len(G)), arrangement.sums)[0]
    elif m <= r or arrangement.work > work:
        return None
    else:
        signs = _best(arrangement)
    if signs is None:
        return None
    x = np.where(arrangement.groups < 0, 1.0, signs[arrangement.groups] * arrangement.turns)
    return x, arrangement.lost


def _arranged(G: Array) -> _Arrangement:
    """Directions within the margins of the columns', as few and of as few dimensions as may be."""
    lengths = np.linalg.norm(G, axis=0)
    total = float(lengths.sum())
    order = np.argsort(-lengths, kind="stable")
    order = order[lengths[order] > _DUST * total]
    columns, margins = G[:, order].T, _SHARE * lengths[order] / total
    units = columns / lengths[order, None]
    units = units @ np.linalg.svd(units, full_matrices=False)[2].T
    beyond = np.sqrt(np.cumsum(np.square(units[:, ::-1]), axis=1))[:, ::-1]  # of coordinates i, …
    flat = (beyond <= margins[:, None]).all(axis=0)
    r = int(flat.argmax()) if flat.any() else units.shape[1]
    units = units[:, :r]
    groups, turns, room = np.full(len(units), -1), np.ones(len(units)), margins.copy()
    leaders: list[int] = []
    for i in range(len(units)):
        if groups[i] >= 0:
            continue
        sides = np.where(units @ units[i] < 0, -1.0, 1.0)
        apart = np.linalg.norm(units * sides[:, None] - units[i], axis=1)
        alike = (apart <= margins) & (groups < 0)
        alike[i] = True
        groups[alike], turns[alike] = len(leaders), sides[alike]
        room[i] = margins[alike].min()
        leaders.append(i)
    # sines of squares are linearly independent over the algebraic numbers (Lindemann, Weierstrass)
    moves = np.sin(np.square(np.arange(1.0, len(leaders) * r + 1))).reshape(-1, r) / math.sqrt(r)
    sums = np.zeros((len(leaders), len(G)))
    np.add.at(sums, groups, columns * turns[:, None])
    whose, sides = np.full(G.shape[1], -1), np.ones(G.shape[1])
    whose[order], sides[order] = groups, turns
    return _Arrangement(
        units[leaders] + room[leaders, None] * moves,
        sums,
        whose,
        sides,
        float(np.delete(lengths, order).sum()),
    )


def _best(arrangement: _Arrangement) -> Array | None:
    """The signs of the directions at the farthest vertex; None where too many are in doubt."""
    D, sums = arrangement.directions, arrangement.sums
    m, r = D.shape
    patterns = _patterns(r - 1)
    # a determinant is a sum of products, each rounded once a factor and once a term, and these
    # products add up to no more than those of the rows' sums
    doubt = r * (r + 3) * EPS * float(np.abs(D).sum(axis=1).max()) ** r
    best, signs = -1.0, np.ones(m)
    for J in _subsets(m, r - 1, max(1, _CHUNK // max(m, len(patterns) * sums.shape[1]))):
        heights = _normals(D[J]) @ D.T
        fixed = np.sign(heights)
        fixed[np.abs(heights) <= doubt] = 0.0
        np.put_along_axis(fixed, J, 0.0, axis=1)
        doubtful = (fixed == 0).sum(axis=1) > r - 1
        lengths = np.square((fixed @ sums)[:, None, :] + patterns @ sums[J]).sum(axis=2)
        lengths[doubtful] = -1.0  # no vertices: more signs are open
        place, pattern = np.unravel_index(int(lengths.argmax()), lengths.shape)
        if lengths[place, pattern] > best:
            best, signs = float(lengths[place, pattern]), fixed[place].copy()
            signs[J[place]] = patterns[pattern]
        for row in fixed[doubtful]:
            free = np.flatnonzero(row == 0)
            if len(free) > _MOST_FREE:
                return None
            chosen, length = _longest(row @ sums, sums[free])
            if length > best:
                best, signs = length, row.copy()
                signs[free] = chosen
    return signs


def _longest(start: Array, columns: Array) -> tuple[Array, float]:
    """Signs of the rows of ``columns`` that lengthen ``start`` most, and its squared length."""
    choices = _patterns(len(columns))
    lengths = np.square(start + choices @ columns).sum(axis=1)
    choice = int(lengths.argmax())
    return choices[choice], float(lengths[choice])


def _subsets(m: int, size: int, count: int) -> Iterator[Indices]:
    """All of them, shape (<= count, size) at a time."""
    every = combinations(range(m), size)
    while some := list(islice(every, count)):
        numbers = np.fromiter(chain.from_iterable(some), dtype=np.intp, count=len(some) * size)
        yield numbers.reshape(len(some), size)


def _patterns(count: int) -> Array:
    """All signs, shape (2^count, count)."""
    return 1.0 - 2.0 * (np.arange(2**count)[:, None] >> np.arange(count) & 1)


def _normals(vectors: Array) -> Array:
    """What is orthogonal to each family of r − 1 vectors in R^r: shape (c, r − 1, r) to (c, r).

    ``<normal, d>`` is, up to one sign for all d, the determinant with d for another row, by
    Laplace's expansion.
    """
    count, size, r = vectors.shape
    minors: dict[tuple[int, ...], Array] = {(): np.ones(count)}
    for i in range(size):
        minors = {
            columns: sum(
                (
                    (-1.0) ** place * vectors[:, i, column] * minors[_without(columns, place)]
                    for place, column in enumerate(columns)
                ),
                start=np.zeros(count),
            )
            for columns in combinations(range(r), i + 1)
        }
    every = tuple(range(r))
    return np.stack([(-1.0) ** j * minors[_without(every, j)] for j in range(r)], axis=1)


def _without(columns: tuple[int, ...], place: int) -> tuple[int, ...]:
    return columns[:place] + columns[place + 1 :]
