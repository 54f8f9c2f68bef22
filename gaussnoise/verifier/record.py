"""6. Texts of the record: labels, unit, workload, request, and agreement of repeated entries."""

import datetime
import hashlib
import itertools
import json
import re
from typing import Any

from .privacy import Attribute, Release, Stream, need

LEVEL = {"columns": ["low", "high"], "level": 0.95, "simultaneous": False}
ENDINGS = {"csv": ".csv", "parquet": ".parquet", "jsonl": ".jsonl", "xlsx": ".xlsx"}
ENDINGS |= {"sdmx-csv": "+sdmx.csv", "json-stat": ".json"}
REPEATED = "stream ticks neighbors privacy_unit participation privacy rho_of_all_ticks on_outside "
REPEATED += "person rows_per_person_and_tick rows_counted epsilon_delta_of_all_ticks disclaimers"


def texts(value: Any) -> Any:
    """Return labels and edges of bins as texts, also inside lists and objects."""
    if isinstance(value, dict | list):
        of = value.items() if isinstance(value, dict) else enumerate(value)
        found = {key: texts(x) for key, x in of}
        return found if isinstance(value, dict) else [*found.values()]
    value = value.isoformat() if isinstance(value, datetime.date) else value
    return str(value).lower() if value is True or value is False else str(value)


def moment(end: Any) -> Any:
    """Return an edge of a bin as a number, or as a time if it is a date or a text."""
    return end if isinstance(end, int | float) else datetime.datetime.fromisoformat(texts(end))


def floats(value: Any) -> Any:
    """Return a number, or nested lists of numbers, as floats."""
    return [*map(floats, value)] if isinstance(value, list) else float(value)


def entry_of(name: str, own: Attribute) -> dict[str, Any]:
    """Return the required entry of a record for an attribute, from its entry in the schema."""
    given, words = own.given, texts(own.given)
    edges, clip, base = given.get("edges", []), given.get("clip"), given.get("base")
    bins = [f"{'[('[a == '-inf']}{a}, {b})" for a, b in itertools.pairwise(texts(edges))]
    bins = [*bins[:-1], *(x if "inf)" in x else f"{x[:-1]}]" for x in bins[-1:])]
    named, other = words.get("names", bins), [words["other"]] if "other" in words else []
    need(len(named) == len(bins), f"names of the intervals of {name!r}")
    cells = words.get("categories", named) + other
    entry = {"name": name, "labels": cells}
    if edges:
        entry["edges"] = [str(float(end)) if type(end) is int else str(end) for end in edges]
    if clip:
        low, high = (f"weight at {float(end):.15g}" for end in clip)
        entry["labels"] = [low, *["weight between"] * (own.n - 2 - len(other)), high, *other]
        entry["clip"] = clip
    if "unit" in given:  # no upper bound: the last cell stands for 2^20 units
        entry["labels"] = ["weight at 0", f"weight at {given['unit'] * 2.0**20:.15g}"]
        entry["unit"] = given["unit"]
    if isinstance(base, dict):  # TOML writes whole numbers without a point
        base = {k: floats(x) if k in ("about", "values") else x for k, x in base.items()}
    entry |= {"base": floats(base) if isinstance(base, list) else base} if base else {}
    if "groups" in given:
        places = [*map(moment, edges)]

        def members(of: list[Any]) -> list[str]:
            if edges:
                return cells[places.index(moment(of[0])) : places.index(moment(of[1]))]
            return sorted(texts(of), key=cells.index)

        levels = given["groups"].items()
        entry["groups"] = {level: {x: members(of) for x, of in g.items()} for level, g in levels}
    return entry


def domain_of(one: Release) -> list[dict[str, Any]]:
    """Return the required entries of a record for all attributes, from their schema."""
    found = [*map(entry_of, one.names, one.own)]
    for entry, a in zip(found, one.own, strict=True):
        fault = f"labels of {entry['name']!r}"
        need(len({*entry["labels"]}) == len(entry["labels"]) == a.n, fault)
    return found


