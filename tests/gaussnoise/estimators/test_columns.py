"""Means of columns: neighbours by brute force, all engines, awkward numbers, coverage, and the
command.
"""

import json
import math
import re
from itertools import combinations_with_replacement

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import stats

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import (
    CertificateError,
    DataError,
    LedgerError,
    NotAvailableError,
    ParameterError,
)
from gaussnoise.estimators import columns as module
from gaussnoise.estimators import ranges
from gaussnoise.estimators.numbers import read_numbers
from gaussnoise.estimators.ranges import Counts, Range
from gaussnoise.privacy.sampler import IntegerQuery

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


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_one_row_moves_the_sums_by_no_more_than_the_noise_is_for(neighbors, heard, monkeypatch):
    """For all rows that matter, in two groups, compare the change of the integers with the squared
    sensitivity.
    """
    answers = []
    whole = module._mean

    def mean(column, group, sums, *more):
        answers.append(sums)
        return whole(column, group, sums, *more)

    monkeypatch.setattr(module, "_mean", mean)
    monkeypatch.setattr(module, "find_range", lambda *_: Range(-2.0, 2.0, 1.0, 0.0, "so"))

    def sums(rows):
        answers.clear()
        frame = pl.DataFrame(rows, schema={"x": pl.Float64, "g": pl.String}, orient="row")
        column_means(frame, ["x"], gn.zCDP(1), by={"g": ["a", "b"]}, neighbors=neighbors)
        return np.array(answers).ravel()

    values = [-math.inf, -1e308, -2.0, -0.7, 0.0, 1.3, 2.0, 1e9, math.nan]
    rest = [(0.3, "a"), (0.1, "b")] * 3
    rows = [(x, g) for x in values for g in ("a", "b", "other")]
    base = sums(rest)
    with_row = {row: sums([*rest, row]) for row in rows}
    if neighbors == "add-remove":
        moved = [np.square(after - base).sum() for after in with_row.values()]
    else:
        moved = [np.square(with_row[a] - with_row[b]).sum() for a in rows for b in rows]
    query = heard[-1][0]
    bits = (query.sensitivity_squared // (6 if neighbors == "replace" else 3)).bit_length() - 1
    allowed = query.sensitivity_squared / 2.0**bits
    assert max(moved) <= allowed * (1 + 1e-9)
    assert max(moved) > allowed / 2.1 if neighbors == "replace" else max(moved) > 0.9 * allowed


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_one_row_moves_counts_of_a_search_by_no_more_than_the_noise_is_for(neighbors, heard):
    """All pairs of tables of at most two numbers that differ in one row."""
    values = [-math.inf, -1.0, 0.0, 0.5, 1.0, 2.0, math.inf]
    tables = [list(rows) for k in range(3) for rows in combinations_with_replacement(values, k)]

    def counts(rows, question):
        own = Counts(np.array(rows), neighbors, 1.0, 0.1)
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
    counts = Counts(np.zeros(0), "add-remove", rho, wrong)
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
    for by, person in (({"sex": ["f", "m"]}, None), (None, "id")):
        heard.clear()
        column_means(table(9000), ["income", "age"], gn.zCDP(3), by=by, person=person)
        spent = sum(query.rho for query, _ in heard)
        assert 2.9 < spent <= 3
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


def test_a_persons_mean_is_that_of_exact_sums():
    """No number near the largest warns, and the order of rows changes nothing."""
    numbers = [1.7e308, 1.7e308, 1e16, 1.0, -1e16, 0.1, 0.2, 0.3, math.nan]
    table = pa.table({"x": numbers, "id": [0, 0, 1, 1, 1, 2, 2, 2, 3]})
    for rows in (table, table.take(list(range(len(table)))[::-1])):
        means = read_numbers(rows, ["x"], {}, "id").columns["x"]
        assert sorted(means[np.isfinite(means)]) == [math.fsum([0.1, 0.2, 0.3]) / 3, 1 / 3, 1.7e308]


def test_rows_without_a_number_or_a_group_do_not_count(tmp_path, heard):
    (tmp_path / "t.csv").write_text(
        "x,year\n1,2020\n,2020\nabc,2020\n 3 ,2021\n1e2,1999\nNaN,2020\n", encoding="utf-8"
    )
    numbers = read_numbers(tmp_path / "t.csv", ["x"], {"year": [2020, 2021]}, None)
    x, cells = numbers.of("x")
    assert x.tolist() == [1.0, 3.0]
    assert cells.tolist() == [0, 1]
    frame = pd.DataFrame({"x": ["1", None, "z", "3"], "year": [2020, 2020, 2021, 2021]})
    x, cells = read_numbers(frame, ["x"], {"year": ["2020", "2021"]}, None).of("x")
    assert (x.tolist(), cells.tolist()) == ([1.0, 3.0], [0, 1])


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1.0, 1e12, 1e300])
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
    assert f"nan for x: {found.reason}" in str(means)
    means.save(tmp_path / "m.json")
    assert gn.estimators.ColumnMeans.load(tmp_path / "m.json").means[0].reason == found.reason


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
    for bounds in ((10, None), (None, -10)):
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


def test_a_hint_of_more_numbers_or_budget_is_enough():
    def limits(number, rho):
        limit, clear = ranges._limits(number, rho, Counts(np.zeros(0), "replace", rho, 1e-3))
        return limit / 2 >= clear

    for number, rho in ((500, 0.1), (1000, 0.01)):
        with pytest.raises(ranges.NoRangeError) as caught:
            ranges._room(Counts(np.zeros(0), "replace", rho, 1e-3), number)
        hint = str(caught.value).partition("hint")[2]
        more, times = map(float, re.findall(r"about ([\d.]+)", hint))
        assert limits(1.1 * more, rho)
        assert limits(number, 1.1 * rho * times)
        assert not limits(0.8 * more, rho)


