import json
import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import typer
from pyarrow import csv, parquet
from scipy import sparse
from scipy.io import mmwrite

import gaussnoise as gn
from gaussnoise.cli.app import app, run
from gaussnoise.errors import DataError

CANARY = "CANARY-7391"

SCHEMA = """\
[attributes.sex]
categories = ["F", "M"]

[attributes.age]
edges = [0, 18, 65, 120]

[attributes.smoker]
categories = [true, false]
"""


pytestmark = pytest.mark.usefixtures("quick_pictures")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory: a schema and the same good table twice."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")
    table = pa.table(
        {"sex": ["F", "M", "F"], "age": [7.5, 65.0, 120.0], "smoker": [True, False, False]}
    )
    csv.write_csv(table, "t.csv")
    parquet.write_table(table, "t.parquet")
    return tmp_path


@pytest.fixture
def call(capsys):
    """Exit status, standard output and standard error of one command line."""

    def call(*arguments):
        status = run([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return call


def release_arguments(**changes):
    options = {
        "table": "t.csv",
        "schema": "schema.toml",
        "m": "2",
        "rho": "0.5",
        "out": "out",
    } | changes
    words = ["release", options.pop("table"), "-s", options.pop("schema"), "-m", options.pop("m")]
    return words + [
        word for name, value in options.items() if value for word in (f"--{name}", value)
    ]


def everything(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_plan_needs_no_data(folder, call):
    os.remove("t.csv")
    status, out, err = call("plan", "--schema", "schema.toml", "--marginals", 2, "--rho", 0.5)
    assert (status, err) == (0, "")
    assert out.strip() == str(gn.plan(gn.Schema.load("schema.toml"), 2, gn.zCDP(0.5)))


@pytest.mark.usefixtures("folder")
def test_plan_without_a_budget_says_what_budgets_mean(folder, call):
    schema = gn.Schema.load("schema.toml")
    status, out, err = call("plan", "-s", "schema.toml", "-m", 2, "--plot", "budgets.png")
    assert (status, err) == (0, "")
    assert out == f"{gn.budgets(schema, 2)}\nwrote budgets.png\n"
    assert (folder / "budgets.png").read_bytes().startswith(b"\x89PNG")
    out = call("plan", "-s", "schema.toml", "-m", 2, "--delta", 1e-9, "--p", "inf")[1]
    assert out.strip() == str(gn.budgets(schema, 2, delta=1e-9, p=np.inf))


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--plot", "schema.toml"], "exists already"),
        (["--plot", "missing/b.png"], "cannot write"),
        (["--plot", "b.words"], "cannot write"),
        (["--plot", "b.png", "--rho", "1"], "leave out the budget"),
        (["--delta", "2"], "delta < 1"),
    ],
)
def test_pictures_of_budgets_that_cannot_be_are_refused(folder, call, options, part):
    before = everything(folder)
    status, _, err = call("plan", "-s", "schema.toml", "-m", 1, *options)
    assert status == 1
    assert part in err
    assert err.count("\n") == 1
    assert everything(folder) == before


ASKED = """
[[workload]]
of = ["sex", "age"]
within = 50

[[workload]]
of = ["age:prefix"]

[[workload]]
of = ["smoker"]
within = 80
level = 0.99
"""


@pytest.fixture
def asking(folder):
    """A schema file with a workload of its own."""
    (folder / "asks.toml").write_text(SCHEMA + ASKED, encoding="utf-8")
    return gn.Schema.load("asks.toml")


def test_a_schema_file_says_what_is_asked_and_how_accurately(asking, call):
    assert asking == gn.Schema.load("schema.toml")
    workload = [("sex", "age"), {"age": "prefix"}, "smoker"]
    goals = [50, None, gn.Target(80, 0.99)]
    status, out, err = call("plan", "-s", "asks.toml")
    assert (status, err) == (0, "")
    assert out.strip() == str(gn.plan(asking, workload, targets=goals))
    out = call("plan", "-s", "asks.toml", "--rho", 0.01)[1]
    assert out.strip() == str(gn.plan(asking, workload, gn.zCDP(0.01), targets=goals))
    out = call("plan", "-s", "asks.toml", "--target", "smoker=7", "--target", "age=9@0.9")[1]
    goals = [50, gn.Target(9, 0.9), 7]
    assert out.strip() == str(gn.plan(asking, workload, targets=goals))
    out = call("plan", "-s", "asks.toml", "--within", 9)[1]
    assert out.strip() == str(gn.plan(asking, workload, targets=9))
    out = call("plan", "-s", "asks.toml", "-m", "age", "--rho", 1)[1]
    assert out.strip() == str(gn.plan(asking, ["age"], gn.zCDP(1)))
    assert call("release", "t.csv", "-s", "asks.toml", "-o", "asked")[0] == 0
    assert len(gn.TableRelease.load("asked")) == 3


@pytest.mark.usefixtures("folder")
def test_targets_of_the_shell_are_those_of_python(call):
    schema = gn.Schema.load("schema.toml")
    arguments = ["-m", "sex,age", "-m", "smoker", "--target", "age, sex=50@0.9"]
    out = call("plan", "-s", "schema.toml", *arguments)[1]
    goal = {("sex", "age"): gn.Target(50, 0.9)}
    assert out.strip() == str(gn.plan(schema, [("sex", "age"), "smoker"], targets=goal))


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--target", "sex=x"], "NAMES=ROWS"),
        (["--target", "sex"], "NAMES=ROWS"),
        (["--target", "sex=5@"], "NAMES=ROWS"),
        (["--target", "sex=0"], "positive, finite"),
        (["--target", "sex=5@2"], "0 < level < 1"),
        (["--target", "sex=5", "--target", "sex=6"], "two for one"),
        (["--target", "age=5"], "marginals of the workload"),
        (["--target", "sex=5", "--within", "3"], "not both"),
        (["--within", "0"], "positive, finite"),
    ],
)
def test_targets_that_make_no_sense_are_refused(call, options, part):
    status, out, err = call("plan", "-s", "schema.toml", "-m", "sex", *options)
    assert (status, out) == (1, "")
    assert part in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ('[[workload]]\nof = ["sex", "wrong"]', 10, "no attribute 'wrong'"),
        ('[[workload]]\nof = ["sex"]\n\n[[workload]]\nof = ["age:odd"]', 13, "odd"),
        ('[[workload]]\nof = ["sex"]\nwithn = 5', 12, "of, within, level or simultaneous"),
        ('[[workload]]\nof = ["sex"]\nwithin = "5"', 12, "a number of rows"),
        ("[[workload]]\nwithin = 5", 10, "a list of attribute names"),
        ('[[workload]]\nof = ["sex"]\nlevel = 0.9', 10, "within = ROWS"),
        ("[workload]\nof = 1", 10, "tables"),
    ],
)
def test_workloads_in_schemas_are_refused_at_their_line(folder, call, text, line, part):
    (folder / "asks.toml").write_text(SCHEMA + "\n" + text + "\n", encoding="utf-8")
    status, out, err = call("plan", "-s", "asks.toml", "--rho", 1)
    assert (status, out) == (1, "")
    assert f"asks.toml:{line}: " in err
    assert part in err


