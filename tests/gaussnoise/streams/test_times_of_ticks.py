"""Ticks that have times: the rule, and where pages, files, questions and records say them."""

import datetime
import itertools
import json
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest
from changed import fault

import gaussnoise as gn
from gaussnoise.errors import OutputError, ParameterError, StreamError
from gaussnoise.tables.release.periods import period_of

pytestmark = pytest.mark.usefixtures("quick_pictures")

SEX, REGION = gn.Attribute("sex", ["F", "M"]), gn.Attribute("region", ["N", "S", "W"])
ABOUT = gn.About(
    title="Moves to Grünau",
    source="Register of residents",
    period="2026",
    publisher="Town of Grünau",
    contact="statistics@gruenau.example",
)


def planned(first="2026-01", n=12, schema=None):
    own = gn.Schema([SEX, REGION], about=ABOUT) if schema is None else schema
    return gn.plan(own, [("sex", "region")], gn.zCDP(0.1), over=gn.streams.Ticks(n, first=first))


def rows(tick):
    n = 400 + 50 * tick
    return pa.table({"sex": ["F", "M", "F"] * n, "region": ["N", "S", "W"] * n})


@pytest.fixture(scope="module")
def so_far():
    return planned().simulate([rows(tick) for tick in range(1, 5)], np.random.default_rng(0))


@pytest.fixture
def started(tmp_path):
    stream = planned(n=4).start(tmp_path / "moves")
    for tick in (1, 2, 3):
        stream.tick(rows(tick), number=tick)
    return stream


@pytest.mark.parametrize(
    ("first", "kind", "texts"),
    [
        ("2026", "year", ["2026", "2027", "2028"]),
        ("2026-Q3", "quarter", ["Q3 2026", "Q4 2026", "Q1 2027"]),
        ("2026-11", "month", ["November 2026", "December 2026", "January 2027"]),
        ("Nov 2026", "month", ["November 2026", "December 2026", "January 2027"]),
        ("2026-W52", "week", ["week 52 of 2026", "week 53 of 2026", "week 1 of 2027"]),
        ("2027-W52", "week", ["week 52 of 2027", "week 1 of 2028", "week 2 of 2028"]),
        ("2028-02-28", "day", ["28 February 2028", "29 February 2028", "1 March 2028"]),
    ],
)
def test_times_follow_the_first_without_a_gap(first, kind, texts):
    times = gn.streams.Ticks(30, first=first).times
    assert (times.kind, [*times.texts[:3]]) == (kind, texts)
    for one, other in itertools.pairwise(times.spans):
        assert one[0] < one[1] == other[0]
    assert len(set(times.texts)) == 30
    for text, (start, _) in zip(times.texts, times.spans, strict=True):  # as questions read them
        read = period_of(text)
        day = datetime.date(1970, 1, 1) + datetime.timedelta(microseconds=start)
        assert (read.kind, read.days(read.year)[0]) == (kind, day.toordinal())


@pytest.mark.parametrize(
    "first", ["", "March", "soon", "2026-13", "2026-W54", "9999-12", 2026, "1"]
)
def test_a_first_time_that_is_none_is_refused(first):
    with pytest.raises(ParameterError, match="expected first to be a year, quarter, month"):
        gn.streams.Ticks(3, first=first)


def test_a_year_that_questions_do_not_read_is_refused_with_the_years_that_they_read():
    for year in (1000, 2999):
        assert gn.streams.Ticks(1, first=f"{year}").time(1) == f"{year}"
    for year in ("0999", "3000", "9999"):
        with pytest.raises(ParameterError, match=f"years 1000 to 2999, .* got '{year}'"):
            gn.streams.Ticks(1, first=year)


