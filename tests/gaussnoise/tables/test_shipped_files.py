"""CSV files that other packages ship: drafted, counted, and compared with plain Python."""

import csv
import sysconfig
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from gaussnoise.errors import DataError
from gaussnoise.tables.counting.count import count_marginals
from gaussnoise.tables.drafts.draft import draft
from gaussnoise.tables.reading.values import Form, finder

pytestmark = pytest.mark.integration
MOST_BYTES = 2**20


def test_files_of_other_packages_are_counted_as_plain_python_counts_them():
    """This holds for every drafted column: the reference is Python's own reader of CSV."""
    folders = defaultdict(list)
    for file in sorted(Path(sysconfig.get_path("purelib")).rglob("*.csv")):
        if file.stat().st_size < MOST_BYTES:
            folders[file.parent].append(file)
    # files of a folder have few shapes: its smallest and its largest one
    by_size = [sorted(own, key=lambda file: file.stat().st_size) for own in folders.values()]
    files = [file for own in by_size for file in dict.fromkeys((own[0], own[-1]))]
    if len(files) < 20:
        pytest.skip("few packages with CSV files are installed")
    compared = 0
    for file in files:
        try:
            drafted = draft(file)
        except DataError:
            continue  # no names of columns, or no CSV
        if drafted.file.stated:
            continue  # another dialect, which Python would have to be told
        columns = [(a, finder(a, Form.TEXT)) for a in drafted.attributes]
        with open(file, encoding="utf-8-sig", newline="") as lines:
            cells = [
                [find(row[a.name]) or (a.size if a.other else 0) for a, find in columns]
                for row in csv.DictReader(lines)
            ]
        kept = [row for row in cells if all(row)]
        subsets = [(k,) for k in range(len(columns))]
        for (k,), counts in count_marginals(file, drafted.attributes, subsets, "drop"):
            expected = Counter(row[k] for row in kept)
            assert counts.tolist() == [expected[cell + 1] for cell in range(len(counts))], file.name
            compared += len(kept)
    assert compared > 10_000
