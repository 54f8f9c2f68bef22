"""Tests of combined releases: they equal generalised least squares on all cells."""

import copy
import dataclasses
import functools
import pickle

import numpy as np
import pyarrow as pa
import pytest
import scipy

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.tables.release.text import numbers_text

SEX, AGE = gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])
JOB = gn.Attribute("job", ["a", "b", "c"], other="?")
SCHEMA = gn.Schema([SEX, AGE, JOB])
_RNG = np.random.default_rng(1)
PEOPLE = pa.table(
    {
        "sex": _RNG.choice(["F", "M"], 500),
        "age": _RNG.uniform(0, 120, 500),
        "job": _RNG.choice(["a", "b", "c", "d"], 500),
        "who": np.arange(500),
    }
)

# workloads: strategies of counts, one solved strategy, and one that depends on the measured set
COUNTS, PREFIXES = [("sex", "age"), "job"], [{"age": "prefix", "sex": None}]
IN_SETS = [{"job": None, "age": "prefix"}, {"job": [[1, 1, 0, 0], [0, 0, 1, 1]], "sex": None}]


def released(workload, rho, seed, schema=SCHEMA, **options):
    plan = gn.plan(schema, workload, gn.zCDP(rho), **options)
    return plan.simulate(PEOPLE, np.random.default_rng(seed))


def margins(names, marginals, schema=SCHEMA):
    """Return the matrix from the full table (axes in SCHEMA's order) to the cells of marginals."""
    rows = []
    for marginal in marginals:
        parts = (
            np.eye(a.size) if a.name in marginal else np.ones((1, a.size))
            for a in SCHEMA.attributes
        )
        ordered = [name for name in SCHEMA.names if name in marginal]
        matrix = functools.reduce(np.kron, parts)
        sizes = [dict(zip(SCHEMA.names, SCHEMA.sizes, strict=True))[name] for name in ordered]
        cells = np.arange(len(matrix)).reshape(sizes)
        rows.append(matrix[cells.transpose([ordered.index(n) for n in marginal]).ravel()])
    return np.vstack(rows)


def least_squares(releases):
    """Return the best estimate of the full table (as far as determined) and its covariance."""
    information, score = 0.0, 0.0
    for release in releases:
        A = margins(SCHEMA.names, list(release))
        F = release.covariance.factor()
        inverse = np.linalg.pinv(F @ F.T, rcond=1e-10, hermitian=True)
        y = np.concatenate([release[names].estimate.ravel() for names in release])
        information = information + A.T @ inverse @ A
        score = score + A.T @ inverse @ y
    covariance = np.linalg.pinv(information, rcond=1e-10, hermitian=True)
    return covariance @ score, covariance


def pair():
    """Return two releases that overlap, with schemas in different orders."""
    one = released([("sex", "age"), "job"], 0.01, 1)
    two = released([("job", "age"), ("age",), ("sex",)], 0.03, 2, gn.Schema([JOB, AGE, SEX]))
    return [one, two]


def prefixes():
    """Return two releases whose attribute is measured for cumulative counts."""
    workload = [{"age": "prefix", "sex": "identity"}, {"age": "prefix", "job": "identity"}]
    return [released(workload, rho, seed) for rho, seed in ((0.01, 1), (0.05, 2))]


