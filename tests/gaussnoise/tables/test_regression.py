"""Linear regression from released tables: as least squares of the rows, within the noise."""

import math

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats

import gaussnoise as gn
from gaussnoise.tables.release.regression import Moments, _bias, law_of

TOWNS = ("A", "B", "C")
PAY = {"kind": "moments", "degrees": [0, 1, 2]}
CLIP = (0.0, 10000.0)
ROWS = 20000


def schema_with(**of_pay):
    return gn.Schema(
        [
            gn.Attribute("sex", ["F", "M"]),
            gn.Attribute("town", list(TOWNS)),
            gn.Attribute("pay", clip=CLIP, **of_pay),
        ]
    )


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    sex, town = rng.integers(0, 2, ROWS), rng.integers(0, 3, ROWS)
    pay = 3000 + 500 * sex - 400 * (town == 2) + 300 * sex * (town == 1)
    return sex, town, np.clip(pay + rng.normal(0, 800, ROWS), *CLIP)


@pytest.fixture(scope="module")
def people(rows):
    sex, town, pay = rows
    labels = {"sex": np.array(["F", "M"])[sex], "town": np.array(TOWNS)[town]}
    return pa.table({**labels, "pay": pay})


@pytest.fixture(scope="module")
def release(people):
    entries = [("sex", "town", "pay")]
    return gn.plan(schema_with(base=PAY), entries, gn.zCDP(0.5)).release(people)


def design(rows, interaction):
    sex, town, _ = rows
    columns = [np.ones(ROWS), sex, town == 1, town == 2]
    columns += [sex * (town == 1), sex * (town == 2)] * interaction
    return np.column_stack(columns).astype(float)


@pytest.mark.parametrize("interaction", [False, True])
def test_coefficients_are_those_of_least_squares(rows, release, interaction):
    X = design(rows, interaction)
    known, (left,), _, _ = np.linalg.lstsq(X, rows[2], rcond=None)
    found = release.regress("pay", on=["sex", "town", *["sex:town"] * interaction])
    assert found.columns[:4] == ("intercept", "sex=M", "town=B", "town=C")
    assert found.columns[4:] == (("sex=M, town=B", "sex=M, town=C") if interaction else ())
    low, high = found.confidence_interval(1 - 1e-8)
    assert (low < known).all()
    assert (known < high).all()
    low, high = found.population_interval(1 - 1e-8)
    truth = np.array([3000.0, 500, 0, -400, 300, 0])[: len(known)]
    if interaction:  # or the model is another one than the rows are of
        assert (low < truth).all()
        assert (truth < high).all()
    assert found.residual_deviation == pytest.approx(math.sqrt(left / ROWS), rel=0.1)
    assert (found.population_deviation > found.standard_deviation).all()
    expected = found.predict(sex="M", town="B")
    truth = known @ [1, 1, 1, 0, 1, 0][: len(known)]
    assert abs(expected.estimate - truth) < 6 * expected.standard_deviation
    assert expected.low < expected.estimate < expected.high


def test_one_attribute_gives_differences_of_means(release):
    found = release.regress("pay", on=["sex"])
    means = release.means("pay", given="sex")
    gap = means.difference("sex", "M", "F")
    bias = found.estimate[1] - gap.estimate
    assert abs(bias) < 0.01 * found.standard_deviation[1]
    assert found.standard_deviation[1] == pytest.approx(float(gap.standard_deviation), rel=1e-6)
    assert found.predict(sex="F").estimate == pytest.approx(means.estimate[0], rel=1e-4)


def test_no_moment_is_asked_for_twice(release):
    moments = release.regress("pay", on=["sex", "town"]).moments
    # rows, by sex, by town (2), by both (2), none in two towns; 4 sums; squares
    assert len(moments.covariance) == 7 + 4 + 1
    assert moments.gram == pytest.approx(moments.gram.T)


