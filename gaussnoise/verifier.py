"""The checks of published folders and saved answers, from files alone, in exact arithmetic.

``python verifier.py PATH`` prints them, and all that it leaves out; status 0 if all pass. Without
a path it checks the folder that it lies in. Of changes, ``PATH BEFORE AFTER`` names both releases.
"""

import ast
import csv
import datetime
import hashlib
import itertools
import json
import math
import re
import sys
import tomllib
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from operator import mul
from pathlib import Path
from struct import iter_unpack
from typing import Any, NamedTuple
from xml.etree import ElementTree

Axes = tuple[int, ...]  # positions of attributes
Units = dict[Axes, Fraction]  # a number for each measured set
Matrix = Sequence[Sequence[int]]
_NUMBERS = ["estimate", "standard_deviation", "low", "high"]
_CHANGES = [x + end for x in ("before", "after", "change") for end in ("", "_low", "_high")]
_CHANGES += ["change_standard_deviation", "per_cent", "per_cent_low", "per_cent_high"]
_LEVEL = {"columns": _NUMBERS[2:], "level": 0.95, "simultaneous": False}
_GIVEN = {"zCDP": ("zCDP", "rho"), "GDP": ("Gaussian DP", "mu"), "KL": ("KL privacy", "alpha")}
_ENDINGS = {"csv": ".csv", "parquet": ".parquet", "jsonl": ".jsonl", "xlsx": ".xlsx"}
_ENDINGS |= {"sdmx-csv": "+sdmx.csv", "json-stat": ".json"}
_ONE = 1 << 256  # the unit of numbers that are no short fractions
_USAGE = "usage: verifier.py [PATH], or of changes and both releases [PATH BEFORE AFTER]"
_CLOSE = 1 + Fraction(8, 2**53)  # a few roundings of doubles
_Z = 1.959963984540054  # the 0.975 quantile of a normal distribution


class Attribute(NamedTuple):
    """An attribute and the integer matrix C that measures it; None stands for n I - 1 1'."""

    labels: list[str]
    matrix: list[list[int]] | None
    square: int  # squared length of the longest column of C
    least: int  # least inner product of two columns of C
    own: list[int]  # variances of its cells under unit noise on C, times _ONE
    rest: list[int]  # squared shares of its cells in a total, times _ONE
    divisor: int  # C C^+ times it is an integer matrix; n where all cells are alike
    blur: float  # the factor by which inversion of C enlarges rounding


def need(holds: object, fault: str, kind: type[Exception] = ValueError) -> None:
    """Raise an error unless a statement holds."""
    if not holds:
        raise kind(fault)


def texts(value: Any) -> Any:
    """Return labels and ends of bins as texts, also in lists and objects."""
    if isinstance(value, dict | list):
        of = value.items() if isinstance(value, dict) else enumerate(value)
        found = {key: texts(x) for key, x in of}
        return found if isinstance(value, dict) else [*found.values()]
    value = value.isoformat() if isinstance(value, datetime.date) else value
    return str(value).lower() if value is True or value is False else str(value)


def moment(end: Any) -> Any:
    """Return an end of a bin as a number, or as a time, also where it is a date or a text."""
    if isinstance(end, int | float):
        return end
    return datetime.datetime.fromisoformat(texts(end))


def floats(value: Any) -> Any:
    """Return a number, or numbers in lists, as floats."""
    return [*map(floats, value)] if isinstance(value, list) else float(value)


def domain_of(schema: str) -> list[dict[str, Any]]:
    """Return what a record says about all attributes, from their schema."""
    found = []
    for name, given in tomllib.loads(schema)["attributes"].items():
        edges, clip, words = given.get("edges", []), given.get("clip"), texts(given)
        bins = [f"[{low}, {high})" for low, high in itertools.pairwise(words.get("edges", []))]
        bins = [x.replace("[-inf", "(-inf") for x in bins]
        bins = [*bins[:-1], *(x if "inf)" in x else f"{x[:-1]}]" for x in bins[-1:])]
        other = [words["other"]] if "other" in words else []
        cells = words.get("categories", bins) + other
        entry = {"name": name, "labels": cells}
        if edges:
            entry["edges"] = [str(float(end)) if type(end) is int else str(end) for end in edges]
        if clip:
            low, high = (f"weight at {float(end):.15g}" for end in clip)
            squares = isinstance(given.get("base"), dict) and 2 in given["base"]["degrees"]
            entry["labels"] = [low, *["weight between"] * squares, high, *other]
            entry["clip"] = clip
        if "unit" in given:  # without an upper end: the last cell stands for 2^20 units
            entry["labels"] = ["weight at 0", f"weight at {given['unit'] * 2.0**20:.15g}"]
            entry["unit"] = given["unit"]
        base = given.get("base")
        if isinstance(base, dict):  # TOML writes whole numbers without a point
            base = {k: floats(x) if k in ("about", "values") else x for k, x in base.items()}
        entry |= {"base": floats(base) if isinstance(base, list) else base} if base else {}
        if "groups" in given:
            places = [*map(moment, edges)]
            entry["groups"] = {
                level: {
                    own: cells[places.index(moment(of[0])) : places.index(moment(of[1]))]
                    if edges
                    else sorted(texts(of), key=cells.index)
                    for own, of in groups.items()
                }
                for level, groups in given["groups"].items()
            }
        found.append(entry)
    return found


