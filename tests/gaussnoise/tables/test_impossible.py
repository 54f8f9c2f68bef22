"""Tests of combinations that cannot occur: their form in a schema, and rows that have them."""

import traceback

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.errors import DataError, ParameterError, SchemaError
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.impossible import excluded
from gaussnoise.tables.release.text import release_text

AGE = gn.Attribute("age", edges=[0, 16, 65, 120])
MARRIED = gn.Attribute("married", ["no", "yes", "widowed"])
HOME = gn.Attribute("home", ["city", "land"], other="elsewhere")
RULES = [
    {"age": "[0, 16)", "married": ["widowed", "yes"]},
    {"home": "elsewhere", "married": "widowed", "age": ["[65, 120]"]},
]
SCHEMA = gn.Schema([AGE, MARRIED, HOME], RULES)

GOOD = [(7, "no", "city"), (30, "yes", "moon"), (70, "widowed", "land"), (15.9, "no", None)]
CHILD = (7, "yes", "city")
LONELY = [(70, "widowed", "moon"), (120, "widowed", None)]


def rows(*records):
    columns = zip(*records, strict=True)
    return pa.table(
        {
            "age": pa.array(list(map(float, next(columns))), pa.float64()),
            "married": pa.array(next(columns), pa.string()),
            "home": pa.array(next(columns), pa.string()),
        }
    )


def test_schemas_keep_rules_in_their_own_order_and_write_them():
    assert SCHEMA.impossible[0] == (("age", ("[0, 16)",)), ("married", ("yes", "widowed")))
    text = SCHEMA.to_toml()
    assert '[[impossible]]\nage = ["[0, 16)"]\nmarried = ["yes", "widowed"]\n' in text
    assert gn.Schema.loads(text) == SCHEMA
    assert hash(gn.Schema.loads(text)) == hash(SCHEMA)
    assert gn.Schema([AGE, MARRIED]) != gn.Schema([AGE, MARRIED], RULES[:1])


def test_labels_are_integers_and_booleans_too():
    schema = gn.Schema.loads(
        "[attributes.a]\ncategories = [true, false]\n[attributes.b]\ncategories = [1, 2]\n"
        "[[impossible]]\na = true\nb = [2]\n"
    )
    assert schema.impossible == ((("a", (True,)), ("b", (2,))),)


@pytest.mark.parametrize(
    "rules",
    [
        {"age": "[0, 16)", "married": "yes"},
        "age",
        [{"age": "[0, 16)"}],
        [{}],
        [{"age": "[0, 16)", "wed": "yes"}],
        [{"age": "[0, 17)", "married": "yes"}],
        [{"age": "[0, 16)", "married": []}],
        [{"age": "[0, 16)", "married": ["yes", "yes"]}],
        [{"age": "[0, 16)", "married": None}],
        [["age", "married"]],
    ],
)
def test_rules_about_anything_else_are_refused(rules):
    with pytest.raises(SchemaError, match="impossible"):
        gn.Schema([AGE, MARRIED], rules)


def test_clipped_numbers_have_no_labels_to_exclude():
    with pytest.raises(SchemaError, match="a number that is summed"):
        gn.Schema([AGE, gn.Attribute("pay", clip=[0, 9])], [{"age": "[0, 16)", "pay": "low"}])


@pytest.mark.parametrize("rule", ["age = 1.5\nmarried = 'yes'", "age = 'old'\nmarried = 'yes'"])
def test_files_name_the_line_of_a_bad_rule(rule):
    text = gn.Schema([AGE, MARRIED]).to_toml() + f"\n[[impossible]]\n{rule}\n"
    line = text[: text.index("[[impossible]]")].count("\n") + 1
    with pytest.raises(SchemaError, match=rf"^schema:({line}|{line + 1}): .*impossible"):
        gn.Schema.loads(text)


def planned(schema=SCHEMA, workload=2, **options):
    return gn.plan(schema, workload, gn.zCDP(0.5), **options)


