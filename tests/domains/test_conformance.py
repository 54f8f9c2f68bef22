"""The laws every domain obeys, on every case of ``cases.py``."""

import dataclasses
import functools
import importlib
import inspect
import itertools
import pkgutil

import numpy as np
import pytest
from cases import CASES, one_test_of
from scipy.sparse import coo_array, csr_array

import domains
from domains import AbstractDomain, DimensionError, InvalidDomainError
from domains.participation.patterns import AbstractPatterns


def directions(dim):
    rng = np.random.default_rng(2)
    return [*rng.normal(size=(12, dim)), *np.eye(dim), *-np.eye(dim), np.zeros(dim), np.ones(dim)]


def forms(dim):
    rng = np.random.default_rng(3)
    full, thin = rng.normal(size=(dim, dim)), rng.normal(size=(dim, 1))
    return [
        full @ full.T,
        thin @ thin.T,
        np.eye(dim),
        np.zeros((dim, dim)),
        1e200 * np.eye(dim),
        1e-200 * np.eye(dim),
    ]


def quadratic(points, H, center):
    return np.array([(x - center) @ H @ (x - center) for x in points])


def test_every_concrete_domain_has_a_case(cases):
    modules = [
        importlib.import_module(found.name)
        for found in pkgutil.walk_packages(domains.__path__, "domains.")
    ]
    known = [
        *vars(domains).values(),
        *(value for module in modules for value in vars(module).values()),
    ]
    concrete = {
        c
        for c in known
        if inspect.isclass(c) and issubclass(c, AbstractDomain) and not inspect.isabstract(c)
    }
    assert len(concrete) > 15
    assert {
        type(case.domain) for case in cases if type(case.domain).__module__.startswith("domains.")
    } == concrete


@one_test_of("case", CASES)
def test_reference_points_are_members(case):
    assert case.points.shape[1] == case.domain.dim
    assert all(case.domain.contains(x) for x in case.points)


@one_test_of("case", CASES)
def test_support_point_is_a_member_that_attains_the_support(case):
    for theta in directions(case.domain.dim):
        point = case.domain.support_point(theta)
        assert case.domain.contains(point)
        assert theta @ point == pytest.approx(case.support(theta), rel=1e-12, abs=1e-12)
        assert case.domain.support(theta) == theta @ point


@one_test_of("case", CASES)
def test_support_dominates_every_member(case):
    for theta in directions(case.domain.dim):
        assert case.domain.support(theta) >= (case.points @ theta).max() - 1e-12


@one_test_of("case", CASES)
@one_test_of("factor", [0.0, 1e-100, 0.5, 3.0, 1e100])
def test_support_is_positively_homogeneous(case, factor):
    for theta in directions(case.domain.dim):
        expected = factor * case.domain.support(theta)
        assert case.domain.support(factor * theta) == pytest.approx(
            expected, rel=1e-12, abs=1e-12 * factor
        )


@one_test_of("case", CASES)
def test_support_is_subadditive(case):
    h = case.domain.support
    listed = directions(case.domain.dim)
    for a, b in itertools.pairwise(listed):
        assert h(a + b) <= h(a) + h(b) + 1e-12


@one_test_of("case", CASES)
@pytest.mark.paper("Definition 29", by="brute force over members of every domain")
def test_quadratic_maximum_brackets_brute_force(case):
    dim = case.domain.dim
    centers = np.zeros(dim), case.points.mean(axis=0), np.full(dim, -7.0)
    for k, H in enumerate(forms(dim)):
        for center in (
            centers if k == 0 else [centers[k % 3], centers[(k + 1) % 3]][: 2 if k < 3 else 1]
        ):
            found = case.domain.max_quadratic(H, center)
            best = quadratic(case.points, H, center).max()
            slack = 1e-12 * np.abs(H).max() * (1 + np.abs(case.points).max() + 7) ** 2 * dim**2
            assert found.value <= found.upper_bound
            assert found.upper_bound >= best - slack
            assert case.domain.contains(found.maximizer)
            assert quadratic([found.maximizer], H, center)[0] == pytest.approx(
                found.value, rel=1e-9, abs=slack
            )
            if case.closed_form is None:  # then the points are all of K
                assert found.value <= best + slack


