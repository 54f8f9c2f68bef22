"""Tests of files in other dialects: in every function they count as the same usual table."""

import dataclasses
import lzma
import re
import zipfile

import duckdb
import numpy as np
import pytest
from cases import packed

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import DataError, ParameterError, SchemaError
from gaussnoise.tables.counting.check import check_rows
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.counting.recount import recount
from gaussnoise.tables.reading.csv import csv_names, open_csv
from gaussnoise.tables.reading.frames import guarded
from gaussnoise.tables.reading.lines import IS_USABLE
from gaussnoise.tables.reading.sniff import _of_text, sniffed

GERMAN = gn.Dialect(";", ",", encoding="cp1252")
PLACES = ["Köln", "Œuf; Straße", 'zu "Haus"', "1,5"]
PAY = ["1,5", "0,25", "-3", "1.5", "1.000,5", "1,5e2", ",5", "x", "", "1_0,0", "7"]
SIZES = ["3", "03", "3,0", "3.0", "30e-1", "3,5", "", "4", "9007199254740993,0", "x"]
ROWS = [(PLACES[k % 4], PAY[k % 11], SIZES[k % 10]) for k in range(440)]
ATTRIBUTES = [
    gn.Attribute("Ort", PLACES, other="anderswo"),
    gn.Attribute("Lohn", edges=[-10, 0, 1, 2, 10, 1000], other="keiner"),
    gn.Attribute("Größe", [3, 4, 2**53 + 1], other="keine"),
]
# decimal points, and what is no number for another reason
PLAIN = dict(zip(PAY + SIZES, [
    "1.5", "0.25", "-3", "?", "?", "1.5e2", ".5", "x", "", "1_0.0", "7",
    "3", "03", "3.0", "?", "30e-1", "3.5", "", "4", "9007199254740993.0", "x",
], strict=True))  # fmt: skip


def lines(rows, delimiter, quote='"', end="\r\n"):
    def field(text):
        special = bool(set(text) & {delimiter, quote})
        return quote + text.replace(quote, 2 * quote) + quote if special else text

    return "".join(delimiter.join(map(field, row)) + end for row in rows)


HEADER = ("Ort", "Lohn", "Größe")


def written(folder, dialect=GERMAN, name="t.csv", first=""):
    """Write the table in a dialect and return its path."""
    delimiter, quote = dialect.of(name)
    content = first + lines([HEADER, *ROWS], delimiter, quote)
    packed(folder / name, content.encode(dialect.encoding))
    return folder / name


def counted(table, attributes=ATTRIBUTES):
    ((_, counts),) = count_marginals(table, attributes, [tuple(range(len(attributes)))])
    return counts.tolist()


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """Return the path of the same table as RFC 4180 with decimal points."""
    path = tmp_path_factory.mktemp("usual") / "t.csv"
    rows = [(place, PLAIN[pay], PLAIN[size]) for place, pay, size in ROWS]
    path.write_text(lines([HEADER, *rows], ","), encoding="utf-8")
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.xz", "t.csv.zst", "t.zip"])
@pytest.mark.parametrize(
    ("dialect", "first"),
    [
        (GERMAN, ""),
        (GERMAN, "sep=;\r\n"),
        (gn.Dialect(decimal=","), ""),
        (gn.Dialect(";", ",", quote="'"), ""),
        (gn.Dialect("\t", ",", encoding="utf-8"), "\ufeff"),
    ],
)
def test_numbers_count_by_value_and_text_as_written(tmp_path, usual, name, dialect, first):
    path = written(tmp_path, dialect, name, first)
    assert counted(dialect.table(path)) == counted(usual)
    # without the stated mark, these are other numbers
    point = gn.Dialect(dialect.delimiter, ".", encoding=dialect.encoding, quote=dialect.quote)
    assert counted(point.table(path)) != counted(usual)


def test_every_row_counts_by_itself(tmp_path):
    """The rows are texts that look like numbers and texts that do not, alone and together."""
    attribute = gn.Attribute("a", edges=[0, 1, 2, 3000], other="none")
    texts = ["1,5", "1.5", "1.500", "1.500,0", "1,500", "1,5,0", " 1,5 ", "+,5", ",", "1e1", "1;0"]

    def count(rows):
        path = tmp_path / "t.csv"
        path.write_text("a\n" + "".join(f'"{text}"\n' for text in rows))
        return counted(GERMAN.table(path), [attribute])

    alone = {text: count([text]) for text in texts}
    assert [text for text in texts if alone[text][-1] == 0] == [
        "1,5", "1,500", " 1,5 ", "+,5", "1e1",
    ]  # fmt: skip
    for k in range(len(texts)):
        others = texts[:k] + texts[k + 1 :]
        assert count(others) == np.sum([alone[text] for text in others], axis=0).tolist(), texts[k]


