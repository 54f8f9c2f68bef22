"""Tests of tables that no task holds: their pieces have the same numbers as on one machine."""

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest

import gaussnoise as gn
from gaussnoise.errors import DomainTooLargeError, OutputError
from gaussnoise.files import commits as committing
from gaussnoise.files.commits import Commits
from gaussnoise.solvers.tables.boxes import boxes, evenly, overlap, shape_of, within
from gaussnoise.solvers.tables.residuals import part_of
from gaussnoise.tables.release import store
from gaussnoise.tables.release.publish import _blank
from gaussnoise.tables.release.stream import exact_part, known_part, measured_parts, table_of
from gaussnoise.tables.spark import layout as layouts
from gaussnoise.tables.spark import matrix as matrices
from gaussnoise.tables.spark import pieces, tasks
from gaussnoise.tables.spark.blocks import packed, read_block, unpacked, write_blocks
from gaussnoise.tables.spark.layout import Layout, keys_of
from gaussnoise.tables.spark.matrix import Matrix

SIZES = {"a": 5, "b": 7, "c": 2, "d": 6, "e": 4}
SCHEMA = gn.Schema([gn.Attribute(name, range(size)) for name, size in SIZES.items()])
PLANS = {
    "shared": ([("a", "b", "d", "e"), ("b", "d", "e"), ("a", "b", "c"), ("c", "e")], {}),
    "one attribute": ([("b",), ("a", "b")], {}),
    "replace": ([("a", "b", "d"), ("a", "b", "c", "d")], {"neighbors": "replace"}),
    "public": (
        [("a", "b", "d"), ("a", "c", "d", "e")],
        {"neighbors": "replace", "public": ("a", "c")},
    ),
    "bases": ([{"a": None, "b": "prefix", "d": "prefix"}, {"b": "ranges", "c": None}], {}),
}


def counts_of(S, n=3000):
    """Return the counts of made-up rows, the same for all tables."""
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, size, n) ** 2 % size for size in SIZES.values()]
    counts = np.zeros([SCHEMA.sizes[i] for i in S], dtype=np.int64)
    np.add.at(counts, tuple([rows[i] for i in S]), 1 if S else n)
    return counts


def few_cells(monkeypatch, most=30, piece=20):
    monkeypatch.setattr(layouts, "MOST_CELLS", most)
    monkeypatch.setattr(layouts, "_PIECE_CELLS", piece)
    monkeypatch.setattr(layouts, "_GROUP_CELLS", (12, 12))


class Steps:
    """The steps of Spark's tasks, one after another in this process; it records all noise."""

    def __init__(self, plan, folder, monkeypatch):
        self.plan, self.layout = plan, Layout.of(plan)
        self.exact, self.noisy, self.measured, self.result = (
            Commits(folder / name, folder) for name in ("exact", "noisy", "measured", "result")
        )
        for commits in (self.exact, self.noisy, self.measured, self.result):
            commits.folder.mkdir()
        monkeypatch.setattr(committing, "sync", lambda *_, **__: None)  # does not wait for the disk
        self.drawn = []
        for module in (tasks, pieces):
            monkeypatch.setattr(module, "noise", self.noise)
        self.total = int(counts_of(()))

    def noise(self, query, count):
        values = np.random.default_rng(len(self.drawn)).integers(-(2**40), 2**40, count)
        self.drawn.append(values)
        return values

    def rows(self, matrix):
        counts = counts_of(matrix.T).reshape(-1)
        ends = [*matrix.first_cells, counts.size]
        parts = [(k, counts[a:b]) for k, (a, b) in enumerate(itertools.pairwise(ends))]
        return list(pieces.answer_rows(self.layout, matrix.T, self.total, self.exact, iter(parts)))

    def columns(self, matrix):
        heads = pieces.row_heads(matrix, self.exact)
        assert pieces.rows_counted(matrix, self.total, self.exact, heads) == self.total
        numbers = range(len(matrix.columns))
        T = matrix.T
        return list(
            pieces.draw_columns(self.layout, T, self.total, self.exact, heads, self.noisy, numbers)
        )

    def decoded(self, matrix):
        heads = pieces.column_heads(matrix, self.noisy)
        numbers = range(len(matrix.boxes))
        return list(
            pieces.decode_rows(self.layout, matrix.T, self.noisy, heads, self.measured, numbers)
        )

    def all(self):
        """Return every table, and the noise of every residual."""
        layout, query, noise = self.layout, self.plan.query, {}
        for part, group in enumerate(layout.groups):
            before = len(self.drawn)
            list(tasks.measure(layout, self.measured, [(part, counts_of(group).reshape(-1))]))
            residuals = [T for T, exact in layout.measured[part] if not exact]
            noise |= dict(zip(residuals, self.drawn[before:], strict=True))
        for T, matrix in layout.matrices.items():
            before = len(self.drawn)
            for step in (self.rows, self.columns, self.decoded) * 2:  # the second time is idle
                step(matrix)
            shape = -1, query.rows(T[matrix.lead :])
            height = query.rows(T) // shape[1]
            drawn = [values.reshape(height, -1) for values in self.drawn[before:]]
            noise[T] = np.concatenate(drawn, axis=1).reshape(-1)
        digests = {
            path.name: self.measured.digest(path.name) for path in self.measured.folder.iterdir()
        }
        assert sum(map(len, self.drawn)) == query.count  # each integer is drawn once
        return tasks.Measured(layout, self.measured.folder, digests), noise, digests


