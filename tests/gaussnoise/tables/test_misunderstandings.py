"""Tests that likely misunderstandings are refused, with a hint at what the user meant.

No message shows a value of the data.
"""

import re

import numpy as np
import pyarrow as pa
import pytest
from cases import one_test_of
from scipy.sparse import csr_array

import gaussnoise as gn
from gaussnoise.errors import ParameterError, PrivacyWarning, SchemaError

SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"]),
        gn.Attribute("employed", ["yes", "no"]),
        gn.Attribute("Größe", [150, 180]),
    ]
)


@pytest.fixture(scope="module")
def release():
    table = pa.table({"sex": ["F"], "employed": ["no"], "Größe": [180]})
    return gn.plan(SCHEMA, 2, gn.zCDP(1)).simulate(table, np.random.default_rng(0))


def planned(*arguments, **options):
    return gn.plan(SCHEMA, *arguments, **options)


@one_test_of(
    ("make", "error", "words"),
    [
        (lambda: gn.Schema({"sex": ["F", "M"]}), SchemaError, 'objects, got dict; hint: '
        'Schema([Attribute("'),
        (lambda: gn.Schema(["sex"]), SchemaError, "Attribute objects, got str; hint"),
        (lambda: gn.Schema("schema.toml"), SchemaError, "got str; hint"),
        (lambda: gn.Schema(SCHEMA.attributes[0]), SchemaError, "got Attribute; hint"),
        (lambda: gn.Schema(SCHEMA.attributes * 2), SchemaError, "got 'sex' twice"),
        (lambda: gn.Attribute("a", {"x", "y"}), SchemaError, "a list of categories, which has "
        "an order, got a set"),
        (lambda: gn.Attribute("a", frozenset("xy")), SchemaError, "got a set"),
        (lambda: gn.Attribute("a", edges={0, 1}), SchemaError, "a list of edges, which has an "
        "order, got a set"),
        (lambda: gn.Attribute("a", "xy", base="x"), SchemaError,
        "expected a list of categories"),
        (lambda: gn.Attribute("a", [1, 2], base="Prefix"), SchemaError, "'Prefix'; hint: did "
        "you mean 'prefix'?"),
        (lambda: gn.Attribute("a", [1, 2], base={"kind": "bin"}), SchemaError, "hint: did you "
        "mean 'bins'?"),
        (
            lambda: planned(("sex", "employed"), gn.zCDP(1)),
            ParameterError,
            "hint: [('sex', 'employed')] for their table together, ['sex', 'employed'] for one "
            "table of each",
        ),
        (lambda: planned(["Sex"], gn.zCDP(1)), ParameterError, "no attribute 'Sex'"),
        (lambda: planned(["Sex"], gn.zCDP(1)), ParameterError, "hint: did you mean 'sex'?"),
        (lambda: planned([{"emloyed": "prefix"}], gn.zCDP(1)), ParameterError, "hint: did you "
        "mean 'employed'?"),
        (lambda: planned(["grösse"], gn.zCDP(1)), ParameterError, "hint: did you mean 'Größe'?"),
        (lambda: planned(2, targets={2: 50}), ParameterError, "like {('sex', 'employed'): "
        "50}, got 2; hint"),
        (lambda: planned(["sex"], targets={("sex", 1): 50}), ParameterError, "got ('sex', 1)"),
        (lambda: planned(["sex"], targets={"Sex": 5}), ParameterError, "called 'Sex'; hint: "
        "did you mean 'sex'?"),
    ],
)  # fmt: skip
def test_plans(make, error, words):
    with pytest.raises(error, match=re.escape(words)):
        make()


@one_test_of(
    ("ask", "words"),
    [
        (
            lambda r: r.proportions("employed", given="sex"),
            "hint: proportions(('sex', 'employed'), given='sex')",
        ),
        (lambda r: r.cdf("sex", given=("sex",)), "groups by other attributes than 'sex'"),
        (lambda r: r.cell(sex="f"), "one of 'F', 'M', got 'f'; hint: did you mean 'F'?"),
        (lambda r: r.cell(**{"Größe": "150"}), "got '150'; hint: did you mean 150?"),
        (lambda r: r.cell(Sex="F"), "hint: did you mean 'sex'?"),
        (lambda r: r["sexe"], "hint: did you mean 'sex'?"),
        (lambda r: r.contrast({"sex": {"F": 1, "M": -1}}), "got dict; hint: release.cell("),
        (lambda r: r.contrasts([{"sex": {"F": 1, "M": -1}}]), "got dict; hint: release.cell("),
        (
            lambda r: r.contrast({("sex", "employed"): csr_array(np.eye(2))}),
            "got csr_array; hint: .toarray()",
        ),
        (lambda r: r.contrast({"sex": "ab"}), "expected an array of weights for sex"),
        (
            lambda r: r.contrast([{"sex": [1, -1]}]),
            "got list; hint: contrasts() takes a list of them",
        ),
        (lambda r: r.contrasts({"sex": [1, -1]}), "expected a list of weights"),
        (lambda r: r.quantiles("Größe", {0.1, 0.5}), "expected a list of probabilities"),
    ],
)
def test_releases(release, ask, words):
    with pytest.raises(ParameterError, match=re.escape(words)):
        ask(release)


def test_what_is_far_from_every_name_gets_no_hint(release):
    with pytest.raises(ParameterError, match=r"expected one of 'sex', 'employed', 'Größe'$"):
        release["income"]


def test_clear_requests_stay_allowed():
    assert planned(("sex",), gn.zCDP(1)).marginals == (("sex",),)
    assert planned([["sex", "employed"]], gn.zCDP(1)).marginals == (("sex", "employed"),)
    assert planned((("sex", "employed"), "sex"), gn.zCDP(1)).marginals == (
        ("sex", "employed"),
        ("sex",),
    )
    assert gn.Schema(a for a in SCHEMA.attributes) == SCHEMA
    assert planned([("sex", "employed")], targets={("employed", "sex"): 5}).target_ratio <= 1


@pytest.mark.parametrize("make", [
    lambda privacy: planned(1, privacy),
    lambda privacy: gn.GaussianMechanism(gn.optimal_noise(gn.FiniteSet(np.eye(2))), privacy, n=5),
])  # fmt: skip
def test_a_delta_that_gives_no_protection_warns(make):
    with pytest.warns(
        PrivacyWarning, match=r"delta = 0.5 .*did you mean ApproxDP.epsilon=0.5, delta=1e-06"
    ) as found:
        make(gn.ApproxDP(1e-6, 0.5))
    assert found[0].filename == __file__
    with pytest.warns(PrivacyWarning, match="well below 1 / records, like 1e-6$"):
        make(gn.ApproxDP(1, 0.01))
    make(gn.ApproxDP(1, 0.0099))  # warnings are errors here
    make(gn.ApproxDP(1e-3, 1e-3))


@pytest.mark.parametrize("door", [gn.factorize, gn.dual_norm])
def test_sparse_matrices(door):
    with pytest.raises(
        ParameterError, match=r"expected a dense matrix, got csr_array; hint: A.toarray()"
    ):
        door(csr_array(np.eye(3)), "mean" if door is gn.factorize else 2)


def test_the_default_relation_is_said_where_it_is_met():
    assert "*replaced*" in gn.optimal_noise.__doc__
    assert gn.optimal_noise(gn.FiniteSet(np.eye(2))).neighbors == "replace"
