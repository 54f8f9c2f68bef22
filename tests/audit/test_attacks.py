"""Every attack on the edges fails; where what stops it is taken away, it succeeds."""

import audit_attacks as attacks
import pytest

from gaussnoise.tables.reading import csv
from gaussnoise.tables.reading.values import Form

pytestmark = pytest.mark.usefixtures("quick_pictures")


@pytest.fixture
def open_folder(tmp_path):
    """A folder that other users may enter."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    return tmp_path


@pytest.mark.parametrize("name", attacks.ATTACKS)
def test_the_attack_fails(open_folder, name):
    tried, succeeded = attacks.tally(attacks.ATTACKS[name](open_folder))
    assert tried
    assert not succeeded


# What stops an attack, and what is put in its place.
UNDONE = {
    "one row of a file hides others": (
        "gaussnoise.tables.reading.csv._check_bytes",
        lambda plain: csv._Checked(False, 0, 0, 0, 0),
    ),
    "valid fields of several lines refused": (
        "gaussnoise.tables.reading.csv._check_bytes",
        lambda plain: csv._Checked(False, 0, 0, 0, 0),
    ),
    "one row decides about others in pandas": (  # as if pandas said what types columns have
        "gaussnoise.tables.reading.opened.Opened.form",
        lambda source, column: Form.TYPED,
    ),
    "values in the names of types": ("gaussnoise.tables.reading.types.type_name", str),
    "altered folders read as released": (
        "gaussnoise.tables.release.stored.folder_fault",
        lambda folder, files, every: None,
    ),
    "ledgers on shared disks": ("gaussnoise.privacy.ledger.mount_of", lambda path: None),
}


@pytest.mark.parametrize("name", UNDONE)
def test_the_attack_succeeds_where_what_stops_it_is_taken_away(open_folder, monkeypatch, name):
    monkeypatch.setattr(*UNDONE[name])
    assert any(attacks.ATTACKS[name](open_folder))  # it needs to succeed once
