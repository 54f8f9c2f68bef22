"""The longest member of a zonotope by branch and bound, and its bound by triples of signs: against
every sign pattern, hulls, and zonogons.
"""

import itertools
import math

import numpy as np
import pytest
import scipy
from cases import one_test_of

import domains.oracles.caps as caps
import domains.oracles.signs as signs
import domains.oracles.squared_norm as squared_norm
from domains import Zonotope
from domains.oracles.branch import worst_open
from domains.oracles.caps import longest_by_caps
from domains.oracles.image import LpBlock
from domains.oracles.signs import longest_by_signs
from domains.oracles.triples import triple_rows

KINDS = {
    "in general position": lambda rng, r, n: rng.normal(size=(r, n)),
    "of small integers": lambda rng, r, n: rng.integers(-1, 2, size=(r, n)).astype(float),
    "all but one in a hyperplane": lambda rng, r, n: np.vstack(
        [rng.normal(size=(r - 1, n)), np.eye(1, n)]
    ),
    "flat": lambda rng, r, n: rng.normal(size=(r, 2)) @ rng.normal(size=(2, n)),
    "nearly flat": lambda rng, r, n: (
        (10.0 ** -np.arange(0, 3 * r, 3))[:, None] * rng.normal(size=(r, n))
    ),
    "nearly parallel": lambda rng, r, n: np.ones((r, 1)) + 1e-5 * rng.normal(size=(r, n)),
    "parallel up to rounding": lambda rng, r, n: np.ones((r, 1)) + 1e-15 * rng.normal(size=(r, n)),
    "of very different lengths": lambda rng, r, n: (
        rng.normal(size=(r, n)) * 10.0 ** rng.uniform(-9, 0, n)
    ),
    "of zeros": lambda rng, r, n: rng.normal(size=(r, n)) * (np.arange(n) % 3 > 0),
}
WORK = 2**27


def by_signs(G, x, work):
    """Search by signs with y_j = ``‖g_j‖ Σ_k ‖g_k‖``: diag(y) ⪰ G'G by Cauchy's inequality."""
    lengths = np.linalg.norm(G, axis=0)
    live = lengths > 0
    found = longest_by_signs(G[:, live], x[live], lengths[live] * lengths.sum(), work)
    if found is None:
        return None
    x = x.copy()
    x[live] = found[0]
    return x, found[1]


SEARCHES = {"caps": longest_by_caps, "signs": by_signs}


def every_sign(G):
    """Return all points G x up to their sign, by brute force."""
    x = np.array(list(itertools.product([1.0, -1.0], repeat=G.shape[1] - 1)))
    return G[:, 0] + x @ G[:, 1:].T


def longest(G):
    return float(np.square(every_sign(G)).sum(axis=1).max())


def start(G):
    """Return arbitrary signs to start from."""
    return np.where(G[0] < 0, -1.0, 1.0)


def short(search, G):
    """Return how far the answer, or its bound, falls below brute force, relatively."""
    x, bound = search(G, start(G), WORK)
    assert (np.abs(x) == 1).all()
    best = longest(G)
    return 1 - float(np.square(G @ x).sum()) / best, 1 - bound / best


@one_test_of(("kind", "name"), list(itertools.product(KINDS, SEARCHES)))
def test_no_sign_pattern_is_longer(kind, name):
    rng = np.random.default_rng(0)
    for r, n in ((2, 9), (3, 12), (4, 11), (5, 10)):
        value, bound = short(SEARCHES[name], KINDS[kind](rng, r, n))
        assert value <= 1e-10
        assert -1e-10 <= bound <= 0


@one_test_of("name", list(SEARCHES))
def test_bounds_hold_in_exact_arithmetic_whenever_the_search_stops(name):
    """Generators of few bits have a longest member that is known exactly."""
    rng = np.random.default_rng(1)
    for r, n in ((2, 7), (3, 9), (5, 9)):
        G = rng.integers(-99, 100, size=(r, n)).astype(float)
        best = max(sum(int(z) ** 2 for z in row) for row in every_sign(G).astype(np.int64).tolist())
        bounds = []
        for work in (0, 1, 10**4, 10**5, 10**6, WORK):
            x, bound = SEARCHES[name](G, start(G), work)
            assert float(np.square(G @ x).sum()) <= best <= bound
            bounds.append(bound)
        assert sorted(bounds, reverse=True) == pytest.approx(bounds, rel=1e-10)
        assert bounds[-1] <= best * (1 + 1e-10)


