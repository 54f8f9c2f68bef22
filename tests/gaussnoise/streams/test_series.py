"""Tables over time: covariances by brute force, coverage of trends and steps, files, commands."""

import copy
import json
import math
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy import stats

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import NotAvailableError, OutputError, ParameterError
from gaussnoise.streams import Stream, StreamTables, Ticks, measure
from gaussnoise.streams.trend import trend_of
from gaussnoise.tables.release.formats import FORMATS

SCHEMA = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])])
TICKS = 6
DRAWS = 1000


def planned(over, workload=2, rho=0.5, **options):
    return gn.plan(SCHEMA, workload, gn.zCDP(rho), over=over, **options)


def rows(tick):
    """About 40 rows more from tick to tick, and 200 more from tick 4 on."""
    count = 400 + 40 * tick + 200 * (tick >= 4)
    rng = np.random.default_rng(tick)
    return pa.table({"sex": rng.choice(["F", "M"], count), "age": rng.integers(0, 120, count)})


PLANS = {
    "totals": lambda: planned(Ticks(TICKS)),
    "periods": lambda: planned(Ticks(TICKS, workload="periods")),
    "both, largest error": lambda: planned(Ticks(TICKS, workload="both"), p=math.inf),
    "sliding windows": lambda: planned(
        Ticks(TICKS, workload=gn.streams.sliding_windows(TICKS, 3).points.T), 1
    ),
    "unknown length": lambda: planned(
        Ticks(TICKS, workload=gn.streams.unknown_length(TICKS).workload), 1, p=math.inf
    ),
    "reports": lambda: planned(Ticks(TICKS, 3, apart=2), rows_per_person=2),
    "persons": lambda: planned(Ticks(TICKS, TICKS), 1, person="id", rows_per_person=3),
    "replacement": lambda: planned(Ticks(TICKS, 2), neighbors="replace"),
    "cumulative counts": lambda: planned(Ticks(TICKS), [{"age": "prefix", "sex": "identity"}]),
    "more ticks to come": lambda: planned(Ticks(3 * TICKS)),
    "one table": lambda: planned(Ticks(TICKS), [("sex",)]),
    "one table, reports": lambda: planned(Ticks(TICKS, 3, apart=2), [("sex",)]),
}


class Given:
    """Noise that is given, one integer after another."""

    def __init__(self, values):
        self.values, self.used = values, 0

    def take(self, count):
        self.used += count
        return self.values[self.used - count : self.used]


def made(plan, counts, noise):
    """The stream of these counts and this noise, (ticks, integers of a tick)."""
    noisy, periods = [], []
    for t, own in enumerate(noise):
        noisy.append(measure.measured(plan, counts[: t + 1], Given(own)))
        total = int(next(iter(counts[t].values())).sum())
        periods.append(measure.estimated(plan, noisy, total))
    return StreamTables(plan, False, periods)


@cache
def case(name):
    """A plan, and exact counts of its ticks."""
    plan = PLANS[name]()
    people = [rows(t) for t in range(1, TICKS + 1)]
    if plan.person is not None:
        people = [t.append_column("id", pa.array(range(t.num_rows))) for t in people]
    return plan, [
        measure.counted(plan.one_tick, plan.over, t, own, "refuse")
        for t, own in enumerate(people, 1)
    ]


def exact(name):
    plan, counts = case(name)
    return made(plan, counts, np.zeros((TICKS, plan.query.count), dtype=np.int64))


