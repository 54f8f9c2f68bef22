"""Edits of a schema file: one part is exchanged, and all others keep their text."""

import pandas as pd
import pytest

import gaussnoise as gn
from gaussnoise.app.schema_file import SchemaFile
from gaussnoise.cli.app import run
from gaussnoise.errors import SchemaError
from gaussnoise.tables.drafts.draft import draft

BY_HAND = """\
# what the census asks, by its code book

[about]
title = "Census"
[attributes.sex] # two
categories = [
  "F",

  "M",  # as printed
]
# counties of 2024
[attributes."a county"]
categories = ["[attributes.x]", "b"]
other = "else"

[attributes."a county".groups.half]
North = ["b"]

[[workload]]
of = ["sex"]
[plan]
rho = 0.1"""


@pytest.fixture
def drafted(tmp_path, monkeypatch, capsys):
    """The text of a draft by the shell, with columns that are left out."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{k},{'FM'[k % 2]},{k % 90},{k // 2},{k % 150}" for k in range(300)]
    lines = ["record,sex,age,person,code", *rows]
    (tmp_path / "t.csv").write_text("\n".join(lines).replace(",3\n", ",x3\n"), encoding="utf-8")
    assert run(["schema", "t.csv", "-o", "s.toml"]) == 0
    capsys.readouterr()
    return (tmp_path / "s.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize("text", [BY_HAND, "", "# alone", "draft = true\n\n# x\n[file]\n\n"])
def test_parts_together_are_the_text(text):
    assert SchemaFile.of(text).text == text


def test_one_attribute_is_exchanged_and_all_else_stays():
    new = gn.Attribute("sex", ["F", "M", "X"])
    changed = SchemaFile.of(BY_HAND).with_attribute(new).text
    assert gn.Schema.loads(changed).attributes[0] == new
    before, _, after = BY_HAND.partition("[attributes.sex]")
    assert changed.startswith(before)
    kept = after[after.index("# counties") :]  # comments and groups of the other one
    assert list(filter(None, changed.splitlines()))[-10:] == list(filter(None, kept.splitlines()))


def test_every_column_of_a_draft_is_marked_until_it_is_confirmed(drafted):
    file = SchemaFile.of(drafted)
    assert file.text == drafted
    schema = gn.Schema.loads(drafted)
    assert set(file.reasons()) == set(schema.names)
    assert "different values" in file.reasons()["sex"]
    one = file.confirmed("sex")
    assert set(one.reasons()) == set(schema.names) - {"sex"}
    edited = one.with_attribute(gn.Attribute("age", edges=[0, 50, 90]), "read off the data")
    assert set(edited.reasons()) == set(one.reasons())  # an edit alone confirms nothing
    assert gn.Schema.loads(edited.text).is_draft
    done = edited
    for name in schema.names[1:]:  # the last one that is confirmed or left out ends the draft
        assert gn.Schema.loads(done.text).is_draft
        own = gn.Schema.loads(done.text).attributes[schema.names.index(name)]
        done = done.with_attribute(own) if name != schema.names[-1] else done.without(own, "mine")
    assert not gn.Schema.loads(done.text).is_draft
    assert "DRAFT" not in done.text
    assert done.left_out() == file.left_out() | {schema.names[-1]: "mine"}
    again = file.keeping(done)  # read again, with nothing new
    assert not gn.Schema.loads(again.text).is_draft
    # what comes back is marked, and the file is a draft again
    back = SchemaFile.of(done.with_attribute(own, "It was left out.").text)
    assert gn.Schema.loads(back.text).is_draft
    assert set(back.reasons()) == {schema.names[-1]}
    assert not gn.Schema.loads(back.with_attribute(own).text).is_draft


def test_columns_come_and_go(drafted):
    file = SchemaFile.of(drafted)
    assert {"record", "person"} <= file.left_out().keys()
    own = file.instead("person")
    assert own is not None
    taken = file.with_attribute(own, "was left out")
    assert "person" in gn.Schema.loads(taken.text).names
    assert "person" not in taken.left_out()
    assert "person" in taken.reasons()  # still read off the data
    sex = gn.Schema.loads(drafted).attributes[0]
    gone = file.without(sex, "by hand")
    assert "sex" not in gn.Schema.loads(gone.text).names
    assert gone.instead("sex") == sex
    again = SchemaFile.of(gone.text).with_attribute(sex)
    assert set(gn.Schema.loads(again.text).names) == set(gn.Schema.loads(drafted).names)


def test_a_new_draft_keeps_what_a_person_decided(drafted):
    """Confirmed columns, columns left out or taken by hand, and all that the plan states."""
    first = SchemaFile.of(drafted)
    sex = gn.Attribute("sex", ["F", "M", "X"], other="else", groups={"g": {"all": ["F", "M"]}})
    age = gn.Schema.loads(drafted).attributes[1]
    person = first.instead("person")
    assert age.name == "age"
    assert person is not None
    before = first.with_attribute(sex).without(age, "by hand").with_attribute(person)
    before = before.stating("plan", ["[plan]\nrho = 0.1\n"]).stating("file", ["[file]\n"])
    again = SchemaFile.of(first.keeping(SchemaFile.of(before.text)).text)
    schema = gn.Schema.loads(again.text)
    assert schema.is_draft
    assert {"sex", "person"} <= {*schema.names}
    assert schema.attributes[schema.names.index("sex")] == sex
    assert {"sex", "person"}.isdisjoint(again.reasons())  # still confirmed
    assert again.reasons().keys() == first.reasons().keys() - {"sex", "age"}
    assert again.left_out()["age"].endswith("by hand")
    assert "rho = 0.1" in again.text
    assert "[file]" not in again.text  # that of the new draft
    assert first.keeping(SchemaFile()).text == first.spaced().text


def test_a_new_draft_takes_what_was_confirmed_elsewhere(drafted):
    """Confirmed columns and those left out; all else of the new draft stays marked."""
    new = SchemaFile.of(drafted)
    sex = gn.Attribute("sex", ["F", "M", "X"], other="else", groups={"g": {"all": ["F", "M"]}})
    age = gn.Schema.loads(drafted).attributes[1]
    more = gn.Attribute("more", ["a", "b"])
    code = gn.Attribute("code", ["not", "confirmed"])
    before = new.with_attribute(sex).without(age, "by hand").with_attribute(more)
    before = before.with_attribute(code, "read off the data")
    before = before.stating("plan", ["[plan]\nrho = 9\n"])
    before = before.stating("impossible", ['[[impossible]]\nsex = "F"\nmore = "a"\n'])
    own = new.stating("plan", ["[plan]\nrho = 0.1\n"])
    taken = SchemaFile.of(own.taking(SchemaFile.of(before.text)).text)
    schema = gn.Schema.loads(taken.text)
    assert schema.is_draft
    columns = {a.name: a for a in schema.attributes}
    assert (columns["sex"], columns["more"]) == (sex, more)
    assert taken.reasons().keys() == new.reasons().keys() - {"sex", "age"}
    assert columns["code"] == {a.name: a for a in gn.Schema.loads(drafted).attributes}["code"]
    assert taken.left_out()["age"].endswith("by hand")
    assert schema.impossible == gn.Schema.loads(before.text).impossible
    assert "rho = 0.1" in taken.text
    assert "rho = 9" not in taken.text
    mine = own.with_attribute(age)  # confirmed here, and left out there
    assert "age" in gn.Schema.loads(mine.taking(SchemaFile.of(before.text)).text).names


def test_comments_of_a_confirmed_file_are_no_marks(drafted):
    taken = SchemaFile.of(drafted).taking(SchemaFile.of(BY_HAND))
    assert "a county" in gn.Schema.loads(taken.text).names
    assert "a county" not in taken.reasons()


@pytest.mark.parametrize("is_draft", [True, False])
def test_a_file_without_columns_takes_them_as_they_are(drafted, is_draft):
    """Their marks as well; and how files are written, unless that is stated."""
    before = SchemaFile.of(drafted).stating("file", ['[file]\ndelimiter = ";"\n'])
    before = before if is_draft else before.no_draft()
    asked = SchemaFile.of("[plan]\nrho = 0.1\n")
    taken = SchemaFile.of(asked.taking(before.stating("plan", ["[plan]\nrho = 9\n"])).text)
    schema = gn.Schema.loads(taken.text)
    assert schema.is_draft == is_draft
    assert schema.attributes == gn.Schema.loads(drafted).attributes
    assert taken.reasons() == before.reasons()
    assert taken.left_out() == before.left_out()
    assert (schema.file.delimiter, "rho = 0.1" in taken.text) == (";", True)
    stated = SchemaFile.of("[file]\ndecimal = ','\n").taking(before)
    assert gn.Schema.loads(stated.text).file == gn.Dialect(decimal=",")
    asked = before.stating("plan", ["[plan]\nrho = 9\n"])
    assert SchemaFile().taking(asked).text == before.spaced().text


def test_columns_that_are_confirmed_are_replaced_by_no_others(drafted):
    confirmed = SchemaFile.of(BY_HAND)
    taken = confirmed.taking(SchemaFile.of(drafted))  # all of it is read off the data
    assert taken.text == confirmed.text


def test_names_and_reasons_of_any_text_stay_in_their_comment():
    name = 'it\'s "a"\n[attributes.x]'
    schema = gn.Schema([gn.Attribute(name, ["a\n[b]", "c"]), gn.Attribute("y", ["d"])])
    file = SchemaFile.of(schema.to_toml())
    gone = SchemaFile.of(file.without(schema.attributes[0], "by hand").text)
    assert gn.Schema.loads(gone.text).names == ("y",)
    assert gone.instead(name) == schema.attributes[0]


def test_a_column_that_was_left_out_comes_back_with_its_names_and_title():
    words = {"names": ["young", "old"], "title": "Age", "measured_in": "years"}
    age = gn.Attribute("age", edges=[0, 18, 65], **words)
    grouped = gn.Attribute("age", edges=[0, 18, 65], **words, groups={"all": {"both": [0, 65]}})
    for own in (age, grouped):
        file = SchemaFile.of(gn.Schema([own, gn.Attribute("y", ["d"])]).to_toml())
        assert file.without(own, "by hand").instead("age") == age


MARKED = """\
draft = true

