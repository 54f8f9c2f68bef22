"""A set of a user's own, from nothing to a certified answer in a file, and a release with it.

Reference: the Euclidean ball of the package, and its images, of which the answers are known.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from cases import one_test_of

import gaussnoise as gn
from domains.description import describe, rebuild
from gaussnoise.errors import InvalidDomainError

A = np.array([[2.0, 0.5], [0.0, 1.0]])


@dataclass(frozen=True, eq=False)
class Disc(gn.domains.AbstractDomain):
    """Plane vectors no longer than a radius."""

    radius: float

    stored_as = "disc"
    dim = 2
    is_symmetric = True

    def __post_init__(self):
        if not 0 < self.radius < np.inf:
            raise InvalidDomainError("Disc: expected a finite radius > 0")

    def _support_point(self, theta):
        return self.radius * theta / (np.linalg.norm(theta) or 1.0)

    def _max_quadratic(self, form, center):
        values, axes = np.linalg.eigh(form)
        x = self.radius * axes[:, -1] * (1.0 if axes[:, -1] @ form @ center <= 0 else -1.0)
        upper = (self.radius * values[-1] ** 0.5 + (center @ form @ center) ** 0.5) ** 2
        return gn.domains.QuadraticMax(x, (x - center) @ form @ (x - center), upper)


@dataclass(frozen=True, eq=False)
class Mirrored(gn.domains.AbstractDomain):
    """A set of sets, a matrix and a tuple of numbers: what a constructor may take."""

    body: gn.domains.AbstractDomain
    mirror: np.ndarray
    signs: tuple[float, ...]

    stored_as = "mirrored"

    @property
    def dim(self):
        return self.body.dim

    def _support_point(self, theta):
        map = self.mirror * np.array(self.signs)
        return map @ self.body.support_point(map.T @ theta)

    def _max_quadratic(self, form, center):
        return ((self.mirror * np.array(self.signs)) @ self.body).max_quadratic(form, center)


def test_its_answer_is_certified_and_saved(tmp_path):
    noise = gn.optimal_noise(Disc(3.0), 2, neighbors="replace")
    assert noise.gamma == pytest.approx(
        gn.optimal_noise(gn.LpBall(2, 2, radius=3), 2, neighbors="replace").gamma
    )
    assert noise.gap < 1e-6
    noise.save(tmp_path / "disc.npz")
    again = gn.OptimalNoise.load(tmp_path / "disc.npz")  # verified against the class
    assert again.domain.radius == 3.0
    assert type(again.domain) is Disc
    np.testing.assert_array_equal(again.covariance.toarray(), noise.covariance.toarray())


@one_test_of(
    "K",
    [
        A @ Disc(2.0),
        2.0 * (A @ Disc(2.0)) + [5.0, 5.0],
        gn.hull(Disc(1.0), gn.FiniteSet([[3.0, 0.0]])),
        gn.product(Disc(1.0), gn.LpBall(2, 1)),
        Disc(1.0) + gn.LpBall(2, np.inf),
        Mirrored(gn.LpBall(2, 1), A, (1.0, -1.0)),
        Mirrored(A @ Disc(1.0), A, (1.0, -1.0)),
    ],
    ids=repr,
)
def test_sets_made_with_it_come_back(K):
    tree, arrays = describe(K)
    again = rebuild(tree, {name: array.copy() for name, array in arrays.items()})
    assert type(again) is type(K)
    for theta in np.eye(K.dim) - 0.3:
        np.testing.assert_array_equal(again.support_point(theta), K.support_point(theta))
    assert describe(again)[0] == tree


def test_it_is_released_with(tmp_path):
    rows = [[1.0, 2.0], [0.0, -3.0], [0.5, 0.5]] * 30
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(2.0))
    mechanism = gn.GaussianMechanism(gn.optimal_noise(Disc(3.0)), gn.zCDP(1.0), n=90)
    first = mechanism.release(rows, ledger=ledger, id="mean")
    again = mechanism.release(rows, ledger=ledger, id="mean")  # read back, and not charged twice
    np.testing.assert_array_equal(again.estimate, first.estimate)
    local = gn.LocalMechanism(Disc(3.0), gn.LocalDP(1.0))
    local.save(tmp_path / "local.npz")
    assert type(gn.LocalMechanism.load(tmp_path / "local.npz").domain) is Disc


def test_a_file_cannot_make_it_what_its_constructor_refuses():
    tree, arrays = describe(Disc(1.0))
    for radius in (-1.0, {"float": "inf"}, tree, [1.0]):
        forged = {"type": "disc", "fields": {"radius": radius}}
        with pytest.raises(InvalidDomainError, match="expected fields that make a Disc"):
            rebuild(forged, arrays)
    with pytest.raises(InvalidDomainError, match="the fields radius of Disc"):
        rebuild({"type": "disc", "fields": {}}, {})


class Nameless(Disc):
    """A subclass, which does not inherit the name."""


class Forgetful(Disc):
    stored_as = "forgetful"

    def __init__(self, size):
        object.__setattr__(self, "radius", size)


class Worded(Disc):
    stored_as = "worded"

    def __init__(self, unit):
        object.__setattr__(self, "unit", unit)


@one_test_of(
    ("K", "message"),
    [
        (Nameless(1.0), "files have a name for, got Nameless; hint: stored_as"),
        (A @ Nameless(1.0), "got Nameless"),
        (Forgetful(1.0), "Forgetful: expected every argument .* got no 'size'"),
        (Worded("cm"), "expected arrays of doubles, numbers, tuples and domains, got str"),
        (Worded(np.arange(2)), "got ndarray"),
        (Worded([1.0]), "got list"),
    ],
)
def test_what_files_cannot_hold_is_refused_with_what_is_missing(K, message):
    with pytest.raises(InvalidDomainError, match=message):
        describe(K)


def test_the_same_module_may_define_it_again():
    def defined():
        @dataclass(frozen=True, eq=False, slots=True)
        class Again(Disc):
            stored_as = "disc again"

        return Again

    first, second = defined(), defined()
    assert type(rebuild(*describe(first(1.0)))) is second
