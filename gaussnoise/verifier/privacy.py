"""The privacy of a published folder, from its files alone, in exact arithmetic.

``python privacy.py [PATH]``, or for changes ``PATH BEFORE AFTER``, prints its checks; the other
files use this one and check more. A release is computed (tables.py) only from noisy integers,
``s_T (⊗_{i∈T} C_{T,i}) u N_T + z_T`` for sets T of attributes, with the counts N_T of their cells,
integer matrices C_{T,i}, multipliers s_T, a unit u, and independent discrete Gaussians z_T of scale
σ. If the integers change by at most Δ (ℓ2), this is Δ²/(2σ²)-zCDP (Canonne & others 2020).
"""

import hashlib
import itertools
import json
import math
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from operator import mul
from pathlib import Path
from typing import Any

Axes = tuple[int, ...]  # positions of attributes
CLOSE, K = 1 + Fraction(8, 2**53), 128  # a few roundings of doubles; triangles along a curve
GAUSSIAN = {"zCDP": ("zCDP", "rho"), "GDP": ("Gaussian DP", "mu"), "KL": ("KL privacy", "alpha")}
UNIT = ("neighbors", "rows_per_person", "person")


def need(holds: object, fault: str, kind: type[Exception] = ValueError) -> None:
    """Raise an error with the text ``fault`` unless ``holds`` is true."""
    if not holds:
        raise kind(fault)


def exact(number: object) -> Fraction:
    """Return a number of a record as an exact fraction."""
    need(type(number) in (int, float), "a number was expected")
    return Fraction(number)  # type: ignore[arg-type]


def parsed(text: str, infinite: Any = exact) -> dict[str, Any]:
    """Return a JSON object, in which no key occurs twice; ``infinite`` converts NaN and ∞."""
    pairs = list[list[Any]]()
    hooks: Any = {"object_pairs_hook": lambda x: pairs.append(x) or dict(x)}
    record = json.loads(text, parse_constant=infinite, **hooks)
    need(all(len(dict(x)) == len(x) for x in pairs), "a key of the record occurs twice")
    return record


def digest_of(path: Path) -> str:
    """Return the sha256 of a file; "" if there is no file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


class Folder:
    """A folder, the lines on its checks, and the releases that are its parts."""

    named, total = "release.json", "rho"  # its record; the key there of what all parts have spent
    free: tuple[str, ...] = ("release.png", "answers/", "verifier/")  # other files and folders
    numbers: Any = None  # the tables, set by other files

    def __init__(self, path: Path, record: dict[str, Any], *_: Path) -> None:
        self.path, self.record = path, record
        self.parts, self.said = dict[str, Any](), dict[str, Any]()  # parts, and what they spend
        self.checked, self.unchecked = list[str](), list[str]()
        self.say, self.skip = self.checked.append, self.unchecked.append
        self.names, self.tabled = list[str](), set[str]()  # attributes; files that must exist
        for key in ("marginals", "measurements"):
            if type(listed := record.get(key)) is dict:
                need(listed["file"] == f"{key}.jsonl", "a list in Parquet", NotImplementedError)
                self.tabled.add(listed["file"])
                lines = (path / listed["file"]).read_bytes().decode().removesuffix("\n")
                record[key] = [*map(parsed, lines.split("\n"))]
                need(len(record[key]) == listed["count"], f"the number of {key}")
        self.tabled |= {entry["file"] for entry in record.get("marginals", ())}

    def at(self, names: Iterable[str]) -> Axes:
        """Return the positions of attributes."""
        found = tuple(map(self.names.index, names))
        need(len({*found}) == len(found), "names twice")
        return found

    def check_files(self) -> None:
        """1. Files: no file is added or missing, and each has the sha256 in the record."""
        at, listed, own = self.path, self.record["files"], {self.named, "signature.json"}
        need(self.record["private"] is True, "a simulation, which is not private")
        need(not any(p.is_symlink() for p in at.rglob("*")), "a link in place of a file")
        names = {p.relative_to(at).as_posix() for p in at.rglob("*") if not p.is_dir()} - own
        need(names == {*listed}, f"missing or added: {sorted(names ^ {*listed})}")
        files = {"summary.txt", "method.txt", "ddi.xml", *self.tabled}
        files |= {f"{name}-metadata.json" for name in files if name.endswith(".csv")}
        more = {x for x in names - files if "".join(x.partition("/")[:2]) not in self.free}
        need(files <= names and not more, f"not of a release: {sorted(files - names | more)}")
        for name, sha in listed.items():
            need(digest_of(at / name) == sha, f"{name!r} has another sha256 than the record says")
        need("NOT PRIVATE" not in (at / "summary.txt").read_text("utf-8"), "a simulation")
        self.say(f"{len(listed)} files: each has the stated sha256, and no other")

    def check(self) -> None:
        """5. Privacy: check all parts, add their lines to this folder's, and check the sum of ρ."""
        self.check_files()
        for name, part in self.parts.items():
            part.say = lambda line, name=name: self.say(f"{name}: {line}")
            part.skip = lambda line, name=name: self.skip(f"{name}: {line}")
            part.check()
            same = all(self.said[name][key] == part.record[key] for key in (*UNIT, "rho"))
            need(same, f"what is said of {name}: rho, or another unit of privacy")
        rho, whole = sum(exact(own["rho"]) for own in self.said.values()), self.record[self.total]
        alike = len({tuple(own[key] for key in UNIT) for own in self.said.values()}) == 1
        apart = whole is None and self.total != "rho"
        need(apart or (alike and rho <= exact(whole) <= rho * CLOSE), "rho is not the sum of all")
        self.say(f"{self.total} = {whole!r}: " + ("no sum" if apart else "the sum of all"))