GROUPED = {
    (".", ","): {"1.234,5": 1234.5, "1234,5": 1234.5, "-1.234.567": -1234567.0, " 1.000 ": 1000.0},
    (",", "."): {"1,234.5": 1234.5, "1234.5": 1234.5, "+12,345,678.": 12345678.0},
    (" ", ","): {"1 234,5": 1234.5, "999": 999.0, " 1 000": 1000.0},
    ("'", "."): {"1'234.5": 1234.5, "1'234'567": 1234567.0},
    ("\u202f", ","): {"1\u202f234,5": 1234.5},
}
UNGROUPED = [
    "12{}34",
    "1{}23",
    "1{}2345",
    "{}123",
    "1234{}567",
    "1{0}{0}234",
    "1{}234{}",
    "12{}345e2",
]


@pytest.mark.parametrize("marks", GROUPED)
def test_marks_of_thousands_stand_between_groups_of_three_digits_and_nowhere_else(tmp_path, marks):
    """Counted by releases and by the recount of inspections, which read by other code."""
    thousands, decimal = marks
    dialect = gn.Dialect(";", decimal, thousands=thousands)
    numbers = GROUPED[marks]
    edges = sorted({edge for value in numbers.values() for edge in (value - 0.25, value + 0.25)})
    attribute = gn.Attribute("a", edges=edges, other="none")
    odd = [text.format(thousands, thousands) for text in UNGROUPED]
    odd = [text for text in odd if text == text.strip(" ")]  # blanks around numbers are none
    texts = [*numbers, *odd]
    path = tmp_path / "t.csv"
    path.write_text("a\n" + "".join(f'"{text}"\n' for text in texts), encoding="utf-8")
    expected = np.zeros(attribute.size)
    np.add.at(expected, np.searchsorted(edges, list(numbers.values())) - 1, 1)
    expected[-1] = len(odd)
    assert counted(dialect.table(path), [attribute]) == expected.tolist()
    found = recount(dialect.table(path), [attribute], [(0,)], "drop", None, None, 1, [])
    assert found.counts[0,].tolist() == expected.tolist()
    # without the mark they are no numbers, as before
    plain = counted(gn.Dialect(";", decimal).table(path), [attribute])
    assert plain[-1] == len(odd) + sum(thousands in text.strip() for text in numbers)


