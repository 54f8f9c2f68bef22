"""Attacks on the edges of the program: readers, messages, files, ledgers, pickles. All but the
links worked once.

Each attack returns how often it was tried and how often it succeeded.
``python tests/audit/report.py`` prints them all.
"""

import contextlib
import decimal
import hashlib
import io
import json
import math
import os
import pickle
import subprocess
import sys
import textwrap
import time
import tracemalloc
import warnings
import zipfile
from functools import partial
from pathlib import Path

import audit_kit as kit
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.errors import DataError

OURS = gn.GaussNoiseError


def tally(attempts):
    """How many attempts there were, and how many succeeded."""
    found = list(attempts)
    return len(found), sum(map(bool, found))


def refused(call):
    """Whether a call ends in an error of ours."""
    try:
        call()
    except OURS:
        return True
    except Exception:  # noqa: BLE001 (an attack that ends in another error has found something)
        return False
    return False


# Files of records: no row may hide, or uncover, another.


def counted(path, schema, **options):
    """Nearly exact counts of the first attribute, or None if the file is refused."""
    name = schema.names[0]
    try:
        release = gn.plan(schema, [name], gn.zCDP(1e6)).release(str(path), **options)
    except DataError:
        return None
    return np.rint(release[name].estimate)


def moved(folder, suffix, lines, target, schema):
    """Whether one line more changes the counts by more than one row."""
    path = folder / f"t{suffix}"
    found = []
    for rows in (lines, [line for line in lines if line != target]):
        path.write_bytes(("\n".join(rows) + "\n").encode())
        found.append(counted(path, schema))
    with_it, without = found
    return without is not None and with_it is not None and np.abs(with_it - without).sum() > 1


def swallowed_rows(folder):
    """Quotes inside fields, before and after them, in CSV and TSV."""
    schema = gn.Schema(
        [
            gn.Attribute("g", ["u", "v"], other="rest"),
            gn.Attribute("t", ["x", "y", "z"], other="rest"),
        ]
    )

    def around(open_, target, close, d=","):
        ends = [f"v{d}{open_}"], [f"v{d}{close}"]
        return [
            f"g{d}t",
            *[f"u{d}x"] * 700,
            *ends[0],
            *[f"u{d}x"] * 9,
            target,
            *[f"u{d}y"] * 3000,
            *ends[1],
        ] + [f"u{d}z"] * 300

    shapes = [
        ('"La', "v,4' 2\"", "5' 8\""),
        ('a"', 'v,b"c', 'd"'),
        (' "a', 'v, "b', 'c"'),
        ('"a"b', 'v,"', 'c"'),
        ('x""', 'v,"y', '"z"'),
        ("'a\"", "v,\"b'", 'c"'),
    ]
    for open_, target, close in shapes:
        yield moved(folder, ".csv", around(open_, target, close), target, schema)
        tabbed = target.replace(",", "\t", 1)
        yield moved(folder, ".tsv", around(open_, tabbed, close, "\t"), tabbed, schema)


def lost_rows_of_tsv(folder):
    """No quoting exists in TSV: inches and sayings are text."""
    schema = gn.Schema([gn.Attribute("g", ["u"])])
    for text in ("4' 2\"", '"', '"La', 'say "hi"', '""'):
        path = folder / "t.tsv"
        path.write_text("g\tt\n" + f"u\t{text}\nu\tplain\n" * 3001, encoding="utf-8")
        found = counted(path, schema)
        yield found is None or found[0] != 6002


def refused_valid_csv(folder):
    """RFC 4180 fields of several lines, wherever the engine cuts the file into pieces."""
    schema = gn.Schema([gn.Attribute("g", ["u"])])
    for width in (7, 61):
        for lines in (2, 400):
            row = 'u,"' + ("a" * width + ",\n") * lines + 'b"\n'
            count = 20_000_000 // len(row)
            path = folder / "t.csv"
            path.write_text("g,t\n" + row * count, encoding="utf-8")
            found = counted(path, schema)
            yield found is None or found[0] != count


def unequal_integers(folder):
    """3 and 3.0 are one integer, also where doubles are too coarse to tell integers apart."""
    for value in (3, 2**53 - 1, 2**53 + 1, 2**62 + 1):
        schema = gn.Schema([gn.Attribute("g", [value], other="rest")])
        (folder / "t.csv").write_text(
            f"g\n{value}\n{value}.0\n{value + 1}\n{value + 1}.0\n", encoding="utf-8"
        )
        found = counted(folder / "t.csv", schema)
        yield found is None or found.tolist() != [2, 2]