LAWS = {
    "normal": (lambda rng, n: rng.normal(size=n), 0.0),
    "heavy": (lambda rng, n: rng.standard_t(3, size=n), 0.0),
    "skewed": (lambda rng, n: rng.lognormal(0, 1, size=n), math.exp(0.5)),
    "discrete": (lambda rng, n: rng.integers(0, 6, size=n).astype(float), 2.5),
}


TRIALS = 40


def misses(law, trials=TRIALS, n=2000):
    rng, missed = np.random.default_rng(1), 0
    for _ in range(trials):
        found = column_means(
            pl.DataFrame({"x": LAWS[law][0](rng, n)}), ["x"], gn.zCDP(0.5), level=0.8
        ).means[0]
        missed += not found.low <= LAWS[law][1] <= found.high
    return missed


@pytest.mark.parametrize("law", LAWS)
def test_intervals_hold_their_level(law):
    assert misses(law) <= stats.binom.isf(1e-9, TRIALS, 0.2)


def test_the_check_of_intervals_notices_sums_that_are_off(monkeypatch):
    whole = module.np.rint
    monkeypatch.setattr(module.np, "rint", lambda x: whole(np.asarray(x) + 0.1 * 2.0**module._GRID))
    assert misses("normal") > stats.binom.isf(1e-9, TRIALS, 0.2)


def test_a_ledger_is_charged_once(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "l", gn.zCDP(1))
    first, again = (
        column_means(
            table(3000), ["income"], gn.zCDP(0.4), ledger=ledger, id="a", by={"sex": ["f", "m"]}
        )
        for _ in range(2)
    )
    assert str(first) == str(again)
    assert ledger.spent == pytest.approx(0.4)
    assert ledger.entries()[0].protects == "one row under add-remove"
    with pytest.raises(LedgerError):
        column_means(table(3000), ["age"], gn.zCDP(0.4), ledger=ledger, id="a")
    with pytest.raises(LedgerError, match="protects"):
        column_means(table(3000), ["age"], gn.zCDP(0.4), ledger=ledger, id="b", person="id")


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        ({"columns": ["nothing"]}, DataError, "missing"),
        ({"columns": []}, ParameterError, "at least one"),
        ({"columns": ["age", "age"]}, ParameterError, "each once"),
        ({"neighbors": "swap"}, ParameterError, "add-remove"),
        ({"by": {"sex": ["f"]}, "person": "id"}, NotAvailableError, "several groups"),
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
        ((None, "f", "7391"), {}, "column 'x': expected only finite numbers"),
        ((math.inf, "f", "7391"), {"person": "who"}, "column 'x': expected only finite numbers"),
        ((1.0, "7391", "a"), {"by": {"g": ["f"]}}, "by: expected only listed categories"),
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
    assert 'on_outside="drop"' in str(error.value)
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
    with pytest.raises(DataError, match="expected numbers, got") as caught:
        column_means(frame, ["d"], gn.zCDP(1))
    assert "CANARY" not in str(caught.value)


def test_the_command_says_mean_interval_and_parts(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table(4000).write_csv("t.csv")
    arguments = "mean t.csv --columns income,age --by sex=f,m --rho 0.5 --out means.json".split()
    assert run(arguments) == 0
    said = capsys.readouterr().out
    assert "wrote means.json" in said
    for word in ("income", "age", "noise", "sampling", "clipping", "assumed", "over rows", "zCDP"):
        assert word in said
    record = json.loads((tmp_path / "means.json").read_text())
    assert len(record["means"]) == 4
    assert str(gn.estimators.ColumnMeans.load("means.json")) in said
    (tmp_path / "s.toml").write_text(
        '[attributes.sex]\ncategories = ["f", "m"]\n', encoding="utf-8"
    )
    assert run("mean t.csv -c income --by sex -s s.toml --epsilon 1 --delta 1e-6".split()) == 0
    capsys.readouterr()
    assert run("mean t.csv -c income --person id --rho 1".split()) == 0
    assert "over persons (each counts as the mean of their own numbers)" in capsys.readouterr().out
    bounds = "mean t.csv -c income,age --rho 1 --least 0 --between age=0,120 --out b.json".split()
    assert run(bounds) == 0
    income, age = json.loads((tmp_path / "b.json").read_text())["means"]
    assert (income["clipped"][0], age["clipped"]) == (0, [0, 120])
    assert run("mean t.csv -c age --rho 1 --between 0,120".split()) == 0
    for wrong in ("--between 0", "--between a,b", "--between x=0,1", "--between 9,0"):
        assert run(f"mean t.csv -c age --rho 1 {wrong}".split()) == 1
    assert run("mean t.csv -c age,income --rho 1 --between 0,120".split()) == 1
    assert run("mean t.csv -c age --rho 1 --between 0,1 --between age=0,1".split()) == 1
    twice = "--by sex=f --by sex=m"
    for wrong in ("--by sex", "--by age -s s.toml", "--out means.json", "--ledger l", twice):
        assert run(f"mean t.csv -c income --rho 1 {wrong}".split()) == 1
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    "level", [10**400, "much", None, [0.9]], ids=["too large", "text", "null", "list"]
)
def test_damaged_files_of_means_are_refused_by_type(tmp_path, level):
    whole, damaged = tmp_path / "whole.json", tmp_path / "damaged.json"
    column_means(table(100), ["age"], gn.zCDP(1)).save(whole)
    record = json.loads(whole.read_text(encoding="utf-8"))
    damaged.write_text(json.dumps(record | {"level": level}), encoding="utf-8")
    with pytest.raises(CertificateError, match=r"written by ColumnMeans\.save"):
        gn.estimators.ColumnMeans.load(damaged)
