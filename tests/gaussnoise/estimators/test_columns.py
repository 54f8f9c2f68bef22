"""Means of columns: neighbours by brute force, all engines, awkward numbers, coverage, and the
command.
"""

import json
import math
import re
from dataclasses import replace
from itertools import chain, combinations_with_replacement

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import (
    BudgetError,
    DataError,
    LedgerError,
    OutputError,
    ParameterError,
    SchemaError,
)
from gaussnoise.estimators import ranges
from gaussnoise.estimators.column_plan import ColumnPlan
from gaussnoise.estimators.ranges import Counts, exact_in
from gaussnoise.privacy.sampler import IntegerQuery
from gaussnoise.tables.counting import persons
from gaussnoise.tables.planning.ranges import FoundRange
from gaussnoise.tables.release.changes import changes_record
from gaussnoise.tables.release.population import means_in
from gaussnoise.tables.release.report.population import sections_of
from gaussnoise.tables.release.report.sentences import NONE

column_means = gn.estimators.column_means


def table(n=20_000, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "income": rng.lognormal(10, 0.5, n),
            "age": rng.integers(18, 90, n),
            "sex": rng.choice(["f", "m"], n),
            "id": rng.integers(0, n // 5, n),
        }
    )


@pytest.fixture
def heard(monkeypatch):
    """Draw no noise, and record every query that would have drawn it."""
    queries = []

    def draw(self, count):
        queries.append((self, count))
        return [0] * count

    monkeypatch.setattr(IntegerQuery, "draw", draw)
    return queries


def plan_of(columns=("x",), groups=(), level=0.95, **options):
    """The request of means, without any data."""
    how, on_outside = options.pop("per_person", None), options.pop("on_outside", "drop")
    given = {"neighbors": "add-remove", "person": None, "rows_per_person": 1} | options
    reduced = dict.fromkeys(columns, how) if how else {}
    return ColumnPlan(list(columns), list(groups), given, reduced, on_outside, level)


@pytest.mark.parametrize("how", [None, "mean", "max"])
def test_one_person_moves_the_counts_of_a_range_by_one(how, monkeypatch):
    """All that a search asks of small tables, before and after one person is added."""
    monkeypatch.setattr(persons.secrets, "token_bytes", bytes)
    rng, thresholds = np.random.default_rng(0), [-1.0, 0.0, 0.5, 1.0]
    asked = plan_of(groups=[gn.Attribute("g", ["a", "b"])], person="who", per_person=how)

    def counted(rows):
        schema = {"who": pl.Int64, "g": pl.String, "x": pl.Float64}
        frame = pl.DataFrame(rows, schema, orient="row")
        return [np.array(part) for part in asked.exact(frame, "x")(thresholds)]

    def rows_of(person):
        groups, numbers = ["a", "b", "c"], [-2.0, 0.0, 0.7, 1.0, 3.0, math.nan]
        return [(person, rng.choice(groups), rng.choice(numbers)) for _ in range(rng.integers(5))]

    for _ in range(40):
        others, added = rows_of(0) + rows_of(1), rows_of(2)
        before, after = counted(others), counted([*added, *others])
        number, below, above = (b - a for a, b in zip(before, after, strict=True))
        valid = any(g != "c" and not math.isnan(x) for _, g, x in added)
        assert number == valid
        assert ((below >= 0) & (above >= 0)).all()
        for k in range(len(thresholds)):
            assert (below[k] + above[k:]).max() <= valid


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_one_row_moves_counts_of_a_search_by_no_more_than_the_noise_is_for(neighbors, heard):
    """All pairs of tables of at most two numbers that differ in one row."""
    values = [-math.inf, -1.0, 0.0, 0.5, 1.0, 2.0, math.inf]
    tables = [list(rows) for k in range(3) for rows in combinations_with_replacement(values, k)]

    def counts(rows, question):
        own = Counts(exact_in(np.array(rows)), neighbors, 1.0, 0.1)
        return np.atleast_1d(getattr(own, question)(0.0, 1.0, 0.5))

    for question, length in (("outside", 1 + (neighbors == "replace")), ("beyond", 1)):
        heard.clear()
        moved = 0.0
        for rows in tables:
            if neighbors == "add-remove":
                others = [[*rows, x] for x in values]
            else:
                others = [[*rows[:k], x, *rows[k + 1 :]] for k in range(len(rows)) for x in values]
            for other in others:
                change = counts(rows, question) - counts(other, question)
                moved = max(moved, np.square(change).sum())
        query = heard[0][0]
        assert moved == length
        scale = query.sensitivity_squared // length
        assert (scale.bit_count(), scale.bit_length() % 2) == (1, 1)  # a power of four
        assert query.rho <= 0.5


def test_thresholds_of_a_search_grow_with_their_place():
    places = np.sort(np.r_[np.linspace(-1, 1, 4001), 0.5, 0.75, 0.5 + 1 / 20])
    numbers = [ranges._at(place) for place in places]
    assert (numbers[0], numbers[-1]) == (-math.inf, math.inf)
    assert numbers == sorted(numbers)
    assert (ranges._at(0.0), ranges._at(0.5), ranges._at(0.75)) == (0.0, 1.0, 256.0)


@pytest.mark.parametrize(("number", "rho"), [(300, 10.0), (2000, 0.5), (10**6, 1e-4)])
def test_an_end_short_of_a_decile_hardly_ever_passes_the_check(number, rho):
    """Of an end with a tenth of the population beyond it, or more, the check counts too many."""
    wrong = 1e-3
    counts = Counts(exact_in(np.zeros(0)), "add-remove", rho, wrong)
    limit, _ = ranges._limits(number, rho, counts)
    # both noises in turn at the quantile that they exceed with the chance ``wrong``
    z = stats.norm.isf(wrong)
    least = math.floor(number - z * counts.deviation(counts.part("count")))
    most = math.floor(limit + z * counts.deviation(counts.part("check")))
    for share in (0.1, 0.15, 0.5):
        assert stats.binom.cdf(most, least, share) <= wrong
    assert stats.binom.cdf(most, number, 0.02) > 0.5  # an end that is far enough out may pass


def test_a_search_that_missed_is_noticed(monkeypatch):
    frame = pl.DataFrame({"x": np.repeat([0.0, 1.0], [1760, 240])})
    monkeypatch.setattr(ranges, "_search", lambda *_: (0.0, 1e-80))
    (found,) = column_means(frame, ["x"], gn.zCDP(0.5)).means
    assert math.isnan(found.mean)
    assert "noise misled the search" in found.reason
    monkeypatch.setattr(ranges, "_search", lambda *_: (0.0, 0.9))  # half as wide again is enough
    (found,) = column_means(frame, ["x"], gn.zCDP(0.5)).means
    assert found.low < 0.12 < found.high


TAILS = {
    "uniform": (lambda rng, n: rng.random(n), 4),
    "exponential": (lambda rng, n: rng.exponential(size=n), 4),
    "lognormal": (lambda rng, n: rng.lognormal(0, 1.2, n), 2),
}


