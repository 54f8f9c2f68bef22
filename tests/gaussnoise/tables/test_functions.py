"""Functions of released numbers, asked of releases."""

import math
import pickle

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise import indicators
from gaussnoise.numerics.polynomials import algebraic, unbiased

TOWNS = list("ABCDE")
SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("town", TOWNS),
        gn.Attribute("pay", clip=[0, 10000], base={"kind": "moments", "degrees": [0, 1, 2]}),
    ]
)
EVENTS = np.array([2.0, 3, 5, 8, 13])


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], 6000),
            "town": rng.choice(TOWNS, 6000, p=[0.4, 0.3, 0.15, 0.1, 0.05]),
            "pay": rng.gamma(2, 1500, 6000),
        }
    )


@pytest.fixture(scope="module")
def plan():
    return gn.plan(SCHEMA, [("sex", "town"), ("sex", "pay")], gn.zCDP(0.5))


@pytest.fixture(scope="module")
def release(plan, people):
    return plan.release(people)


def holds(found, truth):
    low, high = found.confidence_interval(1 - 1e-9)  # a false alarm in 10⁹ runs
    return low < truth < high


def test_indicators_of_tables(release, people):
    frame = people.to_pandas()
    towns = frame["town"].value_counts().sort_index().to_numpy()
    both = frame.value_counts(["sex", "town"]).sort_index().to_numpy().reshape(2, 5)

    def shares(n):
        return indicators.standardized_rate(n[0], n.sum(axis=0), EVENTS)

    known = [
        (indicators.concentration, "town", np.sum(towns**2) / 6000**2),
        (indicators.entropy, "town", -np.sum(towns / 6000 * np.log(towns / 6000))),
        (shares, ("sex", "town"), EVENTS @ (both[0] / both.sum(axis=0)) / EVENTS.sum()),
        (
            lambda n: indicators.odds_ratio(n[:, :2]),
            ("sex", "town"),
            both[0, 0] * both[1, 1] / (both[0, 1] * both[1, 0]),
        ),
    ]
    for f, table, truth in known:
        found = release.function(f, table)
        assert holds(found, truth)
        assert abs(found.estimate - truth) < 7 * found.standard_deviation


def test_variances_are_of_the_records_that_have_a_number(people):
    sex, pay = people["sex"].to_numpy(zero_copy_only=False), people["pay"].to_numpy().copy()
    pay[::4] = np.nan
    for low in (0, 10**6):  # far from zero, squares of values have no digits left
        base = {"kind": "moments", "degrees": [0, 1, 2]}
        number = gn.Attribute("pay", clip=[low, low + 10000], base=base, other="none")
        schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), number])
        table = pa.table({"sex": sex, "pay": low + pay})
        release = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.5)).release(table)
        kept = np.clip(pay, 0, 10000)
        assert holds(release.variance("pay"), np.nanvar(kept))
        assert holds(release.variance("pay", sex="F"), np.nanvar(kept[sex == "F"]))
        with pytest.raises(gn.errors.ParameterError, match="a clipped number with squares"):
            release.variance("sex")


def test_several_tables_are_taken_with_their_covariance(release):
    town, both = release["town"], release["sex", "town"]
    nothing = release.function(lambda n, m: n[0] - m[:, 0].sum(), town, both)
    assert nothing.standard_deviation < 1e-6 * town.standard_deviation[0]
    assert nothing.estimate == pytest.approx(0, abs=1e-6)


def test_linear_functions_are_contrasts(release):
    weights = np.arange(5.0)
    found = release.function(lambda n: n @ weights, "town")
    known = release.contrast({"town": weights})
    assert (found.estimate, found.standard_deviation) == pytest.approx(known)
    assert found.confidence_interval(0.9) == pytest.approx(known.confidence_interval(0.9), abs=1e-3)
    assert found.method == "a linear form: exact"
    same = release.function(lambda x: x, {"town": weights})
    assert same.estimate == pytest.approx(known.estimate)


