"""Inspections: false alarms at the stated level, planted faults noticed with the stated power."""

import itertools
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pyarrow import csv
from scipy import stats

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import DataError, ParameterError
from gaussnoise.streams import running
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.impossible import excluded
from gaussnoise.tables.counting.recount import recount
from gaussnoise.tables.release import inspection
from gaussnoise.tables.release.publish import limit_of, simulated
from gaussnoise.tables.release.verdict import EXACT
from gaussnoise.tables.schema.numbers import unit_of

pytestmark = pytest.mark.usefixtures("quick_pictures")

SEX, REGION = gn.Attribute("sex", ["F", "M"]), gn.Attribute("region", ["N", "S", "W"])
AGE = gn.Attribute("age", edges=[0, 18, 40, 65, 90], other="unknown")
PAY = gn.Attribute("pay", clip=[0, 5000])
SQUARES = gn.Attribute("pay", clip=[0, 5000], base={"kind": "moments", "degrees": [0, 1, 2]})
COUNTS, SUMS = gn.Schema([SEX, REGION, AGE]), gn.Schema([SEX, REGION, PAY])
RULES = gn.Schema([SEX, REGION, AGE], impossible=[{"sex": ["F"], "region": ["W"]}])
RHO = gn.zCDP(0.5)
N = 900
IN_SETS = [{"age": "prefix"}, {"age": [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]], "sex": None}]

PLANS = {
    "counts": lambda: gn.plan(COUNTS, 2, RHO),
    "total": lambda: gn.plan(COUNTS, [()], RHO),
    "replace": lambda: gn.plan(COUNTS, 2, RHO, neighbors="replace"),
    "public": lambda: gn.plan(COUNTS, 2, RHO, neighbors="replace", public=["sex"]),
    "prefixes": lambda: gn.plan(COUNTS, [{"sex": "identity", "age": "prefix"}, ("region",)], RHO),
    "contrasts in sets": lambda: gn.plan(COUNTS, [*IN_SETS, ("region",)], RHO),
    "impossible": lambda: gn.plan(RULES, 2, RHO),
    "k rows": lambda: gn.plan(COUNTS, 2, RHO, rows_per_person=3),
    "weights": lambda: gn.plan(COUNTS, 2, RHO, weight=gn.Weight("w", most=3)),
    "sums": lambda: gn.plan(SUMS, [("sex", "pay"), ("region",)], RHO),
    "weighted sums": lambda: gn.plan(SUMS, [("sex", "pay")], RHO, weight=gn.Weight("w", most=3)),
    "squares": lambda: gn.plan(gn.Schema([SEX, SQUARES]), [("sex", "pay")], RHO),
    "persons": lambda: gn.plan(COUNTS, 2, RHO, person="id", rows_per_person=12),
    "few of a person": lambda: gn.plan(COUNTS, 2, RHO, person="id", rows_per_person=2),
    "few in sets": lambda: gn.plan(COUNTS, IN_SETS, RHO, person="id", rows_per_person=2),
    **{
        f"{how} of a person": lambda how=how: gn.plan(
            SUMS, [("sex", "pay")], RHO, person="id", per_person={"pay": how}, rows_per_person=2
        )
        for how in ("mean", "sum", "max", "count")
    },
    "one group of a person": lambda: gn.plan(
        SUMS, [("sex", "pay")], RHO, person="id", per_person={"pay": "mean"}, rows_per_person=1
    ),
}
CROWDED = ("few of a person", "few in sets", "one group of a person")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(11)
    return pa.table(
        {
            "sex": rng.choice(["F", "M", None], N, p=[0.5, 0.45, 0.05]),
            "region": rng.choice(["N", "S", "W"], N),
            "age": pa.array(rng.integers(-5, 99, N)),
            "pay": rng.lognormal(7, 0.9, N),
            "w": 4 * rng.random(N),
            "id": rng.integers(0, 300, N),
        }
    ).filter(pa.array(rng.random(N) < 0.99))