@pytest.mark.usefixtures("folder")
def test_something_has_to_be_asked(call):
    status, _, err = call("plan", "-s", "schema.toml", "--rho", 1)
    assert status == 1
    assert "[[workload]]" in err


@pytest.mark.usefixtures("folder")
def test_plan_takes_epsilon_and_delta(call):
    status, out, _ = call("plan", "-s", "schema.toml", "-m", 2, "--epsilon", 1, "--delta", 1e-6)
    assert status == 0
    assert "(1, 1e-06)-differential privacy" in out


@pytest.mark.usefixtures("folder")
def test_marginals_by_name(call):
    status, out, _ = call("plan", "-s", "schema.toml", "-m", "age, sex", "-m", "smoker", "--rho", 1)
    assert status == 0
    assert (
        str(gn.plan(gn.Schema.load("schema.toml"), [("age", "sex"), ("smoker",)], gn.zCDP(1)))
        == out.strip()
    )


def test_names_with_commas_stand_in_quotes(folder, call):
    names = ["pay, net", 'say "hi", you', "sex"]
    schema = gn.Schema([gn.Attribute(name, ["a", "b"]) for name in names])
    (folder / "w.toml").write_text(schema.to_toml(), encoding="utf-8")
    for option, asked in (
        ("pay, net", [("pay, net",)]),
        ('"pay, net", sex', [("pay, net", "sex")]),
        ('"say ""hi"", you",sex', [('say "hi", you', "sex")]),
        ('"pay, net":prefix, sex', [{"pay, net": "prefix", "sex": None}]),
    ):
        status, out, _ = call("plan", "-s", "w.toml", "-m", option, "--rho", 1)
        assert status == 0
        assert out.strip() == str(gn.plan(schema, asked, gn.zCDP(1)))
    status, out, _ = call(
        "plan", "-s", "w.toml", "-m", '"pay, net",sex', "--target", '"pay, net",sex=50'
    )
    assert status == 0
    assert "50" in out
    (folder / "j.csv").write_text('v,g\n1,"x,y"\n', encoding="utf-8")
    status, out, _ = call("mean", "j.csv", "-c", "v", "--by", 'g=f,"x,y"', "--rho", 1, "--json")
    assert [row["group"] for row in json.loads(out)["means"]] == [{"g": "f"}, {"g": "x,y"}]


# Escapes that move the cursor or set a title, in 7 and in 8 bits, and marks that reverse a line.
COMMANDS = "\x1b]0;title\x07 \x9b2J \x7f \u202egnp.exe\u2066"
OBEYED = set("\x1b\x07\x9b\x7f\u202e\u2066\r")