def test_means_and_shares_are_ratios(release):
    means = release.means("pay", given="sex")
    found = release.function(lambda m: m[0], means)
    assert found.estimate == pytest.approx(means.estimate[0])
    assert found.confidence_interval() == pytest.approx(
        [end[0] for end in means.confidence_interval()], abs=1e-3
    )
    assert found.method == "a ratio of linear forms: exact (Fieller 1954)"
    shares = release.proportions(("sex", "town"), given="town")
    assert release.function(lambda p: p[1, 2], shares).estimate == pytest.approx(
        shares.estimate[1, 2]
    )


def test_polynomials_of_higher_degree_are_unbiased(release):
    y, v = release["town"].estimate[0], release["town"].standard_deviation[0] ** 2
    found = release.function(lambda n: n[0] ** 3, "town")
    assert found.estimate == pytest.approx(y**3 - 3 * v * y)
    assert found.method.startswith("by the quadratic function")


def terms_of(form):
    """Return a quadratic form as a polynomial: coefficients by variables."""
    k = len(form.linear)
    terms = {(i, j): form.square[i, j] * (2 - (i == j)) for i in range(k) for j in range(i, k)}
    terms |= {(i,): form.linear[i] for i in range(k)}
    return {m: c for m, c in {**terms, (): form.constant}.items() if c}


def polynomials(release):
    """Yield all polynomials that indicators are, or are ratios of: with what a release estimates.

    Each comes as a name, its coefficients, the estimate, and the numbers with their covariance.
    """
    expected, population = np.array([50.0, 40, 30]), np.array([60.0, 40, 20])
    one, two = {"pay": [1.0, 2, 1]}, {"hours": [1.0, 2, 1]}
    both = release.function(lambda x, y: x * y, one, two)
    ratios = {
        "variance": release.variance("pay", sex="F"),
        "covariance": release.covariance_of("pay", "hours"),
        "product of sums": both,
    }
    for name, f, table in (
        ("concentration", indicators.concentration, "town"),
        ("odds ratio", lambda n: indicators.odds_ratio(n[:, :2]), ("sex", "town")),
        (
            "standardised rate of exact numbers",
            lambda n: indicators.standardized_rate(n, population, [3, 2, 1]),
            "town",
        ),
        ("price index", lambda n: indicators.price_index(n[0], n[1], [1, 2, 3]), ("sex", "town")),
        ("sum of products", lambda n: (n[0] * n[1]).sum(), ("sex", "town")),
        ("chi-squared", lambda n: ((n - expected) ** 2 / expected).sum(), "town"),
        (
            "departure from independence",
            lambda n: n[0, 0] * n.sum() - n[0].sum() * n[:, 0].sum(),
            ("sex", "town"),
        ),
    ):
        ratios[name] = release.function(f, table)
    for name, found in ratios.items():
        own = found._ratio
        parts = zip(("top", "bottom"), (own.top, own.bottom), own._parts, strict=True)
        for part, form, estimate in parts:
            yield f"{name}, {part}", terms_of(form), estimate, own.y, own.covariance
    town = ratios["concentration"]._ratio
    for name, f in (
        ("third moment", lambda n: (n**3).sum()),
        ("product of three", lambda n: n[0] * n[1] * n[2]),
        ("fourth moment", lambda n: (n**4).sum()),
    ):
        estimate = release.function(f, "town").estimate
        yield name, algebraic(f, town.y).top, estimate, town.y, town.covariance


