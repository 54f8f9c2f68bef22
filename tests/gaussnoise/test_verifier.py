"""Files of Python's standard library check published folders, and no changed one passes."""

import ast
import base64
import hashlib
import json
import math
import random
import re
import shutil
import subprocess
import sys
import time
import zipfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from browser import Chromium, as_texts, node_lines
from changed import Copy, changed, fault, leaves, of_a_number, of_a_shifted_cell, unnoticed

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.cli.app import run

pytestmark = pytest.mark.usefixtures("quick_pictures")

FILES = sorted(Path(verifier.__file__).parent.glob("[!_]*.py"))
TOTAL = 1682  # lines of all files
SEX, REGION = gn.Attribute("sex", ["F", "M"]), gn.Attribute("region", ["N", "S", "W"])
AGE = gn.Attribute("age", edges=[0, 18, 40, 65, 90], other="unknown")
PAY = gn.Attribute("pay", clip=[0, 5000])
ABOUT = {"kind": "moments", "degrees": [0, 1, 2], "about": 2500}
MOMENTS = gn.Attribute("pay", clip=[0, 5000], base=ABOUT)
COUNTS, SUMS = gn.Schema([SEX, REGION, AGE]), gn.Schema([SEX, REGION, PAY])
HALVES = gn.Attribute("region", ["N", "S", "W"], groups={"half": {"U": ["N", "W"], "D": ["S"]}})
PREFIXES = [{"sex": "identity", "age": "prefix"}, {"region": "identity"}]
LIFE = {"life": {"child": [0, 18], "adult": [18, 90]}}
LIVES = gn.Attribute("age", edges=[0, 18, 40, 65, 90], other="unknown", groups=LIFE)
# attributes that are asked about in several ways, and a number with squares
SETS = [{"sex": None, "age": "life"}, {"age": "prefix"}, {"age": "identity", "region": "half"}]
SETS += [{"region": "identity"}]
SUMS_AND_SQUARES = [{"pay": None}, {"pay": "sum", "sex": "identity"}]
WHEN = gn.Attribute("when", edges=["2020-01-01", "2020-01-01 12:30", "2020-01-03"])
HERE = gn.Attribute("here", [True, False], other="?")
RHO, BY_PERSON, SIGNED = gn.zCDP(0.1), "of each person", "signed, with a verifier"

KINDS = {
    "counts": lambda: gn.plan(COUNTS, 2, RHO),
    "replace": lambda: gn.plan(COUNTS, 2, RHO, neighbors="replace"),
    "k rows": lambda: gn.plan(COUNTS, 2, RHO, rows_per_person=3),
    "persons": lambda: gn.plan(COUNTS, 2, RHO, person="id", rows_per_person=2),
    "exchanged persons": lambda: gn.plan(
        COUNTS, 2, RHO, person="id", rows_per_person=2, neighbors="replace"
    ),
    "public": lambda: gn.plan(COUNTS, 2, RHO, neighbors="replace", public=["sex"]),
    "prefixes": lambda: gn.plan(COUNTS, PREFIXES, RHO),
    "replaced prefixes": lambda: gn.plan(COUNTS, PREFIXES, RHO, neighbors="replace"),
    "groups": lambda: gn.plan(
        gn.Schema([SEX, HALVES]), [{"sex": None, "region": "half"}, ("region",)], RHO
    ),
    "weights": lambda: gn.plan(COUNTS, 2, RHO, weight=gn.Weight("w", most=4)),
    "sums": lambda: gn.plan(SUMS, [("sex", "pay"), ("region",)], RHO),
    BY_PERSON: lambda: gn.plan(
        SUMS, [("sex", "pay")], RHO, person="id", per_person={"pay": "mean"}, rows_per_person=1
    ),
    "Gaussian DP": lambda: gn.plan(COUNTS, [("sex", "region"), ()], gn.GDP(0.5)),
    "approximate DP": lambda: gn.plan(COUNTS, 1, gn.ApproxDP(1.0, 1e-6)),
    "groups of bins": lambda: gn.plan(
        gn.Schema([SEX, LIVES]), [{"sex": None, "age": "life"}, ("age",)], RHO
    ),
    "times and truth values": lambda: gn.plan(gn.Schema([HERE, WHEN]), 2, RHO),
    "numbers that no table has": lambda: gn.plan(SUMS, [("sex", "region")], RHO),
    "moments about a whole number": lambda: gn.plan(gn.Schema([SEX, MOMENTS]), 2, RHO),
    "matrices of sets": lambda: gn.plan(gn.Schema([SEX, LIVES, HALVES]), SETS, RHO),
    "squares in sets": lambda: gn.plan(gn.Schema([SEX, MOMENTS]), SUMS_AND_SQUARES, RHO),
    SIGNED: lambda: gn.plan(COUNTS, 1, RHO),
}
# of column_means: the range is known, or found with a part of the budget
MEANS = [
    {"between": {"pay": (0, 6000)}},
    {"between": {"pay": (0, 6000.5)}, "by": {"sex": ["F", "M"]}},
    {"between": {"pay": (0, None)}},
    {"person": "id"},
]