@pytest.mark.parametrize("law", TAILS)
def test_the_order_of_moments_follows_the_counts_of_far_numbers(law):
    draw, order = TAILS[law]
    frame = pl.DataFrame({"x": draw(np.random.default_rng(0), 200_000) - 0.5})
    (found,) = column_means(frame, ["x"], gn.zCDP(1)).means
    assert f"order {order}," in found.assumed
    (given,) = column_means(frame, ["x"], gn.zCDP(1), order=3).means
    assert "order 3," in given.assumed


def test_no_negative_number_is_assumed_only_where_none_shows():
    x = np.random.default_rng(0).exponential(size=20_000)
    for shift, said in ((0.0, True), (-0.05, False)):
        (found,) = column_means(pl.DataFrame({"x": x + shift}), ["x"], gn.zCDP(1)).means
        assert ("no number is below 0" in found.assumed) == said
        assert (found.clipped[0] == 0) == said


def test_infinite_numbers_count_in_the_search_as_they_do_in_the_plan(heard):
    """One in twenty is infinite: the mean is that of the numbers as they are clipped."""
    x = np.random.default_rng(0).exponential(size=20_000)
    x[::20] = math.inf
    for on_outside in ("drop", "refuse"):
        frame = pl.DataFrame({"x": x})
        (found,) = column_means(frame, ["x"], gn.zCDP(1), on_outside=on_outside).means
        low, high = found.clipped
        assert found.mean == pytest.approx(np.clip(x, low, high).mean(), rel=1e-5)
        assert found.count == pytest.approx(len(x))
    x[::8] = math.inf  # more than a tenth: no range holds nine tenths of the numbers
    (found,) = column_means(frame.with_columns(x=x), ["x"], gn.zCDP(1), on_outside="refuse").means
    assert "the numbers are too large" in found.reason


def test_public_bounds_need_no_search(heard):
    frame = table(20_000)
    (found,) = column_means(frame, ["age"], gn.zCDP(0.1), between={"age": (0, 120)}).means
    assert len(heard) == 1
    assert (found.clipped, found.searched, found.assumed) == ((0.0, 120.0), 0.0, "")
    assert found.mean == pytest.approx(frame["age"].mean(), rel=1e-6)
    (found,) = column_means(frame, ["age"], gn.zCDP(0.1), between={"age": (18, None)}).means
    assert found.clipped[0] == 18
    assert "no number is below 18" in found.assumed


def test_all_steps_together_spend_no_more_than_the_budget(heard):
    sexes = {"sex": ["f", "m"]}
    for by, person, k in ((sexes, None, 1), (None, "id", 1), (sexes, "id", 2)):
        heard.clear()
        given = {"by": by, "person": person, "rows_per_person": k}
        found = column_means(table(9000), ["income", "age"], gn.zCDP(3), **given)
        noise = found.release.plan.query.query
        spent = sum(query.rho for query, _ in heard if query is not noise) + k**2 * noise.rho
        assert 2.9 < spent <= found.release.rho_charged <= 3
        assert min(query.scale for query, _ in heard) >= 2.0**28


@pytest.mark.parametrize("form", ["polars", "lazy", "pandas", "arrow", "csv", "parquet"])
def test_any_table_gives_the_same_means(form, tmp_path, heard):
    frame = table(400)
    frame.write_csv(tmp_path / "t.csv")
    frame.write_parquet(tmp_path / "t.parquet")
    given = {
        "polars": frame,
        "lazy": frame.lazy(),
        "pandas": frame.to_pandas(),
        "arrow": frame.to_arrow(),
        "csv": tmp_path / "t.csv",
        "parquet": str(tmp_path / "t.parquet"),
    }[form]
    expected = column_means(frame, ["income", "age"], gn.zCDP(10), by={"sex": ["f", "m"]})
    found = column_means(given, ["income", "age"], gn.zCDP(10), by={"sex": ["f", "m"]})
    assert [mean.mean for mean in found.means] == pytest.approx(
        [mean.mean for mean in expected.means], rel=1e-9
    )
    people = column_means(given, ["income"], gn.zCDP(1), person="id")
    averages = frame.group_by("id").agg(pl.col("income").mean())
    assert people.means[0].count == len(averages)


def test_rows_without_a_number_or_a_group_do_not_count(tmp_path, heard):
    (tmp_path / "t.csv").write_text(
        "x,year\n1,2020\n,2020\nabc,2020\n 3 ,2021\n1e2,1999\nNaN,2020\n", encoding="utf-8"
    )
    given = {"by": {"year": [2020, 2021]}, "between": {"x": (0, 4)}}
    found = column_means(tmp_path / "t.csv", "x", gn.zCDP(1e6), **given).means
    assert [(round(mean.count), round(mean.mean, 5)) for mean in found] == [(1, 1.0), (1, 3.0)]


def test_a_row_without_a_number_counts_in_other_columns(heard):
    frame = pl.DataFrame({"x": [1.0, None, 3.0, 1.0], "y": [None, 2.0, 2.0, 4.0]})
    bounds = {"x": (0, 4), "y": (0, 4)}
    found = column_means(frame, ["x", "y"], gn.zCDP(1e6), between=bounds).means
    assert [round(mean.count) for mean in found] == [3, 3]
    assert [mean.mean for mean in found] == pytest.approx([5 / 3, 8 / 3], abs=1e-4)


@pytest.mark.parametrize("scale", [1e-30, 1e-5, 1.0, 1e12, 1e40])
@pytest.mark.parametrize("shift", [0.0, 7.0, -1e6])
def test_location_and_scale_are_found_wherever_they_are(scale, shift):
    x = (np.random.default_rng(0).normal(size=5000) + shift) * scale
    found = column_means(pl.DataFrame({"x": x}), ["x"], gn.zCDP(1)).means[0]
    assert found.low < shift * scale < found.high
    assert found.high - found.low < 2 * scale


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ([1.0] * 5000, "8 in 10 numbers are one number"),
        ([0.0] * 4700 + [1.0] * 300, "8 in 10 numbers are one number"),
        ([1.0], "too few"),
        (list(range(500)), "hint: about"),
    ],
)
def test_no_mean_has_a_reason(numbers, reason, tmp_path):
    means = column_means(pl.DataFrame({"x": numbers}, strict=False), ["x"], gn.zCDP(0.1))
    (found,) = means.means
    assert math.isnan(found.mean)
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert reason in found.reason
    assert f"x: no range, since {found.reason}" in str(means)
    means.release.save(tmp_path / "m")
    again = gn.estimators.population_means(gn.TableRelease.load(tmp_path / "m"))
    assert again.means[0].reason == found.reason