def unit_text(one: Release) -> str:
    """Return the required text of a release's record on the unit of privacy."""
    plan, k = one.plan, one.record["rows_per_person"]
    rows = f"{k} {'record' if plan.get('per_person') else 'row'}{' is' if k == 1 else 's are'}"
    if plan["person"] is None:
        return "one row" if k == 1 else f"one person of at most {k} rows"
    return f"one person (column {plan['person']!r}), of whom at most {rows} counted"


def relation_text(one: Release) -> str:
    """Return the required text of a release's record on neighbouring data."""
    k, person, public = one.record["rows_per_person"], one.plan["person"], one.plan.get("public")
    one_row, end = k == 1, "the number of rows is private"
    if one.record["neighbors"] == "add-remove":
        text = f"one {'row' if one_row else f'person with at most {k} rows'} more or less"
        more = "more or less, with any number of rows"
    else:
        rows = f"at most {k} rows of one person exchanged for as many others"
        text = "one row exchanged for another" if one_row else rows
        text += f", {'row by row ' * (k > 1)}of the same {' × '.join(public)}" if public else ""
        more = "exchanged for another, each with any number of rows, also with none that fit"
        if person is None:
            end = f"{'tables of these alone are' if public else 'the number of rows is'} public"
            end += " and exact"
    text = text if person is None else f"one person, a value of {person!r}, {more}"
    return f"{one.record['neighbors']} ({text}; {end})"


def unit_text_of_ticks(one: Stream) -> str:
    """Return the required text of a stream's record on the unit of privacy."""
    text, k, rows = unit_text(one), one.reports, one.record["rows_per_person"]
    if one.plan["person"] is not None:
        text = f"{text} in each of at most {k} ticks"
        return f"{text}, each two at least {one.apart} apart" if one.apart > 1 else text
    if k == 1:
        return text if rows == 1 else f"{text}, in one tick"
    each = "" if rows == 1 else f" of at most {rows} rows each"
    ticks = f"{one.apart} ticks apart or more" if one.apart > 1 else "in different ticks"
    return f"one person of at most {k} reports{each}, {ticks}"


def taking_part(one: Stream) -> str:
    """Return the required text of a stream's record on the ticks of one person."""
    person, k, rows = one.plan["person"], one.reports, one.record["rows_per_person"]
    own = "one row" if rows == 1 else f"at most {rows} rows"
    who = own if rows == 1 else f"{own} of one person"
    who = who if person is None else f"all rows of one value of {person!r}"
    other = "for another" if rows == 1 else "for as many others"
    change = "more or less" if one.moving else f"exchanged {other}"
    apart = f", each two at least {one.apart} ticks apart" if k > 1 < one.apart else ""
    if one.ticks.get("enforced") is True and person is not None:
        return f"{who} {change}, in any ticks; a registry lets at most {k} count{apart}"
    if k == 1:
        return f"{who} {change}, in one tick"
    own = own if person is None else "any number of rows"
    return f"one person with {own} {change} in each of at most {k} ticks{apart}"


