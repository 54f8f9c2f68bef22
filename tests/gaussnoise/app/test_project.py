"""A project folder, and that the page, the shell and Python plan and release the same."""

import json
import runpy
import shlex
import warnings

import pandas as pd
import pytest

import gaussnoise as gn
from gaussnoise.app.asked import asked_of, names_in, tables_of, workload_toml
from gaussnoise.app.keep import Wish, cells, commands, notebook, script
from gaussnoise.app.project import LEDGER, SCHEMA, Project
from gaussnoise.cli.app import run
from gaussnoise.errors import GaussNoiseError, ParameterError, SchemaError
from gaussnoise.tables.release.suggestion import examples
from gaussnoise.tables.schema.workload import Wanted, load_workload

ATTRIBUTES = """\
[attributes.sex]
categories = ["F", "M"]

[attributes.age]
edges = [0, 18, 65, 120]

[attributes.pay]
clip = [0, 100]

[attributes.wage]
unit = 1
"""
PLANS = {
    "counts": '[[workload]]\nof = ["sex", "age"]\n[plan]\nrho = 0.1\n',
    "bases": '[[workload]]\nof = ["age:prefix", "sex"]\n[[workload]]\nof = ["sex", "pay"]\n'
    "[plan]\nepsilon = 1\ndelta = 1e-6\np = inf\n",
    "targets": '[[workload]]\nof = ["sex"]\nwithin = 9\nlevel = 0.9\n[[workload]]\nof = ["age"]\n',
    "persons": '[[workload]]\nof = ["sex", "pay"]\n[plan]\nrho = 1\nperson = "id"\n'
    'rows_per_person = 2\nper_person = {pay = "mean"}\n',
    "public": '[[workload]]\nof = ["sex", "age"]\n[plan]\nrho = 1\nneighbors = "replace"\n'
    'public = ["sex"]\n',
    "payrolls": '[[workload]]\nof = ["sex", "wage"]\n[plan]\nrho = 1\nper_record = {wage = 100}\n',
    "weights": '[[workload]]\nof = ["sex"]\n[plan]\nrho = 1\nweight = {column = "w", most = 3}\n',
}
ROWS = "id,sex,age,pay,w\n" + "".join(f"{k // 2},{'FM'[k % 2]},{k},{k},1\n" for k in range(100))


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(ROWS, encoding="utf-8")
    return Project(tmp_path.resolve())


def stated(project, plan):
    project.schema.write_text(ATTRIBUTES + PLANS[plan], encoding="utf-8")
    return asked_of(project.schema)


@pytest.mark.parametrize("plan", PLANS)
def test_the_plan_is_that_of_the_shell(project, capsys, plan):
    planned = stated(project, plan).plan()
    assert run(["plan", "-s", SCHEMA]) == 0
    assert capsys.readouterr().out == f"{planned}\n"


@pytest.mark.parametrize("budget", ["epsilon = 1", "delta = 1e-6", "rho = 1\ndelta = 1e-6"])
def test_half_a_budget_is_refused_by_the_page_and_by_the_shell(project, capsys, budget):
    """Also beside a target, which would do without a budget."""
    text = f"{ATTRIBUTES}[[workload]]\nof = ['sex']\nwithin = 9\n[plan]\n{budget}\n"
    project.schema.write_text(text, encoding="utf-8")
    with pytest.raises(ParameterError, match="budget: expected"):
        asked_of(project.schema).plan()
    assert run(["plan", "-s", SCHEMA]) == 1
    assert "budget: expected" in capsys.readouterr().err


@pytest.mark.parametrize("plan", PLANS)
def test_tables_are_written_as_they_were_read(project, plan):
    stated(project, plan)
    wanted = load_workload(project.schema)
    project.change(lambda file: file.stating("workload", workload_toml(wanted)))
    assert load_workload(project.schema) == wanted


@pytest.mark.parametrize("plan", ["counts", "bases", "persons"])
def test_commands_script_and_notebook_make_the_same_release_once(project, plan, capsys):
    planned = stated(project, plan).plan()
    project.state(table="rows.csv")
    wish = Wish("first", "parquet", "a purpose, with 'quotes'", "me")
    parts = cells(project.folder, wish, 2.5)
    (project.folder / "it.py").write_text(script(parts), encoding="utf-8")
    released = runpy.run_path(str(project.folder / "it.py"))["release"]
    assert released.plan.request_sha256 == planned.request_sha256
    book = json.loads(notebook(parts))
    own = ["".join(cell["source"]) for cell in book["cells"]]
    assert "\n\n".join(own) + "\n" == script(parts)
    lines = [line for line in commands(wish, 2.5).splitlines() if line.startswith("gaussnoise")]
    assert len(lines) == 4
    for line in lines:
        assert run(shlex.split(line)[1:]) == 0
        capsys.readouterr()
    ledger = gn.Ledger.open(LEDGER)
    (entry,) = ledger.entries()  # the commands read the same release again
    assert (entry.id, entry.purpose, entry.requested_by) == ("first", wish.purpose, "me")
    assert ledger.rho == 2.5