@one_test_of("name", list(SEARCHES))
def test_a_member_on_the_way_is_never_above_the_bound(name):
    """With too many columns for the allowed work, part of the gap stays open."""
    G = np.random.default_rng(2).normal(size=(9, 60))
    x, bound = SEARCHES[name](G, start(G), 2**24)
    assert (np.abs(x) == 1).all()
    assert np.square(G @ start(G)).sum() <= np.square(G @ x).sum() <= bound
    assert bound > 1.01 * np.square(G @ x).sum()


def test_the_check_has_power(monkeypatch):
    """Caps smaller than their boxes lose the longest member, and so do terms counted twice."""
    draws = [np.random.default_rng(s).normal(size=(3, 11)) for s in range(10)]

    def lost(search, work):
        return max(1 - search(G, start(G), work)[1] / longest(G) for G in draws)

    assert lost(longest_by_caps, 2**15) <= 0
    assert lost(by_signs, 2**15) <= 0
    caps_of, triangle, longer = caps._caps, scipy.linalg.cholesky, signs._Search.longer

    def points(middles, halves):
        lengths, cosines, sines = caps_of(middles, halves)
        return lengths, np.ones_like(cosines), np.zeros_like(sines)

    with monkeypatch.context() as patch:
        patch.setattr(caps, "_caps", points)
        assert lost(longest_by_caps, 2**15) > 1e-3
    with monkeypatch.context() as patch:
        patch.setattr(scipy.linalg, "cholesky", lambda *a, **k: 1.01 * triangle(*a, **k))
        assert lost(by_signs, 2**15) <= 0  # any triangle gives a valid bound

    def twice(search, beginnings):
        bits, fixed, bounds = longer(search, beginnings)
        return bits, fixed, 2 * bounds - np.tile(beginnings[2], 2)

    monkeypatch.setattr(signs._Search, "longer", twice)
    assert lost(by_signs, 2**15) > 1e-3


def test_boxes_cover_the_sphere_and_caps_hold_boxes():
    rng = np.random.default_rng(3)
    for r in (2, 3, 6, 9):
        search = caps._Search(rng.normal(size=(r, 20)), np.ones(20), 0.0)
        boxes = (np.eye(r), 1 - np.eye(r), np.full(r, np.inf))
        for _ in range(5):
            boxes = search.halved(boxes)
            chosen = rng.permutation(len(boxes[0]))[: 2**9]
            covered = np.prod(2 * boxes[1] + (boxes[1] == 0), axis=1).sum()
            assert covered == r * 2 ** (r - 1)  # the total area of the faces
            middles, halves = boxes[0][chosen], boxes[1][chosen]
            lengths, cosines, sines = caps._caps(middles, halves)
            inside = middles + halves * rng.choice([-1.0, 1.0, 0.5], size=middles.shape)
            angles = (inside * middles).sum(axis=1) / np.linalg.norm(inside, axis=1) / lengths
            assert (angles >= cosines - 1e-12).all()
            np.testing.assert_allclose(np.square(cosines) + np.square(sines), 1, rtol=1e-12)
            assert (np.abs(inside).max(axis=1) == 1).all()


def test_branching_stops_where_it_must():
    """Intervals are bounded by their upper ends: the largest x up to 1 is 1."""

    def halves(nodes):
        low, high = nodes
        middle = (low + high) / 2
        return np.concatenate([low, middle]), np.concatenate([middle, high])

    root = np.zeros(1), np.ones(1)
    assert worst_open(root, halves, lambda: 1.0, 10) == 1.0
    assert worst_open(root, halves, lambda: 0.99, 5000) == 1.0
    assert (root[0], root[1]) == (0, 1)  # the arguments are unchanged

    def interrupted(nodes):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        worst_open(root, interrupted, lambda: 0.5, 10)