@pytest.mark.parametrize("ones", [0, 1, 5, 20, 40])
def test_intervals_of_few_zeros_and_ones_contain_wilsons(ones, heard):
    """Without noise: also where all numbers are equal, of which the deviation is zero."""
    frame = pl.DataFrame({"x": np.repeat([1.0, 0.0], [ones, 40 - ones])})
    (found,) = column_means(frame, ["x"], gn.zCDP(5), between={"x": (0, 1)}).means
    wilson = stats.binomtest(ones, 40).proportion_ci(0.95, "wilson")
    assert found.low <= wilson.low
    assert wilson.high <= found.high


def test_public_bounds_beside_the_numbers_give_no_mean():
    frame = pl.DataFrame({"x": np.random.default_rng(0).normal(size=5000)})
    for bounds in ((10, None), (None, -10), (100, None)):
        (found,) = column_means(frame, ["x"], gn.zCDP(1), between={"x": bounds}).means
        assert math.isnan(found.mean)
        assert "outside the public bounds" in found.reason


def test_a_group_that_is_too_small_has_no_mean():
    first, second = column_means(
        table(3000), ["age"], gn.zCDP(0.5), by={"sex": ["f", "nobody"]}
    ).means
    assert first.low < 53.5 < first.high
    assert math.isnan(second.mean)
    assert "too few beside the noise" in second.reason


def test_differences_add_noise_and_sampling_of_both_groups():
    frame, by = table(4000), {"sex": ["f", "m"], "age": [20, 30]}
    found = column_means(frame, ["income"], gn.zCDP(5), by=by, between={"income": (0, 200_000)})
    gaps = found.difference("sex", "m", "f")
    assert [dict(gap.group) for gap in gaps] == [{"age": 20}, {"age": 30}]
    noise = found.release.means("income", given=("sex", "age")).difference("sex", "m", "f")
    for k, gap in enumerate(gaps):
        one, two = (
            m for label in "mf" for m in found.means if m.group == {"sex": label, **gap.group}
        )
        assert gap.difference == one.mean - two.mean
        assert gap.sampling == math.hypot(one.sampling, two.sampling)
        assert gap.bias == one.bias + two.bias
        z = stats.norm.isf((1 - 0.95 - 0.0025) / 2)  # a twentieth is left for checks
        assert gap.noise == pytest.approx(z * noise.standard_deviation[k])
        # a hypotenuse is longer than each side, and shorter than both together
        assert one.low - two.high <= gap.low <= gap.high <= one.high - two.low
        assert gap.high - gap.low >= max(one.high - one.low, two.high - two.low)
    assert [gap.difference for gap in found.of_two[:2]] == [-gap.difference for gap in gaps]
    assert "f less m" in str(found)
    assert found.as_dict()["differences"][0]["column"] == "income"


def test_half_widths_of_a_person_in_both_groups_add_up():
    bounds = {"between": {"income": (0, 200_000)}, "by": {"sex": ["f", "m"]}, "person": "id"}
    for how, k in (("mean", 1), ("mean", 2), (None, 2)):
        given = {"per_person": how, "rows_per_person": k, **bounds}
        found = column_means(table(4000), ["income"], gn.zCDP(5), **given)
        [gap] = found.difference("sex", "m", "f")
        halves = [mean.sampling for mean in found.means]
        assert gap.sampling == (sum(halves) if (how, k) == ("mean", 2) else math.hypot(*halves))


def test_differences_of_weighted_means_are_about_the_rows():
    given = {"by": {"sex": ["f", "m"]}, "between": {"income": (0, 200_000)}}
    found = column_means(table(4000), ["income"], gn.zCDP(5), weight=gn.Weight("age", 90), **given)
    [gap] = found.difference("sex", "f", "m")
    own = found.release.means("income", given="sex").difference("sex", "f", "m")
    low, high = own.confidence_interval(0.95 + 0.0025)
    assert (gap.low, gap.high, gap.sampling) == (float(low), float(high), 0)


def test_differences_of_groups_without_a_mean_say_why():
    found = column_means(table(3000), ["age"], gn.zCDP(0.5), by={"sex": ["f", "nobody"]})
    [gap] = found.difference("sex", "f", "nobody")
    assert math.isnan(gap.difference)
    assert "too few beside the noise" in gap.reason
    for wrong in (("ses", "f", "m"), ("sex", "f", "m"), ("sex", "f", "f")):
        with pytest.raises(ParameterError, match="difference: expected"):
            found.difference(*wrong)
    with pytest.raises(ParameterError, match="difference: expected a grouping column"):
        column_means(table(3000), ["age"], gn.zCDP(0.5)).difference("sex", "f", "m")


@pytest.mark.parametrize(("ends", "rho"), [((0, 365), 0.05), ((0, None), 5.0)])
def test_no_interval_leaves_what_is_publicly_known(ends, rho):
    """Of few short stays, with little budget: an interval before it is cut begins above the public
    end in a group by a chance of a few per cent, and in all of ten never."""
    x = np.random.default_rng(0).exponential(2, 2000)
    frame = pl.DataFrame({"x": x, "g": np.repeat(list("abcdefghij"), 200)})
    bounds = {"between": {"x": ends}, "by": {"g": list("abcdefghij")}}
    found = column_means(frame, ["x"], gn.zCDP(rho), **bounds)
    own = found.release.plan.ranges[0]
    assert own.ends == (0, 365 if ends[1] else math.inf)
    again = FoundRange.read(json.loads(json.dumps(own.record())))
    assert again == own
    for mean in found.means:
        assert own.ends[0] <= mean.low <= mean.mean <= mean.high <= own.ends[1]
    if ends[1]:
        assert 0 in [mean.low for mean in found.means]


def test_ranges_of_older_folders_have_no_ends():
    record = FoundRange("x", 0.0, 2.0, assumed="no number is below 0", rho=0.1).record()
    assert not {"least", "most"} & set(record)
    assert FoundRange.read(record).ends == (-math.inf, math.inf)


def test_the_text_says_in_words_what_is_cut_and_who_is_counted(tmp_path, monkeypatch, capsys):
    by = {"sex": ["f", "m", "nobody"]}
    least = {"income": (0, None)}  # else noise may find that some are below zero
    said = str(column_means(table(4000), ["income"], gn.zCDP(0.5), by=by, between=least))
    (count,) = re.findall(r"income: numbers above (\S+) count as \1\.", said)
    assert re.search(
        r"as if \S+ % of the numbers of a group lay \S+ outside this range; if more do", said
    )
    assert "true mean may be higher" in said
    assert "nan" not in said
    assert "inf" not in said
    assert re.search(
        r"income, sex=nobody: no mean, since (fewer than 2|about \d+ numbers, fewer than \d+,) "
        r"(numbers )?are too few beside the noise",
        said,
    )
    assert f"--between income=0,{count}" in said
    assert "in plain words: in no group, however small, do a few numbers far from the" in said
    assert "public bounds, --between income=LOW,HIGH, need no assumption" in said
    bounds = {"between": {"income": (0, 60_000)}, "by": by, "person": "id"}
    said = str(column_means(table(4000), ["income"], gn.zCDP(0.5), **bounds))
    assert "below 0 count as 0 and those above 60000 count as 60000, the public bounds" in said
    assert "counts in at most 1 of them, drawn at random" in said
    assert "in plain words" not in said