@pytest.mark.parametrize(
    ("releases", "wanted"),
    [
        (pair(), [("sex", "age"), ("job",), ("age", "job"), ("age",), ("sex",)]),
        (prefixes(), [("sex", "age"), ("age", "job")]),
    ],
    ids=["cells", "prefix"],
)
def test_the_result_is_generalised_least_squares_on_all_cells(releases, wanted):
    both = gn.combine(releases)
    full, covariance = least_squares(releases)
    assert set(map(frozenset, both)) == set(map(frozenset, wanted))
    for names in wanted:
        A = margins(SCHEMA.names, [names])
        np.testing.assert_allclose(both[names].estimate.ravel(), A @ full, rtol=1e-7)
        deviation = np.sqrt(np.diagonal(A @ covariance @ A.T))
        np.testing.assert_allclose(both[names].standard_deviation.ravel(), deviation, rtol=1e-7)
    # a contrast of two tables, of which no release has both
    weights = {("sex", "age"): _RNG.normal(size=(2, 3)), ("age", "job"): _RNG.normal(size=(3, 4))}
    w = sum(margins(SCHEMA.names, [n]).T @ w.ravel() for n, w in weights.items())
    found = both.contrast(weights)
    assert found.estimate == pytest.approx(w @ full)
    assert found.standard_deviation**2 == pytest.approx(w @ covariance @ w)
    # each release alone has a larger error
    for release in releases:
        for names in release:
            assert (both[names].standard_deviation < release[names].standard_deviation).all()


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_releases_of_one_plan_have_their_mean_and_half_the_variance(neighbors):
    one, two = (released(2, 0.01, seed, neighbors=neighbors) for seed in (3, 4))
    both = gn.combine([one, two])
    for names in one:
        mean = (one[names].estimate + two[names].estimate) / 2
        np.testing.assert_allclose(both[names].estimate, mean)
        half = one[names].standard_deviation / np.sqrt(2)
        np.testing.assert_allclose(both[names].standard_deviation, half)
    assert both.rho_charged == one.rho_charged + two.rho_charged
    if neighbors == "replace":
        assert float(both[()].estimate) == PEOPLE.num_rows
        assert float(both[()].standard_deviation) == 0


def test_errors_have_the_stated_variance():
    truth = gn.combine([released(2, 1e9, 5), released(2, 1e9, 6)])["sex"].estimate
    plans = [gn.plan(SCHEMA, w, gn.zCDP(r)) for w, r in ((["sex"], 0.01), ([("sex", "age")], 0.04))]
    rng, errors = np.random.default_rng(9), []
    for _ in range(250):
        both = gn.combine([plan.simulate(PEOPLE, rng) for plan in plans])["sex"]
        errors.append((both.estimate - truth) / both.standard_deviation)
    assert abs(np.mean(errors)) < 4 / np.sqrt(500)
    assert np.var(errors) == pytest.approx(1, abs=4 * np.sqrt(2 / 500))


def test_a_combination_answers_as_a_release_does():
    both = gn.combine(pair())
    assert repr(both).startswith("TableRelease(NOT PRIVATE, a simulation: 5 marginals combined")
    assert both.proportions(("sex", "age"), given="age").estimate.shape == (2, 3)
    assert "share of job" in both.ask("share of job given age").meaning
    assert both.quantiles("age", [0.5]).low.shape == (1,)
    assert {m.attributes for m in both.measurements()} >= {(), ("age", "job")}
    assert both.dp_event() is not None
    assert [s.marginals for s in both.plan.sources] == [tuple(release) for release in pair()]
    again = pickle.loads(pickle.dumps(copy.copy(both)))
    np.testing.assert_array_equal(again["sex"].estimate, both["sex"].estimate)
    with pytest.raises(ParameterError, match="no planned marginal contains sex × job"):
        both["sex", "job"]
    with pytest.raises(ParameterError, match="combined releases have no plan"):
        _ = both.plan.bound


def test_what_was_combined_can_be_combined_again():
    one, two, three = (released(1, 0.01, seed) for seed in (1, 2, 3))
    nested, flat = gn.combine([gn.combine([one, two]), three]), gn.combine([one, two, three])
    np.testing.assert_allclose(nested["sex"].estimate, flat["sex"].estimate)
    assert len(nested.plan.sources) == 3
    with pytest.raises(ParameterError, match="got one twice"):
        gn.combine([gn.combine([one, two]), two])


