"""Untrusted records: what is loaded can be printed, and everything else raises a typed error.

Every value of a record becomes each of ``ODD``, is dropped, wrapped, or cut, one at a time.
Estimates of estimators have the same test beside them.
"""

import copy
import dataclasses
import functools
import io
import itertools
import json
import math
import operator
import zipfile

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn

# Values of every JSON type: at the ends of doubles and of 64 bits, integers that no double holds
# or that Python refuses to read (more than 4300 digits), texts that no terminal or file takes.
HUGE = 10**4000
ODD = (
    *(None, True, 0, 1, -1, 2**64, HUGE, -HUGE),
    *(0.5, 1e308, 5e-324, math.nan, math.inf, -math.inf),
    *("", "x", "1", "\ud800", "\x1b[31m", "1" * 5000),
    *([], {}, [[]], [None], {"a": 1}, [1, "x"], [HUGE], [math.nan]),
)
TEXTS = {"more digits than Python reads": "1" * 5000, "deep": "[" * 900 + "]" * 900}
SHOWN = 3  # places in a list; the others are like these


def places(value, at=()):
    """Yield the places of all values in a record."""
    if isinstance(value, dict):
        inside = list(value)
    else:
        inside = range(min(len(value), SHOWN)) if isinstance(value, list) else ()
    for key in inside:
        yield (*at, key)
        yield from places(value[key], (*at, key))


def changed(record, path, change):
    """A copy, in which ``change(container, key)`` was called at a place."""
    record = inner = copy.deepcopy(record)
    for key in path[:-1]:
        inner = inner[key]
    change(inner, path[-1])
    return record


def changes(record):
    """Yield a place and how its value is changed, for every mutant."""
    for path in places(record):
        old = functools.reduce(operator.getitem, path, record)
        news = [*ODD, *TEXTS, [old], {"a": old}, str(old), [old] * 100]
        news += [old[:-1], old[::-1]] if isinstance(old, list) else []
        for new in news:
            yield path, lambda at, key, new=new: operator.setitem(at, key, new)
        yield path, operator.delitem


def mutants(record, every):
    """Records as JSON texts, each with at most one value changed."""
    for path, change in itertools.islice(changes(record), 0, None, every):
        text = json.dumps(changed(record, path, change))
        yield functools.reduce(lambda t, name: t.replace(f'"{name}"', TEXTS[name]), TEXTS, text)


SCHEMA = gn.Schema(
    [
        gn.Attribute("sex", ["F", "M"], other="o"),
        gn.Attribute("age", edges=[0, 18, 65], base="prefix", other="o"),
    ]
)
ROWS = pa.table({"sex": ["F", "M"], "age": [3, 40], "w": [1.0, 2.0], "who": [1, 2]})


def categories(folder):
    found = gn.discover_categories(
        pa.table({"job": ["nurse"] * 500 + ["teacher"] * 400}), "job", gn.ApproxDP(1.0, 1e-6)
    )
    found.save(folder / "found.json")
    return folder / "found.json", lambda: gn.results.Categories.load(folder / "found.json")


def mean(folder):
    mechanism = gn.GaussianMechanism(gn.optimal_noise(gn.LpBall(2, 2)), gn.zCDP(0.1), n=3)
    mechanism.release(np.zeros((3, 2))).save(folder / "mean.json")
    load = gn.Release.load
    return folder / "mean.json", lambda: load(folder / "mean.json", mechanism.covariance)


def tables(folder, schema=SCHEMA, **options):
    plan = gn.plan(schema, 1, gn.zCDP(1.0), **options)
    plan.release(ROWS, out=folder / "out")
    return folder / "out" / "release.json", lambda: gn.TableRelease.load(folder / "out")


def accurate_tables(folder):
    sex, age = SCHEMA.attributes
    cells = gn.Schema([sex, dataclasses.replace(age, base="identity")])  # solved again at once
    asked = {"targets": [None, gn.Target(500)], "public": ["sex"], "neighbors": "replace"}
    return tables(folder, cells, **asked)


def weighted_tables(folder):
    return tables(folder, weight=gn.Weight("w", 2.0), person="who", rows_per_person=2)


def stream(folder):
    plan = gn.plan(SCHEMA, 1, gn.zCDP(1.0), over=gn.streams.Ticks(2))
    plan.start(folder / "weekly").tick(ROWS, number=1)
    return folder / "weekly" / "stream.json", lambda: gn.streams.Stream.open(folder / "weekly")


def tick(folder):
    stream(folder)
    record = folder / "weekly" / "ticks" / "0001" / "release.json"
    return record, lambda: gn.streams.Stream.open(folder / "weekly").total(1)


def archive(folder, made):
    """A header in numpy's archive; its arrays are the subject of ``test_archive.py``."""
    made.save(folder / "whole.npz")
    with zipfile.ZipFile(folder / "whole.npz") as file:
        members = {name: file.read(name) for name in file.namelist()}
    header = str(np.load(io.BytesIO(members["header.npy"])))

    def write(text):
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.asarray(text))
        with zipfile.ZipFile(folder / "mutant.npz", "w") as file:
            for name, content in (members | {"header.npy": buffer.getvalue()}).items():
                file.writestr(name, content)

    return header, write, lambda: type(made).load(folder / "mutant.npz")


# Only some mutants are tried, a few hundred of a long record. The step is a prime, so that all
# values and all places take part.
EVERY = {
    "categories": (categories, 3),
    "mean": (mean, 3),
    "tables": (tables, 31),
    "accurate tables": (accurate_tables, 31),
    "weighted tables": (weighted_tables, 31),
    "stream": (stream, 13),
    "tick": (tick, 23),
}


@pytest.mark.usefixtures("quick_pictures")
@pytest.mark.parametrize("kind", EVERY)
def test_mutants_of_records_are_refused_by_type_or_can_be_shown(tmp_path, kind):
    make, every = EVERY[kind]
    path, load = make(tmp_path)
    whole = path.read_text(encoding="utf-8")
    check(whole, lambda text: path.write_text(text, encoding="utf-8"), load, every)


ARCHIVES = {
    "points": lambda: gn.optimal_noise(gn.FiniteSet(np.eye(3))),
    "body": lambda: gn.gamma(gn.LpBall(3, 2)),
    "marginals": lambda: gn.optimal_noise(gn.Marginals.all_kway([2, 3], 1)),
    "stream": lambda: gn.optimal_noise(gn.streams.prefix_sums(4)),
    "local": lambda: gn.LocalMechanism(gn.LpBall(3, 2), gn.LocalDP(1.0)),
}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_mutants_of_headers_are_refused_by_type_or_can_be_shown(tmp_path, kind):
    check(*archive(tmp_path, ARCHIVES[kind]()), 3)


def check(whole, write, load, every):
    """Try some of the mutants; errors of types other than ours fail the test."""
    loaded = refused = 0
    for text in mutants(json.loads(whole), every):
        write(text)
        try:
            found = load()
        except gn.GaussNoiseError:
            refused += 1
            continue
        assert str(found)
        assert repr(found)
        loaded += 1
    write(whole)
    load()
    assert min(loaded, refused) > 0  # some places are only passed on, others are checked