def test_the_range_that_one_release_prints_makes_the_next_comparable(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table(4000).write_csv("t.csv")
    (tmp_path / "s.toml").write_text(
        '[about]\ntitle = "Incomes"\nsource = "A survey"\n[attributes.sex]\n'
        'categories = ["f", "m"]\n',
        encoding="utf-8",
    )
    command = "mean t.csv -c income --by sex -s s.toml --rho 1 --title Pay -o".split()
    assert run([*command, "first"]) == 0
    (bounds,) = re.findall(r"--between (\S+)\.", capsys.readouterr().out)
    assert run([*command, "second", "--between", bounds]) == 0
    assert run(["difference", "first", "second"]) == 0
    about = gn.TableRelease.load(tmp_path / "first").plan.asked.about
    assert (about.title, about.source) == ("Pay", "A survey")


def test_weighted_means_are_those_of_the_rows_with_an_exact_interval(tmp_path):
    frame = table(4000).with_columns(w=pl.Series(np.random.default_rng(1).uniform(0, 4, 4000)))
    given = {"by": {"sex": ["f", "m"]}, "between": {"age": (0, 120)}}
    given["weight"] = gn.Weight("w", most=4)
    truth = {sex: np.average(own["age"], weights=own["w"]) for (sex,), own in frame.group_by("sex")}
    missed, trials = 0, 150
    for _ in range(trials):
        found = column_means(frame, ["age"], gn.zCDP(0.05), **given)
        missed += sum(not m.low <= truth[m.group["sex"]] <= m.high for m in found.means)
    # 95.25 %, since a twentieth of the chance to miss is left for checks that public ends spare
    assert stats.binom.isf(1 - 1e-4, 2 * trials, 0.0475) <= missed
    assert missed <= stats.binom.isf(1e-4, 2 * trials, 0.0475)
    assert "Means of the counted rows, weighted by 'w'" in str(found)
    assert "not about a population" in str(found)
    by_hand = found.release.means("age", given="sex")
    assert [mean.mean for mean in found.means] == by_hand.estimate.tolist()
    found.release.save(tmp_path / "m")
    again = gn.estimators.population_means(gn.TableRelease.load(tmp_path / "m"))
    assert (again.means, str(again)) == (found.means, str(found))


def test_noise_of_weighted_means_grows_with_the_largest_weight():
    frame = pl.DataFrame({"x": [0.0, 8.0], "w": [1.0, 2.0]})
    given = {"between": {"x": (0, 8)}, "weight": gn.Weight("w", most=3)}
    own = column_means(frame, ["x"], gn.zCDP(0.5), **given).release.plan
    plain = gn.plan(own.schema, ["x"], gn.zCDP(0.5))
    assert own.weight == given["weight"]
    assert own.answer_deviations("x") == pytest.approx(3 * plain.answer_deviations("x"))


def test_an_empty_table_or_group_is_not_said_to_have_a_number(heard):
    given = {"by": {"sex": ["f", "nobody"]}, "between": {"age": (0, 120)}}
    for frame in (table(300), table(300).head(0)):
        *_, empty = column_means(frame, ["age"], gn.zCDP(1), **given).means
        assert empty.reason.startswith("fewer than 2 numbers are too few beside the noise")
    (empty,) = column_means(frame, ["age"], gn.zCDP(1)).means
    assert empty.reason.startswith("fewer than 2 numbers are too few to find a range")


def test_a_hint_of_more_numbers_or_budget_is_enough():
    def limits(number, rho):
        limit, clear = ranges._limits(
            number, rho, Counts(exact_in(np.zeros(0)), "replace", rho, 1e-3)
        )
        return limit / 2 >= clear

    for number, rho in ((500, 0.1), (1000, 0.01)):
        with pytest.raises(ranges.NoRangeError) as caught:
            ranges._room(Counts(exact_in(np.zeros(0)), "replace", rho, 1e-3), number)
        hint = str(caught.value).partition("hint")[2]
        more, times = map(float, re.findall(r"about ([\d.]+)", hint))
        assert limits(1.1 * more, rho)
        assert limits(number, 1.1 * rho * times)
        assert not limits(0.8 * more, rho)


def test_means_of_persons_by_group_are_those_of_their_records():
    rng = np.random.default_rng(0)
    n = 30_000
    frame = pl.DataFrame(
        {
            "id": rng.integers(0, 6000, n),
            "g": rng.choice(["a", "b"], n),
            "x": rng.exponential(size=n),
        }
    )
    given = {"by": {"g": ["a", "b"]}, "person": "id", "rows_per_person": 2}
    records = frame.group_by("id", "g").agg(pl.col("x").mean())
    truth = dict(records.group_by("g").agg(pl.col("x").mean()).iter_rows())
    found = column_means(frame, "x", gn.zCDP(2), **given)
    assert found.mean_of == "persons, each with the mean of their own numbers"
    for mean in found.means:
        assert abs(mean.mean - truth[mean.group["g"]]) < 2.5 * mean.noise + mean.bias
    of_rows = column_means(frame, "x", gn.zCDP(2), **given, per_person=None)
    assert of_rows.mean_of == "rows, at most 2 of each person"


def test_each_column_may_have_its_own_function_of_a_persons_numbers(tmp_path):
    ids = [k // 2 for k in range(4000)]
    frame = pl.DataFrame({"id": ids, "x": [1.0, 3.0] * 2000, "y": [1.0, 3.0] * 2000})
    given = {"person": "id", "between": {"x": (0, 8), "y": (0, 8)}}
    own = {"y": "sum", "x": "max"}
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(10))
    for _ in range(2):  # the second time it is read again
        found = column_means(frame, ["x", "y"], gn.zCDP(10), per_person=own, **given,
                             ledger=ledger, id="a", out=tmp_path / "out")  # fmt: skip
    x, y = found.means
    assert abs(x.mean - 3) < 4 * x.noise + x.bias
    assert abs(y.mean - 4) < 4 * y.noise + y.bias
    assert found.release.plan.per_person == {"x": "max", "y": "sum"}
    over = "persons, each with the {} of their own numbers ({})"
    first, second = found.mean_of.split("; ")
    assert (first, second) == (over.format("largest", "x"), over.format("sum", "y"))
    both = column_means(
        frame, ["x", "y"], gn.zCDP(10), per_person={"x": "max", "y": "max"}, **given
    )
    assert both.mean_of == "persons, each with the largest of their own numbers"


def test_the_count_beside_a_mean_is_said_to_be_of_those_with_a_number(heard):
    """Of ten rows in each group, three have no number; `ask` counts them too."""
    rows = {"g": ["a", "b"] * 500, "x": ([None, 1.0, 2.0, 3.0] * 250)}
    found = column_means(pl.DataFrame(rows), ["x"], gn.zCDP(10), by={"g": ["a", "b"]},
                         between={"x": (0, 4)})  # fmt: skip
    assert [mean.count for mean in found.means] == pytest.approx([250, 500], abs=1e-6)
    assert found.release.ask("count by g").estimate.tolist() == pytest.approx([500, 500], abs=1e-6)
    said = "private estimate of the number of rows with a number in the group"
    assert found.count_of.startswith(said)
    assert "how many (ask) also counts those without one" in found.count_of
    assert found.as_dict()["count_of"] == found.count_of
    assert f"rows: {found.count_of}." in str(found).splitlines()
    whole = pl.DataFrame(rows).drop_nulls()
    strict = column_means(whole, ["x"], gn.zCDP(10), between={"x": (0, 4)}, on_outside="refuse")
    assert strict.count_of == said


@pytest.mark.parametrize("between", [None, {"x": (0, 1000)}])
def test_codes_for_no_answer_count_neither_in_the_search_nor_in_means(between, heard, tmp_path):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(0, 10, 3000), np.full(3000, 999.0)])
    given = {"missing": {"x": [999]}, "between": between, "out": tmp_path / "out"}
    (found,) = column_means(pl.DataFrame({"x": x}), "x", gn.zCDP(1), **given).means
    assert found.mean == pytest.approx(x[:3000].mean(), abs=1e-3)  # 502 with the codes
    assert found.count == pytest.approx(3000)
    assert between is not None or found.clipped[1] < 100
    plan = gn.TableRelease.load(tmp_path / "out").plan
    assert plan.schema.attributes[0].missing == (999,)


