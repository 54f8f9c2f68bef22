"""Vertices of {x : A x <= b}, in exact arithmetic: the double description method.

Motzkin, Raiffa, Thompson & Thrall (1953); Fukuda & Prodon (1996), "Double description method
revisited". The polytope is the slice t = 1 of the cone {(t, x) : b t − A x >= 0, t >= 0}. The
inequalities of the cone are added one by one, and the extreme rays of the current cone are kept; a
new ray appears on every edge that the new hyperplane cuts. Floating-point numbers are rationals,
and all decisions are made in integers: no vertex is missed, even if the polytope is degenerate,
flat or thin.
"""

import math
from fractions import Fraction

import numpy as np
import scipy
from numpy.typing import NDArray

from ..errors import DomainTooLargeError, InvalidDomainError
from ..floats import Array

_RAYS = 2**13  # most rays kept at a time
_NUMBERS = 2**22  # most integers kept at a time
_PROGRAMS = 500
_CHUNK = 2**22  # entries of the largest matrix product

Integers = NDArray[np.object_]


def enumerate_vertices(A: Array, b: Array) -> Array:
    """Return the vertices of {x : A x <= b}, correctly rounded and sorted, shape (k, dim).

    Of vertices that agree up to 2^-50 of the width along every axis, one is kept. Such vertices
    occur where more than dim hyperplanes meet, up to rounding.

    Raises:
        InvalidDomainError: the set is empty or unbounded.
        DomainTooLargeError: at some step there are more than several thousand rays or vertices.
    """
    _refuse_large_box(A, b)
    horizon = (1,) + (0,) * A.shape[1]
    rows = {_integers([bound, *-row]) for row, bound in zip(A, b, strict=True)}
    # the order of inequalities decides how many rays appear on the way; lexicographic order is
    # good (Fukuda & Prodon 1996)
    inequalities = np.array(
        [horizon, *sorted(rows, key=lambda row: row[1:] + row[:1])], dtype=object
    )
    try:
        rays = _extreme_rays(inequalities)
    except DomainTooLargeError:
        needed = _needed(A, b)  # these come first: the others then cut nothing from the cone
        if needed.all():
            raise
        first = {_integers([bound, *-row]) for row, bound in zip(A[needed], b[needed], strict=True)}
        inequalities = np.array(
            sorted(map(tuple, inequalities), key=lambda row: row not in first), dtype=object
        )
        rays = _extreme_rays(inequalities)
    tops = np.array([ray[0] > 0 for ray in rays], dtype=bool)
    if not tops.any():
        raise InvalidDomainError(
            "from_halfspaces: expected a nonempty set, but no x satisfies A x <= b with the "
            "numbers exactly as stored; hint: write an equality with both signs of the very same "
            "numbers, and loosen b where it was rounded"
        )
    if not tops.all():
        raise _unbounded("a bounded set", rays[~tops][0, 1:])
    try:
        vertices = np.array([[x / ray[0] for x in ray[1:]] for ray in rays], dtype=np.float64)
    except OverflowError:
        raise InvalidDomainError(
            "from_halfspaces: a vertex exceeds the largest double; hint: rescale b"
        ) from None
    lower, upper = vertices.min(axis=0), vertices.max(axis=0)
    half = np.where(upper > lower, upper / 2 - lower / 2, 1.0)
    _, kept = np.unique(
        np.round((vertices / half - lower / half) * 2.0**49), axis=0, return_index=True
    )
    return np.unique(vertices[kept] + 0.0, axis=0)


def most_vertices(halfspaces: int, dim: int) -> int:
    """Return the largest possible number of vertices of a polytope in R^dim.

    The polytope has at most ``halfspaces`` facets (McMullen 1970, upper bound theorem).
    """
    up, down = (dim + 1) // 2, dim // 2
    return math.comb(halfspaces - up, down) + math.comb(halfspaces - down - 1, up - 1)