def test_no_noise_leaves_least_squares():
    rng = np.random.default_rng(1)
    X, y = np.column_stack([np.ones(50), rng.integers(0, 2, 50)]), rng.normal(size=50)
    places = np.array([[0, 1], [1, 2]])
    gram = X.T @ X
    moments = Moments(gram, X.T @ y, float(y @ y), 1e-20 * np.eye(6), places)
    known = np.linalg.lstsq(X, y, rcond=None)[0]
    assert law_of(moments, 0.0).center == pytest.approx(known)
    ends = law_of(moments, 1.0).interval(np.array([0.0, 1.0]), 1.96)
    half = 1.96 * math.sqrt(np.linalg.inv(gram)[1, 1])
    assert ends == pytest.approx((known[1] - half, known[1] + half))


def noisy(rng, scale):
    """Moments of known rows with noise, and the least squares without it."""
    X = np.column_stack([np.ones(60), np.arange(60) % 2, np.arange(60) % 3 == 0]).astype(float)
    y = X @ [3.0, -1.0, 2.0] + np.sin(np.arange(60))
    pairs = [(i, j) for i in range(3) for j in range(i + 1)]
    places = np.zeros((3, 3), dtype=np.intp)
    for k, (i, j) in enumerate(pairs):
        places[i, j] = places[j, i] = k
    exact = np.array([*((X.T @ X)[i, j] for i, j in pairs), *(X.T @ y), y @ y])
    B = np.random.default_rng(5).normal(size=(10, 12))
    covariance = scale**2 * B @ B.T / 12
    m = exact + scale * B @ rng.normal(size=12) / math.sqrt(12)
    known = np.linalg.lstsq(X, y, rcond=None)[0]
    return Moments(m[places], m[6:9], float(m[9]), covariance, places), known


@pytest.mark.parametrize(("stated", "covers"), [(1.0, True), (0.5, False)])
def test_intervals_cover_as_often_as_they_say(stated, covers):
    """The truth is refused in at most 6 of 100; half of the deviation is noticed."""
    rng, draws, missed = np.random.default_rng(2), 300, 0
    limit = scipy.stats.chi2(1).ppf(0.95)
    for _ in range(draws):
        moments, known = noisy(rng, 1.5)
        law = law_of(moments._replace(covariance=stated**2 * moments.covariance), 0.0)
        missed += law.nearest(np.array([[0.0, 1.0, 0.0]]), known[1:2]) > limit
    assert bool(missed <= scipy.stats.binom(draws, 0.06).ppf(1 - 1e-6)) is covers


def test_the_gradient_of_the_distance_is_its_slope():
    moments, known = noisy(np.random.default_rng(3), 1.0)
    for variance in (0.0, 2.0):
        law, step = law_of(moments, variance), 1e-6
        _, gradient = law.distance(known + 0.1)
        for k, unit in enumerate(np.eye(3)):
            up, down = (law.distance(known + 0.1 + s * step * unit)[0] for s in (1, -1))
            assert gradient[k] == pytest.approx((up - down) / (2 * step), rel=1e-5)


def test_the_bias_of_first_order_is_taken_off():
    rng = np.random.default_rng(4)
    scale, draws = 1.0, 4000
    errors, biases = [], []
    for _ in range(draws):
        moments, known = noisy(rng, scale)
        center = law_of(moments, 0.0).center
        errors.append(center - known)
        biases.append(_bias(moments, center))
    left = np.mean(np.array(errors) - biases, axis=0)
    spread = np.std(errors, axis=0) / math.sqrt(draws)
    assert (np.abs(left) < 5 * spread).all()
    assert (np.abs(np.mean(biases, axis=0)) > spread / 2).any()  # there was one


