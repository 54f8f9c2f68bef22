"""The verifier checks streams and combined folders, and no changed one passes."""

import hashlib
import itertools
import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from browser import as_texts, node_lines
from changed import Copy, changed, fault, leaves, of_a_number, of_a_shifted_cell, unnoticed

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.verifier import privacy, tables
from gaussnoise.verifier.privacy import largest_change

pytestmark = pytest.mark.usefixtures("quick_pictures")

SEX, REGION = gn.Attribute("sex", ["F", "M"]), gn.Attribute("region", ["N", "S", "W"])
AGE = gn.Attribute("age", edges=[0, 18, 40, 65, 90], other="unknown")
SCHEMA = gn.Schema([SEX, REGION, AGE])
PREFIXES = [{"sex": "identity", "age": "prefix"}, {"region": "identity"}]
Ticks = gn.streams.Ticks

STREAMS = {
    "one report": lambda: gn.plan(SCHEMA, 2, gn.zCDP(0.1), over=Ticks(3)),
    "months": lambda: gn.plan(SCHEMA, 2, gn.zCDP(0.1), over=Ticks(3, first="2026-01")),
    "apart": lambda: gn.plan(SCHEMA, 2, gn.zCDP(0.1), over=Ticks(5, reports=3, apart=2)),
    "persons": lambda: gn.plan(
        SCHEMA, 2, gn.GDP(0.5), person="id", rows_per_person=2, over=Ticks(3, reports=2)
    ),
    "exchanged": lambda: gn.plan(
        SCHEMA, 2, gn.zCDP(0.1), neighbors="replace", rows_per_person=2, over=Ticks(3, reports=2)
    ),
    "periods": lambda: gn.plan(
        SCHEMA, [("sex", "age"), ("age", "region")], gn.ApproxDP(1.0, 1e-6),
        over=Ticks(3, workload="periods"),
    ),
    "prefixes": lambda: gn.plan(
        SCHEMA, PREFIXES, gn.zCDP(0.1), rows_per_person=2, over=Ticks(3)
    ),
    "matrices of sets": lambda: gn.plan(
        SCHEMA, [{"age": "prefix"}, ("sex", "age")], gn.zCDP(0.1), over=Ticks(3)
    ),
}  # fmt: skip
# words, conversions, and the bracket over time, which the verifier says it does not check
WORDS = re.compile(
    r"/(time_lower|certified_gap|ledger|libraries/.*|noise/query|measurements_sha256|folder"
    r"|privacy/(definition|method|draws|least_steps_per_standard_deviation|lattice_distance)"
    r"|agreement/.*|disclaimers/.*|marginals/\d+/weight|combined_from/\d+/id|on_outside"
    r"|answers/.*)"
)
REPEATED = ("privacy_unit", "participation", "rho_of_all_ticks", "ticks", "privacy", "neighbors")


def people(rng, n=200):
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], n),
            "region": rng.choice(["N", "S", "W"], n),
            "age": rng.integers(0, 90, n),
            "id": rng.integers(0, 100, n),
        }
    )


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    """A stream of two ticks of every kind, as it is published."""
    place, rng = tmp_path_factory.mktemp("streams"), np.random.default_rng(3)
    for name, plan in STREAMS.items():
        stream = plan().start(place / name)
        for tick in (1, 2):
            stream.tick(people(rng), number=tick)
        shutil.rmtree(place / name / "private")
    return {name: place / name for name in STREAMS}


@pytest.fixture(scope="module")
def combined(tmp_path_factory):
    """Folders of combined releases."""
    place, rng = tmp_path_factory.mktemp("combined"), np.random.default_rng(4)
    table = people(rng)
    for name, options in {"added": {}, "exchanged": {"neighbors": "replace"}}.items():
        one, two, three = (
            gn.plan(SCHEMA, asked, gn.zCDP(rho), **options).release(table)
            for asked, rho in ((1, 0.1), ([("sex", "region")], 0.2), (2, 0.05))
        )
        gn.combine([one, two, three]).save(place / name)
    return {name: place / name for name in ("added", "exchanged")}


def of_a_record(copy, rng, names):
    name = rng.choice(names)
    record = copy.read(name)
    path, inside, key = rng.choice([x for x in leaves(record) if not WORDS.fullmatch(x[0])])
    before = inside[key]
    inside[key] = changed(before, rng)
    copy.write_record(record, name)
    return f"{name} {path}: {before!r} became {inside[key]!r}"


