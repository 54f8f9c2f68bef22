"""Age groups made of birth dates are read from young to old, though dates rise the other way."""

import datetime as dt
import re

import numpy as np
import pyarrow as pa
import pytest

import gaussnoise as gn
from gaussnoise.app.columns import age_names, attribute_of, birth_dates
from gaussnoise.estimators import column_means
from gaussnoise.tables.release.population import population_of
from gaussnoise.tables.release.report import over_time
from gaussnoise.tables.release.report.answers import answers_of
from gaussnoise.tables.release.report.changes import changes_page
from gaussnoise.tables.release.report.numbers import entries_of
from gaussnoise.tables.release.report.over_time import OverTime
from gaussnoise.tables.release.report.pages import plan_page, release_page
from gaussnoise.tables.release.report.population import sections_of
from gaussnoise.tables.release.report.render import number

pytestmark = pytest.mark.usefixtures("quick_pictures")

AGES = "0, 18, 65"
NAMES = ["under 18", "aged 18 to 64", "aged 65 and over"]  # as they are read
EDGES = [-np.inf, dt.date(1961, 1, 1), dt.date(2008, 1, 1), dt.date(2025, 12, 31)]
BORN = gn.Attribute("born", edges=EDGES, names=NAMES[::-1], title="Age")
SEX = gn.Attribute("sex", ["F", "M"], other="none")
MONTHS = ["2024-12-01", "2025-01-01", "2025-02-01", "2025-03-01"]
ADMITTED = gn.Attribute("admitted", edges=MONTHS, names=["12/2024", "1/2025", "2/2025"])
PAY = gn.Attribute("pay", clip=[0, 100])


def rows(old=100, middle=200, young=300):
    """So many rows of each age group: their estimates have another order than their labels."""
    born = [dt.date(1950, 1, 1)] * old + [dt.date(1990, 1, 1)] * middle
    born += [dt.date(2020, 1, 1)] * young
    count, months = len(born), [dt.date(2024, 12, 5), dt.date(2025, 1, 5), dt.date(2025, 2, 5)]
    return pa.table({
        "born": born,
        "sex": (["F", "M", "?"] * count)[:count],
        "admitted": (months * count)[:count],
        "pay": [30.0] * old + [20.0] * middle + [10.0] * young,
    })  # fmt: skip


def simulated(workload, table=None, columns=(ADMITTED, BORN, SEX, PAY)):
    planned = gn.plan(gn.Schema(columns), workload, gn.zCDP(50))
    return planned.simulate(rows() if table is None else table, np.random.default_rng(0))


@pytest.mark.parametrize("ages", [AGES, "0, 18", "18, 65", "0, 1, 2", "0, 18, 30, 45, 65, 80"])
@pytest.mark.parametrize("day", ["2025-12-31", "2025-06-15", "2028-02-29", "2024-03-01"])
def test_ages_of_the_page_are_read_from_young_to_old(ages, day):
    names = age_names(ages).splitlines()
    born = attribute_of("born", "edges", birth_dates(ages, day), names=age_names(ages))
    assert [born.labels[k] for k in born.reading_order] == names[::-1]


@pytest.mark.parametrize(
    ("names", "is_turned"),
    [
        (["65+", "18–64", "0–17"], True),
        (["aged 65 and over", "of age", "under 18"], True),
        (["until 1960", "1961 to 2007", "2008 or later"], False),
        (["old", "middle", "young"], False),
        (["3", "1", "2"], False),
        (["week 80", "week 52", "week 1"], False),  # further apart than the dates
        (None, False),
    ],
)
def test_only_numbers_that_fall_as_ages_do_turn_the_order(names, is_turned):
    born = gn.Attribute("born", edges=EDGES, names=names, other="unknown")
    assert born.reading_order == ((2, 1, 0, 3) if is_turned else (0, 1, 2, 3))


def test_times_and_numbers_stay_in_their_order():
    assert ADMITTED.reading_order == SEX.reading_order == (0, 1, 2)
    weeks = ["2024-12-23", "2024-12-30", "2025-01-05"]
    assert gn.Attribute("week", edges=weeks, names=["week 52", "week 1"]).reading_order == (0, 1)
    scores = gn.Attribute("score", edges=[0, 1, 2, 3], names=["3rd", "2nd", "1st"])
    assert scores.reading_order == (0, 1, 2)


def heads(text):
    """The first heads of rows of each table of numbers of a page."""
    tables = re.findall(r"<table[^>]*data-(?:of|change).*?</table>", text, flags=re.DOTALL)
    found = [
        re.findall(r'<tr[^>]*>\s*<th scope="row"[^>]*><bdi>(.*?)</bdi>', own) for own in tables
    ]
    return [list(dict.fromkeys(own)) for own in found]


def drawn(picture, names):
    """The names that a picture shows, in their order in it."""
    return [text for text in re.findall(r">([^<>]+)</text>", picture.svg) if text in names]