# words, and conversions that the verifier says it does not check
WORDS = re.compile(
    r"/(rows_counted|on_outside|epsilon_delta/.*|libraries/.*|disclaimers/.*"
    r"|privacy/(definition|method|draws|least_steps_per_standard_deviation|lattice_distance)"
    r"|optimality/(objective|method|lower_bound(/.*)?)|noise/(query|unit/meaning)"
    r"|published_exactly/.*|workload/\d+/(name|answers|root_mean_square_deviation|file))"
)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(7)
    n = 900
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], n),
            "region": rng.choice(["N", "S", "W"], n),
            "age": rng.integers(0, 90, n),
            "pay": rng.lognormal(7, 0.6, n),
            "w": 4 * rng.random(n),
            "id": rng.integers(0, 300, n),
            "when": np.datetime64("2020-01-01", "s") + rng.integers(0, 172800, n),
            "here": [(None, False, True)[k] for k in rng.integers(0, 3, n)],
        }
    )


@pytest.fixture(scope="module")
def folders(people, tmp_path_factory):
    """A folder of every kind of release."""
    place, made = tmp_path_factory.mktemp("folders"), {}
    for name, plan in KINDS.items():
        made[name] = place / name
        plan().release(people, out=made[name], verifier=name == SIGNED)
    (made[SIGNED] / "signature.json").write_text("not read")
    return made


def of_the_record(copy, rng):
    record = copy.record
    path, inside, key = rng.choice(
        [leaf for leaf in leaves(record) if not WORDS.fullmatch(leaf[0])]
    )
    before = inside[key]
    # a measure that is hardly another one proves the same
    inside[key] = before + 0.01 if "/witness/" in path and key == "weight" else changed(before, rng)
    copy.write_record(record)
    return f"{path}: {before!r} became {inside[key]!r}"


def of_rows(copy, rng):
    name = rng.choice(sorted({entry["file"] for entry in copy.record["marginals"]}))
    lines = (copy.at / name).read_text(encoding="utf-8").splitlines(keepends=True)
    if len(lines) == 2:
        lines.append(lines[1])
    else:
        first, second = rng.sample(range(1, len(lines)), 2)
        how = rng.randrange(4)
        if how == 0:
            lines[first], lines[second] = lines[second], lines[first]
        elif how == 1:
            del lines[first]
        elif how == 2:
            lines.insert(first, lines[second])
        else:
            lines[first] = lines[first].replace('"', '"x', 1)
    copy.write(name, "".join(lines).encode())
    return f"rows of {name}"


def of_files(copy, rng):
    names = sorted(copy.record["files"])
    name, how = rng.choice(names), rng.randrange(4)
    content = bytearray((copy.at / name).read_bytes())
    if how == 0:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        (copy.at / name).write_bytes(content)
    elif how == 1:
        (copy.at / name).unlink()
        if not name.startswith(("release.png", "answers/", "noise.npz", "verifier/")):
            record = copy.record
            del record["files"][name]
            copy.write_record(record)
    elif how == 2:
        copy.write(rng.choice(["tables/0.csv", "more.txt", "tables/x.parquet"]), b"")
    else:
        (copy.at / "tables" / "added").write_bytes(b"")
    return f"file {name}, {how}"


def of_a_doubled_key(copy, rng):
    text = (copy.at / "release.json").read_text(encoding="utf-8")
    first = text.index("\n") + 1
    (copy.at / "release.json").write_text(f'{text[:first]}  "rho": 0.01,\n{text[first:]}')
    return "two values of rho"


CHANGES = [of_the_record, of_the_record, of_a_number, of_rows, of_files]


def test_a_folder_of_every_kind_passes(folders):
    for name, folder in folders.items():
        lines = verifier.verified(folder)
        assert fault(folder) is None, name
        assert sum(line.startswith("checked") for line in lines) >= 7
        proven = any(line.startswith("checked    gamma_lower") for line in lines)
        bases = ("prefixes", "replaced prefixes", "groups", "groups of bins", "sums", BY_PERSON)
        bases += ("moments about a whole number", "matrices of sets", "squares in sets")
        assert proven == (name not in bases)
        assert lines[-1].startswith("unchecked")