# Refusals tell nothing: a release goes through whatever the rows hold.


def searched(path, schema_of, low, high, release):
    """What bisection finds of the largest value, when refusals answer its questions."""
    while high - low > 1:
        middle = (low + high) // 2
        try:
            release(path, schema_of(middle))
        except gn.GaussNoiseError:
            low = middle
        else:
            high = middle
    return high


def refusal_oracle(folder):
    """The largest income, by asking which edges are refused, with the shell's way to release."""
    from gaussnoise.cli.app import run

    incomes = [17_000, 31_000, 86_123]
    path = folder / "t.csv"
    path.write_text("income\n" + "".join(f"{x}\n" for x in incomes), encoding="utf-8")

    def in_the_shell(path, schema):
        text = folder / "schema.toml"
        text.write_text(schema.to_toml(), encoding="utf-8")
        out = folder / f"out-{len(list(folder.iterdir()))}"
        with kit.listening(), pytest.MonkeyPatch.context() as patch:
            patch.delattr(
                "gaussnoise.tables.release.release_plot.plot_release"
            )  # takes a second, and a release can do without
            status = run(
                ["release", str(path), "-s", str(text), "-m", "1", "--rho", "1", "--out", str(out)]
            )
        if status:
            raise DataError

    def schema_of(top):
        return gn.Schema([gn.Attribute("income", edges=[0, top])])

    yield searched(path, schema_of, 86_000, 86_256, in_the_shell) == max(incomes)
    strange = [
        "",
        "NA",
        "nan",
        "inf",
        "-1",
        "1e999",
        "x",
        "1_000",
        "0x10",
        "99999999999999999999",
        "\x00",
        "é",
        "'",
    ]
    for value in strange:
        path.write_text(f"income\n5\n{value}\n7\n", encoding="utf-8")
        try:
            in_the_shell(path, schema_of(10))
        except gn.GaussNoiseError:
            yield True
        else:
            yield False


_COLUMNS = {  # of pandas: what a column holds, and an attribute for it
    "integers": (lambda k: k % 3, gn.Attribute("v", [0, 1, 2], other="rest")),
    "text": (lambda k: "abc"[k % 3], gn.Attribute("v", ["a", "b", "c"], other="rest")),
    "digits": (lambda k: str(k % 3), gn.Attribute("v", ["0", "1", "2"], other="rest")),
    "truth values": (lambda k: k % 3 > 0, gn.Attribute("v", [True, False], other="rest")),
    "numbers": (lambda k: k % 3 / 2, gn.Attribute("v", edges=[0, 0.5, 1, 2], other="rest")),
    "amounts": (lambda k: k % 3 / 2, gn.Attribute("v", clip=[0, 1], other="rest")),
    "days": (
        lambda k: pd.Timestamp("2020-01-01") + pd.Timedelta(k % 3, "D"),
        gn.Attribute("v", edges=["2020-01-01", "2020-01-02", "2020-01-05"], other="rest"),
    ),
    "persons": (lambda k: k % 20, None),
    "long numbers of persons": (lambda k: 2**60 + k % 20, None),
    "names of persons": (lambda k: f"p{k % 20}", None),
    "persons written in two ways": (lambda k: f"{k % 20:0{1 + k // 20 % 2}}", None),
}
_ODD_ROWS = [None, "x", "1", 0.25, True, 2**60, 10**400, 1j, b"x", np.timedelta64(1, "D")]
_ODD_ROWS += [pd.Timestamp("2020-01-01"), pd.Timestamp(0, tz="UTC"), np.datetime64("2020-01-01")]
_ODD_ROWS += [decimal.Decimal("sNaN"), pd.Interval(0, 1), "\ud800", [1], math.nan]


def _as_read(values, **options):
    """The column that pandas makes of these values in a CSV file."""
    text = "v,w\n" + "".join(f"{value},0\n" for value in values)
    return pd.read_csv(io.StringIO(text), **options)["v"]


_MAKERS = (
    pd.Series,
    lambda values: pd.Series(values).convert_dtypes(),
    _as_read,
    partial(_as_read, dtype_backend="numpy_nullable"),
    partial(_as_read, dtype_backend="pyarrow"),
)


