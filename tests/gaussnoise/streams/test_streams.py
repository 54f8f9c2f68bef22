"""Streams of tables: their answers and errors, what they protect, and what their folder
survives.
"""

import hashlib
import itertools
import json
import math
import os
import shutil
import stat
import warnings
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from scipy import stats

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.cli.app import run
from gaussnoise.errors import (
    BudgetError,
    DataError,
    DomainTooLargeError,
    LedgerError,
    OutputError,
    ParameterError,
    StreamError,
    StreamWarning,
)
from gaussnoise.privacy import AbstractPrivacy
from gaussnoise.privacy.sampler import noise_stream
from gaussnoise.streams import Stream, Ticks, measure
from gaussnoise.streams.files import rules_of
from gaussnoise.streams.one_machine import OneMachine
from gaussnoise.tables.counting import persons

SCHEMA = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65, 120])])


def planned(ticks=3, workload=1, rho=0.5, schema=SCHEMA, **options):
    over = ticks if isinstance(ticks, Ticks) else Ticks(ticks)
    return gn.plan(schema, workload, gn.zCDP(rho), over=over, **options)


def rows(seed, count=40):
    rng = np.random.default_rng(seed)
    return pa.table({"sex": rng.choice(["F", "M"], count), "age": rng.integers(0, 120, count)})


class Nothing:
    """Noise that is zero."""

    def take(self, count):
        return np.zeros(count, dtype=np.int64)


def counted(plan, tables):
    return [
        measure.counted(plan.one_tick, plan.over, t, table, "refuse")
        for t, table in enumerate(tables, 1)
    ]


def numbers(plan, tables):
    """Return all integers that are measured before noise, of all ticks."""
    exact = counted(plan, tables)
    found = [measure.measured(plan, exact[: t + 1], Nothing()) for t in range(len(tables))]
    return np.array(
        [x for noisy in found for values in noisy.values() for x in values], dtype=object
    )


# The answers.


PLANS = [
    planned(workload=2),
    planned(Ticks(3, 3), workload=[("sex", "age"), ("age",)], neighbors="replace"),
    planned(workload=[{"age": "prefix"}, {"sex": "identity", "age": "ranges"}], p=math.inf),
    planned(Ticks(3, 2, apart=2, workload="both"), workload=[()], rows_per_person=2),
]


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.neighbors} {plan.entries}")
def test_without_noise_every_tick_is_counted_exactly(plan):
    tables = [rows(t, 10 * (t + 1)) for t in range(3)]
    exact, noisy = counted(plan, tables), []
    for t in range(3):
        noisy.append(measure.measured(plan, exact[: t + 1], Nothing()))
        estimates = measure.estimated(plan, noisy, int(next(iter(exact[t].values())).sum()))
        for S, table in estimates.items():
            np.testing.assert_allclose(table, exact[t][S], atol=1e-9)


def test_counts_beyond_floats_are_exact_integers():
    plan, many = planned(workload=[("sex",)]), 10**17
    ticks = [{(0,): np.array([many + t, 3 * t])} for t in range(3)]
    noisy = measure.measured(plan, ticks, Nothing())
    C, s = plan.strategy.matrix[2].tolist(), plan.query.multipliers
    assert noisy[()] == [int(s[()]) * sum(C[t] * (many + 4 * t) for t in range(3))]
    assert noisy[0,] == [int(s[0,]) * sum(C[t] * (many - 2 * t) for t in range(3))]


@pytest.fixture(scope="module")
def drawn():
    """Return estimates of all cells in all ticks from many streams, by floating-point noise:
    (draws, ticks, cells).
    """
    plan = planned(Ticks(3, 2, apart=1), workload=[("sex", "age"), ("age",)])
    exact = counted(plan, [rows(t) for t in range(3)])
    rng, found = np.random.default_rng(0), []
    draws = 800

    def draw(count):
        return np.rint(rng.normal(scale=plan.scale, size=count)).astype(np.int64)

    with noise_stream(draw, draws * 3 * plan.query.count, 1) as noise:
        for _ in range(draws):
            noisy, ticks = [], []
            for t in range(3):
                noisy.append(measure.measured(plan, exact[: t + 1], noise))
                ticks.append(
                    np.concatenate(
                        [table.ravel() for table in measure.estimated(plan, noisy, 0).values()]
                    )
                )
            found.append(ticks)
    truth = np.array(
        [np.concatenate([tick[S].ravel() for S in plan.tables.subsets]) for tick in exact]
    )
    return plan, truth, np.array(found)


def whitened(found, truth, time, cells):
    """Return squared lengths of vectors that should be standard normal, and their dimension."""
    values, vectors = np.linalg.eigh(np.kron(time, cells))
    kept = values > 1e-9 * values.max()
    error = (found - truth).reshape(len(found), -1) @ vectors[:, kept] / np.sqrt(values[kept])
    return error


def test_estimates_are_unbiased_with_the_covariance_that_is_stated(drawn):
    plan, truth, found = drawn
    cells = np.asarray(plan.covariance([1.0]))
    error = whitened(found, truth, plan.time_covariance, cells)
    n, d = error.shape
    assert d == 3 * 6
    mean = n * np.square(error.mean(axis=0)).sum()
    assert 1e-9 < stats.chi2.sf(mean, d)
    total = np.square(error).sum()
    assert 1e-9 < stats.chi2.cdf(total, n * d) < 1 - 1e-9
    products = (error.T @ error / math.sqrt(n))[np.triu_indices(d, 1)]
    assert np.abs(products).max() < stats.norm.isf(1e-9 / len(products))


def test_a_wrong_covariance_over_time_is_caught(drawn):
    plan, truth, found = drawn
    cells = np.asarray(plan.covariance([1.0]))
    error = whitened(found, truth, np.diag(np.diagonal(plan.time_covariance)), cells)
    n, d = error.shape
    products = (error.T @ error / math.sqrt(n))[np.triu_indices(d, 1)]
    assert np.abs(products).max() > stats.norm.isf(1e-9 / len(products))