def test_no_name_or_label_commands_a_terminal(folder, call):
    """Text for people is escaped; JSON and the folder's schema have the label itself."""
    schema = gn.Schema([gn.Attribute(f"name {COMMANDS}", ["y", COMMANDS])])
    (folder / "odd.toml").write_text(schema.to_toml(), encoding="utf-8")
    rows = pd.DataFrame({f"name {COMMANDS}": ["y", COMMANDS] * 600})
    rows.to_parquet("odd.parquet")
    stream = gn.plan(schema, 1, gn.zCDP(1), over=gn.streams.Ticks(2)).start("weekly")
    stream.tick(rows, number=1)
    planned = ["-s", "odd.toml", "-m", 1, "--rho", 1]
    said = {
        "plan": call("plan", *planned),
        "bound": call("bound", *planned),
        "release": call("release", "odd.parquet", *planned, "--out", "out"),
        "ask": call("ask", "out", f'count of "name {COMMANDS}"'),
        "stream": call("stream", "show", "weekly"),
        "mistaken": call("ask", "out", f"count of {COMMANDS}"),
        "schema": call("schema", "odd.parquet"),
        "categories": call(
            *("categories", "odd.parquet", f"name {COMMANDS}", "--epsilon", 1, "--delta", "1e-6")
        ),
    }
    assert [status for status, _, _ in said.values()] == [0, 0, 0, 0, 0, 1, 0, 0]
    summaries = [
        (folder / made / "summary.txt").read_text(encoding="utf-8")
        for made in ("out", "weekly/ticks/0001")
    ]
    for text in [*summaries, *(out + err for _, out, err in said.values())]:
        assert not OBEYED & set(text)
    for shown in (said["plan"][1], said["ask"][1], *summaries):
        assert "\\u001b]0;title\\u0007 \\u009b2J \\u007f \\u202egnp.exe\\u2066" in shown
    for drafted in ("schema", "categories"):
        (attribute,) = gn.Schema.loads(said[drafted][1]).attributes
        assert attribute.name == f"name {COMMANDS}"
        assert COMMANDS in attribute.labels
    exact = json.loads(call("ask", "out", f'count of "name {COMMANDS}"', "--json")[1])
    assert [row[f"name {COMMANDS}"] for row in exact["rows"]] == ["y", COMMANDS]


@pytest.mark.usefixtures("folder")
def test_output_is_shown_as_it_is(call):
    names = ["[red]x[/red]", ":smile:", "a [b]"]
    schema = gn.Schema([gn.Attribute(name, ["y"]) for name in names])
    with open("odd.toml", "w", encoding="utf-8") as file:
        file.write(schema.to_toml())
    _, out, _ = call("plan", "-s", "odd.toml", "-m", 1, "--rho", 1)
    assert all(name in out for name in names)


@pytest.mark.parametrize(("table", "format"), [("t.csv", "csv"), ("t.parquet", "parquet")])
def test_release_writes_a_new_directory(folder, call, table, format):
    status, out, err = call(*release_arguments(table=table, format=format))
    assert (status, err) == (0, "")
    assert (folder / "out" / "summary.txt").read_text(encoding="utf-8").strip() in out
    record = json.loads((folder / "out" / "release.json").read_text(encoding="utf-8"))
    files = [entry["file"] for entry in record["marginals"]]
    assert [name.endswith(f".{format}") for name in files] == [True] * 3
    assert f"out/{files[0]}" in out
    read = csv.read_csv if format == "csv" else parquet.read_table
    assert read(folder / "out" / files[0])["sex"].to_pylist() == ["F"] * 3 + ["M"] * 3


@pytest.mark.usefixtures("folder")
def test_csv_and_parquet_agree_up_to_noise(call):
    for table in ("t.csv", "t.parquet"):
        assert (
            call(*release_arguments(table=table, m="sex,smoker", rho="1e3", out=f"out-{table}"))[0]
            == 0
        )
        released = csv.read_csv(f"out-{table}/tables/1-sex-by-smoker.csv").to_pydict()
        assert [round(x) for x in released["estimate"]] == [1, 1, 0, 1]


@pytest.mark.usefixtures("folder")
def test_schema_goes_to_standard_output(call):
    status, out, err = call("schema", "t.csv")
    assert status == 0
    assert gn.Schema.loads(out) == gn.Schema.draft("t.csv")
    assert "# DRAFT, read off the data" in out
    assert err.startswith("warning:")


def test_schema_goes_to_a_file(folder, call):
    status, _, err = call("schema", "t.parquet", "--out", "draft.toml")
    assert status == 0
    assert gn.Schema.load("draft.toml") == gn.Schema.draft("t.parquet")
    assert (
        (folder / "draft.toml").read_text(encoding="utf-8").startswith("# DRAFT, read off the data")
    )
    assert err.startswith("warning:")


def test_schema_overwrites_nothing(folder, call):
    before = everything(folder)
    status, out, err = call("schema", "t.csv", "--out", "schema.toml")
    assert (status, out) == (1, "")
    assert err.startswith("error: ")
    assert everything(folder) == before