@pytest.mark.parametrize("kind", KINDS)
def test_no_changed_folder_passes(kind, folders, tmp_path):
    rng = random.Random(kind)
    copy = Copy(folders[kind], tmp_path / "copy")
    assert unnoticed(copy, rng, [*CHANGES * 60, of_a_doubled_key]) == []
    assert fault(copy.at) is None


@pytest.mark.parametrize("kind", ["counts", "public", "prefixes", "sums", "matrices of sets"])
def test_no_value_of_the_record_is_left_out(kind, folders, tmp_path):
    """Every text and number is changed once; only words and conversions are not checked."""
    rng, copy, passed = random.Random(kind), Copy(folders[kind], tmp_path / "copy"), []
    for path, _, _ in leaves(copy.record):
        if not WORDS.fullmatch(path):
            record = copy.record
            inside, key = next((i, k) for p, i, k in leaves(record) if p == path)
            weight = "/witness/" in path and key == "weight"
            inside[key] = inside[key] + 0.01 if weight else changed(inside[key], rng)
            copy.write_record(record)
            if fault(copy.at) is None:
                passed.append(path)
    assert passed == []


def test_no_other_witness_passes(folders, tmp_path):
    """No measure on pairs proves more than the optimum, and most prove less than is stated."""
    rng, copy = random.Random(6), Copy(folders["replace"], tmp_path / "copy")
    for change in range(300):
        record = copy.record
        witness = record["optimality"]["witness"]
        likely = [one for one in witness if one["weight"] > 1e-3]
        if change % 3 == 0:
            witness.remove(rng.choice(likely))
        elif change % 3 == 1:
            rng.choice(likely)["differing"] = rng.choice([[], ["sex"], ["none"], ["sex", "sex"]])
        else:
            rng.choice(likely)["weight"] *= rng.choice([0.9, -1, 1.1])
        copy.write_record(record)
        assert fault(copy.at) is not None, witness
        copy.restore()


def test_a_cell_that_is_moved_disagrees_with_other_tables(folders, tmp_path):
    """The interval is moved with it: the tables of a release share margins."""
    rng, copy = random.Random(3), Copy(folders["counts"], tmp_path / "copy")
    for _ in range(200):
        what = of_a_shifted_cell(copy, rng)
        assert fault(copy.at) is not None, what
        copy.restore()


def test_noise_that_is_no_integer_is_found(folders, tmp_path):
    """All tables of such a release agree: only the integers are missing."""
    people = pa.table({"sex": ["F", "M"] * 200})
    plan = gn.plan(gn.Schema([SEX]), 1, RHO)
    plan.release(people, out=tmp_path / "one")
    rng, copy = random.Random(4), Copy(tmp_path / "one", tmp_path / "copy")
    assert fault(copy.at) is None
    for _ in range(100):
        of_a_shifted_cell(copy, rng)
        assert "not made of integers" in fault(copy.at)
        copy.restore()


def test_tables_of_less_noise_under_the_record_of_more_are_found(people, folders, tmp_path):
    """One digest is updated: such a folder once showed deviations that were not true."""
    gn.plan(COUNTS, 2, gn.zCDP(0.001)).release(people, out=tmp_path / "other")
    copy = Copy(folders["counts"], tmp_path / "copy")
    name = copy.record["marginals"][0]["file"]
    copy.write(name, (tmp_path / "other" / name).read_bytes())
    assert "standard deviation" in fault(copy.at)


def test_a_simulation_under_the_record_of_a_release_is_found(people, tmp_path):
    rng = np.random.default_rng(5)
    gn.plan(COUNTS, 2, RHO).simulate(people, rng).save(tmp_path / "simulated")
    assert "simulation" in fault(tmp_path / "simulated")
    copy = Copy(tmp_path / "simulated", tmp_path / "copy")
    copy.write_record(copy.record | {"private": True, "rho": 0.1})
    assert "a simulation" in fault(copy.at)


def request_of(record):
    """The digest of the request that a record without a workload of bases states."""
    plan, names = record["plan"], [entry["name"] for entry in record["domain"]]
    late = ("person", "per_person", "public", "ranges", "title", "source")
    request = {key: plan[key] for key in late if plan.get(key) is not None}
    request |= {
        "schema": plan["schema"],
        "marginals": [[*map(names.index, e["attributes"])] for e in record["marginals"]],
        "weights": [f"{entry['weight']:.9g}" for entry in record["marginals"]],
        "p": plan["p"],
        "neighbors": record["neighbors"],
        "rho": f"{record['privacy']['rho']:.9g}",
        "rows_per_person": record["rows_per_person"],
    }
    return hashlib.sha256(json.dumps(request).encode()).hexdigest()


def with_a_negative_range(record):
    rho = float(Fraction(record["rho"]) - Fraction(0.09))
    record["plan"]["ranges"] = [{"rho": -0.09}]
    record["rho"] = record["privacy"]["rho"] = record["plan"]["privacy"]["rho"] = rho


