"""The privacy of a published folder, from its files alone, in exact arithmetic.

``python privacy.py [PATH]`` prints what it checked, and what it did not: the other files, which use
this one, check more. A release is computed (tables.py) from integers with noise alone,

    s_T (⊗_{i∈T} C_i) u N_T + z_T, for sets T of attributes, with the counts N_T of their cells,

integer matrices C_i, multipliers s_T, a unit u, and independent discrete Gaussians z_T of scale σ.
If the vector of all these integers changes by at most Δ between neighbours, the release is
Δ²/(2σ²)-zCDP (Canonne, Kamath & Steinke 2020). Δ is computed here.
"""

import hashlib
import itertools
import json
import math
import sys
import tomllib
from collections.abc import Iterable, Sequence
from fractions import Fraction
from operator import mul
from pathlib import Path
from typing import Any

Axes = tuple[int, ...]  # positions of attributes
CLOSE = 1 + Fraction(8, 2**53)  # a few roundings of doubles
GAUSSIAN = {"zCDP": ("zCDP", "rho"), "GDP": ("Gaussian DP", "mu"), "KL": ("KL privacy", "alpha")}
UNIT = ("neighbors", "rows_per_person", "person")


def need(holds: object, fault: str, kind: type[Exception] = ValueError) -> None:
    """Raise an error with the text ``fault`` unless a statement holds."""
    if not holds:
        raise kind(fault)


def parsed(text: str | bytes) -> dict[str, Any]:
    """Return a JSON object, after checking that no key occurs twice in it."""
    pairs = list[list[Any]]()
    record = json.loads(text, object_pairs_hook=lambda x: pairs.append(x) or dict(x))
    need(all(len(dict(x)) == len(x) for x in pairs), "a key of the record occurs twice")
    return record


def digest_of(path: Path) -> str:
    """Return the sha256 of a file; "" if there is no file."""
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


# ---- 1. Files
def check_files(at: Path, listed: dict[str, str], tables: Iterable[str], free: str = "") -> None:
    """Check the sha256 of every file, and that no file is missing or was added."""
    need(not any(p.is_symlink() for p in at.rglob("*")), "a link in place of a file")
    names = {p.relative_to(at).as_posix() for p in at.rglob("*") if not p.is_dir()}
    names -= {"release.json", "changes.json", "signature.json"} - {*listed}
    need(names == set(listed), f"missing or added: {sorted(names ^ set(listed))}")
    files = {"summary.txt", "method.txt", "ddi.xml", *tables}
    files |= {f"{name}-metadata.json" for name in files if name.endswith(".csv")}
    more = {x for x in names - files if "".join(x.partition("/")[:2]) not in free.split()}
    need(files <= names and not more, f"not of a release: {sorted(files - names | more)}")
    for name, sha256 in listed.items():
        need(digest_of(at / name) == sha256, f"{name!r} has another sha256 than the record states")
    need("NOT PRIVATE" not in (at / "summary.txt").read_text("utf-8"), "a simulation")


class Folder:
    """A folder, the lines that report its checks, and the releases that are its parts."""

    free = "release.png answers/ verifier/"  # files, and folders of files, that may exist

    def __init__(self, path: Path, record: dict[str, Any], *_: Path) -> None:
        self.path, self.record, self.parts = path, record, dict[str, Any]()
        self.checked, self.unchecked = list[str](), list[str]()
        self.say, self.skip = self.checked.append, self.unchecked.append
        self.numbers: Any = None  # the tables, set by other files
        self.tabled = {entry["file"] for entry in record.get("marginals", ())}  # must exist

    def check_files(self) -> None:
        """Check that the files are those that the record lists."""
        need(self.record["private"] is True, "a simulation, which is not private")
        check_files(self.path, listed := self.record["files"], self.tabled, self.free)
        self.say(f"{len(listed)} files: each has the stated sha256, and there is no other")

    def check_parts(self, said: Any, sides: list[Any], whole: float | None) -> None:
        """Check the parts, the facts ``said`` about each, and that ρ is the sum over all sides."""
        for name, part in self.parts.items():
            part.check()
            same = all(said[name][key] == part.record[key] for key in (*UNIT, "rho"))
            need(same, f"what is said of {name}: rho, or another unit of privacy")
        rho = sum((Fraction(side["rho"]) for side in sides), Fraction(0))
        need(whole is None or rho <= Fraction(whole) <= rho * CLOSE, "rho is not the sum of all")

    def include(self) -> None:
        """Add the lines of the parts, each after the name of its part."""
        for name, part in self.parts.items():
            part.include()
            self.checked += [f"{name}: {said}" for said in part.checked]
            self.unchecked += [f"{name}: {left}" for left in part.unchecked]


