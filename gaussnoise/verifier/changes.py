"""Checks of the tables of changes from one release to another."""

import itertools
import math
from typing import Any, NamedTuple

from .privacy import Changes, need
from .tables import ONE, Cells, Tables, Z, along, inverse_of, is_read, rows_of, spread_of, times

COLUMNS = [x + end for x in ("before", "after", "change") for end in ("", "_low", "_high")]
COLUMNS += ["change_standard_deviation", "per_cent", "per_cent_low", "per_cent_high"]


class Figure(NamedTuple):
    """An estimate with its standard deviation, its interval, and bounds of the true number."""

    x: float
    sd: float
    low: float
    high: float
    least: float = -math.inf
    most: float = math.inf
    is_mean: bool = False  # then its interval is cut to the bounds

    def within(self) -> tuple[float, float]:
        """Return the interval, cut to the bounds of the number; it contains the estimate."""
        if math.isnan(self.x):
            return self.least, self.most
        low, high, x = (min(max(end, self.least), self.most) for end in self[2:4] + self[:1])
        return min(low, x), max(high, x)


def normal(x: float, sd: float, least: float) -> Figure:
    """Return the figure of an estimate with normal noise, whose true number is >= ``least``."""
    return Figure(x, sd, x - Z * sd, x + Z * sd, least)


def quotient(x: float, y: float, vx: float, vxy: float, vy: float) -> tuple[float, float]:
    """Return the interval of x / y with all r for which x - r y may be zero (Fieller 1954)."""
    a, b, c = y * y - Z**2 * vy, x * y - Z**2 * vxy, x * x - Z**2 * vx
    if not (a > 0 and y > 0):
        return -math.inf, math.inf
    half = math.sqrt(max(b * b - a * c, 0.0)) / a
    return b / a - half, b / a + half


def row_of(before: Figure, after: Figure) -> list[float]:
    """Return a row of a table: both numbers, change, deviation, per cent; nan if unknown."""
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