def test_a_mark_of_thousands_is_stated_in_files_and_in_the_shell(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    schema = gn.Schema.loads(SCHEMA.replace('decimal = ","', 'decimal = ","\nthousands = "."'))
    assert schema.file.thousands == "."
    assert gn.Schema.loads(schema.to_toml()) == schema
    (tmp_path / "t.csv").write_text("n\n" + '"1.234,5"\n' * 900, encoding="utf-8")
    words = "mean t.csv -c n --between 0,2000 --rho 5 --decimal , --thousands . -o out"
    assert run(words.split()) == 0
    (mean,) = gn.estimators.population_means(gn.TableRelease.load("out")).means
    assert abs(mean.mean - 1234.5) < 50


def test_every_byte_of_an_encoding_is_a_character_of_its_own(tmp_path):
    for encoding in ("latin-1", "cp1252", "iso8859-8", "koi8-r", "mac-roman"):
        dialect = gn.Dialect(encoding=encoding, quote="")
        bodies = [bytes([b]) for b in range(256) if b not in b"\n\r,"]
        (tmp_path / "t.csv").write_bytes(b"a,b\n" + b"".join(one + b",1\n" for one in bodies))
        rows = gn.tables.reading.frames.open_table(dialect.table(tmp_path / "t.csv"))
        found = [row[0] for row in rows.to_native().fetchall()]
        assert len(set(found)) == len(bodies)
        known = [one.decode(encoding, "ignore") for one in bodies]
        assert all(a == b for a, b in zip(found, known, strict=True) if b)


SCHEMA = """\
[file]
delimiter = ";"
decimal = ","
encoding = "cp1252"

[attributes.Ort]
categories = ["Köln", "Œuf; Straße"]
other = "anderswo"

[attributes.Lohn]
clip = [0, 10]
other = "keiner"

[[workload]]
of = ["Ort", "Lohn"]
"""


def test_a_schema_keeps_its_dialect():
    schema = gn.Schema.loads(SCHEMA)
    assert schema.file == GERMAN
    assert gn.Schema.loads(schema.to_toml()) == schema
    assert "[file]" not in gn.Schema(schema.attributes).to_toml()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('delimiter = ";;"', "schema:1: file: dialect: expected delimiter to be one ASCII"),
        ("delimiter = 3", "schema:2: file.delimiter: expected text"),
        ('skip = "2"', "schema:2: file.skip: expected an integer, the number of lines"),
        ("skiprows = 2", "schema:2: file.skiprows: unknown key; .* hint: skip = 2 for two lines"),
        ("header = 2", "schema:2: file.header: unknown key; .* hint: skip = 2 for two lines"),
        ('separator = ";"', "schema:2: file.separator: unknown key; expected delimiter, decimal"),
        ('encoding = "utf-16"', "schema:1: file: dialect: expected encoding.*save the file as"),
    ],
)
def test_schema_files_name_the_line(line, told):
    key = next((key for key in ("encoding", "delimiter") if line.startswith(key)), "delimiter")
    text = re.sub(f"{key} = .*", line, SCHEMA, count=1)
    with pytest.raises(SchemaError, match=told):
        gn.Schema.loads(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"delimiter": ""},
        {"delimiter": "\n"},
        {"delimiter": '"'},
        {"delimiter": "-"},
        {"delimiter": "§"},
        {"delimiter": 59},
        {"decimal": "·"},
        {"thousands": ".", "decimal": "."},
        {"thousands": "_"},
        {"thousands": ""},
        {"decimal": None},
        *({"skip": wrong} for wrong in (-1, True, "2", 2.0, None)),
        {"quote": "«"},
        *({"encoding": name} for name in ("utf-16", "utf-7", "cp932", "gbk", "rot13", "hex", "?")),
        {"encoding": "unicode_escape"},
        {"encoding": "cp037"},
    ],
)
def test_dialects_that_cannot_be_are_refused(wrong):
    with pytest.raises(ParameterError, match=f"dialect: expected {next(iter(wrong))}"):
        gn.Dialect(**wrong)


@pytest.mark.parametrize(
    ("content", "dialect", "told"),
    [
        (b"sep=|\na|b\n", GERMAN, "expected the delimiter ';', got a first line sep=|"),
        (b"\xef\xbb\xbfa;b\n", GERMAN, "got a mark of UTF-8; hint: encoding = \"utf-8\""),
        (b"a;b\n", gn.Dialect(","), None),  # it is stated: one column of that name
        (b"sep=;x,a;b\n", gn.Dialect(), None),  # a name, not what Excel calls a separator
    ],
)  # fmt: skip
def test_files_that_are_not_in_the_dialect_are_refused(tmp_path, content, dialect, told):
    (tmp_path / "t.csv").write_bytes(content)
    table = dialect.table(tmp_path / "t.csv")
    if told is None:
        assert counted(table, [gn.Attribute("a;b", ["x"])]) == [0]
        return
    with pytest.raises(DataError) as caught:
        counted(table, [gn.Attribute("a", ["x"])])
    assert told in str(caught.value)


@pytest.mark.parametrize("members", [["a.csv", "b.csv"], ["a.parquet"], []])
def test_other_archives_are_refused(tmp_path, members):
    with zipfile.ZipFile(tmp_path / "t.zip", "w") as archive:
        for member in members:
            archive.writestr(member, "a\nx\n")
    with pytest.raises(DataError, match=r"one \.csv or \.tsv file without a password; hint"):
        counted(tmp_path / "t.zip", [gn.Attribute("a", ["x"])])


@pytest.mark.parametrize("name", ["t.csv.gz", "t.csv.xz", "t.csv.zst", "t.zip"])
def test_packed_files_that_are_cut_are_refused(tmp_path, usual, name):
    packed(tmp_path / name, usual.read_bytes())
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: -len(whole) // 2])
    with pytest.raises(DataError, match="could not open the file"):
        counted(tmp_path / name)
    if name != "t.zip":  # parts that are packed one by one
        lines = usual.read_bytes().splitlines(keepends=True)
        packed(tmp_path / name, b"".join(lines[:9]))
        first = (tmp_path / name).read_bytes()
        packed(tmp_path / name, b"".join(lines[9:]))
        (tmp_path / name).write_bytes(first + (tmp_path / name).read_bytes())
        assert counted(tmp_path / name) == counted(usual)


