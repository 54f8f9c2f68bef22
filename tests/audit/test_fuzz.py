"""Made-up schemas and tables end in a valid release or a typed error, and no planted value appears
anywhere.

A few examples of each kind; ``report.py`` tries hundreds.
"""

import collections
import zlib

import audit_fuzz as fuzz
import audit_kit as kit
import pytest
from hypothesis import HealthCheck, given, seed, settings

import gaussnoise as gn
from gaussnoise.errors import DataError, SchemaError

SETTINGS = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.filter_too_much,
        HealthCheck.data_too_large,
    ],
)


def asked(examples, strategy, ask, name=""):
    """Ask about made-up examples, the same ones in every run but others under every name."""

    @seed(zlib.crc32(name.encode()))
    @settings(SETTINGS, max_examples=examples)
    @given(strategy)
    def run(problem):
        ask(problem)

    run()


@pytest.mark.parametrize("kind", fuzz.BUILDERS)
def test_any_table_is_released_or_refused_by_type(kind):
    asked(10, fuzz.problems(), lambda problem: fuzz.check(fuzz.ask_python(problem, kind)), kind)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_any_file_at_the_command_line(kind):
    asked(
        9,
        fuzz.problems(),
        lambda problem: fuzz.check(fuzz.ask_shell(problem, kind)),
        f"shell, {kind}",
    )


def test_any_bytes_in_a_csv_file():
    asked(20, fuzz.raw_files(), lambda problem: fuzz.check(fuzz.ask_bytes(*problem)))


@pytest.mark.parametrize("exporter", fuzz.EXPORTERS)
def test_any_file_by_the_habits_of_a_program(exporter):
    asked(10, fuzz.exported_files(exporter), lambda problem: fuzz.check(fuzz.ask_bytes(*problem)))


@pytest.mark.parametrize("kind", ["pandas objects", "pandas", "dask"])
def test_no_row_is_refused_where_rows_may_be_left_out(kind):
    def ask(problem):
        names = [name for name, _ in problem.columns]
        outcome = fuzz.ask_dropping(problem, kind)
        fuzz.check(outcome)
        if set(problem.schema.names) <= set(names) and len(set(names)) == len(names):
            # categories that pandas may take for nulls are refused, whatever the rows are
            kinds = map(fuzz.confused, problem.schema.attributes)
            refused = any(why and not harmless for why, harmless in kinds)
            assert outcome.answer in ("DataError" if refused else "released", "unbuildable")

    asked(13, fuzz.problems(), ask, f"rows left out of {kind}")


@pytest.mark.parametrize("holder", fuzz.HOLDERS)
def test_every_row_counts_by_itself_as_python_says(holder):
    def ask(tables):
        assert fuzz.count_by_row(*tables, holder)

    asked(7, fuzz.typed_tables(), ask, holder)


def test_any_data_for_a_finite_mechanism():
    asked(40, fuzz.point_data(), lambda problem: fuzz.check(fuzz.ask_points(*problem)))


def test_any_data_for_whatever_reads_records():
    asked(50, fuzz.body_data(), lambda problem: fuzz.check(fuzz.ask_bodies(*problem)))


def test_any_text_for_a_schema():
    asked(55, fuzz.schema_texts(), lambda text: fuzz.check(fuzz.ask_schema(text)))


@pytest.mark.parametrize(
    "value",
    [
        "[" * 5000 + "]" * 5000,
        "{a=" * 5000 + "1" + "}" * 5000,
        f"[{'9' * 5000}]",
        f"[0x{'f' * 5000}]",
        "[1]\na = " * 99,
    ],
    ids=["deep lists", "deep tables", "many digits", "many hexadecimal digits", "a key again"],
)
def test_schemas_at_the_limits_of_python(value):
    for key in ("categories", "edges", "other"):
        outcome = fuzz.ask_schema(f"[attributes.a]\n{key} = {value}")
        fuzz.check(outcome)
        assert outcome.answer == "SchemaError"


@pytest.mark.parametrize("end", ["foo = 1", "other = 2", "[attributes.b]"])
def test_a_mistake_after_thousands_of_lines_is_found_at_once(end):
    rows = ",\n".join(map(str, range(1500)))
    text = f"[attributes.a]\ncategories = [\n{rows}\n]\n{end}"
    outcome = fuzz.ask_schema(text)
    fuzz.check(outcome)
    with pytest.raises(SchemaError, match=r"^schema:1504: "):
        gn.Schema.loads(text)


def test_any_bytes_in_a_schema_file():
    asked(26, fuzz.schema_files(), lambda content: fuzz.check(fuzz.ask_schema_file(content)))


def test_a_schema_that_changes_on_the_way_is_caught(monkeypatch):
    monkeypatch.setattr(
        "gaussnoise.tables.schema.schema._quoted", lambda text: '"' + text.strip() + '"'
    )
    text = '[attributes.a]\ncategories = ["x", " y"]'
    assert not fuzz.ask_schema(text).valid
    monkeypatch.undo()
    fuzz.check(fuzz.ask_schema(text))


def test_fuzzing_reaches_releases_and_refusals():
    """Otherwise the tests above say little."""
    seen = collections.Counter()

    @settings(SETTINGS, max_examples=60)
    @given(fuzz.problems())
    def run(problem):
        seen[fuzz.ask_python(problem, "pyarrow").answer] += 1

    run()
    assert seen["released"] >= 5
    assert seen["DataError"] >= 5  # columns of nulls alone are none
    seen.clear()

    @settings(SETTINGS, max_examples=100)
    @given(fuzz.schema_texts())
    def load(text):
        seen[fuzz.ask_schema(text).answer] += 1

    load()
    assert seen["released"] >= 15
    assert seen["SchemaError"] >= 30


# The nets hold water.


def test_the_net_sees_what_is_hidden_in_an_error():
    def hidden():
        try:
            raise ValueError(kit.CANARY)
        except ValueError:
            raise DataError("column 'a'") from None

    def noted():
        error = DataError("column 'a'")
        error.add_note(f"row {kit.CANARY}")
        raise error

    def chained():
        try:
            raise KeyError(kit.NUMBER)
        except KeyError as error:
            raise DataError("column 'a'") from error

    for raising in (hidden, noted, chained):
        with pytest.raises(DataError) as caught:
            raising()
        assert kit.leaks(kit.said(caught.value))


def test_the_net_sees_what_is_printed_warned_and_written(tmp_path):
    import os
    import warnings

    for show in (
        lambda: os.write(1, kit.CANARY.encode()),
        lambda: os.write(2, kit.CANARY.encode()),
        lambda: print(kit.NUMBER),
        lambda: warnings.warn(kit.CANARY, stacklevel=1),
    ):
        with kit.listening() as heard:
            show()
        assert kit.leaks(heard.text)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"\0" + kit.CANARY.encode())
    assert kit.leaks(kit.written(tmp_path))
    assert not kit.leaks(kit.written(tmp_path / "nothing"))


def test_a_leaking_reader_is_caught(monkeypatch):
    """An engine's own message, handed on."""

    def honest(task, action, hint="", **_):
        try:
            return action()
        except Exception as error:
            raise DataError(f"could not {task}: {error}") from error

    for module in ("reading.frames", "reading.opened", "counting.records", "counting.count"):
        monkeypatch.setattr(f"gaussnoise.tables.{module}.guarded", honest)
    schema = gn.Schema([gn.Attribute("a", [1, 2])])
    content = f"a\n1\n{kit.CANARY},2\n".encode()
    outcome = fuzz.ask_bytes(schema, content)
    assert outcome.leaks