def test_it_is_made_again_from_the_releases_on_disk(tmp_path):
    plan = gn.plan(SCHEMA, 2, gn.zCDP(0.1))
    releases = [plan.release(PEOPLE) for _ in range(2)]
    loaded = []
    for k, release in enumerate(releases):
        release.save(tmp_path / str(k))
        loaded.append(gn.TableRelease.load(tmp_path / str(k)))
    both, again = gn.combine(releases), gn.combine(loaded)
    assert both.plan.sources == again.plan.sources
    assert both.private
    with pytest.raises(ParameterError, match="got one twice"):
        gn.combine([releases[0], loaded[0]])


def noisier(release, factor):
    """Return a release that claims ``factor`` times the noise that it has."""
    variances = {T: v * factor**2 for T, v in release.covariance.variances.items()}
    covariance = type(release.covariance)(release.plan.tables, variances)
    return dataclasses.replace(release, covariance=covariance)


@pytest.mark.parametrize("workload", [COUNTS, PREFIXES, IN_SETS])
def test_the_test_of_same_rows_is_the_squared_length_of_the_difference(workload):
    one, two = (released(workload, rho, seed) for rho, seed in ((0.01, 1), (0.04, 2)))
    found = gn.combine([one, two]).plan.agreement
    gap = np.concatenate([(one[n].estimate - two[n].estimate).ravel() for n in one])
    factors = [release.covariance.factor() for release in (one, two)]
    covariance = sum(F @ F.T for F in factors)
    expected = gap @ np.linalg.pinv(covariance, rcond=1e-10, hermitian=True) @ gap
    assert found.chi_squared == pytest.approx(expected, rel=1e-7)
    assert found.degrees_of_freedom == np.linalg.matrix_rank(covariance, tol=1e-8)
    assert found.p_value == pytest.approx(scipy.stats.chi2.sf(expected, found.degrees_of_freedom))


@pytest.mark.usefixtures("counted_once")
@pytest.mark.parametrize("workload", [COUNTS, PREFIXES, IN_SETS])
def test_noise_alone_is_refused_as_often_as_stated(workload):
    plans = [gn.plan(SCHEMA, workload, gn.zCDP(rho)) for rho in (0.01, 0.02, 0.05)]
    rng, found = np.random.default_rng(3), []
    for _ in range(300):
        parts = [plan.simulate(PEOPLE, rng) for plan in plans]
        found.append(gn.combine([gn.combine(parts[:2]), parts[2]]).plan.agreement.p_value)
        found.append(gn.combine(parts).plan.agreement.p_value)
    assert scipy.stats.kstest(found[::2], "uniform").pvalue > 1e-3
    assert scipy.stats.kstest(found[1::2], "uniform").pvalue > 1e-3


@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_a_wrong_covariance_is_noticed_by_the_test_of_that(factor):
    plan, rng = gn.plan(SCHEMA, 2, gn.zCDP(0.01)), np.random.default_rng(4)
    pairs = [[noisier(plan.simulate(PEOPLE, rng), factor) for _ in "ab"] for _ in range(60)]
    found = [gn.combine(pair, same_rows="tested").plan.agreement for pair in pairs]
    ratios = [a.chi_squared / a.degrees_of_freedom for a in found]
    assert np.mean(ratios) == pytest.approx(factor**-2, rel=0.1)


def test_other_rows_are_noticed():
    plan, rng = gn.plan(SCHEMA, 2, gn.zCDP(1)), np.random.default_rng(5)
    today, later = plan.simulate(PEOPLE, rng), plan.simulate(PEOPLE[:450], rng)
    with pytest.raises(ParameterError, match=r"more than their noise, most in .* degrees of"):
        gn.combine([today, later])
    both = gn.combine([today, later], same_rows="assumed")
    assert both.plan.agreement is None
    with pytest.raises(ParameterError, match="same_rows to be 'tested' or 'assumed'"):
        gn.combine([today, later], same_rows="yes")