def test_plans_read_in_the_dialect_of_their_schema(tmp_path, usual):
    written(tmp_path)
    plan = gn.plan(gn.Schema(ATTRIBUTES, file=GERMAN), 1, gn.zCDP(1e8))
    release = plan.release(tmp_path / "t.csv", on_outside="drop")
    exact = gn.plan(gn.Schema(ATTRIBUTES), 1, gn.zCDP(1e8)).release(usual)
    for name in HEADER:  # at this budget noise is far below a row
        assert release[name].estimate.round().tolist() == exact[name].estimate.round().tolist()
    assert release.plan.schema.file == GERMAN


def test_streams_read_in_the_dialect_of_their_schema(tmp_path, usual):
    written(tmp_path)
    plan = gn.plan(gn.Schema(ATTRIBUTES, file=GERMAN), 1, gn.zCDP(1e8), over=gn.streams.Ticks(2))
    stream = plan.start(tmp_path / "stream")
    first = stream.tick(tmp_path / "t.csv", number=1)
    both = stream.tick(gn.Dialect().table(usual), number=2)
    for name in HEADER:
        assert (2 * first[name].estimate).round().tolist() == both[name].estimate.round().tolist()


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """Return a function to the output of a command, in a folder with the German table."""
    monkeypatch.chdir(tmp_path)
    written(tmp_path, gn.Dialect(";", ",", encoding="cp1252", quote="'"))
    (tmp_path / "schema.toml").write_text(SCHEMA, encoding="utf-8")

    def shell(line, status=0):
        assert run(line.split()) == status, capsys.readouterr().err
        out, err = capsys.readouterr()
        return err if status else out

    return shell


@pytest.mark.usefixtures("quick_pictures")
def test_the_shell_states_dialects(shell, tmp_path, usual):
    stated = "--delimiter ; --decimal , --encoding cp1252 --quote '"
    shell("release t.csv -s schema.toml --quote ' --rho 1e8 -o out")
    table = gn.TableRelease.load("out").plan.schema.file
    assert table == gn.Dialect(";", ",", encoding="cp1252", quote="'")
    assert "Köln" in shell(f"categories t.csv Ort --epsilon 1 --delta 1e-6 {stated}")
    means = shell(f"mean t.csv -c Lohn --rho 1e6 {stated}")
    numbers = sum(PLAIN[pay] not in ("?", "x", "", "1_0.0") for _, pay, _ in ROWS)
    assert abs(int(means.splitlines()[2].split()[-1]) - numbers) <= 1
    (tmp_path / "counts.toml").write_text(SCHEMA.replace("clip", "edges"), encoding="utf-8")
    shell("stream start -o s -s counts.toml -m 1 --ticks 2 --rho 1")
    assert "RFC 4180" in shell("stream tick s t.csv --tick 1", status=1)
    shell("stream tick s t.csv --tick 1 --quote '")
    draft = shell("schema t.csv --quote '")
    assert draft.splitlines().count("[file]") == 1
    assert gn.Schema.loads(draft).file == table


@pytest.mark.parametrize(
    ("name", "dialect", "first"),
    [
        ("t.csv", gn.Dialect(decimal=","), ""),
        ("t.tsv", gn.Dialect(decimal=",", quote='"'), ""),
        ("t.csv.xz", GERMAN, ""),
        ("t.csv", GERMAN, "sep=;\r\n"),
        ("t.zip", gn.Dialect("|", ","), ""),
        ("t.csv", gn.Dialect("\t", ",", encoding="cp1252"), ""),
    ],
)
def test_drafts_see_the_dialect(tmp_path, name, dialect, first):
    assert sniffed(written(tmp_path, dialect, name, first)) == dialect


def test_drafts_see_that_nothing_is_special(usual):
    assert sniffed(usual) == gn.Dialect()


def test_drafts_read_numbers_with_commas(tmp_path):
    (tmp_path / "t.csv").write_text(
        "n;t;u\n" + "".join(f"{k},5;a,{k % 9};{k % 3},5\n" for k in range(200))
    )
    drafted = gn.Schema.draft(tmp_path / "t.csv")
    assert drafted.file == gn.Dialect(";", ",")
    assert drafted.attributes[0].edges is not None
    assert drafted.attributes[1].categories == tuple(f"a,{k}" for k in range(9))
    assert drafted.attributes[2].edges is not None