def test_the_schema_of_means_says_which_codes_mean_no_answer(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    pl.DataFrame({"x": [*[1.0, 3.0] * 2000, *[999.0] * 3000]}).write_csv("t.csv")
    (tmp_path / "s.toml").write_text(
        "[attributes.x]\nclip = [0, 5]\nmissing = [999]\n", encoding="utf-8"
    )
    assert run("mean t.csv -c x -s s.toml --rho 1 --between 0,1000 --json".split()) == 0
    (mean,) = json.loads(capsys.readouterr().out)["means"]
    assert mean["mean"] == pytest.approx(2, abs=1)
    assert mean["count"] == pytest.approx(4000, abs=50)


def test_sums_and_numbers_of_rows_of_persons_need_public_bounds():
    frame = pl.DataFrame({"id": [k // 2 for k in range(2000)], "x": [1.0, 3.0] * 1000})
    for how, truth in (("sum", 4.0), ("count", 2.0), ("max", 3.0), ("mean", 2.0)):
        bounds = {"x": (0, 8)}
        (found,) = column_means(
            frame, "x", gn.zCDP(10), person="id", per_person=how, between=bounds
        ).means
        assert abs(found.mean - truth) < 4 * found.noise + found.bias
    with pytest.raises(ParameterError, match="needs person="):
        column_means(frame, "x", gn.zCDP(10), per_person="sum", between=bounds)


def test_groups_may_be_bins_and_the_release_can_be_asked_for_more(tmp_path):
    age = gn.Attribute("age", edges=[0, 40, 60, 120])
    found = column_means(table(), ["income"], gn.zCDP(1), by=[age], out=tmp_path / "out")
    assert [mean.group["age"] for mean in found.means] == list(age.labels)
    again = gn.TableRelease.load(tmp_path / "out")
    assert str(gn.estimators.population_means(again)) == str(found)
    gap = again.means("income", given="age").difference("age", age.labels[0], age.labels[1])
    assert abs(gap.estimate) < 8 * gap.standard_deviation + 500
    assert again.plan.ranges == found.release.plan.ranges
    with pytest.raises(OutputError, match="exists already"):
        column_means(table(), ["income"], gn.zCDP(1), out=tmp_path / "out")


def test_a_wider_level_than_that_of_the_ranges_is_refused():
    found = column_means(table(), ["income"], gn.zCDP(1), level=0.9)
    wide, narrow = (gn.estimators.population_means(found.release, level) for level in (0.99, 0.5))
    assert wide.means[0].low < found.means[0].low < narrow.means[0].low
    with pytest.raises(ParameterError, match=r"level < 0\.995"):
        gn.estimators.population_means(found.release, 0.999)
    plain = gn.plan(gn.Schema([gn.Attribute("x", clip=[0, 1])]), 1, gn.zCDP(1))
    with pytest.raises(ParameterError, match="release of column_means"):
        gn.estimators.population_means(plain.release(pl.DataFrame({"x": [0.5]})))


def test_ranges_that_are_not_of_the_schema_are_refused():
    plan = column_means(table(), ["income"], gn.zCDP(1)).release.plan
    schema = gn.Schema([gn.Attribute("income", clip=[0, 1])])
    with pytest.raises(ParameterError, match="ranges="):
        gn.plan(schema, 1, gn.zCDP(1), ranges=plan.ranges)
    poor = gn.zCDP(plan.ranges[0].rho / 2)
    with pytest.raises(ParameterError, match="has not spent"):
        gn.plan(plan.schema, 1, poor, ranges=plan.ranges).release(table())


def test_what_a_ledger_cannot_pay_is_refused_before_anything_is_read(tmp_path, capsys):
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(0.1))
    given = {"ledger": ledger, "id": "a", "out": tmp_path / "out"}
    with pytest.raises(BudgetError, match=r"at most rho = 0.1, the rest of 0.1, got 0.4"):
        column_means(None, ["x"], gn.zCDP(0.4), **given)  # None is no table
    assert (ledger.spent, ledger.refusals) == (0, 0)
    command = ["mean", str(tmp_path / "no such.csv"), "-c", "x", "--rho", "0.4", "--id", "a"]
    assert run([*command, "--ledger", str(tmp_path / "l"), "-o", str(tmp_path / "out")]) == 1
    assert "error: BudgetError: ledger: expected a cost of at most" in capsys.readouterr().err
    assert (ledger.spent, ledger.refusals) == (0, 0)


def test_a_refusal_by_the_ranges_that_were_found_stays_charged(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise ParameterError("a range of 123456")

    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(1))
    monkeypatch.setattr(gn.Plan, "release", refused)
    given = {"ledger": ledger, "id": "a", "out": tmp_path / "out"}
    with pytest.raises(OutputError, match="no release follows") as raised:
        column_means(table(3000), ["income"], gn.zCDP(0.4), **given)
    assert "123456" not in str(raised.value)
    assert ledger.spent == pytest.approx(0.4)
    assert ledger.refusals == 0


def test_a_ledger_is_charged_once(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(1))
    given = {"ledger": ledger, "by": {"sex": ["f", "m"]}, "out": tmp_path / "out"}
    first, again = (
        column_means(table(3000), ["income"], gn.zCDP(0.4), id="a", **given) for _ in range(2)
    )
    assert str(first) == str(again)
    assert ledger.spent == pytest.approx(0.4)
    assert ledger.entries()[0].protects == "one row under add-remove"
    with pytest.raises(LedgerError):
        column_means(table(3000), ["age"], gn.zCDP(0.4), id="a", **given)
    given["out"] = tmp_path / "other"
    with pytest.raises(LedgerError, match="protects"):
        column_means(table(3000), ["age"], gn.zCDP(0.4), id="b", person="id", **given)


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"columns": ["nothing"]}, DataError, "missing"),
        ({"columns": []}, ParameterError, "at least one"),
        ({"columns": ["age", "age"]}, ParameterError, "each once"),
        ({"neighbors": "swap"}, ParameterError, "add-remove"),
        ({"format": "bogus", "out": "new"}, ParameterError, "format"),
        ({"rows_per_person": 2}, ParameterError, "needs person="),
        ({"person": "id", "per_person": "sum"}, ParameterError, "public ends"),
        ({"person": "id", "per_person": "median"}, ParameterError, "'mean', 'sum'"),
        ({"person": "id", "per_person": {"x": "mean"}}, ParameterError, "for each column"),
        (
            {"person": "id", "per_person": "sum", "between": {"age": (1, 9)}},
            ParameterError,
            "begin at 0 for the sums of persons",
        ),
        ({"missing": {"x": [999]}}, ParameterError, "codes of columns that are asked for"),
        ({"missing": {"age": ["999"]}}, SchemaError, "numbers without quotes"),
        ({"weight": gn.Weight("w", 2)}, ParameterError, "both public ends"),
        ({"spread": 0}, ParameterError, "spread"),
        ({"order": 1}, ParameterError, "order >= 2"),
        ({"level": 1}, ParameterError, "level"),
        ({"privacy": gn.PureDP(1)}, ParameterError, "PureDP"),
        ({"id": "a"}, ParameterError, "together"),
    ],
)
def test_requests_that_make_no_sense_are_refused(change, kind, words):
    given = {"columns": ["age"], "privacy": gn.zCDP(1)} | change
    with pytest.raises(kind, match=words):
        column_means(table(100), given.pop("columns"), given.pop("privacy"), **given)


