"""CSV and TSV are read by bytes: accepted files are parsed as every strict reader does.

One row is one row.
"""

import codecs
import csv
import gzip
import io
import random

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from cases import packed

import gaussnoise as gn
from gaussnoise.errors import DataError
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.reading import csv as _csv
from gaussnoise.tables.reading import lines as _lines
from gaussnoise.tables.reading import plain
from gaussnoise.tables.reading.csv import open_csv

CANARY = "CANARY-7391"


@pytest.fixture(scope="module")
def connection():
    return duckdb.connect()


@pytest.fixture
def read(tmp_path, connection):
    """The rows of a file of these bytes."""

    def read(content, name="t.csv"):
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return open_csv([str(tmp_path / name)], connection)[0].fetchall()

    return read


def counted(path, *attributes, **options):
    ((_, counts),) = count_marginals(path, attributes, [tuple(range(len(attributes)))], **options)
    return counts.tolist()


INCHES = (
    ["u,x\n"] * 700
    + ['v,"La\n']
    + ["u,x\n"] * 9
    + ["v,4' 2\"\n"]
    + ["u,y\n"] * 3000
    + ["v,5' 8\"\n"]
)
INCHES += ["u,z\n"] * 300


def test_a_row_that_would_swallow_others_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text("g,t\n" + "".join(INCHES))
    with pytest.raises(DataError, match=r"RFC 4180.*hint") as caught:
        counted(tmp_path / "t.csv", gn.Attribute("g", ["u", "v"]))
    assert "La" not in str(caught.value)
    # without the quote in the middle, one field of 3011 lines is properly quoted: a record, and so
    # a row
    (tmp_path / "t.csv").write_text("g,t\n" + "".join(row for row in INCHES if row != INCHES[710]))
    assert counted(tmp_path / "t.csv", gn.Attribute("g", ["u", "v"])) == [1000, 1]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_tsv_knows_no_quotes(tmp_path, end):
    rows = [row.replace(",", "\t").replace("\n", end) for row in INCHES]
    (tmp_path / "t.tsv").write_bytes((f'g\t"t{end}' + "".join(rows)).encode())
    kinds = gn.Attribute('"t', ["x", "y", "z", '"La', "4' 2\"", "5' 8\""])
    assert counted(tmp_path / "t.tsv", gn.Attribute("g", ["u", "v"])) == [4009, 3]
    assert counted(tmp_path / "t.tsv", kinds) == [709, 3000, 300, 1, 1, 1]


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b'a,b\n"x",1\n', [("x", "1")]),
        (b'a,b\n"x ""y"", z",""\n', [('x "y", z', "")]),
        (b'a,b\n"""",""""""\n', [('"', '""')]),
        (b'a,b\n"x\ny\r\nz\rw,",1', [("x\ny\r\nz\rw,", "1")]),
        (b'\xef\xbb\xbf"a",b\r\nx,"1"\r\n', [("x", "1")]),
        (b'\xef\xbb\xbf"a,",b\nx,1\ny,2\n', [("x", "1"), ("y", "2")]),
        (b'\xef\xbb\xbf"a\nb"\n"x"\ny\n', [("x",), ("y",)]),
        (b'\xef\xbb\xbf"a""\r\n",b\r\n"x,",1\r\n', [("x,", "1")]),
        (b'"a\nb",c\r\nx,1\r\n"y\n",2\r\n', [("x", "1"), ("y\n", "2")]),  # of Excel
        (b'a,"b\r"\nx,1\ny,2', [("x", "1"), ("y", "2")]),
        (b'a,"b\n"\rx,1\ry,2\r', [("x", "1"), ("y", "2")]),
        (b'a,"b\n\r\n"', []),
        (b"a,b\n\nx,\n\n", [("x", None)]),
        (b"a\nx\n\ny\n", [("x",), (None,), ("y",)]),
        (b"a,b", []),
        (b"a,b\n\\N,NULL\n", [("\\N", "NULL")]),
        (b"a,b\n#x,;'\n", [("#x", ";'")]),
        (b"a,b\nx\0,1\n", [("x\0", "1")]),
        (b"a,b\n" + b"x" * 5_000_000 + b",1\n", [("x" * 5_000_000, "1")]),
        (b'a,b\n"' + b"x\n" * 2_500_000 + b'",1\n', [("x\n" * 2_500_000, "1")]),
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "T.CSV.gz"])
def test_what_is_read(read, content, rows, name):
    assert read(content, name) == rows


