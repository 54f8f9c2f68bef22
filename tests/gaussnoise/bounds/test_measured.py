"""Tables that other tools measured: their joint cost, their least squares, the best possible."""

import itertools
import math
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import gaussnoise as gn
from gaussnoise.cli.matrix import read_matrix
from gaussnoise.errors import ParameterError

SIZES = {"a": 3, "b": 2, "c": 4}
SCALES = {("a", "b"): 2.0, ("c",): 0.5, ("c", "a"): [3.0, 1.5], (): 7.0}


def matrix(names):
    """The sums over all other attributes, as a matrix on the cells of the joint table."""
    parts = [np.eye(n) if name in names else np.ones((1, n)) for name, n in SIZES.items()]
    return np.kron(np.kron(*parts[:2]), parts[2])


def listed(scales):
    for names, values in scales.items():
        yield from ((names, x) for x in (values if isinstance(values, list) else [values]))


def dense(scales):
    """All measurements as one matrix, and the standard deviation of each output."""
    rows = [(matrix(names), sigma) for names, sigma in listed(scales)]
    deviations = np.concatenate([np.full(len(M), sigma) for M, sigma in rows])
    return np.vstack([M for M, _ in rows]), deviations


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("p", [2, math.inf])
def test_tables_have_the_certificate_of_their_matrix(neighbors, p):
    wanted = [("b",), ("a", "c"), ("a", "b")]
    found = gn.certify(SCALES, wanted, sizes=SIZES, neighbors=neighbors, p=p)
    C, deviations = dense(SCALES)
    W = np.vstack([matrix(names) for names in wanted])
    same = gn.certify(C, W, standard_deviation=deviations, neighbors=neighbors, p=p)
    assert found.error == pytest.approx(same.error, rel=1e-9)
    assert found.sensitivity == pytest.approx(same.sensitivity, rel=1e-12)
    assert found.lower == pytest.approx(same.lower, rel=1e-5)
    assert np.allclose(found.covariance.toarray(), same.covariance.toarray(), rtol=1e-9, atol=1e-12)
    assert found.factor >= 1
    assert found.upper >= found.lower
    found.optimal.verify()


def test_the_joint_loss_is_the_exact_sum():
    found = gn.certify(SCALES, sizes=SIZES)
    exact = sum(1 / (2 * Fraction(sigma) ** 2) for _, sigma in listed(SCALES))
    assert Fraction(found.rho) >= exact
    assert float(Fraction(found.rho) / exact - 1) < 1e-15
    # two rows differ in two cells of every table, but not in the total
    pair = gn.certify(SCALES, sizes=SIZES, neighbors="replace")
    assert pair.rho == pytest.approx(2 * float(exact - Fraction(1, 98)), rel=1e-15)
    assert "worst pair" in pair.explain()


def test_least_squares_tables_are_those_of_the_dense_problem():
    rng = np.random.default_rng(0)
    measured = [
        SimpleNamespace(
            clique=names, stddev=sigma, noisy_measurement=rng.normal(size=len(matrix(names)))
        )
        for names, sigma in [(("a", "b"), 2.0), (("a", "c"), 1.5), (("c",), 0.5), ((), 7.0)]
    ]
    swapped = SimpleNamespace(clique=("c", "a"), stddev=3.0, noisy_measurement=rng.normal(size=12))
    found = gn.certify([*measured, swapped], [("a", "c"), ("b",)], sizes=SIZES)
    rows = [matrix(one.clique) / one.stddev for one in measured]
    data = [one.noisy_measurement / one.stddev for one in measured]
    rows.append(matrix(("a", "c")) / 3)
    data.append(swapped.noisy_measurement.reshape(4, 3).T.reshape(-1) / 3)
    x = np.linalg.lstsq(np.vstack(rows), np.concatenate(data), rcond=None)[0]
    for names, table in found.tables.items():
        assert np.allclose(table.reshape(-1), matrix(names) @ x)
    assert list(found.tables) == [("a", "c"), ("b",)]
    assert gn.certify(SCALES, sizes=SIZES).tables == {}


def test_the_optimal_allocation_is_certified_to_be_optimal():
    """All 2-way tables: residuals are the best; of tables themselves, equal scales are not."""
    pairs = list(itertools.combinations(SIZES, 2))
    found = gn.certify(dict.fromkeys(pairs, 1.0), sizes=SIZES)
    assert found.lower == pytest.approx(7.1309481146, rel=1e-6)  # a closed form, in other order
    assert 1.03 < found.factor < 1.04
    joint = gn.certify({("a", "b", "c"): 3.0}, sizes=SIZES)
    assert joint.factor == pytest.approx(1, abs=1e-5)
    assert joint.to_frame("pandas").times_best.tolist() == pytest.approx([1], abs=1e-6)
    worse = gn.certify({("a", "b", "c"): 3.0, ("a",): 30.0}, [tuple(SIZES)], sizes=SIZES)
    assert worse.factor > joint.factor + 1e-4


