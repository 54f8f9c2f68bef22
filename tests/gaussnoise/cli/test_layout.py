"""Tests of what is printed: no line is longer than the terminal, and tables stay tables."""

import itertools
import re
import tomllib

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.layout import fitted

pytestmark = pytest.mark.usefixtures("quick_pictures")

NUMBERS = """\
[attributes.sex]
categories = ["F", "M"]

[attributes."part of the country"]
categories = ["North West", "South East"]
groups = {half = {Westland = ["North West"], Eastland = ["South East"]}}

[attributes.age]
edges = [0, 18, 65, 120]
base = "prefix"
other = "no age"

[attributes.income]
clip = [0, 100000]
base = {kind = "moments", degrees = [0, 1, 2]}

[[workload]]
of = ["sex", "income"]

[[workload]]
of = ["sex", "part of the country", "age"]
within = 50
"""
COUNTS = """\
[attributes.sex]
categories = ["F", "M"]

[attributes.age]
edges = [0, 18, 65, 120]
"""
RELEASE = ("release", "t.csv", "-s", "counts.toml", "-m", "2", "--rho", "0.1")
MEANS = ("mean", "t.csv", "-c", "income,age", "--by", "sex=F,M", "--rho", "9")
MEANS = (*MEANS, "--by", "part of the country=North West,South East")
PLAN = ("plan", "-s", "counts.toml", "-m", "2")
COMMANDS = [
    ("demo",),
    ("schema", "t.csv"),
    ("schema", "t.csv", "-o", "draft.toml"),
    ("categories", "t.csv", "sex", "--epsilon", "1", "--delta", "1e-6"),
    ("check", "t.csv", "-s", "counts.toml", "-m", "2", "--person", "id"),
    ("check", "t.csv", "-s", "draft.toml", "-m", "1"),
    PLAN,
    (*PLAN, "--rho", "0.1"),
    (*PLAN, "--rho", "0.1", "--weight", "weight:3"),
    (*PLAN, "--rho", "0.1", "--neighbors", "replace", "--public", "sex"),
    (*PLAN, "--epsilon", "1", "--delta", "1e-6", "--neighbors", "replace", "--rows-per-person", 3),
    ("plan", "-s", "numbers.toml", "--rho", "0.1"),
    ("plan", "-s", "numbers.toml", "--rho", "0.1", "-m", "sex,age:ranges", "-m", "sex,income"),
    ("bound", "-s", "numbers.toml", "--rho", "0.1"),
    ("bound", "-s", "counts.toml", "-m", "2", "--rho", "0.1"),
    ("release", "t.csv", "-s", "numbers.toml", "--rho", "0.1", "-o", "out"),
    (*RELEASE, "-o", "of persons", "--person", "id", "--rows-per-person", 2),
    ("ledger", "create", "l.ledger", "--rho", "1"),
    (*RELEASE, "-o", "charged", "--ledger", "l.ledger", "--id", "first"),
    (*RELEASE, "-o", "charged again", "--ledger", "l.ledger", "--id", "second", "--rho", "3"),
    ("ledger", "show", "l.ledger"),
    (*RELEASE, "-o", "again"),
    ("combine", "charged", "again", "-o", "both"),
    ("difference", "charged", "again"),
    ("difference", "charged", "again", "--of", "sex", "-o", "changes"),
    ("mean", "t.csv", "-c", "income,age", "--rho", "1"),
    ("mean", "t.csv", "-c", "income", "--by", "sex=F,M", "--person", "id", "--rho", "9"),
    (*MEANS, "--between", "income=0,90000", "-o", "means"),
    ("ask", "means", "mean of income by sex"),
    ("report", "means", "-o", "means.html"),
    ("report", "out", "-o", "page.html"),
    ("convert", "out", "--format", "xlsx", "-o", "workbook"),
    ("ask", "out", "count of sex=F"),
    ("ask", "out", "share of sex=F given part of the country"),
    ("ask", "out", "mean of income given sex"),
    ("ask", "out", "cdf of age given sex"),
    ("ask", "out", "no question"),
    ("synthetic", "out", "-n", 100, "-o", "synthetic.csv"),
    ("stream", "plan", "-s", "counts.toml", "-m", "2", "--rho", "0.1", "--ticks", 4),
    ("stream", "start", "-o", "st", "-s", "counts.toml", "-m", "2", "--rho", "0.1", "--ticks", 4),
    ("stream", "check", "st", "t.csv"),
    ("stream", "tick", "st", "t.csv", "--tick", 1),
    ("stream", "show", "st"),
    ("convert", "st", "--format", "xlsx", "-o", "no workbook"),
    ("stream", "tick", "st", "t.csv", "--tick", 2),
    ("stream", "tick", "st", "t.csv", "--tick", 2, "--same-file"),
    ("difference", "st/ticks/0001", "st/ticks/0002"),
    ("difference", "st", "st/ticks/0002"),
    ("report", "st", "-o", "over time.html"),
    ("stream", "forget", "st"),
    ("stream", "series", "st", "-m", "sex", "--trend"),
    ("stream", "series", "st", "-m", "sex", "--cumulative"),
    ("optimize", "w.csv"),
    ("optimize", "w.csv", "--neighbors", "replace", "--p", "inf", "-o", "w.npz"),
    ("optimize", "t.csv"),
    ("certify", "w.csv", "w.csv"),
    ("certify", "w.csv", "w.csv", "--neighbors", "replace", "--p", "inf"),
    ("certify", "measured.json"),
    ("certify", "w.csv"),
    ("inspect", "out", "t.csv"),
    ("inspect", "of persons", "t.csv"),
    ("inspect", "both", "t.csv"),
    ("inspect", "st", "t.csv"),
    ("inspect", "st", "--tick", 1, "t.csv"),
    ("verify", "charged"),
    ("verify", "both"),
    ("sign", "charged", "--key", "key.pem"),
    ("verify", "charged", "--key", "public.pem"),
    ("sign", "charged", "--key", "public.pem"),
    ("sign", "st", "--key", "key.pem"),
    ("verify", "st", "--key", "public.pem"),
    ("verify", "st/ticks/0001", "--key", "public.pem"),
    ("plan", "-s", "absent.toml", "--rho", "1"),
    ("app", "absent"),
]
GROUPS = ("", "stream", "ledger")