@pytest.mark.parametrize(
    "content",
    [
        b'a,b\nx"y,1\n',
        b'a,b\nx",1\n',
        b'a,b\n "x",1\n',
        b'a,b\n"x" ,1\n',
        b'a,b\n"x"y,1\n',
        b'a,b\nx,"1',
        b'a,b\n"x\\"y",1\n',
        b'a,b\n""x"",1\n',
        b'a,b\nx,"\n',
        b'a,"b\n',
        b'a,b"\nx,1\n',
        b'a,b\n"x"\0,1\n',
    ],
)
@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
@pytest.mark.parametrize("piece", [1, 2, 5, 2**19])
def test_any_other_quote_is_refused(read, content, name, piece, monkeypatch):
    monkeypatch.setattr(_csv, "_PIECE", piece)
    with pytest.raises(DataError, match="RFC 4180"):
        read(content, name)


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (b"a,b\nx\r,1\n", "line ends"),
        (b"a,b\r\nx,1\n", "line ends"),
        (b"a,b\rx,1\n", "line ends"),
        ("a,b\nx,1\n".encode("utf-16"), "CSV UTF-8"),
        (b"sep=;\na;b\n", r"first line sep=;.*--delimiter ';'"),
        (b'a;"b"\n"x";1\n', r"""delimiter = ";" in.*--delimiter ';'.*delimiter=';'"""),
        (b"a\tb\n", "--delimiter tab"),
        ("naïve,b\n".encode("cp1252"), "--encoding 'cp1252'"),
        (b"a,b,\nx,1,\n", "no delimiter after the last field"),
        (b',"a"\n1,x\n', r"index=False, R: row\.names"),
        (b"b,a,a\n", "distinct.*one twice, in columns 2 and 3"),
        (b"Sex,sex\nF,x\n", "upper and lower case.*rename one"),
        (b"", "column names"),
        (b"\n1\n", "column names"),
    ],
)
def test_other_habits_are_refused_with_a_hint(read, content, hint):
    with pytest.raises(DataError, match=hint):
        read(content)


def test_records_of_another_length_are_refused_with_a_hint(tmp_path):
    path = tmp_path / "t.csv"
    doors = [
        lambda: counted(path, gn.Attribute("a", ["x"], other="o")),
        lambda: gn.estimators.column_means(path, ["b"], gn.zCDP(1.0)),
        lambda: gn.Schema.draft(gn.Dialect().table(path)),
    ]
    hint = "'cp1252'.*as many fields"
    of_drafts = "expected 2 fields in every record, .*, got 1 in line 3; hint: write as many"
    for content, drafted in ((f"a,b\nx,1\n{CANARY}\n", of_drafts), (f"a,b\n{CANARY}é,é\n", hint)):
        path.write_bytes(content.encode("latin-1"))
        for door, told in zip(doors, (hint, hint, drafted), strict=True):
            with pytest.raises(DataError, match=told) as caught:
                door()
            assert CANARY not in str(caught.value)


class RefusedError(Exception):
    pass


def records(text, delimiter, quote):
    """A parser, character by character: the fields of every record.

    A field is None if nothing stands between two delimiters.
    """
    found, record, field, state, ends, k = [], [], "", "start", set(), 0
    while k < len(text):
        c = text[k]
        k += 1
        if state == "quoted" and c == quote and text[k : k + 1] == quote:
            field += c
            k += 1
        elif state == "quoted":
            state, field = ("closed", field) if c == quote else (state, field + c)
        elif c == delimiter or c in "\r\n":
            record.append(field if field or state == "closed" else None)
            field, state = "", "start"
            if c != delimiter:
                end = "\r\n" if c + text[k : k + 1] == "\r\n" else c
                k += len(end) - 1
                ends.add(end)
                found, record = [*found, record], []
        elif state == "closed" or (c == quote and state != "start"):
            raise RefusedError
        else:
            state, field = ("quoted", "") if c == quote else ("bare", field + c)
    if state == "quoted" or len(ends) > 1:
        raise RefusedError
    if record or state != "start":
        found.append([*record, field if field or state == "closed" else None])
    return found


