"""Banded strategies and Markov chains on a person's ticks: brute force, derivatives, references."""

import dataclasses
import functools
import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest
import scipy

import gaussnoise as gn
from domains.participation.participations import CountParticipations, VectorParticipations
from domains.participation.sensitivity import _common_factor, _path_bound, _total_bound, form_bound
from gaussnoise.errors import CertificateError, ConvergenceWarning
from gaussnoise.noise import participations, solve
from gaussnoise.noise.bodies import body_noise, with_factor
from gaussnoise.noise.certificates.chains import ChainCertificate
from gaussnoise.noise.covariance import FactorCovariance
from gaussnoise.noise.participations import (
    _searched,
    _with_lower_end,
    apart_noise,
    with_chain,
)
from gaussnoise.noise.problem import Problem
from gaussnoise.solvers.progress import watching
from gaussnoise.solvers.streams import banded_strategy as bands
from gaussnoise.solvers.streams import chains
from gaussnoise.solvers.streams import total_strategy as total
from gaussnoise.solvers.streams.chains import Chain, best_chain
from gaussnoise.solvers.streams.path_bound import PathBound
from gaussnoise.solvers.streams.total_bound import TotalBound
from gaussnoise.solvers.streams.total_strategy import _Search, total_strategy
from gaussnoise.solvers.streams.wide_strategy import _Wide

Apart = gn.streams.Apart


def prefix_sums(n):
    return np.tril(np.ones((n, n)))


def bracket(who, p=2.0, tol=0.02) -> Any:
    """Return a new answer, where what it is found by is changed for a test."""
    K = gn.streams.participations(prefix_sums(who.n), who)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return gn.optimal_noise(K, p, neighbors="add-remove", tol=tol)


known = functools.cache(bracket)


def all_sets(who):
    for m in range(1, who.k + 1):
        yield from (t for t in itertools.combinations(range(who.n), m) if who.allows(t))


def some_chain(n, k, b):
    rng = np.random.default_rng(n)
    K = np.triu(rng.uniform(size=(n, n)), b)
    c = rng.normal(size=(n, 3))
    c /= np.maximum(np.linalg.norm(c, axis=1, keepdims=True), 1.0) * (1 + 1e-15)
    return Chain(rng.uniform(size=(k, n)), K / K.sum(axis=1).max(), c)


def probabilities(chain, who):
    """Return all sets with their probabilities, one by one."""
    weights = {}
    for ticks in all_sets(who):
        steps = [chain.steps[i, j] for i, j in itertools.pairwise(ticks)]
        weights[ticks] = chain.start[who.k - len(ticks), ticks[0]] * math.prod(steps)
    total = sum(weights.values())
    return {ticks: weight / total for ticks, weight in weights.items()}


def test_the_second_moment_of_a_chain_is_the_sum_over_all_sets():
    who = Apart(11, 3, 3)
    chain = some_chain(who.n, who.k, who.b)
    C = chain.alike @ chain.alike.T
    np.fill_diagonal(C, 1.0)
    expected = np.zeros((who.n, who.n))
    for ticks, share in probabilities(chain, who).items():
        expected[np.ix_(ticks, ticks)] += share * C[np.ix_(ticks, ticks)]
    np.testing.assert_allclose(chain.second_moment(), expected, rtol=1e-12, atol=1e-15)


def test_the_lower_end_of_a_chain_is_below_the_exact_one_of_its_sets():
    who = Apart(11, 3, 3)
    chain, A = some_chain(who.n, who.k, who.b), prefix_sums(who.n)
    certificate = ChainCertificate(VectorParticipations(A, who), chain, np.ones(who.n))
    exact = np.sqrt(np.linalg.eigvalsh(A @ chain.second_moment() @ A.T)).sum()
    lower, rounding = certificate.below()
    assert exact * (1 - 1e-8) < lower <= exact * (1 + 1e-14)
    assert rounding < 1e-9
    assert certificate.spectrum()[0].sum() == pytest.approx(exact, rel=1e-8)


def largest_error(value, x):
    _, gradient = value(x)
    steps = 1e-6 * np.eye(len(x))
    return max(
        abs((value(x + e)[0] - value(x - e)[0]) / 2e-6 - slope)
        for e, slope in zip(steps, gradient, strict=True)
    )