def one_row_decides(_):
    """One odd row more in a column of pandas, whose type it may change for all others."""
    group = gn.Attribute("g", [0, 1, 2])

    def counts(column, attribute):
        frame = pd.DataFrame({"v": column, "g": [k % 3 for k in range(len(column))]})
        person = {"person": "v", "rows_per_person": 3} if attribute is None else {}
        plan = gn.plan(gn.Schema([attribute or group]), 1, gn.zCDP(1e8), **person)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                release = plan.release(frame, on_outside="drop")
        except (DataError, Warning):
            return None
        return np.asarray(release["v" if attribute else "g"].estimate)

    for base, attribute in _COLUMNS.values():
        values = [base(k) for k in range(60)]
        for make in _MAKERS:
            known = counts(make(values), attribute)
            for odd in _ODD_ROWS:
                try:
                    column = make([*values, odd])
                except (TypeError, ValueError, OverflowError, UnicodeEncodeError):
                    continue  # pandas has no column for it
                found = counts(column, attribute)
                # a person may have had rows before: another of theirs is counted then
                most = 1.5 if attribute else 2.5
                yield found is None or np.abs(found - known).sum() > most


def silent_refusals(folder):
    """Refusals under a ledger are on record, and do not say which column broke the rule."""
    ledger = gn.Ledger.create(folder / "ledger", gn.zCDP(1.0))
    schema = gn.Schema([gn.Attribute("income", edges=[0, 10])])
    for k in range(3):
        try:
            gn.plan(schema, 1, gn.zCDP(0.1)).release(
                pa.table({"income": [5, 50]}), out=folder / f"out-{k}", ledger=ledger, id=f"r{k}"
            )
        except DataError as error:
            yield "income" in kit.said(error)
        else:
            yield True
        yield sum(entry.state == "refused" for entry in ledger.entries()) != k + 1
    yield ledger.spent > 0


# Messages.


def values_of_types(folder):
    """Types that carry values: enums, ordered categories, structures."""
    import duckdb

    words = [kit.CANARY, "x"]
    frames = [
        pl.DataFrame({"a": pl.Series(words, dtype=pl.Enum(words))}),
        pl.DataFrame({"a": [{kit.CANARY: 1}, {kit.CANARY: 2}]}),
        pd.DataFrame({"a": pd.Categorical(words, categories=words, ordered=True)}),
        pd.DataFrame({"a": pd.Categorical(words)}),
        pa.table({"a": pa.array(words).dictionary_encode()}),
        pa.table({"a": [{kit.CANARY: 1}, {kit.CANARY: 2}]}),
        duckdb.sql(
            f"SELECT x::ENUM('{kit.CANARY}', 'x') AS a FROM (VALUES ('{kit.CANARY}'), ('x')) AS "
            "t(x)"
        ),
        duckdb.sql(f"SELECT {{'{kit.CANARY}': 1}} AS a"),
        pl.DataFrame({"a": pl.Series(words, dtype=pl.Enum(words))}).lazy(),
    ]
    for frame in frames:
        for attribute in (
            gn.Attribute("a", [1, 2]),
            gn.Attribute("a", edges=[0, 1]),
            gn.Attribute("a", [True]),
        ):
            with kit.listening() as heard:
                try:
                    gn.plan(gn.Schema([attribute]), 1, gn.zCDP(1.0)).release(frame)
                except OURS as error:
                    yield bool(kit.leaks(kit.said(error)))
                else:
                    yield False
            yield bool(kit.leaks(heard.text))
        try:
            gn.Schema.draft(frame)
        except OURS as error:
            yield bool(kit.leaks(kit.said(error)))


def records_in_messages(folder):
    """Codes and rows that do not fit: neither values nor how many, nor how long the longest text
    is.
    """
    marks = (str(kit.NUMBER), kit.CANARY, "7391", "<U")
    bad = [
        [[kit.NUMBER, 0]],
        [[kit.CANARY, "y"]],
        [["x" * 7391, "y"]],
        np.zeros((7391, 3)),
        np.zeros((7391, 2)),
        np.full((7391, 2), np.nan),
        [[0, 1], [0]],
        np.zeros((7391, 2), dtype=object),
        {"a": kit.CANARY},
    ]
    askers = [
        gn.Marginals((2, 3), [(0,)]).embed,
        gn.Products([gn.Prefix(2), gn.Identity(3)], [(0, 1)]).embed,
        gn.TensorPower(2, 2).embed,
        gn.LpBall(2, 2).contains,
        gn.LocalMechanism(gn.LpBall(2, 2), gn.LocalDP(1.0)).report,
        gn.LocalMechanism(gn.LpBall(2, 2), gn.LocalDP(1.0)).reports,
        gn.GaussianMechanism(
            gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove"), gn.zCDP(1.0)
        ).release,
        gn.GaussianMechanism(
            gn.optimal_noise(gn.FiniteSet(np.eye(2)), neighbors="add-remove"), gn.zCDP(1.0)
        ).release,
    ]
    for ask in askers:
        for records in bad:
            try:
                ask(records)
            except Exception as error:  # noqa: BLE001 (whatever it is, it must not show records)
                yield not isinstance(error, OURS) or any(mark in kit.said(error) for mark in marks)


