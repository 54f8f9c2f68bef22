"""Domains with independent references: one entry here, and a new domain runs through every
conformance law.
"""

import functools
import gzip
import inspect
import itertools
import lzma
import math
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import networkx
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from domains import (
    AbstractDomain,
    Base,
    Bins,
    BoxMoments,
    Clipped,
    Ellipsoid,
    FiniteSet,
    Groups,
    Identity,
    Leading,
    LpBall,
    Marginals,
    Moments,
    Polytope,
    Prefix,
    Products,
    QuadraticMax,
    Ranges,
    SchattenBall,
    StreamWorkload,
    TensorPower,
    Total,
    TwoConvex,
    Windows,
    Zonotope,
    hull,
    kron,
    product,
)
from domains.participation.participations import CountParticipations, VectorParticipations
from domains.participation.patterns import Apart, Epochs, Window


@dataclass(frozen=True)
class Case:
    """A domain and members of it, found by other means; exhaustive unless a closed form of the
    support is given.
    """

    name: str
    domain: AbstractDomain
    points: np.ndarray
    closed_form: Callable[[np.ndarray], float] | None = None
    may_not_know: bool = False

    def support(self, theta):
        return self.closed_form(theta) if self.closed_form else (self.points @ theta).max()


def pairwise(*lists):
    """Rows of one entry of each list in which every two entries of two lists meet, far fewer than
    all combinations.
    """
    places = [range(len(entries)) for entries in lists]
    columns = list(itertools.combinations(range(len(lists)), 2))

    def meetings(row):
        return {(i, j, row[i], row[j]) for i, j in columns}

    missing = {(i, j, a, b) for i, j in columns for a in places[i] for b in places[j]}
    rows = []
    while missing:
        rows.append(max(itertools.product(*places), key=lambda row: len(meetings(row) & missing)))
        missing -= meetings(rows[-1])
    return [tuple(entries[k] for entries, k in zip(lists, row, strict=True)) for row in rows]


def spread(count, most=8):
    """Integers from 1 to ``count``: all, or the ends and some between them."""
    return sorted(set(np.linspace(1, count, min(count, most)).round().astype(int).tolist()))


def one_test_of(names, rows, ids=None):
    """One test of all rows, where many take less time than a test of its own takes; it runs every
    row, and names each that fails.

    Arguments as of ``pytest.mark.parametrize``; the rows share the test's fixtures.
    """
    single = isinstance(names, str) and "," not in names
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [(row,) if single else tuple(row) for row in rows]
    ids = ids if ids is None or callable(ids) else list(ids)

    def decorate(test):
        @functools.wraps(test)
        def whole(**given):
            failed, skipped = [], 0
            for k, row in enumerate(rows):
                try:
                    test(**given, **dict(zip(names, row, strict=True)))
                except pytest.skip.Exception:
                    skipped += 1
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
                    error.add_note(f"case {k + 1} of {len(rows)}: {_named(row, ids, k)}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(rows)} cases", failed)
            if rows and skipped == len(rows):
                pytest.skip("every case does")

        taken = inspect.signature(test)
        left = [given for name, given in taken.parameters.items() if name not in names]
        assert len(left) + len(names) == len(taken.parameters), f"{test.__name__} lacks {names}"
        whole.__signature__ = taken.replace(parameters=left)
        return whole

    return decorate


def _named(row, ids, k):
    if ids is not None and not callable(ids):
        return ids[k]
    return ", ".join(
        f"{(ids and ids(value)) or getattr(value, 'name', value)!s:.200}" for value in row
    )


@functools.cache
def exponential(epsilon):
    """A lower bound on e^ε that is near it: a Taylor polynomial, in rationals."""
    total = term = Fraction(1)
    i = 0
    while i < epsilon or term > Fraction(1, 10**90):
        i += 1
        term *= Fraction(epsilon) / i
        total += term
    return total


