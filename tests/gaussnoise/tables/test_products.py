"""Tests of tables of several clipped numbers: sums of their products, in exact integers.

References: products of real numbers, brute force over all steps and over records, a second count.
"""

import base64
import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from browser import node_lines

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.solvers.tables.residuals import part_of
from gaussnoise.tables.counting import numbers as _numbers
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.numbers import Joint
from gaussnoise.tables.counting.recount import recount
from gaussnoise.tables.release.changes import shown_changes
from gaussnoise.tables.release.stream import measured_parts
from gaussnoise.verifier import verified

SQUARES = {"kind": "moments", "degrees": [0, 1, 2]}
SEX = gn.Attribute("sex", ["F", "M"])
PAY = gn.Attribute("pay", clip=[0, 100])
HOURS = gn.Attribute("hours", clip=[-2, 8], other="none")
AGE = gn.Attribute("age", clip=[10, 90])
SQUARED = gn.Attribute("hours", clip=[-2, 8], other="none", base=SQUARES)
TABLES = [("sex", "pay", "hours"), ("hours", "age"), ("pay", "age"), ("sex",)]


def people(number, seed=0):
    rng = np.random.default_rng(seed)
    hours = pa.array(rng.normal(4, 4, number), mask=rng.random(number) < 0.2)
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], number),
            "pay": rng.lognormal(3, 1, number),
            "hours": hours,
            "age": rng.uniform(0, 100, number),
            "w": rng.exponential(1.0, number),
            "who": rng.integers(0, max(number // 3, 1), number),
        }
    )


def positions(attributes, tables):
    names = [a.name for a in attributes]
    return [tuple(sorted(names.index(name) for name in table)) for table in tables]