@pytest.mark.parametrize(
    ("row", "more", "said"),
    [
        ((None, "f", "7391"), {}, "column 'x': expected only numbers"),
        ((math.nan, "f", "7391"), {"person": "who"}, "column 'x': expected only numbers"),
        ((1.0, "7391", "a"), {"by": {"g": ["f"]}}, "column 'g': expected only its declared"),
        ((1.0, "f", None), {"person": "who"}, "column 'who': expected a person in every row"),
    ],
)
def test_rows_outside_are_left_out_or_refused_in_the_words_of_releases(row, more, said, tmp_path):
    good = [(float(k), "f", str(k)) for k in range(9)]
    schema = {"x": pl.Float64, "g": pl.String, "who": pl.String}
    budget = gn.zCDP(1)
    fine, frame = (pl.DataFrame(rows, schema, orient="row") for rows in (good, [*good, row]))
    assert len(column_means(frame, ["x"], budget, **more).means) == 1
    assert len(column_means(fine, ["x"], budget, **more, on_outside="refuse").means) == 1
    with pytest.raises(DataError, match=said) as error:
        column_means(frame, ["x"], budget, **more, on_outside="refuse")
    assert "7391" not in str(error.value)
    with pytest.raises(ParameterError, match='on_outside="refuse" or "drop", got \'project\''):
        column_means(frame, ["x"], budget, **more, on_outside="project")
    frame.write_csv(tmp_path / "t.csv")
    command = ["mean", str(tmp_path / "t.csv"), "-c", "x", "--rho", "1"]
    command += ["--person", "who"] if "person" in more else []
    command += ["--by", "g=f"] if "by" in more else []
    assert run(command) == 0
    assert run([*command, "--on-outside", "refuse"]) == 1


def test_columns_that_are_no_numbers_are_refused_without_a_value():
    frame = pl.DataFrame({"d": pl.Series(["CANARY"]).cast(pl.Categorical)})
    with pytest.raises(DataError, match="expected numbers") as caught:
        column_means(frame, ["d"], gn.zCDP(1))
    assert "CANARY" not in str(caught.value)