def test_the_vertices_are_those_of_the_convex_hull():
    """13 generators in R³ in general position make 13·12 + 2 vertices."""
    G = np.random.default_rng(3).normal(size=(3, 13))
    points = every_sign(G)
    points = np.vstack([points, -points])
    vertices = points[scipy.spatial.ConvexHull(points).vertices]
    assert len(vertices) == 13 * 12 + 2
    for H in (np.diag([1.0, 1e-3, 1e-3]), np.diag([1.0, 1.0, 1e-6]), np.eye(3)):
        best = np.einsum("ij,jk,ik->i", vertices, H, vertices).max()
        root = np.sqrt(H) @ G
        for search in SEARCHES.values():
            assert search(root, start(root), WORK)[1] == pytest.approx(best, rel=1e-10)


def test_grids_of_integers_in_many_copies():
    """Three copies of the 13 lines to a cube's neighbours: 39 generators, 9 in each plane."""
    lines = [x for x in itertools.product([-1.0, 0.0, 1.0], repeat=3) if x > (0, 0, 0)]
    grid = np.array(lines).T
    copies = np.hstack([grid, -2 * grid, grid / 3])
    for W in (np.eye(3), np.diag([1.0, 2.0, 0.1]), np.random.default_rng(4).normal(size=(3, 3))):
        found = Zonotope(copies.T).max_quadratic(W.T @ W)
        assert found.value == found.upper_bound
        assert found.value == pytest.approx(longest(W @ grid) * (1 + 2 + 1 / 3) ** 2, rel=1e-12)


@one_test_of(("n", "r"), [(14, 4), (14, 7), (14, 11), (10, 10)])
def test_many_copies_of_few_lines(n, r):
    """The exact answer, in any number of dimensions, comes from all signs of one copy."""
    lines = np.random.default_rng(r).normal(size=(r, n))
    copies = np.hstack([lines, -lines, 2 * lines])
    found = Zonotope(copies.T).max_quadratic(np.eye(r))
    assert found.value == found.upper_bound == pytest.approx(16 * longest(lines), rel=1e-12)


def test_many_generators_in_one_plane():
    """Sixty generators in a plane, two outside: a zonogon's vertices with all signs of the two."""
    rng = np.random.default_rng(5)
    flat, beside = rng.normal(size=(2, 60)), rng.normal(size=(3, 2))
    angles = np.arctan2(flat[1], flat[0])
    middles = np.sort(np.mod(np.concatenate([angles, angles + np.pi]) + np.pi / 2, 2 * np.pi))
    middles = (middles + np.append(middles[1:], middles[0] + 2 * np.pi)) / 2
    signs = np.sign(np.column_stack([np.cos(middles), np.sin(middles)]) @ flat)
    corners = np.column_stack([signs @ flat.T, np.zeros(len(signs))])
    best = max(
        np.square(corners + beside @ pair).sum(axis=1).max()
        for pair in itertools.product([-1.0, 1.0], repeat=2)
    )
    found = Zonotope(np.vstack([np.pad(flat.T, ((0, 0), (0, 1))), beside.T])).max_quadratic(
        np.eye(3)
    )
    assert found.value == found.upper_bound == pytest.approx(best, rel=1e-12)


def test_a_ball_of_segments():
    """Generators spread over a sphere make the most vertices, of nearly the same length."""
    k = np.arange(300) + 0.5
    height, angle = 1 - k / 300, np.pi * (1 + 5**0.5) * k
    radius = np.sqrt(1 - np.square(height))
    G = np.array([radius * np.cos(angle), radius * np.sin(angle), height])
    x, bound = longest_by_caps(G, start(G), WORK)
    directions = np.random.default_rng(6).normal(size=(2000, 3))
    lengths = np.square(np.sign(directions @ G) @ G.T).sum(axis=1)
    assert lengths.max() <= bound == pytest.approx(np.square(G @ x).sum(), rel=1e-10)
    assert lengths.min() > 0.97 * bound