def of_files(copy, rng, folder):
    names, how = sorted(copy.read(f"{folder}/release.json")["files"]), rng.randrange(4)
    name = rng.choice(names)
    place = copy.at / folder / name
    if how == 0:
        content = bytearray(place.read_bytes())
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        place.write_bytes(content)
    elif how == 1:
        place.unlink()
    elif how == 2:
        copy.write("more.txt", b"", folder)
    else:
        (place.parent / "added").write_bytes(b"")
    return f"file {folder}/{name}, {how}"


def changed_tick(copy, rng):
    folder = f"ticks/000{rng.choice([1, 2])}"
    how = rng.choice([of_a_number, of_a_shifted_cell, of_files])
    return how(copy, rng, folder)


def of_both(copy, rng):
    """What the stream and its ticks repeat, changed in all of them."""
    names = ["stream.json", *(f"ticks/000{t}/release.json" for t in (1, 2))]
    record = copy.read(names[0])
    kept = {key: record[key] for key in REPEATED}
    paths = [path for path, _, _ in leaves(kept) if not WORDS.fullmatch(path)]
    chosen = rng.choice(paths)
    value = next(changed(i[k], rng) for path, i, k in leaves(kept) if path == chosen)
    for name in names:
        record = copy.read(name)
        inside, key = next((i, k) for path, i, k in leaves(record) if path == chosen)
        inside[key] = value
        copy.write_record(record, name)
    return f"{chosen} became {value!r} everywhere"


def test_streams_pass(streams):
    for name, folder in streams.items():
        lines = verifier.verified(folder)
        assert fault(folder) is None, name
        assert "checked    2 ticks from 1 on: that tables are added up" in lines
        assert any(line.startswith("unchecked  time_lower and certified_gap") for line in lines)


@pytest.mark.parametrize("kind", STREAMS)
def test_no_changed_stream_passes(kind, streams, tmp_path):
    rng, copy = random.Random(kind), Copy(streams[kind], tmp_path / "copy")
    records = ["stream.json"] * 3 + ["ticks/0001/release.json", "ticks/0002/release.json"]
    changes = [lambda c, r: of_a_record(c, r, records), changed_tick, of_both]
    assert unnoticed(copy, rng, changes * 60) == []
    assert fault(copy.at) is None


def test_no_value_of_a_streams_record_is_left_out(streams, tmp_path):
    rng, copy, passed = random.Random(7), Copy(streams["apart"], tmp_path / "copy"), []
    for name in ("stream.json", "ticks/0002/release.json"):
        for path, _, _ in leaves(copy.read(name)):
            if not WORDS.fullmatch(path):
                record = copy.read(name)
                inside, key = next((i, k) for p, i, k in leaves(record) if p == path)
                inside[key] = changed(inside[key], rng)
                copy.write_record(record, name)
                if fault(copy.at) is None:
                    passed.append(f"{name}{path}")
                copy.restore()
    assert passed == []


def test_ticks_are_consecutive(streams, tmp_path):
    copy = Copy(streams["apart"], tmp_path / "copy")
    first, second, third = (copy.at / "ticks" / f"000{t}" for t in (1, 2, 3))
    shutil.copytree(second, third)
    assert fault(copy.at) == "FAILED: no tick 3"
    shutil.rmtree(first)
    assert fault(copy.at) == "FAILED: a tick missing"
    second.rename(first)
    third.rename(second)
    assert fault(copy.at) == "FAILED: no tick 1"
    (copy.at / "more.txt").write_text("")
    assert fault(copy.at) == "FAILED: files of no stream"


@pytest.mark.parametrize("format", ["parquet", "xlsx", "json-stat"])
def test_of_other_formats_the_record_of_a_tick_is_checked(tmp_path, format):
    """A deviation that is off by 1e-8, and another first row."""
    stream = STREAMS["prefixes"]().start(tmp_path / "stream", format=format)
    for tick in (1, 2):
        stream.tick(people(np.random.default_rng(tick)), number=tick)
    copy, name = Copy(stream.path, tmp_path / "copy"), "ticks/0002/release.json"
    assert fault(copy.at) is None
    for part, change, what in (
        ("rms_standard_deviation", lambda x: x * (1 + 1e-8), "the deviation stated of tables"),
        ("first_row", lambda x: x + 1, "the first row of tables"),
    ):
        for kind in ("period", "cumulative"):
            record = copy.read(name)
            record[kind][1][part] = change(record[kind][1][part])
            copy.write_record(record, name)
            assert what in fault(copy.at)
            copy.restore()