def one_machines(plan, noise):
    """Return the tables by the functions for one machine."""
    query, residuals, tables = plan.query, {}, {}
    for S in plan.tables.subsets:
        counts, parts = counts_of(S), list(measured_parts(S, query))
        for T in parts:
            if T not in residuals:
                exact = part_of(counts, S, T)
                residuals[T] = query.decode(T, query.noisy(T, exact, noise[T]))
        known = exact_part(counts, S, known_part(S, query), query)
        tables[S] = table_of(S, known, {T: residuals[T] for T in parts}, query)
    return tables


@pytest.mark.parametrize("kind", PLANS)
def test_pieces_are_those_of_one_machine(tmp_path, monkeypatch, kind):
    few_cells(monkeypatch, *((6, 3) if kind == "one attribute" else ()))
    entries, more = PLANS[kind]
    plan = gn.plan(SCHEMA, entries, gn.zCDP(1.0), **more)
    steps = Steps(plan, tmp_path, monkeypatch)
    layout = steps.layout
    keys = [key for own in layout.measured for key in own]
    keys += [(T, False) for T in layout.matrices]
    wanted = {key for S in plan.tables.subsets for key in keys_of(S, plan.query)}
    assert len(keys) == len(set(keys))  # each key occurs once
    assert set(keys) == wanted
    if kind == "shared":
        assert {matrix.lead for matrix in layout.matrices.values()} == {1, 2, 3}
        assert not {T for T in layout.matrices if plan.tables.cells(T) <= layout.most}
    files, noise, digests = steps.all()
    here = one_machines(plan, noise)
    close = {"rtol": 1e-12, "atol": 1e-9} if kind == "bases" else {"rtol": 0, "atol": 0}
    assert layout.large
    for S in layout.large:
        found = np.full(here[S].shape, np.nan)
        for box in layout.boxes(S):
            found[box] = files.table(S, box)
        assert np.allclose(found, here[S], **close)
    blank = _blank(plan, pd.DataFrame(), "refuse", private=True)
    numbers = range(len(layout.large_pieces))
    measured = blank, layout, steps.measured, digests, steps.result
    for count, write in (
        (len(layout.tables), tasks.write_tables),
        (len(numbers), tasks.write_pieces),
    ):
        list(write(*measured, range(count)))
    tables = store.StoredTables(steps.result.folder, layout.table_places)
    for S, table in here.items():  # read back from several files
        assert np.allclose(tables[S], table, **close)
    check_rows(plan, layout, here, steps.result.folder, blank)


def check_rows(plan, layout, here, folder, blank):
    """Check that files have the rows of each table in C order, with labels and deviations."""
    for S in layout.large:
        files = [layout.piece_file(k) for k, (of, _) in enumerate(layout.large_pieces) if of == S]
        assert files == sorted(files)
        assert len(files) > 1
        rows = pd.concat([pd.read_parquet(folder / file) for file in files])
        names = [plan.schema.names[i] for i in S]
        cells = np.unravel_index(np.arange(here[S].size), here[S].shape)
        for k, (name, codes) in enumerate(zip(names, cells, strict=True), 1):
            assert (rows[f"attribute_{k}"] == name).all()
            assert rows[f"label_{k}"].tolist() == [str(code) for code in codes]
        deviation = np.broadcast_to(blank.deviation(S), here[S].shape).reshape(-1)
        assert np.array_equal(rows["standard_deviation"], deviation)
        assert (rows["marginal"] == 1 + plan.tables.subsets.index(S)).all()


