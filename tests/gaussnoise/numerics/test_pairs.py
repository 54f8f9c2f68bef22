"""Replacement among many points: the farthest-pair oracle, pairs found or all at once, and the
mistakes that verify() catches.
"""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gaussnoise as gn
import gaussnoise.noise.points as points_module
import gaussnoise.noise.sensitivity as sensitivity_module
import gaussnoise.numerics.pairs as pairs_module
from gaussnoise import FiniteSet
from gaussnoise.errors import CertificateError, CovarianceError, DomainTooLargeError, ParameterError
from gaussnoise.noise.covariance import FactorCovariance
from gaussnoise.noise.problem import Problem
from gaussnoise.noise.sensitivity import covered, largest_pair
from gaussnoise.numerics.feasibility import whiten
from gaussnoise.numerics.pairs import far_pairs

ROUNDING = 1e-11
NORMS = [2, 2.5, 3, 8, 100, math.inf]
few = settings(max_examples=60, derandomize=True, deadline=None, database=None)


def check(noise):
    assert 0 <= noise.gamma_lower <= noise.gamma < math.inf
    assert 0 <= noise.gap <= 1e-6
    assert noise.status is gn.results.Status.SOLVED
    assert noise.sensitivity_squared == 1
    noise.verify()
    return noise


def agree(a, b):
    assert a.gamma_lower <= b.gamma * (1 + ROUNDING)
    assert b.gamma_lower <= a.gamma * (1 + ROUNDING)


# The routes for differences that are not listed, and the most points per dimension for which each
# is used.
ROUTES = {"pairs found by the farthest-pair oracle": 0, "all pairs at once": math.inf}


def implicit(monkeypatch, route):
    monkeypatch.setattr(sensitivity_module, "_LISTED_ENTRIES", 0)
    monkeypatch.setattr(points_module, "_AT_ONCE", ROUTES[route])


def listed(monkeypatch):
    monkeypatch.setattr(sensitivity_module, "_LISTED_ENTRIES", 2**40)


# The oracle


@st.composite
def point_lists(draw):
    """Draw integers, whose squared distances are exact: ties, duplicates, one or two points, no
    coordinates at all.
    """
    shape = draw(st.integers(1, 12)), draw(st.integers(0, 4))
    return draw(hnp.arrays(np.int64, shape, elements=st.integers(-3, 3))).astype(float)


def square(points, i, j):
    return float(np.square(points[i] - points[j]).sum())


def farthest(points):
    """Return, for every row, the largest squared distance to any row, by brute force."""
    return [max(square(points, i, j) for j in range(len(points))) for i in range(len(points))]


@few
@given(point_lists())
def test_the_farthest_pair(points):
    found = far_pairs(points)
    assert found.largest == max(farthest(points))
    assert found.rows.shape == (0, 2)
    assert found.squares.shape == (0,)


@few
@given(point_lists(), st.integers(0, 40), st.sampled_from([512, 1, 2]))
def test_pairs_beyond_a_threshold(points, beyond, sample):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pairs_module, "_SAMPLE", sample)
        found = far_pairs(points, float(beyond))
    best = farthest(points)
    pairs = found.rows.tolist()
    assert found.largest == max(best)
    assert pairs == sorted(pairs)
    assert len({tuple(pair) for pair in pairs}) == len(pairs) == len(found.squares)
    for (i, j), value in zip(pairs, found.squares, strict=True):
        assert i < j
        assert value == square(points, i, j) > beyond
        assert value in (best[i], best[j])
    mentioned = set(itertools.chain.from_iterable(pairs))
    assert {i for i, value in enumerate(best) if value > beyond} <= mentioned


