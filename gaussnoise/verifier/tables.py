"""7. Deviations and 8. Estimates: checks of tables against the noisy integers.

Let [v_i, R_{T,i}] be the inverse of the matrix with rows (1, ..., 1) and C_{T,i}; v_i is the same
for all T. From noisy integers y_T, table S is x_S = Σ_{T⊆S} (⊗_{i∈T} R_{T,i}) y_T / (u s_T)
⊗_{i∈S∖T} v_i; see privacy.py for C_{T,i}, u and s_T.
"""

import csv
import itertools
import math
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from operator import mul
from pathlib import Path
from string import ascii_uppercase
from typing import Any, NamedTuple
from xml.etree import ElementTree

from .privacy import Attribute, Axes, Folder, Release, Stream, need, parsed
from .record import domain_of, texts

Units = dict[Axes, Fraction]  # by measured set T, or by (-1, *Q) for exact counts of Q
Matrix = Sequence[Sequence[int]]
NUMBERS = ["estimate", "standard_deviation", "low", "high"]
ONE = 1 << 256  # fixed-point unit: numbers x are stored as about x ONE
Z = 1.959963984540054  # the 0.975 quantile of a normal distribution
LINKS = "xl/_rels/workbook.xml.rels"
PLAIN = {"c None", "c v None", "c v b", "c is t inlineStr"}  # tags and type of a cell
LETTERS = [x + y for x in ["", *ascii_uppercase] for y in ascii_uppercase]  # names of columns


def subsets(S: Sequence[int]) -> Iterator[Axes]:
    """Yield all subsets of S, each in the order of S."""
    return (T for k in range(len(S) + 1) for T in itertools.combinations(S, k))


# ---- Matrices and sums over cells
def times(A: Matrix, B: Matrix) -> list[list[int]]:
    """Return A B for integer matrices, quickly: a row of B is packed into one large integer."""
    most, more = (max(abs(x) for row in M for x in row) for M in (A, B))
    w, n = (len(B) * most * more + more).bit_length() // 8 + 1, len(B[0])
    off, found = 1 << (8 * w - 1), []
    lift = int.from_bytes(off.to_bytes(w, "little") * n, "little")
    rows = (b"".join((x + off).to_bytes(w, "little") for x in row) for row in B)
    packed = [int.from_bytes(row, "little") - lift for row in rows]
    for row in A:
        whole, places = sum(map(mul, row, packed)) + lift, range(0, w * n, w)
        text = whole.to_bytes(w * n, "little")
        found.append([int.from_bytes(text[k : k + w], "little") - off for k in places])
    return found


