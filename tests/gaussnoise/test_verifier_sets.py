"""Matrices of an attribute that depend on the attributes measured with it: both programs read them,
and refuse a folder in which one is another, or measures another set.
"""

import hashlib
import itertools
import json
import math
import random
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from browser import as_texts, node_lines
from changed import Copy, of_a_shifted_cell

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.solvers.tables import products
from gaussnoise.verifier import privacy, tables

pytestmark = pytest.mark.usefixtures("quick_pictures")

SEX, PAY = gn.Attribute("sex", ["F", "M"]), gn.Attribute("pay", clip=[0, 5000])
PARTS = {"region": {"east": ["a", "b", "c"], "north": ["d"], "west": ["e", "f"]}}
PARTS |= {"half": {"low": ["a", "b"], "high": ["c", "d", "e", "f"]}}
COUNTY = gn.Attribute("county", list("abcdef"), groups=PARTS)
AGE = gn.Attribute("age", edges=[0, 18, 40, 65, 90], other="unknown")
MOMENTS = {"kind": "moments", "degrees": [0, 1, 2], "about": 2500}
SQUARED = gn.Attribute("pay", clip=[0, 5000], base=MOMENTS, other="none")
INCOME = gn.Attribute("income", unit=1.0)
RHO = gn.zCDP(0.5)
SCHEMA = gn.Schema([COUNTY, SEX, AGE])
COUNTIES = [{"county": None}, {"county": "region", "age": None}]
# two matrices of counties beside the usual one, and one of ages
SEVERAL = [*COUNTIES, {"county": "half", "sex": None}, {"age": "prefix"}]

PLANS = {
    "counties": lambda: gn.plan(SCHEMA, COUNTIES, RHO),
    "several": lambda: gn.plan(SCHEMA, SEVERAL, RHO),
    "three attributes": lambda: gn.plan(
        SCHEMA, [*SEVERAL, {"county": "region", "age": "prefix", "sex": None}], RHO
    ),
    "rows of a person": lambda: gn.plan(SCHEMA, COUNTIES, RHO, rows_per_person=3),
    "persons": lambda: gn.plan(SCHEMA, COUNTIES, RHO, person="id", rows_per_person=2),
    "weights": lambda: gn.plan(SCHEMA, COUNTIES, RHO, weight=gn.Weight("w", most=4)),
    "largest error": lambda: gn.plan(SCHEMA, COUNTIES, RHO, p=math.inf),
    "cells of a catch-all": lambda: gn.plan(
        SCHEMA, [{"age": "prefix"}, {"age": None, "sex": None}], RHO
    ),
    "sums": lambda: gn.plan(
        gn.Schema([COUNTY, SEX, PAY]),
        [{"pay": None, "county": None}, {"pay": None, "county": "region", "sex": None}],
        RHO,
    ),
    "squares": lambda: gn.plan(
        gn.Schema([SEX, SQUARED]), [{"pay": None}, {"pay": "sum", "sex": None}], RHO
    ),
    "budgets that grow": lambda: gn.plan(
        gn.Schema([COUNTY, SEX, AGE, INCOME]),
        [*COUNTIES, {"income": None, "sex": None}],
        gn.PerRecord(RHO, scale={"income": 1000.0}),
    ),
}


