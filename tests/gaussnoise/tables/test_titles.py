"""Tests of titles and units of columns: what readers are told instead of names."""

import html
import json
import re
from xml.etree import ElementTree

import numpy as np
import openpyxl
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.cli.app import run
from gaussnoise.errors import SchemaError
from gaussnoise.tables.release.report.changes import changes_page
from gaussnoise.tables.release.report.pages import plan_page, release_page

TEXT = """\
[attributes.los]
clip = [0, 60]
title = "Length of stay"
measured_in = "days"
base = "sum"

[attributes.w1]
categories = ["A", "B"]
title = "Ward"

[attributes.age]
edges = [0, 18, 65, 120]
measured_in = "years"
"""
TABLE = pa.table(
    {"los": [3.0, 8.0] * 900, "w1": ["A", "B"] * 900, "age": [30, 70, 10] * 600},
)
WORKLOAD = [("w1", "age"), ("w1", "los")]


def plan(rho=0.5):
    return gn.plan(gn.Schema.loads(TEXT), WORKLOAD, gn.zCDP(rho))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("titles") / "out"
    plan().release(TABLE, out=place)
    return place


def words_of(page):
    return " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())


def test_schemas_keep_titles_and_units():
    schema = gn.Schema.loads(TEXT)
    assert schema.to_toml() == TEXT
    assert [a.heading for a in schema.attributes] == [
        "Length of stay (days)",
        "Ward",
        "age (years)",
    ]
    assert schema.heading("w1") == "Ward"
    assert schema.heading("region") == "region"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": ""}, "expected title to be one line"),
        ({"title": "a\nb"}, "expected title to be one line"),
        ({"title": "\u202eb"}, "expected title to be one line"),
        ({"measured_in": 3}, "expected measured_in to be one line"),
        ({"categories": ["x"], "measured_in": "days"}, "measured_in of numbers alone"),
        ({"edges": ["2020-01-01", "2021-01-01"], "measured_in": "days"}, "numbers alone"),
    ],
)
def test_titles_and_units_that_cannot_be_shown_are_refused(changes, message):
    given = {"clip": [0, 1]} if not changes.keys() & {"categories", "edges"} else {}
    with pytest.raises(SchemaError, match=message):
        gn.Attribute("a", **given, **changes)


def test_a_title_names_one_column_only():
    groups = {"region": {"N": ["x"]}}
    for title in ("B", "Region", "other"):
        columns = [
            gn.Attribute("a", ["x"], title=title),
            gn.Attribute("b", ["x"], title="Other"),
            gn.Attribute("c", ["x"], groups=groups),
        ]
        with pytest.raises(SchemaError, match="no name or title of another column"):
            gn.Schema(columns)
    gn.Schema([gn.Attribute("a", ["x"], title="A"), gn.Attribute("b", ["x"])])  # its own name
    with pytest.raises(SchemaError, match=r":3: .*measured_in: expected text"):
        gn.Schema.loads("[attributes.a]\nclip = [0, 1]\nmeasured_in = 3\n")


def test_neither_noise_nor_tables_depend_on_titles():
    bare = re.sub("(title|measured_in) = .*\n", "", TEXT)
    other = gn.plan(gn.Schema.loads(bare), WORKLOAD, gn.zCDP(0.5))
    one, two = (own.simulate(TABLE, np.random.default_rng(3)) for own in (plan(), other))
    assert np.array_equal(one["w1", "age"].estimate, two["w1", "age"].estimate)
    assert one["w1", "age"].to_arrow().column_names == two["w1", "age"].to_arrow().column_names
    assert gn.difference(one, plan().simulate(TABLE, np.random.default_rng(4))).unlike == {}
    later = other.simulate(TABLE, np.random.default_rng(5))
    assert gn.difference(one, later).unlike == {}  # another title is no other definition


def test_pages_and_pictures_show_titles(folder):
    release = gn.TableRelease.load(folder)
    page = release_page(release)
    words = words_of(page)
    for said in (
        "about Length of stay (days), Ward and age (years)",
        "Mean of Length of stay (days) by Ward",
        "Ward × age (years)",
    ):
        assert said in words, said
    assert 'data-of=\'["w1", "age"]\'' in page or 'data-of=\'["age", "w1"]\'' in page
    assert "Ward w1" in words  # the table of what was asked names the column too
    assert "Length of stay (days) los" in words_of(plan_page(plan()))
    figure = release["w1", "age"].plot()
    assert "Ward × age (years)" in figure.axes[0].get_title()