def test_no_polynomial_has_a_bias_of_three_standard_errors_in_a_million_draws():
    """The mean of estimates over draws of the noise; without their correction, most are off."""
    rng, names = np.random.default_rng(1), ["sex", "town", "pay", "hours"]
    numbers = {"clip": [0, 10], "base": {"kind": "moments", "degrees": [0, 1, 2]}}
    schema = gn.Schema(
        [gn.Attribute("sex", ["F", "M"]), gn.Attribute("town", ["A", "B", "C"])]
        + [gn.Attribute(name, **numbers) for name in names[2:]]
    )
    plan = gn.plan(schema, [("sex", "town"), ("sex", "pay"), ("pay", "hours")], gn.zCDP(0.05))
    values = [
        rng.choice(["F", "M"], 120),
        rng.choice(["A", "B", "C"], 120),
        *rng.uniform(0, 10, (2, 120)),
    ]
    release = plan.simulate(pa.table(dict(zip(names, values, strict=True))), rng)
    off, draws, blocks = {}, 10**5, 10
    for name, terms, estimate, y, covariance in polynomials(release):
        assert unbiased(terms, y, covariance) == pytest.approx(estimate, rel=1e-9), name
        root = np.linalg.cholesky(covariance)  # the same on all processors, but for rounding
        truth = unbiased(terms, y, 0 * covariance)  # the polynomial of a mean that is y
        sums = np.zeros(3)
        for _ in range(blocks):
            x = y[:, None] + root @ rng.normal(size=(root.shape[1], draws))
            away = np.broadcast_to(unbiased(terms, x, covariance) - truth, draws)
            plain = np.broadcast_to(unbiased(terms, x, 0 * covariance) - truth, draws)
            sums += away.sum(), (away**2).sum(), plain.sum()
        mean, square, uncorrected = sums / (blocks * draws)
        error = math.sqrt(max(square - mean**2, 0) / (blocks * draws))
        assert abs(mean) <= 3 * error + 1e-9 * abs(truth), (name, mean / error)
        off[name] = abs(uncorrected) / error if error else 0.0
    curved = [name for name, terms in off.items() if terms > 10]
    assert len(curved) >= 8, off  # without the correction; others are linear, or nearly so


def test_no_interval_where_the_noise_is_too_large(plan, people):
    few = plan.release(people.slice(0, 5))
    found = few.function(lambda n: np.exp(n[0]), "town")
    assert found.confidence_interval() == (-math.inf, math.inf)
    assert found.method.startswith("no interval: ")
    outside = few.function(lambda n: np.log(n - n.max())[0], "town")
    assert outside.confidence_interval() == (-math.inf, math.inf)


def test_no_interval_of_a_function_with_steps(release):
    town = release["town"]
    step = town.estimate[0] + 1.5 * town.standard_deviation[0]
    found = release.function(lambda n: np.floor(n[0] / step), "town")
    assert found.confidence_interval() == (-math.inf, math.inf)
    assert found.method.endswith("it changes by steps")
    same = release.function(lambda n: np.floor(n[0] / 1e9), "town")
    assert same.confidence_interval() == (0, 0)


def test_printed_functions_say_their_method_and_simulations_that_they_are_not_private(
    plan, release, people
):
    printed = str(release.function(indicators.concentration, "town"))
    assert "95 % interval" in printed
    assert "saddle point" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert "NOT PRIVATE" not in printed
    simulated = plan.simulate(people, rng=np.random.default_rng(0))
    assert "NOT PRIVATE" in str(simulated.function(indicators.concentration, "town"))


def test_estimates_can_be_pickled(release):
    found = release.function(indicators.concentration, "town")
    again = pickle.loads(pickle.dumps(found))
    assert again.confidence_interval() == found.confidence_interval()


def test_errors_say_what_is_expected(plan, release, people):
    other = plan.release(people)
    cases = [
        ((indicators.concentration,), "expected a function and the tables"),
        (("town", "town"), "expected a function and the tables"),
        ((indicators.concentration, other["town"]), "expected tables of this release"),
        ((lambda n: n, "town"), "returns one number"),
        ((lambda n: "7", "town"), "returns one number"),
        ((lambda n: None, "town"), "returns one number"),
        ((lambda n: np.sqrt(n[0] + 1j), "town"), "returns one number"),
        ((indicators.odds_ratio, "town"), "expected a table of shape"),
        ((indicators.entropy, "pay"), "got the clipped number 'pay'"),
        ((lambda n: n[0], "nowhere"), "nowhere"),
        ((lambda n, m: indicators.life_expectancy(n, m, [1]), "town", "town"), "age groups"),
    ]
    for arguments, said in cases:
        with pytest.raises(gn.errors.ParameterError, match=said):
            release.function(*arguments)
    with pytest.raises(gn.errors.ParameterError, match="level"):
        release.function(indicators.concentration, "town").confidence_interval(95)