@pytest.mark.parametrize("pack", [lzma.compress, None], ids=["xz", "sep"])
def test_a_byte_order_mark_beside_a_file_that_is_unpacked_hides_no_bytes(tmp_path, pack):
    """The text begins after the mark, and ends where the file does."""
    text = b"v,p\na,100\nb,200"
    other = tmp_path / ("2.csv.xz" if pack else "2.csv")
    other.write_bytes(pack(text) if pack else b"sep=,\n" + text)
    for mark in (b"", b"\xef\xbb\xbf"):
        (tmp_path / "1.csv").write_bytes(mark + text)
        attributes = [gn.Attribute("v", ["a", "b"]), gn.Attribute("p", ["100", "200"], other="o")]
        files = [tmp_path / "1.csv", other]
        found = dict(count_marginals(files, attributes, [(0, 1)], "refuse"))[(0, 1)]
        assert found.tolist() == [[2, 0, 0], [0, 2, 0]]


TITLE = ('Register; "extract" of 1 September', "", "Köln;1,5;3")  # the last is like a record


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.csv.xz", "t.csv.zst", "t.zip"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(("dialect", "mark"), [(GERMAN, ""), (gn.Dialect(";", ","), "\ufeff")])
def test_lines_before_the_column_names_count_nowhere(tmp_path, usual, name, end, dialect, mark):
    """By every reader, the table is the same as without these lines."""
    text = mark + end.join([*TITLE, ""]) + lines([HEADER, *ROWS], ";", end=end)
    packed(tmp_path / name, text.encode(dialect.encoding))
    table = dataclasses.replace(dialect, skip=len(TITLE)).table(tmp_path / name)
    assert counted(table) == counted(usual)
    ask = (ATTRIBUTES, [(0, 1, 2)], "drop", None, None, 1, [])
    both = [recount(own, *ask).counts[0, 1, 2].tolist() for own in (table, usual)]
    assert both[0] == both[1] == counted(usual)
    packed(tmp_path / f"other{name}", lines([HEADER, *ROWS], ";").encode(dialect.encoding))
    same = dialect.table(tmp_path / f"other{name}")
    assert str(check_rows(table, ATTRIBUTES)) == str(check_rows(same, ATTRIBUTES))


@pytest.mark.parametrize("skip", [0, 1, 3])
@pytest.mark.parametrize("first", ['"a;1"', "a", '"a\n1"'])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_each_of_several_files_has_its_own_lines_before_the_names(tmp_path, skip, first, mark):
    """Names with a delimiter or a line end, after which readers of other programs lose a record."""
    for k in range(3):
        lines = [f'{k} "title"'] * (skip - 1) + ["", f"{first};b", "1;x", "2;y", ""][not skip :]
        (tmp_path / f"{k}.csv").write_text(mark + "\n".join(lines), encoding="utf-8")
    table = gn.Dialect(";", skip=skip).table(str(tmp_path / "*.csv"))
    name = first.strip('"')
    attributes = [gn.Attribute(name, [1, 2]), gn.Attribute("b", ["x", "y"])]
    assert counted(table, attributes) == [[3, 0], [0, 3]]
    assert csv_names([str(tmp_path / "0.csv")], table.dialect) in ([name, "b"], None)
    assert guarded("read", lambda: open_csv([str(tmp_path / "0.csv")], duckdb.connect(),
        table.dialect)[1] is not None) == (IS_USABLE and "\n" not in first)  # fmt: skip


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"one\ntwo", "expected column names after 3 lines, as skip = 3 states, got a file with f"),
        (b"one\ntwo\n\n", "expected a first line of column names"),
        (b"one\ntwo\n\na\n", None),
        (b"sep=,\ntwo\n\na\n", None),  # which is one of the lines
        (b"sep=;\ntwo\n\na\n", "got a first line sep=;"),
        ("one\ntwo\n\na\n".encode("utf-16"), "got UTF-16"),
    ],
)
def test_files_without_names_after_the_lines_are_refused(tmp_path, content, told):
    (tmp_path / "t.csv").write_bytes(content)
    table = gn.Dialect(skip=3).table(tmp_path / "t.csv")
    if told is None:
        assert counted(table, [gn.Attribute("a", ["x"])]) == [0]
        return
    with pytest.raises(DataError) as caught:
        counted(table, [gn.Attribute("a", ["x"])])
    assert told in str(caught.value)