def test_totals_are_sums_and_tables_agree(drawn):
    plan, _, _ = drawn
    out = plan.simulate([rows(t) for t in range(3)], np.random.default_rng(1))
    assert len(out) == 3
    for names in plan.marginals:
        sums = sum(out.period(t)[names].estimate for t in (1, 2, 3))
        np.testing.assert_allclose(out.total()[names].estimate, sums, rtol=0, atol=1e-9)
        later = out.total(3)[names].estimate - out.total(1)[names].estimate
        np.testing.assert_allclose(out.window(2, 3)[names].estimate, later, atol=1e-9)
    for release in (out.period(2), out.total(), out.window(2, 3), out.combined([1, -2, 0.5])):
        np.testing.assert_allclose(
            release["sex", "age"].estimate.sum(axis=0), release["age"].estimate, atol=1e-9
        )
        assert not release.private
        assert release.rho_charged == plan.rho_charged


@pytest.mark.parametrize(
    "weights", [[1.0], [1, 1, 1], [0, 1, 1], [-1, 0, 1], [0.5, -2, 0.25]], ids=str
)
def test_deviations_of_combinations_follow_from_the_covariance_over_time(weights):
    plan = planned(Ticks(3, 2, apart=1), workload=2)
    out = plan.simulate([rows(t) for t in range(3)], np.random.default_rng(1)).combined(weights)
    w = np.pad(np.array(weights, dtype=float), (0, 3 - len(weights)))
    first = plan.standard_deviation("sex", "age", ticks=(1, 1))
    expected = first * math.sqrt(w @ plan.time_covariance @ w)
    np.testing.assert_allclose(out["sex", "age"].standard_deviation, expected, rtol=1e-9)
    assert out.contrast({("sex",): [1, 0]}).standard_deviation == pytest.approx(
        float(out["sex"].standard_deviation[0])
    )


def test_contrasts_between_ticks_know_their_covariance():
    plan = planned(workload=2)
    out = plan.simulate([rows(t) for t in range(3)], np.random.default_rng(1))
    women, young = {("sex",): [1, 0]}, {("sex", "age"): [[1, 0, 0], [1, 0, 0]]}
    change = out.contrast({3: women, 1: {("sex",): [-1, 0]}})
    assert change.estimate == pytest.approx(out.combined([-1, 0, 1])["sex"].estimate[0])
    assert change.standard_deviation == pytest.approx(
        out.combined([-1, 0, 1])["sex"].standard_deviation[0]
    )
    mixed = out.contrast({1: women, 2: young})
    cells = np.asarray(plan.covariance([1.0]))
    a, b = np.array([1, 1, 1, 0, 0, 0]), np.array([1, 0, 0, 1, 0, 0])
    V = plan.time_covariance
    expected = V[0, 0] * a @ cells @ a + 2 * V[0, 1] * a @ cells @ b + V[1, 1] * b @ cells @ b
    assert mixed.standard_deviation == pytest.approx(math.sqrt(expected))


def test_under_replacement_numbers_of_rows_are_exact():
    plan = planned(Ticks(3, 2, apart=1), workload=2, neighbors="replace")
    out = plan.simulate([rows(t, 10 + t) for t in range(3)], np.random.default_rng(1))
    assert [float(out.period(t)[()].estimate) for t in (1, 2, 3)] == [10, 11, 12]
    assert float(out.window(2, 3)[()].estimate) == 23
    assert float(out.total()[()].standard_deviation) == 0
    with pytest.raises(ParameterError, match="integer"):
        out.combined([0.5])


# The protection.


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize(("reports", "apart"), [(1, 1), (2, 2), (3, 1)])
def test_no_person_moves_more_than_is_charged(neighbors, reports, apart):
    """Every person by brute force: any rows in any ticks that the plan allows; the bound is
    attained by one row in all of them.
    """
    plan = planned(
        Ticks(3, reports, apart=apart), workload=[("sex", "age"), ("sex",)], neighbors=neighbors
    )
    cells = [(sex, age) for sex in "FM" for age in (5, 30, 70)]

    def table(kept):
        sexes, ages = [c[0] for c in kept], [c[1] for c in kept]
        return pa.table({"sex": pa.array(sexes, pa.string()), "age": pa.array(ages, pa.int64())})

    empty = [table([])] * 3
    unit = {}  # the change of all measurements by one row in one tick
    for t, cell in itertools.product(range(3), cells):
        unit[t, cell] = numbers(plan, [table([cell]) if s == t else empty[s] for s in range(3)])
    changes = {t: [unit[t, c] for c in cells] for t in range(3)}
    if neighbors == "replace":
        changes = {
            t: [unit[t, c] - unit[t, d] for c in cells for d in cells if c != d] for t in range(3)
        }
    most = 0
    for k in range(1, reports + 1):
        for ticks in itertools.combinations(range(3), k):
            if all(b - a >= apart for a, b in itertools.pairwise(ticks)):
                # all people with one or two reports; with three, those with the same rows in all
                # ticks
                own = [changes[t] for t in ticks]
                for person in itertools.product(*own) if k < 3 else zip(*own, strict=True):
                    most = max(most, int(np.square(sum(person)).sum()))
    charged = plan.query.query.sensitivity_squared
    assert most <= charged
    assert most >= charged * (
        1 - 1e-5
    )  # all but what rounding to integers leaves below zero in the Gram matrix
    assert plan.rho_charged <= plan.rho
    assert plan.scale**2 * 2 * plan.rho == pytest.approx(charged, rel=1e-6)


SIGNED = {"schema": gn.Schema([gn.Attribute("sex", ["F", "M"])]), "workload": [("sex",)]}


def signed(*signs_and_cells):
    """Return rows like ``+F`` and ``-M``."""
    signs = [1 if own[0] == "+" else -1 for own in signs_and_cells]
    cells = [own[1] for own in signs_and_cells]
    return pa.table({"sex": pa.array(cells, pa.string()), "sign": pa.array(signs, pa.int64())})


def test_no_person_with_corrections_moves_more_than_is_charged():
    """Every person by brute force: at most two rows of any sign, in at most two of three ticks."""
    plan = planned(Ticks(3, 2, corrections="sign"), rows_per_person=2, **SIGNED)
    rows = ["+F", "-F", "+M", "-M"]
    own = [h for n in (1, 2) for h in itertools.combinations_with_replacement(rows, n)]
    moved = {}
    for t, history in itertools.product(range(3), own):
        tables = [signed(*history) if s == t else signed() for s in range(3)]
        moved[t, history] = numbers(plan, tables)
    most = max(
        int(np.square(moved[s, one] + moved[t, two]).sum())
        for s, t in ((0, 1), (0, 2), (1, 2))
        for one, two in itertools.product(own, own)
    )
    charged = 4 * plan.query.query.sensitivity_squared  # of two rows
    assert charged * (1 - 1e-5) <= most <= charged
    more = moved[0, ("+F", "+F")] + moved[1, ("+F", "+F")] + moved[2, ("+F", "+F")]
    assert int(np.square(more).sum()) > charged  # a third tick would be seen