def random_file(rng, delimiter, quote):
    """Text that looks like a table, sometimes with a character too many."""
    end, width = rng.choice(["\n"] * 5 + ["\r\n"] * 2 + ["\r"]), rng.choice([1, 2, 2, 3])
    pieces = [*",\t|;'\"x1 y\\#é\xfc\0", "\n", "\r", "\r\n", *[quote] * 3, 2 * quote, delimiter]

    def field():
        text = "".join(rng.choices(pieces, k=rng.randint(0, 4)))
        if not quote:
            return "".join(c for c in text if c not in (delimiter, "\r", "\n"))
        quoted = rng.random() < 0.3 or bool(set(text) & {quote, delimiter, "\r", "\n"})
        return quote + text.replace(quote, 2 * quote) + quote if quoted else text

    lines = [delimiter.join(field() for _ in range(width)) for _ in range(rng.randint(0, 8))]
    text = delimiter.join("abc"[:width]) + end + end.join(lines) + rng.choice(["", end])
    for _ in range(rng.choice([0, 0, 1, 2])):
        k = rng.randint(2 * width, len(text))
        text = text[:k] + rng.choice(pieces) + text[k:]
    return text, width


# what the name alone says, each part of a dialect, and all of them together
WRITTEN = {
    "csv": ("t.csv", gn.Dialect()),
    "tsv": ("t.tsv", gn.Dialect()),
    "csv in utf-8 with a mark": ("t.csv", gn.Dialect(encoding="utf-8-sig")),
    "semicolons": ("t.csv", gn.Dialect(delimiter=";")),
    "quoted tsv": ("t.tsv", gn.Dialect(quote='"')),
    "blanks": ("t.csv", gn.Dialect(delimiter=" ")),
    "no quotes": ("t.csv", gn.Dialect(delimiter="|", quote="")),
    "latin-1": ("t.csv", gn.Dialect(encoding="latin-1")),
    "gz": ("t.csv.gz", gn.Dialect(delimiter=";")),
    "xz": ("t.csv.xz", gn.Dialect()),
    "zst": ("t.tsv.zst", gn.Dialect()),
    "zip": ("t.zip", gn.Dialect(encoding="cp1252")),
    "all": ("t.CSV.XZ", gn.Dialect(";", ",", encoding="cp1250", quote="'")),
}
OF_LINES = WRITTEN.keys() - {"latin-1", "gz", "xz", "zst", "zip", "all"}


@pytest.mark.parametrize("kind", WRITTEN)
def test_what_is_accepted_is_parsed_in_the_same_records_everywhere(
    tmp_path, connection, kind, monkeypatch
):
    name, dialect = WRITTEN[kind]
    delimiter, quote = dialect.of(name_of_text(name))
    rng = random.Random(kind)
    outcomes = {"read": 0, "read by arrow": 0, "refused": 0, "of another length": 0}
    for _ in range(150):
        text, width = random_file(rng, delimiter, quote)
        content = text.encode(dialect.encoding)
        if dialect.encoding == "utf-8":
            content = rng.choice([b"", b"", codecs.BOM_UTF8]) + content
        monkeypatch.setattr(_csv, "_PIECE", rng.choice([1, 2, 3, 7, 2**19]))
        monkeypatch.setattr(plain, "_PIECE", rng.choice([1, 2, 3, 7, 2**19]))
        path = tmp_path / name
        packed(path, content)
        try:
            expected = records(text, delimiter, quote)
        except RefusedError:
            with pytest.raises(DataError):
                open_csv([str(path)], connection, dialect)
            outcomes["refused"] += 1
            continue
        if quote:
            again = csv.reader(
                io.StringIO(text, newline=""), delimiter=delimiter, quotechar=quote, strict=True
            )
            assert [[f or "" for f in r] for r in expected if r != [None]] == [
                r for r in again if r
            ]
        if expected[0] != [*"abc"[:width]]:
            continue
        # an empty line is a record where there is one column; delimiters after the last field
        # change nothing
        rows = [r for r in expected[1:] if width == 1 or r != [None]]
        rows = [
            tuple(r[:width]) if not any(f is not None for f in r[width:]) else tuple(r)
            for r in rows
        ]
        relation, lines = open_csv([str(path)], connection, dialect)
        monkeypatch.setattr(_lines, "BLOCK", rng.choice([2**7, 2**22]))
        if all(len(r) == width for r in rows):
            assert relation.fetchall() == rows, content
            if lines is not None:
                assert as_lines(lines, relation.columns) == rows, content
                outcomes["read by arrow"] += 1
            outcomes["read"] += 1
        else:
            with pytest.raises(duckdb.Error):
                relation.fetchall()
            if lines is not None:
                with pytest.raises(pa.ArrowInvalid):
                    as_lines(lines, relation.columns)
            outcomes["of another length"] += 1
    assert (outcomes["read by arrow"] > 0) is (kind in OF_LINES and _lines.IS_USABLE)
    assert outcomes["read"] > 30
    assert outcomes["refused"] > 10 or not quote
    assert outcomes["of another length"] > 0