@pytest.mark.parametrize("name", PLANS)
def test_covariances_are_those_of_the_noise_that_is_drawn(name):
    plan, counts = case(name)
    names = plan.marginals[0]
    of = {
        "periods": lambda tables: tables.series(names),
        "totals": lambda tables: tables.series(names).cumsum(),
        "windows": lambda tables: tables.series(names).rolling(3),
        "some": lambda tables: tables.series(names).between(3, 6),
    }
    before, unit = exact(name), 64 * int(plan.scale)
    moves = {kind: [] for kind in of}
    for t in range(TICKS):
        for k in range(plan.query.count):
            noise = np.zeros((TICKS, plan.query.count), dtype=np.int64)
            noise[t, k] = unit
            after = made(plan, counts, noise)
            for kind, asked in of.items():
                moved = asked(after).estimate - asked(before).estimate
                moves[kind].append(moved.ravel() / unit * plan.scale)
    for kind, asked in of.items():
        series, jacobian = asked(before), np.array(moves[kind])
        expected = jacobian.T @ jacobian
        size = np.abs(expected).max()
        np.testing.assert_allclose(series.covariance(), expected, rtol=0, atol=1e-6 * size)
        variance = np.square(series.standard_deviation).ravel()
        np.testing.assert_allclose(variance, np.diagonal(expected), rtol=1e-6)
    # slopes and steps are linear in the noise too
    series = of["periods"](before)
    shape, flat = series.estimate.shape, np.array(moves["periods"])
    moved = flat.reshape(-1, *shape)
    trend = series.trend()
    slopes = np.sum(moved * trend.weights, axis=1).reshape(len(moved), -1)
    cells = np.eye(trend.estimate.size).reshape(-1, *trend.estimate.shape)
    found = trend.contrasts(list(cells))
    np.testing.assert_allclose(found.covariance, slopes.T @ slopes, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.standard_deviation, trend.standard_deviation.ravel())
    np.testing.assert_allclose(found.estimate, trend.estimate.ravel())
    step = series.step(4)
    change = (moved[:, 3:].mean(axis=1) - moved[:, :3].mean(axis=1)).reshape(len(moved), -1)
    np.testing.assert_allclose(
        step.standard_deviation.ravel(), np.linalg.norm(change, axis=0), rtol=1e-6
    )


def test_a_slope_is_the_best_linear_unbiased_one():
    tables = exact("totals")
    series = tables.series("sex")
    K = series.covariance(sex="F")
    X = np.column_stack([np.ones(TICKS), np.arange(1, TICKS + 1)])
    precision = np.linalg.inv(K)
    beta = np.linalg.inv(X.T @ precision @ X)
    y = series.estimate[:, 0]
    expected = beta @ X.T @ precision @ y
    trend = series.trend()
    assert trend.estimate[0] == pytest.approx(expected[1])
    assert trend.standard_deviation[0] == pytest.approx(math.sqrt(beta[1, 1]))
    mean = np.ones(TICKS) @ precision @ y / precision.sum()
    assert trend.statistic[0] == pytest.approx((y - mean) @ precision @ (y - mean))
    assert trend.pvalue[0] == pytest.approx(stats.chi2.sf(trend.statistic[0], TICKS - 1))
    # the way of shares, which computes a covariance for each cell, agrees on counts
    other = trend_of(series, None)
    for name in ("estimate", "standard_deviation", "statistic", "weights"):
        np.testing.assert_allclose(getattr(other, name), getattr(trend, name))


DRAWN = pytest.mark.parametrize("name", ["one table", "one table, reports"])


@cache
def drawn(name, change=True):
    """Return series of the same rows, with many noises of the scale that is drawn."""
    plan, counts = case(name)
    counts = counts if change else [counts[0]] * TICKS
    rng = np.random.default_rng(3)
    noise = np.rint(rng.normal(scale=plan.scale, size=(DRAWS, TICKS, plan.query.count)))
    return [made(plan, counts, own).series("sex") for own in noise.astype(np.int64)]


def covered(tables, truth, half=None):
    """The share of intervals that hold the truth, over all draws and cells."""
    ends = [
        table.confidence_interval(0.95)
        if half is None
        else (table.estimate - half, table.estimate + half)
        for table in tables
    ]
    return np.mean([(low <= truth) & (truth <= high) for low, high in ends])


@cache
def slope(series):
    return series.trend()


@cache
def step(series):
    return series.step(4)


@cache
def shares(series):
    return series._source.tables.series(lambda one: one.proportions("sex"))


ASKED = {
    "slope": slope,
    "step": step,
    "relative step": lambda series: step(series).relative(),
    "one tick less another": lambda series: series.difference("tick", 5, 2),
    "slope of F less that of M": lambda series: slope(series).difference("sex", "F", "M"),
}


@pytest.mark.parametrize("asked", ASKED)
@DRAWN
def test_intervals_cover_as_often_as_they_say(name, asked):
    truth = ASKED[asked](exact(name).series("sex")).estimate
    assert 0.94 <= covered(map(ASKED[asked], drawn(name)), truth) <= 0.965


