"""Names of intervals: every door shows them in place of [18, 40), and they change no number."""

import datetime
import itertools
import json
import math
import re

import numpy as np
import pyarrow as pa
import pytest
from browser import as_texts, node_lines
from changed import Copy

import gaussnoise as gn
from gaussnoise import verifier
from gaussnoise.cli.app import run
from gaussnoise.errors import ParameterError, SchemaError
from gaussnoise.tables.drafts.draft import draft
from gaussnoise.tables.release.report.pages import plan_page, release_page
from gaussnoise.tables.schema.interval_names import whole_names

EDGES = [0, 18, 40, 65, 120]
NAMES = ("under 18", "18 to 39", "40 to 64", "65 and over")
INTERVALS = ("[0, 18)", "[18, 40)", "[40, 65)", "[65, 120]")
INSIDE = [*itertools.pairwise(EDGES)]
LABELS = (*NAMES, "not stated")
RNG = np.random.default_rng(4)
TABLE = pa.table({"sex": RNG.choice(["F", "M"], 4000), "age": RNG.integers(0, 130, 4000)})


def schema_of(names=NAMES, **options):
    age = gn.Attribute("age", edges=EDGES, names=names, other="not stated", **options)
    return gn.Schema([gn.Attribute("sex", ["F", "M"]), age])


def plan_of(names=NAMES, rho=2.0, **options):
    return gn.plan(schema_of(names), [("sex", "age"), "age"], gn.zCDP(rho), **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("names") / "out"
    plan_of().release(TABLE, out=place)
    return place


def first_lines(place):
    """The first lines of both programs that check a folder."""
    return [lines[0] for lines in (verifier.verified(place), node_lines([as_texts(place)])[0])]


def both(place):
    """The first words of both programs that check a folder."""
    return [line.split()[0] for line in first_lines(place)]


# the schema


def test_names_are_the_labels_and_are_saved():
    schema = schema_of()
    assert schema.attributes[1].labels == LABELS
    assert schema.attributes[1].interval_texts == INTERVALS
    assert f'names = ["{NAMES[0]}", "18 to 39", ' in schema.to_toml()
    assert gn.Schema.loads(schema.to_toml()) == schema
    assert schema != schema_of(None)
    assert schema_of(None).attributes[1].labels[:4] == INTERVALS


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (NAMES[:3], "names: expected 4, one for each interval from [0, 18) to [65, 120], got 3"),
        ((), "names: expected 4"),
        (("a", "b", "c", "a"), "expected each name once, got 'a' twice"),
        (("a", "b", "c", ""), "expected one line"),
        (("a", "b", "c", "  "), "expected one line"),
        (("a", "b", "c", "d "), "without blanks at its ends, got 'd '"),
        (("a", "b", "c", "d\ne"), "expected one line"),
        (("a", "b", "c", "\u202ed"), "expected one line"),
        (("a", "b", "c", 7), "expected one line"),
        (("a", "b", "c", "not stated"), "expected other='not stated' to differ"),
        (("[18, 40)", "[0, 18)", "c", "d"), "a name of [0, 18) that is no other interval"),
        (("[0, 65)", "b", "c", "d"), "a name of [0, 18) that is no other interval"),
        ("abcd", "expected a list of names"),
        ({"a", "b", "c", "d"}, "has an order, got a set"),
    ],
)
def test_names_that_do_not_fit_are_refused(names, words):
    with pytest.raises(SchemaError, match=re.escape(words)):
        schema_of(names)


@pytest.mark.parametrize(
    "values", [{"categories": ["a", "b"]}, {"clip": [0, 9]}, {"unit": 0.01}], ids=str
)
def test_only_intervals_have_names(values):
    with pytest.raises(SchemaError, match="names: expected edges, whose intervals have names"):
        gn.Attribute("x", names=["a", "b"], **values)