def test_records_without_a_number_are_left_out(rows):
    sex, _, pay = rows
    schema = gn.Schema(
        [gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=CLIP, other="none")]
    )
    known = pay.copy()
    known[::3] = np.nan
    people = pa.table({"sex": np.array(["F", "M"])[sex], "pay": known})
    release = gn.plan(schema, [("sex", "pay")], gn.zCDP(0.5)).release(people)
    found = release.regress("pay", on=["sex"])
    mean = [np.nanmean(known[sex == k]) for k in (0, 1)]
    low, high = found.confidence_interval(1 - 1e-8)
    assert low[0] < mean[0] < high[0]
    assert low[1] < mean[1] - mean[0] < high[1]
    assert found.rows == pytest.approx(np.isfinite(known).sum(), rel=0.01)


def test_without_squares_nothing_is_said_of_a_population(people):
    release = gn.plan(schema_with(), [("sex", "pay")], gn.zCDP(0.5)).release(people)
    found = release.regress("pay", on=["sex"])
    assert "from" not in str(found)
    assert "population_low" not in found.to_frame().column_names
    with pytest.raises(gn.errors.ParameterError, match="squares of 'pay'"):
        found.population_interval()


def test_weighted_rows_are_called_so(rows, people):
    weights = 1 + (np.arange(ROWS) % 3)
    weighted = people.append_column("w", pa.array(weights.astype(float)))
    plan = gn.plan(schema_with(), [("sex", "pay")], gn.zCDP(0.5), weight=gn.Weight("w", 4))
    found = plan.release(weighted).regress("pay", on=["sex"])
    assert found.rows == pytest.approx(weights.sum(), rel=0.01)
    assert "weighted rows" in str(found)
    assert "population" not in str(found)
    means = [np.average(rows[2][own], weights=weights[own]) for own in (rows[0] == 0, rows[0] == 1)]
    low, high = found.confidence_interval(1 - 1e-8)
    assert low[1] < means[1] - means[0] < high[1]
    with pytest.raises(
        gn.errors.ParameterError, match=r"regress: .*rows with weights; .*confidence_interval\(\)"
    ):
        found.population_interval()


def test_printed_regressions(release, people):
    found = release.regress("pay", on=["sex", "town"])
    lines = str(found).splitlines()
    assert lines[0].startswith("Regression of pay, clipped to [0, 10000], on sex, town: ")
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[2:6]] == list(found.columns)
    frame = found.to_frame()
    assert frame.num_rows == 4
    assert all(0 < share < 1 for share in frame["noise_share"].to_pylist())
    assert repr(found) == "Regression(pay on sex, town: 4 coefficients)"
    alone = release.regress("pay", on=[])
    assert "on no attribute: " in str(alone)
    assert repr(alone) == "Regression(pay on no attribute: 1 coefficient)"
    simulated = release.plan.simulate(people, rng=np.random.default_rng(0))
    assert str(simulated.regress("pay", on=["sex"])).startswith("NOT PRIVATE")


def test_errors_say_what_is_expected(release, people):
    cases = [
        (("sex", ["town"]), "expected a clipped number"),
        (("pay", "sex"), "expected a list of attributes"),
        (("pay", None), "expected a list of attributes"),
        (("pay", (name for name in ["sex"])), "expected a list of attributes"),
        (("pay", ["pay"]), "different terms without 'pay'"),
        (("pay", ["sex", "sex"]), "expected different terms"),
        (("pay", ["sex:town", "town:sex"]), "expected different terms"),
        (("pay", ["nothing"]), "nothing"),
    ]
    for arguments, said in cases:
        with pytest.raises(gn.errors.ParameterError, match=said):
            release.regress(*arguments)
    with pytest.raises(gn.errors.ParameterError, match="one category for each of sex"):
        release.regress("pay", on=["sex"]).predict(sex="X")
    few = gn.plan(schema_with(base=PAY), [("sex", "town", "pay")], gn.zCDP(0.01))
    with pytest.raises(gn.errors.ParameterError, match="told apart within the noise"):
        few.release(people.slice(0, 10)).regress("pay", on=["sex", "town"])