def test_a_changed_row_of_persons_with_one_row_is_said_to_be_two(tmp_path):
    """The plan warns and says it, and brute force finds no larger loss than it says."""
    over = Ticks(3, 2, corrections="sign")
    said = "that person's loss is up to four times this rho (rows_per_person=2 keeps it within rho)"
    with pytest.warns(StreamWarning, match="comes again, changed, in the same tick"):
        plan = planned(over, **SIGNED)
    assert said in " ".join(str(plan).split())
    assert said not in " ".join(str(planned(over, rows_per_person=2, **SIGNED)).split())
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a stream that is read again was planned before
        plan.start(tmp_path / "s")
        assert said in " ".join(str(Stream.open(tmp_path / "s").plan).split())
    empty, changed = signed(), signed("-F", "+M")
    moved = [numbers(plan, [changed if s == t else empty for s in range(3)]) for t in range(3)]
    most = max(int(np.square(moved[s] + moved[t]).sum()) for s, t in ((0, 1), (0, 2), (1, 2)))
    once = plan.query.query.sensitivity_squared
    assert once < most <= 4 * once


def test_corrections_put_totals_right(tmp_path):
    """Counts without noise, and totals with it; folders are read again and checked."""
    over = Ticks(3, 2, corrections="sign", period="week", late="carry")
    plan = planned(over, rows_per_person=2, rho=100.0, **SIGNED)
    weeks = [["+F"] * 300, ["-F", "+M"] * 200, ["-M"] * 100]
    tables = [
        signed(*own).append_column("week", pa.array([t] * len(own)))
        for t, own in enumerate(weeks, 1)
    ]
    counts = [own[(0,)].tolist() for own in counted(plan, tables)]
    assert counts == [[300, 0], [-200, 200], [0, -100]]
    stream = plan.start(tmp_path / "s")
    for t, table in enumerate(tables, 1):
        stream.tick(table, number=t)
        stream = Stream.open(tmp_path / "s")
    assert stream.plan.over.corrections == "sign"
    assert "Corrections of earlier ticks are not counted" in rules_of(Ticks(3))[3]
    assert rules_of(over)[3].startswith("Rows with -1 in column 'sign' take back earlier ones")
    total = stream.total()["sex"]
    assert np.abs((total.estimate - [100, 100]) / total.standard_deviation).max() < 7
    said = "rows with -1 in column 'sign' are subtracted"
    assert said in " ".join(str(stream.plan).split())
    assert said in (tmp_path / "s" / "ticks" / "0003" / "summary.txt").read_text(encoding="utf-8")
    assert not [line for line in verifier.verified(tmp_path / "s") if "FAILED" in line]
    for bad in (2, 0, None):
        table = pa.table({"sex": ["F"], "sign": pa.array([bad], pa.int64()), "week": [3]})
        with pytest.raises(DataError, match="'sign'"):
            measure.counted(plan.one_tick, over, 3, table, "refuse")


def test_corrections_that_may_not_be_of_counted_rows_are_refused():
    with pytest.raises(ParameterError, match="reports=2 or more with corrections="):
        Ticks(3, corrections="sign")
    with pytest.raises(ParameterError, match="corrections to be a column's name"):
        Ticks(3, 2, corrections="")
    own = Ticks(3, 2, corrections="sign")
    for options in ({"person": "who"}, {"neighbors": "replace"}):
        with pytest.raises(ParameterError, match=r"corrections=.* cannot be combined with person="):
            planned(own, **options)
    with pytest.raises(ParameterError, match="a corrections column beside the attributes"):
        planned(Ticks(3, 2, corrections="sex"))
    with pytest.raises(ParameterError, match="different columns for period and corrections"):
        Ticks(3, 2, corrections="week", period="week")


def test_rows_per_person_and_other_guarantees_are_paid_for():
    one, three = planned(5), planned(5, rows_per_person=3)
    deviations = [plan.standard_deviation("sex", ticks=(1, 5)) for plan in (one, three)]
    assert deviations[1] == pytest.approx(3 * deviations[0], rel=1e-5)
    assert three.rho_charged <= 0.5
    approximate = gn.plan(SCHEMA, 1, gn.ApproxDP(1.0, 1e-6), over=Ticks(5))
    assert approximate.rho == gn.ApproxDP(1.0, 1e-6).to_zcdp(approximate.integers, 2.0**29).rho
    assert approximate.integers == 5 * approximate.query.count
    assert approximate.scale >= 2.0**29


def of_person(history, others=(("a", "F"), ("a", "M"), ("b", "M"), ("b", "M"))):
    """Return rows of others, and of one person."""
    who, sex = zip(*others, *(("mallory", s) for s in history), strict=True)
    return pa.table({"who": list(who), "sex": list(sex), "week": [1] * len(who)})


PERSONS = gn.Schema([gn.Attribute("sex", ["F", "M"])])


def test_a_person_of_any_rows_moves_no_more_than_is_charged(monkeypatch):
    """All histories of up to three rows in the ticks that the plan allows, for known keys: the
    bound is attained and never exceeded.
    """
    keys = itertools.cycle([bytes([k]) * 16 for k in range(3)])
    monkeypatch.setattr(persons.secrets, "token_bytes", lambda size: next(keys))
    options = {"schema": PERSONS, "rows_per_person": 2, "person": "who"}
    plan = planned(Ticks(3, 2, apart=2), workload=[("sex",)], **options)
    own = [h for n in range(4) for h in itertools.combinations_with_replacement("FM", n)]
    without = numbers(plan, [of_person("")] * 3)
    most = 0
    for first, third in itertools.product(own, own):
        found = numbers(plan, [of_person(h) for h in (first, "", third)])
        most = max(most, int(np.square(found - without).sum()))
    charged = plan.query.query.sensitivity_squared * 2**2
    assert charged * (1 - 1e-5) <= most <= charged
    # the negative control: three reports, and rows without a limit
    found = numbers(plan, [of_person("FFF")] * 3)
    assert int(np.square(found - without).sum()) > charged
    trusted = planned(Ticks(3, 2, apart=2), workload=[("sex",)], schema=PERSONS, rows_per_person=2)
    change = numbers(trusted, [of_person("FFF"), of_person(""), of_person("FFF")]) - without
    assert int(np.square(change).sum()) > charged