@pytest.mark.parametrize("asked", ["slope", "step"])
def test_intervals_of_shares_over_time_cover_as_often_as_they_say(asked):
    truth = ASKED[asked](shares(exact("one table").series("sex"))).estimate
    found = (ASKED[asked](shares(series)) for series in drawn("one table"))
    assert 0.94 <= covered(found, truth) <= 0.965


@DRAWN
def test_bands_that_hold_together_do(name):
    truth = exact(name).series("sex").estimate
    found = [series.confidence_interval(0.95, simultaneous=True) for series in drawn(name)]
    together = np.mean([((low <= truth) & (truth <= high)).all() for low, high in found])
    assert together >= 0.94


@DRAWN
def test_covariance_between_ticks_that_is_taken_as_zero_fails(name):
    plan, _ = case(name)
    series, z = exact(name).series("sex"), stats.norm.ppf(0.975)
    apart = np.diag(np.diagonal(plan.time_covariance))
    found = [trend_of(one, apart) for one in drawn(name)]
    assert not 0.94 <= covered(found, trend_of(series, apart).estimate) <= 0.965
    variance = np.square(series.standard_deviation)
    wrong = np.sqrt(variance[3:].sum(axis=0) + variance[:3].sum(axis=0)) / 3
    found = [step(one) for one in drawn(name)[:300]]
    assert not 0.94 <= covered(found, series.step(4).estimate, z * wrong) <= 0.965


@DRAWN
def test_tests_of_no_change_reject_as_often_as_they_say(name):
    for asked in ("slope", "step"):
        found = np.array([ASKED[asked](one).pvalue for one in drawn(name, change=False)])
        assert 0.035 <= np.mean(found < 0.05) <= 0.065
        assert stats.kstest(found[:, 0], "uniform").pvalue > 1e-4
        # the rows of these streams do change
        assert all((ASKED[asked](one).pvalue < 0.05).all() for one in drawn(name)[:100])


def test_numbers_that_have_no_noise_are_said_to_have_none():
    plan, counts = case("replacement")
    total = plan.simulate([rows(t) for t in range(1, 7)], np.random.default_rng(0)).series(())
    assert not total.standard_deviation.any()
    trend, step = total.trend(), total.step(4)
    assert (trend.standard_deviation, step.standard_deviation) == (0, 0)
    assert (trend.statistic, trend.pvalue, step.pvalue) == (math.inf, 0, 0)
    same = made(plan, [counts[0]] * TICKS, np.zeros((TICKS, plan.query.count), dtype=np.int64))
    trend = same.series(()).trend()
    assert (trend.statistic, trend.pvalue, same.series(()).step(3).pvalue) == (0, 1, 1)


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series") / "weekly"
    stream = planned(Ticks(6)).start(folder)
    for tick in range(1, 5):
        stream.tick(rows(tick), number=tick)
    return stream


def test_a_series_is_what_was_published(stream):
    series = stream.series(("sex", "age"))
    totals = series.cumsum()
    assert series.attributes == ("tick", "sex", "age")
    assert series.labels[0] == (1, 2, 3, 4)
    assert series.private
    for tick in range(1, 5):
        own, all_so_far = stream.period(tick)["sex", "age"], stream.total(tick)["sex", "age"]
        for one, table in ((series, own), (totals, all_so_far)):
            np.testing.assert_array_equal(one.estimate[tick - 1], table.estimate)
            np.testing.assert_allclose(one.standard_deviation[tick - 1], table.standard_deviation)
    later = stream.window(3, 4)["sex", "age"]
    np.testing.assert_array_equal(series.rolling(2).estimate[-1], later.estimate)
    np.testing.assert_array_equal(series.between(3, 4).cumsum().estimate[-1], later.estimate)
    change = series.difference("tick", 4, 2)
    expected = stream.combined([0, -1, 0, 1])["sex", "age"]
    np.testing.assert_allclose(change.estimate, expected.estimate)
    np.testing.assert_allclose(change.standard_deviation, expected.standard_deviation)
    shares = stream.series(lambda one: one.proportions(("sex", "age"), given="sex")).cumsum()
    expected = stream.total(3).proportions(("sex", "age"), given="sex")
    np.testing.assert_allclose(shares.estimate[2], expected.estimate)
    for level in (0.5, 0.95):
        np.testing.assert_allclose(
            np.array(shares.confidence_interval(level))[:, 2],
            np.array(expected.confidence_interval(level)),
        )
    assert shares.to_frame().num_rows == 4 * 6
    assert "rows of each tick, ticks 1 to 4" in repr(series)
    assert str(series).startswith("MarginalTable(sex × age, 6 cells), the last 3 of ticks 1 to 4: ")
    assert [one.counted for one in (totals, series.rolling(2), series.between(2, 3).cumsum())] == [
        "all rows so far",
        "rows of each 2 ticks",
        "all rows from tick 2 on",
    ]


