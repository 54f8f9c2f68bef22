"""What budgets mean, before one is chosen."""

import math

import numpy as np
import pytest
from scipy import stats

import gaussnoise as gn
from gaussnoise.errors import ParameterError
from gaussnoise.tables.planning.budgets import RHOS
from gaussnoise.text import no_less

SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("age", edges=[0, 18, 65, 120]),
        gn.Attribute("job", ["a", "b", "c"]),
    ]
)
ASKED = [("sex", "age"), ("sex", "job"), "age"]


@pytest.fixture(scope="module")
def found():
    return gn.budgets(SCHEMA, ASKED)


@pytest.mark.parametrize("rho", [0.003, 1.0])
@pytest.mark.parametrize("options", [{}, {"neighbors": "replace"}, {"rows_per_person": 3}], ids=str)
def test_errors_are_those_of_the_plan_at_that_budget(rho, options):
    found = gn.budgets(SCHEMA, ASKED, **options)
    planned = gn.plan(SCHEMA, ASKED, gn.zCDP(rho), **options)
    for kind in found.kinds:
        for name in kind.names:
            expected = planned.half_width(*name.split(" × "))
            assert found.half_width(kind, rho) == pytest.approx(expected, rel=1e-6)


def test_every_table_is_in_one_kind_and_kinds_differ(found):
    names = [name for kind in found.kinds for name in kind.names]
    assert sorted(names) == sorted(found.plan.entries)
    alike = gn.budgets(gn.Schema([gn.Attribute(f"a{i}", [1, 2]) for i in range(5)]), 2)
    assert [len(kind.names) for kind in alike.kinds] == [10]


def test_a_target_costs_what_the_plan_for_it_spends(found):
    for rows in (7, 50):
        spent = gn.plan(SCHEMA, ASKED, targets=rows).rho
        assert found.rho_within(rows) == pytest.approx(spent, rel=1e-6)
    assert found.rho_within(7) > 1.01 * gn.plan(SCHEMA, ASKED, targets=7.1).rho


@pytest.mark.parametrize("rho", RHOS)
def test_what_is_learnt_of_one_row_is_that_of_a_gaussian(found, rho):
    """The best test is the likelihood ratio of two normals whose means are √(2ρ) apart."""
    mu, z = math.sqrt(2 * rho), stats.norm
    threshold = z.isf(0.05)
    assert found.power(rho) == pytest.approx(z.sf(threshold - mu), rel=1e-6)
    event = z.isf(found.delta, loc=mu)  # has probability delta where the row is there
    without = z.sf(event)
    assert found.posterior(rho) == pytest.approx(found.delta / (found.delta + without), rel=1e-6)
    # no single output outside such an event gives a larger belief
    assert found.posterior(rho) >= 1 / (1 + math.exp(mu * mu / 2 - mu * event)) - 1e-12


def test_simulated_observers_are_no_surer_and_some_nearly_as_sure():
    """The belief after seeing a normal, with the row and prior one half, at chance 1 %."""
    found, rho = gn.budgets(SCHEMA, ASKED, delta=0.01), 0.1
    mu = math.sqrt(2 * rho)
    seen = np.random.default_rng(5).normal(mu, size=200_000)
    posterior = 1 / (1 + np.exp(mu * mu / 2 - mu * seen))
    assert np.mean(posterior > found.posterior(rho)) <= 0.01
    assert np.mean(posterior > found.posterior(rho) - 0.06) > 0.01


def test_epsilon_is_that_of_the_plan(found):
    planned = gn.plan(SCHEMA, ASKED, gn.zCDP(0.1))
    assert f"({no_less(found.epsilon(0.1), 4)}, 1e-06)-differential privacy" in str(planned)


def test_numbers_move_the_right_way_with_the_budget(found):
    for series in (found.epsilon, found.power, found.posterior):
        values = [series(rho) for rho in RHOS]
        assert values == sorted(values)
    assert 0.5 < found.posterior(RHOS[0])
    assert found.posterior(1e3) <= 1.0


def test_text_shows_every_budget_and_every_table(found):
    text = str(found)
    assert all(f"{rho:g}" in text for rho in RHOS)
    assert all(name in text for name in found.plan.entries)
    assert f"{found.half_width(found.kinds[0], 0.01):.4g}" in text
    assert "at most 91.0 % sure" in text
    html = found._repr_html_()
    assert html.count("<tr>") == html.count("</tr>") == 1 + 3 + 1 + len(found.kinds)
    assert "at most 91.0 % sure" in html


def test_percentages_are_never_rounded_down_nor_to_certainty():
    many = gn.budgets(SCHEMA, ASKED, rhos=[1.0, 5.0])
    assert "100.0 %" not in str(many)
    assert many.posterior(5.0) < 1


def test_names_are_escaped_in_html():
    odd = gn.Schema([gn.Attribute("<b>", [1, 2])])
    assert "<b>" not in gn.budgets(odd, 1)._repr_html_()


def test_many_kinds_are_thinned_between_the_best_and_the_worst():
    sizes = range(2, 32)
    schema = gn.Schema([gn.Attribute(f"a{n}", list(range(n))) for n in sizes])
    found = gn.budgets(schema, 1)
    text, order = str(found), sorted(found.kinds, key=lambda kind: kind.deviation)
    assert "… and 6 kinds of tables between these" in text
    assert f"\n{order[0].name} " in text
    assert f"\n{order[-1].name} " in text
    assert len(found.to_frame()) == 30 * len(RHOS)


def test_frames_hold_the_numbers(found):
    frame = found.to_frame("pandas")
    row = frame[(frame.rho == 0.1) & (frame.tables == "age")].iloc[0]
    assert row.half_width == pytest.approx(found.plan.half_width("age") / math.sqrt(0.1))
    assert row.posterior == found.posterior(0.1)


def test_what_needs_no_noise_costs_nothing():
    found = gn.budgets(SCHEMA, [()], neighbors="replace")
    assert found.rho_within(1) == 0
    assert "need no noise" in str(found)


@pytest.mark.usefixtures("quick_pictures")
def test_pictures_have_a_curve_for_every_kind(found):
    left, right = found.plot().axes
    assert len(left.lines) == len(found.kinds)
    assert [line.get_label().split(",")[0] for line in right.lines][:1] == [
        "surest that one row is there"
    ]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"rhos": []}, "increasing positive"),
        ({"rhos": [0.1, 0.01]}, "increasing positive"),
        ({"rhos": [0.0, 0.1]}, "increasing positive"),
        ({"rhos": [math.inf]}, "increasing positive"),
        ({"delta": 1.0}, "delta < 1"),
        ({"delta": 0}, "delta < 1"),
    ],
)
def test_bad_budgets_are_refused(arguments, part):
    with pytest.raises(ParameterError, match=part):
        gn.budgets(SCHEMA, 1, **arguments)


@pytest.mark.parametrize("rows", [0, -1, math.inf, "5"])
def test_targets_are_positive_numbers(found, rows):
    with pytest.raises(ParameterError, match="positive, finite"):
        found.rho_within(rows)
