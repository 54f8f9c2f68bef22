"""9. Optimality: the bounds gamma_lower <= gamma on the error of a release or of saved noise."""

import ast
import itertools
import math
import zipfile
from collections.abc import Iterable
from fractions import Fraction
from operator import mul
from pathlib import Path
from struct import iter_unpack
from typing import Any

from .privacy import Release, exact, need, parsed
from .tables import ONE, Matrix, dyadic, inverse_of, subsets, times


def check_bracket(one: Release) -> None:
    """Check gamma of a release, and gamma_lower if the record has its witness."""
    stated, of, entries = one.record["optimality"], one.numbers, one.record["marginals"]
    keys = "gamma", "gamma_lower", "certified_gap"
    upper, lower, gap = (float(exact(stated[key])) for key in keys)
    need(0 <= lower <= upper and gap == (upper / lower - 1 if upper else 0.0), "gamma")
    if one.plan["p"] != "2.0" or any(a.solved for a in of.own) or "workload" in one.record:
        return one.skip("the bracket of gamma, for this workload or norm")
    given = [Fraction(entry["weight"]) for entry in entries]
    top = max(map(abs, given)) or Fraction(1)  # or squares of small weights underflow
    losses = dict.fromkeys(one.multipliers, Fraction(0))
    for S, w in zip(one.tables, given, strict=True):
        for T in (T for T in subsets(S) if T in losses):
            losses[T] += (w / top) ** 2 / math.prod(of.sizes[i] for i in S)
    own = [Fraction(n**2 * a.own[0], ONE) for n, a in zip(of.sizes, of.own, strict=True)]
    parts = {T: loss * math.prod(own[i] for i in T) for T, loss in losses.items()}
    noise = sum(part / one.multipliers[T] ** 2 for T, part in parts.items())
    reached = math.sqrt(noise * one.noise["integer_sensitivity_squared"] / one.unit**2)
    reached *= float(top)
    need(math.isclose(upper, reached, rel_tol=1e-4), "gamma is not that of the multipliers")
    one.say(f"gamma = {upper!r}: the multipliers reach {reached!r} at unit sensitivity")
    number = Fraction(0)
    if one.record["neighbors"] == "replace":
        number = losses.get((), number)
        if (listed := stated.get("witness")) is None:
            return one.skip("gamma_lower, whose witness is not in the record")
        pairs = [({*one.at(x["differing"])}, Fraction(x["weight"])) for x in listed]
        whole = sum((w for _, w in pairs), Fraction(0))
        proper = all(w >= 0 and not D & {*one.public} for D, w in pairs)
        need(proper and abs(whole - 1) < 1e-9, "the witness")
        ratios = [Fraction(-1, max(n - 1, 1)) for n in of.sizes]
        for T in losses:
            alike = sum(w * math.prod(ratios[i] for i in D & {*T}) for D, w in pairs)
            losses[T] *= 2 - 2 * alike / whole
    ranks = {T: math.prod(of.sizes[i] - 1 for i in T) for T in losses}
    traces = sum(ranks[T] * math.isqrt(int(loss * ONE**2)) for T, loss in losses.items())
    proven = math.hypot(float(Fraction(traces, ONE)), math.sqrt(number)) * float(top)
    need(lower <= proven * (1 + 2.0**-51), f"gamma_lower is not proven, but {proven!r}")
    need(proven <= upper * (1 + 1e-12), "gamma is less than its proven lower end")
    one.say(f"gamma_lower = {lower!r}: uniform on all rows, or on pairs that differ as stated")


# ---- Saved answers
_MOST_PAIRS = 10**7  # pairs of records of which one replaces the other; these take minutes


def arrays_of(path: Path) -> dict[str, Any]:
    """Return {name: array} of an .npz file: a text, a list of numbers, or a list of rows."""
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
            finite = name == "trace.npy" or all(map(math.isfinite, flat))  # first bounds: infinite
            need(len(flat) == math.prod(shape) and finite, f"{name}")
            n, m = (*shape, 0)[:2] if shape else (1, 0)
            rows = [flat[k::n] if fortran else flat[k * m : k * m + m] for k in range(n)]
            found[name[:-4]] = rows if len(shape) == 2 else flat
    return found