def test_ticks_without_times_have_the_record_that_they_had():
    plain = gn.streams.Ticks(3)
    assert "first" not in plain.as_dict()
    assert (plain.word, plain.time(2), plain.said(2), plain.said(1, 3)) == (
        "tick", "", "tick 2", "ticks 1 to 3"
    )  # fmt: skip
    named = gn.streams.Ticks(3, first="2026-01")
    assert gn.streams.Ticks(**named.as_dict()).times == named.times
    assert repr(named) == "Ticks(3, first='2026-01')"
    assert named.said(1, 3) == "ticks 1 to 3 (January 2026 to March 2026)"


def test_the_noise_does_not_depend_on_the_time():
    named, plain = planned(), planned(first=None)
    assert named.rho_charged == plain.rho_charged
    assert (named.strategy.matrix == plain.strategy.matrix).all()
    assert named.request_sha256 != plain.request_sha256  # a time is part of what was charged
    assert "a month: the first January 2026, the last December 2026" in str(named)


@pytest.mark.parametrize(
    ("question", "same"),
    [
        ("count in January 2026", "count in tick 1"),
        ("count in 2026-02", "count in tick 2"),
        ("count in march", "count in tick 3"),
        ("share of sex=F in March 2026", "share of sex=F in tick 3"),
        ("sex by region in February 2026", "sex by region in tick 2"),
        ("count from February 2026 to April 2026", "count in ticks 2 to 4"),
        ("count between February 2026 and April 2026", "count in ticks 2 to 4"),
        ("count in Q1 2026", "count in ticks 1 to 3"),
        ("count since February 2026", "count since tick 2"),
        ("count after February 2026", "count since tick 3"),
        ("count before April 2026", "count in ticks 1 to 3"),
        ("count of sex by month", "count of sex by tick"),
        (
            "change of count of sex=F from January 2026 to March 2026",
            "change of count of sex=F from tick 1 to tick 3",
        ),
    ],
)
def test_questions_name_ticks_by_their_times(so_far, question, same):
    one, other = so_far.ask(question), so_far.ask(same)
    assert one.meaning == other.meaning
    assert one.labels == other.labels
    np.testing.assert_array_equal(one.estimate, other.estimate)
    np.testing.assert_array_equal(one.low, other.low)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("count in May 2026", "expected one of the 4 ticks so far"),
        ("count since June 2026", "expected one of the 4 ticks so far"),
        ("count in January 2025", "expected a time of 'tick'"),
        ("count in week 2", "expected a time of 'tick'|partly in it"),
        ("count in March 2026 in tick 2", "expected one tick"),
        ("change of count from Q1 2026 to April 2026", "expected the times of two ticks"),
        ("trend of count in March 2026", "expected no groups by tick"),
    ],
)
def test_times_that_no_ticks_have_are_refused(so_far, question, said):
    with pytest.raises(ParameterError, match=said):
        so_far.ask(question)


def test_weeks_are_asked_for_by_their_number_in_the_year():
    plan = planned(first="2026-W05")
    weeks = plan.simulate([rows(tick) for tick in (1, 2, 3)], np.random.default_rng(0))
    assert weeks.ask("count in week 6").meaning == "count in tick 2 (week 6 of 2026)"
    assert weeks.ask("count by week").labels == ((1, 2, 3),)


def test_a_time_that_an_attribute_has_too_is_asked_for_in_full():
    born = gn.Attribute("born", edges=["2025-01-01", "2026-01-01", "2027-01-01"])
    plan = gn.plan(gn.Schema([SEX, born]), 2, gn.zCDP(0.1), over=gn.streams.Ticks(3, first="2025"))
    table = pa.table(
        {"sex": ["F"] * 900, "born": [datetime.date(2025 + (k % 3 == 0), 5, 1) for k in range(900)]}
    )
    years = plan.simulate([table] * 3, np.random.default_rng(0))
    with pytest.raises(ParameterError, match=r"attribute before this time.*number of a tick"):
        years.ask("count in 2025")
    assert years.ask("count of born in 2025").meaning == "count of born=[2025-01-01, 2026-01-01)"
    assert years.ask("count in tick 2").meaning == "count in tick 2 (2026)"


