"""The picture of the page of budgets."""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.app import budget_page
from gaussnoise.app.budget_page import best, made_up, mean_text
from gaussnoise.tables.planning.expected import expected_cells
from gaussnoise.tables.release.report.errors import error_text, errors_of_plan, means_of
from gaussnoise.tables.release.report.numbers import titles_of
from gaussnoise.tables.release.report.pages import plan_page

RNG = np.random.default_rng(0)
SCHEMA = gn.Schema([gn.Attribute("age", list(range(12)))])


def drawn(figure):
    """The lengths of the intervals of a figure, which are lines of their own colour."""
    ends = r'<path d="M ([\d.]+) [\d.]+ \nL ([\d.]+) [\d.]+ \n"[^>]*stroke: #1b6ca8'
    return [float(high) - float(low) for low, high in re.findall(ends, figure)]


def test_intervals_are_those_of_the_plan_beside_made_up_counts():
    wide = made_up(gn.plan(SCHEMA, ["age"], gn.zCDP(0.01)), 12_000)
    short = made_up(gn.plan(SCHEMA, ["age"], gn.zCDP(0.04)), 12_000)
    assert len(drawn(wide)) == len(drawn(short)) == 8
    assert "cell 1: 400, " in wide  # 1,000 in the mean of 12 cells
    assert "plus or minus 14 rows" in wide  # 1.96 / sqrt(2 rho) = 13.9, as in the table of the page
    assert "plus or minus 7.0 rows" in short
    for figure in (wide, short):
        assert "MADE-UP counts, not yours" in figure
        assert figure.count('role="img"') == figure.count("<title>") == 1
    assert 1.9 < drawn(wide)[0] / drawn(short)[0] < 2.1  # the scale is nearly that of the counts


def test_a_mean_count_beside_a_large_half_width_has_no_exponent():
    planned = gn.plan(SCHEMA, ["age"], gn.zCDP(1e-6))
    assert {mean_text(own) for own in expected_cells(planned, 1200)} == {"100, less than ± 1,386"}


def test_half_widths_of_means_are_those_of_sums_in_groups_of_the_expected_rows():
    pay = [gn.Attribute("pay", clip=[0, high]) for high in (1000, 10_000)]
    plans = [
        gn.plan(gn.Schema([SCHEMA.attributes[0], own]), [("age", "pay")], gn.zCDP(0.5))
        for own in pay
    ]
    half = re.compile(r"mean ± ([\d.,]+), in groups of some 1,000 rows")
    shown = (half.fullmatch(means_of(plan, 12_000)[0])[1].replace(",", "") for plan in plans)
    near, far = map(float, shown)
    assert far == pytest.approx(10 * near, rel=0.01)  # three digits are shown
    (said,) = re.findall(r"95 % ± ([\d,.]+)", str(plans[1]))
    assert far == pytest.approx(float(said.replace(",", "")) / 1000, rel=0.01)
    # between ends far from zero, a mean varies less than the sum of all numbers
    far_off = gn.Schema([gn.Attribute("pay", clip=[20_000, 50_000])])
    planned = gn.plan(far_off, ["pay"], gn.zCDP(0.5))
    half = float(re.search(r"± ([\d.]+)", means_of(planned, 1000)[0])[1])
    table = pa.table({"pay": [49_000.0] * 1000})
    means = [planned.simulate(table, RNG).ask("mean of pay").estimate.item() for _ in range(300)]
    assert half == pytest.approx(1.96 * np.std(means), rel=0.25)  # six of its standard errors
    assert means_of(gn.plan(SCHEMA, ["age"], gn.zCDP(0.5)), 12_000) == [""]


def test_half_widths_without_an_expected_number_of_rows_are_those_of_groups_of_100_and_1000():
    pay = gn.Attribute("pay", clip=[0, 6000], measured_in="EUR")
    planned = gn.plan(gn.Schema([SCHEMA.attributes[0], pay]), [("age", "pay")], gn.zCDP(0.5))
    (said,) = means_of(planned, None)
    few, many = (means_of(planned, 12 * rows)[0].split(" EUR")[0][5:] for rows in (100, 1000))
    assert said == f"mean {few} EUR in a group of 100 rows, {many} in a group of 1,000"