def test_the_owner_is_told_never_to_publish_the_private_folder(tmp_path):
    stream = STREAMS["one report"]().start(tmp_path / "own")
    stream.tick(people(np.random.default_rng(1)), number=1)
    assert "unchecked  private/: never publish it" in verifier.verified(tmp_path / "own")


def request_of(record):
    """The digest of the request that a stream of counts states."""
    plan = record["plan"]
    names = ["sex", "region", "age"]
    request = {key: plan[key] for key in ("person",) if plan[key] is not None}
    request |= {
        "schema": plan["schema"],
        "marginals": list(itertools.combinations(range(len(names)), plan["workload"])),
        "weights": [f"{w:.9g}" for w in plan["weights"]],
        "p": plan["p"],
        "neighbors": record["neighbors"],
        "rho": f"{record['privacy']['rho']:.9g}",
        "rows_per_person": record["rows_per_person_and_tick"],
        "ticks": record["ticks"],
    }
    return hashlib.sha256(json.dumps(request).encode()).hexdigest()


def lie(copy, changes):
    """Write the same changes into the stream's record and its ticks', and a digest that fits."""
    for name in ("stream.json", "ticks/0001/release.json", "ticks/0002/release.json"):
        record = copy.read(name)
        changes(record)
        if name == "stream.json":
            record["request_sha256"] = request_of(record)
        copy.write_record(record, name)


def with_noise_for(record, growth):
    """The noise that a sensitivity over time asks for, as a record that agrees with itself."""
    noise = record["noise"]
    before = noise["time_sensitivity_squared"]
    noise["integer_sensitivity_squared"] = noise["integer_sensitivity_squared"] // before * growth
    noise["time_sensitivity_squared"] = growth
    rho = noise["rho_of_one_row_per_report"]
    noise["sigma"] = (noise["integer_sensitivity_squared"] / (2 * rho)) ** 0.5 * (1 + 2**-52)


def test_noise_for_fewer_reports_than_are_stated_is_too_little(streams, tmp_path):
    """The record agrees with itself, and its noise is that for one report in place of three."""
    copy = Copy(streams["apart"], tmp_path / "lie")
    record = copy.read("stream.json")
    assert request_of(record) == record["request_sha256"]
    rows = [list(map(int, row.split(" "))) for row in record["time_matrix"]]
    one = max(sum(row[i] ** 2 for row in rows if len(row) > i) for i in range(5))

    def changes(record):
        if "noise" in record:
            with_noise_for(record, one)

    assert one < record["noise"]["time_sensitivity_squared"]
    lie(copy, changes)
    assert fault(copy.at).startswith("FAILED: ticks' sensitivity is ")


def test_more_reports_than_the_noise_is_for_are_found(streams, tmp_path):
    copy = Copy(streams["one report"], tmp_path / "lie")

    def changes(record):
        record["ticks"]["reports"] = 2
        record["privacy_unit"] = "one person of at most 2 reports, in different ticks"
        record["participation"] = "one person with one row more or less in each of at most 2 ticks"

    lie(copy, changes)
    assert fault(copy.at).startswith("FAILED: ticks' sensitivity is ")


def test_a_negative_or_missing_tick_in_the_time_matrix_is_found(streams, tmp_path):
    copy = Copy(streams["one report"], tmp_path / "lie")
    for row, words in (
        ("-5 3", None),
        ("5 0", "a tick is unmeasured"),
        ("5 -3", "a tick is unmeasured"),
    ):
        record = copy.read("stream.json")
        record["time_matrix"][1] = row
        copy.write_record(record, "stream.json")
        assert words is None or words in fault(copy.at)
        assert fault(copy.at) is not None
        copy.restore()