def test_many_cells_are_refused():
    schema = gn.Schema([gn.Attribute("place", range(401))])
    release = gn.plan(schema, 1, gn.zCDP(0.5)).release(pa.table({"place": [1, 2, 3]}))
    with pytest.raises(gn.errors.ParameterError, match="at most 400 released numbers, got 401"):
        release.function(lambda n: n[0] ** 2, "place")


def test_a_fault_in_a_function_is_the_users_own(release):
    with pytest.raises(IndexError):
        release.function(lambda n: n[99], "town")


def test_a_life_table_of_a_constant_rate():
    """Deaths at a rate of 1/50 a year: 50 years, up to the squares of the widths."""
    k = 2000
    found = indicators.life_expectancy(np.full(k, 2.0), np.full(k, 100.0), [0.1] * (k - 1))
    assert found == pytest.approx(50, abs=0.1**2)


def test_the_noise_of_a_life_expectancy_is_that_of_the_closed_formula():
    """Delta method on Chiang's table (Chiang 1984; Bach 2025), in numbers the code does not use."""
    rng = np.random.default_rng(1)
    edges, n = [0, 15, 30, 45, 60, 75, 100], 300_000
    age = np.minimum(rng.gamma(2.4, 17.0, n), 99.9)
    died = np.where(rng.random(n) < np.exp(-7 + 0.05 * age), "yes", "no")
    schema = gn.Schema([gn.Attribute("age", edges=edges), gn.Attribute("died", ["no", "yes"])])
    release = gn.plan(schema, [("age", "died")], gn.zCDP(0.5)).release(
        pa.table({"age": age, "died": died})
    )
    width = np.diff(edges)[:-1]
    found = release.function(
        lambda t: indicators.life_expectancy(t[:, 1], t.sum(axis=1), width), ("age", "died")
    )

    cells = release["age", "died"]
    deaths, exposure = cells.estimate[:, 1], cells.estimate.sum(axis=1)
    m = deaths / exposure
    q = np.append(width * m[:-1] / (1 + width / 2 * m[:-1]), 1)
    alive = np.cumprod(np.append(1, 1 - q[:-1]))
    lived = np.append(width * (alive[1:] + alive[:-1]) / 2, alive[-1] / m[-1])
    ahead = np.cumsum(lived[::-1])[::-1] / alive  # life expectancy at each age
    by_rate = np.append(
        -alive[:-1] * (ahead[1:] + width / 2) * width / (1 + width / 2 * m[:-1]) ** 2,
        -alive[-1] / m[-1] ** 2,
    )
    by_cell = by_rate[:, None] / exposure[:, None] * (np.array([0, 1]) - m[:, None])
    known = release.contrast({("age", "died"): by_cell})
    curved = (cells.standard_deviation / deaths[:, None]).max()  # what terms of second order change
    assert curved < 1 / 20
    assert found.standard_deviation == pytest.approx(known.standard_deviation, rel=curved**2)
    assert found.estimate == pytest.approx(ahead[0], abs=curved * found.standard_deviation)


def test_deaths_at_the_end_of_a_group_are_later():
    deaths, exposure = np.array([5.0, 10.0]), np.array([100.0, 20.0])
    early, late = (
        indicators.life_expectancy(deaths, exposure, [10], lived) for lived in ([0], [10])
    )
    # 10/15 survive a rate of 1/20 if all who die do so at once; half if at the end
    assert early == pytest.approx(10 * 10 / 15 + 2 * 10 / 15)
    assert late == pytest.approx(10 + 2 / 2)


def test_prices_are_compared_at_the_quantities_of_the_first_period():
    found = indicators.price_index(np.array([1.0, 4.0]), np.array([2.0, 3.0]), [3, 1])
    assert found == pytest.approx(9 / 7)


# Questions


