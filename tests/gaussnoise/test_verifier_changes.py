"""The verifier checks folders of changes, alone and with both releases; no changed one passes."""

import hashlib
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
from changed import Copy, changed, changed_digit, fault, leaves

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.cli.app import run

SEX, REGION = gn.Attribute("sex", ["F", "M"]), gn.Attribute("region", ["N", "S", "W"])
AGE = gn.Attribute("age", edges=[0, 18, 40, 65, 90], other="unknown")
PAY = gn.Attribute("pay", clip=[0, 5000], other="none")
MOMENTS = {"kind": "moments", "degrees": [0, 1, 2], "about": 2500}
SQUARED = gn.Attribute("pay", clip=[0, 5000], base=MOMENTS, other="none")
SCHEMA = gn.Schema([SEX, REGION, AGE, PAY, gn.Attribute("deviation", clip=[-2, 3])])
RHO = gn.zCDP(0.02)
KINDS = {
    "counts": lambda: gn.plan(SCHEMA, ["sex", ("region", "age")], RHO),
    "sums": lambda: gn.plan(SCHEMA, [("pay", "sex"), ("deviation",), ("region", "pay")], RHO),
    "number between": lambda: gn.plan(
        gn.Schema([SEX, PAY, REGION]), [("region", "pay", "sex")], RHO
    ),
    "replace": lambda: gn.plan(SCHEMA, [("sex", "region"), ("pay",)], RHO, neighbors="replace"),
    "public": lambda: gn.plan(SCHEMA, [("sex", "age")], RHO, neighbors="replace", public=["sex"]),
    "persons": lambda: gn.plan(SCHEMA, [("sex", "pay")], RHO, person="id", rows_per_person=2),
    "weights": lambda: gn.plan(SCHEMA, [("sex", "pay")], RHO, weight=gn.Weight("w", most=4)),
    "prefixes": lambda: gn.plan(SCHEMA, [{"sex": "identity", "age": "prefix"}], RHO),
    "matrices of sets": lambda: gn.plan(SCHEMA, [{"age": "prefix"}, ("sex", "age")], RHO),
    "squares in sets": lambda: gn.plan(
        gn.Schema([SEX, SQUARED]), [{"pay": None}, {"pay": "sum", "sex": "identity"}], RHO
    ),
}
FORMATS = ("csv", "jsonl", "xlsx")
# words, and what no number of the folder depends on
WORDS = re.compile(
    r"/(population_means|left_out/.*|notes/.*|tables/\d+/(name|finding)|(before|after)/(name|sha256))"
)


def people(rng, n):
    """Of which some groups are so small that noise carries them below zero."""
    return pa.table(
        {
            "sex": rng.choice(["F", "M"], n),
            "region": rng.choice(["N", "S", "W"], n, p=[0.97, 0.02, 0.01]),
            "age": rng.integers(0, 90, n),
            "pay": rng.lognormal(7, 0.6, n),
            "deviation": rng.normal(0, 1, n),
            "w": rng.uniform(0, 4, n),
            "id": rng.integers(0, 400, n),
        }
    )


@pytest.fixture(scope="module")
def folders(tmp_path_factory, quick_pictures):
    """Changes of every kind, each beside both of its releases."""
    rng, place, made = np.random.default_rng(8), tmp_path_factory.mktemp("changes"), {}
    for k, (kind, planned) in enumerate(KINDS.items()):
        plan, at = planned(), place / kind
        at.mkdir()
        for name, rows in (("january", 500), ("june", 530)):
            plan.release(people(rng, rows), out=at / name)
        both = (gn.TableRelease.load(at / name) for name in ("january", "june"))
        gn.difference(*both).save(at / "changes", format=FORMATS[k % 3])
        made[kind] = at / "changes"
    return made