@pytest.mark.parametrize("bad", [CHILD, *LONELY])
def test_such_a_row_refuses_the_release_and_only_its_rule_is_named(bad):
    with pytest.raises(DataError, match="which the schema calls impossible") as caught:
        planned().release(rows(*GOOD, bad))
    said = "".join(traceback.format_exception(caught.value))
    assert "moon" not in said
    rule = "age = [0, 16) with married = yes or widowed" if bad == CHILD else "home = elsewhere"
    assert rule in said
    planned().release(rows(*GOOD))


def test_dropped_rows_are_in_no_table_with_any_other_rows():
    plan, seed = planned(), 5
    table = rows(*GOOD, CHILD, *LONELY)
    kept = plan.simulate(table, np.random.default_rng(seed), on_outside="drop")
    without = plan.simulate(rows(*GOOD), np.random.default_rng(seed))
    for names in plan.marginals:
        assert (np.asarray(kept[names].estimate) == np.asarray(without[names].estimate)).all()
    release = plan.release(table, on_outside="drop")
    assert "impossible are in no table; how many is private" in release_text(release)


def test_rules_count_where_all_their_attributes_are_asked_for():
    planned(workload=[("age",), ("home",)]).release(rows(*GOOD, CHILD, *LONELY))
    assert excluded(SCHEMA, [0, 2]) == ()
    (one,) = excluded(SCHEMA, [0, 1])
    assert one.codes == ((0, (1,)), (1, (2, 3)))
    with pytest.raises(DataError):  # also where no table has both attributes
        planned(workload=[("age",), ("married",)]).release(rows(*GOOD, CHILD))


def test_impossible_cells_have_noise_as_all_others_and_plans_say_so():
    with_rules, without = planned(), planned(gn.Schema([AGE, MARRIED, HOME]))
    assert with_rules.noise.gamma == without.noise.gamma
    assert "impossible: age = [0, 16) with married = yes or widowed" in str(with_rules)
    assert "have noise as all others" in str(with_rules)
    assert "impossible" not in str(without)
    assert with_rules.request_sha256 != without.request_sha256
    release = with_rules.release(rows(*GOOD))
    assert np.all(np.asarray(release["age", "married"].standard_deviation) > 0)


def test_under_replacement_no_row_can_be_left_out():
    schema = gn.Schema(
        [gn.Attribute("a", [1, 2], other="x"), gn.Attribute("b", [1, 2], other="x")],
        [{"a": 1, "b": 2}],
    )
    plan = gn.plan(schema, 2, gn.zCDP(0.5), neighbors="replace")
    table = pl.DataFrame({"a": [1, 2], "b": [1, 1]})
    with pytest.raises(ParameterError, match="no catch-all takes impossible combinations"):
        plan.release(table, on_outside="drop")
    assert plan.release(table).public_rows == 2


def test_saved_releases_keep_the_rules(tmp_path):
    planned().release(rows(*GOOD, CHILD), out=tmp_path / "out", on_outside="drop")
    assert gn.TableRelease.load(tmp_path / "out").plan.schema == SCHEMA


def test_streams_leave_such_rows_out_as_well(tmp_path):
    plan = planned(over=gn.streams.Ticks(2))
    stream = plan.start(tmp_path / "stream", on_outside="refuse")
    with pytest.raises(DataError, match="impossible"):
        stream.tick(rows(*GOOD, CHILD))


def test_counting_codes_leave_no_other_row_out():
    attributes, rules = list(SCHEMA.attributes), excluded(SCHEMA, [0, 1, 2])
    ((_, counts),) = count_marginals(
        rows(*GOOD, CHILD, *LONELY), attributes, [(0, 1, 2)], "drop", impossible=rules
    )
    ((_, alone),) = count_marginals(rows(*GOOD), attributes, [(0, 1, 2)])
    assert (counts == alone).all()
    assert counts.sum() == len(GOOD)