@pytest.mark.parametrize("p", [2, 3, np.inf])
@pytest.mark.parametrize("rank", [0, 1, 10])
def test_derivatives_of_a_chain_agree_with_differences(p, rank):
    A = np.tril(np.random.default_rng(0).uniform(0.5, 1.5, (9, 9)))
    search = chains._Search(A, 3, 3, p, rank)
    x = search.first()
    assert largest_error(search.value, x + np.random.default_rng(1).normal(size=x.size) / 5) < 1e-7


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_derivatives_of_a_band_agree_with_differences(power):
    band = bands.Band(np.tril(np.random.default_rng(0).uniform(0.5, 1.5, (11, 11))), 2, 4)
    x = band.start()
    x = x + np.random.default_rng(1).normal(size=x.size) / 10
    assert largest_error(lambda y: band.value(y, power), x) < 1e-7


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("who", [Apart(9, 2, 3), Apart(11, 4, 2), Apart(9, 3, 4)], ids=repr)
def test_derivatives_without_a_band_agree_with_differences(who, signed):
    rng = np.random.default_rng(0)
    A = np.tril(rng.uniform(0.5, 1.5, (who.n, who.n)))
    wide = _Wide(A, who.most, who.b, signed=signed)
    C = bands.banded_strategy(A, who.most, who.b, 2.0)
    x = C[wide.band.places]
    x = x + rng.normal(size=x.size) / 10
    assert largest_error(lambda y: wide.value(y, 1.5, 20.0), x) < 1e-7


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_derivatives_with_a_total_agree_with_differences(power):
    rng = np.random.default_rng(0)
    A = np.tril(rng.uniform(0.5, 1.5, (11, 11)))
    search = _Search(A, 3, 3)
    C = bands.banded_strategy(A, 3, 3, 2.0)
    x = np.concatenate([C[search.band.places], rng.uniform(-0.2, 0.2, 11)])
    x = x + rng.normal(size=x.size) / 20
    assert largest_error(lambda y: search.value(y, power, 20.0), x) < 1e-7


def largest_sum(X, who):
    """The largest sum of entries of X over the ticks of one person, by listing all sets."""
    return max(X[np.ix_(t, t)].sum() for t in all_sets(who))


def any_form(who, rng):
    """A symmetric X without negative entries, some of them much larger than others."""
    X = rng.exponential(size=(who.n, who.n)) ** 2
    return X + X.T


def total_beside(who, rng):
    """Return d, v and X of a strategy with orthogonal columns of one person, and of a total."""
    d, v = rng.uniform(0.5, 1.5, who.n), rng.uniform(0, 0.5, who.n)
    return d, v, np.diag(d) + np.outer(v, v)


@pytest.mark.parametrize("who", [Apart(12, 3, 3), Apart(13, 5, 2), Apart(9, 9, 1)], ids=repr)
def test_the_bound_for_a_total_is_above_every_set_and_exact_for_orthogonal_columns(who):
    rng = np.random.default_rng(who.n)
    for _ in range(5):
        # entries below zero are counted as zero: the whole X need not be positive semidefinite
        X = any_form(who, rng)
        most = largest_sum(X, who)
        assert _total_bound(who, X.diagonal(), np.where(who.meet(), X, 0.0)) >= most * (1 - 1e-12)
        d, v, X = total_beside(who, rng)
        most = largest_sum(X, who)
        proven = _total_bound(who, X.diagonal(), np.where(who.meet(), X, 0.0))
        # a chord of a 256th of the range is at most its 2^-18th part above the square
        assert most * (1 - 1e-12) <= proven <= most * (1 + 2.0**-17)
        smooth, by_norm, _ = TotalBound(who.n, who.most, who.b).bound(d / most, v / most**0.5, 1e5)
        assert 1 <= smooth < 1 + 3e-4  # chords of a 48th add 1.1e-4, and smoothing log(sets)/1e5
        assert by_norm.sum() <= who.most + 1e-9


def test_the_bound_for_a_total_without_what_the_total_leaves_is_too_small():
    who, rng = Apart(12, 3, 3), np.random.default_rng(2)
    X = total_beside(who, rng)[2]
    X[0, 6] = X[6, 0] = 0.6  # far from any product v_i v_j
    most = largest_sum(X, who)
    between = np.where(who.meet(), X, 0.0)
    v = _common_factor(who, between)
    alone = np.where(who.meet(), np.outer(v, v), 0.0)
    assert _total_bound(who, X.diagonal(), alone) < most <= _total_bound(who, X.diagonal(), between)


