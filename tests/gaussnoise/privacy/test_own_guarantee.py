"""A privacy guarantee that is defined outside of the library works in every part of it."""

import json
import math
import pickle
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.cli.app import app
from gaussnoise.errors import NotAvailableError, OutputError, ParameterError
from gaussnoise.numerics.rounding import rounded_down
from gaussnoise.privacy import (
    AbstractPrivacy,
    implied,
    most_posterior,
    most_power,
    total_variation,
)


@dataclass(frozen=True)
class RenyiDP(AbstractPrivacy):
    """(α, ε)-Rényi differential privacy: ``D_α <= ε`` between neighbours (Mironov 2017).

    Discrete Gaussian noise of ρ has ``D_α <= αρ`` exactly.
    """

    alpha: float
    eps: float

    def __post_init__(self):
        if not (self.alpha > 1 and 0 < self.eps < 700):
            raise ParameterError(f"RenyiDP: expected alpha > 1 and 0 < eps < 700, got {self}")

    def to_zcdp(self, draws=1, steps=2.0**28):
        return gn.zCDP(rounded_down(Fraction(self.eps) / Fraction(self.alpha)))

    def implies(self, delta):
        epsilon = self.eps + math.log(1 / delta) / (self.alpha - 1)  # Mironov, Proposition 3
        return [gn.KL(self.eps), gn.ApproxDP(epsilon * (1 + 1e-15), delta)]  # KL is of order one

    def chi_squared(self):
        if self.alpha < 2:
            return None
        because = "Hammersley–Chapman–Robins with χ² <= e^ε − 1, as divergences grow with α"
        return math.expm1(self.eps), because


@dataclass(frozen=True)
class BoundedRange(AbstractPrivacy):
    """η-bounded range (Durfee & Rogers 2019): log odds of any two outputs differ by at most η."""

    noise = "laplace"
    eta: float

    def to_epsilon(self):
        return self.eta / 2

    def implies(self, delta):
        return [gn.PureDP(self.eta), gn.zCDP(self.eta**2 / 8)]  # Cesar & Rogers 2021


@dataclass(frozen=True)
class Curve(AbstractPrivacy):
    """A guarantee with exactly the power function of another guarantee."""

    like: str
    size: float
    delta: float = 0.0

    @property
    def known(self):
        return {"GDP": gn.GDP, "TV": gn.privacy.TV}.get(self.like, gn.ApproxDP)(
            *([self.size, self.delta] if self.delta else [self.size])
        )

    def to_zcdp(self, draws=1, steps=2.0**28):
        return self.known.to_zcdp(draws, steps)

    def power(self, level):
        return self.known.power(level)

    def failing(self, share):
        left = replace(self, delta=(1 - share) * self.delta)
        return (left, share * self.delta) if self.delta else None


@dataclass(frozen=True)
class Silent(AbstractPrivacy):
    """A guarantee for which only its Gaussian noise is known."""

    rho: float

    def to_zcdp(self, draws=1, steps=2.0**28):
        return gn.zCDP(self.rho)


OWN = RenyiDP(2, 0.4)
SCHEMA = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("job", ["a", "b", "c"])])
ROWS = pa.table({"sex": ["F", "M"] * 60, "job": ["a", "b", "c"] * 40})
K = gn.FiniteSet(np.eye(4))


def test_doors_of_tables_write_and_read_it(tmp_path):
    plan = gn.plan(SCHEMA, 2, OWN)
    assert "budget       RenyiDP(alpha=2, eps=0.4), by Gaussian noise of rho = 0.2\n" in str(plan)
    assert "times the least error of any unbiased mechanism" in str(plan)
    assert pickle.loads(pickle.dumps(plan)).privacy == OWN
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(1.0))
    plan.release(ROWS, out=tmp_path / "out", ledger=ledger, id="one")
    assert ledger.spent == pytest.approx(0.2)
    record = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    assert record["privacy"] == {"definition": "RenyiDP(alpha=2, eps=0.4)", "rho": 0.2}
    assert record["plan"]["privacy"] == {"definition": "RenyiDP", "alpha": 2, "eps": 0.4}
    release = gn.TableRelease.load(tmp_path / "out")
    assert release.plan.privacy == OWN
    assert str(release.plan) == str(plan)
    release.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "RenyiDP(alpha=2, eps=0.4): rho = 0.2" in page
    assert "only guarantees that this library has are checked" in page
    assert 'id="held"' not in page
    unknown = "UNKNOWN: no check of such a folder: the guarantee 'RenyiDP'"
    assert verifier.verified(tmp_path / "out") == [unknown]
    assert CliRunner().invoke(app, ["ask", str(tmp_path / "out"), "count of sex=F"]).exit_code == 0