def test_integers_beyond_64_bits_are_the_same_in_pieces(tmp_path, monkeypatch):
    """A bound beyond 64 bits changes the type, but no number."""
    few_cells(monkeypatch)
    plan = gn.plan(SCHEMA, [("a", "b", "d")], gn.zCDP(1.0))
    found = []
    for name, total in (("few", None), ("many", 2**62)):
        (tmp_path / name).mkdir()
        steps = Steps(plan, tmp_path / name, monkeypatch)
        matrix = steps.layout.matrices[0, 1, 3]
        assert steps.layout.matrices.keys() == {(0, 1), (1, 3), (0, 1, 3)}
        steps.total = total or steps.total
        steps.rows(matrix)
        heads = pieces.row_heads(matrix, steps.exact)
        numbers = range(len(matrix.columns))
        given = steps.layout, matrix.T, steps.total, steps.exact, heads, steps.noisy, numbers
        list(pieces.draw_columns(*given))
        steps.decoded(matrix)
        found.append([np.load(path) for path in sorted(steps.measured.folder.iterdir())])
    assert all(np.array_equal(few, many) for few, many in zip(*found, strict=True))


DAMAGES = {
    "exact answers": ("exact", 2, "columns"),
    "exact answers' digests": ("exact", 0, "columns"),
    "noisy columns": ("noisy", 2, "decoded"),
    "noisy columns' digests": ("noisy", 0, "decoded"),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_piece_is_refused(tmp_path, monkeypatch, kind):
    few_cells(monkeypatch)
    folder, half, step = DAMAGES[kind]
    plan = gn.plan(SCHEMA, [("a", "b")], gn.zCDP(1.0))
    steps = Steps(plan, tmp_path, monkeypatch)
    (matrix,) = steps.layout.matrices.values()
    steps.rows(matrix)
    steps.columns(matrix)
    if step == "columns":
        for path in steps.noisy.folder.iterdir():
            path.unlink()
    heads = {
        "exact": pieces.row_heads(matrix, steps.exact),
        "noisy": pieces.column_heads(matrix, steps.noisy),
    }[folder]
    monkeypatch.setattr(pieces, "row_heads", lambda *_: heads)
    monkeypatch.setattr(pieces, "column_heads", lambda *_: heads)
    drawn = len(steps.drawn)
    path = tmp_path / folder / matrix.name(0)
    content = bytearray(path.read_bytes())
    content[-1 if half else 40] ^= 1
    path.write_bytes(content)
    with pytest.raises(OutputError, match="not what was committed"):
        getattr(steps, step)(matrix)
    assert folder == "noisy" or len(steps.drawn) < drawn + len(matrix.columns)


def test_a_damaged_residual_is_refused(tmp_path, monkeypatch):
    few_cells(monkeypatch)
    plan = gn.plan(SCHEMA, [("a", "b")], gn.zCDP(1.0))
    steps = Steps(plan, tmp_path, monkeypatch)
    files, *_ = steps.all()
    path = steps.measured.folder / steps.layout.matrices[0, 1].name(1)
    path.write_bytes(path.read_bytes() + b" ")
    box = steps.layout.boxes((0, 1))
    assert files.table((0, 1), box[0]).size
    with pytest.raises(OutputError, match="not what was committed"):
        list(map(partial(files.table, (0, 1)), box))


def test_boxes_cover_a_table_in_order():
    for sizes, most in itertools.product([(7,), (3, 4), (2, 5, 3), (4, 1, 6)], (1, 2, 5, 12, 100)):
        found = np.full(sizes, -1)
        for k, box in enumerate(boxes(sizes, most)):
            assert math.prod(shape_of(box)) <= most
            assert (found[box] == -1).all()
            found[box] = k
        assert (np.diff(found.reshape(-1)) >= 0).all()
        assert found.min() == 0
    box, other = (slice(2, 5), slice(0, 3)), (slice(4, 7), slice(1, 9))
    assert overlap(box, other) == (slice(4, 5), slice(1, 3))
    assert within((slice(4, 5), slice(1, 3)), box) == (slice(2, 3), slice(1, 3))
    assert overlap(box, (slice(5, 7), slice(1, 2))) is None
    for count, most in itertools.product(range(1, 30), range(1, 30)):
        widths = [part.stop - part.start for part in evenly(count, most)]
        assert sum(widths) == count
        assert max(widths) <= most
        assert max(widths) - min(widths) <= 1


def test_integers_are_packed_as_they_are(tmp_path):
    for bound in (5, 2**61, 2**62, 2**63, 2**64, 10**40):
        values = np.array([bound, -bound, 0, -1, 1, bound - 1], dtype=object)
        given = values.astype(np.int64) if bound < 2**62 else values
        found = unpacked(packed(given, bound), bound)
        assert [int(x) for x in found] == [int(x) for x in values]
        assert found.dtype == given.dtype
    write_blocks(tmp_path / "file", iter([b"one", b"", b"three"]), 3)
    head = pieces.head_digest(tmp_path / "file", 3)
    assert [read_block(tmp_path / "file", head, [3, 0, 5], k) for k in range(3)] == [
        b"one",
        b"",
        b"three",
    ]


def test_large_tables_are_cut_into_pieces_that_fit():
    """They have up to 10¹¹ cells; a task holds 2²⁶ numbers at most, in some million blocks."""
    for sizes in ((9000, 9000), (3, 5 * 10**7), (100,) * 5, (300000, 300000), (4600, 4600, 4600)):
        schema = gn.Schema([gn.Attribute(f"a{k}", range(3)) for k in range(len(sizes))])
        query = gn.plan(schema, len(sizes), gn.zCDP(1.0)).query
        strategies = tuple(
            replace(own, size=n) for own, n in zip(query.strategies, sizes, strict=True)
        )
        T = tuple(range(len(sizes)))
        matrix = Matrix.of(T, replace(query, strategies=strategies), layouts._PIECE_CELLS)
        inner = math.prod(sizes[matrix.lead :])
        assert max(matrix.heights) * inner <= matrices.MOST_HELD
        wide = max(columns.stop - columns.start for columns in matrix.columns)
        assert sum(matrix.heights) * wide <= matrices.MOST_HELD
        assert len(matrix.boxes) * len(matrix.columns) < 2**24
    strategies = (replace(query.strategies[0], size=2**27), *query.strategies[1:])
    with pytest.raises(DomainTooLargeError, match="cannot be cut into pieces"):
        Matrix.of((0, 1), replace(query, strategies=strategies), layouts._PIECE_CELLS)


def test_plans_of_small_tables_are_laid_out_as_before():
    """The layout must not change, so that streams and releases that were begun can go on."""
    plan = gn.plan(SCHEMA, 2, gn.zCDP(1.0))
    layout = Layout.of(plan)
    assert (layout.large, layout.parts, dict(layout.matrices)) == ((), (), {})
    assert layout.sha256 == replace(layout, most=7, piece=3).sha256


def test_what_measures_otherwise_is_told_apart(monkeypatch):
    few_cells(monkeypatch)
    plan = gn.plan(SCHEMA, [("a", "b", "d")], gn.zCDP(1.0))
    found = {Layout.of(plan).sha256}
    monkeypatch.setattr(layouts, "_PIECE_CELLS", 13)
    found.add(Layout.of(plan).sha256)
    monkeypatch.setattr(matrices, "_MOST_PIECES", 2)  # pieces are cut otherwise
    found.add(Layout.of(plan).sha256)
    assert len(found) == 3


def test_tables_too_large_to_be_read_are_refused(tmp_path, monkeypatch):
    plan = gn.plan(SCHEMA, [("a", "b"), {"a": "prefix", "d": None}], gn.zCDP(1.0))
    rows = pd.DataFrame({name: [0, 1] for name in SIZES})
    plan.release(rows, out=tmp_path / "out", format="parquet")
    monkeypatch.setattr(store, "MOST_READ", 34)
    release = gn.TableRelease.load(tmp_path / "out")
    for read in (
        lambda: release["a", "b"],
        lambda: release["b"],
        lambda: list(release.measurements()),
    ):
        with pytest.raises(DomainTooLargeError, match="duckdb or Spark"):
            read()