def test_streams_of_persons_cost_what_the_guarantee_costs_and_say_what_is_counted(tmp_path):
    options = {"schema": PERSONS, "workload": [("sex",)], "rows_per_person": 2}
    trusted, bounded = planned(3, **options), planned(Ticks(3, 1), person="who", **options)
    assert bounded.rho_charged == trusted.rho_charged
    assert bounded.request_sha256 != trusted.request_sha256
    stream = bounded.start(tmp_path / "s", on_outside="drop")
    total = stream.tick(of_person("F" * 5000), number=1)
    assert np.abs(total["sex"].estimate - [3, 3]).max() < 9 * total["sex"].standard_deviation.max()
    again = Stream.open(tmp_path / "s")
    assert again.plan.person == "who"
    again.tick(of_person("M"), number=2)
    assert "at most 2 rows of each person in a tick" in str(bounded)
    assert "one person (column 'who')" in bounded.privacy_unit
    said = (tmp_path / "s" / "ticks" / "0001" / "summary.txt").read_text("utf-8")
    assert "at most 2 rows of each person in a tick" in said
    published = [p for p in (tmp_path / "s").rglob("*.json") if "private" not in p.parts]
    assert not any("mallory" in p.read_text("utf-8") for p in published)
    kept = "".join(p.read_text("utf-8") for p in (tmp_path / "s" / "private").glob("*.json"))
    assert "mallory" not in kept
    assert "key" not in kept


def test_rows_of_another_tick_refuse_it_for_all_rows_left_out():
    over = Ticks(3, 1, period="week")
    plan = planned(over, workload=[("sex",)], schema=PERSONS, person="who")
    late = of_person("F" * 50)
    weeks = pa.array([2] * (len(late) - 1) + [1])
    late = late.set_column(late.column_names.index("week"), "week", weeks)
    for _ in range(5):
        with pytest.raises(DataError, match="rows of tick 2 alone, got earlier ones"):
            measure.counted(plan.one_tick, over, 2, late, "drop")


def test_how_often_a_person_reports_is_said_where_persons_are_known(tmp_path, capsys):
    options = {"workload": [("sex",)], "schema": PERSONS}
    with pytest.raises(ParameterError, match=r"reports=k\) with person="):
        planned(5, person="who", **options)
    every = planned(Ticks(5, 5), person="who", **options)
    once, unsaid = planned(Ticks(5, 1), person="who", **options), planned(5, **options)
    at_once, at_five = (plan.standard_deviation("sex", ticks=(1, 5)) for plan in (once, every))
    assert at_once < at_five
    assert unsaid.standard_deviation("sex", ticks=(1, 5)) == at_once
    assert (repr(Ticks(5)), Ticks(5).as_dict()) == (repr(Ticks(5, 1)), Ticks(5, 1).as_dict())
    start = [
        "stream",
        "start",
        "-o",
        str(tmp_path / "s"),
        "-s",
        str(tmp_path / "s.toml"),
        "-m",
        "1",
    ]
    start += ["--rho", "0.5", "--ticks", "5", "--person", "who"]
    (tmp_path / "s.toml").write_text(PERSONS.to_toml())
    assert run(start) == 1
    assert "--reports K with --person" in capsys.readouterr().err
    assert run([*start, "--reports", "5"]) == 0
    assert Stream.open(tmp_path / "s").plan.over.reports == 5


def test_a_stream_of_one_tick_is_a_release():
    plan = planned(1, workload=2)
    alone = gn.plan(SCHEMA, 2, gn.zCDP(0.5))
    ours, theirs = (
        plan.standard_deviation("sex", "age", ticks=(1, 1)),
        alone.standard_deviation("sex", "age"),
    )
    assert ours == pytest.approx(theirs, rel=1e-6)


# The folder.


@pytest.fixture(params=[False, True], ids=["plain", "ledger"])
def running(request, tmp_path):
    """A stream of three ticks, two of them done."""
    options = {}
    if request.param:
        options = {"ledger": gn.Ledger.create(tmp_path / "ledger", gn.zCDP(0.5)), "id": "weekly"}
    stream = planned().start(tmp_path / "stream", **options)
    for t in (1, 2):
        stream.tick(rows(t), number=t)
    return stream


def public_text(stream):
    files = [
        p for p in stream.path.rglob("*") if p.is_file() and stream.state.private not in p.parents
    ]
    return "\n".join(p.read_text(encoding="utf-8") for p in files)


def test_a_stream_goes_on_where_it_was(running):
    again = Stream.open(running.path)
    assert len(again) == 2
    np.testing.assert_array_equal(again.plan.strategy.matrix, running.plan.strategy.matrix)
    assert again.plan.rho_charged == running.plan.rho_charged
    before = [running.total(t)["sex"].estimate.tolist() for t in (1, 2)]
    third = again.tick(rows(3), number=3)
    np.testing.assert_allclose(third["sex"].estimate, again.total(3)["sex"].estimate)
    assert [again.total(t)["sex"].estimate.tolist() for t in (1, 2)] == before
    truth = np.array([sum(np.sum(np.array(rows(t)["sex"]) == s) for t in (1, 2, 3)) for s in "FM"])
    assert (np.abs(third["sex"].estimate - truth) < 8 * third["sex"].standard_deviation).all()
    with pytest.raises(ParameterError, match="from 1 to 3, the number of ticks"):
        again.tick(rows(4), number=4)
    with pytest.raises(StreamError, match=r"number=3 reads the last tick again$"):
        again.tick(rows(4))


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.neighbors} {plan.entries}")
def test_every_kind_of_plan_goes_on_from_its_folder(plan, tmp_path):
    stream = plan.start(tmp_path / "stream", format="parquet")
    first = stream.tick(rows(1), number=1)
    again = Stream.open(stream.path)
    assert again.plan.scale == plan.scale
    assert again.plan.query.multipliers == plan.query.multipliers
    second = again.tick(rows(2), number=2)
    names = plan.marginals[0]
    np.testing.assert_array_equal(again.total(1)[names].estimate, first[names].estimate)
    truth = sum(
        np.asarray(tick[plan.tables.subsets[0]]) for tick in counted(plan, [rows(1), rows(2)])
    )
    assert (np.abs(second[names].estimate - truth) < 8 * second[names].standard_deviation).all()


