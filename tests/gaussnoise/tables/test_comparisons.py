"""Tests of contrasts, differences and ratios of the cells of tables of every kind."""

import copy
import dataclasses
import pickle

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.errors import NotAvailableError, ParameterError

SEX, AGE = gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])
PAY = gn.Attribute("pay", clip=[100, 5000])
SCHEMA = gn.Schema([SEX, AGE, PAY])
_RNG = np.random.default_rng(11)
PEOPLE = pa.table(
    {
        "sex": _RNG.choice(["F", "M"], 600),
        "age": _RNG.uniform(0, 120, 600),
        "pay": _RNG.uniform(0, 6000, 600),
    }
)
GROUPED = gn.Attribute(
    "town", ["a", "b", "c", "d"], groups={"land": {"north": ["a", "b"], "south": ["c", "d"]}}
)

KINDS = {
    "counts": lambda release: release["age", "sex"],
    "answers": lambda release: release.answers({"sex": "identity", "age": "prefix"}),
    "sums": lambda release: release.sums("pay", given=("age", "sex")),
    "means": lambda release: release.means("pay", given=("sex", "age")),
    "shares": lambda release: release.proportions(("sex", "age"), given="sex"),
    "shares of all": lambda release: release.proportions(("age", "sex")),
    "cdf": lambda release: release.cdf("age", given="sex"),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def simulated(rho=0.5, seed=0, table=PEOPLE, workload=(("sex", "age", "pay"),)):
    plan = gn.plan(SCHEMA, list(workload), gn.zCDP(rho))
    return plan.simulate(table, np.random.default_rng(seed))


def moved(release, step):
    """Return a release whose only table is moved by a step."""
    (S,) = release.tables
    return dataclasses.replace(release, tables={S: np.asarray(release.tables[S]) + step})


def dense(release, table):
    """Return the covariance of all cells of a table, from its numerical gradient."""
    (S,) = release.tables
    shape = release.tables[S].shape
    columns = []
    for k in range(int(np.prod(shape))):
        step = np.zeros(int(np.prod(shape)))
        step[k] = 1e-3
        up, down = (table(moved(release, s * step.reshape(shape))).estimate for s in (1, -1))
        columns.append((up - down).ravel() / 2e-3)
    J, F = np.array(columns).T, release.covariance.factor()
    return J @ F @ F.T @ J.T


@kinds
def test_contrasts_have_the_covariance_of_all_cells(kind):
    release, rng = simulated(), np.random.default_rng(1)
    table = KINDS[kind](release)
    covariance = dense(release, KINDS[kind])
    np.testing.assert_allclose(
        table.standard_deviation.ravel() ** 2, np.diagonal(covariance), rtol=1e-4, atol=1e-12
    )
    weights = rng.normal(size=(3, *table.estimate.shape))
    found, w = table.contrasts(list(weights)), weights.reshape(3, -1)
    np.testing.assert_allclose(found.estimate, w @ table.estimate.ravel(), rtol=1e-9)
    np.testing.assert_allclose(found.covariance, w @ covariance @ w.T, rtol=1e-4, atol=1e-12)
    one = table.contrast(weights[0])
    assert one.standard_deviation == pytest.approx(found.standard_deviation[0])


@kinds
@pytest.mark.parametrize("how", ["difference", "ratio"])
def test_comparisons_are_those_of_the_cells(kind, how):
    release = simulated()
    table = KINDS[kind](release)
    found = getattr(table, how)("sex", "F", "M")
    axis = table.attributes.index("sex")
    x, y = (np.take(table.estimate, k, axis) for k in (0, 1))
    expected = x - y if how == "difference" else x / y
    np.testing.assert_allclose(found.estimate, expected)

    def compared(release):
        return getattr(KINDS[kind](release), how)("sex", "F", "M")

    variance = np.diagonal(dense(release, compared))
    np.testing.assert_allclose(
        found.standard_deviation**2, variance, rtol=1e-3, atol=1e-9 * variance.max()
    )
    own = found.contrasts(list(np.eye(found.estimate.size)))
    np.testing.assert_allclose(
        own.standard_deviation, found.standard_deviation, atol=1e-5 * np.sqrt(variance.max())
    )
    low, high = found.confidence_interval()
    wide = found.confidence_interval(simultaneous=True)
    assert (low <= found.estimate).all()
    assert (found.estimate <= high).all()
    assert (wide.low <= low).all()
    assert (wide.high >= high).all()
    assert found.attributes == ("age",)
    assert found.names == ("F", "M")
    assert found.columns()["estimate"] == found.estimate.tolist()
    assert "F less M" in str(found) or "F over M" in str(found)


def test_comparisons_of_comparisons_are_contrasts():
    means = simulated().means("pay", given=("sex", "age"))
    gaps = means.difference("sex", "F", "M")
    young, old = gaps.labels[0][0], gaps.labels[0][2]
    found = gaps.difference("age", old, young)
    expected = means.contrast([[-1, 0, 1], [1, 0, -1]])
    assert float(found.estimate) == pytest.approx(expected.estimate)
    assert float(found.standard_deviation) == pytest.approx(expected.standard_deviation)
    relative = means.difference("sex", "F", "M").relative()
    ratio = means.ratio("sex", "F", "M")
    np.testing.assert_allclose(relative.estimate, ratio.estimate - 1)
    np.testing.assert_allclose(
        relative.confidence_interval(), np.subtract(ratio.confidence_interval(), 1)
    )
    np.testing.assert_allclose(
        relative.contrasts([[1, 0, 0]]).covariance, ratio.contrasts([[1, 0, 0]]).covariance
    )


def test_the_questions_in_words_have_the_same_answers():
    release = simulated()
    shares = release.proportions(("sex", "age"), given="sex").difference("sex", "F", "M")
    asked = release.ask("difference of share of age=[18, 65) given sex=F and sex=M")
    np.testing.assert_allclose(shares.confidence_interval().low[1], asked.low)
    np.testing.assert_allclose(shares.standard_deviation[1], asked.standard_deviation)
    counts = release["sex", "age"].ratio("sex", "F", "M")
    asked = release.ask("ratio of (sex=F) to (sex=M) given age")
    np.testing.assert_allclose(counts.confidence_interval(), (asked.low, asked.high))
    sums = release.sums("pay", given="sex").ratio("sex", "F", "M")
    asked = release.ask("ratio of (sum of pay, sex=F) to (sum of pay, sex=M)")
    np.testing.assert_allclose(sums.confidence_interval(), (asked.low, asked.high))


def coverage(comparisons, seed, count=1000):
    """Return how often intervals hold the truth, for each comparison, over all its cells."""
    workload = [("sex", "age"), ("sex", "pay")]
    exact = simulated(1e12, workload=workload)
    truth = [compare(exact).estimate for compare in comparisons]
    plan = gn.plan(SCHEMA, workload, gn.zCDP(0.02))
    rng, hits = np.random.default_rng(seed), 0
    for _ in range(count):
        release = plan.simulate(PEOPLE, rng)
        found = [compare(release).confidence_interval() for compare in comparisons]
        hits = hits + np.array(
            [np.mean((low <= x) & (x <= high)) for (low, high), x in zip(found, truth, strict=True)]
        )
    return hits / count


@pytest.mark.usefixtures("counted_once")
def test_intervals_cover_as_often_as_their_level_says():
    comparisons = [
        lambda r: r["sex"].ratio("sex", "F", "M"),
        lambda r: r.sums("pay", given="sex").difference("sex", "F", "M"),
        lambda r: r.means("pay", given="sex").difference("sex", "F", "M"),
        lambda r: r.means("pay", given="sex").ratio("sex", "F", "M"),
        lambda r: r.proportions(("sex", "age"), given="sex").difference("sex", "F", "M"),
        lambda r: r.proportions(("sex", "age"), given="sex").ratio("sex", "F", "M"),
    ]
    found = coverage(comparisons, 2)
    assert ((found > 0.94) & (found < 0.965)).all(), found


@pytest.mark.usefixtures("counted_once")
def test_a_wrong_covariance_does_not_cover():
    def wrong(release):
        table = release.proportions("age")
        first, second = table.labels[0][:2]
        found = table.difference("age", first, second)
        return dataclasses.replace(found, covariance=np.zeros_like(found.covariance))

    def right(release):
        table = release.proportions("age")
        return table.difference("age", *table.labels[0][:2])

    found = coverage([wrong, right], 3, count=800)
    assert found[0] < 0.93
    assert found[1] > 0.935


def test_what_is_certain_has_no_error():
    release = simulated()
    shares = release.proportions(("sex", "age"), given="sex")
    assert shares.contrast([[1, 1, 1], [0, 0, 0]]).standard_deviation == 0
    assert shares.contrast(np.zeros((2, 3))) == (0, 0)
    cdf = release.cdf("age", given="sex").difference("sex", "F", "M")
    assert cdf.estimate[-1] == cdf.standard_deviation[-1] == 0
    ends = cdf.confidence_interval()
    assert ends.low[-1] == ends.high[-1] == 0


def test_where_nothing_is_known_intervals_hold_all_values():
    few = PEOPLE[:3]
    means = simulated(1e-4, 5, few).means("pay", given="sex")
    low, high = means.difference("sex", "F", "M").confidence_interval()
    assert (low, high) == (-4900, 4900)
    low, high = means.ratio("sex", "F", "M").confidence_interval()
    assert (low, high) == (0, np.inf)
    counts = simulated(1e-4, 5, few)["sex"].ratio("sex", "F", "M").confidence_interval()
    assert counts.low <= 0
    assert counts.high == np.inf


def test_parts_of_groups_are_compared_too():
    schema = gn.Schema([SEX, GROUPED])
    people = PEOPLE.append_column("town", pa.array(_RNG.choice(list("abcd"), 600)))
    plan = gn.plan(schema, [("sex", "town")], gn.zCDP(0.5))
    release = plan.simulate(people, np.random.default_rng(4))
    table = release.proportions(("sex", "town"), given="land")
    covariance = dense(release, lambda r: r.proportions(("sex", "town"), given="land"))
    w = np.random.default_rng(0).normal(size=table.estimate.shape)
    expected = np.sqrt(w.ravel() @ covariance @ w.ravel())
    assert table.contrast(w).standard_deviation == pytest.approx(expected, rel=1e-4)


def test_a_certain_ratio_is_this_ratio():
    """Queries that are multiples of each other have ratios without any noise."""
    release = gn.plan(gn.Schema([SEX]), 1, gn.zCDP(0.5)).simulate(PEOPLE, np.random.default_rng(0))
    answers = release.answers({"sex": np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])})
    for first, second, ratio in ((1, 2, 1 / 2), (3, 2, 3 / 2), (2, 2, 1)):
        found = answers.ratio("sex", f"query {first}", f"query {second}")
        assert found.estimate == pytest.approx(ratio, abs=1e-9)
        assert found.confidence_interval() == (pytest.approx(ratio), pytest.approx(ratio))


