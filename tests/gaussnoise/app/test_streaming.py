"""Streams of a project, and that the page, the shell and Python plan and start the same."""

import re
import shlex
from dataclasses import replace

import pytest

import gaussnoise as gn
from gaussnoise.app.asked import asked_of
from gaussnoise.app.project import LEDGER, SCHEMA, STREAMS, Project
from gaussnoise.app.streaming import StreamWish, columns_wanted, opened, tick_words
from gaussnoise.cli.app import run
from gaussnoise.streams.files import rules_of

SCHEMA_FILE = """\
[attributes.sex]
categories = ["F", "M"]

[attributes.age]
edges = [0, 18, 65, 120]

[[workload]]
of = ["sex"]

[plan]
rho = 0.5
person = "id"
rows_per_person = 2
"""
WISHES = {
    "usual": StreamWish("weekly", 4, 4),
    "enforced": StreamWish("weekly", 4, 2, 2, enforced=True, workload="both"),
    "dated": StreamWish("weekly", 4, 1, period="week of 'it'", late="carry", format="parquet"),
    "monthly": StreamWish("weekly", 4, 4, first="January 2026"),
    "noted": StreamWish("weekly", 4, 4, purpose="-a 'purpose'", requested_by="me"),
}
ROWS = "id,sex,week of 'it'\n" + "".join(f"{k // 2},{'FM'[k % 2]},1\n" for k in range(100))


@pytest.fixture
def project(tmp_path, monkeypatch):
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / SCHEMA).write_text(SCHEMA_FILE, encoding="utf-8")
    (folder / "-rows.csv").write_text(ROWS, encoding="utf-8")
    (folder / STREAMS).mkdir()
    gn.Ledger.create(folder / LEDGER, gn.zCDP(1.0))
    return Project(folder.resolve())


def chosen(project, wish):
    """State the choices in the schema file, as the page does."""
    project.state_stream(**{name: own for name, own in wish._asdict().items() if own})


@pytest.mark.parametrize("wish", WISHES.values(), ids=WISHES)
def test_a_stream_is_planned_started_and_continued_as_it_is_asked(project, wish, capsys):
    asked = asked_of(project.schema)
    plan = gn.plan(asked.schema, asked.workload, asked.privacy, over=wish.over, **asked.options)
    chosen(project, wish)
    for choices in ({}, {"ticks": 9, "reports": 1}):  # not those of another tab
        project.state_stream(**choices)
        assert run(wish.plan_words()) == 0
        assert capsys.readouterr().out == f"{plan}\n"
    assert run(shlex.split(shlex.join(wish.words()))) == 0
    assert project.streams() == ["weekly"]
    stream = opened(project, "weekly")
    assert stream.plan.request_sha256 == plan.request_sha256
    assert (stream.format, stream.on_outside, stream.id) == (wish.format, "drop", "weekly")
    (entry,) = gn.Ledger.open(LEDGER).entries()
    assert (entry.purpose or "", entry.requested_by or "") == (wish.purpose, wish.requested_by)
    period = [wish.period] if wish.period else []
    assert columns_wanted(stream) == ["sex", "id", *period]
    assert run(tick_words(project, "weekly", "-rows.csv", 1)) == 0  # its name is no option
    assert len(opened(project, "weekly")) == 1
    assert project.tables() == ["-rows.csv"]  # what was published is not offered


def test_of_tables_with_sums_those_of_counts_are_taken_if_asked(project, capsys):
    more = '[attributes.pay]\nclip = [0, 100]\n[[workload]]\nof = ["sex", "pay"]\n'
    text = SCHEMA_FILE.replace("[plan]", f"{more}[plan]")
    project.schema.write_text(text, encoding="utf-8")
    (name,) = asked_of(project.schema).of_counts()[1]
    assert name.startswith("sex × pay (count and sum; values above 100 count as 100)")
    wish = StreamWish("weekly", 4, 4)
    assert run(wish.plan_words()) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "got sums of a number in sex × pay" in said
    assert "counts = true in [stream]" in said
    chosen(project, wish._replace(counts=True))
    assert run(wish.words()) == 0
    assert opened(project, "weekly").plan.marginals == (("sex",),)
    capsys.readouterr()
    assert run([*wish.plan_words(), "--no-counts"]) == 1  # given options replace stated ones
    project.schema.write_text(text.replace('of = ["sex"]', 'of = ["pay"]'), encoding="utf-8")
    capsys.readouterr()
    assert run([*wish.plan_words(), "--counts"]) == 1  # nothing is left
    said = capsys.readouterr().err
    assert "counts = true" not in said
    assert "edges in place of clip" in " ".join(said.split())


def test_a_project_can_be_moved_and_a_stream_may_have_no_ledger(project, tmp_path):
    chosen(project, WISHES["usual"])
    assert run(WISHES["usual"].words()) == 0
    moved = Project((tmp_path / "project").rename(tmp_path / "moved").resolve())
    stream = opened(moved, "weekly")
    assert stream.ledger.path == moved.ledger
    stream.tick(str(moved.folder / "-rows.csv"), number=1)
    assert [entry.id for entry in moved.budget().entries()] == ["weekly", "weekly tick 1"]
    assert tick_words(moved, "weekly", "x.csv", 2)[-2:] == ["--ledger", LEDGER]
    stream.plan.start(moved.folder / STREAMS / "own")
    assert opened(moved, "own").ledger is None
    assert tick_words(moved, "own", "x.csv", 1)[-2:] == ["--tick", "1"]
    signed = replace(stream.plan.over, reports=2, corrections="sign")
    plan = gn.plan(stream.plan.schema, 1, gn.zCDP(1), over=signed, rows_per_person=2)
    plan.start(moved.folder / STREAMS / "signed")
    assert columns_wanted(opened(moved, "signed"))[-1] == "sign"
    moved.ledger.unlink()
    assert moved.streams() == ["weekly", "own", "signed"]
    assert opened(moved, "own").ledger is None


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({}, "Rows belong to the tick in which they arrive"),
        ({}, "not checked"),
        ({"period": "week"}, "'week' has the number .* an earlier tick are refused"),
        ({"period": "week", "late": "carry"}, "an earlier tick are counted in the tick they"),
        ({"enforced": True}, "is enforced: .* leaves out the rows"),
    ],
)
def test_the_rules_of_ticks_are_those_of_the_stream(more, rule):
    rules = "\n".join(rules_of(StreamWish("x", 4, 2, **more).over))
    assert re.search(rule, rules)
    for said in ("There are 4 ticks at most", "No tick is left out", "Corrections of earlier"):
        assert said in rules
