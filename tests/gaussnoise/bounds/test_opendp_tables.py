"""Measurements of OpenDP: the tables and scales that their constructors name."""

import json

import opendp.prelude as dp
import pytest

import gaussnoise as gn
from gaussnoise.errors import ParameterError

dp.enable_features("contrib", "honest-but-curious")

# columns have names in frames alone, which OpenDP is to replace by polars
pytestmark = pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")

ROWS = dp.vector_domain(dp.atom_domain(T=str)), dp.symmetric_distance()
L2 = "L2Distance<i32>"


def frame():
    return dp.t.make_split_dataframe(separator=",", col_names=["sex", "age"])


def column(name):
    return frame() >> dp.t.make_select_column(key=name, TOA=str)


def table(name, categories, scale, *, other=False):
    counts = dp.t.then_count_by_categories(categories, null_category=other, MO=L2)
    return column(name) >> counts >> dp.m.then_gaussian(scale)


def total(scale, rows=None):
    return (rows or column("age")) >> dp.t.then_count() >> dp.m.then_gaussian(scale)


def composed():
    sex = table("sex", ["F", "M"], 2.0)
    ages = [table("age", ["0", "1", "2"], scale, other=True) for scale in (3.0, 6.0)]
    return dp.c.make_composition([sex, *ages, total(5.0)])


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_joint_loss_is_that_of_opendp(wrapped):
    measurement = composed()
    whole = measurement.map(1)
    if wrapped:
        measurement = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), 1e-6)
    found = gn.certify(measurement)
    assert found.names == (("sex",), ("age",), ())
    assert found.rho == pytest.approx(whole, rel=1e-12)  # OpenDP rounds up at every step
    scales = {("sex",): 2.0, ("age",): [3.0, 6.0], (): 5.0}
    plain = gn.certify(scales, sizes={"sex": 2, "age": 4})  # three ages, and all others
    assert found.error == plain.error
    assert found.lower == plain.lower
    assert (found.covariance.toarray() == plain.covariance.toarray()).all()


def test_constructors_in_json_are_read():
    text = json.dumps(composed(), default=lambda x: getattr(x, "__opendp_dict__", str(x)))
    found, plain = gn.certify(json.loads(text), [("sex",)]), gn.certify(composed(), [("sex",)])
    assert (found.rho, found.error, found.names) == (plain.rho, plain.error, (("sex",),))
    counted = total(3.0)
    with pytest.raises(ParameterError, match="got a total alone"):
        gn.certify(json.loads(dp.serialize(counted)))
    alone = gn.certify(json.loads(dp.serialize(counted)), sizes={"sex": 2})
    assert alone.rho == pytest.approx(counted.map(1), rel=1e-12)


def test_steps_on_each_row_are_read():
    ages = column("age") >> dp.t.then_cast_default(TOA=float) >> dp.t.then_find_bin([18.0, 65.0])
    counts = dp.t.then_count_by_categories([0, 1, 2], null_category=False, MO=L2)
    shared = dp.c.make_composition([ages >> counts >> dp.m.then_gaussian(k) for k in (2.0, 4.0)])
    assert gn.certify(shared).rho == pytest.approx(shared.map(1), rel=1e-12)
    assert gn.certify(shared).names == (("age",),)
    values = ROWS >> dp.t.then_count_by_categories(["a"], MO=L2)
    noise = dp.m.then_noise(dp.zero_concentrated_divergence(), 2.0)
    assert gn.certify(values >> noise, sizes={"else": 3}).names == (("value",),)
    # a chain in other brackets
    nested = frame() >> (dp.t.make_select_column("age", str) >> counted())
    assert gn.certify(nested).rho == pytest.approx(1 / 18, rel=1e-12)


def counted():
    return ROWS >> dp.t.then_count_by_categories(["a"], MO=L2) >> dp.m.then_gaussian(3.0)


def unknown_step():
    same = dp.t.make_user_transformation(*ROWS, *ROWS, lambda rows: rows[:5], lambda d: d)
    return column("age") >> same