def test_a_file_says_what_is_wrong_with_names_and_where():
    text = "[attributes.age]\nedges = [0, 18, 65]\n"
    for line, words in (
        ("names = 3", "schema:3: attributes.age.names: expected a list of texts"),
        ('labels = ["a", "b"]', 'hint: names = ["under 18", "18 and over"]'),
        ('name = ["a", "b"]', "hint: did you mean"),
        ('names = ["a"]', "names: expected 2, one for each interval"),
    ):
        with pytest.raises(SchemaError, match=re.escape(words)):
            gn.Schema.loads(f"{text}{line}\n")


def test_an_interval_may_keep_its_own_text():
    names = ("children", *INTERVALS[1:])
    assert schema_of(names).attributes[1].labels == (*names, "not stated")


# names that are proposed


@pytest.mark.parametrize(
    "edges",
    [
        [-math.inf, 18, 40, 65, math.inf],
        [0, 1, 2, 5, 10, 120],
        [-20, -5, 0, 1, 30],
        [-math.inf, 7],
        [7, math.inf],
    ],
)
def test_proposed_names_say_which_whole_numbers_are_in_an_interval(edges):
    names = whole_names([*map(float, edges)])
    assert names == gn.Attribute("x", edges=edges, names=names).names
    for number in range(-30, 130):
        found = [name for name in names if said_in(number, name)]
        inside = [
            low <= number < high or number == high == edges[-1]
            for low, high in itertools.pairwise(edges)
        ]
        assert found == [name for name, is_in in zip(names, inside, strict=True) if is_in]


def said_in(number, name):
    """Whether a reader of a name takes a number to be in it."""
    low, *more = map(int, re.findall(r"-?\d+", name))
    if name.startswith(("under ", "up to ")):
        return number < low or (number == low and name.startswith("up"))
    return number >= low if name.endswith(" and over") else low <= number <= (more or [low])[0]


def test_days_have_proposed_names_and_other_numbers_and_times_have_none():
    day, moment = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, 8, 30)
    assert whole_names([-math.inf, day, day.replace(month=3), day.replace(year=2021)]) == (
        "before 2020-01-01",
        "2020-01-01 to 2020-02-29",
        "2020-03-01 to 2021-01-01",
    )
    assert whole_names([day, day.replace(day=2), math.inf]) == ("2020-01-01", "2020-01-02 or later")
    assert whole_names([moment, moment.replace(year=2021)]) is None
    assert whole_names([0.0, 0.5, 1.0]) is None
    assert whole_names([-0.0, 5.0]) == ("0 to 5",)
    assert whole_names([-math.inf, math.inf]) is None


def test_a_draft_proposes_names_for_whole_numbers_alone():
    table = {"age": [k % 90 for k in range(900)], "pay": [k / 7 for k in range(900)]}
    drafted = draft(pa.table(table))
    age, pay = drafted.attributes
    assert age.names == whole_names(age.edges)
    assert age.names[-1] == "80 and over"
    assert pay.names is None
    assert "clip = [0, 90] in place of edges and names" in drafted.reasons["age"]
    assert "in place of edges and" not in drafted.reasons["pay"]
    assert gn.Schema.loads(drafted.to_toml()).attributes == (age, pay)


# every door


def test_names_change_no_number():
    """Only texts differ from the same release without names."""
    made = [
        plan_of(names).simulate(TABLE, np.random.default_rng(8))["sex", "age"]
        for names in (NAMES, None)
    ]
    named, plain = made
    assert named.estimate.tolist() == plain.estimate.tolist()
    assert named.labels == (("F", "M"), LABELS)
    assert plain.labels == (("F", "M"), (*INTERVALS, "not stated"))


@pytest.mark.parametrize("form", ["csv", "parquet", "jsonl", "xlsx", "sdmx-csv", "json-stat"])
def test_every_format_writes_them_and_converts_them(form, folder, tmp_path):
    assert run(["convert", str(folder), "--format", form, "-o", str(tmp_path / "new")]) == 0
    again, first = gn.TableRelease.load(tmp_path / "new"), gn.TableRelease.load(folder)
    assert again.plan.schema == first.plan.schema == schema_of()
    assert again["age"].labels == (LABELS,)
    assert again["age"].estimate.tolist() == first["age"].estimate.tolist()