@pytest.mark.parametrize(
    ("n", "k", "apart"), [(7, 3, 1), (8, 3, 2), (9, 4, 2), (6, 6, 1), (9, 2, 4)]
)
def test_the_largest_change_is_that_of_the_worst_reports(n, k, apart):
    """All sets of reports, one after another, in another way than by a search in depth."""
    rng = np.random.default_rng(n * k)
    C = np.tril(rng.integers(-5, 6, (n, n)))
    X = np.abs(C.T @ C)
    sets = [s for j in range(1, k + 1) for s in itertools.combinations(range(n), j)]
    sets = [s for s in sets if all(b - a >= apart for a, b in itertools.pairwise(s))]
    worst = max(int(X[np.ix_(s, s)].sum()) for s in sets)
    assert largest_change(C.tolist(), k, apart) == worst


def test_of_millions_of_sets_the_largest_change_is_a_bound_that_the_product_keeps():
    from gaussnoise.streams.reports import largest_change as of_the_product

    rng = np.random.default_rng(5)
    C = np.tril(rng.integers(-50, 51, (60, 60)))
    bound = largest_change(C.tolist(), 8, 3)
    assert bound == of_the_product(C.T @ C, 8, 3)
    X = np.abs(C.T @ C)
    for _ in range(300):
        reports = np.cumsum(rng.integers(3, 9, 8))
        reports = reports[reports < 60]
        assert X[np.ix_(reports, reports)].sum() <= bound


def test_combined_folders_pass(combined):
    for folder in combined.values():
        lines = verifier.verified(folder)
        assert fault(folder) is None
        assert any("means of the releases', weighted by their precision" in x for x in lines)
        assert sum("gamma_lower" in line for line in lines) == 3


@pytest.mark.parametrize("kind", ["added", "exchanged"])
def test_no_changed_combined_folder_passes(kind, combined, tmp_path):
    rng, copy = random.Random(kind), Copy(combined[kind], tmp_path / "copy")
    changes = [
        lambda c, r: of_a_record(c, r, ["release.json"]),
        of_a_number,
        of_a_shifted_cell,
        lambda c, r: of_files(c, r, "."),
        of_a_source,
    ]
    assert unnoticed(copy, rng, changes * 40) == []
    assert fault(copy.at) is None


def of_a_source(copy, rng):
    """A change in a release, with all digests up to date."""
    number = rng.randrange(3)
    folder = copy.read()["combined_from"][number]["folder"]
    what = rng.choice([of_a_number, of_a_shifted_cell])(copy, rng, folder)
    record = copy.read()
    for name in [name for name in record["files"] if name.startswith(folder)]:
        content = (copy.at / name).read_bytes()
        record["files"][name] = hashlib.sha256(content).hexdigest()
    digest = record["files"][f"{folder}/release.json"]
    record["combined_from"][number]["sha256"] = digest
    copy.write_record(record)
    return what


def test_a_release_does_not_count_twice(combined, tmp_path):
    """Two copies of a release look like twice the noise drawn, and are half as accurate."""
    copy = Copy(combined["added"], tmp_path / "copy")
    record = copy.read()
    folder = record["combined_from"][0]["folder"]
    shutil.copytree(copy.at / folder, copy.at / "releases" / "4")
    record["combined_from"].append(record["combined_from"][0] | {"folder": "releases/4"})
    for name in [name for name in record["files"] if name.startswith(f"{folder}/")]:
        record["files"][name.replace(folder, "releases/4")] = record["files"][name]
    record["rho"] += 0.1
    copy.write_record(record)
    assert fault(copy.at) == "FAILED: the same noise twice"