def test_comparisons_can_be_stored_and_shown(tmp_path):
    plan = gn.plan(SCHEMA, [("sex", "age", "pay")], gn.zCDP(0.5))
    plan.release(PEOPLE, out=tmp_path / "out")
    release = gn.TableRelease.load(tmp_path / "out")
    gap = release.means("pay", given=("sex", "age")).difference("sex", "F", "M")
    copied = copy.deepcopy(gap)
    np.testing.assert_array_equal(copied.contrast([1, 0, 0]), gap.contrast([1, 0, 0]))
    pickled = pickle.dumps(gap)
    assert str(tmp_path).encode() not in pickled  # neither a path nor other tables
    assert len(pickle.dumps(release["sex"])) < 3000
    again = pickle.loads(pickled)
    np.testing.assert_array_equal(again.confidence_interval(), gap.confidence_interval())
    assert again.closing == gap.closing
    with pytest.raises(NotAvailableError, match="ask the release for the table again"):
        again.contrast([1, 0, 0])
    assert "(Zou &amp; Donner 2008)" in gap._repr_html_()
    assert gap.top(1).estimate == gap.estimate.max()
    assert gap.to_pandas().attrs["intervals"]["level"] == 0.95
    with pytest.raises(ValueError, match="read-only"):
        gap.estimate[0] = 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: t.difference("sez", "F", "M"), "did you mean 'sex'"),
        (lambda t: t.ratio("sex", "F", "f"), "a label of 'sex'"),
        (lambda t: t.contrast([1, 2, 3]), "weights of shape"),
        (lambda t: t.contrast([1, np.nan]), "finite weights"),
        (lambda t: t.contrasts(3), "weights"),
        (lambda t: t.contrasts(["ab"]), "weights"),
    ],
)
def test_what_does_not_fit_is_refused(call, words):
    with pytest.raises(ParameterError, match=words):
        call(simulated().means("pay", given="sex"))


def test_several_statistics_in_one_table_are_refused():
    from gaussnoise.tables.release.sums import with_means

    release = simulated()
    (term,) = release.plan.domain.terms
    table = with_means(release, term)
    with pytest.raises(NotAvailableError, match="one statistic"):
        table.difference("sex", "F", "M")


def test_large_tables_are_refused():
    schema = gn.Schema([SEX, gn.Attribute("code", range(20_000))])
    plan = gn.plan(schema, [("sex", "code")], gn.zCDP(1))
    table = plan.simulate(pa.table({"sex": ["F"], "code": [1]}), np.random.default_rng(0))[
        "sex", "code"
    ]
    with pytest.raises(ParameterError, match="at most 10000 cells"):
        table.difference("sex", "F", "M")
    with pytest.raises(ParameterError, match="fewer cells at a time"):
        table.contrast(np.ones((2, 20_000)))