@pytest.mark.parametrize("kind", [kind for kind in WRITTEN if kind not in ("tsv", "no quotes")])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_column_names_in_quotes_hold_line_ends_of_any_kind(tmp_path, connection, kind, end):
    name, dialect = WRITTEN[kind]
    if name == "t.tsv.zst":  # which has no quotes otherwise
        dialect = gn.Dialect(quote="'")
    delimiter, quote = dialect.of(name_of_text(name))
    marks = [b"", codecs.BOM_UTF8] if dialect.encoding == "utf-8" else [b""]
    for inner in ("\n", "\r", "\r\n", delimiter, 2 * quote):
        for header in ([f"é{inner}", "b"], ["a", f"{inner}é"], [f"{inner}é", f"ü{inner}ü"]):
            line = delimiter.join(f"{quote}{own}{quote}" for own in header)
            text = end.join([line, f"{quote}x\n{quote}{delimiter}1", f"y{delimiter}é", ""])
            for mark in marks:
                packed(tmp_path / name, mark + text.encode(dialect.encoding))
                relation, _ = open_csv([str(tmp_path / name)], connection, dialect)
                assert relation.columns == [own.replace(2 * quote, quote) for own in header]
                assert relation.fetchall() == [("x\n", "1"), ("y", "é")], (text, mark)


by_arrow = pytest.mark.skipif(not _lines.IS_USABLE, reason="duckdb reads all files")


def as_lines(lines, names):
    return [
        row
        for block in lines.batches(names)
        for row in zip(*(column.to_pylist() for column in block.columns), strict=True)
    ]


def name_of_text(name):
    return "t.csv" if name == "t.zip" else name.rpartition(".")[0] if name.count(".") > 1 else name


ODD = [
    "",
    '""',
    "NA",
    "NULL",
    "\\N",
    " ",
    " x ",
    "\t",
    "#x",
    "'x'",
    "\\",
    "x\0",
    "\0",
    "\x0b",
    "\x1a",
]
ODD += ["\u2028", "\ufeff", "é", "\U0010ffff", '"x ""y"""', '""""', '" "', "x" * 90]


@by_arrow
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("block", [2**8, 2**22])
def test_files_of_lines_are_the_same_to_arrow(tmp_path, connection, end, block, monkeypatch):
    """They are in any columns, in any order, from several files and in pieces of any size."""
    monkeypatch.setattr(_lines, "BLOCK", block)
    rng = random.Random(block)
    names, paths = ["a b", '"x.y"', ".z", "é[0]"], []
    for k in range(2):
        rows = [",".join(rng.choices([*ODD, "1", "22"], k=4)) for _ in range(200)]
        paths.append(str(tmp_path / f"{k}.csv"))
        header = end.join([",".join(names), *rows, ""])
        (tmp_path / f"{k}.csv").write_bytes(rng.choice([b"", codecs.BOM_UTF8]) + header.encode())
    relation, lines = open_csv(paths, connection)
    rows = relation.fetchall()
    assert len(rows) == 400
    for chosen in ([0, 1, 2, 3], [3, 1], [2], [1, 1, 0]):
        asked = [relation.columns[k] for k in chosen]
        assert as_lines(lines, asked) == [tuple(row[k] for k in chosen) for row in rows]