def test_a_drafted_schema_releases_its_table_once_a_person_has_confirmed_it(folder, call):
    assert call("schema", "t.csv", "--out", "draft.toml")[0] == 0
    assert "DRAFT        the schema was read" in call("plan", *PLANNED_BY_DRAFT)[1]
    assert "DRAFT        the schema was read" in call("plan", *PLANNED_BY_DRAFT[:-2])[1]
    before = everything(folder)
    status, out, err = call("release", "no such file.csv", *PLANNED_BY_DRAFT, "--out", "out")
    assert (status, out) == (1, "")
    assert "then delete the line draft = true" in err
    status, _, err = call("stream", "start", "-o", "new", *PLANNED_BY_DRAFT, "--ticks", "2")
    assert status == 1
    assert "then delete the line draft = true" in err
    assert everything(folder) == before
    text = (folder / "draft.toml").read_text(encoding="utf-8")
    assert text.count("\ndraft = true\n") == 1
    confirmed = text.replace("\ndraft = true\n", "\n")
    (folder / "draft.toml").write_text(confirmed, encoding="utf-8")
    assert call(*release_arguments(schema="draft.toml"))[0] == 0


PLANNED_BY_DRAFT = ["--schema", "draft.toml", "-m", "1", "--rho", "1"]


def in_subprocess(*arguments, cwd):
    command = [
        sys.executable,
        "-W",
        "error",
        "-c",
        "from gaussnoise.cli import main; main()",
        *arguments,
    ]
    return subprocess.run(command, cwd=cwd, capture_output=True, encoding="utf-8", check=False)


@pytest.mark.integration
def test_demo_in_an_empty_directory(tmp_path):
    first = in_subprocess("demo", cwd=tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    assert os.listdir(tmp_path) == ["gaussnoise-demo"]
    assert sorted(os.listdir(tmp_path / "gaussnoise-demo")) == [
        "release",
        "schema.toml",
        "survey.csv",
    ]
    assert "certified gap" in first.stdout
    for line in first.stdout.splitlines():
        if line.startswith("wrote "):
            assert (tmp_path / line.split()[1].rstrip(",")).exists()


def test_demo_leaves_earlier_demos_alone(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gaussnoise-demo").mkdir()
    status, out, _ = call("demo")
    assert status == 0
    assert sorted(os.listdir(tmp_path)) == ["gaussnoise-demo", "gaussnoise-demo-2"]
    assert os.listdir(tmp_path / "gaussnoise-demo") == []
    assert "gaussnoise-demo-2/schema.toml" in out


def test_what_demo_suggests_works(tmp_path, monkeypatch, call):
    monkeypatch.chdir(tmp_path)
    _, out, _ = call("demo")
    told = out.split("Try next:\n")[1].replace("\\\n", "")
    suggestions = [line.split()[1:] for line in told.splitlines()]
    assert [words[0] for words in suggestions] == ["plan", "release", "schema"]
    for words in suggestions[:2]:
        assert call(*words)[0] == 0


@pytest.mark.integration
def test_errors_reach_the_shell(folder):
    done = in_subprocess(*release_arguments(table="missing.csv"), cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: DataError: table: no such file: missing.csv\n"


def rows(*lines):
    return "sex,age,smoker\n" + "".join(line + "\n" for line in lines)


BAD_TABLES = {
    "NaN": (rows("F,nan,true", f"M,1,{CANARY}"), "column 'age'"),
    "infinite": (rows("F,inf,true"), "column 'age'"),
    "number outside the edges": (rows("F,739173917391,true"), "column 'age'"),
    "unknown category": (rows("F,1,true", f"{CANARY},1,true"), "column 'sex'"),
    "empty field": (rows("F,1,true", ",1,true"), "column 'sex'"),
    "not a boolean": (rows("F,1,true", f"M,1,{CANARY}"), "column 'smoker'"),
    "missing column": (f"sex,smoker\nF,true\n{CANARY},true\n", "'age'"),
    "ragged": (rows("F,1,true", f"M,1,true,{CANARY}"), "table"),
    "empty": ("", "table"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_one_line_without_data(folder, call, name):
    content, part = BAD_TABLES[name]
    (folder / "bad.csv").write_text(content, encoding="utf-8")
    before = everything(folder)
    status, out, err = call(*release_arguments(table="bad.csv", **{"on-outside": "refuse"}))
    assert (status, out) == (1, "")
    assert err.startswith("error: DataError: ")
    assert part in err
    assert err.count("\n") == 1
    assert "7391" not in err
    assert everything(folder) == before
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"table": "missing.csv"}, "no such file"),
        ({"table": "schema.toml"}, ".csv, .tsv or .parquet"),
        ({"schema": "missing.toml"}, "missing.toml"),
        ({"schema": "t.parquet"}, "t.parquet"),
        ({"schema": "t.csv"}, "t.csv"),
        ({"rho": "0"}, "rho > 0"),
        ({"rho": "-1"}, "rho > 0"),
        ({"rho": "nan"}, "rho > 0"),
        ({"rho": None}, "--rho"),
        ({"epsilon": "1", "delta": "1e-6"}, "--rho"),
        ({"rho": None, "epsilon": "1"}, "--delta"),
        ({"rho": None, "epsilon": "1", "delta": "2"}, "delta"),
        ({"rho": None, "epsilon": "-1", "delta": "1e-6"}, "epsilon"),
        ({"out": "t.csv"}, "exists"),
        ({"out": "missing/out"}, "cannot write"),
        ({"m": "sex,zz"}, "zz"),
        ({"m": "4"}, "0 <= k <= 3"),
        ({"m": "sex,sex"}, "distinct"),
        ({"neighbors": "swap"}, "add-remove"),
        ({"neighbors": "x"}, "neighbors"),
        ({"format": "xls"}, "parquet"),
        ({"ledger": "budget"}, "--ledger and --id"),
        ({"id": "first"}, "--ledger and --id"),
    ],
)
def test_bad_requests_are_one_line_and_write_nothing(folder, call, changes, part):
    before = everything(folder)
    status, out, err = call(*release_arguments(**changes))
    assert (status, out) == (1, "")
    assert err.startswith("error: ")
    assert part in err
    assert err.count("\n") == 1
    assert everything(folder) == before
    assert not (folder / "out").exists()


def test_an_existing_directory_is_refused_unread(folder, call, monkeypatch):
    (folder / "out").mkdir()
    monkeypatch.setattr("gaussnoise.tables.release.publish.count_marginals", None)
    status, _, err = call(*release_arguments())
    assert status == 1
    assert "out exists already" in err
    assert os.listdir(folder / "out") == []


@pytest.mark.usefixtures("folder")
def test_bad_schemas_are_shown_with_their_line(folder, call):
    (folder / "bad.toml").write_text(
        "# survey\n[attributes.sex]\ncategories = ['F']\ntypo = 1\n", encoding="utf-8"
    )
    status, out, err = call("plan", "-s", "bad.toml", "-m", 1, "--rho", 1)
    assert (status, out) == (1, "")
    assert "bad.toml:4: " in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "arguments", [["plan"], ["plan", "-s", "schema.toml", "-m", "1", "--rho", "much"], ["typo"]]
)
def test_usage_errors_exit_with_two(call, arguments):
    status, out, err = call(*arguments)
    assert (status, out) == (2, "")
    assert "Usage: gaussnoise" in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command", [["plan", "-s", "schema.toml", "-m", "1", "--rho", "1"], ["optimize", "w.csv"]]
)
@pytest.mark.parametrize("p", ["1", "nan"])
def test_norms_below_two_are_refused(call, command, p):
    status, out, err = call(*command, "--p", p)
    assert (status, out) == (1, "")
    assert f"{command[0]}: expected" in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_unexpected_errors_show_no_data(call, monkeypatch):
    def fail(*_):
        raise RuntimeError(CANARY)

    monkeypatch.setattr("gaussnoise.tables.release.publish.count_marginals", fail)
    status, out, err = call(*release_arguments())
    assert (status, out) == (70, "")
    assert err.startswith("internal error: RuntimeError")
    assert err.count("\n") == 1
    assert CANARY not in err
    assert not os.path.exists("out")