class Attribute:
    """An attribute: its entry in the schema, and the integer matrix C that measures it."""

    def __init__(self, name: str, given: dict[str, Any], rows: list[str] | None) -> None:
        base, n = given.get("base"), len(given.get("categories") or given.get("edges", ())[1:])
        if "clip" in given or "unit" in given:  # both bounds, and between
            n = 2 + ("clip" in given and isinstance(base, dict) and 2 in base["degrees"])
        n += "other" in given and "unit" not in given
        need(n > 0, f"labels of {name!r}")
        self.given, self.n, self.matrix = given, n, None  # n I - 1 1'
        self.square, self.least = n * n - n, -n  # C's columns: largest square, least product
        if rows is not None or n < 3:
            C = [[1, -1][:n]] if rows is None else [[*map(int, row.split(" "))] for row in rows]
            need(rows is None or [*map(len, C)] == [n] * (n - 1), f"the matrix of {name!r}")
            pairs = itertools.combinations_with_replacement(zip(*C, strict=True), 2)
            products = [sum(map(mul, a, b)) for a, b in pairs]
            self.matrix, self.square, self.least = C, max(products), min(products)


class Release(Folder):
    """A release of tables; :class:`Stream` inherits its checks."""

    free = "noise.npz " + Folder.free
    growth = 1  # a stream's squared sensitivity over ticks

    def __init__(self, path: Path, record: dict[str, Any], *_: Path) -> None:
        super().__init__(path, record)
        for key in ("marginals", "measurements", "workload"):
            why = f"more than 1000 {key}, whose list is in Parquet"
            need(type(record.get(key, [])) is list, why, NotImplementedError)
        self.plan, self.noise = plan, noise = record["plan"], record["noise"]
        schema, matrices = tomllib.loads(plan["schema"])["attributes"], noise.get("contrasts", {})
        self.names = [*schema]
        self.own = [Attribute(name, own, matrices.get(name)) for name, own in schema.items()]
        need({*matrices} <= {*schema}, "matrices of other attributes")
        measured = [(self.at(of["attributes"]), of["multiplier"]) for of in record["measurements"]]
        self.multipliers = {T: int(s) for T, s in measured}
        need([(T, str(s)) for T, s in self.multipliers.items() if s > 0] == measured, "multipliers")
        self.public, self.weight = self.at(plan.get("public", ())), plan.get("weight")
        self.most = Fraction(self.weight["most"] if self.weight else 1)
        self.unit = noise.get("unit", {"units_of_a_row": 1})["units_of_a_row"]
        self.moving = record["neighbors"] == "add-remove" or record["person"] is not None
        given = plan["workload"]
        given = itertools.combinations(schema, given) if type(given) is int else given
        self.asked = [t if isinstance(t, dict) else dict.fromkeys(t) for t in given]
        self.tables = [self.at(entry["attributes"]) for entry in record["marginals"]]
        need(len({*map(frozenset, self.tables)}) == len(self.tables), "a table is listed twice")

    def at(self, names: Iterable[str]) -> Axes:
        """Return the positions of attributes."""
        found = tuple(map(self.names.index, names))
        need(len({*found}) == len(found), "names twice")
        return found

    # ---- 2. Unit of privacy
    def check_unit(self) -> None:
        """Check the neighbours: data that differ in one row, or in all rows of a person."""
        record, plan, k = self.record, self.plan, self.record["rows_per_person"]
        same = all(record.get(key) == plan.get(key) for key in (*UNIT, "per_person"))
        relations = ("add-remove",) if self.weight else ("add-remove", "replace")
        need(same and type(k) is int and k > 0 and record["neighbors"] in relations, "unit")
        need(self.weight == self.noise.get("unit", {}).get("weight") and self.most > 0, "weight")

    # ---- 3. Measurements
    def check_measured(self) -> None:
        """Check that the measured sets are exactly those from which the tables are computed."""
        wide = [[i for i in S if self.own[i].n > 1] for S in self.tables]
        inside = {T for S in wide for k in range(len(S) + 1) for T in itertools.combinations(S, k)}
        wanted = {T for T in inside | {()} if not {*T} <= {*self.public} or (self.moving and not T)}
        need({*self.multipliers} == wanted and not (self.public and self.moving), "measured sets")
        used = [self.own[i].given for S in self.tables for i in S]
        parts = self.weight or any("clip" in given or "unit" in given for given in used)
        need(str(self.unit) in [str(1 << b) for b in (range(10, 21) if parts else [0])], "units")

    # ---- 4. Sensitivity
    def inner(self, D: Iterable[int] = ()) -> int:
        """Return the least inner product of all ``s_T ⊗ C_i`` on two rows that differ in D."""
        # it is affine in each attribute's inner product, so least where each is extreme
        ends = [a.least if i in D else a.square for i, a in enumerate(self.own)]
        return sum(s * s * math.prod(ends[i] for i in T) for T, s in self.multipliers.items())

    def moved(self) -> Fraction | int:
        """Return the largest squared change of all ``s_T ⊗ C_i`` between neighbours, for u = 1."""
        if grows := [i for i in {*sum(self.tables, ())} if "unit" in self.own[i].given]:
            return self.paid(grows)
        if self.record["neighbors"] == "add-remove":
            return self.inner()
        free = sorted({i for T in self.multipliers for i in T} - {*self.public})
        steps = len(self.multipliers) << len(free)
        need(steps < 10**7, "too many attributes", NotImplementedError)
        sets = (D for k in range(len(free) + 1) for D in itertools.combinations(free, k))
        return max(2 * (self.inner() - min(map(self.inner, sets))), self.inner() * self.moving)

    def paid(self, grows: list[int]) -> Fraction | int:
        """Return the least m with ``a + Σ b_j u_j² <= m (1 + Σ (u_j/t_j)²)`` for all u_j."""
        # u_j: numbers without upper bound, over 2^20 units; t_j: their scales
        scales, k = self.plan["privacy"].get("scale", {}), self.record["rows_per_person"]
        kind = self.plan["neighbors"], self.plan.get("per_person"), self.weight
        need(kind == ("add-remove", None, None), "the budget")
        apart = all(self.names[i] in scales and self.own[i].matrix == [[0, 1]] for i in grows)
        need(apart and self.unit == 1 << 20, "sums are not measured apart, or without a scale")
        squares = {T: s * s for T, s in self.multipliers.items()}
        lengths = {T: s * math.prod(self.own[i].square for i in T) for T, s in squares.items()}
        need(all(len({*T} & {*grows}) < 2 for T in lengths), "a product of such numbers")
        sums = [Fraction(sum(b for T, b in lengths.items() if {*T}.isdisjoint(grows)))]
        for i in grows:
            end = Fraction(str(self.own[i].given["unit"])) * 2**20 * k  # k rows cost k^2 as much
            t = Fraction(str(scales[self.names[i]])) / end
            sums.append(t**2 * sum(b for T, b in lengths.items() if i in T))
        self.say(f"(1 + sum of squares) {float(max(sums)):.6g}: any numbers in {k} row(s)")
        return max(sums)

    # ---- 5. Privacy
    def check(self) -> None:
        self.check_files()
        self.check_unit()
        self.check_measured()
        record, noise = self.record, self.noise
        budget, k = record["privacy"], record["rows_per_person"]
        exact = math.ceil(self.moved() * self.unit**2) * self.growth
        stated = noise["integer_sensitivity_squared"]
        need(type(stated) is int and stated == exact, f"the squared sensitivity is {exact}")
        self.say(f"squared sensitivity {stated}: over all neighbours by {record['neighbors']}")
        sigma, rho = Fraction(noise["sigma"]), Fraction(noise["rho_of_one_row"])
        need(stated <= 2 * rho * sigma**2 <= stated * CLOSE and sigma >= 0, "rho_of_one_row")
        ranges = [Fraction(own["rho"]) for own in self.plan.get("ranges", [])]
        least, charged = rho * k * k + sum(ranges), Fraction(record["rho"])
        need(least <= charged <= least * CLOSE and min([*ranges, 1]) >= 0, "rho")
        need(charged <= Fraction(budget["rho"]), "more was spent than the budget")
        self.say(f"rho = {record['rho']!r}: {k}^2 sensitivity^2 / (2 sigma^2), and ranges")
        self.unchecked += ["the noise with which ranges were found"] if ranges else []
        self.check_budget(dict(self.plan["privacy"]), budget)

    def check_budget(self, asked: dict[str, Any], budget: dict[str, Any]) -> None:
        """Check that the budget is the planned one, and that its ρ follows from the guarantee."""
        kind, known = asked.pop("definition"), (*GAUSSIAN, "ApproxDP", "TV", "PerRecord")
        need(kind in known, f"the guarantee {kind!r:.60}", NotImplementedError)
        if kind == "PerRecord":
            zeros = {"definition": "zCDP", "rho": budget["rho"]}
            same = asked == {"privacy": zeros, "scale": budget["scales"]}
            need(same and budget["definition"] == "per-record zCDP", "the budgets of rows")
            return self.say(f"PerRecord {asked}: rho of rows of zeros, which grows")
        need(asked.items() <= budget.items(), "the budget is not that of the plan")
        if kind not in GAUSSIAN:
            return self.skip(f"that rho = {budget['rho']!r} implies {kind} {asked}")
        need((budget["definition"], *asked) == GAUSSIAN[kind], "another definition of privacy")
        (given,) = map(Fraction, asked.values())
        most = given**2 / 2 if kind == "GDP" else given
        need(given > 0 and Fraction(budget["rho"]) <= most, f"rho is too large for {kind}")
        return self.say(f"{kind} {asked}: its Gaussians have this rho")


