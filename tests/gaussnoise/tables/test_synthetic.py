"""Tests of synthetic records through mbi: its loss is the likelihood of the released tables.

The records have the labels of the schema.
"""

import dataclasses
import functools
import itertools
import sys
from collections import Counter

import numpy as np
import pytest
from scipy import stats

import gaussnoise as gn
from gaussnoise import demo
from gaussnoise.errors import NotAvailableError
from gaussnoise.tables.release.measurements import Measurement
from gaussnoise.tables.release.synthetic import ZeroSumQuery, mbi_measurements

pytestmark = pytest.mark.integration  # with mbi, and what it compiles

ITERATIONS = 2000


@pytest.fixture(scope="module")
def mbi():
    # not at the top of the file: from its first array on, jax warns of every fork, and Spark's
    # tests fork
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)  # mbi warns otherwise
    import mbi

    return mbi


def kron(matrices):
    return functools.reduce(np.kron, matrices, np.ones((1, 1)))


def centering(n):
    return np.eye(n) - 1 / n


class BruteForce:
    """A random population of 2 × 3 × 2 × 1 cells, with the dense effect of noise on two tables."""

    schema = gn.Schema(
        [
            gn.Attribute("s e,x|\"'", ["Ω", "{}"]),
            gn.Attribute("Alter in Jahren", edges=[0, 18, 40], other="?"),
            gn.Attribute("0", [False, True]),
            gn.Attribute("country", ["here"]),
            gn.Attribute("never measured", [1, 2, 3]),
        ]
    )
    shape = (2, 3, 2)
    tables = ((0, 1), (1, 2))
    subsets = ((), (0,), (1,), (2,), (0, 1), (1, 2))

    def __init__(self, total_deviation):
        self.rng = np.random.default_rng(7)
        self.deviations = dict(
            zip(self.subsets, [total_deviation, 1.0, 2.0, 0.5, 3.0, 1.5], strict=True)
        )
        truth = self.rng.integers(5, 20, size=12)
        self.residuals = {}
        for T, sigma in self.deviations.items():
            projection = kron(centering(self.shape[i]) for i in T)
            noise = sigma * self.rng.normal(size=len(projection))
            self.residuals[T] = projection @ (self.margin(T) @ truth + noise)

    def margin(self, T):
        """Return the matrix from the joint table to its marginal on T."""
        return kron(np.eye(n) if i in T else np.ones((1, n)) for i, n in enumerate(self.shape))

    def lift(self, T):
        """Return the matrix from a residual on T to both tables, stacked.

        It is zero for a table that does not contain T.
        """
        return np.vstack(
            [
                kron(
                    np.eye(n) if i in T else np.ones((n, 1)) / n for i in S for n in [self.shape[i]]
                )
                if set(T) <= set(S)
                else np.zeros(
                    (
                        np.prod([self.shape[i] for i in S]),
                        np.prod([self.shape[i] for i in T], dtype=int),
                    )
                )
                for S in self.tables
            ]
        )

    def minus_log_likelihood(self, joint):
        """Return minus the log-likelihood of both tables, by an inverse of their covariance."""
        released = sum(self.lift(T) @ y for T, y in self.residuals.items())
        covariance = sum(
            sigma**2 * self.lift(T) @ kron(centering(self.shape[i]) for i in T) @ self.lift(T).T
            for T, sigma in self.deviations.items()
        )
        error = released - np.vstack([self.margin(S) for S in self.tables]) @ joint
        inverse = np.linalg.pinv(covariance, rcond=1e-10, hermitian=True)
        np.testing.assert_allclose(
            covariance @ inverse @ error, error, atol=1e-9
        )  # the error is in its range
        return error @ inverse @ error / 2

    def measurements(self):
        return [
            Measurement(
                tuple(self.schema.names[i] for i in T),
                y.reshape([self.shape[i] for i in T]),
                self.deviations[T],
            )
            for T, y in self.residuals.items()
        ]

    def models(self):
        """Return random joint tables, with the exact total where it is known."""
        for joint in self.rng.uniform(0, 30, size=(5, 12)):
            yield joint if self.deviations[()] else joint * self.residuals[()] / joint.sum()


def loss_of(mbi, problem, **changes):
    """Return mbi's loss for the problem, with changed fields of the measurements on pairs."""
    measurements = [
        dataclasses.replace(m, **changes) if len(m.clique) == 2 else m for m in problem.measurements
    ]
    return mbi.marginal_loss.from_linear_measurements(measurements, problem.domain)