REFUSED = {
    "make_laplace: its noise is Laplace": lambda: (
        ROWS >> dp.t.then_count() >> dp.m.then_laplace(2.0)
    ),
    "make_geometric: its noise is Laplace": lambda: (
        ROWS >> dp.t.then_count() >> dp.m.then_geometric(2.0)
    ),
    "make_noise: its noise is Laplace": lambda: (
        ROWS >> dp.t.then_count() >> dp.m.then_noise(dp.max_divergence(), 2.0)
    ),
    "make_noisy_max: it chooses an answer by the data": lambda: dp.m.make_noisy_max(
        dp.vector_domain(dp.atom_domain(T="i32")),
        dp.linf_distance(T="i32"),
        dp.zero_concentrated_divergence(),
        1.0,
    ),
    "make_adaptive_composition: its queries are chosen later": lambda: (
        dp.c.make_adaptive_composition(*ROWS, dp.zero_concentrated_divergence(), 1, [1.0])
    ),
    "make_sum: certify knows counts": lambda: (
        (dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
        >> dp.t.then_clamp((0, 9))
        >> dp.t.then_sum()
        >> dp.m.then_gaussian(2.0)
    ),
    "make_chain_pm: its answers are changed": lambda: total(2.0) >> (lambda count: count),
    "make_gaussian: certify knows counts": lambda: dp.m.make_gaussian(
        dp.atom_domain(T=int), dp.absolute_distance(T=int), 2.0
    ),
    "make_user_transformation: its effect on the rows is not known": lambda: total(
        2.0, unknown_step()
    ),
    "the same categories of 'sex'": lambda: dp.c.make_composition(
        [table("sex", ["F", "M"], 1.0), table("sex", ["F", "X"], 1.0)]
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_other_measurements_are_refused_by_name(message):
    with pytest.raises(ParameterError, match=message):
        gn.certify(REFUSED[message]())


def test_rows_in_one_category_alone_are_not_the_number_of_rows():
    """A row that is replaced can move into the category, which a public total does not allow."""
    for count in (1, 2):
        alone = table("age", ["a", "b"][:count], 1.0)
        measurement = dp.c.make_composition([alone, table("sex", ["F", "M"], 10.0)])
        if count == 2:  # as much as in the map of OpenDP: two cells move at most
            assert gn.certify(measurement, neighbors="replace").rho >= 2 * measurement.map(1)
            continue
        for neighbors in ("add-remove", "replace"):
            with pytest.raises(ParameterError, match="rows in one category alone; hint: null"):
                gn.certify(measurement, neighbors=neighbors)
    both = dp.c.make_composition([table("age", ["a"], 1.0, other=True), total(2.0)])
    assert gn.certify(both).rho == pytest.approx(both.map(1), rel=1e-12)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_metric_of_replaced_rows_takes_this_relation(ordered):
    """The map of one replaced row has two changes of one cell each, of which it adds the sizes."""
    rows = dp.vector_domain(dp.atom_domain(T=int), size=10)
    counts = dp.t.then_count_by_categories([0, 1], MO=L2) >> dp.m.then_gaussian(1.0)
    if ordered:
        steps = dp.t.make_unordered(rows, dp.hamming_distance()) >> dp.t.then_metric_unbounded()
    else:
        steps = dp.t.make_metric_unbounded(rows, dp.change_one_distance())
    measurement = steps >> counts
    with pytest.raises(ParameterError, match='neighbors="replace" for a measurement whose metric'):
        gn.certify(measurement)
    found = gn.certify(measurement, neighbors="replace")
    assert 2 * found.rho == pytest.approx(measurement.map(1), rel=1e-12)
    bounded = dp.t.make_metric_bounded(rows, dp.symmetric_distance())
    assert gn.certify(bounded >> dp.t.then_metric_unbounded() >> counts).rho == 0.5


def test_plans_of_polars_and_incomplete_constructors_are_refused():
    lazy = {"__function__": "make_private_lazyframe", "__kwargs__": {"global_scale": 1.0}}
    with pytest.raises(ParameterError, match=r"query.summarize\(\)"):
        gn.certify(lazy)
    for broken in (
        {"__function__": "make_chain_mt", "__kwargs__": {}},
        {"__function__": "make_chain_mt", "__kwargs__": {"measurement1": 3, "transformation0": 2}},
        {"__function__": "make_chain_mt"},
    ):
        with pytest.raises(ParameterError, match="expected a measurement of OpenDP"):
            gn.certify(broken)
    dropped = {"__function__": "make_drop_null", "__kwargs__": {}}
    counts = json.loads(dp.serialize(ROWS >> dp.t.then_count()))
    steps = {"transformation0": dropped, "transformation1": counts}
    noise = {"__function__": "make_gaussian", "__kwargs__": {"scale": 1.0, "k": None}}
    whole = {
        "measurement1": noise,
        "transformation0": {"__function__": "make_chain_tt", "__kwargs__": steps},
    }
    with pytest.raises(ParameterError, match="make_drop_null: it leaves out rows"):
        gn.certify({"__function__": "make_chain_mt", "__kwargs__": whole})
    rounded = {**whole, "measurement1": {**noise, "__kwargs__": {"scale": 1.0, "k": 3}}}
    with pytest.raises(ParameterError, match="rounded before the noise"):
        gn.certify({"__function__": "make_chain_mt", "__kwargs__": rounded})


def test_stated_sizes_are_those_that_were_measured():
    with pytest.raises(ParameterError, match="expected 4 categories of 'age', as measured, got 3"):
        gn.certify(composed(), sizes={"age": 3})