# ---- Streams
def largest_change(C: Sequence[Sequence[int]], k: int, apart: int) -> int:
    """Return the largest ``Σ_{i,j∈π} |(C'C)_ij|``: π has at most k ticks, any two ``apart`` apart.

    If there are millions of sets π, it is an upper bound.
    """
    n, columns = len(C), [*zip(*C, strict=True)]
    X = [[abs(sum(map(mul, a, b))) for b in columns] for a in columns]
    if k < 3 or k**2 * sum(math.comb(n - j * (apart - 1), j + 1) for j in range(k)) < 2**23:
        most, left = 0, [(0, 0, [X[i][i] for i in range(n)], k)]
        while left:
            first, value, gains, more = left.pop()  # earliest next tick; what each tick adds
            most = max(most, value + max(gains[first:], default=0))
            for i in range(first, n) if more > 1 else ():
                both = [g + 2 * x for g, x in zip(gains, X[i], strict=True)]
                left.append((i + apart, value + gains[i], both, more - 1))
        return most

    def largest(weights: list[int], k: int) -> int:
        before = [0] * (n + 1)
        for _ in range(k):
            best = [0]
            for j, weight in enumerate(weights, 1):
                best.append(max(best[j - 1], before[max(j - apart, 0)] + weight))
            before = best
        return before[n]

    bounds = []  # a pair of ticks counts once at both, or twice at the later or the earlier
    for early, late in ((1, 1), (2, 0), (0, 2)):
        far = [[x * (abs(i - j) >= apart) for j, x in enumerate(row)] for i, row in enumerate(X)]
        once = (
            [early * x for x in row[:i]] + [late * x for x in row[i:]] for i, row in enumerate(far)
        )
        bounds.append(largest([X[i][i] + largest(row, k - 1) for i, row in enumerate(once)], k))
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
        n, self.apart, reports = (self.ticks[key] for key in ("n", "apart", "reports"))
        need(all(type(x) is int and x > 0 for x in (n, self.apart, reports)), "ticks")
        self.reports = min(reports, (n - 1) // self.apart + 1)
        self.rows = [list(map(int, row.split(" "))) for row in record["time_matrix"]]
        need([*map(len, self.rows)] == [*range(1, n + 1)], "time_matrix is not lower triangular")
        need(all(row[-1] > 0 for row in self.rows), "a tick is not measured")
        self.tables = [*{tuple(sorted(self.at(term))) for term in self.asked}]
        self.records = list[dict[str, Any]]()  # one for each tick

    def check_unit(self) -> None:
        super().check_unit()
        need(self.moving or self.record["person"] is None, "exchanged persons")
        alone = (self.record["neighbors"], self.record["person"]) == ("add-remove", None)
        need(alone or "corrections" not in self.ticks, "corrections")  # signs change the total
        C = [row + [0] * (len(self.rows) - len(row)) for row in self.rows]
        least = largest_change(C, self.reports, self.apart)
        need(type(D := self.growth) is int and D >= least, f"ticks' sensitivity is {least}")
        self.say(f"squared sensitivity {D} of ticks, {least} at least: over all reports")

    def check_files(self) -> None:
        there, place = {p.name for p in self.path.iterdir()}, self.path / "ticks"
        more = there - {"stream.json", "ticks", "private", "verifier", "signature.json"}
        need(not more, "files of no stream")
        folders = sorted(p.name for p in place.iterdir())
        numbers = [f"{t:04d}" for t in range(1, len(self.rows) + 1)]
        need(folders == numbers[: len(folders)], "a tick missing")
        for t, name in enumerate(folders, 1):
            own = parsed((place / name / "release.json").read_bytes())
            need((own["format"], own["tick"]) == ("gaussnoise.stream-tick/1", t), f"no tick {t}")
            need(own["private"] is True, "a simulation, which is not private")
            files = [f"{what}/{e['file']}" for what in ("period", "cumulative") for e in own[what]]
            check_files(place / name, own["files"], files)
            self.records.append(own)
        self.say(f"{len(folders)} ticks from 1 on: each of their files has the stated sha256")
        if "private" in there:
            self.skip("private/: never publish it")


# ---- Combined folders
class Combined(Folder):
    """Tables combined from releases of the same rows; the folder also holds these releases."""

    free = "releases/ " + Folder.free

    def __init__(self, path: Path, record: dict[str, Any], *_: Path) -> None:
        super().__init__(path, record)
        for source in record["combined_from"]:
            at = path / source["folder"]
            need(at.parent == path / "releases", "a release in another place")
            one = self.parts[at.name] = opened(at)
            need(digest_of(at / "release.json") == source["sha256"], "the sha256 of a release")
            need(type(one) is Release, "no release", NotImplementedError)

    def check(self) -> None:
        self.check_files()
        record, plans = self.record, [one.plan for one in self.parts.values()]
        there = {p.name for p in (self.path / "releases").iterdir()}
        need(there == {*self.parts}, "releases that are not combined")
        need(len(record["combined_from"]) == len(there) > 1, "a release twice")
        keys = ("public", "per_person", "weight")
        same = all(plan.get(key) == plans[0].get(key) for plan in plans for key in keys)
        need(same, "other rows or counts")
        sides = [record | {"rho": source["rho"]} for source in record["combined_from"]]
        self.check_parts(dict(zip(self.parts, sides, strict=True)), sides, record["rho"])
        self.say(f"rho = {record['rho']!r}: the sum of all releases'")


KINDS: dict[str, dict[str, type[Folder]]] = {
    "release.json": {"gaussnoise.tables/3": Release, "gaussnoise.combined/1": Combined},
    "stream.json": {"gaussnoise.stream/2": Stream},
    "changes.json": {},  # set by changes.py; privacy.py checks the two releases themselves
}


def opened(path: Path, *releases: Path) -> Any:
    """Return the object that checks a folder; ``releases``: both, for a folder of changes."""
    name = next((x for x in ("stream.json", "changes.json") if (path / x).exists()), "release.json")
    need(not (path / name).is_symlink(), "a link in place of a file")
    record = parsed((path / name).read_bytes())
    form = str(record.get("format"))
    why = {"gaussnoise.stream-tick/1": "one tick; check its stream, the folder with stream.json"}
    why |= {"gaussnoise.changes/1": "changes, made of two releases: check each of these alone"}
    need(form in KINDS[name], why.get(form, f"the format {form!r:.60}"), NotImplementedError)
    need(not releases or name == "changes.json", "releases are given with changes alone")
    return KINDS[name][form](path, record, *releases)


if __name__ == "__main__":
    try:
        found = opened(*map(Path, sys.argv[1:] or ["."]))
        found.check()
    except Exception as error:  # noqa: BLE001 (any error is a fault of the folder)
        sys.exit(f"FAILED: {error!r}")
    found.include()
    found.skip("numbers, gamma, words of the record: by verify.py and the files beside it")
    print("CHECKED", *found.checked, "NOT CHECKED", *found.unchecked, sep="\n")
