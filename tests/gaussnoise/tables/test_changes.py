"""Tests of the command that compares two releases, of its files, and of its page."""

import dataclasses
import html
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from two_dates import SCHEMA, people

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import OutputError, ParameterError
from gaussnoise.files.disk import file_digest
from gaussnoise.tables.release.changes import (
    NO_CHANGE,
    changes_record,
    changes_text,
    shown_changes,
)
from gaussnoise.tables.release.formats import FORMATS, format_of
from gaussnoise.tables.release.report.changes import changes_page
from gaussnoise.tables.release.report.numbers import cells_of
from gaussnoise.tables.release.report.render import number

WORKLOAD = [("sex", "age"), ("sex", "pay"), {"age": "prefix"}]


def plan(rho=0.1, workload=WORKLOAD):
    return gn.plan(SCHEMA, workload, gn.zCDP(rho))


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folders of two releases, of different rows and formats."""
    home = tmp_path_factory.mktemp("dates")
    plan().release(people(1, 900), out=home / "january")
    plan(0.2).release(people(2, 1200), out=home / "june", format="parquet")
    return [str(home / "january"), str(home / "june")]


@pytest.fixture
def changes(folders):
    return gn.difference(*map(gn.TableRelease.load, folders))


def test_the_shell_shows_every_common_table_within_80_columns(folders, changes, capsys):
    assert run(["difference", *folders]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert max(map(len, out.splitlines())) <= 80
    assert out == changes_text(changes, shown_changes(changes)) + "\n"
    names = ["all rows", "sex × age", "mean of pay by sex", "sum of pay by sex", "age (prefix)"]
    assert [one.name for one in shown_changes(changes)] == names
    assert all(f"\n{name}\n" in f"\n{out}" for name in names)
    assert f"{changes['sex', 'age'].estimate[0, 0]:+,.0f}".replace("-", "−") in out
    assert "has spent ρ = 0.3, the sum of both" in " ".join(out.split())


def test_json_has_the_numbers_of_the_library(folders, changes, capsys):
    assert run(["difference", *folders, "--of", "age,sex", "--of", "sex,pay", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["format"] == "gaussnoise.changes/1"
    assert (found["private"], found["folder"]) == (True, None)
    assert found["intervals"]["level"] == 0.95
    assert (found["before"]["name"], found["after"]["name"]) == ("january", "june")
    assert found["rho_of_both"] == pytest.approx(0.3)
    counts, means, sums = found["tables"]
    assert found["notes"] == ["Sums and means of pay are of values clipped to [0, 5000]."]
    assert run(["difference", *folders, "--of", "age,sex", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == []
    assert [one["statistic"] for one in (counts, means, sums)] == ["count", "mean", "sum"]
    expected = changes["age", "sex"]
    assert counts["attributes"] == ["age", "sex"]
    assert [row["labels"] for row in counts["rows"]][1] == [expected.labels[0][0], "M"]
    for key, values in (
        ("estimate", expected.estimate),
        ("standard_deviation", expected.standard_deviation),
        ("low", expected.confidence_interval().low),
        ("before", changes.before["age", "sex"].estimate),
        ("after", changes.after["age", "sex"].estimate),
        ("before_low", changes.before["age", "sex"].confidence_interval().low),
        ("after_high", changes.after["age", "sex"].confidence_interval().high),
    ):
        np.testing.assert_allclose([row[key] for row in counts["rows"]], values.ravel())
    relative = changes.means("pay", "sex").relative()
    np.testing.assert_allclose(
        [row["relative"]["high"] for row in means["rows"]], relative.confidence_interval().high
    )


@pytest.mark.parametrize("format", FORMATS)
def test_files_of_every_format_hold_the_changes(format, folders, changes, tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["difference", *folders, "-o", str(out), "--format", format]) == 0
    said = capsys.readouterr().out
    assert f"wrote {out}: " in said
    for name in ("report.html", "summary.txt", "method.txt", "ddi.xml", "changes.png"):
        assert (out / name).stat().st_size > 1000
        assert name in said
    assert "A row in both has spent" in (out / "method.txt").read_text(encoding="utf-8")
    record = json.loads((out / "changes.json").read_text(encoding="utf-8"))
    assert set(record["files"]) == {
        str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()
    } - {"changes.json"}
    assert all(file_digest(out / name) == digest for name, digest in record["files"].items())
    for one, table in zip(record["tables"], shown_changes(changes), strict=True):
        path, own, size = out / one["files"]["changes"], table.table, table.table.estimate.size
        assert format_of(path.name) is FORMATS[format]
        if format == "xlsx":
            continue
        if not FORMATS[format].holds_columns:
            for kind, numbers in (("before", own.second), ("after", own.first), ("changes", own)):
                found = FORMATS[format].estimates(out / one["files"][kind], 0, size)
                np.testing.assert_allclose(found, numbers.estimate.ravel())
            continue
        names = ["before", "after", "change", "change_standard_deviation"]
        numbers = own.second.estimate, own.first.estimate, own.estimate, own.standard_deviation
        found = FORMATS[format].numbers(path, names, 0, size)
        np.testing.assert_allclose(found, [np.ravel(own) for own in numbers])
    page = (out / "report.html").read_text(encoding="utf-8")
    assert shown_changes(changes)[0].finding in page
    for command in (["ask", str(out), "count"], ["report", str(out)]):
        assert run(command) == 1
        assert "got changes from one release to another; hint: report.html" in " ".join(
            capsys.readouterr().err.split()
        )


def test_a_workbook_has_all_changes_behind_one_cover(changes, tmp_path):
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is missing")
    changes.save(tmp_path / "out", "xlsx", title="A year")
    (path,) = (tmp_path / "out").rglob("*.xlsx")
    book = openpyxl.load_workbook(path)
    found = shown_changes(changes)
    assert len(book.worksheets) == 1 + len(found)
    cover = [row[0].value for row in book.worksheets[0]]
    assert cover[0] == "A year"
    assert f"{found[0].name}: {found[0].finding}" in cover
    for k, one in enumerate(found, 1):
        header, *rows = book.worksheets[k].iter_rows(values_only=True)
        columns = dict(zip(header, zip(*rows, strict=True), strict=True))
        table = one.table
        for name, numbers, unit in (
            ("before", table.second, 1),
            ("after", table.first, 1),
            ("change", table, 1),
            ("per_cent", one.relative, 100),
        ):
            low, high = numbers.confidence_interval()
            ends = {"": numbers.estimate, "_low": low, "_high": high}
            for end, values in ends.items():
                np.testing.assert_array_equal(columns[name + end], unit * np.ravel(values))


def test_columns_of_a_file_have_names_of_their_own():
    schema = gn.Schema([gn.Attribute("before", ["y", "n"]), gn.Attribute("change", [1, 2])])
    table = pa.table({"before": ["y", "n"] * 9, "change": [1, 2] * 9})
    planned, rng = gn.plan(schema, 2, gn.zCDP(0.01)), np.random.default_rng(0)
    changes = gn.difference(*(planned.simulate(table, rng) for _ in range(2)))
    rows = shown_changes(changes, [("before", "change")])[0].to_arrow()
    assert len(set(rows.column_names)) == len(rows.column_names)
    assert rows.column_names[:3] == ["before", "change", "before_"]
    # nothing is known of the per cent where the number before may be zero
    unknown = rows["per_cent_high"].to_numpy() != rows["per_cent_high"].to_numpy()
    assert unknown.any()
    assert (np.isnan(rows["per_cent"].to_numpy()) == unknown).all()


def test_sentences_name_a_change_only_where_the_interval_supports_it():
    rng = np.random.default_rng(0)
    same = [plan(rho).simulate(people(1, 900), rng) for rho in (0.001, 0.002)]
    assert {one.finding for one in shown_changes(gn.difference(*same))} == {NO_CHANGE}
    more = pa.concat_tables([people(1, 900)] * 4)
    before, after = plan(1.0).simulate(people(1, 900), rng), plan(1.0).simulate(more, rng)
    rise, fall = (
        {one.name: one.finding for one in shown_changes(gn.difference(*both))}
        for both in ((before, after), (after, before))
    )
    number, low, high = (int(x.replace(",", "")) for x in re.findall(r"[\d,]+", rise["all rows"]))
    assert low <= number <= high
    assert low < 2700 < high
    assert " more rows (" in rise["sex × age"]
    assert " fewer rows (" in fall["sex × age"]
    assert "6 of 6 changes are larger than the noise" in fall["sex × age"]


def test_sentences_are_right_as_often_as_they_say():
    """Of tables without a change, one in twenty is said to have one."""
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(200):
        both = [plan(0.1, [("sex", "age")]).simulate(people(1, 90), rng) for _ in range(2)]
        (one,) = shown_changes(gn.difference(*both), [("sex", "age")])
        wrong += one.finding != NO_CHANGE
    assert wrong <= 22  # of 200; 10 expected, and more in one case of a thousand


def test_per_cent_are_left_out_where_the_number_before_may_be_zero():
    rng = np.random.default_rng(3)
    nobody = people(1, 900).slice(0, 0)
    both = [plan(0.1, [("sex",)]).simulate(table, rng) for table in (nobody, people(1, 900))]
    one = shown_changes(gn.difference(*both), [("sex",)])[0]
    unknown = np.isinf(one.relative.confidence_interval().high)
    assert unknown.tolist() == [True, False]  # with this generator
    assert [line.endswith("—") for line in str(one).splitlines()[2:4]] == [True, False]


def test_many_tables_have_a_sentence_each():
    rng = np.random.default_rng(3)
    schema = gn.Schema([gn.Attribute(f"question {k}", ["y", "n"]) for k in range(9)])
    table = pa.table({name: ["y", "n"] * 9 for name in schema.names})
    many = gn.plan(schema, 2, gn.zCDP(0.1))
    changes = gn.difference(*(many.simulate(table, rng) for _ in range(2)))
    found = shown_changes(changes)
    text = changes_text(changes, found)
    assert max(map(len, text.splitlines())) <= 80
    assert all(one.name in " ".join(text.split()) for one in found)
    assert text.count("before  after") == 12 < len(found) == 37


def test_simulations_are_called_not_private(tmp_path):
    rng = np.random.default_rng(0)
    changes = gn.difference(*(plan(rho).simulate(people(1, 90), rng) for rho in (0.1, 0.2)))
    assert changes_text(changes, shown_changes(changes)).startswith("NOT PRIVATE, a simulation: ")
    changes.report(tmp_path / "page.html")
    assert "NOT PRIVATE" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_releases_that_protect_different_things_have_no_sum_of_costs():
    rng = np.random.default_rng(0)
    one = plan().simulate(people(1, 90), rng)
    two = gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.1), rows_per_person=2).simulate(people(2, 90), rng)
    changes = gn.difference(one, two)
    text = changes_text(as_private(changes), shown_changes(changes))
    assert "protect different things" in " ".join(text.split())


def as_private(changes):
    """Return changes as if both releases were private."""
    return dataclasses.replace(
        changes,
        before=dataclasses.replace(changes.before, private=True),
        after=dataclasses.replace(changes.after, private=True),
    )


def test_what_is_counted_is_said_in_text_page_and_json(tmp_path):
    rng = np.random.default_rng(0)
    who = np.arange(90) // 2
    rows = people(1, 90).append_column("who", pa.array(who)).append_column("w", pa.array(who / 45))
    limited = gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.1), person="who", rows_per_person=2)
    weighted = gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.1), weight=gn.Weight("w", 1.0))
    for planned, words in (
        (limited, "Counted: at most 2 rows of each person, drawn at random"),
        (weighted, "Every row counts as its 'w', clipped to [0, 1]"),
        (weighted, "Sums and means of pay are of values clipped to [0, 5000]."),
    ):
        changes = gn.difference(*(planned.simulate(rows, rng) for _ in range(2)))
        text = changes_text(changes, found := shown_changes(changes))
        assert words in " ".join(text.split())
        assert words in " ".join(changes_record(changes, found, rows=False)["notes"])
        page = html.unescape(changes_page(changes))
        assert words in page


def test_what_cannot_be_compared_is_refused_in_words(folders, changes, tmp_path, capsys):
    january, june = folders
    (tmp_path / "taken").mkdir()
    for command, words in (
        ([january, january], "got one twice"),
        ([january, str(tmp_path / "missing")], "there is no such folder"),
        ([january, june, "--of", "sexx"], "did you mean 'sex'"),
        ([january, june, "--of", "age,pay"], "no planned marginal contains"),
        ([january, june, "-o", str(tmp_path / "taken")], "exists already"),
        ([january, june, "-o", str(tmp_path / "new"), "--format", "odt"], "expected format"),
    ):
        assert run(["difference", *command]) == 1
        out, err = capsys.readouterr()
        assert words in " ".join(err.split())
        assert out == ""
    assert not (tmp_path / "new").exists()
    with pytest.raises(ParameterError, match="expected of to be a list of tables"):
        changes.save(tmp_path / "new", of="sex")
    with pytest.raises(OutputError, match="holds the files that were released"):
        changes.report(f"{june}/page.html")


def test_the_page_says_what_both_releases_were(changes, tmp_path):
    changes.report(tmp_path / "page.html", title="June", of=[("sex",)])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>June</h1>" in page
    assert file_digest(changes.after.tables.folder / "release.json") in page
    assert "Before: january" in page
    again = tmp_path / "again.html"
    changes.report(again, title="June", of=[("sex",)])
    assert again.read_text(encoding="utf-8") == page


def test_what_is_left_out_is_named_with_the_reason_in_text_page_json_and_files(tmp_path, capsys):
    more = gn.Attribute("age", edges=[0, 18, 65, 90, 120])
    schema = gn.Schema([SCHEMA.attributes[0], more, SCHEMA.attributes[2]])
    plan().release(people(1, 900), out=tmp_path / "january")
    later = gn.plan(schema, [*WORKLOAD, ("age", "pay")], gn.zCDP(0.1))
    later.release(people(2, 1200), out=tmp_path / "june")
    both = [str(tmp_path / name) for name in ("january", "june")]
    assert run(["difference", *both, "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out.partition("\nwrote ")[0]
    assert max(map(len, said.splitlines())) <= 80
    why = "age has other edges in each of the releases"
    expected = {
        "sex × age": why,
        "age (prefix)": why,
        "mean and sum of pay by age": why,
    }
    page = html.unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    page = re.sub("<[^>]*>", "", page)
    method = (tmp_path / "out" / "method.txt").read_text(encoding="utf-8")
    for name, reason in expected.items():
        assert f"\n{name}: {reason}\n" in said
        assert f"{name}: {reason}" in page
        assert f"{name} ({reason})" in " ".join(method.split())
    assert run(["difference", *both, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {one["name"]: one["reason"] for one in found["left_out"]} == expected
    names = ["all rows", "mean of pay by sex", "sum of pay by sex"]
    assert [one["name"] for one in found["tables"]] == names
    assert run(["difference", *both, "--of", "sex"]) == 0  # all that was asked for is there
    assert "Left out" not in capsys.readouterr().out
    fewer = plan(workload=[("sex", "pay")])
    rng = np.random.default_rng(0)
    changes = gn.difference(*(own.simulate(people(1, 90), rng) for own in (plan(), fewer)))
    assert "sex × age: the later release has no such table" in changes_text(
        changes, shown_changes(changes)
    )


def test_reasons_and_lines_for_readers_stand_in_full():
    both = []
    for year in (2023, 2024):
        months = gn.Attribute("month", [f"{year}-{month:02}" for month in range(1, 13)])
        source = f"Register of {year}, " + "as it was " * 30 + "corrected"
        schema = gn.Schema([months], about=gn.About(source=source))
        table = pa.table({"month": [f"{year}-01"]})
        both.append(gn.plan(schema, 1, gn.zCDP(1)).simulate(table, np.random.default_rng(year)))
    changes = gn.difference(*both)
    page = html.unescape(re.sub("<[^>]*>", "", changes_page(changes)))
    (why,) = set(changes.unlike.values())
    assert f"month: month {why}" in page
    for own in both:
        assert own.plan.schema.about.source in page


def test_an_assumption_that_all_rows_fit_is_said(tmp_path, capsys):
    table = people(1, 900)
    for name, workload in (("january", WORKLOAD), ("june", [("sex", "pay")])):
        plan(workload=workload).release(table, out=tmp_path / name, on_outside="drop")
    both = [str(tmp_path / name) for name in ("january", "june")]
    assert run(["difference", *both]) == 1
    assert "hint: --all-rows-fit if every row had one" in " ".join(capsys.readouterr().err.split())
    assert run(["difference", *both, "--all-rows-fit", "-o", str(tmp_path / "out")]) == 0
    words = "Assumed: every row had a value of the schema in 'age'."
    page = html.unescape((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    for said in (capsys.readouterr().out, page):
        assert words in " ".join(said.split())
    assert run(["difference", *both, "--all-rows-fit", "--json"]) == 0
    assert words in json.loads(capsys.readouterr().out)["notes"][-1]


def about(month):
    lines = {"title": f"Pay in {month}", "period": month, "publisher": "Statistics Nowhere"}
    return gn.Schema(SCHEMA.attributes, about=gn.About(**lines, contact="us@example.org"))


def test_the_page_names_both_releases():
    rng = np.random.default_rng(0)
    one, two = (
        gn.plan(about(month), WORKLOAD, gn.zCDP(0.1)).simulate(people(1, 900), rng)
        for month in ("January", "June")
    )
    page = re.sub(r"<[^>]*>", "", changes_page(gn.difference(one, two)))
    for words in (
        "What changed from Pay in January to Pay in June",
        "Period: from January to June",
        "Publisher: Statistics Nowhere",
        "Contact: us@example.org",
        "PeriodJanuaryJune",
    ):
        assert words in page
    same = gn.plan(about("June"), WORKLOAD, gn.zCDP(0.1)).simulate(people(1, 900), rng)
    assert "Pay in June: what changed" in changes_page(gn.difference(two, same))


def test_numbers_on_the_page_have_the_digits_of_their_own_noise():
    """A change has more noise than the numbers it compares, which are written as by a release."""
    rng = np.random.default_rng(0)
    both = [plan(3.0, [("sex",)]).simulate(people(k, 900), rng) for k in (1, 2)]
    changes = gn.difference(*both)
    assert [cells_of(one["sex"], [0])[0].digits for one in (*both, changes)] == [1, 1, 0]
    page = changes_page(changes, of=[("sex",)])
    for release in both:
        for cell in cells_of(release["sex"], [0, 1]):
            assert f">{number(cell.estimate, cell.digits)}<" in page


MONTHS = [f"2022-{month:02}-01" for month in range(1, 13)] + ["2023-01-01"]
DAYS = gn.Schema(
    [
        gn.Attribute("admitted", edges=MONTHS, other="other"),
        gn.Attribute("sex", ["F", "M"]),
    ]
)


@pytest.fixture(scope="module")
def years():
    """Changes between two years by the months of the first: all rows move to the catch-all."""
    rng = np.random.default_rng(4)
    both = []
    for year in (2022, 2023):
        days = np.datetime64(f"{year}-01-01") + rng.integers(0, 365, 4000)
        table = pa.table({"admitted": days, "sex": rng.choice(["F", "M"], 4000)})
        both.append(gn.plan(DAYS, 2, gn.zCDP(0.1)).simulate(table, rng))
    return gn.difference(*both)


def test_labels_have_all_the_room_that_other_columns_leave(years):
    text = str(shown_changes(years, [("admitted", "sex")])[0])
    assert max(map(len, text.splitlines())) <= 80
    assert "[2022-01-01, 2022-02-01)  F" in text


def test_no_fall_is_larger_than_what_there_was(years):
    (shown_months,) = shown_changes(years, [("admitted", "sex")])
    relative = shown_months.relative.estimate
    assert (relative < -1.005).any()  # as noise left less than nothing after
    printed = re.findall(r"(−\d+)$", str(shown_months), re.MULTILINE)
    assert "−100" in printed
    assert min(int(one.replace("−", "-")) for one in printed) == -100
    assert "−101" not in changes_page(years)


def test_the_catch_all_does_not_set_the_scale_of_pictures(years):
    table = years["admitted"]
    (axes,) = table.plot().axes
    low, high = axes.get_xlim()
    assert -600 < low < table.estimate[:-1].min() < 0 < high < 100
    (arrow,) = axes.texts
    assert arrow.get_text() == f"+{table.estimate[-1]:,.0f}"
    assert f"+{table.estimate[-1]:,.0f}</text>" in changes_page(years, of=[("admitted",)])
    without = dataclasses.replace(table, others={})
    assert without.plot().axes[0].get_xlim()[1] > table.estimate[-1]
