"""Tests of what a schema tells readers of its tables: title, source, … contact, unit."""

import json
import pickle
import re
import zipfile
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import SchemaError
from gaussnoise.tables.release.text import release_text

SAID = {
    "title": "Pay by sex <2024>",
    "source": "Register of «Nord-Süd»",
    "period": "2024",
    "publisher": "Statistics Nowhere",
    "contact": "stat@nowhere.example & others",
}
SEX = gn.Attribute("sex", ["F", "M"])
SCHEMA = gn.Schema([SEX], about=gn.About(**SAID))
TABLE = pa.table({"sex": ["F", "M"] * 50})


def test_a_schema_file_and_a_schema_say_the_same():
    text = SCHEMA.to_toml()
    assert gn.Schema.loads(text) == SCHEMA == pickle.loads(pickle.dumps(SCHEMA))
    assert text.startswith('[about]\ntitle = "Pay by sex <2024>"\n')
    assert gn.Schema.loads(text).to_toml() == text
    plain = gn.Schema([SEX])
    assert "about" not in plain.to_toml()
    assert gn.Schema.loads("[about]\n" + plain.to_toml()) == plain


@pytest.mark.parametrize(
    ("lines", "line", "fault"),
    [
        ('[about]\nname = "x"\n', 2, "unknown key; expected title, source, period, publisher"),
        ("[about]\nperiod = 2024\n", 2, "expected text"),
        ("about = 3\n", 1, r"expected an \[about\] table"),
        ('[about]\ntitle = ""\n', 1, "expected title to be one line"),
        ('[about]\ncontact = "a\\nb"\n', 1, "expected contact to be one line"),
        ('[about]\nunits = "homes"\n', 2, r"unknown key; .*contact or unit; hint: .*'unit'"),
        ("[about]\nunit = 3\n", 2, 'expected text, like "households"'),
        (f'[about]\nunit = "{"x" * 61}"\n', 1, "expected unit to be a noun of at most 60"),
    ],
)
def test_faults_name_their_line(lines, line, fault):
    with pytest.raises(SchemaError, match=rf"^s\.toml:{line}: .*{fault}"):
        gn.Schema.loads(lines + gn.Schema([SEX]).to_toml(), "s.toml")


def test_only_an_about_of_lines_is_taken():
    with pytest.raises(SchemaError, match="expected about to be an About, got dict"):
        gn.Schema([SEX], about=SAID)
    for said in (7, "x" * 1001, "bell\x07", " "):
        with pytest.raises(SchemaError, match="about: expected publisher to be one line"):
            gn.About(publisher=said)


def test_a_plan_has_it_and_its_own_title_precedes():
    plan = gn.plan(SCHEMA, 1, gn.zCDP(1))
    assert plan.asked.about.stated == SAID
    head = [f"{name:<12} {said}" for name, said in SAID.items()]
    assert str(plan).splitlines()[1:6] == head
    own = gn.plan(SCHEMA, 1, gn.zCDP(1), title="Another")
    assert own.asked.about.stated == SAID | {"title": "Another"}
    assert gn.plan(gn.Schema([SEX]), 1, gn.zCDP(1)).asked.about.stated == {}


def test_it_is_in_all_that_is_written_and_is_read_again(tmp_path):
    plan = gn.plan(SCHEMA, 1, gn.zCDP(1))
    release = plan.release(TABLE, out=tmp_path / "out")
    record = json.loads((tmp_path / "out" / "release.json").read_text("utf-8"))
    assert record["about"] == SAID
    again = gn.TableRelease.load(tmp_path / "out")
    assert again.plan.asked.about == gn.About(**SAID)
    method = (tmp_path / "out" / "method.txt").read_text("utf-8").splitlines()
    assert method[0] == SAID["title"]
    for heading, names in (
        ("1 Contact", ["publisher", "contact"]),
        ("5 Reference period", ["period"]),
        ("18.1 Source data", ["source"]),
    ):
        at = method.index(heading)
        assert method[at + 1 : at + 1 + len(names)] == [f"    {SAID[name]}" for name in names]
    summary = (tmp_path / "out" / "summary.txt").read_text("utf-8")
    described = ElementTree.parse(tmp_path / "out" / "ddi.xml").getroot()
    below = "{ddi:codebook:2_5}"
    texts = {element.tag.removeprefix(below): element.text for element in described.iter()}
    for tag, name in (("titl", "title"), ("producer", "publisher"), ("contact", "contact"),
                      ("timePrd", "period"), ("dataSrc", "source")):  # fmt: skip
        assert texts[tag] == SAID[name]
    (described,) = (tmp_path / "out").rglob("*-metadata.json")
    description = json.loads(described.read_text("utf-8"))["dc:description"]
    release.save(tmp_path / "book", format="xlsx")
    with zipfile.ZipFile(next((tmp_path / "book").rglob("*.xlsx"))) as book:
        cover = "".join(
            ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml")).itertext()
        )  # the first sheet
    for document in (plan, release):
        document.report(tmp_path / f"{type(document).__name__}.html")
    pages = [path.read_text("utf-8") for path in tmp_path.glob("*.html")]
    for said in SAID.values():
        assert said in summary
        assert said in description
        assert said in cover
        escaped = said.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        assert all(escaped in page for page in pages)


