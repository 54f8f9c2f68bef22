"""The registry that enforces in how many ticks a person is counted: its rule in all engines, what
it protects, and what becomes of it on disk.
"""

import itertools
import json
import shutil
import stat
from collections import defaultdict

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import DataError, LedgerError, ParameterError, StreamError
from gaussnoise.streams import Stream, Ticks, measure, registry
from gaussnoise.tables.counting.admission import DIGEST

# warnings of dask itself
DASK = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
SCHEMA = gn.Schema([gn.Attribute("sex", ["F", "M"])])


def planned(over, rho=0.5, **options):
    return gn.plan(SCHEMA, [("sex",)], gn.zCDP(rho), person="who", over=over, **options)


def table(who, sex=None):
    return pa.table({"who": pa.array(who, pa.string()), "sex": list(sex or "F" * len(who))})


def counts(plan, tables, on_outside="refuse"):
    """Exact counts of all ticks, under the registry of a stream that begins with the first."""
    found, persons = [], registry.Registry.new()
    for t, rows in enumerate(tables, 1):
        turn = registry.Turn(persons, plan.over, t)
        found.append(measure.counted(plan.one_tick, plan.over, t, rows, on_outside, turn))
        persons = turn.after()
    return found


class Nothing:
    """Noise that is zero."""

    def take(self, count):
        return np.zeros(count, dtype=np.int64)


def integers(plan, found):
    """All that is measured at all ticks, without noise."""
    ticks = [measure.measured(plan, found[: t + 1], Nothing()) for t in range(len(found))]
    return np.array([x for noisy in ticks for own in noisy.values() for x in own], dtype=object)


# The rule.


@pytest.mark.parametrize(("reports", "apart"), [(1, 1), (2, 2), (2, 1), (3, 1)])
def test_a_person_with_any_rows_in_any_ticks_moves_no_more_than_is_charged(reports, apart):
    """All histories of four ticks; the bound is attained, and exceeded by a mere assurance."""
    enforced = planned(Ticks(4, reports, apart=apart, enforced=True))
    charged = enforced.query.query.sensitivity_squared

    def tables(history):
        return [table("ab" + "x" * len(own), "FM" + own) for own in history]

    without = integers(enforced, counts(enforced, tables([""] * 4)))
    most = 0
    for history in itertools.product(["", "F", "M"], repeat=4):
        change = integers(enforced, counts(enforced, tables(history))) - without
        most = max(most, int((change**2).sum()))
    assert charged * (1 - 1e-5) <= most <= charged
    trusted = planned(Ticks(4, reports, apart=apart))
    found = [
        measure.counted(trusted.one_tick, trusted.over, t, rows, "refuse")
        for t, rows in enumerate(tables("FFFF"), 1)
    ]
    assert int(((integers(trusted, found) - without) ** 2).sum()) > charged


def allowed(history, reports, apart):
    """The ticks of a person that count, by the rule in plain words."""
    kept = []
    for tick in history:
        if len(kept) < reports and (not kept or tick - kept[-1] >= apart):
            kept.append(tick)
    return kept


@pytest.mark.parametrize(("reports", "apart"), [(1, 1), (3, 1), (2, 3), (20, 2)])
def test_the_registry_keeps_its_rule_for_many_persons_in_memory_and_on_disk(
    reports, apart, tmp_path, monkeypatch
):
    monkeypatch.setattr(registry, "_AT_ONCE", 7)  # so that persons are in many blocks
    rng, over = np.random.default_rng(0), Ticks(20, reports, apart=apart, enforced=True)
    # hashes that end in zeros, and that agree in all but the last byte, are persons of their own
    persons = [bytes([k, 7]).ljust(15, b"\1") + bytes([end]) for k in range(20) for end in range(3)]
    persons = np.array([*persons, b"\0" * 16, b"\0" * 15 + b"\1"], dtype=DIGEST)
    registry.begun(tmp_path)
    known, digests = registry.Registry.new(), []
    history, counted = defaultdict(list), defaultdict(list)
    for tick in range(1, 21):
        there = rng.permutation(np.flatnonzero(rng.random(len(persons)) < 0.4))
        memory = registry.Turn(known, over, tick)
        disk = registry.turn_of(tmp_path, over, digests)
        found = memory.admitted(persons[there])
        assert np.array_equal(disk.admitted(persons[there]), found)
        known = memory.after()
        digests.append(registry.written(tmp_path, disk)["registry"])
        registry.tidied(tmp_path, over, tick)
        for person in there.tolist():
            history[person].append(tick)
        for person in there[found].tolist():
            counted[person].append(tick)
    assert {p: own for p in history if (own := counted[p])} == {
        p: allowed(history[p], reports, apart) for p in history
    }
    own = {p.ljust(16, b"\0"): (len(counted[k]), counted[k][-1]) for k, p in enumerate(persons)}
    assert {
        r["digest"].tobytes().ljust(16, b"\0"): (r["ticks"], r["last"]) for r in known.records
    } == own
    assert not list(tmp_path.iterdir())  # nothing is left after the last tick