def test_published_files_and_pages_show_names_and_say_the_intervals_once(folder):
    text = (folder / "tables/2-age.csv").read_text(encoding="utf-8")
    assert [line.partition(",")[0] for line in text.splitlines()[1:]] == [f'"{x}"' for x in LABELS]
    assert json.loads((folder / "release.json").read_text())["domain"][1]["labels"] == [*LABELS]
    method = " ".join((folder / "method.txt").read_text(encoding="utf-8").split())
    assert "age: under 18 [0, 18); 18 to 39 [18, 40); " in method
    assert "65 and over [65, 120]; not stated" in method
    ddi = (folder / "ddi.xml").read_text(encoding="utf-8")
    assert re.search(r"<catValu>18 to 39</catValu>\s*<labl>\[18, 40\)</labl>", ddi)
    assert ddi.count("<labl>[") == len(NAMES)
    page = release_page(gn.TableRelease.load(folder))
    shown = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    for words in (shown, plan_page(plan_of())):
        assert all(name in words for name in NAMES)
    assert "[18, 40)" not in shown


@pytest.mark.parametrize(
    ("question", "meaning"),
    [
        ("count of age=under 18", 'count of age="under 18"'),
        ("how many under 18", 'count of age="under 18"'),
        ("count of age=[0, 40)", 'count of age="under 18"|"18 to 39"'),
        ("count of age<40", 'count of age="under 18"|"18 to 39"'),
        ("count of age between 18 and 65", 'count of age="18 to 39"|"40 to 64"'),
        ("share of sex=F given age=65 and over", 'share of sex=F given age="65 and over"'),
        ("count of age=18 to 39|40 to 64 and sex=M", 'count of age="18 to 39"|"40 to 64", sex=M'),
    ],
)
def test_questions_take_names_and_intervals(question, meaning, folder):
    release = gn.TableRelease.load(folder)
    answer = release.ask(question)
    assert answer.meaning.endswith(meaning)
    assert release.ask(meaning).estimate == answer.estimate


def test_a_question_says_that_over_an_edge_is_from_that_edge_on(folder):
    release = gn.TableRelease.load(folder)
    assert release.ask("how many over 65").note.startswith("65 and more")
    assert "and more" not in release.ask("how many under 18").note
    assert release.ask("age").labels == (LABELS,)
    assert (
        release.ask("median age").estimate
        == gn.TableRelease.load(folder).ask("median of age").estimate
    )


@pytest.mark.parametrize("names", [NAMES, None])
def test_runs_of_intervals_are_intervals_and_single_ones_have_names(names):
    def labels(base):
        release = gn.plan(schema_of(names), [{"age": base}], gn.zCDP(1)).release(TABLE)
        return release.answers({"age": base}).labels[0]

    ends = [(a, b) for a, b in itertools.combinations(EDGES, 2) if (a, b) not in INSIDE]
    runs = {f"[{low}, {high}{']' if high == EDGES[-1] else ')'}" for low, high in ends}
    assert {*labels("ranges")} == {*(names or INTERVALS), *runs}
    assert labels({"kind": "bins", "widths": [2]}) == ("[0, 40)", "[40, 120]")
    assert labels("prefix")[:3] == ("below 18", "below 40", "below 65")


def test_rules_take_names_and_intervals_for_the_same_label():
    rules = [
        gn.Schema(schema_of().attributes, [{"sex": "F", "age": age}]).impossible
        for age in ("[0, 18)", "under 18", ["under 18"])
    ]
    assert len(set(rules)) == 1
    schema = gn.Schema(schema_of().attributes, rules[0])
    assert gn.Schema.loads(schema.to_toml()) == schema
    for age in ("[0, 19)", ["under 18", "[0, 18)"]):
        with pytest.raises(SchemaError, match="distinct labels of 'age', like 'under 18'"):
            gn.Schema(schema_of().attributes, [{"sex": "F", "age": age}])


