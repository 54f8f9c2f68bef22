"""Tests of a base of a user's own: every function takes it as it takes bases of the package.

Reference: the matrix of ``Around``, written out in plain loops.
"""

import json
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
from cases import one_test_of
from typer.testing import CliRunner

import gaussnoise as gn
from gaussnoise.cli.app import app
from gaussnoise.errors import DomainError, SchemaError
from gaussnoise.streams import Stream, Ticks


@dataclass(frozen=True)
class Around(gn.domains.AbstractBase):
    """Every category of a circle with its neighbours on both sides."""

    size: int
    reach: int = 1

    stored_as = "around"
    is_ordered = True

    @property
    def queries(self):
        return self.size

    def toarray(self):
        apart = np.abs(np.subtract.outer(np.arange(self.size), np.arange(self.size)))
        return (np.minimum(apart, self.size - apart) <= self.reach).astype(float)

    def _labels(self, cells):
        return tuple(f"around {cell}" for cell in cells)


HOURS = ["night", "morning", "noon", "evening", "late"]
TOML = """\
[attributes.hour]
categories = ["night", "morning", "noon", "evening", "late"]
other = "?"
base = {kind = "around", reach = 1}

[attributes.sex]
categories = ["F", "M"]
"""
TABLE = pa.table(
    {
        "hour": ["night", "late", "noon", "noon", None, "evening", "morning", "late"] * 5,
        "sex": ["F", "M"] * 20,
    }
)


def around(cells):
    """Return sums over neighbours on the circle of the first five cells, without the catch-all."""
    return [cells[k] + cells[(k + 1) % 5] + cells[(k - 1) % 5] for k in range(5)]


def schema():
    return gn.Schema.loads(TOML)


def test_a_schema_file_names_a_base_of_a_user():
    own = schema().attributes[0]
    assert own.base == gn.Leading(Around(5), 6)
    assert schema().to_toml() == TOML
    assert own == gn.Attribute("hour", HOURS, other="?", base=Around(5))
    assert own == gn.Attribute("hour", HOURS, other="?", base="around")
    wide = gn.Attribute("hour", HOURS, base={"kind": "around", "reach": 2})
    assert wide.base == Around(5, 2)


def test_a_release_is_saved_and_loaded_as_it_was(tmp_path):
    plan = gn.plan(schema(), [("hour", "sex")], gn.zCDP(1))
    assert plan.entries == ("hour (around, reach 1, without '?') × sex",)
    release = plan.release(TABLE, out=tmp_path / "out")
    again = gn.TableRelease.load(tmp_path / "out")
    assert again.plan.domain.terms == plan.domain.terms
    assert again.plan.request_sha256 == plan.request_sha256
    for one in (release, again):
        cells, found = one["hour", "sex"].estimate, one.answers(("hour", "sex"))
        np.testing.assert_allclose(found.estimate, around(cells), atol=1e-9)
        assert found.labels == (tuple(f"around {hour}" for hour in HOURS), ("F", "M"))
    record = json.loads((tmp_path / "out" / "release.json").read_text())
    assert record["workload"][0]["bases"]["hour"] == {"kind": "around", "reach": 1}
    answers = (tmp_path / "out" / record["workload"][0]["file"]).read_text()
    assert "around night" in answers


def test_pages_and_questions_take_a_base_of_a_user(tmp_path):
    plan = gn.plan(schema(), [("hour", "sex")], gn.zCDP(1))
    release = plan.release(TABLE)
    plan.report(tmp_path / "plan.html")
    release.report(tmp_path / "release.html")
    assert "around, reach 1" in (tmp_path / "plan.html").read_text()
    assert "around noon" in (tmp_path / "release.html").read_text()
    asked = release.ask("count of hour=noon, sex=F")
    assert asked.estimate == pytest.approx(release["hour", "sex"].estimate[2, 0])


def test_the_shell_reads_what_was_released_with_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gn.plan(schema(), [("hour", "sex")], gn.zCDP(1)).release(TABLE, out=tmp_path / "out")
    (tmp_path / "schema.toml").write_text(TOML)
    shell = CliRunner()
    for command, words in (
        (
            ["plan", "-s", str(tmp_path / "schema.toml"), "-m", "hour:around", "--rho", "1"],
            "around",
        ),
        (["ask", str(tmp_path / "out"), "count of hour=noon"], "noon"),
        (["report", str(tmp_path / "out")], "report"),
    ):
        done = shell.invoke(app, command)
        assert done.exit_code == 0, done.output
        assert words in done.output


def test_streams_hold_a_base_of_a_user(tmp_path):
    plan = gn.plan(schema(), [("hour",)], gn.zCDP(1), over=Ticks(2))
    plan.start(tmp_path / "stream").tick(TABLE, number=1)
    stream = Stream.open(tmp_path / "stream")
    stream.tick(TABLE, number=2)
    total = stream.total(2)
    found = total.answers("hour")
    np.testing.assert_allclose(found.estimate, around(total["hour"].estimate), atol=1e-9)
    assert found.labels[0][0] == "around night"


def test_its_noise_is_saved_and_verified(tmp_path):
    K = gn.Products([Around(7), gn.Identity(2)], [(0, 1), {0: Around(7, 2)}])
    noise = gn.optimal_noise(K, 2, neighbors="add-remove", tol=0.05)
    noise.save(tmp_path / "noise.npz")
    again = gn.OptimalNoise.load(tmp_path / "noise.npz")
    assert again.domain.terms == K.terms
    assert again.gamma == noise.gamma


