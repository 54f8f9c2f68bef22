"""What a server remembers of a project: the last check of its rows."""

import pytest

from gaussnoise.app.jobs import Job
from gaussnoise.app.project import SCHEMA, Project
from gaussnoise.app.state import State

COLUMNS = """\
[attributes.sex]
categories = ["F", "M"]

[attributes.age]
edges = [0, 18, 65, 120]
"""
PLAN = '[plan]\ntable = "rows.csv"\nrho = 1\n'
ONE = '[[workload]]\nof = ["sex"]\n'
BOTH = '[[workload]]\nof = ["age:prefix"]\n' + ONE
ALL_FIT, SOME_LEFT = 0, 1  # exit statuses of a check


@pytest.fixture
def checked(tmp_path, monkeypatch):
    """Whether a check of one schema file answers for another; ``rows`` are changed in between."""
    state = State(Project(tmp_path.resolve()))

    def checked(before, after, status=ALL_FIT, rows=None, said="2 rows, 2 counted"):
        job = Job("check", ("check",), 0.0, status=status, said=said)
        monkeypatch.setattr(state.jobs, "start", lambda *_: job)
        (tmp_path / "rows.csv").write_text("sex,age\nF,20\nM,30\n", encoding="utf-8")
        (tmp_path / SCHEMA).write_text(before, encoding="utf-8")
        state.check()
        (tmp_path / SCHEMA).write_text(after, encoding="utf-8")
        if rows is not None:
            (tmp_path / "rows.csv").write_text(rows, encoding="utf-8")
        return state.checked is job

    return checked


@pytest.mark.parametrize("status", [ALL_FIT, SOME_LEFT])
def test_a_check_holds_for_other_tables_of_the_same_columns_and_another_budget(checked, status):
    assert checked(PLAN + COLUMNS, PLAN + COLUMNS + BOTH, status)  # done before there are tables
    assert checked(PLAN + COLUMNS + BOTH, PLAN.replace("1", "2") + COLUMNS + BOTH, status)
    guessed = PLAN + "expected_rows = 9\n"
    assert checked(PLAN + COLUMNS + BOTH, guessed + COLUMNS + BOTH, status)
    named = '[release]\nid = "x"\n[about]\ntitle = "t"\n' + PLAN + COLUMNS + BOTH
    assert checked(PLAN + COLUMNS + BOTH, named, status)


def test_a_check_holds_for_fewer_columns_only_if_all_rows_fit(checked):
    assert checked(PLAN + COLUMNS, PLAN + COLUMNS + ONE, ALL_FIT)
    assert not checked(PLAN + COLUMNS, PLAN + COLUMNS + ONE, SOME_LEFT)
    for status in (ALL_FIT, SOME_LEFT):
        assert not checked(PLAN + COLUMNS + ONE, PLAN + COLUMNS + BOTH, status)


@pytest.mark.parametrize(
    "after",
    [
        PLAN + COLUMNS.replace("120", "110") + BOTH,
        PLAN + COLUMNS.replace("120]", '120]\nother = "none"') + BOTH,
        PLAN + 'person = "id"\n' + COLUMNS + BOTH,
        PLAN.replace("rows", "more") + COLUMNS + BOTH,
        PLAN + '[file]\ndelimiter = ";"\n' + COLUMNS + BOTH,
        PLAN + '[[impossible]]\nsex = "F"\nage = "[0, 18)"\n' + COLUMNS + BOTH,
    ],
    ids=["edges", "catch-all", "person", "file", "delimiter", "impossible"],
)
def test_a_check_does_not_hold_for_another_schema(checked, after):
    assert not checked(PLAN + COLUMNS + BOTH, after)


def test_a_check_does_not_hold_for_other_rows_nor_without_an_answer(checked):
    own = PLAN + COLUMNS + BOTH
    assert not checked(own, own, rows="sex,age\nF,20\nF,30\nF,30\n")
    assert not checked(own, own, status=None)
    assert not checked(own, own, said="")
