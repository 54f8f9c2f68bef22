"""A folder agrees with itself: all of its record follows from the plan, but for listed fields."""

import contextlib
import itertools
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import GaussNoiseError, OutputError
from gaussnoise.files.agree import first_difference, text_difference
from gaussnoise.files.disk import file_digest
from gaussnoise.tables.release.stored import FREE

BOOK = Path(__file__).parents[3] / "notebooks"
ROWS = np.arange(60)
PEOPLE = pa.table(
    {
        "sex": ["F", "M", "F"] * 20,
        "age": (ROWS % 80).astype(float),
        "income": ROWS * 10.0,
        "town": ["A", "B", "C", "D"] * 15,
        "who": [f"p{k % 25}" for k in ROWS],
        "w": (ROWS % 3 + 1).astype(float),
    }
)
SEX = gn.Attribute("sex", ["F", "M"])
AGE = gn.Attribute("age", edges=[0, 18, 120], base="prefix")
INCOME = gn.Attribute("income", clip=[0, 1000])
TOWNS = ["A", "B", "C", "D"]
TOWN = gn.Attribute("town", TOWNS)
GROUPED = gn.Attribute(
    "town", TOWNS, other="?", groups={"county": {"N": ["A", "B"], "S": ["C", "D"]}}
)


def released(workload, attributes, rho=0.5, **options):
    return lambda out: gn.plan(gn.Schema(attributes), workload, gn.zCDP(rho), **options).release(
        PEOPLE, out=out
    )


def simulated(out):
    plan = gn.plan(gn.Schema([SEX]), 1, gn.zCDP(0.5))
    plan.simulate(PEOPLE, np.random.default_rng(0)).save(out)


def combined(out):
    plans = (gn.plan(gn.Schema([SEX]), 1, gn.zCDP(rho)) for rho in (0.5, 0.25))
    gn.combine([plan.release(PEOPLE) for plan in plans]).save(out)


def averaged(out):
    gn.estimators.column_means(PEOPLE, ["income"], gn.zCDP(5.0), by={"sex": ["F", "M"]}, out=out)


def streamed(out):
    plan = gn.plan(gn.Schema([SEX]), 1, gn.zCDP(0.5), over=gn.streams.Ticks(3))
    stream = plan.start(out)
    stream.tick(PEOPLE)