def nuclear(A: Matrix) -> int:
    """Return a lower bound on the nuclear norm of a matrix A: ``<Q, A>`` for some ``‖Q‖ <= 1``."""
    if len(A) > len(A[0]):
        A = [*zip(*A, strict=True)]
    rows, columns = (max(sum(map(abs, row)) for row in M) for M in (A, [*zip(*A, strict=True)]))
    size, bits, best = math.isqrt(rows * columns) + 1, 64, 0
    Q, unit = [[(x << bits) // size for x in row] for row in A], 3 << 2 * bits
    most = (1 << bits) + 4 * len(A) * len(A[0])  # bounds Q's singular values: 1 and rounding
    for _ in range(80):  # Q <- (3 - Q Q') Q / 2 lets singular values grow towards 1, not above
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
    """A saved answer: noise for listed points, and a measure that proves the lower bound."""

    nuclear = staticmethod(nuclear)

    def __init__(self, path: Path, most: int = 10**8) -> None:
        self.checked, self.unchecked = list[str](), ["status, method, steps, trace"]
        self.arrays = given = arrays_of(path)
        self.header = header = parsed(given.pop("header"), float)  # p may be infinite
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
        few = self.relation != "replace" or self.n**2 < 2 * _MOST_PAIRS
        few &= self.n * self.d * self.r < most
        need(few, "too many points", NotImplementedError)
        need(self.shifted or not any(center), "a center without shift")
        flat, self.bits = dyadic([x for row in [*X, center] for x in row])
        size = self.d
        rows = [flat[k * size : (k + 1) * size] for k in range(self.n + 1)]
        self.points, self.center = rows[:-1], rows[-1]  # numerators over 2^bits

    def check(self) -> None:
        self.check_upper()
        self.check_lower()

    def edges(self) -> set[tuple[int, int]]:
        """Return the pairs of points (by index) that the policy graph joins."""
        found = {(min(e), max(e)) for e in self.arrays.get("policy_edges", ())}
        need(min(map(min, found), default=0) >= 0, "edges")
        return found

    def pairs(self, of: Iterable[Any]) -> Iterable[tuple[Any, Any]]:
        """Return all pairs of records that may replace each other."""
        return itertools.combinations(of, 2) if self.relation == "replace" else ()

    def check_upper(self) -> None:
        """Check gamma, and that each change x between neighbours is scale L b with ‖b‖ <= 1."""
        header, scale, points = self.header, Fraction(self.header["scale"]), self.points
        start = self.center if self.shifted else points[0]
        if self.relation != "add-remove":  # a shift keeps differences
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
        norm = 2 * math.isqrt(sum(x * x for row in H for x in row)) + 2  # bounds (L'L)^-1
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
        alone = [
            math.isqrt(sum(x * x for x in b)) + 1 + more for b, more in zip(B, extra, strict=True)
        ]
        both = [
            math.isqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True))) + 1 + more + other
            for (a, more), (b, other) in self.pairs(zip(B, extra, strict=True))
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
        """Check that the measure on changes proves gamma_lower, by a bound on a nuclear norm."""
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
        # roots of weights are rounded down: a smaller measure proves a smaller bound
        whole, power = sum(map(Fraction, mass)), p / (p - 2) if 2 < p < math.inf else 1.0
        need(abs(whole - 1) < 1e-9, "the weights of the measure")
        roots = [math.isqrt(int(Fraction(x) / whole * 2**200)) for x in mass]
        length = max(w) if p == 2 else math.fsum(x**power for x in w) ** (1 / power)
        need(length <= 1 + 2.0**-46, "the weights of coordinates")
        own = [math.isqrt(int(Fraction(x) * (1 - Fraction(1, 2**45)) * 2**200)) for x in w]
        unit = 1 << (200 + self.bits)
        if self.shifted:  # relative to their mean, so that shifting the center does not matter
            squares = [x * x for x in roots]
            means = [sum(map(mul, squares, column)) for column in zip(*values, strict=True)]
            whole = sum(squares)
            values = [[whole * x - y for x, y in zip(row, means, strict=True)] for row in values]
            unit *= whole
        pairs = zip(roots, values, strict=True)
        A = [[m * x * v for x, v in zip(row, own, strict=True)] for m, row in pairs]
        down = max(max(abs(x) for row in A for x in row).bit_length() - 120, 0)
        found = self.nuclear([[x >> down for x in row] for row in A]) - 2 * len(A) * self.d
        proven = float(Fraction(max(found, 0) << down, unit))
        need(stated <= proven * (1 + 2.0**-44), f"gamma_lower is not proven, but {proven!r}")
        need(math.isclose(stated, proven, rel_tol=5e-11), f"gamma_lower is {proven!r}")
        need(stated <= self.header["gamma"], "gamma is less than its lower end")
        self.checked.append(f"gamma_lower = {stated!r}: a nuclear norm, {proven!r} at least")