def test_rows_that_do_not_fit_use_up_no_tick_and_a_persons_many_rows_use_up_one():
    plan = planned(Ticks(3, 1, enforced=True), rows_per_person=2)
    ticks = [table("aab", "??F"), table("aaab", "FFFF"), table("abc", "FFF")]
    found = [int(own[(0,)].sum()) for own in counts(plan, ticks, "drop")]
    assert found == [1, 2, 1]


def test_with_one_tick_of_a_person_totals_are_numbers_of_distinct_persons():
    plan = planned(Ticks(4, 1, enforced=True), rho=1e9)
    rng = np.random.default_rng(1)
    ticks = [rng.choice(list("abcdefghij"), 5) for _ in range(4)]
    so_far = plan.simulate([table(own) for own in ticks], rng)
    for t in range(1, 5):
        assert so_far.total(t)["sex"].estimate.sum() == pytest.approx(
            len(set(np.concatenate(ticks[:t]))), abs=1e-3
        )


# Engines.


def engines(tmp_path):
    """Ways to hold a table whose persons are text."""

    def csv(rows):
        pa.csv.write_csv(rows, path := tmp_path / f"{len(list(tmp_path.iterdir()))}.csv")
        return path

    def parquet(rows):
        from pyarrow import parquet

        parquet.write_table(rows, path := tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet")
        return path

    def duckdb(rows):
        import duckdb

        duckdb.sql("SELECT 1")
        return duckdb.from_arrow(rows)

    def dictionary(rows):
        return rows.set_column(0, "who", rows["who"].dictionary_encode())

    return {
        "pyarrow": lambda rows: rows,
        "dictionary": dictionary,
        "polars": pl.from_arrow,
        "lazy": lambda rows: pl.from_arrow(rows).lazy(),
        "categories": lambda rows: pl.from_arrow(rows).with_columns(
            pl.col("who").cast(pl.Categorical)
        ),
        "csv": csv,
        "parquet": parquet,
        "duckdb": duckdb,
    }


def test_a_person_is_the_same_in_every_engine_that_names_persons_by_text(tmp_path):
    built = engines(tmp_path)
    plan = planned(Ticks(len(built) + 1, 1, enforced=True))
    ticks = [table(["first", "é", "1", f"new {k}"]) for k in range(len(built))]
    found = counts(plan, [own(rows) for own, rows in zip(built.values(), ticks, strict=True)])
    assert [int(own[(0,)].sum()) for own in found] == [4] + [1] * (len(built) - 1)


@DASK
def test_a_person_is_the_same_in_pandas_and_dask_for_any_type_of_the_column():
    dask = pytest.importorskip("dask.dataframe")
    plan = planned(Ticks(5, 1, enforced=True))
    ticks = [
        pd.DataFrame({"who": [1, 2], "sex": ["F", "F"]}),
        pd.DataFrame({"who": [1.0, 3.0, None], "sex": ["F"] * 3}),
        pd.DataFrame({"who": ["1", "02", "x"], "sex": ["F"] * 3}),
        dask.from_pandas(
            pd.DataFrame({"who": ["x", "1", "y", "4"], "sex": ["F"] * 4}), npartitions=2
        ),
        dask.from_pandas(pd.DataFrame({"who": [4, 5], "sex": ["F"] * 2}), npartitions=1),
    ]
    found = [int(own[(0,)].sum()) for own in counts(plan, ticks, "drop")]
    assert found == [2, 1, 1, 2, 1]


def test_numbers_of_any_type_name_the_same_person():
    plan = planned(Ticks(4, 1, enforced=True))
    types = [pa.int64(), pa.float64(), pa.uint8(), pa.decimal128(25, 2)]
    ticks = [
        pa.table({"who": pa.array([1, k + 2]).cast(of), "sex": ["F"] * 2})
        for k, of in enumerate(types)
    ]
    assert [int(own[(0,)].sum()) for own in counts(plan, ticks)] == [2, 1, 1, 1]


@pytest.mark.parametrize(
    "other",
    [
        pa.table({"who": [1], "sex": ["F"]}),
        pd.DataFrame({"who": ["a"], "sex": ["F"]}),
        pa.table({"who": pa.array([1]).dictionary_encode(), "sex": ["F"]}),
        pa.table({"who": pa.array([b"a"]), "sex": ["F"]}),
        pa.table({"who": pa.array([1], pa.timestamp("ms")), "sex": ["F"]}),
    ],
    ids=["numbers", "pandas", "categories that are numbers", "bytes", "times"],
)
def test_persons_of_another_kind_are_refused_since_they_could_not_be_recognised(other):
    plan = planned(Ticks(2, 1, enforced=True))
    with pytest.raises(DataError, match="expected text, as at the first tick"):
        counts(plan, [table("a"), other])


def test_times_in_other_units_are_another_kind():
    ticks = [
        pa.table({"who": pa.array([1], pa.timestamp(unit)), "sex": ["F"]}) for unit in ("ms", "us")
    ]
    with pytest.raises(DataError, match="as at the first tick"):
        counts(planned(Ticks(2, 1, enforced=True)), ticks)


# The files.


@pytest.fixture
def running(tmp_path):
    """A stream of three ticks, two of them done."""
    stream = planned(Ticks(3, 2, enforced=True), rho=1e9).start(tmp_path / "stream")
    for t in (1, 2):
        stream.tick(table("ab"), number=t)
    return stream


def persons_in(stream, tick):
    return int(np.rint(stream.period(tick)["sex"].estimate.sum()))


def test_a_stream_goes_on_with_its_registry_which_is_deleted_after_the_last_tick(running):
    (file,) = running.state.private.glob("registry*")
    assert file.name == "registry-0002"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.stat().st_size == 1024 + 2 * 20
    header = json.loads(file.read_bytes()[:1024])
    assert header["persons"] == "text"
    again = Stream.open(running.path)
    again.tick(table("abc"), number=3)
    assert [persons_in(again, t) for t in (1, 2, 3)] == [2, 2, 1]
    assert not list(running.state.private.glob("registry*"))
    again.tick(table("x"), number=3)  # which reads the tick again
    public = [p for p in again.path.rglob("*") if p.is_file() and "private" not in p.parts]
    assert not [p for p in public if header["key"].encode() in p.read_bytes()]


def missing(stream, older):
    (stream.state.private / "registry-0002").unlink()


def changed(stream, older):
    file = stream.state.private / "registry-0002"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def other_key(stream, older):
    file = stream.state.private / "registry-0002"
    header = json.loads(file.read_bytes()[:1024])
    header["key"] = "0" * len(header["key"])
    file.write_bytes(json.dumps(header).encode().ljust(1023) + b"\n" + file.read_bytes()[1024:])


def restored(stream, older):
    (stream.state.private / "registry-0002").write_bytes(older)


def restored_under_its_name(stream, older):
    (stream.state.private / "registry-0002").unlink()
    (stream.state.private / "registry-0001").write_bytes(older)


@pytest.mark.parametrize(
    "damage",
    [missing, changed, other_key, restored, restored_under_its_name],
    ids=lambda d: d.__name__,
)
def test_a_registry_that_is_not_that_of_the_last_tick_is_refused(damage, tmp_path):
    stream = planned(Ticks(3, 2, enforced=True)).start(tmp_path / "stream")
    stream.tick(table("ab"), number=1)
    older = (stream.state.private / "registry-0001").read_bytes()
    stream.tick(table("ab"), number=2)
    damage(stream, older)
    with pytest.raises(StreamError, match="registry"):
        Stream.open(stream.path).tick(table("ab"), number=3)
    assert len(Stream.open(stream.path)) == 2
    assert not (stream.state.private / "exact-counts-0003.json").exists()


def test_an_older_private_folder_is_refused(tmp_path):
    stream = planned(Ticks(3, 2, enforced=True)).start(tmp_path / "stream")
    stream.tick(table("ab"), number=1)
    shutil.copytree(stream.state.private, tmp_path / "copy")
    stream.tick(table("ab"), number=2)
    shutil.rmtree(stream.state.private)
    (tmp_path / "copy").rename(stream.state.private)
    with pytest.raises(StreamError, match="older"):
        Stream.open(stream.path).tick(table("ab"), number=3)


def test_a_tick_that_was_not_committed_has_counted_no_person(running, monkeypatch):
    """Its registry was written; other rows come in its place."""

    def full(*_):
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(type(running.state), "commit", full)
        with pytest.raises(gn.errors.OutputError):
            running.tick(table("abc"), number=3)
    assert (running.state.private / "registry-0003").exists()
    running.tick(table("cd"), number=3)
    assert persons_in(running, 3) == 2


def test_a_stream_whose_registry_was_deleted_can_only_be_read(running, capsys):
    assert run(["stream", "forget", str(running.path)]) == 0
    assert "can only be read" in capsys.readouterr().out
    assert not list(running.state.private.glob("registry*"))
    with pytest.raises(StreamError, match="the registry of persons, is missing"):
        running.tick(table("ab"), number=3)
    assert persons_in(running, 2) == 2


def test_only_a_stream_that_keeps_a_registry_forgets_it(tmp_path):
    stream = planned(Ticks(3, 2)).start(tmp_path / "stream")
    stream.tick(table("ab"), number=1)
    assert not list(stream.state.private.glob("registry*"))
    with pytest.raises(StreamError, match="keeps no registry"):
        stream.forget()


def test_a_start_that_fails_leaves_no_registry_and_one_that_is_repeated_keeps_it(tmp_path):
    ledger = gn.Ledger.create(tmp_path / "ledger", gn.zCDP(0.5))
    over = Ticks(3, 2, enforced=True)
    with pytest.raises(gn.errors.BudgetError):
        planned(over, rho=0.6).start(tmp_path / "large", ledger=ledger, id="large")
    assert not (tmp_path / "large").exists()
    plan = planned(over)
    stream = plan.start(tmp_path / "stream", ledger=ledger, id="x")
    stream.tick(table("ab"), number=1)
    again = plan.start(tmp_path / "stream", ledger=ledger, id="x")
    again.tick(table("ab"), number=2)
    again.tick(table("abc"), number=3)
    assert len(again) == 3


# What is said.


def test_a_person_in_any_ticks_is_the_person_of_other_releases(tmp_path):
    once = gn.plan(SCHEMA, 1, gn.zCDP(0.1), person="who")
    for enforced in (True, False):
        ledger = gn.Ledger.create(tmp_path / f"ledger {enforced}", gn.zCDP(1))
        once.release(table("abc"), out=tmp_path / f"once {enforced}", ledger=ledger, id="once")
        plan = planned(Ticks(9, 2, apart=2, enforced=enforced), rho=0.1)
        if enforced:
            plan.start(tmp_path / "stream", ledger=ledger, id="stream")
            assert ledger.spent == pytest.approx(0.2)
        else:
            with pytest.raises(LedgerError, match="do not add up"):
                plan.start(tmp_path / "other", ledger=ledger, id="stream")


def test_what_is_enforced_is_said_and_what_is_promised_too(running, tmp_path, capsys):
    plan = planned(Ticks(9, 2, apart=3, enforced=True))
    assert "in any ticks; a registry lets at most 2 count, each two at least 3 ticks apart" in str(
        plan
    )
    assert repr(plan.over) == "Ticks(9, reports=2, apart=3, enforced=True)"
    assert plan.request_sha256 != planned(Ticks(9, 2, apart=3)).request_sha256
    assert planned(Ticks(9, 2)).over.as_dict().keys() < plan.over.as_dict().keys()
    summary = (running.path / "ticks" / "0001" / "summary.txt").read_text("utf-8")
    assert "is enforced" in summary
    assert "not checked" not in summary
    assert run(["verify", str(running.path)]) == 0
    record = running.path / "stream.json"
    record.write_text(
        record.read_text("utf-8").replace("; a registry lets", "; nothing lets"), "utf-8"
    )
    assert run(["verify", str(running.path)]) != 0


def test_only_the_first_tick_can_be_counted_a_second_time(running):
    assert running.period(1).inspect(table("ab")).passed
    with pytest.raises(ParameterError, match="expected tick 1 of a stream that enforces"):
        running.period(2).inspect(table("ab"))


def test_requests_that_cannot_be_enforced_are_refused():
    with pytest.raises(ParameterError, match=r"expected person= with Ticks\(..., enforced=True\)"):
        gn.plan(SCHEMA, 1, gn.zCDP(0.1), over=Ticks(3, 2, enforced=True))
    with pytest.raises(ParameterError, match="reports=k with enforced=True"):
        Ticks(3, enforced=True)
    with pytest.raises(ParameterError, match="enforced=True or False"):
        Ticks(3, 2, enforced="yes")
    with pytest.raises(ParameterError, match="cannot be combined with replacement"):
        planned(Ticks(3, 2, enforced=True), neighbors="replace")


def test_the_shell_starts_a_stream_that_is_enforced(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text('[attributes.sex]\ncategories = ["F", "M"]\n', "utf-8")
    pa.csv.write_csv(table("ab"), "t.csv")
    asked = ["-s", "s.toml", "-m", "1", "--rho", "1e9", "--ticks", "3", "--person", "who"]
    assert run(["stream", "start", "-o", "st", *asked, "--reports", "1", "--enforced"]) == 0
    assert "and the registry of persons" in capsys.readouterr().out
    assert run(["stream", "tick", "st", "t.csv", "--tick", "1"]) == 0
    assert run(["stream", "tick", "st", "t.csv", "--tick", "2", "--same-file"]) == 0
    stream = Stream.open(tmp_path / "st")
    assert [persons_in(stream, t) for t in (1, 2)] == [2, 0]