def of_a_number(copy, rng):
    """A number of a table with another one of its first six digits, its digest up to date."""
    record = copy.read("changes.json")
    name = rng.choice([entry["files"]["changes"] for entry in record["tables"]])
    lines = (copy.at / name).read_text(encoding="utf-8").splitlines(keepends=True)
    jsonl = name.endswith(".jsonl")
    k = rng.randrange(0 if jsonl else 1, len(lines))
    numbers = [
        m for m in re.finditer(r"(?<=[ ,])-?\d+\.\d+(e-?\d+)?(?=[,}\s])|^-?\d+\.\d+", lines[k])
    ]
    one = rng.choice(numbers)
    other = one[0]
    while float(other) == float(one[0]):
        other = changed_digit(one[0], rng, 6)
    lines[k] = lines[k][: one.start()] + other + lines[k][one.end() :]
    written(copy, name, "".join(lines).encode())
    return f"{name} row {k}: {one[0]} became {other}"


def of_rows(copy, rng):
    record = copy.read("changes.json")
    names = sorted({entry["files"]["changes"] for entry in record["tables"]})
    name = rng.choice(names)
    lines = (copy.at / name).read_text(encoding="utf-8").splitlines(keepends=True)
    if rng.randrange(2):
        lines.append(lines[-1])
    else:
        lines[-1] = lines[-1].replace('"', '"x', 1) if '"' in lines[-1] else "x" + lines[-1]
    written(copy, name, "".join(lines).encode())
    return f"rows of {name}"


def of_the_record(copy, rng):
    record = copy.read("changes.json")
    path, inside, key = rng.choice([x for x in leaves(record) if not WORDS.fullmatch(x[0])])
    before, inside[key] = inside[key], changed(inside[key], rng)
    copy.write_record(record, "changes.json")
    return f"{path}: {before!r} became {inside[key]!r}"


def of_files(copy, rng):
    name = rng.choice(sorted(copy.read("changes.json")["files"]))
    if rng.randrange(2):
        (copy.at / name).unlink()
    else:
        (copy.at / f"{name}.more").write_bytes(b"")
    return f"file {name}"


def written(copy, name, content):
    (copy.at / name).write_bytes(content)
    record = copy.read("changes.json")
    record["files"][name] = hashlib.sha256(content).hexdigest()
    copy.write_record(record, "changes.json")


@pytest.mark.parametrize("kind", KINDS)
def test_changes_pass_alone_and_with_both_releases(kind, folders, tmp_path):
    """The releases are found beside the folder, or given; alone, the lines say what is left."""
    both = [folders[kind].parent / name for name in ("january", "june")]
    shutil.copytree(folders[kind], tmp_path / "alone")
    lines = verifier.verified(folders[kind]), verifier.verified(tmp_path / "alone", *both)
    assert lines[0] == lines[1]
    assert lines[0][0].startswith("checked"), lines[0]
    assert sum(line.startswith("checked    after: rho = ") for line in lines[0]) == 1
    left = [line for line in lines[0] if "are of the releases" in line]
    answers = kind in ("prefixes", "matrices of sets")  # the record has no queries
    assert len(left) == answers
    alone = verifier.verified(tmp_path / "alone")
    assert alone[0].startswith("checked"), alone
    tables = json.loads((folders[kind] / "changes.json").read_text(encoding="utf-8"))["tables"]
    assert sum("are of the releases" in line for line in alone) == len(tables)
    assert sum("give its folder" in line for line in alone) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_no_changed_folder_passes(kind, folders, tmp_path):
    rng, at = random.Random(kind), tmp_path / "both"
    for name in ("january", "june"):
        shutil.copytree(folders[kind].parent / name, at / name)
    for where in (at / "copy", tmp_path / "alone"):
        copy, passed = Copy(folders[kind], where), []
        texts = not list(where.rglob("*.xlsx"))
        changes = [of_the_record, of_files, *[of_a_number, of_rows] * texts]
        for change in changes * 12:
            is_alone = where.name == "alone"
            if is_alone and change is of_rows:
                continue  # the labels are those of the releases
            what = change(copy, rng)
            # alone, the deviations of means follow from nothing, and so does what was summed
            unknown = is_alone and re.search("mean_of|/number", what)
            unknown = unknown or "rows of changes/2-sex-by-age_prefix" in what  # of answers
            if fault(copy.at) is None and not unknown:
                passed.append(what)
            copy.restore()
        assert passed == []