def test_covariances_of_some_cells_are_parts_of_the_whole(stream):
    series = stream.series(("sex", "age"))
    whole = series.covariance()
    at = np.arange(4 * 6).reshape(4, 2, 3)
    own = at[:, 1, 2]
    np.testing.assert_allclose(
        series.covariance(sex="M", age="[65, 120]"), whole[np.ix_(own, own)], atol=1e-12
    )
    own = at[2].ravel()
    np.testing.assert_allclose(series.covariance(tick=3), whole[np.ix_(own, own)], atol=1e-12)
    both = stream.contrasts([{1: {("sex",): [1, 0]}}, {2: {("sex",): [1, 0]}}, {}])
    np.testing.assert_allclose(
        both.covariance[:2, :2], stream.series("sex").covariance(sex="F")[:2, :2]
    )
    assert (both.estimate[2], both.covariance[2, 2]) == (0, 0)
    with pytest.raises(ParameterError, match=r"expected one of .*got 'sec'"):
        series.covariance(sec="M")
    with pytest.raises(ParameterError, match=r"expected one of 'F', 'M', got 'X'"):
        series.covariance(sex="X")


def test_weights_are_passed_through_the_query_once_for_all_ticks(stream, monkeypatch):
    seen, gather = [], type(stream.plan.query).gather

    def counted(query, w, S, T):
        seen.append(T)
        return gather(query, w, S, T)

    monkeypatch.setattr(type(stream.plan.query), "gather", counted)
    each = [{t: {("sex",): [1, 0], ("age",): [0, 1, 0]}} for t in (1, 2, 3, 4)]
    stream.contrasts(each[:1])
    once = len(seen)
    stream.contrasts(each)
    assert len(seen) == 2 * once > 0


def test_a_pickle_holds_no_stream_and_says_so(stream):
    series = stream.series("sex")
    again = pickle.loads(pickle.dumps(series))
    assert str(again) == str(series)
    assert str(stream.path).encode() not in pickle.dumps(series)
    assert len(pickle.dumps(series)) < 20_000
    for ask in (again.cumsum, again.trend, again.covariance, lambda: again.step(2)):
        with pytest.raises(NotAvailableError, match="from a pickle"):
            ask()
    part = copy.deepcopy(series).part(1, 0)
    np.testing.assert_array_equal(part.cumsum().estimate, series.cumsum().estimate[:, 0])


@pytest.mark.parametrize("format", FORMATS)
def test_one_tidy_table_is_written_in_every_format(stream, tmp_path, format):
    ending = FORMATS[format].ending
    file = tmp_path / f"series{ending}"
    series = stream.series("sex")
    series.save(file)
    expected = np.concatenate([series.estimate.ravel(), series.cumsum().estimate.ravel()])
    # a workbook says in which sheet a table begins
    first_row = 2**20 + 1 if format == "xlsx" else 0
    found = FORMATS[format].estimates(file, first_row, len(expected))
    np.testing.assert_array_equal(found, expected)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    with pytest.raises(OutputError, match="exists"):
        series.save(file)


def test_a_file_has_the_rows_of_each_tick_and_of_all_so_far(stream, tmp_path):
    stream.series("sex").save(tmp_path / "sex.csv")
    table = pa.csv.read_csv(tmp_path / "sex.csv")
    assert table.column_names[:3] == ["span", "tick", "sex"]
    assert table["span"].to_pylist() == ["period"] * 8 + ["cumulative"] * 8
    assert table["tick"].to_pylist() == np.repeat([1, 2, 3, 4, 1, 2, 3, 4], 2).tolist()