@pytest.mark.usefixtures("folder")
def test_debug_raises(monkeypatch):
    def fail(*_):
        raise RuntimeError(CANARY)

    with pytest.raises(DataError, match="no such file"):
        run(["--debug", *release_arguments(table="missing.csv")])
    monkeypatch.setattr("gaussnoise.tables.release.publish.count_marginals", fail)
    with pytest.raises(RuntimeError, match=CANARY):
        run([*release_arguments(), "--debug"])


def test_help_lists_the_commands(call):
    status, out, _ = call("--help")
    assert status == 0
    assert all(
        name in out for name in ("schema", "plan", "bound", "release", "optimize", "ledger", "demo")
    )
    assert "--debug" in out
    assert "add-remove" in (choices := call("plan", "--help")[1])
    assert "replace (one row" in " ".join(choices.replace("│", " ").split())


def commands(command, path=()):
    yield path, command
    for name, own in getattr(command, "commands", {}).items():
        yield from commands(own, (*path, name))


@pytest.mark.parametrize(
    ("path", "command"),
    [pytest.param(*own, id=" ".join(own[0])) for own in commands(typer.main.get_command(app))],
)
def test_help_has_every_word_of_its_source(path, command, call):
    """A word in square brackets is markup for rich, unless a backslash is before it."""
    status, out, _ = call(*path, "--help")
    shown = "".join(out.replace("│", " ").split())
    said = [command.help, *(getattr(parameter, "help", None) for parameter in command.params)]
    words = " ".join(filter(None, said)).replace("\\[", "[").replace("`", "").split()
    assert status == 0
    assert [word for word in words if word not in shown] == []


@pytest.mark.usefixtures("folder")
def test_a_ledger_that_is_missing_is_created_in_the_shell(call):
    status, _, err = call("ledger", "show", "budget")
    assert (status, "hint: gaussnoise ledger create PATH --rho RHO" in err) == (1, True)


@pytest.mark.usefixtures("folder")
def test_another_format_of_a_release_costs_nothing_and_the_hint_says_how(call):
    call("ledger", "create", "budget", "--rho", "1")
    first = release_arguments(ledger="budget", id="survey", rho="0.25")
    status, out, _ = call(*first)
    assert (status, "rho = 0.25 is charged; the ledger has 0.75 left" in out) == (0, True)
    other = release_arguments(ledger="budget", id="survey", rho="0.25", out="other")
    status, _, err = call(*other, "--format", "sdmx-csv")
    assert status == 1
    assert "gaussnoise convert PLACE -o PATH" in err
    assert "TableRelease.load(PLACE).save(PATH, format=...)" in err
    assert "Another id would be charged again" in err
    found = gn.TableRelease.load("out")
    found.save("other", format="sdmx-csv")
    assert gn.TableRelease.load("other")["sex", "age"].estimate.tolist() == (
        found["sex", "age"].estimate.tolist()
    )
    assert gn.Ledger.open("budget").spent == pytest.approx(0.25)