def test_lines_before_the_names_are_stated_in_files_and_in_the_shell(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    schema = SCHEMA.replace('decimal = ","', 'decimal = ","\nskip = 3').replace("clip", "edges")
    assert gn.Schema.loads(schema).file == dataclasses.replace(GERMAN, skip=3)
    assert gn.Schema.loads(gn.Schema.loads(schema).to_toml()) == gn.Schema.loads(schema)
    (tmp_path / "schema.toml").write_text(schema, encoding="utf-8")
    text = "\r\n".join([*TITLE, ""]) + lines([HEADER, *ROWS], ";")
    (tmp_path / "t.csv").write_text(text, encoding="cp1252", newline="")
    for words in (
        "check t.csv -s schema.toml -m 1",
        "release t.csv -s schema.toml --rho 1e8 -o out",
        "inspect out t.csv",
        "convert out --format jsonl -o other",
        "inspect other t.csv",
        "stream start -o s -s schema.toml -m 1 --ticks 2 --rho 1",
        "stream tick s t.csv --tick 1",
    ):
        assert run(words.split()) == 0, capsys.readouterr().err
    assert gn.TableRelease.load("out").plan.schema.file.skip == 3
    assert run("release t.csv -s schema.toml --skip 2 --rho 1 -o no".split()) != 0
    assert "column names, skip = 2 in the schema's [file], --skip 2" in capsys.readouterr().err
    means = "mean t.csv -c Lohn --rho 1e6 --delimiter ; --decimal , --encoding cp1252 --skip 3"
    assert run(means.split()) == 0


@pytest.mark.parametrize("length", range(9))
def test_lines_of_every_length_are_skipped(tmp_path, length):
    """As many bytes as a byte order mark has are no mark."""
    for text in ("T" * length + "\n", "\n" * max(length, 1)):
        (tmp_path / "t.csv").write_text(text + "a\nx\n\ny\n", encoding="utf-8")
        table = gn.Dialect(skip=text.count("\n")).table(tmp_path / "t.csv")
        assert counted(table, [gn.Attribute("a", ["x", "y"], other="o")]) == [1, 1, 1]


SNIFFED = {  # what stands before the names: how many lines are skipped
    "Title\n": 1,
    "Title, with a comma\n\n": 2,
    "Title; with a delimiter\n\n": 2,
    "\n": 1,
    "\n\n": 2,
    '"Title of\n': 1,
    "\ufeffTitle\n\n\n": 3,
    "sep=;\n": 0,
    "sep=;\nTitle\n": 2,
    "Title;2;3;4\n": 0,  # as many fields as a record
    "Title;2;3;4\n\n": 0,
    "Title;2;3\n": 0,  # one field less: perhaps the names of all columns but that of row names
    "Title;2;3\n\n": 2,
}


@pytest.mark.parametrize("before", SNIFFED)
@pytest.mark.parametrize("stated", [gn.Dialect(), gn.Dialect(";"), gn.Dialect(";", ",")])
def test_drafts_see_how_many_lines_stand_before_the_names(tmp_path, before, stated):
    body = "no;sex;pay;town\n" + "".join(f"{k};F;1,{k};A, B\n" for k in range(300))
    (tmp_path / "t.csv").write_text(before + body, encoding="utf-8")
    found, _ = _of_text(str(tmp_path / "t.csv"), stated)
    assert found.skip == SNIFFED[before]


@pytest.mark.parametrize(
    "text",
    [
        "name\n" + "Smith, A\n" * 9,  # one column of texts
        "place\n" + "Rome, Lazio, Italy\nParis, Ile-de-France, France\n" * 9,
        "a,b,c\nr1,x,y,z\nr2,x,y,z\n",  # row names, which R gives no name
        "a\nr1,x\nr2,y\n",
        "a,b\n1,2,\n3,4,\n",  # a delimiter at the end of records
        "T\n1,2,3\n4,5,6\n",  # no names
        "T\n\na,a,b\nx,y,z\n",
        "T\n\na,,b\nx,y,z\n",
        "T\n\na,b,c\n1,2,3\n4,5\n",  # ragged below
        "T\n\na,b,c\n",  # no record
        "a,b\n" * 3 + "T\n\na,b,c\nx,y,z\n" * 9,
    ],
)
def test_drafts_skip_no_line_in_doubt(tmp_path, text):
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    assert _of_text(str(tmp_path / "t.csv"), gn.Dialect(","))[0].skip == 0
