"""Tests that messages speak of the shell's options there, and of arguments in Python."""

import ast
import re
from pathlib import Path

import pyarrow as pa
import pytest
import typer
from pyarrow import csv

import gaussnoise as gn
from gaussnoise.cli.app import app, run
from gaussnoise.cli.wording import in_shell, options_of

COMMANDS = typer.main.get_command(app)
SCHEMA = """\
[attributes.sex]
categories = ["F", "M"]

[attributes.age]
edges = [0, 18, 65, 120]

[attributes.income]
clip = [0, 1000]
"""


def translated(text, *words):
    return in_shell(text, options_of(COMMANDS, words))


@pytest.mark.parametrize(
    ("command", "python", "shell"),
    [
        ("release", 'hint: on_outside="drop" leaves', "hint: --on-outside drop leaves"),
        ("release", 'on_outside="refuse" or "drop"', "--on-outside refuse or drop"),
        ("release", "expected ledger= and id= together", "expected --ledger and --id together"),
        ("release", "hint: targets={...} finds", "hint: --target ... finds"),
        ("mean", 'hint: between={"age": (0, 120)}', "hint: --between age=0,120"),
        ("mean", 'hint: by={"sex": ["f", "m"]}', "hint: --by sex=f,m"),
        ("mean", "per_person=None, with weight=", "--per-person none, with --weight"),
        ("stream tick", "hint: number=3 reads", "hint: --tick 3 reads"),
        ("stream start", "expected Ticks(..., reports=k) with", "expected --reports k with"),
        ("combine", "difference(before, after) tells", "gaussnoise difference tells"),
        ("combine", "hint: all_rows_fit=True if", "hint: --all-rows-fit if"),
        ("stream start", "Stream.open('a b') goes on", "gaussnoise stream tick a b goes on"),
        # these stay: quoted texts, code, options, other names, questions
        ("release", "got 'level=3' and `by=x`", "got 'level=3' and `by=x`"),
        ("release", "or Dialect(encoding='cp1252')", "or Dialect(encoding='cp1252')"),
        ("release", "--target sex=50, --by a=b", "--target sex=50, --by a=b"),
        ("release", "like year=2024", "like year=2024"),
        ("ask", "ask: expected one of count of level=3", "ask: expected one of count of level=3"),
    ],
)  # fmt: skip
def test_options_stand_for_arguments(command, python, shell):
    assert translated(python, *command.split()) == shell
    assert translated(shell, *command.split()) == shell


def messages():
    """The texts that errors of the library are made of."""
    for path in Path(gn.__file__).parent.rglob("*.py"):
        if "cli" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for text in ast.walk(node) if isinstance(node, ast.Raise) else ():
                if isinstance(text, ast.JoinedStr):
                    parts = (p.value if isinstance(p, ast.Constant) else "…" for p in text.values)
                    yield "".join(parts)


def test_no_hint_about_an_argument_is_left_that_is_an_option():
    options = options_of(COMMANDS, [])
    asked = re.compile(r"(?<![\w.(\[{])(on_outside|rows_per_person|all_rows_fit|same_rows)=")
    found = [text for text in messages() if asked.search(text)]
    assert len(found) > 5  # the search finds messages
    assert not [text for text in found if asked.search(in_shell(text, options))]


@pytest.fixture
def call(capsys, tmp_path, monkeypatch):
    """Standard output and error of one command line, in a folder with a schema and a table."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    csv.write_csv(pa.table({"sex": ["F", "X"], "age": [7, 33], "income": [5, 70]}), "t.csv")

    def call(*words):
        status = run(list(words))
        return status, " ".join(" ".join(capsys.readouterr()).split())

    return call


def test_a_refused_table_names_the_command_that_says_which_rows(call):
    released = ("release", "t.csv", "-s", "s.toml", "-m", "sex", "--rho", "1", "--on-outside")
    gn.Ledger.create("l", gn.zCDP(3.0))
    status, said = call(*released, "refuse", "-o", "o", "--ledger", "l", "--id", "a")
    assert (status, "with --on-outside drop" in said, "gaussnoise check" in said) == (1, True, True)
    assert call("check", "t.csv", "-s", "s.toml")[1].count("--on-outside refuse") == 1


def test_a_stream_with_clipped_numbers_is_refused_in_words_of_the_shell(call):
    started = ("stream", "start", "-s", "s.toml", "-m", "sex,income", "--ticks", "3")
    status, said = call(*started, "--rho", "1", "-o", "f")
    assert (status, "a stream takes tables of counts" in said) == (1, True)
    assert "over=" not in said
    assert "gaussnoise difference" in said


def test_releases_with_other_persons_are_told_apart_by_the_options_that_make_them(call, tmp_path):
    people, schema = pa.table({"sex": ["F", "M"], "id": [1, 2]}), gn.Schema.load("s.toml")
    for name, options in {
        "rows": {},
        "one": {"person": "id"},
        "two": {"person": "id", "rows_per_person": 2},
    }.items():
        gn.plan(schema, ["sex"], gn.zCDP(1.0), **options).release(people, out=tmp_path / name)
    said = call("combine", "one", "two", "-o", "both")[1]
    assert "got 1 and 2, so that their budgets protect different things" in said
    assert "hint: make one of them again, with the same --rows-per-person" in said
    said = call("combine", "one", "rows", "-o", "both")[1]
    assert "got id and none, so" in said
    assert "the same --person" in said