@pytest.mark.parametrize("total_deviation", [4.0, 0.0], ids=["noisy total", "exact total"])
def test_the_loss_is_the_exact_likelihood_of_all_tables(mbi, total_deviation):
    brute = BruteForce(total_deviation)
    problem = mbi_measurements(brute.measurements(), brute.schema)
    joints = list(brute.models())
    expected = [brute.minus_log_likelihood(joint) for joint in joints]
    factors = [mbi.Factor(problem.domain, joint.reshape(2, 3, 2, 1)) for joint in joints]

    def losses(**changes):
        return [float(loss_of(mbi, problem, **changes)(factor)) for factor in factors]

    np.testing.assert_allclose(losses(), expected, rtol=1e-10)
    # neither another weight nor an unprojected query gives the likelihood, even up to a constant
    for wrong in (losses(stddev=2.0), losses(query=mbi.DatavectorQuery())):
        assert np.ptp(np.subtract(wrong, expected)) > 1


def test_the_total_is_known_or_measured(mbi):
    noisy, exact = (
        mbi_measurements(BruteForce(sd).measurements(), BruteForce.schema) for sd in (4.0, 0.0)
    )
    total = BruteForce(4.0).residuals[()].item()
    assert noisy.known_total is None
    assert mbi.estimation.minimum_variance_unbiased_total(noisy.measurements) == pytest.approx(
        total, rel=1e-12
    )
    assert exact.known_total == pytest.approx(BruteForce(0.0).residuals[()].item(), rel=1e-12)
    assert [m.clique for m in exact.measurements] == [
        m.clique for m in noisy.measurements if m.clique
    ]


def test_an_exact_total_is_whole(mbi):
    just_below = Measurement((), np.array(np.nextafter(99.0, 0.0)), 0.0)
    residual = Measurement(("0",), np.array([3.0, -3.0]), 1.0)
    problem = mbi_measurements([just_below, residual], BruteForce.schema)
    assert problem.known_total == 99
    assert (
        mbi.estimation.MirrorDescent().estimate(*problem, iters=50).synthetic_data().records == 99
    )


@pytest.mark.parametrize("shape", [(2,), (5, 1), (3, 4, 2)])
def test_the_query_is_the_projection(mbi, shape):
    domain = mbi.Domain([f"a{i}" for i in range(len(shape))], shape)
    units = np.eye(np.prod(shape)).reshape(-1, *shape)
    matrix = np.array([ZeroSumQuery()(mbi.Factor(domain, unit)) for unit in units])
    np.testing.assert_allclose(matrix, kron(map(centering, shape)), atol=1e-12)
    if min(shape) > 1:
        assert ZeroSumQuery().op_norm_sq() == pytest.approx(np.linalg.norm(matrix, 2) ** 2)
    assert hash(ZeroSumQuery()) == hash(ZeroSumQuery())
    assert ZeroSumQuery() == ZeroSumQuery()


def test_names_and_labels_of_any_kind_come_through(mbi):
    brute = BruteForce(0.0)
    problem = mbi_measurements(iter(brute.measurements()), brute.schema)
    assert problem.domain.attributes == brute.schema.names[:4]  # the last one is in no measurement
    records = mbi.estimation.MirrorDescent().estimate(*problem, iters=50).synthetic_data()
    assert records.records == int(problem.known_total)
    for attribute in brute.schema.attributes[:4]:
        assert records.domain.labels_config[attribute.name] == attribute.labels
        assert set(np.unique(records.data[attribute.name])) <= set(range(attribute.size))


def test_without_mbi_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mbi", None)
    with pytest.raises(NotAvailableError, match=r'pip install "gaussnoise\[synth\]"'):
        mbi_measurements([], BruteForce.schema)


NAMES = ("affair", "marriage", "age", "children")


@pytest.fixture(scope="module")
def survey():
    """Return the demo table and its schema, some columns only."""
    table, schema = demo.load()
    return table.select(NAMES), gn.Schema([a for a in schema.attributes if a.name in NAMES])


@pytest.fixture(scope="module")
def encoded(mbi, survey):
    """Return the true records as mbi holds them, coded independently of the package."""
    table, schema = survey
    codes = {}
    for a in schema.attributes:
        column = table[a.name].to_pylist()
        if a.edges is None:
            codes[a.name] = np.array([a.categories.index(value) for value in column])
        else:
            codes[a.name] = np.searchsorted(a.edges, column, side="right") - 1
    return mbi.Dataset(codes, mbi.Domain(schema.names, schema.sizes))