@one_test_of("case", CASES)
def test_quadratic_forms_of_any_size_are_bracketed_or_refused(case):
    """Entries are up to 1e308 apart, from the smallest double to the largest, and centers far."""
    dim = case.domain.dim
    for low, high in ((1e-308, 1.0), (1.0, 1e308), (1e-323, 1e-310), (1.7e308, 1.7e308)):
        H = np.diag(np.where(np.arange(dim) % 2, low, high))
        for center in (np.zeros(dim), np.full(dim, 1e3), np.full(dim, 1e160)):
            found, refusal = bracket_or_refusal(case.domain, H, center)
            if found is None:
                assert "exceeds the largest double" in refusal
                assert high > 1 or center[0] == 1e160
                continue
            assert center[0] < 1e160
            best = quadratic(case.points, H / high, center).max() * high
            assert found.value <= found.upper_bound < np.inf
            assert found.upper_bound >= best * (1 - 1e-9)


def bracket_or_refusal(domain, H, center):
    try:
        return domain.max_quadratic(H, center), ""
    except InvalidDomainError as error:
        return None, str(error)


@one_test_of("case", CASES)
def test_finite_quadratic_maximum_is_exact(case):
    if not isinstance(case.domain, domains.AbstractFiniteDomain):
        pytest.skip("only finite domains guarantee exactness")
    for H in forms(case.domain.dim):
        found = case.domain.max_quadratic(H)
        assert found.value == found.upper_bound
        assert found.value == pytest.approx(
            quadratic(case.points, H, np.zeros(case.domain.dim)).max(), rel=1e-9
        )


@one_test_of("case", CASES)
def test_arguments_that_are_no_arrays_of_numbers_are_typed_errors(case):
    K, vector = case.domain, coo_array(np.ones((1, case.domain.dim)))
    asked = {
        "support": lambda: K.support(vector),
        "support_point": lambda: K.support_point(vector),
        "contains": lambda: K.contains(vector),
        "max_quadratic": lambda: K.max_quadratic(csr_array(np.eye(K.dim))),
    }
    for door, ask in asked.items():
        with pytest.raises(
            domains.InvalidDomainError, match=rf"^{door}: expected .*got .*; hint: .toarray\(\)$"
        ):
            ask()
    with pytest.raises(
        domains.InvalidDomainError, match=r"max_quadratic: expected center .*got coo_array; hint"
    ):
        K.max_quadratic(np.eye(K.dim), vector)
    with pytest.raises(domains.InvalidDomainError, match=r"^support: expected theta .*got ragged"):
        K.support([[1.0], [2.0, 3.0]])


@one_test_of("case", CASES)
def test_center_defaults_to_the_origin(case):
    H = forms(case.domain.dim)[0]
    zero = np.zeros(case.domain.dim)
    assert case.domain.max_quadratic(H).value == case.domain.max_quadratic(H, zero).value


@one_test_of("case", CASES)
def test_is_symmetric_agrees_with_brute_force(case):
    if case.closed_form:
        mirrored = all(
            case.support(t) == pytest.approx(case.support(-t), abs=1e-9)
            for t in directions(case.domain.dim)
        )
        # a body may be symmetric without knowing it, never the reverse
        assert mirrored or not case.domain.is_symmetric
        assert case.domain.is_symmetric or not mirrored or case.may_not_know
        return
    members = {tuple(x + 0.0) for x in case.points}
    assert case.domain.is_symmetric == (members == {tuple(-x + 0.0) for x in case.points})


@one_test_of("case", CASES)
def test_contains_refuses_points_outside(case):
    far = 3 * np.abs(case.points).max() + 1
    for theta in directions(case.domain.dim)[:12]:
        outside = case.domain.support_point(theta) + far * theta / np.abs(theta).max()
        assert not case.domain.contains(outside)


@one_test_of("case", CASES)
def test_finite_membership_is_exact(case):
    if not isinstance(case.domain, domains.AbstractFiniteDomain):
        pytest.skip("only finite domains list their members")
    members = {tuple(x) for x in case.points}
    nudged = np.nextafter(case.points[0], np.inf)
    assert case.domain.contains(nudged) == (tuple(nudged) in members)
    middle = case.points.mean(axis=0)
    assert case.domain.contains(middle) == (tuple(middle) in members)


@one_test_of("case", CASES)
def test_to_finite_set_lists_the_same_points(case):
    if not isinstance(case.domain, domains.AbstractFiniteDomain):
        pytest.skip("only finite domains list their members")
    listed = case.domain.to_finite_set()
    assert listed.cardinality == case.domain.cardinality == len(case.points)
    np.testing.assert_array_equal(listed.points, case.points)


@one_test_of("case", CASES)
def test_fields_are_frozen_and_arrays_read_only(case):
    if not dataclasses.is_dataclass(case.domain):
        pytest.skip("a user's own domain may be any class")
    for field in dataclasses.fields(case.domain):
        value = getattr(case.domain, field.name)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(case.domain, field.name, value)
        assert (
            isinstance(value, tuple | int | float | AbstractDomain | AbstractPatterns)
            or not value.flags.writeable
        )