def one_hot_tables(sizes, subsets, weights=None):
    """Every record's marginal tables, cell by cell, in plain loops."""
    rows = []
    for record in itertools.product(*map(range, sizes)):
        row = []
        for subset, weight in zip(subsets, weights or [1.0] * len(subsets), strict=True):
            cells = itertools.product(*(range(sizes[i]) for i in subset))
            row += [weight * (cell == tuple(record[i] for i in subset)) for cell in cells]
        rows.append(row)
    return np.array(rows, dtype=float)


# what the queries of a base say of one category, in order
QUERIES = {
    Identity: lambda base: [lambda x, k=k: x == k for k in range(base.size)],
    Total: lambda base: [lambda x: 1],
    Prefix: lambda base: [lambda x, k=k: x <= k for k in range(base.size)],
    Ranges: lambda base: [
        lambda x, i=i, j=j: i <= x <= j
        for i in range(base.size)
        for j in range(base.size)
        if i <= j
    ],
    Bins: lambda base: [
        lambda x, i=i, j=j: i <= x < j
        for level in base.widths
        for i, j in itertools.pairwise(
            [*range(0, base.size, level), base.size]
            if isinstance(level, int)
            else [0, *level, base.size]
        )
    ],
    Windows: lambda base: [
        lambda x, k=k: x in [(k + step) % base.size for step in range(base.width)]
        for k in range(base.size)
    ],
    Moments: lambda base: [lambda x, k=k: math.prod([base.values[x]] * k) for k in base.degrees],
    Leading: lambda base: [
        lambda x, query=query: query(x) if x < base.base.size else 0
        for query in QUERIES[type(base.base)](base.base)
    ],
    Clipped: lambda base: [
        *(lambda x, k=k: _clipped_moment(base, x, k) for k in base.degrees),
        *([lambda x: x == base.size - 1] if base.other else []),
    ],
    Groups: lambda base: [lambda x, group=group: x in group for group in base.members],
    Base: lambda base: [lambda x, row=row: row[x] for row in base.matrix.tolist()],
}


def _clipped_moment(base, cell, degree):
    """The coefficient of a power of x in Bernstein polynomials on [low, high], in exact numbers."""
    low, high = Fraction(base.low) / Fraction(base.unit), Fraction(base.high) / Fraction(base.unit)
    if base.other and cell == base.size - 1:
        return 0.0
    if not base.squares:
        return float([low, high][cell] ** degree)
    # elementary symmetric polynomials of the ends, each taken as often as the cell says: blossoms
    ends = [low] * (2 - cell) + [high] * cell
    return float({0: 1, 1: sum(ends) / 2, 2: math.prod(ends)}[degree])


def query_answers(bases, subsets, weights=None):
    """Every record's answers, query by query, in plain loops; subsets map attributes to bases."""
    rows = []
    for record in itertools.product(*(range(base.size) for base in bases)):
        row = []
        for subset, weight in zip(subsets, weights or [1.0] * len(subsets), strict=True):
            for queries in itertools.product(
                *(QUERIES[type(subset[i])](subset[i]) for i in sorted(subset))
            ):
                answer = weight
                for i, query in zip(sorted(subset), queries, strict=True):
                    answer *= query(record[i])
                row.append(answer)
        rows.append(row)
    return np.array(rows, dtype=float)


def _products(name, bases, subsets, weights=None):
    chosen = [
        subset if isinstance(subset, dict) else {i: bases[i] for i in subset} for subset in subsets
    ]
    return Case(
        name, Products(bases, subsets, weights=weights), query_answers(bases, chosen, weights)
    )


def _finite(name, points, closed_form=None):
    return Case(name, FiniteSet(points), np.array(points, dtype=float), closed_form)


def _marginals(name, sizes, subsets, weights=None):
    return Case(
        name, Marginals(sizes, subsets, weights=weights), one_hot_tables(sizes, subsets, weights)
    )