MAKERS = {
    "tables": released(2, [SEX, TOWN]),
    "replaced rows": released(1, [SEX], neighbors="replace", rows_per_person=2),
    "public attributes": released(
        [("sex", "town")],
        [SEX, TOWN],
        neighbors="replace",
        public=["sex"],
    ),
    "lines for readers": released(1, [SEX], title="Sexes", source="A register"),
    "cumulative counts": released([("sex", "age")], [SEX, AGE]),
    "weights and numbers": released(
        ["sex", ("sex", "income")], [SEX, INCOME], weight=gn.Weight("w", most=3)
    ),
    "persons": released(["sex"], [SEX], person="who", rows_per_person=2),
    "numbers of persons": released(
        [("sex", "income")], [SEX, INCOME], person="who", per_person="mean"
    ),
    "a hierarchy": released([{"town": "hierarchy"}, "sex"], [SEX, GROUPED]),
    "targets": released(["sex"], [SEX], targets=[50]),
    "a matrix": released(
        ["town"], [gn.Attribute("town", TOWNS, base=[[1, 1, 0, 0], [0, 1, 2, 3]])]
    ),
    "means": averaged,
    "a simulation": simulated,
    "a combination": combined,
    "a stream": streamed,
    "a tick": streamed,
}
FILES = {"a stream": "stream.json", "a tick": "ticks/0001/release.json"}
# what may be other than it was written: a version (which has other words, but no other numbers),
# and a proof, which has other digits on other machines, and which the verifier checks
ALLOWED = re.compile(r"libraries\.\w+|ledger|optimality\.witness(\..*)?")
NAMES = re.compile(r"workload\.\d+\.name")  # of a base of which only the matrix is stored


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folder of a kind, which is made once."""
    made = {}

    def folder(kind):
        if kind not in made:
            made[kind] = tmp_path_factory.mktemp("record") / "out"
            MAKERS[kind](made[kind])
        return made[kind]

    return folder


def loader(kind, folder):
    if kind == "a stream":
        return lambda: gn.streams.Stream.open(folder)
    if kind == "a tick":
        stream = gn.streams.Stream.open(folder)
        return lambda: (stream.period(1), stream.total(1))
    return lambda: gn.TableRelease.load(folder)


def mutations(value, place=()):
    """Yield the place of every change of a value of JSON, its kind, and the changed value."""
    if isinstance(value, dict):
        yield place, "key added", value | {"zz": 1}
        for name in value:
            yield (*place, name), "key removed", {n: v for n, v in value.items() if n != name}
    if isinstance(value, list):
        if value:
            yield place, "list shortened", value[:-1]
        yield place, "list lengthened", [*value, *(value[-1:] or ["x"])]
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            for where, what, changed in mutations(inner, (*place, name)):
                outer = value.copy()
                outer[name] = changed
                yield where, what, outer
        return
    if isinstance(value, str):
        changes = [value + "x"]
    elif isinstance(value, bool):
        changes = [not value]
    elif isinstance(value, int):
        changes = [value + 1]
    elif isinstance(value, float):
        changes = [value * 1.001 + 1e-6]
    else:
        changes = [1, "x", {}]
    yield from ((place, f"{value!r:.20} changed", changed) for changed in [*changes, None])


# Every fifth change is tried. Fields have two to four, so that all kinds of fields take part.
STEP = 5


@pytest.mark.parametrize("kind", MAKERS)
def test_changes_of_a_record_are_refused_but_those_of_listed_fields(folders, kind):
    folder = folders(kind)
    file, load = folder / FILES.get(kind, "release.json"), loader(kind, folder)
    text = file.read_text(encoding="utf-8")
    load()
    count, passed = 0, []
    try:
        for place, what, changed in itertools.islice(mutations(json.loads(text)), 0, None, STEP):
            if changed == json.loads(text):  # null
                continue
            file.write_text(json.dumps(changed), encoding="utf-8")
            count += 1
            with contextlib.suppress(GaussNoiseError):
                load()
                passed.append((".".join(map(str, place)), what))
    finally:
        file.write_text(text, encoding="utf-8")
    print(f"{kind}: {count} changes, {len(passed)} of listed fields")
    if kind == "a matrix":
        passed = [one for one in passed if not NAMES.fullmatch(one[0])]
    assert [one for one in passed if not ALLOWED.fullmatch(one[0])] == []
    assert count > 100 / STEP


def rewritten(folder, change=lambda record: None, files=()):
    """Change the record of a folder, and update the sha256 of some of its files."""
    path = folder / "release.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    record["files"] |= {name: file_digest(folder / name) for name in files}
    path.write_text(json.dumps(record), encoding="utf-8")


def refused(folder, words):
    """Check that a folder is refused with these words, by both doors of the shell as well."""
    with pytest.raises(OutputError, match=words):
        gn.TableRelease.load(folder)
    for command in (["ask", str(folder), "sex"], ["report", str(folder), "-o", str(folder) + ".x"]):
        assert run(command) != 0


@pytest.mark.parametrize("format", ["csv", "parquet", "jsonl", "xlsx", "sdmx-csv", "json-stat"])
def test_tables_of_another_budget_are_refused_under_a_record(tmp_path, format):
    folders = {}
    for rho in (0.001, 10.0):
        folders[rho] = tmp_path / str(rho)
        plan = gn.plan(gn.Schema([SEX]), 1, gn.zCDP(rho))
        plan.release(PEOPLE, out=folders[rho], format=format)
    (name,) = [
        path.name for path in (folders[10.0] / "tables").iterdir() if "meta" not in path.name
    ]
    shutil.copy(folders[0.001] / "tables" / name, folders[10.0] / "tables" / name)
    rewritten(folders[10.0], files=[f"tables/{name}"])
    refused(
        folders[10.0], r"other standard deviations .*: expected up to 0\.2236.*, got up to 22\.36"
    )


def test_a_simulation_that_claims_to_be_private_is_refused(tmp_path):
    simulated(tmp_path / "out")
    rho = gn.plan(gn.Schema([SEX]), 1, gn.zCDP(0.5)).rho_charged
    whole = tmp_path / "whole"
    released(1, [SEX])(whole)
    true = json.loads((whole / "release.json").read_text(encoding="utf-8"))
    rewritten(tmp_path / "out", lambda record: record.update(private=True))
    refused(tmp_path / "out", "calibrated by another")
    rewritten(tmp_path / "out", lambda record: record.update(rho=rho))
    refused(tmp_path / "out", "'epsilon_delta': expected {.*, got None")
    words = {name: true[name] for name in ("epsilon_delta", "disclaimers")}
    rewritten(tmp_path / "out", lambda record: record.update(words))
    words = "'summary.txt' does not follow from its plan: line 1: expected 'These files are"
    refused(tmp_path / "out", words)
    rewritten(tmp_path / "out", lambda record: record["libraries"].update(gaussnoise="0.0.9"))
    refused(tmp_path / "out", "disagree whether this is a simulation")


@pytest.mark.parametrize("name", ["summary.txt", "method.txt", "ddi.xml"])
def test_texts_that_say_something_else_are_refused(folders, tmp_path, name):
    folder = shutil.copytree(folders("tables"), tmp_path / "out")
    text = (folder / name).read_text(encoding="utf-8")
    assert "sex" in text
    (folder / name).write_text(text.replace("sex", "age", 1), encoding="utf-8")
    rewritten(folder, files=[name])
    refused(folder, f"'{name}' does not follow from its plan: line")


@pytest.mark.parametrize("column", ["estimate", "standard_deviation", "low", "high"])
def test_answers_and_intervals_follow_from_the_tables(folders, tmp_path, column):
    """An estimate in a table is data, which no plan knows; all else follows from it."""
    for place in ("tables", "answers"):
        folder = shutil.copytree(folders("cumulative counts"), tmp_path / place)
        path = sorted((folder / place).glob("*.csv"))[0]
        rows = csv.read_csv(path)
        changed = np.array(rows[column].to_numpy())
        changed[-1] += 1
        k = rows.column_names.index(column)
        csv.write_csv(rows.set_column(k, column, pa.array(changed)), path)
        rewritten(folder, files=[path.relative_to(folder).as_posix()])
        refused(folder, "does not follow from|has other standard deviations")


def test_a_record_of_another_version_may_have_other_words_and_no_other_numbers(folders, tmp_path):
    folder = shutil.copytree(folders("tables"), tmp_path / "out")

    def reworded(record):
        record["libraries"] |= {"gaussnoise": "0.0.9"}
        record["privacy_unit"] = "a row"
        record["notes"] = []

    rewritten(folder, reworded)
    (folder / "summary.txt").write_text("The summary of another version.", encoding="utf-8")
    rewritten(folder, files=["summary.txt"])
    gn.TableRelease.load(folder)
    whole = json.loads((folder / "release.json").read_text(encoding="utf-8"))["noise"]
    for name in ("rho_of_one_row", "integer_sensitivity_squared"):
        rewritten(folder, lambda record, name=name: record["noise"].update({name: whole[name] * 2}))
        refused(folder, f"'{name}': expected")
        rewritten(folder, lambda record: record.update(noise=whole))
    rewritten(folder, lambda record: record["marginals"][0].update(standard_deviation=0.25))
    refused(folder, "'marginals.0.standard_deviation': expected .*, got 0.25; hint")


def test_an_edge_of_minus_zero_is_zero_and_its_folder_is_read(tmp_path):
    own = gn.Attribute("age", edges=[-5, -0.0, 120])
    assert own == gn.Attribute("age", edges=[-5, 0, 120])
    assert repr(own.edges) == "(-5.0, 0.0, 120.0)"
    release = gn.plan(gn.Schema([own]), 1, gn.zCDP(0.5)).release(PEOPLE, out=tmp_path / "out")
    again = gn.TableRelease.load(tmp_path / "out")
    assert (again["age"].estimate == release["age"].estimate).all()


def test_only_rounding_and_time_may_differ():
    assert text_difference("certified gap 1.1e-16.\nb", "certified gap 2.2e-16.\nb") is None
    assert text_difference("(1, 1e-09)-differential privacy", "(1, 1e-99)-differential privacy")
    assert text_difference("9 noisy integers: 1 s", "9 noisy integers: about 3 s") is None
    assert (
        text_difference("9 noisy integers: 1 s", "9 noisy integers: 1 s; epsilon = 0") is not None
    )
    assert text_difference("gap 1.1e-02", "gap 2.2e-02") is not None
    assert text_difference("a", "a\nb") == "line 2: expected 'nothing', got 'b'"
    assert first_difference({"a": [1.0, 2]}, {"a": [1.0 + 1e-15, 2]}) is None
    assert first_difference({"a": [1.0, 2]}, {"a": [1.0, 2.0]}) == "'a.1': expected 2, got 2.0"
    assert first_difference({"a": 1}, {}) == "'a': expected 1, got nothing"
    assert first_difference({"certified_gap": 1e-16}, {"certified_gap": 3e-16}) is None
    assert first_difference({"delta": 1e-16}, {"delta": 3e-16}) is not None
    solved = {"optimality": {"gamma": 2.0, "certified_gap": 3.1e-7}, "rho": 0.5}
    others = {"optimality": {"gamma": 2.0 + 4e-9, "certified_gap": 3.3e-7}, "rho": 0.5}
    assert first_difference(solved, others) is None
    assert first_difference(solved, others | {"rho": 0.5 + 4e-9}) is not None
    assert first_difference({"optimality": {"gamma": 2.0}}, {"optimality": {"gamma": 2.1}})


def test_the_book_names_every_field_that_no_plan_determines():
    page = " ".join((BOOK / "files.md").read_text(encoding="utf-8").split())
    for name in FREE:
        assert f"`{name}" in page
