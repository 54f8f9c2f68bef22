"""Tests of the noun for what tables count: rows, persons, or the unit that an owner states."""

import json
import pathlib

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import ParameterError
from gaussnoise.tables.planning.noun import noun_of, persons_of
from gaussnoise.tables.release.aside import rows_aside

SEX = gn.Attribute("sex", ["F", "M"])
PAY = gn.Attribute("pay", clip=[0, 10], measured_in="euro")
TABLE = pa.table({"who": range(900), "sex": ["F", "M", "F"] * 300, "pay": [1.0, 2.0, 6.0] * 300})
HOMES = gn.About(unit="Homes of $1 & <more>")


def planned(about=None, workload=1, over=None, **options):
    schema = gn.Schema([SEX], about=gn.About() if about is None else about)
    return gn.plan(schema, workload, gn.zCDP(10), over=over, **options)


@pytest.mark.parametrize(
    ("about", "options", "noun"),
    [
        (None, {}, "rows"),
        (None, {"rows_per_person": 2}, "rows"),
        (None, {"person": "who"}, "persons"),
        (None, {"person": "who", "rows_per_person": 2}, "rows"),
        (None, {"person": "household_id"}, "households"),
        (None, {"weight": gn.Weight("w", 4)}, "weighted rows"),
        (None, {"weight": gn.Weight("w", 4), "person": "who"}, "weighted persons"),
        ("homes", {}, "homes"),
        ("homes", {"person": "who"}, "homes"),
        ("homes", {"person": "who", "rows_per_person": 2}, "homes"),
        ("homes", {"weight": gn.Weight("w", 4)}, "weighted homes"),
    ],
)
def test_the_noun_of_a_plan(about, options, noun):
    assert noun_of(planned(gn.About(unit=about), **options)) == noun


@pytest.mark.parametrize(
    ("column", "noun"),
    [
        *((name, "persons") for name in ("id", "person_id", "ssn", "who", "Nr", "tax_number")),
        ("Household-ID", "households"),
        ("family", "families"),
        ("company_no", "companies"),
        ("business_key", "businesses"),
        ("hospital_patient_id", "patients"),
    ],
)
def test_the_noun_of_a_column_of_persons(column, noun):
    assert persons_of(column) == noun


def test_records_of_a_person_in_several_groups_are_not_persons():
    schema = gn.Schema([SEX, PAY])
    for most, noun in ((1, "persons"), (2, "records")):
        plan = gn.plan(
            schema,
            [("sex", "pay")],
            gn.zCDP(1),
            person="who",
            per_person={"pay": "mean"},
            rows_per_person=most,
        )
        assert noun_of(plan) == noun


@pytest.mark.parametrize("reports", [1, 2])
def test_a_person_who_counts_at_several_ticks_is_not_one_of_their_total(reports):
    over = gn.streams.Ticks(4, reports=reports)
    plan = planned(over=over, person="who")
    so_far = plan.simulate([TABLE, TABLE], np.random.default_rng(0))
    assert so_far.period(2).noun == so_far.period(2)["sex"].noun == "persons"
    assert so_far.total().noun == ("persons" if reports == 1 else "rows")
    series = so_far.series("sex")
    assert series.counted == "persons of each tick"
    assert series.cumsum().counted == f"all {so_far.total().noun} so far"


def test_one_unit_is_said_in_all_that_is_written(tmp_path):
    plan = planned(HOMES)
    release = plan.release(TABLE, out=tmp_path / "out")
    loaded = gn.TableRelease.load(tmp_path / "out")
    assert loaded.noun == release.noun == HOMES.unit == loaded["sex"].noun
    assert loaded["sex"].nonnegative().noun == HOMES.unit
    assert json.loads((tmp_path / "out" / "release.json").read_text("utf-8"))["about"] == {
        "unit": HOMES.unit
    }
    method = (tmp_path / "out" / "method.txt").read_text("utf-8")
    assert f"Number of {HOMES.unit}." in method
    changes = gn.difference(release, planned(HOMES).release(TABLE))
    for name, document in {"release": loaded, "plan": plan, "changes": changes}.items():
        document.report(tmp_path / f"{name}.html")
    escaped = "omes of $1 &amp; &lt;more&gt;"  # without its first letter, which may be a small one
    for page, times in (("release", 4), ("plan", 1), ("changes", 2)):
        assert pathlib.Path(tmp_path / f"{page}.html").read_text("utf-8").count(escaped) >= times
    figure = loaded["sex"].plot()
    assert r"Homes of \$1" in " ".join(axes.get_xlabel() for axes in figure.axes)


def test_a_remark_on_nearly_all_rows_has_the_noun():
    attribute = gn.Attribute("sex", ["F"], other="other")
    plan = gn.plan(gn.Schema([attribute]), 1, gn.zCDP(10), person="who")
    people = pa.table({"who": range(900), "sex": ["M"] * 900})
    (remark,) = rows_aside(plan.release(people))
    assert "% of all persons are in the catch-all" in remark


def test_answers_have_the_unit_of_their_numbers():
    schema = gn.Schema([SEX, PAY, gn.Attribute("age", edges=[0, 50, 99], measured_in="years")])
    table = TABLE.append_column("age", pa.array([30, 60, 70] * 300))
    plan = gn.plan(schema, [("sex", "pay"), ("age",)], gn.zCDP(10), person="who")
    release = plan.release(table)
    for question, unit in {
        "count by sex": "persons",
        "mean of pay by sex": "euro",
        "sum of pay": "euro",
        "share of sex=F": "",
        "percentage of sex=F": "per cent",
        "median age": "years",
        "difference of count between sex=F and sex=M": "persons",
        "difference of mean of pay between sex=F and sex=M": "euro",
        "ratio of count of sex=F to count of sex=M": "",
        "which sex has the most persons": "persons",
    }.items():
        answer = release.ask(question)
        assert answer.unit == unit, question
        said = f"{answer.meaning}, in {unit}" if unit else answer.meaning
        assert " ".join(str(answer).split()).startswith(said)
        assert answer.to_dict().get("unit", "") == unit


def test_questions_know_the_stated_unit():
    release = planned(gn.About(unit="Private homes")).release(TABLE)
    assert release.ask("how many private homes").estimate == release.ask("count").estimate
    assert release.ask("how many rows").estimate == release.ask("count").estimate
    with pytest.raises(ParameterError, match=r"the tables count Private homes; hint: .*how many"):
        release.ask("how many people")


def test_the_shell_says_the_unit(tmp_path, capsys):
    path = tmp_path / "s.toml"
    path.write_text(gn.Schema([SEX], about=gn.About(unit="homes")).to_toml(), "utf-8")
    assert run(["plan", "-s", str(path), "-m", "1", "--rho", "0.1"]) == 0
    assert "homes" in capsys.readouterr().out
