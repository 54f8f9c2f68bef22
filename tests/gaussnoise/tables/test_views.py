"""Views of released tables: sorted, their ends, frames that say their level, pictures."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.collections import LineCollection
from pyarrow import parquet

import gaussnoise as gn
from gaussnoise.errors import ParameterError

MANY = 120


def people(library=pa.table):
    rng = np.random.default_rng(5)
    return library(
        {
            "sex": rng.choice(["F", "M"], 600).tolist(),
            "age": rng.integers(0, 100, 600).tolist(),
            "county": [f"{k:03}" for k in rng.geometric(0.05, 600) % MANY],
        }
    )


def survey():
    schema = gn.Schema(
        [
            gn.Attribute("sex", ["F", "M"]),
            gn.Attribute("age", edges=[0, 18, 40, 65, float("inf")]),
            gn.Attribute("county", [f"{k:03}" for k in range(MANY)]),
        ]
    )
    return gn.plan(schema, [("sex", "age"), ("sex", "county")], gn.zCDP(0.5))


@pytest.fixture(scope="module")
def release():
    return survey().release(people())


def drawn(figure):
    figure.set_dpi(30)
    figure.canvas.draw()
    return figure.axes[0]


@pytest.mark.parametrize("descending", [True, False])
def test_sorted_tables_have_all_cells_in_order(release, descending):
    table = release["sex", "county"]
    cells = table.sorted(descending)
    assert len(cells) == 2 * MANY == len(set(cells.labels))
    steps = np.diff(cells.estimate) * (-1 if descending else 1)
    assert (steps >= 0).all()
    frame = table.to_pandas()
    for own, x, sd in zip(cells.labels, cells.estimate, cells.standard_deviation, strict=True):
        row = frame[(frame["sex"] == own[0]) & (frame["county"] == own[1])]
        assert (row["estimate"].item(), row["standard_deviation"].item()) == (x, sd)


def test_top_and_bottom_follow_the_order(release):
    table = release["county"]
    assert table.top(3).labels == table.sorted().labels[:3]
    assert table.bottom(3).labels == table.sorted(descending=False).labels[:3]
    assert len(table.top(10**6)) == MANY
    assert "3 cells of MarginalTable(county" in repr(table.top(3))


@pytest.mark.parametrize("count", [0, -1, 2.0, True, "3"])
def test_a_number_of_cells_is_positive(release, count):
    with pytest.raises(ParameterError, match="expected a positive number of cells"):
        release["county"].top(count)


@pytest.mark.parametrize("simultaneous", [False, True])
def test_intervals_of_picked_cells_are_those_of_their_table(release, simultaneous):
    table = release["county"]
    cells, ends = table.top(5), table.confidence_interval(0.9, simultaneous)
    for own, whole in zip(cells.confidence_interval(0.9, simultaneous), ends, strict=True):
        assert own.tolist() == whole[cells.places].tolist()


def test_shares_without_a_group_come_last():
    schema = gn.Schema([gn.Attribute("a", ["x", "y"]), gn.Attribute("b", ["u", "v"])])
    made = gn.plan(schema, 2, gn.zCDP(0.01))
    rows = pa.table({"a": ["x"] * 900, "b": ["u", "v"] * 450})
    simulated = (made.simulate(rows, np.random.default_rng(k)) for k in range(100))
    every = (one.proportions(("a", "b"), "a") for one in simulated)
    shares = next(found for found in every if np.isnan(found.estimate).any())
    assert np.isnan(shares.estimate[1]).all()
    for cells in (shares.sorted(), shares.sorted(descending=False)):
        assert np.isnan(cells.estimate[-2:]).all()
        assert not np.isnan(cells.estimate[:2]).any()
    assert drawn(shares.plot())
    assert "none" in str(shares.sorted())
    assert "-0 " not in str(shares)
    assert np.isnan(shares.standard_deviation[1]).all()


def test_the_total_is_a_table_too(release):
    cells = release[()].top(1)
    assert cells.labels == ((),)
    assert cells.columns()["estimate"] == [release[()].estimate]
    assert drawn(release[()].plot()).get_yticklabels()[0].get_text() == "total"


def test_cells_are_printed(release):
    lines = str(release["county"].sorted()).splitlines()
    assert lines[1].split() == ["county", "estimate", "±", "sd", "low", "high"]
    assert lines[-2] == f"… and {MANY - 40} more"
    assert "95 %" in lines[-1]
    assert lines[2].split()[0] == release["county"].top(1).labels[0][0]


LEVELLED = {"columns": ["low", "high"], "level": 0.8, "simultaneous": False}


def test_every_frame_says_its_level(release, tmp_path):
    table = release["sex", "age"]
    for source in (table, table.top(2), release.proportions(("sex", "age"), "sex")):
        rows = source.to_arrow(0.8)
        assert json.loads(rows.schema.metadata[b"gaussnoise"])["intervals"] == LEVELLED
        assert source.to_frame(0.8).schema.metadata == rows.schema.metadata
        frame = source.to_pandas(0.8)
        assert frame.attrs == {"intervals": LEVELLED, "private": True}
        assert frame.to_dict("list") == source.columns(0.8)
    parquet.write_table(table.to_arrow(0.8), tmp_path / "t.parquet")
    kept = parquet.read_schema(tmp_path / "t.parquet").metadata[b"gaussnoise"]
    assert json.loads(kept)["intervals"]["level"] == 0.8


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_frames_come_in_the_library_of_the_records(library):
    made = survey().simulate(people(library), np.random.default_rng(0))
    for source in (made["sex"], made["sex"].top(1)):
        frame = source.to_frame()
        assert type(frame) is library
        if library is pd.DataFrame:
            assert frame.attrs["intervals"]["level"] == 0.95
            assert frame.attrs["private"] is False
        else:
            assert frame.columns[-1] == "level"
            assert source.to_frame(0.8)["level"].unique().to_list() == [0.8]
            assert frame.drop("level").to_dict(as_series=False) == source.columns()
    for source in (made.ask("count of sex"), made.quantiles("age", [0.5])):
        frame = source.to_frame()
        if library is pd.DataFrame:
            assert frame.attrs["intervals"]["level"] == 0.95
        else:
            assert frame["level"].unique().to_list() == [0.95]
    assert type(made["sex"].nonnegative().to_pandas()) is pd.DataFrame


def test_pandas_is_asked_for_by_name():
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "from gaussnoise.tables.release.tidy import as_pandas\n"
        "import gaussnoise as gn\n"
        "try: as_pandas(None)\n"
        "except gn.errors.NotAvailableError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pandas is not installed; hint" in done.stdout, done.stderr


def test_notebooks_show_tables_and_escape_labels():
    odd = "<script>alert(1)</script>"
    schema = gn.Schema([gn.Attribute(odd, [odd, *map(str, range(50))])])
    plan = gn.plan(schema, 1, gn.zCDP(1))
    rows = pa.table({odd: [odd] * 40})
    made, simulated = plan.release(rows), plan.simulate(rows, np.random.default_rng(0))
    for source in (made[odd], made[odd].sorted(), made.proportions(odd), made.cdf(odd)):
        text = source._repr_html_()
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert "NOT PRIVATE" not in text
        assert "95 %" in text
        assert text.count("<tr>") - 1 + int(re.search(r"and (\d+) more", text)[1]) == 51
    assert "NOT PRIVATE" in simulated[odd]._repr_html_()
    first = re.search(r'<data value="([^"]*)"', made[odd]._repr_html_())[1]
    assert float(first) == made[odd].estimate[0]


def test_pictures_of_many_cells_show_both_ends(release):
    table = release["county"]
    axes = drawn(table.plot())
    names = [label.get_text() for label in axes.get_yticklabels()]
    own = [labels[0] for labels in table.sorted().labels]
    assert names == [*own[:20], f"… {MANY - 30} more", *own[-10:]]
    (dots,) = (line for line in axes.lines if line.get_marker() == "o")
    known = np.asarray(dots.get_xdata(), dtype=float)
    assert np.delete(known, 20).tolist() == [
        *table.sorted().estimate[:20],
        *table.sorted().estimate[-10:],
    ]
    assert np.isnan(known[20])


def test_pictures_have_the_intervals_of_their_level(release):
    table = release["sex"]
    low, high = table.confidence_interval(0.5)
    axes = drawn(table.plot(0.5))
    (lines,) = (each for each in axes.collections if isinstance(each, LineCollection))
    ends = np.array([segment[:, 0] for segment in lines.get_segments()])
    assert ends == pytest.approx(np.stack([low, high], axis=1))
    assert "50 % intervals" in axes.get_xlabel()


def test_cdfs_are_steps_in_bands_that_hold_together(release):
    cdf = release.cdf("age", given="sex")
    assert cdf.steps == (18, 40, 65, float("inf"))
    axes = drawn(cdf.plot())
    low, high = cdf.confidence_interval(simultaneous=True)
    for k, line in enumerate(axes.lines):
        assert line.get_drawstyle() == "steps-post"
        assert line.get_ydata()[:3].tolist() == cdf.estimate[k, :3].tolist()
        assert line.get_xdata()[:3].tolist() == [18, 40, 65]
        band = axes.collections[k].get_paths()[0].vertices[:, 1]
        assert band.min() == pytest.approx(low[k, :3].min())
        assert band.max() == pytest.approx(high[k, :3].max())
    assert "all together" in axes.get_ylabel()


def test_cdfs_of_names_have_their_names(release):
    axes = drawn(release.cdf("sex").plot())
    assert [label.get_text() for label in axes.get_xticklabels()] == ["up to F", "up to M"]


def test_shares_are_drawn_by_group(release):
    shares = release.proportions(("age", "sex"), given="age")
    axes = drawn(shares.plot())
    assert [label.get_text() for label in axes.get_xticklabels()] == ["F", "M"]
    for k, line in enumerate(axes.lines):
        assert line.get_ydata().tolist() == shares.estimate[k].tolist()
    assert axes.get_title() == "sex given age"


def test_tables_of_any_kind_have_a_picture(release):
    for source in (
        release["sex", "age"],
        release["age", "sex"],
        release["county", "sex"],
        release["sex", "county"],
        release.answers({"age": "ranges"}),
        release.answers({"county": "prefix"}),
        release.proportions(("sex", "county"), given="county"),
        release.proportions(("sex", "age"), given=("age", "sex")),
        release.proportions("county"),
        release["county"].top(7),
    ):
        figure = source.plot()
        assert drawn(figure)
        assert max(figure.get_size_inches()) < 20
        with pytest.raises(ParameterError, match="level"):
            source.plot(2)


def test_too_much_for_one_picture_is_refused_with_a_way_out(release):
    with pytest.raises(ParameterError, match="at most 40 cells, got 120; hint"):
        release["county"].sorted().plot()
    with pytest.raises(ParameterError, match="at most 20 groups of a CDF, got 120; hint"):
        release.cdf("sex", given="county").plot()


def test_pictures_of_simulations_are_labelled():
    made = survey().simulate(people(), np.random.default_rng(0))
    for source in (made["county"], made.cdf("age"), made.proportions(("sex", "age"), "sex")):
        assert "NOT PRIVATE" in source.plot().axes[0].get_title()
    assert str(made["sex"].top(1)).startswith("NOT PRIVATE")


def test_contrasts_are_drawn(release):
    pair = release.contrasts([release.cell(sex="F"), release.cell(sex="M")])
    axes = drawn(pair.plot(["women", "men"], 0.9))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["women", "men"]
    assert axes.lines[0].get_xdata().tolist() == pair.estimate.tolist()
    assert [label.get_text() for label in drawn(pair.plot()).get_yticklabels()] == ["1", "2"]
    for names in (["women"], "ab"):
        with pytest.raises(ParameterError, match="expected 2 names"):
            pair.plot(names)