def people(rng, n=600):
    return pa.table(
        {
            "county": rng.choice(list("abcdef"), n),
            "sex": rng.choice(["F", "M"], n),
            "age": rng.integers(0, 99, n),
            "pay": rng.lognormal(7, 0.6, n),
            "income": rng.lognormal(7, 0.6, n),
            "w": 4 * rng.random(n),
            "id": rng.integers(0, 200, n),
        }
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A release of every plan, combinations and changes of some, a stream, and other formats."""
    at, table = tmp_path_factory.mktemp("folders"), people(np.random.default_rng(8))
    for name, plan in PLANS.items():
        plan().release(table, out=at / name)
    for name in ("counties", "squares", "sums"):
        one, other = gn.TableRelease.load(at / name), PLANS[name]().release(table)
        other.save(at / f"other {name}")
        gn.combine([one, other], same_rows="assumed").save(at / f"combined {name}")
        gn.difference(one, other).save(at / f"changes in {name}")
    for format in ("xlsx", "jsonl"):
        PLANS["several"]().release(table, out=at / format, format=format)
    with pytest.MonkeyPatch.context() as patched:  # small matrices: doubles resolve the integers
        patched.setattr(products, "contrast_bits", lambda *_: 6)
        plan = gn.plan(SCHEMA, SEVERAL, RHO, weights=[1, 1, 1, 2])  # not the one in memory
        plan.release(table, out=at / "few bits")
    pairs = [*COUNTIES, {"county": "region", "sex": None}]
    stream = gn.plan(SCHEMA, pairs, RHO, over=gn.streams.Ticks(3)).start(at / "stream")
    for tick in (1, 2):
        stream.tick(table, number=tick)
    return {path.name: path for path in at.iterdir()}


def lines_of(at):
    """The lines of both programs."""
    return verifier.verified(at), node_lines([as_texts(at)])[0]


def both(at):
    """The first lines of both programs."""
    return [lines[0] for lines in lines_of(at)]


def refused(copy, ours="", theirs=""):
    """Check that both programs refuse a folder, with these words."""
    found = both(copy.at)
    assert [line.split()[0] for line in found] == ["FAILED:"] * 2, found
    assert ours in found[0], found
    assert theirs in found[1], found


def record_of(folder):
    return json.loads((folder / "release.json").read_text(encoding="utf-8"))


def test_both_programs_pass_every_kind_of_folder(folders):
    kept = {name: at for name, at in folders.items() if not name.startswith("other ")}
    theirs = [lines[0] for lines in node_lines(map(as_texts, kept.values()))]
    ours = [verifier.verified(at)[0] for at in kept.values()]
    failed = [line for line in (*ours, *theirs) if not line.startswith("checked")]
    assert failed == []
    assert len(kept) == len(PLANS) + 10
    of_sets = {name for name in PLANS if "contrasts_in_sets" in record_of(kept[name])["noise"]}
    assert {*PLANS} - of_sets == {"squares"}  # rows are on a curve, and not at categories


def test_integers_are_found_by_the_matrices_of_their_sets(folders, tmp_path):
    rng, copy = random.Random(5), Copy(folders["few bits"], tmp_path / "copy")
    for lines in lines_of(copy.at):
        said = next(line for line in lines if " as integers" in line)
        assert "6 measurements, 6 as integers" in said
    for _ in range(5):
        of_a_shifted_cell(copy, rng)
        refused(copy)
        copy.restore()


# ---- Records
def listed(record, name="county"):
    return [x for x in record["noise"]["contrasts_in_sets"] if x["attribute"] == name]


def with_another_entry(record):
    rows = listed(record)[0]["contrasts"]
    first, rest = rows[0].split(" ", 1)
    rows[0] = f"{int(first) + 1} {rest}"


def with_a_set_under_another_matrix(record):
    one, other = listed(record)
    other["sets"].append(one["sets"].pop())


def with_matrices_exchanged(record):
    one, other = listed(record)
    one["sets"], other["sets"] = other["sets"], one["sets"]


def without_a_matrix(record):
    record["noise"]["contrasts_in_sets"].pop(0)


def without_all_matrices(record):
    del record["noise"]["contrasts_in_sets"]


def without_a_set(record):
    listed(record)[0]["sets"].pop()


def with_a_set_twice(record):
    listed(record)[1]["sets"].append(listed(record)[0]["sets"][0])


def with_a_set_that_is_not_measured(record):
    listed(record)[0]["sets"].append(["county", "sex", "age"])


def with_a_set_in_another_order(record):
    listed(record)[0]["sets"][0].reverse()


def with_a_set_of_others(record):
    listed(record)[0]["sets"].append(["sex"])


def with_an_attribute_that_is_not_there(record):
    listed(record)[0]["attribute"] = "town"


def with_the_usual_matrix_of_the_attribute_left_out(record):
    del record["noise"]["contrasts"]["county"]


def with_a_matrix_of_another_attribute(record):
    listed(record)[0]["attribute"] = "age"


def with_a_row_less(record):
    listed(record)[0]["contrasts"].pop()


def with_a_row_of_zeros(record):
    rows = listed(record)[0]["contrasts"]
    rows[0] = " ".join("0" * len(rows[0].split(" ")))


def with_two_spaces(record):
    rows = listed(record)[0]["contrasts"]
    rows[0] = rows[0].replace(" ", "  ", 1)


def with_a_zero_before_a_number(record):
    rows = listed(record)[0]["contrasts"]
    rows[0] = f"{rows[0][:1].strip('0123456789')}0{rows[0].removeprefix('-')}"


def where_rows_are_exchanged(record):
    record["neighbors"] = record["plan"]["neighbors"] = "replace"


SETS = "sets of 'county'", "a set of 'county'"
RECORDS = [
    (with_another_entry, "", "spread totals"),
    (with_a_set_under_another_matrix, "the squared sensitivity is", "the squared sensitivity is"),
    (with_matrices_exchanged, "the squared sensitivity is", "the squared sensitivity is"),
    (without_a_matrix, "the squared sensitivity is", "the squared sensitivity is"),
    (without_all_matrices, "the squared sensitivity is", "the squared sensitivity is"),
    (without_a_set, "the squared sensitivity is", "the squared sensitivity is"),
    (with_a_set_twice, *SETS),
    (with_a_set_that_is_not_measured, *SETS),
    (with_a_set_in_another_order, SETS[0], "not in the order"),
    (with_a_set_of_others, *SETS),
    (with_an_attribute_that_is_not_there, "town", "town"),
    (with_the_usual_matrix_of_the_attribute_left_out, "", "matrices of 'county' in sets"),
    (with_a_matrix_of_another_attribute, "the matrix of 'age'", "the matrix of 'age'"),
    (with_a_row_less, "the matrix of 'county'", "the matrix of 'county'"),
    (with_a_row_of_zeros, "", "does not tell all categories apart"),
    (with_two_spaces, "", "an integer of a matrix"),
    (with_a_zero_before_a_number, "integers", "an integer of a matrix"),
    (where_rows_are_exchanged, "sets of 'county'", "matrices of 'county' in sets"),
]


@pytest.mark.parametrize(("lie", "ours", "theirs"), RECORDS)
def test_a_record_with_other_matrices_is_refused(lie, ours, theirs, folders, tmp_path):
    copy = Copy(folders["several"], tmp_path / "copy")
    record = copy.record
    lie(record)
    copy.write_record(record)
    refused(copy, ours, theirs)


@pytest.mark.parametrize("lie", [with_another_entry, without_a_matrix, without_a_set])
def test_so_is_that_of_a_stream(lie, folders, tmp_path):
    copy = Copy(folders["stream"], tmp_path / "copy")
    record = copy.read("stream.json")
    lie(record)
    copy.write_record(record, "stream.json")
    refused(copy)


def charge(record, squared):
    """State a squared sensitivity, and the rho that follows from it."""
    noise = record["noise"]
    noise["integer_sensitivity_squared"] = squared
    cost = Fraction(squared) / (2 * Fraction(noise["sigma"]) ** 2)
    noise["rho_of_one_row"] = record["rho"] = float(cost) * (1 + 2**-52)


def test_the_sensitivity_of_the_usual_matrices_alone_is_refused(folders, tmp_path):
    """With the rho that would follow, and with a sigma that would suffice."""
    copy = Copy(folders["several"], tmp_path / "copy")
    one, record = privacy.opened(copy.at), copy.record
    assert one.longest() == record["noise"]["integer_sensitivity_squared"]
    one.used, one.several = {T: {i: one.own[i] for i in T} for T in one.multipliers}, set()
    charge(record, one.longest())
    copy.write_record(record)
    refused(copy, "the squared sensitivity is", "the squared sensitivity is")


def test_a_number_without_upper_end_has_one_matrix(folders, tmp_path):
    copy = Copy(folders["budgets that grow"], tmp_path / "copy")
    record = copy.record
    assert record["noise"]["contrasts"]["income"] == ["0 1"]
    more = {"attribute": "income", "sets": [["sex", "income"]], "contrasts": ["0 1"]}
    record["noise"]["contrasts_in_sets"].append(more)
    copy.write_record(record)
    refused(copy, "sets of 'income'", "matrices of 'income' in sets")


def test_an_attribute_has_its_usual_matrix_if_it_has_others(tmp_path):
    """Here no set is measured by the usual one, and totals are spread evenly without it."""
    pairs = {"pair": {"one": ["a", "b"], "two": ["c", "d"], "three": ["e", "f"]}}
    schema = gn.Schema([gn.Attribute("county", list("abcdef"), groups=pairs), SEX])
    asked = [{"county": None}, {"county": "pair", "sex": None}]
    table = people(np.random.default_rng(10))
    gn.plan(schema, asked, RHO).release(table, out=tmp_path / "release")
    copy = Copy(tmp_path / "release", tmp_path / "copy")
    record, own = copy.record, {"attribute": "county", "sets": [["county"]]}
    usual = record["noise"]["contrasts"]
    record["noise"]["contrasts_in_sets"].append(own | {"contrasts": usual["county"]})
    copy.write_record(record)
    assert all(line.startswith("checked") for line in both(copy.at)), both(copy.at)
    del usual["county"]
    copy.write_record(record)
    refused(copy, "matrices of other attributes", "matrices of 'county' in sets")


# ---- Numbers
def with_true_deviations(copy, in_sets=True):
    """Write each table with the deviations that follow from the record, as its program would."""
    of = tables.Measured(one := privacy.opened(copy.at))
    for a in of.own:
        if not in_sets:
            a.in_sets.clear()
    for entry, S in zip(one.record["marginals"], of.tables, strict=True):
        every = map(math.sqrt, of.squares(S, [of.own[i] for i in S], of.noise))
        lines = (copy.at / entry["file"]).read_text(encoding="utf-8").splitlines()
        deviations = list[float]()
        for k, sd in enumerate(every, 1):
            *cells, x, _, _, _ = lines[k].split(",")
            half = tables.Z * sd
            ends = float(x) - half, float(x) + half
            lines[k] = ",".join([*cells, x, *map(repr, (sd, *ends))])
            deviations.append(sd)
        copy.write(entry["file"], ("\n".join(lines) + "\n").encode())
        record = copy.record
        own = next(x for x in record["marginals"] if x["file"] == entry["file"])
        own["standard_deviation"] = [min(deviations), max(deviations)]
        copy.write_record(record)


def test_deviations_of_the_usual_matrices_are_refused(folders, tmp_path):
    copy = Copy(folders["several"], tmp_path / "copy")
    with_true_deviations(copy)
    assert all(line.startswith("checked") for line in both(copy.at))
    with_true_deviations(copy, in_sets=False)
    refused(copy, "a standard deviation in", "a standard deviation in")


def test_a_matrix_that_spreads_totals_in_another_way_is_refused(folders, tmp_path, monkeypatch):
    """Everything else agrees with it, also the sensitivity: two columns change places.

    Without this check the folder passes, though its deviations are not those of its noise.
    """
    copy = Copy(folders["several"], tmp_path / "copy")
    record = copy.record
    usual = [list(map(int, row.split(" "))) for row in record["noise"]["contrasts"]["county"]]
    shares = np.linalg.inv(np.vstack([np.ones(6), usual]))[:, 0]
    a, b = max(itertools.combinations(range(6), 2), key=lambda pair: np.ptp(shares[list(pair)]))
    assert abs(shares[a] - shares[b]) > 0.01
    rows = listed(record)[0]["contrasts"]
    for k, row in enumerate(rows):
        own = row.split(" ")
        own[a], own[b] = own[b], own[a]
        rows[k] = " ".join(own)
    copy.write_record(record)
    moved = privacy.opened(copy.at).longest()
    if moved > record["noise"]["integer_sensitivity_squared"]:  # more noise: more than was spent
        record["noise"]["sigma"] *= math.sqrt(
            moved / record["noise"]["integer_sensitivity_squared"]
        )
    charge(record, moved)
    copy.write_record(record)
    with monkeypatch.context() as patched:
        patched.setattr(tables, "is_spread_alike", lambda *_: True)
        with_true_deviations(copy)
        assert verifier.verified(copy.at)[0].startswith("checked")
    refused(copy, "'county' spreads totals", "matrices of 'county' spread totals in other ways")


def test_releases_with_other_matrices_in_a_set_are_no_combination(tmp_path, monkeypatch):
    """The program refuses to combine them, unless its check is left out."""
    table = people(np.random.default_rng(9))
    pair = [gn.plan(SCHEMA, COUNTIES, RHO, weights=w).release(table) for w in ([1, 1], [1, 4])]
    with pytest.raises(gn.errors.NotAvailableError, match="'county' to be measured by the same"):
        gn.combine(pair, same_rows="assumed")
    monkeypatch.setattr("gaussnoise.tables.release.combine._same", lambda *_: True)
    gn.combine(pair, same_rows="assumed").save(tmp_path / "both")
    usual = [one.plan.query.strategies[0].contrasts for one in pair]
    assert not np.array_equal(*usual)
    refused(Copy(tmp_path / "both", tmp_path / "copy"), *["'county' is measured differently"] * 2)


def test_releases_with_other_matrices_in_one_set_are_no_combination(folders, tmp_path):
    """Of one release the matrix of a set is negated, which changes no number of its own."""
    copy = Copy(folders["combined counties"], tmp_path / "copy")
    record = copy.record
    one = record["combined_from"][0]
    inner = copy.read(f"{one['folder']}/release.json")
    rows = listed(inner)[0]["contrasts"]
    rows[:] = [" ".join(str(-int(x)) for x in row.split(" ")) for row in rows]
    copy.write_record(inner, f"{one['folder']}/release.json")
    assert all(line.startswith("checked") for line in both(copy.at / one["folder"]))
    content = (copy.at / one["folder"] / "release.json").read_bytes()
    one["sha256"] = hashlib.sha256(content).hexdigest()
    record["files"][f"{one['folder']}/release.json"] = one["sha256"]
    copy.write_record(record)
    refused(copy, *["'county' is measured differently"] * 2)


def test_the_squared_change_of_no_row_is_above_the_stated_one(folders):
    """Computed from the record alone, for all rows of three attributes."""
    record = record_of(folders["three attributes"])
    noise, names = record["noise"], [x["name"] for x in record["domain"]]
    sizes = {x["name"]: len(x["labels"]) for x in record["domain"]}
    usual = {n: n_times_identity(sizes[n]) for n in names}
    usual |= {n: matrix(rows) for n, rows in noise["contrasts"].items()}
    squares = np.zeros([sizes[n] for n in names], dtype=object)
    for of in record["measurements"]:
        part = np.array(int(of["multiplier"]) ** 2, dtype=object)
        for n in names:
            C = usual[n]
            for x in noise["contrasts_in_sets"]:
                if x["attribute"] == n and of["attributes"] in x["sets"]:
                    C = matrix(x["contrasts"])
            own = (C * C).sum(axis=0) if n in of["attributes"] else np.ones(sizes[n], dtype=object)
            part = np.multiply.outer(part, own)
        squares = squares + part
    assert squares.max() <= noise["integer_sensitivity_squared"]
    assert squares.max() > 0.99 * noise["integer_sensitivity_squared"]


def matrix(rows):
    return np.array([list(map(int, row.split(" "))) for row in rows], dtype=object)


def n_times_identity(n):
    return np.array([[1, -1]], dtype=object) if n == 2 else n * np.eye(n, dtype=object) - 1