def test_check_says_what_the_plan_says_and_its_exit_code_says_whether_rows_fit(folder, call):
    assert call("check", "t.csv", "-s", "schema.toml")[0] == 0
    (folder / "bad.csv").write_text(rows("F,1,true", f"{CANARY},130,true"), encoding="utf-8")
    for options, workload in ((["-m", "sex"], ["sex"]), ([], 1)):
        found = gn.plan(gn.Schema.load("schema.toml"), workload, gn.zCDP(1)).check("bad.csv")
        shown = str(found).replace('on_outside="refuse"', "--on-outside refuse")
        assert call("check", "bad.csv", "-s", "schema.toml", *options) == (1, f"{shown}\n", "")
        status, out, _ = call("check", "bad.csv", "-s", "schema.toml", *options, "--json")
        assert (status, json.loads(out)) == (1, json.loads(json.dumps(found.as_dict())))
    assert call("check", "bad.csv", "-s", "schema.toml", "-m", "smoker")[0] == 0
    lines = ("smoker,who,w", "true,a,1", "true,a,1", "true,b,3")
    (folder / "persons.csv").write_text("\n".join(lines), encoding="utf-8")
    persons = ["-m", "smoker", "--person", "who", "--rows-per-person", "1", "--weight", "w:2"]
    status, out, _ = call("check", "persons.csv", "-s", "schema.toml", *persons)
    assert (status, "3 rows, 2 counted\nall rows fit the schema\n1 not counted" in out) == (0, True)
    (folder / "ragged.csv").write_text(BAD_TABLES["ragged"][0], encoding="utf-8")
    status, out, err = call("check", "ragged.csv", "-s", "schema.toml")
    assert (status, out, CANARY in err) == (1, "", False)


@pytest.mark.usefixtures("folder")
def test_bound_explains_what_plan_prints(call):
    budget = ("--schema", "schema.toml", "-m", "1", "--rho", "0.1")
    status, out, _ = call("bound", *budget)
    planned = gn.plan(gn.Schema.load("schema.toml"), 1, gn.zCDP(0.1))
    assert status == 0
    assert planned.bound.explain() in out
    sentence = planned.bound.sentence(planned.error)
    assert sentence in out
    assert sentence in call("plan", *budget)[1]


def test_optimize_reads_matrices_and_writes_noise(folder, call):
    W = np.tril(np.ones((6, 6)))
    np.savetxt(folder / "w.csv", W, delimiter=",")
    np.save(folder / "w.npy", W)
    expected = gn.optimal_noise(gn.FiniteSet.from_workload(W), neighbors="add-remove")
    for name in ("w.csv", "w.npy"):
        status, out, _ = call("optimize", name, "--out", f"{name}.npz")
        assert status == 0
        assert f"{expected.gamma:.6g}" in out
        assert gn.OptimalNoise.load(folder / f"{name}.npz").gamma == pytest.approx(expected.gamma)
    status, _, err = call("optimize", "w.csv", "--out", "w.csv.npz")
    assert status == 1
    assert "exists already" in err
    status, _, err = call("optimize", "w.csv", "--out", "w.txt")
    assert status == 1
    assert "expected --out FILE.npz, got w.txt" in err
    assert not (folder / "w.txt").exists()
    assert "divide by the public number" in call("optimize", "w.csv", "--neighbors", "replace")[1]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "1,2\n3\n", "", None])
def test_optimize_refuses_what_is_not_a_matrix(folder, call, text):
    if text is not None:
        (folder / "w.csv").write_text(text, encoding="utf-8")
    status, out, err = call("optimize", "w.csv")
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert "error:" in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {},
            "expected numbers alone in w.csv, got a header and an index; hint: "
            "frame.to_csv(path, header=False",
        ),
        (
            {"index": False},
            "the first row of w.csv is 0, 1, 2, …, like the header that pandas writes; hint",
        ),
        (
            {"header": False},
            "the first column of w.csv is 0, 1, 2, …, like the index that pandas writes; hint",
        ),
    ],
)
def test_optimize_takes_no_header_for_a_query(folder, call, options, words):
    W = pd.DataFrame(np.tril(np.ones((3, 3))))
    W.to_csv(folder / "w.csv", **options)
    status, out, err = call("optimize", "w.csv")
    assert (status, out) == (1, "")
    assert words in err
    W.to_csv(folder / "w.csv", header=False, index=False)
    assert "3 queries" in call("optimize", "w.csv")[1]