def test_where_rows_of_persons_are_drawn_the_same_rows_must_be_assumed():
    many = PEOPLE.set_column(3, "who", pa.array(np.arange(500) // 50))
    plan = gn.plan(SCHEMA, 1, gn.zCDP(1e6), person="who", rows_per_person=2)
    drawn = [plan.simulate(many, np.random.default_rng(seed)) for seed in range(20)]
    assert len({tuple(release["age"].estimate.round()) for release in drawn}) > 1  # of other rows
    one, two, *_ = drawn
    with pytest.raises(ParameterError, match=r"draws anew .*'who'.* same_rows=.assumed. if all"):
        gn.combine([one, two])
    assert gn.combine([one, two], same_rows="assumed").plan.agreement is None


def test_numbers_are_combined_too():
    schema = gn.Schema([SEX, gn.Attribute("age", clip=[0, 120])])
    rng = np.random.default_rng(6)
    plans = [gn.plan(schema, [("sex", "age")], gn.zCDP(rho)) for rho in (0.1, 0.3)]
    one, two = (plan.simulate(PEOPLE, rng) for plan in plans)
    both = gn.combine([one, two])
    sums = [release.sums("age", given="sex") for release in (one, two, both)]
    w = [s.standard_deviation**-2 for s in sums]
    np.testing.assert_allclose(w[2], w[0] + w[1], rtol=1e-6)
    assert both.means("age").estimate == pytest.approx(60, abs=10)
    coarse = dataclasses.replace(two, query=dataclasses.replace(two.query, unit=2**10))
    free = [gn.combine([one, r]).plan.agreement.degrees_of_freedom for r in (two, coarse)]
    assert free == [4, 2]  # sums that are rounded to other multiples are not compared
    counts = gn.plan(schema, [("sex",)], gn.zCDP(1)).simulate(PEOPLE, rng)
    assert numbers_text(gn.combine([one, counts])) == numbers_text(one)  # counts have no steps
    weight = gn.Weight("who", most=500)
    weighted = gn.plan(schema, [("sex", "age")], gn.zCDP(1), weight=weight).simulate(PEOPLE, rng)
    with pytest.raises(ParameterError, match="one weight of rows"):
        gn.combine([one, weighted])


def other_age():
    return gn.Schema([SEX, gn.Attribute("age", edges=[0, 20, 65, 120])])


@pytest.mark.parametrize(
    ("second", "words"),
    [
        (lambda one: one, "one twice"),
        (lambda one: released(1, 1, 2, neighbors="replace"), "one neighbouring relation"),
        (lambda one: released(1, 1, 2, rows_per_person=3), "one number of rows per person"),
        (lambda one: released(1, 1, 2, person="who"), "one column of persons"),
        (
            lambda one: released(1, 1, 2, other_age()),
            "'age' with the same categories, edges or interval .* has other edges .* ask one of",
        ),
        (
            lambda one: released([{"age": "prefix"}], 1, 2),
            "'age' to be measured by the same contrasts .* hint: plan the same queries of 'age'",
        ),
        (lambda one: 3, "list of releases"),
    ],
)
def test_releases_that_do_not_fit_are_refused(second, words):
    one = released(1, 1, 1)
    with pytest.raises(gn.GaussNoiseError, match=words):
        gn.combine([one, second(one)])
    with pytest.raises(ParameterError, match="two releases or more"):
        gn.combine([one])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([{"F": ["x"]}, {"M": ["x"]}], "counts a spelling as another category"),
        ([{"F": ["x"]}, {"F": ["y"]}], "has spellings in one release that its catch-all counts"),
        ([{"F": ["x"]}, {}], "has spellings in one release that its catch-all counts"),
        ([{"F": ["x", "y"]}, {"F": ["y", "x"]}], None),
    ],
)
def test_spellings_that_count_differently_are_refused(options, words):
    """Else a row that counts in one cell of a release would count in another of the next one."""
    sexes = [gn.Attribute("sex", ["F", "M"], other="?", spellings=own) for own in options]
    both = [released([("sex",)], 1, k, gn.Schema([sex])) for k, sex in enumerate(sexes)]
    if words is None:
        assert len(gn.combine(both)) == 1
    else:
        with pytest.raises(ParameterError, match=words):
            gn.combine(both)