def inverse_of(A: Matrix, one: int) -> list[list[int]]:
    """Return ``one`` times the inverse of an integer matrix, after a check of the product."""
    unit = [[one * (i == k) for k in range(len(A))] for i in range(len(A))]
    work = [[x * one for x in row] + own for row, own in zip(A, unit, strict=True)]
    for k in range(len(A)):
        best = max(range(k, len(A)), key=lambda i: abs(work[i][k]))
        work[k], work[best] = work[best], work[k]
        need(pivot := work[k][k], "a matrix leaves some direction unmeasured")
        row = work[k] = [(x * one) // pivot for x in work[k]]
        for i, other in enumerate(work):
            if i != k and (factor := other[k]):
                work[i] = [x - (factor * y // one) for x, y in zip(other, row, strict=True)]
    inverse = [row[len(A) :] for row in work]
    product = enumerate(times(A, inverse))
    far = max(abs(x - unit[i][k]) for i, row in product for k, x in enumerate(row))
    need(far < one >> 128, "a matrix cannot be inverted well")
    return inverse


class Cells(NamedTuple):
    """The cells of an attribute, its matrix C, and numbers computed from C."""

    labels: list[str]
    matrix: list[list[int]] | None
    square: int  # squared length of the longest column of C
    own: list[int]  # variances of its cells under unit noise on C, times ONE
    shares: list[int]  # v, the shares of a total in its cells, times ONE
    divisor: int  # divisor * C C^+ is an integer matrix; n if all cells are alike
    blur: float  # the factor by which inverting C enlarges rounding errors
    solved: bool  # whether C was inverted
    in_sets: dict[frozenset[str], Any]  # sets with another C, by names: these cells with it


def spread_of(rows: Matrix) -> tuple[list[int], list[int]]:
    """Return the squared norms of the rows of R, and v, for rows of [v, R]."""
    return [sum(x * x for x in row[1:]) // ONE for row in rows], [x for x, *_ in rows]


def cells_of(attribute: Attribute, labels: list[str], rows: object) -> Cells:
    """Return the cells of an attribute; ``rows`` is true if the record has its matrix C."""
    n, C, square = attribute.n, attribute.matrix, attribute.square
    if C is None or not rows:
        own, shares = [ONE * (n - 1) // (n**3 if n > 2 else 4)] * n, [ONE // n] * n
        return Cells(labels, C, square, own, shares, n, 2.0, False, {})
    inverse = inverse_of([[1] * n, *C], ONE)
    blur = math.prod(max(sum(map(abs, row)) for row in rows) for rows in (inverse, C)) / ONE
    return Cells(labels, C, square, *spread_of(inverse), 1, blur, n > 1, {})


def is_spread_alike(one: Cells, other: Cells) -> bool:
    """Return whether C u = 0 for both matrices, with one vector of integers u: v is the same."""
    top, rows = max(one.shares), [*(one.matrix or ()), *(other.matrix or ())]
    multiples = ([(2 * q * x + top) // (2 * top) for x in one.shares] for q in range(1, 1025))
    return any(all(sum(map(mul, row, u)) == 0 for row in rows) for u in multiples)


def along(values: list[Any], lead: int, own: Cells, measured: bool) -> list[Any]:
    """Return values with the axis after axes of size ``lead`` times C (``measured``) or summed."""
    found, n = [], len(own.labels)
    rest = len(values) // (lead * n)
    for start in range(0, len(values), n * rest):
        blocks = [values[start + k * rest : start + (k + 1) * rest] for k in range(n)]
        if measured and own.matrix is not None:
            for row in own.matrix:
                found += [sum(map(mul, row, column)) for column in zip(*blocks, strict=True)]
        else:
            total = [sum(column) for column in zip(*blocks, strict=True)]
            for block in blocks if measured else ():
                found += [n * x - t for x, t in zip(block, total, strict=True)]
            found += [] if measured else total
    return found


def variances(factors: list[dict[int, list[int]]], weights: dict[Axes, int]) -> list[int]:
    """Return ``Σ_K weights[K] ⊗_a factors[a][K_a]``, a number for every cell."""
    if not factors:
        return [weights.get((), 0)]
    found, own = list[int](), factors[0]
    for cell in range(len(own[0])):
        mixed = dict[Axes, int]()
        for K, w in weights.items():
            mixed[K[1:]] = mixed.get(K[1:], 0) + w * own[K[0]][cell] // ONE
        found += variances(factors[1:], mixed)
    return found


def dyadic(numbers: Iterable[float]) -> tuple[list[int], int]:
    """Return (integers, bits) such that the doubles are exactly integers / 2^bits."""
    ratios = [x.as_integer_ratio() for x in numbers]
    bits = max(below.bit_length() - 1 for _, below in ratios)
    return [above << (bits + 1 - below.bit_length()) for above, below in ratios], bits


# ---- Files
def is_read(name: str) -> bool:
    """Return whether this program can read the numbers of a file."""
    return name.endswith((".csv", ".jsonl", ".xlsx")) and not name.endswith("+sdmx.csv")


def sheet_of(book: zipfile.ZipFile, sheet: int, sheets: range) -> Iterator[list[str]]:
    """Check the parts of a workbook, and yield the rows of a sheet before its totals."""
    count = sum(name.startswith("xl/worksheets/") for name in book.namelist())
    own = [f"xl/worksheets/sheet{k}.xml" for k in range(1, count + 1)] + ["xl/styles.xml"]
    parts = ["[Content_Types].xml", "_rels/.rels", "xl/workbook.xml", LINKS, *own]
    need(count in sheets and sorted(book.namelist()) == sorted(parts), "the parts of a workbook")
    links = [(of.get("Id"), of.get("Target")) for of in ElementTree.fromstring(book.read(LINKS))]
    need(links == [(f"rId{k}", x[3:]) for k, x in enumerate(own, 1)], "the links of a workbook")
    code = re.compile("_x([0-9A-F]{4})_")  # a character that is not in XML
    text = book.read(own[sheet - 1])
    start, end = text.find(b"<sheetData>"), text.rfind(b"</sheetData>")
    odd = re.search(b"<!|&#", text) or re.search(b"hidden|merge", text[:start] + text[end:])
    need(
        not odd and text.count(b"<sheetData") == 1, "a sheet of a workbook shows less than it holds"
    )
    with book.open(own[sheet - 1]) as file:
        rows = (row for _, row in ElementTree.iterparse(file) if row.tag.endswith("}row"))
        tables = itertools.takewhile(lambda row: "customFormat" not in row.attrib, rows)
        for k, row in enumerate(tables, 1):
            cells = [("".join(cell.itertext()), cell.get("t")) for cell in row]
            placed = [cell.get("r") for cell in row] == [f"{x}{k}" for x in LETTERS[: len(row)]]
            kinds = [[x.tag.rpartition("}")[2] for x in c.iter()] + [str(c.get("t"))] for c in row]
            plain = {*map(" ".join, kinds)} <= PLAIN and all({*c.attrib} <= {*"rst"} for c in row)
            plain &= row.attrib == {"r": str(k)}
            need(placed and plain, "a row of a workbook is hidden or has other cells")
            found = [texts(x == "1") if kind == "b" else x for x, kind in cells]
            yield [code.sub(lambda own: chr(int(own[1], 16)), x) for x in found]
            row.clear()


def rows_of(path: Path, heads: list[str], sheet: int, sheets: range) -> Iterator[list[str]]:
    """Yield the rows of a table after its header, from CSV, JSON lines or a workbook."""
    if path.suffix == ".xlsx":
        marks = ["mark"] if heads[-4:] == NUMBERS else []
        with zipfile.ZipFile(path) as book:
            rows = sheet_of(book, sheet, sheets)
            need(next(rows) == heads + marks, f"the columns of {path.name}")
            for row in rows:
                if marks:
                    mark, (x, sd) = row.pop(), map(float, row[-4:-2])
                    level = sum(sd >= part * abs(x) for part in (0.1, 0.25, 0.5)) if sd else 0
                    need(mark == ("", "^", "*", "**")[level], f"a mark in {path.name}")
                yield row
        return
    with path.open(encoding="utf-8", newline="\n") as file:
        if path.suffix == ".jsonl":
            for row in map(parsed, file):
                need([*row] == heads, f"the columns of {path.name}")
                labels = len(heads) - (4 if heads[-4:] == NUMBERS else 13)
                said = [texts] * labels + [repr] * 13  # a text is no number: it has quotes
                yield ["" if x is None else f(x) for f, x in zip(said, row.values(), strict=False)]
        else:
            rows = csv.reader(file, strict=True)
            need(next(rows) == heads, f"the columns of {path.name}")
            yield from rows


class Tables:
    """The tables of a folder: the estimates read, and the integers computed from them."""

    alone = False  # whether measurements of one table only may be forgotten

    def __init__(self, folder: Folder, own: list[Cells], noise: Units) -> None:
        self.folder, self.names, self.own, self.noise = folder, folder.names, own, noise
        self.sizes = [len(a.labels) for a in own]
        self.known: dict[Axes, tuple[list[int], float]] = {}  # integers, and their rounding error
        self.estimates: dict[Axes, list[float]] = {}  # by table, if it was read
        self.tables: list[Axes] = []
        self.domain: list[dict[str, Any]] = []

    # ---- 7. Deviations
    def read(self, at: Path, entry: Any, noise: Units, close: float) -> tuple[list[float], float]:
        """Check labels, intervals and deviations; return the estimates, or [] if not read.

        Also return a bound on their rounding error. ``noise`` has the variance of each measurement,
        in units of counts; ``close`` is the relative tolerance.
        """
        S, name, found = self.folder.at(entry["attributes"]), entry["file"], []
        own, n = [self.own[i] for i in S], math.prod(self.sizes[i] for i in S)
        skip, other = self.folder.skip, not is_read(name)
        counted = isinstance(self.folder, Stream) or repr(entry["cells"]) == repr(n)
        need(counted, f"the number of cells of {name}")
        if other and n > 10**6:
            skip(f"numbers in {name}, and what the record says of them")
            return [], 0.0
        close = 1e-9 if any(a.solved for a in own) else close
        every = [math.sqrt(variance) for variance in self.squares(S, own, noise)]
        small = any(every) and min(every) <= 2.0**-96 * max(every)
        need(not small, "variances are too small to be checked")
        if other:
            self.check_entry(entry, every, close)
            skip("numbers in " + re.sub(r"[^/]+?(?=(\+sdmx)?\.\w+$)", "*", name, count=1))
            return [], 0.0
        answers = sum(x.get("file") == name for x in self.folder.record.get("workload", ()))
        heads, sheet = [self.names[i] for i in S] + NUMBERS, 2 + self.tables.index(S)
        first = 1 + len(self.tables) + answers  # and a sheet for each answer with means
        rows = rows_of(at / name, heads, sheet, range(first, first + answers + 1))
        cells = itertools.product(*[a.labels for a in own])
        for row, cell in zip(rows, cells, strict=True):
            x, sd, low, high = self.numbers(row[len(S) :], name)
            half = Z * sd
            need(tuple(row[: len(S)]) == cell, f"the labels of {name}")
            need((low, high) == (x - half, x + half), f"{name}: an interval is not x ± z sd")
            found.append((x, sd))
        if name.endswith(".xlsx"):
            skip(f"totals, answers, cover and styles of {name}")
        estimates, deviations = map(list, zip(*found, strict=True))
        agree = (math.isclose(x, y, rel_tol=close) for x, y in zip(deviations, every, strict=True))
        need(all(agree), f"a standard deviation in {name} is not that of its noise")
        self.check_entry(entry, deviations, 0.0)
        self.estimates[S] = estimates
        size = max(map(abs, estimates)) + 8 * max(deviations)
        return estimates, size * math.sqrt(len(estimates)) * 2.0 ** (len(S) / 2 - 51)

    @staticmethod
    def numbers(cells: list[str], name: str, ends: Sequence[int] = ()) -> list[float]:
        """Return cells as numbers, nan if empty; only those at ``ends`` may be infinite."""
        plain = [x for k, x in enumerate(cells) if k not in ends or x.strip("-") != "inf"]
        need({*"".join(plain)} <= {*"0123456789.e+-"}, f"a number of {name}")
        return [float(x or "nan") for x in cells]

    def squares(self, S: Axes, own: list[Cells], noise: Units) -> list[float]:
        """Return the variance of each cell of S, from the noise variances of the measurements."""
        inside = {T: noise[T] for T in subsets(S) if T in noise}
        top = max(inside.values(), default=Fraction(1))
        factors = [  # 0: of totals
            {0: [x * x // ONE for x in a.shares]} | {id(x): x.own for x in (a, *a.in_sets.values())}
            for a in own
        ]
        given, weights = dict(zip(S, own, strict=True)), dict[Axes, int]()
        for T, v in inside.items():
            used = {i: id(a) for i, a in self.measuring(T, given).items()}
            weights[tuple(used.get(i, 0) for i in S)] = int(ONE * v / top)
        return [variance / ONE * float(top) for variance in variances(factors, weights)]

    def check_entry(self, entry: Any, deviations: list[float], close: float) -> None:
        """Check a table's entry in the record; ``close`` is the tolerance of ``deviations``."""
        name, n, first = entry["file"], len(deviations), 0
        if name.endswith(".xlsx"):  # one sheet for each table, with one header line
            first = 1 + ((self.tables.index(self.folder.at(entry["attributes"])) + 1) << 20)
        several = "executors" in self.folder.record or len(self.tables) > 1000  # in one file
        first = max(0, entry["first_row"]) if several and name.endswith(".parquet") else first
        need(repr(entry["first_row"]) == repr(first), f"the first row of {name}")
        if isinstance(self.folder, Stream):
            stated, true = [entry["rms_standard_deviation"]], [math.hypot(*deviations) / n**0.5]
            close = close or 1e-12
        else:
            stated, true = entry["standard_deviation"], [min(deviations), max(deviations)]
            stated = stated if isinstance(stated, list) else [stated, stated]
        agree = (math.isclose(x, y, rel_tol=close) for x, y in zip(stated, true, strict=True))
        need(all(agree), f"the deviation stated of {name}")

    # ---- 8. Estimates
    def measuring(self, T: Axes, own: Any = ()) -> dict[int, Cells]:
        """Return the attributes of T with the matrices of its measurement; {} for exact counts."""
        names, own = frozenset(self.names[i] for i in T), own or self.own
        return {i: own[i].in_sets.get(names, own[i]) for i in T if T[0] != -1}

    def margin(self, S: Axes, values: list[Any], T: Axes) -> list[Any]:
        """Return sums over attributes outside T, times C_{T,i} for i in T unless T[0] is -1."""
        used = self.measuring(T)
        for k in reversed(range(len(S))):
            if T[:1] != (-1,) or S[k] not in T:
                lead = math.prod(self.sizes[i] for i in S[:k])
                values = along(values, lead, used.get(S[k], self.own[S[k]]), S[k] in T)
        return values

    def check_integers(self, name: str, S: Axes, table: Any, error: float, units: Units) -> None:
        """Check that a table is computed from integers, the same as those of other tables.

        ``table`` has (integers, bits): estimates are integers / 2^bits. ``units`` has the factor
        from counts to integers for each measured set T, or (-1, *Q) for exact counts.
        """
        for T, unit in units.items():
            if not {*T} - {-1} <= {*S}:
                continue
            of = self.measuring(T).values()
            exact = unit * math.prod(a.divisor for a in of)
            slack = error * math.sqrt(math.prod(a.square for a in of)) * float(exact)
            if slack > 0.25 and self.alone and sum({*T} <= {*R} for R in self.tables) == 1:
                self.known[T] = [], slack  # no other table can disagree
                continue
            found, above = self.margin(S, table[0], T), exact.numerator
            below = exact.denominator << table[1]
            whole = [(2 * x * above + below) // (2 * below) for x in found]
            slack += 4 * math.prod(a.blur for a in of) * 2.0**-53 * max(map(abs, whole))
            need(T[:1] != (-1,) or min(whole) >= 0, f"{name}: a public count is negative")
            if slack < 0.25:
                off = max(abs(x * above - z * below) for x, z in zip(found, whole, strict=True))
                need(off <= int(slack * below) + 1, f"{name} is not made of integers as stated")
            first, other = self.known.setdefault(T, (whole, slack))
            apart = 0 if max(slack, other) < 0.25 else math.ceil(slack + other) + 1
            agree = (abs(x - y) <= apart for x, y in zip(whole, first, strict=True))
            need(all(agree), f"{name} disagrees with another table on a margin")

    def say(self, slacks: list[float]) -> None:
        """Add a line on how many measurements were recovered as integers."""
        fine, say = sum(slack < 0.25 for slack in slacks), self.folder.say
        say("standard deviations and intervals of tables: of sigma, multipliers and matrices")
        say(f"{len(slacks)} measurements, {fine} as integers: the same from all tables")
        if fine < len(slacks):
            self.folder.skip(f"{len(slacks) - fine} measurements: doubles do not resolve integers")


class Measured(Tables):
    """The tables of a release or a stream, whose record lists the measurements."""

    def __init__(self, one: Release) -> None:
        domain, matrices = domain_of(one), one.noise.get("contrasts", {})
        pairs = zip(one.own, domain, strict=True)
        own = [cells_of(a, entry["labels"], entry["name"] in matrices) for a, entry in pairs]
        made = dict(zip(one.own, own, strict=True))
        for T, i, a in ((T, i, a) for T, used in one.used.items() for i, a in used.items()):
            if a not in made:
                made[a] = cells_of(a, own[i].labels, True)
                need(is_spread_alike(own[i], made[a]), f"{one.names[i]!r} spreads totals apart")
            if made[a] is not own[i]:
                own[i].in_sets[frozenset(one.names[k] for k in T)] = made[a]
        self.units = {T: Fraction(s * one.unit) / one.most for T, s in one.multipliers.items()}
        sigma = Fraction(one.noise["sigma"])
        super().__init__(one, own, {T: (sigma / u) ** 2 for T, u in self.units.items()})
        sets = () if one.moving else subsets(sorted(one.public))
        self.counts = {(-1, *Q): Fraction(1) for Q in sets}  # public counts are exact
        self.tables, self.domain = one.tables, domain


def check_release(one: Release, alone: bool) -> None:
    """Check all tables of a release, and keep their numbers in ``one.numbers``."""
    of = one.numbers = Measured(one)
    of.alone = alone
    for name in (x for x in sorted(one.record["files"]) if x.startswith("answers/")):
        one.skip(ascii(name))
    for entry, S in zip(one.record["marginals"], of.tables, strict=True):
        x, error = of.read(one.path, entry, of.noise, 1e-14)
        if x:
            of.check_integers(entry["file"], S, dyadic(x), error, of.units | of.counts)
    of.say([slack for _, slack in of.known.values()])