def test_a_write_that_fails_leaves_nothing(stream, tmp_path, monkeypatch):
    def fails(self, *given):
        raise OSError(28, "no space")

    monkeypatch.setattr("gaussnoise.tables.release.formats.jsonl._Lines.write_table", fails)
    with pytest.raises(OutputError, match="cannot write"):
        stream.series("sex").save(tmp_path / "sex.jsonl")
    assert not list(tmp_path.iterdir())


def test_attributes_may_have_the_names_of_columns(tmp_path):
    schema = gn.Schema([gn.Attribute("tick", ["a", "b"]), gn.Attribute("span", [1, 2])])
    plan = gn.plan(schema, 2, gn.zCDP(1), over=Ticks(3))
    people = pa.table({"tick": ["a", "b"], "span": [1, 2]})
    series = plan.simulate([people] * 3, np.random.default_rng(0)).series(("tick", "span"))
    assert series.attributes == ("tick_", "tick", "span")
    series.save(tmp_path / "names.csv")
    names = pa.csv.read_csv(tmp_path / "names.csv").column_names
    assert names[:4] == ["span_", "tick_", "tick", "span"]


def test_what_makes_no_series_is_refused_in_words(stream, tmp_path):
    series = stream.series("sex")
    empty = planned(Ticks(3)).start(tmp_path / "new")
    refused = {
        "expected a stream with ticks, got none": lambda: empty.series("sex"),
        "a function from a release": lambda: stream.series(lambda one: 3),
        "got a QuantileTable": lambda: stream.series(lambda one: one.quantiles("age", [0.5])),
        "at least 3 ticks, got 2": lambda: series.between(1, 2).trend(),
        "expected a series of single ticks": lambda: series.cumsum().trend(),
        "which share rows": lambda: series.rolling(2).step(3),
        "expected a tick after 1, up to 4, got 1": lambda: series.step(1),
        "a window of 1 to 4 ticks, got 5": lambda: series.rolling(5),
        "1 <= first <= last <= 4, got 3, 2": lambda: series.between(3, 2),
        r"expected a name in \.csv or": lambda: series.save(tmp_path / "series.txt"),
    }
    for words, ask in refused.items():
        with pytest.raises(ParameterError, match=words):
            ask()


def test_pictures_have_a_line_and_a_band_for_each_cell(stream):
    axes = stream.series("sex").plot().axes[0]
    assert [line.get_label() for line in axes.lines if line.get_marker() == "o"] == ["F", "M"]
    assert len(axes.collections) == 2
    figure = stream.series(("sex", "age")).cumsum().plot(0.9, simultaneous=True)
    assert len(figure.axes) == 6
    assert "90 % intervals, all together" in figure.get_supylabel()
    assert "all rows so far" in figure.get_suptitle()
    shares = stream.series(lambda one: one.proportions(("sex", "age"), given="sex")).plot()
    assert "given sex" in shares.get_suptitle()
    schema = gn.Schema([gn.Attribute("k", range(30))])
    plan = gn.plan(schema, 1, gn.zCDP(1), over=Ticks(3))
    many = plan.simulate([pa.table({"k": [1, 29, 29]})] * 2, np.random.default_rng(0)).series("k")
    assert "(12 of 30 cells)" in many.plot().get_suptitle()
    assert "NOT PRIVATE" in many.plot().get_suptitle()