def test_no_file_outside_the_folder_is_seen(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.csv").write_text("a\n1\n", encoding="utf-8")
    (project.folder / "link.csv").symlink_to(outside / "secret.csv")
    (project.folder / "more").symlink_to(outside)
    (project.folder / "own").mkdir()
    (project.folder / "own" / "b.parquet").touch()
    (project.folder / ".hidden.csv").touch()
    assert project.tables() == ["rows.csv", "own/b.parquet"]
    for name in ("../x.csv", "/etc/passwd", "link.csv", "more/secret.csv"):
        with pytest.raises(ParameterError, match="in the folder"):
            project.inside(name)


def test_columns_come_from_other_folders_and_from_published_ones(project, tmp_path_factory):
    """From a schema file, and from the records of a release and of a stream."""
    planned = stated(project, "counts").plan()
    project.schema.rename(project.folder / "all.toml")
    wanted = gn.Schema.load(project.folder / "all.toml")
    old = project.folder / "2025"
    (old / "releases").mkdir(parents=True)
    rows = pd.read_csv(project.folder / "rows.csv").assign(wage=1)
    planned.release(rows, out=old / "releases" / "first")
    over = gn.plan(planned.schema, ["sex"], gn.zCDP(1), over=gn.streams.Ticks(2))
    stream = over.start(old / "weeks")
    stream.tick(rows, number=1)
    (old / "bad.toml").write_text("[attributes.x]\n", encoding="utf-8")
    (old / ".hidden.toml").touch()
    outside = tmp_path_factory.mktemp("outside") / "x.toml"
    outside.write_text(ATTRIBUTES, encoding="utf-8")
    (old / "link.toml").symlink_to(outside)
    linked = project.folder / "linked"
    linked.mkdir()
    (linked / "stream.json").symlink_to(project.folder / "2025" / "weeks" / "stream.json")
    secret = outside.with_name("release.json")
    secret.write_bytes((old / "releases" / "first" / "release.json").read_bytes())
    (linked / "release.json").symlink_to(secret)
    sources = ["all.toml", "2025/releases/first", "2025/weeks"]
    assert {*project.other_schemas()} == {*sources, "2025/bad.toml", "linked"}
    assert project.tables() == ["rows.csv"]  # published tables are no rows
    for source in sources:
        project.take_columns(source)
        schema = gn.Schema.load(project.schema)
        assert (schema.attributes, schema.is_draft) == (wanted.attributes, False)
        assert not load_workload(project.schema)
        assert project.schema.stat().st_mode & 0o077 == 0
        project.schema.unlink()
    for source in ("2025/bad.toml", "rows.csv", "2025"):
        with pytest.raises(GaussNoiseError, match=source):
            project.take_columns(source)
    with pytest.raises(ParameterError, match="in the folder"):
        project.take_columns("2025/link.toml")
    with pytest.raises(ParameterError, match="in the folder"):  # one record leads out of it
        project.take_columns("linked")
    assert not project.schema.exists()


def test_many_published_files_hide_no_file_of_rows(project):
    for k in range(600):
        (project.folder / "releases" / f"r{k}").mkdir(parents=True)
        (project.folder / "releases" / f"r{k}" / "t.csv").touch()
    (project.folder / "survey" / "releases").mkdir(parents=True)
    (project.folder / "survey" / "releases" / "rows.csv").touch()  # below another folder, they are
    assert project.tables() == ["rows.csv", "survey/releases/rows.csv"]


def test_a_change_that_is_not_valid_changes_nothing(project):
    stated(project, "counts")
    before = project.schema.read_bytes()
    with pytest.raises(SchemaError, match=r"schema\.toml:\d+"):
        project.change(lambda file: file.stating("workload", ['[[workload]]\nof = ["x"]\n']))
    with pytest.raises(SchemaError, match="rho"):
        project.state(rho="much")
    assert project.schema.read_bytes() == before
    assert sorted(path.name for path in project.folder.iterdir()) == ["rows.csv", "schema.toml"]


def test_options_are_stated_one_by_one_and_for_the_owner_alone(project):
    stated(project, "weights")
    project.state(table="rows.csv", rho=0.25)
    assert asked_of(project.schema).privacy == gn.zCDP(0.25)
    assert asked_of(project.schema).options["weight"] == gn.Weight("w", 3)
    project.state(weight=None)
    assert "weight" not in asked_of(project.schema).options
    assert project.schema.stat().st_mode & 0o077 == 0  # a draft is confidential


def test_what_is_missing_says_where_to_mend_it(project):
    project.schema.write_text(ATTRIBUTES, encoding="utf-8")
    with pytest.raises(ParameterError, match="page Questions"):
        asked_of(project.schema)
    project.change(lambda file: file.stating("workload", ['[[workload]]\nof = ["sex"]\n']))
    with pytest.raises(ParameterError, match="page Budget"):
        asked_of(project.schema)
    project.state(rho=1.0)
    with pytest.raises(ParameterError, match="page Table"):
        cells(project.folder, Wish("x"), 1.0)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("share of sex=F given age", {"sex", "age"}),
        ("mean of pay by sex", {"pay", "sex"}),
        ("cdf of age given sex", {"age", "sex"}),
        ("difference of share of sex=F given age<18 and age>=65", {"sex", "age"}),
        ("regression of pay on sex", {"pay", "sex"}),
        ("sum of pay", {"pay"}),
    ],
)
def test_the_table_of_a_question_answers_it(question, names):
    schema = gn.Schema.loads(ATTRIBUTES)
    found = names_in(question, schema)
    assert set(found) == names
    rows = {"sex": ["F", "M"] * 50, "age": list(range(100)), "pay": list(range(100))}
    release = gn.plan(schema, [found], gn.zCDP(100)).release(pd.DataFrame(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert str(release.ask(question))


@pytest.mark.parametrize("tables", [None, [("sex",)], [("age", "sex")], [("pay",)]])
def test_examples_are_of_kinds_that_the_tables_answer(tables):
    schema = gn.Schema.loads(ATTRIBUTES.replace("[attributes.wage]\nunit = 1\n", ""))
    rows = {"sex": ["F", "M"] * 50, "age": list(range(100)), "pay": list(range(100))}
    offered = examples(schema, tables or tables_of(schema))
    assert len({one.split()[0] for one in offered}) == (3 if tables is None else len(offered))
    for one in offered:
        names_in(one, schema)
        asked = tables or tables_of(schema)
        release = gn.plan(schema, asked, gn.zCDP(1e5)).release(pd.DataFrame(rows))
        assert str(release.ask(one))


def test_a_question_that_is_none_is_refused_with_others_that_can_be_asked():
    with pytest.raises(GaussNoiseError, match="this folder answers 'count by sex'"):
        names_in("how is the weather", gn.Schema.loads(ATTRIBUTES))


def test_choices_for_a_release_are_those_of_the_shell(project):
    stated(project, "counts")
    project.state(table="rows.csv")
    project.state_release(id="census", format="parquet", purpose="a 'purpose'")
    project.state_release(format=None)
    project.change(lambda file: file.stating("workload", workload_toml([Wanted(("sex",))])))
    gn.Ledger.create(LEDGER, gn.zCDP(1))
    assert run(["release", "-s", SCHEMA, "-o", "out", "--ledger", LEDGER]) == 0
    (entry,) = gn.Ledger.open(LEDGER).entries()
    assert (entry.id, entry.purpose) == ("census", "a 'purpose'")
    assert not [*project.folder.rglob("*.parquet")]
    with pytest.raises(SchemaError, match="did you mean 'purpose'"):
        project.state_release(porpose="x")


def test_lines_about_the_tables_are_kept_one_by_one(project):
    stated(project, "counts")
    before = gn.Schema.load(project.schema)
    project.state_about(title=" Town census ", period="2026")
    project.state_about(period="", publisher="Town")
    after = gn.Schema.load(project.schema)
    assert after.about == gn.About(title="Town census", publisher="Town")
    assert (after.attributes, asked_of(project.schema).privacy) == (before.attributes, gn.zCDP(0.1))
    with pytest.raises(SchemaError, match="expected title to be one line"):
        project.state_about(title="a\nb")
    assert gn.Schema.load(project.schema) == after
