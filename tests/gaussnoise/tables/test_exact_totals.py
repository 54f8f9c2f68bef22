"""Tests of a public number of rows: answers that only count rows are exact integers.

No rounding is left.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from cases import one_test_of

import gaussnoise as gn

SIZES = {"a": 7, "b": 49, "c": 3, "one": 1}
SCHEMA = gn.Schema(
    [gn.Attribute(name, [f"{name}{k}" for k in range(size)]) for name, size in SIZES.items()]
)
ROWS = 4321
WORKLOADS = {
    "cells": [("a", "b"), ("c", "a"), ("one", "c"), "one"],
    "queries": [
        {"a": "prefix", "b": "ranges"},
        {"c": "prefix", "a": "identity"},
        ("one", "c"),
        {"one": "prefix"},
    ],
}


def column(name, seed):
    codes = np.random.default_rng(seed).integers(0, SIZES[name], ROWS)
    return [f"{name}{k}" for k in codes.tolist()]


TABLE = pa.table({name: column(name, seed) for seed, name in enumerate(SIZES)})


@pytest.fixture(params=WORKLOADS, scope="module")
def release(request):
    return gn.plan(SCHEMA, WORKLOADS[request.param], gn.zCDP(0.01), neighbors="replace").release(
        TABLE
    )


@pytest.fixture(params=WORKLOADS, scope="module")
def private_total(request):
    return gn.plan(SCHEMA, WORKLOADS[request.param], gn.zCDP(0.01)).release(TABLE)


def rows_of(base, size):
    """Return the queries of a base, as exact rows."""
    made = {"prefix": gn.Prefix, "ranges": gn.Ranges, "identity": gn.Identity, "total": gn.Total}[
        base
    ](size)
    return made.toarray()


@one_test_of(
    "entry",
    [
        {"a": "prefix"},
        {"b": "ranges"},
        {"a": "total"},
        {"b": "total", "a": "prefix"},
        {"a": "ranges", "c": "prefix"},
        {"one": "prefix", "c": "ranges"},
        {"one": "identity"},
        (),
    ],
    ids=str,
)
def test_answers_that_count_all_rows_are_known_exactly(release, entry):
    asked = {
        name: gn.Total(SIZES[name]) if base == "total" else base
        for name, base in dict(entry).items()
    }
    answers = release.answers(asked)
    bases = [rows_of(base, SIZES[name]) for name, base in dict(entry).items()]
    queries = itertools.product(*bases)
    constant = np.array(
        [all((row == row[0]).all() for row in rows) for rows in queries], dtype=bool
    )
    constant = constant.reshape(answers.estimate.shape)
    assert constant.any()
    assert (answers.estimate[constant] == ROWS).all()
    np.testing.assert_array_equal(answers.standard_deviation == 0, constant)
    low, high = answers.confidence_interval()
    assert (low[constant] == ROWS).all()
    assert (high[constant] == ROWS).all()


def test_numeric_queries_of_no_degree_are_known_exactly():
    schema = gn.Schema(
        [gn.Attribute("age", list(range(1, 50)), base=gn.Moments(range(1, 50), [0, 1, 2]))]
    )
    rows = pa.table({"age": np.random.default_rng(0).integers(1, 50, ROWS)})
    answers = (
        gn.plan(schema, ["age"], gn.zCDP(0.1), neighbors="replace").release(rows).answers("age")
    )
    assert answers.estimate[0] == ROWS
    assert answers.standard_deviation[0] == 0
    assert (answers.standard_deviation[1:] > 1).all()


def test_constant_multiples_of_the_total_are_known_exactly():
    matrix = [[0.1] * 7, [0.0] * 7, [-2.0] * 7, [1, 1, 1, 1, 1, 1, 0]]
    release = gn.plan(SCHEMA, ["a"], gn.zCDP(0.1), neighbors="replace").release(TABLE)
    answers = release.answers({"a": gn.Base(matrix)})
    assert answers.estimate[:3].tolist() == [0.1 * ROWS, 0.0, -2.0 * ROWS]
    assert answers.standard_deviation[:3].tolist() == [0, 0, 0]
    assert answers.standard_deviation[3] > 1


def test_plans_say_so_before(release):
    assert release.plan.answer_deviations({"b": "prefix"})[-1] == 0
    assert release.plan.standard_deviation("one") == 0


def test_the_total_and_attributes_of_one_category_are_integers(release):
    for names in ((), "one"):
        table = release[names]
        assert np.ravel(table.estimate).tolist() == [ROWS]
        assert np.ravel(table.standard_deviation).tolist() == [0]
        assert np.ravel(release.proportions(names).estimate).tolist() == [1]


@pytest.mark.parametrize("given", [(), "a", "c"])
def test_shares_of_a_group_end_at_one(release, private_total, given):
    for made in (release, private_total):
        name = "b" if given == "a" else "a"
        cdf = made.cdf(name, given)
        end = cdf.estimate[..., -1]
        clear = cdf.groups[..., -1] > 0
        assert clear.any()
        assert (end[clear] == 1).all()
        assert (cdf.standard_deviation[..., -1][clear] == 0).all()
        low, high = cdf.confidence_interval()
        assert (low[..., -1] <= 1).all()
        assert (high[..., -1] == 1).all()
        own = made.proportions("a", "a")
        assert (own.estimate[own.groups > 0] == 1).all()
        assert (own.standard_deviation[own.groups > 0] == 0).all()


def even(names):
    return np.ones([SIZES[name] for name in names])


COMBINATIONS = [
    ({("a", "b"): even("ab")}, 1),
    ({("b",): 3 * even("b")}, 3),
    ({("b",): even("b"), ("a",): even("a")}, 2),
    ({("b",): even("b"), ("a", "c"): -even("ac")}, 0),
    ({("a", "b"): -np.eye(7)[2][:, None] * np.ones(49), ("a",): np.eye(7)[2]}, 0),
    ({("a", "b"): np.eye(7)[2][:, None] * np.ones(49), ("a",): 1 - np.eye(7)[2]}, 1),
    ({("c", "a"): np.eye(3)[:, :1] * np.ones(7), ("c",): [0.0, 1.0, 1.0]}, 1),
]


@pytest.mark.parametrize(("weights", "share"), COMBINATIONS)
def test_combinations_that_count_all_rows_are_known_exactly(release, weights, share):
    found = release.contrast(weights)
    assert (found.estimate, found.standard_deviation) == (share * ROWS, 0)


@one_test_of(("weights", "share"), COMBINATIONS)
def test_combinations_that_cancel_are_nothing(private_total, weights, share):
    found = private_total.contrast(weights)
    if share == 0:
        assert (found.estimate, found.standard_deviation) == (0, 0)
    else:
        assert found.standard_deviation > 1


def test_covariances_with_what_is_known_are_nothing(release):
    both = release.contrasts(
        [{("a",): even("a")}, {("a",): np.eye(7)[3]}, {("a",): 1e-9 * np.eye(7)[3]}]
    )
    covariance = both.covariance
    np.testing.assert_array_equal(covariance[0], 0)
    assert both.estimate[0] == ROWS
    assert covariance[1, 1] > 1
    assert covariance[2, 2] == pytest.approx(1e-18 * covariance[1, 1], rel=1e-12)


def test_nearly_constant_weights_keep_their_deviation(release):
    """Only rounding errors count as zero."""
    for small in (1e-3, 1e-9):
        weights = even("a")
        weights[0] += small
        alone = release.contrast({("a",): np.eye(7)[0]}).standard_deviation
        found = release.contrast({("a",): weights})
        assert found.standard_deviation == pytest.approx(small * alone, rel=1e-5)


def test_measurements_of_a_public_total_are_integers(release):
    (total,) = [m for m in release.measurements() if m.attributes == ()]
    assert (float(total.estimate), total.standard_deviation) == (ROWS, 0)


def test_the_other_answers_stay_unbiased(release):
    """The reference is the truth, in exact arithmetic."""
    truth = np.array([sum(1 for x in TABLE["a"].to_pylist() if int(x[1:]) <= k) for k in range(7)])
    answers = release.answers({"a": "prefix"})
    assert (np.abs(answers.estimate - truth) <= 7 * answers.standard_deviation).all()
    assert sum(map(Fraction, truth.tolist())) > 0
    assert math.isfinite(answers.standard_deviation.sum())


def test_many_categories_need_no_matrix():
    """A matrix of as many rows and columns would be refused."""
    schema = gn.Schema([gn.Attribute("place", [f"p{k}" for k in range(12_000)])])
    release = gn.plan(schema, 1, gn.zCDP(0.1), neighbors="replace").release(
        pa.table({"place": ["p7"] * 9})
    )
    assert release.contrast({("place",): np.ones(12_000)}) == gn.results.Contrast(9, 0)
    assert release.answers("place").standard_deviation.min() > 1
    assert release.proportions("place").standard_deviation.min() > 0


def test_tiny_weights_are_weights(release):
    found = release.contrast({("a",): 1e-200 * np.eye(7)[0]})
    assert found.estimate == pytest.approx(1e-200 * release["a"].estimate[0])