def attribute_of(entry: dict[str, Any], rows: list[str] | None) -> Attribute:
    """Return an attribute from its entry in the record, and the rows of its matrix."""
    labels, n = entry["labels"], len(entry["labels"])
    need(n and len(set(labels)) == n, f"labels of {entry['name']!r}")
    if rows is None:
        own, rest = [_ONE * (n - 1) // (n**3 if n > 2 else 4)] * n, [_ONE // n**2] * n
        lengths = (n * n - n, -n) if n > 2 else (n - 1, 1 - n)
        return Attribute(labels, None if n > 2 else [[1, -1]], *lengths, own, rest, n, 2.0)
    C = [list(map(int, row.split(" "))) for row in rows]
    need(len(C) == n - 1 and {*map(len, C)} == {n}, f"the matrix of {entry['name']!r}")
    products = [x for row in times([*zip(*C, strict=True)], C) for x in row]
    inverse = inverse_of([[1] * n, *C], _ONE)
    own = [sum(x * x for x in row[1:]) // _ONE for row in inverse]
    rest = [row[0] * row[0] // _ONE for row in inverse]
    blur = math.prod(max(sum(map(abs, row)) for row in rows) for rows in (inverse, C)) / _ONE
    return Attribute(labels, C, max(products), min(products), own, rest, 1, blur)


def times(A: Matrix, B: Matrix) -> list[list[int]]:
    """Return the product of two integer matrices; a row of B is packed in one large integer."""
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
    """Return the inverse of an integer matrix times ``one``, after a check of their product."""
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


def along(values: list[Any], lead: int, own: Attribute, measured: bool) -> list[Any]:
    """Return C, or the sum, along the axis of an attribute that follows ``lead`` others."""
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


def variances(S: list[Attribute], weights: dict[Axes, int], axis: int = 0) -> list[int]:
    """Return ``Σ_T weight_T ⊗_{i∈T} own_i ⊗_{i∉T} rest_i`` of every cell of a table."""
    if axis == len(S):
        return [weights.get((), 0)]
    mine = {T[1:]: w for T, w in weights.items() if T[:1] == (axis,)}
    other = {T: w for T, w in weights.items() if T[:1] != (axis,)}
    found = []
    for e, v in zip(S[axis].own, S[axis].rest, strict=True):
        mixed = {T: (mine.get(T, 0) * e + other.get(T, 0) * v) // _ONE for T in {*mine, *other}}
        found += variances(S, mixed, axis + 1)
    return found


def dyadic(numbers: Iterable[float]) -> tuple[list[int], int]:
    """Return doubles as integers over a power of two, and its exponent."""
    ratios = [x.as_integer_ratio() for x in numbers]
    bits = max(below.bit_length() - 1 for _, below in ratios)
    return [above << (bits + 1 - below.bit_length()) for above, below in ratios], bits


def parsed(text: str | bytes) -> dict[str, Any]:
    """Return a JSON object, in which no key occurs twice."""
    pairs = list[list[Any]]()
    record = json.loads(text, object_pairs_hook=lambda x: pairs.append(x) or dict(x))
    need(all(len(dict(x)) == len(x) for x in pairs), "a key of the record occurs twice")
    return record


def rows_of(path: Path, heads: list[str], sheet: int) -> Iterator[list[str]]:
    """Yield the rows of a table below its heads, from CSV, JSON lines or a sheet of a workbook."""
    if path.suffix == ".xlsx":
        code = re.compile("_x([0-9A-F]{4})_")  # a character that is not in XML
        marks = ["mark"] if heads[-4:] == _NUMBERS else []
        with zipfile.ZipFile(path) as book, book.open(f"xl/worksheets/sheet{sheet}.xml") as file:
            rows = (row for _, row in ElementTree.iterparse(file) if row.tag.endswith("}row"))
            tables = (row for row in rows if "customFormat" not in row.attrib)  # without totals
            for k, row in enumerate(tables):
                cells = [("".join(cell.itertext()), cell.get("t")) for cell in row]
                plain = [texts(x == "1") if kind == "b" else x for x, kind in cells]
                found = [code.sub(lambda own: chr(int(own[1], 16)), x) for x in plain]
                need(k or found == heads + marks, f"the columns of {path.name}")
                if k and marks:
                    mark, (x, sd) = found.pop(), map(float, found[-4:-2])
                    level = sum(sd >= part * abs(x) for part in (0.1, 0.25, 0.5)) if sd else 0
                    need(mark == ("", "^", "*", "**")[level], f"a mark in {path.name}")
                if k:
                    yield found
                    row.clear()
        return
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            for row in map(parsed, file):
                need([*row] == heads, f"the columns of {path.name}")
                yield ["" if x is None else texts(x) for x in row.values()]
        else:
            rows = csv.reader(file, strict=True)
            need(next(rows) == heads, f"the columns of {path.name}")
            yield from rows


def is_read(name: str) -> bool:
    """Return whether the numbers of a file are read."""
    return name.endswith((".csv", ".jsonl", ".xlsx")) and not name.endswith("+sdmx.csv")


def digest_of(path: Path) -> str:
    """Return the sha256 of a file; nothing if there is none."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def include(whole: Any, name: str, part: Any) -> None:
    """Check a folder that another one is about, and say so under its name."""
    part.check()
    whole.checked += [f"{name}: {said}" for said in part.checked]
    whole.unchecked += [f"{name}: {left}" for left in part.unchecked]


def check_files(at: Path, listed: dict[str, str], tables: Iterable[str], free: str = "") -> None:
    """Compare the sha256 of every file, and find files that are missing or were added."""
    there = [p for p in at.rglob("*") if not p.is_dir()]
    need(not any(p.is_symlink() for p in at.rglob("*")), "a link in place of a file")
    names = {path.relative_to(at).as_posix() for path in there}
    names -= {"release.json", "changes.json", "signature.json"} - {*listed}
    need(names == set(listed), f"missing or added: {sorted(names ^ set(listed))}")
    files = {"summary.txt", "method.txt", "ddi.xml", *tables}
    files |= {f"{name}-metadata.json" for name in files if name.endswith(".csv")}
    more = {x for x in names - files if "".join(x.partition("/")[:2]) not in free.split()}
    need(files <= names and not more, f"not of a release: {sorted(files - names | more)}")
    for name, sha256 in listed.items():
        need(digest_of(at / name) == sha256, f"{name!r} has another sha256 than the record states")
    need("NOT PRIVATE" not in (at / "summary.txt").read_text("utf-8"), "a simulation")


class Tables:
    """Tables of counts with noise, the checks of them that passed, and all that has none."""

    alone = False  # whether a measurement that one table alone has need not be kept

    def __init__(self, path: Path, record: dict[str, Any], own: dict[str, Attribute]) -> None:
        self.path, self.record, self.names, self.own = path, record, [*own], [*own.values()]
        self.sizes = [len(a.labels) for a in self.own]
        self.checked, self.unchecked = list[str](), list[str]()
        self.say, self.skip = self.checked.append, self.unchecked.append
        self.known: dict[Axes, tuple[list[int], float]] = {}  # integers, and how exactly
        self.numbers: dict[Axes, list[float]] = {}  # the estimates of the tables that were read
        self.tables: list[Axes] = []
        if not isinstance(self, Stream):
            need(record["private"] is True, "a simulation, which is not private")
        for key in ("marginals", "measurements", "workload"):
            why = f"more than 1000 {key}, whose list is in Parquet"
            need(type(record.get(key, [])) is list, why, NotImplementedError)

    def at(self, names: Iterable[str]) -> Axes:
        """Return the positions of attributes."""
        return tuple(map(self.names.index, names))

    def read_table(
        self, at: Path, entry: Any, noise: Units, close: float
    ) -> tuple[list[float], float]:
        """Return estimates, once labels, intervals and deviations hold; none if they are not read.

        Also return the rounding of doubles: noise may have cancelled numbers larger than these.
        ``noise`` has the variance of each measurement, in counts.
        """
        S, name, found = self.at(entry["attributes"]), entry["file"], []
        own, n = [self.own[i] for i in S], math.prod(self.sizes[i] for i in S)
        other = not is_read(name)
        need(isinstance(self, Stream) or entry["cells"] == n, f"the number of cells of {name}")
        if other and n > 10**6:
            self.skip(f"numbers in {name}, and what the record says of them")
            return [], 0.0
        close = 1e-9 if any(a.divisor == 1 < len(a.labels) for a in own) else close
        every = [math.sqrt(variance) for variance in self.squares(S, own, noise)]
        small = any(every) and min(every) <= 2.0**-96 * max(every)
        need(not small, "variances are too small to be checked")
        if other:
            self.check_entry(entry, every, close)
            self.skip(f"numbers in {name}")
            return [], 0.0
        rows = rows_of(at / name, [self.names[i] for i in S] + _NUMBERS, 2 + self.tables.index(S))
        cells = itertools.product(*[a.labels for a in own])
        for row, cell in zip(rows, cells, strict=True):
            x, sd, low, high = map(float, row[len(S) :])
            half = _Z * sd
            need(tuple(row[: len(S)]) == cell, f"the labels of {name}")
            need((low, high) == (x - half, x + half), f"{name}: an interval is not x ± z sd")
            found.append((x, sd))
        if name.endswith(".xlsx"):
            self.skip(f"totals and other sheets in {name}")
        estimates, deviations = map(list, zip(*found, strict=True))
        agree = (math.isclose(x, y, rel_tol=close) for x, y in zip(deviations, every, strict=True))
        need(all(agree), f"a standard deviation in {name} is not that of its noise")
        self.check_entry(entry, deviations, 0.0)
        self.numbers[S] = estimates
        size = max(map(abs, estimates)) + 8 * max(deviations)
        return estimates, size * math.sqrt(len(estimates)) * 2.0 ** (len(S) / 2 - 51)

    def squares(self, S: Axes, own: list[Attribute], noise: Units) -> list[float]:
        """Return the variances of the cells of S, measured as stated, of this noise."""
        inside = {T: v for T, v in noise.items() if {*T} <= {*S}}
        top = max(inside.values(), default=Fraction(1))
        shares = {tuple(map(S.index, T)): int(_ONE * v / top) for T, v in inside.items()}
        return [variance / _ONE * float(top) for variance in variances(own, shares)]

    def check_entry(self, entry: Any, deviations: list[float], close: float) -> None:
        """Check what the record says of a table, given its deviations, known up to ``close``."""
        name, n, first = entry["file"], len(deviations), 0
        if name.endswith(".xlsx"):  # a sheet for each table, in their order, under one line
            first = 1 + ((self.tables.index(self.at(entry["attributes"])) + 1) << 20)
        packed = name.endswith(".parquet") and "executors" in self.record
        need(packed or entry["first_row"] == first, f"the first row of {name}")
        if isinstance(self, Stream):
            stated, true = [entry["rms_standard_deviation"]], [math.hypot(*deviations) / n**0.5]
            close = close or 1e-12
        else:
            stated, true = entry["standard_deviation"], [min(deviations), max(deviations)]
            stated = stated if isinstance(stated, list) else [stated, stated]
        agree = (math.isclose(x, y, rel_tol=close) for x, y in zip(stated, true, strict=True))
        need(all(agree), f"the deviation stated of {name}")

    def margin(self, S: Axes, values: list[Any], T: Axes) -> list[Any]:
        """Return ``⊗_{i∈T} C_i Σ x``, summed over the attributes outside T; Q for (-1, *Q)."""
        for k in reversed(range(len(S))):
            if T[:1] != (-1,) or S[k] not in T:
                lead = math.prod(self.sizes[i] for i in S[:k])
                values = along(values, lead, self.own[S[k]], S[k] in T)
        return values

    def check_integers(
        self, name: str, S: Axes, table: tuple[list[int], int], error: float, units: Units
    ) -> None:
        """Check that a table, over 2^bits, is made of integers, the same as in other tables.

        ``units``: integers in a count, for measured sets T, and for (-1, *Q) with exact counts.
        """
        for T, unit in units.items():
            if not {*T} - {-1} <= {*S}:
                continue
            of = [self.own[i] for i in T if T[0] != -1]
            exact = unit * math.prod(a.divisor for a in of)
            slack = error * math.sqrt(math.prod(a.square for a in of)) * float(exact)
            if slack > 0.25 and self.alone and sum({*T} <= {*R} for R in self.tables) == 1:
                self.known[T] = [], slack
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


class Planned(Tables):
    """Tables of which the record has the plan: a release, or a stream."""

    growth = 1  # the squared sensitivity over ticks

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        self.plan, self.noise = plan, noise = record["plan"], record["noise"]
        self.domain, matrices = domain_of(plan["schema"]), noise.get("contrasts", {})
        own = {e["name"]: attribute_of(e, matrices.get(e["name"])) for e in self.domain}
        super().__init__(path, record, own)
        need({*matrices} <= {*own}, "matrices of other attributes")
        measured = [(self.at(of["attributes"]), of["multiplier"]) for of in record["measurements"]]
        self.multipliers = {T: int(s) for T, s in measured}
        need([(T, str(s)) for T, s in self.multipliers.items() if s > 0] == measured, "multipliers")
        need(all(len({*T}) == len(T) for T in self.multipliers), "names twice")
        self.public, self.weight = sorted(self.at(plan.get("public", ()))), plan.get("weight")
        most = Fraction(self.weight["most"] if self.weight else 1)
        self.unit = noise.get("unit", {"units_of_a_row": 1})["units_of_a_row"]
        need(self.weight == noise.get("unit", {}).get("weight") and most > 0, "weight")
        self.units = {T: Fraction(s * self.unit) / most for T, s in self.multipliers.items()}
        self.variance = {T: (Fraction(noise["sigma"]) / u) ** 2 for T, u in self.units.items()}
        self.moving = record["neighbors"] == "add-remove" or record["person"] is not None
        sizes = () if self.moving else range(len(self.public) + 1)
        sets = (Q for k in sizes for Q in itertools.combinations(self.public, k))
        self.counts = {(-1, *Q): Fraction(1) for Q in sets}  # exact, where rows are exchanged
        given, usual = plan["workload"], {e["name"]: e.get("base", "identity") for e in self.domain}
        given = itertools.combinations(own, given) if type(given) is int else given
        terms = [t if isinstance(t, dict) else dict.fromkeys(t) for t in given]
        places = [sorted(t, key=self.names.index) for t in terms]
        pairs = zip(terms, places, strict=True)
        self.terms = [{n: usual[n] if t[n] is None else t[n] for n in names} for t, names in pairs]
        self.asked = [self.at(term) for term in self.terms]

    def unit_text(self) -> str:
        plan, k = self.plan, self.record["rows_per_person"]
        rows = f"{k} {'record' if plan.get('per_person') else 'row'}{' is' if k == 1 else 's are'}"
        if plan["person"] is None:
            return "one row" if k == 1 else f"one person of at most {k} rows"
        return f"one person (column {plan['person']!r}), of whom at most {rows} counted"

    def check_request(self, weights: list[float], bases: bool, more: dict[str, Any]) -> None:
        """Compare what the record states twice, and the digest of the request."""
        record, plan, unit = self.record, self.plan, self.unit_text()
        k, relation = record["rows_per_person"], record["neighbors"]
        keys = ("neighbors", "rows_per_person", "person", "per_person")
        same = all(record.get(key) == plan.get(key) for key in keys)
        need(same and type(k) is int and k > 0 and relation in ("add-remove", "replace"), "unit")
        need(record["privacy_unit"] == unit, f"privacy_unit is not {unit!r}")
        need(relation == "add-remove" or not self.weight, "weights where rows are exchanged")
        need(plan["weights"] == (None if plan["targets"] else weights), "weights of the plan")
        late = ["person", "per_person", "public", "ranges", "title", "source"]
        w = self.weight and {"weight": [self.weight["column"], f"{self.weight['most']:.9g}"]}
        request = (w or {}) | {key: plan[key] for key in late if plan.get(key) is not None}
        request |= {"schema": plan["schema"], "marginals": self.asked}
        request |= {"weights": [f"{weight:.9g}" for weight in weights], "p": plan["p"]}
        request |= {"neighbors": relation, "rho": f"{record['privacy']['rho']:.9g}"}
        request |= {key: plan["privacy"][key] for key in ["scale"] if key in plan["privacy"]}
        request |= {"rows_per_person": k} | more
        note, wholes = {"catch-alls": "in no query that takes cells in order"}, [request]
        if bases:
            values = {"bases": [list(term.values()) for term in self.terms]}
            wholes = [values | request, values | note | request]
        digests = [hashlib.sha256(json.dumps(whole).encode()).hexdigest() for whole in wholes]
        need(record["request_sha256"] in digests, "request_sha256 is not that of the request")
        self.say(f"{relation}, {unit}: all that the record states twice agrees")

    def grown(self) -> dict[int, Fraction]:
        """Return the scale of each number without an upper end, over the end of its last cell."""
        used = sorted({i for S in self.tables for i in S if "unit" in self.domain[i]})
        scales = self.plan["privacy"].get("scale", {})
        need(all(self.names[i] in scales for i in used), "a number that no budget grows with")
        k = self.record["rows_per_person"]  # a person's rows cost k^2 rho_of_one_row
        ends = {i: Fraction(str(self.domain[i]["unit"])) * 2**20 * k for i in used}
        return {i: Fraction(str(scales[self.names[i]])) / end for i, end in ends.items()}

    def moved(self) -> Fraction | int:
        """Return the largest squared change of all ``s_T ⊗ C_i`` between neighbours."""
        if scales := self.grown():
            return self.paid(scales)
        # ⟨x, y⟩ = Σ s_T² Π m_i is affine in each m_i: least where m_i is an end of its interval
        squares = {T: s * s for T, s in self.multipliers.items()}
        total = sum(s * math.prod(self.own[i].square for i in T) for T, s in squares.items())
        if self.record["neighbors"] == "add-remove":
            return total
        free = sorted({i for T in squares for i in T} - {*self.public})
        need(len(squares) << len(free) < 10**7, "too many attributes", NotImplementedError)
        products = []
        for differ in itertools.product((False, True), repeat=len(free)):
            D = {i for i, own in zip(free, differ, strict=True) if own}
            ends = [a.least if i in D else a.square for i, a in enumerate(self.own)]
            products.append(sum(s * math.prod(ends[i] for i in T) for T, s in squares.items()))
        return max(2 * (total - min(products)), total * self.moving)

    def paid(self, scales: dict[int, Fraction]) -> Fraction | int:
        """Return the least m with ``a + Σ b_j u_j² <= m (1 + Σ (u_j/t_j)²)`` for all u_j."""
        plan, sums = self.plan, dict[int | None, int]()
        kind = plan["neighbors"], plan.get("per_person"), self.weight
        need(kind == ("add-remove", None, None), "the budget")
        apart = all(self.own[i].matrix == [[0, 1]] for i in scales)
        need(apart and self.unit == 1 << 20, "sums are not measured apart from counts")
        for T, s in self.multipliers.items():
            number = [i for i in T if i in scales]
            need(len(number) < 2, "a product of numbers without an upper end")
            length, key = s * s * math.prod(self.own[i].square for i in T), [*number, None][0]
            sums[key] = sums.get(key, 0) + length
        most = max(b * (1 if i is None else scales[i] ** 2) for i, b in sums.items())
        rows = f"{plan['rows_per_person']} rows, of any sums"
        rows = rows if plan["rows_per_person"] > 1 else "every row, of any numbers"
        self.say(f"(1 + sum of squares) {float(most):.6g}: pays for {rows}")
        return most

    def check_privacy(self) -> None:
        """Check the measured sets, the sensitivity of their integers, and the ρ that was spent."""
        wide = [[i for i in S if self.sizes[i] > 1] for S in self.tables]
        inside = {T for S in wide for k in range(len(S) + 1) for T in itertools.combinations(S, k)}
        wanted = {T for T in inside | {()} if not {*T} <= {*self.public} or (self.moving and not T)}
        need({*self.multipliers} == wanted and not (self.public and self.moving), "measured sets")
        summed = {"clip", "unit"}
        parts = self.weight or any(summed & {*self.domain[i]} for S in self.tables for i in S)
        need(str(self.unit) in [str(1 << b) for b in (range(10, 21) if parts else [0])], "units")
        noise, budget, k = self.noise, self.record["privacy"], self.record["rows_per_person"]
        stated, exact = noise["integer_sensitivity_squared"], math.ceil(self.moved() * self.unit**2)
        exact *= self.growth
        need(type(stated) is int and stated == exact, f"the squared sensitivity is {exact}")
        self.say(f"squared sensitivity {stated}: of integer matrices, over all pairs of rows")
        sigma, rho = Fraction(noise["sigma"]), Fraction(noise["rho_of_one_row"])
        need(stated <= 2 * rho * sigma**2 <= stated * _CLOSE and sigma >= 0, "rho_of_one_row")
        ranges = [Fraction(own["rho"]) for own in self.plan.get("ranges", [])]
        least, charged = rho * k * k + sum(ranges), Fraction(self.record["rho"])
        need(least <= charged <= least * _CLOSE and min([*ranges, 1]) >= 0, "rho")
        need(charged <= Fraction(budget["rho"]), "more was spent than the budget")
        self.say(f"rho = {self.record['rho']!r}: {k}^2 sensitivity^2 / (2 sigma^2), and ranges")
        self.unchecked += ["the noise with which ranges were found"] if ranges else []
        asked = {key: x for key, x in self.plan["privacy"].items() if key != "definition"}
        kind, known = self.plan["privacy"]["definition"], (*_GIVEN, "ApproxDP", "TV", "PerRecord")
        need(kind in known, f"the guarantee {kind!r:.60}", NotImplementedError)
        if kind == "PerRecord":
            stated = {"definition": "zCDP", "rho": budget["rho"]}
            same = asked == {"privacy": stated, "scale": budget["scales"]}
            need(same and budget["definition"] == "per-record zCDP", "the budgets of rows")
            return self.say(f"PerRecord {asked}: rho of rows of zeros, which grows")
        need(asked.items() <= budget.items(), "the budget is not that of the plan")
        if kind in _GIVEN:
            need((budget["definition"], *asked) == _GIVEN[kind], "another definition of privacy")
            (given,) = map(Fraction, asked.values())
            most = given**2 / 2 if kind == "GDP" else given
            need(given > 0 and Fraction(budget["rho"]) <= most, f"rho is too large for {kind}")
            self.say(f"{kind} {asked}: its Gaussians have this rho")
        else:
            self.skip(f"that rho = {budget['rho']!r} implies {kind} {asked}")

    def say_integers(self, slacks: list[float]) -> None:
        fine = sum(slack < 0.25 for slack in slacks)
        self.say("standard deviations and intervals of tables: of sigma, multipliers and matrices")
        self.say(f"{len(slacks)} measurements, {fine} as integers: the same from all tables")
        if fine < len(slacks):
            self.skip(f"{len(slacks) - fine} measurements: doubles do not resolve integers")


class Release(Planned):
    """A release of tables."""

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        super().__init__(path, record)
        self.tables = [self.at(entry["attributes"]) for entry in record["marginals"]]
        need(all(len({*S}) == len(S) for S in self.tables), "names twice")
        need(len({*map(frozenset, self.tables)}) == len(self.tables), "a table is listed twice")

    def check(self) -> None:
        record, files = self.record, {entry["file"] for entry in self.record["marginals"]}
        free = "release.png noise.npz answers/ verifier.py"
        check_files(self.path, record["files"], files, free)
        self.say(f"{len(record['files'])} files: each has the stated sha256, and there is no other")
        for name in (x for x in sorted(record["files"]) if x.startswith("answers/")):
            self.skip(ascii(name))
        for entry, own in itertools.zip_longest(record["domain"], self.domain):
            words = {key: texts(entry[key]) for key in ("labels", "groups") if key in entry}
            need(entry | words == own, f"{own['name']!r} is not that of the schema")
        relation = record["neighbors"]
        need(record["neighbors_meaning"].startswith(f"{relation} ("), "neighbors_meaning")
        terms = record.get("workload", record["marginals"])
        asked = [self.at(term.get("bases", term.get("attributes"))) for term in terms]
        need({*self.asked} == {*self.tables}, "the workload asks for other tables")
        need(asked == self.asked, "the plan's workload")
        cells = [dict.fromkeys(m, "identity") for m in self.terms]
        bases = [t.get("bases", m) for t, m in zip(terms, cells, strict=True)]
        need(self.terms == bases, "the bases")
        self.check_request([term["weight"] for term in terms], "workload" in record, {})
        self.check_privacy()
        need(record["intervals"] == _LEVEL, "intervals")
        for entry, S in zip(record["marginals"], self.tables, strict=True):
            estimates, error = self.read_table(self.path, entry, self.variance, 1e-14)
            if estimates:
                units = self.units | self.counts
                self.check_integers(entry["file"], S, dyadic(estimates), error, units)
        self.say_integers([slack for _, slack in self.known.values()])
        self.check_optimality()

    def check_optimality(self) -> None:
        """Check both ends of the bracket, where the record has the witness of the lower one."""
        stated, p, entries = self.record["optimality"], self.plan["p"], self.record["marginals"]
        upper, lower, gap = stated["gamma"], stated["gamma_lower"], stated["certified_gap"]
        need(0 <= lower <= upper and gap == (upper / lower - 1 if lower else 0.0), "gamma")
        solved = any(a.divisor == 1 < len(a.labels) for a in self.own)
        if p != "2.0" or solved or "workload" in self.record:
            return self.skip("the bracket of gamma, for this workload or norm")
        given = [Fraction(entry["weight"]) for entry in entries]
        top = max(map(abs, given)) or Fraction(1)  # squares of small weights leave the doubles
        squares = {S: (w / top) ** 2 for S, w in zip(self.tables, given, strict=True)}
        cells = {S: math.prod(self.sizes[i] for i in S) for S in self.tables}
        above = {T: [S for S in squares if {*T} <= {*S}] for T in self.multipliers}
        losses = {T: sum(squares[S] / cells[S] for S in of) for T, of in above.items()}
        own = [Fraction(n**2 * a.own[0], _ONE) for n, a in zip(self.sizes, self.own, strict=True)]
        parts = {T: loss * math.prod(own[i] for i in T) for T, loss in losses.items()}
        noise = sum(part / self.multipliers[T] ** 2 for T, part in parts.items())
        reached = math.sqrt(noise * self.noise["integer_sensitivity_squared"] / self.unit**2)
        reached *= float(top)
        need(math.isclose(upper, reached, rel_tol=1e-4), "gamma is not that of the multipliers")
        self.say(f"gamma = {upper!r}: the multipliers reach {reached!r} at unit sensitivity")
        number = losses[()] if () in losses and self.record["neighbors"] == "replace" else 0
        if self.record["neighbors"] == "replace":
            if (listed := stated.get("witness")) is None:
                return self.skip("gamma_lower, whose witness is not in the record")
            pairs = [({*self.at(x["differing"])}, Fraction(x["weight"])) for x in listed]
            whole = sum((w for _, w in pairs), Fraction(0))
            proper = all(w >= 0 and not D & {*self.public} for D, w in pairs)
            need(proper and abs(whole - 1) < 1e-9, "the witness")
            ratios = [Fraction(-1, max(n - 1, 1)) for n in self.sizes]
            for T in losses:
                alike = sum(w * math.prod(ratios[i] for i in D & {*T}) for D, w in pairs)
                losses[T] *= 2 - 2 * alike / whole
        ranks = {T: math.prod(self.sizes[i] - 1 for i in T) for T in losses}
        traces = sum(ranks[T] * math.isqrt(int(loss * _ONE**2)) for T, loss in losses.items())
        proven = math.hypot(float(Fraction(traces, _ONE)), math.sqrt(number)) * float(top)
        need(lower <= proven * (1 + 2.0**-51), f"gamma_lower is not proven, but {proven!r}")
        need(proven <= upper * (1 + 1e-12), "gamma is less than its proven lower end")
        self.say(f"gamma_lower = {lower!r}: uniform on all rows, or on pairs that differ as stated")


def largest_change(C: Matrix, k: int, apart: int) -> int:
    """Return the largest ``Σ_{i,j∈π} |(C'C)_ij|`` over sets π of at most k ticks, each two apart.

    Of millions of sets it is an upper bound.
    """
    n, X = len(C), [[abs(x) for x in row] for row in times([*zip(*C, strict=True)], C)]
    few = k**2 * sum(math.comb(n - j * (apart - 1), j + 1) for j in range(k)) < 2**23 or k < 3
    most, left = 0, [(0, 0, [X[i][i] for i in range(n)], k)] * few
    while left:
        first, value, gains, more = left.pop()  # the next tick at the earliest; what each adds
        most = max(most, value + max(gains[first:], default=0))
        for i in range(first, n) if more > 1 else ():
            if i >= first + apart and (n - 1 - i) // apart + 1 < more:
                break  # there is room for one tick more before it
            both = [g + 2 * x for g, x in zip(gains, X[i], strict=True)]
            left.append((i + apart, value + gains[i], both, more - 1))
    if few:
        return most

    def largest(weights: list[int], k: int) -> int:
        before = [0] * (n + 1)
        for _ in range(k):
            best = [0] * (n + 1)
            for j, weight in enumerate(weights, 1):
                best[j] = max(best[j - 1], before[max(j - apart, 0)] + weight)
            before = best
        return before[n]

    bounds = []  # each pair is counted at both of its ticks, or at the later, or at the earlier
    for early, late in ((1, 1), (2, 0), (0, 2)):
        shares = [
            [x * (early if j < i else late) * (abs(i - j) >= apart) for j, x in enumerate(row)]
            for i, row in enumerate(X)
        ]
        bounds.append(largest([X[i][i] + largest(r, k - 1) for i, r in enumerate(shares)], k))
    return min(bounds)


class Stream(Planned):
    """A stream: its plan, and the ticks that were published."""

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        noise = record["noise"]
        noise = noise | {"rho_of_one_row": noise["rho_of_one_row_per_report"]}
        same = {"rows_per_person": record["rows_per_person_and_tick"], "noise": noise}
        same |= {"rho": record["rho_of_all_ticks"], "person": record.get("person")}
        super().__init__(path, record | same)
        need({"public", "weight", "ranges", "per_person"}.isdisjoint(self.plan), "no stream's plan")
        need(not self.plan["targets"], "accuracy targets of a stream", NotImplementedError)
        self.growth, self.ticks = noise["time_sensitivity_squared"], record["ticks"]
        n, self.apart, reports = (self.ticks[key] for key in ("n", "apart", "reports"))
        need(all(type(x) is int and x > 0 for x in (n, self.apart, reports)), "ticks")
        self.reports, self.tables = min(reports, (n - 1) // self.apart + 1), [*{*self.asked}]
        self.rows = [list(map(int, row.split(" "))) for row in record["time_matrix"]]
        need([*map(len, self.rows)] == [*range(1, n + 1)], "time_matrix is not lower triangular")
        need(all(row[-1] > 0 for row in self.rows), "a tick is not measured")
        self.periods: list[dict[Axes, Any]] = []  # integers over 2^bits
        self.totals, self.slacks = dict[Axes, list[float]](), list[float]()

    def unit_text(self) -> str:
        one, k, rows = super().unit_text(), self.reports, self.record["rows_per_person"]
        if self.plan["person"] is not None:
            one = f"{one} in each of at most {k} ticks"
            return f"{one}, each two at least {self.apart} apart" if self.apart > 1 else one
        if k == 1:
            return one if rows == 1 else f"{one}, in one tick"
        each = "" if rows == 1 else f" of at most {rows} rows each"
        ticks = f"{self.apart} ticks apart or more" if self.apart > 1 else "in different ticks"
        return f"one person of at most {k} reports{each}, {ticks}"

    def taking_part(self) -> str:
        """Return who takes part when, in words."""
        person, k, rows = self.plan["person"], self.reports, self.record["rows_per_person"]
        one = "one row" if rows == 1 else f"one person's at most {rows} rows"
        one = one if person is None else f"all rows of one value of {person!r}"
        other = "for another" if rows == 1 else "for as many others"
        change = "more or less" if self.moving else f"exchanged {other}"
        apart = f", each two at least {self.apart} ticks apart" if k > 1 < self.apart else ""
        if self.ticks.get("enforced") is True and person is not None:
            return f"{one} {change}, in any ticks; a registry lets at most {k} count{apart}"
        if k == 1:
            return f"{one} {change}, in one tick"
        one = one if person is None else "any number of rows"
        return f"one person with {one} {change} in each of at most {k} ticks{apart}"

    def check(self) -> None:
        record, there = self.record, {p.name for p in self.path.iterdir()}
        names = {"stream.json", "ticks", "private", "verifier.py", "signature.json"}
        need(there <= names, "files of no stream")
        need(record["neighbors"] == "add-remove" or record["person"] is None, "exchanged persons")
        need(record["participation"] == self.taking_part(), f"not {self.taking_part()!r}")
        bases = any(x != "identity" for term in self.terms for x in term.values())
        self.check_request(self.plan["weights"], bases, {"ticks": self.ticks})
        C = [[*row, *[0] * (len(self.rows) - len(row))] for row in self.rows]
        least = largest_change(C, self.reports, self.apart)
        need(type(self.growth) is int and self.growth >= least, f"ticks' sensitivity is {least}")
        self.say(f"squared sensitivity {self.growth} of ticks, {least} at least: over all reports")
        self.check_privacy()
        folders = sorted(p.name for p in (self.path / "ticks").iterdir())
        need(folders == [f"{t + 1:04d}" for t in range(len(C))][: len(folders)], "a tick missing")
        need(record["table_format"] in _ENDINGS and len(record["stream"]) == 32, "table_format")
        for t in range(1, len(folders) + 1):
            self.check_tick(t, self.path / "ticks" / f"{t:04d}")
        self.say(f"{len(folders)} ticks from 1 on: their files, and that tables are added up")
        self.say_integers(self.slacks)
        self.skip("time_lower and certified_gap, which have no witness; ledger")
        if "private" in there:
            self.skip("private/: never publish it")

    def check_tick(self, t: int, at: Path) -> None:
        """Check the record, the files and the tables of one tick."""
        own, stream = parsed((at / "release.json").read_bytes()), self.record
        need(own["format"] == "gaussnoise.stream-tick/1" and own["tick"] == t, f"no tick {t}")
        need(own["private"] is True, "a simulation, which is not private")
        keys = "stream ticks neighbors privacy_unit participation privacy rho_of_all_ticks person "
        keys += "rows_per_person_and_tick rows_counted epsilon_delta_of_all_ticks on_outside "
        same = all(own.get(key) == stream.get(key) for key in [*keys.split(), "disclaimers"])
        need(same, f"tick {t} is of another stream")
        meant = (f"all rows of ticks 1 to {t}", f"the rows of tick {t} alone")
        need((own["cumulative_meaning"], own["period_meaning"]) == meant, f"meaning of tick {t}")
        need(own["intervals"] == _LEVEL, "intervals")
        need(len(bytes.fromhex(own["measurements_sha256"])) == 32, "measurements_sha256")
        files = [f"{what}/{e['file']}" for what in ("period", "cumulative") for e in own[what]]
        check_files(at, own["files"], files)
        self.known, now = {}, dict[Axes, Any]()
        self.periods.append(now)
        for what in ("period", "cumulative"):
            weights, row = [what == "cumulative"] * (t - 1) + [True], [0] * t
            for j in reversed(range(t)):  # row times the time matrix is weights
                rest = sum(row[i] * self.rows[i][j] for i in range(j + 1, t))
                row[j] = (_ONE * weights[j] - rest) // self.rows[j][j]
            spread = Fraction(sum(x * x for x in row), _ONE**2)
            noise = {T: v * spread for T, v in self.variance.items()}
            listed = [self.at(entry["attributes"]) for entry in own[what]]
            need(sorted(listed) == sorted(self.tables), f"other tables in tick {t}")
            self.tables = listed
            for entry, S in zip(own[what], listed, strict=True):
                name = f"{what}/{entry['file']} of tick {t}"
                need(name.split(" ")[0].endswith(_ENDINGS[stream["table_format"]]), name)
                x, error = self.read_table(at / what, entry, noise, 1e-9)
                if not x:
                    continue
                if what == "period":
                    before = self.totals.get(S, [0.0] * len(x)) if t > 1 else x
                    self.totals[S] = [a + b for a, b in zip(before, x, strict=True)] if t > 1 else x
                    now[S] = *dyadic(x), error
                    self.check_integers(name, S, now[S][:2], now[S][2], self.counts)
                    self.check_integers(name, S, *self.combined(S), self.units)
                need(what == "period" or x == self.totals[S], f"{name} is not the sum of ticks")
        self.slacks += [slack for T, (_, slack) in self.known.items() if T[:1] != (-1,)]

    def combined(self, S: Axes) -> tuple[tuple[list[int], int], float]:
        """Return the combination of the ticks so far that got noise, and its rounding."""
        row, ticks = self.rows[len(self.periods) - 1], [own[S] for own in self.periods]
        most = max(bits for _, bits, _ in ticks)
        pairs = [*zip(row, ticks, strict=True)]
        parts = [[c * x << most - b for x in own] for c, (own, b, _) in pairs]
        error = math.fsum(abs(c) * e for c, (*_, e) in pairs)
        return ([sum(column) for column in zip(*parts, strict=True)], most), error


class Combined(Tables):
    """Tables combined from releases of the same rows, which are in the folder too."""

    def __init__(self, path: Path, record: dict[str, Any]) -> None:
        self.sources, known, used = list[Release](), dict[str, Attribute](), dict[str, Attribute]()
        for source in record["combined_from"]:
            at = path / source["folder"]
            need(at.parent == path / "releases", "a release in another place")
            inner = parsed((at / "release.json").read_bytes())
            need(digest_of(at / "release.json") == source["sha256"], "the sha256 of a release")
            need(inner["format"] == "gaussnoise.tables/3", "no release", NotImplementedError)
            self.sources.append(one := Release(at, inner))
            asked = {name for entry in inner["marginals"] for name in entry["attributes"]}
            for name, own in zip(one.names, one.own, strict=True):
                known.setdefault(name, own)
                same = name not in asked or used.setdefault(name, own) == own
                need(same, f"{name!r} is measured differently")
        super().__init__(path, record, known | used)
        entries = {entry["name"]: entry for one in self.sources for entry in one.domain}
        self.domain = [entries[name] for name in self.names]

    def check(self) -> None:
        record, rho, one = self.record, Fraction(0), self.sources[0]
        files = {entry["file"] for entry in record["marginals"]}
        check_files(self.path, record["files"], files, "release.png answers/ releases/ verifier.py")
        there = {p.name for p in (self.path / "releases").iterdir()}
        need(there == {one.path.name for one in self.sources}, "releases that are not combined")
        need(len(self.sources) == len(there) > 1, "a release twice")
        for one, source in zip(self.sources, record["combined_from"], strict=True):
            include(self, one.path.name, one)
            keys = ("neighbors", "neighbors_meaning", "rows_per_person", "person")
            need(all(one.record[key] == record[key] for key in keys), "another unit of privacy")
            first, keys = self.sources[0].plan, ("public", "per_person", "weight")
            need(all(one.plan.get(key) == first.get(key) for key in keys), "other rows or counts")
            marginals = [entry["attributes"] for entry in one.record["marginals"]]
            stated = (source["marginals"], source["rho"], source["title"])
            need(stated == (marginals, one.record["rho"], one.plan.get("title")), "a release")
            rho += Fraction(source["rho"])
        need(rho <= Fraction(record["rho"]) <= rho * _CLOSE, "rho is not the sum of all")
        need(record["intervals"] == _LEVEL, "intervals")
        left = [line for line in self.unchecked if "numbers in " in line]
        left += [f"numbers in {name}" for name in sorted(files) if not is_read(name)]
        hint = "; hint: gaussnoise convert FOLDER --format csv"
        need(not left, f"{', '.join(left)}{hint}", NotImplementedError)
        means, noise, blurs = self.means()
        self.variance = noise
        self.tables = [self.at(entry["attributes"]) for entry in record["marginals"]]
        wanted = {self.at(e["attributes"]) for one in self.sources for e in one.record["marginals"]}
        need({*self.tables} == wanted and len(self.tables) == len(wanted), "other tables")
        for entry, S in zip(record["marginals"], self.tables, strict=True):
            estimates, error = self.read_table(self.path, entry, noise, 1e-12)
            values, bits = dyadic(estimates)
            for T in (T for T in means if {*T} - {-1} <= {*S}):
                of = [self.own[i] for i in T if T[0] != -1]
                slack = 4 * error * math.sqrt(math.prod(a.square for a in of)) + blurs[T]
                slack += math.prod(a.blur for a in of) * 2.0**-49 * float(max(map(abs, means[T])))
                found = (Fraction(x, 1 << bits) for x in self.margin(S, values, T))
                agree = (abs(x - y) <= slack for x, y in zip(found, means[T], strict=True))
                need(all(agree), f"{entry['file']} is not the mean of the releases")
        self.say(f"rho = {record['rho']!r}: the sum of all releases'")
        self.say(f"{len(means)} measurements: means of the releases', weighted by their precision")
        self.skip("whether the releases are of the same rows: agreement, id, weight; answers/")

    def means(self) -> tuple[dict[Axes, list[Fraction]], Units, dict[Axes, float]]:
        """Return the mean of every measurement, its variance, and how exactly it is known."""
        every, means, noise, blurs = dict[Axes, list[Any]](), {}, dict[Axes, Fraction](), {}
        for one in self.sources:
            for T, (whole, slack) in one.known.items():
                exact, unit = T[:1] == (-1,), (one.units | one.counts)[T]
                axes = self.at(one.names[i] for i in T[exact:])
                need([*axes] == sorted(axes), "attributes in another order", NotImplementedError)
                unit *= math.prod(one.own[i].divisor for i in T if not exact)
                blur = float((Fraction(slack) + 1) / unit) if slack >= 0.25 else 0.0
                share = Fraction(1) if exact else 1 / one.variance[T]
                counts = [x / unit for x in whole]
                every.setdefault((-1,) * exact + axes, []).append((counts, share, blur))
        for T, found in every.items():
            seen, exact = [counts for counts, *_ in found], T[:1] == (-1,)
            new = all(x not in seen[:k] for k, x in enumerate(seen))
            need(exact or new, "the same noise twice")
            need(not exact or all(x == seen[0] for x in seen), "releases of other public counts")
            whole = sum((share for _, share, _ in found), Fraction(0))
            parts = [[x * share / whole for x in counts] for counts, share, _ in found]
            means[T] = [sum(column) for column in zip(*parts, strict=True)]
            noise |= {} if exact else {T: 1 / whole}
            blurs[T] = max(blur for *_, blur in found)
        return means, noise, blurs


class Figure(NamedTuple):
    """An estimate, its deviation, the ends of its interval, and those of the number itself."""

    x: float
    sd: float
    low: float
    high: float
    least: float = -math.inf
    most: float = math.inf
    is_mean: bool = False  # then its interval is cut

    def within(self) -> tuple[float, float]:
        """Return the ends of the interval within those of the number; it holds the estimate."""
        if math.isnan(self.x):
            return self.least, self.most
        low, high, x = (min(max(end, self.least), self.most) for end in self[2:4] + self[:1])
        return min(low, x), max(high, x)


def normal(x: float, sd: float, least: float) -> Figure:
    """Return an estimate with noise of this deviation, of a number that is at least this."""
    return Figure(x, sd, x - _Z * sd, x + _Z * sd, least)


def quotient(x: float, y: float, vx: float, vxy: float, vy: float) -> tuple[float, float]:
    """Return the ends of an interval of x / y: r where x - r y is near zero (Fieller 1954)."""
    a, b, c = y * y - _Z**2 * vy, x * y - _Z**2 * vxy, x * x - _Z**2 * vx
    if not (a > 0 and y > 0):
        return -math.inf, math.inf
    half = math.sqrt(max(b * b - a * c, 0.0)) / a
    return b / a - half, b / a + half


def row_of(before: Figure, after: Figure) -> list[float]:
    """Return both numbers, the change and its deviation, and the per cent; nan if not known."""
    (b, s, low, high, *of), (a, t, down, up, *to) = before, after
    shown = [own.within() if own.is_mean else own[2:4] for own in (before, after)]
    reach = math.hypot(a - down, high - b), math.hypot(up - a, b - low)  # Zou & Donner 2008
    change = a - b, math.hypot(s, t), a - b - reach[0], a - b + reach[1]
    ends = Figure(*change, to[0] - of[1], to[1] - of[0]).within()
    share, quotients = a / b - 1 if b > 0 else math.nan, quotient(a, b, t * t, 0.0, s * s)
    least = -1.0 if min(of[0], to[0]) >= 0 else -math.inf
    parts = Figure(share, math.nan, quotients[0] - 1, quotients[1] - 1, least).within()
    parts = share, *parts
    per_cent = [100 * x if all(map(math.isfinite, parts)) else math.nan for x in parts]
    return [b, *shown[0], a, *shown[1], change[0], *ends, change[1], *per_cent]


def weighed(own: Attribute, rows: list[list[int]]) -> Attribute:
    """Return an attribute whose cells are sums, with these weights, of those of another one."""
    n = len(own.labels)
    inverse = own.matrix and inverse_of([[1] * n, *own.matrix], _ONE)
    if inverse is None:
        shares = ([_ONE * (n * (i == k) - 1) // n**2 for k in range(n)] for i in range(n))
        inverse = [[_ONE // n, *row] for row in shares]
    sums = times(rows, inverse)
    squares = [[x * x // _ONE for x in row] for row in sums]
    parts = [sum(row[1:]) for row in squares], [row[0] for row in squares]
    return own._replace(matrix=rows, own=parts[0], rest=parts[1])


def total_of(d: float, n: float, noise: Any, ends: Any, least: float) -> Figure:
    """Return the sum of n values between both ends, where d more are at the upper one."""
    (vd, vnd, vn), half, middle = noise, (ends[1] - ends[0]) / 2, ends[0] / 2 + ends[1] / 2
    variance = middle**2 * vn + 2 * middle * half * vnd + half**2 * vd
    least = 0.0 if least >= 0 else -math.inf
    return normal(middle * n + half * d, math.sqrt(max(variance, 0.0)), least)


def mean_of(d: float, n: float, noise: Any, ends: Any, least: float, most: float) -> Figure:
    """Return the mean of n values between both ends, where d more are at the upper one."""
    (vd, vnd, vn), half, middle = noise, (ends[1] - ends[0]) / 2, ends[0] / 2 + ends[1] / 2
    low, high = (middle + half * end for end in quotient(d, n, *noise))
    if not n > 0:
        return Figure(math.nan, math.nan, low, high, least, most, is_mean=True)
    variance = vd - 2 * (d / n) * vnd + (d / n) ** 2 * vn
    x = min(max(middle + half * (d / n), least), most)
    sd = half * math.sqrt(max(variance, 0.0)) / n
    return Figure(x, sd, min(low, x), max(high, x), least, most, is_mean=True)


def figures(of: Release | Combined, kind: str, names: list[str], number: str | None) -> Any:
    """Return counts, or sums or means of a number, by labels; None if no table has them."""
    axes = of.at(names if number is None else [*names, number])
    S = next((S for S in of.numbers if {*axes} <= {*S}), None)
    if S is None:
        return None
    T = tuple(i for i in S if i in axes)  # in the order of the table
    values, own = of.margin(S, of.numbers[S], (-1, *T)), [of.own[i] for i in T]
    cells = itertools.product(*[a.labels for a in own])
    keys = [tuple(cell[T.index(i)] for i in axes) for cell in cells]
    if number is None:
        pairs = zip(values, of.squares(T, own, of.variance), strict=True)
        return dict(zip(keys, (normal(x, math.sqrt(v), 0.0) for x, v in pairs), strict=True))
    k, entry = T.index(axes[-1]), of.domain[axes[-1]]
    ends = entry.get("clip") or (0.0, entry["unit"] * 2.0**20)
    least, most = ends[0], ends[1] if "clip" in entry else math.inf
    n, size = len(own[k].labels), 3 if "weight between" in own[k].labels[1:2] else 2
    count, above = [1] * size, [-1, *[0] * (size - 2), 1]  # above: at the upper end less the lower
    rows = [row + [0] * (n - size) for row in (count, above, [0, *count[2:], 2])]  # and both
    lead = math.prod(len(a.labels) for a in own[:k])
    rest, own[k] = len(values) // (lead * n), weighed(own[k], rows)
    parts, found = along(values, lead, own[k], True), dict[Any, Figure]()
    squares = of.squares(T, own, of.variance)
    for place in range(lead * rest):
        block, j = divmod(place, rest)
        three = slice(3 * block * rest + j, 3 * (block + 1) * rest, rest)
        (y, x, _), (vy, vx, both) = parts[three], squares[three]
        noise, key = (vx, (both - vx - vy) / 2, vy), keys[n * block * rest + j][:-1]
        mean = mean_of(x, y, noise, ends, least, most)
        found[key] = total_of(x, y, noise, ends, least) if kind == "sum" else mean
    return found


class Changes:
    """Changes from one release to another, and both, if they are given or lie beside them."""

    def __init__(self, path: Path, record: dict[str, Any], given: Sequence[Path]) -> None:
        self.path, self.record, self.releases = path, record, dict[str, Any]()
        self.checked, self.unchecked = list[str](), list[str]()
        self.say, self.skip = self.checked.append, self.unchecked.append
        for when in ("before", "after"):
            name, sha256 = record[when]["name"], record[when]["sha256"]
            usual = [path.resolve().parent / name] if name and Path(name).name == name else []
            found = [one for one in given or usual if digest_of(one / "release.json") == sha256]
            need(
                found or not given,
                f"none of the given folders is the release {when}, by its sha256",
            )
            if found:
                self.releases[when] = opened(found[0])
            else:
                self.skip(f"the release {when}, {name!r}: give its folder, and it is checked")

    def check(self) -> None:
        record, tables = self.record, self.record["tables"]
        need(record["private"] is True, "a simulation, which is not private")
        files = {name for entry in tables for name in entry["files"].values()}
        check_files(
            self.path, record["files"], files | {"report.html", "changes.png"}, "verifier.py"
        )
        self.say(f"{len(record['files'])} files: each has the stated sha256, and there is no other")
        need(record["intervals"] == _LEVEL, "intervals")
        keys = ("neighbors", "rows_per_person", "person", "rho")
        for when, release in self.releases.items():
            include(self, when, release)
            same = all(record[when][key] == release.record[key] for key in keys)
            need(same, f"what is said of the release {when}")
        sides, whole = [record["before"], record["after"]], record["rho_of_both"]
        rho = sum((Fraction(side["rho"]) for side in sides), Fraction(0))
        alike = all(sides[0][key] == sides[1][key] for key in keys[:3])
        need(whole is None or (alike and rho <= Fraction(whole) <= rho * _CLOSE), "rho_of_both")
        self.say(f"rho_of_both = {whole!r}: " + ("the sum of both" if whole else "no sum"))
        for k, entry in enumerate(tables):
            self.check_table(k, entry)
        read = [entry for entry in tables if is_read(entry["files"]["changes"])]
        self.say(f"{len(read)} tables: later less earlier, per cent, and intervals from both")
        self.unchecked += ["population_means"] if record["population_means"] else []
        self.skip("names, notes, findings, tables that are left out")

    def check_table(self, k: int, entry: dict[str, Any]) -> None:
        """Check the numbers of a table, and that they are of both releases."""
        kind, names, number = (entry[key] for key in ("statistic", "attributes", "number"))
        how = "to first order (Zou & Donner 2008)" if kind == "mean" else "exact"
        need(kind in ("count", "answer", "sum", "mean"), "the statistic")
        need(entry["intervals"] == f"intervals {how}", "what is said of intervals")
        need((number is None) == (kind in ("count", "answer")), "the number of a table")
        name = entry["files"]["changes"]
        if not is_read(name):
            return self.skip(f"numbers in {', '.join(entry['files'].values())}")
        sides = [
            figures(of, kind, names, number) for of in self.releases.values() if kind != "answer"
        ]
        both = len(sides) == 2 and None not in sides
        if not both:
            own = ", and what follows from their noise" if kind == "mean" else ""
            self.skip(f"that labels and numbers of {entry['name']!a} are of the releases{own}")
        heads = [*names]
        for column in _CHANGES:
            while column in heads:
                column += "_"
            heads.append(column)
        seen = set[tuple[str, ...]]()
        for row in rows_of(self.path / name, heads, k + 2):
            cell, found = tuple(row[: len(names)]), [float(x or "nan") for x in row[len(names) :]]
            exact = found[6] == found[3] - found[0] or math.isnan(found[6])
            need(exact, f"{name}: a change is not the number after less that before")
            need(cell not in seen, f"a row of {name} occurs twice")
            seen.add(cell)
            need(not both or all(cell in side for side in sides), f"the labels of {name}")
            least = 0.0 if kind != "answer" and not found[11] < -100 else -math.inf
            given = (normal(x, (high - x) / _Z, least) for x, high in (found[0:3:2], found[3:6:2]))
            pair = [side[cell] for side in sides] if both else [*given]
            known = [own for own in pair if not math.isnan(own.x)]
            noise, size = (sum(abs(own[k]) for own in known) for k in (1, 0))
            blur = 1e-13 / max(noise / (size or 1.0), 2.0**-25)  # rounding of per cents
            for place, (x, y) in enumerate(zip(found, row_of(*pair), strict=True)):
                close = 1e-9 * noise + 1e-12 * size if place < 10 else 1e-9 * (1 + abs(y)) + blur
                agree = abs(x - y) <= close or x == y or (math.isnan(x) and math.isnan(y))
                vain = not both and kind == "mean" and place not in (0, 3, 6)
                need(agree or vain, f"{name}: {_CHANGES[place]} of {', '.join(cell) or 'all'}")
        need(not both or len(seen) == len(sides[0]) == len(sides[1]), f"the rows of {name}")


def arrays_of(path: Path) -> dict[str, Any]:
    """Return the text, the numbers, or the rows of numbers of every array in a file of numpy."""
    found = dict[str, Any]()
    with zipfile.ZipFile(path) as file:
        need(len({*file.namelist()}) == len(file.namelist()), "an array twice")
        size = sum(member.file_size for member in file.infolist())
        need(size < 2**28, "too large for exact arithmetic", NotImplementedError)
        for name in file.namelist():
            data = file.read(name)
            need(data[:8] == b"\x93NUMPY\x01\x00" and name.endswith(".npy"), f"the array {name}")
            start = 10 + int.from_bytes(data[8:10], "little")
            kind, fortran, shape = ast.literal_eval(data[10:start].decode()).values()
            if kind.startswith("<U"):
                found[name[:-4]] = data[start:].decode("utf-32-le")
                continue
            flat = [x for (x,) in iter_unpack({"<f8": "<d", "<i8": "<q"}[kind], data[start:])]
            need(len(flat) == math.prod(shape) and all(map(math.isfinite, flat)), f"{name}")
            n, m = (*shape, 0)[:2] if shape else (1, 0)
            rows = [flat[k::n] if fortran else flat[k * m : k * m + m] for k in range(n)]
            found[name[:-4]] = rows if len(shape) == 2 else flat
    return found


def nuclear(A: Matrix) -> int:
    """Return a lower bound on the nuclear norm of a matrix, ``<Q, A>`` where ``‖Q‖ <= 1``."""
    if len(A) > len(A[0]):
        A = [*zip(*A, strict=True)]
    rows, columns = (max(sum(map(abs, row)) for row in M) for M in (A, [*zip(*A, strict=True)]))
    size, bits, best = math.isqrt(rows * columns) + 1, 64, 0
    Q, unit = [[(x << bits) // size for x in row] for row in A], 3 << 2 * bits
    most = (1 << bits) + 4 * len(A) * len(A[0])  # singular values: one, and roundings
    for _ in range(80):  # Q <- (3 - Q Q') Q / 2 drives singular values up to 1, and not above
        best = max(best, sum(sum(map(mul, a, q)) for a, q in zip(A, Q, strict=True)) // most)
        T = times(Q, [*zip(*Q, strict=True)])
        far = (abs(x - unit // 3 * (i == k)) for i, row in enumerate(T) for k, x in enumerate(row))
        if max(far) < unit >> 40:
            break
        T = [[unit * (i == k) - x for k, x in enumerate(row)] for i, row in enumerate(T)]
        T = [[x >> bits + 1 for x in row] for row in T]
        Q = [[x >> bits for x in row] for row in times(T, Q)]
    return best


class Answer:
    """A saved answer: noise for listed points, and the measure which proves that none is less."""

    def __init__(self, path: Path) -> None:
        self.checked, self.unchecked = list[str](), ["status, method, steps, trace"]
        self.arrays = given = arrays_of(path)
        self.header = header = parsed(given.pop("header"))
        need(header["format"] == "gaussnoise.noise/4", "another format", NotImplementedError)
        kind, self.relation = header["domain"]["type"], header["neighbors"]
        need(kind == "FiniteSet", f"{kind} has no list of points", NotImplementedError)
        need({"factor", "certificate_rows"} <= {*given}, "another proof", NotImplementedError)
        names = "domain.array0 factor certificate_points certificate_weights coordinate_weights "
        names += "certificate_rows trace " + "center " * ("center" not in header)
        names += "policy_edges" * (self.relation == "policy graph")
        need({*given} == {*names.split()}, "other arrays")
        need(header["domain"]["fields"] == {"points": {"array": "array0"}}, "the domain")
        names = "p neighbors shifted gamma gamma_lower sensitivity_squared method steps status "
        need({*header} - {"center"} == {*names.split(), "domain", "scale", "format"}, "the header")
        need(header.get("center", "zeros") == "zeros" and type(header["shifted"]) is bool, "center")
        relations = ("replace",) if header["shifted"] else ("replace", "add-remove", "policy graph")
        need(self.relation in relations, "neighbors")
        self.p, self.shifted = float(header["p"]), header["shifted"]
        X, L = given["domain.array0"], given["factor"]
        self.n, self.d, self.r = len(X), len(X[0]), len(L[0])
        center = given.get("center", [0.0] * self.d)
        need(len(L) == len(center) == self.d and self.p >= 2 and header["scale"] > 0, "sizes")
        need(self.n * self.d * self.r < 10**8, "too many points", NotImplementedError)
        need(self.shifted or not any(center), "a center without shift")
        flat, self.bits = dyadic([x for row in [*X, center] for x in row])
        size = self.d
        rows = [flat[k * size : (k + 1) * size] for k in range(self.n + 1)]
        self.points, self.center = rows[:-1], rows[-1]  # over 2^bits

    def check(self) -> None:
        self.check_upper()
        self.check_lower()

    def edges(self) -> set[tuple[int, int]]:
        """Return the pairs of points that a policy graph joins."""
        found = {(min(e), max(e)) for e in self.arrays.get("policy_edges", ())}
        need(min(map(min, found), default=0) >= 0, "edges")
        return found

    def check_upper(self) -> None:
        """Check that every change x is scale L b with ‖b‖ <= 1, and the deviations of L L'."""
        header, scale, points = self.header, Fraction(self.header["scale"]), self.points
        start = self.center if self.shifted else points[0]
        if self.relation != "add-remove":  # differences do not change
            points = [[x - y for x, y in zip(row, start, strict=True)] for row in points]
        if self.relation == "policy graph":
            ends = ((points[i], points[j]) for i, j in self.edges())
            points = [[x - y for x, y in zip(*pair, strict=True)] for pair in ends]
        flat, bits = dyadic([x for row in self.arrays["factor"] for x in row])
        L = [flat[k * self.r : (k + 1) * self.r] for k in range(self.d)]
        columns = [*zip(*L, strict=True)]
        G, unit = times(columns, L), 1 << (256 + 2 * bits)  # L'L over 4^bits
        H = inverse_of([[x << 128 >> 2 * bits for x in row] for row in G], 1 << 384)  # over 2^256
        product = enumerate(times(G, H))
        off = ((x - unit * (i == k)) ** 2 for i, row in product for k, x in enumerate(row))
        need(4 * sum(off) < unit**2, "noise that leaves a direction out")
        norm = 2 * math.isqrt(sum(x * x for row in H for x in row)) + 2  # a bound on (L'L)^-1
        fine = 200 + self.bits  # b = (L'L)^-1 L'x over 2^fine
        B = [[x >> (56 + bits) for x in row] for row in times(times(points, L), H)]
        back, up = times(B, columns), 200 + bits
        pairs = [zip(x, y, strict=True) for x, y in zip(points, back, strict=True)]
        rest = [[(x << up) - y for x, y in pair] for pair in pairs]  # x - L b over 2^(fine + bits)
        missed = (math.isqrt(sum(x * x for x in row)) + 1 for row in times(rest, L))
        extra = [(x * norm >> (256 + 2 * bits)) + 1 for x in missed]  # errors in b
        outside = [max(map(abs, column)) for column in zip(*rest, strict=True)]
        sizes = [max(map(abs, column)) << up for column in zip(*points, strict=True)]
        inside = all(x << 40 <= size for x, size in zip(outside, sizes, strict=True))
        need(inside, "noise that leaves a direction out")
        square = times(B, [*zip(*B, strict=True)])
        alone = [math.isqrt(square[i][i]) + 1 + x for i, x in enumerate(extra)]
        both = [
            math.isqrt(square[i][i] + square[j][j] - 2 * square[i][j]) + 1 + extra[i] + extra[j]
            for i, j in itertools.combinations(range(len(B)), 2)
            if self.relation == "replace"
        ]
        longest = max(both if self.relation == "replace" and not self.shifted else alone)
        need(longest**2 <= scale**2 * 4**fine, "too little noise: a change is not covered")
        if self.shifted:
            squared = Fraction(max(both) ** 2, 4**fine) / scale**2
            ratio = Fraction(header["sensitivity_squared"]) / squared
            need(1 <= ratio <= 1 + Fraction(1, 10**11), "too little noise: the sensitivity")
        else:
            need(header["sensitivity_squared"] == 1.0, "the sensitivity")
        heights = [Fraction(sum(x * x for x in row), 4**bits) * scale**2 for row in L]
        top, power = max(heights), self.p / 2
        whole = top if power == math.inf else sum(heights)
        if 1 < power < math.inf:
            parts = math.fsum(float(h / top) ** power for h in heights)
            whole = top * Fraction(parts ** (1 / power))
        lost = Fraction(2 * sum(outside) * (self.d > self.r), 1 << (fine + bits))
        reached = math.sqrt(whole) + float(lost)
        need(math.isclose(header["gamma"], reached, rel_tol=1e-11), f"gamma is {reached!r}")
        need(header["gamma"] >= reached * (1 - 2.0**-50), f"gamma is at least {reached!r}")
        rounded = "" if self.d == self.r else ", up to rounding outside its span"
        self.checked.append(f"{len(both or alone)} changes, {self.relation}: covered{rounded}")
        self.checked.append(f"gamma = {header['gamma']!r}: the deviations are {reached!r}")

    def check_lower(self) -> None:
        """Check the measure on changes, and the nuclear norm that it proves."""
        X, stated, p = self.arrays["domain.array0"], self.header["gamma_lower"], self.p
        rows, given, mass = (self.arrays[f"certificate_{x}"] for x in ("rows", "points", "weights"))
        w, single, values = self.arrays["coordinate_weights"], self.shifted, list[list[int]]()
        edges = self.edges()
        single |= self.relation == "add-remove"
        need(len(rows) == len(given) == len(mass) and len(w) == self.d, "the measure")
        need(min(mass) > 0 and min(w) >= 0 and min(map(min, rows)) >= 0, "the measure")
        need({*map(len, rows)} == {2 - single}, "a measure on other changes")
        for (i, *rest), point in zip(rows, given, strict=True):
            one, own, j = X[i], self.points[i], (rest or [i])[0]
            if rest:
                edge = i == j or (min(i, j), max(i, j)) in edges
                need(self.relation == "replace" or edge, "no edge of the graph")
                one = [x - y for x, y in zip(one, X[j], strict=True)]
                own = [x - y for x, y in zip(own, self.points[j], strict=True)]
            need(one == point, "a measure on other points")
            values.append(own)
        # roots of weights are rounded down: a smaller measure proves less
        whole, power = sum(map(Fraction, mass)), p / (p - 2) if 2 < p < math.inf else 1.0
        need(abs(whole - 1) < 1e-9, "the weights of the measure")
        roots = [math.isqrt(int(Fraction(x) / whole * 2**200)) for x in mass]
        length = max(w) if p == 2 else math.fsum(x**power for x in w) ** (1 / power)
        need(length <= 1 + 2.0**-46, "the weights of coordinates")
        own = [math.isqrt(int(Fraction(x) * (1 - Fraction(1, 2**45)) * 2**200)) for x in w]
        unit = 1 << (200 + self.bits)
        if self.shifted:  # about their mean, and so a change of the centre proves no more
            squares = [x * x for x in roots]
            means = [sum(map(mul, squares, column)) for column in zip(*values, strict=True)]
            whole = sum(squares)
            values = [[whole * x - y for x, y in zip(row, means, strict=True)] for row in values]
            unit *= whole
        pairs = zip(roots, values, strict=True)
        A = [[m * x * v for x, v in zip(row, own, strict=True)] for m, row in pairs]
        down = max(max(abs(x) for row in A for x in row).bit_length() - 120, 0)
        found = nuclear([[x >> down for x in row] for row in A]) - 2 * len(A) * self.d
        proven = float(Fraction(max(found, 0) << down, unit))
        need(stated <= proven * (1 + 2.0**-44), f"gamma_lower is not proven, but {proven!r}")
        need(math.isclose(stated, proven, rel_tol=5e-11), f"gamma_lower is {proven!r}")
        need(stated <= self.header["gamma"], "gamma is less than its lower end")
        self.checked.append(f"gamma_lower = {stated!r}: a nuclear norm, {proven!r} at least")


def opened(path: Path, *releases: Path) -> Any:
    """Return what a folder or a file holds, to be checked; ``releases`` are those of changes."""
    if path.is_file():
        return Answer(path)
    names = ("stream.json", "changes.json", "release.json")
    name = next((x for x in names if (path / x).exists()), names[-1])
    need(not (path / name).is_symlink(), "a link in place of a file")
    record = parsed((path / name).read_bytes())
    kinds = {"gaussnoise.tables/3": Release, "gaussnoise.combined/1": Combined}
    others = {"gaussnoise.stream/2": Stream, "gaussnoise.changes/1": Changes}
    kinds = kinds if name == "release.json" else others
    kind = str(record.get("format"))
    why = {"gaussnoise.stream-tick/1": "one tick; check its stream, the folder with stream.json"}
    need(kind in kinds, why.get(kind, f"the format {kind!r:.60}"), NotImplementedError)
    if kinds[kind] is Changes:
        return Changes(path, record, releases)
    need(not releases, "releases are given with changes alone")
    folder = kinds[kind](path, record)
    folder.alone = isinstance(folder, Release)
    return folder


def verified(path: Path, *releases: Path) -> list[str]:
    """Return lines that begin with "checked" or "unchecked", or one with "FAILED" or "UNKNOWN".

    ``releases`` are the folders of both releases that a folder of changes is about.
    """
    try:
        found = opened(path, *releases)
        found.check()
    except (FileNotFoundError, NotImplementedError) as error:
        return [f"UNKNOWN: no check of such a folder: {error}"]
    except Exception as error:  # noqa: BLE001 (any error is a fault of the folder)
        return [f"FAILED: {error if type(error) is ValueError else repr(error)}"]
    left = [*dict.fromkeys(found.unchecked)]
    left += ["epsilon_delta, lower_bound, targets, on_outside, texts, pictures"] * path.is_dir()
    left += ["noise.npz, signature.json, metadata"] * path.is_dir()
    copy = path / "verifier.py"
    if copy.exists() and copy.read_bytes() != Path(__file__).read_bytes():
        left += ["verifier.py in the folder: it is another one than this"]
    left += ["other fields; who wrote it, and how it was drawn"]
    return [f"checked    {said}" for said in found.checked] + [f"unchecked  {of}" for of in left]


def verdict(lines: list[str]) -> str:
    """Return one line that sums up those of :func:`verified`."""
    fault = next((line for line in lines if line.startswith(("FAILED", "UNKNOWN"))), None)
    if fault is not None:
        return f"NOT VERIFIED: {fault.partition(': ')[2]}"
    checks = sum(line.startswith("checked") for line in lines)
    left = len(lines) - checks
    return f"VERIFIED: {checks} of {checks} checks; {left} lines above say what is not checked"


if __name__ == "__main__":
    given = sys.argv[1:] or [Path(__file__).resolve().parent]
    found = verified(*map(Path, given)) if len(given) in (1, 3) else [_USAGE]
    print("\n".join([*found, verdict(found)]).encode("ascii", "backslashreplace").decode())
    sys.exit(not found[0].startswith("checked"))