@pytest.mark.parametrize("empty", ["N", "E"])
def test_a_category_without_rows_is_named(empty):
    """The first one, which has no column of its own, as well as a later one."""
    towns = [town for town in "NSE" if town != empty]
    rows = pa.table({"town": towns * 900, "sex": ["F", "F", "M"] * 600, "pay": [1.0, 5.0] * 900})
    schema = gn.Schema(
        [
            gn.Attribute("town", ["N", "S", "E"]),
            gn.Attribute("sex", ["F", "M"]),
            gn.Attribute("pay", clip=[0, 10]),
        ]
    )
    plan = gn.plan(schema, [("town", "sex", "pay")], gn.zCDP(0.5))
    release = plan.simulate(rows, np.random.default_rng(0))
    for on in (["town"], ["town", "sex"]):
        with pytest.raises(
            gn.errors.ParameterError, match=rf"where town={empty} \(.* may have no rows; hint"
        ):
            release.regress("pay", on=on)
    release.regress("pay", on=["sex"])


def test_too_many_columns_are_refused():
    schema = gn.Schema([gn.Attribute("place", range(50)), gn.Attribute("pay", clip=CLIP)])
    table = pa.table({"place": [1, 2], "pay": [1.0, 2.0]})
    release = gn.plan(schema, [("place", "pay")], gn.zCDP(0.5)).release(table)
    with pytest.raises(gn.errors.ParameterError, match="at most 40 columns, got 50"):
        release.regress("pay", on=["place"])


def test_rows_of_a_person_say_nothing_of_a_population(people):
    several = gn.plan(schema_with(base=PAY), [("sex", "pay")], gn.zCDP(0.5), rows_per_person=2)
    found = several.release(people).regress("pay", on=["sex"])
    assert "rows of a person are not independent" in " ".join(str(found).split())
    with pytest.raises(gn.errors.ParameterError, match="several rows of a person, up to 2"):
        found.population_interval()


NUMBERS = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("pay", clip=CLIP, base=PAY),
        gn.Attribute("hours", clip=[10, 60], base=PAY, other="none"),
        gn.Attribute("age", clip=[18, 78], base=PAY),
    ]
)


@pytest.fixture(scope="module")
def workers():
    rng = np.random.default_rng(3)
    sex, age = rng.integers(0, 2, ROWS), rng.uniform(18, 78, ROWS)
    hours = np.clip(rng.normal(35, 8, ROWS), 10, 60)
    pay = 500 + 70 * hours + 300 * sex + 15 * sex * hours + 5 * age + rng.normal(0, 500, ROWS)
    return sex, np.clip(pay, *CLIP), hours, age


def table_of(workers, missing=None):
    sex, pay, hours, age = workers
    labels = np.array(["F", "M"])[sex]
    return pa.table({"sex": labels, "pay": pay, "hours": pa.array(hours, mask=missing), "age": age})


def test_numbers_are_columns_like_others(workers):
    sex, pay, hours, age = workers
    missing = np.random.default_rng(4).random(ROWS) < 0.2
    entries = [("sex", "pay", "hours"), ("pay", "hours", "age")]
    release = gn.plan(NUMBERS, entries, gn.zCDP(5)).release(table_of(workers, missing))
    found = release.regress("pay", on=["hours", "sex", "sex:hours"])
    assert found.columns == ("intercept", "hours", "sex=M", "sex=M, hours")
    kept = ~missing  # rows without hours are in no moment
    X = np.column_stack([np.ones(ROWS), hours, sex, sex * hours])[kept]
    known = np.linalg.lstsq(X, pay[kept], rcond=None)[0]
    for low, high in (found.confidence_interval(1 - 1e-8), found.population_interval(1 - 1e-8)):
        assert (low < known).all()
        assert (known < high).all()
    assert found.rows == pytest.approx(kept.sum(), abs=20)
    assert found.residual_deviation == pytest.approx(500, rel=0.1)
    expected = found.predict(sex="M", hours=40)
    assert abs(expected.estimate - known @ [1, 40, 1, 40]) < 6 * expected.standard_deviation
    assert expected.low < expected.estimate < expected.high
    assert "on hours, sex, sex:hours: " in str(found)
    both = release.regress("pay", on=["hours", "age", "hours:age"])
    X = np.column_stack([np.ones(ROWS), hours, age, hours * age])[kept]
    known = np.linalg.lstsq(X, pay[kept], rcond=None)[0]
    low, high = both.confidence_interval(1 - 1e-8)
    assert (low < known).all()
    assert (known < high).all()