def weighed(own: Cells, rows: list[list[int]]) -> Cells:
    """Return an attribute whose cells are sums of cells of ``own`` with the weights ``rows``."""
    n = len(own.labels)
    inverse = own.matrix and inverse_of([[1] * n, *own.matrix], ONE)
    if inverse is None:
        shares = ([ONE * (n * (i == k) - 1) // n**2 for k in range(n)] for i in range(n))
        inverse = [[ONE // n, *row] for row in shares]
    variances, shares = spread_of(times(rows, inverse))
    in_sets = {T: weighed(other, rows) for T, other in own.in_sets.items()}
    return own._replace(matrix=rows, own=variances, shares=shares, in_sets=in_sets)


def of_values(kind: str, d: float, n: float, noise: Any, ends: Any, most: float) -> Figure:
    """Return the sum or mean of n values at two ``ends``, d more at the upper than the lower."""
    (vd, vnd, vn), half, middle = noise, (ends[1] - ends[0]) / 2, ends[0] / 2 + ends[1] / 2
    if kind == "sum":
        variance = middle**2 * vn + 2 * middle * half * vnd + half**2 * vd
        sd, least = math.sqrt(max(variance, 0.0)), 0.0 if ends[0] >= 0 else -math.inf
        return normal(middle * n + half * d, sd, least)
    low, high = (middle + half * end for end in quotient(d, n, *noise))
    if not n > 0:
        return Figure(math.nan, math.nan, low, high, ends[0], most, is_mean=True)
    variance = vd - 2 * (d / n) * vnd + (d / n) ** 2 * vn
    x = min(max(middle + half * (d / n), ends[0]), most)
    sd = half * math.sqrt(max(variance, 0.0)) / n
    return Figure(x, sd, min(low, x), max(high, x), ends[0], most, is_mean=True)


def figures(of: Tables, kind: str, names: list[str], number: str | None) -> Any:
    """Return {labels: figure} of counts, sums or means; None if no table has the attributes."""
    axes = of.folder.at(names if number is None else [*names, number])
    S = next((S for S in of.estimates if {*axes} <= {*S}), None)
    if S is None:
        return None
    T = tuple(i for i in S if i in axes)  # in the table's order of attributes
    values, own = of.margin(S, of.estimates[S], (-1, *T)), [of.own[i] for i in T]
    cells = itertools.product(*[a.labels for a in own])
    keys = [tuple(cell[T.index(i)] for i in axes) for cell in cells]
    if number is None:
        pairs = zip(values, of.squares(T, own, of.noise), strict=True)
        return dict(zip(keys, (normal(x, math.sqrt(v), 0.0) for x, v in pairs), strict=True))
    k, entry = T.index(axes[-1]), of.domain[axes[-1]]
    ends = entry.get("clip") or (0.0, entry["unit"] * 2.0**20)
    most = ends[1] if "clip" in entry else math.inf
    n, size = len(own[k].labels), 3 if "weight between" in own[k].labels[1:2] else 2
    count, above = [1] * size, [-1, *[0] * (size - 2), 1]  # count at the upper end minus the lower
    rows = [row + [0] * (n - size) for row in (count, above, [0, *count[2:], 2])]  # and both
    lead = math.prod(len(a.labels) for a in own[:k])
    rest, own[k] = len(values) // (lead * n), weighed(own[k], rows)
    parts, found = along(values, lead, own[k], True), dict[Any, Figure]()
    squares = of.squares(T, own, of.noise)
    for place in range(lead * rest):
        block, j = divmod(place, rest)
        three = slice(3 * block * rest + j, 3 * (block + 1) * rest, rest)
        (y, x, _), (vy, vx, both) = parts[three], squares[three]
        noise, key = (vx, (both - vx - vy) / 2, vy), keys[n * block * rest + j][:-1]
        found[key] = of_values(kind, x, y, noise, ends, most)
    return found


def check_tables(folder: Changes) -> None:
    """Check the numbers of all tables."""
    tables = folder.record["tables"]
    for k, entry in enumerate(tables):
        check_table(folder, k, entry)
    read = sum(is_read(entry["files"]["changes"]) for entry in tables)
    folder.say(f"{read} tables: later less earlier, per cent, and intervals from both")
    folder.skip("names, notes, findings, population_means, tables that are left out")


def check_table(folder: Changes, k: int, entry: dict[str, Any]) -> None:
    """Check the numbers of table k; if both releases are known, compare with their tables."""
    kind, names, number = (entry[key] for key in ("statistic", "attributes", "number"))
    how = "to first order (Zou & Donner 2008)" if kind == "mean" else "exact"
    need(kind in ("count", "answer", "sum", "mean"), "the statistic")
    need(entry["intervals"] == f"intervals {how}", "what is said of intervals")
    need((number is None) == (kind in ("count", "answer")), "the number of a table")
    name = entry["files"]["changes"]
    if not is_read(name):
        return folder.skip(f"numbers in {', '.join(entry['files'].values())}")
    parts = folder.parts.values() if kind != "answer" else ()
    sides = [figures(one.numbers, kind, names, number) for one in parts]
    both = len(sides) == 2 and None not in sides
    if not both:
        own = ", and what follows from their noise" if kind == "mean" else ""
        folder.skip(f"that labels and numbers of {entry['name']!a} are of the releases{own}")
    heads = [*names]
    for column in COLUMNS:
        while column in heads:
            column += "_"
        heads.append(column)
    seen = set[tuple[str, ...]]()
    sheets = range(1 + len(folder.record["tables"]), 2 + len(folder.record["tables"]))
    for row in rows_of(folder.path / name, heads, k + 2, sheets):
        cell, ends = tuple(row[: len(names)]), (1, 2, 4, 5, 7, 8) if kind == "mean" else ()
        found = Tables.numbers(row[len(names) :], name, ends)  # an infinite end may be empty
        exact = found[6] == found[3] - found[0] or math.isnan(found[6])
        need(exact, f"{name}: a change is not the number after less that before")
        need(cell not in seen, f"a row of {name} occurs twice")
        seen.add(cell)
        need(not both or all(cell in side for side in sides), f"the labels of {name}")
        least = 0.0 if kind != "answer" and not found[11] < -100 else -math.inf
        given = (normal(x, (high - x) / Z, least) for x, high in (found[0:3:2], found[3:6:2]))
        pair = [side[cell] for side in sides] if both else [*given]
        known = [own for own in pair if not math.isnan(own.x)]
        noise, size = (sum(abs(own[k]) for own in known) for k in (1, 0))
        blur = 1e-13 / max(noise / (size or 1.0), 2.0**-25)  # rounding of per cents
        for place, (x, y) in enumerate(zip(found, row_of(*pair), strict=True)):
            close = 1e-9 * noise + 1e-12 * size if place < 10 else 1e-9 * (1 + abs(y)) + blur
            agree = abs(x - y) <= close or x == y or (math.isnan(x) and not math.isfinite(y))
            vain = not both and kind == "mean" and place not in (0, 3, 6)
            need(agree or vain, f"{name}: {COLUMNS[place]} of {', '.join(cell) or 'all'}")
    need(not both or len(seen) == len(sides[0]) == len(sides[1]), f"the rows of {name}")