def _stream(name, bands):
    """The recursion of every contribution by itself, in plain loops."""
    n, columns = len(bands[0]), []
    for i in range(n):
        y = []
        for t in range(n):
            past = sum(bands[k][t] * y[t - k] for k in range(1, min(len(bands), t + 1)))
            y.append(((t == i) - past) / bands[0][t])
        columns.append(y)
    return Case(name, StreamWorkload(bands), np.array(columns, dtype=float))


def _stream_product():
    """Totals of three ticks times the tables of a pair and of one attribute, in plain loops."""
    weekly = kron(StreamWorkload([[1, 1, 1], [0, -1, -1]]), Marginals((2, 2), [(0,), (0, 1)]))
    tables = one_hot_tables((2, 2), [(0,), (0, 1)], None)
    points = [
        np.concatenate([(t >= i) * row for t in range(3)]) for i in range(3) for row in tables
    ]
    return Case("a stream of tables", weekly, np.array(points, dtype=float))


def _body(name, domain, closed_form, points=None, *, may_not_know=False):
    """A convex body with a closed form of its support; members are averages of its support points
    if not given.
    """
    if points is None:
        rng = np.random.default_rng(5)
        corners = np.array(
            [domain.support_point(theta) for theta in rng.normal(size=(20, domain.dim))]
        )
        points = np.vstack([corners, rng.dirichlet(np.ones(20), size=10) @ corners])
    return Case(name, domain, np.atleast_2d(points), closed_form, may_not_know)


def _lp(q, radius=1.0):
    conjugate = np.inf if q == 1 else 1.0 if q == np.inf else q / (q - 1)
    return lambda theta: radius * np.linalg.norm(theta, conjugate)


def _schatten(q):
    return lambda theta: _lp(q)(np.linalg.svd(theta.reshape(2, 3), compute_uv=False))


def _below_segment(squares, theta):
    first, second = squares
    value = lambda t: -np.abs(theta) @ np.sqrt((1 - t) * first + t * second)  # noqa: E731
    best = minimize_scalar(value, bounds=(0, 1), method="bounded", options={"xatol": 1e-12})
    return -min(best.fun, value(0.0), value(1.0))


def _unit_square():
    return Polytope.from_halfspaces([[1, 0], [0, 1], [-1, 0], [0, -1], [1, 1]], [1, 1, 0, 0, 5])


def _triangle_cuts(theta):
    return max(0.0, *(theta.sum() - theta))


def _second_power(theta):
    d = math.isqrt(len(theta))
    table = theta.reshape(d, d)
    return max(0.0, np.linalg.eigvalsh((table + table.T) / 2)[-1])


def _third_power(theta):
    value = lambda t: -_cube(t) @ theta  # noqa: E731
    grid = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    start = grid[np.argmin([value(t) for t in grid])]
    return -minimize_scalar(
        value, bounds=(start - 0.04, start + 0.04), options={"xatol": 1e-10}
    ).fun


def _cube(angle):
    x = np.array([np.cos(angle), np.sin(angle)])
    return np.kron(x, np.kron(x, x))


def _powers(d, k):
    rng = np.random.default_rng(8)
    vectors = rng.normal(size=(30, d))
    vectors *= rng.choice([1.0, 0.7], size=(30, 1)) / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.array([functools.reduce(np.kron, [x] * k) for x in vectors])


def _moments_of_two(theta, low=(-1.0, 0.5), high=(2.0, 1.5)):
    """The largest of θ'(1, x, y, x², xy, y²): at corners, on edges, inside."""
    c, a, b, xx, xy, yy = theta
    value = lambda x, y: c + a * x + b * y + xx * x * x + xy * x * y + yy * y * y  # noqa: E731
    points = list(itertools.product(*zip(low, high, strict=True)))
    points += [(-(a + xy * y) / (2 * xx), y) for y in (low[1], high[1]) if xx]
    points += [(x, -(b + xy * x) / (2 * yy)) for x in (low[0], high[0]) if yy]
    if (still := 4 * xx * yy - xy * xy) != 0:
        points.append(((b * xy - 2 * a * yy) / still, (a * xy - 2 * b * xx) / still))
    return max(value(x, y) for x, y in points if low[0] <= x <= high[0] and low[1] <= y <= high[1])