def test_questions_about_functions_are_the_functions_of_the_release(release):
    for name in ("entropy", "concentration"):
        found, known = (
            release.ask(f"{name} of town", 0.9),
            release.function(getattr(indicators, name), "town"),
        )
        assert (found.estimate, found.standard_deviation) == pytest.approx(
            (known.estimate, known.standard_deviation)
        )
        np.testing.assert_allclose((found.low, found.high), known.confidence_interval(0.9))
        assert found.method == known.method
        assert found.meaning == f"{name} of town"
    by = release.ask("concentration of town by sex")
    for k, sex in enumerate("FM"):
        known = release.function(lambda n, k=k: indicators.concentration(n[k]), ("sex", "town"))
        one = release.ask(f"concentration of town, sex={sex}")
        for answer in (by.estimate[k], one.estimate):
            assert answer == pytest.approx(known.estimate)
        assert by.high[k] == pytest.approx(known.confidence_interval()[1], abs=1e-6)
        variance = release.ask("variance of pay by sex")
        assert variance.estimate[k] == pytest.approx(release.variance("pay", sex=sex).estimate)
        alone = release.ask(f"variance of pay, sex={sex}")
        assert alone.high == pytest.approx(
            release.variance("pay", sex=sex).confidence_interval()[1]
        )
    assert release.ask("variance of pay").estimate == pytest.approx(
        release.variance("pay").estimate
    )


def test_an_odds_ratio_says_which_odds_it_divides(people):
    schema = gn.Schema([SCHEMA.attributes[0], gn.Attribute("town", ["A", "B"])])
    table = people.filter(pa.compute.is_in(people["town"], pa.array(["A", "B"])))
    release = gn.plan(schema, 2, gn.zCDP(1.0)).release(table)
    found = release.ask("odds ratio of sex and town")
    known = release.function(indicators.odds_ratio, ("sex", "town"))
    assert found.estimate == pytest.approx(known.estimate)
    n = release["sex", "town"].estimate
    assert found.estimate == pytest.approx(n[0, 0] / n[0, 1] / (n[1, 0] / n[1, 1]), rel=0.01)
    assert found.note == "odds of town=A against B for sex=F, over those for M"
    with pytest.raises(gn.errors.ParameterError, match="two attributes of two categories each"):
        release.ask("odds ratio of sex")


def test_a_regression_is_asked_in_words(people):
    tables = [("sex", "town", "pay")]
    release = gn.plan(SCHEMA, tables, gn.zCDP(1.0)).release(people)
    for words, on in (
        ("sex and town", ["sex", "town"]),
        ("sex, town, sex:town", ["sex", "town", "sex:town"]),
    ):
        found, known = release.ask(f"regression of pay on {words}", 0.9), release.regress("pay", on)
        low, high = known.confidence_interval(0.9)
        assert found.labels == (known.columns,)
        np.testing.assert_allclose(found.estimate, known.estimate)
        np.testing.assert_allclose((found.low, found.high), (low, high))
        assert found.meaning == f"regression of pay on {', '.join(on)}"


def test_answers_of_functions_have_a_method_and_intervals_in_json(release):
    for question in ("entropy of town by sex", "variance of pay", "regression of pay on sex"):
        found = release.ask(question)
        plain = found.to_dict()
        assert plain["method"] == found.method != ""
        assert all(row["low"] < row["estimate"] < row["high"] for row in plain["rows"])
        printed = str(found).splitlines()
        assert any(line.startswith("method: ") for line in printed)
        assert max(map(len, printed)) <= 80
    assert "method" not in release.ask("count").to_dict()


def test_functions_that_nothing_answers_are_refused(release):
    for question, words in (
        ("entropy of pay", "attributes with categories or bins, not 'pay'"),
        ("entropy of sex=F", "the name of an attribute"),
        ("variance of town", "a number that the schema clips"),
        ("regression of town on sex", "a number that the schema clips"),
        ("regression of pay on town", "answers 'mean of pay'"),  # not released together
        ("standardized rate of town", "expected a question that starts with"),
    ):
        with pytest.raises(gn.errors.ParameterError, match=words):
            release.ask(question)
