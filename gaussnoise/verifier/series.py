"""Checks of tables of streams and of combined releases, computed from several other tables."""

import math
import tomllib
from fractions import Fraction
from typing import Any

from .privacy import Axes, Combined, Stream, need
from .tables import ONE, Cells, Measured, Tables, Units, dyadic, is_read


# ---- Streams
class Ticks(Measured):
    """The tables of a stream: the tables of each tick, and the noisy integers behind them."""

    def __init__(self, one: Stream) -> None:
        super().__init__(one)
        self.rows = one.rows
        self.periods: list[dict[Axes, Any]] = []  # integers over 2^bits
        self.totals, self.slacks = dict[Axes, list[float]](), list[float]()

    def check_tick(self, t: int, own: dict[str, Any]) -> None:
        """Check the tables of one tick."""
        self.known, now, at = {}, dict[Axes, Any](), self.folder.path / "ticks" / f"{t:04d}"
        self.periods.append(now)
        for what in ("period", "cumulative"):
            weights, row = [what == "cumulative"] * (t - 1) + [True], [0] * t
            for j in reversed(range(t)):  # solve row · time_matrix = weights
                rest = sum(row[i] * self.rows[i][j] for i in range(j + 1, t))
                row[j] = (ONE * weights[j] - rest) // self.rows[j][j]
            spread = Fraction(sum(x * x for x in row), ONE**2)
            noise = {T: v * spread for T, v in self.noise.items()}
            listed = [self.folder.at(entry["attributes"]) for entry in own[what]]
            need(sorted(listed) == sorted(self.tables), f"other tables in tick {t}")
            self.tables = listed
            for entry, S in zip(own[what], listed, strict=True):
                name = f"{what}/{entry['file']} of tick {t}"
                x, error = self.read(at / what, entry, noise, 1e-9)
                if x and what == "period":
                    before = self.totals.get(S, [0.0] * len(x)) if t > 1 else x
                    self.totals[S] = [a + b for a, b in zip(before, x, strict=True)] if t > 1 else x
                    now[S] = *dyadic(x), error
                    self.check_integers(name, S, now[S][:2], now[S][2], self.counts)
                    self.check_integers(name, S, *self.combined(S), self.units)
                same = not x or what == "period" or x == self.totals[S]
                need(same, f"{name} is not the sum of ticks")
        self.slacks += [slack for T, (_, slack) in self.known.items() if T[:1] != (-1,)]

    def combined(self, S: Axes) -> tuple[tuple[list[int], int], float]:
        """Return the weighted sum of ticks measured at the last tick, and its rounding error."""
        row, ticks = self.rows[len(self.periods) - 1], [own[S] for own in self.periods]
        most = max(bits for _, bits, _ in ticks)
        pairs = [*zip(row, ticks, strict=True)]
        parts = [[c * x << most - b for x in own] for c, (own, b, _) in pairs]
        error = math.fsum(abs(c) * e for c, (*_, e) in pairs)
        return ([sum(column) for column in zip(*parts, strict=True)], most), error


def check_stream(one: Stream) -> None:
    """Check the tables of all ticks."""
    of = one.numbers = Ticks(one)
    for t, own in enumerate(one.records, 1):
        of.check_tick(t, own)
    one.say(f"{len(one.records)} ticks from 1 on: that tables are added up")
    of.say(of.slacks)
    one.skip("time_lower and certified_gap, which have no witness; ledger; reports of a person")


# ---- Combined folders
def means_of(folder: Combined) -> tuple[dict[Axes, list[Fraction]], Units, dict[Axes, float]]:
    """Return {set: weighted mean of its measurements}, with variances and rounding errors."""
    every, means, noise, blurs = dict[Axes, list[Any]](), {}, dict[Axes, Fraction](), {}
    for of in (part.numbers for part in folder.parts.values()):
        for T, (whole, slack) in of.known.items():
            exact, unit = T[:1] == (-1,), (of.units | of.counts)[T]
            axes = folder.at(of.names[i] for i in T[exact:])
            need([*axes] == sorted(axes), "attributes in another order", NotImplementedError)
            unit *= math.prod(a.divisor for a in of.measuring(T).values())
            blur = float((Fraction(slack) + 1) / unit) if slack >= 0.25 else 0.0
            share = Fraction(1) if exact else 1 / of.noise[T]
            found = every.setdefault((-1,) * exact + axes, [])
            found.append(([x / unit for x in whole], share, blur))
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


def check_combined(folder: Combined) -> None:
    """Check that tables are means of the releases' tables, weighted by inverse variances."""
    record, parts = folder.record, [part.numbers for part in folder.parts.values()]
    for one, source in zip(folder.parts.values(), record["combined_from"], strict=True):
        listed = [entry["attributes"] for entry in one.record["marginals"]]
        about = tomllib.loads(one.plan["schema"]).get("about", {})
        title = one.plan.get("title", about.get("title"))
        same = (source["marginals"], source["title"]) == (listed, title)
        meant = one.record["neighbors_meaning"] == record["neighbors_meaning"]
        need(same and meant, "what is said of a release")
    known, used = dict[str, Cells](), dict[str, Cells]()
    for of in parts:
        asked = {i for S in of.tables for i in S}
        for i, (name, own) in enumerate(zip(of.names, of.own, strict=True)):
            known.setdefault(name, own)
            same = i not in asked or used.setdefault(name, own) == own
            need(same, f"{name!r} is measured differently")
    own, entries = known | used, {e["name"]: e for of in parts for e in of.domain}
    left = [line for line in folder.unchecked if "numbers in " in line]
    files = sorted({entry["file"] for entry in record["marginals"]})
    left += [f"numbers in {name}" for name in files if not is_read(name)]
    hint = "; hint: gaussnoise convert FOLDER --format csv"
    need(not left, f"{', '.join(left)}{hint}", NotImplementedError)
    folder.names = [*own]
    means, noise, blurs = means_of(folder)
    of = folder.numbers = Tables(folder, [*own.values()], noise)
    of.domain = [entries[name] for name in own]
    of.tables = [folder.at(entry["attributes"]) for entry in record["marginals"]]
    wanted = {folder.at(part.names[i] for i in S) for part in parts for S in part.tables}
    need({*of.tables} == wanted and len(of.tables) == len(wanted), "other tables")
    for entry, S in zip(record["marginals"], of.tables, strict=True):
        estimates, error = of.read(folder.path, entry, noise, 1e-12)
        values, bits = dyadic(estimates)
        for T in (T for T in means if {*T} - {-1} <= {*S}):
            axes = of.measuring(T).values()
            slack = 4 * error * math.sqrt(math.prod(a.square for a in axes)) + blurs[T]
            slack += math.prod(a.blur for a in axes) * 2.0**-49 * float(max(map(abs, means[T])))
            found = (Fraction(x, 1 << bits) for x in of.margin(S, values, T))
            agree = (abs(x - y) <= slack for x, y in zip(found, means[T], strict=True))
            need(all(agree), f"{entry['file']} is not the mean of the releases")
    folder.say(f"{len(means)} measurements: means of the releases', weighted by their precision")
    folder.skip("whether the releases are of the same rows: agreement, id, weight; answers/")