@pytest.mark.parametrize("who", [Apart(12, 3, 3), Apart(13, 5, 2), Apart(9, 9, 1)], ids=repr)
def test_the_bound_along_a_path_is_above_every_set_and_exact_where_only_neighbors_meet(who):
    rng = np.random.default_rng(who.n)
    for _ in range(5):
        X = any_form(who, rng)
        most = largest_sum(X, who)
        between = np.where(who.meet(), X, 0.0)
        assert _path_bound(who, X.diagonal(), between) >= most * (1 - 1e-12)
        ticks = np.arange(who.n)
        X[np.abs(ticks - ticks[:, None]) >= 2 * who.b] = 0.0
        most = largest_sum(X, who)
        between = np.where(who.meet(), X, 0.0)
        assert _path_bound(who, X.diagonal(), between) == pytest.approx(most, rel=1e-12)


def test_the_smoothed_bound_tends_to_the_proven_one_from_above():
    who, rng = Apart(14, 4, 3), np.random.default_rng(0)
    C = np.tril(rng.normal(size=(14, 14)))
    X = C.T @ C / 14
    proven = _path_bound(who, X.diagonal(), np.where(who.meet(), np.abs(X), 0.0))
    smooth, _ = PathBound(14, who.most, who.b, signed=True).bound(X, 1e4)
    assert proven <= smooth < proven * (1 + 1e-3)


@pytest.mark.parametrize("kind", ["counts", "vectors"])
@pytest.mark.parametrize("p", [2.0, 4.0, np.inf])
def test_random_workloads_are_covered_by_brute_force_and_have_two_ends(kind, p, monkeypatch):
    monkeypatch.setattr(Apart, "lists_few", False)
    who, rng = Apart(12, 3, 3, kind=kind), np.random.default_rng(19)
    for A in (rng.uniform(0.2, 1.5, (12, 12)), rng.normal(size=(12, 12)) + 2 * np.eye(12)):
        K = gn.streams.participations(np.tril(A), who)
        noise = apart_noise(Problem(K, p, "add-remove"), K, who, 1e-9)
        assert noise.gap < 0.15
        X = K.matrix.T @ np.linalg.solve(noise.covariance.toarray(), K.matrix)
        X = np.abs(X) if kind == "vectors" else X
        longest = largest_sum(X, who)
        assert 0.98 < longest <= 1 + 1e-12


def test_the_bound_along_a_path_without_its_charges_is_too_small():
    who, rng = Apart(12, 4, 2), np.random.default_rng(0)
    X = rng.exponential(size=(12, 12))
    X = X + X.T
    most = largest_sum(X, who)
    between = np.where(who.meet(), X, 0.0)
    near = np.triu(np.tril(between, 2 * who.b - 1), 1 - 2 * who.b)
    assert _path_bound(who, X.diagonal(), near) < most <= _path_bound(who, X.diagonal(), between)


@pytest.mark.parametrize("who", [Apart(9, 2, 3), Apart(10, 3, 3), Apart(9, 3, 4)], ids=repr)
def test_windows_and_one_total_describe_the_hull_of_all_sets(who):
    # the linear programme over intervals has the same maximum as the sets
    windows = [(np.arange(who.n) >= i) & (np.arange(who.n) < i + who.b) for i in range(who.n)]
    rows = np.vstack([np.ones(who.n), *windows])
    limits = np.array([who.k, *[1] * who.n])
    rng = np.random.default_rng(3)
    for _ in range(10):
        gains = rng.uniform(size=who.n)
        found = scipy.optimize.linprog(-gains, A_ub=rows, b_ub=limits)
        assert -found.fun == pytest.approx(max(gains[list(t)].sum() for t in all_sets(who)))


def test_no_banded_matrix_is_better():
    """The benchmark of streams has 128 ticks as well."""
    noise = known(Apart(64, 4, 8))
    assert "banded" in noise.method
    assert noise.gamma < 41.93 + 0.005
    assert noise.gap < 0.017
    checked = noise.verify()
    assert checked.enclosure <= 1
    assert checked.gamma_lower >= noise.gamma_lower * (1 - 1e-6)


def end_of(strategy, A, who):
    """Return the proven error of a strategy matrix."""
    longest = form_bound(who, np.abs(strategy.T @ strategy))
    return np.linalg.norm(np.linalg.solve(strategy.T, A.T)) * math.sqrt(longest)