@pytest.mark.integration  # many commands, the demo among them, and mbi
def test_no_line_of_any_command_or_help_is_longer_than_the_terminal(tmp_path, monkeypatch, capsys):
    pytest.importorskip("mbi", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    n = 400
    columns = {
        "id": [k // 2 for k in range(n)],
        "sex": ["F", "M"] * (n // 2),
        "part of the country": (["North West"] * 3 + ["South East"]) * (n // 4),
        "age": [k % 100 for k in range(n)],
        "income": [k * 7919 % 90_000 for k in range(n)],
        "weight": [1 + k % 3 for k in range(n)],
    }
    csv.write_csv(pa.table(columns), "t.csv")
    for name, text in (("numbers", NUMBERS), ("counts", COUNTS)):
        (tmp_path / f"{name}.toml").write_text(text, encoding="utf-8")
    one = '{"attributes": ["sex"], "standard_deviation": 2}'
    measured = f'{{"sizes": {{"sex": 2}}, "measurements": [{one}]}}'
    (tmp_path / "measured.json").write_text(measured, encoding="utf-8")
    form = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, pem = Ed25519PrivateKey.generate(), form.Encoding.PEM
    secret = key.private_bytes(pem, form.PrivateFormat.PKCS8, form.NoEncryption())
    public = key.public_key().public_bytes(pem, form.PublicFormat.SubjectPublicKeyInfo)
    for name, content in (("key", secret), ("public", public)):
        (tmp_path / f"{name}.pem").write_bytes(content)
    (tmp_path / "w.csv").write_text("1,0,0\n1,1,0\n1,1,1\n", encoding="utf-8")
    seen = {words[0] for words in COMMANDS}
    for words in COMMANDS:
        run([str(word) for word in words])
        out, err = capsys.readouterr()
        assert out + err, words
        assert "internal error" not in err, words
        assert too_long(out + err) == [], words
    listed = []
    for group in GROUPS:
        assert run([*group.split(), "--help"]) == 0
        text = capsys.readouterr().out
        assert too_long(text) == []
        listed += [[*group.split(), name] for name in re.findall(r"^│ ([a-z]+) ", text, re.M)]
    assert seen == {words[0] for words in listed}  # a new command is in the list above
    for words in listed:
        assert run([*words, "--help"]) == 0
        assert too_long(capsys.readouterr().out) == [], words


def too_long(text):
    """The lines of more than 80 characters, of which no single word is as long: paths are."""
    lines = (line.strip() for line in text.splitlines() if len(line) > 80)
    return [line for line in lines if max(map(len, line.split(" "))) < 60]


TABLE = """\
entry                                             answers  rms sd  on its own
sex × income (count and sum of numbers)                 6   25.87       25.98
sex × region (prefix, without those elsewhere)         24   2.934       2.946

first, a line that fits
sex                                                    24   2.934       2.946"""


def test_the_columns_of_a_wide_table_stay_in_their_places_and_its_first_one_is_broken():
    lines = fitted(TABLE, 60).splitlines()
    assert max(map(len, lines)) <= 60
    assert lines[:5] == [
        "entry                            answers  rms sd  on its own",
        "sex × income (count and sum            6   25.87       25.98",
        "  of numbers)",
        "sex × region (prefix, without         24   2.934       2.946",
        "  those elsewhere)",
    ]
    assert lines[-1] == "sex                                   24   2.934       2.946"
    assert fitted(TABLE, 80) == TABLE


def test_what_follows_a_label_stays_behind_it():
    text = "noise        added to every count, once and for all\n  said of a line that has a margin"
    assert fitted(text, 40).splitlines() == [
        "noise        added to every count, once",
        "             and for all",
        "  said of a line that has a margin",
    ]


def test_words_are_never_broken_and_toml_stays_toml():
    path = "/" + "long/" * 20
    assert path in fitted(f"wrote {path} and more", 40).splitlines()[1]
    draft = (
        "# "
        + "a comment that is long " * 4
        + '\nnames = ["one, with a comma", "two words", "x y z"]'
    )
    shown = fitted(draft, 40)
    assert max(map(len, shown.splitlines())) <= 40
    assert tomllib.loads(shown) == {"names": ["one, with a comma", "two words", "x y z"]}


def test_lines_fit_80_columns_without_a_terminal_or_columns_if_they_are_set(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "s.toml").write_text(COUNTS, encoding="utf-8")
    words = ["plan", "-s", "s.toml", "-m", "2", "--rho", "0.1"]
    planned = gn.plan(gn.Schema.load("s.toml"), 2, gn.zCDP(0.1))
    said = {}
    for columns in (None, 60, 1000):
        if columns is not None:
            monkeypatch.setenv("COLUMNS", str(columns))
        assert run(words) == 0
        said[columns] = capsys.readouterr().out
        assert str(planned) + "\n" == said[columns]  # print in Python has the same lines
    usual, short, long = (max(map(len, said[k].splitlines())) for k in said)
    assert short <= 60 < usual <= 80 < long
    assert said[60].split() == said[None].split() == said[1000].split()


@pytest.mark.parametrize("columns", [60, 80])
@pytest.mark.parametrize("words", [["mean"], ["check"], ["difference"], ["stream", "series"]])
def test_help_breaks_lines_only_where_the_next_word_does_not_fit(
    words, columns, monkeypatch, capsys
):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert run([*words, "--help"]) == 0
    said = capsys.readouterr().out.partition("╭")[0].partition("Usage:")[2]
    lines = [line.strip() for line in said.splitlines()][1:]
    pairs = [(line, after) for line, after in itertools.pairwise(lines) if line and after]
    assert len(pairs) >= 2
    assert all(len(line) + 1 + len(after.split()[0]) > columns - 2 for line, after in pairs)


def test_help_keeps_the_lines_of_a_list(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["ask", "--help"]) == 0
    assert re.search(r"^ +mean of income by sex +\(average", capsys.readouterr().out, re.M)


def test_a_schema_that_goes_to_a_file_is_not_broken(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    long = "a name of " + "many words " * 10 + "and no end"
    csv.write_csv(pa.table({long: ["F", "M"] * 50}), "t.csv")
    assert run(["schema", "t.csv"]) == 0
    drafted = gn.Schema.loads(capsys.readouterr().out)
    assert drafted.names == (long,)


def test_files_do_not_depend_on_the_screen(tmp_path, monkeypatch):
    """Records and summaries are the same on every terminal."""
    schema = gn.Schema([gn.Attribute("sex", ["F", "M"]), gn.Attribute("age", edges=[0, 18, 65])])
    release = gn.plan(schema, 2, gn.zCDP(0.1)).simulate(
        pa.table({"sex": ["F", "M"] * 50, "age": [7, 33] * 50}), np.random.default_rng(0)
    )
    texts = []
    for columns in ("60", "1000"):
        monkeypatch.setenv("COLUMNS", columns)
        release.save(tmp_path / columns)
        gn.difference(
            release,
            release.plan.simulate(
                pa.table({"sex": ["F"] * 9, "age": [7] * 9}), np.random.default_rng(1)
            ),
        ).save(tmp_path / f"changes {columns}")
        folders = (tmp_path / columns, tmp_path / f"changes {columns}")
        texts.append(
            [
                (path.name, path.read_text(encoding="utf-8"))
                for folder in folders
                for path in sorted(folder.glob("*.txt"))
            ]
        )
    assert texts[0] == texts[1]
    assert len(texts[0]) == 4