def test_it_changes_no_noise_and_nothing_where_it_is_not_given():
    plain, said = gn.plan(gn.Schema([SEX]), 1, gn.zCDP(1)), gn.plan(SCHEMA, 1, gn.zCDP(1))
    assert plain.query.query == said.query.query
    assert plain.request | {"schema": SCHEMA.to_toml()} == said.request


def test_ticks_of_a_stream_have_it(tmp_path):
    stream = gn.plan(SCHEMA, 1, gn.zCDP(1), over=gn.streams.Ticks(2)).start(tmp_path / "s")
    stream.tick(TABLE, number=1)
    folder = stream.state.tick_folder(1)
    assert SAID["publisher"] in (folder / "method.txt").read_text("utf-8")
    assert gn.streams.Stream.open(tmp_path / "s").plan.asked.about == gn.About(**SAID)


def test_the_shell_reads_it(tmp_path, capsys):
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml(), "utf-8")
    assert run(["plan", "-s", str(tmp_path / "s.toml"), "-m", "1", "--rho", "0.1"]) == 0
    assert f"publisher    {SAID['publisher']}" in capsys.readouterr().out


TECHNICAL = r"charged|neighbours|budget|zCDP|differential privacy|\bsd\b|noisy integer"


def test_summaries_begin_with_whether_files_are_safe_and_end_with_words_of_specialists(tmp_path):
    schema = gn.Schema([SEX, gn.Attribute("pay", clip=[10, 5000])])
    rows = pa.table({"sex": ["F", "M"] * 50, "pay": [70.0, 9000.0] * 50})
    plan = gn.plan(schema, [("sex", "pay"), "sex"], gn.zCDP(1))
    both = [plan.release(rows, out=tmp_path / name) for name in ("one", "two")]
    gn.combine(both).save(tmp_path / "both")
    over = gn.plan(schema, ["sex"], gn.zCDP(1), over=gn.streams.Ticks(2)).start(tmp_path / "s")
    over.tick(rows.select(["sex"]), number=1)
    for folder in ("one", "both", "s/ticks/0001"):
        said = (tmp_path / folder / "summary.txt").read_text("utf-8")
        assert said.startswith("These files are safe to publish. ")
        plain, technical = said.split("\nFor specialists:\n")
        assert not re.search(TECHNICAL, plain), folder
        assert {"charged", "neighbours", "sd"} <= set(re.findall(TECHNICAL, technical))
        assert "no count was cut or rounded" in plain
        capped = "A value of pay below 10 counts as 10, and one above 5,000 as 5,000." in plain
        assert capped == (folder[0] != "s")


def test_summaries_begin_with_what_has_no_protection():
    made = gn.plan(SCHEMA, ["sex"], gn.zCDP(1)).simulate(TABLE, np.random.default_rng(0))
    text = release_text(made)
    assert text.startswith("NOT PRIVATE: a simulation, do not publish these files. ")
    assert "safe" not in text
    public = gn.plan(SCHEMA, ["sex"], gn.zCDP(1), neighbors="replace", public="sex")
    text = release_text(public.release(TABLE))
    assert "Every number is exact: none has noise." in text
    assert "unbiased" not in text
    assert text.count("EXACT, without noise") == 1
    assert text.index("EXACT, without noise") < text.index("For specialists:")
