"""Tables whose cells would be smaller than their noise."""

import math

import numpy as np
import pandas as pd
import pytest

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.tables.planning.expected import expected_cells, expected_text, small_text

SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("town", [f"t{k}" for k in range(50)], other="others"),
        gn.Attribute("age", edges=range(0, 121, 2)),
        gn.Attribute("pay", clip=[0, 100]),
    ]
)


def test_a_table_is_small_if_its_mean_cell_is_less_than_its_half_width():
    planned = gn.plan(SCHEMA, ["sex", ("sex", "town")], gn.zCDP(0.01))
    half = planned.half_width("sex", "town")
    for rows, is_small in ((102 * half * 0.999, True), (102 * half * 1.001, False)):
        sex, both = expected_cells(planned, rows)
        assert (sex.cells, both.cells) == (2, 102)
        assert (sex.mean, both.mean) == (rows / 2, rows / 102)
        assert both.half_width == pytest.approx(half)
        assert (sex.is_small, both.is_small) == (False, is_small)
        said = small_text([sex, both])
        assert said.startswith("In 1 of 2 tables, the mean") if is_small else said == ""


def test_of_other_questions_the_counts_of_cells_are_meant():
    """The standard deviation of simulated counts is the reference, to six standard errors."""
    workload = [{"age": "prefix"}, ("sex", "pay"), "pay"]
    planned = gn.plan(SCHEMA, workload, gn.zCDP(0.1))
    found = expected_cells(planned, 1000)
    assert [table.name for table in found] == list(planned.entries)
    assert [table.cells for table in found] == [60, 2, 1]
    rows = pd.DataFrame({"sex": ["F"], "town": ["t0"], "age": [20], "pay": [0.0]})
    rng, draws = np.random.default_rng(0), 400
    drawn = [planned.simulate(rows, rng) for _ in range(draws)]
    for table, names in zip(found, [("age",), ("sex",), ()], strict=True):
        counts = np.array([release[names].estimate for release in drawn])
        deviation = math.sqrt(counts.var(axis=0).mean())
        error = 6 / math.sqrt(2 * draws)
        assert table.half_width == pytest.approx(1.96 * deviation, rel=error)


@pytest.mark.parametrize(
    ("base", "cells", "mean"),
    [
        ("state", 2, 450),  # 9 of 10 categories in two groups
        ({"kind": "bins", "widths": [3]}, 3, 300),
        ({"kind": "bins", "widths": [1, 3]}, 9, 100),
        ("prefix", 9, 100),
    ],
)
def test_groups_and_bins_are_the_cells_of_their_table(base, cells, mean):
    towns = [f"t{k}" for k in range(10)]
    levels = {"state": {"N": towns[:5], "S": towns[5:9]}}
    schema = gn.Schema([gn.Attribute("town", towns, groups=levels), gn.Attribute("age", range(9))])
    name = "town" if base == "state" else "age"
    planned = gn.plan(schema, [{name: base}], gn.zCDP(0.5))
    (found,) = expected_cells(planned, 1000 if base == "state" else 900)
    assert (found.cells, found.mean) == (cells, mean)
    if cells < 9:  # the answers themselves
        assert found.half_width == pytest.approx(1.96 * planned.deviations[0], rel=1e-4)
    assert not found.is_small


def test_tables_from_which_no_counts_of_cells_follow_are_left_out():
    schema = gn.Schema([gn.Attribute("age", range(12))])
    windows = {"age": {"kind": "windows", "width": 3}}
    planned = gn.plan(schema, [windows, ("age",)], gn.zCDP(0.5))
    assert [table.name for table in expected_cells(planned, 900)] == ["age"]


def test_the_text_marks_small_tables_and_says_whose_number_it_is():
    planned = gn.plan(SCHEMA, ["sex", ("sex", "town")], gn.zCDP(0.01))
    lines = expected_text(planned, 1000)
    assert "about 1,000 rows are counted, which the owner states" in lines[1]
    assert [line.endswith("  smaller than its noise") for line in lines[3:5]] == [False, True]
    assert lines[5].startswith("In 1 of 2 tables, the mean")
    assert len(expected_text(planned, 10**6)) == 5


@pytest.mark.parametrize("rows", [0, -1, math.nan, math.inf])
def test_a_number_of_rows_is_positive(rows):
    planned = gn.plan(SCHEMA, ["sex"], gn.zCDP(1))
    with pytest.raises(ParameterError, match="expected_rows: expected a positive number"):
        expected_cells(planned, rows)
