"""Logistic and log-linear models from released tables: as of the rows, within the noise."""

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats

import gaussnoise as gn
from gaussnoise.tables.release.coefficients import Law
from gaussnoise.tables.release.likelihood import solved
from gaussnoise.tables.release.logistic import _Scores
from gaussnoise.tables.release.loglinear import _Likelihood

ROWS = 6000
AGES = ("young", "adult", "old")
SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", list(AGES)),
        gn.Attribute("job", ["no", "yes", "unknown"]),
    ]
)
TRUTH = np.array([-0.5, 0.8, 0.3, -0.6])  # intercept, sex=M, age=adult, age=old


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    sex, age = rng.integers(0, 2, ROWS), rng.integers(0, 3, ROWS)
    X = np.column_stack([np.ones(ROWS), sex, age == 1, age == 2]).astype(float)
    yes = rng.random(ROWS) < scipy.special.expit(X @ TRUTH)
    return X, yes, np.where(yes, 1, 2 * (rng.random(ROWS) < 0.3))


@pytest.fixture(scope="module")
def people(rows):
    X, _, job = rows
    return pa.table(
        {
            "sex": np.array(["F", "M"])[X[:, 1].astype(int)],
            "age": np.array(AGES)[(X[:, 2] + 2 * X[:, 3]).astype(int)],
            "job": np.array(["no", "yes", "unknown"])[job],
        }
    )


@pytest.fixture(scope="module")
def exact(people):
    """A release whose noise is far below one row."""
    return gn.plan(SCHEMA, 3, gn.zCDP(1e4)).release(people)


@pytest.fixture(scope="module")
def noisy(people):
    return gn.plan(SCHEMA, 3, gn.zCDP(0.02)).release(people)


def test_without_noise_it_is_the_logistic_regression_of_others(rows, exact):
    from statsmodels.discrete.discrete_model import Logit

    X, yes, _ = rows
    known = Logit(yes.astype(float), X).fit(disp=0)
    found = exact.logistic("job", "yes", on=["sex", "age"])
    assert found.columns == ("intercept", "sex=M", "age=adult", "age=old")
    assert found.estimate == pytest.approx(known.params, abs=1e-3)
    assert found.population_deviation == pytest.approx(known.bse, rel=1e-3)
    # intervals of score tests and of Wald agree to the order of 1 / rows
    low, high = found.population_interval()
    assert np.column_stack([low, high]) == pytest.approx(
        known.conf_int(), abs=0.1 * known.bse.min()
    )
    score = known.model.score(
        np.append(Logit(yes.astype(float), X[:, :2]).fit(disp=0).params, [0, 0])
    )
    restricted = np.append(Logit(yes.astype(float), X[:, :2]).fit(disp=0).params, [0, 0])
    statistic = score @ np.linalg.solve(-known.model.hessian(restricted), score)
    assert found.test("age").degrees == 2
    # ours is the least over all coefficients of the others, not that at their likelihood's
    assert found.test("age").statistic == pytest.approx(statistic, rel=0.02)


def test_without_noise_it_is_the_log_linear_model_of_others(people, exact):
    from statsmodels.genmod.families import Poisson
    from statsmodels.genmod.generalized_linear_model import GLM

    found = exact.loglinear([("sex", "job"), ("job", "age")])
    counts = np.zeros((2, 3, 3))
    for row in people.to_pylist():
        places = (["F", "M"].index(row["sex"]), AGES.index(row["age"]))
        counts[(*places, ["no", "yes", "unknown"].index(row["job"]))] += 1
    sex, age, job = (
        np.eye(n)[i.ravel()] for n, i in zip(counts.shape, np.indices(counts.shape), strict=True)
    )
    by_name = {"sex=M": sex[:, 1], "age=adult": age[:, 1], "age=old": age[:, 2]}
    by_name |= {"job=yes": job[:, 1], "job=unknown": job[:, 2], "intercept": np.ones(18)}
    X = np.column_stack(
        [np.prod([by_name[part] for part in name.split(", ")], axis=0) for name in found.columns]
    )
    known = GLM(counts.ravel(), X, family=Poisson()).fit()
    assert found.estimate == pytest.approx(known.params, abs=1e-3)
    assert found.population_deviation == pytest.approx(known.bse, rel=1e-3)
    cell = found.predict(sex="M", job="yes", age="old")
    expected = known.fittedvalues.reshape(2, 3, 3)[1, 2, 1]
    assert cell.estimate == pytest.approx(expected, rel=1e-3)