def test_offsets_share_the_work_and_other_centers_are_exact():
    rng = np.random.default_rng(7)
    G, center = rng.normal(size=(24, 3)), rng.normal(size=3)
    found = Zonotope(G).max_quadratic(np.eye(3), center)
    both = np.column_stack([G.T, center])
    assert found.value == found.upper_bound > longest(np.column_stack([center, G[:12].T]))
    for search in SEARCHES.values():
        x, bound = search(both, start(both), WORK)
        assert found.value == pytest.approx(np.square(both @ x).sum(), rel=1e-12)
        assert found.value == pytest.approx(bound, rel=1e-10)


@one_test_of(("n", "r"), [(400, 5), (60, 6), (40, 12), (30, 15)])
def test_no_gap_is_left(n, r):
    G = np.random.default_rng(8).normal(size=(n, r))
    found = Zonotope(G).max_quadratic(np.eye(r))
    assert found.value == found.upper_bound


def test_what_is_out_of_reach_is_left_to_the_relaxation(monkeypatch):
    G = np.random.default_rng(9).normal(size=(12, 150))
    assert longest_by_caps(G, start(G), WORK) is None
    assert by_signs(G, start(G), WORK) is None
    assert longest_by_signs(G[:, :4], start(G[:, :4]), np.full(4, 1e-3), WORK) is None
    found = Zonotope(G.T).max_quadratic(np.eye(12))
    assert found.value < found.upper_bound <= math.pi / 2 * found.value
    monkeypatch.setattr(squared_norm, "MOST_WORK", 2**20)
    few = Zonotope(G[:8, :100].T)
    narrow = few.max_quadratic(np.eye(8))
    monkeypatch.setattr(squared_norm, "_searched", lambda G, x, upper, y, work: (x, upper))
    assert narrow.upper_bound <= few.max_quadratic(np.eye(8)).upper_bound


@pytest.mark.parametrize("q", [2.5, 3.0, 4.0])
def test_ascents_end_at_local_maxima_and_those_given_up_would_not_have_mattered(q):
    rng = np.random.default_rng(0)
    G, directions = rng.normal(size=(6, 15)), rng.normal(size=(200, 6))
    G /= math.sqrt(15)
    blocks = (LpBlock(15, q),)
    X = squared_norm.local_maxima(G, np.zeros(6), blocks, directions)
    lengths = np.square(X @ G.T).sum(axis=1)
    np.testing.assert_allclose(np.linalg.norm(X, q, axis=1), 1, rtol=1e-14)
    # neither a step to the support point nor a change of one sign makes any of them longer;
    # an ascent stops at a rise of 1e-12, after at most 100 steps that shrink the rest of it
    plain = LpBlock(15, q).support_point(X @ G.T @ G)
    assert (np.square(plain @ G.T).sum(axis=1) <= lengths * (1 + 1e-9)).all()
    for j in range(15):
        flipped = X * np.where(np.arange(15) == j, -1, 1)
        assert (np.square(flipped @ G.T).sum(axis=1) <= lengths * (1 + 1e-11)).all()
    beyond = float(np.quantile(lengths, 0.9))
    Y = squared_norm.local_maxima(G, np.zeros(6), blocks, directions, beyond)
    still = np.square(Y @ G.T).sum(axis=1)
    kept = still[lengths > beyond] >= lengths[lengths > beyond] * (1 - 1e-9)
    assert kept.mean() >= 0.9  # of 20; a rise that pauses is given up


def test_rows_hold_three_entries_of_one_size():
    """This alone makes the bound valid: the sum of three signs is odd."""
    G = np.random.default_rng(0).normal(size=(4, 30))
    rows, X = triple_rows(G, 30.0 * 30)
    assert len(rows) > 10
    assert (np.count_nonzero(rows, axis=1) == 3).all()
    sizes = np.abs(rows).max(axis=1)
    assert (np.where(rows == 0, sizes[:, None], np.abs(rows)) == sizes[:, None]).all()
    assert (np.diag(X) == 1).all()


@one_test_of(("kind", "scale"), list(itertools.product(KINDS, (1e-8, 1.0, 1e8))))
def test_no_sign_pattern_is_longer_than_triples_allow(kind, scale):
    rng = np.random.default_rng(0)
    for r, n in ((2, 9), (3, 12), (4, 11), (5, 10)) if scale == 1 else ((2, 9), (5, 10)):
        G = scale * KINDS[kind](rng, r, n)
        G = G[:, G.any(axis=0)]
        assert squared_norm._by_triples(G) >= longest(G) * (1 - 1e-13)