def test_doors_of_streams_write_and_read_it(tmp_path):
    plan = gn.plan(SCHEMA, 1, OWN, over=gn.streams.Ticks(3))
    assert "RenyiDP(alpha=2, eps=0.4), of all ticks, by Gaussian noise of rho = 0.2" in str(plan)
    plan.start(tmp_path / "weekly").tick(ROWS, number=1)
    stream = gn.streams.Stream.open(tmp_path / "weekly")
    assert stream.plan.privacy == OWN
    total = stream.tick(ROWS, number=2)
    total.report(tmp_path / "page.html")
    assert "RenyiDP(alpha=2, eps=0.4)" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_releases_of_means_print_all_its_numbers(tmp_path):
    mechanism = gn.GaussianMechanism(gn.optimal_noise(K), OWN, n=4)
    release = mechanism.release(indices=[0, 1, 2, 3])
    assert repr(release) == "Release(4 coordinates, RenyiDP(alpha=2, eps=0.4), rho = 0.2)"
    release.save(tmp_path / "release.json")
    again = gn.Release.load(tmp_path / "release.json", mechanism.covariance)
    assert str(again) == str(release)
    assert "privacy  RenyiDP(alpha=2, eps=0.4), rho = 0.2, under replace" in str(release)
    assert mechanism.bound.factor(mechanism.error) > 1
    estimate = gn.estimators.clipped_mean(np.zeros((100, 2)), OWN, radius=1)
    assert "RenyiDP(alpha=2, eps=0.4), rho = 0.2" in str(estimate)
    estimate.save(tmp_path / "mean.json")
    assert str(gn.estimators.Estimate.load(tmp_path / "mean.json")) == str(estimate)


def test_a_record_of_ones_own_is_printed_with_all_its_numbers():
    class Flat(RenyiDP):
        def as_dict(self, draws=1, steps=2.0**28):
            return {"definition": "Rényi DP", "alpha": self.alpha, "eps": self.eps}

    release = gn.GaussianMechanism(gn.optimal_noise(K), Flat(2, 0.4), n=4).release(indices=[0] * 4)
    assert repr(release) == "Release(4 coordinates, Rényi DP, alpha = 2, eps = 0.4)"


def test_laplace_noise_spends_what_implies_it():
    x = np.random.default_rng(0).normal(100, 1, size=4000)
    mean = gn.estimators.gaussian_mean(x, BoundedRange(2.0), sigma=1, radius=1e3)
    assert mean.noise == "laplace"
    assert mean.split == {"location": "epsilon = 0.25", "mean": "epsilon = 0.75"}
    assert "BoundedRange(eta=2.0), epsilon = 1.0" in str(mean)
    assert gn.compare(K, BoundedRange(2.0), n=50).ways == gn.compare(K, gn.PureDP(1.0), n=50).ways
    with pytest.raises(ParameterError, match="expected a privacy guarantee"):
        gn.plan(SCHEMA, 1, BoundedRange(2.0))


@pytest.mark.parametrize(
    "asked",
    [
        dict(n=50),
        dict(n=50, unbiased="distributional"),
        dict(data=[0, 1, 2, 3]),
        dict(data=[0, 1, 2, 3], unbiased="distributional"),
        dict(neighbors="add-remove"),
    ],
    ids=repr,
)
def test_its_own_chi_squared_bounds_errors_as_that_of_another_does(asked):
    """χ² <= e^ε − 1 at order two is the bound of zCDP at ρ = ε/2."""
    bound, like = (gn.lower_bound(K, privacy, **asked) for privacy in (OWN, gn.zCDP(0.2)))
    assert bound.error == pytest.approx(like.error, rel=1e-12)
    assert "because      Hammersley–Chapman–Robins with χ² <= e^ε − 1, as div" in bound.explain()
    assert not bound.at_neighbor