def arguments(plan, limit):
    """The arguments of a count of the planned tables."""
    used = plan.asked.used
    attributes = [plan.schema.attributes[i] for i in used]
    subsets = [tuple(used.index(i) for i in S) for S in plan.tables.subsets]
    rules = excluded(plan.schema, used)
    return attributes, subsets, "drop", limit, plan.weight, plan.query.unit, rules


def table_of(plan, people):
    """The table, without rows that must not be dropped."""
    if not plan.has_public_rows:
        return people
    return people.filter(pa.compute.is_valid(people["sex"]))


def released(plan, table):
    """A release, which drops rows where it may."""
    return plan.release(table, on_outside="refuse" if plan.has_public_rows else "drop")


def found_in(plan, people):
    return recount(table_of(plan, people), *arguments(plan, limit_of(plan)))


# the recount


@pytest.mark.parametrize("name", [name for name in PLANS if name not in CROWDED])
@pytest.mark.parametrize("file", [None, "t.csv", "t.tsv", "t.parquet"])
def test_a_recount_is_the_count_of_a_release(people, tmp_path, name, file):
    plan = PLANS[name]()
    table = people
    if file is not None:
        table = tmp_path / file
        if file.endswith("parquet"):
            pyarrow.parquet.write_table(people, table)
        elif file.endswith("csv"):
            csv.write_csv(people, table)
        else:
            rows = [people.column_names, *zip(*people.to_pydict().values(), strict=True)]
            lines = ("\t".join("" if x is None else str(x) for x in row) for row in rows)
            table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    counted = dict(count_marginals(table, *arguments(plan, limit_of(plan))))
    found = recount(table, *arguments(plan, limit_of(plan)))
    assert found.crowded == 0
    assert counted.keys() == found.counts.keys()
    for S, counts in counted.items():
        assert np.array_equal(found.counts[S], counts), S


@pytest.mark.parametrize("name", CROWDED)
def test_a_recount_has_the_expectation_of_a_random_choice(people, name):
    """Against the mean of many choices: the mean of 400 is within five standard errors."""
    plan = PLANS[name]()
    found, total, squares, runs = found_in(plan, people), 0.0, 0.0, 400
    assert found.crowded > 50
    (S, *_) = found.counts
    for _ in range(runs):
        counts = dict(count_marginals(people, *arguments(plan, limit_of(plan))))[S]
        total, squares = total + counts, squares + np.square(counts.astype(float))
    mean = total / runs
    error = np.sqrt(np.maximum(squares / runs - mean**2, 0) / runs)
    assert (np.abs(mean - found.counts[S]) <= 5 * error + 1e-6 * plan.query.unit).all()
    assert (error > 0).any()


CSV = {
    "quotes": ('a,sex\n"1,5","F"\n"2""x\ny",M\n3,"F"\n', gn.Dialect()),
    "carriage returns": ("a,sex\r\n1,F\r\n2,M\r\n,F\r\n", gn.Dialect()),
    "an empty line": ("a,sex\n1,F\n\n2,M\n3,F\n", gn.Dialect()),
    "one column": ("sex\nF\nM\n\nF\n", gn.Dialect()),
    "semicolons": ("sep=;\na;sex\n1;F\n2;M\n3;F", gn.Dialect(delimiter=";")),
    "single quotes": ("a,sex\n'1,5',F\n2,'M'\n3,F\n", gn.Dialect(quote="'")),
    "another encoding": ("ä,sex\nö,F\n2,M\n3,F\n", gn.Dialect(encoding="cp1252")),
}


@pytest.mark.parametrize("written", CSV)
def test_csv_in_its_dialects(tmp_path, written):
    text, dialect = CSV[written]
    (tmp_path / "t.csv").write_bytes(text.encode(dialect.encoding))
    table = dialect.table(tmp_path / "t.csv")
    given = [SEX], [(0,)], "drop", None, None, 1, ()
    found = recount(table, *given).counts[0,]
    assert found.tolist() == dict(count_marginals(table, *given))[0,].tolist() == [2, 1]