def test_triples_bound_integers_exactly():
    """Where three signs decide, the bound is the longest member up to the search's accuracy."""
    rng = np.random.default_rng(1)
    gaps = []
    for r, n in ((2, 7), (3, 9), (5, 9), (8, 9)):
        G = rng.integers(-99, 100, size=(r, n)).astype(float)
        best = max(sum(int(z) ** 2 for z in row) for row in every_sign(G).astype(np.int64).tolist())
        bound = squared_norm._by_triples(G)
        assert best <= bound
        gaps.append(bound / best - 1)
    assert min(gaps) < 1e-3


def test_three_equal_angles():
    """Three columns that sum to zero: the relaxation's 9 falls to the true 8 (Mercedes star)."""
    angles = 2 * math.pi / 3 * np.arange(3)
    G = math.sqrt(2) * np.array([np.cos(angles), np.sin(angles)])
    assert squared_norm._bracket(G, squared_norm._Body((), 3))[1] == pytest.approx(9, rel=1e-9)
    assert longest(G) == pytest.approx(8)
    assert 8 <= squared_norm._by_triples(G) < 8.001


def test_the_check_of_triples_has_power(monkeypatch):
    """Sums of three terms of unequal sizes are caught."""
    draws = [np.random.default_rng(s).normal(size=(3, 11)) for s in range(5)]

    def lost():
        return max(1 - squared_norm._by_triples(G) / longest(G) for G in draws)

    assert lost() <= 0

    def unequal(G, scale):
        """The least square of 3 ± 1 ± 1 is one, and not nine."""
        rows, X = triple_rows(G, scale)
        rows[np.arange(len(rows)), (rows != 0).argmax(axis=1)] *= 3
        return rows, X

    monkeypatch.setattr(squared_norm, "triple_rows", unequal)
    assert lost() > 1e-3


@one_test_of(("n", "r"), [(60, 10), (80, 6)])
def test_rounding_is_not_enlarged(n, r):
    """Another machine finds the bound of triples again, within an enclosure's margin of 2e-7."""
    rng = np.random.default_rng(2)
    G = rng.normal(size=(r, n))
    bound = squared_norm._by_triples(G)
    turned = np.linalg.qr(rng.normal(size=(r, r)))[0] @ G * (1 + 1e-15 * rng.normal(size=G.shape))
    assert squared_norm._by_triples(turned) == pytest.approx(bound, rel=1e-8)
    order = rng.permutation(n)
    signs = rng.choice([-1.0, 1.0], n)
    assert squared_norm._by_triples((G * signs)[:, order]) == pytest.approx(bound, rel=1e-2)


@one_test_of(("n", "r", "gap"), [(90, 12, 0.06), (130, 10, 0.06)])
def test_most_of_the_gap_closes_where_branch_and_bound_does_not(n, r, gap, monkeypatch):
    """The relaxation alone leaves 18 and 22 % of the square."""
    G = np.random.default_rng(0).normal(size=(n, r))
    form = np.linalg.inv(G.T @ G)
    monkeypatch.setattr(squared_norm, "MOST_WORK", 2**28)
    narrow = Zonotope(G).max_quadratic(form)
    assert narrow.upper_bound <= (1 + gap) * narrow.value
    with monkeypatch.context() as patch:
        patch.setattr(squared_norm, "_by_triples", lambda G: math.inf)
        wide = Zonotope(G).max_quadratic(form)
    assert wide.upper_bound > (1 + 2 * gap) * wide.value
    assert wide.value == narrow.value


def test_larger_zonotopes_are_left_to_the_relaxation(monkeypatch):
    monkeypatch.setattr(squared_norm, "_by_triples", None)
    G = np.random.default_rng(3).normal(size=(400, 12))
    found = Zonotope(G).max_quadratic(np.eye(12))
    assert found.value < found.upper_bound <= math.pi / 2 * found.value
