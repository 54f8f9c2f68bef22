"""The checks of a published folder, from its files alone, in exact arithmetic.

``python verifier.py FOLDER`` prints them, and all that it leaves out; status 0 if all pass.
"""

import csv
import hashlib
import itertools
import json
import math
import sys
import tomllib
from collections.abc import Iterable
from fractions import Fraction
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

Axes = tuple[int, ...]  # positions of attributes
_FORMAT, _UNLISTED = "gaussnoise.tables/3", {"release.json", "signature.json"}
_NUMBERS = ["estimate", "standard_deviation", "low", "high"]
_GIVEN = {"zCDP": ("zCDP", "rho"), "GDP": ("Gaussian DP", "mu"), "KL": ("KL privacy", "alpha")}
_ONE = 1 << 256  # the unit of numbers that are no short fractions
_CLOSE = 1 + Fraction(8, 2**53)  # a few roundings of doubles


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


def attribute_of(entry: dict[str, Any], rows: list[str] | None) -> Attribute:
    """Return an attribute from its entry in the record, and the rows of its matrix."""
    labels = [str(x).lower() if x is True or x is False else str(x) for x in entry["labels"]]
    n = len(labels)
    need(n and len(set(labels)) == n, f"labels of {entry['name']!r}")
    if rows is None:
        own, rest = [_ONE * (n - 1) // (n**3 if n > 2 else 4)] * n, [_ONE // n**2] * n
        lengths = (n * n - n, -n) if n > 2 else (n - 1, 1 - n)
        return Attribute(labels, None if n > 2 else [[1, -1]], *lengths, own, rest, n, 2.0)
    C = [list(map(int, row.split(" "))) for row in rows]
    need(len(C) == n - 1 and {*map(len, C)} == {n}, f"the matrix of {entry['name']!r}")
    columns = list(zip(*C, strict=True))
    products = [sum(map(mul, a, b)) for a in columns for b in columns]
    inverse = inverse_of([[1] * n, *C])
    own = [sum(x * x for x in row[1:]) // _ONE for row in inverse]
    rest = [row[0] * row[0] // _ONE for row in inverse]
    blur = math.prod(max(sum(map(abs, row)) for row in rows) for rows in (inverse, C)) / _ONE
    return Attribute(labels, C, max(products), min(products), own, rest, 1, blur)


def inverse_of(A: list[list[int]]) -> list[list[int]]:
    """Return the inverse of an integer matrix times _ONE, after a check of their product."""
    unit = [[_ONE * (i == k) for k in range(len(A))] for i in range(len(A))]
    work = [[x * _ONE for x in row] + one for row, one in zip(A, unit, strict=True)]
    for k in range(len(A)):
        best = max(range(k, len(A)), key=lambda i: abs(work[i][k]))
        work[k], work[best] = work[best], work[k]
        need(pivot := work[k][k], "a matrix does not tell all categories apart")
        row = work[k] = [(x * _ONE) // pivot for x in work[k]]
        for i, other in enumerate(work):
            if i != k and (factor := other[k]):
                work[i] = [x - (factor * y // _ONE) for x, y in zip(other, row, strict=True)]
    columns = list(zip(*[row[len(A) :] for row in work], strict=True))
    off = [sum(map(mul, A[i], c)) - x for k, c in enumerate(columns) for i, x in enumerate(unit[k])]
    need(max(map(abs, off)) < _ONE >> 128, "a matrix cannot be inverted well")
    return [row[len(A) :] for row in work]


def along(values: list[int], lead: int, own: Attribute, measured: bool) -> list[int]:
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


class Folder:
    """A published folder: its record, the checks that passed, and all that has none."""

    def __init__(self, path: Path) -> None:
        self.path, self.checked, self.unchecked = path, list[str](), list[str]()
        self.say, self.skip = self.checked.append, self.unchecked.append
        text, pairs = (path / "release.json").read_bytes(), list[list[Any]]()
        record = json.loads(text, object_pairs_hook=lambda x: pairs.append(x) or dict(x))
        need(all(len(dict(x)) == len(x) for x in pairs), "a key of the record occurs twice")
        need(record.get("format") == _FORMAT, f"not of the format {_FORMAT}", NotImplementedError)
        need(record["private"] is True, "a simulation, which is not private")
        need(type(record["marginals"]) is list, "a list of tables in Parquet", NotImplementedError)
        self.record, self.plan, self.noise = record, record["plan"], record["noise"]
        matrices = self.noise.get("contrasts", {})
        self.names = [entry["name"] for entry in record["domain"]]
        self.own = [attribute_of(e, matrices.get(e["name"])) for e in record["domain"]]
        self.sizes = [len(a.labels) for a in self.own]
        need(len(set(self.names)) == len(self.names) and {*matrices} <= {*self.names}, "names")
        self.tables = [self.at(entry["attributes"]) for entry in record["marginals"]]
        self.cells = {S: math.prod(self.sizes[i] for i in S) for S in self.tables}
        measured = [(self.at(of["attributes"]), of["multiplier"]) for of in record["measurements"]]
        self.multipliers = {T: int(s) for T, s in measured}
        need([(T, str(s)) for T, s in self.multipliers.items() if s > 0] == measured, "multipliers")
        need(all(len({*S}) == len(S) for S in [*self.tables, *self.multipliers]), "names twice")
        self.public, self.weight = self.at(self.plan.get("public", ())), self.plan.get("weight")
        self.most = Fraction(self.weight["most"] if self.weight else 1)
        self.unit = self.noise.get("unit", {"units_of_a_row": 1})["units_of_a_row"]
        self.moving = record["neighbors"] == "add-remove" or record["person"] is not None
        self.known: dict[Axes, tuple[list[int], float]] = {}

    def at(self, names: Iterable[str]) -> Axes:
        """Return the positions of attributes."""
        return tuple(map(self.names.index, names))

    def check_files(self) -> None:
        """Compare the sha256 of every file, and find files that are missing or were added."""
        listed, entries = self.record["files"], self.record["marginals"]
        there = [p for p in self.path.rglob("*") if not p.is_dir()]
        need(not any(p.is_symlink() for p in self.path.rglob("*")), "a link in place of a file")
        names = {path.relative_to(self.path).as_posix() for path in there} - _UNLISTED
        need(names == set(listed), f"missing or added: {sorted(names ^ set(listed))}")
        files = {"summary.txt", "method.txt", "ddi.xml"} | {e["file"] for e in entries}
        files |= {f"{name}-metadata.json" for name in files if name.endswith(".csv")}
        answers = sorted(name for name in names if name.startswith("answers/"))
        more = names - files - {"release.png", "noise.npz", *answers}
        need(files <= names and not more, f"not of a release: {sorted(files - names | more)}")
        for name, sha256 in listed.items():
            found = hashlib.sha256((self.path / name).read_bytes()).hexdigest()
            need(found == sha256, f"{name!r} has another sha256 than the record states")
        need("NOT PRIVATE" not in (self.path / "summary.txt").read_text("utf-8"), "a simulation")
        self.say(f"{len(listed)} files: each has the stated sha256, and there is no other file")
        self.unchecked += map(ascii, answers)

    def check_request(self) -> None:
        """Compare everything that the record states twice, and the digest of the request."""
        record, plan = self.record, self.plan
        k, relation = record["rows_per_person"], record["neighbors"]
        schema = tomllib.loads(plan["schema"])["attributes"]
        need(list(schema) == self.names, "the schema has other attributes than the domain")
        for entry, given in zip(record["domain"], schema.values(), strict=True):
            ends, other = given.get("edges", []), [given["other"]] if "other" in given else []
            pairs = itertools.pairwise([str(end).removesuffix(".0") for end in ends])
            bins = [f"{'[('[low == '-inf']}{low}, {high})" for low, high in pairs]
            bins = [*bins[:-1], *(x if "inf)" in x else f"{x[:-1]}]" for x in bins[-1:])]
            cells = [*map(str, [*given.get("categories", bins), *other])]
            same = [*map(str, entry["labels"])] == cells or "clip" in given
            edges = [str(float(end)) if type(end) is int else str(end) for end in ends]
            same &= entry.get("edges", []) == edges
            same &= all(entry.get(key) == given.get(key) for key in ("clip", "groups", "base"))
            need(same, f"{entry['name']!r} is not that of the schema")
        keys = ("neighbors", "rows_per_person", "person", "per_person")
        same = all(record.get(key) == plan.get(key) for key in keys)
        need(same and type(k) is int and k > 0 and relation in ("add-remove", "replace"), "unit")
        rows = f"{k} {'record' if plan.get('per_person') else 'row'}{' is' if k == 1 else 's are'}"
        unit = f"one person (column {plan['person']!r}), of whom at most {rows} counted"
        if plan["person"] is None:
            unit = "one row" if k == 1 else f"one person of at most {k} rows"
        need(record["privacy_unit"] == unit, f"privacy_unit is not {unit!r}")
        need(record["neighbors_meaning"].startswith(f"{relation} ("), "neighbors_meaning")
        need(self.weight == self.noise.get("unit", {}).get("weight") and self.most > 0, "weight")
        need(relation == "add-remove" or not self.weight, "weights where rows are exchanged")
        terms = record.get("workload", record["marginals"])
        asked = [self.at(term.get("bases", term.get("attributes"))) for term in terms]
        need({*asked} == {*self.tables}, "the workload asks for other tables")
        need(len({*map(frozenset, self.tables)}) == len(self.tables), "a table is listed twice")
        given = plan["workload"]
        given = itertools.combinations(self.names, given) if type(given) is int else given
        given = [t if isinstance(t, dict) else dict.fromkeys(t) for t in given]
        need([{*self.at(t)} for t in given] == [{*S} for S in asked], "the plan's workload")
        weights = [term["weight"] for term in terms]
        need(plan["weights"] == (None if plan["targets"] else weights), "weights of the plan")
        usual = {entry["name"]: entry.get("base", "identity") for entry in record["domain"]}
        meant = [{n: usual[n] if x is None else x for n, x in t.items()} for t in given]
        cells = [dict.fromkeys(m, "identity") for m in meant]
        need(meant == [t.get("bases", m) for t, m in zip(terms, cells, strict=True)], "the bases")
        late = ["person", "per_person", "public", "ranges", "title", "source"]
        w = self.weight and {"weight": [self.weight["column"], f"{self.weight['most']:.9g}"]}
        request = (w or {}) | {key: plan[key] for key in late if plan.get(key) is not None}
        request |= {"schema": plan["schema"], "marginals": asked}
        request |= {"weights": [f"{weight:.9g}" for weight in weights], "p": plan["p"]}
        request |= {"neighbors": relation, "rho": f"{record['privacy']['rho']:.9g}"}
        request["rows_per_person"] = k
        note, wholes = {"catch-alls": "in no query that takes cells in order"}, [request]
        if "workload" in record:
            bases = {"bases": [list(term["bases"].values()) for term in terms]}
            wholes = [bases | request, bases | note | request]
        digests = [hashlib.sha256(json.dumps(whole).encode()).hexdigest() for whole in wholes]
        need(record["request_sha256"] in digests, "request_sha256 is not that of the request")
        self.say(f"{relation}, {unit}: all that the record states twice agrees")

    def moved(self) -> int:
        """Return the largest squared change of all ``s_T ⊗ C_i`` between neighbours."""
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

    def check_privacy(self) -> None:
        """Check the measured sets, the sensitivity of their integers, and the ρ that was spent."""
        wide = [[i for i in S if self.sizes[i] > 1] for S in self.tables]
        inside = {T for S in wide for k in range(len(S) + 1) for T in itertools.combinations(S, k)}
        wanted = {T for T in inside | {()} if not {*T} <= {*self.public} or (self.moving and not T)}
        need({*self.multipliers} == wanted and not (self.public and self.moving), "measured sets")
        parts = self.weight or any("clip" in entry for entry in self.record["domain"])
        need(str(self.unit) in [str(1 << b) for b in (range(10, 21) if parts else [0])], "units")
        noise, budget, k = self.noise, self.record["privacy"], self.record["rows_per_person"]
        stated, exact = noise["integer_sensitivity_squared"], self.moved() * self.unit**2
        need(type(stated) is int and stated == exact, f"the squared sensitivity is {exact}")
        self.say(f"squared sensitivity {stated}: of integer matrices, over all pairs of rows")
        sigma, rho = Fraction(noise["sigma"]), Fraction(noise["rho_of_one_row"])
        need(stated <= 2 * rho * sigma**2 <= stated * _CLOSE and sigma >= 0, "rho_of_one_row")
        ranges = [Fraction(own["rho"]) for own in self.plan.get("ranges", [])]
        least, charged = rho * k * k + sum(ranges), Fraction(self.record["rho"])
        need(least <= charged <= least * _CLOSE and min([*ranges, 1]) > 0, "rho")
        need(charged <= Fraction(budget["rho"]), "more was spent than the budget")
        self.say(f"rho = {self.record['rho']!r}: {k}^2 sensitivity^2 / (2 sigma^2), and ranges")
        self.unchecked += ["the noise with which ranges were found"] if ranges else []
        asked = {key: x for key, x in self.plan["privacy"].items() if key != "definition"}
        need(asked.items() <= budget.items(), "the budget is not that of the plan")
        kind = self.plan["privacy"]["definition"]
        if kind in _GIVEN:
            need((budget["definition"], *asked) == _GIVEN[kind], "another definition of privacy")
            (given,) = map(Fraction, asked.values())
            most = given**2 / 2 if kind == "GDP" else given
            need(given > 0 and Fraction(budget["rho"]) <= most, f"rho is too large for {kind}")
            self.say(f"{kind} {asked}: its Gaussians have this rho")
        else:
            need(kind in ("ApproxDP", "TV"), "an unknown definition of privacy")
            self.skip(f"that rho = {budget['rho']!r} implies {kind} {asked}")

    def check_tables(self) -> None:
        """Check the numbers of all tables."""
        levels = {"columns": _NUMBERS[2:], "level": 0.95, "simultaneous": False}
        need(self.record["intervals"] == levels, "intervals")
        for entry, S in zip(self.record["marginals"], self.tables, strict=True):
            name, said = entry["file"], f"numbers in {entry['file']}"
            need(entry["cells"] == self.cells[S], f"the number of cells of {name}")
            if name.endswith(".csv") and not name.endswith("+sdmx.csv"):
                need(entry["first_row"] == 0, f"the first row of {name}")
                self.check_table(self.path / name, entry["standard_deviation"], S)
            elif said not in self.unchecked:
                self.skip(said)
        fine = sum(error < 0.25 for _, error in self.known.values())
        self.say("standard deviations and intervals in CSV: of sigma, multipliers and matrices")
        self.say(f"{len(self.known)} measurements, {fine} as integers: the same from all tables")
        if fine < len(self.known):
            self.skip(f"{len(self.known) - fine} measurements: doubles do not resolve integers")

    def check_table(self, path: Path, stated: float | list[float], S: Axes) -> None:
        """Check labels, intervals, deviations, and that estimates are of integers others share."""
        own, name, estimates, deviations = [self.own[i] for i in S], path.name, [], []
        with path.open(encoding="utf-8", newline="") as file:
            rows, cells = csv.reader(file, strict=True), itertools.product(*[a.labels for a in own])
            need(next(rows) == [self.names[i] for i in S] + _NUMBERS, f"the columns of {name}")
            for row, cell in zip(rows, cells, strict=True):
                x, sd, low, high = map(float, row[len(S) :])
                half = 1.959963984540054 * sd  # the 0.975 quantile of a normal distribution
                need(tuple(row[: len(S)]) == cell, f"the labels of {name}")
                need((low, high) == (x - half, x + half), f"{name}: an interval is not x ± z sd")
                estimates.append(x)
                deviations.append(sd)
        inside = {T: s for T, s in self.multipliers.items() if {*T} <= {*S}}
        finest = min(inside.values(), default=1)
        shares = {tuple(map(S.index, T)): _ONE * finest**2 // s**2 for T, s in inside.items()}
        scale = float(Fraction(self.noise["sigma"]) * self.most / (self.unit * finest))
        squares = variances(own, shares)
        need(not shares or min(squares) >> 64, "variances are too small to be checked")
        every = [math.sqrt(variance / _ONE) * scale for variance in squares]
        close = 1e-9 if any(a.divisor == 1 < len(a.labels) for a in own) else 1e-14
        agree = (math.isclose(x, y, rel_tol=close) for x, y in zip(deviations, every, strict=True))
        need(all(agree), f"a standard deviation in {name} is not that of its noise")
        ends = stated if isinstance(stated, list) else [stated, stated]
        need(ends == [min(deviations), max(deviations)], f"the deviation that is stated of {name}")
        bits = max(x.as_integer_ratio()[1].bit_length() - 1 for x in estimates)
        values = [int(math.ldexp(x, bits)) for x in estimates]
        error = max(map(abs, estimates)) * math.sqrt(len(values)) * 2.0 ** (len(S) / 2 - 51)
        parts = {T: Fraction(s * self.unit) / self.most for T, s in inside.items()}
        known = [] if self.moving else [i for i in S if i in self.public]  # with exact counts
        kept = [(-1, *Q) for k in range(len(S) + 1) for Q in itertools.combinations(known, k)]
        for T, s in (parts | dict.fromkeys(kept * (not self.moving), Fraction(1))).items():
            found, exact = values, s * math.prod(self.own[i].divisor for i in T if T[0] != -1)
            length = math.prod(self.own[i].square for i in T if T[0] != -1)
            slack = error * math.sqrt(length) * float(exact)
            if slack > 0.25 and sum({*T} <= {*R} for R in self.tables) == 1:
                self.known[T] = [], slack
                continue
            for k in [k for k in range(len(S)) if T[:1] != (-1,) or S[k] not in T][::-1]:
                found = along(found, math.prod(self.sizes[i] for i in S[:k]), own[k], S[k] in T)
            blur = math.prod(self.own[i].blur for i in T if T[0] != -1)
            above, below = exact.numerator, exact.denominator << bits
            whole = [(2 * x * above + below) // (2 * below) for x in found]
            slack += 4 * blur * 2.0**-53 * max(map(abs, whole))
            need(T[:1] != (-1,) or min(whole) >= 0, f"{name}: a public count is negative")
            if slack < 0.25:
                off = max(abs(x * above - z * below) for x, z in zip(found, whole, strict=True))
                need(off <= int(slack * below) + 1, f"{name} is not made of integers as stated")
            first, other = self.known.setdefault(T, (whole, slack))
            apart = 0 if max(slack, other) < 0.25 else math.ceil(slack + other) + 1
            agree = (abs(x - y) <= apart for x, y in zip(whole, first, strict=True))
            need(all(agree), f"{name} disagrees with another table on a margin")

    def check_optimality(self) -> None:
        """Check both ends of the bracket, where the record has the witness of the lower one."""
        stated, p, entries = self.record["optimality"], self.plan["p"], self.record["marginals"]
        upper, lower, gap = stated["gamma"], stated["gamma_lower"], stated["certified_gap"]
        need(0 <= lower <= upper and gap == (upper / lower - 1 if lower else 0.0), "gamma")
        solved = any(a.divisor == 1 < len(a.labels) for a in self.own)
        if p != "2.0" or solved or "workload" in self.record:
            return self.skip("the bracket of gamma, for this workload or norm")
        squares = {S: Fraction(e["weight"]) ** 2 for S, e in zip(self.tables, entries, strict=True)}
        above = {T: [S for S in squares if {*T} <= {*S}] for T in self.multipliers}
        losses = {T: sum(squares[S] / self.cells[S] for S in of) for T, of in above.items()}
        own = [Fraction(n**2 * a.own[0], _ONE) for n, a in zip(self.sizes, self.own, strict=True)]
        parts = {T: loss * math.prod(own[i] for i in T) for T, loss in losses.items()}
        noise = sum(part / self.multipliers[T] ** 2 for T, part in parts.items())
        reached = math.sqrt(noise * self.noise["integer_sensitivity_squared"] / self.unit**2)
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
        proven = math.hypot(float(Fraction(traces, _ONE)), math.sqrt(number))
        need(lower <= proven * (1 + 2.0**-51), f"gamma_lower is not proven, but {proven!r}")
        need(proven <= upper * (1 + 1e-12), "gamma is less than its proven lower end")
        self.say(f"gamma_lower = {lower!r}: uniform on all rows, or on pairs that differ as stated")


def verified(path: Path) -> list[str]:
    """Return lines that begin with "checked" or "unchecked", or one with "FAILED" or "UNKNOWN"."""
    try:
        folder = Folder(path)
        for name in ("files", "request", "privacy", "tables", "optimality"):
            getattr(folder, f"check_{name}")()
    except (FileNotFoundError, NotImplementedError) as error:
        return [f"UNKNOWN: no check of such a folder: {error}"]
    except Exception as error:  # noqa: BLE001 (any error is a fault of the folder)
        return [f"FAILED: {error if type(error) is ValueError else repr(error)}"]
    left = [*folder.unchecked, "epsilon_delta, lower_bound, targets, on_outside, texts, pictures"]
    left += ["noise.npz, signature.json, metadata, clipped labels, other fields; how it was drawn"]
    return [f"checked    {said}" for said in folder.checked] + [f"unchecked  {of}" for of in left]


if __name__ == "__main__":
    found = verified(Path(sys.argv[1])) if len(sys.argv) == 2 else ["usage: verifier.py FOLDER"]
    print("\n".join(found).encode("ascii", "backslashreplace").decode())
    sys.exit(not found[0].startswith("checked"))
