"""Answers to questions on the pages of releases, combinations and streams."""

import html
import re

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.cli.app import run
from gaussnoise.errors import ParameterError

SEX = gn.Attribute("sex", ["F", "M<b>"])
PAY = gn.Attribute("pay", clip=[0, 100], base={"kind": "moments", "degrees": [0, 1, 2]})
PEOPLE = pa.table({"sex": ["F", "M<b>"] * 500, "pay": [10.0, 30.0] * 500})


@pytest.fixture(scope="module")
def release():
    return gn.plan(gn.Schema([SEX, PAY]), [("sex", "pay")], gn.zCDP(1.0)).release(PEOPLE)


def section(path):
    """The text of the answers on a page."""
    page = path.read_text(encoding="utf-8")
    assert "<b>" not in page
    start = page.index('<h2 id="answers">')
    own = page[start : page.index("<h2", start + 1)]
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", own)).split())


def test_a_page_answers_questions_with_intervals_and_methods(release, tmp_path):
    questions = ["how many", "variance of pay by sex", "regression of pay on sex"]
    release.report(tmp_path / "page.html", ask=questions)
    text = section(tmp_path / "page.html")
    count = release.ask("how many").written
    assert (
        f"Count, in rows: {count['estimate'][0]} ({count['low'][0]} to {count['high'][0]})." in text
    )
    variance = release.ask("variance of pay by sex")
    for k, label in enumerate(["F", "M<b>"]):
        low, high = (variance.written[end][k].replace("-", "−") for end in ("low", "high"))
        estimate = variance.written["estimate"][k].replace("-", "−")
        assert f"{label} {estimate} {low} to {high}" in text
    assert f"method: {variance.method}." in text
    assert "each other line says how much is added to it" in text
    assert text.count("95 % intervals") == 3


def test_a_page_without_questions_has_no_such_section(release, tmp_path):
    release.report(tmp_path / "page.html")
    assert 'id="answers"' not in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_estimates_outside_their_limits_are_called_so_on_the_page(tmp_path):
    schema = gn.Schema([gn.Attribute("age", range(300))])
    plan, rows = gn.plan(schema, 1, gn.zCDP(0.01)), pa.table({"age": [0] * 900})
    release = plan.simulate(rows, np.random.default_rng(0))
    release.report(tmp_path / "page.html", ask=["share of age"])
    text = section(tmp_path / "page.html")
    assert "estimate below 0" in text
    assert "… and 280 more" in text  # as in the terminal, the first 20


def test_combinations_and_streams_answer_on_their_pages(release, tmp_path):
    again = gn.plan(gn.Schema([SEX]), 1, gn.zCDP(1.0)).release(PEOPLE)
    gn.combine([release, again]).report(tmp_path / "both.html", ask=["top 1 of sex"])
    assert "Largest of 2: count of sex" in section(tmp_path / "both.html")
    plan = gn.plan(gn.Schema([SEX]), 1, gn.zCDP(1.0), over=gn.streams.Ticks(3))
    tables = plan.simulate([PEOPLE, PEOPLE], np.random.default_rng(0))
    tables.report(tmp_path / "stream.html", ask=["sex=F by tick"])
    assert "Count of sex=F by tick" in section(tmp_path / "stream.html")


def test_questions_that_are_not_answered_leave_no_page(release, tmp_path):
    for ask, words in ((["average age"], "«age»"), ("count", "a list of questions")):
        with pytest.raises(ParameterError, match=words):
            release.report(tmp_path / "page.html", ask=ask)
    assert list(tmp_path.iterdir()) == []


def test_the_shell_puts_answers_on_a_page(release, tmp_path, capsys):
    release.save(tmp_path / "out")
    page = tmp_path / "page.html"
    words = ["report", tmp_path / "out", "-o", page, "--ask", "sex=F", "--ask", "entropy of sex"]
    assert run(list(map(str, words))) == 0
    text = section(page)
    assert "Count of sex=F, in rows: " in text
    assert "Entropy of sex: 0.69" in text
    capsys.readouterr()