def _moments(count):
    x, y = np.random.default_rng(12).uniform([-1.0, 0.5], [2.0, 1.5], (count, 2)).T
    return np.column_stack([np.ones(count), x, y, x * x, x * y, y * y])


def _wide():
    return np.random.default_rng(9).normal(size=(3, 4))


def _moved_schatten(theta):
    pulled = theta @ _wide()
    return _lp(3)(np.linalg.svd(pulled.reshape(2, 2), compute_uv=False)) + pulled.sum()


def _ball_times_square(theta):
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    return np.linalg.norm(corners @ theta.reshape(2, 2).T, axis=1).max()


def _occupied(who):
    """Every set of ticks that one person may occupy, by trying all."""
    chosen = (
        ticks for m in range(1, who.n + 1) for ticks in itertools.combinations(range(who.n), m)
    )
    allowed = {
        Apart: lambda t: len(t) <= who.k and all(b - a >= who.b for a, b in itertools.pairwise(t)),
        Epochs: lambda t: (
            {(i - t[0]) % who.b for i in t} == {0} and (t[-1] - t[0]) // who.b < who.k
        ),
        Window: lambda t: t[-1] - t[0] < who.k,
    }[type(who)]
    return [list(ticks) for ticks in chosen if allowed(ticks)]


def _participations(name, kind, who):
    """Members with s in {0, 1}, or ±1, and the supports of the hull of all."""
    A = np.tril(np.random.default_rng(11).normal(size=(who.n, who.n))) + 2 * np.eye(who.n)
    sets = _occupied(who)
    if kind is CountParticipations:
        points = np.array([sign * A[:, ticks].sum(axis=1) for ticks in sets for sign in (1, -1)])
    else:
        signs = [
            (ticks, s) for ticks in sets for s in itertools.product((-1, 1), repeat=len(ticks))
        ]
        points = np.array([A[:, ticks] @ s for ticks, s in signs])
    return Case(name, kind(A, who), points, lambda theta: (points @ theta).max())


def _itself(domain):
    return domain - domain


def _pear():
    return hull(LpBall(2, 2), FiniteSet([[3.0, 0.0]]))


class Disc(AbstractDomain):
    """A user's own domain: two methods."""

    dim = 2

    def _support_point(self, theta):
        return theta / (np.linalg.norm(theta) or 1.0)

    def _max_quadratic(self, form, center):
        values, axes = np.linalg.eigh(form)
        x = axes[:, -1] * (1.0 if axes[:, -1] @ form @ center <= 0 else -1.0)
        upper = (values[-1] ** 0.5 + max(center @ form @ center, 0.0) ** 0.5) ** 2
        return QuadraticMax(x, (x - center) @ form @ (x - center), upper)


_random = np.random.default_rng(1).normal(size=(7, 3))
_BOX = BoxMoments([-1.0, 0.5], [2.0, 1.5])