def test_tables_of_counts_begin_with_the_young_and_keep_their_numbers():
    release = simulated(
        ["born", ("born", "sex"), ("admitted", "born"), ("born", "sex", "admitted")]
    )
    alone, crossed, across, three = entries_of(release)
    cells = alone.every[0].cells
    assert [cell.names for cell in cells] == [(name,) for name in NAMES]
    assert np.allclose([cell.estimate for cell in cells], release["born"].estimate[::-1])
    shares = alone.every[0].cells_beside
    assert shares[0].estimate > shares[1].estimate > shares[2].estimate
    for numbers in crossed.every:
        own = numbers.crossed
        assert [names for names, _ in own.rows] == [(name,) for name in NAMES]
        exact = numbers.table.estimate[::-1] * (100 if numbers.kind == "share" else 1)
        shown = [[cell.estimate for cell in line[:3]] for _, line in own.rows]
        assert np.allclose(shown, exact)
        if own.totals is not None:  # totals of rows stand beside their own row
            totals = [line[-1].estimate for _, line in own.rows]
            assert np.allclose(totals, release["born"].estimate[::-1])
    own = across.every[0].crossed
    assert own.headings == ["admitted", "Age"]
    assert own.columns == NAMES
    assert [names for names, _ in own.rows] == [("12/2024",), ("1/2025",), ("2/2025",)]
    assert np.allclose([cell.estimate for cell in own.totals[:3]], release["born"].estimate[::-1])
    labels = [cell.names for cell in three.every[0].cells]
    assert labels[:2] == [("12/2024", "under 18", "F"), ("12/2024", "under 18", "M")]
    text = release_page(release)
    turned = [own for own in heads(text) if "under 18" in own]
    assert len(turned) > 5
    assert all([*own, "Total"][:3] == NAMES for own in turned)
    assert " · ".join(f"<bdi>{name}</bdi>" for name in NAMES) in plan_page(release.plan)


def test_pictures_begin_with_the_young():
    one, two, three = entries_of(simulated(["born", ("born", "sex"), ("born", "sex", "admitted")]))
    (alone,), (coloured,) = one.every[0].pictures, two.every[0]._colours()
    for picture in (alone, coloured, *three.every[0]._colours()):
        assert drawn(picture, NAMES) == NAMES
    numbers = [number(x, 0) for x in two.every[0].table.estimate[::-1].ravel()]
    assert drawn(coloured, numbers) == numbers
    release = simulated([("born", "sex", "admitted")], columns=[BORN, ADMITTED, SEX])
    panels = entries_of(release)[0].every[0]._colours()
    assert [own.caption.partition(".")[0] for own in panels] == [f"Age: {name}" for name in NAMES]
    for own, exact in zip(panels, release["born", "admitted", "sex"].estimate[::-1], strict=True):
        numbers = [number(x, 0) for x in exact.ravel() if x > 20]  # others may be 0
        assert drawn(own, numbers) == numbers


def test_answers_on_a_page_begin_with_the_young():
    release = simulated([("born", "pay"), ("born", "sex")])
    asked = ["mean of pay by born", "count by born, sex", "count", "share of sex=F by born"]
    means, counts, _, shares = answers_of(release, asked)
    assert [float(estimate) for _, estimate, *_ in means.rows] == pytest.approx([10, 20, 30], abs=1)
    assert [own for own, *_ in counts.rows][:4] == [["under 18", x] for x in ("F", "M", "none")] + [
        ["aged 18 to 64", "F"]
    ]
    for found in (means, shares):
        assert [own for (own,), *_ in found.rows] == NAMES


def test_means_begin_with_the_young():
    [means] = (
        own for own in entries_of(simulated([("born", "pay")]))[0].every if own.kind == "mean"
    )
    assert np.allclose([cell.estimate for cell in means.cells], [10, 20, 30], atol=1)
    assert [cell.names for cell in means.cells] == [(name,) for name in NAMES]


def test_changes_begin_with_the_young():
    before, after = simulated(["born"]), simulated(["born"], rows(110, 230, 360))
    text = changes_page(gn.difference(before, after))
    assert heads(text)[-1] == NAMES
    changes = [float(x) for x in re.findall(r'"Change"><span><data value="(.*?)"', text)]
    assert np.allclose(changes[-3:], [60, 30, 10], atol=5)


def test_tables_over_time_begin_with_the_young(monkeypatch):
    schema = gn.Schema([BORN, SEX])
    planned = gn.plan(schema, ["born"], gn.zCDP(50), over=gn.streams.Ticks(3))
    kept = planned.simulate([rows().select(["born", "sex"])] * 2, np.random.default_rng(0))
    series = kept.series("born")
    shown = OverTime(series, "Age", "age", schema)
    assert [name for name, _ in shown.rows] == NAMES
    for (_, cells), exact in zip(shown.rows, series.estimate.T[::-1], strict=True):
        assert np.allclose([cell.estimate for cell in cells], exact)
    monkeypatch.setattr(over_time, "series_chart", lambda _, panels, *more: panels)
    panels = shown.picture
    assert [name for name, *_ in panels] == NAMES
    assert np.allclose([estimate for _, estimate, *_ in panels], series.estimate.T[::-1])


def test_means_of_a_population_begin_with_the_young():
    table = rows(1000, 2000, 3000)
    found = column_means(table, ["pay"], gn.zCDP(50), by=[BORN])
    [section] = sections_of(population_of(found.release))
    assert [row[0] for row in section.grids[0].rows] == NAMES
    means = [float(row[1]) for row in section.grids[0].rows]
    assert np.allclose(means, [10, 20, 30], atol=3)
    assert drawn(section.picture, NAMES) == NAMES
