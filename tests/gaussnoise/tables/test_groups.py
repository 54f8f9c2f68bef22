"""Tests of groups of cells in levels: equal to their matrix, and consistent everywhere."""

import functools
import json
import math
import pickle

import numpy as np
import pyarrow as pa
import pytest
from cases import one_test_of
from pyarrow import csv

import gaussnoise as gn
from gaussnoise.errors import ParameterError, SchemaError

REGIONS = {"North": ["a", "b"], "South": ["c", "d", "e"]}
COAST = {"sea": ["a", "e"], "land": ["b", "d"]}  # crosses the regions, and leaves c out
COUNTY = gn.Attribute(
    "county", list("abcde"), other="?", groups={"region": REGIONS, "coast": COAST}
)
AGE = gn.Attribute(
    "age", edges=[0, 10, 20, 65, 120], groups={"band": {"minor": [0, 20], "adult": [20, 120]}}
)
SCHEMA = gn.Schema([COUNTY, AGE, gn.Attribute("sex", ["F", "M"])])
REGION = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0]], dtype=float)
CROSSED = np.array([[1, 0, 0, 0, 1, 0], [0, 1, 0, 1, 0, 0]], dtype=float)
ALL = np.vstack([np.ones((1, 6)), REGION, CROSSED, np.eye(6)])
BAND = np.array([[1, 1, 0, 0], [0, 0, 1, 1]], dtype=float)
WORKLOAD = [{"county": "hierarchy", "sex": None}, {"county": "region", "age": "band"}, "sex"]


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Return a release, its folder and the counts of its table computed by hand."""
    rng = np.random.default_rng(2)
    codes = rng.integers(0, [6, 4, 2], (400, 3))
    table = pa.table(
        {
            "county": [("a", "b", "c", "d", "e", None)[k] for k in codes[:, 0]],
            "age": [(5, 15, 30, 120)[k] for k in codes[:, 1]],
            "sex": ["FM"[k] for k in codes[:, 2]],
        }
    )
    counts = np.zeros((6, 4, 2))
    np.add.at(counts, tuple(codes.T), 1)
    folder = tmp_path_factory.mktemp("groups") / "out"
    return gn.plan(SCHEMA, WORKLOAD, gn.zCDP(50)).release(table, out=folder), folder, counts


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
def test_levels_are_planned_as_their_matrices_are(neighbors):
    by_name = gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.1), neighbors=neighbors)
    by_hand = gn.plan(
        SCHEMA,
        [{"county": ALL, "sex": None}, {"county": REGION, "age": BAND}, "sex"],
        gn.zCDP(0.1),
        neighbors=neighbors,
    )
    np.testing.assert_allclose(by_name.deviations, by_hand.deviations, rtol=1e-4)
    assert by_name.noise.gamma == pytest.approx(by_hand.noise.gamma, rel=1e-4)
    for asked, matrix in (("region", REGION), ("coast", CROSSED), ("hierarchy", ALL)):
        np.testing.assert_allclose(
            by_name.answer_deviations({"county": asked}),
            by_name.answer_deviations({"county": matrix}),
            rtol=1e-12,
        )


def test_deviations_of_groups_follow_from_the_covariance_of_cells():
    planned = gn.plan(SCHEMA, WORKLOAD, gn.zCDP(0.1))
    noise = planned.query  # the integers of the release itself
    assert noise is not None
    pairs = [
        [float(planned.answer_deviations({"county": np.eye(6)[[i]] + np.eye(6)[[j]]})[0]) ** 2
         for j in range(6)]
        for i in range(6)
    ]  # fmt: skip
    variance = planned.answer_deviations({"county": "identity"}) ** 2
    # Var(x + y) = Var x + Var y + 2 Cov; x + x has four times the variance of x
    covariance = (np.array(pairs) - variance[:, None] - variance) / 2
    np.testing.assert_allclose(
        planned.answer_deviations({"county": "region"}) ** 2,
        np.diag(REGION @ covariance @ REGION.T),
        rtol=1e-9,
    )


def test_one_optimum_for_all_levels_beats_noise_on_cells_alone():
    asked = [{"county": "hierarchy"}]
    together = gn.plan(SCHEMA, asked, gn.zCDP(0.1)).error
    cells = gn.plan(SCHEMA, ["county"], gn.zCDP(0.1))
    assert together < 0.99 * np.linalg.norm(cells.answer_deviations({"county": "hierarchy"}))


def test_groups_are_exact_sums_of_released_cells(released):
    release, _, counts = released
    cells = release["county"].estimate
    answers = release.answers({"county": "hierarchy"})
    np.testing.assert_allclose(answers.estimate, ALL @ cells, rtol=0, atol=1e-9)
    np.testing.assert_allclose(
        answers.estimate, ALL @ counts.sum(axis=(1, 2)), atol=6 * answers.standard_deviation.max()
    )
    region = release.answers({"county": "region", "age": "band"}).estimate
    np.testing.assert_allclose(
        region, REGION @ release["county", "age"].estimate @ BAND.T, rtol=0, atol=1e-9
    )
    np.testing.assert_allclose(region.sum(axis=1), answers.estimate[1:3], rtol=0, atol=1e-9)


def test_rows_have_the_names_of_their_groups(released):
    release, folder, _ = released
    assert release.answers({"county": "coast"}).labels == (("sea", "land"),)
    assert release.answers({"age": "band"}).labels == (("minor", "adult"),)
    assert release.answers({"county": "hierarchy"}).labels[0] == (
        "all", "region: North", "region: South", "coast: sea", "coast: land", *"abcde", "?",
    )  # fmt: skip
    assert release.plan.entries[:2] == (
        "county (hierarchy) × sex",
        "county (region) × age (band)",
    )
    files = sorted((folder / "answers").glob("*.csv"))
    tables = [csv.read_csv(file).to_pydict() for file in files]
    written = next(table for table in tables if "age" in table)
    assert written["county"] == ["North", "North", "South", "South"]
    assert written["age"] == ["minor", "adult"] * 2
    record = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    assert record["domain"][0]["groups"] == {"region": REGIONS, "coast": COAST}
    assert record["domain"][1]["groups"]["band"]["minor"] == ["[0, 10)", "[10, 20)"]


def test_saved_releases_know_their_groups(released):
    release, folder, _ = released
    again = gn.TableRelease.load(folder)
    assert again.plan.schema == SCHEMA
    assert again.plan.request_sha256 == release.plan.request_sha256
    mine, read = (r.answers({"county": "region", "age": "band"}) for r in (release, again))
    assert mine.labels == read.labels
    np.testing.assert_allclose(mine.estimate, read.estimate, rtol=1e-12)


def test_a_level_can_be_an_attributes_own_base():
    own = gn.Attribute("county", list("abcde"), groups={"region": REGIONS}, base="hierarchy")
    schema = gn.Schema([own])
    assert gn.plan(schema, ["county"], gn.zCDP(1)).entries == ("county (hierarchy)",)
    assert gn.Schema.loads(schema.to_toml()) == schema
    assert 'base = "hierarchy"' in schema.to_toml()


def test_groups_without_names_come_back_from_a_file(tmp_path):
    asked = {"county": gn.Groups(6, [(0, 5), (1, 2, 3, 4)])}
    table = pa.table({"county": ["a"], "age": [1], "sex": ["F"]})
    release = gn.plan(SCHEMA, [asked], gn.zCDP(1)).release(table, out=tmp_path / "out")
    again = gn.TableRelease.load(tmp_path / "out")
    assert again.plan.request_sha256 == release.plan.request_sha256
    assert again.answers(asked).labels == (("a + ?", "b + 3 more"),)


def test_toml_round_trip_with_odd_names_and_infinite_edges():
    odd = gn.Schema(
        [
            gn.Attribute("x y", [1, 2, 3], groups={'l "1"': {"ü=": [1], "b.c": [3, 2]}}),
            gn.Attribute("b", [True, False], other="?", groups={"known": {"yes": [True, False]}}),
            gn.Attribute("z", edges=[-math.inf, 0, 2.5, math.inf],
                         groups={"sign": {"+": [0, math.inf]}}),
        ]
    )  # fmt: skip
    assert gn.Schema.loads(odd.to_toml()) == odd
    assert pickle.loads(pickle.dumps(odd)) == odd
    assert hash(odd) == hash(gn.Schema.loads(odd.to_toml()))


def test_schemas_with_and_without_groups_are_different_requests():
    plain = gn.Schema([gn.Attribute("county", list("abcde"), other="?"), *SCHEMA.attributes[1:]])
    a, b = (gn.plan(schema, ["county"], gn.zCDP(1)) for schema in (SCHEMA, plain))
    assert a.deviations == b.deviations
    assert a.request_sha256 != b.request_sha256


@one_test_of(
    ("groups", "part"),
    [
        ({}, "expected groups ="),
        ({"region": {}}, "expected groups ="),
        ({"region": ["a"]}, "expected groups ="),
        ({"region": {"N": "ab"}}, "expected groups ="),
        ({"region": {"": ["a"]}}, "expected groups ="),
        ({"region": {"N": ["a"], "S": ["A"]}}, "no category 'A'; hint: did you mean 'a'"),
        ({"region": {"N": ["a", "b"], "S": ["b"]}}, "'b' in 'N' and in 'S'"),
        ({"region": {"N": ["a", "a"]}}, "distinct categories"),
        ({"region": {"N": []}}, "one at least"),
        ({"prefix": {"N": ["a"]}}, "another name than 'prefix'"),
        ({"hierarchy": {"N": ["a"]}}, "another name than 'hierarchy'"),
        ({"u": {"N": ["a"]}, "v": {"M": ["a"]}}, "the same groups twice"),
        ({"u": {"v: w": ["a"]}, "u: v": {"w": ["b"]}}, "told apart"),
    ],
)
def test_groups_that_make_no_sense_are_refused(groups, part):
    with pytest.raises(SchemaError, match=part):
        gn.Attribute("county", list("abc"), groups=groups)


@pytest.mark.parametrize("ends", [[0], [0, 15], [20, 10], [10, 10], [0, 10, 20]])
def test_groups_of_bins_are_two_edges(ends):
    with pytest.raises(SchemaError, match="low"):
        gn.Attribute("age", edges=[0, 10, 20], groups={"band": {"x": ends}})


def test_true_is_not_the_category_one():
    with pytest.raises(SchemaError, match="no category True"):
        gn.Attribute("n", [0, 1], groups={"g": {"x": [True]}})


def test_levels_are_not_called_as_attributes_are():
    with pytest.raises(SchemaError, match="another name than the attribute 'sex'"):
        gn.Schema([gn.Attribute("a", [1, 2], groups={"sex": {"x": [1]}}), gn.Attribute("sex", [1])])


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ('[attributes.a.groups.g]\nx = ["q"]', 3, "no category 'q'"),
        (
            "[attributes.a.groups.g]\nx = [1]\n[attributes.a.groups.h]\nall = ['x']",
            3,
            "that is a group: list its categories",
        ),
        ('groups = "g"', 3, "levels of named groups"),
        ("[attributes.a.groups.a]\nx = [1]", 1, "than the attribute 'a'"),
        ("[attributes.a.groups.g]\nx = [1]\n[attributes.b]\ncategories = [1]\nbase = 'h'", 7, "h"),
    ],
)
def test_groups_in_files_are_refused_at_their_line(text, line, part):
    with pytest.raises(SchemaError, match=part) as refused:
        gn.Schema.loads(f"[attributes.a]\ncategories = [1, 2]\n{text}\n", "s.toml")
    assert str(refused.value).startswith(f"s.toml:{line}: ")


def test_unknown_levels_are_named_with_the_near_ones():
    with pytest.raises(ParameterError, match="did you mean 'region'"):
        gn.plan(SCHEMA, [{"county": "regions"}], gn.zCDP(1))


# Shares of groups, and within groups.


PARTS = gn.Groups(6, [[k] for k in range(5)])  # all counties, without the catch-all


@pytest.mark.parametrize(
    ("names", "given", "part", "whole"),
    [
        (("region", "sex"), "region", {"county": REGION}, {"county": REGION}),
        (("sex", "region"), "sex", {"county": REGION}, {"county": np.ones((1, 6))}),
        ({"county": PARTS}, "region", {"county": np.eye(6)[:5]}, {"county": REGION}),
        ({"county": "coast", "sex": None}, {"sex": None}, {"county": CROSSED}, {}),
        (("band", "region"), "region", {"county": REGION, "age": BAND}, {"county": REGION}),
        (("region",), (), {"county": REGION}, {"county": np.ones((1, 6))}),
        (("county", "sex"), {"county": None}, {"county": np.eye(6)}, {"county": np.eye(6)}),
    ],
)
def test_shares_and_their_errors_follow_from_the_covariance_of_cells(
    released, names, given, part, whole
):
    """The reference adds up cells of the joint table by the contrasts of one share at a time."""
    release = released[0]
    shares = release.proportions(names, given)
    order = {"county": 6, "age": 4, "sex": 2}
    axes = [n for n in order if n in shares.attributes]
    levels = {"region": "county", "coast": "county", "band": "age"}
    listed = (given,) if isinstance(given, str) else tuple(given)
    fixed = {levels.get(n, n) for n in listed}
    parts = [part.get(n, np.eye(order[n])) for n in axes]
    for place in np.ndindex(*(len(p) for p in parts)):
        own = [p[k] for p, k in zip(parts, place, strict=True)]
        all_of = []
        for n, cells in zip(axes, own, strict=True):
            groups = whole.get(n, np.eye(order[n])) if n in fixed else np.ones((1, order[n]))
            (holding,) = [g for g in groups if (g >= cells).all()]
            all_of.append(holding)
        weights = [{tuple(axes): functools.reduce(np.multiply.outer, w)} for w in (own, all_of)]
        found = release.contrasts(weights)
        x, y = found.estimate
        at = tuple(place[axes.index(n)] for n in shares.attributes)
        slope = np.array([1, -x / y]) / y
        assert shares.estimate[at] == pytest.approx(x / y, rel=1e-9)
        variance = slope @ found.covariance @ slope
        assert shares.standard_deviation[at] == pytest.approx(math.sqrt(variance), rel=1e-6)


def test_the_reference_tells_a_share_of_another_group_apart(released):
    """This negative control shows that errors of shares depend on the group of each share."""
    within = released[0].proportions({"county": PARTS}, "region").standard_deviation
    overall = released[0].proportions({"county": PARTS}).standard_deviation
    assert np.abs(within / overall - 1).min() > 0.1


def test_shares_of_groups_have_the_names_of_both(released):
    shares = released[0].proportions(("region", "sex"), given="region")
    assert (shares.attributes, shares.given) == (("county", "sex"), ("region",))
    assert shares.labels == (("North", "South"), ("F", "M"))
    np.testing.assert_allclose(shares.estimate.sum(axis=1), 1)
    low, high = shares.confidence_interval(0.95)
    assert (low < shares.estimate).all()
    assert (shares.estimate < high).all()


@pytest.mark.parametrize(
    ("names", "given", "message"),
    [
        ("county", "region", "every part of 'county' in one of its groups, got one in 0"),
        (("coast", "sex"), "region", "in one of its groups, got one in 0"),
        ({"county": "region"}, {"county": "hierarchy"}, "got one in 2"),
        (("sex",), "region", "hint: add 'county' to the table"),
        ({"age": "prefix"}, (), "expected cells or groups of 'age'"),
        (("region", "county"), (), "expected distinct attributes"),
        (("continent",), "region", "no attribute 'continent'"),
    ],
)
def test_shares_of_what_is_no_part_are_refused(released, names, given, message):
    with pytest.raises(ParameterError, match=message):
        released[0].proportions(names, given)


# Groups in questions.


@pytest.mark.parametrize(
    ("question", "other"),
    [
        ("count of region=North", "count of county=a|b"),
        ("count of region in (North, South), sex=F", "count of county=a|b|c|d|e, sex=F"),
        ("share of sex=F given region=South", "share of sex=F given county=c|d|e"),
        ("ratio of (region=North) to (region=South)", "ratio of (county=a|b) to (county=c|d|e)"),
        ('share of "coast"="sea" given sex', "share of county=a|e given sex"),
        ("median of age given region=North", "median of age given county=a|b"),
    ],
)
def test_a_group_in_a_question_is_its_cells(released, question, other):
    found, expected = released[0].ask(question), released[0].ask(other)
    np.testing.assert_array_equal(found.estimate, expected.estimate)
    np.testing.assert_array_equal(found.low, expected.low)
    assert "county" in found.meaning


@pytest.mark.parametrize(
    ("question", "single"),
    [
        ("share of sex=F given region", "share of sex=F given region={}"),
        ("share of region given sex=F", "share of region={} given sex=F"),
        ("count of region", "count of region={}"),
        ("ratio of (sex=F) to (sex=M) given region", "ratio of (sex=F) to (sex=M) given region={}"),
        ("median of age by region", "median of age by region={}"),
        ("cdf of age given region", "cdf of age given region={}"),
    ],
)
def test_a_level_in_a_question_asks_for_each_of_its_groups(released, question, single):
    found = released[0].ask(question)
    axis = found.attributes.index("region")
    assert found.labels[axis] == ("North", "South")
    for k, name in enumerate(found.labels[axis]):
        alone = released[0].ask(single.format(name))
        ours = np.take(found.estimate, k, axis=axis)
        np.testing.assert_allclose(ours, np.reshape(alone.estimate, ours.shape), rtol=1e-9)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("count of region=a", "expected a group of 'region', one of North, South"),
        ("share of county=a given county", "expected groups by other attributes than 'county'"),
        (
            "difference of share of sex=F given region and share of sex=F given county",
            "expected 'region' or 'county' throughout",
        ),
        ("count of regoin=North", "expected an attribute"),
    ],
)
def test_wrong_questions_about_groups_are_refused(released, question, message):
    with pytest.raises(ParameterError, match=message):
        released[0].ask(question)


def test_a_level_in_place_of_its_attribute_is_refused_with_the_entry_that_asks_for_it(released):
    hint = r"\{'county': 'region'\} in a workload and in answers\(\)"
    with pytest.raises(ParameterError, match=hint):
        gn.plan(SCHEMA, [("region", "sex")], gn.zCDP(1))
    with pytest.raises(ParameterError, match=hint):
        released[0]["region", "sex"]