def test_noisy_coefficients_are_those_of_the_rows_within_the_noise(exact, noisy):
    for model in (
        lambda release: release.logistic("job", "yes", on=["sex", "age", "sex:age"]),
        lambda release: release.loglinear([("sex", "age"), ("age", "job")]),
    ):
        known, found = model(exact).estimate, model(noisy)
        low, high = found.confidence_interval(1 - 1e-8)
        assert (low < known).all()
        assert (known < high).all()
        assert (found.population_deviation > found.standard_deviation).all()
        assert 0.02 < found.standard_deviation.max()  # the noise is seen


SCORES = np.array([[1, s, a == 1, a == 2] for s in (0, 1) for a in (0, 1, 2)], dtype=float)
CELLS = np.array([[1, s, j, s * j] for s in (0, 1) for j in (0, 1)], dtype=float)


def logistic_draw(rng, scale, sampled):
    """Equations of logistic regression with correlated noise, and the truth they are about."""
    rows = np.array([70.0, 50, 60, 40, 80, 55])
    chance = scipy.special.expit(SCORES @ TRUTH)
    ones = rng.binomial(rows.astype(int), chance) if sampled else np.round(rows * chance)
    B = scale * np.random.default_rng(5).normal(size=(12, 14)) / math.sqrt(14)
    noise = B @ rng.normal(size=14)
    known = _Scores(SCORES, ones, rows, B @ B.T, sampled)
    return known, replace(known, ones=ones + noise[:6], rows=rows + noise[6:])


def loglinear_draw(rng, scale, sampled):
    """The same for a log-linear model."""
    beta = np.array([4.5, -0.3, 0.4, 0.5])
    counts = np.exp(CELLS @ beta)
    counts = rng.poisson(counts) if sampled else np.round(counts)
    B = scale * np.random.default_rng(6).normal(size=(4, 6)) / math.sqrt(6)
    known = _Likelihood(CELLS, CELLS.T @ counts, B @ B.T, sampled)
    return known, replace(known, margins=known.margins + B @ rng.normal(size=6))


DRAWN = 1500
NOISY = {logistic_draw: ("ones", "rows"), loglinear_draw: ("margins",)}
DRAWS = [(logistic_draw, TRUTH), (loglinear_draw, np.array([4.5, -0.3, 0.4, 0.5]))]


@pytest.mark.parametrize(("draw", "truth"), DRAWS)
def test_the_gradient_of_the_distance_is_its_slope(draw, truth):
    for sampled in (False, True):
        _, equations = draw(np.random.default_rng(3), 3.0, sampled)
        law, step = Law(equations, solved(equations, truth, "test")), 1e-6
        at = law.center + 0.1
        _, gradient = law.distance(at)
        for k, unit in enumerate(np.eye(4)):
            up, down = (law.distance(at + s * step * unit)[0] for s in (1, -1))
            assert gradient[k] == pytest.approx((up - down) / (2 * step), rel=1e-4)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize(("stated", "covers"), [(1.0, True), (0.5, False)])
@pytest.mark.parametrize(("draw", "truth"), DRAWS)
def test_intervals_cover_as_often_as_they_say(draw, truth, stated, covers, sampled):
    """The truth is refused in at most 6.5 of 100; half of the deviation is noticed."""
    rng, draws, missed = np.random.default_rng(2), 200, 0
    limit = scipy.stats.chi2(1).ppf(0.95)
    for _ in range(draws):
        known, equations = draw(rng, 6.0, sampled)
        own = truth if sampled else solved(known, truth, "test")
        if sampled and not covers:  # sampling alone
            equations = replace(equations, covariance=0.1 * equations.covariance, sampled=False)
        equations = replace(equations, covariance=stated**2 * equations.covariance)
        law = Law(equations, solved(equations, truth, "test"))
        missed += law.nearest(np.eye(4)[1:2], own[1:2]) > limit
    assert bool(missed <= scipy.stats.binom(draws, 0.065).ppf(1 - 1e-6)) is covers


@pytest.mark.parametrize(("draw", "truth"), DRAWS)
def test_the_bias_of_first_order_is_taken_off(draw, truth):
    rng, errors, biases = np.random.default_rng(4), [], []
    for _ in range(DRAWN):
        known, equations = draw(rng, 6.0, False)
        for side in (1.0, -1.0):  # what is odd in the noise cancels
            noisy = replace(known, **{a: _between(known, equations, a, side) for a in NOISY[draw]})
            law = Law(noisy, solved(noisy, truth, "test"))
            errors.append(law.center - solved(known, truth, "test"))
            biases.append(noisy.bias(law))
    pairs, corrections = (
        np.array(own).reshape(DRAWN, 2, 4).mean(axis=1) for own in (errors, biases)
    )
    spread = np.std(pairs, axis=0) / math.sqrt(DRAWN)
    before, after = np.abs(pairs.mean(axis=0)), np.abs((pairs - corrections).mean(axis=0))
    assert (before > 6 * spread).all()  # there was one
    assert (after < 0.15 * before + 5 * spread).all()