def parts_of(steps, unit, squares=(), weight=None):
    """Return how the records of these steps are divided, shape (cells of each number…, records)."""
    sizes = {i: 2 + (i in squares) for i in range(len(steps))}
    joint = Joint(sizes, (tuple(sizes),))
    own = steps if weight is None else [(weight * a + unit // 2) // unit for a in steps]
    sums = {f"a{i}": a for i, a in enumerate(own)}
    sums |= {f"q{i}": steps[i] ** 2 // unit for i in squares}
    mass = unit if weight is None else weight
    sums |= {} if weight is None else {"w": weight}
    parts = [np.broadcast_to(x, steps[0].shape) for x in joint.sums(sums, unit).values()]
    return np.stack([mass - sum(parts), *parts]).reshape(*sizes.values(), -1), own


@pytest.mark.parametrize("unit", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("kind", ["plain", "squares", "weights"])
def test_every_record_is_a_convex_combination_of_cells(unit, kind):
    """The bound on what a record changes needs no more than this, for all steps and weights."""
    count = 3 if kind == "plain" else 2
    every = itertools.product(range(unit + 1), repeat=count + (kind == "weights"))
    *steps, last = np.array(list(every)).T
    weight = last if kind == "weights" else None
    steps = steps if kind == "weights" else [*steps, last]
    parts, own = parts_of(steps, unit, (0, 1) if kind == "squares" else (), weight)
    assert parts.min() >= 0
    mass = unit if weight is None else weight
    assert (parts.sum(axis=tuple(range(count))) == mass).all()
    for i, a in enumerate(own):  # each number has the parts that it has in a table of its own
        alone = parts.sum(axis=tuple(k for k in range(count) if k != i))
        q = None if kind != "squares" else a * a // unit
        for found, expected in zip(alone, _numbers.spread_over(mass, a, q), strict=True):
            np.testing.assert_array_equal(found, np.broadcast_to(expected, found.shape))


def test_products_are_off_by_no_more_parts_than_is_said():
    unit, rng = 2**20, np.random.default_rng(0)
    steps = rng.integers(0, unit + 1, (3, 20000))
    steps[:, :5000] = rng.integers(0, 2000, (3, 5000))  # small products and those near the end
    steps[:, 5000:8000] = unit - steps[:, :3000]
    parts, _ = parts_of(list(steps), unit)
    off = {(0, 1): 0.5, (0, 2): 0.5, (1, 2): 2.0}  # runs of the first one's cells
    for (i, j), most in off.items():
        found = parts.sum(axis=3 - i - j)[1, 1]
        error = found - steps[i] * steps[j] / unit
        assert np.abs(error).max() <= most
        anywhere = error[8000:]  # no bias on average
        assert abs(anywhere.mean()) < 6 * anywhere.std() / math.sqrt(anywhere.size)


def test_rounding_each_product_by_itself_would_be_no_combination_of_cells():
    """Negative control: pairs that are rounded apart may have no common parts."""
    unit = 64
    a, b, c = unit - 1, 8, 7
    pairs = a * b // unit, a * c // unit, b * c // unit
    # at most all of a record is in one of three cells: a + b + c less the pairs is at most a unit
    assert a + b + c - sum(pairs) > unit
    parts, _ = parts_of([np.array([a]), np.array([b]), np.array([c])], unit)
    assert a + b + c - parts[1, 1].sum() - parts[1, :, 1].sum() - parts[:, 1, 1].sum() <= unit


ENGINES = ["pandas", "polars", "polars lazy", "pyarrow", "duckdb", "dask", "csv", "parquet"]


def same_by_all(found, again, subsets):
    for S in subsets:
        np.testing.assert_array_equal(found[S], again[S])
        for T in subsets:
            both = tuple(i for i in S if i in T)
            np.testing.assert_array_equal(part_of(found[S], S, both), part_of(found[T], T, both))


@pytest.mark.filterwarnings("ignore:Dask support is moving out of Narwhals:FutureWarning")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weight", [None, gn.Weight("w", 2.0)], ids=["rows", "weights"])
def test_all_engines_count_the_same(engines, engine, weight, tmp_path):
    table, attributes = people(90), [SEX, PAY, HOURS if weight else SQUARED, AGE]
    subsets, unit = positions(attributes, TABLES), 2**20 if weight else 2**11
    again = recount(table, attributes, subsets, "refuse", None, weight, unit, ()).counts
    other = engines[engine](table, tmp_path)
    found = dict(count_marginals(other, attributes, subsets, weight=weight, unit=unit))
    same_by_all(found, again, subsets)


@pytest.mark.integration
@pytest.mark.filterwarnings("ignore")  # of Spark
def test_spark_counts_the_same(spark):
    table = people(60).drop_columns(["who"])
    frame = spark.createDataFrame(table.to_pandas().replace({np.nan: None}))
    for weight in (None, gn.Weight("w", 2.0)):
        attributes = [SEX, PAY, HOURS if weight else SQUARED, AGE]
        subsets = positions(attributes, TABLES)
        again = recount(table, attributes, subsets, "refuse", None, weight, 2**20, ()).counts
        found = dict(count_marginals(frame, attributes, subsets, weight=weight, unit=2**20))
        same_by_all(found, again, subsets)


def integers(plan, table):
    """Return the exact integers that answer the query on a table's records, as one vector."""
    used = plan.asked.used
    planned = {tuple(used.index(i) for i in S): S for S in plan.tables.subsets}
    attributes = [plan.schema.attributes[i] for i in used]
    counted = count_marginals(
        table, attributes, list(planned), "drop", None, plan.weight, plan.unit
    )
    answers, seen = [], set()
    for S, counts in sorted((planned[own], counts) for own, counts in counted):
        for T in measured_parts(S, plan.query):
            if T not in seen:
                seen.add(T)
                answers += plan.query.answer(T, part_of(counts, S, T)).tolist()
    return np.array(answers, dtype=object)


def corners_and_more(rng, number=10):
    """Return rows at the ends of intervals, just inside them, anywhere, and without a number."""
    near = {"pay": [0.0, 100.0, 0.01, 99.9], "hours": [-2.0, 8.0, None, 7.99], "age": [10.0, 90.0]}
    rows = [
        {
            "sex": str(rng.choice(["F", "M"])),
            **{name: values[rng.integers(len(values))] for name, values in near.items()},
            "w": float(rng.choice([0.0, 1e-6, 0.7, 2.0])),
        }
        for _ in range(number)
    ]
    for row in rows[: number // 3]:
        row |= {"pay": float(rng.uniform(0, 100)), "age": float(rng.uniform(0, 100))}
    return rows


def largest_change(plan, rows, neighbors=None):
    schema = pa.schema([(name, pa.string() if name == "sex" else pa.float64()) for name in rows[0]])
    answers = [integers(plan, pa.Table.from_pylist([row], schema=schema)) for row in rows]
    if (neighbors or plan.neighbors) == "add-remove":
        return max(int((a * a).sum()) for a in answers)
    return max(int(((a - b) ** 2).sum()) for a, b in itertools.combinations(answers, 2))


WORKLOADS = [
    [("pay", "age")],
    [("sex", "pay", "age")],
    [("pay", "hours"), ("hours", "age"), ("pay", "age")],
    [("sex", "pay", "hours", "age"), ("sex",)],
    [("pay", "hours", "age"), ("sex", "pay")],
]


@pytest.mark.parametrize("k", range(50))
def test_no_record_changes_more_than_is_planned_for(k):
    """Brute force over neighbours, on 50 plans of two and three numbers."""
    rng = np.random.default_rng(k)
    neighbors, person = [("add-remove", None), ("replace", None), ("replace", "who")][k % 3]
    weight = gn.Weight("w", 1.5) if k % 6 == 0 else None
    hours = SQUARED if weight is None and k % 4 == 1 else HOURS
    asked = WORKLOADS[k % len(WORKLOADS)]
    plan = gn.plan(
        gn.Schema([SEX, PAY, hours, AGE]),
        asked,
        gn.zCDP(float(10 ** rng.uniform(-6, 1))),
        neighbors=neighbors,
        weight=weight,
        person=person,
    )
    squared, rows = plan.query.query.sensitivity_squared, corners_and_more(rng)
    if person is not None:  # or a person may have no row
        assert largest_change(plan, rows, "add-remove") <= squared
    assert largest_change(plan, rows) <= squared


def test_ends_of_intervals_change_all_that_is_planned_for_and_wrong_parts_more(monkeypatch):
    plan = gn.plan(gn.Schema([SEX, PAY, AGE]), [("sex", "pay", "age")], gn.zCDP(0.3))
    rows = [
        {"sex": "F", "pay": pay, "age": age} for pay in (0.0, 100.0) for age in (10.0, 90.0, 50.0)
    ]
    assert largest_change(plan, rows) == plan.query.query.sensitivity_squared
    monkeypatch.setattr(_numbers, "_portion", lambda part, share, whole: part * share // whole + 1)
    assert largest_change(plan, rows) > plan.query.query.sensitivity_squared


def test_a_release_tells_sums_of_products(tmp_path):
    """With much budget, answers are those of the clipped values."""
    schema, table = gn.Schema([SEX, PAY, SQUARED, AGE]), people(400)
    plan = gn.plan(schema, TABLES, gn.zCDP(1e9))
    release = plan.release(table, out=tmp_path / "r")
    pay, age = (
        np.clip(table[name].to_numpy(), *ends)
        for name, ends in (("pay", (0, 100)), ("age", (10, 90)))
    )
    found = gn.TableRelease.load(tmp_path / "r").answers(("pay", "age"))
    assert found.labels == (("count", "sum"), ("count", "sum"))
    expected = [[400, age.sum()], [pay.sum(), (pay * age).sum()]]
    np.testing.assert_allclose(found.estimate, expected, rtol=1e-5)
    assert float(release.sums("age").estimate) == pytest.approx(age.sum(), rel=1e-5)
    assert release.inspect(table).passed


def test_too_many_numbers_are_refused_before_any_data():
    every = [gn.Attribute(f"x{k}", clip=[0, 1]) for k in range(7)]
    schema = gn.Schema([SEX, *every])
    chain = [(f"x{k}", f"x{k + 1}") for k in range(6)]
    gn.plan(schema, chain[:5], gn.zCDP(0.1))
    gn.plan(schema, [*chain[:3], *chain[4:]], gn.zCDP(0.1))
    for workload in (chain, 2):
        with pytest.raises(ParameterError, match="at most 64 virtual cells"):
            gn.plan(schema, workload, gn.zCDP(0.1))


BOTH = gn.Schema([SEX, gn.Attribute("pay", clip=[0, 100], base=SQUARES), SQUARED, AGE])


@pytest.fixture(scope="module")
def release():
    entries = [("sex", "pay", "hours"), ("sex", "pay", "age")]
    return gn.plan(BOTH, entries, gn.zCDP(0.5)).release(people(20000))


def values(number=20000):
    table = people(number)
    hours = np.clip(table["hours"].to_numpy(zero_copy_only=False), -2, 8)
    pay, age = np.clip(table["pay"].to_numpy(), 0, 100), np.clip(table["age"].to_numpy(), 10, 90)
    return np.array(table["sex"]) == "F", pay, hours, age


def test_sums_of_products_by_groups(release):
    women, pay, hours, age = values()
    found = release.sums(("age", "pay"), given="sex")
    known = [(pay * age)[own].sum() for own in (women, ~women)]
    assert (np.abs(found.estimate - known) < 6 * found.standard_deviation).all()
    assert found.clip == (0, 9000)
    assert found.limits[0] == 0
    assert repr(found).startswith("SumTable(sum of age times pay over rows")
    planned = release.plan.answer_deviations(
        {
            "sex": None,
            "age": {"kind": "moments", "degrees": [1]},
            "pay": {"kind": "moments", "degrees": [1]},
        }
    )
    np.testing.assert_allclose(found.standard_deviation, planned[:, 0, 0], rtol=1e-3)
    own = found.at([(0,), (1,)]).joint()
    np.testing.assert_allclose(own.estimate, found.estimate)
    np.testing.assert_allclose(np.sqrt(np.diagonal(own.covariance)), found.standard_deviation)
    has = ~np.isnan(hours)  # a record without one of the numbers is in no product
    both = release.sums(("pay", "hours"))
    assert abs(both.estimate - (pay * hours)[has].sum()) < 6 * both.standard_deviation
    assert both.clip == (-200, 800)
    later = gn.difference(release, release.plan.release(people(20000)))
    change = later.sums(("pay", "age"))
    assert abs(change.estimate) < 6 * change.standard_deviation


def test_changes_have_the_means_of_each_number_once(release):
    changes = gn.difference(release, release.plan.release(people(20000, 1)))
    names = [own.name for own in shown_changes(changes)]
    both = [
        f"{what} of {name} by sex" for name in ("pay", "hours", "age") for what in ("mean", "sum")
    ]
    assert names == ["all rows", *both]


def test_covariances_and_correlations(release):
    women, pay, hours, _ = values()
    own = women & ~np.isnan(hours)
    found = release.covariance_of("pay", "hours", sex="F")
    low, high = found.confidence_interval(1 - 1e-8)
    assert low < np.cov(pay[own], hours[own], bias=True)[0, 1] < high
    assert found.method.startswith("a ratio of quadratic forms")
    has = ~np.isnan(hours)
    low, high = release.correlation("pay", "hours").confidence_interval(1 - 1e-8)
    assert low < np.corrcoef(pay[has], hours[has])[0, 1] < high
    assert high - low < 0.1
    assert release.covariance_of("hours", "pay").estimate == pytest.approx(
        release.covariance_of("pay", "hours").estimate
    )


def test_questions_about_products_say_what_is_expected(release):
    for question, said in (
        (lambda: release.sums(("pay", "pay")), "different clipped numbers"),
        (lambda: release.sums(()), "different clipped numbers"),
        (lambda: release.sums(3), "the name of a clipped number"),
        (lambda: release.sums(("pay", "sex")), "expected a clipped number, got 'sex'"),
        (lambda: release.sums(("hours", "age")), "no planned marginal contains"),
        (lambda: release.covariance_of("pay", "pay"), "two clipped numbers, got 'pay' twice"),
        (lambda: release.correlation("pay", "age"), "clipped numbers with squares, got 'age'"),
        (lambda: release.covariance_of("hours", "age"), "no planned marginal contains"),
    ):
        with pytest.raises(ParameterError, match=said):
            question()


def test_a_person_has_one_record_of_several_numbers():
    """Each number of a record is the mean of the person's own, and products are of these."""
    schema = gn.Schema([SEX, PAY, AGE])
    table = pa.table(
        {
            "sex": ["F"] * 5,
            "pay": [10.0, 30, 50, 60, 0],
            "age": [20.0, 40, 30, 50, 70],
            "who": list("aabbb"),
        }
    )
    plan = gn.plan(schema, [("sex", "pay", "age")], gn.zCDP(1e9), person="who", per_person="mean")
    release = plan.release(table)
    expected = 20 * 30 + (110 / 3) * 50
    found = release.sums(("pay", "age"))
    assert abs(found.estimate - expected) < 6 * found.standard_deviation + 0.05  # of rounding
    assert release.inspect(table).passed


def test_pages_and_plans_say_how_well_products_are_known(release):
    text = str(release.plan)
    assert "sum of pay times age given sex: sd " in text
    assert "; of products, by the product of these." in text
    assert text.count("sum of pay given sex: ") == 1  # also where two entries have it
    from gaussnoise.tables.release.report.pages import plan_page, release_page

    page = release_page(release)
    assert "Means of pay and hours by sex" in page
    assert "Mean of hours by sex" in page
    assert plan_page(release.plan)


@pytest.mark.parametrize("format", ["csv", "sdmx-csv", "json-stat", "xlsx"])
def test_folders_of_products_are_read_back_and_verified(release, tmp_path, format):
    release.save(tmp_path / "r", format=format)
    again = gn.TableRelease.load(tmp_path / "r")
    assert again.sums(("pay", "age")).estimate == release.sums(("pay", "age")).estimate
    if format == "csv":
        lines = verified(tmp_path / "r")
        assert sum(line.startswith("checked") for line in lines) == 7
        files = {
            str(path.relative_to(tmp_path / "r")): base64.b64encode(path.read_bytes()).decode()
            for path in (tmp_path / "r").rglob("*")
            if path.is_file()
        }
        [theirs] = node_lines([files])
        assert [line.split()[0] for line in theirs] == [line.split()[0] for line in lines]
    if format == "sdmx-csv":
        texts = [path.read_text() for path in (tmp_path / "r").rglob("*.csv")]
        assert any("unit of pay × unit of age" in text for text in texts)


def test_questions_in_words_take_products(release):
    found = release.ask("sum of pay times age given sex")
    np.testing.assert_array_equal(found.estimate, release.sums(("pay", "age"), "sex").estimate)
    assert str(found).splitlines()[0] == "sum of pay times age given sex"
    assert "of the values as they were clipped" in str(found)
    women = release.ask("sum of age times pay, sex=F")
    assert women.estimate == pytest.approx(found.estimate[0])
    low, high = women.low, women.high
    assert 0 <= low < found.estimate[0] < high
    for question, said in (
        ("sum of pay times pay", "a number that is not yet in the product"),
        ("sum of pay times sex", "a number that the schema clips"),
        ("sum of pay times", "a number that the schema clips, one of pay, hours, age"),
    ):
        with pytest.raises(ParameterError, match=said):
            release.ask(question)
