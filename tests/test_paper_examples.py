"""Statements of Nikolov & Tang (2023), Section 8: tensor powers of vectors of a cube, and marginal
queries.

Both sets are listed here as the paper defines them. References: exact values at small sizes, the
proofs' own bounds.
"""

import itertools
import math
from collections import Counter

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise import FiniteSet

norms = pytest.mark.parametrize("p", [2, 3, math.inf])


def powers(x, k):
    """Rows x ⊗ … ⊗ x."""
    result = np.asarray(x, dtype=float)
    for _ in range(k - 1):
        result = (result[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    return result


def cube(d, values=(-1.0, 1.0)):
    return np.array(list(itertools.product(values, repeat=d)))


@pytest.mark.paper("Theorem 64", by="listed tensors of a cube, and exact values at small sizes")
@norms
@pytest.mark.parametrize(("d", "k"), [(1, 3), (2, 2), (3, 2), (4, 2), (2, 3), (3, 3), (2, 4)])
def test_tensor_powers_of_a_cube(d, k, p):
    exponent = k / 2 + k / p
    corners, inner = powers(cube(d), k), powers(cube(d, (-1.0, -0.4, 0.0, 1.0)), k)
    inside = gn.gamma(FiniteSet(corners), p)  # the proof of the lower end uses corners alone
    listed = gn.gamma(FiniteSet(np.unique(inner, axis=0)), p) if d**k <= 9 else inside
    assert (d // k) ** exponent <= inside.gamma * (1 + 1e-9)
    assert inside.gamma_lower <= listed.gamma * (1 + 1e-9)
    assert listed.gamma_lower <= d**exponent * (1 + 1e-9)
    if k == 2:
        whole = gn.kron(gn.LpBall(d, math.inf), gn.LpBall(d, math.inf))
        assert gn.gamma(whole, p).gamma == pytest.approx(
            d**exponent, rel=1e-6
        )  # diagonal entries do not move, each pair of others is one coin told twice
        assert inside.gamma == pytest.approx(
            (d * (d - 1)) ** (1 / p) * math.sqrt(d * (d - 1) / 2), rel=1e-5
        )


@pytest.mark.paper("Theorem 64", by="the coordinate projection that its proof names")
@pytest.mark.parametrize(("d", "k"), [(2, 2), (4, 2), (3, 3)])
def test_tensor_powers_of_a_cube_project_onto_products_of_cubes(d, k):
    blocks = [range(i * (d // k), (i + 1) * (d // k)) for i in range(k)]
    kept = [np.ravel_multi_index(index, (d,) * k) for index in itertools.product(*blocks)]
    projected = np.unique(powers(cube(d), k)[:, kept], axis=0)
    product = cube(d // k)
    for _ in range(k - 1):
        product = np.array([np.kron(x, y) for x in product for y in cube(d // k)])
    assert (projected == np.unique(product, axis=0)).all()


@pytest.mark.paper(
    "Theorem 6",
    by="exact γ of listed tensors; our bound and our noise between multiples of its rate",
)
@pytest.mark.parametrize(("d", "k"), [(4, 1), (4, 2), (8, 2), (6, 3)])
def test_moment_tensors_cost_unbiased_mechanisms_their_dimension(d, k):
    # symmetric coordinates: γ_2 of the tensors, with each multiset of indices once
    multisets = list(itertools.combinations_with_replacement(range(d), k))
    counts = [
        math.factorial(k) // math.prod(map(math.factorial, Counter(m).values())) for m in multisets
    ]
    signs = cube(d)[: 2 ** (d - 1)] if k % 2 == 0 else cube(d)
    points = FiniteSet(
        np.unique(
            np.stack([signs[:, m].prod(axis=1) for m in multisets], axis=1) * np.sqrt(counts),
            axis=0,
        )
    )
    n, epsilon, delta = 10, 0.5, 1e-8
    bound = gn.lower_bound(points, gn.ApproxDP(epsilon, delta), n=n)
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(points, tol=1e-4), gn.ApproxDP(epsilon, delta), n=n
    )
    rate = (d // k) ** k / (n * epsilon)
    assert bound.at_neighbor
    assert rate / 8 <= bound.error <= mechanism.error
    assert mechanism.error <= 2 * math.sqrt(2 * math.log(1.25 / delta)) * d**k / (n * epsilon)


# Marginal queries


def sequences(d, k):
    """All queries of the paper: k indices, repeats among them, and k bits."""
    return itertools.product(
        itertools.product(range(d), repeat=k), itertools.product((0, 1), repeat=k)
    )


def answers(d, k):
    """What the queries say of every record in {0, 1}^d, shape (2^d, (2d)^k)."""
    records = cube(d, (0, 1))
    return (
        np.stack(
            [(records[:, list(i)] == np.array(b)).all(axis=1) for i, b in sequences(d, k)], axis=1
        )
        * 1.0
    )


def tables(d, k, p):
    """The same as marginals: a query that repeats indices is of fewer attributes, and is told as
    often as it occurs.
    """
    times = Counter(tuple(sorted(set(i))) for i in itertools.product(range(d), repeat=k))
    subsets = sorted(times, key=lambda subset: (len(subset), subset))
    return gn.Marginals((2,) * d, subsets, weights=[times[subset] ** (1 / p) for subset in subsets])


def ends(d, k, p):
    """The bounds of Theorem 65; at k = 1 they are one."""
    if k == 1:
        return (d ** (1 / 2 + 1 / p) * 2 ** (1 / p - 1),) * 2
    return (2 * d) ** (k / p - k / 2) * (d // k) ** k / 2**k, d ** (k / 2) * (2 * d) ** (k / p)


@pytest.mark.paper("Theorem 65", by="listed sequences with repeats")
@norms
@pytest.mark.parametrize(("d", "k"), [(1, 1), (3, 1), (2, 2), (3, 2), (4, 2), (2, 3), (3, 3)])
def test_sequences_of_indices_with_repeats(d, k, p):
    listed = answers(d, k)
    assert listed.shape == (2**d, (2 * d) ** k)
    assert (
        listed.sum(axis=1) == d**k
    ).all()  # one pattern of bits is right for every sequence of indices
    found, same = gn.gamma(FiniteSet(listed), p, tol=1e-5), gn.gamma(tables(d, k, p), p)
    assert found.gamma == pytest.approx(same.gamma, rel=2e-5)
    low, high = ends(d, k, p)
    assert low * (1 - 1e-9) <= same.gamma
    assert same.gamma_lower <= high * (1 + 1e-9)
    if k == 1:
        assert same.gamma == pytest.approx(low, rel=1e-9)


@pytest.mark.paper("Theorem 65", by="the same as weighted marginals, of more bits")
@norms
@pytest.mark.parametrize(("d", "k"), [(30, 1), (12, 2), (8, 3), (8, 4)])
def test_sequences_of_more_bits(d, k, p):
    found = gn.gamma(tables(d, k, p), p)
    low, high = ends(d, k, p)
    assert low * (1 - 1e-9) <= found.gamma_lower * (1 + 1e-6)
    assert found.gamma_lower <= high * (1 + 1e-9)
    if k > 1:
        assert 1.5 * low < found.gamma < high / 1.1


@pytest.mark.paper(
    "Theorem 65", by="the projections that its proof names, applied to listed answers"
)
def test_queries_project_onto_tensors():
    d, k = 3, 2
    centered = np.kron(
        np.eye(d), np.eye(2) - 0.5
    )  # an orthogonal projection: each pair of bits less its mean
    ordered = [
        np.ravel_multi_index([2 * x + b for x, b in zip(i, bits, strict=True)], (2 * d,) * k)
        for i, bits in sequences(d, k)
    ]
    tensors = np.empty((2**d, (2 * d) ** k))
    tensors[:, ordered] = answers(d, k)
    turned = tensors @ np.kron(centered, centered)
    kept = np.ravel_multi_index(np.indices((d,) * k).reshape(k, -1) * 2 + 1, (2 * d,) * k)
    assert turned[:, kept] == pytest.approx(powers(cube(d), k) / 2**k)


@pytest.mark.paper("Theorem 7", by="our bound and our noise between multiples of its rate")
@pytest.mark.parametrize(("d", "k"), [(4, 1), (16, 1), (8, 2), (12, 3)])
def test_marginals_cost_unbiased_mechanisms_their_dimension(d, k):
    n, epsilon, delta = 10, 0.5, 1e-8
    K, privacy = tables(d, k, 2), gn.ApproxDP(epsilon, delta)
    bound = gn.lower_bound(K, privacy, n=n)
    error = gn.optimal_noise(K).gamma / (n * math.sqrt(2 * privacy.to_zcdp().rho))
    assert bound.at_neighbor
    assert (d // k) ** k / 2**k / (n * epsilon) / 8 <= bound.error <= error
    spherical = (
        2
        * d ** (k / 2)
        * (2 * d) ** (k / 2)
        * math.sqrt(2 * math.log(1.25 / delta))
        / (n * epsilon)
    )
    assert error <= spherical