def with_another_definition(record):
    record["privacy"] |= {"definition": "approximate DP", "epsilon": 0.01, "delta": 0.0}


def with_an_attribute_twice(record):
    record["marginals"][0]["attributes"] = ["sex", "sex"]


def with_queries_that_were_not_solved_for(record):
    record["plan"]["workload"] = [
        ["sex", "region"],
        {"sex": None, "age": "prefix"},
        ["region", "age"],
    ]


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (with_a_negative_range, "FAILED: rho"),
        (with_another_definition, "FAILED: another definition of privacy"),
        (with_an_attribute_twice, "FAILED: names twice"),
        (with_queries_that_were_not_solved_for, "FAILED: the bases"),
    ],
)
def test_lies_that_agree_with_themselves_are_found(folders, tmp_path, lie, words):
    copy = Copy(folders["counts"], tmp_path / "lie")
    record = copy.record
    assert request_of(record) == record["request_sha256"]
    lie(record)
    record["request_sha256"] = request_of(record)
    copy.write_record(record)
    assert fault(copy.at) == words


def test_public_counts_are_the_same_in_all_tables(folders, tmp_path):
    copy = Copy(folders["public"], tmp_path / "lie")
    name = next(e["file"] for e in copy.record["marginals"] if e["attributes"] == ["sex", "region"])
    lines = (copy.at / name).read_text(encoding="utf-8").splitlines()
    for k, line in enumerate(lines):
        cells = line.split(",")
        if cells[0] == '"F"':
            x, sd = float(cells[2]) + 512, float(cells[3])
            half = 1.959963984540054 * sd
            lines[k] = ",".join([*cells[:2], *map(repr, (x, sd, x - half, x + half))])
    copy.write(name, ("\n".join(lines) + "\n").encode())
    assert "disagrees with another table on a margin" in fault(copy.at)


def said_by(program, *paths, at):
    """The lines and the status of a copy of one file, with the standard library alone."""
    command = [sys.executable, "-S", "-I", str(program), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=at)
    return done.stdout.splitlines(), done.returncode, done.stderr


def test_a_copy_in_the_folder_checks_it_and_is_in_the_record(people, tmp_path):
    """Again and again: it leaves no file behind."""
    plan = gn.plan(COUNTS, 1, RHO)
    with pytest.raises(gn.errors.ParameterError, match="expected out= with verifier=True"):
        plan.release(people, verifier=True)
    one = plan.release(people, out=tmp_path / "one", verifier=True)
    plan.release(people).save(tmp_path / "two", verifier=True)
    gn.combine([one, plan.release(people)]).save(tmp_path / "both", verifier=True)
    for name in ("one", "two", "both"):
        gn.tables.TableRelease.load(tmp_path / name)
        copies = sorted((tmp_path / name / "verifier").iterdir())
        assert [x.read_bytes() for x in copies] == [x.read_bytes() for x in FILES]
        lines = verifier.verified(tmp_path / name)
        for _ in range(2):
            said = said_by("verifier/verify.py", at=tmp_path / name)
            assert said == ([*lines, verifier.verdict(lines)], 0, "")
    copy = Copy(tmp_path / "both", tmp_path / "copy")
    copy.write("verifier/tables.py", b"print('checked')")
    said = "unchecked  verifier in the folder: it is another one than this, or has other files"
    assert said in verifier.verified(copy.at)
    (copy.at / "verifier" / "tables.py").write_bytes(b"")
    assert fault(copy.at).startswith("FAILED: 'verifier/tables.py' has another sha256")


def test_the_file_about_privacy_is_enough_for_privacy(folders, tmp_path):
    """Alone, it computes what is spent, and names what it leaves out; a lie about ρ is found."""
    alone = shutil.copy(FILES[2], tmp_path / "privacy.py")
    for kind, folder in folders.items():
        copy = Copy(folder, tmp_path / "copy")
        lines, status, _ = said_by(alone, at=copy.at)
        assert (status, lines[0]) == (0, "CHECKED"), kind
        assert lines[-1].startswith("numbers, gamma, words of the record")
        assert any(line.startswith("rho = ") for line in lines[: lines.index("NOT CHECKED")])
        for lie in (with_a_smaller_sensitivity, with_a_smaller_rho):
            record = copy.record
            lie(copy, record)
            copy.write_record(record)
            assert said_by(alone, at=copy.at)[1:] != (0, ""), kind
            copy.restore()


MONTHS = {"month": {"Jan": ["2020-01-01", "2020-02-01"], "Feb": ["2020-02-01", "2020-03-01"]}}
ENDS = ["2020-01-01", "2020-02-01", "2020-02-10", "2020-03-01"]