def test_the_shell_shows_series_from_the_public_folder(stream, tmp_path, capsys):
    folder, file, picture = str(stream.path), tmp_path / "sex.csv", tmp_path / "sex.png"
    command = ["stream", "series", folder, "-m", "sex"]
    assert run([*command, "--trend", "--step", "3", "-o", str(file), "--plot", str(picture)]) == 0
    shown = capsys.readouterr().out
    for words in (
        "sex, ticks 1 to 4: rows of each tick\n",
        "test of no change, 3 degrees",
        "ticks 3 to 4",
    ):
        assert words in shown
    assert file.stat().st_size > 0
    assert picture.stat().st_size > 0
    assert run([*command, "--trend", "--step", "3", "--ticks", "2-4", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    series = Stream.open(folder).series("sex").between(2, 4)
    assert [row["estimate"] for row in found["rows"]] == series.estimate.ravel().tolist()
    assert found["trend"]["degrees"] == 2
    assert found["trend"]["rows"][1]["pvalue"] == series.trend().pvalue[1]
    assert found["step"]["difference"] == ["ticks 3 to 4", "tick 2"]
    assert found["step"]["rows"][0]["pvalue"] == series.step(3).pvalue[0]
    assert run([*command, "--cumulative", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counted"] == "all rows so far"
    assert run([*command, "-o", str(file)]) == 1
    assert "exists already" in capsys.readouterr().err
    assert run(["stream", "series", folder, "-m", "", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["attributes"] == ["tick"]


def test_the_tables_of_a_stream_may_be_named_by_its_schema_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    schema = '[attributes.sex]\ncategories = ["F", "M"]\n[attributes."a, b"]\ncategories = [1, 2]\n'
    one, two = ('[[workload]]\nof = ["sex"]\n', '[[workload]]\nof = ["a, b", "sex"]\n')
    files = {"none": "", "one": one, "two": one + two, "within": one + "within = 9\n"}
    for name, workload in files.items():
        Path(f"{name}.toml").write_text(schema + workload, encoding="utf-8")
    pa.csv.write_csv(pa.table({"sex": ["F", "M"], "a, b": [1, 2]}), "t.csv")
    start = ["--ticks", "3", "--rho", "0.5"]
    for name in ("one", "two"):
        assert run(["stream", "start", "-o", name, "-s", f"{name}.toml", *start]) == 0
        assert run(["stream", "tick", name, "t.csv", "--tick", "1"]) == 0
    capsys.readouterr()
    assert run(["stream", "series", "one"]) == 0
    assert "sex, tick 1: rows of each tick\n" in capsys.readouterr().out
    for name, words in (
        ("two", """a table of the stream, one of -m sex, -m 'sex,"a, b"'"""),
        ("none", "expected --marginals (-m), or [[workload]] tables"),
        ("within", "tables without within in within.toml"),
    ):
        command = (
            ["series", name]
            if name == "two"
            else ["start", "-o", "x", "-s", f"{name}.toml", *start]
        )
        assert run(["stream", *command]) == 1
        assert words in " ".join(capsys.readouterr().err.split())
    assert run(["stream", "series", "two", "-m", 'sex,"a, b"']) == 0


def test_ticks_that_are_not_shown_are_counted_in_the_title():
    schema = gn.Schema([gn.Attribute("k", range(50))])
    plan = gn.plan(schema, 1, gn.zCDP(1), over=Ticks(3))
    tables = [pa.table({"k": [1, 29, 29]})] * 3
    shown = plan.simulate(tables, np.random.default_rng(0)).series("k").text()
    assert ", the last of ticks 1 to 3: rows of each tick" in shown.splitlines()[0]


def test_the_shell_has_intervals_of_other_levels(stream, capsys):
    command = ["stream", "series", str(stream.path), "-m", "sex", "--trend", "--step", "3"]
    assert run([*command, "--level", "0.8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["level"] == 0.8
    series = Stream.open(stream.path).series("sex")
    for rows_of, table in (
        (found["rows"], series),
        (found["trend"]["rows"], series.trend()),
        (found["step"]["rows"], series.step(3)),
    ):
        low, high = (end.ravel().tolist() for end in table.confidence_interval(0.8))
        assert [row["low"] for row in rows_of] == low
        assert [row["high"] for row in rows_of] == high
    assert run([*command, "--level", "0.8"]) == 0
    shown = capsys.readouterr().out
    assert shown.count("80 % intervals") == 3
    assert "95 %" not in shown
    assert run([*command, "--level", "2"]) == 1
    assert "level" in capsys.readouterr().err


def test_a_long_list_of_tables_is_cut_in_errors(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    schema = gn.Schema([gn.Attribute(f"a {k}", ["x"]) for k in range(12)])
    stream = gn.plan(schema, 1, gn.zCDP(0.5), over=gn.streams.Ticks(2)).start("st")
    stream.tick(pa.table({f"a {k}": ["x"] * 9 for k in range(12)}), number=1)
    assert run(["stream", "series", "st"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert said.endswith(
        "of the stream, one of " + ", ".join(f"-m 'a {k}'" for k in range(8)) + ", … (12)"
    )
    assert run(["stream", "series", "st", "-m", "b"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "no attribute 'b': expected one of 'a 0'," in said
    assert "… (12)" in said
    assert "'a 8'" not in said