@pytest.mark.parametrize(
    "content",
    [
        b"a,b\n",
        b"a,b\nx,1",
        b'a,b\n"x",',  # arrow would read text of no characters in the last field
        b"a,b\n\nx,1\n",
        b"a\nx\n\n",
        b"a,b\nx,1,\n",
        b"a,b\n\nx,1,\n",
        b"a,b\n\r\nx,1,\r\n".replace(b"\n", b"\r\n").replace(b"\r\r", b"\r"),
        b"a,b\rx,1\r",
        b'a,b\n"x\ny",1\n',
        b'a,b\n"x,",1\n',
        b'"a\n",b\nx,1\n',
        b"a,b\n" + b"x" * 2**23 + b",1\n",
    ],
)
def test_other_files_are_left_to_duckdb(tmp_path, connection, content):
    (tmp_path / "t.csv").write_bytes(content)
    assert open_csv([str(tmp_path / "t.csv")], connection)[1] is None
    (tmp_path / "u.csv").write_bytes(content.partition(b"\n")[0] + b"\nx,1\n")
    if b"\na" not in content and b'"a' not in content and b"a," in content and b"\r" not in content:
        both = [str(tmp_path / name) for name in ("u.csv", "t.csv")]
        assert (open_csv(both[:1], connection)[1] is not None) is _lines.IS_USABLE
        assert open_csv(both, connection)[1] is None


@by_arrow
@pytest.mark.parametrize("damaged", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_invalid_bytes_are_refused_in_the_columns_that_are_read(tmp_path, connection, damaged):
    (tmp_path / "t.csv").write_bytes(b"a,b\nx,1\n" + damaged + b",2\n")
    relation, lines = open_csv([str(tmp_path / "t.csv")], connection)
    assert as_lines(lines, ["b"]) == relation.project("b").fetchall() == [("1",), ("2",)]
    with pytest.raises(duckdb.Error):
        relation.fetchall()
    with pytest.raises(pa.ArrowInvalid):
        as_lines(lines, ["a", "b"])


@by_arrow
def test_an_interrupt_ends_the_reading_under_way_and_no_later_one(
    tmp_path, connection, monkeypatch
):
    monkeypatch.setattr(_lines, "BLOCK", 2**6)
    (tmp_path / "t.csv").write_text("a\n" + "x\n" * 200, encoding="utf-8")
    _, lines = open_csv([str(tmp_path / "t.csv")], connection)
    reading = lines.batches(["a"])
    next(reading)
    lines.interrupt()
    with pytest.raises(KeyboardInterrupt):
        next(reading)
    assert as_lines(lines, ["a"]) == [("x",)] * 200


@pytest.mark.parametrize(("seed", "most"), [(0, 10), (1, 3000)])
def test_fields_of_several_lines_cross_the_pieces_that_threads_read(
    tmp_path, connection, seed, most
):
    """With several threads duckdb fails if a piece begins inside such a field."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, most, size=24_000_000 // most // 3)
    texts = ["u\nv" * int(n) for n in lengths]
    with open(tmp_path / "t.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("a", "b"), *((text, k) for k, text in enumerate(texts))])
    relation, _ = open_csv([str(tmp_path / "t.csv")], connection)
    assert relation.aggregate("count(*), sum(length(a))").fetchall() == [
        (len(texts), sum(map(len, texts)))
    ]


BIG = [2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 + 1, 10**30, 3, 0]


def written_as(number):
    """Forms of an integer, and texts that look like one."""
    forms = [
        str(number),
        f"{number}.0",
        f"{number}.",
        f" {number} ",
        f"{number}.000000000000000000",
        f"{number}e0",
    ]
    forms += [f"{number}00e-2", f"{'-' if number < 0 else '+'}00{abs(number)}"]
    others = [
        f"{number}.5",
        str(number + 1),
        f"{number}1",
        f"{number}e1",
        f"{number}.{'0' * 30}1",
        f"x{number}",
    ]
    return forms, [form for form in others if form not in ("00", "0e1")]


def counted_by_value(path, number, forms, others):
    path.write_text("a,b\n" + "".join(f"{form},1\n" for form in forms + others))
    attribute = gn.Attribute("a", [n for n in BIG if n != number + 1] + [7], other="rest")
    counts = counted(path, attribute)
    return (counts[attribute.categories.index(number)], counts[-1]) == (len(forms), len(others))


@pytest.mark.parametrize("number", BIG)
def test_integers_of_any_size_count_by_value(tmp_path, number):
    assert counted_by_value(tmp_path / "t.csv", number, *written_as(number))


@pytest.mark.parametrize("number", [2**53 + 1, -(2**63), 10**30])
def test_integers_alone_in_their_file_count_by_value(tmp_path, number):
    forms, others = written_as(number)
    for form in forms:
        assert counted_by_value(tmp_path / "t.csv", number, [form], []), form
    for form in others:
        assert counted_by_value(tmp_path / "t.csv", number, [], [form]), form