def test_a_total_beside_a_band_leaves_a_seventh_of_the_gap_of_a_band():
    A, who = prefix_sums(32), Apart(32, 8, 2)
    C = bands.banded_strategy(A, 8, 2, 2.0)
    D = total_strategy(C, A, 8, 2, 2.0)
    assert np.abs(np.triu(D, 1)).max() == 0
    chain, _ = best_chain(A, 8, 2, 2.0, vectors=True)
    lower = np.sqrt(np.linalg.eigvalsh(A @ chain.second_moment() @ A.T)).sum()
    assert lower > 47.6  # with correlations that may change, steps end at 47.51
    # 0.3 and 2.5 %; a strategy without a band leaves 0.65 %
    assert end_of(D, A, who) / lower - 1 < 0.0035 < 0.024 < end_of(C, A, who) / lower - 1


def test_many_ticks_start_from_the_total_of_fewer(monkeypatch):
    A, who = prefix_sums(64), Apart(64, 8, 4)
    C = bands.banded_strategy(A, 8, 4, 2.0)
    monkeypatch.setattr(total, "_FEW", 32)
    monkeypatch.setattr(total, "_LAST", ())
    # without a step, 0.4 % below the banded strategy, of which steps take another 0.9 %
    assert end_of(total_strategy(C, A, 8, 4, 2.0), A, who) < 0.997 * end_of(C, A, who)


def test_more_ticks_than_48_need_no_column_generation(monkeypatch):
    def refused(*_):
        raise AssertionError

    monkeypatch.setattr(participations, "_searched", refused)
    monkeypatch.setattr(solve, "body_noise", refused)
    found = bracket(Apart(64, 4, 8), tol=1e-6)
    assert 41.3 < found.gamma_lower < found.gamma < 41.48
    assert found.status is gn.results.Status.PARTICIPATIONS
    counts = bracket(Apart(64, 4, 8, kind="counts"), tol=1e-6)
    assert counts.gamma <= found.gamma * (1 + 1e-3)


@pytest.mark.parametrize("kind", ["counts", "vectors"])
@pytest.mark.parametrize("p", [2, np.inf])
def test_the_bracket_contains_the_exact_optimum(kind, p, monkeypatch):
    who = Apart(12, 3, 4, kind=kind)
    exact = gn.optimal_noise(
        gn.streams.participations(prefix_sums(12), who), p, neighbors="add-remove"
    )
    assert exact.gap < 1e-5
    monkeypatch.setattr(Apart, "lists_few", False)
    monkeypatch.setattr(CountParticipations, "_points", None)
    found = bracket(who, p)
    assert found.gamma_lower <= exact.gamma
    assert exact.gamma_lower <= found.gamma < 1.1 * exact.gamma
    assert found.verify().enclosure <= 1


@pytest.mark.parametrize(
    ("who", "searched"),
    [
        (Apart(52, 4, 2), (42.5871, 45.0691)),
        (Apart(64, 5, 12, kind="counts"), (39.6134, 56.2413)),
        (Apart(60, 6, 10, kind="counts"), (41.1825, 60.2752)),
        (Apart(48, 6, 8), (38.9712, 39.1960)),
    ],
    ids=repr,
)
def test_neither_end_is_worse_than_with_column_generation_alone(who, searched):
    found = bracket(who, tol=1e-3)
    lower, upper = searched
    assert found.gamma_lower > lower - 1e-3
    assert found.gamma < upper + 1e-3


@pytest.mark.parametrize("kind", ["counts", "vectors"])
def test_either_noise_goes_with_the_lower_end_of_the_other(kind, monkeypatch):
    # as where sets cannot be listed: exact sensitivities are below those of the mixed answers
    monkeypatch.setattr(Apart, "lists_few", False)
    monkeypatch.setattr(CountParticipations, "_points", None)
    who = Apart(24, 5, 4, kind=kind)
    K = gn.streams.participations(prefix_sums(24), who)
    problem = Problem(K, 2.0, "add-remove")
    banded = apart_noise(problem, K, who, 1e-3)
    with watching(False, 1e-3) as watch:
        if kind == "counts":
            searched = body_noise("optimal_noise", problem, 1e-3, "auto", watch)
            first = with_chain(searched, banded, K, 1e-3)
            second = with_factor(searched, banded.covariance.factor(), 1e-3, "banded")
        else:
            assert isinstance(K, VectorParticipations)
            searched = _searched(problem, K, 1e-3, watch)
            first = _with_lower_end(searched, banded, 1e-3)
            second = _with_lower_end(banded, searched, 1e-3)
    for found, upper, lower in ((first, searched, banded), (second, banded, searched)):
        assert upper.gamma * (1 - 1e-4) < found.gamma < upper.gamma * (1 + 1e-6)
        assert found.gamma_lower == lower.gamma_lower
        checked = found.verify()
        assert checked.enclosure <= 1
        assert checked.gamma_lower >= found.gamma_lower * (1 - 1e-6)