class Attribute:
    """An attribute, with its entry in the schema and an integer matrix C of its measurement."""

    def __init__(self, name: str, given: dict[str, Any], rows: list[str] | None) -> None:
        base, n = given.get("base"), len(given.get("categories") or given.get("edges", ())[1:])
        degrees = base.get("degrees", ()) if isinstance(base, dict) and "clip" in given else ()
        self.in_parts, self.squares = "clip" in given or "unit" in given, "2" in map(repr, degrees)
        n = self.cells = 2 + self.squares if self.in_parts else n  # both bounds, and between
        n += "other" in given and "unit" not in given
        need(n > 0 and given.get("unit", 1) > 0, f"labels of {name!r}")
        self.given, self.n, self.matrix = given, n, None  # n I - 1 1'
        self.square, self.ends = n * n - n, (n * n - n, -n, n * n - n)  # C's columns: see below
        self.lengths = [n * n - n] * n
        if rows is not None or n < 3:
            C = [[1, -1][:n]] if rows is None else [[*map(int, row.split(" "))] for row in rows]
            need(rows is None or [*map(len, C)] == [n] * (n - 1), f"the matrix of {name!r}")
            columns, one = list[Sequence[int]](zip(*C, strict=True)), 1
            self.matrix, self.square = C, max(sum(map(mul, x, x)) for x in columns)
            if self.squares:  # triangles of two points and their tangents' meeting
                at = [(s, t) for s in range(K + 1) for t in (s, s + 1) if t <= K]
                w = [[(K - s) * (K - t), (K - s) * t + s * (K - t), s * t] for s, t in at]
                w, one = w + [[0, 0, 0, K * K]] * (n - 3), K**4
                columns = [[sum(map(mul, x, row)) for row in C] for x in w]
            self.lengths = [sum(map(mul, x, x)) for x in columns]
            dots = [sum(map(mul, *x)) for x in itertools.combinations_with_replacement(columns, 2)]
            self.ends = -(-max(dots) // one), min(dots) // one, self.square * ("unit" not in given)


class Release(Folder):
    """A release of tables; :class:`Stream` inherits its checks."""

    free, growth, many = ("noise.npz", *Folder.free), 1, False  # growth: of a stream, over ticks

    def __init__(self, path: Path, record: dict[str, Any], *_: Path) -> None:
        super().__init__(path, record)
        self.plan, self.noise = plan, noise = record["plan"], record["noise"]
        schema, matrices = tomllib.loads(plan["schema"])["attributes"], noise.get("contrasts", {})
        self.names, moves = [*schema], record["neighbors"] == "add-remove"
        given = itertools.combinations(schema, w) if type(w := plan["workload"]) is int else w
        self.asked = [t if isinstance(t, dict) else dict.fromkeys(t) for t in given]
        self.own = [Attribute(name, own, matrices.get(name)) for name, own in schema.items()]
        measured = [(self.at(of["attributes"]), of["multiplier"]) for of in record["measurements"]]
        self.multipliers = {T: int(s) for T, s in measured}
        need([(T, str(s)) for T, s in self.multipliers.items() if s > 0] == measured, "multipliers")
        self.public, self.weight = self.at(plan.get("public", ())), plan.get("weight")
        self.most = exact(self.weight["most"] if self.weight else 1)
        self.unit = noise.get("unit", {"units_of_a_row": 1})["units_of_a_row"]
        self.moving = record["person"] is not None or moves
        self.tables = [self.at(entry["attributes"]) for entry in record["marginals"]]
        self.used = {T: {i: self.own[i] for i in T} for T in self.multipliers}  # with C_{T,i}
        self.several = set[int]()  # attributes with other matrices in some sets
        for x in noise.get("contrasts_in_sets", ()):
            one = Attribute(name := x["attribute"], schema[name], x["contrasts"])
            self.several.add(i := self.names.index(name))
            proven = moves and "unit" not in one.given and not one.squares
            for T in map(self.at, x["sets"]):  # each measures it, and is listed once
                need(proven and self.used.get(T, {}).get(i) is self.own[i], f"sets of {name!r}")
                self.used[T][i] = one

    def check_unit(self) -> None:
        """2. Unit of privacy: neighbouring data differ in one row, or in all rows of a person."""
        record, plan, k = self.record, self.plan, self.record["rows_per_person"]
        same = all(repr(record.get(x)) == repr(plan.get(x)) for x in (*UNIT, "per_person"))
        relations = ("add-remove",) if self.weight else ("add-remove", "replace")
        need(same and type(k) is int and k > 0 and record["neighbors"] in relations, "unit")
        need(self.weight == self.noise.get("unit", {}).get("weight") and self.most > 0, "weight")
        need(not self.weight or not any(a.squares for a in self.own), "squares of weighted rows")

    def check_measured(self) -> None:
        """3. Measurements: the measured sets are those from which the tables are computed."""
        wide = [[i for i in S if self.own[i].n > 1] for S in self.tables]
        inside = {T for S in wide for k in range(len(S) + 1) for T in itertools.combinations(S, k)}
        wanted = {T for T in inside | {()} if not {*T} <= {*self.public} or (self.moving and not T)}
        need({*self.multipliers} == wanted and not (self.public and self.moving), "measured sets")
        parts = self.weight or any(self.own[i].in_parts for S in self.tables for i in S)
        need(str(self.unit) in [str(1 << b) for b in (range(10, 21) if parts else [0])], "units")

    def summed(self, factor: Callable[[int, Attribute], int], sets: Iterable[Axes] = ()) -> int:
        """Return the sum over T of s_T² times a factor of each attribute i of T with C_{T,i}."""
        own = {T: itertools.starmap(factor, self.used[T].items()) for T in sets or self.used}
        return sum(self.multipliers[T] ** 2 * math.prod(x) for T, x in own.items())

    def inner(self, D: Axes = ()) -> int:
        """Return the least inner product of the measurements of two rows that differ in D."""
        # affine in each attribute's inner product, so least where each is extreme
        return self.summed(lambda i, a: a.ends[i in D])

    def longest(self, sets: Sequence[Axes] = ()) -> int:
        """Return the largest squared length of the measurements of one row."""
        free = sorted(self.several & {*itertools.chain(*(sets or self.used))})
        few = math.prod(self.own[i].n for i in free) * len(self.used) < 10**7
        need(few, "too many categories", NotImplementedError)

        def length(row: Axes) -> int:  # others: their longest column
            x = dict(zip(free, row, strict=True))
            return self.summed(lambda i, a: a.lengths[x[i]] if i in x else a.ends[0], sets)

        return max(map(length, itertools.product(*(range(self.own[i].n) for i in free))))

    def moved(self) -> Fraction | int:
        """4. Sensitivity: the largest squared change of all integers before noise, for u = 1."""
        grows = [i for i in {*itertools.chain(*self.tables)} if "unit" in self.own[i].given]
        if grows or self.record["neighbors"] == "add-remove":
            return self.paid(grows) if grows else self.longest()
        self.many = len(free := {i for T in self.multipliers for i in T} - {*self.public}) > 14
        need(len(self.multipliers) << len(free) < 10**7, "too many attributes", NotImplementedError)
        sets = (D for k in range(len(free) + 1) for D in itertools.combinations(free, k))
        return max(2 * (self.inner() - min(map(self.inner, sets))), self.inner() * self.moving)

    def paid(self, grows: list[int]) -> Fraction | int:
        """Return the least m with ``a + Σ b_j u_j² <= m (1 + Σ (u_j/t_j)²)`` for all u_j."""
        # u_j: numbers without upper bound, over 2^20 units; t_j: their scales
        plan, k, scales = self.plan, self.record["rows_per_person"], self.plan["privacy"]["scale"]
        kind = plan["privacy"]["definition"], plan["neighbors"], plan.get("per_person"), self.weight
        need(kind == ("PerRecord", "add-remove", None, None) and self.growth == 1, "the budget")
        apart = all(self.names[i] in scales and self.own[i].matrix == [[0, 1]] for i in grows)
        need(apart and self.unit == 1 << 20, "sums are not measured apart, or without a scale")
        need(all(len({*T} & {*grows}) < 2 for T in self.multipliers), "a product of such numbers")
        sums = [Fraction(self.longest([T for T in self.used if {*T}.isdisjoint(grows)]))]
        for i in grows:
            end = Fraction(str(self.own[i].given["unit"])) * 2**20 * k  # k rows cost k^2 as much
            t = Fraction(str(scales[self.names[i]])) / end
            sums.append(t**2 * self.longest([T for T in self.used if i in T]))
        self.say(f"(1 + sum of squares) {float(max(sums)):.6g}: any numbers in {k} row(s)")
        return max(sums)

    def check(self) -> None:
        """5. Privacy: make checks 1 to 4, then check σ, ρ and the budget."""
        for check in (self.check_files, self.check_unit, self.check_measured):
            check()
        record, noise, k = self.record, self.noise, self.record["rows_per_person"]
        M, V, u = self.moved(), self.summed(lambda _, a: a.ends[2]), self.unit
        joined = [frozenset[int]()]  # numbers that tables join
        for J in {frozenset(i for i in S if self.own[i].in_parts) for S in self.tables}:
            joined.append(J.union(*(x for x in joined if x & J)))
        cells = max(math.prod(self.own[i].cells for i in J) for J in joined)
        need(cells <= 64, "too many numbers together", NotImplementedError)
        h = 7 * cells * any(self.own[i].squares for J in joined for i in J)
        square = math.ceil(M * u**2 + h * u * (M + V) + h**2 * V) * self.growth
        stated = noise["integer_sensitivity_squared"]
        fits = stated == square or (self.many and stated > square)  # many: a bound, by floats
        need(type(stated) is int and fits, f"the squared sensitivity is {square}")
        self.say(f"squared sensitivity {stated}: over all neighbours by {record['neighbors']}")
        sigma, rho = exact(noise["sigma"]), exact(noise["rho_of_one_row"])
        need(stated <= 2 * rho * sigma**2 <= stated * CLOSE and sigma >= 0, "rho_of_one_row")
        ranges = [exact(own["rho"]) for own in self.plan.get("ranges", [])]
        least, charged = rho * k * k + sum(ranges), exact(record["rho"])
        need(least <= charged <= least * CLOSE and min([*ranges, 1]) >= 0, "rho")
        need(charged <= exact(record["privacy"]["rho"]), "more was spent than the budget")
        self.say(f"rho = {record['rho']!r}: {k}^2 sensitivity^2 / (2 sigma^2), and ranges")
        if ranges:
            self.skip("the noise with which ranges were found")
        self.check_budget(dict(self.plan["privacy"]), record["privacy"])

    def check_budget(self, asked: dict[str, Any], budget: dict[str, Any]) -> None:
        """Check that the budget is the planned one, and that its ρ follows from the guarantee."""
        kind, known = asked.pop("definition"), (*GAUSSIAN, "ApproxDP", "TV", "PerRecord")
        need(kind in known, f"the guarantee {kind!r:.60}", NotImplementedError)
        if kind == "PerRecord":
            zeros, scales = {"definition": "zCDP", "rho": budget["rho"]}, budget["scales"]
            same = asked == {"privacy": zeros, "scale": scales} and min(scales.values()) > 0
            need(same and budget["definition"] == "per-record zCDP", "the budgets of rows")
            return self.say(f"PerRecord {asked}: rho of rows of zeros, which grows")
        need(asked.items() <= budget.items(), "the budget is not that of the plan")
        if kind not in GAUSSIAN:
            return self.skip(f"that rho = {budget['rho']!r} implies {kind} {asked}")
        need((budget["definition"], *asked) == GAUSSIAN[kind], "another definition of privacy")
        (given,) = map(exact, asked.values())
        most = given**2 / 2 if kind == "GDP" else given
        need(given > 0 and exact(budget["rho"]) <= most, f"rho is too large for {kind}")
        return self.say(f"{kind} {asked}: its Gaussians have this rho")


def largest_change(C: Sequence[Sequence[int]], k: int, apart: int) -> int:
    """Return a bound on ``Σ_{i,j∈π} |(C'C)_ij|`` for any set π of <= k ticks, ``apart`` apart."""
    n, r, columns = len(C), apart - 1, [*itertools.zip_longest(*C, fillvalue=0)]
    X = [[abs(sum(map(mul, a, b))) for b in columns] for a in columns]
    if k < 3 or k**2 * sum(math.comb(n - j * r, j + 1) for j in range(k)) < 2**23:
        near = (x for j in range(k) for x in itertools.combinations(range(n - j * r), j + 1))
        sets = ([i + j * r for j, i in enumerate(ticks)] for ticks in near)
        return max(sum(X[i][j] for i in ticks for j in ticks) for ticks in sets)

    def largest(weights: list[int], k: int) -> int:  # a bound, where sets are many
        best = [0] * (n + 1)
        for _ in range(k):
            found = [best[max(j - apart, 0)] + weight for j, weight in enumerate(weights, 1)]
            best = [*itertools.accumulate(found, max, initial=0)]
        return best[n]

    bounds = []  # a pair of ticks counts once at both, or twice at the later or the earlier
    for twice in ((1, 1), (2, 0), (0, 2)):
        far = [[X[i][j] * twice[j > i] * (abs(i - j) >= apart) for j in range(n)] for i in range(n)]
        bounds.append(largest([X[i][i] + largest(row, k - 1) for i, row in enumerate(far)], k))
    return min(bounds)


class Stream(Release):
    """A stream: its plan, and the ticks that were published.

    The integers measured at tick t are sums of those of ticks 1 to t, weighted by row t of the time
    matrix, plus fresh noise. So ρ adds up even if later rows depend on earlier publications.
    """

    def __init__(self, path: Path, record: dict[str, Any], *_: Path) -> None:
        noise = record["noise"] | {"rho_of_one_row": record["noise"]["rho_of_one_row_per_report"]}
        same = {"rows_per_person": record["rows_per_person_and_tick"], "noise": noise}
        same |= {"rho": record["rho_of_all_ticks"], "person": record.get("person"), "marginals": []}
        super().__init__(path, record | same)
        need({"public", "weight", "ranges", "per_person"}.isdisjoint(self.plan), "no stream's plan")
        need(not self.plan["targets"], "accuracy targets of a stream", NotImplementedError)
        self.growth, self.ticks = noise["time_sensitivity_squared"], record["ticks"]
        n, self.apart, reports = sizes = [self.ticks[key] for key in ("n", "apart", "reports")]
        need(all(type(x) is int and x > 0 for x in sizes), "ticks")
        self.reports, self.records = min(reports, (n - 1) // self.apart + 1), list[dict[str, Any]]()
        self.rows = [list(map(int, row.split(" "))) for row in record["time_matrix"]]
        need([len(x) for x in self.rows if x[-1] > 0] == [*range(1, n + 1)], "a tick is unmeasured")
        self.tables = [*{tuple(sorted(self.at(term))) for term in self.asked}]

    def check_unit(self) -> None:
        super().check_unit()
        moves, rows = self.record["neighbors"] == "add-remove", self.record["person"] is None
        need(moves or rows, "exchanged persons")
        need((moves and rows) or "corrections" not in self.ticks, "corrections change totals")
        least = largest_change(self.rows, self.reports, self.apart)
        need(type(D := self.growth) is int and D >= least, f"ticks' sensitivity is {least}")
        self.say(f"squared sensitivity {D} of ticks, {least} at least: over all reports")

    def check_files(self) -> None:
        there, place = {p.name for p in self.path.iterdir()}, self.path / "ticks"
        more = there - {"stream.json", "ticks", "private", "verifier", "signature.json"}
        need(not more and not (self.path / "signature.json").is_dir(), "files of no stream")
        folders, numbers = sorted(place.glob("*")), [f"{t:04d}" for t, _ in enumerate(self.rows, 1)]
        need([at.name for at in folders] == numbers[: len(folders)], "a tick missing")
        for t, at in enumerate(folders, 1):
            self.records.append(own := parsed((at / "release.json").read_bytes().decode()))
            need((own["format"], own["tick"]) == ("gaussnoise.stream-tick/1", t), f"no tick {t}")
            tick, parts = Folder(at, own), ("period", "cumulative")
            tick.tabled, tick.free = {f"{x}/{e['file']}" for x in parts for e in own[x]}, ()
            tick.check_files()
        self.say(f"{len(folders)} ticks from 1 on: each of their files has the stated sha256")
        if "private" in there:
            self.skip("private/: never publish it")


class Combined(Folder):
    """Tables combined from releases of the same rows, in a folder with these releases."""

    free = ("releases/", *Folder.free)

    def __init__(self, path: Path, record: dict[str, Any], *_: Path) -> None:
        super().__init__(path, record)
        there, rows = {p.name for p in (path / "releases").iterdir()}, list[Any]()
        for source in record["combined_from"]:
            at = path / source["folder"]
            need(at.parent == path / "releases", "a release in another place")
            need(digest_of(at / "release.json") == source["sha256"], "the sha256 of a release")
            self.parts[at.name] = one = opened(at)
            self.said[at.name] = record | {"rho": source["rho"]}
            need(type(one) is Release, "no release", NotImplementedError)
            rows.append([one.plan.get(key) for key in ("public", "per_person", "weight")])
        alike = there == {*self.parts} and rows == rows[:1] * len(there)
        need(alike and len(rows) > 1, "releases not combined, one twice, or other rows or counts")


class Changes(Folder):
    """Changes between two releases, whose folders are given or are next to this one."""

    named, free, total = "changes.json", ("verifier/",), "rho_of_both"

    def __init__(self, path: Path, record: dict[str, Any], *given: Path) -> None:
        super().__init__(path, record)
        self.tabled = {name for entry in record["tables"] for name in entry["files"].values()}
        self.tabled |= {"report.html", "changes.png"}
        for when in ("before", "after"):
            self.said[when] = own = record[when]
            usual = [path.resolve().parent / Path(own["name"] or "").name]
            at = [x for x in given or usual if digest_of(x / "release.json") == own["sha256"]]
            need(at or not given, f"none of the given folders is the release {when}, by its sha256")
            self.parts.update((when, opened(x)) for x in at[:1])
            if not at:
                self.skip(f"the release {when}, {own['name']!r}: give its folder to check it")


KINDS: dict[str, type[Folder]] = {"gaussnoise.tables/3": Release, "gaussnoise.stream/2": Stream}
KINDS |= {"gaussnoise.combined/1": Combined, "gaussnoise.changes/1": Changes}


def opened(path: Path, *releases: Path) -> Any:
    """Return the object that checks a folder; ``releases`` are those of a folder of changes."""
    name = next((x for x in ("stream.json", "changes.json") if (path / x).exists()), "release.json")
    need(not (path / name).is_symlink(), "a link in place of a file")
    need((path / name).exists(), "there is no release.json", NotImplementedError)
    form = str((record := parsed((path / name).read_bytes().decode())).get("format"))
    why = {"gaussnoise.stream-tick/1": "one tick; check its stream, the folder with stream.json"}
    need(form in KINDS, why.get(form, f"the format {form!r:.60}"), NotImplementedError)
    need(not releases or name == "changes.json", "releases are given with changes alone")
    return KINDS[form](path, record, *releases)


if __name__ == "__main__":
    try:
        (found := opened(*map(Path, sys.argv[1:] or ["."]))).check()
    except Exception as error:  # noqa: BLE001 (any error is a fault of the folder)
        sys.exit(f"{'UNKNOWN' if type(error) is NotImplementedError else 'FAILED'}: {error!r}")
    found.skip("numbers, gamma, words of the record: by verify.py and the files beside it")
    print("CHECKED", *found.checked, "NOT CHECKED", *found.unchecked, sep="\n")