def test_a_matrix_that_begins_like_a_header_comes_as_npy(folder, call):
    W = np.array([[0, 1, 2], [1, 0, 0]])
    np.savetxt(folder / "w.csv", W, delimiter=",")
    assert ".npy for a matrix that begins so" in call("optimize", "w.csv")[2]
    np.save(folder / "w.npy", W)
    assert "2 queries" in call("optimize", "w.npy")[1]
    (folder / "one.csv").write_text("0,1\n", encoding="utf-8")  # no header has nothing below it
    assert "1 query," in call("optimize", "one.csv")[1]


@pytest.mark.parametrize(
    ("name", "why"), [("none.csv", "there is no such file"), (".", "IsADirectoryError")]
)
def test_optimize_says_which_file_it_cannot_read(folder, call, name, why):
    status, out, err = call("optimize", name)
    assert (status, out) == (1, "")
    assert f"optimize: cannot read {name}: {why}" in err


@pytest.mark.usefixtures("folder")
def test_optimize_reads_sparse_matrices(call):
    W = sparse.coo_array(np.tril(np.ones((4, 4))))
    np.save("w.npy", W.toarray())
    mmwrite("w.mtx", W)
    sparse.save_npz("sparse.npz", sparse.csr_array(W))
    np.savez("dense.npz", W.toarray())
    expected = call("optimize", "w.npy")
    assert expected[0] == 0
    for name in ("w.mtx", "sparse.npz", "dense.npz"):
        assert call("optimize", name) == expected


@pytest.mark.parametrize("name", ["w.mtx", "w.npz", "two.npz", "pickled.npz", "missing.mtx"])
def test_optimize_refuses_other_archives(folder, call, name):
    (folder / "w.mtx").write_text(f"%%MatrixMarket {CANARY}\n", encoding="utf-8")
    (folder / "w.npz").write_bytes(b"PK" + CANARY.encode())
    np.savez(folder / "two.npz", a=np.eye(2), b=np.eye(2))
    np.savez(folder / "pickled.npz", np.array([{}], dtype=object))
    status, out, err = call("optimize", name)
    assert (status, out) == (1, "")
    assert name in err
    assert CANARY not in err
    assert err.count("\n") == 1


def test_optimize_says_which_relation_python_would_take(folder, call):
    np.savetxt(folder / "w.csv", np.eye(2), delimiter=",")
    assert 'neighbors="add-remove"), whose own default is "replace"' in call("optimize", "w.csv")[1]


def test_a_draft_leaves_out_what_cannot_be_an_attribute(folder, call):
    rows = "\n".join(f"id-{k},{'xy'[k % 2]}" for k in range(200))
    (folder / "ids.csv").write_text(f"person,answer\n{rows}\n", encoding="utf-8")
    status, out, _ = call("schema", "ids.csv")
    assert status == 0
    assert gn.Schema.loads(out).names == ("answer",)
    assert "# left out: column 'person'" in out
    assert "id-7" not in out


def test_version(call):
    status, out, _ = call("--version")
    assert (status, out.strip()) == (0, gn.__version__)


# Values of rows decide nothing, unless asked for.


def test_rows_outside_the_schema_are_dropped_unless_refusal_is_asked_for(folder, call):
    (folder / "bad.csv").write_text(
        "sex,age,smoker\nF,7.5,true\nX,7.5,true\nM,999,true\nF,,false\n", encoding="utf-8"
    )
    status, out, err = call(*release_arguments(table="bad.csv", m="sex", rho="1e4"))
    assert (status, err) == (0, "")
    assert "not listed, in sex are in no table; how many is private" in out
    assert (
        json.loads((folder / "out" / "release.json").read_text(encoding="utf-8"))["on_outside"]
        == "drop"
    )
    released = csv.read_csv("out/tables/1-sex.csv").to_pydict()
    assert [round(x) for x in released["estimate"]] == [2, 1]
    status, out, err = call(
        *release_arguments(table="bad.csv", out="strict", **{"on-outside": "refuse"})
    )
    assert (status, out) == (1, "")
    assert "DataError" in err
    assert not (folder / "strict").exists()


@pytest.mark.usefixtures("folder")
def test_unknown_rules_for_rows_outside_are_refused(call):
    status, _, err = call(*release_arguments(**{"on-outside": "ignore"}))
    assert status == 1
    assert "expected --on-outside refuse or drop" in err


@pytest.mark.usefixtures("folder")
def test_replaced_rows_need_a_catch_all_for_every_attribute(call):
    status, _, err = call(*release_arguments(neighbors="replace"))
    assert status == 1
    assert "catch-all" in err
    assert call(*release_arguments(neighbors="replace", **{"on-outside": "refuse"}))[0] == 0


# Signals


SLOW = """\
import os, sys
from gaussnoise.cli import main
from gaussnoise.{module} import {owner}

whole = {owner}.{name}

def slow(*arguments, **options):
    print("here", flush=True)
    # until the signal has been sent: a draw is waited for; sys.stdin would hold a lock at shutdown
    os.read(0, 1)
    return whole(*arguments, **options)

{owner}.{name} = slow
sys.argv[1:] = {arguments!r}
main()
"""