def test_numbers_need_no_more_noise_than_vectors():
    counts, vectors = (bracket(Apart(60, 6, 10, kind=kind)) for kind in ("counts", "vectors"))
    assert counts.gamma <= vectors.gamma * (1 + 1e-9) < 45.01
    assert counts.gamma_lower <= vectors.gamma_lower
    assert vectors.gap < 0.007


def test_numbers_need_no_more_noise_than_vectors_whose_sets_are_listed():
    counts = bracket(Apart(96, 3, 24, kind="counts"), tol=1e-3)
    assert counts.gamma < 40.87  # the upper end for vectors
    assert 40.5 < counts.gamma_lower


def test_answers_with_a_chain_are_stored_bit_for_bit(tmp_path):
    noise = known(Apart(64, 4, 8, kind="counts"))
    noise.save(tmp_path / "noise.npz")
    again = gn.OptimalNoise.load(tmp_path / "noise.npz")
    assert isinstance(again.certificate, ChainCertificate)
    assert (again.gamma, again.gamma_lower) == (noise.gamma, noise.gamma_lower)
    assert again.certificate.lower_bound() == noise.certificate.lower_bound()


def damaged(noise, **changes):
    chain = dataclasses.replace(noise.certificate.chain, **changes)
    return dataclasses.replace(
        noise, certificate=dataclasses.replace(noise.certificate, chain=chain)
    )


def test_damaged_chains_are_refused():
    noise = known(Apart(64, 4, 8))
    chain = noise.certificate.chain
    near = chain.steps.copy()
    near[0, 7] = 1e-9  # less than 8 ticks apart
    for changes in (
        {"steps": near},
        {"steps": -chain.steps},
        {"steps": 2 * chain.steps},
        {"steps": np.where(chain.steps > 0, np.nan, 0.0)},
        {"start": np.vstack([chain.start, chain.start[:1]])},  # five ticks
        {"start": 2 * chain.start},
        {"start": 0 * chain.start},
        {"start": chain.start[:, :-1]},
        {"alike": 2 * chain.alike},
        {"alike": chain.alike[:-1]},
    ):
        with pytest.raises(CertificateError, match="no measure"):
            damaged(noise, **changes).verify()
    for field, value in (
        ("coordinate_weights", 1.1 * noise.certificate.coordinate_weights),
        ("domain", VectorParticipations(prefix_sums(64), Apart(64, 3, 8))),
    ):
        certificate = dataclasses.replace(noise.certificate, **{field: value})
        with pytest.raises(CertificateError):
            dataclasses.replace(noise, certificate=certificate).verify()
    with pytest.raises(CertificateError, match="gamma_lower"):
        dataclasses.replace(noise, gamma_lower=noise.gamma_lower * (1 + 1e-7)).verify()


def test_correlations_below_one_prove_nothing_about_numbers():
    noise = known(Apart(64, 4, 8, kind="counts"))
    with pytest.raises(CertificateError, match="no measure"):
        damaged(noise, alike=0.9 * noise.certificate.chain.alike).verify()


def test_too_little_noise_is_refused():
    noise = known(Apart(64, 4, 8))
    M = noise.covariance
    for share in (0.5, 1 - 1e-7):
        less = FactorCovariance(M.unit_factor, share * M.scale)
        with pytest.raises(CertificateError, match="too little noise"):
            dataclasses.replace(noise, covariance=less).verify()


def test_chains_of_many_ticks_start_from_every_second_one(monkeypatch):
    A, sizes = prefix_sums(64), []
    value = chains._Search.value

    def seen(self, x):
        sizes.append(len(self.A))
        return value(self, x)

    monkeypatch.setattr(chains, "_MOST", 4 * 32**2)
    monkeypatch.setattr(chains._Search, "value", seen)
    chain, _ = best_chain(A, 4, 8, 2, vectors=True)
    assert sizes[0] == 32
    worth = np.sqrt(np.linalg.eigvalsh(A @ chain.second_moment() @ A.T)).sum()
    assert worth > 41.2