def test_without_chi_squared_bounds_go_through_what_is_implied():
    bound = gn.lower_bound(K, RenyiDP(1.5, 0.2), n=50)
    assert bound.error == gn.lower_bound(K, gn.KL(0.2), n=50).error > 0
    assert bound.at_neighbor
    assert f"it implies (0, {math.sqrt(0.1):.6g})-differential privacy" in bound.explain()
    # the least χ² among the implied guarantees
    ranged = gn.lower_bound(K, BoundedRange(1.0), n=50)
    assert ranged.error == gn.lower_bound(K, gn.zCDP(1 / 8), n=50).error
    assert "because      it implies zCDP(rho=0.125): Hammersley–" in ranged.explain()
    with pytest.raises(ParameterError, match="have a bound under PureDP"):
        gn.lower_bound(K, RenyiDP(1.5, 0.2), n=50, unbiased="distributional")


def test_comparisons_leave_out_noise_that_is_not_known_to_keep_it():
    ours, like = gn.compare(K, OWN, n=50), gn.compare(K, gn.zCDP(0.2), n=50)
    assert [way for way in like.ways if way.name != "Laplace"] == list(ours.ways)
    assert len(like.ways) == len(ours.ways) + 1
    assert "under RenyiDP(alpha=2, eps=0.4)" in str(ours)


def test_what_is_implied_speaks_of_tests():
    assert implied(OWN)[:2] == OWN.implies(1e-6)
    assert total_variation(OWN) == total_variation(gn.KL(0.4))
    for level in (0.0, 1e-6, 0.1, 0.9, 1.0):
        least = min(most_power(weaker, level) for weaker in OWN.implies(1e-6))
        assert most_power(OWN, level) == least
    for chance in (1e-6, 0.1):
        sure = min(most_posterior(weaker, chance) for weaker in OWN.implies(1e-6))
        assert most_posterior(OWN, chance) == sure


def test_a_threshold_takes_a_share_of_its_delta():
    own = Curve("ApproxDP", 1.0, 1e-6)
    jobs = pa.table({"job": ["nurse"] * 500 + ["juggler"]})
    found, like = (gn.discover_categories(jobs, "job", of) for of in (own, own.known))
    assert found.categories == like.categories == ("nurse",)
    assert found.privacy["rho"] == pytest.approx(like.privacy["rho"], rel=1e-12)
    assert "Curve(like='ApproxDP', size=1.0, delta=1e-06), rho = 0.0" in str(found)
    x = np.random.default_rng(0).normal(1e6, 1, size=20000)
    mean = gn.estimators.gaussian_mean(x, own, sigma=1)
    assert mean.split == gn.estimators.gaussian_mean(x, own.known, sigma=1).split
    assert mean.split["threshold"] == "delta = 1e-07"
    with pytest.raises(ParameterError, match="expected radius="):
        gn.estimators.gaussian_mean(x, OWN, sigma=1)
    with pytest.raises(ParameterError, match="no threshold hides a value for certain"):
        gn.discover_categories(jobs, "job", OWN)


CURVES = [
    Curve("GDP", 0.7),
    Curve("GDP", 1e-4),
    Curve("GDP", 5.0),
    Curve("TV", 0.2),
    Curve("ApproxDP", 1.0, 1e-3),
    Curve("ApproxDP", 1e-6, 0.3),
]


@pytest.mark.parametrize("own", CURVES, ids=repr)
def test_power_alone_says_the_rest_from_above(own):
    """Closed forms are exact; the bounds from power are above them, within rounding."""
    exact, found = own.known.variation(), total_variation(own)
    assert exact <= found <= exact * (1 + 1e-9) + 1e-14
    for chance in (1e-9, 0.01, 0.3, 0.99):
        exact, found = (most_posterior(privacy, chance) for privacy in (own.known, own))
        assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-8)
    assert [type(weaker) for weaker in implied(own)] == [gn.privacy.TV]
    bound = gn.lower_bound(K, own, n=50)
    like = gn.lower_bound(K, gn.privacy.TV(own.known.variation()), n=50)
    assert bound.error == pytest.approx(like.error, rel=1e-6)