def simulated(survey, rho, seed, neighbors="add-remove"):
    table, schema = survey
    return gn.plan(schema, 2, gn.zCDP(rho), neighbors=neighbors).simulate(
        table, np.random.default_rng(seed)
    )


def root_mean_square_error(synthetic, truth, release):
    """Return the error of synthetic two-way counts, in standard deviations of the noise."""
    errors = [
        (
            np.asarray(synthetic.project(names).datavector())
            - np.asarray(truth.project(names).datavector())
        )
        / release[names].standard_deviation.ravel()
        for names in release
    ]
    return np.sqrt(np.mean(np.square(np.concatenate(errors))))


def test_from_records_to_synthetic_records(mbi, survey, encoded):
    table, schema = survey
    release = simulated(survey, rho=0.1, seed=1)
    problem = mbi_measurements(release.measurements(), schema)
    model = mbi.estimation.MirrorDescent().estimate(*problem, iters=ITERATIONS)
    np.random.seed(0)  # noqa: NPY002  mbi draws from numpy's global generator
    records = model.synthetic_data()
    assert records.records == int(release[()].estimate)

    # as close to the truth as the noise permits; a table that shares only the size
    # is far off
    assert root_mean_square_error(records, encoded, release) < 1.2
    assert (
        root_mean_square_error(
            mbi.Dataset.synthetic(problem.domain, records.records), encoded, release
        )
        > 20
    )

    # the same with labels, compared with the original columns
    pair = ("affair", "marriage")
    labelled = [
        np.array(records.domain.labels_config[name], dtype=object)[records.data[name]]
        for name in pair
    ]
    synthetic, true = (
        Counter(zip(*labelled, strict=True)),
        Counter(zip(*(table[n].to_pylist() for n in pair), strict=True)),
    )
    assert true.keys() == set(
        itertools.product(*(schema.attributes[schema.names.index(n)].labels for n in pair))
    )
    deviation = release[pair].standard_deviation.max()
    assert max(abs(synthetic[cell] - count) for cell, count in true.items()) < 4 * deviation

    # another release of the same plan runs through the same compiled programme
    compiled = mbi.estimation.MirrorDescent._multi_step._cache_size()
    again = mbi_measurements(simulated(survey, rho=0.1, seed=2).measurements(), schema)
    mbi.estimation.MirrorDescent().estimate(*again, iters=50)
    assert mbi.estimation.MirrorDescent._multi_step._cache_size() == compiled


def test_weights_match_the_noise(mbi, survey, encoded):
    release = simulated(survey, rho=0.1, seed=4)
    freedom = 1 + sum(
        np.prod([n - 1 for n in map(len, release[T].labels)]) for T in residual_names(release)
    )
    low, high = stats.chi2(freedom).ppf([1e-3, 1 - 1e-3])

    def chi_square(factor):
        scaled = [
            m._replace(standard_deviation=factor * m.standard_deviation)
            for m in release.measurements()
        ]
        problem = mbi_measurements(scaled, survey[1])
        return 2 * float(
            mbi.marginal_loss.from_linear_measurements(problem.measurements, problem.domain)(
                encoded
            )
        )

    assert low < chi_square(1.0) < high
    assert chi_square(1 / 1.5) > high
    assert chi_square(1.5) < low


def residual_names(release):
    return {T for S in release for k in (1, 2) for T in itertools.combinations(S, k)}


def test_with_the_total_known_the_model_is_the_projection_onto_tables_of_nonnegative_counts(
    mbi, survey, encoded
):
    release = simulated(survey, rho=2e-4, seed=4, neighbors="replace")
    assert (
        min(release[pair].estimate.min() for pair in release) < 0
    )  # otherwise there is nothing to correct
    problem = mbi_measurements(release.measurements(), survey[1])
    assert problem.known_total == encoded.records
    from_release = mbi.marginal_loss.from_linear_measurements(problem.measurements, problem.domain)

    def distances(iterations):
        """Return distances from release to model and from model to truth.

        The metric is that of the likelihood.
        """
        model = mbi.estimation.MirrorDescent().estimate(*problem, iters=iterations)
        at = [
            dataclasses.replace(m, noisy_measurement=m.query(model.project(m.clique)))
            for m in problem.measurements
        ]
        from_model = mbi.marginal_loss.from_linear_measurements(at, problem.domain)
        return float(from_release(model)), float(from_model(encoded))

    # Pythagoras: the truth belongs to the convex set that the release is projected on
    corrected, error = distances(ITERATIONS)
    assert corrected > 1
    assert corrected + error < float(from_release(encoded)) < sum(distances(0))