def test_changes_of_other_releases_are_found(folders, tmp_path):
    """A release with another number, whose own digests are up to date."""
    at = tmp_path / "both"
    for name in ("january", "june", "changes"):
        shutil.copytree(folders["counts"].parent / name, at / name)
    other = folders["sums"].parent
    said = verifier.verified(at / "changes", other / "january", at / "june")
    assert said == ["FAILED: none of the given folders is the release before, by its sha256"]
    copy = Copy(at / "june", tmp_path / "june")
    record = json.loads((at / "changes" / "changes.json").read_text(encoding="utf-8"))
    shutil.rmtree(at / "june")
    shutil.copytree(other / "june", at / "june")
    lines = verifier.verified(at / "changes")
    assert any(x.startswith("unchecked  the release after, 'june': give its folder") for x in lines)
    assert not any(line.startswith("checked    after") for line in lines)
    # and under the digest of that release
    digest = hashlib.sha256((at / "june" / "release.json").read_bytes()).hexdigest()
    record["after"]["sha256"] = digest
    text = json.dumps(record)
    (at / "changes" / "changes.json").write_text(text, encoding="utf-8")
    assert fault(at / "changes").startswith("FAILED: changes/"), fault(at / "changes")
    assert copy.record["private"]


def test_a_simulation_and_changes_of_one_are_found(tmp_path, quick_pictures):
    rng = np.random.default_rng(3)
    plan = KINDS["counts"]()
    both = [plan.simulate(people(rng, 50), np.random.default_rng(k)) for k in (1, 2)]
    gn.difference(*both).save(tmp_path / "changes")
    assert fault(tmp_path / "changes").startswith("FAILED: a simulation")
    copy = Copy(tmp_path / "changes", tmp_path / "copy")
    record = copy.read("changes.json")
    record["private"] = True
    copy.write_record(record, "changes.json")
    assert fault(copy.at) is not None


@pytest.mark.parametrize("format", FORMATS)
def test_means_without_an_upper_end_pass(format, tmp_path, quick_pictures):
    """Nothing bounds the number, and few rows leave its mean unknown; some formats have no ∞."""
    schema = gn.Schema([REGION, gn.Attribute("pay", unit=0.01)])
    budget = gn.PerRecord(gn.zCDP(0.02), {"pay": 1000})
    plan = gn.plan(schema, [("region", "pay"), ("region",)], budget)
    table = pa.table({"region": ["N"] * 5, "pay": [1.0] * 5})
    both = [plan.release(table, out=tmp_path / name) for name in ("january", "june")]
    gn.difference(*both).save(tmp_path / "changes", format=format)
    held = [("january", "releases/before/"), ("june", "releases/after/")]
    files = {f"{to}{k}": x for name, to in held for k, x in as_texts(tmp_path / name).items()}
    (theirs,) = node_lines([files | as_texts(tmp_path / "changes")])
    assert fault(tmp_path / "changes") is None
    assert theirs[0].startswith("checked"), theirs
    if format == "csv":  # only ends may be infinite
        copy = Copy(tmp_path / "changes", tmp_path / "copy")
        for number in ("count", "mean"):
            tables = copy.read("changes.json")["tables"]
            name = next(x for x in tables if x["statistic"] == number)["files"]["changes"]
            text = (copy.at / name).read_text(encoding="utf-8")
            place = text.index("N") + 3 if "N" in text else text.index("\n") + 1
            rest = text[place:].partition(",")[2]
            written(copy, name, f"{text[:place]}inf,{rest}".encode())
            assert fault(copy.at).startswith("FAILED: a number of"), fault(copy.at)
            (theirs,) = node_lines([as_texts(copy.at)])
            assert theirs[0].startswith("FAILED: a number of"), theirs
            copy.restore()