def test_large_tables_need_no_matrix():
    names = [f"x{i}" for i in range(30)]
    pairs = dict.fromkeys(itertools.combinations(names, 2), 5.0)
    found = gn.certify(pairs, sizes=dict.fromkeys(names, 9))
    assert found.rho == pytest.approx(435 / 50, rel=1e-14)
    assert 1 < found.factor < 3
    assert len(found.columns()["cells"]) == 435


def test_measurements_of_mbi_and_tables_of_opendp_are_read():
    mbi = pytest.importorskip("mbi", exc_type=ImportError)
    measured = [
        mbi.LinearMeasurement(np.arange(float(len(matrix(names)))), names, sigma)
        for names, sigma in listed(SCALES)
    ]
    sizes = mbi.Domain(list(SIZES), list(SIZES.values()))
    found = gn.certify(measured, sizes=sizes)
    plain = gn.certify(SCALES, sizes=SIZES)
    assert found.error == plain.error
    assert found.rho == plain.rho
    groups: dict = {}
    for one in measured:
        groups.setdefault(one.clique, []).append(one)
    table = SimpleNamespace(
        keys={name: list(range(n)) for name, n in SIZES.items()},
        marginals=SimpleNamespace(by_clique=groups),
    )
    assert gn.certify(table).error == plain.error
    schema = gn.Schema([gn.Attribute(name, list(range(n))) for name, n in SIZES.items()])
    assert gn.certify(SCALES, sizes=schema).error == plain.error
    for query, name in (
        (lambda table: table.sum(), "<lambda>"),
        (mbi.SlicedQuery(1), "SlicedQuery"),
        (mbi.WeightedQuery(np.ones(3)), "WeightedQuery"),
    ):
        odd = mbi.LinearMeasurement(np.ones(1), ("a",), 1.0, query=query)
        with pytest.raises(ParameterError, match=f"of the cells of tables, got the query {name}"):
            gn.certify([odd], sizes=sizes)
    with pytest.raises(ParameterError, match="expected sizes=domain"):
        gn.certify(measured, sizes)


def test_measurements_that_mbi_saved_are_read(tmp_path):
    mbi = pytest.importorskip("mbi", exc_type=ImportError)
    rng = np.random.default_rng(1)
    measured = [  # a double that is a number of 32 bits, which jax keeps, comes back as it was
        mbi.LinearMeasurement(rng.integers(-99, 99, len(matrix(names))), names, sigma)
        for names, sigma in listed(SCALES)
    ]
    mbi.save(measured, tmp_path / "measured.npz")
    sizes = mbi.Domain(list(SIZES), list(SIZES.values()))
    found = gn.certify(mbi.load(tmp_path / "measured.npz"), sizes=sizes)
    plain = gn.certify(measured, sizes=sizes)
    assert (found.rho, found.error) == (plain.rho, plain.error)
    assert all(np.array_equal(found.tables[names], plain.tables[names]) for names in plain.tables)
    with pytest.raises(ParameterError, match=r"objects of Python that mbi saved; hint: .*mbi.load"):
        read_matrix(tmp_path / "measured.npz", "certify")


@pytest.mark.parametrize(
    ("given", "workload", "message"),
    [
        ({("a",): 1.0}, [("a", "b")], r"joint counts of \(a, b\)"),
        ({("a",): 1.0}, [("d",)], "distinct attributes among a, b, c"),
        ({("a", "a"): 1.0}, None, "distinct attributes"),
        ({("a",): 0.0}, None, "positive standard deviation"),
        ({("a",): "one"}, None, "positive standard deviation"),
        ({3: 1.0}, None, "expected measurements like"),
        ({}, None, "one measured table or more|measured table or more"),
    ],
)
def test_measured_tables_are_checked(given, workload, message):
    with pytest.raises(ParameterError, match=message):
        gn.certify(given, workload, sizes=SIZES)


def test_other_arguments_are_checked():
    with pytest.raises(ParameterError, match="expected sizes like"):
        gn.certify({("a",): 1.0})
    with pytest.raises(ParameterError, match="for measured tables"):
        gn.certify({("a",): 1.0}, sizes=SIZES, standard_deviation=2.0)
    with pytest.raises(ParameterError, match="add-remove"):
        gn.certify({("a",): 1.0}, sizes=SIZES, neighbors="policy")
    values = SimpleNamespace(clique=("a",), stddev=1.0, noisy_measurement=np.ones(4))
    with pytest.raises(ParameterError, match=r"3 finite values for the table of \(a\)"):
        gn.certify([values], sizes=SIZES)