def test_groups_and_synthetic_records_have_them():
    schema = schema_of(groups={"band": {"grown up": [18, 120]}})
    release = gn.plan(schema, ["age", {"age": "band"}], gn.zCDP(2)).release(TABLE)
    records = release.synthetic()
    assert set(records["age"].to_pylist()) <= {*LABELS}
    parts = [release.ask(f'count of age="{name}"').estimate for name in NAMES[1:]]
    assert release.ask("count of band=grown up").estimate == pytest.approx(sum(parts))


def test_streams_combinations_and_changes_have_them_and_both_programs_agree(folder, tmp_path):
    assert both(folder) == ["checked", "checked"]
    one, other = gn.TableRelease.load(folder), plan_of().release(TABLE, out=tmp_path / "other")
    gn.combine([one, other]).save(tmp_path / "combined")
    assert gn.TableRelease.load(tmp_path / "combined")["age"].labels == (LABELS,)
    changes = gn.difference(one, other)
    changes.save(tmp_path / "changes")
    assert changes["age"].labels == (LABELS,)
    stream = plan_of(over=gn.streams.Ticks(2)).start(tmp_path / "stream")
    assert stream.tick(TABLE, number=1)["age"].labels == (LABELS,)
    for name in ("combined", "changes", "stream"):
        assert both(tmp_path / name) == ["checked", "checked"]


def test_releases_of_other_names_are_not_put_together(folder):
    one = gn.TableRelease.load(folder)
    other = plan_of(None).release(TABLE)
    with pytest.raises(ParameterError, match="has other names of its intervals"):
        gn.combine([one, other])


@pytest.mark.parametrize(
    "line",
    [
        'names = ["18 to 39", "under 18", "40 to 64", "65 and over"]',
        'names = ["under 18", "18 to 39", "40 to 64"]',
        'names = ["under 18", "18 to 39", "40 to 64", "65 and over", "more"]',
        'names = ["under 18", "under 18", "40 to 64", "65 and over"]',
        'names = ["under 18", "18 to 39", "40 to 64", "66 and over"]',
        "",
    ],
)
def test_both_programs_refuse_other_names_in_the_schema_or_the_record(line, folder, tmp_path):
    copy = Copy(folder, tmp_path / "copy")
    toml = copy.record["plan"]["schema"]
    changed = re.sub("names = .*", line, toml)
    assert changed != toml
    copy.write_record(copy.record | {"plan": copy.record["plan"] | {"schema": changed}})
    assert both(copy.at) == ["FAILED:", "FAILED:"]
    # nor does it help to say the same in the record, where there are not as many
    own = re.findall('"(.*?)"', line)
    domain = json.loads(json.dumps(copy.record["domain"]))
    domain[1]["labels"] = [*(own or INTERVALS), "not stated"]
    copy.write_record(copy.record | {"domain": domain})
    assert both(copy.at) == ["FAILED:", "FAILED:"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("names = .*", 'names = ["under 18", "18 to 39", "40 to 64"]'),
        ("names = .*", 'names = ["under 18", "18 to 39", "40 to 64", "65 and over", "more"]'),
        ("edges = .*", f"categories = {json.dumps(NAMES)}"),
    ],
)
def test_both_programs_count_the_names(old, new, folder, tmp_path):
    copy = Copy(folder, tmp_path / "copy")
    toml = re.sub(old, new, copy.record["plan"]["schema"])
    copy.write_record(copy.record | {"plan": copy.record["plan"] | {"schema": toml}})
    for line in first_lines(copy.at):
        assert line.startswith("FAILED:")
        assert "names of the intervals of 'age'" in line
