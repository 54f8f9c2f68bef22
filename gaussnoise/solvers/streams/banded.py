"""Diagonals of resolvents of G Gᵀ and Gᵀ G for a banded lower-triangular G, in linear time.

The recursion over ticks also bounds the error of each diagonal. F is a quadratic form, b is the
number of bands below the diagonal, and a lane is one of several recursions computed side by side.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from domains.floats import UNIT, Array

from ...errors import CovarianceError

UNEVEN = "expected weights and bands of more even sizes"
_NUMBERS_AT_ONCE = 2**25  # largest number of floats in memory: 256 MB
_TICKS_AT_ONCE = 512
_WIDEST = 400.0  # weights, bands and shifts differ by at most two to this power
_LEAST = 2.0**-900  # least weight of a row after rotations, so that no number underflows
_ROTATION = 16 * UNIT  # one rotation adds an error of at most this fraction of a column's length


def diagonals(
    bands: Array, row_weights: Array, column_weights: Array, shifts: Array
) -> Iterator[tuple[int, Array, Array, float]]:
    """Yield the diagonals of ``(G Gᵀ + s)⁻¹`` and ``(Gᵀ G + s)⁻¹`` for ``G = R^-½ B C^-½``.

    B is a banded lower-triangular matrix, R and C are diagonal. For each shift s it yields the
    index of s, the two diagonals, and a bound on the relative error of all their numbers.

    Args:
        bands: of B, shape (b + 1, n): ``B[t, t − m]`` in row m, column t; zero where t < m;
            2 <= b <= n/2.
        row_weights: the diagonal of R, shape (n,), positive.
        column_weights: the diagonal of C, shape (n,), positive.
        shifts: s, shape (q,), positive.

    Raises:
        CovarianceError: sizes of the numbers differ too much.

    Source: rotations without square roots (Gentleman 1973); their backward errors, column by column
    (Higham 2002, lemma 19.8; theorem 8.10 for triangular systems).
    """
    # The second diagonal is C times that of (Bᵀ R⁻¹ B + s C)⁻¹, which has the variances of a
    # least-squares problem in which row t of B measures b + 1 consecutive unknowns with variance
    # R_t. All rows up to t give a quadratic form Uᵀ D U in the last b unknowns, U unit upper
    # triangular. A tick adds an unknown and two rows, by rotations without square roots, and drops
    # the oldest unknown; nothing is ever subtracted from D. The same recursion runs backwards from
    # the last tick. For the middle of a window, b rows join the forms of both recursions. The first
    # diagonal is the second one of the transpose, computed in reverse order.
    # The unknowns are the oldest one and differences of neighbours, since answers that change
    # slowly determine almost only differences. Their coefficients are sums of bands, each rounded
    # once.
    # The bound rests on two facts. First, if a form F̂ is between e^-ε F and e^ε F in the Loewner
    # order, this stays true when rows are added and unknowns are dropped, since Schur complements
    # are monotone, concave and homogeneous: errors of ticks add up, for any condition number.
    # Second, if rotations change column r of a factor of F by at most c u times its length (u: unit
    # roundoff), the root of vᵀ F v changes by at most the fraction c u Σ_r (F_rr (F⁻¹)_rr)^½ of
    # itself, since |v_r| <= ((F⁻¹)_rr vᵀ F v)^½. These fractions are computed from the numbers.
    _check_sizes(np.abs(bands), row_weights, column_weights, shifts)
    b, n = len(bands) - 1, bands.shape[1]
    flipped = np.zeros_like(bands)
    for m in range(b + 1):
        flipped[m, m:] = bands[m, m:][::-1]
    problems = (
        _Problem.of(bands, 1 / row_weights, column_weights),
        _Problem.of(flipped, 1 / column_weights[::-1], row_weights[::-1]),
    )
    directions = [way for problem in problems for way in (problem.forwards, problem.backwards)]
    at_once = max(1, _NUMBERS_AT_ONCE // (n * (b + 1)))
    for first in range(0, len(shifts), at_once):
        s = shifts[first : first + at_once]
        ends = _recursions(directions, s, bounded=True)
        (columns, above), (rows, below) = (
            _joined(problem, ends[2 * i], ends[2 * i + 1]) for i, problem in enumerate(problems)
        )
        errors = np.maximum(above, below)
        yield from (
            (first + j, row_weights * rows[::-1, j], column_weights * columns[:, j], errors[j])
            for j in range(len(s))
        )


def second_diagonals(
    bands: Array, several: Sequence[tuple[Array, Array]], sizes: Array, shifts: Array
) -> Iterator[Array]:
    """Yield the diagonal of ``Σ_j c_j (Gᵀ G + s_j)⁻¹``, (n,), for each pair of weights (R, C) of G.

    c are ``sizes`` and s are ``shifts``; G and its weights are those of :func:`diagonals`.
    """
    at_once = max(1, _NUMBERS_AT_ONCE // (2 * bands.size * len(shifts)))
    for first in range(0, len(several), at_once):
        chosen = several[first : first + at_once]
        problems = [_Problem.of(bands, 1 / rows, columns) for rows, columns in chosen]
        directions = [way for problem in problems for way in (problem.forwards, problem.backwards)]
        ends = _recursions(directions, shifts, bounded=False)
        for i, (problem, (_, columns)) in enumerate(zip(problems, chosen, strict=True)):
            joined, _ = _joined(problem, ends[2 * i], ends[2 * i + 1])
            yield columns * (joined @ sizes)


def _check_sizes(*numbers: Array) -> None:
    sizes = np.concatenate([values.ravel() for values in numbers])
    sizes = np.log2(sizes[sizes > 0])
    if not sizes.max() - sizes.min() <= _WIDEST:
        raise CovarianceError(
            "expected weights and bands whose sizes differ by less than 1e120; hint: even them out"
        )


@dataclass(frozen=True, eq=False)
class _Measured:
    """The rows that each tick adds to a least-squares problem."""

    # sums of a row's coefficients from the k-th oldest unknown on, (n, b + 1, …): these are its
    # coefficients of the oldest unknown and of b differences
    sums: Array
    # a row's coefficient of the oldest unknown; weights of the rows and of the new unknowns: (n, …)
    oldest: Array
    weights: Array
    priors: Array

    def __getitem__(self, ticks: slice) -> "_Measured":
        return _Measured(*(getattr(self, f.name)[ticks] for f in fields(self)))

    @classmethod
    def stacked(cls, several: Sequence["_Measured"], s: Array) -> Self:
        """Stack several problems along a new axis, and multiply their priors by every shift s."""
        sums, oldest, weights, priors = (
            np.stack([getattr(one, f.name) for one in several], axis=-1)[..., None]
            for f in fields(cls)
        )
        # the shifts are the last axis
        return cls(sums, oldest, weights, priors * s)


@dataclass(frozen=True, eq=False)
class _Problem:
    """The rows of a least-squares problem, in both directions of time."""

    # forwards, a row comes with its newest unknown; backwards, with its oldest
    forwards: _Measured
    backwards: _Measured

    @classmethod
    def of(cls, bands: Array, weights: Array, priors: Array) -> Self:
        b = len(bands) - 1
        rows, row_weights = np.zeros_like(bands.T), np.ones_like(weights)
        rows[b:], row_weights[b:] = bands.T[b:][::-1], weights[b:][::-1]
        return cls(
            _Measured(_partial_sums(bands[::-1].T), bands[b], weights, priors),
            _Measured(_partial_sums(rows), rows[:, 0], row_weights, priors[::-1]),
        )


def _partial_sums(coefficients: Array) -> Array:
    """Return for each entry the sum of it and all later ones of its row, rounded once."""
    sums = coefficients.copy()
    for k in range(coefficients.shape[1] - 1):
        sums[:, k] = [math.fsum(row) for row in coefficients[:, k:].tolist()]
    return sums


@dataclass(frozen=True, eq=False)
class _Form:
    """A quadratic form ``Uᵀ D U`` (D diagonal, U unit upper triangular), or an array of them."""

    pivots: list[Array]
    # the entries of U to the right of the diagonal
    rows: list[list[Array]]

    def measured(self, coefficients: list[Array], weight: Array) -> "_Form":
        """Return this form F plus one row: ``F + weight · a aᵀ``, with coefficients a."""
        pivots, rows = list(self.pivots), [list(row) for row in self.rows]
        left = list(coefficients)
        for j, row in enumerate(rows):
            first = left[j]
            weighed = weight * first
            pivot = pivots[j] + weighed * first
            known = pivot > 0
            safe = np.where(known, pivot, 1.0)
            # rank-one update of Uᵀ D U: the row's coefficient of this unknown is eliminated, and
            # the rest of the row is added to the following ones
            kept, taken = np.where(known, pivots[j] / safe, 1.0), weighed / safe
            for r, own in enumerate(row, j + 1):
                row[r - j - 1] = kept * own + taken * left[r]
                left[r] = left[r] - first * own
            pivots[j], weight = pivot, weight * kept
        return _Form(pivots, rows)

    def squares(self) -> list[Array]:
        """Return the diagonal entries of the matrix ``Uᵀ D U``."""
        total = list(self.pivots)
        for j, row in enumerate(self.rows):
            for r, entry in enumerate(row, j + 1):
                total[r] = total[r] + self.pivots[j] * entry**2
        return total

    def variance(self, first: int, last: int) -> tuple[Array, Array]:
        """Return the variance of the sum of unknowns first, …, last, and a proven upper bound."""
        size = len(self.pivots)
        loose = 2 * (size + 1) ** 2 * UNIT
        one = np.ones_like(self.pivots[0])
        # for v with ones from first to last, v'(Uᵀ D U)⁻¹ v = Σ z_k²/D_k, where Uᵀ z = v
        solved, largest = {first: one}, {first: one}
        total = 1 / self.pivots[first]
        bound = (1 + loose) ** 2 * total
        for k in range(first + 1, size):
            entry = most = one if k <= last else 0 * one
            for m in range(first, k):
                step = self.rows[m][k - m - 1]
                entry = entry - solved[m] * step
                most = most + largest[m] * np.abs(step)  # in the worst case, all errors add up
            solved[k], largest[k] = entry, most
            total = total + entry**2 / self.pivots[k]
            bound = bound + (np.abs(entry) + loose * most) ** 2 / self.pivots[k]
        return total, bound

    def share(self) -> Array:
        """Return an upper bound on ``Σ_r (F_rr (F⁻¹)_rr)^½``, the growth of rounding errors."""
        total = np.zeros_like(self.pivots[0])
        for r, square in enumerate(self.squares()):
            total += np.sqrt(square * self.variance(r, r)[1])
        return total


class _Steps:
    """The quadratic forms after consecutive ticks, in arrays that are reused."""

    # index t + 1 is for tick t, and index 0 for the form before the first of them
    def __init__(self, ticks: int, b: int, known: Array) -> None:
        """Allocate arrays; ``known``, (*lanes,), is the pivot of unknowns before the first tick."""
        lanes = known.shape
        self.pivots = np.zeros((ticks + 1, b, *lanes))
        self.rows = [np.zeros((ticks + 1, b - 1 - j, *lanes)) for j in range(b)]
        # the weight of a tick's rows that is left at the last unknown
        self.left = np.zeros((ticks, *lanes))
        self.pivots[0] = known

    def restart(self, place: int) -> None:
        """Copy the form at index ``place`` to index 0, from which further ticks continue."""
        for array in (self.pivots, *self.rows):
            array[0] = array[place]

    def advance(self, measured: _Measured) -> None:
        """Compute the forms after all measured ticks, starting with the form at index 0."""
        # existing arrays are written to: small arrays cost more to create than to compute
        b, lanes = self.pivots.shape[1], self.pivots.shape[2:]
        multiply, add, divide, subtract = np.multiply, np.add, np.divide, np.subtract
        zero, oldest, slope, total, kept, weight, prior = (np.zeros(lanes) for _ in range(7))
        first_row, dropped, spare = (np.empty((k, *lanes)) for k in (b - 2, b - 1, b - 1))
        row, ones = np.empty((b, *lanes)), np.empty((b, *lanes))
        work = (*(np.empty(lanes) for _ in range(4)), np.empty((b - 1, *lanes)))
        pivots, rows = np.empty((b, *lanes)), [np.empty((b - 1 - j, *lanes)) for j in range(b)]
        for t, (data, first, row_weight, prior_weight) in enumerate(
            zip(measured.sums, measured.oldest, measured.weights, measured.priors, strict=True)
        ):
            own, own_rows = self.pivots[t], [entries[t] for entries in self.rows]
            # the oldest unknown is the next one minus a difference: this difference is eliminated
            subtract(own_rows[0][0], 1.0, slope)
            multiply(own[0], slope, kept)
            add(own[1], multiply(kept, slope, total), total)
            divide(kept, total, dropped[0])
            divide(own[1], total, kept)
            multiply(own[0], kept, oldest)
            if b > 2:
                others, second = own_rows[0][1:], own_rows[1]
                multiply(dropped[0], others, dropped[1:])
                add(dropped[1:], multiply(kept, second, spare[1:]), dropped[1:])
                subtract(others, multiply(slope, second, first_row), first_row)
            # the dropped difference is also eliminated from the measurement
            multiply(row_weight, first, weight)
            add(total, multiply(weight, first, kept), kept)
            multiply(row_weight, divide(total, kept, kept), weight)
            row[0], row[1:] = data[0], data[2:]
            add(row[:-1], multiply(first, dropped, spare), row[:-1])
            # the new unknown itself is the oldest one plus all differences
            ones[...] = 1.0
            np.copyto(prior, prior_weight)
            _add_row(
                ones,
                prior,
                [oldest, *own[2:], zero],
                [first_row, *own_rows[2:]],
                pivots,
                rows,
                work,
            )
            places = [entries[t + 1] for entries in self.rows]
            _add_row(row, weight, pivots, rows, self.pivots[t + 1], places, work)
            np.minimum(prior, weight, out=self.left[t])

    def errors(self, measured: _Measured) -> Array:
        """Return a bound on the error that each tick adds to the form, shape (ticks, *lanes)."""
        size, b = len(measured.weights), self.pivots.shape[1]
        if not self.left[:size].min() > _LEAST:
            raise CovarianceError(UNEVEN)
        form = _Form(
            [self.pivots[1 : size + 1, j] for j in range(b)],
            [[row[1 : size + 1, r] for r in range(b - 1 - j)] for j, row in enumerate(self.rows)],
        )
        deviations = [np.sqrt(form.variance(r, r)[1]) for r in range(b)]
        lengths = sum(np.sqrt(a) * d for a, d in zip(form.squares(), deviations, strict=True))
        # the rounding of the rows from which the dropped difference was eliminated
        pivots, rows = self.pivots[:size], [row[:size] for row in self.rows]
        slope = rows[0][:, 0] - 1
        total = pivots[:, 1] + pivots[:, 0] * slope**2
        kept, taken = pivots[:, 1] / total, np.abs(pivots[:, 0] * slope / total)
        first = np.sqrt(pivots[:, 0] * kept)
        second = np.sqrt(measured.weights * total / (total + measured.weights * measured.oldest**2))
        size_of = np.abs(measured.oldest)
        entries = first + second * (np.abs(measured.sums[:, 0]) + size_of * taken)
        changes = entries * deviations[0]
        for r in range(1, b):
            entries = second * np.abs(measured.sums[:, r + 1])
            if r < b - 1:
                one, other = np.abs(rows[0][:, r]), np.abs(rows[1][:, r - 1])
                entries = entries + first * (one + np.abs(slope) * other)
                entries = entries + second * size_of * (kept * other + taken * one)
            changes = changes + entries * deviations[r]
        # for an error ε, the computed form is between e^-ε and e^ε times the exact one
        return _largest_log_change(_ROTATION * (2 * b * lengths + 2 * changes))

    def kept(self, ticks: NDArray[np.intp], lane: int) -> Array:
        """Return the forms after the given ticks in one lane: pivots first, then rows."""
        return np.concatenate(
            [numbers[ticks + 1, :, lane] for numbers in (self.pivots, *self.rows)], axis=1
        )


def _add_row(
    row: Array,
    weight: Array,
    own: Sequence[Array] | Array,
    own_rows: list[Array],
    pivots: Array,
    rows: list[Array],
    work: tuple[Array, ...],
) -> None:
    """Add a measured row to the form with pivots ``own``; write to ``pivots`` and ``rows``."""
    # row and weight are overwritten; own_rows are shorter than rows if the last unknown is new
    multiply, add, divide, subtract = np.multiply, np.add, np.divide, np.subtract
    weighed, total, kept, taken, spare = work
    last = len(row) - 1
    for j in range(last):
        first, rest, right = row[j], row[j + 1 :], rows[j]
        multiply(weight, first, weighed)
        pivot = add(own[j], multiply(weighed, first, total), pivots[j])
        divide(own[j], pivot, kept)
        divide(weighed, pivot, taken)
        multiply(weight, kept, weight)
        multiply(taken, rest, right)
        before = own_rows[j]
        if count := len(before):
            right, rest, product = right[:count], rest[:count], spare[:count]
            add(right, multiply(kept, before, product), right)
            subtract(rest, multiply(first, before, product), rest)
    multiply(weight, row[last], weighed)
    add(own[last], multiply(weighed, row[last], total), pivots[last])


@dataclass(frozen=True, eq=False)
class _End:
    """The quadratic forms before or after the middle of every window, with their errors."""

    form: _Form
    # bounds on the logarithmic errors of the forms, shape (K, q) for q shifts
    errors: Array

    @classmethod
    def of(cls, numbers: Array, errors: Array, b: int) -> Self:
        columns = iter(numbers.transpose(1, 0, 2))
        pivots = [next(columns) for _ in range(b)]
        return cls(
            _Form(pivots, [[next(columns) for _ in range(b - 1 - j)] for j in range(b)]), errors
        )


def _middles(n: int, b: int) -> NDArray[np.intp]:
    """Return the last tick of the first half of each window; windows of 2b ticks cover all n."""
    return np.minimum(np.arange(b - 1, n + b - 1, 2 * b), n - 1 - b)


def _recursions(directions: list[_Measured], s: Array, *, bounded: bool) -> list[_End]:
    """Return the forms at the middles of all windows, with error bounds if ``bounded``."""
    # ``directions`` are alternately forwards and backwards, side by side, for all shifts s
    measured = _Measured.stacked(directions, s)
    n, b = len(measured.weights), measured.sums.shape[1] - 1
    middles = _middles(n, b)
    wanted = [n - 2 - middles[::-1] if i % 2 else middles for i in range(len(directions))]
    # pivots this large make the unknowns before the first tick practically known
    largest = measured.weights * np.abs(measured.sums).sum(axis=1) ** 2
    known = largest.max(axis=0) + measured.priors.max(axis=0)
    steps = _Steps(min(n, _TICKS_AT_ONCE), b, known)
    kept: list[list[tuple[Array, Array]]] = [[] for _ in directions]
    error = np.zeros(known.shape)
    for start in range(0, n, _TICKS_AT_ONCE):
        part = measured[start : start + _TICKS_AT_ONCE]
        size = len(part.weights)
        steps.advance(part)
        errors = np.broadcast_to(error, (size, *known.shape))
        if bounded:
            errors = errors + np.cumsum(steps.errors(part), axis=0)
        for lane, ticks in enumerate(wanted):
            chosen = ticks[(ticks >= start) & (ticks < start + size)] - start
            kept[lane].append((steps.kept(chosen, lane), errors[chosen, lane]))
        error = errors[-1]
        steps.restart(size)
    ends = []
    for i, parts in enumerate(kept):
        numbers, errors = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        turn = slice(None, None, -1 if i % 2 else 1)  # backward recursions begin at the last window
        ends.append(_End.of(numbers[turn], errors[turn], b))
    return ends


def _joined(problem: _Problem, before: _End, after: _End) -> tuple[Array, Array]:
    """Return the diagonal of the inverse matrix, (n, q), and bounds on relative errors, (q,)."""
    # for each window of 2b unknowns: the forms of both halves, and the b rows that measure both
    n, b = len(problem.forwards.weights), problem.forwards.sums.shape[1] - 1
    middles = _middles(n, b)
    zero = np.zeros_like(before.errors)
    one = zero + 1
    form = _Form(
        [*before.form.pivots, *[zero] * b],
        [[*row, *[zero] * b] for row in before.form.rows]
        + [[zero] * (b - 1 - j) for j in range(b)],
    )
    # The form of the backward recursion has other unknowns: the newest one, which is the oldest
    # plus all differences, and the differences in reverse order.
    for j, (pivot, row) in enumerate(zip(after.form.pivots, after.form.rows, strict=True)):
        if j == 0:
            newest = [one] * (b + 1) + [1 - entry for entry in row[::-1]]
        else:
            newest = [zero] * (b + 1) + [*row[::-1], one] + [zero] * (j - 1)
        form = form.measured(newest, pivot)
    for i in range(b):
        ticks = middles + 1 + i
        sums = problem.forwards.sums[ticks].T[:, :, None]
        row = [sums[0] * one] * (i + 1) + [part * one for part in sums[1:]]
        row += [zero] * (2 * b - len(row))
        form = form.measured(row, problem.forwards.weights[ticks][:, None])
    errors = np.maximum(before.errors, after.errors) + _largest_log_change(
        4 * b**2 * _ROTATION * form.share()
    )
    joined, worst = np.empty((n, zero.shape[1])), zero
    for r in range(2 * b):
        variance, above = form.variance(0, r)
        joined[middles - b + 1 + r] = variance
        worst = np.maximum(worst, above / variance - 1)
    with np.errstate(over="ignore"):  # an infinite bound says that nothing is known
        return joined, np.expm1((errors + 2 * worst + 8 * (b + 4) * UNIT).max(axis=0))


def _largest_log_change(share: Array) -> Array:
    """Return a bound on the change of log(vᵀFv) if √(vᵀFv) changes by the relative ``share``."""
    with np.errstate(divide="ignore"):
        return -2 * np.log1p(-np.minimum(share, 1.0))