def test_other_rows_are_refused():
    names = "ab"
    schema = gn.Schema([gn.Attribute(name, [0, 1]) for name in names])
    rows = {"a": [0, 1, None, 1], "b": [0, 0, 1, None]}
    plans = {name: gn.plan(schema, [name], gn.zCDP(1)) for name in names}
    rng = np.random.default_rng(0)
    a, b = (plans[n].simulate(pa.table(rows), rng, on_outside="drop") for n in names)
    with pytest.raises(ParameterError, match=r"same rows.* outside a, b .*all_rows_fit=True"):
        gn.combine([a, b])
    with pytest.raises(ParameterError, match="all_rows_fit to be True or False"):
        gn.combine([a, b], all_rows_fit="yes")
    assert gn.combine([a, b], all_rows_fit=True).plan.fits == ("a", "b")
    whole = pa.table({name: [0, 1, 1] for name in names})
    kept = [plans[n].simulate(whole, rng, on_outside="refuse") for n in names]
    assert len(gn.combine(kept)) == 2
    assert gn.combine(kept, all_rows_fit=True).plan.fits == ()  # nothing had to be assumed
    # the release that refuses such rows shows that there are none to drop
    dropping = plans["a"].simulate(whole, rng, on_outside="drop")
    assert gn.combine([kept[0], dropping]).on_outside == "drop"
    fewer = [
        gn.plan(schema, 1, gn.zCDP(1), neighbors="replace").simulate(t, rng)
        for t in (whole, whole[:2])
    ]
    with pytest.raises(ParameterError, match="different public numbers of rows"):
        gn.combine(fewer)


def test_public_tables_stay_exact_and_must_be_alike():

    options = {"neighbors": "replace", "public": ("sex",)}
    one = released([("sex", "age")], 0.01, 1, **options)
    two = released([("age", "sex")], 0.01, 2, gn.Schema([AGE, SEX]), **options)
    both = gn.combine([one, two])
    assert not both["sex"].standard_deviation.any()
    np.testing.assert_allclose(both["sex"].estimate, one["sex"].estimate, rtol=1e-12)
    found, parts = both["sex", "age"], (one["sex", "age"], two["age", "sex"])
    np.testing.assert_allclose(
        found.estimate, (parts[0].estimate + parts[1].estimate.T) / 2, rtol=1e-9
    )
    np.testing.assert_allclose(
        found.standard_deviation, parts[0].standard_deviation / 2**0.5, rtol=1e-9
    )
    with pytest.raises(ParameterError, match="one set of public attributes"):
        gn.combine([one, released([("sex", "age")], 0.01, 2, neighbors="replace")])
    plan = gn.plan(SCHEMA, [("sex", "age")], gn.zCDP(0.01), **options)
    others = plan.simulate(PEOPLE[1:], _RNG)
    with pytest.raises(ParameterError, match="different public numbers of rows"):
        gn.combine([one, others])


def test_tables_of_a_stream_are_refused():
    plan = gn.plan(SCHEMA, 1, gn.zCDP(0.1), over=gn.streams.Ticks(4))
    so_far = plan.simulate([PEOPLE] * 2, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="of a stream"):
        gn.combine([so_far.total(), so_far.period(1)])


def test_releases_that_were_asked_for_the_total_are_combined():
    workload = [("sex", "age"), ()]
    releases = [released(workload, 0.3, 1), released(workload, 0.5, 2)]
    total = gn.combine(releases)[()]
    assert total.estimate.shape == ()
    deviations = np.array([float(one[()].standard_deviation) for one in releases])
    weights = deviations**-2 / sum(deviations**-2)
    expected = sum(w * float(one[()].estimate) for w, one in zip(weights, releases, strict=True))
    assert float(total.estimate) == pytest.approx(expected)