def test_a_tick_that_is_asked_for_again_is_read_again(running):
    assert (
        running.tick(rows(99), number=1)["sex"].estimate.tolist()
        == running.total(1)["sex"].estimate.tolist()
    )
    assert len(running) == 2


def test_what_becomes_of_a_tick_does_not_depend_on_counts_of_another(tmp_path):
    """Rows that count as those of the tick before, and one other row, have the same outcome."""
    for name, count in (("same", 40), ("other", 41)):
        stream = planned().start(tmp_path / name)
        assert stream.tick(rows(1)).times == "tick 1"  # the first one needs no number
        with pytest.raises(StreamError, match="number=1 reads the last tick again, number=2"):
            stream.tick(rows(1, count))
        assert len(stream) == 1
        assert [p.name for p in stream.state.private.glob("exact*")] == ["exact-counts-0001.json"]
        assert stream.tick(rows(1, count), number=2).times == "ticks 1 to 2"
        found = json.loads((stream.state.private / "exact-counts-0002.json").read_text())
        assert found["rows"] == count


def written(path, table):
    pa.csv.write_csv(table, path)
    return path


def test_a_file_that_an_earlier_tick_counted_is_refused_by_its_identity(tmp_path):
    stream = planned(9).start(tmp_path / "stream")
    first, same = (written(tmp_path / name, rows(1)) for name in ("first.csv", "same.csv"))
    stream.tick(first, number=1)
    stream.tick(first, number=1)  # is read again
    os.utime(same, ns=(0, first.stat().st_mtime_ns + 1))
    stream.tick(same, number=2)  # the same rows, of another file
    private = stream.state.private
    before = {path: path.read_bytes() for path in private.rglob("*")}
    with pytest.raises(StreamError, match=r"first.csv' was counted at tick 1 .*number=1 reads"):
        stream.tick(first, number=3)
    assert {path: path.read_bytes() for path in private.rglob("*")} == before
    assert len(stream) == 2
    with pytest.warns(StreamWarning, match=r"first.csv' was counted at tick 1 .* count twice"):
        stream.tick(first, number=3, same_file=True)
    moved = first.rename(tmp_path / "moved.csv")
    with pytest.raises(StreamError, match=r"same.csv' \(and 1 more\) was counted"):
        stream.tick([same, moved], number=4)
    stream.tick(written(first, rows(1)), number=4)  # the old name, of new rows
    with pytest.raises(StreamError, match=r"moved\.csv' was counted at tick 3"):
        stream.tick(moved, number=5)
    (private / "files.json").write_text("[1]")
    stream.tick(moved, number=5)  # a damaged note only spares no mistakes
    stream.tick(rows(2), number=6)
    (kept,) = private.glob("files*")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "first.csv" not in public_text(stream)


def test_a_tick_that_was_refused_has_counted_no_file(tmp_path):
    stream = planned().start(tmp_path / "stream")
    bad, good = pa.table({"sex": ["X"], "age": [1]}), rows(1)
    file = written(tmp_path / "bad.csv", bad)
    with pytest.raises(DataError):
        stream.tick(file, number=1)
    stream.tick(good, number=1)
    stream = Stream.open(stream.path)
    with pytest.raises(DataError):  # not for a file that was counted
        stream.tick(file, number=2)


def test_ticks_cannot_be_left_out(running):
    stream = planned(5).start(running.path.parent / "another")
    with pytest.raises(StreamError, match="expected tick 1 next, got 2"):
        stream.tick(rows(1), number=2)
    for number in (0, 6, "1", True):
        with pytest.raises(ParameterError, match="from 1 to 5"):
            stream.tick(rows(1), number=number)


def test_files_of_a_tick_can_be_read_without_the_plan(running):
    import pyarrow.csv

    folder = running.path / "ticks" / "0002"
    record = json.loads((folder / "release.json").read_text())
    assert (record["tick"], record["ticks"]["n"], record["rho_of_all_ticks"]) == (
        2,
        3,
        running.plan.rho_charged,
    )
    assert "one row" in record["participation"]
    for what, release in (("cumulative", running.total(2)), ("period", running.period(2))):
        entry = record[what][0]
        table = pyarrow.csv.read_csv(folder / what / entry["file"])
        np.testing.assert_allclose(
            table["estimate"], release[tuple(entry["attributes"])].estimate.ravel()
        )
        np.testing.assert_allclose(
            table["standard_deviation"],
            release[tuple(entry["attributes"])].standard_deviation.ravel(),
            rtol=1e-9,
        )
    assert "Tick 2 of 3" in (folder / "summary.txt").read_text()


def test_the_rows_of_one_tick_are_read_from_its_folder_alone(running, tmp_path):
    every = running.tables.period(2)
    copy = shutil.copytree(running.path, tmp_path / "copy")
    shutil.rmtree(copy / "ticks" / "0001" / "period")
    alone = gn.streams.Stream.open(copy).period(2)
    for names in running.plan.marginals:
        np.testing.assert_array_equal(alone[names].estimate, every[names].estimate)
    np.testing.assert_array_equal(alone[()].standard_deviation, every[()].standard_deviation)
    assert alone.over == every.over


def test_exact_counts_are_kept_apart_and_for_the_owner_alone(running):
    private = running.state.private
    files = sorted(private.glob("exact-counts-*.json"))
    assert [file.name for file in files] == ["exact-counts-0001.json", "exact-counts-0002.json"]
    assert stat.S_IMODE(os.stat(private).st_mode) == 0o700
    assert {stat.S_IMODE(os.stat(file).st_mode) for file in files} == {0o600}
    assert "NOT PRIVATE" in files[0].read_text()
    text = public_text(running)
    assert not [
        f for f in files if hashlib.sha256(f.read_bytes()).hexdigest() in text
    ]  # its counts can be guessed from a digest
    assert str(private) not in text
    shutil.rmtree(private)
    assert Stream.open(running.path).total()["sex"].estimate.shape == (
        2,
    )  # what is public can be read without them
    with pytest.raises(StreamError, match="missing"):
        Stream.open(running.path).tick(rows(3), number=3)