@pytest.mark.parametrize("tile", [1, 7, 64])
@pytest.mark.parametrize("shape", [(60, 3), (100, 30)])
@pytest.mark.parametrize("most", [None, 1, 12])
def test_blocks_of_any_size_find_the_same_pairs(monkeypatch, tile, shape, most):
    points = np.random.default_rng(0).normal(size=shape)
    points[::3] = 1e-3 * points[::3] + np.sign(points[::3])  # clusters
    best = np.array(farthest(points))
    beyond = float(np.median(best))
    expected = {
        tuple(sorted((i, int(np.square(points - points[i]).sum(axis=1).argmax()))))
        for i in np.flatnonzero(best > beyond)
    }
    expected = sorted(expected, key=lambda pair: -square(points, *pair))[:most]
    monkeypatch.setattr(pairs_module, "_TILE", tile)
    monkeypatch.setattr(pairs_module, "_SAMPLE", 2)
    found = far_pairs(points, beyond, most)
    pairs = [tuple(pair) for pair in found.rows.tolist()]
    assert set(expected) <= set(pairs)
    np.testing.assert_allclose(found.squares, [square(points, i, j) for i, j in pairs])
    assert found.largest == pytest.approx(best.max(), rel=1e-14)


@pytest.mark.parametrize("kind", ["clusters", "high dimension"])
def test_blocks_that_are_near_each_other_are_left_out(monkeypatch, kind):
    rng = np.random.default_rng(5)
    points = {
        "clusters": rng.normal(size=(8, 3))[rng.integers(8, size=4096)]
        + 1e-3 * rng.normal(size=(4096, 3)),
        "high dimension": rng.normal(size=(4096, 50)),
    }[kind]
    listed = []
    found = pairs_module._apart
    monkeypatch.setattr(pairs_module, "_TILE", 64)
    monkeypatch.setattr(
        pairs_module, "_apart", lambda *given: (listed.append(found(*given)), listed[-1])[1]
    )
    best = float(scipy.spatial.distance.pdist(points, "sqeuclidean").max())
    assert far_pairs(points).largest == pytest.approx(best, rel=1e-14)
    assert min(len(pairs) for pairs, _ in listed) < 0.4 * 64 * 65 / 2
    # without the blocks that are farthest apart, the pair would be lost
    monkeypatch.setattr(
        pairs_module,
        "_apart",
        lambda *given: [part[len(part) // 2 :] for part in found(*given[:3], 0.0)],
    )
    squares = np.square(points).sum(axis=1)
    assert pairs_module._reaches(points, squares, 0.0, np.inf)[0].max() < 0.99 * best


@pytest.mark.parametrize(
    "kind", ["normal", "heavy tails", "sphere", "far away", "line", "one outlier"]
)
def test_skipped_rows_do_not_matter(kind):
    rng = np.random.default_rng(1)
    points = {
        "normal": rng.normal(size=(2000, 3)),
        "heavy tails": rng.standard_t(1.5, size=(2000, 3)),
        "sphere": (lambda x: x / np.linalg.norm(x, axis=1)[:, None])(rng.normal(size=(2000, 3))),
        "far away": rng.normal(size=(2000, 3)) + 1e3,
        "line": np.outer(rng.normal(size=2000), [1.0, 2.0, -1.0]),
        "one outlier": np.vstack([rng.normal(size=(1999, 3)), [1e6, 0, 0]]),
    }[kind]
    best = np.array([np.square(points - x).sum(axis=1).max() for x in points])
    found = far_pairs(points, 0.9 * best.max())
    rounding = 64 * np.finfo(float).eps * np.square(points).sum(axis=1).max()
    assert found.largest == pytest.approx(best.max(), rel=1e-14, abs=rounding)
    assert set(np.flatnonzero(best > 0.9 * best.max() + rounding)) <= set(found.rows.ravel())


def test_too_many_points_are_refused(monkeypatch):
    monkeypatch.setattr(pairs_module, "_MOST_OPERATIONS", 10)
    with pytest.raises(DomainTooLargeError, match="hint: keep only the extreme points"):
        far_pairs(np.random.default_rng(2).normal(size=(60, 3)))
    with pytest.raises(DomainTooLargeError, match="hint"):
        gn.optimal_noise(FiniteSet(np.random.default_rng(2).normal(size=(200, 3))))


def test_too_many_points_cost_the_shifted_ellipsoid_a_safe_factor_of_four(monkeypatch):
    domain = FiniteSet(np.random.default_rng(2).normal(size=(60, 3)))
    exact = gn.gamma(domain)
    monkeypatch.setattr(pairs_module, "_MOST_OPERATIONS", 10)
    capped = gn.gamma(domain)
    assert exact.sensitivity_squared < capped.sensitivity_squared == 4
    capped.verify()


# Its bound for privacy


def rationals(points):
    return [[Fraction(x) for x in row] for row in points.tolist()]


def exact_square(rows):
    return max(
        sum((x - y) ** 2 for x, y in zip(*pair, strict=True))
        for pair in itertools.product(rows, repeat=2)
    )


# coordinates in a strategy are near one: squares that underflow do not occur there
near_one = st.floats(-1, 1).map(lambda x: x if abs(x) > 1e-100 else 0.0)


@few
@given(
    hnp.arrays(float, st.tuples(st.integers(1, 9), st.integers(1, 3)), elements=near_one),
    st.sampled_from([0.0, 1.0, 1e3]),
)
def test_the_bound_is_never_below_the_farthest_pair(points, shift):
    points = points + shift
    # L = 1: coordinates are the points themselves
    bound = largest_pair(whiten(np.eye(points.shape[1]), points))
    exact = exact_square(rationals(points))
    assert Fraction(bound) >= exact
    assert bound <= float(exact) * (1 + 1e-9) + 1e-11 * np.abs(points).max() ** 2


@pytest.mark.parametrize("count", [3, 30, 150])
@pytest.mark.parametrize("stretch", [1.0, 1e-4, 1e-8])
def test_the_bound_holds_in_the_stored_ellipsoid(count, stretch):
    rng = np.random.default_rng(count)
    points = rng.normal(size=(count, 2)) * [1, stretch] @ np.linalg.qr(rng.normal(size=(2, 2)))[0]
    noise = gn.gamma(FiniteSet(points))
    (a, b), (c, d) = rationals(noise.covariance.factor())
    solved = [[(d * x - b * y), (a * y - c * x)] for x, y in rationals(points)]
    longest = exact_square([row for row in solved if max(map(abs, row))]) / (a * d - b * c) ** 2
    assert longest <= Fraction(noise.sensitivity_squared)
    assert noise.sensitivity_squared <= float(longest) * (1 + 1e-6)


# Column generation


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("p", [2, 2.5, 100, math.inf])
@pytest.mark.parametrize(
    ("name", "points"),
    {
        "random": np.random.default_rng(3).normal(size=(40, 3)),
        "duplicates": np.repeat(np.random.default_rng(3).normal(size=(8, 3)), 3, axis=0),
        "flat": np.random.default_rng(4).normal(size=(20, 2))
        @ np.random.default_rng(5).normal(size=(2, 4)),
        "one-hot": np.eye(9),
        "cube": np.array(list(itertools.product([0.0, 1.0], repeat=4))),
        "heavy tails": np.random.default_rng(6).standard_t(2, size=(50, 4)),
        "constant coordinate": np.column_stack(
            [np.random.default_rng(7).normal(size=(20, 2)), np.full(20, 0.1)]
        ),
        "two points": np.array([[1.0, 2.0], [0.0, 0.3]]),
        "one large coordinate": np.random.default_rng(8).normal(size=(30, 3)) * [1e6, 1, 1],
        "prefix sums": np.tril(np.ones((20, 20))),
        "more dimensions than points": np.random.default_rng(9).normal(size=(6, 20)),
    }.items(),
)
def test_pairs_that_are_not_listed_do_as_well_as_a_list(monkeypatch, name, points, p, route):
    listed(monkeypatch)
    all_of_them = check(gn.optimal_noise(FiniteSet(points), p))
    assert "differences" not in all_of_them.method
    implicit(monkeypatch, route)
    generated = check(gn.optimal_noise(FiniteSet(points), p))
    assert "differences" in generated.method
    assert route in generated.method or "uniform" in generated.method
    agree(generated, all_of_them)


@few
@given(
    point_lists().filter(lambda x: x.shape[1]),
    st.one_of(st.floats(2, 50), st.sampled_from(NORMS)),
    st.sampled_from(list(ROUTES)),
)
def test_pairs_of_small_sets_that_are_not_listed(points, p, route):
    with pytest.MonkeyPatch.context() as patch:
        implicit(patch, route)
        generated = check(gn.optimal_noise(FiniteSet(points), p))
        listed(patch)
        agree(generated, check(gn.optimal_noise(FiniteSet(points), p)))


@pytest.mark.parametrize("points", [[[3.0, 4.0]], [[3.0, 4.0]] * 3])
def test_one_point_needs_no_noise(monkeypatch, points):
    implicit(monkeypatch, "all pairs at once")
    noise = check(gn.optimal_noise(FiniteSet(points), 3))
    assert noise.gamma == 0
    assert not noise.covariance.toarray().any()


@pytest.mark.parametrize(
    ("N", "d", "p"),
    [(3000, 3, 2), (3000, 3, math.inf), (1000, 12, 3), (1000, 12, 100), (300, 30, 2), (300, 30, 3)],
)
def test_thousands_of_points(p, N, d):
    noise = check(gn.optimal_noise(FiniteSet(np.random.default_rng(N).normal(size=(N, d))), p))
    assert "differences" in noise.method


@pytest.mark.parametrize(
    ("shape", "p"),
    [((1200, 4), 2), ((1200, 4), math.inf), ((70, 140), 2), ((70, 140), 3), ((140, 100), math.inf)],
)
def test_thousands_of_heavy_tailed_points(p, shape):
    check(gn.optimal_noise(FiniteSet(np.random.default_rng(10).standard_t(2, size=shape)), p))


def test_interior_points_change_nothing():
    rng = np.random.default_rng(11)
    corners = 10 * rng.normal(size=(12, 3))
    inside = rng.dirichlet(np.ones(12), size=2000) @ corners
    for p in (2, math.inf):
        agree(
            check(gn.optimal_noise(FiniteSet(np.vstack([inside, corners])), p)),
            check(gn.optimal_noise(FiniteSet(corners), p)),
        )


def test_symmetric_sets_need_twice_the_noise_of_their_points():
    half = np.random.default_rng(12).normal(size=(300, 3))
    whole = check(gn.optimal_noise(FiniteSet(np.vstack([half, -half])), 3))
    single = gn.optimal_noise(FiniteSet(half), 3, neighbors="add-remove")
    assert float(whole) == pytest.approx(2 * float(single), rel=2e-6)


def test_the_differences_a_reference_method_would_list_are_counted():
    domain = FiniteSet(np.zeros((20_000, 2)))
    with pytest.raises(
        DomainTooLargeError, match=r"20000 points have 199990000 differences .* method=\"auto\""
    ):
        covered(domain, Problem(domain, 2, "replace"), listed=True)


# Verification of pairs that were never listed

DOMAIN = FiniteSet(np.random.default_rng(13).normal(size=(300, 4)))
NOISE = {p: gn.optimal_noise(DOMAIN, p) for p in (2, 3, math.inf)}
solved = pytest.mark.parametrize("noise", NOISE.values(), ids=NOISE.keys())


def test_these_pairs_are_not_listed():
    assert covered(DOMAIN, Problem(DOMAIN, 2, "replace")).rows is None


@solved
def test_the_farthest_pair_has_length_one(noise):
    inverse = np.linalg.inv(noise.covariance.toarray())
    moved = DOMAIN.points[:, None] - DOMAIN.points
    assert np.einsum("ijk,kl,ijl->ij", moved, inverse, moved).max() == pytest.approx(1, abs=1e-9)
    assert 1 - 1e-9 <= noise.verify().enclosure <= 1


@solved
@pytest.mark.parametrize("share", [1 - 1e-9, 0.99, 0.25])
def test_a_thinner_covariance_is_caught(noise, share):
    thin = FactorCovariance(noise.covariance.unit_factor, noise.covariance.scale * share)
    with pytest.raises(CertificateError, match="too little noise"):
        dataclasses.replace(noise, covariance=thin).verify()


SMALL = gn.optimal_noise(FiniteSet([[1.0, 2.0], [0.0, 0.3], [3.0, 1.0]]))


@pytest.mark.parametrize("noise", [NOISE[3], SMALL], ids=["many points", "few points"])
@pytest.mark.parametrize("scale", [0.0, -1.0, -1e3, math.nan, math.inf])
def test_a_scale_that_is_no_size_is_caught(noise, scale):
    with pytest.raises(ParameterError, match="positive, finite scale"):
        FactorCovariance(noise.covariance.unit_factor, scale * noise.covariance.scale)


@solved
def test_a_covariance_thinner_in_one_direction_is_caught(noise):
    squeezed = noise.covariance.unit_factor * [1, 1, 1, 0.999]
    with pytest.raises(CertificateError, match="too little noise"):
        dataclasses.replace(
            noise, covariance=FactorCovariance(squeezed, noise.covariance.scale)
        ).verify()


@solved
def test_a_covariance_without_a_direction_is_caught(noise):
    flat = FactorCovariance(10 * noise.covariance.unit_factor[:, :3], noise.covariance.scale)
    with pytest.raises(CovarianceError, match="without noise"):
        dataclasses.replace(noise, covariance=flat).verify()


@solved
def test_one_more_point_outside_is_caught(noise):
    larger = FiniteSet(np.vstack([DOMAIN.points, 1.05 * DOMAIN.points[noise.certificate.rows[0]]]))
    with pytest.raises(CertificateError, match="too little noise"):
        dataclasses.replace(noise, domain=larger).verify()


def swapped(rows):
    return rows[:, ::-1]


def next_row(rows):
    return np.column_stack([rows[:, 0], (rows[:, 1] + 1) % DOMAIN.cardinality])


@solved
@pytest.mark.parametrize(
    "change",
    [
        {"points": lambda x: 2 * x},
        {"points": lambda x: np.nextafter(x, np.inf)},
        {"rows": swapped},
        {"rows": next_row},
        {"rows": lambda r: r - r.max() - 1},
        {"rows": lambda r: r - DOMAIN.cardinality},
        {"rows": lambda r: r + DOMAIN.cardinality},
        {"rows": lambda r: r[:, :1]},
        {"rows": lambda r: r[1:]},
        {"rows": lambda r: r.ravel()},
        {"rows": lambda r: r.astype(float)},
        {"weights": lambda w: w[1:]},
        {"weights": lambda w: np.concatenate([[-w[0]], w[1:]])},
        {"weights": lambda w: np.concatenate([[np.nan], w[1:]])},
        {"weights": lambda w: np.concatenate([[np.inf], w[1:]])},
        {"coordinate_weights": lambda w: 2 * w},
        {"coordinate_weights": lambda w: np.concatenate([[-0.1], w[1:]])},
        {"coordinate_weights": lambda w: w[1:]},
        {"coordinate_weights": lambda w: w * np.nan},
        {"centered": lambda c: True},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_tampered_witness_is_caught(noise, change):
    witness = noise.certificate
    changed = {name: edit(getattr(witness, name)) for name, edit in change.items()}
    with pytest.raises(CertificateError):
        dataclasses.replace(noise, certificate=dataclasses.replace(witness, **changed)).verify()


@solved
def test_a_difference_of_points_outside_the_domain_is_caught(noise):
    stretched = dataclasses.replace(noise.certificate, points=1.5 * noise.certificate.points)
    boast = dataclasses.replace(
        noise,
        covariance=FactorCovariance(noise.covariance.unit_factor, 1.5 * noise.covariance.scale),
        gamma=1.5 * noise.gamma,
        gamma_lower=stretched.lower_bound(),
        certificate=stretched,
    )
    assert boast.gap <= 1e-6
    with pytest.raises(CertificateError, match="not a measure on the sensitivity set"):
        boast.verify()


@solved
def test_a_witness_on_single_points_is_caught(noise):
    sums = gn.optimal_noise(DOMAIN, noise.p, neighbors="add-remove")
    with pytest.raises(CertificateError, match="not a measure on the sensitivity set"):
        dataclasses.replace(
            noise, certificate=sums.certificate, gamma_lower=sums.gamma_lower
        ).verify()


@solved
@pytest.mark.parametrize(
    ("field", "factor"), [("gamma_lower", 1 + 1e-5), ("gamma", 1 - 1e-9), ("gamma", math.nan)]
)
def test_a_claim_that_is_too_strong_is_caught(noise, field, factor):
    with pytest.raises(CertificateError):
        dataclasses.replace(noise, **{field: getattr(noise, field) * factor}).verify()


@solved
def test_a_smaller_norm_is_not_what_was_proved(noise):
    other = 8 if noise.p != 8 else 2
    with pytest.raises(CertificateError):
        dataclasses.replace(noise, p=other).verify()


@pytest.mark.parametrize("neighbors", ["replace", "add-remove"])
def test_closed_forms_prove_nothing_about_another_norm(neighbors):
    domain = gn.Marginals.all_kway((3, 2, 4), 2)
    noise = (
        gn.gamma(domain)
        if neighbors == "replace"
        else gn.optimal_noise(domain, neighbors=neighbors)
    )
    with pytest.raises(CertificateError):
        dataclasses.replace(noise, p=3.0).verify()


def test_generated_pairs_survive_a_file(tmp_path):
    noise = NOISE[3]
    noise.save(tmp_path / "noise.npz")
    loaded = gn.OptimalNoise.load(tmp_path / "noise.npz")
    np.testing.assert_array_equal(loaded.certificate.rows, noise.certificate.rows)
    assert (loaded.gamma, loaded.gamma_lower) == (noise.gamma, noise.gamma_lower)


def test_generated_pairs_calibrate_a_mechanism():
    mechanism = gn.GaussianMechanism(NOISE[3], gn.zCDP(0.5), n=10)
    rows = np.array(mechanism._lattice.strategy, dtype=object)
    exact = max(int(np.square(rows - row).sum(axis=1).max()) for row in rows)
    assert mechanism._lattice.query.sensitivity_squared == exact
    expected = NOISE[3].covariance.standard_deviation() / 10
    np.testing.assert_allclose(mechanism.standard_deviation, expected, rtol=1e-8)


@pytest.mark.parametrize("size", [1.0, 1e60, 1e-60])
@pytest.mark.parametrize("kind", ["normal", "heavy tails", "signs", "one far from all"])
def test_the_farthest_of_many_points_is_found_in_single_precision(kind, size):
    rng = np.random.default_rng(7)
    points = {
        "normal": rng.normal(size=(1500, 6)),
        "heavy tails": rng.standard_t(1, size=(1500, 6)),
        "signs": np.sign(rng.normal(size=(1500, 12))),
        "one far from all": np.vstack([1e-9 * rng.normal(size=(1499, 3)), [[1.0, 0, 0]]]),
    }[kind]
    brute = max(float(np.square(points - x).sum(axis=1).max()) for x in points)
    assert far_pairs(size * points).largest == pytest.approx(size**2 * brute, rel=1e-13)
    if kind == "normal":  # single precision alone is not enough
        single = points.astype(np.float32)
        alone = max(float(np.square(single - x).sum(axis=1).max()) for x in single)
        assert abs(alone / brute - 1) > 1e-10
