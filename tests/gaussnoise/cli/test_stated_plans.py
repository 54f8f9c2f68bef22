"""The tables ``[plan]``, ``[release]`` and ``[stream]`` of schema files: options not given."""

import json

import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run

SCHEMA = """\
[attributes.sex]
categories = ["F", "M"]

[attributes.age]
edges = [0, 18, 65, 120]

[[workload]]
of = ["sex", "age"]
"""
EVERYTHING = {
    "neighbors": '"replace"',
    "p": "inf",
    "rows_per_person": "3",
    "rho": "0.2",
}


def test_public_attributes_are_stated_as_a_list(tmp_path, capsys):
    stated = '[plan]\nrho = 1\nneighbors = "replace"\npublic = ["sex"]\n'
    (tmp_path / "s.toml").write_text(stated + SCHEMA, encoding="utf-8")
    assert run(["plan", "-s", str(tmp_path / "s.toml")]) == 0
    assert "EXACT, without noise: sex" in " ".join(capsys.readouterr().out.split())


@pytest.fixture
def planned(tmp_path, monkeypatch, capsys):
    """The plan of a ``[plan]`` table and of options, as JSON; the message where it is refused."""
    monkeypatch.chdir(tmp_path)

    def planned(stated, *options, command="plan"):
        (tmp_path / "s.toml").write_text(f"[plan]\n{stated}\n{SCHEMA}", encoding="utf-8")
        status = run([*command.split(), "-s", "s.toml", "--json", *map(str, options)])
        out, err = capsys.readouterr()
        return json.loads(out) if not status else " ".join(err.split())

    return planned


def test_a_stated_plan_is_that_of_the_same_options(planned):
    stated = "\n".join(f"{name} = {value}" for name, value in EVERYTHING.items())
    given = ["--neighbors", "replace", "--p", "inf", "--rows-per-person", 3]
    found = planned(stated)
    assert found == planned("", *given, "--rho", 0.2)
    assert (found["rho"], found["optimality"]["p"]) == (0.2, "inf")
    assert found["rows_per_person"] == 3


def test_options_replace_what_is_stated_one_by_one_and_the_budget_as_a_whole(planned):
    stated = "epsilon = 1\ndelta = 1e-6\nrows_per_person = 2"
    assert planned(stated)["privacy"]["definition"] == "approximate DP"
    found = planned(stated, "--rho", 0.3)
    assert (found["rho"], found["rows_per_person"]) == (0.3, 2)
    assert planned(stated, "--rows-per-person", 1)["rows_per_person"] == 1
    aimed = planned("rho = 0.3", "--within", 50)  # not the stated budget: the least that does it
    assert aimed["rho"] == planned("", "--within", 50)["rho"] != 0.3
    assert planned("rho = 0.3")["entries"] == planned("", "--rho", 0.3)["entries"]


def test_persons_and_weights_are_stated_as_in_python(planned):
    stated = 'rho = 1\nperson = "id, of a person"\nrows_per_person = 2\n'
    found = planned(stated)
    assert "'id, of a person'" in found["privacy_unit"]
    weighted = planned('rho = 1\nweight = {column = "w", most = 3}')
    schema = gn.Schema.loads(SCHEMA)
    plan = gn.plan(schema, [("sex", "age")], gn.zCDP(1), weight=gn.Weight("w", 3))
    assert weighted["request_sha256"] == plan.request_sha256


def test_expected_rows_mark_small_tables_and_change_no_plan(planned, tmp_path, capsys):
    found = planned("rho = 0.01\nexpected_rows = 60")
    (table,) = found.pop("expected_tables")
    assert found.pop("expected_rows") == 60
    assert (table["cells"], table["mean_count"], table["smaller_than_noise"]) == (6, 10, True)
    assert found == planned("rho = 0.01")
    assert planned("rho = 0.01", "--expected-rows", 600)["expected_tables"][0]["mean_count"] == 100
    more = planned("rho = 0.01\nexpected_rows = 60", "--expected-rows", 600)
    assert more["expected_rows"] == 600
    refused = "expected a positive number of rows, got 0"
    assert refused in planned("rho = 0.01", "--expected-rows", 0)
    assert refused in planned("rho = 0.01\nexpected_rows = 0", "--report", "new.html")
    assert not (tmp_path / "new.html").exists()
    assert "--expected-rows needs a budget" in planned("", "--expected-rows", 9)
    assert planned("expected_rows = 9")["budgets"]
    stated = "rho = 0.1\nexpected_rows = 9"
    assert planned(stated, "--ticks", 4, command="stream plan")["rho"] == 0.1
    assert run(["plan", "-s", "s.toml"]) == 0
    assert "smaller than its noise" in capsys.readouterr().out