def _bodies():
    G = np.random.default_rng(6).normal(size=(5, 3))
    A = np.random.default_rng(7).normal(size=(3, 2))
    M = G.T @ G
    thin = np.outer([1.0, 2.0, -1.0], [1.0, 2.0, -1.0])
    v = np.array([1.0, -2.0, 0.5])
    squares = np.array([[1.0, 4.0, 0.0], [0.0, 1.0, 9.0]])
    z, e, square = (
        Zonotope(G),
        Ellipsoid(M),
        Polytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
    )
    h_z, h_e = (lambda t: np.abs(G @ t).sum()), (lambda t: np.sqrt(max(t @ M @ t, 0.0)))
    h_square = lambda t: np.maximum(t, 0).sum()  # noqa: E731
    h_2 = np.linalg.norm
    points = _random[:, :2]
    return [
        *(
            _body(f"l{q:g} ball", LpBall(3, q, radius=2.0), _lp(q, 2.0))
            for q in (1, 1.5, 2, 3, np.inf)
        ),
        _body("interval", LpBall(1, 4, radius=0.5), lambda t: 0.5 * abs(t[0])),
        _body("ellipsoid", e, h_e),
        _body(
            "flat ellipsoid, moved",
            Ellipsoid(thin, v),
            lambda t: np.sqrt(max(t @ thin @ t, 0.0)) + v @ t,
        ),
        _body("zonotope", z, h_z),
        _body(
            "flat zonotope, moved", Zonotope(G[:2], v), lambda t: np.abs(G[:2] @ t).sum() + v @ t
        ),
        _body(
            "box of squares", TwoConvex([[1.0, 4.0, 9.0]]), lambda t: np.abs(t) @ [1.0, 2.0, 3.0]
        ),
        _body("squares below a segment", TwoConvex(squares), lambda t: _below_segment(squares, t)),
        _body("polytope", Polytope(_random), lambda t: (_random @ t).max(), _random),
        _body("square by halfspaces", _unit_square(), h_square),
        _body(
            "cut polytope of a triangle", Polytope.cuts(networkx.complete_graph(3)), _triangle_cuts
        ),
        *(
            _body(f"Schatten {q:g}", SchattenBall((2, 3), q), _schatten(q))
            for q in (1, 1.5, 2, 3, np.inf)
        ),
        _body("squares of vectors", TensorPower(2, 2), _second_power, _powers(2, 2)),
        _body("cubes of vectors", TensorPower(2, 3), _third_power, _powers(2, 3)),
        _body("squares of vectors in space", TensorPower(3, 2), _second_power, _powers(3, 2)),
        _body("moments", _BOX, _moments_of_two, _moments(30)),
        _body(
            "differences of moments",
            _itself(_BOX),
            lambda t: _moments_of_two(t) + _moments_of_two(-t),
            _moments(30)[:15] - _moments(30)[15:],
        ),
        _body("image of a ball", A @ LpBall(2, 3), lambda t: _lp(3)(t @ A)),
        _body("image of a curved ball", A @ LpBall(2, 1.5), lambda t: _lp(1.5)(t @ A)),
        _body(
            "image of a moved Schatten ball",
            _wide() @ (SchattenBall((2, 2), 3) + np.ones(4)),
            _moved_schatten,
        ),
        _body("scaled disc", -2 * Disc(), lambda t: 2 * h_2(t), may_not_know=True),
        _body("moved ball", LpBall(3, 3) + v, lambda t: _lp(3)(t) + v @ t),
        _body("sum", A @ LpBall(2, 3) + z, lambda t: _lp(3)(t @ A) + h_z(t)),
        _body("sum with a polytope", LpBall(2, 2) + square, lambda t: h_2(t) + h_square(t)),
        _body(
            "sum with no image",
            LpBall(2, 1.5) + square + Disc(),
            lambda t: _lp(1.5)(t) + h_square(t) + h_2(t),
        ),
        _body("product", product(e, square), lambda t: h_e(t[:3]) + h_square(t[3:])),
        _body(
            "product with no image", product(Disc(), square), lambda t: h_2(t[:2]) + h_square(t[2:])
        ),
        _body("Kronecker product", kron(LpBall(2, 2), square), _ball_times_square),
        _body(
            "hull",
            hull(LpBall(2, 2), square + np.array([1.0, 0.0])),
            lambda t: max(h_2(t), h_square(t) + t[0]),
        ),
        _body(
            "difference of discs in a hull",
            _itself(_pear()),
            lambda t: h_2(t) + max(h_2(t), abs(t[0]) * 3),
        ),
        _body("user's own", Disc(), h_2, may_not_know=True),
        _body("difference of a user's own", _itself(Disc()), lambda t: 2 * h_2(t)),
        _body("difference of a polytope", _itself(Polytope(points)), lambda t: np.ptp(points @ t)),
    ]


