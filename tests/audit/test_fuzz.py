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


@settings(SETTINGS, max_examples=100)
@given(fuzz.point_data())
def test_any_data_for_a_finite_mechanism(problem):
    fuzz.check(fuzz.ask_points(*problem))


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

    def honest(task, action):
        try:
            return action()
        except Exception as error:
            raise gn.DataError(f"could not {task}: {error}") from error

    for module in ("_read", "_count"):
        monkeypatch.setattr(f"gaussnoise.tables.{module}.guarded", honest)
    schema = gn.Schema([gn.Attribute("a", [1, 2])])
    content = f"a\n1\n{kit.CANARY},2\n".encode()
    outcome = fuzz.ask_bytes(schema, content)
    assert outcome.leaks
