"""Made-up schemas and tables end in a valid release or a typed error, and no planted value appears anywhere."""

import collections

import audit_fuzz as fuzz
import audit_kit as kit
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gaussnoise as gn

SETTINGS = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("kind", fuzz.BUILDERS)
@settings(SETTINGS, max_examples=40)
@given(data=st.data())
def test_any_table_is_released_or_refused_by_type(kind, data):
    fuzz.check(fuzz.ask_python(data.draw(fuzz.problems()), kind))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@settings(SETTINGS, max_examples=25)
@given(data=st.data())
def test_any_file_at_the_command_line(kind, data):
    fuzz.check(fuzz.ask_shell(data.draw(fuzz.problems()), kind))


@settings(SETTINGS, max_examples=60)
@given(fuzz.raw_files())
def test_any_bytes_in_a_csv_file(problem):
    fuzz.check(fuzz.ask_bytes(*problem))


@pytest.mark.parametrize("exporter", fuzz.EXPORTERS)
@settings(SETTINGS, max_examples=40)
@given(data=st.data())
def test_any_file_by_the_habits_of_a_program(exporter, data):
    fuzz.check(fuzz.ask_bytes(*data.draw(fuzz.exported_files(exporter))))


@pytest.mark.parametrize("kind", ["pandas objects", "pandas", "dask"])
@settings(SETTINGS, max_examples=40)
@given(data=st.data())
def test_no_row_is_refused_where_rows_may_be_left_out(kind, data):
    problem = data.draw(fuzz.problems())
    names = [name for name, _ in problem.columns]
    outcome = fuzz.ask_dropping(problem, kind)
    fuzz.check(outcome)
    if set(problem.schema.names) <= set(names) and len(set(names)) == len(names):
        assert outcome.answer in ("released", "unbuildable"), outcome


@pytest.mark.parametrize("holder", fuzz.HOLDERS)
@settings(SETTINGS, max_examples=15)
@given(data=st.data())
def test_every_row_counts_by_itself_as_python_says(holder, data):
    schema, table = data.draw(fuzz.typed_tables())
    assert fuzz.count_by_row(schema, table, holder)


@settings(SETTINGS, max_examples=100)
@given(fuzz.point_data())
def test_any_data_for_a_finite_mechanism(problem):
    fuzz.check(fuzz.ask_points(*problem))


@settings(SETTINGS, max_examples=150)
@given(fuzz.body_data())
def test_any_data_for_whatever_reads_records(problem):
    fuzz.check(fuzz.ask_bodies(*problem))


@settings(SETTINGS, max_examples=250)
@given(fuzz.schema_texts())
def test_any_text_for_a_schema(text):
    fuzz.check(fuzz.ask_schema(text))


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
    with pytest.raises(gn.SchemaError, match=r"^schema:1504: "):
        gn.Schema.loads(text)


@settings(SETTINGS, max_examples=60)
@given(fuzz.schema_files())
def test_any_bytes_in_a_schema_file(content):
    fuzz.check(fuzz.ask_schema_file(content))


def test_a_schema_that_changes_on_the_way_is_caught(monkeypatch):
    monkeypatch.setattr("gaussnoise.tables.schema.schema._quoted", lambda text: '"' + text.strip() + '"')
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
    assert seen["DataError"] >= 15
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
            raise gn.DataError("column 'a'") from None

    def noted():
        error = gn.DataError("column 'a'")
        error.add_note(f"row {kit.CANARY}")
        raise error

    def chained():
        try:
            raise KeyError(kit.NUMBER)
        except KeyError as error:
            raise gn.DataError("column 'a'") from error

    for raising in (hidden, noted, chained):
        with pytest.raises(gn.DataError) as caught:
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

    def honest(task, action, hint=""):
        try:
            return action()
        except Exception as error:
            raise gn.DataError(f"could not {task}: {error}") from error

    for module in ("read", "codes", "count"):
        monkeypatch.setattr(f"gaussnoise.tables.counting.{module}.guarded", honest)
    schema = gn.Schema([gn.Attribute("a", [1, 2])])
    content = f"a\n1\n{kit.CANARY},2\n".encode()
    outcome = fuzz.ask_bytes(schema, content)
    assert outcome.leaks