def test_the_command_says_mean_interval_and_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table(4000).write_csv("t.csv")
    arguments = "mean t.csv --columns income,age --by sex=f,m --rho 0.5 --out means".split()
    assert run(arguments) == 0
    said = capsys.readouterr().out
    assert "wrote means" in said
    for word in ("income", "age", "noise", "sampling", "clipping", "assumed", "over rows", "zCDP"):
        assert word in said
    again = gn.estimators.population_means(gn.TableRelease.load("means"))
    assert len(again.means) == 4
    assert str(again) in said
    assert run(["ask", "means", "sum of income given sex"]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert "of noise alone (for a population: gaussnoise report)" in said
    assert len(said) <= 80
    assert run(["report", "means", "-o", "page.html"]) == 0
    page = re.sub(r"<[^>]*>", "", (tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "All other intervals on this page are about the noise alone." in page
    assert "The ranges of numbers were found from the rows: they are protected" in page
    own, gaps = again.grids
    for grid in (own, gaps):
        assert grid.title in page
        assert all(text.replace("-", "−") in page for row in grid.rows for text in row)
    (tmp_path / "s.toml").write_text(
        '[attributes.sex]\ncategories = ["f", "m"]\n', encoding="utf-8"
    )
    assert run("mean t.csv -c income --by sex -s s.toml --epsilon 1 --delta 1e-6".split()) == 0
    capsys.readouterr()
    assert run("mean t.csv -c income --person id --rho 1".split()) == 0
    assert "over persons, each with the mean of their own numbers" in capsys.readouterr().out
    each = "mean t.csv -c income,age --person id --rho 1 --per-person income=max,age=mean"
    assert run(each.split()) == 0
    assert "the largest of their own numbers (income); persons" in capsys.readouterr().out
    assert run("mean t.csv -c income --epsilon 1".split()) == 1
    assert "hint: --delta 1e-6, at most one in the number of" in capsys.readouterr().err
    persons = "mean t.csv -c income --by sex=f,m --person id --rho 1 --rows-per-person 2"
    assert run([*persons.split(), "--per-person", "none"]) == 0
    assert "over rows, at most 2 of each person" in capsys.readouterr().out
    bounds = "mean t.csv -c income,age --rho 1 --least 0 --between age=0,120 --json".split()
    assert run(bounds) == 0
    income, age = json.loads(capsys.readouterr().out)["means"]
    assert (income["clipped"][0], age["clipped"]) == (0, [0, 120])
    assert run("mean t.csv -c age --rho 1 --between 0,120".split()) == 0
    capsys.readouterr()
    assert run("mean t.csv -c income --rho 1 --between 0,99999 --weight age:90".split()) == 0
    assert "weighted by 'age'" in capsys.readouterr().out
    assert run("mean t.csv -c income --rho 1 --weight age:90".split()) == 1
    for wrong in ("--between 0", "--between a,b", "--between x=0,1", "--between 9,0"):
        assert run(f"mean t.csv -c age --rho 1 {wrong}".split()) == 1
    assert run("mean t.csv -c age,income --rho 1 --between 0,120".split()) == 1
    assert run("mean t.csv -c age --rho 1 --between 0,1 --between age=0,1".split()) == 1
    twice = "--by sex=f --by sex=m"
    for wrong in ("--by sex", "--by age -s s.toml", "--out means", "--ledger l", twice):
        assert run(f"mean t.csv -c income --rho 1 {wrong}".split()) == 1
    assert "error:" in capsys.readouterr().err


def released(seed, shift=0.0, **options):
    """Return the release of means of two columns by two groupings."""
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame(
        {
            "x": rng.exponential(5, 4000) + shift,
            "y": rng.normal(0, 1, 4000),
            "sex": rng.choice(["f", "m"], 4000),
            "old": rng.choice([True, False], 4000),
            "who": range(4000),
            "w": np.ones(4000),
        }
    )
    by = {"sex": ["f", "m"], "old": [True, False]}
    options = {"by": by, "between": {"x": (0, 60), "y": (-9, 9)}} | options
    return column_means(frame, ["x", "y"], gn.zCDP(2), **options).release


def test_two_columns_in_two_groupings_fit_a_terminal_of_80_columns():
    # a short name beside long categories, and a column whose noise is written with an exponent
    frame = pl.DataFrame(
        {
            "los": np.tile([2.0, 5.0, 9.0], 2000),
            "cost": np.tile([2000.0, 5000.0, 9000.0], 2000),
            "ward": ["Cardiology", "Paediatrics"] * 3000,
            "sex": ["F"] * 3000 + ["M"] * 3000,
        }
    )
    options = {
        "by": {"ward": ["Cardiology", "Paediatrics"], "sex": ["F", "M"]},
        "between": {"los": (0, 60), "cost": (0, 50_000)},
    }
    said = str(column_means(frame, ["los", "cost"], gn.zCDP(1), **options)).splitlines()
    rows = [line for line in said if re.match("column|los  |cost  ", line)]
    assert len(rows) == 1 + 8 + 1 + 8
    assert max(map(len, rows)) <= 80
    assert rows[0].split() == ["column", "ward", "sex", "mean", "low", "high", "rows"]
    assert any("do not fit here: --json" in line for line in said)


def test_pages_say_of_a_population_what_its_intervals_support(tmp_path):
    frame = pl.DataFrame({"x": [30.0, 60.0] * 3000, "g": [*"aaabbb"] * 1000})
    frame = frame.with_columns(pl.when(pl.col("g") == "b").then(20.0).otherwise("x").alias("x"))
    by = {"g": ["a", "b", "nobody"]}
    found = column_means(frame, ["x"], gn.zCDP(1), by=by, between={"x": (0, 100)})
    [section] = sections_of(found)
    assert section.title == "Mean of x by g (values above 100 count as 100)"
    assert section.is_short
    own = found.release.plan.ranges[0]
    low, high = next(
        (m.low, m.high)
        for m in means_in(found.release, own, 1 - own.wrong - (0.05 - own.wrong) / 3, ["g"])
        if m.group["g"] == "a"
    )
    alone = found.means[0]
    assert low < alone.low < alone.high < high  # the intervals of all groups hold together
    assert f"({low:.1f} to {high:.1f} jointly); no other can be as high." in section.finding
    assert section.finding.endswith("Too few rows to be compared: nobody.")
    [grid] = section.grids
    assert grid.numbers == ("mean", "95 % interval", "rows")
    assert grid.rows[2][1:3] == ["none", "—"]
    found.release.report(tmp_path / "page.html")
    main, _, end = (
        (tmp_path / "page.html").read_text(encoding="utf-8").partition('id="specialists"')
    )
    assert section.finding in main
    assert "sampling</" not in main
    assert "sampling</" in end  # the parts of intervals, and sums, are for specialists
    assert "Sum of x" not in main
    assert "Sum of x" in end


def test_many_means_by_two_attributes_are_a_grid_with_colours(tmp_path):
    wards, months = ["A", "B", "none here"], [f"m{k}" for k in range(1, 17)]
    rows = {"ward": ["A", "B"] * 8000, "month": np.repeat(months, 1000)}
    frame = pl.DataFrame(rows | {"x": [20.0, 60.0] * 8000})
    by = {"ward": wards, "month": months}
    found = column_means(frame, ["x"], gn.zCDP(1), by=by, between={"x": (0, 100)})
    [section] = sections_of(found)
    [grid] = section.grids
    assert (grid.words, grid.numbers) == (("month",), tuple(wards))
    assert [row[0] for row in grid.rows] == months
    means = {tuple(mean.group.values()): mean for mean in found.means}
    for month, *cells in grid.rows:
        for ward, text in zip(wards, cells, strict=True):
            mean = means[ward, month]
            if mean.reason:
                assert text == "none"
                continue
            estimate, low, _, high = map(float, text.replace("to", "0").split())
            for written, value in ((estimate, mean.mean), (low, mean.low), (high, mean.high)):
                assert written == pytest.approx(value, abs=0.06)
    drawn = re.findall(">([^<>]*)</text>", section.picture.svg)
    assert sum(re.fullmatch(r"[26]0(\.\d)?|[15]9\.\d", text) is not None for text in drawn) == 32
    assert section.picture.caption.startswith(("Colours from 19.", "Colours from 20"))
    found.release.report(tmp_path / "page.html")
    assert "<small>" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_no_group_of_a_population_is_called_highest_more_often_than_it_may_be_wrong(monkeypatch):
    rng, wrong = np.random.default_rng(8), 0
    # pictures of a hundred releases would take most of the time
    monkeypatch.setattr("gaussnoise.tables.release.report.charts.svg_of", lambda *_, **__: "")
    for _ in range(100):
        frame = pl.DataFrame({"x": rng.uniform(0, 100, 900), "g": [*"abc"] * 300})
        options = {"by": {"g": [*"abc"]}, "between": {"x": (0, 100)}}
        [section] = sections_of(column_means(frame, ["x"], gn.zCDP(1), **options))
        wrong += section.finding != NONE
    assert wrong <= 5  # of 100: 5 %, by intervals that are rather too wide


def test_questions_about_means_have_those_of_the_population_beside():
    release = released(1)
    whole = gn.estimators.population_means(release)
    answer = release.ask("mean of x by old, sex")
    assert answer.note.startswith("of noise alone; for the population see below")
    expected = {(m.group["sex"], m.group["old"]): m for m in whole.means if m.column == "x"}
    found = {(m.group["sex"], m.group["old"]): m for m in answer.population.parts}
    assert found == {key: replace(m, group=found[key].group) for key, m in expected.items()}
    assert all(f"\n{line}\n" in str(answer) for line in answer.population.grid.narrow.lines)
    one = release.ask("mean of x, sex=f by old", 0.9)
    assert [m.group for m in one.population.parts] == [
        {"sex": "f", "old": True},
        {"sex": "f", "old": False},
    ]
    # by fewer groups, or by none: as if it had been released so
    pooled = release.ask("mean of y").population.parts[0]
    assert abs(pooled.mean) < 5 / np.sqrt(4000)
    assert 1 < pooled.sampling / (1.96 / np.sqrt(4000)) < 1.3  # of an upper estimate
    gap = release.ask("difference of mean of x between sex=f and sex=m by old").population
    assert list(gap.parts) == [
        replace(g, group=own.group)
        for g, own in zip(whole.difference("sex", "f", "m"), gap.parts, strict=False)
        if g.column == "x"
    ]
    data = json.loads(json.dumps(release.ask("mean of x by sex").to_dict(), allow_nan=False))
    assert [m["group"] for m in data["population"]] == [{"sex": "f"}, {"sex": "m"}]


@pytest.mark.parametrize(
    "question",
    [
        "sum of x",
        "ratio of (mean of x, sex=f) and (mean of x, sex=m)",
        "mean of x, sex=f|m",
        "difference of (mean of x, sex=f) and (mean of y, sex=f)",
        "difference of (mean of x, sex=f, old=true) and (mean of x, sex=m, old=false)",
        "difference of (mean of x, sex=f) and (mean of x)",
    ],
)
def test_other_questions_say_that_intervals_are_of_noise_alone(question):
    answer = released(1).ask(question)
    assert answer.population is None
    assert answer.note.startswith("of noise alone (for a population: gaussnoise report)")
    assert "population" not in answer.to_dict()


def test_a_population_is_not_said_where_it_does_not_follow():
    persons = released(1, person="who", rows_per_person=2)
    assert persons.ask("mean of x by sex, old").population is not None
    assert persons.ask("mean of x by sex").population is None  # of records, two a person
    assert persons.ask("mean of x by sex, old", 0.999).population is None
    weighted = released(1, weight=gn.Weight("w", 2.0))
    assert weighted.ask("mean of x by sex, old").population is None


def test_changes_of_population_means_need_no_common_range(tmp_path, capsys):
    before, after = released(1), released(2, 0.5, between={"x": (0, 80), "y": (-9, 9)})
    changes = gn.difference(before, after)
    assert list(changes.unlike) == ["x"]
    found = gn.estimators.population_means(changes, 0.9)
    assert len(found.changes) == 8
    # the checks of both ranges may err
    level = 0.9 + before.plan.ranges[0].wrong
    old, new = (gn.estimators.population_means(release, level) for release in (before, after))
    for one, a, b in zip(found.changes, old.means, new.means, strict=True):
        assert (one.column, one.group) == (a.column, a.group) == (b.column, b.group)
        assert one.change == b.mean - a.mean
        assert one.noise == pytest.approx(np.hypot(a.noise, b.noise))
        assert one.sampling == pytest.approx(np.hypot(a.sampling, b.sampling))
        assert one.bias == a.bias + b.bias
        assert max(a.high - a.low, b.high - b.low) < one.high - one.low
        assert one.high - one.low < (a.high - a.low) + (b.high - b.low)
        truth = 0.5 if one.column == "x" else 0.0
        assert abs(one.change - truth) < 4 * (one.noise + one.sampling)
    before.save(tmp_path / "before")
    after.save(tmp_path / "after")
    command = ["difference", str(tmp_path / "before"), str(tmp_path / "after")]
    assert run([*command, "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out.partition("\nwrote ")[0]
    assert max(map(len, said.splitlines())) <= 80
    page = re.sub(r"<[^>]*>", "", (tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    again = gn.estimators.population_means(changes)
    [grid] = again.grids
    assert all(f"\n{line}\n" in said for line in grid.narrow.lines)
    assert max(map(len, grid.lines)) > 80 >= max(map(len, grid.narrow.lines))
    for words in (grid.title, "drawn independently of each other", *chain(*grid.rows)):
        assert words.replace("-", "−") in page
    assert run([*command, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["population_means"]["changes"]
    assert [one["change"] for one in listed] == [one.change for one in found.changes]


def test_changes_of_population_means_are_refused_in_words(tmp_path):
    plain = gn.Schema([gn.Attribute("x", clip=[0, 60]), gn.Attribute("sex", ["f", "m"])])
    rows = pl.DataFrame({"x": [1.0, 2.0], "sex": ["f", "m"]})
    counted = gn.plan(plain, [("x", "sex")], gn.zCDP(1)).release(rows)
    whole = released(1)
    fewer = released(2, by={"sex": ["f", "m"]})
    weighted = [released(k, weight=gn.Weight("w", 2.0)) for k in (1, 2)]
    other = column_means(rows, ["x"], gn.zCDP(1), by={"sex": ["f", "m"]}, between={"x": (0, 60)})
    for both, words in (
        ((counted, fewer), r"two releases of column_means .* hint: changes.means"),
        (weighted, "without weights"),
        ((whole, fewer), "means by the same groups"),
    ):
        changes = gn.difference(*both, all_rows_fit=True)
        with pytest.raises(ParameterError, match=words):
            gn.estimators.population_means(changes)
        assert changes_record(changes, [], rows=False)["population_means"] is None
    changes = gn.difference(fewer, other.release)
    assert len(gn.estimators.population_means(changes).changes) == 2  # y is in one alone
    assert gn.estimators.population_means(changes).changes[0].reason
    changes.save(tmp_path / "out")
    record = (tmp_path / "out" / "changes.json").read_text(encoding="utf-8")
    assert "Infinity" not in record
    assert "NaN" not in record
    assert "no change, since " in (tmp_path / "out" / "summary.txt").read_text("utf-8")
    with pytest.raises(ParameterError, match=r"expected 0 < level < 0\.995, since"):
        gn.estimators.population_means(changes, 1.0)
    with pytest.raises(ParameterError, match=r"got ColumnMeans; hint: found\.release"):
        gn.estimators.population_means(other)


def test_changes_of_population_means_cover():
    """Of two samples, 400 times: at most as many miss as one time in a hundred for 95 %."""
    laws = (0.1, 0.3)
    plan = plan_of().plan([FoundRange("x", 0.0, 1.0, size=0.5)], gn.zCDP(0.5))
    rng, missed, count = np.random.default_rng(3), 0, 400
    for _ in range(count):
        both = [
            plan.simulate(pa.table({"x": (rng.random(300) < law).astype(float)}), rng)
            for law in laws
        ]
        [one] = gn.estimators.population_means(gn.difference(*both)).changes
        missed += not one.low <= laws[1] - laws[0] <= one.high
    assert missed <= stats.binom.isf(0.01, count, 0.05)
    assert missed >= 2  # intervals that are far too wide would miss less often


def test_estimators_that_are_sought_at_the_top_are_named():
    with pytest.raises(AttributeError, match=r"hint: gn\.estimators\.column_means"):
        gn.column_means  # noqa: B018  # pyright: ignore
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        gn.nothing  # noqa: B018  # pyright: ignore
