"""Streams in the shell: planned before they begin, files counted once, changes, and their page."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.streams import Stream
from gaussnoise.tables.release.report import over_time

SCHEMA = '[attributes.sex]\ncategories = ["F", "M"]\n[attributes.age]\nedges = [0, 18, 65, 120]\n'
WANTED = ["-s", "schema.toml", "-m", "sex,age", "-m", "age", "--rho", "0.5", "--ticks", "9"]
TICKS = 3


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a schema, a file for each tick, and a stream that has counted them."""
    folder, before = tmp_path_factory.mktemp("stream"), os.getcwd()
    os.chdir(folder)
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    for tick in range(1, TICKS + 2):
        n = 100 * tick
        table = {"sex": ["F", "M"] * n, "age": [k % 100 for k in range(2 * n)]}
        pyarrow.csv.write_csv(pa.table(table), f"{tick}.csv")
    assert run(["stream", "start", "-o", "st", *WANTED]) == 0
    for tick in range(1, TICKS + 1):
        assert run(["stream", "tick", "st", f"{tick}.csv", "--tick", str(tick)]) == 0
    os.chdir(before)
    return folder


@pytest.fixture
def call(place, monkeypatch, capsys):
    """Exit status, standard output and standard error of one command line, in that folder."""
    monkeypatch.chdir(place)

    def call(*words):
        capsys.readouterr()
        return run(list(words)), *capsys.readouterr()

    return call


def test_a_stream_is_planned_by_the_options_that_start_it(call):
    planned = Stream.open("st").plan
    status, out, err = call("stream", "plan", *WANTED)
    assert (status, err, out) == (0, "", f"{planned}\n")
    found = json.loads(call("stream", "plan", *WANTED, "--json")[1])
    assert found["request_sha256"] == planned.request_sha256
    (table, _), z = found["marginals"], 1.959963984540054  # the 97.5 % quantile
    for name, ticks in {"first": (1, 1), "last": (9, 9), "all": (1, 9)}.items():
        deviation = planned.standard_deviation("sex", "age", ticks=ticks)
        assert table["standard_deviations"][name] == deviation
        assert table["half_widths"][name] == pytest.approx(z * deviation)
    assert "--reports K" in call("stream", "plan", *WANTED, "--person", "sex")[2]


def test_a_file_is_counted_twice_only_if_that_is_said(call):
    status, _, err = call("stream", "tick", "st", "2.csv", "--tick", "4")
    assert status == 1
    assert "2.csv' was counted at tick 2" in err
    assert "--tick 2" in err
    assert "--same-file" in err
    assert len(Stream.open("st")) == TICKS
    assert call("stream", "tick", "st", "2.csv", "--tick", "2")[0] == 0  # is read again


def test_the_change_between_ticks_is_that_of_the_same_question(call):
    earlier, later = "st/ticks/0001", "st/ticks/0003"
    status, out, err = call("difference", earlier, later, "--of", "sex")
    assert (status, err) == (0, "")
    assert out.startswith("sex: rows of tick 3 less tick 1\n")
    found = json.loads(call("difference", earlier, later, "--json")[1])
    assert [table["attributes"] for table in found["tables"]] == [["sex", "age"], ["age"]]
    (table,) = json.loads(call("difference", earlier, later, "--of", "sex", "--json")[1])["tables"]
    stream = Stream.open("st")
    answer = stream.tables.ask("change of count of sex from tick 1 to tick 3")
    for name in ("estimate", "standard_deviation", "low", "high"):
        np.testing.assert_allclose([row[name] for row in table["rows"]], getattr(answer, name))
    # one noise is in both ticks: with two independent ones, the deviation would be another
    plan = stream.plan
    apart = np.hypot(*(plan.standard_deviation("sex", ticks=(t, t)) for t in (1, 3)))
    assert abs(answer.standard_deviation[0] / apart - 1) > 0.01
    back = json.loads(call("difference", later, earlier, "--of", "age:prefix", "--json")[1])
    assert len(back["tables"][0]["rows"]) == 3