# reason one
[attributes.c]
categories = ["a", "b"]

# reason two
[attributes.d]
categories = ["x", "y"]
"""


@pytest.mark.parametrize(
    ("marked", "by_hand"),
    [
        ("# reason one\n", "# reason one\n\n"),
        ("# reason one\n", "  # reason one\n"),
        ("[attributes.c]", "  [attributes.c]"),
        ("[attributes.c]", "[ attributes.c ]"),
        ("[attributes.c]", '["attributes".c]'),
        ("# reason one\n[attributes.c]", "[attributes.c]\n# reason one"),
        ('# reason one\n[attributes.c]\ncategories = ["a", "b"]\n', '[attributes.c]\n'
         'categories = ["a", "b"]\n# reason one\n'),
        ("# reason one\n[attributes.c]\n", "[attributes]\n[attributes . c]\n"),
        ("# reason one\n[attributes.c]\ncat", "attributes.c.cat"),
        ('# reason one\n[attributes.c]\ncategories = ["a", "b"]',
         '[attributes]\nc = {categories = ["a", "b"]}'),
    ],
)  # fmt: skip
def test_a_draft_does_not_end_while_a_mark_may_stand_apart(marked, by_hand):
    """Then a person says in one step that all columns are confirmed."""
    d = gn.Attribute("d", ["x", "y"])
    assert MARKED.count(marked) == 1
    file = SchemaFile.of(MARKED.replace(marked, by_hand))
    done = SchemaFile.of(file.with_attribute(d).text)
    assert gn.Schema.loads(done.text).is_draft
    assert not done.reasons()  # so that the page has the button for all columns
    assert not gn.Schema.loads(done.no_draft().text).is_draft
    assert gn.Schema.loads(file.without(d, "by hand").text).is_draft
    # a new draft, and another folder, take no such column as confirmed
    assert "c" in SchemaFile.of(MARKED).keeping(done).reasons()
    assert {"c", "d"} == SchemaFile.of(MARKED).taking(done).reasons().keys()
    # where no mark is in doubt, the last column that is confirmed ends the draft
    plain = SchemaFile.of(MARKED.replace("\n", "\r\n")).with_attribute(d)
    assert plain.reasons() == {"c": "reason one"}
    assert not gn.Schema.loads(plain.with_attribute(gn.Attribute("c", ["a"])).text).is_draft


def test_a_column_that_another_page_left_out_does_not_come_back():
    file, d = SchemaFile.of(MARKED), gn.Attribute("d", ["x", "z"])
    assert gn.Schema.loads(file.changed(d).text).attributes[1] == d
    gone = file.without(d, "by hand")
    for edit in (lambda: gone.changed(d), lambda: gone.without(d, "by hand")):
        with pytest.raises(SchemaError, match="This page is old: reload it"):
            edit()


@pytest.mark.parametrize("end", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_values_may_have_characters_that_end_lines_elsewhere(end):
    own = gn.Attribute(f"c{end}", [f"a{end}[attributes.y]", f"{end}# b", "M"])
    toml = gn.Schema([own]).to_toml()
    assert gn.Schema.loads(toml).attributes == (own,)
    file = SchemaFile.of(f"draft = true\n\n# one\n{toml}\n{MARKED.partition(chr(10))[2]}")
    assert file.reasons().keys() == {own.name, "c", "d"}
    gone = SchemaFile.of(file.without(own, "by hand").text)
    assert gone.instead(own.name) == own
    assert gone.with_attribute(own).text.count("[attributes.") == 3 + 1


def test_the_proposal_for_a_column_that_a_draft_leaves_out_has_its_characters():
    names = [f"p{k // 2}\u2028\u00a0\U000e0041q" for k in range(200)]
    drafted = SchemaFile.of(draft(pd.DataFrame({"person id": names})).to_toml())
    own = drafted.instead("person id")
    assert own is not None
    assert {*own.categories} == {*names}


def test_tables_of_one_name_are_replaced_together():
    file = SchemaFile.of(BY_HAND)
    changed = file.stating("workload", ['[[workload]]\nof = ["a county"]\n'] * 2)
    assert changed.text.count("[[workload]]") == 2
    assert 'of = ["sex"]' not in changed.text
    assert "rho = 0.1" in changed.text
    assert "[plan]" not in changed.stating("plan", []).text