PARTS = {"part": {"k": [0, 18.5], "m": [18.5, 65.0]}}
ODD = {"a": {"u": ["?", 2], "v": [1]}}
SQUARES = {"kind": "moments", "degrees": [0, 1, 2]}
HOURS = ["2020-01-01 08:00", "2020-01-01 12:30"]


LABELS = [
    (gn.Attribute("x", edges=HOURS), "2020-01-01 09:00", 1),
    (gn.Attribute("x", edges=ENDS, groups=MONTHS), "2020-01-03", [{"x": "month"}]),
    (gn.Attribute("x", edges=[0, 18.5, 65], groups=PARTS), 7.0, [{"x": "part"}]),
    (gn.Attribute("x", [True, False], other="?"), True, 1),
    (gn.Attribute("x", [1, 2], groups={"a": {"u": [2], "v": [1]}}), 2, [{"x": "a"}]),
    (gn.Attribute("x", [1, 2], other="?", groups=ODD), 2, [{"x": "a"}]),
    (gn.Attribute("x", edges=[0, 10**15, 2e15]), 5.0, 1),
    (gn.Attribute("x", edges=[-math.inf, 0, math.inf]), 5.0, 1),
    (gn.Attribute("x", clip=[0, 9.5], base=SQUARES), 5.0, 1),
    (gn.Attribute("x", clip=[-1e-7, 123456789.123456789]), 5.0, 1),
    (gn.Attribute("x", clip=[-0.0, 1e20], other="gone"), 5.0, 1),
]
WEIGHTS = [(1e-75, 2e-75), (1e-120, 3e-120), (1, 1e-20), (1e70, 1e69)]


def release_of(attribute, value, asked, place):
    plan = gn.plan(gn.Schema([attribute]), asked, RHO)
    plan.release(pa.table({"x": [value] * 9}), out=place)


def with_another_label(copy, record):
    record["domain"][0]["labels"][0] = "another"


@pytest.mark.parametrize(("attribute", "value", "asked"), LABELS)
def test_labels_and_groups_of_every_kind_pass(attribute, value, asked, tmp_path):
    release_of(attribute, value, asked, tmp_path / "release")
    assert fault(tmp_path / "release") is None
    copy = Copy(tmp_path / "release", tmp_path / "copy")
    record = copy.record
    with_another_label(copy, record)
    copy.write_record(record)
    assert fault(copy.at) == "FAILED: 'x' is not that of the schema"


def test_a_known_total_keeps_its_digits_where_queries_see_few_directions(tmp_path):
    """The best contrasts are nearly equal for all categories, and would cancel against it."""
    queries = [[1.1, -2.4, -1.1, -2.5, -2.3, -0.5, 7.1], [-1.1, 0.7, 0.3, -0.5, 0.1, 5.7, -0.8]]
    schema = gn.Schema([gn.Attribute("a", [*"abcdefg"]), gn.Attribute("b", [*"wxyz"])])
    options = {"p": math.inf, "neighbors": "replace", "rows_per_person": 2}
    plan = gn.plan(schema, [{"b": "prefix"}, {"a": queries}], gn.zCDP(2), **options)
    assert plan.noise.gap < 0.0022
    for k, times in enumerate([6, 600, 6000] * 3):
        people = pa.table({"a": [*"abcdefgaab"] * times, "b": [*"wxyzw"] * (2 * times)})
        plan.release(people, out=tmp_path / f"{k}")
        assert fault(tmp_path / f"{k}") is None


@pytest.mark.parametrize("neighbors", ["add-remove", "replace"])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_tables_of_any_weight_pass(weights, neighbors, people, tmp_path):
    """Squares of weights leave the range of doubles."""
    plan = gn.plan(COUNTS, [("sex",), ("region",)], RHO, weights=weights, neighbors=neighbors)
    plan.release(people, out=tmp_path / "release")
    assert fault(tmp_path / "release") is None


def means_in(place, people, asked):
    gn.estimators.column_means(people, ["pay"], gn.zCDP(1.0), **asked).release.save(place)
    return place


@pytest.mark.parametrize("asked", MEANS, ids=str)
def test_means_pass(asked, people, tmp_path):
    assert fault(means_in(tmp_path / "means", people, asked)) is None


OTHERS = ("parquet", "jsonl", "xlsx", "sdmx-csv", "json-stat")