def test_nothing_private_is_in_messages(tmp_path):
    canary = "canary-7391"
    stream = planned().start(tmp_path / "stream")
    with pytest.raises(DataError) as caught:
        stream.tick(pa.table({"sex": ["F", canary], "age": [1, 2]}))
    assert canary not in repr(caught.value) + repr(caught.value.__context__) + repr(
        caught.value.__cause__
    )
    assert len(stream) == 0
    assert not list(stream.state.private.glob("exact*"))
    assert stream.tick(rows(1)).times == "tick 1"


def damaged_private(stream):
    file = stream.state.private / "exact-counts-0002.json"
    content = json.loads(file.read_text())
    content["counts"][0][0] += 1
    file.write_text(json.dumps(content))


def changed_first(stream):
    file = stream.state.private / "exact-counts-0001.json"
    content = json.loads(file.read_text())
    content["counts"][0][0] += 1
    content["counts"][0][1] -= 1
    file.write_text(json.dumps(content))


def older_private(stream):
    (stream.state.private / "exact-counts-0002.json").unlink()


def missing_private(stream):
    (stream.state.private / "exact-counts-0001.json").unlink()


def older_public(stream):
    shutil.rmtree(stream.path / "ticks" / "0001")


def changed_public(stream):
    file = stream.path / "ticks" / "0001" / "release.json"
    file.write_text(file.read_text().replace('"tick": 1', '"tick":  1'))


def changed_plan(stream):
    file = stream.path / "stream.json"
    file.write_text(file.read_text() + "\n")


def other_measurements(stream):
    file = stream.path / "ticks" / "0002" / "release.json"
    record = json.loads(file.read_text())
    record["measurements_sha256"] = "0" * 64
    file.write_text(json.dumps(record))


DAMAGES = [
    damaged_private,
    changed_first,
    older_private,
    missing_private,
    older_public,
    changed_public,
    changed_plan,
    other_measurements,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_folder_that_was_changed_does_not_go_on(running, damage):
    damage(running)
    with pytest.raises((StreamError, LedgerError)):
        Stream.open(running.path).tick(rows(3), number=3)
    assert not (running.path / "ticks" / "0003").exists()


def test_an_older_copy_of_the_whole_folder_is_refused_under_a_ledger(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(0.5))
    stream = planned().start(tmp_path / "stream", ledger=ledger, id="weekly")
    stream.tick(rows(1), number=1)
    shutil.copytree(stream.path, tmp_path / "copy")
    stream.tick(rows(2), number=2)
    shutil.rmtree(stream.path)
    (tmp_path / "copy").rename(stream.path)
    with pytest.raises(LedgerError, match="missing"):
        Stream.open(stream.path).tick(rows(3), number=2)
    assert len(list(stream.state.private.glob("exact*"))) == 1  # nothing was drawn


def test_a_tick_that_was_drawn_and_not_published_is_published(running, monkeypatch):
    def full(self, folder, commits):
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(OneMachine, "write", full)
        with pytest.raises((OutputError, OSError)):
            running.tick(rows(3), number=3)
    assert len(running) == 2
    kept = json.loads((running.state.private / "exact-counts-0003.json").read_text())
    with pytest.raises(StreamError, match="number=3 reads"):
        running.tick(rows(4))
    assert len(running) == 3
    assert json.loads((running.state.private / "exact-counts-0003.json").read_text()) == kept
    assert (
        running.tick(rows(4), number=3)["sex"].estimate.tolist()
        == running.total(3)["sex"].estimate.tolist()
    )


@pytest.fixture
def small_disk():
    """Return a function after which no file of this process may grow beyond that many bytes."""
    resource = pytest.importorskip("resource", reason="no limits on the size of files here")
    most = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limited(size):
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, most[1]))

    yield limited
    resource.setrlimit(resource.RLIMIT_FSIZE, most)


def test_a_tick_on_a_full_disk_ends_with_a_typed_error_and_goes_on(tmp_path, small_disk):
    """The disk is full at each of its files in turn: the lock's journal has 512 bytes, the commit
    some 3000, and a table in text some 9500.
    """
    schema = gn.Schema([gn.Attribute("age", range(120))])
    stream = planned(schema=schema).start(tmp_path / "stream")
    stream.tick(rows(1), number=1)
    file, drawn = written(tmp_path / "2.csv", rows(2)), []
    kept = stream.state.private / "exact-counts-0002.json"
    for size in (0, 600, 1200, 4000, 5000):
        small_disk(size)
        with pytest.raises(OutputError, match="stream: cannot"):
            stream.tick(file, number=2)
        small_disk(-1)
        drawn += [kept.read_text()] if kept.exists() else []
    assert (len(drawn), len(set(drawn)), len(stream)) == (2, 1, 1)
    second = stream.tick(file, number=2)
    assert kept.read_text() == drawn[0]
    assert np.array_equal(second["age"].estimate, stream.total(2)["age"].estimate)


def test_a_start_on_a_full_disk_leaves_nothing(tmp_path, small_disk):
    for size in (0, 1000):
        small_disk(size)
        with pytest.raises(OutputError, match="cannot write"):
            planned().start(tmp_path / "s")
        small_disk(-1)
        assert list(tmp_path.iterdir()) == []
    assert len(planned().start(tmp_path / "s")) == 0


def opened_to_others(private):
    private.chmod(0o750)


def replaced_by_a_link(private):
    private.rename(private.with_name("elsewhere"))
    private.symlink_to("elsewhere")


@pytest.mark.parametrize("change", [opened_to_others, replaced_by_a_link])
def test_a_private_folder_that_is_not_its_owners_alone_gets_no_counts(running, change):
    change(running.state.private)
    before = sorted(path.name for path in running.state.private.iterdir())
    with pytest.raises(StreamError, match=r"its owner alone|got a link"):
        running.tick(rows(3), number=3)
    assert sorted(path.name for path in running.state.private.iterdir()) == before