def test_a_copy_in_a_stream_checks_it(streams, tmp_path):
    """All of it, or its privacy alone."""
    folder = shutil.copytree(streams["one report"], tmp_path / "copy")
    own = Path(verifier.__file__).parent
    shutil.copytree(own, folder / "verifier", ignore=lambda *_: ["__pycache__"])
    lines = verifier.verified(folder)
    assert lines[0].startswith("checked"), lines
    for name, expected in (("verify.py", [*lines, verifier.verdict(lines)]), ("privacy.py", None)):
        command = [sys.executable, "-S", "-I", f"verifier/{name}"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
        assert done.stdout.splitlines() == expected or expected is None
        assert (done.returncode, done.stderr) == (0, "")


def test_a_number_is_compared_between_the_combined_releases_that_use_it_alone(tmp_path):
    table = people(np.random.default_rng(5))
    schema = gn.Schema([SEX, REGION, gn.Attribute("age", clip=[0, 90])])
    both = [
        gn.plan(schema, asked, gn.zCDP(0.1)).release(table)
        for asked in ([("sex", "region"), ("sex", "age")], [("sex", "region")])
    ]
    for name, releases in {"first": both, "last": both[::-1]}.items():
        gn.combine(releases).save(tmp_path / name)
        said = verifier.verdict(verifier.verified(tmp_path / name))
        assert said.startswith("VERIFIED"), said


def test_a_combination_repeats_the_titles_of_schemas(tmp_path):
    """The plan's title, or else that of [about] in its schema; by both programs."""
    schema, table = gn.Schema([SEX], about=gn.About(title="All")), people(np.random.default_rng(5))
    both = [gn.plan(schema, 1, gn.zCDP(0.1), title=own).release(table) for own in (None, "Own")]
    gn.combine(both).save(tmp_path / "both")
    copy = Copy(tmp_path / "both", tmp_path / "copy")
    record = copy.record
    assert [own["title"] for own in record["combined_from"]] == ["All", "Own"]
    record["combined_from"][0]["title"] = "Own"
    copy.write_record(record)
    for folder, said in ((tmp_path / "both", "checked"), (copy.at, "FAILED")):
        assert verifier.verified(folder)[0].startswith(said)
        assert node_lines([as_texts(folder)])[0][0].startswith(said)


def test_a_number_that_two_combined_releases_measure_differently_fails(tmp_path, monkeypatch):
    table = people(np.random.default_rng(5))
    schema = gn.Schema([SEX, gn.Attribute("age", clip=[0, 90])])
    plan = gn.plan(schema, [("sex", "age")], gn.zCDP(0.1))
    gn.combine([plan.release(table), plan.release(table)]).save(tmp_path / "both")
    read, number = tables.Measured.__init__, itertools.count(1)

    def other(self, *args):
        read(self, *args)
        self.own[1] = self.own[1]._replace(divisor=next(number))

    monkeypatch.setattr(tables.Measured, "__init__", other)
    assert "'age' is measured differently" in verifier.verified(tmp_path / "both")[0]


@pytest.mark.integration
def test_the_script_of_pages_has_the_same_verdicts(streams, combined, tmp_path):
    """Of streams and combinations as written and changed, some with all digests up to date."""
    ours, files = [], []
    for name, folder in [*streams.items(), *combined.items()]:
        rng, copy = random.Random(name), Copy(folder, tmp_path / "copy")
        own = [of_a_source, of_a_number] if folder in combined.values() else [changed_tick]
        for change in [None, *own * 12]:
            what = change and change(copy, rng)
            ours.append((name, what, verifier.verified(copy.at)[0]))
            files.append(as_texts(copy.at))
            copy.restore()
    theirs = [lines[0] for lines in node_lines(files)]
    differ = [(*own, x) for own, x in zip(ours, theirs, strict=True) if own[2].split()[0] not in x]
    assert differ == []
    assert sum(line.startswith("checked") for line in theirs) == len(streams) + len(combined)


@pytest.mark.parametrize("name", ["exchanged", "persons"])
def test_corrections_are_for_rows_that_are_added_or_removed(streams, tmp_path, name):
    """A row exchanged for one of another sign would change the total, which has no noise."""
    copy = shutil.copytree(streams[name], tmp_path / name)
    record = json.loads((copy / "stream.json").read_text(encoding="utf-8"))
    record["ticks"]["corrections"] = "sign"
    (copy / "stream.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ValueError, match="corrections"):
        privacy.opened(copy).check_unit()
    ((theirs, *_),) = node_lines([as_texts(copy)])
    assert theirs.startswith("FAILED")
    assert "corrections" in theirs


def test_a_stream_with_corrections_is_checked(tmp_path):
    """Rows with 1 and -1, by Python and by the script of pages."""
    over = Ticks(3, 2, corrections="sign")
    plan = gn.plan(SCHEMA, [("sex",)], gn.zCDP(0.1), rows_per_person=2, over=over)
    stream = plan.start(tmp_path / "s")
    for tick, signs in enumerate(([1, 1], [-1, 1]), 1):
        stream.tick(pa.table({"sex": ["F", "M"], "sign": signs}), number=tick)
    shutil.rmtree(tmp_path / "s" / "private")
    (theirs,) = node_lines([as_texts(tmp_path / "s")])
    for lines in (verifier.verified(tmp_path / "s"), theirs):
        assert lines[0].startswith("checked"), lines
        assert not [line for line in lines if "FAILED" in line]