@pytest.mark.integration
@pytest.mark.parametrize(
    ("place", "number", "status"),
    [
        (("solvers.points.fidelity", "Fidelity", "at"), signal.SIGTERM, 143),
        (("tables.counting", "count", "_tally_arrays"), signal.SIGTERM, 143),
        (("privacy.sampler", "IntegerQuery", "draw"), signal.SIGTERM, 143),
        (("tables.release.store", "FilesWriter", "write"), signal.SIGINT, 130),
    ],
    ids=str,
)
def test_a_release_that_is_stopped_publishes_nothing_and_leaves_nothing(
    folder, place, number, status
):
    before = set(os.listdir(folder))
    script = SLOW.format(
        module=place[0],
        owner=place[1],
        name=place[2],
        arguments=release_arguments(m="age:prefix,sex"),
    )
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    program = subprocess.Popen([sys.executable, "-P", "-c", script], text=True, **pipes)
    assert program.stdout.readline() == "here\n"
    program.send_signal(number)
    _, err = program.communicate(timeout=120)
    assert program.returncode == status, err
    assert err == ("interrupted\n" if number == signal.SIGINT else "")
    assert set(os.listdir(folder)) == before


def test_public_attributes_come_out_exactly_and_the_plan_says_what_that_costs(folder, call):
    options = ("-m", "2", "--rho", "0.1", "--neighbors", "replace", "--public", "sex,smoker")
    status, said, _ = call("plan", "-s", "schema.toml", *options)
    assert status == 0
    assert "which combination of sex × smoker a person is in has no protection at all" in said
    status, *_ = call(
        "release", "t.csv", "-s", "schema.toml", *options, "--on-outside", "refuse", "--out", "out"
    )
    assert status == 0
    table = gn.TableRelease.load("out")["sex", "smoker"]
    assert table.estimate.tolist() == [[1, 1], [0, 1]]
    status, _, error = call("bound", "-s", "schema.toml", *options)
    assert status != 0
    assert "no bound holds for all data sets" in error
    assert call("plan", "-s", "schema.toml", "-m", "2", "--rho", "1", "--public", "sex")[0] != 0


@pytest.mark.usefixtures("folder")
def test_a_missing_file_is_named_and_no_refusal_of_the_data(call):
    call("ledger", "create", "year.ledger", "--rho", "1")
    call("ledger", "create", "names.ledger", "--rho", "9", "--delta", "1e-5")
    for command in (
        release_arguments(table="missing.csv", ledger="year.ledger", id="q"),
        "mean missing.csv -c n --rho .1 -o m --ledger year.ledger --id r".split(),
        "categories missing.csv sex --epsilon 1 --delta 1e-6 --ledger names.ledger --id s".split(),
    ):
        status, _, err = call(*command)
        assert (status, "table: no such file: missing.csv" in err) == (1, True)
    for name in ("year.ledger", "names.ledger"):
        assert "charges: 0, refusals of the data: 0" in call("ledger", "show", name)[1]


@pytest.mark.usefixtures("folder")
def test_a_tick_of_a_missing_file_leaves_no_trace_in_the_ledger(call):
    call("ledger", "create", "year.ledger", "--rho", "1")
    started = "stream start -o live -s schema.toml -m 1 --rho .1 --ticks 9"
    call(*started.split(), "--ledger", "year.ledger", "--id", "live")
    status, _, err = call("stream", "tick", "live", "missing.csv", "--tick", "1")
    assert (status, "table: no such file: missing.csv" in err) == (1, True)
    assert "charges: 1, refusals of the data: 0" in call("ledger", "show", "year.ledger")[1]
    status, _, err = call("stream", "tick", "live", "t.csv", "--tick", "1")
    assert status == 0, err


def test_a_mean_of_few_of_the_numbers_says_so(call, tmp_path, monkeypatch):
    """Nine of ten numbers are written in another way than the dialect says."""
    monkeypatch.chdir(tmp_path)
    written = ["1.234,50"] * 950 + ["34,5"] * 50
    (tmp_path / "n.csv").write_text("n\n" + "\n".join(f'"{x}"' for x in written), encoding="utf-8")
    options = ["--decimal", ",", "--delimiter", ";", "--between", "0,2000", "--rho", "5"]
    status, _, err = call("mean", "n.csv", "-c", "n", *options)
    assert status == 0, err
    assert "of all rows are in the catch-all 'no number' of 'n', by the released numbers" in err


def test_a_path_of_another_kind_is_refused_in_plain_words(folder, call):
    (folder / "some.csv").write_text("sex\nF\n", encoding="utf-8")
    (folder / "place").mkdir()
    (folder / "place" / "release.json").write_text("{}", encoding="utf-8")
    for arguments, words in (
        (("verify", "none"), "got none, which does not exist; hint: the folder"),
        (("verify", "some.csv"), "got the file some.csv, which is neither; hint: the folder"),
        (("certify", "place"), "got the folder place; hint: gaussnoise verify FOLDER"),
        (("sign", "place", "--key", "none.pem"), "none.pem, got no such file; hint: openssl"),
        (("certify", "place", "some.csv"), "got the folder place; hint: gaussnoise verify FOLDER"),
    ):
        status, _, err = call(*arguments)
        assert (status, words in " ".join(err.split())) == (1, True), err