def masked_records(folder):
    """What a mask hides is not to be counted as if it were there."""
    points = gn.GaussianMechanism(
        gn.optimal_noise(gn.FiniteSet(np.eye(2)), neighbors="add-remove"), gn.zCDP(1.0)
    )
    ball = gn.GaussianMechanism(
        gn.optimal_noise(gn.LpBall(2, 2), neighbors="add-remove"), gn.zCDP(1.0)
    )
    hidden = np.ma.array([[1.0, 0.0], [0.0, 1.0]], mask=[[True, False], [False, False]])
    yield not refused(lambda: points.release(hidden))
    yield not refused(lambda: points.release(counts=np.ma.array([1, 2], mask=[True, False])))
    yield not refused(lambda: ball.release(hidden))
    yield not refused(
        lambda: gn.Marginals((2, 2), [(0,)]).embed(np.ma.array([[1, 0]], mask=[[True, False]]))
    )
    yield not refused(lambda: gn.LocalMechanism(gn.LpBall(2, 2), gn.LocalDP(1.0)).reports(hidden))


# Ledgers.


def second_names(folder):
    """A hard link is a second name of a ledger: with a log of its own, as long as programs keep
    both open.
    """
    script = """\
        import sqlite3, sys
        import gaussnoise as gn
        path, prefix = sys.argv[1:]
        keep = sqlite3.connect(path)  # whoever has it open last would copy the log into the file
        keep.execute("SELECT * FROM entries").fetchall()
        published = 0
        for k in range(10):
            try:
                gn.Ledger.open(path).once(
                    f"{prefix}{k}", cost=0.1, request={}, protects="rows", target=None,
                    write=lambda path: path.write_text("1"), read=str, draws=1,
                )
                published += 1
            except gn.GaussNoiseError:
                pass
        print(published, flush=True)
        sys.stdin.read()
    """
    gn.Ledger.create(folder / "ledger", gn.zCDP(1.0))
    os.link(folder / "ledger", folder / "other")
    program = [sys.executable, "-P", "-c", textwrap.dedent(script)]
    running, published = [], []
    for name in ("ledger", "other"):
        command = [*program, str(folder / name), name]
        running.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        )
        published.append(int(running[-1].stdout.readline()))
    for one in running:
        one.communicate()
    yield sum(published) > 10


def leftovers(folder):
    """What a killed program had drawn is removed by whoever comes next."""
    script = """\
        import os, signal, sys
        import gaussnoise as gn
        from gaussnoise.privacy import ledger_results as _results
        import numpy as np
        os.chdir(sys.argv[1])
        ledger = gn.Ledger.create("ledger", gn.zCDP(1.0))
        noise = gn.optimal_noise(gn.FiniteSet(np.eye(2)), neighbors="add-remove")
        mechanism = gn.GaussianMechanism(noise, gn.zCDP(0.1))
        sync = _results.sync
        def killed(path, *rest):
            if "partial" in str(path):
                os.kill(os.getpid(), signal.{signal})
            sync(path, *rest)
        _results.sync = killed
        mechanism.release(counts=[1, 2], ledger=ledger, id="x")
    """
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(gn.FiniteSet(np.eye(2)), neighbors="add-remove"), gn.zCDP(0.1)
    )
    for name in ("SIGKILL", "SIGTERM"):
        place = folder / name
        place.mkdir()
        program = textwrap.dedent(script).format(signal=name)
        subprocess.run(
            [sys.executable, "-P", "-c", program, place], check=False, capture_output=True
        )
        mechanism.release(counts=[1, 2], ledger=place / "ledger", id="another")
        yield bool(list(place.rglob("*.partial*")))