def test_a_private_folder_of_another_user_gets_no_counts(running, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1 + os.stat(running.path).st_uid)
    lstat = os.lstat

    def of_another(path):
        status = lstat(path)
        uid = 2 + status.st_uid if path == running.state.private else status.st_uid
        return os.stat_result([*status[:4], uid, *status[5:]])

    monkeypatch.setattr(os, "lstat", of_another)
    with pytest.raises(StreamError, match="another user's"):
        running.tick(rows(3), number=3)


def test_a_stream_does_not_forget_its_ledger(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(0.5))
    stream = planned().start(tmp_path / "stream", ledger=ledger, id="weekly")
    stream.tick(rows(1), number=1)
    shutil.copytree(stream.path, tmp_path / "copy")
    stream.tick(rows(2), number=2)
    for private in (stream.state.private, tmp_path / "copy" / "private"):
        (private / "ledger.json").unlink()
    lost = Stream.open(stream.path)
    assert lost.total()["sex"].estimate.shape == (2,)
    for path in (stream.path, tmp_path / "copy"):
        with pytest.raises(LedgerError, match=r"as 'weekly'.*ledger="):
            Stream.open(path).tick(rows(3), number=len(Stream.open(path)) + 1)
    shutil.rmtree(stream.path)
    (tmp_path / "copy").rename(stream.path)
    with pytest.raises(LedgerError, match="missing"):  # the older copy, as with the link
        Stream.open(stream.path, ledger).tick(rows(3), number=2)
    other = gn.Ledger.create(tmp_path / "other", gn.zCDP(0.5))
    with pytest.raises(LedgerError, match="not what was charged"):
        Stream.open(stream.path, other).tick(rows(3), number=2)
    assert str(ledger.path) not in public_text(stream)
    plain = planned().start(tmp_path / "plain")
    with pytest.raises(LedgerError, match="charged to none"):
        Stream.open(plain.path, ledger)


def test_the_budget_is_charged_once_at_the_start(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(0.5))
    plan = planned()
    stream = plan.start(tmp_path / "stream", ledger=ledger, id="weekly")
    assert ledger.spent == pytest.approx(0.5)
    for t in (1, 2, 3):
        stream.tick(rows(t), number=t)
    assert ledger.spent == pytest.approx(0.5)
    assert [(e.id, e.rho > 0) for e in ledger.entries()] == [
        ("weekly", True),
        ("weekly tick 1", False),
        ("weekly tick 2", False),
        ("weekly tick 3", False),
    ]
    assert ledger.epsilon(1e-6) <= gn.zCDP(0.5).epsilon(1e-6)
    again = plan.start(tmp_path / "stream", ledger=ledger, id="weekly")
    assert len(again) == 3
    with pytest.raises(BudgetError):
        plan.start(tmp_path / "second", ledger=ledger, id="second")
    assert not (tmp_path / "second").exists()
    with pytest.raises(OutputError, match="exists already"):
        plan.start(tmp_path / "stream")


def test_a_person_who_may_be_in_every_tick_is_the_person_of_other_releases(tmp_path):
    table = rows(1).append_column("who", pa.array(range(40)))
    once = gn.plan(SCHEMA, 1, gn.zCDP(0.1), person="who", rows_per_person=2)

    def publish(over, *, first):
        ledger = gn.Ledger.create(tmp_path / f"{over!r} {first}", gn.zCDP(1))
        stream = planned(over, rho=0.1, person="who")
        for step in ("stream", "once") if first == "stream" else ("once", "stream"):
            out = tmp_path / f"{over!r} {first} {step}"
            if step == "stream":
                stream.start(out, ledger=ledger, id="stream").tick(table, number=1)
            else:
                once.release(table, out=out, ledger=ledger, id="once")
        return ledger.spent

    for first in ("stream", "once"):
        for over in (Ticks(3, 3), Ticks(3, 5), Ticks(1, 1, apart=4)):
            assert publish(over, first=first) == pytest.approx(0.2)
        for over in (Ticks(3, 2), Ticks(3, 1), Ticks(3, 3, apart=2)):
            with pytest.raises(LedgerError, match="do not add up"):
                publish(over, first=first)


def test_what_could_not_be_gone_on_with_is_not_charged(tmp_path):
    @dataclass(frozen=True)
    class Lasting(AbstractPrivacy):
        """A class that loses its name before the stream begins."""

        rho: float

        def to_zcdp(self, draws=1, steps=2.0**28):
            return gn.zCDP(self.rho)

    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(0.5))
    plan = gn.plan(SCHEMA, 1, Lasting(0.1), over=Ticks(3))
    Lasting.__name__ = "zCDP"
    with pytest.raises(ParameterError, match="read back from its record as itself"):
        plan.start(tmp_path / "stream", ledger=ledger, id="weekly")
    assert ledger.spent == 0
    assert not (tmp_path / "stream").exists()


def test_under_a_ledger_refusals_do_not_say_what_was_wrong(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(0.5))
    stream = planned().start(tmp_path / "stream", ledger=ledger, id="weekly")
    with pytest.raises(DataError, match="refusal is recorded"):
        stream.tick(pa.table({"sex": ["F", "X"], "age": [1, 2]}), number=1)
    assert [e.state for e in ledger.entries()] == ["sealed", "refused"]
    stream.tick(rows(1), number=1)


# Late rows, and requests without a meaning.


@pytest.mark.parametrize("late", ["refuse", "carry"])
def test_late_rows_are_refused_or_carried_as_the_plan_says(tmp_path, late):
    plan = planned(Ticks(3, late=late, period="week"), workload=[("sex",)])
    stream = plan.start(tmp_path / "stream")

    def week(*weeks):
        return pa.table({"sex": ["F"] * len(weeks), "week": list(weeks)})

    with pytest.raises(DataError, match=r"'week'.*later"):
        stream.tick(week(1, 2))
    stream.tick(week(*[1] * 500), number=1)
    mixed = week(*[2] * 300, *[1] * 200)
    if late == "refuse":
        with pytest.raises(DataError, match=r"'week'.*earlier"):
            stream.tick(mixed, number=2)
        stream.tick(week(*[2] * 300), number=2)
    else:
        stream.tick(mixed, number=2)
    came = 300 if late == "refuse" else 500
    table = stream.period(2)["sex"]
    assert abs(table.estimate[0] - came) < 8 * table.standard_deviation[0]
    for bad in (week(4), pa.table({"sex": ["F"], "week": ["soon"]}), pa.table({"sex": ["F"]})):
        with pytest.raises(DataError):
            stream.tick(bad, number=3)