def _needed(A: Array, b: Array) -> NDArray[np.bool_]:
    """Return which inequalities A x <= b do not follow from the others, up to rounding."""
    needed = np.ones(len(A), dtype=bool)
    if len(A) > _PROGRAMS:
        return needed
    for i, row in enumerate(A):
        others = needed.copy()
        others[i] = False
        program = scipy.optimize.linprog(
            -row, A_ub=A[others], b_ub=b[others], bounds=(None, None), method="highs"
        )
        needed[i] = program.status != 0 or -program.fun > b[i] + 1e-9 * (1 + abs(b[i]))
    return needed


def _extreme_rays(inequalities: Integers) -> Integers:
    """Return the extreme rays of the cone {y : inequalities @ y >= 0}, as rows of integers."""
    n = inequalities.shape[1]
    chosen, rays = _simplicial_cone(inequalities)
    values = rays @ inequalities.T
    table = list(np.hstack([rays, values]))  # rays, then their values
    signs = _signs(values)
    done = np.zeros(len(inequalities), dtype=bool)
    done[chosen] = True
    while len(table):
        done |= (signs >= 0).all(axis=0)  # inequalities that all rays satisfy
        if done.all():
            break
        row = int(np.argmin(done))
        outside = signs[:, row] < 0
        pairs = _edges(
            signs[:, done] == 0, np.flatnonzero(signs[:, row] > 0), np.flatnonzero(outside), n - 2
        )
        done[row] = True
        kept = np.flatnonzero(~outside)
        if len(kept) + len(pairs) > min(_RAYS, _NUMBERS // len(table[0])):
            raise _too_large(
                f"{len(inequalities) - 1} halfspaces in R^{n - 1} can have up to "
                f"{most_vertices(max(len(inequalities) - 1, n), n - 1):.3g} vertices, and met too "
                "many on the way"
            )
        new = [_combined_ray(table[i], table[j], n, n + row) for i, j in pairs]
        table = [table[i] for i in kept] + new
        signs = np.vstack([signs[kept], *(_signs(ray[n:])[None] for ray in new)])
    return np.array([ray[:n] for ray in table], dtype=object).reshape(-1, n)


def _combined_ray(inner: Integers, outer: Integers, n: int, column: int) -> Integers:
    """Return the positive combination of two rays with zero as the entry ``column``."""
    ray = outer * inner[column] - inner * outer[column]
    # n integers without a common divisor
    return ray // math.gcd(*ray[:n])


def _edges(
    zero: NDArray[np.bool_], inner: NDArray[np.intp], outer: NDArray[np.intp], least: int
) -> NDArray[np.intp]:
    """Return pairs of an inner and an outer ray that together span a two-dimensional face."""
    # Two rays do if no third ray lies on all the hyperplanes that contain both. ``zero`` says which
    # rays are on which hyperplanes; at least ``least`` hyperplanes contain such a face.
    on = zero.astype(np.float32)  # sums of ones are exact
    edges = [np.zeros((0, 2), dtype=np.intp)]
    step = max(1, _CHUNK // max(1, len(outer)))
    for start in range(0, len(inner), step):
        some = inner[start : start + step]
        first, second = np.nonzero(_shared_hyperplanes(on[some], on[outer]) >= least)
        pairs = np.column_stack([some[first], outer[second]])
        part = max(1, _CHUNK // len(zero))
        for begin in range(0, len(pairs), part):
            few = pairs[begin : begin + part]
            common = on[few[:, 0]] * on[few[:, 1]]
            holders = (_shared_hyperplanes(common, on) == common.sum(axis=1)[:, None]).sum(axis=1)
            edges.append(few[holders == 2])
    return np.vstack(edges)


def _shared_hyperplanes(
    first: NDArray[np.float32], second: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return on how many hyperplanes both rays lie, for each pair of rays from the two lists."""
    # BLAS kernels read memory next to the arrays, and may raise the flag "invalid" for it (numpy
    # issue 24067).
    with np.errstate(invalid="ignore"):
        return first @ second.T


def _simplicial_cone(inequalities: Integers) -> tuple[list[int], Integers]:
    """Return the indices of n independent inequalities, and the extreme rays of their cone."""
    n = inequalities.shape[1]
    chosen: list[int] = []
    reduced: list[
        tuple[int, list[Fraction], list[Fraction]]
    ] = []  # pivot, row, and the combination of inequalities that gives this row
    for index, row in enumerate(inequalities):
        left = [Fraction(int(x)) for x in row]
        made = [Fraction(0)] * n
        for pivot, other, combination in reduced:
            if factor := left[pivot]:
                left = [x - factor * y for x, y in zip(left, other, strict=True)]
                made = [x - factor * y for x, y in zip(made, combination, strict=True)]
        pivot = next((j for j, x in enumerate(left) if x), None)
        if pivot is None:
            continue
        made[len(chosen)] += 1
        scale = left[pivot]
        left, made = [x / scale for x in left], [x / scale for x in made]
        for place, (other_pivot, other, combination) in enumerate(reduced):
            if factor := other[pivot]:
                other = [x - factor * y for x, y in zip(other, left, strict=True)]
                combination = [x - factor * y for x, y in zip(combination, made, strict=True)]
                reduced[place] = other_pivot, other, combination
        reduced.append((pivot, left, made))
        chosen.append(index)
        if len(chosen) == n:
            break
    if len(chosen) < n:
        free = next(j for j in range(n) if all(pivot != j for pivot, _, _ in reduced))
        line = [Fraction(0)] * n
        line[free] = Fraction(1)
        for pivot, row, _ in reduced:
            line[pivot] = -row[free]
        raise _unbounded(
            "a bounded set that is not empty", np.array(_coprime_integers(line), dtype=object)[1:]
        )
    inverse = [combination for _, _, combination in sorted(reduced, key=lambda entry: entry[0])]
    return chosen, np.array(
        [_coprime_integers(list(column)) for column in zip(*inverse, strict=True)], dtype=object
    )


def _signs(values: Integers) -> NDArray[np.int8]:
    return (values > 0).astype(np.int8) - (values < 0).astype(np.int8)


def _integers(row: list[float]) -> tuple[int, ...]:
    return _coprime_integers([Fraction(float(x)) for x in row])


def _coprime_integers(vector: list[Fraction]) -> tuple[int, ...]:
    """Return the positive multiple of a vector that has integers without a common divisor."""
    common = math.lcm(*(x.denominator for x in vector))
    integers = [int(x * common) for x in vector]
    divisor = math.gcd(*integers) or 1
    return tuple(x // divisor for x in integers)


def _refuse_large_box(A: Array, b: Array) -> None:
    """Raise if the set {x : A x <= b} is a box with too many vertices to list."""
    dim = A.shape[1]
    if 2**dim <= _RAYS or (np.count_nonzero(A, axis=1) != 1).any():
        return
    slopes = A.sum(axis=1)
    with np.errstate(over="ignore"):
        ends = b / np.abs(slopes)
    axes = np.abs(A).argmax(axis=1)
    upper, lower = np.full(dim, np.inf), np.full(dim, np.inf)
    np.minimum.at(upper, axes[slopes > 0], ends[slopes > 0])
    np.minimum.at(lower, axes[slopes < 0], ends[slopes < 0])
    if (np.isfinite(upper + lower) & (upper > -lower)).all():
        raise _too_large(f"a box in R^{dim} has 2^{dim} = {2.0**dim:.3g} vertices")


def _too_large(reason: str) -> DomainTooLargeError:
    return DomainTooLargeError(
        f"from_halfspaces: {reason}; at most about {_RAYS} can be listed; hint: "
        "Zonotope(np.diag(half_widths), center) for a box, product(...) for independent groups of "
        "coordinates, LpBall for q = 1 or inf, or give the vertices"
    )


def _unbounded(expected: str, direction: Integers) -> InvalidDomainError:
    largest = max(map(abs, direction))
    shown = ", ".join(f"{int(x) / int(largest):.3g}" for x in direction[:8]) + (
        ", …" if len(direction) > 8 else ""
    )
    return InvalidDomainError(
        f"from_halfspaces: expected {expected}, but no inequality stops x in direction ({shown}); "
        "hint: add bounds on x"
    )