@dataclass(frozen=True)
class Marked(Around):
    """A base with arguments of every kind that TOML holds; None is left out of files."""

    steps: tuple[float, ...] = (0.5, 2.0)
    levels: tuple[tuple[int, ...], ...] = ((1, 2), ())
    unit: str = 'km "per" hour'
    größe: bool = True
    last: int | None = None

    stored_as = "marked"


@one_test_of("base", [Marked(5), Marked(5, 0, (), ((3,),), "", False, 7), gn.Leading(Around(3), 5)])
def test_arguments_come_back_through_files(base, tmp_path):
    own = gn.Schema([gn.Attribute("hour", HOURS, base=base)])
    assert gn.Schema.loads(own.to_toml()).attributes[0].base in (base, gn.Base(base.toarray()))
    gn.plan(own, [("hour",)], gn.zCDP(1)).simulate(
        TABLE.filter(TABLE["hour"].is_valid()), np.random.default_rng(0)
    ).save(tmp_path / str(hash(base)))
    again = gn.TableRelease.load(tmp_path / str(hash(base)))
    assert again.answers("hour").estimate.shape == (base.queries,)


@dataclass(frozen=True)
class Nested(Around):
    """A base with an argument that no file holds."""

    what: frozenset = frozenset()

    stored_as = "nested"


@dataclass(frozen=True)
class Silent(Around):
    """A subclass that inherits neither the name nor, here, an answer about the catch-all."""

    is_ordered = None


@dataclass(frozen=True)
class Forgets(Around):
    """A base whose stored form gives another base."""

    stored_as = "forgets"

    def options(self):
        return {}


@one_test_of(
    ("base", "message"),
    [
        (
            Around(6),
            "Around of the 5 cells before the catch-all '\\?', .* hint: Around\\(5, ...\\)",
        ),
        (Silent(5), "expected Silent to say whether the catch-all '\\?' has a place in it"),
        (Silent(6), "expected Silent to say whether"),
        (Around(4), "queries over 6 cells, the catch-all included, got 4"),
        (Forgets(5, 2), "Forgets to equal what its constructor makes"),
        (Nested(5), "Nested to equal what its constructor makes"),
        ({"kind": "around", "width": 2}, "got {'kind': 'around', 'width': 2}"),
        ({"kind": "around", "size": 5}, "got {'kind': 'around', 'size': 5}"),
        ({"kind": "arond"}, "hint: did you mean 'around'"),
        ("silent", "got 'silent'; hint: a class of your own is known by its stored_as"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(base, message):
    with pytest.raises(SchemaError, match=message):
        gn.Attribute("hour", HOURS, other="?", base=base)


def test_without_a_name_tables_hold_its_matrix(tmp_path):
    """Numbers do not change, and labels are those of a matrix."""

    class Nameless(Around):
        pass

    own = gn.Attribute("hour", HOURS, other="?", base=Nameless(5))
    plan = gn.plan(gn.Schema([own]), ["hour"], gn.zCDP(1))
    plan.release(TABLE, out=tmp_path / "out")
    again = gn.TableRelease.load(tmp_path / "out")
    np.testing.assert_allclose(
        again.answers("hour").estimate, around(again["hour"].estimate), atol=1e-9
    )
    assert again.answers("hour").labels[0][0] == "query 1"
    with pytest.raises(DomainError, match="a class that files have a name for, got Nameless"):
        plan.noise.save(tmp_path / "noise.npz")


STRANGER = """
import sys
import gaussnoise as gn
for load in (gn.OptimalNoise.load, gn.TableRelease.load, gn.Schema.load, gn.streams.Stream.open):
    try:
        load(sys.argv.pop(1))
    except gn.GaussNoiseError as error:
        print(error)
"""


def test_a_process_without_the_class_says_what_is_missing(tmp_path):
    plan = gn.plan(schema(), [("hour",)], gn.zCDP(1))
    noise, out, toml, stream = (tmp_path / name for name in ("noise.npz", "out", "toml", "stream"))
    plan.noise.save(noise)
    plan.release(TABLE, out=out)
    toml.write_text(TOML)
    gn.plan(schema(), [("hour",)], gn.zCDP(1), over=Ticks(2)).start(stream)
    told = subprocess.run(
        [sys.executable, "-c", STRANGER, noise, out, toml, stream], capture_output=True, text=True
    ).stdout.splitlines()
    assert len(told) == 4
    for line in told:
        assert "a class of your own" in line
        assert "defined or imported" in line


def test_levels_of_groups_are_called_otherwise():
    with pytest.raises(SchemaError, match="a level of another name than 'around'"):
        gn.Attribute("hour", HOURS, groups={"around": {"dark": ["night", "late"]}})


def test_a_name_belongs_to_one_class():
    for taken in ("around", "prefix", "FiniteSet"):
        with pytest.raises(DomainError, match=f"a name of its own, got '{taken}', which is"):
            type("Another", (Around,), {"stored_as": taken})
    for no_name in ("", 3, ["around"]):
        with pytest.raises(DomainError, match="expected stored_as to be a name, got"):
            type("Another", (Around,), {"stored_as": no_name})
    assert gn.Attribute("hour", HOURS, base="around").base == Around(5)