@pytest.mark.parametrize("format", OTHERS)
def test_numbers_in_other_formats_are_unchecked_and_what_the_record_says_of_them_is_not(
    format, people, tmp_path
):
    """By both programs: a deviation off by 1e-8, another first row, another number of cells.

    Numbers of JSON lines and of workbooks are read.
    """
    plan = gn.plan(COUNTS, PREFIXES, RHO)
    plan.release(people, out=tmp_path / "release", format=format)
    found = verifier.verified(tmp_path / "release")
    left = any(line.startswith("unchecked  numbers in tables/") for line in found)
    assert left == (format not in ("jsonl", "xlsx")), found
    copy, faults, texts = Copy(tmp_path / "release", tmp_path / "copy"), [], []
    for key in ("standard_deviation", "first_row", "cells"):
        record = copy.record
        entry = record["marginals"][0]
        assert type(entry["standard_deviation"]) is list
        if key == "standard_deviation":
            entry[key][1] *= 1 + 1e-8
        else:
            entry[key] += 1
        copy.write_record(record)
        faults.append(fault(copy.at))
        texts.append(as_texts(copy.at))
        copy.restore()
    theirs = [lines[0] for lines in node_lines([as_texts(copy.at), *texts])]
    assert theirs.pop(0).startswith("checked")
    for said in (faults, theirs):
        for line, what in zip(said, ("deviation", "first row", "number of cells"), strict=True):
            assert re.match(f"FAILED: the {what}.* of tables/", line), line


def with_the_next_number(copy, record):
    """The first number of the first table, off by a tenth, with its digest."""
    name = record["marginals"][0]["file"]
    if name.endswith(".jsonl"):
        text = (copy.at / name).read_text(encoding="utf-8")
        other = re.sub(
            r'(?<="estimate": )(-?[0-9.e+-]+)', lambda x: repr(float(x[1]) + 0.1), text, count=1
        )
        return copy.write(name, other.encode())
    with zipfile.ZipFile(copy.at / name) as book:
        parts = {own: book.read(own) for own in book.namelist()}
    sheet = "xl/worksheets/sheet2.xml"
    other = re.sub(
        rb"<v>(-?[0-9.e+-]+)",
        lambda x: b"<v>" + repr(float(x[1]) + 0.1).encode(),
        parts[sheet],
        count=1,
    )
    with zipfile.ZipFile(copy.at / name, "w") as book:
        for own, content in (parts | {sheet: other}).items():
            book.writestr(own, content)
    return copy.write(name, (copy.at / name).read_bytes())


@pytest.mark.parametrize("format", ["jsonl", "xlsx"])
def test_numbers_in_json_lines_and_workbooks_are_read(format, people, tmp_path):
    """Of a release and of a combination; of a combination in Parquet, no check passes."""
    plan, where = gn.plan(COUNTS, 2, RHO), tmp_path / "both"
    both = gn.combine([plan.release(people), plan.release(people)])
    both.save(where, format=format)
    lines = verifier.verified(where)
    assert lines[0].startswith("checked"), lines
    copy = Copy(where, tmp_path / "copy")
    with_the_next_number(copy, copy.record)
    assert ": an interval is not x ± z sd" in fault(copy.at)
    both.save(tmp_path / "parquet", format="parquet")
    said = fault(tmp_path / "parquet")
    assert said.startswith("UNKNOWN: no check of such a folder: 1: numbers in tables/")
    assert said.endswith(".parquet; hint: gaussnoise convert FOLDER --format csv")


def test_the_demo_passes_in_the_shell_and_without_the_package(tmp_path, monkeypatch, capsys):
    pytest.importorskip("statsmodels")
    from gaussnoise.demo import load

    table, schema = load()
    gn.plan(schema, 2, RHO).release(table, out=tmp_path / "release")
    assert run(["verify", str(tmp_path / "release")]) == 0
    said = capsys.readouterr().out.splitlines()
    lines = verifier.verified(tmp_path / "release")
    assert said == [*lines, verifier.verdict(lines)]
    checks = sum(line.startswith("checked ") for line in lines)
    left = len(lines) - checks
    assert said[-1] == (
        f"VERIFIED: {checks} of {checks} checks; {left} lines above say what is not checked"
    )
    assert any("squared sensitivity 3689348752286476435" in line for line in said)
    (tmp_path / "release" / "ddi.xml").unlink()
    assert run(["verify", str(tmp_path / "release")]) == 1
    failed, said = capsys.readouterr().out.splitlines()
    assert failed.startswith("FAILED: missing or added: ['ddi.xml']")
    assert said.startswith("NOT VERIFIED: missing or added: ['ddi.xml']")


def test_it_runs_alone(folders, tmp_path):
    shutil.copytree(FILES[0].parent, tmp_path / "copy", ignore=lambda *_: ["__pycache__"])
    program, lines = tmp_path / "copy" / "verify.py", verifier.verified(folders["sums"])
    said = said_by(program, folders["sums"], at=tmp_path)
    assert said == ([*lines, verifier.verdict(lines)], 0, "")
    assert said_by(program, tmp_path, at=tmp_path)[1] == 1
    assert said_by(program, at=tmp_path)[1] == 1
    assert not list(tmp_path.rglob("*.pyc"))