def test_the_command_takes_both_releases(folders, capsys):
    both = [str(folders["counts"].parent / name) for name in ("january", "june")]
    assert run(["verify", str(folders["counts"]), *both]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1].startswith("VERIFIED")
    assert run(["verify", str(folders["counts"]), *both[::-1]]) == 0  # by digest, in any order
    assert run(["verify", str(folders["counts"]), both[0]]) != 0
    assert run(["verify", both[0], both[0], both[1]]) == 1


def privacy_of(*paths):
    """The exit status of the file about privacy alone, and what it prints."""
    alone = [sys.executable, "-S", "-I", Path(verifier.__file__).with_name("privacy.py")]
    done = subprocess.run([*alone, *paths], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_file_about_privacy_checks_changes_and_both_releases(folders, tmp_path):
    """It finds them beside the changes, or is given them; without them, it says what is left."""
    at = tmp_path / "both"
    for name in ("january", "june", "changes"):
        shutil.copytree(folders["counts"].parent / name, at / name)
    shutil.copytree(at / "changes", tmp_path / "alone")
    for paths in ([at / "changes"], [tmp_path / "alone", at / "june", at / "january"]):
        status, said = privacy_of(*paths)
        assert status == 0
        assert "before: squared sensitivity" in said
        assert "after: zCDP {'rho': 0.02}: its Gaussians have this rho" in said
        assert re.search(r"^rho_of_both = 0.0[\d]+: the sum of all$", said, re.MULTILINE)
    status, said = privacy_of(tmp_path / "alone")
    checked, left = said.split("NOT CHECKED")
    assert status == 0
    assert "its Gaussians" not in checked
    assert left.count("give its folder to check it") == 2
    copy, changes = Copy(at / "changes", tmp_path / "copy"), Copy(at / "june", tmp_path / "june")
    record = copy.read("changes.json")
    copy.write_record(record | {"rho_of_both": record["rho_of_both"] / 2}, "changes.json")
    assert "FAILED: ValueError('rho is not the sum of all')" in privacy_of(copy.at)[1]
    # of a release whose noise has half the stated scale, by a record that agrees with the changes
    own = changes.record
    own["noise"]["sigma"] /= 2
    changes.write_record(own)
    shutil.copytree(at / "january", tmp_path / "january")
    digest = hashlib.sha256((changes.at / "release.json").read_bytes()).hexdigest()
    copy.write_record(record | {"after": record["after"] | {"sha256": digest}}, "changes.json")
    assert privacy_of(copy.at) == (1, "FAILED: ValueError('rho_of_one_row')\n")


@pytest.mark.integration
def test_the_script_of_pages_has_the_same_verdicts(folders, tmp_path):
    """Of the changes as written and changed, with both releases."""
    ours, files = [], []
    for kind, folder in folders.items():
        rng, at = random.Random(kind), tmp_path / kind
        in_texts = [of_a_number, of_rows] * (not list(folder.rglob("*.xlsx")))
        for name in ("january", "june"):
            shutil.copytree(folder.parent / name, at / name)
        copy = Copy(folder, at / "copy")
        for change in [None, *[of_the_record, *in_texts, of_files] * 8]:
            what = change and change(copy, rng)
            ours.append((kind, what, verifier.verified(copy.at)[0]))
            both = (("january", "releases/before/"), ("june", "releases/after/"))
            held = {f"{to}{k}": x for name, to in both for k, x in as_texts(at / name).items()}
            files.append(held | as_texts(copy.at))
            copy.restore()
    theirs = [lines[0] for lines in node_lines(files)]
    word = [line.split()[0] for line in theirs]
    differ = [(*own, x) for own, x in zip(ours, theirs, strict=True) if own[2].split()[0] not in x]
    assert differ == []
    assert word.count("checked") >= 5
    assert word.count("FAILED:") >= 140