def check_request(one: Release, unit: str, weights: list[float], bases: Any, more: Any) -> None:
    """Check the text of the unit, and the sha256 of the request made from these arguments."""
    record, plan, own = one.record, one.plan, one.noise.get("contrasts", {})
    in_sets = [(x["attribute"], x["contrasts"]) for x in one.noise.get("contrasts_in_sets", ())]
    need({name for name, _ in in_sets} <= {*own} <= {*one.names}, "matrices of other attributes")
    rows = itertools.chain(record.get("time_matrix", ()), *own.values(), *(C for _, C in in_sets))
    need(all(" ".join(str(int(x)) for x in row.split(" ")) == row for row in rows), "integers")
    need(record["privacy_unit"] == unit, f"privacy_unit is not {unit!r}")
    need(plan["weights"] == (None if plan["targets"] else weights), "weights of the plan")
    late = ["person", "per_person", "public", "ranges", "title", "source"]
    w = one.weight and {"weight": [one.weight["column"], f"{one.weight['most']:.9g}"]}
    request = (w or {}) | {key: plan[key] for key in late if plan.get(key) is not None}
    marginals = [sorted(map(one.names.index, t)) for t in one.asked]
    request |= {"schema": plan["schema"], "marginals": marginals}
    request |= {"weights": [f"{weight:.9g}" for weight in weights], "p": plan["p"]}
    request |= {"neighbors": record["neighbors"], "rho": f"{record['privacy']['rho']:.9g}"}
    request |= {key: plan["privacy"][key] for key in ["scale"] if key in plan["privacy"]}
    request |= {"rows_per_person": record["rows_per_person"]} | more
    note, wholes = {"catch-alls": "in no query that takes cells in order"}, [request]
    if bases:
        values = {"bases": [list(term.values()) for term in bases]}
        wholes = [values | request, values | note | request]
    digests = [hashlib.sha256(json.dumps(whole).encode()).hexdigest() for whole in wholes]
    need(record["request_sha256"] in digests, "request_sha256 is not that of the request")
    one.say(f"{record['neighbors']}, {unit}: all that the record states twice agrees")


def terms_of(one: Release, domain: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return {attribute: base} of every requested table, in the order of the domain."""
    usual = {entry["name"]: entry.get("base", "identity") for entry in domain}
    return [
        {n: usual[n] if t[n] is None else t[n] for n in sorted(t, key=one.names.index)}
        for t in one.asked
    ]


def check_release(one: Release) -> None:
    """Check that the domain follows from the schema, and the workload from the plan."""
    record, domain = one.record, domain_of(one)
    for entry, own in itertools.zip_longest(record["domain"], domain):
        words = {key: texts(entry[key]) for key in ("labels", "groups") if key in entry}
        need(entry | words == own, f"{own['name']!r} is not that of the schema")
    meant = relation_text(one)
    need(record["neighbors_meaning"] == meant, f"neighbors_meaning is not {meant!r}")
    entries, terms = record.get("workload", record["marginals"]), terms_of(one, domain)
    asked = [one.at(term.get("bases", term.get("attributes"))) for term in entries]
    need([*dict.fromkeys(asked)] == one.tables, "the workload asks for other tables")
    need(asked == [one.at(term) for term in terms], "the plan's workload")
    cells = (dict.fromkeys(term, "identity") for term in terms)
    bases = [entry.get("bases", own) for entry, own in zip(entries, cells, strict=True)]
    need(terms == bases, "the bases")
    weights = [entry["weight"] for entry in entries]
    check_request(one, unit_text(one), weights, terms if "workload" in record else None, {})


def check_stream(one: Stream) -> None:
    """Check the texts of a stream's record, and the same texts in the records of its ticks."""
    record, terms = one.record, terms_of(one, domain_of(one))
    part = taking_part(one)
    need(record["participation"] == part, f"not {part!r}")
    bases = any(x != "identity" for term in terms for x in term.values())
    more = {"ticks": one.ticks}
    check_request(one, unit_text_of_ticks(one), one.plan["weights"], terms if bases else None, more)
    need(record["table_format"] in ENDINGS and len(record["stream"]) == 32, "table_format")
    for t, own in enumerate(one.records, 1):
        same = all(own.get(key) == record.get(key) for key in REPEATED.split())
        need(same, f"tick {t} is of another stream")
        said = own["cumulative_meaning"], own["period_meaning"], repr(own["tick"])
        meant = f"all rows of ticks 1 to {t}", f"the rows of tick {t} alone", repr(t)
        need(said == meant, f"meaning of tick {t}")
        need(repr(own["intervals"]) == repr(LEVEL), "intervals")
        need(re.fullmatch("[0-9a-f]{64}", own["measurements_sha256"]), "measurements_sha256")
        files = [entry["file"] for what in ("period", "cumulative") for entry in own[what]]
        need(all(x.endswith(ENDINGS[record["table_format"]]) for x in files), "table_format")