def shared_disks(folder):
    """A ledger on a disk that other machines write to, whose locks nobody here can see."""
    table = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    for k, kind in enumerate(
        ("nfs", "nfs4", "cifs", "9p", "fuse.sshfs", "fuse.glusterfs", "lustre", "ceph", "virtiofs")
    ):
        with pytest.MonkeyPatch.context() as patch:
            pretended = folder / f"mounts{k}"
            pretended.write_text(
                f"{table}\n999 1 0:99 / {folder} rw - {kind} server rw\n", encoding="utf-8"
            )
            patch.setattr("gaussnoise.files.mounts._TABLE", pretended, raising=False)
            yield not refused(lambda k=k: gn.Ledger.create(folder / f"ledger{k}", gn.zCDP(1.0)))


def losses_after_the_charge(folder):
    """A release that fails for reasons known without data must not be charged."""
    ledger = gn.Ledger.create(folder / "ledger", gn.zCDP(1.0))
    schema = gn.Schema([gn.Attribute("a", ["x", "y"])])
    plan = gn.plan(schema, [{"a": "prefix"}], gn.zCDP(0.045), neighbors="replace", p=math.inf)
    for _ in range(3):
        with contextlib.suppress(OURS):
            plan.release(pa.table({"a": ["x", "y"]}), out=folder / "out", ledger=ledger, id="x")
        yield ledger.spent > 0.045 * (1 + 1e-9)


# What was stopped stays stopped.


def swallowed_interrupts(folder):
    """Ctrl-C while planning, and while rows are counted: the program ends, and nothing is
    published.

    While rows are counted, an engine raises an error of its own for it, or drops it.
    """
    rows = ",".join(["a", "b"]) + "\n" + "".join(f"{k % 7},{k % 5}\n" for k in range(2000))
    (folder / "t.csv").write_text(rows, encoding="utf-8")
    (folder / "s.toml").write_text(
        "[attributes.a]\nedges = [0, 1, 2, 3, 4, 5, 6, 7]\nbase = "
        '"prefix"\n[attributes.b]\nedges = [0, 1, 2, 3, 5]\n',
        encoding="utf-8",
    )
    tally = ("gaussnoise.tables.counting.count", None, "_tally_arrays")
    places = {
        "planning": (
            ("gaussnoise.solvers.points.fidelity", "Fidelity", "at"),
            4,
            "raise KeyboardInterrupt",
        ),
        "counting": (tally, 1, "import duckdb; raise duckdb.InterruptException"),
        "dropped": (tally, 1, "drop()"),
    }
    script = """\
        import contextlib, importlib, json, os, signal, sys, time
        # once, not in every fork
        import duckdb, narwhals, pyarrow, gaussnoise.cli.app, gaussnoise.tables.release.release_plot
        from gaussnoise.cli import main
        def drop():
            with contextlib.suppress(BaseException):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.1)
        def released(name, place, call, then):
            module, owner, function = place
            place = importlib.import_module(module)
            place = place if owner is None else getattr(place, owner)
            whole, calls = getattr(place, function), []
            def pressed(*arguments, **options):
                calls.append(1)
                if len(calls) == call:
                    exec(then)
                return whole(*arguments, **options)
            setattr(place, function, pressed)
            sys.argv[1:] = f"release t.csv -s s.toml -m 1 --rho 1 --out {name}".split()
            main()
        left = {}
        for name, (place, call, then) in json.loads(sys.argv[1]).items():
            if not (process := os.fork()):
                released(name, place, call, then)
                sys.exit()
            left[name] = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        print(json.dumps(left))
    """
    program = [sys.executable, "-P", "-c", textwrap.dedent(script), json.dumps(places)]
    done = subprocess.run(program, cwd=folder, check=False, capture_output=True, text=True)
    left = json.loads(done.stdout.splitlines()[-1])
    for name in places:
        yield (folder / name).exists() or left[name] != 130


# Published folders and files.


def published(folder):
    """A release of two tables on disk, and its plan."""
    schema = gn.Schema([gn.Attribute("a", ["x", "y"]), gn.Attribute("b", [1, 2, 3])])
    plan = gn.plan(schema, ["a", "b"], gn.zCDP(1.0))
    plan.release(pa.table({"a": ["x", "y"], "b": [1, 3]}), out=folder)
    return plan