@one_test_of("case", CASES)
def test_answers_are_copies_and_arguments_are_left_alone(case):
    theta = directions(case.domain.dim)[0]
    H = forms(case.domain.dim)[0]
    kept = theta.copy(), H.copy()
    before = case.domain.support(theta)
    case.domain.support_point(theta)[:] = 1e9
    case.domain.max_quadratic(H, theta).maximizer[:] = 1e9
    assert case.domain.support(theta) == before
    np.testing.assert_array_equal(theta, kept[0])
    np.testing.assert_array_equal(H, kept[1])


@one_test_of("case", CASES)
def test_the_algebra_agrees_with_supports(case):
    K, dim = case.domain, case.domain.dim
    A = np.random.default_rng(4).normal(size=(2, dim))
    v = np.linspace(-1.0, 2.0, dim)
    close = functools.partial(pytest.approx, rel=1e-9, abs=1e-9)
    moved, moved_too, back, three, three_too = K + v, v + K, K - v, 3 * K, K * 3
    negative, nothing, twice, itself = -K, 0 * K, K + K, K - K
    hull, product = domains.hull(K, 2 * K), domains.product(K, K)
    kron = domains.kron(K, [[2.0]] @ domains.LpBall(1, 2))
    for theta in [*directions(dim)[:2], *directions(dim)[12::5], *directions(dim)[-2:]]:
        h, opposite = case.support(theta), case.support(-theta)
        assert moved.support(theta) == moved_too.support(theta) == close(h + v @ theta)
        assert back.support(theta) == close(h - v @ theta)
        assert three.support(theta) == three_too.support(theta) == close(3 * h)
        assert negative.support(theta) == close(opposite)
        assert nothing.support(theta) == 0
        assert twice.support(theta) == close(2 * h)
        assert itself.support(theta) == close(h + opposite)
        assert hull.support(theta) == close(max(h, 2 * h))
        assert product.support(np.concatenate([theta, -theta])) == close(h + opposite)
        assert kron.support(theta) == close(2 * max(h, opposite))
    image = A @ K
    for theta in directions(2):
        assert image.support(theta) == close(case.support(theta @ A))


@one_test_of("case", CASES)
def test_algebra_is_validated(case):
    K, dim = case.domain, case.domain.dim
    for wrong in (
        lambda: np.ones((2, dim + 1)) @ K,
        lambda: K + np.ones(dim + 1),
        lambda: K + domains.LpBall(dim + 1, 2),
    ):
        with pytest.raises(DimensionError, match=r"expected .* got"):
            wrong()
    with pytest.raises(InvalidDomainError, match="NaN or infinity"):
        K + np.full(dim, np.nan)
    with pytest.raises(InvalidDomainError, match="a number"):
        K * np.ones(2)


@one_test_of("case", CASES)
@one_test_of("method", ["support_point", "support", "contains"])
def test_vector_arguments_are_validated(case, method):
    call = getattr(case.domain, method)
    dim = case.domain.dim
    for wrong in (np.ones(dim + 1), np.ones((dim, 1)), 1.0, []):
        with pytest.raises(
            DimensionError, match=rf"{method}: expected \w+ of shape \({dim},\), got"
        ):
            call(wrong)
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(InvalidDomainError, match="NaN or infinity"):
            call(np.full(dim, bad))


@one_test_of("case", CASES)
def test_quadratic_arguments_are_validated(case):
    dim = case.domain.dim
    good = np.eye(dim)
    with pytest.raises(DimensionError, match="expected H of shape"):
        case.domain.max_quadratic(np.eye(dim + 1))
    with pytest.raises(DimensionError, match="expected center of shape"):
        case.domain.max_quadratic(good, np.zeros(dim + 1))
    with pytest.raises(InvalidDomainError, match="NaN or infinity"):
        case.domain.max_quadratic(good, np.full(dim, np.nan))
    with pytest.raises(InvalidDomainError, match="NaN or infinity"):
        case.domain.max_quadratic(np.full((dim, dim), np.nan))
    with pytest.raises(InvalidDomainError, match="positive semidefinite"):
        case.domain.max_quadratic(-good)


@one_test_of("case", CASES)
def test_quadratic_form_must_be_symmetric(case):
    if case.domain.dim == 1:
        pytest.skip("a 1 × 1 matrix is symmetric")
    lopsided = np.eye(case.domain.dim)
    lopsided[0, 1] = 0.5
    with pytest.raises(InvalidDomainError, match="symmetric"):
        case.domain.max_quadratic(lopsided)