def test_where_nothing_is_known_tables_are_released_and_bounds_are_refused(tmp_path):
    own = Silent(0.1)
    plan = gn.plan(SCHEMA, 1, own)
    assert "nothing is proven of what the best unbiased mechanism can do under Silent" in str(plan)
    assert (
        "because      no bound is known for mechanisms with this guarantee" in plan.bound.explain()
    )
    plan.simulate(ROWS, np.random.default_rng(0)).save(tmp_path / "out")
    assert gn.TableRelease.load(tmp_path / "out").plan.privacy == own
    for name, ask in {
        "lower_bound": lambda: gn.lower_bound(K, own, n=50),
        "most_power": lambda: most_power(own, 0.1),
        "most_posterior": lambda: most_posterior(own, 0.1),
        "total_variation": lambda: total_variation(own),
        "implied": lambda: implied(own),
    }.items():
        with pytest.raises(NotAvailableError, match=f"{name}: no bound is known .*override"):
            ask()


def test_programs_without_its_class_say_so(tmp_path):
    gn.plan(SCHEMA, 1, OWN).simulate(ROWS, np.random.default_rng(0)).save(tmp_path / "out")
    path = tmp_path / "out" / "release.json"
    path.write_text(path.read_text(encoding="utf-8").replace("RenyiDP", "RenyiDQ"), "utf-8")
    with pytest.raises(OutputError, match="'RenyiDQ', this program has 0; hint: import the mod"):
        gn.TableRelease.load(tmp_path / "out")
    told = CliRunner().invoke(app, ["ask", str(tmp_path / "out"), "count of sex=F"])
    assert "hint: import the module that defines it" in str(told.exception)


def test_what_is_not_read_back_as_itself_is_refused_before_data(tmp_path):
    def made(name, *, frozen=True, where="a", **body):
        names = {"__annotations__": {"rho": float}, "__module__": where} | body
        cls = type(name, (Silent,), names)
        return dataclass(frozen=frozen)(cls) if frozen is not None else cls

    kept = made("OfItsOwn")(0.1)
    gn.plan(SCHEMA, 1, kept)
    another = made("OfItsOwn", where="b")
    with pytest.raises(ParameterError, match=r"OfItsOwn: .* read back .*'OfItsOwn', .* has 2"):
        gn.plan(SCHEMA, 1, kept)
    assert another.__name__ == "OfItsOwn"
    with pytest.raises(ParameterError, match=r"zCDP: .* got zCDP\(rho=0.1\) of gaussnoise"):
        gn.plan(SCHEMA, 1, made("zCDP")(0.1))
    with pytest.raises(ParameterError, match=r"OfArrays: .* got TypeError; hint: fields of fin"):
        gn.plan(SCHEMA, 1, made("OfArrays")(np.array([0.1])))
    with pytest.raises(ParameterError, match=r"RenyiDP: .* got ValueError; hint: fields of fin"):
        gn.plan(SCHEMA, 1, RenyiDP(math.inf, 0.1))

    class OfNoFields(AbstractPrivacy):
        def to_zcdp(self, draws=1, steps=2.0**28):
            return gn.zCDP(0.1)

    with pytest.raises(ParameterError, match="OfNoFields: expected a frozen dataclass"):
        gn.plan(SCHEMA, 1, OfNoFields())


def test_a_guarantee_that_knows_no_noise_says_so():
    @dataclass(frozen=True)
    class Wishful(AbstractPrivacy):
        wish: float

    with pytest.raises(ParameterError, match="Wishful: no Gaussian noise is known to satisfy it"):
        gn.GaussianMechanism(gn.optimal_noise(K), Wishful(1.0), n=4)
    Wishful.noise = "laplace"
    with pytest.raises(NotAvailableError, match="Wishful: no Laplace noise is known to satisfy it"):
        gn.compare(K, Wishful(1.0), n=50)
    with pytest.raises(NotAvailableError, match="Wishful: no Laplace noise is known to satisfy it"):
        gn.estimators.clipped_mean(np.zeros((9, 2)), Wishful(1.0), radius=1)
    Wishful.noise = "local"
    with pytest.raises(NotAvailableError, match="override chi_squared or implies in its class"):
        gn.lower_bound(K, Wishful(1.0), n=50)


@pytest.mark.parametrize("flag", [True, np.True_, np.array(True)], ids=repr)
@pytest.mark.parametrize(
    "kind",
    [gn.zCDP, gn.GDP, gn.KL, gn.privacy.TV, gn.PureDP, gn.LocalDP, lambda x: gn.ApproxDP(x, 0.1)],
)
def test_a_flag_is_no_number(kind, flag):
    kind(0.5)
    with pytest.raises(ParameterError, match="expected a number"):
        kind(flag)