def test_decimal_commas(tmp_path):
    (tmp_path / "t.csv").write_text("pay\n1000,5\n1000.5\n4999\n", encoding="utf-8")
    table = gn.Dialect(delimiter=";", decimal=",").table(tmp_path / "t.csv")
    given = [PAY], [(0,)], "drop", None, None, unit_of([PAY], None), ()
    found = recount(table, *given)
    assert found.left_out == 1  # the number with a point
    assert np.array_equal(found.counts[0,], dict(count_marginals(table, *given))[0,])


def test_a_malformed_file_is_refused_without_its_content(tmp_path):
    (tmp_path / "t.csv").write_text("a,sex\n1,F\n2,M,secret\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        recount(tmp_path / "t.csv", [SEX], [(0,)], "drop", None, None, 1, ())
    assert "secret" not in str(caught.value)


# the level


def verdicts(plan, people, runs, level, factor=1.0, table=None, seed=1):
    """The verdicts on simulations, with noise of a factor of the stated scale."""
    rng = np.random.default_rng(seed)
    scale = factor * plan.query.query.scale
    counted = table_of(plan, people if table is None else table)
    rule = "refuse" if plan.has_public_rows else "drop"
    found = found_in(plan, people)

    def draw(count):
        return np.rint(rng.normal(scale=scale, size=count)).astype(np.int64)

    for _ in range(runs):
        release = simulated(plan, counted, draw, on_outside=rule, progress=None)
        yield inspection.verdict(release, found, level)


@pytest.mark.usefixtures("counted_once")
@pytest.mark.parametrize("name", PLANS)
def test_a_correct_release_fails_with_the_stated_probability_at_most(people, name):
    """Of 150 at the level 0.3; where the choice of rows is known, at least a third of it."""
    runs, level = 150, 0.3
    failed = sum(not own.passed for own in verdicts(PLANS[name](), people, runs, level))
    assert stats.binom.sf(failed - 1, runs, level) > 1e-5
    if name not in CROWDED:
        assert stats.binom.cdf(failed, runs, level / 3) > 1e-5


@pytest.mark.parametrize("name", PLANS)
def test_a_release_passes_and_others_do_not(people, name):
    """OpenDP's noise at the level in use; then half of the rows, and those of other values."""
    plan = PLANS[name]()
    table = table_of(plan, people)
    release = released(plan, table)
    found = release.inspect(table)
    assert found.passed
    assert found.level == 1e-6
    assert found.crowded == (name in CROWDED)
    assert not release.inspect(table.slice(0, 2)).passed
    if name not in (*CROWDED, "total"):
        turned = table.set_column(0, "sex", pa.array(["F"] * len(table)))
        assert not release.inspect(turned).passed


# the power


def quickly(plan, table, people, runs, **options):
    """The share of releases of another table that fail, and one of their verdicts."""
    found = list(verdicts(plan, people, runs, 1e-6, table=table, **options))
    return sum(not own.passed for own in found), found[0]


@pytest.mark.usefixtures("counted_once")
def test_missing_rows_are_noticed_with_the_stated_power(people):
    """Rows of all kinds, so that the number of rows alone is noticed: 99.9 % of 300."""
    plan, runs = PLANS["counts"](), 300
    whole = people.filter(pa.compute.is_valid(people["sex"]))
    stated = next(verdicts(plan, whole, 1, 1e-6)).rows_lost
    assert 10 < stated < 200
    failed, _ = quickly(plan, whole.slice(math.ceil(stated)), whole, runs)
    assert stats.binom.cdf(failed, runs, inspection.POWER) > 1e-5
    failed, _ = quickly(plan, whole.slice(3), whole, 50)
    assert failed <= 1  # three rows are less than the noise on their number hides


@pytest.mark.usefixtures("counted_once")
@pytest.mark.parametrize("name", ["counts", "replace", "weights"])
def test_rows_in_other_categories_are_noticed_with_the_stated_power(people, name):
    plan, runs = PLANS[name](), 200
    whole = people.filter(pa.compute.is_valid(people["sex"]))
    stated = next(verdicts(plan, whole, 1, 1e-6)).rows_moved["region"]
    regions, weights = whole["region"].to_pylist(), np.minimum(whole["w"].to_numpy(), 3)
    moved = 0.0
    for k, region in enumerate(regions):
        if region == "N" and moved < stated:
            regions[k] = "S"
            moved += weights[k] if name == "weights" else 1
    assert moved >= stated
    other = whole.set_column(1, "region", pa.array(regions))
    failed, _ = quickly(plan, other, whole, runs)
    assert stats.binom.cdf(failed, runs, inspection.POWER) > 1e-5


def test_a_swapped_column_fails(people):
    """Two columns of the same categories, read as each other."""
    schema = gn.Schema([gn.Attribute(name, ["N", "S", "W"]) for name in ("born", "lives")])
    rng = np.random.default_rng(3)
    born = rng.choice(["N", "S", "W"], 3000, p=[0.6, 0.3, 0.1])
    table = pa.table({"born": born, "lives": np.where(rng.random(3000) < 0.8, born, "S")})
    release = gn.plan(schema, 2, RHO).release(table)
    assert release.inspect(table).passed
    assert not release.inspect(table).deviating
    found = release.inspect(table.rename_columns(["lives", "born"]))
    assert not found.passed
    assert dict.fromkeys(["born", "lives"], "too far").items() <= found.deviating.items()
    assert "the number of rows" not in found.deviating  # all rows are there


@pytest.mark.usefixtures("counted_once")
@pytest.mark.parametrize(("factor", "least"), [(0.9, 0.95), (1.1, 0.95)])
def test_noise_of_another_scale_fails_with_the_stated_probability(factor, least):
    """A table of 4000 cells: the stated probabilities are near one, and true."""
    schema = gn.Schema([gn.Attribute("a", list(range(80))), gn.Attribute("b", list(range(50)))])
    rng = np.random.default_rng(4)
    table = pa.table({"a": rng.integers(0, 80, 2000), "b": rng.integers(0, 50, 2000)})
    plan, runs = gn.plan(schema, 2, RHO), 60
    failed, one = quickly(plan, table, table, runs, factor=factor)
    assert one.noise[factor] > least
    assert stats.binom.cdf(failed, runs, one.noise[factor]) > 1e-5
    low, high = one.scales
    assert 0.88 < low < 1 < high < 1.12
    for scale in one.scales:
        failed, _ = quickly(plan, table, table, 60, factor=scale)
        assert failed >= 59


def test_noise_is_compared_by_the_sum_over_few_cells_too(people):
    """A small plan states its small power at nine tenths, and the factors that it does notice."""
    plan = PLANS["counts"]()
    one = next(verdicts(plan, people, 1, 1e-6))
    assert one.noise[0.9] < 0.01
    low, high = one.scales
    for scale in (low, high):
        failed, _ = quickly(plan, people, people, 60, factor=scale)
        assert failed >= 59


def test_quantiles_and_power_are_those_of_other_code():
    """Against scipy.stats: ends of χ², a noncentral χ², and the probability at another scale."""
    for rank in (1, 7, 4000):
        ends = inspection._quantiles(rank, 1e-8, 1.0, 0)
        assert ends.low == pytest.approx(stats.chi2.ppf(1e-8, rank), rel=1e-9)
        assert ends.high == pytest.approx(stats.chi2.isf(1e-8, rank), rel=1e-9)
        assert ends.slack == 0
        shift = inspection._noticed_length(ends, rank)
        assert stats.ncx2.sf(ends.high, rank, shift**2) == pytest.approx(0.999, abs=1e-6)
        power = stats.chi2.cdf(ends.low / 0.81, rank) + stats.chi2.sf(ends.high / 0.81, rank)
        assert inspection._power(ends, rank, 0.9) == pytest.approx(power, rel=1e-9)


def test_choices_of_a_person_are_within_their_bound(people):
    """The part of the difference that is no noise: 300 choices, none beyond what has 1e-6."""
    plan = PLANS["few of a person"]()
    found = found_in(plan, people)
    squares = {T: [] for T in plan.query.multipliers}
    for _ in range(100):
        counts = dict(count_marginals(people, *arguments(plan, limit_of(plan))))
        for S, own in counts.items():
            for T in squares:
                if set(T) <= set(S):
                    apart = inspection._squared_error(own - found.counts[S], S, T, plan.query)
                    squares[T].append(apart)
    release = plan.simulate(people, np.random.default_rng(1), on_outside="drop")
    for T, own in squares.items():
        slack = inspection._quantiles(1, 1e-6, inspection._reach(T, release), found.crowded).slack
        assert max(own) <= slack**2 + 1e-12  # rounding
        assert not T or max(own) > slack**2 / 1000  # of the same order


def test_the_effect_of_a_choice_is_that_of_the_rows_that_are_measured_longest(people):
    """Two rows of a person in other cells: four times the longest answer on a row."""
    plan = PLANS["few in sets"]()
    release = plan.simulate(people, np.random.default_rng(1), on_outside="drop")
    for T in plan.query.multipliers:
        shape = [plan.schema.sizes[i] for i in T]
        rows = np.eye(math.prod(shape), dtype=np.int64).reshape(-1, *shape)
        most = max(sum(int(x) ** 2 for x in plan.query.answer(T, row)) for row in rows)
        expected = 4 * math.sqrt(most) / plan.query.query.scale if T else 0
        assert inspection._reach(T, release) == pytest.approx(expected, rel=1e-12)


# what else is compared


def test_estimates_changed_in_one_of_two_tables_fail(people):
    """Each table is compared, also where another one has the same margin."""
    release = released(PLANS["counts"](), people)
    tables = {S: np.array(table) for S, table in release.tables.items()}
    last = list(tables)[-1]
    tables[last][0, 0] += 300
    changed = release.__class__(**{**vars(release), "tables": tables})
    assert release.inspect(people).passed
    assert not changed.inspect(people).passed


def test_a_pass_that_says_little_says_so_first(people):
    """At a thousandth of the budget, noise is larger than half of the number of rows."""
    passed = "PASSED, which says little: with this much noise, half of all rows could be missing"
    for rho, weak in ((0.1, False), (1e-5, True)):
        release = released(gn.plan(COUNTS, 2, gn.zCDP(rho)), people)
        found = release.inspect(people)
        assert (found.passed, found.weak) == (True, weak)
        assert str(found).startswith(passed if weak else "PASSED\n")


def test_less_noise_than_stated_is_too_close(people):
    found = next(verdicts(PLANS["counts"](), people, 1, 1e-6, factor=0.01))
    assert found.deviating["all numbers together"] == "too close"
    assert "Too close to the recount, as with less noise than stated: " in str(found)


def test_exact_public_counts_are_compared_exactly(people):
    plan = PLANS["public"]()
    table = table_of(plan, people)
    release = released(plan, table)
    sexes = table["sex"].to_pylist()
    other = sexes.index("F")
    sexes[other] = "M"
    assert release.inspect(table).passed
    one_changed = table.set_column(0, "sex", pa.array(sexes))
    assert not release.inspect(one_changed).passed
    assert EXACT in release.inspect(table.slice(1)).deviating
    assert release.inspect(table).rows_lost == 1


def test_a_table_that_would_have_been_refused_fails(people):
    whole = people.filter(pa.compute.is_valid(people["sex"]))
    release = gn.plan(COUNTS, 2, RHO).release(whole, on_outside="refuse")
    assert release.inspect(whole).passed
    assert not release.inspect(people).passed


def test_integers_too_far_from_normal_numbers_for_the_level_are_refused(people, monkeypatch):
    """They would fail at a level that their distance exceeds, however correct the release is."""
    plan = gn.plan(COUNTS, 1, RHO)
    table = people.filter(pa.compute.is_valid(people["sex"]))
    release = plan.release(table)
    monkeypatch.setattr(inspection, "lattice_distance", lambda count, scale: 1e-5)
    with pytest.raises(ParameterError, match="at least 2e-05 for the integers"):
        release.inspect(table)
    assert release.inspect(table, level=1e-4).passed


def test_of_tables_that_share_their_noise_there_is_no_inspection(people, tmp_path):
    plan = gn.plan(COUNTS, 1, RHO)
    whole = people.filter(pa.compute.is_valid(people["sex"]))
    release = plan.release(whole)
    both = gn.combine([release, plan.release(whole)])
    with pytest.raises(ParameterError, match="several combined"):
        both.inspect(people)
    stream = gn.plan(COUNTS, 1, RHO, over=gn.streams.Ticks(2)).start(tmp_path / "st")
    stream.tick(whole, number=1)
    stream.tick(whole, number=2)
    with pytest.raises(ParameterError, match=r"one tick of a stream, got ticks 1 to 2.*period"):
        stream.tables.total().inspect(people)
    for level in (0.0, 1.0, 1, math.nan, "1e-6"):
        with pytest.raises(ParameterError, match="level"):
            release.inspect(whole, level=level)
    assert run(["inspect", str(tmp_path / "st"), "t.csv"]) == 1


# ticks of streams


PREFIXES = {"sex": "identity", "age": "prefix"}
STREAMS = {
    "counts": lambda over: gn.plan(COUNTS, 2, RHO, over=over),
    "replace": lambda over: gn.plan(COUNTS, 2, RHO, neighbors="replace", over=over),
    "persons": lambda over: gn.plan(
        COUNTS, [PREFIXES], gn.zCDP(90), person="id", rows_per_person=12, over=over
    ),
    "few of a person": lambda over: gn.plan(
        COUNTS, 2, RHO, person="id", rows_per_person=1, over=over
    ),
}


@pytest.mark.parametrize("name", STREAMS)
def test_a_tick_fails_with_the_stated_probability_at_most_and_other_rows_do(people, name):
    """As releases: of 60 at the level 0.3; of seven tenths of the scale, most."""
    over = gn.streams.Ticks(4, reports=2)
    plan, runs, level = STREAMS[name](over), 60, 0.3
    whole = people.filter(pa.compute.is_valid(people["sex"]))
    parts = [whole.slice(start, 280) for start in (0, 280, 560)]
    rng = np.random.default_rng(7)

    def releases(scale):
        while True:

            def draw(count):
                return np.rint(rng.normal(scale=scale, size=count)).astype(np.int64)

            yield running.simulated(plan, parts, draw, on_outside="refuse").period(3)

    one = plan.one_tick
    found = recount(parts[2], *arguments(one, limit_of(one)))
    right, wrong = (
        sum(
            not inspection.verdict(release, found, level).passed
            for release in itertools.islice(releases(factor * plan.scale), runs)
        )
        for factor in (1, 0.7)
    )
    assert stats.binom.sf(right - 1, runs, level) > 1e-5
    if name != "few of a person":
        assert stats.binom.cdf(right, runs, level / 3) > 1e-5
        assert stats.binom.cdf(wrong, runs, 0.6) > 1e-5
    last = next(releases(plan.scale))
    assert last.inspect(parts[2]).passed
    assert not last.inspect(parts[2].slice(0, 2)).passed
    assert not last.inspect(parts[2].set_column(0, "sex", pa.array(["F"] * 280))).passed


def test_a_row_without_the_number_of_its_tick_is_in_no_table(people):
    over = gn.streams.Ticks(2, period="week")
    whole = people.filter(pa.compute.is_valid(people["sex"]))
    weeks = pa.array([1] * 500 + [None] * (len(whole) - 500), pa.int64())
    table = whole.append_column("week", weeks)
    rng = np.random.default_rng(1)
    so_far = gn.plan(COUNTS, 1, RHO, over=over).simulate([table], rng, on_outside="drop")
    assert so_far.period(1).inspect(table).passed
    assert (
        not so_far.period(1).inspect(table.set_column(6, "week", pa.array([1] * len(whole)))).passed
    )


def test_the_command_compares_a_tick_with_the_table_that_it_counted(
    people, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    stream = gn.plan(COUNTS, 2, RHO, over=gn.streams.Ticks(3)).start("st", on_outside="drop")
    for number in (1, 2):
        csv.write_csv(people.slice(400 * (number - 1), 400), f"{number}.csv")
        stream.tick(f"{number}.csv", number=number)
    for number in ("1", "2"):
        assert run(["inspect", "st", "--tick", number, f"{number}.csv"]) == 0
    assert capsys.readouterr().out.count("PASSED") == 2
    assert run(["inspect", "st", "--tick", "2", "1.csv", "2.csv"]) == 1
    assert run(["inspect", "st", "1.csv"]) == 1
    assert "--tick 1 with" in capsys.readouterr().err
    assert run(["inspect", "st", "--tick", "3", "1.csv"]) == 1


def test_means_are_inspected_in_the_dialect_in_which_they_were_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"K\xf6ln;{2000 + k % 997},5" for k in range(3000)]
    (tmp_path / "t.csv").write_bytes("\n".join(["stadt;lohn", *rows]).encode("cp1252"))
    dialect = ["--delimiter", ";", "--decimal", ",", "--encoding", "cp1252"]
    words = ["mean", "t.csv", "-c", "lohn", "--by", "stadt=K\xf6ln", "--rho", "9", "-o", "out"]
    assert run([*words, "--between", "0,5000", *dialect]) == 0
    assert run(["inspect", "out", "t.csv"]) == 0
    assert run(["verify", "out"]) == 0


@pytest.mark.parametrize("low", [0.0, 1e-5, 0.3])
def test_what_would_not_be_noticed_is_said(low):
    chances = {0.9: 1e-7, 1.1: 0.5}
    said = str(gn.results.Inspection(True, 1e-6, 0.999, None, {}, chances, (low, 9.85), False))
    assert ("noise of < 0.3 or > 9.85 times" in said) == (low == 0.3)
    assert ("Hardly noticed: noise of less than the stated scale" in said) == (low < 0.3)
    assert "Hardly noticed, with probability 1e-07: noise of 0.9 times" in said
    assert "\nNoticed with probability 0.5: noise of 1.1 times" in said


def test_the_command_says_passed_or_failed_and_that_it_is_for_the_office(
    people, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name, part in (("one", people.slice(0, 500)), ("two", people.slice(500))):
        csv.write_csv(part, f"{name}.csv")
    (tmp_path / "t.toml").write_text(COUNTS.to_toml(), encoding="utf-8")
    plan = PLANS["counts"]()
    plan.release(["one.csv", "two.csv"], out="out", on_outside="drop")
    assert run(["inspect", "out", "one.csv", "two.csv"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("PASSED\nFor the office alone: the verdict depends on exact counts")
    assert run(["inspect", "out", "one.csv"]) == 1  # a missing file
    failed = capsys.readouterr().out
    head, *where, how = failed.splitlines()[:5]
    assert head == "FAILED"
    assert where[1].startswith("Too far from the recount: the number of rows, ")
    assert "for the office alone as well" in where[2] + how
    # nothing else depends on the data
    assert said.splitlines()[2:] == failed.splitlines()[4:]
    assert run(["inspect", "out", "*.csv", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["passed"] is True
    assert "For the office alone" in found["not_private"]
    assert found["noise"].keys() == {"0.9", "1.1"}