def test_a_file_is_checked_before_its_tick_and_nothing_is_counted(call, place):
    before = sorted(path for path in place.rglob("*"))
    status, out, _ = call("stream", "check", "st", "4.csv")
    assert (status, "800 rows, 800 counted" in out) == (0, True)
    (place / "odd.csv").write_text("sex,age\nF,20\nX,20\n", encoding="utf-8")
    status, out, _ = call("stream", "check", "st", "odd.csv", "--json")
    assert (status, json.loads(out)["left_out"]) == (1, 1)
    (place / "odd.csv").unlink()
    assert "from 1 to 9" in call("stream", "check", "st", "4.csv", "--tick", "10")[2]
    assert sorted(path for path in place.rglob("*")) == before


@pytest.mark.parametrize("late", ["refuse", "carry"])
def test_rows_of_other_ticks_are_found_before_the_tick_refuses_them(tmp_path, monkeypatch, late):
    """Of the rows that the tick counts, which are those that the schema admits."""
    monkeypatch.chdir(tmp_path)
    over = gn.streams.Ticks(4, period="week", late=late)
    weekly = gn.plan(gn.Schema([gn.Attribute("sex", ["F", "M"])]), 1, gn.zCDP(1), over=over)
    stream = weekly.start("st", on_outside="drop")
    stream.tick(pa.table({"sex": ["F"], "week": [1]}), number=1)
    for name, weeks in {"earlier": [1, 2, 2], "later": [3, 2, 2], "odd": [2, 2, 3]}.items():
        rows = pa.table({"sex": ["F", "M", "X"], "week": weeks})
        pyarrow.csv.write_csv(rows, f"{name}.csv")
        words = ["st", f"{name}.csv", "--tick", "2"]
        found = run(["stream", "check", *words])
        assert found == 1  # X is no category
        fits = name == "odd" or (name, late) == ("earlier", "carry")
        if fits:
            assert weekly.check(rows, 2).left_out == 1
        else:
            with pytest.raises(gn.errors.DataError, match=f"got {name} "):
                weekly.check(rows, 2)
            assert run(["stream", "tick", *words]) == 1
    assert len(stream) == 1
    assert run(["stream", "tick", "st", "odd.csv", "--tick", "2"]) == 0


def test_a_stream_is_no_release_to_compare_and_the_refusal_says_what_is(call):
    for words in (("st", "st"), ("st", "st/ticks/0002"), ("st/ticks/0001", "schema.toml")):
        status, _, err = call("difference", *words)
        assert status == 1
        assert "hint: gaussnoise difference STREAM/ticks/0003 STREAM/ticks/0007" in err
    status, _, err = call("difference", "st/ticks/0001", "st/ticks/0002", "-o", "changes")
    assert status == 1
    assert "st -o FILE, which writes all ticks" in err


def test_the_page_of_a_stream_has_every_table_over_time(call, place, monkeypatch):
    assert call("report", "st", "-o", "page.html")[0] == 0
    page = (place / "page.html").read_text(encoding="utf-8")
    series = Stream.open("st").series(("sex", "age"))
    assert page.count(" by tick: estimates with 95 % intervals") == 2  # a picture for each table
    for value in series.estimate.ravel():
        assert f'<data value="{value}">' in page
    monkeypatch.setattr(over_time, "_MOST_PANELS", 2)
    monkeypatch.setattr(over_time, "_MOST_TICKS", 2)
    monkeypatch.setattr(over_time, "_MOST_ROWS", 4)
    assert call("report", "st", "-o", "short.html")[0] == 0
    short = (place / "short.html").read_text(encoding="utf-8")
    assert " by tick: estimates with 95 % intervals" not in short
    assert "2 more groups and 1 earlier tick:" in short
    kept = series.estimate[1:].reshape(2, -1)
    assert all(f'<data value="{value}">' in short for value in kept[:, :4].ravel())
    assert not any(f'<data value="{value}">' in short for value in kept[:, 4:].ravel())
    assert call("report", "st", "-o", "one.html", "--ticks", "2")[0] == 0
    assert "by tick" not in (place / "one.html").read_text(encoding="utf-8")


def test_the_page_of_a_simulated_stream_says_so(tmp_path):
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"])])
    plan = gn.plan(schema, 1, gn.zCDP(0.1), over=gn.streams.Ticks(2))
    one = plan.simulate([pa.table({"sex": ["F", "M"]})], np.random.default_rng(0))
    one.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "NOT PRIVATE" in page
    assert "sex by tick" in page