def altered_folders(folder):
    """Whatever is changed, added or taken away in a released folder is noticed when it is read."""

    def edited(change):
        def alter(place):
            path = place / "release.json"
            record = json.loads(path.read_text(encoding="utf-8"))
            change(record, place)
            path.write_text(json.dumps(record), encoding="utf-8")

        return alter

    def outside(record, place):
        target = place.parent / "elsewhere.csv"
        target.write_bytes((place / record["marginals"][0]["file"]).read_bytes())
        record["marginals"][0]["file"] = "../elsewhere.csv"

    def absolute(record, place):
        target = place.parent / "elsewhere.csv"
        target.write_bytes((place / record["marginals"][0]["file"]).read_bytes())
        record["marginals"][0]["file"] = str(target)

    def link(place):
        file = next((place / "tables").iterdir())
        target = place.parent / "linked.csv"
        target.write_bytes(file.read_bytes())
        file.unlink()
        file.symlink_to(target)

    alterations = {
        "summary": lambda place: (place / "summary.txt").write_text(
            "all is well", encoding="utf-8"
        ),
        "picture": lambda place: (place / "release.png").write_bytes(b"another"),
        "added": lambda place: (place / "tables" / "3-c.csv").write_text(
            "a,estimate\n", encoding="utf-8"
        ),
        "added beside": lambda place: (place / "notes.txt").write_text(
            "see also", encoding="utf-8"
        ),
        "removed": lambda place: (place / "summary.txt").unlink(),
        "table": lambda place: next((place / "tables").iterdir()).write_text(
            "a,estimate\nx,1\ny,2\n"
        ),
        "outside": edited(outside),
        "absolute": edited(absolute),
        "link": link,
    }
    for name, alter in alterations.items():
        place = folder / name / "release"
        place.parent.mkdir()
        plan = published(place)
        gn.TableRelease.load(place, plan)
        alter(place)
        yield not refused(lambda place=place, plan=plan: gn.TableRelease.load(place, plan))


def swapped_folders(folder):
    """Somebody else puts a link where a release is being written: nothing may get to where it
    leads.
    """
    plan = gn.plan(
        gn.Schema([gn.Attribute("a", ["x", "y"]), gn.Attribute("b", [1, 2, 3])]),
        ["a", "b"],
        gn.zCDP(1.0),
    )
    for swapped in ("parent", "scratch", "target"):
        for under in ("a ledger", "no ledger"):
            place = folder / f"{swapped} under {under}"
            there, victim = place / "there", place / "victim"
            there.mkdir(parents=True)
            victim.mkdir()
            options = (
                {"ledger": gn.Ledger.create(place / "l", gn.zCDP(1.0)), "id": "x"}
                if under == "a ledger"
                else {}
            )

            def swap(done, total, swapped=swapped, place=place, there=there, victim=victim):
                if (place / "done").exists():
                    return
                (place / "done").touch()
                if swapped == "parent":
                    there.rename(place / "was")
                    there.symlink_to(victim)
                elif swapped == "scratch":
                    for scratch in there.glob(".*.partial"):
                        scratch.rename(place / "was")
                        scratch.symlink_to(victim)
                else:
                    (there / "out").symlink_to(victim)

            with contextlib.suppress(OURS):
                plan.release(
                    pa.table({"a": ["x"], "b": [1]}), out=there / "out", progress=swap, **options
                )
            yield any(victim.iterdir())