def test_terminals_show_titles_where_there_is_room(folder):
    release = gn.TableRelease.load(folder)
    assert re.search(r"^Ward +estimate", str(release.means("los", "w1")), re.MULTILINE)
    assert re.search(r"^Ward +age \(years\) +estimate", str(release["w1", "age"]), re.MULTILINE)
    assert re.search(r"^Ward +age \(years\) +est", str(release["w1", "age"].top(2)), re.MULTILINE)
    assert re.search(r"^Ward +estimate", str(release.ask("mean of los by w1")), re.MULTILINE)
    long = gn.Attribute("w1", ["A", "B"], title="Ward of the hospital " * 4)
    narrow = gn.plan(gn.Schema([long]), 1, gn.zCDP(1)).simulate(
        TABLE.select(["w1"]), np.random.default_rng(0)
    )
    assert re.search(r"^w1 +estimate", str(narrow["w1"]), re.MULTILINE)


def test_pages_of_changes_show_titles(folder):
    changes = gn.difference(gn.TableRelease.load(folder), plan().release(TABLE))
    words = words_of(changes_page(changes))
    assert "Mean of Length of stay (days) by Ward" in words
    assert "Ward × age (years)" in words
    assert re.search(r"^Ward +estimate", str(changes.means("los", "w1")), re.MULTILINE)


def test_streams_show_titles():
    schema = gn.Schema([gn.Attribute("w1", ["A", "B"], title="Ward")])
    stream = gn.plan(schema, 1, gn.zCDP(1.0), over=gn.streams.Ticks(3))
    both = stream.simulate([TABLE.select(["w1"])] * 3, np.random.default_rng(0))
    assert re.search(r"^tick +Ward +estimate", str(both.series("w1")), re.MULTILINE)
    assert re.search(r"^Ward +slope", str(both.series("w1").trend()), re.MULTILINE)
    assert re.search(r"^tick +Ward +estimate", str(both.ask("count of ward by tick")), re.MULTILINE)


def test_questions_know_titles(folder):
    release = gn.TableRelease.load(folder)
    for question in (
        "mean of Length of stay by Ward",
        "mean of length of stay by ward",
        'mean of "Length of stay" by Ward',
        "average length of stay per ward",
    ):
        answer = release.ask(question)
        assert answer.meaning == 'mean of "Length of stay" given Ward'
        assert answer.attributes == ("w1",)
        assert release.ask(answer.meaning).meaning == answer.meaning
    assert release.ask("share of w1=A").meaning == "share of Ward=A"
    assert release.ask("sum of los by w1").meaning == 'sum of "Length of stay" given Ward'


def test_every_format_has_titles(folder, tmp_path, capsys):
    for format in ("csv", "parquet", "jsonl", "xlsx", "sdmx-csv", "json-stat"):
        out = tmp_path / format
        assert run(["convert", str(folder), "--format", format, "-o", str(out)]) == 0
        capsys.readouterr()
        again = gn.TableRelease.load(out)
        assert again.plan.schema == gn.Schema.loads(TEXT)
        assert np.array_equal(
            again["w1", "age"].estimate, gn.TableRelease.load(folder)["w1", "age"].estimate
        )
        assert verifier.verified(out)
        text = (out / "method.txt").read_text(encoding="utf-8")
        assert "Ward, in the column w1: A; B" in text
        ddi = ElementTree.parse(out / "ddi.xml").getroot()
        named = {"d": "ddi:codebook:2_5"}
        variables = {v.get("name"): v for v in ddi.iterfind(".//d:var", named)}
        assert variables["los"].find("d:labl", named).text == "Length of stay"
        assert {name: v.get("measUnit") for name, v in variables.items()} == {
            "los": "days",
            "w1": None,
            "age": "years",
        }
    (path,) = (tmp_path / "csv").glob("**/*w1*age*.csv-metadata.json")
    columns = json.loads(path.read_text(encoding="utf-8"))["tableSchema"]["columns"]
    assert columns[0]["titles"] == ["w1", "Ward"]
    assert columns[1] | {"datatype": ""} == {
        "name": "age",
        "titles": ["age", "age (years)"],
        "schema:unitText": "years",
        "datatype": "",
    }
    head = path.with_name(path.name.removesuffix("-metadata.json")).read_text().split("\n")[0]
    assert head.startswith('"w1","age"')  # one of the titles, as the standard asks
    cubes = [
        json.loads(path.read_text(encoding="utf-8"))
        for path in (tmp_path / "json-stat").glob("**/*.json")
        if path.name != "release.json"
    ]
    labels = {own["label"] for cube in cubes for own in cube.get("dimension", {}).values()}
    assert {"Ward", "age (years)"} <= labels
    (path,) = (tmp_path / "sdmx-csv").glob("**/*w1*age*.csv")
    assert "W1: Ward,AGE: age (years)" in path.read_text(encoding="utf-8").replace('"', "")
    book = openpyxl.load_workbook(next((tmp_path / "xlsx").glob("**/*.xlsx")))
    cover = [str(row[0]) for row in book.worksheets[0].iter_rows(values_only=True)]
    assert "Ward × age (years)" in cover
    assert "Mean of Length of stay (days) by Ward" in cover
