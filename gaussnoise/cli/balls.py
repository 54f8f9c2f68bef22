"""Checks by ball arithmetic, for saved answers that are too large for exact integers.

A ball is a number with a proven bound on its error, by Arb (Johansson 2017) of python-flint, which
the extra ``verify`` installs. Approximations are doubles; if they are poor, a check fails, but
proves nothing false.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx, fmpz, fmpz_mat
from numpy.typing import NDArray

from ..verifier.optimality import Answer
from ..verifier.privacy import need

Array = NDArray[np.float64]

_MOST = 2 * 10**10  # points × coordinates × columns of the factor; these take minutes
_BITS = 192  # precision of balls: three times that of a double, and the digits that sums lose
_ROUNDS = 3  # corrections by doubles, each of which gains the digits that the noise resolves


class Balls(Answer):
    """A saved answer with too many points for checks in integers, checked by intervals."""

    def __init__(self, path: Path) -> None:
        ctx.prec = _BITS
        super().__init__(path, _MOST)

    def check_upper(self) -> None:
        """Check that the noise covers every change of the data, and check the error gamma.

        Let L be the factor of the noise, and x the change of the sum between two neighbouring data
        sets. For every such x, there must be a vector b with ‖b‖ <= 1 and ``x = scale · L b``.
        """
        header, scale = self.header, arb(self.header["scale"])
        L, points = np.array(self.arrays["factor"]), self._changes()
        need(bool(np.isfinite(L).all()), "factor")
        R = _left_inverse(L)
        left, factor = arb_mat(R.tolist()), arb_mat(L.tolist())
        one = arb_mat(self.r, self.r, [int(i == k) for i in range(self.r) for k in range(self.r)])
        far = _length((left * factor - one).entries())  # R L is invertible if this is below 1
        need(far < 0.5, "noise that leaves a direction out")
        # b = (R L)^-1 R x is linear in x, with L b = x for all x in the range of L
        B, rest = arb_mat(points.nrows(), self.r), points
        for _ in range(_ROUNDS):
            B = (B + arb_mat((_doubles(rest) @ R.T).tolist())).mid()
            rest = points - B * factor.transpose()
        extra = [_length(row) / (1 - far) for row in _rows(rest * left.transpose())]
        outside = [_largest(map(abs, column)) for column in _rows(rest.transpose())]
        sizes = [_largest(map(abs, column)) for column in _rows(points.transpose())]
        inside = all(x * 2**40 <= size for x, size in zip(outside, sizes, strict=True))
        need(inside, "noise that leaves a direction out")
        alone = [_length(row) + more for row, more in zip(_rows(B), extra, strict=True)]
        both = [
            _length(x - y for x, y in zip(a, b, strict=True)) + more + other
            for (a, more), (b, other) in self.pairs(zip(_rows(B), extra, strict=True))
        ]
        changes = both if self.relation == "replace" and not self.shifted else alone
        need(_largest(changes) <= scale, "too little noise: a change is not covered")
        if self.shifted:
            squared = (_largest(both) / scale) ** 2
            ratio = arb(header["sensitivity_squared"]) / squared
            need(ratio >= 1 and ratio <= 1 + 1e-11, "too little noise: the sensitivity")
        else:
            need(header["sensitivity_squared"] == 1.0, "the sensitivity")
        heights = [sum((x * x for x in row), arb(0)) * scale**2 for row in _rows(factor)]
        if self.p == math.inf:
            reached = _root(_largest(heights))
        else:
            power = arb(self.p) / 2
            reached = sum((h**power for h in heights), arb(0)) ** (1 / arb(self.p))
        reached += 2 * sum(outside, arb(0)) * (self.d > self.r)
        stated, found = arb(header["gamma"]), float(reached.upper())
        need(bool(abs(stated / reached - 1) < 1e-11), f"gamma is {found!r}")
        need(stated >= reached * (1 - 2.0**-50), f"gamma is at least {found!r}")
        rounded = "" if self.d == self.r else ", up to rounding outside its span"
        self.checked.append(f"{len(changes)} changes, {self.relation}: covered, in balls{rounded}")
        self.checked.append(f"gamma = {header['gamma']!r}: the deviations are {found!r} at most")

    def _changes(self) -> arb_mat:
        """Return changes of the sum as rows; for replaced records, points minus one fixed point."""
        X = np.array(self.arrays["domain.array0"])
        points = arb_mat(X.tolist())
        if self.relation == "policy graph":
            table = points.table()
            pairs = [zip(table[i], table[k], strict=True) for i, k in sorted(self.edges())]
            return arb_mat([[x - y for x, y in pair] for pair in pairs])
        if self.relation == "add-remove":
            return points
        start = self.arrays.get("center", [0.0] * self.d) if self.shifted else X[0].tolist()
        return points - arb_mat([start] * self.n)

    @staticmethod
    def nuclear(A: Sequence[Sequence[int]]) -> int:
        """Return a lower bound on the nuclear norm of a matrix A of integers.

        Let Q be a matrix whose singular values s are at most 2. Then B = Q (3 − Q'Q)/2 has the
        singular values |s (3 − s²)/2| <= 1. The bound is the inner product of A and B.
        """
        if len(A) > len(A[0]):
            A = [*zip(*A, strict=True)]
        approximate = np.array(A, dtype=np.float64)
        largest = float(np.abs(approximate).max()) or 1.0
        U, _, V = np.linalg.svd(approximate / largest, full_matrices=False)
        Q = arb_mat((U @ V).tolist())
        exact = arb_mat(fmpz_mat([[fmpz(x) for x in row] for row in A]))
        square = Q * Q.transpose()
        need(_largest(sum(map(abs, row), arb(0)) for row in _rows(square)) <= 4, "singular values")
        near, far = _inner(exact, Q), _inner(exact * Q.transpose(), square)
        return int(((3 * near - far) / 2).lower().floor().unique_fmpz())


def _left_inverse(L: Array) -> Array:
    """Return an approximate left inverse R of L: R L is close to the identity."""
    # the rows of L are scaled to similar sizes first, for a smaller error
    sizes = np.abs(L).max(axis=1, keepdims=True)
    even = np.exp2(-np.floor(np.log2(np.where(sizes > 0, sizes, 1.0))))
    return np.asarray(np.linalg.pinv(L * even, rcond=1e-15) * even.T, dtype=np.float64)


def _rows(A: arb_mat) -> list[list[Any]]:
    return A.table()


def _doubles(A: arb_mat) -> Array:
    """Return the midpoints of the balls in a matrix, as doubles."""
    return np.array([float(x.mid()) for x in A.entries()]).reshape(A.nrows(), A.ncols())


def _inner(A: arb_mat, B: arb_mat) -> Any:
    """Return the inner product of two matrices: the sum of the products of their entries."""
    return sum((x * y for x, y in zip(A.entries(), B.entries(), strict=True)), arb(0))


def _length(row: Iterable[Any]) -> Any:
    """Return a ball that contains the Euclidean length of a row of balls."""
    return _root(sum((x * x for x in row), arb(0)))


def _root(square: Any) -> Any:
    """Return the square root of a ball; negative numbers in the ball are replaced by zero."""
    return square.max(arb(0)).sqrt()


def _largest(balls: Iterable[Any]) -> Any:
    """Return a ball that contains the largest of some nonnegative numbers, given as balls."""
    found = arb(0)
    for ball in balls:
        found = found.max(ball)
    return found