def test_numbers_in_intervals_far_from_zero_lose_nothing(workers):
    """Coefficients of a number that is moved and scaled are moved and scaled."""
    _, pay, _, age = workers
    found = []
    for low in (18.0, 1e6 + 18):
        base = {**PAY, "about": low + 30}
        year = gn.Attribute("year", clip=[low, low + 60], base=base)
        schema = gn.Schema([NUMBERS.attributes[1], year])
        table = pa.table({"pay": pay, "year": age - 18 + low})
        plan = gn.plan(schema, [("pay", "year")], gn.zCDP(0.5))
        release = plan.simulate(table, np.random.default_rng(0))
        found.append(release.regress("pay", on=["year"]))
    near, far = found
    assert near.estimate[1] == pytest.approx(far.estimate[1], rel=1e-3)
    assert near.predict(year=30).estimate == pytest.approx(
        far.predict(year=30 + 1e6).estimate, rel=1e-6
    )


@pytest.mark.parametrize(("scale", "covers"), [(1.0, True), (0.5, False)])
def test_intervals_of_numbers_cover_as_often_as_they_say(workers, scale, covers):
    """Half of the deviation is noticed. Of 1,000 releases of 5,000 rows, 95 % cover."""
    table, missed, draws = table_of(workers).slice(0, 2000), 0, 60
    sex, pay, hours, _ = (part[:2000] for part in workers)
    X = np.column_stack([np.ones(2000), hours, sex])
    known = np.linalg.lstsq(X, pay, rcond=None)[0]
    plan = gn.plan(NUMBERS, [("sex", "pay", "hours")], gn.zCDP(0.5))
    limit = scipy.stats.chi2(3).ppf(0.95)
    for k in range(draws):
        release = plan.simulate(table, np.random.default_rng(k))
        found = release.regress("pay", on=["hours", "sex"])
        moments = found.moments._replace(covariance=scale**2 * found.moments.covariance)
        law = law_of(moments, 0.0)
        missed += law.distance(np.linalg.solve(found.stated, known))[0] > limit
    assert bool(missed <= scipy.stats.binom(draws, 0.06).ppf(1 - 1e-6)) is covers


def test_errors_about_numbers_say_what_is_expected(workers):
    plain = gn.Attribute("age", clip=[18, 78])
    schema = gn.Schema([*NUMBERS.attributes[:3], plain])
    entries = [("sex", "pay", "hours"), ("pay", "age")]
    release = gn.plan(schema, entries, gn.zCDP(5)).release(table_of(workers))
    for on, said in (
        (["age"], "expected squares of the number 'age'"),
        (["sex:hours"], "expected 'hours' and 'sex' beside 'sex:hours'"),
        (["hours:hours"], "distinct attributes"),
    ):
        with pytest.raises(gn.errors.ParameterError, match=said):
            release.regress("pay", on=on)
    found = release.regress("pay", on=["sex", "hours"])
    for values, said in (
        ({"sex": "F"}, "one category for each of sex and a value of each of hours"),
        ({"sex": "F", "hours": 61}, r"a number in \[10, 60\] for 'hours'"),
        ({"sex": "F", "hours": "x"}, r"a number in \[10, 60\] for 'hours'"),
    ):
        with pytest.raises(gn.errors.ParameterError, match=said):
            found.predict(**values)