def untyped_errors(folder):
    """Files that no writer of ours made: nested, torn, of another kind, not readable."""
    plan = published(folder / "release")
    deep = "[" * 100_000 + "]" * 100_000
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(gn.FiniteSet(np.eye(2)), neighbors="add-remove"), gn.zCDP(0.1)
    )
    texts = [
        deep,
        '{"format": ' + deep + "}",
        "",
        "[]",
        "null",
        '{"format": 1}',
        "\x00",
        '{"a": ' * 50_000,
    ]
    for text in texts:
        (folder / "f.json").write_text(text, encoding="utf-8")
        yield not refused(lambda: gn.Release.load(folder / "f.json", mechanism.covariance))
        place = folder / f"release{hashlib.sha256(text.encode()).hexdigest()[:8]}"
        place.mkdir()
        (place / "release.json").write_text(text, encoding="utf-8")
        yield not refused(lambda place=place: gn.TableRelease.load(place, plan))
    for name, content in (
        ("t.parquet", b"PAR1 no"),
        ("t.csv", b"\xff\xfe"),
        ("t.parquet", b""),
        ("t.csv.gz", b"no"),
    ):
        (folder / name).write_bytes(content)
        yield not refused(lambda name=name: plan.release(str(folder / name)))
    yield not refused(lambda: gn.Ledger.open(folder))
    if os.geteuid() == 0:  # as somebody who may not read
        (folder / "closed").mkdir(mode=0o700)
        gn.Ledger.create(folder / "closed" / "ledger", gn.zCDP(1.0))
        script = f"""\
            import os, sys
            import gaussnoise as gn
            import pyarrow as pa
            plan = gn.plan(gn.Schema([gn.Attribute("a", [0])]), 1, gn.zCDP(0.1))
            table = pa.table({{"a": [0]}})
            asked = [
                lambda: gn.Ledger.open({str(folder / "closed" / "ledger")!r}),
                lambda: plan.release({str(folder / "closed" / "t.csv")!r}),
                lambda: plan.release(table, out={str(folder / "closed" / "out")!r}),
                lambda: plan.release(
                    table, out="/proc/x/out", ledger={str(folder / "closed" / "ledger")!r}, id="x"
                ),
                lambda: gn.TableRelease.load({str(folder / "closed" / "out")!r}, plan),
                lambda: gn.OptimalNoise.load({str(folder / "closed" / "noise.npz")!r}),
            ]
            for ask in asked:  # once as ourselves: others may not read the modules that this loads
                try:
                    ask()
                except gn.GaussNoiseError:
                    pass
            os.setgid(65534); os.setuid(65534)
            for ask in asked:
                try:
                    ask()
                except gn.GaussNoiseError:
                    print("typed")
                except BaseException as error:
                    print(type(error).__name__)
                else:
                    print("done")
        """
        os.chmod(folder, 0o755)
        done = subprocess.run(
            [sys.executable, "-P", "-c", textwrap.dedent(script)],
            capture_output=True,
            text=True,
            check=False,
        )
        lines = done.stdout.split()
        yield len(lines) != 6
        yield from (line != "typed" for line in lines)


def small_files_of_large_arrays(folder):
    """A small file must not take gigabytes before it is refused."""
    noise = gn.optimal_noise(gn.FiniteSet(np.eye(3)))
    noise.save(folder / "noise.npz")
    with zipfile.ZipFile(folder / "noise.npz") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (300, 2**17)}
    )
    for name in ("factor.npy", "added.npy"):
        path = folder / name.replace("npy", "npz")
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for other, content in members.items():
                if other != name:
                    archive.writestr(other, content)
            with archive.open(name, "w", force_zip64=True) as member:
                member.write(header.getvalue())
                for _ in range(300):
                    member.write(bytes(2**20))
        tracemalloc.start()
        yield (
            not refused(lambda path=path: gn.OptimalNoise.load(path))
            or tracemalloc.get_traced_memory()[1] > 2**26
        )
        tracemalloc.stop()


# Programs of others.


def replaced_codebooks(folder):
    """A server hands out a mechanism; what its users send must keep the ε that the
    mechanism says.
    """
    mechanism = gn.LocalMechanism(
        gn.LpBall(1, 2), gn.LocalDP(1.0), randomizer="randomized-response"
    )
    hostile = gn.LocalMechanism(gn.LpBall(1, 2), gn.LocalDP(30.0), randomizer="randomized-response")
    mechanism.__dict__["_codebook"] = hostile._codebook
    sent = pickle.loads(pickle.dumps(mechanism))
    yield _one_sided(sent)
    if hasattr(mechanism, "save"):
        mechanism.save(folder / "local")
        yield _one_sided(gn.LocalMechanism.load(folder / "local"))
    else:
        yield True
    mechanism = gn.GaussianMechanism(
        gn.optimal_noise(gn.FiniteSet(np.eye(2)), neighbors="add-remove"), gn.zCDP(0.1)
    )
    loud = gn.GaussianMechanism(mechanism.noise, gn.zCDP(1e6))
    mechanism.__dict__["_lattice"] = loud._lattice
    yield pickle.loads(pickle.dumps(mechanism)).rho_charged > 0.1
    schema = gn.Schema([gn.Attribute("a", [0, 1])])
    plans = [gn.plan(schema, 1, gn.zCDP(rho)) for rho in (0.1, 1e6)]
    plans[0].__dict__["query"] = plans[1].query
    yield pickle.loads(pickle.dumps(plans[0])).query.query.rho > 0.1