def test_streams_take_the_same_or_refuse_what_they_would_leave_aside(planned):
    stream = ("--ticks", 4)
    command = "stream plan"
    found = planned('rho = 0.1\nneighbors = "replace"', *stream, command=command)
    assert (found["rho"], found["neighbors"]) == (0.1, "replace")
    assert "--reports K" in planned('rho = 0.1\nperson = "id"', *stream, command=command)
    said = planned('rho = 0.1\nweight = {column = "w", most = 3}', *stream, command=command)
    assert "[plan]: weight is stated there" in said


@pytest.mark.parametrize(
    ("stated", "line", "part"),
    [
        ("rho = '1'", 2, "plan.rho: expected a number"),
        ("\nperson = 1", 3, "plan.person: expected the name of a column"),
        ("rows = 3", 2, "plan.rows: unknown key; expected table, rho"),
        ("expected_rows = 0.5", 2, "plan.expected_rows: expected an integer"),
        ("rows-per-person = 3", 2, "did you mean 'rows_per_person'?"),
        ("weight = {column = 'w'}", 2, "plan.weight"),
    ],
)
def test_mistakes_are_refused_at_their_line(planned, stated, line, part):
    said = planned(stated, "--rho", 1)
    assert f"s.toml:{line}: " in said
    assert part in said


def test_a_stated_table_stands_beside_its_schema(planned, tmp_path, capsys, monkeypatch):
    assert "expected TABLE" in planned("rho = 1", "-o", "out", command="release")
    (tmp_path / "rows.csv").write_text("sex,age\nF,20\nM,30\n", encoding="utf-8")
    (tmp_path / "elsewhere").mkdir()
    stated = 'rho = 1\ntable = "rows.csv"'
    assert planned(stated, "-o", "out", command="release")["folder"] == "out"
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert run(["check", "-s", "../s.toml"]) == 0
    assert "2 rows, 2 counted" in capsys.readouterr().out
    assert planned(stated, "absent.csv", "-o", "new", command="release").startswith("error")


RELEASE = 'rho = 0.1\ntable = "rows.csv"\n[release]\n'
MADE = 'format = "parquet"\nid = "census"\npurpose = "for the council"\nrequested_by = "me"\n'


def test_a_release_is_made_as_it_is_stated(planned, tmp_path):
    (tmp_path / "rows.csv").write_text("sex,age\nF,20\nM,30\n", encoding="utf-8")
    gn.Ledger.create(tmp_path / "l.ledger", gn.zCDP(1))
    said = planned(RELEASE + MADE, "-o", "out", command="release")
    assert "--ledger and --id together" in said  # a stated name without a ledger does not vanish
    charged = ("--ledger", "l.ledger")
    planned(RELEASE + MADE, "-o", "out", *charged, command="release")
    other = ("--id", "other", "--format", "csv", "--purpose", "another")
    planned(RELEASE + MADE, "-o", "other", *charged, *other, command="release")
    entries = gn.Ledger.open(tmp_path / "l.ledger").entries()
    noted = [(entry.id, entry.purpose, entry.requested_by) for entry in entries]
    assert noted == [("census", "for the council", "me"), ("other", "another", "me")]
    formats = {one: {*(tmp_path / one).rglob("*.parquet")} for one in ("out", "other")}
    assert formats["out"]
    assert not formats["other"]
    again = planned(RELEASE + MADE, "-o", "elsewhere", *charged, command="release")
    assert "the result of 'census' was published at" in again
    assert gn.Ledger.open(tmp_path / "l.ledger").charges == 2
    assert planned(RELEASE + MADE) == planned("rho = 0.1")  # another command reads none of it