def test_answers_show_the_times_beside_the_numbers(so_far):
    answer = so_far.ask("count by month")
    assert answer.columns()["tick"] == [1, 2, 3, 4]
    assert answer.columns()["time"][:2] == ["January 2026", "February 2026"]
    assert "2 (February 2026)" in str(answer)
    assert so_far.ask("count").times == ()
    by_sex = so_far.ask("count of sex by month").columns()
    assert by_sex["time"][:3] == ["January 2026", "January 2026", "February 2026"]


def test_series_say_the_times_in_texts_files_and_pictures(started, tmp_path):
    series = started.series(("sex",))
    assert series.times == ("January 2026", "February 2026", "March 2026")
    assert pickle.loads(pickle.dumps(series)).between(2, 3).times == series.times[1:]
    assert series.rolling(2).times == series.times[1:]
    assert series.counted == "rows of each month"
    assert "3 (March 2026)" in str(series)
    assert series.step(3).names[1] == "ticks 1 to 2 (January 2026 to February 2026)"
    picture = series.plot()
    assert "Mar\n2026" in [label.get_text() for label in picture.axes[0].get_xticklabels()]
    series.save(tmp_path / "s.csv")
    table = csv.read_csv(tmp_path / "s.csv")
    assert table.column_names[:4] == ["span", "tick", "time", "sex"]
    assert table["tick"].to_pylist() == [1, 1, 2, 2, 3, 3] * 2
    assert table["time"].to_pylist() == [t for t in series.times for _ in "FM"] * 2
    for ending in (".parquet", ".jsonl", ".xlsx", "+sdmx.csv", ".json"):
        series.save(tmp_path / f"s{ending}")
    sdmx = csv.read_csv(tmp_path / "s+sdmx.csv")
    assert sdmx["TICK: tick"].to_pylist()[2] == "2: February 2026"
    cube = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))
    assert cube["dimension"]["tick"]["category"]["label"]["3"] == "March 2026"
    assert cube["size"] == [2, 3, 2, 4]


def test_pages_and_texts_say_the_times(started, tmp_path):
    started.tables.report(tmp_path / "page.html", ask=["count by tick"])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "sex × region by month" in page
    assert "for ticks 1 to 3 (January 2026 to March 2026) of a stream" in page
    assert "once for each month, from January 2026 on" in page
    assert 'data-name="March 2026"' in page or ">March 2026<" in page
    assert "2 (February 2026)" in page
    assert "Feb" in page.partition("<svg")[2].partition("</svg>")[0]
    assert "tick 1" not in page.partition("<main")[2].partition("<script")[0]
    folder = started.state.tick_folder(2)
    assert "Tick 2 of 4 (February 2026): " in (folder / "summary.txt").read_text(encoding="utf-8")
    stated = (folder / "method.txt").read_text(encoding="utf-8")
    assert "Each tick is a month: the first is January 2026, the last April 2026." in stated


def test_a_page_of_a_stream_begins_with_the_lines_of_the_schema(started, tmp_path):
    started.tables.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    head = page.partition("<body")[2].partition("<nav")[0]
    assert f"<h1>{ABOUT.title}</h1>" in head
    for name in ("source", "period", "publisher", "contact"):
        assert f"{name.capitalize()}: " in head
        assert getattr(ABOUT, name) in head


def test_a_changed_time_is_noticed(started, tmp_path):
    assert gn.streams.Stream.open(started.path).plan.over.first == "2026-01"
    assert fault(started.path) is None
    for name in ("stream.json", "ticks/0002/release.json"):
        copy = tmp_path / name.replace("/", "-")
        shutil.copytree(started.path, copy)
        text = (copy / name).read_text(encoding="utf-8")
        assert '"first": "2026-01"' in text
        (copy / name).write_text(text.replace('"2026-01"', '"2026-02"'), encoding="utf-8")
        assert fault(copy) is not None
        with pytest.raises((OutputError, StreamError)):
            _ = gn.streams.Stream.open(copy).tables