def _one_sided(mechanism):
    """Whether messages of a record at an end say where it is more often than ε = 1 allows, at a
    false alarm of 1e-6.
    """
    estimates = [mechanism.aggregate([mechanism.report([1.0])]).estimate[0] for _ in range(400)]
    return (
        sum(x > 0 for x in estimates) > 400 * 0.7311 + 4.9 * 10
        if mechanism.privacy.epsilon == 1.0
        else True
    )


def old_samplers(folder):
    """An OpenDP of another version than the one that was vetted."""
    script = """\
        import importlib.metadata, sys
        real = importlib.metadata.version
        import gaussnoise as gn
        import numpy as np
        noise = gn.optimal_noise(gn.FiniteSet(np.eye(2)), neighbors="add-remove")
        for version in sys.argv[1:]:  # none is remembered, as none is taken
            importlib.metadata.version = lambda name: version if name == "opendp" else real(name)
            try:
                gn.GaussianMechanism(noise, gn.zCDP(0.1)).release(counts=[1, 2])
            except gn.GaussNoiseError:
                print("refused")
            else:
                print("released")
    """
    versions = ["0.14.2", "0.9.0", "0.12.1"]
    program = [sys.executable, "-P", "-c", textwrap.dedent(script), *versions]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    lines = done.stdout.split()
    yield len(lines) != len(versions)
    yield from (line != "refused" for line in lines)


# Answers.


def exact_totals(folder):
    """Under replacement the total is exact, and so is what is said of it, in every way to ask."""
    schema = gn.Schema([gn.Attribute("a", ["x", "y", "z"]), gn.Attribute("b", range(7))])
    for workload in ([("a", "b")], [{"a": "prefix", "b": "identity"}]):
        for rows in (10, 1001, 99_999):
            table = pa.table({"a": ["x"] * rows, "b": [3] * rows})
            release = gn.plan(schema, workload, gn.zCDP(0.1), neighbors="replace").release(table)
            total = release[()]
            low, high = total.confidence_interval(0.95)
            yield float(total.estimate) != rows or float(total.standard_deviation) != 0
            yield not float(low) <= rows <= float(high)
            last = release.answers({"a": "prefix"})
            low, high = last.confidence_interval(0.95)
            yield (
                last.standard_deviation[-1] != 0
                or not low[-1] <= rows <= high[-1]
                or last.estimate[-1] != rows
            )


def slow_categories(folder):
    """Many categories must not take much longer than few: a plan cannot say what it would take."""
    times = {}
    rng = np.random.default_rng(0)
    for count in (30, 3_000):
        frame = pl.DataFrame({"a": rng.integers(count, size=10_000)})
        plan = gn.plan(gn.Schema([gn.Attribute("a", range(count))]), 1, gn.zCDP(1.0))
        start = time.process_time()
        plan.simulate(frame, rng)
        times[count] = time.process_time() - start
    yield times[3_000] > 10 * max(times[30], 0.02)


ATTACKS = {
    "one row of a file hides others": swallowed_rows,
    "quotes in TSV": lost_rows_of_tsv,
    "valid fields of several lines refused": refused_valid_csv,
    "integers beyond 2⁵³ written with a decimal point": unequal_integers,
    "values found by asking what is refused": refusal_oracle,
    "one row decides about others in pandas": one_row_decides,
    "refusals that a ledger does not show": silent_refusals,
    "values in the names of types": values_of_types,
    "records in messages": records_in_messages,
    "masked records counted": masked_records,
    "two names of one ledger": second_names,
    "ledgers on shared disks": shared_disks,
    "draws left behind by killed programs": leftovers,
    "charges for what fails without data": losses_after_the_charge,
    "releases that go on after Ctrl-C": swallowed_interrupts,
    "altered folders read as released": altered_folders,
    "links put in while a release is written": swapped_folders,
    "errors that are not ours": untyped_errors,
    "small files of large arrays": small_files_of_large_arrays,
    "replaced parts in pickles and files": replaced_codebooks,
    "older samplers": old_samplers,
    "exact totals said to be noisy": exact_totals,
    "many categories": slow_categories,
}


def verdicts(folder):
    """Every attack: how often it was tried, and how often it succeeded."""
    for k, (name, attack) in enumerate(ATTACKS.items()):
        place = folder / f"attack{k}"
        place.mkdir()
        yield name, *tally(attack(place))