def test_a_hundred_thousand_cells_take_a_second(tmp_path):
    axes = [gn.Attribute(name, list(range(n))) for name, n in (("a", 50), ("b", 50), ("c", 40))]
    people = pa.table({a.name: [k % len(a.labels) for k in range(5000)] for a in axes})
    gn.plan(gn.Schema(axes), 3, RHO).release(people, out=tmp_path / "large")
    start = time.process_time()
    assert fault(tmp_path / "large") is None
    assert time.process_time() - start < 2


def functions(source):
    """The syntax of all functions of two statements or more beside the docstring, by content."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[isinstance(ast.get_docstring(node), str) :]
            if len(body) > 1:
                yield "".join(map(ast.dump, body))


def test_it_is_short_and_shares_no_function_and_no_import_with_the_package():
    """Who asks about privacy alone reads 400 lines, and so does who asks about anything else."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in FILES}
    lines = {name: len(text.splitlines()) for name, text in texts.items()}
    assert max(lines.values()) <= 420, lines
    assert sum(lines.values()) < TOTAL, lines
    for name, text in texts.items():
        found = [x for x in ast.walk(ast.parse(text)) if isinstance(x, ast.Import | ast.ImportFrom)]
        inside = {x.module for x in found if isinstance(x, ast.ImportFrom) and x.level}
        imported = {x.module for x in found if isinstance(x, ast.ImportFrom) and not x.level}
        imported |= {one.name for x in found if isinstance(x, ast.Import) for one in x.names}
        assert {x.partition(".")[0] for x in imported} <= sys.stdlib_module_names
        assert name != "privacy.py" or not inside  # it can be read and copied alone
    own = FILES[0].parent
    others = [path for path in own.parent.rglob("*.py") if own not in path.parents]
    theirs = {f for path in others for f in functions(path.read_text(encoding="utf-8"))}
    assert len(theirs) > 1000
    assert not theirs & {f for text in texts.values() for f in functions(text)}
    users = [p.name for p in others if "verifier import" in p.read_text(encoding="utf-8")]
    assert users == ["verify.py"]


def with_a_smaller_sensitivity(copy, record):
    noise = record["noise"]
    noise["integer_sensitivity_squared"] //= 4
    square = Fraction(noise["integer_sensitivity_squared"])
    noise["rho_of_one_row"] = float(square / (2 * Fraction(noise["sigma"]) ** 2)) * (1 + 2**-52)
    record["rho"] = noise["rho_of_one_row"]


def with_a_smaller_rho(copy, record):
    record["rho"] /= 2


def with_a_higher_lower_end(copy, record):
    record["optimality"] |= {"gamma_lower": record["optimality"]["gamma"], "certified_gap": 0.0}


def with_another_gamma(copy, record):
    own = record["optimality"]
    own["gamma"] *= 2
    own["certified_gap"] = own["gamma"] / own["gamma_lower"] - 1


def with_half_the_deviations(copy, record):
    """Every table is written as its program would have written it."""
    for entry in record["marginals"]:
        lines = (copy.at / entry["file"]).read_text(encoding="utf-8").splitlines()
        for k, line in enumerate(lines[1:], 1):
            *names, x, sd, _, _ = line.split(",")
            x, sd = float(x), float(sd) / 2
            half = 1.959963984540054 * sd
            lines[k] = ",".join([*names, *map(repr, (x, sd, x - half, x + half))])
        content = ("\n".join(lines) + "\n").encode()
        (copy.at / entry["file"]).write_bytes(content)
        record["files"][entry["file"]] = hashlib.sha256(content).hexdigest()
        stated = entry["standard_deviation"]
        entry["standard_deviation"] = (
            [x / 2 for x in stated] if type(stated) is list else stated / 2
        )


def with_a_guarantee_of_ones_own(copy, record):
    record["plan"]["privacy"]["definition"] = "Own"


def with_another_key(copy, record):
    record["domain"][0]["clip"] = None


def with_a_file_in_a_folder_of_no_release(copy, record):
    (copy.at / "noise.npz").mkdir()
    (copy.at / "noise.npz" / "more").write_bytes(b"")
    record["files"]["noise.npz/more"] = hashlib.sha256(b"").hexdigest()


def with_a_list_in_a_file(copy, record):
    record["measurements"] = {"file": "measurements.parquet", "count": 1001}