CASES = [
    _finite("one point", [[1.0, -2.0]]),
    _finite("origin", [[0.0]]),
    _finite("simplex", np.eye(4), closed_form=np.max),
    _finite(
        "cross-polytope",
        np.vstack([np.eye(3), -np.eye(3)]),
        closed_form=lambda theta: np.abs(theta).max(),
    ),
    _finite(
        "cube",
        list(itertools.product([-1, 1], repeat=3)),
        closed_form=lambda theta: np.abs(theta).sum(),
    ),
    _finite("random", _random),
    _finite("random and its mirror image", np.vstack([_random, -_random])),
    _finite("mirrored only up to the last bit", [[1.0], [-np.nextafter(1.0, 2.0)]]),
    _finite("duplicates and signed zeros", [[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0], [0.0, 1.0]]),
    _finite("flat", np.outer([-1.0, 0.5, 2.0], [1.0, 2.0, -1.0])),
    _marginals("total alone", (2, 3), [()]),
    _marginals("two-way", (3, 2, 4), [(0, 1), (0, 2), (1, 2)]),
    _marginals(
        "weighted, of mixed orders", (2, 3, 2), [(0, 1), (1, 2), (0,), ()], [1.0, 0.7, 2.0, 0.3]
    ),
    _marginals("one-category attributes", (1, 3, 1, 2), [(0, 1), (2,), (1, 3)]),
    _products("prefix sums", [Prefix(5)], [(0,)]),
    _products(
        "a catch-all behind ranges",
        [Leading(Ranges(3), 4), Identity(2)],
        [(0, 1), {0: Leading(Prefix(2), 4)}],
    ),
    _products("total of a product", [Prefix(2), Total(3)], [(1,)]),
    _products(
        "ranges by identity, and the total",
        [Ranges(3), Identity(2)],
        [(0, 1), (), (1,)],
        [1.0, 0.3, 2.0],
    ),
    _products(
        "several bases of one attribute",
        [Prefix(4), Windows(3, 2)],
        [
            (0, 1),
            {0: Ranges(4)},
            {1: Identity(3), 0: Bins(4, [2])},
            {0: Total(4), 1: Base([[1, -1, 0.5]])},
        ],
        [1.0, 0.7, 2.0, 0.3],
    ),
    _products(
        "moments, bins and one category",
        [Moments([-1.5, 0.0, 4.0], [0, 1, 2]), Identity(1), Bins(3, [1, (2,)])],
        [(0,), (0, 2), (1,)],
    ),
    _stream("a stream of prefix sums", [[1, 1, 1, 1, 1], [0, -1, -1, -1, -1]]),
    _stream("a stream with two bands", [[2, 1, 4, 1], [0, -3, 1, -0.5], [0, 0, 0.25, 0.5]]),
    _stream_product(),
    *_bodies(),
    _participations("counts in epochs", CountParticipations, Epochs(5, 2, kind="counts")),
    _participations("counts apart", CountParticipations, Apart(5, 2, 2, kind="counts")),
    _participations("vectors apart", VectorParticipations, Apart(5, 3, 2)),
    _participations("vectors in a window", VectorParticipations, Window(4, 2)),
]


def packed(path, content):
    """Write a file, packed as the end of its name says."""
    kind = path.suffix.lower()
    if kind == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("__MACOSX/._t.csv", b"x")  # as macOS adds
            archive.writestr("t.csv", content)
        return
    pack = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": _zstd}.get(kind, bytes)
    path.write_bytes(pack(content))


def _zstd(content):
    import pyarrow as pa

    return pa.compress(content, codec="zstd", asbytes=True)