@pytest.mark.parametrize(
    ("stated", "part"),
    [
        ("fromat = 'csv'", "did you mean 'format'?"),
        ("requested-by = 'me'", "unknown key; expected format, id, purpose or requested_by"),
        ("id = 1", "release.id: expected text"),
    ],
)
def test_mistakes_about_a_release_are_refused(planned, stated, part):
    said = planned(RELEASE + stated, "-o", "out", command="release")
    assert part in said
    assert "s.toml:5: " in said


STREAM = 'rho = 0.1\nperson = "id"\n[stream]\n'
OVER = 'ticks = 6\nreports = 2\napart = 2\nenforced = true\nworkload = "both"\nperiod = "w"\n'
GIVEN = ("--ticks", 6, "--reports", 2, "--apart", 2, "--workload", "both", "--period", "w")


def test_a_stated_stream_is_that_of_the_same_options(planned):
    found = planned(f'{STREAM}{OVER}late = "carry"\npurpose = "x"', command="stream plan")
    given = (*GIVEN, "--enforced", "--late", "carry")
    assert found == planned(STREAM, *given, command="stream plan")
    assert found["ticks"]["n"] == 6
    assert planned(f"{STREAM}{OVER}", "--ticks", 9, command="stream plan")["ticks"]["n"] == 9
    loose = planned(f"{STREAM}{OVER}", "--no-enforced", command="stream plan")
    assert loose == planned(STREAM, *GIVEN, command="stream plan")
    usual = planned(f"{STREAM}ticks = 6\nreports = 2", command="stream plan")
    assert usual != loose  # every option of Ticks that was stated counts
    assert "expected --ticks, or ticks = 52 in [stream]" in planned(STREAM, command="stream plan")
    assert planned(f"{STREAM}{OVER}", "-m", "sex")["rho"] == 0.1  # another command reads none of it


def test_a_stream_starts_with_what_is_stated(planned, tmp_path):
    gn.Ledger.create(tmp_path / "l.ledger", gn.zCDP(1))
    start = ("-o", "out", "--ledger", "l.ledger")
    more = 'format = "parquet"\nid = "weekly"\npurpose = "for the council"\nrequested_by = "me"\n'
    more += 'title = "By week"'
    assert "--ledger and --id together" in planned(
        f"{STREAM}{OVER}{more}", *start[:2], command="stream start"
    )
    planned(f"{STREAM}{OVER}{more}", *start, command="stream start")
    (entry,) = gn.Ledger.open(tmp_path / "l.ledger").entries()
    assert (entry.id, entry.purpose, entry.requested_by) == ("weekly", "for the council", "me")
    stream = gn.streams.Stream.open(tmp_path / "out")
    assert (stream.format, stream.plan.asked.about.title) == ("parquet", "By week")
    own = ("--id", "other", "--format", "csv", "--purpose", "another", "-o", "own")
    planned(f"{STREAM}{OVER}{more}", *start[2:], *own, command="stream start")
    _, entry = gn.Ledger.open(tmp_path / "l.ledger").entries()
    assert (entry.id, entry.purpose, entry.requested_by) == ("other", "another", "me")
    assert gn.streams.Stream.open(tmp_path / "own").format == "csv"


@pytest.mark.parametrize(
    ("stated", "part"),
    [
        ("ticks = '4'", "stream.ticks: expected an integer"),
        ("tick = 4", "stream.tick: unknown key; expected ticks, reports"),
        ("tick = 4", "did you mean 'ticks'?"),
        ("requested-by = 'me'", "did you mean 'requested_by'?"),
        ("workload = 'total'", 'stream.workload: expected "totals", "periods" or "both"'),
        ("enforced = 1", "stream.enforced: expected true or false"),
        ("ticks = 0", "1 <= n <= 2000"),
    ],
)
def test_mistakes_about_a_stream_are_refused(planned, stated, part):
    said = planned(f"{STREAM}{stated}\nreports = 1", command="stream plan")
    assert part in said
    assert "s.toml:5: " in said or stated == "ticks = 0"