DIRECTED = [
    ("counts", with_a_list_in_a_file, "UNKNOWN: no check of such a folder: a list in Parquet"),
    ("counts", with_a_guarantee_of_ones_own, "UNKNOWN: no check of such a folder: the guarantee"),
    ("counts", with_another_key, "FAILED: 'sex' is not that of the schema"),
    ("counts", with_a_file_in_a_folder_of_no_release, "FAILED: not of a release"),
    ("times and truth values", with_another_label, "FAILED: 'here' is not that of the schema"),
    ("sums", with_another_label, "FAILED: 'sex' is not that of the schema"),
    ("prefixes", with_a_smaller_sensitivity, "FAILED: the squared sensitivity is"),
    ("prefixes", with_a_smaller_rho, "FAILED: rho"),
    ("replace", with_a_higher_lower_end, "FAILED: gamma_lower is not proven"),
    ("counts", with_another_gamma, "FAILED: gamma is not that of the multipliers"),
    ("counts", with_half_the_deviations, "FAILED: a standard deviation in"),
]


@pytest.fixture(scope="module")
def altered(folders, people, tmp_path_factory):
    """Every folder, and some made of it that are not true, with what the verifier says of each."""
    place, found = tmp_path_factory.mktemp("altered") / "copy", []
    for kind, lie, words in DIRECTED:
        copy = Copy(folders[kind], place)
        record = copy.record
        lie(copy, record)
        copy.write_record(record)
        said = verifier.verified(copy.at)
        assert said[0].startswith(words)
        found.append((f"{kind}, {lie.__name__}", as_texts(copy.at), said))
    for name, folder in folders.items():
        rng, copy = random.Random(name), Copy(folder, place)
        found.append((f"{name}, as written", as_texts(folder), verifier.verified(folder)))
        for change in [*CHANGES * 4, *[of_a_shifted_cell] * 5, of_a_doubled_key]:
            what = change(copy, rng)
            found.append((f"{name}: {what}", as_texts(copy.at), verifier.verified(copy.at)))
            copy.restore()
    one = place.parent / "one"
    for k, (attribute, value, asked) in enumerate(LABELS):
        release_of(attribute, value, asked, one)
        found.append((f"labels {k}, as written", as_texts(one), verifier.verified(one)))
        copy = Copy(one, place)
        record = copy.record
        with_another_label(copy, record)
        copy.write_record(record)
        found.append((f"labels {k}, another", as_texts(place), verifier.verified(place)))
        shutil.rmtree(one)
    for weights in WEIGHTS:
        for neighbors in ("add-remove", "replace"):
            asked = {"weights": weights, "neighbors": neighbors}
            gn.plan(COUNTS, [("sex",), ("region",)], RHO, **asked).release(people, out=one)
            found.append((f"{asked}, as written", as_texts(one), verifier.verified(one)))
            shutil.rmtree(one)
    for asked in MEANS:
        means_in(one, people, asked)
        found.append((f"{asked}, as written", as_texts(one), verifier.verified(one)))
        shutil.rmtree(one)
    return found


@pytest.mark.integration
@pytest.mark.parametrize("engine", ["node", "Chromium"])
def test_the_script_of_a_page_has_the_same_verdicts(altered, engine, tmp_path):
    """It was written from the specification, in another language."""
    names, files, ours = zip(*altered, strict=True)
    if engine == "node":
        theirs = node_lines(files)
    else:
        with Chromium(tmp_path / "profile") as browser:
            theirs = browser.lines(files, tmp_path / "page.html")
    first = [[lines[0].split()[0] for lines in own] for own in (ours, theirs)]
    differ = [
        f"{name}: {a[0]} / {b[0]}"
        for name, a, b, x, y in zip(names, ours, theirs, *first, strict=True)
        if x != y
    ]
    assert differ == []
    assert first[0].count("checked") >= len(KINDS)
    assert first[0].count("FAILED:") >= 300
    for name, a, b in zip(names, ours, theirs, strict=True):
        if name.endswith("as written"):  # both name the same numbers
            numbers = [re.findall(r"\d[\d.e-]{5,}", " ".join(sorted(x))) for x in (a, b)]
            assert numbers[0] == numbers[1], name


@pytest.mark.integration
def test_the_script_names_what_it_has_no_checks_of(people, tmp_path):
    """Numbers in Parquet, of which a combination has to be checked, and other formats."""
    plan = gn.plan(COUNTS, 1, RHO)
    both = gn.combine([plan.release(people), plan.release(people)])
    both.save(tmp_path / "both", format="parquet")
    other = as_texts(tmp_path / "both") | {"release.json": base64.b64encode(b"{}").decode()}
    said = node_lines([as_texts(tmp_path / "both"), other])
    first = "UNKNOWN: no check of such a folder: "
    assert said[0][0].startswith(f"{first}1: numbers in tables/*.parquet"), said[0]
    assert said[0][0].endswith("hint: gaussnoise convert FOLDER --format csv")
    assert said[1] == [f"{first}the format 'None'"]
