"""What is asked of a plan: its form in records, from which it is asked again; title and source."""

import json

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import OutputError, ParameterError
from gaussnoise.tables.planning.request import arguments_in

SCHEMA = gn.Schema(
    [gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120], other="none")]
)
PEOPLE = pa.table({"sex": ["F", "M", "F"] * 400, "age": [3, 30, 80] * 400})
ABOUT = {"title": "Age and sex, 2024", "source": "Register of «Nord-Süd», 5 % sample"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"p": 3, "weights": [2, 1], "neighbors": "replace"},
        {"neighbors": "replace", "public": ["age", "sex"], "rows_per_person": 2},
        {"targets": [gn.Target(50, 0.9, simultaneous=True), None]},
        {"person": "id", "rows_per_person": 3},
        {"weight": gn.Weight("w", 2.5)},
        ABOUT,
    ],
)
def test_a_record_of_what_was_asked_is_asked_again(options):
    plan = gn.plan(SCHEMA, [("sex", "age"), "age"], gn.zCDP(0.1), **options)
    stored = json.loads(json.dumps(plan.asked.record()))
    arguments = arguments_in(stored)
    again = gn.plan(gn.Schema.loads(arguments.pop("schema")), **arguments)
    assert again.asked.record() == stored
    assert again.request == plan.request
    late = {"person", "public", "weight", "title", "source"}
    assert late & set(plan.request) == late & set(options)
    assert late & set(stored) == late & set(options) | {"person"}
    everywhere = "schema workload privacy neighbors p weights targets rows_per_person"
    assert set(stored) - late == set(everywhere.split())


def test_a_record_without_what_all_releases_have_is_refused():
    stored = gn.plan(SCHEMA, 1, gn.zCDP(0.1)).asked.record()
    without = {name: value for name, value in stored.items() if name != "person"}
    assert arguments_in(without) == arguments_in(stored)  # the first releases did not have it
    for name in set(stored) - {"person"}:
        with pytest.raises(LookupError):
            arguments_in({key: value for key, value in stored.items() if key != name})


def test_a_release_keeps_its_title_and_source_and_shows_them(tmp_path):
    plan = gn.plan(SCHEMA, 1, gn.zCDP(0.1), **ABOUT)
    lines = [f"title        {ABOUT['title']}", f"source       {ABOUT['source']}"]
    assert str(plan).splitlines()[1:3] == lines
    plan.release(PEOPLE, out=tmp_path / "out", on_outside="drop")
    assert (tmp_path / "out" / "summary.txt").read_text("utf-8").splitlines()[1:3] == lines
    record = json.loads((tmp_path / "out" / "release.json").read_text("utf-8"))
    assert {name: record["plan"][name] for name in ABOUT} == ABOUT
    release = gn.TableRelease.load(tmp_path / "out")
    assert release.plan.asked.title == ABOUT["title"]
    for k, document in enumerate((plan, release)):
        document.report(tmp_path / f"{k}.html")
        page = (tmp_path / f"{k}.html").read_text("utf-8")
        assert f"<h1>{ABOUT['title']}</h1>" in page
        assert f"<p>Source: <bdi>{ABOUT['source']}</bdi></p>" in page
        document.report(tmp_path / f"named-{k}.html", title="Another")
        assert "<h1>Another</h1>" in (tmp_path / f"named-{k}.html").read_text("utf-8")
    with pytest.raises(OutputError, match="another plan"):
        gn.TableRelease.load(tmp_path / "out", gn.plan(SCHEMA, 1, gn.zCDP(0.1)))


def test_titles_change_no_noise_and_nothing_where_they_are_not_given():
    plain, titled = gn.plan(SCHEMA, 1, gn.zCDP(0.1)), gn.plan(SCHEMA, 1, gn.zCDP(0.1), **ABOUT)
    assert titled.query.query == plain.query.query
    assert titled.request == ABOUT | plain.request
    assert not set(ABOUT) & set(plain.asked.record())


def test_a_stream_keeps_its_title_and_shows_it_at_every_tick(tmp_path):
    plan = gn.plan(SCHEMA, 1, gn.zCDP(0.1), over=gn.streams.Ticks(3), **ABOUT)
    assert str(plan).splitlines()[1] == f"title        {ABOUT['title']}"
    stream = plan.start(tmp_path / "s", on_outside="drop")
    stream.tick(PEOPLE, number=1)
    summary = stream.state.tick_folder(1) / "summary.txt"
    assert f"source       {ABOUT['source']}" in summary.read_text("utf-8").splitlines()
    assert gn.streams.Stream.open(tmp_path / "s").plan.asked.source == ABOUT["source"]


def test_the_shell_passes_title_and_source(tmp_path, capsys):
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml(), "utf-8")
    words = ["plan", "-s", str(tmp_path / "s.toml"), "-m", "1", "--rho", "0.1"]
    assert run([*words, "--title", ABOUT["title"], "--source", ABOUT["source"]]) == 0
    assert f"title        {ABOUT['title']}" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["title", "source"])
def test_without_a_budget_the_shell_refuses_what_no_plan_would_show(name, tmp_path, capsys):
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml(), "utf-8")
    words = ["plan", "-s", str(tmp_path / "s.toml"), "-m", "1", f"--{name}", ABOUT[name]]
    assert run(words) == 1
    assert f"plan: --{name} needs a budget or a target" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["title", "source"])
@pytest.mark.parametrize(
    "said", ["", "  ", "two\nlines", "end\n", "a\u2028b", "\x1b[1m", "\ud800", "x" * 1001, 3, np.e]
)
def test_what_cannot_be_shown_in_one_line_is_refused(name, said):
    with pytest.raises(ParameterError, match=f"expected {name} to be one line"):
        gn.plan(SCHEMA, 1, gn.zCDP(0.1), **{name: said})