def test_requests_that_make_no_sense_are_refused(tmp_path):
    with pytest.raises(ParameterError, match="over="):
        gn.plan(SCHEMA, 1, gn.zCDP(1), over=52)  # pyright: ignore
    with pytest.raises(ParameterError, match="no targets"):
        gn.plan(SCHEMA, 1, targets=10, over=Ticks(5))
    wide = gn.Schema([gn.Attribute(f"a{i}", range(1000)) for i in range(2)])
    with pytest.raises(DomainTooLargeError, match="ticks"):
        gn.plan(wide, 2, gn.zCDP(1), over=Ticks(500)).start(tmp_path / "s")
    with pytest.raises(ParameterError, match="exact"):
        gn.plan(SCHEMA, [()], gn.zCDP(1), neighbors="replace", over=Ticks(5))
    with pytest.raises(ParameterError, match="period"):
        planned(Ticks(5, period="age"))
    plan = planned()
    with pytest.raises(ParameterError, match="together"):
        plan.start(tmp_path / "s", id="x")
    with pytest.raises(OutputError, match="is not a stream"):
        Stream.open(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("")
    with pytest.raises(OutputError, match="exists already"):
        plan.start(tmp_path / "other")
    out = plan.simulate([rows(1)], np.random.default_rng(0))
    with pytest.raises(ParameterError, match="stream"):
        out.total().save(tmp_path / "saved")
    calls = [
        lambda: out.total(2),
        lambda: out.window(2, 1),
        lambda: out.combined([1, 1]),
        lambda: out.contrast({2: {}}),
    ]
    for call in calls:
        with pytest.raises(ParameterError):
            call()
    with pytest.raises(ParameterError, match="Generator"):
        plan.simulate([rows(1)], 0)  # pyright: ignore[reportArgumentType]


def test_a_plan_says_what_it_guarantees():
    text = str(planned(Ticks(12, 3, apart=2, period="week"), rows_per_person=2))
    assert "at most 3 ticks, each two at least 2 ticks apart" in text
    assert "one person with at most 2 rows more or less in each of at most 3 ticks" in text
    assert "charged once" in text
    assert "no Gaussian noise" in text
    assert "'week'" in text
    assert "certified gap" in str(planned(5, workload=2))
    assert planned(Ticks(12, 3, apart=2), rows_per_person=2).privacy_unit == (
        "one person of at most 3 reports of at most 2 rows each, 2 ticks apart or more"
    )


def test_rows_of_a_year_cost_what_they_move_at_most():
    """By brute force over all reports in any ticks in a row."""
    plan = planned(Ticks(14, 5, apart=2))
    squares = np.abs(plan.strategy.matrix.astype(object).T @ plan.strategy.matrix.astype(object))

    def moved(ticks):
        sets = (
            own
            for k in range(1, 6)
            for own in itertools.combinations(range(14), k)
            if own[-1] - own[0] < ticks and all(j - i >= 2 for i, j in itertools.pairwise(own))
        )
        return max(int(squares[np.ix_(own, own)].sum()) for own in sets)

    whole = moved(14)
    assert whole == plan.strategy.sensitivity_squared
    spent = [plan.spent(m) for m in range(1, 16)]
    for m in range(1, 15):
        assert spent[m - 1] >= plan.rho_charged * moved(m) / whole * (1 - 1e-12)
    assert spent[0] == pytest.approx(plan.rho_charged * moved(1) / whole)
    assert spent == sorted(spent)
    assert spent[7] < spent[8] == spent[14] == plan.rho_charged  # five reports fit into 9 ticks
    assert f"one tick {spent[0]:.4g}" in str(plan)
    enforced = planned(Ticks(14, 5, apart=2, enforced=True), person="who")
    assert enforced.spent(1) == enforced.rho_charged
    with pytest.raises(ParameterError, match="ticks >= 1"):
        plan.spent(0)


def test_the_shell_runs_a_stream(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCHEMA.to_toml())
    for t in (1, 2):
        pa.csv.write_csv(rows(t), tmp_path / f"{t}.csv")
    start = (
        "stream start -o weekly -s s.toml -m 1 --rho 0.5 --ticks 3 --reports 2 --apart 2 "
        "--workload both"
    ).split()
    assert run(start) == 0
    out = capsys.readouterr().out
    assert "confidential" in out
    assert "next: gaussnoise stream tick weekly TABLE --tick 1\n" in out
    assert run(start) == 1
    assert "exists already" in capsys.readouterr().err
    assert run("stream tick weekly 1.csv --tick 1".split()) == 0
    out = capsys.readouterr().out
    assert "Tick 1 of 3" in out
    assert "--tick 2\n" in out
    assert run("stream tick weekly 2.csv".split()) == 2  # counts nothing
    assert "--tick" in capsys.readouterr().err
    assert run("stream tick weekly 2.csv --tick 2".split()) == 0
    capsys.readouterr()
    assert run("stream show weekly".split()) == 0
    out = capsys.readouterr().out
    assert "2 of 3 ticks done" in out
    assert "--tick 3\n" in out
    assert "all rows so far: MarginalTable(sex" in out
    assert run("stream tick weekly 1.csv --tick 3 --same-file".split()) == 0
    said = capsys.readouterr()
    assert "all ticks are done" in said.out
    assert said.err.startswith("warning: tick: ")
    assert "1.csv' was counted at tick 1" in said.err
    assert run("stream show nowhere".split()) == 1


@pytest.mark.parametrize("tick", [1, 2, 3])
def test_a_column_may_say_that_rows_are_of_the_first_or_the_last_tick(tick):
    plan = gn.plan(
        gn.Schema([gn.Attribute("sex", ["F", "M"])]),
        [("sex",)],
        gn.zCDP(1),
        over=Ticks(3, period="week"),
    )
    own = pa.table({"sex": ["F", "M", "F"], "week": [tick] * 3})
    (counts,) = measure.counted(plan.one_tick, plan.over, tick, own, "refuse").values()
    assert counts.tolist() == [2, 1]
    for other in (0, 4):
        beyond = own.set_column(1, "week", pa.array([other] * 3))
        with pytest.raises(DataError):
            measure.counted(plan.one_tick, plan.over, tick, beyond, "refuse")