def _between(known, equations, name, side):
    exact = getattr(known, name)
    return exact + side * (getattr(equations, name) - exact)


def test_predictions_are_probabilities_and_counts(exact, noisy):
    known = exact.logistic("job", "yes", on=["sex", "age"]).predict(sex="M", age="old")
    found = noisy.logistic("job", "yes", on=["age", "sex"]).predict(sex="M", age="old")
    assert 0 < found.low < found.estimate < found.high < 1
    cell = noisy.loglinear([("sex", "age"), "job"]).predict(sex="M", age="old", job="yes")
    for one in (found, cell):  # noise is small: the interval is that of its deviation
        assert one.high - one.low == pytest.approx(2 * 1.96 * one.standard_deviation, rel=0.1)
    assert abs(found.estimate - known.estimate) < 6 * found.standard_deviation
    for wrong in ({"sex": "M"}, {"sex": "M", "age": "none"}, {"sex": "M", "age": "old", "x": 1}):
        with pytest.raises(gn.errors.ParameterError, match="one category for each of sex, age"):
            noisy.logistic("job", "yes", on=["sex", "age"]).predict(**wrong)


def test_a_model_of_released_tables_needs_no_larger_one(people):
    release = gn.plan(SCHEMA, [("sex", "job"), ("age", "job")], gn.zCDP(0.5)).release(people)
    found = release.loglinear([("sex", "job"), ("age", "job")])
    assert found.predict(sex="M", age="old", job="yes").low > 0
    with pytest.raises(gn.errors.GaussNoiseError, match="age"):
        release.loglinear([("sex", "age")])
    with pytest.raises(gn.errors.GaussNoiseError, match="age"):
        release.logistic("job", "yes", on=["sex", "age"])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda r: r.logistic("job", "maybe", on=["sex"]), "expected a label of 'job'"),
        (lambda r: r.logistic("job", "yes", on=["job"]), "different terms without 'job'"),
        (lambda r: r.logistic("job", "yes", on=["sex:age"]), "'age' and 'sex' beside 'sex:age'"),
        (lambda r: r.logistic("job", "yes", on="sex"), "expected a list of attributes"),
        (lambda r: r.loglinear("sex"), "different tables to be fitted"),
        (lambda r: r.loglinear([("sex", "age"), ("age", "sex")]), "different tables"),
        (lambda r: r.logistic("job", "yes", on=["sex"]).test("age"), "terms of the model, 'sex'"),
        (lambda r: r.logistic("job", "yes", on=["sex"]).test(), "got none"),
        (lambda r: r.logistic("job", np.zeros(2), on=["sex"]), "expected a label of 'job'"),
        (lambda r: r.loglinear(None), "different tables to be fitted"),
        (lambda r: r.loglinear([1]), "different tables to be fitted"),
        (lambda r: r.loglinear([()]), "different tables to be fitted"),
    ],
)
def test_what_no_model_can_be_made_of_is_refused(noisy, model, message):
    with pytest.raises(gn.errors.ParameterError, match=message):
        model(noisy)


def test_questions_about_a_model_are_answered_by_it(noisy):
    known = noisy.logistic("job", "yes", on=["sex", "age"])
    for question in (
        "logistic regression of job=yes on sex and age",
        "regression of job is yes on sex, age",
        "regression of yes on sex, age",
    ):
        answer = noisy.ask(question)
        assert answer.estimate.tolist() == known.estimate.tolist()
        assert "logistic regression of job=yes on sex, age" in str(answer)
    with pytest.raises(gn.errors.GaussNoiseError, match="clip"):
        noisy.ask("regression of job on sex")


def test_noise_that_leaves_nothing_is_refused_with_a_budget(people):
    release = gn.plan(SCHEMA, 3, gn.zCDP(1e-6)).release(people)
    with pytest.raises(gn.errors.ParameterError, match="larger budget"):
        release.logistic("job", "yes", on=["sex", "age"])
    with pytest.raises(gn.errors.ParameterError, match="larger budget"):
        release.loglinear([("sex", "age", "job")])


def test_a_category_that_never_comes_has_no_coefficient(people):
    """All rows of a sex have the same job: its coefficient is infinite, and is refused."""
    same = people.set_column(2, "job", pa.array(["yes"] * 100 + ["no"] * (ROWS - 100)))
    same = same.set_column(0, "sex", pa.array(["F"] * 3000 + ["M"] * (ROWS - 3000)))
    release = gn.plan(SCHEMA, 3, gn.zCDP(1e4)).release(same)
    for model in (
        lambda: release.logistic("job", "yes", on=["sex"]),
        lambda: release.loglinear([("sex", "job")]),
    ):
        with pytest.raises(gn.errors.ParameterError, match="put together"):
            model()


