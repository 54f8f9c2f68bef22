"""Many questions of readers to many kinds of folders: no wrong reading, and hints that hold."""

import datetime
import functools
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.demo import load
from gaussnoise.errors import ParameterError
from gaussnoise.estimators import column_means

HINT = re.compile(r"(?:ask|answers|or|,) (['\"])(.*?)\1(?=,|$| or )")


def about(title):
    return gn.About(title=title)


def demo():
    pytest.importorskip("statsmodels", reason="statsmodels is missing")
    table, schema = load()
    tables = [("age", "affair"), ("religious", "affair"), ("marriage", "affair"), ("occupation",)]
    return gn.plan(schema, [*tables, ("children",)], gn.zCDP(1.0)).release(table)


def mean():
    rng, n = np.random.default_rng(1), 6000
    sex = rng.choice(["women", "men"], n)
    pay = np.where(sex == "men", 3200.0, 2900.0) + rng.normal(0, 900, n)
    table = pa.table({"sex": sex, "pay": pay})
    by, title = {"sex": ["women", "men"]}, about("Employees in Nowhere, 2024")
    return column_means(table, ["pay"], gn.zCDP(1.0), by=by, about=title).release


def persons():
    rng, n = np.random.default_rng(2), 3000
    who = np.repeat(np.arange(n), rng.integers(1, 5, n))
    k = len(who)
    stays = {"patient_id": who, "ward": rng.choice(["A", "B", "C"], k)}
    stays |= {"emergency": rng.choice(["yes", "no"], k), "cost": rng.gamma(2, 1500, k)}
    ward, emergency = (
        gn.Attribute("ward", ["A", "B", "C"]),
        gn.Attribute("emergency", ["yes", "no"]),
    )
    cost = gn.Attribute("cost", clip=[0, 20000])
    schema = gn.Schema([ward, emergency, cost], about=about("Hospital stays in 2023"))
    plan = gn.plan(
        schema,
        [("ward", "cost"), ("ward", "emergency")],
        gn.zCDP(1.0),
        person="patient_id",
        rows_per_person=2,
        per_person={"cost": "mean"},
    )
    return plan.release(pa.table(stays))


def stream():
    rng = np.random.default_rng(3)
    sex, covid = gn.Attribute("sex", ["women", "men"]), gn.Attribute("covid", ["no", "yes"])
    age = gn.Attribute("age", edges=[0, 18, 40, 65, 120])
    schema = gn.Schema([sex, age, covid], about=about("Tests for covid"))
    over = gn.streams.Ticks(8, period="week")
    plan = gn.plan(schema, [("sex", "covid"), ("age",)], gn.zCDP(1.0), over=over)
    ticks = []
    for tick, n in enumerate((900, 1000, 1200, 1100), 1):
        rows = {"sex": rng.choice(["women", "men"], n), "age": rng.uniform(0, 100, n)}
        rows |= {"covid": rng.choice(["no", "yes"], n), "week": [tick] * n}
        ticks.append(pa.table(rows))
    return plan.simulate(ticks, rng)


MONTHS = [f"2023-{k:02d}" for k in range(1, 13)]


def dated(attributes, title, rng, n=5000):
    schema = gn.Schema(
        [*attributes, gn.Attribute("region", ["North", "South"])], about=about(title)
    )
    days = rng.integers(0, 729, n)
    rows = {"month": rng.choice(MONTHS, n), "region": rng.choice(["North", "South"], n)}
    rows["admitted"] = [datetime.date(2022, 1, 1) + datetime.timedelta(int(day)) for day in days]
    return schema, pa.table(rows)


def combined():
    rng = np.random.default_rng(4)
    dates = [
        datetime.date(*day) for day in ((2022, 1, 1), (2023, 1, 1), (2023, 3, 1), (2023, 4, 1))
    ]
    admitted = gn.Attribute("admitted", edges=[*dates, datetime.date(2024, 1, 1)])
    month = gn.Attribute("month", MONTHS)
    schema, table = dated([month, admitted], "Hospital stays by month", rng)
    workloads = [("month", "region")], [("admitted", "region")]
    return gn.combine([gn.plan(schema, own, gn.zCDP(1.0)).release(table) for own in workloads])


def months():
    rng = np.random.default_rng(5)
    schema, table = dated([gn.Attribute("month", MONTHS)], "Hospital stays by month", rng)
    return gn.plan(schema, [("month", "region")], gn.zCDP(1.0)).release(table)


FOLDERS = {
    own.__name__: functools.cache(own) for own in (demo, mean, persons, stream, combined, months)
}


def questions():
    """The questions of every folder, each with its meaning; None where it has to be refused."""
    listed = {}
    for line in (Path(__file__).parent / "readers_questions.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            own = listed.setdefault(line.strip("[]"), {})
        elif line:
            question, meaning = line.split(" -> ")
            own[question] = None if meaning == "refused" else meaning
    return listed


QUESTIONS = questions()
EACH = "over persons, each with the mean of their own numbers in each group of ward × emergency"


@pytest.mark.parametrize("folder", QUESTIONS)
def test_questions_are_answered_as_they_are_meant_or_refused_with_hints_that_hold(folder):
    tables = FOLDERS[folder]()
    wrong, hints = [], 0
    for question, meaning in QUESTIONS[folder].items():
        try:
            found = tables.ask(question).meaning
        except ParameterError as refusal:
            found = None
            for _, hint in HINT.findall(str(refusal).partition("; hint: ")[2]):
                hints += 1
                tables.ask(hint)  # a question that a hint names is answered
        meant = meaning and meaning.replace("{each}", EACH)
        wrong += [(question, found)] * (found != meant)
    assert wrong == []
    assert hints >= 5


def test_there_are_many_questions():
    assert sum(map(len, QUESTIONS.values())) > 200