@pytest.mark.parametrize("value", [100.0, 3000.0, 5900.0])
@pytest.mark.parametrize("other", [None, "unknown"])
def test_no_mean_of_a_group_of_such_a_count_has_a_wider_interval(value, other):
    names = [gn.Attribute("town", ["A", "B"]), gn.Attribute("pay", clip=[0, 6000], other=other)]
    planned = gn.plan(gn.Schema(names), [("town", "pay")], gn.zCDP(0.5))
    (said,), rows = means_of(planned, 1161), 580  # 1161 in two towns, of three digits
    most = float(re.search(rf"± ([\d.]+), in groups of some {rows} rows", said)[1])
    table = pa.table({"town": ["A", "B"] * rows, "pay": [value] * (2 * rows)})
    widest = 0.0
    for _ in range(50):
        means = planned.simulate(table, RNG).means("pay", "town")
        low, high = means.confidence_interval()  # too far from the ends to be cut there
        widest = max(widest, ((high - low) / 2 * means.counts / rows).max())
    assert widest <= most
    assert value == 3000 or widest > 0.96 * most  # it is reached near the ends


def test_half_widths_beside_the_title_of_a_mean_are_those_of_its_counts_and_of_its_sums():
    schema = gn.Schema([SCHEMA.attributes[0], gn.Attribute("pay", clip=[0, 5000])])
    planned = gn.plan(schema, [("age", "pay"), "age"], gn.zCDP(0.5))
    shown = [error_text(own) for own in errors_of_plan(planned)]
    means = ({"kind": "moments", "degrees": [k]} for k in (0, 1))
    own = [1.96 * planned.answer_deviations({"age": None, "pay": base}).mean() for base in means]
    both = re.fullmatch(r"counts (± [\d.]+); sums (± [\d.,]+)", shown[0]).groups()
    for text, exact in zip((*both, shown[1]), (*own, own[0]), strict=True):
        assert 0.99 * exact < float(text[2:].replace(",", "")) < 1.11 * exact  # rounded up


@pytest.mark.parametrize(("total", "rows"), [(20_000, "556"), (9_999, "278"), (3, "1")])
def test_a_mean_and_the_count_of_its_cell_are_of_one_number_of_rows(total, rows):
    """The count is rounded to three digits, and never below one row."""
    names = [gn.Attribute("town", range(36)), gn.Attribute("pay", clip=[0, 9], measured_in="EUR")]
    planned = gn.plan(gn.Schema(names), [("town", "pay"), "town"], gn.zCDP(0.5))
    said, none = means_of(planned, total)
    assert re.fullmatch(rf"mean ± [\d.]+ EUR, in groups of some {rows} rows", said)
    assert none == ""
    if total > 36:
        assert {mean_text(own) for own in expected_cells(planned, total)} == {rows}


def test_means_of_groups_of_categories_are_of_more_rows():
    levels = {"state": {"N": list(range(6)), "S": list(range(6, 12))}}
    names = [
        gn.Attribute("county", list(range(12)), groups=levels),
        gn.Attribute("pay", clip=[0, 9]),
    ]
    planned = gn.plan(gn.Schema(names), [{"county": "state", "pay": None}], gn.zCDP(0.5))
    assert means_of(planned, 1000)[0].endswith("in groups of some 500 rows")


def test_the_distance_from_the_best_is_said_in_plain_words():
    assert "The best possible for Gaussian noise" in best(
        gn.plan(SCHEMA, ["age"], gn.zCDP(0.1)).gap
    )
    assert "at most 0.9 % larger than the least" in best(0.0081)  # rounded up


def test_no_page_draws_by_hand():
    sources = Path(budget_page.__file__).parent.glob("*.py")
    assert [p.name for p in sources if re.search("<svg|<path|<rect", p.read_text("utf-8"))] == []


def test_means_are_named_so_and_not_by_the_sums_that_they_are_made_of():
    pay = gn.Attribute("pay", clip=[0, 100])
    workload = [("age", "pay"), ("age",), {"age": "prefix"}]
    planned = gn.plan(gn.Schema([SCHEMA.attributes[0], pay]), workload, gn.zCDP(0.5))
    assert titles_of(planned) == [
        "Mean of pay by age (values above 100 count as 100)",
        "age",
        planned.entries[2],
    ]
    assert "count and sum" not in plan_page(planned)