def test_several_rows_of_a_person_are_no_sample(people):
    plan = gn.plan(SCHEMA, 2, gn.zCDP(0.5), rows_per_person=3)
    for found in (
        plan.release(people).logistic("job", "yes", on=["sex"]),
        plan.release(people).loglinear(["sex", "job"]),
    ):
        assert "not independent" in str(found)
        with pytest.raises(gn.errors.ParameterError, match="several rows of a person, up to 3"):
            found.test("sex")


@pytest.mark.parametrize("public", [(), ("sex", "age")])
def test_numbers_without_noise_are_held(people, public):
    """Under replacement, the rows are exact, and so are tables of public attributes."""
    plan = gn.plan(SCHEMA, 2, gn.zCDP(0.05), neighbors="replace", public=public)
    found = plan.release(people).loglinear([("sex", "age"), "job"])
    low, high = found.confidence_interval()
    assert np.isfinite([low, high]).all()
    # to first order, where noise is a thousandth of the counts; the variance of exact numbers
    # makes intervals a little wider
    half = 1.96 * found.standard_deviation
    assert (high - low) / 2 == pytest.approx(half, rel=0.05, abs=1e-5)
    cell = found.predict(sex="F", age="old", job="no")
    assert cell.low < cell.estimate < cell.high < 1.2 * cell.low
    assert "inf" not in str(found)


def test_likelihoods_far_from_their_largest_value_are_found():
    """Newton's method alone goes astray from coefficients of zero in these tables."""
    counts = np.array([[[300000, 40], [60, 30000]], [[50, 200000], [70, 45]]], dtype=float)
    X = np.array([[1, a, b, a * b] for a in (0, 1) for b in (0, 1)], dtype=float)
    ones, rows = counts[..., 1].ravel(), counts.sum(axis=-1).ravel()
    equations = _Scores(X, ones, rows, np.zeros((8, 8)), False)
    known = np.linalg.solve(X, np.log(ones / (rows - ones)))
    assert solved(equations, np.zeros(4), "test") == pytest.approx(known, abs=1e-6)
    rng = np.random.default_rng(8)
    for _ in range(20):
        rows = np.exp(rng.uniform(5, 12, 10))
        ones = rows * rng.uniform(0.05, 0.95, 10)
        X = np.column_stack([np.ones(10), np.eye(10)[:, 1:]])
        known = np.linalg.solve(X, np.log(ones / (rows - ones)))
        found = solved(_Scores(X, ones, rows, np.zeros((20, 20)), False), np.zeros(10), "test")
        assert found == pytest.approx(known, abs=1e-6)
        margins = _Likelihood(X, X.T @ rows, np.zeros((10, 10)), False)
        start = np.append(math.log(rows.mean()), np.zeros(9))
        found = solved(margins, start, "test")
        assert found == pytest.approx(np.linalg.solve(X, np.log(rows)), abs=1e-6)


def test_a_term_is_not_tested_without_its_interactions(noisy):
    found = noisy.logistic("job", "yes", on=["sex", "age", "sex:age"])
    with pytest.raises(gn.errors.ParameterError, match="'sex:age' beside 'age'"):
        found.test("age")
    assert found.test("age", "age:sex").degrees == 4
    assert repr(found) == "LogisticRegression(job=yes on sex, age, sex:age: 6 coefficients)"


def test_names_with_colons_are_one_attribute():
    schema = gn.Schema([gn.Attribute(name, ["x", "y"]) for name in ("a", "c:d", "v")])
    rng = np.random.default_rng(1)
    rows = {name: np.array(["x", "y"])[rng.integers(0, 2, 4000)] for name in schema.names}
    release = gn.plan(schema, 3, gn.zCDP(1)).release(pa.table(rows))
    found = release.logistic("v", "y", on=["a", "c:d", "a:c:d"])
    assert found.terms == ("a", "c:d", "a:c:d")
    assert found.test("a:c:d").degrees == 1


def test_printed_models(noisy):
    for found, title in (
        (noisy.logistic("job", "yes", on=["sex"]), "Logistic regression of job=yes on sex: "),
        (noisy.loglinear(["sex", "job"]), "Log-linear model of sex, job: "),
    ):
        lines = str(found).splitlines()
        assert lines[0].startswith(title)
        assert max(map(len, lines)) <= 80
        assert found.to_frame().column_names[:2] == ["coefficient", "estimate"]
    assert repr(found) == "LogLinearModel(sex, job: 4 coefficients)"
